//! Compares covariances and precisions with their definitions, and derivatives with differences.

use faer::Side;
use jensen_latent::prior::{
    Block, Factor, Field, GaussianProcess, Graph, Lattice, Setting, Shape, Stack,
};
use jensen_latent::{
    Covariance, CovarianceSensitivity, Dense, Precision, Prior, Query, Range, Sensitivity,
    Structure,
};

fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}

/// Uneven distances between neighbouring nodes.
const GAPS: [f64; 6] = [1.0, 0.3, 2.5, 0.01, 1.2, 0.7];

fn setting(name: &str, value: f64, free: bool) -> Setting {
    Setting {
        free,
        ..Setting::positive(name, None, value)
    }
}

fn factor(shape: Shape, points: &Dense, lengthscales: &[f64]) -> Factor {
    Factor {
        shape,
        variance: Some(setting("variance", 1.7, true)),
        lengthscales: lengthscales
            .iter()
            .map(|l| setting("lengthscale", *l, true))
            .collect(),
        points: points.clone(),
    }
}

fn points(n: usize, d: usize) -> Dense {
    Dense {
        rows: n,
        cols: d,
        data: noise(n * d, 5).iter().map(|x| 3.0 * x + 1.0).collect(),
    }
}

fn dense(structure: &Structure) -> &Dense {
    match &structure.covariance {
        Covariance::Dense(sigma) => sigma,
        other => panic!("not dense: {other:?}"),
    }
}

fn precision(structure: &Structure) -> &Precision {
    match &structure.covariance {
        Covariance::Precision(q) => q,
        other => panic!("no precision: {other:?}"),
    }
}

fn kernel(shape: Shape, variance: f64, lengthscales: &[f64], x: &[f64], y: &[f64]) -> f64 {
    let scaled: f64 = x
        .iter()
        .zip(y)
        .enumerate()
        .map(|(d, (a, b))| ((a - b) / lengthscales[d % lengthscales.len().max(1)]).powi(2))
        .sum();
    let r = scaled.sqrt();
    let dot: f64 = x.iter().zip(y).map(|(a, b)| a * b).sum();
    variance
        * match shape {
            Shape::Rbf => (-r * r / 2.0).exp(),
            Shape::Matern12 => (-r).exp(),
            Shape::Matern32 => (1.0 + 3f64.sqrt() * r) * (-(3f64.sqrt()) * r).exp(),
            Shape::Matern52 => {
                (1.0 + 5f64.sqrt() * r + 5.0 / 3.0 * r * r) * (-(5f64.sqrt()) * r).exp()
            }
            Shape::RationalQuadratic => {
                // The last parameter is α.
                let (length, alpha) = (lengthscales[0], lengthscales[lengthscales.len() - 1]);
                let square: f64 = x.iter().zip(y).map(|(a, b)| (a - b) * (a - b)).sum();
                (1.0 + square / (2.0 * alpha * length * length)).powf(-alpha)
            }
            Shape::Linear => dot,
            Shape::Constant => 1.0,
            Shape::Same => f64::from(x == y),
        }
}

fn row(points: &Dense, i: usize) -> Vec<f64> {
    (0..points.cols).map(|d| points.get(i, d)).collect()
}

