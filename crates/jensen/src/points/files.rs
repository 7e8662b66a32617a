//! Mixtures of the rows of several files. Each file is a shard, and another process evaluates its rows.
//!
//! A shard answers each request ([`What`]) for its own rows. The driver adds the answers over a binary tree of shards,
//! so that the results depend bitwise only on the files. The driver performs all other computations and stores a sample
//! of the rows for the starting points.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jensen_conjugate::models::{Components, Sampled, sample};
use jensen_conjugate::shards::{Ask, Part, PointShards};
use jensen_math::sum::{ColumnMoments, Moments};
use jensen_run::wire::{self, Reader, WireError, Writer};
use jensen_run::{Store, StoreError, tree_sum};

use super::mixture::{Fitting, PointsFit, bernoulli, fit, gaussian, multinomial};
use super::shards::{PointPlan, Rows, ShardSurvey, What, survey_of};
use super::table::Labels;
use super::{Component, MixtureRequest, Points};
use crate::Error;
use crate::job::Around;
use crate::records::{RecordSteps, ShardShare};
use crate::units::Units;

struct Shard {
    path: PathBuf,
    digest: String,
    rows: usize,
}

/// The shards that contain the rows of a fit.
pub struct PointFiles {
    shards: Vec<Shard>,
    /// The index of the first row of each shard, followed by the total number of rows.
    starts: Vec<usize>,
    steps: Box<dyn RecordSteps>,
    failed: Mutex<Option<Error>>,
}

