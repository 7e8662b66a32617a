//! The number of components of a model, or a range from which Jensen chooses this number.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;

/// The number of components of a model. If a range is given, Jensen chooses the number by comparing the ELBO of the
/// fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct ComponentRange {
    least: u64,
    most: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    One(u64),
    Range(String),
}

const MOST: u64 = 1_000_000;

impl ComponentRange {
    /// Creates a range that contains only the number `k`.
    pub fn one(k: u64) -> Self {
        Self { least: k, most: k }
    }

    /// Returns all numbers of the range in ascending order.
    pub fn all(self) -> RangeInclusive<u64> {
        self.least..=self.most
    }

    /// Returns the only number of the range, or `None` if the range contains several numbers.
    pub fn only(self) -> Option<u64> {
        (self.least == self.most).then_some(self.least)
    }

    /// Returns the largest number of the range.
    pub fn most(self) -> u64 {
        self.most
    }
}

impl fmt::Display for ComponentRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.only() {
            Some(k) => k.fmt(f),
            None => write!(f, "{}..{}", self.least, self.most),
        }
    }
}

impl FromStr for ComponentRange {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let number = |text: &str| {
            text.trim()
                .parse::<u64>()
                .ok()
                .filter(|k| (1..=MOST).contains(k))
        };
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        match (number(least), number(most)) {
            (Some(least), Some(most)) if least <= most => Ok(Self { least, most }),
            (Some(least), Some(most)) => Err(Error::Setting(format!(
                "the range {least}..{most} is empty: the first number must not exceed the last"
            ))),
            _ => Err(Error::Setting(format!(
                "expected a number from 1 to {MOST}, or a range such as 1..10"
            ))),
        }
    }
}

impl From<ComponentRange> for Written {
    fn from(sizes: ComponentRange) -> Self {
        match sizes.only() {
            Some(k) => Self::One(k),
            None => Self::Range(sizes.to_string()),
        }
    }
}

impl TryFrom<Written> for ComponentRange {
    type Error = Error;

    fn try_from(written: Written) -> Result<Self, Error> {
        match written {
            Written::One(k) => k.to_string().parse(),
            Written::Range(text) => text.parse(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_written() {
        for (text, json, all) in [("4", "4", 4..=4), ("1..10", "\"1..10\"", 1..=10)] {
            let sizes: ComponentRange = text.parse().unwrap();
            assert_eq!(sizes.all(), all);
            assert_eq!(sizes.to_string(), text);
            assert_eq!(serde_json::to_string(&sizes).unwrap(), json);
            assert_eq!(serde_json::from_str::<ComponentRange>(json).unwrap(), sizes);
        }
        for wrong in ["0", "3..2", "..4", "2..", "-1", "x", "1..2000000"] {
            assert!(wrong.parse::<ComponentRange>().is_err(), "{wrong}");
        }
    }
}
