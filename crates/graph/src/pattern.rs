//! Finds the mixed second derivatives of a log density that are zero everywhere.
//!
//! The analysis finds the coordinates on which each element of the gradient depends. If element i does not depend on
//! coordinate j, the second derivative with respect to coordinates i and j is zero everywhere. Sets of coordinates are
//! interned, because most elements of a model share a few sets.

use std::collections::HashMap;
use std::sync::Arc;

use jensen_density::Pattern;

use crate::ir::{Graph, NodeId, Placement};
use crate::ops::{ElemOp, MatMul, Op, ScatterMap};

/// The largest number of set members that the analysis visits while it joins sets. Visiting this many members takes
/// some tenths of a second. After that, the analysis assumes that most pairs of coordinates have a nonzero derivative.
/// A time limit would be unsuitable, because the choice of families depends on the result and must be reproducible.
const MOST: usize = 1 << 24;

/// The index of an interned set. Index 0 is the empty set.
type SetId = u32;

/// Returns the pattern of a graph. The first input of the graph must be the draw, and its second output must be the
/// gradient. Returns `None` if the graph has a record axis, or if too many elements depend on too many coordinates.
pub(crate) fn pattern(graph: &Graph) -> Option<Arc<Pattern>> {
    if graph.record_count().is_some() {
        return None;
    }
    let dim = graph.inputs()[0].len;
    let mut sets = Sets::new(dim);
    let mut of: Vec<Vec<SetId>> = Vec::with_capacity(graph.len());
    let flat = flat_operations();
    for id in graph.ids() {
        let len = graph.shape(id).len as usize;
        let found = if graph.placement(id) < Placement::Lane {
            vec![0; len]
        } else {
            let args: Vec<&[SetId]> = graph.args(id).iter().map(|a| &of[a.index()][..]).collect();
            dependence(graph, id, &args, len, &flat, &mut sets)
        };
        if sets.are_too_many() {
            return None;
        }
        of.push(found);
    }
    let gradient = &of[graph.outputs()[1].index()];
    let lists = gradient
        .iter()
        .map(|&set| sets.members[set as usize].to_vec());
    Some(Arc::new(Pattern::new(lists.collect())))
}

fn dependence(
    graph: &Graph,
    id: NodeId,
    args: &[&[SetId]],
    len: usize,
    flat: &[ElemOp],
    sets: &mut Sets,
) -> Vec<SetId> {
    match graph.op(id) {
        Op::Input(0) => (0..len).map(|i| sets.single(i as u32)).collect(),
        Op::Elem(op) if flat.contains(&op) => vec![0; len],
        Op::Elem(op) => {
            let position = |len: usize, i: usize| if len == 1 { 0 } else { i };
            let constants: Vec<Option<&[f64]>> = graph
                .args(id)
                .iter()
                .map(|&arg| graph.constant_value(arg))
                .collect();
            let is_zero = |which: usize, i: usize| {
                constants[which].is_some_and(|table| table[position(table.len(), i)] == 0.0)
            };
            (0..len)
                .map(|i| {
                    // A product with a factor that is identically zero does not depend on the other factor.
                    let product =
                        matches!(op, ElemOp::Mul | ElemOp::Fma) && (is_zero(0, i) || is_zero(1, i));
                    let used = args.iter().skip(if product { 2 } else { 0 });
                    used.fold(0, |set, arg| sets.union(set, arg[position(arg.len(), i)]))
                })
                .collect()
        }
        Op::Broadcast => vec![args[0][0]; len],
        Op::Gather(index) => {
            let index = graph.index_data(index);
            index.iter().map(|&i| args[0][i as usize]).collect()
        }
        Op::Scatter(maps) => {
            // All sets that meet at an element are joined in one step, because joining them one after the other would
            // take time proportional to the square of their number.
            let mut met = vec![Vec::new(); len];
            for (arg, map) in args.iter().zip(maps) {
                match map {
                    ScatterMap::Index(index) => {
                        for (&to, &set) in graph.index_data(index).iter().zip(*arg) {
                            met[to as usize].push(set);
                        }
                    }
                    ScatterMap::All | ScatterMap::Record(_) => {
                        for (met, &set) in met.iter_mut().zip(*arg) {
                            met.push(set);
                        }
                    }
                }
            }
            met.iter()
                .map(|met| sets.all([&met[..]].into_iter()))
                .collect()
        }
        Op::Concat => args.concat(),
        Op::CumSum { reverse } => {
            let mut out = args[0].to_vec();
            let mut sum = 0;
            for k in 0..len {
                let i = if reverse { len - 1 - k } else { k };
                sum = sets.union(sum, out[i]);
                out[i] = sum;
                if sets.are_too_many() {
                    break;
                }
            }
            out
        }
        Op::MatMul(dims) => product(graph, id, dims, args, sets),
        // In sums, factorisations and operations that own a graph, every element of the result depends on every element
        // of the arguments.
        _ => vec![sets.all(args.iter().copied()); len],
    }
}

