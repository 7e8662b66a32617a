//! Gradients of the ELBO from minibatches, with control variates.

use std::sync::Arc;

use jensen_density::{Lanes, LanesMut, RecordDensity};
use jensen_math::rng;
use jensen_math::simd::{LANES, Simd};
use jensen_math::vmath;

use super::change::Change;
use super::estimator::RecordEstimator;
use super::expected::Expected;
use super::predictors::Predictors;
use super::snapshots::Snapshots;
use super::table::{Slots, Store, Table};
use crate::family::Family;
use crate::noise::NoiseSource;
use crate::reduce::axpy;

/// Estimates the gradient `∇_ω L` of the ELBO `L(ω) = E_q[log p(z) + Σₙ log p(xₙ | z)] + H(ω)` from a batch B and a few
/// draws `z = T(ω, ε) = μ + δ` of a Gaussian family.
///
/// Let ℓₙ be the log likelihood of a record and `b = (N/|B|) Σ_{n ∈ B}`. The estimate is `Jᵀ [∇log p(z) + b ∇ℓₙ(z) +
/// c] + ∇H`, and `m` is added to the part of the gradient for the mean:
///
/// | estimator | c | m |
/// | --- | --- | --- |
/// | `naive`, `stl` | | |
/// | `cv` | | `−∇²log p(μ) δ − b ∇²ℓₙ(μ) δ` |
/// | `joint` | `G − b ∇ℓₙ(μⁿ)`, `G = Σₘ ∇ℓₘ(μᵐ)` | `−∇²log p(μ) δ − b ∇²ℓₙ(μⁿ) δ` |
/// | `joint-mean` | | `G − b ∇ℓₙ(μⁿ) − ∇²log p(μ) δ − b ∇²ℓₙ(μⁿ) δ` |
/// | `joint-svrg` | as `joint` with one μ̃ for every μⁿ | `−∇²log p(μ) δ − b [∇ℓₙ(μ̃ + δ) − ∇ℓₙ(μ̃ − δ)]/2` |
///
/// The estimator `inc` also adds `Σₘ J(ωᵐ)ᵀ ∇ℓₘ(T(ωᵐ, ε)) − b J(ωⁿ)ᵀ ∇ℓₙ(T(ωⁿ, ε))` to the gradient for all of ω. For
/// the mean, where J is the identity, these are Eqs. 5, 9 and 13 of Wang, Geffner and Domke (2024), stated for the ELBO
/// itself. (The paper minimises the negated ELBO, and its appendix F drops the sign of k.) The implementation differs
/// from the paper in four ways. The differences preserve every expectation and reduce the variance:
///
/// * The prior needs no table. All of the prior is available in every iteration, so its expansion is at the current
///   mean.
/// * The expansion of a record uses the current δ instead of the spread that was stored with μⁿ: `E_ε[∇ℓₙ(μⁿ) +
///   ∇²ℓₙ(μⁿ) δ] = ∇ℓₙ(μⁿ)` holds for any δ of mean zero. The table therefore stores no spread, and the expansion is
///   closer to the function that it replaces. Any family of the form `z = μ + δ(ε)` is supported, including the
///   full-rank and low-rank families.
/// * The paper controls only the gradient of the mean, because the expectation of the expansion for the spread requires
///   the diagonal of the Hessian. The first-order part c has mean zero over the records at any draw. It can therefore
///   also correct the gradient of the spread. The second-order part can be applied to the spread if the diagonal is
///   available, that is, for one linear predictor and a mean-field family: `diag ∇²ℓₙ(μⁿ) = Aₙ² ℓₙ''`. In this case,
///   `joint` and `joint-svrg` add `σ² ⊙ Σₘ diag ∇²ℓₘ(μᵐ) − δ ⊙ b ∇²ℓₙ(μⁿ) δ` to the gradient for log σ. Otherwise,
///   noise of second order in δ remains for every batch size. As in the paper, the estimator `joint-mean` does not
///   correct the gradient of the spread.
///
/// * Instead of the Hessian-vector product of the paper, `joint-svrg` uses the odd part of the gradient around its
///   anchor. The first-order term of the odd part is that product. The odd part has mean zero over any symmetric noise,
///   however far the draw is from the anchor. With one draw and the anchor at the mean, the even part of the gradient
///   remains. The even part never varies more than the gradient itself, whereas the remainder of an expansion can vary
///   more. For a linear predictor, the estimator uses the product, because its cost is negligible.
///
/// The estimator `joint-exact` is a variant of `joint` that uses the likelihood itself instead of an expansion. If the
/// likelihood has one linear predictor, ηₙ is normal under a mean-field q, with mean `Aₙμ` and variance `Aₙ²σ²`. The
/// expectations that the approximation needs are then integrals over one dimension: `∇_μ E[ℓₙ] = Aₙᵀ E[ℓₙ']` and
/// `∇_{log σ} E[ℓₙ] = σ² ⊙ Aₙ²ᵀ E[ℓₙ'']`. The terms that depend on the draw then cancel for the batch. What remains is
/// a SAGA table of the two expectations. For the prior, the estimator still uses the draw and an expansion.
///
/// The estimator `joint-paper` has none of these differences (see the module `literal`).
///
/// If there are several draws, m is computed from the mean of their displacements. The expansion of the prior applies
/// only to the gradient of the mean. In the gradient of the spread, the curvature of the prior causes noise that is not
/// corrected. For a standard normal prior, this noise is −σ²(ε² − 1) per coordinate. It is small, because it lacks the
/// factor N/B.
///
/// The cost of an iteration is measured in gradients of a batch. It is 1 gradient for `naive`, 1 gradient and a
/// Hessian-vector product for `cv`, 3 gradients and a product for `joint`, and N/B + 2 gradients for `inc`. The
/// estimator `joint-svrg` needs 4 gradients in one call. With a linear predictor, it needs one forward pass and two or
/// three backward passes.
pub struct Gradients<'a, D: RecordDensity> {
    pub(super) density: &'a D,
    pub(super) family: Arc<dyn Family>,
    pub(super) draws: usize,
    pub(crate) simd: Simd,
    pub(super) ws: D::Workspace,
    pub(super) z: Vec<f64>,
    /// The displacement `z − μ`, a `d × draws` matrix.
    pub(super) displacement: Vec<f64>,
    pub(super) shift: Vec<f64>,
    pub(super) gradient: Vec<f64>,
    pub(super) correction: Vec<f64>,
    pub(super) incremental: Vec<f64>,
    pub(super) change: Change,
    pub(super) scratch: Vec<f64>,
    pub(super) values: Vec<f64>,
    pub(super) predictors: Predictors,
    pub(super) snapshots: Snapshots,
    pub(super) expected: Expected,
    pub(super) calls: u64,
}

