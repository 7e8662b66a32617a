//! A check of families. It compares the maps of a family with finite differences. It compares the density of the family
//! with draws.

use std::fmt;

use jensen_density::{Lanes, LanesMut};
use jensen_math::simd::Simd;
use jensen_math::special::lgamma;

use super::{Family, FamilyName, FullRank, Smoothness};
use crate::dense::{cholesky, solve_lower_lanes};
use crate::noise::{NoisePurpose, NoiseSource};
use crate::reduce::{dot, mean_se};

/// The number of points at which the check compares maps and derivatives. Each point is random in every coordinate, so
/// a wrong formula differs at each of them.
const LANES: usize = 6;

/// The number of draws for the check of moments. Their standard error is 1/256 of a standard deviation.
const DRAWS: usize = 1 << 16;

/// Half the distance between the two points of a central difference. The truncation error of the difference is about
/// the square of this number. The rounding error is about the machine precision divided by this number.
const STEP: f64 = 1e-5;

/// The largest allowed error of a difference, relative to the largest value of the map. Rounding and curvature cause
/// less than a hundredth of this error.
const DIFFERENCE: f64 = 1e-6;

/// The largest allowed error of an average over draws, in standard errors. By chance, an error exceeds five standard
/// errors about once in two million averages. Default moments are computed from a sixteenth of the draws of the check,
/// so their standard errors are four times as large.
const ERRORS: f64 = 5.0;

/// The limit [`ERRORS`] for averages over a sixteenth of the draws.
const ERRORS_OF_FIXED: f64 = 4.0 * ERRORS;

/// The largest allowed relative error of a standard deviation. With a few thousand draws, the error of the standard
/// deviation is smaller than this, even if the distribution has long tails.
const SHARE: f64 = 0.1;

/// The radius of the balls over which the density is integrated, and the distance of the outer balls from the centre.
/// Both are in standard deviations and are multiplied by the square root of the dimension. The balls are small, so that
/// the density varies little within each of them. In four dimensions, a ball of this radius contains one draw in fifty.
const RADIUS: f64 = 0.35;

/// The distance of the outer balls from the centre (see [`RADIUS`]).
const BESIDE: f64 = 0.5;

/// An error in one of the methods of a family.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FamilyFault {
    /// The name of the family.
    pub family: FamilyName,
    /// The method of [`Family`] that returned a wrong value.
    pub map: &'static str,
    /// The index of the wrong value in the output of the method.
    pub index: usize,
    /// The value that the method returned.
    pub found: f64,
    /// The value that another method implies.
    pub expected: f64,
    /// The method that implies the expected value.
    pub by: &'static str,
}

impl fmt::Display for FamilyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            family,
            map,
            index,
            found,
            expected,
            by,
        } = self;
        write!(
            f,
            "the family `{family}`: {map} is {found} at index {index}, but {expected} by {by}"
        )
    }
}

impl std::error::Error for FamilyFault {}

/// Checks a family at one of its members, which is close to a [diagonal](Family::diagonal) one.
///
/// The [smoothness](Family::smoothness) of the family states which derivatives it provides. The check compares these
/// derivatives with finite differences. It compares the density, the mean, the standard deviations and the entropy with
/// draws. It also checks that no lane depends on another lane. The check takes about as long as generating 100 000
/// draws. Check a family in few dimensions: the check is fast there, and it also finds wrong maps there.
///
/// # Errors
/// Returns the first wrong value as an error.
///
/// # Panics
/// Panics if a map panics, for example because the family lacks a map that its smoothness announces.
pub fn check_family(family: &dyn Family) -> Result<(), FamilyFault> {
    check_maps(family)?;
    Check::new(family).draws()
}

pub(super) fn check_maps(family: &dyn Family) -> Result<(), FamilyFault> {
    let check = Check::new(family);
    check.members()?;
    check.lanes()?;
    check.density_at()?;
    if family.smoothness() != Smoothness::None {
        check.first_order()?;
    }
    if family.smoothness() == Smoothness::Twice {
        check.second_order()?;
        check.entropy()?;
        check.metric()?;
    }
    Ok(())
}

struct Check<'a> {
    family: &'a dyn Family,
    omega: Vec<f64>,
    noise: Vec<f64>,
}

type Methods = (&'static str, &'static str);

fn normals(rows: usize, lanes: usize, key: u64) -> Vec<f64> {
    let mut out = vec![0.0; rows * lanes];
    let source = NoiseSource::new(3, Simd::Scalar);
    source.fill(NoisePurpose::Draws, key, 0, rows, lanes, &mut out);
    out
}

pub(super) fn moved(x: &[f64], direction: &[f64], step: f64) -> Vec<f64> {
    let pairs = x.iter().zip(direction);
    pairs.map(|(x, d)| x + step * d).collect()
}

