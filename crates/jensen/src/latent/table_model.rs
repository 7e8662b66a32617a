//! A model specification bound to a table, with its observations and design, and with predictions for other tables.

use jensen_data::{Cells, Table};
use jensen_latent::prior::{
    Assembled, Basis, Covariate, Fresh, Graph, Index, InducingPoints, Piece, Reader, Replicated,
    Setting, Spec, assemble, named_columns, replicate_covariance, replicate_design,
    replicate_query,
};
use jensen_latent::{
    Dense, Design, LatentModel, Likelihood, Observations, Parameter, Prior, PriorDensity, Query,
    Range, Readout, Response, Sensitivity, SiteBound, Size, Structure,
};

use super::request::{Parsed, read_likelihood};
use super::units::Measure;
use super::view::{Files, View};
use super::{LatentSpec, Learning};
use crate::Error;

/// The measured number of bytes that the process uses before a fit.
const PROCESS: u64 = 32 << 20;

/// The number of bytes that one cell of the table needs for its text and its value, measured for numbers with six
/// digits.
const CELL: u64 = 18;

/// The measured number of square matrices that the fit of a Gaussian process keeps in memory at the same time. The
/// first index is 1 if hyperparameters are learnt, and the second index is 1 if several rows share the same input.
const MATRICES: [[u64; 2]; 2] = [[5, 7], [9, 14]];

/// The measured number of matrices with the shape of the design that a fit with inducing points keeps in memory at the same
/// time. The index is 1 if hyperparameters are learnt.
const DESIGNS: [u64; 2] = [6, 8];

/// The observations in several rows of a table, in the units of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedRows {
    /// The offset of each linear predictor.
    pub offset: Vec<f64>,
    /// The size of each row: its exposure, number of trials, known standard deviation, event, or end of an interval. It is
    /// NaN if the standard deviation, the event or the column of ends is unknown, and 1 if the likelihood has no size.
    pub size: Vec<f64>,
    /// The response of each row, or NaN if it is missing.
    pub response: Vec<f64>,
}

/// A latent Gaussian model that is bound to a table.
pub struct TableModel {
    /// The likelihood in the units of the model.
    likelihood: Likelihood,
    parsed: Parsed,
    bound: SiteBound,
    assembled: Assembled,
    measure: Measure,
    /// The observations in the units of the model.
    observations: Observations,
    /// The observations in the units of the table.
    observed: ObservedRows,
    rows: Vec<usize>,
    /// The words of the response column. The index of a word is its numeric code.
    levels: Option<Vec<String>>,
    response: String,
    request: LatentSpec,
    notes: Vec<String>,
    inputs: Vec<(String, Vec<f64>)>,
    columns: Dense,
    /// The number of cells of the table.
    cells: usize,
}

