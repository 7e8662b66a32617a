//! A fitted approximation, with reproducible draws and a stored form.

use std::fmt;
use std::sync::Arc;

use jensen_density::{Lanes, LanesMut, Pattern};
use jensen_run::{Archive, ArchiveError, Checkpoint, CheckpointError, Identity, Snapshot};

use crate::family::{Family, FamilyKind, FamilyName, Space};
use crate::noise::{NoisePurpose, NoiseSource};

/// A fitted member of a family of distributions on the unconstrained space.
#[derive(Clone, Debug)]
pub struct Approximation {
    family: Arc<dyn Family>,
    omega: Vec<f64>,
}

/// A set of draws of an approximation.
#[derive(Clone, Debug, PartialEq)]
pub struct Draws {
    /// The draws as a `dim × count` matrix, in which the draws of each coordinate are contiguous.
    pub z: Vec<f64>,
    /// The number of coordinates.
    pub dim: usize,
    /// The number of draws.
    pub count: usize,
    /// The log density `log q` of the approximation at each draw.
    pub log_q: Vec<f64>,
}

impl Draws {
    /// Returns the draws as a matrix of lanes.
    pub fn lanes(&self) -> Lanes<'_> {
        Lanes::new(&self.z, self.dim, self.count)
    }

    /// Returns the draw with the given index.
    pub fn draw(&self, index: usize) -> Vec<f64> {
        let mut out = vec![0.0; self.dim];
        self.lanes().copy_lane(index, &mut out);
        out
    }
}

/// The error for a stored approximation that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The bytes are damaged or have another format.
    Bytes(CheckpointError),
    /// An entry of the file is missing or has the wrong size.
    Content(ArchiveError),
    /// The stored family differs from the given family, or no family was given although the stored family is a caller's
    /// own.
    Family {
        /// The stored family.
        stored: FamilyName,
        /// The given family, if any.
        given: Option<FamilyName>,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(error) => error.fmt(f),
            Self::Content(error) => write!(f, "this is not a stored approximation: {error}"),
            Self::Family {
                stored,
                given: None,
            } => write!(
                f,
                "the approximation belongs to the family `{stored}`, which Jensen does not have: read it in Rust with that family \
                 (`Approximation::decode_as`)"
            ),
            Self::Family {
                stored,
                given: Some(given),
            } => write!(
                f,
                "the approximation belongs to the family `{stored}`, not to `{given}`"
            ),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Bytes(error) => error.source(),
            Self::Content(error) => Some(error),
            Self::Family { .. } => None,
        }
    }
}

impl Approximation {
    /// Creates the member of `kind` on a space, such as ℝᵈ, with parameters ω, or returns `None` if ω has the wrong
    /// length.
    pub fn new(kind: FamilyKind, space: impl Into<Space>, omega: Vec<f64>) -> Option<Self> {
        Self::of(kind.build(space), omega)
    }

    /// Creates the member of a family with parameters ω, or returns `None` if ω has the wrong length.
    pub fn of(family: Arc<dyn Family>, omega: Vec<f64>) -> Option<Self> {
        (family.parameters() == omega.len()).then_some(Self { family, omega })
    }

    /// Returns the family of the approximation.
    pub fn family(&self) -> &Arc<dyn Family> {
        &self.family
    }

    /// Returns the name of the family.
    pub fn name(&self) -> FamilyName {
        self.family.name()
    }

    /// Returns the dimension of the unconstrained space.
    pub fn dim(&self) -> usize {
        self.family.dim()
    }

    /// Returns the parameters ω.
    pub fn omega(&self) -> &[f64] {
        &self.omega
    }

    /// Returns the mean of the approximation.
    pub fn mean(&self) -> Vec<f64> {
        self.family.mean(&self.omega)
    }

    /// Returns the marginal standard deviation of each coordinate.
    pub fn sd(&self) -> Vec<f64> {
        self.family.marginal_sd(&self.omega)
    }

    /// Returns the entropy of the approximation in nats.
    pub fn entropy(&self) -> f64 {
        self.family.entropy(&self.omega)
    }

    /// Returns the draws `0..count` for a seed. Draw i depends only on the seed and i, so a smaller set of draws is a
    /// prefix of a larger set.
    pub fn draws(&self, count: usize, source: NoiseSource) -> Draws {
        self.draws_from(0, count, source)
    }

