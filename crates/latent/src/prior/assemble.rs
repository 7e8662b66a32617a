//! From a specification and a table to a prior and a design, and to queries at other tables.
//!
//! With a Gaussian process among the terms, all of them become covariance functions of one process whose latent variables are
//! the distinct rows. Without one, latent variables of fields, groups and covariates stand side by side and the design
//! picks from them.

use std::collections::BTreeMap;

use super::field::Field;
use super::gp::{Factor, GaussianProcess};
use super::graph::{Graph, Lattice};
use super::kernel::Shape;
use super::place::{Covariate, Index, Source, complete, complete_words, matrix};
use super::setting::Setting;
use super::spec::{Call, Spec, SpecError};
use super::stack::{Part, Stack};
use super::terms::Known;
use crate::{Dense, Design, Error, Prior, Query, Sparse};

/// How a part's latent variables are read from a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Reader {
    /// Each row has one of its own, new rows new ones.
    Own,
    /// By a node.
    At(Index),
    /// Weighted by covariates.
    Covariates(Vec<Covariate>),
    /// All rows share one.
    Common,
    /// By coordinates.
    Inputs(Vec<String>),
}

/// A part of the prior as reports see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// `icar`, `fixed`, ….
    pub name: String,
    /// How rows read it.
    pub reader: Reader,
    /// Its latent variables; empty where it is a term of a process.
    pub latents: std::ops::Range<usize>,
}

enum Kind {
    Process {
        process: GaussianProcess,
        /// The latent variable of each row used.
        latent: Vec<usize>,
    },
    Stack {
        stack: Stack,
        design: Design,
    },
}

/// A prior read from text, tied to the table it was made on.
pub struct Assembled {
    kind: Kind,
    pieces: Vec<Piece>,
    graphs: Vec<(String, Graph)>,
    /// Remedies that were applied and other things the user should know.
    pub notes: Vec<String>,
}

/// One call while the prior is put together.
struct Building {
    piece: Piece,
    body: Body,
}

enum Body {
    Kernel {
        shape: Shape,
        variance: Setting,
        lengthscales: Vec<Setting>,
    },
    Field(Field),
    Independent(Setting),
}

/// Makes the prior and the design for some rows of a table.
///
/// # Errors
/// A word is unknown, a column or file is missing or unfit, terms do not go together; the error points into the text.
pub fn assemble(spec: &Spec, source: &dyn Source, rows: &[usize]) -> Result<Assembled, SpecError> {
    let mut notes = Vec::new();
    let mut graphs = Vec::new();
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut terms = Vec::with_capacity(spec.terms.len());
    let process = spec.terms.iter().flatten().any(|c| c.name.text == "gp");
    for calls in &spec.terms {
        let mut factors = Vec::with_capacity(calls.len());
        for (i, call) in calls.iter().enumerate() {
            let known = Known::new(&spec.text, call)?;
            let name = known.term.name;
            if calls.len() > 1 && name != "gp" {
                return Err(known.error(&call.name.span, "only `gp(…)` can be multiplied"));
            }
            let count = names.entry(name.to_owned()).or_insert(0);
            *count += 1;
            let label = match count {
                1 => name.to_owned(),
                n => format!("{name}{n}"),
            };
            let build = Builder {
                known: &known,
                label,
                source,
                rows,
                process,
                later_factor: i > 0,
            };
            factors.push(build.call(&mut notes, &mut graphs)?);
        }
        terms.push(factors);
    }
    let whole = |error: Error| SpecError::new(&spec.text, 0..spec.text.len(), error.to_string());
    let at_source = |message: String| SpecError::new(&spec.text, 0..spec.text.len(), message);
    let (kind, pieces) = if process {
        make_process(terms, source, rows, &mut notes, &at_source, &whole)?
    } else {
        make_stack(terms, source, rows, &at_source, &whole)?
    };
    Ok(Assembled {
        kind,
        pieces,
        graphs,
        notes,
    })
}

