//! The reasons not to trust the fit of a density.

use jensen_math::text::fixed;
use jensen_run::{Reason, Status, Verdict};

use crate::agreement::Difference;
use crate::approximation::Draws;
use crate::dense::{cholesky, solve_lower};
use crate::driver::FamilyResult;
use crate::evaluation::Evaluation;
use crate::family::{FamilyKind, FamilyName};
use crate::fit::Fit;
use crate::policy::{DENSE, Policy};
use crate::reduce::dot;
use crate::refine::{Refined, Unreached};
use crate::starts::{OtherMode, StartOutcome, best_start, scattered};

mod modes;

use modes::Found;

/// The largest divergence, in nats, is this value plus the policy's allowance for each coordinate. In tests on skewed
/// posteriors of one coordinate with known moments, the divergence was 0.35 to 0.7 if the standard deviation was wrong
/// by at least a third, and up to 0.17 if it was wrong by at most a tenth. For eight schools, the divergence was 0.34,
/// and all ten standard deviations were correct to within a fifth.
const FAR: f64 = 0.25;

impl Fit {
    /// Returns the verdict, with every reason not to trust the draws of the fit.
    ///
    /// The possible reasons against the chosen approximation are: the optimiser has not converged; the importance
    /// weights have too heavy a tail, or change a mean or a standard deviation; the density is not finite everywhere,
    /// or does not decrease in its tails; the starts disagree; or a check after the fit has failed. Refined draws that
    /// have mixed do not depend on the weights of the approximation, so only the last three of these reasons apply to
    /// them. Even mixed draws do not refute these reasons: chains may never have visited another mode, and chains in an
    /// improper posterior can appear to mix.
    pub fn verdict(&self) -> Verdict {
        let mut verdict = Verdict::new();
        let (best, modes) = (self.best(), self.modes());
        let mixed = self.refined.as_ref().filter(|refined| refined.mixed());
        let explored =
            |mode: &OtherMode| mixed.is_some_and(|refined| explored(refined, mode, &self.policy));
        let others = modes.iter().zip(self.mirrored()).zip(&self.lines);
        let others: Vec<Found<'_>> = others
            .map(|((mode, mirrored), line)| Found {
                mode,
                mirrored,
                line,
            })
            .filter(|other| !explored(other.mode))
            .filter(|other| mixed.is_some() || !self.covers(other.mode))
            .collect();
        let improper = best.flat.is_some() || others.iter().any(Found::is_improper);
        let of_the_approximation = (self.of_the_approximation()).chain(
            self.refined
                .as_ref()
                .and_then(|r| not_mixed(r, &best.family, improper)),
        );
        let reasons = of_the_approximation
            .filter(|_| mixed.is_none())
            .chain(self.no_end())
            .chain(mixed.and_then(|refined| self.lacks_evidence(refined)))
            .chain(self.about_modes(&others))
            .chain(many_optima(&self.starts, explored))
            .chain(self.objections.iter().cloned());
        reasons.for_each(|reason| verdict.against(reason));
        verdict
    }

    /// Returns the reasons against draws of the chosen approximation alone. These reasons explain why a fit was
    /// refined.
    pub fn against_approximation(&self) -> Vec<Reason> {
        self.of_the_approximation().collect()
    }

    fn of_the_approximation(&self) -> impl Iterator<Item = Reason> {
        let best = self.best();
        unfinished(&self.status)
            .into_iter()
            .chain(heavy_tail(best))
            .chain(self.moved())
            .chain(not_finite(&best.evaluation))
            .chain(self.far_away())
            .chain(self.out_of_reach())
    }

    /// Returns whether the approximation covers another mode. It does if its components have about the mass that the ELBO of
    /// the mode predicts, or if the mode lies among its draws. The importance weights then show whether that mass is right.
    fn covers(&self, mode: &OtherMode) -> bool {
        let approximation = self.approximation();
        let (family, omega) = (approximation.family(), approximation.omega());
        let is_of_it = |mean: f64, sd: f64| mode.has_part(mean, sd);
        let of_parts = family.share_of_parts(omega, mode.coordinate, &is_of_it);
        of_parts >= VISITED * promised(mode) || self.surrounds(mode)
    }

