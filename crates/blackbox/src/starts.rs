//! A robust start: several short fits from different points, the best kept.
//!
//! Every start is a mean-field fit on the same few draws, so the outcomes compare exactly. It goes most of its way on fewer
//! still; where it arrives at an optimum that an earlier one found, it ends there. Its spread begins where the density's own curvature puts it (at most 1), so raw scales cannot throw the
//! first draws out of range. Starting from a bound rather than a mode matters: in a centred
//! hierarchy the density has no finite mode, the bound has an optimum. Starts that end in different,
//! comparably good optima reveal several modes.

use std::sync::Arc;

use jensen_density::{Lanes, LanesMut, TwiceDifferentiable};
use jensen_run::{Algorithm, Archive, ArchiveError, Interrupt, Record, Snapshot, Status, Step};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::calls::Calls;
use crate::family::{Family, FamilyKind};
use crate::newton::{Effort, Newton, NewtonStep};
use crate::noise::{NoisePurpose, NoiseSource};
use crate::objective::Objective;
use crate::reduce::dot;

/// Where fits begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Init {
    /// At the origin of the unconstrained space, then, where several starts are made, at random
    /// points in mirrored pairs.
    Zero,
    /// At points uniform in [-2, 2] in every coordinate.
    Random,
    /// At a given unconstrained point only.
    Point(Vec<f64>),
}

/// Largest half-width of random starting points, as in Stan.
const RADIUS: f64 = 2.0;

/// Half-widths of a second kind of starts, two mirrored points each whose coordinates are all beyond half of it: of a mode
/// that stands apart in some coordinate at such a distance, one of the two is on its side.
const WIDE: [f64; 2] = [20.0, 100.0];

/// Largest dimension in which they are made: each costs as much as another start.
const WIDE_DIMENSION: usize = 64;

/// Tries for each of them: where scales are logarithms most fail.
const WIDE_ATTEMPTS: u64 = 3;

/// Index of the first of them.
const FIRST_WIDE: u64 = 1 << 32;

/// Tries for a random point with finite density and gradient, as in Stan.
const ATTEMPTS: u64 = 100;

/// Draws on which a start goes its way, before it is seen on those that all share.
const SCOUTING: usize = 8;

/// Starts on their way at a time.
const WAVE: usize = 4;

/// Predicted nats at which a start is at its optimum.
const TOLERANCE: f64 = 0.1;

/// Standard deviations, and relative difference of these, within which a start is at an optimum that was found before.
const AT: f64 = 0.3;

/// Settings of the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartSettings {
    /// Where to begin.
    pub init: Init,
    /// Number of starts; `None` is 9 up to 16 dimensions (27 where they disagree), 5 up to
    /// 64 and 3 beyond, and up to 64 dimensions four more 10 to 100 away from the origin in every coordinate. A given point is one start. `Some(0)` makes none: the method begins at the
    /// initial point with unit scales, as ADVI and HFSGVI always do.
    pub starts: Option<usize>,
    /// Draws on which starts are compared.
    pub draws: usize,
    /// Largest number of Newton iterations of every start.
    pub iterations: u64,
}

impl Default for StartSettings {
    fn default() -> Self {
        Self {
            init: Init::Zero,
            starts: None,
            draws: 32,
            iterations: 60,
        }
    }
}

impl StartSettings {
    fn count(&self, dim: usize, outcomes: &[StartOutcome]) -> usize {
        if matches!(self.init, Init::Point(_)) {
            return 1;
        }
        let near = outcomes.iter().filter(|outcome| !outcome.wide).count();
        let usual = match dim {
            0..=16 if near >= 9 && in_doubt(outcomes) => 27,
            0..=16 => 9,
            17..=64 if near >= 5 && in_doubt(outcomes) => 15,
            17..=64 => 5,
            _ => 3,
        };
        self.starts.unwrap_or(usual).max(1)
    }

    /// The start to begin when `next` is the lowest index that was not begun, if any; whether there are more of a kind is
    /// known only when none is on its way.
    fn following(
        &self,
        next: u64,
        on_their_way: bool,
        dim: usize,
        outcomes: &[StartOutcome],
    ) -> Option<u64> {
        if next < self.count(dim, outcomes) as u64 {
            return Some(next);
        }
        if on_their_way && next < FIRST_WIDE {
            return None;
        }
        let wide = match (&self.init, self.starts) {
            (Init::Zero | Init::Random, None) if dim <= WIDE_DIMENSION => 2 * WIDE.len() as u64,
            _ => 0,
        };
        let next = next.max(FIRST_WIDE);
        (next < FIRST_WIDE + wide).then_some(next)
    }
}

