//! Smooth functions. Each is the sum of a straight line and penalised functions, and the weights of the penalised
//! functions are group effects (Wood, Generalized additive models, 2017, section 5.8; for products Wood, Scheipl and
//! Faraway, Statistics and Computing 23, 2013).

use serde::{Deserialize, Serialize};

use crate::basis::{Cubic, eigen, mean, quantile};

/// An eigenvector of a penalty belongs to the null space if its eigenvalue is below this share of the largest
/// eigenvalue. Rounding errors are far smaller than this.
const NULL: f64 = 1e-9;

/// The state of a smooth of one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Smooth {
    cubic: Cubic,
    /// The matrix that maps values at the knots to the penalised functions, which have unit penalty.
    functions: Vec<Vec<f64>>,
    /// The centre of the column and half of its range, for the linear part.
    line: Option<[f64; 2]>,
    /// The mean and the slope of each function over the rows. They are subtracted, because the linear part already
    /// represents them.
    removed: Vec<[f64; 2]>,
    /// The functions are multiplied by this factor, which makes the mean square of a row equal to 1.
    scale: f64,
}

impl Smooth {
    /// Creates a smooth with up to `k` knots at quantiles of the distinct values. Returns `None` if there are fewer
    /// than three distinct values.
    pub fn of(x: &[f64], k: usize, cyclic: bool) -> Option<Self> {
        let distinct = distinct(x);
        let count = (k + usize::from(cyclic)).min(distinct.len());
        if count < 3 + usize::from(cyclic) {
            return None;
        }
        let knot = |at: usize| quantile(&distinct, at as f64 / (count - 1) as f64);
        let cubic = Cubic::new((0..count).map(knot).collect(), cyclic);
        let found = eigen(&cubic.penalty());
        let kept: Vec<usize> = (0..found.values.len())
            .filter(|at| found.values[*at] > NULL * found.values[0])
            .collect();
        let functions = found
            .vectors
            .iter()
            .map(|row| {
                kept.iter()
                    .map(|at| row[*at] / found.values[*at].sqrt())
                    .collect()
            })
            .collect();
        let (low, high) = (distinct[0], distinct[distinct.len() - 1]);
        let line = (!cyclic).then(|| [mean(x), (high - low) / 2.0]);
        let mut made = Self {
            cubic,
            functions,
            line,
            removed: vec![[0.0; 2]; kept.len()],
            scale: 1.0,
        };
        let columns = made.penalised(x);
        let line = made.line(x);
        made.removed = columns
            .iter()
            .map(|column| regression(column, line.as_deref()))
            .collect();
        let columns = made.penalised(x);
        let squares: f64 = columns.iter().flatten().map(|z| z * z).sum();
        made.scale = (x.len() as f64 / squares).sqrt();
        Some(made)
    }

    /// Returns the linear column, which is centred and divided by half of the range. Returns `None` for periodic
    /// smooths.
    pub fn line(&self, x: &[f64]) -> Option<Vec<f64>> {
        let [centre, half] = self.line?;
        Some(x.iter().map(|x| (x - centre) / half).collect())
    }

    /// Returns the columns of the penalised functions.
    pub fn penalised(&self, x: &[f64]) -> Vec<Vec<f64>> {
        let line = self.line(x);
        let mut columns = vec![Vec::with_capacity(x.len()); self.removed.len()];
        for (row, x) in x.iter().enumerate() {
            let weights = self.cubic.weights(*x);
            for (j, column) in columns.iter_mut().enumerate() {
                let value: f64 = weights
                    .iter()
                    .zip(&self.functions)
                    .map(|(w, f)| w * f[j])
                    .sum();
                let [level, slope] = self.removed[j];
                let along = line.as_ref().map_or(0.0, |line| line[row]);
                column.push(self.scale * (value - level - slope * along));
            }
        }
        columns
    }
}

/// Returns the distinct values of a column, in increasing order.
pub fn distinct(x: &[f64]) -> Vec<f64> {
    let mut values = x.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    values
}

/// Computes the mean of a column and the slope of its regression on a centred line.
fn regression(column: &[f64], line: Option<&[f64]>) -> [f64; 2] {
    let level = mean(column);
    let slope = line.map_or(0.0, |line| {
        let squares: f64 = line.iter().map(|x| x * x).sum();
        line.iter().zip(column).map(|(x, y)| x * y).sum::<f64>() / squares
    });
    [level, slope]
}

/// The state of a smooth of two columns. Its functions are products of a function of the first column and a function of
/// the second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Product {
    margins: [Smooth; 2],
    /// For each block, the mean that is subtracted from each column and the factor by which the result is multiplied.
    centred: Vec<(Vec<f64>, f64)>,
}

/// The columns of a smooth. Unpenalised columns are separate. Penalised columns form blocks, and each block has one
/// scale.
pub struct Columns {
    /// The unpenalised columns, each with the suffix of its name.
    pub free: Vec<(String, Vec<f64>)>,
    /// The blocks of penalised columns.
    pub blocks: Vec<Vec<Vec<f64>>>,
}

impl Product {
    /// Creates the product of two smooths over the rows whose values are `x` and `z`.
    pub fn of(margins: [Smooth; 2], x: &[f64], z: &[f64]) -> Self {
        let mut made = Self {
            margins,
            centred: Vec::new(),
        };
        made.centred = made
            .blocks(x, z)
            .iter()
            .map(|block| {
                let means: Vec<f64> = block.iter().map(|column| mean(column)).collect();
                let of = |(column, m): (&Vec<f64>, &f64)| {
                    column.iter().map(|z| (z - m).powi(2)).sum::<f64>()
                };
                let squares: f64 = block.iter().zip(&means).map(of).sum();
                (means, (x.len() as f64 / squares).sqrt())
            })
            .collect();
        made
    }

    /// Returns three blocks of functions. The first is penalised in the first column, the second in the second column,
    /// and the third in both.
    fn blocks(&self, x: &[f64], z: &[f64]) -> Vec<Vec<Vec<f64>>> {
        let free = |smooth: &Smooth, x: &[f64]| {
            let mut columns = vec![vec![1.0; x.len()]];
            columns.extend(smooth.line(x));
            columns
        };
        let [first, second] = &self.margins;
        let (xf, zf) = (free(first, x), free(second, z));
        let (xp, zp) = (first.penalised(x), second.penalised(z));
        vec![products(&xp, &zf), products(&xf, &zp), products(&xp, &zp)]
    }

    /// Returns the columns of the smooth at these rows.
    pub fn at(&self, x: &[f64], z: &[f64]) -> Columns {
        let mut free = Vec::new();
        let (along, across) = (self.margins[0].line(x), self.margins[1].line(z));
        if let (Some(along), Some(across)) = (&along, &across) {
            free.push(("1".to_owned(), along.clone()));
            free.push(("2".to_owned(), across.clone()));
            free.push(("12".to_owned(), multiplied(along, across)));
        }
        let mut blocks = self.blocks(x, z);
        for (block, (means, scale)) in blocks.iter_mut().zip(&self.centred) {
            for (column, m) in block.iter_mut().zip(means) {
                column.iter_mut().for_each(|z| *z = scale * (*z - m));
            }
        }
        Columns { free, blocks }
    }
}

fn multiplied(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x * y).collect()
}

fn products(left: &[Vec<f64>], right: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let pairs = left.iter().flat_map(|x| right.iter().map(move |y| (x, y)));
    pairs.map(|(x, y)| multiplied(x, y)).collect()
}
