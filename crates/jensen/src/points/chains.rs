//! Hidden Markov models for sequences of rows. Each row is emitted by a hidden state.

use std::path::PathBuf;

use jensen_conjugate::model::ConjugateModel;
use jensen_conjugate::models::{Components, Covariance, GaussianPrior, HiddenMarkov};
use jensen_data::{Cells, Column, Table};
use jensen_math::special::lgamma;
use serde::{Deserialize, Serialize};

use super::explained::{Explained, explain_by};
use super::job::{Beside, PointJob, cell, one_part, starts};
use super::kinds::Kinds;
use super::mixture::{PointsFit, bernoullis, multinomials, spread};
use super::request::check_latent;
use super::{
    Chain, ColumnKind, CovarianceShape, Described, Emission, Globals, Kind, Labels, Parts,
    PointRequest, Points,
};
use crate::Error;
#[cfg(feature = "clap")]
use crate::job::words;
use crate::job::{Around, CountRange, carry_out};
use crate::units::{Standardise, Units};

/// The name of the command, which is stored in its result folders.
pub const HMM: &str = "hmm";

/// The settings of a hidden Markov model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct ChainsRequest {
    /// The table, with a row for each step (may be omitted with --resume)
    #[cfg_attr(feature = "clap", arg(required_unless_present = "resume"))]
    pub data: Option<PathBuf>,
    /// Number of states, or a range such as 1..6 from which the bound chooses
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            short = 'k',
            value_name = "K",
            required_unless_present = "resume",
            help_heading = "Model"
        )
    )]
    pub states: Option<CountRange>,
    /// The column that identifies sequences, whose steps are in order; without it all rows are one sequence
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "COLUMN", help_heading = "Model")
    )]
    pub sequence: Option<String>,
    /// The column with known states: whole numbers from 1, or words; empty cells are unknown states
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "COLUMN", help_heading = "Model")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    /// Density of an emission [default: gaussian]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "KIND", value_enum, help_heading = "Model")
    )]
    pub emissions: Option<Kind>,
    /// Columns of another kind, each NAME=gaussian, student-t, poisson, negative-binomial, bernoulli or categorical; all
    /// columns are then independent given the state
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "NAME=KIND,…",
            value_delimiter = ',',
            help_heading = "Model"
        )
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnKind>,
    /// Covariance matrices of Gaussian emissions [default: full]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "SHAPE", value_enum, help_heading = "Model")
    )]
    pub covariance: Option<CovarianceShape>,
    /// Whether to standardise the columns of Gaussian emissions; results are always in the units of the data [default:
    /// on]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "on|off", value_enum, help_heading = "Model")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standardise: Option<Standardise>,
    /// Dirichlet parameter of the first state and of every row of transitions [default: 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Model"))]
    pub concentration: Option<f64>,
    /// Dirichlet parameter of the proportions of multinomial and categorical emissions [default: 0.5]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Model"))]
    pub smoothing: Option<f64>,
    /// The settings of every model of points. Hidden Markov models have neither minibatches nor held-out rows.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub points: PointRequest,
}

impl ChainsRequest {
    fn sizes(&self) -> CountRange {
        self.states.unwrap_or(CountRange::one(1))
    }

    fn kind(&self) -> Kind {
        self.emissions.unwrap_or_default()
    }

    fn several_kinds(&self) -> bool {
        Kinds::asked(self.kind(), &self.columns)
    }