    /// Returns whether the other optimum lies among the draws of the approximation. A mean-field fit of correlated
    /// coordinates has optima all along a ridge, which a richer approximation covers. In more than [`DENSE`] dimensions, a
    /// covariance of the draws takes too long, and the function returns false.
    fn surrounds(&self, mode: &OtherMode) -> bool {
        let dim = self.best().dim;
        let draws = (TELLING * dim).max(self.policy.preview_draws());
        dim <= DENSE
            && !mode.is_within()
            && is_amid(&self.approximation().draws(draws, self.source), &mode.mean)
    }

    /// Returns an objection if the log evidence of the refined draws is below an ELBO. In that case, the draws miss
    /// mass. The log evidence of the whole posterior is at least the ELBO. If the draws cover only a part of the
    /// posterior, their log evidence is smaller by the negative logarithm of the part's share. The function objects
    /// only if the missing share exceeds the policy's limit by more than a margin for sampling errors.
    fn lacks_evidence(&self, refined: &Refined) -> Option<Reason> {
        let bounds = self.families.iter().map(|result| &result.evaluation);
        let bounds = bounds.filter(|evaluation| !evaluation.is_holey());
        let elbo = bounds
            .map(|evaluation| evaluation.elbo)
            .filter(|elbo| elbo.mean.is_finite())
            .max_by(|a, b| a.mean.total_cmp(&b.mean))?;
        let gap = refined.divergence(elbo);
        let most = gap.mean + self.policy.confidence() * gap.standard_error;
        (most < (-self.policy.unreached()).ln_1p()).then(|| {
            Reason::bare(format!(
                "the log evidence of the refined draws is {} ± {} nats below the ELBO of an approximation, so the draws \
                 miss at least {:.0} % of the mass",
                fixed(-gap.mean, 2),
                fixed(gap.standard_error, 2),
                -100.0 * most.exp_m1()
            ))
        })
    }

    /// Returns whether refined draws could be trusted if they mixed. They could, unless an objection to the fit also
    /// applied to them. Modes that are far apart relative to the narrow spreads of a mean-field fit may be close
    /// together relative to the spreads of the posterior.
    pub(crate) fn could_be_refined(&self) -> bool {
        self.no_end().is_none()
    }

    fn moved(&self) -> Option<Reason> {
        let (result, policy) = (self.best(), &self.policy);
        let Evaluation { agreement, .. } = &result.evaluation;
        if !result.evaluation.khat_is_good() || agreement.is_good(policy) {
            return None;
        }
        let of = |moved: Difference| {
            let name = self.name_of(moved.coordinate);
            match moved.constrained {
                true => name,
                false => format!("{name} on the unconstrained scale"),
            }
        };
        let margin = format!("{:.1} standard errors", policy.confidence());
        let mut changes = Vec::new();
        if !agreement.mean_is_good(policy) {
            let (mean, limit) = (agreement.mean, policy.mean_error);
            changes.push(format!(
                "the mean of {} by {:.3} ± {:.3} standard deviations (allowed: -{limit} to {limit}, less {margin})",
                of(mean),
                mean.value,
                mean.standard_error
            ));
        }
        if !agreement.sd_is_good(policy) {
            let (sd, limit) = (agreement.sd, policy.sd_error);
            changes.push(format!(
                "the standard deviation of {} by a factor of {:.3} ± {:.3} (allowed: {:.3} to {:.3}, less {margin})",
                of(sd),
                sd.value.exp(),
                sd.value.exp() * sd.standard_error,
                (-limit).exp(),
                limit.exp()
            ));
        }
        Some(Reason::new(
            format!(
                "importance weights change the {} approximation: {}",
                result.family,
                changes.join(", and ")
            ),
            self.advice(),
        ))
    }

