//! The contents of a result folder that Jensen needs to resume a fit or to draw from its approximation.

use std::collections::BTreeMap;
use std::path::Path;

use jensen_blackbox::Init;
use jensen_data::{Coordinates, DataFile, DataFormat, RunDir, read_bytes, read_text};
use serde::{Deserialize, Serialize};

use super::FIT;
use super::request::FitRequest;
use super::source::{Includes, MODEL, REGRESSION, Source, data_file};
use crate::job::folder;
use crate::{Centring, Error};

/// The stored request of a fit, with information about its input files.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredFit {
    /// The name of the program that messages use.
    pub model: String,
    /// The stored copies of the included files. The keys are the names that the program uses.
    pub includes: BTreeMap<String, String>,
    /// The name and the format of the data, or `None` if the program has no data.
    pub data: Option<(String, DataFormat)>,
    /// The settings of the fit, with the instruction set that was chosen.
    pub flags: FitRequest,
    /// The starting point of the fit.
    pub init: Init,
    /// The parameterisation of the groups in the program, or `None` if it has not been chosen yet. Earlier versions of
    /// Jensen always used the parameterisation that the program defines.
    #[serde(default = "as_they_are")]
    pub centring: Option<Centring>,
    /// The names of dimensions and the labels of their elements, as given by `--coords`.
    #[serde(default, skip_serializing_if = "Coordinates::is_empty")]
    pub coordinates: Coordinates,
}

#[allow(clippy::unnecessary_wraps, reason = "an absent field has a default")]
fn as_they_are() -> Option<Centring> {
    Some(Centring::default())
}

impl StoredFit {
    pub(super) fn of(
        source: &Source,
        request: &FitRequest,
        init: Init,
        centring: Option<Centring>,
    ) -> Result<Self, Error> {
        let data = source.data.as_ref();
        Ok(Self {
            model: source.model.clone(),
            includes: source.includes.found(),
            data: data.map(|data| (data.name.clone(), data.format)),
            flags: FitRequest {
                simd: Some(request.simd()?.name().to_owned()),
                init: None,
                ..request.clone()
            },
            init,
            centring,
            coordinates: source.coordinates.clone(),
        })
    }

    /// Opens the folder of an earlier fit.
    ///
    /// # Errors
    /// Fails if the folder does not contain a fit of a program, or if its files are damaged.
    pub fn open(path: &Path) -> Result<(RunDir, Self), Error> {
        let run = folder::open(path, FIT)?;
        let stored = folder::read_request(&run)?;
        Ok((run, stored))
    }

    /// Reads the copies of the program and its data that the folder contains.
    ///
    /// # Errors
    /// Fails if one of the copies cannot be read.
    pub fn source(&self, folder: &RunDir) -> Result<Source, Error> {
        let data = match &self.data {
            Some((name, format)) => Some(DataFile {
                name: name.clone(),
                format: *format,
                bytes: read_bytes(&folder.path().join(data_file(*format)))?,
            }),
            None => None,
        };
        let kept = folder.path().join(REGRESSION);
        Ok(Source {
            model: self.model.clone(),
            text: read_text(&folder.path().join(MODEL))?,
            includes: Includes::of_texts(self.includes.clone()),
            data,
            coordinates: self.coordinates.clone(),
            regression: kept.is_file().then(|| read_bytes(&kept)).transpose()?,
        })
    }
}
