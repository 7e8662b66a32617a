//! The command line of `jensen vae`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jensen::vae::VaeRequest;

/// The commands.
#[derive(Subcommand)]
pub enum VaeCommand {
    /// Train an auto-encoder on images or a table
    Fit(Box<FitArgs>),
    /// Draw records from a trained model
    Sample(SampleArgs),
    /// Posterior means and standard deviations of the latent values of records
    Encode(ApplyArgs),
    /// Reconstruct records: the decoder's means at the means of their codes
    Reconstruct(ReconstructArgs),
    /// Bounds, marginal likelihood and active latent values of records
    Evaluate(EvaluateArgs),
    /// Write the networks in the ONNX format, which other programs evaluate
    Export(ExportArgs),
}

const FIT_EXAMPLES: &str = "\
Examples:
  jensen vae fit train-images-idx3-ubyte.gz --validation t10k-images-idx3-ubyte.gz --out digits
  jensen vae fit faces.mat --image 20x28 --decoder gaussian --latent 10 --hidden 200 --validation 0.1 --out faces
  jensen vae fit table.csv --decoder gaussian --latent 2 --hidden 64,32 --activation relu --optimizer adam --step-size 0.001
  jensen vae fit cells.csv --decoder negative-binomial --library-size on --latent 10 --hidden 128 --optimizer adam
  jensen vae fit penguins.csv --decoder mixed --given species --latent 2 --hidden 32 --optimizer adam --out penguins
  jensen vae fit --resume digits --epochs 200

Data: IDX, NPY, MAT 5 or CSV files (also .gz), or a folder of PNG and PGM pictures of one size; a row is a record. Grey
levels become numbers from 0 to 1, which the Bernoulli decoder takes for means. The folder of --out holds fit.json,
report.html, trace.jsonl, approximation.safetensors (the weights), architecture.json, pictures, and what --resume and the
other commands need. The data stay where they are.";

/// Trains.
#[derive(Args)]
#[command(after_help = FIT_EXAMPLES)]
pub struct FitArgs {
    /// Images or a table (may be omitted with --resume)
    #[arg(required_unless_present = "resume", value_name = "IMAGES|TABLE")]
    pub data: Option<PathBuf>,
    /// Records for the validation bound: a file like the data, or a share of the data such as 0.1
    #[arg(long, value_name = "FILE|SHARE", help_heading = "Data")]
    pub validation: Option<String>,
    #[command(flatten)]
    pub flags: VaeRequest,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = jensen::job::words::thread_count, help_heading = "Run")]
    pub threads: Option<usize>,
    /// Refuse a run that needs more memory than this
    #[arg(long, value_name = "SIZE", default_value = "8GiB", value_parser = jensen::job::words::bytes, help_heading = "Run")]
    pub memory_limit: u64,
    /// Write results and checkpoints to this folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Continue the run in this folder from its last checkpoint, with the same bits as an uninterrupted run
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with = "out",
        help_heading = "Output"
    )]
    pub resume: Option<PathBuf>,
    /// Resume although data or settings differ from the stored run
    #[arg(long, requires = "resume", help_heading = "Output")]
    pub force: bool,
    /// Print fit.json to standard output, and nothing else
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print no progress, warnings or table
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

/// Where results go, and how they are computed.
#[derive(Args)]
pub struct OutFlags {
    /// Write to this file (repeatable): *.png (a picture), *.npy or *.csv [default: CSV on standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Vec<PathBuf>,
    /// Instruction set: auto, avx512, avx2 or scalar [default: that of the fit]
    #[arg(long, value_name = "NAME", value_parser = jensen::job::words::simd_name)]
    pub simd: Option<String>,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = jensen::job::words::thread_count)]
    pub threads: Option<usize>,
}

const SAMPLE_EXAMPLES: &str = "\
Examples:
  jensen vae sample digits --count 100 --out samples.png --out samples.npy
  jensen vae sample digits --count 1000 --observations > draws.csv
  jensen vae sample digits --manifold 20 --out manifold.png
  jensen vae sample penguins --given species=Gentoo --count 100 --observations > gentoos.csv

Records are the decoder's means at latent values from the prior. --manifold lays the first two latent values out on a grid
of equally spaced probabilities.";

