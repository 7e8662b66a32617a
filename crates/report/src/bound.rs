//! The section that shows the ELBO during the run.

use crate::figure::{Axis, Chart, Series};
use crate::model::{Stage, TracePoint};
use crate::page::{Page, WIDE};
use crate::stats;
use crate::text::{self, escape};

/// The number of points that the figure shows for one stage. The figure is too small to distinguish more points.
const POINTS: usize = 500;

type Laid<'a> = (&'a str, Vec<TracePoint>);

pub(crate) fn put(page: &mut Page, stages: &[Stage]) {
    let stages = lay_out(stages);
    let Some((_, last)) = stages.last() else {
        return;
    };
    page.heading(
        "The bound along the run",
        "Each estimate of the evidence lower bound with a band of two Monte Carlo standard errors. The right \
         end of a converged run is flat, up to the width of the band.",
    );
    page.push("<div class=\"pair\">");
    let (floor, below) = start_below(&stages);
    let caption = match below {
        0 => String::new(),
        1 => "One estimate at the start is below the figure.".to_owned(),
        n => format!("{n} estimates at the start are below the figure."),
    };
    page.chart(
        "Whole run",
        "Evidence lower bound by iteration, whole run",
        whole(&stages, floor),
        &caption,
    );
    if last.len() >= 4 {
        page.chart(
            "Second half of the last stage",
            "Evidence lower bound by iteration, second half of the last stage",
            second_half(&stages),
            "",
        );
    }
    page.push("</div>\n");
    if stages.len() > 1 {
        page.push("<ul class=\"legend\">");
        for (i, (name, points)) in stages.iter().enumerate() {
            let Some(last) = points.last() else { continue };
            let decimals = text::decimals_for(last.se).saturating_sub(1).min(2);
            page.put(format_args!(
                "<li><span style=\"{}\"></span>{}: {} after {}</li>",
                Page::ground(i),
                escape(name),
                text::fixed(last.elbo, decimals),
                text::duration(last.seconds)
            ));
        }
        page.push("</ul>\n");
    }
}

/// Arranges all stages on a common iteration axis. If a stage counts its iterations from 0, it is moved to the end of
/// the preceding stage.
fn lay_out(stages: &[Stage]) -> Vec<Laid<'_>> {
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

/// Returns the lower end of the vertical axis for a plot of the whole run. Also returns the number of estimates that
/// are below this end. The lower end is chosen so that a steep start does not make the rest of the curve look flat.
fn start_below(stages: &[Laid<'_>]) -> (f64, usize) {
    // The end of every stage must be visible, and so must the whole of the last stage.
    let best = stages.iter().map(|(_, points)| {
        points
            .iter()
            .fold(f64::NEG_INFINITY, |best, p| best.max(p.elbo))
    });
    let last = stages.last().into_iter();
    let late = last.flat_map(|(_, points)| points[points.len() / 2..].iter().map(|p| p.elbo));
    let (low, high) = best
        .chain(late)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), elbo| {
            (low.min(elbo), high.max(elbo))
        });
    // A difference of one nat is important even if the noise at the end of the run is much smaller.
    let floor = low - 10.0 * (high - low).max(1.0);
    let all = stages.iter().flat_map(|(_, points)| points);
    let below = all.filter(|p| p.elbo < floor).count();
    match below {
        0 => (f64::NEG_INFINITY, 0),
        below => (floor, below),
    }
}

fn whole(stages: &[Laid<'_>], floor: f64) -> Chart {
    let shown = stages.iter().enumerate().map(|(i, (_, p))| (i, &p[..]));
    chart(&shown.collect::<Vec<_>>(), floor)
}

fn second_half(stages: &[Laid<'_>]) -> Chart {
    let last = stages.iter().enumerate().next_back();
    let shown = last.map(|(i, (_, points))| (i, &points[points.len() / 2..]));
    chart(&shown.into_iter().collect::<Vec<_>>(), f64::NEG_INFINITY)
}

/// Plots the parts of the run that are above `floor`. Each part is given with the index of its stage. Dashed lines
/// separate the stages.
fn chart(shown: &[(usize, &[TracePoint])], floor: f64) -> Chart {
    let spread = |p: &TracePoint| if p.se.is_finite() { 2.0 * p.se } else { 0.0 };
    let ends = |p: &TracePoint| (p.elbo - spread(p), p.elbo + spread(p));
    let all = shown.iter().flat_map(|(_, points)| points.iter());
    let heights: Vec<f64> = all.map(ends).flat_map(|(low, high)| [low, high]).collect();
    let heights = stats::sorted_finite(&heights);
    let (low, high) = match heights[..] {
        [] => (0.0, 0.0),
        [first, .., last] => (first, last),
        [only] => (only, only),
    };
    let low = low.max(floor);
    let margin = 0.05 * (high - low);
    let (low, high) = (low - margin, high + margin);
    let mut chart = Chart::new("")
        .x(Axis::new("iteration"))
        .y(Axis::new("nats").range(low, high))
        .sized(WIDE.0, WIDE.1);
    for (k, (stage, points)) in shown.iter().enumerate() {
        let points = stats::thin(points, POINTS);
        let line_points: Vec<(f64, f64)> = points
            .iter()
            .map(|p| (p.iteration as f64, p.elbo))
            .collect();
        if let Some(start) = line_points.first().filter(|_| k > 0) {
            let divider = Series::line("", [(start.0, low), (start.0, high)]);
            chart = chart.series(divider.dashed().colour(6).width(1.0).opacity(0.6));
        }
        let end = line_points.last().copied();
        let line = Series::line("", line_points).colour(*stage);
        let line = match points.iter().any(|p| spread(p) > 0.0) {
            true => line.band(points.iter().map(ends)),
            false => line,
        };
        chart = chart
            .series(line)
            .series(Series::scatter("", end).colour(*stage).width(2.4));
    }
    chart
}
