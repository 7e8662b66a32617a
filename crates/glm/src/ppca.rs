//! Probabilistic principal components, with the scores integrated out.

use jensen_density::{Group, Lanes, LanesMut, RecordDensity};
use rayon::prelude::*;

use crate::glm::paste_lane;
use crate::product::{Matrix, multiply};
use crate::{Dense, Prior, StandardNormal};
use jensen_math::constants::HALF_LOG_TWO_PI;
use jensen_math::dense::{cholesky, solve_lower, solve_lower_transposed};

/// Probabilistic principal components: `xₙ ~ normal(0, W Wᵀ + s I)` for rows xₙ with P columns. The matrix `W` (P × K,
/// stored row by row in z) is standard normal a priori, and the noise variance s is known (Tipping and Bishop 1999).
///
/// Let `M = s I + WᵀW` and `a = M⁻¹ Wᵀ x`, and let A be the matrix whose rows are the vectors a of the batch's rows.
/// The log density, its gradient and its Hessian-vector product are then:
///
/// - `log p(x) = −½ (P log 2π + (P − K) log s + log |M| + (xᵀx − xᵀW a) / s)`,
/// - `∇ = XᵀA / s − W Q` with `Q = AᵀA / s + B M⁻¹`,
/// - along V, with `dM = WᵀV + VᵀW` and `dA = (X V − A dM) M⁻¹`: `∇² V = XᵀdA / s − V Q − W dQ`, `dQ = (dAᵀA + AᵀdA)
///   / s − B M⁻¹ dM M⁻¹`.
///
/// For each lane, the gradient of a batch costs `4·B·P·K + 4·P·K²` flops, and a Hessian-vector product costs three
/// times as much.
#[derive(Clone, Debug)]
pub struct Ppca {
    data: Dense,
    components: usize,
    noise_variance: f64,
}

/// Scratch memory of a [`Ppca`].
#[derive(Clone, Debug, Default)]
pub struct PpcaWorkspace {
    batch: Vec<u32>,
    rows: Vec<f64>,
    point: Vec<f64>,
    direction: Vec<f64>,
    part: Vec<f64>,
}

/// The K × K matrices at a point W: `log |M|` and `M⁻¹`.
struct Posterior {
    log_det: f64,
    inverse: Vec<f64>,
}

/// Number of parts into which the groups are divided. The number does not depend on the number of threads.
const PARTS: usize = 8;

impl Ppca {
    /// Creates the model with K = `components` components and the noise variance s > 0.
    pub fn new(data: Dense, components: usize, noise_variance: f64) -> Self {
        Self {
            data,
            components,
            noise_variance,
        }
    }

    fn prior(&self) -> StandardNormal {
        StandardNormal(self.dim())
    }

    fn p(&self) -> usize {
        self.data.columns()
    }

