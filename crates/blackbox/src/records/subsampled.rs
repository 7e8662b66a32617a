//! Doubly stochastic evaluation, which samples from the approximation as well as from the data (section 3.2 of the
//! TrustVI paper).
//!
//! Each independent observation in an estimate is an antithetic pair of draws with its own minibatch of records. The
//! minibatch is the same at both ends of an assessed step. The jackknife, the variances in Inequalities 11 and 13 and
//! the standard errors of the stopping rule therefore include the subsampling noise, although their formulas are
//! unchanged. Larger samples use more records as well as more draws.
//!
//! A minibatch has one record from each of B equal parts of the data. In part b, the record `⌊(b + u) N/B⌋` is chosen,
//! with an independent uniform u. The expected count of every record is B/N, so `log p(z) + N/B Σ log p(xₙ | z)` is an
//! unbiased estimate of the log density. With an [`Expansion`] of the likelihood, the estimate has the same expectation
//! and less noise.

use std::sync::{Arc, Mutex, PoisonError};

use jensen_density::{Lanes, LanesMut, LogDensity, RecordDensity, TwiceDifferentiable};
use jensen_run::SettingError;

use super::expansion::Expansion;
use crate::noise::{NoisePurpose, NoiseSource};
use crate::oracle::Stream;

#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamPosition {
    pub stream: Stream,
    pub first: usize,
    pub layout: Layout,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Layout {
    Blocks(usize),
    /// A lane of the first half and the corresponding lane of the second half belong to the same observation.
    Halves,
}

/// A density whose values depend on random records, which the caller selects before each batch.
///
/// The algorithms call [`choose`](Self::choose) before every batch. Densities that depend only on their argument ignore
/// this call.
pub(crate) trait Choose: Sync {
    fn choose(&self, position: StreamPosition);

    /// Expands the likelihood around a point, which reduces the noise of the batches that follow.
    fn expand(&self, point: &[f64]);

    /// Returns the number of batches in a pass over all records, rounded up.
    fn batches(&self) -> u64;
}

/// A model of records in which every pair of draws has its own minibatch.
///
/// Only TrustVI can use such a model as a density, because only TrustVI selects the minibatches.
pub struct Subsampled<D: RecordDensity> {
    density: D,
    batch: usize,
    position: Mutex<StreamPosition>,
    expansion: Mutex<Option<Arc<Expansion>>>,
}

/// The scratch memory of [`Subsampled`].
pub struct SubsampledWorkspace<W> {
    inner: W,
    /// The index of the record in slot b at lane l, stored at `b · lanes + l`.
    records: Vec<u32>,
    at: Vec<f64>,
    values: Vec<f64>,
    part: Vec<f64>,
    control: Control,
}

/// The control variate of each lane: the expansion of all records minus the weighted expansion of the lane's batch.
#[derive(Default)]
struct Control {
    centre: Vec<f64>,
    shift: Vec<f64>,
    product: Vec<f64>,
    slope: Vec<f64>,
    own: Vec<f64>,
    values: Vec<f64>,
    grad: Vec<f64>,
}

impl<D: RecordDensity> Subsampled<D> {
    /// Creates a density with minibatches of `batch` records. The random streams of `source` select the records.
    ///
    /// # Errors
    /// Fails if there are no records, or if `batch` is zero or exceeds the number of records.
    pub fn new(density: D, batch: usize, source: NoiseSource) -> Result<Self, SettingError> {
        let records = density.records();
        if records == 0 || batch == 0 || batch > records {
            return Err(SettingError::new(format!(
                "the batch size is {batch}, but must be from 1 to {records}, the number of records"
            )));
        }
        Ok(Self {
            density,
            batch,
            position: Mutex::new(StreamPosition {
                stream: Stream {
                    source,
                    purpose: NoisePurpose::Final,
                    iteration: 0,
                },
                first: 0,
                layout: Layout::Blocks(1),
            }),
            expansion: Mutex::new(None),
        })
    }

    /// Expands the likelihood of all records around a point. Until the next expansion, all evaluations use it as a control
    /// variate. Its cost is a gradient and d Hessian-vector products of all records.
    pub fn expand(&self, point: &[f64]) {
        let mut own = self
            .expansion
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if own.as_ref().is_none_or(|known| known.point != point) {
            *own = Some(Arc::new(Expansion::around(&self.density, point)));
        }
    }

    fn expansion(&self) -> Option<Arc<Expansion>> {
        let expansion = self.expansion.lock();
        let expansion = expansion.unwrap_or_else(PoisonError::into_inner).clone();
        expansion.filter(|expansion| expansion.is_finite())
    }

