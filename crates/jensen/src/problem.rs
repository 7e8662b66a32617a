//! The trait of problems that can be fitted, and the implementation for densities written in Rust.

use jensen_blackbox::Subject;
use jensen_density::{
    ConstrainError, DrawKey, Posterior, TwiceDifferentiable, Unconstrained, Variable, VariableKind,
};

use crate::Error;

/// A log density on ℝᵈ, together with the named variables that its posterior reports.
pub trait Problem: Sync {
    /// The type of the log density.
    type Density: TwiceDifferentiable;

    /// Returns the log density. It must include its normalising constants and the log-Jacobian.
    fn density(&self) -> &Self::Density;

    /// Returns the posterior. It maps unconstrained points to named variables with shapes and constrained values.
    fn posterior(&self) -> &dyn Posterior;

    /// Returns a posterior that computes only the wanted variables, or `None` if such a posterior would need as much
    /// work as the complete one.
    fn reporting(&self, wanted: &dyn Fn(&Variable) -> bool) -> Option<Box<dyn Posterior + '_>> {
        let _ = wanted;
        None
    }

    /// Returns the digests of the model and of the data. Checkpoints store these digests. The digests may be empty if
    /// no checkpoint is stored.
    fn subject(&self) -> Subject {
        Subject::default()
    }

    /// Returns the time in seconds that was needed to build the problem.
    fn build_seconds(&self) -> f64 {
        0.0
    }

    /// Returns remarks on the model that do not depend on the fit.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns an error outside the model itself, such as a failure to read the data. After such an error, the density
    /// returns NaN and the fit has no result.
    fn failure(&self) -> Option<Error> {
        None
    }

    /// Returns the number of bytes that each thread needs for its block of draws, or 0 if the number is unknown.
    fn block_bytes(&self) -> usize {
        0
    }
}

/// A problem whose density is written in Rust and whose reported values are the coordinates themselves.
///
/// Unless the coordinates have names, the posterior has a single variable, the vector `z`.
///
/// If the density has no Hessian-vector products, wrap it in [`Differenced`](jensen_density::Differenced) first.
///
/// ```
/// use jensen::prelude::*;
///
/// /// Independent normals: means 1 and -2, standard deviations 0.5 and 3.
/// struct Normals;
///
/// impl LogDensity for Normals {
///     type Workspace = ();
///
///     fn dim(&self) -> usize {
///         2
///     }
///     fn workspace(&self, _lanes: usize) {}
///     fn value(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64]) {
///         for (l, value) in out.iter_mut().enumerate() {
///             let (a, b) = ((z.row(0)[l] - 1.0) / 0.5, (z.row(1)[l] + 2.0) / 3.0);
///             *value = -0.5 * (a * a + b * b) - (0.5f64 * 3.0).ln() - std::f64::consts::TAU.ln();
///         }
///     }
///     fn value_grad(&self, ws: &mut (), z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
///         self.value(ws, z, out);
///         for l in 0..z.lanes() {
///             grad.row_mut(0)[l] = -(z.row(0)[l] - 1.0) / 0.25;
///             grad.row_mut(1)[l] = -(z.row(1)[l] + 2.0) / 9.0;
///         }
///     }
/// }
///
/// let problem = Bare::named(Differenced(Normals), ["a", "b"]);
/// let fitted = fit(&problem, &Options::default()).unwrap();
/// assert!(fitted.trusted());
/// // The evidence is 1, and the family contains the density.
/// assert!(fitted.fit.elbo().abs() < 1e-3);
/// ```
#[derive(Clone, Debug)]
pub struct Bare<D> {
    density: D,
    posterior: Coordinates,
}

#[derive(Clone, Debug)]
struct Coordinates {
    dim: usize,
    names: Option<Vec<String>>,
}

impl<D: TwiceDifferentiable> Bare<D> {
    /// Creates a problem with a single reported variable, the vector `z` of all coordinates.
    pub fn new(density: D) -> Self {
        let dim = density.dim();
        Self {
            density,
            posterior: Coordinates { dim, names: None },
        }
    }

    /// Creates a problem that reports each coordinate as a scalar variable with its own name.
    ///
    /// # Panics
    /// Panics if the number of names does not equal the number of coordinates, which is a bug in the caller.
    pub fn named<S: Into<String>>(density: D, names: impl IntoIterator<Item = S>) -> Self {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let dim = density.dim();
        assert_eq!(
            names.len(),
            dim,
            "the number of names differs from the number of coordinates"
        );
        Self {
            density,
            posterior: Coordinates {
                dim,
                names: Some(names),
            },
        }
    }
}

impl<D: TwiceDifferentiable> Problem for Bare<D> {
    type Density = D;

    fn density(&self) -> &D {
        &self.density
    }

    fn posterior(&self) -> &dyn Posterior {
        &self.posterior
    }
}

impl Posterior for Coordinates {
    fn variables(&self) -> Vec<Variable> {
        let variable = |name: &str, shape: Vec<usize>| Variable {
            name: name.to_owned(),
            shape,
            kind: VariableKind::Parameter,
            integer: false,
        };
        match &self.names {
            Some(names) => names.iter().map(|name| variable(name, vec![])).collect(),
            None => vec![variable("z", vec![self.dim])],
        }
    }

    fn unconstrained_names(&self) -> Vec<String> {
        match &self.names {
            Some(names) => names.clone(),
            None => (1..=self.dim).map(|i| format!("z.{i}")).collect(),
        }
    }

    fn constrain(&self, z: &[f64], _: DrawKey, out: &mut Vec<f64>) -> Result<(), ConstrainError> {
        out.extend_from_slice(z);
        Ok(())
    }

    fn unconstrain(&self, lookup: &Unconstrained<'_>) -> Result<Vec<f64>, ConstrainError> {
        let mut z = Vec::with_capacity(self.dim);
        for variable in self.variables() {
            let values = lookup(&variable.name).filter(|values| values.len() == variable.len());
            z.extend(values.ok_or_else(|| {
                ConstrainError::new(format!(
                    "`{}`: expected {} numbers",
                    variable.name,
                    variable.len()
                ))
            })?);
        }
        Ok(z)
    }
}
