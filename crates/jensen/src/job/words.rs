//! Functions that parse the values of settings in requests and on the command line.

#[cfg(feature = "mixture")]
use jensen_conjugate::temper::Temper;
use jensen_math::simd::Simd;

use crate::Error;

/// Returns the SIMD instruction set with this name. Without a name, the function returns the best instruction set of
/// this machine.
///
/// # Errors
/// Fails if no instruction set has this name or if the machine does not support it.
pub fn simd(name: Option<&str>) -> Result<Simd, Error> {
    let parsed = name.unwrap_or("auto").parse::<Simd>();
    parsed.map_err(|error| Error::Setting(format!("--simd: {error}")))
}

/// Checks that an instruction set with this name exists.
///
/// # Errors
/// Fails with a message for the user if no instruction set has this name.
pub fn simd_name(text: &str) -> Result<String, Error> {
    let parsed = text.parse::<Simd>();
    parsed.map(|_| text.to_owned()).map_err(Error::setting)
}

/// Checks that `text` is the name of a temperature policy for conjugate models.
#[cfg(feature = "mixture")]
pub fn temper(text: &str) -> Result<String, Error> {
    let parsed = text.parse::<Temper>();
    parsed.map(|_| text.to_owned()).map_err(Error::from)
}

/// Parses a number of threads. The maximum is [`MOST_THREADS`].
pub fn thread_count(text: &str) -> Result<usize, Error> {
    match text.parse() {
        Ok(n @ 1..=MOST_THREADS) => Ok(n),
        _ => Err(Error::setting(format!(
            "expected a number of threads from 1 to {MOST_THREADS}"
        ))),
    }
}

/// The maximum number of threads that a setting may request.
pub const MOST_THREADS: usize = 1024;

/// Parses a number that must be positive.
pub fn positive(text: &str) -> Result<f64, Error> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err(Error::setting("expected a positive number")),
    }
}

/// Parses a number that must not be negative.
pub fn not_negative(text: &str) -> Result<f64, Error> {
    match text.parse::<f64>() {
        Ok(x) if x >= 0.0 && x.is_finite() => Ok(x),
        _ => Err(Error::setting("expected a number of at least 0")),
    }
}

/// Parses a weight from 0 to 1.
pub fn weight(text: &str) -> Result<f64, Error> {
    match text.parse::<f64>() {
        Ok(x) if (0.0..=1.0).contains(&x) => Ok(x),
        _ => Err(Error::setting("expected a number from 0 to 1")),
    }
}

/// Parses a weight from 0 to below 1.
pub fn below_one(text: &str) -> Result<f64, Error> {
    match text.parse::<f64>() {
        Ok(x) if (0.0..1.0).contains(&x) => Ok(x),
        _ => Err(Error::setting("expected a number from 0 to below 1")),
    }
}

/// Parses the size of an image, such as `48x42`.
pub fn size(text: &str) -> Result<(usize, usize), Error> {
    let parts = text.split_once('x');
    match parts.map(|(w, h)| (w.parse(), h.parse())) {
        Some((Ok(w), Ok(h))) if w > 0 && h > 0 => Ok((w, h)),
        _ => Err(Error::setting("expected width and height, such as 48x42")),
    }
}

/// Parses a size in bytes, such as `8GiB`, `512M` or `1000000`. Units with an `i` (`GiB`) and single letters (`M`) are
/// powers of 1024. Units that consist of a letter followed by `B` (`MB`) are powers of 1000.
pub fn bytes(text: &str) -> Result<u64, Error> {
    let fail = || {
        Error::setting(format!(
            "`{text}` is not an amount of memory such as 8GiB or 512MiB"
        ))
    };
    let text_trimmed = text.trim();
    let split = text_trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text_trimmed.len());
    let (number, unit) = text_trimmed.split_at(split);
    let number: f64 = number.parse().map_err(|_| fail())?;
    let unit = unit.trim().to_ascii_lowercase();
    let (letter, rest) = unit.split_at(usize::from(!unit.is_empty()));
    let power = match letter {
        "" | "b" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(fail()),
    };
    let base: f64 = match (letter, rest) {
        ("" | "b", "") | (_, "" | "ib") => 1024.0,
        (_, "b") => 1000.0,
        _ => return Err(fail()),
    };
    let product = number * base.powi(power);
    if product >= 1.0 && product < u64::MAX as f64 {
        Ok(product as u64)
    } else {
        Err(fail())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_memory() {
        assert_eq!(bytes("8GiB").unwrap(), 8 << 30);
        assert_eq!(bytes("1.5k").unwrap(), 1536);
        assert_eq!(bytes("2 MB").unwrap(), 2_000_000);
        assert_eq!(bytes("77").unwrap(), 77);
        for bad in ["", "GiB", "8 apples", "-1GiB", "0", "8GiBB"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!(size("48x42").unwrap(), (48, 42));
        for wrong in ["48", "0x3", "ax3", "4x"] {
            assert!(size(wrong).is_err());
        }
    }
}
