//! Hyperparameters of a prior's parts. A hyperparameter is either fixed by the user or free with a starting value.

use crate::{Error, Parameter, PriorDensity, Range};

/// A hyperparameter on its natural scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The name of the hyperparameter in tables, such as `gp.lengthscale[3]`.
    pub name: String,
    /// The fixed value, or the value at which learning starts.
    pub value: f64,
    /// Whether Jensen learns the hyperparameter.
    pub free: bool,
    /// The allowed values.
    pub range: Range,
    /// The prior density on the natural scale.
    pub density: PriorDensity,
    /// The value in the table's units that corresponds to 1 in the model.
    pub unit: f64,
}

impl Setting {
    /// Creates a positive hyperparameter. If `given` contains a value, the hyperparameter is fixed at this value.
    /// Otherwise it is free and starts at `start`.
    pub fn positive(name: impl Into<String>, given: Option<f64>, start: f64) -> Self {
        Self {
            name: name.into(),
            value: given.unwrap_or(start),
            free: given.is_none(),
            range: Range::Positive,
            density: PriorDensity::Flat,
            unit: 1.0,
        }
    }
}

/// Returns the free settings as parameters of the search for hyperparameters.
pub fn parameters(settings: &[Setting]) -> Vec<Parameter> {
    settings
        .iter()
        .filter(|s| s.free)
        .map(|s| Parameter {
            name: s.name.clone(),
            start: s.value,
            range: s.range,
            density: s.density.clone(),
        })
        .collect()
}

/// Returns the values of all settings. The values of free settings come from θ, and the other settings have fixed
/// values.
///
/// # Errors
/// Fails if θ does not have one element per free setting, or if a value is outside its range.
pub fn values(settings: &[Setting], theta: &[f64]) -> Result<Vec<f64>, Error> {
    let free = settings.iter().filter(|s| s.free).count();
    if theta.len() != free {
        return Err(Error::Prior(format!(
            "the prior has {free} free hyperparameters, but {} are given",
            theta.len()
        )));
    }
    let mut theta = theta.iter();
    let mut all = Vec::with_capacity(settings.len());
    for setting in settings {
        let value = match setting.free {
            true => theta.next().copied().unwrap_or(setting.value),
            false => setting.value,
        };
        let allowed = match setting.range {
            Range::Real => value.is_finite(),
            Range::Positive => value > 0.0 && value.is_finite(),
            Range::Between(low, high) => low < value && value < high,
        };
        if !allowed {
            let range = match setting.range {
                Range::Real => "finite".to_owned(),
                Range::Positive => "positive and finite".to_owned(),
                Range::Between(low, high) => format!("between {low} and {high}"),
            };
            return Err(Error::Prior(format!(
                "the hyperparameter `{}` is {value}, but must be {range}",
                setting.name
            )));
        }
        all.push(value);
    }
    Ok(all)
}

/// Selects the values of the free settings from a list with one value per setting.
pub fn free_only(settings: &[Setting], all: &[f64]) -> Vec<f64> {
    settings
        .iter()
        .zip(all)
        .filter(|(s, _)| s.free)
        .map(|(_, x)| *x)
        .collect()
}
