//! The tables of an expression graph: nodes, constants, index lists, record columns and outputs.
//!
//! A value is a flat list of elements, and a matrix is stored in column-major order. Each draw has its own elements. At
//! run time, each element is a row that contains one number for each lane. Nodes and table entries are identified by
//! typed ids. The arguments of a node always precede the node, so the node table is in topological order.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::ending::Ending;
use crate::ops::{Op, Solver};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// Returns the index in the table.
            pub fn index(self) -> usize {
                self.0 as usize
            }

            pub(crate) fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("tables are bounded by the node limit"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id!(
    /// The id of a node of a graph.
    NodeId,
    "%"
);
id!(
    /// The id of a table of constants.
    ConstId,
    "c"
);
id!(
    /// The id of a list of element indices.
    IndexId,
    "i"
);
id!(
    /// The id of a solver, which includes the body of the solver.
    SolverId,
    "s"
);
id!(
    /// The id of a column of data along the record axis, which has one value or index per record.
    RecordId,
    "r"
);

/// The number of elements of a value. If `record` is false, it is `len`. If `record` is true, it is `len` for each
/// record of the batch, and element j of record r is at position `r * len + j`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Shape {
    /// The number of elements, counted per record if `record` is true.
    pub len: u32,
    /// Whether the value runs along the record axis.
    pub record: bool,
}

impl Shape {
    /// The shape of a single element.
    pub const SCALAR: Self = Self {
        len: 1,
        record: false,
    };

    /// Creates the shape of `len` elements.
    pub fn fixed(len: usize) -> Self {
        Self {
            len: u32::try_from(len).expect("tables are bounded by the node limit"),
            record: false,
        }
    }

    /// Creates the shape of `len` elements for each record.
    pub fn per_record(len: usize) -> Self {
        Self {
            record: true,
            ..Self::fixed(len)
        }
    }

    /// Returns whether the shape is a single element.
    pub fn is_scalar(self) -> bool {
        self == Self::SCALAR
    }

    /// Returns the number of elements when the batch has `records` records.
    pub fn elements(self, records: usize) -> usize {
        self.len as usize * if self.record { records } else { 1 }
    }
}

/// The time at which a value becomes known, which also determines how many copies of the value exist. The variants are
/// ordered from the earliest time to the latest. A result has the latest placement among its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Placement {
    /// The value is known when the graph is built. Constructors evaluate operations on such values immediately.
    Constant,
    /// All lanes have the same value, which becomes known when a batch is bound. Examples are record data and shared
    /// inputs.
    Shared,
    /// Each lane has its own value.
    Lane,
}

/// A node of a graph, which is an operation on earlier nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The operation of the node.
    pub op: Op,
    /// The shape of the result.
    pub shape: Shape,
    /// The placement of the result.
    pub placement: Placement,
    /// A number that identifies the source expression from which the node was built. The number is zero if this
    /// expression is unknown. Nodes that were built from the same source expression have the same site. The copies of
    /// an unrolled loop body are recognised by their sites.
    pub site: u32,
    args: (u32, u32),
}

/// An input of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// The number of elements.
    pub len: usize,
    /// The placement, which is [`Placement::Lane`] for a draw and [`Placement::Shared`] for a value that is common to
    /// all lanes.
    pub placement: Placement,
}

/// A column of data along the record axis.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordColumn {
    /// A column of `width` numbers per record. All numbers of a record are adjacent.
    Values {
        /// The number of values per record.
        width: usize,
        /// The values of all records, one record after another.
        values: Arc<[f64]>,
    },
    /// A column of one element index per record.
    Indices(Arc<[u32]>),
}

impl RecordColumn {
    /// Returns the number of records.
    pub fn count(&self) -> usize {
        match self {
            Self::Values { width, values } => values.len() / (*width).max(1),
            Self::Indices(indices) => indices.len(),
        }
    }
}

/// An expression graph with its tables; see the [module documentation](self).
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) arg_pool: Vec<NodeId>,
    pub(crate) consts: Vec<Arc<[f64]>>,
    pub(crate) indices: Vec<Arc<[u32]>>,
    pub(crate) records: Vec<RecordColumn>,
    pub(crate) solvers: Vec<Arc<Solver>>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<NodeId>,
    pub(crate) site: u32,
    pub(crate) ending: Ending,
    node_lookup: HashMap<u64, Vec<NodeId>>,
    const_lookup: HashMap<u64, Vec<ConstId>>,
    index_lookup: HashMap<u64, Vec<IndexId>>,
    record_lookup: HashMap<u64, Vec<RecordId>>,
}

/// The FNV-1a hash function. The function has no random seed, so the result of hash-consing is the same in every
/// process.
#[derive(Clone)]
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }
}

fn hash_of(item: impl FnOnce(&mut Fnv)) -> u64 {
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    item(&mut hasher);
    hasher.finish()
}

fn node_key(op: Op, args: &[NodeId], shape: Shape) -> u64 {
    hash_of(|hasher| {
        op.hash(hasher);
        shape.hash(hasher);
        args.iter().for_each(|arg| hasher.write_u32(arg.0));
    })
}

