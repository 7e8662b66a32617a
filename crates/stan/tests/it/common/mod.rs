//! Generates random valid programs for the tests of every stage.
//!
//! Vectors have length `N`, and matrices are `N` by `N`. With [`DATA`], all sizes agree and all indices are in range,
//! so the programs can also be run. Where an argument must be positive or a probability, the generated argument is.

mod expressions;
mod statements;

/// Data for every generated program, as JSON.
#[allow(dead_code)] // Not every test runs the programs.
pub const DATA: &str = r#"{
  "N": 3, "c": 0.7, "x": [0.3, -1.2, 2.0], "y": [1.1, 0.2, -0.4], "k": [1, 0, 2], "g": [2, 1, 3],
  "X": [[1.0, 0.5, -0.3], [0.2, -1.0, 0.8], [0.1, 0.4, 1.5]], "vs": [[0.1, 0.2, 0.3], [-1.0, 0.5, 2.0], [0.7, 0.0, -0.6]],
  "flag": 1, "pair": {"1": -0.25, "2": [0.5, 1.5, -0.5]}
}"#;

const HEADER: &str = "data {
  int<lower=1> N;
  real c;
  vector[N] x;
  array[N] real y;
  array[N] int<lower=0> k;
  array[N] int<lower=1, upper=N> g;
  matrix[N, N] X;
  array[N] vector[N] vs;
  int<lower=0, upper=1> flag;
  tuple(real, vector[N]) pair;
}
";

/// The first arguments of these functions have the names of data.
const FUNCTIONS: &str = "  real blend(real a, real b) { return inv_logit(a) * b; }
  vector blend(vector a, real b) { return inv_logit(a) * b; }
  vector shift(vector v, data real d) { return v + d; }
  real tilt_lpdf(real z, real m) { return normal_lupdf(z | m, 2) + sin(z); }
  real odd_lpmf(int i, real p) { return i % 2 == 1 ? log(p) : log1m(p); }
  real lift_lp(real z) { target += -0.5 * square(z); z ~ normal(0, 3); return z + 1; }
  real spin(real a, int n) { if (n <= 0) return a; return tanh(spin(a, n - 1)) + n; }
  real noisy_rng(real a) { return normal_rng(a, 1) + uniform_rng(0, 1); }
  real wedge(real a) { if (a > 0.3) return a; else if (a < -0.3) { return -2 * a; } return square(a); }
  tuple(real, vector) both(real a, vector v) { return (a + sum(v), v * a); }
  void guard(real a) { if (a > 1e6) reject(\"too large: \", a); }
";

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Int,
    Real,
    Vector,
    RowVector,
    Matrix,
    Reals,
    Ints,
    Vectors,
    Pair,
}

const KINDS: [Kind; 9] = [
    Kind::Int,
    Kind::Real,
    Kind::Vector,
    Kind::RowVector,
    Kind::Matrix,
    Kind::Reals,
    Kind::Ints,
    Kind::Vectors,
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
            Kind::Ints => "array[N] int",
            Kind::Vectors => "array[N] vector[N]",
            Kind::Pair => "tuple(real, vector[N])",
        }
    }
}

const PARAMETERS: &[(&str, Kind)] = &[
    ("real", Kind::Real),
    ("real<lower=0>", Kind::Real),
    ("real<upper=c>", Kind::Real),
    ("real<lower=-1, upper=c + 3>", Kind::Real),
    ("real<offset=c, multiplier=2>", Kind::Real),
    ("vector[N]", Kind::Vector),
    ("vector<lower=x>[N]", Kind::Vector),
    ("vector<upper=1.5>[N]", Kind::Vector),
    ("vector<lower=-2, upper=x + 4>[N]", Kind::Vector),
    ("vector<offset=x, multiplier=0.5>[N]", Kind::Vector),
    ("vector<multiplier=s>[N]", Kind::Vector),
    ("vector<lower=a>[N]", Kind::Vector),
    ("row_vector[N]", Kind::RowVector),
    ("row_vector<lower=0>[N]", Kind::RowVector),
    ("array[N] real", Kind::Reals),
    ("array[N] real<lower=y>", Kind::Reals),
    ("simplex[N]", Kind::Vector),
    ("unit_vector[N]", Kind::Vector),
    ("ordered[N]", Kind::Vector),
    ("positive_ordered[N]", Kind::Vector),
    ("sum_to_zero_vector[N]", Kind::Vector),
    ("matrix[N, N]", Kind::Matrix),
    ("matrix<lower=0>[N, N]", Kind::Matrix),
    ("cholesky_factor_corr[N]", Kind::Matrix),
    ("cholesky_factor_cov[N]", Kind::Matrix),
    ("corr_matrix[N]", Kind::Matrix),
    ("cov_matrix[N]", Kind::Matrix),
    ("array[N] vector[N]", Kind::Vectors),
    ("array[N] simplex[N]", Kind::Vectors),
    ("array[N] ordered[N]", Kind::Vectors),
    ("tuple(real<lower=0>, vector[N])", Kind::Pair),
];

