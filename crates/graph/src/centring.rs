//! Hierarchies found in a graph, and the same density over coordinates that are taken relative to their group.
//!
//! Elements θ that scatter about a location μ with a scale σ, both functions of other coordinates, make funnels: where the
//! data say little of θ its spread follows σ. Over θ̃ with
//!
//! ```text
//! θ = μ + (σ/σ₀)^(1−λ) (θ̃ − λ μ)
//! ```
//!
//! they are gone for the right power λ, which is 1 for a centred element (θ̃ = θ) and 0 for a non-centred one; σ₀ is a typical
//! value of σ, so that nothing depends on units. The log-Jacobian is (1−λ) log(σ/σ₀). Any powers give the same posterior:
//! Papaspiliopoulos, Roberts and Sköld (2007); Gorinova, Moore and Hoffman, *Automatic reparameterisation of probabilistic
//! programs*, ICML 2020, whose form has σ₀ = 1.
//!
//! Where a program is non-centred by hand, θ = μ + τ z with z ~ N(0, 1), it is z that is taken so, with location 0 and the
//! scale 1/τ: at the power 0 τ z is a coordinate.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{Graph, NodeId};
use crate::ops::{ElemOp, Op};
use crate::passes::{compact, transplant};
use crate::scalar::evaluate;

/// Values that are said to scatter about a location with a scale: all of one length, or scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scattered {
    /// The values.
    pub values: NodeId,
    /// Their location.
    pub location: NodeId,
    /// Their scale, which is positive.
    pub scale: NodeId,
}

/// Coordinates that scatter about a location with a scale.
#[derive(Clone, Debug)]
struct Group {
    coordinates: Vec<u32>,
    location: NodeId,
    scale: NodeId,
}

/// The groups of a log density: those of a storey depend on no coordinates but those of storeys below, or of no group.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    graph: Graph,
    storeys: Vec<Vec<Group>>,
    /// Coordinates that are non-centred by hand.
    by_hand: BTreeSet<u32>,
}

/// A coordinate of a group at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// Its location.
    pub location: f64,
    /// The logarithm of its scale.
    pub log_scale: f64,
    /// The standard deviation that its prior gives it.
    pub prior: f64,
    /// Whether it is non-centred by hand.
    pub by_hand: bool,
}

/// How a coordinate of a group is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// The coordinate.
    pub coordinate: u32,
    /// λ: 1 for centred, 0 for non-centred.
    pub lambda: f64,
    /// log σ₀.
    pub log_scale: f64,
}

/// A log density over recentred coordinates, with the ways there and back.
#[derive(Clone, Debug)]
pub struct Recentred {
    /// The log density with the log-Jacobian: a graph as the one that it was made of.
    pub density: Graph,
    /// θ from θ̃.
    forward: Graph,
    /// θ̃ from θ.
    backward: Graph,
}

/// Nodes that a location or a scale may be made of, times coordinates; beyond it nothing is looked for.
const EFFORT: usize = 1 << 26;

