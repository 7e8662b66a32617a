//! The settings of a fit, with their defaults.

use std::path::PathBuf;

use jensen_conjugate::driver::{DriverSettings, Mode};
use jensen_conjugate::models::{Components, Covariance, GaussianPrior, Mixing, Mixture};
use jensen_conjugate::temper::{Length, Temper};
use serde::{Deserialize, Serialize};

use super::ColumnKind;
use super::kinds::Kinds;
use crate::Error;
use crate::job::CountRange;
#[cfg(feature = "clap")]
use crate::job::words;
use crate::units::Standardise;

/// The settings of every model of points. Absent settings take their defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct PointRequest {
    /// Temperature: none, `anneal=PASSES[:FROM]` (falls to 1 in PASSES passes or iterations), schedule=PASS:T,PASS:T,…
    /// (linear in between), global (one, inferred) or local (one per point, inferred);
    /// `global=PASSES[:HOTTEST[:TEMPERATURES]]` and `local=PASSES[:TEMPERATURES[:A:B]]` reach 1 after PASSES, `inf`
    /// never. Plain global cools in 50 iterations, or in one pass with --batch [default: none]
    #[cfg_attr(feature = "clap", arg(long, value_name = "POLICY", value_parser = words::temper, help_heading = "Method"))]
    pub temper: Option<String>,
    /// Points of a minibatch; without it every iteration uses all points
    #[cfg_attr(feature = "clap", arg(long, value_name = "B", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Method"))]
    pub batch: Option<u64>,
    /// Passes over the points, with --batch [default: 10]
    #[cfg_attr(feature = "clap", arg(long, value_name = "P", value_parser = words::positive, help_heading = "Method"))]
    pub passes: Option<f64>,
    /// Delay of the step sizes (tau + t)^-kappa, with --batch [default: 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Method"))]
    pub tau: Option<f64>,
    /// Forgetting rate of the step sizes, above 0.5 and at most 1, with --batch [default: 0.7]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Method"))]
    pub kappa: Option<f64>,
    /// Relative change of the bound below which three iterations have converged [default: 0.0000001]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Method"))]
    pub tolerance: Option<f64>,
    /// Largest number of iterations of all starts together, without --batch [default: 1000 for each]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Run"))]
    pub max_iters: Option<u64>,
    /// Largest number of seconds
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", value_parser = words::positive, help_heading = "Run"))]
    pub max_seconds: Option<f64>,
    /// Share of the points to hold out and score, from 0 to below 1 [default: 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SHARE", value_parser = words::not_negative, help_heading = "Run"))]
    pub heldout: Option<f64>,
    /// Seed of every random number; same seed, same bits, on any number of threads [default: 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", help_heading = "Run"))]
    pub seed: Option<u64>,
    /// Number of starts with consecutive seeds; the fit with the best bound is kept [default: 5, or 1 with a
    /// temperature policy, with --batch, and for one component or state]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000), help_heading = "Run"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts: Option<u64>,
}

/// The default number of starts. In tests with eight images (as in Figure 4 of the tempering paper), about half of the
/// starts found all images. In tests with five separated clusters in three dimensions, about half of the starts found
/// all five clusters.
const STARTS: u64 = 5;

const MAX_ITERS: u64 = 1000;

/// The default length of the cooling phase of an inferred temperature, in iterations. At the end of this phase, the
/// temperature is 1.
const COOLING_ITERATIONS: f64 = 50.0;
/// The default length of the cooling phase of an inferred temperature, in passes. At the end of this phase, the
/// temperature is 1.
const COOLING_PASSES: f64 = 1.0;

const UNBOUNDED: f64 = 1e9;

impl PointRequest {
    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// Returns the number of passes over the points, or `None` if the fit does not use minibatches.
    pub fn passes(&self) -> Option<f64> {
        self.batch.map(|_| self.passes.unwrap_or(10.0))
    }

    pub(super) fn length(&self) -> Length {
        match self.passes() {
            None => Length {
                planned: self.max_iters.unwrap_or(MAX_ITERS) as f64,
                cooling: COOLING_ITERATIONS,
                flag: "--max-iters",
            },
            Some(planned) => Length {
                planned,
                cooling: COOLING_PASSES,
                flag: "--passes",
            },
        }
    }

