//! The settings for fits by minibatches, and the methods that they select.

use jensen_blackbox::minibatches::{Judge, MinibatchSettings, SmisoSettings};
use jensen_blackbox::records::{RecordEstimator, VarianceSettings};
use jensen_blackbox::{FamilyChoice, Method, RecordTrust, TrustSettings};
use jensen_density::RecordDensity;

use super::request::{EstimatorName, FitRequest, MethodName};
use crate::Error;
use crate::exchangeable::{with_at_most, with_usual_estimator};

const BATCH: u64 = 100;

const BLOCK_BATCH: u64 = 1000;

const ALPHA: f64 = 0.9;

/// The default weight of `cv` in `ens`, which gives `inc` the same weight.
const EQUAL: f64 = 0.5;

/// The sample size for estimating a variance. Each element of the sample is a minibatch with a draw.
const VARIANCE_SAMPLES: usize = 64;

fn without_records(request: &FitRequest) -> Result<Option<Method>, Error> {
    let needs = |flag: &str| {
        Err(Error::Setting(format!(
            "{flag} needs --exchangeable N, where N is the data variable that counts the records"
        )))
    };
    if request.batch.is_some() {
        return needs("--batch");
    }
    if request.records.is_some() {
        return needs("--records");
    }
    if request.trace_variance.is_some() {
        return needs("--trace-variance");
    }
    if request.method == Some(MethodName::Smiso) {
        return needs("--method smiso");
    }
    match request.estimator {
        None | Some(EstimatorName::Naive | EstimatorName::Stl) => Ok(None),
        Some(_) => needs("this --estimator"),
    }
}

fn refuse_all_over(request: &FitRequest) -> Result<(), Error> {
    let refuse = |what: &str| {
        Err(Error::Setting(format!(
            "{what} visits records from all blocks in every iteration, but --records reads one block at a \
             time: remove it, or give the data in one file without --records"
        )))
    };
    match request.method {
        Some(MethodName::Smiso) => return refuse("--method smiso"),
        Some(MethodName::Trust) => return refuse("--method trust"),
        _ => {}
    }
    if request.trace_variance.is_some() {
        return refuse("--trace-variance");
    }
    match request.estimator {
        Some(EstimatorName::Inc) => refuse("--estimator inc"),
        Some(EstimatorName::Ens) => refuse("--estimator ens"),
        Some(EstimatorName::JointExact) => refuse("the table of --estimator joint-exact"),
        _ => Ok(()),
    }
}

pub(super) fn method(request: &FitRequest) -> Result<Option<Method>, Error> {
    if request.exchangeable.is_none() {
        return without_records(request);
    }
    if request.elbo_samples.is_some() || request.advi_iters.is_some() {
        return Err(Error::setting(
            "--elbo-samples and --advi-iters belong to --method advi, which does not support minibatches",
        ));
    }
    let in_blocks = request.records.is_some();
    if in_blocks {
        refuse_all_over(request)?;
    }
    let usual = if in_blocks { BLOCK_BATCH } else { BATCH };
    let batch = request.batch.unwrap_or(usual) as usize;
    let draws = request.grad_samples.unwrap_or(1) as usize;
    match request.method {
        None | Some(MethodName::Auto | MethodName::Bbvi) => {
            let usual = MinibatchSettings::default();
            let judge = Judge::default();
            Ok(Some(Method::Minibatch(MinibatchSettings {
                estimator: request
                    .estimator
                    .map_or(RecordEstimator::JointSvrg, |name| estimator(name, request)),
                optimiser: request.optimiser(),
                batch,
                draws,
                judge: Some(Judge {
                    tolerance: request.tol.unwrap_or(judge.tolerance),
                    ..judge
                }),
                variance: request.trace_variance.map(|every| VarianceSettings {
                    every,
                    samples: VARIANCE_SAMPLES,
                }),
                ..usual
            })))
        }
        Some(MethodName::Smiso) => {
            if request.estimator.is_some() || request.optimizer.is_some() {
                return Err(Error::setting(
                    "--method smiso has its own estimator and steps: remove --estimator and --optimizer",
                ));
            }
            if request.trace_variance.is_some() {
                return Err(Error::setting(
                    "--method smiso has no gradient estimator to trace: remove --trace-variance",
                ));
            }
            if request.tol.is_some() {
                return Err(Error::setting(
                    "--method smiso has no stopping rule: remove --tol, and give --max-iters or --max-seconds",
                ));
            }
            Ok(Some(Method::Smiso(SmisoSettings {
                alpha: ALPHA,
                gamma: request.step_size,
                momentum: request.momentum.unwrap_or(0.0),
                batch,
                draws,
                memory_limit: None,
            })))
        }
        Some(MethodName::Trust) => {
            if request.trace_variance.is_some() {
                return Err(Error::setting(
                    "--method trust has no gradient estimator to trace: remove --trace-variance",
                ));
            }
            if request.optimizer.is_some() || request.step_size.is_some() {
                return Err(Error::setting(
                    "--method trust has its own steps: remove --optimizer and --step-size",
                ));
            }
            let controlled = match request.estimator {
                // Without a given estimator, the number of coordinates decides later.
                None | Some(EstimatorName::Naive) => false,
                Some(EstimatorName::JointSvrg) => true,
                Some(_) => {
                    return Err(Error::setting(
                        "--method trust has the estimators `naive` and `joint-svrg`",
                    ));
                }
            };
            let usual = request.trust.over(TrustSettings::default())?;
            Ok(Some(Method::RecordTrust(RecordTrust {
                trust: TrustSettings {
                    gradient_draws: request
                        .grad_samples
                        .map_or(usual.gradient_draws, |draws| draws as usize),
                    tolerance: Some(request.tol.unwrap_or(Judge::default().tolerance)),
                    ..usual
                },
                batch,
                controlled,
            })))
        }
        Some(_) => Err(Error::setting(
            "--exchangeable needs --method bbvi (its default), smiso or trust",
        )),
    }
}

pub(super) fn for_records(
    request: &FitRequest,
    method: Method,
    model: &impl RecordDensity,
    family: &FamilyChoice,
) -> Result<Method, Error> {
    let records = model.records();
    let method = match request.batch {
        Some(batch) if batch > records as u64 => {
            let count = request.exchangeable.as_deref().unwrap_or("");
            return Err(Error::Setting(format!(
                "--batch {batch} is more than the {records} records that `{count}` counts"
            )));
        }
        Some(_) => method,
        None => with_at_most(method, records),
    };
    Ok(match request.estimator {
        Some(_) => method,
        None => with_usual_estimator(method, model, family),
    })
}

fn estimator(name: EstimatorName, request: &FitRequest) -> RecordEstimator {
    match name {
        EstimatorName::Naive => RecordEstimator::Naive,
        EstimatorName::Stl => RecordEstimator::Stl,
        EstimatorName::Cv => RecordEstimator::Cv,
        EstimatorName::Inc => RecordEstimator::Inc,
        EstimatorName::Ens => RecordEstimator::Ens {
            beta: request.ens_weight.unwrap_or(EQUAL),
        },
        EstimatorName::Joint => RecordEstimator::Joint,
        EstimatorName::JointMean => RecordEstimator::JointMean,
        EstimatorName::JointPaper => RecordEstimator::JointPaper,
        EstimatorName::JointSvrg => RecordEstimator::JointSvrg,
        EstimatorName::JointExact => RecordEstimator::JointExact,
    }
}
