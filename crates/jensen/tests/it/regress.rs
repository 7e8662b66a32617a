//! Tests of regressions, from the table to the posterior.

use jensen::blackbox::Init;
use jensen::data::Adjacency;
use jensen::job::{Around, MEMORY_LIMIT, ResultFolder};
use jensen::program::{FitRequest, Program, RefineName};
use jensen::regress::{FAMILIES, Factor, Frame, FrameColumn, Regression, Request, predict};
use jensen::run::Clock;
use jensen::stan::Halt;
use jensen::{Error, Fitted};

pub struct Stopped;

impl Clock for Stopped {
    fn seconds(&self) -> f64 {
        0.0
    }
}

/// Returns numbers that are spread evenly over the interval from −0.5 to 0.5.
pub fn noise(i: usize) -> f64 {
    ((i + 1) as f64 * 0.754_877_666_246_69).fract() - 0.5
}

pub const ROWS: usize = 60;

/// Returns sixty rows with a predictor, a factor, groups, and a response for every kind of family. The predictor is
/// multiplied by `by`, and the response y is multiplied by `of`.
pub fn table(by: f64, of: f64) -> Frame {
    let x: Vec<f64> = (0..ROWS).map(|i| 2.0 * noise(i)).collect();
    let g: Vec<String> = (0..ROWS).map(|i| format!("g{}", i % 6)).collect();
    let line = |i: usize| 3.0 + 1.5 * x[i] + 0.8 * noise(11 * (i % 6) + 3) + 0.9 * noise(3 * i + 1);
    let share = |i: usize| 1.0 / (1.0 + (3.0 - line(i)).exp());
    let numbers = |f: &dyn Fn(usize) -> f64| FrameColumn::Numbers((0..ROWS).map(f).collect());
    let words = |f: &dyn Fn(usize) -> String| {
        let words: Vec<Option<String>> = (0..ROWS).map(|i| Some(f(i))).collect();
        FrameColumn::Factor(Factor::of_words(&words))
    };
    let columns = vec![
        ("x", numbers(&|i| by * x[i])),
        ("f", words(&|i| ["p", "q", "r"][(i / 3) % 3].to_owned())),
        ("g", words(&|i| g[i].clone())),
        ("y", numbers(&|i| of * line(i))),
        ("positive", numbers(&|i| (0.4 * line(i)).exp())),
        (
            "from0",
            numbers(&|i| if i % 5 == 0 { 0.0 } else { line(i).abs() + 0.1 }),
        ),
        (
            "count",
            numbers(&|i| {
                if i % 7 == 0 {
                    0.0
                } else {
                    line(i).max(0.0).round()
                }
            }),
        ),
        ("share", numbers(&|i| share(i))),
        ("rest", numbers(&|i| 1.0 - share(i))),
        ("kind_of_g", words(&|i| ["u", "v"][i % 6 / 3].to_owned())),
        (
            "ends",
            numbers(&|i| match i % 9 {
                0 => 0.0,
                4 => 1.0,
                _ => share(i),
            }),
        ),
        (
            "zeros",
            numbers(&|i| if i % 9 == 0 { 0.0 } else { share(i) }),
        ),
        ("angle", numbers(&|i| 0.4 * (line(i) - 3.0))),
        (
            "won",
            words(&|i| {
                if noise(5 * i) + 0.5 < share(i) {
                    "yes"
                } else {
                    "no"
                }
                .to_owned()
            }),
        ),
        ("successes", numbers(&|i| (10.0 * share(i)).round())),
        ("size", numbers(&|_| 10.0)),
        ("grade", numbers(&|i| (line(i).round()).clamp(1.0, 5.0))),
        (
            "kind",
            words(&|i| ["a", "b", "c"][(i + (line(i) > 3.2) as usize) % 3].to_owned()),
        ),
        ("left", numbers(&|i| f64::from(u8::from(i % 4 == 0)))),
        ("error", numbers(&|i| 0.3 + 0.2 * (noise(i) + 0.5))),
        (
            "gap",
            numbers(&|i| {
                if i % 8 == 3 {
                    f64::NAN
                } else {
                    noise(7 * i) + x[i]
                }
            }),
        ),
        ("region", numbers(&|i| (i % 6 + 1) as f64)),
        ("upper", numbers(&|i| f64::from(u8::from(i % 3 > 0)))),
    ];
    let columns = columns
        .into_iter()
        .map(|(name, column)| (name.to_owned(), column));
    let mut frame = Frame::new("table.csv", columns.collect()).unwrap();
    // The graph consists of a triangle, a pair of regions and a single region.
    let edges = [(0, 1), (1, 2), (2, 0), (3, 4)];
    let map = Adjacency::from_edges(6, &edges).unwrap();
    frame.graphs.insert("map.graph".to_owned(), map);
    frame.graphs.insert(
        "ring.graph".to_owned(),
        Adjacency::from_edges(6, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)]).unwrap(),
    );
    frame
}

