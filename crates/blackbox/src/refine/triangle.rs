//! Conditional maps. Each global parameter is transformed conditional on the preceding global parameters. Local
//! parameters are transformed conditional on all global parameters if the approximation lacks this dependence.
//!
//! The spread of a level may depend on its persistence, and one scale may depend on another scale. Tail transforms of
//! single coordinates cannot remove such dependence. In this order each global parameter comes after the global parameters
//! that determine its spread. With features φ of the preceding global parameters (bounded, as in the conditionally
//! structured Gaussian),
//!
//! ```text
//! v_k = m_k · φ(u) + exp(s_k · φ(u)) w_k,    w_k = f_k(u_k), the tail transform of the global parameter by itself,
//! ```
//!
//! is a triangular map (Parno and Marzouk, *Transport map accelerated Markov chain Monte Carlo*, SIAM/ASA Journal on
//! Uncertainty Quantification 6, 2018). The map is fitted for one global parameter at a time. The fit uses least
//! squares for the means, and the likelihood of a normal for the logarithms of the spreads.

use super::tails::WORTH;
use crate::dense::{cholesky, solve_lower, solve_lower_transposed};
use crate::family::globals::{Featured, Features, MOST_GLOBALS, spread_all, weighted};
use crate::family::rows::{LaneRow, Rows, WIDTH};
use crate::reduce::{axpy, dot, mean_se, sum};
use jensen_density::Lanes;

/// The number of Newton steps for the logarithms of the spreads. Each step halves the error, so twelve reduce it to
/// 1/4096.
const STEPS: usize = 12;

/// The largest change of a log spread in one step, so that the squares of the residuals stay comparable.
const LONGEST: f64 = 0.5;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Triangle {
    /// The rows of the global parameters, each after the rows on which it depends, followed by the rows of local
    /// parameters.
    order: Vec<usize>,
    features: Features,
    centre: Vec<f64>,
    unit: Vec<f64>,
    means: Vec<f64>,
    spreads: Vec<f64>,
}

#[derive(Default)]
pub(super) struct Passage(Vec<Block>);

/// The values for a block of lanes: the inputs of the features, the features themselves, `exp(s)` and `exp(s) w` for
/// every global parameter, and the sum of all s.
#[derive(Default)]
struct Block {
    x: Vec<LaneRow>,
    features: Featured,
    spread: Vec<LaneRow>,
    stretched: Vec<LaneRow>,
    log: LaneRow,
}

impl Passage {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn add_logs(&self, out: &mut [f64]) {
        for (out, block) in out.chunks_mut(WIDTH).zip(&self.0) {
            out.iter_mut().zip(&block.log).for_each(|(o, s)| *o += s);
        }
    }
}

struct Link {
    mean: Vec<f64>,
    spread: Vec<f64>,
}

impl Triangle {
    pub(super) fn new(order: Vec<usize>, globals: usize) -> Self {
        let features = Features::new(globals);
        let weights = vec![0.0; order.len() * features.count()];
        Self {
            order,
            features,
            centre: vec![0.0; globals],
            unit: vec![1.0; globals],
            means: weights.clone(),
            spreads: weights,
        }
    }

    /// Estimates an order of the global parameters from draws. If the spread of one global parameter depends on
    /// another, the other comes first.
    pub(super) fn order_of(draws: &[Vec<f64>]) -> Vec<usize> {
        let scores = |values: Vec<f64>| -> Vec<f64> {
            let (mean, _) = mean_se(&values);
            let centred: Vec<f64> = values.iter().map(|x| x - mean).collect();
            let norm = dot(&centred, &centred).sqrt();
            let scale = if norm > 0.0 { 1.0 / norm } else { 0.0 };
            centred.iter().map(|x| x * scale).collect()
        };
        let plain: Vec<Vec<f64>> = draws.iter().map(|x| scores(x.clone())).collect();
        let squares: Vec<Vec<f64>> = plain
            .iter()
            .map(|x| scores(x.iter().map(|x| x * x).collect()))
            .collect();
        let globals = 0..draws.len();
        let tells = |j: usize, k: usize| dot(&plain[j], &squares[k]).powi(2);
        let merit = |j: usize| -> f64 {
            let others = globals.clone().filter(|k| *k != j);
            others.map(|k| tells(j, k) - tells(k, j)).sum()
        };
        let merits: Vec<f64> = globals.clone().map(merit).collect();
        let mut order: Vec<usize> = globals.collect();
        order.sort_by(|a, b| merits[*b].total_cmp(&merits[*a]));
        order
    }

    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    pub(super) fn globals(&self) -> usize {
        self.unit.len()
    }

