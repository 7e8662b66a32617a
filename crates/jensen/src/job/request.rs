//! Functions that merge given settings with stored settings and list settings for reports.
//!
//! A request is a structure whose fields are optional settings. A setting that is absent or a switch that is not set
//! has its default value. When a run is resumed, given settings replace stored settings.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Error;

fn absent(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false))
}

/// Returns the settings in `given`. Settings that are absent there are taken from `stored`. Nested structures are
/// merged field by field.
///
/// # Errors
/// Fails if the merged settings are invalid. The merged settings are always valid if the fields are independent of each
/// other.
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

/// Returns the name and the value of each setting that the user gave, in the form that reports show. If a setting
/// belongs to a group, its name starts with the name of the group, as in `trust-eta`.
pub fn listed(request: &impl Serialize) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    list(
        "",
        serde_json::to_value(request).unwrap_or_default(),
        &mut settings,
    );
    settings
}

fn list(group: &str, given: Value, settings: &mut Vec<(String, String)>) {
    let Value::Object(fields) = given else {
        return;
    };
    for (name, value) in fields.into_iter().filter(|(_, value)| !absent(value)) {
        let name = format!("{group}{}", name.replace('_', "-"));
        match value {
            Value::Object(_) => list(&format!("{name}-"), value, settings),
            Value::String(text) => settings.push((name, text)),
            value => settings.push((name, value.to_string())),
        }
    }
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
        let request = Request {
            seed: Some(3),
            method,
            ..Request::default()
        };
        let words = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [words("method-step-size", "0.5"), words("seed", "3")];
        let mut found = listed(&request);
        found.sort();
        assert_eq!(found, expected);
    }
}