/// The input of [`Gradients::evaluate`].
#[derive(Clone, Copy, Debug)]
pub struct GradientRequest<'r> {
    /// The estimator of the gradient.
    pub estimator: RecordEstimator,
    /// The parameters ω of the family.
    pub omega: &'r [f64],
    /// The standard normal noise, a `noise_dim × draws` matrix.
    pub noise: Lanes<'r>,
    /// The indices of the records in the batch, without repetition.
    pub batch: &'r [u32],
    /// Whether [`Gradients::visit`] will renew the entries of the batch after the evaluation.
    pub visit: bool,
}

const NOISE: rng::Purpose = rng::Purpose::new("blackbox").fold("records").fold("noise");

/// Writes a `rows × draws` matrix of standard normal numbers for an iteration. Draw s depends only on the seed, the
/// iteration and s.
pub(crate) fn fill_noise(
    source: NoiseSource,
    purpose: rng::Purpose,
    iteration: u64,
    rows: usize,
    draws: usize,
    out: &mut Vec<f64>,
) {
    // The lanes of the generator are coordinates and not draws, so that even a single draw fills whole vectors.
    let half = rows.div_ceil(2);
    let fill = |s: usize, column: &mut [f64]| {
        let (simd, seed, first) = (source.simd(), source.seed(), (s * half) as u64);
        rng::fill_normals(simd, seed, purpose, iteration, first, 2, half, column);
    };
    if draws == 1 {
        out.resize(2 * half, 0.0);
        fill(0, out);
        out.truncate(rows);
        return;
    }
    out.resize(rows * draws, 0.0);
    let mut column = vec![0.0; 2 * half];
    for s in 0..draws {
        fill(s, &mut column);
        for (row, x) in column[..rows].iter().enumerate() {
            out[row * draws + s] = *x;
        }
    }
}

