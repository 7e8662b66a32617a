//! What is not affine about what particles have shown: bends of single coordinates, and hubs that hang on others.

use super::tails::{Slopes, Tail, Tails};
use super::triangle::{Passage, Triangle};

/// Draws that are looked at.
const LOOKED_AT: usize = 4096;

/// Bends of some rows of a matrix, of which the first may then hang on each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bends {
    tails: Tails,
    triangle: Option<Triangle>,
}

/// Derivatives of bends, in memory that lasts from one use to the next.
#[derive(Default)]
pub(super) struct Way {
    slopes: Slopes,
    passage: Passage,
    by_place: Vec<f64>,
}

impl Way {
    pub(super) fn clear(&mut self) {
        self.slopes.clear();
        self.passage.clear();
    }

    /// Adds the log Jacobian to every lane.
    pub(super) fn add_logs(&self, out: &mut [f64]) {
        self.slopes.add_logs(out);
        self.passage.add_logs(out);
    }
}

/// Draws of a row of clouds (`size` numbers each, `lanes` to a row), of many every so many.
fn draws_of(x: &[f64], (size, lanes): (usize, usize), row: usize) -> Vec<f64> {
    let every = (x.len() / size * lanes).div_ceil(LOOKED_AT);
    let rows = x.chunks(size).map(|cloud| &cloud[row * lanes..][..lanes]);
    rows.flatten().step_by(every).copied().collect()
}

impl Bends {
    /// Those of the first `count` rows of clouds, each around its centre.
    pub(super) fn of_rows(x: &[f64], shape: (usize, usize), centres: &[f64]) -> Self {
        let tails = Tails::of(centres, |i| draws_of(x, shape, i));
        Self {
            tails,
            triangle: None,
        }
    }

    /// Those of the hubs, the first `hubs` rows of clouds that tell as much as `told` independent ones; without a number only bends.
    pub(super) fn of_hubs(
        x: &[f64],
        shape: (usize, usize),
        hubs: usize,
        told: Option<f64>,
    ) -> Self {
        let draws: Vec<Vec<f64>> = (0..hubs).map(|i| draws_of(x, shape, i)).collect();
        let mut triangle = Triangle::new(Triangle::order_of(&draws));
        let mut tails = Vec::new();
        let mut u = draws;
        for hub in triangle.order().to_vec() {
            let mut own = std::mem::take(&mut u[hub]);
            if let Some(told) = told {
                triangle.link(hub, &u, &mut own, told);
            }
            if let Some(tail) = Tail::of(&mut own.clone()) {
                own.iter_mut().for_each(|w| *w = tail.origin(*w));
                tails.push((hub, tail));
            }
            triangle.see(hub, &own);
            u[hub] = own;
        }
        tails.sort_by_key(|(hub, _)| *hub);
        Self {
            tails: Tails::from_each(tails),
            triangle: (!triangle.is_identity()).then_some(triangle),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tails.is_empty() && self.triangle.is_none()
    }

    /// Bends rows, and makes `way` the way there.
    pub(super) fn bend(&self, rows: &mut [f64], lanes: usize, way: &mut Way) {
        if let Some(triangle) = &self.triangle {
            triangle.look(rows, lanes, &mut way.passage);
        }
        self.tails.bend(rows, lanes, &mut way.slopes);
        if let Some(triangle) = &self.triangle {
            triangle.go(rows, lanes, &mut way.passage);
        }
    }

    /// Takes the bends away.
    pub(super) fn unbend(&self, rows: &mut [f64], lanes: usize) {
        let Some(triangle) = &self.triangle else {
            self.tails.unbend(rows, lanes);
            return;
        };
        let mut u = vec![0.0; triangle.order().len()];
        for l in 0..lanes {
            u.fill(0.0);
            for &hub in triangle.order() {
                let [mean, log_spread] = triangle.of(hub, &u);
                let w = (rows[hub * lanes + l] - mean) * (-log_spread).exp();
                u[hub] = self.tails.origin(hub, w);
                rows[hub * lanes + l] = u[hub];
            }
        }
    }

    /// Derivatives by what was bent, with those of the log Jacobian, from those by what it became.
    pub(super) fn pull(&self, way: &mut Way, grad: &mut [f64], lanes: usize) {
        let Some(triangle) = &self.triangle else {
            self.tails.pull(&way.slopes, grad, lanes);
            return;
        };
        let own = triangle.order().len() * lanes;
        way.by_place.clear();
        way.by_place.resize(own, 0.0);
        triangle.pull(&way.passage, grad, &mut way.by_place, lanes);
        self.tails.pull(&way.slopes, grad, lanes);
        grad.iter_mut()
            .zip(&way.by_place)
            .for_each(|(g, by)| *g += by);
    }

    /// As plain numbers, for checkpoints: of single rows, and of hubs with their number before.
    pub(super) fn to_numbers(&self) -> [Vec<f64>; 2] {
        let of_hubs = self.triangle.as_ref().map_or_else(Vec::new, |triangle| {
            let mut numbers = vec![triangle.order().len() as f64];
            numbers.extend(triangle.to_numbers());
            numbers
        });
        [self.tails.to_numbers(), of_hubs]
    }

    /// The inverse of [`Self::to_numbers`] for up to `rows` rows; `None` where there are other numbers or rows.
    pub(super) fn from_numbers([tails, hubs]: [&[f64]; 2], rows: usize) -> Option<Self> {
        let triangle = match hubs.split_first() {
            Some((&count, _)) if count > rows as f64 => return None,
            Some((&count, rest)) => Some(Triangle::from_numbers(rest, count as usize)?),
            None => None,
        };
        Some(Self {
            tails: Tails::from_numbers(tails, rows)?,
            triangle,
        })
    }
}
