//! Ranges of values, and arguments at which an operation is finite and smooth.

/// A range that contains every element of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueRange {
    /// A lower bound of all values.
    pub low: f64,
    /// An upper bound of all values.
    pub high: f64,
    /// Whether every value is strictly greater than `low`.
    pub above: bool,
}

impl ValueRange {
    /// The range of all numbers.
    pub const ALL: Self = Self {
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
        above: false,
    };

    pub(crate) const PROBABILITY: Self = Self {
        low: 0.0,
        high: 1.0,
        above: true,
    };

    /// Creates the range of all numbers that are at least `low`. If `above` is true, the range excludes `low` itself.
    pub fn at_least(low: f64, above: bool) -> Self {
        Self {
            low,
            above,
            ..Self::ALL
        }
    }

    /// Creates the range from `low` to `high`, which includes both bounds.
    pub fn between(low: f64, high: f64) -> Self {
        Self {
            low,
            high,
            above: false,
        }
    }

    /// Returns whether all values are above 0.
    pub fn positive(self) -> bool {
        self.low > 0.0 || (self.low == 0.0 && self.above)
    }

    /// Returns whether all values are at least 0.
    pub fn nonnegative(self) -> bool {
        self.low >= 0.0
    }

    /// Returns whether all values are in [0, 1].
    pub fn unit(self) -> bool {
        self.low >= 0.0 && self.high <= 1.0
    }

    /// Returns whether a number is in the range.
    pub fn contains(self, x: f64) -> bool {
        (x > self.low || (x == self.low && !self.above)) && x <= self.high
    }

    /// Returns the smallest range that contains both this range and `other`.
    pub fn join(self, other: Self) -> Self {
        let above = match self.low.total_cmp(&other.low) {
            std::cmp::Ordering::Less => self.above,
            std::cmp::Ordering::Greater => other.above,
            std::cmp::Ordering::Equal => self.above && other.above,
        };
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            above,
        }
    }

    pub(crate) fn sum(self, other: Self) -> Self {
        Self {
            low: self.low + other.low,
            high: self.high + other.high,
            above: self.above || other.above,
        }
    }

    pub(crate) fn difference(self, other: Self) -> Self {
        Self {
            low: self.low - other.high,
            high: self.high - other.low,
            above: self.above,
        }
    }

    pub(crate) fn negation(self) -> Self {
        Self::between(-self.high, -self.low)
    }

    pub(crate) fn product(self, other: Self) -> Self {
        if !(self.nonnegative() && other.nonnegative()) {
            return Self::ALL;
        }
        let bounded = self.high.is_finite() && other.high.is_finite();
        Self {
            low: self.low * other.low,
            high: if bounded {
                self.high * other.high
            } else {
                f64::INFINITY
            },
            above: self.positive() && other.positive(),
        }
    }

    pub(crate) fn quotient(self, other: Self) -> Self {
        match other.positive() {
            true => self.same_sign(),
            false => Self::ALL,
        }
    }

    pub(crate) fn larger(self, other: Self) -> Self {
        Self {
            low: self.low.max(other.low),
            high: self.high.max(other.high),
            above: self.positive() || other.positive(),
        }
    }

    /// Returns the range of a function that is positive everywhere except at 0, where it is 0.
    pub(crate) fn magnitude(self) -> Self {
        Self::at_least(0.0, self.positive() || self.high < 0.0)
    }

    /// Returns the range of a function whose value has the same sign as its argument.
    pub(crate) fn same_sign(self) -> Self {
        match self.nonnegative() {
            true => Self::at_least(0.0, self.positive()),
            false => Self::ALL,
        }
    }

    /// Returns the range of a function that is positive if its argument is positive.
    pub(crate) fn positive_if_positive(self) -> Self {
        match self.positive() {
            true => Self::at_least(0.0, true),
            false => Self::ALL,
        }
    }
}

/// Returns a number that replaces an argument in the given range. Returns `None` if the operation and its slope are
/// finite in the whole range.
pub(crate) type Harmless = fn(ValueRange) -> Option<f64>;

pub(crate) const ANY: Harmless = |_| None;
pub(crate) const POSITIVE: Harmless = |range| (!range.positive()).then_some(0.5);
pub(crate) const NONNEGATIVE: Harmless = |range| (!range.nonnegative()).then_some(0.5);
pub(crate) const MODEST: Harmless =
    |range| (!(range.low > -700.0 && range.high < 700.0)).then_some(0.5);
/// The conditions on the arguments of these operations, such as 0 < x < 1, are not compared with the range of the
/// argument. The argument is therefore always replaced.
pub(crate) const HALF: Harmless = |_| Some(0.5);
pub(crate) const NEGATIVE: Harmless = |_| Some(-0.5);
pub(crate) const ABOVE_ONE: Harmless = |_| Some(2.0);
