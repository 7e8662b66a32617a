//! Minibatch gradients for likelihoods with linear predictors, computed from ηₙ.

use jensen_density::{
    Lanes, LanesMut, LinearPredictor, LinkExpectations, PredictorScratch, RecordDensity,
};

use super::change::Change;
use super::estimator::RecordEstimator;
use super::gradients::{GradientRequest, Gradients};
use super::table::{Store, Table};

#[derive(Clone, Debug, Default)]
pub(super) struct Predictors {
    scratch: PredictorScratch,
    /// The draws and the mean, a `d × (draws + 1)` matrix.
    points: Vec<f64>,
    /// The predictors η at the points, a `(B·K) × (draws + 1)` matrix.
    eta: Vec<f64>,
    eta_draws: Vec<f64>,
    /// The predictors η at the mean, a vector of length B·K.
    eta_mean: Vec<f64>,
    eta_stored: Vec<f64>,
    /// The predictors η of the mean displacement, a vector of length B·K.
    eta_shift: Vec<f64>,
    /// The derivatives `ℓₙ'` at the draws, a `(B·K) × draws` matrix.
    first: Vec<f64>,
    /// The inputs of the columns that do not belong to draws. Each input has length B·K.
    second: Vec<f64>,
    /// The stored derivatives `ℓₙ'` and `ℓₙ''`, of length B·K.
    stored: Vec<f64>,
    curvature_stored: Vec<f64>,
    /// A vector of ones. A curvature that is multiplied by it does not change.
    ones: Vec<f64>,
    /// The inputs of the backward pass, a `(B·K) × columns` matrix.
    rest: Vec<f64>,
    /// The output of the backward pass, a `d × columns` matrix. It is zero between calls.
    out: Vec<f64>,
}

impl Predictors {
    pub(super) fn store(&self, batch: &[u32], table: &mut [f64]) {
        let width = self.eta_mean.len() / batch.len().max(1);
        for (eta, &n) in self.eta_mean.chunks_exact(width).zip(batch) {
            table[n as usize * width..][..width].copy_from_slice(eta);
        }
    }
}

fn column(x: &[f64], first: usize, stride: usize, out: &mut Vec<f64>) {
    out.clear();
    out.extend(x.iter().skip(first).step_by(stride));
}

fn set_column(x: &[f64], first: usize, stride: usize, out: &mut [f64]) {
    for (out, x) in out.iter_mut().skip(first).step_by(stride).zip(x) {
        *out = *x;
    }
}

fn add_column<const C: usize>(rows: &[f64], column: usize, factor: f64, target: &mut [f64]) {
    for (target, row) in target.iter_mut().zip(rows.as_chunks::<C>().0) {
        *target += factor * row[column];
    }
}

#[derive(Clone, Copy)]
struct Parts<'l> {
    draws: usize,
    estimator: RecordEstimator,
    /// Whether the estimate subtracts the expansion at the stored entries. If so, the table is complete.
    joint: bool,
    /// Whether the estimate subtracts this expansion only from the gradient of the mean. The expansion is then in the
    /// column of `control`.
    mean_alone: bool,
    /// The view of the likelihood that provides the diagonal of the Hessian, if the table stores a diagonal. In this
    /// case, the column of each draw includes the expansion for that draw, and the expansion also applies to the
    /// spread.
    view: Option<&'l dyn LinkExpectations>,
    control: bool,
    visit: bool,
}

impl<'l> Parts<'l> {
    fn of(
        request: &GradientRequest<'_>,
        table: &Table,
        linear: &'l dyn LinearPredictor,
        draws: usize,
    ) -> Self {
        let estimator = request.estimator;
        let joint = estimator.expands_stored();
        let view = linear.expectations().filter(|_| !table.diagonal.is_empty());
        Self {
            draws,
            estimator,
            joint,
            mean_alone: estimator == RecordEstimator::JointMean,
            view,
            control: estimator.expansion() > 0.0 || (joint && view.is_none()),
            // The slots of `inc` store ω, and there is no sum over them that could change.
            visit: request.visit && table.has_sums(),
        }
    }

