//! Steps of explicit Runge-Kutta pairs for many lanes at once.

use super::ode::{Attempt, Front, Ode, Scheme};
use super::{Differentiable, Point, System};
use crate::simd::{F64x8, LANES, Simd};
use crate::simd_fn;

/// The coefficients of an embedded pair. The integration continues with the more accurate of the two solutions.
pub(super) struct Pair {
    /// The order p of the error estimate, which is proportional to `length^p`, where `length` is the length of the
    /// step.
    order: f64,
    /// For `y' = λy`, a step of length h has an error of about |hλ| to the power of `order + 1`, divided by this
    /// number.
    perturbations: f64,
    nodes: &'static [f64],
    /// The coefficients of the stages. Stage i + 1 is computed from the earlier stages with the weights in row i.
    stages: &'static [&'static [f64]],
    /// The weights of the more accurate solution. `None` means that the last stage is this solution.
    weights: Option<&'static [f64]>,
    errors: &'static [f64],
    /// The weights of a second, coarser error estimate, if there is one. With the finer estimate e and the coarser
    /// estimate c, the error is e²/√(e² + c²/100).
    correction: Option<&'static [f64]>,
}

impl Pair {
    fn weights(&self) -> &'static [f64] {
        self.weights
            .unwrap_or_else(|| self.stages[self.stages.len() - 1])
    }
}

/// The pair of Dormand and Prince (1980), *A family of embedded Runge-Kutta formulae*.
pub(super) const DORMAND_PRINCE: Pair = Pair {
    order: 5.0,
    perturbations: 3600.0,
    nodes: &[0.0, 0.2, 0.3, 0.8, 8.0 / 9.0, 1.0, 1.0],
    stages: &[
        &[0.2],
        &[3.0 / 40.0, 9.0 / 40.0],
        &[44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0],
        &[
            19372.0 / 6561.0,
            -25360.0 / 2187.0,
            64448.0 / 6561.0,
            -212.0 / 729.0,
        ],
        &[
            9017.0 / 3168.0,
            -355.0 / 33.0,
            46732.0 / 5247.0,
            49.0 / 176.0,
            -5103.0 / 18656.0,
        ],
        &[
            35.0 / 384.0,
            0.0,
            500.0 / 1113.0,
            125.0 / 192.0,
            -2187.0 / 6784.0,
            11.0 / 84.0,
        ],
    ],
    weights: None,
    errors: &[
        71.0 / 57600.0,
        0.0,
        -71.0 / 16695.0,
        71.0 / 1920.0,
        -17253.0 / 339_200.0,
        22.0 / 525.0,
        -1.0 / 40.0,
    ],
    correction: None,
};