/// A start that is so many nats below the best one, and would be so after all its iterations if each gained twice what the
/// last one predicts, is behind; it ends when it is for this many iterations. Where a density is rough, as solvers with loose
/// tolerances are, steps shrink far from any optimum, and every one costs as much as those that lead somewhere.
const BEHIND: f64 = 20.0;
const PATIENCE: u64 = 5;

/// One start's end.
#[derive(Clone, Debug, PartialEq)]
pub struct StartOutcome {
    /// Mean-field parameters.
    pub omega: Vec<f64>,
    /// Bound on the shared draws.
    pub elbo: f64,
    /// Whether it reached an optimum of the shared draws.
    pub settled: bool,
    /// Whether it began far from the origin: what such starts find counts as a mode, but where they are lost says nothing
    /// of the posterior.
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

    /// What a mass like the best one's, but spread as this one is, would add to the best one's variances, in units of these: the
    /// most of all coordinates.
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
    fn is_found_by(&self, other: &Self) -> bool {
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
    /// How much lower its bound is, in nats (about the log of the ratio of the modes' masses).
    pub below: f64,
    /// The coordinate in which the two differ most.
    pub coordinate: usize,
    /// That difference in units of the larger standard deviation.
    pub distance: f64,
    /// That difference.
    pub gap: f64,
}

impl StartsState {
    /// Evaluations so far.
    pub fn calls(&self) -> Calls {
        self.calls
    }

    /// The best bound of the starts that are over.
    fn best(&self) -> f64 {
        let bounds = self.outcomes.iter().map(|outcome| outcome.elbo);
        bounds.fold(f64::NEG_INFINITY, f64::max)
    }

    /// The end of a start that is where another has ended.
    fn known(&self, found: &StartOutcome) -> Option<StartOutcome> {
        let known = (self.outcomes.iter()).find(|known| known.is_found_by(found))?;
        Some(StartOutcome {
            wide: found.wide,
            ..known.clone()
        })
    }

    /// The ends of the starts so far; where none is over, the places of those on their way.
    pub fn outcomes(&self) -> Vec<StartOutcome> {
        if !self.outcomes.is_empty() {
            return self.outcomes.clone();
        }
        let running = self.wave.iter().flatten();
        running.map(|running| running.end(false)).collect()
    }
}

/// A start on its way.
#[derive(Clone, Debug, PartialEq)]
struct Running {
    newton: Newton,
    stage: Stage,
    /// Which start it is.
    index: u64,
    /// Its iterations in this stage.
    taken: u64,
    /// The last of them that left it behind.
    behind: u64,
}

/// How far a start is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    /// On few draws of its own slot.
    Scouting,
    /// At the end of that; waits for its turn on the draws that all share.
    Arrived,
    /// On those.
    Comparing,
}

impl Running {
    fn is_wide(&self) -> bool {
        self.index >= FIRST_WIDE
    }

    fn end(&self, settled: bool) -> StartOutcome {
        StartOutcome {
            omega: self.newton.omega.clone(),
            elbo: -self.newton.value,
            settled,
            wide: self.is_wide(),
        }
    }

    /// One iteration, and whether it was the last: `Some` of whether an optimum is reached.
    fn step<D: TwiceDifferentiable>(
        &mut self,
        objective: &mut Objective<'_, D>,
        best: f64,
        most: u64,
    ) -> (NewtonStep, Option<bool>) {
        let effort = Effort {
            refine: 0.1,
            max_inner: (2 * objective.family().dim() as u64 + 10).min(40),
        };
        let report = self.newton.step(objective, effort);
        self.taken += 1;
        let settled = report.is_last(TOLERANCE);
        let left = most.saturating_sub(self.taken) as f64;
        let gap = best + self.newton.value;
        let behind = gap > BEHIND + 2.0 * left * report.predicted;
        self.behind = if behind { self.behind + 1 } else { 0 };
        let over =
            settled || self.newton.is_stuck() || self.behind >= PATIENCE || self.taken >= most;
        (report, over.then_some(settled))
    }

    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.nest("newton", self.newton.save());
        archive.set("stage", self.stage);
        archive.set("index", self.index);
        archive.set("taken", self.taken);
        archive.set("behind", self.behind);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        Ok(Self {
            newton: Newton::restore(&archive.nested("newton"))?,
            // Checkpoints of earlier builds do not say so.
            stage: archive.get("stage").unwrap_or(Stage::Comparing),
            index: archive.get("index")?,
            taken: archive.get("taken")?,
            behind: archive.get("behind").unwrap_or(0),
        })
    }
}

