//! Reproductions of the tables and figures in the papers on which Jensen is based, computed from real data.
//!
//! An [`Experiment`] reproduces one paper. An experiment consists of [`Piece`]s. Each piece is a figure or a table. The
//! function [`run`] runs the parts with a [`Context`]. The context provides the data and the scale, and it writes the
//! results. The figures are written as SVG and PNG files. The file `results.json` contains one [`ResultRow`] per
//! measured number. The file is written again after every row. A reproduction that was stopped can therefore continue
//! at the same point.
//!
//! | file | subject |
//! | --- | --- |
//! | `experiment` | [`Experiment`] and [`Piece`] |
//! | `context` | [`Setup`] and [`Context`]: the environment of a part |
//! | `results` | [`Results`], [`ResultRow`], [`What`] and [`Ours`]: `results.json` |
//! | `run` | [`run`]: running the parts in order |
//! | `failure` | [`Failure`] |
//! | `table` | [`EXPERIMENTS`]: all experiments |
//! | `aevb` | auto-encoding variational Bayes against wake-sleep and Monte-Carlo EM |
//! | `dual` | the dual of latent Gaussian models: classification, fields, point processes |
//! | `trustvi`, `comparison`, `uncertainty` | TrustVI against ADVI and HFSGVI: figures, comparisons over many programs,
//! standard deviations |
//! | `contest`, `race`, `corpus`, `given` | optimisation paths, several runs on the same programs, the model corpus,
//! programs that the user supplies |
//!
//! # Adding a paper
//!
//! To add an experiment, create a file with its parts and a constant, and add a line to `table`. A part computes all
//! expensive results in [`Context::keep`] or [`Context::row`]. A resumed run does not compute these results again. The
//! part draws its figures from these results:
//!
//! ```
//! use jensen::report::figure::{Axis, Chart, Figure, Series};
//! use jensen_reproduce::{Context, Experiment, Failure, Ours, Piece, Scale, Setup, What, run};
//!
//! pub const EXPERIMENT: Experiment = Experiment {
//!     name: "halving",
//!     about: "Repeated halving (an example)",
//!     data: "none",
//!     parts: &[Piece { name: "figure1", about: "the curve", from: Scale::Quick, run: figure1 }],
//! };
//!
//! fn figure1(context: &mut Context<'_>) -> Result<(), Failure> {
//!     // Files of the data: `context.data("mnist/train-images-idx3-ubyte.gz")?` is a path for jensen::data.
//!     let steps = context.pick(10, 100);
//!     let curve: Vec<(f64, f64)> = context.keep("curve", |context| {
//!         context.say("halving");
//!         Ok((0..steps).map(|k| (f64::from(k), 0.5f64.powi(k))).collect())
//!     })?;
//!     for step in [1, 2] {
//!         let what = What::new(format!("value after {step} steps"), "").paper(0.5);
//!         context.row(what, |_| Ok(Ours::value(curve[step].1).note("exact")))?;
//!     }
//!     let chart = Chart::new("Halving").y(Axis::new("value").log()).series(Series::line("", curve));
//!     context.figure("figure1", &Figure::new("").panel(chart))
//! }
//!
//! # fn main() -> Result<(), Failure> {
//! # let out = tempfile::tempdir().unwrap();
//! let setup = Setup {
//!     data: "data".into(),
//!     out: out.path().join("halving"),
//!     corpus: None,
//!     models: None,
//!     scale: Scale::Quick,
//!     only: Vec::new(),
//!     resume: false,
//!     threads: 1,
//!     machine: "a laptop".into(),
//!     cancel: None,
//! };
//! let results = run(&EXPERIMENT, &setup, &mut |_| {})?;
//! assert_eq!(results.rows[1].ours, Some(0.25));
//! assert!(setup.out.join("figure1.png").exists());
//! # Ok(())
//! # }
//! ```
//!
//! Call [`Context::not_run`] for each row of a paper that is not run, with the reason. At the quick scale, all parts
//! together take at most 20 minutes on two cores.

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

mod aevb;
mod comparison;
mod contest;
mod context;
mod corpus;
mod dual;
mod experiment;
mod failure;
mod given;
mod joint_cv;
mod race;
mod results;
mod run;
mod table;
mod tempering;
mod trustvi;
mod uncertainty;

pub use context::{Context, Setup};
pub use experiment::{Experiment, Piece};
pub use failure::Failure;
pub use results::{Ours, ResultRow, Results, Scale, What};
pub use run::run;
pub use table::{EXPERIMENTS, find};

/// Reads the clock. This crate needs a clock because some of the measured results are times.
#[allow(clippy::disallowed_methods, reason = "what is measured is time")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}