jensen_math::simd_fn! {
    /// Computes `displacement = exp(λ) ε`, `z = μ + displacement`.
    fn displace, displace_fn = <V>(mean: &[f64], log_sd: &[f64], noise: &[f64], displacement: &mut [f64], z: &mut [f64]) {
        let n = mean.len();
        assert!(log_sd.len() == n && noise.len() == n && displacement.len() == n && z.len() == n);
        let whole = n / LANES * LANES;
        for i in (0..whole).step_by(LANES) {
            // SAFETY: i + 8 ≤ n, and all five slices have length n.
            unsafe {
                let sd: V = vmath::exp(V::load(log_sd.as_ptr().add(i)));
                let d = sd * V::load(noise.as_ptr().add(i));
                d.store(displacement.as_mut_ptr().add(i));
                (V::load(mean.as_ptr().add(i)) + d).store(z.as_mut_ptr().add(i));
            }
        }
        let rest = n - whole;
        if rest > 0 {
            let mut tail = [0.0; LANES];
            tail[..rest].copy_from_slice(&log_sd[whole..]);
            let sd = vmath::exp(V::from_array(tail)).to_array();
            for k in 0..rest {
                let d = sd[k] * noise[whole + k];
                displacement[whole + k] = d;
                z[whole + k] = mean[whole + k] + d;
            }
        }
    }

    /// Computes `mean = g + c`, `log_sd = g · displacement + 1`.
    fn assemble, assemble_fn = <V>(g: &[f64], c: &[f64], displacement: &[f64], mean: &mut [f64], log_sd: &mut [f64]) {
        let _ = std::marker::PhantomData::<V>;
        for ((((g, c), d), mean), log_sd) in g.iter().zip(c).zip(displacement).zip(mean).zip(log_sd) {
            *mean = g + c;
            *log_sd = g * d + 1.0;
        }
    }

    /// Computes `out += exp(2λ) h`.
    fn add_variances_times, add_variances_times_fn = <V>(log_sd: &[f64], h: &[f64], out: &mut [f64]) {
        let rows = log_sd.chunks(LANES).zip(h.chunks(LANES)).zip(out.chunks_mut(LANES));
        for ((log_sd, h), out) in rows {
            let mut lanes = [0.0; LANES];
            lanes[..log_sd.len()].copy_from_slice(log_sd);
            let sd = vmath::exp(V::from_array(lanes));
            let variance = (sd * sd).to_array();
            for ((out, h), v) in out.iter_mut().zip(h).zip(variance) {
                *out += v * h;
            }
        }
    }
}

/// The function checks all elements without an early exit, because such loops compile to vector code.
pub(super) fn all_finite(x: &[f64]) -> bool {
    x.chunks(256)
        .all(|part| part.iter().fold(true, |fine, x| fine & x.is_finite()))
}

impl<'a, D: RecordDensity> Gradients<'a, D> {
    /// Creates an estimator of gradients for members of `family`, with `draws` draws per iteration and batches of up to
    /// `batch` records.
    pub fn new(density: &'a D, family: Arc<dyn Family>, draws: usize, batch: usize) -> Self {
        let d = density.dim();
        Self {
            density,
            draws,
            simd: Simd::detect(),
            ws: density.workspace(draws + 1, batch),
            z: vec![0.0; d * draws],
            displacement: vec![0.0; d * draws],
            shift: vec![0.0; d],
            gradient: vec![0.0; d * draws],
            correction: vec![0.0; d],
            incremental: Vec::new(),
            change: Change::new(d),
            scratch: Vec::new(),
            values: vec![0.0; draws],
            predictors: Predictors::default(),
            snapshots: Snapshots::default(),
            expected: Expected::default(),
            calls: 0,
            family,
        }
    }

    /// Uses the kernels of the given SIMD level instead of the fastest kernels of this machine.
    pub fn with_simd(self, simd: Simd) -> Self {
        Self { simd, ..self }
    }

    /// Returns the family of the gradients.
    pub fn family(&self) -> &Arc<dyn Family> {
        &self.family
    }

    /// Returns the number of draws per iteration.
    pub fn draws(&self) -> usize {
        self.draws
    }

    /// Returns the number of evaluations so far and resets it. The unit is a gradient of a single record at a single
    /// draw, and a Hessian-vector product counts as two.
    pub fn take_calls(&mut self) -> u64 {
        std::mem::take(&mut self.calls)
    }

