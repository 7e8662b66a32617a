//! Components whose columns are of several kinds. The columns are independent given the component.

use std::ops::Range;

use crate::family::ExponentialFamily;
use crate::models::components::{Completed, Components};
use crate::models::predictive::predictive;

/// Components of several kinds over the same rows. Each kind has its own columns.
pub struct SeveralKinds {
    kinds: Vec<Box<dyn Components + Send>>,
    /// For each kind, the range of its parameters among the parameters of a component.
    ranges: Vec<Range<usize>>,
}

impl SeveralKinds {
    /// Creates components from these kinds, which must have the same number of rows.
    pub fn new(kinds: Vec<Box<dyn Components + Send>>) -> Self {
        let mut start = 0;
        let ranges = kinds.iter().map(|kind| {
            let width: usize = kind.prior().iter().map(|(family, _)| family.len()).sum();
            start += width;
            start - width..start
        });
        Self {
            ranges: ranges.collect(),
            kinds,
        }
    }

    /// Returns the parameters of one kind, given all parameters of a component.
    pub fn of_kind<'a>(&self, vector: &'a [f64], kind: usize) -> &'a [f64] {
        &vector[self.ranges[kind].clone()]
    }

    fn each<'a>(
        &'a self,
        vector: &'a [f64],
    ) -> impl Iterator<Item = (&'a (dyn Components + Send), &'a [f64])> {
        let kinds = self.kinds.iter().zip(&self.ranges);
        kinds.map(|(kind, range)| (&**kind, &vector[range.clone()]))
    }
}

impl Components for SeveralKinds {
    fn name(&self) -> &'static str {
        match &self.kinds[..] {
            [only] => only.name(),
            _ => "several-kinds",
        }
    }

    fn points(&self) -> usize {
        self.kinds[0].points()
    }

    /// Returns the size of a point. The size is 0 if all values of the point are missing.
    fn size(&self, point: usize) -> f64 {
        let sizes = self.kinds.iter().map(|kind| kind.size(point));
        sizes.fold(0.0, f64::max)
    }

    fn prior(&self) -> Vec<(ExponentialFamily, Vec<f64>)> {
        self.kinds.iter().flat_map(|kind| kind.prior()).collect()
    }

    fn own(&self, _width: usize) -> usize {
        let pairs = self.kinds.iter().zip(&self.ranges);
        pairs.map(|(kind, range)| kind.own(range.len())).sum()
    }

    fn log_density(&self, t: &[f64], point: usize) -> f64 {
        let terms = self.each(t);
        terms.map(|(kind, t)| kind.log_density(t, point)).sum()
    }

    fn add(&self, point: usize, weight: f64, out: &mut [f64]) {
        for (kind, range) in self.kinds.iter().zip(&self.ranges) {
            kind.add(point, weight, &mut out[range.clone()]);
        }
    }

    fn complete(
        &self,
        t: &[f64],
        point: usize,
        inverse: f64,
        statistics: &mut Vec<f64>,
    ) -> Option<Completed> {
        let (begin, mut any) = (statistics.len(), false);
        let mut all = Completed::default();
        for (kind, t) in self.each(t) {
            match kind.complete(t, point, inverse, statistics) {
                Some(found) => {
                    any = true;
                    all.log_integral += found.log_integral;
                    all.energy += found.energy;
                }
                None => {
                    let own = statistics.len();
                    statistics.resize(own + t.len(), 0.0);
                    kind.add(point, 1.0, &mut statistics[own..]);
                    let energy = kind.log_density(t, point);
                    all.log_integral += inverse * energy;
                    all.energy += energy;
                }
            }
        }
        if !any {
            statistics.truncate(begin);
        }
        any.then_some(all)
    }

    fn log_predictive(&self, lambda: &[f64], point: usize) -> Option<f64> {
        let terms = self.each(lambda);
        Some(
            terms
                .map(|(kind, lambda)| predictive(kind, lambda, point))
                .sum(),
        )
    }

    fn log_power(&self, t: &[f64], size: f64, s: f64) -> f64 {
        let terms = self.each(t);
        terms.map(|(kind, t)| kind.log_power(t, size, s)).sum()
    }

    fn log_scale(&self, point: usize) -> f64 {
        self.kinds.iter().map(|kind| kind.log_scale(point)).sum()
    }

    fn log_jacobian(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.log_jacobian()).sum()
    }

    fn lean(&self) -> f64 {
        let leans = self.kinds.iter().map(|kind| kind.lean());
        leans.fold(0.0, f64::max)
    }

    fn partition_is_finite(&self) -> bool {
        self.kinds.iter().all(|kind| kind.partition_is_finite())
    }
}
