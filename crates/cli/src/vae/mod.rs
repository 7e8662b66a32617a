//! `jensen vae`: auto-encoders of images and tables.
//!
//! | file | subject |
//! | --- | --- |
//! | `args` | the command line |
//! | `fit` | `vae fit`: rows into weights |
//! | `progress` | the line of progress |
//! | `apply` | `vae sample`, `encode`, `reconstruct` and `evaluate`: what a fitted folder is good for |

mod apply;
pub mod args;
mod fit;
mod progress;

use crate::failure::CommandResult;
use args::VaeCommand;

/// Runs the command.
pub fn run(command: VaeCommand) -> CommandResult {
    match command {
        VaeCommand::Fit(args) => fit::run(&args),
        VaeCommand::Sample(args) => apply::sample(&args),
        VaeCommand::Encode(args) => apply::encode(&args),
        VaeCommand::Reconstruct(args) => apply::reconstruct(&args),
        VaeCommand::Evaluate(args) => apply::evaluate(&args),
    }
}
