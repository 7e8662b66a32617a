//! Tests that compare both solvers with a dense eigenvalue solution.

use super::*;

fn numbers(seed: u64, count: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}

fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

fn times(a: &[f64], x: &[f64]) -> Vec<f64> {
    a.chunks(x.len()).map(|row| dot(row, x)).collect()
}

fn eigen(a: &[f64], n: usize) -> (Vec<f64>, Vec<Vec<f64>>) {
    let mut a = a.to_vec();
    let mut v: Vec<Vec<f64>> = (0..n)
        .map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect())
        .collect();
    for _ in 0..60 {
        for p in 0..n {
            for q in 0..p {
                let off = a[p * n + q];
                if off == 0.0 {
                    continue;
                }
                let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * off);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for k in 0..n {
                    let (x, y) = (a[k * n + p], a[k * n + q]);
                    a[k * n + p] = c * x - s * y;
                    a[k * n + q] = s * x + c * y;
                }
                for k in 0..n {
                    let (x, y) = (a[p * n + k], a[q * n + k]);
                    a[p * n + k] = c * x - s * y;
                    a[q * n + k] = s * x + c * y;
                    let (x, y) = (v[p][k], v[q][k]);
                    v[p][k] = c * x - s * y;
                    v[q][k] = s * x + c * y;
                }
            }
        }
    }
    ((0..n).map(|i| a[i * n + i]).collect(), v)
}

/// Computes the largest value of `gᵀs − ½sᵀBs` over the ball, by bisection of the secular equation in the eigenbasis.
fn best(b: &[f64], g: &[f64], radius: f64) -> f64 {
    let n = g.len();
    let (values, vectors) = eigen(b, n);
    let gamma: Vec<f64> = vectors.iter().map(|v| dot(v, g)).collect();
    let coordinates = |shift: f64| -> Vec<f64> {
        let along = |(g, l): (&f64, &f64)| if *g == 0.0 { 0.0 } else { g / (l + shift) };
        gamma.iter().zip(&values).map(along).collect()
    };
    let value = |x: &[f64]| -> f64 {
        let terms = x.iter().zip(&gamma).zip(&values);
        terms.map(|((x, g), l)| g * x - 0.5 * l * x * x).sum()
    };
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    if least > 0.0 && norm(&coordinates(0.0)) <= radius {
        return value(&coordinates(0.0));
    }
    let floor = (-least).max(0.0);
    let (mut low, mut high) = (floor, floor + norm(g) / radius + 1.0);
    for _ in 0..2000 {
        let middle = 0.5 * (low + high);
        if norm(&coordinates(middle)) > radius {
            low = middle;
        } else {
            high = middle;
        }
    }
    let mut x = coordinates(high);
    // In the hard case, the rest of the step is along the eigenvector of the least eigenvalue.
    let room = (radius * radius - dot(&x, &x)).max(0.0);
    let at = values.iter().position(|l| *l == least).unwrap();
    x[at] = (x[at] * x[at] + room).sqrt().copysign(x[at]);
    value(&x)
}

fn with_eigenvalues(values: &[f64], seed: u64) -> Vec<f64> {
    let n = values.len();
    let square = numbers(seed, n * n);
    let mut symmetric = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..n {
            symmetric[i * n + j] = square[i * n + j] + square[j * n + i];
        }
    }
    let (_, basis) = eigen(&symmetric, n);
    let mut out = vec![0.0; n * n];
    for (value, v) in values.iter().zip(&basis) {
        for i in 0..n {
            for j in 0..n {
                out[i * n + j] += value * v[i] * v[j];
            }
        }
    }
    out
}

fn spectra() -> Vec<Vec<f64>> {
    vec![
        vec![2.0],
        vec![-1.0],
        vec![1.0, 2.0, 3.0, 4.0],
        vec![1e-6, 1e-3, 1.0, 30.0, 1e3, 1e4],
        vec![-3.0, -1.0, 0.0, 1.0, 5.0],
        vec![-1e3, 1e-3, 1.0, 2.0, 2.0, 2.0, 50.0],
        vec![-2.0, -2.0, -1.0, -0.5],
        (0..20).map(|i| f64::from(i) - 4.0).collect(),
    ]
}

const RADII: [f64; 4] = [1e-3, 0.3, 4.0, 1e3];

fn cholesky_solve(b: &[f64], n: usize) -> impl FnMut(f64, &[f64]) -> Option<Vec<f64>> + '_ {
    move |shift, right| {
        let mut shifted = b.to_vec();
        (0..n).for_each(|i| shifted[i * n + i] += shift);
        let factor = crate::dense::cholesky(&shifted, n)?;
        let mut x = right.to_vec();
        crate::dense::solve_lower(&factor, &mut x);
        crate::dense::solve_lower_transposed(&factor, &mut x);
        Some(x)
    }
}

fn spread(b: &[f64], n: usize) -> f64 {
    let size = |row: &[f64]| row.iter().map(|x| x.abs()).sum::<f64>();
    b.chunks(n).map(size).fold(0.0, f64::max)
}

fn model(b: &[f64], g: &[f64], s: &[f64]) -> f64 {
    dot(g, s) - 0.5 * dot(s, &times(b, s))
}

