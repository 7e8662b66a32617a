//! Writes every kind of panel to `figures.svg` and `figures.png` in the given folder.

use std::path::Path;

use jensen_report::figure::{Axis, Chart, Figure, HeatMap, Image, ImageGrid, Series};

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let gap = |run: u32, rate: f64| {
        (0..60).map(move |k| {
            let calls = 1.2f64.powi(k + 10);
            let wobble = (f64::from(k * 7 + 3 * k.rem_euclid(5)) + f64::from(run)).sin();
            (
                calls,
                3000.0 * calls.powf(-rate) * (0.15 * wobble).exp() + 0.01,
            )
        })
    };
    let mut paths = Chart::new("Optimisation paths")
        .x(Axis::new("oracle calls").log())
        .y(Axis::new("gap to the best bound (nats)").log());
    for run in 0..3 {
        let (slow, fast) = (gap(run, 0.8), gap(run, 1.6));
        paths = paths
            .series(Series::line("ADVI", slow).colour(0).width(1.2))
            .series(Series::line("TrustVI", fast).colour(1).width(1.2))
    }
    let mean = (0..40).map(|k| (f64::from(k) * 0.25, (f64::from(k) * 0.3).sin() * 1e5));
    let ends = (0..40).map(|k| {
        let (middle, half) = ((f64::from(k) * 0.3).sin() * 1e5, 2e4 + 500.0 * f64::from(k));
        (middle - half, middle + half)
    });
    let band = Chart::new("A band, points, a range")
        .x(Axis::new("time"))
        .y(Axis::new("σ² ± 2 sd").range(-1e5, 1.2e5))
        .series(Series::line("mean", mean).band(ends))
        .series(
            Series::scatter(
                "data",
                (0..30).map(|k| (f64::from(k) / 3.0, f64::from(k * k % 17) * 1e4)),
            )
            .colour(3),
        )
        .series(
            Series::line("prior", [(0.0, -2e4), (10.0, 6e4)])
                .dashed()
                .marked()
                .colour(2),
        );
    let size = 60;
    let surface = (0..size * size).map(|k| {
        let (x, y) = (
            (k % size) as f64 / 10.0 - 3.0,
            (k / size) as f64 / 10.0 - 3.0,
        );
        let bump = |a: f64, b: f64| (-(x - a).powi(2) - (y - b).powi(2)).exp();
        bump(-1.0, -1.0) + 0.7 * bump(1.0, 1.2)
    });
    let heat = HeatMap::new(
        "Two modes",
        (-3.0, 3.0),
        (0.01, 100.0),
        size,
        surface.collect(),
    )
    .x(Axis::new("μ₁"))
    .y(Axis::new("τ").log())
    .value(Axis::new("density"))
    .contours([0.1, 0.3, 0.5, 0.7])
    .overlay(
        Series::line("", [(-1.0, 0.3), (1.0, 5.0)])
            .colour(1)
            .marked(),
    );
    let mut images = ImageGrid::new("Images", 5);
    for k in 0..9 {
        let shades = (0..256).map(|p| {
            let (x, y) = ((p % 16) as f64 - 8.0, (p / 16) as f64 - 8.0);
            0.5 + 0.5 * ((x * x + y * y).sqrt() - f64::from(k)).cos()
        });
        images = images.captioned(Image::grey(16, 16, shades).unwrap(), format!("k = {k}"));
    }
    let figure = Figure::new("Every kind of panel")
        .panel(paths)
        .panel(band)
        .panel(heat)
        .panel(images)
        .columns(2);
    std::fs::write(Path::new(&folder).join("figures.svg"), figure.to_svg())?;
    std::fs::write(Path::new(&folder).join("figures.png"), figure.to_png())
}
