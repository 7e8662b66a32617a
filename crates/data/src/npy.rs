//! The file formats of NumPy: NPY for a single array, and NPZ for an archive of arrays.

use std::borrow::Cow;
use std::io::Read;

use rayon::prelude::*;

use crate::elements::{Element, Header, element};
use crate::error::DataError;
use crate::table::{Cells, Column};

/// An array of numbers in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The size along each dimension. The list is empty for a scalar.
    pub shape: Vec<usize>,
    /// The elements in row-major order.
    pub data: Vec<f64>,
}

fn damaged(label: &str, what: &str) -> DataError {
    DataError::invalid(format!(
        "{label}: Jensen cannot read this NumPy file: {what}"
    ))
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// Parses an NPY file that contains reals, integers or booleans. Both byte orders, C order and Fortran order are
/// supported.
///
/// # Errors
/// Fails if the bytes are not an NPY file, if they are truncated, or if the elements are not numbers.
pub fn parse(bytes: &[u8], label: &str) -> Result<Array, DataError> {
    let (header, fortran) = header(bytes, label)?;
    let Header { shape, element, .. } = &header;
    let body = &bytes[header.start..];
    let count = shape.iter().product::<usize>() * element.width();
    let mut data: Vec<f64> = body[..count]
        .chunks_exact(element.width())
        .map(|b| element.number(b))
        .collect();
    if fortran && let [rows, columns] = shape[..] {
        data = (0..rows * columns)
            .map(|i| data[i % columns * rows + i / columns])
            .collect();
    } else if fortran && shape.len() > 2 {
        return Err(damaged(
            label,
            "it has more than two dimensions in Fortran order; save it in C order",
        ));
    }
    Ok(Array {
        shape: header.shape,
        data,
    })
}

/// The number of columns that a task copies together from a row-major matrix. Eight numbers fill a cache line.
const TOGETHER: usize = 8;

/// Parses the columns of an NPY file. A vector becomes the column `name`. A matrix becomes the columns `name1`,
/// `name2`, ….
///
/// # Errors
/// Fails if the bytes are not an NPY file, if they are truncated, or if the elements are not numbers. Also fails unless
/// the array has one or two dimensions.
pub fn columns(bytes: &[u8], name: &str, label: &str) -> Result<Vec<Column>, DataError> {
    let (header, fortran) = header(bytes, label)?;
    let Header { shape, element, .. } = &header;
    let (rows, width) = match shape[..] {
        [rows] => (rows, None),
        [rows, width] => (rows, Some(width)),
        _ => {
            return Err(DataError::invalid(format!(
                "{label}: the array `{name}` has the shape {shape:?}; a table needs vectors or matrices"
            )));
        }
    };
    let size = element.width();
    let body = &bytes[header.start..][..rows * width.unwrap_or(1) * size];
    let numbers = |bytes: &[u8]| -> Vec<f64> {
        let each = bytes.chunks_exact(size);
        each.map(|b| element.number(b)).collect()
    };
    let columns: Vec<Vec<f64>> = match width {
        None => vec![numbers(body)],
        Some(width) if rows == 0 => vec![Vec::new(); width],
        Some(_) if fortran => body.par_chunks(rows * size).map(numbers).collect(),
        Some(width) => {
            let mut columns = vec![Vec::new(); width];
            columns
                .par_chunks_mut(TOGETHER)
                .enumerate()
                .for_each(|(group, columns)| {
                    let first = group * TOGETHER * size;
                    for column in columns.iter_mut() {
                        column.reserve_exact(rows);
                    }
                    for row in body.chunks_exact(width * size) {
                        let parts = row[first..].chunks_exact(size);
                        for (column, part) in columns.iter_mut().zip(parts) {
                            column.push(element.number(part));
                        }
                    }
                });
            columns
        }
    };
    let named = columns.into_iter().enumerate().map(|(j, numbers)| {
        let name = match width {
            None => name.to_owned(),
            Some(_) => format!("{name}{}", j + 1),
        };
        Column::new(name, Cells::Numbers(numbers))
    });
    Ok(named.collect())
}

/// Parses the header of an NPY array. The header determines the shape of the array, the type and the offset of its
/// elements, and whether they are in Fortran order. Also checks that all elements are present.
pub(crate) fn header(bytes: &[u8], label: &str) -> Result<(Header, bool), DataError> {
    let fail = |what: &str| damaged(label, what);
    if !bytes.starts_with(MAGIC) {
        return Err(fail("it does not begin with the bytes \\x93NUMPY"));
    }
    let (start, length): (usize, _) = match bytes.get(6) {
        Some(1) => (10, little(bytes, 8, 2)),
        Some(2 | 3) => (12, little(bytes, 8, 4)),
        _ => return Err(fail("its format version is unknown")),
    };
    let length = length.ok_or_else(|| fail("its header is incomplete"))? as usize;
    let header = bytes
        .get(start..start.saturating_add(length))
        .and_then(|h| std::str::from_utf8(h).ok())
        .ok_or_else(|| fail("its header is incomplete"))?;
    let kind = entry(header, "descr")
        .and_then(|d| d.split(['\'', '"']).nth(1))
        .ok_or_else(|| fail("its elements have fields; a table needs plain numbers"))?;
    let fortran = entry(header, "fortran_order").is_some_and(|v| v.starts_with("True"));
    let shape: Vec<usize> = entry(header, "shape")
        .and_then(|s| s.strip_prefix('('))
        .and_then(|s| s.split(')').next())
        .map(|s| s.split(',').map(str::trim).filter(|d| !d.is_empty()))
        .and_then(|dims| dims.map(|d| d.parse().ok()).collect())
        .ok_or_else(|| fail("its header does not give a shape"))?;
    let element = element_type(kind).ok_or_else(|| {
        fail(&format!(
            "its elements are of the type `{kind}`; a table needs reals, integers or booleans"
        ))
    })?;
    let count = shape
        .iter()
        .try_fold(element.width(), |n, d| n.checked_mul(*d))
        .ok_or_else(|| fail("its shape is invalid"))?;
    let start = start + length;
    if bytes.len() - start < count {
        return Err(fail(&format!(
            "it has {} bytes of elements, but its shape {shape:?} needs {count}",
            bytes.len() - start
        )));
    }
    Ok((
        Header {
            shape,
            element,
            start,
        },
        fortran,
    ))
}

fn entry<'h>(header: &'h str, key: &str) -> Option<&'h str> {
    let at = header.find(&format!("'{key}'"))?;
    Some(
        header[at + key.len() + 2..]
            .trim_start()
            .strip_prefix(':')?
            .trim_start(),
    )
}

