//! The results of starts, and their information about the posterior: the best start, other modes, many optima.

use jensen_run::{Archive, ArchiveError};
use serde::{Deserialize, Serialize};

/// Standard deviations, and relative difference of these, within which a start is at an optimum that was found before.
const AT: f64 = 0.3;

/// One start's end.
#[derive(Clone, Debug, PartialEq)]
pub struct StartOutcome {
    /// Mean-field parameters.
    pub omega: Vec<f64>,
    /// Bound on the shared draws.
    pub elbo: f64,
    /// Whether it reached an optimum of the shared draws.
    pub settled: bool,
    /// Whether it began far from the origin. An optimum from such a start counts as a mode, but a failure gives no
    /// information about the posterior.
    pub wide: bool,
}

impl StartOutcome {
    /// Means and log standard deviations.
    pub(crate) fn moments(&self) -> (&[f64], &[f64]) {
        self.omega.split_at(self.omega.len() / 2)
    }

    /// This optimum as another one than the best.
    pub(crate) fn beside(&self, best: &Self) -> OtherMode {
        let ((mean, log_sd), (best_mean, best_log_sd)) = (self.moments(), best.moments());
        let distances = (0..mean.len())
            .map(|k| (mean[k] - best_mean[k]).abs() / log_sd[k].max(best_log_sd[k]).exp());
        let (coordinate, distance) = distances
            .enumerate()
            .fold((0, 0.0), |a, b| if b.1 > a.1 { b } else { a });
        OtherMode {
            gap: (mean[coordinate] - best_mean[coordinate]).abs(),
            mean: mean.to_vec(),
            below: best.elbo - self.elbo,
            coordinate,
            distance,
        }
    }

    /// The variance that equal mass with this spread would add, relative to the best optimum's variances; the largest
    /// over coordinates.
    fn adds_to(&self, best: &Self) -> f64 {
        let ((mean, log_sd), (best_mean, best_log_sd)) = (self.moments(), best.moments());
        let added = (0..mean.len()).map(|k| {
            let second = (mean[k] - best_mean[k]).powi(2) + (2.0 * log_sd[k]).exp();
            second / (2.0 * best_log_sd[k]).exp()
        });
        added.fold(0.0, f64::max)
    }

    /// Whether it ended where this mode was found.
    pub(crate) fn is_at(&self, mode: &OtherMode) -> bool {
        self.settled && self.omega[..mode.mean.len()] == mode.mean[..]
    }

    /// Whether another start on the same draws is at this optimum.
    pub(super) fn is_found_by(&self, other: &Self) -> bool {
        let dim = self.omega.len() / 2;
        let near = |k: usize| {
            let log_sd = self.omega[dim + k];
            (self.omega[k] - other.omega[k]).abs() < AT * log_sd.exp()
                && (log_sd - other.omega[dim + k]).abs() < AT
        };
        self.settled && (self.elbo - other.elbo).abs() < SAME && (0..dim).all(near)
    }
}

/// Another optimum that the starts found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherMode {
    /// Mean of the other optimum.
    pub mean: Vec<f64>,
    /// The difference of the bounds in nats (about the log of the ratio of the modes' masses).
    pub below: f64,
    /// The coordinate of the largest difference.
    pub coordinate: usize,
    /// The difference in units of the larger standard deviation.
    pub distance: f64,
    /// That difference.
    pub gap: f64,
}

/// Nats below the best optimum at which another one has about 1 % of its mass, and at which it has 1 ‰.
const LIGHT: f64 = 5.0;
const LIGHTEST: f64 = 7.0;

/// Relative increase of a coordinate's variance that a lighter optimum must cause. Its standard deviation changes by
/// half as much.
const TELLING: f64 = 0.1;

/// The other optima among converged starts that are at least four standard deviations away in some coordinate and carry
/// at least about 1 % of the best one's mass, or 0.1 % if they are so far out that a standard deviation would be wrong
/// without them.
pub fn other_modes(outcomes: &[StartOutcome], best: usize) -> Vec<OtherMode> {
    let mut found: Vec<OtherMode> = Vec::new();
    for (i, outcome) in outcomes.iter().enumerate() {
        let below = outcomes[best].elbo - outcome.elbo;
        if i == best || !outcome.settled || below > LIGHTEST {
            continue;
        }
        let (mean, log_sd) = outcome.moments();
        let known = found
            .iter()
            .any(|m| (0..mean.len()).all(|k| (m.mean[k] - mean[k]).abs() < 2.0 * log_sd[k].exp()));
        if below > LIGHT && outcome.adds_to(&outcomes[best]) * (-below).exp() < TELLING {
            continue;
        }
        let mode = outcome.beside(&outcomes[best]);
        if mode.distance > 4.0 && !known {
            found.push(mode);
        }
    }
    found
}

/// Other optima of comparable mass.
pub(crate) fn modes_of(starts: &[StartOutcome]) -> Vec<OtherMode> {
    if starts.is_empty() {
        return Vec::new();
    }
    other_modes(starts, best_start(starts))
}

/// Nats within which two starts may have found the same optimum.
const SAME: f64 = 0.5;

/// The number of starts at the best one's optimum, itself included.
fn agreeing(outcomes: &[StartOutcome], best: usize) -> usize {
    let dim = outcomes[best].omega.len() / 2;
    let (mean, log_sd) = outcomes[best].omega.split_at(dim);
    let near = |outcome: &&StartOutcome| {
        !outcome.wide
            && outcomes[best].elbo - outcome.elbo < SAME
            && (0..dim).all(|k| (outcome.omega[k] - mean[k]).abs() < 2.0 * log_sd[k].exp())
    };
    outcomes.iter().filter(near).count()
}

