//! Random valid programs, for tests of every stage.
//!
//! All vectors have length `N` and all matrices are `N` by `N`, so that the programs also run: together with [`DATA`]
//! they have no sizes that disagree, no index out of range and no function outside of its domain.

/// Data for every generated program, as JSON.
#[allow(dead_code)]
pub const DATA: &str =
    r#"{"N": 3, "c": 0.7, "x": [0.3, -1.2, 2.0], "y": [1.1, 0.2, -0.4], "k": [1, 0, 2]}"#;

const HEADER: &str = "data {
  int<lower=1> N;
  real c;
  vector[N] x;
  array[N] real y;
  array[N] int<lower=0> k;
}
";

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Int,
    Real,
    Vector,
    RowVector,
    Matrix,
    Reals,
    Pair,
}

const KINDS: [Kind; 7] = [
    Kind::Int,
    Kind::Real,
    Kind::Vector,
    Kind::RowVector,
    Kind::Matrix,
    Kind::Reals,
    Kind::Pair,
];

impl Kind {
    fn sized(self) -> &'static str {
        match self {
            Kind::Int => "int",
            Kind::Real => "real",
            Kind::Vector => "vector[N]",
            Kind::RowVector => "row_vector[N]",
            Kind::Matrix => "matrix[N, N]",
            Kind::Reals => "array[N] real",
            Kind::Pair => "tuple(real, vector[N])",
        }
    }
}

/// A valid program; the same seed gives the same one.
pub fn program(seed: u64) -> String {
    let mut generator = Generator {
        state: seed,
        vars: Vec::new(),
        fresh: 0,
        loops: Vec::new(),
    };
    generator.program()
}

struct Variable {
    name: String,
    kind: Kind,
    writable: bool,
}

struct Generator {
    state: u64,
    vars: Vec<Variable>,
    fresh: usize,
    loops: Vec<String>,
}

impl Generator {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    fn kind(&mut self) -> Kind {
        KINDS[self.below(KINDS.len())]
    }

    fn add(&mut self, name: &str, kind: Kind, writable: bool) {
        self.vars.push(Variable {
            name: name.to_owned(),
            kind,
            writable,
        });
    }

    fn program(&mut self) -> String {
        let mut out = String::new();
        out.push_str(
            "functions {\n  real blend(real a, real b) { return inv_logit(a) * b; }\n  \
             vector shift(vector v, data real d) { return v + d; }\n  \
             real tilt_lpdf(real z, real m) { return normal_lupdf(z | m, 2) + sin(z); }\n}\n",
        );
        out.push_str(HEADER);
        self.add("N", Kind::Int, false);
        self.add("c", Kind::Real, false);
        self.add("x", Kind::Vector, false);
        self.add("y", Kind::Reals, false);
        out.push_str("transformed data {\n");
        self.declarations(&mut out, 2);
        out.push_str("}\n");
        self.close_block();
        out.push_str(
            "parameters {\n  real a;\n  real<lower=0> s;\n  vector[N] b;\n  real<lower=-1, upper=c + 3> u;\n}\n",
        );
        for (name, kind) in [
            ("a", Kind::Real),
            ("s", Kind::Real),
            ("b", Kind::Vector),
            ("u", Kind::Real),
        ] {
            self.add(name, kind, false);
        }
        out.push_str("transformed parameters {\n");
        self.real_declarations(&mut out, 2);
        out.push_str("}\n");
        self.close_block();
        let kept = self.vars.len();
        out.push_str("model {\n");
        self.declarations(&mut out, 2);
        let statements = 3 + self.below(4);
        self.statements(&mut out, statements, 2, true);
        out.push_str("  b ~ normal(0, 1);\n  a ~ tilt(0.5);\n}\n");
        self.vars.truncate(kept);
        out.push_str("generated quantities {\n");
        self.declarations(&mut out, 2);
        let draw = format!(
            "  real {} = normal_rng({}, 1);\n",
            self.name(),
            self.expr(Kind::Real, 2)
        );
        out.push_str(&draw);
        out.push_str("}\n");
        out
    }

    fn close_block(&mut self) {
        for var in &mut self.vars {
            var.writable = false;
        }
    }

    fn name(&mut self) -> String {
        self.fresh += 1;
        format!("v{}", self.fresh)
    }

    fn declarations(&mut self, out: &mut String, most: usize) {
        for _ in 0..=self.below(most) {
            let kind = self.kind();
            self.declare(out, kind, 1);
        }
    }

    fn real_declarations(&mut self, out: &mut String, most: usize) {
        for _ in 0..=self.below(most) {
            let kind = match self.kind() {
                Kind::Int => Kind::Real,
                kind => kind,
            };
            self.declare(out, kind, 1);
        }
    }

