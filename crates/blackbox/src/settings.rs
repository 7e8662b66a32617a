//! Settings of a fit.

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

/// The family, or the policy that chooses it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FamilyChoice {
    /// In 500 or more dimensions, the conditionally structured Gaussian if a few coordinates are neighbours of most
    /// others ([`begins_conditional`](crate::begins_conditional)). Otherwise a mean-field Gaussian comes first. If its
    /// k̂ is too large, a sparse, full-rank (up to 400 dimensions) or low-rank Gaussian follows, starting from the mean
    /// field. If that also fails its checks, the conditionally structured Gaussian follows for models with at least 100
    /// dimensions. If the starts find other modes that are not relabellings, a mixture follows (up to 64 dimensions).
    /// All are reported.
    Auto,
    /// This family.
    Only(FamilyKind),
    /// A caller's own family. The identity of a run contains its name and its number of parameters. Stored settings with such
    /// a family cannot be read.
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

    /// Returns the family of a result of a fit with this choice.
    ///
    /// # Panics
    /// Panics if the result belongs to a caller's own family, but this choice does not. A [fit](crate::fit) rejects such a
    /// checkpoint.
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
    /// Seed of every random number.
    pub seed: u64,
    /// The kernels; checkpoints identify them by name.
    #[serde(skip, default = "Simd::detect")]
    pub simd: Simd,
    /// The algorithm.
    pub method: Method,
    /// The family.
    pub family: FamilyChoice,
    /// The start.
    pub start: StartSettings,
    /// The required accuracy of the reported numbers.
    #[serde(default, skip_serializing_if = "Policy::is_default")]
    pub policy: Policy,
    /// Number of fresh draws for the final bound and k̂. The default is the number that the policy requires, unless
    /// fewer draws suffice. If k̂ is uncertain, the number is multiplied by up to 8 or 32.
    pub evaluation_draws: usize,
    /// The refinement to draws of the posterior.
    #[serde(default, skip_serializing_if = "RefineSettings::is_default")]
    pub refine: RefineSettings,
    /// Largest number of bytes for a method's tables of records. No result depends on it.
    #[serde(skip)]
    pub memory_limit: Option<u64>,
    /// For each coordinate, the number of the array to which it belongs. If it is empty, all coordinates may belong to
    /// one array. Jensen treats modes that differ by a permutation of array elements as one answer.
    #[serde(skip)]
    pub variables: Vec<usize>,
    /// The name of each coordinate, for messages. If it is empty, messages number the coordinates.
    #[serde(skip)]
    pub names: Vec<String>,
    /// How each coordinate relates to its reported value; identity by default. The moments of the reported values must
    /// also be right.
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
    /// Whether the policy may refine its choice.
    pub fn may_refine(&self) -> bool {
        self.refine.when != RefineWhen::Never
    }

    /// Whether the policy chooses method and family. Jensen reports a fit with a requested method or family without
    /// refinement or weights.
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