    /// Returns the draws `first..first + count` for a seed.
    pub fn draws_from(&self, first: u64, count: usize, source: NoiseSource) -> Draws {
        let (rows, dim) = (self.family.noise_dim(), self.dim());
        let mut noise = vec![0.0; rows * count];
        source.fill(NoisePurpose::Draws, 0, first, rows, count, &mut noise);
        let noise = Lanes::new(&noise, rows, count);
        let mut z = vec![0.0; dim * count];
        self.family
            .transform(&self.omega, noise, LanesMut::new(&mut z, dim, count));
        let mut log_q = vec![0.0; count];
        self.family
            .log_density(&self.omega, noise, Lanes::new(&z, dim, count), &mut log_q);
        Draws {
            z,
            dim,
            count,
            log_q,
        }
    }

    /// Returns the approximation in safetensors format. The header identifies the model and the data.
    pub fn encode(&self, identity: &Identity) -> Vec<u8> {
        Checkpoint::of_result(identity.clone(), self.save()).encode()
    }

    /// Reads an approximation from the output of [`encode`](Self::encode), together with the stored identity.
    ///
    /// # Errors
    /// Fails if the bytes are damaged, have another format version, are not an approximation, or belong to a caller's
    /// own family.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Identity), LoadError> {
        let checkpoint = Checkpoint::decode(bytes).map_err(LoadError::Bytes)?;
        let stored = name_of(&checkpoint.state).map_err(LoadError::Content)?;
        if stored.kind().is_none() {
            return Err(LoadError::Family {
                stored,
                given: None,
            });
        }
        let approximation = Self::restore(&checkpoint.state).map_err(LoadError::Content)?;
        Ok((approximation, checkpoint.identity))
    }

    /// Reads a stored approximation of a caller's own family, in the same way as [`decode`](Self::decode) reads an
    /// approximation of one of Jensen's families.
    ///
    /// # Errors
    /// Fails if the bytes are damaged, have another format version or are not an approximation. Also fails if the
    /// family has another name or another number of parameters.
    pub fn decode_as(bytes: &[u8], family: Arc<dyn Family>) -> Result<(Self, Identity), LoadError> {
        let checkpoint = Checkpoint::decode(bytes).map_err(LoadError::Bytes)?;
        let stored = name_of(&checkpoint.state).map_err(LoadError::Content)?;
        if stored != family.name() {
            return Err(LoadError::Family {
                stored,
                given: Some(family.name()),
            });
        }
        let omega = checkpoint.state.vec("omega").map_err(LoadError::Content)?;
        let found = omega.len();
        let approximation =
            Self::of(family, omega).ok_or_else(|| LoadError::Content(misfit(found)))?;
        Ok((approximation, checkpoint.identity))
    }
}

impl Snapshot for Approximation {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.set("family", self.name());
        archive.set("dim", self.dim());
        archive.put("omega", &self.omega);
        if let Some(pattern) = self.family.space().pattern {
            let lists: Vec<Vec<u32>> = (0..pattern.dim())
                .map(|i| pattern.neighbours(i).to_vec())
                .collect();
            let lengths: Vec<f64> = lists.iter().map(|list| list.len() as f64).collect();
            let members: Vec<f64> = lists.concat().into_iter().map(f64::from).collect();
            archive.put("neighbours", &members);
            archive.put("degrees", &lengths);
        }
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let omega = archive.vec("omega")?;
        let found = omega.len();
        let space = Space {
            dim: archive.get("dim")?,
            pattern: stored_pattern(archive)?,
        };
        let name = name_of(archive)?;
        let kind = name
            .kind()
            .ok_or_else(|| ArchiveError(format!("Jensen does not have its family `{name}`")))?;
        Self::new(kind, space, omega).ok_or_else(|| misfit(found))
    }
}

fn name_of(archive: &Archive) -> Result<FamilyName, ArchiveError> {
    archive.get("family")
}

fn misfit(found: usize) -> ArchiveError {
    ArchiveError(format!(
        "the approximation has {found} parameters, which does not match the family"
    ))
}

fn stored_pattern(archive: &Archive) -> Result<Option<Arc<Pattern>>, ArchiveError> {
    let Ok(degrees) = archive.vec("degrees") else {
        return Ok(None);
    };
    let dim: usize = archive.get("dim")?;
    let members = archive.vec("neighbours")?;
    let index = |x: &f64| (*x >= 0.0 && *x < dim as f64).then_some(*x as u32);
    let members: Option<Vec<u32>> = members.iter().map(index).collect();
    let damaged = || {
        ArchiveError("the stored sparsity pattern of the precision matrix is corrupt".to_owned())
    };
    let members = members.ok_or_else(damaged)?;
    if degrees.len() != dim || degrees.iter().sum::<f64>() != members.len() as f64 {
        return Err(damaged());
    }
    let mut rest = &members[..];
    let lists = degrees.iter().map(|degree| {
        let (list, behind) = rest.split_at((*degree as usize).min(rest.len()));
        rest = behind;
        list.to_vec()
    });
    Ok(Some(Arc::new(Pattern::new(lists.collect()))))
}
