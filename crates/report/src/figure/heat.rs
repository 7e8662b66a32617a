//! Heat maps, which may have contours.

use super::axis::Axis;
use super::chart::{Series, frame};
use super::colour::{self, Tint};
use super::images::Image;
use super::scene::{Anchor, Scene, Stroke, within};

const LEFT: f64 = 66.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 44.0;
const RIGHT: f64 = 78.0;
const BAR: f64 = 12.0;
const BAR_GAP: f64 = 10.0;

/// A heat map of a function of two variables on a regular grid. It may also show contours.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatMap {
    title: String,
    x: Axis,
    y: Axis,
    value: Axis,
    columns: usize,
    values: Vec<f64>,
    contours: Vec<f64>,
    overlays: Vec<Series>,
    size: (f64, f64),
}

impl HeatMap {
    /// Creates a heat map of `values`, which contains rows of `columns` values each. The first row is at the *lower*
    /// end of the vertical axis, so `values[i * columns + j]` belongs to the i-th y and to the j-th x. The cells divide
    /// each range evenly. On a logarithmic axis, they divide the range of the logarithm evenly. Non-finite values are
    /// drawn in grey, and an incomplete last row is omitted.
    pub fn new(
        title: impl Into<String>,
        x: (f64, f64),
        y: (f64, f64),
        columns: usize,
        mut values: Vec<f64>,
    ) -> Self {
        let columns = columns.max(1);
        values.truncate(values.len() / columns * columns);
        Self {
            title: title.into(),
            x: Axis::default().range(x.0, x.1),
            y: Axis::default().range(y.0, y.1),
            value: Axis::default(),
            columns,
            values,
            contours: Vec::new(),
            overlays: Vec::new(),
            size: (440.0, 360.0),
        }
    }

    /// Sets the label and the scale of the horizontal axis. The range of `axis` is ignored.
    pub fn x(self, axis: Axis) -> Self {
        let range = self.x.range;
        Self {
            x: Axis { range, ..axis },
            ..self
        }
    }

    /// Sets the label and the scale of the vertical axis. The range of `axis` is ignored.
    pub fn y(self, axis: Axis) -> Self {
        let range = self.y.range;
        Self {
            y: Axis { range, ..axis },
            ..self
        }
    }

    /// Sets the label and the scale of the colours. If `axis` has a range, the colours extend over this range instead
    /// of the range of the values.
    pub fn value(self, axis: Axis) -> Self {
        Self {
            value: axis,
            ..self
        }
    }

    /// Draws contours at the given `levels`. The contours are interpolated linearly between the centres of the cells.
    pub fn contours(self, levels: impl IntoIterator<Item = f64>) -> Self {
        Self {
            contours: levels.into_iter().collect(),
            ..self
        }
    }

    /// Draws a series on top of the heat map.
    pub fn overlay(mut self, series: Series) -> Self {
        self.overlays.push(series);
        self
    }

    /// Sets the width and the height of the map in pixels, including its axes and its title.
    pub fn sized(self, width: f64, height: f64) -> Self {
        Self {
            size: (within(width, 200.0, 4000.0), within(height, 120.0, 4000.0)),
            ..self
        }
    }

    fn rows(&self) -> usize {
        self.values.len() / self.columns
    }

    pub(super) fn size(&self) -> (f64, f64) {
        self.size
    }

    pub(super) fn draw(&self, scene: &mut Scene, corner: (f64, f64)) {
        let (left, right) = (corner.0 + LEFT, corner.0 + self.size.0 - RIGHT);
        let (top, bottom) = (corner.1 + TOP, corner.1 + self.size.1 - BOTTOM);
        let x = self.x.scale(std::iter::empty(), left, right, 0.0);
        let y = self.y.scale(std::iter::empty(), bottom, top, 0.0);
        let value = self
            .value
            .scale(self.values.iter().copied(), bottom, top, 0.0);
        let share = |v: f64| {
            if self.value.takes(v) {
                (value.at(v) - bottom) / (top - bottom)
            } else {
                f64::NAN
            }
        };
        if let Some(image) = self.picture(share) {
            scene.picture((left, top), right - left, bottom - top, image);
        }
        self.draw_contours(scene, (left, right), (top, bottom));
        for (i, series) in self.overlays.iter().enumerate() {
            series.draw(scene, i, (&self.x, &x), (&self.y, &y));
        }
        frame(scene, &self.title, (&self.x, &x), (&self.y, &y), false);

        let bar = right + BAR_GAP;
        let steps = 128;
        let ramp = (0..steps).map(|i| colour::of_share(1.0 - i as f64 / (steps - 1) as f64));
        if let Some(image) = Image::rgb(1, steps, ramp.collect()) {
            scene.picture((bar, top), BAR, bottom - top, image);
        }
        scene.frame(
            (bar, top),
            (BAR, bottom - top),
            Stroke::solid(Tint::Soft, 1.0),
        );
        for (v, label) in value.ticks(6) {
            let at = value.at(v);
            scene.text(
                (bar + BAR + 5.0, at + 4.0),
                11.0,
                Anchor::Start,
                Tint::Soft,
                &label,
            );
        }
        let middle = bar + BAR / 2.0;
        scene.text(
            (middle, bottom + 34.0),
            12.0,
            Anchor::Middle,
            Tint::Soft,
            &self.value.label,
        );
    }

