//! Densities over exchangeable records. The prior and the likelihood are separate, so that any minibatch of records can
//! be evaluated.

use crate::{ErasedRecords, Lanes, LanesMut, LogDensity, TwiceDifferentiable};

/// A log density `log p(z) + Σₙ log p(xₙ | z)` over N exchangeable records. Each call evaluates chosen records at many
/// draws.
///
/// The *prior* contains every term that does not belong to a record, including the log-Jacobians of constrained
/// parameters. The density itself never scales the likelihood. Estimators multiply the likelihood of a minibatch of B
/// records by N/B, and tempered fits multiply it by their power. Values are in nats. As for [`LogDensity`], −∞ is a
/// valid value, and NaN rejects a single lane but never the whole batch. Every method overwrites its output, unless its
/// documentation says that it adds to the output.
///
/// The methods use two layouts:
///
/// * *batch*: each lane sums over the same chosen records, `out[l] = Σ_{n ∈ batch} log p(xₙ | z[:, l])`;
/// * *paired*: lane l evaluates the record `records[l]` at its own point `z[:, l]`, and the lanes are not summed.
///
/// A batch may contain a record several times, and its records may be in any order. The results of an empty batch are
/// zero. Evaluation does not change the model. Data that are prepared for a batch are stored in the workspace. The
/// density manages its own threads, and its results are bitwise identical for any number of threads. A lane does not
/// depend on the other lanes of a call, except through the rounding of matrix products.
pub trait RecordDensity: Sync {
    /// The scratch memory of one caller.
    type Workspace: Send + 'static;

    /// Returns the number d of unconstrained coordinates.
    fn dim(&self) -> usize;

    /// Returns the number N of records.
    fn records(&self) -> usize;

    /// Returns scratch memory for up to `lanes` draws and batches of up to `batch` records.
    fn workspace(&self, lanes: usize, batch: usize) -> Self::Workspace;

