//! The settings of a fit, with their defaults.

use std::path::PathBuf;

use jensen_blackbox::{
    AdviSettings, AdviStop, AutoSettings, BbviSettings, Estimator, FamilyChoice, FamilyKind,
    HfsgviSettings, Init, Method, Optimiser, PaperTrustSettings, Policy, RefineSettings,
    RefineWhen, Rule, SaaSettings, Schedule, Settings, StartSettings, TrustSettings,
};
use jensen_math::simd::Simd;
use jensen_run::Budget;
use serde::{Deserialize, Serialize};

use super::minibatch;
use super::trust::TrustRequest;
use crate::fit::DRAWS;
use crate::job::{MEMORY_LIMIT, words};
use crate::{Covariance, Error, Options, Save};

/// The maximum number of iterations. In practice every method stops long before it reaches this number.
pub(super) const MAX_ITERS: u64 = 100_000;

/// The algorithm of a fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum MethodName {
    /// TrustVI for mean fields and Newton's method on fixed draws for richer families; bbvi if --estimator, --optimizer
    /// or --step-size is given
    Auto,
    /// TrustVI: stochastic trust regions
    Trust,
    /// ADVI as Stan defines it
    Advi,
    /// Hessian-free Newton steps without a trust region, a baseline
    Hfsgvi,
    /// Stochastic gradients: estimator, optimiser, averaged iterates
    Bbvi,
    /// Incremental minimisation over minibatches, with --exchangeable
    Smiso,
}

/// The gradient estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum EstimatorName {
    /// Reparameterisation with closed-form entropy
    Naive,
    /// Sticking the landing: the path derivative alone
    Stl,
    /// Minibatches: minus a second-order expansion at the mean, against Monte-Carlo noise
    Cv,
    /// Minibatches: a table of all records' gradients, against subsampling noise; few records only
    Inc,
    /// Minibatches: cv and inc in equal parts
    Ens,
    /// Minibatches: the joint control variate, against both kinds of noise
    Joint,
    /// Minibatches: joint for the mean alone, as in its paper
    JointMean,
    /// Minibatches: joint as printed, with stored spreads and the prior in the table
    JointPaper,
    /// Minibatches: the joint control variate with one anchor per epoch, which needs little memory
    JointSvrg,
    /// Minibatches: joint with the draws integrated out, for one linear predictor per record and a mean-field family
    JointExact,
}

/// The optimiser of stochastic gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum OptimizerName {
    Sgd,
    Adam,
    Adagrad,
    Rmsprop,
}

/// When to refine an approximation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum RefineName {
    /// If the default approximation alone is not trusted
    Auto,
    /// Never
    None,
    /// Always
    Always,
}

/// The parameterisation of groups in a hierarchical program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum CentringName {
    /// Centred, non-centred or in between, chosen for each element by the data
    Auto,
    /// As in the program
    Off,
}

/// The source of the covariances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum CovarianceName {
    /// The fitted family
    Family,
    /// Linear response at the mean-field optimum, which corrects mean-field variances
    LinearResponse,
}

