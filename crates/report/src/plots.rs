//! The plots of the report.

use crate::model::{Khat, Marginal, Parameter, Stage, TracePoint};
use crate::stats;
use crate::svg::{Scale, Svg};
use crate::text;
use jensen_math::order::quantile;

/// Points drawn of one stage; more cannot be told apart at this size.
const TRACE_POINTS: usize = 500;

/// Points drawn of a scatter plot or of the sorted weights.
const SCATTER_POINTS: usize = 400;

/// Series colours repeat after this many stages.
const SERIES: usize = 4;

/// The stages on one iteration axis. A stage that counts from its own start is moved behind its predecessor.
pub(crate) fn lay_out(stages: &[Stage]) -> Vec<(&str, Vec<TracePoint>)> {
    let mut end = 0;
    let mut laid = Vec::new();
    for stage in stages {
        let first = stage.points.first().map_or(0, |p| p.iteration);
        let offset = if first < end { end } else { 0 };
        let points: Vec<TracePoint> = stage
            .points
            .iter()
            .map(|p| TracePoint {
                iteration: p.iteration.saturating_add(offset),
                ..*p
            })
            .filter(|p| p.elbo.is_finite())
            .collect();
        end = points.last().map_or(end, |p| p.iteration.max(end));
        if !points.is_empty() {
            laid.push((stage.name.as_str(), points));
        }
    }
    laid
}

/// The bound along the run; `tail` shows the second half of the last stage, scaled to what happens there.
pub(crate) fn elbo_trace(stages: &[(&str, Vec<TracePoint>)], tail: bool) -> String {
    let (width, height) = (520.0, 280.0);
    let (left, right, top, bottom) = (72.0, width - 20.0, 14.0, height - 42.0);
    let tail_start;
    let shown: Vec<(usize, &[TracePoint])> = if tail {
        let Some((index, (_, points))) = stages.iter().enumerate().next_back() else {
            return String::new();
        };
        tail_start = points.len() / 2;
        vec![(index, &points[tail_start..])]
    } else {
        stages
            .iter()
            .enumerate()
            .map(|(i, (_, p))| (i, &p[..]))
            .collect()
    };
    let all: Vec<&TracePoint> = shown.iter().flat_map(|(_, p)| p.iter()).collect();
    let (Some(first), Some(last)) = (all.first(), all.last()) else {
        return String::new();
    };

    let spread = |p: &TracePoint| if p.se.is_finite() { 2.0 * p.se } else { 0.0 };
    let lows = stats::sorted_finite(&all.iter().map(|p| p.elbo - spread(p)).collect::<Vec<_>>());
    let highs = stats::sorted_finite(&all.iter().map(|p| p.elbo + spread(p)).collect::<Vec<_>>());
    let (Some(low), Some(high)) = (lows.first(), highs.last()) else {
        return String::new();
    };
    let margin = 0.05 * (high - low);
    let x = Scale::linear(first.iteration as f64, last.iteration as f64, left, right);
    let y = Scale::linear(low - margin, high + margin, bottom, top);

    let what = if tail {
        "second half of the last stage"
    } else {
        "whole run"
    };
    let mut svg = Svg::new(
        width,
        height,
        &format!("Evidence lower bound by iteration, {what}"),
    );
    svg.axis_x(&x, bottom, top, 6, "iteration");
    svg.axis_y(&y, left, right, 6);
    for (k, (index, points)) in shown.iter().enumerate() {
        let series = index % SERIES;
        let points = thin(points, TRACE_POINTS);
        if k > 0 {
            let start = x.at(points[0].iteration as f64);
            svg.line("divider", (start, top), (start, bottom));
        }
        let place = |p: &TracePoint, elbo: f64| (x.at(p.iteration as f64), y.at(elbo));
        if points.iter().any(|p| spread(p) > 0.0) {
            let upper = points.iter().map(|p| place(p, p.elbo + spread(p)));
            let lower = points.iter().rev().map(|p| place(p, p.elbo - spread(p)));
            svg.path(&format!("band s{series}"), upper.chain(lower), true);
        }
        svg.path(
            &format!("curve s{series}"),
            points.iter().map(|p| place(p, p.elbo)),
            false,
        );
        if let Some(p) = points.last() {
            svg.circle(&format!("dot s{series}"), place(p, p.elbo), 3.0);
        }
    }
    svg.finish()
}

