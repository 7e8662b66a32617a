//! The status at the end of a run, with advice.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The reason why a stopping rule considers the optimum found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The rule and its observations, in words.
    pub rule: String,
    /// The estimated remaining improvement in nats, if the rule estimates it.
    pub remaining: Option<f64>,
    /// The standard error of `remaining`.
    pub standard_error: Option<f64>,
}

/// The budget that ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The number of iterations.
    Iterations(u64),
    /// The wall-clock seconds.
    Seconds(f64),
    /// The largest number of draws per evaluation that the settings allow.
    Draws(u64),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iterations(n) => write!(f, "{n} iterations"),
            Self::Seconds(s) => write!(f, "{s} seconds"),
            Self::Draws(n) => write!(f, "{n} draws per evaluation"),
        }
    }
}

/// The end of a run. Only [`Status::Converged`] is a success. Every other status has advice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Status {
    /// The stopping rule is met.
    Converged {
        /// The rule and its observations.
        evidence: Evidence,
    },
    /// A budget was exhausted before the stopping rule was met.
    BudgetReached {
        /// The exhausted budget.
        limit: Limit,
        /// The last observation of the stopping rule, if there is one.
        detail: String,
    },
    /// Steps no longer improve the objective, although the stopping rule is not met.
    Stalled {
        /// The iteration at which the run stalled.
        at: u64,
        /// The observation.
        reason: String,
    },
    /// The objective or its gradient is no longer finite, or cannot be evaluated at the start.
    Diverged {
        /// The iteration at which the run diverged, or 0 for the start.
        at: u64,
        /// The observation.
        reason: String,
    },
    /// The caller cancelled the run.
    Interrupted {
        /// The last finished iteration.
        at: u64,
    },
}

impl Status {
    /// Returns whether the optimiser's stopping rule is met.
    pub fn is_converged(&self) -> bool {
        matches!(self, Self::Converged { .. })
    }

    /// Returns whether the caller or the time limit ended the run before it finished.
    pub fn is_from_outside(&self) -> bool {
        matches!(
            self,
            Self::Interrupted { .. }
                | Self::BudgetReached {
                    limit: Limit::Seconds(_),
                    ..
                }
        )
    }

    /// Returns the word for this status in files: `converged`, `budget_reached`, `stalled`, `diverged` or
    /// `interrupted`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Converged { .. } => "converged",
            Self::BudgetReached { .. } => "budget_reached",
            Self::Stalled { .. } => "stalled",
            Self::Diverged { .. } => "diverged",
            Self::Interrupted { .. } => "interrupted",
        }
    }

    /// Returns advice for the user.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Converged { .. } => "",
            Self::BudgetReached { limit, .. } => match limit {
                Limit::Iterations(_) | Limit::Seconds(_) => {
                    "Allow more iterations or seconds; `--resume` continues from the checkpoint."
                }
                Limit::Draws(_) => {
                    "Allow more draws per evaluation, or accept the larger Monte-Carlo gap."
                }
            },
            Self::Stalled { .. } => {
                "Rescale the data or reparameterise (a non-centred hierarchy, standardised \
                 covariates), or try another family."
            }
            Self::Diverged { .. } => {
                "Check the model at the initial point (`jensen density`), give an initial point, \
                 or add priors where the posterior is improper."
            }
            Self::Interrupted { .. } => {
                "Resume from the checkpoint, or run again if there is none."
            }
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Converged { evidence } => {
                write!(f, "converged: {}", evidence.rule)?;
                if let Some(remaining) = evidence.remaining {
                    write!(f, "; estimated remaining improvement {remaining:.2e} nats")?;
                    if let Some(se) = evidence.standard_error {
                        write!(f, " (standard error {se:.1e})")?;
                    }
                }
                Ok(())
            }
            Self::BudgetReached { limit, detail } => {
                write!(f, "not converged: the budget of {limit} is exhausted")?;
                if !detail.is_empty() {
                    write!(f, " ({detail})")?;
                }
                Ok(())
            }
            Self::Stalled { at, reason } => {
                write!(f, "not converged: stalled at iteration {at}: {reason}")
            }
            Self::Diverged { at, reason } => {
                write!(f, "failed: diverged at iteration {at}: {reason}")
            }
            Self::Interrupted { at } => {
                write!(f, "not converged: interrupted after iteration {at}")
            }
        }
    }
}
