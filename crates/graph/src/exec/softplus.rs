//! Sums of log(1 + exp(·)) over rows, plain and weighted by a column of data, with inverse logits beside them: what logistic
//! and negative binomial likelihoods are made of.
//!
//! Σ log(1 + exp(x)) is the sum of positive parts, and one logarithm of the product of all 1 + exp(−|x|): a logarithm of
//! each would cost as much as all else. Of the product what it has above 1 is kept, with all its digits where each exp(−|x|) is
//! tiny: a precision of 10²⁰ multiplies such a sum. With weights, rows of the same weight share a product: counts have few values.

use std::collections::{BTreeMap, HashMap, HashSet};

use jensen_math::simd::{F64x8, LANES, Simd};
use jensen_math::vmath as vm;

use crate::exec::kernels::Operand;
use crate::exec::plan::{Arg, Instruction, Planner, Target};
use crate::exec::stages::{KernelDraft, Sink};
use crate::ir::NodeId;
use crate::ops::ElemOp;

/// A value log(1 + exp(x)) that nothing but sums read.
pub(super) struct Softplus {
    pub x: NodeId,
    plain: Option<Sink>,
    /// The column of data that weighs it, and the sum.
    weighted: Option<(NodeId, Sink)>,
}

/// The sums of a kernel.
#[derive(Default)]
pub(super) struct Softpluses {
    /// By the place of their last sum in the kernel.
    pub found: BTreeMap<usize, Softplus>,
    /// Nodes that are computed within them.
    pub absorbed: HashSet<NodeId>,
    /// Sums that are taken here, by their place in the kernel.
    pub taken: HashSet<usize>,
}

impl Softplus {
    /// What it reads: x, and its weights.
    pub fn reads(&self) -> Vec<NodeId> {
        let weights = self.weighted.map(|(column, _)| column);
        [Some(self.x), weights].into_iter().flatten().collect()
    }
}

impl Planner<'_> {
    /// Finds the sums of log(1 + exp(·)) of a kernel whose values are read `inside` it so often.
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

    /// The instruction of sums whose operands are `read`, with a target for inverse logits where they are kept.
    pub(super) fn softplus_instruction(
        &mut self,
        softplus: &Softplus,
        read: &[Arg],
        target: Option<Target>,
    ) -> Instruction {
        let sinks = [softplus.plain, softplus.weighted.map(|(_, sink)| sink)];
        let sums = sinks.map(|sink| sink.map(|sink| (self.sink_rows(sink.node), 0)));
        Instruction::Softplus {
            kernel: softplus_kernel(self.simd, target.is_some(), read.len() > 1),
            target,
            sums,
            args: [read[0], *read.last().expect("an operand")],
            arity: read.len(),
        }
    }
}

/// `dst[r] = inv_logit(a[r])` where there is a destination, `plain += Σ log1p_exp(a[r])` and
/// `weighted += Σ w[r] · log1p_exp(a[r])` where there are such sums: destination, both sums, `[a, w]`, rows, lanes.
pub(crate) type SoftplusKernel = unsafe fn(*mut f64, [*mut f64; 2], *const Operand, usize, usize);

/// What a kernel does, at compile time.
trait Form {
    /// Whether inverse logits are kept.
    const INVERSE: bool;
    const WEIGHTED: bool;
}

struct Of<const INVERSE: bool, const WEIGHTED: bool>;

impl<const INVERSE: bool, const WEIGHTED: bool> Form for Of<INVERSE, WEIGHTED> {
    const INVERSE: bool = INVERSE;
    const WEIGHTED: bool = WEIGHTED;
}

/// Rows that are sorted by weight at a time.
const SORTED: usize = 16;

/// Factors below 2 whose product is far from overflow.
const FACTORS: usize = 512;

/// Some rows in runs of one weight each.
struct Runs {
    /// The rows, run after run.
    rows: [u8; SORTED],
    /// Where runs end, and their weights.
    ends: [u8; SORTED],
    weights: [f64; SORTED],
    count: usize,
}

