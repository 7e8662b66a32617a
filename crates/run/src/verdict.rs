//! Whether a result is to be trusted, as a value with its reasons.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that speaks against trusting a result, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// What was seen, in one sentence without its full stop.
    pub sentence: String,
    /// What to do next; empty where nothing is known to help.
    #[serde(default)]
    pub advice: String,
}

impl Reason {
    /// What was seen, with what to do about it.
    pub fn new(sentence: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            sentence: sentence.into(),
            advice: advice.into(),
        }
    }

    /// What was seen, where no advice is known.
    pub fn bare(sentence: impl Into<String>) -> Self {
        Self::new(sentence, "")
    }
}

impl fmt::Display for Reason {
    /// The sentence, then the advice.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)?;
        if !self.advice.is_empty() {
            write!(f, ". {}", self.advice)?;
        }
        Ok(())
    }
}

/// Whether a result is to be trusted: it is where nothing speaks against it.
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
    /// Nothing speaks against the result yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what speaks against the result.
    pub fn against(&mut self, reason: Reason) {
        self.reasons.push(reason);
    }

    /// Adds everything that another verdict holds against it.
    pub fn extend(&mut self, other: Self) {
        self.reasons.extend(other.reasons);
    }

    /// Whether nothing speaks against it.
    pub fn trusted(&self) -> bool {
        self.reasons.is_empty()
    }

    /// What speaks against it, in the order found.
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// The reasons as texts.
    pub fn warnings(&self) -> Vec<String> {
        self.reasons.iter().map(Reason::to_string).collect()
    }
}
