//! Parts of a record whose values have the same distribution, and their positions in the outputs of the decoder.

use serde::{Deserialize, Serialize};

use crate::likelihood::Likelihood;
use crate::observation::Observation;

/// Adjacent values of a record that have the same distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Number of values.
    pub width: usize,
    /// The distribution of the values.
    pub likelihood: Likelihood,
}

/// A part with its position in a record and in the outputs of the decoder.
pub(crate) struct Placed {
    pub likelihood: Likelihood,
    pub first: usize,
    pub width: usize,
    /// For each head, and then for each parameter of the columns: the number of the output, and the first element of
    /// the output that belongs to this part.
    pub outputs: Vec<(usize, usize)>,
}

impl Observation {
    /// Returns the parts of the modelled values in order.
    pub fn parts(&self) -> Vec<Part> {
        let others: usize = self.more.iter().map(|part| part.width).sum();
        let first = Part {
            width: self.width.saturating_sub(others),
            likelihood: self.likelihood,
        };
        std::iter::once(first)
            .chain(self.more.iter().copied())
            .collect()
    }

    /// Returns the names of outputs and their widths. Parts share the outputs that have the same name.
    pub(crate) fn widths(
        &self,
        names: fn(Likelihood) -> &'static [&'static str],
    ) -> Vec<(&'static str, usize)> {
        let mut all: Vec<(&'static str, usize)> = Vec::new();
        for part in self.parts() {
            for name in names(part.likelihood) {
                match all.iter_mut().find(|(known, _)| known == name) {
                    Some((_, width)) => *width += part.width,
                    None => all.push((name, part.width)),
                }
            }
        }
        all
    }

    pub(crate) fn placed(&self) -> Vec<Placed> {
        let names: Vec<(&str, usize)> = [
            self.widths(Likelihood::heads),
            self.widths(Likelihood::of_columns),
        ]
        .concat();
        let (mut first, mut used) = (0, vec![0; names.len()]);
        let position = |part: Part| {
            let own = part.likelihood.heads().iter();
            let own = own.chain(part.likelihood.of_columns());
            let outputs = own.map(|name| {
                let which = names.iter().position(|(known, _)| known == name);
                let which = which.expect("every part has its outputs in the list");
                used[which] += part.width;
                (which, used[which] - part.width)
            });
            let outputs = outputs.collect();
            first += part.width;
            Placed {
                likelihood: part.likelihood,
                first: first - part.width,
                width: part.width,
                outputs,
            }
        };
        self.parts().into_iter().map(position).collect()
    }
}
