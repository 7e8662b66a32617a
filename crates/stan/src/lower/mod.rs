//! Lowers a program with its data to the expression graph of its log density.
//!
//! Lowering evaluates the program over symbolic values. Expressions that depend only on data are computed as in the
//! interpreter, and all other expressions become nodes of the graph. Lowering unrolls loops, inlines functions, and
//! follows only one side of a branch if the condition depends only on data. If the condition depends on parameters,
//! lowering processes both sides and selects between the results. Each node carries the source expression from which it
//! was created, so that the copies of a loop body can be recognised and merged into vector operations.
//!
//! | file | subject |
//! | --- | --- |
//! | `expr`, `stmt`, `branch`, `masked`, `call`, `hoist` | the evaluator |
//! | `solvers` | differential equations, systems of equations, integrals |
//! | `laplace` | Laplace's approximation of latent Gaussian models |
//! | `params`, `checks` | constrained parameters, checks of transformed ones |
//! | `outputs`, `random` | the reported values of a draw, and their random numbers |
//! | `records` | the axis of exchangeable records: prior and likelihood separately |
//! | `iterations` | the iterations of a loop, lowered together |
//! | `trial` | lowering with made-up data, for programs that are only checked |

mod branch;
mod call;
mod checks;
mod expr;
mod hoist;
mod iterations;
mod laplace;
mod outputs;
mod params;
mod random;
mod records;
mod solvers;
mod stmt;
mod trial;

use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use jensen_density::Posterior;
use jensen_graph::{Ending, Graph, NodeId, Scattered, passes};

pub use self::outputs::{LoweredOutputs, lower_outputs};
pub use self::random::{Argument, LibraryCall, Numbers, Standard, StandardCall};
pub use self::records::{LoweredRecords, RecordData, lower_block, lower_records, record_data};
pub use self::trial::refusals;

use crate::functions::random::Address;
use crate::interpret::BoundModel;
use crate::program::function_locals;
use crate::program::{Expr, Program, Span, Stmt, StmtKind, VarId};
use crate::symbolic::functions::Cx;
use crate::symbolic::index;
use crate::symbolic::tape::{E, Tape};
use crate::symbolic::value::Sym;
use crate::value::error::{ErrorKind, Eval, EvalError, FnError, Halt};
use crate::value::sized;

/// Options for the graph of a log density.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowerOptions {
    /// Whether to omit the additive constants of `~` and of densities called as `_lupdf` and `_lupmf`.
    pub propto: bool,
    /// Whether to add the log-Jacobians of the parameters' transforms.
    pub jacobian: bool,
    /// The largest number of nodes during construction. The number of executed statements and iterations is also
    /// limited. That limit is half of this number, but at least 10⁷.
    pub node_limit: usize,
}

impl Default for LowerOptions {
    /// Returns options for the full density with the log-Jacobian, in a graph of at most 2·10⁷ nodes.
    fn default() -> Self {
        LowerOptions {
            propto: false,
            jacobian: true,
            node_limit: 20_000_000,
        }
    }
}

/// The log density of a program with its data, as a graph.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The graph of the log density. Input 0 contains the unconstrained coordinates. Output 0 is the log density,
    /// which is NaN for draws that the program rejects.
    pub graph: Graph,
    /// The number of unconstrained coordinates.
    pub dim: usize,
    /// The names of the coordinates, such as `theta.1`.
    pub names: Vec<String>,
    /// The values to which the program gives a location and a scale.
    pub scattered: Vec<Scattered>,
}

/// The reason why no graph can be built for a program.
#[derive(Clone, Debug, PartialEq)]
pub struct LowerError {
    /// The kind of the problem. After an error of kind [`ErrorKind::Unsupported`] or [`ErrorKind::Limit`], the
    /// interpreter may still be able to evaluate the program.
    pub kind: ErrorKind,
    /// The location of the construct in the source.
    pub span: Span,
    /// The message, in one line.
    pub message: String,
}

impl fmt::Display for LowerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LowerError {}

impl From<Box<EvalError>> for LowerError {
    fn from(error: Box<EvalError>) -> Self {
        LowerError {
            kind: error.kind,
            span: error.span,
            message: error.message,
        }
    }
}