/// The settings of the fit of a program. Absent settings take their defaults. A setting that the method ignores is an
/// error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct FitRequest {
    /// Algorithm [default: auto]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_enum, value_name = "NAME", help_heading = "Method")
    )]
    pub method: Option<MethodName>,
    /// auto, meanfield, fullrank, sparse, conditional (conditionally structured Gaussian), lowrank=R, mixture=K (K
    /// Gaussians, up to 128 dimensions; K = 8 if omitted) or flow=L (L affine coupling layers on the best Gaussian; L =
    /// 6 if omitted). auto starts with meanfield. If its k̂ is too large, fullrank follows. With at least 100
    /// dimensions, conditional or sparse follows instead if it suits the model. In more than 500 dimensions, fullrank
    /// does not follow. With at least 500 dimensions, auto starts with conditional if it suits the model. If starts find several
    /// distinct modes, a mixture follows in up to 64 dimensions [default: auto]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FAMILY", value_parser = parse_family, help_heading = "Method"))]
    pub family: Option<String>,
    /// Refine the approximation to draws of the posterior by annealed sequential Monte Carlo; auto refines if method
    /// and family are auto and the approximation alone is not trusted [default: auto]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_enum, value_name = "WHEN", help_heading = "Method")
    )]
    pub refine: Option<RefineName>,
    /// Fit group effects, such as theta in `theta ~ normal(mu, tau)`, centred, non-centred or in between, as the data
    /// suggest; names and draws stay those of the program [default: auto where method and family are]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_enum, value_name = "HOW", help_heading = "Method")
    )]
    pub centring: Option<CentringName>,
    /// Covariance of the draws; linear-response fits a mean-field family and corrects its variances [default: family]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_enum, value_name = "NAME", help_heading = "Method")
    )]
    pub covariance: Option<CovarianceName>,
    /// Parameters whose covariance linear response corrects, separated by commas, such as `mu,beta[2]`; required above
    /// 600 dimensions [default: all]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NAMES", help_heading = "Method")
    )]
    pub covariance_of: Option<String>,
    /// The `int` data variable that counts exchangeable records; fit by minibatches of records
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", help_heading = "Method"))]
    pub exchangeable: Option<String>,
    /// Parquet files or folders whose rows are the records of --exchangeable; they may be larger than memory. Columns
    /// are named after the data of size N, with lists for vectors; DATA contains the other data, without N
    #[cfg_attr(feature = "clap", arg(long, value_name = "PARQUET", num_args = 1.., help_heading = "Method"))]
    pub records: Option<Vec<PathBuf>>,
    /// Records of a minibatch [default: 100; with --records 1000]
    #[cfg_attr(feature = "clap", arg(long, value_name = "B", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Method"))]
    pub batch: Option<u64>,
    /// Gradient estimator of bbvi [default: stl; with --exchangeable joint-exact for likelihoods of one linear
    /// predictor under a mean-field family, joint for those of a few, joint-svrg for others]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_enum, value_name = "NAME", help_heading = "Method")
    )]
    pub estimator: Option<EstimatorName>,
    /// Weight of cv in the estimator ens; inc has the rest of the weight [default: 0.5]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BETA", value_parser = words::weight, help_heading = "Method"))]
    pub ens_weight: Option<f64>,
    /// Every K iterations, write the variance of every gradient estimator to the trace: total, subsampling part and
    /// Monte-Carlo part; needs --exchangeable and --out
    #[cfg_attr(feature = "clap", arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Method"))]
    pub trace_variance: Option<u64>,
    /// Optimiser of bbvi [default: adam]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_enum, value_name = "NAME", help_heading = "Method")
    )]
    pub optimizer: Option<OptimizerName>,
    /// Step size of bbvi's optimiser, or ADVI's eta [default: the optimiser's own; ADVI searches]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Method"))]
    pub step_size: Option<f64>,
    /// Momentum of smiso: this part of each step is added to the next [default: 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BETA", value_parser = words::below_one, help_heading = "Method"))]
    pub momentum: Option<f64>,
    /// Draws of one gradient of bbvi [default: 64] or advi [default: 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "M", value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = "Method"))]
    pub grad_samples: Option<u64>,
    /// Draws of advi's estimates of the bound [default: 100]
    #[cfg_attr(feature = "clap", arg(long, value_name = "M", value_parser = clap::value_parser!(u64).range(2..=1_000_000), help_heading = "Method"))]
    pub elbo_samples: Option<u64>,
    /// ADVI's own limit on iterations, which also sets the length of its stopping window [default: 10000]
    #[cfg_attr(feature = "clap", arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Method"))]
    pub advi_iters: Option<u64>,
    /// Stop within this many nats of the family's best bound; with advi, replaces Stan's relative rule
    /// [default: 0.01 or 0.0003 per dimension (auto, trust), 0.5 (bbvi, hfsgvi)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NATS", value_parser = words::positive, help_heading = "Method"))]
    pub tol: Option<f64>,
    /// Start at 0, at a random point, or at the point in FILE.json: an object with parameter values (other parameters
    /// start at 0), or a list with an unconstrained point [default: 0]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "0|random|FILE", help_heading = "Method")
    )]
    pub init: Option<String>,

    /// Largest error of a mean in posterior standard deviations, for a fit to be trusted [default: 0.1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SDS", value_parser = words::positive, help_heading = "Accuracy"))]
    pub mean_error: Option<f64>,
    /// Largest relative error of a standard deviation, for a fit to be trusted; a standard deviation with a larger
    /// Monte-Carlo error is `null` [default: 0.08]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SHARE", value_parser = words::positive, help_heading = "Accuracy"))]
    pub sd_error: Option<f64>,
    /// Probability that a single test rejects a correct fit or prolongs it [default: 0.05]
    #[cfg_attr(feature = "clap", arg(long, value_name = "P", value_parser = words::positive, help_heading = "Accuracy"))]
    pub failure_probability: Option<f64>,
    /// Effective draws of each quantity in a refined fit [default: 512]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = words::positive, help_heading = "Accuracy"))]
    pub effective_draws: Option<f64>,

    /// Gradients of a refinement in up to 100 dimensions; in more, the number is inversely proportional to the
    /// dimension; if the density is cheap, up to five times as many [default: 2000000]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Budget"))]
    pub max_gradients: Option<u64>,
    /// Largest number of iterations; a shorter run is a prefix of a longer one [default: 100000]
    #[cfg_attr(feature = "clap", arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Budget"))]
    pub max_iters: Option<u64>,
    /// Largest number of seconds
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", value_parser = words::positive, help_heading = "Budget"))]
    pub max_seconds: Option<f64>,
    /// Refuse a run that needs more memory than this [default: 8GiB]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE", value_parser = words::bytes, help_heading = "Budget"))]
    pub memory_limit: Option<u64>,

    /// Posterior draws [default: 1000]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Run"))]
    pub draws: Option<u64>,
    /// Variables to draw, summarise and write, separated by commas: parameters, transformed, generated, all, or names;
    /// Jensen computes generated quantities only if one of them is listed [default: all]
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHAT", help_heading = "Run"))]
    pub save: Option<String>,
    /// Resample the draws by importance weights from ten times as many
    #[cfg_attr(feature = "clap", arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL", hide_possible_values = true, help_heading = "Run"))]
    pub importance_resample: Option<bool>,
    /// Seed of every random number; same seed, same bits, on any number of threads [default: 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", help_heading = "Run"))]
    pub seed: Option<u64>,
    /// Instruction set: auto, avx512, avx2 or scalar [default: auto]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_parser = words::simd_name, help_heading = "Run"))]
    pub simd: Option<String>,
    /// Seconds between checkpoints; needs --out or --resume [default: 30]
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", value_parser = words::not_negative, help_heading = "Output"))]
    pub checkpoint_every: Option<f64>,
    /// Parameters of TrustVI.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub trust: TrustRequest,
}

