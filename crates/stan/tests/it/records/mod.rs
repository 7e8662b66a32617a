//! Tests programs over exchangeable records. The prior and the likelihood are compared with the ordinary density, a
//! minibatch is compared with the program on the records of the batch alone, and some programs must be rejected.

mod ways;

use std::path::Path;

use crate::support::{bind, corpus};
use jensen_density::{
    AllRecords, Group, Lanes, LanesMut, LogDensity, PredictorScratch, RecordDensity,
    TwiceDifferentiable,
};
use jensen_graph::{Execution, GraphDensity, RecordGraph};
use jensen_stan::interpret::{BoundModel, ErrorKind};
use jensen_stan::lower::{LowerError, LowerOptions, LoweredRecords, lower, lower_records};
use jensen_stan::program::SizedType;
use serde_json::Value;

const LANES: usize = 3;

fn read(path: &Path, name: &str) -> String {
    std::fs::read_to_string(path.join(name)).unwrap_or_else(|_| "{}".into())
}

fn number(k: usize) -> f64 {
    0.8 * (k as f64 * 0.737_373 + 0.21).sin()
}

struct Results {
    values: Vec<f64>,
    gradients: Vec<f64>,
    products: Vec<f64>,
}

fn evaluate<D: TwiceDifferentiable>(density: &D, z: &[f64], v: &[f64]) -> Results {
    let dim = density.dim();
    let lanes = z.len() / dim;
    let mut ws = density.workspace(lanes);
    let mut results = Results {
        values: vec![0.0; lanes],
        gradients: vec![0.0; dim * lanes],
        products: vec![0.0; dim * lanes],
    };
    let z = Lanes::new(z, dim, lanes);
    let gradients = LanesMut::new(&mut results.gradients, dim, lanes);
    density.value_grad(&mut ws, z, &mut results.values, gradients);
    let v = Lanes::new(v, dim, lanes);
    density.hvp(
        &mut ws,
        z,
        v,
        LanesMut::new(&mut results.products, dim, lanes),
    );
    results
}

fn differs(found: &[f64], expected: &[f64]) -> Option<(usize, f64, f64)> {
    let scale = expected
        .iter()
        .filter(|x| x.is_finite())
        .fold(1.0, |m: f64, x| m.max(x.abs()));
    found
        .iter()
        .zip(expected)
        .enumerate()
        .find(|(_, (a, b))| {
            let equal = (a.is_nan() && b.is_nan()) || a == b;
            let gap = (**a - **b).abs();
            !equal && (gap.is_nan() || gap > 1e-10 * scale)
        })
        .map(|(i, (a, b))| (i, *a, *b))
}

fn points(dim: usize, lanes: usize, scale: f64) -> (Vec<f64>, Vec<f64>) {
    let z = (0..dim * lanes)
        .map(|k| scale * number(k * 3 + 1))
        .collect();
    let v = (0..dim * lanes).map(|k| number(k * 5 + 2)).collect();
    (z, v)
}

fn records_of(lowered: &LoweredRecords) -> RecordGraph {
    RecordGraph::new(&lowered.prior, &lowered.likelihood, Execution::default())
}

fn check_whole(model: &BoundModel, lowered: &LoweredRecords) -> Result<(), String> {
    let whole = lower(model, LowerOptions::default()).map_err(|e| e.to_string())?;
    let whole = GraphDensity::new(&whole.graph, Execution::default());
    let parts = AllRecords::new(records_of(lowered));
    let (z, v) = points(whole.dim(), LANES, 0.5);
    let (a, b) = (evaluate(&parts, &z, &v), evaluate(&whole, &z, &v));
    for (what, a, b) in [
        ("value", &a.values, &b.values),
        ("gradient", &a.gradients, &b.gradients),
        ("product", &a.products, &b.products),
    ] {
        if let Some((i, a, b)) = differs(a, b) {
            return Err(format!("{what} {i}: {a} instead of {b}"));
        }
    }
    if b.values.iter().all(|x| x.is_finite()) {
        Ok(())
    } else {
        Err("no finite value was compared".into())
    }
}

