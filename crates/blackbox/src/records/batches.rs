//! Epochs of minibatches, which are reshuffled before each epoch.

use std::ops::Range;
use std::sync::Arc;

use jensen_math::rng;

use super::RecordError;

/// The minibatches of N records. Each epoch visits every record exactly once, in a new order.
///
/// There are ⌈N/B⌉ batches of at most B records. Their sizes differ by at most one, so there is no small last batch
/// whose records would have a large weight. The order depends only on the seed and the epoch.
///
/// If the data come in blocks ([`in_blocks`](Self::in_blocks)), an epoch visits the blocks in random order, and the
/// records within each block in random order. Over all these orders, every record is equally likely to be in a batch,
/// so gradients remain unbiased. However, all records of a batch come from one block, so the gradient of the batch
/// varies more if the blocks differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batches {
    seed: u64,
    records: usize,
    count: usize,
    /// The first record of each block, followed by N. The list is empty if there are no blocks.
    blocks: Arc<[u32]>,
}

const ORDER: rng::Purpose = rng::Purpose::new("blackbox").fold("records").fold("order");

impl Batches {
    /// Divides `records` records into batches of at most `batch` records.
    ///
    /// # Errors
    /// Fails with [`RecordError::NoRecords`] if there are no records, or with [`RecordError::Batch`] if the batch size
    /// is invalid.
    pub fn new(seed: u64, records: usize, batch: usize) -> Result<Self, RecordError> {
        if records == 0 {
            return Err(RecordError::NoRecords);
        }
        if batch == 0 || batch > records {
            return Err(RecordError::Batch { batch, records });
        }
        Ok(Self {
            seed,
            records,
            count: records.div_ceil(batch),
            blocks: Arc::default(),
        })
    }

    /// Orders the batches by blocks, if the data come in blocks.
    pub fn in_blocks(self, blocks: Option<&[u32]>) -> Self {
        Self {
            blocks: blocks.unwrap_or_default().into(),
            ..self
        }
    }

    /// Returns the number N of records.
    pub fn records(&self) -> usize {
        self.records
    }

    /// Returns the number of batches in an epoch.
    pub fn per_epoch(&self) -> usize {
        self.count
    }

    /// Returns the epoch that contains an iteration, and the position of the iteration within this epoch. Iterations
    /// are counted from 1, and epochs from 0.
    pub fn position(&self, iteration: u64) -> (u64, usize) {
        let count = self.count as u64;
        let t = iteration.saturating_sub(1);
        (t / count, (t % count) as usize)
    }

    /// Returns the range of positions that batch `k` occupies in the order of an epoch.
    pub fn range(&self, k: usize) -> Range<usize> {
        let edge = |k: usize| (k as u128 * self.records as u128 / self.count as u128) as usize;
        edge(k)..edge(k + 1)
    }

    /// Returns the order of the records in an epoch.
    pub fn order(&self, epoch: u64) -> Vec<u32> {
        let mut order = Order::default();
        let mut all = Vec::with_capacity(self.records);
        order.extend(self, epoch, 0..self.records, &mut all);
        all
    }

    fn shuffled(&self, epoch: u64, lane: u64, range: Range<u32>) -> Vec<u32> {
        let mut order: Vec<u32> = range.collect();
        rng::Stream::new(self.seed, ORDER, epoch, lane).shuffle(&mut order);
        order
    }
}

/// The current order of the records. The order is not part of the stored state. It is recomputed when the epoch or the
/// block changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    epoch: Option<u64>,
    /// The blocks of the epoch in order, each with its offset in the epoch. Without blocks, all records form a single
    /// block.
    sequence: Vec<u32>,
    starts: Vec<usize>,
    block: Option<usize>,
    order: Vec<u32>,
    iteration: Option<u64>,
    batch: Vec<u32>,
}

impl Order {
    pub(crate) fn batch(&mut self, batches: &Batches, iteration: u64) -> &[u32] {
        if self.iteration != Some(iteration) {
            let (epoch, k) = batches.position(iteration);
            let mut batch = std::mem::take(&mut self.batch);
            batch.clear();
            self.extend(batches, epoch, batches.range(k), &mut batch);
            (self.iteration, self.batch) = (Some(iteration), batch);
        }
        &self.batch
    }

