//! The verdict on a result, with the reasons not to trust it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A reason not to trust a result, with advice for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The observation, written as a sentence without a full stop.
    pub sentence: String,
    /// The advice for the user, or an empty string if there is none.
    #[serde(default)]
    pub advice: String,
}

impl Reason {
    /// Creates a reason with advice.
    pub fn new(sentence: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            sentence: sentence.into(),
            advice: advice.into(),
        }
    }

    /// Creates a reason without advice.
    pub fn bare(sentence: impl Into<String>) -> Self {
        Self::new(sentence, "")
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)?;
        if !self.advice.is_empty() {
            write!(f, ". {}", self.advice)?;
        }
        Ok(())
    }
}

/// The verdict on a result. A result is trusted if the verdict contains no reasons.
///
/// ```
/// use jensen_run::{Reason, Verdict};
///
/// let mut verdict = Verdict::new();
/// assert!(verdict.trusted());
/// verdict.against(Reason::new("the bound is not finite", "Add priors."));
/// assert!(!verdict.trusted());
/// assert_eq!(verdict.warnings(), ["the bound is not finite. Add priors."]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Verdict {
    reasons: Vec<Reason>,
}

impl Verdict {
    /// Creates a verdict without reasons. Such a verdict trusts the result.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a reason not to trust the result.
    pub fn against(&mut self, reason: Reason) {
        self.reasons.push(reason);
    }

    /// Adds all reasons of another verdict.
    pub fn extend(&mut self, other: Self) {
        self.reasons.extend(other.reasons);
    }

    /// Returns whether the result is trusted.
    pub fn trusted(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Returns the reasons not to trust the result, in the order in which they were added.
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// Returns each reason with its advice as a string.
    pub fn warnings(&self) -> Vec<String> {
        self.reasons.iter().map(Reason::to_string).collect()
    }
}
