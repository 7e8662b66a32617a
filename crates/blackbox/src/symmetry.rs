//! Tests whether a relabelling maps two modes onto each other.
//!
//! If mixture components have no order, exchanging them leaves the density unchanged. The posterior therefore has a
//! mode for each order of the components, but all these modes describe the same mixture. A relabelling is a map T that
//! permutes coordinates, changes their signs, or rotates some of them (as a permutation rotates the coordinates of a
//! simplex). Two conditions must hold: T maps one mode to the other, *and* T leaves the density unchanged, up to
//! rounding, at random points. The masses of the two modes are then equal, even if few draws have visited them.
//!
//! If the position of a coordinate differs between the two modes, the search matches the coordinate by its position.
//! The search sets all other coordinates to zero, because every such map leaves zero fixed. It matches these
//! coordinates by their gradients, because the map must also preserve the gradients.

use jensen_density::{Lanes, LanesMut, LogDensity};

use crate::dense::{cholesky, solve_lower, solve_lower_transposed};
use crate::noise::{NoisePurpose, NoiseSource};
use crate::policy::ONE_BY_ONE;
use crate::reduce::dot;
use crate::starts::{OtherMode, StartOutcome, best_start};

/// Pairs of limits in standard deviations, for coordinates that are matched by position alone. A coordinate must be
/// within the first limit of its image, and no other coordinate may be within the second limit of the image. The search
/// tries the pairs one after another.
const NEAR: [(f64, f64); 3] = [(2.0, 4.0), (1.0, 2.0), (2.0, 8.0)];

/// The log standard deviations of a coordinate and its image may differ by at most this amount.
const ALIKE: f64 = 0.7;

/// The largest distance between the image of a mode and the matching mode, in standard deviations of any coordinate.
const AT: f64 = 2.0;

/// The largest number of coordinates that a map may rotate together. Finding the rotation takes the same number of
/// gradients.
const TURNED: usize = 48;

/// The number of points at which a map must leave the log density unchanged. The log density must be finite at a quarter
/// of them, because equal infinities say nothing about a map.
const POINTS: usize = 32;

/// The largest relative difference between log densities that counts as a rounding error.
const ROUNDING: f64 = 1e-8;

/// The largest number of images of a mode. Eight exchangeable groups have 40 320.
pub(crate) const MOST: usize = 50_000;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Labellings {
    /// The number of equivalent modes, including the mode itself. If there are no relabellings, the number is 1.
    pub count: usize,
    pub relabelled: Vec<bool>,
    /// For each of the other modes, whether a map that changes signs, and leaves the density unchanged, maps the best
    /// mode to it.
    pub mirrored: Vec<bool>,
}

impl Labellings {
    /// `variables` gives the array of each coordinate. It is empty if the arrays are not known.
    pub fn of<D: LogDensity>(
        density: &D,
        source: NoiseSource,
        starts: &[StartOutcome],
        modes: &[OtherMode],
        variables: &[usize],
    ) -> Self {
        let mut found = Self {
            count: 1,
            relabelled: vec![false; modes.len()],
            mirrored: vec![false; modes.len()],
        };
        if modes.is_empty() || density.dim() > ONE_BY_ONE {
            return found;
        }
        let best = &starts[best_start(starts)];
        let mut search = Search::new(density, source, &best.omega);
        let mut maps = Vec::new();
        for (k, mode) in modes.iter().enumerate() {
            let other = starts.iter().find(|start| start.is_at(mode));
            let Some(map) = other.and_then(|other| search.symmetry(&other.omega)) else {
                continue;
            };
            if map.relabels(mode.coordinate, variables) {
                found.relabelled[k] = true;
                maps.push(map);
            } else {
                found.mirrored[k] = map.changes_signs();
            }
        }
        found.count = orbit(&search.mean, &search.sd, &maps);
        found
    }

