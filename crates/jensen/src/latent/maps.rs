//! Figures of latent fields: lines with bands, heat maps of grids, and graphs of neighbouring regions.

use jensen_latent::prior::{
    Basis, Covariate, Graph, Index, InducingPoints, Mesh, Piece, Reader, Repeats, Tensor,
};
use jensen_report::figure::{Axis, Chart, Figure, HeatMap, Series};

use super::posterior::moments as of_mixture;
use super::summary::labels;
use super::{Known, TableModel};

/// The half-width, in standard deviations, of the central interval that contains 95 % of a normal distribution.
const BAND: f64 = 1.96;

const BARS: usize = 80;

/// Number of copies of a term that are drawn.
const MOST_COPIES: usize = 24;

pub(super) type Drawn = (Figure, String);

/// Returns the means and standard deviations of the latent variables of one part of the prior. If the model has several
/// copies of the latent variables, `copy` is the index of the copy and `times` is the number of copies.
fn moments(known: &Known, piece: &Piece, times: usize, copy: usize) -> (Vec<f64>, Vec<f64>) {
    let each = piece.latents.clone().map(|l| {
        let (mean, variance) = of_mixture(&known.latents, l * times + copy);
        (mean, variance.sqrt())
    });
    each.unzip()
}

pub(super) fn draw(model: &TableModel, known: &Known, graphs: &[(String, Graph)]) -> Vec<Drawn> {
    let times = model.likelihood().predictors();
    let mut drawn = Vec::new();
    let constrained =
        |piece: &&Piece| (piece.repeats.as_ref()).is_some_and(Repeats::is_constrained);
    // The latent variables of constrained copies are coefficients, which have no position.
    for piece in (model.assembled().pieces().iter()).filter(|piece| !constrained(piece)) {
        let copies = piece.repeats.as_ref().map_or(1, Repeats::count);
        for copy in 0..times {
            let (mean, sd) = moments(known, piece, times, copy);
            let title = match times {
                1 => piece.name.clone(),
                _ => format!("{}, category {}", piece.name, copy + 1),
            };
            let nodes = mean.len() / copies;
            for number in 0..copies.min(MOST_COPIES) {
                let own = number * nodes..(number + 1) * nodes;
                let title = match &piece.repeats {
                    None => title.clone(),
                    Some(repeats) => {
                        format!("{title}, {} = {}", repeats.column(), repeats.label(number))
                    }
                };
                let moments = (&mean[own.clone()], &sd[own]);
                drawn.extend(of_copy(
                    model,
                    known,
                    graphs,
                    piece,
                    (copy, &title),
                    moments,
                ));
            }
        }
    }
    drawn
}

/// Draws one copy of a part of the prior.
fn of_copy(
    model: &TableModel,
    known: &Known,
    graphs: &[(String, Graph)],
    piece: &Piece,
    (copy, title): (usize, &str),
    (mean, sd): (&[f64], &[f64]),
) -> Vec<Drawn> {
    let mut drawn = Vec::new();
    match &piece.reader {
        Reader::Inputs(columns)
        | Reader::Basis(Basis {
            inputs: columns, ..
        })
        | Reader::Inducing(InducingPoints {
            inputs: columns, ..
        }) => {
            if let Some(column) = Covariate::only_column(columns) {
                drawn.extend(inputs(model, known, column, copy));
            }
        }
        Reader::At(Index::Cells { lattice, .. }) => {
            let cells = |values: &[f64]| -> Vec<f64> {
                // The heat map draws its first row at the bottom.
                (0..lattice.rows)
                    .rev()
                    .flat_map(|r| (0..lattice.columns).map(move |c| (r, c)))
                    .map(|(r, c)| lattice.node(r, c).map_or(f64::NAN, |node| values[node]))
                    .collect()
            };
            for (what, values) in [("mean", mean), ("standard deviation", sd)] {
                drawn.push(grid(
                    title,
                    what,
                    cells(values),
                    lattice.rows,
                    lattice.columns,
                ));
            }
        }
        Reader::At(Index::Line {
            column, from, step, ..
        }) => {
            let x = (0..mean.len()).map(|i| from + step * i as f64).collect();
            drawn.push(line(title, column, x, mean, sd));
        }
        Reader::At(Index::Times(times)) => {
            let x = times.nodes.clone();
            drawn.push(line(title, &times.column, x, mean, sd));
        }
        Reader::At(Index::Regions { nodes, .. }) => {
            drawn.extend(regions(
                title,
                piece,
                &mean[..*nodes],
                &sd[..*nodes],
                graphs,
            ));
        }
        Reader::At(Index::Rows { nodes }) => {
            let on_graph = regions(title, piece, &mean[..*nodes], &sd[..*nodes], graphs);
            if on_graph.is_empty() {
                let x = (0..*nodes).map(|i| (i + 1) as f64).collect();
                drawn.push(line(title, "row", x, mean, sd));
            } else {
                drawn.extend(on_graph);
            }
        }
        Reader::Mesh(mesh) => {
            drawn.extend(mesh_maps(title, mesh, mean, sd));
        }
        Reader::Tensor(tensor) => drawn.push(tensor_map(title, tensor, mean)),
        Reader::At(Index::Groups { .. }) | Reader::Covariates(_) => {
            drawn.push(bars(title, &labels(piece), mean, sd));
        }
        _ => {}
    }
    drawn
}

