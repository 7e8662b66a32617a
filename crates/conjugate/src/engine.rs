//! The interface between a model and the drivers: local steps over a batch, a global step, bounds and normalisers.
//!
//! Two kinds of engines exist. [`Pointwise`](crate::pointwise::Pointwise) builds an engine from any
//! [`ConjugateModel`](crate::model::ConjugateModel), whose global parameters are a single vector of natural parameters.
//! Latent Dirichlet allocation has its own engine, because it has too many global parameters to visit in every step.

use jensen_run::wire::{Reader, Writer};
use jensen_run::{Record, Snapshot};

use crate::temper::InverseTemperatures;

/// The weights of the likelihood of the points in a batch.
#[derive(Clone, Copy, Debug)]
pub enum Heat<'a, T> {
    /// One inverse temperature for all points.
    Uniform(f64),
    /// One inferred temperature for every point: the grid of inverse temperatures, and the expected log normalisers.
    Local {
        /// The inverse temperature of a point.
        grid: &'a InverseTemperatures,
        /// The smallest inverse temperature at which a point may end.
        floor: f64,
        /// The starting value of the search for a point's temperature.
        first: f64,
        /// The result of [`Engine::table`].
        table: &'a T,
    },
}

/// The quantities that local steps measure in addition to the expected statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    /// [`Sums::energy`].
    pub energy: bool,
    /// [`Sums::bound`].
    pub bound: bool,
}

/// Sums over the points of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Number of points that were used.
    pub points: usize,
    /// Number of skipped empty points.
    pub skipped: usize,
    /// Sum of the numbers of observations in the points (tokens, steps of a sequence, or the point itself).
    pub size: f64,
    /// Σ `E_q[log p(x_i, z_i | β)]` in nats, untempered; 0 unless requested.
    pub energy: f64,
    /// Σ (τ_i `E_q[log p(x_i, z_i | β)]` + H(q(z_i)) − KL of the point's own priors), in nats, or 0 unless requested.
    pub bound: f64,
    /// Σ τ_i over the points.
    pub inverse: f64,
    /// Number of points whose local step reached the largest number of iterations.
    pub unconverged: usize,
    /// Total number of inner iterations.
    pub sweeps: u64,
}

impl Sums {
    /// Adds the sums over other points.
    pub fn merge(&mut self, other: &Self) {
        self.points += other.points;
        self.skipped += other.skipped;
        self.size += other.size;
        self.energy += other.energy;
        self.bound += other.bound;
        self.inverse += other.inverse;
        self.unconverged += other.unconverged;
        self.sweeps += other.sweeps;
    }

    /// Writes the sums of a shard, for its driver.
    pub(crate) fn write(&self, out: &mut Writer<'_>) {
        out.counts(&[
            self.points as u64,
            self.skipped as u64,
            self.unconverged as u64,
            self.sweeps,
        ]);
        out.reals(&[self.size, self.energy, self.bound, self.inverse]);
    }

    /// Reads the output of [`write`](Self::write).
    ///
    /// # Errors
    /// Fails if the bytes are not sums.
    pub(crate) fn read(read: &mut Reader<'_>) -> Result<Self, String> {
        let [points, skipped, unconverged, sweeps] = read.counts()?;
        let [size, energy, bound, inverse] = read.fixed_reals()?;
        Ok(Self {
            points: points as usize,
            skipped: skipped as usize,
            size,
            energy,
            bound,
            inverse,
            unconverged: unconverged as usize,
            sweeps,
        })
    }
}

/// Estimates of log C(T) of the tempered joint density at several temperatures, in nats.
///
/// C(T) = ∫ p(β) Π_i ∫ p(x_i, z_i | β)^(1/T) dx_i dz_i dβ (Mandt et al. 2016, Eq. 3 and supplement A). Let c(β, s) be
/// the sum over points of log ∫ p(x_i, z_i | β)^s. Then log C = log `E[exp c]` ≥ `E[c]`. The average over draws is
/// computed in the log domain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Partition {
    /// Estimate of log C at each inverse temperature, in nats.
    pub log_c: Vec<f64>,
    /// A lower bound of log C by Jensen's inequality: the mean of c over draws, or a better closed form with averages
    /// inside the powers. (The supplement of the paper calls this form an upper bound, but the powers are convex.)
    pub lower: Vec<f64>,
}

/// The interface to a model with its data, as the drivers use it.
pub trait Engine {
    /// Variational parameters of the global parameters, and any further state on which later steps depend.
    type Globals: Snapshot + Clone;
    /// Expected log normalisers for local temperatures.
    type Table: Snapshot + Clone;

    /// Returns the number of data points N.
    fn points(&self) -> usize;

    /// Returns the number of neighbouring points that are read together (see [`Order`](crate::documents::Order)).
    fn block(&self) -> usize {
        1
    }

    /// Returns the random start for a seed.
    fn start(&self, seed: u64) -> Self::Globals;

    /// Optimises q(z_i) for the points of a batch, and keeps their expected sufficient statistics, each weighted by its
    /// inverse temperature, for the next [`global_step`](Self::global_step). Returns `None` if the points cannot be
    /// reached. The step then has no effect.
    fn local_steps(
        &mut self,
        globals: &mut Self::Globals,
        batch: &[usize],
        heat: &Heat<'_, Self::Table>,
        measure: Measure,
    ) -> Option<Sums>;

    /// Returns the largest share of the start that [`lean_on_start`](Self::lean_on_start) receives while a cooling
    /// policy is hot. It is 0 for engines that do not need the start.
    fn lean(&self) -> f64 {
        0.0
    }

    /// In the next global step, replaces a share of the data's statistics by the statistics of the random start of a
    /// seed, at an inverse temperature.
    fn lean_on_start(&mut self, seed: u64, share: f64, inverse: f64) {
        let _ = (seed, share, inverse);
    }

    /// Restarts one of each pair of equal components. Returns false if there are none. Different values of `attempt`
    /// give different restarts.
    fn part_twins(&self, globals: &mut Self::Globals, seed: u64, attempt: u64) -> bool {
        let _ = (globals, seed, attempt);
        false
    }

    /// Updates λ ← (1 − ρ) λ + ρ (α + scale · statistics) (Mandt et al. 2016, Eq. 8).
    fn global_step(&mut self, globals: &mut Self::Globals, rho: f64, scale: f64);

    /// Computes `E_q[log p(β)]` − `E_q[log q(β)]`, in nats.
    fn global_bound(&self, globals: &Self::Globals) -> f64;

    /// See [`ConjugateModel::log_jacobian`](crate::model::ConjugateModel::log_jacobian).
    fn log_jacobian(&self) -> f64 {
        0.0
    }

    /// Returns the bound at T = 1 in nats, by which two results of a run are compared. Returns `None` if a visit of
    /// every point would cost too much.
    fn untempered_bound(&self, globals: &Self::Globals) -> Option<f64> {
        let _ = globals;
        None
    }

    /// Returns log C(T) at the given inverse temperatures. If `draws` is given and no exact value is known, the
    /// estimate uses that many draws from the prior. Otherwise it is the engine's best value.
    fn log_partition(&self, inverse: &[f64], draws: Option<usize>, seed: u64) -> Partition;

    /// Returns the expected log normalisers `E_q[log ∫ p(x_i, z_i | β)^s]` at the current global parameters, for local
    /// temperatures.
    fn table(&self, globals: &Self::Globals, inverse: &[f64], seed: u64) -> Self::Table;

    /// Adds the engine's own measurements (held-out scores) to a line of the trace.
    fn score(&mut self, globals: &Self::Globals, record: Record) -> Record {
        let _ = globals;
        record
    }
}
