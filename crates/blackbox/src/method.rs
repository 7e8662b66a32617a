//! The list of methods, and the plans by which one method continues the work of another method.
//!
//! A new method needs one file with its settings, its state and its algorithm, and one line in the list below. Its
//! settings implement [`Fitting`], and its state implements [`MethodState`](crate::MethodState).

mod auto;

use jensen_density::TwiceDifferentiable;
use jensen_run::{Archive, ArchiveError, SettingError, Snapshot, Status};
use serde::{Deserialize, Serialize};

pub use self::auto::AutoSettings;
use crate::advi::AdviSettings;
use crate::bbvi::BbviSettings;
use crate::engine::{Beginning, Engine, Fitting, MethodSettings, StoredState};
use crate::error::FitError;
use crate::family::{Family, Smoothness};
use crate::hfsgvi::HfsgviSettings;
use crate::minibatches::{MinibatchSettings, SmisoSettings};
use crate::moments::MomentsSettings;
use crate::natural::NaturalSettings;
use crate::nested::NestedSettings;
use crate::saa::SaaSettings;
use crate::trust::{PaperTrustSettings, RecordTrust, TrustSettings};

type Restored = (&'static str, Result<Box<dyn StoredState>, ArchiveError>);

/// Defines the list of methods. The macro generates the enum [`Method`] from the settings of the methods.
macro_rules! methods {
    (
        policies { $($(#[$about:meta])* $policy:ident($rules:ty),)* }
        methods { $($(#[$doc:meta])* $method:ident($settings:ty),)* }
    ) => {
        /// The optimisation method of a fit.
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
            /// Returns the name of the method in traces and checkpoints.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$policy(_) => <$rules>::NAME,)*
                    $(Self::$method(_) => <$settings>::NAME,)*
                }
            }

            /// Returns whether the method is preceded by several starts.
            pub fn has_starts(&self) -> bool {
                match self {
                    $(Self::$policy(_) => <$rules>::STARTS,)*
                    $(Self::$method(_) => <$settings>::STARTS,)*
                }
            }

            /// Checks that the settings are within their ranges (see [`MethodSettings::validate`]).
            ///
            /// # Errors
            /// Fails with a sentence that contains the setting, its value and its range.
            pub fn validate(&self) -> Result<(), SettingError> {
                match self {
                    $(Self::$policy(settings) => settings.validate(),)*
                    $(Self::$method(settings) => settings.validate(),)*
                }
            }

            /// Returns how many draws the method processes at the same time (see [`MethodSettings::lanes`]).
            pub fn lanes(&self, dim: usize) -> usize {
                match self {
                    $(Self::$policy(settings) => settings.lanes(dim),)*
                    $(Self::$method(settings) => settings.lanes(dim),)*
                }
            }

            /// Returns the number of records in a minibatch (see [`MethodSettings::batch`]).
            pub fn batch(&self) -> Option<usize> {
                match self {
                    $(Self::$policy(settings) => settings.batch(),)*
                    $(Self::$method(settings) => settings.batch(),)*
                }
            }

            /// Returns whether the method can fit a family with these derivatives (see [`MethodSettings::suits`]).
            pub fn suits(&self, smoothness: Smoothness) -> bool {
                match self {
                    $(Self::$policy(settings) => settings.suits(smoothness),)*
                    $(Self::$method(settings) => settings.suits(smoothness),)*
                }
            }

            /// Creates the algorithm of the first method in the plan.
            ///
            /// # Errors
            /// Fails if the settings do not suit the density.
            pub fn begin<'a, D: TwiceDifferentiable>(
                &self,
                at: Beginning<'a, D>,
            ) -> Result<Box<dyn Engine + 'a>, FitError> {
                match self {
                    $(Self::$policy(settings) => settings.plan(&*at.family)[0].begin(at),)*
                    $(Self::$method(settings) => settings.begin(at),)*
                }
            }

            /// Returns whether the next method in the plan should continue (see [`Fitting::hands_over`]).
            pub fn hands_over(&self, status: &Status, dim: usize) -> bool {
                match self {
                    $(Self::$policy(_) => false,)*
                    $(Self::$method(settings) => settings.hands_over(status, dim),)*
                }
            }

            /// Returns the tolerance of a second-order polish (see [`Fitting::certificate`]).
            pub fn certificate(&self) -> Option<f64> {
                match self {
                    $(Self::$policy(_) => None,)*
                    $(Self::$method(settings) => settings.certificate(),)*
                }
            }

            /// Returns the share of the data that one lane evaluates (see [`Fitting::share`]).
            pub fn share(&self, records: u64) -> (u64, u64) {
                match self {
                    $(Self::$policy(_) => (1, 1),)*
                    $(Self::$method(settings) => settings.share(records),)*
                }
            }
        }

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
        /// The default. TrustVI fits mean-field families. If TrustVI ends before its stopping rule is met, Newton's
        /// method on fixed draws continues the fit. For most richer families, Newton's method on fixed draws runs from
        /// the beginning.
        Auto(AutoSettings),
    }
    methods {
        /// TrustVI, a stochastic trust-region method, after a robust start.
        Trust(TrustSettings),
        /// TrustVI as published, from the initial point.
        PaperTrust(PaperTrustSettings),
        /// Hessian-free Newton steps without a trust region, from the initial point. The method is a baseline for
        /// comparisons.
        Hfsgvi(HfsgviSettings),
        /// Newton's method on fixed draws, after a robust start. The number of draws grows during the fit.
        Saa(SaaSettings),
        /// Natural-gradient steps that use second derivatives, after a robust start. The method fits families with a
        /// sparse precision.
        Natural(NaturalSettings),
        /// Nested Laplace approximations of local parameters conditional on global parameters, from the initial point.
        Nested(NestedSettings),
        /// Moments of weighted draws, starting from the result of a Gaussian. The method fits mixtures.
        Moments(MomentsSettings),
        /// ADVI as Stan defines it, from the initial point, without a robust start.
        Advi(AdviSettings),
        /// Stochastic gradients with any estimator and optimiser, after a robust start.
        Bbvi(BbviSettings),
        /// Stochastic gradients on minibatches of records, after a robust start.
        Minibatch(MinibatchSettings),
        /// Incremental minimisation with exponential averages over minibatches, after a robust start.
        Smiso(SmisoSettings),
        /// TrustVI with a separate minibatch of records for every pair of draws. The algorithm, the state and the name
        /// are the same as for [`Method::Trust`].
        RecordTrust(RecordTrust),
    }
}

impl Method {
    /// Returns the methods that fit a family, in order. After the first method, each method runs only if the method
    /// before it [hands over](Fitting::hands_over). The order is natural-gradient steps, then Newton's method on fixed
    /// draws, then stochastic gradients.
    pub fn plan(&self, family: &dyn Family) -> Vec<Self> {
        match self {
            Self::Auto(settings) => settings.plan(family),
            Self::Natural(natural) => {
                [vec![*self], Self::Saa(natural.rounds()).plan(family)].concat()
            }
            Self::Saa(_) => vec![*self, BbviSettings::default().into()],
            own => vec![*own],
        }
    }
}
