//! Binds a program to data, and computes its log density, constrained values and generated quantities.

use std::sync::Arc;

use jensen_density::{
    ConstrainError, DrawKey, Posterior, Scale, Unconstrained, Variable, VariableKind,
};

use super::bind::{DataSource, bind_data};
use super::invent::{Invention, invent_data};
use super::machine::{Machine, Sink, Slots};
use crate::functions::random::{Draws, RandomUse};
use crate::program::{BlockKind, Decl, Program, Span, Stmt, StmtKind, VarId, function_locals};
use crate::value::Value;
use crate::value::error::{ErrorKind, Eval, EvalError, FnError, Halt, Limits};
use crate::value::shape::element_name;
use crate::value::sized::{Part, Sized, part_of, parts, put_part};

/// An interpreter, which binds programs to their data.
#[derive(Clone, Debug, Default)]
pub struct Interpreter {
    /// The limits of every evaluation.
    pub limits: Limits,
    /// The seed of the random numbers that the transformed data block draws.
    pub seed: u64,
    /// The interrupt, which ends the binding of the data and every later evaluation of the bound model.
    pub halt: Halt,
}

impl Interpreter {
    /// Binds the data, computes the transformed data, and lays out the parameters. The output of `print` goes to
    /// `sink`.
    ///
    /// # Errors
    /// Fails if the data do not match their declarations, if transformed data violate their constraints, or if a
    /// statement of the transformed data block fails.
    pub fn bind(
        &self,
        program: Arc<Program>,
        data: &dyn DataSource,
        sink: &mut Sink<'_>,
    ) -> Eval<BoundModel> {
        self.bind_by(program, sink, |machine| bind_data(machine, data))
    }

    /// Binds the program to made-up data, which `invent_data` creates.
    ///
    /// # Errors
    /// Fails if no made-up data satisfy the declarations, or if the transformed data block fails for the made-up data.
    pub fn bind_invented(&self, program: Arc<Program>, what: Invention) -> Eval<BoundModel> {
        self.bind_by(program, &mut |_| {}, |machine| invent_data(machine, what))
    }

