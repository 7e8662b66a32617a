//! Lane kernels for matrix operations, cumulative sums and maxima. The innermost loop of each kernel runs over the
//! lanes. Matrices are stored in column-major order, and each element is a row of lanes.

use jensen_math::elimination::Elimination;
use jensen_math::simd::{F64x8, LANES, Simd};

use crate::exec::kernels::Operand;
use crate::exec::packed::{self, factor_fn, product_fn, system_fn};
use crate::ir::Shape;
use crate::ops::{MatMul, Op, hypergeometric, spectra, structural};

type DenseFn = unsafe fn(*mut f64, *const Operand, *const Extents, usize);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Extents {
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) left_transposed: bool,
    pub(super) right_transposed: bool,
    work: usize,
}

#[derive(Clone, Copy)]
pub(crate) struct DenseKernel {
    run: DenseFn,
    extents: Extents,
    /// The number of elements per record, if the operand runs along the record axis. The total number of elements is
    /// then known only once a batch is bound.
    per_record: Option<usize>,
}

impl DenseKernel {
    pub(crate) fn work(&self) -> usize {
        self.extents.work
    }

    /// # Safety
    /// The operands and the destination must have `lanes` lanes and the extents of the kernel. An extent along the
    /// record axis must be the extent for `records` records.
    pub(crate) unsafe fn run(&self, dst: *mut f64, args: &[Operand], records: usize, lanes: usize) {
        let extents = match self.per_record {
            Some(len) => Extents {
                m: len * records,
                ..self.extents
            },
            None => self.extents,
        };
        // SAFETY: this function requires that the operands and the destination have these extents and lanes.
        // `Runner::step` passes the operands for which the plan created the kernel.
        unsafe { (self.run)(dst, args.as_ptr(), &extents, lanes) }
    }
}

/// Specifies at compile time which of the two factors of a product are splat.
pub(super) trait Factors {
    const A: bool;
    const B: bool;
}

struct Mask<const A: bool, const B: bool>;

impl<const A: bool, const B: bool> Factors for Mask<A, B> {
    const A: bool = A;
    const B: bool = B;
}

pub(super) trait Flag {
    const ON: bool;
}

struct On;
struct Off;

impl Flag for On {
    const ON: bool = true;
}

impl Flag for Off {
    const ON: bool = false;
}

/// A product is summed in pieces of this many rows of the right factor. A piece stays in the L1 cache while all rows of
/// the result use it.
const DEPTH: usize = 32;

#[inline(always)]
pub(super) unsafe fn at<V: F64x8>(
    splat: bool,
    operand: &Operand,
    element: usize,
    lane: usize,
) -> V {
    // SAFETY: the kernels below loop over elements within their extents, and the contract of `Dense::run` requires the
    // operand to have these extents. They loop over lanes in whole vectors, and the number of lanes is a multiple of
    // eight.
    unsafe {
        let p = operand.base.add(element * operand.stride);
        if splat {
            V::splat(*p)
        } else {
            V::load(p.add(lane))
        }
    }
}

