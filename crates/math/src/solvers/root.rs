//! Systems of equations `f(y, p) = 0`, which are solved separately for each lane. The equations are evaluated for all
//! lanes at once.
//!
//! The solver takes Powell's dogleg steps on ‖f‖² within a trust region (Nocedal and Wright, *Numerical Optimization*,
//! sections 4.1 and 11.2). Near a regular root, these are Newton steps. If the equations are the stationarity
//! conditions of a known objective, the solver instead halves Newton steps until the objective increases. The
//! derivatives of the root follow from the implicit function theorem, so they do not depend on the iteration.

use super::{Differentiable, Point, System};
use crate::elimination::Elimination;

/// If ‖f‖² after a Newton step is more than this fraction of ‖f‖² before the step, rounding is assumed to limit the
/// step. Near a root of any order, the fraction is smaller.
const SHARPER: f64 = 0.25;

const SHORTEST: f64 = 1e-6;
/// The relative amount by which rounding errors may reduce the objective.
const FLAT: f64 = 1e-12;
const IDLE: u32 = 4;

/// A system of equations.
#[derive(Clone, Debug, PartialEq)]
pub struct Root {
    /// The number of unknowns, which is also the number of equations.
    pub unknowns: usize,
    /// The number of parameters.
    pub parameters: usize,
    /// The largest error of an equation at a root. If the system has an objective, its equations may have any scale, so
    /// the tolerance does not apply to the equations. Instead, it limits the length of the last step, relative to one
    /// plus the length of the vector of unknowns.
    pub tolerance: f64,
    /// The largest number of steps.
    pub max_steps: u64,
}

struct Search {
    y: Vec<f64>,
    f: Vec<f64>,
    /// The last value of the objective, and the share of the Newton step to take. It is `None` when the steps no longer
    /// use the objective.
    objective: Option<f64>,
    part: f64,
    radius: f64,
    step: Vec<f64>,
    whole: bool,
    /// The value of ‖f‖² that the linear model predicts after the step.
    expected: f64,
    going: bool,
    settled: bool,
    failures: u32,
}

impl Root {
    /// Returns the number of values in one copy of the arguments: the starting point of the search, followed by the
    /// parameters.
    pub fn arguments(&self) -> usize {
        self.unknowns + self.parameters
    }

    /// Computes the roots for the first copy of the arguments, and writes them to the `unknowns` rows of `out`. If the
    /// search finds no root for a lane, the results of the lane are NaN.
    pub fn solve(&self, system: &mut dyn System, x: &[f64], lanes: usize, out: &mut [f64]) {
        let n = self.unknowns;
        let parameters = &x[n * lanes..self.arguments() * lanes];
        let mut states = x[..n * lanes].to_vec();
        let mut values = vec![0.0; n * lanes];
        let mut jacobian = vec![0.0; n * n * lanes];
        let mut objectives = vec![0.0; lanes];
        rate(system, &states, parameters, lanes, &mut values);
        let followed = objective(system, &states, parameters, lanes, &mut objectives);
        let column = |rows: &[f64], lane: usize| -> Vec<f64> {
            rows.iter().skip(lane).step_by(lanes).copied().collect()
        };
        let mut searches: Vec<Search> = (0..lanes)
            .map(|lane| {
                let (y, f) = (column(&states, lane), column(&values, lane));
                let size = norm(&y).max(1.0);
                Search {
                    going: f.iter().all(|f| f.is_finite()),
                    settled: false,
                    radius: 10.0 * size,
                    step: vec![0.0; n],
                    objective: (followed && objectives[lane].is_finite())
                        .then_some(objectives[lane]),
                    part: 1.0,
                    whole: false,
                    expected: 0.0,
                    failures: 0,
                    y,
                    f,
                }
            })
            .collect();
        let mut factors = Elimination::default();
        let mut newton = values.clone();
        for _ in 0..self.max_steps.max(1) {
            if !searches.iter().any(|search| search.going) {
                break;
            }
            let point = Point {
                clock: &[],
                states: &states,
                parameters,
                lanes,
            };
            system.jacobian(point, n, &mut jacobian);
            factors.factor(system.simd(), n, &jacobian, lanes);
            newton.fill(0.0);
            for (lane, search) in searches.iter().enumerate().filter(|(_, s)| s.going) {
                for (row, f) in search.f.iter().enumerate() {
                    newton[row * lanes + lane] = -f;
                }
            }
            factors.solve(system.simd(), &mut newton, lanes, false);
            for (lane, search) in searches.iter_mut().enumerate().filter(|(_, s)| s.going) {
                search.propose(column(&newton, lane), || column(&jacobian, lane));
                for (row, (y, step)) in search.y.iter().zip(&search.step).enumerate() {
                    states[row * lanes + lane] = y + step;
                }
            }
            rate(system, &states, parameters, lanes, &mut values);
            if followed {
                objective(system, &states, parameters, lanes, &mut objectives);
            }
            for (lane, search) in searches.iter_mut().enumerate().filter(|(_, s)| s.going) {
                search.judge(column(&values, lane), objectives[lane], self.tolerance);
                for (row, y) in search.y.iter().enumerate() {
                    states[row * lanes + lane] = *y;
                }
            }
        }
        for (lane, search) in searches.iter().enumerate() {
            let found = search.settled || search.f.iter().all(|f| f.abs() <= self.tolerance);
            for (row, y) in search.y.iter().enumerate() {
                out[row * lanes + lane] = if found { *y } else { f64::NAN };
            }
        }
    }

