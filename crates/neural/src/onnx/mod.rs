//! Networks in the ONNX format, which other programs evaluate without Jensen.
//!
//! | file | subject |
//! | --- | --- |
//! | here | [`encode`]: from the operations of a graph to those of ONNX |
//! | `network` | [`encoder`] and [`decoder`]: the networks of an auto-encoder |
//! | `proto` | the messages of the format |
//!
//! A lane of the graph is a row of a batch: a value with `len` elements for each lane becomes a matrix of the shape
//! `rows × len`, and a value that all lanes share becomes a vector. An ONNX matrix is row-major, so a column-major matrix of
//! the graph is the transpose of an ONNX matrix, and factors of a product change places.

mod network;
mod proto;

use jensen_graph::ops::ScatterMap;
use jensen_graph::{ElemOp, Graph, MatMul, NodeId, Op, Placement};
use prost::Message;

pub use network::{decoder, encoder};
use proto::{
    Attribute, Dimension, Element, Extent, GraphOf, IR_VERSION, Model, NodeOf, OPERATORS,
    OperatorSet, ShapeOf, TensorOf, TensorType, TypeOf, ValueInfo,
};

/// The affine map of the columns of a batch to or from the inputs of a network, computed in double precision.
///
/// Column i of the result is `shift[i] + scale[i] · x[index[i]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnMap {
    /// The column of the argument for each column of the result.
    pub index: Vec<usize>,
    /// The factors.
    pub scale: Vec<f64>,
    /// The summands.
    pub shift: Vec<f64>,
}

/// A value that the file reads or returns.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// The name.
    pub name: String,
    /// The map between the value outside and the value of the graph. Without a map, both are the same matrix in single
    /// precision. With a map, the value outside has double precision.
    pub map: Option<ColumnMap>,
    /// Number of columns outside.
    pub columns: usize,
}

/// An operation that has no counterpart in ONNX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(pub String);

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the operation `{}` has no counterpart in ONNX", self.0)
    }
}

impl std::error::Error for Missing {}

/// Encodes a graph as an ONNX model in single precision. `shared` contains the values of the shared inputs, and `inputs`
/// and `outputs` name the inputs of lanes and the outputs, each in the order of the graph.
///
/// # Errors
/// Fails if an operation of the graph has no counterpart.
pub fn encode(
    graph: &Graph,
    shared: &[&[f32]],
    (inputs, outputs): (&[Port], &[Port]),
    description: &str,
) -> Result<Vec<u8>, Missing> {
    let mut file = File::new(graph);
    let (mut next_shared, mut next_lane) = (shared.iter(), inputs.iter());
    let mut first = None;
    for (which, input) in graph.inputs().iter().enumerate() {
        match input.placement {
            Placement::Lane => {
                let port = next_lane.next().expect("a name for each input");
                first.get_or_insert(port.name.as_str());
                file.read(which, port, input.len);
            }
            _ => {
                let values = next_shared.next().expect("values of each shared input");
                let name = format!("weights{which}");
                file.floats(&name, &[values.len()], values.iter().copied());
                file.inputs.push(name);
            }
        }
    }
    file.begin(first.expect("an input of lanes"));
    let ids: Vec<NodeId> = graph.ids().collect();
    for id in ids {
        let name = file.value(id)?;
        file.names.push(name);
    }
    for (id, port) in graph.outputs().iter().zip(outputs) {
        file.write(*id, port);
    }
    let model = Model {
        ir_version: IR_VERSION,
        producer_name: "jensen".to_owned(),
        producer_version: env!("CARGO_PKG_VERSION").to_owned(),
        doc_string: description.to_owned(),
        graph: Some(GraphOf {
            name: "network".to_owned(),
            ..file.out
        }),
        opset_import: vec![OperatorSet {
            domain: String::new(),
            version: OPERATORS,
        }],
    };
    Ok(model.encode_to_vec())
}

/// The name of the number of rows of a batch.
const ROWS: &str = "rows";

struct File<'a> {
    graph: &'a Graph,
    out: GraphOf,
    /// The names of the inputs of the graph, in their order.
    inputs: Vec<String>,
    /// The names of the values of the nodes, in their order.
    names: Vec<String>,
    temporaries: usize,
}

