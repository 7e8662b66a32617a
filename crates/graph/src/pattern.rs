//! Finds the mixed second derivatives of a log density that are zero everywhere.
//!
//! The analysis finds the coordinates on which each element of the gradient depends. If element i does not depend on
//! coordinate j, the second derivative with respect to coordinates i and j is zero everywhere. Sets of coordinates are
//! interned, because most elements of a model share a few sets.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use jensen_density::Pattern;

use crate::ir::{Graph, NodeId, Placement};
use crate::ops::{ElemOp, MatMul, Op, ScatterMap};

/// The largest number of set members that the analysis visits while it joins sets. Visiting this many members takes
/// some tenths of a second. After that, the analysis assumes that most pairs of coordinates have a nonzero derivative.
/// A time limit would be unsuitable, because the choice of families depends on the result and must be reproducible.
const MOST: usize = 1 << 24;

/// The largest number of elements whose sets are found one by one. This number of elements takes about a second.
const MOST_ELEMENTS: usize = 1 << 28;

/// The index of an interned set. Index 0 is the empty set.
type SetId = u32;

/// The set of each element of a node.
#[derive(Clone)]
enum Found {
    /// All elements depend on the same coordinates.
    Same(SetId),
    /// At least two elements, with a set for each.
    Each(Rc<[SetId]>),
}

impl Found {
    fn at(&self, i: usize) -> SetId {
        match self {
            Found::Same(set) => *set,
            Found::Each(sets) => sets[i],
        }
    }

    /// Returns every set at least once.
    fn sets(&self) -> &[SetId] {
        match self {
            Found::Same(set) => std::slice::from_ref(set),
            Found::Each(sets) => sets,
        }
    }

    fn same(&self) -> Option<SetId> {
        match self {
            Found::Same(set) => Some(*set),
            Found::Each(_) => None,
        }
    }
}

impl FromIterator<SetId> for Found {
    fn from_iter<I: IntoIterator<Item = SetId>>(sets: I) -> Self {
        let sets: Rc<[SetId]> = sets.into_iter().collect();
        match *sets {
            [set] => Found::Same(set),
            _ => Found::Each(sets),
        }
    }
}

/// Returns the pattern of a graph. The first input of the graph must be the draw, and its second output must be the
/// gradient. Returns `None` if the graph has a record axis, or if too many elements depend on too many coordinates.
pub(crate) fn pattern(graph: &Graph) -> Option<Arc<Pattern>> {
    if graph.record_count().is_some() {
        return None;
    }
    let dim = graph.inputs()[0].len;
    let mut sets = Sets::new(dim);
    let gradient = graph.outputs()[1];
    let last = last_uses(graph, gradient);
    let mut of: Vec<Found> = Vec::with_capacity(graph.len());
    let flat = flat_operations();
    let mut elements = 0;
    for id in graph.ids() {
        let len = graph.shape(id).len as usize;
        let found = if graph.placement(id) < Placement::Lane {
            Found::Same(0)
        } else {
            let args: Vec<&Found> = graph.args(id).iter().map(|a| &of[a.index()]).collect();
            dependence(graph, id, &args, len, &flat, &mut sets)
        };
        if let Found::Each(each) = &found {
            elements += each.len();
        }
        if sets.are_too_many() || elements > MOST_ELEMENTS {
            return None;
        }
        of.push(found);
        for arg in graph.args(id) {
            if last[arg.index()] == id.index() {
                of[arg.index()] = Found::Same(0);
            }
        }
    }
    let gradient = &of[gradient.index()];
    let lists = (0..dim).map(|i| sets.members[gradient.at(i) as usize].to_vec());
    Some(Arc::new(Pattern::new(lists.collect())))
}

/// Returns the index of the last node that uses each node, so that sets are dropped early. The node `kept` has no last
/// use.
fn last_uses(graph: &Graph, kept: NodeId) -> Vec<usize> {
    let mut last = vec![0; graph.len()];
    for id in graph.ids() {
        for arg in graph.args(id) {
            last[arg.index()] = id.index();
        }
    }
    last[kept.index()] = usize::MAX;
    last
}

