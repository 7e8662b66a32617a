//! Generates well-typed programs. Each comparison contains a different number, so that sums of simplexes and norms of
//! unit vectors are never equal to the other operand.

use crate::mutate::Dice;

const N: usize = 3;

#[derive(Default)]
struct Scope {
    ints: Vec<String>,
    reals: Vec<String>,
    vectors: Vec<String>,
    matrices: Vec<String>,
}

/// Generates a program without data.
pub fn program(dice: &mut Dice) -> String {
    let mut scope = Scope::default();
    let mut text = format!(
        "transformed data {{\n  int n = {};\n  vector[3] w = [0.5, -1, 2]';\n}}\nparameters {{\n",
        1 + dice.below(4)
    );
    scope.ints.push("n".to_owned());
    scope.vectors.push("w".to_owned());
    for k in 0..1 + dice.below(3) {
        let bounds = *dice.pick(&[
            "",
            "<lower=0>",
            "<upper=1>",
            "<lower=-1, upper=2>",
            "<offset=1, multiplier=2>",
        ]);
        text += &format!("  real{bounds} a{k};\n");
        scope.reals.push(format!("a{k}"));
    }
    for k in 0..dice.below(3) {
        let kind = *dice.pick(&[
            "vector",
            "vector<lower=0>",
            "ordered",
            "simplex",
            "positive_ordered",
            "unit_vector",
        ]);
        text += &format!("  {kind}[3] v{k};\n");
        scope.vectors.push(format!("v{k}"));
    }
    if dice.below(3) == 0 {
        let kind = *dice.pick(&[
            "matrix[3, 3]",
            "cov_matrix[3]",
            "corr_matrix[3]",
            "cholesky_factor_corr[3]",
        ]);
        text += &format!("  {kind} m0;\n");
        scope.matrices.push("m0".to_owned());
    }
    text += "}\ntransformed parameters {\n";
    for k in 0..dice.below(3) {
        text += &format!("  real t{k} = {};\n", real(dice, &scope, 3));
        scope.reals.push(format!("t{k}"));
        text += &format!("  vector[3] u{k} = {};\n", vector(dice, &scope, 2));
        scope.vectors.push(format!("u{k}"));
    }
    text += "}\nmodel {\n";
    for k in 0..1 + dice.below(5) {
        text += &statement(dice, &mut scope, k, 2);
    }
    text += "  a0 ~ normal(0, 1);\n}\ngenerated quantities {\n";
    text += &format!("  real g = {};\n}}\n", real(dice, &scope, 2));
    text
}

fn statement(dice: &mut Dice, scope: &mut Scope, k: usize, depth: usize) -> String {
    match dice.below(if depth > 0 { 8 } else { 4 }) {
        0 => format!("  target += {};\n", real(dice, scope, 3)),
        1 => {
            let kind = *dice.pick(&[
                "normal",
                "cauchy",
                "logistic",
                "gumbel",
                "double_exponential",
            ]);
            format!(
                "  {} ~ {kind}({}, 0.1 + exp({}));\n",
                real(dice, scope, 1),
                real(dice, scope, 1),
                real(dice, scope, 1)
            )
        }
        2 => format!(
            "  {} ~ student_t(4, {}, 1.5);\n",
            vector(dice, scope, 1),
            real(dice, scope, 1)
        ),
        3 => format!(
            "  target += normal_lpdf({} | 0, 2);\n",
            vector(dice, scope, 2)
        ),
        4 => {
            let name = format!("i{k}{depth}");
            scope.ints.push(name.clone());
            let body = statement(dice, scope, k, depth - 1);
            scope.ints.retain(|n| *n != name);
            format!(
                "  for ({name} in 1:{}) {{\n  {body}  }}\n",
                int(dice, scope)
            )
        }
        5 => format!(
            "  if ({} > {} + 0.0141) {{\n  {}  }} else {{\n  {}  }}\n",
            real(dice, scope, 1),
            real(dice, scope, 1),
            statement(dice, scope, k, depth - 1),
            statement(dice, scope, k, depth - 1)
        ),
        6 => {
            let name = format!("l{k}{depth}");
            let start = real(dice, scope, 2);
            scope.reals.push(name.clone());
            let change = real(dice, scope, 2);
            let body = statement(dice, scope, k, depth - 1);
            scope.reals.retain(|n| *n != name);
            format!("  {{\n    real {name} = {start};\n    {name} += {change};\n  {body}  }}\n")
        }
        _ => {
            let name = format!("z{k}{depth}");
            let start = vector(dice, scope, 1);
            scope.vectors.push(name.clone());
            let at = 1 + dice.below(N);
            let value = real(dice, scope, 2);
            let body = statement(dice, scope, k, depth - 1);
            scope.vectors.retain(|n| *n != name);
            format!(
                "  {{\n    vector[3] {name} = {start};\n    {name}[{at}] = {value};\n  {body}  }}\n"
            )
        }
    }
}

