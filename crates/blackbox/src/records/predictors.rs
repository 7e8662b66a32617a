//! Minibatch gradients of linear predictors: everything is done on ηₙ.

use jensen_density::{Lanes, LanesMut, PredictorScratch, RecordDensity};

use super::estimator::RecordEstimator;
use super::gradients::{Gradients, Request};
use super::table::{Store, Table};

/// Records of a chunk of a full pass.
const CHUNK: usize = 1024;

/// Scratch memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Predictors {
    scratch: PredictorScratch,
    /// `d × (draws + 1)`: draws and mean.
    points: Vec<f64>,
    /// `(B·K) × (draws + 1)`.
    eta: Vec<f64>,
    eta_draws: Vec<f64>,
    /// η at the mean, B·K.
    eta_mean: Vec<f64>,
    eta_stored: Vec<f64>,
    /// η of the mean displacement, B·K.
    eta_shift: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
    /// `ℓₙ''` at the mean and as stored, B; for one predictor a record.
    curvature_mean: Vec<f64>,
    curvature_stored: Vec<f64>,
    /// Ones.
    ones: Vec<f64>,
    /// `(B·K) × columns`: what goes back.
    rest: Vec<f64>,
    /// `d × columns`; zero between calls.
    out: Vec<f64>,
}

impl Predictors {
    /// Remembers η at the mean of the last batch.
    pub(super) fn store(&self, batch: &[u32], table: &mut [f64]) {
        let width = self.eta_mean.len() / batch.len().max(1);
        for (eta, &n) in self.eta_mean.chunks_exact(width).zip(batch) {
            table[n as usize * width..][..width].copy_from_slice(eta);
        }
    }
}

/// Copies every `stride`-th number, from `first` on.
fn column(x: &[f64], first: usize, stride: usize, out: &mut Vec<f64>) {
    out.clear();
    out.extend(x.iter().skip(first).step_by(stride));
}

/// Writes every `stride`-th number, from `first` on.
fn set_column(x: &[f64], first: usize, stride: usize, out: &mut [f64]) {
    for (out, x) in out.iter_mut().skip(first).step_by(stride).zip(x) {
        *out = *x;
    }
}

/// `target += factor · column` of a matrix of C columns.
fn add_column<const C: usize>(rows: &[f64], column: usize, factor: f64, target: &mut [f64]) {
    for (target, row) in target.iter_mut().zip(rows.as_chunks::<C>().0) {
        *target += factor * row[column];
    }
}

