//! Exchangeable records whose data are read in blocks.
//!
//! The density of a minibatch depends only on the data of the records in this minibatch. [`RecordBlocks`] therefore
//! compiles the program for a block of records only when an evaluation needs a record of this block. It keeps the last
//! two blocks in memory. The records that the starting points use stay in memory. The records are numbered block by
//! block. Each block is therefore read only once if a caller visits the records in order, or through the
//! [`Batches`](jensen_blackbox::records::Batches) of blocks.
//!
//! | file | subject |
//! | --- | --- |
//! | here | [`RecordBlocks`]: the density |
//! | `shards` | records in files that other processes evaluate, with one shard per file |
//! | `table` | the blocks of Parquet files and their contents |

mod shards;
mod table;

use std::sync::{Arc, Mutex, PoisonError};

use jensen_data::{DataSet, Elements, Value};
use jensen_density::{Lanes, LanesMut, RecordDensity};
use jensen_graph::{Execution, RecordGraph, RecordWorkspace};
use jensen_stan::interpret::BoundModel;
pub use jensen_stan::lower::RecordData;
use jensen_stan::lower::{LowerError, LowerOptions, lower_block, record_data};
use jensen_stan::program::Program;

pub(crate) use shards::Shard;
pub use shards::{RecordShards, RecordSteps, ShardProgram, ShardShare, record_step};
pub use table::RecordTable;
pub(crate) use table::{BLOCK, SHARD};

use crate::Error;
use crate::exchangeable::Records;
use crate::stan::{Build, ModelError, ModelErrorKind, bind_block, model_error};

/// The number of blocks in memory. Two blocks are needed because a minibatch at the end of one block also contains
/// records of the next block.
const KEPT: usize = 2;

const FIRST: usize = 16;

/// A source that provides the data of records in blocks.
pub trait RecordSource: Send + Sync {
    /// Returns the index of the first record of each block, followed by the total number of records.
    fn edges(&self) -> &[u32];

    /// Reads the first `rows` records of a block, or all records of the block if `rows` is `None`.
    ///
    /// # Errors
    /// Fails if the records of the block cannot be read.
    fn read(
        &self,
        data: &[RecordData],
        block: usize,
        rows: Option<usize>,
    ) -> Result<DataSet, Error>;

    /// Returns the position of each record of a block in the data. The first record of the data has position 1.
    fn numbers(&self, block: usize) -> Vec<f64>;

    /// Returns the location of a record in a form that messages can show.
    fn location(&self, block: usize, row: usize) -> String;

    /// Returns the length of the lists in a variable, or `None` if the values of the variable are not lists.
    ///
    /// # Errors
    /// Fails if the records cannot be read.
    fn length(&self, name: &str) -> Result<Option<usize>, Error>;

    /// Returns the digest of all data.
    fn digest(&self) -> String;
}

/// The density of a program over exchangeable records whose data are read in blocks.
pub struct RecordBlocks {
    program: Arc<Program>,
    count: String,
    data: Vec<RecordData>,
    shared: DataSet,
    memory_limit: u64,
    options: LowerOptions,
    execution: Execution,
    source: Box<dyn RecordSource>,
    /// The density of the first records, with the prior of the whole program.
    first: RecordGraph,
    recent: Mutex<Vec<(usize, Arc<RecordGraph>)>>,
    held: Mutex<Option<Arc<Held>>>,
    /// The error that occurred when the data were read. After an error has been stored, all values are NaN.
    failed: Mutex<Option<Error>>,
}

struct Held {
    records: Vec<u32>,
    graph: Arc<RecordGraph>,
}

/// The scratch memory of [`RecordBlocks`]. The memory belongs to the block that was evaluated last.
#[derive(Default)]
pub struct BlockWorkspace {
    prior: RecordWorkspace,
    graph: Option<Arc<RecordGraph>>,
    inner: RecordWorkspace,
    local: Vec<u32>,
    values: Vec<f64>,
    part: Vec<f64>,
}

