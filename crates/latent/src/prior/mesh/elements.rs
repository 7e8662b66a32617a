//! Linear finite elements of a stationary field on a mesh.
//!
//! The field solves (κ² − Δ) τ x = white noise, so it is a Matérn field with smoothness 1. With the basis functions φ_i,
//! which are 1 at one node, 0 at all others and linear in between, and with the matrices `C_ii = ∫φ_i` and `G_ij =
//! ∫∇φ_i·∇φ_j`, the precision of the values at the nodes is `τ² (κ⁴ C + 2κ² G + G C⁻¹ G)`. The range is √8/κ, and the
//! variance far from the border 1/(4πκ²τ²).

use super::Mesh;
use crate::linear::Geometry;
use crate::prior::field::{Field, Triplets};
use crate::prior::setting::{self, Setting};
use crate::prior::times::short;
use crate::{Covariance, Design, Error, Observations, Prior, Sparse};

/// The result of a comparison between a field on a mesh and the field that it approximates.
#[derive(Clone, Debug, PartialEq)]
pub struct Discretisation {
    /// The mean difference between the variance at the location of a row and the stated variance, divided by the latter.
    pub error: f64,
    /// The longest edge for which the differences would be small, in the units of the table.
    pub edge: f64,
    /// The extension for which they would be small.
    pub extension: f64,
}

/// The longest edge as a share of the range. The variance at a node is then 3 % too large on average, and that in the
/// middle of a triangle 3 % too small.
pub(super) const EDGE: f64 = 0.15;

impl Mesh {
    /// Computes the diagonal of C and the entries of G.
    fn elements(&self) -> (Vec<f64>, Triplets) {
        let mut mass = vec![0.0; self.nodes()];
        let mut stiffness = Triplets::new();
        for (corners, area) in self.corners() {
            let at = |k: usize| corners[k % 3];
            // The gradient of a basis function is orthogonal to the side opposite its node.
            let sides = [0, 1, 2].map(|k| {
                let ((_, a), (_, b)) = (at(k + 1), at(k + 2));
                [b[0] - a[0], b[1] - a[1]]
            });
            for (i, a) in sides.iter().enumerate() {
                mass[at(i).0] += area / 3.0;
                for (j, b) in sides.iter().enumerate() {
                    let inner = a[0] * b[0] + a[1] * b[1];
                    stiffness.push((at(i).0, at(j).0, inner / (4.0 * area)));
                }
            }
        }
        (mass, stiffness)
    }
}

impl Field {
    /// Returns a stationary field at the nodes of a mesh. Its hyperparameters are the range in the mesh's coordinates
    /// and the marginal variance.
    pub(super) fn on_mesh(mesh: &Mesh, settings: Vec<Setting>) -> Result<Self, Error> {
        let (mass, stiffness) = mesh.elements();
        Self::stationary(&mass, stiffness, None, settings)
    }

    /// Compares the variances at the locations of rows with the stated variance.
    pub(in crate::prior) fn discretisation(
        &self,
        mesh: &Mesh,
        theta: &[f64],
    ) -> Result<Discretisation, Error> {
        let values = setting::values(self.settings(), theta)?;
        let (range, variance) = (values[0], values[1]);
        let failed = || Error::Prior("the precision of the mesh cannot be factorised".to_owned());
        let Covariance::Precision(q) = self.structure(theta)?.covariance else {
            return Err(failed());
        };
        let mut entries = Triplets::new();
        for (i, location) in mesh.locations.iter().enumerate() {
            let weights = mesh.weights(*location).unwrap_or_default();
            entries.extend(weights.into_iter().map(|(node, weight)| (i, node, weight)));
        }
        let locations = mesh.locations.len();
        let mut model = self.alone(q.matrix, Some(0.0));
        model.design = Design::Sparse(Sparse::from_triplets(locations, mesh.nodes(), &entries)?);
        model.observations = Observations::new(vec![0.0; locations]);
        let mut geometry = Geometry::new(&model, false, &mut Vec::new())?;
        geometry.factor(&vec![0.0; locations]).ok_or_else(failed)?;
        let errors = geometry.variances().into_iter();
        let sum: f64 = errors.map(|v| (v / variance - 1.0).abs()).sum();
        let error = sum / locations as f64;
        let unit = mesh.inputs[0].scale.abs();
        Ok(Discretisation {
            error,
            edge: short(unit * mesh.distances.edge.min(EDGE * range)),
            extension: short(unit * mesh.distances.extension.max(range)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::hull::distance;
    use super::super::{Distances, Location};
    use super::*;
    use crate::prior::inputs::Covariate;

    /// Linear functions have the integral and the energy of their formulas, and no triangle has an edge or an angle
    /// beyond the limits.
    #[test]
    fn elements_integrate_linear_functions() {
        let noise = |i: usize, step: f64| ((i as f64 + 0.5) * step).fract() - 0.5;
        let locations: Vec<Location> = (0..150)
            .map(|i| [noise(i, 0.754_877_666), noise(i, 0.569_840_291)])
            .collect();
        let distances = Distances {
            edge: 0.05,
            cutoff: 0.025,
            extension: 0.4,
        };
        let inputs = ["x", "y"].map(Covariate::plain).to_vec();
        let mesh = Mesh::new(inputs, locations, distances).unwrap();
        let (mass, stiffness) = mesh.elements();
        let total: f64 = mass.iter().sum();
        let area: f64 = mesh.corners().map(|(_, area)| area).sum();
        assert!((total / area - 1.0).abs() < 1e-12);
        // The hull has about area 1 and perimeter 4.
        assert!((2.8..3.2).contains(&area), "{area}");
        let mut x = vec![0.0; mesh.nodes()];
        for (corners, _) in mesh.corners() {
            corners
                .iter()
                .for_each(|(node, location)| x[*node] = 3.0 * location[0] - location[1]);
        }
        let energy: f64 = stiffness.iter().map(|(i, j, g)| x[*i] * g * x[*j]).sum();
        assert!((energy / (10.0 * area) - 1.0).abs() < 1e-9);
        assert!(mass.iter().all(|m| *m > 0.0));
        for (corners, area) in mesh.corners() {
            let [a, b, c] = corners.map(|(_, location)| location);
            if [a, b, c].iter().any(|[x, y]| x.abs().max(y.abs()) > 0.45) {
                continue;
            }
            let mut sides = [distance(a, b), distance(b, c), distance(c, a)];
            sides.sort_by(f64::total_cmp);
            assert!(sides[2] <= 0.05 * (1.0 + 1e-9), "{sides:?}");
            // The smallest angle is opposite the shortest side.
            let sin = 2.0 * area / (sides[1] * sides[2]);
            assert!(sin > 0.49, "{}", sin.asin().to_degrees());
        }
    }
}
