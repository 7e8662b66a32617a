//! Fits intensities to simulated point patterns.

use jensen::data::{Cells, Column, Table};
use jensen::latent::{
    Intensity, LatentRequest, Location, PointPattern, PointsSummary, fit_points, intensity_table,
};
use jensen::math::rng::{Purpose, Stream};
use jensen::math::special::inv_phi;

use crate::common::alone;

/// A polygon of area 5400 in the rectangle from (0, 0) to (100, 60): a corner is missing.
const WINDOW: [Location; 5] = [
    [0.0, 0.0],
    [100.0, 0.0],
    [100.0, 36.0],
    [50.0, 60.0],
    [0.0, 60.0],
];

fn table(names: [&str; 2], at: &[Location]) -> Table {
    let column = |k: usize| {
        let numbers = at.iter().map(|p| p[k]).collect();
        Column::new(names[k], Cells::Numbers(numbers))
    };
    Table::new("test", vec![column(0), column(1)]).unwrap()
}

/// Points of a process with this intensity, by thinning.
fn simulated(seed: u64, most: f64, intensity: impl Fn(Location) -> f64) -> Vec<Location> {
    let mut stream = Stream::new(seed, Purpose::new("test points"), 0, 0);
    let mut points = Vec::new();
    let (mut area, whole) = (0.0, 100.0 * 60.0);
    loop {
        area -= stream.uniform().ln() / most;
        if area > whole {
            return points;
        }
        let at = [100.0 * stream.uniform(), 60.0 * stream.uniform()];
        let inside = at[0] < 50.0 || at[1] < 60.0 - 0.48 * (at[0] - 50.0);
        if stream.uniform() * most < intensity(at) && inside {
            points.push(at);
        }
    }
}

fn pattern(points: &[Location], scale: f64, shift: f64) -> PointPattern {
    let moved = |at: &[Location]| -> Vec<Location> {
        at.iter().map(|p| p.map(|x| shift + scale * x)).collect()
    };
    let names = ["x", "y"];
    PointPattern::read(
        names.map(str::to_owned),
        &table(names, &moved(points)),
        Some(&table(names, &moved(&WINDOW))),
        None,
    )
    .unwrap()
}

fn fitted(pattern: &PointPattern, prior: &str, length: f64) -> (PointsSummary, Vec<Intensity>) {
    let flags = LatentRequest {
        prior: Some(prior.to_owned()),
        ..LatentRequest::default()
    };
    let (summary, _, found) = alone(|around| fit_points(flags, pattern, length, around)).unwrap();
    (summary, found)
}

/// The posterior of a constant log intensity has the mean log(n/area) and the standard deviation 1/√n.
#[test]
fn a_constant_intensity_is_recovered() {
    let points = simulated(1, 0.05, |_| 0.05);
    let n = points.len() as f64;
    let (summary, found) = fitted(&pattern(&points, 1.0, 0.0), "intercept()", 10.0);
    assert!((summary.area - 5400.0).abs() < 1e-9 && summary.integral_error < 1e-6);
    assert!(
        (summary.expected / n - 1.0).abs() < 0.01,
        "{}",
        summary.expected
    );
    let level = &summary.fit.parameters[0];
    assert!((level.sd * n.sqrt() - 1.0).abs() < 0.02, "{}", level.sd);
    assert!((n / 5400.0 / 0.05).ln().abs() < 3.0 * level.sd);
    let (low, high) = summary.expected_interval;
    let width = (high - low) / (3.29 * n.sqrt());
    assert!((width - 1.0).abs() < 0.1, "{width}");
    assert!(
        found
            .iter()
            .all(|cell| (cell.mean / found[0].mean - 1.0).abs() < 1e-9)
    );
    assert!(summary.fit.judgement.trusted, "{:?}", summary.fit.judgement);
}

/// Kilometres, and metres with large offsets, give the same intensities. The bounds differ by n times the logarithm of the
/// ratio of areas.
#[test]
fn units_change_the_bound_by_the_jacobian() {
    let intensity = |[x, y]: Location| 0.08 * (0.02 * (x - 50.0) - 0.015 * y).exp();
    let points = simulated(2, 0.25, intensity);
    let prior = "intercept() + fixed(x, y)";
    let (near, own) = fitted(&pattern(&points, 1.0, 0.0), prior, 8.0);
    let (far, other) = fitted(&pattern(&points, 1000.0, 4e6), prior, 8000.0);
    assert_eq!(near.cells, far.cells);
    let moved = points.len() as f64 * 1e6_f64.ln();
    let off = near.fit.bound - far.fit.bound - moved;
    assert!(off.abs() < 1e-5, "{off}");
    for (a, b) in own.iter().zip(&other) {
        assert!(
            (a.mean / b.mean / 1e6 - 1.0).abs() < 1e-6,
            "{} {}",
            a.mean,
            b.mean
        );
    }
    // Without a field, the coefficients are those of the simulation.
    for (name, value) in [("fixed[x]", 0.02), ("fixed[y]", -0.015)] {
        let found = near.fit.parameters.iter().find(|p| p.name == name).unwrap();
        assert!((found.mean - value).abs() < 3.0 * found.sd, "{found:?}");
    }
}

