//! The change in the sums of a table when its entries are renewed.

use jensen_density::RecordDensity;

use super::gradients::all_finite;
use super::table::Table;
use crate::reduce::axpy;

#[derive(Clone, Debug)]
pub(super) struct Change {
    /// The change `Σ_B ∇ℓₙ(μ) − ∇ℓₙ(μⁿ)` of the sum of gradients, with d numbers, or the expectation of that change.
    pub(super) gradient: Vec<f64>,
    /// The change `diag Σ_B ∇²ℓₙ(μ) − ∇²ℓₙ(μⁿ)` of the sum of Hessian diagonals, with d numbers, if the table stores a
    /// diagonal.
    pub(super) diagonal: Vec<f64>,
    /// The coordinates on which the batch depends, if there are few of them. The values of the other coordinates are
    /// undefined.
    pub(super) touched: Vec<u32>,
    few: bool,
}

impl Change {
    pub(super) fn new(dim: usize) -> Self {
        Self {
            gradient: vec![0.0; dim],
            diagonal: vec![0.0; dim],
            touched: Vec::new(),
            few: false,
        }
    }

    pub(super) fn locate<D: RecordDensity>(&mut self, density: &D, batch: &[u32]) -> bool {
        self.touched.clear();
        self.few = density.support(batch, &mut self.touched);
        self.few
    }

    pub(super) fn clear(&mut self, table: &Table) {
        let diagonal = (!table.diagonal.is_empty()).then_some(&mut self.diagonal);
        for change in [Some(&mut self.gradient), diagonal].into_iter().flatten() {
            if self.few {
                self.touched.iter().for_each(|&i| change[i as usize] = 0.0);
            } else {
                change.fill(0.0);
            }
        }
    }

    pub(super) fn touched(&self) -> Option<&[u32]> {
        self.few.then_some(&self.touched)
    }

    pub(super) fn is_finite(&self, table: &Table) -> bool {
        let finite = |change: &[f64]| match self.touched() {
            Some(touched) => touched.iter().all(|&i| change[i as usize].is_finite()),
            None => all_finite(change),
        };
        finite(&self.gradient) && (table.diagonal.is_empty() || finite(&self.diagonal))
    }

    pub(super) fn add_to(&self, table: &mut Table) {
        add(&self.gradient, self.touched(), &mut table.sum);
        if !table.diagonal.is_empty() {
            add(&self.diagonal, self.touched(), &mut table.diagonal);
        }
    }
}

fn add(change: &[f64], touched: Option<&[u32]>, sum: &mut [f64]) {
    match touched {
        Some(touched) => touched
            .iter()
            .for_each(|&i| sum[i as usize] += change[i as usize]),
        None => axpy(1.0, change, sum),
    }
}
