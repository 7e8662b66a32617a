//! Programs with their data: the model corpus of the repository, which is compiled into this library, and programs in
//! files.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jensen::data::{DataSet, read_text};
use jensen::program::Source;
use jensen::stan::{Build, Model};
use serde::Deserialize;

use crate::failure::Failure;

/// A program with its data.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The name of the folder in `models` that contains the program. For a program in a file, its path in the folder
    /// that the user supplies, without its extension.
    pub name: Cow<'static, str>,
    text: Text,
}

#[derive(Debug, Clone)]
enum Text {
    BuiltIn {
        program: &'static str,
        data: &'static str,
    },
    Files {
        program: PathBuf,
        data: Option<PathBuf>,
        /// The folders that contain included files.
        folders: Vec<PathBuf>,
        digest: String,
    },
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

/// The number of hexadecimal digits that identify a program and its data. With 48 bits each, a coincidence is
/// improbable.
const DIGITS: usize = 12;

impl Entry {
    const fn built_in(name: &'static str, program: &'static str, data: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            text: Text::BuiltIn { program, data },
        }
    }

    /// Creates an entry for a program in a file below the folder `root`. Included files are searched in the folder of
    /// the program and then in `root`.
    pub fn of_files(name: &str, root: &Path, program: &Path, data: Option<&Path>) -> Self {
        let own = program.parent().unwrap_or(root);
        Self {
            name: Cow::Owned(name.to_owned()),
            text: Text::Files {
                program: program.to_path_buf(),
                data: data.map(Path::to_path_buf),
                folders: vec![own.to_path_buf(), root.to_path_buf()],
                digest: String::new(),
            },
        }
    }

    /// Adds the digests of the program and of its data, if they are in files.
    #[must_use]
    pub fn digested(mut self, model: &str, data: &str) -> Self {
        if let Text::Files { digest, .. } = &mut self.text {
            *digest = format!("{:.DIGITS$}-{:.DIGITS$}", model, data);
        }
        self
    }

    /// Returns the name under which runs of the program are stored. The stored runs of a file become invalid if the
    /// program or its data change.
    pub fn key(&self) -> String {
        match &self.text {
            Text::BuiltIn { .. } => self.name.to_string(),
            Text::Files { digest, .. } => format!("given-{}-{digest}", self.name),
        }
    }

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
    ///
    /// # Errors
    /// Fails if the file of the program cannot be read.
    pub fn solves(&self) -> Result<bool, Failure> {
        let solver = |text: &str| SOLVERS.iter().any(|name| text.contains(name));
        Ok(match &self.text {
            Text::BuiltIn { program, .. } => solver(program),
            Text::Files { program, .. } => solver(&read_text(program)?),
        })
    }

    /// Compiles the program with its data. The resulting model is evaluated on a single thread.
    ///
    /// # Errors
    /// Fails if the program does not compile, or if a file cannot be read. A built-in program can fail if the corpus is
    /// newer than the library.
    pub fn compile(&self) -> Result<Model, Failure> {
        let build = Build::default();
        match &self.text {
            Text::BuiltIn { program, data } => {
                let data = DataSet::from_json(data.as_bytes(), &self.name)?;
                Ok(Model::compile(program, &self.name, &data, &build)?)
            }
            Text::Files {
                program,
                data,
                folders,
                ..
            } => {
                let source = Source::read(program, folders, data.as_deref(), build.memory_limit)?;
                let build = Build {
                    includes: &source.includes,
                    data_name: source.data_name(),
                    ..build
                };
                let (text, name) = (&source.text, &source.model);
                Ok(Model::compile(text, name, &source.values()?, &build)?)
            }
        }
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
        let solves = |name: &str| Entry::named(name).unwrap().solves().unwrap();
        assert!(solves("lynx_hare_predators") && solves("robertson_conserved"));
        assert!(!solves("eight_schools_noncentred") && !solves("radon_pooled"));
        let missing = Entry::named("no such program").unwrap_err().to_string();
        assert!(missing.contains("models"), "{missing}");
    }
}
