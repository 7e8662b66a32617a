//! The nodes and weights of Gauss's quadrature rules.

use std::f64::consts::PI;

/// The nodes and weights of a quadrature rule, with the nodes in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The points at which the integrand is evaluated.
    pub nodes: Vec<f64>,
    /// The weight of the integrand at each node.
    pub weights: Vec<f64>,
}

/// The largest supported number of Gauss-Hermite nodes.
pub const MAX_HERMITE: usize = 128;

/// Returns the Gauss-Legendre rule with n nodes on (0, 1): `integral of f = sum of weights[i] * f(nodes[i])`. The rule
/// is exact for polynomials up to degree `2 n - 1`. Newton's method computes the nodes, starting from Tricomi's first
/// approximation of the roots.
pub fn gauss_legendre(n: usize) -> Rule {
    let mut rule = Rule {
        nodes: vec![0.5; n],
        weights: vec![1.0; n],
    };
    for i in 0..n.div_ceil(2) {
        let mut x = (PI * (i as f64 + 0.75) / (n as f64 + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..20 {
            let (mut before, mut value) = (1.0, x);
            for k in 2..=n {
                let k = k as f64;
                (before, value) = (
                    value,
                    ((2.0 * k - 1.0) * x * value - (k - 1.0) * before) / k,
                );
            }
            slope = n as f64 * (before - x * value) / (1.0 - x * x);
            let step = value / slope;
            x -= step;
            if step.abs() < 1e-16 {
                break;
            }
        }
        let weight = 1.0 / ((1.0 - x * x) * slope * slope);
        // If the number of roots is odd, the middle root is 0.
        let x = if 2 * i + 1 == n { 0.0 } else { x };
        rule.nodes[i] = 0.5 - 0.5 * x;
        rule.nodes[n - 1 - i] = 0.5 + 0.5 * x;
        rule.weights[i] = weight;
        rule.weights[n - 1 - i] = weight;
    }
    rule
}

/// Returns the Gauss-Hermite rule for the standard normal distribution: `E f(Z) = sum of weights[i] * f(nodes[i])`. The
/// rule is exact for polynomials up to degree `2 n - 1`. For the weight function `e^(-t^2)`, use `t = node / sqrt(2)`
/// and `weight * sqrt(pi)`. The nodes are accurate to 1e-14, and the weights have a relative accuracy of 1e-12. Returns
/// `None` unless `1 <= n <= 128`.
pub fn gauss_hermite(n: usize) -> Option<Rule> {
    if n == 0 || n > MAX_HERMITE {
        return None;
    }
    let mut rule = Rule {
        nodes: vec![0.0; n],
        weights: vec![0.0; n],
    };
    for i in 0..n.div_ceil(2) {
        let middle = 2 * i + 1 == n;
        let x = if middle { 0.0 } else { hermite_root(n, i) };
        let (_, before) = hermite_functions(n, x);
        // The Christoffel-Darboux formula yields the weight. The square root of the normal density is factored out of
        // the functions.
        let weight = (-0.5 * x * x).exp() / ((2.0 * PI).sqrt() * n as f64 * before * before);
        rule.nodes[i] = x;
        rule.weights[i] = weight;
        rule.nodes[n - 1 - i] = -x;
        rule.weights[n - 1 - i] = weight;
    }
    Some(rule)
}

/// Returns the orthonormal Hermite functions of order `n` and `n - 1`. They are the orthonormal polynomials of the
/// normal distribution, multiplied by the square root of its density to prevent overflow.
fn hermite_functions(n: usize, x: f64) -> (f64, f64) {
    let (mut before, mut now) = (0.0, (-0.25 * x * x).exp() / (2.0 * PI).sqrt().sqrt());
    for k in 0..n {
        let k = k as f64;
        (before, now) = (now, (x * now - k.sqrt() * before) / (k + 1.0).sqrt());
    }
    (now, before)
}

/// Returns the `i`th smallest root, for `i < n / 2`. The function brackets the root by bisection, counting the
/// eigenvalues of the Jacobi matrix below the midpoint. Newton's method then refines the root.
fn hermite_root(n: usize, i: usize) -> f64 {
    let below = |x: f64| {
        let mut count = 0;
        let mut pivot = -x;
        for k in 1..=n {
            if pivot < 0.0 {
                count += 1;
            }
            // A pivot of zero is replaced, as is usual in Sturm counts.
            let safe = if pivot == 0.0 {
                f64::MIN_POSITIVE.sqrt()
            } else {
                pivot
            };
            pivot = -x - k as f64 / safe;
        }
        count
    };
    let (mut low, mut high) = (-2.0 * (n as f64).sqrt(), 0.0);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if below(middle) > i {
            high = middle;
        } else {
            low = middle;
        }
    }
    let mut x = 0.5 * (low + high);
    for _ in 0..3 {
        // At a root, the derivative of the function of order n is sqrt(n) times the function of order n - 1.
        let (now, before) = hermite_functions(n, x);
        x -= now / ((n as f64).sqrt() * before);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_are_integrated_exactly() {
        for n in 1..=MAX_HERMITE {
            let rule = gauss_hermite(n).unwrap();
            assert!(rule.nodes.windows(2).all(|w| w[0] < w[1]), "n = {n}");
            // E Z^(2k) = (2k - 1)!!, checked for all degrees for which the rule is exact and the value is finite.
            let mut moment = 1.0;
            for k in 0..n.min(60) {
                let terms = rule
                    .nodes
                    .iter()
                    .zip(&rule.weights)
                    .map(|(x, w)| w * x.powi(2 * k as i32));
                let sum: f64 = terms.sum();
                assert!(
                    (sum / moment - 1.0).abs() < 1e-11,
                    "n = {n}, degree {}: {sum} and {moment}",
                    2 * k
                );
                moment *= (2 * k + 1) as f64;
            }
        }
    }

    #[test]
    fn gauss_legendre_integrates_polynomials() {
        for n in 1..=80 {
            let rule = gauss_legendre(n);
            assert!(rule.nodes.is_sorted_by(|x, y| x < y), "n = {n}");
            for k in 0..2 * n as i32 {
                let terms = rule.nodes.iter().zip(&rule.weights);
                let sum: f64 = terms.map(|(x, w)| w * x.powi(k)).sum();
                let exact = 1.0 / f64::from(k + 1);
                assert!((sum - exact).abs() < 1e-14, "n = {n}, degree {k}: {sum}");
            }
        }
    }

    #[test]
    fn known_nodes_are_found() {
        let rule = gauss_hermite(3).unwrap();
        assert!((rule.nodes[2] - 3f64.sqrt()).abs() < 1e-15);
        assert_eq!(rule.nodes[1], 0.0);
        assert!((rule.weights[1] - 2.0 / 3.0).abs() < 1e-15);
        assert!((rule.weights[0] - 1.0 / 6.0).abs() < 1e-15);
        // The expected values are from Abramowitz and Stegun, table 25.10, n = 20, for the weight e^(-t^2).
        let rule = gauss_hermite(20).unwrap();
        assert!((rule.nodes[19] / 2f64.sqrt() - 5.387_480_890_011_23).abs() < 1e-13);
        assert!((rule.weights[19] * PI.sqrt() / 2.229_393_645_534e-13 - 1.0).abs() < 1e-11);
        assert_eq!(gauss_hermite(0), None);
        assert_eq!(gauss_hermite(129), None);
    }

    #[test]
    fn smooth_functions_converge() {
        let rule = gauss_hermite(32).unwrap();
        let sum: f64 = rule
            .nodes
            .iter()
            .zip(&rule.weights)
            .map(|(x, w)| w * x.exp())
            .sum();
        assert!((sum - 0.5f64.exp()).abs() < 1e-13);
    }
}
