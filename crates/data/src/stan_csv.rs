//! Writes and reads `draws.csv`, a Stan CSV file with the layout of CmdStan's variational method.
//!
//! The file begins with comment lines that contain the settings, followed by a header `lp__,log_p__,log_g__,…` and two
//! comment lines with the step size. The next row contains the mean, and each further row contains one draw. As in
//! CmdStan, `lp__` is zero in every row, and all three columns are zero in the row of the mean. Each number is written
//! as the shortest text that is read back to the same bits. Non-finite numbers are written as `nan`, `inf` and `-inf`.
//!
//! The following table lists the parts of the file that other programs require, according to their source code:
//!
//! | reader | needs |
//! | --- | --- |
//! | CmdStanPy's `from_csv` | every setting of [`AdviConfig`], an algorithm that it supports, the two lines, the mean |
//! | CmdStanR's `read_cmdstan_csv` | `id`; it drops the first row |
//! | RStan's `read_one_stan_csv` | exactly two lines between the header and the rows |
//! | RStan's `read_stan_csv` | `warmup`, `thin` and `save_warmup`, which CmdStan itself does not write here |

use std::fmt::{Display, Write as _};
use std::io::Write;
use std::path::Path;

use rayon::prelude::*;

use crate::atomic::write_atomic;
use crate::draws::{DrawsTable, DrawsVariable};
use crate::error::DataError;

/// The settings that are written to the comments of a file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StanCsvHeader {
    /// The name of the model, or the name of its file.
    pub model: String,
    /// The approximating family, such as `meanfield` or `fullrank`.
    pub family: String,
    /// The source of the draws, which is either `approximation` or `refined`.
    pub draws_of: String,
    /// The seed of the run.
    pub seed: u64,
    /// The settings of CmdStan's variational method.
    pub advi: AdviConfig,
    /// The step-size scale that the run used, or 1 if the method has none.
    pub eta: f64,
    /// The settings that the user specified for this run, as keys and values.
    pub settings: Vec<(String, String)>,
}

/// The settings of CmdStan's variational method. Readers require these settings even if Jensen fitted the model by
/// another method. In that case, they have their default values.
#[derive(Debug, Clone, PartialEq)]
pub struct AdviConfig {
    /// The largest number of iterations.
    pub iter: u64,
    /// The number of draws per gradient.
    pub grad_samples: u64,
    /// The number of draws per estimate of the ELBO.
    pub elbo_samples: u64,
    /// The scale of the step sizes.
    pub eta: f64,
    /// Whether the run searched for the scale of the step sizes.
    pub adapted: bool,
    /// The relative tolerance of the ELBO, which determines when a run has converged.
    pub tol_rel_obj: f64,
    /// The number of iterations between estimates of the ELBO.
    pub eval_elbo: u64,
}

impl Default for AdviConfig {
    fn default() -> Self {
        Self {
            iter: 10_000,
            grad_samples: 1,
            elbo_samples: 100,
            eta: 1.0,
            adapted: true,
            tol_rel_obj: 0.01,
            eval_elbo: 100,
        }
    }
}

/// The comments that a file contains before and after its header.
#[derive(Debug, Clone, PartialEq)]
pub struct StanCsvComments {
    /// The comment lines above the header.
    pub above: String,
    /// The scale of the step sizes, which is written below the header.
    pub eta: f64,
}

/// The first comment line below the header. The next comment line contains the scale of the step sizes.
const ADAPTED: &str = "# Stepsize adaptation complete.";

const LEADING: [&str; 3] = ["lp__", "log_p__", "log_g__"];

