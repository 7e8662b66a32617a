//! A number of components, states or topics, or a range from which Jensen chooses the number.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;

/// A number of components, states or topics. If a range is given, Jensen compares the fits with all numbers of the
/// range and chooses one of them. The text `2..10` is the range of all numbers from 2 to 10, and `20..100:20` is the
/// range of the numbers 20, 40, 60, 80 and 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct CountRange {
    least: u64,
    most: u64,
    step: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    One(u64),
    Range(String),
}

const MOST: u64 = 1_000_000;

impl CountRange {
    /// Creates a range that contains only the number `k`.
    pub fn one(k: u64) -> Self {
        Self {
            least: k,
            most: k,
            step: 1,
        }
    }

    /// Returns all numbers of the range in ascending order.
    pub fn all(self) -> impl Iterator<Item = u64> {
        (self.least..=self.most).step_by(self.step as usize)
    }

    /// Returns the only number of the range, or `None` if the range contains several numbers.
    pub fn only(self) -> Option<u64> {
        (self.most() == self.least).then_some(self.least)
    }

    /// Returns the largest number of the range.
    pub fn most(self) -> u64 {
        self.most - (self.most - self.least) % self.step
    }
}

impl fmt::Display for CountRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.only(), self.step) {
            (Some(k), _) => k.fmt(f),
            (None, 1) => write!(f, "{}..{}", self.least, self.most),
            (None, step) => write!(f, "{}..{}:{step}", self.least, self.most),
        }
    }
}

impl FromStr for CountRange {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let number = |text: &str| {
            text.trim()
                .parse::<u64>()
                .ok()
                .filter(|k| (1..=MOST).contains(k))
        };
        let (range, step) = match (text.split_once(':'), text.contains("..")) {
            (Some((range, step)), true) => (range, number(step)),
            _ => (text, Some(1)),
        };
        let (least, most) = range.split_once("..").unwrap_or((range, range));
        match (number(least), number(most), step) {
            (Some(least), Some(most), Some(step)) if least <= most => {
                Ok(Self { least, most, step })
            }
            (Some(least), Some(most), Some(_)) => Err(Error::Setting(format!(
                "the range {least}..{most} is empty: the first number must not exceed the last"
            ))),
            _ => Err(Error::Setting(format!(
                "expected a number from 1 to {MOST}, a range such as 1..10, or a range with a step, such as 20..100:20"
            ))),
        }
    }
}

impl From<CountRange> for Written {
    fn from(sizes: CountRange) -> Self {
        match sizes.only() {
            Some(k) => Self::One(k),
            None => Self::Range(sizes.to_string()),
        }
    }
}

impl TryFrom<Written> for CountRange {
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
        for (text, json, all) in [
            ("4", "4", vec![4]),
            ("1..3", "\"1..3\"", vec![1, 2, 3]),
            ("5..20:5", "\"5..20:5\"", vec![5, 10, 15, 20]),
            ("5..19:5", "\"5..19:5\"", vec![5, 10, 15]),
        ] {
            let sizes: CountRange = text.parse().unwrap();
            assert_eq!(sizes.all().collect::<Vec<u64>>(), all);
            assert_eq!(Some(&sizes.most()), all.last());
            assert_eq!(sizes.to_string(), text);
            assert_eq!(serde_json::to_string(&sizes).unwrap(), json);
            assert_eq!(serde_json::from_str::<CountRange>(json).unwrap(), sizes);
        }
        for wrong in [
            "0",
            "3..2",
            "..4",
            "2..",
            "-1",
            "x",
            "1..2000000",
            "1..5:0",
            "4:2",
        ] {
            assert!(wrong.parse::<CountRange>().is_err(), "{wrong}");
        }
    }
}