/// Returns a valid program that depends only on the seed.
pub fn program(seed: u64) -> String {
    let mut generator = Generator {
        state: seed,
        vars: Vec::new(),
        functions: Vec::new(),
        fresh: 0,
        loops: Vec::new(),
        only_data: false,
    };
    generator.program()
}

struct Variable {
    name: String,
    kind: Kind,
    writable: bool,
    /// Whether the value is known not to depend on parameters.
    data: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Block {
    Model,
    Generated,
    Function,
    Other,
}

struct Generator {
    state: u64,
    vars: Vec<Variable>,
    functions: Vec<String>,
    fresh: usize,
    loops: Vec<String>,
    only_data: bool,
}

impl Generator {
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

    fn name(&mut self) -> String {
        self.fresh += 1;
        format!("v{}", self.fresh)
    }

    fn add(&mut self, name: &str, kind: Kind, writable: bool, data: bool) {
        self.vars.push(Variable {
            name: name.to_owned(),
            kind,
            writable,
            data,
        });
    }

    fn add_data(&mut self, data: bool) {
        for (name, kind) in [
            ("N", Kind::Int),
            ("c", Kind::Real),
            ("x", Kind::Vector),
            ("y", Kind::Reals),
            ("k", Kind::Ints),
            ("X", Kind::Matrix),
            ("vs", Kind::Vectors),
            ("flag", Kind::Int),
            ("pair", Kind::Pair),
        ] {
            let discrete = matches!(kind, Kind::Int | Kind::Ints);
            self.add(name, kind, false, data || discrete);
        }
    }

    fn program(&mut self) -> String {
        let mut out = format!("functions {{\n{FUNCTIONS}");
        for _ in 0..self.below(3) {
            self.function(&mut out);
        }
        out.push_str("}\n");
        out.push_str(HEADER);
        self.add_data(true);
        out.push_str("transformed data {\n");
        self.only_data = true;
        self.declarations(&mut out, 2, true);
        if self.below(3) == 0 {
            self.statements(&mut out, 2, 2, Block::Other);
        }
        self.only_data = false;
        out.push_str("}\n");
        self.close_block();
        out.push_str("parameters {\n  real a;\n  real<lower=0> s;\n  vector[N] b;\n");
        for (name, kind) in [("a", Kind::Real), ("s", Kind::Real), ("b", Kind::Vector)] {
            self.add(name, kind, false, false);
        }
        for i in 0..self.below(4) {
            let (declared, kind) = PARAMETERS[self.below(PARAMETERS.len())];
            let name = format!("p{i}");
            out.push_str(&format!("  {declared} {name};\n"));
            self.add(&name, kind, false, false);
        }
        out.push_str("}\ntransformed parameters {\n");
        self.transformed(&mut out);
        out.push_str("}\n");
        self.close_block();
        let kept = self.vars.len();
        out.push_str("model {\n");
        self.declarations(&mut out, 2, false);
        let statements = 3 + self.below(5);
        self.statements(&mut out, statements, 2, Block::Model);
        out.push_str("  b ~ normal(0, 1);\n  a ~ tilt(0.5);\n}\n");
        self.vars.truncate(kept);
        out.push_str("generated quantities {\n");
        self.declarations(&mut out, 2, false);
        self.random(&mut out);
        if self.below(3) == 0 {
            self.statements(&mut out, 2, 2, Block::Generated);
        }
        out.push_str("}\n");
        out
    }