impl Hierarchy {
    /// The groups among `scattered` of a graph whose first input are the coordinates and whose first output is the log
    /// density; `None` where there are none. Values count that are coordinates as they are, each once, and those about
    /// 0 with scale 1 that are multiplied by what depends on others.
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
        let mut reach = Reach {
            graph: &graph,
            dim,
            found: BTreeMap::new(),
        };
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
            needed.extend(reach.of(one.scale)?);
            if needed.is_empty() || !needed.is_disjoint(&own) {
                continue;
            }
            taken.extend(&own);
            let same = |(group, _): &&mut (Group, _)| {
                (group.location, group.scale) == (one.location, one.scale)
            };
            match groups.last_mut().filter(same) {
                Some((group, _)) => group.coordinates.extend(coordinates),
                None => groups.push((
                    Group {
                        coordinates,
                        location: one.location,
                        scale: one.scale,
                    },
                    needed,
                )),
            }
        }
        let storeys = storeys(groups);
        (!storeys.is_empty()).then_some(Self {
            graph,
            storeys,
            by_hand,
        })
    }

    /// Every coordinate of a group at a point.
    pub fn at(&self, z: &[f64]) -> BTreeMap<u32, Placed> {
        let mut graph = self.graph.clone();
        let groups: Vec<&Group> = self.storeys.iter().flatten().collect();
        graph.set_outputs(groups.iter().flat_map(|g| [g.location, g.scale]).collect());
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

    /// The density over recentred coordinates; those without a power stay as they are.
    pub fn recentre(&self, powers: &[Power]) -> Recentred {
        let powers: BTreeMap<u32, Power> = powers.iter().map(|p| (p.coordinate, *p)).collect();
        let input = self
            .graph
            .ids()
            .find(|id| self.graph.op(*id) == Op::Input(0));
        let input = input.expect("a hierarchy has coordinates");

        // θ storey by storey: locations and scales see what is below them as it is.
        let mut out = self.graph.like();
        let tilde = out.input_node(0);
        let (mut theta, mut jacobian) = (tilde, Vec::new());
        for storey in &self.storeys {
            theta = self.storey(
                storey,
                &powers,
                &mut out,
                [input, tilde, theta],
                &mut |out, parts| {
                    jacobian.push(out.sum(parts.log_stretch));
                    let shift = out.mul(parts.lambda, parts.location);
                    let rest = out.sub(parts.own, shift);
                    let stretch = out.exp(parts.log_stretch);
                    let scaled = out.mul(stretch, rest);
                    out.add(parts.location, scaled)
                },
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

        // θ̃ at once: locations and scales are known from θ.
        let mut back = self.graph.like();
        let theta = back.input_node(0);
        let all: Vec<Group> = self.storeys.iter().flatten().cloned().collect();
        let tilde = self.storey(
            &all,
            &powers,
            &mut back,
            [input, theta, theta],
            &mut |out, parts| {
                let rest = out.sub(parts.own, parts.location);
                let shrink = out.neg(parts.log_stretch);
                let shrink = out.exp(shrink);
                let scaled = out.mul(shrink, rest);
                let shift = out.mul(parts.lambda, parts.location);
                out.add(shift, scaled)
            },
        );
        back.set_outputs(vec![tilde]);
        Recentred {
            density: compact(&out),
            forward: compact(&forward),
            backward: compact(&back),
        }
    }

    /// Coordinates with those of some groups replaced: `input` of the hierarchy's graph stands for `theta` in locations
    /// and scales, and `own` are the groups' own coordinates.
    fn storey(
        &self,
        groups: &[Group],
        powers: &BTreeMap<u32, Power>,
        out: &mut Graph,
        [input, own, theta]: [NodeId; 3],
        replace: &mut dyn FnMut(&mut Graph, Parts) -> NodeId,
    ) -> NodeId {
        let roots: Vec<NodeId> = groups.iter().flat_map(|g| [g.location, g.scale]).collect();
        let made = transplant(&self.graph, &roots, &[(input, theta)], out);
        let mut news: BTreeMap<u32, (NodeId, u32)> = BTreeMap::new();
        for (group, made) in groups.iter().zip(made.chunks(2)) {
            let chosen: Vec<(u32, Power)> = (0u32..)
                .zip(&group.coordinates)
                .filter_map(|(at, coordinate)| Some((at, *powers.get(coordinate)?)))
                .collect();
            if chosen.is_empty() {
                continue;
            }
            let places: Vec<u32> = chosen.iter().map(|(at, _)| *at).collect();
            let pick = |out: &mut Graph, node: NodeId| match out.shape(node).is_scalar() {
                true => node,
                false => out.gather(node, &places),
            };
            let (location, scale) = (pick(out, made[0]), pick(out, made[1]));
            let numbers =
                |f: fn(&Power) -> f64| chosen.iter().map(|(_, p)| f(p)).collect::<Vec<_>>();
            let log_scale = out.log(scale);
            let reference = out.vector(&numbers(|p| p.log_scale));
            let relative = out.sub(log_scale, reference);
            let share = out.vector(&numbers(|p| 1.0 - p.lambda));
            let coordinates: Vec<u32> = chosen.iter().map(|(_, p)| p.coordinate).collect();
            let parts = Parts {
                location,
                lambda: out.vector(&numbers(|p| p.lambda)),
                log_stretch: out.mul(share, relative),
                own: out.gather(own, &coordinates),
            };
            let new = replace(out, parts);
            news.extend((0u32..).zip(&coordinates).map(|(at, c)| (*c, (new, at))));
        }
        assemble(out, theta, &news)
    }
}

/// What a group's new coordinates are made of, each a scalar or an element a coordinate.
struct Parts {
    location: NodeId,
    lambda: NodeId,
    /// (1−λ) log(σ/σ₀)
    log_stretch: NodeId,
    own: NodeId,
}

impl Recentred {
    pub(crate) fn new(density: Graph, forward: Graph, backward: Graph) -> Self {
        Self {
            density,
            forward,
            backward,
        }
    }

    /// The original coordinates of recentred ones.
    pub fn forward(&self, tilde: &[f64]) -> Vec<f64> {
        evaluate(&self.forward, &[tilde], None).swap_remove(0)
    }

    /// The recentred coordinates of original ones.
    pub fn backward(&self, theta: &[f64]) -> Vec<f64> {
        evaluate(&self.backward, &[theta], None).swap_remove(0)
    }
}

/// The coordinates with some replaced by elements of other nodes, in runs.
pub(crate) fn assemble(
    out: &mut Graph,
    old: NodeId,
    news: &BTreeMap<u32, (NodeId, u32)>,
) -> NodeId {
    let mut runs: Vec<(NodeId, Vec<u32>)> = Vec::new();
    for coordinate in 0..out.shape(old).len {
        let (node, at) = news.get(&coordinate).copied().unwrap_or((old, coordinate));
        match runs.last_mut().filter(|(last, _)| *last == node) {
            Some((_, places)) => places.push(at),
            None => runs.push((node, vec![at])),
        }
    }
    let parts: Vec<NodeId> = runs
        .into_iter()
        .map(|(node, places)| out.gather(node, &places))
        .collect();
    out.concat(&parts)
}

/// Coordinates about 0 with scale 1 that are multiplied by something: about 0 with its inverse as their scale. The first
/// product of a coordinate counts.
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
        scale: graph.recip(by),
    };
    factors.into_iter().map(one).collect()
}

