//! Lowers Laplace's approximation of latent Gaussian models. The mode is `θ = K a`, where a is the root of `f(a) = a −
//! ∂ll(K a)`. All other quantities are computed from the mode. The derivatives of the likelihood are also built as
//! graphs.
//!
//! The search applies Newton's method to `ll(K a) − ½ aᵀ K a`. In this form, a has the magnitude of the likelihood's
//! derivatives, whatever the scale of K. The derivatives of the root come from two chord steps `a ← a − J⁻¹ f(a)` after
//! the search. In these steps, only f depends on parameters. The root, and the inverse of the Jacobian at the root, are
//! constants. If the first k derivatives of a at the current parameters are correct, the derivative of order k + 1 is
//! also correct after one such step: if the parameters move by h, the error e becomes `(I − J⁻¹ ∂f) e`, whose first
//! factor is of order h. Values, gradients and Hessian-vector products are therefore exact. The graph does not
//! differentiate the search, which has n² parameters.

use jensen_graph::{Graph, NodeId, Op, SolverKind, evaluate, passes};

use super::Lower;
use super::solvers::{inside, unknown_parts};
use crate::functions::laplace::{
    JITTER, LaplaceCall, LaplaceForm, LaplaceSettings, Likelihood, check_latent, density, latent,
    positions,
};
use crate::program::{Callee, Expr, FunRef, Level, Span};
use crate::symbolic::tape::{E, Tape};
use crate::symbolic::value::{Dims, Leaf, Sym};
use crate::value::Value;
use crate::value::error::{Eval, FnError};

struct Observed<'a> {
    name: &'static str,
    likelihood: Likelihood,
    function: Option<&'a FunRef>,
    args: &'a [Sym],
    drop: bool,
    n: usize,
    span: Span,
    site: u32,
}

fn vector(n: usize) -> Dims {
    Dims::leaf(Leaf::Vector(n))
}

fn entries(tuple: &Sym) -> Vec<Sym> {
    match tuple {
        Sym::Tuple(entries) => entries.to_vec(),
        other => match other.known().as_deref() {
            Some(Value::Tuple(entries)) => entries.iter().cloned().map(Sym::from).collect(),
            _ => vec![other.clone()],
        },
    }
}

