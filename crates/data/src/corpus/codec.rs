//! The encoding of one document as bytes.
//!
//! A document consists of pairs of a term and its count, sorted by term. Numbers have variable length: a byte contains
//! seven bits, the lowest first, and its highest bit is set if more bytes follow. The encoding starts with the number
//! of bytes and the number of pairs. Each pair is encoded by the distance `d` of its term from the smallest term that
//! could follow, which is 0 for the first pair and otherwise the term after the last one. The distance is written as `2
//! d` if the count is 1, and otherwise as `2 d + 1` followed by the count minus 2. Terms are numbered from the most
//! common one, so that most pairs take one or two bytes.

/// The error for bytes that are not a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

fn put(out: &mut Vec<u8>, mut x: u64) {
    while x >= 0x80 {
        out.push(x as u8 | 0x80);
        x >>= 7;
    }
    out.push(x as u8);
}

/// Reads a number from the front of `bytes`, and removes it.
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

/// Appends a document to `out`. `scratch` is a buffer to reuse.
///
/// # Panics
/// Panics if the terms do not ascend or if a count is 0, which is a bug in the caller.
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

/// Removes the document at the front of `bytes`.
///
/// # Errors
/// Fails if the bytes do not start with a document.
pub fn skip(bytes: &mut &[u8]) -> Result<(), Malformed> {
    let length = usize::try_from(take(bytes)?).map_err(|_| Malformed)?;
    *bytes = bytes.get(length..).ok_or(Malformed)?;
    Ok(())
}

/// Reads the document at the front of `bytes`, pair by pair, and removes it. Every term must be below `limit`.
///
/// # Errors
/// Fails if the bytes do not start with a document. Some pairs may have been visited by then.
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
