//! Finds series that a program builds from standard normal shocks, and rebuilds the density as a function of the
//! elements of the series.
//!
//! Consider a recursion `x_t = m_t + s_t z_t` with z_t ~ N(0, 1), where m_t is a function of earlier elements. Random
//! walks and models of stochastic volatility have this form. Every element depends on all shocks before it, so the
//! Hessian with respect to z is dense. With respect to x it is sparse, because an element interacts only with its
//! neighbours and with the parameters of m and s. The shocks are `z_t = (x_t − m_t)/s_t`. The logarithm of the Jacobian
//! is `−Σ log |s_t|`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::centring::{Recentred, Scattered, assemble, coordinates, unit_normal};
use crate::ir::{Graph, NodeId};
use crate::ops::{ElemOp, Op};
use crate::passes::{compact, import, optimise, transplant};

const FEWEST: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Link {
    shock: u32,
    element: NodeId,
    location: NodeId,
    scale: NodeId,
}

/// A log density in which some coordinates are the shocks of series.
#[derive(Clone, Debug)]
pub struct Series {
    graph: Graph,
    links: Vec<Link>,
}

impl Series {
    /// Finds the series of a graph, or returns `None` if there are none. The shocks are those coordinates to which
    /// `scattered` assigns location 0 and scale 1. The first input of the graph contains the coordinates, and its first
    /// output is the log density.
    pub fn find(graph: &Graph, scattered: &[Scattered]) -> Option<Self> {
        let unit = unit_normal(graph, scattered);
        if unit.len() < FEWEST {
            return None;
        }
        let mut search = Search {
            graph: unrolled(graph, &unit),
            unit,
            known: HashMap::new(),
            elements: BTreeSet::new(),
        };
        let mut links = search.links();
        let graph = search.graph;
        let follows = followers(&graph, &links);
        let followed: BTreeSet<NodeId> = follows.values().flatten().copied().collect();
        links.retain(|link| !follows[&link.element].is_empty() || followed.contains(&link.element));
        let chained = links
            .iter()
            .filter(|link| !follows[&link.element].is_empty());
        let long = chained.count() >= FEWEST;
        (long && stands_apart(&graph, &links)).then_some(Self { graph, links })
    }

    /// Builds the density as a function of the elements of the series instead of the shocks.
    ///
    /// # Panics
    /// This function never panics, because the graph always has an input.
    pub fn over_elements(&self) -> Recentred {
        let input = self
            .graph
            .ids()
            .find(|id| self.graph.op(*id) == Op::Input(0));
        let input = input.expect("a series has coordinates");
        let mut out = self.graph.like();
        let tilde = out.input_node(0);
        let mut replaced: Vec<(NodeId, NodeId)> = self
            .links
            .iter()
            .map(|link| (link.element, out.element(tilde, link.shock as usize)))
            .collect();
        replaced.push((input, tilde));
        let roots: Vec<NodeId> = self
            .links
            .iter()
            .flat_map(|link| [link.location, link.scale])
            .collect();
        let made = transplant(&self.graph, &roots, &replaced, &mut out);
        let (mut shocks, mut scales) = (BTreeMap::new(), BTreeMap::new());
        for (link, made) in self.links.iter().zip(made.chunks(2)) {
            let element = out.element(tilde, link.shock as usize);
            let rest = out.sub(element, made[0]);
            let shock = out.div(rest, made[1]);
            shocks.insert(link.shock, (shock, 0));
            *scales.entry(made[1]).or_insert(0.0) += 1.0;
        }
        let theta = assemble(&mut out, tilde, &shocks);
        let mut forward = out.clone();
        forward.set_outputs(vec![theta]);
        replaced.pop();
        replaced.push((input, theta));
        let mut total = transplant(&self.graph, self.graph.outputs(), &replaced, &mut out)[0];
        for (scale, count) in scales {
            let size = out.elem(ElemOp::Abs, &[scale]);
            let log = out.log(size);
            let logs = out.scale(count, log);
            total = out.sub(total, logs);
        }
        out.set_outputs(vec![total]);

        let mut back = self.graph.like();
        let theta = back.input_node(0);
        let roots: Vec<NodeId> = self.links.iter().map(|link| link.element).collect();
        let made = transplant(&self.graph, &roots, &[(input, theta)], &mut back);
        let elements = self.links.iter().zip(made);
        let elements = elements
            .map(|(link, made)| (link.shock, (made, 0)))
            .collect();
        let tilde = assemble(&mut back, theta, &elements);
        back.set_outputs(vec![tilde]);
        Recentred::new(compact(&out), optimise(&forward), compact(&back))
    }
}

