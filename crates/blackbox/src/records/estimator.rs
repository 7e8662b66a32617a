//! The gradient estimators for minibatches, and their names.

use std::fmt;
use std::str::FromStr;

use jensen_run::SettingError;
use serde::{Deserialize, Serialize};

/// The estimator of the gradient of the ELBO from a minibatch. All estimators are unbiased. The documentation of
/// [`Gradients`](super::Gradients) gives the control variate of each estimator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordEstimator {
    /// The reparameterisation gradient of the minibatch, with the entropy in closed form.
    Naive,
    /// The reparameterisation gradient without the score term of the entropy (Roeder, Wu and Duvenaud 2017).
    Stl,
    /// The gradient with a second-order expansion at the current mean as its control variate (Miller et al. 2017). The
    /// control variate reduces Monte-Carlo noise, but not subsampling noise.
    Cv,
    /// The gradient with a SAGA table as its control variate. The table is evaluated at the current draw. The control
    /// variate reduces subsampling noise, but not Monte-Carlo noise, and every iteration reads all records.
    Inc,
    /// A weighted mean of `cv` and `inc` (Geffner and Domke 2018).
    Ens {
        /// The weight of `cv`, in [0, 1].
        beta: f64,
    },
    /// The joint control variate (Wang, Geffner and Domke 2024), with a SAGA table.
    Joint,
    /// The joint control variate, applied only to the gradient of the mean, as in the paper. The gradient of the spread
    /// is the same as for `naive`.
    JointMean,
    /// The joint control variate as published. It applies only to the gradient of the mean, and the table contains the
    /// prior and the spreads at the last visit of each record.
    JointPaper,
    /// The joint control variate with a single anchor for all records, as in SVRG.
    JointSvrg,
    /// The joint control variate with exact expectations of the likelihood over the draw. A SAGA table of these
    /// expectations then corrects the subsampling noise. The estimator requires a likelihood with one linear predictor
    /// and a mean-field family.
    JointExact,
}

const NAMES: [&str; 10] = [
    "naive",
    "stl",
    "cv",
    "inc",
    "ens",
    "joint",
    "joint-mean",
    "joint-paper",
    "joint-svrg",
    "joint-exact",
];

impl RecordEstimator {
    /// A list of all estimators, in which `ens` has equal weights.
    pub const ALL: [Self; 10] = [
        Self::Naive,
        Self::Stl,
        Self::Cv,
        Self::Inc,
        Self::Ens { beta: 0.5 },
        Self::Joint,
        Self::JointMean,
        Self::JointPaper,
        Self::JointSvrg,
        Self::JointExact,
    ];

    /// Returns the name of the estimator.
    pub fn name(self) -> &'static str {
        match self {
            Self::Naive => NAMES[0],
            Self::Stl => NAMES[1],
            Self::Cv => NAMES[2],
            Self::Inc => NAMES[3],
            Self::Ens { .. } => NAMES[4],
            Self::Joint => NAMES[5],
            Self::JointMean => NAMES[6],
            Self::JointPaper => NAMES[7],
            Self::JointSvrg => NAMES[8],
            Self::JointExact => NAMES[9],
        }
    }

    pub(crate) fn expansion(self) -> f64 {
        match self {
            Self::Cv => 1.0,
            Self::Ens { beta } => beta,
            _ => 0.0,
        }
    }

    pub(crate) fn incremental(self) -> f64 {
        match self {
            Self::Inc => 1.0,
            Self::Ens { beta } => 1.0 - beta,
            _ => 0.0,
        }
    }

    pub(crate) fn prior_expansion(self) -> f64 {
        match self {
            Self::JointExact => 1.0,
            other if other.expands_stored() => 1.0,
            other => other.expansion(),
        }
    }

    pub(crate) fn expands_stored(self) -> bool {
        matches!(self, Self::Joint | Self::JointMean | Self::JointSvrg)
    }

    /// Returns whether the estimator stores the mean at the last visit of every record, or the part of the mean that
    /// the model needs.
    pub(crate) fn remembers_means(self) -> bool {
        matches!(self, Self::Joint | Self::JointMean)
    }

    /// Returns whether the estimator stores a table between iterations.
    pub fn remembers(self) -> bool {
        !matches!(self, Self::Naive | Self::Stl | Self::Cv)
    }
}

impl fmt::Display for RecordEstimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for RecordEstimator {
    type Err = SettingError;

    /// Parses the name of an estimator. For `ens`, the two weights are equal.
    fn from_str(text: &str) -> Result<Self, SettingError> {
        Self::ALL
            .into_iter()
            .find(|estimator| estimator.name() == text)
            .ok_or_else(|| {
                SettingError::new(format!(
                    "unknown estimator `{text}`; expected one of {}",
                    NAMES.join(", ")
                ))
            })
    }
}