    /// Returns the modes that are not relabellings of the best one.
    pub fn others(&self, modes: &[OtherMode]) -> Vec<OtherMode> {
        let found = modes.iter().zip(&self.relabelled);
        let others = found.filter(|(_, relabelled)| !**relabelled);
        others.map(|(mode, _)| mode.clone()).collect()
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Relabelling {
    /// The image of each coordinate, with its sign. The entry is `None` for a rotated coordinate.
    to: Vec<Option<(usize, f64)>>,
    /// The coordinates that are rotated. The matrix `turn` is orthogonal and row-major.
    turned: Vec<usize>,
    turn: Vec<f64>,
}

impl Relabelling {
    fn apply(&self, z: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; z.len()];
        for (x, to) in z.iter().zip(&self.to) {
            if let Some((j, sign)) = to {
                out[*j] = sign * x;
            }
        }
        let own: Vec<f64> = self.turned.iter().map(|&i| z[i]).collect();
        for (row, &i) in self.turn.chunks(own.len().max(1)).zip(&self.turned) {
            out[i] = dot(row, &own);
        }
        out
    }

    fn changes_signs(&self) -> bool {
        self.to.iter().flatten().any(|(_, sign)| *sign < 0.0)
    }

    /// Returns whether the map permutes elements of arrays, and whether the coordinate in which the modes differ most
    /// is among them. If the coordinate instead has two modes by itself, a summary of one mode would be wrong for that
    /// coordinate.
    fn relabels(&self, coordinate: usize, variables: &[usize]) -> bool {
        let moved = |i: usize| matches!(self.to[i], Some((j, _)) if j != i);
        let within = |i: usize, j: usize| variables.is_empty() || variables[i] == variables[j];
        let positions = self.to.iter().enumerate();
        let mut targets = positions.filter_map(|(i, to)| to.map(|(j, sign)| (i, j, sign)));
        moved(coordinate) && targets.all(|(i, j, sign)| i == j || (sign > 0.0 && within(i, j)))
    }
}

fn orbit(mean: &[f64], sd: &[f64], maps: &[Relabelling]) -> usize {
    // Different modes are several standard deviations apart, whereas the images of one mode under different maps are
    // equal up to rounding.
    let key = |z: &[f64]| -> Vec<i64> {
        let scaled = z.iter().zip(sd).map(|(z, s)| (z / (1e-3 * s)).round());
        scaled.map(|x| x as i64).collect()
    };
    let mut seen = std::collections::BTreeSet::from([key(mean)]);
    let mut open = vec![mean.to_vec()];
    while let Some(z) = open.pop() {
        for map in maps {
            let image = map.apply(&z);
            if seen.len() < MOST && seen.insert(key(&image)) {
                open.push(image);
            }
        }
    }
    seen.len()
}

struct Search<'a, D: LogDensity> {
    density: &'a D,
    source: NoiseSource,
    mean: Vec<f64>,
    sd: Vec<f64>,
    workspace: D::Workspace,
}

/// The possible images of each coordinate, with their signs. The most likely image comes first.
type Possible = Vec<Vec<(usize, f64)>>;

impl<'a, D: LogDensity> Search<'a, D> {
    fn new(density: &'a D, source: NoiseSource, omega: &[f64]) -> Self {
        let (mean, log_sd) = omega.split_at(density.dim());
        Self {
            density,
            source,
            mean: mean.to_vec(),
            sd: log_sd.iter().map(|l| l.exp()).collect(),
            workspace: density.workspace(POINTS.max(2 * TURNED)),
        }
    }

    fn symmetry(&mut self, other: &[f64]) -> Option<Relabelling> {
        let (mean, log_sd) = other.split_at(self.mean.len());
        NEAR.into_iter().find_map(|near| {
            let (close, apart) = near;
            let sure = self.possible(mean, log_sd, close);
            let possible = self.possible(mean, log_sd, apart);
            let map = self.matched(&sure, &possible)?;
            let image = map.apply(&self.mean);
            let close = |((x, m), l): ((&f64, &f64), &f64)| (x - m).abs() <= AT * l.exp();
            let arrives = image.iter().zip(mean).zip(log_sd).all(close);
            (arrives && self.is_symmetry(&map)).then_some(map)
        })
    }

    /// The first possible image of a coordinate is the coordinate itself. A coordinate may change its sign only if it
    /// is its own image.
    fn possible(&self, mean: &[f64], log_sd: &[f64], near: f64) -> Possible {
        let dim = mean.len();
        let may = |i: usize, j: usize, sign: f64| {
            let far = (sign * self.mean[i] - mean[j]).abs() / self.sd[i].max(log_sd[j].exp());
            far <= near && (self.sd[i].ln() - log_sd[j]).abs() <= ALIKE
        };
        let of = |i: usize| {
            let own = [(i, 1.0), (i, -1.0)].into_iter();
            let others = (0..dim).filter(|&j| j != i).map(|j| (j, 1.0));
            own.chain(others)
                .filter(|&(j, s)| may(i, j, s))
                .collect::<Vec<_>>()
        };
        (0..dim).map(of).collect()
    }

    /// Returns a map that preserves the gradients of the coordinates that could not be matched by position. `sure` and
    /// `possible` contain the remaining candidates for the images of these coordinates.
    fn matched(&mut self, sure: &Possible, possible: &Possible) -> Option<Relabelling> {
        let dim = possible.len();
        let mut arrivals = vec![0; dim];
        for (j, _) in possible.iter().flatten() {
            arrivals[*j] += 1;
        }
        let clear = |i: usize| match &possible[i][..] {
            [(j, _)] => arrivals[*j] == 1 && sure[i].len() == 1,
            _ => false,
        };
        let open: Vec<usize> = (0..dim).filter(|&i| !clear(i)).collect();
        let mut map = Relabelling {
            to: (0..dim).map(|i| clear(i).then(|| possible[i][0])).collect(),
            turned: Vec::new(),
            turn: Vec::new(),
        };
        if open.is_empty() {
            return Some(map);
        }
        let points = POINTS.max(2 * open.len().min(TURNED));
        let (here, there) = self.gradients(&map, points)?;
        let taken: Vec<usize> = map.to.iter().flatten().map(|(j, _)| *j).collect();
        let mut free = vec![true; dim];
        taken.iter().for_each(|&j| free[j] = false);
        let row = |g: &[f64], i: usize| -> Vec<f64> { g[i * points..(i + 1) * points].to_vec() };
        let follows = |i: usize, j: usize, sign: f64| {
            let (a, b) = (row(&here, i), row(&there, j));
            let size = a.iter().chain(&b).fold(0.0_f64, |m, x| m.max(x.abs()));
            let apart = a.iter().zip(&b).map(|(a, b)| (sign * a - b).abs());
            apart.fold(0.0, f64::max) <= 1e-6 * size + 1e-9
        };
        for &i in &open {
            let found = possible[i]
                .iter()
                .find(|&&(j, sign)| free[j] && follows(i, j, sign));
            if let Some(&(j, sign)) = found {
                map.to[i] = Some((j, sign));
                free[j] = false;
            }
        }
        let left: Vec<usize> = open
            .iter()
            .copied()
            .filter(|&i| map.to[i].is_none())
            .collect();
        let arriving: Vec<usize> = (0..dim).filter(|&j| free[j]).collect();
        if left != arriving || left.len() > TURNED {
            return None;
        }
        if !left.is_empty() {
            let side = |g: &[f64]| left.iter().map(|&i| row(g, i)).collect::<Vec<_>>();
            map.turn = turn(&side(&here), &side(&there))?;
            map.turned = left;
        }
        Some(map)
    }

