//! A Stan program whose data are created in Rust. The example fits the program, prints the verdict and uses the draws.
//!
//! `cargo run -p jensen --example stan_program`

use jensen::prelude::*;

const SCHOOLS: &str = include_str!("../../../data/eight_schools/eight_schools.stan");

fn main() -> Result<(), Error> {
    let mut data = DataSet::new();
    data.insert("J", Value::int(8));
    let y = vec![28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0];
    data.insert("y", Value::reals(vec![8], y)?);
    let sigma = vec![15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0];
    data.insert("sigma", Value::reals(vec![8], sigma)?);

    let model = Model::compile(SCHOOLS, "eight_schools.stan", &data, &Build::default())?;
    let fitted = fit(&model, &Options::default().seed(1).draws(2000))?;

    let summary = fitted.summary();
    println!("{}", summary.status);
    println!("ELBO {:.2} ± {:.2} nats", summary.elbo, summary.elbo_se);
    println!("k̂ {:.2}, trusted: {}", summary.khat, summary.trusted);
    for p in &summary.parameters[..2] {
        println!("{}: {:.2} ± {:.2}", p.name, p.mean, p.sd);
    }
    let tau = fitted.draws("tau")?;
    let small = tau.element(0).filter(|tau| *tau < 1.0).count();
    println!("P(tau < 1) ≈ {:.2}", small as f64 / tau.len() as f64);
    let best = fitted
        .draws("theta")?
        .iter()
        .filter(|theta| theta[1..].iter().all(|other| theta[0] > *other))
        .count();
    println!(
        "P(school 1 is the best) ≈ {:.2}",
        best as f64 / tau.len() as f64
    );

    assert!(fitted.trusted(), "{:?}", fitted.warnings());
    Ok(())
}