const DEPTH_LIMIT: u32 = 1000;

/// A program may execute at most this many statements and iterations. If half of the node limit is larger, that number
/// is the limit instead.
const STEP_LIMIT: u64 = 10_000_000;

/// The number of steps between two checks of the interrupt.
const ASK_EVERY: u64 = 256;

/// The size of a stack for [`DEPTH_LIMIT`] levels, in bytes. Only the pages that are used need memory.
#[cfg(not(target_family = "wasm"))]
const STACK: usize = 256 << 20;

/// Builds the expression graph of the log density.
///
/// # Errors
/// Fails if the program applies an unsupported construct to parameters, if the graph would exceed the node limit, or if
/// the program fails for these data at every value of the parameters.
pub fn lower(bound: &BoundModel, options: LowerOptions) -> Result<Lowered, LowerError> {
    with_stack(|| lower_here(bound, options))
}

/// Runs `lower` on a separate thread with a large stack, because the recursion follows the nesting of the program.
#[cfg(not(target_family = "wasm"))]
fn with_stack<T: Send>(
    lower: impl FnOnce() -> Result<T, LowerError> + Send,
) -> Result<T, LowerError> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("jensen-lower".into())
            .stack_size(STACK)
            .spawn_scoped(scope, lower)
            .map_err(|error| LowerError {
                kind: ErrorKind::Limit,
                span: Span::default(),
                message: format!(
                    "cannot start a thread with a stack of {} MiB to compile the program: {error}: use fewer \
                     threads, or raise `ulimit -v`",
                    STACK >> 20
                ),
            })?
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// For platforms without threads. A program that is nested too deeply for a browser's stack fails on these platforms.
#[cfg(target_family = "wasm")]
fn with_stack<T>(lower: impl FnOnce() -> Result<T, LowerError>) -> Result<T, LowerError> {
    lower()
}

fn lower_here(bound: &BoundModel, options: LowerOptions) -> Result<Lowered, LowerError> {
    let lowered = build(bound, options);
    match &lowered {
        Err(error) if error.kind == ErrorKind::Limit => {}
        // Constants that are folded after an interrupt are NaN. An error about their values would hide the interrupt.
        _ => bound.halt().check(Span::default())?,
    }
    lowered
}

fn build(bound: &BoundModel, options: LowerOptions) -> Result<Lowered, LowerError> {
    let tape = Tape::default();
    let halt = bound.halt().clone();
    let ending = Ending::new(move || halt.reason().is_some());
    tape.graph.borrow_mut().end_by(&ending);
    let dim = bound.unconstrained_dim();
    let z = tape.e(tape.graph.borrow_mut().input(dim));
    let program: &Program = bound.program();
    let mut lower = Lower::new(program, &tape, options, bound);
    lower.parameters(z, bound.parameters())?;
    lower.block(&program.transformed_parameters)?;
    lower.check_transformed(&program.transformed_parameters)?;
    lower.block(&program.model)?;
    let output = lower.log_density();
    let turned = lower.turning.turned;
    let halt = lower.halt.clone();
    drop(lower);
    let go_on = || halt.check(Span::default());
    go_on()?;
    let mut scattered = tape.scattered.into_inner();
    let mut graph = tape.graph.into_inner();
    let roots = scattered.iter().flat_map(Scattered::nodes);
    let roots: Vec<NodeId> = std::iter::once(output).chain(roots).collect();
    if turned {
        // Discards the columns of iterations.
        graph = passes::settled(&graph, &roots);
    } else {
        graph.set_outputs(roots);
    }
    go_on()?;
    graph = passes::repeats(graph);
    go_on()?;
    let made = graph.outputs().to_vec();
    for (one, ids) in scattered.iter_mut().zip(made[1..].chunks_exact(3)) {
        for (node, made) in one.nodes_mut().into_iter().zip(ids) {
            *node = *made;
        }
    }
    graph.set_outputs(vec![made[0]]);
    graph.end_by(&Ending::default());
    Ok(Lowered {
        graph,
        dim,
        names: bound.unconstrained_names(),
        scattered,
    })
}

struct Unrolled {
    span: Span,
    what: String,
    /// `usize::MAX` if the number of iterations is known only at the end.
    trips: usize,
    /// The reason why the iterations are not vectorised.
    apart: Option<EvalError>,
}

