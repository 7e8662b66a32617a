//! Constructs graphs of derivatives: gradients by reverse accumulation, and directional derivatives by forward
//! accumulation. Hessian-vector products are directional derivatives of a gradient.

use crate::ir::{Graph, NodeId, Placement, Shape};
use crate::ops::{Op, ScatterMap, structural};

/// The adjoints that reach a node. Each adjoint belongs either to the whole node or to some of its elements. A scalar
/// adjoint of the whole node stands for the same adjoint of every element.
#[derive(Default, Clone)]
struct Sources {
    whole: Option<NodeId>,
    parts: Vec<(NodeId, ScatterMap)>,
}

/// The adjoints that a node receives from its users. If a shared node has a per-lane user, the adjoint from this user
/// is summed over all lanes, even if it is the same in every lane.
#[derive(Default, Clone)]
struct Adjoint {
    once: Sources,
    every_lane: Sources,
}

impl Graph {
    /// Returns the gradient of the scalar `output` with respect to the nodes `wrt`. The result contains one node for
    /// each node in `wrt`, with the same shape. The gradient with respect to a shared node is a sum over the lanes.
    ///
    /// # Panics
    /// Panics if `output` is not a scalar.
    pub fn gradient(&mut self, output: NodeId, wrt: &[NodeId]) -> Vec<NodeId> {
        match self.gradient_unless(output, wrt, &|| None) {
            Ok(gradient) => gradient,
            Err(_) => unreachable!("nobody asks for an end"),
        }
    }

    /// Like [`gradient`](Self::gradient), but stops as soon as `asked` returns a reason, and returns this reason.
    pub(crate) fn gradient_unless(
        &mut self,
        output: NodeId,
        wrt: &[NodeId],
        asked: &dyn Fn() -> Option<String>,
    ) -> Result<Vec<NodeId>, String> {
        /// The number of nodes that are differentiated between two calls of `asked`.
        const ASK_EVERY: usize = 1024;
        assert!(self.shape(output).is_scalar(), "the gradient of a scalar");
        let active = self.depends_on(wrt);
        let mut adjoints: Vec<Adjoint> = vec![Adjoint::default(); self.len()];
        let one = self.constant(1.0);
        if output.index() < adjoints.len() {
            adjoints[output.index()].once.whole = Some(one);
        }
        let mut results: Vec<Option<NodeId>> = vec![None; wrt.len()];
        for index in (0..=output.index()).rev() {
            if index % ASK_EVERY == 0
                && let Some(reason) = asked()
            {
                return Err(reason);
            }
            let node = NodeId::new(index);
            if !active.get(index).copied().unwrap_or(false) {
                continue;
            }
            let collected = std::mem::take(&mut adjoints[index]);
            let Some(adjoint) = self.total(node, collected) else {
                continue;
            };
            for (result, _) in results.iter_mut().zip(wrt).filter(|(_, w)| **w == node) {
                *result = Some(adjoint);
            }
            self.pull_back(node, adjoint, &active, &mut adjoints);
        }
        let whole = results.into_iter().zip(wrt).map(|(adjoint, &node)| {
            let shape = self.shape(node);
            let adjoint = adjoint.unwrap_or_else(|| self.constant(0.0));
            self.full(adjoint, shape)
        });
        Ok(whole.collect())
    }

    fn depends_on(&self, wrt: &[NodeId]) -> Vec<bool> {
        let mut active = vec![false; self.len()];
        for id in self.ids() {
            active[id.index()] =
                wrt.contains(&id) || self.args(id).iter().any(|arg| active[arg.index()]);
        }
        active
    }

    fn total(&mut self, node: NodeId, collected: Adjoint) -> Option<NodeId> {
        let shape = self.shape(node);
        let once = self.collect(collected.once, shape);
        let lanes = self
            .collect(collected.every_lane, shape)
            .map(|sum| self.lane_sum(sum));
        match (once, lanes) {
            (Some(once), Some(lanes)) => Some(self.add(once, lanes)),
            (once, lanes) => once.or(lanes),
        }
    }

    fn collect(&mut self, sources: Sources, shape: Shape) -> Option<NodeId> {
        if sources.parts.is_empty() {
            return sources.whole;
        }
        let mut parts = sources.parts;
        if let Some(whole) = sources.whole {
            let whole = self.full(whole, shape);
            parts.push((whole, ScatterMap::All));
        }
        Some(self.scatter(&parts, shape.len as usize))
    }

