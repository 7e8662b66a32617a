//! Simulation-based calibration. This method uses simulated data to test whether the posteriors of a program are
//! calibrated.
//!
//! A Stan program does not separate its prior from its likelihood. The user therefore supplies a second program, the
//! simulator. In its generated quantities, the simulator draws parameters from the prior, and then data given these
//! parameters. Jensen fits the first program to each simulated data set and computes the rank of every simulated
//! parameter among the draws of its posterior. If the program, the simulator and the fits are consistent with each
//! other, the ranks are uniformly distributed for every model (Talts, Betancourt, Simpson, Vehtari and Gelman 2018).
//!
//! The fits are tasks of [`fit_many`](crate::fit_many). Several workers can therefore share the fits, and a restart
//! runs only the fits that have not finished.
//!
//! | file | subject |
//! | --- | --- |
//! | here | [`simulate`] creates the tasks, and [`Calibrated::of`] judges their ranks |
//! | `ranks` | tests of uniform ranks, with their error rates |
//! | `report_page` | the report |

mod ranks;
mod report_page;

use std::collections::HashMap;
use std::path::PathBuf;

use jensen_data::{DataFile, DataSet, DrawsTable, Value};
use jensen_stan::program::Decl;
use serde::Serialize;

pub(crate) use ranks::ranks;
pub use ranks::{DRAWS, ERROR_RATE, Uniformity};
pub use report_page::report;

use crate::fit_many::{FitRow, Fits, Given, Task};
use crate::program::Includes;
use crate::sample::row_major;
use crate::stan::{self, Build};
use crate::{Error, Generator};

/// The minimum number of simulations that a verdict needs.
pub const FEWEST: usize = 20;

/// A Stan program whose generated quantities are parameters and data.
#[derive(Clone, Debug)]
pub struct Simulator {
    /// The name of the simulator that messages use.
    pub name: String,
    /// The Stan code of the simulator.
    pub text: String,
    /// The folders that are searched for included files.
    pub folders: Vec<PathBuf>,
    /// The data that both programs use: sizes, covariates and the constants of the priors.
    pub data: Option<DataFile>,
}

/// Returns the fits of `count` simulated data sets. The simulation with index i depends only on the seed and on i. A
/// generated quantity that has the name of a data variable becomes part of the data. All other generated quantities are
/// compared with the variables of the program.
///
/// # Errors
/// Fails if the simulator has an error, declares parameters, rejects a draw, or generates none of the data that the
/// program declares.
pub fn simulate(
    fits: &Fits,
    simulator: &Simulator,
    count: usize,
    seed: u64,
    build: &Build<'_>,
) -> Result<Vec<Task>, Error> {
    let mut base = match &simulator.data {
        Some(file) => file.parse()?,
        None => DataSet::new(),
    };
    let includes = Includes::of_folders(&simulator.folders);
    let build = Build {
        includes: &includes,
        data_name: simulator.data.as_ref().map_or("data", |file| &file.name),
        seed,
        ..build.clone()
    };
    let generator = Generator::compile(&simulator.text, &simulator.name, &base, &build)?;
    if generator.model().bound().unconstrained_dim() > 0 {
        return Err(Error::Input(format!(
            "`{}` has parameters, but a simulator must draw them in its generated quantities, with `_rng` \
             functions",
            simulator.name
        )));
    }
    let nothing = DrawsTable::new(Vec::new(), Vec::new(), vec![0.0; count], vec![0.0; count]);
    let made = generator.generate(&nothing.map_err(Error::Data)?, seed)?;
    if made.rejected > 0 {
        return Err(Error::Input(format!(
            "`{}` rejects {} of {count} simulations: {}",
            simulator.name,
            made.rejected,
            made.rejection.unwrap_or_default()
        )));
    }
    let wanted = data_names(fits, &mut base)?;
    if !made
        .variables
        .iter()
        .any(|variable| wanted.contains(&variable.name))
    {
        return Err(Error::Input(format!(
            "`{}` generates no data for `{}`: name a generated quantity like a data variable ({})",
            simulator.name,
            fits.model,
            wanted.join(", ")
        )));
    }
    let names: Vec<String> = made
        .table
        .variables()
        .iter()
        .flat_map(|v| v.display_names())
        .collect();
    let mut tasks = Vec::with_capacity(count);
    for i in 0..count {
        let row = made.table.row(i);
        let (mut data, mut truth, mut start) = (base.clone(), Vec::new(), 0);
        for variable in &made.variables {
            let range = start..start + variable.len();
            start = range.end;
            if !wanted.contains(&variable.name) {
                truth.extend(
                    names[range.clone()]
                        .iter()
                        .cloned()
                        .zip(row[range].iter().copied()),
                );
                continue;
            }
            let elements = row_major(&variable.shape, &row[range]);
            let value = match variable.integer {
                true => Value::ints(
                    variable.shape.clone(),
                    elements.iter().map(|x| *x as i64).collect(),
                ),
                false => Value::reals(variable.shape.clone(), elements),
            };
            data = with(&data, &variable.name, value.map_err(Error::Data)?);
        }
        tasks.push(Task::simulated(
            Given {
                name: format!("simulation {}", i + 1),
                text: Some(data.to_json()),
            },
            seed.wrapping_add(i as u64),
            truth,
        ));
    }
    Ok(tasks)
}

