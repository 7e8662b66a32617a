//! The fit job that all models of points share.

use jensen_conjugate::contest::Ended;
use jensen_conjugate::driver::DriverSettings;
use jensen_conjugate::fit::{ModelFit, fit};
use jensen_conjugate::model::ConjugateModel;
use jensen_conjugate::plain::Plain;
use jensen_conjugate::several::{BestFit, Candidate, fit_best, identity_of_several};
use jensen_report::figure::{Axis, Chart, Figure, Image, ImageGrid, Series};
use jensen_run::{Budget, Clock, Control, Identity, Outcome, Reason, Record, Store};
use serde::Serialize;
use serde_json::Value;

use super::files::{Guarded, PointFiles};
use super::report_page::report_page;
use super::stored::Globals;
use super::{CandidateRow, Parts, PointRequest, Points, PointsSeconds, PointsSummary};
use crate::Error;
use crate::job::{self, Baseline, Evidence, File, Finished, Job, Judgement, Need, Work};
use crate::units::Units;

/// The quantities of a run that are plotted as functions of the iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    bounds: Vec<(f64, f64)>,
    temperatures: Vec<(f64, f64)>,
}

impl job::Course for Course {
    fn add(&mut self, record: &Record) {
        let iteration = record.iteration as f64;
        if let Some(elbo) = record.elbo {
            self.bounds.push((iteration, elbo));
        }
        if let Some(t) = record.fields.get("temperature").and_then(Value::as_f64) {
            self.temperatures.push((iteration, t));
        }
    }
}

impl Course {
    pub(super) fn charts(&self) -> Vec<(Chart, &'static str)> {
        let chart = |title: &str, y: &str, points: &[(f64, f64)]| {
            Chart::new(title)
                .x(Axis::new("iteration"))
                .y(Axis::new(y))
                .series(Series::line("", points.iter().copied()))
        };
        let mut charts = Vec::new();
        if !self.bounds.is_empty() {
            charts.push((
                chart("Bound at the current temperature", "nats", &self.bounds),
                "The evidence lower bound at the current temperature.",
            ));
        }
        charts.push((
            chart("Temperature", "T", &self.temperatures),
            "1 is the model itself; a larger value reduces the weight of the likelihood.",
        ));
        charts
    }
}

/// A figure that shows a fitted model.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The name of the file without its extension.
    pub name: &'static str,
    /// The caption.
    pub caption: &'static str,
    /// The figure.
    pub figure: Figure,
}

/// The description of a fitted model for its summary and its report.
#[derive(Clone, Debug)]
pub struct Described {
    /// The parts of the fitted model.
    pub parts: Parts,
    /// The noun for the object that each row of the table describes, such as `component`.
    pub rows: &'static str,
    /// The number of parts that hold points, if the model leaves parts empty. The table lists only these parts.
    pub occupied: Option<u64>,
    /// The headers of the columns, and the rows of the table.
    pub table: (Vec<String>, Vec<Vec<String>>),
    /// The indices of the parts of the model, in the order in which the table lists them.
    pub order: Vec<usize>,
    /// The figures that show the fitted model.
    pub pictures: Vec<Picture>,
    /// The encoded approximation if it contains more than the natural parameters, and `None` otherwise.
    pub approximation: Option<Vec<u8>>,
}

pub(super) fn cell(x: f64) -> String {
    format!("{x:.3}")
}

/// Draws rows as images with captions. In each image, the smallest value is black and the largest value is white.
pub(super) fn images<'a>(
    title: &str,
    rows: impl ExactSizeIterator<Item = &'a [f64]>,
    (width, height): (usize, usize),
    caption: impl Fn(usize) -> String,
) -> Figure {
    let columns = (rows.len() as f64).sqrt().ceil() as usize;
    let mut grid = ImageGrid::new(title, columns);
    for (i, row) in rows.enumerate() {
        if let Some(image) = Image::grey_stretched(width, height, row) {
            grid = grid.captioned(image, caption(i));
        }
    }
    Figure::new("").panel(grid)
}

/// The mean log predictive density of the held-out points and its standard error in nats, or `None` if no points are
/// held out.
pub(super) type Score = Option<(f64, f64)>;

/// The number of vectors in memory that have the size of the global parameters of a model. These vectors include
/// statistics and gradients, and three copies that exist while a checkpoint is written.
pub(super) const COPIES: u64 = 8;

