//! Generates declarations and statements.

use super::{Block, Generator, Kind};

/// Densities with the kinds of their arguments: `r` is real, `p` positive, `u` between 0 and 1, `i` a count, `b` 0 or
/// 1, and `c` a category. Each argument is one number for all outcomes or one number for each outcome.
const DENSITIES: &[(&str, &str)] = &[
    ("normal", "rrp"),
    ("cauchy", "rrp"),
    ("student_t", "rprp"),
    ("double_exponential", "rrp"),
    ("logistic", "rrp"),
    ("gumbel", "rrp"),
    ("lognormal", "prp"),
    ("gamma", "ppp"),
    ("inv_gamma", "ppp"),
    ("exponential", "pp"),
    ("weibull", "ppp"),
    ("chi_square", "pp"),
    ("pareto", "ppp"),
    ("rayleigh", "pp"),
    ("beta", "upp"),
    ("uniform", "uup"),
    ("std_normal", "r"),
    ("skew_normal", "rrpr"),
    ("exp_mod_normal", "rrpp"),
    ("von_mises", "rrp"),
    ("bernoulli", "bu"),
    ("bernoulli_logit", "br"),
    ("binomial", "iIu"),
    ("binomial_logit", "iIr"),
    ("beta_binomial", "iIpp"),
    ("poisson", "ip"),
    ("poisson_log", "ir"),
    ("neg_binomial", "ipp"),
    ("neg_binomial_2", "ipp"),
    ("neg_binomial_2_log", "irp"),
];

const WHOLE: &[&str] = &[
    "# ~ multi_normal(#, add_diag(tcrossprod(tanh(@)), 1))",
    "# ~ multi_normal_cholesky(#, cholesky_decompose(add_diag(tcrossprod(tanh(@)), 1)))",
    "vs ~ multi_normal(#, identity_matrix(N))",
    "# ~ multi_normal_prec(#, add_diag(tcrossprod(tanh(@)), 1))",
    "# ~ multi_student_t(4, #, add_diag(tcrossprod(tanh(@)), 1))",
    "softmax(tanh(#)) ~ dirichlet(exp(tanh(#)))",
    "g ~ categorical(softmax(tanh(#)))",
    "g[1] ~ categorical_logit(#)",
    "k ~ multinomial(softmax(tanh(#)))",
    "# ~ normal_id_glm(@, $, #, 1.5)",
    "x ~ normal_id_glm(X, #, #, exp(tanh($)))",
    "{0, 1, flag} ~ bernoulli_logit_glm(X, $, #)",
    "k ~ poisson_log_glm(X, tanh($), tanh(#))",
    "k ~ neg_binomial_2_log_glm(X, tanh(#), tanh(#), exp(tanh($)))",
    "g ~ categorical_logit_glm(X, #, @)",
    "g[2] ~ ordered_logistic($, cumulative_sum(exp(tanh(#))))",
    "target += lkj_corr_cholesky_lpdf(identity_matrix(N) | exp(tanh($)))",
    "target += wishart_lpdf(add_diag(tcrossprod(tanh(@)), 1) | N + 2, identity_matrix(N))",
    "target += log_sum_exp(#)",
    "target += log_mix(inv_logit(tanh($)), normal_lpdf($ | 0, 1), normal_lpdf(y[1] | $, 2))",
    "target += normal_lpdf(# | #, exp(tanh(#)))",
    "target += std_normal_lupdf(@[1])",
    "target += 0.01 * target()",
    "target += lift_lp($)",
    "target += #",
    "flag ~ odd(inv_logit(tanh($)))",
    "target += odd_lupmf(k[1] | inv_logit(tanh($)))",
    "tanh($) ~ normal($, exp(tanh($))) T[-1.5, ]",
    "tanh($) ~ normal($, 1.5) T[-2, 1.25]",
    "tanh($) ~ student_t(3, $, 1) T[, 1.5]",
    "exp(tanh($)) ~ exponential(exp(tanh($))) T[0.1, 5]",
    "target += normal_lcdf($ | $, 1.5) + normal_lccdf(x | $, 2)",
    "target += exponential_lccdf(exp(tanh(#)) | 0.5) + log_diff_exp(2, tanh($))",
    "guard($)",
    "profile(\"part\") { target += tanh($); }",
    "print(\"now \", $, #)",
];

