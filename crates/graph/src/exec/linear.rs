//! Finds two patterns among the nodes of a kernel, regardless of how the program expresses them. The first pattern is a
//! linear predictor, which is a chain of additions. The second pattern is a sum of one value, weighted by each of many
//! columns of data.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::exec::plan::{Arg, ColumnSum, Instruction, Planner, Region, Target};
use crate::exec::product::{COLUMNS_OF_STEP, columns_kernel, rows_kernel};
use crate::exec::stages::{KernelDraft, Sink};
use crate::ir::{NodeId, Placement, Shape};
use crate::ops::{ElemOp, Op, SHORTEST, Streamed, streamed};

#[derive(Clone, Copy)]
enum Column {
    Node(NodeId),
    Ones,
    Matrix(Streamed, usize),
}

pub(super) struct Predictor {
    terms: Vec<(Column, NodeId)>,
    pub added: Option<NodeId>,
}

pub(super) struct Sums {
    pub of: NodeId,
    into: Vec<(Column, Sink)>,
}

#[derive(Default)]
pub(super) struct Linear {
    pub predictors: HashMap<NodeId, Predictor>,
    pub sums: Vec<Sums>,
    /// The nodes that are computed as parts of a predictor or of a sum.
    pub absorbed: HashSet<NodeId>,
    /// The sums that the steps found here compute. Each sum is identified by the index of its sink in the kernel.
    pub taken: HashSet<usize>,
}

