//! Stan programs from files: read, compiled as the request says, fitted, and kept in a folder.
//!
//! What [`fit`](crate::fit) does for any problem in memory, this does for a program with its data, as `jensen fit` does.
//!
//! | file | subject |
//! | --- | --- |
//! | `source` | [`Source`]: program, includes and data as they were read |
//! | `request` | [`FitRequest`]: what is asked for, with its defaults |
//! | `minibatch` | the settings of exchangeable records |
//! | `study` | [`FitStudy`]: a fit in a folder |
//! | `stored` | [`Stored`]: what the folder keeps |

mod minibatch;
mod request;
mod source;
mod stored;
mod study;

pub use request::{
    CovarianceName, EstimatorName, FitRequest, MethodName, OptimizerName, RefineName,
};
pub use source::{Includes, Source};
pub use stored::Stored;
pub use study::{FitCourse, FitStudy};

use jensen_blackbox::{Approximation, FitError, Init};
use jensen_data::{DataFile, DataSet, FitSummary};
use jensen_density::Variable;

use crate::exchangeable::{self, RecordModel};
use crate::stan::{Build, Model};
use crate::study::{Around, carry_out, request as requests};
use crate::{About, Error, Fitted, Options, Problem, Sample, SampleRequest, sample};

/// The command that folders of fits belong to.
pub const FIT: &str = "fit";

/// A program compiled as a request says.
pub struct Program {
    source: Source,
    data: DataSet,
    request: FitRequest,
    threads: usize,
    model: Lowered,
}

/// The density that a request needs.
enum Lowered {
    /// Of all data at once.
    Whole(Box<Model>),
    /// Of exchangeable records.
    Records(Box<RecordModel>),
}

impl Program {
    /// Compiles a program for a fit on so many threads.
    ///
    /// # Errors
    /// A setting that cannot be, found before anything is compiled; the program or its data are wrong.
    pub fn compile(source: Source, request: FitRequest, threads: usize) -> Result<Self, Error> {
        // Wrong settings are said before anything slow.
        request.settings(Init::Zero)?;
        let data = source.values()?;
        let build = Build {
            includes: &source.includes,
            data_name: source.data_name(),
            seed: request.seed(),
            simd: request.simd()?,
            threads,
            memory_limit: request.memory_limit(),
            ..Build::default()
        };
        let (text, name) = (&source.text, &source.model);
        let model = match &request.exchangeable {
            Some(count) => {
                let model = exchangeable::compile(text, name, &data, &build, count)?;
                Lowered::Records(Box::new(model))
            }
            None => Lowered::Whole(Box::new(Model::compile(text, name, &data, &build)?)),
        };
        Ok(Self {
            source,
            data,
            request,
            threads,
            model,
        })
    }

    /// What the program has to say before it is fitted: what transformed data print, remarks of the compiler with source
    /// excerpts, and what the user should know of it, a text each.
    pub fn remarks(&self) -> Vec<String> {
        match &self.model {
            Lowered::Whole(model) => remarks(model),
            Lowered::Records(model) => remarks(model),
        }
    }

    /// What was asked for.
    pub fn request(&self) -> &FitRequest {
        &self.request
    }

    /// The data.
    pub fn data(&self) -> &DataSet {
        &self.data
    }

    /// Parameters, transformed parameters and generated quantities, in the order of the program.
    pub fn variables(&self) -> Vec<Variable> {
        match &self.model {
            Lowered::Whole(model) => model.posterior().variables(),
            Lowered::Records(model) => model.posterior().variables(),
        }
    }

    /// Draws of an approximation of this program's posterior.
    ///
    /// # Errors
    /// As [`sample`].
    pub fn sample(
        &self,
        approximation: &Approximation,
        request: &SampleRequest,
    ) -> Result<Sample, Error> {
        match &self.model {
            Lowered::Whole(model) => sample(&**model, approximation, request),
            Lowered::Records(model) => sample(&**model, approximation, request),
        }
    }

