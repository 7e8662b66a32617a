//! Encodes the groups of a NetCDF file.

use std::collections::BTreeMap;

use netcdf_writer::{
    DimensionId, NcAttrValue, NcFileBuilder, NcWriteFormat, NcWriteOptions, NcWriteType,
    Result as NcResult,
};

use super::{NetcdfAttributes, Roles};
use crate::coordinates::{Coordinates, Labels};
use crate::dataset::{DataSet, Elements, Value};
use crate::draws::{DrawsTable, DrawsVariable, is_storable_name};

pub(super) fn encode(
    table: &DrawsTable,
    roles: &Roles,
    attributes: &NetcdfAttributes,
    data: Option<&DataSet>,
) -> NcResult<Vec<u8>> {
    let mut file = NcFileBuilder::new();
    // The groups of draws are omitted if there are no draws, because the format does not allow a dimension of size
    // zero.
    let variables = if table.is_empty() {
        &[][..]
    } else {
        table.variables()
    };
    for name in ["posterior", "log_likelihood", "posterior_predictive"] {
        let mut start = 0;
        let mut group = None;
        for variable in variables {
            let first = start;
            start += variable.len();
            if variable.is_empty() || roles.group(&variable.name) != name {
                continue;
            }
            if group.is_none() {
                let mut made = Group::new(&mut file, name, roles, attributes)?;
                let sample = made.sample_dimensions(table.len())?;
                group = Some((made, sample));
            }
            if let Some((group, sample)) = &mut group {
                let values = row_major_draws(table, variable, first);
                group.add(&variable.name, sample, &variable.shape, &values)?;
            }
        }
    }
    if !table.is_empty() {
        encode_densities(&mut file, table, roles, attributes)?;
    }
    if let Some(data) = data {
        let named = || data.iter().filter(|(name, _)| is_storable_name(name));
        for (group, observed) in [("observed_data", true), ("constant_data", false)] {
            let mut values = named().filter(|(name, _)| roles.observes(name) == observed);
            let Some(first) = values.next() else { continue };
            let all: Vec<(&str, &Value)> = std::iter::once(first).chain(values).collect();
            let mut group = Group::new(&mut file, group, roles, attributes)?;
            // Arrays are written before scalars. A scalar that is the size of a dimension of an array is then
            // recognised and is not written as a variable.
            let (scalars, arrays): (Vec<_>, Vec<_>) = all
                .into_iter()
                .partition(|(_, value)| value.shape().is_empty());
            for (name, value) in arrays {
                group.add_value(name, value)?;
            }
            for (name, value) in scalars {
                if !group.dimensions.contains_key(name) {
                    group.add_value(name, value)?;
                }
            }
        }
    }
    let (_, bytes) = file.to_vec(NcWriteOptions {
        format: NcWriteFormat::Nc4,
    })?;
    Ok(bytes)
}

fn encode_densities(
    file: &mut NcFileBuilder,
    table: &DrawsTable,
    roles: &Roles,
    attributes: &NetcdfAttributes,
) -> NcResult<()> {
    let mut stats = Group::new(file, "sample_stats", roles, attributes)?;
    let sample = stats.sample_dimensions(table.len())?;
    stats.add("lp", &sample, &[], table.log_p())?;
    if roles.approximate {
        let mut group = Group::new(file, "approximation", roles, attributes)?;
        let sample = group.sample_dimensions(table.len())?;
        group.add("log_p", &sample, &[], table.log_p())?;
        group.add("log_q", &sample, &[], table.log_g())?;
        group.add("log_weight", &sample, &[], &table.log_weights())?;
    }
    Ok(())
}

/// Returns the draws of one variable in row-major order. `start` is the index of the variable's first column.
fn row_major_draws(table: &DrawsTable, variable: &DrawsVariable, start: usize) -> Vec<f64> {
    // The entry order[k] is the column-major offset of the element that is at position k in row-major order.
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

struct Group<'a> {
    file: &'a mut NcFileBuilder,
    name: &'static str,
    coordinates: &'a Coordinates,
    dimensions: BTreeMap<String, (DimensionId, usize)>,
}

impl<'a> Group<'a> {
    fn new(
        file: &'a mut NcFileBuilder,
        name: &'static str,
        roles: &'a Roles,
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
            // An attribute must not be empty. If the model has no name, the attribute with the name is omitted.
            if !value.is_empty() {
                file.add_group_attribute(name, key, NcAttrValue::Strings(vec![value.to_string()]))?;
            }
        }
        Ok(Self {
            file,
            name,
            coordinates: &roles.coordinates,
            dimensions: BTreeMap::new(),
        })
    }

    /// Adds a dimension with its labels. If it has no labels, they are 0, 1, ….
    fn dimension(&mut self, name: &str, size: usize) -> NcResult<DimensionId> {
        let path = format!("{}/{name}", self.name);
        let dimension = self.file.add_dimension_path(&path, size as u64)?;
        let along = [dimension];
        let labels = self.coordinates.coords.get(name);
        match labels.filter(|labels| labels.len() == size) {
            Some(Labels::Words(words)) => {
                let labels = self.file.add_string_variable_path(&path, &along)?;
                self.file.write_string_variable(labels, words)?;
            }
            Some(Labels::Numbers(numbers)) => {
                let labels = self.file.add_variable_path::<f64>(&path, &along)?;
                self.file.write_variable(labels, numbers)?;
            }
            Some(Labels::Whole(numbers)) => {
                let labels = self.file.add_variable_path::<i64>(&path, &along)?;
                self.file.write_variable(labels, numbers)?;
            }
            None => {
                let labels = self.file.add_variable_path::<i64>(&path, &along)?;
                let index: Vec<i64> = (0..size as i64).collect();
                self.file.write_variable(labels, &index)?;
            }
        }
        self.dimensions.insert(name.to_owned(), (dimension, size));
        Ok(dimension)
    }

    /// Returns a dimension for a variable. If there is a dimension of the same name and size, it is reused.
    fn shared(
        &mut self,
        name: &str,
        size: usize,
        variable: &str,
        at: usize,
    ) -> NcResult<DimensionId> {
        match self.dimensions.get(name) {
            Some((dimension, there)) if *there == size => Ok(*dimension),
            Some(_) => self.dimension(&format!("{variable}_dim_{at}"), size),
            None => self.dimension(name, size),
        }
    }

    fn sample_dimensions(&mut self, draws: usize) -> NcResult<Vec<DimensionId>> {
        Ok(vec![
            self.dimension("chain", 1)?,
            self.dimension("draw", draws)?,
        ])
    }

    fn add<T: NcWriteType>(
        &mut self,
        name: &str,
        leading: &[DimensionId],
        shape: &[usize],
        values: &[T],
    ) -> NcResult<()> {
        let mut dimensions = leading.to_vec();
        let names = self.coordinates.names(name, shape.len());
        for (at, (dimension, size)) in names.iter().zip(shape).enumerate() {
            dimensions.push(self.shared(dimension, *size, name, at)?);
        }
        let variable = self
            .file
            .add_variable_path::<T>(format!("{}/{name}", self.name), &dimensions)?;
        self.file.write_variable(variable, values)
    }

    /// Adds a data variable. Each slot of a tuple becomes a separate variable, named `name:1`, `name:2`, ….
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
