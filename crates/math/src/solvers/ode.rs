//! Initial value problems, solved for many lanes at a time.
//!
//! The solver maps each interval [a, b] between two output times to the interval [0, 1] of a clock. A [`System`] has
//! the parameters `(θ, a, b)` and returns `(b − a) · f(a + (b − a) · clock, y, θ)`. The times a and b are therefore
//! ordinary parameters, and a step ends at every output time.
//!
//! *Forward.* Each lane has its own clock and step. The solver accepts a step if the estimated error of every state of
//! the first copy is at most `absolute + relative · |y|`. The error determines the length of the next step (Hairer,
//! Nørsett and Wanner, *Solving Ordinary Differential Equations I*, II.4). The solver removes finished lanes from the
//! block, so that it does no further work for them while slow lanes continue.
//!
//! *Backward.* For every accepted step, a [`Trajectory`] stores the length of the step, and the time and the states at
//! its start. It also stores the stages of as many steps as memory allows. The backward pass computes the adjoints of
//! the steps, with their lengths fixed, from the last step to the first. The result is the exact gradient of the
//! forward solution, except that it neglects how the lengths of the steps depend on the arguments. The resulting error
//! is below the tolerance. With more parameters, only the products in each row cost more.

use super::explicit::{CASH_KARP, DOP853, DORMAND_PRINCE, Explicit};
use super::radau::Radau;
use super::trajectory::Trajectory;
use super::{Differentiable, Point, System};
use crate::simd::Simd;
use crate::vmath::slices;

/// The integration method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// The Dormand-Prince method of order 5, with an error estimate of order 4. For relative tolerances below 1e-5, the
    /// solver uses the Dormand-Prince method of order 8.
    DormandPrince,
    /// The Cash-Karp method of order 5, with an error estimate of order 4. For relative tolerances below 1e-5, the
    /// solver uses the Dormand-Prince method of order 8.
    CashKarp,
    /// The Radau IIA method, which is implicit and L-stable. It has three stages (order 5). For relative tolerances
    /// below 1e-7 it has five stages (order 9).
    Radau,
    /// The Radau IIA method for equations `F(t, y, y′) = 0` of index 1. The system receives the states, followed by
    /// their derivatives with respect to the clock. It returns the residuals F instead of rates. The last parameters of
    /// the system are the initial derivatives with respect to time, one per state. They only determine the length of
    /// the first step.
    Implicit,
}

/// An initial value problem with output times.
#[derive(Clone, Debug, PartialEq)]
pub struct Ode {
    /// The integration method.
    pub method: Method,
    /// The number of states.
    pub states: usize,
    /// The number of parameters of the right-hand side.
    pub parameters: usize,
    /// The number of output times.
    pub times: usize,
    /// The relative tolerance.
    pub relative: f64,
    /// The absolute tolerance of each state.
    pub absolute: Vec<f64>,
    /// The largest number of steps between two output times, including rejected ones.
    pub max_steps: u64,
    /// Whether all times are data. If they are, derivatives with respect to the times are set to 0 and cost nothing.
    pub fixed_times: bool,
}

/// For relative tolerances below this value, explicit steps have order 8. A step of order 8 takes twice as many
/// evaluations, but the solver needs fewer steps.
const HIGH_ORDER: f64 = 1e-5;

/// A system of residuals divides by the length of an interval. If the interval is shorter than this, the system divides
/// by this length instead, so that derivatives with respect to time stay finite between two equal times.
pub const SHORTEST: f64 = 1e-30;

const SHRINKING: u32 = 60;

/// The arguments of all lanes. The rows of one copy are repeated `copies` times.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    /// The rows of the arguments, each with one number per lane.
    pub rows: &'a [f64],
    /// The number of copies.
    pub copies: usize,
    /// The number of lanes.
    pub lanes: usize,
}

