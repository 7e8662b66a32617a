//! Fits of mixtures by adaptive importance sampling.
//!
//! Each iteration draws from the current mixture and weights the draws by the density. Half of the draws have the tails
//! of a t distribution. The components share each draw in proportion to their densities. The iteration then computes
//! the weight, mean and covariance of each component from its share of the weighted draws. This is a step of
//! expectation maximisation on KL(p‖q), so that the mixture covers all mass that the draws reach (Cappé, Douc, Guillin,
//! Marin and Robert 2008). While the mixture has fewer than K components, iterations add components where the weights
//! are largest, with the covariance of the surrounding draws (Raftery and Bao 2010, section 3.2). The next iteration
//! measures the quality of the mixture on its own draws, to which the mixture was not fitted. The quality is the
//! effective share of these draws, computed from the entropy of their weights. The result is the best mixture of all
//! iterations.

use std::sync::Arc;

use jensen_density::{Lanes, LanesMut, TwiceDifferentiable};
use jensen_math::special::{lgamma, log_sum_exp_slice};
use jensen_run::{
    Algorithm, Archive, ArchiveError, Evidence, Record, SettingError, Snapshot, Status, Step,
};
use serde::{Deserialize, Serialize};

use crate::calls::Calls;
use crate::dense::cholesky;
use crate::engine::{Beginning, Engine, Fitting, MethodSettings, MethodState};
use crate::error::{FitError, positive};
use crate::family::mixture::{Component, Mixture, log_sums};
use crate::family::{Family, FamilyKind, Smoothness};
use crate::noise::{FREEDOM, NoisePurpose, NoiseSource};
use crate::oracle::Estimate;
use crate::psis::psis;
use crate::reduce::{dot, sum};
use crate::sizes::LANES;

/// The settings of adaptive importance sampling for mixtures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MomentsSettings {
    /// The number of draws per iteration. The fit uses more draws if `draws_a_coordinate` times the number of
    /// coordinates is larger than this number.
    pub draws: usize,
    /// The number of draws per iteration and coordinate (see `draws`).
    pub draws_a_coordinate: usize,
    /// The largest number of iterations.
    pub max_iterations: u64,
}

impl Default for MomentsSettings {
    fn default() -> Self {
        Self {
            draws: 8192,
            draws_a_coordinate: 400,
            max_iterations: 60,
        }
    }
}

/// The largest dimension. A component has d²/2 parameters, but there are only a few thousand weighted draws to
/// determine them.
const LARGEST: usize = 128;

/// The effective share must rise by this relative amount to count as an improvement. With a smaller rise, the mixture
/// needs about as many draws as before.
const RISE: f64 = 0.01;

/// After this many iterations without an improvement, the fit ends. A new component can lower the share before its
/// weight and covariance have been fitted.
const PATIENCE: u64 = 6;

/// The smallest effective sample size, as a share of the draws, of a mixture that counts as converged. With a smaller
/// share of a few thousand draws, the new components depend on a handful of draws.
const LEAST_SHARE: f64 = 0.005;

/// An iteration averages a component's old covariance with the covariance of the weighted draws. The old covariance
/// counts as much as this many draws per coordinate.
const INERTIA: f64 = 2.0;

/// The covariance of a new component is computed from this share of the draws, namely those closest to the component.
const AROUND: f64 = 0.05;

impl MomentsSettings {
    fn draws(&self, dim: usize) -> usize {
        let wanted = self.draws.max(self.draws_a_coordinate * dim);
        wanted.next_multiple_of(2)
    }
}

impl MethodSettings for MomentsSettings {
    const NAME: &'static str = "moments";

    fn validate(&self) -> Result<(), SettingError> {
        positive([
            ("draws", self.draws as f64),
            ("draws_a_coordinate", self.draws_a_coordinate as f64),
            ("max_iterations", self.max_iterations as f64),
        ])
    }

    fn lanes(&self, dim: usize) -> usize {
        self.draws(dim)
    }

    fn suits(&self, smoothness: Smoothness) -> bool {
        smoothness == Smoothness::None
    }
}

impl Fitting for MomentsSettings {
    type State = MomentsState;

