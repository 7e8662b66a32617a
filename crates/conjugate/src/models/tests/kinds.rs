//! Tests of components that combine columns of counts and categories with columns of numbers.

use super::*;

/// Draws rows of two groups, in which some values are missing.
fn parts(n: usize) -> (Gaussians, Poissons, Categoricals) {
    let mut s = stream(11);
    let (mut rates, mut categories) = (Vec::new(), Vec::new());
    for i in 0..n {
        let mean = if i % 3 == 0 { 9.0 } else { 1.5 };
        rates.push((mean + 2.0 * (s.uniform() - 0.5)).floor());
        let second = (4.0 * s.uniform()).floor();
        rates.push(if i % 7 == 2 { f64::NAN } else { second });
        let category = usize::from(i % 3 == 0) + usize::from(s.uniform() < 0.2);
        categories.push((i % 5 != 4).then_some(category));
    }
    (
        Gaussians::new(Covariance::Full, 2, plane(n)),
        Poissons::new(2, rates),
        Categoricals::new(&[3], 0.5, categories),
    )
}

pub(super) fn kinds(n: usize) -> SeveralKinds {
    let (gaussians, poissons, categoricals) = parts(n);
    SeveralKinds::new(vec![
        Box::new(gaussians),
        Box::new(poissons),
        Box::new(categoricals),
    ])
}

#[test]
fn energies_of_counts_and_categories_are_linear_in_their_statistics() {
    let counts = counts(10, 3);
    let constant = |point: usize| {
        let row = &counts[3 * point..3 * point + 3];
        -row.iter()
            .map(|x| jensen_math::special::lgamma(x + 1.0))
            .sum::<f64>()
    };
    let model = Mixture::new(Poissons::new(3, counts.clone()), 3, 1.0);
    statistics_give_the_energy(&model, constant);
    let some = |i: usize| (!i.is_multiple_of(5)).then_some(i % 3);
    let model = Mixture::new(
        Categoricals::new(&[3, 4], 0.5, (0..20).map(some).collect()),
        3,
        1.0,
    );
    statistics_give_the_energy(&model, |_| 0.0);
}

#[test]
fn powers_of_counts_and_categories_are_their_sums() {
    let all: Vec<f64> = (0..400).map(f64::from).collect();
    let dense = Poissons::new(1, all);
    for rate in [0.02f64, 1.0, 37.5] {
        let t = [rate.ln(), -rate];
        for s in [1.0, 0.4] {
            let terms: Vec<f64> = (0..400).map(|i| s * dense.log_density(&t, i)).collect();
            let sum = log_sum_exp_slice(&terms);
            assert!(
                (dense.log_power(&t, 1.0, s) - sum).abs() < 1e-10,
                "{rate} {s}"
            );
        }
        assert!(dense.log_power(&t, 1.0, 1.0).abs() < 1e-12);
    }
    // A wide distribution is Gaussian to one part in its rate. At s = 0 the sum is infinite.
    let rate = 1e8f64;
    let t = [rate.ln(), -rate];
    for s in [1.0, 0.3] {
        let wide = 0.5 * ((2.0 * std::f64::consts::PI * rate).ln() * (1.0 - s) - s.ln());
        assert!((dense.log_power(&t, 1.0, s) - wide).abs() < 1e-6, "{s}");
    }
    assert_eq!(dense.log_power(&t, 1.0, 0.0), f64::INFINITY);
    let t = [
        0.2f64.ln(),
        0.3f64.ln(),
        0.5f64.ln(),
        0.9f64.ln(),
        0.1f64.ln(),
    ];
    let categories = Categoricals::new(&[3, 2], 0.5, vec![Some(0), Some(1)]);
    assert!(categories.log_power(&t, 1.0, 1.0).abs() < 1e-12);
    let exact =
        (0.2f64.sqrt() + 0.3f64.sqrt() + 0.5f64.sqrt()).ln() + (0.9f64.sqrt() + 0.1f64.sqrt()).ln();
    assert!((categories.log_power(&t, 1.0, 0.5) - exact).abs() < 1e-12);
}

#[test]
fn predictions_of_several_kinds_are_products() {
    // If the rate has a Gamma posterior, counts are negative binomial.
    let model = Mixture::new(Poissons::new(1, vec![0.0, 3.0, 11.0]), 1, 1.0);
    let lambda = [1.0, 4.0, 0.8];
    let (a, b) = (4.0f64, 0.8f64);
    let predictive = model.predictive(&lambda);
    for (point, x) in [0.0, 3.0, 11.0].into_iter().enumerate() {
        let lgamma = jensen_math::special::lgamma;
        let exact = lgamma(a + x) - lgamma(a) - lgamma(x + 1.0) + a * (b / (b + 1.0)).ln()
            - x * (b + 1.0).ln();
        assert!((predictive.at(point)[0] - exact).abs() < 1e-12);
    }
    let all = kinds(30);
    let lambda = Mixture::new(&all, 1, 1.0).start(&mut stream(3));
    let (gaussians, poissons, categoricals) = parts(30);
    let of = |kind: usize| [&lambda[..1], all.of_kind(&lambda[1..], kind)].concat();
    for point in 0..30 {
        let parts = [
            Mixture::new(&gaussians, 1, 1.0)
                .predictive(&of(0))
                .at(point)[0],
            Mixture::new(&poissons, 1, 1.0).predictive(&of(1)).at(point)[0],
            Mixture::new(&categoricals, 1, 1.0)
                .predictive(&of(2))
                .at(point)[0],
        ];
        let whole = Mixture::new(&all, 1, 1.0).predictive(&lambda).at(point)[0];
        assert!((whole - parts.iter().sum::<f64>()).abs() < 1e-10);
    }
}

#[test]
fn missing_values_of_one_kind_leave_the_others() {
    let mut rows = plane(6);
    rows[3] = f64::NAN;
    let counts = vec![2.0, 1.0, 4.0, 0.0, 9.0, 3.0];
    let both = SeveralKinds::new(vec![
        Box::new(Gaussians::new(Covariance::Full, 2, rows.clone())),
        Box::new(Poissons::new(1, counts.clone())),
    ]);
    let model = Mixture::new(&both, 1, 1.0);
    let t = model.blocks().expectations(&model.start(&mut stream(5)));
    let mut found = Vec::new();
    let all = both
        .complete(model.component(&t, 0), 1, 1.0, &mut found)
        .unwrap();
    let gaussians = Gaussians::new(Covariance::Full, 2, rows);
    let mut own = Vec::new();
    let alone = gaussians
        .complete(both.of_kind(model.component(&t, 0), 0), 1, 1.0, &mut own)
        .unwrap();
    let of_count = Poissons::new(1, counts).log_density(both.of_kind(model.component(&t, 0), 1), 1);
    assert!((all.energy - alone.energy - of_count).abs() < 1e-12);
    assert!((all.log_integral - alone.log_integral - of_count).abs() < 1e-12);
    assert_eq!(found, [own, vec![1.0, 1.0]].concat());
}
