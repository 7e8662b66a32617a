//! Lowers the random numbers of generated quantities.
//!
//! A graph does not draw random numbers but receives them as inputs. If a formula computes a random number from
//! standard random numbers, the caller draws the standard numbers in advance. All other random numbers come from
//! library calls, whose arguments must be computed first. The arguments and other expressions may themselves depend on
//! random numbers, so the graph is evaluated in stages.

use jensen_graph::{NodeId, Op};

use super::Lower;
use crate::functions::random::Address;
use crate::library;
use crate::program::{BuiltinId, Call, Expr, Type};
use crate::symbolic::functions::Cx;
use crate::symbolic::tape::{E, Tape};
use crate::symbolic::value::{Cell, Dims, Leaf, Sym};
use crate::value::Value;
use crate::value::error::{Eval, FnError, FnResult};
use crate::value::sized::Sized;

/// The largest number of stages. Each stage recomputes the results of the earlier stages, so a graph with many stages
/// is slow.
const MOST_STAGES: usize = 8;

/// The smallest size of the first input. Later inputs are larger.
const FIRST_INPUT: usize = 64;

/// A distribution without parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// The normal distribution with mean 0 and variance 1.
    Normal,
    /// The uniform distribution on (0, 1).
    Uniform,
    /// The exponential distribution with rate 1.
    Exponential,
}

/// A range of the numbers in an input of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The index of the input.
    pub input: usize,
    /// The index of the first number.
    pub first: usize,
    /// The number of elements.
    pub len: usize,
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A known value.
    Known(Value),
    /// Values that the stage computes.
    Computed {
        /// The index of the first number among the stage's results, in storage order.
        first: usize,
        /// The type of the argument.
        ty: Sized,
    },
}

/// A call that needs numbers from a standard distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct StandardCall {
    /// The address of the call.
    pub address: Address,
    /// The distribution of the numbers.
    pub of: Standard,
    /// The position in the inputs at which the graph receives the numbers.
    pub to: Numbers,
}

/// A call of a library function.
#[derive(Clone, Debug, PartialEq)]
pub struct LibraryCall {
    /// The address of the call.
    pub address: Address,
    /// The function.
    pub function: BuiltinId,
    /// The arguments of the call.
    pub args: Vec<Argument>,
    /// The index of one of the stage's results. This result is 0 for draws that skip the call.
    pub taken: Option<usize>,
    /// The position in the inputs at which the graph receives the numbers.
    pub to: Numbers,
}

/// Calls whose arguments are computed by the same evaluation of the graph.
#[derive(Debug, Default)]
pub(super) struct Stage {
    pub(super) calls: Vec<LibraryCall>,
    pub(super) cells: Vec<Cell>,
}

#[derive(Debug)]
struct Input {
    node: NodeId,
    /// The number of stages that must run before the input can be filled.
    level: usize,
    used: usize,
    len: usize,
}

#[derive(Debug, Default)]
pub(super) struct Random {
    pub(super) standard: Vec<StandardCall>,
    pub(super) stages: Vec<Stage>,
    inputs: Vec<Input>,
    /// The number of stages that must run before each node is known.
    levels: Vec<usize>,
}

impl Random {
    fn level(&mut self, tape: &Tape, nodes: impl Iterator<Item = NodeId>) -> usize {
        let graph = tape.graph.borrow();
        for id in graph.ids().skip(self.levels.len()) {
            let level = match graph.op(id) {
                Op::Input(0) => 0,
                Op::Input(slot) => self.inputs[slot as usize - 1].level,
                _ => {
                    let args = graph.args(id).iter();
                    args.map(|arg| self.levels[arg.index()]).max().unwrap_or(0)
                }
            };
            self.levels.push(level);
        }
        nodes.map(|id| self.levels[id.index()]).max().unwrap_or(0)
    }

    fn room<'g>(&mut self, tape: &'g Tape, level: usize, len: usize) -> (Numbers, E<'g>) {
        let fits = |input: &Input| input.level == level && input.len - input.used >= len;
        let at = match self.inputs.iter().rposition(fits) {
            Some(at) => at,
            None => {
                let earlier = self.inputs.iter().filter(|input| input.level == level);
                let size = earlier.map(|input| 2 * input.len).max();
                let size = size.unwrap_or(FIRST_INPUT).max(len);
                self.inputs.push(Input {
                    node: tape.graph.borrow_mut().input(size),
                    level,
                    used: 0,
                    len: size,
                });
                self.inputs.len() - 1
            }
        };
        let input = &mut self.inputs[at];
        let range = Numbers {
            input: at + 1,
            first: input.used,
            len,
        };
        input.used += len;
        let numbers = tape.e(input.node).slice(range.first, len);
        (range, numbers)
    }
}

