//! The fit job for latent Gaussian models.

use jensen_data::Table;
use jensen_math::simd::Simd;
use jensen_run::{
    Budget, Clock, Control, Identity, Observer, Outcome, Progress, Reason, Record, Status,
};
use serde_json::json;

use super::files::{COMMAND, DATA};
use super::left_out::cross_validation;
use super::{
    Curve, Known, LatentData, LatentRequest, LatentRun, LatentSeconds, LatentSummary, Learnt, Made,
    Page, PriorFiles, StoredPosterior, TableModel, evidence, fit_table, fitted, predictions,
    report_page, summary,
};
use crate::Error;
use crate::job::{
    Around, Done, Evidence, File, Finished, Job, Judgement, Need, ResultFolder, carry_out, request,
};

pub(super) const PREDICTIONS: &str = "predictions.csv";

/// A fit of a latent Gaussian model that is ready to be run by [`carry_out`].
pub struct LatentJob<'a> {
    run: LatentRun,
    /// This field is `None` if the table was passed in memory and not read from a file.
    data: Option<&'a LatentData>,
    files: &'a PriorFiles,
    table: &'a Table,
    model: &'a TableModel,
    bytes: u64,
    data_hash: String,
    build_seconds: f64,
    check: Check<'a>,
}

/// A further check of a fit by its caller, which returns a reason not to trust it.
pub(super) type Check<'a> =
    &'a dyn Fn(&TableModel, &StoredPosterior) -> Result<Option<Reason>, Error>;