/// The starts as an algorithm; a step is one Newton iteration of each of those on their way.
pub struct Starts<'a, D: TwiceDifferentiable> {
    density: &'a D,
    family: Arc<dyn Family>,
    source: NoiseSource,
    settings: StartSettings,
    objective: Objective<'a, D>,
    /// The same on fewer draws, one for each that may be on its way.
    scouts: Vec<Objective<'a, D>>,
    /// Once it is over, no further point is looked for: none is found where no density is evaluated any more.
    interrupt: Option<&'a Interrupt<'a>>,
}

/// State of [`Starts`].
#[derive(Clone, Debug, PartialEq)]
pub struct StartsState {
    outcomes: Vec<StartOutcome>,
    /// Those on their way, by slot.
    wave: Vec<Option<Running>>,
    /// The lowest index that was not begun.
    next: u64,
    calls: Calls,
}

impl<'a, D: TwiceDifferentiable> Starts<'a, D> {
    /// What every start fits.
    pub const KIND: FamilyKind = FamilyKind::MeanField;

    /// Starts for a density.
    pub fn new(density: &'a D, source: NoiseSource, settings: StartSettings) -> Self {
        let family = Self::KIND.build(density.dim());
        let lanes = settings.draws.max(2).next_multiple_of(2);
        let on = |key, lanes| {
            let noise = source.matched(NoisePurpose::Start, key, family.noise_dim(), lanes);
            Objective::new(density, family.clone(), noise, lanes).roughly()
        };
        Self {
            density,
            objective: on(u64::MAX, lanes),
            scouts: (0..WAVE)
                .map(|_| on(u64::MAX - 1, SCOUTING.min(lanes)))
                .collect(),
            family,
            source,
            settings,
            interrupt: None,
        }
    }

    /// The same, for a run that may be stopped in the middle of a step.
    pub fn heeding(self, interrupt: &'a Interrupt<'a>) -> Self {
        Self {
            interrupt: Some(interrupt),
            ..self
        }
    }

    fn is_over(&self) -> bool {
        self.interrupt.is_some_and(Interrupt::is_over)
    }

    /// The starting point of try `attempt` of start `index`.
    fn point(&self, index: u64, attempt: u64) -> Vec<f64> {
        let dim = self.family.dim();
        if index >= FIRST_WIDE {
            let pair = (index - FIRST_WIDE) / 2;
            let half = WIDE[pair as usize] / 2.0;
            let half = if index % 2 == 1 { -half } else { half };
            let mut u = vec![0.0; dim];
            let key = FIRST_WIDE + pair;
            self.source
                .uniforms(NoisePurpose::Start, key, attempt, &mut u);
            u.iter_mut().for_each(|x| {
                let signed = 2.0 * *x - 1.0;
                *x = half * (signed + signed.signum());
            });
            return u;
        }
        match &self.settings.init {
            Init::Point(point) => point.clone(),
            Init::Zero if index == 0 && attempt == 0 => vec![0.0; dim],
            Init::Zero | Init::Random => {
                // Random points come in mirrored pairs, so that modes on either side of the origin
                // are both tried.
                let origin = u64::from(self.settings.init == Init::Zero && attempt == 0);
                let pair = (index - origin.min(index)) / 2;
                let mirrored = (index - origin.min(index)) % 2 == 1;
                let radius = if mirrored { -RADIUS } else { RADIUS };
                let mut u = vec![0.0; dim];
                self.source
                    .uniforms(NoisePurpose::Start, pair, attempt, &mut u);
                u.iter_mut().for_each(|x| *x = radius * (2.0 * *x - 1.0));
                u
            }
        }
    }

    /// The first random point with finite density, gradient and curvature.
    pub fn first_finite_point(&self) -> Option<Vec<f64>> {
        (0..ATTEMPTS)
            .take_while(|_| !self.is_over())
            .map(|attempt| self.point(0, attempt))
            .find(|point| initial_log_sd(self.density, point).is_some())
    }

