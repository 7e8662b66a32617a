//! The section on importance weights. The section shows the value of k̂ and the weights in decreasing order.

use std::fmt::Write;

use crate::figure::{Anchor, Axis, Chart, Scene, Series, Stroke, Tint};
use crate::model::{Khat, Weights};
use crate::page::{Page, WIDE};
use crate::stats;
use crate::text;

pub(crate) fn put(page: &mut Page, weights: &Weights) {
    let relative = stats::relative_weights(&weights.log_weights);
    if weights.khat.is_none() && relative.len() < 2 {
        return;
    }
    match weights.refined {
        false => page.heading(
            "Can the draws be trusted?",
            "The weights p/q compare the posterior with the approximation draw by draw. A few large weights \
             among many small ones mean that the approximation misses a part of the posterior.",
        ),
        true => page.heading(
            "How close is the approximation alone?",
            "The draws and summaries of this page are refined draws of the posterior, and the verdict is about \
             them. The weights p/q compare the posterior with the approximation from which the refinement \
             started.",
        ),
    }
    page.push("<div class=\"pair\">");
    if let Some(khat) = weights.khat {
        page.scene(
            "Pareto k̂ of the importance weights p/q",
            &format!("Pareto k-hat {}", text::number(khat.value, 3)),
            &gauge(khat),
            match weights.refined {
                false => meaning(khat),
                true => beginning(khat),
            },
        );
    }
    if relative.len() >= 2 {
        let n = relative.len() as f64;
        let squares: f64 = relative.iter().map(|w| w * w).sum();
        let dropped = weights.log_weights.len() - relative.len();
        let mut caption = format!(
            "Orange: the tail behind k̂. The largest weight has {} % of the total; the effective sample size \
             of the weights is {} of {} draws.",
            text::number(100.0 * relative[0] / n, 2),
            text::number(n * n / squares, 3),
            text::number(n, 6)
        );
        if dropped > 0 {
            let _ = write!(
                caption,
                " {dropped} draws without a finite weight are omitted."
            );
        }
        page.chart(
            "Importance weights, largest first",
            "Importance weights in decreasing order",
            decreasing(&relative),
            &caption,
        );
    }
    page.push("</div>\n");
}

/// Explains a value of k̂ according to Vehtari, Simpson, Gelman, Yao and Gabry, JMLR 25(72), 2024.
fn meaning(khat: Khat) -> &'static str {
    match khat.value {
        k if k.is_nan() => "It could not be estimated from these draws.",
        k if k > 1.0 => {
            "The importance weights have no mean: the approximation misses a part of the posterior, and more \
             draws do not help. Choose a richer family or rewrite the model."
        }
        k if k > khat.threshold => {
            "Some draws have very large weights, so estimates converge slowly and their errors are \
             understated. A richer family, a longer run or another parameterisation may help. A mean-field \
             family cannot represent strong correlations, so a longer run of it does not help."
        }
        k if k > 0.5 => {
            "The weights have a mean but no variance: weighted estimates are usable, with a larger error than \
             the number of draws suggests."
        }
        _ => "The weights have a finite variance: the approximation covers the posterior well.",
    }
}

fn beginning(khat: Khat) -> &'static str {
    match khat.value {
        k if k.is_nan() => "It could not be estimated from these draws.",
        k if k > khat.threshold => {
            "The approximation alone was not good enough, so Jensen refined its draws."
        }
        _ => "The approximation alone was usable.",
    }
}

fn gauge(khat: Khat) -> Scene {
    let (width, most) = (520.0, 1.2);
    let (top, thick) = (32.0, 14.0);
    let x = Axis::default().scale([0.0, most].into_iter(), 12.0, width - 12.0, 0.0);
    let mut scene = Scene::new(width, 92.0);
    let threshold = match khat.threshold.is_finite() {
        true => khat.threshold.clamp(0.0, 1.0),
        false => 0.7,
    };
    for (tint, from, to, meaning) in [
        (Tint::Good, 0.0, threshold, "trusted"),
        (Tint::Fair, threshold, 1.0, "slow and biased"),
        (Tint::Poor, 1.0, most, "no mean"),
    ] {
        let (from, to) = (x.at(from), x.at(to));
        scene.rectangle((from, top), (to - from, thick), tint.faint(0.55));
        let at = ((from + to) / 2.0, top + thick + 35.0);
        scene.text(at, 11.0, Anchor::Middle, Tint::Soft, meaning);
    }
    for value in [0.0, 0.5, threshold, 1.0] {
        let (at, below) = (x.at(value), top + thick);
        let tick = vec![(at, below), (at, below + 4.0)];
        scene.line(tick, Stroke::solid(Tint::Soft, 1.0));
        let label = text::number(value, 2);
        scene.text((at, below + 17.0), 11.0, Anchor::Middle, Tint::Soft, &label);
    }
    if !khat.value.is_nan() {
        let at = x.at(khat.value.clamp(0.0, most));
        let corners = vec![
            (at, top + thick / 2.0),
            (at - 6.5, top - 6.0),
            (at + 6.5, top - 6.0),
        ];
        scene.area(corners, Tint::Ink);
        let anchor = match at {
            at if at > width - 50.0 => Anchor::End,
            at if at < 50.0 => Anchor::Start,
            _ => Anchor::Middle,
        };
        let label = format!("k̂ = {}", text::fixed(khat.value, 2));
        scene.text((at, top - 13.0), 13.0, anchor, Tint::Ink, &label);
    }
    scene
}

/// Plots the weights in decreasing order, relative to their mean, on logarithmic axes. The tail that determines k̂ is
/// highlighted.
fn decreasing(weights: &[f64]) -> Chart {
    let n = weights.len() as f64;
    // Weights that have underflowed to zero have no position on a logarithmic axis.
    let largest = weights[0];
    let smallest = weights
        .iter()
        .rev()
        .copied()
        .find(|w| *w > largest * 1e-8)
        .unwrap_or(largest);
    // The weights in the tail, to which the Pareto distribution is fitted (Vehtari et al. 2024).
    let tail = (0.2 * n).min(3.0 * n.sqrt()).ceil() as usize;
    // Points for large ranks are close together on a logarithmic axis. One point for each half of a pixel is enough.
    let step = 0.5 * n.ln() / WIDE.0;
    let mut last = f64::NEG_INFINITY;
    let (mut within, mut beyond) = (Vec::new(), Vec::new());
    for (i, weight) in weights.iter().enumerate().filter(|(_, w)| **w >= smallest) {
        let rank = (i + 1) as f64;
        if rank.ln() - last < step {
            continue;
        }
        last = rank.ln();
        let part = if i < tail { &mut within } else { &mut beyond };
        part.push((rank, *weight));
    }
    let points = |points, colour| {
        Series::scatter("", points)
            .colour(colour)
            .width(1.9)
            .opacity(0.55)
    };
    let average = Series::line("average weight", [(1.0, 1.0), (n, 1.0)]);
    Chart::new("")
        .x(Axis::new("rank of the draw").log())
        .y(Axis::new("weight")
            .log()
            .range((smallest * 0.7).min(0.5), (largest * 1.4).max(2.0)))
        .sized(WIDE.0, WIDE.1)
        .series(average.dashed().colour(6).width(1.0))
        .series(points(within, 1))
        .series(points(beyond, 0))
}
