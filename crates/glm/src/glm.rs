//! Combines features, a link and a prior into one density.

use jensen_density::{
    Lanes, LanesMut, LinearPredictor, LinkExpectations, PredictorScratch, RecordDensity,
};

use crate::{Features, Link, Prior, ShapeError};

/// A generalised linear model of records. Predictor k of record n is `Σ_p x_np z[o + p·K + k]`. The coefficients begin
/// at offset o. The coordinates before this offset belong only to the prior.
///
/// Values include all normalising constants. For a batch of B records, each product with the features takes `2·B·P·K`
/// flops per lane. For sparse features, P in this formula is the number of non-zero entries in a row.
#[derive(Debug)]
pub struct Glm<P> {
    features: Features,
    link: Link,
    prior: P,
    offset: usize,
}

impl<P: Prior> Glm<P> {
    /// Creates a model whose coefficients are the last coordinates of the prior.
    ///
    /// # Errors
    /// Fails if there are not as many outcomes as rows of features, or if the prior has too few coordinates.
    pub fn new(features: Features, link: Link, prior: P) -> Result<Self, ShapeError> {
        if features.rows() != link.records() {
            return Err(ShapeError(format!(
                "{} rows of features but {} outcomes",
                features.rows(),
                link.records()
            )));
        }
        let coefficients = features.columns() * link.width();
        let Some(offset) = prior.dim().checked_sub(coefficients) else {
            return Err(ShapeError(format!(
                "the prior has {} coordinates for {coefficients} coefficients",
                prior.dim()
            )));
        };
        Ok(Self {
            features,
            link,
            prior,
            offset,
        })
    }

    /// Returns the rows of features.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Returns the likelihood of the outcomes given the predictors.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Returns the dense rows of the batch, which are gathered into `scratch` if they are not there yet.
    fn gathered<'s>(&self, scratch: &'s mut PredictorScratch, batch: &[u32]) -> &'s [f64] {
        if let Features::Dense(dense) = &self.features
            && scratch.batch != batch
        {
            dense.gather(batch, &mut scratch.values);
            scratch.batch.clear();
            scratch.batch.extend_from_slice(batch);
        }
        &scratch.values
    }
}

/// Scratch memory of a [`Glm`].
#[derive(Clone, Debug, Default)]
pub struct GlmWorkspace {
    scratch: PredictorScratch,
    eta: Vec<f64>,
    direction: Vec<f64>,
    rest: Vec<f64>,
    point: Vec<f64>,
    part: Vec<f64>,
    second: Vec<f64>,
}

impl<P: Prior> LinearPredictor for Glm<P> {
    fn width(&self) -> usize {
        self.link.width()
    }

    fn project(
        &self,
        scratch: &mut PredictorScratch,
        batch: &[u32],
        z: Lanes<'_>,
        mut eta: LanesMut<'_>,
    ) {
        let lanes = z.lanes();
        let width = self.width() * lanes;
        let gathered = self.gathered(scratch, batch);
        let coefficients = &z.as_slice()[self.offset * lanes..];
        self.features
            .times(gathered, batch, coefficients, width, eta.as_mut_slice());
    }

    fn adjoint(
        &self,
        scratch: &mut PredictorScratch,
        batch: &[u32],
        r: Lanes<'_>,
        mut out: LanesMut<'_>,
    ) {
        let lanes = r.lanes();
        let width = self.width() * lanes;
        let gathered = self.gathered(scratch, batch);
        let coefficients = &mut out.as_mut_slice()[self.offset * lanes..];
        self.features
            .transposed_times(gathered, batch, r.as_slice(), width, coefficients);
    }

    fn link_value(&self, batch: &[u32], eta: Lanes<'_>, out: &mut [f64]) {
        self.link.value(batch, eta, out);
    }

    fn link_gradient(&self, batch: &[u32], eta: Lanes<'_>, out: LanesMut<'_>) {
        self.link.gradient(batch, eta, out);
    }

    fn link_curvature(&self, _: &[u32], eta: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>) {
        self.link.curvature(eta, v, out);
    }

    fn expectations(&self) -> Option<&dyn LinkExpectations> {
        (self.width() == 1).then_some(self)
    }
}

impl<P: Prior> LinkExpectations for Glm<P> {
    fn project_squares(
        &self,
        scratch: &mut PredictorScratch,
        batch: &[u32],
        s: &[f64],
        variance: &mut [f64],
    ) {
        let gathered = self.gathered(scratch, batch);
        self.features
            .squares_times(gathered, batch, &s[self.offset..], variance);
    }

    fn adjoint_squares(
        &self,
        scratch: &mut PredictorScratch,
        batch: &[u32],
        r: &[f64],
        out: &mut [f64],
    ) {
        let gathered = self.gathered(scratch, batch);
        let out = &mut out[self.offset..];
        self.features
            .transposed_squares_times(gathered, batch, r, out);
    }

    fn link_expectation(
        &self,
        batch: &[u32],
        mean: &[f64],
        variance: &[f64],
        gradient: &mut [f64],
        curvature: &mut [f64],
    ) {
        self.link
            .expectation(batch, mean, variance, gradient, curvature);
    }
}

impl<P: Prior> RecordDensity for Glm<P> {
    type Workspace = GlmWorkspace;

    fn dim(&self) -> usize {
        self.prior.dim()
    }

    fn records(&self) -> usize {
        self.link.records()
    }

    fn workspace(&self, _lanes: usize, _batch: usize) -> GlmWorkspace {
        GlmWorkspace::default()
    }

    fn prior_value(&self, _: &mut GlmWorkspace, z: Lanes<'_>, out: &mut [f64]) {
        self.prior.value(z, out);
    }

    fn prior_value_grad(
        &self,
        _: &mut GlmWorkspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        self.prior.value_grad(z, out, grad);
    }