impl Generator {
    pub(super) fn declarations(&mut self, out: &mut String, most: usize, data: bool) {
        for _ in 0..=self.below(most) {
            let kind = self.kind();
            self.declare(out, kind, 1);
            if data && let Some(var) = self.vars.last_mut() {
                var.data = true;
            }
        }
    }

    pub(super) fn declare(&mut self, out: &mut String, kind: Kind, depth: usize) {
        let value = self.expr(kind, 3);
        let name = self.name();
        out.push_str(&format!(
            "{}{} {name} = {value};\n",
            "  ".repeat(depth),
            kind.sized()
        ));
        self.add(&name, kind, true, false);
    }

    pub(super) fn statements(&mut self, out: &mut String, count: usize, depth: usize, at: Block) {
        let kept = self.vars.len();
        for _ in 0..count {
            self.statement(out, depth - 1, at);
        }
        self.vars.truncate(kept);
    }

    fn known(&mut self, kind: Kind, depth: usize) -> String {
        let before = std::mem::replace(&mut self.only_data, true);
        let text = self.expr(kind, depth);
        self.only_data = before;
        text
    }

    fn condition(&mut self) -> String {
        match self.below(3) {
            0 => self.expr(Kind::Int, 2),
            1 => format!(
                "{} > {}",
                self.expr(Kind::Real, 2),
                self.expr(Kind::Real, 1)
            ),
            _ => self.known(Kind::Int, 2),
        }
    }

    fn statement(&mut self, out: &mut String, depth: usize, at: Block) {
        let pad = "  ".repeat(depth);
        let model = at == Block::Model;
        match self.below(if depth > 4 || self.loops.len() > 2 {
            10
        } else {
            17
        }) {
            0 => {
                let kind = self.kind();
                self.declare(out, kind, depth);
            }
            4 if model => out.push_str(&format!("{pad}target += {};\n", self.expr(Kind::Real, 3))),
            5 | 6 if model => {
                let line = self.density();
                out.push_str(&format!("{pad}{line};\n"));
            }
            7 | 8 if model => {
                let template = WHOLE[self.below(WHOLE.len())];
                let line = self.fill(template);
                let end = if line.ends_with('}') { "" } else { ";" };
                out.push_str(&format!("{pad}{line}{end}\n"));
            }
            9 if at == Block::Function => {
                let (condition, value) = (self.condition(), self.expr(Kind::Real, 2));
                out.push_str(&format!("{pad}if ({condition}) return {value};\n"));
            }
            9 if !self.loops.is_empty() => {
                let condition = self.known(Kind::Int, 2);
                let word = self.pick(&["break", "continue"]);
                out.push_str(&format!("{pad}if ({condition}) {word};\n"));
            }
            1..10 => self.assignment(out, &pad),
            10 | 11 => {
                let name = self.name();
                let range = self.pick(&["1:N", "1:N", "2:N", "N:1", "1:(N - 1)"]);
                out.push_str(&format!("{pad}for ({name} in {range}) {{\n"));
                self.loops.push(name);
                self.statements(out, 2, depth + 2, at);
                self.loops.pop();
                out.push_str(&format!("{pad}}}\n"));
            }
            12 | 13 => {
                let condition = self.condition();
                out.push_str(&format!("{pad}if ({condition}) {{\n"));
                self.statements(out, 1, depth + 2, at);
                if self.below(2) == 0 {
                    out.push_str(&format!("{pad}}} else if ({}) {{\n", self.condition()));
                    self.statements(out, 1, depth + 2, at);
                }
                out.push_str(&format!("{pad}}} else {{\n"));
                self.statements(out, 1, depth + 2, at);
                out.push_str(&format!("{pad}}}\n"));
            }
            14 => {
                let name = self.name();
                out.push_str(&format!(
                    "{pad}{{\n{pad}  int {name} = 0;\n{pad}  while ({name} < N) {{\n{pad}    {name} += 1;\n"
                ));
                self.loops.push(name);
                self.statements(out, 2, depth + 3, at);
                self.loops.pop();
                out.push_str(&format!("{pad}  }}\n{pad}}}\n"));
            }
            15 => {
                out.push_str(&format!("{pad}{{\n"));
                self.statements(out, 2, depth + 2, at);
                out.push_str(&format!("{pad}}}\n"));
            }
            _ => {
                let name = self.name();
                let (kind, element) = match self.below(4) {
                    0 => (Kind::Vector, Kind::Real),
                    1 => (Kind::Vectors, Kind::Vector),
                    2 => (Kind::Matrix, Kind::Real),
                    _ => (Kind::Reals, Kind::Real),
                };
                let over = self.expr(kind, 1);
                out.push_str(&format!("{pad}for ({name} in {over}) {{\n"));
                let kept = self.vars.len();
                self.add(&name, element, false, false);
                // The elements are not valid as indices, but `break` is allowed in the loop.
                self.loops.push("1".into());
                self.statements(out, 1, depth + 2, at);
                self.loops.pop();
                self.vars.truncate(kept);
                out.push_str(&format!("{pad}}}\n"));
            }
        }
    }

