//! Names of dimensions, and labels along dimensions, as in ArviZ and xarray.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::draws::{DrawsVariable, is_storable_name};
use crate::error::DataError;
use crate::lookup::similar_name;

/// The names of the dimensions of variables, and the labels along these dimensions. The two fields correspond to `dims`
/// and `coords` in ArviZ.
///
/// Dimensions without a name are called `name_dim_0`, `name_dim_1`, …, as in ArviZ. By default, the labels of a
/// dimension are 0, 1, ….
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coordinates {
    /// The names of the dimensions of each variable, in order. The entry of a dimension without a name is `None`.
    #[serde(default)]
    pub dims: BTreeMap<String, Vec<Option<String>>>,
    /// The labels along each dimension. The keys of the map are the names of the dimensions.
    #[serde(default)]
    pub coords: BTreeMap<String, Labels>,
}

/// The labels along a dimension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Labels {
    /// Integers, such as years.
    Whole(Vec<i64>),
    /// Numbers, such as times.
    Numbers(Vec<f64>),
    /// Words, such as the names of schools.
    Words(Vec<String>),
}

impl Labels {
    /// Returns the number of labels.
    pub fn len(&self) -> usize {
        match self {
            Self::Whole(labels) => labels.len(),
            Self::Numbers(labels) => labels.len(),
            Self::Words(labels) => labels.len(),
        }
    }

    /// Returns whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the label at an index as text.
    pub fn text(&self, at: usize) -> String {
        match self {
            Self::Whole(labels) => labels[at].to_string(),
            Self::Numbers(labels) => labels[at].to_string(),
            Self::Words(labels) => labels[at].clone(),
        }
    }
}

const FORM: &str = "expected an object such as {\"coords\": {\"school\": [\"Choate\", \"Deerfield\"]}, \"dims\": {\"theta\": [\"school\"]}}";

impl Coordinates {
    /// Parses a JSON object with two members. `coords` maps the name of each dimension to its labels, which are words
    /// or numbers. `dims` maps the name of each variable to the names of its dimensions. `label` is the name of the
    /// text in error messages.
    ///
    /// # Errors
    /// Fails if the text does not have this form, or if it contains a name that is not allowed in files.
    pub fn from_json(bytes: &[u8], label: &str) -> Result<Self, DataError> {
        let refused = |why: String| DataError::invalid(format!("{label}: {why}"));
        let made: Self = serde_json::from_slice(bytes).map_err(|error| {
            refused(format!(
                "{error}; {FORM}, with labels all words or all numbers"
            ))
        })?;
        for (variable, dims) in &made.dims {
            let named: Vec<&String> = dims.iter().flatten().collect();
            if named.iter().collect::<BTreeSet<_>>().len() < named.len() {
                return Err(refused(format!(
                    "dims of `{variable}` name a dimension twice"
                )));
            }
        }
        let dims = made.dims.values().flatten().flatten();
        for name in dims.chain(made.coords.keys()) {
            if SAMPLE.contains(&name.as_str()) || !is_storable_name(name) {
                return Err(refused(format!(
                    "`{}` cannot name a dimension: {} are dimensions of draws, and names must not be empty or \
                     have spaces, quotes or any of `. , / #`",
                    name.escape_debug(),
                    SAMPLE.map(|name| format!("`{name}`")).join(" and ")
                )));
            }
        }
        Ok(made)
    }

    /// Returns whether there are no dimension names and no labels.
    pub fn is_empty(&self) -> bool {
        self.dims.is_empty() && self.coords.is_empty()
    }

    /// Returns these coordinates with the additional names of dimensions in `declared`. The names in `declared` are
    /// used only for variables whose dimensions do not have names yet.
    #[must_use]
    pub fn over(&self, declared: BTreeMap<String, Vec<Option<String>>>) -> Self {
        let mut dims = declared;
        dims.extend(self.dims.clone());
        Self {
            dims,
            coords: self.coords.clone(),
        }
    }

