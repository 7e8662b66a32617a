//! The settings of a fit, with their defaults.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use jensen_conjugate::lda::{
    Inference, LdaSettings, LearnAlpha, LocalRule, STARTS, Seed, Start, passes_to_compare,
};
use jensen_conjugate::temper::Temper;
use jensen_data::corpus::compressed;
use jensen_math::simd::Simd;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::job::{CountRange, words};

const WORDS: usize = 10;

const EVALUATIONS: f64 = 5.0;

/// The settings of a topic model. Absent settings take their defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct TopicsRequest {
    /// Number of topics, or a range such as 5..20 or 20..100:20 (in steps of 20) from which the score of held-out
    /// documents chooses
    #[cfg_attr(
        feature = "clap",
        arg(long, short = 'k', value_name = "K", help_heading = "Model")
    )]
    pub topics: Option<CountRange>,
    /// Dirichlet parameter of a document's topic proportions: a number, or X/K [default: 5/K and at most 0.1,
    /// and 1/K with the mean field]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = parse_share, help_heading = "Model"))]
    pub alpha: Option<String>,
    /// Dirichlet parameter of a topic's word proportions: a number, or X/K [default: 5/K and at most 0.05,
    /// and 1/K with the mean field]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = parse_share, help_heading = "Model"))]
    pub eta: Option<String>,
    /// File of seed words: each line has words, separated by spaces, that the prior favours in a topic of their own; the
    /// first line belongs to topic 0
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "FILE", help_heading = "Model")
    )]
    pub seed_words: Option<PathBuf>,
    /// Prior count of each seed word, as a share of an even part of the tokens, which is their number divided by K
    /// [default: 0.01]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SHARE", value_parser = words::positive, requires = "seed_words", help_heading = "Model"))]
    pub seed_weight: Option<f64>,
    /// Whether to learn alpha after the first pass: no, one number for all topics, one for each, or one for each with
    /// the prior of a hierarchical Dirichlet process, which uses at most --topics topics [default: fixed]
    #[cfg_attr(feature = "clap", arg(long, value_name = "fixed|symmetric|asymmetric|hdp", value_parser = ["fixed", "symmetric", "asymmetric", "hdp"], help_heading = "Model"))]
    pub learn_alpha: Option<String>,
    /// Whether to learn eta after the first pass: no, or one number for all words [default: fixed]
    #[cfg_attr(feature = "clap", arg(long, value_name = "fixed|symmetric", value_parser = ["fixed", "symmetric"], help_heading = "Model"))]
    pub learn_eta: Option<String>,
    /// Local steps: collapsed variational inference of zeroth order, or the mean field, which finds fewer topics, has a
    /// bound and supports temperature policies [default: cvb0, and mean-field with a temperature policy]
    #[cfg_attr(feature = "clap", arg(long, value_name = "cvb0|mean-field", value_parser = ["cvb0", "mean-field"], help_heading = "Method"))]
    pub inference: Option<String>,
    /// Initial topics: words of dissimilar documents, or random [default: documents, and random with the mean field]
    #[cfg_attr(feature = "clap", arg(long, value_name = "documents|random", value_parser = ["documents", "random"], help_heading = "Method"))]
    pub start: Option<String>,
    /// A document's local step ends when its expected counts change by less than this share of its tokens [default:
    /// 0.01]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Method"))]
    pub tolerance: Option<f64>,
    /// Largest number of sweeps over a document's words in a local step [default: 100]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = "Method"))]
    pub max_sweeps: Option<u64>,
    /// Temperature: none, `anneal=PASSES[:FROM]` (falls to 1 in PASSES passes), schedule=PASS:T,PASS:T,… (linear in
    /// between), global (one, inferred) or local (one per document, inferred); `global=PASSES[:HOTTEST[:TEMPERATURES]]`
    /// and `local=PASSES[:TEMPERATURES[:A:B]]` reach 1 after PASSES, `inf` never. Plain global cools in half a pass;
    /// `global=PASSES:HOTTEST:TEMPERATURES:START` begins warm (as without it), cold, or both and keeps the better end,
    /// and `…:START:DRAWS:EVERY` estimates log C from DRAWS draws and sets a new temperature every EVERY minibatches
    /// [default: none]
    #[cfg_attr(feature = "clap", arg(long, value_name = "POLICY", value_parser = words::temper, help_heading = "Method"))]
    pub temper: Option<String>,
    /// Passes over the documents; fractions are allowed [default: 5, and 1 with the mean field; with a range of numbers
    /// of topics, enough passes for 250 minibatches]
    #[cfg_attr(feature = "clap", arg(long, value_name = "P", value_parser = words::positive, help_heading = "Method"))]
    pub passes: Option<f64>,
    /// Documents of a minibatch [default: 100]
    #[cfg_attr(feature = "clap", arg(long, value_name = "B", value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = "Method"))]
    pub batch: Option<u64>,
    /// Delay of the step sizes (tau + t)^-kappa [default: 64, and 1024 with the mean field]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Method"))]
    pub tau: Option<f64>,
    /// Forgetting rate of the step sizes, above 0.5 and at most 1 [default: 0.7]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Method"))]
    pub kappa: Option<f64>,
    /// Held-out scores per pass, on up to 1000 documents; 0 scores only at the end [default: 5]
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
    /// Number of starts of each number of topics; the fit with the best held-out score is kept [default: 1, and 2 with
    /// a range of numbers of topics]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000), help_heading = "Run"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts: Option<u64>,
    /// Instruction set: auto, avx512, avx2 or scalar [default: auto]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_parser = words::simd_name, help_heading = "Run"))]
    pub simd: Option<String>,
    /// Seconds between checkpoints [default: 30]
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", value_parser = words::not_negative, help_heading = "Output"))]
    pub checkpoint_every: Option<f64>,
}

