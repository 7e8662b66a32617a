//! The selection of the variables that a fit reports.

use jensen_density::{Variable, VariableKind};

use crate::Error;

/// A selection of variables by kind or by name. An empty selection means all variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Save(Vec<String>);

const KINDS: [(&str, VariableKind); 3] = [
    ("parameters", VariableKind::Parameter),
    ("transformed", VariableKind::Transformed),
    ("generated", VariableKind::Generated),
];

impl Save {
    /// Parses a comma-separated list of variable names and of the words `all`, `parameters`, `transformed` and
    /// `generated`.
    pub fn of_words(words: &str) -> Self {
        let words = words.split(',').map(str::trim);
        let words: Vec<String> = words
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        match words.iter().any(|word| word == "all") {
            true => Self::default(),
            false => Self(words),
        }
    }

    /// Returns whether the selection includes a variable. If a tuple is selected, all of its parts are included.
    pub fn wants(&self, variable: &Variable) -> bool {
        self.0.is_empty() || self.0.iter().any(|word| names(word, variable))
    }

    /// Returns whether the selection includes all variables of a kind.
    pub fn wants_all(&self, kind: VariableKind) -> bool {
        self.0.is_empty() || self.0.iter().any(|word| KINDS.contains(&(word, kind)))
    }

    /// Checks that every word of the selection is a kind or the name of a variable.
    ///
    /// # Errors
    /// Fails if a word is neither a kind nor the name of a variable.
    pub fn check(&self, variables: &[Variable]) -> Result<(), Error> {
        let unknown = |word: &&String| {
            let kind = KINDS.iter().any(|(name, _)| name == word);
            !kind && !variables.iter().any(|variable| names(word, variable))
        };
        match self.0.iter().find(unknown) {
            None => Ok(()),
            Some(word) => {
                let mut known: Vec<&str> = variables.iter().map(|v| base(&v.name)).collect();
                known.dedup();
                Err(Error::Setting(format!(
                    "--save {word}: expected all, parameters, transformed, generated, or a variable of the program: {}",
                    known.join(", ")
                )))
            }
        }
    }
}

/// A word that is both a kind and the name of a variable selects both.
fn names(word: &str, variable: &Variable) -> bool {
    base(&variable.name) == word || KINDS.contains(&(word, variable.kind))
}

/// Returns the name of the whole tuple for one of its parts. For example, `t:1` and `t.2:1` are parts of `t`.
fn base(name: &str) -> &str {
    name.split(['.', ':']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, kind: VariableKind) -> Variable {
        Variable {
            name: name.into(),
            shape: Vec::new(),
            kind,
            integer: false,
        }
    }

    #[test]
    fn kinds_names_and_parts_of_tuples_are_chosen() {
        let all = [
            variable("mu", VariableKind::Parameter),
            variable("theta", VariableKind::Transformed),
            variable("t:1", VariableKind::Generated),
            variable("t:2.1", VariableKind::Generated),
        ];
        let chosen = |words: &str| {
            let save = Save::of_words(words);
            save.check(&all).unwrap();
            all.iter().map(|v| save.wants(v)).collect::<Vec<_>>()
        };
        assert_eq!(chosen(""), [true; 4]);
        assert_eq!(chosen("mu,all"), [true; 4]);
        assert_eq!(chosen("parameters, t"), [true, false, true, true]);
        assert_eq!(chosen("transformed"), [false, true, false, false]);
        let error = Save::of_words("mu,nu").check(&all).unwrap_err().to_string();
        assert!(
            error.contains("--save nu") && error.contains("mu, theta, t"),
            "{error}"
        );
    }
}
