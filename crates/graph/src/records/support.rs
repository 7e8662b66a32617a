//! Finds the coordinates of the draw on which the likelihood of a batch depends.

use std::sync::Arc;

use crate::ir::{Graph, NodeId, RecordColumn};
use crate::ops::Op;

/// A support is used only if it contains at most this fraction of all coordinates. Computing a larger support takes
/// more time than it saves.
const FEW: f64 = 0.5;

#[derive(Clone, Debug, Default)]
pub(crate) struct Support {
    always: Vec<u32>,
    /// The tables that are gathered by record. Each entry contains the column of indices, and the coordinate for each
    /// index.
    by_record: Vec<(Arc<[u32]>, Vec<u32>)>,
    few: bool,
}

/// The coordinates on which each element of a value depends. This type is used if they differ between elements.
#[derive(Clone, Debug)]
struct Own {
    shared: Vec<u32>,
    /// The coordinates on which only element i depends, with one list per table.
    tables: Vec<Vec<u32>>,
}

impl Own {
    fn all(self) -> Vec<u32> {
        let mut all = self.shared;
        self.tables.into_iter().for_each(|table| all.extend(table));
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl Support {
    /// Traces values that are gathered by record back to the draw, through elementwise operations.
    pub(crate) fn of(graph: &Graph) -> Self {
        let dim = graph.inputs()[0].len;
        let mut own: Vec<Option<Own>> = vec![None; graph.len()];
        let mut support = Self::default();
        let mut always = Vec::new();
        for id in graph.ids() {
            if let Op::GatherRecord(column) = graph.op(id)
                && let RecordColumn::Indices(indices) = graph.record_data(column)
            {
                let source = own[graph.args(id)[0].index()].clone().unwrap_or(Own {
                    shared: Vec::new(),
                    tables: Vec::new(),
                });
                always.extend(source.shared);
                for table in source.tables {
                    support.by_record.push((indices.clone(), table));
                }
                continue;
            }
            let found = own_of(graph, id, &own);
            // If the records read a value without a gather, all of them depend on it.
            let escapes =
                graph.shape(id).record || graph.args(id).iter().any(|a| graph.shape(*a).record);
            if escapes {
                for arg in graph.args(id) {
                    if let Some(own) = own[arg.index()].clone() {
                        always.extend(own.all());
                    }
                }
            }
            own[id.index()] = if escapes { None } else { found };
        }
        for output in graph.outputs() {
            if let Some(own) = own[output.index()].clone() {
                always.extend(own.all());
            }
        }
        // The factors by which sums over records are multiplied may depend on the draw.
        for id in graph.ids() {
            let mixed =
                graph.args(id).iter().any(|a| own[a.index()].is_none()) && !graph.shape(id).record;
            if mixed {
                for arg in graph.args(id) {
                    if let Some(own) = own[arg.index()].clone() {
                        always.extend(own.all());
                    }
                }
            }
        }
        always.sort_unstable();
        always.dedup();
        support.few = (always.len() as f64) < FEW * dim as f64 && dim >= 64;
        support.always = always;
        support
    }

    /// Fills `coordinates` with the coordinates on which the batch depends. Returns `false` and leaves `coordinates`
    /// unchanged if there are so many of them that the support is of no use.
    pub(crate) fn of_batch(&self, batch: &[u32], coordinates: &mut Vec<u32>) -> bool {
        if !self.few {
            return false;
        }
        coordinates.clear();
        coordinates.extend_from_slice(&self.always);
        for (indices, table) in &self.by_record {
            coordinates.extend(batch.iter().map(|&r| table[indices[r as usize] as usize]));
        }
        coordinates.sort_unstable();
        coordinates.dedup();
        true
    }
}

fn own_of(graph: &Graph, id: NodeId, own: &[Option<Own>]) -> Option<Own> {
    let nothing = || Own {
        shared: Vec::new(),
        tables: Vec::new(),
    };
    let len = graph.shape(id).len as usize;
    let arg = |k: usize| own[graph.args(id)[k].index()].clone();
    match graph.op(id) {
        Op::Const(_) => Some(nothing()),
        Op::Input(_) => Some(Own {
            shared: Vec::new(),
            tables: vec![(0..len as u32).collect()],
        }),
        Op::Record(_) | Op::RecordCount => None,
        Op::Gather(index) => {
            let index = graph.index_data(index);
            let source = arg(0)?;
            let table = |table: Vec<u32>| index.iter().map(|i| table[*i as usize]).collect();
            Some(Own {
                shared: source.shared,
                tables: source.tables.into_iter().map(table).collect(),
            })
        }
        Op::Elem(_) => {
            let mut found = nothing();
            for k in 0..graph.args(id).len() {
                let source = arg(k)?;
                if graph.shape(graph.args(id)[k]).len as usize == len {
                    found.shared.extend(source.shared);
                    found.tables.extend(source.tables);
                } else {
                    found.shared.extend(source.all());
                }
            }
            found.shared.sort_unstable();
            found.shared.dedup();
            found.tables.sort_unstable();
            found.tables.dedup();
            Some(found)
        }
        _ => {
            let mut all = Vec::new();
            for k in 0..graph.args(id).len() {
                all.extend(arg(k)?.all());
            }
            all.sort_unstable();
            all.dedup();
            Some(Own {
                shared: all,
                tables: Vec::new(),
            })
        }
    }
}
