//! Finds which groups depend on each other, and sorts the groups into levels.

use std::collections::{BTreeMap, BTreeSet};

use super::{Group, coordinates};
use crate::ir::{Graph, NodeId};

/// A limit on the cost of a search. The cost is the number of visited nodes times the number of coordinates. If the
/// cost exceeds the limit, the search ends without a result.
const EFFORT: usize = 1 << 26;

pub(super) struct Reach<'a> {
    graph: &'a Graph,
    dim: usize,
    found: BTreeMap<NodeId, BTreeSet<u32>>,
}

impl<'a> Reach<'a> {
    pub(super) fn new(graph: &'a Graph, dim: usize) -> Self {
        Self {
            graph,
            dim,
            found: BTreeMap::new(),
        }
    }

    /// Returns the coordinates on which `node` depends, or `None` if the search is too expensive.
    pub(super) fn of(&mut self, node: NodeId) -> Option<BTreeSet<u32>> {
        let mut waiting = vec![node];
        while let Some(&next) = waiting.last() {
            if self.found.contains_key(&next) {
                waiting.pop();
                continue;
            }
            if self.found.len() * self.dim > EFFORT {
                return None;
            }
            if let Some(own) = coordinates(self.graph, next) {
                self.found.insert(next, own.into_iter().collect());
                continue;
            }
            let args = self.graph.args(next);
            let open: Vec<NodeId> = args
                .iter()
                .filter(|arg| !self.found.contains_key(arg))
                .copied()
                .collect();
            if open.is_empty() {
                let under = args.iter().flat_map(|arg| &self.found[arg]);
                let under: BTreeSet<u32> = under.copied().collect();
                self.found.insert(next, under);
            }
            waiting.extend(open);
        }
        Some(self.found[&node].clone())
    }
}

/// The largest number of levels of a hierarchy. A structure with more levels is a chain in time, in which each element
/// depends on its predecessor.
const LEVELS: usize = 6;

/// Sorts groups into levels, starting with the lowest level. If two groups depend on each other, the first of them is
/// left out. Chains are left out, together with all groups on which they depend.
pub(super) fn levels(mut groups: Vec<(Group, BTreeSet<u32>)>) -> Vec<Vec<Group>> {
    let mut levels: Vec<Vec<(Group, BTreeSet<u32>)>> = Vec::new();
    while !groups.is_empty() {
        let open: BTreeSet<u32> = groups
            .iter()
            .flat_map(|(group, _)| group.coordinates.iter().copied())
            .collect();
        let (ready, rest): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .partition(|(_, needed)| needed.is_disjoint(&open));
        groups = rest;
        if ready.is_empty() {
            groups.remove(0);
        } else {
            levels.push(ready);
        }
    }
    let mut chained = BTreeSet::new();
    for level in levels.drain(LEVELS.min(levels.len())..) {
        chained.extend(level.into_iter().flat_map(|(_, needed)| needed));
    }
    let mut kept = Vec::new();
    for level in levels.into_iter().rev() {
        let (out, stay): (Vec<_>, Vec<_>) = level.into_iter().partition(|(group, _)| {
            let mut own = group.coordinates.iter();
            own.any(|coordinate| chained.contains(coordinate))
        });
        chained.extend(out.into_iter().flat_map(|(_, needed)| needed));
        kept.push(stay.into_iter().map(|(group, _)| group).collect::<Vec<_>>());
    }
    kept.retain(|level| !level.is_empty());
    kept.reverse();
    kept
}
