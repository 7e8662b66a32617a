//! Finds hierarchies in a graph, and rebuilds the density in coordinates that are relative to their group.
//!
//! Let θ be elements whose location μ and scale σ depend on other coordinates. Such elements form funnels: if the data
//! contain little information about θ, the spread of θ is proportional to σ. The change of variables
//!
//! ```text
//! θ = μ + (σ/σ₀)^(1−λ) (θ̃ − λ μ)
//! ```
//!
//! removes the funnel for a suitable power λ, which is 1 for a centred element (θ̃ = θ) and 0 for a non-centred
//! element. The constant σ₀ is a typical value of σ, which makes results independent of units. The log-Jacobian is
//! (1−λ) log(σ/σ₀). The posterior of θ is the same for all powers. The form with σ₀ = 1 is that of Papaspiliopoulos,
//! Roberts and Sköld (2007) and of Gorinova, Moore and Hoffman, *Automatic reparameterisation of probabilistic
//! programs*, ICML 2020.
//!
//! If a program is already non-centred, with θ = μ + τ z and z ~ N(0, 1), then z itself is reparameterised, with
//! location 0 and scale 1/τ. With the power 0, the coordinate is τ z.
//!
//! Vectors with a joint Gaussian prior are whitened, and the transform takes into account how much the data determine
//! each element; see `vectors`.
//!
//! | file | subject |
//! | --- | --- |
//! | `levels` | dependence between groups, and their order |
//! | `elements` | independent elements |
//! | `vectors` | vectors with a joint prior |

mod elements;
mod levels;
#[cfg(test)]
mod tests;
mod vectors;

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{Graph, NodeId};
use crate::ops::{ElemOp, Op};
use crate::passes::{compact, transplant};
use crate::scalar::evaluate;

use levels::{Reach, levels};
pub use vectors::Site;

/// The prior spread of the values of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// The positive scale of independent elements. The scale is one number for all elements, or one number per element.
    Scale(NodeId),
    /// The lower Cholesky factor of the covariance of a vector, as a column-major matrix.
    Factor(NodeId),
}

impl Spread {
    fn node(self) -> NodeId {
        match self {
            Self::Scale(node) | Self::Factor(node) => node,
        }
    }
}

/// Values to which the program assigns a location and a scale. The location and the scale are either scalars or have
/// the same length as the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scattered {
    /// The values.
    pub values: NodeId,
    /// The location of the values.
    pub location: NodeId,
    /// The spread of the values.
    pub spread: Spread,
}

impl Scattered {
    /// Returns the nodes of the values, the location and the spread.
    pub fn nodes(&self) -> [NodeId; 3] {
        [self.values, self.location, self.spread.node()]
    }

    /// Returns mutable references to the nodes of the values, the location and the spread, so that a caller can map
    /// them to another graph.
    pub fn nodes_mut(&mut self) -> [&mut NodeId; 3] {
        let (Spread::Scale(spread) | Spread::Factor(spread)) = &mut self.spread;
        [&mut self.values, &mut self.location, spread]
    }
}

#[derive(Clone, Debug)]
struct Group {
    coordinates: Vec<u32>,
    location: NodeId,
    spread: Spread,
}

impl Group {
    fn roots(&self) -> [NodeId; 2] {
        [self.location, self.spread.node()]
    }
}

/// The groups of coordinates of a log density, sorted into levels. The groups of a level depend only on coordinates
/// that belong to lower levels or to no group.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    graph: Graph,
    levels: Vec<Vec<Group>>,
    by_hand: BTreeSet<u32>,
}

/// The prior of one coordinate of a group, evaluated at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// The location of the element.
    pub location: f64,
    /// The logarithm of the prior scale of the element.
    pub log_scale: f64,
    /// The prior standard deviation of the element.
    pub prior: f64,
    /// Whether the program itself declares the coordinate in non-centred form.
    pub by_hand: bool,
}

