//! `jensen latent`: latent Gaussian models of tables.
//!
//! | file | subject |
//! | --- | --- |
//! | `args` | the command line |
//! | `flags` | the settings of a fit and their defaults |
//! | `store` | the folder of a fit: request, data and the files a prior names |
//! | `fit` | `latent fit`: a table into a posterior |
//! | `results` | what a fit says at its end |
//! | `predict` | `latent predict`: a stored posterior at the rows of another table |

pub mod args;
mod fit;
mod flags;
mod predict;
mod results;
mod store;

use crate::failure::Outcome;
use args::LatentCommand;

/// Runs the command.
pub fn run(command: LatentCommand) -> Outcome {
    match command {
        LatentCommand::Fit(args) => fit::run(&args),
        LatentCommand::Predict(args) => predict::run(&args),
    }
}