#[test]
fn covariances_follow_their_definitions() {
    // One algorithm serves few coordinates, and another one serves many.
    for d in [1, 3, 20] {
        let x = points(70, d);
        let named = Shape::TABLE.iter().map(|row| row.shape);
        for shape in named.chain([Shape::Same]) {
            let lengths = if shape.has_alpha() {
                vec![2.3, 0.8]
            } else if shape.is_stationary() {
                vec![2.3]
            } else {
                vec![]
            };
            let one = vec![1.0];
            let reported = if lengths.is_empty() { &one } else { &lengths };
            let process = GaussianProcess::new(vec![vec![factor(shape, &x, &lengths)]]).unwrap();
            let mut theta = vec![1.7];
            theta.extend(&lengths);
            let structure = process.structure(&theta).unwrap();
            let sigma = dense(&structure);
            let new = points(9, d);
            let Query::Cross {
                covariance,
                variance,
                ..
            } = process.query(&theta, std::slice::from_ref(&new)).unwrap()
            else {
                panic!("no cross-covariance");
            };
            for i in 0..70 {
                for j in 0..70 {
                    let expected = kernel(shape, 1.7, reported, &row(&x, i), &row(&x, j));
                    assert!(
                        (sigma.get(i, j) - expected).abs() < 1e-12 * (1.0 + expected.abs()),
                        "{shape:?} {d} {i} {j}"
                    );
                }
                for k in 0..9 {
                    let expected = kernel(shape, 1.7, reported, &row(&new, k), &row(&x, i));
                    assert!(
                        (covariance.get(k, i) - expected).abs() < 1e-12 * (1.0 + expected.abs())
                    );
                }
            }
            for (k, v) in variance.iter().enumerate() {
                let expected = kernel(shape, 1.7, reported, &row(&new, k), &row(&new, k));
                assert!((v - expected).abs() < 1e-12 * (1.0 + expected.abs()));
            }
        }
    }
}

/// A rational quadratic kernel with a large α is a squared exponential.
#[test]
fn rational_quadratic_kernels_tend_to_squared_exponentials() {
    let x = points(30, 2);
    let sigma = |shape: Shape, own: &[f64]| {
        let process = GaussianProcess::new(vec![vec![factor(shape, &x, own)]]).unwrap();
        let theta: Vec<f64> = [1.7].iter().chain(own).copied().collect();
        dense(&process.structure(&theta).unwrap()).clone()
    };
    let (rational, normal) = (
        sigma(Shape::RationalQuadratic, &[1.5, 1e9]),
        sigma(Shape::Rbf, &[1.5]),
    );
    crate::common::close("α → ∞", &rational.data, &normal.data, 1e-7);
}

/// Here squared distances come from inner products, which lose digits for points that are close to each other.
#[test]
fn close_points_keep_their_digits() {
    let mut x = points(2, 20);
    for d in 0..20 {
        x.data[2 * d] += 1000.0;
        x.data[2 * d + 1] = x.data[2 * d] + 1e-7;
    }
    let process = GaussianProcess::new(vec![vec![factor(Shape::Matern12, &x, &[1.0])]]).unwrap();
    let structure = process.structure(&[1.0, 1.0]).unwrap();
    let distance = -dense(&structure).get(0, 1).ln();
    let expected = 1e-7 * 20f64.sqrt();
    assert!(
        (distance / expected - 1.0).abs() < 1e-4,
        "{distance} {expected}"
    );
}

fn contraction(structure: &Structure, sensitivity: &Sensitivity) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    match (&structure.covariance, &sensitivity.covariance) {
        (Covariance::Dense(sigma), CovarianceSensitivity::Dense(g)) => dot(&sigma.data, &g.data),
        (Covariance::Diagonal(v), CovarianceSensitivity::Diagonal(g)) => dot(v, g),
        (
            Covariance::Precision(q),
            CovarianceSensitivity::Precision {
                value,
                log_determinant,
            },
        ) => dot(&q.matrix.value, value) + log_determinant * q.log_determinant.unwrap_or(0.0),
        other => panic!("{other:?}"),
    }
}

