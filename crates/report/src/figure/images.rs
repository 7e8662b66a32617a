//! Grids of images.

use super::colour::Tint;
use super::raster;
use super::scene::{Anchor, Scene, Stroke, within};

const FRAME: f64 = 1.0;

const LARGEST: usize = 1 << 24;

/// A grey or colour image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    width: usize,
    pixels: Vec<[u8; 3]>,
}

impl Image {
    /// Creates a colour image from `pixels`, which are given row by row from the top. Returns `None` unless the number
    /// of pixels is `width × height`, positive, and at most 2²⁴.
    pub fn rgb(width: usize, height: usize, pixels: Vec<[u8; 3]>) -> Option<Self> {
        let fits = width.checked_mul(height) == Some(pixels.len());
        (fits && (1..=LARGEST).contains(&pixels.len())).then_some(Self { width, pixels })
    }

    /// Creates a grey image from shades between 0 (black) and 1 (white), which are given row by row from the top.
    /// Values outside this range are clipped, and NaN is drawn in black. Returns `None` under the same conditions as
    /// [`rgb`](Self::rgb).
    pub fn grey(
        width: usize,
        height: usize,
        shades: impl IntoIterator<Item = f64>,
    ) -> Option<Self> {
        let shade = |s: f64| [(s.clamp(0.0, 1.0) * 255.0).round() as u8; 3];
        Self::rgb(width, height, shades.into_iter().map(shade).collect())
    }

    /// Creates a grey image in which the smallest value is black and the largest value is white. Returns `None` under
    /// the same conditions as [`rgb`](Self::rgb).
    pub fn grey_stretched(width: usize, height: usize, values: &[f64]) -> Option<Self> {
        let finite = || values.iter().copied().filter(|v| v.is_finite());
        let (least, most) = finite().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| {
            (a.min(v), b.max(v))
        });
        let span = (most - least).max(f64::MIN_POSITIVE);
        Self::grey(width, height, values.iter().map(|v| (v - least) / span))
    }

    /// Returns the width of the image in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the height of the image in pixels.
    pub fn height(&self) -> usize {
        self.pixels.len() / self.width
    }

    /// Returns the red, green and blue components of all pixels, row by row from the top.
    pub fn pixels(&self) -> &[[u8; 3]] {
        &self.pixels
    }

    /// Encodes the image as a PNG file that has the same size in pixels.
    pub fn to_png(&self) -> Vec<u8> {
        raster::encode_image(self)
    }
}

/// A grid of images. Every image is scaled to the width of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageGrid {
    title: String,
    columns: usize,
    cell: f64,
    images: Vec<(Image, String)>,
}

impl ImageGrid {
    /// Creates an empty grid. Each row has `columns` images, and each image is 48 pixels wide.
    pub fn new(title: impl Into<String>, columns: usize) -> Self {
        Self {
            title: title.into(),
            columns: columns.max(1),
            cell: 48.0,
            images: Vec::new(),
        }
    }

    /// Sets the width of a cell in pixels.
    pub fn cell(self, width: f64) -> Self {
        Self {
            cell: within(width, 2.0, 2000.0),
            ..self
        }
    }

    /// Adds an image without a caption.
    pub fn image(self, image: Image) -> Self {
        self.captioned(image, "")
    }

    /// Adds an image with a caption below it.
    pub fn captioned(mut self, image: Image, caption: impl Into<String>) -> Self {
        self.images.push((image, caption.into()));
        self
    }

    /// Adds several images.
    pub fn images(self, images: impl IntoIterator<Item = Image>) -> Self {
        images.into_iter().fold(self, Self::image)
    }

    fn gap(&self) -> f64 {
        (self.cell * 0.06).clamp(1.0, 6.0)
    }

    fn header(&self) -> f64 {
        if self.title.is_empty() { 0.0 } else { 24.0 }
    }

    /// Returns the height of each row, both without and with captions.
    fn rows(&self) -> Vec<(f64, f64)> {
        self.images
            .chunks(self.columns)
            .map(|row| {
                let height = |(image, _): &(Image, String)| {
                    self.cell * image.height() as f64 / image.width() as f64
                };
                let images = row.iter().map(height).fold(0.0, f64::max);
                let captions = row.iter().any(|(_, caption)| !caption.is_empty());
                (images, images + if captions { 16.0 } else { 0.0 })
            })
            .collect()
    }