    fn gather<'w>(&self, ws: &'w mut PpcaWorkspace, batch: &[u32]) -> &'w [f64] {
        if ws.batch != batch || ws.rows.len() != batch.len() * self.p() {
            self.data.gather(batch, &mut ws.rows);
            ws.batch.clear();
            ws.batch.extend_from_slice(batch);
        }
        &ws.rows
    }

    /// Returns `data` as a row-major matrix with `rows` rows of K elements.
    fn thin<'m>(&self, data: &'m [f64], rows: usize) -> Matrix<'m> {
        Matrix::new(data, rows, self.components)
    }

    fn inner(&self, a: &[f64], b: &[f64], rows: usize) -> Vec<f64> {
        let mut out = vec![0.0; self.components * self.components];
        let (a, b) = (self.thin(a, rows).transposed(), self.thin(b, rows));
        multiply(a, b, 0.0, &mut out);
        out
    }

    /// Returns `None` if M is not positive definite. Only rounding errors can cause this.
    fn posterior(&self, w: &[f64]) -> Option<Posterior> {
        let k = self.components;
        let mut m = self.inner(w, w, self.p());
        for i in 0..k {
            m[i * k + i] += self.noise_variance;
        }
        let factor = cholesky(&m, k)?;
        let log_det = (0..k).map(|i| 2.0 * factor[i * k + i].ln()).sum();
        let mut inverse = vec![0.0; k * k];
        for (i, column) in inverse.chunks_exact_mut(k).enumerate() {
            column[i] = 1.0;
            solve_lower(&factor, column);
            solve_lower_transposed(&factor, column);
        }
        Some(Posterior { log_det, inverse })
    }

    fn scores(&self, posterior: &Posterior, w: &[f64], x: &[f64], b: usize) -> [Vec<f64>; 2] {
        let k = self.components;
        let (mut wx, mut a) = (vec![0.0; b * k], vec![0.0; b * k]);
        let rows = Matrix::new(x, b, self.p());
        multiply(rows, self.thin(w, self.p()), 0.0, &mut wx);
        multiply(
            self.thin(&wx, b),
            self.thin(&posterior.inverse, k),
            0.0,
            &mut a,
        );
        [a, wx]
    }

    fn shrinkage(&self, posterior: &Posterior, a: &[f64], b: usize) -> Vec<f64> {
        let mut q = self.inner(a, a, b);
        for (q, m) in q.iter_mut().zip(&posterior.inverse) {
            *q = *q / self.noise_variance + b as f64 * m;
        }
        q
    }

    /// Computes `dA` and `dQ` along V, given the product `X V`.
    fn tangents(
        &self,
        posterior: &Posterior,
        w: &[f64],
        v: &[f64],
        a: &[f64],
        xv: &[f64],
        b: usize,
    ) -> [Vec<f64>; 2] {
        let k = self.components;
        let s = self.inner(w, v, self.p());
        let mut dm = vec![0.0; k * k];
        for i in 0..k {
            for j in 0..k {
                dm[i * k + j] = s[i * k + j] + s[j * k + i];
            }
        }
        let mut right = vec![0.0; b * k];
        multiply(self.thin(a, b), self.thin(&dm, k), 0.0, &mut right);
        for (r, x) in right.iter_mut().zip(xv) {
            *r = x - *r;
        }
        let inverse = self.thin(&posterior.inverse, k);
        let mut da = vec![0.0; b * k];
        multiply(self.thin(&right, b), inverse, 0.0, &mut da);
        let (mut half, mut curved) = (vec![0.0; k * k], vec![0.0; k * k]);
        multiply(inverse, self.thin(&dm, k), 0.0, &mut half);
        multiply(self.thin(&half, k), inverse, 0.0, &mut curved);
        let cross = self.inner(&da, a, b);
        let mut dq = vec![0.0; k * k];
        for i in 0..k {
            for j in 0..k {
                let symmetric = cross[i * k + j] + cross[j * k + i];
                dq[i * k + j] = symmetric / self.noise_variance - b as f64 * curved[i * k + j];
            }
        }
        [da, dq]
    }

    fn add_product(&self, w: &[f64], q: &[f64], sign: f64, out: &mut [f64]) {
        let q: Vec<f64> = q.iter().map(|q| sign * q).collect();
        multiply(
            self.thin(w, self.p()),
            self.thin(&q, self.components),
            1.0,
            out,
        );
    }

    fn add_outer(&self, x: &[f64], a: &[f64], b: usize, out: &mut [f64]) {
        let a: Vec<f64> = a.iter().map(|a| a / self.noise_variance).collect();
        let rows = Matrix::new(x, b, self.p()).transposed();
        multiply(rows, self.thin(&a, b), 1.0, out);
    }

    /// Computes the log likelihood, where `a` contains the scores of the rows and `wx` contains the rows `Wᵀ x`.
    fn log_likelihood(&self, posterior: &Posterior, x: &[f64], a: &[f64], wx: &[f64]) -> f64 {
        let (p, k, s) = (self.p(), self.components, self.noise_variance);
        let dot = |x: &[f64], y: &[f64]| jensen_math::reduce::dot(x, y);
        let constant = p as f64 * 2.0 * HALF_LOG_TWO_PI + (p - k) as f64 * s.ln();
        let rows = x
            .chunks_exact(p)
            .zip(a.chunks_exact(k).zip(wx.chunks_exact(k)));
        rows.map(|(x, (a, wx))| {
            -0.5 * (constant + posterior.log_det + (dot(x, x) - dot(a, wx)) / s)
        })
        .sum()
    }

    /// Computes the value and the gradient at W. Both are NaN if M is not positive definite.
    fn value_grad_at(&self, w: &[f64], x: &[f64], b: usize, grad: Option<&mut [f64]>) -> f64 {
        let Some(posterior) = self.posterior(w) else {
            if let Some(grad) = grad {
                grad.fill(f64::NAN);
            }
            return f64::NAN;
        };
        let [a, wx] = self.scores(&posterior, w, x, b);
        if let Some(grad) = grad {
            grad.fill(0.0);
            self.add_outer(x, &a, b, grad);
            self.add_product(w, &self.shrinkage(&posterior, &a, b), -1.0, grad);
        }
        self.log_likelihood(&posterior, x, &a, &wx)
    }

    /// Writes the Hessian-vector product at W in the direction V to `out`.
    fn hvp_at(&self, w: &[f64], v: &[f64], x: &[f64], b: usize, out: &mut [f64]) {
        let Some(posterior) = self.posterior(w) else {
            out.fill(f64::NAN);
            return;
        };
        out.fill(0.0);
        let [a, _] = self.scores(&posterior, w, x, b);
        let mut xv = vec![0.0; b * self.components];
        let rows = Matrix::new(x, b, self.p());
        multiply(rows, self.thin(v, self.p()), 0.0, &mut xv);
        let [da, dq] = self.tangents(&posterior, w, v, &a, &xv, b);
        self.add_outer(x, &da, b, out);
        self.add_product(v, &self.shrinkage(&posterior, &a, b), -1.0, out);
        self.add_product(w, &dq, -1.0, out);
    }
}

