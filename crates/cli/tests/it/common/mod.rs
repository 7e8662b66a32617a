//! Runs the command and checks its results.

#![allow(dead_code, reason = "every test file uses its own part")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub struct Finished {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Checks the exit code. If the code is wrong, the message contains all output of the command.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "stdout: {}\nstderr: {}",
            self.stdout, self.stderr
        );
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).expect("standard output is JSON")
    }
}

fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jensen"));
    command.args(args);
    command
}

/// Runs the command to its end.
pub fn jensen<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Finished {
    let output = command(args).output().expect("the command runs");
    Finished {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// Runs the command with text on standard input.
pub fn jensen_with_input(args: &[&str], input: &str) -> Finished {
    use std::io::Write;
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    child
        .stdin
        .take()
        .expect("piped")
        .write_all(input.as_bytes())
        .expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    Finished {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

pub fn start<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Child {
    command(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command runs")
}

/// Returns the paths of the program and of the data for a model of the corpus.
pub fn corpus(name: &str) -> (String, String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../models")
        .join(name);
    let file = |file: &str| folder.join(file).display().to_string();
    (file("model.stan"), file("data.json"))
}

/// Returns the reference values of a model of the corpus.
pub fn oracle(name: &str) -> Value {
    let (model, _) = corpus(name);
    let path = Path::new(&model).with_file_name("oracle.json");
    read_json(&path)
}

/// A folder for the files of a test. The folder is deleted at the end of the test.
pub struct Desk {
    folder: TempDir,
}

impl Desk {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).expect("it can be written");
        path.display().to_string()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn name(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

pub fn read_json(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("it can be read");
    serde_json::from_str(&text).expect("it is JSON")
}

/// Returns `fit.json` without its times.
pub fn timeless(mut fit: Value) -> Value {
    let fields = fit.as_object_mut().expect("an object");
    fields.remove("seconds").expect("times");
    fit
}

pub fn fit_of(folder: &Path) -> Value {
    timeless(read_json(&folder.join("fit.json")))
}

pub fn draws_of(folder: &Path) -> String {
    rows(&fs::read_to_string(folder.join("draws.csv")).expect("draws"))
}

/// Returns Stan CSV without its comments.
pub fn rows(csv: &str) -> String {
    let rows: Vec<&str> = csv.lines().filter(|line| !line.starts_with('#')).collect();
    rows.join("\n")
}

/// Returns the trace of a folder without its times.
pub fn trace_of(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("trace.jsonl")).expect("a trace");
    text.lines()
        .map(|line| {
            let mut value: Value = serde_json::from_str(line).expect("JSON");
            value
                .as_object_mut()
                .expect("an object")
                .remove("seconds")
                .expect("a time");
            value
        })
        .collect()
}