fn unrolled(graph: &Graph, unit: &BTreeSet<u32>) -> Graph {
    let mut hangs = vec![false; graph.len()];
    let mut out = graph.like();
    let mut map: Vec<Option<NodeId>> = vec![None; graph.len()];
    for id in graph.ids() {
        let args = graph.args(id);
        hangs[id.index()] = match coordinates(graph, id) {
            Some(own) => own.iter().any(|own| unit.contains(own)),
            None => args.iter().any(|arg| hangs[arg.index()]),
        };
        let sum = graph.op(id) == (Op::CumSum { reverse: false });
        map[id.index()] = Some(match args.first() {
            Some(arg) if sum && hangs[arg.index()] => {
                let terms = map[arg.index()].expect("arguments precede the nodes that use them");
                let mut elements = vec![out.element(terms, 0)];
                for t in 1..graph.shape(id).len as usize {
                    let next = out.element(terms, t);
                    elements.push(out.add(elements[t - 1], next));
                }
                out.concat(&elements)
            }
            _ => import(graph, id, &map, &mut out),
        });
    }
    let outputs = graph.outputs().iter();
    let outputs = outputs.map(|id| map[id.index()].expect("every node is made again"));
    out.set_outputs(outputs.collect());
    out
}

/// A node in the form `location + scale · shock`. If the location is `None`, it is 0.
#[derive(Clone, Copy, Debug)]
struct Affine {
    shock: u32,
    location: Option<NodeId>,
    scale: NodeId,
}

struct Search {
    graph: Graph,
    unit: BTreeSet<u32>,
    known: HashMap<NodeId, Option<Affine>>,
    /// The nodes that are known to be elements of a series. The search does not continue past them.
    elements: BTreeSet<NodeId>,
}

impl Search {
    /// For each shock, finds the node that is an element of the series. The element is the first node that is affine in
    /// the shock and is not just an intermediate result of another linear operation.
    fn links(&mut self) -> Vec<Link> {
        let ids: Vec<NodeId> = self.graph.ids().collect();
        let mut users: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
        for id in &ids {
            for arg in self.graph.args(*id) {
                users.entry(*arg).or_default().push(*id);
            }
        }
        let zero = self.graph.constant(0.0);
        let (mut links, mut taken) = (Vec::new(), BTreeSet::new());
        for id in ids {
            let Some(affine) = self.affine(id) else {
                continue;
            };
            let raw = affine.location.is_none() && self.graph.scalar_value(affine.scale).is_some();
            let goes_on = match users.get(&id).map(Vec::as_slice) {
                Some([one]) => self.graph.shape(*one).is_scalar() && self.is_linear(*one),
                _ => false,
            };
            if raw || goes_on || !taken.insert(affine.shock) {
                continue;
            }
            self.elements.insert(id);
            self.known.insert(id, None);
            links.push(Link {
                shock: affine.shock,
                element: id,
                location: affine.location.unwrap_or(zero),
                scale: affine.scale,
            });
        }
        links
    }

    fn is_linear(&self, id: NodeId) -> bool {
        use ElemOp::{Add, Fma, Mul, Neg, Sub};
        matches!(self.graph.elem_op(id), Some(Add | Fma | Mul | Neg | Sub))
    }

    /// Returns a scalar node as an affine function of one shock, if it has this form.
    fn affine(&mut self, id: NodeId) -> Option<Affine> {
        if !self.graph.shape(id).is_scalar() {
            return None;
        }
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let found = self.look(id);
        self.known.insert(id, found);
        found
    }

    fn look(&mut self, id: NodeId) -> Option<Affine> {
        let (op, mut args) = (self.graph.op(id), self.graph.args(id).to_vec());
        let op = match op {
            Op::Gather(index) => {
                let at = *self.graph.index_data(index).first()? as usize;
                let source = args[0];
                if self.graph.op(source) == Op::Input(0) {
                    let one = self.graph.constant(1.0);
                    return self.unit.contains(&(at as u32)).then_some(Affine {
                        shock: at as u32,
                        location: None,
                        scale: one,
                    });
                }
                // The element of a vector operation is the same operation on the corresponding elements of the
                // arguments.
                if !self.is_linear(source) {
                    return None;
                }
                args = self.graph.args(source).to_vec();
                for arg in &mut args {
                    if !self.graph.shape(*arg).is_scalar() {
                        *arg = self.graph.element(*arg, at);
                    }
                }
                self.graph.elem_op(source)?
            }
            Op::Elem(op) if self.is_linear(id) => op,
            _ => return None,
        };
        let found: Vec<Option<Affine>> = args.iter().map(|arg| self.affine(*arg)).collect();
        self.combined(op, &args, &found)
    }

