//! The summary of a fit for scripts, and its report for people.

use jensen_blackbox::{AdviSettings, AdviStop, Method};
use jensen_data::{
    AdviConfig, Coordinates, ElboPoint, FitSummary, ParameterSummary, Seconds, StanCsvComments,
    StanCsvHeader,
};
use jensen_density::VariableKind;
use jensen_math::text::fixed;
use jensen_report::{
    Exhibit, Fact, Khat, Marginal, Parameter, Posterior, Report, Section, Stage, Tone, TracePoint,
    Verdict, Weights,
};
use jensen_run::Record;

use crate::job::{Evidence, Judgement, Work};
use crate::{Fitted, Predictive};

const POINTS: usize = 400;

/// The maximum number of scalars whose draws a report contains. If the fit has more scalars, the report states that it
/// omits some.
const MARGINALS: usize = 400;

/// An estimate of the ELBO at one iteration of a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HistoryPoint {
    /// The stage of the run, such as `starts`, `meanfield` or `fullrank`.
    pub stage: String,
    /// The iteration.
    pub iteration: u64,
    /// The wall-clock time in seconds since the start of the run.
    pub seconds: f64,
    /// The estimated ELBO in nats.
    pub elbo: f64,
    /// The Monte Carlo standard error of `elbo`, or `None` if the method does not estimate it.
    pub se: Option<f64>,
    /// The scale of the step size of ADVI.
    pub eta: Option<f64>,
}

impl HistoryPoint {
    /// Returns the ELBO estimate of a trace line, or `None` if the line contains no estimate.
    pub fn of(record: &Record) -> Option<Self> {
        let text = |name: &str| record.fields.get(name).and_then(|value| value.as_str());
        let stage = match (text("stage"), text("phase"), text("family")) {
            (_, Some("adapt"), _) => "step-size search",
            (_, _, Some(family)) => family,
            (Some(stage), _, None) => stage,
            (None, _, None) => "",
        };
        Some(Self {
            stage: stage.to_owned(),
            iteration: record.iteration,
            seconds: record.seconds,
            elbo: record.elbo?,
            se: record.elbo_se,
            eta: record.fields.get("eta").and_then(|value| value.as_f64()),
        })
    }
}

/// The parts of a report that are not results of the fit, such as the settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The name of the model or of its file.
    pub model: String,
    /// The name of the data or of their file.
    pub data: String,
    /// The names and values of the settings.
    pub settings: Vec<(String, String)>,
    /// Additional figures that the method provides. The report shows them after the ELBO.
    pub exhibits: Vec<Exhibit>,
    /// The section of the report on predictions.
    pub predictive: Predictive,
}

/// Returns the settings of a method under the names that CmdStan uses. For methods other than ADVI, the function
/// returns CmdStan's default values.
pub fn advi_config(method: &Method) -> AdviConfig {
    let Method::Advi(settings) = method else {
        return AdviConfig::default();
    };
    let AdviSettings {
        grad_samples,
        elbo_samples,
        eta,
        eval_elbo,
        tol_rel_obj,
        max_iterations,
        stop,
        ..
    } = *settings;
    let usual = AdviConfig::default();
    AdviConfig {
        iter: max_iterations,
        grad_samples: grad_samples as u64,
        elbo_samples: elbo_samples as u64,
        eta: eta.unwrap_or(usual.eta),
        adapted: eta.is_none(),
        tol_rel_obj: match stop {
            AdviStop::Relative => tol_rel_obj,
            // CmdStan has no stopping rule in nats, so the header contains CmdStan's default tolerance.
            AdviStop::Nats => usual.tol_rel_obj,
        },
        eval_elbo,
    }
}

impl Fitted {
    /// Returns the comment lines for a Stan CSV file that contains the draws.
    pub fn csv_comments(&self, about: &About) -> StanCsvComments {
        let found = self.history.iter().rev().find_map(|point| point.eta);
        let refined = self.fit.refined.as_ref().is_some_and(|r| r.mixed());
        let advi = advi_config(&self.settings.method);
        let header = StanCsvHeader {
            model: about.model.clone(),
            family: self.fit.best().family.to_string(),
            draws_of: if refined { "refined" } else { "approximation" }.to_owned(),
            seed: self.settings.seed,
            eta: found.unwrap_or(advi.eta),
            advi,
            settings: about.settings.clone(),
        };
        header.comments(self.sample.table.len())
    }

