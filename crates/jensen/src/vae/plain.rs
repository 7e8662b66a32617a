//! The baseline models of records: a model with independent values, and a model with one linear factor.

mod counts;
mod student;

use jensen_math::constants::LOG_TWO_PI;
use jensen_neural::{Likelihood, Observation, Records};

/// The name of a baseline model, followed by its mean log density of the records in nats.
pub(super) type Scored = (&'static str, f64);

/// Fits the baseline models to `train` and returns the model that best explains `scored`.
pub(super) fn best(
    train: &dyn Records,
    scored: &dyn Records,
    observation: &Observation,
) -> Option<Scored> {
    let (train, scored) = (gathered(train), gathered(scored));
    let parts = observation.parts();
    if parts.len() > 1 {
        let mut first = 0;
        let score: f64 = parts
            .iter()
            .map(|part| {
                let range = first..first + part.width;
                first = range.end;
                let own = Observation {
                    missing: observation.missing,
                    ..Observation::new(part.width, part.likelihood)
                };
                let (train, scored) = (some(&train, range.clone()), some(&scored, range));
                independent(&train, &scored, &own).1
            })
            .sum();
        return score.is_finite().then_some(("independent columns", score));
    }
    // The values on which the model conditions are not modelled.
    let modelled = 0..observation.width;
    let (train, scored) = (some(&train, modelled.clone()), some(&scored, modelled));
    let mut all = vec![independent(&train, &scored, observation)];
    if let Likelihood::Gaussian { .. } = observation.likelihood
        && train.len() > 2
    {
        all.push((
            "one linear factor",
            Factor::of(&train).mean_log_density(&scored),
        ));
    }
    let finite = all.into_iter().filter(|(_, score)| score.is_finite());
    finite.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// Fits the model with independent columns that have the distribution of the decoder.
fn independent(train: &[Vec<f64>], scored: &[Vec<f64>], observation: &Observation) -> Scored {
    match observation.likelihood {
        Likelihood::Bernoulli => ("independent binary values", binary(train, scored)),
        Likelihood::Categorical { categories } => {
            ("independent categories", grouped(train, scored, categories))
        }
        Likelihood::Gaussian { .. } => ("independent normals", {
            let normals = Factor::none(train);
            normals.mean_log_density(scored)
        }),
        Likelihood::StudentT { degrees } => (
            "independent Student's t",
            student::independent(train, scored, degrees.map(f64::from)),
        ),
        Likelihood::Poisson => (
            "independent Poisson counts",
            counts::independent(train, scored, observation),
        ),
        Likelihood::NegativeBinomial => (
            "independent negative binomial counts",
            counts::independent(train, scored, observation),
        ),
        Likelihood::ZeroInflatedNegativeBinomial => (
            "independent negative binomial counts with excess zeros",
            counts::independent(train, scored, observation),
        ),
    }
}

fn some(rows: &[Vec<f64>], range: std::ops::Range<usize>) -> Vec<Vec<f64>> {
    rows.iter().map(|row| row[range.clone()].to_vec()).collect()
}

fn gathered(records: &dyn Records) -> Vec<Vec<f64>> {
    let mut row = vec![0.0f32; records.width()];
    let mut read = |index| {
        records.read(index, &mut row);
        row.iter().map(|x| f64::from(*x)).collect()
    };
    (0..records.len()).map(&mut read).collect()
}

fn mean_of(rows: &[Vec<f64>], of: impl Fn(&[f64]) -> f64) -> f64 {
    rows.iter().map(|row| of(row)).sum::<f64>() / rows.len().max(1) as f64
}

fn present(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let known = values.filter(|x| !x.is_nan());
    let (count, sum) = known.fold((0.0, 0.0), |(n, sum), x| (n + 1.0, sum + x));
    (count, sum / f64::max(count, 1.0))
}

fn columns(rows: &[Vec<f64>]) -> Vec<(f64, f64)> {
    let width = rows.first().map_or(0, Vec::len);
    (0..width)
        .map(|i| present(rows.iter().map(|row| row[i])))
        .collect()
}

fn pairs<'a, T>(row: &'a [f64], of_columns: &'a [T]) -> impl Iterator<Item = (f64, &'a T)> {
    let all = row.iter().copied().zip(of_columns);
    all.filter(|(x, _)| !x.is_nan())
}

/// Returns the mean log probability of `scored` under a model with independent columns that have the distribution of
/// the decoder. The fit of each column adds half a success and half a failure to the data.
fn binary(train: &[Vec<f64>], scored: &[Vec<f64>]) -> f64 {
    let share = |(n, mean): (f64, f64)| (n * mean + 0.5) / (n + 1.0);
    let p: Vec<f64> = columns(train).into_iter().map(share).collect();
    mean_of(scored, |row| {
        pairs(row, &p)
            .map(|(x, p)| x * p.ln() + (1.0 - x) * (-p).ln_1p())
            .sum()
    })
}

/// Returns the mean log probability of `scored` under a model with independent groups of indicators. The fit of each
/// group adds half a record of each category to the data.
fn grouped(train: &[Vec<f64>], scored: &[Vec<f64>], categories: usize) -> f64 {
    let share = |(n, mean): (f64, f64)| (n * mean + 0.5) / (n + 0.5 * categories as f64);
    let p: Vec<f64> = columns(train).into_iter().map(share).collect();
    mean_of(scored, |row| pairs(row, &p).map(|(x, p)| x * p.ln()).sum())
}

/// The model x = mean + loadings · z + noise, where z is standard normal. The model is fitted by maximum likelihood
/// with the EM algorithm (Rubin and Thayer 1982).
struct Factor {
    mean: Vec<f64>,
    loadings: Vec<f64>,
    noise: Vec<f64>,
}

/// The minimum noise variance of a column, as a fraction of the variance of the column. R's factanal uses the same
/// value. Without a minimum, the likelihood is unbounded if the factor equals a column.
const UNIQUE: f64 = 0.005;

/// The maximum number of EM iterations. The iterations also end if the log likelihood increases by less than a limit,
/// in nats per record. Both limits are loose, because the model serves only as a baseline.
const ROUNDS: usize = 200;
const STILL: f64 = 1e-5;

impl Factor {
    fn none(rows: &[Vec<f64>]) -> Self {
        let mean: Vec<f64> = columns(rows).into_iter().map(|(_, mean)| mean).collect();
        let variance = |i: usize| present(rows.iter().map(|row| (row[i] - mean[i]).powi(2))).1;
        let noise = (0..mean.len())
            .map(|i| variance(i).max(f64::MIN_POSITIVE))
            .collect();
        let loadings = vec![0.0; mean.len()];
        Self {
            mean,
            loadings,
            noise,
        }
    }

    /// Fits the model with one factor. The iterations start at the first principal component.
    fn of(rows: &[Vec<f64>]) -> Self {
        let mut factor = Self::none(rows);
        let variance = factor.noise.clone();
        let sd: Vec<f64> = variance.iter().map(|v| v.sqrt()).collect();
        let scaled = |row: &[f64], mean: &[f64]| -> Vec<f64> {
            let value = |i: usize| (row[i] - mean[i]) / sd[i];
            let known = |x: f64| if x.is_nan() { 0.0 } else { x };
            (0..row.len()).map(|i| known(value(i))).collect()
        };
        // This starting axis is not orthogonal to any pattern of signs.
        let mut axis: Vec<f64> = (0..sd.len())
            .map(|i| 1.0 + 0.1 * (i as f64).sin())
            .collect();
        for _ in 0..20 {
            let mut next = vec![0.0; axis.len()];
            for row in rows {
                let row = scaled(row, &factor.mean);
                let score: f64 = row.iter().zip(&axis).map(|(x, a)| x * a).sum();
                next.iter_mut()
                    .zip(&row)
                    .for_each(|(next, x)| *next += score * x);
            }
            let length = next.iter().map(|x| x * x).sum::<f64>().sqrt();
            axis = next
                .iter()
                .map(|x| x / length.max(f64::MIN_POSITIVE))
                .collect();
        }
        let strength = mean_of(rows, |row| {
            let row = scaled(row, &factor.mean);
            row.iter()
                .zip(&axis)
                .map(|(x, a)| x * a)
                .sum::<f64>()
                .powi(2)
        });
        for i in 0..axis.len() {
            let share = (strength.sqrt() * axis[i]).clamp(-0.95, 0.95);
            factor.loadings[i] = share * sd[i];
            factor.noise[i] = (1.0 - share * share) * variance[i];
        }
        let mut before = f64::NEG_INFINITY;
        for _ in 0..ROUNDS {
            let score = factor.mean_log_density(rows);
            if score.is_nan() || score - before <= STILL {
                break;
            }
            before = score;
            factor.improve(rows, &variance);
        }
        factor
    }

    /// Returns Σ loadings² / noise and Σ loadings (x − mean) / noise, where both sums run over the columns.
    fn projected(&self, row: &[f64]) -> (f64, f64) {
        let mut sums = (0.0, 0.0);
        for (((x, m), w), v) in row
            .iter()
            .zip(&self.mean)
            .zip(&self.loadings)
            .zip(&self.noise)
            .filter(|(((x, _), _), _)| !x.is_nan())
        {
            sums.0 += w * w / v;
            sums.1 += w * (x - m) / v;
        }
        sums
    }

    fn improve(&mut self, rows: &[Vec<f64>], variance: &[f64]) {
        let width = self.mean.len();
        let (mut counts, mut products) = (vec![0.0; width], vec![0.0; width]);
        let mut squares = vec![0.0; width];
        for row in rows {
            let (strength, projected) = self.projected(row);
            let spread = 1.0 / (1.0 + strength);
            let score = spread * projected;
            for i in (0..width).filter(|i| !row[*i].is_nan()) {
                counts[i] += 1.0;
                squares[i] += spread + score * score;
                products[i] += score * (row[i] - self.mean[i]);
            }
        }
        for i in 0..width {
            self.loadings[i] = products[i] / squares[i];
            let left = variance[i] - self.loadings[i] * products[i] / counts[i];
            self.noise[i] = left.max(UNIQUE * variance[i]);
        }
    }

    fn mean_log_density(&self, rows: &[Vec<f64>]) -> f64 {
        let logs: Vec<f64> = self.noise.iter().map(|v| LOG_TWO_PI + v.ln()).collect();
        mean_of(rows, |row| {
            let (strength, projected) = self.projected(row);
            let terms = row.iter().zip(&self.mean).zip(&self.noise);
            let squares = terms.map(|((x, m), v)| (x - m).powi(2) / v);
            let squares: f64 = squares.filter(|square| !square.is_nan()).sum();
            let logs: f64 = pairs(row, &logs).map(|(_, log)| log).sum();
            let explained = projected * projected / (1.0 + strength);
            -0.5 * (logs + strength.ln_1p() + squares - explained)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_found() {
        let wave = |i: usize, f: f64| (i as f64 * f).sin() + (i as f64 * f * 1.618).cos();
        let rows: Vec<Vec<f64>> = (0..400)
            .map(|i| {
                let z = wave(i, 0.7);
                vec![
                    z + 0.3 * wave(i, 1.9),
                    -2.0 * z + 0.5 * wave(i, 2.3),
                    z + wave(i, 3.1),
                ]
            })
            .collect();
        let plain = Factor::none(&rows).mean_log_density(&rows);
        let factor = Factor::of(&rows);
        // With three columns the model is saturated, so its density equals the density of the fitted normal
        // distribution.
        let m: Vec<f64> = columns(&rows).into_iter().map(|(_, mean)| mean).collect();
        let s = |i: usize, j: usize| mean_of(&rows, |x| (x[i] - m[i]) * (x[j] - m[j]));
        let det = s(0, 0) * (s(1, 1) * s(2, 2) - s(1, 2).powi(2))
            - s(0, 1) * (s(0, 1) * s(2, 2) - s(1, 2) * s(0, 2))
            + s(0, 2) * (s(0, 1) * s(1, 2) - s(1, 1) * s(0, 2));
        let exact = -0.5 * (3.0 * LOG_TWO_PI + det.ln() + 3.0);
        let found = factor.mean_log_density(&rows);
        assert!(
            found > plain + 0.5 && (found - exact).abs() < 0.01,
            "{plain} {found} {exact}"
        );
        // If a value is missing, the density is the marginal density of the other values.
        let pair = |x: &[f64]| {
            Factor {
                mean: factor.mean[..2].to_vec(),
                loadings: factor.loadings[..2].to_vec(),
                noise: factor.noise[..2].to_vec(),
            }
            .mean_log_density(&[x.to_vec()])
        };
        let gap = factor.mean_log_density(&[vec![0.3, -0.4, f64::NAN]]);
        assert!((gap - pair(&[0.3, -0.4])).abs() < 1e-12);
    }
}