    /// Computes `out[l] = log p(z[:, l])`.
    fn prior_value(&self, ws: &mut Self::Workspace, z: Lanes<'_>, out: &mut [f64]);

    /// Writes the log density of the prior to `out` and its gradient (`d × lanes`) to `grad`.
    fn prior_value_grad(
        &self,
        ws: &mut Self::Workspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    );

    /// Computes `out[:, l] = ∇² log p(z[:, l]) · v[:, l]`.
    fn prior_hvp(&self, ws: &mut Self::Workspace, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>);

    /// Writes the log likelihood at each lane, summed over the records of a batch, to `out`.
    fn batch_value(&self, ws: &mut Self::Workspace, batch: &[u32], z: Lanes<'_>, out: &mut [f64]);

    /// Writes the log likelihood, summed over the records of a batch, to `out` and its gradient to `grad`.
    fn batch_value_grad(
        &self,
        ws: &mut Self::Workspace,
        batch: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    );

    /// Writes Hessian-vector products of the log likelihood, summed over the records of a batch, to `out`. Each lane
    /// has its own direction.
    fn batch_hvp(
        &self,
        ws: &mut Self::Workspace,
        batch: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        out: LanesMut<'_>,
    );

    /// Computes `out[l] = log p(x_{records[l]} | z[:, l])`. The default implementation evaluates one lane at a time.
    fn paired_value(
        &self,
        ws: &mut Self::Workspace,
        records: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
    ) {
        for (lane, (record, out)) in records.chunks(1).zip(out.chunks_mut(1)).enumerate() {
            let point = column(z, lane);
            self.batch_value(ws, record, Lanes::new(&point, z.rows(), 1), out);
        }
    }

    /// Writes the log likelihood of each lane's own record to `out` and its gradient to `grad`.
    fn paired_value_grad(
        &self,
        ws: &mut Self::Workspace,
        records: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        mut grad: LanesMut<'_>,
    ) {
        let mut part = vec![0.0; z.rows()];
        for (lane, (record, out)) in records.chunks(1).zip(out.chunks_mut(1)).enumerate() {
            let point = column(z, lane);
            let view = LanesMut::new(&mut part, z.rows(), 1);
            self.batch_value_grad(ws, record, Lanes::new(&point, z.rows(), 1), out, view);
            set_column(&part, lane, &mut grad);
        }
    }

    /// Writes Hessian-vector products of the log likelihood of each lane's own record to `out`.
    fn paired_hvp(
        &self,
        ws: &mut Self::Workspace,
        records: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        mut out: LanesMut<'_>,
    ) {
        let mut part = vec![0.0; z.rows()];
        for (lane, record) in records.chunks(1).enumerate() {
            let (point, direction) = (column(z, lane), column(v, lane));
            let (z, v) = (
                Lanes::new(&point, point.len(), 1),
                Lanes::new(&direction, direction.len(), 1),
            );
            let view = LanesMut::new(&mut part, point.len(), 1);
            self.batch_hvp(ws, record, z, v, view);
            set_column(&part, lane, &mut out);
        }
    }

    /// Adds the gradients and Hessian-vector products of several groups of records. Each group is evaluated at its own
    /// point. The method adds `Σ_g Σ_{n ∈ g} ∇ log p(xₙ | z_g)` to `grad` and `Σ_g Σ_{n ∈ g} ∇² log p(xₙ | z_g) v` to
    /// `product`. Both have length d.
    ///
    /// The default implementation makes one call per group in the batch layout. Models that can share work between
    /// groups should override it.
    fn grouped(
        &self,
        ws: &mut Self::Workspace,
        groups: &[Group<'_>],
        v: &[f64],
        grad: &mut [f64],
        product: &mut [f64],
    ) {
        let d = self.dim();
        let mut part = vec![0.0; d];
        for group in groups {
            let z = Lanes::new(group.point, d, 1);
            let out = LanesMut::new(&mut part, d, 1);
            self.batch_value_grad(ws, group.records, z, &mut [0.0], out);
            add(&part, grad);
            let out = LanesMut::new(&mut part, d, 1);
            self.batch_hvp(ws, group.records, z, Lanes::new(v, d, 1), out);
            add(&part, product);
        }
    }

    /// Determines the coordinates on which the likelihood of `batch` depends. If there are few of them, the function
    /// writes them to `coordinates`, in ascending order and without repetition, and returns `true`. Returns `false` if
    /// there are many such coordinates or if they are unknown. The default implementation returns `false`. A model must
    /// return the same Boolean value for every batch.
    fn support(&self, batch: &[u32], coordinates: &mut Vec<u32>) -> bool {
        let _ = (batch, coordinates);
        false
    }

    /// Returns the likelihood in the form of a linear predictor, if the likelihood has that form.
    fn linear(&self) -> Option<&dyn LinearPredictor> {
        None
    }

    /// Returns the first record of each block, followed by N, if the data are read one block at a time. Callers that
    /// can choose an order visit the blocks one after another. The default, `None`, means that all data are in memory.
    fn blocks(&self) -> Option<&[u32]> {
        None
    }

    /// Returns how many records a pass over all records requests at a time.
    fn stride(&self) -> usize {
        STRIDE
    }

    /// Announces that the caller will evaluate the given records repeatedly, either as one batch or in parts. The
    /// records are in ascending order. If the data are read in blocks, the model then keeps the data of these records
    /// in memory.
    fn hold(&self, records: &[u32]) {
        let _ = records;
    }
}

/// A group of records that are evaluated at the same point.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The records of the group.
    pub records: &'a [u32],
    /// The point at which the records are evaluated, of length d.
    pub point: &'a [f64],
}

/// A likelihood that depends on z only through K linear predictors per record: `log p(xₙ | z) = ℓₙ(ηₙ)`, where `ηₙ = Aₙ
/// z` has length K. Offsets may be part of ℓₙ, but they do not depend on z.
///
/// The predictors of a batch of B records form a `(B·K) × lanes` matrix: predictor k of the b-th record of the batch is
/// row `b·K + k`. An algorithm that stores ηₙ need not store the point z.
pub trait LinearPredictor: Sync {
    /// Returns the number K of linear predictors per record.
    fn width(&self) -> usize;

    /// Computes `eta = A_batch z`. If [`RecordDensity::support`] lists coordinates, the method reads only these.
    fn project(
        &self,
        scratch: &mut PredictorScratch,
        batch: &[u32],
        z: Lanes<'_>,
        eta: LanesMut<'_>,
    );

    /// Adds `A_batchᵀ r` to the `d × lanes` matrix `out`. If [`RecordDensity::support`] lists coordinates, the method
    /// adds only to these.
    fn adjoint(
        &self,
        scratch: &mut PredictorScratch,
        batch: &[u32],
        r: Lanes<'_>,
        out: LanesMut<'_>,
    );

    /// Computes `out[l] = Σ_b ℓ_b(eta_b[:, l])`.
    fn link_value(&self, batch: &[u32], eta: Lanes<'_>, out: &mut [f64]);

    /// Computes `out[b·K + k, l] = ∂ℓ_b/∂η_k` for each record b of the batch.
    fn link_gradient(&self, batch: &[u32], eta: Lanes<'_>, out: LanesMut<'_>);

    /// Computes `out_b[:, l] = ∇²ℓ_b(eta_b[:, l]) · v_b[:, l]` for each record b of the batch.
    fn link_curvature(&self, batch: &[u32], eta: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>);

    /// Returns the expectations of the likelihood under independent normal coordinates, if the link provides them.
    fn expectations(&self) -> Option<&dyn LinkExpectations> {
        None
    }
}

/// Expectations of a likelihood with one linear predictor per record (K = 1) under independent normal coordinates with
/// variances s. Then `ηₙ ~ N(Aₙ μ, Aₙ² s)`, with elementwise squares, so the expectation over z is an integral over η
/// alone.
pub trait LinkExpectations: Sync {
    /// Computes `variance[b] = Σ_i A_bi² s_i`. If [`RecordDensity::support`] lists coordinates, the method reads only
    /// these.
    fn project_squares(
        &self,
        scratch: &mut PredictorScratch,
        batch: &[u32],
        s: &[f64],
        variance: &mut [f64],
    );

    /// Adds `Σ_b A_bi² r_b` to `out[i]`. If [`RecordDensity::support`] lists coordinates, the method adds only to
    /// these.
    fn adjoint_squares(
        &self,
        scratch: &mut PredictorScratch,
        batch: &[u32],
        r: &[f64],
        out: &mut [f64],
    );

    /// Computes `gradient[b] = E[ℓ_b'(η)]` and `curvature[b] = E[ℓ_b''(η)]` for η ~ N(mean_b, variance_b), to within
    /// 1e-7.
    fn link_expectation(
        &self,
        batch: &[u32],
        mean: &[f64],
        variance: &[f64],
        gradient: &mut [f64],
        curvature: &mut [f64],
    );
}

/// Data that a [`LinearPredictor`] may store for the last batch, such as the gathered rows of a design matrix.
#[derive(Clone, Debug, Default)]
pub struct PredictorScratch {
    /// The batch for which `values` were computed.
    pub batch: Vec<u32>,
    /// Numbers in a layout that the model chooses.
    pub values: Vec<f64>,
}

fn column(z: Lanes<'_>, lane: usize) -> Vec<f64> {
    let (data, lanes) = (z.as_slice(), z.lanes());
    (0..z.rows()).map(|row| data[row * lanes + lane]).collect()
}

fn set_column(x: &[f64], lane: usize, out: &mut LanesMut<'_>) {
    let lanes = out.lanes();
    let out = out.as_mut_slice();
    for (row, x) in x.iter().enumerate() {
        out[row * lanes + lane] = *x;
    }
}

fn add(x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += x;
    }
}

fn add_weighted(weight: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += weight * x;
    }
}

/// The density over all records of a [`RecordDensity`]. It is the prior plus the likelihood of all records, which is
/// summed over consecutive chunks of records. A weighted [sample](Self::sample) may represent all records.
#[derive(Clone, Debug)]
pub struct AllRecords<D> {
    density: D,
    chunk: usize,
    /// The records of the sample, and the weight of each of them.
    sample: Option<(Vec<u32>, f64)>,
}

/// Scratch memory of [`AllRecords`].
#[derive(Clone, Debug, Default)]
pub struct AllRecordsWorkspace<W> {
    inner: W,
    batch: Vec<u32>,
    values: Vec<f64>,
    part: Vec<f64>,
    draws: Vec<f64>,
    lanes: usize,
}

/// The number of records per call. It is large enough to use every lane and small enough for the data to stay in the
/// cache.
const STRIDE: usize = 1024;

impl<D: RecordDensity> AllRecords<D> {
    /// Creates the density over all records of `density`.
    pub fn new(density: D) -> Self {
        Self {
            chunk: density.stride(),
            density,
            sample: None,
        }
    }