    /// Returns advice for an approximation that fails a check of its draws.
    pub fn advice(&self) -> &'static str {
        match self.refined {
            Some(_) => "Reparameterise, or use another family.",
            None if self.ended.is_from_outside() || self.ended.is_out_of_iterations() => {
                "Allow more iterations or seconds, so that Jensen can refine the draws."
            }
            None => "Refine the draws (`--refine always`), or reparameterise.",
        }
    }

    /// Returns an objection if the approximation is poor, even if k̂ is small. For example, the posterior may have a
    /// heavy tail on a side that the draws do not reach.
    fn far_away(&self) -> Option<Reason> {
        let result = self.best();
        let divergence = result.evaluation.divergence();
        let limit = FAR + self.policy.divergence_of_a_coordinate() * result.dim as f64;
        (divergence > limit).then(|| {
            let text = format!(
                "the KL divergence of the {} approximation is about {} nats, above the limit of {limit:.2}: its \
                 standard deviations and tails may be wrong",
                result.family,
                fixed(divergence, 2)
            );
            Reason::new(text, self.advice())
        })
    }

    /// Returns an objection that the weights of the approximation's own draws cannot reveal.
    fn out_of_reach(&self) -> Option<Reason> {
        let result = self.best();
        result.beyond.map(|Unreached { coordinate, share }| {
            let text = match coordinate {
                Some(coordinate) => format!(
                    "no draw of the {} approximation reaches a part of the posterior that adds {share:.1} times \
                     the approximation's variance in {}: a slab, a long tail or another mode",
                    result.family,
                    self.name_of(coordinate)
                ),
                None => format!(
                    "the posterior has a spike that the draws of the {} approximation miss: it adds {share:.1} \
                     times the approximation's mass",
                    result.family
                ),
            };
            Reason::new(text, "Refine it (`--refine always`), or reparameterise.")
        })
    }

    fn no_end(&self) -> Option<Reason> {
        self.best().flat.map(|coordinate| {
            Reason::new(
                format!(
                    "the log density does not fall in the tail of {}, so the posterior may be improper",
                    self.name_of(coordinate)
                ),
                "Give every parameter a proper prior. If an outcome is constant, or a column separates the \
                 outcomes perfectly, the data do not bound a coefficient.",
            )
        })
    }
}

/// The smallest share of a mode's mass, relative to the mass that its ELBO predicts. The ELBO of a mean-field fit
/// underestimates the mass of correlated modes, by different factors for different modes.
const VISITED: f64 = 0.25;

/// Returns whether refined draws show that chains move to another mode and back. The indicator of the mode must have
/// mixed like any other quantity, and every population must have visited the mode. In addition, the share of all draws
/// that are in the mode must be at least [`VISITED`] times the share that the mode's ELBO predicts.
fn visited(refined: &Refined, mode: &OtherMode, policy: &Policy) -> bool {
    let (ensemble, draws) = (refined.ensemble, &refined.draws);
    let row = draws.lanes().row(mode.coordinate).iter();
    let near: Vec<f64> = row.map(|z| f64::from(mode.has_draw(*z))).collect();
    let mut seen = vec![0.0; ensemble.populations];
    for (i, near) in near.iter().enumerate() {
        seen[i % ensemble.lanes() / ensemble.chains] += near;
    }
    let found = seen.iter().sum::<f64>() / draws.count as f64;
    ensemble.judge(&near).is_good(policy)
        && seen.iter().all(|count| *count > 0.0)
        && found >= VISITED * promised(mode)
}

fn explored(refined: &Refined, optimum: &OtherMode, policy: &Policy) -> bool {
    visited(refined, optimum, policy)
        || (!optimum.is_within() && is_amid(&refined.draws, &optimum.mean))
}

/// The draws cover an optimum if its Mahalanobis distance from their mean, over all coordinates, is at most this value.
/// On a ridge, a mean-field Gaussian is so narrow that its ELBO has several optima where the posterior has only one
/// mode. A mode that the chains have not visited is farther from the draws.
const AMID: f64 = 3.0;

/// The smallest number of draws per coordinate that determines a Mahalanobis distance.
const TELLING: usize = 4;

/// Compares the Mahalanobis distance between the optimum and the mean of the draws with [`AMID`].
fn is_amid(draws: &Draws, optimum: &[f64]) -> bool {
    let (dim, count) = (draws.dim, draws.count);
    if count < TELLING * dim {
        return false;
    }
    let mut rows: Vec<Vec<f64>> = (0..dim).map(|i| draws.lanes().row(i).to_vec()).collect();
    let mut away = optimum.to_vec();
    for (row, away) in rows.iter_mut().zip(&mut away) {
        let mean = row.iter().sum::<f64>() / count as f64;
        row.iter_mut().for_each(|x| *x -= mean);
        *away -= mean;
    }
    let mut covariance = vec![0.0; dim * dim];
    for i in 0..dim {
        for j in 0..=i {
            covariance[i * dim + j] = dot(&rows[i], &rows[j]) / count as f64;
        }
    }
    cholesky(&covariance, dim).is_some_and(|factor| {
        solve_lower(&factor, &mut away);
        dot(&away, &away) <= AMID * AMID
    })
}

