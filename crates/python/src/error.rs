//! Exceptions.

use jensen::Error;
use jensen::data::DataError;
use jensen::stan::ModelErrorKind;
use pyo3::exceptions::{
    PyFileNotFoundError, PyMemoryError, PyOSError, PyRuntimeError, PyValueError,
};
use pyo3::{PyErr, create_exception};

create_exception!(
    jensen,
    StanError,
    PyValueError,
    "A Stan program, or its data under the program's declarations, is wrong: with the place and an excerpt."
);
create_exception!(
    jensen,
    FitError,
    PyRuntimeError,
    "A fit could not be run, with the reason. A fit that is not to be trusted is no error."
);

/// The exception that says what an error says.
pub fn raise(error: &Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Model(model) if model.kind == ModelErrorKind::Limit => {
            PyMemoryError::new_err(message)
        }
        Error::Model(_) => StanError::new_err(message),
        Error::Data(DataError::Io { kind, .. }) => match kind {
            std::io::ErrorKind::NotFound => PyFileNotFoundError::new_err(message),
            _ => PyOSError::new_err(message),
        },
        Error::Memory { .. } => PyMemoryError::new_err(message),
        Error::Output(_) => PyOSError::new_err(message),
        Error::Fit(_) | Error::NoStart(_) => FitError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}