/// The coordinates that are about 0 with scale 1.
pub(crate) fn unit_normal(graph: &Graph, scattered: &[Scattered]) -> BTreeSet<u32> {
    let is = |node: NodeId, value: f64| graph.scalar_value(node) == Some(value);
    scattered
        .iter()
        .filter(|one| is(one.location, 0.0) && is(one.scale, 1.0))
        .filter_map(|one| coordinates(graph, one.values))
        .flatten()
        .collect()
}

/// The coordinates that a node's elements are, where they are nothing else.
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

/// Which coordinates a node depends on.
struct Reach<'a> {
    graph: &'a Graph,
    dim: usize,
    found: BTreeMap<NodeId, BTreeSet<u32>>,
}

impl Reach<'_> {
    /// The coordinates under a node; `None` where that is too much to find out.
    fn of(&mut self, node: NodeId) -> Option<BTreeSet<u32>> {
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

/// Storeys of a hierarchy; what is higher is a chain in time, whose elements follow each other.
const STOREYS: usize = 6;

/// Groups by storeys, from the ground up. Where some depend on each other the first of them is left out, and chains are
/// left out with all that they stand on.
fn storeys(mut groups: Vec<(Group, BTreeSet<u32>)>) -> Vec<Vec<Group>> {
    let mut storeys: Vec<Vec<(Group, BTreeSet<u32>)>> = Vec::new();
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
            storeys.push(ready);
        }
    }
    let mut chained = BTreeSet::new();
    for storey in storeys.drain(STOREYS.min(storeys.len())..) {
        chained.extend(storey.into_iter().flat_map(|(_, needed)| needed));
    }
    let mut kept = Vec::new();
    for storey in storeys.into_iter().rev() {
        let (out, stay): (Vec<_>, Vec<_>) = storey.into_iter().partition(|(group, _)| {
            let mut own = group.coordinates.iter();
            own.any(|coordinate| chained.contains(coordinate))
        });
        chained.extend(out.into_iter().flat_map(|(_, needed)| needed));
        kept.push(stay.into_iter().map(|(group, _)| group).collect::<Vec<_>>());
    }
    kept.retain(|storey| !storey.is_empty());
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::{Execution, GraphDensity};
    use jensen_density::{Lanes, LanesMut, LogDensity};

    /// log N(values | location, scale) summed, but for constants.
    fn normal(g: &mut Graph, values: NodeId, location: NodeId, scale: NodeId) -> NodeId {
        let n = f64::from(g.shape(values).len);
        let off = g.sub(values, location);
        let ratio = g.div(off, scale);
        let square = g.square(ratio);
        let sum = g.sum(square);
        let half = g.scale(-0.5, sum);
        let log = g.log(scale);
        let logs = if g.shape(log).is_scalar() {
            g.scale(n, log)
        } else {
            g.sum(log)
        };
        g.sub(half, logs)
    }

    /// Coordinates: μ, log τ, three means m ~ N(μ, τ), log σ, and six effects θ ~ N(m[group], σ).
    fn two_storeys() -> (Graph, Vec<Scattered>) {
        let mut g = Graph::new();
        let z = g.input(12);
        let mut part = |index: &[u32]| g.gather(z, index);
        let (mu, log_tau, m, log_sigma) = (part(&[0]), part(&[1]), part(&[2, 3, 4]), part(&[5]));
        let theta = part(&[6, 7, 8, 9, 10, 11]);
        let (tau, sigma) = (g.exp(log_tau), g.exp(log_sigma));
        let of_group = g.gather(m, &[0, 0, 1, 1, 2, 2]);
        let (zero, one) = (g.constant(0.0), g.constant(1.0));
        let data = g.vector(&[0.3, -1.0, 2.0, 0.1, 0.7, -0.2]);
        let terms = [
            normal(&mut g, mu, zero, one),
            normal(&mut g, log_tau, zero, one),
            normal(&mut g, log_sigma, zero, one),
            normal(&mut g, m, mu, tau),
            normal(&mut g, theta, of_group, sigma),
            normal(&mut g, data, theta, one),
        ];
        let total = terms.into_iter().reduce(|a, b| g.add(a, b)).unwrap();
        g.set_outputs(vec![total]);
        let scattered = |values, location, scale| Scattered {
            values,
            location,
            scale,
        };
        // Data, what stands on itself and constants are no groups.
        let found = vec![
            scattered(data, theta, one),
            scattered(theta, of_group, sigma),
            scattered(m, mu, tau),
            scattered(log_tau, zero, one),
        ];
        (g, found)
    }

    fn value(graph: &Graph, z: &[f64]) -> f64 {
        evaluate(graph, &[z], None)[0][0]
    }

    #[test]
    fn the_posterior_is_the_same_for_any_powers() {
        let (graph, scattered) = two_storeys();
        let hierarchy = Hierarchy::find(&graph, &scattered).unwrap();
        assert_eq!(hierarchy.storeys.len(), 2);
        let power = |coordinate: u32| Power {
            coordinate,
            lambda: [0.0, 0.3, 1.0, 0.8][coordinate as usize % 4],
            log_scale: 0.1 * f64::from(coordinate) - 0.5,
        };
        // One coordinate of a group stays as it is.
        let powers: Vec<Power> = [2, 3, 4, 6, 7, 8, 9, 10].into_iter().map(power).collect();
        let recentred = hierarchy.recentre(&powers);
        let tilde: Vec<f64> = (0..12).map(|i| (f64::from(i) * 1.7).sin()).collect();
        let z = recentred.forward(&tilde);
        let back = recentred.backward(&z);
        assert!(tilde.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-12));
        assert_eq!(z[11], tilde[11]);
        assert_ne!(z[8], tilde[8]);

        // log |det dz/dz̃| by differences.
        let h = 1e-6;
        let columns: Vec<Vec<f64>> = (0..12)
            .map(|j| {
                let (mut up, mut down) = (tilde.clone(), tilde.clone());
                up[j] += h;
                down[j] -= h;
                let (up, down) = (recentred.forward(&up), recentred.forward(&down));
                up.iter()
                    .zip(&down)
                    .map(|(u, d)| (u - d) / (2.0 * h))
                    .collect()
            })
            .collect();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let product: Vec<f64> = columns
            .iter()
            .flat_map(|a| columns.iter().map(|b| dot(a, b)))
            .collect();
        let factor = jensen_math::dense::cholesky(&product, 12).unwrap();
        let log_jacobian: f64 = (0..12).map(|i| factor[i * 12 + i].ln()).sum();
        let expected = value(&graph, &z) + log_jacobian;
        let found = value(&recentred.density, &tilde);
        assert!((found - expected).abs() < 1e-7, "{found} for {expected}");
    }

    #[test]
    fn a_centred_power_changes_nothing() {
        let (graph, scattered) = two_storeys();
        let hierarchy = Hierarchy::find(&graph, &scattered).unwrap();
        let z: Vec<f64> = (0..12).map(|i| (f64::from(i) * 0.7).cos()).collect();
        let told = hierarchy.at(&z);
        assert_eq!(
            told.keys().copied().collect::<Vec<_>>(),
            [2, 3, 4, 6, 7, 8, 9, 10, 11]
        );
        assert!((told[&3].location - z[0]).abs() < 1e-15);
        assert!((told[&3].log_scale - z[1]).abs() < 1e-15);
        let powers: Vec<Power> = told
            .iter()
            .map(|(coordinate, placed)| Power {
                coordinate: *coordinate,
                lambda: 1.0,
                log_scale: placed.log_scale,
            })
            .collect();
        let same = hierarchy.recentre(&powers);
        assert!((value(&same.density, &z) - value(&graph, &z)).abs() < 1e-12);
        assert!(
            same.forward(&z)
                .iter()
                .zip(&z)
                .all(|(a, b)| (a - b).abs() < 1e-14)
        );
    }

    #[test]
    fn derivatives_of_the_new_density_are_its_differences() {
        let (graph, scattered) = two_storeys();
        let hierarchy = Hierarchy::find(&graph, &scattered).unwrap();
        let powers: Vec<Power> = (6..12)
            .map(|coordinate| Power {
                coordinate,
                lambda: 0.25,
                log_scale: -0.3,
            })
            .collect();
        let recentred = hierarchy.recentre(&powers);
        let density = GraphDensity::new(&recentred.density, Execution::default());
        let z: Vec<f64> = (0..12).map(|i| (f64::from(i) * 1.1).sin()).collect();
        let (mut at, mut gradient) = ([0.0], vec![0.0; 12]);
        let mut workspace = density.workspace(1);
        density.value_grad(
            &mut workspace,
            Lanes::new(&z, 12, 1),
            &mut at,
            LanesMut::new(&mut gradient, 12, 1),
        );
        for (i, slope) in gradient.iter().enumerate() {
            let moved = |by: f64| {
                let mut z = z.clone();
                z[i] += by;
                value(&recentred.density, &z)
            };
            let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!(
                (slope - difference).abs() < 1e-6,
                "{i}: {slope} for {difference}"
            );
        }
    }

    /// log τ, and three z ~ N(0, 1) of which τ z are seen: at the power 0 those are coordinates.
    #[test]
    fn what_is_non_centred_by_hand_can_be_centred() {
        let mut g = Graph::new();
        let x = g.input(4);
        let (log_tau, z) = (g.gather(x, &[0]), g.gather(x, &[1, 2, 3]));
        let (zero, one) = (g.constant(0.0), g.constant(1.0));
        let tau = g.exp(log_tau);
        let theta = g.mul(tau, z);
        let data = g.vector(&[0.3, -1.0, 2.0]);
        let terms = [
            normal(&mut g, z, zero, one),
            normal(&mut g, data, theta, one),
        ];
        let total = g.add(terms[0], terms[1]);
        g.set_outputs(vec![total]);
        let unit = Scattered {
            values: z,
            location: zero,
            scale: one,
        };
        let hierarchy = Hierarchy::find(&g, &[unit]).unwrap();
        let at = [0.7, -0.2, 0.4, 1.1];
        let placed = hierarchy.at(&at)[&2];
        assert!(placed.by_hand && placed.prior == 1.0 && (placed.log_scale + 0.7).abs() < 1e-15);
        let powers: Vec<Power> = (1..4)
            .map(|coordinate| Power {
                coordinate,
                lambda: 0.0,
                log_scale: 0.0,
            })
            .collect();
        let centred = hierarchy.recentre(&powers);
        let seen = centred.backward(&at);
        for (i, (seen, z)) in seen.iter().zip(&at).enumerate().skip(1) {
            assert!((seen - 0.7f64.exp() * z).abs() < 1e-14, "{i}");
        }
        // |dz/dz̃| is 1/τ, three times.
        let expected = value(&g, &at) - 3.0 * 0.7;
        assert!((value(&centred.density, &seen) - expected).abs() < 1e-12);
        // Without a prior of its own nothing is known of it.
        assert!(Hierarchy::find(&g, &[]).is_none());
    }

    #[test]
    fn a_tiny_scale_leaves_effects_apart() {
        // At τ = e^−60 the effects are the location to the last bit, and what they add to the density is not rounding.
        let (graph, scattered) = two_storeys();
        let hierarchy = Hierarchy::find(&graph, &scattered).unwrap();
        let powers: Vec<Power> = [2, 3, 4]
            .into_iter()
            .map(|coordinate| Power {
                coordinate,
                lambda: 0.0,
                log_scale: 0.0,
            })
            .collect();
        let density = hierarchy.recentre(&powers).density;
        let at = |effect: f64| {
            let mut z = [0.0; 12];
            (z[0], z[1], z[3]) = (0.9, -60.0, effect);
            value(&density, &z)
        };
        let fallen = at(3.0) - at(0.0);
        assert!((fallen + 4.5).abs() < 1e-9, "{fallen}");
    }

    #[test]
    fn chains_and_loops_are_left_out() {
        let mut g = Graph::new();
        let z = g.input(12);
        let mut x: Vec<NodeId> = (0..12).map(|i| g.gather(z, &[i])).collect();
        let log_scale = x.remove(0);
        let scale = g.exp(log_scale);
        let total = g.sum(z);
        g.set_outputs(vec![total]);
        let chain: Vec<Scattered> = x
            .windows(2)
            .map(|pair| Scattered {
                values: pair[1],
                location: pair[0],
                scale,
            })
            .collect();
        assert!(Hierarchy::find(&g, &chain).is_none());
        // Two that stand on each other, of which one goes.
        let pair = [
            Scattered {
                values: x[0],
                location: x[1],
                scale,
            },
            Scattered {
                values: x[1],
                location: x[0],
                scale,
            },
        ];
        let found = Hierarchy::find(&g, &pair).unwrap();
        assert_eq!(found.storeys.concat().len(), 1);
        assert!(Hierarchy::find(&g, &[]).is_none());
    }
}
