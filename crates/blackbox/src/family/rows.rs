//! Matrices of noise and draws, in rows of blocks of lanes.

use jensen_density::{Lanes, LanesMut};

use crate::sizes::WIDTH;

pub(crate) type LaneRow = [f64; WIDTH];

#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    data: &'a [f64],
    stride: usize,
    first: usize,
}

impl<'a> Rows<'a> {
    pub(crate) fn all(rows: &'a [LaneRow]) -> Self {
        Self {
            data: rows.as_flattened(),
            stride: WIDTH,
            first: 0,
        }
    }

    /// Copies a block of lanes to `room`. If fewer lanes than a block remain, zeros fill the rest.
    pub(crate) fn of(rows: Lanes<'a>, first: usize, room: &'a mut Vec<LaneRow>) -> Self {
        let lanes = rows.lanes();
        if first + WIDTH <= lanes {
            let (data, stride) = (rows.as_slice(), lanes);
            return Self {
                data,
                stride,
                first,
            };
        }
        room.clear();
        room.extend(rows.as_slice().chunks(lanes).map(|row| {
            let mut out = [0.0; WIDTH];
            out[..lanes - first].copy_from_slice(&row[first..]);
            out
        }));
        Self::all(room)
    }

    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> &'a LaneRow {
        let row = &self.data[i * self.stride + self.first..][..WIDTH];
        row.try_into().expect("one number for each lane of a block")
    }
}

pub(super) struct RowsMut<'a> {
    data: &'a mut [f64],
    stride: usize,
    first: usize,
}

impl<'a> RowsMut<'a> {
    pub(super) fn all(rows: &'a mut [LaneRow]) -> Self {
        Self {
            data: rows.as_flattened_mut(),
            stride: WIDTH,
            first: 0,
        }
    }

    pub(super) fn of(rows: &'a mut LanesMut<'_>, first: usize) -> Self {
        let stride = rows.lanes();
        Self {
            data: rows.as_mut_slice(),
            stride,
            first,
        }
    }

    #[inline(always)]
    pub(super) fn row(&mut self, i: usize) -> &mut LaneRow {
        let row = &mut self.data[i * self.stride + self.first..][..WIDTH];
        row.try_into().expect("one number for each lane of a block")
    }
}

#[derive(Clone, Copy)]
pub(super) enum Order<'a> {
    From(usize),
    At(&'a [usize]),
}

impl Order<'_> {
    #[inline(always)]
    pub(super) fn of(self, j: usize) -> usize {
        match self {
            Order::From(first) => first + j,
            Order::At(rows) => rows[j],
        }
    }
}
