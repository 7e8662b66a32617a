//! The environment in which a part of an experiment is run.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use jensen::data::{DataError, RunDir, create_folder, read_optional, write_atomic_bytes};
use jensen::report::figure::Figure;
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::results::{Ours, ResultRow, Results, Scale, What};

pub(crate) const RESULTS: &str = "results.json";

pub(crate) const KEPT: &str = "kept";

pub(crate) const SCRATCH: &str = "scratch";

/// The settings of a reproduction. The command line provides them.
#[derive(Debug, Clone)]
pub struct Setup<'a> {
    /// The folder that contains the data of the experiments.
    pub data: PathBuf,
    /// The folder to which results are written. The folder is created if it does not exist.
    pub out: PathBuf,
    /// The path of a corpus that the user supplies, for parts that accept one.
    pub corpus: Option<PathBuf>,
    /// The folder with Stan programs that the user supplies, for parts that accept one.
    pub models: Option<PathBuf>,
    /// The scale at which the parts are run.
    pub scale: Scale,
    /// The names of the parts to run. If the list is empty, all parts are run.
    pub only: Vec<String>,
    /// Whether to keep the contents of `out`. If the contents are kept, existing rows of this scale and existing
    /// intermediate results are not computed again.
    pub resume: bool,
    /// The number of threads in the pool that runs the reproduction.
    pub threads: usize,
    /// A one-line description of the machine. It is written to `results.json`.
    pub machine: String,
    /// A flag that another thread sets to stop the reproduction after the current step.
    pub cancel: Option<&'a AtomicBool>,
}

/// The environment of a part. It provides the data and the scale, and it stores rows, figures and intermediate results.
pub struct Context<'a> {
    setup: &'a Setup<'a>,
    how_to_get: &'static str,
    folder: RunDir,
    results: Results,
    say: &'a mut (dyn FnMut(&str) + Send),
}