fn promised(mode: &OtherMode) -> f64 {
    1.0 / (1.0 + mode.below.exp())
}

/// If the posterior may be improper, advice on the geometry of the posterior would mislead.
fn not_mixed(refined: &Refined, family: &FamilyName, improper: bool) -> Option<Reason> {
    let advice = match family.kind() {
        _ if improper => "",
        Some(FamilyKind::Conditional) => {
            "Reparameterise (non-centred hierarchy, standardised covariates)."
        }
        _ => {
            "If a few scales control most parameters, try `--family conditional --refine always`; otherwise reparameterise \
             (non-centred hierarchy, standardised covariates)."
        }
    };
    let reasons = refined.reasons.join("; ");
    (!refined.mixed()).then(|| Reason::new(format!("refinement did not mix: {reasons}"), advice))
}

fn unfinished(status: &Status) -> Option<Reason> {
    (!status.is_converged()).then(|| Reason::new(status.to_string(), status.advice()))
}

fn heavy_tail(result: &FamilyResult) -> Option<Reason> {
    let e = &result.evaluation;
    (!e.khat_is_good()).then(|| {
        Reason::new(
            format!(
                "Pareto k̂ is {:.2}, above {:.2}: the {} approximation misses posterior mass",
                e.khat, e.khat_threshold, result.family
            ),
            "Reparameterise, or try a richer family.",
        )
    })
}

fn not_finite(e: &Evaluation) -> Option<Reason> {
    if e.is_holey() {
        return Some(Reason::bare(format!(
            "{} of {} draws have no finite log density",
            e.rejected + e.impossible,
            e.draws
        )));
    }
    if !e.elbo.mean.is_finite() {
        return Some(Reason::bare("the bound is not finite"));
    }
    if !e.is_resolved() {
        return Some(Reason::new(
            format!(
                "the ELBO is {:.1e} nats, too far from zero to resolve differences of one nat",
                e.elbo.mean
            ),
            "Give every parameter a proper prior, or rescale the data.",
        ));
    }
    None
}

fn poorer_optima(starts: &[StartOutcome]) -> Vec<OtherMode> {
    if starts.is_empty() {
        return Vec::new();
    }
    let best = best_start(starts);
    let poorer = scattered(starts, best).into_iter();
    poorer.map(|other| other.beside(&starts[best])).collect()
}

fn many_optima(starts: &[StartOutcome], answered: impl Fn(&OtherMode) -> bool) -> Option<Reason> {
    let others = poorer_optima(starts);
    others.iter().any(|other| !answered(other)).then(|| {
        Reason::new(
            format!(
                "{} starts ended in {} different optima, and few of them found the best one: a better one may \
                 exist",
                starts.len(),
                others.len() + 1
            ),
            "Start near a plausible point (`--init`), or reparameterise.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns draws along a ridge. The coordinates are a + b/10 and a − b/10, where a and b are standard normal, on a
    /// regular grid of quantiles.
    fn ridge(count: usize) -> Draws {
        let normal = |k: usize| jensen_math::special::inv_phi((k as f64 + 0.5) / count as f64);
        let common = (0..count).map(normal);
        let own = (0..count).map(|k| 0.1 * normal((k * 37 + 11) % count));
        let (first, second): (Vec<f64>, Vec<f64>) =
            common.zip(own).map(|(a, b)| (a + b, a - b)).unzip();
        Draws {
            z: [first, second].concat(),
            dim: 2,
            count,
            log_q: vec![0.0; count],
        }
    }

    #[test]
    fn an_optimum_on_the_ridge_of_the_draws_is_no_other_mode() {
        let draws = ridge(400);
        assert!(is_amid(&draws, &[1.5, 1.5]) && is_amid(&draws, &[-2.0, -1.9]));
        // In each coordinate, the first points are as close to the mean as some draws, but no draw is near them. The
        // other points are beyond the ends of the ridge.
        assert!(!is_amid(&draws, &[1.5, -1.5]));
        assert!(!is_amid(&draws, &[4.0, 4.0]));
        // Seven draws are too few for a decision.
        assert!(!is_amid(&ridge(7), &[0.0, 0.0]));
    }
}
