//! Densities of exchangeable records, with prior and likelihood separate so that any minibatch can be evaluated.

use crate::{ErasedRecords, Lanes, LanesMut, LogDensity, TwiceDifferentiable};

/// A log density `log p(z) + Σₙ log p(xₙ | z)` over N exchangeable records, evaluated for chosen
/// records and many draws at once.
///
/// The *prior* contains every term that does not belong to a record, including the log-Jacobians of constrained
/// parameters. The density never scales the likelihood: estimators apply the weight N/B, and tempering applies its
/// power. Values are in nats. As for [`LogDensity`], −∞ is a valid value, and NaN rejects a single lane but never the
/// batch. Every method overwrites its destination unless its documentation says that it adds.
///
/// There are two layouts:
///
/// * *batch*: the chosen records are summed at every lane, `out[l] = Σ_{n ∈ batch} log p(xₙ | z[:, l])`;
/// * *paired*: lane l evaluates record `records[l]` at its own `z[:, l]` and gives one result.
///
/// Records may repeat in a batch and come in any order. An empty batch gives zeros. The model is immutable, and
/// prepared batches belong to the workspace. The density manages its own threads, and its results have the same bits
/// for any number of threads. Other lanes of a call can affect a lane only through the rounding of matrix products.
pub trait RecordDensity: Sync {
    /// Scratch memory of one caller.
    type Workspace: Send + 'static;

    /// Returns the number d of unconstrained coordinates.
    fn dim(&self) -> usize;

    /// Returns the number N of records.
    fn records(&self) -> usize;

    /// Returns scratch memory for up to `lanes` draws and batches of up to `batch` records.
    fn workspace(&self, lanes: usize, batch: usize) -> Self::Workspace;

    /// Computes `out[l] = log p(z[:, l])`.
    fn prior_value(&self, ws: &mut Self::Workspace, z: Lanes<'_>, out: &mut [f64]);

    /// Writes the prior to `out` and its gradient (`d × lanes`) to `grad`.
    fn prior_value_grad(
        &self,
        ws: &mut Self::Workspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    );

    /// Computes `out[:, l] = ∇² log p(z[:, l]) · v[:, l]`.
    fn prior_hvp(&self, ws: &mut Self::Workspace, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>);

    /// Writes the summed log likelihood of a batch at every lane to `out`.
    fn batch_value(&self, ws: &mut Self::Workspace, batch: &[u32], z: Lanes<'_>, out: &mut [f64]);

    /// Writes the summed log likelihood of a batch to `out` and its gradient to `grad`.
    fn batch_value_grad(
        &self,
        ws: &mut Self::Workspace,
        batch: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    );

    /// Writes Hessian-vector products of the summed log likelihood to `out`, with one direction per lane.
    fn batch_hvp(
        &self,
        ws: &mut Self::Workspace,
        batch: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        out: LanesMut<'_>,
    );

    /// Computes `out[l] = log p(x_{records[l]} | z[:, l])`. The default makes one call per lane.
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

    /// Writes the paired log likelihood to `out` and its gradient to `grad`, lane by lane.
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

    /// Writes Hessian-vector products of the paired log likelihood to `out`, lane by lane.
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

    /// Adds the gradients and Hessian-vector products of groups of records, each group at its own point:
    /// `Σ_g Σ_{n ∈ g} ∇ log p(xₙ | z_g)` to `grad` and `Σ_g Σ_{n ∈ g} ∇² log p(xₙ | z_g) v` to `product`. Both have
    /// length d.
    ///
    /// The default makes one call per group in the batch layout. A model that can share work between groups overrides
    /// it.
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

    /// Replaces the contents of `coordinates` with the coordinates on which the likelihood of `batch` depends, in
    /// ascending order without repetition, if there are few of them. Returns `false`, which is the default, if there
    /// are many or if they are unknown. A model returns the same value for every batch.
    fn support(&self, batch: &[u32], coordinates: &mut Vec<u32>) -> bool {
        let _ = (batch, coordinates);
        false
    }

    /// Returns the likelihood as a linear predictor, if it has that form.
    fn linear(&self) -> Option<&dyn LinearPredictor> {
        None
    }

    /// Returns the first record of each block, followed by N, if the data are read one block at a time. Callers that
    /// can choose an order visit the blocks one after another. `None`, the default, means that all data are in memory.
    fn blocks(&self) -> Option<&[u32]> {
        None
    }

    /// Returns the number of records per request in a pass over all records.
    fn stride(&self) -> usize {
        STRIDE
    }

    /// Declares the records, in ascending order, that the caller will evaluate repeatedly, as one batch or as parts of
    /// one. If the data are read in blocks, the data of these records stay in memory.
    fn hold(&self, records: &[u32]) {
        let _ = records;
    }
}

/// A group of records that are evaluated at the same point.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The records of the group.
    pub records: &'a [u32],
    /// The point of evaluation (length d).
    pub point: &'a [f64],
}

/// A likelihood that depends on z only through K linear predictors per record: `log p(xₙ | z) = ℓₙ(ηₙ)`, where `ηₙ = Aₙ
/// z` has length K. No offset depends on z.
///
/// The predictors of a batch of B records form a `(B·K) × lanes` matrix: predictor k of the b-th record of the batch is
/// row `b·K + k`. An algorithm that stores ηₙ no longer needs the point z.
pub trait LinearPredictor: Sync {
    /// Returns the number K of linear predictors per record.
    fn width(&self) -> usize;

