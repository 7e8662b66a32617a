//! Generates expressions.

use super::{Generator, Kind};

/// Smooth functions of one number that are defined everywhere and grow slowly.
const SMOOTH: &[&str] = &[
    "tanh",
    "sin",
    "cos",
    "inv_logit",
    "atan",
    "log1p_exp",
    "expm1_of",
    "square_of",
    "Phi",
    "Phi_approx",
    "erf",
    "asinh",
    "log_of",
    "sqrt_of",
    "lgamma_of",
    "digamma_of",
    "inv_of",
    "cbrt_of",
    "abs",
    "exp_of",
    "inv_cloglog",
    "log_inv_logit",
    "log1m_exp_of",
    "floor",
    "step_of",
    "logit_of",
    "acos_of",
    "cosh_of",
];

const PAIRS: &[&str] = &[
    "fmin(#, #)",
    "fmax(#, #)",
    "hypot(#, 1.5 + tanh(#))",
    "log_sum_exp(#, #)",
    "fma(#, #, #)",
    "lmultiply(0.5, exp(tanh(#)))",
    "atan2(#, 1.5 + tanh(#))",
    "fdim(#, #)",
    "lbeta(exp(tanh(#)), 1.5)",
    "pow(exp(tanh(#)), #)",
    "(exp(tanh(#)) ^ 2)",
    "(# / (1.5 + tanh(#)))",
    "log_mix(inv_logit(tanh(#)), #, #)",
    "blend(#, #)",
    "spin(#, 3)",
    "wedge(#)",
    "both(#, x).1",
    "lchoose(5 + tanh(#), 2)",
    "max([#, #])",
    "min({#, #})",
    "(# > #)",
    "if_pair(#)",
];

const REDUCED: &[&str] = &[
    "sum(#)",
    "mean(#)",
    "sd(append_row(0.5, exp(#)))",
    "variance(#)",
    "max(#)",
    "min(#)",
    "prod(#)",
    "log_sum_exp(#)",
    "dot_self(#)",
    "norm2(1.5 + tanh(#))",
    "norm1(#)",
    "dot_product(#, #)",
    "squared_distance(#, #)",
    "distance(#, fmax(#, 0) + 9)",
    "(#' * #)",
    "sum(#[g])",
    "sum(head(#, 2))",
    "sum(segment(#, 2, 2))",
    "quad_form(X, #)",
    "sort_asc(#)[1]",
    "(#)[2:3][1]",
    "sum(to_array_1d(#))",
    "inv(1 + dot_self(#))",
    "to_matrix(#, 1, N)[1, 2]",
];

const OF_MATRIX: &[&str] = &[
    "sum(#)",
    "trace(#)",
    "sum(diagonal(#))",
    "log_determinant(add_diag(tcrossprod(tanh(#)), 1))",
    "mean(#)",
    "max(#)",
    "determinant(tanh(#))",
    "sum(cholesky_decompose(add_diag(tcrossprod(tanh(#)), 2)))",
    "#[2, 3]",
    "#[2][1]",
    "sum(#[1:2, 2:])",
    "sum(block(#, 1, 2, 2, 2))",
    "trace_quad_form(#, X)",
    "sum(inverse(add_diag(tcrossprod(tanh(#)), 1)))",
];