impl RecordDensity for Ppca {
    type Workspace = PpcaWorkspace;

    fn dim(&self) -> usize {
        self.p() * self.components
    }

    fn records(&self) -> usize {
        self.data.rows()
    }

    fn workspace(&self, _lanes: usize, _batch: usize) -> PpcaWorkspace {
        PpcaWorkspace::default()
    }

    fn prior_value(&self, _: &mut PpcaWorkspace, z: Lanes<'_>, out: &mut [f64]) {
        self.prior().value(z, out);
    }

    fn prior_value_grad(
        &self,
        _: &mut PpcaWorkspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        self.prior().value_grad(z, out, grad);
    }

    fn prior_hvp(&self, _: &mut PpcaWorkspace, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>) {
        self.prior().hvp(z, v, out);
    }

    fn batch_value(&self, ws: &mut PpcaWorkspace, batch: &[u32], z: Lanes<'_>, out: &mut [f64]) {
        let x = self.gather(ws, batch);
        let lanes: Vec<f64> = (0..z.lanes())
            .into_par_iter()
            .map(|l| {
                let mut w = vec![0.0; self.dim()];
                z.copy_lane(l, &mut w);
                self.value_grad_at(&w, x, batch.len(), None)
            })
            .collect();
        out.copy_from_slice(&lanes);
    }

    fn batch_value_grad(
        &self,
        ws: &mut PpcaWorkspace,
        batch: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        mut grad: LanesMut<'_>,
    ) {
        let x = self.gather(ws, batch);
        let lanes: Vec<(f64, Vec<f64>)> = (0..z.lanes())
            .into_par_iter()
            .map(|l| {
                let (mut w, mut part) = (vec![0.0; self.dim()], vec![0.0; self.dim()]);
                z.copy_lane(l, &mut w);
                let value = self.value_grad_at(&w, x, batch.len(), Some(&mut part));
                (value, part)
            })
            .collect();
        for (l, (value, part)) in lanes.iter().enumerate() {
            out[l] = *value;
            paste_lane(part, l, &mut grad);
        }
    }

    fn batch_hvp(
        &self,
        ws: &mut PpcaWorkspace,
        batch: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        mut out: LanesMut<'_>,
    ) {
        self.gather(ws, batch);
        let d = self.dim();
        for buffer in [&mut ws.point, &mut ws.direction, &mut ws.part] {
            buffer.resize(d, 0.0);
        }
        for l in 0..z.lanes() {
            z.copy_lane(l, &mut ws.point);
            v.copy_lane(l, &mut ws.direction);
            self.hvp_at(
                &ws.point,
                &ws.direction,
                &ws.rows,
                batch.len(),
                &mut ws.part,
            );
            paste_lane(&ws.part, l, &mut out);
        }
    }

    fn paired_value(&self, ws: &mut PpcaWorkspace, records: &[u32], z: Lanes<'_>, out: &mut [f64]) {
        self.gather(ws, records);
        ws.point.resize(self.dim(), 0.0);
        for (l, x) in ws.rows.chunks_exact(self.p()).enumerate() {
            z.copy_lane(l, &mut ws.point);
            out[l] = self.value_grad_at(&ws.point, x, 1, None);
        }
    }

