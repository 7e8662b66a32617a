//! Draws from an approximation on the constrained scale, with the log densities that determine their importance
//! weights.

use jensen_blackbox::{Approximation, Draws, Fit, NoiseSource, Policy, Refined, psis, resample};
use jensen_data::{DataSet, DrawsTable, DrawsVariable, ParameterSummary, Roles, Value};
use jensen_density::{Constrained, DrawKey, Lanes, LogDensity, Posterior, Variable, VariableKind};
use rayon::prelude::*;

use crate::haste::Haste;
use crate::{Error, Problem, summaries};

const POOL: usize = 10;

const SMALLEST_POOL: usize = 4000;

/// The minimum number of weighted or refined draws for computing summaries.
const SUMMARISED: usize = 4096;
/// The maximum number of values in the draws that Jensen creates for the summaries. This limit never reduces the number
/// of draws below the requested number.
const NUMBERS: usize = 1 << 22;

/// The index that selects the random numbers of generated quantities at the mean. No draw has this index.
const AT_MEAN: u64 = u64::MAX;

/// The maximum number of values in the draws of an interrupted run. With this limit, the draws are written in a
/// fraction of a second.
pub(crate) const HURRIED_NUMBERS: usize = 1 << 17;

const BLOCK: usize = 512;

const HURRIED_BLOCK: usize = 32;

/// A request for draws.
#[derive(Clone, Copy, Debug)]
pub struct SampleRequest {
    /// The index of the first draw. The draw with index i is identical in all requests that have the same seed.
    pub first: u64,
    /// The number of draws.
    pub draws: usize,
    /// Whether to create ten times as many draws and resample them according to their smoothed importance weights
    /// (sampling importance resampling). Resampled draws are closer to the posterior than draws from the approximation.
    pub resample: bool,
    /// The source of the random numbers that determine the draws from the approximation.
    pub source: NoiseSource,
    /// The seed of the random numbers that generated quantities use.
    pub seed: u64,
    /// The number of threads that compute the constrained values.
    pub threads: usize,
}

/// Draws of named variables.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sample {
    /// The draws that the model did not reject.
    pub table: DrawsTable,
    /// The variables of the table.
    pub variables: Vec<Variable>,
    /// The number of draws that the model rejected. The table does not contain them.
    pub rejected: usize,
    /// The message of the first rejection, or `None` if the model rejected no draw.
    pub rejection: Option<String>,
    /// The number of requested draws that were not computed because the run was interrupted.
    pub unmade: usize,
}

impl Sample {
    /// Assigns each variable to an ArviZ group. The names of the generated quantities determine their groups. Set
    /// `approximate` if the draws come from an approximation and have importance weights.
    pub fn roles(&self, approximate: bool) -> Roles {
        let generated = self.variables.iter();
        let generated = generated.filter(|variable| variable.kind == VariableKind::Generated);
        Roles::by_name(
            generated.map(|variable| variable.name.as_str()),
            approximate,
        )
    }

    /// Computes the mean, the standard deviation and the quantiles of every scalar. All draws have equal weights.
    pub fn summaries(&self) -> Vec<ParameterSummary> {
        summaries::plain(&self.table, &Haste::none(), &Policy::default(), |_| true)
    }

    /// Returns the parameter values of a draw in the form of initial values for Stan's samplers.
    ///
    /// # Errors
    /// Fails if the table has no draw with this index. Also fails if a parameter is an array of tuples, because the
    /// file format does not support such arrays.
    pub fn initial_values(&self, draw: usize) -> Result<DataSet, Error> {
        if draw >= self.table.len() {
            return Err(Error::Input(format!(
                "initial values {} do not exist, because there are only {} draws",
                draw + 1,
                self.table.len()
            )));
        }
        let (mut values, mut start) = (DataSet::new(), 0);
        let mut slots: Vec<(String, Vec<Value>)> = Vec::new();
        for variable in &self.variables {
            let len = variable.shape.iter().product::<usize>();
            let found = &self.table.row(draw)[start..start + len];
            start += len;
            if variable.kind != VariableKind::Parameter {
                continue;
            }
            let value = Value::reals(variable.shape.clone(), row_major(&variable.shape, found))?;
            match variable.name.split_once(':') {
                None => {
                    values.insert(&variable.name, value);
                }
                Some((tuple, slot)) if !variable.name.contains('.') && !slot.contains(':') => {
                    match slots.last_mut().filter(|(name, _)| name == tuple) {
                        Some((_, slots)) => slots.push(value),
                        None => slots.push((tuple.to_owned(), vec![value])),
                    }
                }
                Some(_) => {
                    return Err(Error::Input(format!(
                        "`{}` is a tuple within an array or a tuple, for which this file has no format",
                        variable.name
                    )));
                }
            }
        }
        for (name, slots) in slots {
            values.insert(name, Value::tuple(slots));
        }
        Ok(values)
    }
}