/// Expressions for vectors. `#` stands for a vector, `@` for a matrix, and `$` for a real.
const VECTORS: &[&str] = &[
    "softmax(#)",
    "log_softmax(#)",
    "cumulative_sum(#)",
    "reverse(#)",
    "sort_desc(#)",
    "append_row(#[1:2], $)",
    "append_row($, tail(#, N - 1))",
    "diagonal(@)",
    "col(@, 2)",
    "@[, 2]",
    "(@[3]')",
    "(@ * #)",
    "(# .* #)",
    "(# - #)",
    "(# + $)",
    "($ - #)",
    "(# * $)",
    "(# ./ (1.5 + tanh(#)))",
    "#[g]",
    "rep_vector($, N)",
    "([$, $, $]')",
    "to_vector({$, $, $})",
    "to_vector(y)",
    "shift(#, 0.5)",
    "blend(#, $)",
    "(columns_dot_product(@, @)')",
    "rows_dot_product(@, @)",
    "both($, #).2",
    "mdivide_left_tri_low(add_diag(0.1 * tanh(@), 1.5), #)",
    "mdivide_left_spd(add_diag(tcrossprod(tanh(@)), 1), #)",
    "(add_diag(tcrossprod(tanh(@)), 1) \\ #)",
    "segment(append_row(#, #), 2, N)",
    "(X * #)",
    "fmax(#, $)",
    "#[{3, 1, 2}]",
    "to_vector(@[1])",
    "pow(exp(tanh(#)), 2)",
    "exp(tanh(#))",
    "sqrt(1 + square(tanh(#)))",
    "log1p(exp(tanh(#)))",
    "inv_logit(#)",
    "sin(#)",
    "tanh(#)",
    "abs(#)",
    "square(tanh(#))",
    "Phi(#)",
    "(-#)",
    "linspaced_vector(N, 0, 1)",
    "one_hot_vector(N, 2)",
    "vs[2]",
    "lmultiply(0.5, exp(tanh(#)))",
    "(exp(tanh(#)) .^ 1.5)",
    "append_row(append_row(#[3:3], #[1:1]), #[2:2])",
];

const MATRICES: &[&str] = &[
    "(@ + @)",
    "(@ * $)",
    "(@ * @)",
    "diag_matrix(#)",
    "(# * #')",
    "tcrossprod(@)",
    "crossprod(@)",
    "(@')",
    "(@ .* @)",
    "diag_pre_multiply(#, @)",
    "diag_post_multiply(@, #)",
    "quad_form_diag(@, #)",
    "add_diag(@, #)",
    "rep_matrix(#, N)",
    "rep_matrix($, N, N)",
    "append_col(#, @[, 2:])",
    "append_row(#', @[1:2])",
    "to_matrix(to_vector(@), N, N)",
    "cholesky_decompose(add_diag(tcrossprod(tanh(@)), 1))",
    "inverse_spd(add_diag(tcrossprod(tanh(@)), 1))",
    "gp_exp_quad_cov(y, exp(tanh($)), 1.2)",
    "[#', #', #']",
    "@[g, g]",
    "@[, {3, 1, 2}]",
    "tanh(@)",
    "(@ - $)",
    "(-@)",
    "multiply_lower_tri_self_transpose(@)",
    "symmetrize_from_lower_tri(@)",
    "(@ / 2)",
    "(tanh(@) / add_diag(tcrossprod(tanh(@)), 1))",
];

/// Expressions for ints. `#` stands for an int, and `$` for a real.
const INTS: &[&str] = &[
    "($ > $)",
    "(# && !#)",
    "min({#, #})",
    "(# == #)",
    "(# + #)",
    "(# - #)",
    "(# * 2)",
    "(7 %/% (1 + abs(#)))",
    "(# % 3)",
    "abs(#)",
    "(# || $ < 1)",
    "size(vs)",
    "sum(k)",
    "max(#, #)",
    "rows(X)",
    "(-#)",
    "num_elements(X)",
    "to_int(2.5)",
    "k[2]",
    "int_step($)",
];

impl Generator {
    pub(super) fn index(&mut self) -> String {
        if let Some(name) = self.loops.last().cloned()
            && self.below(2) == 0
        {
            return name;
        }
        self.pick(&["1", "N", "(1 + N) %/% 2", "g[1]", "2"])
            .to_owned()
    }