    /// Creates a density in which the given records represent all N records of `density`. The weight of each given
    /// record is N divided by the number of given records. As a [`LogDensity`], the result does not expose any records.
    pub fn sample(density: D, records: Vec<u32>) -> Self {
        let weight = density.records() as f64 / records.len().max(1) as f64;
        Self {
            chunk: density.stride(),
            density,
            sample: Some((records, weight)),
        }
    }

    /// Returns the underlying density of the records.
    pub fn density(&self) -> &D {
        &self.density
    }

    fn chunks(&self, batch: &mut Vec<u32>, mut each: impl FnMut(&[u32], f64)) {
        if let Some((records, weight)) = &self.sample {
            return records
                .chunks(self.chunk)
                .for_each(|batch| each(batch, *weight));
        }
        let records = u32::try_from(self.density.records()).unwrap_or(u32::MAX);
        for first in (0..records).step_by(self.chunk) {
            batch.clear();
            batch.extend(first..records.min(first.saturating_add(self.chunk as u32)));
            each(batch, 1.0);
        }
    }
}

impl<D: RecordDensity> LogDensity for AllRecords<D> {
    type Workspace = AllRecordsWorkspace<D::Workspace>;

    fn dim(&self) -> usize {
        self.density.dim()
    }

    fn workspace(&self, lanes: usize) -> Self::Workspace {
        AllRecordsWorkspace {
            inner: self.density.workspace(lanes, self.chunk),
            batch: Vec::new(),
            values: Vec::new(),
            part: Vec::new(),
            draws: Vec::new(),
            lanes: 0,
        }
    }

