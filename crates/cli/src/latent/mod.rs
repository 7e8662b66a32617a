//! `jensen latent`, for latent Gaussian models of tables.
//!
//! | file | subject |
//! | --- | --- |
//! | `args` | the command line |
//! | `fit` | `latent fit`: from a table to a posterior |
//! | `points` | `latent points`: from locations of points to an intensity |
//! | `predict` | `latent predict`: a stored posterior at the rows of another table |

pub mod args;
mod fit;
mod points;
mod predict;

use crate::failure::CommandResult;
use args::LatentCommand;

pub fn run(command: LatentCommand) -> CommandResult {
    match command {
        LatentCommand::Fit(args) => fit::run(&args),
        LatentCommand::Points(args) => points::run(&args),
        LatentCommand::Predict(args) => predict::run(&args),
    }
}
