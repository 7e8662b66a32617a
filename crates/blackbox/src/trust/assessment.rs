//! The assessment of a step: the change of the ELBO on fresh draws, which are the same at both ends of the step.

use jensen_density::{Lanes, LogDensity};

use crate::evaluation::log_weights_of;
use crate::noise::{NoisePurpose, NoiseSource};
use crate::oracle::{Estimate, Oracle, Stream};
use crate::records::{Choose, Layout, StreamPosition};
use crate::sizes;

use super::draws::mirrored;
use super::quadratic::{Quadratic, take_out};

#[derive(Clone, Debug)]
pub(crate) struct Assessment {
    /// The observed change ℓ′ of the ELBO. It is −∞ if, for some draw, the density is finite at the beginning of the
    /// step but not at its end.
    pub change: Estimate,
    /// The variance σ² of the change for a single draw.
    pub variance: f64,
    pub before: Estimate,
    pub after: Estimate,
    pub draws: usize,
}

#[derive(Clone, Copy)]
pub(crate) struct Sample<'a> {
    pub source: NoiseSource,
    pub key: u64,
    pub draws: usize,
    /// The required standard error. While the standard error is larger, the number of draws doubles.
    pub precision: f64,
    pub most: usize,
    pub records: Option<&'a dyn Choose>,
}

/// Assesses a step with antithetic pairs of draws. The pairs are the independent observations, and `variance` is twice
/// their variance. The assessment subtracts the control variate `quadratic`.
pub(crate) fn assess<D: LogDensity>(
    oracle: &mut Oracle<'_, D>,
    from: &[f64],
    to: &[f64],
    sample: Sample<'_>,
    quadratic: Option<&Quadratic<'_>>,
) -> Assessment {
    let rows = oracle.family().noise_dim();
    let most_pairs = sizes::lanes(rows) / 2;
    let stream = Stream {
        source: sample.source,
        purpose: NoisePurpose::Change,
        iteration: sample.key,
    };
    let (mut before, mut after, mut variate) = (Vec::new(), Vec::new(), Vec::new());
    let mut target = sample.draws.div_ceil(2).max(2);
    let mut done = 0;
    loop {
        while done < target {
            let pairs = most_pairs.min(target - done);
            let lanes = 2 * pairs;
            let mut noise = vec![0.0; rows * lanes];
            let columns = (0, lanes);
            mirrored(stream, done, rows, pairs, columns, &mut noise);
            if let Some(quadratic) = quadratic {
                variate.extend(quadratic.pairs(&noise, lanes));
            }
            if let Some(records) = sample.records {
                records.choose(StreamPosition {
                    stream,
                    first: done,
                    layout: Layout::Blocks(2),
                });
            }
            let noise = Lanes::new(&noise, rows, lanes);
            let first = oracle.log_weights(from, noise);
            let second = oracle.log_weights(to, noise);
            let off = first
                .iter()
                .zip(&second)
                .any(|(a, b)| a.is_finite() && !b.is_finite());
            before.extend(first);
            after.extend(second);
            done += pairs;
            if off {
                return Assessment {
                    change: Estimate {
                        mean: f64::NEG_INFINITY,
                        standard_error: 0.0,
                    },
                    variance: f64::INFINITY,
                    before: log_weights_of(&before),
                    after: Estimate {
                        mean: f64::NEG_INFINITY,
                        standard_error: 0.0,
                    },
                    draws: 2 * done,
                };
            }
        }
        let mut pairs: Vec<f64> = before
            .chunks(2)
            .zip(after.chunks(2))
            .map(|(a, b)| 0.5 * ((b[0] - a[0]) + (b[1] - a[1])))
            .collect();
        if quadratic.is_some() && pairs.iter().all(|x| x.is_finite()) {
            take_out(&mut pairs, &variate);
        }
        pairs.retain(|x| x.is_finite());
        let change = Estimate::of(&pairs);
        if change.standard_error <= sample.precision || 4 * done > sample.most {
            return Assessment {
                variance: 2.0 * change.standard_error.powi(2) * pairs.len() as f64,
                change,
                before: log_weights_of(&before),
                after: log_weights_of(&after),
                draws: 2 * done,
            };
        }
        target = 2 * done;
    }
}
