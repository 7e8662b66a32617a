//! The posterior at new locations.

use std::borrow::Cow;

use jensen_math::rng::{Purpose, fill_normals};
use jensen_math::simd::Simd;
use rayon::prelude::*;

use crate::linear::{Geometry, design, kernels, narrow, wide};
use crate::site::contrasts::{warm_with_contrasts, with_contrasts};
use crate::solve::{signed, with_residuals};
use crate::{Covariance, Dense, Design, Error, LatentModel, Query, Warm};

/// Computes the posterior mean and variance of each new linear predictor, without its offset.
///
/// For new latent variables z* with `K* = Cov(z*, z)`, the mean is `E z* − K* Wᵀα` and the variance is `Var z* − diag
/// K* Wᵀ (Λ⁻¹ + WΣWᵀ)⁻¹ W K*ᵀ`. For the rows w of another design, the mean is `wᵀm` and the variance `wᵀVw`. `solution`
/// is the [`Fit::warm`](crate::Fit::warm) of a fit of `model`. Under a dense prior, the cost is one factorisation and
/// N² operations per new location. Under a sparse precision, it is one factorisation, and one solve for each row that
/// combines latent variables which are not neighbours.
///
/// # Errors
/// Fails if sizes do not match, if there are new latent variables under a sparse precision, or if a fit would reject
/// the prior.
pub fn predict(
    model: &LatentModel,
    solution: &Warm,
    query: &Query,
) -> Result<Vec<(f64, f64)>, Error> {
    if let Query::Extended { rows, .. } = query {
        let longer = extended(model, query);
        return predict(&longer, solution, &Query::Rows(rows.clone()));
    }
    let mut known = Known::new(model, solution)?;
    let mean = known.mean(query)?;
    let (model, geometry) = (known.model.as_ref(), &mut known.geometry);
    let variance = match query {
        Query::Cross {
            covariance,
            variance,
            ..
        } => cross_variance(model, geometry, &known.solution, covariance, variance)?,
        Query::Rows(rows) => match geometry {
            Geometry::Narrow(g) => g.variances_of(rows),
            Geometry::Sparse(g) => g.variances_of(rows),
            Geometry::Chain(g) => g.variances_of(rows),
            Geometry::Wide(g) => {
                let (cross, prior) = rows_as_cross(model, rows);
                let cross = design::transposed_columns(&model.design, &cross);
                g.reduced_variances(&cross, &prior)
            }
        },
        Query::Extended { .. } => unreachable!("replaced by rows of the longer chain"),
    };
    let variance = match query {
        Query::Rows(rows) => with_residuals(rows, variance),
        Query::Cross { .. } | Query::Extended { .. } => variance,
    };
    // Rounding can make the variance slightly negative at a location that is known exactly.
    Ok(mean
        .into_iter()
        .zip(variance.into_iter().map(|v| v.max(0.0)))
        .collect())
}

