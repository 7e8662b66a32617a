//! Builds a prior and a design from a specification and a table, and the corresponding queries for the rows of other
//! tables.
//!
//! If one of the terms is a Gaussian process, all terms become covariance functions of a single process, whose latent
//! variables are the distinct rows. Otherwise, the latent variables of fields, groups and covariates are concatenated,
//! and the design selects from them.

use std::collections::BTreeMap;

use super::by;
use super::copied;
use super::copied::GroupModel;
use super::correlated::{Derived, LevelAtZero};
use super::gp::{Factor, GaussianProcess};
use super::graph::Graph;
use super::inducing::{self, At, InducingError};
use super::inputs::{Covariate, Source, Units, matrix};
use super::kernel::Shape;
use super::mesh::Discretisation;
use super::pin::{Pin, hold};
use super::read::{Piece, Reader, Rows, coordinates, design};
use super::setting::{self, Setting};
use super::spec::{Call, Spec, SpecError};
use super::spectral::Truncation;
use super::stack::{Block, Stack};
use super::states::States;
use super::term::{Body, Builder, Building};
use super::terms::Known;
use super::times::Variable;
use crate::{Dense, Design, Error, Prior, Query};

enum Kind {
    Process {
        process: GaussianProcess,
        latent: Vec<usize>,
    },
    States {
        states: States,
        design: Design,
    },
    Stack {
        stack: Stack,
        design: Design,
    },
}

/// A prior that was built from a specification, with its mapping to the rows of a table.
pub struct Assembled {
    kind: Kind,
    pieces: Vec<Piece>,
    graphs: Vec<(String, Graph)>,
    /// Notes for the user, for example about columns that were omitted.
    pub notes: Vec<String>,
}

/// Which part of the model absorbs a shift of all linear predictors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// No part absorbs the shift, because the model has only effects of covariates.
    None,
    /// A stationary part absorbs the shift and shrinks it.
    Shrunk,
    /// A part with unlimited variance absorbs the shift.
    Free,
}

impl Level {
    /// Determines how the sum of all terms absorbs a shift.
    pub fn of(spec: &Spec) -> Self {
        let mut level = Self::None;
        for call in spec.terms.iter().flatten() {
            let by = call.named.iter().find(|named| named.key.text == "by");
            // A part that is multiplied by a column does not shift all predictors equally.
            if by.is_some_and(|by| by.values.iter().all(|word| word.text != "1")) {
                continue;
            }
            // Constrained copies sum to zero.
            if GroupModel::constrains(call) {
                continue;
            }
            let word = |i: usize| call.positional.get(i).map(|w| w.text.as_str());
            let own = match (call.name.text.as_str(), word(0)) {
                ("fixed", _) | ("gp", Some("linear")) => Self::None,
                ("intercept" | "rw1" | "rw2" | "te" | "tp" | "icar" | "bym2" | "gp", _) => {
                    Self::Free
                }
                ("grid", Some("rw1" | "rw2")) => Self::Free,
                _ => Self::Shrunk,
            };
            if own == Self::Free || level == Self::None {
                level = own;
            }
        }
        level
    }
}

