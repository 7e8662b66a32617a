//! Rows of numbers with the same width, which can be read in any order. Networks are trained on such data.
//!
//! IDX and NPY files are mapped, so they may be larger than memory. Files that must be decoded are read completely.
//! These are compressed files, CSV and MAT files, and pictures.
//!
//! | file | subject |
//! | --- | --- |
//! | `mod` | [`Rows`]: formats by the name of the file, validation, reading |
//! | `images` | folders of pictures |
//! | `mat` | MATLAB's MAT files |
//! | `write` | [`RowWriter`]: writing rows |

mod images;
mod mat;
mod write;

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::bytes::Bytes;
use crate::elements::{Element, Header};
use crate::error::DataError;
use crate::files::HELD;
use crate::table::read_bytes_within;
use crate::{Table, idx, npy};

pub use write::{Number, RowFormat, RowWriter};

/// Rows of numbers. A missing value is represented by NaN, and all other values are finite.
///
/// Unsigned bytes are interpreted as grey levels and divided by 255. If no byte is greater than 1, however, they are
/// interpreted as booleans. Other numbers are unchanged.
pub struct Rows {
    source: String,
    /// The names of the columns, if the rows come from a table.
    columns: Vec<String>,
    extents: Vec<usize>,
    rows: usize,
    element: Element,
    start: usize,
    storage: Bytes,
    scale: f32,
    range: (f32, f32),
    missing: usize,
    digest: String,
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows")
            .field("source", &self.source)
            .field("rows", &self.rows)
            .field("extents", &self.extents)
            .finish_non_exhaustive()
    }
}