pub fn check_gradient(prior: &dyn Prior, theta: &[f64]) {
    let at = prior.structure(theta).unwrap();
    let covariance = match &at.covariance {
        Covariance::Dense(sigma) => {
            let n = sigma.rows;
            let raw = noise(n * n, 11);
            CovarianceSensitivity::Dense(Dense::from_fn(n, n, |i, j| {
                raw[i * n + j] + raw[j * n + i]
            }))
        }
        Covariance::Diagonal(v) => CovarianceSensitivity::Diagonal(noise(v.len(), 12)),
        Covariance::Precision(q) => CovarianceSensitivity::Precision {
            value: noise(q.matrix.len(), 13),
            log_determinant: if q.log_determinant.is_some() {
                0.5
            } else {
                0.0
            },
        },
        Covariance::Chain(_) => unreachable!("the tests of `states` compare bounds"),
    };
    let sensitivity = Sensitivity {
        mean: vec![0.0; at.len()],
        covariance,
        likelihood: Vec::new(),
        design: None,
    };
    let gradient = prior.gradient(theta, &at, &sensitivity);
    assert_eq!(gradient.len(), theta.len());
    assert_eq!(prior.parameters().len(), theta.len());
    for (i, g) in gradient.iter().enumerate() {
        let at = |step: f64| {
            let mut moved = theta.to_vec();
            moved[i] += step;
            contraction(&prior.structure(&moved).unwrap(), &sensitivity)
        };
        let h = 1e-4 * theta[i].abs().min(1.0);
        // This is Richardson's extrapolation of central differences.
        let central = |h: f64| (at(h) - at(-h)) / (2.0 * h);
        let slope = (4.0 * central(h / 2.0) - central(h)) / 3.0;
        assert!(
            (g - slope).abs() < 1e-6 * (1.0 + slope.abs()),
            "parameter {i}: {g} {slope}"
        );
    }
}

#[test]
fn gradients_of_processes() {
    for d in [2, 15] {
        let x = points(80, d);
        let many: Vec<f64> = (0..d).map(|i| 2.0 + 0.1 * i as f64).collect();
        for shape in [
            Shape::Rbf,
            Shape::Matern12,
            Shape::Matern32,
            Shape::Matern52,
        ] {
            let process = GaussianProcess::new(vec![vec![factor(shape, &x, &many)]]).unwrap();
            let theta: Vec<f64> = std::iter::once(1.3).chain(many.iter().copied()).collect();
            check_gradient(&process, &theta);
        }
        for lengths in [&many[..], &[2.4]] {
            let own: Vec<f64> = lengths.iter().copied().chain([0.7]).collect();
            let rational = factor(Shape::RationalQuadratic, &x, &own);
            let product = vec![rational, factor(Shape::Matern12, &x, &[3.0])];
            let process = GaussianProcess::new(vec![product]).unwrap();
            let theta: Vec<f64> = [1.3].into_iter().chain(own).chain([0.8, 3.0]).collect();
            check_gradient(&process, &theta);
        }
        let groups = Dense {
            rows: 80,
            cols: 1,
            data: (0..80).map(|i| f64::from(i % 7)).collect(),
        };
        let mut fixed = factor(Shape::Constant, &groups, &[]);
        fixed.variance = fixed.variance.map(|variance| Setting {
            free: false,
            ..variance
        });
        // The covariance is (rbf · matern · fixed constant) + linear · same + same.
        let process = GaussianProcess::new(vec![
            vec![
                factor(Shape::Rbf, &x, &[2.0]),
                factor(Shape::Matern32, &x, &many),
                fixed,
            ],
            vec![
                factor(Shape::Linear, &x, &[]),
                factor(Shape::Same, &groups, &[]),
            ],
            vec![factor(Shape::Same, &groups, &[])],
        ])
        .unwrap();
        let mut theta = vec![1.3, 2.2, 0.9];
        theta.extend(&many);
        theta.extend([0.4, 0.6, 0.8]);
        check_gradient(&process, &theta);
    }
}

fn broken() -> Graph {
    Graph::new(vec![
        vec![1, 2],
        vec![0, 2],
        vec![0, 1],
        vec![4],
        vec![3],
        vec![],
    ])
    .unwrap()
}

/// Returns a grid of 4 × 5 cells with two holes in the middle.
fn holes() -> Lattice {
    let mask: Vec<bool> = (0..20).map(|i| i != 7 && i != 12).collect();
    Lattice::new(4, 5, Some(&mask)).unwrap()
}