impl TableModel {
    /// Binds a specification to a table. The fit does not use rows whose response is missing.
    ///
    /// # Errors
    /// Fails if the prior or the likelihood cannot be parsed, or if a column or a file is missing. Also fails if a
    /// required value is missing or outside the domain of the likelihood.
    pub fn new(request: &LatentSpec, table: &Table, files: &dyn Files) -> Result<Self, Error> {
        let spec = Spec::parse(&request.prior).map_err(|e| Error::Input(e.to_string()))?;
        let mut parsed = read_likelihood(&request.likelihood)?;
        request.check_columns(parsed.likelihood)?;
        let last = table.columns().last().map(|c| c.name.clone());
        let response = match request.response.clone().or(last) {
            Some(name) => table.column(&name)?.name.clone(),
            None => {
                return Err(Error::Input(format!(
                    "{}: the table has no columns",
                    table.source()
                )));
            }
        };
        let mut notes = Vec::new();
        if request.response.is_none() {
            notes.push(format!(
                "the response is `{response}`, the last column; --response chooses another one"
            ));
        }
        let (values, levels) = responses(table, &response, &mut parsed, &mut notes)?;
        let mut likelihood = parsed.likelihood;
        let bound = request.bound(likelihood)?;
        if values.is_empty() {
            return Err(Error::Input(format!(
                "{}: the table has no rows",
                table.source()
            )));
        }
        let rows: Vec<usize> = (0..values.len()).filter(|i| !values[*i].is_nan()).collect();
        if rows.len() < values.len() {
            notes.push(format!(
                "{} of {} rows have no response, so the fit does not use them",
                values.len() - rows.len(),
                values.len()
            ));
        }
        if rows.is_empty() {
            return Err(Error::Input(format!(
                "{}: every value of the response `{response}` is missing",
                table.source()
            )));
        }
        let column = |name: &Option<String>| -> Result<Option<Vec<f64>>, Error> {
            name.as_ref()
                .map(|name| observed(table, name, &rows))
                .transpose()
        };
        let repeat = |offset: Vec<f64>| -> Vec<f64> { each(&offset, likelihood.predictors()) };
        let n = rows.len();
        let given = Observations {
            response: rows.iter().map(|i| values[*i]).collect(),
            size: match likelihood.sized_by() {
                Size::Until => Some(ends(table, &parsed, &rows)?),
                _ => column(&sizes(request, &parsed, likelihood).cloned())?,
            },
            offset: column(&request.offset)?.map(repeat),
        };
        check_responses(table, &response, likelihood, &rows, &given)?;
        let measure = Measure::of(&given, likelihood, &spec, !request.unscaled);
        let taken = taken(&response, request, &parsed, &spec);
        let view = View {
            table,
            files,
            taken: &taken,
            copies: likelihood.predictors(),
        };
        let assembled = assemble(&spec, &view, &rows, measure.units)
            .map_err(|e| Error::Input(e.to_string()))?;
        likelihood = parsed.measured(likelihood, measure.scale);
        let observations = measure.inside(&given);
        let observed_rows = ObservedRows {
            offset: (given.offset.clone())
                .unwrap_or_else(|| vec![0.0; n * likelihood.predictors()]),
            size: given.size.clone().unwrap_or_else(|| vec![1.0; n]),
            response: given.response,
        };
        notes.extend(measure.note(&response, &assembled));
        notes.extend(assembled.notes.iter().cloned());
        let columns = assembled.columns(&view, &rows).map_err(Error::Input)?;
        let inputs = inputs(&assembled, table, &rows)?;
        Ok(Self {
            likelihood,
            parsed,
            bound,
            assembled,
            measure,
            observations,
            observed: observed_rows,
            rows,
            levels,
            response,
            request: request.clone(),
            notes,
            inputs,
            columns,
            cells: table.columns().len() * values.len(),
        })
    }

    /// Returns the likelihood with its given or default parameters, in the units of the table.
    pub fn likelihood(&self) -> Likelihood {
        self.likelihood
    }

    /// Returns the bound on the expected log likelihood.
    pub fn bound(&self) -> SiteBound {
        self.bound
    }

    /// Returns the specification from which the model was created.
    pub fn request(&self) -> &LatentSpec {
        &self.request
    }

    /// Returns the name of the response column.
    pub fn response(&self) -> &str {
        &self.response
    }

    /// Returns the words that correspond to the codes 0, 1, … of the response, or `None` if the response is numeric.
    pub fn levels(&self) -> Option<&[String]> {
        self.levels.as_deref()
    }

    /// Returns the parts of the prior with their design.
    pub fn assembled(&self) -> &Assembled {
        &self.assembled
    }

    /// Returns the observations in the fitted rows, in the units of the table.
    pub fn observed(&self) -> &ObservedRows {
        &self.observed
    }

    pub(super) fn measure(&self) -> &Measure {
        &self.measure
    }

    /// Returns the observations in the fitted rows, in the units of the model.
    pub fn observations(&self) -> &Observations {
        &self.observations
    }

    /// Returns the indices of the rows whose response was observed.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Returns the name of the input column and its observed values if the linear predictors depend on a single column,
    /// and `None` otherwise.
    pub fn only_input(&self) -> Option<(&str, &[f64])> {
        let (name, values) = self.inputs.first()?;
        let follows = |piece: &Piece| match &piece.reader {
            _ if !piece.is_plain() || piece.repeats.is_some() => false,
            Reader::Common => true,
            Reader::Inputs(inputs)
            | Reader::Basis(Basis { inputs, .. })
            | Reader::Inducing(InducingPoints { inputs, .. }) => {
                Covariate::only_column(inputs) == Some(name)
            }
            Reader::At(Index::Line { column, .. }) => column == name,
            Reader::At(Index::Times(times)) => times.column == *name,
            _ => false,
        };
        let all = self.assembled.pieces().iter().all(follows);
        (all && self.observations.offset.is_none()).then_some((name, values))
    }

    pub(super) fn columns(&self) -> &Dense {
        &self.columns
    }

