//! Tests of the path from a program to its outputs, which use only the library.

use jensen::blackbox::RefineWhen;
use jensen::prelude::*;
use jensen::report::{Section, Tone};
use jensen::run::{Clock, Record};
use jensen::{About, HistoryPoint};

fn compile(source: &str) -> Model {
    Model::compile(source, "model.stan", &DataSet::new(), &Build::default()).unwrap()
}

#[test]
fn rejected_draws_are_left_out_and_reported() {
    let model = compile(
        "parameters { real x; } model { x ~ normal(0, 1); }
         generated quantities { if (x > 1) reject(\"x is \", x); real y = 2 * x; }",
    );
    let fitted = fit(&model, &Options::default()).unwrap();
    assert!(fitted.fit.trusted(), "the approximation itself is exact");
    assert!(!fitted.trusted());
    let (kept, rejected) = (fitted.sample.table.len(), fitted.sample.rejected);
    assert_eq!(kept + rejected, 1000);
    // The probability P(x > 1) is 0.159, and the observed fraction has a standard error of 0.012.
    assert!((110..210).contains(&rejected), "{rejected}");
    let warnings = fitted.warnings();
    assert!(warnings[0].contains("x is"), "{warnings:?}");
    assert!(fitted.parameters()[0].q95 <= 1.0);
}

#[test]
fn failing_generated_quantities_do_not_cost_the_posterior() {
    let model = compile(
        "parameters { real x; } model { x ~ normal(0, 1); }
         generated quantities { array[2] int a = {1, 2}; int n = 3; real y = a[n]; }",
    );
    assert!(
        model.remarks()[0].contains("model.stan:2"),
        "{:?}",
        model.remarks()
    );
    let fitted = fit(&model, &Options::default()).unwrap();
    assert!(fitted.trusted());
    let summary = fitted.summary();
    assert_eq!(summary.parameters.len(), 1);
    assert_eq!(summary.warnings, model.remarks());
}

#[test]
fn moments_that_do_not_exist_are_not_reported() {
    for (program, heavy) in [
        ("parameters { real x; } model { x ~ cauchy(0, 1); }", true),
        (
            "parameters { real<lower=0> x; } model { x ~ lognormal(0, 3); }",
            true,
        ),
        ("parameters { real x; } model { x ~ normal(0, 1); }", false),
        (
            "parameters { real<lower=0> x; } model { x ~ gamma(0.5, 1); }",
            false,
        ),
    ] {
        for seed in 1..4 {
            let mut options = Options::default();
            options.settings.seed = seed;
            let fitted = fit(&compile(program), &options).unwrap();
            assert!(fitted.trusted(), "{program}: {:?}", fitted.warnings());
            let summary = fitted.summary();
            let x = &summary.parameters[0];
            assert_eq!(x.sd.is_nan(), heavy, "{program}: {x:?}");
            assert_eq!(x.undefined.is_some(), heavy, "{program}: {x:?}");
            assert!((x.q05 + x.q50 + x.q95).is_finite());
            assert_eq!(x.tail_khat.unwrap() > 0.5, heavy, "{x:?}");
            let said = summary
                .warnings
                .iter()
                .any(|text| text.contains("tail index"));
            assert_eq!(said, heavy, "{:?}", summary.warnings);
            let written = summary.to_json().unwrap();
            assert_eq!(written.contains("\"sd\": null"), heavy, "{written}");
        }
    }
}

#[test]
fn importance_resampling_moves_draws_towards_the_posterior() {
    // The posterior on the unconstrained scale is a Student t distribution, whose tails are longer than those of a
    // normal distribution.
    let model = compile("parameters { real x; } model { x ~ student_t(4, 0, 1); }");
    let spread = |resample: bool| {
        let options = Options::default().draws(20_000).resample(resample);
        let fitted = fit(&model, &options.refine(RefineWhen::Never)).unwrap();
        let draws = fitted.draws("x").unwrap();
        draws.element(0).filter(|x| x.abs() > 2.776).count() as f64 / draws.len() as f64
    };
    // The reference is the two-sided 5 % point of a t distribution with four degrees of freedom. The estimates have
    // standard errors of about 0.002.
    let (plain, resampled) = (spread(false), spread(true));
    assert!(plain < 0.04, "{plain}");
    assert!((resampled - 0.05).abs() < 0.008, "{resampled}");
}

#[test]
fn draws_and_summaries_are_found_by_name() {
    let model = compile(
        "parameters { real x; matrix[2, 3] m; } model { x ~ normal(3, 1); to_vector(m) ~ std_normal(); }",
    );
    let fitted = fit(&model, &Options::default().draws(50)).unwrap();
    let (x, m) = (fitted.draws("x").unwrap(), fitted.draws("m").unwrap());
    assert_eq!((x.shape(), x.len()), (&[][..], 50));
    assert_eq!(m.shape(), [2, 3]);
    // The elements are in column-major order, as are the columns of the table.
    assert!(m.element(1).eq(fitted.sample.table.column(2)));
    assert!(m.iter().all(|draw| draw.len() == 6));
    assert!((x.mean()[0] - fitted.parameter("x").unwrap().mean).abs() < 1.0);
    assert_eq!(fitted.parameter("m[2,3]").unwrap().name, "m[2,3]");
    let error = fitted.draws("y").unwrap_err().to_string();
    assert_eq!(
        error,
        "there is no variable `y`; the variables are `x`, `m`"
    );
}

#[test]
fn a_run_can_be_watched_and_limited() {
    let model =
        compile("parameters { vector[3] x; } model { x ~ normal(0, 1); sum(x) ~ normal(0, 0.1); }");
    let clock = || 0.0;
    assert_eq!(Clock::seconds(&clock), 0.0);
    let mut records: Vec<Record> = Vec::new();
    let control = Control::new(Budget::iterations(4), &clock, &mut records);
    let fitted = fit_with(&model, &Options::default(), control).unwrap();
    assert_eq!(records.len(), 4);
    assert!(!fitted.fit.converged());
    assert!(fitted.status_text().contains("4 iterations"));
    let points: Vec<HistoryPoint> = records.iter().filter_map(HistoryPoint::of).collect();
    assert_eq!(fitted.history, points);
    let report = fitted.report(&About::default());
    assert_ne!(report.verdict.tone, Tone::Good);
    let posterior = report.sections.iter().find_map(|section| match section {
        Section::Posterior(posterior) => Some(posterior),
        _ => None,
    });
    assert_eq!(posterior.unwrap().parameters.len(), 3);
    assert!(jensen::report::render(&report).contains("x[3]"));
}

#[test]
fn densities_of_the_program_and_of_the_trait_agree() {
    let model = compile("parameters { vector[2] z; } model { z ~ normal(1, 2); }");
    let point = vec![0.3, -0.4];
    let query = jensen::Query {
        points: std::slice::from_ref(&point),
        gradient: true,
        directions: None,
    };
    let answer = jensen::evaluate(model.density(), &query).unwrap();
    let expected: f64 = point
        .iter()
        .map(|z| {
            -0.5 * ((z - 1.0) / 2.0f64).powi(2) - 2.0f64.ln() - 0.5 * std::f64::consts::TAU.ln()
        })
        .sum();
    assert!((answer.value[0] - expected).abs() < 1e-14);
    let gradient = &answer.gradient.unwrap()[0];
    for (g, z) in gradient.iter().zip(&point) {
        assert!((g + (z - 1.0) / 4.0).abs() < 1e-15);
    }
    let bare = fit(&Bare::new(model.graph_density()), &Options::default());
    assert_eq!(bare.unwrap().parameters()[1].name, "z[2]");
}
