//! Runs of several methods on the same programs.

use jensen::Problem;
use jensen::density::LogDensity;

use crate::contest::{Cancel, Method, Path, follow};
use crate::context::Context;
use crate::corpus::Entry;
use crate::failure::Failure;
use crate::results::Ours;

/// The runs of several methods on one program.
#[derive(Debug, Clone, PartialEq)]
pub struct Race {
    /// The number of unconstrained parameters of the program.
    pub dim: usize,
    /// The paths of all methods and seeds.
    pub paths: Vec<Path>,
}

struct Job<'a> {
    entry: &'a Entry,
    method: Method,
    seed: u64,
}

/// Runs the methods on programs with `seeds` seeds each. Every run is stored separately. Several parts can therefore
/// use the same runs, and a reproduction that was stopped continues with the next run.
///
/// # Errors
/// Fails if a program does not compile, if a result cannot be stored, or if the user stops the reproduction.
pub fn races(
    context: &mut Context<'_>,
    programs: &[&Entry],
    methods: &[Method],
    seeds: u64,
) -> Result<Vec<Race>, Failure> {
    let cancel = Cancel::of(context);
    let mut jobs = Vec::new();
    for &entry in programs {
        for &method in methods {
            jobs.extend((0..seeds).map(|seed| Job {
                entry,
                method,
                seed,
            }));
        }
    }
    let paths = context.keep_each(
        &jobs,
        |job| format!("runs/{}-{}-{}", job.entry.key(), job.method.key(), job.seed),
        |job| follow(cancel, &job.entry.compile()?, job.method, job.seed),
    )?;
    let each = methods.len() * seeds as usize;
    programs
        .iter()
        .zip(paths.chunks(each.max(1)))
        .map(|(entry, paths)| {
            Ok(Race {
                dim: entry.compile()?.density().dim(),
                paths: paths.to_vec(),
            })
        })
        .collect()
}

impl Race {
    /// Returns the runs of a method.
    pub fn of(&self, method: Method) -> Vec<&Path> {
        self.paths.iter().filter(|p| p.method == method).collect()
    }

    /// Returns the run with the median final ELBO. If the number of runs is even, the function returns the lower of the
    /// two middle runs.
    pub fn median(&self, method: Method) -> &Path {
        let mut paths = self.of(method);
        paths.sort_by(|a, b| a.end().total_cmp(&b.end()));
        paths[(paths.len() - 1) / 2]
    }

    /// Returns the largest final ELBO of all runs.
    pub fn best(&self) -> f64 {
        self.paths
            .iter()
            .map(Path::end)
            .fold(f64::NEG_INFINITY, f64::max)
    }

    /// Returns the median final ELBO of a method. The note contains its distance from the largest final ELBO and the
    /// status of the run.
    pub fn summary(&self, method: Method) -> Ours {
        let path = self.median(method);
        let missed = self.best() - path.end();
        let note = if missed.is_finite() {
            format!("{missed:.2} nats below the best; {}", path.status)
        } else {
            path.status.clone()
        };
        let ends: Vec<f64> = self.of(method).iter().map(|path| path.end()).collect();
        Ours::value(path.end()).note(note).median_of(&ends)
    }
}
