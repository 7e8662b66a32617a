//! The slow, plain evaluator: runs a program on scalars as the language defines it.
//!
//! It computes transformed data and generated quantities, binds data, and is the oracle that the fast engine is tested
//! against; its formulas are its own. Nothing here looks at the expression graph.
//!
//! | file | subject |
//! | --- | --- |
//! | `value`, `index`, `ops` | values, their parts, operators |
//! | `sized`, `constraint`, `bind` | declared types, their constraints, data |
//! | `machine`, `expr`, `stmt` | the evaluator |
//! | `functions` | the library, one table from name to implementation |
//! | `model` | a program with its data as a density and a posterior |
//! | `error` | what ends an evaluation, and its limits |

pub mod bind;
pub mod constraint;
pub mod error;
mod expr;
pub mod functions;
pub mod index;
pub mod machine;
pub mod model;
pub mod ops;
pub mod sized;
mod stmt;
pub mod value;

pub use bind::{DataSource, Elements, Input, NoData};
pub use error::{ErrorKind, Eval, EvalError, FnError, Limits};
pub use machine::Machine;
pub use model::{BoundModel, Interpreter};
pub use value::Value;
