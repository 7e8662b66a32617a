//! The settings of a fit.

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

/// The choice of the family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FamilyChoice {
    /// The policy chooses the family. In 500 or more dimensions, the fit begins with the conditionally structured
    /// Gaussian if a few coordinates are neighbours of most others ([`begins_conditional`](crate::begins_conditional)).
    /// Otherwise it begins with a mean-field Gaussian. If k̂ is too large, a sparse, full-rank (up to 400 dimensions)
    /// or low-rank Gaussian follows, starting from the mean field. If that also fails its checks, the conditionally
    /// structured Gaussian follows for models with at least 100 dimensions. If the starts find other modes that are not
    /// relabellings, a mixture follows (up to 64 dimensions). The fit reports all families.
    Auto,
    /// The given family only.
    Only(FamilyKind),
    /// A caller's own family. The identity of a run contains its name and its number of parameters. Stored settings
    /// with a caller's own family cannot be read.
    #[serde(serialize_with = "named", skip_deserializing)]
    Own(Arc<dyn Family>),
}

/// Families are equal if they have the same name and the same number of parameters.
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
    /// Returns the chosen family on a space, or `None` if the policy chooses.
    pub fn asked(&self, space: &Space) -> Option<Arc<dyn Family>> {
        match self {
            Self::Auto => None,
            Self::Only(kind) => Some(kind.build(space.clone())),
            Self::Own(family) => Some(family.clone()),
        }
    }

    /// Returns the family of a result with this name.
    ///
    /// # Panics
    /// Panics if the result belongs to a caller's own family, but this choice does not. A [fit](crate::fit) rejects
    /// such a checkpoint.
    pub(crate) fn named(&self, name: &FamilyName, space: &Space) -> Arc<dyn Family> {
        match (name.kind(), self) {
            (Some(kind), _) => kind.build(space.clone()),
            (None, Self::Own(family)) => family.clone(),
            (None, _) => panic!("the result belongs to the family `{name}`, which is not given"),
        }
    }
}

/// Everything that influences the result of a fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The seed of all random numbers.
    pub seed: u64,
    /// The instruction set of the kernels. Checkpoints identify it by name.
    #[serde(skip, default = "Simd::detect")]
    pub simd: Simd,
    /// The method.
    pub method: Method,
    /// The family.
    pub family: FamilyChoice,
    /// The settings of the starts.
    pub start: StartSettings,
    /// The required accuracy of the reported numbers.
    #[serde(default, skip_serializing_if = "Policy::is_default")]
    pub policy: Policy,
    /// The number of fresh draws for the final bound and k̂. The default is the number that the policy requires, unless
    /// fewer draws suffice. If k̂ is uncertain, the fit uses up to 8 or 32 times this number.
    pub evaluation_draws: usize,
    /// The settings of the refinement.
    #[serde(default, skip_serializing_if = "RefineSettings::is_default")]
    pub refine: RefineSettings,
    /// The largest number of bytes for a method's tables of records. It does not affect results.
    #[serde(skip)]
    pub memory_limit: Option<u64>,
    /// For each coordinate, the number of the array to which it belongs. If the list is empty, all coordinates may
    /// belong to one array. Jensen treats modes that differ by a permutation of array elements as one answer.
    #[serde(skip)]
    pub variables: Vec<usize>,
    /// The name of each coordinate, for messages. If the list is empty, messages number the coordinates.
    #[serde(skip)]
    pub names: Vec<String>,
    /// The relation of each coordinate to its reported value, identity by default. The moments of the reported values
    /// must also be accurate.
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
    /// Returns whether the fit may continue with a refinement.
    pub fn may_refine(&self) -> bool {
        self.refine.when != RefineWhen::Never
    }

    /// Returns whether the policy chooses method and family. Jensen reports a fit with a requested method or family
    /// without refinement or weights.
    pub fn is_policy(&self) -> bool {
        matches!(self.method, Method::Auto(_)) && self.family == FamilyChoice::Auto
    }

    /// Checks that counts and tolerances are positive.
    ///
    /// # Errors
    /// Fails with a sentence that names the setting and its value.
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
