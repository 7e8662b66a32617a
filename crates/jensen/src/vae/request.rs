//! The settings of a fit, with their defaults.

use jensen_math::simd::Simd;
use jensen_neural::{
    Activation, Architecture, Convolutions, Estimator, Grid, Likelihood, Observation, Optimiser,
    PosteriorFamily, TrainSettings,
};
use serde::{Deserialize, Serialize};

#[cfg(feature = "clap")]
use super::decoder::parse_column;
use super::decoder::{
    ColumnKind, MIXED, categories, column_kind, counts, parse_decoder, student_t,
};
use super::words::{image, temper};
#[cfg(any(feature = "clap", test))]
use super::words::{parse_image, parse_temper};
use crate::Error;
use crate::job::words;
use crate::units::Standardise;

const LATENT: usize = 20;

const HIDDEN: &str = "500";

const EPOCHS: f64 = 100.0;

/// With this size, which is a multiple of the distance of windows, each pixel belongs to equally many windows. Otherwise the
/// images of a transposed convolution have the pattern of a chessboard (Odena, Dumoulin and Olah 2016).
const WINDOW: usize = 4;

pub(super) const UNMIXED: &str =
    "--columns needs columns with different distributions: remove it, or use --decoder mixed";

/// The settings of an auto-encoder. Absent settings take their defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct VaeRequest {
    /// Number of latent values [default: 20]
    #[cfg_attr(feature = "clap", arg(long, value_name = "J", value_parser = clap::value_parser!(u64).range(1..=100_000), help_heading = "Model"))]
    pub latent: Option<u64>,
    /// Units of the hidden layers, from the data to the latent values (500,200); the decoder has them in reverse; `none`
    /// makes both networks linear [default: 500]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N,…", value_parser = parse_layers, help_heading = "Model"))]
    pub hidden: Option<String>,
    /// Filters of convolutional layers between images and the hidden layers (32,64), each of which halves the resolution;
    /// the decoder has them in reverse
    #[cfg_attr(feature = "clap", arg(long, value_name = "N,…", value_parser = parse_filters, help_heading = "Model"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convolutions: Option<String>,
    /// Rows and columns of the windows of convolutional layers, in pixels [default: 4]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=100), help_heading = "Model"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Activation of the hidden layers: tanh, relu, softplus, sigmoid or identity [default: tanh]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_parser = parse_activation, help_heading = "Model"))]
    pub activation: Option<String>,
    /// Distribution of the data: bernoulli (values from 0 to 1), gaussian (means squashed to (0, 1) of images whose
    /// pixels all lie there), gaussian=free, gaussian=bounded, student-t (heavy tails, learnt degrees of freedom) or
    /// student-t=DEGREES, categorical=K (groups of K indicators), for counts poisson, negative-binomial or
    /// zero-inflated-negative-binomial, or for a table of numbers and words mixed (by column: numbers gaussian, 0 and 1
    /// bernoulli, words categorical) [default: bernoulli]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_parser = parse_decoder, help_heading = "Model"))]
    pub decoder: Option<String>,
    /// Distribution of a record's latent values given the record, whose means and variances the encoder outputs: gaussian,
    /// laplace, logistic, or student-t=DEGREES with at least 5 degrees of freedom [default: gaussian]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_parser = parse_posterior, help_heading = "Model"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub posterior: Option<String>,
    /// Columns of a mixed table with another distribution, each NAME=gaussian, student-t, bernoulli, categorical or a
    /// distribution of counts; a column of --given may be categorical
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "NAME=KIND,…", value_delimiter = ',', value_parser = parse_column, help_heading = "Model")
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Columns on which the model conditions: both networks read them, and the decoder does not generate them
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "NAME,…",
            value_delimiter = ',',
            help_heading = "Model"
        )
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<String>,
    /// Whether the means of counts are shares of a record's total, its library size, as for counts of RNA molecules in
    /// single cells [default: off]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "on|off", value_enum, help_heading = "Model")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library_size: Option<LibrarySize>,
    /// Whether a decoder of real numbers (student-t, or gaussian with means that are not squashed) sees standardised
    /// columns: bounds and records are in the units of the data either way [default: on]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "on|off", value_enum, help_heading = "Model")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standardise: Option<Standardise>,
    /// Give the decoder's weights a posterior instead of point estimates
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Model"))]
    pub full_vb: bool,
    /// No prior N(0, I) on the weights
    #[cfg_attr(
        feature = "clap",
        arg(long, conflicts_with = "full_vb", help_heading = "Model")
    )]
    pub no_weight_prior: bool,
    /// Size of the images in pixels, if the data lack it
    #[cfg_attr(feature = "clap", arg(long, value_name = "WxH", value_parser = parse_image, help_heading = "Data"))]
    pub image: Option<String>,
    /// Algorithm: aevb, or wake-sleep with the same networks, a baseline [default: aevb]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_parser = parse_method, help_heading = "Method"))]
    pub method: Option<String>,
    /// Estimator of the bound: a (everything at the draws) or b (divergence in closed form) [default: b]
    #[cfg_attr(feature = "clap", arg(long, value_name = "a|b", value_parser = parse_estimator, help_heading = "Method"))]
    pub estimator: Option<String>,
    /// Draws of the latent values per record [default: 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "L", value_parser = clap::value_parser!(u64).range(1..=1000), help_heading = "Method"))]
    pub samples: Option<u64>,
    /// Records of a minibatch [default: 100]
    #[cfg_attr(feature = "clap", arg(long, value_name = "M", value_parser = clap::value_parser!(u64).range(1..=1_000_000), help_heading = "Method"))]
    pub batch: Option<u64>,
    /// Optimiser: adagrad, adam or sgd [default: adagrad]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_parser = parse_optimiser, help_heading = "Method"))]
    pub optimizer: Option<String>,
    /// Step size [default: adagrad 0.02, adam 0.001, sgd 0.0001]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Method"))]
    pub step_size: Option<f64>,
    /// Temperature of the likelihood: none, or anneal=PASSES or anneal=PASSES:FROM, which falls from FROM (10) to 1 [default: none]
    #[cfg_attr(feature = "clap", arg(long, value_name = "POLICY", value_parser = parse_temper, help_heading = "Method"))]
    pub temper: Option<String>,
    /// Passes during which the weight of the divergence rises from 0 to that of --beta [default: 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "E", value_parser = words::not_negative, help_heading = "Method"))]
    pub warm_up: Option<f64>,
    /// Weight of the divergence in the training objective (β-VAE); bounds are those of the weight 1 [default: 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Method"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta: Option<f64>,
    /// Divergence of each latent value, in nats and on average over a minibatch, that the training objective does not
    /// count; bounds count it [default: 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NATS", value_parser = words::not_negative, help_heading = "Method"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_bits: Option<f64>,
    /// Standard deviation of the initial weights [default: 1/√inputs of a layer, a tenth of that for the decoder's heads; biases 0, the first head's at the data's means]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = words::positive, help_heading = "Method"))]
    pub initial_sd: Option<f64>,
    /// Passes over the data; fractions are allowed [default: 100]
    #[cfg_attr(feature = "clap", arg(long, value_name = "E", value_parser = words::positive, help_heading = "Run"))]
    pub epochs: Option<f64>,
    /// Early stopping: end after N validations without a better bound, and keep the best weights
    #[cfg_attr(feature = "clap", arg(long, visible_alias = "early-stopping", value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Run"))]
    pub patience: Option<u64>,
    /// Iterations (passes, unless they are long) between validations [default: 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Run"))]
    pub validate_every: Option<u64>,
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

