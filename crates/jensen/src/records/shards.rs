//! Exchangeable records in shards. A shard is a Parquet file. Another process evaluates the records of the shard. All
//! shards together form one density.
//!
//! All shards have the same number of blocks. Records are numbered by block, and within each block by shard, so that a
//! minibatch contains records from the same block of all shards. Each shard evaluates its own records by
//! [`record_step`]. The result depends only on the program, the file, the point and the requested records. The driver
//! adds the results over a binary tree of shards, so that the sums depend bitwise only on the files. The driver
//! performs all other computations.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jensen_data::DataSet;
use jensen_density::{Lanes, LanesMut, RecordDensity};
use jensen_run::tree_sum;
use jensen_run::wire::{self, Reader};
use serde::{Deserialize, Serialize};

use super::table::{RecordTable, SHARD};
use super::{RecordBlocks, RecordSource};
use crate::Error;
use crate::exchangeable::{BlockModel, Records, compile_blocks};
use crate::job::words;
use crate::program::{Includes, Source};
use crate::stan::Build;

/// A program without the data of its records. A shard needs this program in addition to its own file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShardProgram {
    /// The name of the program that messages use.
    pub name: String,
    text: String,
    includes: std::collections::BTreeMap<String, String>,
    /// The data that do not belong to single records, as JSON.
    shared: String,
    count: String,
    seed: u64,
    simd: String,
    memory_limit: u64,
    blocks: usize,
}

impl ShardProgram {
    pub(crate) fn new(
        source: &Source,
        shared: &DataSet,
        build: &Build<'_>,
        count: &str,
        blocks: usize,
    ) -> Self {
        Self {
            name: source.model.clone(),
            text: source.text.clone(),
            includes: source.includes.found(),
            shared: shared.to_json(),
            count: count.to_owned(),
            seed: build.seed,
            simd: build.simd.name().to_owned(),
            memory_limit: build.memory_limit,
            blocks,
        }
    }

    /// Opens a shard and checks that its digest equals `digest`.
    ///
    /// # Errors
    /// Fails if the file cannot be read or differs from the file that the driver has registered.
    pub fn open(&self, shard: &Path, digest: &str) -> Result<BlockModel, Error> {
        let includes = Includes::of_texts(self.includes.clone());
        let build = Build {
            includes: &includes,
            data_name: "data",
            seed: self.seed,
            simd: words::simd(Some(&self.simd))?,
            memory_limit: self.memory_limit,
            ..Build::default()
        };
        let shared = DataSet::from_json(self.shared.as_bytes(), "data")?;
        let open = |data: &[_]| {
            let table = RecordTable::open(&[shard.to_owned()], data, SHARD, Some(self.blocks))?;
            if table.digest() != digest {
                return Err(Error::Input(format!(
                    "the shard `{}` differs from the driver's: all machines must see the same files",
                    shard.display()
                )));
            }
            Ok(table)
        };
        compile_blocks(&self.text, &self.name, &shared, &build, &self.count, open)
    }
}

/// The work of one shard in one step. The tuple contains the index of the shard, its file, the digest of the file, and
/// an encoded list of the requested records.
pub type ShardShare<'a> = (usize, &'a Path, &'a str, Vec<u8>);

