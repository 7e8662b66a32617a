//! Hilbert-space Gaussian processes. Such a process is a sum of sine functions with independent coefficients. The
//! spectral density of a kernel gives the variances of the coefficients (Solin and Särkkä 2020; Riutort-Mayol, Bürkner,
//! Andersen, Solin and Vehtari 2023).
//!
//! The approximation has two errors. The first error is that frequencies above the highest one are missing. With half
//! width L and m functions along a coordinate, a kernel with lengthscale ℓ loses the share of its spectral density
//! beyond ω = πm/(2L). Under this density, ωℓ has a normal distribution (`rbf`) or a t distribution with 2ν degrees of
//! freedom (Matérn ν). The second error comes from the border, where all functions are zero. The border mirrors the
//! process with the opposite sign. For a row at an end of the rows' range c ± S, the mirror image is at a distance of
//! 2(L − S). [`Spectral::error`] measures both.

use jensen_math::special::lgamma;

use super::basis::Basis;
use super::inputs::matrix;
use super::kernel::{Kernel, Shape};
use super::read::Reader;
use super::setting::{self, Setting};
use super::spec::SpecError;
use super::term::{Body, Builder};
use crate::{Dense, Error};

/// Distance, in lengthscales, at which the correlation has fallen to 5 % or less for every kernel. The correlation
/// falls to 5 % at 2.45 for `rbf`, 2.65 for `matern52` and 2.74 for `matern32`. A correlation of 5 % with the mirror
/// image changes a standard deviation by 2.5 %.
const FALLEN: f64 = 2.75;

/// The kernels whose spectral density decays fast. Each has its ν (infinite for `rbf`) and the value of ωℓ beyond which
/// 5 % of the spectral density lies.
const ROWS: [(Shape, f64, f64); 3] = [
    (Shape::Rbf, f64::INFINITY, 1.960),
    (Shape::Matern52, 2.5, 2.571),
    (Shape::Matern32, 1.5, 3.182),
];

/// Largest number of functions that is used by default. The cost of a row grows with the square of this number.
const MOST: usize = 400;

/// Largest number of functions that a user may request.
const LIMIT: usize = 4000;

/// Default half width of the box, divided by half of the rows' range. With this width, the border does not affect
/// processes with lengthscales of up to 2.2 times half of the range. With several coordinates, a wide box would need
/// many functions. The default is then narrower and suffices for lengthscales of up to 0.7 times half of the range.
const WIDE: f64 = 4.0;
const WIDE_OF_SEVERAL: f64 = 2.0;

/// Returns the smallest half width of the box for which the border does not affect a process with the lengthscale
/// `length`. Half of the rows' range is the unit of both.
pub(super) fn boundary_for(length: f64) -> f64 {
    1.0 + 0.5 * FALLEN * length
}

/// Returns how many functions along a coordinate are needed to preserve the variance of a process with the lengthscale
/// `length`. The unit of `length` is half of the rows' range. Returns `None` if the kernel has no such number.
pub(super) fn count_for(shape: Shape, length: f64, boundary: f64) -> Option<usize> {
    let (_, _, point) = ROWS.iter().find(|(own, ..)| *own == shape)?;
    Some((2.0 * boundary * point / (std::f64::consts::PI * length)).ceil() as usize)
}

/// The coefficients of a basis.
#[derive(Clone, Debug)]
pub struct Spectral {
    shape: Shape,
    /// The variance, followed by a common lengthscale or by one lengthscale per coordinate.
    settings: Vec<Setting>,
    basis: Basis,
    frequencies: Dense,
}

/// The result of a comparison between a basis and the process that it approximates.
#[derive(Clone, Debug, PartialEq)]
pub struct Truncation {
    /// The largest difference between the two covariance functions over the rows' range, divided by the variance.
    pub error: f64,
    /// Numbers of functions and a boundary for which the error would be small.
    pub advice: (Vec<usize>, f64),
}

impl Spectral {
    /// Creates the approximation of the process with this kernel by this basis.
    pub(super) fn new(shape: Shape, settings: Vec<Setting>, basis: Basis) -> Self {
        Self {
            shape,
            settings,
            frequencies: basis.frequencies(),
            basis,
        }
    }