    /// Computes the derivatives of the roots `y` along a direction, and writes them to the `unknowns` rows of the
    /// result. The second copy of the arguments contains the direction. The system has two copies, and the rates of the
    /// second copy are the derivatives of the rates of the first copy.
    pub fn tangent(
        &self,
        system: &mut dyn System,
        y: &[f64],
        x: &[f64],
        lanes: usize,
        out: &mut [f64],
    ) {
        let n = self.unknowns;
        let mut states = y.to_vec();
        states.resize(2 * n * lanes, 0.0);
        let parameters = self.both(x, lanes);
        let mut rates = vec![0.0; 2 * n * lanes];
        rate(system, &states, &parameters, lanes, &mut rates);
        let factors = self.factors(system, &states, &parameters, lanes);
        for (out, moved) in out.iter_mut().zip(&rates[n * lanes..]) {
            *out = -moved;
        }
        factors.solve(system.simd(), out, lanes, false);
    }

    /// Multiplies `weights` by the derivatives of the roots `y` with respect to the first copy of the arguments.
    /// `weights` has `copies · unknowns` rows. If there are two copies, `y` contains the roots followed by their
    /// tangents.
    pub fn pull(
        &self,
        system: &mut dyn Differentiable,
        (y, x, copies): (&[f64], &[f64], usize),
        lanes: usize,
        weights: &[f64],
        out: &mut [f64],
    ) {
        let n = self.unknowns;
        let parameters = if copies == 2 {
            self.both(x, lanes)
        } else {
            x[n * lanes..self.arguments() * lanes].to_vec()
        };
        let factors = self.factors(system, y, &parameters, lanes);
        // This is f̄ with Jᵀ f̄ = −weights. The matrix is block triangular over the copies, so each iteration solves
        // for one copy.
        let mut bar = vec![0.0; copies * n * lanes];
        let mut pulled = bar.clone();
        let mut by_parameter = vec![0.0; parameters.len()];
        let point = Point {
            clock: &[],
            states: y,
            parameters: &parameters,
            lanes,
        };
        for _ in 0..copies + 1 {
            system.pull(point, &bar, &mut pulled, &mut by_parameter);
            for (pulled, weight) in pulled.iter_mut().zip(weights) {
                *pulled += weight;
            }
            factors.solve(system.simd(), &mut pulled, lanes, true);
            bar.iter_mut().zip(&pulled).for_each(|(bar, x)| *bar -= x);
        }
        system.pull(point, &bar, &mut pulled, &mut by_parameter);
        out.fill(0.0);
        for row in 0..self.parameters {
            let from = &by_parameter[row * lanes..(row + 1) * lanes];
            out[(n + row) * lanes..(n + row + 1) * lanes].copy_from_slice(from);
        }
    }

    fn both(&self, x: &[f64], lanes: usize) -> Vec<f64> {
        let (n, all) = (self.unknowns, self.arguments());
        [
            &x[n * lanes..all * lanes],
            &x[(all + n) * lanes..2 * all * lanes],
        ]
        .concat()
    }

    fn factors(
        &self,
        system: &mut dyn System,
        states: &[f64],
        parameters: &[f64],
        lanes: usize,
    ) -> Elimination {
        let n = self.unknowns;
        let mut jacobian = vec![0.0; n * n * lanes];
        let point = Point {
            clock: &[],
            states,
            parameters,
            lanes,
        };
        system.jacobian(point, n, &mut jacobian);
        let mut factors = Elimination::default();
        factors.factor(system.simd(), n, &jacobian, lanes);
        factors
    }
}

fn rate(
    system: &mut dyn System,
    states: &[f64],
    parameters: &[f64],
    lanes: usize,
    out: &mut [f64],
) {
    let point = Point {
        clock: &[],
        states,
        parameters,
        lanes,
    };
    system.rate(point, out);
}

