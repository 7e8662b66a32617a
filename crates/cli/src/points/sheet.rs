//! The page about a fit of points.

use jensen::report::figure::{Chart, Figure};
use jensen::report::{Section, Sheet, Tone};
use serde_json::Value;

use super::{Described, PointFlags, Points};

/// Rows and columns of the page's table; all are in `fit.json`.
const SHOWN: (usize, usize) = (100, 40);

/// The page: `summary` is what `fit.json` holds.
pub fn sheet(
    summary: &Value,
    flags: &PointFlags,
    points: &Points,
    described: &Described,
    course: Vec<(Chart, &'static str)>,
    hot: bool,
) -> Sheet {
    let text = |name: &str| summary[name].as_str().unwrap_or_default().to_owned();
    let number = |name: &str, decimals: usize| {
        let value = summary[name].as_f64();
        value.map_or("–".to_owned(), |x| format!("{x:.decimals$}"))
    };
    let fact =
        |label: &str, value: String, aside: &str| (label.to_owned(), value, aside.to_owned());
    let trusted = summary["trusted"].as_bool() == Some(true);
    let (tone, headline) = match (trusted, hot) {
        (true, _) => (Tone::Good, "The fit is done"),
        (false, true) => (Tone::Poor, "The fit ended hot"),
        (false, false) => (Tone::Fair, "The fit is not done"),
    };
    let mut warnings = Vec::new();
    if hot {
        warnings.push(format!(
            "The fit ended at temperature {}: it describes a flattened model, not the data.",
            number("temperature", 2)
        ));
    }
    let figures = described
        .pictures
        .iter()
        .map(|(_, caption, figure)| (figure.to_svg(), (*caption).to_owned()))
        .collect();
    let (heads, rows) = &described.table;
    let columns = heads.len().min(SHOWN.1);
    let cut = |row: &Vec<String>| row[..columns].to_vec();
    let mut heading = format!("{}s", described.rows);
    heading[..1].make_ascii_uppercase();
    let note = if rows.len() > SHOWN.0 || heads.len() > SHOWN.1 {
        "Rows and columns that are left out here are in fit.json."
    } else {
        ""
    };
    let mut facts = vec![
        fact("bound", number("elbo", 2), "nats, at T = 1"),
        fact("temperature", number("temperature", 3), "at the end"),
        fact(
            "points",
            (points.train.len() / points.dim()).to_string(),
            "to learn from",
        ),
        fact("iterations", number("iterations", 0), ""),
        fact("speed", number("points_per_second", 0), "points a second"),
    ];
    if summary["heldout_log_predictive"].is_number() {
        let error = format!("± {} nats a point", number("heldout_standard_error", 4));
        facts.insert(
            1,
            fact("held out", number("heldout_log_predictive", 4), &error),
        );
    }
    let mut settings = vec![
        ("temper".to_owned(), flags.temper.name().to_owned()),
        ("seed".to_owned(), flags.seed.to_string()),
    ];
    if let Some(batch) = flags.batch {
        settings.extend([
            ("batch".to_owned(), batch.to_string()),
            ("passes".to_owned(), flags.passes.to_string()),
            ("tau".to_owned(), flags.tau.to_string()),
            ("kappa".to_owned(), flags.kappa.to_string()),
        ]);
    }
    Sheet {
        title: format!("{} {}s", rows.len(), described.rows),
        subject: vec![
            ("model".to_owned(), text("model")),
            ("data".to_owned(), points.source.clone()),
        ],
        verdict: (tone, headline.to_owned(), text("status")),
        facts,
        warnings,
        sections: vec![
            Section {
                heading,
                note: note.to_owned(),
                figures,
                table: (cut(heads), rows.iter().take(SHOWN.0).map(cut).collect()),
            },
            Section {
                heading: "Along the run".to_owned(),
                figures: course
                    .into_iter()
                    .map(|(chart, caption)| {
                        (Figure::new("").panel(chart).to_svg(), caption.to_owned())
                    })
                    .collect(),
                ..Section::default()
            },
        ],
        settings,
        timing: vec![(
            "fit".to_owned(),
            summary["seconds"]["fit"].as_f64().unwrap_or(0.0),
        )],
        version: text("version"),
    }
}