    /// Where a fit starts: `stored` unless the request names a start.
    ///
    /// # Errors
    /// The file of the start cannot be read or does not fit the model.
    pub fn start(&self, stored: Option<Init>) -> Result<Init, Error> {
        let given = match (self.request.init.as_deref(), stored) {
            (None, Some(stored)) => return Ok(stored),
            (None | Some("0"), _) => return Ok(Init::Zero),
            (Some("random"), _) => return Ok(Init::Random),
            (Some(file), _) => DataFile::read(file.as_ref())?,
        };
        if given.is_list() {
            let point = serde_json::from_slice(&given.bytes).map_err(|error| {
                Error::Input(format!(
                    "{}: expected a list with an unconstrained point, or an object with parameter values: {error}",
                    given.name
                ))
            })?;
            return Ok(Init::Point(point));
        }
        let start = self.start_at(&given.parse()?);
        start.map_err(|error| Error::Input(format!("{}: {error}", given.name)))
    }

    /// The start at these values of the parameters.
    ///
    /// # Errors
    /// A parameter is missing, of another shape, or violates its constraint.
    pub fn start_at(&self, values: &DataSet) -> Result<Init, Error> {
        let point = match &self.model {
            Lowered::Whole(model) => model.unconstrain(values),
            Lowered::Records(model) => model.unconstrain(values),
        };
        point.map(Init::Point)
    }

    /// Fits, and writes results where `around` says.
    ///
    /// # Errors
    /// As [`carry_out`]; [`Error::NoStart`] in the model's own words.
    pub fn fit(&self, init: Init, around: Around<'_>) -> Result<(Fitted, FitSummary), Error> {
        let mut options = self.request.options(init, self.threads)?;
        match &self.model {
            Lowered::Whole(model) => self.carry_out(&**model, &options, around),
            Lowered::Records(model) => {
                if let Some(method) = minibatch::method(&self.request)? {
                    let family = options.settings.family;
                    options.settings.method =
                        minibatch::for_model(&self.request, method, model, family)?;
                }
                self.carry_out(&**model, &options, around)
            }
        }
    }

    /// What is said of a fit of this program.
    pub fn about(&self) -> About {
        let data = self.source.data.as_ref();
        About {
            model: self.source.model.clone(),
            data: data.map_or_else(String::new, |data| data.name.clone()),
            settings: requests::listed(&self.request),
            exhibits: Vec::new(),
        }
    }

    fn carry_out<D>(
        &self,
        model: &Model<D>,
        options: &Options,
        around: Around<'_>,
    ) -> Result<(Fitted, FitSummary), Error>
    where
        Model<D>: Problem,
    {
        let init = &options.settings.start.init;
        let study = FitStudy {
            problem: model,
            options,
            request: Stored::of(&self.source, &self.request, init.clone())?,
            inputs: self.source.copies(),
            budget: self.request.budget(),
            about: self.about(),
            data: &self.data,
        };
        let done = carry_out(study, around).map_err(|error| explain(error, model, init))?;
        Ok((done.made.output, done.summary))
    }
}

fn remarks<D>(model: &Model<D>) -> Vec<String> {
    let mut remarks = model.printed().to_vec();
    if !model.warnings().is_empty() {
        remarks.push(model.render_warnings(false));
    }
    let notes = model.notes();
    remarks.extend(notes.iter().map(|note| format!("warning: {note}")));
    remarks
}

/// A fit that could not start, in the model's own words where it has some.
fn explain<D>(error: Error, model: &Model<D>, init: &Init) -> Error {
    let Error::Fit(FitError::CannotStart(_)) = &error else {
        return error;
    };
    let reason = match init {
        Init::Point(point) => model.rejection(point),
        _ => model.rejection(&vec![0.0; model.bound().unconstrained_dim()]),
    };
    match reason {
        Some(reason) => Error::NoStart(format!("{}\n{reason}", error.to_string().trim_end())),
        None => error,
    }
}
