//! The posterior at new places.

use std::borrow::Cow;

use crate::linear::{Geometry, design, kernels, wide};
use crate::site::contrasts::{warm_with_contrasts, with_contrasts};
use crate::solve::signed;
use crate::{Covariance, Dense, Design, Error, LatentModel, Query, Warm};

/// The posterior mean and variance of new linear predictors (without offset), one each.
///
/// For new latent variables z* with `K* = Cov(z*, z)`: mean `E z* − K* Wᵀα` and variance
/// `Var z* − diag K* Wᵀ (Λ⁻¹ + WΣWᵀ)⁻¹ W K*ᵀ`; for rows w of another design `wᵀm` and `wᵀVw`. `solution` is
/// [`Fit::warm`](crate::Fit::warm) of a fit of `model`. The cost is one factorisation and, for a dense prior, N² operations a
/// new place; under a sparse precision one solve for a row whose latent variables are not neighbours, else none.
///
/// # Errors
/// Sizes that disagree, new latent variables under a sparse precision, or a prior that a fit would refuse too.
pub fn predict(
    model: &LatentModel,
    solution: &Warm,
    query: &Query,
) -> Result<Vec<(f64, f64)>, Error> {
    model.check()?;
    let n = model.predictors();
    // A solution of a bound that leaves the predictors of an observation uncoupled has one number a predictor.
    let (model, solution) = match solution.alpha.len() == n {
        true => (Cow::Borrowed(model), Cow::Borrowed(solution)),
        false => (with_contrasts(model), warm_with_contrasts(model, solution)),
    };
    let (model, solution) = (model.as_ref(), solution.as_ref());
    let n = model.design_rows();
    if [&solution.alpha, &solution.lambda, &solution.predictor]
        .iter()
        .any(|x| x.len() != n)
    {
        return Err(Error::Data(format!(
            "the solution does not belong to a model of {n} linear predictors"
        )));
    }
    let mut notes = Vec::new();
    let mut geometry = Geometry::new(model, signed(model), &mut notes)?;
    geometry.factor(&solution.lambda).ok_or_else(|| {
        Error::Prior(
            "the posterior precision of the stored solution is not positive definite".to_owned(),
        )
    })?;
    let (mean, variance) = match query {
        Query::Cross {
            covariance,
            variance,
            mean,
        } => {
            if covariance.rows != variance.len()
                || covariance.rows != mean.len()
                || covariance.cols != model.prior.len()
            {
                return Err(Error::Data(
                    "the cross-covariance does not fit the prior and the new places".to_owned(),
                ));
            }
            (
                cross_mean(model, solution, covariance, mean),
                cross_variance(model, &geometry, solution, covariance, variance)?,
            )
        }
        Query::Rows(rows) => {
            check_rows(rows, model.prior.len())?;
            let own: Vec<f64> = match &model.observations.offset {
                Some(offset) => (0..n).map(|i| solution.predictor[i] - offset[i]).collect(),
                None => solution.predictor.clone(),
            };
            let mean = geometry.latent_mean(model, &solution.alpha, &solution.lambda, &own);
            let variance = match &mut geometry {
                Geometry::Narrow(g) => g.variances_of(rows),
                Geometry::Sparse(g) => g.variances_of(rows),
                Geometry::Wide(_) => {
                    let (cross, prior) = rows_as_cross(model, rows);
                    cross_variance(model, &geometry, solution, &cross, &prior)?
                }
            };
            (design::times(rows, &mean), variance)
        }
    };
    // Rounding can leave a variance of a place that is known exactly a little below zero.
    Ok(mean
        .into_iter()
        .zip(variance.into_iter().map(|v| v.max(0.0)))
        .collect())
}

fn check_rows(rows: &Design, latents: usize) -> Result<(), Error> {
    let fits = match rows {
        Design::Identity => true,
        Design::Select(index) => index.iter().all(|l| *l < latents),
        Design::Dense(w) => w.cols == latents,
        Design::Sparse(w) => w.cols == latents,
    };
    if fits {
        return Ok(());
    }
    Err(Error::Data(format!(
        "the design of the new places does not fit {latents} latent variables"
    )))
}

fn cross_mean(model: &LatentModel, solution: &Warm, covariance: &Dense, mean: &[f64]) -> Vec<f64> {
    let pull = design::transposed_times_vector(&model.design, model.prior.len(), &solution.alpha);
    let mut out = mean.to_vec();
    for (l, pull) in pull.iter().enumerate() {
        for (o, k) in out.iter_mut().zip(covariance.col(l)) {
            *o -= k * pull;
        }
    }
    out
}

fn cross_variance(
    model: &LatentModel,
    geometry: &Geometry,
    solution: &Warm,
    covariance: &Dense,
    prior: &[f64],
) -> Result<Vec<f64>, Error> {
    match geometry {
        Geometry::Wide(g) => {
            let cross = design::transposed_columns(&model.design, covariance);
            Ok(g.reduced_variances(&cross, prior))
        }
        Geometry::Narrow(g) => {
            // Wᵀ(Λ⁻¹ + Σ̃)⁻¹W = G − G V G with the Gram matrix G.
            let latents = model.prior.len();
            let gram = design::gram(&model.design, latents, &solution.lambda);
            let mut t = Dense::zeros(latents, latents);
            let v = g.latent_covariance();
            kernels::product(t.view_mut(), false, v.view(), gram.view(), 1.0);
            let mut inner = gram.clone();
            kernels::product(inner.view_mut(), true, gram.view(), t.view(), -1.0);
            let mut right = Dense::zeros(covariance.rows, latents);
            kernels::product(right.view_mut(), false, covariance.view(), inner.view(), 1.0);
            let mut out = prior.to_vec();
            for l in 0..latents {
                for ((o, a), b) in out.iter_mut().zip(covariance.col(l)).zip(right.col(l)) {
                    *o -= a * b;
                }
            }
            Ok(out)
        }
        Geometry::Sparse(_) => Err(Error::Unsupported(
            "a prior given by its precision has no new latent variables; predict for combinations of those it has"
                .to_owned(),
        )),
    }
}

/// `W* Σ` and `diag W* Σ W*ᵀ` of a prior that is no precision.
fn rows_as_cross(model: &LatentModel, rows: &Design) -> (Dense, Vec<f64>) {
    let elsewhere = LatentModel {
        design: rows.clone(),
        ..model.clone()
    };
    let cross = wide::cross_covariance(&elsewhere);
    if *rows == Design::Identity
        && let Covariance::Dense(sigma) = &model.prior.covariance
    {
        return (sigma.clone(), wide::prior_variances(model));
    }
    let w = design::to_dense(rows, model.prior.len());
    let variance = (0..w.rows)
        .map(|i| (0..w.cols).map(|l| w.get(i, l) * cross.get(i, l)).sum())
        .collect();
    (cross, variance)
}
