//! Hidden Markov chains: rows in sequence, each made by a hidden state.

use jensen_conjugate::models::HiddenMarkov;
use serde::{Deserialize, Serialize};

use super::explained::{Explained, explain_by};
use super::mixture::{Fitted, gaussians};
use super::study::{PointStudy, cell};
use super::{Chain, Described, Emission, Parts, PointRequest, Points, Shape};
use crate::Error;
use crate::study::{Around, carry_out};

/// What folders of such fits would belong to; there is no command of that name yet.
const CHAINS: &str = "chains";

/// Chains of hidden states with Gaussian emissions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChainsRequest {
    /// Number of states.
    pub states: Option<u64>,
    /// Covariance matrices of the emissions.
    pub covariance: Option<Shape>,
    /// Dirichlet parameter of the first state and of every row of transitions.
    pub concentration: Option<f64>,
    /// What every model of points is told; chains are fitted whole, without minibatches and held-out rows.
    pub points: PointRequest,
}

impl ChainsRequest {
    fn states(&self) -> usize {
        self.states.unwrap_or(1) as usize
    }
}

/// The chains of these lengths over the rows to learn from.
fn model(
    request: &ChainsRequest,
    points: &Points,
    lengths: &[usize],
) -> Result<HiddenMarkov, Error> {
    let mut starts = vec![0];
    for length in lengths {
        starts.push(starts[starts.len() - 1] + length);
    }
    if starts[lengths.len()] != points.count() {
        return Err(Error::Input(format!(
            "the lengths of the sequences add up to {}, but there are {} rows",
            starts[lengths.len()],
            points.count()
        )));
    }
    let emissions = gaussians(request.covariance, points);
    let concentration = request.concentration.unwrap_or(1.0);
    HiddenMarkov::new(emissions, starts, request.states(), concentration).map_err(Error::Input)
}

/// Fits hidden Markov chains: the rows in their order, `lengths[i]` of them the sequence i.
///
/// # Errors
/// A setting that cannot be, lengths that do not add up, and what [`carry_out`] refuses.
pub fn fit_chains(
    request: &ChainsRequest,
    points: &Points,
    lengths: &[usize],
    around: Around<'_>,
) -> Result<Fitted, Error> {
    if request.points.batch.is_some() || request.points.heldout() > 0.0 {
        return Err(Error::setting(
            "chains are fitted whole: without minibatches and held-out rows",
        ));
    }
    let k = request.states();
    if k > points.count() {
        return Err(Error::Input(format!(
            "{k} states cannot be learned from {} rows: ask for fewer",
            points.count()
        )));
    }
    let model = model(request, points, lengths)?;
    let study = PointStudy {
        command: CHAINS,
        request,
        shared: &request.points,
        settings: request.points.settings()?,
        points,
        model: &model,
        score: &|_| None,
        describe: &|lambda| {
            let emissions: Vec<Emission> = (0..k)
                .map(|i| Emission {
                    mean: model.emissions().mean(model.state(lambda, i)),
                    covariance: model.emissions().covariance(model.state(lambda, i)),
                })
                .collect();
            let transitions = model.transitions(lambda);
            let heads = std::iter::once("state".to_owned()).chain(points.names.iter().cloned());
            let rows = emissions.iter().enumerate().map(|(i, emission)| {
                let cells = emission.mean.iter().map(|x| cell(*x));
                std::iter::once((i + 1).to_string()).chain(cells).collect()
            });
            Described {
                rows: "state",
                table: (heads.collect(), rows.collect()),
                pictures: Vec::new(),
                parts: Parts::Chain(Chain {
                    initial: model.initial(lambda),
                    transitions: transitions.chunks_exact(k).map(<[f64]>::to_vec).collect(),
                    emissions,
                }),
            }
        },
    };
    let done = carry_out(study, around)?;
    Ok((done.made.output, done.summary))
}

/// What the globals `lambda` of chains say of sequences: the marginals of the states, step by step.
///
/// # Errors
/// Lengths that do not add up, and globals of other chains.
pub fn explain_chains(
    request: &ChainsRequest,
    lambda: &[f64],
    points: &Points,
    lengths: &[usize],
) -> Result<Explained, Error> {
    let model = model(request, points, lengths)?;
    explain_by(&model, lambda, |scratch| &scratch.states)
}
