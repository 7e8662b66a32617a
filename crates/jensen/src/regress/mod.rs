//! Regressions that are specified by a formula and a table. Jensen fits them as Stan programs.
//!
//! [`Regression`] creates the program with the crate [`jensen_regress`], and [`Program`](crate::program::Program) fits
//! the program. The result folder contains the data that [`predict`] needs for new rows.

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

/// The contents of the file `regression.json` in the result folder of a regression.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// The request from which the regression was created.
    pub request: Request,
    /// The name of the table.
    pub table: String,
    /// The number of rows that the fit uses.
    pub rows: usize,
    /// The number of rows that the table contains.
    pub of_rows: usize,
    /// Remarks on the rows that the fit uses.
    pub notes: Vec<String>,
    /// The priors. Each prior has its parameter, its distribution, and whether the user specified it.
    pub priors: Vec<(String, String, bool)>,
    /// The names and values of the constants in the priors, such as the mean and the standard deviation of the
    /// response.
    pub constants: Vec<(String, f64)>,
    /// The variables that the output reports, in order.
    pub shown: Vec<String>,
    /// The state that predictions for new rows need, such as the levels of factors.
    pub learnt: Learnt,
    /// The curves of the expected response along each column, or `None` if they cannot be evaluated.
    pub curves: Option<KeptCurves>,
}

impl Kept {
    /// Reads `regression.json` from the result folder of a fit.
    ///
    /// # Errors
    /// Fails if the fit is not a regression or if the file is damaged.
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

    /// Returns the summaries of the reported variables, in the order in which the output reports them.
    pub fn answers<'a>(&self, all: &'a [ParameterSummary]) -> Vec<&'a ParameterSummary> {
        let of = |name: &String| {
            let name = name.clone();
            all.iter()
                .filter(move |p| p.name.split('[').next() == Some(name.as_str()))
        };
        self.shown.iter().flat_map(of).collect()
    }
}

/// A regression that has been converted to a Stan program.
pub struct Regression {
    /// The Stan program with its data.
    pub source: Source,
    /// The metadata of the regression that the result folder stores.
    pub kept: Kept,
    /// A Stan program with the same data. Its log density contains only the priors.
    pub log_prior: String,
}

impl Regression {
    /// Creates the Stan program for a regression on a table.
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

/// Reads a table from a CSV, TSV, NPY or NPZ file. Parquet files can be read if the build supports them. `most` is the
/// maximum number of bytes of a compressed file after decompression.
///
/// # Errors
/// Fails if the file cannot be read or does not contain a table.
pub fn read_frame(path: &Path, most: u64) -> Result<Frame, Error> {
    Ok(Frame::of_table(&Table::read_within(path, most)?))
}

/// The predictions for several rows of a table.
pub struct Predicted {
    /// The draws of the variables `linear`, `expected` and `predicted`.
    pub sample: Sample,
    /// The zero-based indices of the rows that were predicted. Rows with missing values are not predicted.
    pub rows: Vec<usize>,
    /// The names of dimensions and the labels of their elements.
    pub coordinates: Coordinates,
}

/// Predicts the rows of a table from the draws of a fit in a folder. If a row belongs to a level of a group that did
/// not occur in the fit, the effect of this level is drawn from the distribution of all levels.
///
/// # Errors
/// Fails if the folder does not contain a regression, if a column is missing, or if a factor has levels that did not
/// occur in the fit.
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
