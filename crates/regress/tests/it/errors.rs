//! Tests of wrong inputs. Each of them must give one error, with its location in the formula and a remedy.

use jensen_regress::{Factor, Frame, FrameColumn, Regression, Request, contrasts, program};

fn table() -> Frame {
    let words = |text: &str| {
        let words: Vec<Option<&str>> = text.split(' ').map(Some).collect();
        FrameColumn::Factor(Factor::of_words(&words))
    };
    let numbers = |f: &dyn Fn(usize) -> f64| FrameColumn::Numbers((0..10).map(f).collect());
    let columns = vec![
        ("y".to_owned(), numbers(&|i| (i as f64 * 1.7).sin())),
        ("x".to_owned(), numbers(&|i| i as f64)),
        ("double".to_owned(), numbers(&|i| 2.0 * i as f64)),
        ("same".to_owned(), numbers(&|_| 3.0)),
        ("count".to_owned(), numbers(&|i| (i % 4) as f64)),
        (
            "size".to_owned(),
            numbers(&|i| if i == 4 { -1.0 } else { 5.0 }),
        ),
        ("few".to_owned(), numbers(&|_| 2.0)),
        ("gone".to_owned(), numbers(&|_| f64::NAN)),
        ("g".to_owned(), words("a a b b c c d d e e")),
        ("one".to_owned(), words("k k k k k k k k k k")),
        (
            "day".to_owned(),
            words(
                "2024-01-01 2024-01-02 2024-01-03 2024-01-04 2024-01-05 2024-01-01 2024-01-02 2024-01-03 2024-01-04 2024-01-05",
            ),
        ),
    ];
    Frame::new("table.csv", columns).unwrap()
}

