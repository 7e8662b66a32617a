//! Refinement of an approximation. The result is a set of posterior draws, and an assessment of the approximation.
//!
//! The refinement uses coordinates in which the fitted Gaussian is standard normal. In these coordinates, the posterior
//! is nearly standard normal. One call of the density evaluates hundreds of particles. Independent populations of
//! particles start from a widened approximation and move to the posterior through a sequence of temperatures.
//! Hamiltonian transitions then move the particles until their draws have mixed. Only the starting points and the
//! coordinates of the method come from the variational approximation. The evidence measures the quality of the
//! approximation: `KL(q‖p) = log Z − ELBO`.
//!
//! Tempering is followed by stationary phases of 16, 32, 64, … transitions. Each phase chooses coordinates and a step
//! size from the draws of the previous phase, and keeps both while it records draws. The method assesses each phase
//! alone, and then together with the previous phase. In the first phase, the chains of a population start at one
//! particle that is far from the other particles, so that nested R̂ shows their dependence on that particle. When a
//! stationary phase has mixed, the refinement moves a few chains far into a tail. If they return, the refinement ends.
//! If they stay there, the refinement repeats the phase with these chains. If the remaining budget of gradients allows
//! less than half of such a phase, the refinement ends and reports the reasons not to use its draws. The refinement
//! uses at most as many gradients as the policy allows, or twice as many if a stationary phase has nearly mixed.
//! Usually it uses a tenth of this limit.
//!
//! | file | subject |
//! | --- | --- |
//! | `algorithm` | [`Refine`]: tempering, stationary phases and their diagnostics as one algorithm |
//! | `settings`, `outcome`, `state` | [`RefineSettings`], [`Refined`], [`RefineState`] |
//! | `map`, `root` | the coordinates of the family, and square roots of covariances |
//! | `whitening` | scales and correlations learned from particles |
//! | `tails` | transforms of coordinates with long tails |
//! | `target` | the path of densities and its base |
//! | `tempering`, `evidence` | temperatures, weights and resampling; the log evidence |
//! | `kernel`, `steps` | one transition of all particles; its steps |
//! | `leaps` | independent proposals over all scales |
//! | `beyond` | variance and mass of the posterior that draws do not reach |
//! | `tail_probes` | chains moved far into a tail, along logarithms of scales |
//! | `mixing` | [`Ensemble`], [`Mixing`]: nested R̂, effective sample size, standard errors |

mod algorithm;
mod beyond;
mod evidence;
mod kernel;
mod leaps;
mod map;
mod mixing;
mod outcome;
mod root;
mod settings;
mod state;
mod steps;
mod tail_probes;
mod tails;
mod target;
mod tempering;
mod whitening;

pub use algorithm::Refine;
pub use beyond::Unreached;
pub(crate) use beyond::beyond;
pub use mixing::{Ensemble, Mixing, RHAT_LIMIT};
pub use outcome::{Refined, RefinedDraws, StationaryPhase, TemperatureStep};
pub use settings::{RefineSettings, RefineWhen};
pub use state::RefineState;
