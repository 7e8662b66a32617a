//! Destinations for records and tables. They are pictures, NPY files, CSV files and standard output.

use std::io::{BufWriter, Write};
use std::path::Path;

use jensen::data::{Number, RowFormat, RowWriter, write_atomic};

use crate::failure::Failure;

/// The destination to which rows or pictures are written.
pub enum Destination<'a> {
    Picture(&'a Path),
    Rows(&'a Path, RowFormat),
    Standard,
}

impl<'a> Destination<'a> {
    /// Returns the destinations that the user specified with `--out`. The default is standard output.
    pub fn all(paths: &'a [std::path::PathBuf]) -> Result<Vec<Self>, Failure> {
        if paths.is_empty() {
            return Ok(vec![Self::Standard]);
        }
        let destination = |path: &'a std::path::PathBuf| {
            let name = path.display().to_string();
            if name.to_lowercase().ends_with(".png") {
                return Ok(Self::Picture(path));
            }
            match RowFormat::of_name(&name) {
                Some(format) => Ok(Self::Rows(path, format)),
                None => Err(Failure::usage(format!(
                    "--out {name}: the name must end in .png, .npy or .csv"
                ))),
            }
        };
        paths.iter().map(destination).collect()
    }
}

/// Writes the rows that `fill` supplies. A file is written atomically.
pub fn write_rows<T: Number>(
    destination: &Destination<'_>,
    rows: usize,
    names: &[String],
    fill: &mut dyn FnMut(&mut RowWriter<'_, T>) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let mut whole = |out: &mut dyn Write, format| -> std::io::Result<()> {
        let mut writer = RowWriter::new(out, format, rows, names)?;
        fill(&mut writer)
    };
    match destination {
        Destination::Picture(path) => Err(no_picture(path, "these numbers are not pictures")),
        Destination::Rows(path, format) => {
            write_atomic(path, |file| whole(file, *format)).map_err(Failure::output)
        }
        Destination::Standard => {
            let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
            match whole(&mut out, RowFormat::Csv).and_then(|()| out.flush()) {
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(
                    Failure::output(format!("cannot write to standard output: {error}")),
                ),
                _ => Ok(()),
            }
        }
    }
}

/// Creates the failure that reports that a picture cannot be drawn.
pub fn no_picture(path: &Path, why: &str) -> Failure {
    Failure::usage(format!(
        "cannot draw `{}`: {why}; name a file that ends in .npy or .csv",
        path.display()
    ))
}

/// Returns `count` names, which are `stem1`, `stem2`, ….
pub fn numbered(stem: &str, count: usize) -> Vec<String> {
    (1..=count).map(|i| format!("{stem}{i}")).collect()
}
