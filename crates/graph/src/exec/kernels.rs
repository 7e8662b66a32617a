//! Row kernels, each of which applies an elementwise operation to `rows × lanes` elements.
//!
//! An operand is either *per lane* or *splat*. Each element of a per-lane operand is a row of contiguous lanes. Each
//! element of a splat operand, such as a constant or shared data, is one number that all lanes share. Kernels are
//! compiled separately for these two kinds of operands. Whether a stride or an index list determines the next row is
//! decided at run time.

use std::marker::PhantomData;

use jensen_math::simd::{F64x8, LANES, Simd};
use jensen_math::special as sp;
use jensen_math::vmath as vm;

use crate::ops::ElemOp;
use crate::ops::elementwise::{arity_of, bind_args, elementwise_table};

/// The rows of an operand. Row r begins at `base + index[r] * stride`, where `index[r] = r` if there is no index list.
#[derive(Clone, Copy)]
pub(crate) struct Operand {
    pub base: *const f64,
    pub stride: usize,
    pub index: *const u32,
}

impl Operand {
    pub(crate) const NONE: Self = Self {
        base: std::ptr::null(),
        stride: 0,
        index: std::ptr::null(),
    };

    /// # Safety
    /// Row `r` must be a row of the operand.
    #[inline(always)]
    pub(crate) unsafe fn row(&self, r: usize) -> *const f64 {
        // SAFETY: this function requires a row of the operand. The kernels loop over the rows of their step, and the
        // planner gave the operand and the index list this number of rows. `verify` checked that every index is less
        // than the number of indexed rows.
        unsafe {
            let r = if self.index.is_null() {
                r
            } else {
                *self.index.add(r) as usize
            };
            self.base.add(r * self.stride)
        }
    }
}

/// Computes `dst[r] = op(args[r])` for `rows` rows of `lanes` lanes. `lanes` must be a multiple of eight, and the rows
/// of the destination must be `lanes` numbers apart.
pub(crate) type MapKernel = unsafe fn(*mut f64, *const Operand, usize, usize);

/// Computes `dst += Σ_r a[r] · b[r]`, where `dst` is a single row of lanes.
pub(crate) type SumKernel = unsafe fn(*mut f64, *const Operand, usize, usize);

/// Computes `dst[index[r]] += a[r] · b[r]`. The rows of the destination are `lanes` numbers apart.
pub(crate) type ScatterKernel = unsafe fn(*mut f64, *const u32, *const Operand, usize, usize);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MapOp {
    Elem(ElemOp),
    MulSub,
    NegMulAdd,
}

/// An elementwise operation that is chosen at compile time.
trait RowOp {
    const ARITY: usize;
    fn apply<V: F64x8>(a: V, b: V, c: V) -> V;
}

/// Specifies at compile time which of the operands are splat.
trait Splats {
    const A: bool;
    const B: bool;
    const C: bool;
}

struct Mask<const A: bool, const B: bool, const C: bool>;

impl<const A: bool, const B: bool, const C: bool> Splats for Mask<A, B, C> {
    const A: bool = A;
    const B: bool = B;
    const C: bool = C;
}

#[inline(always)]
unsafe fn read<V: F64x8>(splat: bool, row: *const f64, value: V, lane: usize) -> V {
    if splat {
        value
    } else {
        // SAFETY: kernels increase `lane` by whole vectors and stop at the number of lanes. This number is the stride
        // of a row, and it is a multiple of eight.
        unsafe { V::load(row.add(lane)) }
    }
}

jensen_math::element_fn! {
    fn map, map_fn = <V, F: RowOp, M: Splats>(dst: *mut f64, args: *const Operand, rows: usize, lanes: usize) {
        // SAFETY: the planner supplies operands and a destination with this number of rows and lanes.
        unsafe {
            let (a, b, c) = (*args, *args.add(1), *args.add(2));
            for r in 0..rows {
                let out = dst.add(r * lanes);
                let ra = a.row(r);
                let rb = if F::ARITY > 1 { b.row(r) } else { ra };
                let rc = if F::ARITY > 2 { c.row(r) } else { ra };
                let sa = if M::A { V::splat(*ra) } else { V::zero() };
                let sb = if M::B { V::splat(*rb) } else { V::zero() };
                let sc = if M::C { V::splat(*rc) } else { V::zero() };
                let mut lane = 0;
                while lane < lanes {
                    let x = read(M::A, ra, sa, lane);
                    let y = if F::ARITY > 1 { read(M::B, rb, sb, lane) } else { x };
                    let z = if F::ARITY > 2 { read(M::C, rc, sc, lane) } else { x };
                    F::apply(x, y, z).store(out.add(lane));
                    lane += V::WIDTH;
                }
            }
        }
    }
}

