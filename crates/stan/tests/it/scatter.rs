//! Tests variables that scatter about a location. They are the elements of vectors, each about its own mean, and whole
//! vectors.

use crate::support::bind;
use jensen_graph::{Hierarchy, Spread};
use jensen_stan::lower::{LowerOptions, lower};

/// Vectors of two elements with means (1, −1), standard deviations 2 and 0.5, and correlation 0.6, in every form. If
/// the form has a precision, the standard deviations are conditional on the other element.
const FORMS: [(&str, &str, f64); 7] = [
    (
        "array[3] vector[2] b",
        "b ~ multi_normal(m, quad_form_diag(R, t));",
        1.0,
    ),
    (
        "array[3] vector[2] b",
        "b ~ multi_normal_cholesky(m, diag_pre_multiply(t, cholesky_decompose(R)));",
        1.0,
    ),
    (
        "array[3] vector[2] b",
        "b ~ multi_normal_prec(m, inverse_spd(quad_form_diag(R, t)));",
        0.8,
    ),
    (
        "matrix[2, 3] b",
        "for (j in 1:3) b[, j] ~ multi_normal(m, quad_form_diag(R, t));",
        1.0,
    ),
    (
        "matrix[60, 2] b",
        "for (j in 1:60) b[j] ~ multi_normal(m, quad_form_diag(R, t));",
        1.0,
    ),
    (
        "array[60] vector[2] b",
        "for (j in 1:60) b[j] ~ multi_normal_prec(m, inverse_spd(quad_form_diag(R, t)));",
        0.8,
    ),
    (
        "array[60] vector[2] b",
        "b ~ multi_normal(rep_array(m, 60), quad_form_diag(R, t));",
        1.0,
    ),
];

#[test]
fn elements_of_vectors_scatter_about_their_means() {
    for (declared, stated, given_others) in FORMS {
        let source = format!(
            "parameters {{ vector[2] m; vector<lower=0>[2] t; {declared}; }}
             transformed parameters {{ matrix[2, 2] R = [[1, 0.6], [0.6, 1]]; }}
             model {{ m ~ normal(0, 1); t ~ normal(0, 1); {stated} }}"
        );
        let bound = bind(&source, "{}").unwrap_or_else(|e| panic!("{stated}: {e}"));
        let lowered = lower(&bound, LowerOptions::default()).unwrap();
        let hierarchy = Hierarchy::find(&lowered.graph, &lowered.scattered);
        let hierarchy = hierarchy.unwrap_or_else(|| panic!("{stated}: no hierarchy"));
        let dim = bound.unconstrained_dim();
        let vectors = (dim - 4) / 2;
        let mut z = vec![1.0, -1.0, 2.0f64.ln(), 0.5f64.ln()];
        z.extend((0..dim - 4).map(|i| (i as f64 * 0.7).sin()));
        let found = hierarchy.at(&z);
        assert_eq!(found.len(), 2 * vectors, "{stated}");
        // If the matrix has 60 columns, the elements of a vector in one of its rows are not adjacent.
        let by_columns = declared.starts_with("matrix[60");
        for v in 0..vectors {
            for (k, (mean, sd)) in [(1.0, 2.0), (-1.0, 0.5)].into_iter().enumerate() {
                let position = if by_columns {
                    k * vectors + v
                } else {
                    2 * v + k
                };
                let placed = &found[&((4 + position) as u32)];
                let near =
                    |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{stated}: {a}, not {b}");
                near(placed.location, mean);
                near(placed.log_scale, f64::ln(given_others * sd));
            }
        }
    }
}

const TOGETHER: [(&str, &str, usize, usize); 4] = [
    (
        "vector[6] f",
        "f ~ multi_normal(m, gp_exp_quad_cov(x, 1, t));",
        1,
        6,
    ),
    (
        "vector[6] f",
        "f ~ multi_normal_cholesky(rep_vector(0, 6), cholesky_decompose(gp_exp_quad_cov(x, 1, t)));",
        1,
        6,
    ),
    (
        "array[3] vector[20] f",
        "f ~ multi_normal(rep_vector(0, 20), gp_exponential_cov(linspaced_array(20, 0, 1), 1, t));",
        3,
        20,
    ),
    (
        "matrix[6, 2] f",
        "for (j in 1:2) f[, j] ~ multi_normal(m, gp_exp_quad_cov(x, 1, t));",
        2,
        6,
    ),
];

#[test]
fn vectors_scatter_as_one() {
    for (declared, stated, count, length) in TOGETHER {
        let source = format!(
            "transformed data {{ array[6] real x = linspaced_array(6, 0, 1); }}
             parameters {{ vector[6] m; real<lower=0> t; {declared}; }}
             model {{ m ~ normal(0, 1); t ~ normal(0, 1); {stated} }}"
        );
        let bound = bind(&source, "{}").unwrap_or_else(|e| panic!("{stated}: {e}"));
        let lowered = lower(&bound, LowerOptions::default()).unwrap();
        let hierarchy = Hierarchy::find(&lowered.graph, &lowered.scattered);
        let hierarchy = hierarchy.unwrap_or_else(|| panic!("{stated}: no hierarchy"));
        let mut found = hierarchy.together();
        found.sort_unstable();
        let all: Vec<u32> = (7..7 + (count * length) as u32).collect();
        assert_eq!(found, all, "{stated}");
        let vectors = lowered.scattered.iter();
        let vectors = vectors.filter(|one| matches!(one.spread, Spread::Factor(_)));
        assert_eq!(vectors.count(), count, "{stated}");
    }
}

#[test]
fn vectors_of_data_and_long_ones_do_not_scatter() {
    let declared = |k: usize, data: bool| match data {
        true => format!("data {{ vector[{k}] y; }} parameters {{ vector[{k}] m; }}"),
        false => format!("parameters {{ vector[{k}] y; vector[{k}] m; }}"),
    };
    // A few elements are recorded separately, and more elements are recorded jointly.
    for (k, data, wanted) in [
        (2, true, 0),
        (4, false, 4),
        (5, false, 1),
        (400, false, 1),
        (401, false, 0),
    ] {
        let source = format!(
            "{} model {{ y ~ multi_normal(m, identity_matrix({k})); }}",
            declared(k, data)
        );
        let bound = bind(&source, r#"{"y": [1, 2]}"#).unwrap_or_else(|e| panic!("{source}: {e}"));
        let lowered = lower(&bound, LowerOptions::default()).unwrap();
        assert_eq!(lowered.scattered.len(), wanted, "{source}");
    }
}