impl<'g> Lower<'_, 'g> {
    pub(super) fn laplace(
        &mut self,
        (name, form): (&'static str, LaplaceForm),
        args: &[Expr],
        span: Span,
        site: u32,
    ) -> Eval<Sym> {
        let at = |e: FnError| e.at(span);
        let tape = self.tape;
        if form.draws {
            let message = format!("function `{name}` is only available in generated quantities");
            return Err(FnError::unsupported(message).at(span));
        }
        let call = form.arguments(name, args).map_err(at)?;
        let covariance_args = entries(&self.expr(call.covariance_args)?);
        let observed = match form.likelihood {
            Likelihood::Passed => entries(&self.expr(&call.likelihood[0])?),
            Likelihood::Library { .. } => self.exprs(call.likelihood)?,
        };
        let settings = match call.settings {
            Some(expr) => Some(entries(&self.expr(expr)?)),
            None => None,
        };
        let all = covariance_args.iter().chain(&observed);
        if all
            .chain(settings.iter().flatten())
            .any(|v| v.has_records(tape))
        {
            let message = format!("records interact: an argument of {name} differs by record");
            return Err(FnError::records(message).at(span));
        }
        let levels = vec![Level::Param; covariance_args.len()];
        let callee = call.covariance.callee;
        let covariance = self.apply(callee, &covariance_args, &levels, false, span, site)?;
        let extents = covariance.dims().map_err(at)?;
        let Leaf::Matrix(rows, cols) = extents.leaf else {
            return Err(
                FnError::invalid(format!("{name}: the covariance is not a matrix")).at(span),
            );
        };
        let n = latent(name, (rows, cols)).map_err(at)?;
        let (start, found) = self.laplace_settings((name, &call), n, settings.as_deref(), span)?;
        let observed = Observed {
            name,
            likelihood: form.likelihood,
            function: call.function,
            args: &observed,
            drop: call.function.is_some_and(|f| f.unnormalised) && self.drop_constants,
            n,
            span,
            site,
        };
        self.marginal(&observed, found, start, covariance.e(tape).map_err(at)?)
    }

    fn laplace_settings(
        &mut self,
        (name, call): (&'static str, &LaplaceCall<'_>),
        n: usize,
        settings: Option<&[Sym]>,
        span: Span,
    ) -> Eval<(E<'g>, LaplaceSettings)> {
        let at = |e: FnError| e.at(span);
        let block = self.expr(call.block)?.int().map_err(at)?;
        let Some([start, rest @ ..]) = settings else {
            let zeros = self.tape.vector(&vec![0.0; n]);
            return Ok((
                zeros,
                LaplaceSettings::new(name, n, block, None).map_err(at)?,
            ));
        };
        let known: Option<Vec<Value>> = rest
            .iter()
            .map(|s| s.known().map(std::borrow::Cow::into_owned))
            .collect();
        let data = || FnError::invalid(format!("{name}: settings must be data")).at(span);
        let known = known.ok_or_else(data)?;
        let found = LaplaceSettings::new(name, n, block, Some(&known)).map_err(at)?;
        let size = start.dims().map_err(at)?.size();
        check_latent(name, "the start of the search", size, n).map_err(at)?;
        Ok((start.e(self.tape).map_err(at)?, found))
    }

    fn of_latent(&mut self, observed: &Observed<'_>, theta: E<'g>, args: &[Sym]) -> Eval<E<'g>> {
        let (n, span, tape) = (observed.n, observed.span, self.tape);
        let at = |e: FnError| e.at(span);
        let (callee, args, drop) = match observed.likelihood {
            Likelihood::Passed => {
                let function = observed.function.expect("a form with a function has one");
                let theta = Sym::flat(vector(n), theta);
                let args: Vec<Sym> = std::iter::once(theta).chain(args.iter().cloned()).collect();
                (function.callee, args, observed.drop)
            }
            Likelihood::Library {
                density: of,
                dispersed,
            } => {
                let of = density(of).map_err(at)?;
                let index = args[1].known().ok_or_else(|| {
                    FnError::invalid(format!("{}: indices must be data", observed.name)).at(span)
                })?;
                let count = args[0].dims().map_err(at)?.size();
                let index = positions(observed.name, count, &index, n).map_err(at)?;
                if count == 0 {
                    return Ok(tape.constant(0.0));
                }
                let picked = |x: E<'g>| Sym::flat(vector(count), x.gather(&index));
                for (arg, what) in args[2..].iter().zip(if dispersed {
                    &["the vector of dispersions", "the mean"][..]
                } else {
                    &["the mean"][..]
                }) {
                    let found = arg.dims().map_err(at)?.size();
                    check_latent(observed.name, what, found, n).map_err(at)?;
                }
                let mean = args[args.len() - 1].e(tape).map_err(at)?;
                let mut passed = vec![args[0].clone(), picked(mean + theta)];
                if dispersed {
                    passed.push(picked(args[2].e(tape).map_err(at)?));
                }
                (Callee::Builtin(of), passed, false)
            }
        };
        let levels = vec![Level::Param; args.len()];
        let value = self.apply(callee, &args, &levels, drop, span, observed.site)?;
        value.e(tape).map_err(at)
    }

    /// The inputs of the graph are time, θ and `all` parameters. The [derivatives] must have a supported form.
    fn derivatives(&mut self, observed: &Observed<'_>, all: usize, block: usize) -> Eval<Graph> {
        let n = observed.n;
        let likelihood = self.body([0, n, all], |lower, [_, theta, p]| {
            let mut from = 0;
            let args: Vec<Sym> = observed
                .args
                .iter()
                .map(|v| inside(v, p, &mut from))
                .collect();
            lower.of_latent(observed, theta, &args)
        })?;
        let refused = |error: FnError| Err(error.at(observed.span));
        let name = observed.name;
        if likelihood
            .ids()
            .any(|id| matches!(likelihood.op(id), Op::Solver(..)))
        {
            return refused(FnError::unsupported(format!(
                "{name}: the likelihood uses a solver, which has no third derivatives; give a likelihood \
                 without solvers, or sample the latent variables"
            )));
        }
        let derivatives = derivatives(&likelihood, n, block);
        if ends_early(&derivatives) {
            return refused(FnError::unsupported(format!(
                "{name}: the likelihood uses functions without the third and fourth derivatives that gradients \
                 and Hessian-vector products of an approximation need; sample the latent variables"
            )));
        }
        if leaves_blocks(&derivatives, n, block) {
            return refused(FnError::invalid(format!(
                "{name}: the Hessian of the likelihood is not zero outside its blocks of {block}: a term \
                 depends on latent variables of different blocks; give a block size that includes all latent \
                 variables of each term, at most {n}"
            )));
        }
        Ok(derivatives)
    }

    fn marginal(
        &mut self,
        observed: &Observed<'_>,
        settings: LaplaceSettings,
        start: E<'g>,
        covariance: E<'g>,
    ) -> Eval<Sym> {
        let (n, tape) = (observed.n, self.tape);
        let mut parts = Vec::new();
        observed
            .args
            .iter()
            .for_each(|value| unknown_parts(tape, value, &mut parts));
        let mut parts: Vec<E<'g>> = parts.into_iter().map(|id| tape.e(id)).collect();
        let m: usize = parts.iter().map(|part| part.len()).sum();
        let known = covariance.values();
        if known.is_none() {
            parts.push(covariance);
        }
        let all = m + if known.is_none() { n * n } else { 0 };
        let block = settings.block;
        let derivatives = self.derivatives(observed, all, block)?;
        let mut root = settings.root;
        root.parameters = all;
        let passed = tape.concat(&parts);
        let at = |graph: &Graph, theta: E<'g>, parameters: E<'g>| -> Vec<E<'g>> {
            let inputs = [None, Some(theta.id), (all > 0).then_some(parameters.id)];
            let found = passes::inlined(graph, &inputs, &mut tape.graph.borrow_mut());
            found.into_iter().map(|id| tape.e(id)).collect()
        };
        let fixed = passed.held();
        let unit = identity(tape, n);
        let times = |matrix: E<'g>, x: E<'g>| matrix.matmul(x, n, n, 1);
        // I − H K for the covariance K and the Hessian H of the likelihood in columns.
        let jacobian =
            |found: &[E<'g>]| unit - hessian_times(tape, &found[2..], covariance.held(), n, block);
        let known_start = start.values();
        let body = equations(&derivatives, (n, m, block), known.as_deref());
        let begin = if known_start.is_some_and(|zeros| zeros.iter().all(|x| *x == 0.0)) {
            start
        } else {
            // A Newton step from any start in θ gives a start in a. If that start is worse than a = 0, the search
            // starts at 0.
            let start = start.held();
            let found = at(&derivatives, start, fixed);
            let off = found[1] - times(hessian_times(tape, &found[2..], unit, n, block), start);
            let a = jacobian(&found).solve(off, n, 1, false);
            let objective = |a: E<'g>| {
                let theta = times(covariance.held(), a);
                at(&derivatives, theta, fixed)[0] - (a * theta).sum() * 0.5
            };
            let zeros = tape.vector(&vec![0.0; n]);
            let (reached, least) = (objective(a), objective(zeros));
            let usable = reached.abs().lt(reached.num(f64::INFINITY));
            let usable = reached.lt(least).select(reached.num(0.0), usable);
            usable.select(a, zeros)
        };
        let root = self.solved(SolverKind::Root(root), body, &[begin.held(), fixed]);
        let there = at(&derivatives, times(covariance.held(), root), fixed);
        let inverse = jacobian(&there).solve(unit, n, n, false);
        let slope = {
            let mut graph = derivatives.clone();
            graph.set_outputs(vec![derivatives.outputs()[1]]);
            passes::compact(&graph)
        };
        let mut a = root;
        for _ in 0..2 {
            let off = a - at(&slope, times(covariance, a), passed)[0];
            a = a - times(inverse, off);
        }
        let theta = times(covariance, a);
        let found = at(&derivatives, theta, passed);
        let curved = unit - hessian_times(tape, &found[2..], covariance, n, block);
        if observed.function.is_some() {
            self.must_be_mode(covariance, curved, n);
        }
        let quadratic = (a * theta).sum();
        Ok((found[0] - (quadratic + curved.log_abs_det(n)) * 0.5).into())
    }

    /// Rejects draws whose root is not a mode: `K (I − H K)`, which is congruent to `K⁻¹ − H`, must be positive
    /// definite.
    fn must_be_mode(&self, covariance: E<'g>, curved: E<'g>, n: usize) {
        let diagonal: Vec<u32> = (0..n as u32).map(|i| i * (n as u32 + 1)).collect();
        let size = covariance.gather(&diagonal).sum() * (JITTER / n as f64);
        let both = covariance.matmul(curved, n, n, n) + size * identity(self.tape, n);
        let factor = both.cholesky(n).sum();
        let finite = factor.lt(factor.num(f64::INFINITY));
        self.tape.reject_where(finite.not());
    }
}

