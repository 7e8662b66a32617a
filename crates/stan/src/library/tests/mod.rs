mod families;
mod samplers;
mod special;

use super::{call, draw, implementation};
use crate::distributions::Univariate;
use crate::functions::Keep;
use crate::functions::laplace::LaplaceForm;
use crate::functions::random::Draws;
use crate::functions::solvers::Form;
use crate::program::BuiltinId;
use crate::value::Value;

fn id(name: &str) -> BuiltinId {
    BuiltinId::from_name(name).unwrap_or_else(|| panic!("no function {name}"))
}

fn value(name: &str, args: &[Value]) -> Value {
    let refs: Vec<&Value> = args.iter().collect();
    call(id(name), Keep::ALL, &refs).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn number(name: &str, args: &[Value]) -> f64 {
    value(name, args).real().expect("a number")
}

fn random(name: &str, rng: &mut Draws, args: &[Value]) -> Value {
    let refs: Vec<&Value> = args.iter().collect();
    draw(id(name), rng, &refs).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn parameters(family: &Univariate) -> Vec<f64> {
    match family.name {
        "std_normal" => vec![],
        "bernoulli" => vec![0.3],
        "bernoulli_logit" => vec![-0.7],
        "binomial" => vec![9.0, 0.3],
        "binomial_logit" => vec![9.0, 0.4],
        "beta_binomial" => vec![9.0, 1.3, 2.1],
        "beta_neg_binomial" => vec![3.2, 9.1, 2.4],
        "yule_simon" => vec![9.3],
        "poisson" => vec![4.2],
        "poisson_log" => vec![1.2],
        "neg_binomial" => vec![3.2, 0.9],
        "neg_binomial_2" => vec![3.2, 2.9],
        "neg_binomial_2_log" => vec![1.2, 2.9],
        "hypergeometric" => vec![5.0, 6.0, 7.0],
        "discrete_range" => vec![2.0, 9.0],
        "uniform" => vec![-0.5, 2.0],
        "beta_proportion" => vec![0.4, 5.2],
        "skew_double_exponential" => vec![0.4, 1.2, 0.3],
        "student_t" => vec![5.5, 0.4, 1.2],
        "skew_normal" => vec![0.4, 1.2, 1.9],
        "exp_mod_normal" => vec![0.4, 1.2, 0.9],
        "pareto" => vec![0.8, 6.3],
        "pareto_type_2" => vec![0.8, 1.3, 6.5],
        "frechet" => vec![6.3, 1.4],
        "loglogistic" => vec![1.4, 6.3],
        "inv_gamma" => vec![6.3, 1.4],
        "inv_chi_square" => vec![9.3],
        "scaled_inv_chi_square" => vec![9.3, 1.4],
        "chi_square" | "exponential" | "rayleigh" => vec![1.7],
        "wiener" => vec![1.3, 0.0, 0.4, 0.6],
        _ => vec![1.3, 1.7],
    }
}

fn last_count(family: &str) -> i32 {
    match family {
        "bernoulli" | "bernoulli_logit" => 1,
        "binomial" | "binomial_logit" | "beta_binomial" | "discrete_range" => 9,
        "hypergeometric" => 5,
        _ => 400,
    }
}

#[test]
fn every_function_has_an_implementation() {
    // These functions take functions and are not in the table.
    let takes_functions = |name: &str| {
        name.starts_with("reduce_sum")
            || Form::of(name, 3).is_some()
            || LaplaceForm::of(name).is_some()
    };
    let missing: Vec<&str> = BuiltinId::all()
        .filter(|id| implementation(*id).is_none())
        .map(BuiltinId::name)
        .filter(|name| !takes_functions(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