impl FitRequest {
    /// Returns the instruction set that the kernels use.
    ///
    /// # Errors
    /// Fails if the machine does not support the requested instruction set.
    pub fn simd(&self) -> Result<Simd, Error> {
        words::simd(self.simd.as_deref())
    }

    /// Returns the selection of the variables to report.
    pub fn saved(&self) -> Save {
        Save::of_words(self.save.as_deref().unwrap_or(""))
    }

    fn method(&self) -> MethodName {
        if self.exchangeable.is_some() {
            // Minibatches have their own methods. All other settings of these methods are those of stochastic
            // gradients.
            return MethodName::Bbvi;
        }
        match self.method {
            None | Some(MethodName::Auto) => {
                let stochastic = self.estimator.is_some()
                    || self.optimizer.is_some()
                    || self.step_size.is_some();
                if stochastic {
                    MethodName::Bbvi
                } else {
                    MethodName::Auto
                }
            }
            Some(named) => named,
        }
    }

    fn policy(&self) -> Result<Policy, Error> {
        let usual = Policy::default();
        let policy = Policy {
            mean_error: self.mean_error.unwrap_or(usual.mean_error),
            sd_error: self.sd_error.unwrap_or(usual.sd_error),
            failure_probability: self
                .failure_probability
                .unwrap_or(usual.failure_probability),
            effective_draws: self.effective_draws.unwrap_or(usual.effective_draws),
            max_gradients: self.max_gradients.unwrap_or(usual.max_gradients),
        };
        policy.validate()?;
        Ok(policy)
    }

