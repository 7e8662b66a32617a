//! Pictures of parameters that are not charts: forest plots, densities, and the triangle of correlations.

use jensen_math::order::quantile;

use crate::figure::{Anchor, Axis, Scene, Stroke, Tint, text_width, ticks_below};
use crate::model::{Marginal, Parameter};
use crate::stats;
use crate::text;

const NAME: f64 = 11.5;
const LABEL: f64 = 11.0;

fn longest(labels: &[String]) -> f64 {
    let widths = labels.iter().map(|label| text_width(label, NAME));
    widths.fold(0.0, f64::max)
}

/// Draws the medians and the 90 % intervals of the elements of a variable on a common axis.
pub(super) fn forest(rows: &[&Parameter]) -> Scene {
    let (width, pitch) = (520.0, 19.0);
    let labels: Vec<String> = rows.iter().map(|p| text::shorten(&p.name, 24)).collect();
    let (left, right, top) = (24.0 + longest(&labels), width - 14.0, 10.0);
    let bottom = top + pitch * rows.len() as f64;
    let ends = rows.iter().flat_map(|p| [p.q05, p.q95]);
    let axis = Axis::default();
    let x = axis.scale(ends, left, right, 0.03);
    let mut scene = Scene::new(width, bottom + 26.0);
    ticks_below(&mut scene, &x, bottom, Some(top), 6);
    let zero = x.at(0.0);
    if zero > left && zero < right {
        let line = vec![(zero, top), (zero, bottom)];
        scene.line(line, Stroke::dashed(Tint::Soft.faint(0.8), 1.0));
    }
    for (i, (p, label)) in rows.iter().zip(&labels).enumerate() {
        let y = top + pitch * (i as f64 + 0.5);
        scene.text((left - 10.0, y + 4.0), NAME, Anchor::End, Tint::Ink, label);
        if [p.q05, p.q50, p.q95].iter().all(|q| axis.takes(*q)) {
            let whisker = vec![(x.at(p.q05), y), (x.at(p.q95), y)];
            scene.line(whisker, Stroke::solid(Tint::Series(0).faint(0.55), 2.0));
            scene.disc((x.at(p.q50), y), 4.0, Tint::Series(0));
            let decimals = text::decimals_for(p.spread());
            let [low, middle, high] = [p.q05, p.q50, p.q95].map(|q| text::fixed(q, decimals));
            let tip = format!("{}: median {middle}, 90 % between {low} and {high}", p.name);
            let row = ((0.0, top + pitch * i as f64), (width, pitch));
            scene.titled_rectangle(row.0, row.1, Tint::Ink.faint(0.0), &tip);
        }
    }
    scene
}

/// Draws the density of a parameter with its 90 % interval. If the draws have only a few integer values, draws bars.
pub(super) fn marginal(marginal: &Marginal) -> Scene {
    let (width, height) = (250.0, 150.0);
    let frame = Frame {
        left: 8.0,
        right: width - 8.0,
        top: 26.0,
        bottom: height - 22.0,
        axis: true,
    };
    let mut scene = Scene::new(width, height);
    let name = text::shorten(&marginal.name, 22);
    scene.text((frame.left, 15.0), NAME, Anchor::Start, Tint::Ink, &name);
    draw_density(&mut scene, &marginal.draws, &frame);
    let sorted = stats::sorted_finite(&marginal.draws);
    if let Some([low, middle, high]) = tip_quantiles(&sorted) {
        let tip = format!(
            "{}: median {middle}, 90 % between {low} and {high}",
            marginal.name
        );
        scene.titled_rectangle((0.0, 0.0), (width, height), Tint::Ink.faint(0.0), &tip);
    }
    scene
}

/// Formats the 5 % quantile, the median and the 95 % quantile for a tooltip. The difference between the two outer
/// quantiles determines the number of digits.
fn tip_quantiles(sorted: &[f64]) -> Option<[String; 3]> {
    if sorted.is_empty() {
        return None;
    }
    let quantiles = [0.05, 0.5, 0.95].map(|p| quantile(sorted, p));
    let decimals = text::decimals_for((quantiles[2] - quantiles[0]) / 3.3);
    Some(quantiles.map(|q| text::fixed(q, decimals)))
}

pub(super) fn sparkline(draws: &[f64]) -> Scene {
    let mut scene = Scene::new(110.0, 24.0);
    let frame = Frame {
        left: 1.0,
        right: 109.0,
        top: 2.0,
        bottom: 23.0,
        axis: false,
    };
    draw_density(&mut scene, draws, &frame);
    scene
}

struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    axis: bool,
}

impl Frame {
    fn say(&self, scene: &mut Scene, words: &str) {
        let middle = (
            (self.left + self.right) / 2.0,
            (self.top + self.bottom) / 2.0,
        );
        scene.text(middle, LABEL, Anchor::Middle, Tint::Soft, words);
    }
}

