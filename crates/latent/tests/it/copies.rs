//! Compares copies of fields with dense covariances, separate fits and finite differences.

use jensen_latent::prior::{Assembled, Spec, Units, assemble};
use jensen_latent::{
    Covariance, Dense, Design, Fit, LatentModel, Likelihood, Observations, SiteBound, Structure,
    predict,
};

use crate::assemble::TestTable;
use crate::common::{close, converged, noise};

/// Times in years, which have copies 0 to 3, of which no row uses copy 2.
const TIMES: [f64; 14] = [
    0.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 0.0, 4.0, 3.0, 0.0, 1.0, 2.0, 4.0,
];
const YEARS: [f64; 14] = [
    2000.0, 2000.0, 2000.0, 2000.0, 2000.0, 2001.0, 2001.0, 2001.0, 2001.0, 2003.0, 2003.0, 2003.0,
    2003.0, 2003.0,
];

fn table(times: &[f64], years: &[f64]) -> TestTable {
    TestTable::default().with("t", times).with("year", years)
}

fn made(prior: &str, table: &TestTable, count: usize) -> Result<Assembled, String> {
    let rows: Vec<usize> = (0..count).collect();
    let spec = Spec::parse(prior).unwrap();
    assemble(&spec, table, &rows, Units::TABLE).map_err(|e| e.to_string())
}

fn model(made: &Assembled, theta: &[f64], likelihood: Likelihood, y: &[f64]) -> LatentModel {
    LatentModel {
        prior: made.prior().structure(theta).unwrap(),
        design: made.design(),
        likelihood,
        bound: SiteBound::Exact,
        observations: Observations::new(y.to_vec()),
    }
}

fn counts(n: usize) -> Vec<f64> {
    (0..n).map(|i| (6.0 * noise(i)).floor()).collect()
}

/// A field with `group=` has the covariance of the single field times the correlation of the copies.
#[test]
fn groups_have_the_covariance_of_an_autoregression() {
    let rows = TIMES.len();
    let found = made(
        "ar1(on=t, rho~0.5, variance~1, group=year, group_rho~0.5)",
        &table(&TIMES, &YEARS),
        rows,
    )
    .unwrap();
    let names: Vec<String> = found.settings().into_iter().map(|s| s.name).collect();
    assert_eq!(names, ["ar1.rho", "ar1.variance", "ar1.group_rho"]);
    let (rho, variance, between): (f64, f64, f64) = (-0.6, 1.7, 0.8);
    let dense = Dense::from_fn(rows, rows, |i, j| {
        let steps = (TIMES[i] - TIMES[j]).abs() as i32;
        let years = (YEARS[i] - YEARS[j]).abs() as i32;
        variance * rho.powi(steps) * between.powi(years)
    });
    for (likelihood, y) in [
        (Likelihood::gaussian(0.3), (0..rows).map(noise).collect()),
        (Likelihood::poisson(), counts(rows)),
    ] {
        let sparse = model(&found, &[rho, variance, between], likelihood, &y);
        let exact = LatentModel {
            prior: Structure {
                mean: vec![0.0; rows],
                covariance: Covariance::Dense(dense.clone()),
            },
            design: Design::Identity,
            ..sparse.clone()
        };
        let (fit, wanted) = (converged(&sparse), converged(&exact));
        close("bound", &[fit.bound], &[wanted.bound], 1e-6);
        close("mean", &fit.predictor_mean, &wanted.predictor_mean, 1e-5);
        close(
            "variance",
            &fit.predictor_variance,
            &wanted.predictor_variance,
            1e-5,
        );
    }
}

/// Exchangeable copies have the covariance of the single field times 1 or the correlation. Their column may have words.
#[test]
fn exchangeable_copies_have_one_correlation() {
    let rows = TIMES.len();
    let names = YEARS.map(|year| match year {
        2000.0 => "c",
        2001.0 => "a",
        _ => "b",
    });
    let known = table(&TIMES, &YEARS).with_words("name", &names);
    for column in ["year", "name"] {
        let prior =
            format!("ar1(on=t, rho~0.5, variance~1, group={column}, group_model=exchangeable)");
        let found = made(&prior, &known, rows).unwrap();
        let names: Vec<String> = found.settings().into_iter().map(|s| s.name).collect();
        assert_eq!(names, ["ar1.rho", "ar1.variance", "ar1.group_rho"]);
        let (rho, variance, between): (f64, f64, f64) = (-0.6, 1.7, 0.35);
        let dense = Dense::from_fn(rows, rows, |i, j| {
            let steps = (TIMES[i] - TIMES[j]).abs() as i32;
            let shared = if YEARS[i] == YEARS[j] { 1.0 } else { between };
            variance * rho.powi(steps) * shared
        });
        let likelihood = Likelihood::gaussian(0.3);
        let y: Vec<f64> = (0..rows).map(noise).collect();
        let sparse = model(&found, &[rho, variance, between], likelihood, &y);
        let exact = LatentModel {
            prior: Structure {
                mean: vec![0.0; rows],
                covariance: Covariance::Dense(dense),
            },
            design: Design::Identity,
            ..sparse.clone()
        };
        let (fit, wanted) = (converged(&sparse), converged(&exact));
        close("bound", &[fit.bound], &[wanted.bound], 1e-6);
        let (means, wanted_means) = (&fit.predictor_mean, &wanted.predictor_mean);
        close("mean", means, wanted_means, 1e-6);
        let (own, other) = (&fit.predictor_variance, &wanted.predictor_variance);
        close("variance", own, other, 1e-6);
    }
}

