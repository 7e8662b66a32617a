//! The text of the programs.

use jensen_data::{Elements, Value};
use jensen_regress::{
    Factor, Frame, FrameColumn, Program, Regression, Request, predictions, program,
};

fn request(family: &str, formulas: &[&str], priors: &[&str]) -> Request {
    Request {
        formulas: formulas.iter().map(ToString::to_string).collect(),
        family: Some(family.to_owned()),
        priors: priors.iter().map(ToString::to_string).collect(),
        ..Request::default()
    }
}

fn made(request: &Request, frame: &Frame) -> Program {
    program(&Regression::new(request, frame).unwrap()).unwrap()
}

/// Returns a table of twelve rows, in some of which a value is missing. `by` rescales the column x, and `of` rescales
/// the response.
fn table(by: f64, of: f64) -> Frame {
    let numbers = |f: &dyn Fn(usize) -> f64| FrameColumn::Numbers((0..12).map(f).collect());
    let letters = ["b", "a", "c"];
    let words: Vec<Option<&str>> = (0..12).map(|i| Some(letters[i % 3])).collect();
    let columns = vec![
        (
            "y".to_owned(),
            numbers(&|i| {
                of * (if i == 5 {
                    f64::NAN
                } else {
                    (i as f64).sin() + 2.0
                })
            }),
        ),
        (
            "x".to_owned(),
            numbers(&|i| by * (if i == 7 { f64::NAN } else { (i as f64).cos() })),
        ),
        (
            "g".to_owned(),
            FrameColumn::Factor(Factor::of_words(&words)),
        ),
    ];
    Frame::new("table.csv", columns).unwrap()
}