    fn bind_by(
        &self,
        program: Arc<Program>,
        sink: &mut Sink<'_>,
        data: impl FnOnce(&mut Machine<'_>) -> Eval<()>,
    ) -> Eval<BoundModel> {
        let locals = function_locals(&program);
        let slots: Slots = vec![None; program.vars.len()];
        let machine = Machine::new(&program, &locals, slots, self.limits, sink);
        let mut machine = machine.with_halt(self.halt.clone());
        data(&mut machine)?;
        machine.rng = Some(Draws::new(self.seed, RandomUse::TransformedData, 0));
        machine.run(&program.transformed_data)?;
        check_block(&mut machine, &program.transformed_data, ErrorKind::Failed)?;
        machine.rng = None;

        let mut model = BoundModel {
            limits: self.limits,
            halt: self.halt.clone(),
            parameters: Vec::new(),
            transformed: outputs(&mut machine, &program.transformed_parameters)?,
            generated: outputs(&mut machine, &program.generated_quantities)?,
            left_out: Vec::new(),
            dim: 0,
            slots: Slots::new(),
            locals: Vec::new(),
            program: program.clone(),
        };
        for decl in &program.parameters {
            let ty = machine.resolve(decl)?;
            model.parameters.push((decl.var, ty));
        }
        model.slots = std::mem::take(&mut machine.slots);
        model.locals = locals;
        // The number of coordinates does not depend on bounds, so the transforms at an arbitrary point determine it.
        model.dim = program
            .parameters
            .iter()
            .zip(&model.parameters)
            .map(|(decl, (_, ty))| {
                let parts = parts(decl, ty);
                parts.iter().map(coordinates).sum::<usize>()
            })
            .sum();
        Ok(model)
    }
}

pub(super) fn coordinates(part: &Part<'_>) -> usize {
    let (dims, leaf) = part.ty.unwind();
    let (rows, cols) = leaf.leaf_extents();
    let each = crate::value::sized::shape_only(part.constraint).coordinates(rows, cols);
    dims.iter().product::<usize>() * each
}

fn outputs(machine: &mut Machine<'_>, stmts: &[Stmt]) -> Eval<Vec<(VarId, Sized)>> {
    declarations(stmts)
        .map(|(decl, _)| Ok((decl.var, machine.resolve(decl)?)))
        .collect()
}

fn declarations(stmts: &[Stmt]) -> impl Iterator<Item = (&Decl, Span)> {
    stmts.iter().filter_map(|stmt| match &stmt.kind {
        StmtKind::Decl(decl) => Some((decl, stmt.span)),
        _ => None,
    })
}

fn check_block(machine: &mut Machine<'_>, stmts: &[Stmt], kind: ErrorKind) -> Eval<()> {
    for (decl, _) in declarations(stmts) {
        if let Some(value) = machine.slots[decl.var.0 as usize].clone() {
            let span = machine.program.var(decl.var).span;
            machine.check_declared(decl, &value, kind, span)?;
        }
    }
    Ok(())
}

/// A program with its data and its computed transformed data.
#[derive(Clone, Debug)]
pub struct BoundModel {
    program: Arc<Program>,
    locals: Vec<Vec<VarId>>,
    limits: Limits,
    halt: Halt,
    slots: Slots,
    parameters: Vec<(VarId, Sized)>,
    transformed: Vec<(VarId, Sized)>,
    generated: Vec<(VarId, Sized)>,
    /// For each variable that can be reported, states whether the report omits it. The list is empty if the report
    /// omits no variable.
    left_out: Vec<bool>,
    dim: usize,
}

impl BoundModel {
    /// Restricts the report to the wanted variables. If no generated quantity is wanted, the model does not compute
    /// generated quantities.
    pub fn reporting(mut self, wanted: impl Fn(&Variable) -> bool) -> Self {
        self.left_out = self.all_variables().iter().map(|v| !wanted(v)).collect();
        if !self.left_out.contains(&true) {
            self.left_out.clear();
        }
        self
    }

    /// Returns whether generated quantities are reported. If no generated quantities are reported, the generated
    /// quantities block neither prints nor rejects.
    pub fn reports_generated(&self) -> bool {
        let mut reported = self.reported();
        self.left_out.is_empty() || reported.any(|(_, _, kind)| kind == VariableKind::Generated)
    }

    /// Returns the program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Returns the values of data and transformed data, indexed by [`VarId`]. All other variables are `None`.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Returns the parameters in order, each with its type and sizes.
    pub fn parameters(&self) -> &[(VarId, Sized)] {
        &self.parameters
    }

    /// Returns the value of a variable of the data or transformed data.
    pub fn value(&self, var: VarId) -> Option<&Value> {
        self.slots[var.0 as usize].as_deref()
    }

    /// Returns the number of unconstrained coordinates.
    pub fn unconstrained_dim(&self) -> usize {
        self.dim
    }

