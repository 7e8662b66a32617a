//! Borrowed `rows × lanes` matrices in which the lanes of each row are contiguous.

/// A read-only `rows × lanes` matrix of draws. Element `(row, lane)` is `data[row * lanes + lane]`.
#[derive(Clone, Copy, Debug)]
pub struct Lanes<'a> {
    data: &'a [f64],
    rows: usize,
    lanes: usize,
}

/// A writable matrix of draws with the same layout as [`Lanes`].
#[derive(Debug)]
pub struct LanesMut<'a> {
    data: &'a mut [f64],
    rows: usize,
    lanes: usize,
}

impl<'a> Lanes<'a> {
    /// Creates a view of `data` as a `rows × lanes` matrix.
    ///
    /// # Panics
    /// Panics if `data.len() != rows * lanes`, which is a bug in the caller.
    pub fn new(data: &'a [f64], rows: usize, lanes: usize) -> Self {
        assert_eq!(data.len(), rows * lanes, "a {rows} × {lanes} view");
        Self { data, rows, lanes }
    }

    /// Returns the number of rows (coordinates).
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of lanes (draws).
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// Returns all elements, row by row.
    pub fn as_slice(&self) -> &'a [f64] {
        self.data
    }

    /// Returns the lanes of one coordinate.
    pub fn row(&self, row: usize) -> &'a [f64] {
        &self.data[row * self.lanes..(row + 1) * self.lanes]
    }

    /// Copies the draw in a lane into `out`, which has length `rows`.
    pub fn copy_lane(&self, lane: usize, out: &mut [f64]) {
        for (row, value) in out.iter_mut().enumerate().take(self.rows) {
            *value = self.data[row * self.lanes + lane];
        }
    }
}

impl<'a> LanesMut<'a> {
    /// Creates a writable view of `data` as a `rows × lanes` matrix.
    ///
    /// # Panics
    /// Panics if `data.len() != rows * lanes`, which is a bug in the caller.
    pub fn new(data: &'a mut [f64], rows: usize, lanes: usize) -> Self {
        assert_eq!(data.len(), rows * lanes, "a {rows} × {lanes} view");
        Self { data, rows, lanes }
    }

    /// Returns the number of rows (coordinates).
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of lanes (draws).
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// Returns all elements for modification, row by row.
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        self.data
    }

    /// Returns the lanes of one coordinate for modification.
    pub fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.data[row * self.lanes..(row + 1) * self.lanes]
    }

    /// Reborrows the view for a shorter lifetime.
    pub fn reborrow(&mut self) -> LanesMut<'_> {
        LanesMut {
            data: self.data,
            rows: self.rows,
            lanes: self.lanes,
        }
    }
}
