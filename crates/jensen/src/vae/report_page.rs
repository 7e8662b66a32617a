//! The report of an auto-encoder.

use jensen_report::figure::{Axis, Chart, Figure, Image, ImageGrid, Series};
use jensen_report::{Exhibit, Fact, Report, Section, Tone, Verdict};

use super::VaeSummary;

/// The quantities of a run that are plotted as functions of the number of processed records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VaeCurves {
    /// The mean ELBO of the minibatches, in nats per record.
    pub bound: Vec<(f64, f64)>,
    /// The ELBO of the validation records, in nats per record.
    pub validation: Vec<(f64, f64)>,
    /// The mean of `KL(q(z | x) ‖ p(z))` over minibatches, in nats.
    pub divergence: Vec<(f64, f64)>,
    /// The temperature of the likelihood.
    pub temperature: Vec<(f64, f64)>,
    /// The number of records that were processed per second.
    pub throughput: Vec<(f64, f64)>,
}

/// The images that the report shows if the records are images.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pictures {
    /// The mean images that the decoder returns for latent values drawn from the prior.
    pub samples: Option<Image>,
    /// Several records. The reconstruction of each record is below it.
    pub reconstructions: Option<Image>,
    /// The mean images that the decoder returns over a grid in the latent plane.
    pub manifold: Option<Image>,
}

fn chart(title: &str, y: &str, series: Vec<Series>) -> Figure {
    let several = series.len() > 1;
    let chart = Chart::new(title)
        .x(Axis::new("records seen").log())
        .y(Axis::new(y));
    let chart = series.into_iter().fold(chart, Chart::series);
    let chart = if several {
        chart
    } else {
        chart.without_legend()
    };
    Figure::new("").panel(chart)
}

fn picture(image: &Image) -> Figure {
    // The image fills the column as far as possible, but small images are not enlarged so much that they would blur.
    let width = (image.width() as f64 * 2.0).clamp(120.0, 620.0);
    let grid = ImageGrid::new("", 1).cell(width).image(image.clone());
    Figure::new("").panel(grid)
}

fn along(curves: &VaeCurves) -> Vec<(Figure, String)> {
    let line = |name: &str, points: &[(f64, f64)]| Series::line(name, points.iter().copied());
    let mut figures = Vec::new();
    if curves.bound.len() > 1 {
        let mut series = vec![line("training", &curves.bound)];
        if curves.validation.len() > 1 {
            series.push(line("validation", &curves.validation));
        }
        figures.push((
            chart("Lower bound", "nats per record", series),
            "Bound of minibatches during training, and of the validation records at the current weights; higher \
             is better."
                .to_owned(),
        ));
        figures.push((
            chart("Divergence", "nats per record", vec![line("", &curves.divergence)]),
            "KL divergence of the encoder's posteriors from the prior: the information of the latent values about a record.".to_owned(),
        ));
    }
    if curves.temperature.iter().any(|point| point.1 != 1.0) {
        figures.push((
            chart(
                "Temperature",
                "temperature",
                vec![line("", &curves.temperature)],
            ),
            "1 is the model itself; a larger value reduces the weight of the likelihood."
                .to_owned(),
        ));
    }
    if curves.throughput.len() > 1 {
        figures.push((
            chart(
                "Throughput",
                "records per second",
                vec![line("", &curves.throughput)],
            ),
            "Training and validation together.".to_owned(),
        ));
    }
    figures
}

fn shown(pictures: &Pictures) -> Vec<(Figure, String)> {
    let shown = [
        (
            &pictures.samples,
            "Means of records at latent values drawn from the prior.",
        ),
        (
            &pictures.reconstructions,
            "Records, each above the decoder's mean at the mean of the encoder's posterior.",
        ),
        (
            &pictures.manifold,
            "The decoder's means over the latent plane: a regular grid of the unit square through the inverse normal \
             distribution function.",
        ),
    ];
    shown
        .into_iter()
        .filter_map(|(image, caption)| Some((picture(image.as_ref()?), caption.to_owned())))
        .collect()
}

/// Returns the report of a fitted auto-encoder. `data` is the name of the data. The report lists `settings` without
/// changes.
pub fn report_page(
    summary: &VaeSummary,
    curves: &VaeCurves,
    pictures: &Pictures,
    data: &str,
    settings: Vec<(String, String)>,
) -> Report {
    let number = |x: Option<f64>, decimals: usize| match x {
        Some(x) => format!("{x:.decimals$}"),
        None => "–".to_owned(),
    };
    let error = |se: Option<f64>| match se {
        Some(se) => format!("± {se:.2} nats per record"),
        None => String::new(),
    };
    let sections = [
        ("Along the run", along(curves)),
        ("Pictures", shown(pictures)),
    ];
    let sections = sections.into_iter().filter(|part| !part.1.is_empty());
    let sections = sections.map(|(heading, figures)| {
        Section::from(Exhibit {
            heading: heading.to_owned(),
            figures,
            ..Exhibit::default()
        })
    });
    let judged = &summary.judgement;
    let (tone, headline) = match (judged.trusted, summary.bound) {
        (true, _) if judged.converged => (Tone::Good, "Trusted: early stopping ended the run"),
        (true, _) => (Tone::Good, "Trusted: all epochs completed"),
        (false, Some(_)) => (Tone::Fair, "Not to be trusted"),
        (false, None) => (Tone::Poor, "Not to be used"),
    };
    let architecture = &summary.architecture;
    Report {
        title: format!("Auto-encoder with {} latent values", architecture.latent),
        subject: vec![("data".to_owned(), data.to_owned())],
        verdict: Verdict::new(tone, headline, &judged.status),
        facts: vec![
            Fact::new("bound", number(summary.bound, 2), error(summary.bound_se)),
            Fact::new(
                "validation bound",
                number(summary.validation_bound, 2),
                error(summary.validation_bound_se),
            ),
            Fact::new(
                "active latent values",
                summary.active_units.to_string(),
                format!("of {}", architecture.latent),
            ),
            Fact::new("epochs", format!("{:.1}", summary.epochs), ""),
            Fact::new(
                "weights",
                summary.weights.to_string(),
                architecture.observation.name(),
            ),
            Fact::new(
                "speed",
                number(summary.samples_per_second, 0),
                "records per second",
            ),
        ]
        .into_iter()
        .chain(judged.fact())
        .collect(),
        warnings: judged.warnings.clone(),
        sections: sections.collect(),
        settings,
        timing: vec![
            ("open the data".to_owned(), summary.seconds.open),
            ("fit".to_owned(), summary.seconds.fit),
            ("evaluate".to_owned(), summary.seconds.evaluate),
        ],
        footnote: "Bounds and scores are in nats.".to_owned(),
        version: summary.version.clone(),
    }
}
