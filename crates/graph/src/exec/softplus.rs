//! Computes sums of log(1 + exp(·)) over rows, together with inverse logits. The sums are either unweighted or weighted
//! by a column of data. Such sums are the terms of logistic and negative binomial likelihoods.
//!
//! Σ log(1 + exp(x)) is the sum of the positive parts of x, plus the logarithm of the product of all 1 + exp(−|x|). A
//! separate logarithm for each element would cost as much as all other work together. The kernel stores the product
//! minus 1, which retains full precision even if every exp(−|x|) is tiny. This matters because a likelihood may
//! multiply such a sum by a precision parameter as large as 10²⁰. Rows of equal weight share a product. This saves
//! logarithms, because weights that are counts have few distinct values. If the weights are known when the graph is
//! planned, the products of all rows are stored next to the sums. If the weights become known only later, each product
//! extends over only a few rows.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jensen_math::simd::{F64x8, LANES, Simd};
use jensen_math::vmath as vm;

use crate::exec::kernels::Operand;
use crate::exec::plan::{Arg, Instruction, Planner, Region, Step, Target};
use crate::exec::stages::{KernelDraft, Sink};
use crate::ir::{NodeId, Shape};
use crate::ops::ElemOp;

/// A value log(1 + exp(x)) that is read only by sums.
pub(super) struct Softplus {
    pub x: NodeId,
    plain: Option<Sink>,
    weighted: Option<(NodeId, Sink)>,
}

#[derive(Default)]
pub(super) struct Softpluses {
    /// The values, identified by the index of their last sum in the kernel.
    pub found: BTreeMap<usize, Softplus>,
    /// The nodes that are computed as parts of the sums.
    pub absorbed: HashSet<NodeId>,
    /// The sums that are computed here, identified by their index in the kernel.
    pub taken: HashSet<usize>,
}

impl Softplus {
    pub fn reads(&self) -> Vec<NodeId> {
        let weights = self.weighted.map(|(column, _)| column);
        [Some(self.x), weights].into_iter().flatten().collect()
    }
}