impl Runs {
    /// Runs of `count` rows from `first` on.
    ///
    /// # Safety
    /// They are rows of the operand, at most [`SORTED`].
    #[inline(always)]
    unsafe fn of(weights: &Operand, first: usize, count: usize) -> Self {
        let mut all = [f64::NAN; SORTED];
        for (k, weight) in all.iter_mut().enumerate().take(count) {
            // SAFETY: a row of the operand, as this function requires.
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
            // A weight that is not a number equals none.
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

/// Where results of one or more vectors of lanes go, from `lane` on.
#[derive(Clone, Copy)]
struct Out {
    inverse: *mut f64,
    sums: [*mut f64; 2],
    lane: usize,
    lanes: usize,
}

/// Takes rows into `positive` parts and the `excess` of a product over 1, `W` vectors of lanes from `out.lane` on.
///
/// # Safety
/// These are rows of `a`, and of the inverse logits where they are kept.
#[inline(always)]
unsafe fn take<V: F64x8, F: Form, const W: usize>(
    (positive, excess): (&mut [V; W], &mut [V; W]),
    a: &Operand,
    out: Out,
    r: usize,
) {
    let one = V::splat(1.0);
    // SAFETY: a row of the operand and of the destination, of `lanes` lanes, as this function requires.
    unsafe {
        let row = a.row(r).add(out.lane);
        for k in 0..W {
            let x = V::load(row.add(k * LANES));
            let e = vm::exp_of_negative(-x.abs());
            excess[k] = excess[k].fma(e, excess[k] + e);
            positive[k] = positive[k] + x.max(V::zero());
            if F::INVERSE {
                let p = V::select(x.ge(V::zero()), one, e) / (one + e);
                p.store(out.inverse.add(r * out.lanes + out.lane + k * LANES));
            }
        }
    }
}

/// Adds to a sum, if there is one.
///
/// # Safety
/// The sum has `W` vectors from `lane` on, or is null.
#[inline(always)]
unsafe fn add<V: F64x8, const W: usize>(sum: *mut f64, lane: usize, terms: [V; W]) {
    if sum.is_null() {
        return;
    }
    for (k, term) in terms.into_iter().enumerate() {
        // SAFETY: `W` vectors of the sum, as this function requires.
        unsafe {
            let at = sum.add(lane + k * LANES);
            (V::load(at) + term).store(at);
        }
    }
}

/// All rows for `W` vectors of lanes.
///
/// # Safety
/// `a` and the inverse logits, where they are kept, have these rows; `out.lane` begins `W` vectors of their lanes and of the sums.
#[inline(always)]
unsafe fn plain_rows<V: F64x8, F: Form, const W: usize>(a: &Operand, out: Out, rows: usize) {
    let mut sum = [V::zero(); W];
    let mut from = 0;
    while from < rows {
        let to = rows.min(from + FACTORS);
        let mut excess = [V::zero(); W];
        for r in from..to {
            // SAFETY: a row, as this function requires.
            unsafe { take::<V, F, W>((&mut sum, &mut excess), a, out, r) };
        }
        for (sum, excess) in sum.iter_mut().zip(excess) {
            *sum = *sum + vm::log1p(excess);
        }
        from = to;
    }
    // SAFETY: vectors of the sum, as this function requires.
    unsafe { add(out.sums[0], out.lane, sum) };
}

/// The rows of `runs`, which count from `first` on, for `W` vectors of lanes.
///
/// # Safety
/// As for [`plain_rows`].
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
            // SAFETY: a row, as this function requires.
            unsafe { take::<V, F, W>((&mut sum, &mut excess), a, out, r) };
        }
        for k in 0..W {
            let sum = sum[k] + vm::log1p(excess[k]);
            plain[k] = plain[k] + sum;
            weighted[k] = weight.fma(sum, weighted[k]);
        }
        from = to;
    }
    // SAFETY: vectors of the sums, as this function requires.
    unsafe {
        add(out.sums[0], out.lane, plain);
        add(out.sums[1], out.lane, weighted);
    }
}

jensen_math::simd_fn! {
    fn softplus, softplus_fn = <V, F: Form>(dst: *mut f64, sums: [*mut f64; 2], args: *const Operand, rows: usize, lanes: usize) {
        // SAFETY: the planner gives operands with that many rows and lanes, a destination of as many where inverse logits are
        // kept, and sums of one row.
        unsafe {
            let a = *args;
            let mut from = 0;
            while from < rows {
                let count = if F::WEIGHTED { SORTED.min(rows - from) } else { rows };
                let runs = F::WEIGHTED.then(|| Runs::of(&*args.add(1), from, count));
                let mut out = Out { inverse: dst, sums, lane: 0, lanes };
                // Two vectors at a time hide the latency of the products where registers are many.
                while V::REGISTERS == 1 && out.lane + 2 * LANES <= lanes {
                    match &runs {
                        Some(runs) => weighted_rows::<V, F, 2>(&a, out, runs, from),
                        None => plain_rows::<V, F, 2>(&a, out, rows),
                    }
                    out.lane += 2 * LANES;
                }
                while out.lane < lanes {
                    match &runs {
                        Some(runs) => weighted_rows::<V, F, 1>(&a, out, runs, from),
                        None => plain_rows::<V, F, 1>(&a, out, rows),
                    }
                    out.lane += LANES;
                }
                from += count;
            }
        }
    }
}

/// The kernel with inverse logits or without, for plain sums or for weighted ones too.
pub(crate) fn softplus_kernel(simd: Simd, inverse: bool, weighted: bool) -> SoftplusKernel {
    match (inverse, weighted) {
        (false, false) => softplus_fn::<Of<false, false>>(simd),
        (false, true) => softplus_fn::<Of<false, true>>(simd),
        (true, false) => softplus_fn::<Of<true, false>>(simd),
        (true, true) => softplus_fn::<Of<true, true>>(simd),
    }
}
