//! The interface of a method, and the list of methods.
//!
//! A new method is one file with its settings, state and algorithm, where the settings implement [`Fitting`] and the
//! state implements [`MethodState`], and one line in the list below.

use std::any::Any;
use std::sync::Arc;

use jensen_density::TwiceDifferentiable;
use jensen_run::{Algorithm, Archive, ArchiveError, Snapshot, Status, Step};
use serde::{Deserialize, Serialize};

use crate::advi::AdviSettings;
use crate::bbvi::BbviSettings;
use crate::calls::Calls;
use crate::error::FitError;
use crate::family::{Family, FamilyKind, Smoothness};
use crate::hfsgvi::HfsgviSettings;
use crate::moments::MomentsSettings;
use crate::natural::NaturalSettings;
use crate::nested::NestedSettings;
use crate::noise::NoiseSource;
use crate::records::{MinibatchSettings, Prepared, SmisoSettings};
use crate::saa::SaaSettings;
use crate::settings::AutoSettings;
use crate::trust::{PaperTrustSettings, RecordTrust, TrustSettings};

/// The input of a method.
pub struct Beginning<'a, D: TwiceDifferentiable> {
    /// The density of all data.
    pub density: &'a D,
    /// Its records, prepared for the fit, if the method [requests](MethodSettings::batch) them.
    pub records: Option<&'a Prepared<'a>>,
    /// The family to fit.
    pub family: Arc<dyn Family>,
    /// The random numbers.
    pub source: NoiseSource,
    /// Where it begins. After a resume this is the start of the stage, on which no step depends.
    pub omega: Vec<f64>,
    /// Keeps the draws of the fit's families apart: 0 for the first.
    pub stream: u64,
}

impl<'a, D: TwiceDifferentiable> Beginning<'a, D> {
    /// The records.
    ///
    /// # Errors
    /// Fails if the density has no records.
    pub fn prepared(&self) -> Result<&'a Prepared<'a>, FitError> {
        self.records.ok_or_else(no_records)
    }
}

/// The reason why a minibatch method cannot fit a density without records.
pub(crate) fn no_records() -> FitError {
    FitError::Setting(
        "the method needs exchangeable records, and the density shows none: compile the program over them, or choose \
         another method"
            .to_owned(),
    )
}

/// The properties of a method's settings that the driver needs.
pub trait MethodSettings: Copy {
    /// The name in traces and checkpoints.
    const NAME: &'static str;

    /// Whether several starts come first; otherwise it begins at the initial point with unit scales.
    const STARTS: bool = true;

    /// Checks ranges.
    ///
    /// # Errors
    /// One sentence that names the setting, its value and its range.
    fn validate(&self) -> Result<(), String>;

    /// Number of draws in `dim` coordinates whose derivatives it stores together.
    fn lanes(&self, dim: usize) -> usize;

    /// Records of a minibatch, for methods that need exchangeable records.
    fn batch(&self) -> Option<usize> {
        None
    }

    /// Whether it can fit a family with these derivatives.
    fn suits(&self, smoothness: Smoothness) -> bool {
        smoothness == Smoothness::Twice
    }

    /// The methods that fit a family, each of which takes over when the previous one [hands over](Fitting::hands_over).
    fn plan(&self, kind: FamilyKind) -> Vec<Method>;
}

/// The settings of a method that needs no other method.
pub trait Fitting: MethodSettings {
    /// The state that it carries between iterations.
    type State: MethodState + Snapshot + 'static;

    /// The algorithm.
    ///
    /// # Errors
    /// Fails if the settings do not suit the density.
    fn begin<'a, D: TwiceDifferentiable>(
        &self,
        at: Beginning<'a, D>,
    ) -> Result<Box<dyn Engine + 'a>, FitError>;

    /// Whether the next method of the plan should continue after this one ended with `status`, in `dim` coordinates.
    fn hands_over(&self, status: &Status, dim: usize) -> bool {
        let _ = (status, dim);
        false
    }

    /// The tolerance in nats within which a second-order polish must confirm convergence. `None` if the method's own
    /// rule implies that.
    fn certificate(&self) -> Option<f64> {
        None
    }

    /// The share of the data that one lane evaluates, for the given number of records.
    fn share(&self, records: u64) -> (u64, u64) {
        let _ = records;
        (1, 1)
    }
}

/// The visible part of a method's state during a run.
pub trait MethodState {
    /// The parameters of a result at the current state.
    fn omega(&self) -> &[f64];

    /// Evaluations so far.
    fn calls(&self) -> Calls;
}

/// A [`MethodState`] of any type that can be stored.
pub trait StoredState: MethodState + Any {
    /// See [`Snapshot::save`].
    fn archive(&self) -> Archive;
}

impl<S: MethodState + Snapshot + Any> StoredState for S {
    fn archive(&self) -> Archive {
        self.save()
    }
}

/// A method that runs on one family, with its own type of state.
pub trait Engine {
    /// See [`Algorithm::init`].
    ///
    /// # Errors
    /// A status if there is no valid initial state.
    fn init(&mut self) -> Result<Box<dyn StoredState>, Status>;

