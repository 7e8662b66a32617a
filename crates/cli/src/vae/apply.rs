//! `jensen vae sample`, `encode`, `reconstruct`, `evaluate` and `export`, which use the folder of a fit.

use std::ops::Range;
use std::path::Path;

use jensen::data::{RowWriter, Rows, write_atomic_bytes};
use jensen::job::words;
use jensen::vae::{
    Autoencoder, COLUMNS, LogMarginal, PictureFrame, Records, Selection, VaeModel, VaeNetwork,
    VaeRun, beside, first, mosaic, open_vae, vae_model,
};
use serde_json::{Value, json};

use super::args::{ApplyArgs, EvaluateArgs, ExportArgs, ReconstructArgs, SampleArgs};
use crate::failure::{CommandResult, Exit, Failure, print};
use crate::rows::{Destination, no_picture, numbered, write_rows};
use crate::terminal::start_threads;

const CHUNK: usize = 4000;

/// With at least this many latent dimensions, the marginal likelihood is not estimated by the method in appendix D of
/// the paper.
const TOO_MANY: usize = 5;

struct Fitted {
    stored: VaeRun,
    model: VaeModel,
    networks: Autoencoder,
}

impl Fitted {
    fn open(dir: &Path, threads: Option<usize>, simd: Option<&str>) -> Result<Self, Failure> {
        start_threads(threads)?;
        let (folder, stored) = open_vae(dir)?;
        let model = vae_model(&folder)?;
        if model.architecture != stored.architecture {
            return Err(Failure::input(format!(
                "the weights in `{}` have another architecture than run.json: they belong to another fit",
                dir.display()
            )));
        }
        let simd = words::simd(simd.or(stored.flags.simd.as_deref()))?;
        let networks = model
            .autoencoder(simd)
            .map_err(|error| Failure::input(error.to_string()))?;
        Ok(Self {
            stored,
            model,
            networks,
        })
    }

    fn rows(&self, path: &Path) -> Result<Rows, Failure> {
        Ok(self.model.open_rows(path)?)
    }

    fn frame(&self, path: &Path) -> Result<PictureFrame, Failure> {
        match self.model.image() {
            Some(size) => {
                let likelihood = self.model.architecture.observation.likelihood;
                Ok(PictureFrame::new(size, likelihood))
            }
            None => Err(no_picture(
                path,
                "the records of this fit have no image size (fit with --image WxH)",
            )),
        }
    }
}

fn draw(
    path: &Path,
    model: &VaeModel,
    frame: PictureFrame,
    records: &[f32],
    columns: usize,
) -> Result<(), Failure> {
    let shown: Vec<f32> = model.rows(records).iter().map(|x| *x as f32).collect();
    let image = mosaic(&shown, frame, columns)
        .ok_or_else(|| no_picture(path, "the picture would have more than 16 million pixels"))?;
    write_atomic_bytes(path, &image.to_png()).map_err(Failure::output)
}

type Taking<'a> = &'a mut dyn FnMut(&[f32]) -> std::io::Result<()>;