impl Planner<'_> {
    /// Finds the sums of log(1 + exp(·)) in a kernel. `inside` counts how often each value is read within the kernel.
    pub(super) fn softpluses(
        &self,
        draft: &KernelDraft,
        inside: &HashMap<NodeId, u32>,
    ) -> Softpluses {
        let graph = self.graph;
        let uses = |id: NodeId| self.stages.uses[id.index()];
        let is_softplus = |id: NodeId| {
            graph.elem_op(id) == Some(ElemOp::Log1pExp) && inside.get(&id) == Some(&uses(id))
        };
        let mut by_value: BTreeMap<NodeId, Vec<(usize, Option<NodeId>)>> = BTreeMap::new();
        for (which, sink) in draft.sinks.iter().enumerate() {
            let of = sink.source;
            if sink.map.is_some() {
                continue;
            }
            if is_softplus(of) {
                by_value.entry(of).or_default().push((which, None));
            } else if inside.get(&of) == Some(&1)
                && uses(of) == 1
                && let Some((column, value)) = self.factors(of)
                && is_softplus(value)
            {
                by_value
                    .entry(value)
                    .or_default()
                    .push((which, Some(column)));
            }
        }
        let mut all = Softpluses::default();
        for (value, sums) in by_value {
            let weighted = sums.iter().filter(|(_, column)| column.is_some()).count();
            if sums.len() != uses(value) as usize || weighted > 1 || sums.len() - weighted > 1 {
                continue;
            }
            let mut softplus = Softplus {
                x: graph.args(value)[0],
                plain: None,
                weighted: None,
            };
            all.absorbed.insert(value);
            for (which, column) in &sums {
                let sink = draft.sinks[*which];
                all.taken.insert(*which);
                match column {
                    None => softplus.plain = Some(sink),
                    Some(column) => {
                        all.absorbed.insert(sink.source);
                        softplus.weighted = Some((*column, sink));
                    }
                }
            }
            let last = sums.iter().map(|(which, _)| *which).max();
            all.found.insert(last.expect("a value has sums"), softplus);
        }
        all
    }

    pub(super) fn softplus_instruction(
        &mut self,
        softplus: &Softplus,
        read: &[Arg],
        target: Option<Target>,
    ) -> Instruction {
        let sinks = [softplus.plain, softplus.weighted.map(|(_, sink)| sink)];
        let sums = sinks.map(|sink| sink.map(|sink| (self.sink_rows(sink.node), 0)));
        let weights = softplus.weighted.map(|(column, _)| column);
        let classes = weights.and_then(|column| self.classes(column));
        let weights = match (weights, &classes) {
            (None, _) => NONE,
            (Some(_), None) => RUNS,
            (Some(_), Some(_)) => CLASSES,
        };
        Instruction::Softplus {
            kernel: softplus_kernel(self.simd, target.is_some(), weights),
            target,
            sums,
            args: [read[0], *read.last().expect("an operand")],
            arity: read.len(),
            classes,
        }
    }

    fn classes(&mut self, column: NodeId) -> Option<Classes> {
        let values = self.graph.constant_value(column)?;
        let mut weights: Vec<f64> = Vec::new();
        let mut known: HashMap<u64, u8> = HashMap::new();
        let mut numbers = Vec::with_capacity(values.len());
        for value in values {
            let number = *known.entry(value.to_bits()).or_insert(weights.len() as u8);
            if usize::from(number) == weights.len() {
                weights.push(*value);
            }
            if weights.len() > MOST_CLASSES {
                return None;
            }
            numbers.push(number);
        }
        let rows = self.new_rows(Shape::fixed(weights.len()));
        let Region::Arena(slot) = rows.region else {
            unreachable!("rows of the arena")
        };
        self.zeroed.push(true);
        self.steps.push(Step::Zero {
            slot,
            offset: 0,
            rows: weights.len(),
        });
        Some(Classes {
            numbers: numbers.into(),
            weights: weights.into(),
            products: (slot, 0),
        })
    }
}

#[derive(Clone)]
pub(crate) struct Classes {
    numbers: Arc<[u8]>,
    weights: Arc<[f64]>,
    /// The location of the products of the classes: a slot, and the offset of their rows in the slot.
    pub products: (u32, usize),
}

impl Classes {
    /// Returns the products in `rows` for a tile. The tile extends from row `first` to row `end` of `total` rows.
    ///
    /// # Safety
    /// The memory must belong to the plan of these classes, and the tile must be within its rows.
    pub unsafe fn of(
        &self,
        rows: *mut f64,
        lanes: usize,
        [first, end, total]: [usize; 3],
    ) -> Products<'_> {
        Products {
            numbers: &self.numbers[first..end],
            weights: &self.weights,
            // SAFETY: the offsets of the plan are inside the memory, which belongs to the plan.
            products: unsafe { rows.add(self.products.1 * lanes) },
            end: end == total || end / FACTORS > first / FACTORS,
        }
    }
}

/// For each weight, the product over the rows with this weight. A kernel multiplies further rows into these products.
#[derive(Clone, Copy)]
pub(crate) struct Products<'a> {
    numbers: &'a [u8],
    weights: &'a [f64],
    products: *mut f64,
    end: bool,
}

impl Products<'_> {
    pub const NONE: Self = Self {
        numbers: &[],
        weights: &[],
        products: std::ptr::null_mut(),
        end: false,
    };
}