fn grid() -> Lattice {
    Lattice::new(4, 5, None).unwrap()
}

fn eigenvalues(q: &Precision) -> Vec<f64> {
    let n = q.matrix.rows;
    let mut full = Dense::zeros(n, n);
    for j in 0..n {
        let (rows, values) = q.matrix.col(j);
        for (i, x) in rows.iter().zip(values) {
            full.data[j * n + i] = *x;
        }
    }
    full.view().self_adjoint_eigenvalues(Side::Lower).unwrap()
}

fn pseudo_determinant(q: &Precision) -> (f64, usize) {
    let values = eigenvalues(q);
    let largest = values.iter().copied().fold(0.0, f64::max);
    let (zero, rest): (Vec<f64>, Vec<f64>) = values.iter().partition(|x| **x < 1e-10 * largest);
    (rest.iter().map(|x| x.ln()).sum(), zero.len())
}

#[test]
fn fields_have_the_stated_null_space_and_determinant() {
    let fields = [
        ("rw1", Field::rw1(9, false, None).unwrap(), 1),
        ("rw1 ring", Field::rw1(9, true, None).unwrap(), 1),
        ("icar", Field::laplace(&broken(), None).unwrap(), 2),
        ("rw2", Field::rw2(9, false, None).unwrap(), 2),
        ("rw2 ring", Field::rw2(9, true, None).unwrap(), 1),
        ("uneven rw1", Field::rw1_over(&GAPS, None).unwrap(), 1),
        ("uneven rw2", Field::rw2_over(&GAPS, None).unwrap(), 2),
        (
            "grid rw1",
            Field::laplace(&holes().graph(), None).unwrap(),
            1,
        ),
        ("grid rw2", Field::thin_plate(&grid(), None).unwrap(), 3),
        (
            "grid rw2 with holes",
            Field::thin_plate(&holes(), None).unwrap(),
            3,
        ),
    ];
    for (name, field, nullity) in fields {
        let structure = field.structure(&[2.5]).unwrap();
        let q = precision(&structure);
        let null = q.null_space.as_ref().unwrap();
        assert_eq!(null.cols, nullity, "{name}");
        for j in 0..nullity {
            let image = q.matrix.mul(null.col(j));
            let largest = q.matrix.value.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
            let small = |x: &f64| x.abs() < 1e-12 * largest;
            assert!(image.iter().all(small), "{name}: {image:?}");
        }
        let (expected, zero) = pseudo_determinant(q);
        assert_eq!(zero, nullity, "{name}");
        let stated = q.log_determinant.unwrap();
        assert!(
            (stated - expected).abs() < 1e-9,
            "{name}: {stated} {expected}"
        );
    }
}

#[test]
fn stationary_fields_have_their_determinants() {
    for (name, field, theta) in [
        ("ar1", Field::ar1(9, None, None).unwrap(), [-0.7, 2.0]),
        (
            "uneven ar1",
            Field::ornstein(GAPS.to_vec(), None, None).unwrap(),
            [0.7, 2.0],
        ),
        (
            "spde",
            Field::spde(&grid(), None, None).unwrap(),
            [3.0, 1.4],
        ),
    ] {
        let structure = field.structure(&theta).unwrap();
        let q = precision(&structure);
        let (expected, zero) = pseudo_determinant(q);
        assert_eq!(zero, 0, "{name}");
        let stated = q.log_determinant.unwrap();
        assert!(
            (stated - expected).abs() < 1e-9,
            "{name}: {stated} {expected}"
        );
        assert!(q.null_space.is_none());
    }
}

#[test]
fn an_autoregression_has_its_covariance() {
    let structure = Field::ar1(6, None, None)
        .unwrap()
        .structure(&[0.8, 2.0])
        .unwrap();
    let q = precision(&structure);
    for j in 0..6i32 {
        let column: Vec<f64> = (0..6)
            .map(|i: i32| 2.0 * 0.8f64.powi((i - j).abs()))
            .collect();
        let image = q.matrix.mul(&column);
        for (i, x) in image.iter().enumerate() {
            assert!((x - f64::from(i as i32 == j)).abs() < 1e-12);
        }
    }
}

