//! Axes and shapes of inline SVG. Colours come from the page's style sheet through class names.

use std::fmt::Write;

use crate::text;

/// Maps data to pixels along one axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
    log: bool,
    whole: bool,
}

impl Scale {
    /// A linear scale. An empty or unusable range is widened so that the middle is the value. Magnitudes beyond 10³⁰⁰
    /// are drawn at 10³⁰⁰, which keeps every difference finite.
    pub fn linear(from: f64, to: f64, start: f64, end: f64) -> Self {
        let (from, to) = (from.clamp(-1e300, 1e300), to.clamp(-1e300, 1e300));
        let least = (1e-12 * from.abs().max(to.abs())).max(1e-300);
        let (from, to) = if to - from > least {
            (from, to)
        } else {
            let middle = if from.is_nan() { 0.0 } else { from };
            let half = (middle.abs() * 0.1).max(0.5);
            (middle - half, middle + half)
        };
        Self {
            from,
            to,
            start,
            end,
            log: false,
            whole: false,
        }
    }

    /// A logarithmic scale over positive values.
    pub fn log(from: f64, to: f64, start: f64, end: f64) -> Self {
        let linear = Self::linear(from.log10(), to.log10(), start, end);
        Self {
            log: true,
            ..linear
        }
    }

    /// The same scale with ticks at whole numbers only.
    pub fn whole(self) -> Self {
        Self {
            whole: true,
            ..self
        }
    }

    /// Pixel of a value, kept within the axis.
    pub fn at(&self, x: f64) -> f64 {
        let x = if self.log { x.log10() } else { x };
        let share = ((x - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        self.start + share * (self.end - self.start)
    }

    /// Tick values and their labels.
    pub fn ticks(&self, about: usize) -> Vec<(f64, String)> {
        if self.log {
            let step = ((self.to - self.from) / about as f64).ceil().max(1.0);
            let first = (self.from / step).ceil() as i64;
            let last = (self.to / step).floor() as i64;
            return (first..=last)
                .map(|k| {
                    let value = 10f64.powf(k as f64 * step);
                    let small = (1e-3..1e5).contains(&value);
                    (
                        value,
                        if small {
                            text::number(value, 3)
                        } else {
                            text::scientific(value, 1)
                        },
                    )
                })
                .collect();
        }
        let raw = (self.to - self.from) / about as f64;
        let raw = if self.whole { raw.max(1.0) } else { raw };
        let power = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .iter()
            .map(|m| m * power)
            .find(|s| *s >= raw * 0.999 && !(self.whole && s.fract() != 0.0))
            .unwrap_or(raw);
        let first = (self.from / step - 1e-9).ceil() as i64;
        let last = (self.to / step + 1e-9).floor() as i64;
        let largest = self.from.abs().max(self.to.abs());
        // 2.5 needs one digit more than its power of ten.
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
}

/// An SVG drawing under construction.
pub(crate) struct Svg {
    body: String,
    width: f64,
    height: f64,
    label: String,
}

impl Svg {
    /// A drawing of the given size in pixels; `label` (not yet escaped) tells what it shows to those who cannot see it.
    pub fn new(width: f64, height: f64, label: &str) -> Self {
        Self {
            body: String::new(),
            width,
            height,
            label: text::escape(label),
        }
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(element);
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.push(format_args!(
            r#"<line class="{class}" x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}"/>"#,
            from.0, from.1, to.0, to.1
        ));
    }

    pub fn rect(&mut self, class: &str, corner: (f64, f64), width: f64, height: f64) {
        self.push(format_args!(
            r#"<rect class="{class}" x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}"/>"#,
            corner.0, corner.1, width, height
        ));
    }

    /// A filled rectangle of the given opacity with a tooltip (not yet escaped).
    pub fn cell(&mut self, class: &str, corner: (f64, f64), size: f64, opacity: f64, tip: &str) {
        self.push(format_args!(
            r#"<rect class="{class}" x="{:.1}" y="{:.1}" width="{size:.1}" height="{size:.1}" fill-opacity="{opacity:.2}"><title>{}</title></rect>"#,
            corner.0,
            corner.1,
            text::escape(tip)
        ));
    }

    pub fn circle(&mut self, class: &str, centre: (f64, f64), radius: f64) {
        self.push(format_args!(
            r#"<circle class="{class}" cx="{:.1}" cy="{:.1}" r="{radius}"/>"#,
            centre.0, centre.1
        ));
    }

    /// Text that is not yet escaped. `class` sets anchor and weight: see the style sheet.
    pub fn text(&mut self, class: &str, at: (f64, f64), content: &str) {
        self.push(format_args!(
            r#"<text class="{class}" x="{:.1}" y="{:.1}">{}</text>"#,
            at.0,
            at.1,
            text::escape(content)
        ));
    }

    /// A polyline, closed and filled if `class` says so in the style sheet.
    pub fn path(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>, close: bool) {
        let mut data = String::new();
        for (i, (x, y)) in points.into_iter().enumerate() {
            let _ = write!(data, "{}{x:.1} {y:.1}", if i == 0 { "M" } else { "L" });
        }
        if close {
            data.push('Z');
        }
        self.push(format_args!(r#"<path class="{class}" d="{data}"/>"#));
    }

    /// Horizontal axis below the plot at `y`: ticks, labels and grid lines up to `top`.
    pub fn axis_x(&mut self, scale: &Scale, y: f64, top: f64, ticks: usize, title: &str) {
        for (value, label) in scale.ticks(ticks) {
            let x = scale.at(value);
            self.line("grid", (x, top), (x, y));
            self.text("tick mid", (x, y + 14.0), &label);
        }
        self.line("axis", (scale.start, y), (scale.end, y));
        if !title.is_empty() {
            self.text(
                "label mid",
                ((scale.start + scale.end) / 2.0, y + 31.0),
                title,
            );
        }
    }

    /// Vertical axis left of the plot at `x`: labels and grid lines up to `right`.
    pub fn axis_y(&mut self, scale: &Scale, x: f64, right: f64, ticks: usize) {
        for (value, label) in scale.ticks(ticks) {
            let y = scale.at(value);
            self.line("grid", (x, y), (right, y));
            self.text("tick end", (x - 7.0, y + 3.5), &label);
        }
    }

    /// The finished element.
    pub fn finish(self) -> String {
        format!(
            r#"<svg viewBox="0 0 {w:.0} {h:.0}" width="{w:.0}" height="{h:.0}" role="img" aria-label="{label}">{body}</svg>"#,
            w = self.width,
            h = self.height,
            label = self.label,
            body = self.body
        )
    }
}
