//! Reads the model corpus, which has one folder per model.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Returns the folder of all models.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models")
}

/// Returns the folders of the corpus that contain the file, in alphabetical order.
pub fn folders_with(file: &str) -> Vec<PathBuf> {
    fn search(folder: &Path, file: &str, found: &mut Vec<PathBuf>) {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
            .expect("the corpus")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        entries.sort();
        for path in entries {
            if path.join(file).is_file() {
                found.push(path);
            } else if path.is_dir() {
                search(&path, file, found);
            }
        }
    }
    let mut found = Vec::new();
    search(&root(), file, &mut found);
    found
}

/// A model with its data and its reference values.
pub struct Model {
    /// The program.
    pub source: String,
    /// The data as JSON.
    pub data: String,
    /// The reference values.
    pub oracle: Value,
}

impl Model {
    /// Reads a folder that has reference values.
    pub fn read(folder: &Path) -> Self {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
        Self {
            source: read("model.stan"),
            data: if folder.join("data.json").is_file() {
                read("data.json")
            } else {
                "{}".to_string()
            },
            oracle: serde_json::from_str(&read("oracle.json")).expect("JSON"),
        }
    }
}

/// Runs the check on every model that has reference values. Fails with all models that do not pass.
pub fn check_every(check: impl Fn(&Model) -> Result<(), String>) {
    let folders = folders_with("oracle.json");
    assert!(folders.len() >= 12, "the corpus is there");
    let failures: Vec<String> = folders
        .iter()
        .filter_map(|folder| {
            let error = check(&Model::read(folder)).err()?;
            Some(format!("{}: {error}", folder.display()))
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} models differ:\n{}",
        failures.len(),
        folders.len(),
        failures.join("\n")
    );
}
