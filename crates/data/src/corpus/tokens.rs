//! Text to words.

use serde::{Deserialize, Serialize};

/// Splits text into words: maximal runs of letters (by Unicode, combining marks within a word included), in lower case,
/// within limits on their length. Digits, punctuation, hyphens and apostrophes separate words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokeniser {
    /// Fewest characters of a word.
    pub min_length: usize,
    /// Most characters of a word; longer runs are left out whole.
    pub max_length: usize,
}

impl Default for Tokeniser {
    fn default() -> Self {
        Self {
            min_length: 2,
            max_length: 30,
        }
    }
}

impl Tokeniser {
    /// Calls `visit` with every word of `text` in order. `scratch` is a buffer to reuse.
    pub fn words(&self, text: &str, scratch: &mut String, mut visit: impl FnMut(&str)) {
        scratch.clear();
        let mut length = 0;
        let mut flush = |word: &mut String, length: &mut usize| {
            if *length > 0 && (self.min_length..=self.max_length).contains(length) {
                visit(word);
            }
            word.clear();
            *length = 0;
        };
        for c in text.chars() {
            if c.is_ascii() {
                if c.is_ascii_alphabetic() {
                    scratch.push(c.to_ascii_lowercase());
                    length += 1;
                } else {
                    flush(scratch, &mut length);
                }
            } else if c.is_alphabetic() {
                scratch.extend(c.to_lowercase());
                length += 1;
            } else if length > 0 && is_combining(c) {
                scratch.push(c);
            } else {
                flush(scratch, &mut length);
            }
        }
        flush(scratch, &mut length);
    }
}

/// Marks that modify the letter before them, and the soft hyphen's kin that only direct line breaks.
fn is_combining(c: char) -> bool {
    matches!(u32::from(c), 0x300..=0x36f | 0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20ff | 0xfe20..=0xfe2f
        | 0x200c | 0x200d)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        Tokeniser::default().words(text, &mut String::new(), |word| found.push(word.to_owned()));
        found
    }

    #[test]
    fn letters_make_words_in_lower_case() {
        assert_eq!(
            words("The KL-divergence of $\\alpha$, x1 and 3D: don't!"),
            ["the", "kl", "divergence", "of", "alpha", "and", "don"]
        );
        assert_eq!(
            words("ÉCOLE Straße ΣΊΣΥΦΟΣ"),
            ["école", "straße", "σίσυφοσ"]
        );
        assert_eq!(words("e\u{301}te\u{301}"), ["e\u{301}te\u{301}"]);
        assert!(words("").is_empty());
        assert!(words(&"x".repeat(31)).is_empty());
        assert_eq!(words(&"x".repeat(30)).len(), 1);
    }
}