/// The processes that evaluate the records of shards.
pub trait RecordSteps: Send + Sync {
    /// Evaluates the request `ask` for the records of every share. The results are in the order of the shares.
    ///
    /// # Errors
    /// Fails if a shard does not return a result.
    fn solve(&self, ask: &[u8], shares: &[ShardShare<'_>]) -> Result<Vec<Vec<u8>>, Error>;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Value = 0,
    Gradient = 1,
    Product = 2,
}

/// A shard as the driver sees it. `edges` contains the index of the first record of each block, followed by the number
/// of records.
pub(crate) struct Shard {
    pub path: PathBuf,
    pub digest: String,
    pub edges: Vec<u32>,
}

/// The density of exchangeable records that are divided into shards.
pub struct RecordShards {
    first: RecordBlocks,
    shards: Vec<Shard>,
    /// The index of the first record of each block, counted over all shards together, followed by the total number of
    /// records.
    edges: Vec<u32>,
    /// The index of the first record of each shard in each block, followed by the total number of records. The indices
    /// are sorted by block and then by shard.
    starts: Vec<u32>,
    steps: Box<dyn RecordSteps>,
    held: Mutex<Vec<u32>>,
    failed: Mutex<Option<Error>>,
}

impl RecordShards {
    /// Creates the density. `first` is the model of the first shard. This model also provides the prior.
    pub(crate) fn new(
        first: RecordBlocks,
        shards: Vec<Shard>,
        steps: Box<dyn RecordSteps>,
    ) -> Self {
        let blocks = shards.first().map_or(0, |shard| shard.edges.len() - 1);
        let (mut edges, mut starts, mut end) = (vec![0], Vec::new(), 0);
        for block in 0..blocks {
            for shard in &shards {
                starts.push(end);
                end += shard.edges[block + 1] - shard.edges[block];
            }
            edges.push(end);
        }
        starts.push(end);
        Self {
            first,
            shards,
            edges,
            starts,
            steps,
            held: Mutex::default(),
            failed: Mutex::default(),
        }
    }

    /// Returns the file of each shard with its digest.
    pub fn files(&self) -> impl Iterator<Item = (&Path, &str)> {
        let shards = self.shards.iter();
        shards.map(|shard| (shard.path.as_path(), shard.digest.as_str()))
    }

    /// Returns the work of each shard that contains records of the batch. The records are encoded as runs of
    /// consecutive indices within the shard.
    fn shares(&self, batch: &[u32]) -> Vec<ShardShare<'_>> {
        let mut runs: Vec<Vec<u32>> = vec![Vec::new(); self.shards.len()];
        let mut cell = 0;
        for &n in batch {
            if !(self.starts[cell]..self.starts[cell + 1]).contains(&n) {
                cell = self.starts.partition_point(|start| *start <= n) - 1;
            }
            let (block, shard) = (cell / self.shards.len(), cell % self.shards.len());
            let own = self.shards[shard].edges[block] + (n - self.starts[cell]);
            let runs = &mut runs[shard];
            match runs.as_chunks_mut().0.last_mut() {
                Some([first, count]) if *first + *count == own => *count += 1,
                _ => runs.extend([own, 1]),
            }
        }
        let shares = runs
            .into_iter()
            .enumerate()
            .filter(|(_, runs)| !runs.is_empty());
        let shares = shares.map(|(shard, runs)| {
            let Shard { path, digest, .. } = &self.shards[shard];
            let share = wire::bytes(|out| out.numbers(&runs));
            (shard, path.as_path(), digest.as_str(), share)
        });
        shares.collect()
    }

    /// Computes sums over the records of a batch. `values` must be empty or have one element per lane. `matrix` must be
    /// empty or have the same length as z.
    fn sums(
        &self,
        what: What,
        batch: &[u32],
        z: Lanes<'_>,
        v: Option<Lanes<'_>>,
        mut values: &mut [f64],
        matrix: &mut [f64],
    ) {
        let found = match self.failure() {
            Some(_) => None,
            None => match self.asked(what, batch, z, v) {
                Ok(found) => Some(found),
                Err(error) => {
                    let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
                    failed.get_or_insert(error);
                    None
                }
            },
        };
        let Some(found) = found else {
            values.fill(f64::NAN);
            matrix.fill(f64::NAN);
            return;
        };
        if found.is_empty() {
            values.fill(0.0);
            matrix.fill(0.0);
            return;
        }
        if what == What::Product {
            values = &mut [];
        }
        let count = values.len();
        values.copy_from_slice(&found[..count]);
        matrix.copy_from_slice(&found[count..]);
    }

    fn asked(
        &self,
        what: What,
        batch: &[u32],
        z: Lanes<'_>,
        v: Option<Lanes<'_>>,
    ) -> Result<Vec<f64>, Error> {
        let held = *self.held.lock().unwrap_or_else(PoisonError::into_inner) == batch;
        let ask = wire::bytes(|ask| {
            ask.counts(&[
                what as u64,
                z.rows() as u64,
                z.lanes() as u64,
                u64::from(held),
            ]);
            ask.reals(z.as_slice());
            ask.reals(v.as_ref().map_or(&[], Lanes::as_slice));
        });
        let shares = self.shares(batch);
        let answers = self.steps.solve(&ask, &shares)?;
        // The results of a shard without records in the batch are empty, so that the shard keeps its position in the
        // tree.
        let mut parts = vec![Vec::new(); self.shards.len()];
        for ((shard, ..), answer) in shares.iter().zip(&answers) {
            parts[*shard] = Reader::new(answer)
                .reals()
                .map_err(|error| Error::Input(error.to_string()))?;
        }
        let size = match what {
            What::Value => z.lanes(),
            What::Gradient => z.lanes() * (1 + z.rows()),
            What::Product => z.lanes() * z.rows(),
        };
        if let Some(wrong) = parts
            .iter()
            .find(|part| !part.is_empty() && part.len() != size)
        {
            return Err(Error::Input(format!(
                "a shard answered with {} numbers instead of {size}",
                wrong.len()
            )));
        }
        let plus = |mut first: Vec<f64>, second: Vec<f64>| {
            if first.is_empty() {
                return second;
            }
            first.iter_mut().zip(&second).for_each(|(sum, x)| *sum += x);
            first
        };
        Ok(tree_sum(parts, plus).unwrap_or_default())
    }
}

/// Evaluates the requested records of a shard. Calls with the same arguments return bitwise identical results on every
/// machine.
///
/// # Errors
/// Fails if the bytes of the request are damaged or if the records cannot be read.
pub fn record_step(shard: &BlockModel, ask: &[u8], share: &[u8]) -> Result<Vec<u8>, Error> {
    fn damaged(error: impl Into<String>) -> Error {
        let error: String = error.into();
        Error::Input(format!("the request to the shard: {error}"))
    }
    let mut read = Reader::new(ask);
    let [what, rows, lanes, held] = read.counts().map_err(damaged)?;
    let (rows, lanes) = (rows as usize, lanes as usize);
    let (z, v) = (
        read.reals().map_err(damaged)?,
        read.reals().map_err(damaged)?,
    );
    let runs = Reader::new(share).numbers().map_err(damaged)?;
    let mut batch = Vec::new();
    for run in runs.as_chunks().0 {
        let [first, count] = *run;
        batch.extend(first..first.saturating_add(count));
    }
    let records = shard.records();
    let fits =
        rows == records.dim() && z.len() == rows * lanes && (what != 2 || v.len() == z.len());
    if !fits || batch.iter().any(|n| *n as usize >= records.records()) {
        return Err(damaged(
            "it belongs to another program or to other records".to_owned(),
        ));
    }
    if held > 0 {
        let mut sorted = batch.clone();
        sorted.sort_unstable();
        records.hold(&sorted);
    }
    let mut ws = records.workspace(lanes, batch.len());
    let z = Lanes::new(&z, rows, lanes);
    let (mut values, mut matrix) = (vec![0.0; lanes], vec![0.0; rows * lanes]);
    match what {
        0 => {
            records.batch_value(&mut ws, &batch, z, &mut values);
            matrix.clear();
        }
        1 => {
            let grad = LanesMut::new(&mut matrix, rows, lanes);
            records.batch_value_grad(&mut ws, &batch, z, &mut values, grad);
        }
        _ => {
            let out = LanesMut::new(&mut matrix, rows, lanes);
            records.batch_hvp(&mut ws, &batch, z, Lanes::new(&v, rows, lanes), out);
            values.clear();
        }
    }
    if let Some(error) = records.failure() {
        return Err(error);
    }
    values.append(&mut matrix);
    Ok(wire::bytes(|out| out.reals(&values)))
}

impl Records for RecordShards {
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

impl RecordDensity for RecordShards {
    type Workspace = <RecordBlocks as RecordDensity>::Workspace;

