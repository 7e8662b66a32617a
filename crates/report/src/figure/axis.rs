//! Axes. An axis has a label, a range, a linear or logarithmic scale, and ticks.

use crate::text;

/// An axis of a chart or of a heat map.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Axis {
    pub(super) label: String,
    pub(super) log: bool,
    pub(super) whole: bool,
    pub(super) range: Option<(f64, f64)>,
}

impl Axis {
    /// Creates a linear axis. The axis covers the data unless [`range`](Self::range) sets another range.
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ..Self::default()
        }
    }

    /// Makes the axis logarithmic. Values that are zero or negative are then omitted.
    pub fn log(self) -> Self {
        Self { log: true, ..self }
    }

    /// Draws ticks only at integers.
    pub(crate) fn whole(self) -> Self {
        Self {
            whole: true,
            ..self
        }
    }

    /// Sets the range of the axis. Lines and points outside this range are clipped.
    pub fn range(self, from: f64, to: f64) -> Self {
        Self {
            range: Some((from, to)),
            ..self
        }
    }

    /// Returns whether a value has a position on the axis. Values beyond 10¹⁵⁰ have none, because they would overflow.
    pub(crate) fn takes(&self, x: f64) -> bool {
        x.abs() < 1e150 && (!self.log || x > 0.0)
    }

    pub(crate) fn scale(
        &self,
        values: impl Iterator<Item = f64>,
        start: f64,
        end: f64,
        margin: f64,
    ) -> Placed {
        let turn = |x: f64| if self.log { x.log10() } else { x };
        // A smaller range could not be divided, because of rounding.
        let least = |from: f64, to: f64| (1e-9 * from.abs().max(to.abs())).max(1e-290);
        let given = self
            .range
            .filter(|(from, to)| self.takes(*from) && self.takes(*to))
            .filter(|(from, to)| turn(*to) - turn(*from) > least(turn(*from), turn(*to)));
        let (from, to) = match given {
            Some((from, to)) => (turn(from), turn(to)),
            None => {
                let (from, to) = values
                    .filter(|x| self.takes(*x))
                    .map(turn)
                    .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| {
                        (a.min(x), b.max(x))
                    });
                let (from, to) = if from <= to { (from, to) } else { (0.0, 1.0) };
                let room = if to - from > least(from, to) {
                    (to - from) * margin
                } else {
                    (from.abs() * 0.1).max(0.5)
                };
                (from - room, to + room)
            }
        };
        Placed {
            log: self.log,
            whole: self.whole,
            from,
            to,
            start,
            end,
        }
    }
}

/// An axis with its position on the page. If the axis is logarithmic, `from` and `to` are logarithms to base 10.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Placed {
    log: bool,
    whole: bool,
    from: f64,
    to: f64,
    pub start: f64,
    pub end: f64,
}

impl Placed {
    /// Returns the position, in pixels, at which a value is drawn. The position may be outside the axis, but its
    /// magnitude is limited to 10⁷.
    pub fn at(&self, x: f64) -> f64 {
        let x = if self.log { x.log10() } else { x };
        let pixel = self.start + (x - self.from) / (self.to - self.from) * (self.end - self.start);
        pixel.clamp(-1e7, 1e7)
    }

    /// Returns the values and the labels of about `about` ticks.
    pub fn ticks(&self, about: usize) -> Vec<(f64, String)> {
        if !self.log {
            return round_numbers(self.from, self.to, about, self.whole);
        }
        let decades = self.to - self.from;
        if decades < 0.8 {
            // The range is too short for powers of ten. Round numbers are used instead, although their spacing is then
            // uneven.
            let (from, to) = (10f64.powf(self.from), 10f64.powf(self.to));
            return round_numbers(from, to, about, false);
        }
        let steps: &[f64] = match decades {
            d if d < 1.6 => &[1.0, 2.0, 5.0],
            d if d < 2.5 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let stride = (decades / about as f64).ceil().max(1.0) as i32;
        let (first, last) = (self.from.floor() as i32, self.to.ceil() as i32);
        let powers = (first..=last).filter(|power| power.rem_euclid(stride) == 0);
        powers
            .flat_map(|power| steps.iter().map(move |m| m * 10f64.powi(power)))
            .filter(|x| (self.from - 1e-9..=self.to + 1e-9).contains(&x.log10()))
            .map(|x| {
                let plain = (1e-3..1e4).contains(&x);
                let label = if plain {
                    text::number(x, 3)
                } else {
                    text::scientific(x, 1)
                };
                (x, label)
            })
            .collect()
    }
}

fn round_numbers(from: f64, to: f64, about: usize, whole: bool) -> Vec<(f64, String)> {
    let raw = (to - from) / about as f64;
    let raw = if whole { raw.max(1.0) } else { raw };
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .iter()
        .map(|m| m * power)
        .find(|s| *s >= raw * 0.999 && !(whole && s.fract() != 0.0))
        .unwrap_or(raw);
    let first = (from / step - 1e-9).ceil() as i64;
    let last = (to / step + 1e-9).floor() as i64;
    let largest = from.abs().max(to.abs());
    // A step of 2.5 requires one digit more than the power of ten to which it belongs.
    let decimals = (0..12).find(|d| {
        let scaled = step * 10f64.powi(*d);
        (scaled - scaled.round()).abs() < 1e-6 * scaled
    });
    (first..=last)
        .map(|k| {
            let value = k as f64 * step;
            let label = match decimals {
                _ if value == 0.0 => "0".to_string(),
                Some(d) if largest < 1e6 => text::fixed(value, d as usize),
                _ => text::scientific(value, 4),
            };
            (value, label)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        let placed = axis.scale(values.iter().copied(), 0.0, 100.0, 0.0);
        placed
            .ticks(5)
            .into_iter()
            .map(|(_, label)| label)
            .collect()
    }

    #[test]
    fn logarithmic_axes_have_ticks_whatever_they_span() {
        let log = Axis::new("").log();
        assert_eq!(
            labels(&log, &[1.0, 1000.0, -3.0]),
            ["1", "10", "100", "1000"]
        );
        assert_eq!(labels(&log, &[1.0, 10.0]), ["1", "2", "5", "10"]);
        assert!(labels(&log, &[2.0, 2.2]).len() >= 3);
        assert_eq!(labels(&log, &[1e-12, 1e12]).len(), 5);
        assert!(!labels(&log, &[]).is_empty());
    }

    #[test]
    fn values_have_their_positions() {
        let placed = Axis::new("")
            .log()
            .scale([1.0, 100.0].into_iter(), 10.0, 30.0, 0.0);
        assert!((placed.at(10.0) - 20.0).abs() < 1e-12);
        let placed = Axis::new("")
            .range(0.0, 4.0)
            .scale([9.0].into_iter(), 0.0, 8.0, 0.0);
        assert_eq!(placed.at(3.0), 6.0);
        assert_eq!(placed.at(5.0), 10.0);
    }
}