    fn combined(
        &mut self,
        op: ElemOp,
        args: &[NodeId],
        found: &[Option<Affine>],
    ) -> Option<Affine> {
        let graph = &mut self.graph;
        let scaled = |graph: &mut Graph, own: Affine, by: NodeId| Affine {
            location: own.location.map(|location| graph.mul(location, by)),
            scale: graph.mul(own.scale, by),
            ..own
        };
        let shifted = |graph: &mut Graph, own: Affine, by: NodeId| Affine {
            location: Some(own.location.map_or(by, |location| graph.add(location, by))),
            ..own
        };
        let turned = |graph: &mut Graph, own: Affine| Affine {
            location: own.location.map(|location| graph.neg(location)),
            scale: graph.neg(own.scale),
            ..own
        };
        Some(match (op, args, found) {
            (ElemOp::Neg, _, &[Some(own)]) => turned(graph, own),
            (ElemOp::Mul, &[_, by], &[Some(own), None])
            | (ElemOp::Mul, &[by, _], &[None, Some(own)]) => scaled(graph, own, by),
            (ElemOp::Add, &[_, by], &[Some(own), None])
            | (ElemOp::Add, &[by, _], &[None, Some(own)]) => shifted(graph, own, by),
            (ElemOp::Sub, &[_, by], &[Some(own), None]) => {
                let by = graph.neg(by);
                shifted(graph, own, by)
            }
            (ElemOp::Sub, &[by, _], &[None, Some(own)]) => {
                let own = turned(graph, own);
                shifted(graph, own, by)
            }
            (ElemOp::Fma, &[_, by, plus], &[Some(own), None, None])
            | (ElemOp::Fma, &[by, _, plus], &[None, Some(own), None]) => {
                let own = scaled(graph, own, by);
                shifted(graph, own, plus)
            }
            (ElemOp::Fma, &[x, y, _], &[None, None, Some(own)]) => {
                let by = graph.mul(x, y);
                shifted(graph, own, by)
            }
            _ => return None,
        })
    }
}

fn followers(graph: &Graph, links: &[Link]) -> BTreeMap<NodeId, Vec<NodeId>> {
    let elements: BTreeSet<NodeId> = links.iter().map(|link| link.element).collect();
    let of = |link: &Link| {
        let (mut waiting, mut seen) = (vec![link.location, link.scale], BTreeSet::new());
        let mut found = Vec::new();
        // A location consists of only a few nodes above earlier elements. If more nodes are found, the structure is not
        // a recursion.
        while let Some(id) = waiting.pop().filter(|_| seen.len() < 64) {
            if elements.contains(&id) {
                found.push(id);
            } else if seen.insert(id) {
                waiting.extend_from_slice(graph.args(id));
            }
        }
        found
    };
    links.iter().map(|link| (link.element, of(link))).collect()
}

/// Returns whether locations and scales depend on the shocks only through the elements of the series.
fn stands_apart(graph: &Graph, links: &[Link]) -> bool {
    let elements: BTreeSet<NodeId> = links.iter().map(|link| link.element).collect();
    let shocks: BTreeSet<u32> = links.iter().map(|link| link.shock).collect();
    let mut sees = vec![false; graph.len()];
    for id in graph.ids() {
        sees[id.index()] = match coordinates(graph, id) {
            _ if elements.contains(&id) => false,
            Some(own) => own.iter().any(|own| shocks.contains(own)),
            None => graph.args(id).iter().any(|arg| sees[arg.index()]),
        };
    }
    links
        .iter()
        .all(|link| !sees[link.location.index()] && !sees[link.scale.index()])
}

#[cfg(test)]
mod tests {
    use jensen_density::LogDensity;

    use super::*;
    use crate::centring::Spread;
    use crate::{Execution, GraphDensity, evaluate};

    /// Builds the density of an autoregression `x_t = a x_{t−1} + s z_t` with twelve observations. The coordinates are
    /// log s, a and the shocks.
    fn autoregression() -> (Graph, Vec<Scattered>) {
        let mut g = Graph::new();
        let z = g.input(14);
        let (log_s, a) = (g.element(z, 0), g.element(z, 1));
        let shocks = g.slice(z, 2, 12);
        let s = g.exp(log_s);
        let mut elements: Vec<NodeId> = Vec::new();
        for t in 0..12 {
            let shock = g.element(shocks, t);
            let own = g.mul(s, shock);
            let element = match elements.last() {
                Some(before) => {
                    let rest = g.mul(a, *before);
                    g.add(rest, own)
                }
                None => own,
            };
            elements.push(element);
        }
        let x = g.concat(&elements);
        let data: Vec<f64> = (0..12).map(|t| (1.3 * f64::from(t)).sin()).collect();
        let data = g.vector(&data);
        let off = g.sub(data, x);
        let terms = [off, shocks, log_s, a].map(|part| {
            let squares = g.square(part);
            let sum = g.sum(squares);
            g.scale(-0.5, sum)
        });
        let total = g.add_all(&terms);
        g.set_outputs(vec![total]);
        let (location, scale) = (g.constant(0.0), g.constant(1.0));
        let said = Scattered {
            values: shocks,
            location,
            spread: Spread::Scale(scale),
        };
        (g, vec![said])
    }

