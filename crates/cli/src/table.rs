//! The summary that is printed at the end of a fit.

use std::fmt::Write;

use jensen::Fitted;
use jensen::data::ParameterSummary;
use jensen::data::text::fixed;

/// The number of rows of the table that is printed. The file `fit.json` contains all rows.
const ROWS: usize = 40;

pub fn summary(fitted: &Fitted) -> String {
    let mut text = String::new();
    // Values for every observation are intended for the report and for other programs. In this table they would hide
    // the parameters.
    let roles = fitted.sample.roles(false);
    let (pointwise, parameters): (Vec<_>, Vec<_>) =
        (fitted.parameters().into_iter()).partition(|p| {
            p.name
                .split_once('[')
                .is_some_and(|(name, _)| roles.is_pointwise(name))
        });
    self::parameters(&mut text, &parameters);
    let mut left_out: Vec<&str> = (pointwise.iter())
        .filter_map(|p| Some(p.name.split_once('[')?.0))
        .collect();
    left_out.dedup();
    if !left_out.is_empty() {
        let _ = writeln!(
            text,
            "{} of {}: see the report, or --json",
            pointwise.len(),
            left_out.join(", ")
        );
    }
    text.push('\n');
    text + &evidence(fitted)
}

/// Returns text that describes the course of the fit and states the verdict.
pub fn evidence(fitted: &Fitted) -> String {
    let mut text = String::new();
    let best = fitted.fit.best();
    let e = &best.evaluation;
    let mut line = |name: &str, value: &str| {
        // The hat of k̂ is a separate character, which does not occupy a column.
        let width = 8 + name.chars().filter(|c| *c == '\u{302}').count();
        let _ = writeln!(text, "{name:<width$} {value}");
    };
    line(
        "ELBO",
        &format!(
            "{} ± {} nats",
            fixed(e.elbo.mean, 3),
            fixed(e.elbo.standard_error, 3)
        ),
    );
    let mixed = fitted.refined().is_some_and(|refined| refined.mixed());
    line(
        "k̂",
        &khat_meaning(e.khat, e.khat_threshold, mixed, fitted.trusted()),
    );
    if let (Some(refined), Some(kl)) = (fitted.refined(), fitted.divergence()) {
        let found = if refined.mixed() {
            "draws of the posterior"
        } else {
            "not mixed"
        };
        // An iteration that has not finished has no results.
        if refined.mixing.rhat.is_nan() {
            line("refined", found);
        } else {
            line(
                "refined",
                &format!(
                    "{found}: nested R̂ {:.3}, at least {:.0} effective draws per coordinate",
                    refined.mixing.rhat, refined.mixing.ess
                ),
            );
            let z = refined.log_evidence;
            line(
                "",
                &format!(
                    "log evidence {} ± {}, KL(q‖p) {} ± {} nats",
                    fixed(z.mean, 3),
                    fixed(z.standard_error, 3),
                    fixed(kl.mean, 3),
                    fixed(kl.standard_error, 3)
                ),
            );
        }
        // If the tail is the reason, it is already stated on the line of k̂.
        if e.khat <= e.khat_threshold
            && let Some(reason) = fitted.refined_because().first()
        {
            let reason = match fitted.fit.converged() {
                true => reason.as_str(),
                false => "the optimiser did not converge (see status)",
            };
            line("", &format!("because {reason}"));
        }
    }
    let family = match fitted.fit.corrected {
        true => format!(
            "meanfield with linear-response covariances ({})",
            best.family
        ),
        false => best.family.to_string(),
    };
    line("family", &family);
    for remark in fitted.remarks() {
        line("", &remark);
    }
    let aside = match mixed && !fitted.fit.converged() {
        true => "; the refined draws passed their own checks",
        false => "",
    };
    line("status", &format!("{}{aside}", fitted.fit.status));
    line(
        "time",
        &format!(
            "build {}, fit {}, draws {} ({} iterations of all stages, {} oracle calls)",
            seconds(fitted.build_seconds),
            seconds(fitted.fit.seconds),
            seconds(fitted.draws_seconds),
            fitted.fit.iterations,
            fitted.fit.oracle_calls()
        ),
    );
    if fitted.trusted() {
        line("verdict", "trusted");
    } else {
        line("verdict", "NOT to be trusted:");
        for warning in fitted.warnings() {
            line("", &format!("- {warning}"));
        }
    }
    text
}

