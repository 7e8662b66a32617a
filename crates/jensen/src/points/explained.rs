//! Predictions of points, old or new, from global parameters.

use jensen_conjugate::model::ConjugateModel;
use rayon::prelude::*;

use crate::Error;

/// Points under global parameters, at temperature 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// q(z) of every point, with one row per point (or step of a chain): the responsibilities of a mixture's
    /// components, the probabilities that factors are active, or the marginals of a chain's states.
    pub assignments: Vec<f64>,
    /// A lower bound on the log predictive density of every point (or chain), in nats.
    pub bounds: Vec<f64>,
}

/// Returns the local steps of all points, for a model whose local step stores q(z).
pub(super) fn explain<M: ConjugateModel<Scratch = Vec<f64>>>(
    model: &M,
    lambda: &[f64],
) -> Result<Explained, Error> {
    explain_by(model, lambda, |scratch| scratch)
}

/// Like [`explain`], but with q(z) read from `assignments`.
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