    /// Returns the number of points at which η is evaluated: the draws and, if the estimator needs it, the mean.
    fn lanes(&self) -> usize {
        self.draws + usize::from(self.joint || self.control || self.visit)
    }

    /// Returns the number of columns in the backward pass. The columns are one per draw, then one for the correction,
    /// and then one for the change of G.
    fn columns(&self) -> usize {
        self.draws + usize::from(self.control) + usize::from(self.visit)
    }
}

impl Predictors {
    /// If `touched` is given, the function reads only these coordinates.
    fn project(
        &mut self,
        linear: &dyn LinearPredictor,
        batch: &[u32],
        parts: &Parts<'_>,
        mean: &[f64],
        z: &[f64],
        touched: Option<&[u32]>,
    ) {
        let (d, draws, lanes) = (mean.len(), parts.draws, parts.lanes());
        self.points.resize(d * lanes, 0.0);
        let mut pack = |i: usize| {
            let row = &mut self.points[i * lanes..(i + 1) * lanes];
            row[..draws].copy_from_slice(&z[i * draws..(i + 1) * draws]);
            if lanes > draws {
                row[draws] = mean[i];
            }
        };
        match touched {
            Some(touched) => touched.iter().for_each(|&i| pack(i as usize)),
            None if lanes == draws => self.points.copy_from_slice(z),
            None if draws == 1 => {
                for ((row, z), m) in self
                    .points
                    .as_chunks_mut::<2>()
                    .0
                    .iter_mut()
                    .zip(z)
                    .zip(mean)
                {
                    *row = [*z, *m];
                }
            }
            None => (0..d).for_each(pack),
        }
        let rows = batch.len() * linear.width();
        self.eta.resize(rows * lanes, 0.0);
        linear.project(
            &mut self.scratch,
            batch,
            Lanes::new(&self.points, d, lanes),
            LanesMut::new(&mut self.eta, rows, lanes),
        );
        if lanes > draws {
            column(&self.eta, draws, lanes, &mut self.eta_mean);
            self.eta_draws.clear();
            for row in self.eta.chunks_exact(lanes) {
                self.eta_draws.extend_from_slice(&row[..draws]);
            }
        } else {
            std::mem::swap(&mut self.eta, &mut self.eta_draws);
        }
    }

    /// Gathers the gradients of the stored entries of a batch into `stored`. If the table stores a diagonal, the
    /// function also gathers the curvatures. Entries before the first visit are zero.
    fn load(
        &mut self,
        linear: &dyn LinearPredictor,
        batch: &[u32],
        parts: &Parts<'_>,
        table: &Table,
    ) -> u64 {
        let (rows, width) = (batch.len() * linear.width(), linear.width());
        self.ones.resize(rows, 1.0);
        self.stored.clear();
        self.stored.resize(rows, 0.0);
        self.curvature_stored.clear();
        self.curvature_stored.resize(rows, 0.0);
        let entries = match &table.store {
            Store::Predictors(eta) if table.complete => eta,
            Store::Anchor { predictors, .. } if table.complete => predictors,
            _ => return 0,
        };
        self.eta_stored.clear();
        for &n in batch {
            self.eta_stored
                .extend_from_slice(&entries[n as usize * width..][..width]);
        }
        let eta = Lanes::new(&self.eta_stored, rows, 1);
        linear.link_gradient(batch, eta, LanesMut::new(&mut self.stored, rows, 1));
        if parts.view.is_none() {
            return batch.len() as u64;
        }
        let ones = Lanes::new(&self.ones[..rows], rows, 1);
        let out = LanesMut::new(&mut self.curvature_stored, rows, 1);
        linear.link_curvature(batch, eta, ones, out);
        3 * batch.len() as u64
    }

