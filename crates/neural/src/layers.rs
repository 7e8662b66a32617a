//! Neural networks as expressions of a graph.
//!
//! A network receives its tensors as nodes of the graph. The same definition can therefore be used with weights that a
//! minibatch shares, with weights that are drawn from a posterior, and in tests in double precision. A new kind of
//! layer is a function from nodes to a node, together with a list of [`TensorSpec`]s.

use jensen_graph::{ElemOp, Graph, MatMul, NodeId};
use serde::{Deserialize, Serialize};

/// The activation function of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// The identity function, x.
    Identity,
    /// The hyperbolic tangent, which the paper's experiments use.
    #[default]
    Tanh,
    /// The rectified linear unit, max(x, 0).
    Relu,
    /// The softplus function, log(1 + eˣ).
    Softplus,
    /// The logistic function, 1 / (1 + e⁻ˣ).
    Sigmoid,
}

impl Activation {
    /// All activation functions and their names.
    pub const ALL: [(&'static str, Self); 5] = [
        ("identity", Self::Identity),
        ("tanh", Self::Tanh),
        ("relu", Self::Relu),
        ("softplus", Self::Softplus),
        ("sigmoid", Self::Sigmoid),
    ];

    /// Returns the activation function with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(known, _)| *known == name)
            .map(|(_, activation)| activation)
    }

    /// Applies the activation function to every element of `x`.
    pub fn apply(self, graph: &mut Graph, x: NodeId) -> NodeId {
        match self {
            Self::Identity => x,
            Self::Tanh => graph.elem(ElemOp::Tanh, &[x]),
            Self::Relu => {
                let zero = graph.constant(0.0);
                graph.elem(ElemOp::Fmax, &[x, zero])
            }
            Self::Softplus => graph.elem(ElemOp::Log1pExp, &[x]),
            Self::Sigmoid => graph.elem(ElemOp::InvLogit, &[x]),
        }
    }
}

/// The name and extents of a tensor of weights.
///
/// The tensor is stored as a row-major array with the shape `inputs × outputs`, so the output index runs fastest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorSpec {
    /// A dotted name, such as `encoder.0.weight`.
    pub name: String,
    /// Number of inputs. It is 1 for a bias.
    pub inputs: usize,
    /// Number of outputs.
    pub outputs: usize,
}

impl TensorSpec {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.inputs * self.outputs
    }

    /// Whether the tensor's name is that of a layer's bias.
    pub fn is_bias(&self) -> bool {
        self.name.ends_with(".bias")
    }

    /// Whether the tensor has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Builds `W x + b`, where W is a matrix of `outputs × inputs` weights.
pub fn dense(
    graph: &mut Graph,
    weight: NodeId,
    bias: NodeId,
    x: NodeId,
    (inputs, outputs): (usize, usize),
) -> NodeId {
    let dims = MatMul {
        m: outputs as u32,
        k: inputs as u32,
        n: 1,
        left_transposed: false,
        right_transposed: false,
    };
    let product = graph.matmul(weight, x, dims);
    graph.add(product, bias)
}

/// A network that consists of hidden layers followed by linear heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Perceptron {
    /// The prefix of the names of the tensors.
    pub name: String,
    /// Number of inputs.
    pub inputs: usize,
    /// Widths of the hidden layers, in order from the input. The list may be empty.
    pub hidden: Vec<usize>,
    /// The activation function of the hidden layers.
    pub activation: Activation,
    /// The name and the width of each head.
    pub heads: Vec<(&'static str, usize)>,
}

impl Perceptron {
    /// Returns the name, the inputs and the outputs of each layer. The hidden layers come before the heads.
    fn layers(&self) -> Vec<(String, usize, usize)> {
        let mut inputs = self.inputs;
        let mut layers = Vec::with_capacity(self.hidden.len() + self.heads.len());
        for (depth, &width) in self.hidden.iter().enumerate() {
            layers.push((format!("{}.{depth}", self.name), inputs, width));
            inputs = width;
        }
        for (head, width) in &self.heads {
            layers.push((format!("{}.{head}", self.name), inputs, *width));
        }
        layers
    }

    /// Returns the tensors, which are the weight and the bias of each layer in turn.
    pub fn specs(&self) -> Vec<TensorSpec> {
        let mut specs = Vec::new();
        for (name, inputs, outputs) in self.layers() {
            specs.push(TensorSpec {
                name: format!("{name}.weight"),
                inputs,
                outputs,
            });
            specs.push(TensorSpec {
                name: format!("{name}.bias"),
                inputs: 1,
                outputs,
            });
        }
        specs
    }

    /// Builds the values of the heads at `x`. `tensors` contains the tensors in the order of [`specs`](Self::specs).
    ///
    /// # Panics
    /// Panics if the number of tensors is wrong, which is a bug in the caller.
    pub fn build(&self, graph: &mut Graph, tensors: &[NodeId], x: NodeId) -> Vec<NodeId> {
        let layers = self.layers();
        assert_eq!(tensors.len(), 2 * layers.len(), "two tensors a layer");
        let mut value = x;
        let mut heads = Vec::with_capacity(self.heads.len());
        for (depth, ((_, inputs, outputs), pair)) in
            layers.iter().zip(tensors.chunks(2)).enumerate()
        {
            let sums = dense(graph, pair[0], pair[1], value, (*inputs, *outputs));
            if depth < self.hidden.len() {
                value = self.activation.apply(graph, sums);
            } else {
                heads.push(sums);
            }
        }
        heads
    }
}
