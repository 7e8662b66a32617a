//! The non-affine part of the transport map. It consists of monotone tail transforms of single coordinates, and of the
//! dependence between global parameters.

use rayon::prelude::*;

use super::tails::{Slopes, Tail, Tails};
use super::triangle::{Passage, Triangle};
use crate::reduce::{dot, mean_se, sum};

/// The largest number of draws of a row to which a transform is fitted. It determines quartiles to within 2 % of a
/// standard deviation.
const LOOKED_AT: usize = 4096;

/// A local parameter has long tails if its fourth moment, at unit variance, exceeds this value. The fourth moment of a
/// normal distribution is 3.
const LONG: f64 = 4.0;

/// The largest number of local parameters with a transform, those with the longest tails. Each costs a regression on
/// the features of all global parameters.
const LOCALS: usize = 8;

/// The transforms of some rows. The global parameters come first, and they may depend on each other. The other rows may
/// depend on the global parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TransportMap {
    tails: Tails,
    triangle: Option<Triangle>,
}

#[derive(Default)]
pub(super) struct Way {
    slopes: Slopes,
    passage: Passage,
    by_position: Vec<f64>,
}

impl Way {
    pub(super) fn add_logs(&self, out: &mut [f64]) {
        self.slopes.add_logs(out);
        self.passage.add_logs(out);
    }
}

/// Returns the draws of one row. The sets of particles have `size` numbers each, with `lanes` numbers per row. If there
/// are many draws, only a part of them is used.
fn draws_of(x: &[f64], (size, lanes): (usize, usize), row: usize) -> Vec<f64> {
    let every = (x.len() / size * lanes).div_ceil(LOOKED_AT);
    let rows = x
        .chunks(size)
        .map(|particles| &particles[row * lanes..][..lanes]);
    rows.flatten().step_by(every).copied().collect()
}

fn long_tailed(x: &[f64], (size, lanes): (usize, usize), globals: usize) -> Vec<usize> {
    let kurtosis = |row: usize| {
        let draws = draws_of(x, (size, lanes), row);
        let (mean, _) = mean_se(&draws);
        let squares: Vec<f64> = draws.iter().map(|x| (x - mean).powi(2)).collect();
        draws.len() as f64 * dot(&squares, &squares) / sum(&squares).powi(2)
    };
    let rows = globals..size / lanes;
    let each: Vec<(f64, usize)> = (rows.into_par_iter())
        .map(|row| (kurtosis(row), row))
        .collect();
    let mut long: Vec<(f64, usize)> = each.into_iter().filter(|(k, _)| *k > LONG).collect();
    long.sort_by(|a, b| b.0.total_cmp(&a.0));
    long.into_iter().take(LOCALS).map(|(_, row)| row).collect()
}

impl TransportMap {
    pub(super) fn of_rows(x: &[f64], shape: (usize, usize), centres: &[f64]) -> Self {
        let tails = Tails::of(centres, |i| draws_of(x, shape, i));
        Self {
            tails,
            triangle: None,
        }
    }