fn make_process(
    terms: Vec<Vec<Building>>,
    source: &dyn Source,
    rows: &[usize],
    notes: &mut Vec<String>,
    at_source: &dyn Fn(String) -> SpecError,
    whole: &dyn Fn(Error) -> SpecError,
) -> Result<(Kind, Vec<Piece>), SpecError> {
    let mut points = Vec::new();
    for building in terms.iter().flatten() {
        points.push(coordinates(&building.piece.reader, source, rows, Some(0)).map_err(at_source)?);
    }
    // Rows that no term tells apart share a latent variable.
    let mut known: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
    let mut first = Vec::new();
    let mut latent = Vec::with_capacity(rows.len());
    for row in 0..rows.len() {
        let key: Vec<u64> = points
            .iter()
            .flat_map(|p| (0..p.cols).map(move |d| (p.get(row, d) + 0.0).to_bits()))
            .collect();
        let next = first.len();
        let at = *known.entry(key).or_insert(next);
        if at == next {
            first.push(row);
        }
        latent.push(at);
    }
    if first.len() < rows.len() {
        notes.push(format!(
            "{} of {} rows repeat the inputs of another row and share its latent variable",
            rows.len() - first.len(),
            rows.len()
        ));
    }
    let mut pieces = Vec::new();
    let mut points = points.into_iter();
    let mut sums = Vec::with_capacity(terms.len());
    for term in terms {
        let mut factors = Vec::with_capacity(term.len());
        for (building, all) in term.into_iter().zip(points.by_ref()) {
            pieces.push(building.piece);
            let points = Dense::from_fn(first.len(), all.cols, |i, d| all.get(first[i], d));
            if let Body::Kernel {
                shape,
                variance,
                lengthscales,
            } = building.body
            {
                factors.push(Factor {
                    shape,
                    variance,
                    lengthscales,
                    points,
                });
            }
        }
        sums.push(factors);
    }
    let process = GaussianProcess::new(sums).map_err(whole)?;
    Ok((Kind::Process { process, latent }, pieces))
}

fn make_stack(
    terms: Vec<Vec<Building>>,
    source: &dyn Source,
    rows: &[usize],
    at_source: &dyn Fn(String) -> SpecError,
    whole: &dyn Fn(Error) -> SpecError,
) -> Result<(Kind, Vec<Piece>), SpecError> {
    let (mut parts, mut pieces, mut at) = (Vec::new(), Vec::new(), 0);
    for mut building in terms.into_iter().flatten() {
        let part = match building.body {
            Body::Field(field) => Part::Field(field),
            Body::Independent(variance) => Part::Independent {
                count: count(&building.piece.reader, rows.len()),
                variance,
            },
            Body::Kernel { .. } => unreachable!("kernels make a process"),
        };
        building.piece.latents = at..at + part.len();
        at += part.len();
        parts.push(part);
        pieces.push(building.piece);
    }
    let (design, _) = design(&pieces, source, rows, at, true).map_err(at_source)?;
    let stack = Stack::new(parts).map_err(whole)?;
    Ok((Kind::Stack { stack, design }, pieces))
}

/// Number of independent variables that a reader reads.
fn count(reader: &Reader, rows: usize) -> usize {
    match reader {
        Reader::Own => rows,
        Reader::At(index) => index.nodes(),
        Reader::Covariates(list) => list.len(),
        Reader::Common => 1,
        Reader::Inputs(columns) => columns.len(),
    }
}

/// Coordinates of rows for a covariance function. `own`: the number of the first row's own variable; new rows get numbers that
/// no old row has.
fn coordinates(
    reader: &Reader,
    source: &dyn Source,
    rows: &[usize],
    own: Option<usize>,
) -> Result<Dense, String> {
    let column = |data: Vec<f64>| Dense {
        rows: rows.len(),
        cols: 1,
        data,
    };
    Ok(match reader {
        Reader::Own => {
            let number = |i: usize| match own {
                Some(first) => (first + i) as f64,
                None => -1.0 - i as f64,
            };
            column((0..rows.len()).map(number).collect())
        }
        Reader::At(index) => {
            let found = index.find(source, rows)?;
            let code =
                |(i, node): (usize, &Option<usize>)| node.map_or(-1.0 - i as f64, |n| n as f64);
            column(found.iter().enumerate().map(code).collect())
        }
        Reader::Covariates(list) => matrix(list, source, rows)?,
        Reader::Common => column(vec![0.0; rows.len()]),
        Reader::Inputs(columns) => {
            let mut data = Vec::with_capacity(columns.len() * rows.len());
            for name in columns {
                data.extend(complete(source, name, rows)?);
            }
            Dense {
                rows: rows.len(),
                cols: columns.len(),
                data,
            }
        }
    })
}

