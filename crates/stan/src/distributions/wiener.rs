//! The distribution of the time at which a Wiener process leaves an interval through its upper boundary. The drift, the
//! start and the nondecision time of the process may vary from trial to trial. The module also contains the
//! distribution functions (Blurton, Kesselmeier and Gondan 2017, "The first-passage time distribution for the diffusion
//! model with variable drift"; Henrich et al. 2024, "The seven-parameter diffusion model: an implementation in Stan").
//!
//! If the drift is normal and the other parameters do not vary, the density has a closed form, [`log_density`]. All
//! other functions integrate this density by Gauss–Legendre quadrature over the start, which is uniform, and over the
//! logarithm of time. A uniform nondecision time only changes the weights in the integral over time, so no third
//! integral is necessary. The distribution functions are not divided by the probability that the process leaves through
//! the upper boundary.

use jensen_graph::ElemOp;
use jensen_math::quadrature::gauss_legendre;
use jensen_math::special::{log_sum_exp_slice, log_wiener};

use super::formula::{Whole, WholeFormula};
use crate::functions::{Builtin, Keep, NamedBuiltin};
use crate::program::Level;
use crate::symbolic::domain::{Domain, check, guard};
use crate::symbolic::functions::Cx;
use crate::symbolic::tape::E;
use crate::symbolic::value::Sym;
use crate::value::Value;
use crate::value::error::{FnError, FnResult};

const STARTS: usize = 16;
const TIMES: usize = 64;

/// Twice the largest difference of log densities that the integral over time takes into account. Earlier times are
/// ignored, because the density there is smaller than at the end of the range by a factor of e⁻⁴⁰.
const FALL: f64 = 80.0;

/// The length of the range of times after the outcome, in units of the squared separation. Later times are ignored,
/// because the density has decreased by a factor of e⁻⁴⁹.
const BEYOND: f64 = 10.0;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Density,
    Below,
    Above,
}

/// The names and implementations of the distribution functions.
pub const TABLE: &[NamedBuiltin] = &[
    (
        "wiener_lcdf_unnorm",
        Builtin::Pure(|a| total("wiener_lcdf_unnorm", Of::Below, a).map(Value::Real)),
    ),
    (
        "wiener_lccdf_unnorm",
        Builtin::Pure(|a| total("wiener_lccdf_unnorm", Of::Above, a).map(Value::Real)),
    ),
];

/// The formulas that build the distribution functions in the graph.
pub const LOWERED: &[(&str, WholeFormula)] = &[
    ("wiener_lcdf_unnorm", |whole| add_total(whole, Of::Below)),
    ("wiener_lccdf_unnorm", |whole| add_total(whole, Of::Above)),
];

/// Returns the log density of outcomes whose parameters vary from trial to trial. The function takes more arguments
/// than `wiener`.
///
/// # Errors
/// Fails if an argument is outside its domain, or sizes do not match.
pub fn varying(keep: Keep, args: &[&Value]) -> FnResult<f64> {
    match keep.on(u32::MAX) {
        true => total("wiener_lpdf", Of::Density, args),
        false => Ok(0.0),
    }
}

/// Lowers the log density with parameters that vary from trial to trial.
///
/// # Errors
/// Fails as [`varying`] does.
pub fn lower_varying(whole: &mut Whole<'_, '_>) -> FnResult<()> {
    let passed = whole.passed;
    if !whole.density.drop || passed.iter().any(|arg| arg.level == Level::Param) {
        add_total(whole, Of::Density)?;
    }
    Ok(())
}

fn add_total(whole: &mut Whole<'_, '_>, of: Of) -> FnResult<()> {
    let args: Vec<Sym> = whole.passed.iter().map(|arg| arg.sym.clone()).collect();
    let total = lowered(&whole.cx(), of, &args)?;
    whole.density.terms.push(total);
    Ok(())
}

