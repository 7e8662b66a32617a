//! Compares fields on meshes with Matérn fields of smoothness 1.

use faer::Side;
use faer::linalg::solvers::Solve;
use faer::sparse::{SparseColMat, Triplet};
use jensen_latent::prior::{Assembled, Spec, Units, assemble};
use jensen_latent::{
    Covariance, Dense, Design, LatentModel, Likelihood, Observations, SiteBound, Sparse, predict,
};

use crate::assemble::TestTable;
use crate::common::{close, converged, invert, noise};

/// The modified Bessel function K₁(z) = ∫ exp(−z cosh t) cosh t dt over positive t.
fn bessel_k1(z: f64) -> f64 {
    let step = 0.05;
    let term = |k: usize| {
        let cosh = (step * k as f64).cosh();
        let weight = if k == 0 { 0.5 } else { 1.0 };
        step * weight * (-z * cosh).exp() * cosh
    };
    (0..400).map(term).sum()
}

fn matern(a: [f64; 2], b: [f64; 2], range: f64) -> f64 {
    let z = 8f64.sqrt() / range * (a[0] - b[0]).hypot(a[1] - b[1]);
    if z == 0.0 { 1.0 } else { z * bessel_k1(z) }
}

/// Scattered locations in a rectangle of 10 × 6.
fn locations(n: usize) -> Vec<[f64; 2]> {
    let at = |i: usize, step: f64| ((i as f64 + 0.5) * step).fract();
    (0..n)
        .map(|i| [10.0 * at(i, 0.754_877_666), 6.0 * at(i, 0.569_840_291)])
        .collect()
}

fn table(locations: &[[f64; 2]]) -> TestTable {
    let column = |d: usize| locations.iter().map(|p| p[d]).collect::<Vec<f64>>();
    TestTable::default()
        .with("east", &column(0))
        .with("north", &column(1))
}

fn made(prior: &str, locations: &[[f64; 2]]) -> Result<Assembled, String> {
    let rows: Vec<usize> = (0..locations.len()).collect();
    let spec = Spec::parse(prior).unwrap();
    assemble(&spec, &table(locations), &rows, Units::TABLE).map_err(|e| e.to_string())
}

fn design(made: &Assembled) -> Sparse {
    match made.design() {
        Design::Sparse(w) => w,
        other => panic!("not sparse: {other:?}"),
    }
}

fn precision(made: &Assembled, theta: &[f64]) -> Sparse {
    match made.prior().structure(theta).unwrap().covariance {
        Covariance::Precision(q) => q.matrix,
        other => panic!("no precision: {other:?}"),
    }
}

/// The prior covariances of the first `count` rows with all rows.
fn covariances(made: &Assembled, count: usize) -> Dense {
    let (w, q) = (design(made).transpose(), precision(made, &[]));
    let mut entries = Vec::new();
    for j in 0..q.cols {
        let (rows, values) = q.col(j);
        entries.extend(
            rows.iter()
                .zip(values)
                .map(|(i, x)| Triplet::new(*i, j, *x)),
        );
    }
    let sparse =
        SparseColMat::<usize, f64>::try_new_from_triplets(q.rows, q.cols, &entries).unwrap();
    let factor = sparse.sp_cholesky(Side::Lower).unwrap();
    let mut right = faer::Mat::<f64>::zeros(q.rows, count);
    for row in 0..count {
        let (nodes, weights) = w.col(row);
        nodes
            .iter()
            .zip(weights)
            .for_each(|(l, x)| right[(*l, row)] = *x);
    }
    let solved = factor.solve(&right);
    Dense::from_fn(w.cols, count, |i, j| {
        let (nodes, weights) = w.col(i);
        nodes
            .iter()
            .zip(weights)
            .map(|(l, x)| x * solved[(*l, j)])
            .sum()
    })
}

#[test]
fn covariances_are_those_of_a_matern_field() {
    let locations = locations(300);
    let made = made(
        "mesh(spde, on=(east, north), edge=0.3, range=3, variance=2)",
        &locations,
    )
    .unwrap();
    let found = covariances(&made, 20);
    let mut worst = 0.0f64;
    for i in 0..300 {
        for j in 0..20 {
            let expected = 2.0 * matern(locations[i], locations[j], 3.0);
            worst = worst.max((found.get(i, j) - expected).abs());
        }
    }
    assert!(worst < 0.05, "{worst}");
    let (name, stated) = made.discretisation(&[]).unwrap().remove(0);
    assert!(name == "mesh" && stated.error < 0.025, "{stated:?}");
}