/// Computes `dst[r] = inv_logit(a[r])` if there is a destination, `plain += Σ log1p_exp(a[r])` if there is an
/// unweighted sum, and `weighted += Σ w[r] · log1p_exp(a[r])` if there is a weighted sum. The arguments are the
/// destination, the two sums, `[a, w]`, the products for the classes of w, the number of rows, and the number of lanes.
pub(crate) type SoftplusKernel =
    unsafe fn(*mut f64, [*mut f64; 2], *const Operand, &Products<'_>, usize, usize);

/// The forms of the weights: no weights, weights that are sorted a few rows at a time, and weights with few distinct
/// values.
const NONE: u8 = 0;
const RUNS: u8 = 1;
const CLASSES: u8 = 2;

/// The largest number of distinct weights for which each weight has its own product. These products occupy part of the
/// cache during each block of lanes.
const MOST_CLASSES: usize = 64;

trait Form {
    const INVERSE: bool;
    const WEIGHTS: u8;
}

struct Of<const INVERSE: bool, const WEIGHTS: u8>;

impl<const INVERSE: bool, const WEIGHTS: u8> Form for Of<INVERSE, WEIGHTS> {
    const INVERSE: bool = INVERSE;
    const WEIGHTS: u8 = WEIGHTS;
}

const SORTED: usize = 16;

/// A product of this many factors does not overflow, because each factor is at most 2.
const FACTORS: usize = 512;

struct Runs {
    rows: [u8; SORTED],
    /// The end of each run of rows that have the same weight.
    ends: [u8; SORTED],
    weights: [f64; SORTED],
    count: usize,
}

impl Runs {
    /// Sorts `count` rows, starting at `first`, into runs of equal weight.
    ///
    /// # Safety
    /// The operand must have these rows, and `count` must be at most [`SORTED`].
    #[inline(always)]
    unsafe fn of(weights: &Operand, first: usize, count: usize) -> Self {
        let mut all = [f64::NAN; SORTED];
        for (k, weight) in all.iter_mut().enumerate().take(count) {
            // SAFETY: this function requires that this is a row of the operand.
            *weight = unsafe { *weights.row(first + k) };
        }
        let mut runs = Self {
            rows: [0; SORTED],
            ends: [0; SORTED],
            weights: [0.0; SORTED],
            count: 0,
        };
        let (mut left, mut done) = ((1u32 << count) - 1, 0);
        while left != 0 {
            let first = left.trailing_zeros();
            let weight = all[first as usize];
            // A weight that is NaN forms a run of its own.
            let mut same = 1 << first;
            for (k, other) in all.iter().enumerate() {
                same |= u32::from(*other == weight) << k;
            }
            same &= left;
            left &= !same;
            while same != 0 {
                runs.rows[done] = same.trailing_zeros() as u8;
                done += 1;
                same &= same - 1;
            }
            runs.ends[runs.count] = done as u8;
            runs.weights[runs.count] = weight;
            runs.count += 1;
        }
        runs
    }
}

#[derive(Clone, Copy)]
struct Out {
    inverse: *mut f64,
    sums: [*mut f64; 2],
    lane: usize,
    lanes: usize,
}

/// Returns exp(−|x|) and the positive part of x, where x is row `r` of `a`, for `W` vectors of lanes. If `F` requests
/// inverse logits, also stores them.
///
/// # Safety
/// `r` must be a row of `a`. If inverse logits are stored, it must also be one of their rows.
#[inline(always)]
unsafe fn parts<V: F64x8, F: Form, const W: usize>(a: &Operand, out: Out, r: usize) -> [(V, V); W] {
    let one = V::splat(1.0);
    let mut found = [(one, one); W];
    // SAFETY: this function requires that `r` is a row of the operand and of the destination, and both have `lanes`
    // lanes.
    unsafe {
        let row = a.row(r).add(out.lane);
        for (k, found) in found.iter_mut().enumerate() {
            let x = V::load(row.add(k * LANES));
            let e = vm::exp_of_negative(-x.abs());
            *found = (e, x.max(V::zero()));
            if F::INVERSE {
                let p = V::select(x.ge(V::zero()), one, e) / (one + e);
                p.store(out.inverse.add(r * out.lanes + out.lane + k * LANES));
            }
        }
    }
    found
}

/// Adds a row to the `positive` parts, and multiplies it into a product that is stored as its `excess` over 1.
/// Processes `W` vectors of lanes that start at `out.lane`.
///
/// # Safety
/// The same conditions hold as for [`parts`].
#[inline(always)]
unsafe fn take<V: F64x8, F: Form, const W: usize>(
    (positive, excess): (&mut [V; W], &mut [V; W]),
    a: &Operand,
    out: Out,
    r: usize,
) {
    // SAFETY: this function has the same requirements as the function that it calls.
    let found = unsafe { parts::<V, F, W>(a, out, r) };
    for (k, (e, above)) in found.into_iter().enumerate() {
        excess[k] = excess[k].fma(e, excess[k] + e);
        positive[k] = positive[k] + above;
    }
}

/// Adds terms to a sum unless the sum is null.
///
/// # Safety
/// The sum must be null or have `W` vectors that start at `lane`.
#[inline(always)]
unsafe fn add<V: F64x8, const W: usize>(sum: *mut f64, lane: usize, terms: [V; W]) {
    if sum.is_null() {
        return;
    }
    for (k, term) in terms.into_iter().enumerate() {
        // SAFETY: this function requires that the sum has `W` vectors, starting at `lane`.
        unsafe {
            let at = sum.add(lane + k * LANES);
            (V::load(at) + term).store(at);
        }
    }
}

/// Computes all rows for `W` vectors of lanes, without weights.
///
/// # Safety
/// `a` must have this number of rows, and so must the inverse logits if they are stored. `W` vectors of lanes must
/// start at `out.lane`, both in these rows and in the sums.
#[inline(always)]
unsafe fn plain_rows<V: F64x8, F: Form, const W: usize>(a: &Operand, out: Out, rows: usize) {
    let mut sum = [V::zero(); W];
    let mut from = 0;
    while from < rows {
        let to = rows.min(from + FACTORS);
        let mut excess = [V::zero(); W];
        for r in from..to {
            // SAFETY: this function requires that this row exists.
            unsafe { take::<V, F, W>((&mut sum, &mut excess), a, out, r) };
        }
        for (sum, excess) in sum.iter_mut().zip(excess) {
            *sum = *sum + vm::log1p(excess);
        }
        from = to;
    }
    // SAFETY: this function requires that the sum has these vectors.
    unsafe { add(out.sums[0], out.lane, sum) };
}

/// Computes the rows of `runs`, whose indices are relative to row `first`, for `W` vectors of lanes.
///
/// # Safety
/// The same conditions hold as for [`plain_rows`].
#[inline(always)]
unsafe fn weighted_rows<V: F64x8, F: Form, const W: usize>(
    a: &Operand,
    out: Out,
    runs: &Runs,
    first: usize,
) {
    let (mut plain, mut weighted) = ([V::zero(); W], [V::zero(); W]);
    let mut from = 0;
    for run in 0..runs.count {
        let to = usize::from(runs.ends[run]);
        let weight = V::splat(runs.weights[run]);
        let (mut sum, mut excess) = ([V::zero(); W], [V::zero(); W]);
        for r in &runs.rows[from..to] {
            let r = first + usize::from(*r);
            // SAFETY: this function requires that this row exists.
            unsafe { take::<V, F, W>((&mut sum, &mut excess), a, out, r) };
        }
        for k in 0..W {
            let sum = sum[k] + vm::log1p(excess[k]);
            plain[k] = plain[k] + sum;
            weighted[k] = weight.fma(sum, weighted[k]);
        }
        from = to;
    }
    // SAFETY: this function requires that the sums have these vectors.
    unsafe {
        add(out.sums[0], out.lane, plain);
        add(out.sums[1], out.lane, weighted);
    }
}

/// Computes all rows for `W` vectors of lanes. Each row is multiplied into the product of its weight.
///
/// # Safety
/// The same conditions hold as for [`plain_rows`]. There must be a product for each weight, and the index of a weight
/// for each row.
#[inline(always)]
unsafe fn rows_of_classes<V: F64x8, F: Form, const W: usize>(
    a: &Operand,
    out: Out,
    by: &Products<'_>,
    rows: usize,
) {
    let (mut plain, mut weighted) = ([V::zero(); W], [V::zero(); W]);
    // SAFETY: this function requires that all of these rows, weights and lanes exist.
    unsafe {
        for r in 0..rows {
            let class = usize::from(*by.numbers.get_unchecked(r));
            let weight = V::splat(*by.weights.get_unchecked(class));
            let excess = by.products.add(class * out.lanes + out.lane);
            let found = parts::<V, F, W>(a, out, r);
            for (k, (e, above)) in found.into_iter().enumerate() {
                let at = excess.add(k * LANES);
                let before = V::load(at);
                before.fma(e, before + e).store(at);
                plain[k] = plain[k] + above;
                weighted[k] = weight.fma(above, weighted[k]);
            }
        }
        for (class, weight) in by.weights.iter().enumerate().filter(|_| by.end) {
            let weight = V::splat(*weight);
            for k in 0..W {
                let at = by.products.add(class * out.lanes + out.lane + k * LANES);
                let log = vm::log1p(V::load(at));
                V::zero().store(at);
                plain[k] = plain[k] + log;
                weighted[k] = weight.fma(log, weighted[k]);
            }
        }
        add(out.sums[0], out.lane, plain);
        add(out.sums[1], out.lane, weighted);
    }
}

/// Computes the rows that start at `from`, for `W` vectors of lanes that start at `out.lane`.
///
/// # Safety
/// The same conditions hold as for [`plain_rows`] and [`rows_of_classes`].
#[inline(always)]
unsafe fn some_rows<V: F64x8, F: Form, const W: usize>(
    args: *const Operand,
    out: Out,
    (products, runs): (&Products<'_>, Option<&Runs>),
    [from, rows]: [usize; 2],
) {
    // SAFETY: this function has the same requirements as the function that it calls.
    unsafe {
        match runs {
            Some(runs) => weighted_rows::<V, F, W>(&*args, out, runs, from),
            None if F::WEIGHTS == CLASSES => {
                rows_of_classes::<V, F, W>(&*args, out, products, rows);
            }
            None => plain_rows::<V, F, W>(&*args, out, rows),
        }
    }
}

jensen_math::simd_fn! {
    fn softplus, softplus_fn = <V, F: Form>(dst: *mut f64, sums: [*mut f64; 2], args: *const Operand, products: &Products<'_>, rows: usize, lanes: usize) {
        // SAFETY: the planner supplies operands with these rows and lanes, sums that consist of one row, and products
        // for all classes. If inverse logits are stored, it also supplies a destination of the same size as the
        // operand.
        unsafe {
            let mut from = 0;
            while from < rows {
                let sorted = F::WEIGHTS == RUNS;
                let count = if sorted { SORTED.min(rows - from) } else { rows };
                let runs = sorted.then(|| Runs::of(&*args.add(1), from, count));
                let with = (products, runs.as_ref());
                let mut out = Out { inverse: dst, sums, lane: 0, lanes };
                // Processing two vectors together hides the latency of the products if there are enough registers.
                while V::REGISTERS == 1 && out.lane + 2 * LANES <= lanes {
                    some_rows::<V, F, 2>(args, out, with, [from, rows]);
                    out.lane += 2 * LANES;
                }
                while out.lane < lanes {
                    some_rows::<V, F, 1>(args, out, with, [from, rows]);
                    out.lane += LANES;
                }
                from += count;
            }
        }
    }
}

fn softplus_kernel(simd: Simd, inverse: bool, weights: u8) -> SoftplusKernel {
    match (inverse, weights) {
        (false, NONE) => softplus_fn::<Of<false, NONE>>(simd),
        (false, RUNS) => softplus_fn::<Of<false, RUNS>>(simd),
        (false, _) => softplus_fn::<Of<false, CLASSES>>(simd),
        (true, NONE) => softplus_fn::<Of<true, NONE>>(simd),
        (true, RUNS) => softplus_fn::<Of<true, RUNS>>(simd),
        (true, _) => softplus_fn::<Of<true, CLASSES>>(simd),
    }
}
