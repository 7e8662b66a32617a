//! Radau IIA steps for many lanes at once.
//!
//! Simplified Newton iterations find the stages `Zᵢ = h Σ aᵢⱼ f(y + Zⱼ)` of a step. They use the Jacobian at the start
//! of the step. The eigenvalues of A⁻¹ split the linear system into systems whose size is the number of states, as in
//! RADAU5 (Hairer and Wanner, IV.8). The iterations start from the extrapolated polynomial of the previous step (IV.8,
//! "starting values").
//!
//! The order of the error estimate is the number of stages plus one. The order of the step itself is nearly twice the
//! number of stages. As in the code RADAU, the solver therefore does not compare the estimate with the tolerance
//! itself. It divides the tolerance by ten and raises the result to the power of the ratio of the two orders. For a
//! tolerance of 1e-8 and five stages, this limit is 1.6e-6.
//!
//! The tangents and the adjoints of the stages solve a linear system with the *exact* Jacobians of the stages. These
//! Jacobians are evaluated once. An iteration that is preconditioned by the factors of the step solves this system up
//! to rounding errors. The matrix is block triangular over the copies, so the copies are solved one after another.
//! Products with the derivatives of the rates are therefore needed only once per copy. The backward pass uses the
//! stages of the forward pass.
//!
//! The same stages also solve equations `F(t, y, y′) = 0`. The module `implicit` describes the differences.
//!
//! All computations process rows of lanes. An iteration continues until all lanes have converged, and it does not
//! change lanes that have already converged.

use super::collocation::Collocation;
use super::explicit::{add_where, worst};
use super::factors::Factors;
use super::ode::{Attempt, Front, Method, Ode, Scheme};
use super::{Differentiable, Point, System};
use crate::simd::Simd;
use crate::simd_fn;

const ITERATIONS: usize = 14;

/// The largest number of iterations for tangents and adjoints. They converge at the same rate as Newton's method, but
/// continue until only rounding errors remain.
const REFINEMENTS: usize = 60;

/// If a step takes at least this many Newton iterations, the next step may not be longer.
const SLOW: usize = 8;

/// The remaining error of Newton's method may be at most this share of the tolerance.
const SETTLED: f64 = 1e-3;

pub(super) struct Radau<'a> {
    pub(super) method: &'static Collocation,
    pub(super) ode: &'a Ode,
    /// Whether the rates of the system are residuals of the states and their derivatives.
    pub(super) implicit: bool,
    pub(super) simd: Simd,
    /// The factors of `λ/h − J` for each eigenvalue λ.
    factors: Vec<Factors>,
    /// 1/h of each slot, or 0 for a slot without a step.
    pub(super) per: Vec<f64>,
    pub(super) jacobian: Vec<f64>,
    pub(super) at_stages: Vec<f64>,
    rates: Vec<f64>,
    pub(super) clock: Vec<f64>,
    pub(super) states: Vec<f64>,
    pub(super) change: Vec<f64>,
    re: Vec<f64>,
    im: Vec<f64>,
    scratch: Vec<f64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Progress {
    Going(f64),
    Done,
    Failed,
}