pub fn request(family: &str, formulas: &[&str]) -> Request {
    Request {
        formulas: formulas.iter().map(ToString::to_string).collect(),
        family: Some(family.to_owned()),
        ..Request::default()
    }
}

pub fn compiled(request: &Request, frame: &Frame) -> Result<Program, Error> {
    compiled_for(request, frame, None)
}

fn compiled_for(
    request: &Request,
    frame: &Frame,
    refine: Option<RefineName>,
) -> Result<Program, Error> {
    let made = Regression::new(request, frame)?;
    let settings = FitRequest {
        seed: Some(1),
        refine,
        ..FitRequest::default()
    };
    Program::compile(made.source, settings, 1, Halt::default())
}

pub fn fitted(request: &Request, frame: &Frame, results: ResultFolder) -> Fitted {
    run(&compiled(request, frame).unwrap(), results)
}

pub fn run(program: &Program, results: ResultFolder) -> Fitted {
    let around = Around {
        results,
        checkpoint_every: None,
        memory_limit: MEMORY_LIMIT,
        clock: &Stopped,
        cancel: None,
        partial: false,
        observer: &mut jensen::run::Silent,
    };
    program.fit(Init::Zero, around).unwrap().0
}

pub fn mean(fit: &Fitted, label: &str) -> (f64, f64) {
    let found = fit.parameters().into_iter().find(|p| p.shown() == label);
    let found = found.unwrap_or_else(|| panic!("no {label}"));
    (found.mean, found.sd)
}

fn response(family: &str) -> &'static str {
    match family {
        "gaussian" | "student" | "skew_normal" | "exgaussian" | "asym_laplace"
        | "gen_extreme_value" => "y",
        "von_mises" => "angle",
        "lognormal" | "shifted_lognormal" | "gamma" | "inverse.gaussian" | "exponential"
        | "weibull" | "cox" => "positive",
        "wiener" => "positive | dec(upper)",
        "multi_normal" => "mvbind(y, angle)",
        "hurdle_gamma" | "hurdle_lognormal" => "from0",
        "beta" => "share",
        "zero_inflated_beta" => "zeros",
        "zero_one_inflated_beta" => "ends",
        "bernoulli" => "won",
        "binomial" | "beta_binomial" | "zero_inflated_binomial" => "successes | trials(size)",
        "cumulative" | "sratio" | "cratio" | "acat" => "grade",
        "categorical" => "kind",
        "multinomial" => "cbind(count, successes, size)",
        "dirichlet" => "cbind(share, rest)",
        _ => "count",
    }
}

#[test]
fn every_family_has_a_program_that_evaluates_with_its_replicates() {
    for family in FAMILIES {
        let formula = format!("{} ~ x + f + (1 | g)", response(family.name));
        let asked = request(family.name, &[&formula]);
        let program = compiled(&asked, &table(1.0, 1.0));
        let program = program.unwrap_or_else(|error| panic!("{}: {error}", family.name));
        assert!(
            program.remarks().is_empty(),
            "{}: {:?}",
            family.name,
            program.remarks()
        );
        let names: Vec<String> = program.variables().into_iter().map(|v| v.name).collect();
        assert!(names.contains(&"log_lik".to_owned()));
        // The baseline hazard ends at the last observed time, so responses after this time cannot be replicated.
        let has_replicates = names.contains(&"y_rep".to_owned());
        assert_eq!(has_replicates, family.name != "cox", "{}", family.name);
    }
}

