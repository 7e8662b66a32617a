//! The encoding of checkpoints as safetensors files with a versioned JSON header and a digest.

use std::collections::HashMap;
use std::fmt;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::archive::{Archive, Tensor};

/// The version of the file layout that [`Checkpoint::encode`] writes. [`Checkpoint::decode`] rejects every other
/// version.
pub const FORMAT_VERSION: u32 = 1;

const HEADER_KEY: &str = "jensen";

/// The properties that a resumed run must have in common with the stored run. They ensure that the results of the
/// resumed run are bitwise identical to those of an uninterrupted run.
///
/// The budget is not one of these properties, because runs are usually resumed in order to extend their budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The name of the algorithm.
    pub algorithm: String,
    /// All settings that influence the results of the run.
    pub settings: Value,
    /// The seed of the run.
    pub seed: u64,
    /// The digest of the model.
    pub model_hash: String,
    /// The digest of the data.
    pub data_hash: String,
    /// The SIMD instruction set that the numerical kernels use.
    pub simd: String,
}

/// The position in the streams of random numbers. The streams are keyed by (seed, purpose, iteration, lane), so the
/// number of the last finished iteration determines the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RngPosition {
    /// The iteration number that the next random draws use as part of their key.
    pub next_iteration: u64,
}

/// A run that was stored so that it can be resumed.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The version of the crate that wrote the checkpoint.
    pub version: String,
    /// The identity of the run.
    pub identity: Identity,
    /// The number of finished iterations.
    pub iteration: u64,
    /// The wall-clock time in seconds that the run has used so far.
    pub seconds: f64,
    /// The state of the algorithm.
    pub state: Archive,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    version: String,
    identity: Identity,
    iteration: u64,
    rng: RngPosition,
    seconds: f64,
    scalars: Map<String, Value>,
    digest: String,
}

/// A field whose value in a checkpoint differs from its value in the current run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The name of the field.
    pub field: &'static str,
    /// The value in the checkpoint.
    pub stored: String,
    /// The value in the current run.
    pub present: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (field, stored, present) = (self.field, &self.stored, &self.present);
        write!(f, "{field}: stored {stored}, now {present}")
    }
}

/// The reason why a checkpoint cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The bytes are truncated, were modified, or do not contain a checkpoint.
    Corrupt(String),
    /// The checkpoint was written with another version of the file layout.
    Format {
        /// The layout version that the checkpoint states.
        found: u32,
    },
    /// The checkpoint belongs to a different run.
    Mismatch(Vec<Difference>),
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt(what) => write!(
                f,
                "the checkpoint is damaged ({what}); resume from an older one or start again"
            ),
            Self::Format { found } => write!(
                f,
                "the checkpoint has format version {found}, but this program reads version {FORMAT_VERSION}; \
                 resume with the version of Jensen that wrote it"
            ),
            Self::Mismatch(differences) => {
                f.write_str("the checkpoint belongs to another run: ")?;
                for (i, difference) in differences.iter().enumerate() {
                    if i > 0 {
                        f.write_str("; ")?;
                    }
                    write!(f, "{difference}")?;
                }
                f.write_str(
                    ". Resume with the same model, data and settings, or force the resume and give up \
                     bit-for-bit reproducibility",
                )
            }
        }
    }
}

impl std::error::Error for CheckpointError {}

fn corrupt(error: impl fmt::Display) -> CheckpointError {
    CheckpointError::Corrupt(error.to_string())
}

/// The number of values that the digest converts to bytes at a time.
const PIECE: usize = 4096;

fn little_endian(data: &[f64]) -> Vec<u8> {
    let bytes: Vec<[u8; 8]> = data.iter().map(|x| x.to_le_bytes()).collect();
    bytes.into_flattened()
}

