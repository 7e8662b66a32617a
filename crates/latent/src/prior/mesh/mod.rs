//! Triangulations of the locations of a table's rows, and stationary fields on them (Lindgren, Rue and Lindström 2011).
//!
//! | file | subject |
//! | --- | --- |
//! | `hull` | the convex hull of the locations, distances from it, and a curve around it |
//! | `refine` | the triangulation: locations, a border around them, and nodes between them |
//! | `elements` | the precision of a field by linear finite elements, and its error |
//! | `term` | the term of a specification |
//!
//! Coordinates are differences from the middle of the locations, divided by the longer side of the rectangle around them.
//! The mesh therefore does not depend on the unit and the origin of the columns.

mod elements;
mod hull;
mod refine;
mod term;

pub use elements::Discretisation;

use spade::{FloatTriangulation, Point2, Triangulation};

use super::inputs::{Covariate, Source, matrix};
use super::times::short;
use hull::Hull;
use refine::Triangles;

/// A point in the coordinates of the mesh.
pub(super) type Location = [f64; 2];

/// The distances that define a mesh, in its coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distances {
    /// The longest edge between locations.
    pub edge: f64,
    /// Locations closer than this share a node.
    pub cutoff: f64,
    /// The distance by which the mesh extends beyond the convex hull of the locations.
    pub extension: f64,
}

/// A triangulation of the locations of rows and of a margin around them.
#[derive(Clone, Debug)]
pub struct Mesh {
    /// The coordinates.
    pub inputs: Vec<Covariate>,
    /// The distances that define the mesh.
    pub distances: Distances,
    /// The distinct locations of the rows, in order.
    pub locations: Vec<Location>,
    triangles: Triangles,
}

impl PartialEq for Mesh {
    fn eq(&self, other: &Self) -> bool {
        // The triangulation is a function of these.
        (&self.inputs, self.distances, &self.locations)
            == (&other.inputs, other.distances, &other.locations)
    }
}

impl Mesh {
    /// Triangulates these locations.
    pub(super) fn new(
        inputs: Vec<Covariate>,
        locations: Vec<Location>,
        distances: Distances,
    ) -> Result<Self, String> {
        let locations = refine::distinct(locations);
        let hull = Hull::of(&locations);
        if hull.is_line() {
            return Err(format!(
                "all locations are on one line, which a mesh cannot triangulate; use a process along the line, such as \
                 `gp(matern32, on={0})` or `ar1(on={0})`",
                inputs[0].column
            ));
        }
        let triangles = refine::triangulate(&locations, &hull, distances)?;
        Ok(Self {
            inputs,
            distances,
            locations,
            triangles,
        })
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.triangles.num_vertices()
    }

    /// Returns the nodes around a location and their barycentric weights, or `None` outside the mesh.
    pub fn weights(&self, location: Location) -> Option<Vec<(usize, f64)>> {
        let mut found = Vec::new();
        let [x, y] = location;
        self.triangles
            .barycentric()
            .get_weights(Point2::new(x, y), &mut found);
        let nodes = found.iter().map(|(node, weight)| (node.index(), *weight));
        (!found.is_empty()).then(|| nodes.collect())
    }

    /// Returns the corners and the area of each triangle. Triangles without area along the border are omitted.
    fn corners(&self) -> impl Iterator<Item = ([(usize, Location); 3], f64)> {
        self.triangles.inner_faces().filter_map(|face| {
            let corners = face.vertices().map(|vertex| {
                let point = vertex.position();
                (vertex.index(), [point.x, point.y])
            });
            let [a, b, c] = corners.map(|(_, location)| location);
            let longest = [[a, b], [b, c], [c, a]].map(|[p, q]| hull::distance(p, q));
            let longest = longest.into_iter().fold(0.0, f64::max);
            let area = 0.5 * hull::cross(a, b, c);
            // Rounding moves nodes of a straight border by a 1e-16th, and the triangle between three of them is flat.
            (area > 1e-6 * longest * longest).then_some((corners, area))
        })
    }

    /// Returns the weights of the nodes in rows of a table.
    ///
    /// # Errors
    /// Fails if a value is missing or a row is outside the mesh.
    pub(super) fn rows(
        &self,
        source: &dyn Source,
        rows: &[usize],
    ) -> Result<Vec<Vec<(usize, f64)>>, String> {
        let locations = matrix(&self.inputs, source, rows)?;
        let each = rows.iter().enumerate();
        each.map(|(i, row)| {
            let location = [locations.get(i, 0), locations.get(i, 1)];
            self.weights(location).ok_or_else(|| {
                let (x, y) = (&self.inputs[0], &self.inputs[1]);
                format!(
                    "row {} has (`{}`, `{}`) = ({}, {}), which is outside the mesh: it extends {} beyond the locations of \
                     the fitted rows; fit with a longer `extension`",
                    row + 1,
                    x.column,
                    y.column,
                    short(x.centre + x.scale * location[0]),
                    short(y.centre + y.scale * location[1]),
                    short(x.scale.abs() * self.distances.extension)
                )
            })
        })
        .collect()
    }
}