    /// Number of coefficients.
    pub fn len(&self) -> usize {
        self.basis.len()
    }

    /// Whether there are no coefficients.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hyperparameters, including fixed ones.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    fn length<'a>(&self, values: &'a [f64]) -> impl Fn(usize) -> f64 + 'a {
        let count = values.len() - 1;
        move |d| values[1 + d % count]
    }

    /// Computes the variances of the coefficients, which are the values of the spectral density at their frequencies.
    pub(super) fn variances(&self, values: &[f64]) -> Vec<f64> {
        let dimensions = self.frequencies.cols;
        let (d, length) = (dimensions as f64, self.length(values));
        let lengths: f64 = (0..dimensions).map(|k| length(k).ln()).sum();
        let nu = self.nu();
        let constant = match nu.is_finite() {
            false => 0.5 * d * (2.0 * std::f64::consts::PI).ln(),
            true => {
                d * 2f64.ln() + 0.5 * d * std::f64::consts::PI.ln() + lgamma(nu + 0.5 * d)
                    - lgamma(nu)
                    + nu * (2.0 * nu).ln()
            }
        };
        let scale = values[0].ln() + lengths + constant;
        (0..self.len())
            .map(|j| {
                let s = self.square(j, &length);
                let log = match nu.is_finite() {
                    false => -0.5 * s,
                    true => -(nu + 0.5 * d) * (2.0 * nu + s).ln(),
                };
                // A coefficient without variance has no precision.
                (scale + log).exp().max(f64::MIN_POSITIVE)
            })
            .collect()
    }

    /// Computes the derivatives with respect to the free hyperparameters at θ. `by_logarithm` returns the derivative
    /// with respect to the logarithm of a coefficient's variance, given the coefficient's number and its variance.
    pub(super) fn gradient(
        &self,
        theta: &[f64],
        by_logarithm: impl Fn(usize, f64) -> f64,
    ) -> Vec<f64> {
        let Ok(values) = setting::values(&self.settings, theta) else {
            return vec![f64::NAN; theta.len()];
        };
        let dimensions = self.frequencies.cols;
        let (d, length) = (dimensions as f64, self.length(&values));
        let nu = self.nu();
        let mut all = vec![0.0; values.len()];
        for (j, variance) in self.variances(&values).into_iter().enumerate() {
            let weight = by_logarithm(j, variance);
            let s = self.square(j, &length);
            let share = match nu.is_finite() {
                false => 1.0,
                true => (2.0 * nu + d) / (2.0 * nu + s),
            };
            all[0] += weight / values[0];
            for k in 0..dimensions {
                let at = 1 + k % (values.len() - 1);
                let own = (length(k) * self.frequencies.get(j, k)).powi(2);
                all[at] += weight * (1.0 - share * own) / values[at];
            }
        }
        setting::free_only(&self.settings, &all)
    }

    fn nu(&self) -> f64 {
        let row = ROWS.iter().find(|(shape, ..)| *shape == self.shape);
        row.map_or(f64::INFINITY, |(_, nu, _)| *nu)
    }

    /// Σ_d (ℓ_d ω_jd)².
    fn square(&self, j: usize, length: &impl Fn(usize) -> f64) -> f64 {
        (0..self.frequencies.cols)
            .map(|k| (length(k) * self.frequencies.get(j, k)).powi(2))
            .sum()
    }

    /// Computes the error of the covariances in the rows' range at these values, and a basis for which this error is
    /// small.
    ///
    /// # Errors
    /// Fails if a value is out of range.
    pub(super) fn truncation(&self, theta: &[f64]) -> Result<Truncation, Error> {
        let values = setting::values(&self.settings, theta)?;
        let probes = self.basis.probes();
        let n = probes.rows;
        let mut exact = vec![0.0; n * n];
        Kernel::new(self.shape, values[0], &values[1..], &probes, &probes).write(0, &mut exact);
        let functions = self.basis.at(&probes);
        let variances = self.variances(&values);
        let mut largest = 0.0f64;
        for j in 0..n {
            for i in 0..=j {
                let own: f64 = (0..self.len())
                    .map(|l| functions.get(i, l) * functions.get(j, l) * variances[l])
                    .sum();
                largest = largest.max((own - exact[j * n + i]).abs());
            }
        }
        let length = self.length(&values);
        let lengths: Vec<f64> = (0..self.basis.counts.len())
            .map(|d| length(d) / self.basis.range[d])
            .collect();
        let boundary = lengths
            .iter()
            .copied()
            .map(boundary_for)
            .fold(0.0, f64::max);
        let boundary = (10.0 * boundary).ceil() / 10.0;
        let counts = (lengths.iter())
            .map(|length| count_for(self.shape, *length, boundary).unwrap_or(1))
            .collect();
        Ok(Truncation {
            error: largest / values[0],
            advice: (counts, boundary),
        })
    }
}

