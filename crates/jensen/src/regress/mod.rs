//! Regressions: a formula and a table, fitted like any other Stan program.
//!
//! [`Regression`] creates the program with [`jensen_regress`], and [`Program`](crate::program::Program) fits it. The
//! result folder stores the state that [`predict`] needs for new rows.

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
    /// The number of rows that the fit uses.
    pub rows: usize,
    /// The number of rows of the table.
    pub of_rows: usize,
    /// Notes on the rows.
    pub notes: Vec<String>,
    /// The priors, each with its parameter, its distribution, and whether the user specified it.
    pub priors: Vec<(String, String, bool)>,
    /// The names and values of constants in priors, such as the mean and the standard deviation of the response.
    pub constants: Vec<(String, f64)>,
    /// The variables to report, in order.
    pub shown: Vec<String>,
    /// The state that predictions for new rows need.
    pub learnt: Learnt,
    /// The expected response along each column.
    pub curves: Option<KeptCurves>,
}

impl Kept {
    /// Reads `regression.json` from the folder of a fit.
    ///
    /// # Errors
    /// Fails if the fit is not a regression, or if the file is damaged.
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

    /// Returns the summaries to report, in the order in which they are reported.
    pub fn answers<'a>(&self, all: &'a [ParameterSummary]) -> Vec<&'a ParameterSummary> {
        let of = |name: &String| {
            let name = name.clone();
            all.iter()
                .filter(move |p| p.name.split('[').next() == Some(name.as_str()))
        };
        self.shown.iter().flat_map(of).collect()
    }
}

/// A regression as a Stan program.
pub struct Regression {
    /// The program with its data.
    pub source: Source,
    /// The part that the result folder stores.
    pub kept: Kept,
    /// A program for the log density of the priors over the same data.
    pub log_prior: String,
}

impl Regression {
    /// Creates the program of a regression on a table.
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

pub(crate) fn is_of_prior(kept: &[u8]) -> bool {
    serde_json::from_slice::<Kept>(kept).is_ok_and(|kept| kept.request.prior_only)
}

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

/// Reads a table from a CSV, TSV, NPY or NPZ file, or from a Parquet file if the build supports it. `most` limits the
/// number of bytes of a compressed file after decompression.
///
/// # Errors
/// Fails if the file cannot be read, or if it is not a table.
pub fn read_frame(path: &Path, most: u64) -> Result<Frame, Error> {
    Ok(Frame::of_table(&Table::read_within(path, most)?))
}

/// The predictions for the rows of a table.
pub struct Predicted {
    /// The draws of `linear`, `expected` and `predicted`.
    pub sample: Sample,
    /// The indices of the predicted rows, from 0. Rows with missing values have no prediction.
    pub rows: Vec<usize>,
    /// The names of dimensions and their labels.
    pub coordinates: Coordinates,
}

/// Predicts the rows of a table at the draws of a fit in a folder. If a level of a group is not in the fit, its effect
/// is drawn from the distribution of all levels.
///
/// # Errors
/// Fails if the folder does not belong to a regression, or if a column is missing or has levels that are not in the
/// fit.
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