/// Builds the prior and the design for the given rows of a table. The model measures its quantities in `units`.
///
/// # Errors
/// Fails if a word is unknown, if a column or file is missing or unsuitable, or if terms conflict. The error points to
/// the word in the text.
pub fn assemble(
    spec: &Spec,
    source: &dyn Source,
    rows: &[usize],
    units: Units,
) -> Result<Assembled, SpecError> {
    let mut notes = Vec::new();
    let mut graphs = Vec::new();
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut terms = Vec::with_capacity(spec.terms.len());
    let process = (spec.terms.iter().flatten()).any(is_process);
    if process {
        refuse_fields(spec)?;
    }
    for calls in &spec.terms {
        let mut factors = Vec::with_capacity(calls.len());
        for (i, call) in calls.iter().enumerate() {
            let known = Known::new(&spec.text, call)?;
            let name = known.term.name;
            if calls.len() > 1 && !is_process(call) {
                let message = "only `gp(…)` and `covariance(…)` can be multiplied";
                return Err(known.error(&call.name.span, message));
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
                units,
                level: Level::of(spec) == Level::Free,
                by: by::plain(),
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
        make_stack(terms, source, rows, &mut notes, &at_source, &whole)?
    };
    Ok(Assembled {
        kind,
        pieces,
        graphs,
        notes,
    })
}

fn is_process(call: &Call) -> bool {
    ["gp", "covariance"].contains(&call.name.text.as_str())
}

fn refuse_fields(spec: &Spec) -> Result<(), SpecError> {
    const COVARIANCES: [&str; 3] = ["iid", "fixed", "intercept"];
    for call in spec.terms.iter().flatten() {
        let known = Known::new(&spec.text, call)?;
        let name = known.term.name;
        if !is_process(call) && !COVARIANCES.contains(&name) {
            return Err(known.error(
                &call.name.span,
                format!(
                    "`{name}` {}, which cannot be in one sum with `gp` or \
                     `covariance`; use `gp(matern32, on=…)` or `covariance(matrix=FILE)` for this part, or a \
                     field (`rw2`, `ar1`, `grid`) or `hsgp` instead of the process",
                    match name {
                        "hsgp" | "te" => "has basis functions",
                        "svgp" => "has inducing points",
                        _ => "is a field with a sparse precision",
                    }
                ),
            ));
        }
    }
    Ok(())
}

fn make_process(
    terms: Vec<Vec<Building>>,
    source: &dyn Source,
    rows: &[usize],
    notes: &mut Vec<String>,
    at_source: &dyn Fn(String) -> SpecError,
    whole: &dyn Fn(Error) -> SpecError,
) -> Result<(Kind, Vec<Piece>), SpecError> {
    let terms: Vec<Vec<Building>> = terms.into_iter().map(scaled).collect();
    if let Some((states, design)) = States::of(&terms, source, rows).map_err(at_source)? {
        notes.push(format!(
            "the process is a Markov chain with a state at each of {} values",
            states.nodes()
        ));
        let pieces = terms.into_iter().flatten().map(|building| building.piece);
        return Ok((Kind::States { states, design }, pieces.collect()));
    }
    let mut points = Vec::new();
    for building in terms.iter().flatten() {
        points.push(coordinates(&building.piece.reader, source, rows, Some(0)).map_err(at_source)?);
    }
    // Rows that have the same inputs in every term share a latent variable.
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

/// Returns the factors of a product, followed by a linear kernel for each column that multiplies the product. The
/// kernel is linear because x f(t) has the covariance x x′ k(t, t′).
fn scaled(term: Vec<Building>) -> Vec<Building> {
    let by = |building: &Building| -> Vec<Building> {
        (building.piece.factors.iter().flatten())
            .map(|covariate| Building {
                piece: Piece {
                    name: format!("{}.by", building.piece.name),
                    reader: Reader::Inputs(vec![covariate.clone()]),
                    factors: by::plain(),
                    repeats: None,
                    latents: 0..0,
                },
                body: Body::Kernel {
                    shape: Shape::Linear,
                    variance: None,
                    lengthscales: Vec::new(),
                },
            })
            .collect()
    };
    let columns: Vec<Building> = term.iter().flat_map(by).collect();
    term.into_iter().chain(columns).collect()
}

fn make_stack(
    terms: Vec<Vec<Building>>,
    source: &dyn Source,
    rows: &[usize],
    notes: &mut Vec<String>,
    at_source: &dyn Fn(String) -> SpecError,
    whole: &dyn Fn(Error) -> SpecError,
) -> Result<(Kind, Vec<Piece>), SpecError> {
    let (mut parts, mut pieces, mut at) = (Vec::new(), Vec::new(), 0);
    for mut building in terms.into_iter().flatten() {
        let part = match building.body {
            Body::Field(field) => Block::Field(field),
            Body::Independent(variance) => Block::Independent {
                count: count(&building.piece.reader, rows.len()),
                variance,
            },
            Body::Spectral(spectral) => Block::Spectral(spectral),
            Body::Inducing(inducing) => Block::Inducing(inducing),
            Body::Kernel { .. } => unreachable!("kernels make a process"),
        };
        building.piece.latents = at..at + part.len();
        at += part.len();
        parts.push(part);
        pieces.push(building.piece);
    }
    let design = design(&pieces, source, rows, at, None)
        .map_err(at_source)?
        .design;
    let mut stack = Stack::new(parts).map_err(whole)?;
    hold(&mut stack, &pieces, &design, notes).map_err(whole)?;
    Ok((Kind::Stack { stack, design }, pieces))
}

fn count(reader: &Reader, rows: usize) -> usize {
    match reader {
        Reader::Own => rows,
        Reader::At(index) => index.nodes(),
        Reader::Covariates(list) => list.len(),
        Reader::Common => 1,
        Reader::Inputs(columns) => columns.len(),
        Reader::Basis(basis) => basis.len(),
        Reader::Inducing(points) => points.len(),
        Reader::Mesh(mesh) => mesh.nodes(),
        Reader::Tensor(tensor) => tensor.len(),
        Reader::Radial(radial) => radial.len(),
        Reader::Given { root, .. } => root.rows,
    }
}

impl Assembled {
    /// Returns the prior.
    pub fn prior(&self) -> &dyn Prior {
        match &self.kind {
            Kind::Process { process, .. } => process,
            Kind::States { states, .. } => states,
            Kind::Stack { stack, .. } => stack,
        }
    }

    /// Returns all hyperparameters, including fixed ones.
    pub fn settings(&self) -> Vec<Setting> {
        match &self.kind {
            Kind::Process { process, .. } => process.settings().to_vec(),
            Kind::States { states, .. } => states.settings(),
            Kind::Stack { stack, .. } => stack.settings(),
        }
    }

    fn levels_at_zero(&self) -> impl Iterator<Item = (&Stack, usize, LevelAtZero<'_>)> {
        let stack = match &self.kind {
            Kind::Process { .. } | Kind::States { .. } => None,
            Kind::Stack { stack, .. } => Some(stack),
        };
        stack.into_iter().flat_map(|stack| {
            let pieces = self.pieces.iter().enumerate();
            pieces.filter_map(move |(part, piece)| {
                Some((stack, part, LevelAtZero::of(&piece.factors)?))
            })
        })
    }

    /// Returns the quantities that are computed from hyperparameters for reports.
    pub fn derived(&self) -> Vec<Derived> {
        self.levels_at_zero()
            .flat_map(|(stack, part, level)| {
                level.quantities(&self.pieces[part].name, stack.parts()[part].settings())
            })
            .collect()
    }

    /// Computes the values of the [`derived`](Self::derived) quantities at θ.
    ///
    /// # Errors
    /// Fails if θ is out of range.
    pub fn derived_at(&self, theta: &[f64]) -> Result<Vec<f64>, Error> {
        let mut out = Vec::new();
        for (stack, part, level) in self.levels_at_zero() {
            out.extend(level.values(&stack.values(part, theta)?));
        }
        Ok(out)
    }

    /// Returns the names of the parts that approximate a process by basis functions, each with the error of this
    /// approximation at θ.
    ///
    /// # Errors
    /// Fails if θ is out of range.
    pub fn truncation(&self, theta: &[f64]) -> Result<Vec<(&str, Truncation)>, Error> {
        let Kind::Stack { stack, .. } = &self.kind else {
            return Ok(Vec::new());
        };
        let each = self.pieces.iter().zip(stack.split(theta)?);
        each.filter_map(|(piece, (part, own))| match part {
            Block::Spectral(spectral) => Some((piece, spectral, own)),
            _ => None,
        })
        .map(|(piece, spectral, own)| Ok((piece.name.as_str(), spectral.truncation(own)?)))
        .collect()
    }

    /// Returns the names of the parts on meshes, each with the error of the mesh at θ.
    ///
    /// # Errors
    /// Fails if θ is out of range.
    pub fn discretisation(&self, theta: &[f64]) -> Result<Vec<(&str, Discretisation)>, Error> {
        let Kind::Stack { stack, .. } = &self.kind else {
            return Ok(Vec::new());
        };
        let each = self.pieces.iter().zip(stack.split(theta)?);
        each.filter_map(|(piece, (part, own))| match (&piece.reader, part) {
            (Reader::Mesh(mesh), Block::Field(field)) => {
                let (single, own) = copied::single(field, own);
                let found = single.discretisation(mesh, own);
                Some(found.map(|found| (piece.name.as_str(), found)))
            }
            _ => None,
        })
        .collect()
    }

    /// Estimates the error of processes with inducing points in a fit at θ with this design. Returns `None` if there is no
    /// such process.
    ///
    /// # Errors
    /// Fails if θ is out of range.
    pub fn inducing_error(
        &self,
        theta: &[f64],
        design: &Design,
        fit: inducing::Rows<'_>,
    ) -> Result<Option<InducingError>, Error> {
        match &self.kind {
            Kind::Stack { stack, .. } => stack.inducing_error(theta, design, fit),
            Kind::Process { .. } | Kind::States { .. } => Ok(None),
        }
    }

    /// Returns the name and the graph of each part that has a graph.
    pub fn graphs(&self) -> &[(String, Graph)] {
        &self.graphs
    }

    /// Returns the number of latent variables of a Gaussian process with a covariance matrix, or 0 if the prior is
    /// sparse.
    pub fn process_size(&self) -> usize {
        match &self.kind {
            Kind::Process { latent, .. } => latent.iter().max().map_or(0, |l| l + 1),
            Kind::States { .. } | Kind::Stack { .. } => 0,
        }
    }

    /// Returns the number of latent variables of parts with their own variables, or 0 for a process.
    pub fn latents(&self) -> usize {
        match &self.kind {
            Kind::Process { .. } | Kind::States { .. } => 0,
            Kind::Stack { stack, .. } => stack.latents(),
        }
    }

    /// Returns the largest number of inducing points of a part, or 0. With inducing points, the design depends on
    /// hyperparameters.
    pub fn inducing_points(&self) -> usize {
        let of = |piece: &Piece| match &piece.reader {
            Reader::Inducing(points) => points.len(),
            _ => 0,
        };
        self.pieces.iter().map(of).max().unwrap_or(0)
    }

    /// Returns the constrained level of each part.
    pub fn pins(&self) -> &[Option<Pin>] {
        match &self.kind {
            Kind::Process { .. } | Kind::States { .. } => &[],
            Kind::Stack { stack, .. } => stack.pins(),
        }
    }

    /// Returns the index of the part that absorbs a shift of all linear predictors. If there is a common level, it
    /// absorbs the shift. Otherwise the first part with a flat level absorbs it. Returns `None` for a Gaussian process,
    /// whose parts have no separate latent variables.
    pub fn absorbs(&self) -> Option<usize> {
        let Kind::Stack { stack, .. } = &self.kind else {
            return None;
        };
        let plain = |wanted: &dyn Fn(&Piece, &Block) -> bool| {
            let mut all = self.pieces.iter().zip(stack.parts());
            all.position(|(piece, part)| piece.is_plain() && wanted(piece, part))
        };
        plain(&|piece, _| piece.reader == Reader::Common).or_else(|| {
            plain(&|_, part| match part {
                Block::Field(field) => field.flat().is_some(),
                Block::Independent { .. } | Block::Spectral(_) | Block::Inducing(_) => false,
            })
        })
    }

    /// Returns the positions of a part's latent variables that change by 1 if the part shifts all linear predictors by 1.
    pub fn shifted(&self, part: usize) -> Vec<usize> {
        match &self.pieces[part].reader {
            Reader::Radial(radial) => vec![radial.level()],
            _ => (0..self.read(part)).collect(),
        }
    }

    fn read(&self, part: usize) -> usize {
        match &self.kind {
            Kind::Stack { stack, .. } => match &stack.parts()[part] {
                Block::Field(field) => field.read(),
                block => block.len(),
            },
            Kind::Process { .. } | Kind::States { .. } => 0,
        }
    }

    /// Returns the numeric columns that the parts use, in the model's units and without duplicates.
    pub fn covariates(&self) -> Vec<&Covariate> {
        fn of_piece(piece: &Piece) -> impl Iterator<Item = &Covariate> {
            let read: &[Covariate] = match &piece.reader {
                Reader::Covariates(list) | Reader::Inputs(list) => list,
                Reader::Basis(basis) => &basis.inputs,
                Reader::Inducing(points) => &points.inputs,
                _ => &[],
            };
            read.iter().chain(piece.factors.iter().flatten())
        }
        let mut out: Vec<&Covariate> = Vec::new();
        for own in self.pieces.iter().flat_map(of_piece) {
            let is_same = |other: &&Covariate| {
                (&other.column, &other.level, other.wave) == (&own.column, &own.level, own.wave)
            };
            if !out.iter().any(is_same) {
                out.push(own);
            }
        }
        out
    }

    /// Returns the values of the [covariates](Self::covariates) in the given rows, with one column per covariate.
    ///
    /// # Errors
    /// Fails if a column or one of its values is missing.
    pub fn columns(&self, source: &dyn Source, rows: &[usize]) -> Result<Dense, String> {
        let list: Vec<Covariate> = self.covariates().into_iter().cloned().collect();
        matrix(&list, source, rows)
    }

    /// Returns the parts, in the order of the specification.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Returns the mapping from rows to latent variables.
    pub fn design(&self) -> Design {
        match &self.kind {
            Kind::Process { latent, .. } => {
                if latent.iter().enumerate().all(|(i, l)| i == *l) {
                    Design::Identity
                } else {
                    Design::Select(latent.clone())
                }
            }
            Kind::States { design, .. } | Kind::Stack { design, .. } => design.clone(),
        }
    }

    fn points(&self, source: &dyn Source, rows: &[usize]) -> Result<Vec<Dense>, Error> {
        let each = self.pieces.iter();
        each.map(|piece| coordinates(&piece.reader, source, rows, None))
            .collect::<Result<_, _>>()
            .map_err(Error::Data)
    }

    /// Returns the covariance among rows of another table that joint draws need. For a process, it is their prior
    /// covariance. For processes with inducing points, it is their prior covariance given the latent variables. Returns
    /// `None` for other priors.
    ///
    /// # Errors
    /// Fails if a column is missing.
    pub fn joint(
        &self,
        theta: &[f64],
        source: &dyn Source,
        rows: &[usize],
    ) -> Result<Option<Dense>, Error> {
        match &self.kind {
            Kind::Process { process, .. } => {
                let points = self.points(source, rows)?;
                process.between(theta, &points).map(Some)
            }
            Kind::States { .. } => Ok(None),
            Kind::Stack { stack, .. } => match self.projections(source, rows)? {
                None => Ok(None),
                Some(at) => stack.residual_covariance(theta, rows.len(), &at).map(Some),
            },
        }
    }

    /// Returns the rows of another table at which the processes with inducing points are projected, in order. Returns
    /// `None` if there is no such process.
    fn projections(&self, source: &dyn Source, rows: &[usize]) -> Result<Option<Vec<At>>, Error> {
        let each = self.pieces.iter().filter_map(|piece| match &piece.reader {
            Reader::Inducing(points) => {
                Some(inducing::at(points, &piece.factors, source, rows).map_err(Error::Data))
            }
            _ => None,
        });
        let all: Vec<At> = each.collect::<Result<_, _>>()?;
        Ok((!all.is_empty()).then_some(all))
    }

    /// Builds the query for rows of another table, and the effects of all rows and groups that did not occur in the
    /// fit.
    ///
    /// # Errors
    /// Fails if a column is missing or a row lies outside the prior.
    pub fn query(
        &self,
        theta: &[f64],
        source: &dyn Source,
        rows: &[usize],
    ) -> Result<(Query, Fresh), Error> {
        match &self.kind {
            Kind::Process { process, .. } => {
                let points = self.points(source, rows)?;
                Ok((process.query(theta, &points)?, Fresh::none(rows.len())))
            }
            Kind::States { states, design } => {
                let query = states.query(theta, &self.pieces, (design, rows), source)?;
                Ok((query, Fresh::none(rows.len())))
            }
            Kind::Stack { stack, .. } => {
                let latents = self.pieces.last().map_or(0, |p| p.latents.end);
                let parts = stack.split(theta)?;
                let values = (parts.iter())
                    .map(|(part, own)| setting::values(part.settings(), own))
                    .collect::<Result<Vec<_>, Error>>()?;
                let law = |part: usize, distances| match parts[part].0 {
                    Block::Field(field) => field.bridge(&values[part], distances),
                    Block::Independent { .. } | Block::Spectral(_) | Block::Inducing(_) => {
                        unreachable!("only fields have times")
                    }
                };
                let new =
                    design(&self.pieces, source, rows, latents, Some(&law)).map_err(Error::Data)?;
                let fresh = Fresh::new(&new, &stack.roots(theta)?);
                let design = match self.projections(source, rows)? {
                    None => new.design,
                    Some(at) => stack.projected(theta, &new.design, &at)?,
                };
                Ok((Query::Rows(design), fresh))
            }
        }
    }
}

/// The effects of rows and groups that did not occur in the fit. They are independent of all other effects and have the
/// covariance of their part.
#[derive(Clone, Debug, PartialEq)]
pub struct Fresh {
    /// The effect of each row as a weighted sum of variables, given by their indices and weights.
    pub rows: Vec<Vec<(usize, f64)>>,
    /// The variables. Those of the same row are independent.
    pub variables: Vec<Variable>,
}

impl Fresh {
    /// Creates an empty set of effects for this number of rows.
    pub fn none(rows: usize) -> Self {
        Self {
            rows: vec![Vec::new(); rows],
            variables: Vec::new(),
        }
    }

    /// Creates the effects of the new nodes of each row. For each part, `roots` contains a factor of the covariance of
    /// a node's variables, unless the nodes are times of a process.
    fn new(rows: &Rows, roots: &[Dense]) -> Self {
        let mut numbers: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let mut out = Self::none(0);
        for (part, variables) in rows.times.iter().enumerate() {
            let first = out.variables.len();
            let nodes = 0..variables.len();
            numbers.extend(nodes.map(|node| ((part, node), first + node)));
            out.variables.extend(variables.iter().map(|variable| {
                Variable {
                    earlier: variable
                        .earlier
                        .map(|(node, factor)| (first + node, factor)),
                    ..*variable
                }
            }));
        }
        for own in &rows.new {
            let mut weights = Vec::new();
            for (part, node, factors) in own {
                if !rows.times[*part].is_empty() {
                    weights.push((numbers[&(*part, *node)], factors[0]));
                    continue;
                }
                let root = &roots[*part];
                let next = out.variables.len();
                let first = *numbers.entry((*part, *node)).or_insert(next);
                if first == next {
                    let independent = Variable::independent(1.0);
                    out.variables.extend(vec![independent; root.cols]);
                }
                for j in 0..root.cols {
                    let column = root.col(j).iter().zip(factors);
                    weights.push((first + j, column.map(|(l, x)| l * x).sum()));
                }
            }
            out.rows.push(weights);
        }
        out
    }

    /// Computes the variance that the effects add to each row.
    pub fn added(&self) -> Vec<f64> {
        let mut variances: Vec<f64> = Vec::with_capacity(self.variables.len());
        for variable in &self.variables {
            let earlier = variable.earlier.map(|(at, w)| w * w * variances[at]);
            variances.push(variable.sd * variable.sd + earlier.unwrap_or(0.0));
        }
        let squares =
            |own: &Vec<(usize, f64)>| own.iter().map(|(at, w)| w * w * variances[*at]).sum();
        self.rows.iter().map(squares).collect()
    }

    /// Computes the variables from standard normal numbers, one for each variable.
    pub fn values(&self, normals: &[f64]) -> Vec<f64> {
        let mut values: Vec<f64> = Vec::with_capacity(normals.len());
        for (variable, z) in self.variables.iter().zip(normals) {
            let earlier = variable.earlier.map(|(at, w)| w * values[at]);
            values.push(variable.sd * z + earlier.unwrap_or(0.0));
        }
        values
    }
}

/// Returns the columns that a specification assigns to a part. By default, a process does not use these columns as
/// inputs.
pub fn named_columns(spec: &Spec) -> Vec<String> {
    let of_call = |call: &Call| -> Vec<String> {
        let columns = call
            .named
            .iter()
            .filter(|n| ["on", "by", "replicate", "group"].contains(&n.key.text.as_str()));
        let mut names: Vec<String> = columns
            .flat_map(|n| n.values.iter().map(|w| w.text.clone()))
            .collect();
        if call.name.text == "fixed" {
            names.extend(call.positional.iter().map(|w| w.text.clone()));
        }
        names
    };
    spec.terms.iter().flatten().flat_map(of_call).collect()
}
