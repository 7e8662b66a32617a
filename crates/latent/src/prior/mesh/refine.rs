//! Delaunay triangulations with short edges.
//!
//! A centre of a circumscribed circle becomes a node if the circle's diameter is longer than the edges may be (Chew,
//! *Guaranteed-quality triangular meshes*, 1989). No node is inside such a circle, so new nodes are at least half of the
//! longest edge apart, the refinement ends, and no angle between such nodes is below 30°.

use spade::{DelaunayTriangulation, HierarchyHintGenerator, Point2, Triangulation};

use super::hull::{Hull, distance};
use super::{Distances, Location};

pub(super) type Triangles =
    DelaunayTriangulation<Point2<f64>, (), (), (), HierarchyHintGenerator<f64>>;

/// Coordinates of nodes are multiples of this number, a millionth of the longer side. The mesh of the same locations in other
/// units is therefore the same, unless a rounding error of the units, which is much smaller, changes a multiple.
const GRAIN: f64 = 1.0 / (1u64 << 20) as f64;

/// Beyond the locations, the longest edge grows by this share of the distance. The border is far from the rows, and their
/// covariances do not depend on short edges there.
const GROWTH: f64 = 0.3;

/// The distance between nodes of the border, as a share of the longest edge there.
const BORDER: f64 = 0.8;

/// Least distance of other nodes from the border, as a share of the longest edge there. The triangles between the two
/// have no small angles.
const APART: f64 = 0.4;

/// Largest number of nodes. Their precision matrix takes several gigabytes.
const MOST: usize = 300_000;

fn snapped(location: Location) -> Location {
    // The sum turns −0 into 0.
    location.map(|x| (x / GRAIN).round() * GRAIN + 0.0)
}

/// Returns the distinct locations in order.
pub(super) fn distinct(locations: Vec<Location>) -> Vec<Location> {
    let mut out: Vec<Location> = locations.into_iter().map(snapped).collect();
    out.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    out.dedup();
    out
}

/// Returns the distance of the nearest node.
fn nearest(triangles: &Triangles, location: Location) -> f64 {
    let found = triangles.nearest_neighbor(Point2::new(location[0], location[1]));
    found.map_or(f64::INFINITY, |vertex| {
        let point = vertex.position();
        distance(location, [point.x, point.y])
    })
}

/// Triangulates distinct locations in order and a margin around their hull.
pub(super) fn triangulate(
    locations: &[Location],
    hull: &Hull,
    distances: Distances,
) -> Result<Triangles, String> {
    let Distances {
        edge,
        cutoff,
        extension,
    } = distances;
    let longest = |away: f64| edge + GROWTH * (away - edge).max(0.0);
    // An even mesh has 2/√3 nodes per square of the edge.
    if hull.area() / (edge * edge) > MOST as f64 {
        return Err(too_many());
    }
    let mut triangles = Triangles::new();
    let add = |triangles: &mut Triangles, [x, y]: Location| {
        if triangles.num_vertices() >= MOST {
            return Err(too_many());
        }
        let failed = |error| format!("the location ({x}, {y}) cannot be triangulated: {error}");
        triangles.insert(Point2::new(x, y)).map_err(failed)
    };
    for location in hull.around(extension, BORDER * longest(extension)) {
        add(&mut triangles, snapped(location))?;
    }
    for location in locations {
        if nearest(&triangles, *location) >= cutoff {
            add(&mut triangles, *location)?;
        }
    }
    loop {
        let wide = |(centre, square): (Point2<f64>, f64)| {
            let least = 0.5 * edge;
            if square <= least * least {
                return None;
            }
            let location = snapped([centre.x, centre.y]);
            let away = hull.distance(location);
            let own = longest(away);
            let is_inside = away <= extension - APART * own;
            (is_inside && 4.0 * square > own * own).then_some((location, 0.5 * own))
        };
        let centres: Vec<(Location, f64)> = triangles
            .inner_faces()
            .filter_map(|face| wide(face.circumcircle()))
            .collect();
        let before = triangles.num_vertices();
        for (centre, least) in centres {
            // An earlier centre may be inside this circle.
            if nearest(&triangles, centre) >= least {
                add(&mut triangles, centre)?;
            }
        }
        if triangles.num_vertices() == before {
            return Ok(triangles);
        }
    }
}

fn too_many() -> String {
    format!("the mesh needs more than {MOST} nodes; set a longer `edge`")
}
