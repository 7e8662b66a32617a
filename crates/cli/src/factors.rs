//! `jensen factors fit`: factorial mixtures, in which every point is a sum of binary factors and noise.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jensen::conjugate::models::{FactorialMixture, FactorialSettings};
use jensen::conjugate::pointwise;
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::flags::parse_positive;
use crate::points::{self, Described, PointFlags, Points};

const EXAMPLES: &str = "\
Examples:
  jensen factors fit patches.npy --factors 8 --noise-variance 0.1 --image 4x4 --out results
  jensen factors fit faces.npz --factors 30 --noise-variance 0.5 --factor-variance 0.5 --temper global

DATA is a CSV file with a header, an .npy or an .npz file; every column is used. With --image, factors.png shows
the factors as pictures of that width and height, row by row.";

/// Factorial mixtures.
#[derive(Subcommand)]
pub enum FactorsCommand {
    /// Fit binary factors to the rows of a table
    Fit(Box<FactorsArgs>),
}

/// Fits a factorial mixture.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct FactorsArgs {
    /// The table
    pub data: PathBuf,
    /// Number of factors
    #[arg(long, short = 'k', value_name = "K", value_parser = clap::value_parser!(u64).range(1..=10_000), help_heading = "Model")]
    pub factors: u64,
    /// Variance of the noise in every column
    #[arg(long, value_name = "S", value_parser = parse_positive, help_heading = "Model")]
    pub noise_variance: f64,
    /// Prior variance of the factors' elements
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = parse_positive, help_heading = "Model")]
    pub factor_variance: f64,
    /// Prior probability of a factor to be on
    #[arg(long, value_name = "P", default_value_t = 0.3, value_parser = parse_positive, help_heading = "Model")]
    pub activation: f64,
    /// Draw the factors as pictures of this size
    #[arg(long, value_name = "WxH", value_parser = points::parse_size, requires = "out", help_heading = "Output")]
    pub image: Option<(usize, usize)>,
    #[command(flatten)]
    pub flags: PointFlags,
}

/// Runs the command.
pub fn run(command: &FactorsCommand) -> Outcome {
    let FactorsCommand::Fit(args) = command;
    let points = Points::read(&args.data, &args.flags)?;
    let dim = points.dim();
    points.check_size(args.image)?;
    let settings = FactorialSettings {
        factors: args.factors as usize,
        noise_variance: args.noise_variance,
        factor_variance: args.factor_variance,
        activation: args.activation,
    };
    let model =
        FactorialMixture::new(settings, dim, points.train.clone()).map_err(Failure::usage)?;
    let scored =
        FactorialMixture::new(settings, dim, points.heldout.clone()).map_err(Failure::usage)?;
    points::run(
        "factors",
        &args.flags,
        &points,
        &model,
        |lambda| (!points.heldout.is_empty()).then(|| pointwise::heldout(&scored, lambda)),
        |lambda| {
            let factors = model.factors(lambda);
            let rows: Vec<Value> = factors.chunks_exact(dim).map(|f| json!(f)).collect();
            let pictures = args.image.map(|size| {
                let grid = points::images("Factors", factors.chunks_exact(dim), size, |i| {
                    format!("{}", i + 1)
                });
                (
                    "factors",
                    "The factors, each from its least to its largest value.",
                    grid,
                )
            });
            let heads = std::iter::once("factor".to_owned()).chain(points.names.iter().cloned());
            let table = factors.chunks_exact(dim).enumerate().map(|(i, factor)| {
                let cells = factor.iter().map(|x| points::cell(*x));
                std::iter::once((i + 1).to_string()).chain(cells).collect()
            });
            Described {
                rows: "factor",
                table: (heads.collect(), table.collect()),
                pictures: pictures.into_iter().collect(),
                fields: json!({ "columns": points.names, "factors": rows }),
            }
        },
    )
}
