//! Lowers a program once for all its exchangeable records, and separates the prior from the likelihood.
//!
//! A container whose leading extent is the number of records becomes a [`Sym::Records`]. A [`Sym::Records`] stores the
//! container for a single record. Each element of that container is a column with one value per record. An operation on
//! a single record therefore applies to all records. The body of a loop over the records is lowered only once, and
//! densities and sums become sums over the records. Any other operation that combines records is rejected, and the
//! error contains the location of the operation. The resulting log density is linear in its sums over the records. The
//! sums over the records form the likelihood, and the remaining terms form the prior.
//!
//! | file | subject |
//! | --- | --- |
//! | `index` | parts of containers over the records, elements selected by record |
//! | `calls` | operators and functions |
//! | `loops` | loops over the records |

mod calls;
mod index;
mod loops;

pub(super) use self::index::Given;

use std::rc::Rc;

use jensen_density::Posterior;
use jensen_graph::{Dependence, Graph, NodeId, Separation, passes};

use super::{Lower, LowerError, LowerOptions, with_stack};
use crate::interpret::BoundModel;
use crate::program::{
    Constraint, Decl, Expr, ExprKind, Program, SizedType, Span, Stmt, StmtKind, VarId,
    VariablePart, each_read, each_read_of, sizes,
};
use crate::symbolic::index::{Step, check_shape, set_path};
use crate::symbolic::tape::{E, Tape};
use crate::symbolic::value::{Dims, Leaf, Sym, cell_e, e_cell, interacting};
use crate::value::Value;
use crate::value::error::{ErrorKind, Eval, FnError, FnResult};
use crate::value::index::Idx;
use crate::value::sized::Sized;

/// The log density of a program over exchangeable records.
#[derive(Clone, Debug)]
pub struct LoweredRecords {
    /// The prior. Input 0 contains the unconstrained coordinates. Output 0 is the part of the log density that does not
    /// belong to records, or NaN if the program rejects the draw.
    pub prior: Graph,
    /// The log likelihood, summed over a batch of records. The inputs and outputs of this graph have the same form as
    /// those of the prior.
    pub likelihood: Graph,
    /// The number of unconstrained coordinates.
    pub dim: usize,
    /// The number of records.
    pub records: usize,
    /// The names of the coordinates.
    pub names: Vec<String>,
}

pub(super) struct Axis {
    var: VarId,
    count: usize,
    /// The number of records in a batch.
    size: NodeId,
    /// The position of each record, counted from 1.
    index: NodeId,
    separation: Separation,
    /// Data variables for which the number of records is an extent, but not the leading extent.
    inner: Vec<VarId>,
    inside: bool,
    /// Whether these records are a block of a larger set. If so, no value may depend on all records of the set.
    block: bool,
}

/// A variable of the data block whose leading dimension is the number of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordData {
    /// The name of the variable.
    pub name: String,
    /// The `int` variable that is the second size in the declaration, if there is one.
    pub length: Option<String>,
}

/// Returns the data variables of a program whose leading dimension is the `int` variable `count`.
pub fn record_data(program: &Program, count: &str) -> Vec<RecordData> {
    let name_of = |size: &Expr| match &size.kind {
        ExprKind::Var(var) => Some(program.var(*var).name.clone()),
        _ => None,
    };
    let data = program.data.iter().filter_map(|decl| {
        let sizes = sizes(&decl.ty);
        (name_of(sizes.first()?)? == count).then(|| RecordData {
            name: program.var(decl.var).name.clone(),
            length: sizes.get(1).and_then(|size| name_of(size)),
        })
    });
    data.collect()
}

/// Lowers a program whose `int` data variable `name` is the number of exchangeable records. The prior and the
/// likelihood become separate graphs.
///
/// # Errors
/// Fails as [`super::lower`] does. Also fails with [`ErrorKind::Records`] if `name` is not the number of records, or if
/// the log density is not a sum over the records.
pub fn lower_records(
    bound: &BoundModel,
    options: LowerOptions,
    name: &str,
) -> Result<LoweredRecords, LowerError> {
    with_stack(|| lower_here(bound, options, name, None))
}

