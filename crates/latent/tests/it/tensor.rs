//! Compares smooths of two columns with penalised least squares.

use jensen_latent::prior::{Assembled, Spec, Units, assemble};
use jensen_latent::{Dense, LatentModel, Likelihood, Observations, SiteBound, predict};

use crate::assemble::TestTable;
use crate::common::{close, converged, invert, noise};

const ROWS: usize = 90;
const COUNTS: [usize; 2] = [7, 5];
const VARIANCE: f64 = 0.2;

fn columns(n: usize) -> [Vec<f64>; 2] {
    let at = |step: f64| move |i: usize| ((i as f64 + 0.5) * step).fract();
    [
        (0..n)
            .map(at(0.754_877_666))
            .map(|u| 3.0 + 4.0 * u)
            .collect(),
        (0..n)
            .map(at(0.569_840_291))
            .map(|u| 20.0 * u - 8.0)
            .collect(),
    ]
}

fn table([x, z]: &[Vec<f64>; 2]) -> TestTable {
    TestTable::default().with("x", x).with("z", z)
}

fn made(prior: &str, columns: &[Vec<f64>; 2]) -> Result<Assembled, String> {
    let rows: Vec<usize> = (0..columns[0].len()).collect();
    let spec = Spec::parse(prior).unwrap();
    assemble(&spec, &table(columns), &rows, Units::TABLE).map_err(|e| e.to_string())
}

fn model(made: &Assembled, theta: &[f64], y: &[f64]) -> LatentModel {
    LatentModel {
        prior: made.prior().structure(theta).unwrap(),
        design: made.design(),
        likelihood: Likelihood::gaussian(VARIANCE),
        bound: SiteBound::Exact,
        observations: Observations::new(y.to_vec()),
    }
}

/// The j-th cubic B-spline on the integers, which is positive between j − 3 and j + 1, by the recursion of de Boor.
fn spline(j: usize, t: f64) -> f64 {
    fn of(left: f64, order: usize, t: f64) -> f64 {
        match order {
            1 => f64::from(u8::from((left..left + 1.0).contains(&t))),
            k => {
                let width = (k - 1) as f64;
                (t - left) / width * of(left, k - 1, t)
                    + (left + k as f64 - t) / width * of(left + 1.0, k - 1, t)
            }
        }
    }
    of(j as f64 - 3.0, 4, t)
}

/// The products of splines at points, on knots from the first to the second end of each column.
fn basis(columns: &[Vec<f64>; 2], ends: [[f64; 2]; 2]) -> Dense {
    let at = |d: usize, i: usize| {
        let [low, high] = ends[d];
        (COUNTS[d] - 3) as f64 * (columns[d][i] - low) / (high - low) * (1.0 - 1e-15)
    };
    Dense::from_fn(columns[0].len(), COUNTS[0] * COUNTS[1], |i, l| {
        spline(l % COUNTS[0], at(0, i)) * spline(l / COUNTS[0], at(1, i))
    })
}

fn ends(columns: &[Vec<f64>; 2]) -> [[f64; 2]; 2] {
    columns.each_ref().map(|x| {
        let low = x.iter().copied().fold(f64::INFINITY, f64::min);
        [low, x.iter().copied().fold(f64::NEG_INFINITY, f64::max)]
    })
}

/// The penalty of the coefficients: squares of second differences along both columns.
fn penalty(theta: [f64; 2]) -> Dense {
    let [m, n] = COUNTS;
    let mut out = Dense::zeros(m * n, m * n);
    for l in 0..m * n {
        for (d, (position, count, step)) in [(l % m, m, 1), (l / m, n, m)].into_iter().enumerate() {
            if position + 2 < count {
                let row = [(l, 1.0), (l + step, -2.0), (l + 2 * step, 1.0)];
                for (i, a) in row {
                    for (j, b) in row {
                        out.data[j * m * n + i] += theta[d] * a * b;
                    }
                }
            }
        }
    }
    out
}

fn response(columns: &[Vec<f64>; 2]) -> Vec<f64> {
    let surface = |i: usize| (1.3 * columns[0][i]).sin() + 0.02 * columns[1][i].powi(2);
    (0..ROWS).map(|i| surface(i) + noise(i)).collect()
}

/// Posterior means, variances and predictions are those of penalised least squares at the same variances.
#[test]
fn smooths_of_two_columns_are_penalised_least_squares() {
    let known = columns(ROWS);
    let (y, b) = (response(&known), basis(&known, ends(&known)));
    let made = made("te(on=(x, z), basis=(7, 5))", &known).unwrap();
    let names: Vec<String> = made.settings().into_iter().map(|s| s.name).collect();
    assert_eq!(names, ["te[x].precision", "te[z].precision"]);
    let new = [vec![4.0, 5.5, 3.9], vec![-6.0, 0.3, 9.0]];
    let at_new = basis(&new, ends(&known));
    for theta in [[0.7, 4.0], [300.0, 0.02]] {
        let model = model(&made, &theta, &y);
        let fit = converged(&model);
        let p = penalty(theta);
        let inverse = invert(&Dense::from_fn(p.rows, p.rows, |i, j| {
            let own: f64 = (0..ROWS).map(|r| b.get(r, i) * b.get(r, j)).sum();
            p.get(i, j) + own / VARIANCE
        }));
        let pull: Vec<f64> = (0..p.rows)
            .map(|l| (0..ROWS).map(|r| b.get(r, l) * y[r]).sum::<f64>() / VARIANCE)
            .collect();
        let times = |row: &dyn Fn(usize) -> f64, other: &dyn Fn(usize) -> f64| -> f64 {
            let each = |i: usize| (0..p.rows).map(move |j| (i, j));
            let all = (0..p.rows).flat_map(each);
            all.map(|(i, j)| row(i) * inverse.get(i, j) * other(j))
                .sum()
        };
        let means = |b: &Dense| -> Vec<f64> {
            let of = |r: usize| times(&|l| b.get(r, l), &|l| pull[l]);
            (0..b.rows).map(of).collect()
        };
        let variances = |b: &Dense| -> Vec<f64> {
            let of = |r: usize| times(&|l| b.get(r, l), &|l| b.get(r, l));
            (0..b.rows).map(of).collect()
        };
        close("mean", &fit.predictor_mean, &means(&b), 1e-6);
        close("variance", &fit.predictor_variance, &variances(&b), 1e-6);
        let (query, _) = made.query(&theta, &table(&new), &[0, 1, 2]).unwrap();
        let found = predict(&model, &fit.warm(), &query).unwrap();
        let (mean, variance): (Vec<f64>, Vec<f64>) = found.into_iter().unzip();
        close("new mean", &mean, &means(&at_new), 1e-6);
        close("new variance", &variance, &variances(&at_new), 1e-6);
    }
}

