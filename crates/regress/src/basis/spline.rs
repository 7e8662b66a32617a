//! B-splines and natural splines that equal R's `bs` and `ns`, and cubic regression splines for smooths.

use serde::{Deserialize, Serialize};

use super::linear::{Rows, inverse, multiply};

/// B-splines of a given degree, or natural cubic splines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spline {
    knots: Vec<f64>,
    degree: usize,
    /// Whether the spline is natural: its second derivative vanishes at the boundary, and it is linear beyond the
    /// boundary.
    natural: bool,
    /// Whether the basis includes the first B-spline function.
    intercept: bool,
}

impl Spline {
    /// Creates a basis with the interior knots `inner`.
    pub fn new(
        inner: &[f64],
        boundary: [f64; 2],
        degree: usize,
        natural: bool,
        intercept: bool,
    ) -> Self {
        let [low, high] = boundary;
        let mut knots = vec![low; degree + 1];
        knots.extend(inner);
        knots.extend(vec![high; degree + 1]);
        Self {
            knots,
            degree,
            natural,
            intercept,
        }
    }

    fn boundary(&self) -> [f64; 2] {
        [self.knots[0], self.knots[self.knots.len() - 1]]
    }

    /// Evaluates the B-spline functions at `x`. Beyond the boundary, the functions continue the adjacent polynomial.
    fn functions(&self, x: f64, derivative: usize) -> Vec<f64> {
        let (t, order) = (&self.knots, self.degree + 1);
        let count = t.len() - order;
        let inside = t.partition_point(|knot| *knot <= x);
        let interval = inside.clamp(order, count) - 1;
        let mut b = vec![0.0; t.len() - 1];
        b[interval] = 1.0;
        let ratio = |x: f64, y: f64| if y == 0.0 { 0.0 } else { x / y };
        for k in 2..=order {
            let slope = k > order - derivative;
            for i in 0..t.len() - k {
                let (left, right) = (t[i + k - 1] - t[i], t[i + k] - t[i + 1]);
                b[i] = match slope {
                    true => (k - 1) as f64 * (ratio(b[i], left) - ratio(b[i + 1], right)),
                    false => {
                        ratio((x - t[i]) * b[i], left) + ratio((t[i + k] - x) * b[i + 1], right)
                    }
                };
            }
        }
        b.truncate(count);
        b
    }

    /// Evaluates the basis functions at `x`. Returns one column per function.
    pub fn at(&self, x: &[f64]) -> Vec<Vec<f64>> {
        let rows: Rows = match self.natural {
            true => self.natural_rows(x),
            false => {
                let skipped = usize::from(!self.intercept);
                let row = |x: &f64| self.functions(*x, 0).split_off(skipped);
                x.iter().map(row).collect()
            }
        };
        let columns = rows.first().map_or(0, Vec::len);
        (0..columns)
            .map(|j| rows.iter().map(|row| row[j]).collect())
            .collect()
    }

    /// Evaluates the natural splines. They are the combinations of B-splines that have zero second derivatives at the
    /// boundary. The basis is computed by Householder reflections with LINPACK's signs. It is therefore the same as in
    /// R, and coefficients have the same meaning.
    fn natural_rows(&self, x: &[f64]) -> Rows {
        let skipped = usize::from(!self.intercept);
        let boundary = self.boundary();
        let mut constraints: Vec<Vec<f64>> = boundary
            .iter()
            .map(|end| self.functions(*end, 2).split_off(skipped))
            .collect();
        let mut reflections: Vec<Vec<f64>> = Vec::new();
        for at in 0..2 {
            let mut u = constraints[at].clone();
            u[..at].fill(0.0);
            let norm = u.iter().map(|x| x * x).sum::<f64>().sqrt();
            let norm = if u[at] < 0.0 { -norm } else { norm };
            u.iter_mut().for_each(|x| *x /= norm);
            u[at] += 1.0;
            for column in &mut constraints[at..] {
                reflect(column, &u, at);
            }
            reflections.push(u);
        }
        let row = |x: &f64| {
            let inside = x.clamp(boundary[0], boundary[1]);
            let mut row = self.functions(inside, 0);
            if inside != *x {
                let slopes = self.functions(inside, 1);
                row.iter_mut()
                    .zip(slopes)
                    .for_each(|(y, slope)| *y += slope * (x - inside));
            }
            let mut row = row.split_off(skipped);
            for (at, u) in reflections.iter().enumerate() {
                reflect(&mut row, u, at);
            }
            row.split_off(2)
        };
        x.iter().map(row).collect()
    }
}

/// Evaluates a basis for baseline hazards at the given times, and the integrals of its functions. The basis consists of
/// five cubic functions with unit integral. These are M-splines with one knot at the median, and their integrals are
/// I-splines (Ramsay, Statistical Science 3, 1988). Both results have one column per function. As in brms, the boundary
/// knots are a fiftieth of the range beyond the smallest and the largest time.
pub fn hazards(times: &[f64]) -> [Vec<Vec<f64>>; 2] {
    const DEGREE: usize = 3;
    let low = times.iter().copied().fold(f64::INFINITY, f64::min);
    let high = times.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let margin = (high - low) / 50.0;
    let boundary = [(low - margin).max(0.0), high + margin];
    let mut sorted = times.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let inner = [super::quantile(&sorted, 0.5)];
    let spline = |degree| Spline::new(&inner, boundary, degree, false, true);
    let (spline, integral) = (spline(DEGREE), spline(DEGREE + 1));
    let mut densities = spline.at(times);
    for (i, column) in densities.iter_mut().enumerate() {
        let width = spline.knots[i + DEGREE + 1] - spline.knots[i];
        let factor = (DEGREE + 1) as f64 / width;
        column.iter_mut().for_each(|x| *x *= factor);
    }
    // The integral of a function is the sum of the functions of the next degree with higher indices.
    let mut integrals = integral.at(times).split_off(1);
    for i in (0..integrals.len() - 1).rev() {
        let (left, right) = integrals.split_at_mut(i + 1);
        let pairs = left[i].iter_mut().zip(&right[0]);
        pairs.for_each(|(x, next)| *x += next);
    }
    [densities, integrals]
}

