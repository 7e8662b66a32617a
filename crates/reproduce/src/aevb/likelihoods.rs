//! Figure 3 shows the marginal likelihood as a function of the number of samples. One panel uses few training images,
//! and the other panel uses many.

use jensen::math::simd::Simd;
use jensen::report::figure::{Axis, Chart, Figure, Series};
use jensen::vae::{Architecture, Likelihood, Records, marginal};
use jensen::vae::{Autoencoder, Tensor};

use super::images::Set;
use super::training::{BATCH, Job, Method};
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, What};

const LATENT: usize = 3;
const HIDDEN: usize = 100;

const MINIBATCHES: u64 = 50;

/// The number of samples, the marginal likelihood of the training images and its standard error, and the marginal
/// likelihood of the test images and its standard error.
type Score = [f64; 5];

/// Draws the panel of Figure 3 with 1 000 training images.
pub fn few_images(context: &mut Context<'_>) -> Result<(), Failure> {
    let methods = [Method::Aevb, Method::WakeSleep, Method::Mcem];
    let panel = panel(context, 1000, &methods)?;
    context.figure("figure3", &Figure::new("").panel(panel))
}

/// Draws the panel of Figure 3 with 50 000 training images. Like the paper's, it has no curve of Monte-Carlo EM, because
/// that method is not an online method: without an encoder, every image needs its own Markov chain, and one step of all
/// chains takes as long as an epoch.
pub fn many_images(context: &mut Context<'_>) -> Result<(), Failure> {
    let panel = panel(context, 50_000, &[Method::Aevb, Method::WakeSleep])?;
    context.figure("figure3-many", &Figure::new("").panel(panel))
}

fn panel(context: &mut Context<'_>, size: usize, methods: &[Method]) -> Result<Chart, Failure> {
    let marks: &[f64] = context.pick(&[2e4, 6e4], &[1e5, 3e5, 1e6, 3e6, 1e7]);
    let scored = context.pick(100, 1000);
    let mut chart = Chart::new(format!("{size} training images"))
        .x(Axis::new("samples seen").log())
        .y(Axis::new("marginal log likelihood, nats an image"))
        .sized(360.0, 320.0);
    for (number, &method) in methods.iter().enumerate() {
        let mut scores: Vec<Score> = Vec::new();
        for &mark in marks {
            let name = format!("figure3-{size}-{}-{mark:e}", method.name());
            let score: Score = context.keep(&name, |context| {
                context.say(format!(
                    "{size} images, {}: to {mark:e} samples",
                    method.name()
                ));
                score(context, size, method, mark, scored)
            })?;
            let what = What::new(
                format!(
                    "{size} training images, {}: marginal likelihood of test images after {mark:e} samples",
                    method.name()
                ),
                "nats an image",
            );
            context.row(what, |_| {
                Ok(Ours::value(score[3]).se(score[4]).note(format!(
                    "first {scored} images, 50 draws each; of training images {:.2} ± {:.2}; the paper prints no numbers",
                    score[1], score[2]
                )))
            })?;
            scores.push(score);
        }
        let line = |which: usize| -> Vec<(f64, f64)> {
            scores
                .iter()
                .map(|score| (score[0], score[which]))
                .collect()
        };
        let test = Series::line(format!("{} (test)", method.name()), line(3)).marked();
        let train = Series::line(format!("{} (train)", method.name()), line(1));
        chart = chart
            .series(test.colour(number))
            .series(train.colour(number).dashed());
    }
    Ok(chart)
}

fn score(
    context: &mut Context<'_>,
    size: usize,
    method: Method,
    samples: f64,
    scored: usize,
) -> Result<Score, Failure> {
    let images = Set::Digits.open(context)?;
    let views = images.views();
    let train = views.train(size);
    let (width, height) = Set::Digits.size();
    let architecture = Architecture::paper(width * height, LATENT, HIDDEN, Likelihood::Bernoulli);
    let job = Job {
        key: format!("marginal-{size}-{}", method.name()),
        method,
        architecture: architecture.clone(),
        train: &train,
        test: None,
        digest: format!("{}-{size}", images.digest()),
        initial_sd: Set::Digits.initial_sd(),
        step: 0.02,
        minibatches: MINIBATCHES,
        seed: 1,
    };
    let iterations = samples / (MINIBATCHES * BATCH as u64) as f64;
    let trail = job.train(context, iterations.round() as u64, true)?;
    let seen = trail.curve.last().map_or(samples, |point| point[0]);
    let mut values = [seen, 0.0, 0.0, 0.0, 0.0];
    for (position, records) in [(1, views.train(scored)), (3, views.test(scored))] {
        let (value, error) = estimate(&architecture, &trail.tensors, &records)?;
        values[position] = value;
        values[position + 1] = error;
    }
    Ok(values)
}

/// Estimates the marginal likelihood by the method of appendix D. Returns the mean over records and its standard error.
/// If the method has an encoder, the Markov chains start at the codes that the encoder returns.
fn estimate(
    architecture: &Architecture,
    tensors: &[Tensor],
    records: &dyn Records,
) -> Result<(f64, f64), Failure> {
    let (settings, simd) = (Autoencoder::paper_marginal(), Simd::detect());
    let failed = |error: String| Failure::Method(error);
    let estimated = if tensors.len() == architecture.specs().len() {
        Autoencoder::new(architecture.clone(), tensors.to_vec(), simd)
            .map_err(|error| failed(error.to_string()))?
            .marginal_likelihood(records, &settings, 1)
    } else {
        let views: Vec<&[f32]> = tensors.iter().map(|t| t.data.as_slice()).collect();
        let model = architecture.decoder();
        marginal::estimate(&model, &views, records, None, &settings, simd, 1)
    };
    let estimated = estimated.map_err(|error| failed(error.to_string()))?;
    Ok((estimated.mean, estimated.standard_error))
}