    /// Begins start `index` in a slot, at the first of its points where draws around it are finite.
    fn begin(&mut self, slot: usize, index: u64) -> Option<Running> {
        let attempts = match self.settings.init {
            Init::Point(_) => 1,
            _ if index >= FIRST_WIDE => WIDE_ATTEMPTS,
            _ => ATTEMPTS,
        };
        for attempt in 0..attempts {
            if self.is_over() {
                return None;
            }
            let point = self.point(index, attempt);
            let Some(log_sd) = initial_log_sd(self.density, &point) else {
                continue;
            };
            for shrink in [0.0, -3.0, -8.0] {
                let log_sd: Vec<f64> = log_sd.iter().map(|l| l + shrink).collect();
                let omega = self.family.diagonal(&point, &log_sd);
                if let Some(newton) = Newton::start(&mut self.scouts[slot], omega) {
                    return Some(Running {
                        newton,
                        stage: Stage::Scouting,
                        index,
                        taken: 0,
                        behind: 0,
                    });
                }
            }
        }
        None
    }

    /// Where few draws led, seen on those that all starts share; draws beyond the density's support are met by shrinking
    /// the spread.
    fn compare(&mut self, omega: &[f64]) -> Option<Newton> {
        [1.0, 0.5, 0.05, 0.001].into_iter().find_map(|factor| {
            Newton::start(&mut self.objective, self.family.shrink(omega, factor))
        })
    }

    /// Puts a start that arrived on the draws that all share, where it goes on; its end where that is impossible or it
    /// was left behind.
    fn arrive(&mut self, running: &mut Running) -> Option<StartOutcome> {
        if running.behind >= PATIENCE {
            return Some(running.end(false));
        }
        let Some(newton) = self.compare(&running.newton.omega) else {
            running.newton.value = f64::INFINITY;
            return Some(running.end(false));
        };
        running.newton = newton;
        running.stage = Stage::Comparing;
        (running.taken, running.behind) = (0, 0);
        None
    }

    /// Begins starts in the slots that are free.
    fn fill(&mut self, state: &mut StartsState) {
        let dim = self.family.dim();
        for slot in 0..WAVE {
            while state.wave[slot].is_none() {
                let on_their_way = state.wave.iter().any(Option::is_some);
                let following =
                    (self.settings).following(state.next, on_their_way, dim, &state.outcomes);
                let Some(index) = following else {
                    return;
                };
                state.next = index + 1;
                state.wave[slot] = self.begin(slot, index);
                state.calls += self.scouts[slot].take_calls();
            }
        }
    }

    /// Ends the starts in turn that are at the end of their few draws, until one goes on.
    fn compare_arrived(&mut self, state: &mut StartsState) {
        for slot in 0..WAVE {
            let comparing = |running: &Running| running.stage == Stage::Comparing;
            if state.wave.iter().flatten().any(comparing) {
                return;
            }
            let Some(mut running) = state.wave[slot].take() else {
                continue;
            };
            let ended = match running.stage {
                Stage::Arrived => self.arrive(&mut running),
                _ => None,
            };
            state.calls += self.objective.take_calls();
            match ended {
                Some(outcome) => state.outcomes.push(outcome),
                None => state.wave[slot] = Some(running),
            }
        }
    }
}

/// Dimension beyond which the diagonal of the Hessian at a start is estimated rather than computed, which takes a
/// product a coordinate.
const PROBED: usize = 2048;