    fn prior_hvp(&self, _: &mut GlmWorkspace, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>) {
        self.prior.hvp(z, v, out);
    }

    fn batch_value(&self, ws: &mut GlmWorkspace, batch: &[u32], z: Lanes<'_>, out: &mut [f64]) {
        let (rows, lanes) = (batch.len() * self.width(), z.lanes());
        ws.eta.resize(rows * lanes, 0.0);
        let eta = LanesMut::new(&mut ws.eta, rows, lanes);
        self.project(&mut ws.scratch, batch, z, eta);
        self.link_value(batch, Lanes::new(&ws.eta, rows, lanes), out);
    }

    fn batch_value_grad(
        &self,
        ws: &mut GlmWorkspace,
        batch: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        mut grad: LanesMut<'_>,
    ) {
        self.batch_value(ws, batch, z, out);
        let (rows, lanes) = (batch.len() * self.width(), z.lanes());
        ws.rest.resize(rows * lanes, 0.0);
        let rest = LanesMut::new(&mut ws.rest, rows, lanes);
        self.link_gradient(batch, Lanes::new(&ws.eta, rows, lanes), rest);
        grad.as_mut_slice().fill(0.0);
        self.adjoint(
            &mut ws.scratch,
            batch,
            Lanes::new(&ws.rest, rows, lanes),
            grad,
        );
    }

    fn batch_hvp(
        &self,
        ws: &mut GlmWorkspace,
        batch: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        mut out: LanesMut<'_>,
    ) {
        let (rows, lanes) = (batch.len() * self.width(), z.lanes());
        for buffer in [&mut ws.eta, &mut ws.direction, &mut ws.rest] {
            buffer.resize(rows * lanes, 0.0);
        }
        let eta = LanesMut::new(&mut ws.eta, rows, lanes);
        self.project(&mut ws.scratch, batch, z, eta);
        let direction = LanesMut::new(&mut ws.direction, rows, lanes);
        self.project(&mut ws.scratch, batch, v, direction);
        self.link_curvature(
            batch,
            Lanes::new(&ws.eta, rows, lanes),
            Lanes::new(&ws.direction, rows, lanes),
            LanesMut::new(&mut ws.rest, rows, lanes),
        );
        out.as_mut_slice().fill(0.0);
        let rest = Lanes::new(&ws.rest, rows, lanes);
        self.adjoint(&mut ws.scratch, batch, rest, out);
    }

    fn paired_value(&self, ws: &mut GlmWorkspace, records: &[u32], z: Lanes<'_>, out: &mut [f64]) {
        let mut point = std::mem::take(&mut ws.point);
        point.resize(self.dim(), 0.0);
        for (l, n) in records.iter().enumerate() {
            z.copy_lane(l, &mut point);
            let z = Lanes::new(&point, point.len(), 1);
            self.batch_value(ws, std::slice::from_ref(n), z, &mut out[l..=l]);
        }
        ws.point = point;
    }

    fn paired_value_grad(
        &self,
        ws: &mut GlmWorkspace,
        records: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        mut grad: LanesMut<'_>,
    ) {
        let (mut point, mut part) = (std::mem::take(&mut ws.point), std::mem::take(&mut ws.part));
        let d = self.dim();
        point.resize(d, 0.0);
        part.resize(d, 0.0);
        for (l, n) in records.iter().enumerate() {
            z.copy_lane(l, &mut point);
            self.batch_value_grad(
                ws,
                std::slice::from_ref(n),
                Lanes::new(&point, d, 1),
                &mut out[l..=l],
                LanesMut::new(&mut part, d, 1),
            );
            paste_lane(&part, l, &mut grad);
        }
        (ws.point, ws.part) = (point, part);
    }

    fn paired_hvp(
        &self,
        ws: &mut GlmWorkspace,
        records: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        mut out: LanesMut<'_>,
    ) {
        let (mut point, mut part) = (std::mem::take(&mut ws.point), std::mem::take(&mut ws.part));
        let mut direction = std::mem::take(&mut ws.second);
        let d = self.dim();
        for buffer in [&mut point, &mut part, &mut direction] {
            buffer.resize(d, 0.0);
        }
        for (l, n) in records.iter().enumerate() {
            z.copy_lane(l, &mut point);
            v.copy_lane(l, &mut direction);
            self.batch_hvp(
                ws,
                std::slice::from_ref(n),
                Lanes::new(&point, d, 1),
                Lanes::new(&direction, d, 1),
                LanesMut::new(&mut part, d, 1),
            );
            paste_lane(&part, l, &mut out);
        }
        (ws.point, ws.part, ws.second) = (point, part, direction);
    }

    fn support(&self, batch: &[u32], coordinates: &mut Vec<u32>) -> bool {
        let Features::Sparse(sparse) = &self.features else {
            return false;
        };
        coordinates.clear();
        if !sparse.leaves_out() {
            return false;
        }
        let (width, offset) = (self.width() as u32, self.offset as u32);
        for &n in batch {
            sparse.columns_of(n, coordinates);
        }
        coordinates.sort_unstable();
        coordinates.dedup();
        if width == 1 && offset == 0 {
            return true;
        }
        let columns = std::mem::take(coordinates);
        let all = columns
            .iter()
            .flat_map(|&c| (0..width).map(move |k| offset + c * width + k));
        coordinates.extend(all);
        true
    }

    fn linear(&self) -> Option<&dyn LinearPredictor> {
        Some(self)
    }
}

pub(super) fn paste_lane(column: &[f64], lane: usize, out: &mut LanesMut<'_>) {
    let lanes = out.lanes();
    for (row, x) in column.iter().enumerate() {
        out.as_mut_slice()[row * lanes + lane] = *x;
    }
}
