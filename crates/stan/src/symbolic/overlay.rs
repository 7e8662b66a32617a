//! Containers that the iterations of a loop write to while they are vectorised.

use std::rc::Rc;

use jensen_graph::NodeId;

use crate::program::VarId;
use crate::symbolic::value::{Cell, Dims};

/// An element of a container that iterations name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// The same one in every iteration.
    Fixed(u32),
    /// Each iteration's own.
    Own(Rc<[u32]>),
}

/// A container that iterations write to.
#[derive(Clone, Debug)]
pub struct Overlay {
    /// Its variable.
    pub var: VarId,
    /// Its extents.
    pub dims: Rc<Dims>,
    /// Stands for its elements before.
    pub stand_in: NodeId,
    /// The elements that have been written.
    pub entries: Rc<Vec<(At, Cell)>>,
}