/// Returns two data sets. The first data set contains the data that do not belong to records, and the lengths of lists
/// that are missing in `shared`. The second data set contains the data of the first records. Fails if `shared` contains
/// data that belong to records, or if the records cannot be read.
pub(crate) fn first_data(
    program: &Program,
    count: &str,
    shared: &DataSet,
    source: &dyn RecordSource,
) -> Result<(DataSet, DataSet), Error> {
    let data = record_data(program, count);
    let mut shared = shared.clone();
    for one in &data {
        let twice = [one.name.as_str(), count]
            .into_iter()
            .find(|name| shared.get(name).is_some());
        if let Some(name) = twice {
            return Err(Error::Input(format!(
                "both the data and the records have `{name}`: remove it from the data"
            )));
        }
    }
    for one in &data {
        if let Some(name) = one
            .length
            .as_ref()
            .filter(|name| shared.get(name).is_none())
            && name != count
            && let Some(length) = source.length(&one.name)?
        {
            shared.insert(name, Value::int(length as i64));
        }
    }
    let first = source.read(&data, 0, Some(FIRST))?;
    let bound = joined(&shared, first, count);
    Ok((shared, bound))
}

fn joined(shared: &DataSet, block: DataSet, count: &str) -> DataSet {
    let mut data = shared.clone();
    let rows = block.iter().next().map_or(0, |(_, value)| value.shape()[0]);
    data.insert(count, Value::int(rows as i64));
    for (name, value) in block.into_entries() {
        data.insert(name, value);
    }
    data
}

impl RecordBlocks {
    pub(crate) fn new(
        bound: &BoundModel,
        count: &str,
        shared: DataSet,
        source: Box<dyn RecordSource>,
        options: LowerOptions,
        execution: Execution,
        build: &Build<'_>,
    ) -> Result<Self, LowerError> {
        let mut numbers = source.numbers(0);
        numbers.truncate(FIRST);
        let lowered = lower_block(bound, options, count, &numbers)?;
        Ok(Self {
            program: bound.program().clone(),
            count: count.to_owned(),
            data: record_data(bound.program(), count),
            shared,
            memory_limit: build.memory_limit,
            options,
            execution,
            source,
            first: RecordGraph::new(&lowered.prior, &lowered.likelihood, execution),
            recent: Mutex::default(),
            held: Mutex::default(),
            failed: Mutex::default(),
        })
    }

    fn lowered(&self, block: usize, rows: DataSet, numbers: &[f64]) -> Result<RecordGraph, Error> {
        let bind = |rows: DataSet| {
            let data = joined(&self.shared, rows, &self.count);
            bind_block(&self.program, &data, self.memory_limit)
        };
        let count = numbers.len();
        let bound = match bind(rows.clone()) {
            Ok(bound) => bound,
            Err(error) => {
                // A binary search finds the first record that the declarations reject. The declarations accept the
                // first `fine` records.
                let (mut fine, mut bad) = (0, count);
                while bad - fine > 1 {
                    let middle = fine + (bad - fine) / 2;
                    match bind(chosen(&rows, fine..middle)) {
                        Ok(_) => fine = middle,
                        Err(_) => bad = middle,
                    }
                }
                let error = bind(chosen(&rows, fine..bad)).err().unwrap_or(error);
                let location = self.source.location(block, fine);
                let kind = ModelErrorKind::Data;
                let text = format!("{location}: {}", error.message);
                return Err(ModelError::new(kind, text).into());
            }
        };
        drop(rows);
        let lowered = lower_block(&bound, self.options, &self.count, numbers).map_err(|error| {
            let (kind, span) = (error.kind, error.span);
            model_error(&self.program, kind, &error.message, span, "the records")
        })?;
        Ok(RecordGraph::of_passing(
            &lowered.prior,
            &lowered.likelihood,
            self.execution,
        ))
    }

