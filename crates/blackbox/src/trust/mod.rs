//! TrustVI: black-box variational inference by stochastic trust regions (Regier, Jordan and McAuliffe, NeurIPS 2017).
//!
//! TrustVI maximises the ELBO `L(ω)`. Each step maximises the model `m(s) = gᵀs + ½ sᵀHs` in a region `‖s‖ ≤ δ`, where
//! g and H are estimated from fresh draws. TrustVI estimates the change of the ELBO on new draws, which are the same at
//! both ends of the step. It accepts the step if this change is at least `η m̃` (and `η m̃ ≥ λδ²`), where m̃ is the
//! prediction m′ corrected for noise. After an accepted step, the region may grow. After a rejected step, it shrinks.
//! The jackknife rule adapts the number of draws for gradients. Inequalities 11 and 13 adapt the number of draws for
//! assessments.
//!
//! | file | subject |
//! | --- | --- |
//! | `settings` | [`TrustSettings`]: Table 1 with ranges and defaults |
//! | `algorithm` | [`Trust`]: the iteration |
//! | `state` | [`TrustState`]: the state between iterations |
//! | `stopping` | the stopping rule |
//! | `subproblem` | the maximiser of the model in the region: Krylov subspaces, the secular equation |
//! | `explicit` | Hessians of mean fields in blocks, where their dimension allows |
//! | `gradient` | gradients with the jackknife's estimate of their noise |
//! | `assessment` | the change of the bound on matched fresh draws |
//! | `quadratic` | the control variate of that change |
//! | `sampling` | the numbers of draws of gradients and assessments |
//! | `subsampled` | `Subsampled`: minibatches of records, one for every pair of draws |
//! | `draws` | mirrored pairs in blocks of bounded memory |
//! | `paper` | [`PaperTrust`]: Algorithm 1 as printed, without the choices below |
//!
//! # Choices beyond the paper
//!
//! * **Lengths** are in the metric P of the family's Fisher information at the current ω (means in units of their
//!   standard deviations, log scales times √2). With this metric, ½‖s‖² is close to the Kullback–Leibler divergence of
//!   a step, and no result depends on the units of the data. This is the method of the paper after a linear change of
//!   variables at every iterate.
//! * **Acceptance**: in the test of a step and in Inequalities 11 and 13, `m̃ = m′ max(1 − v/‖g‖², 0.001)` replaces m′.
//!   Here v is the squared noise of g according to the jackknife. TrustVI makes this correction because steps do not
//!   achieve the gains that a noisy gradient predicts. TrustVI may therefore accept a step that gains less than `η m′`.
//! * **Sample sizes** are those of the last step, doubled or halved according to the inequalities, up to a limit. The
//!   assessment of most steps uses fewer draws than Inequality 11 requires, so Lemma 1 does not hold for each step.
//! * **Gradients** are means over groups of draws, and no group has more than four times the weight of the median
//!   group. This limit biases the gradients, and Condition 2 is not guaranteed for heavy tails.
//! * **Radius**: after an accepted step, the radius grows only if the step ended on the boundary. If the radius exceeds
//!   δₖ⁻, the step must also have achieved three quarters of its prediction, and must not be the first step after a
//!   rejected one. After a rejected step, the radius becomes `min(δ, ‖s‖)/γ`. If the radius exceeds δₖ⁻, a parabola
//!   through the observed change may reduce it further, by at most a factor γ². In small regions every step ends on the
//!   boundary, as in Lemma 2. All of these rules increase `φ = L − αδ²` relative to the rules of the paper, which Lemma
//!   1 allows.
//! * **Narrower scales**: far from an optimum, TrustVI tries narrower scales after a step without a clear gain, if the
//!   draws of the step leave the ELBO uncertain by more than a nat. In the tails of a density, a few draws dominate the
//!   ELBO, and no model of the ELBO provides a direction. TrustVI accepts narrower scales if the ELBO on the same draws
//!   is higher and more precise.
//! * **Draws** come in antithetic pairs, which are the independent observations of all estimates.
//! * **Hessian-vector products** therefore use 86 draws instead of 85. In the full-rank family, the number of draws is
//!   at least four times the dimension, because averages of products over fewer draws are singular.

mod algorithm;
mod assessment;
mod draws;
mod explicit;
mod fitting;
mod gradient;
mod paper;
mod quadratic;
mod sampling;
mod settings;
mod state;
mod stopping;
mod subproblem;
mod trial;

pub use algorithm::Trust;
pub use paper::{PaperTrust, PaperTrustSettings, PaperTrustState};
pub use settings::{RecordTrust, TrustSettings};
pub use state::TrustState;

pub(crate) use assessment::{Sample, assess};
pub(crate) use gradient::Gradients;