/// At most about `limit` of the points, evenly spaced, the last one among them.
fn thin<T: Copy>(points: &[T], limit: usize) -> Vec<T> {
    let step = points.len().div_ceil(limit).max(1);
    let skip = (points.len().max(1) - 1) % step;
    points.iter().skip(skip).step_by(step).copied().collect()
}

/// Where k̂ stands between trusted and useless.
pub(crate) fn khat_gauge(khat: Khat) -> String {
    let (width, height) = (520.0, 92.0);
    let x = Scale::linear(0.0, 1.2, 12.0, width - 12.0);
    let mut svg = Svg::new(
        width,
        height,
        &format!("Pareto k-hat {}", text::number(khat.value, 3)),
    );
    let (top, thick) = (32.0, 14.0);
    let threshold = if khat.threshold.is_finite() {
        khat.threshold.clamp(0.0, 1.0)
    } else {
        0.7
    };
    for (class, from, to, meaning) in [
        ("zone good", 0.0, threshold, "trusted"),
        ("zone fair", threshold, 1.0, "slow and biased"),
        ("zone poor", 1.0, 1.2, "no mean"),
    ] {
        svg.rect(class, (x.at(from), top), x.at(to) - x.at(from), thick);
        let middle = (x.at(from) + x.at(to)) / 2.0;
        svg.text("tick mid", (middle, top + thick + 35.0), meaning);
    }
    for value in [0.0, 0.5, threshold, 1.0] {
        svg.line(
            "axis",
            (x.at(value), top + thick),
            (x.at(value), top + thick + 4.0),
        );
        svg.text(
            "tick mid",
            (x.at(value), top + thick + 17.0),
            &text::number(value, 2),
        );
    }
    if !khat.value.is_nan() {
        let at = x.at(khat.value);
        let corners = [
            (at, top + thick / 2.0),
            (at - 6.5, top - 6.0),
            (at + 6.5, top - 6.0),
        ];
        svg.path("marker", corners, true);
        let class = match at {
            at if at > width - 50.0 => "label strong end",
            at if at < 50.0 => "label strong start",
            _ => "label strong mid",
        };
        svg.text(
            class,
            (at, top - 13.0),
            &format!("k̂ = {}", text::fixed(khat.value, 2)),
        );
    }
    svg.finish()
}

/// Importance weights in decreasing order on logarithmic axes; the tail behind k̂ stands out.
pub(crate) fn weight_tail(weights: &[f64]) -> String {
    let (width, height) = (520.0, 280.0);
    let (left, right, top, bottom) = (60.0, width - 22.0, 14.0, height - 42.0);
    let n = weights.len();
    // Weights that underflowed have no place on a logarithmic axis.
    let largest = weights[0];
    let smallest = weights
        .iter()
        .rev()
        .copied()
        .find(|w| *w > largest * 1e-8)
        .unwrap_or(largest);
    let x = Scale::log(1.0, n.max(2) as f64, left, right);
    let y = Scale::log(
        (smallest * 0.7).min(0.5),
        (largest * 1.4).max(2.0),
        bottom,
        top,
    );
    let mut svg = Svg::new(width, height, "Importance weights in decreasing order");
    svg.axis_x(&x, bottom, top, 6, "rank of the draw");
    svg.axis_y(&y, left, right, 6);
    svg.line("divider", (left, y.at(1.0)), (right, y.at(1.0)));
    svg.text(
        "tick start",
        (left + 6.0, y.at(1.0) + 14.0),
        "average weight",
    );
    // The tail to which the Pareto distribution is fitted: Vehtari et al. (2024).
    let tail = (0.2 * n as f64).min(3.0 * (n as f64).sqrt()).ceil() as usize;
    let mut last = f64::NEG_INFINITY;
    for (rank, weight) in weights.iter().enumerate().filter(|(_, w)| **w >= smallest) {
        let at = (x.at((rank + 1) as f64), y.at(*weight));
        // Ranks crowd on a logarithmic axis; one point every half pixel is enough.
        if at.0 - last < 0.5 {
            continue;
        }
        last = at.0;
        svg.circle(if rank < tail { "point s1" } else { "point s0" }, at, 2.4);
    }
    svg.finish()
}

