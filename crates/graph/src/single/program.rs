//! Runs the phases of an evaluation over blocks of lanes.

use std::sync::Mutex;

use jensen_math::simd::Simd;
use rayon::prelude::*;

use crate::ir::{Graph, Placement};
use crate::single::Unsupported;
use crate::single::block::Runner;
use crate::single::phases::{Layout, Phases};
use crate::single::plan::{Location, Plan, Planner, Region, TILE};
use crate::single::sums::{LaneSum, Tile, lane_sums};

/// The number of lanes in a block. A block is large enough for products to run at full speed, and small enough that
/// there are blocks for every core.
const BLOCK: usize = 50;

/// A planned graph. The program is immutable, so threads can share it.
pub struct SingleProgram {
    pub(super) graph: Graph,
    pub(super) simd: Simd,
    pool: Vec<f32>,
    before: Plan,
    lanes: Plan,
    after: Plan,
    pub(super) sums: Vec<LaneSum>,
    kept_len: usize,
    shared_len: usize,
    pub(super) outputs: Vec<Location>,
    pub(super) tiles: Vec<Tile>,
}

/// The scratch memory and results of a [`SingleProgram`].
pub struct SingleWorkspace {
    pub(super) capacity: usize,
    pub(super) kept: Vec<f32>,
    pub(super) shared: Vec<f32>,
    blocks: Vec<f32>,
    registers: Vec<f32>,
    tiles: Vec<Mutex<Vec<f32>>>,
}

impl SingleWorkspace {
    pub(super) fn with_tile(&self, len: usize, work: impl FnOnce(&mut [f32])) {
        let which = rayon::current_thread_index().unwrap_or(0) % self.tiles.len();
        let mut tile = self.tiles[which]
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if tile.len() < len {
            tile.resize(len, 0.0);
        }
        work(&mut tile);
    }
}

/// The memory of one evaluation as raw pointers and lengths. Different blocks write to disjoint parts of it.
#[derive(Clone, Copy)]
pub(super) struct Memory<'a> {
    pub pool: *const f32,
    pub shared: *mut f32,
    pub kept: *mut f32,
    pub inputs: &'a [&'a [f32]],
    /// The number of lanes in the whole evaluation.
    pub total: usize,
}

// SAFETY: different blocks of lanes write to disjoint parts, and all other memory is only read while they run.
unsafe impl Send for Memory<'_> {}
// SAFETY: different blocks of lanes write to disjoint parts, and all other memory is only read while they run.
unsafe impl Sync for Memory<'_> {}

impl SingleProgram {
    /// Plans `graph`, which must not have a record axis.
    ///
    /// # Errors
    /// Fails with [`Unsupported`] if an operation has no single-precision kernel, or if the lanes read a value that
    /// depends on a sum over lanes.
    pub fn new(graph: &Graph, simd: Simd) -> Result<Self, Unsupported> {
        if graph.record_count().is_some() {
            return Err(Unsupported::records());
        }
        let graph = crate::passes::compact(graph);
        let phases = Phases::of(&graph)?;
        let mut layout = Layout::of_leaves(&graph);

        let early = phases.early();
        layout.share(&graph, &early);
        let leaf = |id| phases.leaf(id);
        let before = Planner::plan(&graph, simd, &early, leaf, &mut layout.locations)?;
        layout.end_phase();

        let sum_nodes = phases.sums();
        layout.share(&graph, &sum_nodes);
        let sums = lane_sums(&graph, &sum_nodes);
        let kept = phases.kept(&sums);
        layout.keep(&graph, &kept);
        let known = |id| phases.known_to_lanes(id);
        let lanes = Planner::plan(&graph, simd, &kept, known, &mut layout.locations)?;
        layout.end_phase();

        let late = phases.late();
        let followed = phases.followed(&late);
        let sums = sums
            .into_iter()
            .map(|sum| sum.location(&graph, &layout.locations, &followed))
            .collect();
        layout.share(&graph, &late);
        let known = |id| phases.known_after_sums(id);
        let after = Planner::plan(&graph, simd, &late, known, &mut layout.locations)?;

        let outputs = graph
            .outputs()
            .iter()
            .map(|id| layout.locations[id])
            .collect();
        let mut program = Self {
            simd,
            pool: layout.pool,
            before,
            lanes,
            after,
            sums,
            kept_len: layout.kept_len,
            shared_len: layout.shared_len,
            outputs,
            tiles: Vec::new(),
            graph,
        };
        program.tiles = program.cut_tiles();
        Ok(program)
    }

