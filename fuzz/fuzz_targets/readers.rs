//! Readers of data; the first byte says of which format.
#![no_main]

use jensen_data::symmetric::Symmetric;
use jensen_data::{DataSet, Table, idx, npy};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((format, bytes)) = bytes.split_first() else {
        return;
    };
    match format % 8 {
        0 => drop(DataSet::from_json(bytes, "x")),
        1 => drop(DataSet::from_rdump(bytes, "x")),
        2 => drop(Table::parse(bytes, "x.csv")),
        3 => drop(Table::parse(bytes, "x.tsv")),
        4 => drop(npy::parse(bytes, "x.npy")),
        5 => drop(npy::parse_npz(bytes, "x.npz")),
        6 => drop(idx::parse_idx(bytes, "x")),
        _ => drop(Symmetric::parse(bytes, "x")),
    }
});