    fn declare(&mut self, out: &mut String, kind: Kind, depth: usize) {
        let value = self.expr(kind, 3);
        let name = self.name();
        out.push_str(&format!(
            "{}{} {name} = {value};\n",
            "  ".repeat(depth),
            kind.sized()
        ));
        self.add(&name, kind, true);
    }

    fn statements(&mut self, out: &mut String, count: usize, depth: usize, model: bool) {
        let kept = self.vars.len();
        for _ in 0..count {
            self.statement(out, depth - 1, model);
        }
        self.vars.truncate(kept);
    }

    fn statement(&mut self, out: &mut String, depth: usize, model: bool) {
        let pad = "  ".repeat(depth);
        match self.below(if depth > 3 { 6 } else { 9 }) {
            0 => {
                let kind = self.kind();
                self.declare(out, kind, depth);
            }
            1 | 2 => self.assignment(out, &pad),
            3 if model => out.push_str(&format!("{pad}target += {};\n", self.expr(Kind::Real, 3))),
            4 if model => {
                let (variate, mean) = (self.expr(Kind::Vector, 2), self.expr(Kind::Vector, 2));
                out.push_str(&format!("{pad}{variate} ~ normal({mean}, 1.5);\n"));
            }
            5 if model => out.push_str(&format!(
                "{pad}{} ~ normal({}, 1);\n",
                self.expr(Kind::Real, 2),
                self.expr(Kind::Real, 2)
            )),
            6 => {
                let name = self.name();
                out.push_str(&format!("{pad}for ({name} in 1:N) {{\n"));
                self.loops.push(name);
                self.statements(out, 2, depth + 2, model);
                self.loops.pop();
                out.push_str(&format!("{pad}}}\n"));
            }
            7 => {
                out.push_str(&format!("{pad}if ({}) {{\n", self.expr(Kind::Int, 2)));
                self.statements(out, 1, depth + 2, model);
                out.push_str(&format!("{pad}}} else {{\n"));
                self.statements(out, 1, depth + 2, model);
                out.push_str(&format!("{pad}}}\n"));
            }
            _ => {
                let name = self.name();
                out.push_str(&format!(
                    "{pad}for ({name} in {}) {{\n",
                    self.expr(Kind::Reals, 1)
                ));
                let kept = self.vars.len();
                self.add(&name, Kind::Real, false);
                self.statements(out, 1, depth + 2, model);
                self.vars.truncate(kept);
                out.push_str(&format!("{pad}}}\n"));
            }
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
        let index = self.index();
        let line = match (kind, self.below(3)) {
            (Kind::Vector, 0) => format!("{name}[{index}] = {}", self.expr(Kind::Real, 2)),
            (Kind::Vector, 1) => format!("{name} .*= {}", self.expr(Kind::Vector, 2)),
            (Kind::Matrix, 0) => format!("{name}[{index}] = {}", self.expr(Kind::RowVector, 2)),
            (Kind::Matrix, 1) => format!("{name}[, {index}] = {}", self.expr(Kind::Vector, 2)),
            (Kind::Reals, 0) => format!("{name}[{index}] += {}", self.expr(Kind::Real, 2)),
            (Kind::Real, 0) => format!("{name} *= {}", self.expr(Kind::Real, 2)),
            (Kind::Pair, 0) => format!("{name}.1 = {}", self.expr(Kind::Real, 2)),
            (Kind::Pair, 1) => format!("{name}.2[{index}] = {}", self.expr(Kind::Real, 2)),
            _ => format!("{name} = {}", self.expr(kind, 2)),
        };
        out.push_str(&format!("{pad}{line};\n"));
    }

    /// An index from 1 to N.
    fn index(&mut self) -> String {
        if let Some(name) = self.loops.last().cloned()
            && self.below(2) == 0
        {
            return name;
        }
        self.pick(&["1", "N", "(1 + N) %/% 2"]).to_owned()
    }

    fn leaf(&mut self, kind: Kind) -> String {
        let names: Vec<String> = self
            .vars
            .iter()
            .filter(|v| v.kind == kind)
            .map(|v| v.name.clone())
            .collect();
        if !names.is_empty() && self.below(4) > 0 {
            return names[self.below(names.len())].clone();
        }
        match kind {
            Kind::Int => self
                .pick(&["0", "1", "2", "N", "size(y)", "num_elements(x)", "k[1]"])
                .to_owned(),
            Kind::Real => self
                .pick(&["0.5", "1e-1", "2.0", "c", "pi()", "3", "x[N]"])
                .to_owned(),
            Kind::Vector => self
                .pick(&["x", "rep_vector(0.5, N)", "to_vector(y)", "ones_vector(N)"])
                .to_owned(),
            Kind::RowVector => self
                .pick(&["x'", "rep_row_vector(2, N)", "to_row_vector(y)"])
                .to_owned(),
            Kind::Matrix => self
                .pick(&["identity_matrix(N)", "(x * x')", "rep_matrix(0.1, N, N)"])
                .to_owned(),
            Kind::Reals => self
                .pick(&["y", "rep_array(1.5, N)", "to_array_1d(x)", "k"])
                .to_owned(),
            Kind::Pair => "(c, x)".to_owned(),
        }
    }

    fn expr(&mut self, kind: Kind, depth: usize) -> String {
        if depth == 0 || self.below(4) == 0 {
            return self.leaf(kind);
        }
        let d = depth - 1;
        let choice = self.below(6);
        if choice == 0 {
            let condition = self.expr(Kind::Int, d);
            let (then, otherwise) = (self.expr(kind, d), self.expr(kind, d));
            return format!("({condition} ? {then} : {otherwise})");
        }
        let mut e = |kind: Kind| self.expr(kind, d);
        match (kind, choice) {
            (Kind::Int, 1) => format!("({} > {})", e(Kind::Real), e(Kind::Real)),
            (Kind::Int, 2) => format!("({} && !{})", e(Kind::Int), e(Kind::Int)),
            (Kind::Int, 3) => format!("min({{{}, {}}})", e(Kind::Int), e(Kind::Int)),
            (Kind::Int, _) => format!("({} == {})", e(Kind::Int), e(Kind::Int)),
            (Kind::Real, 1) => format!(
                "({} + {} * {})",
                e(Kind::Real),
                e(Kind::Real),
                e(Kind::Real)
            ),
            (Kind::Real, 2) => format!("tanh({})", e(Kind::Real)),
            (Kind::Real, 3) => format!("dot_product({}, {})", e(Kind::Vector), e(Kind::Vector)),
            (Kind::Real, 4) => format!("blend({}, -{})", e(Kind::Real), e(Kind::Int)),
            (Kind::Real, _) => {
                let parts = [
                    e(Kind::Vector),
                    e(Kind::RowVector),
                    e(Kind::Reals),
                    e(Kind::Pair),
                ];
                let index = self.index();
                match self.below(5) {
                    0 => format!("({})[{index}]", parts[0]),
                    1 => format!("sum({})", parts[1]),
                    2 => format!("mean({})", parts[2]),
                    3 => format!("({} * {})", parts[1], parts[0]),
                    _ => format!("({}).1", parts[3]),
                }
            }
            (Kind::Vector, 1) => format!("({} - {})", e(Kind::Vector), e(Kind::Vector)),
            (Kind::Vector, 2) => format!("({} * {})", e(Kind::Matrix), e(Kind::Vector)),
            (Kind::Vector, 3) => format!("inv_logit({})", e(Kind::Vector)),
            (Kind::Vector, 4) => format!("shift({}, c)", e(Kind::Vector)),
            (Kind::Vector, _) => {
                let (row, matrix) = (e(Kind::RowVector), e(Kind::Matrix));
                let index = self.index();
                if self.below(2) == 0 {
                    format!("({row})'")
                } else {
                    format!("({matrix})[, {index}]")
                }
            }
            (Kind::RowVector, 1) => format!("({} .* {})", e(Kind::RowVector), e(Kind::RowVector)),
            (Kind::RowVector, 2) => format!("({} * {})", e(Kind::RowVector), e(Kind::Matrix)),
            (Kind::RowVector, 3) => format!("sin({})", e(Kind::RowVector)),
            (Kind::RowVector, _) => format!("({})'", e(Kind::Vector)),
            (Kind::Matrix, 1) => format!("({} + {})", e(Kind::Matrix), e(Kind::Matrix)),
            (Kind::Matrix, 2) => format!("({} * {})", e(Kind::Matrix), e(Kind::Real)),
            (Kind::Matrix, 3) => format!("diag_matrix({})", e(Kind::Vector)),
            (Kind::Matrix, _) => format!("({} * {})", e(Kind::Vector), e(Kind::RowVector)),
            (Kind::Reals, 1) => format!("reverse({})", e(Kind::Reals)),
            (Kind::Reals, _) => format!("to_array_1d({})", e(Kind::Vector)),
            (Kind::Pair, _) => format!("({}, {})", e(Kind::Real), e(Kind::Vector)),
        }
    }
}
