//! The values of a record: how the encoder sees them, and their density given the outputs of the decoder.

use jensen_graph::{ElemOp, Graph, NodeId};
use serde::{Deserialize, Serialize};

use crate::layers::TensorSpec;
use crate::likelihood::{Likelihood, log_softmax};

/// The values of a record and their distribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Number of values of a record.
    pub width: usize,
    /// Their distribution.
    pub likelihood: Likelihood,
    /// If the means of counts are shares of the record's total, its library size: the total of records that are drawn
    /// or decoded without data. The density is then that of independent counts with these means, given the total.
    pub library_size: Option<f32>,
}

impl Observation {
    /// The library size of a record without counts: its values are zero with a probability that rounds to 1.
    pub const EMPTY: f64 = 1e-6;

    /// Records of `width` values.
    pub fn new(width: usize, likelihood: Likelihood) -> Self {
        Self {
            width,
            likelihood,
            library_size: None,
        }
    }

    /// Number of values of a record's context, on which its density depends besides the latent values: the library
    /// size.
    pub fn context(&self) -> usize {
        usize::from(self.library_size.is_some())
    }

    /// Appends the context of a record to `out`.
    pub fn read_context(&self, record: &[f32], out: &mut Vec<f32>) {
        if self.library_size.is_some() {
            out.push(record.iter().sum());
        }
    }

    /// The context of a record that is drawn.
    pub(crate) fn drawn_context(&self) -> Vec<f32> {
        self.library_size.into_iter().collect()
    }

    /// The context of a record in a graph.
    pub(crate) fn context_of(&self, g: &mut Graph, x: NodeId) -> Option<NodeId> {
        self.library_size.map(|_| g.sum(x))
    }

    /// The inputs of the encoder: logarithms of counts plus one, other values unchanged.
    pub(crate) fn input(&self, g: &mut Graph, x: NodeId) -> NodeId {
        match self.likelihood.is_of_counts() {
            true => g.elem(ElemOp::Log1p, &[x]),
            false => x,
        }
    }

    /// The decoder's heads with their widths.
    pub(crate) fn heads(&self) -> Vec<(&'static str, usize)> {
        let heads = self.likelihood.heads().iter();
        heads.map(|name| (*name, self.width)).collect()
    }

    /// The tensors of parameters that each column has once.
    pub(crate) fn specs(&self) -> Vec<TensorSpec> {
        let names = self.likelihood.of_columns().iter();
        names
            .map(|name| TensorSpec {
                name: format!("decoder.{name}.bias"),
                inputs: 1,
                outputs: self.width,
            })
            .collect()
    }

    /// The parameters of the distribution from the outputs of the heads, the parameters of columns, and the context.
    pub(crate) fn parameters(
        &self,
        g: &mut Graph,
        mut outputs: Vec<NodeId>,
        context: Option<NodeId>,
    ) -> Vec<NodeId> {
        if let Some(total) = context {
            let least = g.constant(Self::EMPTY);
            let total = g.elem(ElemOp::Fmax, &[total, least]);
            let log_total = g.log(total);
            let log_share = log_softmax(g, outputs[0], self.width);
            outputs[0] = g.add(log_share, log_total);
        }
        outputs
    }
}