/// Shorter cells change the bound by less than a tenth of a nat, and the integral's error falls with their area.
#[test]
fn shorter_cells_change_little() {
    let points = simulated(3, 0.25, |[x, y]| {
        0.08 * (0.02 * (x - 50.0) - 0.015 * y).exp()
    });
    let pattern = pattern(&points, 1.0, 0.0);
    let prior = "intercept() + fixed(x, y)";
    let (coarse, _) = fitted(&pattern, prior, 4.0);
    let (fine, _) = fitted(&pattern, prior, 2.0);
    let change = (coarse.fit.bound - fine.fit.bound).abs();
    assert!(change < 0.1, "{change}");
    let (stated, finer) = (coarse.integral_error, fine.integral_error);
    // Between both fits, the intensity adapts to the cells.
    assert!((0.5..1.2).contains(&(change / stated)), "{change} {stated}");
    assert!(finer < 0.3 * stated, "{finer} {stated}");
}

/// A draw of a Matérn field with smoothness 1 as a sum of cosines, whose frequencies have the field's spectral density: a
/// t distribution with two degrees of freedom (Rahimi and Recht 2007).
fn field(seed: u64, range: f64, sd: f64) -> impl Fn(Location) -> f64 {
    let mut stream = Stream::new(seed, Purpose::new("test field"), 0, 0);
    let waves: Vec<[f64; 3]> = (0..200)
        .map(|_| {
            let [a, b] = [0, 1].map(|_| inv_phi(stream.uniform()));
            let square = -2.0 * stream.uniform().ln();
            let scale = 8f64.sqrt() / range / square.sqrt();
            [
                scale * a,
                scale * b,
                2.0 * std::f64::consts::PI * stream.uniform(),
            ]
        })
        .collect();
    move |[x, y]| {
        let sum: f64 = waves
            .iter()
            .map(|[a, b, c]| (a * x + b * y + c).cos())
            .sum();
        sd * sum * (2.0 / 200.0_f64).sqrt()
    }
}

/// The 90 % intervals of a field contain the true intensity in about nine cells of ten.
#[test]
fn a_varying_intensity_is_recovered() {
    let field = field(4, 30.0, 0.7);
    let intensity = |at: Location| 0.07 * field(at).exp();
    let points = simulated(4, 1.0, intensity);
    let pattern = pattern(&points, 1.0, 0.0);
    let prior = pattern.prior(5.0);
    let (summary, found) = fitted(&pattern, &prior, 5.0);
    let inside = found.iter().filter(|one| {
        let (low, high) = one.interval;
        (low..=high).contains(&intensity(one.cell.at))
    });
    let share = inside.count() as f64 / found.len() as f64;
    assert!((0.8..=0.97).contains(&share), "{share}");
    let (low, high) = summary.expected_interval;
    assert!(low < points.len() as f64 && (points.len() as f64) < high);
}

#[test]
fn patterns_that_cannot_be_read_give_one_error() {
    let names = ["x", "y"];
    let own = || names.map(str::to_owned);
    let points = table(names, &[[1.0, 1.0], [2.0, 5.0], [200.0, 5.0]]);
    let window = table(names, &WINDOW);
    let read = |points: &Table, window, covariates| {
        PointPattern::read(own(), points, window, covariates)
            .unwrap_err()
            .to_string()
    };
    let outside = read(&points, Some(&window), None);
    assert!(
        outside.contains("1 of 3 points are outside the window, the first in row 3"),
        "{outside}"
    );
    let one = table(names, &[[1.0, 1.0]]);
    assert!(read(&one, None, None).contains("at least two points"));
    let missing = table(names, &[[1.0, f64::NAN], [2.0, 3.0]]);
    assert!(read(&missing, None, None).contains("row 1 has no number"));
    assert!(read(&points, None, Some(&window)).contains("a further column"));
}

/// A covariate at the centres of a coarse raster.
#[test]
fn covariates_are_those_of_the_nearest_location() {
    let height = |x: f64| ((x / 10.0).floor() * 10.0 + 5.0) / 50.0;
    let points = simulated(5, 0.4, |[x, _]| 0.05 * height(x).exp());
    let raster: Vec<Location> = (0..60)
        .map(|i| {
            [
                5.0 + 10.0 * f64::from(i % 10),
                5.0 + 10.0 * f64::from(i / 10),
            ]
        })
        .collect();
    let heights = raster.iter().map(|p| height(p[0])).collect();
    let mut columns = table(["x", "y"], &raster).columns().to_vec();
    columns.push(Column::new("height", Cells::Numbers(heights)));
    let raster = Table::new("raster", columns).unwrap();
    let names = ["x", "y"];
    let pattern = PointPattern::read(
        names.map(str::to_owned),
        &table(names, &points),
        Some(&table(names, &WINDOW)),
        Some(&raster),
    )
    .unwrap();
    let (summary, found) = fitted(&pattern, "intercept() + fixed(height)", 5.0);
    let slope = summary
        .fit
        .parameters
        .iter()
        .find(|p| p.name == "fixed[height]")
        .unwrap();
    assert!(
        (slope.mean - 1.0).abs() < 3.0 * slope.sd && slope.sd < 0.2,
        "{slope:?}"
    );
    let text = intensity_table(&pattern, &found);
    assert!(text.starts_with("x,y,area,mean,q05,q95\n"));
    assert_eq!(text.lines().count(), found.len() + 1);
}
