//! `jensen-bench`: the cost of Jensen over the model corpus, compared with a peer.
//!
//! Run it in a release build; tests do not run it.

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

mod density;
mod documents;
mod neural;

#[derive(Parser)]
#[command(about = "Benchmarks of Jensen over its model corpus", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Gradient, Hessian-vector product and build time of every model folder, as a Markdown table.
    Density {
        /// Folder of model folders (`model.stan`, `data.json`).
        #[arg(long, default_value = "models")]
        models: PathBuf,
        /// Gradient seconds of a peer by model name: {"name": {"seconds_per_gradient": 1e-6}, …}.
        #[arg(long)]
        peer: Option<PathBuf>,
        /// Number of draws per call.
        #[arg(long, default_value_t = 256)]
        lanes: usize,
        /// Seconds spent on each figure.
        #[arg(long, default_value_t = 0.2)]
        seconds: f64,
    },
    /// Documents drawn from a topic model, as LDA-C with `vocab.txt` in the same folder.
    Documents {
        /// The file to write.
        out: PathBuf,
        /// Number of documents.
        #[arg(long, default_value_t = 1_000_000)]
        documents: u64,
        /// Number of words in the vocabulary.
        #[arg(long, default_value_t = 8000)]
        terms: u64,
        /// Number of topics from which the documents are drawn.
        #[arg(long, default_value_t = 500)]
        topics: u64,
        /// Mean number of tokens of a document.
        #[arg(long, default_value_t = 100)]
        tokens: u64,
        /// Seed.
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// Seconds per pass of training an auto-encoder of images, compared with large matrix products
    /// and JAX.
    Neural(neural::NeuralArgs),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Density {
            models,
            peer,
            lanes,
            seconds,
        } => density::run(&models, peer.as_deref(), lanes, seconds),
        Command::Documents {
            out,
            documents,
            terms,
            topics,
            tokens,
            seed,
        } => documents::write(
            &out,
            documents::Size {
                documents,
                terms,
                topics,
                tokens,
            },
            seed,
        ),
        Command::Neural(args) => neural::run(&args),
    }
}

fn model_folders(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(root)? {
        let path = entry?.path();
        if path.join("model.stan").is_file() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}