/// The design of rows over the pieces' latent variables; for each row the pieces (by number) whose variable is a new one.
fn design(
    pieces: &[Piece],
    source: &dyn Source,
    rows: &[usize],
    latents: usize,
    old: bool,
) -> Result<(Design, Vec<Vec<usize>>), String> {
    enum Columns {
        Index(Vec<Option<usize>>),
        Values(Dense),
    }
    let n = rows.len();
    let mut fresh = vec![Vec::new(); n];
    let mut blocks = Vec::with_capacity(pieces.len());
    for (number, piece) in pieces.iter().enumerate() {
        let columns = match &piece.reader {
            Reader::Own if old => Columns::Index((0..n).map(Some).collect()),
            Reader::Own => Columns::Index(vec![None; n]),
            Reader::At(index) => Columns::Index(index.find(source, rows)?),
            Reader::Covariates(list) => Columns::Values(matrix(list, source, rows)?),
            Reader::Common => Columns::Index(vec![Some(0); n]),
            Reader::Inputs(_) => unreachable!("inputs belong to processes"),
        };
        if let Columns::Index(list) = &columns {
            for (row, _) in list.iter().enumerate().filter(|(_, at)| at.is_none()) {
                fresh[row].push(number);
            }
        }
        blocks.push(columns);
    }
    if let [Columns::Index(list)] = blocks.as_slice()
        && let Some(select) = list.iter().copied().collect::<Option<Vec<usize>>>()
    {
        let identity = select.len() == latents && select.iter().enumerate().all(|(i, l)| i == *l);
        let design = if identity {
            Design::Identity
        } else {
            Design::Select(select)
        };
        return Ok((design, fresh));
    }
    let plain = (pieces.iter()).all(|p| matches!(p.reader, Reader::Covariates(_) | Reader::Common));
    if plain {
        let mut data = Vec::with_capacity(n * latents);
        for block in blocks {
            match block {
                Columns::Values(values) => data.extend(values.data),
                Columns::Index(_) => data.extend(std::iter::repeat_n(1.0, n)),
            }
        }
        let dense = Dense {
            rows: n,
            cols: latents,
            data,
        };
        return Ok((Design::Dense(dense), fresh));
    }
    let mut sparse = Sparse {
        rows: n,
        cols: latents,
        col_start: vec![0],
        row: Vec::new(),
        value: Vec::new(),
    };
    for (block, piece) in blocks.into_iter().zip(pieces) {
        match block {
            Columns::Values(values) => {
                for j in 0..values.cols {
                    for (i, x) in values.col(j).iter().enumerate().filter(|(_, x)| **x != 0.0) {
                        sparse.row.push(i);
                        sparse.value.push(*x);
                    }
                    sparse.col_start.push(sparse.row.len());
                }
            }
            Columns::Index(list) => {
                let mut rows_of = vec![Vec::new(); piece.latents.len()];
                for (i, node) in list.iter().enumerate() {
                    if let Some(node) = node {
                        rows_of[*node].push(i);
                    }
                }
                for rows in rows_of {
                    sparse.value.extend(std::iter::repeat_n(1.0, rows.len()));
                    sparse.row.extend(rows);
                    sparse.col_start.push(sparse.row.len());
                }
            }
        }
    }
    Ok((Design::Sparse(sparse), fresh))
}

impl Assembled {
    /// The prior.
    pub fn prior(&self) -> &dyn Prior {
        match &self.kind {
            Kind::Process { process, .. } => process,
            Kind::Stack { stack, .. } => stack,
        }
    }

