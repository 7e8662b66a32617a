//! The results of the starts: the best start, other modes, and whether the posterior appears to have many optima.

use jensen_run::{Archive, ArchiveError};
use serde::{Deserialize, Serialize};

use super::TOLERANCE;

/// A start counts as being at a known optimum if their means differ by at most this many standard deviations, and if
/// their standard deviations differ by at most this relative amount.
const AT: f64 = 0.3;

/// The result of one start.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StartOutcome {
    /// The parameters of the mean-field Gaussian: the means, followed by the log standard deviations.
    pub omega: Vec<f64>,
    /// The ELBO on the draws that all starts share, in nats.
    pub elbo: f64,
    /// Whether the start reached an optimum of the ELBO on the shared draws.
    pub settled: bool,
    /// Whether the start began far from the origin. If such a start reaches an optimum, the optimum counts as a mode.
    /// The failure of such a start says nothing about the posterior.
    pub wide: bool,
}

impl StartOutcome {
    pub(crate) fn moments(&self) -> (&[f64], &[f64]) {
        self.omega.split_at(self.omega.len() / 2)
    }

    pub(crate) fn beside(&self, best: &Self) -> OtherMode {
        let ((mean, log_sd), (best_mean, best_log_sd)) = (self.moments(), best.moments());
        let (coordinate, _) = self
            .apart(best)
            .enumerate()
            .fold((0, 0.0), |a, b| if b.1 > a.1 { b } else { a });
        OtherMode {
            mean: mean.to_vec(),
            below: best.elbo - self.elbo,
            coordinate,
            from: best_mean[coordinate],
            sd: log_sd[coordinate].exp(),
            from_sd: best_log_sd[coordinate].exp(),
        }
    }

    /// Computes, for each coordinate, the negative logarithm of the overlap `∫ √(q r)` of the two normals, which is
    /// `Δ²/4(s² + t²) + ½ log((s² + t²)/2st)` (Bhattacharyya 1943).
    fn apart(&self, best: &Self) -> impl Iterator<Item = f64> {
        let ((mean, log_sd), (best_mean, best_log_sd)) = (self.moments(), best.moments());
        (0..mean.len()).map(move |k| {
            let (s, t) = (log_sd[k].exp(), best_log_sd[k].exp());
            let squares = s * s + t * t;
            0.25 * (mean[k] - best_mean[k]).powi(2) / squares + 0.5 * (0.5 * squares / (s * t)).ln()
        })
    }

    /// Computes the variance that a component with this spread and equal mass would add to each coordinate, relative to
    /// the variance of the best optimum. Returns the largest of these ratios.
    fn adds_to(&self, best: &Self) -> f64 {
        let ((mean, log_sd), (best_mean, best_log_sd)) = (self.moments(), best.moments());
        let added = (0..mean.len()).map(|k| {
            let second = (mean[k] - best_mean[k]).powi(2) + (2.0 * log_sd[k]).exp();
            second / (2.0 * best_log_sd[k]).exp()
        });
        added.fold(0.0, f64::max)
    }

    pub(crate) fn is_at(&self, mode: &OtherMode) -> bool {
        self.settled && self.omega[..mode.mean.len()] == mode.mean[..]
    }

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

/// An optimum that the starts found in addition to the best optimum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherMode {
    /// The mean of this optimum.
    pub mean: Vec<f64>,
    /// The ELBO of the best optimum minus the ELBO of this optimum, in nats. The difference is approximately the log
    /// ratio of the two modes' masses.
    pub below: f64,
    /// The coordinate in which the two optima overlap least.
    pub coordinate: usize,
    /// The mean of the best optimum in this coordinate.
    pub from: f64,
    /// The standard deviation of this optimum in this coordinate.
    pub sd: f64,
    /// The standard deviation of the best optimum in this coordinate.
    pub from_sd: f64,
}

impl OtherMode {
    fn gap(&self) -> f64 {
        (self.mean[self.coordinate] - self.from).abs()
    }

    /// Returns the distance between the two optima in this coordinate, divided by the larger standard deviation.
    pub fn distance(&self) -> f64 {
        self.gap() / self.sd.max(self.from_sd)
    }

    /// Returns whether the two optima differ by their width rather than by their location, so that one lies within the
    /// other. Their distance must be below one standard deviation, and below the log ratio of their widths.
    pub fn is_within(&self) -> bool {
        self.distance() < (self.sd / self.from_sd).ln().abs().min(1.0)
    }

    pub(crate) fn has_part(&self, mean: f64, sd: f64) -> bool {
        match self.is_within() {
            true => (sd / self.sd).ln().abs() < 0.5 * (self.from_sd / self.sd).ln().abs(),
            false => (mean - self.mean[self.coordinate]).abs() <= 0.25 * self.gap(),
        }
    }

    /// Returns whether a draw belongs to this mode. If the modes are apart, the draw must be within a quarter of their
    /// distance from this mode. If one mode lies within the other, the function compares the draw's distance from their
    /// centre with the geometric mean of the two widths. The distance must be smaller for the narrow mode, and larger
    /// for the wide mode.
    pub(crate) fn has_draw(&self, z: f64) -> bool {
        let centre = self.mean[self.coordinate];
        if !self.is_within() {
            return (z - centre).abs() <= 0.25 * self.gap();
        }
        let is_narrow = self.sd < self.from_sd;
        let middle = if is_narrow { centre } else { self.from };
        ((z - middle).abs() <= (self.sd * self.from_sd).sqrt()) == is_narrow
    }
}