#[test]
fn a_stationary_grid_field_has_its_variance_and_range() {
    let lattice = Lattice::new(61, 61, None).unwrap();
    let structure = Field::spde(&lattice, None, None)
        .unwrap()
        .structure(&[12.0, 2.0])
        .unwrap();
    let q = precision(&structure);
    let n = q.matrix.rows;
    let mut full = Dense::zeros(n, n);
    for j in 0..n {
        let (rows, values) = q.matrix.col(j);
        for (i, x) in rows.iter().zip(values) {
            full.data[j * n + i] = *x;
        }
    }
    let factor = full.view().llt(Side::Lower).unwrap();
    let mut unit = faer::Mat::<f64>::zeros(n, 1);
    unit[(30 * 61 + 30, 0)] = 1.0;
    let column = faer::linalg::solvers::Solve::solve(&factor, unit);
    let variance = column[(30 * 61 + 30, 0)];
    assert!((variance - 2.0).abs() < 0.1, "{variance}");
    let correlation = column[(30 * 61 + 42, 0)] / variance;
    assert!((correlation - 0.14).abs() < 0.02, "{correlation}");
}

/// BYM2 is the sum of an independent field and a scaled intrinsic field. The test integrates their joint precision.
#[test]
fn bym2_is_its_sum() {
    let graph = Graph::path(5, false);
    let (tau, phi) = (2.0, 0.3);
    let structure = Field::bym2(&graph, None, None)
        .unwrap()
        .structure(&[tau, phi])
        .unwrap();
    let q = precision(&structure);
    let null = q.null_space.as_ref().unwrap();
    let image = q.matrix.mul(null.col(0));
    assert!(image.iter().all(|x| x.abs() < 1e-12), "{image:?}");
    assert_eq!(pseudo_determinant(q).1, 1);

    // After subtracting φ/(1 − φ) from its diagonal, the lower block is the scaled structure matrix, whose generalised
    // variance is 1.
    let plain = Field::laplace(&graph, None)
        .unwrap()
        .structure(&[1.0])
        .unwrap();
    let mut logs = 0.0;
    let mut scale = 0.0;
    let n = 5;
    let level = Dense::from_fn(n, n, |i, j| {
        let (rows, values) = precision(&plain).matrix.col(j);
        let x = rows.iter().position(|r| *r == i).map_or(0.0, |k| values[k]);
        x + 1.0 / n as f64
    });
    let inverse =
        faer::linalg::solvers::DenseSolveCore::inverse(&level.view().llt(Side::Lower).unwrap());
    for i in 0..n {
        logs += (inverse[(i, i)] - 1.0 / n as f64).ln() / n as f64;
        let (rows, values) = q.matrix.col(n + i);
        let own = values[rows.iter().position(|r| *r == n + i).unwrap()] - phi / (1.0 - phi);
        scale = own / if i == 0 || i == n - 1 { 1.0 } else { 2.0 };
    }
    assert!((scale.ln() - logs).abs() < 1e-10, "{scale}");
    // The determinant is that of the product p(sum | u) p(u), with a flat density of the sum's level instead of u's.
    let structured = precision(&plain).log_determinant.unwrap() + (n - 1) as f64 * scale.ln();
    let expected = structured + n as f64 * (tau / (1.0 - phi)).ln() + (phi / tau).ln();
    assert!((q.log_determinant.unwrap() - expected).abs() < 1e-9);
}