impl<D: RecordDensity> Gradients<'_, D> {
    /// Adds the batch's part to `gradient` and `correction`; writes `change` if asked for.
    pub(super) fn add_predictors(&mut self, request: &Request<'_>, table: &Table) {
        let Some(linear) = self.density.linear() else {
            return;
        };
        let (d, draws, batch) = (self.density.dim(), self.draws, request.batch);
        let (rows, width) = (batch.len() * linear.width(), linear.width());
        let estimator = request.estimator;
        let joint = matches!(
            estimator,
            RecordEstimator::Joint | RecordEstimator::JointSvrg
        );
        // Either every draw's column carries its own expansion, which then serves the spread as well, or
        // the mean displacement's has a column apart, for the mean alone.
        let diagonal = (!table.squares.is_empty())
            .then(|| linear.expectations())
            .flatten();
        let inline = joint && diagonal.is_some();
        let control = estimator.expansion() > 0.0 || (joint && !inline);
        // Slots of `inc` hold ω; they have no sum that changes.
        let visit = request.visit && matches!(table.store, Store::Predictors(_));
        let lanes = draws + usize::from(joint || control || visit);
        let sparse = self.locate(batch);
        let p = &mut self.predictors;

        // η at the draws and, for whatever needs it, at the mean.
        p.points.resize(d * lanes, 0.0);
        let mean = &request.omega[..d];
        if lanes == draws && !sparse {
            p.points.copy_from_slice(&self.z);
        } else if draws == 1 && !sparse {
            for ((row, z), m) in p.points.chunks_exact_mut(2).zip(&self.z).zip(mean) {
                row[0] = *z;
                row[1] = *m;
            }
        } else {
            let mut pack = |i: usize| {
                let row = &mut p.points[i * lanes..(i + 1) * lanes];
                for (out, z) in row.iter_mut().zip(&self.z[i * draws..(i + 1) * draws]) {
                    *out = *z;
                }
                if lanes > draws {
                    row[draws] = mean[i];
                }
            };
            if sparse {
                self.changed.iter().for_each(|&i| pack(i as usize));
            } else {
                (0..d).for_each(pack);
            }
        }
        p.eta.resize(rows * lanes, 0.0);
        linear.project(
            &mut p.scratch,
            batch,
            Lanes::new(&p.points, d, lanes),
            LanesMut::new(&mut p.eta, rows, lanes),
        );
        if lanes > draws {
            column(&p.eta, draws, lanes, &mut p.eta_mean);
            p.eta_draws.clear();
            for row in p.eta.chunks_exact(lanes) {
                p.eta_draws.extend_from_slice(&row[..draws]);
            }
        } else {
            std::mem::swap(&mut p.eta, &mut p.eta_draws);
        }

        // What goes back: a column a draw, then the correction, then the change of G.
        let columns = draws + usize::from(control) + usize::from(visit);
        p.rest.resize(rows * columns, 0.0);
        p.first.resize(rows * draws, 0.0);
        linear.link_gradient(
            batch,
            Lanes::new(&p.eta_draws, rows, draws),
            LanesMut::new(&mut p.first, rows, draws),
        );
        let out_rows = p.rest.chunks_exact_mut(columns);
        for (out, row) in out_rows.zip(p.first.chunks_exact(draws)) {
            out[..draws].copy_from_slice(row);
        }
        self.calls += (batch.len() * draws) as u64;
        // The stored entries, where there are any.
        let stored = match &table.store {
            Store::Predictors(eta) if table.complete => Some(eta),
            Store::Anchor { predictors, .. } if table.complete => Some(predictors),
            _ => None,
        };
        p.first.resize(rows, 0.0);
        p.second.resize(rows, 0.0);
        if let Some(eta) = stored {
            p.eta_stored.clear();
            for &n in batch {
                p.eta_stored
                    .extend_from_slice(&eta[n as usize * width..][..width]);
            }
            linear.link_gradient(
                batch,
                Lanes::new(&p.eta_stored, rows, 1),
                LanesMut::new(&mut p.first, rows, 1),
            );
            self.calls += batch.len() as u64;
        } else {
            p.first.fill(0.0);
        }
        // ℓₙ'' as stored: for one predictor a record the product with any displacement follows.
        if diagonal.is_some() {
            p.ones.resize(rows, 1.0);
            p.curvature_stored.clear();
            p.curvature_stored.resize(rows, 0.0);
            if stored.is_some() {
                linear.link_curvature(
                    batch,
                    Lanes::new(&p.eta_stored, rows, 1),
                    Lanes::new(&p.ones[..rows], rows, 1),
                    LanesMut::new(&mut p.curvature_stored, rows, 1),
                );
                self.calls += 2 * batch.len() as u64;
            }
        }
        if joint && stored.is_some() {
            for (row, first) in p.rest.chunks_exact_mut(columns).zip(&p.first) {
                row[..draws].iter_mut().for_each(|x| *x -= first);
            }
        }
        if inline {
            let of_row = p.eta_mean.iter().zip(&p.curvature_stored);
            let rows = p.rest.chunks_exact_mut(columns);
            for ((out, eta), (mean, curvature)) in
                rows.zip(p.eta_draws.chunks_exact(draws)).zip(of_row)
            {
                for (out, eta) in out.iter_mut().zip(eta) {
                    *out -= curvature * (eta - mean);
                }
            }
        }
        if control {
            p.second.fill(0.0);
            let at = if joint { &p.eta_stored } else { &p.eta_mean };
            if !joint || stored.is_some() {
                p.eta_shift.clear();
                for (row, mean) in p.eta_draws.chunks_exact(draws).zip(&p.eta_mean) {
                    let sum: f64 = row.iter().map(|eta| eta - mean).sum();
                    p.eta_shift.push(sum / draws as f64);
                }
                linear.link_curvature(
                    batch,
                    Lanes::new(at, rows, 1),
                    Lanes::new(&p.eta_shift, rows, 1),
                    LanesMut::new(&mut p.second, rows, 1),
                );
                let factor = if joint { -1.0 } else { -estimator.expansion() };
                p.second.iter_mut().for_each(|x| *x *= factor);
                self.calls += 2 * batch.len() as u64;
            }
            set_column(&p.second, draws, columns, &mut p.rest);
        }
        if visit {
            linear.link_gradient(
                batch,
                Lanes::new(&p.eta_mean, rows, 1),
                LanesMut::new(&mut p.second, rows, 1),
            );
            for (second, first) in p.second.iter_mut().zip(&p.first) {
                *second -= first;
            }
            set_column(&p.second, columns - 1, columns, &mut p.rest);
            self.calls += batch.len() as u64;
        }
        if visit && let Some(diagonal) = diagonal {
            linear.link_curvature(
                batch,
                Lanes::new(&p.eta_mean, rows, 1),
                Lanes::new(&p.ones[..rows], rows, 1),
                LanesMut::new(&mut p.second, rows, 1),
            );
            for (second, stored) in p.second.iter_mut().zip(&p.curvature_stored) {
                *second -= stored;
            }
            let change = &mut self.change_squares;
            diagonal.adjoint_squares(&mut p.scratch, batch, &p.second, change);
            self.calls += 2 * batch.len() as u64;
        }

        p.out.resize(d * columns, 0.0);
        linear.adjoint(
            &mut p.scratch,
            batch,
            Lanes::new(&p.rest, rows, columns),
            LanesMut::new(&mut p.out, d, columns),
        );
        let weight = self.density.records() as f64 / batch.len() as f64;
        let (gradient, correction) = (&mut self.gradient, &mut self.correction);
        let change = &mut self.change;
        if !sparse && draws == 1 {
            let add = |column: usize, factor: f64, target: &mut [f64]| match columns {
                1 => add_column::<1>(&p.out, column, factor, target),
                2 => add_column::<2>(&p.out, column, factor, target),
                _ => add_column::<3>(&p.out, column, factor, target),
            };
            add(0, weight, gradient);
            if control {
                add(1, weight, correction);
            }
            if visit {
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
            if control {
                correction[i] += weight * row[draws];
            }
            if visit {
                change[i] = row[columns - 1];
            }
            row.fill(0.0);
        };
        if sparse {
            self.changed.iter().for_each(|&i| unpack(i as usize));
        } else {
            (0..d).for_each(unpack);
        }
    }

    /// `sum += Σₙ ∇ℓₙ(mean)` over all records; for a linear predictor ηₙ goes to `stored`. The diagonal of
    /// the Hessian is added to `squares` where that is not empty.
    pub(super) fn full_gradient(
        &mut self,
        mean: &[f64],
        stored: &mut Vec<f64>,
        sum: &mut [f64],
        squares: &mut [f64],
    ) {
        let (d, n) = (self.density.dim(), self.density.records());
        self.calls += n as u64;
        let batches = (0..n as u32).step_by(CHUNK);
        let chunk =
            |first: u32| -> Vec<u32> { (first..(n as u32).min(first + CHUNK as u32)).collect() };
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
            if let Some(diagonal) = linear.expectations().filter(|_| !squares.is_empty()) {
                let (ones, eta) = (vec![1.0; rows], Lanes::new(eta, rows, 1));
                let out = LanesMut::new(&mut p.first[..rows], rows, 1);
                linear.link_curvature(&batch, eta, Lanes::new(&ones, rows, 1), out);
                diagonal.adjoint_squares(&mut p.scratch, &batch, &p.first[..rows], squares);
            }
        }
    }
}