    /// Checks that hidden Markov models support all settings that the user gave.
    ///
    /// # Errors
    /// Fails with [`Error::Setting`] if hidden Markov models do not support one of the given settings.
    pub fn check(&self) -> Result<(), Error> {
        let points = &self.points;
        if points.batch.is_some() || points.heldout() > 0.0 {
            return Err(Error::setting(
                "hidden Markov models support neither minibatches (--batch) nor held-out rows (--heldout)",
            ));
        }
        let annealed = ["none", "anneal"].contains(&points.temper()?.name());
        if self.emissions == Some(Kind::Multinomial) && !annealed {
            return Err(Error::setting(
                "Jensen cannot infer temperatures of chains that emit counts, because their normaliser depends \
                 on the sizes of all rows: use --temper anneal=50",
            ));
        }
        if self.labels.is_some() && !annealed {
            return Err(Error::setting(
                "Jensen cannot infer temperatures of chains with known states: use --temper anneal=50",
            ));
        }
        if self.labels.is_some() && self.labels == self.sequence {
            return Err(Error::setting(
                "--labels and --sequence need different columns",
            ));
        }
        if self.sizes().most() > STATES {
            return Err(Error::Setting(format!(
                "--states takes at most {STATES} states"
            )));
        }
        let some = |kind| self.kind() == kind || self.columns.iter().any(|c| c.kind == kind);
        if some(Kind::StudentT) || some(Kind::NegativeBinomial) {
            check_latent(points)?;
        }
        for (name, given, fits) in [
            (
                "--standardise",
                self.standardise.is_some(),
                some(Kind::Gaussian) || some(Kind::StudentT),
            ),
            (
                "--covariance",
                self.covariance.is_some(),
                self.kind() == Kind::Gaussian && !self.several_kinds(),
            ),
            (
                "--smoothing",
                self.smoothing.is_some(),
                some(Kind::Multinomial) || some(Kind::Categorical),
            ),
        ] {
            if given && !fits {
                return Err(Error::Setting(format!(
                    "{name} has no effect on states with this kind of emissions: remove it"
                )));
            }
        }
        points.settings().map(|_| ())
    }
}

/// The rows of a table, grouped into one or more sequences.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequences {
    /// The rows of all sequences. The rows of the first sequence come first.
    pub points: Points,
    /// The number of rows in each sequence.
    pub lengths: Vec<usize>,
    /// The names of the sequences. The name of a sequence is its value in the grouping column.
    pub names: Vec<String>,
    /// The zero-based index in the table of each row of `points`.
    pub rows: Vec<usize>,
}

impl Sequences {
    /// Groups the rows of a table by the values of `column`. If `column` is `None`, all rows form a single sequence.
    /// The sequences are sorted by their first rows. The column `labels` contains known states.
    ///
    /// # Errors
    /// Fails if a known state is not a word or a whole number of at least 1. Also returns the errors of
    /// [`of_table`](Self::of_table).
    pub fn of_labelled(
        table: &Table,
        column: Option<&str>,
        labels: &str,
        request: &PointRequest,
    ) -> Result<Self, Error> {
        let known = Labels::of_column(table, labels)?;
        let mut sequences = Self::of_table(&without(table, labels)?, column, request)?;
        let states = sequences.rows.iter().map(|row| known.states[*row]);
        let states: Vec<Option<usize>> = states.collect();
        sequences.points.digest += &format!(" {states:?}");
        sequences.points.labels = Labels { states, ..known };
        Ok(sequences)
    }

