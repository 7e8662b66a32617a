//! Detects inputs that hang. If an input hangs, a thread writes the input to a file and ends the run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::PATIENCE;

struct Trial {
    begun: Instant,
    name: &'static str,
    input: Vec<u8>,
}

/// Watches trials, one after another, for inputs that hang.
pub struct Watch(Arc<Mutex<Option<Trial>>>);

impl Watch {
    /// Starts the thread. If an input takes too long, the thread writes it to `desk` and ends the process.
    pub fn over(desk: &Path) -> Self {
        let watch = Self(Arc::default());
        let (seen, desk) = (Self(watch.0.clone()), desk.to_owned());
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(200));
                seen.look(&desk);
            }
        });
        watch
    }

    /// Starts measuring the time that an input takes.
    pub fn begin(&self, name: &'static str, input: &[u8]) {
        *self.trial() = Some(Trial {
            begun: Instant::now(),
            name,
            input: input.to_vec(),
        });
    }

    /// Stops measuring the time of the current input.
    pub fn end(&self) {
        *self.trial() = None;
    }

    fn trial(&self) -> MutexGuard<'_, Option<Trial>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, desk: &Path) {
        let trial = self.trial();
        let Some(trial) = trial.as_ref().filter(|t| t.begun.elapsed() > PATIENCE) else {
            return;
        };
        let file: PathBuf = desk.join(format!("{}-hang", trial.name));
        let written = fs::write(&file, &trial.input);
        eprintln!(
            "\n{}: it takes more than {} seconds: {}",
            trial.name,
            PATIENCE.as_secs(),
            match written {
                Ok(()) => file.display().to_string(),
                Err(error) => format!("`{}` cannot be written: {error}", file.display()),
            }
        );
        std::process::exit(1);
    }
}