#[test]
fn the_secular_equation_agrees_with_the_eigen_solution() {
    for (k, values) in spectra().iter().enumerate() {
        let n = values.len();
        for seed in 0..6 {
            let b = with_eigenvalues(values, 7 * seed + k as u64 + 1);
            let g = numbers(seed + 100, n);
            for radius in RADII {
                let (s, shift) = secular(&mut cholesky_solve(&b, n), &g, radius, spread(&b, n));
                let expected = best(&b, &g, radius);
                assert!(norm(&s) <= radius * (1.0 + 1e-8));
                let found = model(&b, &g, &s);
                assert!(
                    (found - expected).abs() <= 1e-7 * expected.abs(),
                    "{values:?} {radius}: {found} for {expected}"
                );
                assert_eq!(shift > 0.0, norm(&s) > radius * (1.0 - 1e-8));
            }
        }
    }
}

#[test]
fn the_hard_case_follows_the_least_eigenvector() {
    for values in [vec![-2.0, 1.0, 3.0], vec![-2.0, -2.0, 0.5, 4.0]] {
        let n = values.len();
        let mut b = vec![0.0; n * n];
        (0..n).for_each(|i| b[i * n + i] = values[i]);
        // The gradient has no component along the eigenvector of the least eigenvalue.
        let g: Vec<f64> = values
            .iter()
            .map(|l| if *l == -2.0 { 0.0 } else { 1.0 })
            .collect();
        for radius in [2.0, 10.0] {
            let (s, shift) = secular(&mut cholesky_solve(&b, n), &g, radius, spread(&b, n));
            assert!((norm(&s) / radius - 1.0).abs() < 1e-6, "{}", norm(&s));
            assert!((shift - 2.0).abs() < 1e-3);
            let (found, expected) = (model(&b, &g, &s), best(&b, &g, radius));
            assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
        }
    }
}

#[test]
fn krylov_spaces_grow_into_the_eigen_solution() {
    let accurate = Effort {
        refine: 1e-12,
        max_products: 100,
    };
    for (k, values) in spectra().iter().enumerate() {
        let n = values.len();
        for seed in 0..6 {
            let b = with_eigenvalues(values, 11 * seed + k as u64 + 1);
            let g = numbers(seed + 200, n);
            // With the metric P = diag(m), the problem for P½s has the matrix P⁻½ B P⁻½.
            let m: Vec<f64> = numbers(seed + 300, n)
                .iter()
                .map(|x| (2.0 * x).exp())
                .collect();
            let mut scaled = b.clone();
            for i in 0..n {
                for j in 0..n {
                    scaled[i * n + j] /= (m[i] * m[j]).sqrt();
                }
            }
            let scaled_g: Vec<f64> = g.iter().zip(&m).map(|(g, m)| g / m.sqrt()).collect();
            for radius in RADII {
                let solution = krylov(
                    &mut |v, out| out.copy_from_slice(&times(&b, v)),
                    &|r, out| (0..n).for_each(|i| out[i] = r[i] / m[i]),
                    &g,
                    radius,
                    accurate,
                );
                let expected = best(&scaled, &scaled_g, radius);
                let s = &solution.step;
                let length = (0..n).map(|i| m[i] * s[i] * s[i]).sum::<f64>().sqrt();
                assert!(length <= radius * (1.0 + 1e-8));
                assert!((length - solution.norm).abs() <= 1e-8 * length);
                let found = model(&b, &g, s);
                assert!(
                    (found - expected).abs() <= 1e-6 * expected.abs(),
                    "{values:?} {radius}: {found} for {expected}"
                );
                assert!((solution.predicted - found).abs() <= 1e-7 * found.abs());
                assert_eq!(solution.bounded, length > radius * (1.0 - 1e-8));
            }
        }
    }
}

#[test]
fn few_products_gain_at_least_what_the_gradient_does() {
    // The Cauchy step is the solution in the first subspace.
    for (k, values) in spectra().iter().enumerate() {
        let n = values.len();
        let b = with_eigenvalues(values, k as u64 + 40);
        let g = numbers(k as u64 + 50, n);
        for radius in RADII {
            let curvature = dot(&g, &times(&b, &g));
            let most = radius / norm(&g);
            let t = if curvature > 0.0 {
                most.min(dot(&g, &g) / curvature)
            } else {
                most
            };
            let cauchy = t * dot(&g, &g) - 0.5 * t * t * curvature;
            let mut last = cauchy * (1.0 - 1e-9);
            for max_products in 1..=n {
                let effort = Effort {
                    refine: 0.0,
                    max_products,
                };
                let solution = krylov(
                    &mut |v, out| out.copy_from_slice(&times(&b, v)),
                    &|r, out| out.copy_from_slice(r),
                    &g,
                    radius,
                    effort,
                );
                assert!(solution.products <= max_products as u64);
                assert!(solution.predicted >= last, "{} {last}", solution.predicted);
                last = solution.predicted * (1.0 - 1e-9);
            }
        }
    }
}

#[test]
fn products_that_overflow_leave_no_step() {
    let solution = krylov(
        &mut |_, out| out.fill(f64::NAN),
        &|r, out| out.copy_from_slice(r),
        &[1.0, 2.0],
        1.0,
        Effort {
            refine: 0.1,
            max_products: 10,
        },
    );
    assert_eq!(solution.step, [0.0, 0.0]);
    assert_eq!(solution.norm, 0.0);
}