#[derive(Serialize, Deserialize)]
struct Kept<T> {
    version: String,
    scale: Scale,
    value: T,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        setup: &'a Setup<'a>,
        how_to_get: &'static str,
        folder: RunDir,
        results: Results,
        say: &'a mut (dyn FnMut(&str) + Send),
    ) -> Self {
        Self {
            setup,
            how_to_get,
            folder,
            results,
            say,
        }
    }

    /// Returns the path of the corpus that the user supplies, or `None` if there is none.
    pub fn corpus(&self) -> Option<PathBuf> {
        self.setup.corpus.clone()
    }

    /// Returns the folder with programs that the user supplies, or `None` if there is none.
    pub fn models(&self) -> Option<PathBuf> {
        self.setup.models.clone()
    }

    /// Returns the scale at which the part is run.
    pub fn scale(&self) -> Scale {
        self.setup.scale
    }

    /// Returns `quick` at the quick scale, and `paper` at the scale of the paper.
    pub fn pick<T>(&self, quick: T, paper: T) -> T {
        match self.setup.scale {
            Scale::Quick => quick,
            Scale::Paper => paper,
        }
    }

    /// Returns the number of threads in the pool that runs the part.
    pub fn threads(&self) -> usize {
        self.setup.threads
    }

    /// Returns the flag that stops the reproduction, in the form that [`jensen::run::Control`] needs.
    pub fn cancel(&self) -> Option<&'a AtomicBool> {
        self.setup.cancel
    }

    /// Returns a function that other threads can call instead of [`Context::check_stopped`].
    pub fn stopper(&self) -> impl Fn() -> Result<(), Failure> + Sync + use<'a> {
        let setup = self.setup;
        move || stopped(setup)
    }

    /// Returns the path of a file or folder in the data folder, such as `mnist/train-images-idx3-ubyte.gz`.
    ///
    /// # Errors
    /// Fails if the file or folder does not exist. The message describes how to obtain the data.
    pub fn data(&self, path: &str) -> Result<PathBuf, Failure> {
        let full = self.setup.data.join(path);
        if full.exists() {
            return Ok(full);
        }
        Err(Failure::Data(format!(
            "there is no `{}`\n{}\nname the folder of the data with --data DIR",
            full.display(),
            self.how_to_get
        )))
    }

    /// Returns a path in the result folder for a file that a part creates and uses again later, such as a corpus.
    ///
    /// # Errors
    /// Fails if the folder of the file cannot be created.
    pub fn scratch(&self, name: &str) -> Result<PathBuf, Failure> {
        let folder = self.folder.path().join(SCRATCH);
        create_folder(&folder).map_err(output)?;
        Ok(folder.join(name))
    }

    /// Shows the user one line about the progress of the reproduction.
    pub fn say(&mut self, line: impl Display) {
        (self.say)(&line.to_string());
    }

    /// Checks whether the user has asked to stop the reproduction. Call this method between steps that take seconds or
    /// longer.
    ///
    /// # Errors
    /// Fails with [`Failure::Stopped`] if the user has asked to stop the reproduction.
    pub fn check_stopped(&self) -> Result<(), Failure> {
        stopped(self.setup)
    }

    /// Measures a row and writes `results.json`. If a resumed run already has this row, the function returns it without
    /// measuring again.
    ///
    /// # Errors
    /// Returns the errors of `measure`. Fails with [`Failure::Stopped`] if the user has asked to stop the reproduction.
    /// Also fails if the file cannot be written.
    pub fn row(
        &mut self,
        what: What,
        measure: impl FnOnce(&mut Self) -> Result<Ours, Failure>,
    ) -> Result<ResultRow, Failure> {
        if let Some(row) = self.results.find(what.name(), self.setup.scale) {
            return Ok(row.clone());
        }
        self.check_stopped()?;
        let ours = measure(self)?;
        let row = what.measured(ours, self.setup.scale);
        let number = |x: Option<f64>| x.map_or("–".to_owned(), |x| format!("{x:.6}"));
        self.say(format!(
            "{}: {} {} (paper {}) {}",
            row.what,
            number(row.ours),
            row.unit,
            number(row.paper),
            row.note
        ));
        self.results.put(row.clone());
        self.write()?;
        Ok(row)
    }

    /// Computes an intermediate result, such as a trace that is used for several rows and a figure. The function stores
    /// the result in the folder `kept`. A resumed run reads the stored result instead of computing it again. `name` may
    /// contain slashes and must be unique within the experiment. All numbers must be finite, because JSON cannot
    /// represent other numbers.
    ///
    /// # Errors
    /// Fails under the same conditions as [`Context::row`].
    pub fn keep<T: Serialize + DeserializeOwned>(
        &mut self,
        name: &str,
        compute: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let path = kept_path(&self.folder, name);
        if let Some(value) = read_kept(self.setup, &path)? {
            return Ok(value);
        }
        self.check_stopped()?;
        let value = compute(self)?;
        write_kept(self.setup, &path, value)
    }

    /// Computes independent intermediate results in parallel and returns them in the order of `items`. Each result is
    /// stored in the same way as by [`Context::keep`] as soon as it has been computed.
    ///
    /// # Errors
    /// Fails with the first error of `compute`, or with [`Failure::Stopped`] if the user asks to stop the reproduction
    /// between two items.
    pub fn keep_each<I: Sync, T: Serialize + DeserializeOwned + Send>(
        &mut self,
        items: &[I],
        name: impl Fn(&I) -> String + Sync,
        compute: impl Fn(&I) -> Result<T, Failure> + Sync,
    ) -> Result<Vec<T>, Failure> {
        let (setup, folder) = (self.setup, &self.folder);
        let progress = Mutex::new((0, &mut *self.say));
        items
            .par_iter()
            .with_max_len(1)
            .map(|item| {
                let name = name(item);
                let path = kept_path(folder, &name);
                let value = match read_kept(setup, &path)? {
                    Some(value) => value,
                    None => {
                        stopped(setup)?;
                        write_kept(setup, &path, compute(item)?)?
                    }
                };
                let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
                progress.0 += 1;
                let line = format!("{name}: done, {} of {}", progress.0, items.len());
                (progress.1)(&line);
                Ok(value)
            })
            .collect()
    }

    /// Writes a figure to the files `NAME.svg` and `NAME.png`.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn figure(&mut self, name: &str, figure: &Figure) -> Result<(), Failure> {
        let path = |extension: &str| self.folder.path().join(format!("{name}.{extension}"));
        let (svg, png) = (path("svg"), path("png"));
        store(&svg, figure.to_svg().as_bytes())?;
        store(&png, &figure.to_png())?;
        self.say(format!("figure {}", png.display()));
        Ok(())
    }

    /// Adds a row for a quantity that is not measured. The row contains the reason.
    pub fn not_run(&mut self, what: What, why: impl Display) -> Result<(), Failure> {
        let row = what.measured(Ours::none(format!("not run: {why}")), self.setup.scale);
        self.results.put(row);
        self.write()
    }

    pub(crate) fn now_run(&mut self, what: &str) -> Result<(), Failure> {
        self.results.remove(what, self.setup.scale);
        self.write()
    }

    pub(crate) fn write(&self) -> Result<(), Failure> {
        self.results
            .write(&self.folder.path().join(RESULTS))
            .map_err(output)
    }

    pub(crate) fn into_results(self) -> Results {
        self.results
    }
}

fn stopped(setup: &Setup<'_>) -> Result<(), Failure> {
    let stopped = setup.cancel.is_some_and(|f| f.load(Ordering::Relaxed));
    if stopped {
        Err(Failure::Stopped)
    } else {
        Ok(())
    }
}

fn kept_path(folder: &RunDir, name: &str) -> PathBuf {
    let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let file: String = name
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .collect();
    folder.path().join(KEPT).join(format!("{file}.json"))
}

fn read_kept<T: DeserializeOwned>(setup: &Setup<'_>, path: &Path) -> Result<Option<T>, Failure> {
    if !setup.resume {
        return Ok(None);
    }
    let bytes = read_optional(path)?.unwrap_or_default();
    // A file that was written by another version may have another format. The result of such a file is computed again.
    let kept: Option<Kept<T>> = serde_json::from_slice(&bytes).ok();
    Ok(kept
        .filter(|kept| kept.scale == setup.scale && kept.version == env!("CARGO_PKG_VERSION"))
        .map(|kept| kept.value))
}

fn write_kept<T: Serialize>(setup: &Setup<'_>, path: &Path, value: T) -> Result<T, Failure> {
    let kept = Kept {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scale: setup.scale,
        value,
    };
    let bytes = serde_json::to_vec(&kept)
        .map_err(|error| Failure::Output(format!("cannot store `{}`: {error}", path.display())))?;
    store(path, &bytes)?;
    Ok(kept.value)
}

fn store(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    create_folder(folder)
        .and_then(|()| write_atomic_bytes(path, bytes))
        .map_err(output)
}

pub(crate) fn output(error: DataError) -> Failure {
    Failure::Output(error.to_string())
}