    #[test]
    fn the_posterior_is_the_same_over_the_elements() {
        let (graph, scattered) = autoregression();
        let ways = Series::find(&graph, &scattered).unwrap().over_elements();
        let z: Vec<f64> = (0..14).map(|i| (0.7 * f64::from(i) + 0.2).cos()).collect();
        let x = ways.backward(&z);
        let (s, a) = (z[0].exp(), z[1]);
        let mut before = 0.0;
        for t in 2..14 {
            before = a * before + s * z[t];
            assert!((x[t] - before).abs() < 1e-12);
        }
        let again = ways.forward(&x);
        assert!(z.iter().zip(&again).all(|(a, b)| (a - b).abs() < 1e-12));
        // The matrix dx/dz has s on its diagonal and zeros above it.
        let (at_z, at_x) = (
            evaluate(&graph, &[&z], None)[0][0],
            evaluate(&ways.density, &[&x], None)[0][0],
        );
        assert!((at_x - (at_z - 12.0 * z[0])).abs() < 1e-11);
    }

    #[test]
    fn elements_meet_their_neighbours_alone() {
        let (graph, scattered) = autoregression();
        let neighbours = |graph: &Graph| {
            let density = GraphDensity::new(graph, Execution::default());
            density.pattern().unwrap().neighbours(7).to_vec()
        };
        assert_eq!(neighbours(&graph).len(), 13);
        let ways = Series::find(&graph, &scattered).unwrap().over_elements();
        assert_eq!(neighbours(&ways.density), [0, 1, 6, 8]);
    }

    /// A random walk can be a cumulative sum with a scale for each step.
    #[test]
    fn cumulative_sums_are_series() {
        let mut g = Graph::new();
        let z = g.input(22);
        let (level, log_s, shocks) = (g.element(z, 0), g.element(z, 1), g.slice(z, 2, 20));
        let s = g.exp(log_s);
        let steps = g.mul(s, shocks);
        let walk = g.cumsum(steps);
        let around = g.add(level, walk);
        let mean = g.exp(around);
        let likelihood = g.sum(mean);
        let squares = g.square(z);
        let prior = g.sum(squares);
        let total = g.add(prior, likelihood);
        let total = g.scale(-0.5, total);
        g.set_outputs(vec![total]);
        let (location, scale) = (g.constant(0.0), g.constant(1.0));
        let said = Scattered {
            values: shocks,
            location,
            spread: Spread::Scale(scale),
        };
        let ways = Series::find(&g, &[said]).unwrap().over_elements();
        let z: Vec<f64> = (0..22).map(|i| (0.9 * f64::from(i)).sin()).collect();
        let x = ways.backward(&z);
        let sum: f64 = z[2..12].iter().sum();
        assert!((x[11] - z[1].exp() * sum).abs() < 1e-12);
        let at = |graph: &Graph, z: &[f64]| evaluate(graph, &[z], None)[0][0];
        assert!((at(&ways.density, &x) - (at(&g, &z) - 20.0 * z[1])).abs() < 1e-10);
        let density = GraphDensity::new(&ways.density, Execution::default());
        assert_eq!(density.pattern().unwrap().neighbours(7), [0, 1, 6, 8]);
    }

    #[test]
    fn what_is_no_recursion_is_left_alone() {
        // Eight effects share one mean, and none depends on another.
        let mut g = Graph::new();
        let z = g.input(10);
        let (mu, s) = (g.element(z, 0), g.element(z, 1));
        let effects: Vec<NodeId> = (2..10)
            .map(|i| {
                let shock = g.element(z, i);
                let own = g.mul(s, shock);
                g.add(mu, own)
            })
            .collect();
        let all = g.concat(&effects);
        let total = g.sum(all);
        g.set_outputs(vec![total]);
        let shocks = g.slice(z, 2, 8);
        let (location, scale) = (g.constant(0.0), g.constant(1.0));
        let said = Scattered {
            values: shocks,
            location,
            spread: Spread::Scale(scale),
        };
        assert!(Series::find(&g, &[said]).is_none());
    }
}