/// Returns the number of arguments, without the optional last argument. In Stan, the last argument sets the precision.
/// Jensen ignores this argument, because the result always has the requested precision.
fn parameters(name: &str, count: usize) -> FnResult<usize> {
    match count {
        5 | 6 if name != "wiener_lpdf" => Ok(5),
        6 | 7 => Ok(6),
        8 | 9 => Ok(8),
        _ => Err(FnError::invalid(format!("{name}: {count} arguments"))),
    }
}

fn equal_sizes(name: &str, sizes: impl IntoIterator<Item = usize>) -> FnResult<usize> {
    let mut sizes = sizes.into_iter();
    let first = sizes.next().unwrap_or(0);
    match sizes.find(|n| *n != first) {
        Some(other) => Err(FnError::invalid(format!(
            "{name}: sizes do not match: {first} and {other} elements"
        ))),
        None => Ok(first),
    }
}

const ARGUMENTS: [(&str, Domain); 8] = [
    ("the random variable", Domain::PositiveFinite),
    ("the boundary separation", Domain::PositiveFinite),
    ("the nondecision time", Domain::NonNegativeFinite),
    ("the relative starting point", Domain::Unit),
    ("the drift rate", Domain::Finite),
    (
        "the variability of the drift rate",
        Domain::NonNegativeFinite,
    ),
    (
        "the variability of the starting point",
        Domain::NonNegativeFinite,
    ),
    (
        "the variability of the nondecision time",
        Domain::NonNegativeFinite,
    ),
];

const DECISION: &str = "the random variable minus the nondecision time";
const LOWEST: &str = "the lowest starting point";
const HIGHEST: &str = "one minus the highest starting point";

fn total(name: &str, of: Of, args: &[&Value]) -> FnResult<f64> {
    let count = parameters(name, args.len())?;
    let columns: Vec<Vec<f64>> = args[..count].iter().map(|arg| arg.numbers()).collect();
    let n = equal_sizes(name, columns.iter().map(Vec::len))?;
    let mut sum = 0.0;
    for i in 0..n {
        let mut x = [0.0; 8];
        for (x, column) in x.iter_mut().zip(&columns) {
            *x = column[i];
        }
        for (x, (what, domain)) in x.iter().zip(ARGUMENTS) {
            check(name, what, domain, &[*x])?;
        }
        let [y, _, tau, beta, _, _, spread, _] = x;
        check(name, DECISION, Domain::Positive, &[y - tau])?;
        check(name, LOWEST, Domain::Positive, &[beta - 0.5 * spread])?;
        check(
            name,
            HIGHEST,
            Domain::Positive,
            &[1.0 - beta - 0.5 * spread],
        )?;
        sum += known(of, x);
    }
    Ok(sum)
}

/// The time `t` is measured from the end of the nondecision time. The drift is normal with mean `delta` and standard
/// deviation `sigma`.
fn log_density(t: f64, alpha: f64, from: f64, delta: f64, sigma: f64) -> f64 {
    let (way, variance) = (alpha * from, sigma * sigma);
    let stretch = 1.0 + variance * t;
    let drift = 0.5 * (variance * way * way + 2.0 * way * delta - delta * delta * t) / stretch;
    drift - 2.0 * alpha.ln() - 0.5 * stretch.ln() + log_wiener(t / (alpha * alpha), from)
}

/// A range of decision times over which the density is integrated. Each kind of range has its own weights.
#[derive(Clone, Copy)]
enum Range {
    /// The range is a single time, which is the time of the outcome.
    Point,
    /// All times up to the earliest possible decision, which contribute to the lower tail.
    Before,
    /// All times between the earliest and the latest possible decision, which contribute to the density and to both
    /// tails.
    Within,
    /// All times after the latest possible decision, which contribute to the upper tail.
    Beyond,
}

fn ranges(of: Of, spread: bool) -> &'static [Range] {
    match (of, spread) {
        (Of::Density, false) => &[Range::Point],
        (Of::Density, true) => &[Range::Within],
        (Of::Below, false) => &[Range::Before],
        (Of::Below, true) => &[Range::Before, Range::Within],
        (Of::Above, false) => &[Range::Beyond],
        (Of::Above, true) => &[Range::Within, Range::Beyond],
    }
}

