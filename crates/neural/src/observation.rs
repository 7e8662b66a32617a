//! The values of a record. The module defines how the encoder reads them and computes their density given the outputs
//! of the decoder.

use jensen_graph::{ElemOp, Graph, NodeId};
use jensen_math::rng::Stream;
use serde::{Deserialize, Serialize};

use crate::layers::TensorSpec;
use crate::likelihood::{Column, Likelihood, OutOfDomain, log_sum_exp};
use crate::parts::{Part, Placed};

/// The values of a record and their distribution given the decoder's outputs.
///
/// A record consists of the modelled values, followed by values on which the model conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Number of modelled values of a record.
    pub width: usize,
    /// The distribution of all values, or of the first values if `more` describes the others.
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
    /// The last modelled values, if they have other distributions than the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<Part>,
    /// Number of values on which the model conditions. Both networks read them, and they have no distribution.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub given: usize,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
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
            more: Vec::new(),
            given: 0,
        }
    }

    /// Creates an observation for records that consist of these parts, or returns `None` if there are none.
    pub fn of_parts(parts: &[Part]) -> Option<Self> {
        let (first, more) = parts.split_first()?;
        Some(Self {
            more: more.to_vec(),
            ..Self::new(parts.iter().map(|part| part.width).sum(), first.likelihood)
        })
    }

    /// Returns the name of the distribution, which is `mixed` if values have different distributions.
    pub fn name(&self) -> &'static str {
        match self.more.is_empty() {
            true => self.likelihood.name(),
            false => "mixed",
        }
    }

    /// Returns the number of all values of a record, which are the modelled values and the given values.
    pub fn record_width(&self) -> usize {
        self.width + self.given
    }

    /// Returns the distribution of each part with its elements of `x` and of the outputs.
    fn separated(
        &self,
        g: &mut Graph,
        outputs: &[NodeId],
    ) -> Vec<(Likelihood, std::ops::Range<usize>, Vec<NodeId>)> {
        let separate = |part: Placed| {
            let own = part.outputs.iter();
            let own = own.map(|(which, first)| self.some(g, outputs[*which], *first, part.width));
            (
                part.likelihood,
                part.first..part.first + part.width,
                own.collect(),
            )
        };
        self.placed().into_iter().map(separate).collect()
    }

    /// Returns elements of a node that has one or several elements for every value.
    fn some(&self, g: &mut Graph, x: NodeId, first: usize, width: usize) -> NodeId {
        match self.more.is_empty() {
            true => x,
            false => g.slice(x, first, width),
        }
    }

    /// Checks the values of a record.
    ///
    /// # Errors
    /// Returns the first value outside the domain, or an error if all modelled values are missing or a given value is.
    pub fn check(&self, record: &[f32]) -> Result<(), OutOfDomain> {
        let (modelled, given) = record.split_at(self.width.min(record.len()));
        if let Some(at) = given.iter().position(|x| !x.is_finite()) {
            return Err(OutOfDomain {
                position: self.width + at,
                value: given[at],
                expected: "a finite number",
            });
        }
        if self.missing && modelled.iter().all(|x| x.is_nan()) {
            return Err(OutOfDomain {
                position: 0,
                value: f32::NAN,
                expected: "at least one value that is not missing",
            });
        }
        let mut first = 0;
        for part in self.parts() {
            let x = &modelled[first..first + part.width];
            self.check_part(part.likelihood, x)
                .map_err(|error| OutOfDomain {
                    position: first + error.position,
                    ..error
                })?;
            first += part.width;
        }
        Ok(())
    }

    fn check_part(&self, likelihood: Likelihood, values: &[f32]) -> Result<(), OutOfDomain> {
        if !self.missing || !values.iter().any(|x| x.is_nan()) {
            return likelihood.check(values);
        }
        // The indicators of a category are missing together.
        let together = match likelihood {
            Likelihood::Categorical { categories } => categories,
            _ => 1,
        };
        for (group, x) in values.chunks(together).enumerate() {
            if x.iter().all(|x| x.is_nan()) {
                continue;
            }
            likelihood.check(x).map_err(|error| OutOfDomain {
                position: group * together + error.position,
                ..error
            })?;
        }
        Ok(())
    }

    /// Returns the number of values in the context of a record. The density of the record depends on the context in
    /// addition to the latent values. The context contains the library size, and then the given values. If values may
    /// be missing, the library size is followed by the indicators of the present values, because it is the total of
    /// these values.
    pub fn context(&self) -> usize {
        let counted = match (self.library_size, self.missing) {
            (None, _) => 0,
            (Some(_), false) => 1,
            (Some(_), true) => 1 + self.width,
        };
        counted + self.given
    }

    /// Appends the context of a record to `out`.
    pub fn read_context(&self, record: &[f32], out: &mut Vec<f32>) {
        let (modelled, given) = record.split_at(self.width);
        if self.library_size.is_some() {
            out.push(modelled.iter().filter(|x| !x.is_nan()).sum());
            if self.missing {
                out.extend(modelled.iter().map(|x| f32::from(!x.is_nan())));
            }
        }
        out.extend_from_slice(given);
    }

    /// Returns the context of a record that is drawn with these given values.
    pub(crate) fn drawn_context(&self, given: &[f32]) -> Vec<f32> {
        let present = if self.missing { self.width } else { 0 };
        let typical = self.library_size.into_iter();
        let present = std::iter::repeat_n(1.0, present);
        typical
            .flat_map(|total| std::iter::once(total).chain(present.clone()))
            .chain(given.iter().copied())
            .collect()
    }

    pub(crate) fn seen(&self, g: &mut Graph, x: NodeId) -> Seen {
        let x = match self.given {
            0 => x,
            _ => g.slice(x, 0, self.width),
        };
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

    /// Builds the context of the record `x`, or returns `None` if it is empty.
    pub(crate) fn context_of(&self, g: &mut Graph, seen: Seen, x: NodeId) -> Option<NodeId> {
        let mut parts = Vec::new();
        if self.library_size.is_some() {
            parts.push(g.sum(seen.values));
            parts.extend(seen.present);
        }
        if self.given > 0 {
            parts.push(g.slice(x, self.width, self.given));
        }
        match parts[..] {
            [] => None,
            [only] => Some(only),
            _ => Some(g.concat(&parts)),
        }
    }

    /// Returns the given values of a context, or `None` if there are none.
    pub(crate) fn given_of(&self, g: &mut Graph, context: Option<NodeId>) -> Option<NodeId> {
        let context = context.filter(|_| self.given > 0)?;
        Some(g.slice(context, self.context() - self.given, self.given))
    }

    /// Builds `log p(x)` of the values that are present.
    pub(crate) fn log_density(&self, g: &mut Graph, outputs: &[NodeId], seen: Seen) -> NodeId {
        let sums: Vec<NodeId> = self
            .separated(g, outputs)
            .into_iter()
            .map(|(likelihood, range, outputs)| {
                let width = range.len();
                let values = self.some(g, seen.values, range.start, width);
                let terms = likelihood.log_densities(g, &outputs, values);
                let (terms, count) = match seen.present {
                    Some(present) => {
                        let present = self.some(g, present, range.start, width);
                        (g.mul(present, terms), g.sum(present))
                    }
                    None => (terms, g.constant(width as f64)),
                };
                let constants = g.scale(likelihood.constant(), count);
                let sum = g.sum(terms);
                g.add(sum, constants)
            })
            .collect();
        g.add_all(&sums)
    }

    /// Builds the means of the values.
    pub(crate) fn mean(&self, g: &mut Graph, outputs: &[NodeId]) -> NodeId {
        let parts = self.separated(g, outputs).into_iter();
        let means: Vec<NodeId> = parts
            .map(|(likelihood, _, outputs)| likelihood.mean(g, &outputs))
            .collect();
        match means[..] {
            [only] => only,
            _ => g.concat(&means),
        }
    }

    /// Draws the modelled values of a record and writes them to `out`. `mean` contains their means, and `outputs`
    /// contains the outputs of the decoder one after another.
    pub fn draw(&self, mean: &[f32], outputs: &[f32], stream: &mut Stream, out: &mut [f32]) {
        if self.more.is_empty() {
            self.likelihood.draw(mean, outputs, stream, out);
            return;
        }
        let widths = [self.heads(), self.widths(Likelihood::of_columns)].concat();
        let begins: Vec<usize> = widths
            .iter()
            .scan(0, |next, (_, width)| {
                *next += width;
                Some(*next - width)
            })
            .collect();
        for part in self.placed() {
            let own = part.outputs.iter();
            let own: Vec<f32> = own
                .flat_map(|(which, first)| &outputs[begins[*which] + first..][..part.width])
                .copied()
                .collect();
            let range = part.first..part.first + part.width;
            let out = &mut out[range.clone()];
            part.likelihood.draw(&mean[range], &own, stream, out);
        }
    }

    /// Returns initial values: first of the biases of the heads, then of the parameters of columns. Values that the
    /// columns do not determine are 0.
    pub(crate) fn start(&self, columns: &[Column]) -> Vec<Vec<f64>> {
        let widths = [self.heads(), self.widths(Likelihood::of_columns)].concat();
        let mut starts: Vec<Vec<f64>> = widths.iter().map(|(_, width)| vec![0.0; *width]).collect();
        for part in self.placed() {
            for (i, column) in columns[part.first..][..part.width].iter().enumerate() {
                let known = part.outputs.iter().zip(part.likelihood.start(column));
                known.for_each(|((which, first), start)| starts[*which][first + i] = start);
            }
        }
        starts
    }

    /// Returns for every modelled value whether it is a count.
    pub(crate) fn counted(&self) -> Vec<bool> {
        let parts = self.parts().into_iter();
        parts
            .flat_map(|part| std::iter::repeat_n(part.likelihood.is_of_counts(), part.width))
            .collect()
    }

    pub(crate) fn inputs(&self) -> usize {
        match self.missing {
            true => 2 * self.width + self.given,
            false => self.width + self.given,
        }
    }

    /// Builds the inputs of the encoder. A count is read as the logarithm of the count plus one, and other values are
    /// unchanged. The network reads `fill` instead of missing values, which also have indicators. The given values come last.
    pub(crate) fn input(&self, g: &mut Graph, fill: Option<NodeId>, x: NodeId) -> NodeId {
        let seen = self.seen(g, x);
        let read: Vec<NodeId> = self
            .placed()
            .into_iter()
            .map(|part| {
                let values = self.some(g, seen.values, part.first, part.width);
                match part.likelihood.is_of_counts() {
                    true => g.elem(ElemOp::Log1p, &[values]),
                    false => values,
                }
            })
            .collect();
        let input = match read[..] {
            [only] => only,
            _ => g.concat(&read),
        };
        let mut inputs = match (seen.present, fill) {
            (Some(present), Some(fill)) => {
                let filled = g.select(present, input, fill);
                let one = g.constant(1.0);
                vec![filled, g.sub(one, present)]
            }
            _ => vec![input],
        };
        if self.given > 0 {
            inputs.push(g.slice(x, self.width, self.given));
        }
        match inputs[..] {
            [only] => only,
            _ => g.concat(&inputs),
        }
    }

    /// Returns the tensor of the numbers that the encoder reads in place of missing values.
    pub(crate) fn fill(&self) -> Option<TensorSpec> {
        self.missing
            .then(|| TensorSpec::new("encoder.missing.bias".to_owned(), 1, self.width))
    }

    pub(crate) fn heads(&self) -> Vec<(&'static str, usize)> {
        self.widths(Likelihood::heads)
    }

    pub(crate) fn specs(&self) -> Vec<TensorSpec> {
        let of_columns = self.widths(Likelihood::of_columns).into_iter();
        of_columns
            .map(|(name, outputs)| TensorSpec::new(format!("decoder.{name}.bias"), 1, outputs))
            .collect()
    }

    pub(crate) fn parameters(
        &self,
        g: &mut Graph,
        mut outputs: Vec<NodeId>,
        context: Option<NodeId>,
    ) -> Vec<NodeId> {
        if let Some(context) = context.filter(|_| self.library_size.is_some()) {
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
