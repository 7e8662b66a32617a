//! The two networks of an auto-encoder as graphs with names.

use jensen_graph::{Graph, NodeId};

use super::{ColumnMap, Missing, Port, encode};
use crate::layers::TensorSpec;
use crate::model::{Architecture, LocalModel, Tensor};

fn graph(
    specs: &[TensorSpec],
    widths: &[usize],
    build: impl FnOnce(&mut Graph, &[NodeId], &[NodeId]) -> Vec<NodeId>,
) -> Graph {
    let mut graph = Graph::new();
    let tensors: Vec<NodeId> = (specs.iter())
        .map(|spec| graph.shared_input(spec.len()))
        .collect();
    let values: Vec<NodeId> = widths.iter().map(|width| graph.input(*width)).collect();
    let outputs = build(&mut graph, &tensors, &values);
    graph.set_outputs(outputs);
    graph
}

fn port(name: &str, columns: usize) -> Port {
    Port {
        name: name.to_owned(),
        map: None,
        columns,
    }
}

fn views(tensors: &[Tensor]) -> Vec<&[f32]> {
    tensors
        .iter()
        .map(|tensor| tensor.data.as_slice())
        .collect()
}

/// Encodes the recognition network as an ONNX model. Its input `record` has the columns of a record, and its outputs
/// `mean` and `log_variance` describe q(z | x). `columns` is the number of columns outside, and `map` is the map from these
/// columns to a record; see [`Port`]. `tensors` contains the tensors of both networks, or those of the encoder alone.
///
/// # Errors
/// Fails if an operation of the network has no counterpart in ONNX.
pub fn encoder(
    architecture: &Architecture,
    tensors: &[Tensor],
    (columns, map): (usize, Option<ColumnMap>),
    description: &str,
) -> Result<Vec<u8>, Missing> {
    let guide = architecture.encoder();
    let specs = guide.specs();
    let width = architecture.observation.record_width();
    let graph = graph(&specs, &[width], |g, t, v| {
        let (mean, log_variance) = guide.build(g, t, v[0]);
        vec![mean, log_variance]
    });
    let record = Port {
        map,
        ..port("record", columns)
    };
    let outputs = ["mean", "log_variance"].map(|name| port(name, architecture.latent));
    let weights = views(&tensors[..specs.len()]);
    encode(&graph, &weights, (&[record], &outputs), description)
}

/// Encodes the generative network as an ONNX model. Its input `latent` has the latent values, and its output `mean` has the
/// means of the values of a record. If the density of a record depends on a context, such as its library size, the model has
/// the input `context` in addition; see [`Observation::context`](crate::Observation::context). `columns` and `map` are those
/// of the output. `tensors` contains the tensors of both networks.
///
/// # Errors
/// Fails if an operation of the network has no counterpart in ONNX.
pub fn decoder(
    architecture: &Architecture,
    tensors: &[Tensor],
    (columns, map): (usize, Option<ColumnMap>),
    description: &str,
) -> Result<Vec<u8>, Missing> {
    let model = architecture.decoder();
    let context = architecture.observation.context();
    let widths = [architecture.latent, context];
    let inputs = ["latent", "context"];
    let used = 1 + usize::from(context > 0);
    let graph = graph(&model.specs(), &widths[..used], |g, t, v| {
        let parameters = model.parameters(g, t, v[0], v.get(1).copied());
        vec![model.observation.mean(g, &parameters)]
    });
    let ports: Vec<Port> = (inputs[..used].iter().zip(widths))
        .map(|(name, width)| port(name, width))
        .collect();
    let mean = Port {
        map,
        ..port("mean", columns)
    };
    let weights = views(&tensors[architecture.encoder_tensors()..]);
    encode(&graph, &weights, (&ports, &[mean]), description)
}