fn difference(f: impl Fn(f64) -> Vec<f64>) -> Vec<f64> {
    let (up, down) = (f(STEP), f(-STEP));
    let pairs = up.iter().zip(&down);
    pairs.map(|(up, down)| (up - down) / (2.0 * STEP)).collect()
}

impl<'a> Check<'a> {
    fn new(family: &'a dyn Family) -> Self {
        let wave = |i: usize, size: f64| size * (1.7 * i as f64 + 0.3).sin();
        let of = |size: f64| -> Vec<f64> { (0..family.dim()).map(|i| wave(i, size)).collect() };
        let (mean, log_sd) = (of(2.0), of(0.5));
        let omega = match family.begins_at() {
            None => family.diagonal(&mean, &log_sd),
            Some(_) => {
                let gaussian = FullRank::new(family.dim()).diagonal(&mean, &log_sd);
                let upon = family.upon(&gaussian, &[]);
                upon.unwrap_or_else(|| family.diagonal(&mean, &log_sd))
            }
        };
        let omega = match family.smoothness() {
            // The parameters can include weights of components, which must sum to one.
            Smoothness::None => omega,
            _ => moved(&omega, &normals(omega.len(), 1, 9), 0.2),
        };
        Self {
            omega,
            noise: normals(family.noise_dim(), LANES, 0),
            family,
        }
    }

    fn fault(
        &self,
        (map, by): Methods,
        index: usize,
        (found, expected): (f64, f64),
    ) -> FamilyFault {
        FamilyFault {
            family: self.family.name(),
            map,
            index,
            found,
            expected,
            by,
        }
    }

    fn compare(
        &self,
        methods: Methods,
        found: &[f64],
        expected: &[f64],
    ) -> Result<(), FamilyFault> {
        let largest = expected.iter().fold(1.0_f64, |most, x| most.max(x.abs()));
        self.within(methods, found, expected, |_| DIFFERENCE * largest)
    }

    fn within(
        &self,
        methods: Methods,
        found: &[f64],
        expected: &[f64],
        tolerance: impl Fn(usize) -> f64,
    ) -> Result<(), FamilyFault> {
        let mut pairs = found.iter().zip(expected).enumerate();
        pairs.try_for_each(|(i, (found, expected))| {
            self.near(methods, i, (*found, *expected), tolerance(i))
        })
    }

    fn near(
        &self,
        methods: Methods,
        index: usize,
        (found, expected): (f64, f64),
        tolerance: f64,
    ) -> Result<(), FamilyFault> {
        match (found - expected).abs() {
            error if error <= tolerance => Ok(()),
            _ => Err(self.fault(methods, index, (found, expected))),
        }
    }

