//! Exceptions.

use jensen::Error as Failure;
use jensen::data::DataError;
use jensen::stan::ModelErrorKind;
use pyo3::exceptions::{
    PyFileNotFoundError, PyMemoryError, PyOSError, PyRuntimeError, PyValueError,
};
use pyo3::{PyErr, create_exception};

create_exception!(
    jensen,
    Error,
    PyValueError,
    "A file is damaged or has another format than expected. The message names the file and a remedy."
);
create_exception!(
    jensen,
    StanError,
    PyValueError,
    "A Stan program is invalid, or the data do not match its declarations. The message has the location and an \
     excerpt."
);
create_exception!(
    jensen,
    FitError,
    PyRuntimeError,
    "Jensen could not run a fit. The message gives the reason. An untrusted fit does not raise an exception."
);

/// Converts an error to the Python exception that represents it.
pub fn raise(error: &Failure) -> PyErr {
    let message = error.to_string();
    match error {
        Failure::Model(model) if model.kind == ModelErrorKind::Limit => {
            PyMemoryError::new_err(message)
        }
        Failure::Model(_) => StanError::new_err(message),
        Failure::Data(DataError::Io { kind, .. }) => match kind {
            std::io::ErrorKind::NotFound => PyFileNotFoundError::new_err(message),
            _ => PyOSError::new_err(message),
        },
        Failure::Memory { .. } => PyMemoryError::new_err(message),
        Failure::Output(_) => PyOSError::new_err(message),
        Failure::Fit(_) | Failure::NoStart(_) | Failure::Run(_) => FitError::new_err(message),
        Failure::Data(_) => Error::new_err(message),
        _ => PyValueError::new_err(message),
    }
}
