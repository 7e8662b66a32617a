//! `draws.nc`: a NetCDF-4 file that ArviZ and xarray read.
//!
//! | group | contents | dimensions |
//! | --- | --- | --- |
//! | `posterior` | every variable that no other group has | `chain` (one), `draw`, then `name_dim_0`, `name_dim_1`, … |
//! | `log_likelihood`, `posterior_predictive` | the variables of those [`Roles`] | the same |
//! | `sample_stats` | `lp`, the model's log density | `chain`, `draw` |
//! | `approximation` | of draws of an approximation: `log_p` (model), `log_q`, `log_weight` = log_p − log_q | `chain`, `draw` |
//! | `observed_data` | the data that a predictive variable predicts: `y` of `y_rep` | `name_dim_0`, … |
//! | `constant_data` | the other data | `name_dim_0`, … |
//!
//! Index coordinates count from 0, as ArviZ writes them. Elements are row-major, the order of the format. The attributes
//! of every group name the library, its version and the model. Variables of size zero are left out, and so are data
//! variables whose names no model could declare.

use std::path::Path;

use netcdf_writer::{
    DimensionId, NcAttrValue, NcFileBuilder, NcWriteFormat, NcWriteOptions, NcWriteType,
    Result as NcResult,
};

use crate::atomic::write_atomic_bytes;
use crate::dataset::{DataSet, Elements, Value};
use crate::draws::{DrawsTable, DrawsVariable, is_storable_name};
use crate::error::DataError;

/// What variables are to ArviZ; those that are not named are the posterior's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Roles {
    /// Pointwise log likelihoods.
    pub log_likelihood: Vec<String>,
    /// Draws of data from the model; `y_rep` and `y_pred` predict `y`.
    pub predictive: Vec<String>,
    /// Whether the draws are those of an approximation, with weights.
    pub approximate: bool,
}

impl Roles {
    /// Roles by the names of the generated quantities.
    pub fn by_name<'a>(generated: impl Iterator<Item = &'a str>, approximate: bool) -> Self {
        let mut roles = Self {
            approximate,
            ..Self::default()
        };
        for name in generated {
            if name == "log_lik" {
                roles.log_likelihood.push(name.to_owned());
            } else if predicted(name).is_some() {
                roles.predictive.push(name.to_owned());
            }
        }
        roles
    }

    fn group(&self, name: &str) -> &'static str {
        let among = |names: &[String]| names.iter().any(|n| n == name);
        if among(&self.log_likelihood) {
            "log_likelihood"
        } else if among(&self.predictive) {
            "posterior_predictive"
        } else {
            "posterior"
        }
    }

    fn observes(&self, data: &str) -> bool {
        self.predictive
            .iter()
            .any(|name| predicted(name) == Some(data))
    }
}

/// The data that a variable predicts, by its name.
fn predicted(name: &str) -> Option<&str> {
    name.strip_suffix("_rep")
        .or_else(|| name.strip_suffix("_pred"))
}

/// What the attributes of the groups say.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NetcdfAttributes {
    /// The model's name.
    pub model: String,
    /// Further attributes in order, such as the seed or the family. Names: letters, digits and `_`.
    pub extra: Vec<(String, String)>,
}

/// Writes the draws, and the data if given, as NetCDF-4, atomically.
pub fn write_draws_netcdf(
    path: &Path,
    table: &DrawsTable,
    roles: &Roles,
    attributes: &NetcdfAttributes,
    data: Option<&DataSet>,
) -> Result<(), DataError> {
    let bytes = encode(table, roles, attributes, data)
        .map_err(|e| DataError::invalid(format!("cannot write `{}`: {e}", path.display())))?;
    write_atomic_bytes(path, &bytes)
}

fn encode(
    table: &DrawsTable,
    roles: &Roles,
    attributes: &NetcdfAttributes,
    data: Option<&DataSet>,
) -> NcResult<Vec<u8>> {
    let mut file = NcFileBuilder::new();
    for name in ["posterior", "log_likelihood", "posterior_predictive"] {
        let mut start = 0;
        let mut group = None;
        for variable in table.variables() {
            let first = start;
            start += variable.len();
            if variable.is_empty() || roles.group(&variable.name) != name {
                continue;
            }
            if group.is_none() {
                let mut made = Group::new(&mut file, name, attributes)?;
                let sample = made.sample_dimensions(table.len())?;
                group = Some((made, sample));
            }
            if let Some((group, sample)) = &mut group {
                let values = row_major_draws(table, variable, first);
                group.add(&variable.name, sample, &variable.shape, &values)?;
            }
        }
    }
    encode_densities(&mut file, table, roles, attributes)?;
    if let Some(data) = data {
        let named = || data.iter().filter(|(name, _)| is_storable_name(name));
        for (group, observed) in [("observed_data", true), ("constant_data", false)] {
            let mut values = named().filter(|(name, _)| roles.observes(name) == observed);
            let Some(first) = values.next() else { continue };
            let mut group = Group::new(&mut file, group, attributes)?;
            for (name, value) in std::iter::once(first).chain(values) {
                group.add_value(name, value)?;
            }
        }
    }
    let (_, bytes) = file.to_vec(NcWriteOptions {
        format: NcWriteFormat::Nc4,
    })?;
    Ok(bytes)
}

