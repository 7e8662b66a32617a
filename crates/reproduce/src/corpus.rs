//! The model corpus of the repository. The corpus is compiled into this library.

use std::collections::BTreeMap;

use jensen::data::DataSet;
use jensen::stan::{Build, Model};
use serde::Deserialize;

use crate::failure::Failure;

/// A program of the model corpus with its data.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The name of the folder in `models` that contains the program.
    pub name: &'static str,
    program: &'static str,
    data: &'static str,
}

/// All programs in alphabetical order of their names, including the posteriors in the folder `failures`.
pub const CORPUS: &[Entry] = include!(concat!(env!("OUT_DIR"), "/corpus.rs"));

const SOLVERS: [&str; 6] = [
    "ode_",
    "dae",
    "integrate_",
    "solve_",
    "algebra_solver",
    "laplace_marginal",
];

impl Entry {
    /// Returns the program of the corpus with this name.
    ///
    /// # Errors
    /// Fails if the build does not contain a program with this name.
    pub fn named(name: &str) -> Result<&'static Self, Failure> {
        CORPUS.iter().find(|entry| entry.name == name).ok_or_else(|| {
            Failure::Data(format!(
                "the program `{name}` is not in this build, which has {} programs: build it with the \
                 repository's folder `models` in its place",
                CORPUS.len()
            ))
        })
    }

    /// Returns whether every evaluation of the program solves differential or algebraic equations.
    #[must_use]
    pub fn solves(&self) -> bool {
        SOLVERS.iter().any(|name| self.program.contains(name))
    }

    /// Compiles the program with its data. The resulting model is evaluated on a single thread.
    ///
    /// # Errors
    /// Fails if the program does not compile. This can happen if the corpus is newer than the library.
    pub fn compile(&self) -> Result<Model, Failure> {
        let data = DataSet::from_json(self.data.as_bytes(), self.name)?;
        Ok(Model::compile(
            self.program,
            self.name,
            &data,
            &Build::default(),
        )?)
    }
}

/// The posterior means and standard deviations for a program of the corpus, computed from reference draws.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Reference {
    /// The name of the program in the corpus.
    pub model: String,
    /// The mean and the standard deviation of each scalar. The keys are the names of the scalars.
    pub parameters: BTreeMap<String, [f64; 2]>,
}

/// Returns the references of all programs for which there are reference draws.
///
/// # Errors
/// Fails if the build contains no references.
pub fn references() -> Result<Vec<Reference>, Failure> {
    serde_json::from_str(REFERENCES).map_err(|error| {
        Failure::Data(format!(
            "the build has no references: build it with the repository's folder `models` in its place \
             ({error})"
        ))
    })
}

const REFERENCES: &str = include_str!(concat!(env!("OUT_DIR"), "/references.json"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_has_its_program_and_parameters() {
        assert!(CORPUS.len() >= 125, "{} programs", CORPUS.len());
        for reference in references().unwrap() {
            assert!(
                Entry::named(&reference.model).is_ok(),
                "{}",
                reference.model
            );
            assert!(!reference.parameters.is_empty(), "{}", reference.model);
        }
        let solves = |name: &str| Entry::named(name).unwrap().solves();
        assert!(solves("lynx_hare_predators") && solves("robertson_conserved"));
        assert!(!solves("eight_schools_noncentred") && !solves("radon_pooled"));
        let missing = Entry::named("no such program").unwrap_err().to_string();
        assert!(missing.contains("models"), "{missing}");
    }
}