/// Writes `count` records in the units of the data. `fill` supplies the records in the units of the networks, and
/// `complete` changes the rows with these numbers before they are written.
fn write_records(
    destination: &Destination<'_>,
    model: &VaeModel,
    count: usize,
    complete: &dyn Fn(Range<usize>, &mut [f64]),
    fill: &mut dyn FnMut(Taking<'_>) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let names = model.names();
    if model.layout.is_none() && model.units.change_nothing() {
        return write_rows(destination, count, &names, &mut |out: &mut RowWriter<
            '_,
            f32,
        >| {
            fill(&mut |records| out.write(records))
        });
    }
    write_rows(destination, count, &names, &mut |out: &mut RowWriter<
        '_,
        f64,
    >| {
        let mut first = 0;
        fill(&mut |records| {
            let mut rows = model.rows(records);
            let count = rows.len() / model.units.columns();
            complete(first..first + count, &mut rows);
            first += count;
            write_table(out, model, &rows)
        })
    })
}

/// Writes rows of a table with words in place of their numbers.
fn write_table(
    out: &mut RowWriter<'_, f64>,
    model: &VaeModel,
    rows: &[f64],
) -> std::io::Result<()> {
    match &model.layout {
        Some(layout) => rows
            .chunks_exact(model.units.columns())
            .try_for_each(|row| out.write_worded(row, &layout.words(row))),
        None => out.write(rows),
    }
}

pub fn sample(args: &SampleArgs) -> CommandResult {
    let mut fit = Fitted::open(&args.dir, args.out.threads, args.out.simd.as_deref())?;
    let destinations = Destination::all(&args.out.out)?;
    let width = fit.model.architecture.observation.width;
    let given = match &fit.model.layout {
        Some(layout) => {
            let (values, row) = layout.given(&args.given)?;
            let set = fit.networks.set_given(values);
            set.map_err(|error| Failure::input(error.to_string()))?;
            row
        }
        None if args.given.is_empty() => Vec::new(),
        None => {
            return Err(Failure::usage(
                "--given: this fit does not condition on any column".to_owned(),
            ));
        }
    };
    let (records, columns) = match args.manifold {
        Some(side) => (fit.networks.manifold(side as usize), side as usize),
        None => {
            let seed = args.seed.unwrap_or(fit.stored.flags.seed());
            let samples = fit.networks.sample(args.count as usize, seed);
            let columns = (args.count as f64).sqrt().ceil() as usize;
            (
                if args.observations {
                    samples.values
                } else {
                    samples.mean
                },
                columns,
            )
        }
    };
    let model = &fit.model;
    for destination in &destinations {
        match destination {
            Destination::Picture(path) => draw(path, model, fit.frame(path)?, &records, columns)?,
            destination => write_records(
                destination,
                model,
                records.len() / width,
                &|_, rows| {
                    for row in rows.chunks_mut(given.len().max(1)) {
                        fill_gaps(row, &given);
                    }
                },
                &mut |take| take(&records),
            )?,
        }
    }
    Ok(Exit::Done)
}

fn in_chunks(
    records: &dyn Records,
    mut each: impl FnMut(&Selection<'_>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    for first in (0..records.len()).step_by(CHUNK) {
        each(&Selection {
            records,
            indices: (first..(first + CHUNK).min(records.len())).collect(),
        })?;
    }
    Ok(())
}

pub fn encode(args: &ApplyArgs) -> CommandResult {
    let mut fit = Fitted::open(&args.dir, args.out.threads, args.out.simd.as_deref())?;
    let destinations = Destination::all(&args.out.out)?;
    let rows = fit.rows(&args.data)?;
    let model = fit.model;
    let records = model.records(&rows);
    let latent = model.architecture.latent;
    let names = [numbered("mean", latent), numbered("sd", latent)].concat();
    for destination in &destinations {
        let networks = &mut fit.networks;
        write_rows(
            destination,
            records.len(),
            &names,
            &mut |out: &mut RowWriter<'_>| {
                in_chunks(&records, |chunk| {
                    let codes = networks.encode(chunk);
                    let both = codes
                        .mean
                        .chunks(latent)
                        .zip(codes.log_variance.chunks(latent));
                    let lines: Vec<f32> = both
                        .flat_map(|(means, log_variances)| {
                            let sds = log_variances.iter().map(|v| (0.5 * v).exp());
                            means.iter().copied().chain(sds)
                        })
                        .collect();
                    out.write(&lines)
                })
            },
        )?;
    }
    Ok(Exit::Done)
}

/// Replaces NaN by the values of `other`.
fn fill_gaps(row: &mut [f64], other: &[f64]) {
    let gaps = row.iter_mut().zip(other).filter(|(x, _)| x.is_nan());
    gaps.for_each(|(x, other)| *x = *other);
}

/// Replaces means by the values of the data. With `impute`, every value that is present replaces its mean. Otherwise, only
/// the given columns are filled in, because the model does not predict them.
fn keep_present(
    rows: &Rows,
    model: &VaeModel,
    indices: impl Iterator<Item = usize>,
    means: &mut [f64],
    impute: bool,
) {
    let mut row = vec![0.0; rows.width()];
    for (means, index) in means.chunks_mut(rows.width()).zip(indices) {
        rows.read_exact(index, &mut row);
        if let Some(layout) = &model.layout {
            layout.name(&mut row);
        }
        if !impute {
            fill_gaps(means, &row);
            continue;
        }
        let pairs = means.iter_mut().zip(&row).filter(|(_, x)| !x.is_nan());
        pairs.for_each(|(mean, x)| *mean = *x);
    }
}

pub fn reconstruct(args: &ReconstructArgs) -> CommandResult {
    let (args, impute) = (&args.apply, args.impute);
    let mut fit = Fitted::open(&args.dir, args.out.threads, args.out.simd.as_deref())?;
    let destinations = Destination::all(&args.out.out)?;
    let rows = fit.rows(&args.data)?;
    let model = fit.model.clone();
    let records = model.records(&rows);
    for destination in &destinations {
        if let Destination::Picture(path) = destination {
            let frame = fit.frame(path)?;
            let pairs = beside(&mut fit.networks, &records);
            draw(path, &model, frame, &pairs, COLUMNS.min(records.len()))?;
            continue;
        }
        let networks = &mut fit.networks;
        if impute {
            write_rows(
                destination,
                records.len(),
                &model.names(),
                &mut |out: &mut RowWriter<'_, f64>| {
                    in_chunks(&records, |chunk| {
                        let mut means = model.rows(&networks.reconstruct(chunk));
                        let indices = chunk.indices.iter().copied();
                        keep_present(&rows, &model, indices, &mut means, true);
                        write_table(out, &model, &means)
                    })
                },
            )?;
            continue;
        }
        write_records(
            destination,
            &model,
            records.len(),
            &|indices, means| keep_present(&rows, &model, indices, means, false),
            &mut |take| in_chunks(&records, |chunk| take(&networks.reconstruct(chunk))),
        )?;
    }
    Ok(Exit::Done)
}

