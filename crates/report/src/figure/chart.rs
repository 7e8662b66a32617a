//! Charts that consist of lines and points.

use super::axis::{Axis, Placed};
use super::colour::Tint;
use super::scene::{Anchor, Colour, Scene, Stroke, text_width, within};

const LEFT: f64 = 66.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 44.0;
const RIGHT: f64 = 12.0;

const ENTRY: f64 = 16.0;

/// A chart of lines and points with a horizontal and a vertical axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    title: String,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
    size: (f64, f64),
    legend: bool,
}

impl Chart {
    /// Creates an empty chart of 420 × 300 pixels with linear axes.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            x: Axis::default(),
            y: Axis::default(),
            series: Vec::new(),
            size: (420.0, 300.0),
            legend: true,
        }
    }

    /// Sets the horizontal axis.
    pub fn x(self, x: Axis) -> Self {
        Self { x, ..self }
    }

    /// Sets the vertical axis.
    pub fn y(self, y: Axis) -> Self {
        Self { y, ..self }
    }

    /// Adds a series of points.
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Sets the width and the height of the chart in pixels, including its axes and its title.
    pub fn sized(self, width: f64, height: f64) -> Self {
        Self {
            size: (within(width, 160.0, 4000.0), within(height, 120.0, 4000.0)),
            ..self
        }
    }

    /// Omits the legend. By default, a chart has a legend below its axes if at least one series has a name.
    pub fn without_legend(self) -> Self {
        Self {
            legend: false,
            ..self
        }
    }

    /// Returns the entries of the legend, and the indices of the entries on each line of the legend. There is one entry
    /// per name. The entry shows the first series of this name that has points.
    fn entries(&self) -> (Vec<(usize, &Series)>, Vec<Vec<usize>>) {
        let mut entries: Vec<(usize, &Series)> = Vec::new();
        if self.legend {
            for (i, series) in self.series.iter().enumerate() {
                let known = entries.iter().any(|(_, s)| s.name == series.name);
                if !series.name.is_empty() && !series.points.is_empty() && !known {
                    entries.push((i, series));
                }
            }
        }
        let room = self.size.0 - LEFT - RIGHT;
        let mut lines: Vec<Vec<usize>> = Vec::new();
        let mut used = f64::INFINITY;
        for (k, (_, series)) in entries.iter().enumerate() {
            let width = entry_width(series);
            if used + width > room {
                lines.push(Vec::new());
                used = 0.0;
            }
            used += width;
            if let Some(line) = lines.last_mut() {
                line.push(k);
            }
        }
        (entries, lines)
    }

    pub(super) fn size(&self) -> (f64, f64) {
        let (_, lines) = self.entries();
        (self.size.0, self.size.1 + ENTRY * lines.len() as f64)
    }

    pub(super) fn draw(&self, scene: &mut Scene, corner: (f64, f64)) {
        let (left, right) = (corner.0 + LEFT, corner.0 + self.size.0 - RIGHT);
        let (top, bottom) = (corner.1 + TOP, corner.1 + self.size.1 - BOTTOM);
        let shown = |point: &(f64, f64)| self.x.takes(point.0) && self.y.takes(point.1);
        let points = || self.series.iter().flat_map(Series::outline).filter(shown);
        let x = self.x.scale(points().map(|p| p.0), left, right, 0.02);
        let y = self.y.scale(points().map(|p| p.1), bottom, top, 0.05);
        frame(scene, &self.title, (&self.x, &x), (&self.y, &y), true);
        for (i, series) in self.series.iter().enumerate() {
            series.draw(scene, i, (&self.x, &x), (&self.y, &y));
        }
        let (entries, lines) = self.entries();
        for (row, line) in lines.iter().enumerate() {
            let y = corner.1 + self.size.1 + ENTRY * row as f64 + 6.0;
            let mut x = left;
            for k in line {
                let (i, series) = entries[*k];
                series.sample(scene, i, (x, y));
                scene.text(
                    (x + 28.0, y + 4.0),
                    12.0,
                    Anchor::Start,
                    Tint::Ink,
                    &series.name,
                );
                x += entry_width(series);
            }
        }
    }
}

fn entry_width(series: &Series) -> f64 {
    28.0 + text_width(&series.name, 12.0) + 18.0
}

