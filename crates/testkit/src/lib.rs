//! Oracles, finite differences and analytic models for the tests of Jensen.
//!
//! | file | subject |
//! | --- | --- |
//! | `dual` | [`Real`] and [`Dual`]: forward-mode derivatives of scalar code |
//! | `scalar` | [`ScalarModel`] and [`Scalar`]: a density from a few lines of generic scalar code |
//! | `golden` | [`golden`]: texts kept in files |
//! | `models` | test densities, some with known optima |
//! | `stress` | [`stress`]: a density's derivatives and lane independence at random points |
//! | `ticking` | [`ticking`]: a clock for runs |

mod dual;
mod golden;
mod models;
mod scalar;
mod stress;
mod ticking;

pub use dual::{Dual, Real};
pub use golden::golden;
pub use models::{
    CorrelatedGaussian, EightSchools, Funnel, LinearRegression, LogisticRegression, Mixture,
};
pub use scalar::{Scalar, ScalarModel};
pub use stress::{Failure, StressSettings, stress, stress_twice};
pub use ticking::ticking;
