//! Programs over exchangeable records. Such programs can be fitted by minibatches.
//!
//! [`compile`] compiles a program whose log density is a sum over exchangeable records. The caller passes the name of
//! the data variable that contains the number of records, and the function separates the prior from the likelihood.
//! [`fit`](crate::fit) then fits the resulting model either by minibatches or with all records at once.
//!
//! ```
//! use jensen::blackbox::minibatches::MinibatchSettings;
//! use jensen::exchangeable;
//! use jensen::prelude::*;
//!
//! # fn main() -> Result<(), Error> {
//! let data = DataSet::from_json(br#"{"N": 10, "y": [0, 1, 0, 0, 0, 0, 0, 0, 0, 1]}"#, "data")?;
//! let source = "
//!     data { int<lower=0> N; array[N] int<lower=0, upper=1> y; }
//!     parameters { real<lower=0, upper=1> theta; }
//!     model { theta ~ beta(1, 1); y ~ bernoulli(theta); }";
//! let model = exchangeable::compile(source, "bernoulli.stan", &data, &Build::default(), "N")?;
//! let mut options = Options::default();
//! options.settings.method = MinibatchSettings::of(5).into();
//! let fitted = fit(&model, &options)?;
//! // The posterior is beta(3, 9).
//! assert!((fitted.parameters()[0].mean - 0.25).abs() < 0.05);
//! # Ok(())
//! # }
//! ```

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use jensen_blackbox::records::RecordEstimator;
use jensen_blackbox::{FamilyChoice, FamilyKind, Method, RecordTrust, Subject};
use jensen_data::DataSet;
use jensen_density::{AllRecords, Posterior, RecordDensity};
use jensen_graph::RecordGraph;
use jensen_stan::lower::{RecordData, lower_records, record_data};

pub use crate::variances::{EstimatorVariance, VariancePoint, variance_section};

use crate::program::Source;
use crate::records::{
    RecordBlocks, RecordShards, RecordSource, RecordSteps, RecordTable, SHARD, Shard, ShardProgram,
    first_data,
};
use crate::stan::{Build, Model, checked_program};
use crate::{Error, Problem};

/// A program over exchangeable records.
pub type RecordModel = Model<AllRecords<RecordGraph>>;

/// A program over exchangeable records whose data are read in blocks.
pub type BlockModel = Model<AllRecords<RecordBlocks>>;

/// A program over exchangeable records whose data are divided into several files, called shards.
pub type ShardModel = Model<AllRecords<RecordShards>>;

/// The density of a program over exchangeable records, with the memory that it needs and its read errors.
pub trait Records: RecordDensity {
    /// Returns the number of bytes that one thread needs for one block of lanes.
    fn block_bytes(&self) -> usize;

    /// Returns an error outside the density itself, such as a failure to read the data. After such an error, the
    /// density returns NaN.
    fn failure(&self) -> Option<Error> {
        None
    }
}

impl Records for RecordGraph {
    fn block_bytes(&self) -> usize {
        Self::block_bytes(self)
    }
}

/// Returns the method with a minibatch size that does not exceed the number of records.
#[must_use]
pub fn with_at_most(mut method: Method, records: usize) -> Method {
    match &mut method {
        Method::Minibatch(settings) => settings.batch = records.min(settings.batch),
        Method::Smiso(settings) => settings.batch = records.min(settings.batch),
        Method::RecordTrust(settings) => settings.batch = records.min(settings.batch),
        _ => {}
    }
    method
}

/// Returns the method with the default gradient estimator for the model and the family. The default estimator is
/// `joint-exact` if the draw can be integrated out analytically. For other likelihoods that depend on a few linear
/// predictors, the default estimator is `joint`, because its table is small in this case. For all other models, the
/// default estimator is `joint-svrg`. TrustVI uses the control variate of `joint-svrg` for up to
/// [`RecordTrust::MOST_CONTROLLED`] coordinates.
#[must_use]
pub fn with_usual_estimator(
    mut method: Method,
    records: &impl RecordDensity,
    family: &FamilyChoice,
) -> Method {
    if let Method::RecordTrust(settings) = &mut method {
        settings.controlled = records.dim() <= RecordTrust::MOST_CONTROLLED;
    }
    if let Method::Minibatch(settings) = &mut method {
        let mean_field = matches!(
            family,
            FamilyChoice::Auto | FamilyChoice::Only(FamilyKind::MeanField)
        );
        settings.estimator = match records.linear() {
            Some(linear) if mean_field && linear.expectations().is_some() => {
                RecordEstimator::JointExact
            }
            Some(_) => RecordEstimator::Joint,
            None => RecordEstimator::JointSvrg,
        };
    }
    method
}