    /// Returns the diagnostics on which the verdict is based.
    pub fn evidence(&self) -> Evidence {
        Evidence {
            against: self.verdict(),
            notes: self
                .without_moments()
                .into_iter()
                .chain(self.model_remarks.iter().cloned())
                .collect(),
            ..Evidence::new(self.fit.status.clone(), Work::Judged)
        }
    }

    /// Returns the verdict in the format that all fit jobs share.
    pub fn judgement(&self) -> Judgement {
        Judgement::of(&self.evidence(), self.fit.iterations)
    }

    /// Returns a text with the status of the run and advice for the user.
    pub fn status_text(&self) -> String {
        self.judgement().status
    }

    /// Returns the reasons not to trust the fit, with advice. Each reason is one sentence. The list is empty if the fit
    /// is trusted.
    pub fn warnings(&self) -> Vec<String> {
        self.verdict().warnings()
    }

    /// Returns the summaries of all reported scalars, in the order of the columns of the draws.
    pub fn parameters(&self) -> Vec<ParameterSummary> {
        self.summaries.clone()
    }

    /// Adds the labels of the dimensions to the summaries.
    pub fn label(&mut self, coordinates: &Coordinates) {
        let variables = self.sample.table.variables().iter();
        let labels = variables.flat_map(|variable| match coordinates.labelled(variable) {
            Some(labels) => labels.into_iter().map(Some).collect(),
            None => vec![None; variable.len()],
        });
        for (summary, label) in self.summaries.iter_mut().zip(labels) {
            summary.label = label;
        }
    }

    /// Returns the contents of `fit.json`.
    pub fn summary(&self) -> FitSummary {
        self.summary_of(self.judgement())
    }

    pub(crate) fn summary_of(&self, judged: Judgement) -> FitSummary {
        let best = self.fit.best();
        FitSummary {
            format: judged.format,
            status: judged.status,
            converged: judged.converged,
            trusted: judged.trusted,
            elbo: self.fit.elbo(),
            elbo_se: self.fit.elbo_se(),
            khat: self.fit.khat(),
            iterations: self.fit.iterations,
            oracle_calls: self.fit.oracle_calls(),
            seconds: Seconds {
                build: self.build_seconds,
                fit: self.fit.seconds,
                draws: self.draws_seconds,
            },
            dim: self.approximation().dim(),
            seed: self.settings.seed,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            parameters: self.parameters(),
            method: self.identity.algorithm.clone(),
            family: best.family.to_string(),
            draws: self.sample.table.len() as u64,
            warnings: judged.warnings,
            labellings: self.fit.labellings() as u64,
            refinement: self.refinement_summary(),
            elbo_history: thinned(&self.history)
                .into_iter()
                .map(|point| ElboPoint {
                    stage: point.stage.clone(),
                    iteration: point.iteration,
                    elbo: point.elbo,
                    elbo_se: point.se.unwrap_or(f64::NAN),
                })
                .collect(),
        }
    }

