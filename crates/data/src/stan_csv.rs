//! `draws.csv`: Stan CSV in the layout of CmdStan's variational method.
//!
//! Comment lines with the settings, a header `lp__,log_p__,log_g__,…`, one row a draw. Differences from CmdStan, so that
//! every reader sees draws and nothing else: there is no first row with the mean of the approximation, and `lp__` holds
//! the log density instead of zero. Numbers are the shortest text that reads back to the same bits; non-finite ones are
//! `nan`, `inf`, `-inf`.

use std::io::Write;
use std::path::Path;

use crate::atomic::write_atomic;
use crate::draws::{DrawsTable, DrawsVariable};
use crate::error::DataError;

/// What the comments at the top say.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StanCsvHeader {
    /// The model's name.
    pub model: String,
    /// The approximating family in CmdStan's words: `meanfield`, `fullrank`, or another.
    pub algorithm: String,
    /// The seed of the run.
    pub seed: u64,
    /// Further settings, written as `key = value` in order.
    pub settings: Vec<(String, String)>,
}

/// Columns that every file begins with.
const LEADING: [&str; 3] = ["lp__", "log_p__", "log_g__"];

/// Writes the draws as Stan CSV, atomically.
pub fn write_draws_csv(
    path: &Path,
    table: &DrawsTable,
    header: &StanCsvHeader,
) -> Result<(), DataError> {
    write_atomic(path, |out| {
        for (depth, key, value) in [
            (0, "jensen_version", env!("CARGO_PKG_VERSION").to_string()),
            (0, "model", header.model.clone()),
            (0, "method", "variational".to_string()),
        ] {
            comment(out, depth, key, &value)?;
        }
        writeln!(out, "#   variational")?;
        comment(out, 2, "algorithm", &header.algorithm)?;
        comment(out, 2, "output_samples", &table.len().to_string())?;
        for (key, value) in &header.settings {
            comment(out, 2, key, value)?;
        }
        writeln!(out, "# random")?;
        comment(out, 1, "seed", &header.seed.to_string())?;

        write!(out, "{}", LEADING.join(","))?;
        for name in table.scalar_names() {
            write!(out, ",{name}")?;
        }
        writeln!(out)?;
        let mut line = String::new();
        for draw in 0..table.len() {
            line.clear();
            let (p, g) = (table.log_p()[draw], table.log_g()[draw]);
            for x in [p, p, g].iter().chain(table.row(draw)) {
                push_number(&mut line, *x);
                line.push(',');
            }
            line.pop();
            line.push('\n');
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    })
}

/// One `key = value` comment. Line ends and `=` inside would be read as something else.
fn comment(out: &mut impl Write, depth: usize, key: &str, value: &str) -> std::io::Result<()> {
    let clean = |s: &str| s.replace(|c: char| c.is_control() || c == '=', " ");
    writeln!(
        out,
        "# {}{} = {}",
        "  ".repeat(depth),
        clean(key),
        clean(value)
    )
}

fn push_number(line: &mut String, x: f64) {
    use std::fmt::Write as _;
    let written = if x.is_nan() {
        line.push_str("nan");
        Ok(())
    } else if x.is_infinite() {
        line.push_str(if x > 0.0 { "inf" } else { "-inf" });
        Ok(())
    } else if x == 0.0 || (1e-5..1e16).contains(&x.abs()) {
        write!(line, "{x}")
    } else {
        write!(line, "{x:e}")
    };
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}

/// Reads a file written by [`write_draws_csv`]: scalar draws regrouped into variables by their subscripts.
pub fn read_draws_csv(path: &Path) -> Result<DrawsTable, DataError> {
    let text = std::fs::read_to_string(path).map_err(|e| DataError::io("read", path, &e))?;
    let fail = |line: usize, message: &str| {
        DataError::invalid(format!(
            "`{}`, line {}: {message}",
            path.display(),
            line + 1
        ))
    };
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.starts_with('#') && !l.trim().is_empty());
    let (at, head) = lines.next().ok_or_else(|| fail(0, "there is no header"))?;
    let columns: Vec<&str> = head.split(',').collect();
    if !columns.starts_with(&LEADING) {
        return Err(fail(
            at,
            "the header does not begin with lp__,log_p__,log_g__",
        ));
    }
    let variables = group_columns(&columns[LEADING.len()..]).ok_or_else(|| {
        fail(
            at,
            "the subscripts of a variable do not run through an array in column-major order",
        )
    })?;

    let (mut draws, mut log_p, mut log_g) = (Vec::new(), Vec::new(), Vec::new());
    for (at, line) in lines {
        let mut row = Vec::with_capacity(columns.len());
        for field in line.split(',') {
            row.push(
                field
                    .trim()
                    .parse::<f64>()
                    .map_err(|_| fail(at, &format!("`{field}` is no number")))?,
            );
        }
        if row.len() != columns.len() {
            return Err(fail(
                at,
                &format!("{} values under {} columns", row.len(), columns.len()),
            ));
        }
        log_p.push(row[1]);
        log_g.push(row[2]);
        draws.extend_from_slice(&row[LEADING.len()..]);
    }
    DrawsTable::new(variables, draws, log_p, log_g)
}

/// Variables from scalar names: neighbours with the same stem; the last one's subscripts are the sizes.
fn group_columns(columns: &[&str]) -> Option<Vec<DrawsVariable>> {
    let mut variables = Vec::new();
    let mut rest = columns;
    while let Some(first) = rest.first() {
        let stem = first.split('.').next()?;
        let count = rest
            .iter()
            .take_while(|c| c.split('.').next() == Some(stem))
            .count();
        let shape: Option<Vec<usize>> = rest[count - 1]
            .split('.')
            .skip(1)
            .map(|i| i.parse().ok())
            .collect();
        let variable = DrawsVariable {
            name: stem.to_string(),
            shape: shape?,
        };
        let fits = crate::dataset::checked_len(&variable.shape) == Some(count);
        if !fits
            || !variable
                .scalar_names()
                .iter()
                .zip(rest)
                .all(|(a, b)| a == b)
        {
            return None;
        }
        variables.push(variable);
        rest = &rest[count..];
    }
    Some(variables)
}
