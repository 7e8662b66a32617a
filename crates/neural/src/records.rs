//! Sources of records, and the minibatches of training.

use jensen_math::rng::{Purpose, permutation};
use rayon::prelude::*;

/// Records of equal width that can be read one at a time, in any order.
///
/// This crate implements the trait for records in memory. Other crates implement it for memory-mapped files. Reading
/// the same record twice must give the same values.
pub trait Records: Sync {
    /// Returns the number of records.
    fn len(&self) -> usize;

    /// Returns the number of values of each record.
    fn width(&self) -> usize;

    /// Writes record `index` to `out`, which has `width` elements.
    fn read(&self, index: usize, out: &mut [f32]);

    /// Whether there are no records.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

pub(crate) fn gather(
    records: &dyn Records,
    indices: impl Iterator<Item = usize>,
    out: &mut Vec<f32>,
) {
    let width = records.width().max(1);
    let indices: Vec<usize> = indices.collect();
    out.resize(indices.len() * width, 0.0);
    out.par_chunks_mut(TOGETHER * width)
        .zip(indices.par_chunks(TOGETHER))
        .for_each(|(out, indices)| {
            for (out, &index) in out.chunks_mut(width).zip(indices) {
                records.read(index, out);
            }
        });
}

const TOGETHER: usize = 25;

/// Records that are stored as bytes with a common scale. For example, grey levels with `scale = 1 / 255` are between 0
/// and 1.
#[derive(Clone, Debug)]
pub struct ByteRecords<B> {
    /// The bytes of all records, one record after another.
    pub bytes: B,
    /// Number of values of each record.
    pub width: usize,
    /// The factor by which every byte is multiplied.
    pub scale: f32,
}

impl<B: AsRef<[u8]> + Sync> Records for ByteRecords<B> {
    fn len(&self) -> usize {
        self.bytes.as_ref().len() / self.width.max(1)
    }

    fn width(&self) -> usize {
        self.width
    }

    fn read(&self, index: usize, out: &mut [f32]) {
        let record = &self.bytes.as_ref()[index * self.width..][..self.width];
        for (x, &byte) in out.iter_mut().zip(record) {
            *x = f32::from(byte) * self.scale;
        }
    }
}

/// Records that are stored as single-precision numbers.
#[derive(Clone, Debug)]
pub struct FloatRecords<B> {
    /// The values of all records, one record after another.
    pub values: B,
    /// Number of values of each record.
    pub width: usize,
}

impl<B: AsRef<[f32]> + Sync> Records for FloatRecords<B> {
    fn len(&self) -> usize {
        self.values.as_ref().len() / self.width.max(1)
    }

    fn width(&self) -> usize {
        self.width
    }

    fn read(&self, index: usize, out: &mut [f32]) {
        out.copy_from_slice(&self.values.as_ref()[index * self.width..][..self.width]);
    }
}

/// A subset of the records of another source.
pub struct Selection<'a> {
    /// The source from which the records are selected.
    pub records: &'a dyn Records,
    /// The indices of the selected records, in order.
    pub indices: Vec<usize>,
}

impl Records for Selection<'_> {
    fn len(&self) -> usize {
        self.indices.len()
    }

    fn width(&self) -> usize {
        self.records.width()
    }

    fn read(&self, index: usize, out: &mut [f32]) {
        self.records.read(self.indices[index], out);
    }
}

const ORDER: Purpose = Purpose::new("neural order");

/// Minibatches that are reshuffled in every pass. A pass reads every record once, and its last minibatch may be
/// shorter.
pub(crate) struct Minibatches<'a> {
    pub data: &'a dyn Records,
    pub batch: usize,
    pub seed: u64,
    order: Option<(u64, Vec<usize>)>,
    /// The values of the current minibatch, one record after another.
    pub values: Vec<f32>,
}

impl<'a> Minibatches<'a> {
    pub(crate) fn new(data: &'a dyn Records, batch: usize, seed: u64) -> Self {
        Self {
            data,
            batch,
            seed,
            order: None,
            values: Vec::new(),
        }
    }

    pub(crate) fn per_pass(&self) -> u64 {
        self.data.len().div_ceil(self.batch) as u64
    }

    /// Reads minibatch number `t`, where the first minibatch has the number 0. Returns the indices of its records.
    pub(crate) fn read(&mut self, t: u64) -> Vec<usize> {
        let per_pass = self.per_pass();
        let (pass, position) = (t / per_pass, (t % per_pass) as usize);
        if self.order.as_ref().is_none_or(|(known, _)| *known != pass) {
            self.order = Some((pass, permutation(self.seed, ORDER, pass, self.data.len())));
        }
        let order = self.order.as_ref().map_or(&[][..], |(_, order)| order);
        let start = position * self.batch;
        let chosen = &order[start..(start + self.batch).min(order.len())];
        gather(self.data, chosen.iter().copied(), &mut self.values);
        chosen.to_vec()
    }
}