/// The parameterisation of one coordinate of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// The index of the coordinate.
    pub coordinate: u32,
    /// The power λ, which is 1 for a centred coordinate and 0 for a non-centred one.
    pub lambda: f64,
    /// The logarithm of σ₀.
    pub log_scale: f64,
}

/// A log density in recentred coordinates, together with the maps between recentred and original coordinates.
#[derive(Clone, Debug)]
pub struct Recentred {
    /// The log density with the log-Jacobian, as a graph of the same form as the original graph.
    pub density: Graph,
    /// θ as a function of θ̃.
    forward: Graph,
    /// θ̃ as a function of θ.
    backward: Graph,
}

impl Hierarchy {
    /// Finds the groups among `scattered`, or returns `None` if there are no groups. The first input of the graph
    /// contains the coordinates, and its first output is the log density.
    ///
    /// Two kinds of values can form a group. Values of the first kind are coordinates, each of which may occur only
    /// once. Values of the second kind have location 0 and scale 1, and they are multiplied by a quantity that depends
    /// on other coordinates.
    pub fn find(graph: &Graph, scattered: &[Scattered]) -> Option<Self> {
        let is_of_coordinates = |one: &Scattered| coordinates(graph, one.values).is_some();
        if !scattered.iter().any(is_of_coordinates) {
            return None;
        }
        let mut graph = graph.clone();
        let products = products(&mut graph, scattered);
        let by_hand = products
            .iter()
            .filter_map(|one| coordinates(&graph, one.values))
            .flatten()
            .collect();
        let dim = graph.inputs().first()?.len;
        let mut reach = Reach::new(&graph, dim);
        let mut groups: Vec<(Group, BTreeSet<u32>)> = Vec::new();
        let mut taken = BTreeSet::new();
        for one in scattered.iter().chain(&products) {
            let Some(coordinates) = coordinates(&graph, one.values) else {
                continue;
            };
            let own: BTreeSet<u32> = coordinates.iter().copied().collect();
            if own.len() < coordinates.len() || !own.is_disjoint(&taken) {
                continue;
            }
            let mut needed = reach.of(one.location)?;
            needed.extend(reach.of(one.spread.node())?);
            if needed.is_empty() || !needed.is_disjoint(&own) {
                continue;
            }
            taken.extend(&own);
            let same = |(group, _): &&mut (Group, _)| {
                let alike = (group.location, group.spread) == (one.location, one.spread);
                alike && matches!(one.spread, Spread::Scale(_))
            };
            match groups.last_mut().filter(same) {
                Some((group, _)) => group.coordinates.extend(coordinates),
                None => groups.push((
                    Group {
                        coordinates,
                        location: one.location,
                        spread: one.spread,
                    },
                    needed,
                )),
            }
        }
        let levels = levels(groups);
        (!levels.is_empty()).then_some(Self {
            graph,
            levels,
            by_hand,
        })
    }

    /// Returns the prior of every independent element at the point `z`. The keys of the map are coordinates.
    pub fn at(&self, z: &[f64]) -> BTreeMap<u32, Placed> {
        let mut graph = self.graph.clone();
        let by_itself = |group: &&Group| matches!(group.spread, Spread::Scale(_));
        let groups: Vec<&Group> = self.groups().filter(by_itself).collect();
        graph.set_outputs(groups.iter().flat_map(|group| group.roots()).collect());
        let values = evaluate(&compact(&graph), &[z], None);
        let mut found = BTreeMap::new();
        for (group, values) in groups.iter().zip(values.chunks(2)) {
            let pick = |x: &[f64], i: usize| x[if x.len() == 1 { 0 } else { i }];
            for (i, coordinate) in group.coordinates.iter().enumerate() {
                let scale = pick(&values[1], i);
                let by_hand = self.by_hand.contains(coordinate);
                let placed = Placed {
                    location: pick(&values[0], i),
                    log_scale: scale.ln(),
                    prior: if by_hand { 1.0 } else { scale },
                    by_hand,
                };
                found.insert(*coordinate, placed);
            }
        }
        found
    }

