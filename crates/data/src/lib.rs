//! Readers and writers of files. This is the only library crate of Jensen that opens files.
//!
//! | subject | module |
//! | --- | --- |
//! | Stan data by name, typed look-up | [`dataset`], [`lookup`] |
//! | readers of CmdStan JSON and R dumps, and of either by its file | [`json`], [`rdump`], [`data_file`] |
//! | posterior draws and their writers: Stan CSV, NetCDF for ArviZ with dimensions and labels | [`draws`], [`stan_csv`], [`netcdf`], [`coordinates`] |
//! | tables of named columns: CSV and text, NPY and NPZ | [`table`], [`table_csv`], [`npy`] |
//! | rows of Parquet files that need not fit into memory, in builds with the feature `parquet` | `columns` |
//! | images and labels: IDX | [`idx`] |
//! | rows for networks, mapped into memory: IDX, NPY, CSV, MAT, pictures | [`rows`] |
//! | neighbours of regions: INLA, BUGS, edge lists | [`adjacency`] |
//! | sparse symmetric matrices: Matrix Market, triplets | [`symmetric`] |
//! | the summary of a fit, `fit.json` | [`summary`] |
//! | whole files and folders | [`files`] |
//! | atomic writes, run folders, digests of their files, traces | [`atomic`], [`run_dir`], [`digests`], [`trace`] |
//! | corpora of documents: readers, vocabulary, memory-mapped file | [`corpus`] |
//! | errors | [`error`] |
//!
//! Arrays from data files are in row-major order, which is the order of nested JSON lists: the last index changes
//! fastest. Draws are in the column-major order of the columns in CmdStan's CSV files: the first index changes fastest.
//! The documentation of each type states its order.

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

pub mod adjacency;
pub mod atomic;
pub mod bytes;
#[cfg(feature = "parquet")]
pub mod columns;
pub mod coordinates;
#[cfg(feature = "corpus")]
pub mod corpus;
pub mod data_file;
pub mod dataset;
pub mod digests;
pub mod draws;
mod elements;
pub mod error;
pub mod files;
pub mod idx;
pub mod json;
pub mod lookup;
pub mod netcdf;
pub mod npy;
pub mod rdump;
pub mod rows;
pub mod run_dir;
mod source;
pub mod stan_csv;
pub mod summary;
pub mod symmetric;
pub mod table;
pub mod table_csv;
pub mod trace;

pub use adjacency::Adjacency;
pub use atomic::{sweep, write_atomic, write_atomic_bytes};
pub use bytes::Bytes;
pub use coordinates::{Coordinates, Labels};
pub use data_file::{DataFile, DataFormat};
pub use dataset::{DataSet, Elements, Value};
pub use digests::Digests;
pub use draws::{DrawsTable, DrawsVariable};
pub use error::{DataError, ParseError};
pub use files::{
    create_folder, list_folder, read_bytes, read_optional, read_text, read_within, remove_file,
    remove_files,
};
pub use jensen_math::text;
pub use lookup::{Entry, similar_name};
pub use netcdf::{NETCDF, NetcdfAttributes, Roles, predicted, write_draws_netcdf};
pub use rows::{Number, RowFormat, RowWriter, Rows};
pub use run_dir::{Artefact, Claim, RunDir};
pub use stan_csv::{AdviConfig, StanCsvComments, StanCsvHeader, read_draws_csv, write_draws_csv};
pub use summary::{
    ElboPoint, FIT_FORMAT, FitSummary, ParameterSummary, PlainSummary, RefinementSummary, Seconds,
};
pub use symmetric::Symmetric;
pub use table::{Cells, Column, Table};
pub use trace::{TraceWriter, read_trace};
