//! Doubly stochastic evaluation: the data are subsampled as the approximation is (section 3.2 of the paper).
//!
//! Every independent observation of an estimate, which is a mirrored pair of draws, comes with a minibatch of records of
//! its own, the same at both ends of an assessed step. So the jackknife, the variance that Inequalities 11 and 13 ask for
//! and the standard errors of the stopping rule include the noise of subsampling as they stand, and samples that
//! grow visit more records as well as more draws.
//!
//! A minibatch takes one record from each of B equal parts of the data: record `⌊(b + u) N/B⌋` for part b with a uniform u
//! of its own. Every record is expected B/N times, so that `log p(z) + N/B Σ log p(xₙ | z)` is unbiased for the log
//! density.

use std::sync::{Mutex, PoisonError};

use jensen_density::{Lanes, LanesMut, LogDensity, RecordDensity, TwiceDifferentiable};

use crate::noise::{NoisePurpose, NoiseSource};
use crate::oracle::Stream;

/// Which observation of a stream the lanes of the next evaluations belong to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamPosition {
    pub stream: Stream,
    /// The first observation.
    pub first: usize,
    pub layout: Layout,
}

/// How observations lie in lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Layout {
    /// So many neighbouring lanes are one.
    Blocks(usize),
    /// Lane l of the first half and lane l of the second are one.
    Halves,
}

/// A density whose values depend on records drawn at random, and is told which.
///
/// The algorithms call it before every batch; densities that depend on their argument alone need no such thing.
pub(crate) trait Choose: Sync {
    /// From now on evaluations are at `place`.
    fn choose(&self, place: StreamPosition);
}

/// A model of records of which every pair of draws sees a minibatch.
///
/// It is a density to TrustVI alone, which names the minibatches.
pub struct Subsampled<D: RecordDensity> {
    density: D,
    batch: usize,
    place: Mutex<StreamPosition>,
}

/// Scratch memory of [`Subsampled`].
pub struct SubsampledWorkspace<W> {
    inner: W,
    /// Record of slot b at lane l: entry `b · lanes + l`.
    records: Vec<u32>,
    /// The draws of a linearisation.
    at: Vec<f64>,
    values: Vec<f64>,
    part: Vec<f64>,
}

impl<D: RecordDensity> Subsampled<D> {
    /// Minibatches of `batch` records, from the streams of `source`.
    ///
    /// # Errors
    /// One sentence where there are no records or `batch` is not between one and their number.
    pub fn new(density: D, batch: usize, source: NoiseSource) -> Result<Self, String> {
        let records = density.records();
        if records == 0 || batch == 0 || batch > records {
            return Err(format!(
                "a batch of {batch} of {records} records: it must have at least one and no more than there are"
            ));
        }
        Ok(Self {
            density,
            batch,
            place: Mutex::new(StreamPosition {
                stream: Stream {
                    source,
                    purpose: NoisePurpose::Final,
                    iteration: 0,
                },
                first: 0,
                layout: Layout::Blocks(1),
            }),
        })
    }

    /// N/B.
    fn weight(&self) -> f64 {
        self.density.records() as f64 / self.batch as f64
    }

    /// The records of the present place, slot by slot.
    fn pick(&self, lanes: usize, out: &mut Vec<u32>) {
        let place = *self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let observations = match place.layout {
            Layout::Blocks(width) => lanes.div_ceil(width.max(1)),
            Layout::Halves => lanes.div_ceil(2),
        };
        let mut u = vec![0.0; self.batch * observations];
        let Stream {
            source,
            purpose,
            iteration,
        } = place.stream;
        source.choices(purpose, iteration, place.first as u64, observations, &mut u);
        let (width, last) = (self.weight(), self.density.records() as u32 - 1);
        out.clear();
        for (b, row) in u.chunks(observations.max(1)).enumerate() {
            out.extend((0..lanes).map(|lane| {
                let at = match place.layout {
                    Layout::Blocks(width) => lane / width.max(1),
                    Layout::Halves => lane % observations,
                };
                (((b as f64 + row[at]) * width) as u32).min(last)
            }));
        }
    }
}

impl<D: RecordDensity> Choose for Subsampled<D> {
    fn choose(&self, place: StreamPosition) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }
}

fn add(weight: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += weight * x;
    }
}

impl<D: RecordDensity> LogDensity for Subsampled<D> {
    type Workspace = SubsampledWorkspace<D::Workspace>;

    fn dim(&self) -> usize {
        self.density.dim()
    }

    fn workspace(&self, lanes: usize) -> Self::Workspace {
        SubsampledWorkspace {
            inner: self.density.workspace(lanes, 1),
            records: Vec::new(),
            at: Vec::new(),
            values: Vec::new(),
            part: Vec::new(),
        }
    }

    fn value(&self, ws: &mut Self::Workspace, z: Lanes<'_>, out: &mut [f64]) {
        let lanes = z.lanes();
        self.pick(lanes, &mut ws.records);
        self.density.prior_value(&mut ws.inner, z, out);
        ws.values.resize(lanes, 0.0);
        for records in ws.records.chunks(lanes) {
            self.density
                .paired_value(&mut ws.inner, records, z, &mut ws.values[..lanes]);
            add(self.weight(), &ws.values[..lanes], out);
        }
    }

    fn value_grad(
        &self,
        ws: &mut Self::Workspace,
        z: Lanes<'_>,
        out: &mut [f64],
        mut grad: LanesMut<'_>,
    ) {
        let (lanes, size) = (z.lanes(), z.lanes() * self.dim());
        self.pick(lanes, &mut ws.records);
        self.density
            .prior_value_grad(&mut ws.inner, z, out, grad.reborrow());
        ws.values.resize(lanes, 0.0);
        ws.part.resize(size, 0.0);
        for records in ws.records.chunks(lanes) {
            let (values, part) = (&mut ws.values[..lanes], &mut ws.part[..size]);
            let matrix = LanesMut::new(part, self.dim(), lanes);
            self.density
                .paired_value_grad(&mut ws.inner, records, z, values, matrix);
            add(self.weight(), values, out);
            add(self.weight(), part, grad.as_mut_slice());
        }
    }
}

impl<D: RecordDensity> TwiceDifferentiable for Subsampled<D> {
    fn linearize(&self, ws: &mut Self::Workspace, z: Lanes<'_>) {
        self.pick(z.lanes(), &mut ws.records);
        ws.at.clear();
        ws.at.extend_from_slice(z.as_slice());
    }

    fn apply(&self, ws: &mut Self::Workspace, v: Lanes<'_>, mut out: LanesMut<'_>) {
        let (lanes, size) = (v.lanes(), v.lanes() * self.dim());
        let z = Lanes::new(&ws.at, self.dim(), lanes);
        self.density.prior_hvp(&mut ws.inner, z, v, out.reborrow());
        ws.part.resize(size, 0.0);
        for records in ws.records.chunks(lanes) {
            let part = &mut ws.part[..size];
            let matrix = LanesMut::new(part, self.dim(), lanes);
            self.density
                .paired_hvp(&mut ws.inner, records, z, v, matrix);
            add(self.weight(), part, out.as_mut_slice());
        }
    }
}
