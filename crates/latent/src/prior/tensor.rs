//! Smooths of two columns: products of B-splines with a penalty in each direction (Eilers and Marx 2003; Wood 2006).
//!
//! Along each column there are cubic B-splines on evenly spaced knots. With the matrix D of second differences of
//! neighbouring coefficients along one column, and `P = DᵀD`, the precision of the coefficients is `τ₁ I⊗P₁ + τ₂ P₂⊗I`,
//! where coefficients of the first column change fastest. The prior is flat in the functions 1, x, z and xz.

use faer::Side;

use super::field::{Coefficients, Field, FieldKind, Triplets, add_square};
use super::inputs::{Source, complete};
use super::read::Reader;
use super::setting::Setting;
use super::spec::{SpecError, Word};
use super::term::{Body, Builder};
use super::times::short;
use crate::{Dense, Error};

/// Default number of functions along each column.
const FUNCTIONS: usize = 10;

/// Largest number of products.
const MOST: usize = 10_000;

/// Values count as inside the range if they are outside by at most this share of the distance between knots.
const ROUNDING: f64 = 1e-9;

/// B-splines along a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The column.
    pub column: String,
    /// The first inner knot.
    pub from: f64,
    /// The last inner knot.
    pub to: f64,
    /// Number of functions.
    pub count: usize,
}

impl Axis {
    /// Returns the number of the first function that is not zero at x, and the values of four functions.
    fn values(&self, x: f64) -> Option<(usize, [f64; 4])> {
        let intervals = (self.count - 3) as f64;
        let t = intervals * (x - self.from) / (self.to - self.from);
        if !(-ROUNDING..=intervals + ROUNDING).contains(&t) {
            return None;
        }
        let first = t.floor().clamp(0.0, intervals - 1.0);
        let u = t - first;
        let v = 1.0 - u;
        let values = [
            v * v * v,
            (3.0 * u - 6.0) * u * u + 4.0,
            (3.0 * v - 6.0) * v * v + 4.0,
            u * u * u,
        ];
        Some((first as usize, values.map(|b| b / 6.0)))
    }

    /// Computes the eigenvalues of P. The two of its null space are 0.
    fn eigenvalues(&self) -> Result<Vec<f64>, Error> {
        let n = self.count;
        let mut penalty = Dense::zeros(n, n);
        for k in 1..n - 1 {
            let row = [(k - 1, 1.0), (k, -2.0), (k + 1, 1.0)];
            for (i, a) in row {
                for (j, b) in row {
                    penalty.data[j * n + i] += a * b;
                }
            }
        }
        let found = penalty.view().self_adjoint_eigenvalues(Side::Lower);
        let mut found =
            found.map_err(|_| Error::Prior("a penalty has no eigenvalues".to_owned()))?;
        found.sort_by(f64::total_cmp);
        found[..2].fill(0.0);
        Ok(found)
    }
}

/// Products of B-splines along two columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The two columns. The functions of the first change fastest.
    pub axes: [Axis; 2],
}

impl Tensor {
    /// Returns the number of products.
    pub fn len(&self) -> usize {
        self.axes[0].count * self.axes[1].count
    }

    /// Whether there are no products.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the products that are not zero at a point, with their values, or `None` outside the range.
    pub fn weights(&self, point: [f64; 2]) -> Option<Vec<(usize, f64)>> {
        let (first, along) = self.axes[0].values(point[0])?;
        let (second, across) = self.axes[1].values(point[1])?;
        let height = self.axes[0].count;
        let mut out = Vec::with_capacity(16);
        for (j, b) in across.iter().enumerate() {
            let from = (second + j) * height + first;
            out.extend(along.iter().enumerate().map(|(i, a)| (from + i, a * b)));
        }
        Some(out)
    }

    /// Returns the weights of the products in rows of a table.
    ///
    /// # Errors
    /// Fails if a value is missing or outside the range.
    pub(super) fn rows(
        &self,
        source: &dyn Source,
        rows: &[usize],
    ) -> Result<Vec<Vec<(usize, f64)>>, String> {
        let [x, z] = &self.axes;
        let xs = complete(source, &x.column, rows)?;
        let zs = complete(source, &z.column, rows)?;
        let each = rows.iter().zip(xs.iter().zip(&zs));
        each.map(|(row, (a, b))| {
            self.weights([*a, *b]).ok_or_else(|| {
                let (axis, value) = match x.values(*a) {
                    None => (x, a),
                    Some(_) => (z, b),
                };
                format!(
                    "row {} has `{}` = {value}, outside the smooth from {} to {}; set `from` and `to` when fitting",
                    row + 1,
                    axis.column,
                    short(axis.from),
                    short(axis.to)
                )
            })
        })
        .collect()
    }
}