pub(super) struct PointJob<'a, M, R> {
    pub(super) command: &'static str,
    pub(super) request: &'a R,
    pub(super) shared: &'a PointRequest,
    pub(super) points: &'a Points,
    pub(super) units: &'a Units,
    pub(super) plain: &'a dyn Fn(usize) -> Option<Beside>,
    /// This field is `None` if the points are in memory.
    pub(super) elsewhere: Option<&'a PointFiles>,
    /// The combinations of every model with every start, grouped by model. The job keeps the best of these candidates.
    pub(super) candidates: Vec<Candidate<'a, M>>,
    pub(super) score: &'a dyn Fn(usize, &[f64]) -> Score,
    pub(super) describe: &'a dyn Fn(usize, &[f64]) -> Described,
    pub(super) doubt: &'a dyn Fn(usize, &[f64]) -> Option<Reason>,
}

pub(super) struct Beside {
    pub(super) model: String,
    /// The ELBO of the baseline and the lowest acceptable ELBO of the fit, in nats.
    pub(super) bounds: Plain,
    pub(super) advice: String,
}

/// Returns a baseline that consists of the model with a single part, or `None` if `model` itself has only one part.
/// `flag` is the option that sets the number of parts.
pub(super) fn one_part<M: ConjugateModel>(model: &M, part: &str, flag: &str) -> Option<Beside> {
    (model.parts().len() > 1).then_some(())?;
    Some(Beside {
        model: format!("one {part} for all"),
        bounds: model.plain()?,
        advice: format!("Try more starts (--starts), or use fewer {part}s ({flag})."),
    })
}

/// Returns the combinations of every model with every start. When models are compared, the number that is paired with a
/// model is added to its ELBO.
pub(super) fn starts<'a, M: ConjugateModel>(
    request: &PointRequest,
    models: &[(&'a M, f64)],
) -> Result<Vec<Candidate<'a, M>>, Error> {
    let parts = models.iter().map(|(model, _)| model.parts().len()).max();
    let starts = 0..request.starts(parts.unwrap_or(1));
    let settings: Vec<DriverSettings> = starts
        .map(|start| request.settings_of(start))
        .collect::<Result<_, _>>()?;
    let of = |(model, credit): &(&'a M, f64)| {
        let (model, credit) = (*model, *credit);
        let one = |settings: &DriverSettings| Candidate {
            model,
            settings: settings.clone(),
            credit,
        };
        settings.iter().map(one).collect::<Vec<_>>()
    };
    Ok(models.iter().flat_map(of).collect())
}

/// The relative tolerance for comparing two values of the ELBO. When the iterations stop, the relative distance of the
/// ELBO from its limit may be as large as this tolerance.
const STILL: f64 = 1e-6;

/// The tolerance, in nats, for comparing the ELBO of a start with the best ELBO. A start within this tolerance counts
/// as having found the same optimum.
const SAME: f64 = 1.0;

/// The result of a fit of a model of points.
pub struct Made {
    /// The fitted global parameters.
    pub fit: ModelFit,
    /// The score of the held-out points, or `None` if no points are held out.
    pub score: Score,
    /// The description of the fitted model.
    pub described: Described,
    /// A reason not to trust the fit, or `None` if there is none.
    pub doubt: Option<Reason>,
    /// The comparison with a plain baseline model, or `None` if there is no baseline.
    pub baseline: Option<Baseline>,
    /// The encoded approximation.
    pub kept: Vec<u8>,
    /// The index of the chosen candidate, followed by the results of all candidates. This field is `None` if there was
    /// only one candidate.
    pub candidates: Option<(usize, Vec<Ended>)>,
}