impl PointFiles {
    pub(super) fn failure(&self) -> Option<Error> {
        self.failed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn count(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Sends a request to the shards and returns their answers in the order of the shards. Returns `None` if a shard
    /// fails or has failed before.
    fn ask(
        &self,
        what: What,
        components: usize,
        numbers: Option<Vec<Vec<usize>>>,
        more: impl Fn(&mut Writer<'_>),
    ) -> Option<Vec<Option<Vec<u8>>>> {
        if self.failure().is_some() {
            return None;
        }
        let ask = wire::bytes(|out| {
            out.counts(&[what as u64, components as u64]);
            more(out);
        });
        let of_shard = |number: usize| -> Option<ShardShare<'_>> {
            let shard = &self.shards[number];
            let numbers = match &numbers {
                // A shard that has no rows in the batch receives no request, because an empty array would mean all of
                // its rows.
                Some(numbers) if numbers[number].is_empty() && what == What::Step => return None,
                Some(numbers) => runs(&numbers[number]),
                None => Vec::new(),
            };
            let share = wire::bytes(|out| {
                out.counts(&[number as u64]);
                out.numbers(&numbers);
            });
            Some((number, shard.path.as_path(), shard.digest.as_str(), share))
        };
        let shares: Vec<ShardShare<'_>> = (0..self.shards.len()).filter_map(of_shard).collect();
        match self.steps.solve(&ask, &shares) {
            Ok(answers) => {
                let mut all: Vec<Option<Vec<u8>>> = vec![None; self.shards.len()];
                for ((number, ..), answer) in shares.iter().zip(answers) {
                    all[*number] = Some(answer);
                }
                Some(all)
            }
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    fn fail(&self, error: Error) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get_or_insert(error);
    }

    fn read<T, E: Into<String>>(
        &self,
        answers: Vec<Option<Vec<u8>>>,
        read: impl Fn(&mut Reader<'_>) -> Result<T, E>,
    ) -> Option<Vec<Option<T>>> {
        let one = |answer: Option<Vec<u8>>| {
            answer
                .map(|bytes| read(&mut Reader::new(&bytes)))
                .transpose()
        };
        let found: Result<Vec<Option<T>>, E> = answers.into_iter().map(one).collect();
        found
            .map_err(|error| {
                let error: String = error.into();
                self.fail(Error::Input(format!("the answer of a shard: {error}")))
            })
            .ok()
    }

    /// Divides a batch into one list per shard. Each list contains the indices of the rows within their shard.
    fn divided(&self, batch: &[usize]) -> Vec<Vec<usize>> {
        let mut shares = vec![Vec::new(); self.shards.len()];
        for &row in batch {
            let shard = self.starts.partition_point(|start| *start <= row) - 1;
            shares[shard].push(row - self.starts[shard]);
        }
        shares
    }

    /// Computes the mean log predictive density of the held-out rows and its standard error, in nats.
    fn score(&self, components: usize, lambda: &[f64]) -> Option<(f64, f64)> {
        let answers = self.ask(What::Predict, components, None, |out| out.reals(lambda))?;
        let logs: Vec<f64> = self
            .read(answers, |read| read.reals())?
            .into_iter()
            .flatten()
            .flatten()
            .collect();
        let moments = Moments::of(&logs);
        (!logs.is_empty()).then(|| (moments.mean(), moments.standard_error()))
    }
}

struct Surveyed {
    names: Vec<String>,
    columns: Vec<ColumnMoments>,
    digest: String,
}

impl PointFiles {
    fn surveyed(files: &[PathBuf], steps: Box<dyn RecordSteps>) -> Result<(Self, Surveyed), Error> {
        let shards = files.iter().map(|path| Shard {
            path: path.clone(),
            digest: String::new(),
            rows: 0,
        });
        let mut all = Self {
            shards: shards.collect(),
            starts: Vec::new(),
            steps,
            failed: Mutex::default(),
        };
        let answers = all.ask(What::Survey, 0, None, |_| {});
        let found = answers.and_then(|answers| all.read(answers, survey_of));
        let found: Vec<ShardSurvey> = found
            .ok_or_else(|| all.why())?
            .into_iter()
            .flatten()
            .collect();
        let Some(first) = found.first() else {
            return Err(Error::Input("no file is given".to_owned()));
        };
        for (shard, survey) in all.shards.iter().zip(&found) {
            if survey.names != first.names {
                return Err(Error::Input(format!(
                    "`{}` has the columns {}, but `{}` has {}: all files of a fit need the same columns in the \
                     same order",
                    shard.path.display(),
                    listed(&survey.names),
                    files[0].display(),
                    listed(&first.names)
                )));
            }
        }
        let names = first.names.clone();
        let digest = found
            .iter()
            .map(|survey| survey.digest.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        let columns: Vec<Vec<ColumnMoments>> =
            found.iter().map(|survey| survey.columns.clone()).collect();
        let plus = |first: Vec<ColumnMoments>, second: Vec<ColumnMoments>| {
            first
                .into_iter()
                .zip(second)
                .map(|(x, y)| x.plus(y))
                .collect()
        };
        let columns = tree_sum(columns, plus).unwrap_or_default();
        if let Some(empty) = columns.iter().position(|column| column.count == 0.0) {
            return Err(Error::Input(format!(
                "the column `{}` has no number in any file: remove it",
                names[empty]
            )));
        }
        let mut start = 0;
        for (shard, survey) in all.shards.iter_mut().zip(found) {
            all.starts.push(start);
            shard.rows = survey.rows;
            shard.digest = survey.digest;
            start += shard.rows;
        }
        all.starts.push(start);
        let survey = Surveyed {
            names,
            columns,
            digest,
        };
        Ok((all, survey))
    }

    fn why(&self) -> Error {
        let unknown = || Error::Input("a shard did not answer".to_owned());
        self.failure().unwrap_or_else(unknown)
    }

    /// Returns the sum Σ T(x) over all rows, the distinct sizes of the points with their frequencies, and the
    /// concatenated rows whose indices are in `wanted`.
    fn begun(&self, wanted: &[usize], dim: usize) -> Result<Begun, Error> {
        let answers = self.ask(What::Begin, 0, Some(self.divided(wanted)), |_| {});
        let read = |read: &mut Reader<'_>| {
            Ok::<_, WireError>((read.reals()?, read.reals()?, read.reals()?))
        };
        let found = answers.and_then(|answers| self.read(answers, read));
        let found = found.ok_or_else(|| self.why())?;
        let (mut totals, mut sizes, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for (of_totals, of_sizes, of_rows) in found.into_iter().flatten() {
            totals.push(of_totals);
            sizes.extend_from_slice(of_sizes.as_chunks().0);
            rows.push(of_rows);
        }
        let plus = |mut first: Vec<f64>, second: Vec<f64>| {
            first.iter_mut().zip(&second).for_each(|(sum, x)| *sum += x);
            first
        };
        let totals = tree_sum(totals, plus).unwrap_or_default();
        let mut taken = vec![0; rows.len()];
        let mut sampled = Vec::with_capacity(wanted.len() * dim);
        for row in wanted {
            let shard = self.starts.partition_point(|start| start <= row) - 1;
            sampled.extend_from_slice(&rows[shard][taken[shard]..taken[shard] + dim]);
            taken[shard] += dim;
        }
        Ok((totals, merged_sizes(&sizes), sampled))
    }
}

type Begun = (Vec<f64>, Vec<(f64, f64)>, Vec<f64>);

/// Returns the distinct sizes in ascending order, each with the total number of points that have this size.
fn merged_sizes(sizes: &[[f64; 2]]) -> Vec<(f64, f64)> {
    let mut sorted = sizes.to_vec();
    sorted.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let alike = sorted.chunk_by(|a, b| a[0] == b[0]);
    alike
        .map(|same| (same[0][0], same.iter().map(|pair| pair[1]).sum()))
        .collect()
}

fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(4)
        .map(|name| format!("`{name}`"))
        .collect();
    let more = if names.len() > shown.len() {
        ", …"
    } else {
        ""
    };
    format!("{}{more} ({})", shown.join(", "), names.len())
}

/// Fits a mixture to the rows of several files. Each file is a shard, which `steps` evaluates.
///
/// Up to rounding errors, the fit of a single file equals the fit that [`fit_mixture`](super::fit_mixture) returns for
/// the same rows. The fit of several files also equals this fit if no rows are held out. If rows are held out, each
/// shard chooses its own held-out rows.
///
/// # Errors
/// Returns the same errors as [`fit_mixture`](super::fit_mixture). Also fails if the files have different columns or if
/// a shard does not answer. After a shard has failed, the run can be resumed from its last checkpoint.
pub fn fit_mixture_files(
    request: &MixtureRequest,
    files: &[PathBuf],
    steps: &dyn Fn(&str) -> Box<dyn RecordSteps>,
    around: Around<'_>,
) -> Result<PointsFit, Error> {
    request.check()?;
    request.points.settings()?;
    if request.several_kinds() {
        return Err(Error::setting(
            "mixtures of several files support only Gaussian, binary or multinomial components: fit one table, \
             or remove --columns",
        ));
    }
    if request.weights.is_some() {
        return Err(Error::setting(
            "rows of several files cannot have weights: fit one table, or remove --weights",
        ));
    }
    let mut plan = PointPlan {
        request: request.clone(),
        columns: Vec::new(),
    };
    let planned = |plan: &PointPlan| serde_json::to_string(plan).map_err(Error::input);
    let (mut files, survey) = PointFiles::surveyed(files, steps(&planned(&plan)?))?;
    let columns = survey.columns.iter();
    plan.columns = columns.map(|c| [c.count, c.mean, c.squares]).collect();
    files.steps = steps(&planned(&plan)?);
    let count = files.count();
    let wanted = sample(count, request.points.seed()).unwrap_or_else(|| (0..count).collect());
    let (totals, sizes, rows) = files.begun(&wanted, survey.names.len())?;
    let points = Points {
        source: match &files.shards[..] {
            [only] => only.path.display().to_string(),
            [first, ..] => format!(
                "{} and {} more files",
                first.path.display(),
                files.shards.len() - 1
            ),
            [] => String::new(),
        },
        names: survey.names,
        train: rows,
        heldout: Vec::new(),
        digest: survey.digest,
        missing: None,
        elsewhere: Some(count),
        weights: Arc::default(),
        labels: Labels::default(),
        heldout_weights: Vec::new(),
    };
    let rows = Rows::of(request, points.clone(), &survey.columns)?.with_correlation(&points);
    let files = &files;
    let width = points.dim();
    let units = match &rows {
        Rows::Gaussian(rows) => rows.2.clone(),
        _ => Units::as_they_are(width),
    };
    let known = units.of_kept(&survey.columns).into_iter();
    let scaled = known.zip(units.log_scales());
    let all = Elsewhere {
        request,
        points: &points,
        units: &units,
        files,
        totals,
        sizes,
        log_jacobian: -scaled
            .map(|(column, scale)| column.count * scale)
            .sum::<f64>(),
    };
    match &rows {
        Rows::Gaussian(rows) => all.fit(
            &rows.0,
            |lambda, weight| gaussian(&rows.0, &units, lambda, weight),
            around,
        ),
        Rows::Bernoulli(rows, _) => all.fit(
            rows,
            |lambda, weight| bernoulli(rows, lambda, weight),
            around,
        ),
        Rows::Multinomial(rows, _) => all.fit(
            rows,
            |lambda, weight| multinomial(rows, lambda, weight),
            around,
        ),
    }
}

struct Elsewhere<'a> {
    request: &'a MixtureRequest,
    points: &'a Points,
    units: &'a Units,
    files: &'a PointFiles,
    totals: Vec<f64>,
    sizes: Vec<(f64, f64)>,
    log_jacobian: f64,
}

impl Elsewhere<'_> {
    fn fit<C: Components>(
        self,
        rows: &C,
        component: impl Fn(&[f64], f64) -> Component,
        around: Around<'_>,
    ) -> Result<PointsFit, Error> {
        let shards = self.request.sizes().all().map(|k| Asked {
            files: self.files,
            components: k as usize,
        });
        let shards: Vec<Asked<'_>> = shards.collect();
        let sampled = |shards| Sampled {
            sample: rows,
            points: self.points.count(),
            totals: self.totals.clone(),
            sizes: self.sizes.clone(),
            log_jacobian: self.log_jacobian,
            shards,
        };
        let all: Vec<Sampled<'_, C>> = shards.iter().map(|shards| sampled(shards)).collect();
        let score = |k: usize, lambda: &[f64]| self.files.score(k, lambda);
        let trains: Vec<&Sampled<'_, C>> = all.iter().collect();
        let data = Fitting {
            points: self.points,
            units: self.units,
            elsewhere: Some(self.files),
            levels: &[],
        };
        fit(self.request, &data, &trains, &score, component, around)
    }
}

struct Asked<'a> {
    files: &'a PointFiles,
    components: usize,
}

impl PointShards for Asked<'_> {
    fn solve(&self, ask: &Ask<'_>, batch: &[usize]) -> Option<Part> {
        // The value `None` stands for a batch of all rows, whatever their order.
        let numbers = (batch.len() < self.files.count()).then(|| self.files.divided(batch));
        let answers = self
            .files
            .ask(What::Step, self.components, numbers, |out| ask.write(out))?;
        let parts = self.files.read(answers, Part::read)?;
        let parts: Vec<Part> = parts.into_iter().map(Option::unwrap_or_default).collect();
        tree_sum(parts, |first, second| {
            if second.statistics.is_empty() {
                first
            } else {
                first.plus(&second)
            }
        })
    }

