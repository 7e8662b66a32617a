//! The file format in which the posterior of a fit is stored.

use jensen_latent::{Likelihood, Warm};
use jensen_run::{Archive, ArchiveError, Checkpoint, Identity, Snapshot};

use super::Learnt;
use crate::Error;

const ALGORITHM: &str = "latent";

/// The data that predictions need in addition to the request and the table of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredPosterior {
    /// The points of the posterior of the hyperparameters.
    pub points: Vec<StoredPoint>,
}

/// A point of the posterior of the hyperparameters, with the dual solution of the fit at this point.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredPoint {
    /// The weight of this point in the mixture.
    pub weight: f64,
    /// The values of the free hyperparameters of the prior.
    pub theta: Vec<f64>,
    /// The likelihood with its parameters at this point.
    pub likelihood: Likelihood,
    /// The solution of the dual problem.
    pub dual: Warm,
}

impl StoredPosterior {
    /// Extracts the data that predictions need from a fit.
    pub fn new(learnt: &Learnt) -> Self {
        let points = learnt.points.iter().map(|point| StoredPoint {
            weight: point.weight,
            theta: point.theta.clone(),
            likelihood: point.likelihood,
            dual: point.fit.warm(),
        });
        Self {
            points: points.collect(),
        }
    }

    /// Encodes the stored posterior in the safetensors format.
    pub fn encode(&self) -> Vec<u8> {
        Checkpoint::of_result(Identity::of_result(ALGORITHM), self.save()).encode()
    }

    /// Decodes bytes that [`encode`](Self::encode) produced.
    ///
    /// # Errors
    /// Fails if the bytes are damaged, have another format version or do not contain a stored posterior.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let checkpoint = Checkpoint::decode(bytes).map_err(|e| Error::Input(e.to_string()))?;
        let bad = |e: String| Error::Input(format!("this is not a latent Gaussian fit: {e}"));
        let stored = Self::restore(&checkpoint.state).map_err(|e| bad(e.to_string()))?;
        match stored.points.is_empty() {
            true => Err(bad("it does not have a point".to_owned())),
            false => Ok(stored),
        }
    }
}

impl Snapshot for StoredPosterior {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.set("points", self.points.len());
        for (k, point) in self.points.iter().enumerate() {
            archive.put(&format!("weight{k}"), &[point.weight]);
            archive.put(&format!("theta{k}"), &point.theta);
            archive.set(&format!("likelihood{k}"), point.likelihood);
            archive.put(&format!("alpha{k}"), &point.dual.alpha);
            archive.put(&format!("lambda{k}"), &point.dual.lambda);
            archive.put(&format!("predictor{k}"), &point.dual.predictor);
        }
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let count: usize = archive.get("points")?;
        let point = |k: usize| -> Result<StoredPoint, ArchiveError> {
            Ok(StoredPoint {
                weight: archive.vec_of(&format!("weight{k}"), 1)?[0],
                theta: archive.vec(&format!("theta{k}"))?,
                likelihood: archive.get(&format!("likelihood{k}"))?,
                dual: Warm {
                    alpha: archive.vec(&format!("alpha{k}"))?,
                    lambda: archive.vec(&format!("lambda{k}"))?,
                    predictor: archive.vec(&format!("predictor{k}"))?,
                },
            })
        };
        Ok(Self {
            points: (0..count).map(point).collect::<Result<_, _>>()?,
        })
    }
}