    fn block(&self, block: usize) -> Option<Arc<RecordGraph>> {
        if self.failure().is_some() {
            return None;
        }
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = recent.iter().position(|(number, _)| *number == block) {
            let found = recent.remove(at);
            recent.push(found);
        } else {
            if recent.len() == KEPT {
                recent.remove(0);
            }
            let made = self
                .source
                .read(&self.data, block, None)
                .and_then(|rows| self.lowered(block, rows, &self.source.numbers(block)));
            match made {
                Ok(graph) => recent.push((block, Arc::new(graph))),
                Err(error) => {
                    self.fail(error);
                    return None;
                }
            }
        }
        recent.last().map(|(_, graph)| graph.clone())
    }

    fn fail(&self, error: Error) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get_or_insert(error);
    }

    fn held(&self) -> Option<Arc<Held>> {
        self.held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Calls the closure for each run of records in the batch that belong to the same block. The arguments of the
    /// closure are the graph of the block and the indices of the records within the block. Returns `false` if data
    /// cannot be read.
    fn each(
        &self,
        ws: &mut BlockWorkspace,
        batch: &[u32],
        mut f: impl FnMut(&RecordGraph, &mut BlockWorkspace, &[u32]),
    ) -> bool {
        let mut local = std::mem::take(&mut ws.local);
        let mut call = |ws: &mut BlockWorkspace, graph: Arc<RecordGraph>, local: &[u32]| {
            if !ws
                .graph
                .as_ref()
                .is_some_and(|last| Arc::ptr_eq(last, &graph))
            {
                ws.inner = RecordWorkspace::default();
                ws.graph = Some(graph.clone());
            }
            f(&graph, ws, local);
        };
        if let Some(held) = self.held() {
            let positions = batch.iter().map(|n| held.records.binary_search(n).ok());
            local.clear();
            local.extend(positions.map_while(|position| position.map(|position| position as u32)));
            if local.len() == batch.len() {
                call(ws, held.graph.clone(), &local);
                ws.local = local;
                return true;
            }
        }
        let edges = self.source.edges();
        let block_of = |n: u32| edges.partition_point(|first| *first <= n) - 1;
        let mut fine = true;
        for piece in batch.chunk_by(|a, b| block_of(*a) == block_of(*b)) {
            let block = block_of(piece[0]);
            let Some(graph) = self.block(block) else {
                fine = false;
                break;
            };
            local.clear();
            local.extend(piece.iter().map(|n| n - edges[block]));
            call(ws, graph, &local);
        }
        ws.local = local;
        fine
    }
}

fn chosen(data: &DataSet, rows: impl Iterator<Item = usize> + Clone) -> DataSet {
    let mut made = DataSet::new();
    for (name, value) in data.iter() {
        let width = value.shape().get(1).copied().unwrap_or(1);
        let offsets = || rows.clone().flat_map(|row| row * width..(row + 1) * width);
        let mut shape = value.shape().to_vec();
        shape[0] = rows.clone().count();
        let part = match value.elements() {
            Elements::Int(all) => Value::ints(shape, offsets().map(|at| all[at]).collect()),
            Elements::Real(all) => Value::reals(shape, offsets().map(|at| all[at]).collect()),
            Elements::Tuple(_) => continue,
        };
        if let Ok(part) = part {
            made.insert(name, part);
        }
    }
    made
}

impl Records for RecordBlocks {
    fn block_bytes(&self) -> usize {
        self.first.block_bytes()
    }

