//! The extension module `jensen._jensen`. The module contains the command and the functions that the Python package
//! `jensen` calls.
//!
//! | file | subject |
//! | --- | --- |
//! | `data` | data of a program from arrays |
//! | `program` | [`program::Program`], [`program::Fitted`]: compile, fit, resume, draws |
//! | `model` | [`model::BoundModel`]: values and derivatives of a program's log density |
//! | `density` | densities written in Python |
//! | `estimators` | the functions for `jensen.sklearn`: topics, points, latent models, auto-encoders |
//! | `fit_many` | [`fit_many::fit_row`], [`fit_many::Ledger`]: many fits, by any engine |
//! | `records` | records in shards: the step of a shard, and the driver's fit |
//! | `watch` | work while the interpreter checks for signals: progress, panics |
//! | `error` | exceptions |
//!
//! All code that users call is written in Python, in `python/jensen`. This module prints nothing.

mod data;
mod density;
mod error;
mod estimators;
mod fit_many;
mod model;
mod program;
mod records;
mod regress;
mod watch;

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command with the given arguments and returns its exit status.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| jensen_cli::main(arguments))
}

#[pymodule]
fn _jensen(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<error::Error>())?;
    module.add("StanError", module.py().get_type::<error::StanError>())?;
    module.add("FitError", module.py().get_type::<error::FitError>())?;
    module.add_class::<program::Program>()?;
    module.add_class::<program::Fitted>()?;
    module.add_class::<model::BoundModel>()?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(model::check, module)?)?;
    module.add_function(wrap_pyfunction!(program::read_draws, module)?)?;
    module.add_function(wrap_pyfunction!(program::write_draws, module)?)?;
    module.add_function(wrap_pyfunction!(program::generate, module)?)?;
    module.add_function(wrap_pyfunction!(regress::regress_predict, module)?)?;
    module.add_function(wrap_pyfunction!(regress::regress_effects, module)?)?;
    module.add_function(wrap_pyfunction!(regress::regress_curves, module)?)?;
    module.add_function(wrap_pyfunction!(density::fit_density, module)?)?;
    module.add_class::<fit_many::Ledger>()?;
    module.add_function(wrap_pyfunction!(fit_many::plan_fits, module)?)?;
    module.add_function(wrap_pyfunction!(fit_many::plan_tasks, module)?)?;
    module.add_function(wrap_pyfunction!(fit_many::fit_row, module)?)?;
    module.add_function(wrap_pyfunction!(fit_many::failed_row, module)?)?;
    module.add_function(wrap_pyfunction!(records::record_step, module)?)?;
    module.add_function(wrap_pyfunction!(records::fit_shards, module)?)?;
    estimators::add(module)
}
