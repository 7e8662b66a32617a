//! Models with one latent vector per record. The auto-encoder that the command fits is such a model.

use jensen_graph::{Graph, NodeId, Unsupported};
use jensen_math::constants::LOG_TWO_PI;
use jensen_math::rng::{Purpose, fill_normals};
use jensen_math::simd::Simd;
use serde::{Deserialize, Serialize};

use crate::convolution::Convolutions;
use crate::family::PosteriorFamily;
use crate::forward::Forward;
use crate::layers::{Activation, Layer, Network, TensorSpec, dense_layers};
use crate::likelihood::{Column, Likelihood, OutOfDomain};
use crate::observation::Observation;
use crate::parts::Part;
use crate::records::Records;

/// A directed model p(z) p(x | z) of independent records, written as graph expressions. Each record has one latent
/// vector.
///
/// The amortised guide of [`bound`](crate::bound) works for every implementation. [`Decoder`] is the implementation
/// that auto-encoders use.
pub trait LocalModel: Send + Sync {
    /// Returns the number of values of a record.
    fn width(&self) -> usize;

    /// Returns the number of latent values of a record.
    fn latent(&self) -> usize;

    /// Returns the names and extents of the tensors that contain the global parameters.
    fn specs(&self) -> Vec<TensorSpec>;

    /// Builds `log p(x | z)` of one record, in nats.
    fn log_likelihood(&self, graph: &mut Graph, tensors: &[NodeId], x: NodeId, z: NodeId)
    -> NodeId;

    /// Builds `log p(z)` of one record, in nats. By default, the prior is standard normal.
    fn log_prior(&self, graph: &mut Graph, tensors: &[NodeId], z: NodeId) -> NodeId {
        let _ = tensors;
        standard_normal(graph, z)
    }

    /// Adapts random initial weights to these records. `tensors` contains the tensors in the order of
    /// [`specs`](Self::specs). By default, the weights do not change.
    fn begin(&self, tensors: &mut [Tensor], records: &dyn Records) {
        let _ = (tensors, records);
    }

    /// Whether `log p(z)` is standard normal. If it is, the divergence of a Gaussian guide from the prior has a closed
    /// form.
    fn standard_prior(&self) -> bool {
        true
    }
}

pub(crate) fn standard_normal(graph: &mut Graph, z: NodeId) -> NodeId {
    let square = graph.square(z);
    let sum = graph.sum(square);
    let width = f64::from(graph.shape(z).len);
    let constant = graph.constant(width * LOG_TWO_PI);
    let total = graph.add(sum, constant);
    graph.scale(-0.5, total)
}

/// The layers and the distributions of an auto-encoder, without its weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Architecture {
    /// The values of a record and their distribution given the decoder's outputs.
    #[serde(flatten)]
    pub observation: Observation,
    /// Number of latent values of a record.
    pub latent: usize,
    /// The family of q(z | x).
    #[serde(default, skip_serializing_if = "is_gaussian")]
    pub posterior: PosteriorFamily,
    /// The convolutional layers, which are the first layers of the encoder and the last layers of the decoder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub convolutions: Option<Convolutions>,
    /// Widths of the dense hidden layers of the encoder, in order from the data to the latent values.
    pub encoder: Vec<usize>,
    /// Widths of the dense hidden layers of the decoder, in order from the latent values to the data.
    pub decoder: Vec<usize>,
    /// The activation function of the hidden layers.
    pub activation: Activation,
}

fn is_gaussian(family: &PosteriorFamily) -> bool {
    *family == PosteriorFamily::Gaussian
}

/// An error in an architecture, as a message for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchitectureError(pub String);

impl std::fmt::Display for ArchitectureError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ArchitectureError {}

/// An error in records that do not fit an architecture.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordError {
    /// The records do not have the number of values that the architecture expects.
    Width {
        /// Number of values in each record.
        found: usize,
        /// Number of values that the architecture expects.
        expected: usize,
    },
    /// A value is outside the domain of the likelihood.
    Domain {
        /// The index of the record, from 0.
        record: usize,
        /// The value that is outside the domain.
        error: OutOfDomain,
    },
}

