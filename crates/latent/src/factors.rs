//! Exponential-family factor analysis of tables with missing entries, by variational EM over the loadings.
//!
//! Row n of a table has K factor scores z_n ~ N(0, I), and entry (n, i) has the linear predictor `w_iᵀz_n + b_i`. The
//! E-step fits the latent Gaussian model of each row by the dual, with one dual variable per observed entry. For each
//! column, the M-step maximises `−Σ f(w_iᵀm_n + b_i, w_iᵀV_n w_i) − ½ ridge |w_i|²` over (w_i, b_i) by Newton steps
//! with the curvature `Σ 2 ∂f/∂v ([m_n; 1][m_n; 1]ᵀ + V_n)`. A step that would lower the objective is halved until it
//! no longer does. Neither the E-step nor the M-step lowers `Σ bound_n − ½ ridge Σ |w_i|²`. The algorithm also
//! maximises over the free parameters of the likelihood, one after the other. With a normal likelihood and a learnt
//! variance, the model is probabilistic principal component analysis (Tipping and Bishop 1999) with a ridge penalty on
//! the loadings.

use std::sync::Arc;

use jensen_math::dense::eigen_symmetric;
use jensen_math::rng::{Purpose, Stream};
use jensen_math::sum::ColumnMoments;
use jensen_run::{
    Algorithm, Archive, ArchiveError, Budget, Control, Evidence, Identity, Record, Silent,
    Snapshot, Status, Step, run,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::likelihood::Fitted;
use crate::linear::kernels::{cholesky, dot, inverse_of, solve};
use crate::site::Sites;
use crate::{
    Covariance, Dense, Design, Error, LatentModel, Likelihood, Observations, Settings, SiteBound,
    Structure, Warm, fit,
};

/// A factor model and its data.
#[derive(Clone, Debug, PartialEq)]
pub struct FactorModel {
    /// The table, an N × D matrix with NaN for missing entries.
    pub table: Dense,
    /// Number of factors K.
    pub factors: usize,
    /// The likelihood of an entry. It must have a single linear predictor.
    pub likelihood: Likelihood,
    /// The bound on the expected log density of an entry.
    pub bound: SiteBound,
}

/// The settings of a fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FactorSettings {
    /// Settings of the rows' fits.
    pub fit: Settings,
    /// Precision of the normal prior of the loadings. The prior keeps the loadings finite even if the scores separate
    /// the values of a binary column perfectly.
    pub ridge: f64,
    /// EM ends when an iteration raises its objective by less than this, in nats.
    pub tolerance: f64,
    /// Seed of the initial loadings.
    pub seed: u64,
    /// Names of the likelihood's parameters that are held fixed. EM learns the other parameters from their starting
    /// values.
    pub fixed: Vec<String>,
}

impl Default for FactorSettings {
    /// A ridge of 0.01 and a tolerance of 1e-4 nats per iteration.
    fn default() -> Self {
        Self {
            fit: Settings::default(),
            ridge: 0.01,
            tolerance: 1e-4,
            seed: 0,
            fixed: Vec::new(),
        }
    }
}

/// A fitted factor model.
#[derive(Clone, Debug, PartialEq)]
pub struct FactorFit {
    /// The loadings w, as a D × K matrix.
    pub loadings: Dense,
    /// The intercepts b, one per column.
    pub intercepts: Vec<f64>,
    /// Posterior means of the scores, as an N × K matrix.
    pub scores: Dense,
    /// Posterior variances of the scores, as an N × K matrix.
    pub score_variances: Dense,
    /// The likelihood with its fitted parameters.
    pub likelihood: Likelihood,
    /// The sum over rows of the bounds on log p(y | w, b), in nats.
    pub bound: f64,
    /// The objective of EM, which is `bound` minus the ridge penalty.
    pub objective: f64,
    /// The status at the end of the fit.
    pub status: Status,
    /// Number of EM iterations.
    pub iterations: u64,
    /// Duration of the fit in seconds.
    pub seconds: f64,
}

