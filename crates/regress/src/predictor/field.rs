//! Markov fields over maps. A map contains the neighbours of each region, and each row belongs to a region.

use jensen_data::Adjacency;
use serde::{Deserialize, Serialize};

use super::{Maker, Predictor};
use crate::basis::{eigen, inverse};
use crate::error::Result;
use crate::evaluate::argument;
use crate::syntax::{Argument, Expr, Kind};

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// An intrinsic field (Besag, York and Mollié, Annals of the Institute of Statistical Mathematics 43, 1991).
    Intrinsic,
    /// A mixture of an intrinsic field and independent effects (Riebler, Sørbye, Simpson and Rue, Statistical Methods
    /// in Medical Research 25, 2016).
    Mixed,
    /// A proper field, which has a parameter for the strength of dependence.
    Proper,
}

const KINDS: [(&str, FieldKind); 3] = [
    ("icar", FieldKind::Intrinsic),
    ("bym2", FieldKind::Mixed),
    ("escar", FieldKind::Proper),
];

/// A map of regions, ordered by connected component. Regions without neighbours come last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldState {
    /// The number of the first region in the file, which is 0 or 1.
    first: usize,
    /// The position of each region in the order of the map.
    places: Vec<usize>,
    /// The sizes of the connected components that have at least two regions.
    pub parts: Vec<usize>,
    /// The pairs of neighbouring regions, given by their positions.
    pub edges: Vec<(usize, usize)>,
}

/// A field evaluated over the rows of a frame.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name of the column that contains the regions.
    pub name: String,
    /// The type of the field.
    pub kind: FieldKind,
    /// The position of each row's region.
    pub index: Vec<usize>,
    /// The map over which the field is defined.
    pub map: FieldState,
}

impl FieldState {
    fn of(graph: &Adjacency, first: usize) -> Self {
        let neighbours = graph.neighbours();
        let mut places = vec![usize::MAX; graph.nodes()];
        let (mut next, mut parts) = (0, Vec::new());
        for start in 0..graph.nodes() {
            if places[start] != usize::MAX || neighbours[start].is_empty() {
                continue;
            }
            let before = next;
            let mut waiting = vec![start];
            places[start] = next;
            next += 1;
            while let Some(node) = waiting.pop() {
                for other in &neighbours[node] {
                    if places[*other] == usize::MAX {
                        places[*other] = next;
                        next += 1;
                        waiting.push(*other);
                    }
                }
            }
            parts.push(next - before);
        }
        for place in &mut places {
            if *place == usize::MAX {
                *place = next;
                next += 1;
            }
        }
        let pairs = neighbours.iter().enumerate();
        let pairs = pairs.flat_map(|(a, list)| list.iter().map(move |b| (a, *b)));
        let edges = pairs
            .filter(|(a, b)| a < b)
            .map(|(a, b)| (places[a], places[b]))
            .collect();
        Self {
            first,
            places,
            parts,
            edges,
        }
    }

    /// Returns the number of regions.
    pub fn regions(&self) -> usize {
        self.places.len()
    }

    /// Returns the number that the table uses for the region at each position.
    pub fn labels(&self) -> Vec<String> {
        let mut labels = vec![String::new(); self.places.len()];
        for (region, place) in self.places.iter().enumerate() {
            labels[*place] = (region + self.first).to_string();
        }
        labels
    }

    /// Returns the number of neighbours of the region at each position.
    pub fn degrees(&self) -> Vec<f64> {
        let mut degrees = vec![0.0; self.places.len()];
        for (a, b) in &self.edges {
            degrees[*a] += 1.0;
            degrees[*b] += 1.0;
        }
        degrees
    }

