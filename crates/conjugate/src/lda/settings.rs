//! The settings of latent Dirichlet allocation.

use jensen_run::SettingError;
use serde::{Deserialize, Serialize};

use crate::temper::Temper;

/// The rule that stops the coordinate ascent over a document's topic proportions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalRule {
    /// Tolerance of γ, as a share of the number of tokens in the document. The iteration stops when the absolute
    /// changes of all γ_k sum to less than this.
    pub tolerance: f64,
    /// Largest number of iterations. The field `unconverged` of the trace counts the documents that reach this number.
    pub max_iterations: usize,
}

impl Default for LocalRule {
    fn default() -> Self {
        Self {
            tolerance: 1e-2,
            max_iterations: 100,
        }
    }
}

/// The method of the local steps, which determines the approximate posterior of the topics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inference {
    /// Mean-field variational inference: φ_vk ∝ exp(E log θ_k + E log β_kv) (Hoffman et al. 2013).
    #[default]
    MeanField,
    /// Stochastic collapsed variational inference of zeroth order (Foulds, Boyles, DuBois, Smyth and Welling 2013):
    /// φ_vk ∝ (α_k + n_k − φ_vk) λ_kv / Σ_v λ_kv. Here n_k is the expected number of the document's tokens in topic k.
    /// The method integrates out the proportions. A topic with less than one token in a document therefore keeps some
    /// weight, whereas mean-field inference, with exp ψ, would give it almost none. Unlike in that paper, n_k excludes
    /// the share of the token itself, as in batch CVB0 (Asuncion, Welling, Smyth and Teh 2009, Eq. 12).
    Cvb0,
}

impl Inference {
    /// Returns the method's name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::MeanField => "mean-field",
            Self::Cvb0 => "cvb0",
        }
    }
}

/// The initialisation of topics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// Random topics. The elements of λ are drawn from Gamma(100, 1/100) (Hoffman et al. 2013).
    #[default]
    Random,
    /// Topics that consist of the words of dissimilar documents. The documents are chosen in the way that k-means++
    /// chooses centres.
    Documents,
}

/// The Dirichlet parameters of topic proportions that the fit learns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LearnAlpha {
    /// The fit learns no parameter, so α is fixed.
    #[default]
    Fixed,
    /// The fit learns one parameter, which all topics share.
    Symmetric,
    /// The fit learns one parameter per topic.
    Asymmetric,
    /// The fit learns one parameter per topic under the prior of a hierarchical Dirichlet process, and removes
    /// redundant topics. The number of topics is then only a limit.
    Hdp,
}

/// A seed word. The Dirichlet parameter of the word in the topic is η + `weight`. Every pair of a topic and a term
/// occurs at most once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seed {
    /// The index of the topic.
    pub topic: usize,
    /// The index of the word.
    pub term: u32,
    /// The number that is added to η, as a number of tokens.
    pub weight: f64,
}

/// Settings of latent Dirichlet allocation. All of them influence results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LdaSettings {
    /// Number K of topics, which is at least 1.
    pub topics: usize,
    /// Symmetric Dirichlet parameter of a document's topic proportions. The default is 1/K.
    pub alpha: Option<f64>,
    /// Symmetric Dirichlet parameter of a topic's word proportions. The default is 1/K.
    pub eta: Option<f64>,
    /// Seed words, which raise the Dirichlet parameters of some words in some topics.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seeds: Vec<Seed>,
    /// The method of local steps.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inference: Inference,
    /// The initialisation of the topics. It has no effect if the fit continues earlier topics.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start: Start,
    /// The parameters α that the fit learns. It learns them by stochastic steps of Minka's fixed-point iteration after
    /// the first pass.
    #[serde(default, skip_serializing_if = "is_default")]
    pub learn_alpha: LearnAlpha,
    /// Whether the fit also learns η, by the same method.
    #[serde(default, skip_serializing_if = "is_default")]
    pub learn_eta: bool,
    /// Number of documents in a minibatch.
    pub batch: usize,
    /// Delay τ of the step sizes ρ_t = (τ + t)^(−κ), t = 0, 1, …
    pub tau: f64,
    /// Forgetting rate κ of the step sizes, in (0.5, 1].
    pub kappa: f64,
    /// Number of passes over the documents, which need not be an integer.
    pub passes: f64,
    /// The temperature policy.
    pub temper: Temper,
    /// Seed of every random number.
    pub seed: u64,
    /// The number of the start. Fits with the same seed and different numbers differ only in their initial topics, so
    /// their scores refer to the same held-out words.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restart: u64,
    /// The stopping rule of a document's local step.
    pub local: LocalRule,
    /// Number of documents that the statistics represent. By default it is the number of documents in the corpus. If
    /// old topics are updated with new documents, it is the total number of old and new documents.
    pub population: Option<f64>,
    /// Number of times per pass that the held-out documents are scored. If it is 0, they are scored only at the end.
    pub evaluations_per_pass: f64,
}

