//! Gradients in which the draw is integrated out, for likelihoods with one linear predictor per record.

use jensen_density::{
    Lanes, LanesMut, LinearPredictor, LinkExpectations, PredictorScratch, RecordDensity,
};

use super::change::Change;
use super::gradients::{GradientRequest, Gradients, all_finite};
use super::table::{Store, Table};

#[derive(Clone, Debug, Default)]
pub(super) struct Expected {
    scratch: PredictorScratch,
    /// The variances σ² of the coordinates on which the batch depends.
    variances: Vec<f64>,
    eta_mean: Vec<f64>,
    eta_variance: Vec<f64>,
    /// The expectations `E[ℓ']` and `E[ℓ'']` for the records of the batch.
    first: Vec<f64>,
    second: Vec<f64>,
    first_change: Vec<f64>,
    second_change: Vec<f64>,
}

impl Expected {
    pub(super) fn store(&self, batch: &[u32], first: &mut [f64], second: &mut [f64]) {
        for (&n, (a, c)) in batch.iter().zip(self.first.iter().zip(&self.second)) {
            first[n as usize] = *a;
            second[n as usize] = *c;
        }
    }
}

impl<D: RecordDensity> Gradients<'_, D> {
    pub(super) fn evaluate_expectations(
        &mut self,
        request: &GradientRequest<'_>,
        table: &Table,
        out: &mut [f64],
    ) -> bool {
        let (d, batch) = (self.density.dim(), request.batch);
        let linear = self.density.linear();
        let Some((linear, link)) = linear.and_then(|l| Some((l, l.expectations()?))) else {
            return false;
        };
        let Store::Expectations { first, second } = &table.store else {
            return false;
        };
        let mean = &request.omega[..d];
        let few = self.change.locate(self.density, batch);
        self.change.clear(table);
        self.draw(request.omega, request.noise);
        self.prior_at_draws(mean, out);
        let held = table
            .complete
            .then_some((first.as_slice(), second.as_slice()));
        self.expect(request, few, held, linear, link);

        // This part is added back. It is also the change of the sums when the entries are renewed.
        let (out_mean, out_spread) = out.split_at_mut(d);
        let e = &mut self.expected;
        let rows = batch.len();
        let Change {
            gradient,
            diagonal,
            touched,
            ..
        } = &mut self.change;
        let r = Lanes::new(&e.first_change, rows, 1);
        linear.adjoint(&mut e.scratch, batch, r, LanesMut::new(gradient, d, 1));
        link.adjoint_squares(&mut e.scratch, batch, &e.second_change, diagonal);
        let weight = self.density.records() as f64 / rows as f64;
        let mut add = |i: usize| {
            out_mean[i] += weight * gradient[i];
            out_spread[i] += weight * e.variances[i] * diagonal[i];
        };
        if few {
            touched.iter().for_each(|&i| add(i as usize));
        } else {
            (0..d).for_each(&mut add);
        }
        if table.complete {
            crate::reduce::axpy(1.0, &table.sum, &mut out[..d]);
            self.add_diagonal(request.omega, table, out);
        }
        all_finite(out)
    }

    fn prior_at_draws(&mut self, mean: &[f64], out: &mut [f64]) {
        let (d, draws) = (self.density.dim(), self.draws);
        self.density.prior_value_grad(
            &mut self.ws,
            Lanes::new(&self.z, d, draws),
            &mut self.values,
            LanesMut::new(&mut self.gradient, d, draws),
        );
        self.scratch.resize(d, 0.0);
        self.density.prior_value_grad(
            &mut self.ws,
            Lanes::new(mean, d, 1),
            &mut self.values[..1],
            LanesMut::new(&mut self.scratch, d, 1),
        );
        self.density.prior_hvp(
            &mut self.ws,
            Lanes::new(mean, d, 1),
            Lanes::new(&self.shift, d, 1),
            LanesMut::new(&mut self.correction, d, 1),
        );
        let (out_mean, out_spread) = out.split_at_mut(d);
        let scale = 1.0 / draws as f64;
        for i in 0..d {
            let row = i * draws..(i + 1) * draws;
            let (mut mean, mut spread) = (0.0, 0.0);
            for (g, delta) in self.gradient[row.clone()]
                .iter()
                .zip(&self.displacement[row])
            {
                mean += g;
                spread += (g - self.scratch[i]) * delta;
            }
            out_mean[i] = mean * scale - self.correction[i];
            out_spread[i] = spread * scale + 1.0;
        }
    }

    fn expect(
        &mut self,
        request: &GradientRequest<'_>,
        few: bool,
        held: Option<(&[f64], &[f64])>,
        linear: &dyn LinearPredictor,
        link: &dyn LinkExpectations,
    ) {
        let (d, batch) = (self.density.dim(), request.batch);
        let mean = &request.omega[..d];
        let e = &mut self.expected;
        let rows = batch.len();
        for buffer in [
            &mut e.eta_mean,
            &mut e.eta_variance,
            &mut e.first,
            &mut e.second,
        ] {
            buffer.resize(rows, 0.0);
        }
        let log_sd = &request.omega[d..2 * d];
        e.variances.resize(d, 0.0);
        let mut variance = |i: usize| e.variances[i] = (2.0 * log_sd[i]).exp();
        if few {
            self.change
                .touched
                .iter()
                .for_each(|&i| variance(i as usize));
        } else {
            (0..d).for_each(variance);
        }
        let eta = LanesMut::new(&mut e.eta_mean, rows, 1);
        linear.project(&mut e.scratch, batch, Lanes::new(mean, d, 1), eta);
        link.project_squares(&mut e.scratch, batch, &e.variances, &mut e.eta_variance);
        link.link_expectation(
            batch,
            &e.eta_mean,
            &e.eta_variance,
            &mut e.first,
            &mut e.second,
        );
        self.calls += 3 * rows as u64;
        e.first_change.clone_from(&e.first);
        e.second_change.clone_from(&e.second);
        if let Some((first, second)) = held {
            for (i, &n) in batch.iter().enumerate() {
                e.first_change[i] -= first[n as usize];
                e.second_change[i] -= second[n as usize];
            }
        }
    }
}
