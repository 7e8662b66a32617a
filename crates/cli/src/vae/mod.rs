//! `jensen vae`, for auto-encoders of images and tables.
//!
//! | file | subject |
//! | --- | --- |
//! | `args` | the command line |
//! | `fit` | `vae fit`: from rows to weights |
//! | `progress` | the line of progress |
//! | `apply` | `vae sample`, `encode`, `reconstruct`, `evaluate` and `export`, which use the folder of a fit |

mod apply;
pub mod args;
mod fit;
mod progress;

use crate::failure::CommandResult;
use args::VaeCommand;

pub fn run(command: VaeCommand) -> CommandResult {
    match command {
        VaeCommand::Fit(args) => fit::run(&args),
        VaeCommand::Sample(args) => apply::sample(&args),
        VaeCommand::Encode(args) => apply::encode(&args),
        VaeCommand::Reconstruct(args) => apply::reconstruct(&args),
        VaeCommand::Evaluate(args) => apply::evaluate(&args),
        VaeCommand::Export(args) => apply::export(&args),
    }
}