impl FactorFit {
    /// Computes the mean and the variance of the linear predictor of entry (row, column), which may be missing. The
    /// computation treats the posterior covariance of the scores as diagonal.
    pub fn predictor(&self, row: usize, column: usize) -> (f64, f64) {
        let k = self.loadings.cols;
        let (mut mean, mut variance) = (self.intercepts[column], 0.0);
        for l in 0..k {
            let w = self.loadings.get(column, l);
            mean += w * self.scores.get(row, l);
            variance += w * w * self.score_variances.get(row, l);
        }
        (mean, variance)
    }
}

#[derive(Clone, Debug, PartialEq)]
struct State {
    /// The loadings w_i followed by the intercept b_i for each column i, in K + 1 consecutive numbers.
    loadings: Vec<f64>,
    parameters: Vec<f64>,
    objective: f64,
    warm: Vec<Option<Warm>>,
}

impl Snapshot for State {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("loadings", &self.loadings);
        archive.put("parameters", &self.parameters);
        archive.put("objective", &[self.objective]);
        archive.set("rows", self.warm.len());
        for (n, warm) in self.warm.iter().enumerate() {
            if let Some(warm) = warm {
                archive.put(&format!("alpha{n}"), &warm.alpha);
                archive.put(&format!("lambda{n}"), &warm.lambda);
                archive.put(&format!("predictor{n}"), &warm.predictor);
            }
        }
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let rows: usize = archive.get("rows")?;
        let warm = |n: usize| {
            Some(Warm {
                alpha: archive.vec(&format!("alpha{n}")).ok()?,
                lambda: archive.vec(&format!("lambda{n}")).ok()?,
                predictor: archive.vec(&format!("predictor{n}")).ok()?,
            })
        };
        Ok(Self {
            loadings: archive.vec("loadings")?,
            parameters: archive.vec("parameters")?,
            objective: archive.vec_of("objective", 1)?[0],
            warm: (0..rows).map(warm).collect(),
        })
    }
}

struct RowPosterior {
    bound: f64,
    mean: Vec<f64>,
    covariance: Dense,
    warm: Option<Warm>,
}

struct Em<'a> {
    least: f64,
    model: &'a FactorModel,
    settings: FactorSettings,
    /// The observed columns of each row, and the observed rows of each column.
    columns_of: Vec<Vec<usize>>,
    rows_of: Vec<Vec<usize>>,
    entries: Vec<Observations>,
    sites: Vec<Sites>,
}

const SEARCH: usize = 12;

const FAR: f64 = 2.0;