    fn begin<'a, D: TwiceDifferentiable>(
        &self,
        at: Beginning<'a, D>,
    ) -> Result<Box<dyn Engine + 'a>, FitError> {
        let dim = at.density.dim();
        let Some(FamilyKind::Mixture { components }) = at.family.name().kind() else {
            return Err(FitError::Setting(format!(
                "importance-weighted moments fit mixtures, not the family `{}`",
                at.family.name()
            )));
        };
        if dim > LARGEST {
            return Err(FitError::Setting(format!(
                "a mixture can have up to {LARGEST} dimensions, but the model has {dim}: choose the family \
                 `sparse` or `lowrank`"
            )));
        }
        Ok(Box::new(Moments {
            workspace: at.density.workspace(LANES),
            density: at.density,
            mixture: Mixture::new(dim, components),
            family: at.family,
            source: at.source,
            settings: *self,
            start: at.omega,
            stream: at.stream,
        }))
    }
}

struct Moments<'a, D: TwiceDifferentiable> {
    density: &'a D,
    mixture: Mixture,
    family: Arc<dyn Family>,
    source: NoiseSource,
    settings: MomentsSettings,
    start: Vec<f64>,
    stream: u64,
    workspace: D::Workspace,
}

/// The state of adaptive importance sampling between iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct MomentsState {
    omega: Vec<f64>,
    best: Vec<f64>,
    share: f64,
    since: u64,
    calls: Calls,
}

impl MethodState for MomentsState {
    #[expect(
        clippy::misnamed_getters,
        reason = "the stored result is the best mixture, not the current one"
    )]
    fn omega(&self) -> &[f64] {
        &self.best
    }

    fn calls(&self) -> Calls {
        self.calls
    }
}

struct Round {
    z: Vec<f64>,
    lanes: usize,
    log_p: Vec<f64>,
    /// The values of `log p − log q`, where q is the mixture without heavy tails.
    plain: Vec<f64>,
    /// The normalised and smoothed weights with respect to the distribution from which the draws were sampled.
    weights: Vec<f64>,
    share: f64,
    /// The responsibility of each component for each draw, as a `components × lanes` matrix.
    shares: Vec<f64>,
}

impl Round {
    fn z(&self) -> Lanes<'_> {
        Lanes::new(&self.z, self.z.len() / self.lanes, self.lanes)
    }

    /// Estimates the ELBO without the heavy-tailed half of the draws.
    fn bound(&self) -> Estimate {
        let own = &self.plain[..self.lanes / 2];
        let finite: Vec<f64> = own.iter().copied().filter(|w| w.is_finite()).collect();
        Estimate::of(&finite)
    }
}

