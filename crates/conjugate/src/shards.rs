//! Points that are in other processes. These processes run the local steps shard by shard.
//!
//! The number of shards depends on the data and not on the number of machines. In every step, each shard runs the local
//! steps of its share of the batch and returns a [`Part`]. The part depends only on the points, the global parameters
//! and the share ([`step`]). The driver adds the parts along a fixed binary tree of shards and makes the global step.
//! [`PointShards`] is the interface to these points, and models such as [`Sampled`](crate::models::Sampled) contain an
//! implementation of it.

use jensen_run::wire::{Reader, Writer};

use crate::engine::{Heat, Sums};
use crate::model::ConjugateModel;
use crate::pointwise::{NormaliserTable, bound_of_points, solve_batch};
use crate::temper::InverseTemperatures;

/// A request that goes to all shards in one step.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// The expectations E[t(β)].
    pub expected: &'a [f64],
    /// The common temperature, or the grid of temperatures among which each point's temperature is inferred.
    pub heat: &'a Heat<'a, NormaliserTable>,
}

/// The result of one shard for its share of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Sums over the points.
    pub sums: Sums,
    /// The expected statistics Σ `E_q[T(x_i, z_i)]`, each weighted by the inverse temperature of the point.
    pub statistics: Vec<f64>,
}

/// The processes that have the points and run their local steps. After a request has failed, all later requests also
/// fail.
pub trait PointShards: Sync {
    /// Runs the local steps of all shards and adds their parts over the tree. Returns `None` if a shard did not answer.
    fn solve(&self, ask: &Ask<'_>, batch: &[usize]) -> Option<Part>;

    /// Computes Σ over all points of `E_q[log p(x, z | β)]` + H(q(z)) at T = 1, in nats, given E[t(β)]. Returns `None`
    /// if a shard did not answer.
    fn bound(&self, expected: &[f64]) -> Option<f64>;
}

impl Part {
    /// Adds another part.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        if self.statistics.is_empty() {
            return other.clone();
        }
        self.sums.merge(&other.sums);
        let pairs = self.statistics.iter_mut().zip(&other.statistics);
        pairs.for_each(|(sum, x)| *sum += x);
        self
    }

    /// Writes the part as bytes.
    pub fn write(&self, out: &mut Writer<'_>) {
        self.sums.write(out);
        out.reals(&self.statistics);
    }

    /// Reads a part that [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// Fails if the bytes are not a valid part.
    pub fn read(read: &mut Reader<'_>) -> Result<Self, String> {
        Ok(Self {
            sums: Sums::read(read)?,
            statistics: read.reals()?,
        })
    }
}

impl Ask<'_> {
    /// Writes the request as bytes.
    pub fn write(&self, out: &mut Writer<'_>) {
        out.reals(self.expected);
        match self.heat {
            Heat::Uniform(inverse) => out.reals(&[*inverse]),
            Heat::Local {
                grid,
                floor,
                first,
                table,
            } => {
                out.reals(&[*floor, *first]);
                out.reals(&grid.values);
                out.reals(&grid.log_prior);
                out.reals(&table.sizes);
                out.reals(&table.values);
            }
        }
    }
}

fn expected<M: ConjugateModel>(model: &M, ask: &mut Reader<'_>) -> Result<Vec<f64>, String> {
    let expected = ask.reals()?;
    if expected.len() != model.blocks().len() {
        return Err("it belongs to another model".to_owned());
    }
    Ok(expected)
}

/// Runs the local steps of the points in `share`, as requested by the output of [`Ask::write`]. The same arguments give
/// bitwise identical results on every machine.
///
/// # Errors
/// Fails if the bytes are not a valid request, or if the request is for another model.
pub fn step<M: ConjugateModel>(
    model: &M,
    ask: &mut Reader<'_>,
    share: &[usize],
) -> Result<Part, String> {
    let expected = expected(model, ask)?;
    let heat = ask.reals()?;
    let (grid, table);
    let heat = match heat[..] {
        [inverse] => Heat::Uniform(inverse),
        [floor, first] => {
            grid = InverseTemperatures {
                values: ask.reals()?,
                log_prior: ask.reals()?,
            };
            table = NormaliserTable {
                sizes: ask.reals()?,
                values: ask.reals()?,
            };
            Heat::Local {
                grid: &grid,
                floor,
                first,
                table: &table,
            }
        }
        _ => return Err("its temperature is damaged".to_owned()),
    };
    if let Some(number) = share.iter().find(|number| **number >= model.points()) {
        return Err(format!("the shard has no point {number}"));
    }
    Ok(solve_batch(model, &expected, share, &heat, &[]).0)
}

/// Computes the contribution of one shard to [`PointShards::bound`]. `ask` contains the array E[t(β)].
///
/// # Errors
/// Fails if the bytes are not a valid array, or if the array is for another model.
pub fn bound<M: ConjugateModel>(model: &M, ask: &mut Reader<'_>) -> Result<f64, String> {
    let expected = expected(model, ask)?;
    Ok(bound_of_points(model, &expected, &[]))
}