/// If an optimum is this many nats below the best optimum, it has about 1 % of the mass of the best.
const LIGHT: f64 = 5.0;
/// If an optimum is this many nats below the best optimum, it has about 1 ‰ of the mass of the best.
const LIGHTEST: f64 = 7.0;

/// An optimum with less than 1 % of the mass still counts as a mode if it increases the variance of some coordinate by
/// at least this relative amount. The standard deviation then changes by half as much.
const TELLING: f64 = 0.1;

/// Two optima are separate modes if the negative logarithm of their overlap is above this value. Two equal normals that
/// are four standard deviations apart have this overlap. Halfway between two such normals, the density is a quarter of
/// its maximum. Two normals with the same centre have this overlap if one is 110 times as wide as the other.
const APART: f64 = 2.0;

/// Returns the other modes that converged starts found. Each mode differs from the best optimum by at least [`APART`]
/// in location or width, and has at least about 1 % of the best optimum's mass. A mass of 1 ‰ suffices if the optimum
/// is so far out that omitting it would make a standard deviation wrong.
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
        if outcome.apart(&outcomes[best]).sum::<f64>() > APART && !known {
            let mode = outcome.beside(&outcomes[best]);
            // A spike within the best optimum changes a variance by no more than the share of its mass.
            let is_spike = mode.is_within() && mode.sd < mode.from_sd;
            if !(is_spike && (-below).exp() < TELLING) {
                found.push(mode);
            }
        }
    }
    found
}

pub(crate) fn modes_of(starts: &[StartOutcome]) -> Vec<OtherMode> {
    if starts.is_empty() {
        return Vec::new();
    }
    other_modes(starts, best_start(starts))
}

/// Two optima have the same ELBO, and two populations of chains agree on the log evidence, if they differ by less than
/// this number of nats. On the draws that all starts share, equal optima differ by the tolerance of the starts.
pub(crate) const SAME: f64 = 5.0 * TOLERANCE;

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

/// Returns whether only the best start reached its optimum, or whether the starts found many optima.
pub(super) fn in_doubt(outcomes: &[StartOutcome]) -> bool {
    let best = best_start(outcomes);
    agreeing(outcomes, best) < 2 || !scattered(outcomes, best).is_empty()
}

/// Counts the starts that reached the best optimum, one of its relabellings, or another mode of the same mass. Such
/// another mode is reported separately.
fn reached(outcomes: &[StartOutcome], best: usize) -> usize {
    let good = |outcome: &&StartOutcome| !outcome.wide && outcomes[best].elbo - outcome.elbo < SAME;
    outcomes.iter().filter(good).count()
}

/// Returns converged starts whose optima are poorer than the best one. If several starts have the same ELBO, only one
/// of them is returned. The result is empty if there are fewer than two such optima, or if more starts reached the best
/// ELBO than there are such optima. If the result is not empty, better optima may exist that no start reached.
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

/// Returns the index of the best start. Among equally good starts, it is the first one.
pub fn best_start(outcomes: &[StartOutcome]) -> usize {
    let mut best = 0;
    for (i, outcome) in outcomes.iter().enumerate() {
        if outcome.elbo > outcomes[best].elbo {
            best = i;
        }
    }
    best
}

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

pub(crate) fn restore_outcomes(archive: &Archive) -> Result<Vec<StartOutcome>, ArchiveError> {
    let settled: Vec<bool> = archive.get("settled")?;
    let wide: Vec<bool> = archive.get("wide")?;
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

    /// The corners ±1.2 of a cube are close to each other in each of twenty coordinates, but their distance is eleven
    /// standard deviations.
    #[test]
    fn corners_of_a_cube_are_modes_apart() {
        let corner = |side: f64| StartOutcome {
            omega: [vec![side; 20], vec![0.0; 20]].concat(),
            ..outcome(0.0, -3.0)
        };
        assert_eq!(other_modes(&[corner(-1.2), corner(1.2)], 0).len(), 1);
        assert_eq!(other_modes(&[corner(-0.4), corner(0.4)], 0).len(), 0);
    }

    /// An optimum with half a percent of the mass increases the variance by its share of the mass times its squared
    /// distance from the best optimum. The increase is an eighth for a distance of five standard deviations, and a
    /// twelfth for four.
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

    #[test]
    fn a_slab_around_a_spike_is_a_mode() {
        let of_width = |sd: f64, elbo: f64| StartOutcome {
            omega: [vec![0.0; 5], vec![sd.ln(); 5]].concat(),
            ..outcome(0.0, elbo)
        };
        let found = other_modes(&[of_width(1.0, -3.0), of_width(1000.0, -5.3)], 0);
        let [slab] = &found[..] else {
            panic!("{found:?}");
        };
        assert!(slab.is_within() && slab.has_part(10.0, 900.0) && !slab.has_part(0.0, 1.1));
        assert!(slab.has_draw(-700.0) && !slab.has_draw(3.0));
        let found = other_modes(&[of_width(1.0, -3.0), of_width(1e-6, -3.0)], 0);
        assert!(found[0].has_draw(1e-5) && !found[0].has_draw(0.1));
        assert_eq!(
            other_modes(&[of_width(1.0, -3.0), of_width(1.5, -3.5)], 0),
            []
        );
    }
}