    fn value(&self, ws: &mut Self::Workspace, z: Lanes<'_>, out: &mut [f64]) {
        let (inner, values) = (&mut ws.inner, &mut ws.values);
        self.density.prior_value(inner, z, out);
        values.resize(z.lanes(), 0.0);
        self.chunks(&mut ws.batch, |batch, weight| {
            self.density.batch_value(inner, batch, z, values);
            add_weighted(weight, values, out);
        });
    }

    fn value_grad(
        &self,
        ws: &mut Self::Workspace,
        z: Lanes<'_>,
        out: &mut [f64],
        mut grad: LanesMut<'_>,
    ) {
        let (inner, values, part) = (&mut ws.inner, &mut ws.values, &mut ws.part);
        self.density
            .prior_value_grad(inner, z, out, grad.reborrow());
        let (rows, lanes) = (z.rows(), z.lanes());
        values.resize(lanes, 0.0);
        part.resize(rows * lanes, 0.0);
        self.chunks(&mut ws.batch, |batch, weight| {
            let view = LanesMut::new(part, rows, lanes);
            self.density.batch_value_grad(inner, batch, z, values, view);
            add_weighted(weight, values, out);
            add_weighted(weight, part, grad.as_mut_slice());
        });
    }

    fn records(&self) -> Option<ErasedRecords<'_>> {
        self.sample
            .is_none()
            .then(|| ErasedRecords::new(&self.density))
    }
}

