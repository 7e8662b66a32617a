//! `jensen latent`: latent Gaussian models of tables.
//!
//! | file | subject |
//! | --- | --- |
//! | `args` | the command line |
//! | `fit` | `latent fit`: a table into a posterior |
//! | `predict` | `latent predict`: a stored posterior at the rows of another table |

pub mod args;
mod fit;
mod predict;

use crate::failure::CommandResult;
use args::LatentCommand;

/// Runs the command.
pub fn run(command: LatentCommand) -> CommandResult {
    match command {
        LatentCommand::Fit(args) => fit::run(&args),
        LatentCommand::Predict(args) => predict::run(&args),
    }
}
