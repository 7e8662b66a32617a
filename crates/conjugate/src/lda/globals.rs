//! The global parameters λ during a fit, stored with one row per term and a common decay factor.
//!
//! A stochastic step is λ − η ← (1 − ρ)(λ − η) + ρ · scale · S, where S is zero outside the words of the batch. λ is
//! stored as λ = η + decay · mass. The first part of the step then only changes `decay`, and the second part changes
//! only the rows of the batch's words, so the rest of the vocabulary costs nothing. When `decay` becomes too small for
//! single precision, all rows are multiplied by it, and it is set to 1.

use jensen_math::rng::{Purpose, fill_normals};
use jensen_math::simd::Simd;
use jensen_run::{Archive, ArchiveError, Snapshot};
use rayon::prelude::*;

use super::kernel::padded;
use super::process::Process;
use super::settings::{Inference, Seed};
use super::topics::Topics;

/// Global parameters λ = η + decay · mass.
#[derive(Clone, Debug, PartialEq)]
pub struct LdaGlobals {
    pub(crate) topics: usize,
    pub(crate) terms: usize,
    pub(crate) alpha: Vec<f64>,
    pub(crate) eta: f64,
    pub(crate) stride: usize,
    pub(crate) decay: f64,
    pub(crate) steps: u64,
    /// The state of a hierarchical Dirichlet process, after its first step.
    pub(crate) process: Option<Process>,
    /// V rows of `stride` numbers each, with zeros in the padding.
    pub(crate) mass: Vec<f32>,
    /// Sums Σ_v mass_vk, one per topic.
    pub(crate) totals: Vec<f64>,
}

/// Number of terms that are summed together. The number is fixed, so sums do not depend on the number of threads.
pub(crate) const CHUNK: usize = 64;

/// If the decay factor is below this value, all rows are multiplied by it, and it is set to 1.
const SMALLEST_DECAY: f64 = 1e-12;

const START: Purpose = Purpose::new("first topics");

impl LdaGlobals {
    /// Draws random topics. λ_kv approximately follows Gamma(100, 1/100) (Hoffman et al. 2013). It is drawn by the
    /// approximation of Wilson and Hilferty, (1 − 1/900 + z/30)³, where z is standard normal. `seed` contains the seed
    /// and the number of the start.
    pub(crate) fn random(
        alpha: Vec<f64>,
        terms: usize,
        eta: f64,
        (seed, restart): (u64, u64),
        simd: Simd,
    ) -> Self {
        let topics = alpha.len();
        let stride = padded(topics);
        let mut mass = vec![0.0f32; terms * stride];
        mass.par_chunks_mut(stride).enumerate().for_each_init(
            || vec![0.0; topics],
            |z, (term, row)| {
                fill_normals(simd, seed, START, restart, term as u64, topics, 1, z);
                for (m, z) in row.iter_mut().zip(z.iter()) {
                    let root = 1.0 - 1.0 / 900.0 + z / 30.0;
                    *m = (root * root * root - eta).max(0.0) as f32;
                }
            },
        );
        Self::of_mass(alpha, terms, eta, mass)
    }

    /// Creates global parameters with λ − η = `mass`, which has V rows of padded topics.
    pub(crate) fn of_mass(alpha: Vec<f64>, terms: usize, eta: f64, mass: Vec<f32>) -> Self {
        let topics = alpha.len();
        let mut globals = Self {
            topics,
            terms,
            alpha,
            eta,
            stride: padded(topics),
            decay: 1.0,
            steps: 0,
            process: None,
            mass,
            totals: vec![0.0; topics],
        };
        globals.total();
        globals
    }

    pub(crate) fn of(from: &Topics) -> Self {
        let stride = padded(from.topics);
        let mut mass = vec![0.0f32; from.terms * stride];
        for (row, lambda) in mass
            .chunks_exact_mut(stride)
            .zip(from.lambda.chunks_exact(from.topics))
        {
            for (m, &x) in row.iter_mut().zip(lambda) {
                *m = (f64::from(x) - from.eta).max(0.0) as f32;
            }
        }
        Self::of_mass(from.alpha.clone(), from.terms, from.eta, mass)
    }

