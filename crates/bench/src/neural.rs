//! The speed of training an auto-encoder of images, compared with large matrix products and with another
//! implementation.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use jensen::data::Rows;
use jensen::math::simd::Simd;
use jensen::run::Algorithm;
use jensen::vae::{
    Architecture, BoundEvaluator, ByteRecords, Likelihood, Records, RowRecords, TrainSettings,
    Trainer,
};
use serde::Deserialize;

const WIDTH: usize = 784;
const HIDDEN: usize = 500;
const LATENT: usize = 20;
const RECORDS: usize = 60_000;

/// The measurements.
#[derive(Args)]
pub struct NeuralArgs {
    /// Images of 28 × 28 pixels (IDX, also .gz). The default is noise, because it takes the same time.
    images: Option<PathBuf>,
    /// Images for the test bound after the last pass.
    #[arg(long)]
    test: Option<PathBuf>,
    /// Number of passes over the images.
    #[arg(long, default_value_t = 5)]
    passes: u64,
    /// A Python interpreter with JAX. It runs tools/peers/vae_jax.py before and after, with the same number of passes.
    #[arg(long, value_name = "PYTHON")]
    peer: Option<PathBuf>,
    /// The peer's program.
    #[arg(long, value_name = "FILE", default_value = "tools/peers/vae_jax.py")]
    peer_program: PathBuf,
}

#[derive(Deserialize)]
struct Peer {
    seconds_per_epoch: f64,
    processor_seconds_per_epoch: f64,
}

/// Wall-clock and processor seconds.
#[derive(Clone, Copy)]
struct Seconds {
    wall: f64,
    processor: f64,
}

impl Seconds {
    const NONE: Self = Self {
        wall: f64::INFINITY,
        processor: f64::INFINITY,
    };

    fn least(self, other: Self) -> Self {
        Self {
            wall: self.wall.min(other.wall),
            processor: self.processor.min(other.processor),
        }
    }

    fn of(work: impl FnOnce()) -> Self {
        let (start, before) = (Instant::now(), processor_seconds());
        work();
        Self {
            wall: start.elapsed().as_secs_f64(),
            processor: processor_seconds() - before,
        }
    }
}

/// Measures passes over the images and prints the results. Large matrix products are measured between the passes, and
/// the peer before and after them.
pub fn run(args: &NeuralArgs) -> anyhow::Result<()> {
    let open = |path: &Path| Rows::open(path).map_err(|error| anyhow::anyhow!("{error}"));
    let rows = args.images.as_deref().map(open).transpose()?;
    let noise = ByteRecords {
        bytes: match rows {
            Some(_) => Vec::new(),
            None => (0..RECORDS * WIDTH)
                .map(|i| (i.wrapping_mul(2_654_435_761) >> 7) as u8)
                .collect::<Vec<u8>>(),
        },
        width: WIDTH,
        scale: 1.0 / 255.0,
    };
    let images = rows.as_ref().map(RowRecords);
    let data: &dyn Records = match &images {
        Some(images) => images,
        None => &noise,
    };
    let before = peer(args)?;
    let architecture = Architecture::paper(data.width(), LATENT, HIDDEN, Likelihood::Bernoulli);
    let (encoder, decoder) = (architecture.encoder(), architecture.decoder());
    let (simd, settings) = (Simd::detect(), TrainSettings::default());
    let failed = |error: String| anyhow::anyhow!("{error}");
    let mut trainer = Trainer::new(&encoder, &decoder, settings, data, None, simd)
        .map_err(|error| failed(error.to_string()))?;
    let mut state = trainer
        .init()
        .map_err(|status| failed(status.to_string()))?;
    let work = products(data.width()) * data.len() as f64;
    let (mut pass, mut product) = (Seconds::NONE, Seconds::NONE);
    for number in 1..=args.passes.max(1) {
        product = product.least(large_product());
        let seconds = Seconds::of(|| {
            trainer.step(&mut state, number);
        });
        pass = pass.least(seconds);
        println!(
            "pass {number}: {:.3} s, {:.3} processor seconds",
            seconds.wall, seconds.processor
        );
    }
    product = product.least(large_product());
    let after = peer(args)?;
    let rate = |work: f64, seconds: f64| work / seconds * 1e-9;
    println!(
        "least: {:.3} s and {:.3} processor seconds per pass of {} records",
        pass.wall,
        pass.processor,
        data.len()
    );
    println!(
        "matrix products: {:.1} of {:.1} GF/s ({:.0} %), {:.1} of {:.1} GF a processor second ({:.0} %)",
        rate(work, pass.wall),
        rate(PRODUCT_WORK, product.wall),
        100.0 * rate(work, pass.wall) / rate(PRODUCT_WORK, product.wall),
        rate(work, pass.processor),
        rate(PRODUCT_WORK, product.processor),
        100.0 * rate(work, pass.processor) / rate(PRODUCT_WORK, product.processor),
    );
    if let (Some(before), Some(after)) = (before, after) {
        let peer = before.least(after);
        println!(
            "JAX: {:.3} s and {:.3} processor seconds per pass; JAX / Jensen {:.2}, processor {:.2}",
            peer.wall,
            peer.processor,
            peer.wall / pass.wall,
            peer.processor / pass.processor
        );
    }
    if let Some(path) = &args.test {
        let test = open(path)?;
        let mut evaluator = BoundEvaluator::new(&encoder, &decoder, 1, simd)
            .map_err(|error| failed(error.to_string()))?;
        let trained = trainer.output(&state);
        let tensors: Vec<&[f32]> = trained.tensors.iter().map(|t| t.data.as_slice()).collect();
        let bound = evaluator.bound(&tensors, &RowRecords(&test), 0);
        println!(
            "test bound {:.2} ± {:.2} nats an image",
            bound.bound, bound.standard_error
        );
    }
    if let Some(peak) = peak_mebibytes() {
        println!("peak memory {peak:.0} MiB");
    }
    Ok(())
}

