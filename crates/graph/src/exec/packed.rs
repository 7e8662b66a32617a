//! Lane kernels for products, triangular systems and Cholesky factors of larger matrices.
//!
//! In a matrix of lanes, consecutive elements of a column are separated by a whole row of lanes, so a few columns fill
//! the cache. The kernels therefore copy their operands, eight lanes at a time, into panels of `T` rows or columns. The
//! elements of a panel are contiguous in the order in which a loop reads them. The `T × T` sums stay in registers, and
//! each loaded element is used `T` times.

use jensen_math::simd::{F64x8, LANES};

use crate::exec::dense::{Extents, Factors, Flag, at};
use crate::exec::kernels::Operand;

/// Copying the operands saves time only if there are at least this many rows, and this many products per element.
const LEAST: usize = 8;
/// The smallest number of columns for which copying the operands saves time.
const LEAST_COLUMNS: usize = 4;

/// A product is summed in pieces of this many rows of the right factor. A panel with this number of rows stays in the
/// L1 cache.
const DEPTH: usize = 64;

/// The size of a cache line in bytes, which is also the size of eight lanes.
const LINE: usize = 64;

pub(super) fn is_product(m: usize, k: usize, n: usize) -> bool {
    m >= LEAST && k >= LEAST && n >= LEAST_COLUMNS
}

pub(super) fn is_system(n: usize, columns: usize) -> bool {
    n >= LEAST && columns >= LEAST_COLUMNS
}

pub(super) fn is_factor(n: usize) -> bool {
    n >= LEAST
}

struct Panels {
    memory: Vec<f64>,
    offset: usize,
}

impl Panels {
    fn new(values: usize) -> Self {
        let memory = vec![0.0; values * LANES + LINE / 8];
        let offset = memory.as_ptr().align_offset(LINE);
        Self { memory, offset }
    }

    fn at(&mut self) -> *mut f64 {
        self.memory[self.offset..].as_mut_ptr()
    }
}

