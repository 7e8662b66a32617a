//! Earlier solvers for the same problem, provided for comparison. They use the same kernels, threads and sites as the
//! dual.
//!
//! | file | method |
//! | --- | --- |
//! | `primal` | L-BFGS in the mean and the Cholesky factor (Challis and Barber 2011) |
//! | `opper` | L-BFGS in (m, λ) (Opper and Archambeau 2009) |
//! | `coordinate` | coordinate ascent with rank-one updates (Khan, Mohamed and Murphy 2012) |
//! | `lbfgs` | the optimiser of the first two |
//!
//! Once the estimated gain of the next step is below the tolerance, these solvers occasionally compute the duality gap,
//! which costs a factorisation. Without a dual, they compute the gain of one natural-gradient step instead. They stop
//! when this gap or gain is also below the tolerance.

pub(crate) mod coordinate;
pub(crate) mod lbfgs;
pub(crate) mod opper;
pub(crate) mod primal;

use super::{Problem, Solution, fixed};
use crate::linear::Geometry;
use crate::linear::kernels::{cholesky, dot, inverse_of, sum};
use crate::site::Sites;
use crate::{Covariance, Dense, Error, LatentModel};

/// For solvers that need a covariance, a precision is converted to a covariance if there are at most this many latent
/// variables.
const LARGEST: usize = 4000;

pub(crate) fn with_covariance(model: &LatentModel) -> Result<LatentModel, Error> {
    let q = match &model.prior.covariance {
        Covariance::Precision(q) => q,
        Covariance::Chain(_) => {
            return Err(Error::Unsupported(
                "this solver needs the prior's covariance, which a process in state-space form does not have; use \
                 the solver `dual`"
                    .to_owned(),
            ));
        }
        _ => return Ok(model.clone()),
    };
    let n = q.matrix.cols;
    if q.null_space.is_some() {
        return Err(Error::Unsupported(
            "this solver needs the prior's covariance, which an intrinsic prior does not have; use the solver \
             `dual`".to_owned(),
        ));
    }
    if n > LARGEST {
        return Err(Error::Unsupported(format!(
            "this solver needs the prior's covariance, for at most {LARGEST} latent variables of a field, not \
             {n}; use the solver `dual`"
        )));
    }
    let mut dense = Dense::zeros(n, n);
    for j in 0..n {
        let (rows, values) = q.matrix.col(j);
        for (&i, &x) in rows.iter().zip(values) {
            dense.data[j * n + i] = x;
        }
    }
    cholesky(&mut dense)
        .ok_or_else(|| Error::Prior("the prior precision is not positive definite".to_owned()))?;
    let mut model = model.clone();
    model.prior.covariance = Covariance::Dense(inverse_of(&dense));
    Ok(model)
}

/// Returns the solution for the marginals (m̄, v̄) that a solver has reached. `bound` is the objective at these
/// marginals. The function computes α and λ from the sites. If the sites have a dual, it gives the duality gap.
/// Otherwise the gain of a natural-gradient step is computed instead. Afterwards the geometry is factorised at λ.
pub(crate) fn solution(
    problem: &mut Problem<'_>,
    sites: &Sites,
    predictor: Vec<f64>,
    variances: &[f64],
    bound: f64,
) -> Solution {
    let values = sites.values(&predictor, variances);
    let mut alpha: Vec<f64> = values.iter().map(|v| v.by_mean).collect();
    let mut lambda: Vec<f64> = values.iter().map(|v| 2.0 * v.by_variance).collect();
    let mut gap = None;
    if let Sites::Dual(dual) = sites {
        alpha = dual.maximisers(&predictor, variances, &values);
        let curves = dual.curves(&alpha);
        lambda = curves.lambda();
        let product = match &problem.geometry {
            Geometry::Wide(g) => Some(g.covariance_times(&alpha)),
            Geometry::Narrow(g) => Some(g.covariance_times(&alpha)),
            Geometry::Sparse(_) | Geometry::Chain(_) => None,
        };
        if let (Some(product), Some(log_determinant)) = (product, problem.geometry.factor(&lambda))
        {
            let phi = sum(alpha.len(), |i| curves.at[i].phi);
            let dual_value = 0.5 * (dot(&alpha, &product) - log_determinant)
                - dot(&alpha, &problem.centre)
                + phi;
            gap = Some(dual_value - bound);
        }
    }
    let mut gain = None;
    if gap.is_none() {
        let after = fixed::bound_after_step(problem, sites, &alpha, &lambda, &predictor);
        gain = after.map(|after| after - bound);
    }
    Solution {
        alpha,
        lambda,
        predictor,
        bound,
        gap,
        gain,
    }
}
