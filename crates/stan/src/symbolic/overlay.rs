//! Containers to which the iterations of a loop write while they are vectorised.

use std::rc::Rc;

use jensen_graph::NodeId;

use crate::program::VarId;
use crate::symbolic::value::{Cell, Dims};

/// An element of a container, at a position that iterations index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// The element is the same in every iteration.
    Fixed(u32),
    /// Each iteration has its own element.
    Own(Rc<[u32]>),
}

/// A container to which iterations write.
#[derive(Clone, Debug)]
pub struct Overlay {
    /// The variable of the container.
    pub var: VarId,
    /// The extents of the container.
    pub dims: Rc<Dims>,
    /// The placeholder for the elements that the container had before the loop.
    pub stand_in: NodeId,
    /// The written elements, each with its position, in the order of writing.
    pub entries: Rc<Vec<(At, Cell)>>,
}
