//! Programs over exchangeable records: prior and likelihood apart, fitted by minibatches.
//!
//! [`compile`] takes the name of the data variable that counts the records. Its model is fitted by
//! [`fit`](crate::fit) as any other: by methods of minibatches, or of all records at once.
//!
//! ```
//! use jensen::blackbox::records::MinibatchSettings;
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

use jensen_blackbox::records::RecordEstimator;
use jensen_blackbox::{FamilyChoice, FamilyKind, Method, Subject};
use jensen_data::DataSet;
use jensen_density::{AllRecords, Posterior, RecordDensity};
use jensen_graph::RecordGraph;
use jensen_stan::lower::lower_records;

pub use crate::variances::{EstimatorVariance, VariancePoint, variance_section};

use crate::stan::{Build, Model};
use crate::{Error, Problem};

/// A program over exchangeable records.
pub type RecordModel = Model<AllRecords<RecordGraph>>;

/// The method with minibatches of no more records than there are.
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

/// The method with the estimator that suits model and family: `joint-exact` where the draw can be
/// integrated out, `joint` for other likelihoods of few linear predictors, whose table is small, and
/// `joint-svrg` for other models.
#[must_use]
pub fn with_usual_estimator(
    mut method: Method,
    model: &RecordModel,
    family: FamilyChoice,
) -> Method {
    if let Method::Minibatch(settings) = &mut method {
        let mean_field = matches!(
            family,
            FamilyChoice::Auto | FamilyChoice::Only(FamilyKind::MeanField)
        );
        settings.estimator = match model.records().linear() {
            Some(linear) if mean_field && linear.expectations().is_some() => {
                RecordEstimator::JointExact
            }
            Some(_) => RecordEstimator::Joint,
            None => RecordEstimator::JointSvrg,
        };
    }
    method
}

/// Parses, checks, binds and lowers a program whose `int` data variable `count` counts exchangeable
/// records.
///
/// # Errors
/// As [`Model::compile`], and where the log density is no sum over the records, with the line that makes
/// it none.
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

impl RecordModel {
    /// Prior and likelihood of any records.
    pub fn records(&self) -> &RecordGraph {
        self.of().density()
    }
}

impl Problem for RecordModel {
    type Density = AllRecords<RecordGraph>;

    fn density(&self) -> &Self::Density {
        self.of()
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
