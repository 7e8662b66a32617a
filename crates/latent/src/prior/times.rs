//! Nodes at the values of a numeric column, for processes in continuous time, and the distribution of such a process
//! at new times.

use super::inputs::{Source, complete};

/// Nodes at values of a column that are not evenly spaced.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// The column.
    pub column: String,
    /// The values of the column at the nodes, in increasing order.
    pub nodes: Vec<f64>,
    /// The distance to which hyperparameters refer.
    pub unit: f64,
    /// Whether rows between two nodes are interpolated linearly. Otherwise all rows of the fit are at nodes, and new
    /// rows have the conditional distribution of the process.
    pub interpolated: bool,
    /// Values at most this far apart share a node.
    least: f64,
}

/// The least distance between two nodes, as a share of the range of the column, and the treatment of the values
/// between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Apart {
    pub(super) share: f64,
    pub(super) interpolated: bool,
}

const MOST: f64 = 1e7;

impl Times {
    /// Creates nodes at sorted values. `from` and `to` add evenly spaced nodes beyond the values. The unit is by default
    /// the mean distance between nodes.
    pub(super) fn new(
        column: &str,
        values: &[f64],
        [from, to]: [f64; 2],
        unit: Option<f64>,
        apart: Apart,
    ) -> Result<Self, String> {
        let inside: Vec<f64> = (values.iter().copied())
            .filter(|x| (from..=to).contains(x))
            .collect();
        let [Some(first), Some(last)] = [inside.first(), inside.last()].map(Option::<&f64>::copied)
        else {
            return Err(format!("`{column}` has no value from {from} to {to}"));
        };
        let least = apart.share * (last - first);
        let mut nodes: Vec<f64> = Vec::new();
        for x in inside {
            if nodes.last().is_none_or(|node| x - node > least) {
                nodes.push(x);
            }
        }
        // No row may lie beyond the last node.
        if let [_, .., end] = nodes.as_mut_slice() {
            *end = last;
        }
        let mean = (last - first) / (nodes.len() - 1).max(1) as f64;
        let beyond = [first - from, to - last].map(|rest| (rest / mean).ceil());
        if beyond.iter().any(|count| *count > MOST) {
            return Err(format!(
                "there are too many nodes from {from} to {to}, {mean} apart; set `from` and `to`"
            ));
        }
        let [before, after] = beyond.map(|count| count as usize);
        let early = (0..before).map(|k| from + (first - from) * k as f64 / before as f64);
        let late = (1..=after).map(|k| last + (to - last) * k as f64 / after as f64);
        Ok(Self {
            column: column.to_owned(),
            nodes: early.chain(nodes).chain(late).collect(),
            unit: unit.unwrap_or(mean),
            interpolated: apart.interpolated,
            least,
        })
    }

    /// Returns the distances between neighbouring nodes in the unit of the hyperparameters.
    pub(super) fn gaps(&self) -> Vec<f64> {
        let pairs = self.nodes.windows(2);
        pairs.map(|pair| (pair[1] - pair[0]) / self.unit).collect()
    }

    /// Returns the note about the nodes. `meaning` says to what `unit` refers.
    pub(super) fn note(&self, label: &str, meaning: &str) -> String {
        let (count, column) = (self.nodes.len(), &self.column);
        let nodes = match self.interpolated {
            true => format!(
                "interpolates `{column}` linearly between {count} nodes, at least {} apart",
                short(self.least)
            ),
            false => format!("has a node at each of the {count} values of `{column}`"),
        };
        format!(
            "{label} is in continuous time and {nodes}; {meaning} {}",
            short(self.unit)
        )
    }

    /// Returns the nodes before and after a value. Both are the same if the value is at a node.
    fn around(&self, x: f64) -> [Option<usize>; 2] {
        let after = self.nodes.partition_point(|node| *node < x);
        let before = after.checked_sub(1);
        let after = Some(after).filter(|node| *node < self.nodes.len());
        let distance = |node: Option<usize>| match node {
            Some(node) => (x - self.nodes[node]).abs(),
            None => f64::INFINITY,
        };
        let (left, right) = (distance(before), distance(after));
        // Values that share a node are at most two of these distances from it.
        let near = if self.interpolated {
            0.0
        } else {
            2.0 * self.least
        };
        match left.min(right) <= near {
            true if left < right => [before, before],
            true => [after, after],
            false => [before, after],
        }
    }