/// Whether the means of counts are shares of a record's total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum LibrarySize {
    /// Means are shares of the total
    On,
    /// Means do not depend on the total
    #[default]
    Off,
}

/// The maximum number of minibatches in an iteration. A longer pass is divided into several iterations. Jensen can then
/// react to Ctrl-C, write checkpoints and report progress before the end of the pass.
const LONGEST: u64 = 1000;

impl VaeRequest {
    /// Returns the instruction set that the kernels use.
    ///
    /// # Errors
    /// Fails if no instruction set has the requested name, or if the machine does not support it.
    pub fn simd(&self) -> Result<Simd, Error> {
        words::simd(self.simd.as_deref())
    }

    /// Returns whether the networks are trained by the wake-sleep algorithm.
    pub fn wake_sleep(&self) -> bool {
        self.method.as_deref() == Some("wake-sleep")
    }

    fn refuse_foreign(&self) -> Result<(), Error> {
        let given = [
            ("--estimator", self.estimator.is_some()),
            ("--samples", self.samples.is_some()),
            ("--full-vb", self.full_vb),
            ("--temper", self.temper.is_some()),
            ("--warm-up", self.warm_up.is_some()),
            ("--beta", self.beta.is_some()),
            ("--free-bits", self.free_bits.is_some()),
        ];
        match given.iter().find(|(_, given)| self.wake_sleep() && *given) {
            Some((flag, _)) => Err(Error::Setting(format!(
                "{flag} has no meaning for wake-sleep: remove it, or use --method aevb"
            ))),
            None => Ok(()),
        }
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// Returns the number of passes over the data.
    pub fn epochs(&self) -> f64 {
        self.epochs.unwrap_or(EPOCHS)
    }

    /// Returns whether the columns of the table may have different distributions.
    pub fn is_mixed(&self) -> bool {
        self.decoder.as_deref() == Some(MIXED)
    }

    /// Returns whether the fit uses the names or the words of a table.
    pub fn reads_table(&self) -> bool {
        self.is_mixed() || !self.given.is_empty()
    }

    pub(super) fn column_kinds(&self) -> Result<Vec<(String, ColumnKind)>, Error> {
        let columns = self.columns.iter().map(|text| column_kind(text));
        columns.collect::<Result<_, _>>().map_err(Error::Setting)
    }

    /// Returns the distribution of the data, or of the columns of real numbers if the columns have different
    /// distributions. Set `unit` if the data are images whose pixels lie between 0 and 1.
    ///
    /// # Errors
    /// Fails if no decoder has the requested name, or if `--standardise` does not apply to the decoder.
    pub fn likelihood(&self, unit: bool) -> Result<Likelihood, Error> {
        let asked = self
            .decoder
            .as_deref()
            .map_or(Ok(String::new()), parse_decoder);
        asked.map_err(Error::Setting)?;
        let likelihood = match self.decoder.as_deref().unwrap_or("bernoulli") {
            "bernoulli" => Likelihood::Bernoulli,
            "gaussian" => Likelihood::Gaussian { bounded: unit },
            "gaussian=free" | MIXED => Likelihood::Gaussian { bounded: false },
            "gaussian=bounded" => Likelihood::Gaussian { bounded: true },
            other => {
                let named = counts(other).or_else(|| student_t(other));
                named.unwrap_or(Likelihood::Categorical {
                    categories: categories(other).unwrap_or_default(),
                })
            }
        };
        if !self.columns.is_empty() && !self.reads_table() {
            return Err(Error::setting(UNMIXED));
        }
        if self.has_library_size() && !likelihood.is_of_counts() {
            return Err(Error::Setting(format!(
                "--library-size needs a decoder of counts: remove it, or use --decoder {}",
                Likelihood::NegativeBinomial.name()
            )));
        }
        if self.standardise.is_some() && !likelihood.is_of_reals() {
            return Err(Error::setting(
                "--standardise needs a Gaussian decoder with unbounded means: remove it, or use --decoder \
                 gaussian=free",
            ));
        }
        Ok(likelihood)
    }

    /// Returns whether the mean of each count is a share of the total of its record.
    pub fn has_library_size(&self) -> bool {
        self.library_size == Some(LibrarySize::On)
    }

    /// Returns the architecture for records with these extents under the given likelihood. Images have the extents height
    /// and width, and those with several channels have the number of channels as the third.
    ///
    /// # Errors
    /// Fails if networks with these settings cannot be built.
    pub fn architecture(
        &self,
        extents: &[usize],
        likelihood: Likelihood,
    ) -> Result<Architecture, Error> {
        let width = extents.iter().product();
        self.architecture_of(Observation::new(width, likelihood), extents)
    }

    fn convolutions(&self, extents: &[usize]) -> Result<Option<Convolutions>, Error> {
        let Some(text) = self.convolutions.as_deref() else {
            return match self.window {
                Some(_) => Err(Error::setting(
                    "--window needs convolutional layers: remove it, or add --convolutions",
                )),
                None => Ok(None),
            };
        };
        let image = match *extents {
            [height, width] => Grid {
                height,
                width,
                channels: 1,
            },
            [height, width, channels] => Grid {
                height,
                width,
                channels,
            },
            _ => {
                return Err(Error::setting(
                    "--convolutions needs images: give their size (--image 28x28), or remove it",
                ));
            }
        };
        Ok(Some(Convolutions {
            image,
            filters: filters(text).map_err(Error::Setting)?,
            window: self.window.map_or(WINDOW, |window| window as usize),
        }))
    }

    pub(super) fn architecture_of(
        &self,
        observation: Observation,
        extents: &[usize],
    ) -> Result<Architecture, Error> {
        for (given, check) in [
            (&self.activation, parse_activation as fn(&str) -> _),
            (&self.estimator, parse_estimator),
            (&self.optimizer, parse_optimiser),
            (&self.method, parse_method),
        ] {
            let checked: Result<String, String> = given.as_deref().map_or(Ok(String::new()), check);
            checked.map_err(Error::Setting)?;
        }
        self.refuse_foreign()?;
        let encoder = layers(self.hidden.as_deref().unwrap_or(HIDDEN)).map_err(Error::setting)?;
        let architecture = Architecture {
            observation,
            latent: self.latent.map_or(LATENT, |latent| latent as usize),
            posterior: posterior(self.posterior.as_deref().unwrap_or("gaussian"))
                .map_err(Error::setting)?,
            convolutions: self.convolutions(extents)?,
            decoder: encoder.iter().rev().copied().collect(),
            encoder,
            activation: Activation::by_name(self.activation.as_deref().unwrap_or("tanh"))
                .unwrap_or_default(),
        };
        architecture
            .check()
            .map_err(|error| Error::setting(error.to_string()))?;
        Ok(architecture)
    }

    /// Returns the settings for training on `records` training records.
    ///
    /// # Errors
    /// Fails if a setting is invalid.
    pub fn settings(&self, records: usize) -> Result<TrainSettings, Error> {
        let batch = self.batch.map_or(100, |batch| batch as usize);
        let per_pass = records.div_ceil(batch) as u64;
        Ok(TrainSettings {
            estimator: match self.estimator.as_deref() {
                Some("a") => Estimator::Joint,
                _ => Estimator::Analytic,
            },
            samples: self.samples.map_or(1, |samples| samples as usize),
            batch,
            optimiser: self.optimiser(),
            weight_prior: !self.no_weight_prior,
            full_bayes: self.full_vb,
            temper: temper(self.temper.as_deref().unwrap_or("none")).map_err(Error::setting)?,
            warm_up: self.warm_up.unwrap_or(0.0),
            beta: self.beta.unwrap_or(1.0),
            free_bits: self.free_bits.unwrap_or(0.0),
            minibatches: (per_pass > LONGEST)
                .then(|| per_pass.div_ceil(per_pass.div_ceil(LONGEST))),
            validate_every: self.validate_every.unwrap_or(1),
            patience: self.patience,
            seed: self.seed(),
            initial_sd: self.initial_sd,
            ..TrainSettings::default()
        })
    }

    fn optimiser(&self) -> Optimiser {
        let step = |default: f64| self.step_size.unwrap_or(default) as f32;
        match self.optimizer.as_deref() {
            Some("adam") => Optimiser::adam(step(0.001)),
            Some("sgd") => Optimiser::Sgd { step: step(0.0001) },
            _ => Optimiser::adagrad(step(0.02)),
        }
    }

    /// Returns the width and the height of the images, or `None` if the request does not specify them.
    pub fn image(&self) -> Option<(usize, usize)> {
        image(self.image.as_deref()?).ok()
    }
}

fn layers(text: &str) -> Result<Vec<usize>, String> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let units = text.split(',').map(|part| match part.trim().parse() {
        Ok(n @ 1..=1_000_000) => Ok(n),
        _ => Err("expected numbers of units such as 500 or 500,200, or none".to_owned()),
    });
    units.collect()
}

