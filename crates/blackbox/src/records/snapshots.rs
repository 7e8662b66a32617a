//! Minibatch gradients for models without linear predictors, and the table of the incremental estimator.

use jensen_density::{Group, Lanes, LanesMut, RecordDensity};

use super::estimator::RecordEstimator;
use super::gradients::{GradientRequest, Gradients};
use super::table::{Slot, Store, Table};
use crate::reduce::axpy;

#[derive(Clone, Debug, Default)]
pub(super) struct Snapshots {
    points: Vec<f64>,
    gradient: Vec<f64>,
    values: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
}

fn spread(slot: &Slot, dim: usize) -> Vec<f64> {
    let mut out = vec![0.0; dim];
    for (&i, v) in slot.coordinates.iter().zip(&slot.values) {
        out[i as usize] = *v;
    }
    out
}

impl<D: RecordDensity> Gradients<'_, D> {
    pub(super) fn add_batch(&mut self, request: &GradientRequest<'_>, table: &Table) {
        let (d, draws, batch) = (self.density.dim(), self.draws, request.batch);
        let estimator = request.estimator;
        let mean = &request.omega[..d];
        let weight = self.density.records() as f64 / batch.len() as f64;
        let s = &mut self.snapshots;
        let visit = request.visit && table.has_sums();
        if visit {
            self.change.locate(self.density, batch);
        }
        let anchor = match (&table.store, estimator) {
            (Store::Anchor { mean, .. }, RecordEstimator::JointSvrg) if table.complete => {
                Some(mean)
            }
            _ => None,
        };
        // A single call evaluates the draws together with all other lanes of the batch, because additional lanes cost
        // little.
        let extra = match anchor {
            Some(_) => 3,
            None => usize::from(visit),
        };
        let lanes = draws + extra;
        s.points.clear();
        for (i, row) in self.z.chunks_exact(draws).enumerate() {
            s.points.extend_from_slice(row);
            match anchor {
                Some(at) => {
                    let (at, shift) = (at[i], self.shift[i]);
                    s.points.extend([at, at + shift, at - shift]);
                }
                None if visit => s.points.push(mean[i]),
                None => {}
            }
        }
        s.gradient.resize(d * lanes, 0.0);
        s.values.resize(lanes, 0.0);
        self.density.batch_value_grad(
            &mut self.ws,
            batch,
            Lanes::new(&s.points, d, lanes),
            &mut s.values,
            LanesMut::new(&mut s.gradient, d, lanes),
        );
        self.calls += (batch.len() * lanes) as u64;
        for (i, row) in s.gradient.chunks_exact(lanes).enumerate() {
            let (at_draws, beside) = row.split_at(draws);
            let stored = anchor.map_or(0.0, |_| beside[0]);
            let out = &mut self.gradient[i * draws..(i + 1) * draws];
            for (g, x) in out.iter_mut().zip(at_draws) {
                *g += weight * (x - stored);
            }
            if anchor.is_some() {
                // At any distance from the anchor, the odd part has mean zero over the draws.
                self.correction[i] -= weight * 0.5 * (beside[1] - beside[2]);
            } else if visit {
                self.change.gradient[i] = beside[0];
            }
        }

        let expansion = estimator.expansion();
        if anchor.is_none() && expansion > 0.0 {
            s.first.resize(d, 0.0);
            self.density.batch_hvp(
                &mut self.ws,
                batch,
                Lanes::new(mean, d, 1),
                Lanes::new(&self.shift, d, 1),
                LanesMut::new(&mut s.first, d, 1),
            );
            axpy(-weight * expansion, &s.first, &mut self.correction);
            self.calls += 2 * batch.len() as u64;
        }
        self.take_out_slots(request, table);
    }

    fn take_out_slots(&mut self, request: &GradientRequest<'_>, table: &Table) {
        let (d, draws, batch) = (self.density.dim(), self.draws, request.batch);
        let weight = self.density.records() as f64 / batch.len() as f64;
        let visit = request.visit && table.has_sums();
        let s = &mut self.snapshots;
        let Store::Slots(slots) = &table.store else {
            return;
        };
        if !(request.estimator.remembers_means() && table.complete) {
            return;
        }
        let groups = slots.group(batch.iter().copied());
        let spreads: Vec<Vec<f64>> = groups
            .iter()
            .map(|(slot, _)| match slots.slot(slot) {
                sparse if !sparse.coordinates.is_empty() => spread(sparse, d),
                _ => Vec::new(),
            })
            .collect();
        let points: Vec<Group<'_>> = groups
            .iter()
            .zip(&spreads)
            .map(|((slot, records), spread)| Group {
                records,
                point: if spread.is_empty() {
                    &slots.slot(slot).values
                } else {
                    spread
                },
            })
            .collect();
        s.first.clear();
        s.first.resize(d, 0.0);
        s.second.clear();
        s.second.resize(d, 0.0);
        self.density.grouped(
            &mut self.ws,
            &points,
            &self.shift,
            &mut s.first,
            &mut s.second,
        );
        if request.estimator == RecordEstimator::JointMean {
            axpy(-weight, &s.first, &mut self.correction);
        } else {
            for (row, first) in self.gradient.chunks_exact_mut(draws).zip(&s.first) {
                row.iter_mut().for_each(|g| *g -= weight * first);
            }
        }
        axpy(-weight, &s.second, &mut self.correction);
        if visit {
            axpy(-1.0, &s.first, &mut self.change.gradient);
        }
        self.calls += 3 * batch.len() as u64;
    }

    pub(super) fn add_incremental(&mut self, request: &GradientRequest<'_>, table: &Table) {
        let Store::Slots(slots) = &table.store else {
            return;
        };
        if !table.complete {
            return;
        }
        let (d, draws, batch) = (self.density.dim(), self.draws, request.batch);
        let scale = request.estimator.incremental() / draws as f64;
        let weight = self.density.records() as f64 / batch.len() as f64;
        self.incremental.resize(request.omega.len(), 0.0);
        let mut part = vec![0.0; request.omega.len()];
        let s = &mut self.snapshots;
        s.points.resize(d * draws, 0.0);
        s.gradient.resize(d * draws, 0.0);
        s.values.resize(draws, 0.0);
        let in_batch = slots.group(batch.iter().copied());
        let all = slots.all();
        let parts = all
            .iter()
            .map(|(slot, records)| (slot, records, 1.0))
            .chain(
                in_batch
                    .iter()
                    .map(|(slot, records)| (slot, records, -weight)),
            );
        for (slot, records, weight) in parts {
            let omega = &slots.slot(slot).values;
            let z = LanesMut::new(&mut s.points, d, draws);
            self.family.transform(omega, request.noise, z);
            self.density.batch_value_grad(
                &mut self.ws,
                records,
                Lanes::new(&s.points, d, draws),
                &mut s.values,
                LanesMut::new(&mut s.gradient, d, draws),
            );
            self.calls += (records.len() * draws) as u64;
            part.fill(0.0);
            let gradient = Lanes::new(&s.gradient, d, draws);
            self.family.pull(omega, request.noise, gradient, &mut part);
            axpy(scale * weight, &part, &mut self.incremental);
        }
    }
}