    /// Returns the initial table of `estimator`.
    pub fn table(&self, estimator: RecordEstimator) -> Table {
        let (d, n) = (self.density.dim(), self.density.records());
        let linear = self.density.linear().map(|linear| linear.width());
        let store = match estimator {
            RecordEstimator::Naive | RecordEstimator::Stl | RecordEstimator::Cv => {
                return Table::nothing();
            }
            RecordEstimator::Inc | RecordEstimator::Ens { .. } | RecordEstimator::JointPaper => {
                Store::Slots(Slots::new(n, true))
            }
            RecordEstimator::Joint | RecordEstimator::JointMean => match linear {
                Some(width) => Store::Predictors(vec![0.0; n * width]),
                None => Store::Slots(Slots::new(n, false)),
            },
            RecordEstimator::JointSvrg => Store::Anchor {
                mean: Vec::new(),
                predictors: Vec::new(),
            },
            RecordEstimator::JointExact => Store::Expectations {
                first: vec![0.0; n],
                second: vec![0.0; n],
            },
        };
        let controlled = self.controls_spread(estimator);
        Table {
            store,
            sum: vec![0.0; d],
            diagonal: vec![0.0; if controlled { d } else { 0 }],
            complete: false,
        }
    }

    /// Returns whether the second-order part corrects the gradient of the spread. The correction requires the diagonal
    /// of the Hessian, and a family that needs only the diagonal.
    fn controls_spread(&self, estimator: RecordEstimator) -> bool {
        use RecordEstimator::{Joint, JointExact, JointSvrg};
        let linear = self.density.linear();
        matches!(estimator, Joint | JointSvrg | JointExact)
            && self.family.is_factorised()
            && linear.and_then(|linear| linear.expectations()).is_some()
    }

    /// Writes the noise for an iteration of a run, a `noise_dim × draws` matrix.
    pub fn noise(&self, seed: u64, iteration: u64, out: &mut Vec<f64>) {
        let rows = self.family.noise_dim();
        let source = NoiseSource::new(seed, self.simd);
        fill_noise(source, NOISE, iteration, rows, self.draws, out);
    }

    fn is_plain(&self) -> bool {
        self.draws == 1 && self.family.is_factorised()
    }

    /// Writes the estimate to `out`, one number per parameter, in the direction of ascent. Returns `false` if the
    /// density, a gradient or a product is not finite at some draw. The caller must then ignore `out` and leave the
    /// table unchanged. An estimator with an incomplete table acts as `naive`, except that `joint-exact` still
    /// integrates out the draw.
    pub fn evaluate(
        &mut self,
        request: &GradientRequest<'_>,
        table: &Table,
        out: &mut [f64],
    ) -> bool {
        if request.estimator == RecordEstimator::JointExact {
            return self.evaluate_expectations(request, table, out);
        }
        if request.estimator == RecordEstimator::JointPaper {
            return self.evaluate_paper(request, table, out);
        }
        let (d, draws) = (self.density.dim(), self.draws);
        let mut request = *request;
        if request.estimator.remembers() && !table.complete {
            request.estimator = RecordEstimator::Naive;
        }
        let request = &request;
        let (omega, noise) = (request.omega, request.noise);
        let mean = &omega[..d];
        self.draw(omega, noise);
        let z = Lanes::new(&self.z, d, draws);
        let grad = LanesMut::new(&mut self.gradient, d, draws);
        self.density
            .prior_value_grad(&mut self.ws, z, &mut self.values, grad);
        let expansion = request.estimator.prior_expansion();
        if expansion > 0.0 {
            self.density.prior_hvp(
                &mut self.ws,
                Lanes::new(mean, d, 1),
                Lanes::new(&self.shift, d, 1),
                LanesMut::new(&mut self.correction, d, 1),
            );
            let scale = -expansion;
            self.correction.iter_mut().for_each(|c| *c *= scale);
        } else {
            self.correction.fill(0.0);
        }
        self.incremental.clear();
        if self.density.linear().is_some() {
            self.add_predictors(request, table);
        } else {
            self.add_batch(request, table);
        }
        if request.estimator.incremental() > 0.0 {
            self.add_incremental(request, table);
        }
        if request.estimator == RecordEstimator::JointMean {
            axpy(1.0, &table.sum, &mut self.correction);
        } else if request.estimator.expands_stored() {
            for (row, sum) in self.gradient.chunks_exact_mut(draws).zip(&table.sum) {
                row.iter_mut().for_each(|g| *g += sum);
            }
        }
        self.pull(request, out);
        if request.estimator.remembers() {
            self.add_diagonal(request.omega, table, out);
        }
        all_finite(out) && (!(request.visit && table.has_sums()) || self.change.is_finite(table))
    }