    /// Returns the planned graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the instruction set in use.
    pub fn simd(&self) -> Simd {
        self.simd
    }

    /// Creates scratch memory for at most `lanes` lanes.
    pub fn workspace(&self, lanes: usize) -> SingleWorkspace {
        let capacity = lanes.max(1);
        let block_len = [&self.before, &self.lanes, &self.after]
            .iter()
            .map(|plan| plan.block_len)
            .max()
            .unwrap_or(0);
        let registers = [&self.before, &self.lanes, &self.after]
            .iter()
            .map(|plan| plan.registers)
            .max()
            .unwrap_or(0);
        let blocks = capacity.div_ceil(BLOCK);
        SingleWorkspace {
            capacity,
            kept: vec![0.0; self.kept_len * capacity],
            shared: vec![0.0; self.shared_len],
            blocks: vec![0.0; blocks * BLOCK * block_len.max(1)],
            registers: vec![0.0; blocks * registers.max(1) * TILE],
            tiles: (0..rayon::current_num_threads().max(1))
                .map(|_| Mutex::default())
                .collect(),
        }
    }

    /// Returns the size, in bytes, of a workspace for `lanes` lanes.
    pub fn workspace_bytes(&self, lanes: usize) -> usize {
        let blocks = lanes.max(1).div_ceil(BLOCK) * BLOCK;
        4 * (self.kept_len * lanes + self.shared_len + blocks * self.lanes.block_len)
    }

    /// Evaluates all values except the outputs that are sums over lanes. If an input is shared, `inputs[slot]` contains
    /// its elements. If an input is per lane, its entry contains `len` elements for each of `lanes` lanes, one lane
    /// after another.
    ///
    /// # Panics
    /// Panics if an input does not have the required length, or if the workspace was created for fewer lanes.
    pub fn run_lanes(&self, workspace: &mut SingleWorkspace, inputs: &[&[f32]], lanes: usize) {
        self.check(workspace, inputs, lanes, true);
        self.run_shared(&self.before, workspace, inputs, lanes);
        let memory = self.memory(workspace, inputs, lanes);
        // All blocks have nearly the same size, which depends only on the number of lanes.
        let count = lanes.div_ceil(BLOCK).max(1);
        let block_len = workspace.blocks.len() / workspace.capacity.div_ceil(BLOCK);
        let register_len = workspace.registers.len() / workspace.capacity.div_ceil(BLOCK);
        workspace
            .blocks
            .par_chunks_mut(block_len)
            .zip(workspace.registers.par_chunks_mut(register_len))
            .take(count)
            .enumerate()
            .with_max_len(1)
            .for_each(|(which, (block, registers))| {
                let first = which * lanes / count;
                let runner = Runner {
                    program: self,
                    memory,
                    block: block.as_mut_ptr(),
                    registers: registers.as_mut_ptr(),
                    first,
                    lanes: (which + 1) * lanes / count - first,
                };
                // SAFETY: the inputs and the workspace were checked. Each block has its own memory, and writes only to
                // its own lanes of the stored values.
                unsafe { runner.run(&self.lanes) };
            });
        if !self.after.steps.is_empty() {
            self.run_sums(workspace, inputs, lanes, true);
            self.run_shared(&self.after, workspace, inputs, lanes);
        }
    }

