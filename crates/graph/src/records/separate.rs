//! Separates the prior from the likelihood in a log density that is linear in sums over records.

use crate::ir::{Graph, NodeId};
use crate::ops::{ElemOp, Op};

/// How a value depends on the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependence {
    /// The value does not depend on any record.
    Global,
    /// Each record has its own value, computed from the data of that record alone.
    Record,
    /// The value is linear in sums over records and in the number of records. The coefficients do not depend on any
    /// record.
    Additive,
    /// The value depends on the records in some other way. In this case, records interact.
    Interacting,
}

/// Determines how the nodes of a growing graph depend on records. Each node is analysed only once.
#[derive(Clone, Debug, Default)]
pub struct Separation {
    of: Vec<Dependence>,
}

impl Separation {
    /// Returns how a node depends on records. Inputs other than the first input carry values from one record to the
    /// next. All values that depend on such inputs are therefore [`Dependence::Interacting`].
    pub fn dependence(&mut self, graph: &Graph, id: NodeId) -> Dependence {
        for at in self.of.len()..=id.index() {
            let found = self.look(graph, NodeId::new(at));
            self.of.push(found);
        }
        self.of[id.index()]
    }

    fn look(&self, graph: &Graph, id: NodeId) -> Dependence {
        use Dependence::{Additive, Global, Interacting, Record};
        let args = graph.args(id);
        let kinds: Vec<Dependence> = args.iter().map(|arg| self.of[arg.index()]).collect();
        let any = |kind| kinds.contains(&kind);
        if any(Interacting) {
            return Interacting;
        }
        match graph.op(id) {
            Op::Input(0) | Op::Const(_) => Global,
            Op::Input(_) => Interacting,
            Op::Record(_) => Record,
            Op::RecordCount => Additive,
            Op::Sum if graph.shape(args[0]).record => match kinds[0] {
                Global | Record => Additive,
                _ => Interacting,
            },
            _ if graph.shape(id).record => {
                if any(Additive) {
                    Interacting
                } else {
                    Record
                }
            }
            _ if any(Record) => Interacting,
            _ if !any(Additive) => Global,
            Op::Gather(_) | Op::Concat | Op::Sum | Op::Broadcast => Additive,
            Op::Elem(op) => {
                let additive = |k: usize| kinds[k] == Additive;
                let linear = match op {
                    ElemOp::Neg | ElemOp::Add | ElemOp::Sub => true,
                    ElemOp::Mul | ElemOp::Fma => !(additive(0) && additive(1)),
                    ElemOp::Div => !additive(1),
                    ElemOp::Select => !additive(0),
                    _ => false,
                };
                if linear { Additive } else { Interacting }
            }
            _ => Interacting,
        }
    }

    /// Splits a value into a part that does not depend on records and a part that is linear in sums over records.
    /// Returns `None` if records interact, or if each record has a value of its own.
    pub fn separate(&mut self, graph: &mut Graph, id: NodeId) -> Option<(NodeId, NodeId)> {
        match self.dependence(graph, id) {
            Dependence::Global => {
                let zero = graph.constant(0.0);
                Some((id, zero))
            }
            Dependence::Additive => Some(self.split(graph, id)),
            Dependence::Record | Dependence::Interacting => None,
        }
    }

    fn split(&mut self, graph: &mut Graph, id: NodeId) -> (NodeId, NodeId) {
        // The loop visits arguments before their users. A recursive function could overflow the stack, because sums are
        // deeply nested.
        let mut parts: Vec<Option<(NodeId, NodeId)>> = vec![None; id.index() + 1];
        let mut needed = vec![false; id.index() + 1];
        needed[id.index()] = true;
        for at in (0..=id.index())
            .rev()
            .filter(|at| self.of[*at] == Dependence::Additive)
        {
            let node = NodeId::new(at);
            if needed[at] && !self.is_source(graph, node) {
                graph
                    .args(node)
                    .iter()
                    .for_each(|arg| needed[arg.index()] = true);
            }
        }
        for at in 0..=id.index() {
            if !needed[at] {
                continue;
            }
            let node = NodeId::new(at);
            let shape = graph.shape(node);
            let zero = graph.constant(0.0);
            let nothing = graph.broadcast(zero, shape);
            parts[at] = Some(match self.of[at] {
                Dependence::Additive if self.is_source(graph, node) => (nothing, node),
                Dependence::Additive => self.split_one(graph, node, &parts),
                _ => (node, nothing),
            });
        }
        parts[id.index()].expect("the root is needed")
    }

    fn is_source(&self, graph: &Graph, id: NodeId) -> bool {
        match graph.op(id) {
            Op::RecordCount => true,
            Op::Sum => graph.shape(graph.args(id)[0]).record,
            _ => false,
        }
    }

    fn split_one(
        &self,
        graph: &mut Graph,
        id: NodeId,
        parts: &[Option<(NodeId, NodeId)>],
    ) -> (NodeId, NodeId) {
        let args = graph.args(id).to_vec();
        let shape = graph.shape(id);
        let additive = |k: usize| self.of[args[k].index()] == Dependence::Additive;
        let of =
            |k: usize| parts[args[k].index()].expect("arguments precede the nodes that use them");
        let rest: Vec<NodeId> = (0..args.len()).map(|k| of(k).0).collect();
        let sums: Vec<NodeId> = (0..args.len()).map(|k| of(k).1).collect();
        let op = graph.op(id);
        // The part with the sums over records keeps the factors and the conditions.
        let kept: Vec<NodeId> = match op {
            Op::Elem(ElemOp::Mul) => (0..2)
                .map(|k| if additive(k) { sums[k] } else { args[k] })
                .collect(),
            Op::Elem(ElemOp::Fma) => {
                let mut kept: Vec<NodeId> = (0..2)
                    .map(|k| if additive(k) { sums[k] } else { args[k] })
                    .collect();
                kept.push(sums[2]);
                if !additive(0) && !additive(1) {
                    // Only the addend contains sums over records.
                    return (graph.rebuild(op, &rest, shape), sums[2]);
                }
                kept
            }
            Op::Elem(ElemOp::Div) => vec![sums[0], args[1]],
            Op::Elem(ElemOp::Select) => vec![args[0], sums[1], sums[2]],
            _ => sums,
        };
        (
            graph.rebuild(op, &rest, shape),
            graph.rebuild(op, &kept, shape),
        )
    }
}
