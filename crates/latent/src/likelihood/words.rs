//! Likelihoods in text form: the notation of the command line, and the stored form.

use std::fmt;

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Likelihood, Response};

const CATEGORIES: &str = "categories";

impl fmt::Display for Likelihood {
    /// Writes the likelihood in the syntax of the command line, such as `gaussian(variance=0.1)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        let values = self.values();
        let mut fields: Vec<String> = (self.parameters().iter().zip(&values))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let categories = self.categories().or(self.levels());
        fields.extend(categories.map(|k| format!("{CATEGORIES}={k}")));
        match fields.as_slice() {
            [] => Ok(()),
            fields => write!(f, "({})", fields.join(", ")),
        }
    }
}

impl fmt::Debug for Likelihood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The stored forms are `"poisson"`, `{"gaussian": {"variance": 0.1}}` and `{"multinomial": {"categories": 3}}`.
impl Serialize for Likelihood {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields: Map<String, Value> = (self.parameters().iter().zip(self.values()))
            .map(|(name, value)| ((*name).to_owned(), value.into()))
            .collect();
        if let Some(categories) = self.categories().or(self.levels()) {
            fields.insert(CATEGORIES.to_owned(), categories.into());
        }
        if fields.is_empty() {
            return serializer.serialize_str(self.name());
        }
        let named = Map::from_iter([(self.name().to_owned(), Value::Object(fields))]);
        named.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Likelihood {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (name, fields) = match Value::deserialize(deserializer)? {
            Value::String(name) => (name, Map::new()),
            Value::Object(named) => match named.into_iter().next() {
                Some((name, Value::Object(fields))) => (name, fields),
                _ => return Err(D::Error::custom("a likelihood has a name and parameters")),
            },
            _ => return Err(D::Error::custom("a likelihood is a name, with parameters")),
        };
        let likelihood = Self::from_name(&name)
            .ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&name), &"a likelihood"))?;
        let number = |key: &'static str| {
            let value = fields
                .get(key)
                .ok_or_else(|| D::Error::missing_field(key))?;
            f64::deserialize(value).map_err(D::Error::custom)
        };
        let likelihood = match likelihood.response() {
            Response::Category | Response::Level => {
                let categories = number(CATEGORIES)? as usize;
                if likelihood
                    .most_levels()
                    .is_some_and(|most| categories > most)
                {
                    return Err(D::Error::custom("the likelihood has too many levels"));
                }
                likelihood.with_categories(categories)
            }
            _ => likelihood,
        };
        let names = likelihood.parameters().iter();
        let values = names
            .map(|name| number(name))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(likelihood.with_values(&values))
    }
}
