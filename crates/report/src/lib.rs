//! Self-contained HTML reports of fits, with the verdict, its evidence and the results, and figures as SVG and PNG.
//!
//! [`render`] turns a plain [`Report`] into the text of the page. The page and its figures load nothing, can be printed
//! and follow the reader's light or dark setting. A script adds sorting, filtering and tooltips. All content is visible
//! without it. Every name and text of the report is escaped.
//!
//! | subject | module |
//! | --- | --- |
//! | what goes in | [`model`] |
//! | the page around its sections, and the section of figures and a table | `page` |
//! | sections of their own kind: the bound along the run, importance weights, the posterior, topics | `bound`, `weights`, `posterior`, `topics` |
//! | charts, heat maps and images; the shapes and axes that all pictures are made of | [`figure`] |
//! | densities, quantiles, correlations | `stats` |
//! | escaping and the spelling of numbers | `text` |

// Code that only pictures use.
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