impl std::fmt::Display for RecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Width { found, expected } => {
                write!(
                    f,
                    "records have {found} values, but the model expects {expected}"
                )
            }
            Self::Domain { record, error } => write!(f, "record {}: {error}", record + 1),
        }
    }
}

impl std::error::Error for RecordError {}

impl Architecture {
    /// Returns the architecture of the paper. Each network has one hidden layer of tanh units.
    pub fn paper(width: usize, latent: usize, hidden: usize, likelihood: Likelihood) -> Self {
        Self {
            observation: Observation::new(width, likelihood),
            latent,
            posterior: PosteriorFamily::default(),
            convolutions: None,
            encoder: vec![hidden],
            decoder: vec![hidden],
            activation: Activation::Tanh,
        }
    }

    /// Checks the architecture.
    ///
    /// # Errors
    /// Fails if an extent is zero, if a record cannot be divided into groups, if values other than counts have a library
    /// size, or if there are convolutional layers for records that are not images.
    pub fn check(&self) -> Result<(), ArchitectureError> {
        let error = |text: String| Err(ArchitectureError(text));
        let observation = &self.observation;
        let more: usize = observation.more.iter().map(|part| part.width).sum();
        if observation.parts().iter().any(|part| part.width == 0) || more >= observation.width {
            return error("a record needs at least one value".to_owned());
        }
        if self.latent == 0 {
            return error("at least one latent dimension is needed".to_owned());
        }
        if !self.posterior.is_valid() {
            return error(format!(
                "a student-t posterior needs {} to {} degrees of freedom",
                PosteriorFamily::LEAST_DEGREES,
                PosteriorFamily::MOST_DEGREES
            ));
        }
        if self.encoder.iter().chain(&self.decoder).any(|&n| n == 0) {
            return error("a hidden layer needs at least one unit".to_owned());
        }
        if let Some(convolutions) = &self.convolutions {
            convolutions.check().map_err(ArchitectureError)?;
            let pixels = convolutions.image.len();
            let heads = observation.heads();
            if observation.width != pixels || heads.iter().any(|(_, width)| *width != pixels) {
                return error(format!(
                    "the networks use {} values with one distribution, but convolutional layers need all {pixels} of an image",
                    observation.width
                ));
            }
            if observation.given > 0 {
                return error("convolutional layers cannot read given values".to_owned());
            }
        }
        let parts = observation.parts();
        let of_counts = parts.iter().all(|part| part.likelihood.is_of_counts());
        if observation.library_size.is_some() && !(of_counts && parts.len() == 1) {
            let name = observation.name();
            return error(format!(
                "a library size needs a decoder of counts, and `{name}` is none"
            ));
        }
        for Part { width, likelihood } in parts {
            if let Likelihood::Categorical { categories } = likelihood
                && (categories < 2 || !width.is_multiple_of(categories))
            {
                return error(format!(
                    "records of {width} values cannot be divided into groups of {categories} categories"
                ));
            }
        }
        Ok(())
    }

    /// Checks the width of the records and every value in one pass over them. Check records with this function before
    /// they are passed to an [`Autoencoder`](crate::Autoencoder). The methods of an auto-encoder panic if records have
    /// the wrong width, and cannot use values outside the domain.
    ///
    /// # Errors
    /// Returns the first error in the records.
    pub fn check_records(&self, records: &dyn Records) -> Result<(), RecordError> {
        let (found, expected) = (records.width(), self.observation.record_width());
        if found != expected {
            return Err(RecordError::Width { found, expected });
        }
        let mut values = vec![0.0; expected];
        for record in 0..records.len() {
            records.read(record, &mut values);
            let checked = self.observation.check(&values);
            checked.map_err(|error| RecordError::Domain { record, error })?;
        }
        Ok(())
    }

