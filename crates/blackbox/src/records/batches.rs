//! Reshuffled epochs of minibatches.

use std::ops::Range;

use jensen_math::rng;

use super::RecordError;

/// The minibatches of N records: every epoch visits every record once, in an order of its own.
///
/// There are ⌈N/B⌉ batches whose sizes differ by one at most, so that no batch is a small rest with
/// a large weight; none has more than B records. The order depends on the seed and the epoch alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batches {
    seed: u64,
    records: usize,
    count: usize,
}

const ORDER: rng::Purpose = rng::Purpose::new("blackbox").fold("records").fold("order");

impl Batches {
    /// Batches of at most `batch` of `records` records.
    ///
    /// # Errors
    /// [`RecordError::NoRecords`] and [`RecordError::Batch`].
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
        })
    }

    /// N.
    pub fn records(&self) -> usize {
        self.records
    }

    /// Batches an epoch.
    pub fn per_epoch(&self) -> usize {
        self.count
    }

    /// The epoch (from 0) of an iteration (from 1), and its place there.
    pub fn place(&self, iteration: u64) -> (u64, usize) {
        let count = self.count as u64;
        let t = iteration.saturating_sub(1);
        (t / count, (t % count) as usize)
    }

    /// The places in an epoch's order that batch `k` holds.
    pub fn range(&self, k: usize) -> Range<usize> {
        let edge = |k: usize| (k as u128 * self.records as u128 / self.count as u128) as usize;
        edge(k)..edge(k + 1)
    }

    /// The order of an epoch.
    pub fn order(&self, epoch: u64) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.records as u32).collect();
        rng::Stream::new(self.seed, ORDER, epoch, 0).shuffle(&mut order);
        order
    }
}

/// The present epoch's order, made again when the epoch changes: scratch, not state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    epoch: Option<u64>,
    order: Vec<u32>,
}

impl Order {
    /// The batch of an iteration.
    pub(crate) fn batch(&mut self, batches: &Batches, iteration: u64) -> &[u32] {
        let (epoch, k) = batches.place(iteration);
        if self.epoch != Some(epoch) {
            self.order = batches.order(epoch);
            self.epoch = Some(epoch);
        }
        &self.order[batches.range(k)]
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
    fn wrong_sizes_are_refused() {
        assert_eq!(Batches::new(0, 0, 1), Err(RecordError::NoRecords));
        for batch in [0, 11] {
            let error = Batches::new(0, 10, batch).unwrap_err();
            assert_eq!(error, RecordError::Batch { batch, records: 10 });
        }
    }
}