/// Returns whether a setting has its default value, which earlier versions without this setting always used. Such a
/// setting is not written, so checkpoints of earlier versions can still be resumed.
fn is_default<T: Default + PartialEq>(setting: &T) -> bool {
    *setting == T::default()
}

impl LdaSettings {
    /// Returns the default settings with `topics` topics.
    pub fn new(topics: usize) -> Self {
        Self {
            topics,
            alpha: None,
            eta: None,
            seeds: Vec::new(),
            inference: Inference::default(),
            start: Start::default(),
            learn_alpha: LearnAlpha::default(),
            learn_eta: false,
            batch: 100,
            tau: 1024.0,
            kappa: 0.7,
            passes: 1.0,
            temper: Temper::None,
            seed: 0,
            restart: 0,
            local: LocalRule::default(),
            population: None,
            evaluations_per_pass: 0.0,
        }
    }

    /// Returns the Dirichlet parameter of topic proportions.
    pub fn alpha(&self) -> f64 {
        self.alpha.unwrap_or(1.0 / self.topics as f64)
    }

    /// Returns the Dirichlet parameter of word proportions.
    pub fn eta(&self) -> f64 {
        self.eta.unwrap_or(1.0 / self.topics as f64)
    }

    /// Returns the step size of iteration `t`. The first iteration has the number 0.
    pub fn step_size(&self, t: u64) -> f64 {
        (self.tau + t as f64).powf(-self.kappa)
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// Fails with a sentence for the user if a setting is invalid.
    pub fn check(&self) -> Result<(), SettingError> {
        let positive = |what: &str, x: f64| {
            if x.is_finite() && x > 0.0 {
                Ok(())
            } else {
                Err(SettingError::new(format!(
                    "{what} must be positive, not {x}"
                )))
            }
        };
        if self.topics == 0 {
            return Err(SettingError::new("the number of topics must be at least 1"));
        }
        if self.batch == 0 {
            return Err(SettingError::new("a batch must have at least one document"));
        }
        positive("alpha", self.alpha())?;
        positive("eta", self.eta())?;
        positive("passes", self.passes)?;
        positive("the tolerance of the local steps", self.local.tolerance)?;
        if self.local.max_iterations == 0 {
            return Err(SettingError::new(
                "a local step must have at least one iteration",
            ));
        }
        if !(self.tau.is_finite() && self.tau >= 1.0) {
            return Err(SettingError::new(format!(
                "tau must be at least 1, not {}",
                self.tau
            )));
        }
        if !(self.kappa > 0.5 && self.kappa <= 1.0) {
            return Err(SettingError::new(format!(
                "kappa is {}, but the step sizes converge only if it is above 0.5 and at most 1",
                self.kappa
            )));
        }
        if let Some(population) = self.population {
            positive("the population", population)?;
        }
        if !(self.evaluations_per_pass.is_finite() && self.evaluations_per_pass >= 0.0) {
            return Err(SettingError::new(
                "the number of evaluations per pass must not be negative",
            ));
        }
        self.check_together()?;
        self.temper.check()
    }

    fn check_together(&self) -> Result<(), SettingError> {
        let infers = matches!(self.temper, Temper::Global(_) | Temper::Local(_));
        if self.temper != Temper::None && self.inference == Inference::Cvb0 {
            return Err(SettingError::new(format!(
                "the temperature policy `{}` needs mean-field inference: use --inference mean-field, or \
                 --temper none",
                self.temper.name()
            )));
        }
        if self.learn_eta && !self.seeds.is_empty() {
            return Err(SettingError::new(
                "seed words need a fixed eta: remove --learn-eta",
            ));
        }
        if self.learn_alpha == LearnAlpha::Hdp && !self.seeds.is_empty() {
            return Err(SettingError::new(
                "a hierarchical Dirichlet process removes topics, so it has no seed words: remove --seed-words, or \
                 use --learn-alpha asymmetric",
            ));
        }
        if infers && (self.learn_alpha != LearnAlpha::Fixed || self.learn_eta) {
            return Err(SettingError::new(format!(
                "the temperature policy `{}` needs fixed alpha and eta: remove --learn-alpha and --learn-eta, \
                 or use --temper none or anneal=PASSES",
                self.temper.name()
            )));
        }
        Ok(())
    }
}
