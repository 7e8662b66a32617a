//! Maximises a function by limited-memory BFGS.

use std::collections::VecDeque;

use jensen_run::{Algorithm, Archive, ArchiveError, Evidence, Record, Snapshot, Status, Step};

use super::Solution;
use crate::linear::kernels::{dot, map};
use crate::solve::two_loops::{Correction, two_loops};

const MEMORY: usize = 10;

/// Once the steps are small, the duality gap is computed once in this many iterations.
const CHECKED: u64 = 5;

pub(crate) trait Objective {
    fn start(&self) -> Vec<f64>;

    fn evaluate(&mut self, x: &[f64]) -> Option<(f64, Vec<f64>)>;

    fn solution(&mut self, x: &[f64], value: f64) -> Solution;
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    x: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
    pairs: VecDeque<(Vec<f64>, Vec<f64>)>,
    gain: f64,
}

impl Snapshot for State {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("x", &self.x);
        archive.put("gradient", &self.gradient);
        archive.put("numbers", &[self.value, self.gain]);
        archive.set("pairs", self.pairs.len());
        for (k, (s, y)) in self.pairs.iter().enumerate() {
            archive.put(&format!("s{k}"), s);
            archive.put(&format!("y{k}"), y);
        }
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let pairs: usize = archive.get("pairs")?;
        let numbers = archive.vec_of("numbers", 2)?;
        Ok(Self {
            x: archive.vec("x")?,
            gradient: archive.vec("gradient")?,
            value: numbers[0],
            gain: numbers[1],
            pairs: (0..pairs)
                .map(|k| {
                    Ok((
                        archive.vec(&format!("s{k}"))?,
                        archive.vec(&format!("y{k}"))?,
                    ))
                })
                .collect::<Result<_, ArchiveError>>()?,
        })
    }
}

pub(crate) struct Lbfgs<O> {
    objective: O,
    tolerance: f64,
    evaluations: u64,
}

impl<O: Objective> Lbfgs<O> {
    pub(crate) fn new(objective: O, tolerance: f64) -> Self {
        Self {
            objective,
            tolerance,
            evaluations: 0,
        }
    }

    fn direction(&self, state: &State) -> Vec<f64> {
        let pairs: Vec<Correction<'_>> =
            state.pairs.iter().map(|(s, y)| (&s[..], &y[..])).collect();
        let guess = |q: &[f64]| {
            let scale = pairs.last().map_or(1.0, |(s, y)| dot(s, y) / dot(y, y));
            Some(map(q.len(), |i| scale * q[i]))
        };
        let (direction, _) = two_loops(&pairs, state.gradient.clone(), guess)
            .expect("this guess multiplies with everything");
        direction
    }
}

struct Reached {
    x: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

impl State {
    fn move_to(&mut self, reached: Reached) {
        let n = self.x.len();
        let s = map(n, |i| reached.x[i] - self.x[i]);
        let y = map(n, |i| self.gradient[i] - reached.gradient[i]);
        if dot(&s, &y) > 0.0 {
            if self.pairs.len() == MEMORY {
                self.pairs.pop_front();
            }
            self.pairs.push_back((s, y));
        }
        self.gain = reached.value - self.value;
        self.x = reached.x;
        self.value = reached.value;
        self.gradient = reached.gradient;
    }
}

impl<O: Objective> Lbfgs<O> {
    /// Ends the search, unless the steps are small only because of a poor curvature model. The decision is based on the
    /// gap or, without a gap, on the gain of a natural-gradient step.
    fn certify(&mut self, state: &State, slope: f64) -> Option<Status> {
        let at = self.objective.solution(&state.x, state.value);
        let (rule, remaining) = match at.gap {
            Some(gap) => (format!("the duality gap is {gap:.1e} nats"), gap),
            None => {
                let gain = at.gain.unwrap_or(0.0).max(0.5 * slope);
                let rule = format!("the next step is estimated to gain {gain:.1e} nats");
                (rule, gain)
            }
        };
        (remaining <= self.tolerance).then_some(Status::Converged {
            evidence: Evidence {
                rule,
                remaining: Some(remaining),
                standard_error: None,
            },
        })
    }