impl StanCsvHeader {
    /// Returns the comments of a file that contains the given number of draws.
    pub fn comments(&self, draws: usize) -> StanCsvComments {
        let mut lines = Lines(String::new());
        lines.add(0, "jensen_version", env!("CARGO_PKG_VERSION"));
        lines.add(0, "model", model_name(&self.model));
        lines.add(0, "method", "variational");
        lines.title(1, "variational");
        // Programs that read CmdStan's files accept only the two families of CmdStan. All families with correlations
        // are therefore called `fullrank`.
        let algorithm = match self.family.as_str() {
            "meanfield" => "meanfield",
            _ => "fullrank",
        };
        lines.add(2, "algorithm", algorithm);
        lines.title(3, algorithm);
        let (given, usual) = (&self.advi, AdviConfig::default());
        lines.setting("iter", given.iter, usual.iter);
        lines.setting("grad_samples", given.grad_samples, usual.grad_samples);
        lines.setting("elbo_samples", given.elbo_samples, usual.elbo_samples);
        lines.setting("eta", given.eta, usual.eta);
        lines.title(2, "adapt");
        // The setting `iter` of CmdStan's step-size search is omitted. Readers that use the last value of a name would
        // confuse it with the setting `iter` above.
        lines.add(3, "engaged", u8::from(given.adapted));
        lines.setting("tol_rel_obj", given.tol_rel_obj, usual.tol_rel_obj);
        lines.setting("eval_elbo", given.eval_elbo, usual.eval_elbo);
        lines.setting("output_samples", draws, 1000);
        for (key, value) in [("id", 1), ("warmup", 0), ("thin", 1), ("save_warmup", 0)] {
            lines.add(0, key, value);
        }
        lines.title(0, "random");
        lines.add(1, "seed", self.seed);
        lines.title(0, "jensen");
        lines.add(1, "jensen_fitted_family", &self.family);
        lines.add(1, "jensen_draws_of", &self.draws_of);
        for (key, value) in &self.settings {
            // The names have a prefix, because Jensen's settings differ from CmdStan's settings of the same names.
            lines.add(1, &format!("jensen_{}", key.replace('-', "_")), value);
        }
        StanCsvComments {
            above: lines.0,
            eta: self.eta,
        }
    }
}

/// Returns the name that Stan's compiler would give the program. Some readers use it as a file name, so it must not
/// contain a path.
fn model_name(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let stem = name.strip_suffix(".stan").unwrap_or(name);
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("{}_model", stem.chars().map(plain).collect::<String>())
}

struct Lines(String);

impl Lines {
    fn title(&mut self, depth: usize, name: &str) {
        let _ = writeln!(self.0, "# {}{name}", "  ".repeat(depth));
    }

    /// Appends a line `key = value`. Line ends and `=` within values are replaced, because readers would misread them.
    fn add(&mut self, depth: usize, key: &str, value: impl Display) {
        let clean = |s: String| s.replace(|c: char| c.is_control() || c == '=', " ");
        let (key, value) = (clean(key.to_owned()), clean(value.to_string()));
        let _ = writeln!(self.0, "# {}{key} = {value}", "  ".repeat(depth));
    }

    fn setting<T: Display + PartialEq>(&mut self, key: &str, value: T, usual: T) {
        let mark = if value == usual { " (Default)" } else { "" };
        self.add(2, key, format!("{value}{mark}"));
    }
}

const TOGETHER: usize = 1 << 18;

const SHARE: usize = 16;

/// Writes the draws as Stan CSV atomically. If the mean is unknown, every value in its row is `nan`.
pub fn write_draws_csv(
    path: &Path,
    table: &DrawsTable,
    comments: &StanCsvComments,
) -> Result<(), DataError> {
    write_atomic(path, |out| {
        out.write_all(comments.above.as_bytes())?;
        write!(out, "{}", LEADING.join(","))?;
        for name in table.scalar_names() {
            write!(out, ",{name}")?;
        }
        writeln!(out, "\n{ADAPTED}\n# eta = {}", comments.eta)?;
        let unknown = vec![f64::NAN; table.width()];
        let mut line = String::new();
        push_row(&mut line, [0.0; 3], table.mean().unwrap_or(&unknown));
        out.write_all(line.as_bytes())?;
        // Groups of rows are formatted in parallel.
        let together = (TOGETHER / table.width().max(1)).max(1);
        for first in (0..table.len()).step_by(together) {
            let draws = first..table.len().min(first + together);
            let rows = draws.into_par_iter().with_min_len(SHARE.min(together));
            let text: Vec<String> = rows
                .map(|draw| {
                    let mut line = String::new();
                    let leading = [0.0, table.log_p()[draw], table.log_g()[draw]];
                    push_row(&mut line, leading, table.row(draw));
                    line
                })
                .collect();
            for line in text {
                out.write_all(line.as_bytes())?;
            }
        }
        Ok(())
    })
}