simd_fn! {
    pub(super) fn add_scaled, add_scaled_fn = <V>(out: &mut [f64], factor: f64, row: &[f64]) {
        for (out, row) in out.iter_mut().zip(row) {
            *out += factor * row;
        }
    }

    /// Computes `out += re · first − im · second`.
    fn add_real, add_real_fn = <V>(out: &mut [f64], factor: [f64; 2], parts: [&[f64]; 2]) {
        for (out, (re, im)) in out.iter_mut().zip(parts[0].iter().zip(parts[1])) {
            *out += factor[0] * re - factor[1] * im;
        }
    }

    /// Computes `out = base − per · out` for rows of lanes.
    fn finish, finish_fn = <V>(out: &mut [f64], base: &[f64], per: &[f64]) {
        let lanes = per.len();
        for (out, base) in out.chunks_exact_mut(lanes).zip(base.chunks_exact(lanes)) {
            for ((out, base), per) in out.iter_mut().zip(base).zip(per) {
                *out = base - per * *out;
            }
        }
    }

    /// Computes `out += a · x` with a column-major matrix `a` in each lane, or with its transpose.
    pub(super) fn multiply, multiply_fn = <V>(out: &mut [f64], a: &[f64], x: &[f64], lanes: usize, transposed: bool) {
        let n = x.len() / lanes;
        for j in 0..n {
            for i in 0..n {
                let (to, from) = if transposed { (j, i) } else { (i, j) };
                let out = out[to * lanes..(to + 1) * lanes].iter_mut();
                let entry = &a[(j * n + i) * lanes..(j * n + i + 1) * lanes];
                let x = &x[from * lanes..(from + 1) * lanes];
                for ((out, a), x) in out.zip(entry).zip(x) {
                    *out += a * x;
                }
            }
        }
    }

    /// Updates the largest absolute value so far in each lane from a set of rows. A NaN is preserved.
    fn peak, peak_fn = <V>(most: &mut [f64], rows: &[f64]) {
        let lanes = most.len();
        for row in rows.chunks_exact(lanes) {
            for (most, x) in most.iter_mut().zip(row) {
                let size = x.abs();
                *most = if size > *most || size.is_nan() { size } else { *most };
            }
        }
    }

    /// Evaluates a polynomial without a constant term at `1 + node · ratio`, and subtracts its value at 1. The rows are
    /// the coefficients, starting with the first power.
    fn continued, continued_fn = <V>(out: &mut [f64], coefficients: &[f64], node: f64, ratio: &[f64]) {
        let lanes = ratio.len();
        out.fill(0.0);
        for power in coefficients.chunks_exact(lanes).rev() {
            for ((out, c), ratio) in out.iter_mut().zip(power).zip(ratio) {
                *out = (*out + c) * (1.0 + node * ratio);
            }
        }
        for power in coefficients.chunks_exact(lanes) {
            out.iter_mut().zip(power).for_each(|(out, c)| *out -= c);
        }
    }
}

fn live(front: &Front, slot: usize) -> bool {
    front.who[slot].is_some() && front.trial[slot] > 0.0
}

fn going(progress: &[Progress], active: &mut Vec<f64>) -> bool {
    active.clear();
    let is_going = |p: &Progress| f64::from(u8::from(matches!(p, Progress::Going(_))));
    active.extend(progress.iter().map(is_going));
    active.contains(&1.0)
}

impl<'a> Radau<'a> {
    pub fn new(ode: &'a Ode) -> Self {
        let stages = if ode.relative < 1e-7 { 5 } else { 3 };
        Self {
            method: Collocation::with(stages),
            ode,
            implicit: ode.method == Method::Implicit,
            simd: Simd::Scalar,
            factors: Vec::new(),
            per: Vec::new(),
            jacobian: Vec::new(),
            at_stages: Vec::new(),
            rates: Vec::new(),
            clock: Vec::new(),
            states: Vec::new(),
            change: Vec::new(),
            re: Vec::new(),
            im: Vec::new(),
            scratch: Vec::new(),
        }
    }

    fn allowed(&self) -> f64 {
        let stages = self.method.stages as f64;
        let relative = self.ode.relative;
        (0.1 * relative.powf((stages + 1.0) / (2.0 * stages) - 1.0)).max(1.0)
    }

    fn prepare(&mut self, system: &mut dyn System, front: &Front) {
        let (n, lanes) = (self.ode.states, front.lanes);
        self.simd = system.simd();
        self.per.clear();
        self.per.extend((0..lanes).map(|slot| {
            if live(front, slot) {
                front.trial[slot].recip()
            } else {
                0.0
            }
        }));
        let values = &self.method.eigenvalues;
        self.factors.resize(values.len(), Factors::default());
        if self.implicit {
            self.linearize_start(system, front);
            let parts: [&[f64]; 2] = self.jacobian.split_at(n * n * lanes).into();
            for (factors, value) in self.factors.iter_mut().zip(values) {
                factors.pencil(system, *value, &self.per, parts);
            }
            return;
        }
        self.jacobian.resize(n * n * lanes, 0.0);
        let point = Point {
            clock: &front.clock,
            states: &front.states,
            parameters: &front.parameters,
            lanes,
        };
        system.jacobian(point, n, &mut self.jacobian);
        for (factors, value) in self.factors.iter_mut().zip(values) {
            factors.shifted(system, *value, &self.per, &self.jacobian);
        }
    }