impl TopicsRequest {
    /// Returns the instruction set that the kernels use.
    ///
    /// # Errors
    /// Fails if no instruction set has the requested name, or if the machine does not support it.
    pub fn simd(&self) -> Result<Simd, Error> {
        words::simd(self.simd.as_deref())
    }

    /// Returns the number of top words that the results list for each topic.
    pub fn words(&self) -> usize {
        self.words.map_or(WORDS, |words| words as usize)
    }

    /// Returns the method of local inference. The default is collapsed inference without a temperature policy, and
    /// mean-field inference with a temperature policy.
    ///
    /// # Errors
    /// Fails if no method of local inference has the requested name.
    pub fn inference(&self) -> Result<Inference, Error> {
        let heated = self
            .temper
            .as_deref()
            .is_some_and(|policy| policy != "none");
        let default = match heated {
            true => Inference::MeanField,
            false => Inference::Cvb0,
        };
        Ok(named("inference", self.inference.as_deref())?.unwrap_or(default))
    }

    /// Returns the settings of the fitting method for each number of topics, in ascending order, and for each start of
    /// this number.
    ///
    /// # Errors
    /// Fails if a setting is invalid, or if the number of topics is missing.
    pub fn settings(&self) -> Result<Vec<LdaSettings>, Error> {
        let topics = self.topics.ok_or_else(|| {
            Error::setting("the number of topics is missing: give --topics K, such as --topics 100")
        })?;
        let usual = match topics.only() {
            Some(_) => 1,
            None => STARTS,
        };
        let starts = self.starts.unwrap_or(usual).max(1);
        let mut all = Vec::new();
        for topics in topics.all() {
            let settings = self.settings_of(topics)?;
            all.extend((0..starts).map(|restart| LdaSettings {
                restart,
                ..settings.clone()
            }));
        }
        Ok(all)
    }

    /// Returns the settings of all fits to `documents` documents. If several numbers of topics are compared, their
    /// default number of passes depends on the number of documents.
    ///
    /// # Errors
    /// Fails for the same reasons as [`settings`](Self::settings).
    pub(super) fn settings_for(&self, documents: usize) -> Result<Vec<LdaSettings>, Error> {
        let mut all = self.settings()?;
        let compares = all[0].topics != all[all.len() - 1].topics;
        if compares && self.passes.is_none() {
            let passes = passes_to_compare(documents, &all[0]);
            all.iter_mut().for_each(|settings| settings.passes = passes);
        }
        Ok(all)
    }