    /// Searches by bisection for a point that satisfies the weak Wolfe conditions. Returns this point and the step
    /// length to try next. If no such point is found, the function returns the best point with a sufficient increase.
    fn search(&mut self, state: &State, direction: &[f64], slope: f64) -> Option<(f64, Reached)> {
        let mut t = if state.pairs.is_empty() {
            (1.0 / slope.sqrt()).min(1.0)
        } else {
            1.0
        };
        let (mut low, mut high) = (0.0, f64::INFINITY);
        let mut best = None;
        for _ in 0..40 {
            let x = map(state.x.len(), |i| state.x[i] + t * direction[i]);
            self.evaluations += 1;
            match self.objective.evaluate(&x) {
                Some((value, gradient)) if value >= state.value + 1e-4 * t * slope => {
                    let flat = dot(&gradient, direction) <= 0.9 * slope;
                    best = Some(Reached { x, value, gradient });
                    if flat {
                        break;
                    }
                    low = t;
                }
                _ => high = t,
            }
            t = if high.is_finite() {
                0.5 * (low + high)
            } else {
                2.0 * t
            };
            if high.is_finite() && high - low < 1e-14 * high {
                break;
            }
        }
        best.map(|reached| (t, reached))
    }

    /// Ends the search if no step raises the value. If the search is at the optimum up to rounding errors, the
    /// estimated gain is the best available evidence of convergence. Returns `None` if steps without memory may still
    /// raise the value.
    fn stuck(&mut self, state: &State, slope: f64, iteration: u64) -> Option<Status> {
        if state.pairs.is_empty() {
            return Some(Status::Stalled {
                at: iteration,
                reason: "no step raises the bound".to_owned(),
            });
        }
        let gain = self.objective.solution(&state.x, state.value).gain;
        let small = gain.unwrap_or(0.0).max(0.5 * slope) <= 100.0 * self.tolerance;
        small.then(|| Status::Converged {
            evidence: Evidence {
                rule: "no step raises the bound by more than the rounding error".to_owned(),
                remaining: Some(0.5 * slope),
                standard_error: None,
            },
        })
    }
}

impl<O: Objective> Algorithm for Lbfgs<O> {
    type State = State;
    type Output = Solution;

    fn init(&mut self) -> Result<State, Status> {
        let x = self.objective.start();
        self.evaluations += 1;
        let (value, gradient) = self.objective.evaluate(&x).ok_or(Status::Diverged {
            at: 0,
            reason: "the bound is not finite at the start".to_owned(),
        })?;
        Ok(State {
            x,
            value,
            gradient,
            pairs: VecDeque::new(),
            gain: f64::INFINITY,
        })
    }

    fn step(&mut self, state: &mut State, iteration: u64) -> Step {
        let mut direction = self.direction(state);
        let mut slope = dot(&direction, &state.gradient);
        if slope <= 0.0 || slope.is_nan() {
            state.pairs.clear();
            direction = state.gradient.clone();
            slope = dot(&direction, &direction);
        }
        let record = |calls: u64, value: f64, t: f64| {
            Record::new(calls).with_elbo(value, None).with("step", t)
        };
        let small = 0.5 * slope <= self.tolerance && state.gain <= self.tolerance;
        if small
            && !state.pairs.is_empty()
            && iteration.is_multiple_of(CHECKED)
            && let Some(status) = self.certify(state, slope)
        {
            return Step::finish(record(self.evaluations, state.value, 0.0), status);
        }
        let Some((t, reached)) = self.search(state, &direction, slope) else {
            let line = record(self.evaluations, state.value, 0.0);
            return match self.stuck(state, slope, iteration) {
                Some(status) => Step::finish(line, status),
                None => {
                    state.pairs.clear();
                    Step::go_on(line)
                }
            };
        };
        state.move_to(reached);
        Step::go_on(record(self.evaluations, state.value, t))
    }

    fn output(&mut self, state: &State) -> Solution {
        self.objective.solution(&state.x, state.value)
    }
}
