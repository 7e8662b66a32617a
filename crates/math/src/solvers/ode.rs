//! Initial value problems, many lanes at a time.
//!
//! The interval between two output times is the unit interval of a clock: a [`System`] has parameters `(θ, a, b)` and gives
//! `(b − a) · f(a + (b − a) · clock, y, θ)`. So times are parameters like any others, and steps end on output times.
//!
//! *Forward.* Each lane has its own clock and step. A step is accepted where the estimated error of every state of the
//! first copy is at most `absolute + relative · |y|`; the next one follows from the error (Hairer, Nørsett and Wanner,
//! *Solving Ordinary Differential Equations I*, II.4). Lanes that have arrived are taken out, so that one slow lane does
//! not keep the others busy.
//!
//! *Backward.* A [`Trajectory`] keeps clock, length and states at the start of every accepted step. The adjoint of the steps,
//! with their lengths held, is computed from the last to the first; stages are computed again. It is the exact gradient of
//! what the forward pass returned, up to the dependence of the lengths on the arguments, which is below the tolerance. The
//! cost does not grow with the number of parameters, but for the rows of the products themselves.

use super::explicit::{CASH_KARP, DOP853, DORMAND_PRINCE, Explicit};
use super::radau::Radau;
use super::{Differentiable, Point, System};

/// How steps are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Dormand and Prince, order 5 with an error estimate of order 4; order 8 for relative tolerances below 1e-5.
    DormandPrince,
    /// Cash and Karp, order 5 with an error estimate of order 4; as Dormand and Prince for relative tolerances below 1e-5.
    CashKarp,
    /// Radau IIA, implicit and L-stable: three stages (order 5), or five (order 9) for relative tolerances below 1e-7.
    Radau,
}

/// An initial value problem with output times.
#[derive(Clone, Debug, PartialEq)]
pub struct Ode {
    /// How steps are made.
    pub method: Method,
    /// Number of states.
    pub states: usize,
    /// Number of parameters of the right-hand side.
    pub parameters: usize,
    /// Number of output times.
    pub times: usize,
    /// Relative tolerance.
    pub relative: f64,
    /// Absolute tolerance of each state.
    pub absolute: Vec<f64>,
    /// Most steps between two output times, rejected ones included.
    pub max_steps: u64,
}

/// Numbers that a lane may keep of its accepted steps: 32 MiB. A lane that needs more has no gradient.
const KEPT: usize = 1 << 22;

/// Below this relative tolerance explicit steps are of order 8: each takes twice the evaluations, and there are fewer.
const HIGH_ORDER: f64 = 1e-5;

/// Attempts to leave a point before it counts as stuck.
const SHRINKING: u32 = 60;

/// The accepted steps of every lane: for each step clock, length, interval, whether it ends there, states, and the
/// stages that its scheme gives.
#[derive(Debug, Default)]
pub struct Trajectory {
    steps: Vec<Vec<f64>>,
    failed: Vec<bool>,
}

impl Trajectory {
    fn empty(lanes: usize) -> Self {
        Self {
            steps: vec![Vec::new(); lanes],
            failed: vec![false; lanes],
        }
    }

    /// Keeps the step that a place of the front is about to take; whether there was room.
    fn push(&mut self, front: &Front, stages: &[f64], at: usize, lane: usize) -> bool {
        let steps = &mut self.steps[lane];
        let rows = (front.states.len() + stages.len()) / front.lanes;
        if steps.len() + rows + HEAD > KEPT {
            return false;
        }
        let ends = f64::from(u8::from(front.ends[at]));
        steps.extend([
            front.clock[at],
            front.trial[at],
            front.interval[at] as f64,
            ends,
        ]);
        for rows in [&front.states, stages] {
            steps.extend(rows.iter().skip(at).step_by(front.lanes));
        }
        true
    }

    /// Numbers kept.
    pub fn numbers(&self) -> usize {
        self.steps.iter().map(Vec::len).sum()
    }
}

/// What stands before the states of a kept step.
const HEAD: usize = 4;

/// Arguments of all lanes: `copies` times the rows of one.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    /// Rows of lanes.
    pub rows: &'a [f64],
    /// Number of copies.
    pub copies: usize,
    /// Number of lanes.
    pub lanes: usize,
}