    /// Returns the values of a column in the observed rows if the column is an input of a Gaussian process or of a
    /// field, and `None` otherwise.
    pub fn input(&self, column: &str) -> Option<&[f64]> {
        self.inputs
            .iter()
            .find(|(name, _)| name == column)
            .map(|(_, values)| values.as_slice())
    }

    /// Returns the graphs of the parts of the prior, with the names of the parts.
    pub fn graphs(&self) -> &[(String, Graph)] {
        self.assembled.graphs()
    }

    /// Returns the number of latent variables of the Gaussian process, or 0 if the prior is sparse.
    pub fn process_size(&self) -> usize {
        self.assembled.process_size() * self.likelihood.predictors()
    }

    /// Estimates the memory of a fit in bytes, including the process and the table. The estimate covers the model and
    /// the fit at each point of the posterior of the hyperparameters. The estimate also covers the means and variances
    /// of latent variables and predictors, and the data for computing results.
    ///
    /// # Errors
    /// Fails if the prior has no valid structure at its starting values.
    pub fn bytes(&self, learning: &Learning) -> Result<u64, Error> {
        let free = self.start().len() + self.free_likelihood().len();
        let learnt = learning.learn && free > 0;
        let points = match learnt && learning.integrate {
            true => jensen_latent::points(free) as u64,
            false => 1,
        };
        let rows = (self.rows.len() * self.likelihood.predictors()) as u64;
        let each = jensen_latent::coordinates(self.likelihood, self.bound);
        let duals = (self.rows.len() * each) as u64;
        let size = self.process_size() as u64;
        let (model, latents) = match size {
            0 if self.assembled.inducing_points() > 0 => {
                let latents = self.assembled.latents() as u64;
                let designs = DESIGNS[usize::from(learnt)] * rows * latents;
                (8 * (designs + 5 * latents * latents), latents)
            }
            0 => {
                let at = self.model(&self.start(), self.likelihood)?;
                (jensen_latent::footprint(&at)?, at.prior.len() as u64)
            }
            // The matrices have the size of the covariance matrix, which need not be computed to estimate the memory.
            _ => {
                let repeated = !matches!(self.assembled.design(), Design::Identity);
                let matrices = MATRICES[usize::from(learnt)][usize::from(repeated)];
                (8 * matrices * size * size, size)
            }
        };
        let table = CELL * self.cells as u64;
        Ok(PROCESS + table + model + 8 * points * (4 * latents + 4 * rows + 2 * duals))
    }

