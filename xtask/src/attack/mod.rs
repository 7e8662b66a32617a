//! Attacks on the command from outside. They create random conditions that the command must survive.
//!
//! | name | file | what is tried |
//! | --- | --- | --- |
//! | `kill` | `kill` | killing every command at a random moment and resuming it: the files must equal those of an uninterrupted run |
//! | `damage` | `damage` | flipping bits in every file of a folder, and truncating files: one error, or the same results |
//! | `limits` | `limits` | little memory, little disk, closed pipes, folders that cannot be written, processes that race |
//! | `calls` | `calls` | functions of the library with large arguments, under limits of time and memory |
//! | `stops` | `stops` | interrupting every command, or a passed time limit: the command must end quickly |
//! | `fuzz` | `fuzz` | the readers and the compiler, by the driver `crates/cli/examples/fuzz/main.rs` |
//! | `guided` | `guided` | parser, readers, stored files and formulas, by coverage, from the corpora in `fuzz/corpus` |
//!
//! | file | subject |
//! | --- | --- |
//! | `scenes` | small runs of every command, with their data |
//! | `compare` | comparison of folders file by file, except times |
//!
//! All attacks accept `--jensen PATH` (an existing command; by default the command is built), `--count N` or `--seconds
//! S`, and `--seed N`. An attack prints each fault when it finds it.

mod calls;
mod compare;
mod damage;
mod fuzz;
mod guided;
mod kill;
mod limits;
mod scenes;
mod stops;

pub use calls::attack as calls;
pub use damage::attack as damage;
pub use fuzz::attack as fuzz;
pub use guided::attack as guided;
pub use kill::attack as kill;
pub use limits::attack as limits;
pub use stops::attack as stops;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::run::command_folder;

const PATIENCE: Duration = Duration::from_secs(60);

/// The options of an attack.
pub struct Flags {
    /// The path of the command under attack.
    pub jensen: PathBuf,
    /// The number of attempts.
    pub count: usize,
    /// The number of seconds that each target may take.
    pub seconds: u64,
    /// The seed of the random conditions.
    pub seed: u64,
}

impl Flags {
    /// Parses pairs of the form `--name value`. If `--jensen` is missing, it builds the command.
    pub fn read(arguments: &[String], count: usize) -> Result<Self, String> {
        let mut flags = Self {
            jensen: PathBuf::new(),
            count,
            seconds: 10,
            seed: 1,
        };
        for pair in arguments.chunks(2) {
            let [name, value] = pair else {
                return Err(format!("`{}` has no value", pair[0]));
            };
            let number = || {
                value
                    .parse()
                    .map_err(|_| format!("{name} {value}: expected a number"))
            };
            match name.as_str() {
                "--jensen" => flags.jensen = PathBuf::from(value),
                "--count" => flags.count = number()? as usize,
                "--seconds" => flags.seconds = number()?,
                "--seed" => flags.seed = number()?,
                _ => return Err(format!("there is no flag `{name}`")),
            }
        }
        Ok(flags)
    }

    /// Builds the command if no path was given.
    pub fn built(mut self, root: &Path) -> Result<Self, String> {
        if self.jensen.as_os_str().is_empty() {
            self.jensen = command_folder(root)?.join("jensen");
        }
        let whole = self.jensen.canonicalize();
        self.jensen = whole.map_err(|e| format!("`{}`: {e}", self.jensen.display()))?;
        Ok(self)
    }
}

/// The faults that an attack has found so far.
#[derive(Default)]
pub struct Finds {
    count: usize,
}

impl Finds {
    /// Counts a fault and prints it at once.
    pub fn add(&mut self, find: &str) {
        eprintln!("find: {find}");
        self.count += 1;
    }

    /// Returns `summary` if the attack found no fault, and an error otherwise.
    pub fn conclude(self, summary: String) -> Result<String, String> {
        match self.count {
            0 => Ok(summary),
            count => Err(format!("{count} finds, printed above")),
        }
    }
}

/// A stream of random numbers (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    /// Returns a random number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

/// The result of a command that has ended.
pub struct Ended {
    /// The exit code, or `None` if a signal ended the command.
    pub code: Option<i32>,
    /// The text that the command wrote to standard error.
    pub message: String,
}

impl Ended {
    /// Checks that the command ended without a fault, a signal or a hang, and that every error has a message.
    ///
    /// # Errors
    /// Returns a description of the fault.
    pub fn clean(&self) -> Result<(), String> {
        match self.code {
            Some(0 | 4) => Ok(()),
            Some(2 | 3) if !self.message.trim().is_empty() => Ok(()),
            Some(130) => Ok(()),
            code => Err(format!("exit {code:?}: {}", self.message.trim())),
        }
    }
}

/// Starts the command with these arguments.
pub fn start(jensen: &Path, arguments: &[String]) -> Result<Child, String> {
    let mut command = Command::new(jensen);
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
        .spawn()
        .map_err(|e| format!("cannot start the command: {e}"))
}

/// Waits until a command ends. A command that hangs is killed and reported.
pub fn finish(mut child: Child) -> Result<Ended, String> {
    let stderr = child.stderr.take();
    let reader = std::thread::spawn(move || {
        let mut message = Vec::new();
        if let Some(mut stderr) = stderr {
            // A broken pipe ends the report early.
            let _ = std::io::Read::read_to_end(&mut stderr, &mut message);
        }
        String::from_utf8_lossy(&message).into_owned()
    });
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            let message = reader.join().unwrap_or_default();
            return Ok(Ended {
                code: status.code(),
                message,
            });
        }
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("it hangs for {} seconds", PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs the command and waits until it ends.
pub fn run(jensen: &Path, arguments: &[String]) -> Result<Ended, String> {
    finish(start(jensen, arguments)?)
}

/// Splits a line into arguments.
pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}
