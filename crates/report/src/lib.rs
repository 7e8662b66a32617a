//! Self-contained HTML reports of fits. A report presents the verdict, the evidence for the verdict, and the results.
//! Figures can also be written as SVG and PNG files.
//!
//! [`render`] converts a [`Report`], which is plain data, to the text of a page. The page loads no other files, can be
//! printed, and follows the light or dark setting of the reader's browser. A script adds sorting, filtering and
//! tooltips, but all content is visible without it. Every name and text in the report is escaped.
//!
//! | subject | module |
//! | --- | --- |
//! | the content of a report | [`model`] |
//! | the page around its sections, and the section of figures and a table | `page` |
//! | the other sections: the ELBO during the run, importance weights, the posterior, topics | `bound`, `weights`, `posterior`, `topics` |
//! | charts, heat maps and images, and the shapes and axes of all pictures | [`figure`] |
//! | densities, quantiles, correlations | `stats` |
//! | escaping and the notation of numbers | `text` |

// This code is used only by pictures.
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
