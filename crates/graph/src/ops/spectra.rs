//! Eigenvalues and eigenvectors of complex matrices: their values for the slow evaluator, and their derivative rules as
//! graph expressions.
//!
//! With W = V⁻¹ and M = W dA V, the derivatives are dλ = diag M and dV = V (K + D). Off the diagonal, Kᵢⱼ = Mᵢⱼ / (λⱼ −
//! λᵢ). The diagonal matrix D preserves the length of each eigenvector and keeps the chosen component of each
//! eigenvector real. Infinite terms of K are replaced by 0. These terms rotate eigenvectors that belong to the same
//! eigenvalue into each other. Functions of the space that these eigenvectors span do not depend on such rotations.

use jensen_math::complex::{self, Complex64};

use crate::ir::{Graph, NodeId, Shape};
use crate::ops::{ElemOp, MatMul};

/// Computes the eigenvalues, the eigenvectors and the chosen components, in the layout of
/// [`Op::Eigen`](crate::ops::Op::Eigen).
pub(crate) fn value(n: usize, hermitian: bool, a: &[f64]) -> Vec<f64> {
    let (re, im) = a.split_at(n * n);
    let a: Vec<Complex64> = re
        .iter()
        .zip(im)
        .map(|(x, y)| Complex64::new(*x, *y))
        .collect();
    let found = match hermitian {
        true => complex::eigen_hermitian(&a, n),
        false => complex::eigen(&a, n),
    };
    let mut out = Vec::with_capacity(n * (3 * n + 2));
    for part in [&found.values, &found.vectors] {
        out.extend(part.iter().map(|z| z.re));
        out.extend(part.iter().map(|z| z.im));
    }
    out.extend((0..n * n).map(|at| f64::from(found.largest[at / n] == at % n)));
    out
}

#[derive(Clone, Copy)]
struct Parts {
    re: NodeId,
    im: NodeId,
}

impl Parts {
    fn of(g: &mut Graph, both: NodeId, start: usize, len: usize) -> Self {
        Self {
            re: g.slice(both, start, len),
            im: g.slice(both, start + len, len),
        }
    }

    fn conj(self, g: &mut Graph) -> Self {
        Self {
            im: g.neg(self.im),
            ..self
        }
    }

    fn plus(self, g: &mut Graph, other: Self) -> Self {
        Self {
            re: g.add(self.re, other.re),
            im: g.add(self.im, other.im),
        }
    }

    fn times(self, g: &mut Graph, other: Self) -> Self {
        let (ac, bd) = (g.mul(self.re, other.re), g.mul(self.im, other.im));
        let (ad, bc) = (g.mul(self.re, other.im), g.mul(self.im, other.re));
        Self {
            re: g.sub(ac, bd),
            im: g.add(ad, bc),
        }
    }

    /// Returns the product of two matrices, each of which may be transposed without conjugation.
    fn product(self, g: &mut Graph, other: Self, n: usize, transposed: [bool; 2]) -> Self {
        let n = n as u32;
        let dims = MatMul {
            m: n,
            k: n,
            n,
            left_transposed: transposed[0],
            right_transposed: transposed[1],
        };
        let mut real = |x, y| g.matmul(x, y, dims);
        let (ac, bd) = (real(self.re, other.re), real(self.im, other.im));
        let (ad, bc) = (real(self.re, other.im), real(self.im, other.re));
        Self {
            re: g.sub(ac, bd),
            im: g.add(ad, bc),
        }
    }

    fn map(self, g: &mut Graph, f: impl Fn(&mut Graph, NodeId) -> NodeId) -> Self {
        Self {
            re: f(g, self.re),
            im: f(g, self.im),
        }
    }
}

struct Spectrum {
    vectors: Parts,
    /// The inverse V⁻¹ of the matrix of eigenvectors.
    inverse: Parts,
    /// The values 1 / (λⱼ − λᵢ), or 0 if the difference is 0.
    gaps: Parts,
    /// The value 1 at the chosen component of each vector, and 0 elsewhere.
    chosen: NodeId,
    positive: NodeId,
}