    pub(super) fn is_identity(&self) -> bool {
        self.means.iter().chain(&self.spreads).all(|w| *w == 0.0)
    }

    /// Fits the dependence of a row on the global parameters that precede it in the order, and replaces the row's
    /// `draws` by the residuals. `u` contains the values of all global parameters. `effective` is the equivalent number
    /// of independent draws.
    pub(super) fn link(
        &mut self,
        position: usize,
        u: &[Vec<f64>],
        draws: &mut [f64],
        effective: f64,
    ) {
        let before = self.order[..position.min(self.globals())].to_vec();
        let known = self.features.among(|k| before.contains(&k));
        if known.is_empty() {
            return;
        }
        let mut x = vec![0.0; self.globals()];
        let mut columns = vec![vec![1.0; draws.len()]];
        columns.resize(1 + known.len(), vec![0.0; draws.len()]);
        for d in 0..draws.len() {
            for &k in &before {
                x[k] = (u[k][d] - self.centre[k]) / self.unit[k];
            }
            let features = self.features.bounded_at(&x);
            for (column, &f) in columns[1..].iter_mut().zip(&known) {
                column[d] = features[f];
            }
        }
        let Some(link) = Link::of(&columns, draws, effective) else {
            return;
        };
        let count = self.features.count();
        for (i, f) in std::iter::once(0).chain(known).enumerate() {
            self.means[position * count + f] = link.mean[i];
            self.spreads[position * count + f] = link.spread[i];
        }
    }

    pub(super) fn see(&mut self, global: usize, u: &[f64]) {
        let (mean, error) = mean_se(u);
        let unit = error * (u.len() as f64).sqrt();
        if mean.is_finite() && unit > 0.0 && unit.is_finite() {
            self.centre[global] = mean;
            self.unit[global] = unit;
        }
    }

    pub(super) fn of(&self, position: usize, u: &[f64]) -> [f64; 2] {
        let x: Vec<f64> = (u.iter().zip(&self.centre).zip(&self.unit))
            .map(|((u, centre), unit)| (u - centre) / unit)
            .collect();
        let features = self.features.bounded_at(&x);
        let own = position * features.len()..(position + 1) * features.len();
        [&self.means[own.clone()], &self.spreads[own]].map(|weights| dot(weights, &features))
    }

    pub(super) fn look(&self, rows: &[f64], lanes: usize, passage: &mut Passage) {
        let globals = self.globals();
        passage.0.resize_with(lanes.div_ceil(WIDTH), Block::default);
        let rows = Lanes::new(&rows[..globals * lanes], globals, lanes);
        for (b, block) in passage.0.iter_mut().enumerate() {
            let mut room = Vec::new();
            let u = Rows::of(rows, b * WIDTH, &mut room);
            block.x.clear();
            block.x.extend((0..globals).map(|k| {
                let scale = 1.0 / self.unit[k];
                u.row(k).map(|u| (u - self.centre[k]) * scale)
            }));
            block.features = self.features.rows(&block.x);
        }
    }

