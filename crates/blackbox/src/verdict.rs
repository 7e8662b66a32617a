//! Whether a fit is to be trusted: the one place that decides it.

use jensen_run::{Reason, Status, Verdict};

use crate::driver::FamilyResult;
use crate::evaluation::Evaluation;
use crate::fit::Fit;
use crate::starts::{OtherMode, StartOutcome, best_start, scattered};

impl Fit {
    /// Everything that speaks against using the chosen approximation: the optimiser has not converged, the importance
    /// weights have too heavy a tail, the density is not finite everywhere, the starts disagree, or something was
    /// found after the fit.
    pub fn verdict(&self) -> Verdict {
        let mut verdict = Verdict::new();
        let (best, modes) = (self.best(), self.modes());
        let reasons = unfinished(&self.status)
            .into_iter()
            .chain(heavy_tail(best))
            .chain(not_finite(&best.evaluation))
            .chain(modes.iter().map(another_mode))
            .chain(many_optima(&self.starts))
            .chain(self.objections.iter().cloned());
        reasons.for_each(|reason| verdict.against(reason));
        verdict
    }
}

fn unfinished(status: &Status) -> Option<Reason> {
    (!status.is_converged()).then(|| Reason::new(status.to_string(), status.advice()))
}

fn heavy_tail(result: &FamilyResult) -> Option<Reason> {
    let e = &result.evaluation;
    (!e.khat_is_good()).then(|| {
        Reason::new(
            format!(
                "Pareto k̂ is {:.2}, above {:.2}: the {} approximation misses mass of the posterior",
                e.khat, e.khat_threshold, result.kind
            ),
            "Reparameterise, or try a richer family.",
        )
    })
}

fn not_finite(e: &Evaluation) -> Option<Reason> {
    let lost = e.rejected + e.impossible;
    if lost > 0 {
        return Some(Reason::bare(format!(
            "{lost} of {} draws have no finite log density",
            e.draws
        )));
    }
    (!e.elbo.mean.is_finite()).then(|| Reason::bare("the bound is not finite"))
}

fn another_mode(mode: &OtherMode) -> Reason {
    Reason::bare(format!(
        "another start ended in a different optimum, {:.1} standard deviations away in coordinate {} and only {:.2} \
         nats lower: the posterior has several modes and the fit covers one",
        mode.distance,
        mode.coordinate + 1,
        mode.below
    ))
}

fn many_optima(starts: &[StartOutcome]) -> Option<Reason> {
    let others = (!starts.is_empty())
        .then(|| scattered(starts, best_start(starts)))
        .flatten()?;
    Some(Reason::new(
        format!(
            "{} starts ended in {} different optima, few of them in the best: there may be better ones",
            starts.len(),
            others + 1
        ),
        "Start near a sensible point, or reparameterise.",
    ))
}