/// Builds the equations `a − ∂ll(K a)`, their Jacobian and the objective. The equations are NaN if the likelihood is
/// not finite. The inputs are those of the likelihood's derivatives, except that a replaces θ. If K is not known, its
/// elements follow the first `m` parameters.
fn equations(
    derivatives: &Graph,
    (n, m, block): (usize, usize, usize),
    known: Option<&[f64]>,
) -> Graph {
    let tape = Tape::default();
    let [_, a, parameters] = derivatives
        .inputs()
        .iter()
        .map(|input| tape.graph.borrow_mut().input(input.len))
        .collect::<Vec<NodeId>>()[..]
    else {
        unreachable!("a clock, unknowns and parameters")
    };
    let a = tape.e(a);
    let covariance = match known {
        Some(values) => tape.vector(values),
        None => tape.e(parameters).slice(m, n * n),
    };
    let theta = covariance.matmul(a, n, n, 1);
    let inputs = [None, Some(theta.id), Some(parameters)];
    let found = passes::inlined(derivatives, &inputs, &mut tape.graph.borrow_mut());
    let found: Vec<E<'_>> = found.into_iter().map(|id| tape.e(id)).collect();
    let value = found[0];
    let finite = value.abs().lt(tape.constant(f64::INFINITY));
    let off = finite.select(a - found[1], tape.constant(f64::NAN));
    let jacobian = identity(&tape, n) - hessian_times(&tape, &found[2..], covariance, n, block);
    let objective = value - (a * theta).sum() * 0.5;
    let outputs = vec![off.id, jacobian.id, objective.id];
    let mut graph = tape.graph.into_inner();
    graph.set_outputs(outputs);
    passes::compact(&graph)
}