    /// Solves a linear system with the matrix of Newton's method or its transpose. `change` contains the right-hand
    /// side and receives the solution.
    fn precondition(&mut self, transposed: bool) {
        let (method, simd) = (self.method, self.simd);
        let size = self.change.len() / method.stages;
        self.scratch.clear();
        self.scratch.resize(self.change.len(), 0.0);
        for (k, factors) in self.factors.iter().enumerate() {
            let (into, from) = if transposed {
                (&method.vectors[k], &method.duals[k])
            } else {
                (&method.duals[k], &method.vectors[k])
            };
            for part in [&mut self.re, &mut self.im] {
                part.clear();
                part.resize(size, 0.0);
            }
            for (into, x) in into.iter().zip(self.change.chunks_exact(size)) {
                add_scaled(simd, &mut self.re, into.re, x);
                add_scaled(simd, &mut self.im, into.im, x);
            }
            factors.solve(simd, &mut self.re, &mut self.im, transposed);
            for (from, out) in from.iter().zip(self.scratch.chunks_exact_mut(size)) {
                let factor = [from.re, from.im].map(|x| x * Collocation::multiplicity(k));
                add_real(simd, out, factor, [&self.re, &self.im]);
            }
        }
        std::mem::swap(&mut self.change, &mut self.scratch);
    }

    /// Moves the clock and the states to stage `i`. Only the first `copies` copies of the states move.
    pub(super) fn stand(&mut self, front: &Front, z: &[f64], i: usize, copies: usize) {
        let node = self.method.nodes[i];
        self.clock.clear();
        let clocks = front.clock.iter().zip(&front.trial);
        self.clock
            .extend(clocks.map(|(clock, length)| clock + node * length));
        if self.implicit {
            return self.stand_with_derivatives(front, z, i, copies);
        }
        let size = front.states.len();
        self.states.clear();
        self.states.extend_from_slice(&front.states);
        let moved = copies * self.ode.states * front.lanes;
        let z = &z[i * size..i * size + moved];
        add_scaled(self.simd, &mut self.states[..moved], 1.0, z);
    }

    pub(super) fn point<'s>(&'s self, front: &'s Front) -> Point<'s> {
        Point {
            clock: &self.clock,
            states: &self.states,
            parameters: &front.parameters,
            lanes: front.lanes,
        }
    }

    fn evaluate(&mut self, system: &mut dyn System, front: &Front, z: &[f64], moved: usize) {
        let mut rates = std::mem::take(&mut self.rates);
        rates.resize(z.len(), 0.0);
        for (i, rates) in rates.chunks_exact_mut(front.states.len()).enumerate() {
            self.stand(front, z, i, moved);
            system.rate(self.point(front), rates);
        }
        self.rates = rates;
    }

    fn linearize(&mut self, system: &mut dyn System, front: &Front, z: &[f64]) {
        let n = self.ode.states;
        let mut at_stages = std::mem::take(&mut self.at_stages);
        let columns = if self.implicit { 2 * n } else { n };
        let each = n * columns * front.lanes;
        at_stages.resize(self.method.stages * each, 0.0);
        for (i, out) in at_stages.chunks_exact_mut(each).enumerate() {
            self.stand(front, z, i, 1);
            system.jacobian(self.point(front), columns, out);
        }
        self.at_stages = at_stages;
    }

