//! The joint control variate as published (Wang, Geffner and Domke 2024, Eq. 13 and Algorithm 2).
//!
//! Let `k_n(z) = N log p(x_n | z) + log p(z)`, and let wⁿ = (μⁿ, σⁿ) be the parameters at the last visit of a record.
//! The expansion of the record is `∇k_n(μⁿ) + ∇²k_n(μⁿ) (σⁿ ⊙ ε)`. The prior is part of the entry of every record, and
//! the displacement uses the *stored* spread. The expectation of the expansion over ε is ∇k_n(μⁿ), so the estimate adds
//! to the gradient of the mean
//!
//! ```text
//! 1/N Σ_m ∇k_m(μᵐ) − 1/|B| Σ_{n ∈ B} [∇k_n(μⁿ) + ∇²k_n(μⁿ) (σⁿ ⊙ ε)],
//! ```
//!
//! and zero to the gradient of the spread. The terms of the sum are e_m = ∇ log p(x_m | μᵐ) + ∇ log p(μᵐ)/N. The factor
//! 1/N follows from the definition of k.

use jensen_density::{Group, Lanes, LanesMut, RecordDensity};

use super::estimator::RecordEstimator;
use super::gradients::{GradientRequest, Gradients, all_finite};
use super::table::{Store, Table};
use crate::reduce::axpy;

impl<D: RecordDensity> Gradients<'_, D> {
    pub(super) fn evaluate_paper(
        &mut self,
        request: &GradientRequest<'_>,
        table: &Table,
        out: &mut [f64],
    ) -> bool {
        let naive = GradientRequest {
            estimator: RecordEstimator::Naive,
            visit: false,
            ..*request
        };
        if !self.evaluate(&naive, table, out) {
            return false;
        }
        let d = self.density.dim();
        let weight = self.density.records() as f64 / request.batch.len() as f64;
        let [mut first, mut second] = [vec![0.0; d], vec![0.0; d]];
        self.add_stored(request, table, &mut first, &mut second);
        if table.complete {
            let mean = &mut out[..d];
            axpy(1.0, &table.sum, mean);
            axpy(-weight, &first, mean);
            axpy(-weight, &second, mean);
        }
        if request.visit {
            // The change is the difference between the new and the old entries of the batch.
            self.change
                .gradient
                .iter_mut()
                .zip(&first)
                .for_each(|(c, x)| *c = -x);
            let none = vec![0.0; d];
            let point = &request.omega[..d];
            first.fill(0.0);
            self.add_entries(request.batch, point, &none, &mut first, &mut second);
            axpy(1.0, &first, &mut self.change.gradient);
        }
        all_finite(out) && (!request.visit || all_finite(&self.change.gradient))
    }

    /// Adds the gradients of the batch's records at their stored points to `first`. Adds the products of their Hessians
    /// with the displacements to `second`. A displacement is the stored spread times the current noise.
    fn add_stored(
        &mut self,
        request: &GradientRequest<'_>,
        table: &Table,
        first: &mut [f64],
        second: &mut [f64],
    ) {
        let Store::Slots(slots) = &table.store else {
            return;
        };
        let (d, draws) = (self.density.dim(), self.draws);
        let average = |row: &[f64]| row.iter().sum::<f64>() / draws as f64;
        let noise: Vec<f64> = request
            .noise
            .as_slice()
            .chunks_exact(draws)
            .map(average)
            .collect();
        let mut z = vec![0.0; d * draws];
        for (slot, records) in slots.group(request.batch.iter().copied()).iter() {
            let omega = &slots.slot(slot).values;
            let (mean, rest) = omega.split_at(d);
            let shift: Vec<f64> = if self.family.is_factorised() {
                rest.iter()
                    .zip(&noise)
                    .map(|(sd, noise)| sd * noise)
                    .collect()
            } else {
                let points = LanesMut::new(&mut z, d, draws);
                self.family.transform(omega, request.noise, points);
                let rows = z.chunks_exact(draws).zip(mean);
                rows.map(|(z, mean)| average(z) - mean).collect()
            };
            self.add_entries(records, mean, &shift, first, second);
        }
    }

    /// Adds `Σ eₙ` over records at a common point to `first`, and the product of the sum of their Hessians with `shift`
    /// to `second`.
    fn add_entries(
        &mut self,
        records: &[u32],
        point: &[f64],
        shift: &[f64],
        first: &mut [f64],
        second: &mut [f64],
    ) {
        let d = self.density.dim();
        let group = [Group { records, point }];
        self.density
            .grouped(&mut self.ws, &group, shift, first, second);
        self.calls += 3 * records.len() as u64;
        let share = records.len() as f64 / self.density.records() as f64;
        let at = Lanes::new(point, d, 1);
        let mut part = vec![0.0; d];
        let into = LanesMut::new(&mut part, d, 1);
        self.density
            .prior_value_grad(&mut self.ws, at, &mut [0.0], into);
        axpy(share, &part, first);
        let into = LanesMut::new(&mut part, d, 1);
        self.density
            .prior_hvp(&mut self.ws, at, Lanes::new(shift, d, 1), into);
        axpy(share, &part, second);
    }

    pub(super) fn visit_paper(
        &mut self,
        request: &GradientRequest<'_>,
        table: &mut Table,
        complete: bool,
    ) {
        let Store::Slots(slots) = &mut table.store else {
            return;
        };
        let mut kept = request.omega.to_vec();
        if self.family.is_factorised() {
            // The table stores standard deviations, because every later batch would compute their exponentials again.
            let log_sd = &mut kept[self.density.dim()..];
            log_sd.iter_mut().for_each(|x| *x = x.exp());
        }
        slots.assign(request.batch, &[], &kept);
        axpy(1.0, &self.change.gradient, &mut table.sum);
        table.complete = complete;
    }
}
