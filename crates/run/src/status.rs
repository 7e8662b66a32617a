//! The status at the end of a run, with advice for the user.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The observations that satisfied a stopping rule and therefore indicate that the optimum has been found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// A description of the rule and of its observations.
    pub rule: String,
    /// The estimated remaining improvement of the objective in nats, or `None` if the rule does not estimate it.
    pub remaining: Option<f64>,
    /// The standard error of `remaining`.
    pub standard_error: Option<f64>,
}

/// The largest standard error, in nats, with which a remaining improvement is printed. The steps of a check may reach
/// points with extreme densities. The estimate is then enormous and negative, and says nothing about the optimum.
const VAGUE: f64 = 1.0;

/// The limit that ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The number of iterations.
    Iterations(u64),
    /// The method's own limit on its number of iterations.
    OfMethod(u64),
    /// The wall-clock time in seconds.
    Seconds(f64),
    /// The maximum number of draws per evaluation that the settings allow.
    Draws(u64),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iterations(n) => write!(f, "{n} iterations"),
            Self::OfMethod(n) => write!(f, "{n} iterations of the method"),
            Self::Seconds(s) => write!(f, "{s} seconds"),
            Self::Draws(n) => write!(f, "{n} draws per evaluation"),
        }
    }
}

/// The way in which a run ended. Only [`Status::Converged`] is a success. For every other status,
/// [`advice`](Self::advice) tells the user what to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Status {
    /// The run met its stopping rule.
    Converged {
        /// The observations that satisfied the stopping rule.
        evidence: Evidence,
    },
    /// A budget was exhausted before the run met its stopping rule.
    BudgetReached {
        /// The exhausted budget.
        limit: Limit,
        /// A description of the last observation of the stopping rule, or an empty string if there was none.
        detail: String,
    },
    /// The steps no longer improve the objective, but the stopping rule is not met.
    Stalled {
        /// The iteration at which the run stalled.
        at: u64,
        /// A description of what the algorithm observed.
        reason: String,
    },
    /// The objective or its gradient is no longer finite, or the objective cannot be evaluated at the starting point.
    Diverged {
        /// The iteration at which the run diverged, or 0 if the starting point itself failed.
        at: u64,
        /// A description of what the algorithm observed.
        reason: String,
    },
    /// The caller interrupted the run.
    Interrupted {
        /// The number of the last finished iteration.
        at: u64,
    },
}

impl Status {
    /// Returns whether the run met its stopping rule.
    pub fn is_converged(&self) -> bool {
        matches!(self, Self::Converged { .. })
    }

    /// Returns whether the caller or the time limit ended the run, rather than the algorithm itself.
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

    /// Returns whether the limit on the iterations of the run ended it.
    pub fn is_out_of_iterations(&self) -> bool {
        matches!(
            self,
            Self::BudgetReached {
                limit: Limit::Iterations(_),
                ..
            }
        )
    }

    /// Returns the name of this status in files: `converged`, `budget_reached`, `stalled`, `diverged` or `interrupted`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Converged { .. } => "converged",
            Self::BudgetReached { .. } => "budget_reached",
            Self::Stalled { .. } => "stalled",
            Self::Diverged { .. } => "diverged",
            Self::Interrupted { .. } => "interrupted",
        }
    }

    /// Returns advice for the user on a run that ended with this status.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Converged { .. } => "",
            Self::BudgetReached { limit, .. } => match limit {
                Limit::Iterations(_) | Limit::Seconds(_) => {
                    "Allow more iterations or seconds; a run with `--out` continues with `--resume`."
                }
                Limit::OfMethod(_) => {
                    "Raise the method's own limit on iterations (for ADVI, `--advi-iters`), or use the default method."
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
                let vague = evidence.standard_error.is_some_and(|se| se > VAGUE);
                if let Some(remaining) = evidence.remaining.filter(|_| !vague) {
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