    fn groups(&self) -> impl Iterator<Item = &Group> {
        self.levels.iter().flatten()
    }

    /// Builds the density in recentred coordinates. An independent coordinate is unchanged if it has no power. A vector
    /// is unchanged if one of its coordinates has no site.
    pub fn recentre(&self, powers: &[Power], sites: &[Site]) -> Recentred {
        let taken = Taken {
            powers: powers.iter().map(|p| (p.coordinate, *p)).collect(),
            sites: sites.iter().map(|s| (s.coordinate, *s)).collect(),
        };
        let input = self
            .graph
            .ids()
            .find(|id| self.graph.op(*id) == Op::Input(0));
        let input = input.expect("a hierarchy has coordinates");

        // θ is computed level by level, because locations and scales depend on values of lower levels.
        let mut out = self.graph.like();
        let tilde = out.input_node(0);
        let (mut theta, mut jacobian) = (tilde, Vec::new());
        for level in &self.levels {
            let positions = [input, tilde, theta];
            theta = self.level(
                level,
                &taken,
                &mut out,
                positions,
                &mut Way::Forth(&mut jacobian),
            );
        }
        let mut forward = out.clone();
        forward.set_outputs(vec![theta]);
        let replaced = [(input, theta)];
        let mut total = transplant(&self.graph, self.graph.outputs(), &replaced, &mut out)[0];
        for term in jacobian {
            total = out.add(total, term);
        }
        out.set_outputs(vec![total]);

        // All of θ̃ is computed at once, because the locations and scales are functions of θ.
        let mut back = self.graph.like();
        let theta = back.input_node(0);
        let all: Vec<Group> = self.groups().cloned().collect();
        let tilde = self.level(
            &all,
            &taken,
            &mut back,
            [input, theta, theta],
            &mut Way::Back,
        );
        back.set_outputs(vec![tilde]);
        Recentred {
            density: compact(&out),
            forward: compact(&forward),
            backward: compact(&back),
        }
    }

    /// Replaces the coordinates of the groups whose coordinates `own` lists. `input` is the input of the hierarchy's
    /// graph. In the locations and scales, `theta` replaces this input.
    fn level(
        &self,
        groups: &[Group],
        taken: &Taken,
        out: &mut Graph,
        [input, own, theta]: [NodeId; 3],
        way: &mut Way<'_>,
    ) -> NodeId {
        let roots: Vec<NodeId> = groups.iter().flat_map(Group::roots).collect();
        let made = transplant(&self.graph, &roots, &[(input, theta)], out);
        let mut news: BTreeMap<u32, (NodeId, u32)> = BTreeMap::new();
        for (group, made) in groups.iter().zip(made.chunks(2)) {
            let of = [made[0], made[1], own];
            let replaced = match group.spread {
                Spread::Scale(_) => elements::replace(group, taken, out, of, way),
                Spread::Factor(_) => vectors::replace(group, taken, out, of, way),
            };
            if let Some((coordinates, new)) = replaced {
                news.extend((0u32..).zip(&coordinates).map(|(at, c)| (*c, (new, at))));
            }
        }
        assemble(out, theta, &news)
    }
}

struct Taken {
    powers: BTreeMap<u32, Power>,
    sites: BTreeMap<u32, Site>,
}

enum Way<'a> {
    /// Computes θ as a function of θ̃, and collects the terms of the log-Jacobian.
    Forth(&'a mut Vec<NodeId>),
    Back,
}

impl Recentred {
    pub(crate) fn new(density: Graph, forward: Graph, backward: Graph) -> Self {
        Self {
            density,
            forward,
            backward,
        }
    }

    /// Returns the graph that maps recentred coordinates to original coordinates.
    pub fn forward_graph(&self) -> &Graph {
        &self.forward
    }