/// Draws new linear predictors, without offsets, jointly from the posterior. The result contains one draw after
/// another, and each draw has one number per location.
///
/// New latent variables need `joint`, the prior covariance among them. Rows with residuals need `joint`, the covariance among
/// the residuals. `numbers` lists the draws to compute. Each draw
/// depends only on the seed and on its own number. The cost is that of [`predict`] plus the cost of the draws. Under a
/// dense prior, the draws need one factorisation of a K × K matrix for K new latent variables or locations, and K²
/// operations for each draw. Under a sparse precision, a draw takes half as long as a solve.
///
/// # Errors
/// Fails for the reasons that [`predict`] does, and if `joint` is missing or has the wrong size.
pub fn draw(
    model: &LatentModel,
    solution: &Warm,
    query: &Query,
    joint: Option<&Dense>,
    numbers: &[u64],
    seed: u64,
) -> Result<Vec<f64>, Error> {
    if let Query::Extended { rows, .. } = query {
        let longer = extended(model, query);
        let rows = Query::Rows(rows.clone());
        return draw(&longer, solution, &rows, joint, numbers, seed);
    }
    let mut known = Known::new(model, solution)?;
    let (model, latents) = (known.model.clone(), known.model.prior.len());
    let root = match (&known.geometry, query) {
        (Geometry::Narrow(g), Query::Rows(rows)) => Some((rows.clone(), g.half())),
        (Geometry::Sparse(_) | Geometry::Chain(_), Query::Rows(_)) => None,
        (_, Query::Rows(rows)) => {
            let (cross, _) = rows_as_cross(&model, rows);
            let w = design::to_dense(rows, latents);
            let mut prior = Dense::zeros(w.rows, w.rows);
            kernels::product(
                prior.view_mut(),
                false,
                cross.view(),
                w.view().transpose(),
                1.0,
            );
            Some((Design::Identity, known.root(&cross, &prior)?))
        }
        (_, Query::Cross { covariance, .. }) => {
            let prior = joint.filter(|k| (k.rows, k.cols) == (covariance.rows, covariance.rows));
            let prior = prior.ok_or_else(|| {
                Error::Data("joint draws need the new locations' prior covariance".to_owned())
            })?;
            Some((Design::Identity, known.root(covariance, prior)?))
        }
        (_, Query::Extended { .. }) => unreachable!("replaced by rows of the longer chain"),
    };
    let (mean, rows) = match (query, &root) {
        (Query::Rows(rows), None) => (known.latent_mean(), rows.clone()),
        (_, Some((rows, _))) => (known.mean(query)?, rows.clone()),
        (Query::Cross { .. } | Query::Extended { .. }, None) => {
            unreachable!("new latent variables have a root")
        }
    };
    let residual = match rows.residuals() {
        None => Dense::zeros(mean.len(), 0),
        Some(residuals) => {
            let joint = joint.filter(|k| (k.rows, k.cols) == (residuals.len(), residuals.len()));
            let joint = joint.ok_or_else(|| {
                Error::Data("joint draws need the covariance of the rows' residuals".to_owned())
            })?;
            narrow::root_of(joint, &mut Vec::new())?
        }
    };
    let known = &known;
    let one = |draw: &u64| -> Vec<f64> {
        let inner = root.as_ref().map_or(latents, |(_, root)| root.cols);
        let width = inner + residual.cols;
        let mut z = vec![0.0; width];
        fill_normals(Simd::detect(), seed, DRAWS, *draw, 0, 1, width, &mut z);
        match (&root, &known.geometry) {
            (Some((_, root)), _) => {
                let mut out = times(&residual, &z[inner..]);
                let moved = design::times(&rows, &times(root, &z[..inner]));
                let each = out.iter_mut().zip(&mean).zip(&moved);
                each.for_each(|((x, m), moved)| *x += m + moved);
                out
            }
            (None, Geometry::Sparse(_) | Geometry::Chain(_)) => {
                let moved = match &known.geometry {
                    Geometry::Sparse(g) => g.half_solve(&z),
                    Geometry::Chain(g) => g.half_solve(&z),
                    _ => unreachable!("matched above"),
                };
                let latent: Vec<f64> = mean.iter().zip(&moved).map(|(m, x)| m + x).collect();
                design::times(&rows, &latent)
            }
            (None, _) => unreachable!("only a sparse precision has no root"),
        }
    };
    let each: Vec<Vec<f64>> = numbers.par_iter().map(one).collect();
    Ok(each.concat())
}

/// Returns the model with the longer chain of a query. The solution stays the same, because it refers to the linear
/// predictors of the fit.
fn extended(model: &LatentModel, query: &Query) -> LatentModel {
    let mut longer = model.clone();
    if let Query::Extended { prior, design, .. } = query {
        longer.prior = (**prior).clone();
        longer.design = design.clone();
    }
    longer
}

const DRAWS: Purpose = Purpose::new("latent joint draws");

pub(crate) struct Known<'a> {
    model: Cow<'a, LatentModel>,
    solution: Cow<'a, Warm>,
    pub(crate) geometry: Geometry,
}

impl<'a> Known<'a> {
    pub(crate) fn new(model: &'a LatentModel, solution: &'a Warm) -> Result<Self, Error> {
        model.check()?;
        let n = model.predictors();
        // If the bound does not couple the predictors of an observation, the solution has one number per predictor.
        let (model, solution) = match solution.alpha.len() == n {
            true => (Cow::Borrowed(model), Cow::Borrowed(solution)),
            false => (with_contrasts(model), warm_with_contrasts(model, solution)),
        };
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
        let mut geometry = Geometry::new(&model, signed(&model), &mut notes)?;
        geometry.factor(&solution.lambda).ok_or_else(|| {
            Error::Prior(
                "the posterior precision of the stored solution is not positive definite"
                    .to_owned(),
            )
        })?;
        Ok(Self {
            model,
            solution,
            geometry,
        })
    }