    /// Returns the names of the dimensions of a variable that has `sizes` dimensions. A list of names is ignored if it
    /// has the wrong length. Duplicate names, and names that refer to the draws, are also ignored.
    pub fn names(&self, variable: &str, sizes: usize) -> Vec<String> {
        let given = self.dims.get(variable).filter(|dims| dims.len() == sizes);
        let mut names: Vec<String> = Vec::with_capacity(sizes);
        for at in 0..sizes {
            let named = given.and_then(|dims| dims[at].as_ref());
            let named =
                named.filter(|name| !names.contains(name) && !SAMPLE.contains(&name.as_str()));
            names.push(named.map_or_else(|| format!("{variable}_dim_{at}"), String::clone));
        }
        names
    }

    /// Returns a name for each scalar of a variable, such as `theta[Choate]`. The names contain the labels of the
    /// dimensions in place of indices. Returns `None` if no dimension has labels. The order is that of
    /// [`DrawsVariable::display_names`].
    pub fn labelled(&self, variable: &DrawsVariable) -> Option<Vec<String>> {
        let names = self.names(&variable.name, variable.shape.len());
        let sizes = names.iter().zip(&variable.shape);
        let labels: Vec<Option<&Labels>> = sizes
            .map(|(name, size)| self.coords.get(name).filter(|labels| labels.len() == *size))
            .collect();
        labels.iter().any(Option::is_some).then(|| {
            variable.subscripted(|name, index| {
                let parts = index.iter().zip(&labels).map(|(at, labels)| match labels {
                    Some(labels) => labels.text(at - 1),
                    None => at.to_string(),
                });
                format!("{name}[{}]", parts.collect::<Vec<_>>().join(","))
            })
        })
    }

    /// Checks that all named dimensions exist and have the right sizes. `declared` contains the dimensions of all
    /// variables that the model declares, and `shapes` contains the shapes of the variables in the output.
    ///
    /// # Errors
    /// Fails if dimensions are given for an unknown variable, or if labels are given for an unknown dimension. Also
    /// fails if the number of dimensions or the number of labels is wrong.
    pub fn check(
        &self,
        declared: &BTreeMap<String, Vec<Option<String>>>,
        shapes: &BTreeMap<String, Vec<usize>>,
    ) -> Result<(), DataError> {
        let like = |name: &str, known: Vec<&String>| {
            let near = similar_name(name, known.iter().map(|name| name.as_str()));
            near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
        };
        for (variable, dims) in &self.dims {
            match shapes.get(variable) {
                Some(shape) if shape.len() != dims.len() => {
                    return Err(DataError::invalid(format!(
                        "dims of `{variable}` are {}: expected {}, for shape {shape:?}",
                        dims.len(),
                        shape.len()
                    )));
                }
                None if !declared.contains_key(variable) => {
                    return Err(DataError::invalid(format!(
                        "dims of `{variable}`: the program has no variable of that name{}",
                        like(variable, shapes.keys().collect())
                    )));
                }
                _ => {}
            }
        }
        let sizes_declared = |name: &String| {
            declared
                .values()
                .flatten()
                .flatten()
                .any(|size| size == name)
        };
        for name in self.dims.values().flatten().flatten() {
            if shapes.contains_key(name) && !sizes_declared(name) {
                return Err(DataError::invalid(format!(
                    "dimension `{name}` has the name of a variable: choose another one"
                )));
            }
        }
        let whole = self.over(declared.clone());
        let mut sizes: BTreeMap<String, (usize, &String)> = BTreeMap::new();
        for (variable, shape) in shapes {
            for (name, size) in whole.names(variable, shape.len()).into_iter().zip(shape) {
                let (first, of) = *sizes.entry(name.clone()).or_insert((*size, variable));
                if first != *size && self.dims.contains_key(variable) {
                    return Err(DataError::invalid(format!(
                        "dimension `{name}` has {size} elements in `{variable}` and {first} in `{of}`"
                    )));
                }
            }
        }
        for (name, labels) in &self.coords {
            match sizes.get(name) {
                Some((size, of)) if *size != labels.len() => {
                    return Err(DataError::invalid(format!(
                        "{} labels of `{name}`: expected {size}, the size of `{of}`",
                        labels.len()
                    )));
                }
                Some(_) => {}
                None => {
                    return Err(DataError::invalid(format!(
                        "labels of `{name}`: no variable has a dimension of that name; \"dims\" gives the \
                         dimensions of variables{}",
                        like(name, sizes.keys().collect())
                    )));
                }
            }
        }
        Ok(())
    }
}

