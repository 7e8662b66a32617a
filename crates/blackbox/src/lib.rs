//! Black-box variational inference: families, gradient estimators, optimisers, ADVI and diagnostics.
//!
//! The entry point is [`fit`]. It takes a [`TwiceDifferentiable`](jensen_density::TwiceDifferentiable) density and
//! [`Settings`], and returns a [`Fit`]. The fit reports whether it can be trusted, and if not, the reasons.
//!
//! | file | subject |
//! | --- | --- |
//! | `fitting`, `fit` | [`fit`]; [`Fit`]: the judged result |
//! | [`Policy`] | the required accuracy of reported numbers, and all limits that follow from it |
//! | `driver` | the stages (starts, family, richer family) as one algorithm |
//! | `verdict` | [`Fit::verdict`]: the reasons not to trust a fit |
//! | `settings` | [`Settings`], [`FamilyChoice`] |
//! | `error` | [`FitError`]: the reasons why a fit fails |
//! | `engine`, `method` | the interface of a method; [`Method`]: the list of methods |
//! | `approximation` | [`Approximation`]: reproducible draws, storable |
//! | `family` | Gaussians of several covariances, and mixtures: [`Family`] |
//! | `starts` | several short fits, and the modes that they find |
//! | [`trust`] | TrustVI: stochastic trust regions, the default for mean fields |
//! | `hfsgvi` | Hessian-free Newton steps without a trust region, as a baseline |
//! | `saa` | Newton's method on fixed draws, the default for richer families |
//! | `enrich` | the starting point of a richer family |
//! | `advi` | ADVI exactly as Stan defines it |
//! | `bbvi` | estimator × family × optimiser, averaged iterates |
//! | `moments` | mixtures by adaptive importance sampling |
//! | `nested`, `locals` | Laplace's method for local parameters, then for global parameters |
//! | `objective`, `newton` | the sample-average bound and its trust-region Newton minimiser |
//! | `linear_response` | covariances at a mean-field optimum |
//! | `calls` | [`Calls`]: oracle calls and lane evaluations |
//! | `oracle` | stochastic bounds, gradients and matched differences |
//! | `optimiser` | SGD, Adam, Adagrad, RMSProp |
//! | `certificate` | the gain of a second-order polish after a stochastic fit |
//! | `agreement` | [`Agreement`]: changes of means and standard deviations under importance weights |
//! | `evaluation`, `psis` | the final bound, Pareto k̂, importance bounds and resampling |
//! | `records` | gradients from minibatches of exchangeable records: control variates, variance analysis |
//! | `minibatches` | methods that use minibatches, including SMISO |
//! | `tail_decay` | the check that the density decreases in its tails |
//! | `refine` | [`Refine`]: draws of the posterior from an approximation, with the evidence and the divergence |
//! | `refining` | a fit and its refinement as one algorithm |
//! | `sizes` | lanes per call, work per thread, stored values |
//! | `summary` | mean, standard deviation and quantiles of draws |
//! | `ridges` | whether the log density falls between two optima |
//! | `symmetry` | modes that a relabelling maps onto each other |
//! | `noise` | normals by purpose, iteration and lane |

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

mod advi;
mod agreement;
mod approximation;
mod bbvi;
mod calls;
mod certificate;
mod driver;
mod engine;
mod enrich;
mod error;
mod evaluation;
pub mod family;
mod fit;
mod fitting;
mod hfsgvi;
mod linear_response;
mod locals;
mod method;
pub mod minibatches;
mod moments;
mod natural;
mod nested;
mod newton;
mod noise;
mod objective;
mod optimiser;
mod oracle;
mod policy;
mod psis;
pub mod records;
mod refine;
mod refining;
mod ridges;
mod saa;
mod settings;
mod sizes;
mod sparse;
mod starts;
mod summary;
mod symmetry;
mod tail_decay;
pub mod trust;
mod verdict;
mod watched;

use jensen_math::{dense, reduce};

pub use advi::{Advi, AdviSettings, AdviState, AdviStop, RelativeRule};
pub use agreement::{Agreement, Difference};
pub use approximation::{Approximation, Draws, LoadError};
pub use bbvi::{Bbvi, BbviSettings, BbviState};
pub use calls::{CHANGE_BATCH, Calls, GRADIENT_BATCH, PRODUCT_BATCH};
pub use certificate::{Certificate, certify};
pub use driver::{
    CONDITIONAL_FROM, Driver, DriverOutput, DriverState, FamilyResult, begins_conditional,
    finds_conditional,
};
pub use engine::{Beginning, Engine, Fitting, MethodSettings, MethodState, StoredState};
pub use error::FitError;
pub use evaluation::{
    Evaluation, evaluate, importance_weighted_bound, log_weights, resample, summarize,
};
pub use family::{Family, FamilyFault, FamilyKind, FamilyName, Smoothness, Space, check_family};
pub use fit::Fit;
pub use fitting::{Subject, fit, fit_reporting, identity};
pub use hfsgvi::{Hfsgvi, HfsgviSettings, HfsgviState};
pub use linear_response::{
    LinearResponse, LinearResponseError, LinearResponseSettings, linear_response,
};
pub use method::{AutoSettings, Method};
pub use moments::{MomentsSettings, MomentsState};
pub use nested::{NestedSettings, NestedState};
pub use newton::{Effort, Newton, NewtonStep};
pub use noise::{NoisePurpose, NoiseSource};
pub use objective::Objective;
pub use optimiser::{Optimiser, OptimiserState, Rule, Schedule};
pub use oracle::{Estimate, Estimator, Oracle, Stream};
pub use policy::Policy;
pub use psis::{Psis, khat_threshold, psis, tail_index, tail_index_error, without_ties};
pub use records::Subsampled;
pub use refine::{
    Ensemble, Mixing, RHAT_LIMIT, Refine, RefineSettings, RefineState, RefineWhen, Refined,
    RefinedDraws, StationaryPhase, TemperatureStep, Unreached,
};
pub use saa::{Saa, SaaSettings, SaaState};
pub use settings::{FamilyChoice, Settings};
pub use starts::{Init, OtherMode, StartOutcome, StartSettings, Starts, StartsState};
pub use summary::Summary;
pub use trust::{
    PaperTrust, PaperTrustSettings, PaperTrustState, RecordTrust, Trust, TrustSettings, TrustState,
};
