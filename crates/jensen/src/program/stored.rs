//! The contents of a result folder that are needed to resume a fit or to draw from it.

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

/// The stored request of a fit, with information about its inputs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredFit {
    /// The name of the program in messages.
    pub model: String,
    /// The included files, by their names in the program.
    pub includes: BTreeMap<String, String>,
    /// The name and the format of the data, if there are any.
    pub data: Option<(String, DataFormat)>,
    /// The request, with the instruction set resolved.
    pub flags: FitRequest,
    /// The start of the fit.
    pub init: Init,
    /// The parameterisation of the program's groups, or `None` until it has been chosen. Runs of earlier versions kept
    /// the program's own parameterisation.
    #[serde(default = "as_they_are")]
    pub centring: Option<Centring>,
    /// The names of dimensions and their labels, from `--coords`.
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
    /// Fails if the folder does not belong to a fit of a program, or if it is damaged.
    pub fn open(path: &Path) -> Result<(RunDir, Self), Error> {
        let run = folder::open(path, FIT)?;
        let stored = folder::read_request(&run)?;
        Ok((run, stored))
    }

    /// Reads the stored copies of the program and its data.
    ///
    /// # Errors
    /// Fails if a copy cannot be read.
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
