//! A trust-region Newton method for the sample-average bound: Steihaug–Toint conjugate gradients in
//! the metric of the family's Fisher information.
//!
//! The model of one iteration is `m(s) = gᵀs + ½ sᵀHs` with exact Hessian-vector products, minimised
//! over `‖s‖_P ≤ δ`. Conjugate gradients stop inside when the residual is small, on the boundary, or
//! at negative curvature, which is followed to the boundary (Conn, Gould and Toint, *Trust-Region
//! Methods*, 2000, algorithm 7.5.1, whose recurrences give P-norms without P). A step is taken when the
//! objective falls by at least a tenth of what the model predicts; a trial where the objective is not
//! finite is a rejection.

use jensen_density::TwiceDifferentiable;
use jensen_run::{Archive, ArchiveError, Snapshot};

use crate::objective::Objective;
use crate::reduce::dot;

/// Largest dimension at which the averaged Hessian is formed to precondition.
const DENSE_LIMIT: usize = 256;

/// Where the minimiser stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Newton {
    /// The family's parameters.
    pub omega: Vec<f64>,
    /// The objective there (the negated sample-average bound).
    pub value: f64,
    gradient: Vec<f64>,
    radius: f64,
    /// Rejections in a row.
    rejected: u64,
}

/// How much one iteration may spend.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Relative accuracy of the conjugate gradients, in the metric of the preconditioner.
    pub refine: f64,
    /// Largest number of conjugate-gradient iterations.
    pub max_inner: u64,
}

/// What one iteration did.
#[derive(Clone, Copy, Debug)]
pub struct NewtonStep {
    /// Predicted fall of the objective.
    pub predicted: f64,
    /// Observed fall; 0 when rejected.
    pub observed: f64,
    /// Whether the step was taken.
    pub accepted: bool,
    /// Whether the trust region bound the step.
    pub bounded: bool,
    /// Conjugate-gradient iterations.
    pub inner: u64,
    /// The radius afterwards.
    pub radius: f64,
}

impl NewtonStep {
    /// Whether nothing worth `tolerance` is left to gain on these draws: a Newton step inside the
    /// region predicted less, and the objective agreed.
    pub fn is_last(&self, tolerance: f64) -> bool {
        !self.bounded && self.predicted <= tolerance && self.observed <= 2.0 * tolerance
    }
}

impl Newton {
    /// Starts at `omega`; `None` when the objective is not finite there.
    pub fn start<D: TwiceDifferentiable>(
        objective: &mut Objective<'_, D>,
        omega: Vec<f64>,
    ) -> Option<Self> {
        let mut gradient = vec![0.0; omega.len()];
        let value = objective.value_gradient(&omega, &mut gradient);
        value.is_finite().then_some(Self {
            omega,
            value,
            gradient,
            radius: 10.0,
            rejected: 0,
        })
    }

    /// Whether steps have become too small to change the objective.
    pub fn is_stuck(&self) -> bool {
        self.rejected >= 25 || self.radius < 1e-12
    }

    /// One iteration.
    pub fn step<D: TwiceDifferentiable>(
        &mut self,
        objective: &mut Objective<'_, D>,
        effort: Effort,
    ) -> NewtonStep {
        let family = objective.family();
        let dim = family.dim();
        if self.rejected > 0 {
            // The last evaluation was at the rejected trial.
            objective.charge();
        }
        let dense = dim <= DENSE_LIMIT && family.uses_curvature() && family.dim() > 1;
        let curvature = dense
            .then(|| objective.curvature(&self.omega, (2 * objective.lanes() / dim).clamp(2, 16)))
            .flatten();
        objective.linearize(&self.omega);
        let n = self.omega.len();
        let solution = steihaug(
            &mut |v, out| objective.hvp(v, out),
            &|r, out| family.precondition(&self.omega, curvature.as_ref(), r, out),
            &self.gradient,
            self.radius,
            effort.refine,
            effort.max_inner,
        );
        let mut trial = self.omega.clone();
        for (w, s) in trial.iter_mut().zip(&solution.step) {
            *w += s;
        }
        let mut gradient = vec![0.0; n];
        let value = objective.value_gradient(&trial, &mut gradient);
        let observed = self.value - value;
        // Below the rounding of the objective itself its difference says nothing.
        let rounding = 1e-13 * (1.0 + self.value.abs());
        let ratio = if solution.predicted <= rounding && observed.abs() <= 10.0 * rounding {
            1.0
        } else {
            observed / solution.predicted
        };
        let accepted = value.is_finite() && ratio > 0.1;
        if accepted {
            self.omega = trial;
            self.value = value;
            self.gradient = gradient;
            self.rejected = 0;
        } else {
            self.rejected += 1;
        }
        if !value.is_finite() || ratio < 0.25 {
            self.radius = 0.25 * self.radius.min(solution.norm);
        } else if ratio > 0.75 && solution.bounded {
            self.radius *= if ratio > 0.9 { 4.0 } else { 2.0 };
        }
        NewtonStep {
            predicted: solution.predicted,
            observed: if accepted { observed } else { 0.0 },
            accepted,
            bounded: solution.bounded || !accepted,
            inner: solution.iterations,
            radius: self.radius,
        }
    }
}

