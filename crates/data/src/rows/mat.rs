//! Locates the first numeric matrix in a MAT file of version 5.

use crate::elements::{Element, Header, element};
use crate::error::DataError;

const PREAMBLE: usize = 128;

const COMPRESSED: u32 = 15;
const MATRIX: u32 = 14;

struct Tag {
    kind: u32,
    start: usize,
    size: usize,
    next: usize,
}

/// Finds the first numeric matrix of a file. The elements of a matrix are stored column by column, so each of its
/// columns is read as a record.
pub(super) fn header(bytes: &[u8], label: &str) -> Result<Header, DataError> {
    let fail = |what: &str| {
        DataError::invalid(format!("Jensen cannot read the MAT file `{label}`: {what}"))
    };
    let cut = || fail("it is incomplete");
    if !bytes.starts_with(b"MATLAB 5.0") {
        return Err(fail(
            "it is not of version 5; save it with the option '-v6'",
        ));
    }
    if bytes.get(126..128) != Some(b"IM") {
        return Err(fail("its numbers are big-endian"));
    }
    let mut at = PREAMBLE;
    while at < bytes.len() {
        let outer = tag(bytes, at).ok_or_else(cut)?;
        if outer.kind == COMPRESSED {
            return Err(fail("its variables are compressed; save it with '-v6'"));
        }
        at = outer.next;
        if outer.kind != MATRIX {
            continue;
        }
        // A matrix consists of flags, extents, a name and the elements.
        let flags = tag(bytes, outer.start).ok_or_else(cut)?;
        let extents = tag(bytes, flags.next).ok_or_else(cut)?;
        let name = tag(bytes, extents.next).ok_or_else(cut)?;
        let data = tag(bytes, name.next).ok_or_else(cut)?;
        let shape: Vec<usize> = bytes[extents.start..][..extents.size]
            .chunks_exact(4)
            .map(|b| u32::from_le_bytes(b.try_into().unwrap_or_default()) as usize)
            .collect();
        let element = match data.kind {
            1 => element!(i8, from_le_bytes),
            2 => Element::Byte,
            3 => element!(i16, from_le_bytes),
            4 => element!(u16, from_le_bytes),
            5 => element!(i32, from_le_bytes),
            6 => element!(u32, from_le_bytes),
            7 => element!(f32, from_le_bytes),
            9 => element!(f64, from_le_bytes),
            _ => continue,
        };
        let needed = shape
            .iter()
            .try_fold(element.width(), |n, d| n.checked_mul(*d));
        let (&[width, records], true) = (shape.as_slice(), needed == Some(data.size)) else {
            return Err(fail(&format!(
                "its first variable has the extents {shape:?} and {} bytes, but Jensen expects a matrix",
                data.size
            )));
        };
        return Ok(Header {
            shape: vec![records, width],
            element,
            start: data.start,
        });
    }
    Err(fail("it has no matrix of numbers"))
}

fn tag(bytes: &[u8], at: usize) -> Option<Tag> {
    let word = |at: usize| {
        let part = bytes.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(part.try_into().ok()?))
    };
    let first = word(at)?;
    // A small element has its size in the upper half of the first word, and its data in the second word.
    let (kind, size, start, next) = match first >> 16 {
        0 => {
            let size = word(at + 4)? as usize;
            let start = at + 8;
            (
                first,
                size,
                start,
                start.checked_add(size.next_multiple_of(8))?,
            )
        }
        size => (first & 0xffff, size as usize, at + 4, at + 8),
    };
    bytes.get(start..start.checked_add(size)?)?;
    Some(Tag {
        kind,
        start,
        size,
        next,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(kind: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = [kind, data.len() as u32].map(u32::to_le_bytes).concat();
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    fn file(extents: [u32; 2], kind: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"MATLAB 5.0 MAT-file".to_vec();
        bytes.resize(124, b' ');
        bytes.extend([0, 1, b'I', b'M']);
        // The name has two letters and is stored as a small element.
        let name = [1, 0, 2, 0, b'f', b'f', 0, 0];
        let matrix = [
            element(6, &[9, 0, 0, 0, 0, 0, 0, 0]),
            element(5, &extents.map(u32::to_le_bytes).concat()),
            name.to_vec(),
            element(kind, data),
        ]
        .concat();
        bytes.extend(element(MATRIX, &matrix));
        bytes
    }

    #[test]
    fn columns_are_records() {
        let bytes = file([3, 2], 2, &[1, 2, 3, 4, 5, 6]);
        let header = header(&bytes, "faces.mat").unwrap();
        assert_eq!(header.shape, [2, 3]);
        assert_eq!(&bytes[header.start..][..6], &[1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn anything_else_is_refused() {
        let good = file([3, 2], 2, &[1, 2, 3, 4, 5, 6]);
        for bytes in [
            &good[..good.len() - 8],
            &good[..100],
            &file([3, 3], 2, &[1, 2, 3, 4, 5, 6]),
            &file([3, 2], 16, &[1, 2, 3, 4, 5, 6]),
            b"",
        ] {
            let error = header(bytes, "faces.mat").unwrap_err().to_string();
            assert!(error.contains("faces.mat"), "{error}");
        }
    }
}
