//! Values that depend on parameters: expressions in the graph under construction, and library functions of them.
//!
//! | file | subject |
//! | --- | --- |
//! | `value`, `index`, `complex`, `overlay` | symbolic values and their parts |
//! | `tape`, `known`, `masked` | the graph under construction, and facts about its values |
//! | `domain` | the domains of arguments, for values and for the graph |
//! | `transforms` | the constraining transforms and their inverses |
//! | `functions` | library functions, one table from name to builder |

pub mod complex;
pub mod domain;
pub mod functions;
pub mod index;
pub mod known;
mod masked;
pub mod overlay;
pub mod tape;
pub mod transforms;
pub mod value;