/// Fits a latent Gaussian model to a table and calls `then` with the result.
///
/// # Errors
/// Fails if the request is invalid or does not match the table. Also returns the errors of [`carry_out`].
pub fn fit_latent<T>(
    run: LatentRun,
    data: &LatentData,
    files: &PriorFiles,
    around: Around<'_>,
    then: impl FnOnce(Done<LatentJob<'_>>) -> T,
) -> Result<T, Error> {
    fit_and_check(run, data, files, around, &|_, _| Ok(None), then)
}

/// Does what [`fit_latent`] does. The verdict on the fit includes the result of `check`.
pub(super) fn fit_and_check<T>(
    mut run: LatentRun,
    data: &LatentData,
    files: &PriorFiles,
    around: Around<'_>,
    check: Check<'_>,
    then: impl FnOnce(Done<LatentJob<'_>>) -> T,
) -> Result<T, Error> {
    run.flags.check()?;
    let begun = around.clock.seconds();
    let (table, data_hash) = data.table_and_digest()?;
    let model = TableModel::new(&run.flags.request(), &table, files)?;
    run.files = files.copies().1;
    let job = LatentJob {
        data: Some(data),
        files,
        table: &table,
        bytes: model.bytes(&run.flags.learning())?,
        run,
        model: &model,
        data_hash,
        build_seconds: around.clock.seconds() - begun,
        check,
    };
    carry_out(job, around).map(then)
}

/// Fits a latent Gaussian model to a table in memory and calls `then` with the result. Because there is no data file to
/// copy into a result folder, the function stores no files, even if `around` requests a folder.
///
/// # Errors
/// Fails if the request is invalid or does not match the table. Also returns the errors of [`carry_out`].
pub fn fit_latent_in_memory<T>(
    flags: LatentRequest,
    table: &Table,
    around: Around<'_>,
    then: impl FnOnce(Done<LatentJob<'_>>) -> T,
) -> Result<T, Error> {
    flags.check()?;
    let begun = around.clock.seconds();
    let files = PriorFiles::default();
    let model = TableModel::new(&flags.request(), table, &files)?;
    let job = LatentJob {
        data: None,
        files: &files,
        table,
        bytes: model.bytes(&flags.learning())?,
        run: LatentRun {
            data: table.source().to_owned(),
            files: files.copies().1,
            flags,
        },
        model: &model,
        data_hash: String::new(),
        build_seconds: around.clock.seconds() - begun,
        check: &|_, _| Ok(None),
    };
    let around = Around {
        results: ResultFolder::None,
        ..around
    };
    carry_out(job, around).map(then)
}

impl LatentJob<'_> {
    fn shown<'a>(&'a self, made: &'a Finished<Self>) -> Made<'a> {
        let (learnt, known) = &made.output;
        Made {
            model: self.model,
            learnt,
            known,
            settings: self.run.flags.settings(),
            seconds: LatentSeconds {
                build: self.build_seconds,
                fit: made.seconds,
                results: 0.0,
            },
            seed: self.run.flags.seed.unwrap_or(0),
        }
    }
}

impl Job for LatentJob<'_> {
    type Request = LatentRun;
    type Course = Curve;
    type Output = (Learnt, Known);
    type Summary = LatentSummary;

    fn command(&self) -> &'static str {
        COMMAND
    }

    fn own_files(&self) -> &'static [&'static str] {
        &[PREDICTIONS]
    }

    fn request(&self) -> &LatentRun {
        &self.run
    }

    fn inputs(&self) -> Vec<File<'_>> {
        let data = self.data.iter();
        let mut inputs: Vec<_> = data
            .map(|data| File::of_bytes(DATA, &*data.bytes))
            .collect();
        inputs.extend(self.files.copies().0);
        inputs
    }

    fn identity(&self) -> Identity {
        let flags = &self.run.flags;
        let settings = flags.settings();
        Identity {
            algorithm: COMMAND.to_owned(),
            settings: json!({
                "request": flags.request(),
                "solver": settings.solver.name(),
                "tolerance": settings.tolerance,
                "nodes": settings.nodes,
                "optimise_hyperparameters": !flags.fixed,
                "hyperparameters": flags.hyperparameters,
                "restarts": flags.restarts,
                "rows": self.table.rows(),
            }),
            seed: flags.seed.unwrap_or(0),
            model_hash: super::digest(flags.prior.as_deref().unwrap_or("").as_bytes()),
            data_hash: self.data_hash.clone(),
            simd: Simd::detect().name().to_owned(),
        }
    }

    fn need(&self) -> Need {
        let process = self.model.process_size() > 0;
        let points = self.model.assembled().inducing_points();
        let (what, advice) = match (process, points) {
            (true, _) => (
                format!("a Gaussian process on {} rows", self.model.rows().len()),
                "use `gp(matern52, on=COLUMN)` on one column, `hsgp` on up to three columns, `svgp` or a Markov field \
                 (`rw2`, `grid`), fit a part of the rows, or raise the limit (--memory-limit)",
            ),
            (false, 1..) => (
                format!(
                    "a process with {points} inducing points on {} rows",
                    self.model.rows().len()
                ),
                "use fewer points (`inducing=`), fit a part of the rows, or raise the limit (--memory-limit)",
            ),
            (false, 0) => (
                format!("a fit of {} rows under this prior", self.model.rows().len()),
                "use fewer nodes (`step=` of a walk, a coarser grid), use fewer covariates with a field, or \
                 raise the limit (--memory-limit)",
            ),
        };
        Need {
            what,
            bytes: self.bytes,
            advice: advice.to_owned(),
        }
    }

    fn budget(&self) -> Budget {
        self.run.flags.budget()
    }

    fn course(&self) -> Curve {
        Curve::default()
    }

    fn run(&mut self, control: Control<'_>) -> Result<Outcome<(Learnt, Known)>, Error> {
        let (clock, begun) = (control.clock, control.clock.seconds());
        let learning = self.run.flags.learning();
        let mut outside = Outside {
            model: self.model,
            observer: control.observer,
        };
        let mut control = Control {
            budget: control.budget,
            clock: control.clock,
            cancel: control.cancel,
            partial: control.partial,
            observer: &mut outside,
            store: match control.store {
                Some(store) => Some(&mut *store),
                None => None,
            },
            checkpoint_seconds: control.checkpoint_seconds,
            resume: control.resume,
            force_resume: control.force_resume,
        };
        let learnt = fit_table(self.model, &learning, &self.identity(), &mut control)?;
        let known = Known::of(self.model, &learnt)?;
        Ok(Outcome {
            status: learnt.status.clone(),
            iterations: learnt.iterations,
            seconds: clock.seconds() - begun,
            output: Some((learnt, known)),
        })
    }

    fn evidence(&self, made: &Finished<Self>) -> Evidence {
        let mut evidence = evidence(&self.shown(made));
        let stored = StoredPosterior::new(&made.output.0);
        let found = (self.check)(self.model, &stored).unwrap_or_else(|error| {
            let text = format!("a check of the fit failed: {error}");
            Some(Reason::new(
                text,
                "Change the settings that the error names.",
            ))
        });
        found
            .into_iter()
            .for_each(|reason| evidence.against.against(reason));
        evidence
    }

    fn summary(&self, made: &Finished<Self>, judgement: Judgement) -> LatentSummary {
        summary(&self.shown(made), judgement)
    }

    fn files<'a>(
        &'a self,
        made: &'a Finished<Self>,
        summary: &mut LatentSummary,
        clock: &dyn Clock,
    ) -> Vec<File<'a>> {
        let (model, (learnt, known)) = (self.model, &made.output);
        let begun = clock.seconds();
        // Computing the predictions of all rows takes longer than some fits, so they are computed only if they will be
        // stored.
        let outcome = fitted(model, &known.predictors);
        // The points of the hyperparameters have been fitted, so they are within their ranges.
        let left_out = cross_validation(model, learnt)
            .ok()
            .flatten()
            .filter(|rows| rows.total.elpd.is_finite());
        summary.leave_one_out = left_out.as_ref().map(|rows| rows.total);
        let rows = predictions(model, &outcome, left_out.as_ref(), model.rows());
        let page = |summary: &LatentSummary| {
            File::page(&report_page(Page {
                model,
                known,
                summary,
                curve: &made.course,
                outcome: &outcome,
                graphs: model.graphs(),
                data: self.table.source(),
                settings: request::listed(&self.run.flags),
            }))
        };
        // Drawing the report takes most of the time of this step. The report is therefore drawn once to measure this
        // time.
        let drawn = page(summary);
        summary.seconds.results = clock.seconds() - begun;
        let stored = StoredPosterior::new(learnt);
        vec![
            File::approximation(stored.encode()),
            File::of_bytes(PREDICTIONS, rows),
            drawn,
        ]
    }
}

/// An observer that converts the ELBO to the units of the table and passes it on to another observer.
struct Outside<'a> {
    model: &'a TableModel,
    observer: &'a mut dyn Observer,
}

impl Outside<'_> {
    fn moved(&self, record: &Record) -> Record {
        let mut record = record.clone();
        record.elbo = record.elbo.map(|bound| self.model.bound_outside(bound));
        record
    }
}

impl Observer for Outside<'_> {
    fn record(&mut self, record: &Record) {
        let moved = self.moved(record);
        self.observer.record(&moved);
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        let moved = self.moved(progress.record);
        self.observer.progress(&Progress {
            record: &moved,
            ..*progress
        });
    }

    fn note(&mut self, text: &str) {
        self.observer.note(text);
    }

    fn finished(&mut self, status: &Status) {
        self.observer.finished(status);
    }
}