    pub(super) fn go(&self, rows: &mut [f64], lanes: usize, passage: &mut Passage) {
        let count = self.order.len();
        let mut means = vec![[0.0; WIDTH]; count];
        for (b, block) in passage.0.iter_mut().enumerate() {
            let features = &block.features.bounded;
            block.spread.resize(count, [0.0; WIDTH]);
            block.stretched.resize(count, [0.0; WIDTH]);
            weighted(&self.means, features, &mut means);
            weighted(&self.spreads, features, &mut block.spread);
            block.log = [0.0; WIDTH];
            let (first, width) = (b * WIDTH, WIDTH.min(lanes - b * WIDTH));
            for (k, row) in self.order.iter().enumerate() {
                let row = &mut rows[row * lanes + first..][..width];
                let (spread, stretched) = (&mut block.spread[k], &mut block.stretched[k]);
                for (log, s) in block.log.iter_mut().zip(&mut *spread) {
                    *log += *s;
                    *s = s.exp();
                }
                for l in 0..width {
                    stretched[l] = spread[l] * row[l];
                    row[l] = means[k][l] + stretched[l];
                }
            }
        }
    }

    /// Converts derivatives with respect to global parameters into derivatives with respect to their transformed
    /// values. Adds the derivatives that result from the dependence, and those of the log Jacobian, to `by_position`.
    pub(super) fn pull(
        &self,
        passage: &Passage,
        grad: &mut [f64],
        by_position: &mut [f64],
        lanes: usize,
    ) {
        let (own, globals, count) = (self.order.len(), self.globals(), self.features.count());
        for (b, block) in passage.0.iter().enumerate() {
            let (first, width) = (b * WIDTH, WIDTH.min(lanes - b * WIDTH));
            let (mut by_mean, mut by_spread) = (vec![[0.0; WIDTH]; own], vec![[1.0; WIDTH]; own]);
            for (k, row) in self.order.iter().enumerate() {
                let row = &mut grad[row * lanes + first..][..width];
                by_mean[k][..width].copy_from_slice(row);
                let along = by_spread[k].iter_mut().zip(&block.stretched[k]);
                for ((row, spread), (by, stretched)) in
                    row.iter_mut().zip(&block.spread[k]).zip(along)
                {
                    *by += *row * stretched;
                    *row *= spread;
                }
            }
            let mut by = Featured {
                plain: vec![[0.0; WIDTH]; count],
                bounded: vec![[0.0; WIDTH]; count],
            };
            spread_all(&self.means, &by_mean, &mut by.bounded);
            spread_all(&self.spreads, &by_spread, &mut by.bounded);
            let mut out = vec![[0.0; WIDTH]; globals];
            self.features.pull(&block.x, &by, &mut out);
            for (k, out) in out.iter().enumerate() {
                let row = &mut by_position[k * lanes + first..][..width];
                let scale = 1.0 / self.unit[k];
                row.iter_mut().zip(out).for_each(|(r, o)| *r += scale * o);
            }
        }
    }

    pub(super) fn to_numbers(&self) -> Vec<f64> {
        let order: Vec<f64> = self.order.iter().map(|k| *k as f64).collect();
        [&order, &self.centre, &self.unit, &self.means, &self.spreads]
            .into_iter()
            .flatten()
            .copied()
            .collect()
    }

    pub(super) fn from_numbers(
        numbers: &[f64],
        (own, globals): (usize, usize),
        rows: usize,
    ) -> Option<Self> {
        if own > numbers.len() || globals > own {
            return None;
        }
        let (order, rest) = numbers.split_at(own);
        let order: Vec<usize> = order.iter().map(|k| *k as usize).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        sorted.dedup();
        // The size is checked before any allocation, because a damaged file could request any size.
        let weights = own.checked_mul(Features::new(globals.min(MOST_GLOBALS)).count())?;
        if globals > MOST_GLOBALS || rest.len() != 2 * (globals + weights) {
            return None;
        }
        let mut read = Self::new(order, globals);
        let first = sorted.iter().take(globals).copied();
        let known = sorted.len() == own && first.eq(0..globals) && sorted.iter().all(|k| *k < rows);
        let globals_first = read.order[..globals].iter().all(|k| *k < globals);
        if !known || !globals_first {
            return None;
        }
        let (centre, rest) = rest.split_at(globals);
        let (unit, rest) = rest.split_at(globals);
        let (means, spreads) = rest.split_at(read.means.len());
        read.centre.copy_from_slice(centre);
        read.unit.copy_from_slice(unit);
        read.means.copy_from_slice(means);
        read.spreads.copy_from_slice(spreads);
        Some(read)
    }
}