pub(crate) fn row_major(shape: &[usize], values: &[f64]) -> Vec<f64> {
    let mut out = Vec::with_capacity(values.len());
    for at in 0..values.len() {
        let (mut rest, mut from) = (at, 0);
        // This loop computes the position of the same subscripts in row-major order.
        let mut stride: usize = shape.iter().product();
        for extent in shape.iter().rev() {
            stride /= extent;
            from += rest % extent * stride;
            rest /= extent;
        }
        out.push(values[from]);
    }
    out
}

/// Draws from an approximation and computes every reported variable at each draw.
///
/// # Errors
/// Fails with [`Error::Data`] if the model uses a name that is not allowed in a table of draws.
pub fn sample<P: Problem>(
    problem: &P,
    approximation: &Approximation,
    request: &SampleRequest,
) -> Result<Sample, Error> {
    sample_until(problem, approximation, request, &Haste::none())
}

fn sample_until<P: Problem>(
    problem: &P,
    approximation: &Approximation,
    request: &SampleRequest,
    haste: &Haste<'_>,
) -> Result<Sample, Error> {
    let size = match request.resample {
        true => (POOL * request.draws).max(SMALLEST_POOL),
        false => request.draws,
    };
    let pool = Pool::draw(problem, approximation, request, size, haste);
    let chosen = match request.resample {
        true => choose(&pool.log_p, &pool.log_q, request),
        false => (0..pool.log_p.len()).collect(),
    };
    // The constrained values are computed after resampling, because copies of the same draw must have different
    // generated quantities.
    let constrained = constrain(problem.posterior(), &pool, &chosen, request);
    collect(problem.posterior(), &constrained, &chosen, &pool, request)
}

#[derive(Clone, Debug)]
pub(crate) struct Reported {
    /// The reported draws.
    pub sample: Sample,
    /// The summaries of all reported scalars, in the order of the columns.
    pub summaries: Vec<ParameterSummary>,
    /// The first quantity for which even the weighted draws of the approximation do not represent the posterior.
    pub moved: Option<String>,
}

/// Returns the draws that a fit reports, and their summaries. The reported draws are the refined draws if a refinement
/// has mixed, and draws from the approximation otherwise. Summaries of draws from the approximation use importance
/// weights if `weighted` is set and the weights are usable. For an interrupted run, the function computes fewer draws
/// if computing all of them would take too long. If the draws from the approximation already exist, the caller passes
/// them in `made`.
pub(crate) fn report<P: Problem>(
    problem: &P,
    fit: &Fit,
    weighted: bool,
    request: &SampleRequest,
    haste: &Haste<'_>,
    made: Option<Reported>,
) -> Result<Reported, Error> {
    // The reported draws of a refinement must be distinct, so there are at most as many as the refinement has.
    let refined = fit.refined.as_ref().filter(|refined| refined.mixed());
    let asked = refined.map_or(request.draws, |r| request.draws.min(r.draws.count));
    // The refined draws already exist, so the summaries can use all of them.
    let pool = refined.map_or(SUMMARISED, |r| r.draws.count);
    let (summarised, draws) = sizes(problem, (asked, pool), haste);
    let request = SampleRequest { draws, ..*request };
    let weighted = weighted && !request.resample && fit.best().evaluation.khat_is_good();
    let mut reported = match (refined, weighted) {
        (Some(refined), _) => {
            let sample = sample_refined(problem, &refined.draws, &refined.log_p, &request)?;
            let summaries = summaries_of_refined(
                problem,
                refined,
                &sample,
                summarised,
                (&request, &fit.policy),
                haste,
            )?;
            Reported {
                sample,
                summaries,
                moved: None,
            }
        }
        (None, true) => match made.filter(|_| !haste.is_hurried()) {
            Some(made) => made,
            None => report_weighted(
                problem,
                &fit.approximation(),
                (&request, &fit.policy),
                haste,
            )?,
        },
        (None, false) => {
            let sample = sample_until(problem, &fit.approximation(), &request, haste)?;
            let summaries = summaries::plain(&sample.table, haste, &fit.policy, |_| true);
            Reported {
                sample,
                summaries,
                moved: None,
            }
        }
    };
    if haste.is_hurried() {
        // The time limit may have passed while the draws were computed. If so, only some of the draws are written.
        let kept = most(problem, HURRIED_NUMBERS).max(1);
        reported.sample.table = reported.sample.table.first(kept);
        let made = reported.sample.table.len() + reported.sample.rejected;
        reported.sample.unmade = asked - made;
    }
    Ok(reported)
}