impl Em<'_> {
    fn width(&self) -> usize {
        self.model.factors + 1
    }

    fn sites_at(&self, parameters: &[f64]) -> Result<Vec<Sites>, Error> {
        let likelihood = self.model.likelihood.with_values(parameters);
        let sites = |entries: &Observations| {
            let column = LatentModel {
                prior: Structure {
                    mean: vec![0.0],
                    covariance: Covariance::Diagonal(vec![1.0]),
                },
                design: Design::Select(vec![0; entries.response.len()]),
                likelihood,
                bound: self.model.bound,
                observations: entries.clone(),
            };
            Sites::new(&column, self.settings.fit.nodes)
        };
        self.entries.iter().map(sites).collect()
    }

    fn prepared(&mut self, state: &State) -> Result<(), Error> {
        if self.sites.is_empty() {
            self.sites = self.sites_at(&state.parameters)?;
        }
        Ok(())
    }

    fn marginals(&self, i: usize, rows: &[RowPosterior], w: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let k = self.model.factors;
        let members = self.rows_of[i].iter();
        members
            .map(|&n| {
                let row = &rows[n];
                let pull: Vec<f64> = (0..k)
                    .map(|l| dot(row.covariance.col(l), &w[..k]))
                    .collect();
                (dot(&row.mean, &w[..k]) + w[k], dot(&pull, &w[..k]))
            })
            .unzip()
    }

    /// Performs the M-step of the likelihood's parameters. Each free parameter makes a full step, which sets the
    /// derivative of `Σ f` with respect to the parameter's logarithm to zero. If this full step does not lower the sum,
    /// the parameter moves only part of the way.
    fn learn(&mut self, rows: &[RowPosterior], state: &mut State) -> Result<(), Error> {
        let width = self.width();
        let marginals: Vec<(Vec<f64>, Vec<f64>)> = (0..self.model.table.cols)
            .map(|i| self.marginals(i, rows, &state.loadings[i * width..(i + 1) * width]))
            .collect();
        let at = |parameters: &[f64], which: usize| -> Result<(f64, f64, Vec<Sites>), Error> {
            let (sites, likelihood) = (
                self.sites_at(parameters)?,
                self.model.likelihood.with_values(parameters),
            );
            let (mut loss, mut slope) = (0.0, 0.0);
            for ((sites, entries), (m, v)) in sites.iter().zip(&self.entries).zip(&marginals) {
                loss += sites.values(m, v).iter().map(|x| x.f).sum::<f64>();
                let data = entries;
                let by = likelihood.by_parameters(&Fitted { data, sites, m, v });
                slope -= parameters[which] * by[which];
            }
            Ok((loss, slope, sites))
        };
        let names = self.model.likelihood.parameters();
        let mut best: Option<Vec<Sites>> = None;
        for which in 0..names.len() {
            if self.settings.fixed.iter().any(|name| name == names[which]) {
                continue;
            }
            let start = state.parameters[which];
            let moved = |x: f64| {
                let mut parameters = state.parameters.clone();
                parameters[which] = (start * x.exp()).max(self.least);
                parameters
            };
            let (mut loss, slope, _) = at(&moved(0.0), which)?;
            // After a downhill step, the secant joins points on either side of the minimum.
            let (mut a, mut at_a) = (0.0, slope);
            let (mut b, mut kept) = (-slope.signum() * 0.1, 0.0);
            for _ in 0..SEARCH {
                let (value, slope, sites) = at(&moved(b), which)?;
                if value <= loss {
                    (loss, kept, best) = (value, b, Some(sites));
                }
                let next = match slope == at_a {
                    true => break,
                    false => b - slope * (b - a) / (slope - at_a),
                };
                (a, at_a) = (b, slope);
                b = next.clamp(-FAR, FAR);
                if (b - a).abs() < 1e-7 {
                    break;
                }
            }
            state.parameters = moved(kept);
        }
        if let Some(sites) = best {
            self.sites = sites;
        }
        Ok(())
    }

    fn row_model(&self, n: usize, state: &State) -> LatentModel {
        let loadings = &state.loadings;
        let (k, width) = (self.model.factors, self.width());
        let columns = &self.columns_of[n];
        LatentModel {
            prior: Structure {
                mean: vec![0.0; k],
                covariance: Covariance::Diagonal(vec![1.0; k]),
            },
            design: Design::Dense(Arc::new(Dense::from_fn(columns.len(), k, |r, l| {
                loadings[columns[r] * width + l]
            }))),
            likelihood: self.model.likelihood.with_values(&state.parameters),
            bound: self.model.bound,
            observations: Observations {
                response: columns
                    .iter()
                    .map(|&i| self.model.table.get(n, i))
                    .collect(),
                offset: Some(columns.iter().map(|&i| loadings[i * width + k]).collect()),
                ..Observations::default()
            },
        }
    }

    fn row(&self, n: usize, state: &State) -> Result<RowPosterior, Error> {
        let k = self.model.factors;
        if self.columns_of[n].is_empty() {
            return Ok(RowPosterior {
                bound: 0.0,
                mean: vec![0.0; k],
                covariance: Dense::from_fn(k, k, |i, j| f64::from(i == j)),
                warm: None,
            });
        }
        let (model, warm) = (self.row_model(n, state), state.warm[n].as_ref());
        let clock = || 0.0;
        let mut silent = Silent;
        let mut control = Control::new(Budget::iterations(2000), &clock, &mut silent);
        let identity = Identity {
            algorithm: "latent".to_owned(),
            settings: serde_json::Value::Null,
            seed: 0,
            model_hash: String::new(),
            data_hash: String::new(),
            simd: String::new(),
        };
        // A warm start that already satisfies the tolerance would hide the gain from new loadings.
        let mut settings = self.settings.fit;
        let share = self.settings.tolerance / self.model.table.rows as f64;
        settings.tolerance = settings.tolerance.min(0.1 * share);
        let fitted = fit(&model, &settings, warm, false, &identity, &mut control)?;
        // V = (I + WᵀΛW)⁻¹.
        let mut precision = crate::linear::design::gram(&model.design, k, &fitted.lambda);
        for l in 0..k {
            precision.data[l * k + l] += 1.0;
        }
        cholesky(&mut precision).ok_or_else(|| {
            Error::Prior(format!(
                "row {}: the posterior precision of its scores is not positive definite",
                n + 1
            ))
        })?;
        Ok(RowPosterior {
            bound: fitted.bound,
            covariance: inverse_of(&precision),
            warm: Some(fitted.warm()),
            mean: fitted.mean,
        })
    }

    fn rows(&self, state: &State) -> Result<Vec<RowPosterior>, Error> {
        (0..self.model.table.rows)
            .into_par_iter()
            .map(|n| self.row(n, state))
            .collect()
    }

    fn column(&self, i: usize, rows: &[RowPosterior], start: &[f64]) -> Vec<f64> {
        let (k, width) = (self.model.factors, self.width());
        let members = &self.rows_of[i];
        let mut w = start.to_vec();
        if members.is_empty() {
            return w;
        }
        let at = |w: &[f64]| {
            let mut pulls = Vec::with_capacity(members.len());
            let (mut m, mut v) = (Vec::new(), Vec::new());
            for &n in members {
                let row = &rows[n];
                let pull: Vec<f64> = (0..k)
                    .map(|l| dot(row.covariance.col(l), &w[..k]))
                    .collect();
                m.push(dot(&row.mean, &w[..k]) + w[k]);
                v.push(dot(&pull, &w[..k]));
                pulls.push(pull);
            }
            let values = self.sites[i].values(&m, &v);
            let loss = values.iter().map(|x| x.f).sum::<f64>()
                + 0.5 * self.settings.ridge * dot(&w[..k], &w[..k]);
            (loss, values, pulls)
        };
        let (mut loss, mut values, mut pulls) = at(&w);
        for _ in 0..5 {
            let mut gradient = vec![0.0; width];
            let mut hessian = Dense::zeros(width, width);
            for ((&n, value), pull) in members.iter().zip(&values).zip(&pulls) {
                let row = &rows[n];
                let curvature = (2.0 * value.by_variance).max(1e-12);
                for l in 0..width {
                    let x = if l < k { row.mean[l] } else { 1.0 };
                    gradient[l] += value.by_mean * x;
                    if l < k {
                        gradient[l] += 2.0 * value.by_variance * pull[l];
                    }
                    for j in 0..=l {
                        let other = if j < k { row.mean[j] } else { 1.0 };
                        let spread = if l < k { row.covariance.get(l, j) } else { 0.0 };
                        hessian.data[j * width + l] += curvature * (x * other + spread);
                    }
                }
            }
            for l in 0..k {
                gradient[l] += self.settings.ridge * w[l];
                hessian.data[l * width + l] += self.settings.ridge;
            }
            hessian.data[k * width + k] += 1e-9;
            if cholesky(&mut hessian).is_none() {
                return w;
            }
            let mut step = gradient.clone();
            solve(&hessian, &mut step);
            let slope = dot(&gradient, &step);
            let mut t = 1.0;
            let moved = loop {
                let trial: Vec<f64> = w.iter().zip(&step).map(|(w, s)| w - t * s).collect();
                let after = at(&trial);
                if after.0 <= loss - 1e-4 * t * slope {
                    break Some((trial, after));
                }
                t *= 0.5;
                if t < 1e-8 {
                    break None;
                }
            };
            let Some((trial, after)) = moved else {
                return w;
            };
            let gain = loss - after.0;
            w = trial;
            (loss, values, pulls) = after;
            if gain < 1e-9 * (1.0 + loss.abs()) {
                break;
            }
        }
        w
    }

    fn penalty(&self, loadings: &[f64]) -> f64 {
        let k = self.model.factors;
        let squares: f64 = loadings
            .chunks(self.width())
            .map(|w| dot(&w[..k], &w[..k]))
            .sum();
        0.5 * self.settings.ridge * squares
    }
}