    fn latent_mean(&mut self) -> Vec<f64> {
        let (model, solution) = (self.model.as_ref(), self.solution.as_ref());
        let own: Vec<f64> = match &model.observations.offset {
            Some(offset) => (solution.predictor.iter().zip(offset))
                .map(|(eta, offset)| eta - offset)
                .collect(),
            None => solution.predictor.clone(),
        };
        self.geometry
            .latent_mean(model, &solution.alpha, &solution.lambda, &own)
    }

    fn mean(&mut self, query: &Query) -> Result<Vec<f64>, Error> {
        let latents = self.model.prior.len();
        match query {
            Query::Cross {
                covariance,
                variance,
                mean,
            } => {
                if covariance.rows != variance.len()
                    || covariance.rows != mean.len()
                    || covariance.cols != latents
                {
                    return Err(Error::Data(
                        "the cross-covariance does not match the prior and the new locations"
                            .to_owned(),
                    ));
                }
                Ok(cross_mean(&self.model, &self.solution, covariance, mean))
            }
            Query::Rows(rows) => {
                check_rows(rows, latents)?;
                Ok(design::times(rows, &self.latent_mean()))
            }
            Query::Extended { .. } => unreachable!("replaced by rows of the longer chain"),
        }
    }

    /// Computes a square root of the posterior covariance matrix of the locations. `prior` is their prior covariance
    /// matrix, and `cross` contains their covariances with the latent variables.
    fn root(&self, cross: &Dense, prior: &Dense) -> Result<Dense, Error> {
        let covariance = match &self.geometry {
            Geometry::Wide(g) => {
                let cross = design::transposed_columns(&self.model.design, cross);
                g.reduced_covariance(&cross, prior)
            }
            Geometry::Narrow(g) => {
                let inner = inner(&self.model, g, &self.solution);
                let mut right = Dense::zeros(cross.rows, inner.cols);
                kernels::product(right.view_mut(), false, cross.view(), inner.view(), 1.0);
                let mut out = prior.clone();
                let back = cross.view().transpose();
                kernels::product(out.view_mut(), true, right.view(), back, -1.0);
                out
            }
            Geometry::Sparse(_) | Geometry::Chain(_) => return Err(no_new_variables()),
        };
        narrow::root_of(&covariance, &mut Vec::new())
    }
}

fn times(a: &Dense, x: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; a.rows];
    for (j, x) in x.iter().enumerate() {
        kernels::add_scaled(*x, a.col(j), &mut out);
    }
    out
}

/// Computes `Wᵀ(Λ⁻¹ + Σ̃)⁻¹W = G − G V G` with the Gram matrix G.
fn inner(model: &LatentModel, g: &narrow::Narrow, solution: &Warm) -> Dense {
    let latents = model.prior.len();
    let gram = design::gram(&model.design, latents, &solution.lambda);
    let mut t = Dense::zeros(latents, latents);
    let v = g.latent_covariance();
    kernels::product(t.view_mut(), false, v.view(), gram.view(), 1.0);
    let mut inner = gram.clone();
    kernels::product(inner.view_mut(), true, gram.view(), t.view(), -1.0);
    inner
}

fn no_new_variables() -> Error {
    Error::Unsupported(
        "a prior given by its precision has no new latent variables; predict for combinations of the existing \
         ones"
            .to_owned(),
    )
}

fn check_rows(rows: &Design, latents: usize) -> Result<(), Error> {
    let fits = match rows {
        Design::Identity => true,
        Design::Select(index) => index.iter().all(|l| *l < latents),
        Design::Dense(w) | Design::Projected(w, _) => w.cols == latents,
        Design::Sparse(w) => w.cols == latents,
        Design::Copies(w) => w.cols() == latents,
    };
    if fits {
        return Ok(());
    }
    Err(Error::Data(format!(
        "the design of the new locations does not match {latents} latent variables"
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
            let inner = inner(model, g, solution);
            let latents = inner.cols;
            let mut right = Dense::zeros(covariance.rows, latents);
            kernels::product(
                right.view_mut(),
                false,
                covariance.view(),
                inner.view(),
                1.0,
            );
            let mut out = prior.to_vec();
            for l in 0..latents {
                for ((o, a), b) in out.iter_mut().zip(covariance.col(l)).zip(right.col(l)) {
                    *o -= a * b;
                }
            }
            Ok(out)
        }
        Geometry::Sparse(_) | Geometry::Chain(_) => Err(no_new_variables()),
    }
}

/// Computes `W* Σ` and `diag W* Σ W*ᵀ`. The prior must not be given by its precision.
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
