//! The results of a refinement: the summary in `fit.json` and the section of the report.

use jensen_blackbox::{Estimate, RHAT_LIMIT, Refined};
use jensen_data::RefinementSummary;
use jensen_math::text::fixed;
use jensen_report::Exhibit;
use jensen_report::figure::{Axis, Chart, Figure, Series};

use crate::Fitted;

const SHOWN: usize = 6;

const BARS: usize = 40;

impl Fitted {
    /// Returns the result of the refinement, or `None` if the fit was not refined.
    pub fn refined(&self) -> Option<&Refined> {
        self.fit.refined.as_ref()
    }

    /// Returns the divergence KL(q‖p) of the approximation from the posterior in nats. Returns `None` if no refinement
    /// has estimated the divergence.
    pub fn divergence(&self) -> Option<Estimate> {
        let elbo = self.fit.best().evaluation.elbo;
        self.refined().map(|refined| refined.divergence(elbo))
    }

    pub(crate) fn refinement_summary(&self) -> Option<RefinementSummary> {
        let (refined, kl) = (self.refined()?, self.divergence()?);
        Some(RefinementSummary {
            used: refined.mixed(),
            log_evidence: refined.log_evidence.mean,
            log_evidence_se: refined.log_evidence.standard_error,
            kl: kl.mean,
            kl_se: kl.standard_error,
            rhat: refined.mixing.rhat,
            ess: refined.mixing.ess,
            draws: refined.draws.count as u64,
            gradients: refined.calls.gradients,
            because: self.refined_because(),
        })
    }

    /// Returns the checks that the approximation failed and that caused its refinement.
    pub fn refined_because(&self) -> Vec<String> {
        let reasons = self.fit.against_approximation().into_iter();
        let sentences = reasons.map(|reason| reason.sentence);
        // The reader must not take the status of the approximation for the status of the refinement.
        let own = |sentence: String| match sentence.strip_prefix("not converged: ") {
            Some(rest) => format!("the optimiser did not converge: {rest}"),
            None => sentence,
        };
        sentences.map(own).collect()
    }

    pub(crate) fn refinement_section(&self) -> Option<Exhibit> {
        let (refined, kl) = (self.refined()?, self.divergence()?);
        let used = if refined.mixed() {
            "This report uses the refined draws."
        } else {
            "It has not mixed, so this report uses draws of the approximation."
        };
        let rows = refined.stationary_phases.iter().map(|stationary_phase| {
            vec![
                stationary_phase.transitions.to_string(),
                format!("{:.3}", stationary_phase.step_size),
                format!("{:.2}", stationary_phase.acceptance),
                format!("{:.3}", stationary_phase.mixing.rhat),
                format!("{:.0}", stationary_phase.mixing.ess),
                format!(
                    "{} ± {}",
                    fixed(stationary_phase.log_evidence.mean, 3),
                    fixed(stationary_phase.log_evidence.standard_error, 3)
                ),
            ]
        });
        let head = [
            "transitions",
            "step size",
            "acceptance",
            "nested R̂",
            "effective draws",
            "log evidence",
        ];
        let mut figures = vec![(
            Figure::new("").panel(ladder(refined)),
            "The temperatures from the widened approximation (0) to the posterior (1): inverse temperature, \
             effective share of the particles after the change, and acceptance."
                .to_owned(),
        )];
        for (i, chart) in self.changed(refined) {
            figures.push((
                Figure::new("").panel(chart),
                format!(
                    "{} on the unconstrained scale: refined draws (solid) and the approximation (dashed).",
                    self.coordinates[i]
                ),
            ));
        }
        Some(Exhibit {
            heading: "Refinement".to_owned(),
            note: format!(
                "Sequential Monte Carlo moved particles from the widened approximation to the posterior over \
                 {} temperatures. Hamiltonian transitions followed, for a total of {} gradients. {used} The \
                 log evidence is {:.3} ± {:.3} nats, so KL(q‖p) of the approximation is {:.3} ± {:.3} nats. \
                 The limits are a nested R̂ of {RHAT_LIMIT} and {} effective draws. Each row of the table is a \
                 stationary phase, and the last one gives the draws.",
                refined.ladder.len(),
                refined.calls.gradients,
                refined.log_evidence.mean,
                refined.log_evidence.standard_error,
                kl.mean,
                kl.standard_error,
                self.settings.policy.effective_draws,
            ),
            figures,
            table: (head.map(str::to_owned).to_vec(), rows.collect()),
        })
    }

    fn changed(&self, refined: &Refined) -> Vec<(usize, Chart)> {
        let approximation = self.approximation();
        let (means, sds) = (approximation.mean(), approximation.sd());
        let draws = &refined.draws;
        let mut found: Vec<(f64, usize)> = (0..draws.dim)
            .filter(|_| draws.count > 1)
            .map(|i| {
                let own = jensen_blackbox::Summary::of(draws.lanes().row(i));
                let shift = (own.mean - means[i]).abs() / own.sd;
                (shift + (sds[i] / own.sd).ln().abs(), i)
            })
            .collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        let shown = found.into_iter().take(SHOWN);
        shown
            .map(|(_, i)| (i, marginal(draws.lanes().row(i), means[i], sds[i])))
            .collect()
    }
}

fn ladder(refined: &Refined) -> Chart {
    let temperature_steps = || refined.ladder.iter().enumerate();
    let line = |value: fn(&jensen_blackbox::TemperatureStep) -> f64| -> Vec<(f64, f64)> {
        temperature_steps()
            .map(|(i, temperature_step)| ((i + 1) as f64, value(temperature_step)))
            .collect()
    };
    Chart::new("")
        .x(Axis::new("stage"))
        .y(Axis::new(""))
        .series(Series::line("inverse temperature", line(|r| r.beta)).marked())
        .series(Series::line("share left", line(|r| r.share)).marked())
        .series(Series::line("acceptance", line(|r| r.acceptance)).marked())
}

fn marginal(draws: &[f64], mean: f64, sd: f64) -> Chart {
    let mut sorted = draws.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |p: f64| jensen_math::order::quantile(&sorted, p);
    let (low, high) = (
        at(0.001).min(mean - 3.0 * sd),
        at(0.999).max(mean + 3.0 * sd),
    );
    let width = (high - low) / BARS as f64;
    let (mut bars, mut normal) = (Vec::new(), Vec::new());
    for bar in 0..BARS {
        let from = low + bar as f64 * width;
        let below = |x: f64| sorted.partition_point(|y| *y < x) as f64;
        let share = (below(from + width) - below(from)) / sorted.len() as f64;
        let middle = from + 0.5 * width;
        bars.push((middle, share / width));
        let z = (middle - mean) / sd;
        normal.push((
            middle,
            (-0.5 * z * z).exp() / (sd * std::f64::consts::TAU.sqrt()),
        ));
    }
    Chart::new("")
        .x(Axis::new(""))
        .y(Axis::new("density"))
        .series(Series::line("refined", bars))
        .series(Series::line("approximation", normal).dashed())
}
