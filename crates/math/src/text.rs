//! Functions that make untrusted text safe to display, and that format numbers. Untrusted text includes names of
//! variables, columns and files, words in data, and source code.

use std::borrow::Cow;

/// Escapes characters that could harm a terminal or disturb a table. The function replaces control characters, and
/// marks that change the writing direction, by escapes such as `\u001b`, as in JSON. Such characters may come from
/// programs, data and file names.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_harmful(c) {
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

fn is_harmful(c: char) -> bool {
    let layout = matches!(c, '\n' | '\t');
    turns(c) || c.is_control() && !layout
}

/// Formats a number with this many decimals. Large numbers, whose decimals would not be meaningful, have an exponent.
///
/// ```
/// use jensen_math::text::fixed;
///
/// assert_eq!(fixed(-31.267, 2), "-31.27");
/// assert_eq!(fixed(-1.0392387e181, 2), "-1.039e181");
/// ```
pub fn fixed(x: f64, decimals: usize) -> String {
    match x.abs() < 1e9 || !x.is_finite() {
        true => format!("{x:.decimals$}"),
        false => format!("{x:.3e}"),
    }
}

/// Returns whether a character can change the writing direction of text.
pub fn turns(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_stay_json() {
        assert_eq!(harmless("a\tb\n"), "a\tb\n");
        let shown = harmless("\"\u{1b}[31m\r\u{9b}é\u{202e}\"");
        assert_eq!(shown, "\"\\u001b[31m\\u000d\\u009bé\\u202e\"");
    }
}