    pub(super) fn size(&self) -> (f64, f64) {
        let columns = self.columns.min(self.images.len()) as f64;
        let width = columns * (self.cell + self.gap());
        let title = super::scene::text_width(&self.title, 13.5);
        let rows = self.rows();
        let height: f64 = rows.iter().map(|(_, h)| h + self.gap()).sum();
        (width.max(title), height + self.header())
    }

    pub(super) fn draw(&self, scene: &mut Scene, corner: (f64, f64)) {
        let (width, _) = self.size();
        if !self.title.is_empty() {
            let at = (corner.0 + width / 2.0, corner.1 + 14.0);
            scene.text(at, 13.5, Anchor::Middle, Tint::Ink, &self.title);
        }
        let mut y = corner.1 + self.header();
        for (row, (images, height)) in self.images.chunks(self.columns).zip(self.rows()) {
            let mut x = corner.0;
            for (image, caption) in row {
                let tall = self.cell * image.height() as f64 / image.width() as f64;
                // The frame makes white pixels at the border visible on white paper. It surrounds the image and is
                // drawn first.
                let corner = (x - FRAME / 2.0, y - FRAME / 2.0);
                let size = (self.cell + FRAME, tall + FRAME);
                scene.frame(corner, size, Stroke::solid(Tint::Soft, FRAME));
                scene.picture((x, y), self.cell, tall, image.clone());
                if !caption.is_empty() {
                    let at = (x + self.cell / 2.0, y + images + 12.0);
                    scene.text(at, 10.5, Anchor::Middle, Tint::Soft, caption);
                }
                x += self.cell + self.gap();
            }
            y += height + self.gap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_as_many_pixels_as_they_say() {
        assert_eq!(Image::rgb(2, 2, vec![[0; 3]; 3]), None);
        assert_eq!(Image::rgb(0, 0, vec![]), None);
        let image = Image::grey(2, 1, [-1.0, 0.5]).unwrap();
        assert_eq!(image.pixels(), [[0; 3], [128; 3]]);
        let image = Image::grey_stretched(3, 1, &[2.0, 3.0, f64::NAN]).unwrap();
        assert_eq!(image.pixels(), [[0; 3], [255; 3], [0; 3]]);
        assert_eq!((image.width(), image.height()), (3, 1));
    }

    #[test]
    fn grey_files_have_one_byte_a_pixel_and_all_files_have_their_pixels() {
        let shades: Vec<f64> = (0..60).map(|i| f64::from(i) / 59.0).collect();
        let grey = Image::grey(10, 6, shades).unwrap();
        let colours = (0..60).map(|i| [i, 2 * i, 255 - i]).collect();
        let colours = Image::rgb(10, 6, colours).unwrap();
        for (image, kind) in [
            (grey, png::ColorType::Grayscale),
            (colours, png::ColorType::Rgb),
        ] {
            let file = image.to_png();
            let mut reader = png::Decoder::new(std::io::Cursor::new(&file))
                .read_info()
                .unwrap();
            assert_eq!(reader.info().color_type, kind);
            let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
            reader.next_frame(&mut bytes).unwrap();
            let expected: Vec<u8> = match kind {
                png::ColorType::Grayscale => image.pixels().iter().map(|p| p[0]).collect(),
                _ => image.pixels().concat(),
            };
            assert_eq!(bytes, expected);
        }
    }

    #[test]
    fn rows_are_as_high_as_their_images_and_captions() {
        let image = |height| Image::grey(10, height, vec![0.0; 10 * height]).unwrap();
        let grid = ImageGrid::new("", 2)
            .cell(20.0)
            .image(image(10))
            .captioned(image(20), "two")
            .image(image(5));
        assert_eq!(grid.rows(), [(40.0, 56.0), (10.0, 10.0)]);
        let gap = grid.gap();
        assert_eq!(grid.size(), (40.0 + 2.0 * gap, 66.0 + 2.0 * gap));
    }
}
