//! A shard of a mixture. A shard is a table, and a single worker process reads the table and evaluates its rows.
//!
//! A worker reads the table twice. In the first pass, the worker computes the moments of the columns
//! ([`What::Survey`]). These moments determine the prior. In the second pass, the worker computes the initial
//! statistics of its rows ([`What::Begin`]) and keeps the rows in memory. The answers depend only on the settings, the
//! file and the requested rows. The driver adds the answers over a binary tree of shards.

use std::path::Path;
use std::sync::Arc;

use jensen_conjugate::model::ConjugateModel;
use jensen_conjugate::models::{Bernoullis, Components, Gaussians, Multinomials};
use jensen_conjugate::shards;
use jensen_data::Table;
use jensen_math::sum::ColumnMoments;
use jensen_run::wire::{self, Reader, WireError};
use serde::{Deserialize, Serialize};

use super::mixture::{bernoullis, multinomials};
use super::model::predicted;
use super::{Kind, MixtureRequest, Points};
use crate::Error;
use crate::units::Units;

/// A request to a shard. The documentation of each variant describes the answer to the request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The number of rows and the moments of the columns, or an error if a value is outside the domain of the
    /// components.
    Survey = 0,
    /// The sum Σ T(x) over the rows of the shard, the sizes of its points, and the requested rows.
    Begin = 1,
    /// The statistics from the local steps of the requested rows.
    Step = 2,
    /// The contribution of the shard to the ELBO at temperature 1.
    Bound = 3,
    /// The log predictive densities of the held-out rows of the shard.
    Predict = 4,
}

impl What {
    const ALL: [Self; 5] = [
        Self::Survey,
        Self::Begin,
        Self::Step,
        Self::Bound,
        Self::Predict,
    ];
}

/// The inputs that a shard needs in addition to its file. The moments of the columns over all rows are known only after
/// the survey.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PointPlan {
    pub request: MixtureRequest,
    /// The count, the mean and the sum of squared deviations of each column.
    pub columns: Vec<[f64; 3]>,
}

/// The training rows of a shard, followed by its held-out rows.
pub(super) enum Rows {
    Gaussian(Box<(Gaussians, Gaussians, Units)>),
    Bernoulli(Bernoullis, Bernoullis),
    Multinomial(Multinomials, Multinomials),
}

impl Rows {
    /// Creates the components. The moments of the columns determine the standardised units and the prior.
    pub fn of(
        request: &MixtureRequest,
        points: Points,
        columns: &[ColumnMoments],
    ) -> Result<Self, Error> {
        Ok(match request.kind() {
            Kind::Gaussian
            | Kind::StudentT
            | Kind::Poisson
            | Kind::NegativeBinomial
            | Kind::Categorical => {
                let shape = request.covariance.unwrap_or_default().into();
                let units = Units::of_moments(columns, request.standardise.unwrap_or_default())?;
                let (rows, own) = (units.rows(&points.train), units.moments(columns));
                let train = Gaussians::with_columns(shape, rows, &own, request.prior())
                    .with_log_scales(units.log_scales());
                let heldout = train.with_data(units.rows(&points.heldout));
                Self::Gaussian(Box::new((train, heldout, units)))
            }
            Kind::Bernoulli => {
                let of = |rows: &[f64]| bernoullis(request.smoothing(), &points, rows);
                Self::Bernoulli(of(&points.train)?, of(&points.heldout)?)
            }
            Kind::Multinomial => {
                let of = |rows: &[f64]| multinomials(request.smoothing(), &points, rows);
                Self::Multinomial(of(&points.train)?, of(&points.heldout)?)
            }
        })
    }

    /// Adds the prior correlations that are estimated from `points`. Only the driver needs these correlations.
    pub fn with_correlation(self, points: &Points) -> Self {
        match self {
            Self::Gaussian(rows) => {
                let (train, heldout, units) = *rows;
                let train = train.with_correlation_of(&units.rows(&points.train), &[]);
                Self::Gaussian(Box::new((train, heldout, units)))
            }
            other => other,
        }
    }
}

