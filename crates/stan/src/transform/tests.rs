use super::*;

fn cases() -> Vec<(&'static str, Transform, usize, usize, Vec<usize>)> {
    let all = |n: usize| (0..n).collect::<Vec<_>>();
    let below = |n: usize, diagonal: bool| -> Vec<usize> {
        (0..n * n)
            .filter(|k| {
                let (i, j) = (k % n, k / n);
                i > j || (diagonal && i == j)
            })
            .collect()
    };
    let each = |x: &[f64]| Limit::Each(x.to_vec());
    vec![
        ("identity", Transform::Identity, 2, 2, all(4)),
        ("lower", Transform::Lower(each(&[-1.5, 0.0])), 2, 1, all(2)),
        (
            "no lower",
            Transform::Lower(Limit::All(f64::NEG_INFINITY)),
            2,
            1,
            all(2),
        ),
        ("upper", Transform::Upper(Limit::All(2.0)), 2, 1, all(2)),
        (
            "between",
            Transform::LowerUpper(
                each(&[-1.0, 0.0, f64::NEG_INFINITY]),
                each(&[3.0, f64::INFINITY, 4.0]),
            ),
            3,
            1,
            all(3),
        ),
        (
            "affine",
            Transform::OffsetMultiplier(Limit::All(1.5), each(&[2.0, 0.3])),
            2,
            1,
            all(2),
        ),
        ("ordered", Transform::Ordered, 4, 1, all(4)),
        ("positive ordered", Transform::PositiveOrdered, 4, 1, all(4)),
        ("simplex", Transform::Simplex, 4, 1, all(3)),
        ("simplex of one", Transform::Simplex, 1, 1, all(0)),
        (
            "correlation factor",
            Transform::CholeskyFactorCorr,
            4,
            4,
            below(4, false),
        ),
        ("correlation", Transform::CorrMatrix, 4, 4, below(4, false)),
        ("covariance", Transform::CovMatrix, 3, 3, below(3, true)),
        (
            "covariance factor",
            Transform::CholeskyFactorCov,
            4,
            3,
            (0..12).filter(|k| k % 4 >= k / 4).collect(),
        ),
        (
            "column stochastic",
            Transform::ColumnStochastic,
            3,
            2,
            vec![0, 1, 3, 4],
        ),
        (
            "row stochastic",
            Transform::RowStochastic,
            2,
            3,
            vec![0, 1, 2, 3],
        ),
        ("sum to zero", Transform::SumToZero, 5, 1, all(5)),
        ("sum to zero matrix", Transform::SumToZero, 3, 4, all(12)),
    ]
}

const POINT: [f64; 12] = [
    0.3, -0.7, 1.1, 0.2, -0.4, 0.9, -1.3, 0.5, 0.6, -0.1, 0.8, 1.2,
];

fn constrain(t: &Transform, z: &[f64], rows: usize, cols: usize) -> (Vec<f64>, f64) {
    let mut out = Vec::new();
    let jacobian = t.constrain(z, rows, cols, &mut out);
    (out, jacobian)
}

#[test]
fn round_trips() {
    for (name, t, rows, cols, _) in cases() {
        let z = &POINT[..t.coordinates(rows, cols)];
        let (x, _) = constrain(&t, z, rows, cols);
        assert_eq!(x.len(), rows * cols, "{name}");
        assert_eq!(t.check(&x, rows, cols), Ok(()), "{name}");
        let mut back = Vec::new();
        t.unconstrain(&x, rows, cols, &mut back).expect(name);
        assert_eq!(back.len(), z.len(), "{name}");
        for (a, b) in back.iter().zip(z) {
            assert!((a - b).abs() < 1e-12, "{name}: {a} instead of {b}");
        }
    }
}

/// The log-Jacobian is ½ log |Jᵀ J| of the free elements, computed by central differences. If J is square, the
/// log-Jacobian is log |J|.
#[test]
fn log_jacobians() {
    for (name, t, rows, cols, free) in cases() {
        let z = POINT[..t.coordinates(rows, cols)].to_vec();
        let h = 1e-6;
        let columns: Vec<Vec<f64>> = (0..z.len())
            .map(|k| {
                let at = |d: f64| {
                    let mut z = z.clone();
                    z[k] += d;
                    constrain(&t, &z, rows, cols).0
                };
                let (up, down) = (at(h), at(-h));
                free.iter()
                    .map(|i| (up[*i] - down[*i]) / (2.0 * h))
                    .collect()
            })
            .collect();
        let n = z.len();
        let mut gram: Vec<f64> = Vec::new();
        for a in &columns {
            for b in &columns {
                gram.push(a.iter().zip(b).map(|(a, b)| a * b).sum());
            }
        }
        let factor = matrices::cholesky(&gram, n, "a Gram matrix").expect(name);
        let expected: f64 = (0..n).map(|i| factor[i * n + i].ln()).sum();
        let (_, found) = constrain(&t, &z, rows, cols);
        assert!(
            (found - expected).abs() < 1e-7,
            "{name}: {found} instead of {expected}"
        );
    }
}

