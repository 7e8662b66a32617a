//! Observation windows of point patterns: polygons, and their division into cells.

use crate::Error;

/// A point of the plane.
pub type Location = [f64; 2];

/// A simple polygon in which all points of a pattern were observed.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// A vertex. The others are relative to it, so that large coordinates do not cancel.
    origin: Location,
    /// The vertices in order, without a repetition of the first.
    vertices: Vec<Location>,
    /// The longer side of the rectangle around the vertices.
    side: f64,
}

/// A part of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The centroid of the part.
    pub at: Location,
    /// The area of the part, in squared units of the coordinates.
    pub area: f64,
}

/// Points on the border may be outside by this share of the longer side, because of rounding.
const ROUNDING: f64 = 1e-9;

/// The largest number of cells. A fit has a row for each.
const MOST: f64 = 200_000.0;

impl Window {
    /// Creates the polygon with these vertices in order. The last vertex may repeat the first.
    ///
    /// # Errors
    /// Fails if there are fewer than three vertices, if sides of the polygon cross, or if it has no area.
    pub fn new(mut vertices: Vec<Location>) -> Result<Self, Error> {
        let fail = |message: &str| Err(Error::Input(format!("the window {message}")));
        if vertices.len() > 1 && vertices.first() == vertices.last() {
            vertices.pop();
        }
        if vertices.len() < 3 {
            return fail("needs at least three vertices, in order along its border");
        }
        let origin = vertices[0];
        let vertices: Vec<Location> = vertices.iter().map(|p| minus(*p, origin)).collect();
        let (low, high) = bounds(&vertices);
        let side = (high[0] - low[0]).max(high[1] - low[1]);
        let window = Self {
            origin,
            vertices,
            side,
        };
        if window.crosses() {
            return fail("has sides that cross; list its vertices in order along its border");
        }
        let area = window.area();
        if area.is_nan() || area <= ROUNDING * side * side {
            return fail("has no area");
        }
        Ok(window)
    }

    /// Creates a rectangle around points. Each side is longer than the range of the n points by the factor
    /// (n + 1)/(n − 1). If points are uniform in a rectangle, the expected rectangle is then this rectangle.
    ///
    /// # Errors
    /// Fails if all points are on one line along an axis.
    pub fn around(points: &[Location]) -> Result<Self, Error> {
        let (low, high) = bounds(points);
        let n = points.len() as f64;
        let wider = |k: usize| (high[k] - low[k]) / (n - 1.0);
        let (dx, dy) = (wider(0), wider(1));
        let (left, right) = (low[0] - dx, high[0] + dx);
        let (bottom, top) = (low[1] - dy, high[1] + dy);
        Self::new(vec![
            [left, bottom],
            [right, bottom],
            [right, top],
            [left, top],
        ])
    }

    /// Returns the area, in squared units of the coordinates.
    pub fn area(&self) -> f64 {
        moments(&self.vertices).0.abs()
    }

    /// Returns the longer side of the rectangle around the polygon.
    pub fn side(&self) -> f64 {
        self.side
    }

    /// Returns whether a point is inside the polygon or on its border.
    pub fn contains(&self, point: Location) -> bool {
        let p = minus(point, self.origin);
        let mut inside = false;
        for (a, b) in sides(&self.vertices) {
            if distance(p, a, b) <= ROUNDING * self.side {
                return true;
            }
            if (a[1] > p[1]) != (b[1] > p[1])
                && p[0] < a[0] + (p[1] - a[1]) / (b[1] - a[1]) * (b[0] - a[0])
            {
                inside = !inside;
            }
        }
        inside
    }

    /// Divides the polygon by a grid of rectangles with sides of at most `length`. The areas of the cells add up to that
    /// of the polygon. A sum of a function at the centroids times the areas is the integral of the function up to an
    /// error of the order of length², because it is exact for linear functions.
    ///
    /// # Errors
    /// Fails if there would be more than 200 000 cells.
    pub fn cells(&self, length: f64) -> Result<Vec<Cell>, Error> {
        let (low, high) = bounds(&self.vertices);
        let counts = [0, 1].map(|k| ((high[k] - low[k]) / length).ceil().max(1.0));
        let count = counts[0] * counts[1];
        if count.is_nan() || count > MOST {
            return Err(Error::setting(format!(
                "--cell {length}: the window has more than {MOST} cells; use longer ones"
            )));
        }
        let cut = |k: usize, i: usize| low[k] + (high[k] - low[k]) * i as f64 / counts[k];
        let mut cells = Vec::new();
        for i in 0..counts[0] as usize {
            let strip = between(&self.vertices, 0, cut(0, i), cut(0, i + 1));
            for j in 0..counts[1] as usize {
                let part = between(&strip, 1, cut(1, j), cut(1, j + 1));
                let (area, [x, y]) = moments(&part);
                // Rounding leaves slivers on the lines of the grid.
                if area.abs() > ROUNDING * length * length {
                    cells.push(Cell {
                        at: [self.origin[0] + x, self.origin[1] + y],
                        area: area.abs(),
                    });
                }
            }
        }
        Ok(cells)
    }

    fn crosses(&self) -> bool {
        let all: Vec<_> = sides(&self.vertices).collect();
        let side = |a: Location, b: Location, c: Location| cross(minus(b, a), minus(c, a));
        all.iter().enumerate().any(|(i, (a, b))| {
            all[i + 1..].iter().any(|(c, d)| {
                side(*a, *b, *c) * side(*a, *b, *d) < 0.0
                    && side(*c, *d, *a) * side(*c, *d, *b) < 0.0
            })
        })
    }
}