    fn paired_value_grad(
        &self,
        ws: &mut PpcaWorkspace,
        records: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        mut grad: LanesMut<'_>,
    ) {
        self.gather(ws, records);
        ws.point.resize(self.dim(), 0.0);
        ws.part.resize(self.dim(), 0.0);
        for (l, x) in ws.rows.chunks_exact(self.p()).enumerate() {
            z.copy_lane(l, &mut ws.point);
            out[l] = self.value_grad_at(&ws.point, x, 1, Some(&mut ws.part));
            paste_lane(&ws.part, l, &mut grad);
        }
    }

    fn paired_hvp(
        &self,
        ws: &mut PpcaWorkspace,
        records: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        mut out: LanesMut<'_>,
    ) {
        self.gather(ws, records);
        for buffer in [&mut ws.point, &mut ws.direction, &mut ws.part] {
            buffer.resize(self.dim(), 0.0);
        }
        for (l, x) in ws.rows.chunks_exact(self.p()).enumerate() {
            z.copy_lane(l, &mut ws.point);
            v.copy_lane(l, &mut ws.direction);
            self.hvp_at(&ws.point, &ws.direction, x, 1, &mut ws.part);
            paste_lane(&ws.part, l, &mut out);
        }
    }

    /// Computes the products with X and V once for all groups. Each group costs `8·P·K²` additional flops and reads its
    /// point from memory once.
    fn grouped(
        &self,
        ws: &mut PpcaWorkspace,
        groups: &[Group<'_>],
        v: &[f64],
        grad: &mut [f64],
        product: &mut [f64],
    ) {
        let (p, k, d) = (self.p(), self.components, self.dim());
        let records: Vec<u32> = groups.iter().flat_map(|g| g.records).copied().collect();
        let x = self.gather(ws, &records);
        let mut xv = vec![0.0; records.len() * k];
        let rows = Matrix::new(x, records.len(), p);
        multiply(rows, self.thin(v, p), 0.0, &mut xv);
        let mut firsts = Vec::with_capacity(groups.len());
        let mut first = 0;
        for group in groups {
            firsts.push(first);
            first += group.records.len();
        }
        struct Sums {
            scores: Vec<f64>,
            tangents: Vec<f64>,
            shrinkage: Vec<f64>,
            grad: Vec<f64>,
            product: Vec<f64>,
        }
        let size = groups.len().div_ceil(PARTS).max(1);
        let parts: Vec<Sums> = groups
            .par_chunks(size)
            .zip(firsts.par_chunks(size))
            .map(|(groups, firsts)| {
                let mut part = Sums {
                    scores: Vec::new(),
                    tangents: Vec::new(),
                    shrinkage: vec![0.0; k * k],
                    grad: vec![0.0; d],
                    product: vec![0.0; d],
                };
                for (group, &first) in groups.iter().zip(firsts) {
                    let (b, w) = (group.records.len(), group.point);
                    let x = &x[first * p..][..b * p];
                    let Some(posterior) = self.posterior(w) else {
                        part.grad.fill(f64::NAN);
                        part.scores.resize(part.scores.len() + b * k, f64::NAN);
                        part.tangents.resize(part.tangents.len() + b * k, f64::NAN);
                        continue;
                    };
                    let [a, _] = self.scores(&posterior, w, x, b);
                    let q = self.shrinkage(&posterior, &a, b);
                    let xv = &xv[first * k..][..b * k];
                    let [da, dq] = self.tangents(&posterior, w, v, &a, xv, b);
                    self.add_product(w, &q, -1.0, &mut part.grad);
                    self.add_product(w, &dq, -1.0, &mut part.product);
                    add(&q, &mut part.shrinkage);
                    part.scores.extend(a);
                    part.tangents.extend(da);
                }
                part
            })
            .collect();
        let (mut scores, mut tangents) = (Vec::new(), Vec::new());
        let mut shrinkage = vec![0.0; k * k];
        for part in parts {
            add(&part.grad, grad);
            add(&part.product, product);
            add(&part.shrinkage, &mut shrinkage);
            scores.extend(part.scores);
            tangents.extend(part.tangents);
        }
        self.add_outer(x, &scores, records.len(), grad);
        self.add_outer(x, &tangents, records.len(), product);
        self.add_product(v, &shrinkage, -1.0, product);
    }
}

fn add(x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += x;
    }
}