/// What one attempt at a step came to.
#[derive(Default)]
pub(super) struct Attempt {
    /// States after it.
    pub states: Vec<f64>,
    /// States of the stages less those at the start, stage after stage, where the scheme keeps them.
    pub stages: Vec<f64>,
    /// Its largest error in units of the tolerance; not finite where it failed.
    pub error: Vec<f64>,
    /// Rates after it, where the scheme has them.
    pub rates: Option<Vec<f64>>,
    /// The longest step that resolves perturbations, where the scheme asks for that.
    pub longest: Option<Vec<f64>>,
}

/// Where the lanes stand that are under way, each in its place.
pub(super) struct Front {
    /// Number of places.
    pub lanes: usize,
    /// The lane of the caller; none for a place that only fills a vector.
    pub who: Vec<Option<usize>>,
    pub interval: Vec<usize>,
    /// Position in the interval, from 0 to 1.
    pub clock: Vec<f64>,
    /// The step that the error asks for.
    length: Vec<f64>,
    /// The step that is tried: not beyond the end of the interval.
    pub trial: Vec<f64>,
    ends: Vec<bool>,
    attempts: Vec<u64>,
    /// Attempts in all intervals.
    total: Vec<u64>,
    rejected: Vec<u32>,
    pub states: Vec<f64>,
    pub parameters: Vec<f64>,
    /// Rates at `states`, where not `stale`.
    pub rates: Vec<f64>,
    stale: Vec<bool>,
    /// Stages: forward of the last step that was taken, backward of the step at hand.
    pub stages: Vec<f64>,
    /// The length of the last step, by the clock of the interval at hand; 0 before the first.
    pub before: Vec<f64>,
}

/// A way of making steps.
pub(super) trait Scheme {
    /// The error of a step shrinks with its length to this power.
    fn order(&self) -> f64;

    /// How many stages of a step are kept: for the next one, and for the way back.
    fn stages(&self) -> usize {
        0
    }

    /// Tries the step of `front.trial` in every place that has a lane.
    fn attempt(&mut self, system: &mut dyn System, front: &Front, attempt: &mut Attempt);

    /// The adjoint of the step of `front.trial` from `front.states`: `adjoint` is that of the states after it, and becomes
    /// that of the states before; `parameters` receives that of the parameters.
    fn pull(
        &mut self,
        system: &mut dyn Differentiable,
        front: &Front,
        adjoint: &mut [f64],
        parameters: &mut [f64],
    );
}

impl Ode {
    /// Numbers of one copy of the arguments: states at the start, parameters, first time, output times.
    pub fn arguments(&self) -> usize {
        self.states + self.parameters + 1 + self.times
    }

    /// Numbers of one copy of the result: the states at each output time.
    pub fn results(&self) -> usize {
        self.states * self.times
    }

    /// Parameters of the system: those of the right-hand side and the ends of the interval.
    pub fn system_parameters(&self) -> usize {
        self.parameters + 2
    }

    /// Most steps of a lane of a log density, rejected ones included: 20 000 explicit or 2 000 implicit ones at a relative
    /// tolerance of 1e-8, by the cube root of the tolerance more or fewer at others, and ten for each output time. Draws far
    /// from everything sensible would take millions, and every other draw waits for them: in fits of the corpus from wide
    /// starts they took nine tenths of the time.
    pub fn longest(&self) -> u64 {
        let most = match self.method {
            Method::Radau => 2e3,
            Method::DormandPrince | Method::CashKarp => 2e4,
        };
        let share = (1e-8 / self.relative).cbrt().clamp(0.01, 10.0);
        (most * share) as u64 + 10 * self.times as u64
    }

    /// Makes tolerances that are tighter than a relative one of `relative` that loose.
    pub fn loosen(&mut self, relative: f64) {
        let factor = relative / self.relative;
        if factor > 1.0 {
            self.relative = relative;
            self.absolute.iter_mut().for_each(|a| *a *= factor);
        }
    }