/// Adds the products of the rows of two panels to `sums`. If `AWAY` is true, subtracts them instead.
///
/// # Safety
/// Each panel must contain `count` times `T` values.
#[inline(always)]
unsafe fn multiply<V: F64x8, const T: usize, const AWAY: bool>(
    sums: &mut [[V; T]; T],
    left: *const f64,
    right: *const f64,
    count: usize,
) {
    for k in 0..count {
        // SAFETY: this function requires both panels to have this number of values.
        unsafe {
            let mut across = [V::zero(); T];
            for (t, x) in across.iter_mut().enumerate() {
                *x = V::load(right.add((k * T + t) * LANES));
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                let x = V::load(left.add((k * T + r) * LANES));
                let x = if AWAY { x.neg() } else { x };
                for (sum, y) in sums.iter_mut().zip(across) {
                    *sum = x.fma(y, *sum);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn value<V: F64x8>(panel: *const f64, index: usize) -> V {
    // SAFETY: the kernels below read values within the panels that they build.
    unsafe { V::load(panel.add(index * LANES)) }
}

#[inline(always)]
unsafe fn put<V: F64x8>(panel: *mut f64, index: usize, x: V) {
    // SAFETY: the kernels below write values within the panels that they build.
    unsafe { x.store(panel.add(index * LANES)) }
}

#[inline(always)]
unsafe fn product_of<V: F64x8, M: Factors, const T: usize>(
    dst: *mut f64,
    args: *const Operand,
    extents: *const Extents,
    lanes: usize,
) {
    // SAFETY: all loops stay within the extents. The contract of `Dense::run` requires the operands and the destination
    // to have these extents.
    unsafe {
        let (a, b, e) = (*args, *args.add(1), *extents);
        let (m, k, n) = (e.m, e.k, e.n);
        let left = |i: usize, l: usize| {
            if e.left_transposed {
                i * k + l
            } else {
                l * m + i
            }
        };
        let right = |l: usize, j: usize| {
            if e.right_transposed {
                l * n + j
            } else {
                j * k + l
            }
        };
        let depth = DEPTH.min(k);
        let mut memory = Panels::new((m.div_ceil(T) + 1) * T * depth);
        let across = memory.at();
        let down = across.add(depth * T * LANES);
        let mut lane = 0;
        while lane < lanes {
            let mut start = 0;
            while start < k {
                let count = depth.min(k - start);
                for i in 0..m.div_ceil(T) * T {
                    let panel = down.add(i / T * depth * T * LANES);
                    for l in 0..count {
                        let x: V = match i < m {
                            true => at(M::A, &a, left(i, start + l), lane),
                            false => V::zero(),
                        };
                        put(panel, l * T + i % T, x);
                    }
                }
                for j in (0..n).step_by(T) {
                    for t in 0..T {
                        for l in 0..count {
                            let x: V = match j + t < n {
                                true => at(M::B, &b, right(start + l, j + t), lane),
                                false => V::zero(),
                            };
                            put(across, l * T + t, x);
                        }
                    }
                    for i in (0..m).step_by(T) {
                        let mut sums = [[V::zero(); T]; T];
                        let panel = down.add(i / T * depth * T * LANES);
                        multiply::<V, T, false>(&mut sums, panel, across, count);
                        for (r, sums) in sums.into_iter().enumerate().take(m - i) {
                            for (t, sum) in sums.into_iter().enumerate().take(n - j) {
                                let out = dst.add(((j + t) * m + i + r) * lanes + lane);
                                match start {
                                    0 => sum.store(out),
                                    _ => V::load(out).add(sum).store(out),
                                }
                            }
                        }
                    }
                }
                start += count;
            }
            lane += LANES;
        }
    }
}

/// Solves a triangular system. A system with the transposed matrix is treated as a system with a lower triangular
/// matrix, by taking rows, columns and unknowns in reverse order.
#[inline(always)]
unsafe fn system_of<V: F64x8, M: Factors, F: Flag, const T: usize>(
    dst: *mut f64,
    args: *const Operand,
    extents: *const Extents,
    lanes: usize,
) {
    // SAFETY: all loops stay within the extents. The contract of `Dense::run` requires the operands and the destination
    // to have these extents.
    unsafe {
        let (l, b, n, columns) = (*args, *args.add(1), (*extents).m, (*extents).n);
        let row = |i: usize| if F::ON { n - 1 - i } else { i };
        let entry = |i: usize, k: usize| match F::ON {
            true => row(i) * n + row(k),
            false => k * n + i,
        };
        let whole = n.div_ceil(T) * T;
        let mut memory = Panels::new(whole * whole + whole * T + whole);
        let solved = memory.at();
        let inverse = solved.add(whole * T * LANES);
        let down = inverse.add(whole * LANES);
        let mut lane = 0;
        while lane < lanes {
            for i in 0..n {
                let panel = down.add(i / T * whole * T * LANES);
                for k in 0..i {
                    let x: V = at(M::A, &l, entry(i, k), lane);
                    put(panel, k * T + i % T, x);
                }
                put(
                    inverse,
                    i,
                    V::splat(1.0).div(at(M::A, &l, entry(i, i), lane)),
                );
            }
            for c in (0..columns).step_by(T) {
                for i in (0..n).step_by(T) {
                    let panel = down.add(i / T * whole * T * LANES);
                    let mut rest = [[V::zero(); T]; T];
                    for (r, rest) in rest.iter_mut().enumerate().take(n - i) {
                        for (t, rest) in rest.iter_mut().enumerate().take(columns - c) {
                            *rest = at(M::B, &b, (c + t) * n + row(i + r), lane);
                        }
                    }
                    multiply::<V, T, true>(&mut rest, panel, solved, i);
                    for r in 0..T.min(n - i) {
                        let (known, own) = rest.split_at_mut(r);
                        for (s, known) in known.iter().enumerate() {
                            let factor = value::<V>(panel, (i + s) * T + r).neg();
                            for (own, known) in own[0].iter_mut().zip(known) {
                                *own = factor.fma(*known, *own);
                            }
                        }
                        let inverse: V = value(inverse, i + r);
                        for (t, own) in own[0].iter_mut().enumerate() {
                            *own = own.mul(inverse);
                            put(solved, (i + r) * T + t, *own);
                        }
                    }
                    for (r, rest) in rest.into_iter().enumerate().take(n - i) {
                        for (t, rest) in rest.into_iter().enumerate().take(columns - c) {
                            rest.store(dst.add(((c + t) * n + row(i + r)) * lanes + lane));
                        }
                    }
                }
            }
            lane += LANES;
        }
    }
}

#[inline(always)]
unsafe fn factor_of<V: F64x8, const T: usize>(
    dst: *mut f64,
    args: *const Operand,
    extents: *const Extents,
    lanes: usize,
) {
    // SAFETY: all loops stay within the extents. The contract of `Dense::run` requires the operands and the destination
    // to have these extents.
    unsafe {
        let (a, n) = (*args, (*extents).m);
        let whole = n.div_ceil(T) * T;
        let mut memory = Panels::new(whole * whole + whole);
        let inverse = memory.at();
        let factor = inverse.add(whole * LANES);
        let panel = |i: usize| factor.add(i / T * whole * T * LANES);
        let mut lane = 0;
        while lane < lanes {
            let mut positive = V::splat(1.0);
            for i in (0..n).step_by(T) {
                let own = panel(i);
                for j in (0..=i).step_by(T) {
                    let other = panel(j);
                    let mut rest = [[V::zero(); T]; T];
                    for (r, rest) in rest.iter_mut().enumerate().take(n - i) {
                        for (t, rest) in rest.iter_mut().enumerate() {
                            if j + t <= i + r {
                                *rest = at(false, &a, (j + t) * n + i + r, lane);
                            }
                        }
                    }
                    multiply::<V, T, true>(&mut rest, own, other, j);
                    for t in 0..T.min(n - j) {
                        if i == j {
                            for s in 0..t {
                                rest[t][t] = rest[t][s].neg().fma(rest[t][s], rest[t][t]);
                            }
                            let is_positive = rest[t][t].gt(V::zero());
                            let diagonal = V::select(is_positive, rest[t][t], V::splat(f64::NAN));
                            rest[t][t] = diagonal.sqrt();
                            positive = V::select(is_positive, positive, V::splat(f64::NAN));
                            put(inverse, j + t, V::splat(1.0).div(rest[t][t]));
                        }
                        let first = if i == j { t + 1 } else { 0 };
                        let inverse: V = value(inverse, j + t);
                        for r in first..T {
                            for s in 0..t {
                                let across: V = match i == j {
                                    true => rest[t][s],
                                    false => value(other, (j + s) * T + t),
                                };
                                rest[r][t] = rest[r][s].neg().fma(across, rest[r][t]);
                            }
                            rest[r][t] = rest[r][t].mul(inverse);
                        }
                    }
                    for (r, rest) in rest.into_iter().enumerate().take(n - i) {
                        for (t, x) in rest.into_iter().enumerate().take(n - j) {
                            let x = if j + t <= i + r { x } else { V::zero() };
                            put(own, (j + t) * T + r, x);
                            x.store(dst.add(((j + t) * n + i + r) * lanes + lane));
                            if i != j {
                                V::zero().store(dst.add(((i + r) * n + j + t) * lanes + lane));
                            }
                        }
                    }
                }
            }
            // If a pivot is not positive, the whole factor becomes NaN.
            let mut found = [0.0; LANES];
            positive.store(found.as_mut_ptr());
            if found.iter().any(|x| x.is_nan()) {
                let is_bad = V::is_nan(positive);
                for element in 0..n * n {
                    let cell = dst.add(element * lanes + lane);
                    V::select(is_bad, V::splat(f64::NAN), V::load(cell)).store(cell);
                }
            }
            lane += LANES;
        }
    }
}

jensen_math::simd_fn! {
    pub(super) fn product, product_fn = <V, M: Factors>(dst: *mut f64, args: *const Operand, extents: *const Extents, lanes: usize) {
        // SAFETY: this function has the same contract as `Dense::run`, and so does the function that is called.
        unsafe {
            match V::REGISTERS {
                1 => product_of::<V, M, 4>(dst, args, extents, lanes),
                _ => product_of::<V, M, 2>(dst, args, extents, lanes),
            }
        }
    }

    pub(super) fn system, system_fn = <V, M: Factors, F: Flag>(dst: *mut f64, args: *const Operand, extents: *const Extents, lanes: usize) {
        // SAFETY: this function has the same contract as `Dense::run`, and so does the function that is called.
        unsafe {
            match V::REGISTERS {
                1 => system_of::<V, M, F, 4>(dst, args, extents, lanes),
                _ => system_of::<V, M, F, 2>(dst, args, extents, lanes),
            }
        }
    }

    pub(super) fn factor, factor_fn = <V>(dst: *mut f64, args: *const Operand, extents: *const Extents, lanes: usize) {
        // SAFETY: this function has the same contract as `Dense::run`, and so does the function that is called.
        unsafe {
            match V::REGISTERS {
                1 => factor_of::<V, 4>(dst, args, extents, lanes),
                _ => factor_of::<V, 2>(dst, args, extents, lanes),
            }
        }
    }
}
