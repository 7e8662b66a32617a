//! Exchangeable variables: n variables with variance 1, of which any two have the correlation ρ. Their covariance is
//! `(1 − ρ) I + ρ J`, where J contains ones. Its eigenvalues are 1 + (n − 1)ρ, for the mean, and 1 − ρ, so
//!
//! - the precision is `a I + b J` with a = 1/(1 − ρ) and b = −ρ a/d, where d = 1 + (n − 1)ρ;
//! - log |precision| = (n − 1) log a − log d.
//!
//! The covariance is positive definite for −1/(n − 1) < ρ < 1. Correlations below 0 would make the variables more different
//! than independent variables are, by an amount that depends on n, so ρ is restricted to 0 < ρ < 1. The variables are then
//! √ρ times a common variable plus √(1 − ρ) times independent variables.

use super::field::{Coefficients, Field, FieldKind};
use super::setting::Setting;
use crate::{Error, Range};

/// The coefficients of I and J and the log determinant, with their derivatives with respect to ρ.
pub(super) fn coefficients(nodes: f64, rho: f64) -> Coefficients {
    let (a, d) = (1.0 / (1.0 - rho), 1.0 + (nodes - 1.0) * rho);
    let b = -rho * a / d;
    Coefficients {
        value: vec![a, b],
        slope: vec![vec![
            a * a,
            -a / d * (1.0 + rho * a - rho * (nodes - 1.0) / d),
        ]],
        log_determinant: Some((
            (nodes - 1.0) * a.ln() - d.ln(),
            vec![(nodes - 1.0) * (a - 1.0 / d)],
        )),
    }
}

impl Field {
    /// Returns exchangeable variables with variance 1. Their correlation is a hyperparameter between 0 and 1.
    ///
    /// # Errors
    /// Fails if there are fewer than two variables.
    pub(super) fn exchangeable(nodes: usize, rho: Option<f64>) -> Result<Self, Error> {
        if nodes < 2 {
            return Err(Error::Prior(
                "a correlation needs at least two copies".to_owned(),
            ));
        }
        let rho = Setting {
            range: Range::Between(0.0, 1.0),
            ..Setting::positive("rho", rho, 0.5)
        };
        let all = (0..nodes).map(|i| (i, i, 1.0)).collect();
        let pairs = (0..nodes)
            .flat_map(|i| (0..nodes).map(move |j| (i, j, 1.0)))
            .collect();
        let family = FieldKind::Exchangeable {
            nodes: nodes as f64,
        };
        Self::from_terms(nodes, &[all, pairs], family, vec![rho])
    }
}
