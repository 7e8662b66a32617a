//! The conversion of records to images.

use jensen_neural::Likelihood;
use jensen_report::figure::Image;

/// The settings with which records are drawn as images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureFrame {
    /// The width of a record in pixels.
    pub width: usize,
    /// The height of a record in pixels.
    pub height: usize,
    /// Whether the values lie between 0 (black) and 1 (white). Otherwise, the smallest value of all images is drawn in
    /// black and the largest value is drawn in white.
    pub unit: bool,
    /// The factor by which each pixel of a record is enlarged in each direction.
    pub zoom: usize,
}

const LEAST: usize = 28;

impl PictureFrame {
    /// Returns the settings for records of the given size under a likelihood.
    pub fn new((width, height): (usize, usize), likelihood: Likelihood) -> Self {
        Self {
            width,
            height,
            unit: likelihood.is_of_shares(),
            zoom: (LEAST / width.max(height).max(1)).max(1),
        }
    }
}

/// Draws records as a grid of images with `columns` images in each row and grey lines between the images. Returns
/// `None` if there is no complete record or if the image would have too many pixels.
pub fn mosaic(records: &[f32], frame: PictureFrame, columns: usize) -> Option<Image> {
    let PictureFrame {
        width,
        height,
        unit,
        zoom,
    } = frame;
    let size = width * height;
    let count = records.len().checked_div(size)?;
    if count == 0 || !records.len().is_multiple_of(size) {
        return None;
    }
    let columns = columns.clamp(1, count);
    let rows = count.div_ceil(columns);
    let (across, down) = (width * zoom + 1, height * zoom + 1);
    let (wide, tall) = (columns * across - 1, rows * down - 1);
    let (low, high) = if unit {
        (0.0, 1.0)
    } else {
        let finite = records.iter().filter(|x| x.is_finite());
        finite.fold((f32::INFINITY, f32::NEG_INFINITY), |(a, b), &x| {
            (a.min(x), b.max(x))
        })
    };
    let span = f64::from(high - low).max(f64::from(f32::MIN_POSITIVE));
    let mut shades = vec![GREY; wide * tall];
    for (i, record) in records.chunks_exact(size).enumerate() {
        let (left, top) = (i % columns * across, i / columns * down);
        for y in 0..height * zoom {
            let line = &record[y / zoom * width..][..width];
            for x in 0..width * zoom {
                let shade = f64::from(line[x / zoom] - low) / span;
                shades[(top + y) * wide + left + x] = shade;
            }
        }
    }
    Image::grey(wide, tall, shades)
}

const GREY: f64 = 0.35;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_stand_in_rows() {
        let frame = PictureFrame {
            width: 2,
            height: 1,
            unit: true,
            zoom: 1,
        };
        let image = mosaic(&[0.0, 1.0, 1.0, 0.0, 1.0, 1.0], frame, 2).unwrap();
        assert_eq!((image.width(), image.height()), (5, 3));
        let shade = |x: usize, y: usize| image.pixels()[y * 5 + x][0];
        assert_eq!([0, 1, 3, 4].map(|x| shade(x, 0)), [0, 255, 255, 0]);
        assert_eq!([0, 1].map(|x| shade(x, 2)), [255, 255]);
        // These pixels lie between the images or outside all images.
        assert_eq!([shade(2, 0), shade(0, 1), shade(4, 2)], [89; 3]);
        let large = mosaic(&[0.0, 1.0], PictureFrame { zoom: 3, ..frame }, 1).unwrap();
        assert_eq!((large.width(), large.height()), (6, 3));
        assert_eq!(
            [2, 3, 12, 17].map(|i| large.pixels()[i][0]),
            [0, 255, 0, 255]
        );
        assert_eq!(mosaic(&[0.0; 3], frame, 2), None);
        assert_eq!(mosaic(&[], frame, 2), None);
        let stretched = mosaic(
            &[-3.0, 5.0],
            PictureFrame {
                unit: false,
                ..frame
            },
            2,
        )
        .unwrap();
        assert_eq!(stretched.pixels(), [[0; 3], [255; 3]]);
    }
}
