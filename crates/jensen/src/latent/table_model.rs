//! A request on a table: which rows are observed, what they read of the latent variables, and predictions for other tables.

use std::borrow::Cow;

use jensen_data::{Adjacency, Cells, Symmetric, Table};
use jensen_latent::prior::{
    Assembled, Fresh, Graph, Index, Inputs, Reader, Replicated, Setting, Source, Spec, assemble,
    named_columns, replicate_covariance, replicate_design, replicate_query,
};
use jensen_latent::{
    Dense, LatentModel, Likelihood, Observations, Parameter, Prior, Query, Range, Response,
    Sensitivity, SiteBound, Sparse, Structure,
};

use super::Request;
use super::request::parse_likelihood;
use crate::Error;

/// Files that a prior names: read by the caller, who knows where they are.
pub trait Files {
    /// A graph of regions.
    ///
    /// # Errors
    /// A message for the user.
    fn graph(&self, file: &str) -> Result<Adjacency, String>;

    /// A sparse symmetric matrix.
    ///
    /// # Errors
    /// A message for the user.
    fn symmetric(&self, file: &str) -> Result<Symmetric, String>;

    /// A table, for masks.
    ///
    /// # Errors
    /// A message for the user.
    fn table(&self, file: &str) -> Result<Table, String>;
}

/// A table as a specification sees it.
struct View<'a> {
    table: &'a Table,
    files: &'a dyn Files,
    /// Columns that are no inputs.
    taken: &'a [String],
}

impl Source for View<'_> {
    fn rows(&self) -> usize {
        self.table.rows()
    }

    fn numbers(&self, column: &str) -> Result<Cow<'_, [f64]>, String> {
        self.table
            .numbers(column)
            .map(Cow::Borrowed)
            .map_err(|e| e.to_string())
    }

    fn words(&self, column: &str) -> Result<Vec<Option<String>>, String> {
        let column = self.table.column(column).map_err(|e| e.to_string())?;
        Ok(match &column.cells {
            Cells::Words(words) => words.clone(),
            Cells::Numbers(numbers) => numbers
                .iter()
                .map(|x| (!x.is_nan()).then(|| x.to_string()))
                .collect(),
        })
    }

    fn holds_words(&self, column: &str) -> Result<bool, String> {
        let column = self.table.column(column).map_err(|e| e.to_string())?;
        Ok(matches!(column.cells, Cells::Words(_)))
    }

    fn inputs(&self) -> Inputs {
        let mut inputs = Inputs::default();
        let free = self.table.columns().iter();
        for column in free.filter(|c| !self.taken.contains(&c.name)) {
            let list = match column.cells {
                Cells::Numbers(_) => &mut inputs.columns,
                Cells::Words(_) => &mut inputs.words,
            };
            list.push(column.name.clone());
        }
        inputs
    }

    fn graph(&self, file: &str) -> Result<Graph, String> {
        let adjacency = self.files.graph(file)?;
        Graph::new(adjacency.neighbours().to_vec()).map_err(|e| e.to_string())
    }

    fn matrix(&self, file: &str) -> Result<Dense, String> {
        let table = self.files.table(file)?;
        let (rows, columns) = (table.rows(), table.columns().len());
        if rows != columns {
            return Err(format!(
                "`{file}` has {rows} rows and {columns} columns; a covariance matrix is square"
            ));
        }
        let mut data = Vec::with_capacity(rows * rows);
        for (j, column) in table.columns().iter().enumerate() {
            let numbers = column.numbers().map_err(|e| e.to_string())?;
            if let Some(i) = numbers.iter().position(|x| !x.is_finite()) {
                return Err(format!(
                    "`{file}` has {} in row {}, column {}; a covariance matrix has finite numbers alone",
                    numbers[i],
                    i + 1,
                    j + 1
                ));
            }
            data.extend(numbers);
        }
        Ok(Dense {
            rows,
            cols: rows,
            data,
        })
    }

    fn sparse(&self, file: &str) -> Result<Sparse, String> {
        let Symmetric { size, entries } = self.files.symmetric(file)?;
        Sparse::from_triplets(size, size, &entries).map_err(|e| e.to_string())
    }

    fn mask(&self, file: &str, rows: usize, columns: usize) -> Result<Vec<bool>, String> {
        let table = self.files.table(file)?;
        if (table.rows(), table.columns().len()) != (rows, columns) {
            return Err(format!(
                "the mask `{file}` has {} rows and {} columns, the grid {rows} and {columns}",
                table.rows(),
                table.columns().len()
            ));
        }
        let mut cells = vec![false; rows * columns];
        for (j, column) in table.columns().iter().enumerate() {
            let numbers = column.numbers().map_err(|e| e.to_string())?;
            for (i, x) in numbers.iter().enumerate() {
                cells[i * columns + j] = *x != 0.0 && !x.is_nan();
            }
        }
        Ok(cells)
    }
}

