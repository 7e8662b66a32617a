//! A user-defined likelihood, which is specified by its bound f, the conjugate f* of the bound, and the domain of the
//! conjugate. It models survival times, some of which are censored. Their log scale follows a Gaussian process.
//!
//! `cargo run --release -p jensen --example own_likelihood`

use std::time::Instant;

use jensen::latent::{
    Covariance, Dense, Design, Settings, Site, SiteCurve, SiteValue, Structure, check_site,
    fit_sites,
};
use jensen::math::rng::{Purpose, Stream};
use jensen::run::{Budget, Control, Identity, Silent};

/// A survival time with a Weibull distribution that has shape k and scale e^η. The time is either observed (δ = 1) or
/// right-censored (δ = 0), with −log p(t | η) = δ k η + (t / e^η)^k + δ (−log k − (k − 1) log t).
#[derive(Debug)]
struct Survival {
    shape: f64,
    time: f64,
    observed: bool,
}

impl Survival {
    fn events(&self) -> f64 {
        if self.observed { self.shape } else { 0.0 }
    }

    fn constant(&self) -> f64 {
        let log = self.shape.ln() + (self.shape - 1.0) * self.time.ln();
        if self.observed { -log } else { 0.0 }
    }
}

impl Site for Survival {
    /// The bound f(m, v) = E[−log p] is exact, because E[(t / e^η)^k] = h with h = t^k exp(−k m + k² v / 2).
    fn value(&self, m: f64, v: f64) -> SiteValue {
        let k = self.shape;
        let hazard = (k * (self.time.ln() - m) + 0.5 * k * k * v).exp();
        SiteValue {
            f: self.events() * m + hazard + self.constant(),
            by_mean: self.events() - k * hazard,
            by_variance: 0.5 * k * k * hazard,
        }
    }

    /// From α = ∂f/∂m = δk − k h it follows that h = (δk − α)/k. Then λ = 2 ∂f/∂v = k² h. The conjugate is
    /// f* = αm + ½λv − f = h (log(h / t^k) − 1) − c.
    fn curve(&self, alpha: f64) -> SiteCurve {
        let k = self.shape;
        let hazard = (self.events() - alpha) / k;
        let log = hazard.ln() - k * self.time.ln();
        SiteCurve {
            lambda: k * k * hazard,
            lambda1: -k,
            lambda2: 0.0,
            phi: hazard * (log - 1.0) - self.constant(),
            phi1: -log / k,
            phi2: 1.0 / (k * k * hazard),
        }
    }

    /// The domain of the conjugate is h > 0.
    fn domain(&self) -> (f64, f64) {
        (f64::NEG_INFINITY, self.events())
    }
}

/// Simulates survival times whose log scale is 1 + sin x, and censors them at time 5.
fn survivors(n: usize) -> Vec<Survival> {
    let mut stream = Stream::new(1, Purpose::new("survival times"), 0, 0);
    (0..n)
        .map(|i| {
            let scale = (1.0 + position(i, n).sin()).exp();
            let time = scale * (-stream.uniform().ln()).powf(1.0 / 1.5);
            Survival {
                shape: 1.5,
                time: time.min(5.0),
                observed: time < 5.0,
            }
        })
        .collect()
}

fn position(i: usize, n: usize) -> f64 {
    6.0 * i as f64 / n as f64
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n = 200;
    let sites = survivors(n);
    let off = sites
        .iter()
        .map(|site| check_site(site, 0.5, 0.8))
        .fold(0.0, f64::max);
    println!("f, f* and their derivatives agree to {off:.0e}");

    let kernel = |i: usize, j: usize| {
        let d = position(i, n) - position(j, n);
        4.0 + (-0.5 * d * d).exp() + if i == j { 1e-6 } else { 0.0 }
    };
    let prior = Structure {
        mean: vec![0.0; n],
        covariance: Covariance::Dense(Dense::from_fn(n, n, kernel)),
    };
    let start = Instant::now();
    let clock = || start.elapsed().as_secs_f64();
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(1000), &clock, &mut silent);
    let identity = Identity {
        algorithm: "survival".into(),
        settings: serde_json::Value::Null,
        seed: 0,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: String::new(),
    };
    let sites = sites
        .into_iter()
        .map(|site| Box::new(site) as Box<dyn Site>);
    let fit = fit_sites(
        &prior,
        &Design::Identity,
        None,
        sites.collect(),
        &Settings::default(),
        &identity,
        &mut control,
    )?;
    println!(
        "log p(times) is at least {:.3} nats; no Gaussian gets more than {:.0e} above it ({} iterations)",
        fit.bound,
        fit.gap.unwrap_or(f64::NAN),
        fit.iterations
    );
    for i in (0..n).step_by(40) {
        let (mean, sd) = (fit.mean[i], fit.variance[i].sqrt());
        println!(
            "x = {:.1}: log scale {mean:.2} ± {sd:.2}, truth {:.2}",
            position(i, n),
            1.0 + position(i, n).sin()
        );
    }
    Ok(())
}