    /// Creates a machine whose variables have the values of data and transformed data.
    pub fn machine<'m>(&'m self, sink: &'m mut Sink<'m>) -> Machine<'m> {
        Machine::new(
            &self.program,
            &self.locals,
            self.slots.clone(),
            self.limits,
            sink,
        )
        .with_halt(self.halt.clone())
    }

    /// Returns the interrupt that can end the model's evaluations.
    pub fn halt(&self) -> &Halt {
        &self.halt
    }

    /// Returns the log density at the unconstrained point `z`. If `jacobian` is true, the log density includes the
    /// log-Jacobians of the transforms. If `propto` is true, the log density omits the additive constants of `~` and
    /// `_lupdf`.
    ///
    /// # Errors
    /// Fails if the point is rejected ([`ErrorKind::Rejected`]) or the program fails.
    pub fn log_density(&self, z: &[f64], jacobian: bool, propto: bool) -> Eval<f64> {
        self.log_density_with(z, jacobian, propto, &mut |_| {})
    }

    /// Returns the log density that [`BoundModel::log_density`] returns, and sends the output of `print` to `sink`.
    ///
    /// # Errors
    /// Fails as [`BoundModel::log_density`] does.
    pub fn log_density_with(
        &self,
        z: &[f64],
        jacobian: bool,
        propto: bool,
        sink: &mut Sink<'_>,
    ) -> Eval<f64> {
        let mut sink = |line: &str| sink(line);
        let mut machine = self.machine(&mut sink);
        machine.jacobian = jacobian;
        machine.drop_constants = propto;
        self.read_parameters(&mut machine, z)?;
        machine.run(&self.program.transformed_parameters)?;
        check_block(
            &mut machine,
            &self.program.transformed_parameters,
            ErrorKind::Rejected,
        )?;
        machine.run(&self.program.model)?;
        Ok(machine.target)
    }

    /// Sets the machine's parameters to the constrained values of the point `z`, and adds the log-Jacobian to the log
    /// density.
    ///
    /// # Errors
    /// Fails if `z` has the wrong dimension, or if a bound rejects the point.
    pub fn read_parameters(&self, machine: &mut Machine<'_>, z: &[f64]) -> Eval<()> {
        if z.len() != self.dim {
            let message = format!(
                "the point has {} coordinates instead of {}",
                z.len(),
                self.dim
            );
            return Err(FnError::invalid(message).at(Span::default()));
        }
        machine.work(z.len(), Span::default())?;
        let mut rest = z;
        for (decl, (var, ty)) in self.program.parameters.iter().zip(&self.parameters) {
            let mut value = ty.empty();
            for part in parts(decl, ty) {
                let (head, tail) = rest.split_at(coordinates(&part));
                rest = tail;
                let (numbers, jacobian) = constrained(machine, &part, head)?;
                if machine.jacobian {
                    machine.target += jacobian;
                }
                let part_value = part.ty.from_numbers(&mut numbers.into_iter());
                put_part(&mut value, &part.path, part_value);
            }
            machine.slots[var.0 as usize] = Some(Arc::new(value));
        }
        Ok(())
    }

    fn scales_with(&self, machine: &mut Machine<'_>) -> Eval<Vec<Scale>> {
        let mut scales = Vec::with_capacity(self.dim);
        for (decl, (_, ty)) in self.program.parameters.iter().zip(&self.parameters) {
            for part in parts(decl, ty) {
                let transform = machine.transform(part.constraint)?;
                let (rows, cols) = part.ty.unwind().1.leaf_extents();
                let each = match transform.is_elementwise() {
                    true => coordinates(&part),
                    false => transform.coordinates(rows, cols),
                };
                let of = |i: usize| transform.scale(i % each, cols);
                scales.extend((0..coordinates(&part)).map(of));
            }
        }
        Ok(scales)
    }

    fn sections(&self) -> [(&[(VarId, Sized)], VariableKind); 3] {
        [
            (&self.parameters, VariableKind::Parameter),
            (&self.transformed, VariableKind::Transformed),
            (&self.generated, VariableKind::Generated),
        ]
    }

    /// Returns all variables of the program, including those that are not reported.
    pub fn all_variables(&self) -> Vec<Variable> {
        self.all_parts().map(|part| self.variable(part)).collect()
    }

    fn variable(&self, (var, part, kind): (VarId, Part<'_>, VariableKind)) -> Variable {
        let mut shape = part.ty.dims();
        if part.ty.is_complex() {
            shape.insert(0, 2);
        }
        Variable {
            name: format!("{}{}", self.program.var(var).name, part.suffix),
            shape,
            kind,
            integer: matches!(part.ty.unwind().1, Sized::Int),
        }
    }

    fn decl(&self, var: VarId) -> Option<&Decl> {
        let program = &self.program;
        match program.var(var).block {
            BlockKind::Parameters => program.parameters.iter().find(|d| d.var == var),
            BlockKind::TransformedParameters => declarations(&program.transformed_parameters)
                .map(|(d, _)| d)
                .find(|d| d.var == var),
            _ => declarations(&program.generated_quantities)
                .map(|(d, _)| d)
                .find(|d| d.var == var),
        }
    }

    pub(crate) fn reported(&self) -> impl Iterator<Item = (VarId, Part<'_>, VariableKind)> {
        let wanted = |at: usize| self.left_out.get(at) != Some(&true);
        let all = self.all_parts().enumerate();
        all.filter(move |(at, _)| wanted(*at)).map(|(_, part)| part)
    }

    fn all_parts(&self) -> impl Iterator<Item = (VarId, Part<'_>, VariableKind)> {
        self.sections()
            .into_iter()
            .flat_map(move |(section, kind)| {
                section.iter().flat_map(move |(var, ty)| {
                    let parts = self.decl(*var).map_or(Vec::new(), |decl| parts(decl, ty));
                    parts.into_iter().map(move |part| (*var, part, kind))
                })
            })
    }

    /// Returns the values that [`Posterior::constrain`] returns. Errors include their location, and `sink` receives the
    /// output of `print`.
    ///
    /// # Errors
    /// Fails if the model rejects the point, or if the program fails.
    pub fn constrain_with(
        &self,
        z: &[f64],
        key: DrawKey,
        out: &mut Vec<f64>,
        sink: &mut Sink<'_>,
    ) -> Eval<()> {
        let mut sink = |line: &str| sink(line);
        let mut machine = self.machine(&mut sink);
        machine.jacobian = false;
        self.read_parameters(&mut machine, z)?;
        machine.run(&self.program.transformed_parameters)?;
        check_block(
            &mut machine,
            &self.program.transformed_parameters,
            ErrorKind::Rejected,
        )?;
        if self.reports_generated() {
            machine.rng = Some(Draws::new(
                key.seed,
                RandomUse::GeneratedQuantities,
                key.index,
            ));
            machine.run(&self.program.generated_quantities)?;
            check_block(
                &mut machine,
                &self.program.generated_quantities,
                ErrorKind::Rejected,
            )?;
        }
        for (var, part, _) in self.reported() {
            if let Some(value) = &machine.slots[var.0 as usize] {
                part_of(value, &part.path).push_column_major(out);
            }
        }
        Ok(())
    }

    /// Returns the message of an error, preceded by `file:line:column`.
    pub fn locate(&self, error: &EvalError) -> String {
        let location = self.program.location(error.span);
        format!(
            "{location}: {}{}",
            error.message,
            self.where_missing(&error.message)
        )
    }

    /// Returns a note for an error message about NaN. The note lists the elements of the data that are NaN. The note is
    /// empty if the message is not about NaN or if the data contain no NaN.
    pub fn where_missing(&self, message: &str) -> String {
        const NAMED: usize = 3;
        if !message.contains("NaN") {
            return String::new();
        }
        let (mut names, mut count) = (Vec::new(), 0);
        for decl in &self.program.data {
            let Some(value) = self.value(decl.var) else {
                continue;
            };
            let numbers = value.numbers();
            for (at, _) in numbers.iter().enumerate().filter(|(_, x)| x.is_nan()) {
                count += 1;
                if names.len() < NAMED {
                    let name = &self.program.var(decl.var).name;
                    names.push(format!("`{name}{}`", element_name(value, at)));
                }
            }
        }
        match count {
            0 => String::new(),
            1 => format!("; the data element {} is NaN", names[0]),
            _ if count > NAMED => format!(
                "; the data elements {} and {} more are NaN",
                names.join(", "),
                count - NAMED
            ),
            _ => format!("; the data elements {} are NaN", names.join(", ")),
        }
    }
}