/// The quadrature nodes for all combinations of starts and times. Each node has a start and a time, both scaled to the
/// interval from 0 to 1, and the logarithm of its weight.
struct Grid {
    starts: Vec<f64>,
    times: Vec<f64>,
    log_weights: Vec<f64>,
}

impl Grid {
    fn new(starts: usize, times: usize) -> Self {
        let (outer, inner) = (gauss_legendre(starts), gauss_legendre(times));
        let mut grid = Self {
            starts: Vec::new(),
            times: Vec::new(),
            log_weights: Vec::new(),
        };
        for (start, w) in outer.nodes.iter().zip(&outer.weights) {
            for (time, v) in inner.nodes.iter().zip(&inner.weights) {
                grid.starts.push(*start);
                grid.times.push(*time);
                grid.log_weights.push((w * v).ln());
            }
        }
        grid
    }
}

fn known(of: Of, [y, alpha, tau, beta, delta, sigma, spread, range]: [f64; 8]) -> f64 {
    let (last, from) = (y - tau, 1.0 - beta);
    let starts = if spread == 0.0 { 1 } else { STARTS };
    let mut terms = Vec::new();
    for piece in ranges(of, range > 0.0) {
        let earliest = last - range;
        if matches!(piece, Range::Before) && earliest <= 0.0 {
            continue;
        }
        let point = matches!(piece, Range::Point);
        let grid = Grid::new(starts, if point { 1 } else { TIMES });
        for i in 0..grid.starts.len() {
            let w = from + spread * (grid.starts[i] - 0.5);
            if point {
                terms.push(log_density(last, alpha, w, delta, sigma) + grid.log_weights[i]);
                continue;
            }
            let high = match piece {
                Range::Before => earliest,
                Range::Beyond => last + BEYOND * alpha * alpha,
                _ => last,
            };
            let way = alpha * w;
            let least = 1.0 / (1.0 / high + FALL / (way * way));
            let low = match piece {
                Range::Before => least,
                Range::Beyond => last.max(least),
                _ => earliest.max(least),
            };
            // log(high / low), computed from the amount by which high exceeds one of the two values of low, because the
            // difference high − low may have few correct digits.
            let fall = FALL * high / (way * way);
            let more = match piece {
                Range::Before => fall,
                Range::Beyond => fall.min(BEYOND * alpha * alpha / low),
                _ => fall.min(range / low),
            };
            let length = more.ln_1p();
            let log_t = low.ln() + length * grid.times[i];
            let t = log_t.exp();
            let left = -high * (length * (grid.times[i] - 1.0)).exp_m1();
            let share = match (piece, of) {
                (Range::Within, Of::Density) => -range.ln(),
                (Range::Within, Of::Below) => (left / range).ln(),
                (Range::Within, Of::Above) => (-left / range).ln_1p(),
                _ => 0.0,
            };
            let weight = grid.log_weights[i] + log_t + length.ln() + share;
            terms.push(log_density(t, alpha, w, delta, sigma) + weight);
        }
    }
    log_sum_exp_slice(&terms)
}

fn lowered<'g>(cx: &Cx<'g>, of: Of, args: &[Sym]) -> FnResult<E<'g>> {
    let count = parameters(cx.name, args.len())?;
    let sizes = args[..count].iter().map(|arg| Ok(arg.dims()?.size()));
    let n = equal_sizes(cx.name, sizes.collect::<FnResult<Vec<usize>>>()?)?;
    let columns: Vec<Vec<E<'g>>> = args[..count]
        .iter()
        .map(|arg| cx.elements(arg))
        .collect::<FnResult<_>>()?;
    let mut totals = Vec::with_capacity(n);
    for i in 0..n {
        cx.tape.go_on()?;
        let mut x = [cx.num(0.0); 8];
        for (x, column) in x.iter_mut().zip(&columns) {
            *x = column[i];
        }
        for (x, (what, domain)) in x.iter().zip(ARGUMENTS) {
            guard(cx.name, *x, what, domain)?;
        }
        let [y, _, tau, beta, _, _, spread, _] = x;
        guard(cx.name, y - tau, DECISION, Domain::Positive)?;
        if spread.scalar() != Some(0.0) {
            guard(cx.name, beta - 0.5 * spread, LOWEST, Domain::Positive)?;
            guard(
                cx.name,
                1.0 - beta - 0.5 * spread,
                HIGHEST,
                Domain::Positive,
            )?;
        }
        totals.push(unknown(cx, of, x));
    }
    Ok(cx.tape.add_all(&totals))
}