fn draw_density(scene: &mut Scene, draws: &[f64], frame: &Frame) {
    let sorted = stats::sorted_finite(draws);
    if sorted.is_empty() {
        return frame.say(scene, "no finite draws");
    }
    if let Some(bars) = stats::integer_counts(&sorted, 40).filter(|bars| bars.len() > 1) {
        return draw_bars(scene, &bars, frame);
    }
    // A long tail would compress the rest of the picture. The picture therefore shows only values within a few widths
    // of the interval.
    let (q05, q95) = stats::span(&sorted, (0.05, 0.95));
    let room = 1.2 * (q95 - q05);
    let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
    let (from, to) = (low.max(q05 - room), high.min(q95 + room));
    let curve = stats::density(&sorted, from, to, 120);
    if curve.is_empty() {
        if frame.axis {
            frame.say(scene, &format!("constant {}", text::number(low, 5)));
        }
        return;
    }
    let bottom = frame.bottom;
    let y = heights(&curve, frame);
    let x = Axis::default().scale([from, to].into_iter(), frame.left, frame.right, 0.0);
    let point = |(value, height): &(f64, f64)| (x.at(*value), y(*height));
    let inner = curve.iter().filter(|(v, _)| (q05..=q95).contains(v));
    let mut area: Vec<(f64, f64)> = inner.map(point).collect();
    if let (Some(first), Some(last)) = (area.first().copied(), area.last().copied()) {
        area.extend([(last.0, bottom), (first.0, bottom)]);
        scene.area(area, Tint::Series(0).faint(0.14));
    }
    if frame.axis {
        ticks_below(scene, &x, bottom, None, 5);
        let middle = quantile(&sorted, 0.5);
        let height = curve
            .iter()
            .min_by(|a, b| (a.0 - middle).abs().total_cmp(&(b.0 - middle).abs()))
            .map_or(0.0, |c| c.1);
        let median = vec![(x.at(middle), bottom), (x.at(middle), y(height))];
        scene.line(median, Stroke::solid(Tint::Series(0).faint(0.8), 1.2));
    }
    let line = curve.iter().map(point).collect();
    scene.line(line, Stroke::solid(Tint::Series(0), 1.4));
}

fn heights(shape: &[(f64, f64)], frame: &Frame) -> impl Fn(f64) -> f64 + use<> {
    // If all of the mass lies between two points of the curve, the curve is flat.
    let peak = shape
        .iter()
        .map(|(_, h)| *h)
        .fold(f64::MIN_POSITIVE, f64::max);
    let (bottom, top) = (frame.bottom, frame.top);
    // The division leaves a little space above the highest point.
    move |height| bottom + (top - bottom) * (height / (peak * 1.04)).clamp(0.0, 1.0)
}

fn draw_bars(scene: &mut Scene, bars: &[(f64, f64)], frame: &Frame) {
    let (low, high) = (bars[0].0 - 0.6, bars[bars.len() - 1].0 + 0.6);
    let axis = Axis::default().whole();
    let x = axis.scale([low, high].into_iter(), frame.left, frame.right, 0.0);
    let y = heights(bars, frame);
    let half = 0.4 * (x.at(low + 1.0) - x.at(low));
    for (value, share) in bars {
        let (corner, height) = ((x.at(*value) - half, y(*share)), frame.bottom - y(*share));
        scene.rectangle(corner, (2.0 * half, height), Tint::Series(0).faint(0.6));
    }
    if frame.axis {
        ticks_below(scene, &x, frame.bottom, None, 6);
    }
}

/// Draws the correlations between parameters as a triangle of coloured cells. Each name on the diagonal belongs to the
/// row on its left and to the column below it.
pub(super) fn correlations(names: &[&str], correlations: &[Vec<Option<f64>>]) -> Scene {
    let n = names.len();
    let labels: Vec<String> = names.iter().map(|name| text::shorten(name, 18)).collect();
    let (left, width) = (8.0, 520.0);
    let cell = ((width - left - 14.0 - longest(&labels)) / (n - 1) as f64).min(46.0);
    let side = cell - 1.5;
    let mut scene = Scene::new(width, 16.0 + cell * n as f64);
    for (i, row) in correlations.iter().enumerate() {
        let y = 8.0 + cell * i as f64;
        for (j, r) in row.iter().enumerate() {
            let x = left + cell * j as f64;
            let value = r.map_or("none".to_string(), |r| text::fixed(r, 2));
            let tip = format!("{} and {}: {value}", names[i], names[j]);
            scene.titled_rectangle((x, y), (side, side), Tint::Grid, &tip);
            let Some(r) = r else { continue };
            // The colours are faint, so that text on them is legible on both light and dark backgrounds.
            let colour = Tint::Series(usize::from(*r < 0.0)).faint(0.44 * r.abs());
            scene.titled_rectangle((x, y), (side, side), colour, &tip);
            if cell >= 24.0 {
                let digits = usize::from(cell >= 34.0) + 1;
                let at = (x + cell / 2.0 - 0.75, y + cell / 2.0 + 3.0);
                scene.text(
                    at,
                    LABEL,
                    Anchor::Middle,
                    Tint::Ink,
                    &text::fixed(*r, digits),
                );
            }
        }
        let at = (left + cell * i as f64 + 5.0, y + cell / 2.0 + 4.0);
        scene.text(at, NAME, Anchor::Start, Tint::Ink, &labels[i]);
    }
    scene
}