    /// All hyperparameters, those that are fixed included.
    pub fn settings(&self) -> Vec<Setting> {
        match &self.kind {
            Kind::Process { process, .. } => process.settings().to_vec(),
            Kind::Stack { stack, .. } => stack.settings(),
        }
    }

    /// Graphs of the parts that have one, by the part's name.
    pub fn graphs(&self) -> &[(String, Graph)] {
        &self.graphs
    }

    /// Latent variables of a Gaussian process; 0 where the prior is sparse.
    pub fn process_size(&self) -> usize {
        match &self.kind {
            Kind::Process { latent, .. } => latent.iter().max().map_or(0, |l| l + 1),
            Kind::Stack { .. } => 0,
        }
    }

    /// The parts, in the order of the text.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// How the rows read the latent variables.
    pub fn design(&self) -> Design {
        match &self.kind {
            Kind::Process { latent, .. } => {
                if latent.iter().enumerate().all(|(i, l)| i == *l) {
                    Design::Identity
                } else {
                    Design::Select(latent.clone())
                }
            }
            Kind::Stack { design, .. } => design.clone(),
        }
    }

    /// Where to predict for rows of another table, and the variance that effects of rows and groups unknown so far add to each.
    ///
    /// # Errors
    /// A column is missing or a row lies outside the prior.
    pub fn query(
        &self,
        theta: &[f64],
        source: &dyn Source,
        rows: &[usize],
    ) -> Result<(Query, Vec<f64>), Error> {
        match &self.kind {
            Kind::Process { process, .. } => {
                let points = self
                    .pieces
                    .iter()
                    .map(|piece| coordinates(&piece.reader, source, rows, None))
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(Error::Data)?;
                Ok((process.query(theta, &points)?, vec![0.0; rows.len()]))
            }
            Kind::Stack { stack, .. } => {
                let latents = self.pieces.last().map_or(0, |p| p.latents.end);
                let (design, fresh) =
                    design(&self.pieces, source, rows, latents, false).map_err(Error::Data)?;
                let variances = (0..self.pieces.len())
                    .map(|part| stack.variance(part, theta))
                    .collect::<Result<Vec<_>, _>>()?;
                let extra = (fresh.iter())
                    .map(|parts| parts.iter().map(|part| variances[*part]).sum())
                    .collect();
                Ok((Query::Rows(design), extra))
            }
        }
    }
}

/// Reads one call.
struct Builder<'a, 's> {
    known: &'a Known<'s>,
    label: String,
    source: &'a dyn Source,
    rows: &'a [usize],
    /// Whether the sum is a Gaussian process.
    process: bool,
    later_factor: bool,
}

impl Builder<'_, '_> {
    fn call(
        &self,
        notes: &mut Vec<String>,
        graphs: &mut Vec<(String, Graph)>,
    ) -> Result<Building, SpecError> {
        let known = self.known;
        let (reader, body) = match known.term.name {
            "gp" => self.gp()?,
            "iid" => {
                known.at_most(0)?;
                let reader = match known.one("on")? {
                    None => Reader::Own,
                    Some(word) => {
                        let text = word.text.as_str();
                        let mut levels = complete_words(self.source, text, self.rows)
                            .map_err(|m| known.error(&word.span, m))?;
                        levels.sort();
                        levels.dedup();
                        let column = word.text.clone();
                        Reader::At(Index::Groups { column, levels })
                    }
                };
                (reader, self.independent(Shape::Same)?)
            }
            "fixed" => {
                let words = known.words();
                if words.is_empty() {
                    return Err(known.misused("`fixed` needs columns"));
                }
                let mut list = Vec::new();
                for word in words {
                    let covariates = Covariate::of(self.source, &word.text, self.rows)
                        .and_then(|list| {
                            // Missing values are told here, where the column is named.
                            matrix(&list, self.source, self.rows)?;
                            Ok(list)
                        })
                        .map_err(|m| known.error(&word.span, m))?;
                    list.extend(covariates);
                }
                (Reader::Covariates(list), self.independent(Shape::Linear)?)
            }
            "intercept" => {
                known.at_most(0)?;
                (Reader::Common, self.independent(Shape::Constant)?)
            }
            name => {
                if self.process {
                    return Err(known.error(
                        &known.call.name.span,
                        format!(
                            "`{name}` and `gp` cannot stand in one sum; use `gp(matern32, on=…)` or another covariance for this part"
                        ),
                    ));
                }
                let (index, field) = self.field(name, notes, graphs)?;
                (Reader::At(index), Body::Field(field.named(&self.label)))
            }
        };
        Ok(Building {
            piece: Piece {
                name: self.label.clone(),
                reader,
                latents: 0..0,
            },
            body,
        })
    }