/// A mesh that is too coarse or ends too early says so, and the advised mesh suffices.
#[test]
fn errors_of_meshes_are_stated() {
    let locations = locations(200);
    for (range, mesh) in [
        (0.8, "edge=0.6, extension=2"),
        (6.0, "edge=0.6, extension=1"),
    ] {
        let error = |mesh: &str| {
            let prior = format!("mesh(spde, on=(east, north), range={range}, variance=2, {mesh})");
            let made = made(&prior, &locations).unwrap();
            let mut found = made.discretisation(&[]).unwrap();
            found.remove(0).1
        };
        let first = error(mesh);
        assert!(first.error > 0.1, "{first:?}");
        let advice = format!("edge={}, extension={}", first.edge, first.extension);
        let second = error(&advice);
        assert!(second.error < 0.05, "{advice}: {second:?}");
    }
}

/// The posterior is that of a Gaussian process with the covariance function of the field.
#[test]
fn posteriors_are_those_of_a_matern_process() {
    let (all, noise_variance) = (locations(160), 0.1);
    let (known, new) = all.split_at(120);
    let made = made(
        "mesh(spde, on=(east, north), edge=0.15, range=4, variance=1.5)",
        known,
    )
    .unwrap();
    let surface = |p: &[f64; 2], i: usize| (0.7 * p[0]).sin() + 0.4 * p[1] + noise(i) - 0.5;
    let y: Vec<f64> = known
        .iter()
        .enumerate()
        .map(|(i, p)| surface(p, i))
        .collect();
    let model = LatentModel {
        prior: made.prior().structure(&[]).unwrap(),
        design: made.design(),
        likelihood: Likelihood::gaussian(noise_variance),
        bound: SiteBound::Exact,
        observations: Observations::new(y.clone()),
    };
    let fit = converged(&model);
    let rows: Vec<usize> = (0..new.len()).collect();
    let (query, fresh) = made.query(&[], &table(new), &rows).unwrap();
    assert_eq!(fresh.added(), vec![0.0; new.len()]);
    let found = predict(&model, &fit.warm(), &query).unwrap();
    let n = known.len();
    let inverse = invert(&Dense::from_fn(n, n, |i, j| {
        1.5 * matern(known[i], known[j], 4.0) + if i == j { noise_variance } else { 0.0 }
    }));
    for (location, (mean, variance)) in new.iter().zip(found) {
        let cross: Vec<f64> = known
            .iter()
            .map(|p| 1.5 * matern(*location, *p, 4.0))
            .collect();
        let weights = (0..n).map(|i| (0..n).map(|j| inverse.get(i, j) * cross[j]).sum::<f64>());
        let weights: Vec<f64> = weights.collect();
        let dot = |b: &[f64]| -> f64 { weights.iter().zip(b).map(|(w, b)| w * b).sum() };
        let sd = (1.5 - dot(&cross)).sqrt();
        assert!(
            (mean - dot(&y)).abs() < 0.1 * sd,
            "{location:?}: {mean} {}",
            dot(&y)
        );
        assert!(
            (variance.sqrt() / sd - 1.0).abs() < 0.05,
            "{location:?}: {} {sd}",
            variance.sqrt()
        );
    }
}

/// The number of nodes depends on the edges and not on the number of rows, and the cost of a fit stays low.
#[test]
fn many_rows_share_the_nodes_of_a_mesh() {
    let locations = locations(5000);
    let made = made(
        "intercept() + mesh(spde, on=(east, north), range=2, variance=1)",
        &locations,
    )
    .unwrap();
    let nodes = design(&made).cols - 1;
    assert!((2000..6000).contains(&nodes), "{nodes}");
    let model = LatentModel {
        prior: made.prior().structure(&[]).unwrap(),
        design: made.design(),
        likelihood: Likelihood::poisson(),
        bound: SiteBound::Exact,
        observations: Observations::new((0..5000).map(|i| (3.0 * noise(i)).floor()).collect()),
    };
    converged(&model);
}