    /// Groups the rows of a table by the values of `column`. If `column` is `None`, all rows form a single sequence.
    /// The sequences are sorted by their first rows.
    ///
    /// # Errors
    /// Fails if the table has no such column or if one of its values is missing. Also returns the errors of
    /// [`Points::of_table`].
    pub fn of_table(
        table: &Table,
        column: Option<&str>,
        request: &PointRequest,
    ) -> Result<Self, Error> {
        let Some(name) = column else {
            let points = Points::of_table(table, request)?;
            return Ok(Self {
                lengths: vec![points.count()],
                names: Vec::new(),
                rows: (0..points.count()).collect(),
                points,
            });
        };
        let words: Vec<Option<String>> = match &table.column(name)?.cells {
            Cells::Words(words) => words.clone(),
            Cells::Numbers(numbers) => {
                let word = |x: &f64| (!x.is_nan()).then(|| x.to_string());
                numbers.iter().map(word).collect()
            }
        };
        let (mut names, mut of) = (Vec::<String>::new(), Vec::with_capacity(words.len()));
        let mut known = std::collections::BTreeMap::new();
        for (row, word) in words.into_iter().enumerate() {
            let Some(word) = word else {
                return Err(Error::Input(format!(
                    "`{}`, row {}: the value of the sequence column `{name}` is missing; fill it in",
                    table.source(),
                    row + 1
                )));
            };
            let next = names.len();
            let at = *known.entry(word.clone()).or_insert(next);
            if at == next {
                names.push(word);
            }
            of.push(at);
        }
        let mut rows: Vec<usize> = (0..of.len()).collect();
        rows.sort_by_key(|row| of[*row]);
        let mut lengths = vec![0; names.len()];
        of.iter().for_each(|at| lengths[*at] += 1);
        let columns = table.columns().iter().filter(|c| c.name != name);
        let columns = columns.map(|c| {
            let numbers = c.numbers()?;
            let own = rows.iter().map(|row| numbers[*row]).collect();
            Ok(Column::new(c.name.clone(), Cells::Numbers(own)))
        });
        let columns = columns.collect::<Result<Vec<_>, Error>>()?;
        if columns.is_empty() {
            return Err(Error::Input(format!(
                "`{}` has no data column besides `{name}`, which identifies the sequences",
                table.source()
            )));
        }
        let mut points = Points::of_table(&Table::new(table.source(), columns)?, request)?;
        points.digest += &format!(" {lengths:?}");
        Ok(Self {
            points,
            lengths,
            names,
            rows,
        })
    }
}

/// Returns a table without one of its columns.
///
/// # Errors
/// Fails if no column is left.
pub fn without(table: &Table, column: &str) -> Result<Table, Error> {
    let columns = table.columns().iter().filter(|c| c.name != column);
    let columns: Vec<Column> = columns.cloned().collect();
    if columns.is_empty() {
        return Err(Error::Input(format!(
            "`{}` has no column besides `{column}`",
            table.source()
        )));
    }
    Ok(Table::new(table.source(), columns)?)
}

/// The maximum number of states. The number of transition probabilities is the square of the number of states.
const STATES: u64 = 10_000;

const SMOOTHING: f64 = 0.5;

fn smoothing(request: &ChainsRequest) -> f64 {
    request.smoothing.unwrap_or(SMOOTHING)
}

fn shape(request: &ChainsRequest, points: &Points) -> Result<CovarianceShape, Error> {
    let shape = request.covariance.unwrap_or_default();
    if Covariance::from(shape).is_matrix() {
        points.check_complete("missing values need --covariance diagonal or spherical")?;
    }
    Ok(shape)
}

fn model<C: Components>(
    request: &ChainsRequest,
    points: &Points,
    lengths: &[usize],
    emissions: C,
    states: usize,
) -> Result<HiddenMarkov<C>, Error> {
    let mut starts = vec![0];
    for length in lengths {
        starts.push(starts[starts.len() - 1] + length);
    }
    if starts[lengths.len()] != points.count() {
        return Err(Error::Input(format!(
            "the lengths of the sequences add up to {}, but there are {} rows",
            starts[lengths.len()],
            points.count()
        )));
    }
    let concentration = request.concentration.unwrap_or(1.0);
    let model = HiddenMarkov::new(emissions, starts, states, concentration);
    let labelled = model.and_then(|model| model.with_labels(points.labels.states.clone()));
    labelled.map_err(Error::Input)
}