jensen_math::simd_fn! {
    fn matmul, matmul_fn = <V, M: Factors>(dst: *mut f64, args: *const Operand, extents: *const Extents, lanes: usize) {
        // SAFETY: all loops stay within the extents. The contract of `Dense::run` requires the operands and the
        // destination to have these extents.
        unsafe {
            let (a, b, e) = (*args, *args.add(1), *extents);
            let (m, k, n) = (e.m, e.k, e.n);
            let left = |i: usize, l: usize| if e.left_transposed { i * k + l } else { l * m + i };
            let right = |l: usize, j: usize| if e.right_transposed { l * n + j } else { j * k + l };
            for j in 0..n {
                let mut start = 0;
                loop {
                    let end = (start + DEPTH).min(k);
                    let first = start == 0;
                    let mut i = 0;
                    while i < m {
                        let block = (m - i).min(4);
                        let mut lane = 0;
                        // Eight independent sums keep both multipliers busy.
                        while block == 4 && lane + 2 * LANES <= lanes {
                            let mut acc = [[V::zero(); 2]; 4];
                            for l in start..end {
                                let x: [V; 2] = [
                                    at(M::B, &b, right(l, j), lane),
                                    at(M::B, &b, right(l, j), lane + LANES),
                                ];
                                for (t, acc) in acc.iter_mut().enumerate() {
                                    let element = left(i + t, l);
                                    let y: V = at(M::A, &a, element, lane);
                                    let z: V = if M::A { y } else { at(M::A, &a, element, lane + LANES) };
                                    acc[0] = y.fma(x[0], acc[0]);
                                    acc[1] = z.fma(x[1], acc[1]);
                                }
                            }
                            for (t, acc) in acc.into_iter().enumerate() {
                                for (half, acc) in acc.into_iter().enumerate() {
                                    let out = dst.add((j * m + i + t) * lanes + lane + half * LANES);
                                    if first { acc.store(out) } else { V::load(out).add(acc).store(out) }
                                }
                            }
                            lane += 2 * LANES;
                        }
                        while lane < lanes {
                            for t in 0..block {
                                let mut acc = V::zero();
                                for l in start..end {
                                    let x: V = at(M::B, &b, right(l, j), lane);
                                    let y: V = at(M::A, &a, left(i + t, l), lane);
                                    acc = y.fma(x, acc);
                                }
                                let out = dst.add((j * m + i + t) * lanes + lane);
                                if first { acc.store(out) } else { V::load(out).add(acc).store(out) }
                            }
                            lane += LANES;
                        }
                        i += block;
                    }
                    start = end;
                    if start >= k {
                        break;
                    }
                }
            }
        }
    }

    fn cholesky, cholesky_fn = <V>(dst: *mut f64, args: *const Operand, extents: *const Extents, lanes: usize) {
        // SAFETY: all loops stay within the extents. The contract of `Dense::run` requires the operands and the
        // destination to have these extents.
        unsafe {
            let (a, n) = (*args, (*extents).m);
            let l = |i: usize, j: usize, lane: usize| dst.add((j * n + i) * lanes + lane);
            let mut lane = 0;
            while lane < lanes {
                for j in 0..n {
                    let mut diagonal: V = at(false, &a, j * n + j, lane);
                    for k in 0..j {
                        let x = V::load(l(j, k, lane));
                        diagonal = diagonal.sub(x.mul(x));
                    }
                    let positive = diagonal.gt(V::zero());
                    let root = V::select(positive, diagonal, V::splat(f64::NAN)).sqrt();
                    let inverse = V::splat(1.0).div(root);
                    for i in 0..j {
                        V::zero().store(l(i, j, lane));
                    }
                    root.store(l(j, j, lane));
                    for i in j + 1..n {
                        let mut x: V = at(false, &a, j * n + i, lane);
                        for k in 0..j {
                            x = V::load(l(i, k, lane)).neg().fma(V::load(l(j, k, lane)), x);
                        }
                        x.mul(inverse).store(l(i, j, lane));
                    }
                }
                // If a pivot is not positive, all later columns are NaN already, and the earlier columns must also be
                // set to NaN.
                let last = l(n.max(1) - 1, n.max(1) - 1, lane);
                if n > 0 && (0..LANES).any(|k| (*last.add(k)).is_nan()) {
                    let last = V::load(last);
                    for at in 0..n * n {
                        let cell = dst.add(at * lanes + lane);
                        V::select(last.gt(V::zero()), V::load(cell), V::splat(f64::NAN)).store(cell);
                    }
                }
                lane += LANES;
            }
        }
    }

    fn tri_solve, tri_solve_fn = <V, M: Factors, T: Flag>(dst: *mut f64, args: *const Operand, extents: *const Extents, lanes: usize) {
        // SAFETY: all loops stay within the extents. The contract of `Dense::run` requires the operands and the
        // destination to have these extents.
        unsafe {
            let (l, b, n, cols) = (*args, *args.add(1), (*extents).m, (*extents).n);
            let mut lane = 0;
            while lane < lanes {
                let x = |i: usize, c: usize| dst.add((c * n + i) * lanes + lane);
                for step in 0..n {
                    let i = if T::ON { n - 1 - step } else { step };
                    let known = if T::ON { i + 1..n } else { 0..i };
                    let entry = |k: usize| -> V { at(M::A, &l, if T::ON { i * n + k } else { k * n + i }, lane) };
                    let inverse = V::splat(1.0).div(at(M::A, &l, i * n + i, lane));
                    let mut c = 0;
                    // Processing four columns together lets them share each load of an element of the triangle.
                    while c + 4 <= cols {
                        let mut rest = [V::zero(); 4];
                        for (t, rest) in rest.iter_mut().enumerate() {
                            *rest = at(M::B, &b, (c + t) * n + i, lane);
                        }
                        for k in known.clone() {
                            let factor = entry(k).neg();
                            for (t, rest) in rest.iter_mut().enumerate() {
                                *rest = factor.fma(V::load(x(k, c + t)), *rest);
                            }
                        }
                        for (t, rest) in rest.into_iter().enumerate() {
                            rest.mul(inverse).store(x(i, c + t));
                        }
                        c += 4;
                    }
                    while c < cols {
                        let mut rest: V = at(M::B, &b, c * n + i, lane);
                        for k in known.clone() {
                            rest = entry(k).neg().fma(V::load(x(k, c)), rest);
                        }
                        rest.mul(inverse).store(x(i, c));
                        c += 1;
                    }
                }
                lane += LANES;
            }
        }
    }

    fn cumsum, cumsum_fn = <V, T: Flag>(dst: *mut f64, args: *const Operand, extents: *const Extents, lanes: usize) {
        // SAFETY: all loops stay within the extents. The contract of `Dense::run` requires the operands and the
        // destination to have these extents.
        unsafe {
            let (a, n) = (*args, (*extents).m);
            let mut lane = 0;
            while lane < lanes {
                let mut sum = V::zero();
                for step in 0..n {
                    let i = if T::ON { n - 1 - step } else { step };
                    let x: V = at(false, &a, i, lane);
                    sum = sum.add(x);
                    sum.store(dst.add(i * lanes + lane));
                }
                lane += LANES;
            }
        }
    }

    fn largest, largest_fn = <V>(dst: *mut f64, args: *const Operand, extents: *const Extents, lanes: usize) {
        // SAFETY: all loops stay within the extents. The contract of `Dense::run` requires the operands and the
        // destination to have these extents.
        unsafe {
            let (a, n) = (*args, (*extents).m);
            let mut lane = 0;
            while lane < lanes {
                let mut most = V::splat(f64::NEG_INFINITY);
                for i in 0..n {
                    let x: V = at(false, &a, i, lane);
                    // `max` returns its second operand if the first is NaN. A NaN that was found earlier must therefore
                    // be the second operand.
                    most = V::select(V::is_nan(most), most, most.max(x));
                }
                most.store(dst.add(lane));
                lane += LANES;
            }
        }
    }
}