    /// Returns the recognition network, which has the heads `mean` and `log_variance`.
    pub fn encoder(&self) -> Encoder {
        let inputs = self.observation.inputs();
        let mut encoder = Encoder {
            family: self.posterior,
            observation: Some(self.observation.clone()),
            ..Encoder::new(inputs, &self.encoder, self.activation, self.latent)
        };
        if let Some(convolutions) = &self.convolutions {
            let windows = convolutions.windows(inputs / self.observation.width);
            let last = windows.last().map_or(inputs, |last| last.small.len());
            let dense = Encoder::new(last, &self.encoder, self.activation, self.latent).network;
            let hidden = windows.into_iter().map(Layer::Convolution);
            encoder.network.hidden = hidden.chain(dense.hidden).collect();
            encoder.network.heads = dense.heads;
        }
        encoder
    }

    /// Returns the generative network of the auto-encoder.
    pub fn decoder(&self) -> Decoder {
        let inputs = self.latent + self.observation.given;
        let heads = self.observation.heads();
        let mut network = Network::dense("decoder", inputs, &self.decoder, self.activation, &heads);
        if let Some(convolutions) = &self.convolutions {
            let mut windows = convolutions.windows(1);
            windows.reverse();
            let first = windows.first().map_or(0, |first| first.small.len());
            let widths = [self.decoder.as_slice(), &[first]].concat();
            network.hidden = dense_layers(inputs, &widths).0;
            if let Some(last) = windows.pop() {
                network
                    .hidden
                    .extend(windows.into_iter().map(Layer::Transposed));
                let heads = heads.into_iter();
                network.heads = heads
                    .map(|(name, _)| (name, Layer::TransposedHead(last)))
                    .collect();
            }
        }
        Decoder {
            network,
            observation: self.observation.clone(),
        }
    }

    /// Returns the names and extents of all tensors. The tensors of the encoder come before those of the decoder.
    pub fn specs(&self) -> Vec<TensorSpec> {
        let mut specs = self.encoder().specs();
        specs.extend(self.decoder().specs());
        specs
    }

    /// Returns the number of tensors of the encoder.
    pub fn encoder_tensors(&self) -> usize {
        self.encoder().specs().len()
    }

    /// Returns the number of values that an evaluation of both networks stores for a record.
    pub fn values(&self) -> usize {
        let (encoder, decoder) = (self.encoder().network, self.decoder().network);
        let layers = [encoder, decoder];
        let layers = layers.iter().flat_map(Network::all_layers);
        layers.map(|layer| layer.outputs() + layer.scratch()).sum()
    }

    /// Returns the total number of weights in both networks.
    pub fn weights(&self) -> usize {
        self.specs().iter().map(TensorSpec::len).sum()
    }
}

/// A recognition network. The latent values are independent under its q(z | x), and the network outputs their means and
/// log variances (Eq. 9).
#[derive(Clone, Debug, PartialEq)]
pub struct Encoder {
    /// The network.
    pub network: Network,
    /// Number of latent values.
    pub latent: usize,
    /// The family of q(z | x).
    pub family: PosteriorFamily,
    /// The observation that determines how the network reads a record. If it is `None`, the inputs of the network are
    /// the values themselves.
    pub observation: Option<Observation>,
}

impl Encoder {
    /// Creates a network with these hidden layers for records with `width` values. Its q(z | x) is normal.
    pub fn new(width: usize, hidden: &[usize], activation: Activation, latent: usize) -> Self {
        Self {
            network: Network::dense(
                "encoder",
                width,
                hidden,
                activation,
                &[("mean", latent), ("log_variance", latent)],
            ),
            latent,
            family: PosteriorFamily::default(),
            observation: None,
        }
    }

    /// Returns the number of values of a record.
    pub fn width(&self) -> usize {
        match &self.observation {
            Some(observation) => observation.record_width(),
            None => self.network.inputs,
        }
    }

    /// Returns the names and extents of the tensors of the network. If values may be missing, one of the tensors
    /// contains the numbers that replace missing values.
    pub fn specs(&self) -> Vec<TensorSpec> {
        let mut specs = self.network.specs();
        specs.extend(self.observation.as_ref().and_then(Observation::fill));
        specs
    }