fn most<P: Problem>(problem: &P, numbers: usize) -> usize {
    let variables = problem.posterior().variables();
    let width: usize = variables.iter().map(|v| v.len()).sum();
    numbers / width.max(1)
}

/// Returns the number of draws for the summaries and the number of draws to report. The first number is at most `pool`.
/// `asked` is the number of draws that the user requested.
fn sizes<P: Problem>(
    problem: &P,
    (asked, pool): (usize, usize),
    haste: &Haste<'_>,
) -> (usize, usize) {
    let (numbers, draws) = match haste.is_hurried() {
        true => {
            let most = most(problem, HURRIED_NUMBERS).max(1);
            (HURRIED_NUMBERS, asked.min(most))
        }
        false => (NUMBERS, asked),
    };
    let summarised = pool.min(most(problem, numbers)).max(draws).max(1);
    (summarised, draws)
}

pub(crate) fn report_weighted<P: Problem>(
    problem: &P,
    approximation: &Approximation,
    (request, policy): (&SampleRequest, &Policy),
    haste: &Haste<'_>,
) -> Result<Reported, Error> {
    let posterior = problem.posterior();
    let (summarised, draws) = sizes(problem, (request.draws, SUMMARISED), haste);
    let pool = Pool::draw(problem, approximation, request, summarised, haste);
    let all: Vec<usize> = (0..pool.log_p.len()).collect();
    let kept = &all[..draws.min(all.len())];
    let apart = without_observations(problem);
    let most = match apart {
        Some(_) => kept,
        None => &all,
    };
    let constrained = constrain(posterior, &pool, most, request);
    let sample = collect(posterior, &constrained[..kept.len()], kept, &pool, request)?;
    let Some(apart) = apart else {
        let all = collect(posterior, &constrained, &all, &pool, request)?;
        let (summaries, moved) = summaries::weighted(&all.table, policy, haste, |_| true);
        return Ok(Reported {
            sample,
            summaries,
            moved,
        });
    };
    let constrained = constrain(&*apart, &pool, &all, request);
    let others = collect(&*apart, &constrained, &all, &pool, request)?;
    let (others, moved) = summaries::weighted(&others.table, policy, haste, |_| true);
    let (pointwise, moved_too) =
        summaries::weighted(&sample.table, policy, haste, of_its_observations(&sample));
    Ok(Reported {
        summaries: in_order(&sample, others, pointwise),
        moved: moved.or(moved_too),
        sample,
    })
}

/// Returns the model without the generated quantities that belong to single observations, or `None` if there are no
/// such quantities. The summaries of such quantities use only the reported draws, because the number of such quantities
/// grows with the number of observations. With four times as many draws, these summaries would take most of the time of
/// a small regression.
fn without_observations<P: Problem>(problem: &P) -> Option<Box<dyn Posterior + '_>> {
    let variables = problem.posterior().variables();
    match variables.iter().any(of_observations) {
        true => problem.reporting(&|variable| !of_observations(variable)),
        false => None,
    }
}

fn of_observations(variable: &Variable) -> bool {
    let name = variable.name.as_str();
    variable.kind == VariableKind::Generated
        && Roles::by_name(std::iter::once(name), false).is_pointwise(name)
}

fn of_its_observations(sample: &Sample) -> impl Fn(usize) -> bool {
    |at| of_observations(&sample.variables[at])
}

fn in_order(
    sample: &Sample,
    others: Vec<ParameterSummary>,
    pointwise: Vec<ParameterSummary>,
) -> Vec<ParameterSummary> {
    let (mut others, mut pointwise) = (others.into_iter(), pointwise.into_iter());
    let mut made = Vec::with_capacity(sample.table.width());
    for variable in &sample.variables {
        match of_observations(variable) {
            true => made.extend(pointwise.by_ref().take(variable.len())),
            false => made.extend(others.by_ref().take(variable.len())),
        }
    }
    made
}