/// Whether the best start is unique, or one of many optima.
pub(super) fn in_doubt(outcomes: &[StartOutcome]) -> bool {
    let best = best_start(outcomes);
    agreeing(outcomes, best) < 2 || !scattered(outcomes, best).is_empty()
}

/// The number of starts that reached the best bound, wherever: at the best optimum, at one of its other labellings, or at
/// another mode of the same mass, which is another matter.
fn reached(outcomes: &[StartOutcome], best: usize) -> usize {
    let good = |outcome: &&StartOutcome| !outcome.wide && outcomes[best].elbo - outcome.elbo < SAME;
    outcomes.iter().filter(good).count()
}

/// The poorer optima of converged starts, one per bound, if there are at least two and no fewer than the starts that
/// reached the best bound. In that case better optima that no start reached may exist.
pub fn scattered(outcomes: &[StartOutcome], best: usize) -> Vec<&StartOutcome> {
    let mut poorer: Vec<&StartOutcome> = outcomes
        .iter()
        .filter(|outcome| !outcome.wide && outcome.settled)
        .filter(|outcome| outcomes[best].elbo - outcome.elbo >= SAME)
        .collect();
    poorer.sort_by(|a, b| a.elbo.total_cmp(&b.elbo));
    poorer.dedup_by(|next, kept| next.elbo - kept.elbo < SAME);
    if poorer.len() < 2 || poorer.len() < reached(outcomes, best) {
        poorer.clear();
    }
    poorer
}

/// Index of the best start; ties go to the first.
pub fn best_start(outcomes: &[StartOutcome]) -> usize {
    let mut best = 0;
    for (i, outcome) in outcomes.iter().enumerate() {
        if outcome.elbo > outcomes[best].elbo {
            best = i;
        }
    }
    best
}

/// Outcomes as an archive.
pub(crate) fn save_outcomes(outcomes: &[StartOutcome]) -> Archive {
    let mut archive = Archive::new();
    let settled: Vec<bool> = outcomes.iter().map(|o| o.settled).collect();
    archive.set("settled", settled);
    let wide: Vec<bool> = outcomes.iter().map(|o| o.wide).collect();
    archive.set("wide", wide);
    let elbo: Vec<f64> = outcomes.iter().map(|o| o.elbo).collect();
    archive.put("elbo", &elbo);
    for (i, outcome) in outcomes.iter().enumerate() {
        archive.put(&format!("omega{i}"), &outcome.omega);
    }
    archive
}

/// The inverse of [`save_outcomes`].
pub(crate) fn restore_outcomes(archive: &Archive) -> Result<Vec<StartOutcome>, ArchiveError> {
    let settled: Vec<bool> = archive.get("settled")?;
    // Checkpoints of earlier builds have no wide starts, and do not say so.
    let wide: Vec<bool> = (archive.get("wide")).unwrap_or_else(|_| vec![false; settled.len()]);
    let elbo = archive.vec_of("elbo", settled.len())?;
    settled
        .into_iter()
        .zip(wide)
        .zip(elbo)
        .enumerate()
        .map(|(i, ((settled, wide), elbo))| {
            Ok(StartOutcome {
                omega: archive.vec(&format!("omega{i}"))?,
                elbo,
                settled,
                wide,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::StartSettings;
    use super::*;

    fn outcome(mean: f64, elbo: f64) -> StartOutcome {
        StartOutcome {
            omega: vec![mean, 0.0],
            elbo,
            settled: true,
            wide: false,
        }
    }

    #[test]
    fn one_start_above_several_poorer_optima_is_no_agreement() {
        let mut outcomes = vec![outcome(0.0, -3.0), outcome(5.0, -9.0), outcome(9.0, -20.0)];
        assert_eq!(scattered(&outcomes, 0).len(), 2);
        assert_eq!(StartSettings::default().count(2, &outcomes), 9);
        outcomes.extend([outcome(5.0, -9.1), outcome(5.0, -9.2)]);
        assert_eq!(scattered(&outcomes, 0).len(), 2);
        outcomes.extend(vec![outcome(9.0, -20.0); 4]);
        assert_eq!(StartSettings::default().count(2, &outcomes), 27);
        outcomes.push(outcome(0.1, -3.1));
        assert_eq!(scattered(&outcomes, 0).len(), 2);
        outcomes.push(outcome(0.2, -3.1));
        assert_eq!(scattered(&outcomes, 0).len(), 0);
        assert_eq!(StartSettings::default().count(2, &outcomes), 9);
    }

    #[test]
    fn two_optima_of_one_height_are_modes_and_not_agreement() {
        let outcomes = [outcome(-10.0, -3.0), outcome(10.0, -3.1)];
        assert_eq!(agreeing(&outcomes, 0), 1);
        assert_eq!(other_modes(&outcomes, 0).len(), 1);
        assert_eq!(scattered(&outcomes, 0).len(), 0);
    }

    /// An optimum with half a percent of the mass adds its squared distance to the variance: at five standard
    /// deviations an eighth, at four a twelfth.
    #[test]
    fn a_light_optimum_is_a_mode_where_it_makes_a_standard_deviation() {
        let sd = outcome(0.0, 0.0).omega[1].exp();
        let modes = |away: f64, below: f64| {
            let outcomes = [outcome(0.0, -3.0), outcome(away * sd, -3.0 - below)];
            other_modes(&outcomes, 0).len()
        };
        assert_eq!([modes(4.1, 5.3), modes(5.1, 5.3)], [0, 1]);
        assert_eq!(
            [modes(4.1, 4.9), modes(10.0, 6.9), modes(30.0, 6.9)],
            [1, 1, 1]
        );
        assert_eq!(modes(1e4, 7.1), 0);
    }
}
