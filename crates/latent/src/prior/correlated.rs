//! Correlated effects of groups, such as an intercept and a slope for each group: z_g ~ N(0, Σ), independent over
//! groups.
//!
//! Σ = D R D, where D contains the standard deviations and R = L Lᵀ is a correlation matrix. The hyperparameters are
//! the variances and the canonical partial correlations c_ij of variables i > j given the variables before j
//! (Lewandowski, Kurowicka and Joe 2009). The factor is `L_ij = c_ij Π_{l<j} √(1 − c_il²)` and `L_ii = Π_{l<i} √(1 −
//! c_il²)`, so any c in (−1, 1) gives a correlation matrix. The partial correlations with the first variable are
//! ordinary correlations. Under an LKJ prior with shape η, the partial correlations are independent. With k variables
//! numbered from 0, each has a density proportional to (1 − c²)^(a−1) with a = η + (k − 2 − j)/2.

use super::by;
use super::field::{Coefficients, Field, FieldKind};
use super::inputs::Covariate;
use super::setting::Setting;
use crate::linear::kernels::dot;
use crate::{Dense, Error, PriorDensity, Range};

/// Returns pairs of variables (i, j) with i > j, in the order of their hyperparameters.
pub(super) fn pairs(size: usize) -> impl Iterator<Item = (usize, usize)> {
    (1..size).flat_map(|i| (0..i).map(move |j| (i, j)))
}

/// Returns the prior of a partial correlation with variable `j`, if R has an LKJ prior with this shape.
pub(super) fn partial_prior(shape: f64, size: usize, j: usize) -> PriorDensity {
    PriorDensity::Lkj {
        shape: shape + 0.5 * (size as f64 - 2.0 - j as f64),
    }
}

fn correlation_root(size: usize, partial: &[f64]) -> Dense {
    let mut root = Dense::zeros(size, size);
    let mut at = partial.iter();
    for i in 0..size {
        let mut left = 1.0f64;
        for j in 0..i {
            let c = at.next().copied().unwrap_or(0.0);
            root.data[j * size + i] = c * left;
            left *= ((1.0 - c) * (1.0 + c)).sqrt();
        }
        root.data[i * size + i] = left;
    }
    root
}

/// Computes the factor D L of Σ.
pub(super) fn root(size: usize, values: &[f64]) -> Dense {
    let mut root = correlation_root(size, &values[size..]);
    for column in root.data.chunks_mut(size) {
        column
            .iter_mut()
            .zip(values)
            .for_each(|(l, v)| *l *= v.sqrt());
    }
    root
}

fn inverse(root: &Dense) -> Dense {
    let n = root.rows;
    let mut out = Dense::zeros(n, n);
    for j in 0..n {
        for i in j..n {
            let known: f64 = (j..i).map(|k| root.get(i, k) * out.get(k, j)).sum();
            out.data[j * n + i] = (f64::from(i == j) - known) / root.get(i, i);
        }
    }
    out
}

pub(super) fn coefficients(groups: f64, size: usize, values: &[f64]) -> Coefficients {
    let (variances, partial) = values.split_at(size);
    let upward = inverse(&root(size, values));
    let precision = Dense::from_fn(size, size, |i, j| {
        (i.max(j)..size)
            .map(|k| upward.get(k, i) * upward.get(k, j))
            .sum()
    });
    let listed = |matrix: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        let all = (0..size).flat_map(|i| (0..=i).map(move |j| (i, j)));
        all.map(|(i, j)| matrix(i, j)).collect()
    };
    let mut slope = Vec::with_capacity(values.len());
    let mut by_determinant = Vec::with_capacity(values.len());
    for (a, variance) in variances.iter().enumerate() {
        slope.push(listed(&|i, j| {
            let times = f64::from(u8::from(i == a) + u8::from(j == a));
            -0.5 * times * precision.get(i, j) / variance
        }));
        by_determinant.push(-groups / variance);
    }
    // The first derivative is d log |Σ| / dc = −2c/(1 − c²). A change dc of c_aj changes row a of D L by δ, and Σ⁻¹ by
    // −(p qᵀ + q pᵀ), with p = Σ⁻¹ e_a and q = Σ⁻¹ D L δ.
    let whole = root(size, values);
    for ((a, j), c) in pairs(size).zip(partial) {
        let left = (1.0 - c) * (1.0 + c);
        let before: f64 = (pairs(size).zip(partial))
            .filter(|((b, l), _)| *b == a && *l < j)
            .map(|(_, c)| ((1.0 - c) * (1.0 + c)).sqrt())
            .product();
        let delta = |m: usize| match m {
            m if m < j || m > a => 0.0,
            m if m == j => variances[a].sqrt() * before,
            m => -whole.get(a, m) * c / left,
        };
        let moved: Vec<f64> = (0..size)
            .map(|i| (0..=i).map(|m| whole.get(i, m) * delta(m)).sum())
            .collect();
        let q: Vec<f64> = (0..size)
            .map(|i| (0..size).map(|k| precision.get(i, k) * moved[k]).sum())
            .collect();
        slope.push(listed(&|i, k| {
            -(precision.get(i, a) * q[k] + q[i] * precision.get(k, a))
        }));
        by_determinant.push(2.0 * groups * c / left);
    }
    let log_determinant = variances.iter().map(|v| v.ln()).sum::<f64>()
        + partial
            .iter()
            .map(|c| ((1.0 - c) * (1.0 + c)).ln())
            .sum::<f64>();
    Coefficients {
        value: listed(&|i, j| precision.get(i, j)),
        slope,
        log_determinant: Some((-groups * log_determinant, by_determinant)),
    }
}