fn reflect(row: &mut [f64], u: &[f64], at: usize) {
    let t = -row.iter().zip(u).map(|(x, u)| x * u).sum::<f64>() / u[at];
    row.iter_mut().zip(u).for_each(|(x, u)| *x += t * u);
}

/// A natural or periodic cubic spline that is parameterised by its values at knots (Wood, Generalized additive models,
/// 2017, sections 5.3.1 and 5.3.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cubic {
    knots: Vec<f64>,
    cyclic: bool,
    /// The matrix that maps the values at the knots to the second derivatives at the knots.
    curvature: Rows,
}

impl Cubic {
    /// Creates a spline with these knots. There must be at least three knots.
    pub fn new(knots: Vec<f64>, cyclic: bool) -> Self {
        let mut made = Self {
            knots,
            cyclic,
            curvature: Vec::new(),
        };
        let (b, d) = made.bands();
        let inner = multiply(&inverse(&b), &d);
        made.curvature = match cyclic {
            true => inner,
            false => {
                let zero = vec![0.0; made.knots.len()];
                [vec![zero.clone()], inner, vec![zero]].concat()
            }
        };
        made
    }

    /// Returns the number of values that determine the spline.
    pub fn len(&self) -> usize {
        self.knots.len() - usize::from(self.cyclic)
    }

    fn gap(&self, j: usize) -> f64 {
        self.knots[j + 1] - self.knots[j]
    }

    /// Returns the matrices B and D of Wood's Table 5.1, with B δ = D β for values β and second derivatives δ at the
    /// knots.
    fn bands(&self) -> (Rows, Rows) {
        let n = self.knots.len();
        let (rows, width) = match self.cyclic {
            true => (n - 1, n - 1),
            false => (n - 2, n),
        };
        let (mut b, mut d) = (vec![vec![0.0; rows]; rows], vec![vec![0.0; width]; rows]);
        for i in 0..rows {
            let (left, right, before, here, after) = match self.cyclic {
                true => {
                    let last = (i + rows - 1) % rows;
                    (self.gap(last), self.gap(i), last, i, (i + 1) % rows)
                }
                false => (self.gap(i), self.gap(i + 1), i, i + 1, i + 2),
            };
            d[i][before] += 1.0 / left;
            d[i][here] -= 1.0 / left + 1.0 / right;
            d[i][after] += 1.0 / right;
            b[i][i] += (left + right) / 3.0;
            let (previous, next) = match self.cyclic {
                true => (Some(before), Some(after)),
                false => (i.checked_sub(1), Some(i + 1).filter(|next| *next < rows)),
            };
            if let Some(previous) = previous {
                b[i][previous] += left / 6.0;
            }
            if let Some(next) = next {
                b[i][next] += right / 6.0;
            }
        }
        (b, d)
    }

    /// Returns the penalty matrix S = Dᵀ B⁻¹ D. For values β at the knots, βᵀ S β is the integral of the squared second
    /// derivative.
    pub fn penalty(&self) -> Rows {
        let (b, d) = self.bands();
        let turned: Rows = (0..self.len())
            .map(|j| d.iter().map(|row| row[j]).collect())
            .collect();
        multiply(&turned, &multiply(&inverse(&b), &d))
    }

    /// Returns the weights of the values at the knots in the value at `x`. Natural splines are linear beyond the knots,
    /// and periodic splines wrap around.
    pub fn weights(&self, x: f64) -> Vec<f64> {
        let (first, last) = (self.knots[0], self.knots[self.knots.len() - 1]);
        let x = match self.cyclic {
            true => first + (x - first).rem_euclid(last - first),
            false => x,
        };
        let count = self.knots.len();
        let at = x.clamp(first, last);
        let j = self
            .knots
            .partition_point(|knot| *knot <= at)
            .clamp(1, count - 1)
            - 1;
        let h = self.gap(j);
        let (left, right) = (self.knots[j + 1] - at, at - self.knots[j]);
        let next = if self.cyclic {
            (j + 1) % self.len()
        } else {
            j + 1
        };
        let mut weights = vec![0.0; self.len()];
        let mut add = |values: [f64; 2], bends: [f64; 2], by: f64| {
            weights[j] += by * values[0];
            weights[next] += by * values[1];
            for (bend, row) in bends
                .iter()
                .zip([&self.curvature[j], &self.curvature[next]])
            {
                weights
                    .iter_mut()
                    .zip(row)
                    .for_each(|(w, f)| *w += by * bend * f);
            }
        };
        let bend = |z: f64| (z.powi(3) / h - h * z) / 6.0;
        add([left / h, right / h], [bend(left), bend(right)], 1.0);
        if at != x {
            let slope = |z: f64| (3.0 * z * z / h - h) / 6.0;
            add([-1.0 / h, 1.0 / h], [-slope(left), slope(right)], x - at);
        }
        weights
    }
}