unsafe fn lane_values(operand: &Operand, splat: bool, len: usize, lane: usize) -> Vec<f64> {
    (0..len)
        // SAFETY: all loops stay within the extents. The contract of `Dense::run` requires the operands and the
        // destination to have these extents.
        .map(|i| unsafe {
            *operand
                .base
                .add(i * operand.stride + if splat { 0 } else { lane })
        })
        .collect()
}

/// Returns the rows of an operand in order, and the number of lanes per row. The number is 1 if the operand is splat.
unsafe fn rows(
    operand: &Operand,
    splat: bool,
    which: impl ExactSizeIterator<Item = usize>,
    lanes: usize,
) -> (Vec<f64>, usize) {
    let width = if splat { 1 } else { lanes };
    let mut out = Vec::with_capacity(which.len() * width);
    for i in which {
        // SAFETY: all rows are within the extents. The contract of `Dense::run` requires the operand to have these
        // extents.
        out.extend_from_slice(unsafe {
            std::slice::from_raw_parts(operand.base.add(i * operand.stride), width)
        });
    }
    (out, width)
}

jensen_math::simd_fn! {
    fn solve, solve_fn = <V, M: Factors, T: Flag>(dst: *mut f64, args: *const Operand, extents: *const Extents, lanes: usize) {
        // SAFETY: all loops stay within the extents. The contract of `Dense::run` requires the operands and the
        // destination to have these extents.
        unsafe {
            let (n, cols) = ((*extents).m, (*extents).n);
            // The transpose itself is factorised, as in the slow evaluator.
            let position = |k: usize| if T::ON { k % n * n + k / n } else { k };
            let (a, width) = rows(&*args, M::A, (0..n * n).map(position), lanes);
            let (b, each) = rows(&*args.add(1), M::B, 0..n * cols, lanes);
            let x = std::slice::from_raw_parts_mut(dst, n * cols * lanes);
            for (x, b) in x.chunks_exact_mut(lanes).zip(b.chunks_exact(each)) {
                if M::B { x.fill(b[0]) } else { x.copy_from_slice(b) }
            }
            let mut elimination = Elimination::default();
            elimination.factor_at::<V>(n, &a, width);
            elimination.solve_at::<V>(x, lanes, false);
        }
    }

    fn determinant, determinant_fn = <V, L: Flag>(dst: *mut f64, args: *const Operand, extents: *const Extents, lanes: usize) {
        // SAFETY: all loops stay within the extents. The contract of `Dense::run` requires the operands and the
        // destination to have these extents.
        unsafe {
            let n = (*extents).m;
            let (a, width) = rows(&*args, false, 0..n * n, lanes);
            let mut elimination = Elimination::default();
            elimination.factor_at::<V>(n, &a, width);
            elimination.determinant_at::<V>(L::ON, std::slice::from_raw_parts_mut(dst, lanes));
        }
    }
}