/// The values and log-Jacobians are those that Stan (stanli 0.24.0) returns at [`POINT`].
#[test]
#[expect(
    clippy::too_many_lines,
    reason = "a rule list: transforms and their values"
)]
fn reference_values() {
    let cases: [(Transform, usize, usize, &[f64], f64); 6] = [
        (
            Transform::Simplex,
            4,
            1,
            &[
                0.25887684630680474,
                0.169370459351568,
                0.49350936103106274,
                0.07824333331056436,
            ],
            -5.688067644790335,
        ),
        (
            Transform::UnitVector,
            3,
            1,
            &[0.22423052782558076, -0.5232045649263551, 0.8221786020271296],
            -0.895,
        ),
        (
            Transform::CholeskyFactorCorr,
            4,
            4,
            &[
                1.0,
                0.2913126124515909,
                -0.6043677771171636,
                0.197375320224904,
                0.0,
                0.9566279119002483,
                0.6377619413556489,
                -0.37247460537485594,
                0.0,
                0.0,
                0.4774927184164511,
                0.6495465753280042,
                0.0,
                0.0,
                0.0,
                0.632767649138784,
            ],
            -2.8273581098006835,
        ),
        (
            Transform::CorrMatrix,
            4,
            4,
            &[
                1.0,
                0.29131261245159085,
                -0.6043677771171635,
                0.8004990217606297,
                0.29131261245159085,
                1.0,
                -0.025630221391986313,
                0.015355640718922065,
                -0.6043677771171635,
                -0.025630221391986313,
                1.0,
                -0.20945045002496843,
                0.8004990217606297,
                0.015355640718922065,
                -0.20945045002496843,
                1.0,
            ],
            -4.1473140855885635,
        ),
        (
            Transform::CovMatrix,
            3,
            3,
            &[
                1.822118800390509,
                -0.9449011653032021,
                0.26997176151520064,
                -0.9449011653032021,
                9.515013499434122,
                -1.3416664095785733,
                0.26997176151520064,
                -1.3416664095785733,
                6.249647464412948,
            ],
            8.379441541679837,
        ),
        (
            Transform::SumToZero,
            3,
            4,
            &[
                0.2555789547661629,
                -0.6829438894553691,
                0.4273649346892062,
                0.7561343047126765,
                -0.07879870102263095,
                -0.6773356036900455,
                -0.5631470258122644,
                0.636396103067893,
                -0.07324907725562857,
                -0.448566233666575,
                0.12534648741010712,
                0.3232197462564679,
            ],
            0.0,
        ),
    ];
    for (t, rows, cols, expected, jacobian) in cases {
        let z = &POINT[..t.coordinates(rows, cols)];
        let (x, found) = constrain(&t, z, rows, cols);
        for (a, b) in x.iter().zip(expected) {
            assert!((a - b).abs() < 1e-13, "{t:?}: {a} instead of {b}");
        }
        assert!(
            (found - jacobian).abs() < 1e-13,
            "{t:?}: {found} instead of {jacobian}"
        );
    }
}

#[test]
fn violations_name_the_element() {
    let bad = |t: Transform, x: &[f64], rows: usize, cols: usize| {
        t.check(x, rows, cols).expect_err("a violation")
    };
    let v = bad(Transform::Lower(Limit::All(0.0)), &[1.0, -2.0], 2, 1);
    assert_eq!(
        (v.element, v.expected.as_str(), v.found.as_str()),
        (Some(1), "at least 0", "-2")
    );
    assert_eq!(
        bad(Transform::Lower(Limit::All(0.0)), &[f64::NAN], 1, 1).found,
        "NaN"
    );
    assert_eq!(
        bad(Transform::Ordered, &[1.0, 2.0, 2.0], 3, 1).element,
        Some(2)
    );
    assert!(
        bad(Transform::Simplex, &[0.5, 0.6], 2, 1)
            .found
            .starts_with("sum 1.1")
    );
    assert!(
        bad(Transform::CovMatrix, &[1.0, 2.0, 2.0, 1.0], 2, 2)
            .expected
            .contains("positive definite")
    );
    assert_eq!(
        bad(Transform::CorrMatrix, &[1.0, 0.1, 0.2, 1.0], 2, 2).element,
        Some(2)
    );
    assert_eq!(
        bad(Transform::CholeskyFactorCov, &[1.0, 0.1, 0.2, 1.0], 2, 2).element,
        Some(2)
    );
}

#[test]
fn tails_stay_finite() {
    for z in [-700.0, -40.0, 40.0, 700.0] {
        let (x, jacobian) = constrain(
            &Transform::LowerUpper(Limit::All(0.0), Limit::All(1.0)),
            &[z],
            1,
            1,
        );
        assert!((0.0..=1.0).contains(&x[0]) && jacobian.is_finite(), "{z}");
        let (x, jacobian) = constrain(&Transform::Simplex, &[z, -z], 3, 1);
        assert!(
            x.iter().all(|x| x.is_finite()) && jacobian.is_finite(),
            "{z}"
        );
        let (x, jacobian) = constrain(&Transform::CholeskyFactorCorr, &[z], 2, 2);
        assert!(
            x.iter().all(|x| x.is_finite()) && jacobian.is_finite(),
            "{z}"
        );
    }
}
