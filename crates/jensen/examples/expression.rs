//! A hierarchical model that is written as a Rust expression instead of a Stan program. It describes the effects of
//! coaching in eight schools in a non-centred parameterisation. Jensen derives the gradients and the Hessian-vector
//! products from the expression.
//!
//! `cargo run -p jensen --example expression`

use jensen::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let builder = Builder::new();
    let y = builder.data(&[28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]);
    let sigma = builder.data(&[15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]);
    let mu = builder.parameter();
    let tau = builder.parameter().positive();
    let eta = builder.parameters(8);
    let theta = mu + tau * eta;
    let log_density = mu.normal_lpdf(0.0, 5.0)
        + tau.cauchy_lpdf(0.0, 5.0)
        + eta.std_normal_lpdf()
        + y.normal_lpdf(theta, sigma);
    let density = builder.try_density(log_density, Execution::default())?;

    let names = ["mu", "log_tau"].map(String::from).into_iter();
    let names = names.chain((1..=8).map(|j| format!("eta_{j}")));
    let fitted = fit(&Bare::named(density, names), &Options::default())?;
    for parameter in &fitted.parameters()[..2] {
        println!(
            "{:8} {:6.2} ± {:.2}",
            parameter.name, parameter.mean, parameter.sd
        );
    }
    println!("{}", fitted.status_text());
    let mean = fitted.parameter("mu")?.mean;
    assert!((mean - 4.4).abs() < 0.5, "the mean effect is {mean}");
    Ok(())
}