fn with(data: &DataSet, name: &str, value: Value) -> DataSet {
    let mut out = DataSet::new();
    for (other, value) in data.iter().filter(|(other, _)| *other != name) {
        out.insert(other, value.clone());
    }
    out.insert(name, value);
    out
}

/// Returns the names of the variables in the data block of a program. If the data are a table, the function also adds
/// the number of rows to `data` under the names that the program uses for this number.
fn data_names(fits: &Fits, data: &mut DataSet) -> Result<Vec<String>, Error> {
    let includes = Includes::of_texts(fits.includes.clone());
    let checked = stan::check(&fits.text, &fits.model, &includes);
    let Some(program) = &checked.program else {
        return Err(Error::Input(checked.render(false)));
    };
    let name = |decl: &Decl| program.var(decl.var).name.clone();
    if let Some(rows) = data.rows() {
        let is_length = |decl: &&Decl| {
            program
                .of_length(decl)
                .any(|known| data.get(known).is_some())
        };
        let lengths: Vec<String> = program.data.iter().filter(is_length).map(name).collect();
        for length in lengths {
            let value = Value::ints(Vec::new(), vec![rows as i64]).map_err(Error::Data)?;
            data.insert(length, value);
        }
    }
    Ok(program.data.iter().map(name).collect())
}

/// The tests of whether the ranks of one scalar are uniform.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The name of the tested scalar.
    pub name: String,
    /// The results of the tests of its ranks.
    #[serde(flatten)]
    pub tests: Uniformity,
    /// Whether the test rejects uniform ranks for this scalar at the joint error rate of all scalars.
    pub refuted: bool,
    /// A description of how the ranks deviate from a uniform distribution.
    pub how: String,
    #[serde(skip)]
    ranks: Vec<u32>,
}

/// The result of a simulation-based calibration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibrated {
    /// Whether the calibration has passed. A calibration passes if the test rejects no scalar and if every simulation
    /// has ranks.
    pub calibrated: bool,
    /// The number of simulated data sets that were fitted.
    pub simulations: usize,
    /// The number of fits that were trusted.
    pub trusted: usize,
    /// The number of simulations without ranks. A simulation has no ranks if its fit failed or has too few draws.
    pub without_ranks: usize,
    /// The number of draws among which each simulated value is ranked. The ranks are between 0 and this number.
    pub draws: usize,
    /// The probability that the test rejects at least one scalar if all ranks are uniform.
    pub error_rate: f64,
    /// The tests of every scalar that the simulator generates and the program reports.
    pub parameters: Vec<Judged>,
}