    fn independent(&self, shape: Shape) -> Result<Body, SpecError> {
        let variance = self.known.setting("variance", &self.label, None)?;
        Ok(if self.process {
            Body::Kernel {
                shape,
                variance,
                lengthscales: Vec::new(),
            }
        } else {
            Body::Independent(variance)
        })
    }

    fn gp(&self) -> Result<(Reader, Body), SpecError> {
        let known = self.known;
        known.at_most(1)?;
        let words = known.words();
        let Some(kernel) = words.first() else {
            return Err(known.misused("`gp` needs a kernel"));
        };
        let names: Vec<&str> = Shape::TABLE.iter().map(|row| row.name).collect();
        let Some(row) = Shape::TABLE.iter().find(|row| row.name == kernel.text) else {
            let message = format!(
                "there is no kernel `{}`; choose one of {}",
                kernel.text,
                names.join(", ")
            );
            return Err(known.error(&kernel.span, message));
        };
        let columns = match known.list("on") {
            Some(words) => {
                for word in words {
                    complete(self.source, &word.text, self.rows)
                        .map_err(|m| known.error(&word.span, m))?;
                }
                words.iter().map(|w| w.text.clone()).collect()
            }
            None => self.source.inputs(),
        };
        if columns.is_empty() {
            return Err(known.misused("no numeric column is left as input; name some with `on=`"));
        }
        for key in ["ard", "lengthscale"] {
            let named = known.named(key).map(|n| &n.key.span);
            let flag = known.call.positional.iter().find(|w| w.text == key);
            if let (false, Some(span)) = (row.stationary, named.or(flag.map(|w| &w.span))) {
                let message = format!("the kernel `{}` has no lengthscale", row.name);
                return Err(known.error(span, message));
            }
        }
        let mut variance = known.setting("variance", &self.label, None)?;
        if self.later_factor && known.named("variance").is_none() {
            variance.free = false;
        }
        let lengthscales = if row.stationary {
            self.lengthscales(&columns)?
        } else {
            Vec::new()
        };
        let reader = match row.shape {
            Shape::Constant => Reader::Common,
            _ => Reader::Inputs(columns),
        };
        let body = Body::Kernel {
            shape: row.shape,
            variance,
            lengthscales,
        };
        Ok((reader, body))
    }

    /// Lengthscales that start at the spread of the inputs.
    fn lengthscales(&self, columns: &[String]) -> Result<Vec<Setting>, SpecError> {
        let known = self.known;
        let mut variances = Vec::with_capacity(columns.len());
        for column in columns {
            let x = complete(self.source, column, self.rows)
                .map_err(|m| known.error(&known.call.name.span, m))?;
            let n = x.len().max(1) as f64;
            let mean = x.iter().sum::<f64>() / n;
            variances.push(x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n);
        }
        let usable = |x: f64| Some(if x > 0.0 { x.sqrt() } else { 1.0 });
        if known.flag("ard") {
            let d = columns.len() as f64;
            let labels: Vec<String> = columns
                .iter()
                .map(|column| format!("{}[{column}]", self.label))
                .collect();
            let starts: Vec<_> = variances.iter().map(|v| usable(v * d)).collect();
            known.settings("lengthscale", &labels, &starts)
        } else {
            let start = usable(variances.iter().sum());
            known.settings("lengthscale", std::slice::from_ref(&self.label), &[start])
        }
    }

