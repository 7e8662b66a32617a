//! The fit job for auto-encoders.

use std::path::{Path, PathBuf};

use jensen_data::RunDir;
use jensen_neural::{
    Architecture, Autoencoder, BoundEstimate, LocalModel, Records, Selection, Temper, TensorSpec,
    TrainSettings, Trained, Trainer, WakeSleep,
};
use jensen_run::{Budget, Clock, Control, Identity, Outcome, Reason, Status, run as run_loop};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::data::VaeData;
use super::plain::{self, Scored};
use super::rows::{Apart, Parts, first, mean_log_jacobian, spread};
use super::{
    PictureFrame, Pictures, VaeCourse, VaeModel, VaeRequest, VaeSeconds, VaeSummary, mosaic,
    report_page,
};
use crate::Error;
use crate::job::{
    Around, Baseline, Done, Evidence, File, Finished, Job, Judgement, Need, Work, carry_out,
    folder, request,
};
use crate::units::shifted;

const COMMAND: &str = "vae";

const ARCHITECTURE: &str = "architecture.json";

const SAMPLES: &str = "samples.png";

const RECONSTRUCTIONS: &str = "reconstructions.png";

const MANIFOLD: &str = "manifold.png";

/// The maximum number of training records for estimating the final ELBO.
pub const SCORED: usize = 10_000;

/// The maximum amount by which the score of a fit may be lower than the score of the baseline, in nats per value. This
/// allowance corresponds to an error of half a percent in the density of every value.
const SLACK: f64 = 0.005;

const DRAWN: usize = 100;

const REBUILT: usize = 50;

/// The number of images in each row of a mosaic.
pub const COLUMNS: usize = 10;

const SIDE: usize = 20;

/// The stored request of a fit, with information about its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaeRun {
    /// The path of the data.
    pub data: PathBuf,
    /// The name of the file that contains the validation records, or the fraction of the data that is held out for
    /// validation.
    pub validation: Option<String>,
    /// The digest of the data.
    pub digest: String,
    /// The architecture of the networks.
    pub architecture: Architecture,
    /// The settings of the fit, with the instruction set that was chosen.
    pub flags: VaeRequest,
}

/// Opens the folder of an earlier fit.
///
/// # Errors
/// Fails if the folder does not contain an auto-encoder or if its request is damaged.
pub fn open_vae(path: &Path) -> Result<(RunDir, VaeRun), Error> {
    let run = folder::open(path, COMMAND)?;
    let stored = folder::read_request(&run)?;
    Ok((run, stored))
}

/// Reads the networks that a finished fit has stored.
///
/// # Errors
/// Fails if the fit has not finished or if the file is damaged.
pub fn vae_model(run: &RunDir) -> Result<VaeModel, Error> {
    let encoded = folder::approximation(run, "jensen vae fit")?;
    VaeModel::decode(&encoded).map_err(|error| folder::bad_approximation(run, error))
}

/// A fit of an auto-encoder that is ready to be run by [`carry_out`].
pub struct VaeJob<'a> {
    data: &'a VaeData,
    train: &'a Selection<'a>,
    validation: Option<&'a dyn Records>,
    settings: TrainSettings,
    training: Training<'a>,
    per_iteration: f64,
    open_seconds: f64,
}