/// DOP853, the pair of order 8 of Dormand and Prince (Hairer, Nørsett and Wanner, II.10). Its error estimate is of
/// order 5, corrected by an estimate of order 3.
pub(super) const DOP853: Pair = Pair {
    order: 8.0,
    // This is 1 / |1/9! − c₉|, where c₉ is the coefficient of the ninth power in the stability function.
    perturbations: 15_615_308.0,
    nodes: &[
        0.0,
        0.052_600_151_958_767_73,
        0.078_900_227_938_151_6,
        0.118_350_341_907_227_4,
        0.281_649_658_092_772_6,
        0.333_333_333_333_333_3,
        0.25,
        0.307_692_307_692_307_7,
        0.651_282_051_282_051_3,
        0.6,
        0.857_142_857_142_857_1,
        1.0,
        1.0,
    ],
    stages: &[
        &[0.052_600_151_958_767_73],
        &[0.019_725_056_984_537_9, 0.059_175_170_953_613_7],
        &[0.029_587_585_476_806_85, 0.0, 0.088_762_756_430_420_54],
        &[
            0.241_365_134_159_266_7,
            0.0,
            -0.884_549_479_328_286_1,
            0.924_834_003_261_792,
        ],
        &[
            0.037_037_037_037_037_035,
            0.0,
            0.0,
            0.170_828_608_729_473_86,
            0.125_467_687_566_822_42,
        ],
        &[
            0.037_109_375,
            0.0,
            0.0,
            0.170_252_211_019_544_05,
            0.060_216_538_980_455_96,
            -0.017_578_125,
        ],
        &[
            0.037_092_000_118_504_79,
            0.0,
            0.0,
            0.170_383_925_712_239_98,
            0.107_262_030_446_373_28,
            -0.015_319_437_748_624_402,
            0.008_273_789_163_814_023,
        ],
        &[
            0.624_110_958_716_075_7,
            0.0,
            0.0,
            -3.360_892_629_446_941_4,
            -0.868_219_346_841_726,
            27.592_099_699_446_71,
            20.154_067_550_477_894,
            -43.489_884_181_069_96,
        ],
        &[
            0.477_662_536_438_264_34,
            0.0,
            0.0,
            -2.488_114_619_971_667_7,
            -0.590_290_826_836_843,
            21.230_051_448_181_193,
            15.279_233_632_882_423,
            -33.288_210_968_984_86,
            -0.020_331_201_708_508_627,
        ],
        &[
            -0.937_142_430_085_987_3,
            0.0,
            0.0,
            5.186_372_428_844_064,
            1.091_437_348_996_729_5,
            -8.149_787_010_746_927,
            -18.520_065_659_996_96,
            22.739_487_099_350_505,
            2.493_605_552_679_652_3,
            -3.046_764_471_898_219_6,
        ],
        &[
            2.273_310_147_516_538,
            0.0,
            0.0,
            -10.534_495_466_737_25,
            -2.000_872_058_224_862_5,
            -17.958_931_863_118_8,
            27.948_884_529_419_96,
            -2.858_998_277_135_023_5,
            -8.872_856_933_530_63,
            12.360_567_175_794_303,
            0.643_392_746_015_763_6,
        ],
        &[
            0.054_293_734_116_568_765,
            0.0,
            0.0,
            0.0,
            0.0,
            4.450_312_892_752_409,
            1.891_517_899_314_500_3,
            -5.801_203_960_010_585,
            0.311_164_366_957_819_9,
            -0.152_160_949_662_516_1,
            0.201_365_400_804_030_34,
            0.044_710_615_727_772_59,
        ],
    ],
    weights: None,
    errors: &[
        0.013_120_044_994_194_88,
        0.0,
        0.0,
        0.0,
        0.0,
        -1.225_156_446_376_204_4,
        -0.495_758_949_657_250_2,
        1.664_377_182_454_986_4,
        -0.350_328_848_749_973_66,
        0.334_179_118_713_017_5,
        0.081_923_206_485_115_71,
        -0.022_355_307_863_886_294,
        0.0,
    ],
    correction: Some(&[
        -0.189_800_754_072_407_62,
        0.0,
        0.0,
        0.0,
        0.0,
        4.450_312_892_752_409,
        1.891_517_899_314_500_3,
        -5.801_203_960_010_585,
        -0.422_682_321_323_791_9,
        -0.152_160_949_662_516_1,
        0.201_365_400_804_030_34,
        0.022_651_792_198_360_82,
        0.0,
    ]),
};

/// The pair of Cash and Karp (1990), *A variable order Runge-Kutta method for initial value problems with rapidly
/// varying right-hand sides*.
pub(super) const CASH_KARP: Pair = Pair {
    order: 5.0,
    perturbations: 3600.0,
    nodes: &[0.0, 0.2, 0.3, 0.6, 1.0, 0.875],
    stages: &[
        &[0.2],
        &[3.0 / 40.0, 9.0 / 40.0],
        &[0.3, -0.9, 1.2],
        &[-11.0 / 54.0, 2.5, -70.0 / 27.0, 35.0 / 27.0],
        &[
            1631.0 / 55296.0,
            175.0 / 512.0,
            575.0 / 13824.0,
            44275.0 / 110_592.0,
            253.0 / 4096.0,
        ],
    ],
    weights: Some(&[
        37.0 / 378.0,
        0.0,
        250.0 / 621.0,
        125.0 / 594.0,
        0.0,
        512.0 / 1771.0,
    ]),
    errors: &[
        37.0 / 378.0 - 2825.0 / 27648.0,
        0.0,
        250.0 / 621.0 - 18575.0 / 48384.0,
        125.0 / 594.0 - 13525.0 / 55296.0,
        -277.0 / 14336.0,
        512.0 / 1771.0 - 0.25,
    ],
    correction: None,
};

