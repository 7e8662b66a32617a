//! Radau IIA steps over lanes.
//!
//! The stages `Zᵢ = h Σ aᵢⱼ f(y + Zⱼ)` of a step are found by simplified Newton iterations with the Jacobian at its
//! start, split by the eigenvalues of A⁻¹ into systems of the size of the states, as in RADAU5 (Hairer and Wanner, IV.8).
//! Rates are evaluated for all lanes at once; the small systems are factored lane by lane, since pivots differ.
//!
//! The adjoint of the stages solves the transposed system at the *exact* Jacobians of the stages: its residual is computed by
//! products with the derivatives of the rates, and the factors of the step are the preconditioner of an iteration that ends
//! at rounding. With several copies factors of the first serve all: the matrix is triangular in the copies.

use num_complex::Complex64;

use super::collocation::Collocation;
use super::linear::Factor;
use super::ode::{Attempt, Front, Ode, Scheme};
use super::{Differentiable, Point, System};

/// Newton iterations for the first copy.
const ITERATIONS: usize = 14;

/// Iterations for tangents and adjoints, which converge at the same rate but to rounding.
const REFINEMENTS: usize = 60;

/// From so many Newton iterations on, steps do not grow.
const SLOW: usize = 8;

/// Collocation at work on a problem.
pub(super) struct Radau<'a> {
    method: &'static Collocation,
    ode: &'a Ode,
    /// For each place, the factors of `λ/h − J` for each eigenvalue.
    factors: Vec<Vec<Factor>>,
}

/// Stages of all places.
struct Stages {
    /// Zᵢ, rows of lanes.
    z: Vec<Vec<f64>>,
    /// How many iterations each place took; none where they did not converge.
    iterations: Vec<Option<usize>>,
}

/// How far the iteration of a place has come.
#[derive(Clone, Copy, PartialEq)]
enum Progress {
    Going { before: f64, first_done: bool },
    Done,
    Failed,
}

fn live(front: &Front, place: usize) -> bool {
    front.who[place].is_some() && front.trial[place] > 0.0
}

impl<'a> Radau<'a> {
    pub fn new(ode: &'a Ode) -> Self {
        let stages = if ode.relative < 1e-7 { 5 } else { 3 };
        Self {
            method: Collocation::with(stages),
            ode,
            factors: Vec::new(),
        }
    }

    /// Factors the matrices of all places.
    fn prepare(&mut self, system: &mut dyn System, front: &Front) {
        let (n, lanes) = (self.ode.states, front.lanes);
        let mut jacobian = vec![0.0; n * n * lanes];
        let point = Point {
            clock: &front.clock,
            states: &front.states,
            parameters: &front.parameters,
            lanes,
        };
        system.jacobian(point, n, &mut jacobian);
        self.factors.resize(lanes, Vec::new());
        let mut own = vec![0.0; n * n];
        for place in (0..lanes).filter(|place| live(front, *place)) {
            for (own, row) in own.iter_mut().zip(jacobian.chunks_exact(lanes)) {
                *own = row[place];
            }
            let factors = &mut self.factors[place];
            factors.resize(self.method.eigenvalues.len(), Factor::default());
            for (factor, value) in factors.iter_mut().zip(&self.method.eigenvalues) {
                factor.shifted(value / front.trial[place], &own, n);
            }
        }
    }

    /// Solves with the matrix of Newton's method at one place for one copy, or with its transpose: `x` holds a vector of
    /// states for each stage.
    fn precondition(&self, place: usize, x: &mut [f64], transposed: bool) {
        let n = self.ode.states;
        let method = self.method;
        let mut out = vec![0.0; x.len()];
        let mut w = vec![Complex64::ZERO; n];
        for (k, factor) in self.factors[place].iter().enumerate() {
            let (into, from) = if transposed {
                (&method.vectors[k], &method.duals[k])
            } else {
                (&method.duals[k], &method.vectors[k])
            };
            for (i, w) in w.iter_mut().enumerate() {
                *w = (0..method.stages).map(|j| into[j] * x[j * n + i]).sum();
            }
            if transposed {
                factor.solve_transposed(&mut w);
            } else {
                factor.solve(&mut w);
            }
            for j in 0..method.stages {
                for (i, w) in w.iter().enumerate() {
                    out[j * n + i] += Collocation::multiplicity(k) * (from[j] * w).re;
                }
            }
        }
        x.copy_from_slice(&out);
    }

    /// The clock of stage `i`, and the states there.
    fn stage(&self, front: &Front, z: &[f64], i: usize) -> (Vec<f64>, Vec<f64>) {
        let node = self.method.nodes[i];
        let clocks = front.clock.iter().zip(&front.trial);
        let clock = clocks
            .map(|(clock, length)| clock + node * length)
            .collect();
        let states = front.states.iter().zip(z).map(|(y, z)| y + z).collect();
        (clock, states)
    }