    /// Converts recentred coordinates to original coordinates.
    pub fn forward(&self, tilde: &[f64]) -> Vec<f64> {
        evaluate(&self.forward, &[tilde], None).swap_remove(0)
    }

    /// Converts original coordinates to recentred coordinates.
    pub fn backward(&self, theta: &[f64]) -> Vec<f64> {
        evaluate(&self.backward, &[theta], None).swap_remove(0)
    }
}

pub(crate) fn assemble(
    out: &mut Graph,
    old: NodeId,
    news: &BTreeMap<u32, (NodeId, u32)>,
) -> NodeId {
    let mut runs: Vec<(NodeId, Vec<u32>)> = Vec::new();
    for coordinate in 0..out.shape(old).len {
        let (node, at) = news.get(&coordinate).copied().unwrap_or((old, coordinate));
        match runs.last_mut().filter(|(last, _)| *last == node) {
            Some((_, positions)) => positions.push(at),
            None => runs.push((node, vec![at])),
        }
    }
    let parts: Vec<NodeId> = runs
        .into_iter()
        .map(|(node, positions)| out.gather(node, &positions))
        .collect();
    out.concat(&parts)
}

/// Finds coordinates with location 0 and scale 1 that are multiplied by a quantity. The scale of each coordinate is
/// then replaced by the inverse of this quantity. If a coordinate occurs in several products, only the first product
/// counts.
fn products(graph: &mut Graph, scattered: &[Scattered]) -> Vec<Scattered> {
    let unit = unit_normal(graph, scattered);
    if unit.is_empty() {
        return Vec::new();
    }
    let factors: Vec<(NodeId, NodeId)> = graph
        .ids()
        .filter(|id| graph.op(*id) == Op::Elem(ElemOp::Mul))
        .filter_map(|id| {
            let [x, y] = graph.args(id)[..] else {
                return None;
            };
            let is_unit = |node: NodeId| {
                coordinates(graph, node).is_some_and(|own| own.iter().all(|c| unit.contains(c)))
            };
            let fits = |values: NodeId, by: NodeId| {
                graph.constant_value(by).is_none()
                    && (graph.shape(by).is_scalar() || graph.shape(by) == graph.shape(values))
            };
            match (is_unit(x), is_unit(y)) {
                (true, false) if fits(x, y) => Some((x, y)),
                (false, true) if fits(y, x) => Some((y, x)),
                _ => None,
            }
        })
        .collect();
    let location = graph.constant(0.0);
    let one = |(values, by): (NodeId, NodeId)| Scattered {
        values,
        location,
        spread: Spread::Scale(graph.recip(by)),
    };
    factors.into_iter().map(one).collect()
}

pub(crate) fn unit_normal(graph: &Graph, scattered: &[Scattered]) -> BTreeSet<u32> {
    let is = |node: NodeId, value: f64| graph.scalar_value(node) == Some(value);
    scattered
        .iter()
        .filter(|one| is(one.location, 0.0))
        .filter(|one| matches!(one.spread, Spread::Scale(scale) if is(scale, 1.0)))
        .filter_map(|one| coordinates(graph, one.values))
        .flatten()
        .collect()
}

pub(crate) fn coordinates(graph: &Graph, node: NodeId) -> Option<Vec<u32>> {
    match graph.op(node) {
        Op::Input(0) => Some((0..graph.shape(node).len).collect()),
        Op::Gather(index) => {
            let (from, index) = (graph.args(node)[0], graph.index_data(index));
            if graph.op(from) == Op::Input(0) {
                return Some(index.to_vec());
            }
            let from = coordinates(graph, from)?;
            Some(index.iter().map(|i| from[*i as usize]).collect())
        }
        Op::Concat => {
            let parts = graph
                .args(node)
                .iter()
                .map(|part| coordinates(graph, *part));
            Some(parts.collect::<Option<Vec<_>>>()?.concat())
        }
        _ => None,
    }
}