    /// Returns remarks for the user on how the table was interpreted.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns all hyperparameters, including those with fixed values. The hyperparameters of the prior come first,
    /// followed by the parameters of the likelihood.
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings = self.assembled.settings();
        let likelihood = self.likelihood;
        let names = likelihood.parameters().iter().zip(likelihood.values());
        for (k, (name, value)) in names.enumerate() {
            settings.push(Setting {
                name: format!("likelihood.{name}"),
                value,
                free: self.parsed.free[k],
                range: Range::Positive,
                density: self.parsed.density(k, self.measure.scale),
                unit: likelihood.unit_of(k, self.measure.scale),
            });
        }
        settings
    }

    /// Returns the indices of the free parameters of the likelihood, with the prior of each parameter.
    pub fn free_likelihood(&self) -> Vec<(usize, PriorDensity)> {
        let free = (0..self.parsed.free.len()).filter(|k| self.parsed.free[*k]);
        free.map(|k| (k, self.parsed.density(k, self.measure.scale)))
            .collect()
    }

    /// Converts a likelihood from the units of the model to the units of the table.
    pub fn outside(&self, likelihood: Likelihood) -> Likelihood {
        let values = likelihood.values();
        let each = values.iter().enumerate();
        let values: Vec<f64> = each
            .map(|(k, value)| value * likelihood.unit_of(k, self.measure.scale))
            .collect();
        likelihood.with_values(&values)
    }

    /// Converts a bound, or the log density of all responses, from the units of the model to the units of the table.
    pub fn bound_outside(&self, bound: f64) -> f64 {
        bound - self.rows.len() as f64 * self.measure.scale.ln()
    }

    /// Returns the linear map that converts the latent variables of a fit to the units of the table.
    pub fn readout(&self) -> Readout {
        super::units::readout(&self.assembled, &self.measure, self.likelihood.predictors())
    }

    /// Returns the starting values of the free hyperparameters of the prior.
    pub fn start(&self) -> Vec<f64> {
        Prior::parameters(self).iter().map(|p| p.start).collect()
    }

    /// Returns the model with hyperparameters `theta` of the prior and with the given likelihood.
    ///
    /// # Errors
    /// Fails if `theta` is outside the range of the hyperparameters.
    pub fn model(&self, theta: &[f64], likelihood: Likelihood) -> Result<LatentModel, Error> {
        let rows = replicate_design(&self.assembled.design(), likelihood.predictors());
        Ok(LatentModel {
            prior: self.structure(theta)?,
            design: Prior::design(self, theta, &rows)?,
            likelihood,
            bound: self.bound,
            observations: self.observations.clone(),
        })
    }

    /// Returns the query that computes the posterior at `theta` for some rows of a table. Also returns the effects of
    /// rows and groups that were not part of the fit.
    ///
    /// # Errors
    /// Fails if a column that the prior uses is missing, or if a row is outside the domain of the prior.
    pub fn at(
        &self,
        theta: &[f64],
        table: &Table,
        rows: &[usize],
        files: &dyn Files,
    ) -> Result<(Query, Fresh), Error> {
        let view = View {
            table,
            files,
            taken: &[],
            copies: self.likelihood.predictors(),
        };
        let (query, fresh) = self.assembled.query(theta, &view, rows)?;
        Ok((replicate_query(query, self.likelihood.predictors()), fresh))
    }

    /// Returns the observations in some rows of a table. If the model has no column of exposures or trials, their
    /// values are 1. Known standard deviations may be missing.
    ///
    /// # Errors
    /// Fails if a required cell of one of these rows does not contain a number.
    pub fn rows_of(&self, table: &Table, rows: &[usize]) -> Result<ObservedRows, Error> {
        let column = |name: &Option<String>, default: f64| -> Result<Vec<f64>, Error> {
            match name {
                Some(name) if table.column(name).is_ok() => observed(table, name, rows),
                _ => Ok(vec![default; rows.len()]),
            }
        };
        let offset = column(&self.request.offset, 0.0)?;
        Ok(ObservedRows {
            offset: each(&offset, self.likelihood.predictors()),
            size: match self.likelihood.sized_by() {
                Size::Sd | Size::Event | Size::Until => self.known_sizes(table, rows)?,
                _ => column(
                    &sizes(&self.request, &self.parsed, self.likelihood).cloned(),
                    1.0,
                )?,
            },
            response: self.known_responses(table, rows)?,
        })
    }

    /// Returns the prior covariance matrix of the linear predictors for the rows of a table under a Gaussian process.
    /// Joint draws need this matrix.
    ///
    /// # Errors
    /// Fails under the same conditions as [`at`](Self::at).
    pub fn joint(
        &self,
        theta: &[f64],
        table: &Table,
        rows: &[usize],
        files: &dyn Files,
    ) -> Result<Option<Dense>, Error> {
        let view = View {
            table,
            files,
            taken: &[],
            copies: self.likelihood.predictors(),
        };
        let one = self.assembled.joint(theta, &view, rows)?;
        Ok(one.map(|one| replicate_covariance(&one, self.likelihood.predictors())))
    }

    /// Returns the known standard deviations or events in some rows of a table. They are NaN where they are missing or
    /// impossible, because predictions of the mean do not need them.
    fn known_sizes(&self, table: &Table, rows: &[usize]) -> Result<Vec<f64>, Error> {
        let sized = self.likelihood.sized_by();
        let own = self.parsed.known.as_ref();
        let Some(name) = own.filter(|name| table.column(name).is_ok()) else {
            return Ok(vec![f64::NAN; rows.len()]);
        };
        if sized == Size::Until {
            return ends(table, &self.parsed, rows);
        }
        let all = table.numbers(name)?;
        let known = |i: &usize| match all[*i] {
            size if size.is_finite() && sized.refuses(size).is_none() => size,
            _ => f64::NAN,
        };
        Ok(rows.iter().map(known).collect())
    }

    fn known_responses(&self, table: &Table, rows: &[usize]) -> Result<Vec<f64>, Error> {
        let Ok(column) = table.column(&self.response) else {
            return Ok(vec![f64::NAN; rows.len()]);
        };
        if column.name != self.response {
            return Ok(vec![f64::NAN; rows.len()]);
        }
        match &self.levels {
            None => {
                let all = column.numbers()?;
                Ok(rows.iter().map(|i| all[*i]).collect())
            }
            Some(levels) => {
                let codes = column.codes(levels)?;
                let number = |i: &usize| codes[*i].map_or(f64::NAN, |code| code as f64);
                Ok(rows.iter().map(number).collect())
            }
        }
    }
}

