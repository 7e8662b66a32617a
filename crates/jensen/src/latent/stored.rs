//! A fit as it is kept on disk.

use jensen_latent::{Fit, Likelihood, Warm};
use jensen_run::{Archive, ArchiveError, Checkpoint, Identity, Snapshot};

use crate::Error;

/// Name of the algorithm in the file's header.
const ALGORITHM: &str = "latent";

/// What is needed to predict with a fit beside its request and its table: hyperparameters and the dual's solution, with the
/// posterior's moments for readers of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The prior's free hyperparameters.
    pub theta: Vec<f64>,
    /// The likelihood with its parameters.
    pub likelihood: Likelihood,
    /// The dual's solution.
    pub dual: Warm,
    /// m, one a latent variable.
    pub mean: Vec<f64>,
    /// diag V.
    pub variance: Vec<f64>,
    /// diag W V Wᵀ.
    pub predictor_variance: Vec<f64>,
}

impl Stored {
    /// What is kept of a fit.
    pub fn new(theta: &[f64], likelihood: Likelihood, fit: &Fit) -> Self {
        Self {
            theta: theta.to_vec(),
            likelihood,
            dual: fit.warm(),
            mean: fit.mean.clone(),
            variance: fit.variance.clone(),
            predictor_variance: fit.predictor_variance.clone(),
        }
    }

    /// As safetensors bytes.
    pub fn encode(&self) -> Vec<u8> {
        Checkpoint::of_result(Identity::of_result(ALGORITHM), self.save()).encode()
    }

    /// Reads bytes that [`encode`](Self::encode) made.
    ///
    /// # Errors
    /// The bytes are damaged, of another format version or hold something else.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let checkpoint = Checkpoint::decode(bytes).map_err(|e| Error::Input(e.to_string()))?;
        Self::restore(&checkpoint.state)
            .map_err(|e| Error::Input(format!("this is no latent Gaussian fit: {e}")))
    }
}

impl Snapshot for Stored {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("theta", &self.theta);
        archive.set("likelihood", self.likelihood);
        archive.put("alpha", &self.dual.alpha);
        archive.put("lambda", &self.dual.lambda);
        archive.put("mean", &self.mean);
        archive.put("variance", &self.variance);
        archive.put("predictor_mean", &self.dual.predictor);
        archive.put("predictor_variance", &self.predictor_variance);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        Ok(Self {
            theta: archive.vec("theta")?,
            likelihood: archive.get("likelihood")?,
            dual: Warm {
                alpha: archive.vec("alpha")?,
                lambda: archive.vec("lambda")?,
                predictor: archive.vec("predictor_mean")?,
            },
            mean: archive.vec("mean")?,
            variance: archive.vec("variance")?,
            predictor_variance: archive.vec("predictor_variance")?,
        })
    }
}