impl<'a> File<'a> {
    fn new(graph: &'a Graph) -> Self {
        Self {
            graph,
            out: GraphOf::default(),
            inputs: Vec::new(),
            names: Vec::new(),
            temporaries: 0,
        }
    }

    fn floats(&mut self, name: &str, dims: &[usize], values: impl Iterator<Item = f32>) {
        let bytes = values.flat_map(f32::to_le_bytes).collect();
        self.constant(name, dims, Element::Float, bytes);
    }

    fn constant(&mut self, name: &str, dims: &[usize], element: Element, raw_data: Vec<u8>) {
        self.out.initializer.push(TensorOf {
            dims: dims.iter().map(|n| *n as i64).collect(),
            data_type: element as i32,
            name: name.to_owned(),
            raw_data,
        });
    }

    fn temporary(&mut self) -> String {
        self.temporaries += 1;
        format!("t{}", self.temporaries)
    }

    fn integers(&mut self, values: &[i64]) -> String {
        let name = self.temporary();
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.constant(&name, &[values.len()], Element::Integer, bytes);
        name
    }

    fn doubles(&mut self, values: &[f64]) -> String {
        let name = self.temporary();
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.constant(&name, &[values.len()], Element::Double, bytes);
        name
    }

    /// Adds an operation with this result.
    fn add(&mut self, op: &str, input: &[&str], output: &str, attribute: Vec<Attribute>) {
        self.out.node.push(NodeOf {
            input: input.iter().map(|name| (*name).to_owned()).collect(),
            output: vec![output.to_owned()],
            op_type: op.to_owned(),
            attribute,
        });
    }

    /// Adds an operation, and returns the name of its result.
    fn apply(&mut self, op: &str, input: &[&str], attribute: Vec<Attribute>) -> String {
        let name = self.temporary();
        self.add(op, input, &name, attribute);
        name
    }

    fn cast(&mut self, x: &str, element: Element) -> String {
        self.apply(
            "Cast",
            &[x],
            vec![Attribute::integer("to", i64::from(element as i32))],
        )
    }

    fn mapped(&mut self, x: &str, map: &ColumnMap) -> String {
        let index: Vec<i64> = map.index.iter().map(|i| *i as i64).collect();
        let index = self.integers(&index);
        let chosen = self.apply("Gather", &[x, &index], vec![Attribute::integer("axis", 1)]);
        let (scale, shift) = (self.doubles(&map.scale), self.doubles(&map.shift));
        let scaled = self.apply("Mul", &[&chosen, &scale], Vec::new());
        self.apply("Add", &[&scaled, &shift], Vec::new())
    }

    fn port(port: &Port) -> ValueInfo {
        let element = match port.map {
            Some(_) => Element::Double,
            None => Element::Float,
        };
        let extents = [
            Extent::Named(ROWS.to_owned()),
            Extent::Known(port.columns as i64),
        ];
        let dims = extents.map(|extent| Dimension {
            extent: Some(extent),
        });
        ValueInfo {
            name: port.name.clone(),
            kind: Some(TypeOf {
                tensor: Some(TensorType {
                    element: element as i32,
                    shape: Some(ShapeOf {
                        dims: dims.to_vec(),
                    }),
                }),
            }),
        }
    }

    fn read(&mut self, which: usize, port: &Port, len: usize) {
        self.out.input.push(Self::port(port));
        let name = match &port.map {
            Some(map) => {
                assert_eq!(map.index.len(), len, "columns of input {which}");
                let mapped = self.mapped(&port.name, map);
                self.cast(&mapped, Element::Float)
            }
            None => port.name.clone(),
        };
        self.inputs.push(name);
    }

    fn write(&mut self, id: NodeId, port: &Port) {
        self.out.output.push(Self::port(port));
        let name = self.in_lanes(id);
        let result = match &port.map {
            Some(map) => {
                let double = self.cast(&name, Element::Double);
                self.mapped(&double, map)
            }
            None => name,
        };
        self.add("Identity", &[&result], &port.name, Vec::new());
    }

    /// Computes the number of rows from an input.
    fn begin(&mut self, input: &str) {
        let shape = self.apply("Shape", &[input], Vec::new());
        let first = self.integers(&[0]);
        self.add(
            "Gather",
            &[&shape, &first],
            ROWS,
            vec![Attribute::integer("axis", 0)],
        );
    }