#[test]
fn a_program_reads_as_a_statistician_writes_it() {
    let found = made(
        &request("gaussian", &["y ~ x + (1 | g)"], &[]),
        &table(1.0, 1.0),
    );
    let expected = "\
// y ~ x + (1 | g)
// family gaussian, link identity
data {
  int<lower=0> N; // rows
  real y_mean; // mean of the response, on the scale of the predictor
  real<lower=0> y_sd; // standard deviation of the response
  int<lower=0> K; // columns
  matrix[N, K] X; // x
  vector[K] X_mean; // means of the columns, where there is an intercept
  vector<lower=0>[K] X_sd; // their standard deviations
  int<lower=0> J_g; // groups by g
  array[N] int<lower=1, upper=J_g> i_g; // the group of each row
  int<lower=0> M_g; // effects that differ by group
  vector<lower=0>[M_g] sd_g_unit; // inverse standard deviations of their columns
  vector[N] y; // y
}
transformed data {
  matrix[N, K] Xc = X - rep_matrix(X_mean', N); // columns about their means
}
parameters {
  real<offset=y_mean, multiplier=y_sd> Intercept_at_means; // at the means of the columns
  vector<multiplier=y_sd * inv(X_sd)>[K] b;
  vector<lower=0>[M_g] sd_g_std;
  vector[J_g] r_g_std;
  real<lower=0> sigma_std;
}
transformed parameters {
  real Intercept = Intercept_at_means - dot_product(X_mean, b);
  vector<lower=0>[M_g] sd_g = (y_sd * sd_g_unit) .* sd_g_std;
  vector[J_g] r_g = (y_sd * sd_g_unit)[1] * r_g_std;
  real<lower=0> sigma = y_sd * sigma_std;
}
model {
  // coefficients of mu
  Intercept_at_means ~ normal(y_mean, 2.5 * y_sd);
  b ~ normal(0, 2.5 * y_sd ./ X_sd);
  // Intercept by g
  sd_g_std ~ student_t(3, 0, 2.5);
  r_g_std ~ normal(0, sd_g_std[1]);
  // parameters of the family gaussian
  sigma_std ~ exponential(1);
  // the response
  vector[N] mu = Intercept_at_means + Xc * b;
  mu += r_g[i_g];
  y ~ normal(mu, sigma);
}
";
    let (program, _) = found.text.split_once("generated quantities").unwrap();
    assert_eq!(program, expected, "{program}");
    assert_eq!(found.shown, ["Intercept", "b", "sd_g", "sigma", "R2"]);
    // Two rows lack a value.
    assert_eq!(found.data.get("N"), Some(&Value::int(10)));
}

fn numbers(program: &Program, name: &str) -> Vec<f64> {
    match program.data.get(name).unwrap().elements() {
        Elements::Real(x) => x.clone(),
        Elements::Int(x) => x.iter().map(|x| *x as f64).collect(),
        Elements::Tuple(_) => Vec::new(),
    }
}

#[test]
fn units_change_nothing_but_units() {
    let request = request("gaussian", &["y ~ x + (x | g)", "sigma ~ s(x)"], &[]);
    let (plain, scaled) = (
        made(&request, &table(1.0, 1.0)),
        made(&request, &table(1024.0, 4096.0)),
    );
    assert_eq!(plain.text, scaled.text);
    let units = |name: &str| match name {
        "y" | "y_mean" | "y_sd" => 4096.0,
        "sd_g_unit" => f64::NAN,
        _ => 1.0,
    };
    for name in plain.data.names() {
        let (plain, scaled) = (numbers(&plain, name), numbers(&scaled, name));
        match name {
            "X" | "X_mean" | "X_sd" => {
                assert!(
                    plain.iter().zip(&scaled).all(|(x, y)| x * 1024.0 == *y),
                    "{name}"
                );
            }
            "Z_g" => assert!(
                plain
                    .iter()
                    .zip(&scaled)
                    .skip(1)
                    .step_by(2)
                    .all(|(x, y)| x * 1024.0 == *y),
                "{name}"
            ),
            "sd_g_unit" => assert_eq!([plain[0], plain[1]], [scaled[0], scaled[1] * 1024.0]),
            _ => {
                for (x, y) in plain.iter().zip(&scaled) {
                    assert!(
                        (x * units(name) - y).abs() <= 1e-9 * y.abs().max(1e-9),
                        "{name}: {x} {y}"
                    );
                }
            }
        }
    }
}

#[test]
fn priors_are_given_by_what_is_printed() {
    let priors = [
        "b ~ normal(0, 1)",
        "b[gb] ~ student_t(3, 0, 2)",
        "sigma ~ exponential(2)",
        "sd_g ~ normal(0, 3)",
    ];
    let found = made(
        &request("gaussian", &["y ~ x + g + (1 | g)"], &priors),
        &table(1.0, 1.0),
    );
    for line in [
        "b[1] ~ normal(0, 1);",
        "b[2] ~ student_t(3, 0, 2);",
        "b[3] ~ normal(0, 1);",
        "sigma ~ exponential(2);",
        "sd_g[1] ~ normal(0, 3);",
    ] {
        assert!(found.text.contains(line), "{line}\n{}", found.text);
    }
    let used: Vec<String> = found
        .priors
        .iter()
        .map(|p| format!("{} ~ {} {}", p.target, p.density, p.given))
        .collect();
    assert!(
        used.contains(&"b[gb] ~ student_t(3, 0, 2) true".to_owned()),
        "{used:?}"
    );
    assert!(
        used.contains(&"Intercept ~ normal(y_mean, 2.5 * y_sd) false".to_owned()),
        "{used:?}"
    );
}

#[test]
fn new_rows_get_the_means_of_the_fit_and_new_groups_effects_of_their_own() {
    let request = request("gaussian", &["y ~ x + (x | g)"], &[]);
    let regression = Regression::new(&request, &table(1.0, 1.0)).unwrap();
    let fitted = program(&regression).unwrap();
    let columns = vec![
        (
            "x".to_owned(),
            FrameColumn::Numbers(vec![5.0, f64::NAN, 6.0]),
        ),
        (
            "g".to_owned(),
            FrameColumn::Factor(Factor::of_words(&[Some("c"), Some("a"), Some("new")])),
        ),
    ];
    let rows = Regression::for_rows(
        &request,
        &regression.learnt,
        &Frame::new("new.csv", columns).unwrap(),
    )
    .unwrap();
    assert_eq!(rows.rows, [0, 2]);
    let found = predictions(&rows, &fitted.data).unwrap();
    assert_eq!(numbers(&found, "X"), [5.0, 6.0]);
    assert_eq!(numbers(&found, "X_mean"), numbers(&fitted, "X_mean"));
    assert_eq!(numbers(&found, "i_g"), [3.0, 4.0]);
    assert!(
        found.text.contains("multi_normal_cholesky_rng"),
        "{}",
        found.text
    );
    // Both programs declare the same parameters.
    let parameters = |text: &str| {
        let (_, rest) = text.split_once("\nparameters {").unwrap();
        rest.split_once("\n}").unwrap().0.to_owned()
    };
    assert_eq!(parameters(&found.text), parameters(&fitted.text));
}

#[test]
fn effects_of_two_parameters_are_correlated_where_they_share_a_name() {
    let found = made(
        &request("gaussian", &["y ~ x + (x |p| g)", "sigma ~ (1 |p| g)"], &[]),
        &table(1.0, 1.0),
    );
    for line in [
        "array[J_g] vector[3] r_p_by; // Intercept, x, sigma_Intercept",
        "r_p_by ~ multi_normal_cholesky(rep_vector(0, 3), diag_pre_multiply(append_row(sd_g_std, sd_sigma_g), L_p));",
        "r_g[j] = ((y_sd * sd_g_unit) .* r_p_by[j, 1 : 2])';",
        "r_sigma_g[j] = r_p_by[j, 3];",
        "vector[3] cor_p;",
    ] {
        assert!(found.text.contains(line), "{line}\n{}", found.text);
    }
    // If no other parameter uses the name, the name has no effect.
    let (alone, plain) = ("y ~ x + (x |p| g)", "y ~ x + (x | g)");
    let text = |formula: &str| {
        made(&request("gaussian", &[formula], &[]), &table(1.0, 1.0))
            .text
            .replace(formula, "")
    };
    assert_eq!(text(alone), text(plain));
}

#[test]
fn several_responses_share_groups_and_residuals() {
    let found = made(
        &request("gaussian", &["mvbind(y, x) ~ 1 + (1 |p| g)"], &[]),
        &table(1.0, 1.0),
    );
    for line in [
        "real<offset=y_mean[2], multiplier=y_sd[2]> Intercept_x;",
        "vector<lower=0>[C] sigma = y_sd .* sigma_std;",
        "target += multi_normal_cholesky_lpdf(y[n] | [eta_y[n], eta_x[n]]', diag_pre_multiply(sigma, L_residual));",
        "vector[1] cor_residual; // correlations, one a pair",
        "vector[1] cor_p; // correlations, one a pair",
    ] {
        assert!(found.text.contains(line), "{line}\n{}", found.text);
    }
    // The fit omits rows in which either response is missing.
    assert_eq!(found.data.get("N"), Some(&Value::int(10)));
}

/// Checks that M-splines have an integral of 1 over their range, and that I-splines are the integrals of M-splines. The
/// times omit a fiftieth of the range at each end.
#[test]
fn baseline_hazards_integrate_to_their_cumulative_ones() {
    let times: Vec<f64> = (1..=2001).map(|i| f64::from(i) / 20.0).collect();
    let columns = vec![("time".to_owned(), FrameColumn::Numbers(times.clone()))];
    let frame = Frame::new("table.csv", columns).unwrap();
    let found = made(&request("cox", &["time ~ 1"], &[]), &frame);
    let (densities, integrals) = (numbers(&found, "Zbhaz"), numbers(&found, "Zcbhaz"));
    for function in 0..5 {
        let value = |of: &[f64], row: usize| of[5 * row + function];
        let mut sum = value(&integrals, 0);
        for row in 1..times.len() {
            let middle = 0.5 * (value(&densities, row) + value(&densities, row - 1));
            sum += middle * (times[row] - times[row - 1]);
            assert!((sum - value(&integrals, row)).abs() < 1e-5);
        }
        assert!((0.8..1.0 + 1e-5).contains(&sum), "{function}: {sum}");
    }
}

#[test]
fn groups_of_a_kind_have_a_standard_deviation_of_their_own() {
    let rows = 12;
    let column = |f: &dyn Fn(usize) -> f64| FrameColumn::Numbers((0..rows).map(f).collect());
    let words = |f: &dyn Fn(usize) -> &'static str| {
        FrameColumn::Factor(Factor::of_words(
            &(0..rows).map(|i| Some(f(i))).collect::<Vec<_>>(),
        ))
    };
    let columns = vec![
        ("y".to_owned(), column(&|i| (i as f64).sin())),
        ("g".to_owned(), words(&|i| ["a", "b", "c", "d"][i % 4])),
        ("z".to_owned(), words(&|i| ["u", "u", "v", "v"][i % 4])),
    ];
    let asked = request("gaussian", &["y ~ 1 + (1 | gr(g, by = z))"], &[]);
    let found = made(&asked, &Frame::new("table.csv", columns).unwrap());
    // Each kind has two groups, and rows of the other kind have no effect on them.
    assert_eq!(
        numbers(&found, "Z_g_u"),
        [1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    );
    assert_eq!(
        numbers(&found, "i_g_v"),
        [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 2.0]
    );
    assert!(
        found.shown.contains(&"sd_g_u".to_owned()) && found.shown.contains(&"sd_g_v".to_owned())
    );
}

#[test]
fn a_nonlinear_formula_is_computed_row_by_row() {
    let priors = [
        "Intercept_top ~ normal(0, 5)",
        "b_top ~ normal(0, 1)",
        "Intercept_rate ~ normal(0, 5)",
    ];
    let formulas = [
        "y ~ top * (1 - exp(-rate * x^2)) / 2",
        "top ~ x",
        "rate ~ 1 + (1 | g)",
    ];
    let found = made(&request("gaussian", &formulas, &priors), &table(1.0, 1.0));
    let line = "vector[N] mu = eta_top .* (1 - exp(-eta_rate .* x_x .^ 2)) / 2;";
    assert!(found.text.contains(line), "{}", found.text);
    assert_eq!(
        found.shown[..3],
        ["Intercept_top", "b_top", "Intercept_rate"]
    );
}