    fn bound(&self, expected: &[f64]) -> Option<f64> {
        let answers = self.files.ask(What::Bound, self.components, None, |out| {
            out.reals(expected)
        })?;
        let parts = self.files.read(answers, |read| read.fixed_reals::<1>())?;
        tree_sum(
            parts.into_iter().flatten().map(|[x]| x).collect(),
            |x, y| x + y,
        )
    }
}

/// The checkpoints of a run with shards. After a shard has failed, no checkpoint is stored, because later decisions may
/// depend on the missing answer.
pub(super) struct Guarded<'a> {
    pub(super) store: &'a mut dyn Store,
    pub(super) files: &'a PointFiles,
}

impl Store for Guarded<'_> {
    fn save(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        match self.files.failure() {
            None => self.store.save(bytes),
            Some(_) => Ok(()),
        }
    }
}

/// Encodes a list of indices as runs of consecutive indices. Each run is encoded as its first index and its length.
fn runs(numbers: &[usize]) -> Vec<u32> {
    let mut runs: Vec<u32> = Vec::new();
    for &number in numbers {
        let number = number as u32;
        match runs.as_chunks_mut().0.last_mut() {
            Some([first, count]) if *first + *count == number => *count += 1,
            _ => runs.extend([number, 1]),
        }
    }
    runs
}
