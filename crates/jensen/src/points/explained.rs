//! Predictions for points from the global parameters of a fitted model.

use jensen_conjugate::model::ConjugateModel;
use rayon::prelude::*;

use crate::Error;

/// The predictions for points, given the global parameters and at temperature 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// The distribution q(z) of every point, with one row per point or per step of a sequence. Depending on the model,
    /// a row contains the responsibilities of the mixture components, the probabilities that factors are active, or the
    /// marginal probabilities of the states.
    pub assignments: Vec<f64>,
    /// A lower bound on the log predictive density of each point or sequence, in nats.
    pub bounds: Vec<f64>,
}

/// Runs the local steps of all points for a model whose scratch memory contains q(z) after each local step.
pub(super) fn explain<M: ConjugateModel<Scratch = Vec<f64>>>(
    model: &M,
    lambda: &[f64],
) -> Result<Explained, Error> {
    explain_by(model, lambda, |scratch| scratch)
}

/// Runs the local steps of all points. The function `assignments` reads q(z) from the scratch memory of the model.
pub(super) fn explain_by<M: ConjugateModel>(
    model: &M,
    lambda: &[f64],
    assignments: impl Fn(&M::Scratch) -> &[f64] + Sync,
) -> Result<Explained, Error> {
    let (found, expected) = (lambda.len(), model.blocks().prior().len());
    if found != expected {
        return Err(Error::Input(format!(
            "the global parameters belong to another model: {found} numbers instead of {expected}"
        )));
    }
    let expected = model.blocks().expectations(lambda);
    let points: Vec<(Vec<f64>, f64)> = (0..model.points())
        .into_par_iter()
        .map_init(M::Scratch::default, |scratch, point| {
            let mut memory = vec![0.5; model.memory()];
            let local = model.local(&expected, point, 1.0, &mut memory, scratch);
            (assignments(scratch).to_vec(), local.energy + local.entropy)
        })
        .collect();
    let (assignments, bounds): (Vec<_>, Vec<_>) = points.into_iter().unzip();
    Ok(Explained {
        assignments: assignments.concat(),
        bounds,
    })
}