fn grid(title: &str, what: &str, values: Vec<f64>, rows: usize, columns: usize) -> Drawn {
    let (height, width) = (rows as f64, columns as f64);
    // The panel has the aspect ratio of the grid, plus room for the axes and the colour scale.
    let scale = (420.0 / width).min(420.0 / height);
    let map = HeatMap::new(
        format!("{title}: {what}"),
        (0.0, width),
        (0.0, height),
        columns,
        values,
    )
    .x(Axis::new("column"))
    .y(Axis::new("row, from the last"))
    .value(Axis::new(""))
    .sized(
        (width * scale + 130.0).max(240.0),
        (height * scale + 80.0).max(200.0),
    );
    let caption = format!("Posterior {what} of the field, on the scale of the linear predictor.");
    (Figure::new("").panel(map), caption)
}

/// A field over two columns, whose value at a point is a weighted sum of variables.
struct Surface<'a> {
    columns: [&'a str; 2],
    /// The ranges of the columns that are drawn.
    ranges: [(f64, f64); 2],
    /// The lengths of the sides of the map, in any unit.
    sides: [f64; 2],
    /// The variables and weights of a point.
    weights: &'a dyn Fn([f64; 2]) -> Option<Vec<(usize, f64)>>,
}

impl Surface<'_> {
    fn draw(&self, title: &str, what: &str, values: &[f64]) -> Drawn {
        /// Number of cells along the longer side of a map.
        const LONGER: f64 = 60.0;
        let [x, y] = self.ranges;
        let longer = self.sides[0].max(self.sides[1]);
        let [columns, rows] = (self.sides).map(|side| (LONGER * (side / longer).max(0.2)).round());
        let middle =
            |(low, high): (f64, f64), i: usize, of: f64| low + (high - low) * (i as f64 + 0.5) / of;
        let cells = (0..rows as usize).flat_map(|r| (0..columns as usize).map(move |c| (r, c)));
        let value = |(r, c)| {
            let weights = (self.weights)([middle(x, c, columns), middle(y, r, rows)]);
            weights.map_or(f64::NAN, |weights| {
                weights.iter().map(|(at, w)| w * values[*at]).sum()
            })
        };
        let values = cells.map(value).collect();
        let scale = 420.0 / LONGER;
        let map = HeatMap::new(format!("{title}: {what}"), x, y, columns as usize, values)
            .x(Axis::new(self.columns[0]))
            .y(Axis::new(self.columns[1]))
            .value(Axis::new(""))
            .sized(
                (columns * scale + 130.0).max(240.0),
                (rows * scale + 80.0).max(200.0),
            );
        let caption =
            format!("Posterior {what} of the field, on the scale of the linear predictor.");
        (Figure::new("").panel(map), caption)
    }
}

