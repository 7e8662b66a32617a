//! Suggests similar names, and replacements for functions that Stan has removed.

use crate::program::signatures::BuiltinId;

const REPLACED: &[(&str, &str)] = &[
    ("increment_log_prob", "`target += …;`"),
    ("get_lp", "`target()`"),
    ("if_else", "`condition ? a : b`"),
    ("multiply_log", "`lmultiply`"),
    ("binomial_coefficient_log", "`lchoose`"),
    ("fabs", "`abs`"),
    ("cov_exp_quad", "`gp_exp_quad_cov`"),
    ("integrate_function", "`integrate_1d`"),
    ("lkj_cov_log", "`lkj_corr_lpdf` with scales of its own"),
    ("log_gamma", "`lgamma`"),
    ("logN", "`lognormal_lpdf`"),
];

pub(super) fn replacement(name: &str) -> Option<String> {
    if let Some((_, modern)) = REPLACED.iter().find(|(old, _)| *old == name) {
        return Some((*modern).to_owned());
    }
    const SUFFIXES: [(&str, &[&str]); 3] = [
        ("_ccdf_log", &["_lccdf"]),
        ("_cdf_log", &["_lcdf"]),
        ("_log", &["_lpdf", "_lpmf"]),
    ];
    for (old, modern) in SUFFIXES {
        let Some(stem) = name.strip_suffix(old) else {
            continue;
        };
        for suffix in modern {
            let candidate = format!("{stem}{suffix}");
            if BuiltinId::from_name(&candidate).is_some() {
                return Some(format!("`{candidate}(y | …)`"));
            }
        }
    }
    None
}

pub(super) fn distributions() -> impl Iterator<Item = &'static str> {
    BuiltinId::all().filter_map(|id| {
        let name = id.name();
        name.strip_suffix("_lpdf")
            .or_else(|| name.strip_suffix("_lpmf"))
    })
}
