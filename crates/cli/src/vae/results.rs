//! What a fit of an auto-encoder says at its end: `fit.json`, the page, pictures, the table.

use jensen::data::{Artefact, RunDir, write_atomic_bytes};
use jensen::neural::{
    Autoencoder, Bound, Frame, Pictures, Records, VaeModel, VaeSeconds, VaeSummary, mosaic, sheet,
};
use jensen::run::Status;

use super::data::{first, spread};
use super::fit::{Finished, Plan};
use super::store;
use crate::failure::Failure;
use crate::run::folder;

/// Training records whose bound is estimated at the end.
const SCORED: usize = 10_000;

/// Drawn records in a picture, in rows of [`COLUMNS`].
const DRAWN: usize = 100;

/// Records beside their reconstructions in a picture.
const REBUILT: usize = 50;

/// Pictures in a row.
pub const COLUMNS: usize = 10;

/// Pictures along each side of the latent plane.
const SIDE: usize = 20;

/// The summary of a fit.
pub fn judge(
    plan: &Plan,
    finished: &Finished,
    networks: &mut Autoencoder,
    train: &dyn Records,
    validation: Option<&dyn Records>,
) -> Result<VaeSummary, Failure> {
    let (outcome, gathered) = (&finished.outcome, &finished.gathered);
    let settings = plan.flags.settings(train.len())?;
    let mut bound = |records: &dyn Records| -> Result<Bound, Failure> {
        let bound = networks.bound(records, 1, settings.seed);
        bound.map_err(|error| Failure::input(error.to_string()))
    };
    let sample = spread(train, SCORED);
    let training = bound(&sample)?;
    let validated = validation.map(&mut bound).transpose()?;
    let finite = |x: f64| x.is_finite().then_some(x);
    let converged = outcome.status.is_converged();
    let done = outcome.iterations >= finished.planned
        && matches!(outcome.status, Status::BudgetReached { .. });
    let passes = gathered.passes;
    let temperature = settings.temper.temperature(passes);
    let mut warnings = Vec::new();
    if temperature > 1.0 + 1e-9 {
        warnings.push(format!(
            "the run ended at the temperature {temperature:.2}: make more epochs, or cool down in fewer (--temper)"
        ));
    }
    if passes < settings.warm_up - 1e-9 {
        warnings.push(format!(
            "the run ended after {passes:.1} of {} epochs of warm-up: make more epochs, or warm up in fewer (--warm-up)",
            settings.warm_up
        ));
    }
    let bounds = [Some(training.bound), validated.map(|v| v.bound)];
    if bounds.iter().flatten().any(|bound| !bound.is_finite()) {
        warnings.push(
            "a bound is not finite: use a smaller step size, or check the scale of the data"
                .to_owned(),
        );
    }
    let trusted = (converged || done) && warnings.is_empty();
    let active_units = networks.active_units(&sample).active;
    // Right where there is nothing to say, so it does not stand against the fit.
    if active_units == 0 {
        warnings.push(
            "no latent value says anything about the records: if they have structure, make more epochs, warm up (--warm-up), or \
             start from larger weights (--initial-sd)"
                .to_owned(),
        );
    }
    let status = match &outcome.status {
        status if converged => status.to_string(),
        _ if done => format!(
            "all epochs are made: {passes:.1}, in {} iterations",
            outcome.iterations
        ),
        status @ Status::Diverged { .. } => {
            format!("{status}. The last good weights are kept.")
        }
        status => format!("{status}. {}", status.advice()),
    };
    let speed = gathered.speed();
    Ok(VaeSummary {
        status,
        converged,
        trusted,
        bound: finite(training.bound),
        bound_se: finite(training.standard_error),
        validation_bound: validated.and_then(|v| finite(v.bound)),
        validation_bound_se: validated.and_then(|v| finite(v.standard_error)),
        likelihood: finite(training.likelihood),
        divergence: finite(training.divergence),
        elbo: gathered.elbo.and_then(finite),
        active_units,
        epochs: passes,
        iterations: outcome.iterations,
        samples: gathered.samples(),
        seconds_per_epoch: speed.map(|speed| train.len() as f64 / speed),
        samples_per_second: speed,
        temperature,
        records: train.len(),
        validation_records: validation.map_or(0, |records| records.len()),
        architecture: plan.architecture.clone(),
        weights: plan.architecture.weights(),
        full_vb: settings.full_bayes,
        seconds: VaeSeconds {
            open: plan.open_seconds,
            fit: outcome.seconds,
            evaluate: 0.0,
        },
        seed: settings.seed,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        warnings,
        history: gathered.history(),
    })
}