/// Draws a field on a mesh over the rectangle around the locations of the rows. Standard deviations are interpolated
/// between the nodes.
fn mesh_maps(title: &str, mesh: &Mesh, mean: &[f64], sd: &[f64]) -> [Drawn; 2] {
    let table = |d: usize, u: f64| mesh.inputs[d].centre + mesh.inputs[d].scale * u;
    let range = |d: usize| {
        let all = mesh.locations.iter().map(|location| table(d, location[d]));
        all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
            (low.min(x), high.max(x))
        })
    };
    let ranges = [range(0), range(1)];
    let surface = Surface {
        columns: [&mesh.inputs[0].column, &mesh.inputs[1].column],
        sides: ranges.map(|(low, high)| high - low),
        ranges,
        weights: &|point| {
            let inside = |d: usize| (point[d] - table(d, 0.0)) / mesh.inputs[d].scale;
            mesh.weights([inside(0), inside(1)])
        },
    };
    [
        surface.draw(title, "mean", mean),
        surface.draw(title, "standard deviation", sd),
    ]
}

fn tensor_map(title: &str, tensor: &Tensor, mean: &[f64]) -> Drawn {
    let [x, z] = &tensor.axes;
    let surface = Surface {
        columns: [&x.column, &z.column],
        ranges: [(x.from, x.to), (z.from, z.to)],
        sides: [1.0, 1.0],
        weights: &|point| tensor.weights(point),
    };
    surface.draw(title, "mean", mean)
}

fn line(title: &str, column: &str, x: Vec<f64>, mean: &[f64], sd: &[f64]) -> Drawn {
    let band = mean
        .iter()
        .zip(sd)
        .map(|(m, s)| (m - BAND * s, m + BAND * s));
    let chart = Chart::new(title)
        .x(Axis::new(column))
        .y(Axis::new("posterior mean"))
        .series(Series::line("", x.into_iter().zip(mean.iter().copied())).band(band))
        .sized(560.0, 320.0)
        .without_legend();
    let caption = "Posterior mean with a 95 % band, on the scale of the linear predictor.";
    (Figure::new("").panel(chart), caption.to_owned())
}

fn bars(title: &str, names: &[String], mean: &[f64], sd: &[f64]) -> Drawn {
    let mut order: Vec<usize> = (0..mean.len()).collect();
    order.sort_by(|a, b| mean[*a].total_cmp(&mean[*b]).then(a.cmp(b)));
    let hidden = order.len().saturating_sub(BARS);
    if hidden > 0 {
        // Half of the bars show the smallest effects and the other half show the largest effects.
        let half = BARS / 2;
        order = [&order[..half], &order[order.len() - half..]].concat();
    }
    let mut chart = Chart::new(title)
        .x(Axis::new("effect"))
        .y(Axis::new("effects in order"))
        .sized(560.0, (order.len() as f64 * 7.0 + 90.0).clamp(180.0, 640.0))
        .without_legend();
    for (position, i) in order.iter().enumerate() {
        let y = position as f64 + 1.0;
        let ends = [mean[*i] - BAND * sd[*i], mean[*i] + BAND * sd[*i]];
        chart = chart.series(Series::line("", ends.map(|x| (x, y))).colour(0).width(1.0));
    }
    let points = order
        .iter()
        .enumerate()
        .map(|(position, i)| (mean[*i], position as f64 + 1.0));
    chart = chart.series(Series::scatter("", points).colour(0).width(2.2));
    let ends = match (order.first(), order.last()) {
        (Some(low), Some(high)) => format!(" Lowest: {}; highest: {}.", names[*low], names[*high]),
        _ => String::new(),
    };
    let left_out = match hidden {
        0 => String::new(),
        n => format!(" {n} in the middle are not shown."),
    };
    let caption = format!("Posterior means with 95 % intervals.{ends}{left_out}");
    (Figure::new("").panel(chart), caption)
}