/// If the likelihood is a function of linear predictors, compares this function with the likelihood of a batch. Returns
/// the number of linear predictors.
fn check_linear(lowered: &LoweredRecords) -> Result<Option<usize>, String> {
    let records = records_of(lowered);
    let Some(linear) = records.linear() else {
        return Ok(None);
    };
    let n = lowered.records as u32;
    let batch = [3 % n, 1 % n, 4 % n, 1 % n, n - 1, 0];
    let (dim, rows) = (records.dim(), batch.len() * linear.width());
    let (z, v) = points(dim, LANES, 0.5);
    let (z, v) = (Lanes::new(&z, dim, LANES), Lanes::new(&v, dim, LANES));
    let mut ws = records.workspace(LANES, batch.len());
    let mut expected = Results {
        values: vec![0.0; LANES],
        gradients: vec![0.0; dim * LANES],
        products: vec![0.0; dim * LANES],
    };
    let out = LanesMut::new(&mut expected.gradients, dim, LANES);
    records.batch_value_grad(&mut ws, &batch, z, &mut expected.values, out);
    let out = LanesMut::new(&mut expected.products, dim, LANES);
    records.batch_hvp(&mut ws, &batch, z, v, out);
    let mut found = Results {
        values: vec![0.0; LANES],
        gradients: vec![0.0; dim * LANES],
        products: vec![0.0; dim * LANES],
    };
    let mut scratch = PredictorScratch::default();
    let (mut eta, mut step, mut rest) = (
        vec![0.0; rows * LANES],
        vec![0.0; rows * LANES],
        vec![0.0; rows * LANES],
    );
    linear.project(
        &mut scratch,
        &[0],
        z,
        LanesMut::new(&mut eta[..linear.width() * LANES], linear.width(), LANES),
    );
    linear.project(
        &mut scratch,
        &batch,
        z,
        LanesMut::new(&mut eta, rows, LANES),
    );
    linear.project(
        &mut scratch,
        &batch,
        v,
        LanesMut::new(&mut step, rows, LANES),
    );
    let eta = Lanes::new(&eta, rows, LANES);
    linear.link_value(&batch, eta, &mut found.values);
    linear.link_gradient(&batch, eta, LanesMut::new(&mut rest, rows, LANES));
    let out = LanesMut::new(&mut found.gradients, dim, LANES);
    linear.adjoint(&mut scratch, &batch, Lanes::new(&rest, rows, LANES), out);
    let step = Lanes::new(&step, rows, LANES);
    linear.link_curvature(&batch, eta, step, LanesMut::new(&mut rest, rows, LANES));
    let out = LanesMut::new(&mut found.products, dim, LANES);
    linear.adjoint(&mut scratch, &batch, Lanes::new(&rest, rows, LANES), out);
    for (what, found, expected) in [
        ("value", &found.values, &expected.values),
        ("gradient", &found.gradients, &expected.gradients),
        ("product", &found.products, &expected.products),
    ] {
        if let Some((i, a, b)) = differs(found, expected) {
            return Err(format!("linear {what} {i}: {a} instead of {b}"));
        }
    }
    Ok(Some(linear.width()))
}

fn counts(model: &BoundModel) -> Vec<String> {
    let program = model.program();
    program
        .data
        .iter()
        .filter(|decl| decl.ty == SizedType::Int)
        .map(|decl| program.var(decl.var).name.clone())
        .collect()
}

fn refusal(model: &BoundModel, error: &LowerError) -> String {
    format!("{}: {error}", model.program().location(error.span))
}

