//! The values of a record. The module defines how the encoder reads them and computes their density given the outputs
//! of the decoder.

use jensen_graph::{ElemOp, Graph, NodeId};
use serde::{Deserialize, Serialize};

use crate::layers::TensorSpec;
use crate::likelihood::{Likelihood, OutOfDomain, log_sum_exp};

/// The values of a record and their distribution given the decoder's outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Number of values of a record.
    pub width: usize,
    /// The distribution of the values.
    pub likelihood: Likelihood,
    /// The library size for records that are drawn or decoded without data. If it is given, the network models the
    /// means of counts as shares of a record's total. The density of a record is then that of independent counts with
    /// these means, given the total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library_size: Option<f32>,
    /// Whether values may be missing. NaN marks a missing value, and the density is that of the other values. The
    /// encoder reads a learnt number in place of a missing value, and also reads indicators of the values that are
    /// present. The learnt number starts at the mean of the column.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missing: bool,
}

#[derive(Clone, Copy)]
pub(crate) struct Seen {
    /// The values, with zeros in place of missing values.
    values: NodeId,
    /// Indicators of the values that are present, if values may be missing.
    present: Option<NodeId>,
}

impl Observation {
    /// The library size of a record whose counts are all zero. With this size, the probability that all its values are
    /// zero rounds to 1.
    pub const EMPTY: f64 = 1e-6;

    /// A logit so low that the share is zero in single precision, whatever the other logits are.
    const ABSENT: f64 = -1e6;

    /// Creates an observation for records with `width` values.
    pub fn new(width: usize, likelihood: Likelihood) -> Self {
        Self {
            width,
            likelihood,
            library_size: None,
            missing: false,
        }
    }