fn error(family: &str, formulas: &[&str], priors: &[&str]) -> String {
    let request = Request {
        formulas: formulas.iter().map(ToString::to_string).collect(),
        family: Some(family.to_owned()),
        priors: priors.iter().map(ToString::to_string).collect(),
        ..Request::default()
    };
    let made = Regression::new(&request, &table()).and_then(|regression| program(&regression));
    match made {
        Ok(_) => panic!("{formulas:?} is taken"),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn refused(family: &str, formula: &str, message: &str, place: &str, way: &str) {
    let told = error(family, &[formula], &[]);
    check(&told, formula, message, place, way);
}

#[track_caller]
fn check(told: &str, text: &str, message: &str, place: &str, way: &str) {
    assert!(told.contains(message), "{told}");
    assert!(told.contains(way), "{told}");
    let lines: Vec<&str> = told.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.trim() == text.trim())
        .unwrap_or_else(|| panic!("no formula in {told}"));
    let carets = lines[at + 1];
    let start = carets.find('^').unwrap();
    let underlined: String = lines[at]
        .chars()
        .skip(start)
        .take(carets.trim().len())
        .collect();
    assert_eq!(underlined.trim(), place, "{told}");
}

#[test]
fn formulas_that_cannot_be_read() {
    refused(
        "gaussian",
        "y ~ x +",
        "the formula ends where a term is expected",
        "",
        "write the missing term",
    );
    refused(
        "gaussian",
        "y ~ (x + (1 | g)",
        "this parenthesis is not closed",
        "(",
        "close it",
    );
    refused("gaussian", "y ~ x)", "never opened", ")", "");
    refused(
        "gaussian",
        "y ~ x x",
        "an operator must precede this",
        "x",
        "join terms",
    );
    refused(
        "gaussian",
        "y ~ x + * g",
        "a term must follow here",
        "*",
        "between two terms",
    );
    refused(
        "gaussian",
        "y + x",
        "a formula has a `~`",
        "y + x",
        "response ~ terms",
    );
    refused(
        "gaussian",
        "~ x",
        "the formula has no response",
        "~ x",
        "left of `~`",
    );
    refused(
        "gaussian",
        "y ~ x # 2",
        "`#` has no meaning",
        "#",
        "backquotes",
    );
    refused(
        "gaussian",
        "y ~ 'x",
        "this quote is not closed",
        "'x",
        "close it",
    );
    refused(
        "gaussian",
        "y ~ 2 * x",
        "2 is no term",
        "2",
        "offset(column)",
    );
    refused(
        "gaussian",
        "y ~ x ^ 2.5",
        "the power of a term must be an integer",
        "2.5",
        "I(x^2.5)",
    );
    refused(
        "gaussian",
        "y ~ x > 3",
        "this cannot be a term",
        "x > 3",
        "I(x > 3)",
    );
    refused(
        "gaussian",
        "y ~ x | g",
        "group effects need parentheses",
        "x | g",
        "(x | g)",
    );
}

#[test]
fn columns_and_functions_that_are_not_there() {
    refused(
        "gaussian",
        "y ~ doubel + x",
        "no column `doubel`",
        "doubel",
        "did you mean `double`?",
    );
    refused(
        "gaussian",
        "y ~ sqr(x)",
        "no function sqr()",
        "sqr(x)",
        "did you mean sqrt()?",
    );
    refused(
        "gaussian",
        "y ~ te(x, double)",
        "te() cannot be a term",
        "te(x, double)",
        "t2(x, z)",
    );
    refused(
        "gaussian",
        "y | wieghts(x) ~ 1",
        "no addition wieghts()",
        "wieghts(x)",
        "did you mean weights()?",
    );
    refused(
        "gaussian",
        "y ~ s(x, df = 3)",
        "s() has no argument `df`",
        "3",
        "it has k, bs, by",
    );
    refused(
        "gaussian",
        "y ~ (0 | g)",
        "no term differs by group here",
        "0",
        "(1 | g)",
    );
    refused(
        "gaussian",
        "y ~ (1 | g) + (x | g)",
        "two terms have effects by `g`",
        "(x | g)",
        "(1 + x || g)",
    );
    refused(
        "gaussian",
        "y ~ s(x):g",
        "cannot be multiplied",
        "s(x)",
        "by = f",
    );
}

#[test]
fn columns_that_say_nothing() {
    refused(
        "gaussian",
        "y ~ one",
        "has only the level `k`",
        "one",
        "remove it",
    );
    refused(
        "gaussian",
        "y ~ (1 | one)",
        "the grouping `one` has only one level",
        "(1 | one)",
        "remove the term",
    );
    refused(
        "gaussian",
        "y ~ x + double",
        "linear combination of others: x",
        "double",
        "remove one of these terms",
    );
    refused(
        "gaussian",
        "y ~ x + same",
        "the column `same` is constant",
        "same",
        "remove this term",
    );
    refused(
        "gaussian",
        "same ~ x",
        "the same value in all rows",
        "same",
        "no effect to estimate",
    );
    refused("gaussian", "y ~ day", "has dates", "day", "days since");
    refused(
        "gaussian",
        "y ~ log(x)",
        "not a finite number in row 1",
        "log(x)",
        "transform",
    );
    refused(
        "gaussian",
        "y ~ log(g)",
        "has words",
        "g",
        "compare it with a text",
    );
    refused(
        "gaussian",
        "y ~ mo(g)",
        "the levels of `g` have no known order",
        "g",
        "mo(ordered(g))",
    );
    refused(
        "gaussian",
        "y ~ poly(few, 2)",
        "needs more than 2 distinct values",
        "poly(few, 2)",
        "lower degree",
    );
    let told = error("gaussian", &["y ~ gone"], &[]);
    assert!(
        told.contains("0 of 10 rows") && told.contains("`gone` lacks 10"),
        "{told}"
    );
}

#[test]
fn responses_out_of_the_range_of_their_family() {
    refused(
        "poisson",
        "y ~ x",
        "whole numbers from 0, but `y` is 0.99",
        "y",
        "gaussian",
    );
    refused(
        "gamma",
        "count ~ x",
        "numbers above 0, but `count` is 0 in row 1",
        "count",
        "hurdle_gamma",
    );
    refused(
        "beta",
        "x ~ 1",
        "between 0 and 1",
        "x",
        "zero_one_inflated_beta",
    );
    refused(
        "bernoulli",
        "g ~ x",
        "two values, but `g` has 5",
        "g",
        "categorical",
    );
    refused(
        "cumulative",
        "y ~ x",
        "categories must be integers or words",
        "y",
        "gaussian",
    );
    refused(
        "binomial",
        "count ~ x",
        "needs the number of trials",
        "count",
        "count | trials(n)",
    );
    refused(
        "binomial",
        "count | trials(size) ~ x",
        "trials() must not be negative, but row 5",
        "size",
        "correct the table",
    );
    refused(
        "binomial",
        "count | trials(few) ~ x",
        "row 4 of the rows used has 3 successes in 2 trials",
        "count",
        "at least the number of successes",
    );
    refused(
        "poisson",
        "count | trials(few) ~ x",
        "the family poisson has no trials",
        "trials(few)",
        "binomial",
    );
    refused(
        "gaussian",
        "y | cens(g) ~ x",
        "`a` is not a value of censoring",
        "g",
        "none, left or right",
    );
    refused(
        "poisson",
        "count | trunc(lb = 1) ~ x",
        "outside the bounds",
        "count",
        "remove such rows",
    );
    let told = error("poison", &["y ~ x"], &[]);
    assert!(told.contains("did you mean `poisson`?"), "{told}");
    let told = error("gaussian(logit)", &["y ~ x"], &[]);
    assert!(
        told.contains("has no link `logit`") && told.contains("identity, log, inverse"),
        "{told}"
    );
}

#[test]
fn parameters_and_priors_of_nothing() {
    let told = error("gaussian", &["y ~ x", "nu ~ x"], &[]);
    check(&told, "nu ~ x", "no parameter `nu`", "nu", "it has sigma");
    let told = error("student", &["y ~ x", "nu = many"], &[]);
    check(
        &told,
        "nu = many",
        "a fixed parameter must be a number",
        "nu = many",
        "nu = 4",
    );
    let told = error("gaussian", &["y ~ x"], &["b[xx] ~ normal(0, 1)"]);
    check(
        &told,
        "b[xx] ~ normal(0, 1)",
        "no parameter `b[xx]`",
        "b[xx]",
        "b[x]",
    );
    let told = error("gaussian", &["y ~ x"], &["b ~ norml(0, 1)"]);
    check(
        &told,
        "b ~ norml(0, 1)",
        "`norml` is not a distribution",
        "norml(0, 1)",
        "did you mean normal?",
    );
    let told = error("gaussian", &["y ~ x"], &["b ~ normal(0)"]);
    check(
        &told,
        "b ~ normal(0)",
        "normal needs 2 arguments, but has 1",
        "normal(0)",
        "",
    );
    let told = error("gaussian", &["y ~ x"], &["b normal(0, 1)"]);
    check(
        &told,
        "b normal(0, 1)",
        "a prior has a `~`",
        "b normal(0, 1)",
        "b ~ normal(0, 1)",
    );
}

#[test]
fn new_rows_that_the_fit_does_not_know() {
    let request = Request {
        formulas: vec!["y ~ x + g".to_owned()],
        ..Request::default()
    };
    let fitted = Regression::new(&request, &table()).unwrap();
    let rows = |columns| {
        Regression::for_rows(
            &request,
            &fitted.learnt,
            &Frame::new("new.csv", columns).unwrap(),
        )
    };
    let x = ("x".to_owned(), FrameColumn::Numbers(vec![1.0]));
    let g = (
        "g".to_owned(),
        FrameColumn::Factor(Factor::of_words(&[Some("z")])),
    );
    let told = rows(vec![x.clone(), g]).unwrap_err().to_string();
    check(
        &told,
        "y ~ x + g",
        "`z` is a new level of `g`",
        "g",
        "the fit has the levels a, b, c, d, e",
    );
    let told = rows(vec![x]).unwrap_err().to_string();
    check(
        &told,
        "y ~ x + g",
        "new.csv has no column `g`",
        "g",
        "it has `x`",
    );
}

/// A single word turns a column of numbers into a factor, so the error quotes this word.
#[test]
fn the_word_among_numbers_is_named() {
    let column = Factor::of_words(&[Some("1e6"), Some("2e6"), Some("oops")]);
    let numbers = FrameColumn::Numbers(vec![1.0, 2.0, 3.0]);
    let columns = vec![
        ("x".to_owned(), numbers),
        ("y".to_owned(), FrameColumn::Factor(column)),
    ];
    let frame = Frame::new("table.csv", columns).unwrap();
    let request = Request {
        formulas: vec!["y ~ x".to_owned()],
        ..Request::default()
    };
    let made = Regression::new(&request, &frame).and_then(|regression| program(&regression));
    let told = made.map(drop).unwrap_err().to_string();
    check(
        &told,
        "y ~ x",
        "words such as `oops`",
        "y",
        "convert them to numbers",
    );
}

#[test]
fn terms_of_columns_that_are_not_all_known() {
    refused(
        "gaussian",
        "y ~ me(x)",
        "me() takes a column and its standard errors",
        "me(x)",
        "",
    );
    refused(
        "gaussian",
        "y ~ me(x, same - 3)",
        "a standard error must be above 0",
        "same - 3",
        "a plain term",
    );
    refused(
        "gaussian",
        "y ~ mi(log(x))",
        "mi() needs a column of numbers",
        "log(x)",
        "add a column",
    );
    let told = error("gaussian", &["y ~ mi(x)"], &[]);
    check(
        &told,
        "y ~ mi(x)",
        "`x` has no formula for its imputation",
        "y ~ mi(x)",
        "'x | mi() ~ 1'",
    );
    let told = error("gaussian", &["y ~ double", "x | mi() ~ 1"], &[]);
    check(&told, "x | mi() ~ 1", "no term uses it", "x", "write mi(x)");
}

#[test]
fn groups_series_and_maps_that_mean_nothing() {
    refused(
        "gaussian",
        "y ~ (1 | mm(g))",
        "name them in several columns",
        "mm(g)",
        "(1 | mm(a, b))",
    );
    refused(
        "gaussian",
        "y ~ (1 | mm(g, one, weights = x))",
        "2 columns of groups need 2 columns of weights",
        "x",
        "cbind(v, w)",
    );
    refused(
        "gaussian",
        "y ~ mm(g, one)",
        "mm() cannot be a term",
        "mm(g, one)",
        "right of a bar",
    );
    refused(
        "gaussian",
        "y ~ (1 | g/mm(g, one))",
        "this cannot be a grouping",
        "g/mm(g, one)",
        "",
    );
    refused("gaussian", "y ~ ar(g)", "has words", "g", "");
    refused(
        "gaussian",
        "y ~ ar(same)",
        "two rows of a series have the time 3",
        "ar(same)",
        "ar(time, gr = g)",
    );
    refused(
        "gaussian",
        "y ~ ar(x, gr = g, p = 2)",
        "no series has more than 2 rows",
        "ar(x, gr = g, p = 2)",
        "lower p",
    );
    refused(
        "poisson",
        "count ~ ar(x)",
        "the family poisson has no residuals",
        "count ~ ar(x)",
        "gaussian or student",
    );
    refused(
        "gaussian",
        "y ~ car(x, same)",
        "a map must be a file name",
        "x",
        "in quotes",
    );
    refused(
        "gaussian",
        "y ~ car(\"map.graph\")",
        "no column gives the region",
        "car(\"map.graph\")",
        "gr = region",
    );
    refused(
        "gaussian",
        "y ~ car(\"map.graph\", gr = x, type = \"besag\")",
        "there is no field of type \"besag\"",
        "\"besag\"",
        "icar, bym2 or escar",
    );
}

#[test]
fn priors_of_all_coefficients() {
    let prior = |text: &str| error("gaussian", &["y ~ x"], &[text]);
    assert!(
        prior("sigma ~ horseshoe(1)").contains("horseshoe applies to all coefficients together")
    );
    assert!(prior("b[x] ~ R2D2(0.5)").contains("write b ~ R2D2(0.5)"));
    assert!(
        prior("b ~ horseshoe(slab = 2)")
            .contains("choose from df, scale_global, df_global, scale_slab, df_slab")
    );
    assert!(prior("b ~ horseshoe(-1)").contains("must be a number above 0"));
}

#[test]
fn effects_over_a_table_without_a_column_of_the_formula() {
    let request = Request {
        formulas: vec!["y ~ x + s(z) + (1 | g)".to_owned()],
        ..Request::default()
    };
    let Err(error) = contrasts(&request, &table()) else {
        panic!("the table has no z");
    };
    check(
        &error.to_string(),
        "y ~ x + s(z) + (1 | g)",
        "has no column `z`",
        "z",
        "",
    );
}

#[test]
fn groups_by_kind_and_names_between_bars() {
    refused(
        "gaussian",
        "y ~ (1 | gr(g, by = few, cov = x))",
        "gr() has no such argument",
        "x",
        "gr(g, by = z)",
    );
    refused(
        "gaussian",
        "y ~ (1 | gr(one, by = g))",
        "`k` of `one` is in rows of two levels of `g`: a and b",
        "g",
        "to the left of the bar",
    );
    refused(
        "gaussian",
        "y ~ (1 |x + 1| g)",
        "only a name can be between two bars",
        "x + 1",
        "(1 |p| g)",
    );
}

#[test]
fn nonlinear_formulas() {
    let priors = ["Intercept_a ~ normal(0, 1)"];
    let told = error("gaussian", &["y ~ a * x", "a ~ 1"], &[]);
    check(
        &told,
        "a ~ 1",
        "the parameter `a` has no prior for Intercept_a",
        "a",
        "--prior 'Intercept_a ~ normal(0, 1)'",
    );
    let told = error("gaussian", &["y ~ a * besselJ(x, 2)", "a ~ 1"], &priors);
    check(
        &told,
        "y ~ a * besselJ(x, 2)",
        "cannot use besselJ() of 2 arguments",
        "besselJ(x, 2)",
        "exp",
    );
    let told = error("gaussian", &["y ~ a * x + (1 | x)", "a ~ 1"], &priors);
    check(
        &told,
        "y ~ a * x + (1 | x)",
        "this is not a number",
        "1 | x",
        "+ - * / ^",
    );
    let told = error("gaussian", &["y ~ x * few", "x ~ 1"], &[]);
    check(
        &told,
        "x ~ 1",
        "`x` is both a column of the table and a parameter with a formula",
        "x",
        "mi()",
    );
}

#[test]
fn smooths_with_more_functions_than_values() {
    refused(
        "gaussian",
        "y ~ s(count, k = 100)",
        "s() with k = 100 needs at least k distinct values, but its column has 4",
        "100",
        "k = 4 or less",
    );
    refused(
        "gaussian",
        "y ~ s(few, k = 5)",
        "its column has 1",
        "5",
        "factor(x)",
    );
}

#[test]
fn several_responses_decisions_and_mixtures() {
    refused(
        "poisson",
        "mvbind(count, few) ~ x",
        "the family poisson has no correlated residuals for mvbind()",
        "mvbind(count, few)",
        "--family gaussian",
    );
    refused(
        "gaussian",
        "mvbind(y) ~ x",
        "mvbind() needs at least two responses",
        "mvbind(y)",
        "mvbind(a, b)",
    );
    refused(
        "gaussian",
        "mvbind(y, same) ~ x",
        "`same` has the same value in all rows",
        "same",
        "no effect to estimate",
    );
    refused(
        "gaussian",
        "mvbind(y, x) | cens(few) ~ 1",
        "`2` is not a value of censoring",
        "few",
        "none, left or right",
    );
    refused(
        "wiener",
        "few ~ x",
        "needs the boundary that each row reached",
        "few",
        "dec(d)",
    );
    refused(
        "wiener",
        "few | dec(g) ~ x",
        "`a` is not a value of decisions",
        "g",
        "lower or upper, or 0 or 1",
    );
    refused(
        "gaussian",
        "y | dec(few) ~ x",
        "the family gaussian has no decisions",
        "dec(few)",
        "wiener",
    );
    refused(
        "mixture(gaussian, gaussian)",
        "y ~ ar(x)",
        "only the formula of the response can have an autoregression",
        "ar(x)",
        "not their mixtures",
    );
    let told = error("mixture(gaussian)", &["y ~ x"], &[]);
    assert!(
        told.contains("a mixture needs two families, not 1"),
        "{told}"
    );
    let told = error("mixture(gaussian, poisson)", &["y ~ x"], &[]);
    assert!(
        told.contains("a mixture of the families gaussian and poisson is not possible"),
        "{told}"
    );
    let told = error("mixture(gaussian, gausian)", &["y ~ x"], &[]);
    assert!(told.contains("did you mean `gaussian`?"), "{told}");
}

#[test]
fn counts_and_shares_of_categories() {
    refused(
        "multinomial",
        "y ~ x",
        "needs one column per category",
        "y",
        "cbind(a, b, c)",
    );
    refused(
        "dirichlet",
        "cbind(few, few) ~ x",
        "shares that sum to 1",
        "cbind(few, few)",
        "divide each column",
    );
    refused(
        "multinomial",
        "cbind(few, size) ~ x",
        "`size` is -1 in row 5",
        "cbind(few, size)",
        "integers of at least 0",
    );
}