    fn scheme(&self) -> Box<dyn Scheme + '_> {
        match self.method {
            Method::DormandPrince | Method::CashKarp if self.relative < HIGH_ORDER => {
                Box::new(Explicit::new(&DOP853, self))
            }
            Method::DormandPrince => Box::new(Explicit::new(&DORMAND_PRINCE, self)),
            Method::CashKarp => Box::new(Explicit::new(&CASH_KARP, self)),
            Method::Radau => Box::new(Radau::new(self)),
        }
    }

    /// What an error of state `i` counts, where the state is `y`.
    pub(super) fn unit(&self, i: usize, y: f64) -> f64 {
        self.absolute[i] + self.relative * y.abs()
    }

    /// The states at the output times, into `out` (`copies · results` rows), of `copies · arguments` rows. From where a
    /// lane fails, or has taken more than `most` steps in all, its results are NaN. With a trajectory the steps are kept.
    pub fn solve(
        &self,
        system: &mut dyn System,
        x: Arguments<'_>,
        out: &mut [f64],
        mut kept: Option<&mut Trajectory>,
        most: u64,
    ) {
        out.fill(f64::NAN);
        if let Some(kept) = kept.as_deref_mut() {
            *kept = Trajectory::empty(x.lanes);
        }
        let mut scheme = self.scheme();
        let all: Vec<Option<usize>> = (0..x.lanes).map(Some).collect();
        let mut front = self.front(x, all, scheme.stages());
        let mut lost = self.start(system, x, &mut front, scheme.order());
        let mut attempt = Attempt::default();
        loop {
            for place in lost.drain(..) {
                if let (Some(lane), Some(kept)) = (front.who[place].take(), kept.as_deref_mut()) {
                    kept.failed[lane] = true;
                }
            }
            let left = front.who.iter().flatten().count();
            if left == 0 {
                return;
            }
            let fitting = left.next_multiple_of(system.granule());
            if fitting <= front.lanes / 2 {
                front = self.thinned(x, &front, fitting);
            }
            front.refresh(system);
            front.clip();
            scheme.attempt(system, &front, &mut attempt);
            for place in 0..front.lanes {
                let Some(lane) = front.who[place] else {
                    continue;
                };
                front.attempts[place] += 1;
                front.total[place] += 1;
                if attempt.error[place] <= 1.0 {
                    let room = match kept.as_deref_mut() {
                        Some(kept) => kept.push(&front, &attempt.stages, place, lane),
                        None => true,
                    };
                    if !room || !self.accept(x, &mut front, place, &attempt, scheme.order(), out) {
                        lost.push(place);
                    }
                } else if !front.reject(place, attempt.error[place], scheme.order()) {
                    lost.push(place);
                }
                if front.attempts[place] > self.max_steps || front.total[place] > most {
                    lost.push(place);
                }
            }
        }
    }

    /// A front of these lanes at the start of the first interval.
    fn front(&self, x: Arguments<'_>, who: Vec<Option<usize>>, stages: usize) -> Front {
        let lanes = who.len();
        let fallback = who.iter().flatten().next().copied().unwrap_or(0);
        let rows = x.copies * self.states;
        let mut front = Front {
            lanes,
            interval: vec![0; lanes],
            clock: vec![0.0; lanes],
            length: vec![0.0; lanes],
            trial: vec![0.0; lanes],
            ends: vec![false; lanes],
            attempts: vec![0; lanes],
            total: vec![0; lanes],
            rejected: vec![0; lanes],
            states: vec![0.0; rows * lanes],
            parameters: vec![0.0; x.copies * self.system_parameters() * lanes],
            rates: vec![0.0; rows * lanes],
            stale: vec![true; lanes],
            stages: vec![0.0; stages * rows * lanes],
            before: vec![0.0; lanes],
            who,
        };
        for place in 0..lanes {
            let lane = front.who[place].unwrap_or(fallback);
            for copy in 0..x.copies {
                let from = copy * self.arguments();
                for i in 0..self.states {
                    front.states[(copy * self.states + i) * lanes + place] =
                        x.rows[(from + i) * x.lanes + lane];
                }
                let to = copy * self.system_parameters();
                for i in 0..self.parameters {
                    front.parameters[(to + i) * lanes + place] =
                        x.rows[(from + self.states + i) * x.lanes + lane];
                }
            }
            self.enter(x, &mut front, place, lane, 0);
        }
        front
    }

    /// Puts a place into an interval.
    fn enter(&self, x: Arguments<'_>, front: &mut Front, place: usize, lane: usize, k: usize) {
        front.interval[place] = k;
        for copy in 0..x.copies {
            let from = copy * self.arguments() + self.states + self.parameters + k;
            let to = copy * self.system_parameters() + self.parameters;
            for end in 0..2 {
                front.parameters[(to + end) * front.lanes + place] =
                    x.rows[(from + end) * x.lanes + lane];
            }
        }
    }

    /// The extent of the interval that a place is in.
    fn extent(&self, front: &Front, place: usize) -> f64 {
        let at = |row: usize| front.parameters[row * front.lanes + place];
        at(self.parameters + 1) - at(self.parameters)
    }

    /// The lanes that are left, and `places` in all.
    fn thinned(&self, x: Arguments<'_>, front: &Front, places: usize) -> Front {
        let mut from: Vec<usize> = (0..front.lanes)
            .filter(|place| front.who[*place].is_some())
            .collect();
        let mut who: Vec<Option<usize>> = from.iter().map(|place| front.who[*place]).collect();
        who.resize(places, None);
        from.resize(places, from[0]);
        let stages = front.stages.len() / front.states.len();
        let mut thin = self.front(x, who, stages);
        for (to, from) in from.into_iter().enumerate() {
            let lane = front.who[from].unwrap_or(0);
            self.enter(x, &mut thin, to, lane, front.interval[from]);
            thin.clock[to] = front.clock[from];
            thin.length[to] = front.length[from];
            thin.attempts[to] = front.attempts[from];
            thin.total[to] = front.total[from];
            thin.rejected[to] = front.rejected[from];
            thin.stale[to] = front.stale[from];
            for row in 0..front.states.len() / front.lanes {
                thin.states[row * places + to] = front.states[row * front.lanes + from];
                thin.rates[row * places + to] = front.rates[row * front.lanes + from];
            }
            thin.before[to] = front.before[from];
            for row in 0..front.stages.len() / front.lanes {
                thin.stages[row * places + to] = front.stages[row * front.lanes + from];
            }
        }
        thin
    }

    /// Chooses first steps (Hairer, Nørsett and Wanner, II.4); the places that cannot begin.
    fn start(
        &self,
        system: &mut dyn System,
        x: Arguments<'_>,
        front: &mut Front,
        order: f64,
    ) -> Vec<usize> {
        front.refresh(system);
        let lanes = front.lanes;
        let largest = |values: &[f64], place: usize| {
            (0..self.states).fold(0.0_f64, |most, i| {
                let y = x.rows[i * x.lanes + place];
                let size = values[i * lanes + place].abs() / self.unit(i, y);
                if size.is_nan() { size } else { most.max(size) }
            })
        };
        let mut first = vec![0.0; lanes];
        let mut states = front.states.clone();
        for (place, first) in first.iter_mut().enumerate() {
            let (size, slope) = (largest(&front.states, place), largest(&front.rates, place));
            *first = if size < 1e-5 || slope < 1e-5 {
                1e-6
            } else {
                (0.01 * size / slope).min(1.0)
            };
            for row in 0..states.len() / lanes {
                states[row * lanes + place] += *first * front.rates[row * lanes + place];
            }
        }
        let mut rates = vec![0.0; states.len()];
        let point = Point {
            clock: &first,
            states: &states,
            parameters: &front.parameters,
            lanes,
        };
        system.rate(point, &mut rates);
        for (rate, before) in rates.iter_mut().zip(&front.rates) {
            *rate -= before;
        }
        for (place, first) in first.iter().enumerate() {
            let slope = largest(&front.rates, place);
            let bend = largest(&rates, place) / first;
            let steepest = if bend.is_finite() {
                slope.max(bend)
            } else {
                slope
            };
            let second = if steepest <= 1e-15 {
                (first * 1e-3).max(1e-6)
            } else {
                (0.01 / steepest).powf(1.0 / order)
            };
            front.length[place] = second.min(100.0 * first).min(1.0);
        }
        let finite = |rows: &[f64], place: usize| {
            rows.iter()
                .skip(place)
                .step_by(lanes)
                .all(|v| v.is_finite())
        };
        (0..lanes)
            .filter(|place| {
                let begins = self.extent(front, *place) > 0.0
                    && finite(&front.states, *place)
                    && finite(&front.rates, *place);
                !begins || self.times == 0
            })
            .collect()
    }

    /// Takes the step of a place; whether it can go on.
    fn accept(
        &self,
        x: Arguments<'_>,
        front: &mut Front,
        place: usize,
        attempt: &Attempt,
        order: f64,
        out: &mut [f64],
    ) -> bool {
        let Some(lane) = front.who[place] else {
            return true;
        };
        let lanes = front.lanes;
        for row in 0..front.states.len() / lanes {
            front.states[row * lanes + place] = attempt.states[row * lanes + place];
        }
        for row in 0..front.stages.len() / lanes {
            front.stages[row * lanes + place] = attempt.stages[row * lanes + place];
        }
        front.before[place] = front.trial[place];
        let most = if front.rejected[place] > 0 { 1.0 } else { 5.0 };
        front.rejected[place] = 0;
        let asked = front.trial[place] * growth(attempt.error[place], order).min(most);
        front.length[place] = if front.trial[place] < front.length[place] {
            asked.max(front.length[place])
        } else {
            asked
        };
        if let Some(longest) = &attempt.longest {
            front.length[place] = front.length[place].min(longest[place]);
        }
        if !front.ends[place] {
            front.clock[place] += front.trial[place];
            front.stale[place] = attempt.rates.is_none();
            if let Some(rates) = &attempt.rates {
                for row in 0..front.rates.len() / lanes {
                    front.rates[row * lanes + place] = rates[row * lanes + place];
                }
            }
            return true;
        }
        let k = front.interval[place];
        for copy in 0..x.copies {
            for i in 0..self.states {
                out[(copy * self.results() + k * self.states + i) * x.lanes + lane] =
                    front.states[(copy * self.states + i) * lanes + place];
            }
        }
        if k + 1 == self.times {
            front.who[place] = None;
            return true;
        }
        let before = self.extent(front, place);
        self.enter(x, front, place, lane, k + 1);
        let now = self.extent(front, place);
        front.clock[place] = 0.0;
        front.stale[place] = true;
        front.attempts[place] = 0;
        front.before[place] *= before / now;
        let length = front.length[place] * before / now;
        front.length[place] = if length.is_finite() && length > 0.0 {
            length
        } else {
            1.0
        };
        now >= 0.0
    }

    /// The products of `weights` (`copies · results` rows) with the derivatives of what [`solve`](Self::solve) gave with
    /// this trajectory, by the first copy of the arguments: `arguments` rows. A lane that failed has NaN, unless its weights
    /// are all 0.
    pub fn pull(
        &self,
        system: &mut dyn Differentiable,
        x: Arguments<'_>,
        kept: &Trajectory,
        weights: &[f64],
        out: &mut [f64],
    ) {
        out.fill(0.0);
        let mut scheme = self.scheme();
        let rows = x.copies * self.states;
        let width = (1 + scheme.stages()) * rows + HEAD;
        let mut left: Vec<usize> = kept.steps.iter().map(|steps| steps.len() / width).collect();
        let weighs = |lane: usize| {
            weights
                .iter()
                .skip(lane)
                .step_by(x.lanes)
                .any(|w| *w != 0.0)
        };
        for (lane, left) in left.iter_mut().enumerate() {
            if kept.failed[lane] || !weighs(lane) {
                *left = 0;
            }
        }
        let all = (0..x.lanes).map(Some).collect();
        let mut front = self.front(x, all, scheme.stages());
        let mut adjoint = vec![0.0; rows * x.lanes];
        let mut parameters = Vec::new();
        loop {
            let going = front
                .who
                .iter()
                .flatten()
                .filter(|lane| left[**lane] > 0)
                .count();
            let fitting = going.next_multiple_of(system.granule());
            if fitting <= front.lanes / 2 {
                self.leave(x, &front, &adjoint, &left, out);
                if going == 0 {
                    break;
                }
                (front, adjoint) = self.narrowed(x, &front, &adjoint, &left, fitting);
            }
            for place in 0..front.lanes {
                front.trial[place] = 0.0;
                let Some(lane) = front.who[place].filter(|lane| left[*lane] > 0) else {
                    continue;
                };
                left[lane] -= 1;
                let step = &kept.steps[lane][left[lane] * width..(left[lane] + 1) * width];
                self.load(x, &mut front, place, lane, step);
                if step[3] != 0.0 {
                    self.seed(x, &front, place, lane, weights, &mut adjoint);
                }
            }
            parameters.clear();
            parameters.resize(front.parameters.len(), 0.0);
            scheme.pull(system, &front, &mut adjoint, &mut parameters);
            self.collect(x, &front, &parameters, out);
        }
        for lane in (0..x.lanes).filter(|lane| kept.failed[*lane] && weighs(*lane)) {
            out.iter_mut()
                .skip(lane)
                .step_by(x.lanes)
                .for_each(|o| *o = f64::NAN);
        }
    }

    fn load(&self, x: Arguments<'_>, front: &mut Front, place: usize, lane: usize, step: &[f64]) {
        front.clock[place] = step[0];
        front.trial[place] = step[1];
        if front.interval[place] != step[2] as usize {
            self.enter(x, front, place, lane, step[2] as usize);
        }
        let (states, stages) = step[HEAD..].split_at(front.states.len() / front.lanes);
        for (rows, from) in [(&mut front.states, states), (&mut front.stages, stages)] {
            for (row, y) in from.iter().enumerate() {
                rows[row * front.lanes + place] = *y;
            }
        }
    }

    /// Adds the weights of an output to the adjoint of the states there.
    fn seed(
        &self,
        x: Arguments<'_>,
        front: &Front,
        place: usize,
        lane: usize,
        weights: &[f64],
        adjoint: &mut [f64],
    ) {
        for copy in 0..x.copies {
            for i in 0..self.states {
                let row = copy * self.results() + front.interval[place] * self.states + i;
                adjoint[(copy * self.states + i) * front.lanes + place] +=
                    weights[row * x.lanes + lane];
            }
        }
    }

    /// Adds the adjoints of the parameters of one step to those of the arguments.
    fn collect(&self, x: Arguments<'_>, front: &Front, parameters: &[f64], out: &mut [f64]) {
        let lanes = front.lanes;
        for place in 0..lanes {
            let Some(lane) = front.who[place].filter(|_| front.trial[place] > 0.0) else {
                continue;
            };
            for i in 0..self.parameters {
                out[(self.states + i) * x.lanes + lane] += parameters[i * lanes + place];
            }
            let time = self.states + self.parameters + front.interval[place];
            for end in 0..2 {
                out[(time + end) * x.lanes + lane] +=
                    parameters[(self.parameters + end) * lanes + place];
            }
        }
    }

    /// Writes the adjoints of the states at the start of lanes that have none of their steps left.
    fn leave(
        &self,
        x: Arguments<'_>,
        front: &Front,
        adjoint: &[f64],
        left: &[usize],
        out: &mut [f64],
    ) {
        for place in 0..front.lanes {
            let Some(lane) = front.who[place].filter(|lane| left[*lane] == 0) else {
                continue;
            };
            for i in 0..self.states {
                out[i * x.lanes + lane] = adjoint[i * front.lanes + place];
            }
        }
    }

    /// The lanes that have steps left, in `places` places.
    fn narrowed(
        &self,
        x: Arguments<'_>,
        front: &Front,
        adjoint: &[f64],
        left: &[usize],
        places: usize,
    ) -> (Front, Vec<f64>) {
        let from: Vec<usize> = (0..front.lanes)
            .filter(|place| front.who[*place].is_some_and(|lane| left[lane] > 0))
            .collect();
        let mut who: Vec<Option<usize>> = from.iter().map(|place| front.who[*place]).collect();
        who.resize(places, None);
        let rows = adjoint.len() / front.lanes;
        let mut thin = vec![0.0; rows * places];
        for row in 0..rows {
            for (to, from) in from.iter().enumerate() {
                thin[row * places + to] = adjoint[row * front.lanes + from];
            }
        }
        let stages = front.stages.len() / front.states.len();
        (self.front(x, who, stages), thin)
    }
}