#[test]
fn terms_and_additions_have_programs_that_evaluate() {
    for (family, formulas) in [
        ("gaussian", &["y ~ s(x) + (x | g)", "sigma ~ f"][..]),
        ("gaussian", &["y ~ t2(x, angle)"]),
        ("gaussian", &["y ~ gp(x) + (x || g)"]),
        ("gaussian", &["y ~ mo(grade) + s(x, by = f) + (1 | f/g)"]),
        ("gaussian", &["y | cens(left) + weights(size) ~ x"]),
        ("gaussian", &["y | trunc(lb = -10) ~ x"]),
        ("gaussian", &["y | se(error) ~ x"]),
        (
            "student",
            &["y | se(error, sigma = TRUE) ~ 0 + f", "nu = 4"],
        ),
        ("poisson", &["count | rate(size) ~ x"]),
        (
            "poisson",
            &["count | trunc(ub = 30) ~ offset(x) + s(angle, bs = \"cc\")"],
        ),
        (
            "zero_inflated_negbinomial",
            &["count ~ x + (1 | g)", "zi ~ x", "shape ~ f"],
        ),
        ("asym_laplace", &["y ~ x", "quantile = 0.9"]),
        ("bernoulli(probit)", &["won ~ bs(x, df = 4)"]),
        ("gamma(identity)", &["positive ~ ns(x, df = 2)"]),
        ("binomial", &["cbind(successes, size) ~ poly(x, 2)"]),
        ("cumulative(probit)", &["grade ~ s(x)"]),
        ("weibull", &["positive | cens(left) ~ x"]),
        (
            "gaussian",
            &[
                "y ~ x + (1 + x | mm(g, f))",
                "sigma ~ (1 | mm(g, f, weights = cbind(size, error)))",
            ],
        ),
        ("bernoulli", &["won ~ me(x, error) + f"]),
        ("cumulative", &["grade ~ me(x, error)"]),
        (
            "gaussian",
            &[
                "y ~ mi(gap) + x",
                "gap | mi() ~ x + (1 | g)",
                "sigma ~ mi(gap)",
            ],
        ),
        ("student", &["y ~ x + ar(angle, gr = g, p = 2)"]),
        (
            "poisson",
            &["count ~ x + car(\"map.graph\", gr = region, type = \"icar\")"],
        ),
        (
            "gaussian",
            &[
                "y ~ car(\"map.graph\", region, type = \"bym2\")",
                "sigma ~ car(\"ring.graph\", region)",
            ],
        ),
        ("gaussian", &["y ~ x + (1 + x | gr(g, by = kind_of_g))"]),
        ("gaussian", &["y ~ x + (1 + x |p| g)", "sigma ~ (1 |p| g)"]),
        ("categorical", &["kind ~ x + (1 |p| g)"]),
        ("dirichlet", &["cbind(share, rest) ~ x", "phi ~ x"]),
        ("gaussian", &["mvbind(y, angle) ~ x + (1 |p| g)"]),
        ("cox", &["positive | cens(left) ~ x + (1 | g)"]),
        ("wiener", &["positive | dec(upper) ~ x", "bs ~ f"]),
        ("mixture(gaussian, student)", &["y ~ x", "theta2 ~ f"]),
        ("mixture(gaussian, gaussian)", &["y ~ x + (1 | g)"]),
        ("mixture(poisson, negbinomial)", &["count ~ x"]),
        (
            "mixture(binomial, beta_binomial)",
            &["successes | trials(size) ~ x"],
        ),
    ] {
        let program = compiled(&request(family, formulas), &table(1.0, 1.0));
        let program = program.unwrap_or_else(|error| panic!("{formulas:?}: {error}"));
        assert!(
            program.remarks().is_empty(),
            "{formulas:?}: {:?}",
            program.remarks()
        );
    }
}

#[test]
fn a_nonlinear_formula_gives_back_the_curve_of_the_data() {
    // The responses are y = 2 exp(−1.5 t) + noise.
    let t: Vec<f64> = (0..ROWS).map(|i| i as f64 / 20.0).collect();
    let y = |i: usize| 2.0 * (-1.5 * t[i]).exp() + 0.1 * noise(i);
    let columns = vec![
        (
            "y".to_owned(),
            FrameColumn::Numbers((0..ROWS).map(y).collect()),
        ),
        ("t".to_owned(), FrameColumn::Numbers(t.clone())),
    ];
    let frame = Frame::new("decay.csv", columns).unwrap();
    let asked = Request {
        priors: vec![
            "Intercept_top ~ normal(0, 5)".to_owned(),
            "Intercept_rate ~ normal(0, 5)".to_owned(),
        ],
        ..request(
            "gaussian",
            &["y ~ top * exp(-rate * t)", "top ~ 1", "rate ~ 1"],
        )
    };
    let fit = fitted(&asked, &frame, ResultFolder::None);
    assert!(fit.trusted(), "{:?}", fit.warnings());
    for (name, truth) in [("Intercept_top", 2.0), ("Intercept_rate", 1.5)] {
        let (mean, sd) = mean(&fit, name);
        assert!(
            (mean - truth).abs() < 4.0 * sd && sd < 0.1,
            "{name}: {mean} ± {sd}"
        );
    }
}

