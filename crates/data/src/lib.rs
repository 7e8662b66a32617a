//! Readers and writers: Stan JSON, Rdump, Stan CSV, NetCDF for ArviZ, traces.