/// Returns the set of each element of a matrix product. Zero elements of a constant factor are skipped.
fn product(
    graph: &Graph,
    id: NodeId,
    dims: MatMul,
    args: &[&[SetId]],
    sets: &mut Sets,
) -> Vec<SetId> {
    let (m, k, n) = (dims.m as usize, dims.k as usize, dims.n as usize);
    let left = |i: usize, l: usize| {
        if dims.left_transposed {
            i * k + l
        } else {
            l * m + i
        }
    };
    let right = |l: usize, j: usize| {
        if dims.right_transposed {
            l * n + j
        } else {
            j * k + l
        }
    };
    let constants: Vec<Option<&[f64]>> = (0..2)
        .map(|which| graph.constant_value(graph.args(id)[which]))
        .collect();
    let present = |which: usize, at: usize| constants[which].is_none_or(|table| table[at] != 0.0);
    // If the constant factor is dense, every element of the product depends on a whole row or column of the other
    // factor.
    let whole = |table: Option<&[f64]>| table.is_some_and(|table| table.iter().all(|&x| x != 0.0));
    let mut out = vec![0; m * n];
    if whole(constants[0]) {
        for j in 0..n {
            let column: Vec<SetId> = (0..k).map(|l| args[1][right(l, j)]).collect();
            out[j * m..(j + 1) * m].fill(sets.all([&column[..]].into_iter()));
        }
        return out;
    }
    if whole(constants[1]) {
        for i in 0..m {
            let row: Vec<SetId> = (0..k).map(|l| args[0][left(i, l)]).collect();
            let set = sets.all([&row[..]].into_iter());
            (0..n).for_each(|j| out[j * m + i] = set);
        }
        return out;
    }
    if constants.iter().all(Option::is_none) {
        // All elements of a row interact with all elements of a column.
        let mut line = |which: usize, positions: &mut dyn Iterator<Item = usize>| {
            let met: Vec<SetId> = positions.map(|at| args[which][at]).collect();
            sets.all([&met[..]].into_iter())
        };
        let rows: Vec<SetId> = (0..m)
            .map(|i| line(0, &mut (0..k).map(|l| left(i, l))))
            .collect();
        let columns: Vec<SetId> = (0..n)
            .map(|j| line(1, &mut (0..k).map(|l| right(l, j))))
            .collect();
        for (out, &column) in out.chunks_exact_mut(m.max(1)).zip(&columns) {
            for (out, &row) in out.iter_mut().zip(&rows) {
                *out = sets.union(row, column);
            }
        }
        return out;
    }
    for j in 0..n {
        for i in 0..m {
            let terms: Vec<SetId> = (0..k)
                .map(|l| (left(i, l), right(l, j)))
                .filter(|&(a, b)| present(0, a) && present(1, b))
                .flat_map(|(a, b)| [args[0][a], args[1][b]])
                .collect();
            sets.joined += terms.len();
            out[j * m + i] = sets.all([&terms[..]].into_iter());
        }
        if sets.are_too_many() {
            break;
        }
    }
    out
}