fn identity(tape: &Tape, n: usize) -> E<'_> {
    let unit: Vec<f64> = (0..n * n)
        .map(|k| f64::from(u8::from(k % (n + 1) == 0)))
        .collect();
    tape.vector(&unit)
}

/// Builds the likelihood, its gradient, and `block` sums of columns of its Hessian. If the Hessian has blocks of this
/// extent, the nonzero elements of the columns in a sum do not overlap.
fn derivatives(likelihood: &Graph, n: usize, block: usize) -> Graph {
    let mut graph = likelihood.clone();
    let value = graph.outputs()[0];
    let theta = graph.input_node(1);
    let slope = graph.gradient(value, &[theta])[0];
    let mut outputs: Vec<NodeId> = vec![value, slope];
    for k in 0..block {
        let seed: Vec<f64> = (0..n)
            .map(|i| f64::from(u8::from(i % block == k)))
            .collect();
        let seed = graph.vector(&seed);
        let column = graph.tangent(&[slope], &[(theta, seed)])[0];
        outputs.push(column.unwrap_or_else(|| graph.vector(&vec![0.0; n])));
    }
    graph.set_outputs(outputs);
    passes::compact(&graph)
}

/// Returns whether the Hessian has entries outside its blocks. The function compares the product of the Hessian and a
/// vector with the product of the blocks and the same vector, at a point where the Hessian is finite.
fn leaves_blocks(derivatives: &Graph, n: usize, block: usize) -> bool {
    /// A difference is more than rounding error if it exceeds this number times the sum of the absolute terms.
    const TOLERANCE: f64 = 1e-6;
    let numbers = |count: usize, shift: f64| -> Vec<f64> {
        (0..count).map(|i| (1.7 * i as f64 + shift).sin()).collect()
    };
    let mut graph = derivatives.clone();
    let (theta, slope) = (graph.input_node(1), derivatives.outputs()[1]);
    let direction = numbers(n, 0.4);
    let seed = graph.vector(&direction);
    let Some(product) = graph.tangent(&[slope], &[(theta, seed)])[0] else {
        return false;
    };
    graph.set_outputs([&[product], &derivatives.outputs()[2..]].concat());
    let graph = passes::compact(&graph);
    let lens: Vec<usize> = graph.inputs().iter().map(|input| input.len).collect();
    // Many parameters are positive.
    [0.9, 2.3].into_iter().any(|shift| {
        let clock = vec![0.0; lens[0]];
        let theta = numbers(lens[1], shift);
        let parameters: Vec<f64> = numbers(lens[2], shift).iter().map(|x| x.abs()).collect();
        let found = evaluate(&graph, &[&clock, &theta, &parameters], None);
        (0..n).any(|i| {
            let terms = (0..block).map(|k| found[1 + k][i] * direction[i / block * block + k]);
            let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
            let rest: f64 = found[0][i] - sum;
            rest.is_finite() && rest.abs() > TOLERANCE * (size + found[0][i].abs())
        })
    })
}