    fn leaf(&mut self, kind: Kind) -> String {
        let names: Vec<String> = self
            .vars
            .iter()
            .filter(|v| v.kind == kind && (v.data || !self.only_data))
            .map(|v| v.name.clone())
            .collect();
        // The newest names are last, and they are the most interesting ones.
        if !names.is_empty() && self.below(6) > 0 {
            let (i, j) = (self.below(names.len()), self.below(names.len()));
            return names[i.max(j)].clone();
        }
        let list: &[&str] = match kind {
            Kind::Int => &["0", "1", "2", "N", "3", "size(k)", "k[1]"],
            Kind::Real => &["0.5", "1e-1", "2.0", "pi()", "3", "-1.5"],
            Kind::Vector => &["rep_vector(0.5, N)", "ones_vector(N)", "zeros_vector(N)"],
            Kind::RowVector => &["rep_row_vector(2, N)", "[1, 2, 3]"],
            Kind::Matrix => &["identity_matrix(N)", "rep_matrix(0.1, N, N)"],
            Kind::Reals => &["rep_array(1.5, N)", "{1.5, -0.25, 2}", "k"],
            Kind::Ints => &[
                "rep_array(2, N)",
                "{1, 2, 3}",
                "reverse(k)",
                "g",
                "sort_asc(k)",
            ],
            Kind::Vectors => &["rep_array([0.1, 0.2, 0.3]', N)"],
            Kind::Pair => &["(0.5, ones_vector(N))"],
        };
        self.pick(list).to_owned()
    }

    pub(super) fn expr(&mut self, kind: Kind, depth: usize) -> String {
        if depth == 0 || self.below(4) == 0 {
            return self.leaf(kind);
        }
        let d = depth - 1;
        if self.below(9) == 0 {
            let condition = self.expr(Kind::Int, d);
            let (then, otherwise) = (self.expr(kind, d), self.expr(kind, d));
            return format!("({condition} ? {then} : {otherwise})");
        }
        match kind {
            Kind::Int => {
                let template = self.pick(INTS);
                self.replace(template, Kind::Int, d)
            }
            Kind::Real => self.real(d),
            Kind::Vector => {
                let template = self.pick(VECTORS);
                self.replace(template, Kind::Vector, d)
            }
            Kind::RowVector => match self.below(4) {
                0 => format!(
                    "({} * {})",
                    self.expr(Kind::RowVector, d),
                    self.expr(Kind::Matrix, d)
                ),
                1 => format!("({})[{}]", self.expr(Kind::Matrix, d), self.index()),
                2 => format!(
                    "({} .* {})",
                    self.expr(Kind::RowVector, d),
                    self.expr(Kind::RowVector, d)
                ),
                _ => format!("(({})')", self.expr(Kind::Vector, d)),
            },
            Kind::Matrix => {
                let template = self.pick(MATRICES);
                self.replace(template, Kind::Vector, d)
            }
            Kind::Reals => match self.below(6) {
                0 => format!("reverse({})", self.expr(Kind::Reals, d)),
                1 => {
                    let (a, b) = (self.expr(Kind::Real, d), self.expr(Kind::Real, d));
                    format!("{{{a}, {b}, 0.5}}")
                }
                2 => format!("({})[, {}]", self.expr(Kind::Vectors, d), self.index()),
                3 => format!(
                    "append_array({{{}}}, {}[2:])",
                    self.expr(Kind::Real, d),
                    self.name_of(Kind::Reals)
                ),
                4 => format!("tanh({})", self.expr(Kind::Reals, d)),
                _ => format!("to_array_1d({})", self.expr(Kind::Vector, d)),
            },
            Kind::Ints => match self.below(4) {
                0 => format!(
                    "{{{}, {}, 1}}",
                    self.expr(Kind::Int, d),
                    self.expr(Kind::Int, d)
                ),
                1 => format!("({})[g]", self.expr(Kind::Ints, d)),
                2 => format!("rep_array({}, N)", self.expr(Kind::Int, d)),
                _ => self.leaf(Kind::Ints),
            },
            Kind::Vectors => match self.below(4) {
                0 => {
                    let (a, b) = (self.expr(Kind::Vector, d), self.expr(Kind::Vector, d));
                    format!("{{{a}, {b}, x}}")
                }
                1 => format!("rep_array({}, N)", self.expr(Kind::Vector, d)),
                2 => format!("({})[g]", self.expr(Kind::Vectors, d)),
                _ => format!("reverse({})", self.expr(Kind::Vectors, d)),
            },
            Kind::Pair => match self.below(2) {
                0 => format!(
                    "both({}, {})",
                    self.expr(Kind::Real, d),
                    self.expr(Kind::Vector, d)
                ),
                _ => format!(
                    "({}, {})",
                    self.expr(Kind::Real, d),
                    self.expr(Kind::Vector, d)
                ),
            },
        }
    }