fn const_key(data: &[f64]) -> u64 {
    hash_of(|hasher| data.iter().for_each(|x| hasher.write_u64(x.to_bits())))
}

fn index_key(data: &[u32]) -> u64 {
    hash_of(|hasher| data.iter().for_each(|&x| hasher.write_u32(x)))
}

impl Graph {
    /// Creates an empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether the graph has no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the ids of all nodes. Arguments precede the nodes that use them.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(NodeId::new)
    }

    /// Returns a node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Returns the operation of a node.
    pub fn op(&self, id: NodeId) -> Op {
        self.nodes[id.index()].op
    }

    /// Returns the shape of a node.
    pub fn shape(&self, id: NodeId) -> Shape {
        self.nodes[id.index()].shape
    }

    /// Returns the placement of a node.
    pub fn placement(&self, id: NodeId) -> Placement {
        self.nodes[id.index()].placement
    }

    /// Returns the arguments of a node.
    pub fn args(&self, id: NodeId) -> &[NodeId] {
        let (start, len) = self.nodes[id.index()].args;
        &self.arg_pool[start as usize..(start + len) as usize]
    }

    /// Returns the elements of a constant table.
    pub fn const_data(&self, id: ConstId) -> &Arc<[f64]> {
        &self.consts[id.index()]
    }

    /// Returns an index list.
    pub fn index_data(&self, id: IndexId) -> &Arc<[u32]> {
        &self.indices[id.index()]
    }

    /// Returns a record column.
    pub fn record_data(&self, id: RecordId) -> &RecordColumn {
        &self.records[id.index()]
    }

    /// Returns a solver.
    pub fn solver(&self, id: SolverId) -> &Arc<Solver> {
        &self.solvers[id.index()]
    }

    pub(crate) fn same(&self, other: &Graph) -> bool {
        let bits = |graph: &Graph| -> Vec<Vec<u64>> {
            let table = |table: &Arc<[f64]>| table.iter().map(|x| x.to_bits()).collect();
            graph.consts.iter().map(table).collect()
        };
        let solvers = || self.solvers.iter().zip(&other.solvers);
        self.nodes == other.nodes
            && self.arg_pool == other.arg_pool
            && self.indices == other.indices
            && self.records == other.records
            && self.inputs == other.inputs
            && self.outputs == other.outputs
            && bits(self) == bits(other)
            && self.solvers.len() == other.solvers.len()
            && solvers().all(|(a, b)| a.same(b))
    }

    /// Returns the inputs, in the order of their creation.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// Returns the outputs.
    pub fn outputs(&self) -> &[NodeId] {
        &self.outputs
    }

    /// Replaces the list of outputs.
    pub fn set_outputs(&mut self, outputs: Vec<NodeId>) {
        self.outputs = outputs;
    }

    /// Returns the number of records, or `None` if the graph has no record axis.
    pub fn record_count(&self) -> Option<usize> {
        self.records.first().map(RecordColumn::count)
    }

    /// Interrupts constant folding when `ending` is due. The elements that remain to be folded become NaN, so the
    /// caller must discard the graph.
    pub fn end_by(&mut self, ending: &Ending) {
        self.ending = ending.clone();
    }

    /// Sets the site of all nodes that are added from now on; see [`Node::site`].
    pub fn set_site(&mut self, site: u32) {
        self.site = site;
    }

    /// Returns the site that new nodes receive.
    pub fn site(&self) -> u32 {
        self.site
    }

    /// Returns the elements of a constant node, or `None` if the node is not constant.
    pub fn constant_value(&self, id: NodeId) -> Option<&[f64]> {
        match self.op(id) {
            Op::Const(table) => Some(&self.consts[table.index()]),
            _ => None,
        }
    }

    /// Returns the element of a constant scalar node, or `None` for all other nodes.
    pub fn scalar_value(&self, id: NodeId) -> Option<f64> {
        match self.constant_value(id) {
            Some(&[value]) => Some(value),
            _ => None,
        }
    }

    /// Adds a node, or returns an existing equal node, so that every common subexpression exists only once. The
    /// constructors in [`crate::build`] check shapes and simplify before they call this function.
    pub(crate) fn push(&mut self, op: Op, args: &[NodeId], shape: Shape) -> NodeId {
        let key = node_key(op, args, shape);
        if let Some(found) = self.node_lookup.get(&key) {
            for &id in found {
                let node = &self.nodes[id.index()];
                if node.op == op && node.shape == shape && self.args(id) == args {
                    return id;
                }
            }
        }
        self.append(op, args, shape, self.site, key)
    }

    /// Returns the placement of the result of `op` on `args`. A value along the record axis is never constant, because
    /// it is known only once a batch is bound.
    fn placement_of(&self, op: Op, args: &[NodeId], shape: Shape) -> Placement {
        match op {
            Op::Const(_) => Placement::Constant,
            Op::Record(_) | Op::RecordCount => Placement::Shared,
            Op::Input(slot) => self.inputs[slot as usize].placement,
            Op::LaneSum => Placement::Shared,
            // A solver with constant arguments runs once, when a program is bound, and not while the graph is built.
            Op::Solver(..) => self.latest(args).max(Placement::Shared),
            _ if shape.record => self.latest(args).max(Placement::Shared),
            _ => self.latest(args),
        }
    }

    fn latest(&self, args: &[NodeId]) -> Placement {
        args.iter()
            .map(|&arg| self.placement(arg))
            .max()
            .unwrap_or(Placement::Constant)
    }

    fn append(&mut self, op: Op, args: &[NodeId], shape: Shape, site: u32, key: u64) -> NodeId {
        let placement = self.placement_of(op, args, shape);
        let start =
            u32::try_from(self.arg_pool.len()).expect("tables are bounded by the node limit");
        self.arg_pool.extend_from_slice(args);
        let id = NodeId::new(self.nodes.len());
        self.nodes.push(Node {
            op,
            shape,
            placement,
            site,
            args: (start, args.len() as u32),
        });
        self.node_lookup.entry(key).or_default().push(id);
        id
    }

    pub(crate) fn intern_const(&mut self, data: &[f64]) -> ConstId {
        self.intern(data, |data| data.into())
    }

    /// Adds a table that is shared with another graph, without copying its numbers.
    pub(crate) fn intern_shared(&mut self, data: &Arc<[f64]>) -> ConstId {
        self.intern(data, |_| data.clone())
    }

    fn intern(&mut self, data: &[f64], owned: impl FnOnce(&[f64]) -> Arc<[f64]>) -> ConstId {
        let key = const_key(data);
        let same = |other: &[f64]| {
            other.len() == data.len()
                && other
                    .iter()
                    .zip(data)
                    .all(|(a, b)| a.to_bits() == b.to_bits())
        };
        let found = self.const_lookup.entry(key).or_default();
        if let Some(&id) = found.iter().find(|id| same(&self.consts[id.index()])) {
            return id;
        }
        let id = ConstId::new(self.consts.len());
        self.consts.push(owned(data));
        found.push(id);
        id
    }

    pub(crate) fn intern_index(&mut self, data: &[u32]) -> IndexId {
        let key = index_key(data);
        let found = self.index_lookup.entry(key).or_default();
        if let Some(&id) = found.iter().find(|id| &*self.indices[id.index()] == data) {
            return id;
        }
        let id = IndexId::new(self.indices.len());
        self.indices.push(data.into());
        found.push(id);
        id
    }

    /// Returns the id of a solver. Equal solvers share one id.
    pub(crate) fn intern_solver(&mut self, solver: &Arc<Solver>) -> SolverId {
        let found = self
            .solvers
            .iter()
            .position(|other| Arc::ptr_eq(other, solver) || other.same(solver));
        SolverId::new(found.unwrap_or_else(|| {
            self.solvers.push(solver.clone());
            self.solvers.len() - 1
        }))
    }

    /// Returns the id of a record column. Equal columns share one id. In a graph that is evaluated, all columns have
    /// the same length. A graph under construction may have columns of different lengths.
    pub(crate) fn intern_record(&mut self, record: RecordColumn) -> RecordId {
        let key = match &record {
            RecordColumn::Values { values, .. } => const_key(values),
            RecordColumn::Indices(indices) => index_key(indices),
        };
        let same = |other: &RecordColumn| match (other, &record) {
            (RecordColumn::Indices(a), RecordColumn::Indices(b)) => a == b,
            (
                RecordColumn::Values { width, values },
                RecordColumn::Values {
                    width: other,
                    values: others,
                },
            ) => {
                width == other
                    && values
                        .iter()
                        .zip(others.iter())
                        .all(|(a, b)| a.to_bits() == b.to_bits())
            }
            _ => false,
        };
        let found = self.record_lookup.entry(key).or_default();
        if let Some(&id) = found.iter().find(|id| same(&self.records[id.index()])) {
            return id;
        }
        let id = RecordId::new(self.records.len());
        self.records.push(record);
        found.push(id);
        id
    }

    /// Adds a node without simplification, even if an equal node exists. The parser of the text form uses this
    /// function, and the caller must verify the node.
    pub(crate) fn push_verbatim(&mut self, op: Op, args: &[NodeId], shape: Shape, site: u32) {
        self.append(op, args, shape, site, node_key(op, args, shape));
    }

    pub(crate) fn push_const(&mut self, data: Arc<[f64]>) {
        let id = ConstId::new(self.consts.len());
        self.const_lookup
            .entry(const_key(&data))
            .or_default()
            .push(id);
        self.consts.push(data);
    }

    pub(crate) fn push_index(&mut self, data: Arc<[u32]>) {
        let id = IndexId::new(self.indices.len());
        self.index_lookup
            .entry(index_key(&data))
            .or_default()
            .push(id);
        self.indices.push(data);
    }

    /// Creates an empty graph with the same inputs and record columns, into which a pass can rebuild this graph.
    pub(crate) fn like(&self) -> Self {
        Self {
            inputs: self.inputs.clone(),
            records: self.records.clone(),
            ..Self::default()
        }
    }
}
