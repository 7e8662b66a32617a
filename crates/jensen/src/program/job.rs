//! The fit job for a problem. It stores the posterior in a folder.

use jensen_data::{
    Artefact, Coordinates, DataSet, FitSummary, NETCDF, NetcdfAttributes, Roles, write_draws_csv,
    write_draws_netcdf,
};
use jensen_run::{Budget, Clock, Control, Identity, Outcome, Record};
use serde::Serialize;

use super::{FIT, REGRESSION};
use crate::exchangeable::{VariancePoint, variance_section};
use crate::fit::footprint;
use crate::job::{self, Evidence, File, Finished, Job, Judgement, Need};
use crate::regress::{is_of_prior, section};
use crate::stan::Build;
use crate::{About, Error, Fitted, HistoryPoint, Options, Predictive, Problem, fit_with};

/// A fit of a problem that is ready to be run by [`carry_out`](crate::job::carry_out).
pub struct FitJob<'a, P, R> {
    /// The problem to fit.
    pub problem: &'a P,
    /// The options of the fit.
    pub options: &'a Options,
    /// The request that is stored in `run.json`.
    pub request: R,
    /// The names and contents of the problem's source files. The job copies these files to the folder.
    pub inputs: Vec<(&'static str, &'a [u8])>,
    /// The limits on the iterations and the time of the run.
    pub budget: Budget,
    /// Whether the run writes checkpoints, so that it can be resumed.
    pub resumable: bool,
    /// The parts of the report that are not results of the fit.
    pub about: About,
    /// The data. They are stored together with the draws for programs that read the draws.
    pub data: &'a DataSet,
    /// The names of dimensions and the labels of their elements. They are stored together with the draws.
    pub coordinates: Coordinates,
}

/// The data that the job collects from the records of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FitCourse {
    history: Vec<HistoryPoint>,
    variances: Vec<VariancePoint>,
}

impl job::Course for FitCourse {
    fn add(&mut self, record: &Record) {
        self.history.extend(HistoryPoint::of(record));
        self.variances.extend(VariancePoint::of(record));
    }
}

impl<P: Problem, R: Serialize> Job for FitJob<'_, P, R> {
    type Request = R;
    type Course = FitCourse;
    type Output = Fitted;
    type Summary = FitSummary;

    fn command(&self) -> &'static str {
        FIT
    }

    fn request(&self) -> &R {
        &self.request
    }

    fn inputs(&self) -> Vec<File<'_>> {
        let inputs = self.inputs.iter();
        inputs
            .map(|(name, bytes)| File::of_bytes(*name, *bytes))
            .collect()
    }

    fn identity(&self) -> Identity {
        jensen_blackbox::identity(&self.options.settings, &self.problem.subject())
    }

    fn budgets(&self) -> &'static [&'static str] {
        // This is the largest dimension for which a Hessian is formed. It was 128 in earlier builds.
        &[
            "/method/auto/trust/explicit_limit",
            "/method/trust/explicit_limit",
        ]
    }

    fn need(&self) -> Need {
        footprint(self.problem, self.options).need(&self.options.settings.method)
    }

    fn budget(&self) -> Budget {
        self.budget
    }

    fn course(&self) -> FitCourse {
        FitCourse::default()
    }

    fn run(&mut self, mut control: Control<'_>) -> Result<Outcome<Fitted>, Error> {
        control.store = control.store.filter(|_| self.resumable);
        let fitted = fit_with(self.problem, self.options, control);
        if let Some(error) = self.problem.failure() {
            return Err(error);
        }
        let fitted = fitted?;
        Ok(Outcome {
            status: fitted.fit.status.clone(),
            iterations: fitted.fit.iterations,
            seconds: fitted.fit.seconds,
            output: Some(fitted),
        })
    }

    fn complete(&self, made: &mut Finished<Self>) {
        // The history must include the part of the run before a resume.
        made.output.history = std::mem::take(&mut made.course.history);
        made.output.label(&self.coordinates);
    }

    fn evidence(&self, made: &Finished<Self>) -> Evidence {
        made.output.evidence()
    }

    fn summary(&self, made: &Finished<Self>, judged: Judgement) -> FitSummary {
        made.output.summary_of(judged)
    }

    fn files<'a>(
        &'a self,
        made: &'a Finished<Self>,
        _: &mut FitSummary,
        _: &dyn Clock,
    ) -> Vec<File<'a>> {
        let (fitted, about) = (&made.output, &self.about);
        let seed = fitted.settings.seed;
        let family = fitted.fit.best().family.to_string();
        let comments = fitted.csv_comments(about);
        let attributes = NetcdfAttributes {
            model: about.model.clone(),
            extra: vec![("family".into(), family), ("seed".into(), seed.to_string())],
        };
        let mut report_about = about.clone();
        report_about
            .exhibits
            .extend(variance_section(&made.course.variances));
        let refined = fitted.refined().is_some_and(|refined| refined.mixed());
        let regression = self.inputs.iter().find(|(name, _)| *name == REGRESSION);
        let build = Build {
            seed,
            simd: fitted.settings.simd,
            threads: self.options.threads,
            ..Build::default()
        };
        report_about
            .exhibits
            .extend(regression.and_then(|(_, kept)| section(kept, &fitted.sample.table, build)));
        let predictive = Predictive::of(&fitted.sample, self.data, !refined);
        report_about.predictive = match regression.is_some_and(|(_, kept)| is_of_prior(kept)) {
            true => predictive.of_prior(),
            false => predictive,
        };
        let table = &fitted.sample.table;
        let refined = fitted.encode_refined();
        let refined = refined.map(|bytes| File::of_bytes(Artefact::Refined.file_name(), bytes));
        let draws = File::new(Artefact::DrawsCsv.file_name(), move |path| {
            write_draws_csv(path, table, &comments)
        });
        let page = File::page(&fitted.report(&report_about));
        let roles = Roles {
            coordinates: self.coordinates.clone(),
            ..fitted.sample.roles(refined.is_none())
        };
        let netcdf = File::new(Artefact::DrawsNetcdf.file_name(), move |path| {
            write_draws_netcdf(path, table, &roles, &attributes, Some(self.data))
        });
        std::iter::once(File::approximation(fitted.encode_approximation()))
            .chain(refined)
            .chain([draws, page])
            .chain(NETCDF.then_some(netcdf))
            .collect()
    }
}