    /// Builds the mean and the log variance of q(z | x).
    pub fn build(&self, graph: &mut Graph, tensors: &[NodeId], x: NodeId) -> (NodeId, NodeId) {
        let (weights, fill) = tensors.split_at(self.network.specs().len());
        let input = match &self.observation {
            Some(observation) => observation.input(graph, fill.first().copied(), x),
            None => x,
        };
        let heads = self.network.build(graph, weights, input);
        (heads[0], heads[1])
    }

    pub(crate) fn begin(&self, tensors: &mut [Tensor], records: &dyn Records) {
        let observation = self.observation.as_ref().filter(|of| of.missing);
        if let (Some(observation), Some(fill)) = (observation, tensors.last_mut()) {
            let counted = observation.counted();
            let columns = columns(records, observation.width, |i, x| match counted[i] {
                true => x.ln_1p(),
                false => x,
            });
            let pairs = fill.data.iter_mut().zip(columns);
            pairs.for_each(|(fill, column)| *fill = column.mean as f32);
        }
    }
}

/// The generative network of an auto-encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoder {
    /// The network.
    pub network: Network,
    /// The values of a record, and their distribution given the outputs of the network.
    pub observation: Observation,
}

impl Decoder {
    pub(crate) fn parameters(
        &self,
        graph: &mut Graph,
        tensors: &[NodeId],
        z: NodeId,
        context: Option<NodeId>,
    ) -> Vec<NodeId> {
        let of_network = tensors.len() - self.observation.specs().len();
        let (weights, of_columns) = tensors.split_at(of_network);
        let input = match self.observation.given_of(graph, context) {
            Some(given) => graph.concat(&[z, given]),
            None => z,
        };
        let mut outputs = self.network.build(graph, weights, input);
        outputs.extend_from_slice(of_columns);
        self.observation.parameters(graph, outputs, context)
    }

    pub(crate) fn forward(&self, simd: Simd) -> Result<Forward, Unsupported> {
        let context = self.observation.context();
        let widths = [self.latent(), context];
        let widths = &widths[..1 + usize::from(context > 0)];
        Forward::new(&self.specs(), widths, simd, |g, tensors, values| {
            let parameters = self.parameters(g, tensors, values[0], values.get(1).copied());
            let mean = self.observation.mean(g, &parameters);
            vec![mean, g.concat(&parameters)]
        })
    }
}

impl LocalModel for Decoder {
    fn width(&self) -> usize {
        self.observation.record_width()
    }

    fn latent(&self) -> usize {
        self.network.inputs - self.observation.given
    }

    fn specs(&self) -> Vec<TensorSpec> {
        let mut specs = self.network.specs();
        specs.extend(self.observation.specs());
        specs
    }

    fn log_likelihood(
        &self,
        graph: &mut Graph,
        tensors: &[NodeId],
        x: NodeId,
        z: NodeId,
    ) -> NodeId {
        let seen = self.observation.seen(graph, x);
        let context = self.observation.context_of(graph, seen, x);
        let parameters = self.parameters(graph, tensors, z, context);
        self.observation.log_density(graph, &parameters, seen)
    }

    /// Reduces the scale of the heads' weights, and sets the biases and the parameters of columns according to the
    /// moments of the data.
    ///
    /// Once the logit of a pixel that is dark in all records is low, its gradient is almost zero. The pixel would
    /// therefore keep the noise of its initial weights permanently. When the initial weights of the heads were as large
    /// as those of other layers, 16 % of the digits drawn after 20 passes had bright borders.
    fn begin(&self, tensors: &mut [Tensor], records: &dyn Records) {
        let hidden = 2 * self.network.hidden.len();
        let (biases, weights): (Vec<_>, Vec<_>) = tensors[hidden..]
            .iter_mut()
            .partition(|tensor| tensor.spec.is_bias());
        for tensor in weights {
            tensor.data.iter_mut().for_each(|w| *w *= HEADS);
        }
        let columns = columns(records, self.observation.width, |_, x| x);
        for (bias, starts) in biases.into_iter().zip(self.observation.start(&columns)) {
            let pairs = bias.data.iter_mut().zip(starts);
            pairs.for_each(|(b, start)| *b = start as f32);
        }
    }
}