enum Training<'a> {
    Bound(Box<Trainer<'a>>),
    WakeSleep(Box<WakeSleep<'a>>),
}

/// The result of a fit of an auto-encoder.
pub struct VaeMade {
    /// The networks with their fitted weights.
    pub model: VaeModel,
    training: BoundEstimate,
    validated: Option<BoundEstimate>,
    weight_divergence: f64,
    active_units: usize,
    plain: Option<Scored>,
    pictures: Pictures,
    evaluate_seconds: f64,
}

/// Trains the networks on the data. `open_seconds` is the time in seconds that was needed to open the data.
///
/// # Errors
/// Fails if a setting is invalid. Also returns the errors of [`carry_out`].
pub fn fit_vae<T>(
    data: &VaeData,
    open_seconds: f64,
    around: Around<'_>,
    then: impl FnOnce(Done<VaeJob<'_>>) -> T,
) -> Result<T, Error> {
    let flags = &data.run.flags;
    let parts = Parts::new(data, flags.seed())?;
    let (train, validation) = (parts.train(), parts.validation());
    let validation = validation.as_ref().map(|v| v as &dyn Records);
    let settings = flags.settings(train.indices.len())?;
    need(data, &settings).check(around.memory_limit)?;
    let (encoder, decoder) = (data.architecture.encoder(), data.architecture.decoder());
    let simd = flags.simd()?;
    let trainer = Trainer::new(
        &encoder,
        &decoder,
        settings.clone(),
        &train,
        validation,
        simd,
    )
    .map_err(Error::input)?;
    let per_iteration = trainer.records_per_iteration();
    let training = match flags.wake_sleep() {
        false => Training::Bound(Box::new(trainer)),
        true => {
            let sleep = WakeSleep::new(
                &data.architecture,
                settings.clone(),
                &train,
                validation,
                simd,
            );
            Training::WakeSleep(Box::new(sleep.map_err(Error::input)?))
        }
    };
    let job = VaeJob {
        data,
        train: &train,
        validation,
        settings,
        per_iteration,
        training,
        open_seconds,
    };
    carry_out(job, around).map(then)
}

fn need(data: &VaeData, settings: &TrainSettings) -> Need {
    let VaeData {
        rows,
        architecture,
        apart,
        ..
    } = data;
    let weights = architecture.weights() as u64;
    let of_decoder: usize = architecture
        .decoder()
        .specs()
        .iter()
        .map(TensorSpec::len)
        .sum();
    let learned = match settings.full_bayes {
        true => weights + of_decoder as u64,
        false => weights,
    };
    let lanes = settings.batch.max(500) as u64 * settings.samples as u64;
    let layers = (2 * architecture.values() + 6 * architecture.observation.width) as u64;
    let held = rows.held_bytes()
        + match apart {
            Apart::File(rows) => rows.held_bytes(),
            _ => 0,
        };
    Need {
        what: format!(
            "a fit of networks of {weights} weights to {} records",
            rows.rows()
        ),
        // This rough estimate includes the weights with the copies that the optimiser and a checkpoint need, the values
        // and gradients of every layer for a minibatch, and data that are not memory-mapped.
        bytes: learned * (5 * 4 + 6 * 8) + lanes * layers * 4 * 2 + held as u64 + (64 << 20),
        advice: "use fewer hidden units, smaller batches or fewer samples, store the data uncompressed as NPY \
                 or IDX, or raise the limit (--memory-limit)"
            .to_owned(),
    }
}

impl VaeJob<'_> {
    fn flags(&self) -> &VaeRequest {
        &self.data.run.flags
    }

    /// Returns the mean log density of the records in the units of the data, minus their mean log density in the units
    /// of the networks.
    fn log_jacobian(&self, records: &dyn Records) -> f64 {
        let missing = self.data.architecture.observation.missing;
        mean_log_jacobian(&self.data.log_scales(), records, missing)
    }

    fn made(&self, trained: Trained, clock: &dyn Clock) -> Result<VaeMade, Error> {
        let begun = clock.seconds();
        let model = VaeModel {
            architecture: self.data.architecture.clone(),
            extents: self.data.extents.clone(),
            units: self.data.units.clone(),
            layout: self.data.layout.clone(),
            names: self.data.rows.columns().to_vec(),
            tensors: trained.tensors,
            log_sds: trained.log_sds,
        };
        let mut networks = model
            .autoencoder(self.flags().simd()?)
            .map_err(Error::input)?;
        let seed = self.settings.seed;
        // The estimates are converted to densities in the units of the data.
        let mut bound = |records: &dyn Records| {
            let found = networks.bound(records, 1, seed).map_err(Error::input)?;
            let log_jacobian = self.log_jacobian(records);
            Ok::<_, Error>(BoundEstimate {
                bound: found.bound + log_jacobian,
                likelihood: found.likelihood + log_jacobian,
                ..found
            })
        };
        let sample = spread(self.train, SCORED);
        let mut training = bound(&sample)?;
        let validated = self.validation.map(&mut bound).transpose()?;
        let weight_divergence = networks.weight_divergence();
        training.bound -= weight_divergence / self.train.len() as f64;
        let active_units = networks.active_units(&sample).active;
        let shown = self.validation.unwrap_or(self.train);
        let scored = match self.validation {
            Some(records) => spread(records, SCORED),
            None => spread(self.train, SCORED),
        };
        let plain = plain::best(&sample, &scored, &self.data.architecture.observation)
            .map(|(name, score)| (name, score + self.log_jacobian(&scored)));
        let pictures = pictures(&model, &mut networks, shown, seed);
        Ok(VaeMade {
            model,
            training,
            validated,
            weight_divergence,
            active_units,
            plain,
            pictures,
            evaluate_seconds: clock.seconds() - begun,
        })
    }
}

impl Job for VaeJob<'_> {
    type Request = VaeRun;
    type Course = VaeCourse;
    type Output = VaeMade;
    type Summary = VaeSummary;

    fn command(&self) -> &'static str {
        COMMAND
    }

    fn own_files(&self) -> &'static [&'static str] {
        &[ARCHITECTURE, SAMPLES, RECONSTRUCTIONS, MANIFOLD]
    }

    fn request(&self) -> &VaeRun {
        &self.data.run
    }

    fn check_sources(&self) -> Result<(), Error> {
        self.data.rows.check_unchanged()?;
        match &self.data.apart {
            Apart::File(rows) => Ok(rows.check_unchanged()?),
            Apart::None | Apart::Share(_) => Ok(()),
        }
    }

    fn identity(&self) -> Identity {
        let mut settings =
            json!({ "architecture": self.data.architecture, "training": self.settings });
        if let Some(layout) = &self.data.layout {
            settings["columns"] = json!(layout.columns());
        }
        Identity {
            algorithm: match self.flags().wake_sleep() {
                false => COMMAND.to_owned(),
                true => format!("{COMMAND} wake-sleep"),
            },
            settings,
            seed: self.settings.seed,
            model_hash: String::new(),
            data_hash: format!("{}{}", self.data.rows.digest(), self.data.apart.digest()),
            simd: self.flags().simd.clone().unwrap_or_default(),
        }
    }

    fn budgets(&self) -> &'static [&'static str] {
        &["/training/patience"]
    }

    fn need(&self) -> Need {
        need(self.data, &self.settings)
    }

    fn budget(&self) -> Budget {
        // The number of iterations is rounded up only once, after all passes. Rounding up in each pass could turn a
        // pass of one iteration into two iterations.
        let iterations = self.flags().epochs() * self.train.len() as f64 / self.per_iteration;
        Budget {
            max_seconds: self.flags().max_seconds,
            ..Budget::iterations((iterations - 1e-6).ceil().max(1.0) as u64)
        }
    }

    fn can_go_on_from(&self, stored: &Identity) -> Result<(), Error> {
        let present = self.identity();
        if stored.settings.get("columns") != present.settings.get("columns") {
            return Err(Error::setting(
                "the checkpoint belongs to columns with other distributions (--decoder, --columns, --given), which cannot \
                 change in a resumed run: remove the flag, or start a new run with --out",
            ));
        }
        for (what, path) in [
            ("architecture", "/architecture"),
            ("optimiser", "/training/optimiser/rule"),
            (
                "treatment of the weights (--full-vb)",
                "/training/full_bayes",
            ),
        ] {
            let (old, new) = (
                stored.settings.pointer(path),
                present.settings.pointer(path),
            );
            if old != new {
                let word = |x: Option<&Value>| x.map_or("nothing".to_owned(), ToString::to_string);
                return Err(Error::Setting(format!(
                    "the checkpoint has weights of another {what} ({}, now {}), which cannot change in a \
                     resumed run: remove the flag, or start a new run with --out",
                    word(old),
                    word(new)
                )));
            }
        }
        Ok(())
    }

    fn course(&self) -> VaeCourse {
        VaeCourse::default()
    }

    fn run(&mut self, control: Control<'_>) -> Result<Outcome<VaeMade>, Error> {
        let (clock, identity) = (control.clock, self.identity());
        let by = self.log_jacobian(self.train);
        // Validation records have other missing values than training records, so they need their own correction.
        let validation = self
            .validation
            .map_or(by, |records| self.log_jacobian(records));
        let outcome = shifted(
            control,
            by,
            &[("bound", by), ("validation_bound", validation)],
            |control| match &mut self.training {
                Training::Bound(trainer) => run_loop(&mut **trainer, &identity, control),
                Training::WakeSleep(sleep) => run_loop(&mut **sleep, &identity, control),
            },
        )?;
        let made = outcome.output.map(|trained| self.made(trained, clock));
        Ok(Outcome {
            output: made.transpose()?,
            status: outcome.status,
            iterations: outcome.iterations,
            seconds: outcome.seconds,
        })
    }

    fn evidence(&self, made: &Finished<Self>) -> Evidence {
        let (settings, passes) = (&self.settings, made.course.passes);
        let work = Work::Planned {
            iterations: self.budget().max_iterations,
            made: format!("completed all epochs: {passes:.1}"),
        };
        let mut evidence = Evidence {
            temperature: settings.temper.temperature(passes),
            cooling: match settings.temper {
                Temper::Anneal { passes, .. } => format!(
                    "Double its length with `--epochs {}`, and with `--resume` if it is stored.",
                    2.0 * passes
                ),
                _ => "Let the schedule end at temperature 1, and run all of its epochs.".to_owned(),
            },
            ..Evidence::new(made.status.clone(), work)
        };
        if matches!(made.status, Status::Diverged { .. }) {
            evidence.advice = Some("Jensen keeps the last weights with a finite bound.");
        }
        if passes < settings.warm_up - 1e-9 {
            evidence.against.against(Reason::new(
                format!(
                    "the run ended after {passes:.1} of {} epochs of warm-up",
                    settings.warm_up
                ),
                "Run more epochs, or use fewer for the warm-up (--warm-up).",
            ));
        }
        let output = &made.output;
        let bounds = [
            Some(output.training.bound),
            output.validated.map(|v| v.bound),
        ];
        if bounds.iter().flatten().any(|bound| !bound.is_finite()) {
            evidence.against.against(Reason::new(
                "a bound is not finite",
                "Use a smaller step size (--step-size).",
            ));
        }
        evidence.baseline = output.plain.map(|(model, score)| {
            // The divergence of the posterior of the weights is not included, because it does not measure how well the
            // model explains records. The baseline does not pay for its parameters either.
            let explained =
                output.training.bound + output.weight_divergence / self.train.len() as f64;
            let fit = output.validated.map_or(explained, |v| v.bound);
            let slack = SLACK * self.data.architecture.observation.width as f64;
            Baseline {
                model: model.to_owned(),
                score,
                fit,
                least: score - slack,
                unit: match output.validated {
                    Some(_) => "ELBO in nats per validation record".to_owned(),
                    None => "ELBO in nats per training record".to_owned(),
                },
                advice: "Run more epochs (--epochs), change the optimiser (--optimizer adam, --step-size), or use \
                 smaller networks (--hidden, --latent)."
                    .to_owned(),
            }
        });
        let names = self.data.names();
        evidence.notes.extend(self.data.units.notes(&names));
        if let Some(layout) = &self.data.layout {
            evidence.notes.extend(layout.notes(self.data.rows.rows()));
        }
        if self.data.architecture.observation.missing {
            let (missing, all) = (self.data.missing(), self.data.values());
            evidence.notes.push(format!(
                "{missing} of {all} values are missing: the bounds are those of the other values"
            ));
        }
        // This result is correct if the records have no structure, so it is not a reason against the fit.
        if output.active_units == 0 {
            evidence.notes.push(
                "no latent value is active: if the records have structure, run more epochs, warm up \
                 (--warm-up), or start from larger weights (--initial-sd)"
                    .to_owned(),
            );
        }
        evidence
    }

    fn summary(&self, made: &Finished<Self>, judgement: Judgement) -> VaeSummary {
        let finite = |x: f64| x.is_finite().then_some(x);
        let (course, output) = (&made.course, &made.output);
        let (training, validated) = (&output.training, output.validated);
        let speed = course.speed();
        let records = self.train.len() as f64;
        VaeSummary {
            judgement,
            bound: finite(training.bound),
            bound_se: finite(training.standard_error),
            validation_bound: validated.and_then(|v| finite(v.bound)),
            validation_bound_se: validated.and_then(|v| finite(v.standard_error)),
            likelihood: finite(training.likelihood),
            divergence: finite(training.divergence),
            elbo: finite(records * training.bound),
            active_units: output.active_units,
            epochs: course.passes,
            iterations: made.iterations,
            samples: course.samples(),
            seconds_per_epoch: speed.map(|speed| self.train.len() as f64 / speed),
            samples_per_second: speed,
            temperature: self.settings.temper.temperature(course.passes),
            records: self.train.len(),
            validation_records: self.validation.map_or(0, |records| records.len()),
            columns: self
                .data
                .layout
                .as_ref()
                .map_or(Vec::new(), |layout| layout.columns().to_vec()),
            architecture: self.data.architecture.clone(),
            weights: self.data.architecture.weights(),
            full_vb: self.settings.full_bayes,
            seconds: VaeSeconds {
                open: self.open_seconds,
                fit: made.seconds,
                evaluate: output.evaluate_seconds,
            },
            missing_values: self.data.missing(),
            seed: self.settings.seed,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            history: course.history(),
            elbo_se: finite(records * training.standard_error),
            weight_divergence: self
                .settings
                .full_bayes
                .then_some(output.weight_divergence)
                .and_then(finite),
        }
    }

    fn files<'a>(
        &'a self,
        made: &'a Finished<Self>,
        summary: &mut VaeSummary,
        _: &dyn Clock,
    ) -> Vec<File<'a>> {
        let VaeMade {
            model, pictures, ..
        } = &made.output;
        let shown = [
            (SAMPLES, &pictures.samples),
            (RECONSTRUCTIONS, &pictures.reconstructions),
            (MANIFOLD, &pictures.manifold),
        ];
        let page = report_page(
            summary,
            &made.course.curves(),
            pictures,
            self.data.rows.source(),
            request::listed(self.flags()),
        );
        [
            File::approximation(model.encode()),
            File::of_bytes(ARCHITECTURE, model.description()),
        ]
        .into_iter()
        .chain(
            shown
                .into_iter()
                .filter_map(|(name, image)| Some(File::of_bytes(name, image.as_ref()?.to_png()))),
        )
        .chain([File::page(&page)])
        .collect()
    }
}

