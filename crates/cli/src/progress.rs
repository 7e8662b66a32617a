//! Live progress, on a terminal only.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jensen::HistoryPoint;
use jensen::run::Progress;

use crate::failure::remark;

/// Shortest time between two changes of the display.
const PERIOD: Duration = Duration::from_millis(100);

/// One line that is rewritten: iteration, stage, bound, speed.
pub struct Display {
    bar: ProgressBar,
    shown: Option<Instant>,
    bound: String,
    start: Instant,
    first: Option<u64>,
}

impl Display {
    /// A display on standard error, or none where that is no terminal or `quiet` is asked for.
    pub fn new(quiet: bool) -> Self {
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
            bound: String::new(),
            start: Instant::now(),
            first: None,
        }
    }

    /// Shows where the run stands.
    pub fn update(&mut self, progress: &Progress<'_>) {
        if self.bar.is_hidden() {
            return;
        }
        let record = progress.record;
        if let Some(point) = HistoryPoint::of(record) {
            let se = point.se.map_or(String::new(), |se| format!(" ± {se:.2}"));
            self.bound = format!("{}  ELBO {:.2}{se}", point.stage, point.elbo);
        }
        let first = *self.first.get_or_insert(record.iteration);
        if self.shown.is_some_and(|shown| shown.elapsed() < PERIOD) {
            return;
        }
        self.shown = Some(Instant::now());
        let seconds = self.start.elapsed().as_secs_f64().max(1e-6);
        let speed = (record.iteration - first + 1) as f64 / seconds;
        self.bar.set_message(format!(
            "iteration {}  {}  {speed:.0}/s",
            record.iteration, self.bound
        ));
        self.bar.tick();
    }

    /// Says something without disturbing the display.
    pub fn remark(&self, text: &str) {
        self.bar.suspend(|| remark(text));
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