/// Summarises the refined draws at about `wanted` equally spaced times. Quantities that belong to single observations
/// are summarised from `sample` instead.
fn summaries_of_refined<P: Problem>(
    problem: &P,
    refined: &Refined,
    sample: &Sample,
    wanted: usize,
    (request, policy): (&SampleRequest, &Policy),
    haste: &Haste<'_>,
) -> Result<Vec<ParameterSummary>, Error> {
    let lanes = refined.ensemble.lanes();
    let times = refined.draws.count / lanes;
    let kept = (wanted / lanes).clamp(1, times);
    let chosen: Vec<usize> = (0..kept)
        .flat_map(|t| {
            let first = t * times / kept * lanes;
            first..first + lanes
        })
        .collect();
    let pool = Pool::of(&refined.draws, &refined.log_p);
    let apart = without_observations(problem);
    let posterior = apart.as_deref().unwrap_or(problem.posterior());
    let constrained = constrain(posterior, &pool, &chosen, request);
    let all = collect(posterior, &constrained, &chosen, &pool, request)?;
    // After the rejected draws have been removed, the chains are incomplete, so their convergence cannot be diagnosed.
    let found = match all.rejected {
        0 => summaries::refined(&all.table, refined.ensemble, policy, haste),
        _ => summaries::plain(&all.table, haste, policy, |_| true),
    };
    Ok(match apart {
        Some(_) => {
            let pointwise =
                summaries::plain(&sample.table, haste, policy, of_its_observations(sample));
            in_order(sample, found, pointwise)
        }
        None => found,
    })
}

struct Pool {
    dim: usize,
    mean: Vec<f64>,
    rows: Vec<f64>,
    log_p: Vec<f64>,
    log_q: Vec<f64>,
}

impl Pool {
    fn draw<P: Problem>(
        problem: &P,
        approximation: &Approximation,
        request: &SampleRequest,
        count: usize,
        haste: &Haste<'_>,
    ) -> Self {
        let (density, dim) = (problem.density(), approximation.dim());
        let mut pool = Self {
            dim,
            mean: approximation.mean(),
            rows: Vec::with_capacity(count * dim),
            log_p: Vec::with_capacity(count),
            log_q: Vec::with_capacity(count),
        };
        let most = match haste.is_hurried() {
            true => HURRIED_BLOCK,
            false => BLOCK,
        };
        let mut ws = density.workspace(most.min(count));
        for start in (0..count).step_by(most) {
            if start > 0 && haste.is_late() {
                break;
            }
            let lanes = most.min(count - start);
            let first = request.first + start as u64;
            let draws = approximation.draws_from(first, lanes, request.source);
            let mut values = vec![0.0; lanes];
            density.value(&mut ws, Lanes::new(&draws.z, dim, lanes), &mut values);
            pool.log_p.extend(values);
            pool.log_q.extend_from_slice(&draws.log_q);
            for i in 0..lanes {
                pool.rows.extend(draws.draw(i));
            }
        }
        pool
    }

    fn of(draws: &Draws, log_p: &[f64]) -> Self {
        let coordinates = draws.z.chunks_exact(draws.count.max(1));
        Self {
            dim: draws.dim,
            mean: coordinates
                .map(|z| z.iter().sum::<f64>() / draws.count as f64)
                .collect(),
            rows: (0..draws.count).flat_map(|i| draws.draw(i)).collect(),
            log_p: log_p.to_vec(),
            log_q: draws.log_q.clone(),
        }
    }
}

/// Computes every reported variable at the refined draws. The draws are ordered such that every prefix contains draws
/// from all times and all chains. If more draws are requested than exist, the function repeats draws and uses different
/// random numbers for their generated quantities.
///
/// # Errors
/// Fails under the same conditions as [`sample`].
pub fn sample_refined<P: Problem>(
    problem: &P,
    draws: &Draws,
    log_p: &[f64],
    request: &SampleRequest,
) -> Result<Sample, Error> {
    let (count, stride) = (draws.count, stride(draws.count));
    let order = (0..request.draws).map(|i| (request.first as usize + i) % count * stride % count);
    let chosen: Vec<usize> = order.collect();
    let pool = Pool::of(draws, log_p);
    let constrained = constrain(problem.posterior(), &pool, &chosen, request);
    collect(problem.posterior(), &constrained, &chosen, &pool, request)
}