fn filters(text: &str) -> Result<Vec<usize>, String> {
    let filters = text.split(',').map(|part| match part.trim().parse() {
        Ok(n @ 1..=100_000) => Ok(n),
        _ => Err("expected numbers of filters such as 32 or 32,64".to_owned()),
    });
    filters.collect()
}

#[cfg(feature = "clap")]
fn parse_filters(text: &str) -> Result<String, String> {
    filters(text).map(|_| text.to_owned())
}

#[cfg(any(feature = "clap", test))]
fn parse_layers(text: &str) -> Result<String, String> {
    layers(text).map(|_| text.to_owned())
}

fn posterior(text: &str) -> Result<PosteriorFamily, String> {
    PosteriorFamily::by_name(text).ok_or_else(|| {
        format!(
            "expected gaussian, laplace, logistic, or student-t=DEGREES with a whole number from {} to {}",
            PosteriorFamily::LEAST_DEGREES,
            PosteriorFamily::MOST_DEGREES
        )
    })
}

#[cfg(feature = "clap")]
fn parse_posterior(text: &str) -> Result<String, String> {
    posterior(text).map(|_| text.to_owned())
}

fn parse_activation(text: &str) -> Result<String, String> {
    let names: Vec<&str> = Activation::ALL.iter().map(|(name, _)| *name).collect();
    one_of(text, &names)
}