impl Rows {
    /// Opens a file or a folder of pictures. The name determines the format:
    ///
    /// - `.npy` is a NumPy array;
    /// - `.mat` is an uncompressed MAT 5 file, whose first numeric matrix contains one record per column;
    /// - `.csv`, `.txt`, `.tsv` and `.npz` are tables, whose columns must be numeric;
    /// - a folder contains PNG and PGM pictures of the same size, which are converted to grey levels;
    /// - any other name is an IDX file.
    ///
    /// Each of these names may be followed by `.gz`.
    ///
    /// # Errors
    /// Fails if the file cannot be read or does not follow its format. Also fails if there are no rows, if the rows
    /// have no elements, or if an element is infinite. The message contains the location.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        Self::open_within(path, HELD)
    }

    /// Like [`open`](Self::open), but with a limit on the number of decompressed bytes.
    ///
    /// # Errors
    /// Fails under the same conditions as [`open`](Self::open), and if the file exceeds the limit.
    pub fn open_within(path: &Path, most: u64) -> Result<Self, DataError> {
        let label = path.display().to_string();
        if path.is_dir() {
            let (extents, bytes) = images::read(path)?;
            return Self::new(label, extents, Element::Byte, Bytes::Held(bytes), 0);
        }
        let name = label.strip_suffix(".gz").unwrap_or(&label).to_owned();
        let has = |ending: &str| name.ends_with(ending);
        if has(".csv") || has(".txt") || has(".tsv") || has(".npz") {
            let table = Table::parse(&read_bytes_within(path, most)?, &label)?;
            return Self::of_table(&table);
        }
        let storage = Bytes::read_within(path, most)?;
        let bytes = &*storage;
        let Header {
            shape,
            element,
            start,
        } = if has(".npy") {
            let (header, fortran) = npy::header(bytes, &label)?;
            if fortran && header.shape.len() > 1 {
                return Err(DataError::invalid(format!(
                    "`{label}` is in Fortran order, so Jensen cannot read it row by row; save it in C order"
                )));
            }
            header
        } else if has(".mat") {
            mat::header(bytes, &label)?
        } else {
            idx::header(bytes, &label)?
        };
        Self::new(label, shape, element, storage, start)
    }

    /// Converts a table of numeric columns to rows of numbers.
    ///
    /// # Errors
    /// Fails if a column contains words or an infinite value.
    pub fn of_table(table: &Table) -> Result<Self, DataError> {
        let columns: Vec<&[f64]> = table
            .columns()
            .iter()
            .map(|column| column.numbers())
            .collect::<Result<_, _>>()?;
        let bytes = (0..table.rows())
            .flat_map(|row| columns.iter().map(move |column| column[row]))
            .flat_map(f64::to_le_bytes)
            .collect();
        let names = table.columns().iter().map(|column| column.name.clone());
        Self::of_numbers(table.source(), names.collect(), bytes)
    }

    fn of_numbers(source: &str, columns: Vec<String>, bytes: Vec<u8>) -> Result<Self, DataError> {
        let element = crate::elements::element!(f64, from_le_bytes);
        let rows = bytes.len() / (columns.len() * size_of::<f64>()).max(1);
        let shape = vec![rows, columns.len()];
        let held = Bytes::Held(bytes);
        let rows = Self::new(source.to_owned(), shape, element, held, 0)?;
        Ok(Self { columns, ..rows })
    }

    /// Selects columns by name, in the order of `names`. Rows remain unchanged if they have no names, because they do not
    /// come from a table, or if `names` is empty.
    ///
    /// # Errors
    /// Fails if a name is not among the names of the columns.
    pub fn with_columns(self, names: &[String]) -> Result<Self, DataError> {
        if self.columns.is_empty() || names.is_empty() || self.columns == names {
            return Ok(self);
        }
        let position = |name: &String| {
            let found = self.columns.iter().position(|column| column == name);
            found.ok_or_else(|| {
                DataError::invalid(format!(
                    "`{}` has no column `{name}`; its columns are `{}`",
                    self.source,
                    self.columns.join("`, `")
                ))
            })
        };
        let positions: Vec<usize> = names.iter().map(position).collect::<Result<_, _>>()?;
        let mut row = vec![0.0; self.width()];
        let mut bytes = Vec::with_capacity(self.rows * positions.len() * size_of::<f64>());
        for index in 0..self.rows {
            self.read_exact(index, &mut row);
            bytes.extend(positions.iter().flat_map(|at| row[*at].to_le_bytes()));
        }
        Self::of_numbers(&self.source, names.to_vec(), bytes)
    }

    /// Returns the names of the columns, or nothing if the rows do not come from a table.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    fn new(
        source: String,
        shape: Vec<usize>,
        element: Element,
        storage: Bytes,
        start: usize,
    ) -> Result<Self, DataError> {
        let fail = |what: String| Err(DataError::invalid(format!("`{source}`: {what}")));
        let (&[rows, ref extents @ ..], 2..) = (shape.as_slice(), shape.len()) else {
            return fail(format!(
                "an array of the shape {shape:?} has no rows of numbers; expected a matrix or a stack of images"
            ));
        };
        let width: usize = extents.iter().product();
        if rows == 0 || width == 0 {
            return fail(format!("the shape {shape:?} has no numbers"));
        }
        let bytes = &storage[start..start + rows * width * element.width()];
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut missing = 0;
        match element {
            Element::Byte => {
                for &byte in bytes {
                    low = low.min(f64::from(byte));
                    high = high.max(f64::from(byte));
                }
            }
            Element::Number { width: size, .. } => {
                for (i, part) in bytes.chunks_exact(size).enumerate() {
                    let x = f64::from(element.number(part) as f32);
                    if x.is_nan() {
                        missing += 1;
                        continue;
                    }
                    if !x.is_finite() {
                        return fail(format!(
                            "row {}, element {} is not finite; remove the row or correct it",
                            i / width + 1,
                            i % width + 1
                        ));
                    }
                    low = low.min(x);
                    high = high.max(x);
                }
            }
        }
        if low > high {
            return fail("every value is missing".to_owned());
        }
        let scale = match element {
            Element::Byte if high > 1.0 => 1.0 / 255.0,
            _ => 1.0,
        };
        let mut digest = Sha256::new();
        digest.update(format!("{shape:?} {scale} ").as_bytes());
        digest.update(bytes);
        let digest: String = digest.finalize()[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Ok(Self {
            columns: Vec::new(),
            extents: extents.to_vec(),
            rows,
            element,
            start,
            scale,
            range: (low as f32 * scale, high as f32 * scale),
            missing,
            digest,
            storage,
            source,
        })
    }

    /// Interprets bytes as counts, not as grey levels.
    #[must_use]
    pub fn of_counts(mut self) -> Self {
        if self.scale != 1.0 {
            // The division by a rounded 1/255 returns integers only up to a rounding error.
            let whole = |x: f32| (x / self.scale).round();
            self.range = (whole(self.range.0), whole(self.range.1));
            self.scale = 1.0;
        }
        self
    }

    /// Returns the path of the file or folder.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of values per row.
    pub fn width(&self) -> usize {
        self.extents.iter().product()
    }

    /// Returns the extents of a row, such as the height and the width of an image. The last index changes fastest.
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// Returns the smallest and the largest of all values.
    pub fn range(&self) -> (f32, f32) {
        self.range
    }

    /// Returns the number of missing values.
    pub fn missing(&self) -> usize {
        self.missing
    }

    /// Returns the number of bytes that are held in memory. The result is 0 for a mapped file.
    pub fn held_bytes(&self) -> usize {
        match &self.storage {
            Bytes::Mapped(_) => 0,
            Bytes::Held(bytes) => bytes.len(),
        }
    }

    /// Checks that the file has not changed since it was opened.
    ///
    /// # Errors
    /// Fails if the file has changed.
    pub fn check_unchanged(&self) -> Result<(), DataError> {
        self.storage.check_unchanged()
    }

    /// Returns a digest of the shape and the elements.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Reads a row and rounds its values to single precision.
    ///
    /// # Panics
    /// Panics if the row does not exist, or if the length of `out` differs from the width of a row.
    pub fn read(&self, row: usize, out: &mut [f32]) {
        let width = self.width();
        assert!(row < self.rows && out.len() == width);
        let size = width * self.element.width();
        let bytes = &self.storage[self.start + row * size..][..size];
        match self.element {
            Element::Byte => {
                for (out, &byte) in out.iter_mut().zip(bytes) {
                    *out = f32::from(byte) * self.scale;
                }
            }
            Element::Number { width, convert } => {
                for (out, part) in out.iter_mut().zip(bytes.chunks_exact(width)) {
                    *out = convert(part) as f32;
                }
            }
        }
    }
}

