//! The verdict on a result, with the reasons against trusting it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A reason not to trust a result, with advice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The observation, as a sentence without its full stop.
    pub sentence: String,
    /// The advice, or an empty text if there is none.
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

/// The verdict on a result. A result is trusted if there is no reason against it.
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
    /// Creates a verdict without reasons, so that the result is trusted.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a reason against trusting the result.
    pub fn against(&mut self, reason: Reason) {
        self.reasons.push(reason);
    }

    /// Adds the reasons of another verdict.
    pub fn extend(&mut self, other: Self) {
        self.reasons.extend(other.reasons);
    }

    /// Returns whether the result is trusted.
    pub fn trusted(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Returns the reasons against trusting the result, in the order in which they were added.
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// Returns the reasons as texts.
    pub fn warnings(&self) -> Vec<String> {
        self.reasons.iter().map(Reason::to_string).collect()
    }
}
