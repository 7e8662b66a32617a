//! Writes a regression as a commented Stan program with its data.
//!
//! Columns are centred at their means, and parameters are in the units of the data. Group effects are standardised, and
//! every prior is visible in the program.
//!
//! | file | subject |
//! | --- | --- |
//! | `writer` | the blocks of a program, and its data |
//! | `linear`, `coefficients` | linear predictors: intercepts, coefficients, sums |
//! | `groups`, `curves` | their group effects; their smooths, processes and monotonic effects |
//! | `computed` | functions of columns and of parameters with formulas of their own |
//! | `unknown`, `series`, `fields` | columns whose values are parameters, autoregressions, maps |
//! | `residuals`, `hazard` | correlated residuals of several responses, baseline hazards |
//! | `likelihood` | the density of the response, log likelihoods and replicates |
//! | `predictions` | the program of predictions for new rows |

mod coefficients;
mod computed;
mod curves;
mod fields;
mod groups;
mod hazard;
mod likelihood;
mod linear;
mod predictions;
mod residuals;
mod series;
mod unknown;
mod writer;

use jensen_data::{Coordinates, DataSet};

pub use predictions::predictions;

use crate::error::Result;
use crate::prior::{Priors, Used};
use crate::regression::Regression;
use writer::{Block, Writer};

/// A program, its data, and the names of its parameters' dimensions.
#[derive(Clone, Debug)]
pub struct Program {
    /// The source text of the program.
    pub text: String,
    /// The source text of a second program, which uses the same data. It computes `lprior`, the log density of the
    /// priors at the parameters.
    pub log_prior: String,
    /// The data of the program.
    pub data: DataSet,
    /// The names of the dimensions and the labels along them.
    pub coordinates: Coordinates,
    /// The priors that the program uses.
    pub priors: Vec<Used>,
    /// The variables to report, in order. All other variables are intermediate results.
    pub shown: Vec<String>,
}

/// Writes the program of a regression.
///
/// # Errors
/// Fails if a prior has no target in the model.
pub fn program(regression: &Regression) -> Result<Program> {
    let mut writer = Writer::new(regression, Priors::parse(&regression.request.priors)?);
    linear::declare(&mut writer)?;
    likelihood::declare(&mut writer)?;
    writer.priors.all_found()?;
    let text = writer.text(&heading(regression));
    writer.clear(Block::Model);
    writer.clear(Block::Generated);
    let terms = writer.priors.terms.join("\n  + ");
    writer.line(Block::Generated, format!("real lprior = {terms};"));
    Ok(Program {
        text,
        log_prior: writer.text(&heading(regression)),
        data: writer.data,
        coordinates: writer.coordinates,
        priors: writer.priors.used,
        shown: writer.shown,
    })
}

fn heading(regression: &Regression) -> String {
    let mut text = String::new();
    for formula in &regression.request.formulas {
        text += &format!("// {}\n", formula.replace(['\n', '\r'], " "));
    }
    text + &format!(
        "// family {}, link {}\n",
        regression.family.name,
        regression.link.name()
    )
}