/// Draws the regions as a graph. The model does not contain the shapes of the regions. The figure therefore only puts
/// neighbouring regions close together.
fn regions(
    title: &str,
    piece: &Piece,
    mean: &[f64],
    sd: &[f64],
    graphs: &[(String, Graph)],
) -> Vec<Drawn> {
    let Some((_, graph)) = graphs
        .iter()
        .find(|(name, graph)| *name == piece.name && graph.nodes() == mean.len())
    else {
        return Vec::new();
    };
    let positions = layout(graph);
    let draw = |what: &str, values: &[f64], signed: bool| {
        let (low, high) = values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| {
                (a.min(*x), b.max(*x))
            });
        const CLASSES: usize = 7;
        let class = |x: f64| {
            let share = (x - low) / (high - low).max(f64::MIN_POSITIVE);
            ((share * CLASSES as f64) as usize).min(CLASSES - 1)
        };
        let mut chart = Chart::new(format!("{title}: {what}"))
            .x(Axis::new("neighbours are close together"))
            .y(Axis::new(""))
            .sized(520.0, 520.0);
        for (a, b) in graph.edges() {
            chart = chart.series(
                Series::line("", [positions[a], positions[b]])
                    .colour(6)
                    .width(0.4)
                    .opacity(0.35),
            );
        }
        for k in 0..CLASSES {
            let own = (0..values.len())
                .filter(|i| class(values[*i]) == k)
                .map(|i| positions[i]);
            let edge = |k: usize| low + (high - low) * k as f64 / CLASSES as f64;
            let name = format!("{:.2} to {:.2}", edge(k), edge(k + 1));
            // If the effects have a sign, each sign has its own colour. If the effects have no sign, the figure uses a
            // single colour that becomes more opaque with increasing values.
            let step = k as f64 / (CLASSES - 1) as f64;
            let (colour, opacity) = match signed {
                true if 2 * k < CLASSES - 1 => (0, 1.0 - 1.6 * step),
                true => (1, 0.2 + 1.6 * (step - 0.5)),
                false => (0, 0.15 + 0.85 * step),
            };
            let dots = Series::scatter(name, own).colour(colour).opacity(opacity);
            chart = chart.series(dots.width(3.2));
        }
        let caption = format!(
            "Posterior {what} by region, on the scale of the linear predictor. Positions come from the graph \
             alone: neighbours are close together, and directions have no meaning."
        );
        (Figure::new("").panel(chart), caption)
    };
    vec![
        draw("mean", mean, true),
        draw("standard deviation", sd, false),
    ]
}

/// Computes positions for the nodes of a graph such that each node is close to the mean position of its neighbours. The
/// coordinates are the two smoothest non-constant eigenvectors of the random walk on the graph, computed by orthogonal
/// iteration.
fn layout(graph: &Graph) -> Vec<(f64, f64)> {
    let n = graph.nodes();
    let degree: Vec<f64> = (0..n)
        .map(|i| graph.neighbours(i).len().max(1) as f64)
        .collect();
    let dot = |a: &[f64], b: &[f64]| -> f64 {
        a.iter()
            .zip(b)
            .zip(&degree)
            .map(|((a, b), d)| a * b * d)
            .sum()
    };
    let mut columns: Vec<Vec<f64>> = vec![
        vec![1.0; n],
        (0..n).map(|i| i as f64).collect(),
        // The multiples of the golden ratio provide a second starting vector whose elements are in a different order.
        (0..n)
            .map(|i| (i as f64 * 0.618_033_988_749_895).fract())
            .collect(),
    ];
    for _ in 0..600 {
        for k in 0..columns.len() {
            let (before, rest) = columns.split_at_mut(k);
            let column = &mut rest[0];
            for other in before.iter() {
                let share = dot(column, other);
                column
                    .iter_mut()
                    .zip(other)
                    .for_each(|(x, o)| *x -= share * o);
            }
            let length = dot(column, column).sqrt().max(f64::MIN_POSITIVE);
            column.iter_mut().for_each(|x| *x /= length);
        }
        for column in &mut columns[1..] {
            let moved: Vec<f64> = (0..n)
                .map(|i| {
                    let around: f64 = graph.neighbours(i).iter().map(|j| column[*j]).sum();
                    // The lazy random walk stays at its node with probability ½, so its matrix has no negative
                    // eigenvalues.
                    0.5 * (column[i] + around / degree[i])
                })
                .collect();
            *column = moved;
        }
    }
    columns[1]
        .iter()
        .copied()
        .zip(columns[2].iter().copied())
        .collect()
}

fn inputs(model: &TableModel, known: &Known, column: &str, copy: usize) -> Option<Drawn> {
    let times = model.likelihood().predictors();
    let x = model.input(column)?;
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|a, b| x[*a].total_cmp(&x[*b]).then(a.cmp(b)));
    let (mean, sd): (Vec<f64>, Vec<f64>) = (order.iter())
        .map(|i| {
            let (mean, variance) = of_mixture(&known.predictors, i * times + copy);
            (mean, variance.sqrt())
        })
        .unzip();
    let sorted = order.iter().map(|i| x[*i]).collect();
    Some(line("linear predictor", column, sorted, &mean, &sd))
}