impl Spectrum {
    fn of(g: &mut Graph, node: NodeId, n: usize, hermitian: bool) -> Self {
        let values = Parts::of(g, node, 0, n);
        let vectors = Parts::of(g, node, 2 * n, n * n);
        let chosen = g.slice(node, 2 * n + 2 * n * n, n * n);
        let marked = g.mul(chosen, vectors.re);
        Self {
            vectors,
            inverse: match hermitian {
                true => {
                    let flip = vectors.map(g, |g, x| g.transpose(x, n, n));
                    flip.conj(g)
                }
                false => inverse(g, vectors, n),
            },
            gaps: gaps(g, values, n),
            chosen,
            positive: column_sums(g, marked, n),
        }
    }
}

fn inverse(g: &mut Graph, v: Parts, n: usize) -> Parts {
    let minus = g.neg(v.im);
    let all = g.concat(&[v.re, v.im, minus]);
    // The matrix [Re −Im; Im Re].
    let position = |at: usize| {
        let (row, column) = (at % (2 * n), at / (2 * n));
        let block = match (row < n, column < n) {
            (true, true) | (false, false) => 0,
            (false, true) => 1,
            (true, false) => 2,
        };
        (block * n * n + column % n * n + row % n) as u32
    };
    let index: Vec<u32> = (0..4 * n * n).map(position).collect();
    let blocks = g.gather(all, &index);
    let unit: Vec<f64> = (0..2 * n * n)
        .map(|at| f64::from(at / (2 * n) == at % (2 * n)))
        .collect();
    let unit = g.vector(&unit);
    let x = g.solve(blocks, unit, 2 * n, n, false);
    let half = |from: usize| -> Vec<u32> {
        let row = |at: usize| (at / n * 2 * n + from + at % n) as u32;
        (0..n * n).map(row).collect()
    };
    Parts {
        re: g.gather(x, &half(0)),
        im: g.gather(x, &half(n)),
    }
}

fn gaps(g: &mut Graph, values: Parts, n: usize) -> Parts {
    let index = |of: fn(usize, usize) -> usize| -> Vec<u32> {
        (0..n * n).map(|at| of(at, n) as u32).collect()
    };
    let (rows, columns) = (index(|at, n| at % n), index(|at, n| at / n));
    let gap = values.map(g, |g, x| {
        let (row, column) = (g.gather(x, &rows), g.gather(x, &columns));
        g.sub(column, row)
    });
    let sizes = g.elem(ElemOp::Hypot, &[values.re, values.im]);
    let largest = g.max(sizes);
    let rounding = g.constant(4.0 * n as f64 * f64::EPSILON);
    let rounding = g.mul(rounding, largest);
    let rounding = g.broadcast(rounding, Shape::fixed(n * n));
    let size = g.elem(ElemOp::Hypot, &[gap.re, gap.im]);
    let equal = g.elem(ElemOp::Le, &[size, rounding]);
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let divisor = g.select(equal, one, size);
    // The value conj(gap) / |gap|², computed so that no square underflows.
    let conj = gap.conj(g);
    conj.map(g, |g, x| {
        let once = g.div(x, divisor);
        let twice = g.div(once, divisor);
        g.select(equal, zero, twice)
    })
}

fn column_sums(g: &mut Graph, x: NodeId, n: usize) -> NodeId {
    let ones = g.vector(&vec![1.0; n]);
    let dims = MatMul {
        m: 1,
        k: n as u32,
        n: n as u32,
        left_transposed: false,
        right_transposed: false,
    };
    g.matmul(ones, x, dims)
}

fn down_columns(g: &mut Graph, x: NodeId, n: usize) -> NodeId {
    let index: Vec<u32> = (0..n * n).map(|at| (at / n) as u32).collect();
    g.gather(x, &index)
}