#[test]
fn gradients_of_fields() {
    check_gradient(&Field::laplace(&broken(), None).unwrap(), &[2.5]);
    check_gradient(&Field::thin_plate(&holes(), None).unwrap(), &[0.4]);
    check_gradient(&Field::ar1(7, None, None).unwrap(), &[0.6, 1.9]);
    check_gradient(
        &Field::ornstein(GAPS.to_vec(), None, None).unwrap(),
        &[0.6, 1.9],
    );
    check_gradient(
        &Field::ornstein(GAPS.to_vec(), Some(0.4), None).unwrap(),
        &[1.9],
    );
    check_gradient(&Field::rw2_over(&GAPS, None).unwrap(), &[1.9]);
    check_gradient(&Field::spde(&grid(), None, None).unwrap(), &[3.0, 0.8]);
    check_gradient(&Field::spde(&holes(), None, None).unwrap(), &[3.0, 0.8]);
    check_gradient(&Field::bym2(&broken(), None, None).unwrap(), &[2.0, 0.3]);
    check_gradient(&Field::bym2(&broken(), None, Some(0.4)).unwrap(), &[2.0]);
    let independent = |count, value, free| Block::Independent {
        count,
        variance: setting("variance", value, free),
    };
    let stack = Stack::new(vec![
        independent(4, 1.0, true),
        Block::Field(Field::ar1(7, None, None).unwrap()),
        independent(2, 9.0, false),
        Block::Field(Field::laplace(&broken(), None).unwrap()),
    ])
    .unwrap();
    check_gradient(&stack, &[1.3, 0.5, 2.0, 0.7]);
    let stack = Stack::new(vec![independent(4, 1.0, true), independent(3, 1.0, true)]).unwrap();
    check_gradient(&stack, &[1.3, 0.5]);
}

#[test]
fn what_is_no_prior_is_refused() {
    assert!(Field::laplace(&Graph::new(vec![vec![], vec![]]).unwrap(), None).is_err());
    assert!(Field::rw2(2, false, None).is_err());
    assert!(Graph::new(vec![vec![1], vec![]]).is_err());
    // If a grid is only one cell wide, second differences do not determine the slope in that direction.
    let narrow = Lattice::new(1, 9, None).unwrap();
    let message = Field::thin_plate(&narrow, None).unwrap_err().to_string();
    assert!(message.contains("too narrow"), "{message}");
    assert!(Lattice::new(2, 2, Some(&[false; 4])).is_err());
    let field = Field::ar1(4, None, None).unwrap();
    for theta in [&[1.0, 1.0][..], &[0.5, -1.0], &[0.5], &[0.5, f64::NAN]] {
        assert!(field.structure(theta).is_err(), "{theta:?}");
    }
}

fn generalised_variance(q: &Precision) -> f64 {
    let n = q.matrix.rows;
    let mut full = Dense::zeros(n, n);
    for j in 0..n {
        let (rows, values) = q.matrix.col(j);
        for (i, x) in rows.iter().zip(values) {
            full.data[j * n + i] = *x;
        }
    }
    let eigen = full.view().self_adjoint_eigen(Side::Lower).unwrap();
    let variance = |i: usize| -> f64 {
        (0..n)
            .filter(|k| eigen.S()[*k] > 1e-9)
            .map(|k| eigen.U()[(i, k)].powi(2) / eigen.S()[k])
            .sum()
    };
    ((0..n).map(|i| variance(i).ln()).sum::<f64>() / n as f64).exp()
}

#[test]
fn the_spread_of_a_field_is_its_generalised_variance() {
    let long: Vec<f64> = noise(249, 3).iter().map(|x| 1.1 + x).collect();
    for (field, close) in [
        (Field::rw1(30, false, None).unwrap(), 1e-9),
        (Field::rw2(30, false, None).unwrap(), 1e-8),
        (Field::thin_plate(&grid(), None).unwrap(), 1e-9),
        (Field::rw2_over(&GAPS, None).unwrap(), 1e-8),
        // Longer walks use a power of their length.
        (Field::rw1_over(&long, None).unwrap(), 0.05),
        (Field::rw2_over(&long, None).unwrap(), 0.1),
        (Field::rw1(250, false, None).unwrap(), 0.02),
        (Field::rw2(250, false, None).unwrap(), 0.05),
        (Field::rw2(250, true, None).unwrap(), 0.02),
    ] {
        let structure = field.structure(&[1.0]).unwrap();
        let expected = generalised_variance(precision(&structure));
        let spread = field.spread().unwrap();
        assert!(
            (spread / expected - 1.0).abs() < close,
            "{spread} {expected}"
        );
    }
}

