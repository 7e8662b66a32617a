//! The experiment on dual variational inference for latent Gaussian models (Khan, Aravkin, Friedlander and Seeger
//! 2013).
//!
//! All solvers are run on the same model with the same kernels and the same number of threads. The curves show the
//! lower bound as a function of time.
//!
//! | file | subject |
//! | --- | --- |
//! | `race` | models with their data, and comparisons of solvers |
//! | `classification` | Gaussian processes, logistic regression, grids of hyperparameters |
//! | `fields` | Markov fields, Cox processes, stochastic volatility |
//! | `plain` | the dual with plain L-BFGS and dense algebra |
//! | `votes` | factor analysis |

mod classification;
mod fields;
mod plain;
mod race;
mod votes;

use crate::experiment::{Experiment, Piece};
use crate::results::Scale;

/// The experiment on dual variational inference, with all of its parts.
pub const EXPERIMENT: Experiment = Experiment {
    name: "dual",
    about: "Fast dual variational inference for non-conjugate latent Gaussian models (2013)",
    data: "uci/{ionosphere,sonar}.csv and uci/australian.dat (UCI repository), usps/zip.{train,test}.gz (Elements of Statistical \
           Learning), germany-oral-cancer, scotland-lip-cancer, tokyo-rainfall, rainforest-lgcp (examples of R-INLA), coal (Jarrett \
           1979), stochastic-volatility/poundd.dat (Durbin and Koopman), votes/house_votes_84.csv (UCI repository), votes/senate_106.csv (roll calls of the 106th \
           Senate, one column each from rc1 on, with a column party)",
    parts: &[
        Piece {
            name: "gp",
            about: "Gaussian process classification: the bound against time, all solvers",
            from: Scale::Quick,
            run: classification::gp,
        },
        Piece {
            name: "logistic",
            about: "Bayesian logistic regression: the bound against time, all solvers",
            from: Scale::Quick,
            run: classification::logistic,
        },
        Piece {
            name: "fields",
            about: "Gaussian Markov random fields: the bound against time",
            from: Scale::Quick,
            run: fields::fields,
        },
        Piece {
            name: "formulation",
            about: "the speed-up of the dual split into the effects of formulation, method and algebra",
            from: Scale::Quick,
            run: plain::formulation,
        },
        Piece {
            name: "lgcp",
            about: "log-Gaussian Cox processes",
            from: Scale::Quick,
            run: fields::lgcp,
        },
        Piece {
            name: "volatility",
            about: "stochastic volatility of the pound against the dollar",
            from: Scale::Quick,
            run: fields::volatility,
        },
        Piece {
            name: "hyperparameters",
            about: "the bound and held-out log loss over lengthscale and variance",
            from: Scale::Quick,
            run: classification::hyperparameters,
        },
        Piece {
            name: "factors",
            about: "factor analysis of votes with missing entries: held-out log loss",
            from: Scale::Quick,
            run: votes::votes_of_the_house,
        },
        Piece {
            name: "senate",
            about: "factor analysis of the roll calls of the 106th Senate: held-out log loss",
            from: Scale::Quick,
            run: votes::votes_of_the_senate,
        },
    ],
};