    /// Returns the settings of a fit that starts at `init`.
    ///
    /// # Errors
    /// Fails if a setting is invalid or would have no effect.
    pub fn settings(&self, init: Init) -> Result<Settings, Error> {
        let name = self.method();
        minibatch::method(self)?;
        self.refuse_numbers()?;
        self.refuse_foreign(name)?;
        let method = match name {
            MethodName::Auto => Method::Auto(AutoSettings {
                trust: TrustSettings {
                    tolerance: self.tol,
                    ..self.trust.over(AutoSettings::default().trust)?
                },
                saa: SaaSettings {
                    tolerance: self.tol,
                    ..SaaSettings::default()
                },
            }),
            MethodName::Trust => {
                let settings = TrustSettings {
                    tolerance: self.tol,
                    ..self.trust.over(TrustSettings::default())?
                };
                match self.trust.paper {
                    true => Method::PaperTrust(PaperTrustSettings::of(settings)),
                    false => Method::Trust(settings),
                }
            }
            MethodName::Advi => Method::Advi(self.advi()),
            MethodName::Hfsgvi => Method::Hfsgvi(self.hfsgvi()),
            MethodName::Bbvi | MethodName::Smiso => Method::Bbvi(self.bbvi()),
        };
        let policy = self.policy()?;
        let family = match self.family.as_deref() {
            None | Some("auto") if self.covariance()? != Covariance::Family => {
                FamilyChoice::Only(FamilyKind::MeanField)
            }
            None | Some("auto") => FamilyChoice::Auto,
            Some(name) => FamilyChoice::Only(name.parse::<FamilyKind>()?),
        };
        Ok(Settings {
            seed: self.seed(),
            simd: self.simd()?,
            method,
            family,
            start: StartSettings {
                init,
                ..StartSettings::default()
            },
            policy,
            evaluation_draws: policy.evaluation_draws(),
            refine: RefineSettings::of(match self.refine {
                None | Some(RefineName::Auto) => RefineWhen::Auto,
                Some(RefineName::None) => RefineWhen::Never,
                Some(RefineName::Always) => RefineWhen::Always,
            }),
            ..Settings::default()
        })
    }

    /// Returns whether a fit with these settings chooses a centring automatically.
    pub fn has_centring(&self, settings: &Settings) -> bool {
        match self.centring {
            Some(CentringName::Off) => false,
            Some(CentringName::Auto) => true,
            None => settings.is_policy(),
        }
    }

    /// Returns the options of a fit that starts at `init`, on the given number of threads.
    ///
    /// # Errors
    /// Fails under the same conditions as [`settings`](Self::settings).
    pub fn options(&self, init: Init, threads: usize) -> Result<Options, Error> {
        Ok(Options {
            settings: self.settings(init)?,
            draws: self.draws.map_or(DRAWS, |draws| draws as usize),
            resample: self.importance_resample.unwrap_or(false),
            threads,
            memory_limit: self.memory_limit(),
            covariance: self.covariance()?,
        })
    }