    /// Computes the control variate of each lane at z, and its gradient.
    fn control(&self, ws: &mut SubsampledWorkspace<D::Workspace>, z: Lanes<'_>, at: &Expansion) {
        let (d, lanes, weight) = (self.dim(), z.lanes(), self.weight());
        let SubsampledWorkspace {
            inner,
            records,
            control,
            ..
        } = ws;
        let Control {
            centre,
            shift,
            product,
            slope,
            own,
            values,
            grad,
        } = control;
        centre.clear();
        centre.extend((at.point.iter()).flat_map(|x| std::iter::repeat_n(*x, lanes)));
        shift.clear();
        shift.extend(z.as_slice().iter().zip(&*centre).map(|(z, c)| z - c));
        for buffer in [&mut *product, slope, grad] {
            buffer.resize(d * lanes, 0.0);
        }
        own.resize(lanes, 0.0);
        values.resize(lanes, 0.0);
        at.of_all(shift, lanes, values, grad);
        let (centre, moved) = (Lanes::new(centre, d, lanes), Lanes::new(shift, d, lanes));
        for records in records.chunks(lanes) {
            let into = LanesMut::new(slope, d, lanes);
            self.density
                .paired_value_grad(inner, records, centre, own, into);
            let into = LanesMut::new(product, d, lanes);
            self.density.paired_hvp(inner, records, centre, moved, into);
            let rows = slope.chunks_exact_mut(lanes).zip(shift.chunks_exact(lanes));
            for ((slope, shift), product) in rows.zip(product.chunks_exact(lanes)) {
                for (((g, s), p), value) in slope.iter_mut().zip(shift).zip(product).zip(&mut *own)
                {
                    *value += s * (*g + 0.5 * p);
                    *g += p;
                }
            }
            add(-weight, own, values);
            add(-weight, slope, grad);
        }
    }

    /// Adds the control variate at z to values, and its gradient to `grad`.
    fn add_control(
        &self,
        ws: &mut SubsampledWorkspace<D::Workspace>,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: Option<&mut [f64]>,
    ) {
        let Some(expansion) = self.expansion() else {
            return;
        };
        self.control(ws, z, &expansion);
        add(1.0, &ws.control.values, out);
        if let Some(grad) = grad {
            add(1.0, &ws.control.grad, grad);
        }
    }

    fn weight(&self) -> f64 {
        self.density.records() as f64 / self.batch as f64
    }

    fn pick(&self, lanes: usize, out: &mut Vec<u32>) {
        let position = *self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let observations = match position.layout {
            Layout::Blocks(width) => lanes.div_ceil(width.max(1)),
            Layout::Halves => lanes.div_ceil(2),
        };
        let mut u = vec![0.0; self.batch * observations];
        let Stream {
            source,
            purpose,
            iteration,
        } = position.stream;
        source.choices(
            purpose,
            iteration,
            position.first as u64,
            observations,
            &mut u,
        );
        let (width, last) = (self.weight(), self.density.records() as u32 - 1);
        out.clear();
        for (b, row) in u.chunks(observations.max(1)).enumerate() {
            out.extend((0..lanes).map(|lane| {
                let at = match position.layout {
                    Layout::Blocks(width) => lane / width.max(1),
                    Layout::Halves => lane % observations,
                };
                (((b as f64 + row[at]) * width) as u32).min(last)
            }));
        }
    }
}

impl<D: RecordDensity> Choose for Subsampled<D> {
    fn choose(&self, position: StreamPosition) {
        *self.position.lock().unwrap_or_else(PoisonError::into_inner) = position;
    }

    fn expand(&self, point: &[f64]) {
        Self::expand(self, point);
    }

    fn batches(&self) -> u64 {
        self.density.records().div_ceil(self.batch) as u64
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
            control: Control::default(),
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
        self.add_control(ws, z, out, None);
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
        self.add_control(ws, z, out, Some(grad.as_mut_slice()));
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
        let Some(expansion) = self.expansion() else {
            return;
        };
        let part = &mut ws.part[..size];
        expansion.product(v.as_slice(), lanes, part);
        add(1.0, part, out.as_mut_slice());
        let centre = &mut ws.control.centre;
        centre.clear();
        centre.extend((expansion.point.iter()).flat_map(|x| std::iter::repeat_n(*x, lanes)));
        let centre = Lanes::new(centre, self.dim(), lanes);
        for records in ws.records.chunks(lanes) {
            let matrix = LanesMut::new(part, self.dim(), lanes);
            self.density
                .paired_hvp(&mut ws.inner, records, centre, v, matrix);
            add(-self.weight(), part, out.as_mut_slice());
        }
    }
}
