//! Type-erased record densities. With them, the compiler generates the code of an algorithm only once instead of once
//! per density.

use std::any::Any;

use crate::{Group, Lanes, LanesMut, LinearPredictor, RecordDensity};

/// The scratch memory of [`ErasedRecords`].
pub type ErasedWorkspace = Box<dyn Any + Send>;

/// A borrowed [`RecordDensity`] whose concrete type is erased. Its results are bitwise identical to those of the
/// underlying density.
#[derive(Clone, Copy)]
pub struct ErasedRecords<'a>(&'a dyn Erased);

impl<'a> ErasedRecords<'a> {
    /// Creates a borrowed view of the records of `density`.
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

fn concrete<W: 'static>(ws: &mut ErasedWorkspace) -> &mut W {
    ws.downcast_mut()
        .expect("a workspace made by the same density")
}

/// Generates the methods with a workspace argument from a single list of signatures. The macro defines an object-safe
/// form of [`RecordDensity`], and implements it for every density. It also implements the methods of [`ErasedRecords`].
macro_rules! erased {
    ($(fn $name:ident($($arg:ident: $type:ty),*);)*) => {
        trait Erased: Sync {
            fn dim(&self) -> usize;
            fn records(&self) -> usize;
            fn workspace(&self, lanes: usize, batch: usize) -> ErasedWorkspace;
            fn support(&self, batch: &[u32], coordinates: &mut Vec<u32>) -> bool;
            fn linear(&self) -> Option<&dyn LinearPredictor>;
            fn blocks(&self) -> Option<&[u32]>;
            fn stride(&self) -> usize;
            fn hold(&self, records: &[u32]);
            $(fn $name(&self, ws: &mut ErasedWorkspace, $($arg: $type),*);)*
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
            fn support(&self, batch: &[u32], coordinates: &mut Vec<u32>) -> bool {
                RecordDensity::support(self, batch, coordinates)
            }
            fn linear(&self) -> Option<&dyn LinearPredictor> {
                RecordDensity::linear(self)
            }
            fn blocks(&self) -> Option<&[u32]> {
                RecordDensity::blocks(self)
            }
            fn stride(&self) -> usize {
                RecordDensity::stride(self)
            }
            fn hold(&self, records: &[u32]) {
                RecordDensity::hold(self, records);
            }
            $(fn $name(&self, ws: &mut ErasedWorkspace, $($arg: $type),*) {
                RecordDensity::$name(self, concrete(ws), $($arg),*);
            })*
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
            fn support(&self, batch: &[u32], coordinates: &mut Vec<u32>) -> bool {
                self.0.support(batch, coordinates)
            }
            fn linear(&self) -> Option<&dyn LinearPredictor> {
                self.0.linear()
            }
            fn blocks(&self) -> Option<&[u32]> {
                self.0.blocks()
            }
            fn stride(&self) -> usize {
                self.0.stride()
            }
            fn hold(&self, records: &[u32]) {
                self.0.hold(records);
            }
            $(fn $name(&self, ws: &mut ErasedWorkspace, $($arg: $type),*) {
                self.0.$name(ws, $($arg),*);
            })*
        }
    };
}

erased! {
    fn prior_value(z: Lanes<'_>, out: &mut [f64]);
    fn prior_value_grad(z: Lanes<'_>, out: &mut [f64], grad: LanesMut<'_>);
    fn prior_hvp(z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>);
    fn batch_value(batch: &[u32], z: Lanes<'_>, out: &mut [f64]);
    fn batch_value_grad(batch: &[u32], z: Lanes<'_>, out: &mut [f64], grad: LanesMut<'_>);
    fn batch_hvp(batch: &[u32], z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>);
    fn paired_value(records: &[u32], z: Lanes<'_>, out: &mut [f64]);
    fn paired_value_grad(records: &[u32], z: Lanes<'_>, out: &mut [f64], grad: LanesMut<'_>);
    fn paired_hvp(records: &[u32], z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>);
    fn grouped(groups: &[Group<'_>], v: &[f64], grad: &mut [f64], product: &mut [f64]);
}
