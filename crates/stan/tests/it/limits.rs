//! Tests the limits that end an evaluation during a call of the library, and the speed of calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use jensen_stan::interpret::{ErrorKind, Halt, Interpreter};
use jensen_stan::lower::{LowerOptions, lower};
use jensen_stan::{NoIncludes, check};

use crate::support::JsonData;

fn program(rows: usize, call: &str) -> String {
    format!(
        "transformed data {{ matrix[{rows}, {rows}] m = to_matrix(sin(square(linspaced_vector({0}, 1, {0}))), {rows}, {rows});\n\
         matrix[{rows}, {rows}] s = add_diag(0.5 * (m + m'), {rows});\n\
         real z = {call}; }} parameters {{ real a; }} model {{ a ~ normal(z, 1); }}",
        rows * rows
    )
}

/// For this number of rows, a Schur decomposition takes many seconds, and it does not check the interrupt.
#[test]
fn a_call_that_takes_long_is_not_waited_for() {
    let text = program(500, "get_real(complex_schur_decompose_t(m)[1, 1])");
    let checked = check(&text, "model.stan", &NoIncludes);
    let program = Arc::new(checked.program.expect("a correct program"));
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let halt = Halt::new(move || asked.load(Ordering::Relaxed).then(|| "enough".to_owned()));
    let interpreter = Interpreter {
        halt: halt.apart(|work| {
            std::thread::spawn(work);
        }),
        ..Interpreter::default()
    };
    let soon = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::Relaxed);
        Instant::now()
    });
    let bound = interpreter.bind(program, &JsonData::default(), &mut |_| {});
    let error = bound.expect_err("it is ended");
    let late = soon.join().expect("no panic").elapsed();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::Limit, "enough")
    );
    assert!(late < Duration::from_millis(500), "{late:?}");
}

/// With loops over scalars, each of these calls took from half a minute to several minutes.
#[test]
fn matrices_of_hundreds_of_rows_take_no_time() {
    for call in [
        "eigenvalues_sym(s)[1]",
        "get_real(eigenvalues(m)[1])",
        "singular_values(m)[1]",
        "log_determinant(m)",
        "inverse(m)[1, 1]",
        "(m / s)[1, 1]",
        "qr_R(m)[1, 1]",
        "log_determinant_spd(s)",
        "matrix_exp(1e-2 * m)[1, 1]",
        "get_real(fft(to_complex(linspaced_vector(100003, 0, 1), 0))[1])",
    ] {
        let text = program(300, call);
        let begun = Instant::now();
        crate::support::bind(&text, "{}").expect("a model");
        let taken = begun.elapsed();
        assert!(taken < Duration::from_secs(8), "{call}: {taken:?}");
    }
}

static APART: AtomicUsize = AtomicUsize::new(0);

/// The calls are transforms, systems of equations with a vector, and arrays of small arrays.
#[test]
fn calls_that_may_take_long_are_done_apart() {
    let pieces = |call: &str| {
        let checked = check(&program(150, call), "model.stan", &NoIncludes);
        let program = Arc::new(checked.program.expect("a correct program"));
        let interpreter = Interpreter {
            halt: Halt::new(|| None).apart(|work| {
                APART.fetch_add(1, Ordering::Relaxed);
                std::thread::spawn(work);
            }),
            ..Interpreter::default()
        };
        let before = APART.load(Ordering::Relaxed);
        let bound = interpreter.bind(program, &JsonData::default(), &mut |_| {});
        bound.expect("a model");
        APART.load(Ordering::Relaxed) - before
    };
    let without = pieces("0");
    for call in [
        "get_real(fft(to_complex(linspaced_vector(70001, 0, 1), 0))[1])",
        "(s \\ rep_vector(1, 150))[1]",
        "(rep_row_vector(1, 150) / s)[1]",
        "exp(rep_array(rep_vector(0.5, 50), 100000))[1, 1]",
    ] {
        assert!(pieces(call) > without, "{call}");
    }
}

#[test]
fn hypergeometric_functions_of_huge_lists_are_refused() {
    for call in [
        "hypergeometric_pFq(v, v, 0.1)",
        "hypergeometric_3F2(v, v, 0.1)",
    ] {
        let text = format!(
            "parameters {{ real a; }} model {{ a ~ normal(0, 1); vector[1000000] v = rep_vector(a, 1000000); target += {call}; }}"
        );
        let begun = Instant::now();
        let model = crate::support::bind(&text, "{}").expect("a model");
        let refused = lower(&model, LowerOptions::default()).err();
        let error = refused.expect("it is refused");
        assert!(
            error.message.contains("hypergeometric"),
            "{}",
            error.message
        );
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}

/// Calls `lower` for the statement and interrupts it after a tenth of a second.
fn is_interrupted(statement: &str) {
    let text = format!(
        "transformed data {{ vector[2000000] y = linspaced_vector(2000000, 1, 2);\n\
         array[2000000] int n = rep_array(7, 2000000); }}\n\
         parameters {{ real<lower=0> a; }} model {{ {statement} }}"
    );
    let checked = check(&text, "model.stan", &NoIncludes);
    let program = Arc::new(checked.program.expect("a correct program"));
    let asked = Arc::new(AtomicBool::new(false));
    let reached = Arc::clone(&asked);
    let interpreter = Interpreter {
        halt: Halt::new(move || reached.load(Ordering::Relaxed).then(|| "enough".to_owned()))
            .apart(|work| {
                std::thread::spawn(work);
            }),
        ..Interpreter::default()
    };
    let bound = interpreter.bind(program, &JsonData::default(), &mut |_| {});
    let model = bound.expect("a model");
    // The data take seconds to build in a slow build, and the limit is that of the interruption.
    let begun = Instant::now();
    let stop = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        asked.store(true, Ordering::Relaxed);
    });
    let error = lower(&model, LowerOptions::default()).expect_err("it is ended");
    stop.join().expect("no panic");
    assert_eq!(error.message, "enough");
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}

/// The graph receives dozens of nodes for each element of these arguments.
#[test]
fn calls_with_nodes_for_each_element_are_interrupted() {
    is_interrupted("target += wiener_lcdf_unnorm(y, a * y, y / 8, y / 4, y);");
}

/// All arguments are known, so the graph contains only the result.
#[test]
fn calls_of_constants_are_interrupted() {
    is_interrupted("target += beta_neg_binomial_lpmf(n | y, y / 8, y / 4);");
}