/// The numbers are in storage order. The last result is the log-Jacobian.
pub(super) fn constrained(
    machine: &mut Machine<'_>,
    part: &Part<'_>,
    z: &[f64],
) -> Eval<(Vec<f64>, f64)> {
    let transform = machine.transform(part.constraint)?;
    let mut out = Vec::with_capacity(part.ty.scalars());
    if transform.is_elementwise() {
        let jacobian = transform.constrain(z, z.len(), 1, &mut out);
        return Ok((out, jacobian));
    }
    let (dims, leaf) = part.ty.unwind();
    let (rows, cols) = leaf.leaf_extents();
    let each = transform.coordinates(rows, cols);
    let mut jacobian = 0.0;
    for k in 0..dims.iter().product() {
        let z = &z[k * each..(k + 1) * each];
        jacobian += transform.constrain(z, rows, cols, &mut out);
    }
    Ok((out, jacobian))
}

impl Posterior for BoundModel {
    fn variables(&self) -> Vec<Variable> {
        self.reported().map(|part| self.variable(part)).collect()
    }

    fn unconstrained_names(&self) -> Vec<String> {
        let mut names = Vec::with_capacity(self.dim);
        for (var, part, kind) in self.all_parts() {
            if kind != VariableKind::Parameter {
                break;
            }
            let base = format!("{}{}", self.program.var(var).name, part.suffix);
            let (dims, leaf) = part.ty.unwind();
            let outer: usize = dims.iter().product();
            let each = coordinates(&part).checked_div(outer).unwrap_or(0);
            let (rows, cols) = leaf.leaf_extents();
            for k in 0..outer {
                let mut path = Vec::new();
                let mut rest = k;
                for d in dims.iter().rev() {
                    path.insert(0, rest % d + 1);
                    rest /= d;
                }
                for e in 0..each {
                    let mut index = path.clone();
                    // A complex number has two coordinates, which are named after its parts.
                    let (e, rows, unit) = match part.ty.is_complex() {
                        true => (e / 2, rows / 2, [".real", ".imag"][e % 2]),
                        false => (e, rows, ""),
                    };
                    // The coordinate of an element has the index of the element, and other coordinates are numbered.
                    match leaf {
                        Sized::Real | Sized::Int | Sized::Complex => {}
                        Sized::ComplexMatrix(..) => index.extend([e % rows + 1, e / rows + 1]),
                        Sized::Matrix(..) if each == rows * cols => {
                            index.extend([e % rows + 1, e / rows + 1]);
                        }
                        _ => index.push(e + 1),
                    }
                    let index: String = index.iter().map(|i| format!(".{i}")).collect();
                    names.push(format!("{base}{index}{unit}"));
                }
            }
        }
        names
    }

