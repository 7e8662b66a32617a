//! `jensen vae`: auto-encoders of images and tables.
//!
//! | file | subject |
//! | --- | --- |
//! | `args` | the command line |
//! | `flags` | the settings of a fit and their defaults |
//! | `data` | rows and what they are checked for |
//! | `store` | the folder of a fit |
//! | `fit` | `vae fit`: rows into weights |
//! | `progress` | the line of progress, and what a run's records say |
//! | `results` | what a fit says at its end |
//! | `apply` | `vae sample`, `encode`, `reconstruct` and `evaluate`: what a fitted folder is good for |
//! | `out` | where those write: pictures, NPY, CSV |

mod apply;
pub mod args;
mod data;
mod fit;
mod flags;
mod out;
mod progress;
mod results;
mod store;

use crate::failure::Outcome;
use args::VaeCommand;

/// Runs the command.
pub fn run(command: VaeCommand) -> Outcome {
    match command {
        VaeCommand::Fit(args) => fit::run(&args),
        VaeCommand::Sample(args) => apply::sample(&args),
        VaeCommand::Encode(args) => apply::encode(&args),
        VaeCommand::Reconstruct(args) => apply::reconstruct(&args),
        VaeCommand::Evaluate(args) => apply::evaluate(&args),
    }
}