const SAMPLE: [&str; 2] = ["chain", "draw"];

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(of: &[(&str, &[usize])]) -> BTreeMap<String, Vec<usize>> {
        of.iter()
            .map(|(name, shape)| ((*name).to_owned(), shape.to_vec()))
            .collect()
    }

    #[test]
    fn names_are_the_given_ones_then_the_declared_ones_then_counted() {
        let given = Coordinates::from_json(
            br#"{"dims": {"theta": ["school"], "x": [null, "item"]}}"#,
            "c.json",
        )
        .unwrap();
        let square = vec![Some("K".to_owned()), Some("K".to_owned())];
        let declared = BTreeMap::from([
            ("theta".to_owned(), vec![Some("J".to_owned())]),
            ("Sigma".to_owned(), square),
            ("z".to_owned(), vec![Some("draw".to_owned())]),
        ]);
        let whole = given.over(declared);
        assert_eq!(whole.names("theta", 1), ["school"]);
        assert_eq!(whole.names("x", 2), ["x_dim_0", "item"]);
        assert_eq!(whole.names("Sigma", 2), ["K", "Sigma_dim_1"]);
        assert_eq!(whole.names("z", 1), ["z_dim_0"]);
        assert_eq!(whole.names("y", 2), ["y_dim_0", "y_dim_1"]);
        assert!(whole.names("mu", 0).is_empty());
    }

    #[test]
    fn what_does_not_fit_is_reported() {
        let declared = BTreeMap::from([
            ("theta".to_owned(), vec![Some("J".to_owned())]),
            ("left_out".to_owned(), vec![None]),
        ]);
        let shapes = shapes(&[("theta", &[3]), ("y", &[3]), ("x", &[4])]);
        let check = |text: &str| {
            let made = Coordinates::from_json(text.as_bytes(), "c.json")?;
            made.check(&declared, &shapes)
                .map_err(|error| DataError::invalid(format!("c.json: {error}")))
        };
        for fine in [
            r#"{"coords": {"J": ["a", "b", "c"]}}"#,
            r#"{"coords": {"J": [1, 2, 3]}, "dims": {"y": ["J"], "left_out": ["item"]}}"#,
            r#"{"coords": {"y_dim_0": [0.5, 1.5, 2.5]}}"#,
            "{}",
        ] {
            check(fine).unwrap();
        }
        for (wrong, message) in [
            (
                r#"{"coords": {"J": ["a", "b"]}}"#,
                "2 labels of `J`: expected 3, the size of `theta`",
            ),
            (
                r#"{"coords": {"K": ["a"]}}"#,
                "no variable has a dimension of that name",
            ),
            (
                r#"{"dims": {"thet": ["s"]}}"#,
                "no variable of that name; did you mean `theta`?",
            ),
            (
                r#"{"dims": {"theta": ["s", "t"]}}"#,
                "dims of `theta` are 2: expected 1, for shape [3]",
            ),
            (
                r#"{"dims": {"y": ["s"], "x": ["s"]}}"#,
                "dimension `s` has 3 elements in `y` and 4 in `x`",
            ),
            (
                r#"{"dims": {"y": ["x"]}}"#,
                "dimension `x` has the name of a variable",
            ),
            (
                r#"{"dims": {"y": ["draw"]}}"#,
                "`draw` cannot name a dimension",
            ),
            (
                r#"{"dims": {"y": ["a/b"]}}"#,
                "`a/b` cannot name a dimension",
            ),
            (
                r#"{"dims": {"y": ["a", "a"]}}"#,
                "dims of `y` name a dimension twice",
            ),
            (
                r#"{"coords": {"J": ["a", 2]}}"#,
                "labels all words or all numbers",
            ),
            (r#"{"theta": ["school"]}"#, "expected an object such as"),
        ] {
            let error = check(wrong).unwrap_err().to_string();
            assert!(
                error.starts_with("c.json: ") && error.contains(message),
                "{wrong}: {error}"
            );
        }
    }
}