    fn scales(&self) -> Vec<Scale> {
        let mut sink = |_: &str| {};
        let mut machine = self.machine(&mut sink);
        machine.jacobian = false;
        // Bounds may read other parameters.
        self.read_parameters(&mut machine, &vec![0.0; self.dim])
            .and_then(|()| self.scales_with(&mut machine))
            .unwrap_or_default()
    }

    fn constrain(&self, z: &[f64], key: DrawKey, out: &mut Vec<f64>) -> Result<(), ConstrainError> {
        let before = out.len();
        self.constrain_with(z, key, out, &mut |_| {}).map_err(|e| {
            out.truncate(before);
            ConstrainError {
                message: self.locate(&e),
                interrupted: e.kind == ErrorKind::Limit && self.halt().reason().is_some(),
            }
        })
    }

    fn unconstrain(&self, lookup: &Unconstrained<'_>) -> Result<Vec<f64>, ConstrainError> {
        self.unconstrain_some(lookup, false)
    }
}

impl BoundModel {
    /// Computes the unconstrained point as [`Posterior::unconstrain`] does. If `partial` is true, parameters for which
    /// `lookup` has no value are zero on the unconstrained scale.
    ///
    /// # Errors
    /// Fails as [`Posterior::unconstrain`] does.
    pub fn unconstrain_some(
        &self,
        lookup: &Unconstrained<'_>,
        partial: bool,
    ) -> Result<Vec<f64>, ConstrainError> {
        let fail = |message: String| ConstrainError::new(message);
        let mut sink = |_: &str| {};
        let mut machine = self.machine(&mut sink);
        let mut z = Vec::with_capacity(self.dim);
        for (decl, (var, ty)) in self.program.parameters.iter().zip(&self.parameters) {
            let mut value = ty.empty();
            for part in parts(decl, ty) {
                let name = format!("{}{}", self.program.var(*var).name, part.suffix);
                let expected = part.ty.scalars();
                let given = lookup(&name);
                if given.is_none() && partial {
                    let origin = vec![0.0; coordinates(&part)];
                    let (numbers, _) = constrained(&mut machine, &part, &origin)
                        .map_err(|e| fail(self.locate(&e)))?;
                    let part_value = part.ty.from_numbers(&mut numbers.into_iter());
                    z.extend(origin);
                    put_part(&mut value, &part.path, part_value);
                    continue;
                }
                let found = given.ok_or_else(|| {
                    fail(format!(
                        "variable `{name}`: expected {}, found nothing of that name",
                        part.ty.describe()
                    ))
                })?;
                if found.len() != expected {
                    return Err(fail(format!(
                        "variable `{name}`: expected {expected} numbers, found {}",
                        found.len()
                    )));
                }
                let numbers = storage_order(&part.ty, &found);
                let part_value = part.ty.from_numbers(&mut numbers.iter().copied());
                unconstrained(&mut machine, &part, &part_value, &mut z).map_err(|e| {
                    fail(match e {
                        Failure::Eval(e) => self.locate(&e),
                        Failure::Violated(v) => format!(
                            "variable `{name}`: expected {}, found {}",
                            v.expected, v.found
                        ),
                    })
                })?;
                put_part(&mut value, &part.path, part_value);
            }
            machine.slots[var.0 as usize] = Some(Arc::new(value));
        }
        Ok(z)
    }
}