/// Lowers one block of a larger set of records, as [`lower_records`] does. `numbers` contains the positions of the
/// block's records in the set, counted from 1. The result is the part of the full log density that belongs to these
/// records.
///
/// # Errors
/// Fails as [`lower_records`] does. Also fails if an operation would read all records of the set at once.
pub fn lower_block(
    bound: &BoundModel,
    options: LowerOptions,
    name: &str,
    numbers: &[f64],
) -> Result<LoweredRecords, LowerError> {
    with_stack(|| lower_here(bound, options, name, Some(numbers)))
}

fn lower_here(
    bound: &BoundModel,
    options: LowerOptions,
    name: &str,
    numbers: Option<&[f64]>,
) -> Result<LoweredRecords, LowerError> {
    let tape = Tape::default();
    let dim = bound.unconstrained_dim();
    let z = tape.e(tape.graph.borrow_mut().input(dim));
    let program: &Program = bound.program();
    let mut lower = Lower::new(program, &tape, options, bound);
    if numbers.is_some() {
        refuse_elsewhere(program, name)?;
    }
    lower.lay_out_records(name, numbers)?;
    let count = lower.axis.as_ref().map_or(0, |axis| axis.count);
    lower.parameters(z, bound.parameters())?;
    lower.block(&program.transformed_parameters)?;
    lower.check_transformed(&program.transformed_parameters)?;
    lower.block(&program.model)?;
    let (prior, likelihood) = lower.separated(name)?;
    drop(lower);
    let graph = tape.graph.into_inner();
    let mut likelihood = passes::extract(&graph, &[likelihood]);
    if likelihood.record_count().is_none() {
        // If all records are alike, the log density depends only on their number.
        likelihood.record(&vec![0.0; count], 1);
    }
    Ok(LoweredRecords {
        prior: passes::extract(&graph, &[prior]),
        likelihood,
        dim,
        records: count,
        names: bound.unconstrained_names(),
    })
}

/// Rejects programs that read record data outside the model block, because such reads would need all records.
fn refuse_elsewhere(program: &Program, name: &str) -> Result<(), LowerError> {
    let data = record_data(program, name);
    let blocks = [
        ("transformed data", &program.transformed_data),
        ("transformed parameters", &program.transformed_parameters),
        ("generated quantities", &program.generated_quantities),
    ];
    for (block, stmts) in blocks {
        let mut found = None;
        each_read(stmts, &mut |var, span| {
            let var = &program.var(var).name;
            if var == name || data.iter().any(|data| data.name == *var) {
                found.get_or_insert_with(|| (var.clone(), span));
            }
        });
        if let Some((var, span)) = found {
            let message = format!(
                "the {block} block reads `{var}`, but the records are never in memory at once: move this to \
                 the model block, which runs record by record, or make it a column of the records"
            );
            return Err(refused(message, span));
        }
    }
    Ok(())
}

fn refused(message: String, span: Span) -> LowerError {
    LowerError {
        kind: ErrorKind::Records,
        span,
        message,
    }
}

fn reads(expr: &Expr, var: VarId) -> bool {
    let mut found = false;
    each_read_of(expr, &mut |other, _| found |= other == var);
    found
}

fn declarations(program: &Program) -> impl Iterator<Item = &Decl> {
    let transformed = program
        .transformed_data
        .iter()
        .filter_map(|stmt: &Stmt| match &stmt.kind {
            StmtKind::Decl(decl) => Some(decl),
            _ => None,
        });
    program.data.iter().chain(transformed)
}