/// Rows of a table where linear predictors and observations are predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Where the posterior is to be read.
    pub query: Query,
    /// Effects of rows and groups unknown so far; each linear predictor of a row has its own.
    pub fresh: Fresh,
    /// Offset of each linear predictor.
    pub offset: Vec<f64>,
    /// Exposure of each row, 1 where the model has none.
    pub exposure: Vec<f64>,
    /// Number of trials of each row, 1 where the model has none.
    pub trials: Vec<f64>,
    /// Responses where the table has them, NaN where not.
    pub response: Vec<f64>,
}

/// A latent Gaussian model of a table.
pub struct TableModel {
    likelihood: Likelihood,
    free: Vec<bool>,
    bound: SiteBound,
    assembled: Assembled,
    observations: Observations,
    /// The observed rows of the table.
    rows: Vec<usize>,
    /// Words of the response, in the order of their codes.
    levels: Option<Vec<String>>,
    response: String,
    request: Request,
    notes: Vec<String>,
    /// Inputs of Gaussian processes and fields on a single column.
    inputs: Vec<(String, Vec<f64>)>,
}

impl TableModel {
    /// Reads the request and ties it to a table.
    ///
    /// # Errors
    /// The prior or the likelihood cannot be read, columns or files are missing, values are missing or outside the likelihood's
    /// domain. Rows without a response are left out of the fit.
    pub fn new(request: &Request, table: &Table, files: &dyn Files) -> Result<Self, Error> {
        let spec = Spec::parse(&request.prior).map_err(|e| Error::Input(e.to_string()))?;
        let (mut likelihood, free) = parse_likelihood(&request.likelihood)?;
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
        let (values, levels) = responses(table, &response, &mut likelihood, &mut notes)?;
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
                "{} of {} rows have no response and are not fitted",
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
        let repeat = |offset: Vec<f64>| -> Vec<f64> {
            let times = likelihood.predictors();
            offset
                .iter()
                .flat_map(|x| std::iter::repeat_n(*x, times))
                .collect()
        };
        let observations = Observations {
            response: rows.iter().map(|i| values[*i]).collect(),
            exposure: column(&request.exposure)?,
            trials: column(&request.trials)?,
            offset: column(&request.offset)?.map(repeat),
        };
        let taken = taken(&response, request, &spec);
        let view = View {
            table,
            files,
            taken: &taken,
        };
        let assembled = assemble(&spec, &view, &rows).map_err(|e| Error::Input(e.to_string()))?;
        check_responses(table, &response, likelihood, &rows, &observations)?;
        notes.extend(assembled.notes.iter().cloned());
        let mut inputs = Vec::new();
        for piece in assembled.pieces() {
            let column = match &piece.reader {
                Reader::Inputs(columns) if columns.len() == 1 => &columns[0],
                Reader::At(Index::Line { column, .. }) => column,
                _ => continue,
            };
            inputs.push((column.clone(), observed(table, column, &rows)?));
        }
        Ok(Self {
            likelihood,
            free,
            bound,
            assembled,
            observations,
            rows,
            levels,
            response,
            request: request.clone(),
            notes,
            inputs,
        })
    }

    /// The likelihood at its given or starting parameters.
    pub fn likelihood(&self) -> Likelihood {
        self.likelihood
    }

    /// The bound.
    pub fn bound(&self) -> SiteBound {
        self.bound
    }

    /// The request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The name of the response.
    pub fn response(&self) -> &str {
        &self.response
    }

