//! The encoding of a document as bytes.
//!
//! A document consists of pairs of a term and its count, sorted by term. All numbers have variable length. Each byte
//! contains seven bits of a number, starting with the lowest bits, and the highest bit of the byte is set if more bytes
//! follow. The encoding starts with the number of bytes and the number of pairs. Each pair is encoded by the distance
//! `d` between its term and the smallest possible term. The smallest possible term is 0 for the first pair, and
//! otherwise the successor of the preceding term. If the count is 1, the pair is written as `2 d`. Otherwise it is
//! written as `2 d + 1`, followed by the count minus 2. The most common terms have the smallest numbers, so most pairs
//! take one or two bytes.

/// The error for bytes that do not encode a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

fn put(out: &mut Vec<u8>, mut x: u64) {
    while x >= 0x80 {
        out.push(x as u8 | 0x80);
        x >>= 7;
    }
    out.push(x as u8);
}

/// Reads a number at the start of `bytes`, and removes its bytes.
#[inline]
fn take(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    let mut x = 0u64;
    for (i, &byte) in bytes.iter().enumerate().take(9) {
        x |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Ok(x);
        }
    }
    Err(Malformed)
}

/// Appends an encoded document to `out`. `scratch` is a buffer that is reused between calls.
///
/// # Panics
/// Panics if the terms are not in ascending order or if a count is 0. Either would be a bug in the caller.
pub fn encode(terms: &[u32], counts: &[u32], scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    scratch.clear();
    put(scratch, terms.len() as u64);
    let mut expected = 0u64;
    for (&term, &count) in terms.iter().zip(counts) {
        let term = u64::from(term);
        assert!(term >= expected && count > 0, "ascending terms with counts");
        let many = count > 1;
        put(scratch, (term - expected) << 1 | u64::from(many));
        if many {
            put(scratch, u64::from(count) - 2);
        }
        expected = term + 1;
    }
    put(out, scratch.len() as u64);
    out.extend_from_slice(scratch);
}

/// Removes the document at the start of `bytes` without decoding its pairs.
///
/// # Errors
/// Fails if the bytes do not start with an encoded document.
pub fn skip(bytes: &mut &[u8]) -> Result<(), Malformed> {
    let length = usize::try_from(take(bytes)?).map_err(|_| Malformed)?;
    *bytes = bytes.get(length..).ok_or(Malformed)?;
    Ok(())
}

/// Decodes the document at the start of `bytes`, pair by pair, and removes its bytes. Every term must be less than
/// `limit`.
///
/// # Errors
/// Fails if the bytes do not start with an encoded document. Some pairs may already have been visited.
#[inline]
pub fn decode(
    bytes: &mut &[u8],
    limit: u32,
    mut visit: impl FnMut(u32, u32),
) -> Result<(), Malformed> {
    let length = usize::try_from(take(bytes)?).map_err(|_| Malformed)?;
    let mut body = bytes.get(..length).ok_or(Malformed)?;
    *bytes = &bytes[length..];
    let pairs = take(&mut body)?;
    let mut expected = 0u64;
    for _ in 0..pairs {
        let code = take(&mut body)?;
        let term = expected + (code >> 1);
        let count = if code & 1 == 1 {
            take(&mut body)?.saturating_add(2)
        } else {
            1
        };
        if term >= u64::from(limit) || count > u64::from(u32::MAX) {
            return Err(Malformed);
        }
        visit(term as u32, count as u32);
        expected = term + 1;
    }
    if body.is_empty() {
        Ok(())
    } else {
        Err(Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn documents_come_back(document in prop::collection::btree_map(0..u32::MAX, 1..u32::MAX, 0..40),
                               small in prop::collection::btree_map(0..90u32, 1..4u32, 0..40)) {
            let mut out = Vec::new();
            let split = |pairs: &BTreeMap<u32, u32>| -> (Vec<u32>, Vec<u32>) { pairs.iter().unzip() };
            let documents = [split(&document), split(&small), split(&document)];
            for (terms, counts) in &documents {
                encode(terms, counts, &mut Vec::new(), &mut out);
            }
            let read = |bytes: &mut &[u8]| {
                let (mut terms, mut counts) = (Vec::new(), Vec::new());
                decode(bytes, u32::MAX, |term, count| {
                    terms.push(term);
                    counts.push(count);
                })
                .unwrap();
                (terms, counts)
            };
            let mut bytes = &out[..];
            for expected in &documents {
                prop_assert_eq!(&read(&mut bytes), expected);
            }
            prop_assert!(bytes.is_empty());
            let mut bytes = &out[..];
            skip(&mut bytes).unwrap();
            prop_assert_eq!(read(&mut bytes), documents[1].clone());
        }

        #[test]
        fn other_bytes_are_refused_or_are_a_document(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut terms = Vec::new();
            if decode(&mut &bytes[..], 1000, |term, _| terms.push(term)).is_ok() {
                prop_assert!(terms.iter().all(|t| *t < 1000));
                prop_assert!(terms.windows(2).all(|w| w[0] < w[1]));
            }
        }
    }

    #[test]
    fn common_words_take_a_byte() {
        let mut out = Vec::new();
        encode(&[0, 5, 60], &[1, 1, 1], &mut Vec::new(), &mut out);
        assert_eq!(out.len(), 2 + 3);
    }
}