    /// Returns the settings of the driver. The budget is not part of these settings, because the user may increase it
    /// when the run is resumed.
    ///
    /// # Errors
    /// Fails if a setting is invalid or would have no effect.
    pub fn settings(&self) -> Result<DriverSettings, Error> {
        let refuse = |text: &str| Err(Error::Setting(text.to_owned()));
        let (tau, kappa) = (self.tau.unwrap_or(1.0), self.kappa.unwrap_or(0.7));
        let mode = match self.batch {
            None => {
                for (name, given) in [
                    ("--passes", self.passes),
                    ("--tau", self.tau),
                    ("--kappa", self.kappa),
                ] {
                    if given.is_some() {
                        return refuse(&format!("{name} needs --batch"));
                    }
                }
                Mode::Batch {
                    tolerance: self.tolerance.unwrap_or(1e-7),
                    max_iterations: u64::MAX,
                }
            }
            Some(batch) => Mode::Stochastic {
                batch: usize::try_from(batch).unwrap_or(usize::MAX),
                tau,
                kappa,
                passes: UNBOUNDED,
                population: None,
                steps_before: 0,
            },
        };
        if self.batch.is_some() && !(kappa > 0.5 && kappa <= 1.0 && tau >= 1.0) {
            return refuse(
                "the step sizes converge only with --kappa above 0.5 and at most 1, and --tau of at least 1",
            );
        }
        if self.heldout() >= 1.0 {
            return refuse("--heldout needs a share below 1, such as 0.1");
        }
        let temper = self.temper()?.with_cooling(self.length().cooling);
        temper.check()?;
        if temper.from_both_ends() {
            return refuse("only topics can start temperatures at both ends: choose warm or cold");
        }
        Ok(DriverSettings {
            mode,
            temper,
            seed: self.seed(),
            scores_per_pass: 0.0,
        })
    }

    pub(super) fn temper(&self) -> Result<Temper, Error> {
        Ok(self.temper.as_deref().unwrap_or("none").parse()?)
    }

    /// Returns the number of starts. `parts` is the largest number of parts of any requested model.
    pub(super) fn starts(&self, parts: usize) -> u64 {
        let usual = match self.batch.is_some() || parts == 1 {
            true => 1,
            false => STARTS,
        };
        self.starts.unwrap_or(usual).max(1)
    }

    /// Returns the number of starts that use the temperature policy. By default, only the first start uses the policy.
    /// The other starts are cheaper and ensure that the ELBO is at least as large as that of a fit without a policy.
    fn tempered(&self) -> u64 {
        self.starts.unwrap_or(1).max(1)
    }

    pub(super) fn settings_of(&self, start: u64) -> Result<DriverSettings, Error> {
        let settings = self.settings()?;
        let temper = match start < self.tempered() {
            true => settings.temper.clone(),
            false => Temper::None,
        };
        Ok(DriverSettings {
            temper,
            seed: self.seed().wrapping_add(start),
            ..settings
        })
    }

    /// Converts the number of passes to a number of iterations per start. Returns `None` if the fit does not use
    /// minibatches.
    pub(super) fn planned(&self, points: usize) -> Option<u64> {
        let per_pass = (points as u64).div_ceil(self.batch?.max(1)).max(1);
        Some(((self.passes()? * per_pass as f64).ceil() as u64).max(1))
    }

    pub(super) fn iterations(&self, points: usize, candidates: usize) -> u64 {
        let all = |each: u64| each.saturating_mul(candidates as u64);
        match self.planned(points) {
            Some(planned) => all(planned),
            None => self.max_iters.unwrap_or(all(MAX_ITERS)),
        }
    }

    pub(super) fn heldout(&self) -> f64 {
        self.heldout.unwrap_or(0.0)
    }
}