    fn fill(&mut self, template: &str) -> String {
        let mut line = String::new();
        for mark in template.chars() {
            match mark {
                '#' => line.push_str(&self.expr(Kind::Vector, 2)),
                '@' => line.push_str(&self.expr(Kind::Matrix, 1)),
                '$' => line.push_str(&self.expr(Kind::Real, 2)),
                other => line.push(other),
            }
        }
        line
    }

    fn density(&mut self) -> String {
        let (name, kinds) = DENSITIES[self.below(DENSITIES.len())];
        let many = self.below(2) == 0;
        let args: Vec<String> = kinds
            .chars()
            .enumerate()
            .map(|(i, kind)| {
                let many = many && (i == 0 || self.below(2) == 0);
                self.argument(kind, many)
            })
            .collect();
        let (outcome, rest) = (&args[0], args[1..].join(", "));
        let suffix = if "bic".contains(&kinds[..1]) {
            "mf"
        } else {
            "df"
        };
        match self.below(4) {
            0 => format!("target += {name}_lp{suffix}({outcome} | {rest})"),
            1 => format!("target += {name}_lup{suffix}({outcome} | {rest})"),
            _ => format!("{outcome} ~ {name}({rest})"),
        }
    }

    fn argument(&mut self, kind: char, many: bool) -> String {
        let (one, all) = match kind {
            'b' => ("flag", "{1, 0, flag}"),
            'i' => ("k[3]", "k"),
            'I' => ("7", "{3, 4, 5}"),
            _ => ("", ""),
        };
        if !one.is_empty() {
            return if many { all } else { one }.to_owned();
        }
        let of = match (many, self.below(4)) {
            (false, _) => Kind::Real,
            (true, 0) => Kind::Reals,
            (true, 1) => Kind::RowVector,
            (true, _) => Kind::Vector,
        };
        let inner = self.expr(of, 2);
        match (kind, self.below(3)) {
            ('p', 0) if !many => "s".into(),
            ('p', 1) => format!("fmax(abs(tanh({inner})), 0.5)"),
            ('p', _) => format!("exp(tanh({inner}))"),
            ('u', 0) => format!("Phi(tanh({inner}))"),
            ('u', _) => format!("inv_logit(tanh({inner}))"),
            _ => inner,
        }
    }