impl<M: ConjugateModel, R> PointJob<'_, M, R> {
    fn first(&self) -> &Candidate<'_, M> {
        &self.candidates[0]
    }

    /// Returns the maximum number of iterations of each start. Fits by minibatches have no other stopping rule.
    fn each(&self) -> u64 {
        let planned = self.shared.planned(self.points.count());
        planned.unwrap_or(u64::MAX)
    }

    fn size(&self, candidate: usize) -> usize {
        candidate / self.starts()
    }

    fn starts(&self) -> usize {
        let parts = self.candidates.iter().map(|c| c.model.parts().len());
        self.shared.starts(parts.max().unwrap_or(1)) as usize
    }

    fn made(&self, candidate: usize, fit: ModelFit) -> Made {
        let size = self.size(candidate);
        let mut described = (self.describe)(size, &fit.lambda);
        let kept = described.approximation.take().unwrap_or_else(|| {
            let globals = Globals {
                lambda: fit.lambda.clone(),
                units: self.units.clone(),
                levels: Vec::new(),
            };
            globals.encode(self.first().model.name())
        });
        let baseline = (self.plain)(size).map(|beside| Baseline {
            model: beside.model,
            score: beside.bounds.bound,
            fit: fit.elbo,
            least: beside.bounds.within - STILL * (1.0 + fit.elbo.abs()),
            unit: "ELBO in nats".to_owned(),
            advice: beside.advice,
        });
        Made {
            score: (self.score)(size, &fit.lambda),
            described,
            doubt: (self.doubt)(size, &fit.lambda),
            baseline,
            kept,
            fit,
            candidates: None,
        }
    }

    fn fitted(&self, mut control: Control<'_>) -> Result<Outcome<Made>, Error> {
        let digest = &self.points.digest;
        if let [
            Candidate {
                model, settings, ..
            },
        ] = &self.candidates[..]
        {
            let outcome = fit(*model, settings, digest, &mut control)?;
            return Ok(Outcome {
                output: outcome.output.map(|fit| self.made(0, fit)),
                status: outcome.status,
                iterations: outcome.iterations,
                seconds: outcome.seconds,
            });
        }
        let outcome = fit_best(&self.candidates, self.each(), digest, &mut control)?;
        let made = |best: BestFit| Made {
            candidates: Some((best.chosen, best.ended)),
            ..self.made(best.chosen, best.fit)
        };
        Ok(Outcome {
            output: outcome.output.map(made),
            status: outcome.status,
            iterations: outcome.iterations,
            seconds: outcome.seconds,
        })
    }

    fn remarks(&self, made: &Made) -> Vec<String> {
        let mut remarks = Vec::new();
        let described = &made.described;
        if described.occupied == Some(described.order.len() as u64) {
            remarks.push(format!(
                "no {} is empty, so a larger number may be better",
                described.rows
            ));
        }
        let Some((chosen, ended)) = &made.candidates else {
            return remarks;
        };
        let starts = self.starts();
        let size = self.size(*chosen);
        let same = ended.iter().skip(size * starts).take(starts);
        let same = same.filter(|ended| {
            ended
                .elbo()
                .is_some_and(|elbo| elbo >= made.fit.elbo - SAME)
        });
        let same = same.count();
        if starts > 2 && same == 1 {
            remarks.push(format!(
                "only one of {starts} starts found the best bound, so more starts may find a better one"
            ));
        }
        let sizes = self.candidates.len() / starts;
        if sizes > 1 && size + 1 == sizes {
            remarks.push(format!(
                "the largest number of {}s has the best bound, so a larger number may be better",
                made.described.rows
            ));
        }
        remarks
    }
}

