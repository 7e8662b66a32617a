//! `jensen mixture fit`: mixtures of Gaussians, of binary vectors or of counts.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use jensen::conjugate::models::{
    Bernoullis, Components, Covariance, Gaussians, Mixture, Multinomials,
};
use jensen::conjugate::pointwise;
use jensen::report::figure::{Axis, Chart, Figure, Series};
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::flags::parse_positive;
use crate::points::{self, Described, PointFlags, Points};

const EXAMPLES: &str = "\
Examples:
  jensen mixture fit points.csv --components 5 --out results
  jensen mixture fit points.npy --components 20 --covariance diagonal --temper global
  jensen mixture fit answers.csv --components 4 --kind bernoulli --batch 100 --passes 5

DATA is a CSV file with a header, an .npy or an .npz file; every column is used. Without --batch, coordinate
ascent runs until the bound is still; with it, stochastic steps make the passes asked for.";

/// Mixtures of points.
#[derive(Subcommand)]
pub enum MixtureCommand {
    /// Fit a mixture to the rows of a table
    Fit(Box<MixtureArgs>),
}

/// Fits a mixture.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct MixtureArgs {
    /// The table
    pub data: PathBuf,
    /// Number of components
    #[arg(long, short = 'k', value_name = "K", value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = "Model")]
    pub components: u64,
    /// What a component is
    #[arg(
        long,
        value_name = "KIND",
        value_enum,
        default_value = "gaussian",
        help_heading = "Model"
    )]
    pub kind: Kind,
    /// Covariance matrices of Gaussian components
    #[arg(
        long,
        value_name = "SHAPE",
        value_enum,
        default_value = "full",
        help_heading = "Model"
    )]
    pub covariance: Shape,
    /// Dirichlet parameter of the weights
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = parse_positive, help_heading = "Model")]
    pub concentration: f64,
    /// Dirichlet parameter of the proportions of multinomial components
    #[arg(long, value_name = "X", default_value_t = 0.5, value_parser = parse_positive, help_heading = "Model")]
    pub smoothing: f64,
    /// Draw the components' means as pictures of this size
    #[arg(long, value_name = "WxH", value_parser = points::parse_size, requires = "out", help_heading = "Output")]
    pub image: Option<(usize, usize)>,
    #[command(flatten)]
    pub flags: PointFlags,
}

/// Kinds of components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Real vectors
    Gaussian,
    /// Vectors of zeros and ones
    Bernoulli,
    /// Vectors of counts
    Multinomial,
}

/// Shapes of covariance matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// Any
    Full,
    /// Independent columns
    Diagonal,
}

/// Runs the command.
pub fn run(command: &MixtureCommand) -> Outcome {
    let MixtureCommand::Fit(args) = command;
    let points = Points::read(&args.data, &args.flags)?;
    points.check_size(args.image)?;
    let dim = points.dim();
    match args.kind {
        Kind::Gaussian => {
            let shape = match args.covariance {
                Shape::Full => Covariance::Full,
                Shape::Diagonal => Covariance::Diagonal,
            };
            let train = Gaussians::new(shape, dim, points.train.clone());
            let heldout = train.with_data(points.heldout.clone());
            fit(
                args,
                &points,
                train,
                heldout,
                |gaussians, lambda| json!({ "mean": gaussians.mean(lambda), "covariance": gaussians.covariance(lambda) }),
            )
        }
        Kind::Bernoulli => {
            let bits = |rows: &[f64]| -> Result<Vec<bool>, Failure> {
                rows.iter()
                    .map(|&x| match x {
                        0.0 => Ok(false),
                        1.0 => Ok(true),
                        _ => Err(Failure::input(format!(
                            "`{}` holds {x}, but binary components take 0 and 1",
                            args.data.display()
                        ))),
                    })
                    .collect()
            };
            let train = Bernoullis::new(dim, bits(&points.train)?);
            let heldout = Bernoullis::new(dim, bits(&points.heldout)?);
            fit(
                args,
                &points,
                train,
                heldout,
                |bernoullis, lambda| json!({ "probabilities": bernoullis.probabilities(lambda) }),
            )
        }
        Kind::Multinomial => {
            let all = points.train.iter().chain(&points.heldout);
            if let Some(x) = all.into_iter().find(|x| **x < 0.0 || x.fract() != 0.0) {
                return Err(Failure::input(format!(
                    "`{}` holds {x}, but multinomial components take counts",
                    args.data.display()
                )));
            }
            let rows = |rows: &[f64]| Multinomials::new(dim, args.smoothing, rows.to_vec());
            let (train, heldout) = (rows(&points.train), rows(&points.heldout));
            fit(
                args,
                &points,
                train,
                heldout,
                |multinomials, lambda| json!({ "proportions": multinomials.proportions(lambda) }),
            )
        }
    }
}

