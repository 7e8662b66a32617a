//! Estimates of the memory that a fit needs.

use jensen_density::RecordDensity;

use super::{Batches, RecordError, RecordEstimator};
use crate::family::Family;

/// The largest number of records for which an incremental estimator is chosen without advice. Its table has a row for
/// every record.
const SMALL: usize = 10_000;

/// The number of minibatches whose coordinates are counted to predict the average.
const PROBES: usize = 8;

/// The number of parameter vectors that any fit stores in addition to its table: ω, its best and average values, the
/// two moments of the optimiser, and gradients.
const COPIES: u64 = 8;

/// The expected memory of a fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// The number of bytes of the estimator's table.
    pub table: u64,
    /// The number of bytes of the parameters, the optimiser and scratch memory.
    pub rest: u64,
}

impl Footprint {
    /// Returns the total number of bytes.
    pub fn total(&self) -> u64 {
        self.table.saturating_add(self.rest)
    }
}

/// Returns the peak memory of a fit with `estimator`, excluding the memory of the model.
///
/// For a linear predictor, the table has K numbers per record, and a table of expectations has two numbers per record.
/// For any other model, the table has `2⌈N/B⌉ − 1` slots. Each slot stores a mean (or all of ω for `inc` and `ens`). If
/// a batch uses few coordinates, the slot stores only these.
pub fn footprint<D: RecordDensity>(
    density: &D,
    family: &dyn Family,
    estimator: RecordEstimator,
    batches: &Batches,
    draws: usize,
) -> Footprint {
    let (n, d) = (density.records() as u64, density.dim() as u64);
    let parameters = family.parameters() as u64;
    let width = density.linear().map(|linear| linear.width() as u64);
    let slots = (2 * batches.per_epoch() as u64).saturating_sub(1);
    let numbers = match (estimator, width) {
        (RecordEstimator::Naive | RecordEstimator::Stl | RecordEstimator::Cv, _) => 0,
        (RecordEstimator::Inc | RecordEstimator::Ens { .. } | RecordEstimator::JointPaper, _) => {
            slots * parameters + d + n
        }
        (RecordEstimator::Joint | RecordEstimator::JointMean, Some(width)) => n * width + 2 * d,
        (RecordEstimator::Joint | RecordEstimator::JointMean, None) => {
            let kept = touched(density, batches).map_or(d, |touched| touched + touched / 2);
            slots * kept + d + n
        }
        (RecordEstimator::JointExact, _) => 2 * n + 2 * d,
        (RecordEstimator::JointSvrg, width) => n * width.unwrap_or(0) + 3 * d,
    };
    let lanes = draws as u64 + 2;
    // Only one block of the order of an epoch is in memory at a time.
    let block = |edges: &[u32]| edges.windows(2).map(|edge| edge[1] - edge[0]).max();
    let ordered = density.blocks().and_then(block).map_or(n, u64::from);
    Footprint {
        table: 8 * numbers,
        rest: 8 * (COPIES * parameters + 6 * d * lanes + ordered),
    }
}

fn touched<D: RecordDensity>(density: &D, batches: &Batches) -> Option<u64> {
    let order = batches.order(0);
    let probes = PROBES.min(batches.per_epoch());
    let mut coordinates = Vec::new();
    let mut total = 0;
    for k in 0..probes {
        if !density.support(&order[batches.range(k)], &mut coordinates) {
            return None;
        }
        total += coordinates.len() as u64;
    }
    Some(total / probes as u64)
}

/// Checks a request and returns the memory that it needs. The function rejects densities without parameters, estimators
/// that read too many records in each iteration, and tables larger than `limit` bytes.
///
/// # Errors
/// Fails with an error that states the relevant numbers and a remedy.
pub fn admit<D: RecordDensity>(
    density: &D,
    family: &dyn Family,
    estimator: RecordEstimator,
    batches: &Batches,
    draws: usize,
    limit: Option<u64>,
) -> Result<Footprint, RecordError> {
    if density.dim() == 0 {
        return Err(RecordError::NoParameters);
    }
    if draws == 0 {
        return Err(RecordError::Setting(
            "the number of draws per iteration is 0: choose at least 1".into(),
        ));
    }
    if let RecordEstimator::Ens { beta } = estimator
        && !(0.0..=1.0).contains(&beta)
    {
        return Err(RecordError::Setting(format!(
            "the weight of `cv` in `ens` is {beta}: choose a number from 0 to 1"
        )));
    }
    if estimator.incremental() > 0.0 && batches.records() > SMALL {
        return Err(RecordError::TooManyRecords {
            estimator: estimator.name(),
            records: batches.records(),
            limit: SMALL,
        });
    }
    if estimator == RecordEstimator::JointExact {
        let offered = density.linear().is_some_and(|l| l.expectations().is_some());
        if !offered || !family.is_factorised() {
            let lack = if offered {
                "the family is not mean-field"
            } else {
                "the likelihood of this model has another form"
            };
            return Err(RecordError::Setting(format!(
                "the estimator `joint-exact` needs a likelihood with one linear predictor per record and a \
                 mean-field family, but {lack}: choose `joint`"
            )));
        }
    }
    let footprint = footprint(density, family, estimator, batches, draws);
    match limit {
        Some(limit) if footprint.total() > limit => Err(RecordError::Memory {
            what: match estimator {
                _ if estimator.remembers_means() && density.linear().is_some() => {
                    "the predictors of all records and the state of the optimiser"
                }
                RecordEstimator::Joint => "the snapshots of the estimator `joint`",
                RecordEstimator::JointMean => "the snapshots of the estimator `joint-mean`",
                RecordEstimator::JointPaper => "the snapshots of the estimator `joint-paper`",
                RecordEstimator::Inc => "the snapshots of the estimator `inc`",
                RecordEstimator::Ens { .. } => "the snapshots of the estimator `ens`",
                _ => "parameters, gradients and the state of the optimiser",
            },
            needed: footprint.total(),
            limit,
            svrg: (estimator.remembers_means() && density.linear().is_none()).then(|| {
                let svrg = RecordEstimator::JointSvrg;
                self::footprint(density, family, svrg, batches, draws).total()
            }),
        }),
        _ => Ok(footprint),
    }
}
