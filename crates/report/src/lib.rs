//! Self-contained HTML reports of fits, with the verdict, its evidence and the results. Figures are also written as SVG
//! and PNG.
//!
//! [`render`] converts a plain [`Report`] to the text of the page. The page and its figures load nothing, can be
//! printed, and follow the reader's light or dark setting. A script adds sorting, filtering and tooltips, but all
//! content is visible without it. Every name and text of the report is escaped.
//!
//! | subject | module |
//! | --- | --- |
//! | the content of a report | [`model`] |
//! | the page around its sections, and the section of figures and a table | `page` |
//! | the other sections: the ELBO during the run, importance weights, the posterior, topics | `bound`, `weights`, `posterior`, `topics` |
//! | charts, heat maps and images, and the shapes and axes of all pictures | [`figure`] |
//! | densities, quantiles, correlations | `stats` |
//! | escaping and the notation of numbers | `text` |

// Only pictures use this code.
#![cfg_attr(not(feature = "pictures"), allow(dead_code))]
#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

mod bound;
pub mod figure;
pub mod model;
mod page;
mod posterior;
mod stats;
mod text;
mod topics;
mod weights;

pub use model::{
    Exhibit, Fact, Khat, MappedTopic, Marginal, Parameter, Posterior, Report, Section, Stage, Tone,
    TopicMap, TopicWord, TracePoint, Verdict, Weights,
};
pub use page::render;