impl Field {
    /// Returns the coefficients of a tensor product of B-splines. Its hyperparameters are the precisions of second
    /// differences along each column.
    ///
    /// # Errors
    /// Fails if a penalty has no eigenvalues.
    pub fn tensor(tensor: &Tensor, settings: Vec<Setting>) -> Result<Self, Error> {
        let [x, z] = &tensor.axes;
        let (m, n) = (x.count, z.count);
        let at = |i: usize, j: usize| j * m + i;
        let mut terms = [Triplets::new(), Triplets::new()];
        for j in 0..n {
            for i in 0..m {
                // Every node needs a diagonal entry.
                terms[0].push((at(i, j), at(i, j), 0.0));
                if (1..m - 1).contains(&i) {
                    let row = [(at(i - 1, j), 1.0), (at(i, j), -2.0), (at(i + 1, j), 1.0)];
                    add_square(&mut terms[0], 1.0, &row);
                }
                if (1..n - 1).contains(&j) {
                    let row = [(at(i, j - 1), 1.0), (at(i, j), -2.0), (at(i, j + 1), 1.0)];
                    add_square(&mut terms[1], 1.0, &row);
                }
            }
        }
        let middle = |i: usize, of: usize| i as f64 - (of - 1) as f64 / 2.0;
        let null = Dense::from_fn(m * n, 4, |l, k| {
            let (i, j) = (middle(l % m, m), middle(l / m, n));
            [1.0, i, j, i * j][k]
        });
        let family = FieldKind::Tensor {
            eigenvalues: [x.eigenvalues()?, z.eigenvalues()?],
            held: 0.0,
        };
        Self::from_terms(m * n, &terms, family, settings).map(|field| field.with_flat(null))
    }
}

/// Returns the coefficients of I⊗P₁ and P₂⊗I, where `held` flat directions are constrained.
pub(super) fn coefficients(
    eigenvalues: &[Vec<f64>; 2],
    held: f64,
    constant: f64,
    values: &[f64],
) -> Coefficients {
    let [first, second] = eigenvalues;
    let (along, across) = (values[0], values[1]);
    // Held directions have the precision of the second term.
    let mut logs = vec![constant + held * across.ln()];
    let (mut by_along, mut by_across) = (0.0, held / across);
    for a in first {
        for b in second.iter().filter(|b| *a + **b > 0.0) {
            let sum = along * a + across * b;
            logs.push(sum.ln());
            by_along += a / sum;
            by_across += b / sum;
        }
    }
    Coefficients {
        value: vec![along, across],
        slope: vec![vec![1.0, 0.0], vec![0.0, 1.0]],
        log_determinant: Some((
            jensen_math::sum::pairwise_sum(&logs),
            vec![by_along, by_across],
        )),
    }
}

impl Builder<'_, '_> {
    /// Builds the smooth of two columns.
    pub(super) fn tensor(&self) -> Result<(Reader, Body), SpecError> {
        let known = self.known;
        known.at_most(0)?;
        let at_call = |message: String| known.error(&known.call.name.span, message);
        let Some([first, second]) = known.list("on") else {
            return Err(known.misused("`te` needs two columns"));
        };
        let axes = [self.axis(0, first)?, self.axis(1, second)?];
        let total = axes[0].count.saturating_mul(axes[1].count);
        if total > MOST {
            return Err(at_call(format!(
                "{total} products of functions are more than {MOST}; use fewer (`basis=`)"
            )));
        }
        let labels = axes
            .each_ref()
            .map(|axis| format!("{}[{}]", self.label, axis.column));
        let hyper = known.hyper("precision")?;
        let unit = self.unit(&self.by[0]).powf(hyper.power);
        let settings = known.settings("precision", &labels, &[None; 2], &[unit; 2])?;
        let tensor = Tensor { axes };
        let failed = |error: Error| at_call(error.to_string());
        let mut field = Field::tensor(&tensor, settings).map_err(failed)?;
        for d in 0..2 {
            let stated = field.settings()[d].density.clone();
            let given = known.distribution("precision")?;
            let density = field.prior(hyper, stated, given).map_err(failed)?;
            field.settings_mut()[d].density = density;
        }
        tensor.rows(self.source, self.rows).map_err(at_call)?;
        Ok((Reader::Tensor(tensor), Body::Field(field)))
    }

    /// Returns the splines along the column with this number.
    fn axis(&self, d: usize, column: &Word) -> Result<Axis, SpecError> {
        let known = self.known;
        let fail = |message: String| known.error(&column.span, message);
        let name = column.text.as_str();
        let values = complete(self.source, name, self.rows).map_err(fail)?;
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let [from, to] = ["from", "to"].map(|key| self.of_pair(key, d));
        let (from, to) = (from?, to?);
        let given = from.is_some() || to.is_some();
        let end = |word: Option<&Word>, usual| word.map_or(Ok(usual), |word| known.number(word));
        let count = self.of_pair("basis", d)?;
        let axis = Axis {
            column: name.to_owned(),
            from: end(from, low)?,
            to: end(to, high)?,
            count: count.map_or(Ok(FUNCTIONS), |word| known.count(word))?,
        };
        if axis.to <= axis.from || !(axis.to - axis.from).is_finite() {
            return Err(fail(match given {
                true => format!(
                    "the range of `{name}` from {} to {} is empty",
                    axis.from, axis.to
                ),
                false => format!(
                    "the column `{name}` is constant in the fitted rows; use a smooth of the other column, such as `rw2`"
                ),
            }));
        }
        match axis.count {
            0..4 => Err(fail(
                "`te` needs at least 4 functions along each column".to_owned(),
            )),
            _ => Ok(axis),
        }
    }

    /// Returns the word of an argument for the column with this number. A single word applies to both columns.
    fn of_pair(&self, key: &str, d: usize) -> Result<Option<&Word>, SpecError> {
        match self.known.list(key) {
            None => Ok(None),
            Some([both]) => Ok(Some(both)),
            Some(words @ [_, _]) => Ok(Some(&words[d])),
            Some(words) => {
                let message = format!("`{key}` needs one value or a list of 2");
                Err(self.known.error(&words[2].span, message))
            }
        }
    }
}