    /// Fills `rest` with the inputs of the backward pass. If the table stores a diagonal, the function also fills
    /// `second` with the change of the curvatures. Returns the number of evaluations of records.
    fn differences(
        &mut self,
        linear: &dyn LinearPredictor,
        batch: &[u32],
        parts: &Parts<'_>,
    ) -> u64 {
        let (draws, columns) = (parts.draws, parts.columns());
        let rows = batch.len() * linear.width();
        let mut calls = draws;
        self.first.resize(rows * draws, 0.0);
        self.second.resize(rows, 0.0);
        self.rest.resize(rows * columns, 0.0);
        linear.link_gradient(
            batch,
            Lanes::new(&self.eta_draws, rows, draws),
            LanesMut::new(&mut self.first, rows, draws),
        );
        let out_rows = self.rest.chunks_exact_mut(columns);
        for (out, row) in out_rows.zip(self.first.chunks_exact(draws)) {
            out[..draws].copy_from_slice(row);
        }
        if parts.joint && !parts.mean_alone {
            for (out, stored) in self.rest.chunks_exact_mut(columns).zip(&self.stored) {
                out[..draws].iter_mut().for_each(|x| *x -= stored);
            }
        }
        if parts.joint && parts.view.is_some() {
            let of_row = self.eta_mean.iter().zip(&self.curvature_stored);
            let etas = self.eta_draws.chunks_exact(draws);
            let out_rows = self.rest.chunks_exact_mut(columns);
            for ((out, etas), (mean, curvature)) in out_rows.zip(etas).zip(of_row) {
                for (out, eta) in out.iter_mut().zip(etas) {
                    *out -= curvature * (eta - mean);
                }
            }
        }
        if parts.control {
            self.eta_shift.clear();
            for (row, mean) in self.eta_draws.chunks_exact(draws).zip(&self.eta_mean) {
                let sum: f64 = row.iter().map(|eta| eta - mean).sum();
                self.eta_shift.push(sum / draws as f64);
            }
            let (at, factor) = if parts.joint {
                (&self.eta_stored, -1.0)
            } else {
                (&self.eta_mean, -parts.estimator.expansion())
            };
            linear.link_curvature(
                batch,
                Lanes::new(at, rows, 1),
                Lanes::new(&self.eta_shift, rows, 1),
                LanesMut::new(&mut self.second, rows, 1),
            );
            self.second.iter_mut().for_each(|x| *x *= factor);
            if parts.mean_alone {
                crate::reduce::axpy(-1.0, &self.stored, &mut self.second);
            }
            set_column(&self.second, draws, columns, &mut self.rest);
            calls += 2;
        }
        if parts.visit {
            let eta = Lanes::new(&self.eta_mean, rows, 1);
            linear.link_gradient(batch, eta, LanesMut::new(&mut self.second, rows, 1));
            for (second, stored) in self.second.iter_mut().zip(&self.stored) {
                *second -= stored;
            }
            set_column(&self.second, columns - 1, columns, &mut self.rest);
            calls += 1;
            if parts.view.is_some() {
                let ones = Lanes::new(&self.ones[..rows], rows, 1);
                let out = LanesMut::new(&mut self.second, rows, 1);
                linear.link_curvature(batch, eta, ones, out);
                for (second, stored) in self.second.iter_mut().zip(&self.curvature_stored) {
                    *second -= stored;
                }
                calls += 2;
            }
        }
        (calls * batch.len()) as u64
    }
}

