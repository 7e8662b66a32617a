//! IDX, the format of the MNIST digits. A file contains a single array of bytes or big-endian numbers.

use std::path::Path;

use crate::elements::{Element, Header, element};
use crate::error::DataError;
use crate::table::read_bytes;

/// The elements of an IDX array in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub enum IdxElements {
    /// Unsigned bytes, such as pixels and labels.
    Bytes(Vec<u8>),
    /// The elements of any other type, converted to double precision.
    Numbers(Vec<f64>),
}

/// An array from an IDX file.
#[derive(Debug, Clone, PartialEq)]
pub struct Idx {
    /// The size along each dimension.
    pub shape: Vec<usize>,
    /// The elements in row-major order.
    pub elements: IdxElements,
}

impl Idx {
    /// Returns the bytes, or `None` if the elements are not bytes.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.elements {
            IdxElements::Bytes(bytes) => Some(bytes),
            IdxElements::Numbers(_) => None,
        }
    }
}

/// Reads an IDX file, and decompresses it first if its name ends in `.gz`.
///
/// # Errors
/// Fails if the file cannot be read, is not an IDX file, or does not have the size that its header states.
pub fn read_idx(path: &Path) -> Result<Idx, DataError> {
    parse_idx(&read_bytes(path)?, &path.display().to_string())
}

/// Parses an IDX array. The array begins with two zero bytes, the type of the elements and the number of dimensions.
/// The sizes of the dimensions follow as 32-bit numbers, and the elements come last.
///
/// # Errors
/// Fails if the bytes do not follow the format, or if their number differs from the size that the header states.
pub fn parse_idx(bytes: &[u8], label: &str) -> Result<Idx, DataError> {
    let header = header(bytes, label)?;
    let rest = &bytes[header.start..];
    let elements = match header.element {
        Element::Byte => IdxElements::Bytes(rest.to_vec()),
        Element::Number { width, convert } => {
            IdxElements::Numbers(rest.chunks_exact(width).map(convert).collect())
        }
    };
    Ok(Idx {
        shape: header.shape,
        elements,
    })
}

/// Parses the header of an IDX array. The header determines the shape of the array, and the type and the offset of its
/// elements. Also checks that all elements are present.
pub(crate) fn header(bytes: &[u8], label: &str) -> Result<Header, DataError> {
    let fail = |what: String| DataError::invalid(format!("`{label}` is not an IDX file: {what}"));
    let &[0, 0, kind, dimensions, ref rest @ ..] = bytes else {
        return Err(fail("it does not begin with two zero bytes".into()));
    };
    let dimensions = usize::from(dimensions);
    if rest.len() < 4 * dimensions {
        return Err(fail(format!("it ends before its {dimensions} extents")));
    }
    let (extents, rest) = rest.split_at(4 * dimensions);
    let extent = |b: &[u8]| u32::from_be_bytes(b.try_into().unwrap_or_default()) as usize;
    let shape: Vec<usize> = extents.chunks_exact(4).map(extent).collect();
    let element = match kind {
        0x08 => Element::Byte,
        0x09 => element!(i8, from_be_bytes),
        0x0b => element!(i16, from_be_bytes),
        0x0c => element!(i32, from_be_bytes),
        0x0d => element!(f32, from_be_bytes),
        0x0e => element!(f64, from_be_bytes),
        _ => return Err(fail(format!("the element type {kind:#04x} does not exist"))),
    };
    let width = element.width();
    let size = shape
        .iter()
        .try_fold(width, |size, &extent| size.checked_mul(extent));
    if size != Some(rest.len()) {
        return Err(fail(format!(
            "the shape {shape:?} of elements of {width} bytes does not fit the {} bytes that follow",
            rest.len()
        )));
    }
    Ok(Header {
        shape,
        element,
        start: 4 + 4 * dimensions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_every_type_are_read() {
        let bytes = [0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255];
        let idx = parse_idx(&bytes, "pixels").unwrap();
        assert_eq!(idx.shape, [2, 3]);
        assert_eq!(idx.bytes(), Some(&[1, 2, 3, 4, 5, 255][..]));
        let numbers = |kind: u8, data: &[u8]| {
            let mut bytes = vec![0, 0, kind, 1, 0, 0, 0, 1];
            bytes.extend(data);
            match parse_idx(&bytes, "numbers").unwrap().elements {
                IdxElements::Numbers(numbers) => numbers,
                IdxElements::Bytes(_) => Vec::new(),
            }
        };
        assert_eq!(numbers(0x09, &[0xff]), [-1.0]);
        assert_eq!(numbers(0x0b, &[0xff, 0xfe]), [-2.0]);
        assert_eq!(numbers(0x0c, &(-70_000i32).to_be_bytes()), [-70_000.0]);
        assert_eq!(numbers(0x0d, &1.5f32.to_be_bytes()), [1.5]);
        assert_eq!(numbers(0x0e, &(-0.1f64).to_be_bytes()), [-0.1]);
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        let huge = [
            0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        ];
        for bytes in [
            &b"PK\x03\x04"[..],
            &[0, 0, 8],
            &[0, 0, 8, 1, 0],
            &[0, 0, 7, 0],
            &huge,
        ] {
            let error = parse_idx(bytes, "train-labels").unwrap_err().to_string();
            assert!(error.contains("train-labels"), "{error}");
        }
        let short = [0, 0, 8, 1, 0, 0, 0, 4, 1, 2, 3];
        assert!(
            parse_idx(&short, "x")
                .unwrap_err()
                .to_string()
                .contains("[4]")
        );
    }
}