impl Calibrated {
    /// Tests the ranks from the fits of simulated data sets. `rows` contains one row per fit.
    ///
    /// # Errors
    /// Fails if fewer than [`FEWEST`] rows contain ranks, or if the simulator generates no scalar that the program
    /// reports.
    pub fn of(rows: &[&FitRow], seed: u64) -> Result<Self, Error> {
        let ranked: Vec<&&FitRow> = rows.iter().filter(|row| !row.ranks.is_empty()).collect();
        if ranked.len() < FEWEST {
            let why = rows.iter().find(|row| row.ranks.is_empty());
            return Err(Error::Input(format!(
                "only {} of {} simulations have ranks, but {FEWEST} are necessary: {}",
                ranked.len(),
                rows.len(),
                match why {
                    Some(row) if !row.message.is_empty() => row.message.clone(),
                    _ => "the simulator and the program have no scalar of the same name".to_owned(),
                }
            )));
        }
        let names: Vec<&str> = ranked[0]
            .ranks
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        let mut found: HashMap<&str, Vec<u32>> = HashMap::new();
        for (name, rank) in ranked.iter().flat_map(|row| &row.ranks) {
            found.entry(name).or_default().push(*rank);
        }
        let null = ranks::Null::new(ranked.len(), names.len(), seed);
        let limit = ERROR_RATE / names.len() as f64;
        let parameters: Vec<Judged> = names
            .iter()
            .map(|name| {
                let ranks = found.remove(name).unwrap_or_default();
                let tests = null.judge(&ranks);
                let refuted = tests.ecdf_p < limit;
                Judged {
                    name: (*name).to_owned(),
                    how: if refuted { ranks::shape(&ranks) } else { "" }.to_owned(),
                    tests,
                    refuted,
                    ranks,
                }
            })
            .collect();
        let without_ranks = rows.len() - ranked.len();
        Ok(Self {
            calibrated: without_ranks == 0 && parameters.iter().all(|p| !p.refuted),
            simulations: rows.len(),
            trusted: rows.iter().filter(|row| row.is_trusted()).count(),
            without_ranks,
            draws: DRAWS,
            error_rate: ERROR_RATE,
            parameters,
        })
    }

    /// Returns the reasons why the calibration failed. Each reason is one sentence.
    pub fn warnings(&self) -> Vec<String> {
        let refuted = self.parameters.iter().filter(|p| p.refuted);
        let mut warnings: Vec<String> = refuted
            .map(|p| {
                format!(
                    "the ranks of {} are not uniform (p = {:.1e} of the envelope test): {}",
                    p.name, p.tests.ecdf_p, p.how
                )
            })
            .collect();
        if self.without_ranks > 0 {
            warnings.push(format!(
                "{} of {} simulations have no ranks: table.csv has the reasons",
                self.without_ranks, self.simulations
            ));
        }
        warnings
    }
}

/// Formats the ranks as CSV with one row per simulation.
pub fn ranks_csv(rows: &[&FitRow]) -> String {
    let names: Vec<&str> = match rows.iter().find(|row| !row.ranks.is_empty()) {
        Some(row) => row.ranks.iter().map(|(name, _)| name.as_str()).collect(),
        None => Vec::new(),
    };
    let mut text = "simulation,seed,verdict".to_owned();
    for name in &names {
        // The names are quoted because the names of array elements contain commas.
        text += &format!(",\"{name}\"");
    }
    text.push('\n');
    for row in rows {
        text += &format!("{},{},{}", row.data, row.seed, row.verdict);
        for name in &names {
            let rank = row.ranks.iter().find(|(other, _)| other == name);
            text += &rank.map_or(",".to_owned(), |(_, rank)| format!(",{rank}"));
        }
        text.push('\n');
    }
    text
}