    /// Creates global parameters that contain the sums of λ over terms, but not its rows.
    pub(crate) fn without_rows(
        alpha: Vec<f64>,
        terms: usize,
        eta: f64,
        decay: f64,
        totals: Vec<f64>,
    ) -> Self {
        let topics = alpha.len();
        Self {
            topics,
            terms,
            alpha,
            eta,
            stride: padded(topics),
            decay,
            steps: 0,
            process: None,
            mass: Vec::new(),
            totals,
        }
    }

    pub(crate) fn to_topics(&self, inference: Inference, steps: u64, population: f64) -> Topics {
        let mut lambda = Vec::with_capacity(self.terms * self.topics);
        for row in self.mass.chunks_exact(self.stride) {
            lambda.extend(
                row[..self.topics]
                    .iter()
                    .map(|&m| (self.eta + self.decay * f64::from(m)) as f32),
            );
        }
        Topics {
            topics: self.topics,
            terms: self.terms,
            inference,
            alpha: self.alpha.clone(),
            eta: self.eta,
            lambda,
            steps,
            population,
        }
    }

    /// Adds a multiple of the prior counts of seed words to λ. λ − η of these words then contains the share of their prior
    /// that η lacks.
    pub(crate) fn add_seeds(&mut self, seeds: &[Seed], share: f64) {
        for seed in seeds {
            let count = share * seed.weight / self.decay;
            self.mass[seed.term as usize * self.stride + seed.topic] += count as f32;
            self.totals[seed.topic] += count;
        }
    }

    fn total(&mut self) {
        let (topics, stride) = (self.topics, self.stride);
        let parts: Vec<Vec<f64>> = self
            .mass
            .par_chunks(CHUNK * stride)
            .map(|chunk| {
                let mut part = vec![0.0; topics];
                for row in chunk.chunks_exact(stride) {
                    for (p, &m) in part.iter_mut().zip(row) {
                        *p += f64::from(m);
                    }
                }
                part
            })
            .collect();
        self.totals.fill(0.0);
        for part in parts {
            for (total, p) in self.totals.iter_mut().zip(part) {
                *total += p;
            }
        }
    }

    pub(crate) fn lambda_totals(&self) -> impl Iterator<Item = f64> + '_ {
        let prior = self.eta * self.terms as f64;
        self.totals.iter().map(move |m| prior + self.decay * m)
    }

    /// Sets α to the value in the settings if the state comes from a checkpoint of an earlier version, which did not
    /// learn α.
    pub(crate) fn with_alpha(&mut self, alpha: f64) {
        if self.alpha.is_empty() {
            self.alpha = vec![alpha; self.topics];
        }
    }

    pub(crate) fn shrink(&mut self, factor: f64) {
        self.decay *= factor;
        if self.decay < SMALLEST_DECAY {
            let decay = self.decay as f32;
            self.mass.par_iter_mut().for_each(|m| *m *= decay);
            self.decay = 1.0;
            self.total();
        }
    }
}

impl Snapshot for LdaGlobals {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.set("topics", self.topics);
        archive.set("terms", self.terms);
        archive.put("scalars", &[self.eta, self.decay]);
        archive.put("alpha", &self.alpha);
        archive.set("steps", self.steps);
        if let Some(process) = &self.process {
            archive.set("has_process", true);
            archive.nest("process", process.save());
        }
        let mass = self.mass.iter().map(|&x| f64::from(x)).collect();
        archive.put_tensor("mass", vec![self.terms, self.stride], mass);
        archive.put("totals", &self.totals);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let topics: usize = archive.get("topics")?;
        let terms: usize = archive.get("terms")?;
        let stride = padded(topics);
        let scalars = archive.vec_of("scalars", 2)?;
        let mass = archive.vec_of("mass", terms * stride)?;
        Ok(Self {
            topics,
            terms,
            // Checkpoints of earlier versions do not contain α (see `with_alpha`).
            alpha: match archive.vec("alpha") {
                Ok(alpha) if !alpha.is_empty() => archive.vec_of("alpha", topics)?,
                _ => Vec::new(),
            },
            eta: scalars[0],
            stride,
            decay: scalars[1],
            steps: archive.get("steps").unwrap_or(0),
            process: match archive.get("has_process").unwrap_or(false) {
                true => Some(Process::restore(&archive.nested("process"))?),
                false => None,
            },
            mass: mass.into_iter().map(|x| x as f32).collect(),
            totals: archive.vec_of("totals", topics)?,
        })
    }
}