impl Rows {
    /// Reads a row without rounding its values to single precision.
    ///
    /// # Panics
    /// Panics under the same conditions as [`read`](Self::read).
    pub fn read_exact(&self, row: usize, out: &mut [f64]) {
        let width = self.width();
        assert!(row < self.rows && out.len() == width);
        let size = width * self.element.width();
        let bytes = &self.storage[self.start + row * size..][..size];
        match self.element {
            Element::Byte => {
                for (out, &byte) in out.iter_mut().zip(bytes) {
                    *out = f64::from(f32::from(byte) * self.scale);
                }
            }
            Element::Number { width, convert } => {
                for (out, part) in out.iter_mut().zip(bytes.chunks_exact(width)) {
                    *out = convert(part);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(rows: &Rows, row: usize) -> Vec<f32> {
        let mut out = vec![0.0; rows.width()];
        rows.read(row, &mut out);
        out
    }

    fn idx(shape: &[u32], bytes: &[u8]) -> Vec<u8> {
        let mut file = vec![0, 0, 8, shape.len() as u8];
        file.extend(shape.iter().flat_map(|x| x.to_be_bytes()));
        file.extend(bytes);
        file
    }

    fn npy(kind: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(bytes);
        file
    }

    #[test]
    fn formats_agree() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let levels = [0u8, 51, 102, 255, 204, 153];
        fs::write(path("images-idx3"), idx(&[2, 1, 3], &levels)).unwrap();
        fs::write(path("images.npy"), npy("|u1", "(2, 1, 3)", &levels)).unwrap();
        let floats: Vec<u8> = levels
            .iter()
            .flat_map(|&x| (f32::from(x) / 255.0).to_le_bytes())
            .collect();
        fs::write(path("floats.npy"), npy("<f4", "(2, 3)", &floats)).unwrap();
        fs::write(path("table.csv"), "a,b,c\n0,0.2,0.4\n1,0.8,0.6\n").unwrap();
        let expected = [[0.0, 0.2, 0.4], [1.0, 0.8, 0.6]];
        for (name, extents) in [
            ("images-idx3", &[1, 3][..]),
            ("images.npy", &[1, 3]),
            ("floats.npy", &[3]),
            ("table.csv", &[3]),
        ] {
            let rows = Rows::open(&path(name)).unwrap();
            assert_eq!((rows.rows(), rows.extents()), (2, extents), "{name}");
            assert_eq!(rows.range(), (0.0, 1.0), "{name}");
            for (row, expected) in expected.iter().enumerate() {
                for (a, b) in read(&rows, row).iter().zip(expected) {
                    assert!((a - b).abs() < 1e-6, "{name}: {a} {b}");
                }
            }
        }
        let digest = |name: &str| Rows::open(&path(name)).unwrap().digest().to_owned();
        assert_eq!(digest("images-idx3"), digest("images.npy"));
        assert_ne!(digest("images-idx3"), digest("floats.npy"));
    }

    #[test]
    fn missing_values_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gap.csv");
        fs::write(&path, "a,b\n1,2\n3,\nNA,5\n").unwrap();
        let rows = Rows::open(&path).unwrap();
        assert_eq!((rows.missing(), rows.range()), (2, (1.0, 5.0)));
        assert!(read(&rows, 1)[1].is_nan());
    }

    #[test]
    fn bytes_may_be_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts");
        fs::write(&path, idx(&[2, 2], &[0, 1, 7, 255])).unwrap();
        let rows = Rows::open(&path).unwrap().of_counts();
        assert_eq!(read(&rows, 1), [7.0, 255.0]);
        assert_eq!(rows.range(), (0.0, 255.0));
    }

    #[test]
    fn truth_values_are_not_grey_levels() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bits");
        fs::write(&path, idx(&[2, 2], &[0, 1, 1, 0])).unwrap();
        let rows = Rows::open(&path).unwrap();
        assert_eq!(read(&rows, 0), [0.0, 1.0]);
        assert_eq!(rows.range(), (0.0, 1.0));
    }

    #[test]
    fn bad_files_are_refused_by_path() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |name: &str, bytes: &[u8], said: &str| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            let error = Rows::open(&path).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(said), "{error}");
        };
        refused("empty", b"", "two zero bytes");
        refused("cut", &idx(&[2, 2], &[0, 1, 1]), "does not fit");
        refused("labels", &idx(&[3], &[0, 1, 1]), "[3]");
        refused("none", &idx(&[0, 4], &[]), "[0, 4]");
        let mut floats = 1f32.to_le_bytes().to_vec();
        floats.extend(f32::INFINITY.to_le_bytes());
        refused(
            "infinite.npy",
            &npy("<f4", "(1, 2)", &floats),
            "row 1, element 2",
        );
        refused("cut.npy", &npy("<f4", "(2, 2)", &floats), "needs 16");
        refused("gaps.csv", b"a,b\n,\n,\n", "every value is missing");
        let missing = Rows::open(&folder.path().join("nothing")).unwrap_err();
        assert!(missing.to_string().contains("nothing"), "{missing}");
    }
}