/// The log densities at the draws.
fn encode_densities(
    file: &mut NcFileBuilder,
    table: &DrawsTable,
    roles: &Roles,
    attributes: &NetcdfAttributes,
) -> NcResult<()> {
    let mut stats = Group::new(file, "sample_stats", attributes)?;
    let sample = stats.sample_dimensions(table.len())?;
    stats.add("lp", &sample, &[], table.log_p())?;
    if roles.approximate {
        let mut group = Group::new(file, "approximation", attributes)?;
        let sample = group.sample_dimensions(table.len())?;
        group.add("log_p", &sample, &[], table.log_p())?;
        group.add("log_q", &sample, &[], table.log_g())?;
        group.add("log_weight", &sample, &[], &table.log_weights())?;
    }
    Ok(())
}

/// Draws of one variable, each with its last index fastest. `start` is the variable's first column.
fn row_major_draws(table: &DrawsTable, variable: &DrawsVariable, start: usize) -> Vec<f64> {
    // order[k] is the column-major offset of the k-th element in row-major order.
    let mut order = vec![0];
    let mut stride = 1;
    for size in &variable.shape {
        order = order
            .iter()
            .flat_map(|base| (0..*size).map(move |i| base + i * stride))
            .collect();
        stride *= size;
    }
    (0..table.len())
        .flat_map(|d| order.iter().map(move |k| table.row(d)[start + k]))
        .collect()
}

/// A group under construction.
struct Group<'a> {
    file: &'a mut NcFileBuilder,
    name: &'static str,
}

impl<'a> Group<'a> {
    fn new(
        file: &'a mut NcFileBuilder,
        name: &'static str,
        attributes: &NetcdfAttributes,
    ) -> NcResult<Self> {
        let fixed = [
            ("inference_library", "jensen"),
            ("inference_library_version", env!("CARGO_PKG_VERSION")),
            ("creation_library", "jensen"),
            ("model_name", &attributes.model),
        ];
        let extra = attributes
            .extra
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()));
        for (key, value) in fixed.into_iter().chain(extra) {
            // An attribute must not be empty; a model without a name has no such attribute.
            if !value.is_empty() {
                file.add_group_attribute(name, key, NcAttrValue::Strings(vec![value.to_string()]))?;
            }
        }
        Ok(Self { file, name })
    }

    /// A dimension with its index coordinate 0, 1, ….
    fn dimension(&mut self, name: &str, size: usize) -> NcResult<DimensionId> {
        let path = format!("{}/{name}", self.name);
        let dimension = self.file.add_dimension_path(&path, size as u64)?;
        let coordinate = self.file.add_variable_path::<i64>(&path, &[dimension])?;
        let index: Vec<i64> = (0..size as i64).collect();
        self.file.write_variable(coordinate, &index)?;
        Ok(dimension)
    }

    fn sample_dimensions(&mut self, draws: usize) -> NcResult<Vec<DimensionId>> {
        Ok(vec![
            self.dimension("chain", 1)?,
            self.dimension("draw", draws)?,
        ])
    }

    /// A variable with the given leading dimensions and dimensions of its own for `shape`.
    fn add<T: NcWriteType>(
        &mut self,
        name: &str,
        leading: &[DimensionId],
        shape: &[usize],
        values: &[T],
    ) -> NcResult<()> {
        let mut dimensions = leading.to_vec();
        for (i, size) in shape.iter().enumerate() {
            dimensions.push(self.dimension(&format!("{name}_dim_{i}"), *size)?);
        }
        let variable = self
            .file
            .add_variable_path::<T>(format!("{}/{name}", self.name), &dimensions)?;
        self.file.write_variable(variable, values)
    }

    /// A data variable; the slots of a tuple become variables `name:1`, `name:2`, ….
    fn add_value(&mut self, name: &str, value: &Value) -> NcResult<()> {
        match value.elements() {
            Elements::Tuple(slots) => slots
                .iter()
                .enumerate()
                .try_for_each(|(i, slot)| self.add_value(&format!("{name}:{}", i + 1), slot)),
            _ if value.is_empty() => Ok(()),
            Elements::Int(v) => self.add(name, &[], value.shape(), v),
            Elements::Real(v) => self.add(name, &[], value.shape(), v),
        }
    }
}
