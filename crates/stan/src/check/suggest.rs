//! Advice: names that were meant, and what replaced what Stan no longer has.

use crate::program::signatures::BuiltinId;

/// The candidate closest to `name`, if it is close enough to be a slip of the keyboard.
pub(super) fn closest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).clamp(1, 3);
    candidates
        .filter(|candidate| *candidate != name && candidate.len().abs_diff(name.len()) <= limit)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replace = previous[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(previous[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut previous, row);
    }
    previous[b.len()]
}

/// Functions that were part of Stan, and what to write today.
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

/// What to write instead of a function that Stan no longer has.
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

/// Distributions of the library, without suffix.
pub(super) fn distributions() -> impl Iterator<Item = &'static str> {
    BuiltinId::all().filter_map(|id| {
        let name = id.name();
        name.strip_suffix("_lpdf")
            .or_else(|| name.strip_suffix("_lpmf"))
    })
}