fn push_row(line: &mut String, leading: [f64; 3], values: &[f64]) {
    for x in leading.iter().chain(values) {
        push_number(line, *x);
        line.push(',');
    }
    line.pop();
    line.push('\n');
}

fn push_number(line: &mut String, x: f64) {
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

/// Reads a file that [`write_draws_csv`] wrote, and combines scalars into variables according to their subscripts.
/// Files from earlier versions have no comments below the header and no row for the mean.
pub fn read_draws_csv(path: &Path) -> Result<(DrawsTable, StanCsvComments), DataError> {
    let text = std::fs::read_to_string(path).map_err(|e| DataError::io("read", path, &e))?;
    let fail = |line: usize, message: &str| {
        DataError::invalid(format!(
            "`{}`, line {}: {message}",
            path.display(),
            line + 1
        ))
    };
    let mut comments = StanCsvComments {
        above: String::new(),
        eta: 1.0,
    };
    let mut columns: Option<Vec<&str>> = None;
    let mut variables = Vec::new();
    let mut mean = None;
    let mut mean_follows = false;
    let (mut draws, mut log_p, mut log_g) = (Vec::new(), Vec::new(), Vec::new());
    for (at, line) in text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.trim().is_empty())
    {
        match (line.starts_with('#'), &columns) {
            (true, None) => {
                comments.above.push_str(line);
                comments.above.push('\n');
            }
            (true, Some(_)) => {
                mean_follows |= line == ADAPTED;
                let eta = line.strip_prefix("# eta = ").map(str::parse);
                comments.eta = eta.and_then(Result::ok).unwrap_or(comments.eta);
            }
            (false, None) => {
                variables = variables_of(line).map_err(|message| fail(at, message))?;
                columns = Some(line.split(',').collect());
            }
            (false, Some(columns)) => {
                let row = numbers(line, columns.len()).map_err(|message| fail(at, &message))?;
                let values = &row[LEADING.len()..];
                if std::mem::take(&mut mean_follows) {
                    mean = Some(values.to_vec());
                    continue;
                }
                log_p.push(row[1]);
                log_g.push(row[2]);
                draws.extend_from_slice(values);
            }
        }
    }
    if columns.is_none() {
        return Err(fail(0, "there is no header"));
    }
    let table = DrawsTable::new(variables, draws, log_p, log_g)?;
    Ok(match mean {
        Some(mean) => (table.with_mean(mean)?, comments),
        None => (table, comments),
    })
}

fn variables_of(header: &str) -> Result<Vec<DrawsVariable>, &'static str> {
    let columns: Vec<&str> = header.split(',').collect();
    if !columns.starts_with(&LEADING) {
        return Err("the header does not begin with lp__,log_p__,log_g__");
    }
    group_columns(&columns[LEADING.len()..])
        .ok_or("the subscripts of a variable are not in column-major order")
}

fn numbers(line: &str, columns: usize) -> Result<Vec<f64>, String> {
    let mut row = Vec::with_capacity(columns);
    for field in line.split(',') {
        let number = field.trim().parse::<f64>();
        row.push(number.map_err(|_| format!("`{field}` is not a number"))?);
    }
    if row.len() != columns {
        return Err(format!("{} values under {columns} columns", row.len()));
    }
    Ok(row)
}

/// Combines scalars into variables. Neighbouring scalars with the same stem form a variable. The subscripts of the last
/// scalar are the sizes of the variable.
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
