//! The experiment on the joint control variate (Wang, Geffner and Domke 2024).
//!
//! | file | subject |
//! | --- | --- |
//! | `tasks` | the six tasks: data, models and the paper's numbers |
//! | `runs` | optimisation runs, and the ELBO of their iterates |
//! | `variance` | Table 1, Figures 1 and 2 |
//! | `traces` | Figures 3, 4, 6, 7 and 8 |
//! | `momentum` | SMISO with momentum, which the paper leaves open |
//! | `trusted` | TrustVI with the joint control variate |
//! | `printed` | the estimator as printed, on every task |
//! | `times` | Table 3 |
//! | `dropout` | Figure 5: the general form |

mod dropout;
mod momentum;
mod printed;
mod runs;
mod tasks;
mod times;
mod traces;
mod trusted;
mod variance;

use crate::experiment::{Experiment, Piece};
use crate::results::Scale;

/// The experiment on the joint control variate, with all of its parts.
pub const EXPERIMENT: Experiment = Experiment {
    name: "joint-cv",
    about: "Joint control variate for faster black-box variational inference (2024)",
    data: "uci/sonar.csv and uci/australian.dat (UCI repository), mnist/train-*-ubyte.gz (LeCun et \
           al.), tennis/log1960.npz (the authors' data, from J. Sackmann's match log), \
           movielens-100k/u.data.gz and u.item (GroupLens)",
    parts: &[
        Piece {
            name: "table1-sonar",
            about: "sources of gradient variance, on Sonar",
            from: Scale::Quick,
            run: variance::sonar,
        },
        Piece {
            name: "table1-australian",
            about: "sources of gradient variance, on Australian",
            from: Scale::Quick,
            run: variance::australian,
        },
        Piece {
            name: "table1-mnist",
            about: "sources of gradient variance, on MNIST",
            from: Scale::Quick,
            run: variance::mnist,
        },
        Piece {
            name: "table1-ppca",
            about: "sources of gradient variance, on PPCA",
            from: Scale::Quick,
            run: variance::ppca,
        },
        Piece {
            name: "table1-ppca-centred",
            about: "sources of gradient variance, on PPCA of pixels that are centred but not standardised",
            from: Scale::Quick,
            run: variance::centred_ppca,
        },
        Piece {
            name: "table1-tennis",
            about: "sources of gradient variance, on Tennis",
            from: Scale::Quick,
            run: variance::tennis,
        },
        Piece {
            name: "table1-movielens",
            about: "sources of gradient variance, on MovieLens",
            from: Scale::Quick,
            run: variance::movielens,
        },
        Piece {
            name: "figure2",
            about: "variances along a run, against their bounds",
            from: Scale::Quick,
            run: variance::figure2,
        },
        Piece {
            name: "figure3-sonar",
            about: "the bound of Sonar against iterations, seconds and step sizes",
            from: Scale::Quick,
            run: traces::sonar,
        },
        Piece {
            name: "figure3-australian",
            about: "the bound of Australian against iterations, seconds and step sizes",
            from: Scale::Quick,
            run: traces::australian,
        },
        Piece {
            name: "figure3-mnist",
            about: "the bound of MNIST against iterations, seconds and step sizes",
            from: Scale::Quick,
            run: traces::mnist,
        },
        Piece {
            name: "figure3-ppca",
            about: "the bound of PPCA against iterations, seconds and step sizes",
            from: Scale::Quick,
            run: traces::ppca,
        },
        Piece {
            name: "figure3-tennis",
            about: "the bound of Tennis against iterations, seconds and step sizes",
            from: Scale::Quick,
            run: traces::tennis,
        },
        Piece {
            name: "figure3-movielens",
            about: "the bound of MovieLens against iterations, seconds and step sizes",
            from: Scale::Quick,
            run: traces::movielens,
        },
        Piece {
            name: "figure6-mnist",
            about: "Adam compared with SGD on MNIST, with Figure 7's runs",
            from: Scale::Paper,
            run: traces::optimisers_mnist,
        },
        Piece {
            name: "figure6-ppca",
            about: "Adam compared with SGD on PPCA",
            from: Scale::Paper,
            run: traces::optimisers_ppca,
        },
        Piece {
            name: "figure6-tennis",
            about: "Adam compared with SGD on Tennis",
            from: Scale::Paper,
            run: traces::optimisers_tennis,
        },
        Piece {
            name: "figure6-movielens",
            about: "Adam compared with SGD on MovieLens",
            from: Scale::Paper,
            run: traces::optimisers_movielens,
        },
        Piece {
            name: "printed-sonar",
            about: "the estimator as printed on Sonar, compared with naive, joint and joint-mean",
            from: Scale::Paper,
            run: printed::sonar,
        },
        Piece {
            name: "printed-australian",
            about: "the estimator as printed on Australian, compared with naive, joint and joint-mean",
            from: Scale::Paper,
            run: printed::australian,
        },
        Piece {
            name: "printed-mnist",
            about: "the estimator as printed on MNIST, compared with naive, joint and joint-mean",
            from: Scale::Quick,
            run: printed::mnist,
        },
        Piece {
            name: "printed-ppca",
            about: "the estimator as printed on PPCA, compared with naive, joint and joint-mean",
            from: Scale::Quick,
            run: printed::ppca,
        },
        Piece {
            name: "printed-tennis",
            about: "the estimator as printed on Tennis, compared with naive, joint and joint-mean",
            from: Scale::Quick,
            run: printed::tennis,
        },
        Piece {
            name: "printed-movielens",
            about: "the estimator as printed on MovieLens, compared with naive, joint and joint-mean",
            from: Scale::Quick,
            run: printed::movielens,
        },
        Piece {
            name: "trust-sonar",
            about: "TrustVI with the joint control variate on Sonar, compared with minibatches alone",
            from: Scale::Quick,
            run: trusted::sonar,
        },
        Piece {
            name: "trust-australian",
            about: "TrustVI with the joint control variate on Australian, compared with minibatches alone",
            from: Scale::Quick,
            run: trusted::australian,
        },
        Piece {
            name: "momentum-sonar",
            about: "SMISO on Sonar with momentum 0.9, compared with none",
            from: Scale::Quick,
            run: momentum::sonar,
        },
        Piece {
            name: "momentum-australian",
            about: "SMISO on Australian with momentum 0.9, compared with none",
            from: Scale::Quick,
            run: momentum::australian,
        },
        Piece {
            name: "table3-mnist",
            about: "milliseconds per iteration on MNIST",
            from: Scale::Quick,
            run: times::mnist,
        },
        Piece {
            name: "table3-ppca",
            about: "milliseconds per iteration on PPCA",
            from: Scale::Quick,
            run: times::ppca,
        },
        Piece {
            name: "table3-tennis",
            about: "milliseconds per iteration on Tennis",
            from: Scale::Quick,
            run: times::tennis,
        },
        Piece {
            name: "table3-movielens",
            about: "milliseconds per iteration on MovieLens",
            from: Scale::Quick,
            run: times::movielens,
        },
        Piece {
            name: "figure5",
            about: "the generic form: softmax regression with Gaussian dropout",
            from: Scale::Quick,
            run: dropout::figure5,
        },
    ],
};