fn parse_estimator(text: &str) -> Result<String, String> {
    one_of(text, &["a", "b"])
}

fn parse_method(text: &str) -> Result<String, String> {
    one_of(text, &["aevb", "wake-sleep"])
}

fn parse_optimiser(text: &str) -> Result<String, String> {
    one_of(text, &["adagrad", "adam", "sgd"])
}

fn one_of(text: &str, names: &[&str]) -> Result<String, String> {
    if names.contains(&text) {
        Ok(text.to_owned())
    } else {
        Err(format!("expected one of {}", names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use jensen_neural::Temper;

    use super::*;

    #[test]
    fn flags_become_networks_and_settings() {
        let flags = VaeRequest {
            latent: Some(3),
            hidden: Some("50,20".into()),
            decoder: Some("gaussian".into()),
            temper: Some("anneal=4:5".into()),
            optimizer: Some("adam".into()),
            batch: Some(10),
            ..VaeRequest::default()
        };
        let images = flags.likelihood(true).unwrap();
        let architecture = flags.architecture(&[6], images).unwrap();
        assert_eq!(
            (
                architecture.encoder.as_slice(),
                architecture.decoder.as_slice()
            ),
            (&[50, 20][..], &[20, 50][..])
        );
        assert_eq!(
            architecture.observation.likelihood,
            Likelihood::Gaussian { bounded: true }
        );
        assert_eq!(
            flags.likelihood(false).unwrap(),
            Likelihood::Gaussian { bounded: false }
        );
        let settings = flags.settings(25).unwrap();
        assert_eq!(settings.optimiser, Optimiser::adam(0.001));
        assert_eq!(
            settings.temper,
            Temper::Anneal {
                passes: 4.0,
                from: 5.0
            }
        );
        assert_eq!(settings.minibatches, None);
        // A pass of 2500 minibatches is divided into three iterations.
        assert_eq!(flags.settings(25_000).unwrap().minibatches, Some(834));
        let grouped = VaeRequest {
            decoder: Some("categorical=4".into()),
            ..VaeRequest::default()
        };
        let groups = grouped.likelihood(true).unwrap();
        assert!(grouped.architecture(&[6], groups).is_err());
        assert_eq!(grouped.architecture(&[8], groups).unwrap().encoder, [500]);
        let mut layered = VaeRequest {
            convolutions: Some("3, 5".into()),
            ..VaeRequest::default()
        };
        let found = layered
            .architecture(&[9, 7], Likelihood::Bernoulli)
            .unwrap();
        let found = found.convolutions.unwrap();
        assert_eq!((found.image.height, found.image.width), (9, 7));
        assert_eq!((found.filters, found.window), (vec![3, 5], 4));
        let refused = layered.architecture(&[63], images).unwrap_err().to_string();
        assert!(refused.contains("--image"), "{refused}");
        layered.convolutions = None;
        layered.window = Some(5);
        let refused = layered
            .architecture(&[9, 7], images)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("--convolutions"), "{refused}");
        let asleep = VaeRequest {
            method: Some("wake-sleep".into()),
            warm_up: Some(3.0),
            ..VaeRequest::default()
        };
        let refused = asleep.architecture(&[6], images).unwrap_err().to_string();
        assert!(refused.contains("--warm-up"), "{refused}");
        let idle = VaeRequest {
            standardise: Some(Standardise::On),
            ..grouped
        };
        assert!(idle.likelihood(false).is_err());
        let heavy = VaeRequest {
            posterior: Some("student-t=6".into()),
            ..VaeRequest::default()
        };
        let found = heavy.architecture(&[6], images).unwrap().posterior;
        assert_eq!(found, PosteriorFamily::StudentT { degrees: 6 });
        let unbounded = VaeRequest {
            posterior: Some("student-t=4".into()),
            ..VaeRequest::default()
        };
        let refused = unbounded.architecture(&[6], images).unwrap_err();
        assert!(refused.to_string().contains("from 5 to 1000"), "{refused}");
        let mut counted = VaeRequest {
            library_size: Some(LibrarySize::On),
            ..VaeRequest::default()
        };
        let refused = counted.likelihood(false).unwrap_err().to_string();
        assert!(refused.contains("--decoder negative-binomial"), "{refused}");
        counted.decoder = Some("poisson".into());
        assert_eq!(counted.likelihood(false).unwrap(), Likelihood::Poisson);
    }

    #[test]
    fn wrong_words_are_refused() {
        for wrong in ["", "0", "5,", "5,x", "-1"] {
            assert!(parse_layers(wrong).is_err(), "{wrong}");
        }
        for wrong in [
            "gauss",
            "poison",
            "categorical",
            "categorical=1",
            "gaussian=2",
        ] {
            assert!(parse_decoder(wrong).is_err(), "{wrong}");
        }
        for wrong in ["anneal", "anneal=0", "anneal=2:0.5", "global"] {
            assert!(parse_temper(wrong).is_err(), "{wrong}");
        }
        for wrong in ["28", "0x3", "ax3", "3x"] {
            assert!(parse_image(wrong).is_err(), "{wrong}");
        }
        assert_eq!(layers("none"), Ok(Vec::new()));
    }
}
