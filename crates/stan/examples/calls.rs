//! Writes programs, each of which calls one library function with large arguments, for `cargo xtask limits`.
//!
//! `calls FOLDER COUNT SEED` writes COUNT programs, which take the functions of the list in turn, each with one of its
//! signatures. The arguments are transformed data. If the result is real, the arguments are also parameters in the
//! model. Calls of functions that take functions, which this file lists, come first.

use std::error::Error;
use std::fs;
use std::path::Path;

use jensen_stan::program::{BuiltinId, FunctionType, Level, Type};

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [folder, count, seed] = &given[..] else {
        return Err("calls FOLDER COUNT SEED".into());
    };
    let mut dice = Dice(seed.parse()?);
    let count: usize = count.parse()?;
    fs::create_dir_all(folder)?;
    let all: Vec<BuiltinId> = BuiltinId::all().filter(|id| !id.is_variadic()).collect();
    let first = dice.below(all.len());
    let mut written = 0;
    for (name, text) in solvers(&mut dice).into_iter().take(count) {
        let name = format!("{written:04}-{name}.stan");
        fs::write(Path::new(folder).join(name), text)?;
        written += 1;
    }
    for at in 0.. {
        if written >= count {
            break;
        }
        let id = all[(first + at) % all.len()];
        let signatures = id.signatures();
        let Some(signature) = signatures.get(dice.below(signatures.len())) else {
            continue;
        };
        if let Some(text) = program(id.name(), signature, &mut dice) {
            let name = format!("{written:04}-{}.stan", id.name());
            fs::write(Path::new(folder).join(name), text)?;
            written += 1;
        }
    }
    Ok(())
}

/// Skips functions that other parts of the test cover, and functions whose arguments the program cannot create.
fn program(name: &str, signature: &FunctionType, dice: &mut Dice) -> Option<String> {
    if name.ends_with("_lp") || signature.result == Type::Void {
        return None;
    }
    let arguments = signature.params.iter().map(|p| argument(&p.ty, dice));
    let arguments: Vec<String> = arguments.collect::<Option<_>>()?;
    let bar = ["_lpdf", "_lpmf", "_lcdf", "_lccdf", "_cdf"]
        .iter()
        .any(|ending| name.ends_with(ending));
    let call = |arguments: &[String]| match arguments {
        [first, rest @ ..] if bar => format!("{name}({first} | {})", rest.join(", ")),
        all => format!("{name}({})", all.join(", ")),
    };
    if name.ends_with("_jacobian") {
        return Some(format!(
            "parameters {{ real a; }}\ntransformed parameters {{ real z = size({{{}}}); }}\nmodel {{ a ~ normal(0, 1); }}\n",
            call(&arguments)
        ));
    }
    let mut text = format!(
        "transformed data {{\n  print(\"begun\");\n  print(size({{{}}}));\n}}\n",
        call(&arguments)
    );
    let moved = signature.params.iter().position(|p| {
        let matrix = matches!(
            p.ty,
            Type::Real | Type::Vector | Type::RowVector | Type::Matrix
        );
        p.level == Level::Param && matrix
    });
    let model = match (moved, &signature.result) {
        (Some(at), Type::Real) if !name.ends_with("_rng") && dice.below(2) == 0 => {
            let mut arguments = arguments;
            arguments[at] = format!("(1 + 1e-9 * a) * {}", arguments[at]);
            text.clear();
            format!("target += 1e-12 * {};", call(&arguments))
        }
        _ => String::new(),
    };
    text += &format!("parameters {{ real a; }}\nmodel {{\n  a ~ normal(0, 1);\n  {model}\n}}\n");
    Some(text)
}

const FUNCTIONS: &str = "functions {
  vector decay(real t, vector y, real a) { return -(1e6 + a) * y; }
  vector hidden(real t, vector y, vector dy, real a) { return dy + (1e3 + a) * y; }
  vector cube(vector x, real a) { return x .* x .* x - exp(1e-9 * a); }
  real bell(real x, real xc, array[] real theta, array[] real r, array[] int i) { return exp(-square(1e3 * x) + theta[1]); }
  real part(array[] real x, int from, int to, real a) { return normal_lpdf(x | a, 1); }
}
";

fn solvers(dice: &mut Dice) -> Vec<(String, String)> {
    let mut made = Vec::new();
    let mut add = |names: &[&str], call: &dyn Fn(&str, usize, usize) -> String| {
        for name in names {
            let (states, times) = ([3, 300][dice.below(2)], [10, 10_000][dice.below(2)]);
            let call = call(name, states, times);
            made.push((
                (*name).to_owned(),
                format!(
                    "{FUNCTIONS}parameters {{ real a; }}\nmodel {{ a ~ normal(0, 1); target += 1e-12 * {call}; }}\n"
                ),
            ));
        }
    };
    let ode = |name: &str, states: usize, times: usize, settings: &str| {
        format!(
            "{name}(decay, rep_vector(1, {states}), 0, linspaced_array({times}, 1, 1e6){settings}, a)[1][1]"
        )
    };
    add(
        &["ode_rk45", "ode_ckrk", "ode_bdf", "ode_adams"],
        &|name, states, times| ode(name, states, times, ""),
    );
    add(
        &[
            "ode_rk45_tol",
            "ode_ckrk_tol",
            "ode_bdf_tol",
            "ode_adams_tol",
        ],
        &|name, states, times| ode(name, states, times, ", 1e-10, 1e-10, 100000000"),
    );
    add(&["dae"], &|name, states, times| {
        format!(
            "{name}(hidden, rep_vector(1, {states}), rep_vector(-1e3, {states}), 0, linspaced_array({times}, 1, 1e3), a)[1][1]"
        )
    });
    add(&["solve_newton", "solve_powell"], &|name, states, _| {
        format!("{name}(cube, rep_vector(0.5, {states}), a)[1]")
    });
    add(&["integrate_1d"], &|name, _, times| {
        format!("{name}(bell, -{times}.0, 1e6, {{a}}, {{0.5}}, {{1}}, 1e-12)")
    });
    add(&["reduce_sum", "reduce_sum_static"], &|name, _, times| {
        format!("{name}(part, rep_array(0.5, 100 * {times}), 1, a)")
    });
    made
}

fn argument(ty: &Type, dice: &mut Dice) -> Option<String> {
    let length = [3, 1000, 1_000_000, 10_000_000][dice.below(4)];
    let extent = [3, 150, 400, 1500][dice.below(4)];
    let reals = format!("linspaced_vector({length}, 0.1, 0.9)");
    let matrix =
        format!("add_diag(rep_matrix(0.3, {extent}, {extent}), linspaced_vector({extent}, 1, 2))");
    Some(match ty {
        Type::Int => ["1", "1000", "100000000", "2147483647"][dice.below(4)].to_owned(),
        Type::Real => ["0.5", "1e6", "-3.5", "1e-300", "1e300"][dice.below(5)].to_owned(),
        Type::Complex => "to_complex(0.3, 1e3)".to_owned(),
        Type::Vector => reals,
        Type::RowVector => format!("{reals}'"),
        Type::Matrix => matrix,
        Type::ComplexVector => format!("to_complex({reals}, 0)"),
        Type::ComplexRowVector => format!("to_complex({reals}', 0)"),
        Type::ComplexMatrix => format!("to_complex({matrix}, 0)"),
        Type::Array(inner) => {
            let count = [1, 3, 100_000][dice.below(3)];
            format!("rep_array({}, {count})", argument(inner, dice)?)
        }
        Type::Tuple(_) | Type::Void | Type::Function(_) => return None,
    })
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}
