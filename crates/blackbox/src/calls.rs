//! The number of evaluations that a fit has made, in two units.

use std::ops::{Add, AddAssign};

use jensen_run::Record;
use serde::{Deserialize, Serialize};

/// The number of draws for which gradients count as one oracle call.
pub const GRADIENT_BATCH: usize = 256;

/// The number of draws for which Hessian-vector products count as two oracle calls.
pub const PRODUCT_BATCH: usize = 85;

/// The number of draws for which an estimate of a change of the ELBO counts as one oracle call.
pub const CHANGE_BATCH: usize = 128;

/// The number of evaluated draws, separately for each kind of evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    /// The number of values that were computed without derivatives.
    pub values: u64,
    /// The number of values that were computed with gradients.
    pub gradients: u64,
    /// The number of Hessian-vector products.
    pub products: u64,
}

impl Calls {
    /// Returns the number of evaluated draws, where Hessian-vector products count twice.
    pub fn lanes(&self) -> u64 {
        self.values + self.gradients + 2 * self.products
    }

    /// Returns the number of oracle calls: minibatches of the default size, where Hessian-vector products count twice.
    pub fn minibatches(&self) -> f64 {
        let share = |draws: u64, batch: usize| draws as f64 / batch as f64;
        share(self.values, 2 * CHANGE_BATCH)
            + share(self.gradients, GRADIENT_BATCH)
            + 2.0 * share(self.products, PRODUCT_BATCH)
    }

    /// Returns the numbers of evaluations, multiplied by the fraction `part / whole` and rounded up. The fraction is
    /// the share of the data that each lane evaluates.
    #[must_use]
    pub fn share(&self, (part, whole): (u64, u64)) -> Self {
        let share = |lanes: u64| {
            let counted = u128::from(lanes) * u128::from(part);
            counted.div_ceil(u128::from(whole.max(1))) as u64
        };
        Self {
            values: share(self.values),
            gradients: share(self.gradients),
            products: share(self.products),
        }
    }

    /// Adds the fields `oracle_calls` and `lane_evaluations` to a record.
    #[must_use]
    pub fn on(&self, mut record: Record) -> Record {
        record.oracle_calls = self.oracle_calls();
        record.with("lane_evaluations", self.lanes() as f64)
    }

    /// Returns [`minibatches`](Self::minibatches), rounded up.
    pub fn oracle_calls(&self) -> u64 {
        self.minibatches().ceil() as u64
    }
}

impl Add for Calls {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            values: self.values + other.values,
            gradients: self.gradients + other.gradients,
            products: self.products + other.products,
        }
    }
}

impl AddAssign for Calls {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_minibatches_count_one_two_and_one() {
        let gradient = Calls {
            gradients: 256,
            ..Calls::default()
        };
        let product = Calls {
            products: 85,
            ..Calls::default()
        };
        // These are 128 draws, each of which is evaluated at both ends of the change.
        let change = Calls {
            values: 256,
            ..Calls::default()
        };
        assert_eq!(gradient.minibatches(), 1.0);
        assert_eq!(product.minibatches(), 2.0);
        assert_eq!(change.minibatches(), 1.0);
        let mut all = gradient + product;
        all += change;
        assert_eq!(all.oracle_calls(), 4);
        assert_eq!(all.lanes(), 256 + 170 + 256);
    }
}
