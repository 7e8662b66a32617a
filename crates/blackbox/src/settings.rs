//! The settings of a fit.

use std::fmt;
use std::sync::Arc;

use jensen_density::Scale;
use jensen_math::simd::Simd;
use jensen_run::SettingError;
use serde::{Deserialize, Serialize, Serializer};

use crate::error::positive;
use crate::family::{Family, FamilyKind, FamilyName, Space};
use crate::method::{AutoSettings, Method};
use crate::policy::Policy;
use crate::refine::{RefineSettings, RefineWhen};
use crate::starts::StartSettings;

/// The choice of the family to fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FamilyChoice {
    /// The policy chooses the family. In 500 or more dimensions, the fit begins with the conditionally structured
    /// Gaussian if most coordinates interact mainly with a few global parameters (see
    /// [`begins_conditional`](crate::begins_conditional)). Otherwise it begins with a mean-field Gaussian. If k̂ is too
    /// large, the next family is a sparse or full-rank Gaussian (up to 500 dimensions), and its fit starts from the
    /// mean-field Gaussian. If that family also fails its checks and the model has at least 100 dimensions,
    /// the conditionally structured Gaussian follows. If the starts find other modes that are not relabellings, a
    /// mixture follows (in up to 64 dimensions). The fit reports all these families.
    Auto,
    /// Only the given family is fitted.
    Only(FamilyKind),
    /// A caller's own family is fitted. The identity of a run contains its name and its number of parameters. Settings
    /// with a caller's own family cannot be read from a file.
    #[serde(serialize_with = "named", skip_deserializing)]
    Own(Arc<dyn Family>),
}

impl fmt::Display for FamilyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Only(kind) => kind.fmt(f),
            Self::Own(family) => family.name().fmt(f),
        }
    }
}

/// Two families are equal if they have the same name and the same number of parameters.
impl PartialEq for dyn Family {
    fn eq(&self, other: &Self) -> bool {
        (self.name(), self.parameters()) == (other.name(), other.parameters())
    }
}

fn named<S: Serializer>(family: &Arc<dyn Family>, serializer: S) -> Result<S::Ok, S::Error> {
    (family.name().to_string(), family.parameters()).serialize(serializer)
}

impl From<FamilyKind> for FamilyChoice {
    fn from(kind: FamilyKind) -> Self {
        Self::Only(kind)
    }
}

impl<F: Family> From<F> for FamilyChoice {
    fn from(family: F) -> Self {
        Self::Own(Arc::new(family))
    }
}

impl FamilyChoice {
    /// Returns the requested family on a space, or `None` if the policy chooses the family.
    pub fn asked(&self, space: &Space) -> Option<Arc<dyn Family>> {
        match self {
            Self::Auto => None,
            Self::Only(kind) => Some(kind.build(space.clone())),
            Self::Own(family) => Some(family.clone()),
        }
    }

    /// Returns the family of a result, given its name.
    ///
    /// # Panics
    /// Panics if the result belongs to a caller's own family but this choice does not. [`fit`](crate::fit) rejects a
    /// checkpoint with such a result.
    pub(crate) fn named(&self, name: &FamilyName, space: &Space) -> Arc<dyn Family> {
        match (name.kind(), self) {
            (Some(kind), _) => kind.build(space.clone()),
            (None, Self::Own(family)) => family.clone(),
            (None, _) => panic!("the result belongs to the family `{name}`, which is not given"),
        }
    }
}

/// All settings that influence the result of a fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The seed from which all random numbers are generated.
    pub seed: u64,
    /// The SIMD level of the kernels. Checkpoints store its name.
    #[serde(skip, default = "Simd::detect")]
    pub simd: Simd,
    /// The optimisation method.
    pub method: Method,
    /// The choice of the family to fit.
    pub family: FamilyChoice,
    /// The settings of the starts.
    pub start: StartSettings,
    /// The required accuracy of the reported numbers.
    #[serde(default, skip_serializing_if = "Policy::is_default")]
    pub policy: Policy,
    /// The number of fresh draws from which the final ELBO and k̂ are estimated. The default is the number that the
    /// policy requires, unless fewer draws suffice. If k̂ is uncertain, the fit uses up to 8 or 32 times this number.
    pub evaluation_draws: usize,
    /// The settings of the refinement.
    #[serde(default, skip_serializing_if = "RefineSettings::is_default")]
    pub refine: RefineSettings,
    /// The largest number of bytes for the tables of records that a method stores. The limit does not affect results.
    #[serde(skip)]
    pub memory_limit: Option<u64>,
    /// For each coordinate, the index of the array that contains it. If the list is empty, all coordinates are assumed
    /// to belong to one array. Jensen treats modes that differ by a permutation of array elements as one answer.
    #[serde(skip)]
    pub variables: Vec<usize>,
    /// The name of each coordinate, which messages use. If the list is empty, messages use the index of the coordinate
    /// instead.
    #[serde(skip)]
    pub names: Vec<String>,
    /// The relation between each coordinate and its reported value. By default, the two are equal. The moments of the
    /// reported values must be as accurate as those of the coordinates.
    #[serde(skip)]
    pub scales: Vec<Scale>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 0,
            simd: Simd::detect(),
            method: Method::Auto(AutoSettings::default()),
            family: FamilyChoice::Auto,
            start: StartSettings::default(),
            policy: Policy::default(),
            evaluation_draws: Policy::default().evaluation_draws(),
            refine: RefineSettings::default(),
            memory_limit: None,
            variables: Vec::new(),
            names: Vec::new(),
            scales: Vec::new(),
        }
    }
}

impl Settings {
    /// Returns whether a refinement may follow the fit.
    pub fn may_refine(&self) -> bool {
        self.refine.when != RefineWhen::Never
    }

    /// Returns whether the policy chooses the method and the family. A fit with a requested method or family is
    /// reported without refinement and without weights.
    pub fn is_policy(&self) -> bool {
        matches!(self.method, Method::Auto(_)) && self.family == FamilyChoice::Auto
    }

    /// Checks that counts and tolerances are positive.
    ///
    /// # Errors
    /// Fails with a sentence that contains the setting and its value.
    pub fn validate(&self) -> Result<(), SettingError> {
        positive([
            ("evaluation_draws", self.evaluation_draws as f64),
            ("start.draws", self.start.draws as f64),
            ("start.iterations", self.start.iterations as f64),
        ])?;
        if let FamilyChoice::Only(kind) = self.family {
            kind.validate()?;
        }
        self.policy.validate()?;
        self.refine.validate()?;
        self.method.validate()
    }
}