    /// Returns the report of the fit. The function [`jensen_report::render`] converts a report to a page.
    pub fn report(&self, about: &About) -> Report {
        let best = self.fit.best();
        let table = &self.sample.table;
        let summaries = self.parameters();
        let draws = table.len() as f64;
        let parameters = summaries
            .iter()
            .map(|p| Parameter {
                name: p.shown().to_owned(),
                mean: p.mean,
                sd: p.sd,
                q05: p.q05,
                q50: p.q50,
                q95: p.q95,
                mcse: p
                    .mcse
                    .or(Some(p.sd / draws.sqrt()))
                    .filter(|error| error.is_finite()),
            })
            .collect();
        let khat = Khat {
            value: best.evaluation.khat,
            threshold: best.evaluation.khat_threshold,
        };
        let refined = self.refined().is_some_and(|refined| refined.mixed());
        let fact = |label: &str, value: String| Fact::new(label, value, "");
        let facts = vec![
            Fact::elbo(self.fit.elbo(), self.fit.elbo_se()),
            match refined {
                // Refined draws do not come from the approximation, so the limit of k̂, which would look like a
                // warning, is omitted here.
                true => Fact {
                    aside: "of the approximation alone".to_owned(),
                    ..Fact::khat(khat)
                },
                false => Fact::khat(khat),
            },
            fact("Method", self.identity.algorithm.clone()),
            fact("Family", best.family.to_string()),
            fact("Dimension", self.approximation().dim().to_string()),
            fact("Draws", table.len().to_string()),
            fact("Iterations", self.fit.iterations.to_string()),
        ];
        let mut sections: Vec<Section> = self.tried().into_iter().map(Section::from).collect();
        sections.extend(about.predictive.exhibits.iter().cloned().map(Section::from));
        let evidence = [
            Section::Bound(stages(&self.history)),
            Section::Weights(Weights {
                khat: Some(khat),
                refined,
                // Only draws from the approximation have importance weights.
                log_weights: match refined {
                    true => Vec::new(),
                    false => table.log_weights(),
                },
            }),
        ];
        sections.push(Section::Posterior(Posterior {
            parameters,
            marginals: self.marginals(),
            elsewhere: about.predictive.variables.clone(),
        }));
        sections.extend(evidence);
        let exhibits = self.refinement_section().into_iter();
        let exhibits = exhibits.chain(about.exhibits.iter().cloned());
        sections.extend(exhibits.map(Section::from));
        Report {
            title: about.model.clone(),
            subject: vec![
                ("Model".to_owned(), about.model.clone()),
                ("data".to_owned(), about.data.clone()),
            ],
            verdict: self.verdict_of_page(),
            facts,
            warnings: self.judgement().warnings,
            sections,
            settings: about.settings.clone(),
            timing: vec![
                ("build".to_owned(), self.build_seconds),
                ("fit".to_owned(), self.fit.seconds),
                ("draws".to_owned(), self.draws_seconds),
            ],
            footnote: format!(
                "The evidence lower bound is in nats, with all normalising constants; the log evidence is at \
                 least that large. Intervals are those of {}.",
                match self.refined().is_some_and(|refined| refined.mixed()) {
                    true => "the refined draws",
                    false => "the approximation",
                }
            ),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Returns `None` if the fit used a single family without a refinement.
    fn tried(&self) -> Option<Exhibit> {
        let refined = self.refined();
        if self.fit.families.len() + usize::from(refined.is_some()) < 2 {
            return None;
        }
        let used = refined.is_some_and(|refined| refined.mixed());
        let families = self.fit.families.iter().enumerate();
        let families = families.map(|(at, result)| {
            let e = &result.evaluation;
            let outcome = match (at == self.fit.chosen, used) {
                (true, true) => "start of the refinement",
                (true, false) => "source of the draws",
                (false, _) => "replaced",
            };
            vec![
                result.family.to_string(),
                format!(
                    "{} ± {}",
                    fixed(e.elbo.mean, 2),
                    fixed(e.elbo.standard_error, 2)
                ),
                format!("{:.2}", e.khat),
                outcome.to_owned(),
            ]
        });
        let refinement = refined.map(|refined| {
            let evidence = &refined.log_evidence;
            let outcome = match used {
                true => "source of the draws",
                false => "not mixed",
            };
            vec![
                "refinement".to_owned(),
                format!(
                    "{} ± {}",
                    fixed(evidence.mean, 2),
                    fixed(evidence.standard_error, 2)
                ),
                "–".to_owned(),
                outcome.to_owned(),
            ]
        });
        let heads = ["tried", "bound, nats", "Pareto k̂", "outcome"];
        Some(Exhibit {
            heading: "Stages of the fit".to_owned(),
            note: "The stages in order, up to the first that passed its checks. An ELBO is a lower bound on \
                   the log evidence; a refinement estimates the log evidence itself."
                .to_owned(),
            table: (heads.map(str::to_owned).to_vec(), families.chain(refinement).collect()),
            ..Exhibit::default()
        })
    }

    fn verdict_of_page(&self) -> Verdict {
        let (tone, headline) = match (self.fit.converged(), self.trusted()) {
            (true, true) => (Tone::Good, "Converged, and the draws can be trusted"),
            (false, true) => (
                Tone::Fair,
                "The draws pass their checks, but the optimiser did not converge",
            ),
            (true, false) => (Tone::Fair, "Converged, but the draws fail their checks"),
            (false, false) => (Tone::Poor, "Not converged: do not use these results"),
        };
        let status = &self.fit.status;
        let advice = Some(status.advice()).filter(|advice| !advice.is_empty());
        Verdict {
            advice: advice.map(str::to_owned).into_iter().collect(),
            ..Verdict::new(tone, headline, status.to_string())
        }
    }

    fn marginals(&self) -> Vec<Marginal> {
        let table = &self.sample.table;
        let mut scalars = Vec::new();
        let mut column = 0;
        for (variable, columns) in self.sample.variables.iter().zip(table.variables()) {
            for name in columns.display_names() {
                let order = match variable.kind {
                    VariableKind::Parameter => 0,
                    VariableKind::Transformed => 1,
                    VariableKind::Generated => 2,
                };
                scalars.push((order, column, name));
                column += 1;
            }
        }
        scalars.sort_by_key(|(order, column, _)| (*order, *column));
        scalars.truncate(MARGINALS);
        scalars
            .into_iter()
            .map(|(_, column, name)| Marginal {
                name,
                draws: table.column(column),
            })
            .collect()
    }
}

fn by_stage(history: &[HistoryPoint]) -> Vec<&[HistoryPoint]> {
    history.chunk_by(|a, b| a.stage == b.stage).collect()
}

fn thinned(history: &[HistoryPoint]) -> Vec<&HistoryPoint> {
    let mut kept = Vec::new();
    for stage in by_stage(history) {
        let last = stage.len() - 1;
        if stage.len() <= POINTS {
            kept.extend(stage);
        } else {
            kept.extend((0..POINTS).map(|i| &stage[i * last / (POINTS - 1)]));
        }
    }
    kept
}

fn stages(history: &[HistoryPoint]) -> Vec<Stage> {
    let kept: Vec<HistoryPoint> = thinned(history).into_iter().cloned().collect();
    by_stage(&kept)
        .into_iter()
        .map(|stage| Stage {
            name: stage[0].stage.clone(),
            points: stage
                .iter()
                .map(|point| TracePoint {
                    iteration: point.iteration,
                    seconds: point.seconds,
                    elbo: point.elbo,
                    se: point.se.unwrap_or(f64::NAN),
                })
                .collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(stage: &str, iteration: u64) -> HistoryPoint {
        HistoryPoint {
            stage: stage.into(),
            iteration,
            seconds: 0.0,
            elbo: -(iteration as f64),
            se: Some(0.1),
            eta: None,
        }
    }

    #[test]
    fn thinning_keeps_both_ends_of_every_stage() {
        let mut history: Vec<_> = (1..=10).map(|i| point("starts", i)).collect();
        history.extend((11..=5000).map(|i| point("meanfield", i)));
        let kept = thinned(&history);
        assert_eq!(kept.len(), 10 + POINTS);
        assert_eq!(kept[10].iteration, 11);
        assert_eq!(kept.last().unwrap().iteration, 5000);
        let stages = stages(&history);
        assert_eq!(stages.len(), 2);
        assert_eq!(stages[1].points.len(), POINTS);
    }

    #[test]
    fn a_line_without_a_bound_is_no_point() {
        let record = Record::new(3).with_text("stage", "saa");
        assert_eq!(HistoryPoint::of(&record), None);
        let record = record
            .with_elbo(-2.0, None)
            .with_text("family", "meanfield");
        let point = HistoryPoint::of(&record).unwrap();
        assert_eq!((point.stage.as_str(), point.elbo), ("meanfield", -2.0));
        assert_eq!(point.se, None);
    }
}
