//! Displays the progress of a run. Nothing is displayed unless standard error is a terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jensen::HistoryPoint;
use jensen::data::text::fixed;
use jensen::run::{Progress, Record};

use crate::failure::remark;
use crate::verbose;

const PERIOD: Duration = Duration::from_millis(100);

/// Describes the state of a run. An implementation receives every iteration together with the speed of the run, and
/// returns the text to display.
pub trait Describe {
    fn note(&mut self, record: &Record);

    fn text(&self, progress: &Progress<'_>, speed: f64) -> String;
}

/// The progress line of `jensen fit`. It contains the iteration, the stage, the ELBO and the speed.
#[derive(Default)]
pub struct BoundLine {
    text: String,
}

impl Describe for BoundLine {
    fn note(&mut self, record: &Record) {
        if let Some(point) = HistoryPoint::of(record) {
            let se = point
                .se
                .map_or(String::new(), |se| format!(" ± {}", fixed(se, 2)));
            self.text = format!("{}  ELBO {}{se}", point.stage, fixed(point.elbo, 2));
        }
    }

    fn text(&self, progress: &Progress<'_>, speed: f64) -> String {
        let iteration = progress.record.iteration;
        format!("iteration {iteration}  {}  {speed:.0}/s", self.text)
    }
}

/// A line of text on the terminal that is rewritten in place.
pub struct Display {
    bar: ProgressBar,
    shown: Option<Instant>,
    describe: Box<dyn Describe>,
    start: Instant,
    first: Option<u64>,
}

impl Display {
    /// Creates a display on standard error. Nothing is displayed if `quiet` is true or if standard error is not a
    /// terminal.
    pub fn with(quiet: bool, describe: Box<dyn Describe>) -> Self {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(ProgressStyle::default_spinner());
        Self {
            bar,
            shown: None,
            describe,
            start: Instant::now(),
            first: None,
        }
    }

    pub fn update(&mut self, progress: &Progress<'_>) {
        let record = progress.record;
        if !self.bar.is_hidden() || verbose::is_on() {
            self.describe.note(record);
        }
        if self.bar.is_hidden() {
            return;
        }
        let first = *self.first.get_or_insert(record.iteration);
        if self.shown.is_some_and(|shown| shown.elapsed() < PERIOD) {
            return;
        }
        self.shown = Some(Instant::now());
        let seconds = self.start.elapsed().as_secs_f64().max(1e-6);
        let speed = (record.iteration - first + 1) as f64 / seconds;
        self.bar.set_message(self.describe.text(progress, speed));
        self.bar.tick();
    }

    pub fn describe(&self) -> &dyn Describe {
        &*self.describe
    }

    /// Prints a remark and then restores the line.
    pub fn remark(&self, text: &str) {
        self.bar.suspend(|| remark(text));
    }

    /// Removes the line from the terminal.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