fn diagonal(n: usize) -> Vec<u32> {
    (0..n).map(|i| (i * (n + 1)) as u32).collect()
}

pub(super) fn adjoint(
    g: &mut Graph,
    node: NodeId,
    n: usize,
    hermitian: bool,
    bar: NodeId,
) -> NodeId {
    let s = Spectrum::of(g, node, n, hermitian);
    let (of_values, of_vectors) = (Parts::of(g, bar, 0, n), Parts::of(g, bar, 2 * n, n * n));
    // The inner products vⱼᴴ v̄ⱼ are the adjoints of D.
    let conj = s.vectors.conj(g);
    let overlap = conj.times(g, of_vectors);
    let overlap = overlap.map(g, |g, x| column_sums(g, x, n));
    let length = down_columns(g, overlap.re, n);
    let turn = g.div(overlap.im, s.positive);
    let turn = down_columns(g, turn, n);
    let turn = g.mul(s.chosen, turn);
    let along = s.vectors.map(g, |g, x| g.mul(length, x));
    let re = g.sub(of_vectors.re, along.re);
    let im = g.sub(of_vectors.im, along.im);
    let rest = Parts {
        re,
        im: g.sub(im, turn),
    };
    let pull = conj.product(g, rest, n, [true, false]);
    let gaps = s.gaps.conj(g);
    let pull = gaps.times(g, pull);
    let positions = diagonal(n);
    let on = of_values.map(g, |g, x| g.scatter_add(x, &positions, n * n));
    let middle = pull.plus(g, on);
    let left = s.inverse.conj(g);
    let left = left.product(g, middle, n, [true, false]);
    let all = left.product(g, conj, n, [false, true]);
    join(g, all, n, hermitian)
}

pub(super) fn tangent(
    g: &mut Graph,
    node: NodeId,
    n: usize,
    hermitian: bool,
    tangent: NodeId,
) -> NodeId {
    let s = Spectrum::of(g, node, n, hermitian);
    let tangent = Parts::of(g, tangent, 0, n * n);
    let tangent = join(g, tangent, n, hermitian);
    let tangent = Parts::of(g, tangent, 0, n * n);
    let left = s.inverse.product(g, tangent, n, [false, false]);
    let inside = left.product(g, s.vectors, n, [false, false]);
    let positions = diagonal(n);
    let of_values = inside.map(g, |g, x| g.gather(x, &positions));
    let turn = s.gaps.times(g, inside);
    let moved = s.vectors.product(g, turn, n, [false, false]);
    // D follows from the changes of lengths and of the chosen components due to the rest.
    let conj = s.vectors.conj(g);
    let overlap = conj.times(g, moved);
    let length = column_sums(g, overlap.re, n);
    let marked = g.mul(s.chosen, moved.im);
    let marked = column_sums(g, marked, n);
    let phase = g.div(marked, s.positive);
    let back = Parts {
        re: down_columns(g, length, n),
        im: down_columns(g, phase, n),
    };
    let back = s.vectors.times(g, back);
    let re = g.sub(moved.re, back.re);
    let im = g.sub(moved.im, back.im);
    let still = g.vector(&vec![0.0; n * n]);
    g.concat(&[of_values.re, of_values.im, re, im, still])
}

/// Concatenates the real and the imaginary part. If `hermitian` is true, replaces the matrix by its Hermitian part
/// first.
fn join(g: &mut Graph, a: Parts, n: usize, hermitian: bool) -> NodeId {
    if !hermitian {
        return g.concat(&[a.re, a.im]);
    }
    let half = g.constant(0.5);
    let flip = a.map(g, |g, x| g.transpose(x, n, n));
    let (re, im) = (g.add(a.re, flip.re), g.sub(a.im, flip.im));
    let (re, im) = (g.mul(half, re), g.mul(half, im));
    g.concat(&[re, im])
}