impl<M: ConjugateModel, R: Serialize> Job for PointJob<'_, M, R> {
    type Request = R;
    type Course = Course;
    type Output = Made;
    type Summary = PointsSummary;

    fn command(&self) -> &'static str {
        self.command
    }

    fn own_files(&self) -> &'static [&'static str] {
        &[
            "course.svg",
            "course.png",
            "means.svg",
            "means.png",
            "factors.svg",
            "factors.png",
        ]
    }

    fn request(&self) -> &R {
        self.request
    }

    fn identity(&self) -> Identity {
        identity_of_several(&self.candidates, self.each(), &self.points.digest)
    }

    fn budgets(&self) -> &'static [&'static str] {
        &["/mode/batch/max_iterations", "/mode/stochastic/passes"]
    }

    fn need(&self) -> Need {
        let points = self.points;
        let numbers = points.train.len() + points.heldout.len();
        let sizes = self.candidates.iter().map(|c| c.model.blocks().len());
        let globals = sizes.max().unwrap_or(0);
        let name = self.first().model.name();
        Need {
            what: format!("a {name} of {} points", points.count()),
            // The rows are stored both as they were read and in the form that the model uses.
            bytes: ((3 * numbers + COPIES as usize * globals) * size_of::<f64>()) as u64
                + (64 << 20),
            advice: "use fewer components or factors, or fit a part of the rows".to_owned(),
        }
    }

    fn budget(&self) -> Budget {
        Budget {
            max_seconds: self.shared.max_seconds,
            ..Budget::iterations(
                self.shared
                    .iterations(self.points.count(), self.candidates.len()),
            )
        }
    }

    fn course(&self) -> Course {
        Course::default()
    }

    fn run(&mut self, control: Control<'_>) -> Result<Outcome<Made>, Error> {
        let Some(files) = self.elsewhere else {
            return self.fitted(control);
        };
        let mut guarded = control.store.map(|store| Guarded { store, files });
        let store = guarded.as_mut();
        let outcome = self.fitted(Control {
            budget: control.budget,
            clock: control.clock,
            cancel: control.cancel,
            partial: control.partial,
            observer: &mut *control.observer,
            store: store.map(|store| -> &mut dyn Store { store }),
            checkpoint_seconds: control.checkpoint_seconds,
            resume: control.resume,
            force_resume: control.force_resume,
        })?;
        files.failure().map_or(Ok(outcome), Err)
    }

    fn evidence(&self, made: &Finished<Self>) -> Evidence {
        let work = match self.shared.passes() {
            None => Work::UntilItConverges,
            Some(passes) => Work::Planned {
                iterations: self.budget().max_iterations,
                made: format!("completed all passes: {passes}"),
            },
        };
        let fit = &made.output.fit;
        let mut evidence = Evidence {
            baseline: made.output.baseline.clone(),
            temperature: fit.temperature,
            cooling: self.first().settings.temper.remedy(&self.shared.length()),
            ..Evidence::new(made.status.clone(), work)
        };
        let described = &made.output.described;
        evidence
            .against
            .extend(fit.verdict(described.rows, &described.order));
        if let Some(doubt) = &made.output.doubt {
            evidence.against.against(doubt.clone());
        }
        evidence.notes.extend(self.units.notes(&self.points.names));
        evidence.notes.extend(self.remarks(&made.output));
        if !fit.elbo.is_finite() {
            let reason = format!("the bound is {}", fit.elbo);
            evidence.against.against(Reason::new(
                reason,
                "Leave out columns that other columns determine, or use fewer parts.",
            ));
        }
        evidence
    }

    fn summary(&self, made: &Finished<Self>, judgement: Judgement) -> PointsSummary {
        let Made {
            fit,
            score,
            described,
            candidates,
            ..
        } = &made.output;
        let finite = |x: f64| x.is_finite().then_some(x);
        PointsSummary {
            command: self.command.to_owned(),
            model: self.first().model.name().to_owned(),
            judgement,
            elbo: finite(fit.elbo),
            temper: self.first().settings.temper.name().to_owned(),
            temperature: finite(fit.temperature),
            heldout_log_predictive: score.and_then(|s| finite(s.0)),
            heldout_standard_error: score.and_then(|s| finite(s.1)),
            iterations: made.iterations,
            points: self.points.count() as u64,
            skipped: fit.skipped,
            points_per_second: fit.points as f64 / made.seconds.max(1e-9),
            seconds: PointsSeconds { fit: made.seconds },
            seed: self.shared.seed(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            columns: self.points.names.clone(),
            parts: described.parts.clone(),
            occupied: described.occupied,
            gain: fit.gain.and_then(finite),
            candidates: candidates.as_ref().map(|(chosen, ended)| {
                let rows = ended.iter().zip(&self.candidates).enumerate();
                rows.map(|(i, (ended, candidate))| CandidateRow {
                    parts: candidate.model.parts().len() as u64,
                    seed: candidate.settings.seed,
                    elbo: ended.elbo(),
                    evidence: ended.elbo().map(|elbo| elbo + candidate.credit),
                    iterations: ended.iterations,
                    converged: ended.status.is_converged(),
                    chosen: i == *chosen,
                })
                .collect()
            }),
        }
    }

    fn files<'a>(
        &'a self,
        made: &'a Finished<Self>,
        summary: &mut PointsSummary,
        _: &dyn Clock,
    ) -> Vec<File<'a>> {
        let charts = made.course.charts();
        let course = charts.iter().fold(Figure::new(""), |figure, (chart, _)| {
            figure.panel(chart.clone())
        });
        let pictures = made.output.described.pictures.iter();
        let named = std::iter::once(("course", course));
        let page = report_page(
            summary,
            self.shared,
            self.points,
            &made.output.described,
            charts,
        );
        let approximation = made.output.kept.clone();
        named
            .chain(pictures.map(|picture| (picture.name, picture.figure.clone())))
            .flat_map(|(name, figure)| {
                [
                    File::of_bytes(format!("{name}.svg"), figure.to_svg()),
                    File::of_bytes(format!("{name}.png"), figure.to_png()),
                ]
            })
            .chain([File::approximation(approximation), File::page(&page)])
            .collect()
    }
}