fn log_density_of<'g>([t, alpha, from, delta, sigma]: [E<'g>; 5]) -> E<'g> {
    let (way, variance) = (alpha * from, sigma.square());
    let stretch = variance * t;
    let drift = variance * way.square() + 2.0 * (way * delta) - delta.square() * t;
    let drift = 0.5 * drift / (1.0 + stretch);
    let standard = (t / alpha.square()).op2(ElemOp::LogWiener, from);
    drift - 2.0 * alpha.log() - 0.5 * stretch.log1p() + standard
}

/// Builds the function in the graph. For known arguments, [`known`] computes the same function.
fn unknown<'g>(cx: &Cx<'g>, of: Of, x: [E<'g>; 8]) -> E<'g> {
    let [y, alpha, tau, beta, delta, sigma, spread, range] = x;
    let (last, from, zero) = (y - tau, 1.0 - beta, cx.num(0.0));
    let (one_start, one_time) = (spread.scalar() == Some(0.0), range.scalar() == Some(0.0));
    if of == Of::Density && one_start && one_time {
        return log_density_of([last, alpha, from, delta, sigma]);
    }
    if x.iter().any(|x| x.is_record()) {
        return cx
            .tape
            .no_form("an integral over times or starts of each record");
    }
    let earliest = last - range;
    let mut pieces = Vec::new();
    for piece in ranges(of, !one_time) {
        let point = matches!(piece, Range::Point);
        let starts = if one_start { 1 } else { STARTS };
        let grid = Grid::new(starts, if point { 1 } else { TIMES });
        let weights = cx.tape.vector(&grid.log_weights);
        let w = from + spread * (cx.tape.vector(&grid.starts) - cx.num(0.5));
        if point {
            pieces.push(log_density_of([last, alpha, w, delta, sigma]) + weights);
            continue;
        }
        // If the nondecision time can exceed the earliest decision, the range of earlier times is empty, and 1 replaces
        // its end.
        let none = earliest.le(zero);
        let high = match piece {
            Range::Before => none.select(cx.num(1.0), earliest),
            Range::Beyond => last + BEYOND * alpha.square(),
            _ => last,
        };
        let least = (high.recip() + FALL * (alpha * w).square().recip()).recip();
        let low = match piece {
            Range::Before => least,
            Range::Beyond => last.fmax(least),
            _ => earliest.fmax(least),
        };
        let fall = FALL * high / (alpha * w).square();
        let more = match piece {
            Range::Before => fall,
            Range::Beyond => fall.fmin(BEYOND * alpha.square() / low),
            _ => fall.fmin(range / low),
        };
        let length = more.log1p();
        let times = cx.tape.vector(&grid.times);
        let log_t = low.log() + length * times;
        let t = log_t.exp();
        let left = -high * (length * (times - cx.num(1.0))).expm1();
        let density = log_density_of([t, alpha, w, delta, sigma]);
        let term = density + weights + log_t + length.log();
        pieces.push(match (piece, of) {
            (Range::Within, Of::Density) => term - range.log(),
            (Range::Within, Of::Below) => term + left.log() - range.log(),
            (Range::Within, Of::Above) => term + (-left / range).log1p(),
            (Range::Before, _) => none.select(cx.num(f64::NEG_INFINITY), term),
            _ => term,
        });
    }
    cx.tape.concat(&pieces).log_sum_exp()
}
