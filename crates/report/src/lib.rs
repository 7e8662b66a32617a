//! One self-contained HTML page about a fit: verdict, evidence for it, and the posterior; and figures as SVG and PNG.
//!
//! [`render`] turns a plain [`Report`] into the text of the page. The page has no scripts, loads nothing, prints well and
//! follows the reader's light or dark setting. Every name and text of the report is escaped.
//!
//! | subject | module |
//! | --- | --- |
//! | what goes in | [`model`] |
//! | the page and its sections | `page` |
//! | a page of facts, figures and tables | `sheet` |
//! | plots, and the axes and shapes they are made of | `plots`, `svg` |
//! | densities, quantiles, correlations | `stats` |
//! | charts, heat maps and images for files | [`figure`] |
//! | escaping and the spelling of numbers | `text` |

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

pub mod figure;
pub mod model;
mod page;
mod plots;
mod sheet;
mod stats;
mod svg;
mod text;

pub use model::{Khat, Marginal, Parameter, Report, Stage, TracePoint};
pub use page::render;
pub use sheet::{Section, Sheet, Tone, render_sheet};