/// Fits hidden Markov models to rows that are sorted by sequence. The sequence with index i consists of `lengths[i]`
/// rows.
///
/// # Errors
/// Fails if a setting is invalid, if the lengths do not sum to the number of rows, or if a row is outside the domain of
/// the emission distributions. Also returns the errors of [`carry_out`].
pub fn fit_chains(
    request: &ChainsRequest,
    points: &Points,
    lengths: &[usize],
    around: Around<'_>,
) -> Result<PointsFit, Error> {
    request.check()?;
    let most = request.sizes().most();
    points.check_columns()?;
    points.check_unweighted()?;
    points.check_heat(&request.points)?;
    if most > points.count() as u64 {
        return Err(Error::Input(format!(
            "{most} states are too many for {} rows: use fewer",
            points.count()
        )));
    }
    let highest = points.labels.states.iter().flatten().max();
    let least = request.sizes().all().next().unwrap_or(1);
    if let Some(highest) = highest.filter(|highest| **highest as u64 >= least) {
        return Err(Error::Input(format!(
            "`{}` has the known state {}, but --states allows {}: use more states",
            points.source,
            highest + 1,
            least
        )));
    }
    let standardise = request.standardise.unwrap_or_default();
    let as_they_are = Units::as_they_are(points.dim());
    let data = |units| Data {
        request,
        points,
        lengths,
        units,
        levels: &[],
    };
    if request.several_kinds() {
        let kinds = Kinds::of(points, request.kind(), &request.columns, standardise)?;
        let prior = GaussianPrior::default();
        let emissions =
            kinds.components(points, (&points.train, &[]), smoothing(request), prior)?;
        let data = Data {
            levels: &kinds.levels,
            ..data(&kinds.units)
        };
        return data.fit(&emissions, around, |c, lambda| {
            let columns = kinds.described(&points.names, c, lambda);
            Emission::Columns {
                values: columns.iter().map(|c| c.distribution.value()).collect(),
                columns,
            }
        });
    }
    match request.kind() {
        Kind::Bernoulli => {
            let emissions = bernoullis(SMOOTHING, points, &points.train)?;
            data(&as_they_are).fit(&emissions, around, |c, lambda| Emission::Bernoulli {
                probabilities: c.probabilities(lambda),
            })
        }
        Kind::Multinomial => {
            let emissions = multinomials(smoothing(request), points, &points.train)?;
            data(&as_they_are).fit(&emissions, around, |c, lambda| Emission::Multinomial {
                proportions: c.proportions(lambda),
            })
        }
        Kind::Gaussian
        | Kind::StudentT
        | Kind::Poisson
        | Kind::NegativeBinomial
        | Kind::Categorical => {
            let units = points.units(standardise)?;
            let (shape, prior) = (shape(request, points)?, GaussianPrior::default());
            let size = (most, request.points.seed(), around.memory_limit);
            let emissions = points.gaussians_to_fit(shape, &units, prior, size)?;
            data(&units).fit(&emissions, around, |c, lambda| Emission::Gaussian {
                mean: units.back(&c.mean(lambda)),
                covariance: spread(c, &units, lambda),
            })
        }
    }
}

struct Data<'a> {
    request: &'a ChainsRequest,
    points: &'a Points,
    lengths: &'a [usize],
    units: &'a Units,
    levels: &'a [Vec<f64>],
}

impl Data<'_> {
    fn fit<C: Components>(
        &self,
        emissions: &C,
        around: Around<'_>,
        emission: impl Fn(&C, &[f64]) -> Emission,
    ) -> Result<PointsFit, Error> {
        let Data {
            request,
            points,
            lengths,
            units,
            levels,
        } = *self;
        let sizes = request.sizes().all();
        let models: Vec<HiddenMarkov<&C>> = sizes
            .map(|k| model(request, points, lengths, emissions, k as usize))
            .collect::<Result<_, _>>()?;
        // K states without known rows have K! equivalent labellings, and q covers only one of them.
        let known = points.labels.count();
        let credited: Vec<(&HiddenMarkov<&C>, f64)> = models
            .iter()
            .map(|model| {
                let free = model.parts().len() - known;
                (model, lgamma(free as f64 + 1.0))
            })
            .collect();
        let job = PointJob {
            command: HMM,
            request,
            shared: &request.points,
            candidates: starts(&request.points, &credited)?,
            points,
            units,
            plain: &|size| {
                let beside = one_part(&models[size], "state", "--states")?;
                Some(match known {
                    0 => beside,
                    _ => Beside {
                        model: "every row in the last known state".to_owned(),
                        ..beside
                    },
                })
            },
            elsewhere: None,
            score: &|_, _| None,
            doubt: &|_, _| None,
            describe: &|size, lambda| {
                let model = &models[size];
                let k = model.parts().len();
                let emissions: Vec<Emission> = (0..k)
                    .map(|i| emission(model.emissions(), &model.marginal(lambda, i)))
                    .collect();
                let transitions = model.transitions(lambda);
                let heads = ["state".to_owned(), "stays".to_owned()].into_iter();
                let rows = emissions.iter().enumerate().map(|(i, emission)| {
                    let cells = emission.values().iter().map(|x| cell(*x));
                    let number = match points.labels.names.get(i) {
                        Some(name) => format!("{} ({name})", i + 1),
                        None => (i + 1).to_string(),
                    };
                    let first = [number, cell(transitions[i * k + i])];
                    first.into_iter().chain(cells).collect()
                });
                let kept = Globals {
                    lambda: lambda.to_vec(),
                    units: units.clone(),
                    levels: levels.to_vec(),
                };
                Described {
                    rows: "state",
                    occupied: None,
                    approximation: Some(kept.encode(model.name())),
                    order: (0..k).collect(),
                    table: (
                        heads.chain(points.names.iter().cloned()).collect(),
                        rows.collect(),
                    ),
                    pictures: Vec::new(),
                    parts: Parts::Chain(Chain {
                        initial: model.initial(lambda),
                        transitions: transitions.chunks_exact(k).map(<[f64]>::to_vec).collect(),
                        emissions,
                        labels: points.labels.names.clone(),
                    }),
                }
            },
        };
        let done = carry_out(job, around)?;
        Ok((done.made.output, done.summary))
    }
}