enum Failure {
    Eval(Box<EvalError>),
    Violated(crate::transform::Violation),
}

fn unconstrained(
    machine: &mut Machine<'_>,
    part: &Part<'_>,
    value: &Value,
    z: &mut Vec<f64>,
) -> Result<(), Failure> {
    let transform = machine.transform(part.constraint).map_err(Failure::Eval)?;
    let numbers = value.numbers();
    if transform.is_elementwise() {
        return transform
            .unconstrain(&numbers, numbers.len(), 1, z)
            .map_err(Failure::Violated);
    }
    let (dims, leaf) = part.ty.unwind();
    let (rows, cols) = leaf.leaf_extents();
    let each = rows * cols;
    for k in 0..dims.iter().product() {
        transform
            .unconstrain(&numbers[k * each..(k + 1) * each], rows, cols, z)
            .map_err(Failure::Violated)?;
    }
    Ok(())
}

/// Converts numbers from column-major order over all dimensions to storage order.
fn storage_order(ty: &Sized, column_major: &[f64]) -> Vec<f64> {
    // The numbers 0, 1, … in storage order, read in column-major order, are the storage positions of the numbers in
    // that order.
    let count = ty.scalars();
    let mut order = Vec::with_capacity(count);
    let index_like = match ty.unwind() {
        (dims, Sized::Int) => dims
            .iter()
            .rev()
            .fold(Sized::Real, |inner, n| Sized::Array(*n, Box::new(inner))),
        _ => ty.clone(),
    };
    index_like
        .from_numbers(&mut (0..count).map(|i| i as f64))
        .push_column_major(&mut order);
    let mut out = vec![f64::NAN; count];
    for (at, x) in order.iter().zip(column_major) {
        out[*at as usize] = *x;
    }
    out
}