impl Lower<'_, '_> {
    pub(super) fn random_call(&mut self, expr: &Expr, id: BuiltinId, call: &Call) -> Eval<Sym> {
        let args = self.exprs(&call.args)?;
        self.site(expr);
        let types: Vec<&Type> = call.args.iter().map(|arg| &arg.ty).collect();
        let address = self.address.at(expr.span);
        self.drawn(id, address, &args, &types, &expr.ty)
            .map_err(|e| e.at(expr.span))
    }

    fn drawn(
        &mut self,
        id: BuiltinId,
        address: Address,
        args: &[Sym],
        types: &[&Type],
        result: &Type,
    ) -> FnResult<Sym> {
        let (name, tape) = (id.name(), self.tape);
        let Some(random) = &mut self.random else {
            let message = format!("{name}: random numbers are not available here");
            return Err(FnError::invalid(message));
        };
        let dims = dims_of_result(id, args, result)?;
        let value = |numbers: E<'_>| match dims.is_scalar() {
            true => numbers.into(),
            false => Sym::flat(dims.clone(), numbers),
        };
        if let Some(Formula { of, each, formula }) = standard(name)
            && let Some(e) = arguments(tape, args, each.then_some(dims.size()))?
        {
            let (to, numbers) = random.room(tape, 0, dims.size());
            random.standard.push(StandardCall { address, of, to });
            let (numbers, bad) = formula(&self.cx(name), &e, numbers);
            if let Some(bad) = bad {
                tape.reject_where(bad);
            }
            return Ok(value(numbers));
        }
        let mut nodes = Vec::new();
        let mut cells = Vec::new();
        for arg in args {
            let own = match arg.is_known() {
                true => Vec::new(),
                false => arg.to_cells(tape)?,
            };
            nodes.extend(own.iter().filter_map(|cell| match cell {
                Cell::Elem(id, _) => Some(*id),
                Cell::Const(_) => None,
            }));
            cells.push(own);
        }
        let taken = tape.taken.get();
        nodes.extend(taken);
        let level = random.level(tape, nodes.into_iter());
        if level >= MOST_STAGES {
            return Err(FnError::unsupported(
                "the interpreter draws random numbers that depend sequentially on many others",
            ));
        }
        let (to, numbers) = random.room(tape, level + 1, dims.size());
        if random.stages.len() <= level {
            random.stages.resize_with(level + 1, Stage::default);
        }
        let stage = &mut random.stages[level];
        let mut passed = Vec::with_capacity(args.len());
        for ((arg, own), ty) in args.iter().zip(cells).zip(types) {
            passed.push(match arg.known() {
                Some(known) => Argument::Known(known.into_owned()),
                None => {
                    let first = stage.cells.len();
                    stage.cells.extend(own);
                    let ty = sized(ty, &arg.dims()?)?;
                    Argument::Computed { first, ty }
                }
            });
        }
        let taken = taken.map(|id| {
            stage.cells.push(Cell::Elem(id, 0));
            stage.cells.len() - 1
        });
        stage.calls.push(LibraryCall {
            address,
            function: id,
            args: passed,
            taken,
            to,
        });
        Ok(value(numbers))
    }
}

/// A random number, and the condition under which it must not be drawn.
type Made<'g> = (E<'g>, Option<E<'g>>);

struct Formula {
    of: Standard,
    each: bool,
    formula: for<'g> fn(&Cx<'g>, &[E<'g>], E<'g>) -> Made<'g>,
}

/// The formula is the same as in the function's row in `distributions`.
fn standard(name: &str) -> Option<Formula> {
    let each = |of, formula| Formula {
        of,
        each: true,
        formula,
    };
    Some(match name {
        "std_normal_rng" => each(Standard::Normal, |_, _, u| (u, None)),
        "normal_rng" => each(Standard::Normal, |cx, x, u| {
            (x[0] + x[1] * u, Some(not_positive(cx, x[1])))
        }),
        "lognormal_rng" => each(Standard::Normal, |cx, x, u| {
            ((x[0] + x[1] * u).exp(), Some(not_positive(cx, x[1])))
        }),
        "exponential_rng" => each(Standard::Exponential, |cx, x, u| {
            (u * x[0].recip(), Some(not_positive(cx, x[0])))
        }),
        "uniform_rng" => each(Standard::Uniform, |_, x, u| {
            (x[0] + (x[1] - x[0]) * u, Some(x[0].lt(x[1]).not()))
        }),
        "bernoulli_rng" => each(Standard::Uniform, |cx, x, u| {
            let (low, high) = (cx.num(0.0).le(x[0]), x[0].le(cx.num(1.0)));
            (u.lt(x[0]), Some((low * high).not()))
        }),
        "bernoulli_logit_rng" => each(Standard::Uniform, |_, x, u| {
            (u.lt(x[0].inv_logit()), Some(x[0].eq(x[0]).not()))
        }),
        "categorical_rng" => Formula {
            of: Standard::Uniform,
            each: false,
            formula: |cx, x, u| {
                let negative = cx.num(0.0).le(x[0]).not().sum();
                let other_sum = (x[0].sum() - 1.0).abs().le(cx.num(1e-8)).not();
                (category(x[0], u), Some(negative + other_sum))
            },
        },
        "categorical_logit_rng" => Formula {
            of: Standard::Uniform,
            each: false,
            formula: |cx, x, u| {
                let weights = (x[0] - x[0].log_sum_exp()).exp();
                let infinite = x[0].abs().lt(cx.num(f64::INFINITY)).not();
                (category(weights, u), Some(infinite))
            },
        },
        _ => return None,
    })
}