fn int(dice: &mut Dice, scope: &Scope) -> String {
    match dice.below(3) {
        0 => (1 + dice.below(4)).to_string(),
        1 => dice.pick(&scope.ints).clone(),
        _ => format!("({} % 3 + 1)", dice.pick(&scope.ints)),
    }
}

fn real(dice: &mut Dice, scope: &Scope, depth: usize) -> String {
    if depth == 0 {
        return match dice.below(4) {
            0 => (*dice.pick(&["0.5", "-1.5", "2", "0", "1e-3", "pi()"])).to_owned(),
            1 => format!("{}[{}]", dice.pick(&scope.vectors), 1 + dice.below(N)),
            _ => dice.pick(&scope.reals).clone(),
        };
    }
    let d = depth - 1;
    match dice.below(12) {
        0 | 1 => {
            let (a, b) = (real(dice, scope, d), real(dice, scope, d));
            match *dice.pick(&["+", "-", "*", "/"]) {
                "/" => format!("({a} / (1 + square({b})))"),
                op => format!("({a} {op} {b})"),
            }
        }
        2 | 3 => {
            let function = *dice.pick(&[
                "tanh",
                "inv_logit",
                "square",
                "abs",
                "atan",
                "expm1",
                "log1p_exp",
                "erf",
                "Phi",
                "cbrt",
                "asinh",
                "inv_cloglog",
                "Phi_approx",
            ]);
            format!("{function}({})", real(dice, scope, d))
        }
        4 => format!("log(0.1 + square({}))", real(dice, scope, d)),
        5 => format!("lgamma(0.5 + square({}))", real(dice, scope, d)),
        6 => {
            let function = *dice.pick(&["fmax", "fmin", "hypot", "log_sum_exp", "fdim"]);
            format!(
                "{function}({}, {})",
                real(dice, scope, d),
                real(dice, scope, d)
            )
        }
        7 | 8 => {
            let function = *dice.pick(&[
                "sum",
                "mean",
                "sd",
                "max",
                "min",
                "log_sum_exp",
                "dot_self",
                "prod",
                "norm2",
            ]);
            format!("{function}({})", vector(dice, scope, d))
        }
        9 => format!(
            "dot_product({}, {})",
            vector(dice, scope, d),
            vector(dice, scope, d)
        ),
        10 => format!(
            "({} > {} + 0.0141 ? {} : {})",
            real(dice, scope, d),
            real(dice, scope, d),
            real(dice, scope, d),
            real(dice, scope, d)
        ),
        _ => format!(
            "pow(1 + square({}), {})",
            real(dice, scope, d),
            int(dice, scope)
        ),
    }
}

fn vector(dice: &mut Dice, scope: &Scope, depth: usize) -> String {
    if depth == 0 {
        return dice.pick(&scope.vectors).clone();
    }
    let d = depth - 1;
    match dice.below(9) {
        0 => format!("({} + {})", vector(dice, scope, d), vector(dice, scope, d)),
        1 => format!("({} .* {})", vector(dice, scope, d), vector(dice, scope, d)),
        2 => format!("({} * {})", real(dice, scope, d), vector(dice, scope, d)),
        3 => format!("rep_vector({}, 3)", real(dice, scope, d)),
        4 => {
            let function = *dice.pick(&[
                "exp",
                "tanh",
                "square",
                "softmax",
                "cumulative_sum",
                "reverse",
                "abs",
                "inv_logit",
            ]);
            format!("{function}({})", vector(dice, scope, d))
        }
        5 if !scope.matrices.is_empty() => {
            format!(
                "({} * {})",
                dice.pick(&scope.matrices),
                vector(dice, scope, d)
            )
        }
        6 => format!(
            "append_row({}, segment({}, 1, 2))",
            real(dice, scope, d),
            vector(dice, scope, d)
        ),
        7 => format!("[{}, {}, 1]'", real(dice, scope, d), real(dice, scope, d)),
        _ => format!("sort_asc({})", vector(dice, scope, d)),
    }
}

/// Returns the program with every call multiplied by a number that differs from 1 by a few units in the last place.
/// Each call has a different number, so that equal terms do not cancel.
pub fn rescaled(source: &str) -> String {
    let mut text = String::new();
    // For each open parenthesis, whether it belongs to a call.
    let mut open = Vec::new();
    let mut calls = 0;
    let mut rest = source;
    while let Some(character) = rest.chars().next() {
        let word = &rest[..rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len())];
        let (head, tail) = rest.split_at(word.len().max(character.len_utf8()));
        let statement = matches!(word, "if" | "for" | "while") || text.trim_end().ends_with('~');
        match character {
            '(' => open.push(false),
            ')' if open.pop() == Some(true) => text.push(')'),
            _ if !word.is_empty() && tail.starts_with('(') && !statement => {
                calls += 1;
                text += &format!("(1.{:015} * ", calls % 9 + 1);
                text += word;
                text.push('(');
                open.push(true);
                rest = &tail[1..];
                continue;
            }
            _ => {}
        }
        text += head;
        rest = tail;
    }
    text
}