/// Medians and 90 % intervals of the elements of one variable on a common axis.
pub(crate) fn forest(rows: &[&Parameter], name: &str) -> String {
    let (width, pitch) = (520.0, 19.0);
    let labels: Vec<String> = rows.iter().map(|p| text::shorten(&p.name, 24)).collect();
    let longest = labels.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    let (left, right, top) = (24.0 + 6.8 * longest as f64, width - 14.0, 10.0);
    let bottom = top + pitch * rows.len() as f64;
    let ends: Vec<f64> = rows.iter().flat_map(|p| [p.q05, p.q95]).collect();
    let sorted = stats::sorted_finite(&ends);
    let (Some(low), Some(high)) = (sorted.first(), sorted.last()) else {
        return String::new();
    };
    let margin = 0.03 * (high - low);
    let x = Scale::linear(low - margin, high + margin, left, right);
    let mut svg = Svg::new(
        width,
        bottom + 26.0,
        &format!("Medians and 90 % intervals of the elements of {name}"),
    );
    svg.axis_x(&x, bottom, top, 6, "");
    if *low < 0.0 && *high > 0.0 {
        svg.line("divider", (x.at(0.0), top), (x.at(0.0), bottom));
    }
    for (i, (p, label)) in rows.iter().zip(&labels).enumerate() {
        let y = top + pitch * (i as f64 + 0.5);
        svg.text("name end", (left - 10.0, y + 4.0), label);
        if [p.q05, p.q50, p.q95].iter().all(|q| q.is_finite()) {
            svg.line("whisker", (x.at(p.q05), y), (x.at(p.q95), y));
            svg.circle("dot s0", (x.at(p.q50), y), 4.0);
        }
    }
    svg.finish()
}

/// The density of a marginal with its 90 % interval, or bars for a variable with few integer values.
pub(crate) fn marginal(marginal: &Marginal) -> String {
    let (width, height) = (250.0, 150.0);
    let (left, right, top, bottom) = (8.0, width - 8.0, 26.0, height - 22.0);
    let mut svg = Svg::new(
        width,
        height,
        &format!("Marginal distribution of {}", marginal.name),
    );
    svg.text(
        "name start",
        (left, 15.0),
        &text::shorten(&marginal.name, 22),
    );
    draw_density(&mut svg, &marginal.draws, (left, right, top, bottom), true);
    svg.finish()
}

/// The shape of a marginal in a table cell.
pub(crate) fn sparkline(draws: &[f64], name: &str) -> String {
    let mut svg = Svg::new(110.0, 24.0, &format!("Shape of the marginal of {name}"));
    draw_density(&mut svg, draws, (1.0, 109.0, 2.0, 23.0), false);
    svg.finish()
}

fn draw_density(svg: &mut Svg, draws: &[f64], frame: (f64, f64, f64, f64), axis: bool) {
    let (left, right, top, bottom) = frame;
    let sorted = stats::sorted_finite(draws);
    if sorted.is_empty() {
        svg.text(
            "tick mid",
            ((left + right) / 2.0, (top + bottom) / 2.0),
            "no finite draws",
        );
        return;
    }
    let (q05, q50, q95) = (
        quantile(&sorted, 0.05),
        quantile(&sorted, 0.5),
        quantile(&sorted, 0.95),
    );
    // A long tail must not squeeze the rest: show what lies within a few interval widths.
    let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
    let (from, to) = (
        low.max(q05 - 1.2 * (q95 - q05)),
        high.min(q95 + 1.2 * (q95 - q05)),
    );
    let bars = stats::integer_counts(&sorted, 40).filter(|b| b.len() > 1);
    let curve = if bars.is_none() {
        stats::density(&sorted, from, to, 120)
    } else {
        Vec::new()
    };
    if curve.is_empty() && bars.is_none() {
        if axis {
            svg.text(
                "tick mid",
                ((left + right) / 2.0, (top + bottom) / 2.0),
                &format!("constant {}", text::number(low, 5)),
            );
        }
        return;
    }
    let heights = bars.as_deref().unwrap_or(&curve);
    let peak = heights.iter().map(|(_, h)| *h).fold(0.0, f64::max);
    let y = Scale::linear(0.0, peak * 1.04, bottom, top);
    if let Some(bars) = &bars {
        let x = Scale::linear(low - 0.6, high + 0.6, left, right);
        let half = 0.4 * (x.at(low + 1.0) - x.at(low));
        for (value, share) in bars {
            svg.rect(
                "bar",
                (x.at(*value) - half, y.at(*share)),
                2.0 * half,
                bottom - y.at(*share),
            );
        }
        if axis {
            svg.axis_x(&x.whole(), bottom, bottom, 6, "");
        }
        return;
    }
    let x = Scale::linear(from, to, left, right);
    let inner: Vec<(f64, f64)> = curve
        .iter()
        .copied()
        .filter(|(v, _)| (q05..=q95).contains(v))
        .collect();
    if let (Some(first), Some(last)) = (inner.first(), inner.last()) {
        let ends = [(x.at(last.0), bottom), (x.at(first.0), bottom)];
        svg.path(
            "fill",
            inner.iter().map(|(v, h)| (x.at(*v), y.at(*h))).chain(ends),
            true,
        );
    }
    if axis {
        svg.axis_x(&x, bottom, bottom, 5, "");
        let height = curve
            .iter()
            .min_by(|a, b| (a.0 - q50).abs().total_cmp(&(b.0 - q50).abs()))
            .map_or(0.0, |c| c.1);
        svg.line("median", (x.at(q50), bottom), (x.at(q50), y.at(height)));
    }
    svg.path(
        "curve s0 thin",
        curve.iter().map(|(v, h)| (x.at(*v), y.at(*h))),
        false,
    );
}