/// Pictures of a model of images: of draws, of records with their reconstructions, and of a latent plane.
pub fn pictures(
    model: &VaeModel,
    networks: &mut Autoencoder,
    records: &dyn Records,
    seed: u64,
) -> Pictures {
    let Some(size) = model.image() else {
        return Pictures::default();
    };
    let frame = Frame::new(size, model.architecture.likelihood);
    let drawn = networks.sample(DRAWN, seed).mean;
    let pairs = beside(networks, records);
    Pictures {
        samples: mosaic(&drawn, frame, COLUMNS),
        reconstructions: mosaic(&pairs, frame, COLUMNS),
        manifold: (model.architecture.latent == 2)
            .then(|| mosaic(&networks.manifold(SIDE), frame, SIDE))
            .flatten(),
    }
}

/// The first records in rows, each row above its reconstructions.
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
        // A last row that is not full ends as it began.
        pairs.resize(
            pairs.len() + (COLUMNS.min(shown.len()) - count) * width,
            0.0,
        );
        pairs.extend_from_slice(means);
    }
    pairs
}

/// Writes what a run leaves.
pub fn write(
    run: &RunDir,
    plan: &Plan,
    finished: &Finished,
    model: &VaeModel,
    summary: &VaeSummary,
    pictures: &Pictures,
) -> Result<(), Failure> {
    store::write_model(run, model)?;
    let shown = [
        (store::SAMPLES, &pictures.samples),
        (store::RECONSTRUCTIONS, &pictures.reconstructions),
        (store::MANIFOLD, &pictures.manifold),
    ];
    for (name, image) in shown {
        if let Some(image) = image {
            folder::write(run, name, &image.to_png())?;
        }
    }
    let page = sheet(
        summary,
        &finished.gathered.curves(),
        pictures,
        plan.rows.source(),
        plan.flags.listed(),
    );
    let write = |artefact: Artefact, text: &str| {
        write_atomic_bytes(&run.artefact(artefact), text.as_bytes()).map_err(Failure::output)
    };
    write(Artefact::Report, &jensen::report::render_sheet(&page))?;
    // Last: who sees a fit.json finds everything else beside it.
    write(Artefact::Fit, &summary.to_json().map_err(Failure::output)?)
}

/// The summary for people.
pub fn table(summary: &VaeSummary) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| text += &format!("{name:<11} {value}\n");
    let bound = |bound: Option<f64>, se: Option<f64>, records: String| match (bound, se) {
        (Some(bound), Some(se)) => format!("{bound:.2} ± {se:.2} nats/record over {records}"),
        _ => "not finite".to_owned(),
    };
    line(
        "bound",
        bound(
            summary.bound,
            summary.bound_se,
            format!("{} training records", summary.records.min(SCORED)),
        ),
    );
    if summary.validation_records > 0 {
        line(
            "validation",
            bound(
                summary.validation_bound,
                summary.validation_bound_se,
                format!("{} records", summary.validation_records),
            ),
        );
    }
    line(
        "latent",
        format!(
            "{} of {} values active",
            summary.active_units, summary.architecture.latent
        ),
    );
    if let (Some(speed), Some(epoch)) = (summary.samples_per_second, summary.seconds_per_epoch) {
        line(
            "speed",
            format!("{speed:.0} records/s, {epoch:.2} s an epoch"),
        );
    }
    line("status", summary.status.clone());
    for warning in &summary.warnings {
        line("", format!("- {warning}"));
    }
    text
}