/// The settings of a mixture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct MixtureRequest {
    /// The table (may be omitted with --resume)
    #[cfg_attr(feature = "clap", arg(required_unless_present = "resume"))]
    pub data: Option<PathBuf>,
    /// Number of components, or a range such as 1..10 from which the bound chooses
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            short = 'k',
            value_name = "K",
            required_unless_present = "resume",
            help_heading = "Model"
        )
    )]
    pub components: Option<CountRange>,
    /// Density of a component [default: gaussian]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "KIND", value_enum, help_heading = "Model")
    )]
    pub kind: Option<Kind>,
    /// Columns of another kind, each NAME=gaussian, student-t, poisson, negative-binomial, bernoulli or categorical; all
    /// columns are then independent given the component
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "NAME=KIND,…",
            value_delimiter = ',',
            help_heading = "Model"
        )
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnKind>,
    /// The column that contains the weight of each row; a row with weight 3 counts as three equal rows
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "COLUMN", help_heading = "Model")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    /// Covariance matrices of Gaussian components [default: full]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "SHAPE", value_enum, help_heading = "Model")
    )]
    pub covariance: Option<CovarianceShape>,
    /// Whether to standardise the columns of Gaussian components; results are always in the units of the data [default:
    /// on]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "on|off", value_enum, help_heading = "Model")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standardise: Option<Standardise>,
    /// Prior of the components' weights; with process, --components is the largest number of components, and components
    /// without points are left empty [default: dirichlet]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "PRIOR", value_enum, help_heading = "Model")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixing: Option<MixingPrior>,
    /// Dirichlet parameter of the weights, or concentration of the process [default: 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Model"))]
    pub concentration: Option<f64>,
    /// Weight, in points, of the prior mean of Gaussian components, which is the mean of the data [default: 0.1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Model"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior_mean_weight: Option<f64>,
    /// Prior variance within a Gaussian component, as a share of each column's variance [default: 0.1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Model"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior_variance: Option<f64>,
    /// Weight of that variance, in points [default: 2]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Model"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior_variance_weight: Option<f64>,
    /// Dirichlet parameter of the proportions of multinomial and categorical components, and of the probabilities of
    /// binary ones [default: 0.5]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Model"))]
    pub smoothing: Option<f64>,
    /// Draw the components' means as pictures of this size
    #[cfg_attr(feature = "clap", arg(long, value_name = "WxH", value_parser = words::size, requires = "out", help_heading = "Output"))]
    pub image: Option<(usize, usize)>,
    /// The settings of every model of points.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub points: PointRequest,
}

impl MixtureRequest {
    /// Returns the range of the number of components from which the fit chooses.
    pub fn sizes(&self) -> CountRange {
        self.components.unwrap_or(CountRange::one(1))
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind.unwrap_or_default()
    }

    pub(super) fn several_kinds(&self) -> bool {
        Kinds::asked(self.kind(), &self.columns)
    }

    pub(super) fn mixing(&self) -> MixingPrior {
        self.mixing.unwrap_or_default()
    }

    /// Returns a mixture of `count` components with the requested prior of the weights.
    pub(super) fn mixture<C: Components>(&self, components: C, count: usize) -> Mixture<C> {
        let concentration = self.concentration.unwrap_or(1.0);
        Mixture::with_mixing(components, count, self.mixing().with(concentration))
    }

    /// Returns the parameter of the Dirichlet prior for multinomial components, or of the Beta prior for binary
    /// components.
    pub(super) fn smoothing(&self) -> f64 {
        self.smoothing.unwrap_or(0.5)
    }

