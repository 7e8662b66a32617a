//! The gradient estimators by name.

use std::fmt;
use std::str::FromStr;

use jensen_run::SettingError;
use serde::{Deserialize, Serialize};

/// The estimator of the gradient of the bound from a minibatch. All estimators are unbiased.
/// [`Gradients`](super::Gradients) documents the control variate of each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordEstimator {
    /// The reparameterised gradient of the minibatch, with the entropy in closed form.
    Naive,
    /// The gradient without the score term of the entropy (Roeder, Wu and Duvenaud 2017).
    Stl,
    /// A second-order expansion at the current mean as control variate (Miller et al. 2017). It controls Monte-Carlo
    /// noise, but not subsampling noise.
    Cv,
    /// A SAGA table evaluated at the draw itself. It controls subsampling noise, but not Monte-Carlo noise, and every
    /// iteration passes over all records.
    Inc,
    /// A mixture of `cv` and `inc` (Geffner and Domke 2018).
    Ens {
        /// The weight of `cv`, in [0, 1].
        beta: f64,
    },
    /// The joint control variate (Wang, Geffner and Domke 2024), with SAGA's table.
    Joint,
    /// The joint control variate only for the mean, as in the paper. The gradient of the spread is the same as for
    /// `naive`.
    JointMean,
    /// The joint control variate as published: only for the mean, with the prior and the spreads of a record's last
    /// visit in the table.
    JointPaper,
    /// The joint control variate with one anchor for all records, as in SVRG.
    JointSvrg,
    /// The joint control variate with the likelihood itself as its approximation. It integrates out the draw, so that
    /// only a SAGA table of expectations remains. It needs a likelihood of one linear predictor and a mean-field
    /// family.
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
    /// All estimators, `ens` with equal weights.
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

    /// Returns whether the estimator stores the last mean of every record, as far as the model needs it.
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

    /// Parses the name of an estimator. `ens` gets equal weights.
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
