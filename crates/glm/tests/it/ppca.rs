//! Compares principal components with explicit formulas for the gradient of a record and for the variance of batches at
//! the optimum.

use jensen_density::{Lanes, LanesMut, RecordDensity};
use jensen_glm::{Dense, Ppca};

const RECORDS: [[f64; 3]; 6] = [
    [2.0, 1.0, -0.5],
    [-2.0, -1.0, 0.5],
    [1.5, 2.5, 0.3],
    [-1.5, -2.5, -0.3],
    [0.4, -0.6, 1.0],
    [-0.4, 0.6, -1.0],
];

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn principal() -> ([f64; 3], f64) {
    let (mut u, mut length) = ([1.0, 1.0, 0.0], 0.0);
    for _ in 0..500 {
        let mut next = [0.0; 3];
        for x in &RECORDS {
            let score = dot(x, &u) / 6.0;
            next.iter_mut().zip(x).for_each(|(n, x)| *n += score * x);
        }
        length = dot(&next, &next).sqrt();
        u = next.map(|x| x / length);
    }
    (u, length)
}

#[test]
fn batches_vary_as_they_should_by_hand() {
    let model = Ppca::new(Dense::new(RECORDS.concat(), 3).unwrap(), 1, 1.0);
    // With one component, W = u √(λ − 1) and M = λ.
    let (u, lambda) = principal();
    assert!(lambda > 1.5);
    let w = u.map(|u| u * (lambda - 1.0).sqrt());
    let mean = w.map(|w| w / lambda);
    // The gradient is r zᵀ − W M⁻¹ with z = Wᵀx / M and r = x − W z.
    let by_hand = |n: u32| -> ([f64; 3], f64) {
        let x = &RECORDS[n as usize];
        let z = dot(&w, x) / lambda;
        let r: [f64; 3] = std::array::from_fn(|i| x[i] - w[i] * z);
        (
            std::array::from_fn(|i| r[i] * z - mean[i]),
            dot(&r, &r) * z * z,
        )
    };
    let mut ws = model.workspace(1, 2);
    let mut total = 0.0;
    let mut batches = 0.0;
    for a in 0..6u32 {
        for b in a + 1..6 {
            let mut found = [0.0; 3];
            let (z, out) = (Lanes::new(&w, 3, 1), LanesMut::new(&mut found, 3, 1));
            model.batch_value_grad(&mut ws, &[a, b], z, &mut [0.0], out);
            for (i, found) in found.iter().enumerate() {
                let expected = by_hand(a).0[i] + by_hand(b).0[i];
                assert!(
                    (found - expected).abs() < 1e-10,
                    "{a} {b}: {found} {expected}"
                );
            }
            total += 9.0 * dot(&found, &found);
            batches += 1.0;
        }
    }
    // At the optimum the gradients of all records sum to zero. The variance is therefore N²/B (N − B)/(N − 1)
    // (E‖r‖²‖z‖² − ‖W M⁻¹‖²).
    let products = (0..6).map(|n| by_hand(n).1).sum::<f64>() / 6.0;
    let expected = 36.0 / 2.0 * (4.0 / 5.0) * (products - dot(&mean, &mean));
    assert!(
        (total / batches / expected - 1.0).abs() < 1e-6,
        "{} {expected}",
        total / batches
    );
}