/// A `return` under a condition that depends on parameters. The code after the `return` applies only to draws for which
/// the condition is false.
struct Exit<'g> {
    /// A number that is 1 for draws where the function has returned.
    condition: E<'g>,
    value: Option<Sym>,
    /// The number of terms of the log density before the `return`.
    terms: usize,
    /// The number of guards before the `return`.
    guards: usize,
}

struct Lower<'p, 'g> {
    program: &'p Program,
    tape: &'g Tape,
    options: LowerOptions,
    halt: Halt,
    slots: Vec<Option<Sym>>,
    locals: Vec<Vec<VarId>>,
    terms: Vec<NodeId>,
    exits: Vec<Exit<'g>>,
    loops: Vec<Unrolled>,
    builders: HashMap<usize, call::Resolved>,
    products: Vec<hoist::Product<'g>>,
    turning: iterations::Turning<'g>,
    assigned: HashMap<usize, Rc<[VarId]>>,
    drop_constants: bool,
    axis: Option<records::Axis>,
    /// `None` where random numbers are not allowed.
    random: Option<random::Random>,
    address: Address,
    /// Identifies the chain of calls that creates the current nodes. The provenance of each node includes this number.
    site_base: u32,
    depth: u32,
    steps: u64,
}

impl<'p, 'g> Lower<'p, 'g> {
    fn new(
        program: &'p Program,
        tape: &'g Tape,
        options: LowerOptions,
        bound: &BoundModel,
    ) -> Self {
        tape.limits
            .replace((bound.halt().clone(), Some(options.node_limit)));
        Lower {
            program,
            tape,
            options,
            halt: bound.halt().clone(),
            slots: bound
                .slots()
                .iter()
                .map(|slot| slot.clone().map(Sym::from))
                .collect(),
            locals: function_locals(program),
            terms: Vec::new(),
            exits: Vec::new(),
            loops: Vec::new(),
            builders: HashMap::new(),
            products: Vec::new(),
            turning: iterations::Turning::default(),
            assigned: HashMap::new(),
            drop_constants: options.propto,
            axis: None,
            random: None,
            address: Address::default(),
            site_base: 0,
            depth: 0,
            steps: 0,
        }
    }

    fn block(&mut self, stmts: &[Stmt]) -> Eval<()> {
        self.stmts(stmts).map(|_| ())
    }

    fn check_transformed(&mut self, stmts: &[Stmt]) -> Eval<()> {
        for stmt in stmts {
            let StmtKind::Decl(decl) = &stmt.kind else {
                continue;
            };
            let var = self.program.var(decl.var);
            self.tape
                .graph
                .borrow_mut()
                .set_site(self.declaration_site(decl.var));
            let records = self.record_type(&decl.ty, &var.name)?;
            let ty = match &records {
                Some(ty) => ty.clone(),
                None => self.resolve(&decl.ty, &var.name)?,
            };
            for part in sized::parts(decl, &ty) {
                if *part.constraint == crate::program::Constraint::None {
                    continue;
                }
                let Some(mut value) = self.slots[decl.var.0 as usize].clone() else {
                    continue;
                };
                if let Sym::Records(one) = value {
                    value = (*one).clone();
                }
                for k in &part.path {
                    value = match &value {
                        Sym::Array(parts) | Sym::Tuple(parts) => parts[*k].clone(),
                        other => index::component(other, *k).map_err(|e| e.at(var.span))?,
                    };
                }
                self.check_part(part.constraint, &value, &var.name, var.span)?;
            }
        }
        Ok(())
    }

    fn check_part(
        &mut self,
        constraint: &crate::program::Constraint,
        value: &Sym,
        name: &str,
        span: Span,
    ) -> Eval<()> {
        use crate::program::Constraint::{Lower as Low, LowerUpper, Upper};
        let bounds: Vec<Sym> = match constraint {
            Low(a) | Upper(a) => vec![self.expr(a)?],
            LowerUpper(a, b) => vec![self.expr(a)?, self.expr(b)?],
            _ => Vec::new(),
        };
        if value.has_records(self.tape) {
            return self.check_records(constraint, &bounds, value, name, span);
        }
        let cx = self.cx("constraint");
        let violated = checks::violated(&cx, constraint, &bounds, value).map_err(|e| e.at(span))?;
        if let Some(bad) = violated {
            if bad.scalar().is_some_and(|bad| bad != 0.0) {
                let message = format!(
                    "variable `{name}` violates its constraint for all parameter values, because it depends \
                     only on data"
                );
                return Err(FnError::domain(message).at(span));
            }
            self.tape.reject_where(bad);
        }
        Ok(())
    }