    /// A setting as the constructors of fields take it: the field gets a start, and what is free is settled after.
    fn with_settings(&self, mut field: Field, names: &[&str]) -> Result<Field, SpecError> {
        for (own, name) in field.settings_mut().iter_mut().zip(names) {
            let told = self.known.setting(name, &self.label, Some(own.value))?;
            own.value = told.value;
            own.free = told.free;
        }
        Ok(field)
    }

    fn field(
        &self,
        name: &str,
        notes: &mut Vec<String>,
        graphs: &mut Vec<(String, Graph)>,
    ) -> Result<(Index, Field), SpecError> {
        let known = self.known;
        let fail = |error: Error| known.error(&known.call.name.span, error.to_string());
        match name {
            "icar" | "bym2" => {
                known.at_most(0)?;
                let Some(file) = known.one("graph")? else {
                    return Err(known.misused(&format!("`{name}` needs a graph")));
                };
                let graph = self
                    .source
                    .graph(&file.text)
                    .map_err(|m| known.error(&file.span, m))?;
                remark_components(&graph, &self.label, notes);
                graphs.push((self.label.clone(), graph.clone()));
                let index = self.regions(&graph)?;
                let field = if name == "icar" {
                    self.with_settings(Field::laplace(&graph, None).map_err(fail)?, &["precision"])?
                } else {
                    let field = Field::bym2(&graph, None, None).map_err(fail)?;
                    self.with_settings(field, &["precision", "phi"])?
                };
                Ok((index, field))
            }
            "grid" => self.grid(notes),
            _ => {
                known.at_most(0)?;
                let ends = ["from", "to", "step"].map(|key| known.number_of(key));
                let [from, to, step] = ends;
                let ends = [from?, to?, step?];
                let index = match known.one("on")? {
                    Some(word) => Index::line(self.source, &word.text, self.rows, ends)
                        .map_err(|m| known.error(&word.span, m))?,
                    None => Index::Rows {
                        nodes: self.source.rows(),
                    },
                };
                self.check_rows(&index)?;
                let (nodes, cyclic) = (index.nodes(), known.flag("cyclic"));
                let field = match name {
                    "rw1" => Field::laplace(&Graph::path(nodes, cyclic), None),
                    "rw2" => Field::rw2(nodes, cyclic, None),
                    _ => Field::ar1(nodes, None, None),
                };
                let names: &[&str] = if name == "ar1" {
                    &["rho", "variance"]
                } else {
                    &["precision"]
                };
                Ok((index, self.with_settings(field.map_err(fail)?, names)?))
            }
        }
    }

    /// Points at the column when a row finds no node.
    fn check_rows(&self, index: &Index) -> Result<(), SpecError> {
        let known = self.known;
        let place = known
            .list("on")
            .and_then(<[_]>::first)
            .map_or(&known.call.name.span, |word| &word.span);
        index
            .find(self.source, self.rows)
            .map(|_| ())
            .map_err(|m| known.error(place, m))
    }

    /// The number of the first node: as given, else 0 where a 0 occurs in the columns, else 1.
    fn first(&self, columns: &[String]) -> Result<usize, SpecError> {
        let known = self.known;
        if let Some(word) = known.one("first")? {
            return match word.text.as_str() {
                "0" => Ok(0),
                "1" => Ok(1),
                _ => Err(known.error(&word.span, "`first` is 0 or 1")),
            };
        }
        for (i, column) in columns.iter().enumerate() {
            let place = known
                .list("on")
                .map_or(&known.call.name.span, |w| &w[i].span);
            let values =
                complete(self.source, column, self.rows).map_err(|m| known.error(place, m))?;
            if values.contains(&0.0) {
                return Ok(0);
            }
        }
        Ok(usize::from(!columns.is_empty()))
    }

    fn regions(&self, graph: &Graph) -> Result<Index, SpecError> {
        let nodes = graph.nodes();
        let index = match self.known.one("on")? {
            None => Index::Rows { nodes },
            Some(word) => Index::Regions {
                first: self.first(std::slice::from_ref(&word.text))?,
                column: word.text.clone(),
                nodes,
            },
        };
        self.check_rows(&index)?;
        Ok(index)
    }

