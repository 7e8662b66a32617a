//! The report of a topic model.

use jensen_report::figure::{Axis, Chart, Figure, Series};
use jensen_report::{Exhibit, Fact, Report, Section, Tone, TopicMap, Verdict};

use super::{TopicsCandidate, TopicsSummary};

const ROWS: usize = 200;

/// The quantities of a run that are plotted as functions of the number of passes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// Pairs of the number of passes and the temperature.
    pub temperature: Vec<(f64, f64)>,
    /// Pairs of the number of passes and the held-out log predictive probability, in nats per word.
    pub heldout: Vec<(f64, f64)>,
    /// Pairs of the number of passes and the ELBO, in nats per token.
    pub bound: Vec<(f64, f64)>,
}

fn chart(title: &str, y: &str, points: &[(f64, f64)], marked: bool) -> Figure {
    let series = Series::line(y, points.iter().copied());
    let series = if marked { series.marked() } else { series };
    let chart = Chart::new(title)
        .x(Axis::new("passes"))
        .y(Axis::new(y))
        .series(series)
        .without_legend();
    Figure::new("").panel(chart)
}

fn figures(curves: &Curves) -> Vec<(Figure, String)> {
    let mut figures = Vec::new();
    if curves.heldout.len() > 1 {
        figures.push((
            chart("Held-out score", "log predictive, nats per word", &curves.heldout, true),
            "Mean log predictive probability of a held-out word by document completion; higher is better.".to_owned(),
        ));
    }
    let tempered = curves.temperature.iter().any(|point| point.1 != 1.0);
    if tempered && curves.temperature.len() > 1 {
        figures.push((
            chart("Temperature", "temperature", &curves.temperature, false),
            "1 is the model itself; a larger value reduces the weight of the likelihood."
                .to_owned(),
        ));
    }
    if curves.bound.len() > 1 {
        figures.push((
            chart("Bound", "nats per token", &curves.bound, false),
            "The evidence lower bound divided by the number of tokens, as estimated from minibatches.".to_owned(),
        ));
    }
    figures
}

/// Returns the section with the scores of all numbers of topics, or `None` if there was only one number.
fn compared(summary: &TopicsSummary) -> Option<Section> {
    let exhibit = Exhibit {
        heading: "Numbers of topics compared".to_owned(),
        note: "Mean log predictive probability of a held-out word, and its difference from that of the number kept. \
               A larger number is kept only if it is better by more than one standard error."
            .to_owned(),
        table: TopicsCandidate::table(&summary.candidates),
        ..Exhibit::default()
    };
    (!summary.candidates.is_empty()).then(|| exhibit.into())
}

/// Returns the report of a fitted topic model. `documents` contains example documents of each topic, and `corpus` is
/// the name of the corpus. The report lists `settings` without changes.
pub fn report_page(
    summary: &TopicsSummary,
    curves: &Curves,
    map: Option<TopicMap>,
    documents: Option<Exhibit>,
    corpus: &str,
    settings: Vec<(String, String)>,
) -> Report {
    let number =
        |x: Option<f64>, decimals: usize| x.map_or("–".to_owned(), |x| format!("{x:.decimals$}"));
    let figures = figures(curves);
    let mut sections: Vec<Section> = map.map(Section::Topics).into_iter().collect();
    let rows = summary.topic_rows.iter().take(ROWS).map(|row| {
        let words: Vec<&str> = row.words.iter().map(|word| word.0.as_str()).collect();
        vec![
            row.topic.to_string(),
            format!("{:.2} %", 100.0 * row.proportion),
            number(row.coherence.npmi, 3),
            number(row.coherence.umass, 2),
            words.join(" "),
        ]
    });
    let more = match summary.topic_rows.len().checked_sub(ROWS) {
        Some(more @ 1..) => format!(" {more} further topics are in fit.json."),
        _ => String::new(),
    };
    sections.push(Exhibit {
        heading: "Topics".to_owned(),
        note: format!(
            "The largest topics first, with their shares of the tokens and the coherence of their top words \
             over the training documents: NPMI from -1 to 1, UMass at most about 0, both means over pairs; \
             higher is better.{more}"
        ),
        table: (
            ["topic", "share", "NPMI", "UMass", "most probable words"].map(str::to_owned).to_vec(),
            rows.collect(),
        ),
        ..Exhibit::default()
    }.into());
    sections.extend(documents.map(Section::from));
    sections.extend(compared(summary));
    if !figures.is_empty() {
        sections.push(
            Exhibit {
                heading: "Along the run".to_owned(),
                figures,
                ..Exhibit::default()
            }
            .into(),
        );
    }
    let error = summary
        .heldout_log_predictive_se
        .map_or("nats per word".to_owned(), |se| {
            format!("± {se:.4} nats per word")
        });
    let (tone, headline) = match (summary.judgement.trusted, summary.finished) {
        (true, _) => (Tone::Good, "Trusted: all passes completed"),
        (false, true) => (Tone::Fair, "Not to be trusted"),
        (false, false) => (Tone::Fair, "Stopped before the last pass"),
    };
    Report {
        title: format!("{} topics", summary.topics),
        subject: vec![("corpus".to_owned(), corpus.to_owned())],
        verdict: Verdict::new(tone, headline, &summary.judgement.status),
        facts: vec![
            Fact::new(
                "held-out log predictive",
                number(summary.heldout_log_predictive, 4),
                &error,
            ),
            Fact::new("perplexity", number(summary.heldout_perplexity, 0), ""),
            Fact::new("coherence", number(summary.coherence.npmi, 3), "NPMI"),
            Fact::new(
                "topics in use",
                format!("{:.0}", summary.topics_in_use),
                format!(
                    "of {}, exp of the entropy of their shares; {} have less than a tenth of an even share",
                    summary.topics, summary.dead_topics
                ),
            ),
            Fact::new("documents", summary.documents.to_string(), ""),
            Fact::new("words", summary.terms.to_string(), "in the vocabulary"),
            Fact::new(
                "speed",
                number(summary.docs_per_second, 0),
                "documents per second",
            ),
        ]
        .into_iter()
        .chain(summary.judgement.fact())
        .collect(),
        warnings: summary.judgement.warnings.clone(),
        sections,
        settings,
        timing: vec![
            ("open the corpus".to_owned(), summary.seconds.open),
            ("fit".to_owned(), summary.seconds.fit),
            ("evaluate".to_owned(), summary.seconds.evaluate),
        ],
        footnote: "Bounds and scores are in nats.".to_owned(),
        version: summary.version.clone(),
    }
}