/// Returns whether the first or second derivatives of the Hessian's columns contain constant NaNs that the Hessian
/// itself does not contain. Such a NaN stands for the derivative of an operation that cannot be differentiated again.
fn ends_early(derivatives: &Graph) -> bool {
    let marked = |graph: &Graph| {
        let is_marked = |id| {
            let values: Option<&[f64]> = graph.constant_value(id);
            values.is_some_and(|x| x.iter().any(|x| x.is_nan()))
        };
        graph.ids().any(is_marked)
    };
    let mut graph = derivatives.clone();
    let inputs = [1, 2].map(|slot| graph.input_node(slot));
    let columns: Vec<NodeId> = derivatives.outputs()[2..].to_vec();
    let sum_of = |graph: &mut Graph, nodes: &[NodeId]| {
        let sums: Vec<NodeId> = nodes.iter().map(|node| graph.sum(*node)).collect();
        graph.add_all(&sums)
    };
    let total = sum_of(&mut graph, &columns);
    let third = graph.gradient(total, &inputs);
    let total = sum_of(&mut graph, &third);
    let fourth = graph.gradient(total, &inputs);
    graph.set_outputs([third, fourth].concat());
    !marked(derivatives) && marked(&passes::compact(&graph))
}

/// Returns the product `H X` of the likelihood's Hessian with an `n × n` matrix X. `columns` are sums of columns of
/// the Hessian's blocks.
fn hessian_times<'g>(tape: &'g Tape, columns: &[E<'g>], x: E<'g>, n: usize, block: usize) -> E<'g> {
    if let [diagonal] = columns {
        let row: Vec<u32> = (0..n * n).map(|k| (k % n) as u32).collect();
        return diagonal.gather(&row) * x;
    }
    // Row i of sum k is the entry of column k of the block that i is in.
    let position = |k: usize, i: usize| ((i / block * block + k) * n + i) as u32;
    let index: Vec<u32> = (0..block)
        .flat_map(|k| (0..n).map(move |i| position(k, i)))
        .collect();
    let hessian = tape.concat(columns).scatter(&index, n * n);
    hessian.matmul(x, n, n, n)
}
