//! The report of a simulation-based calibration.

use jensen_report::figure::{Axis, Chart, Figure, Series};
use jensen_report::{Exhibit, Fact, Report, Tone, Verdict};

use super::ranks::Null;
use super::{Calibrated, DRAWS, Judged};

const SHOWN: usize = 24;

/// Returns the report of a simulation-based calibration.
pub fn report(calibrated: &Calibrated, model: &str, simulator: &str, seed: u64) -> Report {
    let (tone, headline) = match calibrated.calibrated {
        true => (Tone::Good, "No test rejects the calibration"),
        false => (Tone::Poor, "Not calibrated"),
    };
    let ranked = calibrated.simulations - calibrated.without_ranks;
    let count = calibrated.parameters.len();
    let status = format!(
        "{ranked} simulations; ranks of {count} scalars among {DRAWS} draws each; uniform ranks pass with a \
         probability of {:.0} %",
        100.0 * (1.0 - calibrated.error_rate)
    );
    let mut order: Vec<&Judged> = calibrated.parameters.iter().collect();
    order.sort_by(|a, b| a.tests.ecdf_p.total_cmp(&b.tests.ecdf_p));
    let null = Null::new(ranked, count, seed);
    let envelope = null.envelope();
    let figures = order.iter().take(SHOWN).map(|judged| {
        let chart = difference(&judged.ranks, &envelope);
        let caption = format!(
            "{}: p = {:.3} (envelope), {:.3} (χ²). {}",
            judged.name, judged.tests.ecdf_p, judged.tests.chi_square_p, judged.how
        );
        (Figure::new("").panel(chart), caption.trim_end().to_owned())
    });
    let figures = figures.collect();
    let rows = order.iter().map(|judged| {
        let tests = &judged.tests;
        vec![
            judged.name.clone(),
            format!("{:.4}", tests.ecdf_p),
            format!("{:.1} ({})", tests.chi_square, tests.degrees),
            format!("{:.4}", tests.chi_square_p),
            judged.how.clone(),
        ]
    });
    let heads = ["scalar", "p, envelope", "χ² (degrees)", "p, χ²", "how"];
    Report {
        title: format!("Calibration of {model}"),
        subject: vec![
            ("model".to_owned(), model.to_owned()),
            ("simulator".to_owned(), simulator.to_owned()),
        ],
        verdict: Verdict::new(tone, headline, status),
        facts: vec![
            Fact::new("simulations", calibrated.simulations.to_string(), ""),
            Fact::new("trusted fits", calibrated.trusted.to_string(), ""),
            Fact::new("without ranks", calibrated.without_ranks.to_string(), ""),
        ],
        warnings: calibrated.warnings(),
        sections: vec![
            Exhibit {
                heading: "Ranks".to_owned(),
                note: "The distribution function of the ranks minus that of uniform ranks. Uniform ranks stay \
                 inside the band with a probability of 95 %. A line above the band on the left and below it on the \
                 right means that the posterior is too narrow."
                    .to_owned(),
                figures,
                table: (heads.map(str::to_owned).to_vec(), rows.collect()),
            }
            .into(),
        ],
        footnote: "Ranks of all simulations are in ranks.csv, their fits in table.csv.".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Report::default()
    }
}

/// Plots the empirical distribution function of the ranks minus the uniform distribution function. The plot also shows
/// the envelope of this difference.
fn difference(ranks: &[u32], envelope: &[(f64, f64)]) -> Chart {
    let quantile = |k: usize| (k + 1) as f64 / (DRAWS + 1) as f64;
    let share = |k: usize| {
        let reached = ranks.iter().filter(|rank| **rank as usize <= k).count();
        reached as f64 / ranks.len() as f64
    };
    let line = (0..DRAWS).map(|k| (quantile(k), share(k) - quantile(k)));
    let middle = (0..DRAWS).map(|k| (quantile(k), 0.0));
    let ends = envelope
        .iter()
        .enumerate()
        .map(|(k, (low, high))| (low - quantile(k), high - quantile(k)));
    Chart::new("")
        .x(Axis::new("rank, as a share"))
        .y(Axis::new("difference"))
        .series(Series::line("uniform", middle).dashed().band(ends))
        .series(Series::line("ranks", line))
}