pub(super) struct Explicit<'a> {
    pair: &'a Pair,
    ode: &'a Ode,
    rates: Vec<Vec<f64>>,
    states: Vec<Vec<f64>>,
    clock: Vec<f64>,
    simd: Simd,
    /// The errors of an attempted step, computed as sums of weighted rates. `nothing` contains the zeros to which the
    /// rates are added.
    errors: Vec<f64>,
    nothing: Vec<f64>,
    /// The coarser errors, divided by the tolerance.
    coarse: Vec<f64>,
    units: Vec<f64>,
    largest: Vec<f64>,
    pulling: Pulling,
}

/// Scratch memory for the adjoint of a step: the adjoints of the stages, the adjoints of the parameters at one stage,
/// and the rates of that stage.
#[derive(Default)]
struct Pulling {
    pulled: Vec<Vec<f64>>,
    here: Vec<f64>,
    weights: Vec<f64>,
}

/// Computes `out = base + length · Σ weight · rate` for `N` vectors of numbers. In each row, the vectors begin at index
/// `at`. In `length`, they begin at index `lane`.
///
/// # Panics
/// Panics if a row is too short.
#[inline(always)]
fn combined<V: F64x8, const N: usize>(
    out: &mut [f64],
    [base, length]: [&[f64]; 2],
    weights: &[f64],
    rates: &[Vec<f64>],
    [at, lane]: [usize; 2],
) {
    let vectors = |row: &[f64], at: usize| -> [V; N] {
        let row = &row[at..at + N * LANES];
        // SAFETY: every row has room for `N` vectors from this index on.
        std::array::from_fn(
            #[inline(always)]
            |k| unsafe { V::load(row.as_ptr().add(k * LANES)) },
        )
    };
    let mut sum = [V::zero(); N];
    for (weight, rate) in weights.iter().zip(rates) {
        if *weight == 0.0 {
            continue;
        }
        let weight = V::splat(*weight);
        for (sum, rate) in sum.iter_mut().zip(vectors(rate, at)) {
            *sum = *sum + weight * rate;
        }
    }
    let out = &mut out[at..at + N * LANES];
    let (base, length) = (vectors(base, at), vectors(length, lane));
    for k in 0..N {
        // SAFETY: `out` has room for `N` vectors.
        unsafe { (base[k] + length[k] * sum[k]).store(out.as_mut_ptr().add(k * LANES)) };
    }
}

simd_fn! {
    /// Computes `out = base + length · Σ weight · rate` for rows of lanes.
    fn combine, combine_fn = <V>(out: &mut [f64], base: &[f64], length: &[f64], weights: &[f64], rates: &[Vec<f64>]) {
        let lanes = length.len();
        for first in (0..out.len()).step_by(lanes) {
            let mut lane = 0;
            while lane + 4 * LANES <= lanes {
                combined::<V, 4>(out, [base, length], weights, rates, [first + lane, lane]);
                lane += 4 * LANES;
            }
            while lane + LANES <= lanes {
                combined::<V, 1>(out, [base, length], weights, rates, [first + lane, lane]);
                lane += LANES;
            }
            for (k, length) in length[lane..].iter().enumerate() {
                let at = first + lane + k;
                let mut sum = 0.0;
                for (weight, rate) in weights.iter().zip(rates) {
                    sum += if *weight == 0.0 { 0.0 } else { weight * rate[at] };
                }
                out[at] = base[at] + length * sum;
            }
        }
    }

    /// Updates, for each lane of a row, the largest `|error| / (absolute + relative · size)` so far. A NaN is
    /// preserved.
    pub(super) fn worst, worst_fn = <V>(most: &mut [f64], errors: &[f64], sizes: [&[f64]; 2], units: [f64; 2]) {
        let [absolute, relative] = units;
        let sizes = sizes[0].iter().zip(sizes[1]);
        for ((most, error), (a, b)) in most.iter_mut().zip(errors).zip(sizes) {
            let here = error.abs() / (absolute + relative * a.abs().max(b.abs()));
            *most = if here > *most || here.is_nan() { here } else { *most };
        }
    }

    fn correct, correct_fn = <V>(errors: &mut [f64], coarse: &[f64]) {
        for (error, coarse) in errors.iter_mut().zip(coarse) {
            let size = (*error * *error + 0.01 * coarse * coarse).sqrt();
            *error = if *error > 0.0 { *error * *error / size } else { *error };
        }
    }

    /// Computes `sum += term` in those lanes whose step has a positive length.
    pub(super) fn add_where, add_where_fn = <V>(sum: &mut [f64], term: &[f64], length: &[f64]) {
        let lanes = length.len();
        for (sum, term) in sum.chunks_exact_mut(lanes).zip(term.chunks_exact(lanes)) {
            for ((sum, term), length) in sum.iter_mut().zip(term).zip(length) {
                // A slot without a step keeps its value, whatever its states contain.
                *sum = if *length > 0.0 { *sum + *term } else { *sum };
            }
        }
    }

    /// Computes `to = from + sign · unit` with `unit = |from| + largest + absolute`, for each lane of a row.
    fn nudge, nudge_fn = <V>(to: &mut [f64], units: &mut [f64], from: &[f64], largest: &[f64], scale: [f64; 2]) {
        let [absolute, sign] = scale;
        for (((to, unit), from), largest) in to.iter_mut().zip(units).zip(from).zip(largest) {
            *unit = from.abs() + 1e-3 * largest + absolute;
            *to = from + sign * *unit;
        }
    }

    /// Updates, for each lane of a row, the largest `|b − a| / (perturbation · unit)` so far.
    fn steepest, steepest_fn = <V>(slopes: &mut [f64], rates: [&[f64]; 2], units: &[f64]) {
        let moved = rates[0].iter().zip(rates[1]);
        for ((slope, (a, b)), unit) in slopes.iter_mut().zip(moved).zip(units) {
            *slope = slope.max((b - a).abs() / (PERTURBATION * unit));
        }
    }
}

