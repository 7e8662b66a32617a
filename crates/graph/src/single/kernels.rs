//! Elementwise operations in single precision. The kernels process contiguous elements, sixteen at a time.

use jensen_math::simd::{F32x16, LANES32, Simd};
use jensen_math::vmath::single as vm;

use crate::ops::ElemOp;
use crate::ops::elementwise::{arity_of, bind_args, elementwise_table};

/// A run of contiguous elements, or a single element that is repeated.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub at: *const f32,
    pub splat: bool,
}

impl Run {
    pub(super) const NONE: Self = Self {
        at: std::ptr::null(),
        splat: true,
    };
}

/// Computes `dst[i] = op(args[i])` for `n` elements.
pub(super) type MapKernel = unsafe fn(*mut f32, *const Run, usize);

/// An elementwise operation that is chosen at compile time.
trait RunOp {
    const ARITY: usize;
    fn apply<V: F32x16>(a: V, b: V, c: V) -> V;
}

jensen_math::simd_fn! {
    fn map, map_fn = <V, F: RunOp>(dst: *mut f32, args: *const Run, n: usize) {
        // SAFETY: `Runner::flat` and `Runner::row` pass locations of the plan at which there are `n` elements, or one
        // element if the operand is splat.
        unsafe {
            let (a, b, c) = (
                *args,
                if F::ARITY > 1 { *args.add(1) } else { *args },
                if F::ARITY > 2 { *args.add(2) } else { *args },
            );
            let first = |x: Run| if x.splat { V::Single::splat(*x.at) } else { V::Single::zero() };
            let (sa, sb, sc) = (first(a), first(b), first(c));
            let whole = n / LANES32 * LANES32;
            let mut i = 0;
            while i < whole {
                let x = if a.splat { sa } else { V::Single::load(a.at.add(i)) };
                let y = if F::ARITY < 2 { x } else if b.splat { sb } else { V::Single::load(b.at.add(i)) };
                let z = if F::ARITY < 3 { x } else if c.splat { sc } else { V::Single::load(c.at.add(i)) };
                F::apply(x, y, z).store(dst.add(i));
                i += LANES32;
            }
            let rest = n - whole;
            if rest > 0 {
                let part = |r: Run, s: V::Single| if r.splat { s } else { V::Single::load_part(r.at.add(whole), rest) };
                let x = part(a, sa);
                let y = if F::ARITY < 2 { x } else { part(b, sb) };
                let z = if F::ARITY < 3 { x } else { part(c, sc) };
                F::apply(x, y, z).store_part(dst.add(whole), rest);
            }
        }
    }

    fn sum, sum_fn = <V>(a: Run, n: usize) -> f32 {
        // SAFETY: `run_sum` creates a run of `n` elements, and its contract requires that these can be read.
        unsafe {
            let mut total = V::Single::zero();
            let whole = n / LANES32 * LANES32;
            let mut i = 0;
            while i < whole {
                total = total + V::Single::load(a.at.add(i));
                i += LANES32;
            }
            if n > whole {
                total = total + V::Single::load_part(a.at.add(whole), n - whole);
            }
            total.sum()
        }
    }

    fn add_rows, add_rows_fn = <V>(dst: *mut f32, src: *const f32, stride: usize, rows: usize, n: usize) {
        // SAFETY: the contract of `accumulate_rows` requires a destination of `n` elements, and `rows` rows of `n`
        // elements each, whose starts are `stride` elements apart.
        unsafe {
            let whole = n / LANES32 * LANES32;
            let mut i = 0;
            while i < whole {
                let mut total = V::Single::load(dst.add(i));
                for row in 0..rows {
                    total = total + V::Single::load(src.add(row * stride + i));
                }
                total.store(dst.add(i));
                i += LANES32;
            }
            let rest = n - whole;
            if rest > 0 {
                let mut total = V::Single::load_part(dst.add(whole), rest);
                for row in 0..rows {
                    total = total + V::Single::load_part(src.add(row * stride + whole), rest);
                }
                total.store_part(dst.add(whole), rest);
            }
        }
    }
}

/// Sums `n` contiguous elements. The additions form a fixed tree.
///
/// # Safety
/// The elements must be readable.
pub(super) unsafe fn run_sum(simd: Simd, at: *const f32, n: usize) -> f32 {
    sum(simd, Run { at, splat: false }, n)
}

/// Adds `rows` rows of `n` elements to `dst`, in order. Consecutive rows begin `stride` elements apart.
///
/// # Safety
/// The rows must be readable, and `dst` must be writable.
pub(super) unsafe fn accumulate_rows(
    simd: Simd,
    dst: *mut f32,
    src: *const f32,
    stride: usize,
    rows: usize,
    n: usize,
) {
    add_rows(simd, dst, src, stride, rows, n);
}

trait MaybeFast {
    fn kernel(simd: Simd) -> Option<MapKernel>;
}

macro_rules! row {
    ($variant:ident ($($arg:ident)*) []) => {
        impl MaybeFast for tags::$variant {
            fn kernel(_: Simd) -> Option<MapKernel> {
                None
            }
        }
    };
    ($variant:ident ($($arg:ident)*) [$single:expr]) => {
        impl MaybeFast for tags::$variant {
            fn kernel(simd: Simd) -> Option<MapKernel> {
                Some(map_fn::<Self>(simd))
            }
        }

        impl RunOp for tags::$variant {
            const ARITY: usize = arity_of!($($arg)*);

            #[inline(always)]
            #[allow(unused_variables)]
            fn apply<V: F32x16>(first: V, second: V, third: V) -> V {
                bind_args!(first second third; $($arg)*);
                $single
            }
        }
    };
}

macro_rules! kernels {
    ($($variant:ident $name:literal ($($arg:ident),*) $out:ident $g:ident {
        value: $value:expr, $(kernel: $kernel:expr,)? $(single: $single:expr,)? $(range: $range:expr,)? $(harmless: [$($harmless:expr),*],)? partials: [$($partial:expr),*], points: [$([$($point:expr),*]),*]
    })*) => {
        /// A separate type for each operation, so that a kernel is compiled for each of them.
        mod tags {
            $(pub(super) struct $variant;)*
        }

        $(row!($variant ($($arg)*) [$($single)?]);)*

        pub(super) fn map_kernel(op: ElemOp, simd: Simd) -> Option<MapKernel> {
            match op {
                $(ElemOp::$variant => tags::$variant::kernel(simd)),*
            }
        }
    };
}

elementwise_table!(kernels);

/// Applies an operation that has no single-precision kernel, using its scalar definition in double precision.
///
/// # Safety
/// The same conditions hold as for [`MapKernel`]. The number of operands must be the arity of the operation.
pub(super) unsafe fn slow_map(op: ElemOp, dst: *mut f32, args: &[Run], n: usize) {
    let mut row = [0.0_f64; 3];
    for i in 0..n {
        for (slot, arg) in row.iter_mut().zip(args) {
            // SAFETY: every operand has `n` elements, or one element if it is splat.
            *slot = f64::from(unsafe { *arg.at.add(if arg.splat { 0 } else { i }) });
        }
        // SAFETY: the destination has `n` elements.
        unsafe { *dst.add(i) = op.value(&row[..args.len()]) as f32 };
    }
}