impl Link {
    /// Computes the weights of the feature columns for the mean and for the log spread of the draws. The first column
    /// is constant. The function replaces the draws by the residuals. Returns `None` if the features explain no more
    /// than chance.
    fn of(columns: &[Vec<f64>], draws: &mut [f64], effective: f64) -> Option<Self> {
        let (p, n) = (columns.len(), draws.len() as f64);
        let mut gram: Vec<f64> = columns
            .iter()
            .flat_map(|a| columns.iter().map(move |b| dot(a, b) / n))
            .collect();
        for i in 0..p {
            gram[i * (p + 1)] += 1.0 / effective;
        }
        let factor = cholesky(&gram, p)?;
        let solved = |values: &[f64]| -> Vec<f64> {
            let mut x: Vec<f64> = columns.iter().map(|c| dot(c, values) / n).collect();
            solve_lower(&factor, &mut x);
            solve_lower_transposed(&factor, &mut x);
            x
        };
        let of = |weights: &[f64]| -> Vec<f64> {
            let mut out = vec![0.0; draws.len()];
            for (w, column) in weights.iter().zip(columns) {
                axpy(*w, column, &mut out);
            }
            out
        };
        let variance = |values: &[f64]| {
            let (mean, _) = mean_se(values);
            let squares: Vec<f64> = values.iter().map(|x| (x - mean).powi(2)).collect();
            (mean, sum(&squares) / n)
        };
        let chance = (p - 1) as f64 / effective;
        let (middle, total) = variance(draws);
        if !(total > 0.0 && total.is_finite()) {
            return None;
        }
        let mut mean = solved(draws);
        let (_, explained) = variance(&of(&mean));
        let share = explained / total;
        let keep = shrunk(share, chance * (1.0 - share));
        mean.iter_mut().for_each(|w| *w *= keep);
        mean[0] += (1.0 - keep) * middle;
        let fitted = of(&mean);
        let left: Vec<f64> = draws.iter().zip(&fitted).map(|(v, m)| v - m).collect();
        let (_, rest) = variance(&left);
        let mut spread = vec![0.0; p];
        spread[0] = 0.5 * rest.ln();
        let scores = |spread: &[f64]| -> Vec<f64> {
            let logs = of(spread);
            (left.iter().zip(logs))
                .map(|(r, s)| r * r * (-2.0 * s).exp())
                .collect()
        };
        for _ in 0..STEPS {
            let residuals: Vec<f64> = scores(&spread).iter().map(|q| q - 1.0).collect();
            let step = solved(&residuals);
            let reach = of(&step).iter().fold(0.0, |m: f64, x| m.max(0.5 * x.abs()));
            let scale = 0.5 * (LONGEST / reach).min(1.0);
            spread
                .iter_mut()
                .zip(&step)
                .for_each(|(w, s)| *w += scale * s);
        }
        let (middle, varied) = variance(&of(&spread));
        // The variance is 2 for the squares of normal draws, and larger for long tails.
        let (_, noise) = variance(&scores(&spread));
        let kept = shrunk(varied, 0.25 * chance * noise);
        if keep == 0.0 && kept == 0.0 {
            return None;
        }
        spread.iter_mut().for_each(|w| *w *= kept);
        spread[0] += (1.0 - kept) * middle;
        let size = sum(&scores(&spread)) / n;
        spread[0] += 0.5 * size.ln();
        if !mean.iter().chain(&spread).all(|w| w.is_finite()) {
            return None;
        }
        let logs = of(&spread);
        for ((v, r), s) in draws.iter_mut().zip(&left).zip(logs) {
            *v = r * (-s).exp();
        }
        Some(Self { mean, spread })
    }
}

/// Returns zero if the explained part is negligible in comparison with the part that is due to chance.
fn shrunk(explained: f64, chance: f64) -> f64 {
    match explained - chance > WORTH {
        true => 1.0 - chance / explained,
        false => 0.0,
    }
}