    /// Computes `change = base − A⁻¹ x / h`, or the same with the transpose of A⁻¹. `stride` is the number of rows per
    /// stage of `x`. The function uses only the stages of one copy, which are at the beginning of `x`.
    fn residual(&mut self, base: &[f64], x: &[f64], stride: usize, transposed: bool) {
        let (s, simd) = (self.method.stages, self.simd);
        let size = self.ode.states * self.per.len();
        self.change.clear();
        self.change.resize(s * size, 0.0);
        for (j, out) in self.change.chunks_exact_mut(size).enumerate() {
            for l in 0..s {
                let at = if transposed { l * s + j } else { j * s + l };
                let x = &x[l * stride..l * stride + size];
                add_scaled(simd, out, self.method.inverse[at], x);
            }
            let base = &base[j * stride..j * stride + size];
            finish(simd, out, base, &self.per);
        }
    }

    fn guess(&mut self, front: &Front, z: &mut [f64]) {
        let (s, lanes) = (self.method.stages, front.lanes);
        let size = front.states.len();
        let ratios = front.trial.iter().zip(&front.before);
        let ratio: Vec<f64> = ratios
            .map(|(trial, before)| {
                if *before > 0.0 && trial.is_finite() {
                    trial / before
                } else {
                    0.0
                }
            })
            .collect();
        self.scratch.resize(s * lanes, 0.0);
        for row in 0..self.ode.states {
            let at = |j: usize| j * size + row * lanes..j * size + (row + 1) * lanes;
            self.scratch.fill(0.0);
            for (k, power) in self.scratch.chunks_exact_mut(lanes).enumerate() {
                for i in 0..s {
                    let weight = self.method.monomials[k * s + i];
                    add_scaled(self.simd, power, weight, &front.stages[at(i)]);
                }
            }
            for (j, node) in self.method.nodes.iter().enumerate() {
                continued(self.simd, &mut z[at(j)], &self.scratch, *node, &ratio);
            }
        }
    }

    /// Computes the stages of the first copy. Returns the number of iterations for each slot, or `None` for a slot that
    /// did not converge.
    fn newton(
        &mut self,
        system: &mut dyn System,
        front: &Front,
        z: &mut [f64],
    ) -> Vec<Option<usize>> {
        let (n, lanes) = (self.ode.states, front.lanes);
        let size = front.states.len();
        let mut progress: Vec<Progress> = (0..lanes)
            .map(|slot| {
                if live(front, slot) {
                    Progress::Going(f64::INFINITY)
                } else {
                    Progress::Failed
                }
            })
            .collect();
        let mut iterations = vec![None; lanes];
        let (mut active, mut sizes) = (Vec::new(), Vec::new());
        self.guess(front, z);
        for iteration in 0..ITERATIONS {
            if !going(&progress, &mut active) {
                break;
            }
            self.evaluate(system, front, z, 1);
            let rates = std::mem::take(&mut self.rates);
            if self.implicit {
                self.correct(&rates, size);
            } else {
                self.residual(&rates, z, size, false);
            }
            self.rates = rates;
            self.precondition(false);
            sizes.clear();
            sizes.resize(lanes, 0.0);
            for (k, change) in self.change.chunks_exact(n * lanes).enumerate() {
                for (i, change) in change.chunks_exact(lanes).enumerate() {
                    let y = &front.states[i * lanes..(i + 1) * lanes];
                    let units = [self.ode.absolute[i], self.ode.relative];
                    worst(self.simd, &mut sizes, change, [y, y], units);
                }
                let z = &mut z[k * size..k * size + n * lanes];
                add_where(self.simd, z, change, &active);
            }
            for (slot, progress) in progress.iter_mut().enumerate() {
                if let Progress::Going(before) = *progress {
                    *progress = self.judge(iteration, sizes[slot], before);
                    if *progress == Progress::Done {
                        iterations[slot] = Some(iteration + 1);
                    }
                }
            }
        }
        iterations
    }

    fn judge(&self, iteration: usize, size: f64, before: f64) -> Progress {
        let rate = size / before;
        let enough = SETTLED.max(100.0 * f64::EPSILON / self.ode.relative.max(f64::EPSILON));
        let done = size <= 1e-3 * enough
            || (iteration > 0 && rate < 1.0 && size * rate / (1.0 - rate) <= enough);
        let diverging =
            !size.is_finite() || (iteration > 1 && rate > 0.9) || iteration + 1 >= ITERATIONS;
        if done {
            Progress::Done
        } else if diverging {
            Progress::Failed
        } else {
            Progress::Going(size)
        }
    }