#[derive(Default)]
pub(super) struct Attempt {
    pub states: Vec<f64>,
    pub keeps: bool,
    /// The stages of the step, for the backward pass and for the next step.
    pub stages: Vec<f64>,
    /// The largest error of the step, divided by the tolerance. It is not finite if the step failed.
    pub error: Vec<f64>,
    pub rates: Option<Vec<f64>>,
    pub longest: Option<Vec<f64>>,
    growth: Vec<f64>,
}

impl Attempt {
    fn judge(&mut self, simd: Simd, order: f64, scratch: &mut Vec<f64>) {
        self.growth.clear();
        self.growth
            .extend(self.error.iter().map(|error| error.max(1e-10)));
        scratch.resize(self.growth.len(), 0.0);
        slices::log(simd, &self.growth, scratch);
        scratch.iter_mut().for_each(|log| *log *= -1.0 / order);
        slices::exp(simd, scratch, &mut self.growth);
        for growth in &mut self.growth {
            *growth = (0.9 * *growth).max(0.2);
        }
    }
}

pub(super) struct Front {
    pub lanes: usize,
    /// The caller's lane for each slot, or `None` for a slot that only fills a vector.
    pub who: Vec<Option<usize>>,
    pub interval: Vec<usize>,
    pub clock: Vec<f64>,
    pub length: Vec<f64>,
    /// The length of the attempted step, which does not extend past the end of the interval.
    pub trial: Vec<f64>,
    pub ends: Vec<bool>,
    attempts: Vec<u64>,
    total: Vec<u64>,
    rejected: Vec<u32>,
    pub states: Vec<f64>,
    pub parameters: Vec<f64>,
    /// The rates at `states`. They are valid unless `stale` is set.
    pub rates: Vec<f64>,
    pub stale: Vec<bool>,
    /// The stages of a step. In the forward pass, they are the stages of the last accepted step, if the method uses
    /// them to start the next step. In the backward pass, they are the stages of the current step, if the trajectory
    /// stored them.
    pub stages: Vec<f64>,
    /// The length of the last step, in units of the current interval. It is 0 before the first step.
    pub before: Vec<f64>,
}

pub(super) trait Scheme {
    /// Returns the order p of the error estimate, which is proportional to `length^p`, where `length` is the length of
    /// the step.
    fn order(&self) -> f64;

    /// Returns the number of stages to keep after a step. The next step starts from these stages, and the backward pass
    /// also needs them.
    fn stages(&self) -> usize {
        0
    }

    fn attempt(&mut self, system: &mut dyn System, front: &Front, attempt: &mut Attempt);

    /// Computes the adjoint of the step `front.trial` from `front.states`. On entry, `adjoint` contains the adjoint of
    /// the states after the step. On return, it contains the adjoint of the states before the step, and `parameters`
    /// contains the adjoint of the parameters.
    fn pull(
        &mut self,
        system: &mut dyn Differentiable,
        front: &Front,
        adjoint: &mut [f64],
        parameters: &mut [f64],
    );
}

impl Ode {
    /// Returns the number of values in one copy of the arguments: the initial states, the parameters, the initial time
    /// and the output times.
    pub fn arguments(&self) -> usize {
        self.states + self.parameters + 1 + self.times
    }

    /// Returns the number of values in one copy of the result, which contains the states at each output time.
    pub fn results(&self) -> usize {
        self.states * self.times
    }

    /// Returns the number of parameters of the system: the parameters of the right-hand side and the two ends of the
    /// interval.
    pub fn system_parameters(&self) -> usize {
        self.parameters + 2
    }