/// The penalty does not change functions of the form a + bx + cz + dxz, so a strong penalty gives their least squares.
#[test]
fn strong_penalties_leave_a_bilinear_function() {
    let known = columns(ROWS);
    let y: Vec<f64> = (known[0].iter().zip(&known[1]))
        .map(|(x, z)| 1.0 - 2.0 * x + 0.5 * z + 0.3 * x * z)
        .collect();
    let made = made("te(on=(x, z))", &known).unwrap();
    let fit = converged(&model(&made, &[1e4, 1e4], &y));
    close("bilinear", &fit.predictor_mean, &y, 1e-4);
}

/// Beside an intercept and smooths of each column, the directions that they share do not change the rows.
#[test]
fn smooths_stand_beside_other_terms() {
    let known = columns(ROWS);
    let y = response(&known);
    let theta = [0.7, 4.0];
    let alone = converged(&model(
        &made("te(on=(x, z), basis=5)", &known).unwrap(),
        &theta,
        &y,
    ));
    let beside = made("intercept(variance=1e6) + te(on=(x, z), basis=5)", &known).unwrap();
    assert!(
        beside.notes[0].contains("flat direction"),
        "{:?}",
        beside.notes
    );
    let found = converged(&model(&beside, &theta, &y));
    close("mean", &found.predictor_mean, &alone.predictor_mean, 1e-4);
    // The evidence of two penalties has the same difference, because the prior of the shared level is constant.
    let other = [20.0, 0.3];
    let moved = converged(&model(
        &made("te(on=(x, z), basis=5)", &known).unwrap(),
        &other,
        &y,
    ));
    let there = converged(&model(&beside, &other, &y));
    close(
        "evidence",
        &[there.bound - found.bound],
        &[moved.bound - alone.bound],
        1e-4,
    );
}

#[test]
fn smooths_have_their_derivatives() {
    let known = columns(20);
    for prior in [
        "te(on=(x, z), basis=(5, 4))",
        "intercept() + te(on=(x, z), basis=4)",
        "rw2(on=x, step=1, precision=2) + te(on=(x, z), basis=4)",
    ] {
        crate::prior::check_gradient(made(prior, &known).unwrap().prior(), &[0.6, 2.3]);
    }
}

/// In other units the weights are the same, and the precisions follow the response only.
#[test]
fn smooths_do_not_depend_on_units() {
    let known = columns(ROWS);
    let y = response(&known);
    let moved = [
        known[0]
            .iter()
            .map(|x| 1e5 - 3e-2 * x)
            .collect::<Vec<f64>>(),
        known[1].iter().map(|z| 7.0 + 1e4 * z).collect(),
    ];
    let fits = [known, moved].map(|columns| {
        let made = made("te(on=(x, z))", &columns).unwrap();
        converged(&model(&made, &[0.7, 4.0], &y))
    });
    close("bound", &[fits[1].bound], &[fits[0].bound], 1e-6);
    close(
        "mean",
        &fits[1].predictor_mean,
        &fits[0].predictor_mean,
        1e-6,
    );
}

#[test]
fn mistakes_name_the_way_out() {
    let known = columns(30);
    let flat = [known[0].clone(), vec![2.0; 30]];
    for (prior, columns, message) in [
        ("te(on=x)", &known, "needs two columns"),
        ("te(on=(x, z), basis=3)", &known, "at least 4 functions"),
        ("te(on=(x, z), basis=200)", &known, "use fewer (`basis=`)"),
        (
            "te(on=(x, z), basis=(5, 5, 5))",
            &known,
            "one value or a list of 2",
        ),
        ("te(on=(x, z), from=9, to=2)", &known, "is empty"),
        ("te(on=(x, z), to=(5, 20))", &known, "set `from` and `to`"),
        ("te(on=(x, z), precision=(1, 2, 3))", &known, "a list of 2"),
        ("te(on=(x, z))", &flat, "the column `z` is constant"),
        ("te(on=(x, z)) + gp(rbf)", &known, "has basis functions"),
    ] {
        let error = made(prior, columns).err().unwrap();
        assert!(error.contains(message), "{prior}: {error}");
    }
    let found = made("te(on=(x, z))", &known).unwrap();
    let far = table(&[vec![9.0], vec![0.0]]);
    let error = found
        .query(&[1.0, 1.0], &far, &[0])
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("`x` = 9, outside the smooth"), "{error}");
}
