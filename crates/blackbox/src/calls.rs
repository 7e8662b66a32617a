//! The evaluations of a fit, in two units.
//!
//! *Lane evaluations* count every draw at which Jensen evaluates the density. A Hessian-vector product counts as two.
//! *Oracle calls* are the unit of Regier, Jordan and McAuliffe (NeurIPS 2017, section 5). One call is one minibatch of
//! the default size: 256 draws for a gradient, 85 for Hessian-vector products (counted twice), or 128 for an estimate
//! of a change of the bound, which evaluates each draw at both ends. Minibatches of other sizes count in proportion to
//! the default size, and a lane that evaluates only a share of the records counts as that share. Neither unit measures
//! time.

use std::ops::{Add, AddAssign};

use jensen_run::Record;
use serde::{Deserialize, Serialize};

/// Number of draws of a gradient that count as one oracle call.
pub const GRADIENT_BATCH: usize = 256;

/// Number of draws of a Hessian-vector product that count as two oracle calls.
pub const PRODUCT_BATCH: usize = 85;

/// Number of draws of an estimate of a change of the bound that count as one oracle call.
pub const CHANGE_BATCH: usize = 128;

/// Draws evaluated, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    /// Values alone.
    pub values: u64,
    /// Values with gradients.
    pub gradients: u64,
    /// Hessian-vector products.
    pub products: u64,
}

impl Calls {
    /// Evaluated draws, with products counted twice.
    pub fn lanes(&self) -> u64 {
        self.values + self.gradients + 2 * self.products
    }

    /// Returns the number of minibatches of the default size, with products counted twice.
    pub fn minibatches(&self) -> f64 {
        let share = |draws: u64, batch: usize| draws as f64 / batch as f64;
        share(self.values, 2 * CHANGE_BATCH)
            + share(self.gradients, GRADIENT_BATCH)
            + 2.0 * share(self.products, PRODUCT_BATCH)
    }

    /// The number of evaluations if each lane evaluates only the share (part, whole) of the data, rounded up.
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

    /// Writes both counts into a record: its `oracle_calls`, and the field `lane_evaluations`.
    #[must_use]
    pub fn on(&self, mut record: Record) -> Record {
        record.oracle_calls = self.oracle_calls();
        record.with("lane_evaluations", self.lanes() as f64)
    }

    /// [`minibatches`](Self::minibatches), rounded up.
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
        // 128 draws, each at both ends.
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