impl Algorithm for Em<'_> {
    type State = State;
    type Output = Result<(State, Vec<RowPosterior>), Error>;

    fn init(&mut self) -> Result<State, Status> {
        let (k, width) = (self.model.factors, self.width());
        let columns = self.model.table.cols;
        let mut parameters = self.model.likelihood.values();
        if let Some((loadings, variance)) = principal(self.model) {
            if self.settings.fixed.is_empty() {
                parameters = vec![variance];
            }
            return Ok(State {
                loadings,
                parameters,
                objective: f64::NEG_INFINITY,
                warm: vec![None; self.model.table.rows],
            });
        }
        let mut loadings = vec![0.0; width * columns];
        for i in 0..columns {
            let mut stream = Stream::new(
                self.settings.seed,
                Purpose::new("factor loadings"),
                0,
                i as u64,
            );
            for l in 0..k {
                loadings[i * width + l] = stream.uniform() - 0.5;
            }
        }
        Ok(State {
            loadings,
            parameters,
            objective: f64::NEG_INFINITY,
            warm: vec![None; self.model.table.rows],
        })
    }

    fn step(&mut self, state: &mut State, iteration: u64) -> Step {
        let rows = match self.prepared(state).and_then(|()| self.rows(state)) {
            Ok(rows) => rows,
            Err(error) => {
                return Step::finish(
                    Record::new(iteration),
                    Status::Diverged {
                        at: iteration,
                        reason: error.to_string(),
                    },
                );
            }
        };
        let bound: f64 = rows.iter().map(|r| r.bound).sum();
        let objective = bound - self.penalty(&state.loadings);
        let gain = objective - state.objective;
        state.objective = objective;
        state.warm = rows.iter().map(|r| r.warm.clone()).collect();
        let record = Record::new(iteration)
            .with_elbo(bound, None)
            .with("objective", objective);
        if gain.abs() <= self.settings.tolerance {
            let evidence = Evidence {
                rule: format!("the last iteration gained {gain:.1e} nats"),
                remaining: None,
                standard_error: None,
            };
            return Step::finish(record, Status::Converged { evidence });
        }
        let width = self.width();
        state.loadings = (0..self.model.table.cols)
            .into_par_iter()
            .map(|i| self.column(i, &rows, &state.loadings[i * width..(i + 1) * width]))
            .collect::<Vec<_>>()
            .concat();
        if let Err(error) = self.learn(&rows, state) {
            let reason = error.to_string();
            return Step::finish(
                record,
                Status::Diverged {
                    at: iteration,
                    reason,
                },
            );
        }
        Step::go_on(record)
    }

    fn output(&mut self, state: &State) -> Self::Output {
        Ok((state.clone(), self.rows(state)?))
    }
}

