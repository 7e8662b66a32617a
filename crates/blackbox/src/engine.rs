//! The interface of a method: its settings, its state and its algorithm.

use std::any::Any;
use std::sync::Arc;

use jensen_density::TwiceDifferentiable;
use jensen_run::{Algorithm, Archive, SettingError, Snapshot, Status, Step};

use crate::calls::Calls;
use crate::error::FitError;
use crate::family::{Family, Smoothness};
use crate::noise::NoiseSource;
use crate::records::Prepared;

/// The data from which a method begins a fit.
pub struct Beginning<'a, D: TwiceDifferentiable> {
    /// The density over all data.
    pub density: &'a D,
    /// The records of the density, prepared for the fit. They are present if the method
    /// [requests](MethodSettings::batch) them.
    pub records: Option<&'a Prepared<'a>>,
    /// The family to fit.
    pub family: Arc<dyn Family>,
    /// The source of random numbers.
    pub source: NoiseSource,
    /// The starting point of the stage. A resumed run continues from its stored state and does not use this point.
    pub omega: Vec<f64>,
    /// The number of the random stream of this family, so that each family in a fit uses different draws. The first
    /// family has stream 0.
    pub stream: u64,
}

impl<'a, D: TwiceDifferentiable> Beginning<'a, D> {
    /// Returns the prepared records.
    ///
    /// # Errors
    /// Fails if the density has no records.
    pub fn prepared(&self) -> Result<&'a Prepared<'a>, FitError> {
        self.records.ok_or_else(no_records)
    }
}

pub(crate) fn no_records() -> FitError {
    FitError::Setting(
        "the method needs exchangeable records, but the density has none: use `--exchangeable N`, or choose \
         another method"
            .to_owned(),
    )
}

/// The properties of a method's settings that the driver uses.
pub trait MethodSettings: Copy {
    /// The name of the method in traces and checkpoints.
    const NAME: &'static str;

    /// Whether the method is preceded by several starts. Otherwise it begins at the initial point with unit scales.
    const STARTS: bool = true;

    /// Checks that all settings are within their ranges.
    ///
    /// # Errors
    /// Fails with a sentence that contains the setting, its value and its range.
    fn validate(&self) -> Result<(), SettingError>;

    /// Returns how many draws the method processes at the same time. It keeps the derivatives of these draws, in `dim`
    /// coordinates, in memory.
    fn lanes(&self, dim: usize) -> usize;

    /// Returns the number of records in a minibatch if the method needs exchangeable records.
    fn batch(&self) -> Option<usize> {
        None
    }

    /// Returns whether the method can fit a family that provides these derivatives.
    fn suits(&self, smoothness: Smoothness) -> bool {
        smoothness == Smoothness::Twice
    }
}

/// The settings of a method that fits families itself, without delegating to another method.
pub trait Fitting: MethodSettings {
    /// The state of the method between iterations.
    type State: MethodState + Snapshot + 'static;

    /// Creates the algorithm of the method.
    ///
    /// # Errors
    /// Fails if the settings do not suit the density.
    fn begin<'a, D: TwiceDifferentiable>(
        &self,
        at: Beginning<'a, D>,
    ) -> Result<Box<dyn Engine + 'a>, FitError>;

    /// Returns whether the next method of the [plan](crate::Method::plan) should continue from the result of this
    /// method. `status` is the status at the end of this method, and `dim` is the number of coordinates.
    fn hands_over(&self, status: &Status, dim: usize) -> bool {
        let _ = (status, dim);
        false
    }

    /// Returns the tolerance, in nats, for a second-order polish that must confirm convergence. `None` means that no
    /// polish is necessary, because the method's own stopping rule already implies convergence.
    fn certificate(&self) -> Option<f64> {
        None
    }

    /// Returns the share of the data that one lane evaluates. The share is a fraction, given as a numerator and a
    /// denominator. `records` is the number of records in the data.
    fn share(&self, records: u64) -> (u64, u64) {
        let _ = records;
        (1, 1)
    }
}

/// The part of a method's state that is visible during a run.
pub trait MethodState {
    /// Returns the parameters that the method would return in the current state.
    fn omega(&self) -> &[f64];

    /// Returns the number of evaluations so far.
    fn calls(&self) -> Calls;
}

/// A [`MethodState`] of any type that can be stored in a checkpoint.
pub trait StoredState: MethodState + Any {
    /// Returns the stored form of the state (see [`Snapshot::save`]).
    fn archive(&self) -> Archive;
}

impl<S: MethodState + Snapshot + Any> StoredState for S {
    fn archive(&self) -> Archive {
        self.save()
    }
}

/// A method that fits one family and has its own type of state.
pub trait Engine {
    /// Creates the initial state (see [`Algorithm::init`]).
    ///
    /// # Errors
    /// Returns a status if there is no valid initial state.
    fn init(&mut self) -> Result<Box<dyn StoredState>, Status>;

    /// Performs one iteration (see [`Algorithm::step`]).
    fn step(&mut self, state: &mut dyn StoredState, iteration: u64) -> Step;
}

impl<A: Algorithm> Engine for A
where
    A::State: MethodState + 'static,
{
    fn init(&mut self) -> Result<Box<dyn StoredState>, Status> {
        Ok(Box::new(Algorithm::init(self)?))
    }

    fn step(&mut self, state: &mut dyn StoredState, iteration: u64) -> Step {
        let state: &mut dyn Any = state;
        let state = state.downcast_mut().expect("the method's own state");
        Algorithm::step(self, state, iteration)
    }
}
