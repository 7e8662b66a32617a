//! Checks that values satisfy their constraints.

use super::{Transform, Violation, matrices};

/// Stan's tolerance for equations such as "sums to 1".
const TOLERANCE: f64 = 1e-8;

/// Whether a value that should be zero differs from zero by more than the tolerance, or is NaN.
fn off(x: f64) -> bool {
    x.is_nan() || x.abs() > TOLERANCE
}

fn element(at: usize, expected: String, found: f64) -> Violation {
    Violation {
        element: Some(at),
        expected,
        found: found.to_string(),
    }
}

fn whole(expected: &str, found: String) -> Violation {
    Violation {
        element: None,
        expected: expected.into(),
        found,
    }
}

pub(super) fn check(t: &Transform, x: &[f64], rows: usize, cols: usize) -> Result<(), Violation> {
    match t {
        Transform::Identity | Transform::OffsetMultiplier(..) => Ok(()),
        Transform::Lower(a) => at_least(x, |i| a.at(i)),
        Transform::Upper(b) => at_most(x, |i| b.at(i)),
        Transform::LowerUpper(a, b) => {
            at_least(x, |i| a.at(i))?;
            at_most(x, |i| b.at(i))
        }
        Transform::Ordered => ordered(x, "an ordered vector"),
        Transform::PositiveOrdered => {
            if let Some(first) = x.first()
                && (first.is_nan() || *first < 0.0)
            {
                let expected = "a positive ordered vector".to_string();
                return Err(element(0, expected, *first));
            }
            ordered(x, "a positive ordered vector")
        }
        Transform::Simplex => simplex(x, "a simplex"),
        Transform::UnitVector => {
            let squares: f64 = x.iter().map(|x| x * x).sum();
            if off(squares - 1.0) {
                return Err(whole(
                    "a unit vector, of length 1",
                    format!("one of length {}", squares.sqrt()),
                ));
            }
            Ok(())
        }
        Transform::SumToZero => sum_to_zero(x, rows, cols),
        Transform::CholeskyFactorCorr => {
            lower_triangular(x, rows, cols, "a Cholesky factor of a correlation matrix")?;
            for i in 0..rows {
                let squares: f64 = (0..cols).map(|j| x[j * rows + i] * x[j * rows + i]).sum();
                if off(squares - 1.0) {
                    return Err(whole(
                        "a Cholesky factor of a correlation matrix, whose rows have length 1",
                        format!("row {} of length {}", i + 1, squares.sqrt()),
                    ));
                }
            }
            Ok(())
        }
        Transform::CholeskyFactorCov => {
            lower_triangular(x, rows, cols, "a Cholesky factor of a covariance matrix")
        }
        Transform::CorrMatrix => {
            symmetric(x, rows, "a correlation matrix")?;
            for i in 0..rows {
                let d = x[i * rows + i];
                if off(d - 1.0) {
                    let expected = "1 on the diagonal of a correlation matrix".to_string();
                    return Err(element(i * rows + i, expected, d));
                }
            }
            matrices::cholesky(x, rows, "a correlation matrix").map(|_| ())
        }
        Transform::CovMatrix => {
            symmetric(x, rows, "a covariance matrix")?;
            matrices::cholesky(x, rows, "a covariance matrix").map(|_| ())
        }
        Transform::ColumnStochastic => (0..cols).try_for_each(|j| {
            simplex(
                &x[j * rows..(j + 1) * rows],
                "a matrix whose columns are simplexes",
            )
        }),
        Transform::RowStochastic => (0..rows).try_for_each(|i| {
            let row: Vec<f64> = (0..cols).map(|j| x[j * rows + i]).collect();
            simplex(&row, "a matrix whose rows are simplexes")
        }),
    }
}

fn at_least(x: &[f64], bound: impl Fn(usize) -> f64) -> Result<(), Violation> {
    for (i, x) in x.iter().enumerate() {
        let a = bound(i);
        if x.is_nan() || *x < a || a.is_nan() {
            return Err(element(i, format!("at least {a}"), *x));
        }
    }
    Ok(())
}