    fn is_lane(&self, id: NodeId) -> bool {
        self.graph.placement(id) == Placement::Lane
    }

    fn len(&self, id: NodeId) -> usize {
        self.graph.shape(id).len as usize
    }

    fn name(&self, id: NodeId) -> String {
        self.names[id.index()].clone()
    }

    fn expanded(&mut self, x: &str, len: usize) -> String {
        let len = self.integers(&[len as i64]);
        let shape = self.apply("Concat", &[ROWS, &len], vec![Attribute::integer("axis", 0)]);
        self.apply("Expand", &[x, &shape], Vec::new())
    }

    /// Returns the name of a node's value with one row for each lane.
    fn in_lanes(&mut self, id: NodeId) -> String {
        let name = self.name(id);
        match self.is_lane(id) {
            true => name,
            false => self.expanded(&name, self.len(id)),
        }
    }

    /// Adds the operations of a node and returns the name of its value.
    fn value(&mut self, id: NodeId) -> Result<String, Missing> {
        let args = self.graph.args(id).to_vec();
        let axis = i64::from(self.is_lane(id));
        let names: Vec<String> = args.iter().map(|arg| self.name(*arg)).collect();
        let missing = || Missing(self.graph.op(id).name().to_owned());
        if self.graph.shape(id).record {
            return Err(missing());
        }
        Ok(match self.graph.op(id) {
            Op::Input(which) => self.inputs[which as usize].clone(),
            Op::Const(table) => {
                let values = self.graph.const_data(table).clone();
                let name = self.temporary();
                self.floats(&name, &[values.len()], values.iter().map(|x| *x as f32));
                name
            }
            Op::Elem(op) => self.elementwise(op, &names).ok_or_else(missing)?,
            Op::Broadcast => match self.is_lane(id) {
                true => self.expanded(&names[0], self.len(id)),
                false => {
                    let shape = self.integers(&[self.len(id) as i64]);
                    self.apply("Expand", &[&names[0], &shape], Vec::new())
                }
            },
            Op::Gather(index) => {
                let index: Vec<i64> = self
                    .graph
                    .index_data(index)
                    .iter()
                    .map(|i| i64::from(*i))
                    .collect();
                let index = self.integers(&index);
                let axis = Attribute::integer("axis", axis);
                self.apply("Gather", &[&names[0], &index], vec![axis])
            }
            Op::Scatter(maps) => {
                let mut sum: Option<String> = None;
                for (arg, map) in args.iter().zip(maps) {
                    let term = match map {
                        ScatterMap::All => self.in_lanes(*arg),
                        ScatterMap::Index(index) => {
                            let index = self.graph.index_data(index).clone();
                            self.scattered(*arg, &index, self.len(id))
                        }
                        ScatterMap::Record(_) => return Err(missing()),
                    };
                    sum = Some(match sum {
                        Some(sum) => self.apply("Add", &[&sum, &term], Vec::new()),
                        None => term,
                    });
                }
                sum.ok_or_else(missing)?
            }
            Op::Concat => {
                let parts: Vec<String> = match self.is_lane(id) {
                    true => args.iter().map(|arg| self.in_lanes(*arg)).collect(),
                    false => names,
                };
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                self.apply("Concat", &parts, vec![Attribute::integer("axis", axis)])
            }
            Op::Sum => {
                let axes = self.integers(&[axis]);
                self.apply("ReduceSum", &[&names[0], &axes], Vec::new())
            }
            Op::Max => self.apply(
                "ReduceMax",
                &[&names[0]],
                vec![Attribute::integers("axes", &[axis])],
            ),
            Op::MatMul(dims) => self.product(dims, &args),
            _ => return Err(missing()),
        })
    }

