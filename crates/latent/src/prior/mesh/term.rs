//! The term of a field on a mesh.

use std::sync::Arc;

use super::elements::EDGE;
use super::{Distances, Location, Mesh};
use crate::prior::field::Field;
use crate::prior::inputs::matrix;
use crate::prior::read::Reader;
use crate::prior::spec::SpecError;
use crate::prior::term::{Body, Builder};
use crate::prior::times::short;

/// The starting value of the range, as a share of the longer side of the rectangle around the locations.
const RANGE: f64 = 0.2;

/// Default extension as a share of the starting range. The correlation of a location at the hull with its mirror image
/// beyond the border is then 0.0001, and it is 0.01 if the range is twice the starting value.
const EXTENSION: f64 = 2.0;

/// Default distance below which locations share a node, as a share of the longest edge. All nodes are then about evenly
/// spaced.
const CUTOFF: f64 = 0.5;

impl Builder<'_, '_> {
    pub(in crate::prior) fn mesh(
        &self,
        notes: &mut Vec<String>,
    ) -> Result<(Reader, Body), SpecError> {
        let known = self.known;
        let at_call = |message: String| known.error(&known.call.name.span, message);
        known.at_most(1)?;
        match known.words()[..] {
            [kind] if kind.text == "spde" => {}
            [kind] => {
                let message = format!("there is no field `{}` on a mesh; write spde", kind.text);
                return Err(known.error(&kind.span, message));
            }
            _ => return Err(known.misused("`mesh` needs a kind of field")),
        }
        let Some([_, _]) = known.list("on") else {
            return Err(known.misused("`mesh` needs two columns of coordinates"));
        };
        let mut inputs = self.inputs(notes)?;
        let table = matrix(&inputs, self.source, self.rows).map_err(at_call)?;
        let range = |d: usize| {
            let ends = (f64::INFINITY, f64::NEG_INFINITY);
            let wider = |(low, high): (f64, f64), x: &f64| (low.min(*x), high.max(*x));
            table.col(d).iter().fold(ends, wider)
        };
        let ranges = [range(0), range(1)];
        let side = ranges.map(|(low, high)| high - low);
        let side = side[0].max(side[1]);
        if !(side > 0.0 && side.is_finite()) {
            return Err(at_call(
                "all rows are at one location; remove the term, or name other columns with `on=`"
                    .to_owned(),
            ));
        }
        for (d, (input, (low, high))) in inputs.iter_mut().zip(ranges).enumerate() {
            input.centre = low + 0.5 * (high - low);
            // Locations and their mirror image have the same mesh, because most of them are on the positive side.
            let sum: f64 = table.col(d).iter().map(|x| x - input.centre).sum();
            input.scale = side.copysign(sum);
        }
        let range = known.setting("range", &self.label, Some(RANGE), side)?;
        let length = |key: &str, usual: f64| match known.one(key)? {
            None => Ok(usual),
            Some(word) => match known.number(word)? {
                given if given > 0.0 => Ok(given / side),
                _ => Err(known.error(&word.span, format!("`{key}` must be positive"))),
            },
        };
        let edge = length("edge", EDGE * range.value)?;
        let distances = Distances {
            edge,
            cutoff: length("cutoff", CUTOFF * edge)?,
            extension: length("extension", (EXTENSION * range.value).max(edge))?,
        };
        if distances.extension < edge {
            return Err(at_call(format!(
                "the extension {} is shorter than the edges of up to {}; set a longer `extension` or a shorter `edge`",
                short(side * distances.extension),
                short(side * edge)
            )));
        }
        let locations = matrix(&inputs, self.source, self.rows).map_err(at_call)?;
        let locations: Vec<Location> = (locations.col(0).iter().zip(locations.col(1)))
            .map(|(x, y)| [*x, *y])
            .collect();
        let mesh = Mesh::new(inputs, locations, distances).map_err(at_call)?;
        notes.push(format!(
            "{}: the mesh has {} nodes for {} locations, with edges of up to {}, and extends {} beyond them",
            self.label,
            mesh.nodes(),
            mesh.locations.len(),
            short(side * edge),
            short(side * distances.extension)
        ));
        let settings = vec![range, self.setting("variance", None)?];
        let field = Field::on_mesh(&mesh, settings).map_err(|error| at_call(error.to_string()))?;
        Ok((Reader::Mesh(Arc::new(mesh)), Body::Field(field)))
    }
}
