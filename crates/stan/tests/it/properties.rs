//! Tests that the checker returns a result for every text, and that it accepts valid programs.
//!
//! A normal run tests few cases. `cargo test -p jensen-stan --test properties -- --ignored` runs 100 000 cases of each
//! kind.

use jensen_stan::pretty::{print_program, show_tokens, show_tree};
use jensen_stan::program::{Expr, ExprKind, Program};
use jensen_stan::syntax::parser::{MAX_DEPTH, MAX_HEIGHT};
use jensen_stan::{NoIncludes, check};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{RngSeed, TestRunner};

/// None of these operations may panic, whatever the text is.
fn exercise(text: &str) -> Option<Program> {
    let checked = check(text, "random", &NoIncludes);
    let rendered = checked.render(false);
    assert_eq!(rendered.is_empty(), checked.diagnostics.is_empty());
    assert_eq!(
        checked.program.is_none(),
        checked.diagnostics.iter().any(|d| d.is_error()),
        "rejected without a reason or accepted with an error"
    );
    show_tokens(text, "random", &NoIncludes);
    show_tree(text, "random", &NoIncludes);
    if let Some(program) = &checked.program {
        print_program(program);
    }
    checked.program
}

const WORDS: &[&str] = &[
    "functions",
    "data",
    "transformed",
    "parameters",
    "model",
    "generated",
    "quantities",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    ":",
    "|",
    "~",
    "=",
    "+=",
    ".*=",
    "+",
    "-",
    "*",
    "/",
    "%/%",
    "%",
    "\\",
    "^",
    ".^",
    "'",
    "!",
    "?",
    "<",
    ">",
    "<=",
    "==",
    "&&",
    "||",
    "int",
    "real",
    "vector",
    "row_vector",
    "matrix",
    "array",
    "tuple",
    "complex",
    "simplex",
    "cov_matrix",
    "lower",
    "upper",
    "offset",
    "void",
    "for",
    "in",
    "while",
    "if",
    "else",
    "return",
    "break",
    "print",
    "reject",
    "target",
    "jacobian",
    "profile",
    "T",
    "x",
    "y",
    "N",
    "normal",
    "normal_lpdf",
    "foo_rng",
    "sum",
    "1",
    "2",
    "0.5",
    ".1",
    "3i",
    "\"text\"",
    "// c\n",
    "#include <a>",
    "# old\n",
    "_",
    "@",
    "é",
    "\n",
];

/// The number of cases is fixed here, so that it is the same on every machine.
const CASES: u32 = 256;
const MANY: u32 = 100_000;