    pub(super) fn prior(&self) -> GaussianPrior {
        let usual = GaussianPrior::default();
        GaussianPrior {
            mean_weight: self.prior_mean_weight.unwrap_or(usual.mean_weight),
            variance: self.prior_variance.unwrap_or(usual.variance),
            variance_weight: self.prior_variance_weight.unwrap_or(usual.variance_weight),
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let sizes = self.sizes();
        if self.mixing() == MixingPrior::Process && sizes.all().count() > 1 {
            return Err(Error::Setting(format!(
                "--mixing process finds the number of components in one fit: use --components {}",
                sizes.most()
            )));
        }
        let some = |kinds: &[Kind]| {
            kinds.contains(&self.kind()) || self.columns.iter().any(|c| kinds.contains(&c.kind))
        };
        let gaussian = some(&[Kind::Gaussian, Kind::StudentT]);
        if some(&[Kind::StudentT, Kind::NegativeBinomial]) {
            check_latent(&self.points)?;
        }
        let smooth = some(&[Kind::Bernoulli, Kind::Multinomial, Kind::Categorical]);
        let together = self.kind() == Kind::Gaussian && !self.several_kinds();
        for (name, given, fits) in [
            ("--standardise", self.standardise.is_some(), gaussian),
            ("--covariance", self.covariance.is_some(), together),
            (
                "--prior-mean-weight",
                self.prior_mean_weight.is_some(),
                gaussian,
            ),
            ("--prior-variance", self.prior_variance.is_some(), gaussian),
            (
                "--prior-variance-weight",
                self.prior_variance_weight.is_some(),
                gaussian,
            ),
            ("--smoothing", self.smoothing.is_some(), smooth),
        ] {
            if given && !fits {
                let whose = match name {
                    "--smoothing" => "binary, categorical and multinomial components",
                    "--covariance" => "components all of whose columns are Gaussian",
                    _ => "Gaussian components",
                };
                return Err(Error::Setting(format!("{name} belongs to {whose}")));
            }
        }
        Ok(())
    }
}

/// Rejects temperature policies that infer temperatures, which values with latent factors do not support.
pub(super) fn check_latent(points: &PointRequest) -> Result<(), Error> {
    match ["none", "anneal"].contains(&points.temper()?.name()) {
        true => Ok(()),
        false => Err(Error::setting(
            "Jensen cannot infer temperatures of Student's t and negative binomial columns: use --temper anneal=50",
        )),
    }
}

/// The kind of components or of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Real vectors
    #[default]
    Gaussian,
    /// Vectors of zeros and ones
    Bernoulli,
    /// Vectors of counts
    Multinomial,
    /// Independent counts
    Poisson,
    /// Independent categories, whole numbers or others
    Categorical,
    /// Independent real numbers with heavy tails (Student's t)
    StudentT,
    /// Independent counts whose variance exceeds their mean
    NegativeBinomial,
}

/// The prior of the weights of a mixture's components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum MixingPrior {
    /// Dirichlet distribution of a fixed number of components
    #[default]
    Dirichlet,
    /// Dirichlet process
    Process,
}

impl MixingPrior {
    pub(super) fn with(self, concentration: f64) -> Mixing {
        match self {
            Self::Dirichlet => Mixing::Dirichlet(concentration),
            Self::Process => Mixing::Process(concentration),
        }
    }
}

/// The shape of covariance matrices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum CovarianceShape {
    /// Any
    #[default]
    Full,
    /// Any, the same for all components or states
    Tied,
    /// Independent columns
    Diagonal,
    /// Independent columns with one variance, in standardised units unless --standardise off
    Spherical,
}

impl From<CovarianceShape> for Covariance {
    fn from(shape: CovarianceShape) -> Self {
        match shape {
            CovarianceShape::Full => Self::Full,
            CovarianceShape::Tied => Self::Tied,
            CovarianceShape::Diagonal => Self::Diagonal,
            CovarianceShape::Spherical => Self::Spherical,
        }
    }
}

/// The settings of a factorial mixture, in which every point is a sum of binary factors plus noise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct FactorsRequest {
    /// The table (may be omitted with --resume)
    #[cfg_attr(feature = "clap", arg(required_unless_present = "resume"))]
    pub data: Option<PathBuf>,
    /// Number of factors
    #[cfg_attr(feature = "clap", arg(long, short = 'k', value_name = "K", required_unless_present = "resume", value_parser = clap::value_parser!(u64).range(1..=10_000), help_heading = "Model"))]
    pub factors: Option<u64>,
    /// Variance of the noise in every column
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", required_unless_present = "resume", value_parser = words::positive, help_heading = "Model"))]
    pub noise_variance: Option<f64>,
    /// Prior variance of the factors' elements [default: the mean square of the data]
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", value_parser = words::positive, help_heading = "Model"))]
    pub factor_variance: Option<f64>,
    /// Prior probability that a factor is active [default: 0.3]
    #[cfg_attr(feature = "clap", arg(long, value_name = "P", value_parser = words::positive, help_heading = "Model"))]
    pub activation: Option<f64>,
    /// Draw the factors as pictures of this size
    #[cfg_attr(feature = "clap", arg(long, value_name = "WxH", value_parser = words::size, requires = "out", help_heading = "Output"))]
    pub image: Option<(usize, usize)>,
    /// The settings of every model of points.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub points: PointRequest,
}