impl Prior for TableModel {
    fn parameters(&self) -> Vec<Parameter> {
        self.assembled.prior().parameters()
    }

    fn structure(&self, theta: &[f64]) -> Result<Structure, jensen_latent::Error> {
        self.copies().structure(theta)
    }

    fn design(&self, theta: &[f64], design: &Design) -> Result<Design, jensen_latent::Error> {
        self.copies().design(theta, design)
    }

    fn gradient(&self, theta: &[f64], at: &Structure, sensitivity: &Sensitivity) -> Vec<f64> {
        self.copies().gradient(theta, at, sensitivity)
    }

    fn thinned(&self, step: usize) -> Option<Box<dyn Prior + '_>> {
        match self.likelihood.predictors() {
            1 => self.assembled.prior().thinned(step),
            _ => None,
        }
    }
}

impl TableModel {
    fn copies(&self) -> Replicated<'_> {
        Replicated {
            prior: self.assembled.prior(),
            times: self.likelihood.predictors(),
        }
    }
}

/// Returns the columns that are the only input of a part, with their values.
fn inputs(
    assembled: &Assembled,
    table: &Table,
    rows: &[usize],
) -> Result<Vec<(String, Vec<f64>)>, Error> {
    let mut inputs = Vec::new();
    for piece in assembled.pieces().iter().filter(|p| p.is_plain()) {
        let column = match &piece.reader {
            Reader::Inputs(inputs)
            | Reader::Basis(Basis { inputs, .. })
            | Reader::Inducing(InducingPoints { inputs, .. }) => {
                match Covariate::only_column(inputs) {
                    Some(column) => column,
                    None => continue,
                }
            }
            Reader::At(Index::Line { column, .. }) => column.as_str(),
            Reader::At(Index::Times(times)) => &times.column,
            _ => continue,
        };
        inputs.push((column.to_owned(), observed(table, column, rows)?));
    }
    Ok(inputs)
}

fn each(list: &[f64], times: usize) -> Vec<f64> {
    let repeated = list.iter().flat_map(|x| std::iter::repeat_n(*x, times));
    repeated.collect()
}

/// Checks that responses are in the domain of the likelihood, and that exposures, trials and standard deviations are
/// positive. The message of an error gives the row.
fn check_responses(
    table: &Table,
    response: &str,
    likelihood: Likelihood,
    rows: &[usize],
    data: &Observations,
) -> Result<(), Error> {
    let sized = likelihood.sized_by();
    for (i, size) in data.size.iter().flatten().enumerate() {
        if let Some(domain) = likelihood.refuses_size(data.response[i], *size) {
            return Err(Error::Input(format!(
                "{}: the {} in row {} is {size}, but must be {domain} ({})",
                table.source(),
                sized.name(),
                rows[i] + 1,
                match sized {
                    Size::Until => "it is empty for a right-censored time",
                    _ => "remove rows without one, or empty their response",
                }
            )));
        }
    }
    for (i, y) in data.response.iter().enumerate() {
        if let Some(domain) = likelihood.refuses(*y, data.size_of(i)) {
            return Err(Error::Input(format!(
                "{}: the response `{response}` is {y} in row {}, but the likelihood `{}` needs {domain}",
                table.source(),
                rows[i] + 1,
                likelihood.name()
            )));
        }
    }
    Ok(())
}

/// Returns the column of the sizes of observations.
fn sizes<'a>(
    request: &'a LatentSpec,
    parsed: &'a Parsed,
    likelihood: Likelihood,
) -> Option<&'a String> {
    match likelihood.sized_by() {
        Size::One => None,
        Size::Exposure => request.exposure.as_ref(),
        Size::Trials => request.trials.as_ref(),
        Size::Sd | Size::Event | Size::Until => parsed.known.as_ref(),
    }
}

/// Returns the ends of intervals. An empty cell means that the interval has no end.
fn ends(table: &Table, parsed: &Parsed, rows: &[usize]) -> Result<Vec<f64>, Error> {
    let Some(name) = &parsed.known else {
        return Ok(vec![f64::INFINITY; rows.len()]);
    };
    let all = table.numbers(name)?;
    let end = |i: &usize| match all[*i] {
        end if end.is_nan() => f64::INFINITY,
        end => end,
    };
    Ok(rows.iter().map(end).collect())
}

