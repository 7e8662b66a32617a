//! Builds the graph of the reported values of a draw: parameters, transformed parameters, generated quantities.

use jensen_graph::{Graph, NodeId, passes};

use super::random::{LibraryCall, Random, StandardCall};
use super::{Lower, LowerError, LowerOptions, with_stack};
use crate::interpret::BoundModel;
use crate::program::Program;
use crate::symbolic::index;
use crate::symbolic::tape::{E, Tape};
use crate::symbolic::value::{Cell, Sym, assemble};
use crate::value::column_major;
use crate::value::error::{FnError, FnResult};
use crate::value::sized::{Part, Sized, part_of};

/// Programs with larger graphs are left to the interpreter.
const NODE_LIMIT: usize = 4_000_000;

/// The graph of a program's reported values, and the random numbers that this graph receives.
#[derive(Clone, Debug)]
pub struct LoweredOutputs {
    /// The graph of the reported values. Input 0 contains the unconstrained coordinates, and the other inputs receive
    /// random numbers. The first outputs are the arguments of the calls in each stage. The next outputs are the
    /// reported values, in the order of [`BoundModel`]'s variables. The last output is nonzero if the program rejects
    /// the draw.
    pub graph: Graph,
    /// The calls that draw standard random numbers. These numbers are drawn before the first stage.
    pub standard: Vec<StandardCall>,
    /// The calls of library functions in each stage. A stage may depend on the random numbers of earlier stages.
    pub stages: Vec<Vec<LibraryCall>>,
    /// Whether each reported value is the same for every draw.
    pub known: Vec<bool>,
}

/// Builds the graph of the reported values.
///
/// # Errors
/// Fails if the program uses a construct that cannot be expressed in the graph. Also fails if its control flow depends
/// on a draw in a way that only the interpreter supports, or if the program fails for these data.
pub fn lower_outputs(bound: &BoundModel) -> Result<LoweredOutputs, LowerError> {
    with_stack(|| lower_here(bound))
}

fn lower_here(bound: &BoundModel) -> Result<LoweredOutputs, LowerError> {
    let tape = Tape::default();
    let z = tape.e(tape.graph.borrow_mut().input(bound.unconstrained_dim()));
    let program: &Program = bound.program();
    let options = LowerOptions {
        propto: false,
        jacobian: false,
        node_limit: NODE_LIMIT,
    };
    let mut lower = Lower::new(program, &tape, options, bound);
    lower.random = Some(Random::default());
    lower.parameters(z, bound.parameters())?;
    let generated = bound.reports_generated();
    let generated = generated.then_some(&program.generated_quantities);
    for block in std::iter::once(&program.transformed_parameters).chain(generated) {
        lower.block(block)?;
        lower.check_transformed(block)?;
    }
    let mut cells = Vec::new();
    for (var, part, _) in bound.reported() {
        let span = program.var(var).span;
        if let Some(value) = &lower.slots[var.0 as usize] {
            push(&tape, value, &part, &mut cells).map_err(|e| e.at(span))?;
        }
    }
    let random = lower.random.take().unwrap_or_default();
    let turned = lower.turning.turned;
    drop(lower);
    tape.graph.borrow_mut().set_site(0);
    let arguments = random.stages.iter().map(|stage| &stage.cells);
    let mut outputs: Vec<NodeId> = arguments.map(|cells| assemble(&tape, cells).id).collect();
    outputs.push(assemble(&tape, &cells).id);
    let guards: Vec<E<'_>> = tape.guards.borrow().iter().map(|id| tape.e(*id)).collect();
    outputs.push(tape.add_all(&guards).id);
    let mut graph = tape.graph.into_inner();
    if turned {
        // Discards the columns of iterations.
        graph = passes::settled(&graph, &outputs);
    } else {
        graph.set_outputs(outputs);
    }
    Ok(LoweredOutputs {
        graph,
        standard: random.standard,
        stages: random.stages.into_iter().map(|stage| stage.calls).collect(),
        known: cells
            .iter()
            .map(|cell| matches!(cell, Cell::Const(_)))
            .collect(),
    })
}

fn push(tape: &Tape, value: &Sym, part: &Part<'_>, out: &mut Vec<Cell>) -> FnResult<()> {
    let mut stored = Vec::new();
    within(tape, value, &part.path, &part.ty, &mut stored)?;
    if stored.len() != part.ty.scalars() {
        return Err(FnError::invalid("a value of another size than declared"));
    }
    let inner = part.ty.unwind().1.scalars();
    let unit = if part.ty.is_complex() { 2 } else { 1 };
    out.extend(column_major(&part.ty.unwind().0, inner, unit).map(|at| stored[at]));
    Ok(())
}

fn within(
    tape: &Tape,
    value: &Sym,
    path: &[usize],
    ty: &Sized,
    out: &mut Vec<Cell>,
) -> FnResult<()> {
    if let Some(known) = value.known() {
        let numbers = part_of(&known, path).numbers();
        out.extend(numbers.into_iter().map(Cell::Const));
        return Ok(());
    }
    if let Some((k, rest)) = path.split_first() {
        return match value {
            Sym::Array(parts) | Sym::Tuple(parts) if *k < parts.len() => {
                within(tape, &parts[*k], rest, ty, out)
            }
            other => within(tape, &index::component(other, *k)?, rest, ty, out),
        };
    }
    match (value, ty) {
        (Sym::Array(parts), Sized::Array(_, element)) => {
            let mut parts = parts.iter();
            parts.try_for_each(|part| within(tape, part, path, element, out))
        }
        (Sym::Complex(parts), _) => {
            let (re, im) = (parts[0].to_cells(tape)?, parts[1].to_cells(tape)?);
            out.extend(re.into_iter().zip(im).flat_map(|(re, im)| [re, im]));
            Ok(())
        }
        _ => {
            let cells = value.to_cells(tape)?.into_iter();
            match ty.is_complex() {
                true => out.extend(cells.flat_map(|re| [re, Cell::Const(0.0)])),
                false => out.extend(cells),
            }
            Ok(())
        }
    }
}