    /// The data block has variables of all kinds.
    fn name_of(&mut self, kind: Kind) -> String {
        let found = self
            .vars
            .iter()
            .find(|v| v.kind == kind && (v.data || !self.only_data));
        found.map_or_else(|| "to_array_1d([1, 2, 3])".into(), |v| v.name.clone())
    }

    fn real(&mut self, d: usize) -> String {
        match self.below(9) {
            0 => {
                let name = self.pick(SMOOTH);
                let inner = self.expr(Kind::Real, d);
                smooth(name, &inner)
            }
            1 => {
                let template = self.pick(PAIRS);
                if template.starts_with("if_pair") {
                    let pair = self.expr(Kind::Pair, d);
                    return format!("({pair}).1");
                }
                self.replace(&template.replace('#', "$"), Kind::Vector, d)
            }
            2 => {
                let template = self.pick(REDUCED);
                self.replace(template, Kind::Vector, d)
            }
            3 => {
                let template = self.pick(OF_MATRIX).replace('#', "@");
                self.replace(&template, Kind::Vector, d)
            }
            4 => format!("({})[{}]", self.expr(Kind::Vector, d), self.index()),
            5 => format!("mean({})", self.expr(Kind::Reals, d)),
            6 if !self.functions.is_empty() => {
                let which = self.below(self.functions.len());
                let name = self.functions[which].clone();
                let (c, a) = (self.expr(Kind::Real, d), self.expr(Kind::Real, d));
                let (x, b) = (self.expr(Kind::Vector, d), self.expr(Kind::Vector, d));
                let y = self.expr(Kind::Reals, d);
                format!("{name}(N, {c}, {x}, {y}, k, g, X, vs, flag, pair, {a}, {b})")
            }
            7 => format!(
                "({} * {})",
                self.expr(Kind::Real, d),
                self.expr(Kind::Real, d)
            ),
            8 => format!(
                "({} - {})",
                self.expr(Kind::Real, d),
                self.expr(Kind::Real, d)
            ),
            _ => format!(
                "({} + {})",
                self.expr(Kind::Real, d),
                self.expr(Kind::Real, d)
            ),
        }
    }

    fn replace(&mut self, template: &str, kind: Kind, depth: usize) -> String {
        let mut out = String::new();
        for mark in template.chars() {
            let kind = match mark {
                '#' => kind,
                '@' => Kind::Matrix,
                '$' => Kind::Real,
                other => {
                    out.push(other);
                    continue;
                }
            };
            let inner = self.expr(kind, depth);
            // A sign or a conversion has lower precedence than the operators that may follow it.
            if inner.starts_with('-') {
                out.push_str(&format!("({inner})"));
            } else {
                out.push_str(&inner);
            }
        }
        out
    }
}

fn smooth(name: &str, inner: &str) -> String {
    match name {
        "expm1_of" => format!("expm1(tanh({inner}))"),
        "square_of" => format!("square(tanh({inner}))"),
        "log_of" => format!("log(1.5 + tanh({inner}))"),
        "sqrt_of" => format!("sqrt(1.5 + tanh({inner}))"),
        "lgamma_of" => format!("lgamma(exp(tanh({inner})))"),
        "digamma_of" => format!("digamma(exp(tanh({inner})))"),
        "inv_of" => format!("inv(1.5 + tanh({inner}))"),
        "cbrt_of" => format!("cbrt(1.5 + tanh({inner}))"),
        "exp_of" => format!("exp(tanh({inner}))"),
        "log1m_exp_of" => format!("log1m_exp(-1.5 - tanh({inner}))"),
        "step_of" => format!("step({inner} - 0.25)"),
        "logit_of" => format!("logit(inv_logit(tanh({inner})))"),
        "acos_of" => format!("acos(tanh({inner}) / 2)"),
        "cosh_of" => format!("cosh(tanh({inner}))"),
        _ => format!("{name}({inner})"),
    }
}
