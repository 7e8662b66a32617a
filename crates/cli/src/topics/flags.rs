//! The settings of a fit of topics: flags, their defaults, and how they become settings of the library.

use clap::Args;
use jensen::conjugate::lda::LdaSettings;
use jensen::conjugate::temper::Temper;
use jensen::math::simd::Simd;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::flags::{listed, parse_not_negative, parse_positive, parse_simd, simd};

/// Top words in results unless said otherwise.
const WORDS: usize = 10;

/// Held-out scores a pass unless said otherwise.
const EVALUATIONS: f64 = 5.0;

/// The flags that make up a run; stored in its folder, so that `--resume` knows them.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TopicsFlags {
    /// Number of topics
    #[arg(long, short = 'k', value_name = "K", value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = "Model")]
    pub topics: Option<u64>,
    /// Dirichlet parameter of a document's topic proportions [default: 1/K]
    #[arg(long, value_name = "X", value_parser = parse_share, help_heading = "Model")]
    pub alpha: Option<String>,
    /// Dirichlet parameter of a topic's word proportions [default: 1/K]
    #[arg(long, value_name = "X", value_parser = parse_share, help_heading = "Model")]
    pub eta: Option<String>,
    /// Temperature: none, anneal=PASSES (falls to 1 in so many passes), global (one, inferred) or local (one a
    /// document, inferred); global=PASSES and local=PASSES are 1 after so many, `inf` never. Plain global cools in half a
    /// pass [default: none]
    #[arg(long, value_name = "POLICY", value_parser = parse_temper, help_heading = "Method")]
    pub temper: Option<String>,
    /// Passes over the documents; fractions are allowed [default: 1]
    #[arg(long, value_name = "P", value_parser = parse_positive, help_heading = "Method")]
    pub passes: Option<f64>,
    /// Documents of a minibatch [default: 100]
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = "Method")]
    pub batch: Option<u64>,
    /// Delay of the step sizes (tau + t)^-kappa [default: 1024]
    #[arg(long, value_name = "X", value_parser = parse_positive, help_heading = "Method")]
    pub tau: Option<f64>,
    /// Forgetting rate of the step sizes, above 0.5 and at most 1 [default: 0.7]
    #[arg(long, value_name = "X", value_parser = parse_positive, help_heading = "Method")]
    pub kappa: Option<f64>,
    /// Held-out scores a pass, on up to 1000 held-out documents; 0 scores at the end alone [default: 5]
    #[arg(long, value_name = "N", value_parser = parse_not_negative, help_heading = "Run")]
    pub evaluations: Option<f64>,
    /// Top words of a topic in the results [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000), help_heading = "Run")]
    pub words: Option<u64>,
    /// Largest number of seconds
    #[arg(long, value_name = "S", value_parser = parse_positive, help_heading = "Run")]
    pub max_seconds: Option<f64>,
    /// Seed of every random number; same seed, same bits, on any number of threads [default: 0]
    #[arg(long, value_name = "S", help_heading = "Run")]
    pub seed: Option<u64>,
    /// Instruction set: auto, avx512, avx2 or scalar [default: auto]
    #[arg(long, value_name = "NAME", value_parser = parse_simd, help_heading = "Run")]
    pub simd: Option<String>,
    /// Seconds between checkpoints [default: 30]
    #[arg(long, value_name = "S", value_parser = parse_not_negative, help_heading = "Output")]
    pub checkpoint_every: Option<f64>,
}

impl TopicsFlags {
    /// What is given here, and what `stored` says of the rest.
    pub fn or(&self, stored: &Self) -> Self {
        Self {
            topics: self.topics.or(stored.topics),
            alpha: self.alpha.clone().or_else(|| stored.alpha.clone()),
            eta: self.eta.clone().or_else(|| stored.eta.clone()),
            temper: self.temper.clone().or_else(|| stored.temper.clone()),
            passes: self.passes.or(stored.passes),
            batch: self.batch.or(stored.batch),
            tau: self.tau.or(stored.tau),
            kappa: self.kappa.or(stored.kappa),
            evaluations: self.evaluations.or(stored.evaluations),
            words: self.words.or(stored.words),
            max_seconds: self.max_seconds.or(stored.max_seconds),
            seed: self.seed.or(stored.seed),
            simd: self.simd.clone().or_else(|| stored.simd.clone()),
            checkpoint_every: self.checkpoint_every.or(stored.checkpoint_every),
        }
    }

    /// The instruction set.
    pub fn simd(&self) -> Result<Simd, Failure> {
        simd(self.simd.as_deref().unwrap_or("auto"))
    }

    /// Top words of a topic in the results.
    pub fn words(&self) -> usize {
        self.words.map_or(WORDS, |words| words as usize)
    }

    /// The settings of the library.
    pub fn settings(&self) -> Result<LdaSettings, Failure> {
        let topics = self.topics.ok_or_else(|| {
            Failure::usage("the number of topics is missing: give --topics K, such as --topics 100")
        })?;
        let mut settings = LdaSettings::new(topics as usize);
        settings.alpha = self.alpha.as_deref().and_then(share);
        settings.eta = self.eta.as_deref().and_then(share);
        settings.passes = self.passes.unwrap_or(settings.passes);
        settings.batch = self.batch.map_or(settings.batch, |batch| batch as usize);
        settings.tau = self.tau.unwrap_or(settings.tau);
        settings.kappa = self.kappa.unwrap_or(settings.kappa);
        settings.temper = self
            .temper
            .as_deref()
            .unwrap_or("none")
            .parse::<Temper>()
            .map_err(Failure::usage)?
            .with_cooling(COOLING);
        settings.seed = self.seed.unwrap_or(0);
        settings.evaluations_per_pass = self.evaluations.unwrap_or(EVALUATIONS);
        settings.check().map_err(Failure::usage)?;
        Ok(settings)
    }

    /// The flags that were given, for reports: name and value.
    pub fn listed(&self) -> Vec<(String, String)> {
        listed(self)
    }
}

/// Passes after which an inferred temperature is 1 unless the flags say otherwise.
const COOLING: f64 = 0.5;

/// A Dirichlet parameter; `1/K` is the default.
fn share(text: &str) -> Option<f64> {
    text.parse().ok()
}

fn parse_share(text: &str) -> Result<String, String> {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() && x > 0.0 => Ok(text.to_owned()),
        _ if text == "1/K" => Ok(text.to_owned()),
        _ => Err("expected a positive number, or 1/K".to_owned()),
    }
}

fn parse_temper(text: &str) -> Result<String, String> {
    text.parse::<Temper>().map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_settings() {
        let flags = TopicsFlags {
            topics: Some(50),
            alpha: Some("1/K".into()),
            eta: Some("0.3".into()),
            temper: Some("anneal=0.1".into()),
            ..TopicsFlags::default()
        };
        let settings = flags.settings().unwrap();
        assert_eq!((settings.alpha(), settings.eta()), (0.02, 0.3));
        assert_eq!(settings.temper, Temper::anneal(0.1));
        assert_eq!(
            (
                settings.batch,
                settings.tau,
                settings.kappa,
                settings.passes
            ),
            (100, 1024.0, 0.7, 1.0)
        );
        let mut settings = flags.clone();
        settings.kappa = Some(0.4);
        assert!(settings.settings().is_err());
        assert!(TopicsFlags::default().settings().is_err());
        for wrong in ["anneal", "anneal=0", "anneal=x", "cold"] {
            assert!(parse_temper(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0", "-1", "2/K", "inf"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
    }
}
