//! The reference evaluator, which executes a program on scalars as the language defines it. This evaluator is slow.
//!
//! The reference evaluator binds data and computes transformed data and generated quantities. Tests compare the fast
//! engine with the reference evaluator. The two evaluators share no formulas, and this module does not depend on the
//! expression graph.
//!
//! | file | subject |
//! | --- | --- |
//! | `bind`, `constraint` | data, declared types and their constraints |
//! | `invent` | made-up data, for programs that are analysed without data |
//! | `machine`, `expr`, `stmt`, `higher_order` | the evaluator |
//! | `solvers` | differential equations and systems of equations |
//! | `model` | a program with its data as a density and a posterior |

mod bind;
mod constraint;
mod expr;
mod higher_order;
mod invent;
mod laplace;
mod machine;
mod model;
mod solvers;
mod stmt;

pub use crate::value::error::{ErrorKind, Eval, EvalError, FnError, Halt, Limits};
pub use bind::{DataSource, Elements, Input, NoData};
pub use invent::Invention;
pub use machine::Machine;
pub use model::{BoundModel, Interpreter};
