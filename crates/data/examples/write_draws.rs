//! Writes `draws.csv` and `draws.nc` with known numbers to a folder. The script `tests/python/check_draws.py` reads
//! these files.
//!
//! Scalar k of draw d has the value (100 d + k) / 3, where k is the index of the scalar's column. In the row of the
//! mean, scalar k has the value k / 7.

use std::path::PathBuf;

use jensen_data::{
    DataError, DataSet, DrawsTable, DrawsVariable, NetcdfAttributes, Roles, StanCsvHeader,
    write_draws_csv, write_draws_netcdf,
};

fn main() -> Result<(), DataError> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    let draws = 50;
    let variables = vec![
        DrawsVariable::new("mu", []),
        DrawsVariable::new("theta", [8]),
        DrawsVariable::new("none", [0]),
        DrawsVariable::new("Sigma", [2, 2]),
        DrawsVariable::new("a", [2, 3, 4]),
    ];
    let width: usize = variables.iter().map(DrawsVariable::len).sum();
    let values = (0..draws)
        .flat_map(|d| (0..width).map(move |k| (100 * d + k) as f64 / 3.0))
        .collect();
    let log_p = (0..draws).map(|d| -10.0 - d as f64 / 7.0).collect();
    let log_g = (0..draws).map(|d| -11.0 + d as f64 / 3.0).collect();
    let mean = (0..width).map(|k| k as f64 / 7.0).collect();
    let table = DrawsTable::new(variables, values, log_p, log_g)?.with_mean(mean)?;

    let header = StanCsvHeader {
        model: "known_numbers".into(),
        family: "fullrank".into(),
        draws_of: "approximation".into(),
        seed: 7,
        eta: 0.1,
        ..StanCsvHeader::default()
    };
    write_draws_csv(
        &folder.join("draws.csv"),
        &table,
        &header.comments(table.len()),
    )?;
    let attributes = NetcdfAttributes {
        model: "known_numbers".into(),
        extra: vec![("seed".into(), "7".into())],
    };
    let observed = DataSet::from_json(br#"{"N": 3, "y": [[1.5, 2, 3], [4, 5, 6]]}"#, "inline")?;
    write_draws_netcdf(
        &folder.join("draws.nc"),
        &table,
        &Roles::by_name(std::iter::empty(), true),
        &attributes,
        Some(&observed),
    )
}