    fn function(&mut self, out: &mut String) {
        let name = format!("f{}", self.functions.len() + 1);
        out.push_str(&format!(
            "  real {name}(int N, real c, vector x, array[] real y, array[] int k, array[] int g, matrix X, \
             array[] vector vs, int flag, tuple(real, vector) pair, real a, vector b) {{\n"
        ));
        self.add_data(false);
        self.add("a", Kind::Real, false, false);
        self.add("b", Kind::Vector, false, false);
        self.declarations(out, 2, false);
        let count = 1 + self.below(3);
        self.statements(out, count, 2, Block::Function);
        let result = self.expr(Kind::Real, 2);
        out.push_str(&format!("    return {result};\n  }}\n"));
        self.vars.clear();
        self.functions.push(name);
    }

    fn transformed(&mut self, out: &mut String) {
        for _ in 0..self.below(3) {
            let kind = match self.kind() {
                Kind::Int | Kind::Ints => Kind::Real,
                kind => kind,
            };
            self.declare(out, kind, 1);
        }
        if self.below(2) == 0 {
            let (vector, real) = (self.expr(Kind::Vector, 2), self.expr(Kind::Real, 2));
            let matrix = self.expr(Kind::Matrix, 1);
            let name = self.name();
            let (line, kind) = match self.below(8) {
                0 => (
                    format!("simplex[N] {name} = softmax({vector})"),
                    Kind::Vector,
                ),
                1 => (
                    format!("vector<lower=-1, upper=1>[N] {name} = tanh({vector})"),
                    Kind::Vector,
                ),
                2 => (format!("real<lower=0> {name} = exp({real})"), Kind::Real),
                3 => (format!("real<lower=-3> {name} = {real}"), Kind::Real),
                4 => (
                    format!("ordered[N] {name} = cumulative_sum(exp(tanh({vector})))"),
                    Kind::Vector,
                ),
                5 => (
                    format!(
                        "cov_matrix[N] {name} = add_diag(tcrossprod({matrix} / (1 + max(abs(to_vector({matrix}))))), 1)"
                    ),
                    Kind::Matrix,
                ),
                6 => (
                    format!(
                        "array[N] simplex[N] {name} = {{softmax({vector}), rep_vector(1.0 / N, N), [0, 1, 0]'}}"
                    ),
                    Kind::Vectors,
                ),
                _ => (
                    format!("vector<upper={real}>[N] {name} = rep_vector({real} - 0.5, N)"),
                    Kind::Vector,
                ),
            };
            out.push_str(&format!("  {line};\n"));
            self.add(&name, kind, false, false);
        }
        if self.below(4) == 0 {
            // Ints may be declared only inside a block.
            out.push_str("  {\n");
            self.statements(out, 2, 3, Block::Other);
            out.push_str("  }\n");
        }
    }

    fn random(&mut self, out: &mut String) {
        const DRAWS: &[&str] = &[
            "real @ = normal_rng(#, 1)",
            "real @ = noisy_rng(#)",
            "array[N] real @ = normal_rng(x, s)",
            "int @ = bernoulli_logit_rng(#)",
            "int @ = poisson_log_rng(tanh(#))",
            "int @ = categorical_rng(softmax(b))",
            "array[N] int @ = binomial_rng(5, inv_logit(b))",
            "vector[N] @ = dirichlet_rng(exp(tanh(b)))",
            "vector[N] @ = multi_normal_rng(b, identity_matrix(N))",
            "real @ = gamma_rng(s, 1 + square(tanh(#)))",
            "array[N] int @ = multinomial_rng(softmax(x), 7)",
            "matrix[N, N] @ = lkj_corr_rng(N, 2)",
            "real @ = student_t_rng(4, #, 1)",
            "int @ = neg_binomial_2_rng(exp(tanh(#)), s)",
            "real @ = beta_rng(s, 2)",
        ];
        for _ in 0..=self.below(2) {
            let draw = self.pick(DRAWS);
            let (name, real) = (self.name(), self.expr(Kind::Real, 2));
            let line = draw.replace('@', &name).replace('#', &real);
            out.push_str(&format!("  {line};\n"));
        }
    }

    fn close_block(&mut self) {
        for var in &mut self.vars {
            var.writable = false;
        }
    }
}