pub(crate) fn sample_at(
    posterior: &dyn Posterior,
    dim: usize,
    rows: Vec<f64>,
    [log_p, log_q]: [Vec<f64>; 2],
    request: &SampleRequest,
) -> Result<Sample, Error> {
    let count = log_p.len();
    let mean = (0..dim).map(|k| {
        let total: f64 = rows[k..].iter().step_by(dim).sum();
        total / count.max(1) as f64
    });
    let pool = Pool {
        dim,
        mean: mean.collect(),
        rows,
        log_p,
        log_q,
    };
    let chosen: Vec<usize> = (0..count).collect();
    let constrained = constrain(posterior, &pool, &chosen, request);
    collect(posterior, &constrained, &chosen, &pool, request)
}

/// Returns a step size s such that the positions 0, s, 2s, … modulo `count` include all `count` positions. The first
/// positions of this sequence are evenly spread. The step size is the golden section of `count`, or the next number
/// that has no common factor with `count`.
fn stride(count: usize) -> usize {
    let common = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let golden = (0.618 * count as f64) as usize;
    (golden.max(1)..)
        .find(|&step| common(step, count) == 1)
        .expect("one more than a multiple has no common factor")
}

fn choose(log_p: &[f64], log_q: &[f64], request: &SampleRequest) -> Vec<usize> {
    let weights: Vec<f64> = log_p.iter().zip(log_q).map(|(p, q)| p - q).collect();
    let smoothed = psis(&weights, 1.0).log_weights;
    resample(&smoothed, request.draws, request.source)
}

fn constrain(
    posterior: &dyn Posterior,
    pool: &Pool,
    chosen: &[usize],
    request: &SampleRequest,
) -> Vec<Constrained> {
    let together = posterior.together().max(1);
    let block = |(block, chosen): (usize, &[usize])| {
        let first = request.first + (block * together) as u64;
        let keys: Vec<DrawKey> = (first..first + chosen.len() as u64)
            .map(|index| DrawKey {
                seed: request.seed,
                index,
            })
            .collect();
        let rows = chosen.iter();
        let points: Vec<f64> = rows
            .flat_map(|from| &pool.rows[from * pool.dim..][..pool.dim])
            .copied()
            .collect();
        posterior.constrain_all(&points, &keys)
    };
    if request.threads > 1 {
        let blocks = chosen.par_chunks(together).enumerate();
        blocks.flat_map_iter(block).collect()
    } else {
        let blocks = chosen.chunks(together).enumerate();
        blocks.flat_map(block).collect()
    }
}

fn collect(
    posterior: &dyn Posterior,
    constrained: &[Constrained],
    chosen: &[usize],
    pool: &Pool,
    request: &SampleRequest,
) -> Result<Sample, Error> {
    let variables = posterior.variables();
    let mut draws = Vec::new();
    let (mut p, mut q) = (Vec::new(), Vec::new());
    let (mut rejected, mut unmade) = (0, 0);
    let mut rejection = None;
    for (row, &from) in constrained.iter().zip(chosen) {
        match row {
            Ok(row) => {
                draws.extend_from_slice(row);
                p.push(pool.log_p[from]);
                q.push(pool.log_q[from]);
            }
            Err(error) if error.interrupted => unmade += 1,
            Err(error) => {
                rejected += 1;
                rejection.get_or_insert_with(|| error.message.clone());
            }
        }
    }
    let columns = variables
        .iter()
        .map(|v| DrawsVariable::new(v.name.clone(), v.shape.clone()))
        .collect();
    let mut table = DrawsTable::new(columns, draws, p, q)?;
    let key = DrawKey {
        seed: request.seed,
        index: AT_MEAN,
    };
    let mut at_mean = Vec::new();
    // If the model rejects the mean, the values of the generated quantities there are unknown and are estimated from
    // the draws.
    if posterior.constrain(&pool.mean, key, &mut at_mean).is_ok() {
        table = table.with_mean(at_mean)?;
    }
    Ok(Sample {
        table,
        variables,
        rejected,
        rejection,
        unmade,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stride_comes_everywhere_and_spreads() {
        for count in [1, 2, 6, 256 * 16, 256 * 48] {
            let stride = stride(count);
            let mut positions: Vec<usize> = (0..count).map(|i| i * stride % count).collect();
            let first = &positions[..count.min(100)];
            let low = first
                .iter()
                .filter(|position| 2 * **position < count)
                .count();
            assert!(low.abs_diff(first.len() - low) <= first.len() / 5 + 1);
            positions.sort_unstable();
            assert!(positions.into_iter().eq(0..count));
        }
    }
}