/// In such a long walk, rounding destroys the smallest eigenvalues.
#[test]
fn long_walks_are_priors() {
    let field = Field::rw2(30_000, false, None).unwrap();
    let n = 30_000f64;
    let structure = field.structure(&[1.0]).unwrap();
    let stated = precision(&structure).log_determinant.unwrap();
    assert!((stated - (n * n * (n * n - 1.0) / 12.0).ln()).abs() < 1e-9);
}

#[test]
fn correlated_effects_have_their_covariance() {
    let between = |name: &str, value: f64| Setting {
        range: Range::Between(-1.0, 1.0),
        ..setting(name, value, true)
    };
    let settings = vec![
        setting("a", 1.0, true),
        setting("b", 1.0, true),
        setting("c", 1.0, true),
        between("ab", 0.0),
        between("ac", 0.0),
        between("bc|a", 0.0),
    ];
    let field = Field::correlated(4, 3, settings).unwrap();
    let theta = [1.7, 0.4, 2.9, 0.6, -0.3, 0.5];
    check_gradient(&field, &theta);
    let [va, vb, vc, ab, ac, partial] = theta;
    // The argument `partial` is the correlation of b and c given a.
    let bc = partial * ((1.0 - ab * ab) * (1.0 - ac * ac)).sqrt() + ab * ac;
    let sigma = |i: usize, j: usize| {
        let correlation = match (i.min(j), i.max(j)) {
            (0, 1) => ab,
            (0, 2) => ac,
            (1, 2) => bc,
            _ => 1.0,
        };
        correlation * ([va, vb, vc][i] * [va, vb, vc][j]).sqrt()
    };
    let at = field.structure(&theta).unwrap();
    let q = precision(&at);
    for g in 0..4 {
        for i in 0..3 {
            for j in 0..3 {
                let (rows, values) = q.matrix.col(3 * g + j);
                let product: f64 = (rows.iter().zip(values))
                    .map(|(row, x)| {
                        assert_eq!(row / 3, g);
                        sigma(i, row % 3) * x
                    })
                    .sum();
                assert!((product - f64::from(i == j)).abs() < 1e-12, "{i} {j}");
            }
        }
    }
    let determinant = va * vb * vc * (1.0 + 2.0 * ab * ac * bc - ab * ab - ac * ac - bc * bc);
    assert!((q.log_determinant.unwrap() + 4.0 * determinant.ln()).abs() < 1e-12);
}

/// The covariance of x f(t) is x x′ k(t, t′). It has derivatives only with respect to the hyperparameters of k.
#[test]
fn a_column_scales_a_process() {
    let (t, x) = (points(80, 1), points(80, 1));
    let by = Factor {
        variance: None,
        ..factor(
            Shape::Linear,
            &Dense::from_fn(80, 1, |i, _| (i as f64).sin()),
            &[],
        )
    };
    let process = GaussianProcess::new(vec![
        vec![factor(Shape::Matern32, &t, &[2.3]), by],
        vec![factor(Shape::Linear, &x, &[])],
    ])
    .unwrap();
    let theta = [1.3, 2.0, 0.7];
    check_gradient(&process, &theta);
    let at = process.structure(&theta).unwrap();
    let own = |i: usize| (i as f64).sin();
    let expected = own(3) * own(7) * kernel(Shape::Matern32, 1.3, &[2.0], &row(&t, 3), &row(&t, 7))
        + kernel(Shape::Linear, 0.7, &[1.0], &row(&x, 3), &row(&x, 7));
    assert!((dense(&at).get(3, 7) - expected).abs() < 1e-12);
}