impl<'a> Explicit<'a> {
    pub fn new(pair: &'a Pair, ode: &'a Ode) -> Self {
        Self {
            pair,
            ode,
            rates: Vec::new(),
            states: Vec::new(),
            clock: Vec::new(),
            simd: Simd::Scalar,
            errors: Vec::new(),
            nothing: Vec::new(),
            coarse: Vec::new(),
            units: Vec::new(),
            largest: Vec::new(),
            pulling: Pulling::default(),
        }
    }

    fn stages(&mut self, system: &mut dyn System, front: &Front, from: usize, count: usize) {
        let size = front.states.len();
        for list in [&mut self.rates, &mut self.states] {
            list.resize(self.pair.nodes.len(), Vec::new());
            list.iter_mut().for_each(|rows| rows.resize(size, 0.0));
        }
        for i in from..count {
            if i == 0 {
                self.states[0].copy_from_slice(&front.states);
            } else {
                let weights = self.pair.stages[i - 1];
                combine(
                    self.simd,
                    &mut self.states[i],
                    &front.states,
                    &front.trial,
                    weights,
                    &self.rates,
                );
            }
            self.clock_at(front, i);
            let point = Point {
                clock: &self.clock,
                states: &self.states[i],
                parameters: &front.parameters,
                lanes: front.lanes,
            };
            system.rate(point, &mut self.rates[i]);
        }
    }

    fn clock_at(&mut self, front: &Front, i: usize) {
        let node = self.pair.nodes[i];
        self.clock.clear();
        let clocks = front.clock.iter().zip(&front.trial);
        self.clock
            .extend(clocks.map(|(clock, length)| clock + node * length));
    }
}

/// The allowed error of perturbations is 1000 times the tolerance, but at most this value. Perturbations correspond to
/// derivatives, and an error in one derivative affects the whole gradient.
const FOLLOWED: f64 = 1e-5;

const PERTURBATION: f64 = 1e-6;