pub(super) fn frame(
    scene: &mut Scene,
    title: &str,
    (x_axis, x): (&Axis, &Placed),
    (y_axis, y): (&Axis, &Placed),
    grid: bool,
) {
    let (left, right, bottom, top) = (x.start, x.end, y.start, y.end);
    let about = ((right - left) / 65.0) as usize + 1;
    ticks_below(scene, x, bottom, grid.then_some(top), about);
    let mut widest = 0.0f64;
    for (value, label) in y.ticks(((bottom - top) / 45.0) as usize + 1) {
        let at = y.at(value);
        widest = widest.max(text_width(&label, 11.0));
        if grid {
            scene.line(
                vec![(left, at), (right, at)],
                Stroke::solid(Tint::Grid, 1.0),
            );
        }
        scene.line(
            vec![(left - 4.0, at), (left, at)],
            Stroke::solid(Tint::Soft, 1.0),
        );
        scene.text(
            (left - 7.0, at + 4.0),
            11.0,
            Anchor::End,
            Tint::Soft,
            &label,
        );
    }
    scene.frame(
        (left, top),
        (right - left, bottom - top),
        Stroke::solid(Tint::Soft, 1.0),
    );
    let middle = (left + right) / 2.0;
    scene.text((middle, top - 9.0), 13.5, Anchor::Middle, Tint::Ink, title);
    scene.text(
        (middle, bottom + 34.0),
        12.0,
        Anchor::Middle,
        Tint::Ink,
        &x_axis.label,
    );
    scene.upward_text(
        (
            left - (widest + 16.0).clamp(50.0, LEFT - 7.0),
            (top + bottom) / 2.0,
        ),
        12.0,
        Tint::Ink,
        &y_axis.label,
    );
}

pub(crate) fn ticks_below(
    scene: &mut Scene,
    x: &Placed,
    bottom: f64,
    grid: Option<f64>,
    about: usize,
) {
    for (value, label) in x.ticks(about) {
        let at = x.at(value);
        if let Some(top) = grid {
            scene.line(
                vec![(at, top), (at, bottom)],
                Stroke::solid(Tint::Grid, 1.0),
            );
        }
        scene.line(
            vec![(at, bottom), (at, bottom + 4.0)],
            Stroke::solid(Tint::Soft, 1.0),
        );
        scene.text(
            (at, bottom + 16.0),
            11.0,
            Anchor::Middle,
            Tint::Soft,
            &label,
        );
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Line,
    Points,
    LineAndPoints,
}

/// A series of points. Series with the same name share an entry of the legend, and should therefore have the same
/// colour.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    name: String,
    points: Vec<(f64, f64)>,
    band: Option<Vec<(f64, f64)>>,
    mark: Mark,
    dashed: bool,
    colour: Option<usize>,
    width: f64,
    opacity: f64,
}

impl Series {
    fn new(name: impl Into<String>, points: Vec<(f64, f64)>, mark: Mark) -> Self {
        Self {
            name: name.into(),
            points,
            band: None,
            mark,
            dashed: false,
            colour: None,
            width: 1.8,
            opacity: 1.0,
        }
    }