    /// The log density is NaN for draws where a guard is nonzero.
    fn log_density(&mut self) -> NodeId {
        let tape = self.tape;
        tape.graph.borrow_mut().set_site(0);
        let total = self.target();
        let guards: Vec<E<'g>> = tape.guards.borrow().iter().map(|id| tape.e(*id)).collect();
        if guards.is_empty() {
            return total.id;
        }
        tape.add_all(&guards)
            .select(tape.constant(f64::NAN), total)
            .id
    }

    fn target(&self) -> E<'g> {
        let terms: Vec<E<'g>> = self.terms.iter().map(|id| self.tape.e(*id)).collect();
        self.tape.add_all(&terms)
    }

    fn cx(&self, name: &'static str) -> Cx<'g> {
        Cx {
            tape: self.tape,
            name,
        }
    }

    fn site(&self, expr: &Expr) {
        let site = self.site_base.wrapping_mul(0x9e37_79b9) ^ (expr.id.0 + 1);
        self.tape.graph.borrow_mut().set_site(site);
    }

    fn declaration_site(&self, var: VarId) -> u32 {
        self.program.expr_count + 1 + var.0
    }

    fn step(&mut self, span: Span) -> Eval<()> {
        if self.steps.is_multiple_of(ASK_EVERY) {
            self.halt.check(span)?;
        }
        self.steps += 1;
        let nodes = self.tape.graph.borrow().len();
        if nodes > self.options.node_limit {
            return Err(self.too_large(span));
        }
        let steps = STEP_LIMIT.max(self.options.node_limit as u64 / 2);
        if self.steps > steps {
            let gave_up = format!("stopped after {steps} steps");
            return Err(match self.loops.iter().any(|l| l.trips < usize::MAX) {
                true => self.unrolled_too_far(&gave_up, span),
                false => limit(format!("{gave_up}: does this loop or recursion end?"), span),
            });
        }
        Ok(())
    }

    fn too_large(&self, span: Span) -> Box<EvalError> {
        let exceeds = format!(
            "the graph of the log density exceeds {} nodes",
            self.options.node_limit
        );
        self.unrolled_too_far(&exceeds, span)
    }

    fn unrolled_too_far(&self, limit_text: &str, span: Span) -> Box<EvalError> {
        match self.loops.iter().max_by_key(|l| l.trips) {
            None => limit(format!("{limit_text} (--memory-limit)"), span),
            Some(largest) => {
                let nest: Vec<String> = self
                    .loops
                    .iter()
                    .map(|l| match l.trips {
                        usize::MAX => format!("`{}`", l.what),
                        trips => format!("`{}` {trips} times", l.what),
                    })
                    .collect();
                let why = largest.apart.as_ref().map_or(String::new(), |why| {
                    let location = self.program.location(why.span);
                    format!(
                        ", whose iterations Jensen runs one by one ({} at {location})",
                        why.message
                    )
                });
                limit(
                    format!(
                        "{limit_text} while unrolling {}{why}; write this loop with vectors, which remain one \
                         operation at any length, or raise the limit (--memory-limit)",
                        nest.join(" in ")
                    ),
                    largest.span,
                )
            }
        }
    }

    fn nested<T>(&mut self, span: Span, body: impl FnOnce(&mut Self) -> Eval<T>) -> Eval<T> {
        if self.depth >= DEPTH_LIMIT {
            let message = format!("stopped {DEPTH_LIMIT} levels deep: does this recursion end?");
            return Err(FnError::excess(message).at(span));
        }
        self.depth += 1;
        let result = body(self);
        self.depth -= 1;
        result
    }
}

fn limit(message: String, span: Span) -> Box<EvalError> {
    FnError::limit(message).at(span)
}