impl Explicit<'_> {
    /// Computes the longest step that propagates perturbations of the initial states nearly as accurately as it
    /// propagates the states.
    ///
    /// If the solution is nearly constant, its error estimate allows steps of any length. Long steps may nevertheless
    /// have inaccurate derivatives, because the derivatives depend on the Jacobian J of the rates. For `y' = λy`,
    /// [`Pair::perturbations`] gives the error of a step relative to the perturbation. [`FOLLOWED`] limits this error.
    /// One additional evaluation of the rates estimates ‖J‖ along one direction.
    fn longest(&mut self, system: &mut dyn System, front: &Front, longest: &mut Vec<f64>) {
        let (n, lanes) = (self.ode.states, front.lanes);
        let relative = self.ode.relative;
        let allowed = (1000.0 * relative).min(FOLLOWED).max(relative);
        let most = (self.pair.perturbations * allowed).powf(1.0 / (self.pair.order + 1.0));
        let row = |i: usize| i * lanes..(i + 1) * lanes;
        self.states[1].copy_from_slice(&front.states);
        self.largest.clear();
        self.largest.resize(lanes, 0.0);
        for y in front.states[..n * lanes].chunks_exact(lanes) {
            let largest = self.largest.iter_mut().zip(y);
            largest.for_each(|(largest, y)| *largest = largest.max(y.abs()));
        }
        self.units.resize(n * lanes, 0.0);
        for i in 0..n {
            let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
            let share = 1.0 - 0.3 * i as f64 / n as f64;
            nudge(
                self.simd,
                &mut self.states[1][row(i)],
                &mut self.units[row(i)],
                &front.states[row(i)],
                &self.largest,
                [self.ode.absolute[i], PERTURBATION * sign * share],
            );
        }
        let point = Point {
            clock: &front.clock,
            states: &self.states[1],
            parameters: &front.parameters,
            lanes,
        };
        system.rate(point, &mut self.rates[1]);
        longest.clear();
        longest.resize(lanes, 0.0);
        for i in 0..n {
            let rates = [&front.rates[row(i)], &self.rates[1][row(i)]];
            steepest(self.simd, longest, rates, &self.units[row(i)]);
        }
        longest.iter_mut().for_each(|slope| *slope = most / *slope);
    }
}