fn run<S: Strategy>(cases: u32, strategy: S, test: impl Fn(S::Value)) {
    let config = ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        cases,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(&strategy, |value| {
        test(value);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

fn any_text(cases: u32) {
    run(cases, "\\PC{0,200}", |text| {
        exercise(&text);
    });
    run(cases, vec(any::<u8>(), 0..300), |bytes| {
        exercise(&String::from_utf8_lossy(&bytes));
    });
}

fn any_words(cases: u32) {
    run(cases, vec(select(WORDS), 0..120), |words| {
        exercise(&words.join(" "));
        exercise(&format!("model {{ {} }}", words.join(" ")));
    });
}

fn generated(cases: u32) {
    run(cases, any::<u64>(), |seed| {
        let text = crate::common::program(seed);
        let checked = check(&text, "generated", &NoIncludes);
        assert!(
            checked.program.is_some(),
            "{text}\n{}",
            checked.render(false)
        );
        if let Some(program) = exercise(&text) {
            verify(&program);
        }
        let once = show_tree(&text, "generated", &NoIncludes);
        assert_eq!(show_tree(&once, "generated", &NoIncludes), once);
        assert!(
            check(&once, "printed", &NoIncludes).program.is_some(),
            "{once}"
        );
    });
}

fn damaged(cases: u32) {
    run(
        cases,
        (any::<u64>(), any::<Index>(), select(WORDS)),
        |(seed, cut, word)| {
            let text = crate::common::program(seed);
            let at = cut.index(text.len());
            exercise(&format!("{}{word}{}", &text[..at], &text[at..]));
            exercise(&format!(
                "{}{}",
                &text[..at],
                text.get(at + 3..).unwrap_or_default()
            ));
        },
    );
}

#[test]
fn any_text_is_answered() {
    any_text(CASES);
}

#[test]
fn any_words_are_answered() {
    any_words(CASES);
}

#[test]
fn generated_programs_are_valid_and_print_to_themselves() {
    generated(CASES);
}

#[test]
fn statements_may_begin_with_an_array() {
    for text in [
        "model { {1.0, 2.0} ~ normal(0, 1); }",
        "model { ({1.0, 2.0})[1:2] ~ normal(0, 1); }",
        "model { {[1.0]', [2.0]'}[:, 1] ~ normal(0, 1); }",
        "model { { {} } 1.0 ~ normal(0, 1); }",
    ] {
        let checked = check(text, "array", &NoIncludes);
        assert!(checked.program.is_some(), "{}", checked.render(false));
        let once = show_tree(text, "array", &NoIncludes);
        assert_eq!(show_tree(&once, "array", &NoIncludes), once);
    }
}

#[test]
fn damaged_programs_are_answered() {
    damaged(CASES);
}

#[test]
#[ignore = "takes minutes"]
fn many_cases() {
    any_text(MANY);
    any_words(MANY);
    generated(MANY);
    damaged(MANY);
}

fn verify(program: &Program) {
    let mut seen = vec![false; program.expr_count as usize];
    let mut visit = |expr: &Expr| {
        assert!(
            !std::mem::replace(&mut seen[expr.id.0 as usize], true),
            "an id occurs twice"
        );
    };
    for decl in program.data.iter().chain(&program.parameters) {
        if let Some(init) = &decl.init {
            walk(init, &mut visit);
        }
    }
    let blocks = [
        &program.transformed_data,
        &program.transformed_parameters,
        &program.model,
        &program.generated_quantities,
    ];
    for statement in blocks.into_iter().flatten() {
        use jensen_stan::program::StmtKind;
        match &statement.kind {
            StmtKind::Decl(decl) => decl.init.iter().for_each(|e| walk(e, &mut visit)),
            StmtKind::Assign(assign) => walk(&assign.rhs, &mut visit),
            StmtKind::TargetPlus(e) => walk(e, &mut visit),
            StmtKind::Tilde(tilde) => tilde.args.iter().for_each(|e| walk(e, &mut visit)),
            _ => {}
        }
    }
}

fn walk(expr: &Expr, visit: &mut impl FnMut(&Expr)) {
    visit(expr);
    match &expr.kind {
        ExprKind::Unary(_, e)
        | ExprKind::Transpose(e)
        | ExprKind::TupleProj(e, _)
        | ExprKind::Promote(e) => walk(e, visit),
        ExprKind::Binary(_, a, b) => {
            walk(a, visit);
            walk(b, visit);
        }
        ExprKind::Ternary(a, b, c) => {
            walk(a, visit);
            walk(b, visit);
            walk(c, visit);
        }
        ExprKind::Index(base, _) => walk(base, visit),
        ExprKind::ArrayLit(list) | ExprKind::RowVectorLit(list) | ExprKind::TupleLit(list) => {
            list.iter().for_each(|e| walk(e, visit));
        }
        ExprKind::Call(call) => call.args.iter().for_each(|e| walk(e, visit)),
        _ => {}
    }
}

#[test]
fn nesting_is_bounded_and_says_so() {
    let opens = [
        ("(", ")"),
        ("[", "]"),
        ("{", "}"),
        ("-", ""),
        ("1 ^ ", ""),
        ("sin(", ")"),
        ("1 ? 2 : ", ""),
        ("x[", "]"),
    ];
    for (open, close) in opens {
        for depth in [50, MAX_DEPTH as usize - 5, MAX_DEPTH as usize + 5, 100_000] {
            let text = format!(
                "model {{ real x = {}1{}; }}",
                open.repeat(depth),
                close.repeat(depth)
            );
            let program = exercise(&text);
            assert!(
                program.is_none() || depth < MAX_DEPTH as usize,
                "{open} {depth}"
            );
        }
    }
    for head in [
        "if (1) ",
        "{",
        "while (1) ",
        "for (i in 1:2) ",
        "if (1) ; else ",
        "profile(\"a\") {",
    ] {
        for depth in [50, MAX_DEPTH as usize + 5, 100_000] {
            exercise(&format!("model {{ {} ; }}", head.repeat(depth)));
        }
    }
    for chain in [" + 1", "'", "[1:1]", " * 2", " && 1"] {
        for length in [MAX_HEIGHT as usize - 5, MAX_HEIGHT as usize + 5, 100_000] {
            exercise(&format!(
                "model {{ matrix[2, 2] x; x = x{}; }}",
                chain.repeat(length)
            ));
        }
    }
    let chain = |link: &str, n: usize| format!("model {{ real x = 1{}; }}", link.repeat(n));
    assert!(exercise(&chain(" * 1", MAX_HEIGHT as usize - 2)).is_some());
    assert!(exercise(&chain(" * 1", MAX_HEIGHT as usize + 2)).is_none());
    // The parser divides sums into parts, so the nesting depends only on the number of parts.
    assert!(exercise(&chain(" + 1", 10_000)).is_some());
}

#[test]
fn two_hundred_lines_take_milliseconds() {
    let mut text = String::from(
        "data { int N; vector[N] x; } parameters { real a; real<lower=0> s; } model {\n",
    );
    for i in 0..100 {
        text.push_str(&format!(
            "  real v{i} = a * {i} + exp(a) * log1p(s) / 2.0 - sum(x);\n  x ~ normal(a + v{i}, s);\n"
        ));
    }
    text.push('}');
    let best = (0..5)
        .map(|_| {
            let start = std::time::Instant::now();
            assert!(check(&text, "long", &NoIncludes).program.is_some());
            start.elapsed()
        })
        .min()
        .unwrap();
    // The aim is 5 ms. The limit allows for a busy machine.
    assert!(best.as_millis() < 50, "{best:?}");
}
