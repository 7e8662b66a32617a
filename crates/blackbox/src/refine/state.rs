//! The state of a refinement in the form of plain data.

use jensen_run::{Archive, ArchiveError, Snapshot};
use serde::{Deserialize, Serialize};

use super::evidence::RatioSet;
use super::map::Shown;
use super::mixing::{Ensemble, Mixing};
use super::outcome::{StationaryPhase, TemperatureStep};
use super::root::Root;
use super::tails::Tails;
use super::target::Particles;
use crate::calls::Calls;
use crate::oracle::Estimate;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    Temper,
    Settle,
    Draw,
}

impl Phase {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Temper => "temper",
            Self::Settle => "settle",
            Self::Draw => "draw",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Recording {
    pub x: Vec<f64>,
    /// The log densities at the particles, without the Jacobian of the map.
    pub log_p: Vec<f64>,
    /// The squared distances between the particles and the mean of the approximation, in coordinates in which the
    /// approximation is standard normal.
    pub squares: Vec<f64>,
}

impl Recording {
    pub(super) fn drop_times(&mut self, times: usize, lanes: usize) {
        let dim = self.x.len() / self.log_p.len().max(1);
        self.x.drain(..times * lanes * dim);
        self.log_p.drain(..times * lanes);
        self.squares.drain(..times * lanes);
    }

    pub(super) fn thin(&mut self, every: usize, lanes: usize) {
        let dim = self.x.len() / self.log_p.len().max(1);
        let keep = |values: &mut Vec<f64>, size: usize| {
            if size > 0 {
                let particle_sets = values.chunks(size).skip(every - 1).step_by(every);
                *values = particle_sets.flatten().copied().collect();
            }
        };
        keep(&mut self.x, lanes * dim);
        keep(&mut self.log_p, lanes);
        keep(&mut self.squares, lanes);
    }
}

/// The state of a [`Refine`](super::Refine) between iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct RefineState {
    pub(super) ensemble: Ensemble,
    pub(super) phase: Phase,
    pub(super) circles: Vec<bool>,
    pub(super) particles: Particles,
    pub(super) anchor: Vec<f64>,
    /// The part of the map that is learned from the particles and added to the approximation's own map.
    pub(super) shown: Shown,
    pub(super) log_size: f64,
    pub(super) length: f64,
    pub(super) beta: f64,
    /// The values of `log p − log t` for the particles at the end of every temperature.
    pub(super) ratio_sets: Vec<RatioSet>,
    pub(super) moves: usize,
    pub(super) recording: Recording,
    pub(super) every: usize,
    /// The number of recorded times that the phase has kept from the previous stationary phase.
    pub(super) kept: usize,
    pub(super) distances: Vec<f64>,
    pub(super) ladder: Vec<TemperatureStep>,
    pub(super) stationary_phases: Vec<StationaryPhase>,
    pub(super) calls_before: u64,
    pub(super) calls: Calls,
    pub(super) tails_probed: bool,
    pub(super) failure: Option<String>,
}