impl<D: RecordDensity> Gradients<'_, D> {
    pub(super) fn add_predictors(&mut self, request: &GradientRequest<'_>, table: &Table) {
        let Some(linear) = self.density.linear() else {
            return;
        };
        let (d, draws, batch) = (self.density.dim(), self.draws, request.batch);
        let parts = Parts::of(request, table, linear, draws);
        let few = self.change.locate(self.density, batch);
        if parts.visit {
            self.change.clear(table);
        }
        let (p, mean) = (&mut self.predictors, &request.omega[..d]);
        p.project(linear, batch, &parts, mean, &self.z, self.change.touched());
        if parts.joint || parts.visit {
            self.calls += p.load(linear, batch, &parts, table);
        }
        self.calls += p.differences(linear, batch, &parts);
        let Change {
            gradient: change,
            diagonal,
            touched,
            ..
        } = &mut self.change;
        if parts.visit
            && let Some(view) = parts.view
        {
            view.adjoint_squares(&mut p.scratch, batch, &p.second, diagonal);
        }

        let (rows, columns) = (batch.len() * linear.width(), parts.columns());
        p.out.resize(d * columns, 0.0);
        linear.adjoint(
            &mut p.scratch,
            batch,
            Lanes::new(&p.rest, rows, columns),
            LanesMut::new(&mut p.out, d, columns),
        );
        let weight = self.density.records() as f64 / batch.len() as f64;
        let (gradient, correction) = (&mut self.gradient, &mut self.correction);
        if !few && draws == 1 {
            let add = |column: usize, factor: f64, target: &mut [f64]| match columns {
                1 => add_column::<1>(&p.out, column, factor, target),
                2 => add_column::<2>(&p.out, column, factor, target),
                _ => add_column::<3>(&p.out, column, factor, target),
            };
            add(0, weight, gradient);
            if parts.control {
                add(1, weight, correction);
            }
            if parts.visit {
                add(columns - 1, 1.0, change);
            }
            p.out.fill(0.0);
            return;
        }
        let mut unpack = |i: usize| {
            let row = &mut p.out[i * columns..(i + 1) * columns];
            let draws_here = &mut gradient[i * draws..(i + 1) * draws];
            for (g, x) in draws_here.iter_mut().zip(row.iter()) {
                *g += weight * x;
            }
            if parts.control {
                correction[i] += weight * row[draws];
            }
            if parts.visit {
                change[i] = row[columns - 1];
            }
            row.fill(0.0);
        };
        if few {
            touched.iter().for_each(|&i| unpack(i as usize));
        } else {
            (0..d).for_each(unpack);
        }
    }

    /// Computes `sum += Σₙ ∇ℓₙ(mean)` over all records. For a linear predictor, the function writes ηₙ to `stored`.
    /// Unless `diagonal` is empty, the function adds the diagonal of the Hessian to it.
    pub(super) fn full_gradient(
        &mut self,
        mean: &[f64],
        stored: &mut Vec<f64>,
        sum: &mut [f64],
        diagonal: &mut [f64],
    ) {
        let (d, n) = (self.density.dim(), self.density.records());
        self.calls += n as u64;
        let stride = self.density.stride();
        let batches = (0..n as u32).step_by(stride);
        let chunk = |first: u32| -> Vec<u32> {
            (first..(n as u32).min(first.saturating_add(stride as u32))).collect()
        };
        let Some(linear) = self.density.linear() else {
            let mut part = vec![0.0; d];
            for first in batches {
                self.density.batch_value_grad(
                    &mut self.ws,
                    &chunk(first),
                    Lanes::new(mean, d, 1),
                    &mut [0.0],
                    LanesMut::new(&mut part, d, 1),
                );
                crate::reduce::axpy(1.0, &part, sum);
            }
            return;
        };
        let width = linear.width();
        stored.resize(n * width, 0.0);
        let p = &mut self.predictors;
        for first in batches {
            let batch = chunk(first);
            let rows = batch.len() * width;
            let eta = &mut stored[first as usize * width..][..rows];
            let z = Lanes::new(mean, d, 1);
            linear.project(&mut p.scratch, &batch, z, LanesMut::new(eta, rows, 1));
            p.first.resize(rows, 0.0);
            let out = LanesMut::new(&mut p.first[..rows], rows, 1);
            linear.link_gradient(&batch, Lanes::new(eta, rows, 1), out);
            let r = Lanes::new(&p.first[..rows], rows, 1);
            linear.adjoint(&mut p.scratch, &batch, r, LanesMut::new(sum, d, 1));
            if let Some(view) = linear.expectations().filter(|_| !diagonal.is_empty()) {
                self.calls += 2 * batch.len() as u64;
                p.ones.resize(rows, 1.0);
                let (ones, eta) = (
                    Lanes::new(&p.ones[..rows], rows, 1),
                    Lanes::new(eta, rows, 1),
                );
                let out = LanesMut::new(&mut p.first[..rows], rows, 1);
                linear.link_curvature(&batch, eta, ones, out);
                view.adjoint_squares(&mut p.scratch, &batch, &p.first[..rows], diagonal);
            }
        }
    }
}