    /// Creates the map from sets of particles, in which the first `globals` rows are the global parameters. `effective`
    /// is the equivalent number of independent particles. With `effective`, the map contains the dependence between
    /// global parameters, and also transforms local parameters with long tails. Without `effective`, the map transforms
    /// only the global parameters, each of them independently.
    pub(super) fn of_globals(
        x: &[f64],
        shape: (usize, usize),
        globals: usize,
        effective: Option<f64>,
    ) -> Self {
        let mut u: Vec<Vec<f64>> = (0..globals).map(|i| draws_of(x, shape, i)).collect();
        let mut order = Triangle::order_of(&u);
        if effective.is_some() {
            order.extend(long_tailed(x, shape, globals));
        }
        let mut triangle = Triangle::new(order.clone(), globals);
        let mut tails = Vec::new();
        for (position, row) in order.into_iter().enumerate() {
            let mut own = match u.get_mut(row) {
                Some(own) => std::mem::take(own),
                None => draws_of(x, shape, row),
            };
            if let Some(effective) = effective {
                triangle.link(position, &u, &mut own, effective);
            }
            if let Some(tail) = Tail::of(&mut own.clone()) {
                own.iter_mut().for_each(|w| *w = tail.origin(*w));
                tails.push((row, tail));
            }
            if row < globals {
                triangle.see(row, &own);
                u[row] = own;
            }
        }
        tails.sort_by_key(|(row, _)| *row);
        Self {
            tails: Tails::from_each(tails),
            triangle: (!triangle.is_identity()).then_some(triangle),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tails.is_empty() && self.triangle.is_none()
    }

    pub(super) fn apply(&self, rows: &mut [f64], lanes: usize, way: &mut Way) {
        match &self.triangle {
            Some(triangle) => triangle.look(rows, lanes, &mut way.passage),
            None => way.passage.clear(),
        }
        self.tails.apply(rows, lanes, &mut way.slopes);
        if let Some(triangle) = &self.triangle {
            triangle.go(rows, lanes, &mut way.passage);
        }
    }

    pub(super) fn invert(&self, rows: &mut [f64], lanes: usize) {
        let Some(triangle) = &self.triangle else {
            self.tails.invert(rows, lanes);
            return;
        };
        let mut u = vec![0.0; triangle.globals()];
        for l in 0..lanes {
            u.fill(0.0);
            for (position, &row) in triangle.order().iter().enumerate() {
                let [mean, log_spread] = triangle.of(position, &u);
                let w = (rows[row * lanes + l] - mean) * (-log_spread).exp();
                let origin = self.tails.origin(row, w);
                rows[row * lanes + l] = origin;
                if let Some(own) = u.get_mut(row) {
                    *own = origin;
                }
            }
        }
    }

    /// Converts derivatives with respect to the outputs into derivatives with respect to the inputs, and adds the
    /// derivatives of the log Jacobian.
    pub(super) fn pull(&self, way: &mut Way, grad: &mut [f64], lanes: usize) {
        let Some(triangle) = &self.triangle else {
            self.tails.pull(&way.slopes, grad, lanes);
            return;
        };
        let own = triangle.globals() * lanes;
        way.by_position.clear();
        way.by_position.resize(own, 0.0);
        triangle.pull(&way.passage, grad, &mut way.by_position, lanes);
        self.tails.pull(&way.slopes, grad, lanes);
        grad.iter_mut()
            .zip(&way.by_position)
            .for_each(|(g, by)| *g += by);
    }

    /// Returns the map as two lists of numbers. The first list contains the transforms of single rows. The second list
    /// contains the number of rows in the conditional map, then the number of global parameters among these rows, and
    /// then the conditional map itself.
    pub(super) fn to_numbers(&self) -> [Vec<f64>; 2] {
        let of_globals = self.triangle.as_ref().map_or_else(Vec::new, |triangle| {
            let mut numbers = vec![triangle.order().len() as f64, triangle.globals() as f64];
            numbers.extend(triangle.to_numbers());
            numbers
        });
        [self.tails.to_numbers(), of_globals]
    }

    pub(super) fn from_numbers([tails, globals]: [&[f64]; 2], rows: usize) -> Option<Self> {
        let triangle = match globals {
            [] => None,
            [own, globals, rest @ ..] => {
                let sizes = (*own as usize, *globals as usize);
                Some(Triangle::from_numbers(rest, sizes, rows)?)
            }
            [_] => return None,
        };
        Some(Self {
            tails: Tails::from_numbers(tails, rows)?,
            triangle,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{NoisePurpose, NoiseSource};
    use jensen_math::simd::Simd;

    const LANES: usize = 256;
    const TIMES: usize = 16;
    const EFFECTIVE: Option<f64> = Some((LANES * TIMES / 4) as f64);

    fn normals(rows: usize, seed: u64) -> Vec<f64> {
        let source = NoiseSource::new(seed, Simd::detect());
        let size = rows * LANES;
        let mut x = vec![0.0; size * TIMES];
        for (t, particles) in x.chunks_mut(size).enumerate() {
            source.fill(NoisePurpose::Draws, t as u64, 0, rows, LANES, particles);
        }
        x
    }

    fn row(x: &[f64], rows: usize, k: usize) -> Vec<f64> {
        let particle_sets = x.chunks(rows * LANES);
        particle_sets
            .flat_map(|particles| &particles[k * LANES..(k + 1) * LANES])
            .copied()
            .collect()
    }

    fn correlation(a: &[f64], b: &[f64]) -> f64 {
        let centred = |x: &[f64]| -> Vec<f64> {
            let (mean, _) = mean_se(x);
            x.iter().map(|x| x - mean).collect()
        };
        let (a, b) = (centred(a), centred(b));
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
    }

    #[test]
    fn independent_normals_are_left_alone() {
        for (globals, seed) in [(3, 1), (8, 2), (20, 3)] {
            let x = normals(globals, seed);
            let transport =
                TransportMap::of_globals(&x, (globals * LANES, LANES), globals, EFFECTIVE);
            assert!(transport.is_empty(), "{globals}: {transport:?}");
        }
    }

    /// In this test, the spread of a level depends on a persistence, and a third global parameter depends on the square
    /// of the level. The mapped draws must be normal with independent squares, and the inverse of the map must recover
    /// the draws.
    #[test]
    fn what_hangs_on_another_global_is_set_free() {
        let size = 3 * LANES;
        let mut x = normals(3, 4);
        for particles in x.chunks_mut(size) {
            let (level, rest) = particles.split_at_mut(LANES);
            let (persistence, other) = rest.split_at_mut(LANES);
            for ((l, p), o) in level.iter_mut().zip(persistence).zip(other) {
                *l = 2.0 + (0.6 * *p).exp() * *l;
                *o = 0.4 * *p * *p - 0.5 * *p + 0.7 * *o;
            }
        }
        let before = x.clone();
        let apart = |x: &[f64]| {
            let rows: Vec<Vec<f64>> = (0..3).map(|k| row(x, 3, k)).collect();
            let squares = |x: &[f64]| -> Vec<f64> {
                let (mean, _) = mean_se(x);
                x.iter().map(|x| (x - mean).powi(2)).collect()
            };
            let pair = |a: usize, b: usize| correlation(&rows[a], &squares(&rows[b])).abs();
            [(1, 0), (2, 1), (1, 2)].map(|(a, b)| pair(a, b))
        };
        let [of_level, of_persistence, _] = apart(&x);
        assert!(of_level > 0.35 && of_persistence > 0.5);
        let alone = TransportMap::of_globals(&x, (size, LANES), 3, None);
        assert!(alone.triangle.is_none());
        let transport = TransportMap::of_globals(&x, (size, LANES), 3, EFFECTIVE);
        x.chunks_mut(size)
            .for_each(|particles| transport.invert(particles, LANES));
        // The features are curved, so they cannot represent the ends of a square.
        for tie in apart(&x) {
            assert!(tie < 0.08, "{:?}", apart(&x));
        }
        for k in 0..3 {
            let (mean, error) = mean_se(&row(&x, 3, k));
            let sd = error * ((LANES * TIMES) as f64).sqrt();
            let free = transport.triangle.as_ref().unwrap().order()[0] == k;
            assert!(free || (mean.abs() < 0.05 && (sd - 1.0).abs() < 0.05));
        }
        let mut way = Way::default();
        for (particles, before) in x.chunks_mut(size).zip(before.chunks(size)) {
            transport.apply(particles, LANES, &mut way);
            let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9 * (1.0 + b.abs());
            assert!(particles.iter().zip(before).all(near));
        }
        let [tails, globals] = transport.to_numbers();
        assert_eq!(
            TransportMap::from_numbers([&tails, &globals], 3),
            Some(transport)
        );
        assert_eq!(TransportMap::from_numbers([&tails, &globals], 2), None);
        assert_eq!(TransportMap::from_numbers([&tails, &globals[..9]], 3), None);
        let huge = [&[1e5, 1e5][..], &vec![0.0; 100_000]].concat();
        assert_eq!(TransportMap::from_numbers([&tails, &huge], 3), None);
    }
}