/// Appends one row for each summary. If there are many summaries, only the first of them are shown.
pub fn parameters(text: &mut String, parameters: &[ParameterSummary]) {
    let shown = &parameters[..parameters.len().min(ROWS)];
    let width = shown.iter().map(|p| p.shown().chars().count()).max();
    let width = width.unwrap_or(0).max(4);
    let weighted = shown.iter().any(|p| p.plain.is_some());
    let row = |text: &mut String, name: &str, cells: [&str; 6], plain: [&str; 2]| {
        let _ = write!(text, "{name:<width$}");
        let beside = plain.iter().filter(|_| weighted);
        for cell in cells.iter().chain(beside) {
            let _ = write!(text, " {cell:>10}");
        }
        text.push('\n');
    };
    let heads = ["mean", "mcse", "sd", "q05", "q50", "q95"];
    row(text, "name", heads, ["plain mean", "plain sd"]);
    for p in shown {
        let mcse = p.mcse.map_or(String::new(), |x| format!("{x:.1e}"));
        let [mean, sd, q05, q50, q95] = [p.mean, p.sd, p.q05, p.q50, p.q95].map(number);
        let plain = p.plain.map(|plain| [number(plain.mean), number(plain.sd)]);
        let [plain_mean, plain_sd] = plain.unwrap_or_default();
        let known = |cell: String| match p.undefined.is_some() && cell == "NaN" {
            true => "–".to_owned(),
            false => cell,
        };
        let (mean, sd) = (known(mean), known(sd));
        let cells = [&mean, &mcse, &sd, &q05, &q50, &q95].map(String::as_str);
        row(text, p.shown(), cells, [&plain_mean, &plain_sd]);
    }
    if parameters.len() > shown.len() {
        let _ = writeln!(
            text,
            "… and {} more (--json or --out lists all)",
            parameters.len() - shown.len()
        );
    }
}

/// Returns what k̂ implies for the use of the fit. If the draws were refined, the text refers to the approximation
/// alone.
fn khat_meaning(khat: f64, threshold: f64, refined: bool, trusted: bool) -> String {
    let meaning = if khat.is_nan() {
        return "could not be computed".into();
    } else if khat <= threshold && !trusted {
        "within the limit; see the verdict for other checks"
    } else if khat <= threshold.min(0.5) {
        "the approximation is close to the posterior"
    } else if khat <= threshold {
        match refined {
            false => "usable; importance-resampled draws are better",
            true => "within the limit",
        }
    } else if refined && trusted {
        "the approximation misses posterior mass, so Jensen refines the draws"
    } else if khat <= 1.0 {
        "the approximation misses posterior mass"
    } else {
        "the approximation is far from the posterior"
    };
    format!("{khat:.2} (limit {threshold:.2}): {meaning}")
}

fn number(x: f64) -> String {
    if !x.is_finite() {
        return x.to_string();
    }
    if x == 0.0 {
        return "0".into();
    }
    let magnitude = x.abs().log10().floor();
    if !(-3.0..7.0).contains(&magnitude) {
        return format!("{x:.3e}");
    }
    let digits = (3.0 - magnitude).max(0.0) as usize;
    format!("{x:.digits$}")
}

/// Formats a time in seconds, for example as `4.1 ms` or `2.30 s`.
pub fn seconds(s: f64) -> String {
    if s < 1e-6 {
        format!("{:.1} ns", s * 1e9)
    } else if s < 1e-3 {
        format!("{:.2} µs", s * 1e6)
    } else if s < 1.0 {
        format!("{:.1} ms", s * 1e3)
    } else {
        format!("{s:.2} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        let cases = [
            (0.0, "0"),
            (12.3456, "12.35"),
            (-0.012_345_6, "-0.01235"),
            (123_456.0, "123456"),
            (1.0e-7, "1.000e-7"),
            (f64::NAN, "NaN"),
        ];
        for (x, expected) in cases {
            assert_eq!(number(x), expected);
        }
    }

    #[test]
    fn khat_has_words() {
        assert!(khat_meaning(0.2, 0.7, false, true).contains("close"));
        assert!(khat_meaning(0.6, 0.7, false, true).contains("resampled"));
        assert!(!khat_meaning(0.6, 0.7, true, true).contains("resampled"));
        assert!(!khat_meaning(0.2, 0.7, false, false).contains("close"));
        assert!(khat_meaning(0.6, 0.55, false, false).contains("misses"));
        assert!(khat_meaning(1.4, 0.7, false, false).contains("far"));
        assert!(khat_meaning(f64::INFINITY, 0.7, true, false).contains("far"));
        // If the draws can be trusted, reasons against the approximation alone are not a warning.
        assert!(khat_meaning(0.8, 0.7, true, true).contains("refines the draws"));
    }
}