/// Returns the element type that has this name in NumPy, for example `<f8`.
fn element_type(kind: &str) -> Option<Element> {
    macro_rules! both {
        ($order:expr, $t:ty) => {
            Some(if $order == b'>' {
                element!($t, from_be_bytes)
            } else {
                element!($t, from_le_bytes)
            })
        };
    }
    let order = *kind.as_bytes().first()?;
    match kind.get(1..)? {
        "f8" => both!(order, f64),
        "f4" => both!(order, f32),
        "i8" => both!(order, i64),
        "i4" => both!(order, i32),
        "i2" => both!(order, i16),
        "i1" => both!(order, i8),
        "u8" => both!(order, u64),
        "u4" => both!(order, u32),
        "u2" => both!(order, u16),
        "u1" | "b1" => Some(Element::Byte),
        _ => None,
    }
}

fn little(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(width)?)?;
    Some(part.iter().rev().fold(0, |x, b| x << 8 | u64::from(*b)))
}

/// Parses the arrays of an NPZ archive, in the order of its directory. The arrays may be stored or deflated.
///
/// # Errors
/// Fails if the bytes are not an NPZ archive, or if one of the arrays cannot be read.
pub fn parse_npz(bytes: &[u8], label: &str) -> Result<Vec<(String, Array)>, DataError> {
    let arrays = members(bytes, label)?.into_iter().map(|(name, content)| {
        let array = parse(&content, &format!("{label}, `{name}`"))?;
        Ok((name, array))
    });
    arrays.collect()
}