impl<D: RecordDensity> TwiceDifferentiable for AllRecords<D> {
    fn linearize(&self, ws: &mut Self::Workspace, z: Lanes<'_>) {
        ws.draws.clear();
        ws.draws.extend_from_slice(z.as_slice());
        ws.lanes = z.lanes();
    }

    fn apply(&self, ws: &mut Self::Workspace, v: Lanes<'_>, mut out: LanesMut<'_>) {
        assert_eq!(ws.lanes, v.lanes(), "linearised at as many draws");
        let (rows, lanes) = (v.rows(), v.lanes());
        let (inner, part) = (&mut ws.inner, &mut ws.part);
        let z = Lanes::new(&ws.draws, rows, lanes);
        self.density.prior_hvp(inner, z, v, out.reborrow());
        part.resize(rows * lanes, 0.0);
        self.chunks(&mut ws.batch, |batch, weight| {
            let view = LanesMut::new(part, rows, lanes);
            self.density.batch_hvp(inner, batch, z, v, view);
            add_weighted(weight, part, out.as_mut_slice());
        });
    }
}

impl<D: RecordDensity> RecordDensity for &D {
    type Workspace = D::Workspace;

    fn dim(&self) -> usize {
        (**self).dim()
    }
    fn records(&self) -> usize {
        (**self).records()
    }
    fn workspace(&self, lanes: usize, batch: usize) -> Self::Workspace {
        (**self).workspace(lanes, batch)
    }
    fn prior_value(&self, ws: &mut Self::Workspace, z: Lanes<'_>, out: &mut [f64]) {
        (**self).prior_value(ws, z, out);
    }
    fn prior_value_grad(
        &self,
        ws: &mut Self::Workspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        (**self).prior_value_grad(ws, z, out, grad);
    }
    fn prior_hvp(&self, ws: &mut Self::Workspace, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>) {
        (**self).prior_hvp(ws, z, v, out);
    }
    fn batch_value(&self, ws: &mut Self::Workspace, batch: &[u32], z: Lanes<'_>, out: &mut [f64]) {
        (**self).batch_value(ws, batch, z, out);
    }
    fn batch_value_grad(
        &self,
        ws: &mut Self::Workspace,
        batch: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        (**self).batch_value_grad(ws, batch, z, out, grad);
    }
    fn batch_hvp(
        &self,
        ws: &mut Self::Workspace,
        batch: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        out: LanesMut<'_>,
    ) {
        (**self).batch_hvp(ws, batch, z, v, out);
    }
    fn paired_value(
        &self,
        ws: &mut Self::Workspace,
        records: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
    ) {
        (**self).paired_value(ws, records, z, out);
    }
    fn paired_value_grad(
        &self,
        ws: &mut Self::Workspace,
        records: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        (**self).paired_value_grad(ws, records, z, out, grad);
    }
    fn paired_hvp(
        &self,
        ws: &mut Self::Workspace,
        records: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        out: LanesMut<'_>,
    ) {
        (**self).paired_hvp(ws, records, z, v, out);
    }
    fn grouped(
        &self,
        ws: &mut Self::Workspace,
        groups: &[Group<'_>],
        v: &[f64],
        grad: &mut [f64],
        product: &mut [f64],
    ) {
        (**self).grouped(ws, groups, v, grad, product);
    }
    fn support(&self, batch: &[u32], coordinates: &mut Vec<u32>) -> bool {
        (**self).support(batch, coordinates)
    }
    fn linear(&self) -> Option<&dyn LinearPredictor> {
        (**self).linear()
    }
    fn blocks(&self) -> Option<&[u32]> {
        (**self).blocks()
    }
    fn stride(&self) -> usize {
        (**self).stride()
    }
    fn hold(&self, records: &[u32]) {
        (**self).hold(records);
    }
}
