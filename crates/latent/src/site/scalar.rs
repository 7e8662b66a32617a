//! Scalar functions that several sites share.

/// Jaakkola's λ(ξ) = (σ(ξ) − ½)/(2ξ). Twice λ is the curvature of the bound.
pub(crate) fn jaakkola_curvature(xi: f64) -> f64 {
    let xi = xi.abs();
    if xi < 1e-4 {
        0.25 - xi * xi / 48.0
    } else {
        (0.5 * xi).tanh() / (2.0 * xi)
    }
}