    fn run_shared(
        &self,
        plan: &Plan,
        workspace: &mut SingleWorkspace,
        inputs: &[&[f32]],
        lanes: usize,
    ) {
        if plan.steps.is_empty() {
            return;
        }
        let runner = Runner {
            program: self,
            memory: self.memory(workspace, inputs, lanes),
            block: workspace.blocks.as_mut_ptr(),
            registers: workspace.registers.as_mut_ptr(),
            first: 0,
            lanes: 1,
        };
        // SAFETY: `run_lanes` calls `check` on inputs and workspace before any phase, and its exclusive borrow of the
        // workspace prevents other access.
        unsafe { runner.run(plan) };
    }

    pub(super) fn read_only<'a>(
        &self,
        workspace: &SingleWorkspace,
        inputs: &'a [&'a [f32]],
        lanes: usize,
    ) -> Memory<'a> {
        Memory {
            pool: self.pool.as_ptr(),
            shared: workspace.shared.as_ptr().cast_mut(),
            kept: workspace.kept.as_ptr().cast_mut(),
            inputs,
            total: lanes,
        }
    }

    pub(super) fn memory<'a>(
        &self,
        workspace: &mut SingleWorkspace,
        inputs: &'a [&'a [f32]],
        lanes: usize,
    ) -> Memory<'a> {
        Memory {
            pool: self.pool.as_ptr(),
            shared: workspace.shared.as_mut_ptr(),
            kept: workspace.kept.as_mut_ptr(),
            inputs,
            total: lanes,
        }
    }

    pub(super) fn check(
        &self,
        workspace: &SingleWorkspace,
        inputs: &[&[f32]],
        lanes: usize,
        shared: bool,
    ) {
        assert!(lanes <= workspace.capacity, "the workspace has room");
        assert_eq!(inputs.len(), self.graph.inputs().len(), "one value a slot");
        assert_eq!(
            workspace.kept.len(),
            self.kept_len * workspace.capacity,
            "a workspace of this program"
        );
        for (slot, (input, value)) in self.graph.inputs().iter().zip(inputs).enumerate() {
            match input.placement {
                Placement::Lane => assert_eq!(value.len(), input.len * lanes, "input {slot}"),
                _ if shared => assert_eq!(value.len(), input.len, "input {slot}"),
                _ => {}
            }
        }
    }

    /// Returns the value of output `which` from the last evaluation, which had `lanes` lanes. A shared output is
    /// returned as a single list of elements. For a per-lane output, the elements of the lanes follow one another.
    ///
    /// # Panics
    /// Panics if the output is an input or a constant.
    pub fn output<'w>(
        &self,
        workspace: &'w SingleWorkspace,
        which: usize,
        lanes: usize,
    ) -> &'w [f32] {
        let location = self.outputs[which];
        let len = self.graph.shape(self.graph.outputs()[which]).len as usize;
        match location.region {
            Region::Kept => {
                &workspace.kept[location.offset * lanes..(location.offset + len) * lanes]
            }
            Region::Shared => &workspace.shared[location.offset..location.offset + len],
            region => panic!("an output in {region:?} is not computed"),
        }
    }
}

impl Memory<'_> {
    /// Returns the address of the element of a value at lane `first`. The value must not be in block memory or in a
    /// register.
    ///
    /// # Safety
    /// The location must belong to the program for which this memory was created.
    pub(super) unsafe fn at(&self, location: &Location, first: usize) -> *mut f32 {
        // SAFETY: the offsets of the plan are inside the pool, the inputs and the workspace, whose sizes the program
        // has chosen or checked.
        unsafe {
            let start = match location.region {
                Region::Pool => self.pool.add(location.offset).cast_mut(),
                Region::SharedInput(slot) | Region::LaneInput(slot) => {
                    self.inputs[slot as usize].as_ptr().cast_mut()
                }
                Region::Shared => self.shared.add(location.offset),
                Region::Kept => self.kept.add(location.offset * self.total),
                Region::Block | Region::Register => unreachable!("memory of one block"),
            };
            start.add(location.inner + first * location.stride)
        }
    }
}