    /// Returns the limits on the iterations and the time of the run.
    pub fn budget(&self) -> Budget {
        Budget {
            max_seconds: self.max_seconds,
            ..Budget::iterations(self.max_iters.unwrap_or(MAX_ITERS))
        }
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// Returns the maximum memory that the fit may use, in bytes.
    pub fn memory_limit(&self) -> u64 {
        self.memory_limit.unwrap_or(MEMORY_LIMIT)
    }

    /// Returns the method that determines the covariances of the draws.
    ///
    /// # Errors
    /// Fails if linear response is requested for a family other than the mean-field family. Also fails if the request
    /// lists parameters to correct but does not request linear response.
    pub fn covariance(&self) -> Result<Covariance, Error> {
        if self.covariance != Some(CovarianceName::LinearResponse) {
            return match self.covariance_of {
                None => Ok(Covariance::Family),
                Some(_) => Err(Error::setting(
                    "--covariance-of needs --covariance linear-response",
                )),
            };
        }
        let family = self.family.as_deref().unwrap_or("auto");
        if !matches!(family, "auto" | "meanfield") {
            return Err(Error::Setting(format!(
                "--covariance linear-response corrects mean-field fits: remove --family {family}"
            )));
        }
        let names = self.covariance_of.as_deref().unwrap_or("");
        Ok(Covariance::LinearResponse {
            of: separate(names),
        })
    }

    /// Rejects numbers that are out of range. Requests from the command line have already passed this check.
    fn refuse_numbers(&self) -> Result<(), Error> {
        let refuse = |flag: &str, value: String, expected: &str| {
            Err(Error::Setting(format!(
                "{flag} {value}: expected {expected}"
            )))
        };
        for (flag, count) in [
            ("--batch", self.batch),
            ("--trace-variance", self.trace_variance),
            ("--grad-samples", self.grad_samples),
            ("--elbo-samples", self.elbo_samples),
            ("--advi-iters", self.advi_iters),
            ("--max-iters", self.max_iters),
            ("--memory-limit", self.memory_limit),
            ("--draws", self.draws),
            ("--max-gradients", self.max_gradients),
        ] {
            if count == Some(0) {
                return refuse(flag, "0".to_owned(), "at least 1");
            }
        }
        for (flag, number) in [
            ("--step-size", self.step_size),
            ("--tol", self.tol),
            ("--max-seconds", self.max_seconds),
        ] {
            if let Some(x) = number.filter(|x| !(*x > 0.0 && x.is_finite())) {
                return refuse(flag, x.to_string(), "a positive number");
            }
        }
        if let Some(weight) = self.ens_weight {
            if !(0.0..=1.0).contains(&weight) {
                return refuse("--ens-weight", weight.to_string(), "a number from 0 to 1");
            }
            if self.estimator != Some(EstimatorName::Ens) {
                return Err(Error::setting("--ens-weight needs --estimator ens"));
            }
        }
        if let Some(momentum) = self.momentum {
            if !(0.0..1.0).contains(&momentum) {
                let expected = "a number from 0 to below 1";
                return refuse("--momentum", momentum.to_string(), expected);
            }
            if self.method != Some(MethodName::Smiso) {
                return Err(Error::setting("--momentum needs --method smiso"));
            }
        }
        Ok(())
    }

    fn refuse_foreign(&self, method: MethodName) -> Result<(), Error> {
        let refuse = |flag: &str, owner: &str| {
            Err(Error::Setting(format!(
                "{flag} has no effect with this method; it belongs to --method {owner}"
            )))
        };
        if method != MethodName::Advi {
            if self.elbo_samples.is_some() {
                return refuse("--elbo-samples", "advi");
            }
            if self.advi_iters.is_some() {
                return refuse("--advi-iters", "advi");
            }
        }
        if method == MethodName::Advi {
            if self.optimizer.is_some() {
                return refuse("--optimizer", "bbvi");
            }
            if self.estimator == Some(EstimatorName::Stl) {
                return refuse("--estimator stl", "bbvi");
            }
        }
        let second_order = matches!(method, MethodName::Trust | MethodName::Hfsgvi);
        if second_order {
            if self.optimizer.is_some() {
                return refuse("--optimizer", "bbvi");
            }
            if self.estimator.is_some() {
                return refuse("--estimator", "bbvi");
            }
            if self.step_size.is_some() {
                return refuse("--step-size", "bbvi or advi");
            }
        }
        let on_records = self.exchangeable.is_some() && self.method == Some(MethodName::Trust);
        let trusts = on_records || matches!(method, MethodName::Auto | MethodName::Trust);
        if self.trust.is_given() && !trusts {
            return refuse("--trust-…", "trust");
        }
        if self.trust.paper && (method != MethodName::Trust || on_records) {
            return refuse("--trust-paper", "trust without --exchangeable");
        }
        if matches!(method, MethodName::Auto | MethodName::Trust) && self.grad_samples.is_some() {
            return refuse("--grad-samples", "bbvi, advi or hfsgvi");
        }
        Ok(())
    }

    fn advi(&self) -> AdviSettings {
        let usual = AdviSettings::default();
        let count = |given: Option<u64>, usual: usize| given.map_or(usual, |n| n as usize);
        AdviSettings {
            grad_samples: count(self.grad_samples, usual.grad_samples),
            elbo_samples: count(self.elbo_samples, usual.elbo_samples),
            eta: self.step_size,
            max_iterations: self.advi_iters.unwrap_or(usual.max_iterations),
            stop: if self.tol.is_some() {
                AdviStop::Nats
            } else {
                usual.stop
            },
            tolerance: self.tol.unwrap_or(usual.tolerance),
            ..usual
        }
    }

    fn hfsgvi(&self) -> HfsgviSettings {
        let usual = HfsgviSettings::default();
        HfsgviSettings {
            gradient_draws: self
                .grad_samples
                .map_or(usual.gradient_draws, |n| n as usize),
            tolerance: self.tol.unwrap_or(usual.tolerance),
            ..usual
        }
    }

    pub(super) fn optimiser(&self) -> Optimiser {
        let rule = match self.optimizer {
            None | Some(OptimizerName::Adam) => BbviSettings::default().optimiser.rule,
            Some(OptimizerName::Sgd) => Rule::Sgd,
            Some(OptimizerName::Adagrad) => Rule::Adagrad { epsilon: 1e-8 },
            Some(OptimizerName::Rmsprop) => Rule::RmsProp {
                decay: 0.9,
                epsilon: 1e-8,
            },
        };
        Optimiser {
            rule,
            step_size: self.step_size.unwrap_or_else(|| rule.default_step_size()),
            schedule: Schedule::Constant,
        }
    }

    fn bbvi(&self) -> BbviSettings {
        let usual = BbviSettings::default();
        BbviSettings {
            estimator: match self.estimator {
                Some(EstimatorName::Naive) => Estimator::Naive,
                _ => Estimator::Stl,
            },
            optimiser: self.optimiser(),
            draws: self.grad_samples.map_or(usual.draws, |n| n as usize),
            tolerance: self.tol.unwrap_or(usual.tolerance),
            ..usual
        }
    }
}

fn separate(names: &str) -> Vec<String> {
    let mut depth = 0;
    let parts = names.split(|c| {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    let named = parts.map(str::trim).filter(|part| !part.is_empty());
    named.map(str::to_owned).collect()
}

#[cfg(feature = "clap")]
fn parse_family(text: &str) -> Result<String, String> {
    if text != "auto" {
        let parsed = text.parse::<FamilyKind>();
        parsed.map_err(|error| error.to_string().replace("one of ", "one of auto, "))?;
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_separated_outside_brackets() {
        assert_eq!(separate("mu, beta[2,1] ,z"), ["mu", "beta[2,1]", "z"]);
        assert!(separate("").is_empty());
    }

    #[test]
    fn linear_response_is_for_mean_field_fits() {
        let flags = |family: Option<&str>, covariance| FitRequest {
            family: family.map(str::to_owned),
            covariance: Some(covariance),
            ..FitRequest::default()
        };
        let asked = flags(None, CovarianceName::LinearResponse);
        let family = asked.settings(Init::Zero).unwrap().family;
        assert_eq!(family, FamilyChoice::Only(FamilyKind::MeanField));
        let rich = flags(Some("lowrank=2"), CovarianceName::LinearResponse);
        assert!(rich.covariance().is_err());
        let of = FitRequest {
            covariance_of: Some("mu".into()),
            ..flags(None, CovarianceName::Family)
        };
        assert!(of.covariance().is_err());
    }

    #[test]
    fn an_optimiser_asks_for_stochastic_gradients() {
        let flags = FitRequest {
            optimizer: Some(OptimizerName::Sgd),
            ..FitRequest::default()
        };
        let settings = flags.settings(Init::Zero).unwrap();
        assert_eq!(settings.method.name(), "bbvi");
        let flags = FitRequest {
            method: Some(MethodName::Advi),
            ..flags
        };
        let refused = flags.settings(Init::Zero);
        assert!(matches!(refused, Err(Error::Setting(_))));
    }
}
