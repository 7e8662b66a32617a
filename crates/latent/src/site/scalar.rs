//! Scalar functions that several sites share.

/// `log(1 + e^x)` without overflow.
pub(crate) fn log1p_exp(x: f64) -> f64 {
    if x > 0.0 {
        x + (-x).exp().ln_1p()
    } else {
        x.exp().ln_1p()
    }
}

/// `1/(1 + e^−x)`.
pub(crate) fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}

/// Jaakkola's λ(ξ) = (σ(ξ) − ½)/(2ξ), twice which is the curvature of the bound.
pub(crate) fn jaakkola_curvature(xi: f64) -> f64 {
    let xi = xi.abs();
    if xi < 1e-4 {
        0.25 - xi * xi / 48.0
    } else {
        (0.5 * xi).tanh() / (2.0 * xi)
    }
}