    /// Checks the values of a record.
    ///
    /// # Errors
    /// Returns the first value outside the domain, or an error if all values are missing.
    pub fn check(&self, record: &[f32]) -> Result<(), OutOfDomain> {
        let missing = record.iter().filter(|x| x.is_nan()).count();
        if missing == 0 || !self.missing {
            return self.likelihood.check(record);
        }
        if missing == record.len() {
            return Err(OutOfDomain {
                position: 0,
                value: f32::NAN,
                expected: "at least one value that is not missing",
            });
        }
        match self.likelihood {
            Likelihood::Categorical { categories } => {
                for (group, x) in record.chunks(categories).enumerate() {
                    if x.iter().all(|x| x.is_nan()) {
                        continue;
                    }
                    self.likelihood.check(x).map_err(|error| OutOfDomain {
                        position: group * categories + error.position,
                        ..error
                    })?;
                }
                Ok(())
            }
            _ => {
                for (position, x) in record.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
                    self.likelihood
                        .check(&[*x])
                        .map_err(|error| OutOfDomain { position, ..error })?;
                }
                Ok(())
            }
        }
    }

    /// Returns the number of values in the context of a record. The density of the record depends on the context in
    /// addition to the latent values. The context contains the library size. If values may be missing, it also contains
    /// the indicators of the present values, because the library size is the total of these values.
    pub fn context(&self) -> usize {
        match (self.library_size, self.missing) {
            (None, _) => 0,
            (Some(_), false) => 1,
            (Some(_), true) => 1 + self.width,
        }
    }

    /// Appends the context of a record to `out`.
    pub fn read_context(&self, record: &[f32], out: &mut Vec<f32>) {
        if self.library_size.is_none() {
            return;
        }
        out.push(record.iter().filter(|x| !x.is_nan()).sum());
        if self.missing {
            out.extend(record.iter().map(|x| f32::from(!x.is_nan())));
        }
    }

    pub(crate) fn drawn_context(&self) -> Vec<f32> {
        let present = if self.missing { self.width } else { 0 };
        let typical = self.library_size.into_iter();
        let present = std::iter::repeat_n(1.0, present);
        typical
            .flat_map(|total| std::iter::once(total).chain(present.clone()))
            .collect()
    }

    pub(crate) fn seen(&self, g: &mut Graph, x: NodeId) -> Seen {
        if !self.missing {
            return Seen {
                values: x,
                present: None,
            };
        }
        // Only NaN is not equal to itself.
        let present = g.elem(ElemOp::Eq, &[x, x]);
        let zero = g.vector(&vec![0.0; self.width]);
        Seen {
            values: g.select(present, x, zero),
            present: Some(present),
        }
    }

    pub(crate) fn context_of(&self, g: &mut Graph, seen: Seen) -> Option<NodeId> {
        self.library_size.map(|_| {
            let total = g.sum(seen.values);
            match seen.present {
                Some(present) => g.concat(&[total, present]),
                None => total,
            }
        })
    }

    /// Builds `log p(x)` of the values that are present.
    pub(crate) fn log_density(&self, g: &mut Graph, parameters: &[NodeId], seen: Seen) -> NodeId {
        let terms = self.likelihood.log_densities(g, parameters, seen.values);
        let (terms, count) = match seen.present {
            Some(present) => (g.mul(present, terms), g.sum(present)),
            None => (terms, g.constant(self.width as f64)),
        };
        let constants = g.scale(self.likelihood.constant(), count);
        let sum = g.sum(terms);
        g.add(sum, constants)
    }

    /// Returns a value in the form in which the encoder reads it. For a count it is the logarithm of the count plus
    /// one, and other values are unchanged.
    pub(crate) fn read(&self, x: f32) -> f64 {
        match self.likelihood.is_of_counts() {
            true => f64::from(x).ln_1p(),
            false => f64::from(x),
        }
    }

    pub(crate) fn inputs(&self) -> usize {
        if self.missing {
            2 * self.width
        } else {
            self.width
        }
    }

    /// Builds the inputs of the encoder. They contain `fill` in place of missing values, and the indicators.
    pub(crate) fn input(&self, g: &mut Graph, fill: Option<NodeId>, x: NodeId) -> NodeId {
        let seen = self.seen(g, x);
        let input = match self.likelihood.is_of_counts() {
            true => g.elem(ElemOp::Log1p, &[seen.values]),
            false => seen.values,
        };
        match (seen.present, fill) {
            (Some(present), Some(fill)) => {
                let filled = g.select(present, input, fill);
                let one = g.constant(1.0);
                let absent = g.sub(one, present);
                g.concat(&[filled, absent])
            }
            _ => input,
        }
    }

    /// Returns the tensor of the numbers that the encoder reads in place of missing values.
    pub(crate) fn fill(&self) -> Option<TensorSpec> {
        self.missing.then(|| TensorSpec {
            name: "encoder.missing.bias".to_owned(),
            inputs: 1,
            outputs: self.width,
        })
    }

    pub(crate) fn heads(&self) -> Vec<(&'static str, usize)> {
        let heads = self.likelihood.heads().iter();
        heads.map(|name| (*name, self.width)).collect()
    }

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

    pub(crate) fn parameters(
        &self,
        g: &mut Graph,
        mut outputs: Vec<NodeId>,
        context: Option<NodeId>,
    ) -> Vec<NodeId> {
        if let Some(context) = context {
            let total = g.element(context, 0);
            let least = g.constant(Self::EMPTY);
            let total = g.elem(ElemOp::Fmax, &[total, least]);
            let log_total = g.log(total);
            // The shares of the values that are present sum to 1.
            let counted = match self.missing {
                true => {
                    let present = g.slice(context, 1, self.width);
                    let absent = g.vector(&vec![Self::ABSENT; self.width]);
                    g.select(present, outputs[0], absent)
                }
                false => outputs[0],
            };
            let normaliser = log_sum_exp(g, counted);
            let scale = g.sub(log_total, normaliser);
            outputs[0] = g.add(outputs[0], scale);
        }
        outputs
    }
}