    /// Solves `A⁻¹ x / h − J x = base` for one copy, or the transposed system, with the Jacobians J of the stages. The
    /// solution `x` is NaN in slots that have failed. `stride` is the number of rows per stage of `base` and `x`.
    fn solve(&mut self, base: &[f64], x: &mut [f64], stride: usize, transposed: bool) {
        let lanes = self.per.len();
        let (n, s, simd) = (self.ode.states, self.method.stages, self.simd);
        let size = n * lanes;
        let mut progress: Vec<Progress> = self
            .per
            .iter()
            .map(|per| {
                if *per > 0.0 {
                    Progress::Going(f64::INFINITY)
                } else {
                    Progress::Failed
                }
            })
            .collect();
        let (mut active, mut moved, mut extent) = (Vec::new(), Vec::new(), Vec::new());
        for iteration in 0..=REFINEMENTS {
            if !going(&progress, &mut active) {
                return;
            }
            if self.implicit {
                self.residual_of_both(base, x, stride, transposed);
            } else {
                self.residual(base, x, stride, transposed);
                for (j, out) in self.change.chunks_exact_mut(size).enumerate() {
                    let a = &self.at_stages[j * n * size..(j + 1) * n * size];
                    let x = &x[j * stride..j * stride + size];
                    multiply(simd, out, a, x, lanes, transposed);
                }
            }
            self.precondition(transposed);
            for sizes in [&mut moved, &mut extent] {
                sizes.clear();
                sizes.resize(lanes, 0.0);
            }
            peak(simd, &mut moved, &self.change);
            for j in 0..s {
                let x = &mut x[j * stride..j * stride + size];
                peak(simd, &mut extent, x);
                add_where(simd, x, &self.change[j * size..(j + 1) * size], &active);
            }
            for slot in 0..lanes {
                let Progress::Going(before) = progress[slot] else {
                    continue;
                };
                let change = if moved[slot] > 0.0 {
                    moved[slot] / extent[slot]
                } else {
                    moved[slot]
                };
                progress[slot] = if change <= 1e-13 || (change <= 1e-9 && change >= 0.5 * before) {
                    Progress::Done
                } else if change.is_nan() || iteration == REFINEMENTS {
                    for row in (0..s).flat_map(|j| (0..n).map(move |i| j * stride + i * lanes)) {
                        x[row + slot] = f64::NAN;
                    }
                    Progress::Failed
                } else {
                    Progress::Going(change)
                };
            }
        }
    }

    fn error(&mut self, front: &Front, attempt: &mut Attempt) {
        let (n, lanes, simd) = (self.ode.states, front.lanes, self.simd);
        let size = n * lanes;
        let stride = front.states.len();
        self.re.clear();
        self.re.resize(size, 0.0);
        self.im.clear();
        self.im.resize(size, 0.0);
        let shift = -self.method.eigenvalues[0].re;
        for (weight, z) in self.method.error.iter().zip(attempt.stages.chunks(stride)) {
            add_scaled(simd, &mut self.re, shift * weight, &z[..size]);
        }
        finish(simd, &mut self.re, &front.rates[..size], &self.per);
        if self.implicit {
            self.scratch.clear();
            self.scratch.resize(size, 0.0);
            let mass = &self.jacobian[n * size..];
            multiply(simd, &mut self.scratch, mass, &self.re, lanes, false);
            self.re.copy_from_slice(&self.scratch);
        }
        self.factors[0].solve(simd, &mut self.re, &mut self.im, false);
        attempt.error.clear();
        attempt.error.resize(lanes, 0.0);
        let allowed = self.allowed();
        for i in 0..n {
            let row = i * lanes..(i + 1) * lanes;
            let sizes = [&attempt.states[row.clone()], &front.states[row.clone()]];
            let units = [self.ode.absolute[i], self.ode.relative].map(|unit| allowed * unit);
            worst(simd, &mut attempt.error, &self.re[row], sizes, units);
        }
    }