jensen_math::simd_fn! {
    fn sum, sum_fn = <V, F: Product, M: Splats>(dst: *mut f64, args: *const Operand, rows: usize, lanes: usize) {
        // SAFETY: the planner supplies operands with this number of rows and lanes, and a destination with one row.
        unsafe {
            let (a, b) = (*args, *args.add(1));
            let mut lane = 0;
            // Four independent accumulators hide the latency of additions.
            while lane + 4 * LANES <= lanes {
                let mut acc = [V::zero(); 4];
                for r in 0..rows {
                    let (ra, rb) = (a.row(r), if F::PAIR { b.row(r) } else { a.base });
                    let sb = if M::B { V::splat(*rb) } else { V::zero() };
                    for (k, acc) in acc.iter_mut().enumerate() {
                        let at = lane + k * LANES;
                        let x = V::load(ra.add(at));
                        *acc = F::accumulate(*acc, x, || read(M::B, rb, sb, at));
                    }
                }
                for (k, acc) in acc.into_iter().enumerate() {
                    let out = dst.add(lane + k * LANES);
                    V::load(out).add(acc).store(out);
                }
                lane += 4 * LANES;
            }
            while lane < lanes {
                let mut acc = V::zero();
                for r in 0..rows {
                    let (ra, rb) = (a.row(r), if F::PAIR { b.row(r) } else { a.base });
                    let sb = if M::B { V::splat(*rb) } else { V::zero() };
                    acc = F::accumulate(acc, V::load(ra.add(lane)), || read(M::B, rb, sb, lane));
                }
                let out = dst.add(lane);
                V::load(out).add(acc).store(out);
                lane += LANES;
            }
        }
    }

    fn scatter, scatter_fn = <V, F: Product, M: Splats>(dst: *mut f64, index: *const u32, args: *const Operand, rows: usize, lanes: usize) {
        // SAFETY: the planner supplies operands with this number of rows and lanes, and the verifier checked that every
        // index is a row of the destination.
        unsafe {
            let (a, b) = (*args, *args.add(1));
            for r in 0..rows {
                let to = if index.is_null() { r } else { *index.add(r) as usize };
                let out = dst.add(to * lanes);
                let (ra, rb) = (a.row(r), if F::PAIR { b.row(r) } else { a.base });
                let sb = if M::B { V::splat(*rb) } else { V::zero() };
                let mut lane = 0;
                while lane < lanes {
                    let p = out.add(lane);
                    F::accumulate(V::load(p), V::load(ra.add(lane)), || read(M::B, rb, sb, lane)).store(p);
                    lane += LANES;
                }
            }
        }
    }

    /// Copies the rows of a per-lane operand, or fills each row with the number of a splat operand.
    fn copy, copy_fn = <V, M: Splats>(dst: *mut f64, args: *const Operand, rows: usize, lanes: usize) {
        // SAFETY: the planner supplies an operand and a destination with this number of rows and lanes.
        unsafe {
            let a = *args;
            for r in 0..rows {
                let (out, ra) = (dst.add(r * lanes), a.row(r));
                let sa = if M::A { V::splat(*ra) } else { V::zero() };
                let mut lane = 0;
                while lane < lanes {
                    read(M::A, ra, sa, lane).store(out.add(lane));
                    lane += LANES;
                }
            }
        }
    }
}

trait Product {
    const PAIR: bool;
    fn accumulate<V: F64x8>(acc: V, a: V, b: impl FnOnce() -> V) -> V;
}

struct One;
struct Pair;