    fn extend(
        &mut self,
        batches: &Batches,
        epoch: u64,
        positions: Range<usize>,
        batch: &mut Vec<u32>,
    ) {
        let edges = |block: u32| match batches.blocks.get(block as usize..block as usize + 2) {
            Some(&[first, end]) => first..end,
            _ => 0..batches.records as u32,
        };
        if self.epoch != Some(epoch) {
            let blocks = batches.blocks.len().saturating_sub(1) as u32;
            self.sequence = match blocks {
                0 => vec![0],
                _ => batches.shuffled(epoch, u64::MAX, 0..blocks),
            };
            self.starts = vec![0];
            for &block in &self.sequence {
                let start = self.starts[self.starts.len() - 1];
                self.starts.push(start + edges(block).len());
            }
            (self.epoch, self.block) = (Some(epoch), None);
        }
        let mut at = positions.start;
        while at < positions.end {
            let position = self.starts.partition_point(|start| *start <= at) - 1;
            if self.block != Some(position) {
                let block = self.sequence[position];
                self.order = batches.shuffled(epoch, u64::from(block), edges(block));
                self.block = Some(position);
            }
            let start = self.starts[position];
            let end = self.starts[position + 1].min(positions.end);
            batch.extend_from_slice(&self.order[at - start..end - start]);
            at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_visits_every_record_once_in_even_batches() {
        for (records, batch) in [(10, 3), (690, 5), (169_405, 100), (7, 7), (5, 1)] {
            let batches = Batches::new(3, records, batch).unwrap();
            let mut seen = vec![0; records];
            let mut order = Order::default();
            let epoch = batches.per_epoch() as u64;
            let mut sizes = Vec::new();
            for iteration in epoch + 1..=2 * epoch {
                let batch = order.batch(&batches, iteration);
                sizes.push(batch.len());
                batch.iter().for_each(|&n| seen[n as usize] += 1);
            }
            assert!(seen.iter().all(|&count| count == 1));
            let (min, max) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            assert!(*max <= batch && max - min <= 1, "{min} to {max}");
        }
        let batches = Batches::new(3, 100, 10).unwrap();
        assert_ne!(batches.order(0), batches.order(1));
        assert_eq!(batches.order(4), batches.order(4));
    }

    #[test]
    fn blocks_are_visited_one_after_the_other() {
        let blocks = [0, 40, 75, 75, 120, 200];
        let batches = Batches::new(3, 200, 9).unwrap().in_blocks(Some(&blocks));
        let block_of = |n: u32| blocks.partition_point(|first| *first <= n) - 1;
        let mut sequences = Vec::new();
        for epoch in 0..3 {
            let order = batches.order(epoch);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..200).collect::<Vec<u32>>());
            let mut sequence: Vec<usize> = order.iter().map(|n| block_of(*n)).collect();
            sequence.dedup();
            assert_eq!(sequence.len(), 4, "no block is come back to: {sequence:?}");
            sequences.push(sequence);
            // The order does not depend on the batch with which the computation starts.
            let mut by_batch = Order::default();
            let per_epoch = batches.per_epoch();
            for k in (0..per_epoch).rev() {
                let iteration = epoch * per_epoch as u64 + k as u64 + 1;
                assert_eq!(
                    by_batch.batch(&batches, iteration),
                    &order[batches.range(k)]
                );
            }
        }
        assert!(sequences[0] != sequences[1] || sequences[1] != sequences[2]);
    }

    #[test]
    fn every_record_is_as_likely_in_a_batch_as_any_other() {
        // The test draws the first batch for 20 000 seeds. A batch has 8 of 24 records, which come in blocks of
        // different sizes.
        let blocks = [0, 4, 10, 24];
        let mut seen = [0_u32; 24];
        for seed in 0..20_000 {
            let batches = Batches::new(seed, 24, 8).unwrap().in_blocks(Some(&blocks));
            let order = batches.order(0);
            // Any batch of the epoch is equally likely to be the tested one.
            let k = seed as usize % 3;
            order[batches.range(k)]
                .iter()
                .for_each(|n| seen[*n as usize] += 1);
        }
        // Each record is expected in a third of the batches. The standard deviation of its count is below 70.
        let expected = 20_000.0 / 3.0;
        assert!(
            seen.iter()
                .all(|count| (f64::from(*count) - expected).abs() < 5.0 * 70.0),
            "{seen:?}"
        );
    }

    #[test]
    fn wrong_sizes_are_refused() {
        assert_eq!(Batches::new(0, 0, 1), Err(RecordError::NoRecords));
        for batch in [0, 11] {
            let error = Batches::new(0, 10, batch).unwrap_err();
            assert_eq!(error, RecordError::Batch { batch, records: 10 });
        }
    }
}