impl<D: TwiceDifferentiable> Moments<'_, D> {
    fn draws(&self, omega: &[f64], iteration: u64) -> (Vec<f64>, usize) {
        let dim = self.mixture.dim();
        let (rows, lanes) = (dim + 1 + FREEDOM, self.settings.draws(dim));
        let key = (self.stream << 32) | iteration;
        let mut noise = vec![0.0; rows * lanes];
        self.source
            .fill(NoisePurpose::Sample, key, 0, rows, lanes, &mut noise);
        let tails = noise.split_off((dim + 1) * lanes);
        for lane in lanes / 2..lanes {
            let squares = (0..FREEDOM).map(|k| tails[k * lanes + lane].powi(2));
            let wide = (FREEDOM as f64 / squares.sum::<f64>()).sqrt();
            for row in noise.chunks_mut(lanes).skip(1) {
                row[lane] *= wide;
            }
        }
        let mut z = vec![0.0; dim * lanes];
        let noise = Lanes::new(&noise, dim + 1, lanes);
        self.family
            .transform(omega, noise, LanesMut::new(&mut z, dim, lanes));
        (z, lanes)
    }

    fn round(&mut self, omega: &[f64], iteration: u64) -> Round {
        let dim = self.mixture.dim();
        let (z, lanes) = self.draws(omega, iteration);
        let mut log_p = vec![0.0; lanes];
        for first in (0..lanes).step_by(LANES) {
            let width = LANES.min(lanes - first);
            let rows = z.chunks(lanes).flat_map(|row| &row[first..first + width]);
            let block: Vec<f64> = rows.copied().collect();
            let block = Lanes::new(&block, dim, width);
            self.density
                .value(&mut self.workspace, block, &mut log_p[first..first + width]);
        }
        let parts = self.mixture.parts(omega);
        let (mut plain, mut tailed) = (Vec::new(), Vec::new());
        let (freedom, d) = (FREEDOM as f64, dim as f64);
        let heavy = lgamma(0.5 * (freedom + d))
            - lgamma(0.5 * freedom)
            - 0.5 * d * (freedom * std::f64::consts::PI).ln();
        let normal = -0.5 * d * std::f64::consts::TAU.ln();
        for part in &parts {
            if part.weight <= 0.0 {
                plain.resize(plain.len() + lanes, f64::NEG_INFINITY);
                tailed.resize(tailed.len() + lanes, f64::NEG_INFINITY);
                continue;
            }
            let y = part.standardised(Lanes::new(&z, dim, lanes));
            let mut squares = vec![0.0; lanes];
            for row in y.chunks(lanes) {
                squares.iter_mut().zip(row).for_each(|(s, y)| *s += y * y);
            }
            let own = part.weight.ln() - part.log_det();
            plain.extend(squares.iter().map(|s| own + normal - 0.5 * s));
            let tail = |s: &f64| own + heavy - 0.5 * (freedom + d) * (s / freedom).ln_1p();
            tailed.extend(squares.iter().map(tail));
        }
        let (own, wide) = (log_sums(&plain, lanes), log_sums(&tailed, lanes));
        let both = own
            .iter()
            .zip(&wide)
            .map(|(a, b)| log_sum_exp_slice(&[*a, *b]));
        let drawn = both.map(|x| x - std::f64::consts::LN_2);
        let raw: Vec<f64> = log_p.iter().zip(drawn).map(|(p, q)| p - q).collect();
        let smoothed = psis(&raw, 1.0).log_weights;
        let weights: Vec<f64> = smoothed.iter().map(|w| w.exp()).collect();
        let entropy = weights.iter().filter(|w| **w > 0.0).map(|w| -w * w.ln());
        let share = entropy.sum::<f64>().exp() / lanes as f64;
        let shares = plain
            .chunks(lanes)
            .flat_map(|row| row.iter().zip(&own).map(|(a, b)| (a - b).exp()));
        Round {
            shares: shares.collect(),
            share: if share.is_finite() { share } else { 0.0 },
            plain: log_p.iter().zip(&own).map(|(p, q)| p - q).collect(),
            weights,
            log_p,
            lanes,
            z,
        }
    }

    fn matched(&self, parts: &[Component], round: &Round) -> Vec<Component> {
        let (dim, lanes) = (self.mixture.dim(), round.lanes);
        let matched = parts
            .iter()
            .zip(round.shares.chunks(lanes))
            .map(|(part, shares)| {
                let own: Vec<f64> = round
                    .weights
                    .iter()
                    .zip(shares)
                    .map(|(w, s)| w * s)
                    .collect();
                let (total, squares) = (sum(&own), dot(&own, &own));
                if part.weight <= 0.0 || total.is_nan() || total <= 0.0 {
                    return Component {
                        weight: 0.0,
                        ..part.clone()
                    };
                }
                let seen = total * total / squares;
                // The covariance of a component with few draws is not reliable, so the component is removed.
                if seen < 2.0 + 0.1 * dim as f64 {
                    return Component {
                        weight: 0.0,
                        ..part.clone()
                    };
                }
                refitted(part, &own, round.z(), seen).unwrap_or_else(|| Component {
                    weight: total,
                    ..part.clone()
                })
            });
        matched.collect()
    }

    fn grown(&self, parts: &[Component], round: &Round) -> Option<Component> {
        let (dim, lanes) = (self.mixture.dim(), round.lanes);
        let largest = (0..lanes)
            .filter(|lane| round.log_p[*lane].is_finite())
            .max_by(|a, b| round.plain[*a].total_cmp(&round.plain[*b]))?;
        let centre: Vec<f64> = round.z.chunks(lanes).map(|row| row[largest]).collect();
        // Distances are measured in the metric of the component with the largest share of that point.
        let of = |k: usize| round.shares[k * lanes + largest];
        let near = (0..parts.len())
            .filter(|k| parts[*k].weight > 0.0)
            .max_by(|a, b| of(*a).total_cmp(&of(*b)))?;
        let there = Component {
            mean: centre.clone(),
            ..parts[near].clone()
        };
        let y = there.standardised(round.z());
        let mut squares: Vec<(f64, usize)> = (0..lanes).map(|lane| (0.0, lane)).collect();
        for row in y.chunks(lanes) {
            squares.iter_mut().zip(row).for_each(|(s, y)| s.0 += y * y);
        }
        squares.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let count = ((AROUND * lanes as f64) as usize).max(8 * dim).min(lanes);
        let mut own = vec![0.0; lanes];
        for (_, lane) in &squares[..count] {
            own[*lane] = 0.5 * (round.weights[*lane] + 1.0 / lanes as f64);
        }
        let (total, square) = (sum(&own), dot(&own, &own));
        let seen = total * total / square;
        let mut found = refitted(&there, &own, round.z(), seen)?;
        found.mean = centre;
        found.weight = 1.0 / (1.0 + parts.iter().filter(|part| part.weight > 0.0).count() as f64);
        Some(found)
    }
}

