//! The verdict on a run. No other module sets the field `trusted`.

use jensen_report::Fact;
use jensen_run::{Reason, Status, Verdict};
use serde::{Deserialize, Serialize};

/// The largest final temperature that is treated as T = 1.
///
/// Cooling schedules end exactly at T = 1. Without a schedule, inferred temperatures converge either to a value near 1
/// or to a value far from 1. A temperature of 1.01 is too close to 1 to change an assignment. Temperatures that
/// converge to 1 end much closer to 1 than this.
const COLD: f64 = 1.01;

/// The condition under which a run counts as complete.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// The run is complete when a stopping rule is met.
    UntilItConverges,
    /// The method itself determines whether the run has converged.
    Judged,
    /// The run has a planned number of iterations, but a stopping rule may end it earlier.
    Planned {
        /// The planned number of iterations.
        iterations: u64,
        /// The text that describes a completed run, such as `completed all passes: 10`.
        made: String,
    },
}

/// The comparison of a fit with a plain baseline model. The fit is not trusted if its score is lower than `least`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// The name of the baseline model, such as `one component`.
    pub model: String,
    /// The score of the baseline model, in `unit`.
    pub score: f64,
    /// The score of the fit, in `unit`.
    pub fit: f64,
    /// The lowest score that a trusted fit may have. This threshold is the score of the baseline minus an allowance for
    /// the complexity of the requested model.
    pub least: f64,
    /// The unit of the scores, such as `ELBO in nats`.
    pub unit: String,
    /// The advice for the user if the score of the fit is too low.
    #[serde(skip)]
    pub advice: String,
}

impl Baseline {
    /// Returns the line of the output that compares the scores of the fit and of the baseline.
    pub fn text(&self) -> String {
        let better = match self.score > self.fit {
            true => "; the plain model has the higher score",
            false => "",
        };
        format!(
            "{:.4} for {}, {:.4} for this fit ({}){better}",
            self.score, self.model, self.fit, self.unit
        )
    }

    fn reason(&self) -> Option<Reason> {
        (self.fit.is_nan() || self.fit < self.least).then(|| {
            let text = format!(
                "the plain model, {}, scores higher than the fit: {:.4} against {:.4} ({})",
                self.model, self.score, self.fit, self.unit
            );
            Reason::new(text, self.advice.clone())
        })
    }
}

/// The observations on which the verdict about a run is based.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The status at the end of the run.
    pub status: Status,
    /// The condition under which the run is complete.
    pub work: Work,
    /// The advice for a run that did not succeed. If this field is `None`, the verdict gives the advice of `status`.
    pub advice: Option<&'static str>,
    /// The temperature at the end of the run. The temperature is 1 if the fit does not use tempering.
    pub temperature: f64,
    /// The advice for the user if the final temperature is above 1.
    pub cooling: String,
    /// Further reasons not to trust the result.
    pub against: Verdict,
    /// The comparison with a plain baseline model, or `None` if there is no baseline.
    pub baseline: Option<Baseline>,
    /// Remarks for the user that do not affect the verdict.
    pub notes: Vec<String>,
}

impl Evidence {
    /// Returns evidence with the given status, temperature 1 and no further reasons.
    pub fn new(status: Status, work: Work) -> Self {
        Self {
            status,
            work,
            advice: None,
            temperature: 1.0,
            cooling: String::new(),
            against: Verdict::new(),
            baseline: None,
            notes: Vec::new(),
        }
    }

    fn finished(&self, iterations: u64) -> Option<&str> {
        let used_up = self.status.is_out_of_iterations();
        match &self.work {
            Work::Planned {
                iterations: planned,
                made,
            } if used_up && iterations >= *planned => Some(made),
            _ => None,
        }
    }
}

/// The fields that every `fit.json` has, whatever the kind of fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The version of the layout of the file, or 0 if the file does not contain a version.
    #[serde(default)]
    pub format: u32,
    /// The status at the end of the run, with advice for the user.
    pub status: String,
    /// Whether the run met a stopping rule.
    #[serde(default)]
    pub converged: bool,
    /// Whether the result is trusted. The run must have converged or completed its plan at temperature 1, the score
    /// must not be lower than the baseline allows, and there must be no other reason against the result.
    #[serde(default)]
    pub trusted: bool,
    /// The reasons not to trust the result, followed by remarks that do not affect the verdict.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The comparison with a plain baseline model, or `None` if there is no baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
}

impl Judgement {
    /// Returns the comparison with the baseline model in the form that the report shows.
    pub fn fact(&self) -> Option<Fact> {
        let Baseline {
            model, score, unit, ..
        } = self.baseline.as_ref()?;
        Some(Fact::new(model, format!("{score:.4}"), unit))
    }