fn dependence(
    graph: &Graph,
    id: NodeId,
    args: &[&Found],
    len: usize,
    flat: &[ElemOp],
    sets: &mut Sets,
) -> Found {
    match graph.op(id) {
        Op::Input(0) => (0..len).map(|i| sets.single(i as u32)).collect(),
        Op::Elem(op) if flat.contains(&op) => Found::Same(0),
        Op::Elem(op) => elementwise(graph, id, op, args, len, sets),
        Op::Broadcast => Found::Same(args[0].at(0)),
        Op::Gather(index) => match args[0] {
            Found::Same(set) => Found::Same(*set),
            Found::Each(each) => {
                let index = graph.index_data(index);
                index.iter().map(|&i| each[i as usize]).collect()
            }
        },
        Op::Scatter(maps) => {
            // All sets that meet at an element are joined in one step, because joining them one after the other would
            // take time proportional to the square of their number.
            let mut met = vec![Vec::new(); len];
            for ((arg, found), map) in graph.args(id).iter().zip(args).zip(maps) {
                let count = graph.shape(*arg).len as usize;
                match map {
                    ScatterMap::Index(index) => {
                        for (i, &to) in graph.index_data(index).iter().enumerate().take(count) {
                            met[to as usize].push(found.at(i));
                        }
                    }
                    ScatterMap::All | ScatterMap::Record(_) => {
                        for (i, met) in met.iter_mut().enumerate().take(count) {
                            met.push(found.at(i));
                        }
                    }
                }
            }
            met.iter()
                .map(|met| sets.all([&met[..]].into_iter()))
                .collect()
        }
        Op::Concat => {
            let first = args.first().and_then(|found| found.same());
            if let Some(set) = first.filter(|_| args.iter().all(|found| found.same() == first)) {
                return Found::Same(set);
            }
            let parts = graph.args(id).iter().zip(args);
            parts
                .flat_map(|(arg, found)| (0..graph.shape(*arg).len as usize).map(|i| found.at(i)))
                .collect()
        }
        Op::CumSum { reverse } => {
            let Found::Each(each) = args[0] else {
                return args[0].clone();
            };
            let mut out = each.to_vec();
            let mut sum = 0;
            for k in 0..len {
                let i = if reverse { len - 1 - k } else { k };
                sum = sets.union(sum, out[i]);
                out[i] = sum;
                if sets.are_too_many() {
                    break;
                }
            }
            out.into_iter().collect()
        }
        Op::MatMul(dims) => product(graph, id, dims, args, sets),
        // In sums, factorisations and operations that own a graph, every element of the result depends on every element
        // of the arguments.
        _ => Found::Same(sets.all(args.iter().map(|found| found.sets()))),
    }
}

fn elementwise(
    graph: &Graph,
    id: NodeId,
    op: ElemOp,
    args: &[&Found],
    len: usize,
    sets: &mut Sets,
) -> Found {
    // A product with a factor that is identically zero does not depend on the other factor.
    let factors: Vec<&[f64]> = match op {
        ElemOp::Mul | ElemOp::Fma => {
            let factors = graph.args(id)[..2].iter();
            factors
                .filter_map(|&arg| graph.constant_value(arg))
                .filter(|table| table.contains(&0.0))
                .collect()
        }
        _ => Vec::new(),
    };
    let same: Option<Vec<SetId>> = args.iter().map(|found| found.same()).collect();
    if let Some(same) = same.filter(|_| factors.is_empty()) {
        return Found::Same(same.iter().fold(0, |set, &other| sets.union(set, other)));
    }
    (0..len)
        .map(|i| {
            let zero = |table: &&[f64]| table[if table.len() == 1 { 0 } else { i }] == 0.0;
            let product = factors.iter().any(zero);
            let used = args.iter().skip(if product { 2 } else { 0 });
            used.fold(0, |set, found| sets.union(set, found.at(i)))
        })
        .collect()
}

/// Returns the set of each element of a matrix product. Zero elements of a constant factor are skipped.
fn product(graph: &Graph, id: NodeId, dims: MatMul, args: &[&Found], sets: &mut Sets) -> Found {
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
    let whole = |table: &Option<&[f64]>| table.is_some_and(|table| table.iter().all(|&x| x != 0.0));
    if let (Some(a), Some(b)) = (args[0].same(), args[1].same())
        && constants
            .iter()
            .all(|table| table.is_none() || whole(table))
    {
        return Found::Same(sets.union(a, b));
    }
    let mut out = vec![0; m * n];
    if whole(&constants[0]) {
        for j in 0..n {
            let column: Vec<SetId> = (0..k).map(|l| args[1].at(right(l, j))).collect();
            out[j * m..(j + 1) * m].fill(sets.all([&column[..]].into_iter()));
        }
        return out.into_iter().collect();
    }
    if whole(&constants[1]) {
        for i in 0..m {
            let row: Vec<SetId> = (0..k).map(|l| args[0].at(left(i, l))).collect();
            let set = sets.all([&row[..]].into_iter());
            (0..n).for_each(|j| out[j * m + i] = set);
        }
        return out.into_iter().collect();
    }
    if constants.iter().all(Option::is_none) {
        // All elements of a row interact with all elements of a column.
        let mut line = |which: usize, positions: &mut dyn Iterator<Item = usize>| {
            let met: Vec<SetId> = positions.map(|at| args[which].at(at)).collect();
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
        return out.into_iter().collect();
    }
    for j in 0..n {
        for i in 0..m {
            let terms: Vec<SetId> = (0..k)
                .map(|l| (left(i, l), right(l, j)))
                .filter(|&(a, b)| present(0, a) && present(1, b))
                .flat_map(|(a, b)| [args[0].at(a), args[1].at(b)])
                .collect();
            sets.joined += terms.len();
            out[j * m + i] = sets.all([&terms[..]].into_iter());
        }
        if sets.are_too_many() {
            break;
        }
    }
    out.into_iter().collect()
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

    /// All elements depend on the same coordinate, so the analysis must not visit them one by one. It would visit 10⁹.
    #[test]
    fn a_long_chain_of_large_matrices_takes_no_time() {
        let mut graph = Graph::new();
        let z = graph.input(1);
        let numbers: Vec<f64> = (1..=1_000_000).map(f64::from).collect();
        let table = graph.vector(&numbers);
        let mut matrix = graph.mul(table, z);
        for _ in 0..500 {
            let exp = graph.exp(matrix);
            matrix = graph.add(exp, table);
        }
        let value = graph.sum(matrix);
        graph.set_outputs(vec![value, z]);
        let begun = std::time::Instant::now();
        let pattern = pattern(&graph).unwrap();
        assert!(begun.elapsed().as_secs() < 1, "{:?}", begun.elapsed());
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