/// The rows of a shard in the memory of a worker.
pub struct PointShard {
    request: MixtureRequest,
    rows: Rows,
    bytes: usize,
}

/// Answers a request of the driver to a shard. `kept` stores the shard between calls. Calls with the same arguments
/// return bitwise identical answers on every machine.
///
/// # Errors
/// Fails if the file cannot be read, if it differs from the file that the driver has registered, or if one of its
/// values is outside the domain of the components.
pub fn point_step(
    plan: &str,
    path: &Path,
    digest: &str,
    ask: &[u8],
    share: &[u8],
    kept: &mut Option<Arc<PointShard>>,
) -> Result<Vec<u8>, Error> {
    fn damaged(error: impl Into<String>) -> Error {
        let error: String = error.into();
        Error::Input(format!("the request to the shard: {error}"))
    }
    let mut read = Reader::new(ask);
    let [what, components] = read.counts().map_err(damaged)?;
    let what = What::ALL.into_iter().find(|known| *known as u64 == what);
    let what = what.ok_or_else(|| damaged("it is of another version"))?;
    let mut share = Reader::new(share);
    let [number] = share.counts().map_err(damaged)?;
    let numbers = expanded(&share.numbers().map_err(damaged)?);
    if what == What::Step || what == What::Bound || what == What::Predict {
        let shard = match kept {
            Some(shard) => shard,
            None => kept.insert(read_shard(plan, path, number, digest, &[])?.0.into()),
        };
        return shard
            .answer(what, components as usize, &mut read, &numbers)
            .map_err(damaged);
    }
    if what == What::Survey {
        let plan: PointPlan = serde_json::from_str(plan).map_err(Error::input)?;
        return surveyed(&plan.request, path, number);
    }
    let (shard, rows) = read_shard(plan, path, number, digest, &numbers)?;
    let answer = match &shard.rows {
        Rows::Gaussian(own) => begun(&own.0, &rows),
        Rows::Bernoulli(train, _) => begun(train, &rows),
        Rows::Multinomial(train, _) => begun(train, &rows),
    };
    *kept = Some(shard.into());
    Ok(answer)
}

/// Decodes runs of consecutive indices. Each run is encoded as its first index and its length.
fn expanded(runs: &[u32]) -> Vec<usize> {
    let runs = runs.as_chunks().0.iter();
    runs.flat_map(|&[first, count]| first as usize..first as usize + count as usize)
        .collect()
}

fn surveyed(request: &MixtureRequest, path: &Path, number: u64) -> Result<Vec<u8>, Error> {
    let points = Points::of_shard(&Table::read(path)?, &request.points, number)?;
    points.check_size(request.image)?;
    points.check_heat(&request.points)?;
    let columns = ColumnMoments::of(points.dim(), &points.train);
    let rows = points.count();
    let (names, digest) = (points.names.clone(), points.digest.clone());
    // This check rejects values outside the domain of the components. The check is skipped for Gaussian components,
    // because a column that is constant in this shard may vary in other shards.
    if request.kind() != Kind::Gaussian {
        Rows::of(request, points, &columns)?;
    }
    let moments: Vec<f64> = columns
        .iter()
        .flat_map(|c| [c.count, c.mean, c.squares])
        .collect();
    Ok(wire::bytes(|out| {
        out.counts(&[rows as u64, names.len() as u64]);
        out.text(&digest);
        names.iter().for_each(|name| out.text(name));
        out.reals(&moments);
    }))
}