fn peer(args: &NeuralArgs) -> anyhow::Result<Option<Seconds>> {
    let Some(python) = &args.peer else {
        return Ok(None);
    };
    let mut command = Command::new(python);
    command.arg(&args.peer_program);
    command.args(&args.images);
    command.arg("--passes").arg(args.passes.to_string());
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", python.display()))?;
    anyhow::ensure!(
        output.status.success(),
        "the peer failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let peer: Peer = serde_json::from_slice(&output.stdout).context("the peer's output")?;
    Ok(Some(Seconds {
        wall: peer.seconds_per_epoch,
        processor: peer.processor_seconds_per_epoch,
    }))
}

/// Returns the number of floating-point operations in the matrix products of one record, forwards, and backwards to
/// weights and inputs.
fn products(width: usize) -> f64 {
    let encoder = width * HIDDEN;
    let rest = HIDDEN * 2 * LATENT + LATENT * HIDDEN + HIDDEN * width;
    2.0 * (2 * encoder + 3 * rest) as f64
}

const EXTENT: usize = 1536;

const PRODUCT_WORK: f64 = 2.0 * (EXTENT * EXTENT * EXTENT) as f64;

/// Multiplies large matrices on all threads several times, and returns the smallest seconds.
fn large_product() -> Seconds {
    let (n, stride) = (EXTENT, EXTENT as isize);
    let (a, b) = (vec![1.0_f32; n * n], vec![1.0_f32; n * n]);
    let mut c = vec![0.0_f32; n * n];
    let mut least = Seconds::NONE;
    const ROUNDS: u32 = 12;
    let all = Seconds::of(|| {
        for _ in 0..ROUNDS {
            least = least.least(Seconds::of(|| {
                // SAFETY: three square matrices of that extent.
                unsafe {
                    gemm::gemm(
                        n,
                        n,
                        n,
                        c.as_mut_ptr(),
                        stride,
                        1,
                        false,
                        a.as_ptr(),
                        stride,
                        1,
                        b.as_ptr(),
                        stride,
                        1,
                        0.0,
                        1.0,
                        false,
                        false,
                        false,
                        gemm::Parallelism::Rayon(0),
                    );
                }
            }));
        }
    });
    Seconds {
        wall: least.wall,
        // The clock of processor time ticks too slowly for one product.
        processor: all.processor / f64::from(ROUNDS),
    }
}

fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    let ticks: Vec<f64> = fields
        .skip(11)
        .take(2)
        .filter_map(|x| x.parse().ok())
        .collect();
    match ticks[..] {
        [user, system] => (user + system) / 100.0,
        _ => f64::NAN,
    }
}

fn peak_mebibytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
