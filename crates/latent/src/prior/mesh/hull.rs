//! Convex hulls of locations.

use std::f64::consts::TAU;

use super::Location;

/// Locations count as being on a line if their hull is narrower than this share of its length.
const LINE: f64 = 1e-5;

/// The angle between neighbouring points of an arc around a corner.
const ARC: f64 = 0.1;

pub(super) fn distance(a: Location, b: Location) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

/// Returns twice the area of the triangle, which is positive if the corners are in anticlockwise order.
pub(super) fn cross(a: Location, b: Location, c: Location) -> f64 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

/// A convex polygon with corners in anticlockwise order.
pub(super) struct Hull {
    corners: Vec<Location>,
}

impl Hull {
    /// Returns the hull of locations in lexicographic order.
    pub(super) fn of(locations: &[Location]) -> Self {
        let mut corners = chain(locations.iter());
        corners.extend(chain(locations.iter().rev()));
        Self { corners }
    }

    /// Returns the sides from corner to corner.
    fn sides(&self) -> impl Iterator<Item = (Location, Location)> {
        let next = self.corners.iter().cycle().skip(1);
        self.corners.iter().copied().zip(next.copied())
    }

    pub(super) fn is_line(&self) -> bool {
        let Some(first) = self.corners.first() else {
            return true;
        };
        let twice: f64 = self.sides().map(|(a, b)| cross(*first, a, b)).sum();
        let longest = self.corners.iter().map(|corner| distance(*first, *corner));
        let longest = longest.fold(0.0, f64::max);
        twice <= 2.0 * LINE * longest * longest
    }

    pub(super) fn area(&self) -> f64 {
        let first = self.corners[0];
        0.5 * self.sides().map(|(a, b)| cross(first, a, b)).sum::<f64>()
    }

    /// Returns the distance of a location from the hull, which is 0 inside.
    pub(super) fn distance(&self, location: Location) -> f64 {
        let outside = self.sides().filter(|(a, b)| cross(*a, *b, location) < 0.0);
        let from_side = |(a, b): (Location, Location)| {
            let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
            let along = (location[0] - a[0]) * dx + (location[1] - a[1]) * dy;
            let share = (along / (dx * dx + dy * dy)).clamp(0.0, 1.0);
            distance(location, [a[0] + share * dx, a[1] + share * dy])
        };
        let nearest = outside.map(from_side).fold(f64::INFINITY, f64::min);
        if nearest.is_finite() { nearest } else { 0.0 }
    }

    /// Returns points at this distance from the hull, evenly spaced and at most `step` apart.
    pub(super) fn around(&self, distance: f64, step: f64) -> Vec<Location> {
        let count = self.corners.len();
        let heading = |k: usize| {
            let (a, b) = (self.corners[k % count], self.corners[(k + 1) % count]);
            (b[1] - a[1]).atan2(b[0] - a[0])
        };
        let mut curve = Vec::new();
        for k in 0..count {
            // The outward direction is a quarter turn to the right of the heading.
            let from = heading(k + count - 1) - TAU / 4.0;
            let turn = (heading(k) - heading(k + count - 1)).rem_euclid(TAU);
            let pieces = (turn / ARC).ceil().max(1.0);
            for j in 0..=pieces as usize {
                let (sin, cos) = (from + turn * j as f64 / pieces).sin_cos();
                let [x, y] = self.corners[k];
                curve.push([x + distance * cos, y + distance * sin]);
            }
        }
        spaced(&curve, step)
    }
}

/// Returns the lower side of the hull of sorted locations, without its last corner.
fn chain<'a>(locations: impl Iterator<Item = &'a Location>) -> Vec<Location> {
    let mut out: Vec<Location> = Vec::new();
    for location in locations {
        while let [.., a, b] = out[..]
            && cross(a, b, *location) <= 0.0
        {
            out.pop();
        }
        out.push(*location);
    }
    out.pop();
    out
}

/// Returns evenly spaced points along a closed curve.
fn spaced(curve: &[Location], step: f64) -> Vec<Location> {
    let next = curve.iter().cycle().skip(1);
    let sides = || curve.iter().zip(next.clone());
    let length: f64 = sides().map(|(a, b)| distance(*a, *b)).sum();
    let count = (length / step).ceil().max(3.0);
    let mut out = Vec::with_capacity(count as usize);
    let mut passed = 0.0;
    for (a, b) in sides() {
        let own = distance(*a, *b);
        while (out.len() as f64) < count && length * out.len() as f64 / count < passed + own {
            let share = (length * out.len() as f64 / count - passed) / own;
            out.push([a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])]);
        }
        passed += own;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_square_has_its_hull_and_its_surroundings() {
        let mut locations: Vec<Location> = (0..25)
            .map(|i| [f64::from(i / 5) / 4.0, f64::from(i % 5) / 4.0])
            .collect();
        locations.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
        let hull = Hull::of(&locations);
        assert_eq!(
            hull.corners,
            [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
        );
        assert!((hull.area() - 1.0).abs() < 1e-15 && !hull.is_line());
        assert_eq!(hull.distance([0.3, 0.9]), 0.0);
        assert_eq!(hull.distance([0.3, -0.5]), 0.5);
        assert!((hull.distance([2.0, 2.0]) - 2f64.sqrt()).abs() < 1e-15);
        let around = hull.around(0.5, 0.2);
        // The length of the curve is 4 + π.
        assert_eq!(around.len(), 36);
        assert!(
            around
                .iter()
                .all(|p| (hull.distance(*p) - 0.5).abs() < 1e-3)
        );
        let line: Vec<Location> = (0..5).map(|i| [f64::from(i), f64::from(i)]).collect();
        assert!(Hull::of(&line).is_line() && Hull::of(&line[..1]).is_line());
    }
}