fn flat_operations() -> Vec<ElemOp> {
    let flat = |op: &&ElemOp| {
        let mut scratch = Graph::new();
        let x = scratch.input(op.arity());
        let args: Vec<NodeId> = (0..op.arity()).map(|i| scratch.element(x, i)).collect();
        let out = scratch.elem(**op, &args);
        (0..op.arity()).all(|which| op.partial(&mut scratch, &args, out, which).is_none())
    };
    ElemOp::ALL.iter().filter(flat).copied().collect()
}

struct Sets {
    members: Vec<Arc<[u32]>>,
    ids: HashMap<Arc<[u32]>, SetId>,
    unions: HashMap<(SetId, SetId), SetId>,
    joined: usize,
    marked: Vec<bool>,
    seen: Vec<u32>,
    round: u32,
}

impl Sets {
    fn new(dim: usize) -> Self {
        let empty: Arc<[u32]> = Arc::from([]);
        Self {
            ids: HashMap::from([(empty.clone(), 0)]),
            members: vec![empty],
            unions: HashMap::new(),
            joined: 0,
            marked: vec![false; dim],
            seen: vec![0],
            round: 0,
        }
    }

    /// Returns whether the limit on the number of visited set members is exceeded. Once the limit is exceeded, no more
    /// sets are joined.
    fn are_too_many(&self) -> bool {
        self.joined > MOST
    }

    fn intern(&mut self, set: Vec<u32>) -> SetId {
        let set: Arc<[u32]> = set.into();
        if let Some(&id) = self.ids.get(&set) {
            return id;
        }
        let id = self.members.len() as SetId;
        self.members.push(set.clone());
        self.seen.push(0);
        self.ids.insert(set, id);
        id
    }

    fn single(&mut self, coordinate: u32) -> SetId {
        self.intern(vec![coordinate])
    }

    fn union(&mut self, a: SetId, b: SetId) -> SetId {
        if a == b || b == 0 || self.are_too_many() {
            return a;
        }
        if a == 0 {
            return b;
        }
        let key = (a.min(b), a.max(b));
        if let Some(&id) = self.unions.get(&key) {
            return id;
        }
        let (x, y) = (&self.members[a as usize], &self.members[b as usize]);
        self.joined += x.len() + y.len();
        let mut both = Vec::with_capacity(x.len() + y.len());
        both.extend_from_slice(x);
        both.extend_from_slice(y);
        both.sort_unstable();
        both.dedup();
        let id = self.intern(both);
        self.unions.insert(key, id);
        id
    }