impl Product for One {
    const PAIR: bool = false;
    #[inline(always)]
    fn accumulate<V: F64x8>(acc: V, a: V, _: impl FnOnce() -> V) -> V {
        acc.add(a)
    }
}

impl Product for Pair {
    const PAIR: bool = true;
    #[inline(always)]
    fn accumulate<V: F64x8>(acc: V, a: V, b: impl FnOnce() -> V) -> V {
        a.fma(b(), acc)
    }
}

trait SlowOp {
    const ARITY: usize;
    fn value(args: [f64; 3]) -> f64;
}

/// Like [`map`], but applies the scalar definition of the slow evaluator in each lane. These definitions use no vector
/// instructions, so the function is compiled only once for all instruction sets.
///
/// # Safety
/// The operands and the destination must have this number of rows and lanes, which the planner guarantees.
unsafe fn slow_map<F: SlowOp, M: Splats>(
    dst: *mut f64,
    args: *const Operand,
    rows: usize,
    lanes: usize,
) {
    let splats = [M::A, M::B, M::C];
    // SAFETY: the contract of this function requires the operands and the destination to have these rows and lanes.
    unsafe {
        for r in 0..rows {
            for lane in 0..lanes {
                let mut values = [0.0; 3];
                for (k, value) in values.iter_mut().enumerate().take(F::ARITY) {
                    let row = (*args.add(k)).row(r);
                    *value = *row.add(if splats[k] { 0 } else { lane });
                }
                *dst.add(r * lanes + lane) = F::value(values);
            }
        }
    }
}

struct MulSubRow;
struct NegMulAddRow;

impl RowOp for MulSubRow {
    const ARITY: usize = 3;
    #[inline(always)]
    fn apply<V: F64x8>(a: V, b: V, c: V) -> V {
        a.fma(b, c.neg())
    }
}

impl RowOp for NegMulAddRow {
    const ARITY: usize = 3;
    #[inline(always)]
    fn apply<V: F64x8>(a: V, b: V, c: V) -> V {
        a.neg().fma(b, c)
    }
}

/// An operation whose operands are all splat is computed when data are bound. No kernel is needed for it.
const ALL_SPLAT: &str = "a lane operation has a lane operand";

trait Kernels {
    fn kernel<M: Splats>(simd: Simd) -> MapKernel;
}

struct Fast<F>(PhantomData<F>);

impl<F: RowOp> Kernels for Fast<F> {
    fn kernel<M: Splats>(simd: Simd) -> MapKernel {
        map_fn::<F, M>(simd)
    }
}

struct Slow<F>(PhantomData<F>);

impl<F: SlowOp> Kernels for Slow<F> {
    fn kernel<M: Splats>(_: Simd) -> MapKernel {
        slow_map::<F, M>
    }
}

fn unary<K: Kernels>(simd: Simd, splat: [bool; 3]) -> MapKernel {
    assert!(!splat[0], "{ALL_SPLAT}");
    K::kernel::<Mask<false, false, false>>(simd)
}

fn binary<K: Kernels>(simd: Simd, splat: [bool; 3]) -> MapKernel {
    match splat {
        [false, false, _] => K::kernel::<Mask<false, false, false>>(simd),
        [false, true, _] => K::kernel::<Mask<false, true, false>>(simd),
        [true, false, _] => K::kernel::<Mask<true, false, false>>(simd),
        [true, true, _] => unreachable!("{ALL_SPLAT}"),
    }
}

fn ternary<K: Kernels>(simd: Simd, splat: [bool; 3]) -> MapKernel {
    match splat {
        [false, false, false] => K::kernel::<Mask<false, false, false>>(simd),
        [false, false, true] => K::kernel::<Mask<false, false, true>>(simd),
        [false, true, false] => K::kernel::<Mask<false, true, false>>(simd),
        [false, true, true] => K::kernel::<Mask<false, true, true>>(simd),
        [true, false, false] => K::kernel::<Mask<true, false, false>>(simd),
        [true, false, true] => K::kernel::<Mask<true, false, true>>(simd),
        [true, true, false] => K::kernel::<Mask<true, true, false>>(simd),
        [true, true, true] => unreachable!("{ALL_SPLAT}"),
    }
}

