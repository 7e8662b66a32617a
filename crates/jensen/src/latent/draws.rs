//! Joint draws at the rows of another table, as a table.

use std::fmt::Write;

use jensen_latent::{Likelihood, Predictive, Response, draw};
use jensen_math::rng::{Purpose, Stream};
use jensen_math::special::{inv_phi, log_sum_exp_slice};

use super::{Dense, Prediction, Stored, TableModel};
use crate::Error;
use crate::study::{MEMORY_LIMIT, Need};

const NEW: Purpose = Purpose::new("latent new effects");
const RESPONSES: Purpose = Purpose::new("latent responses");

/// Bytes of a number as text, and of it as it is drawn.
const CELL: usize = 20 + 2 * size_of::<f64>();

/// Joint draws of the linear predictors of the rows `at`, offsets and effects of rows and groups unknown so far included: draw
/// after draw, row after row, predictor after predictor. `joint` is [`TableModel::joint`] of the rows. A draw is a function of
/// the seed and its number.
///
/// # Errors
/// What [`draw`] refuses, and draws that would take more memory than 8 GiB.
pub fn draws_at(
    model: &TableModel,
    stored: &Stored,
    at: &Prediction,
    joint: Option<&Dense>,
    draws: usize,
    seed: u64,
) -> Result<Vec<f64>, Error> {
    let (rows, times) = (at.response.len(), stored.likelihood.predictors());
    let predictors = rows * times;
    let square = joint.map_or(0, |_| 4 * predictors * predictors * size_of::<f64>());
    let need = Need {
        what: format!("{draws} joint draws at {rows} rows"),
        bytes: (square + draws * rows * (4 + times) * CELL) as u64,
        advice: "ask for fewer draws (--draws), or for fewer rows at a time".to_owned(),
    };
    need.check(MEMORY_LIMIT)?;
    let fixed = model.model(&stored.theta, stored.likelihood)?;
    let mut all = draw(&fixed, &stored.dual, &at.query, joint, draws, seed)?;
    for (number, own) in all.chunks_mut(predictors.max(1)).enumerate() {
        // One stream a draw: the effects in their order, predictor by predictor.
        let mut stream = Stream::new(seed, NEW, number as u64, 0);
        let effects: Vec<f64> = (at.fresh.variance.iter())
            .flat_map(|variance| std::iter::repeat_n(variance.sqrt(), times))
            .map(|sd| sd * inv_phi(stream.uniform()))
            .collect();
        for (row, eta) in own.chunks_mut(times).enumerate() {
            for (k, eta) in eta.iter_mut().enumerate() {
                let new = at.fresh.rows[row].iter();
                *eta += at.offset[row * times + k]
                    + new.map(|effect| effects[effect * times + k]).sum::<f64>();
            }
        }
    }
    Ok(all)
}

/// Draws of linear predictors as CSV, a line for each row of each draw: with the mean of the observation (the probabilities of
/// the categories) and an observation drawn from it. `rows` are the rows' numbers in the table, from 0.
pub fn drawn(
    model: &TableModel,
    likelihood: Likelihood,
    at: &Prediction,
    (draws, rows): (&[f64], &[usize]),
    seed: u64,
) -> String {
    let times = likelihood.predictors();
    let mut text = "draw,row".to_owned();
    if times == 1 {
        text += ",eta,mean,y\n";
    } else {
        for k in 1..=times {
            text += &format!(",eta_{k}");
        }
        for level in model.levels().unwrap_or(&[]) {
            text += &format!(",\"p[{}]\"", level.replace('"', "\"\""));
        }
        text += ",y\n";
    }
    for (number, own) in draws.chunks((rows.len() * times).max(1)).enumerate() {
        let mut stream = Stream::new(seed, RESPONSES, number as u64, 0);
        for (i, (row, eta)) in rows.iter().zip(own.chunks(times)).enumerate() {
            let u = stream.uniform();
            let size = likelihood.size(at.exposure[i], at.trials[i]);
            let (means, y) = observed(likelihood, eta, size, u);
            // Writing to a string cannot fail.
            let _ = write!(text, "{},{}", number + 1, row + 1);
            for x in eta.iter().chain(&means).chain([&y]) {
                let _ = write!(text, ",{x}");
            }
            text.push('\n');
        }
    }
    text
}

/// The mean of an observation at its linear predictors (the probabilities of categories), and its quantile at u.
fn observed(likelihood: Likelihood, eta: &[f64], size: f64, u: f64) -> (Vec<f64>, f64) {
    match likelihood.response() {
        Response::Category => {
            let all: Vec<f64> = eta.iter().copied().chain([0.0]).collect();
            let total = log_sum_exp_slice(&all);
            let p: Vec<f64> = all.iter().map(|x| (x - total).exp()).collect();
            let mut left = u;
            let at = p.iter().position(|p| {
                left -= p;
                left < 0.0
            });
            let y = at.unwrap_or(p.len() - 1) as f64;
            (p, y)
        }
        Response::Binary => {
            let p = likelihood.mean(eta[0]);
            (vec![p], f64::from(u < p))
        }
        _ => {
            let y = Predictive::new(likelihood, eta[0], 0.0, size).quantile(u);
            (vec![size * likelihood.mean(eta[0])], y)
        }
    }
}