    fn assignment(&mut self, out: &mut String, pad: &str) {
        let writable: Vec<(String, Kind)> = self
            .vars
            .iter()
            .filter(|v| v.writable)
            .map(|v| (v.name.clone(), v.kind))
            .collect();
        if writable.is_empty() {
            return;
        }
        let (name, kind) = writable[self.below(writable.len())].clone();
        let (index, other) = (self.index(), self.index());
        let (range, source) = self.ranges();
        let choice = self.below(8);
        let mut e = |kind: Kind| self.expr(kind, 2);
        let line = match (kind, choice) {
            (Kind::Vector, 0) => format!("{name}[{index}] = {}", e(Kind::Real)),
            (Kind::Vector, 1) => format!("{name} .*= {}", e(Kind::Vector)),
            (Kind::Vector, 2) => format!("{name}[{range}] = ({})[{source}]", e(Kind::Vector)),
            (Kind::Vector, 3) => format!("{name}[{range}] = {name}[{source}]"),
            (Kind::Vector, 4) => format!("{name}[{index}] += {name}[{other}] * {}", e(Kind::Real)),
            (Kind::Vector, 5) => format!("{name} += {}", e(Kind::Real)),
            (Kind::RowVector, 0) => format!("{name}[{index}] -= {}", e(Kind::Real)),
            (Kind::RowVector, 1) => format!("{name}[{range}] = ({})[{source}]", e(Kind::RowVector)),
            (Kind::RowVector, 2) => format!("{name} *= {}", e(Kind::Matrix)),
            (Kind::Matrix, 0) => format!("{name}[{index}] = {}", e(Kind::RowVector)),
            (Kind::Matrix, 1) => format!("{name}[, {index}] = {}", e(Kind::Vector)),
            (Kind::Matrix, 2) => format!("{name}[{index}, {other}] = {}", e(Kind::Real)),
            (Kind::Matrix, 3) => {
                format!("{name}[{range}, {index}] = ({})[{source}]", e(Kind::Vector))
            }
            (Kind::Matrix, 4) => {
                format!(
                    "{name}[{range}, {source}] = ({})[{source}, {range}]'",
                    e(Kind::Matrix)
                )
            }
            (Kind::Matrix, 5) => format!(
                "{name}[{index}, {range}] += ({})[{source}]",
                e(Kind::RowVector)
            ),
            (Kind::Matrix, 6) => format!("{name}[{index}][{other}] = {}", e(Kind::Real)),
            (Kind::Reals, 0) => format!("{name}[{index}] += {}", e(Kind::Real)),
            (Kind::Reals, 1) => format!("{name}[{range}] = ({})[{source}]", e(Kind::Reals)),
            (Kind::Reals, 2) => format!("{name}[{index}] = {name}[{other}]"),
            (Kind::Ints, 0 | 1) => format!("{name}[{index}] = {}", e(Kind::Int)),
            (Kind::Ints, 2) => format!("{name}[{range}] = k[{source}]"),
            (Kind::Vectors, 0) => format!("{name}[{index}] = {}", e(Kind::Vector)),
            (Kind::Vectors, 1) => format!("{name}[{index}, {other}] += {}", e(Kind::Real)),
            (Kind::Vectors, 2) => {
                format!("{name}[{range}, {index}] = ({})[{source}]", e(Kind::Reals))
            }
            (Kind::Vectors, 3) => {
                format!("{name}[{index}][{range}] = ({})[{source}]", e(Kind::Vector))
            }
            (Kind::Vectors, 4) => format!("{name}[{range}] = {name}[{source}]"),
            (Kind::Real, 0) => format!("{name} *= {}", e(Kind::Real)),
            (Kind::Real, 1 | 2) => format!("{name} += {}", e(Kind::Real)),
            (Kind::Real, 3) => format!("{name} /= 1 + square(tanh({}))", e(Kind::Real)),
            (Kind::Pair, 0) => format!("{name}.1 = {}", e(Kind::Real)),
            (Kind::Pair, 1) => format!("{name}.2[{index}] = {}", e(Kind::Real)),
            (Kind::Pair, 2) => format!("{name}.2[{range}] = ({})[{source}]", e(Kind::Vector)),
            (Kind::Pair, 3) => format!(
                "({name}.1, {name}.2) = ({}, {})",
                e(Kind::Real),
                e(Kind::Vector)
            ),
            _ => format!("{name} = {}", e(kind)),
        };
        out.push_str(&format!("{pad}{line};\n"));
    }

    pub(super) fn ranges(&mut self) -> (&'static str, &'static str) {
        const RANGES: &[(&str, &str)] = &[
            ("1:2", "2:3"),
            ("2:N", "1:(N - 1)"),
            (":2", "{3, 1}"),
            ("g", ":"),
            ("2:", "g[1:2]"),
            ("{1, 3}", "{2, 2}"),
            ("2:1", "3:2"),
            (":", "g"),
            ("1:1", "{3}"),
        ];
        RANGES[self.below(RANGES.len())]
    }
}