    /// Returns the seed words of a fit, in a vocabulary of `words` with `tokens` tokens in all documents.
    ///
    /// # Errors
    /// Fails if the file cannot be read, has more lines than there are topics, or contains a word that is not in the
    /// vocabulary.
    pub(super) fn seeds(
        &self,
        topics: usize,
        words: &[String],
        tokens: f64,
    ) -> Result<Vec<Seed>, Error> {
        let Some(path) = &self.seed_words else {
            return Ok(Vec::new());
        };
        let weight = self.seed_weight.unwrap_or(SEED_WEIGHT) * tokens / topics as f64;
        let terms: HashMap<&str, u32> = (0..).zip(words).map(|(t, w)| (w.as_str(), t)).collect();
        let text = read_text(path)?;
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let mut seeds: Vec<Seed> = Vec::new();
        for (topic, line) in lines.enumerate() {
            if topic >= topics {
                return Err(Error::Input(format!(
                    "`{}` has seed words for more than {topics} topics: remove lines, or raise --topics",
                    path.display()
                )));
            }
            for word in line.split_whitespace() {
                let Some(&term) = terms.get(word) else {
                    return Err(Error::Input(format!(
                        "`{}`: the seed word `{word}` of topic {topic} is not in the vocabulary: remove it, or build \
                         the corpus with a smaller --min-df or a larger --max-df",
                        path.display()
                    )));
                };
                if !seeds
                    .iter()
                    .any(|seed| (seed.topic, seed.term) == (topic, term))
                {
                    seeds.push(Seed {
                        topic,
                        term,
                        weight,
                    });
                }
            }
        }
        Ok(seeds)
    }

    fn settings_of(&self, topics: u64) -> Result<LdaSettings, Error> {
        let temper = self.temper.as_deref().unwrap_or("none");
        let temper = temper.parse::<Temper>()?;
        let inference = self.inference()?;
        let mut settings = match inference {
            Inference::MeanField => LdaSettings::new(topics as usize),
            Inference::Cvb0 => LdaSettings {
                inference,
                start: Start::Documents,
                alpha: Some((ALPHA / topics as f64).min(MOST_ALPHA)),
                eta: Some((ETA / topics as f64).min(MOST_ETA)),
                tau: TAU,
                passes: PASSES,
                ..LdaSettings::new(topics as usize)
            },
        };
        let share = |text: &Option<String>| text.as_deref().and_then(|text| share(text, topics));
        settings.alpha = share(&self.alpha).or(settings.alpha);
        settings.eta = share(&self.eta).or(settings.eta);
        settings.start = named("start", self.start.as_deref())?.unwrap_or(settings.start);
        let learn_alpha = named::<LearnAlpha>("learn-alpha", self.learn_alpha.as_deref())?;
        settings.learn_alpha = learn_alpha.unwrap_or_default();
        let learn_eta = named::<LearnAlpha>("learn-eta", self.learn_eta.as_deref())?;
        settings.learn_eta = match learn_eta.unwrap_or_default() {
            LearnAlpha::Fixed => false,
            LearnAlpha::Symmetric => true,
            LearnAlpha::Asymmetric | LearnAlpha::Hdp => {
                return Err(Error::setting(
                    "Jensen learns eta as one number for all words: use --learn-eta symmetric",
                ));
            }
        };
        let rule = LocalRule::default();
        settings.local = LocalRule {
            tolerance: self.tolerance.unwrap_or(rule.tolerance),
            max_iterations: self.max_sweeps.map_or(rule.max_iterations, |n| n as usize),
        };
        settings.passes = self.passes.unwrap_or(settings.passes);
        settings.batch = self.batch.map_or(settings.batch, |batch| batch as usize);
        settings.tau = self.tau.unwrap_or(settings.tau);
        settings.kappa = self.kappa.unwrap_or(settings.kappa);
        settings.temper = temper.with_cooling(COOLING);
        settings.seed = self.seed.unwrap_or(0);
        settings.evaluations_per_pass = self.evaluations.unwrap_or(EVALUATIONS);
        settings.check()?;
        Ok(settings)
    }
}

fn read_text(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    let read = compressed::open(path)?.read_to_string(&mut text);
    read.map_err(|error| Error::Input(format!("cannot read `{}`: {error}", path.display())))?;
    Ok(text)
}

/// The default prior count of a seed word, as a share of an even part of the tokens. Ten seed words together then have
/// the weight of a tenth of a topic's tokens.
const SEED_WEIGHT: f64 = 0.01;

/// The default length of the cooling phase of an inferred temperature, in passes. At the end of this phase, the
/// temperature is 1.
pub(super) const COOLING: f64 = 0.5;

