//! Joint draws of the linear predictors and observations for the rows of another table.

use std::fmt::Write;

use jensen_data::Table;
use jensen_latent::{Likelihood, Predictive, Response, draw};
use jensen_math::rng::{Purpose, Stream};
use jensen_math::special::{inv_phi, log_sum_exp_slice};

use super::predictions::{means, written};
use super::{Files, ObservedRows, StoredPosterior, TableModel};
use crate::Error;
use crate::job::{MEMORY_LIMIT, Need};

const POINTS: Purpose = Purpose::new("latent points of hyperparameters");
const NEW: Purpose = Purpose::new("latent new effects");
const RESPONSES: Purpose = Purpose::new("latent responses");

/// The number of bytes that one number needs for its text and its values in memory.
const CELL: usize = 20 + 2 * size_of::<f64>();

/// Joint draws for several rows of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The linear predictors. The index of the draw varies slowest and the index of the predictor within a row varies
    /// fastest. The predictors include offsets and the effects of rows and groups that were not part of the fit.
    pub predictors: Vec<f64>,
    /// The likelihood with its parameters for each draw.
    pub likelihoods: Vec<Likelihood>,
    /// The observations of the drawn rows.
    pub rows: ObservedRows,
}

/// Draws the hyperparameters and the linear predictors for the rows of a table jointly. Each draw depends only on the
/// seed and on the index of the draw.
///
/// # Errors
/// Returns the errors of [`draw`]. Also fails if the draws need more than 8 GiB of memory.
pub fn draws_at(
    model: &TableModel,
    stored: &StoredPosterior,
    table: &Table,
    rows: &[usize],
    files: &dyn Files,
    (draws, seed): (usize, u64),
) -> Result<Drawn, Error> {
    let seen = model.rows_of(table, rows)?;
    let times = model.likelihood().predictors();
    let predictors = rows.len() * times;
    let square = match model.process_size() {
        0 => 0,
        _ => 4 * predictors * predictors * size_of::<f64>(),
    };
    let need = Need {
        what: format!("{draws} joint draws at {} rows", rows.len()),
        bytes: (square + draws * rows.len() * (4 + times) * CELL) as u64,
        advice: "use fewer draws (--draws), or predict fewer rows at a time".to_owned(),
    };
    need.check(MEMORY_LIMIT)?;
    // The loop assigns each draw to one point of the posterior of the hyperparameters.
    let mut own: Vec<Vec<u64>> = vec![Vec::new(); stored.points.len()];
    for number in 0..draws as u64 {
        let mut left = Stream::new(seed, POINTS, number, 0).uniform();
        let from = stored.points.iter().position(|point| {
            left -= point.weight;
            left < 0.0
        });
        own[from.unwrap_or(0)].push(number);
    }
    let mut all = vec![0.0; draws * predictors];
    let mut likelihoods = vec![model.likelihood(); draws];
    for (point, numbers) in stored.points.iter().zip(&own) {
        if numbers.is_empty() {
            continue;
        }
        let (query, fresh) = model.at(&point.theta, table, rows, files)?;
        let joint = model.joint(&point.theta, table, rows, files)?;
        let fixed = model.model(&point.theta, point.likelihood)?;
        let found = draw(&fixed, &point.dual, &query, joint.as_ref(), numbers, seed)?;
        for (number, drawn) in numbers.iter().zip(found.chunks(predictors.max(1))) {
            likelihoods[*number as usize] = model.outside(point.likelihood);
            // Each draw has its own stream of random numbers. The stream first yields all predictors of the first
            // effect, then those of the second effect, and so on.
            let mut stream = Stream::new(seed, NEW, *number, 0);
            let normals: Vec<f64> = (0..fresh.variables.len() * times)
                .map(|_| inv_phi(stream.uniform()))
                .collect();
            let effects: Vec<Vec<f64>> = (0..times)
                .map(|k| {
                    let own = normals.iter().skip(k).step_by(times);
                    fresh.values(&own.copied().collect::<Vec<_>>())
                })
                .collect();
            let from = *number as usize * predictors;
            for (i, (eta, own)) in all[from..from + predictors]
                .iter_mut()
                .zip(drawn)
                .enumerate()
            {
                let new = fresh.rows[i / times].iter();
                let new: f64 = new
                    .map(|(variable, weight)| weight * effects[i % times][*variable])
                    .sum();
                *eta = model.measure().outside(own + new, 0.0).0 + seen.offset[i];
            }
        }
    }
    Ok(Drawn {
        predictors: all,
        likelihoods,
        rows: seen,
    })
}

/// Formats draws of linear predictors as CSV, with one line for each combination of a draw and a row. Each line also
/// contains the mean of the observation (or the probabilities of its categories) and a simulated observation, which is
/// empty if the standard deviation of its error is unknown. `rows` contains the zero-based indices of the rows in the
/// table.
pub fn drawn(model: &TableModel, draws: &Drawn, rows: &[usize], seed: u64) -> String {
    let (at, times) = (&draws.rows, model.likelihood().predictors());
    let mut text = "draw,row".to_owned();
    if times == 1 {
        text += ",eta";
    } else {
        (1..=times).for_each(|k| text += &format!(",eta_{k}"));
    }
    text += &means(model).unwrap_or_else(|| ",mean".to_owned());
    text += ",y\n";
    let each = draws.predictors.chunks((rows.len() * times).max(1));
    for (number, (own, likelihood)) in each.zip(&draws.likelihoods).enumerate() {
        let mut stream = Stream::new(seed, RESPONSES, number as u64, 0);
        for (i, (row, eta)) in rows.iter().zip(own.chunks(times)).enumerate() {
            let u = stream.uniform();
            let size = at.size[i];
            let (expected, y) = observed(*likelihood, eta, size, u);
            // Writing to a string never fails.
            let _ = write!(text, "{},{}", number + 1, row + 1);
            for x in eta.iter().chain(&expected) {
                let _ = write!(text, ",{x}");
            }
            text.push(',');
            text += &written(model, y);
            text.push('\n');
        }
    }
    text
}

/// Returns the mean of an observation (or the probabilities of its categories) and the quantile of the observation at
/// probability u. `eta` contains the linear predictors of the observation.
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
            let p = likelihood.mean(eta[0], size);
            (vec![p], f64::from(u < p))
        }
        response => {
            let y = Predictive::new(likelihood, eta[0], 0.0, size).quantile(u);
            let means = match response {
                Response::Level => likelihood.level_probabilities(eta[0]),
                _ => vec![likelihood.mean(eta[0], size)],
            };
            (means, y)
        }
    }
}
