//! Tests `jensen latent` with ordered levels.

use crate::common::{Desk, jensen};

/// Answers that agree more often as x grows, as words and as numbers.
fn table(words: [&str; 3]) -> String {
    let mut text = "x,answer\n".to_owned();
    for i in 0..90_u32 {
        let x = f64::from(i % 30) / 10.0;
        let noise = f64::from(i * 37 % 90) / 90.0 * 3.0 - 1.5;
        let level = [0.8, 2.0].iter().filter(|c| x + noise > **c).count();
        text += &format!("{x},\"{}\"\n", words[level]);
    }
    text
}

#[test]
fn levels_in_words_and_numbers_are_the_same_fit() {
    let desk = Desk::new();
    let words = desk.file("words.csv", &table(["no", "perhaps, later", "yes"]));
    let numbers = desk.file("numbers.csv", &table(["1", "2.5", "10"]));
    let fit = |file: &str, likelihood: &str, out: &str| {
        let args = [
            "latent",
            "fit",
            file,
            "--json",
            "--prior",
            "intercept() + fixed(x)",
        ];
        let more = ["--likelihood", likelihood, "--out", out];
        jensen([&args[..], &more].concat()).expect(0).json()
    };
    let listed = "ordinal(levels=(no, \"perhaps, later\", yes))";
    let (one, two) = (desk.name("one"), desk.name("two"));
    let (own, other) = (fit(&words, listed, &one), fit(&numbers, "ordinal", &two));
    assert_eq!(own["bound"], other["bound"]);
    assert_eq!(own["parameters"], other["parameters"]);
    let steps = own["hyperparameters"].as_array().unwrap().iter();
    let steps: Vec<&str> = (steps.filter_map(|h| h["name"].as_str()))
        .filter(|name| name.starts_with("likelihood"))
        .collect();
    assert_eq!(steps, ["likelihood.step_1"]);
    assert!(
        other["warnings"]
            .to_string()
            .contains("the 3 levels `1`, `2.5`, `10`"),
        "{other}"
    );
    let predicted = jensen(["latent", "predict", &one, "--at", &words])
        .expect(0)
        .stdout;
    let mut lines = predicted.lines();
    let head = "row,eta_mean,eta_sd,\"p[no]\",\"p[perhaps, later]\",\"p[yes]\",y_q05,y_q95,response,log_density";
    assert_eq!(lines.next(), Some(head));
    let first = lines.next().unwrap();
    assert!(
        first.contains(",no,") && first.contains(",\"perhaps, later\","),
        "{first}"
    );
    let shares: f64 = first
        .split(',')
        .skip(3)
        .take(3)
        .map(|p| p.parse::<f64>().unwrap())
        .sum();
    assert!((shares - 1.0).abs() < 1e-9, "{first}");
    let drawn = jensen(["latent", "predict", &two, "--at", &numbers, "--draws", "2"]).expect(0);
    assert!(
        drawn
            .stdout
            .starts_with("draw,row,eta,\"p[1]\",\"p[2.5]\",\"p[10]\",y\n")
    );
}

#[test]
fn levels_that_cannot_be_ordered_are_refused() {
    let desk = Desk::new();
    let words = desk.file("words.csv", &table(["no", "maybe", "yes"]));
    let many: String = (0..40).map(|i| format!("{i},{}\n", i % 13)).collect();
    let many = desk.file("many.csv", &format!("x,answer\n{many}"));
    for (file, likelihood, message) in [
        (
            &words,
            "ordinal",
            "whose order is unknown; list them from the lowest to the highest",
        ),
        (&words, "ordinal(levels=(no, yes))", "has `maybe`"),
        (
            &words,
            "ordinal(levels=no)",
            "needs 2 to 10 distinct values",
        ),
        (
            &words,
            "ordinal(levels=(no, maybe, yes), step_2=1)",
            "has 1 steps, and no `step_2`",
        ),
        (
            &many,
            "ordinal",
            "has 13 distinct values, but the likelihood `ordinal` has at most 10 levels",
        ),
    ] {
        let args = [
            "latent",
            "fit",
            file,
            "--prior",
            "intercept()",
            "--likelihood",
            likelihood,
        ];
        let done = jensen(args).expect(3);
        assert!(done.stderr.contains(message), "{}", done.stderr);
    }
    let done = jensen([
        "factor-analysis",
        "fit",
        &many,
        "-k",
        "1",
        "--likelihood",
        "ordinal",
    ])
    .expect(2);
    assert!(done.stderr.contains("different levels"), "{}", done.stderr);
}
