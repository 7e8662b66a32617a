//! The numbers of draws for gradients and for assessments of steps.

use super::settings::TrustSettings;

/// The quantities of an iteration on which Inequalities 11 and 13 depend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    /// The predicted improvement m′ of the ELBO.
    pub predicted: f64,
    /// The radius δ of the trust region.
    pub radius: f64,
    /// The variance σ² of the observed change for a single draw. It is estimated from the sample itself.
    pub variance: f64,
    /// An estimate of ‖∇L‖². It is the squared norm of the stochastic gradient minus the estimated noise, but at least
    /// a tenth of the squared norm.
    pub gradient_squared: f64,
    /// The largest curvature of the current model. It serves as an estimate of the Lipschitz constant of ∇L and of the
    /// bound on the Hessians.
    pub curvature: f64,
}

/// Computes the smallest N that satisfies Inequality 11 and, if it applies, Inequality 13.
///
/// Inequality 11 requires `N ≥ 2σ²/(ηm′ + y)² log((τ₂δ² + y)/(τ₁δ²))` for all `y > max(−ηm′/2, −τ₂δ²)`. As a function
/// of y, the right-hand side has a single local maximum. With `w = τ₂δ² + y`, its derivative has the sign of `(w + ηm′
/// − τ₂δ²)/w − 2 log(w/(τ₁δ²))`, which changes from positive to negative at most once over the range. Bisection finds
/// the zero.
///
/// Inequality 13, `N ≥ −2σ² log(1 − ζ₁)/(ν₁²‖∇L‖²δ²)`, applies if δ is at most δₖ⁻ of Equation 3. The quantities ‖∇L‖,
/// L and κ_H in the inequality cannot be observed, so the function uses estimates (see [`Situation`]).
///
/// The number is known only after the step, so it determines the size of the next assessment (see
/// [`next_change_draws`]).
///
/// Lemma 1 states that `φ = L − αδ²` rises by at least λδ² in expectation. The statement follows from Inequality 11 for
/// changes `L′ < min(ηm′/2, τ₂δ²)`, and it is trivial for `L′ ≥ τ₂δ²`. If `ηm′ < 2τ₂δ²`, some values of L′ are between
/// these two ranges. For such values, the statement may fail.
pub(crate) fn required_draws(settings: &TrustSettings, at: Situation) -> f64 {
    let squared = at.radius * at.radius;
    let (tau1, tau2) = settings.tau();
    let (a, b, c) = (settings.eta * at.predicted, tau2 * squared, tau1 * squared);
    let falls = |w: f64| 2.0 * (w / c).ln() > (w + a - b) / w;
    let least = (b - 0.5 * a).max(0.0);
    let mut w = least;
    if least == 0.0 || !falls(least) {
        let (mut low, mut high) = (least.max(1e-300), least.max(c).max(a));
        while !falls(high) {
            low = high;
            high *= 2.0;
        }
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if falls(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        w = high;
    }
    let needed = 2.0 * at.variance / (a + w - b).powi(2) * (w / c).ln().max(0.0);
    let applies = at.radius <= small_radius(settings, at);
    let small = if applies {
        -2.0 * at.variance * (1.0 - settings.zeta1).ln()
            / (settings.nu1.powi(2) * at.gradient_squared * squared)
    } else {
        0.0
    };
    needed.max(small).max(2.0)
}

/// Computes the radius δₖ⁻ of Equation 3.
pub(crate) fn small_radius(settings: &TrustSettings, at: Situation) -> f64 {
    let s = settings;
    let slopes = s.nu2 * s.nu3 * at.gradient_squared.sqrt()
        / (s.nu2 * at.curvature + s.nu2 * s.eta * at.curvature + 8.0 * at.curvature);
    s.delta_minus
        .min((s.eta * at.predicted / s.lambda).sqrt())
        .min(slopes)
}

pub(crate) fn next_change_draws(draws: usize, required: f64) -> usize {
    if (draws as f64) < required {
        2 * draws
    } else if draws as f64 > 2.0 * required {
        draws / 2
    } else {
        draws
    }
}

/// If the ratio of observed to predicted improvement exceeds this value, the model is trusted in a larger region.
const GOOD: f64 = 0.75;

/// Computes the radius after an accepted step that reached the boundary of the region `radius`. `ratio` is the ratio of
/// the observed to the predicted improvement. `after_rejection` states whether the previous step was rejected.
///
/// If the radius is at most δₖ⁻ (`small`), it grows by the factor γ, as the proof of convergence requires. A larger
/// radius grows only if the model was good and the previous step was not rejected. This condition can only increase the
/// potential `φ = L − αδ²` of Lemma 1.
pub(crate) fn radius_after_success(
    settings: &TrustSettings,
    radius: f64,
    small: f64,
    ratio: f64,
    after_rejection: bool,
) -> f64 {
    if radius <= small || (ratio >= GOOD && !after_rejection) {
        (settings.gamma * radius).min(settings.delta_max)
    } else {
        radius
    }
}

/// Computes the radius after a rejected step of length `norm`.
///
/// A parabola is determined by the ELBO at both ends of the step and by the `slope` of the gradient at its beginning.
/// The maximum of the parabola is at some fraction of the step. The radius shrinks to that fraction of the step's
/// length, but by at least the factor γ and at most γ². If the radius is at most δₖ⁻ (`small`), it shrinks by γ.
pub(crate) fn radius_after_refusal(
    settings: &TrustSettings,
    radius: f64,
    norm: f64,
    small: f64,
    slope: f64,
    change: f64,
) -> f64 {
    let gamma = settings.gamma;
    let share = 0.5 * slope / (slope - change);
    let share = if radius <= small || slope.is_nan() || slope <= 0.0 {
        1.0 / gamma
    } else {
        share.clamp(1.0 / (gamma * gamma), 1.0 / gamma)
    };
    share * radius.min(norm)
}

/// If a gradient is shorter than this number of its standard deviations, the next gradient uses twice as many draws.
const SHORT: f64 = 2.0;

/// If a gradient is longer than this number of its standard deviations, the next gradient uses half as many draws.
const LONG: f64 = 8.0;

/// By the jackknife rule, `deviation` bounds the standard deviation of the norm of the gradient.
pub(crate) fn next_gradient_draws(draws: usize, norm: f64, deviation: f64) -> usize {
    if norm < SHORT * deviation {
        2 * draws
    } else if norm > LONG * deviation {
        draws / 2
    } else {
        draws
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual(predicted: f64, radius: f64) -> Situation {
        Situation {
            predicted,
            radius,
            variance: 1.0,
            gradient_squared: 1.0,
            curvature: 1.0,
        }
    }

    #[test]
    fn the_bisection_finds_the_maximum_over_y() {
        let settings = [
            TrustSettings::default(),
            TrustSettings {
                lambda: 0.1,
                alpha: 0.5,
                eta: 0.5,
                // With such a small δ⁻, Inequality 13 does not apply.
                delta_minus: 1e-9,
                ..TrustSettings::default()
            },
        ];
        for settings in settings {
            let (tau1, tau2) = settings.tau();
            for predicted in [1e-3, 0.3, 20.0] {
                for radius in [1e-2, 1.0, 30.0] {
                    let at = usual(predicted, radius);
                    let found = required_draws(
                        &TrustSettings {
                            delta_minus: 1e-9,
                            ..settings
                        },
                        at,
                    );
                    let a = settings.eta * predicted;
                    let (b, c) = (tau2 * radius * radius, tau1 * radius * radius);
                    let least = (-0.5 * a).max(-b);
                    let mut best = 2.0f64;
                    for i in 0..200_000 {
                        let y = least + 1e-9 * a * (1.00015f64.powi(i) - 1.0);
                        if y + b > 0.0 {
                            best = best.max(2.0 / (a + y).powi(2) * ((b + y) / c).ln());
                        }
                    }
                    assert!((found / best - 1.0).abs() < 1e-3, "{found} {best}");
                }
            }
        }
    }

    #[test]
    fn inequality_thirteen_counts_only_in_small_regions() {
        let settings = TrustSettings::default();
        // Here δₖ⁻ = ν₂ν₃‖∇L‖ / ((ν₂(1 + η) + 8) κ) = 0.1/8.65.
        let small = usual(1.0, 0.01);
        assert!((small_radius(&settings, small) - 0.1 / 8.65).abs() < 1e-12);
        let expected = -2.0 * 0.2f64.ln() / (0.04 * 1e-4);
        let found = required_draws(&settings, small);
        assert!((found / expected - 1.0).abs() < 1e-9);
        assert!(required_draws(&settings, usual(1.0, 0.02)) < 1e-2 * expected);
    }

    #[test]
    fn sizes_double_and_halve() {
        assert_eq!(next_change_draws(128, 129.0), 256);
        assert_eq!(next_change_draws(512, 255.0), 256);
        assert_eq!(next_change_draws(512, 257.0), 512);
        assert_eq!(next_gradient_draws(256, 1.0, 0.6), 512);
        assert_eq!(next_gradient_draws(256, 1.0, 0.3), 256);
        assert_eq!(next_gradient_draws(256, 1.0, 0.1), 128);
    }

    #[test]
    fn regions_follow_the_model_and_grow_whenever_small() {
        let s = TrustSettings::default();
        assert_eq!(radius_after_success(&s, 3.0, 1.0, 0.9, false), 6.0);
        assert_eq!(radius_after_success(&s, 3.0, 1.0, 0.9, true), 3.0);
        assert_eq!(radius_after_success(&s, 3.0, 1.0, 0.5, false), 3.0);
        assert_eq!(radius_after_success(&s, 3.0, 4.0, 0.5, true), 6.0);
        // The parabola 2t − 3t² has its maximum at a third, and its value at the end is −1.
        let refused =
            |radius, small, change| radius_after_refusal(&s, radius, 3.0, small, 2.0, change);
        assert!((refused(6.0, 1.0, -1.0) - 1.0).abs() < 1e-12);
        assert_eq!(refused(6.0, 1.0, 0.1), 1.5);
        assert_eq!(refused(6.0, 1.0, f64::NEG_INFINITY), 0.75);
        assert_eq!(refused(6.0, 7.0, f64::NEG_INFINITY), 1.5);
    }

    /// Computes the exact `E[Δφ]` of one iteration, in which an assessment with N draws of variance σ² is distributed
    /// as N(L′, σ²/N).
    fn expected_gain(settings: &TrustSettings, at: Situation, change: f64, draws: f64) -> f64 {
        let a = settings.eta * at.predicted;
        let squared = at.radius * at.radius;
        let stays = settings.alpha * (1.0 - settings.gamma.powi(-2)) * squared;
        if a < settings.lambda * squared {
            return stays;
        }
        let accepted = jensen_math::special::phi((change - a) / (at.variance / draws).sqrt());
        let goes = change - settings.alpha * (settings.gamma.powi(2) - 1.0) * squared;
        accepted * goes + (1.0 - accepted) * stays
    }

    /// By Lemma 1, the potential of a noisy quadratic grows by at least λδ² in expectation, for any Hessian of the
    /// model and any gradient. The test covers the range of changes for which Inequality 11 implies this statement.
    #[test]
    fn the_potential_grows_whatever_the_model() {
        let settings = TrustSettings {
            lambda: 0.1,
            alpha: 0.2,
            ..TrustSettings::default()
        };
        let (_, tau2) = settings.tau();
        // The function is L(ω) = −½ Σ aᵢωᵢ². The test uses the gradient at a point, and models of the gradient and the
        // Hessian that are wrong in many ways.
        let curvature = [0.1, 1.0, 8.0];
        let omega = [3.0, -1.0, 0.4];
        let slope = |i: usize| -curvature[i] * omega[i];
        let (mut covered, mut bad, mut refused) = (0, 0, 0);
        for case in 0..4000 {
            let number = |k: usize| (f64::from(case) * 0.731 + k as f64 * 1.93).sin();
            let g: Vec<f64> = (0..3).map(|i| slope(i) + 2.0 * number(i)).collect();
            let b: Vec<f64> = (0..3)
                .map(|i| curvature[i] * (2.0 * number(i + 3)).exp())
                .collect();
            let radius = (2.5 * number(7)).exp();
            let solution = super::super::subproblem::krylov(
                &mut |v, out| (0..3).for_each(|i| out[i] = b[i] * v[i]),
                &|r, out| out.copy_from_slice(r),
                &g,
                radius,
                super::super::subproblem::Effort {
                    refine: 1e-9,
                    max_products: 9,
                },
            );
            let s = &solution.step;
            let change: f64 = (0..3)
                .map(|i| slope(i) * s[i] - 0.5 * curvature[i] * s[i] * s[i])
                .sum();
            let at = Situation {
                predicted: solution.predicted,
                radius,
                variance: (3.0 * number(8)).exp(),
                gradient_squared: 1.0,
                curvature: 1.0,
            };
            let gain = expected_gain(&settings, at, change, required_draws(&settings, at));
            let a = settings.eta * at.predicted;
            let squared = radius * radius;
            if a < settings.lambda * squared {
                refused += 1;
            }
            if change < (0.5 * a).min(tau2 * squared) || change >= tau2 * squared {
                covered += 1;
                bad += u32::from(change < 0.0);
                assert!(
                    gain >= settings.lambda * squared * (1.0 - 1e-9),
                    "{gain} {at:?} {change}"
                );
            }
        }
        assert!(
            covered > 3000 && bad > 1000 && refused > 500,
            "{covered} {bad} {refused}"
        );
    }

    #[test]
    fn between_its_ranges_lemma_one_fails() {
        // The settings are λ = δ = 1, γ = 2, α = 2 and ηm′ = L′ = 1.
        let settings = TrustSettings {
            lambda: 1.0,
            alpha: 2.0,
            eta: 0.5,
            ..TrustSettings::default()
        };
        let at = Situation {
            predicted: 2.0,
            ..usual(2.0, 1.0)
        };
        assert!(expected_gain(&settings, at, 1.0, required_draws(&settings, at)) < 0.0);
    }
}