    /// Returns the largest number of steps, including rejected steps, that a solver may take for one lane of a log
    /// density. At a relative tolerance of 1e-8, the limit is 20 000 explicit or 2 000 implicit steps. For other
    /// tolerances, it is proportional to the inverse cube root of the tolerance. Each output time adds ten steps to the
    /// limit. Without a limit, draws far from the posterior would take millions of steps, and all other draws would
    /// wait for them. When the test corpus was fitted from wide starts without this limit, such draws took nine tenths
    /// of the time.
    pub fn longest(&self) -> u64 {
        let most = match self.method {
            Method::Radau | Method::Implicit => 2e3,
            Method::DormandPrince | Method::CashKarp => 2e4,
        };
        let share = (1e-8 / self.relative).cbrt().clamp(0.01, 10.0);
        (most * share) as u64 + 10 * self.times as u64
    }

    /// Raises every tolerance to at least `relative`.
    pub fn loosen(&mut self, relative: f64) {
        let factor = relative / self.relative;
        if factor > 1.0 {
            self.relative = relative;
            self.absolute.iter_mut().for_each(|a| *a *= factor);
        }
    }

    pub(super) fn scheme(&self) -> Box<dyn Scheme + '_> {
        match self.method {
            Method::DormandPrince | Method::CashKarp if self.relative < HIGH_ORDER => {
                Box::new(Explicit::new(&DOP853, self))
            }
            Method::DormandPrince => Box::new(Explicit::new(&DORMAND_PRINCE, self)),
            Method::CashKarp => Box::new(Explicit::new(&CASH_KARP, self)),
            Method::Radau | Method::Implicit => Box::new(Radau::new(self)),
        }
    }

    pub(super) fn unit(&self, i: usize, y: f64) -> f64 {
        self.absolute[i] + self.relative * y.abs()
    }

    /// Computes the states at the output times. `x` has `copies · arguments` rows, and `out` has `copies · results`
    /// rows. If a lane fails or exceeds `most` steps in total, the results from that point on are NaN. If a trajectory
    /// is given, the function stores the accepted steps in it.
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
            kept.begin(x.lanes);
        }
        let mut scheme = self.scheme();
        let all: Vec<Option<usize>> = (0..x.lanes).map(Some).collect();
        let mut front = self.front(x, all, scheme.stages());
        let mut lost = self.start(system, x, &mut front, scheme.order());
        let (mut attempt, mut scratch, mut take) = (Attempt::default(), Vec::new(), Vec::new());
        if let Some(kept) = kept.as_deref_mut() {
            kept.enter(&front);
            attempt.keeps = true;
        }
        loop {
            for slot in lost.drain(..) {
                if let (Some(lane), Some(kept)) = (front.who[slot].take(), kept.as_deref_mut()) {
                    kept.fail(lane);
                }
            }
            let left = front.who.iter().flatten().count();
            if left == 0 {
                return;
            }
            let fitting = left.next_multiple_of(system.granule());
            if fitting <= front.lanes / 2 {
                front = self.thinned(x, &front, fitting);
                if let Some(kept) = kept.as_deref_mut() {
                    kept.enter(&front);
                }
            }
            front.refresh(system);
            front.clip();
            scheme.attempt(system, &front, &mut attempt);
            attempt.judge(system.simd(), scheme.order(), &mut scratch);
            if let Some(kept) = kept.as_deref_mut() {
                take.clear();
                let attempted = front.who.iter().zip(&attempt.error);
                take.extend(attempted.map(|(who, error)| who.is_some() && *error <= 1.0));
                kept.push(&front, &attempt, &take, scheme.stages() > 0);
            }
            for slot in 0..front.lanes {
                let Some(lane) = front.who[slot] else {
                    continue;
                };
                front.attempts[slot] += 1;
                front.total[slot] += 1;
                if attempt.error[slot] <= 1.0 {
                    let full = kept.as_deref().is_some_and(|kept| kept.is_full(lane));
                    if full || !self.accept(x, &mut front, slot, &attempt, out) {
                        lost.push(slot);
                    }
                } else if !front.reject(slot, &attempt) {
                    lost.push(slot);
                }
                if front.attempts[slot] > self.max_steps || front.total[slot] > most {
                    lost.push(slot);
                }
            }
        }
    }

    pub(super) fn front(&self, x: Arguments<'_>, who: Vec<Option<usize>>, stages: usize) -> Front {
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
        for slot in 0..lanes {
            let lane = front.who[slot].unwrap_or(fallback);
            for copy in 0..x.copies {
                let from = copy * self.arguments();
                for i in 0..self.states {
                    front.states[(copy * self.states + i) * lanes + slot] =
                        x.rows[(from + i) * x.lanes + lane];
                }
                let to = copy * self.system_parameters();
                for i in 0..self.parameters {
                    front.parameters[(to + i) * lanes + slot] =
                        x.rows[(from + self.states + i) * x.lanes + lane];
                }
            }
            self.enter(x, &mut front, slot, lane, 0);
        }
        front
    }

    pub(super) fn enter(
        &self,
        x: Arguments<'_>,
        front: &mut Front,
        slot: usize,
        lane: usize,
        k: usize,
    ) {
        front.interval[slot] = k;
        for copy in 0..x.copies {
            let from = copy * self.arguments() + self.states + self.parameters + k;
            let to = copy * self.system_parameters() + self.parameters;
            for end in 0..2 {
                front.parameters[(to + end) * front.lanes + slot] =
                    x.rows[(from + end) * x.lanes + lane];
            }
        }
    }

    pub(super) fn extent(&self, front: &Front, slot: usize) -> f64 {
        let at = |row: usize| front.parameters[row * front.lanes + slot];
        at(self.parameters + 1) - at(self.parameters)
    }

    fn thinned(&self, x: Arguments<'_>, front: &Front, slots: usize) -> Front {
        let mut from: Vec<usize> = (0..front.lanes)
            .filter(|slot| front.who[*slot].is_some())
            .collect();
        let mut who: Vec<Option<usize>> = from.iter().map(|slot| front.who[*slot]).collect();
        who.resize(slots, None);
        from.resize(slots, from[0]);
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
                thin.states[row * slots + to] = front.states[row * front.lanes + from];
                thin.rates[row * slots + to] = front.rates[row * front.lanes + from];
            }
            thin.before[to] = front.before[from];
            for row in 0..front.stages.len() / front.lanes {
                thin.stages[row * slots + to] = front.stages[row * front.lanes + from];
            }
        }
        thin
    }

    /// Chooses the length of the first step by the algorithm of Hairer, Nørsett and Wanner, II.4. Returns the slots
    /// that cannot begin.
    fn start(
        &self,
        system: &mut dyn System,
        x: Arguments<'_>,
        front: &mut Front,
        order: f64,
    ) -> Vec<usize> {
        if self.method == Method::Implicit {
            return self.start_implicit(system, front);
        }
        front.refresh(system);
        let lanes = front.lanes;
        let largest = |values: &[f64], slot: usize| {
            (0..self.states).fold(0.0_f64, |most, i| {
                let y = x.rows[i * x.lanes + slot];
                let size = values[i * lanes + slot].abs() / self.unit(i, y);
                if size.is_nan() { size } else { most.max(size) }
            })
        };
        let mut first = vec![0.0; lanes];
        let mut states = front.states.clone();
        for (slot, first) in first.iter_mut().enumerate() {
            let (size, slope) = (largest(&front.states, slot), largest(&front.rates, slot));
            *first = if size < 1e-5 || slope < 1e-5 {
                1e-6
            } else {
                (0.01 * size / slope).min(1.0)
            };
            for row in 0..states.len() / lanes {
                states[row * lanes + slot] += *first * front.rates[row * lanes + slot];
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
        for (slot, first) in first.iter().enumerate() {
            let slope = largest(&front.rates, slot);
            let curvature = largest(&rates, slot) / first;
            let steepest = if curvature.is_finite() {
                slope.max(curvature)
            } else {
                slope
            };
            let second = if steepest <= 1e-15 {
                (first * 1e-3).max(1e-6)
            } else {
                (0.01 / steepest).powf(1.0 / order)
            };
            front.length[slot] = second.min(100.0 * first).min(1.0);
        }
        (0..lanes)
            .filter(|slot| !self.begins(front, *slot))
            .collect()
    }

    pub(super) fn begins(&self, front: &Front, slot: usize) -> bool {
        let finite = |rows: &[f64]| {
            let own = rows.iter().skip(slot).step_by(front.lanes);
            own.into_iter().all(|v| v.is_finite())
        };
        let extends = self.times > 0 && self.extent(front, slot) > 0.0;
        extends && finite(&front.states) && finite(&front.rates)
    }

    fn accept(
        &self,
        x: Arguments<'_>,
        front: &mut Front,
        slot: usize,
        attempt: &Attempt,
        out: &mut [f64],
    ) -> bool {
        let Some(lane) = front.who[slot] else {
            return true;
        };
        let lanes = front.lanes;
        for row in 0..front.states.len() / lanes {
            front.states[row * lanes + slot] = attempt.states[row * lanes + slot];
        }
        for row in 0..front.stages.len() / lanes {
            front.stages[row * lanes + slot] = attempt.stages[row * lanes + slot];
        }
        front.before[slot] = front.trial[slot];
        let most = if front.rejected[slot] > 0 { 1.0 } else { 5.0 };
        front.rejected[slot] = 0;
        let asked = front.trial[slot] * attempt.growth[slot].min(most);
        front.length[slot] = if front.trial[slot] < front.length[slot] {
            asked.max(front.length[slot])
        } else {
            asked
        };
        if let Some(longest) = &attempt.longest {
            front.length[slot] = front.length[slot].min(longest[slot]);
        }
        if !front.ends[slot] {
            front.clock[slot] += front.trial[slot];
            front.stale[slot] = attempt.rates.is_none();
            if let Some(rates) = &attempt.rates {
                for row in 0..front.rates.len() / lanes {
                    front.rates[row * lanes + slot] = rates[row * lanes + slot];
                }
            }
            return true;
        }
        let k = front.interval[slot];
        for copy in 0..x.copies {
            for i in 0..self.states {
                out[(copy * self.results() + k * self.states + i) * x.lanes + lane] =
                    front.states[(copy * self.states + i) * lanes + slot];
            }
        }
        if k + 1 == self.times {
            front.who[slot] = None;
            return true;
        }
        let before = self.extent(front, slot);
        self.enter(x, front, slot, lane, k + 1);
        let now = self.extent(front, slot);
        front.clock[slot] = 0.0;
        front.stale[slot] = self.method != Method::Implicit;
        if self.method == Method::Implicit
            && let Some(rates) = &attempt.rates
        {
            let scale = now.max(SHORTEST) / before.max(SHORTEST);
            for row in 0..front.rates.len() / lanes {
                front.rates[row * lanes + slot] = scale * rates[row * lanes + slot];
            }
        }
        front.attempts[slot] = 0;
        front.before[slot] *= before / now;
        let length = front.length[slot] * before / now;
        front.length[slot] = if length.is_finite() && length > 0.0 {
            length
        } else {
            1.0
        };
        now >= 0.0
    }
}

impl Front {
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

    fn clip(&mut self) {
        for slot in 0..self.lanes {
            let rest = 1.0 - self.clock[slot];
            self.ends[slot] = self.length[slot] * (1.0 + 1e-9) >= rest;
            self.trial[slot] = if self.ends[slot] {
                rest
            } else {
                self.length[slot]
            };
        }
    }

    fn reject(&mut self, slot: usize, attempt: &Attempt) -> bool {
        let factor = if attempt.error[slot].is_finite() {
            attempt.growth[slot]
        } else {
            0.2
        };
        self.length[slot] = self.trial[slot] * factor;
        self.rejected[slot] += 1;
        let moves = self.clock[slot] + self.length[slot] > self.clock[slot];
        moves && self.rejected[slot] <= SHRINKING
    }
}