    fn failure(&self) -> Option<Error> {
        self.failed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl RecordDensity for RecordBlocks {
    type Workspace = BlockWorkspace;

    fn dim(&self) -> usize {
        self.first.dim()
    }

    fn records(&self) -> usize {
        self.source.edges().last().map_or(0, |end| *end as usize)
    }

    fn workspace(&self, _lanes: usize, _batch: usize) -> BlockWorkspace {
        BlockWorkspace::default()
    }

    fn prior_value(&self, ws: &mut BlockWorkspace, z: Lanes<'_>, out: &mut [f64]) {
        self.first.prior_value(&mut ws.prior, z, out);
    }

    fn prior_value_grad(
        &self,
        ws: &mut BlockWorkspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        self.first.prior_value_grad(&mut ws.prior, z, out, grad);
    }

    fn prior_hvp(&self, ws: &mut BlockWorkspace, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>) {
        self.first.prior_hvp(&mut ws.prior, z, v, out);
    }

    fn batch_value(&self, ws: &mut BlockWorkspace, batch: &[u32], z: Lanes<'_>, out: &mut [f64]) {
        out.fill(0.0);
        let fine = self.each(ws, batch, |graph, ws, local| {
            ws.values.resize(z.lanes(), 0.0);
            graph.batch_value(&mut ws.inner, local, z, &mut ws.values);
            add(&ws.values, out);
        });
        if !fine {
            out.fill(f64::NAN);
        }
    }

    fn batch_value_grad(
        &self,
        ws: &mut BlockWorkspace,
        batch: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        mut grad: LanesMut<'_>,
    ) {
        let (rows, lanes) = (z.rows(), z.lanes());
        out.fill(0.0);
        grad.as_mut_slice().fill(0.0);
        let fine = self.each(ws, batch, |graph, ws, local| {
            ws.values.resize(lanes, 0.0);
            ws.part.resize(rows * lanes, 0.0);
            let part = LanesMut::new(&mut ws.part, rows, lanes);
            graph.batch_value_grad(&mut ws.inner, local, z, &mut ws.values, part);
            add(&ws.values, out);
            add(&ws.part, grad.as_mut_slice());
        });
        if !fine {
            out.fill(f64::NAN);
            grad.as_mut_slice().fill(f64::NAN);
        }
    }

    fn batch_hvp(
        &self,
        ws: &mut BlockWorkspace,
        batch: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        mut out: LanesMut<'_>,
    ) {
        let (rows, lanes) = (z.rows(), z.lanes());
        out.as_mut_slice().fill(0.0);
        let fine = self.each(ws, batch, |graph, ws, local| {
            ws.part.resize(rows * lanes, 0.0);
            let part = LanesMut::new(&mut ws.part, rows, lanes);
            graph.batch_hvp(&mut ws.inner, local, z, v, part);
            add(&ws.part, out.as_mut_slice());
        });
        if !fine {
            out.as_mut_slice().fill(f64::NAN);
        }
    }

    fn blocks(&self) -> Option<&[u32]> {
        Some(self.source.edges())
    }

    fn hold(&self, records: &[u32]) {
        if self.held().is_some_and(|held| held.records == records) {
            return;
        }
        let edges = self.source.edges();
        let mut all: Option<DataSet> = None;
        let mut numbers = Vec::new();
        for (block, edge) in edges.windows(2).enumerate() {
            let wanted = records.iter().filter(|n| (edge[0]..edge[1]).contains(n));
            let wanted: Vec<usize> = wanted.map(|n| (n - edge[0]) as usize).collect();
            if wanted.is_empty() {
                continue;
            }
            let rows = match self.source.read(&self.data, block, None) {
                Ok(rows) => chosen(&rows, wanted.iter().copied()),
                Err(error) => return self.fail(error),
            };
            let own = self.source.numbers(block);
            numbers.extend(wanted.iter().map(|row| own[*row]));
            all = Some(match all {
                None => rows,
                Some(all) => all.followed_by(rows),
            });
        }
        // An error can be ignored here. If a record violates its declaration, a later error reports the block of the
        // record.
        let Some(Ok(graph)) = all.map(|rows| self.lowered(0, rows, &numbers)) else {
            return;
        };
        let held = Held {
            records: records.to_vec(),
            graph: Arc::new(graph),
        };
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(held));
    }
}

fn add(x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += x;
    }
}