impl Snapshot for RefineState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.set("ensemble", self.ensemble);
        archive.set("phase", self.phase);
        archive.set("circles", &self.circles);
        archive.put("x", &self.particles.x);
        archive.put("grad", &self.particles.grad);
        archive.put("log_p", &self.particles.log_p);
        archive.put("anchor", &self.anchor);
        let (kind, whitening) = match &self.shown.root {
            None => ("none", Vec::new()),
            Some(Root::Diagonal(scale)) => ("diagonal", scale.clone()),
            Some(Root::Lower { lower, .. }) => ("lower", lower.clone()),
            Some(Root::LowRank(_) | Root::Precision(_)) => {
                unreachable!("particles show no such root")
            }
        };
        archive.set("whitening", kind);
        archive.put("whitening", &whitening);
        archive.put("tails", &self.shown.tails.to_numbers());
        archive.put("stride", &[self.log_size, self.length, self.beta]);
        let betas: Vec<f64> = self
            .ratio_sets
            .iter()
            .map(|ratio_set| ratio_set.beta)
            .collect();
        archive.put("temperatures.beta", &betas);
        let ratios: Vec<f64> = self
            .ratio_sets
            .iter()
            .flat_map(|s| s.ratios.clone())
            .collect();
        archive.put("temperatures.ratios", &ratios);
        archive.set("moves", self.moves);
        archive.set("every", (self.every, self.kept));
        archive.put("distances", &self.distances);
        archive.put("recording.x", &self.recording.x);
        archive.put("recording.log_p", &self.recording.log_p);
        archive.put("recording.squares", &self.recording.squares);
        let ladder = self.ladder.iter();
        let ladder: Vec<f64> = ladder
            .flat_map(|r| [r.beta, r.share, r.acceptance, r.moves as f64])
            .collect();
        archive.put("ladder", &ladder);
        let stationary_phases: Vec<f64> = self.stationary_phases.iter().flat_map(numbers).collect();
        archive.put("phases", &stationary_phases);
        archive.set("calls_before", self.calls_before);
        archive.set("calls", self.calls);
        archive.set("tails_probed", self.tails_probed);
        archive.set("failure", &self.failure);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let stride = archive.vec_of("stride", 3)?;
        let kind: String = archive.get("whitening")?;
        let whitening = archive.vec("whitening")?;
        let whitening = match kind.as_str() {
            "none" => None,
            "diagonal" => Some(Root::Diagonal(whitening)),
            "lower" => {
                let dim = whitening.len().isqrt();
                Some(Root::lower(whitening, dim))
            }
            other => return Err(ArchiveError(format!("unknown whitening `{other}`"))),
        };
        let ensemble: Ensemble = archive.get("ensemble")?;
        let x = archive.vec("x")?;
        let dim = x.len() / ensemble.lanes();
        let tails = Tails::from_numbers(&archive.vec("tails")?, dim)
            .ok_or_else(|| ArchiveError("the tail transforms are cut off".to_owned()))?;
        let temperature_step = |r: &[f64]| TemperatureStep {
            beta: r[0],
            share: r[1],
            acceptance: r[2],
            moves: r[3] as usize,
        };
        let stationary_phases: Vec<StationaryPhase> = archive
            .vec("phases")?
            .chunks_exact(numbers(&StationaryPhase::default()).len())
            .map(stationary_phase)
            .collect();
        let (every, kept) = archive.get("every")?;
        let ratios = archive.vec("temperatures.ratios")?;
        let particle_sets = ratios.chunks(ensemble.lanes()).map(<[f64]>::to_vec);
        let betas = archive.vec("temperatures.beta")?.into_iter();
        let ratio_sets = betas
            .zip(particle_sets)
            .map(|(beta, ratios)| RatioSet { beta, ratios })
            .collect();
        Ok(Self {
            ensemble,
            phase: archive.get("phase")?,
            circles: archive.get("circles")?,
            particles: Particles {
                x,
                grad: archive.vec("grad")?,
                log_p: archive.vec("log_p")?,
            },
            anchor: archive.vec("anchor")?,
            shown: Shown {
                root: whitening,
                tails,
            },
            log_size: stride[0],
            length: stride[1],
            beta: stride[2],
            ratio_sets,
            moves: archive.get("moves")?,
            recording: Recording {
                x: archive.vec("recording.x")?,
                log_p: archive.vec("recording.log_p")?,
                squares: archive.vec("recording.squares")?,
            },
            every,
            kept,
            distances: archive.vec("distances")?,
            ladder: archive
                .vec("ladder")?
                .chunks_exact(4)
                .map(temperature_step)
                .collect(),
            stationary_phases,
            calls_before: archive.get("calls_before")?,
            calls: archive.get("calls")?,
            tails_probed: archive.get("tails_probed")?,
            failure: archive.get("failure")?,
        })
    }
}

fn numbers(stationary_phase: &StationaryPhase) -> [f64; 10] {
    let mixing = stationary_phase.mixing;
    [
        stationary_phase.transitions as f64,
        stationary_phase.step_size,
        stationary_phase.acceptance,
        stationary_phase.stuck,
        mixing.rhat,
        mixing.ess,
        mixing.sd,
        mixing.drift,
        stationary_phase.log_evidence.mean,
        stationary_phase.log_evidence.standard_error,
    ]
}

fn stationary_phase(numbers: &[f64]) -> StationaryPhase {
    StationaryPhase {
        transitions: numbers[0] as usize,
        step_size: numbers[1],
        acceptance: numbers[2],
        stuck: numbers[3],
        mixing: Mixing {
            rhat: numbers[4],
            ess: numbers[5],
            sd: numbers[6],
            drift: numbers[7],
        },
        log_evidence: Estimate {
            mean: numbers[8],
            standard_error: numbers[9],
        },
    }
}
