//! What is asked for, with its defaults.

use jensen_conjugate::lda::LdaSettings;
use jensen_conjugate::temper::Temper;
use jensen_math::simd::Simd;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::study::words;

/// Top words in results unless said otherwise.
const WORDS: usize = 10;

/// Held-out scores a pass unless said otherwise.
const EVALUATIONS: f64 = 5.0;

/// How topics are fitted; what is absent has a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct TopicsRequest {
    /// Number of topics
    #[cfg_attr(feature = "clap", arg(long, short = 'k', value_name = "K", value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = "Model"))]
    pub topics: Option<u64>,
    /// Dirichlet parameter of a document's topic proportions [default: 1/K]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = parse_share, help_heading = "Model"))]
    pub alpha: Option<String>,
    /// Dirichlet parameter of a topic's word proportions [default: 1/K]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = parse_share, help_heading = "Model"))]
    pub eta: Option<String>,
    /// Temperature: none, anneal=PASSES (falls to 1 in so many passes), global (one, inferred) or local (one a
    /// document, inferred); global=PASSES and local=PASSES are 1 after so many, `inf` never. Plain global cools in half a
    /// pass [default: none]
    #[cfg_attr(feature = "clap", arg(long, value_name = "POLICY", value_parser = words::temper, help_heading = "Method"))]
    pub temper: Option<String>,
    /// Passes over the documents; fractions are allowed [default: 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "P", value_parser = words::positive, help_heading = "Method"))]
    pub passes: Option<f64>,
    /// Documents of a minibatch [default: 100]
    #[cfg_attr(feature = "clap", arg(long, value_name = "B", value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = "Method"))]
    pub batch: Option<u64>,
    /// Delay of the step sizes (tau + t)^-kappa [default: 1024]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Method"))]
    pub tau: Option<f64>,
    /// Forgetting rate of the step sizes, above 0.5 and at most 1 [default: 0.7]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Method"))]
    pub kappa: Option<f64>,
    /// Held-out scores a pass, on up to 1000 held-out documents; 0 scores at the end alone [default: 5]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = words::not_negative, help_heading = "Run"))]
    pub evaluations: Option<f64>,
    /// Top words of a topic in the results [default: 10]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000), help_heading = "Run"))]
    pub words: Option<u64>,
    /// Largest number of seconds
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", value_parser = words::positive, help_heading = "Run"))]
    pub max_seconds: Option<f64>,
    /// Seed of every random number; same seed, same bits, on any number of threads [default: 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", help_heading = "Run"))]
    pub seed: Option<u64>,
    /// Instruction set: auto, avx512, avx2 or scalar [default: auto]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_parser = words::simd_name, help_heading = "Run"))]
    pub simd: Option<String>,
    /// Seconds between checkpoints [default: 30]
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", value_parser = words::not_negative, help_heading = "Output"))]
    pub checkpoint_every: Option<f64>,
}

impl TopicsRequest {
    /// The instruction set.
    ///
    /// # Errors
    /// There is no such set.
    pub fn simd(&self) -> Result<Simd, Error> {
        words::simd(self.simd.as_deref())
    }

    /// Top words of a topic in the results.
    pub fn words(&self) -> usize {
        self.words.map_or(WORDS, |words| words as usize)
    }

    /// The settings of the method.
    ///
    /// # Errors
    /// A setting that cannot be, or no number of topics.
    pub fn settings(&self) -> Result<LdaSettings, Error> {
        let topics = self.topics.ok_or_else(|| {
            Error::setting("the number of topics is missing: give --topics K, such as --topics 100")
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
            .map_err(Error::setting)?
            .with_cooling(COOLING);
        settings.seed = self.seed.unwrap_or(0);
        settings.evaluations_per_pass = self.evaluations.unwrap_or(EVALUATIONS);
        settings.check().map_err(Error::setting)?;
        Ok(settings)
    }
}

/// Passes after which an inferred temperature is 1 unless the request says otherwise.
pub(super) const COOLING: f64 = 0.5;

/// A Dirichlet parameter; `1/K` is the default.
fn share(text: &str) -> Option<f64> {
    text.parse().ok()
}

#[cfg(feature = "clap")]
fn parse_share(text: &str) -> Result<String, String> {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() && x > 0.0 => Ok(text.to_owned()),
        _ if text == "1/K" => Ok(text.to_owned()),
        _ => Err("expected a positive number, or 1/K".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_settings() {
        let flags = TopicsRequest {
            topics: Some(50),
            alpha: Some("1/K".into()),
            eta: Some("0.3".into()),
            temper: Some("anneal=0.1".into()),
            ..TopicsRequest::default()
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
        assert!(TopicsRequest::default().settings().is_err());
        for wrong in ["anneal", "anneal=0", "anneal=x", "cold"] {
            assert!(words::temper(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0", "-1", "2/K", "inf"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
    }
}
