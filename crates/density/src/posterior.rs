//! The interface to a model's parameters: names, shapes, constrained values and generated quantities.

use std::fmt;

/// The block of the program that declares a reported variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableKind {
    /// A parameter, declared in the parameters block.
    Parameter,
    /// A transformed parameter.
    Transformed,
    /// A generated quantity.
    Generated,
}

/// A reported variable. Its values are flat in column-major order (first index fastest), as in Stan's CSV files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The name in the model.
    pub name: String,
    /// The extents, which are empty for a scalar.
    pub shape: Vec<usize>,
    /// The block that declares the variable.
    pub kind: VariableKind,
    /// Whether every value is an integer.
    pub integer: bool,
}

impl Variable {
    /// Returns the number of scalars.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns whether the variable has no scalars.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The relation of a coordinate to its reported value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// The coordinate is the value, up to a shift and a factor, or it has no single reported value.
    #[default]
    Identity,
    /// The coordinate is the logarithm of the value or of its distance from a bound.
    Log,
    /// The coordinate is the logit of the value's position between two bounds.
    Logit,
}

/// The largest exponent, in nats, that is exponentiated. Larger differences get the same value, because standard
/// deviations of logarithms can be so large that values would overflow.
const LARGEST_LOG: f64 = 300.0;

impl Scale {
    /// Returns the difference between the values at `z` and at `other`. Its unit and direction depend only on `other`:
    /// the unit is the value at `other` for a logarithm, and for a logit it is the smaller of the value's distances
    /// from the two bounds.
    pub fn beside(self, z: f64, other: f64) -> f64 {
        let up = z - other;
        match self {
            Self::Identity => up,
            Self::Log => up.min(LARGEST_LOG).exp_m1(),
            Self::Logit => {
                let (up, odds) = match other > 0.0 {
                    true => (-up, (-other).exp()),
                    false => (up, other.exp()),
                };
                let grown = up.min(LARGEST_LOG);
                grown.exp_m1() / (1.0 + odds * grown.exp())
            }
        }
    }
}

/// The identifier of the random stream of one draw's generated quantities. The same key gives the same values, so any
/// draw can be reproduced alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawKey {
    /// The run's seed.
    pub seed: u64,
    /// The index of the draw.
    pub index: u64,
}

/// The reason why a draw has no constrained values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstrainError {
    /// The model's message, for example from a `reject` or about a violated constraint on a transformed parameter.
    pub message: String,
}

impl fmt::Display for ConstrainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConstrainError {}

/// The values of every variable for a draw.
pub type Constrained = Result<Vec<f64>, ConstrainError>;

/// A function that returns the constrained value of a parameter by name, flat in column-major order.
pub type Unconstrained<'a> = dyn Fn(&str) -> Option<Vec<f64>> + 'a;

/// A model on ℝᵈ with names and constrained values.
pub trait Posterior: Sync {
    /// Returns the reported variables, in the order in which [`constrain`](Self::constrain) writes them.
    fn variables(&self) -> Vec<Variable>;

    /// Returns the names of the d unconstrained coordinates.
    fn unconstrained_names(&self) -> Vec<String>;

    /// Returns the relation of each of the d coordinates to its reported value, or an empty vector if every coordinate
    /// is the value itself.
    fn scales(&self) -> Vec<Scale> {
        Vec::new()
    }

    /// Appends the values of every variable at the unconstrained point `z` to `out`: parameters, transformed parameters
    /// and generated quantities.
    ///
    /// # Errors
    /// Fails if the model rejects the point. `out` is then unchanged.
    fn constrain(&self, z: &[f64], key: DrawKey, out: &mut Vec<f64>) -> Result<(), ConstrainError>;

    /// Returns the values that [`constrain`](Self::constrain) appends, for one draw per key. `points` contains the
    /// unconstrained points one after another. The result equals the result of single calls up to rounding, and does
    /// not depend on which draws are requested together.
    fn constrain_all(&self, points: &[f64], keys: &[DrawKey]) -> Vec<Constrained> {
        let dim = points.len().checked_div(keys.len()).unwrap_or(0);
        let one = |(i, key): (usize, &DrawKey)| {
            let mut out = Vec::new();
            let point = &points[i * dim..(i + 1) * dim];
            self.constrain(point, *key, &mut out).map(|()| out)
        };
        keys.iter().enumerate().map(one).collect()
    }

    /// Returns the number of draws per request for which the model is fastest.
    fn together(&self) -> usize {
        1
    }

    /// Computes the unconstrained point at which the parameters have the values that `lookup` returns.
    ///
    /// # Errors
    /// Fails if a parameter is missing, has another number of elements or violates its constraint.
    fn unconstrain(&self, lookup: &Unconstrained<'_>) -> Result<Vec<f64>, ConstrainError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beside_others_are_those_of_their_scales() {
        let logistic = |z: f64| 1.0 / (1.0 + (-z).exp());
        for (z, other) in [(0.3, -1.2), (2.0, 1.5), (-4.0, 3.0), (0.7, 0.7)] {
            let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{z} {other}: {a}, not {b}");
            near(Scale::Identity.beside(z, other), z - other);
            near(Scale::Log.beside(z, other), z.exp() / other.exp() - 1.0);
            // The reference is the share of the nearer bound at `other`.
            let side = if other > 0.0 { -1.0 } else { 1.0 };
            let share = |z: f64| logistic(side * z);
            near(Scale::Logit.beside(z, other), share(z) / share(other) - 1.0);
        }
        assert!(Scale::Log.beside(1e4, 0.0).is_finite());
        assert!(Scale::Logit.beside(-1e4, 800.0).is_finite());
    }
}
