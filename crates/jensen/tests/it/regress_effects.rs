//! Tests that compare the effects of columns with the coefficients of a fit. The effects are curves and averages that
//! are computed from the folder of the fit.

use jensen::job::ResultFolder;
use jensen::regress::{
    Frame, FrameColumn, Regression, Request, curves, effects, predict, sensitivity,
};
use jensen::stan::Halt;

use crate::regress::{ROWS, compiled, fitted, mean, request, run, table};

#[test]
fn effects_of_a_linear_model_are_its_coefficients() {
    let desk = tempfile::tempdir().unwrap();
    let folder = desk.path().join("fit");
    let frame = table(1.0, 1.0);
    let fit = fitted(
        &request("gaussian", &["y ~ x + f + (1 | g)"]),
        &frame,
        ResultFolder::new(Some(&folder)),
    );
    let found = effects(&folder, &frame, 1, Halt::default()).unwrap();
    let of = |column: &str, contrast: &str| {
        let row = found
            .iter()
            .find(|e| e.column == column && e.contrast == contrast);
        row.unwrap_or_else(|| panic!("{column} {contrast}"))
            .estimate
    };
    // The tolerance is not smaller, because the summaries of the fit use more draws than the folder contains.
    for (column, contrast, label) in [
        ("x", "dY/dX", "b[x]"),
        ("f", "q - p", "b[fq]"),
        ("f", "r - p", "b[fr]"),
    ] {
        let (estimate, (b, sd)) = (of(column, contrast), mean(&fit, label));
        assert!(
            (estimate.mean - b).abs() < 0.12 * sd,
            "{label}: {} {b}",
            estimate.mean
        );
        assert!(
            (estimate.sd / sd - 1.0).abs() < 0.1,
            "{label}: {} {sd}",
            estimate.sd
        );
    }
    assert_eq!(found.len(), 3);
    // Without group effects, the curve of x at the first level of f is a straight line.
    let lines = curves(&folder, 1, Halt::default()).unwrap();
    let line = lines.iter().find(|line| line.column == "x").unwrap();
    let at = |point: usize| line.at[point].parse::<f64>().unwrap();
    for point in [0, 40] {
        let expected = mean(&fit, "Intercept").0 + at(point) * mean(&fit, "b[x]").0;
        let found = line.expected[point];
        assert!(
            (found.mean - expected).abs() < 0.12 * found.sd,
            "{} {expected}",
            found.mean
        );
        assert!(found.interval[0] < found.mean && found.mean < found.interval[1]);
    }
    // The curve and the average slope are computed from the same draws, so the line rises by the average slope.
    let rise = (line.expected[40].mean - line.expected[0].mean) / (at(40) - at(0));
    let slope = of("x", "dY/dX").mean;
    assert!((rise - slope).abs() < 1e-6 * slope.abs(), "{rise} {slope}");
    let report = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(report.contains("How does the response depend on each column?"));
}

#[test]
fn effects_of_probabilities_are_averages_over_rows() {
    let desk = tempfile::tempdir().unwrap();
    let folder = desk.path().join("fit");
    let frame = table(1.0, 1.0);
    fitted(
        &request("binomial", &["successes | trials(size) ~ x * f"]),
        &frame,
        ResultFolder::new(Some(&folder)),
    );
    let found = effects(&folder, &frame, 1, Halt::default()).unwrap();
    // The effect is the mean difference between the probabilities that are predicted for all rows at level p and for
    // all rows at level q.
    let predicted = |level: &str| {
        let lines = curves(&folder, 1, Halt::default()).unwrap();
        let line = lines.iter().find(|line| {
            line.column == "x"
                && line
                    .by
                    .as_ref()
                    .is_some_and(|(name, value)| name == "f" && value == level)
        });
        line.unwrap().expected.iter().map(|s| s.mean).sum::<f64>() / 41.0
    };
    let contrast = found
        .iter()
        .find(|e| e.contrast == "q - p")
        .unwrap()
        .estimate;
    // The rows are spread evenly over the range of x, as are the points of the curve.
    let expected = predicted("q") - predicted("p");
    assert!(
        (contrast.mean - expected).abs() < 0.02,
        "{} {expected}",
        contrast.mean
    );
    assert!(contrast.mean.abs() < 1.0 && contrast.sd > 0.0);
}

#[test]
fn categories_have_an_effect_each_and_these_sum_to_none() {
    let desk = tempfile::tempdir().unwrap();
    let folder = desk.path().join("fit");
    let frame = table(1.0, 1.0);
    fitted(
        &request("cumulative", &["grade ~ x"]),
        &frame,
        ResultFolder::new(Some(&folder)),
    );
    let found = effects(&folder, &frame, 1, Halt::default()).unwrap();
    let sum: f64 = found.iter().map(|e| e.estimate.mean).sum();
    assert!(found.len() > 2 && found.iter().all(|e| e.category.is_some()));
    assert!(sum.abs() < 1e-6, "{sum}");
    // Rows with larger values of x have higher grades.
    assert!(found[0].estimate.mean < 0.0 && found[found.len() - 1].estimate.mean > 0.0);
}

#[test]
fn a_prior_that_pulls_is_named_and_a_weak_one_is_not() {
    let frame = table(1.0, 1.0);
    let moved = |prior: &[&str]| {
        let asked = Request {
            priors: prior.iter().map(ToString::to_string).collect(),
            ..request("gaussian", &["y ~ x"])
        };
        let made = Regression::new(&asked, &frame).unwrap();
        let (kept, log_prior) = (made.kept.clone(), made.log_prior.clone());
        let program = compiled(&asked, &frame).unwrap();
        let fit = run(&program, ResultFolder::None);
        sensitivity(&kept, &log_prior, program.data(), &fit).unwrap()
    };
    assert_eq!(moved(&[]), []);
    let found = moved(&["b ~ normal(0, 0.1)"]);
    let slope = found.iter().find(|s| s.name == "b[x]").unwrap();
    // The data suggest a slope of 1.5, so raising the prior to a higher power makes the slope smaller.
    assert!(slope.shift < -0.3, "{slope:?}");
}

#[test]
fn rows_without_a_value_of_an_imputed_column_are_not_predicted() {
    let desk = tempfile::tempdir().unwrap();
    let folder = desk.path().join("fit");
    let frame = table(1.0, 1.0);
    let asked = request("gaussian", &["y ~ mi(gap)", "gap | mi() ~ x"]);
    let fit = fitted(&asked, &frame, ResultFolder::new(Some(&folder)));
    // The fit uses all rows.
    assert_eq!(
        fit.parameters()
            .iter()
            .filter(|p| p.name.starts_with("log_lik"))
            .count(),
        ROWS
    );
    let columns = vec![("gap".to_owned(), FrameColumn::Numbers(vec![0.25, f64::NAN]))];
    let rows = Frame::new("new.csv", columns).unwrap();
    let made = predict(&folder, &rows, Some(3), 1, Halt::default()).unwrap();
    assert_eq!(made.rows, [0]);
    let found = made.sample.summaries();
    let found = found.iter().find(|p| p.name == "expected[1]").unwrap();
    let expected = mean(&fit, "Intercept").0 + 0.25 * mean(&fit, "bsp[mi(gap)]").0;
    assert!(
        (found.mean - expected).abs() < 0.12 * found.sd,
        "{} {expected}",
        found.mean
    );
}