fn at_most(x: &[f64], bound: impl Fn(usize) -> f64) -> Result<(), Violation> {
    for (i, x) in x.iter().enumerate() {
        let b = bound(i);
        if x.is_nan() || *x > b || b.is_nan() {
            return Err(element(i, format!("at most {b}"), *x));
        }
    }
    Ok(())
}

fn ordered(x: &[f64], what: &str) -> Result<(), Violation> {
    if let [only] = x
        && only.is_nan()
    {
        return Err(element(0, what.to_string(), *only));
    }
    for k in 1..x.len() {
        if x[k].is_nan() || x[k - 1].is_nan() || x[k] <= x[k - 1] {
            let expected = format!("{what}: more than {} before it", x[k - 1]);
            return Err(element(k, expected, x[k]));
        }
    }
    Ok(())
}

fn simplex(x: &[f64], what: &str) -> Result<(), Violation> {
    if x.is_empty() {
        return Err(whole(what, "no elements".into()));
    }
    let sum: f64 = x.iter().sum();
    if off(sum - 1.0) {
        return Err(whole(
            &format!("{what}, whose elements sum to 1"),
            format!("sum {sum}"),
        ));
    }
    for (i, x) in x.iter().enumerate() {
        if x.is_nan() || *x < 0.0 {
            return Err(Violation {
                element: None,
                expected: format!("{what}, whose elements are not negative"),
                found: format!("element {} is {x}", i + 1),
            });
        }
    }
    Ok(())
}

fn sum_to_zero(x: &[f64], rows: usize, cols: usize) -> Result<(), Violation> {
    if cols == 1 {
        let sum: f64 = x.iter().sum();
        if off(sum) {
            return Err(whole("a vector that sums to zero", format!("sum {sum}")));
        }
        return Ok(());
    }
    for j in 0..cols {
        let sum: f64 = x[j * rows..(j + 1) * rows].iter().sum();
        if off(sum) {
            return Err(whole(
                "columns that sum to zero",
                format!("column {} with sum {sum}", j + 1),
            ));
        }
    }
    for i in 0..rows {
        let sum: f64 = (0..cols).map(|j| x[j * rows + i]).sum();
        if off(sum) {
            return Err(whole(
                "rows that sum to zero",
                format!("row {} with sum {sum}", i + 1),
            ));
        }
    }
    Ok(())
}

fn lower_triangular(x: &[f64], rows: usize, cols: usize, what: &str) -> Result<(), Violation> {
    if rows < cols {
        return Err(whole(
            &format!("{what}, with at least as many rows as columns"),
            format!("{rows} × {cols}"),
        ));
    }
    for j in 0..cols {
        for i in 0..rows {
            let v = x[j * rows + i];
            let fine = match i.cmp(&j) {
                std::cmp::Ordering::Less => v == 0.0,
                std::cmp::Ordering::Equal => v > 0.0,
                std::cmp::Ordering::Greater => !v.is_nan(),
            };
            if !fine {
                let expected = match i.cmp(&j) {
                    std::cmp::Ordering::Less => format!("0 above the diagonal of {what}"),
                    std::cmp::Ordering::Equal => format!("more than 0 on the diagonal of {what}"),
                    std::cmp::Ordering::Greater => format!("a number in {what}"),
                };
                return Err(element(j * rows + i, expected, v));
            }
        }
    }
    Ok(())
}

fn symmetric(x: &[f64], n: usize, what: &str) -> Result<(), Violation> {
    for j in 0..n {
        for i in j + 1..n {
            let (below, above) = (x[j * n + i], x[i * n + j]);
            if off(below - above) {
                let expected = format!("{below} by the symmetry of {what}");
                return Err(element(i * n + j, expected, above));
            }
        }
    }
    Ok(())
}