    fn lanes_of<'n>(&self, noise: &'n [f64]) -> Lanes<'n> {
        let rows = self.family.noise_dim();
        Lanes::new(noise, rows, noise.len() / rows)
    }

    fn transform(&self, omega: &[f64], noise: &[f64]) -> Vec<f64> {
        let noise = self.lanes_of(noise);
        let mut z = vec![0.0; self.family.dim() * noise.lanes()];
        let out = LanesMut::new(&mut z, self.family.dim(), noise.lanes());
        self.family.transform(omega, noise, out);
        z
    }

    fn log_density(&self, noise: &[f64], z: &[f64]) -> Vec<f64> {
        let noise = self.lanes_of(noise);
        let mut out = vec![0.0; noise.lanes()];
        let z = Lanes::new(z, self.family.dim(), noise.lanes());
        self.family.log_density(&self.omega, noise, z, &mut out);
        out
    }

    fn pull(&self, omega: &[f64], grad: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; omega.len()];
        let grad = Lanes::new(grad, self.family.dim(), LANES);
        let noise = self.lanes_of(&self.noise);
        self.family.pull(omega, noise, grad, &mut out);
        out
    }

    fn gradient_of_entropy(&self, omega: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; omega.len()];
        self.family.add_entropy_gradient(omega, &mut out);
        out
    }

    fn members(&self) -> Result<(), FamilyFault> {
        let dim = self.family.dim();
        let (mean, log_sd) = (normals(dim, 1, 4), normals(dim, 1, 5));
        let omega = self.family.diagonal(&mean, &log_sd);
        let lengths = (omega.len() as f64, self.family.parameters() as f64);
        if lengths.0 != lengths.1 {
            return Err(self.fault(("the length of diagonal", "parameters"), 0, lengths));
        }
        let scale = |i: usize| SHARE * log_sd[i].exp();
        let found = self.family.mean(&omega);
        self.within(("diagonal", "mean"), &mean, &found, scale)?;
        let found = self.family.marginal_log_sd(&omega);
        self.within(("diagonal", "marginal_sd"), &log_sd, &found, |_| SHARE)?;
        let shrunk = self.family.shrink(&self.omega, 0.5);
        let (before, after) = (
            self.family.marginal_sd(&self.omega),
            self.family.marginal_sd(&shrunk),
        );
        // The tolerance is large, because a scale may depend on other coordinates.
        let half: Vec<f64> = before.iter().map(|sd| 0.5 * sd).collect();
        let methods = ("shrink", "marginal_sd");
        self.within(methods, &after, &half, |i| 0.5 * half[i])
    }

    fn lanes(&self) -> Result<(), FamilyFault> {
        let z = self.transform(&self.omega, &self.noise);
        for lane in 0..LANES {
            let of = |x: &[f64]| -> Vec<f64> { x[lane..].iter().step_by(LANES).copied().collect() };
            let alone = self.transform(&self.omega, &of(&self.noise));
            self.within(
                ("transform", "another number of lanes"),
                &alone,
                &of(&z),
                |_| 0.0,
            )?;
        }
        Ok(())
    }

    fn draws(&self) -> Result<(), FamilyFault> {
        let (family, by) = (self.family, "the draws of transform");
        let noise = normals(family.noise_dim(), DRAWS, 1);
        let mut z = self.transform(&self.omega, &noise);
        let log_q = self.log_density(&noise, &z);
        let (mean, sd) = (family.mean(&self.omega), family.marginal_sd(&self.omega));
        for (i, row) in z.chunks_mut(DRAWS).enumerate() {
            let (own, error) = mean_se(row);
            self.near(("mean", by), i, (mean[i], own), ERRORS_OF_FIXED * error)?;
            row.iter_mut().for_each(|z| *z -= own);
            let squares: Vec<f64> = row.iter().map(|z| z * z).collect();
            let (variance, error) = mean_se(&squares);
            let own = variance.sqrt();
            let most = SHARE * own + ERRORS_OF_FIXED * error / (2.0 * own);
            self.near(("marginal_sd", by), i, (sd[i], own), most)?;
        }
        self.integral(z, &log_q)?;
        let (own, error) = mean_se(&log_q);
        let entropies = (family.entropy(&self.omega), -own);
        let by = "the draws of log_density";
        self.near(("entropy", by), 0, entropies, ERRORS_OF_FIXED * error)
    }

    /// Integrates the density over three balls, in coordinates in which the draws have unit variances and no
    /// correlation. One ball is in the centre, and the two others are on opposite sides of it. The average of `1/q`
    /// over all draws, counted as 0 for draws outside a ball, is an estimate of the volume of that ball.
    fn integral(&self, centred: Vec<f64>, log_q: &[f64]) -> Result<(), FamilyFault> {
        let dim = self.family.dim();
        let row = |i: usize| &centred[i * DRAWS..(i + 1) * DRAWS];
        let mut covariance = vec![0.0; dim * dim];
        for i in 0..dim {
            for j in 0..dim {
                covariance[i * dim + j] = dot(row(i), row(j)) / DRAWS as f64;
            }
        }
        let methods = ("the integral of log_density", "definition");
        let factor =
            cholesky(&covariance, dim).ok_or_else(|| self.fault(methods, 0, (f64::NAN, 1.0)))?;
        let mut y = centred;
        solve_lower_lanes(&factor, dim, &mut y, DRAWS);
        let d = dim as f64;
        let log_volume = (0..dim).map(|i| factor[i * dim + i].ln()).sum::<f64>()
            + d * (RADIUS * d.sqrt()).ln()
            + 0.5 * d * std::f64::consts::PI.ln()
            - lgamma(0.5 * d + 1.0);
        for side in [-BESIDE, 0.0, BESIDE] {
            let mut squares = vec![0.0; DRAWS];
            for row in y.chunks(DRAWS) {
                for (square, y) in squares.iter_mut().zip(row) {
                    *square += (y - side / d.sqrt()).powi(2);
                }
            }
            let ratios: Vec<f64> = (log_q.iter().zip(squares))
                .map(|(log_q, square)| match square < RADIUS * RADIUS * d {
                    true => (-log_q - log_volume).exp(),
                    false => 0.0,
                })
                .collect();
            let (average, error) = mean_se(&ratios);
            self.near(methods, 0, (average, 1.0), ERRORS * error)?;
        }
        Ok(())
    }

    fn density_at(&self) -> Result<(), FamilyFault> {
        let z = self.transform(&self.omega, &self.noise);
        let mut at = vec![0.0; LANES];
        let points = Lanes::new(&z, self.family.dim(), LANES);
        self.family.log_density_at(&self.omega, points, &mut at);
        if at.iter().all(|x| x.is_nan()) {
            return Ok(());
        }
        let expected = self.log_density(&self.noise, &z);
        self.compare(("log_density_at", "log_density"), &at, &expected)
    }

    /// Checks `pull` by differences of `transform`, and checks `score` by differences of `log_density` along the noise.
    fn first_order(&self) -> Result<(), FamilyFault> {
        let (family, dim) = (self.family, self.family.dim());
        let grad = normals(dim, LANES, 2);
        let unit = |k: usize, n: usize| -> Vec<f64> {
            (0..n).map(|i| f64::from(u8::from(i == k))).collect()
        };
        let n = self.omega.len();
        let slopes: Vec<f64> = (0..n)
            .map(|k| {
                let moves = difference(|t| {
                    self.transform(&moved(&self.omega, &unit(k, n), t), &self.noise)
                });
                dot(&moves, &grad)
            })
            .collect();
        let methods = ("pull", "differences of transform");
        self.compare(methods, &self.pull(&self.omega, &grad), &slopes)?;
        let z = self.transform(&self.omega, &self.noise);
        let mut score = vec![0.0; dim * LANES];
        family.score(
            &self.omega,
            self.lanes_of(&self.noise),
            Lanes::new(&z, dim, LANES),
            LanesMut::new(&mut score, dim, LANES),
        );
        for row in 0..family.noise_dim() {
            let along: Vec<f64> = (0..self.noise.len())
                .map(|i| f64::from(u8::from(i / LANES == row)))
                .collect();
            let at = |t: f64| moved(&self.noise, &along, t);
            let moves = difference(|t| self.transform(&self.omega, &at(t)));
            let slopes = difference(|t| {
                let noise = at(t);
                self.log_density(&noise, &self.transform(&self.omega, &noise))
            });
            let found: Vec<f64> = (0..LANES)
                .map(|l| {
                    let lanes = (l..dim * LANES).step_by(LANES);
                    lanes.map(|i| score[i] * moves[i]).sum()
                })
                .collect();
            self.compare(("score", "differences of log_density"), &found, &slopes)?;
        }
        Ok(())
    }

    /// Checks `push` by differences of `transform`, and checks `pull_second` by differences of `pull`.
    fn second_order(&self) -> Result<(), FamilyFault> {
        let (family, dim) = (self.family, self.family.dim());
        let (grad, direction) = (normals(dim, LANES, 2), normals(self.omega.len(), 1, 6));
        let noise = self.lanes_of(&self.noise);
        let along = |t: f64| moved(&self.omega, &direction, t);
        let mut pushed = vec![0.0; dim * LANES];
        let out = LanesMut::new(&mut pushed, dim, LANES);
        family.push(&self.omega, &direction, noise, out);
        let expected = difference(|t| self.transform(&along(t), &self.noise));
        self.compare(("push", "differences of transform"), &pushed, &expected)?;
        let mut second = vec![0.0; self.omega.len()];
        let lanes = Lanes::new(&grad, dim, LANES);
        family.pull_second(&self.omega, &direction, noise, lanes, &mut second);
        let expected = difference(|t| self.pull(&along(t), &grad));
        self.compare(("pull_second", "differences of pull"), &second, &expected)
    }

    fn entropy(&self) -> Result<(), FamilyFault> {
        let direction = normals(self.omega.len(), 1, 6);
        let along = |t: f64| moved(&self.omega, &direction, t);
        let slope = difference(|t| vec![self.family.entropy(&along(t))]);
        let found = dot(&self.gradient_of_entropy(&self.omega), &direction);
        let methods = ("add_entropy_gradient", "differences of entropy");
        self.compare(methods, &[found], &slope)?;
        let mut product = vec![0.0; self.omega.len()];
        (self.family).add_entropy_hvp(&self.omega, &direction, &mut product);
        let expected = difference(|t| self.gradient_of_entropy(&along(t)));
        let methods = ("add_entropy_hvp", "differences of add_entropy_gradient");
        self.compare(methods, &product, &expected)
    }

    fn metric(&self) -> Result<(), FamilyFault> {
        let vectors = [7, 8].map(|key| normals(self.omega.len(), 1, key));
        let scaled = vectors.each_ref().map(|vector| {
            let mut out = vec![0.0; vector.len()];
            (self.family).precondition(&self.omega, None, vector, &mut out);
            out
        });
        let [across, back] = [(0, 1), (1, 0)].map(|(i, j)| dot(&vectors[i], &scaled[j]));
        let methods = ("precondition", "its transpose");
        self.compare(methods, &[across], &[back])?;
        let methods = (
            "the quadratic form of precondition",
            "the lower bound of a metric",
        );
        (0..2).try_for_each(|i| match dot(&vectors[i], &scaled[i]) {
            square if square > 0.0 => Ok(()),
            square => Err(self.fault(methods, i, (square, 0.0))),
        })
    }
}
