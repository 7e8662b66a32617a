//! The rows of the table. Each row contains the result of one fit.

use std::collections::HashMap;

use jensen_data::FitSummary;
use jensen_data::table_csv::quoted;
use serde::{Deserialize, Serialize};

use super::Task;

/// The verdict in the row of a fit that failed without a result.
const FAILED: &str = "failed";

/// The row of the table that describes one fit. Numbers are absent if they are not finite or if the fit failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitRow {
    /// The name of the data set.
    pub data: String,
    /// The SHA-256 digest of the data.
    pub digest: String,
    /// The seed.
    pub seed: u64,
    /// The verdict: `trusted`, `not trusted` or `failed`.
    pub verdict: String,
    /// The ELBO in nats.
    pub elbo: Option<f64>,
    /// The Monte Carlo standard error of `elbo`, in nats.
    pub elbo_se: Option<f64>,
    /// The Pareto k̂ of the importance weights.
    pub khat: Option<f64>,
    /// The wall-clock time in seconds, including the time for compilation.
    pub seconds: f64,
    /// The reason why the fit failed, or the reasons not to trust its result.
    pub message: String,
    /// The name, mean and standard deviation of every scalar.
    pub parameters: Vec<(String, Option<f64>, Option<f64>)>,
    /// The rank of every simulated scalar among the draws. The list is empty unless the data are simulated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<(String, u32)>,
}

impl FitRow {
    pub(super) fn of(task: &Task, summary: &FitSummary, seconds: f64) -> Self {
        let finite = |x: f64| x.is_finite().then_some(x);
        let verdict = if summary.trusted {
            "trusted"
        } else {
            "not trusted"
        };
        let parameters = summary.parameters.iter();
        Self {
            elbo: finite(summary.elbo),
            elbo_se: finite(summary.elbo_se),
            khat: finite(summary.khat),
            message: if summary.trusted {
                String::new()
            } else {
                summary.warnings.join(" ")
            },
            parameters: parameters
                .map(|p| (p.name.clone(), finite(p.mean), finite(p.sd)))
                .collect(),
            ..Self::without(task, verdict, seconds)
        }
    }

    /// Returns the row of a fit that failed.
    pub fn failed(task: &Task, why: &str, seconds: f64) -> Self {
        Self {
            message: why.trim().to_owned(),
            ..Self::without(task, FAILED, seconds)
        }
    }

    fn without(task: &Task, verdict: &str, seconds: f64) -> Self {
        Self {
            data: task.data.name.clone(),
            digest: task.digest.clone(),
            seed: task.seed,
            verdict: verdict.to_owned(),
            elbo: None,
            elbo_se: None,
            khat: None,
            seconds,
            message: String::new(),
            parameters: Vec::new(),
            ranks: Vec::new(),
        }
    }

    /// Returns whether the fit ended with an error.
    pub fn is_failed(&self) -> bool {
        self.verdict == FAILED
    }

    /// Returns whether the verdict trusts the fit.
    pub fn is_trusted(&self) -> bool {
        self.verdict == "trusted"
    }
}

/// Formats rows as CSV. The columns that all fits share come first. These columns are followed by `mean(NAME)` and
/// `sd(NAME)` for every scalar of any fit, in the order in which the scalars first occur. A cell is empty if the fit
/// has no scalar of this name.
pub fn table(rows: &[&FitRow]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut positions = HashMap::new();
    for (name, ..) in rows.iter().flat_map(|row| &row.parameters) {
        positions.entry(name.as_str()).or_insert_with(|| {
            names.push(name);
            names.len() - 1
        });
    }
    let mut text = "data,seed,verdict,elbo,elbo_se,khat,seconds,message".to_owned();
    for name in &names {
        text += &format!(
            ",{},{}",
            quoted(&format!("mean({name})")),
            quoted(&format!("sd({name})"))
        );
    }
    text.push('\n');
    let shown = |x: Option<f64>| x.map_or(String::new(), |x| x.to_string());
    for row in rows {
        let mut cells = vec![
            quoted(&row.data),
            row.seed.to_string(),
            row.verdict.clone(),
            shown(row.elbo),
            shown(row.elbo_se),
            shown(row.khat),
            row.seconds.to_string(),
            quoted(&row.message),
        ];
        let fixed = cells.len();
        cells.resize(fixed + 2 * names.len(), String::new());
        for (name, mean, sd) in &row.parameters {
            let at = fixed + 2 * positions[name.as_str()];
            cells[at] = shown(*mean);
            cells[at + 1] = shown(*sd);
        }
        text += &cells.join(",");
        text.push('\n');
    }
    text
}