impl Snapshot for Newton {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("omega", &self.omega);
        archive.put("gradient", &self.gradient);
        archive.put("value_radius", &[self.value, self.radius]);
        archive.set("rejected", self.rejected);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let omega = archive.vec("omega")?;
        let scalars = archive.vec_of("value_radius", 2)?;
        Ok(Self {
            gradient: archive.vec_of("gradient", omega.len())?,
            omega,
            value: scalars[0],
            radius: scalars[1],
            rejected: archive.get("rejected")?,
        })
    }
}

struct Solution {
    step: Vec<f64>,
    predicted: f64,
    bounded: bool,
    iterations: u64,
    norm: f64,
}

/// Minimises `gᵀs + ½sᵀHs` over `‖s‖_P ≤ radius`; stops when `‖r‖²_{P⁻¹}` has fallen by `refine²`.
fn steihaug(
    product: &mut dyn FnMut(&[f64], &mut [f64]),
    precondition: &dyn Fn(&[f64], &mut [f64]),
    g: &[f64],
    radius: f64,
    refine: f64,
    max_iterations: u64,
) -> Solution {
    let n = g.len();
    let mut step = vec![0.0; n];
    let mut r = g.to_vec();
    let mut y = vec![0.0; n];
    precondition(&r, &mut y);
    let mut p: Vec<f64> = y.iter().map(|x| -x).collect();
    let mut hp = vec![0.0; n];
    let mut ry = dot(&r, &y);
    let goal = ry * refine * refine;
    let (mut ss, mut sp, mut pp) = (0.0f64, 0.0, ry);
    let mut iterations = 0;
    let mut bounded = false;
    while iterations < max_iterations && ry > goal && ry > 0.0 {
        product(&p, &mut hp);
        iterations += 1;
        let curvature = dot(&p, &hp);
        let alpha = ry / curvature;
        let next = ss + alpha * (2.0 * sp + alpha * pp);
        let inside = curvature > 0.0 && next < radius * radius;
        if !inside {
            // To the boundary along p: the positive root of ‖s + τp‖² = δ².
            let room = (radius * radius - ss).max(0.0);
            let tau = room / (sp + (sp * sp + pp * room).max(0.0).sqrt());
            if tau.is_finite() {
                for i in 0..n {
                    step[i] += tau * p[i];
                    r[i] += tau * hp[i];
                }
                ss = radius * radius;
            }
            bounded = true;
            break;
        }
        for i in 0..n {
            step[i] += alpha * p[i];
            r[i] += alpha * hp[i];
        }
        ss = next;
        precondition(&r, &mut y);
        let ry_next = dot(&r, &y);
        let beta = ry_next / ry;
        sp = beta * (sp + alpha * pp);
        pp = ry_next + beta * beta * pp;
        ry = ry_next;
        for i in 0..n {
            p[i] = beta * p[i] - y[i];
        }
    }
    // m(s) = gᵀs + ½sᵀHs = ½(gᵀs + rᵀs), as r = g + Hs.
    let predicted = -0.5 * (dot(g, &step) + dot(&r, &step));
    Solution {
        step,
        predicted,
        bounded,
        iterations,
        norm: ss.max(0.0).sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solve(h: &[f64], g: &[f64], radius: f64) -> Solution {
        let n = g.len();
        steihaug(
            &mut |v, out| {
                for i in 0..n {
                    out[i] = dot(&h[i * n..(i + 1) * n], v);
                }
            },
            &|r, out| out.copy_from_slice(r),
            g,
            radius,
            1e-10,
            100,
        )
    }

    #[test]
    fn inside_it_is_the_newton_step() {
        let h = [4.0, 1.0, 1.0, 3.0];
        let solution = solve(&h, &[1.0, 2.0], 10.0);
        // H⁻¹g = (1, 7)/11.
        assert!((solution.step[0] + 1.0 / 11.0).abs() < 1e-12);
        assert!((solution.step[1] + 7.0 / 11.0).abs() < 1e-12);
        assert!((solution.predicted - 0.5 * 15.0 / 11.0).abs() < 1e-12);
        assert!(!solution.bounded);
    }

    #[test]
    fn outside_and_at_negative_curvature_it_ends_on_the_boundary() {
        for h in [[4.0, 1.0, 1.0, 3.0], [-4.0, 1.0, 1.0, 3.0]] {
            let solution = solve(&h, &[1.0, 2.0], 0.1);
            assert!(solution.bounded);
            assert!((dot(&solution.step, &solution.step).sqrt() - 0.1).abs() < 1e-12);
            let mut hs = [0.0; 2];
            for i in 0..2 {
                hs[i] = dot(&h[i * 2..i * 2 + 2], &solution.step);
            }
            let model = dot(&[1.0, 2.0], &solution.step) + 0.5 * dot(&hs, &solution.step);
            assert!((model + solution.predicted).abs() < 1e-12);
            assert!(model < 0.0);
        }
    }
}