    /// Newton's method for the stages.
    fn newton(&self, system: &mut dyn System, front: &Front) -> Stages {
        let (n, s, lanes) = (self.ode.states, self.method.stages, front.lanes);
        let copies = front.states.len() / (n * lanes);
        let mut z = vec![vec![0.0; front.states.len()]; s];
        let mut rates = z.clone();
        let start = Progress::Going {
            before: f64::INFINITY,
            first_done: false,
        };
        let mut progress: Vec<Progress> = (0..lanes)
            .map(|place| {
                if live(front, place) {
                    start
                } else {
                    Progress::Failed
                }
            })
            .collect();
        let mut iterations = vec![None; lanes];
        let mut change = vec![0.0; s * n];
        for turn in 0..ITERATIONS + REFINEMENTS {
            if !progress.iter().any(|p| matches!(p, Progress::Going { .. })) {
                break;
            }
            for i in 0..s {
                let (clock, states) = self.stage(front, &z[i], i);
                let point = Point {
                    clock: &clock,
                    states: &states,
                    parameters: &front.parameters,
                    lanes,
                };
                system.rate(point, &mut rates[i]);
            }
            for place in 0..lanes {
                let Progress::Going { before, first_done } = progress[place] else {
                    continue;
                };
                let (mut size, mut settled) = (0.0, true);
                for copy in 0..copies {
                    self.residual(front, place, copy, &z, &rates, &mut change);
                    self.precondition(place, &mut change, false);
                    let (mut largest, mut extent) = (0.0_f64, 0.0_f64);
                    for j in 0..s {
                        for i in 0..n {
                            let at = (copy * n + i) * lanes + place;
                            z[j][at] += change[j * n + i];
                            let moved = change[j * n + i].abs();
                            let unit = if copy == 0 {
                                self.ode.unit(i, front.states[at])
                            } else {
                                1.0
                            };
                            largest = if moved.is_nan() {
                                moved
                            } else {
                                largest.max(moved / unit)
                            };
                            extent = extent.max(z[j][at].abs()).max(front.states[at].abs());
                        }
                    }
                    if copy == 0 {
                        size = largest;
                    } else {
                        settled &= largest <= 1e-11 * extent;
                    }
                }
                progress[place] = self.judge(turn, size, before, first_done, settled);
                if progress[place] == Progress::Done {
                    iterations[place] = Some(turn + 1);
                }
            }
        }
        Stages { z, iterations }
    }

    fn judge(
        &self,
        turn: usize,
        size: f64,
        before: f64,
        first_done: bool,
        settled: bool,
    ) -> Progress {
        let rate = size / before;
        let enough = 1e-4_f64.max(100.0 * f64::EPSILON / self.ode.relative.max(f64::EPSILON));
        let first_done = first_done
            || size <= 1e-3 * enough
            || (turn > 0 && rate < 1.0 && size * rate / (1.0 - rate) <= enough);
        if first_done {
            return if settled {
                Progress::Done
            } else if turn + 1 == ITERATIONS + REFINEMENTS || !size.is_finite() {
                Progress::Failed
            } else {
                Progress::Going {
                    before: size,
                    first_done,
                }
            };
        }
        let hopeless = !size.is_finite() || (turn > 1 && rate > 0.9) || turn + 1 >= ITERATIONS;
        if hopeless {
            Progress::Failed
        } else {
            Progress::Going {
                before: size,
                first_done,
            }
        }
    }

    /// `fⱼ − (A⁻¹ Z)ⱼ / h` of one place and copy.
    fn residual(
        &self,
        front: &Front,
        place: usize,
        copy: usize,
        z: &[Vec<f64>],
        rates: &[Vec<f64>],
        out: &mut [f64],
    ) {
        let (n, s) = (self.ode.states, self.method.stages);
        for j in 0..s {
            let row = &self.method.inverse[j * s..(j + 1) * s];
            for i in 0..n {
                let at = (copy * n + i) * front.lanes + place;
                let sum: f64 = row.iter().zip(z).map(|(a, z)| a * z[at]).sum();
                out[j * n + i] = rates[j][at] - sum / front.trial[place];
            }
        }
    }

    /// The estimated error of a step in units of the tolerance.
    fn error(&self, front: &Front, place: usize, z: &[Vec<f64>]) -> f64 {
        let n = self.ode.states;
        let shift = self.method.eigenvalues[0].re / front.trial[place];
        let mut e: Vec<Complex64> = (0..n)
            .map(|i| {
                let at = i * front.lanes + place;
                let sum: f64 = self
                    .method
                    .error
                    .iter()
                    .zip(z)
                    .map(|(w, z)| w * z[at])
                    .sum();
                Complex64::new(front.rates[at] + shift * sum, 0.0)
            })
            .collect();
        self.factors[place][0].solve(&mut e);
        e.iter().enumerate().fold(0.0_f64, |most, (i, e)| {
            let at = i * front.lanes + place;
            let y = front.states[at];
            let end = y + z[self.method.stages - 1][at];
            let here = e.re.abs() / self.ode.unit(i, y.abs().max(end.abs()));
            if here.is_nan() || most.is_nan() {
                f64::NAN
            } else {
                most.max(here)
            }
        })
    }