    /// Computes gradients (`dim × points`) at points around the mode where the undetermined coordinates are zero, and
    /// at the images of these points.
    fn gradients(&mut self, map: &Relabelling, points: usize) -> Option<(Vec<f64>, Vec<f64>)> {
        let mut z = self.around(points, 1.0, 0);
        for (row, to) in z.chunks_mut(points).zip(&map.to) {
            if to.is_none() {
                row.fill(0.0);
            }
        }
        let image = columns(&z, points, |z| map.apply(z));
        let mut gradient = |z: &[f64]| {
            let (mut value, mut out) = (vec![0.0; points], vec![0.0; z.len()]);
            let (dim, ws) = (self.mean.len(), &mut self.workspace);
            let grad = LanesMut::new(&mut out, dim, points);
            self.density
                .value_grad(ws, Lanes::new(z, dim, points), &mut value, grad);
            let finite = value.iter().chain(&out).all(|x| x.is_finite());
            finite.then_some(out)
        };
        Some((gradient(&z)?, gradient(&image)?))
    }

    fn around(&self, points: usize, widths: f64, key: u64) -> Vec<f64> {
        let dim = self.mean.len();
        let mut z = vec![0.0; dim * points];
        self.source
            .fill(NoisePurpose::Symmetry, key, 0, dim, points, &mut z);
        for (row, (mean, sd)) in z.chunks_mut(points).zip(self.mean.iter().zip(&self.sd)) {
            row.iter_mut().for_each(|x| *x = mean + widths * sd * *x);
        }
        z
    }

    fn is_symmetry(&mut self, map: &Relabelling) -> bool {
        let z = self.around(POINTS, 1.5, 1);
        let image = columns(&z, POINTS, |z| map.apply(z));
        let mut values = |z: &[f64]| {
            let mut out = vec![0.0; POINTS];
            let z = Lanes::new(z, self.mean.len(), POINTS);
            self.density.value(&mut self.workspace, z, &mut out);
            out
        };
        let (here, there) = (values(&z), values(&image));
        let equal = |(a, b): (&f64, &f64)| match a.is_finite() {
            true => (a - b).abs() <= ROUNDING * (1.0 + a.abs()),
            false => !b.is_finite(),
        };
        let finite = here.iter().filter(|x| x.is_finite()).count();
        finite >= (POINTS / 4) && here.iter().zip(&there).all(equal)
    }
}

fn columns(z: &[f64], lanes: usize, map: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let mut out = vec![0.0; z.len()];
    for lane in 0..lanes {
        let column: Vec<f64> = z[lane..].iter().step_by(lanes).copied().collect();
        for (out, x) in out[lane..].iter_mut().step_by(lanes).zip(map(&column)) {
            *out = x;
        }
    }
    out
}

/// Computes the orthogonal matrix that maps the rows of `here` to the rows of `there`, by least squares. Returns `None`
/// if there is no such matrix.
fn turn(here: &[Vec<f64>], there: &[Vec<f64>]) -> Option<Vec<f64>> {
    let n = here.len();
    let mut gram = vec![0.0; n * n];
    for (i, a) in here.iter().enumerate() {
        for (j, b) in here.iter().enumerate() {
            gram[i * n + j] = dot(a, b);
        }
    }
    let factor = cholesky(&gram, n)?;
    let mut turn = Vec::with_capacity(n * n);
    for image in there {
        let mut row: Vec<f64> = here.iter().map(|a| dot(image, a)).collect();
        solve_lower(&factor, &mut row);
        solve_lower_transposed(&factor, &mut row);
        turn.extend(row);
    }
    let orthogonal = (0..n).all(|i| {
        (0..n).all(|j| {
            let product = dot(&turn[i * n..(i + 1) * n], &turn[j * n..(j + 1) * n]);
            (product - f64::from(u8::from(i == j))).abs() < 1e-5
        })
    });
    orthogonal.then_some(turn)
}
