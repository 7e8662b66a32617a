//! The normaliser log C(T) for the abstracts. The normaliser is computed by a lower bound and by the random draws of
//! the paper. On a smaller corpus, the bound is compared with annealed importance sampling.

use jensen::conjugate::documents::Documents;
use jensen::conjugate::lda::partition::{
    Origin, Sizes, log_partition, log_partition_annealed, log_partition_by_draws,
};
use jensen::data::corpus::Split;
use jensen::data::corpus::sources::SourceSettings;
use jensen::topics::CorpusDocuments;

use super::policies::DRAWS;
use super::topics::{ARXIV, TOPICS, corpus};
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, What};

const COMPARED: [f64; 4] = [1.1, 1.5, 2.0, 5.0];

/// Computes log C(T) for the abstracts in two ways: by the bound that Jensen uses for variational tempering, and by a
/// hundred random draws as in the paper. By Jensen's inequality, both estimates are lower bounds. On a smaller corpus,
/// the function also compares the bound with annealed importance sampling.
pub fn normaliser(context: &mut Context<'_>) -> Result<(), Failure> {
    let path = context.data("arxiv/abstracts-100k.jsonl.xz")?;
    let corpus = corpus(context, &ARXIV, &[path], &SourceSettings::default())?;
    let documents = CorpusDocuments::new(&corpus, Split::Train);
    let tokens = documents.tokens();
    let sizes = Sizes {
        topics: TOPICS,
        terms: documents.terms(),
        alpha: 1.0 / TOPICS as f64,
        eta: 1.0 / TOPICS as f64,
        documents: documents.len() as f64,
        tokens: tokens / documents.len() as f64,
    };
    let inverse = COMPARED.map(|t| 1.0 / t);
    let draws = context.pick(DRAWS / 10, DRAWS);
    let (series, drawn) = context.keep("normaliser", |_| {
        let both = [
            log_partition(&sizes, &inverse),
            log_partition_by_draws(&sizes, &inverse, draws, 0),
        ];
        let [series, drawn] = both.map(|found| (found.log_c, found.lower));
        Ok((series, drawn))
    })?;
    let found = [
        ("by its bound", &series.0),
        ("by draws", &drawn.0),
        ("bound with averages inside the powers", &series.1),
        ("bound with the logarithm inside the averages", &drawn.1),
    ];
    for (m, temperature) in COMPARED.iter().enumerate() {
        for (how, values) in &found {
            let what = format!("arXiv abstracts: log C at T = {temperature}, {how}");
            context.row(What::new(what, "nats/token"), |_| {
                let ours = Ours::value(values[m] / tokens);
                Ok(if *how == "by draws" {
                    ours.note(format!(
                        "{draws} draws of topics, and of proportions for each"
                    ))
                } else {
                    ours
                })
            })?;
        }
    }
    against_annealing(context)
}

/// A corpus of 2000 tokens, which is small enough for annealed importance sampling.
const MIDDLE: Sizes = Sizes {
    topics: 20,
    terms: 200,
    alpha: 0.05,
    eta: 0.05,
    documents: 100.0,
    tokens: 20.0,
};

/// Compares the bound with annealed importance sampling in both directions.
fn against_annealing(context: &mut Context<'_>) -> Result<(), Failure> {
    let (tokens, steps) = (MIDDLE.documents * MIDDLE.tokens, context.pick(200, 2_000));
    let name = "100 documents of 20 tokens, 20 topics of 200 terms";
    for temperature in COMPARED {
        let s = 1.0 / temperature;
        let bound = log_partition(&MIDDLE, &[s]).log_c[0];
        let what = format!("{name}: log C at T = {temperature}, by its bound");
        context.row(What::new(what, "nats/token"), |_| {
            Ok(Ours::value(bound / tokens))
        })?;
        for (from, origin) in [("T = 1", Origin::Model), ("uniform data", Origin::Uniform)] {
            let what = format!("{name}: log C at T = {temperature}, annealed from {from}");
            context.row(What::new(what, "nats/token"), |_| {
                let found = log_partition_annealed(&MIDDLE, s, origin, (PARTICLES, steps), 1);
                Ok(Ours::value(found.log_c / tokens)
                    .se(found.standard_error / tokens)
                    .note(format!("{PARTICLES} particles of {steps} steps")))
            })?;
        }
    }
    Ok(())
}

const PARTICLES: usize = 40;