    /// Computes `eta = A_batch z`. Reads only the coordinates that [`RecordDensity::support`] lists, if it lists any.
    fn project(
        &self,
        scratch: &mut PredictorScratch,
        batch: &[u32],
        z: Lanes<'_>,
        eta: LanesMut<'_>,
    );

    /// Adds `A_batchᵀ r` to `out` (`d × lanes`), but only to the coordinates that [`RecordDensity::support`] lists, if
    /// it lists any.
    fn adjoint(
        &self,
        scratch: &mut PredictorScratch,
        batch: &[u32],
        r: Lanes<'_>,
        out: LanesMut<'_>,
    );

    /// Computes `out[l] = Σ_b ℓ_b(eta_b[:, l])`.
    fn link_value(&self, batch: &[u32], eta: Lanes<'_>, out: &mut [f64]);

    /// Computes `out[b·K + k, l] = ∂ℓ_b/∂η_k`, record by record.
    fn link_gradient(&self, batch: &[u32], eta: Lanes<'_>, out: LanesMut<'_>);

    /// Computes `out_b[:, l] = ∇²ℓ_b(eta_b[:, l]) · v_b[:, l]`, record by record.
    fn link_curvature(&self, batch: &[u32], eta: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>);

    /// Returns the expectations under independent normal coordinates, if the link provides them.
    fn expectations(&self) -> Option<&dyn LinkExpectations> {
        None
    }
}

/// Expectations of a likelihood with one linear predictor per record (K = 1) under independent normal coordinates with
/// variances s. Then `ηₙ ~ N(Aₙ μ, Aₙ² s)`, with elementwise squares, so the expectation over z is an integral over η
/// alone.
pub trait LinkExpectations: Sync {
    /// Computes `variance[b] = Σ_i A_bi² s_i`. Reads only the coordinates that [`RecordDensity::support`] lists, if it
    /// lists any.
    fn project_squares(
        &self,
        scratch: &mut PredictorScratch,
        batch: &[u32],
        s: &[f64],
        variance: &mut [f64],
    );

    /// Adds `Σ_b A_bi² r_b` to `out[i]`, but only for the coordinates that [`RecordDensity::support`] lists, if it
    /// lists any.
    fn adjoint_squares(
        &self,
        scratch: &mut PredictorScratch,
        batch: &[u32],
        r: &[f64],
        out: &mut [f64],
    );

    /// Computes `gradient[b] = E[ℓ_b'(η)]` and `curvature[b] = E[ℓ_b''(η)]` for η ~ N(mean_b, variance_b), within 1e-7.
    fn link_expectation(
        &self,
        batch: &[u32],
        mean: &[f64],
        variance: &[f64],
        gradient: &mut [f64],
        curvature: &mut [f64],
    );
}

/// Data of the last batch, such as gathered rows of a design matrix, which a [`LinearPredictor`] may store.
#[derive(Clone, Debug, Default)]
pub struct PredictorScratch {
    /// The batch to which `values` belong.
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

/// The density of all records of a [`RecordDensity`]: the prior plus the whole likelihood, summed over chunks of
/// records in order. A weighted [sample](Self::sample) can represent all records.
#[derive(Clone, Debug)]
pub struct AllRecords<D> {
    density: D,
    chunk: usize,
    /// The records of the sample, and the weight that each has.
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

/// Enough records to use every lane, and few enough to stay in the cache.
const STRIDE: usize = 1024;

impl<D: RecordDensity> AllRecords<D> {
    /// Creates the density of all records of `density`.
    pub fn new(density: D) -> Self {
        Self {
            chunk: density.stride(),
            density,
            sample: None,
        }
    }

    /// Creates a density in which the given records represent all N records of `density`. Each has weight N divided by
    /// the number of given records. The [`LogDensity`] of the result exposes no records.
    pub fn sample(density: D, records: Vec<u32>) -> Self {
        let weight = density.records() as f64 / records.len().max(1) as f64;
        Self {
            chunk: density.stride(),
            density,
            sample: Some((records, weight)),
        }
    }

    /// Returns the density of the records.
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
