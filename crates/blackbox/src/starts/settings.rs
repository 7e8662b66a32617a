//! The settings of the starts: their number and their starting points.

use serde::{Deserialize, Serialize};

use super::outcomes::{StartOutcome, in_doubt};
use super::points::{FIRST_WIDE, Init, WIDE};
use crate::policy::DENSE;

/// The settings of the starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartSettings {
    /// The choice of the starting points.
    pub init: Init,
    /// The number of starts. `None` means 9 starts in up to 16 dimensions (27 if they disagree), 5 in up to 64
    /// dimensions (15 if they disagree), and 3 in more dimensions (9 if they disagree, in up to 256). In up to 500
    /// dimensions, four further starts begin at a distance of 10 to 100 from the origin in every coordinate. If the
    /// user specifies an initial point, it is one of the starts. With `Some(0)`, the method has no starts and begins at
    /// the initial point with unit scales. ADVI and HFSGVI always begin in this way.
    pub starts: Option<usize>,
    /// The number of draws on which the starts are compared.
    pub draws: usize,
    /// The largest number of Newton iterations in each start.
    pub iterations: u64,
}

impl Default for StartSettings {
    fn default() -> Self {
        Self {
            init: Init::Zero,
            starts: None,
            draws: 32,
            iterations: 60,
        }
    }
}

impl StartSettings {
    pub(super) fn count(&self, dim: usize, outcomes: &[StartOutcome]) -> usize {
        if matches!(self.init, Init::Point(_)) {
            return 1;
        }
        let near = outcomes.iter().filter(|outcome| !outcome.wide).count();
        let usual = match dim {
            0..=16 if near >= 9 && in_doubt(outcomes) => 27,
            0..=16 => 9,
            17..=64 if near >= 5 && in_doubt(outcomes) => 15,
            17..=64 => 5,
            65..=256 if near >= 3 && in_doubt(outcomes) => 9,
            _ => 3,
        };
        self.starts.unwrap_or(usual).max(1)
    }

    /// Returns the index of the next start to begin. `next` is the lowest index of a start that has not begun. If it is
    /// not yet known whether more starts are needed, the function waits until no start is running.
    pub(super) fn following(
        &self,
        next: u64,
        on_their_way: bool,
        dim: usize,
        outcomes: &[StartOutcome],
    ) -> Option<u64> {
        if next < self.count(dim, outcomes) as u64 {
            return Some(next);
        }
        if on_their_way && next < FIRST_WIDE {
            return None;
        }
        let wide = match (&self.init, self.starts) {
            (Init::Zero | Init::Random, None) if dim <= DENSE => 2 * WIDE.len() as u64,
            _ => 0,
        };
        let next = next.max(FIRST_WIDE);
        (next < FIRST_WIDE + wide).then_some(next)
    }
}