/// By how much a step may grow after one with this error.
fn growth(error: f64, order: f64) -> f64 {
    (0.9 * error.max(1e-10).powf(-1.0 / order)).max(0.2)
}

impl Front {
    /// Computes the rates of places whose rates are stale.
    fn refresh(&mut self, system: &mut dyn System) {
        if !self.stale.iter().any(|stale| *stale) {
            return;
        }
        let mut rates = vec![0.0; self.rates.len()];
        let point = Point {
            clock: &self.clock,
            states: &self.states,
            parameters: &self.parameters,
            lanes: self.lanes,
        };
        system.rate(point, &mut rates);
        for (row, fresh) in self
            .rates
            .chunks_exact_mut(self.lanes)
            .zip(rates.chunks_exact(self.lanes))
        {
            for ((rate, fresh), stale) in row.iter_mut().zip(fresh).zip(&self.stale) {
                if *stale {
                    *rate = *fresh;
                }
            }
        }
        self.stale.fill(false);
    }

    /// The steps to try: to the end of the interval where it is near.
    fn clip(&mut self) {
        for place in 0..self.lanes {
            let rest = 1.0 - self.clock[place];
            self.ends[place] = self.length[place] * (1.0 + 1e-9) >= rest;
            self.trial[place] = if self.ends[place] {
                rest
            } else {
                self.length[place]
            };
        }
    }

    /// Shortens the step of a place after a failed attempt; whether there is any use in it.
    fn reject(&mut self, place: usize, error: f64, order: f64) -> bool {
        let factor = if error.is_finite() {
            growth(error, order)
        } else {
            0.2
        };
        self.length[place] = self.trial[place] * factor;
        self.rejected[place] += 1;
        let moves = self.clock[place] + self.length[place] > self.clock[place];
        moves && self.rejected[place] <= SHRINKING
    }
}