unsafe fn eigen_sym(dst: *mut f64, args: *const Operand, extents: *const Extents, lanes: usize) {
    // SAFETY: all loops stay within the extents. The contract of `Dense::run` requires the operands and the destination
    // to have these extents.
    unsafe {
        let n = (*extents).m;
        for lane in 0..lanes {
            let a = lane_values(&*args, false, n * n, lane);
            for (i, x) in structural::eigen_value(n, &a).into_iter().enumerate() {
                *dst.add(i * lanes + lane) = x;
            }
        }
    }
}

unsafe fn eigen<T: Flag>(
    dst: *mut f64,
    args: *const Operand,
    extents: *const Extents,
    lanes: usize,
) {
    // SAFETY: all loops stay within the extents. The contract of `Dense::run` requires the operands and the destination
    // to have these extents.
    unsafe {
        let n = (*extents).m;
        for lane in 0..lanes {
            let a = lane_values(&*args, false, 2 * n * n, lane);
            for (i, x) in spectra::value(n, T::ON, &a).into_iter().enumerate() {
                *dst.add(i * lanes + lane) = x;
            }
        }
    }
}

unsafe fn hypergeometric(
    dst: *mut f64,
    args: *const Operand,
    extents: *const Extents,
    lanes: usize,
) {
    // SAFETY: all loops stay within the extents. The contract of `Dense::run` requires the operands and the destination
    // to have these extents.
    unsafe {
        let (len, above, order) = ((*extents).m, (*extents).k, (*extents).n);
        for lane in 0..lanes {
            let x = lane_values(&*args, false, len, lane);
            let found = hypergeometric::value(above, order, &x);
            for (i, x) in found.into_iter().enumerate() {
                *dst.add(i * lanes + lane) = x;
            }
        }
    }
}

fn solve_kernel(simd: Simd, splat: &[bool], transposed: bool) -> DenseFn {
    match (splat[0], splat[1], transposed) {
        (false, false, false) => solve_fn::<Mask<false, false>, Off>(simd),
        (false, true, false) => solve_fn::<Mask<false, true>, Off>(simd),
        (true, false, false) => solve_fn::<Mask<true, false>, Off>(simd),
        (true, true, false) => solve_fn::<Mask<true, true>, Off>(simd),
        (false, false, true) => solve_fn::<Mask<false, false>, On>(simd),
        (false, true, true) => solve_fn::<Mask<false, true>, On>(simd),
        (true, false, true) => solve_fn::<Mask<true, false>, On>(simd),
        (true, true, true) => solve_fn::<Mask<true, true>, On>(simd),
    }
}

fn matmul_kernel(simd: Simd, splat: &[bool], is_packed: bool) -> DenseFn {
    match (splat[0], splat[1], is_packed) {
        (false, false, false) => matmul_fn::<Mask<false, false>>(simd),
        (false, true, false) => matmul_fn::<Mask<false, true>>(simd),
        (true, false, false) => matmul_fn::<Mask<true, false>>(simd),
        (true, true, false) => matmul_fn::<Mask<true, true>>(simd),
        (false, false, true) => product_fn::<Mask<false, false>>(simd),
        (false, true, true) => product_fn::<Mask<false, true>>(simd),
        (true, false, true) => product_fn::<Mask<true, false>>(simd),
        (true, true, true) => product_fn::<Mask<true, true>>(simd),
    }
}

