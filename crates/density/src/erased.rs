//! Records behind a pointer: a record density whose type a generic algorithm need not know.

use std::any::Any;

use crate::{Group, Lanes, LanesMut, LinearPredictor, RecordDensity};

/// Scratch memory of [`ErasedRecords`].
pub type ErasedWorkspace = Box<dyn Any + Send>;

/// A borrowed [`RecordDensity`] of any type, itself a [`RecordDensity`] with the same bits.
#[derive(Clone, Copy)]
pub struct ErasedRecords<'a>(&'a dyn Erased);

impl<'a> ErasedRecords<'a> {
    /// The records of `density`.
    pub fn new<D: RecordDensity>(density: &'a D) -> Self {
        Self(density)
    }
}

impl std::fmt::Debug for ErasedRecords<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "ErasedRecords({} of {} coordinates)",
            self.0.records(),
            self.0.dim()
        )
    }
}

/// The object-safe face of [`RecordDensity`]; every method stands for the one of its name.
trait Erased: Sync {
    fn dim(&self) -> usize;
    fn records(&self) -> usize;
    fn workspace(&self, lanes: usize, batch: usize) -> ErasedWorkspace;
    fn prior_value(&self, ws: &mut ErasedWorkspace, z: Lanes<'_>, out: &mut [f64]);
    fn prior_value_grad(
        &self,
        ws: &mut ErasedWorkspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    );
    fn prior_hvp(&self, ws: &mut ErasedWorkspace, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>);
    fn batch_value(&self, ws: &mut ErasedWorkspace, batch: &[u32], z: Lanes<'_>, out: &mut [f64]);
    fn batch_value_grad(
        &self,
        ws: &mut ErasedWorkspace,
        batch: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    );
    fn batch_hvp(
        &self,
        ws: &mut ErasedWorkspace,
        batch: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        out: LanesMut<'_>,
    );
    fn paired_value(
        &self,
        ws: &mut ErasedWorkspace,
        records: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
    );
    fn paired_value_grad(
        &self,
        ws: &mut ErasedWorkspace,
        records: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    );
    fn paired_hvp(
        &self,
        ws: &mut ErasedWorkspace,
        records: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        out: LanesMut<'_>,
    );
    fn grouped(
        &self,
        ws: &mut ErasedWorkspace,
        groups: &[Group<'_>],
        v: &[f64],
        grad: &mut [f64],
        product: &mut [f64],
    );
    fn support(&self, batch: &[u32], coordinates: &mut Vec<u32>) -> bool;
    fn linear(&self) -> Option<&dyn LinearPredictor>;
}

fn concrete<W: 'static>(ws: &mut ErasedWorkspace) -> &mut W {
    ws.downcast_mut()
        .expect("a workspace made by the same density")
}

impl<D: RecordDensity> Erased for D {
    fn dim(&self) -> usize {
        RecordDensity::dim(self)
    }
    fn records(&self) -> usize {
        RecordDensity::records(self)
    }
    fn workspace(&self, lanes: usize, batch: usize) -> ErasedWorkspace {
        Box::new(RecordDensity::workspace(self, lanes, batch))
    }
    fn prior_value(&self, ws: &mut ErasedWorkspace, z: Lanes<'_>, out: &mut [f64]) {
        RecordDensity::prior_value(self, concrete(ws), z, out);
    }
    fn prior_value_grad(
        &self,
        ws: &mut ErasedWorkspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        RecordDensity::prior_value_grad(self, concrete(ws), z, out, grad);
    }
    fn prior_hvp(&self, ws: &mut ErasedWorkspace, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>) {
        RecordDensity::prior_hvp(self, concrete(ws), z, v, out);
    }
    fn batch_value(&self, ws: &mut ErasedWorkspace, batch: &[u32], z: Lanes<'_>, out: &mut [f64]) {
        RecordDensity::batch_value(self, concrete(ws), batch, z, out);
    }
    fn batch_value_grad(
        &self,
        ws: &mut ErasedWorkspace,
        batch: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        RecordDensity::batch_value_grad(self, concrete(ws), batch, z, out, grad);
    }
    fn batch_hvp(
        &self,
        ws: &mut ErasedWorkspace,
        batch: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        out: LanesMut<'_>,
    ) {
        RecordDensity::batch_hvp(self, concrete(ws), batch, z, v, out);
    }
    fn paired_value(
        &self,
        ws: &mut ErasedWorkspace,
        records: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
    ) {
        RecordDensity::paired_value(self, concrete(ws), records, z, out);
    }
    fn paired_value_grad(
        &self,
        ws: &mut ErasedWorkspace,
        records: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        RecordDensity::paired_value_grad(self, concrete(ws), records, z, out, grad);
    }
    fn paired_hvp(
        &self,
        ws: &mut ErasedWorkspace,
        records: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        out: LanesMut<'_>,
    ) {
        RecordDensity::paired_hvp(self, concrete(ws), records, z, v, out);
    }
    fn grouped(
        &self,
        ws: &mut ErasedWorkspace,
        groups: &[Group<'_>],
        v: &[f64],
        grad: &mut [f64],
        product: &mut [f64],
    ) {
        RecordDensity::grouped(self, concrete(ws), groups, v, grad, product);
    }
    fn support(&self, batch: &[u32], coordinates: &mut Vec<u32>) -> bool {
        RecordDensity::support(self, batch, coordinates)
    }
    fn linear(&self) -> Option<&dyn LinearPredictor> {
        RecordDensity::linear(self)
    }
}

impl RecordDensity for ErasedRecords<'_> {
    type Workspace = ErasedWorkspace;

    fn dim(&self) -> usize {
        self.0.dim()
    }
    fn records(&self) -> usize {
        self.0.records()
    }
    fn workspace(&self, lanes: usize, batch: usize) -> ErasedWorkspace {
        self.0.workspace(lanes, batch)
    }
    fn prior_value(&self, ws: &mut ErasedWorkspace, z: Lanes<'_>, out: &mut [f64]) {
        self.0.prior_value(ws, z, out);
    }
    fn prior_value_grad(
        &self,
        ws: &mut ErasedWorkspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        self.0.prior_value_grad(ws, z, out, grad);
    }
    fn prior_hvp(&self, ws: &mut ErasedWorkspace, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>) {
        self.0.prior_hvp(ws, z, v, out);
    }
    fn batch_value(&self, ws: &mut ErasedWorkspace, batch: &[u32], z: Lanes<'_>, out: &mut [f64]) {
        self.0.batch_value(ws, batch, z, out);
    }
    fn batch_value_grad(
        &self,
        ws: &mut ErasedWorkspace,
        batch: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        self.0.batch_value_grad(ws, batch, z, out, grad);
    }
    fn batch_hvp(
        &self,
        ws: &mut ErasedWorkspace,
        batch: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        out: LanesMut<'_>,
    ) {
        self.0.batch_hvp(ws, batch, z, v, out);
    }
    fn paired_value(
        &self,
        ws: &mut ErasedWorkspace,
        records: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
    ) {
        self.0.paired_value(ws, records, z, out);
    }
    fn paired_value_grad(
        &self,
        ws: &mut ErasedWorkspace,
        records: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        self.0.paired_value_grad(ws, records, z, out, grad);
    }
    fn paired_hvp(
        &self,
        ws: &mut ErasedWorkspace,
        records: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        out: LanesMut<'_>,
    ) {
        self.0.paired_hvp(ws, records, z, v, out);
    }
    fn grouped(
        &self,
        ws: &mut ErasedWorkspace,
        groups: &[Group<'_>],
        v: &[f64],
        grad: &mut [f64],
        product: &mut [f64],
    ) {
        self.0.grouped(ws, groups, v, grad, product);
    }
    fn support(&self, batch: &[u32], coordinates: &mut Vec<u32>) -> bool {
        self.0.support(batch, coordinates)
    }
    fn linear(&self) -> Option<&dyn LinearPredictor> {
        self.0.linear()
    }
}