/// Smallest variance of normal noise, relative to the columns' mean variance. It is five orders of magnitude above
/// rounding error. Without a limit, the likelihood would be unbounded if the factors reproduce the rows exactly. A fit
/// that ends at this limit reports this.
pub const NO_NOISE: f64 = 1e-10;

fn least_variance(model: &FactorModel) -> f64 {
    if model.likelihood.name() != "gaussian" {
        return 0.0;
    }
    let columns = 0..model.table.cols;
    let variances = columns.map(|i| {
        let moments = ColumnMoments::of_column(model.table.col(i).iter().copied());
        moments.squares / moments.count.max(1.0)
    });
    NO_NOISE * variances.sum::<f64>() / model.table.cols as f64
}

/// A fit starts from principal components if the table has at most this many columns. For this many columns, the
/// computation of the eigenvectors takes a second.
const WIDEST: usize = 200;

/// Computes starting values for a model with normal noise by principal component analysis. The function returns the
/// variance of the noise, and for each column K loadings followed by the intercept. For a complete table these values
/// maximise the likelihood (Tipping and Bishop 1999). Missing entries are set to the means of their columns.
fn principal(model: &FactorModel) -> Option<(Vec<f64>, f64)> {
    let (table, k) = (&model.table, model.factors);
    let (n, d) = (table.rows, table.cols);
    if model.likelihood.name() != "gaussian" || d > WIDEST || k >= d {
        return None;
    }
    let columns: Vec<(f64, Vec<f64>)> = (0..d)
        .map(|i| {
            let moments = ColumnMoments::of_column(table.col(i).iter().copied());
            let off = table
                .col(i)
                .iter()
                .map(|x| if x.is_nan() { 0.0 } else { x - moments.mean });
            (moments.mean, off.collect())
        })
        .collect();
    let covariance: Vec<f64> = (0..d * d)
        .into_par_iter()
        .map(|at| dot(&columns[at / d].1, &columns[at % d].1) / n as f64)
        .collect();
    let (values, vectors) = eigen_symmetric(&covariance, d);
    // The eigenvalues are ascending.
    let (rest, largest) = values.split_at(d - k);
    let variance = rest.iter().sum::<f64>() / rest.len() as f64;
    let variance = variance.max(least_variance(model)).max(f64::MIN_POSITIVE);
    let mut loadings = Vec::with_capacity(d * (k + 1));
    for (i, (mean, _)) in columns.iter().enumerate() {
        for (l, value) in largest.iter().enumerate().rev() {
            let length = (value - variance).max(0.0).sqrt();
            loadings.push(length * vectors[(d - k + l) * d + i]);
        }
        loadings.push(*mean);
    }
    Some((loadings, variance))
}