macro_rules! select_arity {
    ($kernels:ty, $simd:expr, $splat:expr; $a:ident) => {
        unary::<$kernels>($simd, $splat)
    };
    ($kernels:ty, $simd:expr, $splat:expr; $a:ident $b:ident) => {
        binary::<$kernels>($simd, $splat)
    };
    ($kernels:ty, $simd:expr, $splat:expr; $a:ident $b:ident $c:ident) => {
        ternary::<$kernels>($simd, $splat)
    };
}

macro_rules! row {
    ($variant:ident ($($arg:ident)*) $value:expr, []) => {
        impl SlowOp for tags::$variant {
            const ARITY: usize = arity_of!($($arg)*);
            #[allow(unused_variables)]
            fn value([first, second, third]: [f64; 3]) -> f64 {
                bind_args!(first second third; $($arg)*);
                $value
            }
        }

        impl Table for tags::$variant {
            type Kernels = Slow<Self>;
        }
    };
    ($variant:ident ($($arg:ident)*) $value:expr, [$kernel:expr]) => {
        impl RowOp for tags::$variant {
            const ARITY: usize = arity_of!($($arg)*);
            #[inline(always)]
            #[allow(unused_variables)]
            fn apply<V: F64x8>(first: V, second: V, third: V) -> V {
                bind_args!(first second third; $($arg)*);
                $kernel
            }
        }

        impl Table for tags::$variant {
            type Kernels = Fast<Self>;
        }
    };
}

trait Table {
    type Kernels: Kernels;
}

macro_rules! kernels {
    ($($variant:ident $name:literal ($($arg:ident),*) $out:ident $g:ident {
        value: $value:expr, $(kernel: $kernel:expr,)? $(single: $single:expr,)? $(range: $range:expr,)? $(harmless: [$($harmless:expr),*],)? partials: [$($partial:expr),*], points: [$([$($point:expr),*]),*]
    })*) => {
        /// Each operation has a type of its own. A kernel can therefore be compiled for each combination of operation
        /// and operand layout.
        mod tags {
            $(pub struct $variant;)*
        }

        $(row!($variant ($($arg)*) $value, [$($kernel)?]);)*

        fn elem_kernel(op: ElemOp, simd: Simd, splat: [bool; 3]) -> MapKernel {
            match op {
                $(ElemOp::$variant => select_arity!(<tags::$variant as Table>::Kernels, simd, splat; $($arg)*)),*
            }
        }
    };
}

elementwise_table!(kernels);

pub(crate) fn map_kernel(op: MapOp, simd: Simd, splat: [bool; 3]) -> MapKernel {
    match op {
        MapOp::Elem(op) => elem_kernel(op, simd, splat),
        MapOp::MulSub => ternary::<Fast<MulSubRow>>(simd, splat),
        MapOp::NegMulAdd => ternary::<Fast<NegMulAddRow>>(simd, splat),
    }
}

pub(crate) fn copy_kernel(simd: Simd, splat: bool) -> MapKernel {
    if splat {
        copy_fn::<Mask<true, false, false>>(simd)
    } else {
        copy_fn::<Mask<false, false, false>>(simd)
    }
}

/// Returns the kernel that sums `a`. If there is a second operand `b`, the kernel sums `a · b`. Only `b` may be splat.
pub(crate) fn sum_kernel(simd: Simd, second: Option<bool>) -> SumKernel {
    match second {
        None => sum_fn::<One, Mask<false, false, false>>(simd),
        Some(false) => sum_fn::<Pair, Mask<false, false, false>>(simd),
        Some(true) => sum_fn::<Pair, Mask<false, true, false>>(simd),
    }
}

/// Returns the kernel that scatters `a`. If there is a second operand `b`, the kernel scatters `a · b`. Only `b` may be
/// splat.
pub(crate) fn scatter_kernel(simd: Simd, second: Option<bool>) -> ScatterKernel {
    match second {
        None => scatter_fn::<One, Mask<false, false, false>>(simd),
        Some(false) => scatter_fn::<Pair, Mask<false, false, false>>(simd),
        Some(true) => scatter_fn::<Pair, Mask<false, true, false>>(simd),
    }
}
