//! `jensen fit --exchangeable`: the flags of minibatches, and how they become a method.

use jensen::blackbox::records::{
    Judge, MinibatchSettings, RecordEstimator, SmisoSettings, VarianceSettings,
};
use jensen::blackbox::{Method, RecordTrust, TrustSettings};

use crate::failure::Failure;
use crate::flags::{EstimatorName, FitFlags, MethodName};

/// Records of a batch unless said otherwise, or all if there are fewer.
pub const BATCH: u64 = 100;

/// SMISO's weight of the newest step, unless said otherwise.
const ALPHA: f64 = 0.9;

/// Pairs of a batch and a draw behind each traced variance.
const VARIANCE_SAMPLES: usize = 64;

/// The method that the flags ask for; `None` without `--exchangeable`.
pub fn method(flags: &FitFlags) -> Result<Option<Method>, Failure> {
    if flags.exchangeable.is_none() {
        let needs = |flag: &str| {
            Err(Failure::usage(format!(
                "{flag} needs --exchangeable N, the data variable that counts the records"
            )))
        };
        if flags.batch.is_some() {
            return needs("--batch");
        }
        if flags.trace_variance.is_some() {
            return needs("--trace-variance");
        }
        if flags.method == Some(MethodName::Smiso) {
            return needs("--method smiso");
        }
        return match flags.estimator {
            None | Some(EstimatorName::Naive | EstimatorName::Stl) => Ok(None),
            Some(_) => needs("this --estimator"),
        };
    }
    if flags.elbo_samples.is_some() || flags.advi_iters.is_some() {
        return Err(Failure::usage(
            "--elbo-samples and --advi-iters belong to --method advi, which takes no minibatches",
        ));
    }
    let batch = flags.batch.unwrap_or(BATCH) as usize;
    let draws = flags.grad_samples.unwrap_or(1) as usize;
    match flags.method {
        None | Some(MethodName::Auto | MethodName::Bbvi) => {
            let usual = MinibatchSettings::default();
            let judge = Judge::default();
            Ok(Some(Method::Minibatch(MinibatchSettings {
                estimator: flags
                    .estimator
                    .map_or(RecordEstimator::JointSvrg, estimator),
                optimiser: flags.optimiser(),
                batch,
                draws,
                judge: Some(Judge {
                    tolerance: flags.tol.unwrap_or(judge.tolerance),
                    ..judge
                }),
                variance: flags.trace_variance.map(|every| VarianceSettings {
                    every,
                    samples: VARIANCE_SAMPLES,
                }),
                ..usual
            })))
        }
        Some(MethodName::Smiso) => {
            if flags.estimator.is_some() || flags.optimizer.is_some() {
                return Err(Failure::usage(
                    "--method smiso has an estimator and steps of its own: leave out --estimator and --optimizer",
                ));
            }
            if flags.trace_variance.is_some() {
                return Err(Failure::usage(
                    "--method smiso has no gradient estimator whose variance could be traced: leave out --trace-variance",
                ));
            }
            if flags.tol.is_some() {
                return Err(Failure::usage(
                    "--method smiso has no stopping rule: leave out --tol, and give --max-iters or --max-seconds",
                ));
            }
            Ok(Some(Method::Smiso(SmisoSettings {
                alpha: ALPHA,
                gamma: flags.step_size,
                batch,
                draws,
                memory_limit: None,
            })))
        }
        Some(MethodName::Trust) => {
            if flags.trace_variance.is_some() {
                return Err(Failure::usage(
                    "--method trust has no gradient estimator whose variance could be traced: leave out --trace-variance",
                ));
            }
            if flags.estimator.is_some() || flags.optimizer.is_some() || flags.step_size.is_some() {
                return Err(Failure::usage(
                    "--method trust has gradients and steps of its own: leave out --estimator, --optimizer and --step-size",
                ));
            }
            let usual = TrustSettings::default();
            Ok(Some(Method::RecordTrust(RecordTrust {
                trust: TrustSettings {
                    gradient_draws: flags
                        .grad_samples
                        .map_or(usual.gradient_draws, |draws| draws as usize),
                    tolerance: Some(flags.tol.unwrap_or(Judge::default().tolerance)),
                    ..usual
                },
                batch,
            })))
        }
        Some(_) => Err(Failure::usage(
            "--exchangeable goes with --method bbvi (the default there), smiso or trust",
        )),
    }
}

fn estimator(name: EstimatorName) -> RecordEstimator {
    match name {
        EstimatorName::Naive => RecordEstimator::Naive,
        EstimatorName::Stl => RecordEstimator::Stl,
        EstimatorName::Cv => RecordEstimator::Cv,
        EstimatorName::Inc => RecordEstimator::Inc,
        EstimatorName::Ens => RecordEstimator::Ens { beta: 0.5 },
        EstimatorName::Joint => RecordEstimator::Joint,
        EstimatorName::JointSvrg => RecordEstimator::JointSvrg,
        EstimatorName::JointExact => RecordEstimator::JointExact,
    }
}
