//! The experiment on variational tempering (Mandt, McInerney, Abrol, Ranganath and Blei 2016).
//!
//! | file | subject |
//! | --- | --- |
//! | `surfaces` | Figure 1: the objective of a mixture at four temperatures |
//! | `topics`, `policies` | Figure 2: topic models of abstracts and of news under every policy |
//! | `normaliser` | log C(T), the normaliser of tempered likelihoods |
//! | `factors` | Figures 3 and 4: factorial mixtures of small images and of faces |
//!
//! The paper shows only curves, so the rows contain no published numbers. The paper does not specify the data of Figure
//! 1, the eight images, or the number of factors for the faces. The notes of the rows state what Jensen uses instead.

mod factors;
mod normaliser;
mod policies;
mod surfaces;
mod topics;

use crate::experiment::{Experiment, Piece};
use crate::results::Scale;

/// The experiment on variational tempering, with all of its parts.
pub const EXPERIMENT: Experiment = Experiment {
    name: "tempering",
    about: "Variational tempering (2016)",
    data: "arxiv/abstracts-100k.jsonl.xz (arXiv metadata, one JSON object with a field `text` a line), ap/ap.dat.gz with \
           ap/vocab.txt (Blei's lda-c), yale-faces/yaleb_48x42.npz (Lee, Ho and Kriegman 2005, array X)",
    parts: &[
        Piece {
            name: "figure1",
            about: "the annealed objective of two Gaussians at T = 20, 13, 8.5 and 1",
            from: Scale::Quick,
            run: surfaces::figure1,
        },
        Piece {
            name: "normaliser",
            about: "log C(T) of the abstracts: the bound compared with the paper's hundred draws and with annealing",
            from: Scale::Quick,
            run: normaliser::normaliser,
        },
        Piece {
            name: "figure2-arxiv",
            about: "held-out curves and temperatures, 500 topics of arXiv abstracts",
            from: Scale::Quick,
            run: topics::arxiv,
        },
        Piece {
            name: "figure2-ap",
            about: "held-out curves and temperatures, 500 topics of news",
            from: Scale::Quick,
            run: topics::ap,
        },
        Piece {
            name: "starts-ap",
            about: "variational tempering on news from several starts and with the paper's log C",
            from: Scale::Paper,
            run: topics::starts,
        },
        Piece {
            name: "figure2-given",
            about: "held-out curves and temperatures, topics of the corpus of --corpus",
            from: Scale::Quick,
            run: topics::given,
        },
        Piece {
            name: "figure3-toy",
            about: "factorial mixture of 4 x 4 images: the bound, and which images are found",
            from: Scale::Quick,
            run: factors::toy,
        },
        Piece {
            name: "figure3-faces",
            about: "factorial mixture of faces: held-out likelihood and temperatures",
            from: Scale::Quick,
            run: factors::faces,
        },
    ],
};