    fn elementwise(&mut self, op: ElemOp, x: &[String]) -> Option<String> {
        let x: Vec<&str> = x.iter().map(String::as_str).collect();
        let simple = match op {
            ElemOp::Add => "Add",
            ElemOp::Sub => "Sub",
            ElemOp::Mul => "Mul",
            ElemOp::Div => "Div",
            ElemOp::Neg => "Neg",
            ElemOp::Recip => "Reciprocal",
            ElemOp::Abs => "Abs",
            ElemOp::Sqrt => "Sqrt",
            ElemOp::Pow => "Pow",
            ElemOp::Exp => "Exp",
            ElemOp::Log => "Log",
            ElemOp::Tanh => "Tanh",
            ElemOp::InvLogit => "Sigmoid",
            ElemOp::Log1pExp => "Softplus",
            ElemOp::Fmax => "Max",
            ElemOp::Fmin => "Min",
            // The value is finite for finite inputs, and only derivatives tell these operations from the identity.
            ElemOp::Pivot | ElemOp::Held => "Identity",
            _ => "",
        };
        Some(match op {
            _ if !simple.is_empty() => self.apply(simple, &x, Vec::new()),
            ElemOp::Square => self.apply("Mul", &[x[0], x[0]], Vec::new()),
            ElemOp::Log1p => {
                let one = self.temporary();
                self.floats(&one, &[1], std::iter::once(1.0));
                let sum = self.apply("Add", &[x[0], &one], Vec::new());
                self.apply("Log", &[&sum], Vec::new())
            }
            ElemOp::Eq => {
                let same = self.apply("Equal", &[x[0], x[1]], Vec::new());
                self.cast(&same, Element::Float)
            }
            ElemOp::Select => {
                let chosen = self.cast(x[0], Element::Truth);
                self.apply("Where", &[&chosen, x[1], x[2]], Vec::new())
            }
            _ => return None,
        })
    }

    /// Adds the elements of a node to zeros at these positions.
    fn scattered(&mut self, arg: NodeId, index: &[u32], len: usize) -> String {
        let own = self.in_lanes(arg);
        let rows_last = || vec![Attribute::integers("perm", &[1, 0])];
        let own = self.apply("Transpose", &[&own], rows_last());
        let zero = self.temporary();
        self.floats(&zero, &[1], std::iter::once(0.0));
        let zeros = self.expanded(&zero, len);
        let zeros = self.apply("Transpose", &[&zeros], rows_last());
        let positions = self.temporary();
        let bytes = index.iter().flat_map(|i| i64::from(*i).to_le_bytes());
        self.constant(
            &positions,
            &[index.len(), 1],
            Element::Integer,
            bytes.collect(),
        );
        let sums = self.apply(
            "ScatterND",
            &[&zeros, &positions, &own],
            vec![Attribute::text("reduction", "add")],
        );
        self.apply("Transpose", &[&sums], rows_last())
    }

    /// Returns a factor as an ONNX matrix of the shape `rows × cols`, or as one such matrix for each lane.
    fn factor(&mut self, arg: NodeId, (rows, cols): (u32, u32), transposed: bool) -> String {
        let name = self.name(arg);
        let lane = self.is_lane(arg);
        let (rows, cols) = match transposed {
            true => (cols, rows),
            false => (rows, cols),
        };
        let mut shape = vec![i64::from(rows), i64::from(cols)];
        if lane {
            shape.insert(0, -1);
        }
        let shape = self.integers(&shape);
        let matrix = self.apply("Reshape", &[&name, &shape], Vec::new());
        match (transposed, lane) {
            (false, _) => matrix,
            (true, true) => self.apply(
                "Transpose",
                &[&matrix],
                vec![Attribute::integers("perm", &[0, 2, 1])],
            ),
            (true, false) => self.apply(
                "Transpose",
                &[&matrix],
                vec![Attribute::integers("perm", &[1, 0])],
            ),
        }
    }

    fn product(&mut self, dims: MatMul, args: &[NodeId]) -> String {
        let MatMul {
            m,
            k,
            n,
            left_transposed,
            right_transposed,
        } = dims;
        // (A B)ᵀ = Bᵀ Aᵀ, and the column-major A and B are the row-major Aᵀ and Bᵀ.
        let left = self.factor(args[0], (k, m), left_transposed);
        let right = self.factor(args[1], (n, k), right_transposed);
        let product = self.apply("MatMul", &[&right, &left], Vec::new());
        let len = i64::from(m) * i64::from(n);
        let shape = match args.iter().any(|arg| self.is_lane(*arg)) {
            true => self.integers(&[-1, len]),
            false => self.integers(&[len]),
        };
        self.apply("Reshape", &[&product, &shape], Vec::new())
    }
}