    /// Returns, for each row, the node at or before it and the weight of the next node.
    ///
    /// # Errors
    /// Fails if a row is outside the nodes.
    pub(super) fn weights(
        &self,
        source: &dyn Source,
        rows: &[usize],
    ) -> Result<Vec<(usize, f64)>, String> {
        let numbers = complete(source, &self.column, rows)?;
        let each = numbers.iter().zip(rows);
        each.map(|(x, row)| match self.around(*x) {
            [Some(before), Some(after)] => {
                let (a, b) = (self.nodes[before], self.nodes[after]);
                let weight = if before == after { 0.0 } else { (x - a) / (b - a) };
                Ok((before, weight))
            }
            _ => Err(format!(
                "row {} has `{}` = {x}, outside the nodes from {} to {}; set `from` and `to` when fitting",
                row + 1,
                self.column,
                self.nodes[0],
                self.nodes[self.nodes.len() - 1]
            )),
        })
        .collect()
    }

    pub(super) fn find(
        &self,
        source: &dyn Source,
        rows: &[usize],
    ) -> Result<Vec<Option<usize>>, String> {
        let weights = self.weights(source, rows)?;
        Ok(weights.into_iter().map(|(node, _)| Some(node)).collect())
    }

    /// Returns the effects of new rows at any times. `bridge` is the distribution of the process at a time, given the
    /// process at the distances before and after it.
    pub(super) fn bridged(
        &self,
        source: &dyn Source,
        rows: &[usize],
        bridge: &dyn Fn([Option<f64>; 2]) -> Bridge,
    ) -> Result<Bridged, String> {
        let numbers = complete(source, &self.column, rows)?;
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by(|a, b| numbers[*a].total_cmp(&numbers[*b]));
        let mut out = Bridged {
            known: vec![Vec::new(); rows.len()],
            new: vec![None; rows.len()],
            variables: Vec::new(),
        };
        // The last row between nodes, and the nodes around it.
        let mut last: Option<(usize, [Option<usize>; 2])> = None;
        for row in order {
            let x = numbers[row];
            let [before, after] = self.around(x);
            if let (Some(node), true) = (before, before == after) {
                out.known[row].push((node, 1.0));
                continue;
            }
            let earlier = last.filter(|(_, nodes)| *nodes == [before, after]);
            last = Some((row, [before, after]));
            if let Some((same, _)) = earlier.filter(|(other, _)| numbers[*other] == x) {
                out.known[row] = out.known[same].clone();
                out.new[row] = out.new[same];
                continue;
            }
            let distance = |node: usize| (x - self.nodes[node]).abs() / self.unit;
            let nodes = bridge([before.map(distance), after.map(distance)]);
            let weights = [(before, nodes.before), (after, nodes.after)];
            (out.known[row]).extend(weights.iter().filter_map(|(node, w)| Some(((*node)?, *w))));
            out.new[row] = Some(out.variables.len());
            // Given the previous new row, the process does not depend on the node before both.
            out.variables.push(
                match earlier.and_then(|(other, _)| Some((other, out.new[other]?))) {
                    Some((other, variable)) => {
                        let since = (x - numbers[other]) / self.unit;
                        let own = bridge([Some(since), after.map(distance)]);
                        Variable {
                            earlier: Some((variable, own.before)),
                            sd: own.sd,
                        }
                    }
                    None => Variable::independent(nodes.sd),
                },
            );
        }
        Ok(out)
    }
}

/// Rounds a number to six significant digits.
pub(super) fn short(x: f64) -> f64 {
    format!("{x:.5e}").parse().unwrap_or(x)
}

/// The conditional distribution of a process at a time: a weighted sum of the process before and after it, plus an
/// independent error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bridge {
    pub(super) before: f64,
    pub(super) after: f64,
    pub(super) sd: f64,
}

impl Bridge {
    /// A Brownian motion with this variance per unit of time.
    pub(super) fn brownian(variance: f64, distances: [Option<f64>; 2]) -> Self {
        match distances {
            [Some(l), Some(r)] => Self {
                before: r / (l + r),
                after: l / (l + r),
                sd: (variance * l * r / (l + r)).sqrt(),
            },
            [Some(distance), None] | [None, Some(distance)] => Self {
                before: 1.0,
                after: 1.0,
                sd: (variance * distance).sqrt(),
            },
            [None, None] => unreachable!("there is a node"),
        }
    }
}

/// The effects of new rows of a process in continuous time.
pub(super) struct Bridged {
    /// The weights of nodes in each row.
    pub(super) known: Vec<Vec<(usize, f64)>>,
    /// The new variable of each row that is not at a node.
    pub(super) new: Vec<Option<usize>>,
    pub(super) variables: Vec<Variable>,
}

/// A new variable: a multiple of an earlier variable, given by its index and the factor, plus an independent normal
/// variable with this standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variable {
    /// The index of the earlier variable and the factor.
    pub earlier: Option<(usize, f64)>,
    /// The standard deviation of the independent part.
    pub sd: f64,
}

impl Variable {
    pub(super) fn independent(sd: f64) -> Self {
        Self { earlier: None, sd }
    }
}