/// The finaliser of SplitMix64: bits without pattern from a counter.
fn mixed(counter: u64) -> u64 {
    let mut x = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Log standard deviations `−½ log max(1, |∂²log p/∂z²|)` at a point; `None` when the density, its
/// gradient or its curvature is not finite there.
fn initial_log_sd<D: TwiceDifferentiable>(density: &D, point: &[f64]) -> Option<Vec<f64>> {
    const BLOCK: usize = 64;
    let dim = point.len();
    let mut workspace = density.rough_workspace(BLOCK.min(dim.max(1)));
    let (mut value, mut gradient) = ([0.0], vec![0.0; dim]);
    density.value_grad(
        &mut workspace,
        Lanes::new(point, dim, 1),
        &mut value,
        LanesMut::new(&mut gradient, dim, 1),
    );
    if !value[0].is_finite() || gradient.iter().any(|g| !g.is_finite()) {
        return None;
    }
    let scale = |curvature: f64| {
        let curvature = curvature.abs();
        curvature
            .is_finite()
            .then(|| -0.5 * curvature.max(1.0).ln())
    };
    if dim > PROBED {
        // Products with random signs, whose own coordinates are the diagonal up to noise of mean zero.
        let (mut z, mut signs) = (vec![0.0; dim * BLOCK], vec![0.0; dim * BLOCK]);
        for (row, x) in z.chunks_mut(BLOCK).zip(point) {
            row.fill(*x);
        }
        for (i, sign) in signs.iter_mut().enumerate() {
            *sign = if mixed(i as u64) & 1 == 0 { 1.0 } else { -1.0 };
        }
        let mut product = vec![0.0; dim * BLOCK];
        density.hvp(
            &mut workspace,
            Lanes::new(&z, dim, BLOCK),
            Lanes::new(&signs, dim, BLOCK),
            LanesMut::new(&mut product, dim, BLOCK),
        );
        return product
            .chunks(BLOCK)
            .zip(signs.chunks(BLOCK))
            .map(|(product, signs)| scale(dot(product, signs) / BLOCK as f64))
            .collect();
    }
    let mut log_sd = Vec::with_capacity(dim);
    for first in (0..dim).step_by(BLOCK) {
        let lanes = BLOCK.min(dim - first);
        let mut z = vec![0.0; dim * lanes];
        for (row, x) in z.chunks_mut(lanes).zip(point) {
            row.fill(*x);
        }
        let (mut unit, mut product) = (vec![0.0; dim * lanes], vec![0.0; dim * lanes]);
        for lane in 0..lanes {
            unit[(first + lane) * lanes + lane] = 1.0;
        }
        density.hvp(
            &mut workspace,
            Lanes::new(&z, dim, lanes),
            Lanes::new(&unit, dim, lanes),
            LanesMut::new(&mut product, dim, lanes),
        );
        for lane in 0..lanes {
            log_sd.push(scale(product[(first + lane) * lanes + lane])?);
        }
    }
    Some(log_sd)
}

/// Nats below the best optimum at which another one has about 1 % of its mass, and at which it has 1 ‰.
const LIGHT: f64 = 5.0;
const LIGHTEST: f64 = 7.0;

/// What a lighter optimum must add to the variance of a coordinate, as a part of it: half as much moves its standard deviation.
const TELLING: f64 = 0.1;

/// The other optima among settled starts that stand at least four standard deviations away in some coordinate, and carry at
/// least about 1 % of the best one's mass, or so far out 1 ‰ that a standard deviation is told wrong without it.
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

/// Whether the best start stands alone, or among many optima.
fn in_doubt(outcomes: &[StartOutcome]) -> bool {
    let best = best_start(outcomes);
    agreeing(outcomes, best) < 2 || !scattered(outcomes, best).is_empty()
}

/// The number of starts that reached the best bound, wherever: at the best optimum, at one of its other labellings, or at
/// another mode of the same mass, which is another matter.
fn reached(outcomes: &[StartOutcome], best: usize) -> usize {
    let good = |outcome: &&StartOutcome| !outcome.wide && outcomes[best].elbo - outcome.elbo < SAME;
    outcomes.iter().filter(good).count()
}

/// The poorer optima that starts settled in, one of each bound, when they are at least two and no fewer than starts reached the
/// best bound: then there may well be better ones that none reached.
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

impl<D: TwiceDifferentiable> Algorithm for Starts<'_, D> {
    type State = StartsState;
    type Output = Vec<StartOutcome>;

    fn init(&mut self) -> Result<StartsState, Status> {
        let first = self.begin(0, 0).ok_or_else(|| Status::Diverged {
            at: 0,
            reason: match self.settings.init {
                Init::Point(_) => {
                    "the log density, its gradient or its curvature is not finite at \
                                   the given point"
                        .to_owned()
                }
                _ => format!(
                    "none of {ATTEMPTS} starting points has a finite log density and gradient"
                ),
            },
        })?;
        let mut state = StartsState {
            outcomes: Vec::new(),
            wave: vec![None; WAVE],
            next: 1,
            calls: self.scouts[0].take_calls(),
        };
        state.wave[0] = Some(first);
        self.fill(&mut state);
        Ok(state)
    }

    fn step(&mut self, state: &mut StartsState, _iteration: u64) -> Step {
        let (best, most) = (state.best(), self.settings.iterations);
        let scouts = self.scouts.par_iter_mut().zip(&mut state.wave);
        let scouted: Vec<Option<NewtonStep>> = scouts
            .map(|(objective, running)| {
                let running = running.as_mut()?;
                if running.stage != Stage::Scouting {
                    return None;
                }
                let (report, end) = running.step(objective, best, most);
                if end.is_some() {
                    running.stage = Stage::Arrived;
                }
                Some(report)
            })
            .collect();
        let mut shown = None;
        for (slot, mut report) in scouted.into_iter().enumerate() {
            state.calls += self.scouts[slot].take_calls();
            let Some(mut running) = state.wave[slot].take() else {
                continue;
            };
            let mut ended = None;
            if running.stage == Stage::Comparing {
                let (compared, end) = running.step(&mut self.objective, best, most);
                state.calls += self.objective.take_calls();
                report = Some(compared);
                ended = match end {
                    Some(settled) => Some(running.end(settled)),
                    None => state.known(&running.end(false)),
                };
            }
            if let Some(report) = report {
                let now = (running.newton.value, running.index, report);
                shown = shown.or(Some(now));
            }
            match ended {
                Some(outcome) => state.outcomes.push(outcome),
                None => state.wave[slot] = Some(running),
            }
        }
        self.compare_arrived(state);
        self.fill(state);
        let mut record = state.calls.on(Record::default());
        if let Some((value, index, report)) = shown {
            record = record
                .with_elbo(-value, None)
                .with("start", index as f64)
                .with("predicted", report.predicted)
                .with("radius", report.radius);
        }
        if state.wave.iter().any(Option::is_some) {
            return Step::go_on(record);
        }
        let evidence = jensen_run::Evidence {
            rule: format!("{} starts compared on the same draws", state.outcomes.len()),
            remaining: None,
            standard_error: None,
        };
        Step::finish(record, Status::Converged { evidence })
    }

    fn output(&mut self, state: &StartsState) -> Vec<StartOutcome> {
        state.outcomes()
    }
}