/// The prior of the correlation of exchangeable copies has all its mass between 0 and 1.
#[test]
fn exchangeable_copies_have_a_positive_correlation() {
    let known = table(&TIMES, &YEARS);
    let found = made(
        "rw1(on=t, group=year, group_model=exchangeable)",
        &known,
        14,
    )
    .unwrap();
    let prior = found.prior().parameters();
    let rho = prior.last().unwrap();
    assert_eq!(rho.range, jensen_latent::Range::Between(0.0, 1.0));
    let steps = 200_000;
    let mass: f64 = (0..steps)
        .map(|i| {
            let value = (f64::from(i) + 0.5) / f64::from(steps);
            rho.density.at(value).0.exp() / f64::from(steps)
        })
        .sum();
    // The density has an integrable pole at 1.
    assert!((mass - 1.0).abs() < 0.01, "{mass}");
}

/// Independent copies at given hyperparameters are separate fits, for proper and intrinsic fields, at known and new times.
#[test]
fn replicates_are_separate_fits() {
    let groups = [
        0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0,
    ];
    // Uneven times make `ar1` a process in continuous time, with exact predictions between its nodes.
    let uneven: Vec<f64> = (0..14)
        .map(|i| f64::from(i) + 0.4 * noise(i as usize))
        .collect();
    let new = [2.2, 2.2, 7.1, 7.3, 20.0, -3.0];
    for (prior, theta, times, at) in [
        (
            "rw2(on=t, from=0, to=4KEY)",
            vec![2.5],
            TIMES.to_vec(),
            vec![0.0, 1.0, 3.0, 4.0, 2.0, 2.0],
        ),
        ("ar1(on=t, step=1KEY)", vec![0.7, 1.2], uneven, new.to_vec()),
    ] {
        let y = counts(14);
        let at_group = [0.0, 1.0, 1.0, 0.0, 0.0, 1.0];
        let run = |prior: &str, own: &dyn Fn(f64) -> bool| -> (Fit, Vec<(f64, f64)>) {
            let pick = |values: &[f64], groups: &[f64]| -> Vec<f64> {
                let both = values.iter().zip(groups);
                both.filter(|(_, g)| own(**g)).map(|(x, _)| *x).collect()
            };
            let (t, g) = (pick(&times, &groups), pick(&groups, &groups));
            let known = TestTable::default().with("t", &t).with("g", &g);
            let found = made(prior, &known, t.len()).unwrap();
            let model = model(&found, &theta, Likelihood::poisson(), &pick(&y, &groups));
            let fit = converged(&model);
            let (t, g) = (pick(&at, &at_group), pick(&at_group, &at_group));
            let there = TestTable::default().with("t", &t).with("g", &g);
            let rows: Vec<usize> = (0..t.len()).collect();
            let (query, fresh) = found.query(&theta, &there, &rows).unwrap();
            let new = predict(&model, &fit.warm(), &query).unwrap();
            let added = fresh.added();
            let new = new
                .into_iter()
                .zip(added)
                .map(|((m, v), more)| (m, v + more));
            (fit, new.collect())
        };
        let both = run(&prior.replace("KEY", ", replicate=g"), &|_| true);
        let alone = [0.0, 1.0].map(|g| run(&prior.replace("KEY", ""), &|own| own == g));
        close(
            "bound",
            &[both.0.bound],
            &[alone[0].0.bound + alone[1].0.bound],
            1e-6,
        );
        for (k, g) in [0.0, 1.0].iter().enumerate() {
            let own = |list: &[f64], groups: &[f64]| -> Vec<f64> {
                let both = list.iter().zip(groups);
                both.filter(|(_, other)| *other == g)
                    .map(|(x, _)| *x)
                    .collect()
            };
            let (fit, new) = &alone[k];
            close(
                "mean",
                &own(&both.0.predictor_mean, &groups),
                &fit.predictor_mean,
                1e-5,
            );
            close(
                "variance",
                &own(&both.0.predictor_variance, &groups),
                &fit.predictor_variance,
                1e-5,
            );
            let (means, variances): (Vec<f64>, Vec<f64>) = both.1.iter().copied().unzip();
            let (wanted, spread): (Vec<f64>, Vec<f64>) = new.iter().copied().unzip();
            close("new mean", &own(&means, &at_group), &wanted, 1e-5);
            close("new variance", &own(&variances, &at_group), &spread, 1e-5);
        }
    }
}