    /// Multiplies the weights of the stages by the derivatives of the rates. For derivatives with respect to the
    /// states, the function keeps a separate result for each stage. For derivatives with respect to the parameters, it
    /// adds the results of all stages.
    fn products(
        &mut self,
        system: &mut dyn Differentiable,
        front: &Front,
        weights: &[f64],
        pulled: &mut [f64],
        mut parameters: Option<&mut [f64]>,
    ) {
        if self.implicit {
            return self.products_of_both(system, front, weights, pulled, parameters);
        }
        let size = front.states.len();
        let copies = size / (self.ode.states * front.lanes);
        let mut here = vec![0.0; front.parameters.len()];
        for i in 0..self.method.stages {
            self.stand(front, &front.stages, i, copies);
            let stage = i * size..(i + 1) * size;
            let into = &mut pulled[stage.clone()];
            system.pull(self.point(front), &weights[stage], into, &mut here);
            if let Some(parameters) = parameters.as_deref_mut() {
                add_where(self.simd, parameters, &here, &front.trial);
            }
        }
    }
}

impl Scheme for Radau<'_> {
    fn order(&self) -> f64 {
        self.method.stages as f64 + 1.0
    }

    fn stages(&self) -> usize {
        self.method.stages
    }

    fn attempt(&mut self, system: &mut dyn System, front: &Front, attempt: &mut Attempt) {
        let size = front.states.len();
        let own = self.ode.states * front.lanes;
        self.prepare(system, front);
        let mut z = std::mem::take(&mut attempt.stages);
        z.clear();
        z.resize(self.method.stages * size, 0.0);
        let iterations = self.newton(system, front, &mut z);
        if size > own {
            self.linearize(system, front, &z);
            self.evaluate(system, front, &z, 1);
            let mut rates = std::mem::take(&mut self.rates);
            if self.implicit {
                rates.iter_mut().for_each(|rate| *rate = -*rate);
            }
            for copy in (own..size).step_by(own) {
                self.solve(&rates[copy..], &mut z[copy..], size, false);
            }
            self.rates = rates;
        }
        attempt.states.clear();
        attempt.states.extend_from_slice(&front.states);
        let last = &z[(self.method.stages - 1) * size..];
        add_scaled(self.simd, &mut attempt.states, 1.0, last);
        attempt.rates = self.implicit.then(|| self.derivatives(front, &z));
        attempt.stages = z;
        attempt.longest = None;
        self.error(front, attempt);
        for (slot, error) in attempt.error.iter_mut().enumerate() {
            *error = match iterations[slot] {
                None => f64::INFINITY,
                Some(iterations) if iterations >= SLOW && *error <= 1.0 => {
                    error.max(0.9_f64.powf(self.order()))
                }
                Some(_) => *error,
            };
        }
    }

    fn pull(
        &mut self,
        system: &mut dyn Differentiable,
        front: &Front,
        adjoint: &mut [f64],
        parameters: &mut [f64],
    ) {
        let size = front.states.len();
        let own = self.ode.states * front.lanes;
        self.prepare(system, front);
        self.linearize(system, front, &front.stages);
        let all = self.method.stages * size;
        let (mut nu, mut pulled) = (vec![0.0; all], vec![0.0; all]);
        for copy in (0..size).step_by(own).rev() {
            if copy + own < size {
                // Adds the contribution of later copies to this copy.
                self.products(system, front, &nu, &mut pulled, None);
            }
            let last = all - size;
            pulled[last + copy..][..own]
                .iter_mut()
                .zip(&adjoint[copy..copy + own])
                .for_each(|(base, seed)| *base += seed);
            self.solve(&pulled[copy..], &mut nu[copy..], size, true);
        }
        self.products(system, front, &nu, &mut pulled, Some(parameters));
        for pulled in pulled.chunks_exact(size) {
            add_where(self.simd, adjoint, pulled, &front.trial);
        }
    }
}