/// Returns a JSON object that contains an estimate under the key `name`, its errors, and the fields `more`. Returns
/// null if there is no estimate.
fn fields(name: &str, estimate: &Option<LogMarginal>, more: Value) -> Value {
    let Some(estimate) = estimate else {
        return Value::Null;
    };
    let mut fields = json!({
        name: estimate.mean,
        "se": estimate.standard_error,
        "monte_carlo_se": estimate.monte_carlo_error,
        "records": estimate.records.len(),
    });
    if let (Value::Object(fields), Value::Object(more)) = (&mut fields, more) {
        fields.extend(more);
    }
    fields
}

fn in_words(estimate: &LogMarginal) -> String {
    format!(
        "{:.3} ± {:.3} nats/record over {} records (± {:.3} from the draws)",
        estimate.mean,
        estimate.standard_error,
        estimate.records.len(),
        estimate.monte_carlo_error
    )
}

pub fn evaluate(args: &EvaluateArgs) -> CommandResult {
    let mut fit = Fitted::open(&args.dir, args.threads, args.simd.as_deref())?;
    let rows = fit.rows(&args.data)?;
    let model = fit.model;
    let records = model.records(&rows);
    // The densities refer to rows in the units of the data.
    let log_jacobians = model.log_jacobians(&records);
    let log_jacobian = log_jacobians.iter().sum::<f64>() / records.len() as f64;
    let moved = |estimate: LogMarginal| estimate.moved(&log_jacobians);
    let seed = args.seed.unwrap_or(fit.stored.flags.seed());
    let some = match args.records {
        0 => records.len(),
        count => records.len().min(count as usize),
    };
    let some = first(&records, some);
    let latent = model.architecture.latent;
    let failed = |error: jensen::graph::Unsupported| Failure::input(error.to_string());
    let networks = &mut fit.networks;
    let bound = networks
        .bound(&records, args.samples as usize, seed)
        .map_err(failed)?;
    let (lower, likelihood) = (bound.bound + log_jacobian, bound.likelihood + log_jacobian);
    let importance = match args.importance {
        0 => None,
        draws => Some(
            networks
                .importance_bound(&some, draws as usize, seed)
                .map(moved)
                .map_err(failed)?,
        ),
    };
    let marginal = (latent < TOO_MANY && !args.no_marginal)
        .then(|| networks.marginal_likelihood(&some, &Autoencoder::paper_marginal(), seed))
        .transpose()
        .map_err(failed)?
        .map(moved);
    let active = networks.active_units(&records);
    if args.json {
        let report = json!({
            "records": records.len(),
            "bound": lower,
            "bound_se": bound.standard_error,
            "likelihood": likelihood,
            "divergence": bound.divergence,
            "importance": fields("bound", &importance, json!({ "draws": args.importance })),
            "marginal": fields("log_likelihood", &marginal, json!({})),
            "missing_values": rows.missing(),
            "active_units": active.active,
            "latent_variances": active.variance,
            "seed": seed,
            "version": env!("CARGO_PKG_VERSION"),
        });
        print(&format!("{report:#}\n"))?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    let mut line = |name: &str, value: String| text += &format!("{name:<21} {value}\n");
    line(
        "lower bound",
        format!(
            "{:.3} ± {:.3} nats/record over {} records",
            lower,
            bound.standard_error,
            records.len()
        ),
    );
    if let Some(importance) = &importance {
        line(
            &format!("importance, K = {}", args.importance),
            in_words(importance),
        );
    }
    match &marginal {
        Some(marginal) => line("marginal likelihood", in_words(marginal)),
        None if latent >= TOO_MANY => line(
            "marginal likelihood",
            format!(
                "not estimated for {latent} latent values, because the importance-weighted bound replaces it"
            ),
        ),
        None => {}
    }
    if rows.missing() > 0 {
        let all = rows.rows() * rows.width();
        line("missing values", format!("{} of {all}", rows.missing()));
    }
    line(
        "active latent values",
        format!("{} of {latent}", active.active),
    );
    print(&text)?;
    Ok(Exit::Done)
}

pub fn export(args: &ExportArgs) -> CommandResult {
    let (folder, _) = open_vae(&args.dir)?;
    let model = vae_model(&folder)?;
    let files = [
        (&args.encoder, VaeNetwork::Encoder),
        (&args.decoder, VaeNetwork::Decoder),
    ];
    for (path, network) in files {
        if let Some(path) = path {
            write_atomic_bytes(path, &model.onnx(network)?).map_err(Failure::output)?;
        }
    }
    Ok(Exit::Done)
}
