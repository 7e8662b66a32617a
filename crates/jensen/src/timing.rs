//! Measurement of the time that is needed to build and to evaluate a density.

use jensen_blackbox::{NoisePurpose, NoiseSource};
use jensen_density::{Lanes, LanesMut, TwiceDifferentiable};
use jensen_math::order::median;
use jensen_math::simd::Simd;
use jensen_run::Clock;
use serde::Serialize;

/// Measures the elapsed time outside a run, in seconds. The result is always 0 in a browser, because WebAssembly has no
/// clock.
pub(crate) struct Stopwatch {
    #[cfg(not(target_family = "wasm"))]
    begun: std::time::Instant,
}

impl Stopwatch {
    #[allow(
        clippy::disallowed_methods,
        reason = "the seconds of building are no run's"
    )]
    pub(crate) fn start() -> Self {
        Self {
            #[cfg(not(target_family = "wasm"))]
            begun: std::time::Instant::now(),
        }
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    #[cfg(target_family = "wasm")]
    #[allow(clippy::unused_self, reason = "as where there is a clock")]
    pub(crate) fn seconds(&self) -> f64 {
        0.0
    }
}

/// The minimum duration of a repetition in seconds. The duration must be much longer than the resolution of the clock.
const SHORTEST: f64 = 0.01;

/// The time that evaluations of a density need per draw, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DensityTiming {
    /// The time for an evaluation of the log density, in seconds.
    pub seconds_per_value: f64,
    /// The time for an evaluation of the log density and its gradient, in seconds.
    pub seconds_per_gradient: f64,
    /// The time for a Hessian-vector product at new draws, in seconds. The time includes the linearisation.
    pub seconds_per_hvp: f64,
    /// The time for each further Hessian-vector product at the same draws, in seconds.
    pub seconds_per_further_hvp: f64,
}

/// Measures the time of evaluating a density at `lanes` draws from a normal distribution with standard deviation one
/// half. The function repeats each measurement for about `seconds` seconds, but at least three times. Each reported
/// time is the median of the repetitions.
pub fn time_density<D: TwiceDifferentiable>(
    density: &D,
    lanes: usize,
    seconds: f64,
    clock: &dyn Clock,
) -> DensityTiming {
    let dim = density.dim();
    let mut z = vec![0.0; dim * lanes];
    let mut v = vec![0.0; dim * lanes];
    let source = NoiseSource::new(0, Simd::Scalar);
    source.fill(NoisePurpose::Draws, 0, 0, dim, lanes, &mut z);
    source.fill(NoisePurpose::Draws, 1, 0, dim, lanes, &mut v);
    z.iter_mut().for_each(|x| *x *= 0.5);
    let (z, v) = (Lanes::new(&z, dim, lanes), Lanes::new(&v, dim, lanes));
    let mut values = vec![0.0; lanes];
    let mut out = vec![0.0; dim * lanes];
    let mut ws = density.workspace(lanes);
    let time = |body: &mut dyn FnMut()| median_seconds(body, seconds, clock) / lanes as f64;
    let seconds_per_value = time(&mut || density.value(&mut ws, z, &mut values));
    let seconds_per_gradient = time(&mut || {
        let gradient = LanesMut::new(&mut out, dim, lanes);
        density.value_grad(&mut ws, z, &mut values, gradient);
    });
    let seconds_per_hvp = time(&mut || {
        let product = LanesMut::new(&mut out, dim, lanes);
        density.hvp(&mut ws, z, v, product);
    });
    density.linearize(&mut ws, z);
    let seconds_per_further_hvp = time(&mut || {
        let product = LanesMut::new(&mut out, dim, lanes);
        density.apply(&mut ws, v, product);
    });
    DensityTiming {
        seconds_per_value,
        seconds_per_gradient,
        seconds_per_hvp,
        seconds_per_further_hvp,
    }
}

/// Each repetition calls `body` several times, so that the resolution of the clock does not affect the result.
fn median_seconds(body: &mut dyn FnMut(), seconds: f64, clock: &dyn Clock) -> f64 {
    // The first call is not timed, because it creates programs and allocates memory.
    body();
    let mut calls = 1u32;
    let mut once = |calls: u32| {
        let start = clock.seconds();
        (0..calls).for_each(|_| body());
        clock.seconds() - start
    };
    let mut taken = once(calls);
    while taken < SHORTEST && calls < 1 << 20 {
        calls *= 2;
        taken = once(calls);
    }
    let repetitions = ((seconds / taken) as usize).clamp(3, 101);
    let times: Vec<f64> = (0..repetitions).map(|_| once(calls)).collect();
    median(&times) / f64::from(calls)
}