    /// The words that stand for the codes 0, 1, … of the response, where it holds words.
    pub fn levels(&self) -> Option<&[String]> {
        self.levels.as_deref()
    }

    /// The prior's parts.
    pub fn assembled(&self) -> &Assembled {
        &self.assembled
    }

    /// The data.
    pub fn observations(&self) -> &Observations {
        &self.observations
    }

    /// The rows of the table that were observed.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The only input, where linear predictors are functions of one column: its name and its values in the observed rows.
    pub fn only_input(&self) -> Option<(&str, &[f64])> {
        let (name, values) = self.inputs.first()?;
        let follows = |reader: &Reader| match reader {
            Reader::Common => true,
            Reader::Inputs(columns) => columns == std::slice::from_ref(name),
            Reader::At(Index::Line { column, .. }) => column == name,
            _ => false,
        };
        let all = self.assembled.pieces().iter().all(|p| follows(&p.reader));
        (all && self.observations.offset.is_none()).then_some((name, values))
    }

    /// The values of an input of a Gaussian process or a field in the observed rows.
    pub fn input(&self, column: &str) -> Option<&[f64]> {
        self.inputs
            .iter()
            .find(|(name, _)| name == column)
            .map(|(_, values)| values.as_slice())
    }

    /// Graphs of the parts that have one, by the part's name.
    pub fn graphs(&self) -> &[(String, Graph)] {
        self.assembled.graphs()
    }

    /// Bytes that the covariances of a Gaussian process take while it is fitted, roughly; 0 for sparse priors.
    pub fn dense_bytes(&self) -> u64 {
        // Σ, the factor, its inverse and two work matrices.
        let n = self.assembled.process_size() as u64 * self.likelihood.predictors() as u64;
        n * n * 8 * 5
    }

    /// Remarks for the user.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// All hyperparameters, the prior's first, then the likelihood's; those that are fixed included.
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings = self.assembled.settings();
        let names = self.likelihood.parameters().iter();
        for ((name, value), free) in names.zip(self.likelihood.values()).zip(&self.free) {
            settings.push(Setting {
                name: format!("likelihood.{name}"),
                value,
                free: *free,
                range: Range::Positive,
            });
        }
        settings
    }

    /// Which of the likelihood's parameters are free.
    pub fn free_likelihood(&self) -> &[bool] {
        &self.free
    }

    /// Where the prior's free hyperparameters start.
    pub fn start(&self) -> Vec<f64> {
        Prior::parameters(self).iter().map(|p| p.start).collect()
    }

    /// The model at hyperparameters θ of the prior and a likelihood.
    ///
    /// # Errors
    /// θ is out of its range.
    pub fn model(&self, theta: &[f64], likelihood: Likelihood) -> Result<LatentModel, Error> {
        Ok(LatentModel {
            prior: self.structure(theta)?,
            design: replicate_design(&self.assembled.design(), likelihood.predictors()),
            likelihood,
            bound: self.bound,
            observations: self.observations.clone(),
        })
    }

    /// What is needed to predict some rows of a table; exposures and trials that the table does not have count as 1.
    ///
    /// # Errors
    /// A column of the prior is missing, or a row lies outside of it.
    pub fn at(
        &self,
        theta: &[f64],
        table: &Table,
        rows: &[usize],
        files: &dyn Files,
    ) -> Result<Prediction, Error> {
        let view = View {
            table,
            files,
            taken: &[],
        };
        let times = self.likelihood.predictors();
        let (query, fresh) = self.assembled.query(theta, &view, rows)?;
        let column = |name: &Option<String>, default: f64| -> Result<Vec<f64>, Error> {
            match name {
                Some(name) if table.column(name).is_ok() => observed(table, name, rows),
                _ => Ok(vec![default; rows.len()]),
            }
        };
        let offset = column(&self.request.offset, 0.0)?;
        let each = |list: Vec<f64>| -> Vec<f64> {
            list.iter()
                .flat_map(|x| std::iter::repeat_n(*x, times))
                .collect()
        };
        Ok(Prediction {
            query: replicate_query(query, times),
            fresh,
            offset: each(offset),
            exposure: column(&self.request.exposure, 1.0)?,
            trials: column(&self.request.trials, 1.0)?,
            response: self.known_responses(table, rows)?,
        })
    }

    /// The prior covariance of the linear predictors of rows of a table with each other, where joint draws need it: under a
    /// Gaussian process.
    ///
    /// # Errors
    /// As for [`at`](Self::at).
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
        };
        let one = self.assembled.joint(theta, &view, rows)?;
        Ok(one.map(|one| replicate_covariance(&one, self.likelihood.predictors())))
    }

    /// The responses of rows of another table, NaN where there are none.
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

    fn gradient(&self, theta: &[f64], at: &Structure, sensitivity: &Sensitivity) -> Vec<f64> {
        self.copies().gradient(theta, at, sensitivity)
    }
}

