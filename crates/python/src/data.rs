//! Converts arrays to the data of a program.

use jensen::data::{DataSet, Value};
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use serde::de::DeserializeOwned;

/// Parses a request in JSON. The keys are the names of the command's flags. Messages refer to the subject of the
/// setting by `what`.
///
/// # Errors
/// Fails if a flag does not accept its value.
pub fn read_request<T: DeserializeOwned>(what: &str, text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| {
        // The user has not seen this text, so a location in it would not help.
        let said = error.to_string();
        let said = said.split(" at line ").next().unwrap_or_default();
        PyTypeError::new_err(format!("{what} is wrong: {said}"))
    })
}

/// Converts named values to a data set. Each value is an array of `int64` or `float64` in C order, or a tuple of such
/// arrays.
///
/// # Errors
/// Fails if a value has another type. The message contains the name of the value.
pub fn data_set(values: &Bound<'_, PyDict>) -> PyResult<DataSet> {
    let mut data = DataSet::new();
    for (name, value) in values {
        let name: String = name.extract()?;
        let value = self::value(&name, &value)?;
        data.insert(name, value);
    }
    Ok(data)
}

fn value(name: &str, given: &Bound<'_, PyAny>) -> PyResult<Value> {
    let wrong = |error: jensen::data::DataError| PyTypeError::new_err(format!("`{name}`: {error}"));
    if let Ok(slots) = given.cast::<PyTuple>() {
        let slots: PyResult<Vec<Value>> = slots.iter().map(|slot| value(name, &slot)).collect();
        return Ok(Value::tuple(slots?));
    }
    if let Ok(ints) = given.cast::<PyArrayDyn<i64>>() {
        let elements = ints.readonly().as_slice().map(<[i64]>::to_vec)?;
        return Value::ints(ints.shape().to_vec(), elements).map_err(wrong);
    }
    if let Ok(reals) = given.cast::<PyArrayDyn<f64>>() {
        let elements = reals.readonly().as_slice().map(<[f64]>::to_vec)?;
        return Value::reals(reals.shape().to_vec(), elements).map_err(wrong);
    }
    Err(PyTypeError::new_err(format!(
        "`{name}`: expected numbers or an array of numbers"
    )))
}