/// Other units, another origin, a mirror image and another order of rows give the same precision and weights.
#[test]
fn meshes_do_not_depend_on_units_and_order() {
    let locations = locations(80);
    let prior = "mesh(spde, on=(east, north), variance=1)";
    let first = made(prior, &locations).unwrap();
    let start = first.settings()[0].clone();
    // The longer side is nearly 10, and the range starts at a fifth of it.
    assert!(
        (1.9..2.0).contains(&(start.value * start.unit)),
        "{start:?}"
    );
    let (q, w) = (precision(&first, &[0.3]), design(&first));
    for (origin, scale) in [(-3e5, 1e-3), (7.0, -40.0)] {
        let moved: Vec<[f64; 2]> = (locations.iter().rev())
            .map(|[x, y]| [origin + scale * x, 2.0 * origin + scale.abs() * y])
            .collect();
        let other = made(prior, &moved).unwrap();
        let setting = &other.settings()[0];
        assert!((setting.value - start.value).abs() < 1e-9);
        assert!((setting.unit / start.unit / scale.abs() - 1.0).abs() < 1e-6);
        let (p, v) = (precision(&other, &[0.3]), design(&other));
        assert!(p.row == q.row && p.col_start == q.col_start, "patterns");
        close("precision", &p.value, &q.value, 1e-3);
        let (w, v) = (w.transpose(), v.transpose());
        for i in 0..80 {
            let full = |w: &Sparse, i: usize| {
                let mut out = vec![0.0; w.rows];
                let (nodes, weights) = w.col(i);
                nodes.iter().zip(weights).for_each(|(l, x)| out[*l] = *x);
                out
            };
            close("weights", &full(&v, 79 - i), &full(&w, i), 1e-4);
        }
    }
}

#[test]
fn meshes_have_their_derivatives() {
    let prior = "mesh(spde, on=(east, north), edge=3, extension=3)";
    let made = made(prior, &locations(12)).unwrap();
    crate::prior::check_gradient(made.prior(), &[0.4, 1.3]);
}

#[test]
fn mistakes_name_the_way_out() {
    let scattered = locations(30);
    let line: Vec<[f64; 2]> = (0..30)
        .map(|i| [f64::from(i), 0.3 * f64::from(i) + 1.0])
        .collect();
    let one = vec![[2.0, 3.0]; 5];
    let cases = [
        (
            "mesh(spde, on=(east, north))",
            &line,
            "`gp(matern32, on=east)`",
        ),
        (
            "mesh(spde, on=(east, north))",
            &one,
            "all rows are at one location",
        ),
        ("mesh(spde, on=east)", &scattered, "needs two columns"),
        (
            "mesh(on=(east, north))",
            &scattered,
            "needs a kind of field",
        ),
        (
            "mesh(rw2, on=(east, north))",
            &scattered,
            "no field `rw2` on a mesh",
        ),
        (
            "mesh(spde, on=(east, north), edge=0)",
            &scattered,
            "`edge` must be positive",
        ),
        (
            "mesh(spde, on=(east, north), edge=1e-3)",
            &scattered,
            "a longer `edge`",
        ),
        (
            "mesh(spde, on=(east, north), edge=2, extension=1)",
            &scattered,
            "a longer `extension`",
        ),
        (
            "gp(rbf) + mesh(spde, on=(east, north))",
            &scattered,
            "a sparse precision",
        ),
    ];
    for (prior, locations, message) in cases {
        let error = made(prior, locations).err().unwrap();
        assert!(error.contains(message), "{prior}: {error}");
    }
    let twice: Vec<[f64; 2]> = scattered.iter().chain(&scattered).copied().collect();
    let found = made("mesh(spde, on=(east, north))", &twice).unwrap();
    assert!(
        found.notes[0].contains("nodes for 30 locations"),
        "{:?}",
        found.notes
    );
    let far = found
        .query(&[0.2, 1.0], &table(&[[40.0, 3.0]]), &[0])
        .err()
        .unwrap();
    let far = far.to_string();
    assert!(
        far.contains("(40, 3)") && far.contains("longer `extension`"),
        "{far}"
    );
}
