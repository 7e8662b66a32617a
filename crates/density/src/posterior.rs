//! The interface to a model's parameters: names, shapes, constrained values and generated quantities.

use std::fmt;

/// The block of the model in which a reported variable is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableKind {
    /// A parameter, declared in the parameters block.
    Parameter,
    /// A transformed parameter.
    Transformed,
    /// A generated quantity.
    Generated,
}

/// A reported variable. Its values are stored in a flat array in column-major order (the first index varies fastest),
/// as in Stan's CSV files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The name of the variable in the model.
    pub name: String,
    /// The extent of each dimension of the variable. The list is empty for a scalar.
    pub shape: Vec<usize>,
    /// The block that declares the variable.
    pub kind: VariableKind,
    /// Whether all values of the variable are integers.
    pub integer: bool,
}

impl Variable {
    /// Returns the number of scalars in the variable.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns whether the variable has no scalars.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The relation between a coordinate and the value that the model reports for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// The coordinate equals the value up to a shift and a factor, or no single reported value corresponds to the
    /// coordinate.
    #[default]
    Identity,
    /// The coordinate is the logarithm of the value, or of the distance between the value and a bound.
    Log,
    /// The coordinate is the logit of the value's position between two bounds.
    Logit,
}

/// The largest difference of logarithms, in nats, that is exponentiated. Larger differences are reduced to this size.
/// Otherwise a value could overflow, because the standard deviation of its logarithm can be arbitrarily large.
const LARGEST_LOG: f64 = 300.0;

impl Scale {
    /// Returns the difference between the values at the coordinates `z` and `other`. The unit and the direction of the
    /// difference depend only on `other`. For a logarithm, the unit is the value at `other`. For a logit, the unit is
    /// the distance from the value at `other` to the nearer bound.
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

/// The identifier of a random stream. Each draw computes its generated quantities from a stream of its own. Equal keys
/// give equal values, so any draw can be reproduced without the others.
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
    /// The message of the model, for example from a `reject` statement or from a violated constraint on a transformed
    /// parameter.
    pub message: String,
    /// Whether a limit of time or a request to stop ended the evaluation. If so, the message does not describe the draw.
    pub interrupted: bool,
}

impl ConstrainError {
    /// Creates an error of the model.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            interrupted: false,
        }
    }
}

impl fmt::Display for ConstrainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConstrainError {}

/// The values of all variables for one draw, or the reason why the draw has none.
pub type Constrained = Result<Vec<f64>, ConstrainError>;

/// A function that returns the constrained value of the parameter with a given name, as a flat array in column-major
/// order.
pub type Unconstrained<'a> = dyn Fn(&str) -> Option<Vec<f64>> + 'a;

/// A model on ℝᵈ whose variables have names and constrained values.
pub trait Posterior: Sync {
    /// Returns the reported variables, in the order in which [`constrain`](Self::constrain) writes them.
    fn variables(&self) -> Vec<Variable>;

    /// Returns the names of the d unconstrained coordinates.
    fn unconstrained_names(&self) -> Vec<String>;

    /// Returns the relation of each of the d coordinates to its reported value. The vector is empty if every coordinate
    /// equals its reported value.
    fn scales(&self) -> Vec<Scale> {
        Vec::new()
    }

    /// Appends the values of all variables at the unconstrained point `z` to `out`. The values include parameters,
    /// transformed parameters and generated quantities.
    ///
    /// # Errors
    /// Fails if the model rejects the point, and then leaves `out` unchanged.
    fn constrain(&self, z: &[f64], key: DrawKey, out: &mut Vec<f64>) -> Result<(), ConstrainError>;

    /// Computes the same values as [`constrain`](Self::constrain) for several draws, with one key per draw. `points`
    /// contains the unconstrained points one after another. The values agree with those of separate calls up to
    /// rounding. They do not depend on which draws are requested together.
    fn constrain_all(&self, points: &[f64], keys: &[DrawKey]) -> Vec<Constrained> {
        let dim = points.len().checked_div(keys.len()).unwrap_or(0);
        let one = |(i, key): (usize, &DrawKey)| {
            let mut out = Vec::new();
            let point = &points[i * dim..(i + 1) * dim];
            self.constrain(point, *key, &mut out).map(|()| out)
        };
        keys.iter().enumerate().map(one).collect()
    }

    /// Returns the number of draws to pass to each call of [`constrain_all`](Self::constrain_all) for the highest
    /// speed.
    fn together(&self) -> usize {
        1
    }

    /// Computes the unconstrained point for given parameter values. The function calls `lookup` with the name of each
    /// parameter to obtain its value.
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
            // The value is measured as its distance from the bound that is nearer at `other`.
            let side = if other > 0.0 { -1.0 } else { 1.0 };
            let share = |z: f64| logistic(side * z);
            near(Scale::Logit.beside(z, other), share(z) / share(other) - 1.0);
        }
        assert!(Scale::Log.beside(1e4, 0.0).is_finite());
        assert!(Scale::Logit.beside(-1e4, 800.0).is_finite());
    }
}