fn minus(a: Location, b: Location) -> Location {
    [a[0] - b[0], a[1] - b[1]]
}

fn cross(a: Location, b: Location) -> f64 {
    a[0] * b[1] - a[1] * b[0]
}

fn bounds(points: &[Location]) -> (Location, Location) {
    let mut ends = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for p in points {
        for (k, x) in p.iter().enumerate() {
            ends.0[k] = ends.0[k].min(*x);
            ends.1[k] = ends.1[k].max(*x);
        }
    }
    ends
}

fn sides(vertices: &[Location]) -> impl Iterator<Item = (Location, Location)> {
    let next = vertices.iter().cycle().skip(1);
    vertices.iter().copied().zip(next.copied())
}

fn distance(p: Location, a: Location, b: Location) -> f64 {
    let (along, from) = (minus(b, a), minus(p, a));
    let square = along[0] * along[0] + along[1] * along[1];
    let t = (along[0] * from[0] + along[1] * from[1]) / square;
    let t = if square > 0.0 { t.clamp(0.0, 1.0) } else { 0.0 };
    (from[0] - t * along[0]).hypot(from[1] - t * along[1])
}

/// The signed area and the centroid of a polygon.
fn moments(vertices: &[Location]) -> (f64, Location) {
    let Some(first) = vertices.first() else {
        return (0.0, [0.0; 2]);
    };
    let (mut area, mut sum) = (0.0, [0.0; 2]);
    for (a, b) in sides(vertices) {
        let (a, b) = (minus(a, *first), minus(b, *first));
        let twice = cross(a, b);
        area += 0.5 * twice;
        sum = [0, 1].map(|k| sum[k] + (a[k] + b[k]) * twice / 6.0);
    }
    (area, [0, 1].map(|k| first[k] + sum[k] / area))
}

/// Clips a polygon to the strip `low ≤ coordinate k ≤ high` (Sutherland and Hodgman 1974). The parts of a polygon that is
/// not convex stay connected along the lines of the strip, which changes neither areas nor centroids.
fn between(vertices: &[Location], k: usize, low: f64, high: f64) -> Vec<Location> {
    let above = clip(vertices, |p| p[k] - low);
    clip(&above, |p| high - p[k])
}

fn clip(vertices: &[Location], inside: impl Fn(Location) -> f64) -> Vec<Location> {
    let mut out = Vec::with_capacity(vertices.len() + 4);
    for (a, b) in sides(vertices) {
        let (at_a, at_b) = (inside(a), inside(b));
        if at_a >= 0.0 {
            out.push(a);
        }
        if at_a * at_b < 0.0 {
            let t = at_a / (at_a - at_b);
            out.push([0, 1].map(|k| a[k] + t * (b[k] - a[k])));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An L-shaped polygon of area 3, far from the origin.
    fn corner(scale: f64, shift: f64) -> Window {
        let at = [[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2], [0, 0]];
        let vertices = at.map(|p| p.map(|x| shift + scale * f64::from(x)));
        Window::new(vertices.to_vec()).unwrap()
    }

    #[test]
    fn cells_have_the_moments_of_the_window() {
        for (scale, shift) in [(1.0, 0.0), (1000.0, 4e6)] {
            let window = corner(scale, shift);
            let area = 3.0 * scale * scale;
            assert!((window.area() / area - 1.0).abs() < 1e-12);
            for length in [0.3, 0.07] {
                let cells = window.cells(length * scale).unwrap();
                let total: f64 = cells.iter().map(|c| c.area).sum();
                assert!((total / area - 1.0).abs() < 1e-9, "{total}");
                // The integral of x over the window is 2.5.
                let first: f64 = (cells.iter()).map(|c| c.area * (c.at[0] - shift)).sum();
                assert!(
                    (first / (2.5 * scale.powi(3)) - 1.0).abs() < 1e-9,
                    "{first}"
                );
                assert!(cells.iter().all(|c| window.contains(c.at)));
            }
        }
    }

    /// The error of the integral of a curved function falls with the square of the length.
    #[test]
    fn sums_over_cells_converge() {
        let window = corner(1.0, 0.0);
        // ∫ e^(x+y) over the square of side 2, minus that over its upper right quarter.
        let e = std::f64::consts::E;
        let exact = (e * e - 1.0).powi(2) - (e * e - e).powi(2);
        let error = |length: f64| {
            let cells = window.cells(length).unwrap();
            let sum: f64 = cells
                .iter()
                .map(|c| c.area * (c.at[0] + c.at[1]).exp())
                .sum();
            (sum - exact).abs()
        };
        let (coarse, fine) = (error(0.13), error(0.065));
        assert!(
            coarse < 0.02 * exact && fine < 0.3 * coarse,
            "{coarse} {fine}"
        );
    }

    #[test]
    fn points_are_inside_or_outside() {
        let window = corner(1000.0, 4e6);
        let at = |x: f64, y: f64| window.contains([4e6 + 1000.0 * x, 4e6 + 1000.0 * y]);
        assert!(at(0.5, 1.5) && at(1.5, 0.5) && at(1.0, 1.5) && at(0.0, 0.0));
        assert!(!at(1.5, 1.5) && !at(-0.01, 1.0) && !at(1.0, 2.01));
        let crossed = vec![[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]];
        let flat = vec![[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]];
        for (vertices, message) in [
            (crossed, "cross"),
            (flat, "no area"),
            (vec![[0.0; 2]; 2], "at least three vertices"),
        ] {
            let error = Window::new(vertices).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        assert!(window.cells(0.1).unwrap_err().to_string().contains("cells"));
    }
}