/// The default value of α for collapsed inference is `ALPHA`/K, but it is at most [`MOST_ALPHA`].
const ALPHA: f64 = 5.0;
/// The largest default value of α. The uncapped default lowers the score. With 3 topics of short texts, α = 5/3 loses
/// 0.14 nats per word. With 20 topics of news articles, α = 1/4 loses 0.01 nats per word.
const MOST_ALPHA: f64 = 0.1;
/// The default value of η for collapsed inference is `ETA`/K, but it is at most [`MOST_ETA`].
const ETA: f64 = 5.0;
/// The largest default value of η. The pseudo-counts that η adds to a topic must be small compared with the number of
/// words in the topic. With more topics, each topic has fewer words. For 500 topics of 20 000 abstracts, η = 0.05 loses
/// 0.05 nats per word.
const MOST_ETA: f64 = 0.05;
const TAU: f64 = 64.0;
const PASSES: f64 = 5.0;

/// Parses a number, or a number that is divided by the number of topics K.
fn share(text: &str, topics: u64) -> Option<f64> {
    match text.strip_suffix("/K") {
        Some(share) => share.parse::<f64>().ok().map(|x| x / topics as f64),
        None => text.parse().ok(),
    }
}

fn named<T: DeserializeOwned>(flag: &str, text: Option<&str>) -> Result<Option<T>, Error> {
    let choice = text.map(|text| serde_json::from_value(text.into()));
    let choice = choice.transpose();
    choice.map_err(|error| Error::setting(format!("--{flag}: {error}")))
}

#[cfg(any(feature = "clap", test))]
fn parse_share(text: &str) -> Result<String, String> {
    match share(text, 1) {
        Some(x) if x.is_finite() && x > 0.0 => Ok(text.to_owned()),
        _ => Err("expected a positive number, or one over K, such as 5/K".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_settings() {
        let flags = TopicsRequest {
            topics: Some(CountRange::one(50)),
            alpha: Some("1/K".into()),
            eta: Some("0.3".into()),
            temper: Some("anneal=0.1".into()),
            ..TopicsRequest::default()
        };
        let only = |request: &TopicsRequest| request.settings().unwrap().swap_remove(0);
        let settings = only(&flags);
        assert_eq!(settings.inference, Inference::MeanField);
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
        // Without a temperature policy, the inference is collapsed and has its own defaults.
        let plain = TopicsRequest {
            topics: Some(CountRange::one(50)),
            temper: Some("none".into()),
            learn_alpha: Some("asymmetric".into()),
            tolerance: Some(0.1),
            ..TopicsRequest::default()
        };
        let collapsed = only(&plain);
        assert_eq!(
            (collapsed.inference, collapsed.start),
            (Inference::Cvb0, Start::Documents)
        );
        assert_eq!((collapsed.alpha(), collapsed.eta()), (0.1, 0.05));
        for (topics, alpha) in [(3, 0.1), (500, 0.01)] {
            let sized = TopicsRequest {
                topics: Some(CountRange::one(topics)),
                ..plain.clone()
            };
            assert_eq!(only(&sized).alpha(), alpha);
        }
        assert_eq!(
            (collapsed.tau, collapsed.passes, collapsed.local.tolerance),
            (64.0, 5.0, 0.1)
        );
        assert_eq!(collapsed.learn_alpha, LearnAlpha::Asymmetric);
        assert_eq!(
            (settings.inference, settings.start),
            (Inference::MeanField, Start::Random)
        );
        for (name, request) in [
            (
                "needs mean-field",
                TopicsRequest {
                    inference: Some("cvb0".into()),
                    ..flags.clone()
                },
            ),
            (
                "inference",
                TopicsRequest {
                    inference: Some("cvb1".into()),
                    ..plain.clone()
                },
            ),
            (
                "learn-eta",
                TopicsRequest {
                    learn_eta: Some("asymmetric".into()),
                    ..plain.clone()
                },
            ),
        ] {
            let error = request.settings().unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        let mut settings = flags.clone();
        settings.kappa = Some(0.4);
        assert!(settings.settings().is_err());
        assert!(TopicsRequest::default().settings().is_err());
        for wrong in ["anneal", "anneal=0", "anneal=x", "cold"] {
            assert!(words::temper(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0", "-1", "K/2", "0/K", "inf"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
    }
}
