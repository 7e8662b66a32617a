//! Auto-encoders with their weights, and the file format in which they are stored.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use jensen_data::{Rows, Table};
use jensen_math::simd::Simd;
use jensen_neural::{Architecture, Autoencoder, AutoencoderError, Records, Tensor, TensorSpec};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::data::open_table;
use super::layout::TableLayout;
use super::rows::{check_present, log_jacobians, log_scales, names_or_numbers};
use super::table::{self, TableColumn};
use super::{UnitRecords, check_rows, read_as};
use crate::Error;
use crate::units::Units;

const LAYOUT: u32 = 1;

const KEY: &str = "jensen_autoencoder";

const LOG_SD: &str = "posterior_log_sd.";

/// An auto-encoder with its architecture and its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct VaeModel {
    /// The architecture of the networks.
    pub architecture: Architecture,
    /// The extents of a record. The values are stored with the last index varying fastest. For an image, the extents
    /// are the height and the width.
    pub extents: Vec<usize>,
    /// The standardised units that the networks use for the values of a record.
    pub units: Units,
    /// The columns of the table and their positions in a record, if they have different uses.
    pub layout: Option<TableLayout>,
    /// The names of the columns of a table without a layout. The list is empty if the data had no names.
    pub names: Vec<String>,
    /// The point estimates of the weights, or the means of their posterior. The tensors of the encoder come before the
    /// tensors of the decoder.
    pub tensors: Vec<Tensor>,
    /// The logarithms of the posterior standard deviations of the decoder's weights. The list is empty if the weights
    /// are point estimates.
    pub log_sds: Vec<Tensor>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Description {
    layout: u32,
    version: String,
    architecture: Architecture,
    extents: Vec<usize>,
    units: Units,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    columns: Option<Vec<TableColumn>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
    weights: usize,
    digest: String,
}

/// The error returned if bytes do not contain an auto-encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaeModelError(String);

impl fmt::Display for VaeModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for VaeModelError {}

fn error(what: impl fmt::Display) -> VaeModelError {
    VaeModelError(format!(
        "this file does not have the weights of an auto-encoder: {what}"
    ))
}

fn bytes(data: &[f32]) -> Vec<u8> {
    data.iter().flat_map(|x| x.to_le_bytes()).collect()
}

impl VaeModel {
    /// Returns the width and the height of a record in pixels, or `None` if records are not images.
    pub fn image(&self) -> Option<(usize, usize)> {
        match self.extents[..] {
            [height, width] if height > 1 && width > 1 => Some((width, height)),
            _ => None,
        }
    }

    /// Converts rows in the units of the data to records in the units of the networks.
    pub fn records<'a>(&'a self, rows: &'a Rows) -> UnitRecords<'a> {
        UnitRecords {
            rows,
            units: &self.units,
            layout: self.layout.as_ref(),
        }
    }

    /// Converts concatenated records in the units of the networks to rows in the units of the data. In a column of
    /// words, the number of a row is the position of its most probable word, or this word itself if all words are
    /// numbers. Columns on which the model conditions have NaN.
    pub fn rows(&self, records: &[f32]) -> Vec<f64> {
        match &self.layout {
            Some(layout) => {
                let records = records.chunks_exact(self.architecture.observation.width);
                records
                    .flat_map(|record| layout.row(&self.units, record))
                    .collect()
            }
            None => self.units.rows_back(records),
        }
    }

    /// Opens rows in the form that the model expects, and checks them. If the model was fitted to named columns, the
    /// file must have columns of the same names, in any order.
    ///
    /// # Errors
    /// Fails if the file cannot be read or if a row is rejected. The message gives the first such row.
    pub fn open_rows(&self, path: &Path) -> Result<Rows, Error> {
        let likelihood = self.architecture.observation.likelihood;
        let rows = match &self.layout {
            Some(layout) => table::rows(layout.columns(), &open_table(path, None)?)?,
            None => read_as(Rows::open(path)?.with_columns(&self.names)?, likelihood),
        };
        self.check_rows(&rows)?;
        Ok(rows)
    }

