//! Regressions: a formula and a table, fitted like any other program.
//!
//! [`Regression`] writes the program ([`jensen_regress`]), and [`Program`](crate::program::Program) fits it. The folder
//! stores the state that [`predict`] needs for new rows.

mod effects;
mod sensitivity;

use std::borrow::Cow;
use std::path::Path;

use jensen_data::{
    Adjacency, Artefact, Coordinates, DataFile, DataFormat, DrawsTable, Elements, ParameterSummary,
    RunDir, Table, Value as DataValue, read_bytes, read_draws_csv,
};
use jensen_regress::{Learnt, Used};
use serde::{Deserialize, Serialize};

pub(crate) use effects::section;
pub use effects::{Effect, EffectSummary, KeptCurves, Line, curves, effects};
pub use jensen_regress::{FAMILIES, Factor, Frame, FrameColumn, Request};
pub use sensitivity::{Sensitive, sensitivity};

use crate::program::{Includes, REGRESSION, Source, StoredFit};
use crate::stan::{Build, Halt};
use crate::{Error, Generator, Sample, Save};

/// The contents of `regression.json` in the folder of a regression.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// The request.
    pub request: Request,
    /// The name of the table.
    pub table: String,
    /// The number of rows used.
    pub rows: usize,
    /// The number of rows of the table.
    pub of_rows: usize,
    /// Notes on the rows.
    pub notes: Vec<String>,
    /// The priors: parameter, distribution, and whether the user specified it.
    pub priors: Vec<(String, String, bool)>,
    /// The named constants in priors: mean and standard deviation of the response.
    pub constants: Vec<(String, f64)>,
    /// The variables to report, in order.
    pub shown: Vec<String>,
    /// The state for new rows.
    pub learnt: Learnt,
    /// The expected response along each column.
    pub curves: Option<KeptCurves>,
}

impl Kept {
    /// Reads the regression of a fit's folder.
    ///
    /// # Errors
    /// Fails if the fit is not a regression, or the file is damaged.
    pub fn read(folder: &RunDir) -> Result<Self, Error> {
        let path = folder.path().join(REGRESSION);
        if !path.is_file() {
            return Err(Error::Input(format!(
                "`{}` is not a folder of `jensen regress`: it has no {REGRESSION}",
                folder.path().display()
            )));
        }
        serde_json::from_slice(&read_bytes(&path)?).map_err(|error| {
            Error::Input(format!("Jensen cannot read `{}`: {error}", path.display()))
        })
    }

    /// Returns the summaries to report, in order.
    pub fn answers<'a>(&self, all: &'a [ParameterSummary]) -> Vec<&'a ParameterSummary> {
        let of = |name: &String| {
            let name = name.clone();
            all.iter()
                .filter(move |p| p.name.split('[').next() == Some(name.as_str()))
        };
        self.shown.iter().flat_map(of).collect()
    }
}

/// A regression as a program that Jensen can fit.
pub struct Regression {
    /// The program with its data.
    pub source: Source,
    /// The stored part.
    pub kept: Kept,
    /// The program for the log density of the priors, over the same data.
    pub log_prior: String,
}

