//! The report of a model of points.

use jensen_report::figure::{Axis, Chart, Figure, Series};
use jensen_report::{Exhibit, Fact, Report, Tone, Verdict};

use super::{Described, PointRequest, Points, PointsSummary};

const SHOWN: (usize, usize) = (100, 40);

/// Returns the report of a fitted model of points.
pub fn report_page(
    summary: &PointsSummary,
    request: &PointRequest,
    points: &Points,
    described: &Described,
    course: Vec<(Chart, &'static str)>,
) -> Report {
    let number = |value: Option<f64>, decimals: usize| {
        value.map_or("–".to_owned(), |x| format!("{x:.decimals$}"))
    };
    let (tone, headline) = if summary.judgement.trusted {
        (Tone::Good, "Trusted: the fit is complete")
    } else {
        (Tone::Fair, "Not to be trusted")
    };
    let mut facts = vec![
        Fact::new("bound", number(summary.elbo, 2), "nats, at T = 1"),
        Fact::new("temperature", number(summary.temperature, 3), "at the end"),
        Fact::new("points", points.count().to_string(), "to learn from"),
        Fact::new("iterations", summary.iterations.to_string(), ""),
        Fact::new(
            "speed",
            format!("{:.0}", summary.points_per_second),
            "points a second",
        ),
    ];
    if summary.heldout_log_predictive.is_some() {
        let error = format!(
            "± {} nats a point",
            number(summary.heldout_standard_error, 4)
        );
        let score = number(summary.heldout_log_predictive, 4);
        facts.insert(1, Fact::new("held out", score, error));
    }
    facts.extend(summary.judgement.fact());
    let along = course.into_iter().map(|(chart, caption)| {
        let figure = Figure::new("").panel(chart);
        (figure, caption.to_owned())
    });
    Report {
        title: format!("{} {}s", described.table.1.len(), described.rows),
        subject: vec![
            ("model".to_owned(), summary.model.clone()),
            ("data".to_owned(), points.source.clone()),
        ],
        verdict: Verdict::new(tone, headline, &summary.judgement.status),
        facts,
        warnings: summary.judgement.warnings.clone(),
        sections: std::iter::once(found(described).into())
            .chain(
                summary
                    .compared()
                    .map(|table| compared(summary, table).into()),
            )
            .chain([Exhibit {
                heading: "Along the run".to_owned(),
                figures: along.collect(),
                ..Exhibit::default()
            }
            .into()])
            .collect(),
        settings: crate::job::request::listed(request),
        timing: vec![("fit".to_owned(), summary.seconds.fit)],
        footnote: "Bounds and scores are in nats.".to_owned(),
        version: summary.version.clone(),
    }
}

fn compared(summary: &PointsSummary, table: (Vec<String>, Vec<Vec<String>>)) -> Exhibit {
    let rows = summary.candidates.iter().flatten();
    let bounds = rows.filter_map(|row| Some((row.parts as f64, row.evidence?)));
    let chart = Chart::new("Bounds of all starts")
        .x(Axis::new(table.0[0].clone()))
        .y(Axis::new("nats"))
        .series(Series::scatter("", bounds).width(4.0));
    let part = &table.0[0];
    let caption = match table.0[2].contains('!') {
        true => format!(
            "The score is the bound plus log K! for K {part}, because all orders of the {part} are equivalent."
        ),
        false => format!("The bounds compare numbers of {part}."),
    };
    let several = table.1.len() > 1;
    Exhibit {
        heading: "Fits compared".to_owned(),
        note: String::new(),
        figures: several
            .then(|| (Figure::new("").panel(chart), caption))
            .into_iter()
            .collect(),
        table,
    }
}

fn found(described: &Described) -> Exhibit {
    let (heads, rows) = &described.table;
    let columns = heads.len().min(SHOWN.1);
    let cut = |row: &Vec<String>| row[..columns].to_vec();
    let mut heading = format!("{}s", described.rows);
    heading[..1].make_ascii_uppercase();
    let note = if rows.len() > SHOWN.0 || heads.len() > SHOWN.1 {
        "fit.json has the rows and columns that this page omits."
    } else {
        ""
    };
    let pictures = described.pictures.iter();
    Exhibit {
        heading,
        note: note.to_owned(),
        figures: pictures
            .map(|picture| (picture.figure.clone(), picture.caption.to_owned()))
            .collect(),
        table: (cut(heads), rows.iter().take(SHOWN.0).map(cut).collect()),
    }
}
