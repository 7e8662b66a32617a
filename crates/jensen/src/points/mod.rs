//! Models of points, the rows of a table: mixtures of Gaussians, of binary vectors or of counts, and factorial mixtures.
//!
//! | file | subject |
//! | --- | --- |
//! | `request` | [`MixtureRequest`], [`FactorsRequest`]: what is asked for, with its defaults |
//! | `table` | [`Points`]: rows to learn from, and rows held out |
//! | `study` | the study that all of them share |
//! | `mixture`, `factors` | [`fit_mixture`], [`fit_factors`]: what their globals mean |
//! | `summary` | [`PointsSummary`]: a fit in numbers, `fit.json` |
//! | `sheet` | the page about a fit |

mod factors;
mod mixture;
mod request;
mod sheet;
mod study;
mod summary;
mod table;

pub use factors::{FACTORS, fit_factors};
pub use mixture::{Fitted, MIXTURE, fit_mixture};
pub use request::{FactorsRequest, Kind, MixtureRequest, PointRequest, Shape};
pub use study::{Course, Described, Made, Picture};
pub use summary::{Component, Parts, PointsSeconds, PointsSummary};
pub use table::Points;