#[test]
fn large_tables_have_programs_without_values_for_each_row() {
    for (family, formula) in [
        ("bernoulli", "won ~ x + (x | g)"),
        ("cumulative", "grade ~ x"),
    ] {
        let asked = Request {
            pointwise: Some(false),
            ..request(family, &[formula])
        };
        let program = compiled(&asked, &table(1.0, 1.0)).unwrap();
        assert!(
            program.variables().iter().all(|v| v.len() < ROWS),
            "{formula}"
        );
    }
}

#[test]
fn a_linear_regression_is_that_of_least_squares() {
    let frame = table(1.0, 1.0);
    let (Some(FrameColumn::Numbers(x)), Some(FrameColumn::Numbers(y))) =
        (frame.column("x"), frame.column("y"))
    else {
        panic!("numbers");
    };
    let n = ROWS as f64;
    let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    let sxx: f64 = x.iter().map(|x| (x - mx).powi(2)).sum();
    let sxy: f64 = x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum();
    let slope = sxy / sxx;
    let rest: f64 = x
        .iter()
        .zip(y)
        .map(|(x, y)| (y - my - slope * (x - mx)).powi(2))
        .sum();
    let error = (rest / (n - 2.0) / sxx).sqrt();
    let fit = fitted(&request("gaussian", &["y ~ x"]), &frame, ResultFolder::None);
    assert!(fit.trusted(), "{:?}", fit.warnings());
    let (found, sd) = mean(&fit, "b[x]");
    // The prior has a standard deviation of 2.5 and shifts the slope by less than this tolerance.
    assert!(
        (found - slope).abs() < 0.1 * error,
        "{found} {slope} ± {error}"
    );
    assert!((sd / error - 1.0).abs() < 0.06, "{sd} {error}");
    let (intercept, _) = mean(&fit, "Intercept");
    assert!((intercept - (my - slope * mx)).abs() < 0.1 * error);
}

#[test]
fn units_change_nothing_but_units() {
    let asked = request("gaussian", &["y ~ x + (x | g)"]);
    // Multiplication by a power of two changes no digit of a number, except in the logarithms of scales. The Markov
    // chains of refined draws would amplify the rounding errors of these logarithms, so the test compares the
    // approximation.
    let of = |frame: &Frame| {
        let program = compiled_for(&asked, frame, Some(RefineName::None)).unwrap();
        run(&program, ResultFolder::None)
    };
    let (plain, scaled) = (of(&table(1.0, 1.0)), of(&table(1024.0, 4096.0)));
    assert_eq!(plain.trusted(), scaled.trusted());
    for (label, unit) in [
        ("b[x]", 4.0),
        ("Intercept", 4096.0),
        ("sigma", 4096.0),
        ("sd_g[x]", 4.0),
        ("cor_g[Intercept,x]", 1.0),
    ] {
        let ((mean_plain, sd), (mean_scaled, _)) = (mean(&plain, label), mean(&scaled, label));
        assert!(
            (mean_plain * unit - mean_scaled).abs() < 1e-6 * unit * sd,
            "{label}: {mean_plain} {mean_scaled}"
        );
    }
}

#[test]
fn new_rows_and_new_groups_are_predicted_from_the_folder() {
    let desk = tempfile::tempdir().unwrap();
    let folder = desk.path().join("fit");
    let asked = request("gaussian", &["y ~ x + (1 | g)"]);
    let fit = fitted(&asked, &table(1.0, 1.0), ResultFolder::new(Some(&folder)));
    let columns = vec![
        ("x".to_owned(), FrameColumn::Numbers(vec![0.5, 0.5])),
        (
            "g".to_owned(),
            FrameColumn::Factor(Factor::of_words(&[Some("g2"), Some("another")])),
        ),
    ];
    let rows = Frame::new("new.csv", columns).unwrap();
    let made = predict(&folder, &rows, Some(3), 1, Halt::default()).unwrap();
    let summaries = made.sample.summaries();
    let of = |name: &str| {
        let found = summaries.iter().find(|p| p.name == name).unwrap();
        (found.mean, found.sd)
    };
    let line = mean(&fit, "Intercept").0 + 0.5 * mean(&fit, "b[x]").0;
    let (known, known_sd) = of("expected[1]");
    let expected = line + mean(&fit, "r_g[g2]").0;
    assert!((known - expected).abs() < 0.02, "{known} {expected}");
    let (new, new_sd) = of("expected[2]");
    assert!((new - line).abs() < 4.0 * new_sd / 30.0, "{new} {line}");
    assert!(new_sd > 1.5 * known_sd, "{new_sd} {known_sd}");
    assert!(of("predicted[1]").1 > known_sd);
}
