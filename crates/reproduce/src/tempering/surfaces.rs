//! Figure 1 shows the annealed objective of a mixture of two one-dimensional Gaussians as a function of their means.

use jensen::math::constants::LOG_TWO_PI;
use jensen::math::rng::{Purpose, Stream};
use jensen::math::special::{inv_phi, log_sum_exp};
use jensen::report::figure::{Axis, Figure, HeatMap, Series};

use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, What};

/// The weight of the first Gaussian. Both Gaussians have variance 1.
const WEIGHT: f64 = 0.3;
/// The means of the two Gaussians. The optimum splits at the temperature that equals the variance of the data, which is
/// 1 + 4 · 3.2² · 0.3 · 0.7 = 9.6. This temperature is between the second and the third of the temperatures in the
/// paper.
const MEANS: [f64; 2] = [-3.2, 3.2];
const PRIOR: f64 = 100.0;
const POINTS: u64 = 500;
const TEMPERATURES: [f64; 4] = [20.0, 13.0, 8.5, 1.0];
const GRID: usize = 81;
/// The largest coordinate of the grid. The grid extends from minus this value to this value.
const RANGE: f64 = 8.0;

const DATA: Purpose = Purpose::new("two Gaussians");

fn data() -> Vec<f64> {
    let mut stream = Stream::new(1, DATA, 0, 0);
    (0..POINTS)
        .map(|_| {
            let mean = MEANS[usize::from(stream.uniform() > WEIGHT)];
            mean + inv_phi(stream.uniform())
        })
        .collect()
}

/// Returns the objective at the given means with the optimal q(z), in nats. The objective is the log prior plus Σ_n log
/// Σ_k (π_k N(x_n; μ_k, 1))^(1/T).
fn objective(data: &[f64], means: [f64; 2], temperature: f64) -> f64 {
    let part = |x: f64, mean: f64, weight: f64| {
        (weight.ln() - 0.5 * (x - mean) * (x - mean) - 0.5 * LOG_TWO_PI) / temperature
    };
    let likelihood: f64 = data
        .iter()
        .map(|&x| log_sum_exp(part(x, means[0], WEIGHT), part(x, means[1], 1.0 - WEIGHT)))
        .sum();
    let prior: f64 = means
        .iter()
        .map(|m| -0.5 * m * m / PRIOR - 0.5 * (LOG_TWO_PI + PRIOR.ln()))
        .sum();
    likelihood + prior
}

fn axis(i: usize) -> f64 {
    RANGE * (2.0 * i as f64 / (GRID - 1) as f64 - 1.0)
}

fn peaks(values: &[f64]) -> Vec<(usize, usize)> {
    let at = |i: usize, j: usize| values[i * GRID + j];
    let mut found = Vec::new();
    for i in 1..GRID - 1 {
        for j in 1..GRID - 1 {
            let higher = (i - 1..=i + 1)
                .flat_map(|a| (j - 1..=j + 1).map(move |b| (a, b)))
                .any(|(a, b)| (a, b) != (i, j) && at(a, b) >= at(i, j));
            if !higher {
                found.push((i, j));
            }
        }
    }
    found
}

/// Draws the four surfaces of Figure 1 and counts their peaks.
pub fn figure1(context: &mut Context<'_>) -> Result<(), Failure> {
    let data = data();
    let mut figure = Figure::new("").columns(2);
    for temperature in TEMPERATURES {
        let values: Vec<f64> = context.keep(&format!("surface-{temperature}"), |_| {
            Ok((0..GRID * GRID)
                .map(|cell| {
                    let means = [axis(cell % GRID), axis(cell / GRID)];
                    objective(&data, means, temperature)
                })
                .collect())
        })?;
        let mut peaks = peaks(&values);
        peaks.sort_by(|a, b| values[b.0 * GRID + b.1].total_cmp(&values[a.0 * GRID + a.1]));
        let what = What::new(format!("local optima at T = {temperature}"), "");
        context.row(what, |_| {
            Ok(Ours::value(peaks.len() as f64).note(format!(
                "on a grid; {POINTS} points from {WEIGHT} N({}, 1) + {} N({}, 1), the paper's data are not stated",
                MEANS[0],
                1.0 - WEIGHT,
                MEANS[1]
            )))
        })?;
        // The colour scale covers a few nats per point below the maximum. All lower values have the same colour.
        let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let floor = top - 6.0 * POINTS as f64 / temperature;
        let shown: Vec<f64> = values.iter().map(|v| v.max(floor)).collect();
        let best = peaks.first().map(|&(i, j)| (axis(j), axis(i)));
        let half = RANGE / (GRID - 1) as f64;
        let range = (-RANGE - half, RANGE + half);
        let map = HeatMap::new(format!("T = {temperature}"), range, range, GRID, shown)
            .x(Axis::new("mean 0"))
            .y(Axis::new("mean 1"))
            .contours((1..10).map(|i| floor + (top - floor) * f64::from(i) / 10.0))
            .overlay(Series::scatter("global optimum", best).colour(3));
        figure = figure.panel(map);
    }
    context.figure("figure1", &figure)
}