    fn picture(&self, share: impl Fn(f64) -> f64) -> Option<Image> {
        let rows = self.values.chunks(self.columns).rev();
        let pixels = rows.flatten().map(|v| colour::of_share(share(*v)));
        Image::rgb(self.columns, self.rows(), pixels.collect())
    }

    fn draw_contours(&self, scene: &mut Scene, x: (f64, f64), y: (f64, f64)) {
        let (columns, rows) = (self.columns as f64, self.rows() as f64);
        // Converts a position in units of cells to pixels. The centre of a cell is half a unit from its edges.
        let pixel = |(j, i): (f64, f64)| {
            (
                x.0 + (j + 0.5) / columns * (x.1 - x.0),
                y.1 - (i + 0.5) / rows * (y.1 - y.0),
            )
        };
        let white = Stroke::solid(Tint::Own([0xff; 3]), 1.1);
        for level in &self.contours {
            for (a, b) in segments(&self.values, self.columns, *level) {
                scene.line(vec![pixel(a), pixel(b)], white);
            }
        }
    }
}

/// A point on the grid, given by its fractional column and row.
type GridPoint = (f64, f64);

/// Returns the segments of the contour at `level`, as found by the marching squares algorithm. A cell with a non-finite
/// corner has no contour. If diagonally opposite corners of a cell are on the same side of the level, the mean of the
/// values at the four corners determines which corners the contour cuts off.
fn segments(values: &[f64], columns: usize, level: f64) -> Vec<(GridPoint, GridPoint)> {
    let rows = values.len() / columns;
    let mut found = Vec::new();
    for i in 1..rows {
        for j in 1..columns {
            let at = |di: usize, dj: usize| values[(i - 1 + di) * columns + j - 1 + dj];
            // The corners are in order around the cell, so each corner shares an edge with the next one.
            let corners = [at(0, 0), at(0, 1), at(1, 1), at(1, 0)];
            if corners.iter().any(|v| !v.is_finite()) {
                continue;
            }
            let (x, y) = ((j - 1) as f64, (i - 1) as f64);
            let grid_points = [(x, y), (x + 1.0, y), (x + 1.0, y + 1.0), (x, y + 1.0)];
            let above = corners.map(|v| v >= level);
            let crossings: Vec<GridPoint> = (0..4)
                .filter(|k| above[*k] != above[(*k + 1) % 4])
                .map(|k| {
                    let (a, b) = (corners[k], corners[(k + 1) % 4]);
                    let t = (level - a) / (b - a);
                    let ((ax, ay), (bx, by)) = (grid_points[k], grid_points[(k + 1) % 4]);
                    (ax + t * (bx - ax), ay + t * (by - ay))
                })
                .collect();
            match crossings[..] {
                [a, b] => found.push((a, b)),
                [a, b, c, d] => {
                    let middle = corners.iter().sum::<f64>() / 4.0 >= level;
                    // Crossing k is on the edge that follows corner k. To cut off corner 1, the first two crossings are
                    // joined.
                    if middle == above[0] {
                        found.extend([(a, b), (c, d)]);
                    } else {
                        found.extend([(d, a), (b, c)]);
                    }
                }
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contours_of_a_plane_are_straight() {
        let values: Vec<f64> = (0..12).map(|k| (k % 4) as f64).collect();
        let found = segments(&values, 4, 1.25);
        assert_eq!(found.len(), 2);
        for (a, b) in found {
            assert!((a.0 - 1.25).abs() < 1e-12 && (b.0 - 1.25).abs() < 1e-12);
        }
    }

    #[test]
    fn saddles_are_joined_by_their_middle() {
        // Corners 0 and 2 are high and the middle is low. The contour therefore cuts off each of these corners
        // separately.
        let low = segments(&[1.0, 0.0, 0.0, 1.0], 2, 0.6);
        assert_eq!(low, [((0.0, 0.4), (0.4, 0.0)), ((1.0, 0.6), (0.6, 1.0))]);
        // The middle is high, so the contour cuts off the low corners.
        let high = segments(&[1.0, 0.0, 0.0, 1.0], 2, 0.4);
        assert_eq!(high, [((0.6, 0.0), (1.0, 0.4)), ((0.4, 1.0), (0.0, 0.6))]);
        assert!(segments(&[1.0, f64::NAN, 0.0, 1.0], 2, 0.6).is_empty());
    }

    #[test]
    fn the_last_row_is_on_top() {
        let map = HeatMap::new("", (0.0, 1.0), (0.0, 1.0), 2, vec![0.0, 0.0, 1.0, 1.0, 7.0]);
        let image = map.picture(|v| v).unwrap();
        assert_eq!((image.width(), image.height()), (2, 2));
        assert_eq!(image.pixels()[0], colour::of_share(1.0));
        assert_eq!(image.pixels()[2], colour::of_share(0.0));
    }
}