/// Returns the category that the uniform number `u` selects. Category k is selected if `u` lies between the cumulative
/// sums of `weights` before and after k.
fn category<'g>(weights: E<'g>, u: E<'g>) -> E<'g> {
    match weights.len() {
        0 | 1 => weights.num(1.0),
        n => weights.cumsum().slice(0, n - 1).le(u).sum() + 1.0,
    }
}

fn not_positive<'g>(cx: &Cx<'g>, x: E<'g>) -> E<'g> {
    cx.num(0.0).lt(x).not()
}

/// Returns `None` if an argument is neither a scalar nor has `len` elements. If `len` is `None`, any number of elements
/// is allowed.
fn arguments<'g>(tape: &'g Tape, args: &[Sym], len: Option<usize>) -> FnResult<Option<Vec<E<'g>>>> {
    let e: Vec<E<'g>> = args
        .iter()
        .map(|arg| arg.e(tape))
        .collect::<FnResult<_>>()?;
    let fits = |e: &E<'g>| len.is_none_or(|len| e.len() == len || e.len() == 1);
    Ok(e.iter().all(fits).then_some(e))
}

fn dims_of_result(id: BuiltinId, args: &[Sym], result: &Type) -> FnResult<Dims> {
    let name = id.name();
    let array = |n: usize| Dims {
        array: vec![n],
        leaf: Leaf::Scalar,
    };
    if matches!(result, Type::Int | Type::Real) {
        return Ok(Dims::leaf(Leaf::Scalar));
    }
    if library::is_univariate(id) {
        let container = args.iter().find(|arg| !arg.is_scalar());
        return container.map_or(Ok(array(1)), |arg| Ok(array(arg.dims()?.size())));
    }
    let locations = |mu: &Sym| -> FnResult<Dims> {
        let dims = mu.dims()?;
        Ok(Dims {
            leaf: Leaf::Vector(dims.leaf.size()),
            ..dims
        })
    };
    match name {
        "multi_normal_rng" | "multi_normal_cholesky_rng" => locations(&args[0]),
        "multi_student_t_rng" | "multi_student_t_cholesky_rng" => locations(&args[1]),
        "dirichlet_rng" => Ok(Dims::leaf(Leaf::Vector(args[0].dims()?.size()))),
        "multinomial_rng" | "multinomial_logit_rng" | "dirichlet_multinomial_rng" => {
            Ok(array(args[0].dims()?.size()))
        }
        "wishart_rng" | "wishart_cholesky_rng" | "inv_wishart_rng" | "inv_wishart_cholesky_rng" => {
            args[1].dims()
        }
        "lkj_corr_rng" | "lkj_corr_cholesky_rng" => {
            let n = args[0].size("the dimension")?;
            Ok(Dims::leaf(Leaf::Matrix(n, n)))
        }
        _ => Err(FnError::unsupported(format!(
            "the interpreter draws random numbers of `{name}`"
        ))),
    }
}

fn sized(ty: &Type, dims: &Dims) -> FnResult<Sized> {
    let (mut extents, mut ty) = (dims.array.iter(), ty);
    let mut array = Vec::new();
    while let Type::Array(element) = ty {
        let extent = extents.next();
        array.push(*extent.ok_or_else(|| FnError::invalid("an array without an extent"))?);
        ty = element;
    }
    let leaf = match (ty, dims.leaf) {
        (Type::Int, Leaf::Scalar) => Sized::Int,
        (Type::Real, Leaf::Scalar) => Sized::Real,
        (Type::Vector, Leaf::Vector(n)) => Sized::Vector(n),
        (Type::RowVector, Leaf::Row(n)) => Sized::RowVector(n),
        (Type::Matrix, Leaf::Matrix(rows, cols)) => Sized::Matrix(rows, cols),
        _ => {
            return Err(FnError::unsupported(
                "an argument that is not a container of reals is not supported here; the interpreter evaluates \
                 it instead",
            ));
        }
    };
    let array = array.into_iter().rev();
    Ok(array.fold(leaf, |inner, n| Sized::Array(n, Box::new(inner))))
}