/// Correlations of the marginals as a triangle of coloured cells. A name on the diagonal ends its row and heads its column.
pub(crate) fn correlation_map(names: &[&str], correlations: &[Vec<Option<f64>>]) -> String {
    let n = names.len();
    let labels: Vec<String> = names.iter().map(|name| text::shorten(name, 18)).collect();
    let longest = labels.iter().map(|l| l.chars().count()).max().unwrap_or(0) as f64;
    let (left, width) = (8.0, 520.0);
    let cell = ((width - left - 14.0 - 7.0 * longest) / (n - 1) as f64).min(46.0);
    let mut svg = Svg::new(
        width,
        16.0 + cell * n as f64,
        "Correlations between the draws of parameters",
    );
    for (i, row) in correlations.iter().enumerate() {
        let y = 8.0 + cell * i as f64;
        for (j, r) in row.iter().enumerate() {
            let x = left + cell * j as f64;
            let value = r.map_or("none".to_string(), |r| text::fixed(r, 2));
            let tip = format!("{} and {}: {value}", names[i], names[j]);
            svg.cell("cell none", (x, y), cell - 1.5, 1.0, &tip);
            let Some(r) = r else { continue };
            let class = if *r < 0.0 { "cell minus" } else { "cell plus" };
            svg.cell(class, (x, y), cell - 1.5, r.abs(), &tip);
            if cell >= 24.0 {
                let class = if r.abs() > 0.5 {
                    "value mid inverse"
                } else {
                    "value mid"
                };
                let digits = usize::from(cell >= 34.0) + 1;
                let at = (x + cell / 2.0 - 0.75, y + cell / 2.0 + 3.0);
                svg.text(class, at, &text::fixed(*r, digits));
            }
        }
        let x = left + cell * i as f64;
        svg.text("name start", (x + 5.0, y + cell / 2.0 + 4.0), &labels[i]);
    }
    svg.finish()
}

/// Draws of two parameters against each other.
pub(crate) fn scatter(a: &Marginal, b: &Marginal) -> String {
    let (width, height) = (250.0, 230.0);
    let (left, right, top, bottom) = (52.0, width - 10.0, 10.0, height - 40.0);
    let pairs: Vec<(f64, f64)> = (a.draws.iter().copied().zip(b.draws.iter().copied()))
        .filter(|(x, y)| x.is_finite() && y.is_finite())
        .collect();
    let range = |values: Vec<f64>| {
        let sorted = stats::sorted_finite(&values);
        let (low, high) = (quantile(&sorted, 0.002), quantile(&sorted, 0.998));
        (low - 0.03 * (high - low), high + 0.03 * (high - low))
    };
    let (x0, x1) = range(pairs.iter().map(|p| p.0).collect());
    let (y0, y1) = range(pairs.iter().map(|p| p.1).collect());
    let x = Scale::linear(x0, x1, left, right);
    let y = Scale::linear(y0, y1, bottom, top);
    let mut svg = Svg::new(
        width,
        height,
        &format!("Draws of {} against {}", b.name, a.name),
    );
    svg.axis_x(&x, bottom, top, 4, &text::shorten(&a.name, 26));
    svg.axis_y(&y, left, right, 4);
    for (u, v) in thin(&pairs, SCATTER_POINTS) {
        svg.circle("point s0", (x.at(u), y.at(v)), 1.8);
    }
    svg.text(
        "label start",
        (left + 4.0, top + 10.0),
        &text::shorten(&b.name, 26),
    );
    svg.finish()
}
