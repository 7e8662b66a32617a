//! Splits text into words.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use regex::Regex;
use serde::{Deserialize, Serialize};
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::phrases::Phrases;
use crate::error::DataError;

/// The settings for splitting text into words. Words are converted to lower case and to composed form (Unicode's
/// normalisation form C). Words that are too short or too long are omitted.
///
/// A word is a maximal sequence of letters with their marks. If a pattern is given, however, the words are the matches
/// of this pattern. By default, digits, punctuation, hyphens and apostrophes separate words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tokeniser {
    /// The smallest number of characters in a word. Marks are not counted, and shorter words are omitted.
    pub min_length: usize,
    /// The largest number of characters in a word. Longer words are omitted.
    pub max_length: usize,
    /// Characters other than letters that may be part of a word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<Extra>,
    /// An alternative definition of a word. The pattern is matched against the text in lower case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// Sequences of words that are joined to one word. The phrases also apply to lists of words.
    #[serde(default, skip_serializing_if = "Phrases::is_empty")]
    pub phrases: Phrases,
}

/// Groups of characters other than letters that may be part of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extra {
    /// Digits and other numerals, as in `h2o` or `2019`.
    Digits,
    /// Hyphens between two characters of a word, as in `covid-19` or `well-being`.
    Hyphens,
    /// Apostrophes between two characters of a word, as in `don't` or `l'eau`.
    Apostrophes,
    /// The symbols `+`, `#`, `&` and `_` after the first character of a word, as in `c++`, `c#` or `at&t`.
    Symbols,
}

/// A regular expression. Each match of the expression in a text is a word.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl FromStr for Pattern {
    type Err = DataError;

    /// Parses a regular expression in the syntax of the crate `regex`. Fails if the expression matches the empty
    /// string.
    fn from_str(text: &str) -> Result<Self, DataError> {
        let regex = Regex::new(text).map_err(|error| {
            let why = error.to_string();
            let last = why.lines().last().unwrap_or_default();
            let last = last.trim_start_matches("error: ");
            DataError::invalid(format!("`{text}` is not a regular expression: {last}"))
        })?;
        match regex.is_match("") {
            false => Ok(Self(regex)),
            true => Err(DataError::invalid(format!(
                "`{text}` matches an empty word: require at least one character, for example with + instead of *"
            ))),
        }
    }
}

impl TryFrom<String> for Pattern {
    type Error = DataError;

    fn try_from(text: String) -> Result<Self, DataError> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl Default for Tokeniser {
    fn default() -> Self {
        Self {
            min_length: 2,
            max_length: 30,
            keep: Vec::new(),
            pattern: None,
            phrases: Phrases::default(),
        }
    }
}

enum Role {
    /// The character is part of a word and may be the first character of the word.
    Letter,
    /// The character belongs to the word that precedes it, if there is one.
    Trailing,
    /// The character joins two parts of a word. In the word, it is replaced by the given character.
    Joint(char),
    Gap,
}

impl Tokeniser {
    /// Calls `visit` for every word of `text`, in order. `scratch` is a buffer that is reused between calls.
    pub fn words(&self, text: &str, scratch: &mut String, mut visit: impl FnMut(&str)) {
        let composed: String;
        let text = match text.is_ascii() || is_nfc(text) {
            true => text,
            false => {
                composed = text.nfc().collect();
                &composed
            }
        };
        match &self.pattern {
            Some(pattern) => self.matches(pattern, text, &mut visit),
            None => self.runs(text, scratch, &mut visit),
        }
    }

    fn fits(&self, length: usize) -> bool {
        (self.min_length..=self.max_length).contains(&length)
    }

    fn matches(&self, pattern: &Pattern, text: &str, visit: &mut impl FnMut(&str)) {
        let lower = text.to_lowercase();
        for found in pattern.0.find_iter(&lower) {
            let letters = found.as_str().chars().filter(|c| !is_mark(*c));
            if self.fits(letters.count()) {
                visit(&on_one_line(found.as_str()));
            }
        }
    }