    /// One turn of the iteration for the adjoint of the stages at one place; whether it has converged, or none if it never
    /// will. `pulled` are the products of `nu` with the derivatives of the rates.
    fn refine(
        &self,
        front: &Front,
        place: usize,
        adjoint: &[f64],
        pulled: &[Vec<f64>],
        nu: &mut [Vec<f64>],
        before: &mut f64,
    ) -> Option<bool> {
        let (n, s, lanes) = (self.ode.states, self.method.stages, front.lanes);
        let copies = adjoint.len() / (n * lanes);
        let mut change = vec![0.0; copies * s * n];
        let mut worst = 0.0_f64;
        for copy in 0..copies {
            let own = &mut change[copy * s * n..(copy + 1) * s * n];
            for j in 0..s {
                for i in 0..n {
                    let at = (copy * n + i) * lanes + place;
                    let sum: f64 = (0..s)
                        .map(|l| self.method.inverse[l * s + j] * nu[l][at])
                        .sum();
                    let seed = if j + 1 == s { adjoint[at] } else { 0.0 };
                    own[j * n + i] = seed - sum / front.trial[place] + pulled[j][at];
                }
            }
            self.precondition(place, own, true);
            let moved = own
                .iter()
                .fold(0.0_f64, |m, x| if x.is_nan() { *x } else { m.max(x.abs()) });
            let extent = (0..s * n).fold(0.0_f64, |m, k| {
                m.max(nu[k / n][(copy * n + k % n) * lanes + place].abs())
            });
            worst = if moved.is_nan() {
                moved
            } else if moved > 0.0 {
                worst.max(moved / extent)
            } else {
                worst
            };
        }
        if worst <= 1e-13 || (worst <= 1e-9 && worst >= 0.5 * *before) {
            return Some(true);
        }
        if worst.is_nan() {
            return None;
        }
        *before = worst;
        for copy in 0..copies {
            for j in 0..s {
                for i in 0..n {
                    nu[j][(copy * n + i) * lanes + place] += change[(copy * s + j) * n + i];
                }
            }
        }
        Some(false)
    }
}

impl Scheme for Radau<'_> {
    fn order(&self) -> f64 {
        self.method.stages as f64 + 1.0
    }

    fn attempt(&mut self, system: &mut dyn System, front: &Front, attempt: &mut Attempt) {
        self.prepare(system, front);
        let stages = self.newton(system, front);
        let last = &stages.z[self.method.stages - 1];
        let states = front.states.iter().zip(last).map(|(y, z)| y + z).collect();
        let error = (0..front.lanes)
            .map(|place| match stages.iterations[place] {
                None => f64::INFINITY,
                Some(turns) => {
                    let error = self.error(front, place, &stages.z);
                    if turns >= SLOW && error <= 1.0 {
                        error.max(0.9_f64.powf(self.order()))
                    } else {
                        error
                    }
                }
            })
            .collect();
        *attempt = Attempt {
            states,
            error,
            rates: None,
            longest: None,
        };
    }

    fn pull(
        &mut self,
        system: &mut dyn Differentiable,
        front: &Front,
        adjoint: &mut [f64],
        parameters: &mut [f64],
    ) {
        let (n, s, lanes) = (self.ode.states, self.method.stages, front.lanes);
        let rows = adjoint.len() / lanes;
        self.prepare(system, front);
        let stages = self.newton(system, front);
        let mut going: Vec<bool> = (0..lanes).map(|place| live(front, place)).collect();
        for place in (0..lanes).filter(|place| live(front, *place)) {
            if stages.iterations[place].is_none() {
                (0..rows).for_each(|row| adjoint[row * lanes + place] = f64::NAN);
                going[place] = false;
            }
        }
        let mut nu = vec![vec![0.0; adjoint.len()]; s];
        let mut pulled = nu.clone();
        let mut before = vec![f64::INFINITY; lanes];
        for turn in 0..=REFINEMENTS {
            if !going.contains(&true) {
                break;
            }
            let mut all = vec![0.0; parameters.len()];
            let mut here = vec![0.0; parameters.len()];
            for i in (0..s).filter(|_| turn > 0) {
                let (clock, states) = self.stage(front, &stages.z[i], i);
                let point = Point {
                    clock: &clock,
                    states: &states,
                    parameters: &front.parameters,
                    lanes,
                };
                system.pull(point, &nu[i], &mut pulled[i], &mut here);
                all.iter_mut().zip(&here).for_each(|(a, h)| *a += h);
            }
            for place in 0..lanes {
                if !going[place] {
                    continue;
                }
                let done = self.refine(front, place, adjoint, &pulled, &mut nu, &mut before[place]);
                let stuck = done.is_none() || (done == Some(false) && turn == REFINEMENTS);
                if stuck {
                    (0..rows).for_each(|row| adjoint[row * lanes + place] = f64::NAN);
                } else if done == Some(true) {
                    for row in 0..rows {
                        let at = row * lanes + place;
                        adjoint[at] += pulled.iter().map(|pulled| pulled[at]).sum::<f64>();
                    }
                    for row in 0..parameters.len() / lanes {
                        parameters[row * lanes + place] = all[row * lanes + place];
                    }
                }
                going[place] = !stuck && done == Some(false);
            }
        }
        debug_assert_eq!(rows % n, 0);
    }
}