/// Draws records.
#[derive(Args)]
#[command(after_help = SAMPLE_EXAMPLES)]
pub struct SampleArgs {
    /// The folder of a fit
    pub dir: PathBuf,
    /// Number of records
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub count: u64,
    /// Draw observations instead of their means
    #[arg(long)]
    pub observations: bool,
    /// Value of a column on which the model conditions (repeatable, one for each such column)
    #[arg(long, value_name = "NAME=VALUE")]
    pub given: Vec<String>,
    /// Write the decoder's means over a grid of SIDE × SIDE latent points
    #[arg(long, value_name = "SIDE", conflicts_with_all = ["count", "observations", "seed"], value_parser = clap::value_parser!(u64).range(1..=200))]
    pub manifold: Option<u64>,
    /// Seed of the draws [default: the seed of the fit]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub out: OutFlags,
}

const APPLY_EXAMPLES: &str = "\
Examples:
  jensen vae encode digits t10k-images-idx3-ubyte.gz --out codes.npy
  jensen vae encode digits new.csv > codes.csv
  jensen vae reconstruct digits t10k-images-idx3-ubyte.gz --out pairs.png --out means.npy
  jensen vae reconstruct survey gaps.csv --impute --out complete.csv

Codes have the columns mean1, mean2, … and sd1, sd2, …. Records are read and written in chunks. A picture of reconstructions
shows the first records, each above its reconstruction.";

/// Reconstructs records.
#[derive(Args)]
#[command(after_help = APPLY_EXAMPLES)]
pub struct ReconstructArgs {
    #[command(flatten)]
    pub apply: ApplyArgs,
    /// Keep values that are present, and reconstruct only missing ones
    #[arg(long)]
    pub impute: bool,
}

/// Runs records through the networks.
#[derive(Args)]
#[command(after_help = APPLY_EXAMPLES)]
pub struct ApplyArgs {
    /// The folder of a fit
    pub dir: PathBuf,
    /// Images or a table, as wide as those of the fit
    #[arg(value_name = "IMAGES|TABLE")]
    pub data: PathBuf,
    #[command(flatten)]
    pub out: OutFlags,
}

const EVALUATE_EXAMPLES: &str = "\
Examples:
  jensen vae evaluate digits t10k-images-idx3-ubyte.gz
  jensen vae evaluate digits t10k-images-idx3-ubyte.gz --records 1000 --importance 1000 --json

The importance-weighted bound lies between the lower bound and log p(x) and rises with the number of draws. Below five
latent values the marginal likelihood is estimated as well, from posterior draws by Hamiltonian Monte Carlo.";

/// Scores records.
#[derive(Args)]
#[command(after_help = EVALUATE_EXAMPLES)]
pub struct EvaluateArgs {
    /// The folder of a fit
    pub dir: PathBuf,
    /// Images or a table, as wide as those of the fit
    #[arg(value_name = "IMAGES|TABLE")]
    pub data: PathBuf,
    /// Draws per record for the lower bound
    #[arg(long, value_name = "L", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub samples: u64,
    /// Draws per record for the importance-weighted bound; 0 omits it
    #[arg(long, value_name = "K", default_value_t = 50, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub importance: u64,
    /// Use only the first N records for the importance-weighted bound and the marginal likelihood; 0 uses all
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub records: u64,
    /// Omit the marginal likelihood
    #[arg(long)]
    pub no_marginal: bool,
    /// Seed of the draws [default: the seed of the fit]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Instruction set: auto, avx512, avx2 or scalar [default: that of the fit]
    #[arg(long, value_name = "NAME", value_parser = jensen::job::words::simd_name)]
    pub simd: Option<String>,
    /// Threads [default: all of the machine]
    #[arg(long, value_name = "T", value_parser = jensen::job::words::thread_count)]
    pub threads: Option<usize>,
    /// Print a JSON object to standard output, and nothing else
    #[arg(long)]
    pub json: bool,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  jensen vae export digits --encoder encoder.onnx --decoder decoder.onnx
  python -c \"import onnxruntime as o; print(o.InferenceSession('encoder.onnx').get_outputs())\"

The encoder has the input `record` and the outputs `mean` and `log_variance`. The decoder has the input `latent` and the
output `mean`. If records have a library size, its second input `context` is this size. Records have the columns and the
units of the data. They are in double precision if the fit has standardised them, and in single precision otherwise.";

/// Writes networks.
#[derive(Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub struct ExportArgs {
    /// The folder of a fit
    pub dir: PathBuf,
    /// Write the encoder to this file
    #[arg(long, value_name = "FILE", required_unless_present = "decoder")]
    pub encoder: Option<PathBuf>,
    /// Write the decoder to this file
    #[arg(long, value_name = "FILE")]
    pub decoder: Option<PathBuf>,
}