impl Snapshot for StartsState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        let running: Vec<bool> = self.wave.iter().map(Option::is_some).collect();
        archive.set("running", running);
        for (slot, running) in self.wave.iter().enumerate() {
            if let Some(running) = running {
                archive.nest(&format!("slot{slot}"), running.save());
            }
        }
        archive.set("next", self.next);
        archive.set("calls", self.calls);
        archive.nest("outcomes", save_outcomes(&self.outcomes));
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let outcomes = restore_outcomes(&archive.nested("outcomes"))?;
        let calls = archive.get("calls")?;
        let Ok(running) = archive.get::<[bool; WAVE]>("running") else {
            // Checkpoints of earlier builds have one start, on the draws that all share.
            let only = Running::restore(archive)?;
            let next = only.index + 1;
            let mut wave = vec![None; WAVE];
            wave[0] = Some(only);
            return Ok(Self {
                outcomes,
                wave,
                next,
                calls,
            });
        };
        let slot = |(slot, running): (usize, bool)| {
            let stored = archive.nested(&format!("slot{slot}"));
            running.then(|| Running::restore(&stored)).transpose()
        };
        let wave = running.into_iter().enumerate().map(slot);
        Ok(Self {
            wave: wave.collect::<Result<_, _>>()?,
            next: archive.get("next")?,
            calls,
            outcomes,
        })
    }
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
    use super::*;

    fn outcome(mean: f64, elbo: f64) -> StartOutcome {
        StartOutcome {
            omega: vec![mean, 0.0],
            elbo,
            settled: true,
            wide: false,
        }
    }

    /// Independent coordinates of standard deviation 1/5, up to a constant.
    struct Independent(usize);

    impl jensen_density::LogDensity for Independent {
        type Workspace = ();
        fn dim(&self) -> usize {
            self.0
        }
        fn workspace(&self, _: usize) {}
        fn value(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64]) {
            for (l, out) in out.iter_mut().enumerate() {
                *out = (0..self.0).map(|i| -12.5 * z.row(i)[l].powi(2)).sum();
            }
        }
        fn value_grad(&self, ws: &mut (), z: Lanes<'_>, out: &mut [f64], grad: LanesMut<'_>) {
            self.value(ws, z, out);
            self.apply(ws, z, grad);
        }
    }

    impl TwiceDifferentiable for Independent {
        fn linearize(&self, _: &mut (), _: Lanes<'_>) {}
        fn apply(&self, _: &mut (), v: Lanes<'_>, mut out: LanesMut<'_>) {
            for (out, v) in out.as_mut_slice().iter_mut().zip(v.as_slice()) {
                *out = -25.0 * v;
            }
        }
    }

    /// A normal with noise in its values, though not in its derivatives, beyond 5.
    struct Rough;

    impl jensen_density::LogDensity for Rough {
        type Workspace = ();
        fn dim(&self) -> usize {
            1
        }
        fn workspace(&self, _: usize) {}
        fn value(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64]) {
            for (out, z) in out.iter_mut().zip(z.row(0)) {
                let noise = mixed(z.to_bits()) as f64 / u64::MAX as f64;
                let far = if z.abs() > 5.0 {
                    40.0 * noise + 60.0
                } else {
                    0.0
                };
                *out = -0.5 * z.abs() * z.abs().min(5.0) - far;
            }
        }
        fn value_grad(&self, ws: &mut (), z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
            self.value(ws, z, out);
            for (out, z) in grad.as_mut_slice().iter_mut().zip(z.as_slice()) {
                *out = if z.abs() > 5.0 {
                    -1e-3 * z.signum()
                } else {
                    -z
                };
            }
        }
    }

    impl TwiceDifferentiable for Rough {
        fn linearize(&self, _: &mut (), _: Lanes<'_>) {}
        fn apply(&self, _: &mut (), v: Lanes<'_>, mut out: LanesMut<'_>) {
            for (out, v) in out.as_mut_slice().iter_mut().zip(v.as_slice()) {
                *out = -v;
            }
        }
    }

    #[test]
    fn starts_that_cannot_catch_up_end() {
        let source = NoiseSource::new(1, jensen_math::simd::Simd::detect());
        let mut starts = Starts::new(&Rough, source, StartSettings::default());
        let mut state = starts.init().unwrap();
        let mut iterations = std::collections::BTreeMap::new();
        for i in 0.. {
            for running in state.wave.iter().flatten() {
                let taken = u64::from(running.stage != Stage::Arrived);
                *iterations.entry(running.index).or_insert(0) += taken;
            }
            if starts.step(&mut state, i).status.is_some() {
                break;
            }
        }
        let (near, wide): (Vec<_>, Vec<_>) = state.outcomes.iter().partition(|o| !o.wide);
        assert!(near.iter().all(|outcome| outcome.settled), "{near:?}");
        assert_eq!(wide.len(), 4);
        assert!(wide.iter().all(|outcome| !outcome.settled), "{wide:?}");
        let longest = iterations
            .range(FIRST_WIDE..)
            .map(|(_, count)| *count)
            .max();
        assert!(longest.unwrap() <= 12, "{iterations:?}");
    }

    #[test]
    fn starts_at_a_known_optimum_end_there_after_few_draws() {
        let source = NoiseSource::new(1, jensen_math::simd::Simd::detect());
        let density = Independent(4);
        let mut starts = Starts::new(&density, source, StartSettings::default());
        let mut state = starts.init().unwrap();
        while starts.step(&mut state, 0).status.is_none() {}
        assert_eq!(state.outcomes.len(), 13);
        let first = &state.outcomes[0];
        for outcome in &state.outcomes {
            assert!(outcome.settled && (outcome.elbo - first.elbo).abs() < 1e-3);
        }
        let (few, all) = (SCOUTING as u64, starts.settings.draws as u64);
        // Three steps on few draws, one on all of them.
        assert_eq!(state.calls.gradients, 13 * (4 * few + 2 * all));
    }

    #[test]
    fn many_coordinates_are_probed() {
        for dim in [40, PROBED + 1] {
            let found = initial_log_sd(&Independent(dim), &vec![0.1; dim]).unwrap();
            assert_eq!(found.len(), dim);
            assert!(found.iter().all(|x| (x - 0.2f64.ln()).abs() < 1e-9));
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

    /// An optimum of half a percent of the mass adds to the variance of the whole what it is away, squared: at five standard
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