impl Planner<'_> {
    /// Finds the linear parts of a kernel. `inside` counts how often each value is read within the kernel. `elsewhere`
    /// contains the sums that must be left out, because other steps compute them.
    pub(super) fn linear(
        &self,
        shape: Shape,
        draft: &KernelDraft,
        inside: &HashMap<NodeId, u32>,
        elsewhere: &HashSet<usize>,
    ) -> Linear {
        let mut found = Linear::default();
        if !shape.record && (shape.len as usize) < SHORTEST {
            return found;
        }
        let alone = |id: NodeId| inside.get(&id) == Some(&1) && self.stages.uses[id.index()] == 1;
        for &id in draft.maps.iter().rev() {
            if found.absorbed.contains(&id) {
                continue;
            }
            if let Some((predictor, absorbed)) = self.predictor(id, &alone) {
                found.absorbed.extend(absorbed);
                found.predictors.insert(id, predictor);
            }
        }
        self.find_sums(draft, &alone, elsewhere, &mut found);
        found
    }

    pub(super) fn factors(&self, id: NodeId) -> Option<(NodeId, NodeId)> {
        let graph = self.graph;
        if graph.elem_op(id) != Some(ElemOp::Mul) {
            return None;
        }
        let args = graph.args(id);
        let lane = |arg: NodeId| graph.placement(arg) == Placement::Lane;
        let (column, value) = match (lane(args[0]), lane(args[1])) {
            (false, true) => (args[0], args[1]),
            (true, false) => (args[1], args[0]),
            _ => return None,
        };
        // The kernels read columns in the order of their rows, without an index list.
        let ordered = !matches!(graph.op(column), Op::Gather(_) | Op::GatherRecord(_));
        ordered.then_some((column, value))
    }

    /// Returns the linear predictor whose last addition is `id`. Also returns the nodes that are computed as parts of
    /// the predictor.
    fn predictor(
        &self,
        id: NodeId,
        alone: &impl Fn(NodeId) -> bool,
    ) -> Option<(Predictor, Vec<NodeId>)> {
        let graph = self.graph;
        let mut terms = Vec::new();
        let mut rest = Vec::new();
        let mut absorbed = Vec::new();
        let mut open = vec![id];
        while let Some(at) = open.pop() {
            let inner = at == id || alone(at);
            if inner && graph.elem_op(at) == Some(ElemOp::Add) {
                open.extend(graph.args(at).iter().rev());
            } else if let Some(product) =
                streamed(graph, at).filter(|product| inner && !product.contracts)
            {
                let columns = 0..product.columns;
                terms.extend(columns.map(|j| (Column::Matrix(product, j), product.vector)));
            } else if let Some((column, value)) = self
                .factors(at)
                .filter(|factors| inner && at != id && graph.shape(factors.1).is_scalar())
            {
                terms.push((Column::Node(column), value));
            } else {
                rest.push(at);
                continue;
            }
            absorbed.extend((at != id).then_some(at));
        }
        let one = match rest[..] {
            [] => None,
            [one] if one != id => Some(one),
            _ => return None,
        };
        let whole = streamed(graph, id).is_some();
        (terms.len() > 1 || whole).then_some((Predictor { terms, added: one }, absorbed))
    }

    fn find_sums(
        &self,
        draft: &KernelDraft,
        alone: &impl Fn(NodeId) -> bool,
        elsewhere: &HashSet<usize>,
        found: &mut Linear,
    ) {
        let graph = self.graph;
        let mut by_value: BTreeMap<NodeId, Vec<(usize, Column)>> = BTreeMap::new();
        let sinks = draft.sinks.iter().enumerate();
        for (which, sink) in sinks.filter(|(which, _)| !elsewhere.contains(which)) {
            let of = by_value.entry(sink.source);
            if let Some(product) = streamed(graph, sink.node) {
                let columns = 0..product.columns;
                of.or_default()
                    .extend(columns.map(|j| (which, Column::Matrix(product, j))));
            } else if sink.map.is_none() && graph.placement(sink.source) == Placement::Lane {
                match self.factors(sink.source).filter(|_| alone(sink.source)) {
                    Some((column, value)) => {
                        let columns = by_value.entry(value).or_default();
                        columns.push((which, Column::Node(column)));
                    }
                    None => of.or_default().push((which, Column::Ones)),
                }
            }
        }
        for (of, columns) in by_value {
            if columns.len() < 2 || graph.placement(of) != Placement::Lane {
                continue;
            }
            for &(which, column) in &columns {
                found.taken.insert(which);
                if let Column::Node(_) = column {
                    found.absorbed.insert(draft.sinks[which].source);
                }
            }
            let into = columns
                .into_iter()
                .map(|(which, column)| (column, draft.sinks[which]))
                .collect();
            found.sums.push(Sums { of, into });
        }
    }

    fn column(&mut self, column: Column) -> Arg {
        match column {
            Column::Node(id) => self.operand(id),
            Column::Ones => self.ones,
            Column::Matrix(product, j) => Arg {
                region: Region::Pool,
                offset: self.args_of[&product.matrix].offset + j * product.column_stride,
                step: product.row_stride,
                index: None,
            },
        }
    }

    pub(super) fn predictor_instructions(
        &mut self,
        predictor: &Predictor,
        target: Target,
        added: Option<Arg>,
    ) -> Vec<Instruction> {
        let mut terms: Vec<[Arg; 2]> = Vec::with_capacity(predictor.terms.len());
        for &(column, value) in &predictor.terms {
            let coefficient = match column {
                Column::Matrix(_, j) => {
                    let base = self.plain(value, false);
                    Arg {
                        offset: base.offset + j * base.step,
                        step: 0,
                        ..base
                    }
                }
                _ => self.operand(value),
            };
            terms.push([self.column(column), coefficient]);
        }
        let written = match target {
            Target::Register(register) => Arg {
                region: Region::Register(register),
                offset: 0,
                step: 1,
                index: None,
            },
            Target::Rows { slot, offset } => Arg {
                region: Region::Arena(slot),
                offset,
                step: 1,
                index: None,
            },
        };
        let steps = terms.chunks(COLUMNS_OF_STEP).enumerate();
        steps
            .map(|(k, terms)| {
                let added = if k == 0 { added } else { Some(written) };
                Instruction::Rows {
                    kernel: rows_kernel(self.simd, added.map(|arg| arg.is_splat())),
                    target,
                    terms: terms.into(),
                    added,
                }
            })
            .collect()
    }

    pub(super) fn sums_instructions(&mut self, sums: &Sums, arg: Arg) -> Vec<Instruction> {
        let mut into: Vec<ColumnSum> = Vec::with_capacity(sums.into.len());
        for &(column, sink) in &sums.into {
            into.push(ColumnSum {
                column: self.column(column),
                slot: self.sink_rows(sink.node),
                offset: match column {
                    Column::Matrix(_, j) => j,
                    _ => 0,
                },
            });
        }
        let steps = into.chunks(COLUMNS_OF_STEP);
        steps
            .map(|into| Instruction::Columns {
                kernel: columns_kernel(self.simd),
                arg,
                into: into.into(),
            })
            .collect()
    }
}