    /// Creates a line through the points, in the given order. A point that has no position on the axes interrupts the
    /// line.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, points.into_iter().collect(), Mark::Line)
    }

    /// Creates a series of points that are not connected by a line.
    pub fn scatter(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, points.into_iter().collect(), Mark::Points)
    }

    /// Also marks each point of the line.
    pub fn marked(self) -> Self {
        Self {
            mark: Mark::LineAndPoints,
            ..self
        }
    }

    /// Draws the line dashed.
    pub fn dashed(self) -> Self {
        Self {
            dashed: true,
            ..self
        }
    }

    /// Fills a band around the line. `ends` contains the lower and the upper end of the band for each point.
    pub fn band(self, ends: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self {
            band: Some(ends.into_iter().collect()),
            ..self
        }
    }

    /// Sets the colour of the series by its index in the list of colours. The colours repeat, so any index is valid. By
    /// default, the index is that of the series in the chart.
    pub fn colour(self, number: usize) -> Self {
        Self {
            colour: Some(number),
            ..self
        }
    }

    /// Sets the width of the line in pixels. The size of points without a line is twice this width.
    pub fn width(self, width: f64) -> Self {
        Self {
            width: within(width, 0.2, 20.0),
            ..self
        }
    }

    /// Sets the opacity of the series, from 0 (invisible) to 1 (opaque).
    pub fn opacity(self, opacity: f64) -> Self {
        Self { opacity, ..self }
    }

    fn outline(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let band = self.band.iter().flatten();
        let ends = self
            .points
            .iter()
            .zip(band)
            .flat_map(|((x, _), (low, high))| [(*x, *low), (*x, *high)]);
        self.points.iter().copied().chain(ends)
    }

    fn ink(&self, index: usize) -> Colour {
        Colour::from(Tint::Series(self.colour.unwrap_or(index))).with_opacity(self.opacity)
    }

    fn stroke(&self, index: usize) -> Stroke {
        Stroke {
            colour: self.ink(index),
            width: self.width,
            dashed: self.dashed,
        }
    }

    fn radius(&self) -> f64 {
        self.width * 1.25
    }

    pub(super) fn draw(
        &self,
        scene: &mut Scene,
        index: usize,
        (x_axis, x): (&Axis, &Placed),
        (y_axis, y): (&Axis, &Placed),
    ) {
        let pixel =
            |(a, b): (f64, f64)| (x_axis.takes(a) && y_axis.takes(b)).then(|| (x.at(a), y.at(b)));
        let area = Area {
            left: x.start,
            right: x.end,
            top: y.end,
            bottom: y.start,
        };
        if let Some(band) = &self.band {
            let end = |(at, height): (f64, f64)| {
                // On a logarithmic axis, an end that is not positive is moved to the edge of the chart.
                let height = if y_axis.takes(height) {
                    y.at(height)
                } else {
                    area.bottom
                };
                x_axis.takes(at).then(|| area.nearest((x.at(at), height)))
            };
            let ends = || self.points.iter().zip(band);
            let lower = ends().filter_map(|((a, _), (low, _))| end((*a, *low)));
            let upper = ends()
                .rev()
                .filter_map(|((a, _), (_, high))| end((*a, *high)));
            let outline: Vec<_> = lower.chain(upper).collect();
            scene.area(outline, self.ink(index).with_opacity(0.18 * self.opacity));
        }
        let pixels: Vec<Option<(f64, f64)>> = self.points.iter().map(|p| pixel(*p)).collect();
        if self.mark != Mark::Points {
            for part in area.parts(&pixels) {
                scene.line(part, self.stroke(index));
            }
        }
        if self.mark != Mark::Line {
            for centre in pixels.into_iter().flatten().filter(|p| area.holds(*p)) {
                scene.disc(centre, self.radius(), self.ink(index));
            }
        }
    }

    fn sample(&self, scene: &mut Scene, index: usize, (x, y): (f64, f64)) {
        if self.mark != Mark::Points {
            scene.line(vec![(x, y), (x + 22.0, y)], self.stroke(index));
        }
        if self.mark != Mark::Line {
            scene.disc((x + 11.0, y), self.radius(), self.ink(index));
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Area {
    fn holds(&self, (x, y): (f64, f64)) -> bool {
        let slack = 1e-6;
        (self.left - slack..=self.right + slack).contains(&x)
            && (self.top - slack..=self.bottom + slack).contains(&y)
    }

    fn nearest(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (
            x.clamp(self.left, self.right),
            y.clamp(self.top, self.bottom),
        )
    }

    fn parts(&self, points: &[Option<(f64, f64)>]) -> Vec<Vec<(f64, f64)>> {
        let mut parts: Vec<Vec<(f64, f64)>> = Vec::new();
        let mut open = false;
        for pair in points.windows(2) {
            let clipped = match pair {
                [Some(a), Some(b)] => self.clip(*a, *b),
                _ => None,
            };
            let Some((a, b)) = clipped else {
                open = false;
                continue;
            };
            match parts.last_mut() {
                Some(part) if open && part.last() == Some(&a) => part.push(b),
                _ => parts.push(vec![a, b]),
            }
            open = true;
        }
        parts
    }

    /// Returns the part of a segment that is inside the panel, using the algorithm of Liang and Barsky (1984).
    fn clip(&self, a: (f64, f64), b: (f64, f64)) -> Option<((f64, f64), (f64, f64))> {
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let (mut from, mut to) = (0.0f64, 1.0f64);
        let edges = [
            (-dx, a.0 - self.left),
            (dx, self.right - a.0),
            (-dy, a.1 - self.top),
            (dy, self.bottom - a.1),
        ];
        for (speed, room) in edges {
            if speed == 0.0 {
                if room < 0.0 {
                    return None;
                }
            } else if speed < 0.0 {
                from = from.max(room / speed);
            } else {
                to = to.min(room / speed);
            }
        }
        if from > to {
            return None;
        }
        let at = |t: f64| match t {
            0.0 => a,
            1.0 => b,
            t => (a.0 + t * dx, a.1 + t * dy),
        };
        Some((at(from), at(to)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: Area = Area {
        left: 0.0,
        right: 1.0,
        top: 0.0,
        bottom: 1.0,
    };

    #[test]
    fn lines_are_cut_at_the_edges_and_interrupted_by_gaps() {
        let points = [
            Some((0.5, 0.5)),
            Some((0.5, 2.0)),
            Some((0.75, 2.0)),
            Some((0.75, 0.5)),
            None,
            Some((0.1, 0.1)),
            Some((0.2, 0.1)),
            Some((0.3, 0.1)),
        ];
        let parts = UNIT.parts(&points);
        assert_eq!(
            parts,
            [
                vec![(0.5, 0.5), (0.5, 1.0)],
                vec![(0.75, 1.0), (0.75, 0.5)],
                vec![(0.1, 0.1), (0.2, 0.1), (0.3, 0.1)],
            ]
        );
    }

    #[test]
    fn the_legend_names_each_series_once_and_breaks_its_lines() {
        let mut chart = Chart::new("").sized(300.0, 200.0);
        for name in [
            "a",
            "a",
            "",
            "a rather long name of a series",
            "and another long one",
        ] {
            chart = chart.series(Series::line(name, [(0.0, 1.0)]));
        }
        chart = chart.series(Series::line("without points", []));
        let (entries, lines) = chart.entries();
        let indices: Vec<usize> = entries.iter().map(|(i, _)| *i).collect();
        assert_eq!(indices, [0, 3, 4]);
        assert_eq!(lines, [vec![0], vec![1], vec![2]]);
        assert_eq!(chart.without_legend().size(), (300.0, 200.0));
    }
}