    /// Converts a table in memory to rows, as [`open_rows`](Self::open_rows) does for a file.
    ///
    /// # Errors
    /// Fails under the same conditions as [`open_rows`](Self::open_rows).
    pub fn rows_of(&self, table: &Table) -> Result<Rows, Error> {
        let rows = match &self.layout {
            Some(layout) => table::rows(layout.columns(), table)?,
            None => Rows::of_table(table)?.with_columns(&self.names)?,
        };
        self.check_rows(&rows)?;
        Ok(rows)
    }

    /// Returns the names of the columns, which are `x1`, `x2`, … if the data had no names.
    pub fn names(&self) -> Vec<String> {
        match &self.layout {
            Some(layout) => layout.names(),
            None => names_or_numbers(&self.names, self.units.columns()),
        }
    }

    /// Checks that every row is in the domain of the decoder and has the same number of values as the rows of the fit.
    ///
    /// # Errors
    /// Fails with [`Error::Input`] if a row is rejected. The message gives the first such row.
    pub fn check_rows(&self, rows: &Rows) -> Result<(), Error> {
        let observation = &self.architecture.observation;
        let (likelihood, missing) = (observation.likelihood, observation.missing);
        if let Some(layout) = &self.layout {
            return check_present(rows, missing, &layout.modelled());
        }
        check_rows(rows, self.units.columns(), likelihood, missing)
    }

    /// Returns the log density of each record in the units of the data, minus its log density in the units of the
    /// networks.
    pub fn log_jacobians(&self, records: &dyn Records) -> Vec<f64> {
        log_jacobians(&log_scales(&self.units, self.layout.as_ref()), records)
    }

    fn named(&self) -> Vec<(String, &Tensor)> {
        let means = self.tensors.iter().map(|t| (t.spec.name.clone(), t));
        let sds = self.log_sds.iter();
        let sds = sds.map(|t| (format!("{LOG_SD}{}", t.spec.name), t));
        let mut named: Vec<_> = means.chain(sds).collect();
        named.sort_by(|a, b| a.0.cmp(&b.0));
        named
    }

    fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (name, tensor) in self.named() {
            hash.update(name.as_bytes());
            hash.update(bytes(&tensor.data));
        }
        hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
    }

    fn describe(&self) -> Description {
        Description {
            layout: LAYOUT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            architecture: self.architecture.clone(),
            extents: self.extents.clone(),
            units: self.units.clone(),
            columns: self.layout.as_ref().map(|layout| layout.columns().to_vec()),
            names: self.names.clone(),
            weights: self.architecture.weights(),
            digest: self.digest(),
        }
    }

    /// Returns a description of the auto-encoder as JSON. The description contains the architecture, the extents of a
    /// record, the number of weights, and the digest of the weights.
    pub fn description(&self) -> String {
        let text = serde_json::to_string_pretty(&self.describe()).expect("a plain description");
        text + "\n"
    }

    /// Encodes the weights in the safetensors format in single precision. Each weight matrix is stored as `inputs ×
    /// outputs`, and the metadata contain the description.
    pub fn encode(&self) -> Vec<u8> {
        let stored: Vec<(String, Vec<usize>, Vec<u8>)> = self
            .named()
            .into_iter()
            .map(|(name, tensor)| {
                let TensorSpec {
                    inputs, outputs, ..
                } = tensor.spec;
                (name, vec![inputs, outputs], bytes(&tensor.data))
            })
            .collect();
        let views = stored.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
            (name.as_str(), view.expect("four bytes an element"))
        });
        let description = serde_json::to_string(&self.describe()).expect("a plain description");
        let metadata = HashMap::from([(KEY.to_owned(), description)]);
        safetensors::serialize(views, Some(metadata)).expect("valid tensors")
    }

    /// Decodes bytes that [`encode`](Self::encode) produced.
    ///
    /// # Errors
    /// Fails if the bytes are damaged or have another layout, or if the weights do not match the architecture.
    pub fn decode(bytes: &[u8]) -> Result<Self, VaeModelError> {
        let stored = SafeTensors::deserialize(bytes).map_err(error)?;
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(error)?;
        let description = metadata.metadata().as_ref().and_then(|m| m.get(KEY));
        let description = description.ok_or_else(|| error("it has no description"))?;
        let value: serde_json::Value = serde_json::from_str(description).map_err(error)?;
        if value["layout"] != LAYOUT {
            return Err(error(format!(
                "the layout is {}, but this program reads {LAYOUT}",
                value["layout"]
            )));
        }
        let description: Description = serde_json::from_value(value).map_err(error)?;
        let architecture = description.architecture;
        architecture.check().map_err(error)?;
        let width: usize = description.extents.iter().product();
        let units = description.units;
        let layout = description
            .columns
            .map(|columns| match columns.len() == units.columns() {
                true => TableLayout::new(columns, &units).map_err(error),
                false => Err(error("columns and units disagree")),
            })
            .transpose()?;
        let own = layout.as_ref().map_or(units.width(), TableLayout::width);
        if width != units.columns() || own != architecture.observation.record_width() {
            return Err(error("extents and architecture disagree"));
        }
        let read = |name: String, spec: &TensorSpec| -> Result<Tensor, VaeModelError> {
            let view = stored
                .tensor(&name)
                .map_err(|_| error(format!("the tensor `{name}` is missing")))?;
            if view.dtype() != Dtype::F32 || view.shape() != [spec.inputs, spec.outputs] {
                return Err(error(format!(
                    "the tensor `{name}` is {:?} {:?}, but the architecture needs F32 [{}, {}]",
                    view.dtype(),
                    view.shape(),
                    spec.inputs,
                    spec.outputs
                )));
            }
            let data = view.data().chunks_exact(4);
            let data = data.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
            Ok(Tensor {
                spec: spec.clone(),
                data: data.collect(),
            })
        };
        let specs = architecture.specs();
        let tensors: Vec<Tensor> = specs
            .iter()
            .map(|spec| read(spec.name.clone(), spec))
            .collect::<Result<_, _>>()?;
        let log_sds: Vec<Tensor> = specs
            .iter()
            .map(|spec| (format!("{LOG_SD}{}", spec.name), spec))
            .filter(|(name, _)| stored.tensor(name).is_ok())
            .map(|(name, spec)| read(name, spec))
            .collect::<Result<_, _>>()?;
        let model = Self {
            architecture,
            extents: description.extents,
            units,
            layout,
            names: description.names,
            tensors,
            log_sds,
        };
        if model.digest() != description.digest {
            return Err(error("its content does not match its digest"));
        }
        Ok(model)
    }

    /// Builds the networks. If the weights of the decoder have a posterior, the networks include it.
    ///
    /// # Errors
    /// Fails if the architecture uses operations without a single-precision kernel, or if only some of the decoder's
    /// tensors have a posterior.
    pub fn autoencoder(&self, simd: Simd) -> Result<Autoencoder, AutoencoderError> {
        Autoencoder::new(self.architecture.clone(), self.tensors.clone(), simd)?
            .with_posterior(self.log_sds.clone())
    }
}

#[cfg(test)]
mod tests {
    use jensen_neural::{Likelihood, initial_weights};

    use super::*;

    #[test]
    fn an_autoencoder_comes_back_from_its_bytes() {
        let architecture = Architecture::paper(6, 2, 3, Likelihood::Bernoulli);
        let tensors = initial_weights(
            jensen_math::simd::Simd::detect(),
            &architecture.specs(),
            1,
            Some(0.1),
        );
        let model = VaeModel {
            log_sds: tensors[architecture.encoder_tensors()..].to_vec(),
            tensors,
            extents: vec![2, 3],
            units: Units::as_they_are(6),
            layout: None,
            names: ["a b", "c", "d", "e", "f", "g"].map(str::to_owned).to_vec(),
            architecture,
        };
        assert_eq!(model.image(), Some((3, 2)));
        let encoded = model.encode();
        assert_eq!(VaeModel::decode(&encoded).unwrap(), model);
        assert_eq!(encoded, model.encode());
        let said = |bytes: &[u8]| VaeModel::decode(bytes).unwrap_err().to_string();
        assert!(said(&encoded[..encoded.len() - 1]).contains("does not have the weights"));
        let mut changed = encoded.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert!(said(&changed).contains("digest"));
        let mut other = model.clone();
        other.architecture.latent = 1;
        assert!(said(&other.encode()).contains("encoder.mean.weight"));
    }
}