    fn runs(&self, text: &str, word: &mut String, visit: &mut impl FnMut(&str)) {
        let keeps = |extra| self.keep.contains(&extra);
        let extras = [
            Extra::Digits,
            Extra::Hyphens,
            Extra::Apostrophes,
            Extra::Symbols,
        ]
        .map(keeps);
        word.clear();
        let mut length = 0;
        let mut joint = None;
        for c in text.chars() {
            match role(c, extras) {
                Role::Letter => {
                    if let Some(joint) = joint.take() {
                        word.push(joint);
                        length += 1;
                    }
                    if c.is_ascii() {
                        word.push(c.to_ascii_lowercase());
                    } else {
                        word.extend(c.to_lowercase());
                    }
                    length += 1;
                }
                Role::Trailing if length > 0 && joint.is_none() => {
                    word.push(c);
                    length += usize::from(!is_mark(c));
                }
                Role::Joint(c) if length > 0 && joint.is_none() => joint = Some(c),
                _ => {
                    if length > 0 && self.fits(length) {
                        visit(word);
                    }
                    word.clear();
                    (length, joint) = (0, None);
                }
            }
        }
        if length > 0 && self.fits(length) {
            visit(word);
        }
        word.clear();
    }
}

fn role(c: char, [digits, hyphens, apostrophes, symbols]: [bool; 4]) -> Role {
    match c {
        'a'..='z' | 'A'..='Z' => Role::Letter,
        '0'..='9' if digits => Role::Letter,
        '-' | '\u{2010}' | '\u{2011}' if hyphens => Role::Joint('-'),
        '\'' | '\u{2019}' if apostrophes => Role::Joint('\''),
        '+' | '#' | '&' | '_' if symbols => Role::Trailing,
        c if c.is_ascii() => Role::Gap,
        c if c.is_alphabetic() => Role::Letter,
        c if is_mark(c) => Role::Trailing,
        c if digits && c.is_numeric() => Role::Letter,
        _ => Role::Gap,
    }
}

/// Replaces line ends by spaces. In the file of a corpus, a line end separates words.
pub(crate) fn on_one_line(word: &str) -> Cow<'_, str> {
    match word.contains(['\n', '\r']) {
        true => Cow::Owned(word.replace(['\n', '\r'], " ")),
        false => Cow::Borrowed(word),
    }
}

/// Returns whether a character is a mark that belongs to the preceding letter (an accent, or a vowel sign or virama of
/// an Indic script). Also returns true for joiners, which affect only how letters are displayed.
fn is_mark(c: char) -> bool {
    is_combining_mark(c) || matches!(c, '\u{200c}' | '\u{200d}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tokeniser: &Tokeniser, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        tokeniser.words(text, &mut String::new(), |word| found.push(word.to_owned()));
        found
    }

    fn words(text: &str) -> Vec<String> {
        of(&Tokeniser::default(), text)
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
        assert!(words("").is_empty());
        assert!(words(&"x".repeat(31)).is_empty());
        assert_eq!(words(&"x".repeat(30)).len(), 1);
    }

    #[test]
    fn marks_stay_with_their_letters_and_words_are_composed() {
        // A letter followed by a separate accent gives the same word as the accented letter, and the jamo of a Korean
        // syllable give the same word as the syllable.
        assert_eq!(words("e\u{301}te\u{301}"), ["été"]);
        assert_eq!(
            words("\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}"),
            ["한글"]
        );
        assert_eq!(
            words("हिन्दी, ক্ষমা और తెలుగు"),
            ["हिन्दी", "ক্ষমা", "और", "తెలుగు"]
        );
        // A mark without a letter is not a word.
        assert!(words("\u{301} \u{94d}").is_empty());
    }

    #[test]
    fn digits_hyphens_apostrophes_and_symbols_are_kept_on_demand() {
        let text = "COVID-19 and H2O: don't use C++ or C#; state-of-the-art -- in 2019, -x- at&t";
        let all = Tokeniser {
            keep: vec![
                Extra::Digits,
                Extra::Hyphens,
                Extra::Apostrophes,
                Extra::Symbols,
            ],
            ..Tokeniser::default()
        };
        assert_eq!(
            of(&all, text),
            [
                "covid-19",
                "and",
                "h2o",
                "don't",
                "use",
                "c++",
                "or",
                "c#",
                "state-of-the-art",
                "in",
                "2019",
                "at&t"
            ]
        );
        let digits = Tokeniser {
            keep: vec![Extra::Digits],
            ..Tokeniser::default()
        };
        assert_eq!(of(&digits, "covid-19 h2o"), ["covid", "19", "h2o"]);
    }

    #[test]
    fn a_pattern_says_what_words_are() {
        let tokeniser = Tokeniser {
            pattern: Some(r"[\w.]+@[\w.]+|\d+".parse().unwrap()),
            ..Tokeniser::default()
        };
        assert_eq!(
            of(&tokeniser, "Ask ANN@x.org before 2019 or 7"),
            ["ann@x.org", "2019"]
        );
        let stored = serde_json::to_string(&tokeniser).unwrap();
        assert_eq!(
            serde_json::from_str::<Tokeniser>(&stored).unwrap(),
            tokeniser
        );
        for (text, said) in [("[a", "unclosed"), ("a*", "empty word")] {
            let error = text.parse::<Pattern>().unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