impl<'g> Lower<'_, 'g> {
    fn lay_out_records(&mut self, name: &str, numbers: Option<&[f64]>) -> Result<(), LowerError> {
        let program = self.program;
        let counts = || {
            declarations(program)
                .filter(|decl| matches!(decl.ty, SizedType::Int))
                .map(|decl| program.var(decl.var))
        };
        let Some(decl) = declarations(program).find(|decl| program.var(decl.var).name == name)
        else {
            let known: Vec<String> = counts().map(|var| format!("`{}`", var.name)).collect();
            return Err(refused(
                format!(
                    "the data have no variable `{name}`; {}",
                    if known.is_empty() {
                        "they have no `int` that could count the records".into()
                    } else {
                        format!(
                            "the following could count the records: {}",
                            known.join(", ")
                        )
                    }
                ),
                Span::default(),
            ));
        };
        let span = program.var(decl.var).span;
        let count = match (&decl.ty, &self.slots[decl.var.0 as usize]) {
            (SizedType::Int, Some(Sym::Int(count))) => usize::try_from(*count).unwrap_or(0),
            _ => {
                let message =
                    format!("`{name}` is not a single `int`, so it cannot count the records");
                return Err(refused(message, span));
            }
        };
        if count == 0 {
            return Err(refused(
                format!("`{name}` is 0: there are no records"),
                span,
            ));
        }
        for parameter in &program.parameters {
            if sizes(&parameter.ty).iter().any(|n| reads(n, decl.var)) {
                let var = program.var(parameter.var);
                let message = format!(
                    "the size of parameter `{}` is `{name}`, so every record has its own parameters, and a \
                     minibatch cannot omit them",
                    var.name
                );
                return Err(refused(message, var.span));
            }
        }
        let tape = self.tape;
        tape.records.set(Some(count));
        let block = numbers.is_some();
        let numbers = match numbers {
            Some(numbers) => numbers.to_vec(),
            None => (1..=count).map(|n| n as f64).collect(),
        };
        let index = tape.e(tape.graph.borrow_mut().record(&numbers, 1)).id;
        let size = tape.graph.borrow_mut().records_in_batch();
        self.axis = Some(Axis {
            var: decl.var,
            count,
            size,
            index,
            separation: Separation::default(),
            inner: declarations(program)
                .filter(|other| sizes(&other.ty).iter().skip(1).any(|n| reads(n, decl.var)))
                .map(|other| other.var)
                .collect(),
            inside: false,
            block,
        });
        let mut found = false;
        for decl in declarations(program) {
            let leads = match &decl.ty {
                SizedType::Vector(n)
                | SizedType::RowVector(n)
                | SizedType::Matrix(n, _)
                | SizedType::Array(n, _) => self.is_count_variable(n),
                _ => false,
            };
            let slot = &mut self.slots[decl.var.0 as usize];
            if let (true, Some(Sym::Data(value))) = (leads, &*slot)
                && let Some(records) = columns(tape, value, count)
            {
                *slot = Some(records);
                found = true;
            }
        }
        if !found {
            let message = format!(
                "no data variable has the size `{name}`, so `{name}` cannot be the number of records"
            );
            return Err(refused(message, span));
        }
        self.slots[decl.var.0 as usize] = Some(Sym::Scalar(size));
        Ok(())
    }

    fn is_count_variable(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Var(var) => self.axis.as_ref().is_some_and(|axis| axis.var == *var),
            ExprKind::Promote(a) => self.is_count_variable(a),
            _ => false,
        }
    }

    fn separated(&mut self, name: &str) -> Result<(NodeId, NodeId), LowerError> {
        let tape = self.tape;
        tape.graph.borrow_mut().set_site(0);
        let span = self
            .program
            .model
            .first()
            .map_or(Span::default(), |s| s.span);
        let mixed = || refused(interacting().message, span);
        let terms: Vec<E<'g>> = self.terms.iter().map(|id| tape.e(*id)).collect();
        let guards: Vec<E<'g>> = tape.guards.borrow().iter().map(|id| tape.e(*id)).collect();
        let Some(axis) = &mut self.axis else {
            return Err(mixed());
        };
        let (mut prior, mut likelihood) = (Vec::new(), Vec::new());
        for term in terms {
            let mut graph = tape.graph.borrow_mut();
            let (own, sums) = axis
                .separation
                .separate(&mut graph, term.id)
                .ok_or_else(mixed)?;
            prior.push(tape.e(own));
            likelihood.push(tape.e(sums));
        }
        let mut total = tape.add_all(&likelihood);
        let depends = axis.separation.dependence(&tape.graph.borrow(), total.id);
        if depends != Dependence::Additive {
            let message = format!(
                "no term of the log density depends on data of size `{name}`, so there are no records for \
                 minibatches"
            );
            return Err(refused(message, span));
        }
        let mut bad = (Vec::new(), Vec::new());
        for guard in guards {
            let depends = axis.separation.dependence(&tape.graph.borrow(), guard.id);
            match depends {
                Dependence::Global => bad.0.push(guard),
                Dependence::Record => bad.1.push(guard.sum_records()),
                _ => return Err(mixed()),
            }
        }
        let nan = tape.constant(f64::NAN);
        let mut own = tape.add_all(&prior);
        if !bad.0.is_empty() {
            own = tape.add_all(&bad.0).select(nan, own);
        }
        if !bad.1.is_empty() {
            total = tape.add_all(&bad.1).select(nan, total);
        }
        Ok((own.id, total.id))
    }

    pub(super) fn add_term(&mut self, term: E<'g>, span: Span) -> Eval<()> {
        self.fault(span)?;
        if let Some(axis) = &mut self.axis {
            use Dependence::{Additive, Global, Record};
            let depends = axis
                .separation
                .dependence(&self.tape.graph.borrow(), term.id);
            match (axis.inside, depends) {
                (_, Global) | (true, Record) | (false, Additive) => {}
                _ => {
                    let message = "records interact: this term is not a sum over records";
                    return Err(FnError::records(message).at(span));
                }
            }
        }
        self.terms.push(term.id);
        Ok(())
    }

    pub(super) fn check_records(
        &mut self,
        constraint: &Constraint,
        bounds: &[Sym],
        value: &Sym,
        name: &str,
        span: Span,
    ) -> Eval<()> {
        let fail = |e: FnError| e.at(span);
        let bounded = matches!(
            constraint,
            Constraint::Lower(_) | Constraint::Upper(_) | Constraint::LowerUpper(..)
        );
        if !bounded || bounds.iter().any(|bound| !bound.is_scalar()) {
            let message = format!(
                "the constraint of `{name}` is not supported yet for values of each record"
            );
            return Err(FnError::records(message).at(span));
        }
        for element in value.elements(self.tape).map_err(fail)? {
            let cx = self.cx("constraint");
            let violated = super::checks::violated(&cx, constraint, bounds, &element.into());
            if let Some(bad) = violated.map_err(fail)? {
                self.tape.reject_where(bad);
            }
        }
        self.fault(span)
    }

    /// Whether a value differs between records, or depends on the number of records.
    pub(super) fn differs_by_record(&mut self, value: &Sym) -> bool {
        match (value, &mut self.axis) {
            (Sym::Scalar(id), Some(axis)) => {
                let depends = axis.separation.dependence(&self.tape.graph.borrow(), *id);
                depends != Dependence::Global
            }
            _ => false,
        }
    }

    pub(super) fn fault(&self, span: Span) -> Eval<()> {
        match self.tape.fault.borrow_mut().take() {
            None => Ok(()),
            Some(what) => Err(FnError::records(format!(
                "{what} is not supported yet for values of each record"
            ))
            .at(span)),
        }
    }

    /// Sums the terms that `body` adds to the log density over the records, and adds the sum instead.
    pub(super) fn terms_of_records(
        &mut self,
        span: Span,
        body: impl FnOnce(&mut Self) -> Eval<()>,
    ) -> Eval<()> {
        let from = self.terms.len();
        body(self)?;
        self.fault(span)?;
        let own = self.terms.split_off(from);
        if !own.is_empty() {
            let all: Vec<E<'g>> = own.iter().map(|id| self.tape.e(*id)).collect();
            self.add_term(self.tape.add_all(&all).sum_records(), span)?;
        }
        Ok(())
    }

    pub(super) fn record_count(&self) -> Sym {
        self.axis
            .as_ref()
            .map_or(Sym::Int(0), |axis| Sym::Scalar(axis.size))
    }

    fn is_count(&self, value: &Sym) -> bool {
        matches!((value, &self.axis), (Sym::Scalar(id), Some(axis)) if *id == axis.size)
    }

    fn is_own_index(&self, value: &Sym) -> bool {
        let id = match value {
            Sym::Scalar(id) => *id,
            Sym::Records(one) => match one.element(self.tape, 0) {
                Ok(e) if one.dims().is_ok_and(|dims| dims.size() == 1) => e.id,
                _ => return false,
            },
            _ => return false,
        };
        // For a single record, the number of the record is the constant 1.
        self.axis.as_ref().is_some_and(|axis| axis.index == id)
    }

    /// Evaluates a declared type whose leading extent is the number of records, and sets that extent to 1.
    pub(super) fn record_type(&mut self, ty: &SizedType, name: &str) -> Eval<Option<Sized>> {
        if self.axis.is_none() {
            return Ok(None);
        }
        let leading = match ty {
            SizedType::Vector(n)
            | SizedType::RowVector(n)
            | SizedType::Matrix(n, _)
            | SizedType::Array(n, _) => n,
            _ => return Ok(None),
        };
        let value = self.expr(leading)?;
        if !self.is_count(&value) {
            return Ok(None);
        }
        let others = sizes(ty);
        for other in &others[1..] {
            let value = self.expr(other)?;
            if self.is_count(&value) {
                let message =
                    format!("records interact: `{name}` has an entry for every pair of records");
                return Err(FnError::records(message).at(other.span));
            }
        }
        Ok(Some(match ty {
            SizedType::Vector(_) => Sized::Vector(1),
            SizedType::RowVector(_) => Sized::RowVector(1),
            SizedType::Matrix(_, m) => {
                let m = SizedType::RowVector(m.clone());
                match self.resolve(&m, name)? {
                    Sized::RowVector(m) => Sized::Matrix(1, m),
                    other => other,
                }
            }
            SizedType::Array(_, inner) => Sized::Array(1, Box::new(self.resolve(inner, name)?)),
            _ => return Ok(None),
        }))
    }

    pub(super) fn declare_records(&mut self, decl: &Decl, ty: &Sized, span: Span) -> Eval<()> {
        let one = Sym::from(ty.empty());
        let value = match &decl.init {
            None => Sym::Records(Rc::new(one)),
            Some(init) => {
                let value = self.expr(init)?;
                let value = self.as_records(value).map_err(|e| e.at(init.span))?;
                if let Sym::Records(found) = &value {
                    check_shape(&one, found).map_err(|e| e.at(span))?;
                }
                value
            }
        };
        self.slots[decl.var.0 as usize] = Some(value);
        Ok(())
    }

    /// A known container with one element for each record becomes a column.
    pub(super) fn as_records(&self, value: Sym) -> FnResult<Sym> {
        match &value {
            Sym::Records(_) => Ok(value),
            Sym::Data(data) => self
                .axis
                .as_ref()
                .and_then(|axis| columns(self.tape, data, axis.count))
                .ok_or_else(interacting),
            _ => Err(interacting()),
        }
    }

    pub(super) fn store_records(
        &mut self,
        part: &VariablePart,
        path: &[Step],
        value: Sym,
    ) -> Eval<()> {
        let (tape, inside) = (
            self.tape,
            self.axis.as_ref().is_some_and(|axis| axis.inside),
        );
        let whole = match path.first() {
            Some(Step::Index(idx, _)) => !matches!(idx.first(), Some(Idx::One(_))),
            _ => true,
        };
        let value = if whole {
            if inside {
                let message = "records interact: a loop over the records assigns a whole variable of all records";
                return Err(FnError::records(message).at(part.span));
            }
            if value.is_scalar() {
                return Err(interacting().at(part.span));
            }
            self.as_records(value)
                .map_err(|e| e.at(part.span))?
                .one_record()
        } else {
            value
        };
        if let Some(Sym::Records(one)) = &mut self.slots[part.var.0 as usize] {
            set_path(tape, Rc::make_mut(one), path, value).map_err(|e| e.at(part.span))?;
        }
        Ok(())
    }

    /// Converts the part to a container with one element per record, unless the path selects a single record.
    pub(super) fn of_records(&self, part: Sym, path: &[Step]) -> Sym {
        let single = matches!(path.first(), Some(Step::Index(idx, _)) if matches!(idx.first(), Some(Idx::One(_))));
        if single {
            part
        } else {
            Sym::Records(Rc::new(part))
        }
    }
}