impl TableModel {
    /// The prior of all linear predictors of an observation.
    fn copies(&self) -> Replicated<'_> {
        Replicated {
            prior: self.assembled.prior(),
            times: self.likelihood.predictors(),
        }
    }
}

/// Points at the row of a response outside the likelihood's domain, and of exposures and trials that are not positive.
fn check_responses(
    table: &Table,
    response: &str,
    likelihood: Likelihood,
    rows: &[usize],
    data: &Observations,
) -> Result<(), Error> {
    for (what, column) in [
        ("exposure", &data.exposure),
        ("number of trials", &data.trials),
    ] {
        let bad = column.iter().flatten().position(|x| *x <= 0.0);
        if let (Some(i), Some(column)) = (bad, column) {
            return Err(Error::Input(format!(
                "{}: the {what} in row {} is {}; it must be positive (leave out rows without one, or empty their response)",
                table.source(),
                rows[i] + 1,
                column[i]
            )));
        }
    }
    for (i, y) in data.response.iter().enumerate() {
        let trials = data.trials.as_ref().map_or(1.0, |t| t[i]);
        if let Some(domain) = likelihood.refuses(*y, trials) {
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

/// Columns with a part of their own.
fn taken(response: &str, request: &Request, spec: &Spec) -> Vec<String> {
    let mut taken = named_columns(spec);
    taken.push(response.to_owned());
    for name in [&request.exposure, &request.trials, &request.offset] {
        taken.extend(name.iter().cloned());
    }
    taken
}

/// A column in some rows, none missing.
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

/// The response as numbers, NaN where missing; words become codes where the likelihood has categories.
fn responses(
    table: &Table,
    name: &str,
    likelihood: &mut Likelihood,
    notes: &mut Vec<String>,
) -> Result<(Vec<f64>, Option<Vec<String>>), Error> {
    let column = table.column(name)?;
    let wanted = match likelihood.response() {
        Response::Binary => Some(2),
        Response::Category => None,
        _ => return Ok((column.numbers()?.to_vec(), None)),
    };
    if let (Cells::Numbers(numbers), Some(_)) = (&column.cells, wanted) {
        // Labels −1 and 1 are told apart like two words.
        let signs = numbers.iter().all(|x| x.is_nan() || x.abs() == 1.0);
        if !(signs && numbers.contains(&-1.0)) {
            return Ok((numbers.clone(), None));
        }
    }
    let levels = column.levels();
    if wanted.is_some_and(|n| n != levels.len()) || levels.len() < 2 {
        return Err(Error::Input(format!(
            "{}: the response `{name}` has {} distinct values, the likelihood `{}` needs {}",
            table.source(),
            levels.len(),
            likelihood.name(),
            wanted.map_or("2 or more".to_owned(), |n| n.to_string())
        )));
    }
    if likelihood.categories().is_some() {
        *likelihood = likelihood.with_categories(levels.len());
        let shown: Vec<String> = (levels.iter().take(12))
            .map(|level| format!("`{level}`"))
            .collect();
        notes.push(format!(
            "`{name}` has the {} categories {}{}, those that some row has; the last is the reference",
            levels.len(),
            shown.join(", "),
            if levels.len() > shown.len() { ", …" } else { "" }
        ));
    } else {
        notes.push(format!(
            "`{}` of `{name}` counts as 1, `{}` as 0",
            levels[1], levels[0]
        ));
    }
    let codes = column.codes(&levels)?;
    let numbers = codes.iter().map(|code| code.map_or(f64::NAN, |c| c as f64));
    Ok((numbers.collect(), Some(levels)))
}