    fn all<'a>(&mut self, parts: impl Iterator<Item = &'a [SetId]>) -> SetId {
        self.round += 1;
        let (mut found, mut distinct, mut only) = (Vec::new(), 0, 0);
        for &set in parts.flatten() {
            if set == 0 || std::mem::replace(&mut self.seen[set as usize], self.round) == self.round
            {
                continue;
            }
            if self.are_too_many() {
                break;
            }
            (distinct, only) = (distinct + 1, set);
            self.joined += self.members[set as usize].len();
            for &coordinate in self.members[set as usize].iter() {
                if !std::mem::replace(&mut self.marked[coordinate as usize], true) {
                    found.push(coordinate);
                }
            }
        }
        found.iter().for_each(|&c| self.marked[c as usize] = false);
        if distinct <= 1 {
            return only;
        }
        found.sort_unstable();
        self.intern(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbours(dim: usize, build: impl Fn(&mut Graph, NodeId) -> NodeId) -> Vec<Vec<u32>> {
        let mut graph = Graph::new();
        let z = graph.input(dim);
        let value = build(&mut graph, z);
        let gradient = graph.gradient(value, &[z])[0];
        graph.set_outputs(vec![value, gradient]);
        let pattern = pattern(&graph).unwrap();
        (0..dim).map(|i| pattern.neighbours(i).to_vec()).collect()
    }

    #[test]
    fn a_random_walk_has_its_two_neighbours() {
        let found = neighbours(4, |g, z| {
            let (head, tail) = (g.slice(z, 0, 3), g.slice(z, 1, 3));
            let step = g.sub(tail, head);
            let square = g.square(step);
            let cosine = g.elem(ElemOp::Cos, &[z]);
            let (a, b) = (g.sum(square), g.sum(cosine));
            g.add(a, b)
        });
        assert_eq!(found, [vec![1], vec![0, 2], vec![1, 3], vec![2]]);
    }

    #[test]
    fn a_scale_meets_its_group_and_steps_meet_nothing() {
        let found = neighbours(4, |g, z| {
            let (scale, group) = (g.element(z, 0), g.slice(z, 1, 2));
            let free = g.element(z, 3);
            let product = g.mul(scale, group);
            let exp = g.exp(product);
            let sum = g.sum(exp);
            let zero = g.constant(0.0);
            let step = g.elem(ElemOp::Lt, &[free, zero]);
            let stepped = g.mul(step, sum);
            let square = g.square(free);
            let both = g.add(stepped, square);
            g.add(both, sum)
        });
        assert_eq!(found, [vec![1, 2], vec![0], vec![0], vec![]]);
    }

    #[test]
    fn what_takes_too_long_to_join_has_no_pattern() {
        let mut graph = Graph::new();
        let z = graph.input(6000);
        let sums = graph.cumsum(z);
        let exp = graph.exp(sums);
        let value = graph.sum(exp);
        let gradient = graph.gradient(value, &[z])[0];
        graph.set_outputs(vec![value, gradient]);
        assert!(pattern(&graph).is_none());
    }

    /// The product has a million entries, each computed from a row and a column. The analysis must not visit these
    /// entries one by one.
    #[test]
    fn a_product_of_large_matrices_takes_no_time() {
        let rows = 1000_u32;
        let mut graph = Graph::new();
        let z = graph.input(2);
        let numbers = (rows * rows) as usize;
        let first = graph.element(z, 0);
        let ones = graph.vector(&vec![1.0; numbers]);
        let matrix = graph.mul(ones, first);
        let dims = MatMul {
            m: rows,
            k: rows,
            n: rows,
            left_transposed: false,
            right_transposed: false,
        };
        let product = graph.matmul(matrix, matrix, dims);
        let sum = graph.sum(product);
        let square = graph.square(z);
        let square = graph.sum(square);
        let value = graph.sub(sum, square);
        let gradient = graph.gradient(value, &[z])[0];
        graph.set_outputs(vec![value, gradient]);
        let begun = std::time::Instant::now();
        let pattern = pattern(&graph).unwrap();
        assert!(begun.elapsed().as_secs() < 4, "{:?}", begun.elapsed());
        assert!(pattern.neighbours(0).is_empty());
    }

    #[test]
    fn a_product_meets_rows_and_columns() {
        // The entries of (z₀ z₂; z₁ z₃) squared are z₀² + z₂z₁, z₁z₀ + z₃z₁, z₀z₂ + z₂z₃ and z₁z₂ + z₃². All four of
        // them count, even if no other node reads them.
        let found = neighbours(4, |g, z| {
            let dims = MatMul {
                m: 2,
                k: 2,
                n: 2,
                left_transposed: false,
                right_transposed: false,
            };
            let square = g.matmul(z, z, dims);
            let first = g.element(square, 0);
            g.exp(first)
        });
        assert_eq!(
            found,
            [vec![1, 2], vec![0, 2, 3], vec![0, 1, 3], vec![1, 2]]
        );
    }

    #[test]
    fn zeros_of_a_constant_matrix_count() {
        let found = neighbours(3, |g, z| {
            // The column-major table has the rows (1, 2, 0) and (0, 0, 3).
            let table = g.vector(&[1.0, 0.0, 2.0, 0.0, 0.0, 3.0]);
            let dims = MatMul {
                m: 2,
                k: 3,
                n: 1,
                left_transposed: false,
                right_transposed: false,
            };
            let product = g.matmul(table, z, dims);
            let exp = g.exp(product);
            g.sum(exp)
        });
        assert_eq!(found, [vec![1], vec![0], vec![]]);
    }
}
