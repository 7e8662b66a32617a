//! Settings as they are given, stored and listed.
//!
//! A request is a plain structure of optional settings: what is absent (or a switch that is off) has a default. That is
//! what makes the settings of a resumed run: those given now, over those that its folder keeps.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Error;

/// Nothing was said.
fn absent(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false))
}

/// What `given` says, and what `stored` says of the rest, field by field to any depth.
///
/// # Errors
/// Never for a structure whose fields are independent of each other.
pub fn over<T: Serialize + DeserializeOwned>(given: &T, stored: &T) -> Result<T, Error> {
    let json = |request: &T| serde_json::to_value(request).map_err(Error::output);
    let mut merged = json(stored)?;
    lay(json(given)?, &mut merged);
    serde_json::from_value(merged).map_err(Error::output)
}

fn lay(given: Value, merged: &mut Value) {
    match (given, merged) {
        (Value::Object(given), Value::Object(merged)) => {
            for (name, value) in given {
                lay(value, merged.entry(name).or_insert(Value::Null));
            }
        }
        (given, merged) if !absent(&given) => *merged = given,
        _ => {}
    }
}

/// The settings that were given, for reports: name and value.
pub fn listed(request: &impl Serialize) -> Vec<(String, String)> {
    let Ok(Value::Object(fields)) = serde_json::to_value(request) else {
        return Vec::new();
    };
    let given = fields.into_iter().filter(|(_, value)| !absent(value));
    given
        .map(|(name, value)| {
            let text = value.as_str().map(str::to_owned);
            (
                name.replace('_', "-"),
                text.unwrap_or_else(|| value.to_string()),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Method {
        step_size: Option<f64>,
        batch: Option<u64>,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Request {
        name: Option<String>,
        seed: Option<u64>,
        learn: bool,
        method: Method,
    }

    #[test]
    fn what_is_given_wins_over_what_is_stored() {
        let stored = Request {
            name: Some("a".into()),
            seed: Some(u64::MAX),
            learn: true,
            method: Method {
                step_size: Some(0.1),
                batch: Some(3),
            },
        };
        let given = Request {
            name: Some("b".into()),
            method: Method {
                step_size: Some(1.0 / 3.0),
                batch: None,
            },
            ..Request::default()
        };
        let merged = over(&given, &stored).unwrap();
        let expected = Request {
            name: given.name.clone(),
            method: Method {
                step_size: given.method.step_size,
                ..stored.method.clone()
            },
            ..stored.clone()
        };
        assert_eq!(merged, expected);
        assert_eq!(over(&Request::default(), &stored).unwrap(), stored);
    }

    #[test]
    fn only_what_is_given_is_listed() {
        let method = Method {
            step_size: Some(0.5),
            batch: None,
        };
        assert_eq!(
            listed(&method),
            [("step-size".to_owned(), "0.5".to_owned())]
        );
    }
}
