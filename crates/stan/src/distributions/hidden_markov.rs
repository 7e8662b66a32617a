//! Functions of hidden Markov models.

use jensen_math::special::log_sum_exp_slice;

use super::simplexes::check_simplex;
use crate::functions::random::Draws;
use crate::functions::{Builtin, NamedBuiltin};
use crate::value::error::{FnError, FnResult};
use crate::value::{Mat, Value};

use Builtin::{Density, Pure, Random};

/// The names and implementations of the functions that this file defines.
pub const TABLE: &[NamedBuiltin] = &[
    (
        "hmm_marginal",
        Density(|k, a| {
            let (_, log_likelihood) = forward(a)?;
            Ok(k.term(1 | 2 | 4, log_likelihood))
        }),
    ),
    ("hmm_hidden_state_prob", Pure(hidden_states)),
    ("hmm_latent_rng", Random(latent_states)),
];

/// Returns the filtered log probability of each state at each time, and the log likelihood. The probabilities are
/// normalised at each time.
fn forward(a: &[&Value]) -> FnResult<(Vec<Vec<f64>>, f64)> {
    const NAME: &str = "hmm_marginal";
    let (log_omega, gamma, rho) = (a[0].matrix()?, a[1].matrix()?, a[2].slice()?);
    let states = rho.len();
    if log_omega.rows() != states || gamma.rows() != states || gamma.cols() != states {
        return Err(FnError::invalid(format!(
            "{NAME}: {} likelihoods, a {} × {} transition matrix and {states} initial states",
            log_omega.rows(),
            gamma.rows(),
            gamma.cols()
        )));
    }
    check_simplex(NAME, "the initial distribution", rho)?;
    for i in 0..states {
        check_simplex(NAME, "a row of the transition matrix", &gamma.row(i))?;
    }
    let mut filtered = Vec::with_capacity(log_omega.cols());
    let mut total = 0.0;
    for t in 0..log_omega.cols() {
        let mut log_p: Vec<f64> = (0..states)
            .map(|j| {
                let prior = match filtered.last() {
                    None => rho[j].ln(),
                    Some(last) => {
                        let last: &Vec<f64> = last;
                        let terms: Vec<f64> =
                            (0..states).map(|i| last[i] + gamma[(i, j)].ln()).collect();
                        log_sum_exp_slice(&terms)
                    }
                };
                prior + log_omega[(j, t)]
            })
            .collect();
        let norm = log_sum_exp_slice(&log_p);
        total += norm;
        log_p.iter_mut().for_each(|x| *x -= norm);
        filtered.push(log_p);
    }
    Ok((filtered, total))
}

/// P(state | all observations), states × times
fn hidden_states(a: &[&Value]) -> FnResult<Value> {
    let (filtered, _) = forward(a)?;
    let gamma = a[1].matrix()?;
    let (states, times) = (a[2].len(), filtered.len());
    let mut out = Mat::filled(states, times, 0.0);
    let mut smoothed: Vec<f64> = Vec::new();
    for t in (0..times).rev() {
        let filtered_t: Vec<f64> = filtered[t].iter().map(|x| x.exp()).collect();
        smoothed = if t + 1 == times {
            filtered_t
        } else {
            let predicted: Vec<f64> = (0..states)
                .map(|j| (0..states).map(|i| filtered_t[i] * gamma[(i, j)]).sum())
                .collect();
            (0..states)
                .map(|i| {
                    let back: f64 = (0..states)
                        .filter(|j| predicted[*j] > 0.0)
                        .map(|j| gamma[(i, j)] * smoothed[j] / predicted[j])
                        .sum();
                    filtered_t[i] * back
                })
                .collect()
        };
        for (i, p) in smoothed.iter().enumerate() {
            out[(i, t)] = *p;
        }
    }
    Ok(Value::Matrix(out))
}

fn latent_states(rng: &mut Draws, a: &[&Value]) -> FnResult<Value> {
    let (filtered, _) = forward(a)?;
    let gamma = a[1].matrix()?;
    let mut out = vec![0; filtered.len()];
    let mut next: Option<usize> = None;
    for t in (0..filtered.len()).rev() {
        let mut p: Vec<f64> = filtered[t].iter().map(|x| x.exp()).collect();
        if let Some(next) = next {
            p.iter_mut()
                .enumerate()
                .for_each(|(i, p)| *p *= gamma[(i, next)]);
            let total: f64 = p.iter().sum();
            p.iter_mut().for_each(|p| *p /= total);
        }
        let state = rng.categorical(&p);
        out[t] = state as i32 + 1;
        next = Some(state);
    }
    Ok(Value::Ints(out))
}
