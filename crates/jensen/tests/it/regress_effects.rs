//! What columns do: curves and averages of a fit in a folder, against what its coefficients say.

use jensen::job::Place;
use jensen::regress::{curves, effects};
use jensen::stan::Halt;

use crate::regress::{fitted, mean, request, table};

#[test]
fn effects_of_a_linear_model_are_its_coefficients() {
    let desk = tempfile::tempdir().unwrap();
    let folder = desk.path().join("fit");
    let frame = table(1.0, 1.0);
    let fit = fitted(
        &request("gaussian", &["y ~ x + f + (1 | g)"]),
        &frame,
        Place::new(Some(&folder)),
    );
    let found = effects(&folder, &frame, 1, Halt::default()).unwrap();
    let of = |column: &str, contrast: &str| {
        let row = found
            .iter()
            .find(|e| e.column == column && e.contrast == contrast);
        row.unwrap_or_else(|| panic!("{column} {contrast}"))
            .estimate
    };
    for (column, contrast, label) in [
        ("x", "dY/dX", "b[x]"),
        ("f", "q - p", "b[fq]"),
        ("f", "r - p", "b[fr]"),
    ] {
        let (estimate, (b, sd)) = (of(column, contrast), mean(&fit, label));
        assert!(
            (estimate.mean - b).abs() < 1e-4 * sd,
            "{label}: {} {b}",
            estimate.mean
        );
        assert!(
            (estimate.sd / sd - 1.0).abs() < 1e-3,
            "{label}: {} {sd}",
            estimate.sd
        );
    }
    assert_eq!(found.len(), 3);
    // The curve of x is a line without the groups, at the first level of f.
    let lines = curves(&folder, 1, Halt::default()).unwrap();
    let line = lines.iter().find(|line| line.column == "x").unwrap();
    let at = |point: usize| line.at[point].parse::<f64>().unwrap();
    for point in [0, 40] {
        let expected = mean(&fit, "Intercept").0 + at(point) * mean(&fit, "b[x]").0;
        let found = line.expected[point];
        assert!(
            (found.mean - expected).abs() < 1e-4 * found.sd,
            "{} {expected}",
            found.mean
        );
        assert!(found.interval[0] < found.mean && found.mean < found.interval[1]);
    }
    let report = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(report.contains("What does each column do?"));
}

#[test]
fn effects_of_probabilities_are_averages_over_rows() {
    let desk = tempfile::tempdir().unwrap();
    let folder = desk.path().join("fit");
    let frame = table(1.0, 1.0);
    fitted(
        &request("binomial", &["successes | trials(size) ~ x * f"]),
        &frame,
        Place::new(Some(&folder)),
    );
    let found = effects(&folder, &frame, 1, Halt::default()).unwrap();
    // From level p to q everywhere: the mean difference of two predictions of probabilities.
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
    // The rows fill the range of x evenly, as the curve does.
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
        Place::new(Some(&folder)),
    );
    let found = effects(&folder, &frame, 1, Halt::default()).unwrap();
    let sum: f64 = found.iter().map(|e| e.estimate.mean).sum();
    assert!(found.len() > 2 && found.iter().all(|e| e.category.is_some()));
    assert!(sum.abs() < 1e-6, "{sum}");
    // Larger x, higher grades.
    assert!(found[0].estimate.mean < 0.0 && found[found.len() - 1].estimate.mean > 0.0);
}