fn taken(response: &str, request: &LatentSpec, parsed: &Parsed, spec: &Spec) -> Vec<String> {
    let mut taken = named_columns(spec);
    taken.push(response.to_owned());
    for name in [
        &request.exposure,
        &request.trials,
        &request.offset,
        &parsed.known,
    ] {
        taken.extend(name.iter().cloned());
    }
    taken
}

fn observed(table: &Table, name: &str, rows: &[usize]) -> Result<Vec<f64>, Error> {
    let all = table.numbers(name)?;
    rows.iter()
        .map(|i| match all[*i] {
            x if x.is_finite() => Ok(x),
            _ => Err(Error::Input(format!(
                "{}: the column `{name}` has no finite number in row {}",
                table.source(),
                i + 1
            ))),
        })
        .collect()
}

/// Returns the responses as numbers. Missing values become NaN. If the likelihood has categories or levels, words become
/// codes, and the function sets their number.
fn responses(
    table: &Table,
    name: &str,
    parsed: &mut Parsed,
    notes: &mut Vec<String>,
) -> Result<(Vec<f64>, Option<Vec<String>>), Error> {
    let column = table.column(name)?;
    let likelihood = parsed.likelihood;
    let wanted = match likelihood.response() {
        Response::Binary => Some(2),
        Response::Category | Response::Level => None,
        _ => return Ok((column.numbers()?.to_vec(), None)),
    };
    if let (Cells::Numbers(numbers), Some(_)) = (&column.cells, wanted) {
        // The labels −1 and 1 are converted to codes in the same way as two words.
        let signs = numbers.iter().all(|x| x.is_nan() || x.abs() == 1.0);
        if !(signs && numbers.contains(&-1.0)) {
            return Ok((numbers.clone(), None));
        }
    }
    let found = column.levels();
    if wanted.is_some_and(|n| n != found.len()) || found.len() < 2 {
        return Err(Error::Input(format!(
            "{}: the response `{name}` has {} distinct values, but the likelihood `{}` needs {}",
            table.source(),
            found.len(),
            likelihood.name(),
            wanted.map_or("2 or more".to_owned(), |n| n.to_string())
        )));
    }
    let levels = match likelihood.most_levels() {
        Some(most) => ordered(table, name, parsed, found, most)?,
        None => found,
    };
    notes.push(meaning(name, &levels, likelihood));
    match likelihood.response() {
        Response::Level => parsed.set_levels(levels.len())?,
        _ => parsed.likelihood = likelihood.with_categories(levels.len()),
    }
    let codes = column.codes(&levels)?;
    let numbers = codes.iter().map(|code| code.map_or(f64::NAN, |c| c as f64));
    Ok((numbers.collect(), Some(levels)))
}

/// Returns the levels of a response from the lowest to the highest: the given levels, or the numbers in the column.
fn ordered(
    table: &Table,
    name: &str,
    parsed: &Parsed,
    found: Vec<String>,
    most: usize,
) -> Result<Vec<String>, Error> {
    let fail = |message: String| {
        Err(Error::Input(format!(
            "{}: the response `{name}` {message}",
            table.source()
        )))
    };
    if let Some(levels) = &parsed.levels {
        return Ok(levels.clone());
    }
    if matches!(table.column(name)?.cells, Cells::Words(_)) {
        return fail(format!(
            "has words, whose order is unknown; list them from the lowest to the highest, as in \
             `{}(levels=(low, middle, high))`",
            parsed.likelihood.name()
        ));
    }
    if found.len() > most {
        return fail(format!(
            "has {} distinct values, but the likelihood `{}` has at most {most} levels; merge some of them",
            found.len(),
            parsed.likelihood.name()
        ));
    }
    Ok(found)
}

/// Describes how the words of a response are interpreted.
fn meaning(name: &str, levels: &[String], likelihood: Likelihood) -> String {
    const SHOWN: usize = 12;
    let shown: Vec<String> = (levels.iter().take(SHOWN))
        .map(|level| format!("`{level}`"))
        .collect();
    match likelihood.response() {
        Response::Category => format!(
            "`{name}` has the {} categories {}{} that occur in the table; the last is the reference",
            levels.len(),
            shown.join(", "),
            if levels.len() > SHOWN { ", …" } else { "" }
        ),
        Response::Level => format!(
            "`{name}` has the {} levels {}, from the lowest to the highest",
            levels.len(),
            shown.join(", ")
        ),
        _ => format!(
            "`{}` of `{name}` counts as 1, `{}` as 0",
            levels[1], levels[0]
        ),
    }
}