impl Regression {
    /// Writes the program of a regression over a table.
    ///
    /// # Errors
    /// Fails if a formula, a prior or the table is invalid.
    pub fn new(request: &Request, frame: &Frame) -> Result<Self, Error> {
        let frame = &*with_maps(request, frame)?;
        let regression = jensen_regress::Regression::new(request, frame)?;
        let made = jensen_regress::program(&regression)?;
        let prior = |used: Used| (used.target, used.density, used.given);
        let constant = |name: &str| match made.data.get(name).map(DataValue::elements) {
            Some(Elements::Real(x)) if x.len() > 1 => {
                let each = x.iter().zip(1..);
                each.map(|(x, at)| (format!("{name}[{at}]"), *x)).collect()
            }
            Some(Elements::Real(x)) => x.iter().map(|x| (name.to_owned(), *x)).collect(),
            _ => Vec::new(),
        };
        let constants = ["y_mean", "y_sd"].into_iter().flat_map(constant).collect();
        let used = frame.rows_of(&regression.rows);
        let kept = Kept {
            curves: KeptCurves::of(request, &regression.learnt, &used, &made.data),
            constants,
            request: request.clone(),
            table: frame.source.clone(),
            rows: regression.rows.len(),
            of_rows: regression.of_rows,
            notes: regression.notes(),
            priors: made.priors.into_iter().map(prior).collect(),
            shown: made.shown,
            learnt: regression.learnt,
        };
        let text = serde_json::to_vec_pretty(&kept).map_err(Error::output)?;
        Ok(Self {
            source: Source {
                model: request.formulas.join("; "),
                text: made.text,
                includes: Includes::default(),
                data: Some(DataFile {
                    name: frame.source.clone(),
                    format: DataFormat::Json,
                    bytes: made.data.to_json().into_bytes(),
                }),
                coordinates: made.coordinates,
                regression: Some(text),
            },
            kept,
            log_prior: made.log_prior,
        })
    }
}

/// Returns whether a stored regression omits its data.
pub(crate) fn is_of_prior(kept: &[u8]) -> bool {
    serde_json::from_slice::<Kept>(kept).is_ok_and(|kept| kept.request.prior_only)
}

/// Returns the table together with the maps that the formulas name, read from their files.
fn with_maps<'a>(request: &Request, frame: &'a Frame) -> Result<Cow<'a, Frame>, Error> {
    let mut made = Cow::Borrowed(frame);
    for file in jensen_regress::Regression::maps(request)? {
        if !made.graphs.contains_key(&file) {
            let graph = Adjacency::read(Path::new(&file))?;
            made.to_mut().graphs.insert(file, graph);
        }
    }
    Ok(made)
}

/// Reads a table from a file: CSV, TSV, NPY, NPZ, or Parquet if the build supports it. A compressed file may have at
/// most `most` bytes of data.
///
/// # Errors
/// Fails if the file cannot be read, or is not a table.
pub fn read_frame(path: &Path, most: u64) -> Result<Frame, Error> {
    Ok(Frame::of_table(&Table::read_within(path, most)?))
}

/// Predictions for rows of a table.
pub struct Predicted {
    /// Draws of `linear`, `expected` and `predicted`.
    pub sample: Sample,
    /// The indices of the predicted rows, from 0. Rows with missing values have no prediction.
    pub rows: Vec<usize>,
    /// Names of dimensions and their labels.
    pub coordinates: Coordinates,
}

/// Predicts rows of a table at the draws of a fit in a folder. Levels of groups that are not in the fit have effects
/// drawn from the distribution of all groups.
///
/// # Errors
/// Fails if the folder does not belong to a regression, or a column is missing or has levels that are not in the fit.
pub fn predict(
    folder: &Path,
    frame: &Frame,
    seed: Option<u64>,
    threads: usize,
    halt: Halt,
) -> Result<Predicted, Error> {
    let (run, stored) = StoredFit::open(folder)?;
    let kept = Kept::read(&run)?;
    let (draws, _): (DrawsTable, _) = read_draws_csv(&run.artefact(Artefact::DrawsCsv))?;
    let regression = jensen_regress::Regression::for_rows(&kept.request, &kept.learnt, frame)?;
    let made = jensen_regress::predictions(&regression, &stored.source(&run)?.values()?)?;
    let seed = seed.unwrap_or(stored.flags.seed());
    let build = Build {
        seed,
        simd: stored.flags.simd()?,
        threads,
        memory_limit: stored.flags.memory_limit(),
        save: Save::of_words("generated"),
        halt,
        ..Build::default()
    };
    let generator = Generator::compile(&made.text, "predictions.stan", &made.data, &build)?;
    Ok(Predicted {
        sample: generator.generate(&draws, seed)?,
        rows: regression.rows,
        coordinates: made.coordinates,
    })
}
