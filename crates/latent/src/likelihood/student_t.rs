//! Numbers with heavy-tailed noise.

use jensen_math::simd::F64x8;
use jensen_math::special::{digamma, inc_beta, lgamma};
use jensen_math::vmath::log1p;

use super::Likelihood;
use super::row::{DEGREES, Fitted, Form, LikelihoodRow, NOISE_SCALE, Response, Size};
use crate::site::SiteBound;
use crate::site::expectation::Potential;

pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "student-t",
    law: "η + scale · t with `degrees` of freedom",
    parameters: &["degrees", "scale"],
    usual: &[4.0, 1.0],
    priors: &[DEGREES, NOISE_SCALE],
    location: true,
    response: Response::Number,
    size: Size::One,
    bounds: &[SiteBound::Exact],
    log_concave: false,
    points: false,
    mean: |_, eta, _| eta,
    log_density: |p, eta, y, _| {
        let (degrees, scale) = (p[0], p[1]);
        let half = 0.5 * (degrees + 1.0);
        let z = (y - eta) / scale;
        lgamma(half)
            - lgamma(0.5 * degrees)
            - 0.5 * (degrees * std::f64::consts::PI).ln()
            - scale.ln()
            - half * (z * z / degrees).ln_1p()
    },
    distribution: |p, eta, y, _| {
        let (degrees, t) = (p[0], (y - eta) / p[1]);
        let tail = 0.5 * inc_beta(0.5 * degrees, 0.5, degrees / (degrees + t * t));
        if t > 0.0 { 1.0 - tail } else { tail }
    },
    form: |likelihood, data| {
        let (degrees, scale) = (likelihood.values[0], likelihood.values[1]);
        Form::smooth(data, |_, y| Tails {
            y,
            degrees,
            scale,
            c: lgamma(0.5 * degrees) - lgamma(0.5 * (degrees + 1.0))
                + 0.5 * (std::f64::consts::PI * degrees).ln()
                + scale.ln(),
        })
    },
    by_parameters,
};

impl Likelihood {
    /// Returns the likelihood y = η + scale · t, where t has a Student t distribution with `degrees` degrees of
    /// freedom.
    pub fn student_t(degrees: f64, scale: f64) -> Self {
        Self::of(&ROW, &[degrees, scale])
    }
}

/// The potential `½ (ν+1) log(1 + (y−η)²/(ν s²)) + c`.
#[derive(Clone, Copy, Debug)]
struct Tails {
    y: f64,
    degrees: f64,
    scale: f64,
    c: f64,
}

impl Potential for Tails {
    #[inline(always)]
    fn at<V: F64x8>(&self, eta: V) -> (V, V, V) {
        let half = V::splat(0.5);
        let r = V::splat(self.y) - eta;
        let (s, d) = (
            V::splat(self.degrees * self.scale * self.scale),
            V::splat(self.degrees + 1.0),
        );
        let square = r * r;
        let q = s + square;
        (
            half * d * log1p(square / s) + V::splat(self.c),
            -d * r / q,
            d * (s - square) / (q * q),
        )
    }

    /// The argument of the logarithm vanishes at y ± i s √ν.
    fn width(&self) -> f64 {
        self.scale * self.degrees.sqrt()
    }
}

fn by_parameters(p: &[f64], at: &Fitted<'_>) -> Vec<f64> {
    let (d, s, y) = (p[0], p[1], &at.data.response);
    let fixed = 0.5 * (digamma(0.5 * d) - digamma(0.5 * (d + 1.0)) + 1.0 / d);
    let square = |i: usize, eta: f64| (y[i] - eta).powi(2);
    let each = |i: usize, h: &dyn Fn(f64) -> f64| at.sites.expectation(i, at.m[i], at.v[i], h);
    let by_degrees: f64 = (0..y.len())
        .map(|i| {
            fixed
                + each(i, &|eta| {
                    let q = square(i, eta) / (d * s * s);
                    0.5 * q.ln_1p() - 0.5 * (d + 1.0) * q / (d * (1.0 + q))
                })
        })
        .sum();
    let by_scale: f64 = (0..y.len())
        .map(|i| {
            1.0 / s
                - each(i, &|eta| {
                    let q = square(i, eta) / (d * s * s);
                    (d + 1.0) * q / (s * (1.0 + q))
                })
        })
        .sum();
    vec![-by_degrees, -by_scale]
}
