//! Neural networks as expressions of a graph.
//!
//! A network receives its tensors as nodes of the graph. The same definition can therefore be used with weights that a
//! minibatch shares, with weights that are drawn from a posterior, and in tests in double precision. A new kind of
//! layer is a variant of [`Layer`].

use jensen_graph::{ElemOp, Graph, MatMul, NodeId};
use serde::{Deserialize, Serialize};

use crate::convolution::{Windows, per_channel};

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
    /// Number of weighted inputs in a sum, from which the size of initial weights follows. `None` means all inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_in: Option<usize>,
}

impl TensorSpec {
    /// Creates the tensor of a dense layer.
    pub fn new(name: String, inputs: usize, outputs: usize) -> Self {
        Self {
            name,
            inputs,
            outputs,
            fan_in: None,
        }
    }

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

/// Builds `W X`, where W is a matrix of `outputs × inputs` weights and X has this number of columns.
pub(crate) fn product(
    graph: &mut Graph,
    weight: NodeId,
    x: NodeId,
    (inputs, outputs): (usize, usize),
    columns: usize,
) -> NodeId {
    let dims = MatMul {
        m: outputs as u32,
        k: inputs as u32,
        n: columns as u32,
        left_transposed: false,
        right_transposed: false,
    };
    graph.matmul(weight, x, dims)
}

/// A linear layer with a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// A layer in which each output depends on all inputs.
    Dense {
        /// Number of inputs.
        inputs: usize,
        /// Number of outputs.
        outputs: usize,
    },
    /// A layer from an image to an image of half its resolution, with a bias for each filter.
    Convolution(Windows),
    /// A layer from an image to an image of twice its resolution, with a bias for each channel.
    Transposed(Windows),
    /// The same with a bias for each value.
    TransposedHead(Windows),
}

impl Layer {
    /// Returns the number of outputs.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Dense { outputs, .. } => *outputs,
            Self::Convolution(windows) => windows.small.len(),
            Self::Transposed(windows) | Self::TransposedHead(windows) => windows.outer(),
        }
    }

    /// Returns the number of values that an evaluation of the layer stores for each record, without its outputs.
    pub fn scratch(&self) -> usize {
        match self {
            Self::Dense { .. } => 0,
            Self::Convolution(windows)
            | Self::Transposed(windows)
            | Self::TransposedHead(windows) => {
                windows.outer() + windows.values() * windows.small.len() / windows.small.channels
            }
        }
    }

    /// Returns the tensors of the layer, which are the weight and the bias.
    fn specs(&self, name: &str) -> [TensorSpec; 2] {
        let (inputs, outputs) = match self {
            Self::Dense { inputs, outputs } => (*inputs, *outputs),
            Self::Convolution(windows) => (windows.values(), windows.small.channels),
            Self::Transposed(windows) | Self::TransposedHead(windows) => {
                (windows.small.channels, windows.values())
            }
        };
        let (biases, fan_in) = match self {
            Self::Dense { .. } | Self::Convolution(_) => (outputs, None),
            Self::Transposed(windows) => (windows.large.channels, Some(windows.overlap(inputs))),
            Self::TransposedHead(windows) => (windows.outer(), Some(windows.overlap(inputs))),
        };
        let weight = TensorSpec::new(format!("{name}.weight"), inputs, outputs);
        [
            TensorSpec { fan_in, ..weight },
            TensorSpec::new(format!("{name}.bias"), 1, biases),
        ]
    }

    /// Builds the outputs of the layer at `x`.
    pub fn build(&self, graph: &mut Graph, weight: NodeId, bias: NodeId, x: NodeId) -> NodeId {
        let (sums, biases) = match self {
            Self::Dense { inputs, outputs } => {
                let sums = product(graph, weight, x, (*inputs, *outputs), 1);
                (sums, bias)
            }
            Self::Convolution(windows) => {
                let sums = windows.convolve(graph, weight, x);
                (sums, per_channel(graph, bias, windows.small))
            }
            Self::Transposed(windows) => {
                let sums = windows.spread(graph, weight, x);
                (sums, per_channel(graph, bias, windows.large))
            }
            Self::TransposedHead(windows) => (windows.spread(graph, weight, x), bias),
        };
        graph.add(sums, biases)
    }
}

/// A network that consists of hidden layers followed by linear heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The prefix of the names of the tensors.
    pub name: String,
    /// Number of inputs.
    pub inputs: usize,
    /// The hidden layers, in order from the input. The list may be empty.
    pub hidden: Vec<Layer>,
    /// The activation function of the hidden layers.
    pub activation: Activation,
    /// The name of each head, and the layer from the last hidden layer to its outputs.
    pub heads: Vec<(&'static str, Layer)>,
}

impl Network {
    /// Creates a network of dense layers with these widths.
    pub fn dense(
        name: &str,
        inputs: usize,
        hidden: &[usize],
        activation: Activation,
        heads: &[(&'static str, usize)],
    ) -> Self {
        let (hidden, last) = dense_layers(inputs, hidden);
        let head = |(name, outputs): &(&'static str, usize)| {
            let outputs = *outputs;
            (
                *name,
                Layer::Dense {
                    inputs: last,
                    outputs,
                },
            )
        };
        Self {
            name: name.to_owned(),
            inputs,
            hidden,
            activation,
            heads: heads.iter().map(head).collect(),
        }
    }

    /// Returns the name of each layer with the layer. The hidden layers come before the heads.
    fn layers(&self) -> impl Iterator<Item = (String, &Layer)> {
        let hidden = self.hidden.iter().enumerate();
        let hidden = hidden.map(|(depth, layer)| (format!("{}.{depth}", self.name), layer));
        let heads = self.heads.iter();
        hidden.chain(heads.map(|(head, layer)| (format!("{}.{head}", self.name), layer)))
    }

    pub(crate) fn all_layers(&self) -> impl Iterator<Item = &Layer> {
        self.layers().map(|(_, layer)| layer)
    }

    /// Returns the tensors, which are the weight and the bias of each layer in turn.
    pub fn specs(&self) -> Vec<TensorSpec> {
        self.layers()
            .flat_map(|(name, layer)| layer.specs(&name))
            .collect()
    }

    /// Builds the values of the heads at `x`. `tensors` contains the tensors in the order of [`specs`](Self::specs).
    ///
    /// # Panics
    /// Panics if the number of tensors is wrong, which is a bug in the caller.
    pub fn build(&self, graph: &mut Graph, tensors: &[NodeId], x: NodeId) -> Vec<NodeId> {
        let layers = self.hidden.len() + self.heads.len();
        assert_eq!(tensors.len(), 2 * layers, "two tensors a layer");
        let (of_hidden, of_heads) = tensors.split_at(2 * self.hidden.len());
        let mut value = x;
        for (layer, pair) in self.hidden.iter().zip(of_hidden.chunks(2)) {
            let sums = layer.build(graph, pair[0], pair[1], value);
            value = self.activation.apply(graph, sums);
        }
        (self.heads.iter().zip(of_heads.chunks(2)))
            .map(|((_, layer), pair)| layer.build(graph, pair[0], pair[1], value))
            .collect()
    }
}

/// Returns dense layers with these widths, and the number of outputs of the last one.
pub(crate) fn dense_layers(mut inputs: usize, widths: &[usize]) -> (Vec<Layer>, usize) {
    let layers = widths.iter().map(|&outputs| {
        let layer = Layer::Dense { inputs, outputs };
        inputs = outputs;
        layer
    });
    let layers = layers.collect();
    (layers, inputs)
}
