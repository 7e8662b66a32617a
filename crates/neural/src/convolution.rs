//! Convolutional layers of images.
//!
//! The pixels of an image are in rows from the top, and the channels of a pixel are adjacent. A convolution is the product
//! of a shared matrix with the windows of the image, which are the columns of another matrix. In a graph, it therefore
//! consists of a gather and a matrix product. A transposed convolution is a matrix product and a scatter, so each layer is
//! the transpose of the other kind with the same windows (Dumoulin and Visin 2016).
//!
//! Windows are two pixels apart, so a layer halves or doubles the resolution. Beyond the border of an image, a convolution
//! reads zeros, and a transposed convolution drops the values.

use jensen_graph::{Graph, NodeId};
use serde::{Deserialize, Serialize};

use crate::layers::product;

/// The distance of neighbouring windows in pixels. Strided layers replace pooling (Springenberg et al. 2015).
const STRIDE: usize = 2;

/// The extents of an image, or of the outputs of a convolutional layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    /// Number of rows.
    pub height: usize,
    /// Number of columns.
    pub width: usize,
    /// Number of values of a pixel, such as one for grey levels and three for colours.
    pub channels: usize,
}

impl Grid {
    /// Returns the number of values.
    pub fn len(self) -> usize {
        self.pixels() * self.channels
    }

    /// Returns whether there are no values.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    fn pixels(self) -> usize {
        self.height * self.width
    }

    /// Returns the grid with half of the rows and columns, rounded up, and this number of channels.
    fn halved(self, channels: usize) -> Self {
        Self {
            height: self.height.div_ceil(STRIDE),
            width: self.width.div_ceil(STRIDE),
            channels,
        }
    }
}

/// The convolutional layers of an auto-encoder. The encoder begins with convolutions, each of which halves the resolution.
/// The decoder ends with the transposed convolutions in reverse order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Convolutions {
    /// The extents of a record.
    pub image: Grid,
    /// Number of filters of each layer, in order from the data to the latent values.
    pub filters: Vec<usize>,
    /// Number of rows and columns of a window.
    pub window: usize,
}

impl Convolutions {
    /// Checks the layers.
    ///
    /// # Errors
    /// Fails if an extent is zero, if windows leave out pixels, or if a layer's input is a single pixel.
    pub fn check(&self) -> Result<(), String> {
        if self.image.is_empty() || self.filters.is_empty() || self.filters.contains(&0) {
            return Err("a convolutional layer needs pixels and at least one filter".to_owned());
        }
        if self.window < STRIDE {
            return Err(format!(
                "windows of {} pixel leave out pixels, because they are {STRIDE} pixels apart",
                self.window
            ));
        }
        let smallest = |layer: &Windows| layer.large.pixels() == 1;
        match self.windows(1).iter().position(smallest) {
            Some(layer) => Err(format!(
                "images of {} × {} pixels are a single pixel after layer {layer}, so there can be no more \
                 convolutional layers",
                self.image.width, self.image.height
            )),
            None => Ok(()),
        }
    }

    /// Returns the windows of each layer, in order from the data to the latent values. The images of the first layer
    /// consist of `planes` images, one after another.
    pub(crate) fn windows(&self, planes: usize) -> Vec<Windows> {
        let mut large = self.image;
        (self.filters.iter().enumerate())
            .map(|(layer, filters)| {
                let small = large.halved(*filters);
                let windows = Windows {
                    large,
                    planes: if layer == 0 { planes } else { 1 },
                    small,
                    size: self.window,
                };
                large = small;
                windows
            })
            .collect()
    }
}

/// The windows of an image. Each pixel of the smaller image belongs to one window of the larger image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The image with the higher resolution.
    pub large: Grid,
    /// Number of images of the extents `large`, one after another.
    pub planes: usize,
    /// The image with the lower resolution.
    pub small: Grid,
    /// Number of rows and columns of a window.
    pub size: usize,
}

impl Windows {
    /// Returns the number of values of a window.
    pub fn values(&self) -> usize {
        self.size * self.size * self.large.channels * self.planes
    }

    /// Returns the number of values of the larger image.
    pub fn outer(&self) -> usize {
        self.planes * self.large.len()
    }

    /// Returns the element of the larger image for each value of each window. For values beyond the border, it returns
    /// the number of elements.
    fn index(&self) -> Vec<u32> {
        let Grid {
            height,
            width,
            channels,
        } = self.large;
        // The first window begins with this many rows and columns beyond the border. The windows then lie symmetrically
        // if their size is even.
        let before = (self.size - STRIDE) / 2;
        let beyond = self.outer();
        let mut index = Vec::with_capacity(self.small.pixels() * self.values());
        for pixel in 0..self.small.pixels() {
            let (top, left) = (
                STRIDE * (pixel / self.small.width),
                STRIDE * (pixel % self.small.width),
            );
            for plane in 0..self.planes {
                for (i, j) in (0..self.size * self.size).map(|t| (t / self.size, t % self.size)) {
                    let row = (top + i).checked_sub(before).filter(|row| *row < height);
                    let column = (left + j).checked_sub(before).filter(|c| *c < width);
                    let inside = row.zip(column).map(|(row, column)| {
                        plane * self.large.len() + (row * width + column) * channels
                    });
                    let values = (0..channels).map(|c| inside.map_or(beyond, |at| at + c) as u32);
                    index.extend(values);
                }
            }
        }
        index
    }

    /// Returns the number of inputs in the sum for a value of a transposed convolution, if a pixel of the smaller image has
    /// `filters` inputs. The value belongs to about size²/4 windows, because they are two pixels apart in both directions.
    pub(crate) fn overlap(&self, filters: usize) -> usize {
        (filters * self.size * self.size / (STRIDE * STRIDE)).max(1)
    }

    /// Builds a convolution: the product of the weights, `values × filters`, with the windows of x.
    pub(crate) fn convolve(&self, g: &mut Graph, weight: NodeId, x: NodeId) -> NodeId {
        let zero = g.constant(0.0);
        let padded = g.concat(&[x, zero]);
        let windows = g.gather(padded, &self.index());
        let extents = (self.values(), self.small.channels);
        product(g, weight, windows, extents, self.small.pixels())
    }

    /// Builds a transposed convolution: the sum of the windows that the product of the weights, `filters × values`, with
    /// each pixel of x gives.
    pub(crate) fn spread(&self, g: &mut Graph, weight: NodeId, x: NodeId) -> NodeId {
        let extents = (self.small.channels, self.values());
        let windows = product(g, weight, x, extents, self.small.pixels());
        let beyond = g.scatter_add(windows, &self.index(), self.outer() + 1);
        g.slice(beyond, 0, self.outer())
    }
}

/// Repeats the value of each channel for all pixels.
pub(crate) fn per_channel(g: &mut Graph, values: NodeId, grid: Grid) -> NodeId {
    let index: Vec<u32> = (0..grid.len())
        .map(|i| (i % grid.channels) as u32)
        .collect();
    g.gather(values, &index)
}