    /// Returns the typical variance of an intrinsic field at each position, which is the geometric mean of the
    /// variances in the position's component (Sørbye and Rue, Spatial Statistics 8, 2014). After division by the square
    /// root of this mean, the field has variances of about 1. For regions without neighbours, the mean is 1
    /// (Freni-Sterrantino, Ventrucci and Rue, Spatial and Spatio-temporal Epidemiology 26, 2018).
    pub fn variances(&self) -> Vec<f64> {
        let mut found = vec![1.0; self.places.len()];
        let mut start = 0;
        for size in &self.parts {
            let mut precision = vec![vec![0.0; *size]; *size];
            let within = |place: &usize| (start..start + size).contains(place);
            for (a, b) in self.edges.iter().filter(|(a, _)| within(a)) {
                let (a, b) = (a - start, b - start);
                precision[a][a] += 1.0;
                precision[b][b] += 1.0;
                precision[a][b] -= 1.0;
                precision[b][a] -= 1.0;
            }
            // Adding the projector onto constants makes the matrix regular. Its inverse is then the generalised inverse
            // of the field's matrix plus the projector.
            let share = 1.0 / *size as f64;
            precision.iter_mut().flatten().for_each(|q| *q += share);
            let covariance = inverse(&precision);
            let variance = |row: usize| covariance[row][row] - share;
            let logs: f64 = (0..*size).map(|row| variance(row).ln()).sum();
            found[start..start + size].fill((logs / *size as f64).exp());
            start += size;
        }
        found
    }

    /// Divides each row and each column of the adjacency matrix by the square root of the number of neighbours, and
    /// returns the eigenvalues λ of the result. The log determinant of a proper field is the sum of log(1 − α λ), up to
    /// a constant.
    pub fn eigenvalues(&self) -> Vec<f64> {
        let degrees = self.degrees();
        let n = self.places.len();
        let mut matrix = vec![vec![0.0; n]; n];
        for (a, b) in &self.edges {
            let value = 1.0 / (degrees[*a] * degrees[*b]).sqrt();
            matrix[*a][*b] = value;
            matrix[*b][*a] = value;
        }
        eigen(&matrix).values
    }
}

impl Maker<'_, '_> {
    /// Adds the field of a term to a predictor. An example of a term is `car("map.graph", gr = region, type = "bym2")`.
    pub(super) fn field(
        &mut self,
        call: &Expr,
        arguments: &[Argument],
        made: &mut Predictor,
    ) -> Result<()> {
        let Kind::Text(file) = &arguments[0].value.kind else {
            return Err(self
                .error(&arguments[0].value, "a map must be a file name in quotes")
                .help(super::takes("car")));
        };
        if made.field.is_some() {
            return Err(self.error(call, "a formula can have only one map"));
        }
        let Some(column) = argument(arguments, &["gr"], 1) else {
            return Err(self
                .error(call, "no column gives the region of each row")
                .help(super::takes("car")));
        };
        let kind = match argument(arguments, &["type"], usize::MAX) {
            None => FieldKind::Proper,
            Some(expr) => {
                let name = match &expr.kind {
                    Kind::Text(name) | Kind::Name(name) => name.as_str(),
                    _ => "",
                };
                let row = KINDS.iter().find(|(known, _)| *known == name);
                let Some((_, kind)) = row else {
                    return Err(self
                        .error(expr, format!("there is no field of type {expr}"))
                        .help("choose icar, bym2 or escar"));
                };
                *kind
            }
        };
        let regions = self.evaluator.numbers(column)?;
        if !self.fields.contains_key(file) {
            let Some(graph) = self.evaluator.frame.graphs.get(file) else {
                return Err(self.error(&arguments[0].value, "Jensen has not read the map"));
            };
            let first = usize::from(!regions.contains(&0.0));
            self.fields
                .insert(file.clone(), FieldState::of(graph, first));
        }
        let map = self.fields[file].clone();
        let last = map.first + map.regions() - 1;
        let place = |x: &f64| {
            let inside = x.fract() == 0.0 && *x >= map.first as f64 && *x <= last as f64;
            inside.then(|| map.places[*x as usize - map.first])
        };
        let index: Option<Vec<usize>> = regions.iter().map(place).collect();
        let Some(index) = index else {
            let other = regions
                .iter()
                .find(|x| place(x).is_none())
                .unwrap_or(&f64::NAN);
            return Err(self
                .error(
                    column,
                    format!("`{column}` is {other}, which is not a region of the map"),
                )
                .help(format!(
                    "its regions are numbered from {} to {last}",
                    map.first
                )));
        };
        if kind == FieldKind::Proper && map.degrees().contains(&0.0) {
            return Err(self
                .error(call, "a region of the map has no neighbour")
                .help("use type = \"bym2\" or \"icar\", which give it an independent effect"));
        }
        made.field = Some(Field {
            name: column.to_string(),
            kind,
            index,
            map,
        });
        Ok(())
    }
}