fn columns(tape: &Tape, value: &Value, count: usize) -> Option<Sym> {
    let dims = Dims::of_value(value)?;
    if dims.extents().first() != Some(&count) {
        return None;
    }
    let mut one = dims.clone();
    match (one.array.first_mut(), dims.leaf) {
        (Some(first), _) => *first = 1,
        (None, Leaf::Vector(_)) => one.leaf = Leaf::Vector(1),
        (None, Leaf::Row(_)) => one.leaf = Leaf::Row(1),
        (None, Leaf::Matrix(_, cols)) => one.leaf = Leaf::Matrix(1, cols),
        (None, Leaf::Scalar) => return None,
    }
    let (stride, numbers) = (dims.strides()[0], value.numbers());
    // In storage, the elements of one record are adjacent, or one column apart if the container is a matrix.
    let within = if dims.array.is_empty() { count } else { 1 };
    let mut column = vec![0.0; count];
    let cells = (0..one.size())
        .map(|k| {
            for (r, slot) in column.iter_mut().enumerate() {
                *slot = numbers[r * stride + k * within];
            }
            e_cell(tape.column(&column))
        })
        .collect();
    Some(Sym::Records(Rc::new(Sym::cells(one, cells))))
}

/// Returns `None` unless the values of all records are known and present.
fn all_records(tape: &Tape, one: &Sym, axis: &Axis) -> Option<Value> {
    if axis.block {
        return None;
    }
    let count = axis.count;
    let mut dims = one.dims().ok()?;
    let size = dims.size();
    match (dims.array.first_mut(), dims.leaf) {
        (Some(first), _) => *first = count,
        (None, Leaf::Vector(_)) => dims.leaf = Leaf::Vector(count),
        (None, Leaf::Row(_)) => dims.leaf = Leaf::Row(count),
        (None, Leaf::Matrix(_, cols)) => dims.leaf = Leaf::Matrix(count, cols),
        (None, Leaf::Scalar) => return None,
    }
    let within = if dims.array.is_empty() { count } else { 1 };
    let stride = dims.strides()[0];
    let mut numbers = vec![0.0; size * count];
    for (k, cell) in one.to_cells(tape).ok()?.into_iter().enumerate() {
        let data = cell_e(tape, cell).data()?;
        for r in 0..count {
            numbers[r * stride + k * within] = if data.len() == 1 { data[0] } else { data[r] };
        }
    }
    Some(dims.value(&numbers))
}

fn is_flat(one: &Sym) -> bool {
    one.dims().is_ok_and(|dims| dims.size() == 1)
}