/// Compiles a program over exchangeable records. `count` is the name of the `int` data variable that contains the
/// number of records.
///
/// # Errors
/// Returns the same errors as [`Model::compile`]. Also fails if the log density is not a sum over the records. The
/// message then shows the line of the program that is not such a sum.
pub fn compile(
    source: &str,
    name: &str,
    data: &DataSet,
    build: &Build<'_>,
    count: &str,
) -> Result<RecordModel, Error> {
    Model::build(
        source,
        name,
        data,
        build,
        |posterior, options, execution| {
            let lowered = lower_records(posterior, options, count)?;
            let graph = RecordGraph::new(&lowered.prior, &lowered.likelihood, execution);
            Ok(AllRecords::new(graph))
        },
    )
}

/// Compiles a program over records that are read in blocks. `shared` contains the data that do not belong to single
/// records. After the program has been checked, the function calls `open` to open its records.
///
/// # Errors
/// Returns the same errors as [`compile`]. Also fails if the program needs all records at the same time, or if the data
/// cannot be read.
pub fn compile_blocks<S: RecordSource + 'static>(
    source: &str,
    name: &str,
    shared: &DataSet,
    build: &Build<'_>,
    count: &str,
    open: impl FnOnce(&[RecordData]) -> Result<S, Error>,
) -> Result<BlockModel, Error> {
    let mut digest = String::new();
    let open = |data: &[RecordData]| {
        let source = open(data)?;
        digest = source.digest();
        Ok(source)
    };
    let model = compile_with(source, name, shared, build, count, open, |blocks, _| blocks)?;
    Ok(model.with_more_data(&digest))
}

fn compile_with<S: RecordSource + 'static, D: Records>(
    source: &str,
    name: &str,
    shared: &DataSet,
    build: &Build<'_>,
    count: &str,
    open: impl FnOnce(&[RecordData]) -> Result<S, Error>,
    made: impl FnOnce(RecordBlocks, &DataSet) -> D,
) -> Result<Model<AllRecords<D>>, Error> {
    let program = checked_program(source, name, build)?;
    let data = record_data(&program, count);
    if data.is_empty() {
        return Err(Error::Input(format!(
            "no data variable of {name} has the size `{count}`, so `{count}` cannot be the number of records"
        )));
    }
    let records = open(&data)?;
    let (shared, first) = first_data(&program, count, shared, &records)?;
    Model::build(
        source,
        name,
        &first,
        build,
        |posterior, options, execution| {
            let records = Box::new(records);
            let blocks = RecordBlocks::new(
                posterior,
                count,
                shared.clone(),
                records,
                options,
                execution,
                build,
            )?;
            Ok(AllRecords::new(made(blocks, &shared)))
        },
    )
}

/// Compiles a program over records that are stored in several Parquet files, called shards. `steps` evaluates the
/// shards.
///
/// # Errors
/// Fails under the same conditions as [`compile_blocks`] for any of the shards.
pub fn compile_shards(
    source: &Source,
    shared: &DataSet,
    build: &Build<'_>,
    count: &str,
    paths: &[PathBuf],
    steps: impl FnOnce(&ShardProgram) -> Box<dyn RecordSteps>,
) -> Result<ShardModel, Error> {
    let paths = RecordTable::files(paths)?;
    let shards = RefCell::new(Vec::new());
    let blocks = Cell::new(1);
    let open = |data: &[RecordData]| {
        let opened = |path: &PathBuf, count| {
            RecordTable::open(std::slice::from_ref(path), data, SHARD, count)
        };
        for path in &paths {
            blocks.set(blocks.get().max(opened(path, None)?.edges().len() - 1));
        }
        let mut first = None;
        for path in &paths {
            let table = opened(path, Some(blocks.get()))?;
            shards.borrow_mut().push(Shard {
                path: path.clone(),
                digest: table.digest(),
                edges: table.edges().to_vec(),
            });
            first.get_or_insert(table);
        }
        first.ok_or_else(|| Error::Input("there are no shards".to_owned()))
    };
    let made = |first, shared: &DataSet| {
        let program = ShardProgram::new(source, shared, build, count, blocks.get());
        RecordShards::new(first, shards.take(), steps(&program))
    };
    let model = compile_with(
        &source.text,
        &source.model,
        shared,
        build,
        count,
        open,
        made,
    )?;
    let digests: Vec<&str> = model.records().files().map(|(_, digest)| digest).collect();
    let digest = digests.concat();
    Ok(model.with_more_data(&digest))
}

impl<D: Records> Model<AllRecords<D>> {
    /// Returns the density of the records.
    pub fn records(&self) -> &D {
        self.of().density()
    }
}

impl<D: Records> Problem for Model<AllRecords<D>> {
    type Density = AllRecords<D>;

    fn density(&self) -> &Self::Density {
        self.of()
    }

    fn failure(&self) -> Option<Error> {
        self.records().failure()
    }

    fn posterior(&self) -> &dyn Posterior {
        self.bound()
    }

    fn subject(&self) -> Subject {
        self.digests()
    }

    fn build_seconds(&self) -> f64 {
        self.seconds()
    }

    fn remarks(&self) -> Vec<String> {
        self.notes()
    }

    fn block_bytes(&self) -> usize {
        self.records().block_bytes()
    }
}