    fn sources<'a>(
        &self,
        user: NodeId,
        arg: NodeId,
        adjoints: &'a mut [Adjoint],
    ) -> &'a mut Sources {
        let adjoint = &mut adjoints[arg.index()];
        let crosses =
            self.placement(user) == Placement::Lane && self.placement(arg) != Placement::Lane;
        if crosses {
            &mut adjoint.every_lane
        } else {
            &mut adjoint.once
        }
    }

    fn full(&mut self, adjoint: NodeId, shape: Shape) -> NodeId {
        if self.shape(adjoint) == shape {
            adjoint
        } else {
            self.broadcast(adjoint, shape)
        }
    }

    fn pull_back(
        &mut self,
        node: NodeId,
        adjoint: NodeId,
        active: &[bool],
        adjoints: &mut [Adjoint],
    ) {
        let args = self.args(node).to_vec();
        let shape = self.shape(node);
        match self.op(node) {
            Op::Elem(op) => {
                for (which, &arg) in args.iter().enumerate() {
                    if !active[arg.index()] {
                        continue;
                    }
                    let product = if op == crate::ops::ElemOp::Select {
                        // The product with the condition, which is 0 or 1, is replaced by a selection. The branch that
                        // is not taken may have an infinite slope, and the product of 0 and ∞ would be NaN.
                        let zero = self.constant(0.0);
                        match which {
                            0 => continue,
                            1 => self.select(args[0], adjoint, zero),
                            _ => self.select(args[0], zero, adjoint),
                        }
                    } else {
                        let Some(partial) = op.partial(self, &args, node, which) else {
                            continue;
                        };
                        self.mul(adjoint, partial)
                    };
                    let contribution = self.reduce(product, shape, self.shape(arg));
                    let sources = self.sources(node, arg, adjoints);
                    self.accumulate(sources, contribution);
                }
            }
            Op::Sum => {
                let sources = self.sources(node, args[0], adjoints);
                self.accumulate(sources, adjoint);
            }
            _ => {
                let adjoint = self.full(adjoint, shape);
                for (which, &arg) in args.iter().enumerate() {
                    if !active[arg.index()] {
                        continue;
                    }
                    match structural::vjp(self, node, adjoint, which) {
                        (value, ScatterMap::All) => {
                            let sources = self.sources(node, arg, adjoints);
                            self.accumulate(sources, value);
                        }
                        part => self.sources(node, arg, adjoints).parts.push(part),
                    }
                }
            }
        }
    }

    /// Returns what an elementwise result of shape `from` contributes to the adjoint of an argument of shape `to`. A
    /// scalar argument that was broadcast receives the sum of the elements.
    fn reduce(&mut self, product: NodeId, from: Shape, to: Shape) -> NodeId {
        if !to.is_scalar() || from.is_scalar() {
            return product;
        }
        if self.shape(product).is_scalar() {
            let count = self.element_count(from);
            return self.mul(count, product);
        }
        self.sum(product)
    }

    fn accumulate(&mut self, sources: &mut Sources, contribution: NodeId) {
        sources.whole = Some(match sources.whole {
            None => contribution,
            Some(whole) => self.add(whole, contribution),
        });
    }

    /// Returns the derivatives of `outputs` along a direction. `seeds` contains the tangents of some nodes. Each
    /// tangent has the shape of its node. `None` stands for a derivative of zero.
    pub fn tangent(
        &mut self,
        outputs: &[NodeId],
        seeds: &[(NodeId, NodeId)],
    ) -> Vec<Option<NodeId>> {
        let count = self.len();
        let mut tangents: Vec<Option<NodeId>> = vec![None; count];
        let needed = self.needed_for(outputs);
        for &(node, seed) in seeds {
            assert_eq!(
                self.shape(node),
                self.shape(seed),
                "a tangent has the shape of its node"
            );
            tangents[node.index()] = Some(seed);
        }
        for index in 0..count {
            let node = NodeId::new(index);
            if !needed[index] || tangents[index].is_some() {
                continue;
            }
            let args = self.args(node).to_vec();
            let incoming: Vec<Option<NodeId>> =
                args.iter().map(|arg| tangents[arg.index()]).collect();
            if incoming.iter().all(Option::is_none) {
                continue;
            }
            tangents[index] = self.push_forward(node, &args, &incoming);
        }
        outputs
            .iter()
            .map(|output| {
                let tangent = tangents[output.index()]?;
                let shape = self.shape(*output);
                Some(self.full(tangent, shape))
            })
            .collect()
    }

    fn push_forward(
        &mut self,
        node: NodeId,
        args: &[NodeId],
        incoming: &[Option<NodeId>],
    ) -> Option<NodeId> {
        let Op::Elem(op) = self.op(node) else {
            let full: Vec<Option<NodeId>> = incoming
                .iter()
                .zip(args)
                .map(|(tangent, &arg)| {
                    let shape = self.shape(arg);
                    tangent.map(|tangent| self.full(tangent, shape))
                })
                .collect();
            return structural::jvp(self, node, &full);
        };
        if op == crate::ops::ElemOp::Select {
            let zero = self.constant(0.0);
            let (x, y) = (incoming[1].unwrap_or(zero), incoming[2].unwrap_or(zero));
            return Some(self.select(args[0], x, y));
        }
        let mut total: Option<NodeId> = None;
        for (which, tangent) in incoming.iter().enumerate() {
            let Some(tangent) = *tangent else { continue };
            let Some(partial) = op.partial(self, args, node, which) else {
                continue;
            };
            let term = self.mul(partial, tangent);
            total = Some(match total {
                None => term,
                Some(sum) => self.add(sum, term),
            });
        }
        total
    }

    pub(crate) fn needed_for(&self, outputs: &[NodeId]) -> Vec<bool> {
        let mut needed = vec![false; self.len()];
        for output in outputs {
            needed[output.index()] = true;
        }
        for id in self.ids().rev() {
            if needed[id.index()] {
                for &arg in self.args(id) {
                    needed[arg.index()] = true;
                }
            }
        }
        needed
    }
}
