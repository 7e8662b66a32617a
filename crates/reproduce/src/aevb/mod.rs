//! The experiment on auto-encoding variational Bayes (Kingma and Welling 2014).
//!
//! | file | subject |
//! | --- | --- |
//! | `images` | the digits and the faces |
//! | `training` | stored runs of every algorithm, which can continue |
//! | `bounds` | Figure 2: the ELBO against the number of samples |
//! | `likelihoods` | Figure 3: the marginal likelihood against the number of samples |
//! | `manifolds` | Figures 4 and 5: latent planes and random samples |
//!
//! The paper shows only curves, so the rows contain no published numbers.

mod bounds;
mod images;
mod likelihoods;
mod manifolds;
mod training;

use crate::experiment::{Experiment, Piece};
use crate::results::Scale;

/// The experiment on auto-encoding variational Bayes, with all of its parts.
pub const EXPERIMENT: Experiment = Experiment {
    name: "aevb",
    about: "Auto-encoding variational Bayes (2014)",
    data: "mnist/train-images-idx3-ubyte.gz and mnist/t10k-images-idx3-ubyte.gz (MNIST, LeCun, Cortes and Burges), \
           frey/frey_rawface.mat (Frey faces, Roweis: https://cs.nyu.edu/~roweis/data.html)",
    parts: &[
        Piece {
            name: "figure2-faces",
            about: "lower bound by number of samples on Frey faces, compared with wake-sleep",
            from: Scale::Quick,
            run: bounds::faces,
        },
        Piece {
            name: "figure2-digits",
            about: "lower bound by number of samples on MNIST, compared with wake-sleep",
            from: Scale::Quick,
            run: bounds::digits,
        },
        Piece {
            name: "figure3",
            about: "marginal likelihood of 3 latent variables with 1000 digits, compared with wake-sleep and Monte-Carlo EM",
            from: Scale::Quick,
            run: likelihoods::few_images,
        },
        Piece {
            name: "figure3-many",
            about: "the same with 50 000 digits, compared with wake-sleep",
            from: Scale::Quick,
            run: likelihoods::many_images,
        },
        Piece {
            name: "figure4",
            about: "learned planes of faces and digits",
            from: Scale::Quick,
            run: manifolds::figure4,
        },
        Piece {
            name: "figure5",
            about: "random samples of digits for several latent dimensions",
            from: Scale::Quick,
            run: manifolds::figure5,
        },
    ],
};