/// A quantity that hyperparameters determine.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    /// The name in tables.
    pub name: String,
    /// The range of values.
    pub range: Range,
    /// The value in the table's units that corresponds to 1 in the model.
    pub unit: f64,
}

/// The level of a group where all columns are 0. The model itself defines the level at the means of the columns.
pub(super) struct LevelAtZero<'a> {
    factors: &'a [Option<Covariate>],
    level: usize,
}

impl<'a> LevelAtZero<'a> {
    /// Returns `None` unless the factors include a level and a centred column.
    pub(super) fn of(factors: &'a [Option<Covariate>]) -> Option<Self> {
        let level = factors.iter().position(Option::is_none)?;
        let centred = factors.iter().flatten().any(|c| c.centre != 0.0);
        centred.then_some(Self { factors, level })
    }

    /// Returns the variance of the level and the correlations of the level with the slopes.
    pub(super) fn quantities(&self, label: &str, settings: &[Setting]) -> Vec<Derived> {
        let columns: Vec<String> = (self.factors.iter().flatten())
            .map(|c| format!("{}=0", c.name()))
            .collect();
        let zero = columns.join(",");
        let correlation = |factor| Derived {
            name: format!("{label}[1 at {zero},{}].cor", by::name(factor)),
            range: Range::Between(-1.0, 1.0),
            unit: 1.0,
        };
        let slopes = self.factors.iter().filter(|factor| factor.is_some());
        std::iter::once(Derived {
            name: format!("{label}[1 at {zero}].variance"),
            range: Range::Positive,
            unit: settings[self.level].unit,
        })
        .chain(slopes.map(correlation))
        .collect()
    }

    pub(super) fn values(&self, values: &[f64]) -> Vec<f64> {
        let size = self.factors.len();
        let root = root(size, values);
        let weights: Vec<f64> = (self.factors.iter())
            .map(|factor| factor.as_ref().map_or(1.0, |c| -c.centre / c.scale))
            .collect();
        // The rows of the factor of a covariance.
        let zero: Vec<f64> = (0..size).map(|j| dot(root.col(j), &weights)).collect();
        let variance = dot(&zero, &zero);
        let correlation = |i: usize| {
            let own: Vec<f64> = (0..size).map(|j| root.get(i, j)).collect();
            dot(&zero, &own) / (variance * dot(&own, &own)).sqrt()
        };
        let slopes = (0..size).filter(|i| *i != self.level);
        std::iter::once(variance)
            .chain(slopes.map(correlation))
            .collect()
    }
}

impl Field {
    /// Returns a field with `size` correlated variables in each of `groups` groups. Variable i of group g has the index
    /// `g · size + i`. `settings` contains the variances, followed by the partial correlations in the row order of the
    /// lower triangle.
    ///
    /// # Errors
    /// Fails if there are no groups.
    pub fn correlated(groups: usize, size: usize, settings: Vec<Setting>) -> Result<Self, Error> {
        let terms: Vec<Vec<(usize, usize, f64)>> = (0..size)
            .flat_map(|i| (0..=i).map(move |j| (i, j)))
            .map(|(i, j)| {
                (0..groups)
                    .flat_map(|g| {
                        let (a, b) = (g * size + i, g * size + j);
                        let mirrored = (i != j).then_some((b, a, 1.0));
                        std::iter::once((a, b, 1.0)).chain(mirrored)
                    })
                    .collect()
            })
            .collect();
        Self::from_terms(
            groups * size,
            &terms,
            FieldKind::Correlated {
                groups: groups as f64,
                size,
            },
            settings,
        )
    }

    /// Returns a factor of the covariance of a group that occurs in no row, if the groups are independent.
    pub(super) fn new_group(&self, values: &[f64]) -> Option<Dense> {
        match self.family {
            FieldKind::Correlated { size, .. } => Some(root(size, values)),
            _ => None,
        }
    }
}