/// Tries every program of the corpus with every variable that could be the number of records. If the prior and the
/// likelihood can be separated, their sum must be the density. Otherwise Jensen must give the reason.
#[test]
fn the_corpus_comes_apart_or_says_why() {
    let paths = corpus::folders_with("model.stan");
    let (mut apart, mut linear, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for path in &paths {
        let name = path
            .strip_prefix(corpus::root())
            .expect("a model")
            .display()
            .to_string();
        let Ok(model) = bind(&read(path, "model.stan"), &read(path, "data.json")) else {
            continue;
        };
        for count in counts(&model) {
            match lower_records(&model, LowerOptions::default(), &count) {
                Ok(lowered) => {
                    match check_whole(&model, &lowered) {
                        Ok(()) => apart.push(format!("{name} by {count}")),
                        Err(error) => wrong.push(format!("{name} by {count}: {error}")),
                    }
                    match check_linear(&lowered) {
                        Ok(Some(width)) => linear.push((format!("{name} by {count}"), width)),
                        Ok(None) => {}
                        Err(error) => wrong.push(format!("{name} by {count}: {error}")),
                    }
                }
                Err(error) => {
                    println!("{name} by {count}: {}", refusal(&model, &error));
                    if !matches!(error.kind, ErrorKind::Records | ErrorKind::Unsupported) {
                        wrong.push(format!(
                            "{name} by {count}: {:?} {}",
                            error.kind,
                            refusal(&model, &error)
                        ));
                    }
                }
            }
        }
    }
    println!("{} apart:\n{}", apart.len(), apart.join("\n"));
    println!("{} of linear predictors: {linear:?}", linear.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (expected, width) in [
        ("wells_logit by N", 1),
        ("nes_vote_logit by N", 1),
        ("separation_cauchy by N", 1),
        ("beetles_probit by N", 1),
        ("diamonds_glm by N", 2),
        ("kidscore_interaction by N", 2),
        ("radon_no_pooling by N", 2),
    ] {
        let found = linear.iter().find(|(name, _)| name == expected);
        assert_eq!(found.map(|found| found.1), Some(width), "{expected}");
    }
    for expected in [
        "kidscore_interaction by N",
        "wells_logit by N",
        "kidscore_momwork by N",
        "radon_group_noncentred by N",
        "diamonds_glm by N",
        "election88_states by N",
        "roaches_negbin by N",
        "hearts_zero_inflated by N",
        "eyes_mixture by N",
        "gauss_mix_ordered by N",
        "mixture_three_components by N",
    ] {
        assert!(apart.iter().any(|found| found == expected), "{expected}");
    }
}

fn model(name: &str) -> BoundModel {
    let path = corpus::root().join(name);
    bind(&read(&path, "model.stan"), &read(&path, "data.json")).expect("a model with its data")
}

fn apart(model: &BoundModel, count: &str) -> LoweredRecords {
    lower_records(model, LowerOptions::default(), count)
        .unwrap_or_else(|error| panic!("{}", refusal(model, &error)))
}

/// The outcomes are categories in a loop, and the transformed data contain the number of categories.
#[test]
fn transformed_data_may_count_the_records() {
    let model = model("alli_categorical");
    check_whole(&model, &apart(&model, "N")).expect("prior and likelihood add up");
}

#[test]
fn programs_whose_records_interact_say_where() {
    for (name, count, line, reason) in [
        ("ar_k", "T", 16, "some of the records"),
        ("garch_1_1", "T", 20, "not a sum over records"),
        ("hmm_gaussian", "N", 15, "another one"),
        ("gp_regression", "N", 16, "every pair of records"),
        ("dyes_variance_components", "BATCHES", 9, "is `BATCHES`"),
        (
            "dyes_variance_components",
            "SAMPLES",
            4,
            "no data variable has the size",
        ),
        ("kidscore_interaction", "kid_score", 4, "not a single `int`"),
    ] {
        let model = model(name);
        let error = lower_records(&model, LowerOptions::default(), count)
            .expect_err("records that interact");
        let text = refusal(&model, &error);
        assert_eq!(error.kind, ErrorKind::Records, "{name}: {text}");
        assert!(text.contains(&format!(":{line}:")), "{name}: {text}");
        assert!(text.contains(reason), "{name}: {text}");
    }
    let model = model("kidscore_interaction");
    let error = lower_records(&model, LowerOptions::default(), "M").expect_err("no such data");
    assert!(error.message.contains("count the records: `N`"), "{error}");
}

fn subset(data: &str, count: &str, batch: &[u32]) -> String {
    let mut data: Value = serde_json::from_str(data).expect("JSON");
    let records = data[count].as_u64().expect("a number of records") as usize;
    let object = data.as_object_mut().expect("named data");
    for value in object.values_mut() {
        if let Value::Array(list) = value
            && list.len() == records
        {
            *list = batch.iter().map(|r| list[*r as usize].clone()).collect();
        }
    }
    object.insert(count.into(), batch.len().into());
    data.to_string()
}

/// A batch, whose records may repeat, equals the program on these records alone, minus the prior.
#[test]
fn a_batch_is_the_program_on_its_records() {
    let batch = [3, 1, 4, 1, 5, 0];
    for name in [
        "kidscore_interaction",
        "roaches_negbin",
        "hearts_zero_inflated",
        "eyes_mixture",
        "gauss_mix_ordered",
        "radon_pooled",
        "radon_intercept_centred",
    ] {
        let path = corpus::root().join(name);
        let (source, data) = (read(&path, "model.stan"), read(&path, "data.json"));
        let model = bind(&source, &data).expect("a model");
        let records = records_of(&apart(&model, "N"));
        let few = bind(&source, &subset(&data, "N", &batch)).expect("a smaller model");
        let few = lower(&few, LowerOptions::default()).expect("a graph");
        let few = GraphDensity::new(&few.graph, Execution::default());
        let dim = records.dim();
        let (z, v) = points(dim, LANES, 0.5);
        let whole = evaluate(&few, &z, &v);
        let prior = evaluate(records.prior(), &z, &v);
        let (z, v) = (Lanes::new(&z, dim, LANES), Lanes::new(&v, dim, LANES));
        let mut ws = records.workspace(LANES, batch.len());
        let mut found = Results {
            values: vec![0.0; LANES],
            gradients: vec![0.0; dim * LANES],
            products: vec![0.0; dim * LANES],
        };
        // Another batch is evaluated first, to test that the program binds the records of the current batch.
        let gradients = LanesMut::new(&mut found.gradients, dim, LANES);
        records.batch_value_grad(&mut ws, &[2], z, &mut found.values, gradients);
        let gradients = LanesMut::new(&mut found.gradients, dim, LANES);
        records.batch_value_grad(&mut ws, &batch, z, &mut found.values, gradients);
        let products = LanesMut::new(&mut found.products, dim, LANES);
        records.batch_hvp(&mut ws, &batch, z, v, products);
        let minus =
            |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
        for (what, found, whole, prior) in [
            ("value", &found.values, &whole.values, &prior.values),
            (
                "gradient",
                &found.gradients,
                &whole.gradients,
                &prior.gradients,
            ),
            ("product", &found.products, &whole.products, &prior.products),
        ] {
            let difference = differs(found, &minus(whole, prior));
            assert_eq!(difference, None, "{name}: {what}");
        }
        let mut values = vec![1.0; LANES];
        records.batch_value(&mut ws, &[], z, &mut values);
        assert_eq!(values, [0.0; LANES], "{name}: an empty batch");
        check_pairs(&records, z, v);
    }
}

fn check_pairs(records: &RecordGraph, z: Lanes<'_>, v: Lanes<'_>) {
    let (dim, pairs) = (z.rows(), [2, 0, 2]);
    let mut ws = records.workspace(LANES, 1);
    let mut values = vec![0.0; LANES];
    let (mut gradients, mut products) = (vec![0.0; dim * LANES], vec![0.0; dim * LANES]);
    let view = LanesMut::new(&mut gradients, dim, LANES);
    records.paired_value_grad(&mut ws, &pairs, z, &mut values, view);
    let view = LanesMut::new(&mut products, dim, LANES);
    records.paired_hvp(&mut ws, &pairs, z, v, view);
    for (lane, record) in pairs.into_iter().enumerate() {
        let mut value = vec![0.0; LANES];
        let (mut gradient, mut product) = (vec![0.0; dim * LANES], vec![0.0; dim * LANES]);
        let view = LanesMut::new(&mut gradient, dim, LANES);
        records.batch_value_grad(&mut ws, &[record], z, &mut value, view);
        let view = LanesMut::new(&mut product, dim, LANES);
        records.batch_hvp(&mut ws, &[record], z, v, view);
        assert!((values[lane] - value[lane]).abs() <= 1e-12 * value[lane].abs().max(1.0));
        for row in 0..dim {
            let at = row * LANES + lane;
            assert!((gradients[at] - gradient[at]).abs() <= 1e-12 * gradient[at].abs().max(1.0));
            assert!((products[at] - product[at]).abs() <= 1e-12 * product[at].abs().max(1.0));
        }
    }
}

#[test]
fn groups_add_gradients_and_products() {
    let model = model("hearts_zero_inflated");
    let records = records_of(&apart(&model, "N"));
    let dim = records.dim();
    let (points, v) = points(dim, 2, 0.5);
    let v = &v[..dim];
    let groups = [
        Group {
            records: &[0, 3],
            point: &points[..dim],
        },
        Group {
            records: &[5],
            point: &points[dim..],
        },
    ];
    let (mut grad, mut product) = (vec![1.0; dim], vec![2.0; dim]);
    let mut ws = records.workspace(1, 3);
    records.grouped(&mut ws, &groups, v, &mut grad, &mut product);
    let (mut expected, mut products) = (vec![1.0; dim], vec![2.0; dim]);
    for group in groups {
        let z = Lanes::new(group.point, dim, 1);
        let mut part = vec![0.0; dim];
        let view = LanesMut::new(&mut part, dim, 1);
        records.batch_value_grad(&mut ws, group.records, z, &mut [0.0], view);
        expected.iter_mut().zip(&part).for_each(|(e, p)| *e += p);
        let view = LanesMut::new(&mut part, dim, 1);
        records.batch_hvp(&mut ws, group.records, z, Lanes::new(v, dim, 1), view);
        products.iter_mut().zip(&part).for_each(|(e, p)| *e += p);
    }
    assert_eq!(differs(&grad, &expected), None);
    assert_eq!(differs(&product, &products), None);
}

#[test]
fn the_support_of_a_batch_is_where_its_gradient_is() {
    let model = model("radon_intercept_centred");
    let records = records_of(&apart(&model, "N"));
    let (dim, batch) = (records.dim(), [0, 5, 9, 300]);
    let mut support = Vec::new();
    assert!(records.support(&batch, &mut support));
    assert!(support.len() < 10, "{support:?}");
    let (z, _) = points(dim, 1, 0.5);
    let mut gradient = vec![0.0; dim];
    let view = LanesMut::new(&mut gradient, dim, 1);
    let mut ws = records.workspace(1, batch.len());
    records.batch_value_grad(&mut ws, &batch, Lanes::new(&z, dim, 1), &mut [0.0], view);
    let touched: Vec<u32> = (0..dim as u32)
        .filter(|i| gradient[*i as usize] != 0.0)
        .collect();
    assert_eq!(touched, support);
}
