//! The density of the time at which a Wiener process first leaves an interval.

use std::f64::consts::PI;

/// For times below this value, the series over mirror images of the starting point converges faster than the Fourier
/// series.
const SHORT: f64 = 0.4;

/// The number of terms that are summed in either series. Further terms are negligible.
const TERMS: i32 = 9;

/// Consider a Wiener process that starts at `w` and leaves the interval (0, 1) through 0. The function evaluates the
/// density of the exit time at `x`, and returns its derivatives of the given orders with respect to `w`. The results
/// are scaled: multiply them by the exponential of the returned number.
fn density<const N: usize>(x: f64, w: f64, orders: [u32; N]) -> ([f64; N], f64) {
    if x < SHORT {
        let root = x.sqrt();
        let image = |k: i32| {
            let z = (w + 2.0 * f64::from(k)) / root;
            (z, libm::exp(-0.5 * (z * z - w * w / x)))
        };
        let sums = orders.map(|m| {
            let sign = if m % 2 == 0 { 1.0 } else { -1.0 };
            let terms = (-TERMS..=TERMS).map(|k| {
                let (z, weight) = image(k);
                hermite(m + 1, z) * weight
            });
            sign * root.powi(1 - m as i32) * terms.sum::<f64>()
        });
        return (
            sums,
            -0.5 * w * w / x - 0.5 * libm::log(2.0 * PI * x * x * x),
        );
    }
    let sums = orders.map(|m| {
        let terms = (1..=TERMS).map(|k| {
            let k = f64::from(k);
            let (sine, cosine) = libm::sincos(k * PI * w);
            let wave = [sine, cosine, -sine, -cosine][m as usize % 4];
            let fall = libm::exp(-0.5 * (k * k - 1.0) * PI * PI * x);
            k * (k * PI).powi(m as i32) * wave * fall
        });
        PI * terms.sum::<f64>()
    });
    (sums, -0.5 * PI * PI * x)
}

/// Computes the Hermite polynomial that belongs to the normal density.
fn hermite(n: u32, z: f64) -> f64 {
    let (mut before, mut now) = (0.0, 1.0);
    for k in 0..n {
        // A negligible factor may be infinite, and the product of 0 and infinity is NaN.
        let last = if k == 0 { 0.0 } else { f64::from(k) * before };
        (before, now) = (now, z * now - last);
    }
    now
}

fn legal(x: f64, w: f64) -> bool {
    x > 0.0 && x.is_finite() && w > 0.0 && w < 1.0
}

/// Returns the logarithm of the density, at `x`, of the time at which a Wiener process leaves the interval (0, 1)
/// through 0. The process starts at `w` in (0, 1). Returns NaN for `x <= 0`.
pub fn log_wiener(x: f64, w: f64) -> f64 {
    if !legal(x, w) {
        return f64::NAN;
    }
    let ([sum], scale) = density(x, w, [0]);
    scale + libm::log(sum)
}

/// Returns the `order`-th derivative with respect to `w` of the density in [`log_wiener`], divided by that density. The
/// density satisfies the diffusion equation, so its derivative with respect to time is half its second derivative with
/// respect to the starting point.
pub fn wiener_ratio(x: f64, w: f64, order: u32) -> f64 {
    if !legal(x, w) {
        return f64::NAN;
    }
    let ([sum, derivative], _) = density(x, w, [0, order]);
    derivative / sum
}