fn read_shard(
    plan: &str,
    path: &Path,
    number: u64,
    digest: &str,
    wanted: &[usize],
) -> Result<(PointShard, Vec<f64>), Error> {
    let PointPlan { request, columns } = serde_json::from_str(plan).map_err(Error::input)?;
    let points = Points::of_shard(&Table::read(path)?, &request.points, number)?;
    if points.digest != digest || points.dim() != columns.len() {
        return Err(Error::Input(format!(
            "the shard `{}` differs from the driver's: all machines must see the same files, which must not \
             change during a fit",
            path.display()
        )));
    }
    let dim = points.dim();
    let row = |at: &usize| points.train[at * dim..(at + 1) * dim].iter().copied();
    let rows = wanted
        .iter()
        .filter(|at| **at < points.count())
        .flat_map(row)
        .collect();
    let columns: Vec<ColumnMoments> = columns.into_iter().map(moments).collect();
    let bytes = size_of::<f64>() * (points.train.len() + points.heldout.len());
    let shard = PointShard {
        rows: Rows::of(&request, points, &columns)?,
        request,
        bytes,
    };
    Ok((shard, rows))
}

fn moments([count, mean, squares]: [f64; 3]) -> ColumnMoments {
    ColumnMoments {
        count,
        mean,
        squares,
    }
}

fn begun<C: Components>(train: &C, rows: &[f64]) -> Vec<u8> {
    let mut totals = vec![0.0; train.prior().iter().map(|(family, _)| family.len()).sum()];
    train.add_all(1.0, &mut totals);
    let sizes: Vec<f64> = train
        .sizes()
        .into_iter()
        .flat_map(|(size, n)| [size, n])
        .collect();
    wire::bytes(|out| {
        out.reals(&totals);
        out.reals(&sizes);
        out.reals(rows);
    })
}

impl PointShard {
    /// Returns the approximate number of bytes that the shard occupies in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn answer(
        &self,
        what: What,
        components: usize,
        ask: &mut Reader<'_>,
        share: &[usize],
    ) -> Result<Vec<u8>, String> {
        match &self.rows {
            Rows::Gaussian(rows) => {
                let (train, heldout, _) = &**rows;
                self.of(train, heldout, what, components, ask, share)
            }
            Rows::Bernoulli(train, heldout) => {
                self.of(train, heldout, what, components, ask, share)
            }
            Rows::Multinomial(train, heldout) => {
                self.of(train, heldout, what, components, ask, share)
            }
        }
    }

    fn of<C: Components>(
        &self,
        train: &C,
        heldout: &C,
        what: What,
        components: usize,
        ask: &mut Reader<'_>,
        share: &[usize],
    ) -> Result<Vec<u8>, String> {
        if what == What::Predict {
            let model = self.request.mixture(heldout, components);
            let found = predicted(&model, &ask.reals()?).map_err(|error| error.to_string())?;
            let logs: Vec<f64> = found.into_iter().map(|(_, log)| log).collect();
            return Ok(wire::bytes(|out| out.reals(&logs)));
        }
        let model = self.request.mixture(train, components);
        if what == What::Bound {
            let bound = shards::bound(&model, ask)?;
            return Ok(wire::bytes(|out| out.reals(&[bound])));
        }
        let all: Vec<usize>;
        // An empty array stands for all rows.
        let share = if share.is_empty() {
            all = (0..model.points()).collect();
            &all
        } else {
            share
        };
        let part = shards::step(&model, ask, share)?;
        Ok(wire::bytes(|out| part.write(out)))
    }
}

pub(super) struct ShardSurvey {
    pub rows: usize,
    pub names: Vec<String>,
    pub digest: String,
    pub columns: Vec<ColumnMoments>,
}

pub(super) fn survey_of(read: &mut Reader<'_>) -> Result<ShardSurvey, WireError> {
    let [rows, names] = read.counts()?;
    let digest = read.text()?;
    let names: Result<Vec<String>, WireError> = (0..names).map(|_| read.text()).collect();
    let columns = read.reals()?;
    Ok(ShardSurvey {
        rows: rows as usize,
        names: names?,
        digest,
        columns: columns.as_chunks().0.iter().copied().map(moments).collect(),
    })
}