    pub(super) fn add_diagonal(&self, omega: &[f64], table: &Table, out: &mut [f64]) {
        let d = self.density.dim();
        if !table.diagonal.is_empty() {
            let (log_sd, out) = (&omega[d..2 * d], &mut out[d..2 * d]);
            add_variances_times(self.simd, log_sd, &table.diagonal, out);
        }
    }

    pub(super) fn draw(&mut self, omega: &[f64], noise: Lanes<'_>) {
        let (d, draws) = (self.density.dim(), self.draws);
        if self.is_plain() {
            let (mean, log_sd) = omega.split_at(d);
            displace(
                self.simd,
                mean,
                log_sd,
                noise.as_slice(),
                &mut self.displacement,
                &mut self.z,
            );
            self.shift.copy_from_slice(&self.displacement);
            return;
        }
        let z = LanesMut::new(&mut self.z, d, draws);
        self.family.transform(omega, noise, z);
        let rows = self.z.chunks_exact(draws).zip(omega);
        for (i, (z, mean)) in rows.enumerate() {
            let out = &mut self.displacement[i * draws..(i + 1) * draws];
            for (out, z) in out.iter_mut().zip(z) {
                *out = z - mean;
            }
            self.shift[i] = out.iter().sum::<f64>() / draws as f64;
        }
    }

    fn pull(&mut self, request: &GradientRequest<'_>, out: &mut [f64]) {
        let (d, draws) = (self.density.dim(), self.draws);
        let (omega, noise) = (request.omega, request.noise);
        let stl = request.estimator == RecordEstimator::Stl;
        if self.is_plain() && !stl {
            let (mean, log_sd) = out.split_at_mut(d);
            assemble(
                self.simd,
                &self.gradient,
                &self.correction,
                &self.displacement,
                mean,
                log_sd,
            );
        } else {
            if stl {
                self.scratch.resize(d * draws, 0.0);
                let z = Lanes::new(&self.z, d, draws);
                let score = LanesMut::new(&mut self.scratch, d, draws);
                self.family.score(omega, noise, z, score);
                axpy(-1.0, &self.scratch, &mut self.gradient);
            }
            out.fill(0.0);
            let gradient = Lanes::new(&self.gradient, d, draws);
            self.family.pull(omega, noise, gradient, out);
            let scale = 1.0 / draws as f64;
            out.iter_mut().for_each(|g| *g *= scale);
            if !stl {
                self.family.add_entropy_gradient(omega, out);
            }
            axpy(1.0, &self.correction, &mut out[..d]);
        }
        if !self.incremental.is_empty() {
            axpy(1.0, &self.incremental, out);
        }
    }

    /// Renews the table entries for the batch, and updates G. The last call of [`evaluate`](Self::evaluate) must have
    /// had the same request, with `visit` set. `complete` states whether every record has been visited.
    pub fn visit(&mut self, request: &GradientRequest<'_>, table: &mut Table, complete: bool) {
        if request.estimator == RecordEstimator::JointPaper {
            return self.visit_paper(request, table, complete);
        }
        let d = self.density.dim();
        match &mut table.store {
            Store::Nothing | Store::Anchor { .. } => return,
            Store::Predictors(eta) => self.predictors.store(request.batch, eta),
            Store::Expectations { first, second } => {
                self.expected.store(request.batch, first, second);
            }
            Store::Slots(slots) => {
                let whole = slots.whole();
                let kept = if whole {
                    request.omega
                } else {
                    &request.omega[..d]
                };
                let few = self.change.touched().filter(|_| !whole);
                slots.assign(request.batch, few.unwrap_or_default(), kept);
            }
        }
        if table.has_sums() {
            self.change.add_to(table);
        }
        table.complete = complete;
    }

    /// Moves the anchor of `joint-svrg` to `mean`, which takes one pass over all records.
    pub fn anchor(&mut self, mean: &[f64], table: &mut Table) {
        let Store::Anchor {
            mean: stored,
            predictors,
        } = &mut table.store
        else {
            return;
        };
        stored.clear();
        stored.extend_from_slice(mean);
        table.sum.fill(0.0);
        table.diagonal.fill(0.0);
        self.full_gradient(mean, predictors, &mut table.sum, &mut table.diagonal);
        table.complete = true;
    }
}
