//! Tests the centring of groups and of vectors with a joint prior.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::{Desk, corpus, draws_of, jensen, read_json, rows};

fn moments(fit: &Value) -> BTreeMap<String, [f64; 2]> {
    let row = |row: &Value| {
        let number = |what: &str| row[what].as_f64().unwrap();
        let name = row["name"].as_str().unwrap().to_owned();
        (name, [number("mean"), number("sd")])
    };
    fit["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(row)
        .collect()
}

const FUNNEL: &str =
    "parameters { real v; vector[9] x; } model { v ~ normal(0, 3); x ~ normal(0, exp(v / 2)); }";

#[test]
fn a_funnel_is_fitted_by_centring_it() {
    let desk = Desk::new();
    let model = desk.file("model.stan", FUNNEL);
    let out = desk.name("out");
    let run = |centring: &str| {
        jensen([
            "fit",
            &model,
            "--json",
            "--seed",
            "3",
            "--centring",
            centring,
        ])
    };
    let fit = run("auto").expect(0).json();
    let v = &fit["parameters"][0];
    let (mean, sd) = (v["mean"].as_f64().unwrap(), v["sd"].as_f64().unwrap());
    assert!(mean.abs() < 0.3 && (sd - 3.0).abs() < 0.3, "{mean} {sd}");
    assert!(fit["khat"].as_f64().unwrap() < 0.7, "{}", fit["khat"]);
    let plain = run("off");
    assert!(plain.json()["khat"].as_f64().unwrap() > 0.7);

    // Additional draws come from the same posterior, and the first draws are those of the fit.
    jensen(["fit", &model, "--out", &out, "--seed", "3", "-q"]).expect(0);
    let more = jensen(["draws", &out, "--draws", "1500"]).expect(0).stdout;
    let (first, all) = (draws_of(&desk.path("out")), rows(&more));
    // The draws are preceded by a header and by the mean.
    assert_eq!((first.lines().count(), all.lines().count()), (1002, 1502));
    assert!(all.starts_with(&first));
}

/// The program has correlated intercepts and slopes, written as in Stan's user's guide. Most counties have few houses.
/// Therefore neither a Gaussian, nor chains that start from it, describe the standard deviation of the slopes
/// correctly.
#[test]
fn correlated_effects_are_fitted_between_centred_and_not() {
    const PROGRAM: &str = "data { int N; int J; array[N] int county; vector[N] x; vector[N] y; }
        parameters {
          array[J] vector[2] beta; vector[2] gamma; vector<lower=0>[2] tau; corr_matrix[2] Omega; real<lower=0> sigma;
        }
        model {
          beta ~ multi_normal(gamma, quad_form_diag(Omega, tau));
          gamma ~ normal(0, 5);
          tau ~ cauchy(0, 2.5);
          Omega ~ lkj_corr(2);
          sigma ~ exponential(1);
          for (n in 1:N) y[n] ~ normal(beta[county[n], 1] + beta[county[n], 2] * x[n], sigma);
        }";
    let desk = Desk::new();
    let model = desk.file("model.stan", PROGRAM);
    let (other, data) = corpus("radon_slope_correlated");
    let run = |model: &str| jensen(["fit", model, &data, "--json", "--seed", "1"]);
    let (fit, by_hand) = (run(&model).expect(0).json(), run(&other).expect(0).json());
    for name in ["gamma[1]", "gamma[2]", "tau[1]", "tau[2]", "sigma"] {
        let of = |fit: &serde_json::Value, what: &str| {
            let all = fit["parameters"].as_array().unwrap();
            let one = all.iter().find(|p| p["name"] == name).unwrap();
            one[what].as_f64().unwrap()
        };
        let off = (of(&fit, "mean") - of(&by_hand, "mean")) / of(&by_hand, "sd");
        let ratio = of(&fit, "sd") / of(&by_hand, "sd");
        assert!(
            off.abs() < 0.15 && (ratio - 1.0).abs() < 0.1,
            "{name}: {off} {ratio}"
        );
    }
}

#[test]
fn a_centred_fit_goes_on_where_it_was_stopped() {
    let desk = Desk::new();
    let model = desk.file("model.stan", FUNNEL);
    let (whole, stopped) = (desk.name("whole"), desk.name("stopped"));
    let fit = |out: &str, more: &[&str]| {
        let usual = [
            "fit",
            model.as_str(),
            "--out",
            out,
            "-q",
            "--refine",
            "none",
        ];
        jensen(usual.iter().chain(more)).code
    };
    let whole_code = fit(&whole, &[]);
    assert_eq!(fit(&stopped, &["--max-iters", "12"]), 4);
    jensen(["fit", "--resume", &stopped, "-q", "--max-iters", "100000"]).expect(whole_code);
    assert_eq!(
        draws_of(&desk.path("whole")),
        draws_of(&desk.path("stopped"))
    );
}

#[test]
fn a_run_that_had_no_time_to_choose_a_centring_chooses_when_it_goes_on() {
    let desk = Desk::new();
    let model = desk.file("model.stan", FUNNEL);
    let (whole, stopped) = (desk.name("whole"), desk.name("stopped"));
    let usual = ["fit", model.as_str(), "--seed", "3", "-q", "--out"];
    jensen(usual.iter().chain(&[whole.as_str()])).expect(0);
    // No machine completes the first fit in a quarter of this time.
    let short = [stopped.as_str(), "--max-seconds", "0.001"];
    jensen(usual.iter().chain(&short)).expect(4);
    let stored = read_json(&desk.path("stopped/run.json"));
    assert!(stored.to_string().contains("\"centring\":null"), "{stored}");
    jensen(["fit", "--resume", &stopped, "-q", "--max-seconds", "300"]).expect(0);
    assert_eq!(
        draws_of(&desk.path("whole")),
        draws_of(&desk.path("stopped"))
    );
}

/// Two programs describe a random walk that is observed with noise. The first program uses the shocks of the walk as
/// parameters, and the second program uses its elements. The posterior is the same, but no sparse family is suitable
/// for the first program.
#[test]
fn a_series_by_its_shocks_is_fitted_by_its_elements() {
    const BY_SHOCKS: &str = "data { int T; vector[T] y; }
        parameters { real<lower=0> step; real<lower=0> noise; vector[T] z; }
        transformed parameters { vector[T] x; x[1] = z[1]; for (t in 2:T) x[t] = x[t - 1] + step * z[t]; }
        model { step ~ exponential(1); noise ~ exponential(1); z ~ std_normal(); y ~ normal(x, noise); }";
    const BY_ELEMENTS: &str = "data { int T; vector[T] y; }
        parameters { real<lower=0> step; real<lower=0> noise; vector[T] x; }
        model { step ~ exponential(1); noise ~ exponential(1); x[1] ~ std_normal(); x[2:T] ~ normal(x[1:T - 1], step);
          y ~ normal(x, noise); }";
    const T: usize = 520;
    let desk = Desk::new();
    let y: Vec<f64> = (0..T)
        .map(|t| (0.03 * t as f64).sin() + 0.4 * (2.7 * t as f64).sin())
        .collect();
    let data = desk.file(
        "data.json",
        &serde_json::json!({"T": T, "y": y}).to_string(),
    );
    let (shocks, elements) = (
        desk.file("shocks.stan", BY_SHOCKS),
        desk.file("elements.stan", BY_ELEMENTS),
    );
    let (out, other, stopped) = (desk.name("out"), desk.name("other"), desk.name("stopped"));
    let run = jensen(["fit", &shocks, &data, "--seed", "2", "--out", &out]).expect(0);
    assert!(
        run.stdout.contains("uses the elements of series"),
        "{}",
        run.stdout
    );
    jensen([
        "fit", &elements, &data, "--seed", "2", "--out", &other, "-q",
    ])
    .expect(0);
    let [by_shocks, by_elements] =
        ["out", "other"].map(|run| moments(&read_json(&desk.path(&format!("{run}/fit.json")))));
    // The output contains all elements, and it contains the shocks as separate draws. The prior of the shocks is
    // standard normal.
    for (name, [mean, sd]) in &by_elements {
        let [own, spread] = by_shocks[name];
        assert!(
            (own - mean).abs() < 0.2 * sd && (spread / sd - 1.0).abs() < 0.15,
            "{name}"
        );
    }
    assert!(by_shocks["z[7]"][1] > 0.3 && by_shocks["z[7]"][1] < 1.1);

    // A resumed fit ends with the same result as an uninterrupted fit.
    let fit = [
        "fit", &shocks, &data, "--seed", "2", "-q", "--out", &stopped,
    ];
    jensen(fit.iter().chain(&["--max-iters", "5"])).expect(4);
    jensen(["fit", "--resume", &stopped, "-q", "--max-iters", "100000"]).expect(0);
    assert_eq!(draws_of(&desk.path("out")), draws_of(&desk.path("stopped")));
}

/// Both programs model counts with a Gaussian process. In the first program, the parameters are values whose prior has
/// the covariance of the process. In the second program, they are standard normal numbers. The posterior is the same.
/// With the first program as it is written, neither Gaussians nor chains describe the length scale correctly.
#[test]
fn a_gaussian_process_is_whitened_given_what_the_data_say() {
    const BY_VALUES: &str = "data { int N; array[N] real x; array[N] int y; }
        parameters { real<lower=0> rho; real<lower=0> alpha; real a; vector[N] f; }
        model {
          rho ~ inv_gamma(5, 5); alpha ~ normal(0, 1); a ~ normal(0, 2);
          f ~ multi_normal(rep_vector(a, N), gp_exp_quad_cov(x, alpha, rho) + diag_matrix(rep_vector(1e-6, N)));
          y ~ poisson_log(f);
        }";
    const BY_HAND: &str = "data { int N; array[N] real x; array[N] int y; }
        parameters { real<lower=0> rho; real<lower=0> alpha; real a; vector[N] z; }
        transformed parameters {
          vector[N] f
            = a + cholesky_decompose(gp_exp_quad_cov(x, alpha, rho) + diag_matrix(rep_vector(1e-6, N))) * z;
        }
        model { rho ~ inv_gamma(5, 5); alpha ~ normal(0, 1); a ~ normal(0, 2); z ~ std_normal(); y ~ poisson_log(f); }";
    let desk = Desk::new();
    let n = 14;
    let x: Vec<f64> = (0..n).map(|i| 0.4 * f64::from(i) - 2.6).collect();
    let y = [1, 0, 1, 2, 1, 0, 3, 5, 9, 8, 6, 2, 3, 1];
    let data = serde_json::json!({"N": n, "x": x, "y": y});
    let data = desk.file("data.json", &data.to_string());
    let run = |name: &str, program: &str, more: &[&str]| {
        let model = desk.file(name, program);
        let usual = ["fit", &model, &data, "--json", "--seed", "1"];
        jensen(usual.iter().chain(more))
    };
    let fit = moments(&run("values.stan", BY_VALUES, &[]).expect(0).json());
    let by_hand = moments(&run("hand.stan", BY_HAND, &[]).expect(0).json());
    for (name, [mean, sd]) in by_hand.iter().filter(|(name, _)| !name.starts_with('z')) {
        let [own, spread] = fit[name];
        assert!((own - mean).abs() < 0.15 * sd, "{name}: {own}, not {mean}");
        assert!(
            (spread / sd - 1.0).abs() < 0.12,
            "{name}: {spread}, not {sd}"
        );
    }
    let alone = ["--family", "meanfield"];
    let bound = |centring: &str| {
        let flags = [&alone[..], &["--centring", centring]].concat();
        run("values.stan", BY_VALUES, &flags).json()["elbo"]
            .as_f64()
            .unwrap()
    };
    let (whitened, written) = (bound("auto"), bound("off"));
    assert!(whitened > written + 3.0, "{whitened} and {written} nats");
}

/// A population grows in steps, and the error of the steps may be almost zero. If the steps are small, mean-field fits
/// are accurate. If the steps are large, mean-field fits mislead the chains.
#[test]
fn where_chains_do_not_mix_over_recentred_groups_the_program_is_fitted_as_written() {
    const GROWTH: &str = "data { int T; vector[T] y; }
        parameters { real start; real mean; real<lower=0> step; real<lower=0> error; vector[T - 1] r; }
        transformed parameters {
          vector[T] size;
          size[1] = start;
          for (t in 1:(T - 1)) size[t + 1] = size[t] + r[t];
        }
        model {
          start ~ normal(5.6, 10); mean ~ normal(1, sqrt(1000)); step ~ cauchy(0, 2.5); error ~ inv_gamma(.01, .01);
          r ~ normal(mean, step); y ~ normal(size, error);
        }";
    let desk = Desk::new();
    let model = desk.file("model.stan", GROWTH);
    let y = [
        5.26, 5.36, 5.43, 4.86, 5.09, 5.27, 5.44, 5.49, 5.62, 5.55, 5.64, 5.63, 5.58, 5.59, 5.50,
        5.56, 5.70, 5.77, 5.60, 5.49, 5.65, 5.82, 5.78, 5.98,
    ];
    let data = desk.file(
        "data.json",
        &serde_json::json!({"T": y.len(), "y": y}).to_string(),
    );
    let fit = |out: &str, more: &[&str]| {
        let out = desk.name(out);
        let usual = ["fit", &model, &data, "--seed", "2", "-q", "--out", &out];
        jensen(usual.iter().chain(more)).code
    };
    let resume = |out: &str| {
        jensen([
            "fit",
            "--resume",
            &desk.name(out),
            "-q",
            "--max-iters",
            "100000",
        ])
        .code
    };
    assert_eq!(fit("whole", &[]), 0);
    let centring =
        |out: &str| read_json(&desk.path(&format!("{out}/run.json")))["centring"]["powers"].clone();
    assert_eq!(centring("whole"), serde_json::json!([]));

    // A fit that is stopped in its first or second stage and then resumed ends with the same result as an uninterrupted
    // fit.
    assert_eq!(fit("first", &["--max-iters", "30"]), 4);
    assert_ne!(centring("first"), serde_json::json!([]));
    // The same holds for a fit whose chains are stopped before they can mix.
    assert_eq!(fit("refined", &["--max-iters", "180"]), 4);
    assert_ne!(centring("refined"), serde_json::json!([]));
    assert_eq!(fit("second", &["--max-iters", "600"]), 4);
    assert_eq!(centring("second"), serde_json::json!([]));
    for stopped in ["first", "refined", "second"] {
        assert_eq!(resume(stopped), 0);
        assert_eq!(draws_of(&desk.path("whole")), draws_of(&desk.path(stopped)));
    }
}