fn pictures(
    model: &VaeModel,
    networks: &mut Autoencoder,
    records: &dyn Records,
    seed: u64,
) -> Pictures {
    let Some(size) = model.image() else {
        return Pictures::default();
    };
    let frame = PictureFrame::new(size, model.architecture.observation.likelihood);
    let shown = |records: Vec<f32>| -> Vec<f32> {
        model.rows(&records).iter().map(|x| *x as f32).collect()
    };
    let drawn = shown(networks.sample(DRAWN, seed).mean);
    let pairs = shown(beside(networks, records));
    Pictures {
        samples: mosaic(&drawn, frame, COLUMNS),
        reconstructions: mosaic(&pairs, frame, COLUMNS),
        manifold: (model.architecture.latent == 2)
            .then(|| mosaic(&shown(networks.manifold(SIDE)), frame, SIDE))
            .flatten(),
    }
}

/// Returns the first records and their reconstructions for a mosaic. In the mosaic, each row of records is above the
/// row of its reconstructions.
pub fn beside(networks: &mut Autoencoder, records: &dyn Records) -> Vec<f32> {
    let shown = first(records, REBUILT);
    let width = shown.width();
    let mut pairs = Vec::new();
    let rebuilt = networks.reconstruct(&shown);
    for (row, means) in rebuilt.chunks(COLUMNS * width).enumerate() {
        let count = means.len() / width;
        for i in 0..count {
            let start = pairs.len();
            pairs.resize(start + width, 0.0);
            shown.read(row * COLUMNS + i, &mut pairs[start..]);
        }
        // If the last row is incomplete, it is padded.
        pairs.resize(
            pairs.len() + (COLUMNS.min(shown.len()) - count) * width,
            0.0,
        );
        pairs.extend_from_slice(means);
    }
    pairs
}