    /// See [`Algorithm::step`].
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

/// A method's name with its state.
type Restored = (&'static str, Result<Box<dyn StoredState>, ArchiveError>);

/// The list of methods; [`Method`] is generated from their settings.
macro_rules! methods {
    (
        policies { $($(#[$about:meta])* $policy:ident($rules:ty),)* }
        methods { $($(#[$doc:meta])* $method:ident($settings:ty),)* }
    ) => {
        /// The algorithm that optimises.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Method {
            $($(#[$about])* $policy($rules),)*
            $($(#[$doc])* $method($settings),)*
        }

        $(impl From<$settings> for Method {
            fn from(settings: $settings) -> Self {
                Self::$method(settings)
            }
        })*

        impl Method {
            /// The method's name in traces and checkpoints.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$policy(_) => <$rules>::NAME,)*
                    $(Self::$method(_) => <$settings>::NAME,)*
                }
            }

            /// Whether several starts precede the method.
            pub fn has_starts(&self) -> bool {
                match self {
                    $(Self::$policy(_) => <$rules>::STARTS,)*
                    $(Self::$method(_) => <$settings>::STARTS,)*
                }
            }

            /// See [`MethodSettings::validate`].
            ///
            /// # Errors
            /// One sentence that names the setting, its value and its range.
            pub fn validate(&self) -> Result<(), String> {
                match self {
                    $(Self::$policy(settings) => settings.validate(),)*
                    $(Self::$method(settings) => settings.validate(),)*
                }
            }

            /// See [`MethodSettings::lanes`].
            pub fn lanes(&self, dim: usize) -> usize {
                match self {
                    $(Self::$policy(settings) => settings.lanes(dim),)*
                    $(Self::$method(settings) => settings.lanes(dim),)*
                }
            }

            /// See [`MethodSettings::batch`].
            pub fn batch(&self) -> Option<usize> {
                match self {
                    $(Self::$policy(settings) => settings.batch(),)*
                    $(Self::$method(settings) => settings.batch(),)*
                }
            }

            /// See [`MethodSettings::suits`].
            pub fn suits(&self, smoothness: Smoothness) -> bool {
                match self {
                    $(Self::$policy(settings) => settings.suits(smoothness),)*
                    $(Self::$method(settings) => settings.suits(smoothness),)*
                }
            }

            /// See [`MethodSettings::plan`].
            pub fn plan(&self, kind: FamilyKind) -> Vec<Self> {
                match self {
                    $(Self::$policy(settings) => settings.plan(kind),)*
                    $(Self::$method(settings) => settings.plan(kind),)*
                }
            }

            /// The algorithm. A policy begins with the first method of its plan.
            ///
            /// # Errors
            /// Fails if the settings do not suit the density.
            pub fn begin<'a, D: TwiceDifferentiable>(
                &self,
                at: Beginning<'a, D>,
            ) -> Result<Box<dyn Engine + 'a>, FitError> {
                match self {
                    $(Self::$policy(settings) => settings.plan(at.family.kind())[0].begin(at),)*
                    $(Self::$method(settings) => settings.begin(at),)*
                }
            }

            /// See [`Fitting::hands_over`].
            pub fn hands_over(&self, status: &Status, dim: usize) -> bool {
                match self {
                    $(Self::$policy(_) => false,)*
                    $(Self::$method(settings) => settings.hands_over(status, dim),)*
                }
            }

            /// See [`Fitting::certificate`].
            pub fn certificate(&self) -> Option<f64> {
                match self {
                    $(Self::$policy(_) => None,)*
                    $(Self::$method(settings) => settings.certificate(),)*
                }
            }

            /// See [`Fitting::share`].
            pub fn share(&self, records: u64) -> (u64, u64) {
                match self {
                    $(Self::$policy(_) => (1, 1),)*
                    $(Self::$method(settings) => settings.share(records),)*
                }
            }
        }

        /// The state that the method of this name stored; `None` for a name that no method has.
        pub(crate) fn restore(name: &str, archive: &Archive) -> Option<Restored> {
            $(if name == <$settings>::NAME {
                let state = <$settings as Fitting>::State::restore(archive);
                let state = state.map(|state| Box::new(state) as Box<dyn StoredState>);
                return Some((<$settings>::NAME, state));
            })*
            None
        }
    };
}

methods! {
    policies {
        /// The default. Fits mean fields by TrustVI and, if its stopping rule does not hold at the end, continues with
        /// Newton's method on fixed draws. Fits richer families by Newton's method on fixed draws.
        Auto(AutoSettings),
    }
    methods {
        /// TrustVI: stochastic trust regions, after a robust start.
        Trust(TrustSettings),
        /// TrustVI as published, from the initial point.
        PaperTrust(PaperTrustSettings),
        /// Hessian-free Newton steps without a trust region, from the initial point: a baseline.
        Hfsgvi(HfsgviSettings),
        /// Rounds of Newton's method on fixed draws, after a robust start.
        Saa(SaaSettings),
        /// Natural-gradient steps with second derivatives, after a robust start, for families of sparse precision.
        Natural(NaturalSettings),
        /// Nested Laplace approximations, from the initial point, for local parameters given global ones.
        Nested(NestedSettings),
        /// Moments of weighted draws, from the result of a Gaussian, for mixtures.
        Moments(MomentsSettings),
        /// ADVI as Stan defines it, from the initial point, without a robust start.
        Advi(AdviSettings),
        /// Stochastic gradients, after a robust start.
        Bbvi(BbviSettings),
        /// Stochastic gradients of minibatches of records, after a robust start.
        Minibatch(MinibatchSettings),
        /// Incremental minimisation with exponential averages over minibatches, after a robust start.
        Smiso(SmisoSettings),
        /// TrustVI in which every pair of draws has its own minibatch. Algorithm, state and name are the same.
        RecordTrust(RecordTrust),
    }
}