fn system_kernel(simd: Simd, splat: &[bool], transposed: bool) -> DenseFn {
    match (splat[0], splat[1], transposed) {
        (false, false, false) => system_fn::<Mask<false, false>, Off>(simd),
        (false, true, false) => system_fn::<Mask<false, true>, Off>(simd),
        (true, false, false) => system_fn::<Mask<true, false>, Off>(simd),
        (true, true, false) => system_fn::<Mask<true, true>, Off>(simd),
        (false, false, true) => system_fn::<Mask<false, false>, On>(simd),
        (false, true, true) => system_fn::<Mask<false, true>, On>(simd),
        (true, false, true) => system_fn::<Mask<true, false>, On>(simd),
        (true, true, true) => system_fn::<Mask<true, true>, On>(simd),
    }
}

fn tri_solve_kernel(simd: Simd, splat: &[bool], transposed: bool) -> DenseFn {
    match (splat[0], splat[1], transposed) {
        (false, false, false) => tri_solve_fn::<Mask<false, false>, Off>(simd),
        (false, true, false) => tri_solve_fn::<Mask<false, true>, Off>(simd),
        (true, false, false) => tri_solve_fn::<Mask<true, false>, Off>(simd),
        (true, true, false) => tri_solve_fn::<Mask<true, true>, Off>(simd),
        (false, false, true) => tri_solve_fn::<Mask<false, false>, On>(simd),
        (false, true, true) => tri_solve_fn::<Mask<false, true>, On>(simd),
        (true, false, true) => tri_solve_fn::<Mask<true, false>, On>(simd),
        (true, true, true) => tri_solve_fn::<Mask<true, true>, On>(simd),
    }
}

/// Returns the kernel of a dense operation whose first argument has the given shape, for at most `records` records.
pub(crate) fn dense_kernel(
    op: Op,
    simd: Simd,
    splat: &[bool],
    shape: Shape,
    records: usize,
) -> DenseKernel {
    let len = shape.elements(records);
    let square = |n: u32, cols: u32| Extents {
        m: n as usize,
        k: n as usize,
        n: cols as usize,
        left_transposed: false,
        right_transposed: false,
        work: (n as usize).pow(2) * (cols.max(1) as usize),
    };
    let flat = Extents {
        m: len,
        k: 0,
        n: 0,
        left_transposed: false,
        right_transposed: false,
        work: len,
    };
    let (run, extents): (DenseFn, Extents) = match op {
        Op::MatMul(MatMul {
            m,
            k,
            n,
            left_transposed,
            right_transposed,
        }) => {
            let (m, k, n) = (m as usize, k as usize, n as usize);
            (
                matmul_kernel(simd, splat, packed::is_product(m, k, n)),
                Extents {
                    m,
                    k,
                    n,
                    left_transposed,
                    right_transposed,
                    work: m * k * n,
                },
            )
        }
        Op::Cholesky { n } => match packed::is_factor(n as usize) {
            true => (factor_fn(simd), square(n, n)),
            false => (cholesky_fn(simd), square(n, n)),
        },
        Op::TriSolve {
            n,
            cols,
            transposed,
        } => match packed::is_system(n as usize, cols as usize) {
            true => (system_kernel(simd, splat, transposed), square(n, cols)),
            false => (tri_solve_kernel(simd, splat, transposed), square(n, cols)),
        },
        Op::Solve {
            n,
            cols,
            transposed,
        } => (solve_kernel(simd, splat, transposed), square(n, cols)),
        Op::Determinant { n, log: true } => (determinant_fn::<On>(simd), square(n, n)),
        Op::Determinant { n, log: false } => (determinant_fn::<Off>(simd), square(n, n)),
        Op::EigenSym { n } => (eigen_sym, square(n, 10 * n)),
        Op::Eigen { n, hermitian } => {
            let run: DenseFn = match hermitian {
                true => eigen::<On>,
                false => eigen::<Off>,
            };
            (run, square(n, 60 * n))
        }
        Op::Hypergeometric {
            above,
            below,
            order,
        } => {
            let n = (above + below + 1) as usize;
            let extents = Extents {
                m: n,
                k: above as usize,
                n: order as usize,
                left_transposed: false,
                right_transposed: false,
                work: 500 * n * (n * n).max(8),
            };
            (hypergeometric, extents)
        }
        Op::CumSum { reverse: false } => (cumsum_fn::<Off>(simd), flat),
        Op::CumSum { reverse: true } => (cumsum_fn::<On>(simd), flat),
        Op::Max => (largest_fn(simd), flat),
        op => unreachable!("{} is not a dense operation", op.name()),
    };
    DenseKernel {
        run,
        extents,
        per_record: shape.record.then_some(shape.len as usize),
    }
}