    /// Computes the verdict on a run from its evidence and its number of iterations.
    pub fn of(evidence: &Evidence, iterations: u64) -> Self {
        let status = &evidence.status;
        let ending = Reason::new(
            status.to_string(),
            evidence.advice.unwrap_or_else(|| status.advice()),
        );
        let finished = evidence.finished(iterations);
        let hot = evidence.temperature.is_nan() || evidence.temperature > COLD;
        let mut verdict = Verdict::new();
        let open = !status.is_converged() && finished.is_none();
        if open && evidence.work != Work::Judged {
            verdict.against(ending.clone());
        }
        if hot {
            verdict.against(Reason::new(
                format!(
                    "the fit ended at temperature {:.2}, so it describes a tempered model",
                    evidence.temperature
                ),
                evidence.cooling.clone(),
            ));
        }
        verdict.extend(evidence.against.clone());
        if let Some(reason) = evidence.baseline.as_ref().and_then(Baseline::reason) {
            verdict.against(reason);
        }
        let mut warnings = verdict.warnings();
        warnings.extend(evidence.notes.iter().cloned());
        let ended = match finished {
            Some(made) => format!("{made}, after {iterations} iterations"),
            None => ending.to_string(),
        };
        Self {
            format: jensen_data::FIT_FORMAT,
            status: match hot {
                true => format!("ended at temperature {:.2}; {ended}", evidence.temperature),
                false => ended,
            },
            converged: status.is_converged(),
            trusted: verdict.trusted(),
            warnings,
            baseline: evidence.baseline.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use jensen_run::Limit;

    use super::*;

    fn used_up(limit: Limit) -> Status {
        Status::BudgetReached {
            limit,
            detail: String::new(),
        }
    }

    fn planned(status: Status) -> Evidence {
        let work = Work::Planned {
            iterations: 20,
            made: "all passes are made: 2".to_owned(),
        };
        Evidence::new(status, work)
    }

    #[test]
    fn a_plan_carried_out_is_what_was_asked_for() {
        let evidence = planned(used_up(Limit::Iterations(20)));
        let made = Judgement::of(&evidence, 20);
        assert!(made.trusted && !made.converged && made.warnings.is_empty());
        assert_eq!(made.status, "all passes are made: 2, after 20 iterations");
        for (status, iterations) in [
            (used_up(Limit::Seconds(1.0)), 20),
            (used_up(Limit::Iterations(10)), 10),
            (Status::Interrupted { at: 20 }, 20),
        ] {
            let judged = Judgement::of(&planned(status), iterations);
            assert!(!judged.trusted, "{}", judged.status);
            assert_eq!(judged.warnings, [judged.status]);
        }
        let open = Evidence::new(used_up(Limit::Iterations(20)), Work::UntilItConverges);
        assert!(!Judgement::of(&open, 20).trusted);
    }

    #[test]
    fn what_ends_hot_is_not_trusted() {
        for temperature in [1.06, 4.4, f64::NAN] {
            let evidence = Evidence {
                temperature,
                cooling: "Give it a cooling.".to_owned(),
                ..planned(used_up(Limit::Iterations(20)))
            };
            let judged = Judgement::of(&evidence, 20);
            assert!(!judged.trusted);
            assert!(judged.warnings[0].ends_with("a tempered model. Give it a cooling."));
            let said = format!("ended at temperature {temperature:.2}; all passes");
            assert!(judged.status.starts_with(&said), "{}", judged.status);
        }
        let evidence = Evidence {
            temperature: 1.005,
            ..planned(used_up(Limit::Iterations(20)))
        };
        assert!(Judgement::of(&evidence, 20).trusted);
    }

    #[test]
    fn what_is_worse_than_the_plain_model_is_not_trusted() {
        let beside = |fit: f64| Evidence {
            baseline: Some(Baseline {
                model: "one component".to_owned(),
                score: -10.0,
                fit,
                least: -12.0,
                unit: "ELBO in nats".to_owned(),
                advice: "Ask for one.".to_owned(),
            }),
            ..planned(used_up(Limit::Iterations(20)))
        };
        assert!(Judgement::of(&beside(-11.0), 20).trusted);
        for fit in [-13.0, f64::NAN] {
            let judged = Judgement::of(&beside(fit), 20);
            assert!(!judged.trusted);
            let said = &judged.warnings[0];
            assert!(
                said.contains("one component, scores higher than the fit: -10.0000"),
                "{said}"
            );
            assert!(said.ends_with("Ask for one."), "{said}");
        }
    }

    #[test]
    fn notes_do_not_speak_against_a_result() {
        let mut evidence = planned(used_up(Limit::Iterations(20)));
        evidence.notes.push("no documents are held out".to_owned());
        let judged = Judgement::of(&evidence, 20);
        assert!(judged.trusted);
        assert_eq!(judged.warnings, ["no documents are held out"]);
        evidence
            .against
            .against(Reason::bare("the bound is not finite"));
        let judged = Judgement::of(&evidence, 20);
        assert!(!judged.trusted);
        assert_eq!(judged.warnings[0], "the bound is not finite");
    }
}