/// Computes the marginal posterior distribution of the state at every step, given the global parameters.
///
/// # Errors
/// Fails if the lengths do not sum to the number of rows, if a row is outside the domain of the emission distributions,
/// or if the global parameters belong to another model.
pub fn explain_chains(
    request: &ChainsRequest,
    globals: &Globals,
    points: &Points,
    lengths: &[usize],
) -> Result<Explained, Error> {
    Ok(decode_chains(request, globals, points, lengths)?.0)
}

/// Computes the same results as [`explain_chains`], and the most probable path of each sequence. A path lists the
/// zero-based index of the state at each step.
///
/// # Errors
/// Fails under the same conditions as [`explain_chains`].
pub fn decode_chains(
    request: &ChainsRequest,
    globals: &Globals,
    points: &Points,
    lengths: &[usize],
) -> Result<(Explained, Vec<usize>), Error> {
    let Globals {
        lambda,
        units,
        levels,
    } = globals;
    if request.several_kinds() {
        let (kind, columns) = (request.kind(), &request.columns);
        let kinds = Kinds::stored(&points.names, kind, columns, units, levels)?;
        let prior = GaussianPrior::default();
        let emissions =
            kinds.components(points, (&points.train, &[]), smoothing(request), prior)?;
        return decode(request, points, lengths, &emissions, lambda);
    }
    match request.kind() {
        Kind::Bernoulli => {
            let emissions = bernoullis(SMOOTHING, points, &points.train)?;
            decode(request, points, lengths, &emissions, lambda)
        }
        Kind::Multinomial => {
            let emissions = multinomials(smoothing(request), points, &points.train)?;
            decode(request, points, lengths, &emissions, lambda)
        }
        Kind::Gaussian
        | Kind::StudentT
        | Kind::Poisson
        | Kind::NegativeBinomial
        | Kind::Categorical => {
            let shape = shape(request, points)?;
            let emissions = points.gaussians(shape, units, GaussianPrior::default());
            decode(request, points, lengths, &emissions, lambda)
        }
    }
}

fn decode<C: Components>(
    request: &ChainsRequest,
    points: &Points,
    lengths: &[usize],
    emissions: &C,
    lambda: &[f64],
) -> Result<(Explained, Vec<usize>), Error> {
    let states = HiddenMarkov::states_of(emissions, lambda);
    let model = &model(request, points, lengths, emissions, states)?;
    let explained = explain_by(model, lambda, |scratch| &scratch.states)?;
    let expected = model.blocks().expectations(lambda);
    let paths = (0..model.points()).flat_map(|point| model.path(&expected, point));
    Ok((explained, paths.collect()))
}
