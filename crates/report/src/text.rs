//! Escapes text, and formats the numbers of a report.

use jensen_math::text::turns;

pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // HTML does not allow this character in any form, or the character would change the order of the text that
            // follows it.
            c if c.is_control() && !c.is_whitespace() || turns(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Shortens `text` to at most `limit` characters, ending with an ellipsis. The result is not escaped.
pub(crate) fn shorten(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_string();
    }
    let mut short: String = text.chars().take(limit.saturating_sub(1)).collect();
    short.push('…');
    short
}

pub(crate) fn is_words(text: &str) -> bool {
    text.chars().filter(|c| c.is_alphabetic()).count() > 3
}

/// Formats a number with about `digits` significant digits and a typographic minus sign. In numbers of at least 10 000,
/// the digits are grouped.
pub(crate) fn number(x: f64, digits: usize) -> String {
    if !x.is_finite() {
        return non_finite(x).to_string();
    }
    if x == 0.0 {
        return "0".into();
    }
    let magnitude = x.abs().log10().floor();
    if !(-4.0..9.0).contains(&magnitude) {
        return scientific(x, digits);
    }
    let decimals = (digits as f64 - 1.0 - magnitude).clamp(0.0, 12.0) as usize;
    let text = format!("{x:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    group(text)
}

pub(crate) fn fixed(x: f64, decimals: usize) -> String {
    if !x.is_finite() {
        return non_finite(x).to_string();
    }
    // Digits beyond the precision of `f64` are meaningless.
    if x.abs() >= 1e15 {
        return scientific(x, 6);
    }
    let text = format!("{x:.decimals$}");
    // A value that is rounded to −0.00 is shown without its sign.
    if text
        .trim_start_matches('-')
        .chars()
        .all(|c| c == '0' || c == '.')
    {
        return text.trim_start_matches('-').to_string();
    }
    group(&text)
}

pub(crate) fn scientific(x: f64, digits: usize) -> String {
    let text = format!("{x:.*e}", digits.saturating_sub(1));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = if mantissa.contains('.') {
        mantissa.trim_end_matches('0').trim_end_matches('.')
    } else {
        mantissa
    };
    let power = format!("10{}", superscript(exponent));
    match mantissa {
        "1" => power,
        "-1" => format!("−{power}"),
        m => format!("{}×{power}", m.replace('-', "−")),
    }
}

/// Returns the number of decimals that is necessary to show a spread with three significant digits.
pub(crate) fn decimals_for(spread: f64) -> usize {
    if spread.is_finite() && spread > 0.0 {
        (2.0 - spread.log10().floor()).clamp(0.0, 9.0) as usize
    } else {
        3
    }
}

pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() => "–".into(),
        s if s < 1e-3 => format!("{} µs", number(s * 1e6, 3)),
        s if s < 1.0 => format!("{} ms", number(s * 1e3, 3)),
        s if s < 120.0 => format!("{} s", number(s, 3)),
        s if s < 7200.0 => format!("{} min", number(s / 60.0, 3)),
        s => format!("{} h", number(s / 3600.0, 3)),
    }
}

fn non_finite(x: f64) -> &'static str {
    match x {
        x if x.is_nan() => "–",
        x if x > 0.0 => "∞",
        _ => "−∞",
    }
}

fn superscript(digits: &str) -> String {
    let raised = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => c
            .to_digit(10)
            .and_then(|d| char::from_u32(0x2070 + d))
            .unwrap_or(c),
    };
    digits.chars().map(raised).collect()
}

fn group(text: &str) -> String {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("−", rest),
        None => ("", text),
    };
    let (whole, fraction) = rest
        .split_once('.')
        .map_or((rest, None), |(w, f)| (w, Some(f)));
    let mut out = String::from(sign);
    for (i, c) in whole.chars().enumerate() {
        if whole.len() > 4 && i > 0 && (whole.len() - i) % 3 == 0 {
            out.push('\u{2009}');
        }
        out.push(c);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spelled_for_people() {
        let cases = [
            (number(0.0, 3), "0"),
            (number(1234.5, 3), "1234"),
            (number(-12345.6, 3), "−12\u{2009}346"),
            (number(0.041_26, 2), "0.041"),
            (number(1.5, 3), "1.5"),
            (number(-1.0e-7, 3), "−10⁻⁷"),
            (number(2.5e12, 2), "2.5×10¹²"),
            (number(f64::NAN, 3), "–"),
            (number(f64::NEG_INFINITY, 3), "−∞"),
            (fixed(-0.001, 2), "0.00"),
            (fixed(1_234_567.891, 1), "1\u{2009}234\u{2009}567.9"),
            (fixed(-3.25, 1), "−3.2"),
            (fixed(-6.039_54e174, 2), "−6.03954×10¹⁷⁴"),
            (duration(0.000_5), "500 µs"),
            (duration(0.25), "250 ms"),
            (duration(90.0), "90 s"),
            (duration(600.0), "10 min"),
            (duration(36_000.0), "10 h"),
            (shorten("abcdef", 4), "abc…"),
        ];
        for (found, expected) in cases {
            assert_eq!(found, expected);
        }
        assert_eq!(
            [
                decimals_for(12.3),
                decimals_for(0.012),
                decimals_for(1234.0),
                decimals_for(f64::NAN)
            ],
            [1, 4, 0, 3]
        );
    }
}