fn refitted(part: &Component, own: &[f64], z: Lanes<'_>, seen: f64) -> Option<Component> {
    let (dim, total) = (z.rows(), sum(own));
    let mean: Vec<f64> = (0..dim).map(|i| dot(own, z.row(i)) / total).collect();
    let mut weighted = Vec::with_capacity(z.as_slice().len());
    for (i, mean) in mean.iter().enumerate() {
        let row = z.row(i).iter().zip(own);
        weighted.extend(row.map(|(z, w)| (w / total).sqrt() * (z - mean)));
    }
    let lanes = z.lanes();
    let before = INERTIA * dim as f64;
    let share = seen / (seen + before);
    let mut covariance = vec![0.0; dim * dim];
    for i in 0..dim {
        let row = |k: usize| &weighted[k * lanes..(k + 1) * lanes];
        for j in 0..=i {
            let old = dot(
                &part.factor[i * dim..i * dim + j + 1],
                &part.factor[j * dim..j * dim + j + 1],
            );
            covariance[i * dim + j] = share * dot(row(i), row(j)) + (1.0 - share) * old;
        }
    }
    Some(Component {
        weight: total,
        mean,
        factor: cholesky(&covariance, dim)?,
    })
}

impl<D: TwiceDifferentiable> Algorithm for Moments<'_, D> {
    type State = MomentsState;
    type Output = Vec<f64>;

    fn init(&mut self) -> Result<MomentsState, Status> {
        Ok(MomentsState {
            omega: self.start.clone(),
            best: self.start.clone(),
            share: 0.0,
            since: 0,
            calls: Calls::default(),
        })
    }

    fn step(&mut self, state: &mut MomentsState, iteration: u64) -> Step {
        let round = self.round(&state.omega, iteration);
        state.calls.values += round.lanes as u64;
        let parts = self.mixture.parts(&state.omega);
        let taken = parts.iter().filter(|part| part.weight > 0.0).count();
        if round.share > state.share * (1.0 + RISE) {
            (state.share, state.since) = (round.share, 0);
            state.best.clone_from(&state.omega);
        } else {
            state.since += 1;
        }
        let bound = round.bound();
        let record = Record::default()
            .with_elbo(bound.mean, Some(bound.standard_error))
            .with("draws", round.lanes as f64)
            .with("share", round.share)
            .with("components", taken as f64);
        let record = state.calls.on(record);
        let mut next: Vec<Component> = self.matched(&parts, &round);
        next.retain(|part| part.weight > 0.0);
        // Every other iteration only updates the existing components.
        let grows = next.len() < self.mixture.components() && iteration % 2 == 1;
        if grows && let Some(new) = self.grown(&parts, &round) {
            let left = 1.0 - new.weight;
            let total: f64 = next.iter().map(|part| part.weight).sum();
            next.iter_mut().for_each(|part| part.weight *= left / total);
            next.push(new);
        }
        let over = state.since >= PATIENCE || next.is_empty();
        if !over {
            state.omega = self.mixture.assemble(&next);
        }
        let status = if over && state.share >= LEAST_SHARE {
            Some(Status::Converged {
                evidence: Evidence {
                    rule: format!(
                        "the effective sample size of the importance weights, {:.0} % of the draws, has not \
                         risen in {PATIENCE} rounds",
                        100.0 * state.share
                    ),
                    remaining: None,
                    standard_error: None,
                },
            })
        } else if over {
            Some(Status::Stalled {
                at: iteration,
                reason: match state.share > 0.0 {
                    true => format!(
                        "the effective sample size of the importance weights stays below {} % of the draws",
                        100.0 * LEAST_SHARE
                    ),
                    false => "no draw of the mixture has a finite log density".to_owned(),
                },
            })
        } else {
            (iteration >= self.settings.max_iterations).then(|| Status::Stalled {
                at: iteration,
                reason: format!(
                    "the importance weights of a mixture's draws still improve after {iteration} rounds"
                ),
            })
        };
        Step { record, status }
    }

    fn output(&mut self, state: &MomentsState) -> Vec<f64> {
        state.best.clone()
    }
}

impl Snapshot for MomentsState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("omega", &self.omega);
        archive.put("best", &self.best);
        archive.put("share", &[self.share]);
        archive.set("since", self.since);
        archive.set("calls", self.calls);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let omega = archive.vec("omega")?;
        Ok(Self {
            best: archive.vec_of("best", omega.len())?,
            share: archive.vec_of("share", 1)?[0],
            since: archive.get("since")?,
            calls: archive.get("calls")?,
            omega,
        })
    }
}