/// Beside a common level, one direction of the copies' levels belongs to both terms. Constraining it does not change the
/// rows or the differences of the evidence.
#[test]
fn copies_stand_beside_a_level() {
    // Every copy has rows.
    let years = YEARS.map(|year| year.min(2002.0));
    let known = table(&TIMES, &years);
    for (keys, thetas) in [
        ("replicate=year", [vec![2.0], vec![0.3]]),
        ("group=year", [vec![2.0, 0.3], vec![0.4, 0.9]]),
    ] {
        let fits = ["", "intercept(variance=1e6) + "].map(|level| {
            let prior = format!("{level}rw1(on=t, {keys})");
            let found = made(&prior, &known, 14).unwrap();
            assert_eq!(
                found.notes.len(),
                usize::from(!level.is_empty()),
                "{:?}",
                found.notes
            );
            let y = counts(14);
            thetas
                .each_ref()
                .map(|theta| converged(&model(&found, theta, Likelihood::poisson(), &y)))
        });
        let [alone, beside] = &fits;
        close(
            "mean",
            &beside[0].predictor_mean,
            &alone[0].predictor_mean,
            1e-3,
        );
        close(
            "evidence",
            &[beside[1].bound - beside[0].bound],
            &[alone[1].bound - alone[0].bound],
            1e-3,
        );
    }
}

#[test]
fn copies_have_their_derivatives() {
    let known = table(&TIMES, &YEARS);
    for (prior, theta) in [
        ("ar1(on=t, group=year)", vec![0.4, 1.3, -0.3]),
        ("ar1(on=t, replicate=year)", vec![0.4, 1.3]),
        ("rw2(on=t, group=year)", vec![0.8, 0.6]),
        ("intercept() + rw1(on=t, group=year)", vec![0.8, 0.6]),
        (
            "intercept() + te(on=(t, year), basis=4, replicate=t)",
            vec![0.8, 0.6],
        ),
        ("rw1(on=t, group=year, group_rho=0.5)", vec![0.8]),
        (
            "ar1(on=t, group=year, group_model=exchangeable)",
            vec![0.4, 1.3, 0.3],
        ),
        (
            "intercept() + rw1(on=t, group=year, group_model=exchangeable)",
            vec![0.8, 0.6],
        ),
    ] {
        let found = made(prior, &known, 14).unwrap();
        crate::prior::check_gradient(found.prior(), &theta);
    }
    let uneven: Vec<f64> = TIMES
        .iter()
        .enumerate()
        .map(|(i, t)| t + 0.3 * noise(i))
        .collect();
    let found = made("ar1(on=t, group=year)", &table(&uneven, &YEARS), 14).unwrap();
    crate::prior::check_gradient(found.prior(), &[0.4, 1.3, 0.7]);
    let mesh = "mesh(spde, on=(t, s), edge=3, extension=3, group=year)";
    let rest: Vec<f64> = (0..14).map(|i| 5.0 * noise(i)).collect();
    let found = made(mesh, &table(&uneven, &YEARS).with("s", &rest), 14).unwrap();
    crate::prior::check_gradient(found.prior(), &[0.9, 1.3, 0.7]);
}

#[test]
fn mistakes_name_the_way_out() {
    let known = table(&TIMES, &YEARS).with_words("name", &["a"; 14]);
    for (prior, message) in [
        (
            "rw1(on=t, replicate=year, group=year)",
            "either `replicate` or `group`",
        ),
        (
            "rw1(on=t, group_rho=0.5)",
            "`group_rho` needs `group=COLUMN`",
        ),
        (
            "rw1(on=t, replicate=year, group_model=exchangeable)",
            "`group_model` needs `group=COLUMN`",
        ),
        (
            "rw1(on=t, group=year, group_model=rw3)",
            "there is no model `rw3` of copies; choose one of `ar1`, `exchangeable`, `iid`",
        ),
        (
            "rw1(on=t, group=year, group_model=exchangeable, group_rho=-0.1)",
            "must be between 0 and 1",
        ),
        (
            "iid(on=t, replicate=year)",
            "a column that combines both groups",
        ),
        (
            "fixed(t, replicate=year)",
            "`replicate` and `group` are for",
        ),
        (
            "bym2(graph=path, on=t, replicate=year)",
            "`icar(…) + iid(…)`",
        ),
        ("rw1(on=t, group=name)", "name"),
    ] {
        let error = made(prior, &known, 14).err().unwrap();
        assert!(error.contains(message), "{prior}: {error}");
    }
    let uneven: Vec<f64> = YEARS
        .iter()
        .enumerate()
        .map(|(i, t)| t + noise(i))
        .collect();
    let error = made("rw1(on=t, group=year)", &table(&TIMES, &uneven), 14)
        .err()
        .unwrap();
    assert!(error.contains("not evenly spaced"), "{error}");
    let found = made("rw1(on=t, replicate=year)", &known, 14).unwrap();
    let error = found
        .query(&[1.0], &table(&[1.0], &[2002.0]), &[0])
        .err()
        .unwrap();
    assert!(error.to_string().contains("no copy of the term"), "{error}");
}
