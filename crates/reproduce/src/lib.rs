//! Tables and figures of the papers behind Jensen, from real data.