    fn dim(&self) -> usize {
        self.first.dim()
    }

    fn records(&self) -> usize {
        self.edges.last().map_or(0, |end| *end as usize)
    }

    fn workspace(&self, lanes: usize, batch: usize) -> Self::Workspace {
        self.first.workspace(lanes, batch)
    }

    fn prior_value(&self, ws: &mut Self::Workspace, z: Lanes<'_>, out: &mut [f64]) {
        self.first.prior_value(ws, z, out);
    }

    fn prior_value_grad(
        &self,
        ws: &mut Self::Workspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        self.first.prior_value_grad(ws, z, out, grad);
    }

    fn prior_hvp(&self, ws: &mut Self::Workspace, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>) {
        self.first.prior_hvp(ws, z, v, out);
    }

    fn batch_value(&self, _: &mut Self::Workspace, batch: &[u32], z: Lanes<'_>, out: &mut [f64]) {
        self.sums(What::Value, batch, z, None, out, &mut []);
    }

    fn batch_value_grad(
        &self,
        _: &mut Self::Workspace,
        batch: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        mut grad: LanesMut<'_>,
    ) {
        self.sums(What::Gradient, batch, z, None, out, grad.as_mut_slice());
    }

    fn batch_hvp(
        &self,
        _: &mut Self::Workspace,
        batch: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        mut out: LanesMut<'_>,
    ) {
        self.sums(
            What::Product,
            batch,
            z,
            Some(v),
            &mut [],
            out.as_mut_slice(),
        );
    }

    fn blocks(&self) -> Option<&[u32]> {
        Some(&self.edges)
    }

    fn stride(&self) -> usize {
        let blocks = self.edges.windows(2);
        blocks
            .map(|edge| (edge[1] - edge[0]) as usize)
            .max()
            .unwrap_or(1)
            .max(1)
    }

    fn hold(&self, records: &[u32]) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = records.to_vec();
    }
}
