//! `jensen topics`, for topic models of text.
//!
//! | file | subject |
//! | --- | --- |
//! | `args` | the command line |
//! | `build` | `topics build`: from text or bags of words to a corpus |
//! | `fit` | `topics fit` and `topics update`: from a corpus to topics in a folder |
//! | `progress` | the line of progress |
//! | `export` | `topics export`: topics as tables |
//! | `effects` | `topics effects`: effects of covariates on the prevalence of topics |
//! | `apply` | `topics predict`, `evaluate` and `show`, which use the folder of a fit |

mod apply;
pub mod args;
mod build;
mod effects;
mod export;
mod fit;
mod progress;

use crate::failure::CommandResult;
use args::TopicsCommand;

pub fn run(command: TopicsCommand) -> CommandResult {
    match command {
        TopicsCommand::Build(args) => build::run(&args),
        TopicsCommand::Fit(args) => fit::run(&args),
        TopicsCommand::Update(args) => fit::update(&args),
        TopicsCommand::Predict(args) => apply::predict(&args),
        TopicsCommand::Evaluate(args) => apply::evaluate(&args),
        TopicsCommand::Show(args) => apply::show(&args),
        TopicsCommand::Export(args) => export::run(&args),
        TopicsCommand::Effects(args) => effects::run(&args),
    }
}