    fn grid(&self, notes: &mut Vec<String>) -> Result<(Index, Field), SpecError> {
        let known = self.known;
        known.at_most(3)?;
        let [kind, rows, columns] = known.words()[..] else {
            return Err(known.misused("`grid` needs a kind, rows and columns"));
        };
        let (height, width) = (known.count(rows)?, known.count(columns)?);
        let cells = height.checked_mul(width).filter(|n| *n < 100_000_000);
        let cells =
            cells.ok_or_else(|| known.error(&columns.span, "the grid has too many cells"))?;
        let mask = match known.one("mask")? {
            None => None,
            Some(file) => Some(
                self.source
                    .mask(&file.text, height, width)
                    .map_err(|m| known.error(&file.span, m))?,
            ),
        };
        let lattice = Lattice::new(height, width, mask.as_deref())
            .map_err(|error| known.error(&kind.span, error.to_string()))?;
        let on: Vec<String> = known
            .list("on")
            .unwrap_or(&[])
            .iter()
            .map(|w| w.text.clone())
            .collect();
        if let Some(extra) = known.list("on").and_then(|words| words.get(2)) {
            return Err(known.error(&extra.span, "cells have one number, or a row and a column"));
        }
        if on.is_empty() && self.source.rows() > cells {
            return Err(known.error(
                &known.call.name.span,
                format!(
                    "the table has {} rows, the grid {cells} cells, one a row; name cells with `on=`",
                    self.source.rows()
                ),
            ));
        }
        let fail = |error: Error| known.error(&kind.span, error.to_string());
        let foreign = |keys: &[&str]| {
            keys.iter().find_map(|key| known.named(key)).map(|named| {
                known.error(
                    &named.key.span,
                    format!("`grid({}, …)` has no `{}`", kind.text, named.key.text),
                )
            })
        };
        let intrinsic = kind.text != "spde";
        let wrong = if intrinsic {
            foreign(&["range", "variance"])
        } else {
            foreign(&["precision"])
        };
        if let Some(error) = wrong {
            return Err(error);
        }
        let (field, names): (_, &[&str]) = match kind.text.as_str() {
            "rw1" => (Field::laplace(&lattice.graph(), None), &["precision"]),
            "rw2" => (Field::thin_plate(&lattice, None), &["precision"]),
            "spde" => (Field::spde(&lattice, None, None), &["range", "variance"]),
            other => {
                let message = format!("there is no grid field `{other}`; choose rw1, rw2 or spde");
                return Err(known.error(&kind.span, message));
            }
        };
        if intrinsic {
            remark_components(&lattice.graph(), &self.label, notes);
        }
        let index = Index::Cells {
            first: self.first(&on)?,
            columns: on,
            lattice,
        };
        self.check_rows(&index)?;
        Ok((index, self.with_settings(field.map_err(fail)?, names)?))
    }
}

/// Says how an intrinsic field treats a graph that falls apart.
fn remark_components(graph: &Graph, label: &str, notes: &mut Vec<String>) {
    let (_, count) = graph.components();
    let alone = (0..graph.nodes())
        .filter(|i| graph.neighbours(*i).is_empty())
        .count();
    if count > 1 {
        notes.push(format!(
            "{label}: the graph has {count} components, each with a flat level of its own{}",
            match alone {
                0 => String::new(),
                n => format!(", but for {n} nodes without neighbours, which are independent"),
            }
        ));
    }
}

/// The names of columns that a specification gives a part, so that they are no inputs of other processes.
pub fn named_columns(spec: &Spec) -> Vec<String> {
    let of_call = |call: &Call| -> Vec<String> {
        let on = call.named.iter().filter(|n| n.key.text == "on");
        let mut names: Vec<String> = on
            .flat_map(|n| n.values.iter().map(|w| w.text.clone()))
            .collect();
        if call.name.text == "fixed" {
            names.extend(call.positional.iter().map(|w| w.text.clone()));
        }
        names
    };
    spec.terms.iter().flatten().flat_map(of_call).collect()
}
