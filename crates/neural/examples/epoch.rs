//! Times training on images: seconds a pass over 60 000 records of 784 values (networks 784-500-20-500-784,
//! minibatches of 100, Adagrad), and the rate of the bare matrix products of the same shapes in the same run.
//!
//! `cargo run --release -p jensen-neural --example epoch [IMAGES.idx[.gz] [TEST.idx[.gz] [PASSES [STEP [SD]]]]]`;
//! STEP is Adagrad's step size and SD the initial weights' standard deviation; without a file the images are noise, which
//! takes the same time.

use std::io::Read;
use std::time::Instant;

use jensen_fit::{Algorithm, Record};
use jensen_math::simd::Simd;
use jensen_neural::{Architecture, ByteRecords, Likelihood, Optimiser, TrainSettings, Trainer};

const WIDTH: usize = 784;
const RECORDS: usize = 60_000;

/// The pixels of an IDX file of 28 × 28 images, or noise.
fn images(path: Option<&String>) -> Vec<u8> {
    let Some(path) = path else {
        return (0..RECORDS * WIDTH)
            .map(|i| ((i * 2_654_435_761) >> 7) as u8)
            .collect();
    };
    let bytes = std::fs::read(path).expect("a readable file");
    let mut pixels = Vec::new();
    if path.ends_with(".gz") {
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_end(&mut pixels)
            .expect("a gzip file");
    } else {
        pixels = bytes;
    }
    pixels.split_off(16)
}

/// Floating-point operations of the matrix products of one record: forwards, and backwards to weights and inputs.
fn products(hidden: usize, latent: usize) -> f64 {
    let encoder = WIDTH * hidden;
    let rest = hidden * 2 * latent + latent * hidden + hidden * WIDTH;
    2.0 * (2 * encoder + 3 * rest) as f64
}

/// Processor seconds of this process, where the system tells; they do not depend on what else runs.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect();
    let ticks = |k: usize| fields.get(k).and_then(|x| x.parse::<f64>().ok());
    match (ticks(11), ticks(12)) {
        (Some(user), Some(system)) => (user + system) / 100.0,
        _ => f64::NAN,
    }
}

/// Operations a second, and a processor second, of a large matrix product on all threads.
fn product_rate() -> (f64, f64) {
    let n = 1536;
    let a = vec![1.0_f32; n * n];
    let b = vec![1.0_f32; n * n];
    let mut c = vec![0.0_f32; n * n];
    let mut best = f64::INFINITY;
    let (rounds, before) = (12, processor_seconds());
    for _ in 0..rounds {
        let start = Instant::now();
        // SAFETY: three square matrices of that extent.
        unsafe {
            gemm::gemm(
                n,
                n,
                n,
                c.as_mut_ptr(),
                n as isize,
                1,
                false,
                a.as_ptr(),
                n as isize,
                1,
                b.as_ptr(),
                n as isize,
                1,
                0.0,
                1.0,
                false,
                false,
                false,
                gemm::Parallelism::Rayon(0),
            );
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    let work = 2.0 * (n as f64).powi(3);
    let spent = processor_seconds() - before;
    (work / best, f64::from(rounds) * work / spent)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let bytes = images(args.first());
    let test = args.get(1).map(|path| images(Some(path)));
    let passes: u64 = args.get(2).and_then(|x| x.parse().ok()).unwrap_or(5);
    let step: f32 = args.get(3).and_then(|x| x.parse().ok()).unwrap_or(0.02);
    let sd: f64 = args
        .get(4)
        .and_then(|x| x.parse().ok())
        .unwrap_or(jensen_neural::INITIAL_SD);
    let records = |bytes: Vec<u8>| ByteRecords {
        bytes,
        width: WIDTH,
        scale: 1.0 / 255.0,
    };
    let data = records(bytes);
    let test = test.map(records);
    let architecture = Architecture::paper(WIDTH, 20, 500, Likelihood::Bernoulli);
    let settings = TrainSettings {
        optimiser: Optimiser::adagrad(step),
        initial_sd: sd,
        ..TrainSettings::default()
    };
    let mut trainer = Trainer::new(
        &architecture.encoder(),
        &architecture.decoder(),
        settings,
        &data,
        None,
        Simd::detect(),
    )
    .expect("settings that fit");
    let mut evaluator = jensen_neural::BoundEvaluator::new(
        &architecture.encoder(),
        &architecture.decoder(),
        1,
        Simd::detect(),
    )
    .expect("a supported model");
    let mut state = trainer.init().expect("a start");
    let work = products(500, 20) * data.bytes.len() as f64 / WIDTH as f64;
    let (mut best, mut least) = (f64::INFINITY, f64::INFINITY);
    for pass in 1..=passes {
        let (start, before) = (Instant::now(), processor_seconds());
        let record: Record = trainer.step(&mut state, pass).record;
        let seconds = start.elapsed().as_secs_f64();
        best = best.min(seconds);
        least = least.min(processor_seconds() - before);
        let field = |name: &str| record.fields[name].as_f64().unwrap_or(f64::NAN);
        print!(
            "pass {pass}: {seconds:.3} s, {:.1} GF/s, bound {:.2} at {:.0} records",
            work / seconds * 1e-9,
            field("bound"),
            field("samples"),
        );
        if let Some(test) = &test
            && (pass.is_multiple_of(10) || pass == passes)
        {
            let output = trainer.output(&state);
            let tensors: Vec<&[f32]> = output.tensors.iter().map(|t| &t.data[..]).collect();
            let bound = evaluator.bound(&tensors, test, 0);
            print!(
                ", test bound {:.2} ± {:.2}",
                bound.bound, bound.standard_error
            );
        }
        println!();
    }
    let (rate, processor_rate) = product_rate();
    println!(
        "best pass {best:.3} s: {:.1} GF/s, {:.0} % of the {:.1} GF/s of a large matrix product",
        work / best * 1e-9,
        100.0 * work / best / rate,
        rate * 1e-9
    );
    println!(
        "least processor time of a pass {least:.2} s: {:.1} GF a second of one processor, {:.0} % of the {:.1} GF of a large matrix product",
        work / least * 1e-9,
        100.0 * work / least / processor_rate,
        processor_rate * 1e-9
    );
}