/// Parses the columns of all arrays in an NPZ archive, in the same way as [`columns`].
///
/// # Errors
/// Fails if the bytes are not an NPZ archive, if an array cannot be read, or if an array is neither a vector nor a
/// matrix.
pub fn npz_columns(bytes: &[u8], label: &str) -> Result<Vec<Column>, DataError> {
    let mut all = Vec::new();
    for (name, content) in members(bytes, label)? {
        all.extend(columns(&content, &name, &format!("{label}, `{name}`"))?);
    }
    Ok(all)
}

type Member<'a> = (String, Cow<'a, [u8]>);

/// Returns the name and the NPY file of each array in an NPZ archive. The bytes of uncompressed files are not copied.
fn members<'a>(bytes: &'a [u8], label: &str) -> Result<Vec<Member<'a>>, DataError> {
    let fail = |what: &str| damaged(label, what);
    let cut = || damaged(label, "its directory is incomplete");
    const END: &[u8] = b"PK\x05\x06";
    let end = bytes
        .windows(END.len())
        .rposition(|w| w == END)
        .ok_or_else(|| fail("it is not a zip archive"))?;
    if bytes.len() < end + 22 {
        return Err(cut());
    }
    let count = little(bytes, end + 10, 2).ok_or_else(cut)?;
    let mut at = little(bytes, end + 16, 4).ok_or_else(cut)? as usize;
    let mut members = Vec::new();
    for _ in 0..count {
        if bytes.get(at..at + 4) != Some(b"PK\x01\x02") {
            return Err(fail("its directory is damaged"));
        }
        let field = |offset: usize, width: usize| {
            little(bytes, at + offset, width)
                .map(|x| x as usize)
                .ok_or_else(cut)
        };
        let method = field(10, 2)?;
        let (mut packed, mut size) = (field(20, 4)?, field(24, 4)?);
        let (name_length, extra_length) = (field(28, 2)?, field(30, 2)?);
        let comment_length = field(32, 2)?;
        let mut offset = field(42, 4)?;
        let extra = at + 46 + name_length;
        let name = bytes
            .get(at + 46..extra)
            .and_then(|n| std::str::from_utf8(n).ok())
            .ok_or_else(cut)?;
        large_sizes(
            bytes,
            extra,
            extra_length,
            [&mut size, &mut packed, &mut offset],
        )
        .ok_or_else(cut)?;
        at = extra + extra_length + comment_length;

        let offset = offset.min(bytes.len());
        let skip = little(bytes, offset + 26, 2).zip(little(bytes, offset + 28, 2));
        let (a, b) = skip.ok_or_else(cut)?;
        let start = offset + 30 + a as usize + b as usize;
        let content = bytes
            .get(start..start.saturating_add(packed))
            .ok_or_else(|| fail(&format!("`{name}` is incomplete")))?;
        let plain = match method {
            0 => Cow::Borrowed(content),
            8 => {
                let mut plain = Vec::new();
                flate2::read::DeflateDecoder::new(content)
                    .take(size as u64)
                    .read_to_end(&mut plain)
                    .map_err(|error| fail(&format!("`{name}`: {error}")))?;
                Cow::Owned(plain)
            }
            _ => {
                return Err(fail(&format!(
                    "`{name}` is compressed by an unknown method"
                )));
            }
        };
        let stem = name.strip_suffix(".npy").unwrap_or(name);
        members.push((stem.to_owned(), plain));
    }
    Ok(members)
}

/// Reads sizes of 4 GiB or more, which do not fit into the ordinary fields, from an extra field. The extra field
/// contains only such sizes, in the order of `sizes`.
fn large_sizes(bytes: &[u8], extra: usize, length: usize, sizes: [&mut usize; 3]) -> Option<()> {
    const TOO_LARGE: usize = 0xffff_ffff;
    let mut at = extra;
    while at + 4 <= extra + length {
        let (id, width) = (little(bytes, at, 2)?, little(bytes, at + 2, 2)? as usize);
        if id == 1 {
            let mut value = at + 4;
            for size in sizes {
                if *size == TOO_LARGE {
                    *size = little(bytes, value, 8)? as usize;
                    value += 8;
                }
            }
            return Some(());
        }
        at += 4 + width;
    }
    Some(())
}