/// Fits a factor model under `control`.
///
/// # Errors
/// Fails if the table has no entries or entries outside the likelihood's domain, if there are no factors, if the
/// likelihood has several linear predictors, or if the checkpoint comes from another run.
pub fn fit_factors(
    model: &FactorModel,
    settings: &FactorSettings,
    identity: &Identity,
    control: &mut Control<'_>,
) -> Result<FactorFit, Error> {
    let table = &model.table;
    let (n, d, k) = (table.rows, table.cols, model.factors);
    if k == 0 || d == 0 {
        return Err(Error::Data(
            "a factor model needs at least one factor and one column".to_owned(),
        ));
    }
    if model.likelihood.predictors() != 1 {
        return Err(Error::Unsupported(format!(
            "the likelihood `{}` has several linear predictors per observation, so factor analysis does not \
             support it",
            model.likelihood.name()
        )));
    }
    let seen = |n: usize, i: usize| !table.get(n, i).is_nan();
    let rows_of: Vec<Vec<usize>> = (0..d)
        .map(|i| (0..n).filter(|&r| seen(r, i)).collect())
        .collect();
    let columns_of = (0..n)
        .map(|r| (0..d).filter(|&i| seen(r, i)).collect())
        .collect();
    let mut entries = Vec::with_capacity(d);
    for (i, rows) in rows_of.iter().enumerate() {
        let own = Observations::new(rows.iter().map(|&r| table.get(r, i)).collect());
        for (y, row) in own.response.iter().zip(rows) {
            if let Some(domain) = model.likelihood.refuses(*y, 1.0) {
                return Err(Error::Data(format!(
                    "column {}, row {}: the entry is {y}, but the likelihood `{}` needs {domain}",
                    i + 1,
                    row + 1,
                    model.likelihood.name()
                )));
            }
        }
        entries.push(own);
    }
    if rows_of.iter().all(Vec::is_empty) {
        return Err(Error::Data("the table has no entries".to_owned()));
    }
    let mut em = Em {
        least: least_variance(model),
        model,
        settings: settings.clone(),
        columns_of,
        rows_of,
        entries,
        sites: Vec::new(),
    };
    let outcome = run(&mut em, identity, control)?;
    let (state, rows) = outcome
        .output
        .ok_or_else(|| Error::Data(format!("the fit could not start: {}", outcome.status)))??;
    let bound: f64 = rows.iter().map(|r| r.bound).sum();
    let width = k + 1;
    Ok(FactorFit {
        likelihood: model.likelihood.with_values(&state.parameters),
        loadings: Dense::from_fn(d, k, |i, l| state.loadings[i * width + l]),
        intercepts: (0..d).map(|i| state.loadings[i * width + k]).collect(),
        scores: Dense::from_fn(n, k, |r, l| rows[r].mean[l]),
        score_variances: Dense::from_fn(n, k, |r, l| rows[r].covariance.get(l, l)),
        bound,
        objective: bound - em.penalty(&state.loadings),
        status: outcome.status,
        iterations: outcome.iterations,
        seconds: outcome.seconds,
    })
}
