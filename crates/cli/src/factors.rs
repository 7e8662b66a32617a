//! `jensen factors fit`: factorial mixtures, in which every point is a sum of binary factors and noise.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jensen::conjugate::models::{FactorialMixture, FactorialSettings};
use jensen::conjugate::pointwise;
use jensen::report::figure::{Figure, Image, ImageGrid};
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
    #[arg(long, value_name = "WxH", value_parser = parse_size, requires = "out", help_heading = "Output")]
    pub image: Option<(usize, usize)>,
    #[command(flatten)]
    pub flags: PointFlags,
}

fn parse_size(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('x');
    match parts.map(|(w, h)| (w.parse(), h.parse())) {
        Some((Ok(w), Ok(h))) if w > 0 && h > 0 => Ok((w, h)),
        _ => Err("expected width and height, such as 48x42".to_owned()),
    }
}

/// Runs the command.
pub fn run(command: &FactorsCommand) -> Outcome {
    let FactorsCommand::Fit(args) = command;
    let points = Points::read(&args.data, &args.flags)?;
    let dim = points.dim();
    if let Some((width, height)) = args.image
        && width * height != dim
    {
        return Err(Failure::usage(format!(
            "pictures of {width}x{height} need {} columns, and `{}` has {dim}",
            width * height,
            args.data.display()
        )));
    }
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
            let picture = args.image.map(|(width, height)| {
                let images = factors
                    .chunks_exact(dim)
                    .filter_map(|f| Image::grey_stretched(width, height, f));
                let columns = (rows.len() as f64).sqrt().ceil() as usize;
                let grid = ImageGrid::new("Factors", columns).images(images);
                ("factors", Figure::new("").panel(grid))
            });
            Described {
                fields: json!({ "columns": points.names, "factors": rows }),
                lines: Vec::new(),
                picture,
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_size("48x42"), Ok((48, 42)));
        for wrong in ["48", "0x3", "ax3", "4x"] {
            assert!(parse_size(wrong).is_err());
        }
    }
}