/// Computes the SHA-256 of the header without its digest field, followed by the name, shape and bytes of every tensor.
fn digest(header: &Header, archive: &Archive) -> String {
    let bare = Header {
        digest: String::new(),
        version: header.version.clone(),
        identity: header.identity.clone(),
        scalars: header.scalars.clone(),
        ..*header
    };
    let mut hash = Sha256::new();
    hash.update(serde_json::to_vec(&bare).expect("a plain header"));
    for (name, tensor) in &archive.tensors {
        hash.update(name.as_bytes());
        for &extent in &tensor.shape {
            hash.update((extent as u64).to_le_bytes());
        }
        for piece in tensor.data.chunks(PIECE) {
            hash.update(little_endian(piece));
        }
    }
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

impl Identity {
    /// Returns the identity of a stored result. Only the name of the algorithm is set, because a stored result cannot
    /// be resumed.
    pub fn of_result(algorithm: &str) -> Self {
        Self {
            algorithm: algorithm.to_owned(),
            settings: Value::Null,
            seed: 0,
            model_hash: String::new(),
            data_hash: String::new(),
            simd: String::new(),
        }
    }
}

impl Checkpoint {
    /// Returns a checkpoint that stores the result of a run.
    pub fn of_result(identity: Identity, state: Archive) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            identity,
            iteration: 0,
            seconds: 0.0,
            state,
        }
    }

    /// Encodes the checkpoint as bytes. Equal checkpoints have equal bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut header = Header {
            format: FORMAT_VERSION,
            version: self.version.clone(),
            identity: self.identity.clone(),
            iteration: self.iteration,
            rng: RngPosition {
                next_iteration: self.iteration + 1,
            },
            seconds: self.seconds,
            scalars: self.state.scalars.clone(),
            digest: String::new(),
        };
        header.digest = digest(&header, &self.state);
        let json = serde_json::to_string(&header).expect("a plain header");
        let bytes: Vec<Vec<u8>> = self
            .state
            .tensors
            .values()
            .map(|tensor| little_endian(&tensor.data))
            .collect();
        let views = self
            .state
            .tensors
            .iter()
            .zip(&bytes)
            .map(|((name, tensor), bytes)| {
                let view = TensorView::new(Dtype::F64, tensor.shape.clone(), bytes)
                    .expect("eight bytes an element");
                (name.clone(), view)
            });
        // The metadata has only one key, because the iteration order of a hash map with several keys is not fixed.
        let metadata = HashMap::from([(HEADER_KEY.to_owned(), json)]);
        safetensors::serialize(views, Some(metadata)).expect("valid tensors")
    }

    /// Decodes bytes that [`encode`](Self::encode) produced.
    ///
    /// # Errors
    /// Fails with [`CheckpointError::Corrupt`] if the bytes are truncated, were modified or are not a checkpoint. Fails
    /// with [`CheckpointError::Format`] if the checkpoint was written with another version of the layout.
    pub fn decode(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let tensors = SafeTensors::deserialize(bytes).map_err(corrupt)?;
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(corrupt)?;
        let json = metadata
            .metadata()
            .as_ref()
            .and_then(|map| map.get(HEADER_KEY))
            .ok_or_else(|| corrupt("it has no Jensen header"))?;
        let value: Value = serde_json::from_str(json).map_err(corrupt)?;
        let found = value.get("format").and_then(Value::as_u64);
        match found {
            Some(format) if format == u64::from(FORMAT_VERSION) => {}
            Some(format) => {
                let found = u32::try_from(format).unwrap_or(u32::MAX);
                return Err(CheckpointError::Format { found });
            }
            None => return Err(corrupt("its header has no format version")),
        }
        let header: Header = serde_json::from_value(value).map_err(corrupt)?;
        let mut state = Archive {
            scalars: header.scalars.clone(),
            ..Archive::default()
        };
        for (name, view) in tensors.tensors() {
            if view.dtype() != Dtype::F64 {
                return Err(corrupt(format!("the tensor `{name}` is not f64")));
            }
            let data = view
                .data()
                .chunks_exact(8)
                .map(|c| f64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]]))
                .collect();
            let shape = view.shape().to_vec();
            state.tensors.insert(name, Tensor { shape, data });
        }
        if digest(&header, &state) != header.digest {
            return Err(corrupt("its content does not match its digest"));
        }
        Ok(Self {
            version: header.version,
            identity: header.identity,
            iteration: header.iteration,
            seconds: header.seconds,
            state,
        })
    }

    /// Compares this checkpoint with a new run that has `identity` and uses this version of the crate. Returns the
    /// fields that differ.
    pub fn differences(&self, identity: &Identity) -> Vec<Difference> {
        let quoted = |text: &str| format!("`{text}`");
        let stored = &self.identity;
        let fields = [
            (
                "version",
                quoted(&self.version),
                quoted(env!("CARGO_PKG_VERSION")),
            ),
            (
                "algorithm",
                quoted(&stored.algorithm),
                quoted(&identity.algorithm),
            ),
            (
                "settings",
                stored.settings.to_string(),
                identity.settings.to_string(),
            ),
            ("seed", stored.seed.to_string(), identity.seed.to_string()),
            (
                "model hash",
                quoted(&stored.model_hash),
                quoted(&identity.model_hash),
            ),
            (
                "data hash",
                quoted(&stored.data_hash),
                quoted(&identity.data_hash),
            ),
            ("SIMD level", quoted(&stored.simd), quoted(&identity.simd)),
        ];
        fields
            .into_iter()
            .filter(|(_, stored, present)| stored != present)
            .map(|(field, stored, present)| Difference {
                field,
                stored,
                present,
            })
            .collect()
    }

    /// Checks that a run with `identity` may resume from this checkpoint. If `force` is true, the function returns the
    /// differences instead of failing, so that the caller can report them to the user.
    ///
    /// # Errors
    /// Fails with [`CheckpointError::Mismatch`] if any field differs and `force` is false.
    pub fn accept(
        &self,
        identity: &Identity,
        force: bool,
    ) -> Result<Vec<Difference>, CheckpointError> {
        let differences = self.differences(identity);
        if differences.is_empty() || force {
            Ok(differences)
        } else {
            Err(CheckpointError::Mismatch(differences))
        }
    }
}
