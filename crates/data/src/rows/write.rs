//! Writes NPY and CSV files of numbers, one row at a time.

use std::fmt::Display;
use std::io::{self, Write};
use std::marker::PhantomData;

use crate::table_csv::quoted;

/// The format of a file that contains rows of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// A NumPy array of little-endian numbers in C order.
    Npy,
    /// Comma-separated values. The header contains the names of the columns.
    Csv,
}

impl RowFormat {
    /// Returns the format of a file whose name ends in `.npy` or `.csv`, or `None` for any other name.
    pub fn of_name(name: &str) -> Option<Self> {
        let ending = name.rsplit_once('.')?.1.to_lowercase();
        match ending.as_str() {
            "npy" => Some(Self::Npy),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

/// A floating-point type of single or double precision.
pub trait Number: Copy + Display + PartialOrd {
    /// The name of the type in the NPY format.
    const TYPE: &'static str;

    /// Writes the number in little-endian byte order.
    ///
    /// # Errors
    /// Fails if writing to `out` fails.
    fn write(self, out: &mut dyn Write) -> io::Result<()>;
}

impl Number for f32 {
    const TYPE: &'static str = "<f4";

    fn write(self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.to_le_bytes())
    }
}

impl Number for f64 {
    const TYPE: &'static str = "<f8";

    fn write(self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.to_le_bytes())
    }
}

/// Writes a stream of rows. The number of rows must be known in advance.
pub struct RowWriter<'w, T = f32> {
    out: &'w mut dyn Write,
    format: RowFormat,
    width: usize,
    numbers: PhantomData<T>,
}

impl<'w, T: Number> RowWriter<'w, T> {
    /// Writes the header of a file with `rows` rows and the columns `names`.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn new(
        out: &'w mut dyn Write,
        format: RowFormat,
        rows: usize,
        names: &[String],
    ) -> io::Result<Self> {
        let width = names.len();
        match format {
            RowFormat::Csv => {
                let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
                writeln!(out, "{}", names.join(","))?;
            }
            RowFormat::Npy => {
                let mut header = format!(
                    "{{'descr': '{}', 'fortran_order': False, 'shape': ({rows}, {width}), }}",
                    T::TYPE
                );
                // The data start at a multiple of 64 bytes, and the last byte of the header is a line end.
                let start = 10 + header.len() + 1;
                header += &" ".repeat(start.next_multiple_of(64) - start);
                header.push('\n');
                out.write_all(b"\x93NUMPY\x01\x00")?;
                out.write_all(&(header.len() as u16).to_le_bytes())?;
                out.write_all(header.as_bytes())?;
            }
        }
        Ok(Self {
            out,
            format,
            width,
            numbers: PhantomData,
        })
    }

    /// Appends rows. A cell of a CSV file contains the shortest digits that are read back to the same number. The cell
    /// of a NaN is empty.
    ///
    /// # Errors
    /// Fails if writing to the file fails.
    ///
    /// # Panics
    /// Panics if the length of `rows` is not a multiple of the width.
    pub fn write(&mut self, rows: &[T]) -> io::Result<()> {
        assert!(rows.len().is_multiple_of(self.width), "whole rows");
        match self.format {
            RowFormat::Npy => {
                for x in rows {
                    x.write(self.out)?;
                }
            }
            RowFormat::Csv => {
                for row in rows.chunks_exact(self.width) {
                    self.cells("", row)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a row whose first cell is a name. The header must also contain a name for this cell. A NumPy array cannot
    /// contain names.
    ///
    /// # Errors
    /// Fails if the row cannot be written, or if the format is not CSV.
    pub fn write_named(&mut self, name: &str, row: &[T]) -> io::Result<()> {
        if self.format != RowFormat::Csv {
            return Err(io::Error::other("only CSV has names of rows"));
        }
        write!(self.out, "{}", quoted(name))?;
        self.cells(",", row)
    }

    /// Appends a row. In a CSV file, a cell contains its word if there is one, and otherwise the number. A NumPy array
    /// contains the numbers.
    ///
    /// # Errors
    /// Fails if writing to the file fails.
    pub fn write_worded(&mut self, row: &[T], words: &[Option<&str>]) -> io::Result<()> {
        if self.format == RowFormat::Npy {
            return self.write(row);
        }
        for (i, (x, word)) in row.iter().zip(words).enumerate() {
            let between = if i > 0 { "," } else { "" };
            match word {
                Some(word) => write!(self.out, "{between}{}", quoted(word))?,
                None => self.cell(between, *x)?,
            }
        }
        writeln!(self.out)
    }

    fn cell(&mut self, between: &str, x: T) -> io::Result<()> {
        write!(self.out, "{between}")?;
        // The cell of a missing value is empty.
        match x.partial_cmp(&x).is_some() {
            true => write!(self.out, "{x}"),
            false => Ok(()),
        }
    }

    fn cells(&mut self, mut between: &str, row: &[T]) -> io::Result<()> {
        for x in row {
            self.cell(between, *x)?;
            between = ",";
        }
        writeln!(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rows, npy};

    #[test]
    fn rows_come_back() {
        let names: Vec<String> = ["a", "b"].map(str::to_owned).to_vec();
        let values = [1.0f32, -0.1, 3e-9, 7.25];
        let written = |format| {
            let mut out: Vec<u8> = Vec::new();
            let mut writer = RowWriter::new(&mut out, format, 2, &names).unwrap();
            writer.write(&values[..2]).unwrap();
            writer.write(&values[2..]).unwrap();
            out
        };
        let bytes = written(RowFormat::Npy);
        assert_eq!((bytes.len() - 16) % 64, 0);
        let array = npy::parse(&bytes, "x.npy").unwrap();
        assert_eq!(array.shape, [2, 2]);
        assert_eq!(array.data, values.map(f64::from));

        // These digits are not representable in single precision.
        let mut out: Vec<u8> = Vec::new();
        let mut writer = RowWriter::new(&mut out, RowFormat::Npy, 1, &names).unwrap();
        writer.write(&[0.1f64, -1e-300]).unwrap();
        assert_eq!(npy::parse(&out, "x.npy").unwrap().data, [0.1, -1e-300]);

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        std::fs::write(&path, written(RowFormat::Csv)).unwrap();
        let rows = Rows::open(&path).unwrap();
        let mut row = [0.0; 2];
        for (i, expected) in values.chunks(2).enumerate() {
            rows.read(i, &mut row);
            assert_eq!(row, expected);
        }
    }

    #[test]
    fn words_replace_numbers_in_text() {
        let names: Vec<String> = ["a", "b"].map(str::to_owned).to_vec();
        let written = |format| {
            let mut out: Vec<u8> = Vec::new();
            let mut writer = RowWriter::new(&mut out, format, 1, &names).unwrap();
            writer
                .write_worded(&[1.5f64, 2.0], &[None, Some("x, y")])
                .unwrap();
            out
        };
        assert_eq!(written(RowFormat::Csv), b"a,b\n1.5,\"x, y\"\n");
        let array = npy::parse(&written(RowFormat::Npy), "x.npy").unwrap();
        assert_eq!(array.data, [1.5, 2.0]);
    }

    #[test]
    fn formats_are_recognised_by_name() {
        assert_eq!(RowFormat::of_name("a/b.NPY"), Some(RowFormat::Npy));
        assert_eq!(RowFormat::of_name("b.csv"), Some(RowFormat::Csv));
        assert_eq!(RowFormat::of_name("csv"), None);
    }
}