fn objective(
    system: &mut dyn System,
    states: &[f64],
    parameters: &[f64],
    lanes: usize,
    out: &mut [f64],
) -> bool {
    let point = Point {
        clock: &[],
        states,
        parameters,
        lanes,
    };
    system.objective(point, out)
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

impl Search {
    /// Proposes a fraction of the Newton step if there is an objective, and otherwise the dogleg step within the
    /// radius. The dogleg step needs the Jacobian, which is column-major.
    fn propose(&mut self, newton: Vec<f64>, jacobian: impl FnOnce() -> Vec<f64>) {
        if self.objective.is_some() && newton.iter().all(|x| x.is_finite()) {
            self.whole = self.part == 1.0;
            self.step = newton.iter().map(|x| self.part * x).collect();
            return;
        }
        self.objective = None;
        self.whole = norm(&newton) <= self.radius;
        if self.whole {
            self.step = newton;
            self.expected = 0.0;
            return;
        }
        let (n, jacobian) = (self.y.len(), jacobian());
        let times = |x: &[f64]| -> Vec<f64> {
            (0..n)
                .map(|i| (0..n).map(|j| jacobian[j * n + i] * x[j]).sum())
                .collect()
        };
        let slope: Vec<f64> = (0..n)
            .map(|j| -(0..n).map(|i| jacobian[j * n + i] * self.f[i]).sum::<f64>())
            .collect();
        let usable = newton.iter().all(|x| x.is_finite());
        let steep = norm(&slope);
        let curved = norm(&times(&slope));
        let along = if curved > 0.0 {
            steep * steep / (curved * curved)
        } else {
            0.0
        };
        let cauchy: Vec<f64> = slope.iter().map(|s| along * s).collect();
        let reach = norm(&cauchy);
        self.step = if reach >= self.radius || !usable {
            let scale = if reach > 0.0 {
                (self.radius / reach).min(1.0)
            } else {
                0.0
            };
            cauchy.iter().map(|c| scale * c).collect()
        } else {
            // The step goes from the Cauchy point towards the Newton step, up to the edge of the trust region.
            let way: Vec<f64> = newton.iter().zip(&cauchy).map(|(n, c)| n - c).collect();
            let (a, b) = (
                norm(&way).powi(2),
                cauchy.iter().zip(&way).map(|(c, w)| c * w).sum::<f64>(),
            );
            let c = reach * reach - self.radius * self.radius;
            let part = ((b * b - a * c).sqrt() - b) / a;
            cauchy.iter().zip(&way).map(|(c, w)| c + part * w).collect()
        };
        let model = times(&self.step);
        self.expected = self
            .f
            .iter()
            .zip(&model)
            .map(|(f, m)| (f + m).powi(2))
            .sum();
    }

    fn judge(&mut self, f: Vec<f64>, objective: f64, tolerance: f64) {
        if let Some(so_far) = self.objective {
            self.follow(f, (so_far, objective), tolerance);
            return;
        }
        let within = self.f.iter().all(|f| f.abs() <= tolerance);
        let before: f64 = self.f.iter().map(|f| f * f).sum();
        let after: f64 = f.iter().map(|f| f * f).sum();
        let length = norm(&self.step);
        let gain = (before - after) / (before - self.expected);
        let better = after < before;
        if better {
            self.y.iter_mut().zip(&self.step).for_each(|(y, s)| *y += s);
            self.f = f;
        }
        if gain > 0.75 {
            self.radius = self.radius.max(2.0 * length);
        } else if gain.is_nan() || gain <= 0.25 {
            self.radius = 0.25 * length.min(self.radius);
        }
        let tiny = length <= 4.0 * f64::EPSILON * norm(&self.y);
        self.failures = if better { 0 } else { self.failures + 1 };
        // If steps no longer reduce ‖f‖², it consists of rounding errors.
        let sharper = after <= SHARPER * before;
        let rounded = within && self.whole && !sharper;
        self.going = after != 0.0 && !tiny && !rounded && self.failures < 40 && length > 0.0;
    }

    /// Accepts a fraction of the Newton step if it increases the objective, and otherwise halves the fraction. Near the
    /// maximum, full steps do not need the objective, because each step squares the error until only rounding errors
    /// remain.
    fn follow(&mut self, f: Vec<f64>, (before, after): (f64, f64), tolerance: f64) {
        let (length, size) = (norm(&self.step), 1.0 + norm(&self.y));
        let near = self.whole && length <= tolerance.sqrt() * size;
        let flat = FLAT * before.abs();
        if f.iter().all(|f| f.is_finite()) && (near || after >= before - flat) {
            self.y.iter_mut().zip(&self.step).for_each(|(y, s)| *y += s);
            self.f = f;
            let grown = after > before + flat;
            self.failures = if grown { 0 } else { self.failures + 1 };
            self.objective = Some(if grown { after } else { before });
            self.settled = near && (length <= tolerance * size || self.failures >= IDLE);
            self.going = !self.settled;
            self.part = (2.0 * self.part).min(1.0);
        } else {
            self.part *= 0.5;
            if self.part < SHORTEST {
                self.objective = None;
            }
        }
    }
}