const HEADS: f32 = 0.1;

/// The initial biases of the decoder are computed from this many records, which are spread over all records.
const LOOKED_AT: usize = 10_000;

fn columns(records: &dyn Records, width: usize, of: impl Fn(usize, f64) -> f64) -> Vec<Column> {
    let count = records.len().min(LOOKED_AT);
    let (mut counts, mut sums) = (vec![0.0_f64; width], vec![0.0; width]);
    let (mut squares, mut zeros) = (vec![0.0; width], vec![0.0; width]);
    let mut record = vec![0.0; records.width()];
    for i in 0..count {
        records.read(i * records.len() / count, &mut record);
        let values = record[..width].iter().enumerate();
        let present = values.filter(|(_, x)| !x.is_nan());
        for (i, x) in present.map(|(i, x)| (i, of(i, f64::from(*x)))) {
            counts[i] += 1.0;
            sums[i] += x;
            squares[i] += x * x;
            zeros[i] += f64::from(x == 0.0);
        }
    }
    (0..width)
        .map(|i| {
            let count = counts[i].max(1.0);
            let mean = sums[i] / count;
            Column {
                count,
                mean,
                variance: squares[i] / count - mean * mean,
                zeros: zeros[i] / count,
            }
        })
        .collect()
}

/// A tensor of weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The name and the extents of the tensor.
    pub spec: TensorSpec,
    /// The elements of the tensor, in the order that [`TensorSpec`] defines.
    pub data: Vec<f32>,
}

const INITIAL: Purpose = Purpose::new("neural initial weights");

/// Draws initial weights, which depend on the seed and on the order of the tensors. They are independent normal numbers
/// with mean 0 and standard deviation `sd`. By default, the standard deviation is 0 for biases. For the weights of a
/// layer it is one over the square root of the number of inputs in a sum, so the sums are about as large as the inputs.
///
/// The paper draws all weights from N(0, 0.01). If all layers have the same variance, hidden units with few inputs
/// remain almost linear, and outputs with many inputs contain noise that training must remove.
pub fn initial_weights(
    simd: Simd,
    specs: &[TensorSpec],
    seed: u64,
    sd: Option<f64>,
) -> Vec<Tensor> {
    specs
        .iter()
        .enumerate()
        .map(|(which, spec)| {
            let mut draws = vec![0.0; spec.len()];
            fill_normals(
                simd,
                seed,
                INITIAL,
                which as u64,
                0,
                1,
                spec.len(),
                &mut draws,
            );
            let sd = sd.unwrap_or(if spec.is_bias() {
                0.0
            } else {
                (spec.fan_in.unwrap_or(spec.inputs).max(1) as f64)
                    .sqrt()
                    .recip()
            });
            Tensor {
                spec: spec.clone(),
                data: draws.iter().map(|x| (sd * x) as f32).collect(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_weights_are_as_wide_as_their_layer_asks() {
        let specs = Architecture::paper(64, 4, 100, Likelihood::Bernoulli).specs();
        let spread = |tensor: &Tensor| {
            let squares = tensor.data.iter().map(|&x| f64::from(x).powi(2));
            (squares.sum::<f64>() / tensor.data.len() as f64).sqrt()
        };
        for tensor in initial_weights(Simd::detect(), &specs, 3, None) {
            let expected = (tensor.spec.inputs as f64).sqrt().recip();
            match tensor.spec.is_bias() {
                true => assert_eq!(spread(&tensor), 0.0, "{}", tensor.spec.name),
                false => assert!(
                    (spread(&tensor) / expected - 1.0).abs() < 0.15,
                    "{}",
                    tensor.spec.name
                ),
            }
        }
        for tensor in initial_weights(Simd::detect(), &specs, 3, Some(0.3)) {
            // A tensor with few elements does not determine the spread of the distribution.
            let wide = tensor.data.len() < 64 || (spread(&tensor) / 0.3 - 1.0).abs() < 0.25;
            assert!(wide, "{}: {}", tensor.spec.name, spread(&tensor));
        }
    }
}
