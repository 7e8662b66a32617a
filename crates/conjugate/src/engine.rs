//! The interface between a model and the drivers. It consists of local steps over a batch, a global step, bounds and
//! normalisers.
//!
//! There are two kinds of engines. [`Pointwise`](crate::pointwise::Pointwise) builds an engine from any
//! [`ConjugateModel`](crate::model::ConjugateModel), whose global parameters are a single vector of natural parameters.
//! Latent Dirichlet allocation has a separate engine, because it has too many global parameters to update all of them
//! in every step.

use jensen_run::wire::{Reader, Writer};
use jensen_run::{Record, Snapshot};

use crate::temper::InverseTemperatures;

/// The weights of the likelihood for the points in a batch.
#[derive(Clone, Copy, Debug)]
pub enum Heat<'a, T> {
    /// One inverse temperature for all points.
    Uniform(f64),
    /// One inferred temperature for each point.
    Local {
        /// The inverse temperatures that a point may have.
        grid: &'a InverseTemperatures,
        /// The smallest final inverse temperature that a point may have.
        floor: f64,
        /// The starting value of the search for a point's inverse temperature.
        first: f64,
        /// The expected log normalisers, from [`Engine::table`].
        table: &'a T,
    },
}

/// The quantities that local steps compute in addition to the expected statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    /// Whether to compute [`Sums::energy`].
    pub energy: bool,
    /// Whether to compute [`Sums::bound`].
    pub bound: bool,
}

/// Sums over the points of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Number of points that were used.
    pub points: usize,
    /// Number of skipped empty points.
    pub skipped: usize,
    /// Sum of the sizes of the points. A size is a number of tokens, a number of steps of a sequence, or 1.
    pub size: f64,
    /// Sum of `E_q[log p(x_i, z_i | β)]` in nats, without tempering. It is 0 unless it was requested.
    pub energy: f64,
    /// Sum of τ_i `E_q[log p(x_i, z_i | β)]` + H(q(z_i)) − KL, in nats, where KL is the divergence from the point's own
    /// priors. It is 0 unless it was requested.
    pub bound: f64,
    /// Sum of the inverse temperatures τ_i of the points.
    pub inverse: f64,
    /// Number of points whose local step reached the largest number of iterations.
    pub unconverged: usize,
    /// Total number of inner iterations of all points.
    pub sweeps: u64,
}

impl Sums {
    /// Adds the sums over another set of points.
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

    pub(crate) fn write(&self, out: &mut Writer<'_>) {
        out.counts(&[
            self.points as u64,
            self.skipped as u64,
            self.unconverged as u64,
            self.sweeps,
        ]);
        out.reals(&[self.size, self.energy, self.bound, self.inverse]);
    }

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

/// Estimates of log C(T), in nats, at several temperatures. C(T) is the normaliser of the tempered joint density.
///
/// C(T) = ∫ p(β) Π_i ∫ p(x_i, z_i | β)^(1/T) dx_i dz_i dβ (Mandt et al. 2016, Eq. 3 and supplement A). Let c(β, s) be
/// the sum over points of log ∫ p(x_i, z_i | β)^s. Then log C = log `E[exp c]` ≥ `E[c]`. The average over draws is
/// computed in the log domain, which prevents overflow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Partition {
    /// Estimate of log C at each inverse temperature, in nats.
    pub log_c: Vec<f64>,
    /// A lower bound on log C by Jensen's inequality. It is the mean of c over draws, or a tighter bound in closed
    /// form, which takes averages inside the powers. (The supplement of the paper calls this form an upper bound, but
    /// the powers are convex.)
    pub lower: Vec<f64>,
}

/// The interface through which the drivers use a model and its data.
pub trait Engine {
    /// The variational parameters of the global parameters, together with any other state that later steps need.
    type Globals: Snapshot + Clone;
    /// The expected log normalisers for local temperatures.
    type Table: Snapshot + Clone;

    /// Returns the number of data points N.
    fn points(&self) -> usize;

    /// Returns the number of adjacent points that are read together (see [`Order`](crate::documents::Order)).
    fn block(&self) -> usize {
        1
    }

    /// Returns the random start for a seed.
    fn start(&self, seed: u64) -> Self::Globals;

    /// Optimises q(z_i) for the points of a batch. The engine weights the expected sufficient statistics of each point
    /// by the point's inverse temperature and keeps them for the next [`global_step`](Self::global_step). Returns
    /// `None` if the points are not available. The step then has no effect.
    fn local_steps(
        &mut self,
        globals: &mut Self::Globals,
        batch: &[usize],
        heat: &Heat<'_, Self::Table>,
        measure: Measure,
    ) -> Option<Sums>;

    /// Returns the largest share that the driver passes to [`lean_on_start`](Self::lean_on_start) while a cooling
    /// policy is hot. It is 0 for engines that do not need the start.
    fn lean(&self) -> f64 {
        0.0
    }

    /// Replaces a share of the data's statistics in the next global step by the statistics of the random start for
    /// `seed`, at the inverse temperature `inverse`.
    fn lean_on_start(&mut self, seed: u64, share: f64, inverse: f64) {
        let _ = (seed, share, inverse);
    }

    /// Restarts one component of each pair of equal components, or merges components of a model that leaves components
    /// empty. Returns false if there are no such components. Different values of `attempt` give different restarts.
    fn part_twins(&self, globals: &mut Self::Globals, seed: u64, attempt: u64) -> bool {
        let _ = (globals, seed, attempt);
        false
    }

    /// Updates λ ← (1 − ρ) λ + ρ (α + scale · statistics) (Mandt et al. 2016, Eq. 8).
    fn global_step(&mut self, globals: &mut Self::Globals, rho: f64, scale: f64);

    /// Computes `E_q[log p(β)]` − `E_q[log q(β)]`, in nats.
    fn global_bound(&self, globals: &Self::Globals) -> f64;

    /// Returns the log Jacobian, which [`ConjugateModel::log_jacobian`](crate::model::ConjugateModel::log_jacobian)
    /// defines.
    fn log_jacobian(&self) -> f64 {
        0.0
    }

    /// Returns the bound at T = 1 in nats. The driver compares the results of two runs by this bound. Returns `None` if
    /// visiting every point would cost too much.
    fn untempered_bound(&self, globals: &Self::Globals) -> Option<f64> {
        let _ = globals;
        None
    }

    /// Returns log C(T) at the given inverse temperatures. An engine without an exact value estimates log C(T) from
    /// `draws` draws of the prior. If `draws` is `None`, the engine returns the best value that it can compute.
    fn log_partition(&self, inverse: &[f64], draws: Option<usize>, seed: u64) -> Partition;

    /// Returns the expected log normalisers `E_q[log ∫ p(x_i, z_i | β)^s]` at the current global parameters, for local
    /// temperatures.
    fn table(&self, globals: &Self::Globals, inverse: &[f64], seed: u64) -> Self::Table;

    /// Adds measurements of the engine, such as held-out scores, to a line of the trace.
    fn score(&mut self, globals: &Self::Globals, record: Record) -> Record {
        let _ = globals;
        record
    }
}
