//! Measures the vector functions and random streams, in nanoseconds per element. Run `cargo run --release --example
//! speed`.

use jensen_math::rng::{Purpose, fill_normals, fill_uniforms};
use jensen_math::simd::Simd;
use jensen_math::vmath::slices as v;
use std::hint::black_box;
use std::time::Instant;

/// Returns the shortest of several timings, in nanoseconds per element.
fn time(elements: usize, mut f: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..30 {
        let start = Instant::now();
        for _ in 0..20 {
            f();
        }
        best = best.min(start.elapsed().as_secs_f64() / 20.0);
    }
    best * 1e9 / elements as f64
}

fn main() {
    const N: usize = 1024;
    let ramp = |low: f64, high: f64| -> Vec<f64> {
        (0..N)
            .map(|i| low + (high - low) * ((i * 619 % N) as f64 + 0.5) / N as f64)
            .collect()
    };
    type Unary = fn(Simd, &[f64], &mut [f64]);
    let functions: &[(&str, Unary, f64, f64)] = &[
        ("exp", v::exp, -10.0, 10.0),
        ("expm1", v::expm1, -10.0, 10.0),
        ("log", v::log, 0.0, 10.0),
        ("log2", v::log2, 0.0, 10.0),
        ("log1p", v::log1p, -1.0, 10.0),
        ("sin", v::sin, -10.0, 10.0),
        ("tan", v::tan, -10.0, 10.0),
        ("atan", v::atan, -10.0, 10.0),
        ("asin", v::asin, -1.0, 1.0),
        ("tanh", v::tanh, -5.0, 5.0),
        ("sinh", v::sinh, -5.0, 5.0),
        ("asinh", v::asinh, -5.0, 5.0),
        ("cbrt", v::cbrt, -5.0, 5.0),
        ("inv_logit", v::inv_logit, -10.0, 10.0),
        ("logit", v::logit, 0.0, 1.0),
        ("log1p_exp", v::log1p_exp, -10.0, 10.0),
        ("log1m_exp", v::log1m_exp, -10.0, 0.0),
        ("erf", v::erf, -3.0, 3.0),
        ("erfc", v::erfc, -3.0, 3.0),
        ("phi", v::phi, -5.0, 5.0),
        ("log_phi", v::log_phi, -10.0, 5.0),
        ("inv_phi", v::inv_phi, 0.0, 1.0),
        ("lgamma", v::lgamma, 0.0, 30.0),
        ("digamma", v::digamma, 0.0, 30.0),
        ("trigamma", v::trigamma, 0.0, 30.0),
    ];
    let levels = Simd::available();
    print!("{:16}", "ns/element");
    for simd in &levels {
        print!("{:>9}", simd.name());
    }
    println!();
    let row = |name: &str, f: &mut dyn FnMut(Simd)| {
        print!("{name:16}");
        for &simd in &levels {
            print!("{:9.2}", time(N, || f(simd)));
        }
        println!();
    };
    let mut out = vec![0.0; N];
    for &(name, f, low, high) in functions {
        let x = ramp(low, high);
        row(name, &mut |simd| {
            f(simd, black_box(&x), black_box(&mut out))
        });
    }
    let (x, y) = (ramp(0.1, 5.0), ramp(-3.0, 3.0));
    row("pow", &mut |simd| {
        v::pow(simd, black_box(&x), black_box(&y), black_box(&mut out))
    });
    row("atan2", &mut |simd| {
        v::atan2(simd, black_box(&y), black_box(&x), black_box(&mut out))
    });
    row("lbeta", &mut |simd| {
        v::lbeta(simd, black_box(&x), black_box(&x), black_box(&mut out))
    });
    let purpose = Purpose::new("speed");
    row("fill_uniforms", &mut |simd| {
        fill_uniforms(simd, 1, purpose, 2, 0, 4, N / 4, black_box(&mut out))
    });
    row("fill_normals", &mut |simd| {
        fill_normals(simd, 1, purpose, 2, 0, 4, N / 4, black_box(&mut out))
    });
}