impl Scheme for Explicit<'_> {
    fn order(&self) -> f64 {
        self.pair.order
    }

    fn attempt(&mut self, system: &mut dyn System, front: &Front, attempt: &mut Attempt) {
        self.simd = system.simd();
        let lanes = front.lanes;
        let count = self.pair.nodes.len();
        self.rates.resize(count, Vec::new());
        self.rates[0].clear();
        self.rates[0].extend_from_slice(&front.rates);
        self.stages(system, front, 1, count);
        let size = front.states.len();
        attempt.states.resize(size, 0.0);
        self.errors.resize(size, 0.0);
        self.nothing.resize(size, 0.0);
        if let Some(weights) = self.pair.weights {
            combine(
                self.simd,
                &mut attempt.states,
                &front.states,
                &front.trial,
                weights,
                &self.rates,
            );
        } else {
            attempt.states.copy_from_slice(&self.states[count - 1]);
        }
        combine(
            self.simd,
            &mut self.errors,
            &self.nothing,
            &front.trial,
            self.pair.errors,
            &self.rates,
        );
        attempt.error.clear();
        attempt.error.resize(lanes, 0.0);
        for i in 0..self.ode.states {
            let row = i * lanes..(i + 1) * lanes;
            let sizes = [&attempt.states[row.clone()], &front.states[row.clone()]];
            let units = [self.ode.absolute[i], self.ode.relative];
            worst(
                self.simd,
                &mut attempt.error,
                &self.errors[row],
                sizes,
                units,
            );
        }
        if let Some(weights) = self.pair.correction {
            combine(
                self.simd,
                &mut self.errors,
                &self.nothing,
                &front.trial,
                weights,
                &self.rates,
            );
            self.coarse.clear();
            self.coarse.resize(lanes, 0.0);
            for i in 0..self.ode.states {
                let row = i * lanes..(i + 1) * lanes;
                let sizes = [&attempt.states[row.clone()], &front.states[row.clone()]];
                let units = [self.ode.absolute[i], self.ode.relative];
                worst(self.simd, &mut self.coarse, &self.errors[row], sizes, units);
            }
            correct(self.simd, &mut attempt.error, &self.coarse);
        }
        attempt.stages.clear();
        if attempt.keeps {
            for states in &self.states[1..self.pair.weights().len()] {
                attempt.stages.extend_from_slice(states);
            }
        }
        if self.pair.weights.is_none() {
            let rates = attempt.rates.get_or_insert_default();
            rates.clone_from(&self.rates[count - 1]);
        }
        self.longest(system, front, attempt.longest.get_or_insert_default());
    }

    fn pull(
        &mut self,
        system: &mut dyn Differentiable,
        front: &Front,
        adjoint: &mut [f64],
        parameters: &mut [f64],
    ) {
        self.simd = system.simd();
        let lanes = front.lanes;
        let pair = self.pair;
        let weights_of_end = pair.weights();
        // Only these stages contribute to the result.
        let count = weights_of_end.len();
        let size = adjoint.len();
        if front.stages.is_empty() {
            // The rates at the last of these stages are not needed.
            self.stages(system, front, 0, count - 1);
            let last = count - 1;
            combine(
                self.simd,
                &mut self.states[last],
                &front.states,
                &front.trial,
                pair.stages[last - 1],
                &self.rates,
            );
        }
        let Pulling {
            mut pulled,
            mut here,
            mut weights,
        } = std::mem::take(&mut self.pulling);
        // The adjoint of the end of the step follows the adjoints of the stages. Its weights are the weights of the
        // pair.
        pulled.resize(count + 1, Vec::new());
        pulled[count].clear();
        pulled[count].extend_from_slice(adjoint);
        here.resize(parameters.len(), 0.0);
        weights.resize(size, 0.0);
        self.nothing.resize(size, 0.0);
        let mut counts = vec![0.0; count + 1];
        for i in (0..count).rev() {
            for (j, counts) in counts.iter_mut().enumerate().take(count) {
                *counts = if j > i { pair.stages[j - 1][i] } else { 0.0 };
            }
            counts[count] = weights_of_end[i];
            combine(
                self.simd,
                &mut weights,
                &self.nothing,
                &front.trial,
                &counts,
                &pulled,
            );
            self.clock_at(front, i);
            pulled[i].resize(size, 0.0);
            let states = match front.stages.is_empty() {
                true => &self.states[i][..],
                false if i == 0 => &front.states,
                false => &front.stages[(i - 1) * size..i * size],
            };
            let point = Point {
                clock: &self.clock,
                states,
                parameters: &front.parameters,
                lanes,
            };
            system.pull(point, &weights, &mut pulled[i], &mut here);
            add_where(self.simd, parameters, &here, &front.trial);
        }
        for pulled in &pulled[..count] {
            add_where(self.simd, adjoint, pulled, &front.trial);
        }
        self.pulling = Pulling {
            pulled,
            here,
            weights,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: usize, salt: usize) -> Vec<f64> {
        (0..count)
            .map(|i| match (i * 7 + salt) % 31 {
                0 => f64::NAN,
                1 => f64::INFINITY,
                k => (k as f64 - 15.0) * 1.37 + 0.01 * i as f64,
            })
            .collect()
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        let (lanes, states) = (80, 3);
        let size = lanes * states;
        let all = |simd: Simd| -> Vec<u64> {
            let rates: Vec<Vec<f64>> = (0..4).map(|k| rows(size, 5 * k)).collect();
            let (base, length) = (rows(size, 22), rows(lanes, 27));
            let (mut out, mut units) = (vec![0.0; size], vec![0.0; lanes]);
            combine(
                simd,
                &mut out,
                &base,
                &length,
                &[0.3, 0.0, -1.2, 2.5],
                &rates,
            );
            // A weight of 0 has no effect, even if the rate is not finite.
            assert!(
                rates[1]
                    .iter()
                    .zip(&out)
                    .any(|(rate, out)| rate.is_nan() && out.is_finite())
            );
            let row = &base[..lanes];
            let mut most = vec![0.0; lanes];
            worst(simd, &mut most, &out[..lanes], [row, &length], [1e-3, 1e-2]);
            let mut to = vec![0.0; lanes];
            nudge(simd, &mut to, &mut units, row, &length, [1e-6, -1e-6]);
            let mut slopes = vec![0.0; lanes];
            steepest(simd, &mut slopes, [row, &length], &units);
            correct(simd, &mut most, &length);
            let mut sum = base.clone();
            add_where(simd, &mut sum, &out, &length);
            let numbers = [out, most, to, units, slopes, sum].concat();
            // The payload of a NaN does not matter.
            let bits = |x: &f64| if x.is_nan() { 0 } else { x.to_bits() };
            numbers.iter().map(bits).collect()
        };
        let plain = all(Simd::Scalar);
        for simd in Simd::available() {
            assert_eq!(all(simd), plain, "{simd:?}");
        }
    }
}