fn fit<C: Components>(
    args: &MixtureArgs,
    points: &Points,
    train: C,
    heldout: C,
    component: impl Fn(&C, &[f64]) -> Value,
) -> Outcome {
    let k = args.components as usize;
    if k > train.points() {
        return Err(Failure::input(format!(
            "{k} components cannot be learned from {} points: ask for fewer",
            train.points()
        )));
    }
    let model = Mixture::new(train, k, args.concentration);
    let scored = Mixture::new(heldout, k, args.concentration);
    points::run(
        "mixture",
        &args.flags,
        points,
        &model,
        |lambda| (!points.heldout.is_empty()).then(|| pointwise::heldout(&scored, lambda)),
        |lambda| {
            let weights = model.weights(lambda);
            let mut order: Vec<usize> = (0..k).collect();
            order.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
            let described: Vec<Value> = order
                .iter()
                .map(|&i| {
                    let mut value = component(model.components(), model.component(lambda, i));
                    value["weight"] = json!(weights[i]);
                    value
                })
                .collect();
            let means: Vec<Vec<f64>> = described.iter().map(mean).collect();
            let heads = ["component", "weight"].map(str::to_owned).into_iter();
            let table = order
                .iter()
                .zip(&means)
                .enumerate()
                .map(|(row, (&i, mean))| {
                    let cells = mean.iter().map(|x| points::cell(*x));
                    [(row + 1).to_string(), points::cell(weights[i])]
                        .into_iter()
                        .chain(cells)
                        .collect()
                });
            Described {
                rows: "component",
                table: (
                    heads.chain(points.names.iter().cloned()).collect(),
                    table.collect(),
                ),
                pictures: pictures(args, points, &order, &weights, &means),
                fields: json!({ "columns": points.names, "components": described }),
            }
        },
    )
}

/// The mean, the probabilities or the proportions of a component.
fn mean(component: &Value) -> Vec<f64> {
    let values = ["mean", "probabilities", "proportions"]
        .iter()
        .find_map(|name| component[*name].as_array());
    let numbers = values.into_iter().flatten().filter_map(Value::as_f64);
    numbers.collect()
}

/// Most points of a scatter plot.
const DRAWN: usize = 2000;

/// The means: as pictures where their size is given, else among the points, by the first two columns.
fn pictures(
    args: &MixtureArgs,
    points: &Points,
    order: &[usize],
    weights: &[f64],
    means: &[Vec<f64>],
) -> Vec<(&'static str, &'static str, Figure)> {
    if let Some(size) = args.image {
        let rows = means.iter().map(Vec::as_slice);
        let grid = points::images("Means", rows, size, |i| {
            format!("{:.1} %", 100.0 * weights[order[i]])
        });
        let caption =
            "The components' means, each from its least to its largest value, the heaviest first.";
        return vec![("means", caption, grid)];
    }
    let dim = points.dim();
    if args.kind != Kind::Gaussian || dim < 2 {
        return Vec::new();
    }
    let step = (points.train.len() / dim).div_ceil(DRAWN).max(1);
    let drawn = points.train.chunks_exact(dim).step_by(step);
    let chart = Chart::new("Means among the points")
        .x(Axis::new(points.names[0].clone()))
        .y(Axis::new(points.names[1].clone()))
        .series(Series::scatter("points", drawn.map(|x| (x[0], x[1]))).opacity(0.35))
        .series(
            Series::scatter("means", means.iter().map(|m| (m[0], m[1])))
                .colour(1)
                .width(5.0),
        );
    let caption = "The components' means and the points, by the first two columns.";
    vec![("means", caption, Figure::new("").panel(chart))]
}