impl Builder<'_, '_> {
    /// Builds a Gaussian process from basis functions. The default number of functions is chosen for the 5 % quantile
    /// of the lengthscale's prior.
    pub(super) fn hsgp(&self, notes: &mut Vec<String>) -> Result<(Reader, Body), SpecError> {
        let known = self.known;
        let at_call = |message: String| known.error(&known.call.name.span, message);
        let row = self.kernel(|row| !row.periodic && count_for(row.shape, 1.0, 1.0).is_some())?;
        let mut inputs = self.inputs(notes)?;
        let dimensions = inputs.len();
        if dimensions > 3 {
            return Err(at_call(format!(
                "`hsgp` has at most 3 columns, but there are {dimensions}; name them with `on=`, or use `gp`"
            )));
        }
        let mut settings = vec![self.setting("variance", None)?];
        settings.extend(self.lengthscales(&mut inputs, row.shape, notes)?);
        let points = matrix(&inputs, self.source, self.rows).map_err(at_call)?;
        let (mut centre, mut range) = (Vec::new(), Vec::new());
        for (d, input) in inputs.iter().enumerate() {
            let column = || points.col(d).iter().copied();
            let (least, most) = (
                column().fold(f64::INFINITY, f64::min),
                column().fold(f64::NEG_INFINITY, f64::max),
            );
            if most <= least {
                return Err(at_call(format!(
                    "the column `{}` is constant in the fitted rows; remove it from `on=`",
                    input.column
                )));
            }
            centre.push(0.5 * (least + most));
            range.push(0.5 * (most - least));
        }
        let boundary = match known.one("boundary")? {
            Some(word) => match known.number(word)? {
                given if given > 1.0 => given,
                _ => return Err(known.error(&word.span, "`boundary` must be more than 1")),
            },
            None if dimensions == 1 => WIDE,
            None => WIDE_OF_SEVERAL,
        };
        let counts = match known.list("basis") {
            Some(words) if words.len() != 1 && words.len() != dimensions => {
                let message = format!("`basis` needs one number or a list of {dimensions}");
                return Err(known.error(&words[1].span, message));
            }
            Some(words) => (0..dimensions)
                .map(|d| known.count(&words[d % words.len()]))
                .collect::<Result<Vec<usize>, _>>()?,
            None => self.counts(row.shape, &settings[1..], &range, boundary),
        };
        let total = counts
            .iter()
            .fold(1usize, |all, own| all.saturating_mul(*own));
        if total > LIMIT {
            return Err(at_call(format!(
                "{total} basis functions are more than {LIMIT}; use fewer (`basis=`)"
            )));
        }
        let basis = Basis {
            inputs,
            centre,
            range,
            boundary,
            counts,
        };
        let spectral = Spectral::new(row.shape, settings, basis.clone());
        Ok((Reader::Basis(basis), Body::Spectral(spectral)))
    }

    /// The default numbers of functions.
    fn counts(
        &self,
        shape: Shape,
        lengthscales: &[Setting],
        range: &[f64],
        boundary: f64,
    ) -> Vec<usize> {
        let hyper = self.known.hyper("lengthscale");
        let share = hyper.map_or(1.0, |hyper| hyper.usual.0);
        let most = (MOST as f64).powf(1.0 / range.len() as f64).floor() as usize;
        (range.iter().enumerate())
            .map(|(d, range)| {
                let setting = &lengthscales[d % lengthscales.len()];
                let shortest = setting.value * if setting.free { share } else { 1.0 };
                let wanted = count_for(shape, shortest / range, boundary);
                wanted.unwrap_or(most).min(most)
            })
            .collect()
    }
}
