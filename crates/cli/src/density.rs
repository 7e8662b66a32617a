//! `jensen density`, and the construction of the models that `show` and `bench` use.

use std::path::Path;

use jensen::job::words;
use jensen::program::Source;
use jensen::stan::{Build, Model};
use jensen::{Problem, Query, evaluate};

use crate::args::{BuildFlags, DensityArgs};
use crate::failure::{CommandResult, Exit, Failure, print};
use crate::input::read_vectors;
use crate::limits;

/// The terms that the density includes.
#[derive(Clone, Copy)]
pub struct Terms {
    /// Whether the density includes the log-Jacobians of the parameters' transforms.
    pub jacobian: bool,
    /// Whether the density omits the additive constants of `~` statements.
    pub propto: bool,
}

impl Terms {
    pub const ALL: Self = Self {
        jacobian: true,
        propto: false,
    };
}

pub fn run(args: &DensityArgs) -> CommandResult {
    let terms = Terms {
        jacobian: !args.no_jacobian,
        propto: args.propto,
    };
    let model = build(&args.model, args.data.path(), &args.build, terms)?;
    let points = read_vectors(&args.at)?;
    let directions = args.hvp.as_deref().map(read_vectors).transpose()?;
    let answer = evaluate(
        model.density(),
        &Query {
            points: &points,
            gradient: args.gradient,
            directions: directions.as_deref(),
        },
    )?;
    let text = serde_json::to_string(&answer).map_err(Failure::output)?;
    print(&format!("{text}\n"))?;
    Ok(Exit::Done)
}

/// Builds a model whose density is evaluated on a single thread.
pub fn build(
    model: &Path,
    data: Option<&Path>,
    build: &BuildFlags,
    terms: Terms,
) -> Result<Model, Failure> {
    let simd = words::simd(Some(&build.simd))?;
    let source = Source::read(model, &build.include, data, build.memory_limit)?;
    let model = Model::compile(
        &source.text,
        &source.model,
        &source.values()?,
        &Build {
            includes: &source.includes,
            data_name: source.data_name(),
            seed: build.seed,
            simd,
            threads: 1,
            memory_limit: build.memory_limit,
            jacobian: terms.jacobian,
            propto: terms.propto,
            halt: limits::halt(None, build.memory_limit),
            ..Build::default()
        },
    )?;
    Ok(model)
}
