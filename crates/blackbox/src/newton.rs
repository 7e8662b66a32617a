//! A trust-region Newton method for the sample-average approximation of the ELBO. It uses Steihaug–Toint conjugate
//! gradients in the metric of the family's Fisher information.
//!
//! Each iteration minimises the model `m(s) = gᵀs + ½ sᵀHs` over `‖s‖_P ≤ δ`, using exact Hessian-vector products. The
//! conjugate gradients stop when the residual is small or when they reach the boundary of the region. At negative
//! curvature, they follow the direction to the boundary (Conn, Gould and Toint, *Trust-Region Methods*, 2000, algorithm
//! 7.5.1, whose recurrences give P-norms without P). The method accepts a step if the objective falls by at least a
//! tenth of the decrease that the model predicts. It rejects a step to a point whose objective is not finite. The
//! minimisers for smaller radii lie on the path of the conjugate gradients, so each trial after a rejection costs one
//! evaluation and no products.

use jensen_density::TwiceDifferentiable;
use jensen_run::{Archive, ArchiveError, Snapshot};

use crate::objective::Objective;
use crate::policy::DENSE;
use crate::reduce::{axpy, dot};
use crate::sizes::KEPT;

/// If there are at most this many coordinates per lane, the averaged Hessian is computed from the beginning. Otherwise
/// it is computed only after conjugate gradients have proved slow.
const CHEAP: usize = 2;

/// The relative tolerance of conjugate gradients in `‖g‖²_{P⁻¹}`, which is about twice the remaining gain in nats. The
/// first number is the tolerance per nat, and the second number is the largest tolerance. Far from the optimum, the
/// model itself is no more accurate than the largest tolerance.
const ROUGH: (f64, f64) = (1e-3, 0.1);

/// The largest number of steps along the path that are tried within a smaller radius, before the Hessian is computed
/// again.
const TRIALS: u64 = 4;

/// The state of the trust-region Newton method.
#[derive(Clone, Debug, PartialEq)]
pub struct Newton {
    /// The parameters ω of the family.
    pub omega: Vec<f64>,
    /// The objective at ω, which is the negated ELBO on the fixed draws.
    pub value: f64,
    gradient: Vec<f64>,
    radius: f64,
    rejected: u64,
    slow: bool,
}

/// Limits on the effort of one iteration.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The relative accuracy of the conjugate gradients, in the metric of the preconditioner.
    pub refine: f64,
    /// The largest number of conjugate-gradient iterations.
    pub max_inner: u64,
}

/// The outcome of one iteration.
#[derive(Clone, Copy, Debug)]
pub struct NewtonStep {
    /// The decrease of the objective that the model predicts.
    pub predicted: f64,
    /// The observed decrease of the objective, or 0 if the step was rejected.
    pub observed: f64,
    /// Whether the step was accepted.
    pub accepted: bool,
    /// Whether the trust region limited the step.
    pub bounded: bool,
    /// The number of conjugate-gradient iterations.
    pub inner: u64,
    /// The radius of the trust region after the iteration.
    pub radius: f64,
}

impl NewtonStep {
    /// Returns whether the remaining gain on these draws is below `tolerance`. It is below `tolerance` if the last
    /// Newton step stayed inside the region and predicted a smaller gain than `tolerance`, and if the objective changed
    /// as predicted.
    pub fn is_last(&self, tolerance: f64) -> bool {
        !self.bounded && self.predicted <= tolerance && self.observed <= 2.0 * tolerance
    }
}

impl Newton {
    /// Starts the method at `omega`. Returns `None` if the objective is not finite there.
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
            slow: false,
        })
    }

    /// Returns whether steps have become too small to change the objective.
    pub fn is_stuck(&self) -> bool {
        self.rejected >= 25 || self.radius < 1e-12
    }

    /// Performs one iteration of the method.
    pub fn step<D: TwiceDifferentiable>(
        &mut self,
        objective: &mut Objective<'_, D>,
        effort: Effort,
    ) -> NewtonStep {
        let family = objective.family();
        let dim = family.dim();
        if self.rejected > 0 {
            // The last evaluation was at the rejected point.
            objective.charge();
        }
        let cheap = dim <= CHEAP * objective.lanes() || self.slow;
        let dense = cheap && dim <= DENSE && family.uses_curvature() && dim > 1;
        let curvature = dense
            .then(|| objective.curvature(&self.omega, (2 * objective.lanes() / dim).clamp(2, 16)))
            .flatten();
        objective.linearize(&self.omega);
        let way = steihaug(
            &mut |v, out| objective.hvp(v, out),
            &|r, out| family.precondition(&self.omega, curvature.as_ref(), r, out),
            &self.gradient,
            self.radius,
            effort.refine,
            effort.max_inner,
        );
        self.slow = way.iterations() == effort.max_inner && !way.bounded;
        let mut trials = 1;
        let mut tried = self.attempt(objective, way.end());
        while !tried.accepted && trials < TRIALS {
            let Some(shorter) = way.within(self.radius) else {
                break;
            };
            tried = self.attempt(objective, shorter);
            trials += 1;
        }
        NewtonStep {
            inner: way.iterations(),
            ..tried
        }
    }

    fn attempt<D: TwiceDifferentiable>(
        &mut self,
        objective: &mut Objective<'_, D>,
        solution: Solution,
    ) -> NewtonStep {
        let mut trial = self.omega.clone();
        for (w, s) in trial.iter_mut().zip(&solution.step) {
            *w += s;
        }
        let mut gradient = vec![0.0; trial.len()];
        let value = objective.value_gradient(&trial, &mut gradient);
        let observed = self.value - value;
        // Differences below the rounding error of the objective contain no information.
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
            inner: 0,
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
        archive.set("slow", self.slow);
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
            slow: archive.get("slow")?,
        })
    }
}

#[derive(Clone)]
struct Solution {
    step: Vec<f64>,
    predicted: f64,
    bounded: bool,
    norm: f64,
}

struct Leg {
    /// The step length along each direction p, and the point at its end. They are not stored if there are too many.
    length: f64,
    end: Vec<f64>,
    /// The products `−rᵀp` and `pᵀHp` of the model at the beginning of the iteration.
    model: f64,
    slope: f64,
    curvature: f64,
    /// The norms `‖s‖²` and `‖p‖²` and the product `sᵀPp` at the beginning of the iteration, in the norm of P.
    ss: f64,
    sp: f64,
    pp: f64,
}

impl Leg {
    fn room(&self, radius: f64) -> f64 {
        // This is the positive root τ of ‖s + τp‖² = δ².
        let room = (radius * radius - self.ss).max(0.0);
        room / (self.sp + (self.sp * self.sp + self.pp * room).max(0.0).sqrt())
    }

    fn norm_at(&self, length: f64) -> f64 {
        let square = self.ss + length * (2.0 * self.sp + length * self.pp);
        square.max(0.0).sqrt()
    }

    fn model_at(&self, length: f64) -> f64 {
        self.model - length * (self.slope - 0.5 * length * self.curvature)
    }
}

struct Way {
    legs: Vec<Leg>,
    step: Vec<f64>,
    bounded: bool,
}

impl Way {
    fn iterations(&self) -> u64 {
        self.legs.len() as u64
    }

    fn end(&self) -> Solution {
        let last = self.legs.last();
        Solution {
            step: self.step.clone(),
            predicted: last.map_or(0.0, |leg| -leg.model_at(leg.length)),
            bounded: self.bounded,
            norm: last.map_or(0.0, |leg| leg.norm_at(leg.length)),
        }
    }

    /// Returns the point at which the path leaves the region of the given smaller radius. This point is the minimiser
    /// for that radius. Returns `None` if the path does not leave the region, or if the path is no longer stored.
    fn within(&self, radius: f64) -> Option<Solution> {
        let at = (self.legs.iter()).position(|leg| leg.norm_at(leg.length) > radius)?;
        let leg = (self.legs.get(at)).filter(|leg| leg.end.len() == self.step.len())?;
        let length = leg.room(radius);
        let share = length / leg.length;
        let mut step: Vec<f64> = leg.end.iter().map(|end| share * end).collect();
        if let Some(before) = at.checked_sub(1) {
            axpy(1.0 - share, &self.legs[before].end, &mut step);
        }
        Some(Solution {
            step,
            predicted: -leg.model_at(length),
            bounded: true,
            norm: radius,
        })
    }
}

/// Minimises `gᵀs + ½sᵀHs` over `‖s‖_P ≤ radius`. The iteration stops when `‖r‖²_{P⁻¹}` has fallen by the factor
/// `refine²`, or by the factor that [`ROUGH`] determines.
fn steihaug(
    product: &mut dyn FnMut(&[f64], &mut [f64]),
    precondition: &dyn Fn(&[f64], &mut [f64]),
    g: &[f64],
    radius: f64,
    refine: f64,
    max_iterations: u64,
) -> Way {
    let n = g.len();
    let mut way = Way {
        legs: Vec::new(),
        step: vec![0.0; n],
        bounded: false,
    };
    let mut r = g.to_vec();
    let mut y = vec![0.0; n];
    precondition(&r, &mut y);
    let mut p: Vec<f64> = y.iter().map(|x| -x).collect();
    let mut hp = vec![0.0; n];
    let mut ry = dot(&r, &y);
    let goal = ry * (refine * refine).max((ROUGH.0 * ry).min(ROUGH.1));
    let (mut model, mut ss, mut sp, mut pp) = (0.0, 0.0f64, 0.0, ry);
    while way.iterations() < max_iterations && ry > goal && ry > 0.0 {
        product(&p, &mut hp);
        let mut leg = Leg {
            length: 0.0,
            end: Vec::new(),
            model,
            slope: ry,
            curvature: dot(&p, &hp),
            ss,
            sp,
            pp,
        };
        let alpha = ry / leg.curvature;
        let inside = leg.curvature > 0.0 && leg.norm_at(alpha) < radius;
        leg.length = if inside { alpha } else { leg.room(radius) };
        if !leg.length.is_finite() {
            leg.length = 0.0;
        }
        let length = leg.length;
        axpy(length, &p, &mut way.step);
        (model, ss) = (leg.model_at(length), leg.norm_at(length).powi(2));
        if (way.legs.len() + 1) * n <= KEPT {
            leg.end.clone_from(&way.step);
        }
        way.legs.push(leg);
        if !inside {
            way.bounded = true;
            break;
        }
        axpy(length, &hp, &mut r);
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
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solve(h: &[f64], g: &[f64], radius: f64) -> Way {
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

    fn predicted(h: &[f64], g: &[f64], step: &[f64]) -> f64 {
        let n = g.len();
        let hs: Vec<f64> = (0..n).map(|i| dot(&h[i * n..(i + 1) * n], step)).collect();
        -(dot(g, step) + 0.5 * dot(&hs, step))
    }

    #[test]
    fn inside_it_is_the_newton_step() {
        let h = [4.0, 1.0, 1.0, 3.0];
        let solution = solve(&h, &[1.0, 2.0], 10.0).end();
        // H⁻¹g = (1, 7)/11.
        assert!((solution.step[0] + 1.0 / 11.0).abs() < 1e-12);
        assert!((solution.step[1] + 7.0 / 11.0).abs() < 1e-12);
        assert!((solution.predicted - 0.5 * 15.0 / 11.0).abs() < 1e-12);
        assert!(!solution.bounded);
    }

    #[test]
    fn outside_and_at_negative_curvature_it_ends_on_the_boundary() {
        for h in [[4.0, 1.0, 1.0, 3.0], [-4.0, 1.0, 1.0, 3.0]] {
            let solution = solve(&h, &[1.0, 2.0], 0.1).end();
            assert!(solution.bounded);
            assert!((dot(&solution.step, &solution.step).sqrt() - 0.1).abs() < 1e-12);
            let model = predicted(&h, &[1.0, 2.0], &solution.step);
            assert!((model - solution.predicted).abs() < 1e-12);
            assert!(model > 0.0);
        }
    }

    #[test]
    fn minimisers_of_smaller_radii_lie_on_the_way() {
        let (h, g) = (
            [4.0, 1.0, 0.5, 1.0, 3.0, -0.2, 0.5, -0.2, 0.1],
            [1.0, 2.0, -1.0],
        );
        let way = solve(&h, &g, 5.0);
        for radius in [2.0, 0.7, 0.3, 0.01] {
            let (short, own) = (way.within(radius).unwrap(), solve(&h, &g, radius).end());
            let apart = short.step.iter().zip(&own.step).map(|(a, b)| (a - b).abs());
            assert!(apart.fold(0.0, f64::max) < 1e-12);
            assert!((short.predicted - own.predicted).abs() < 1e-12);
            assert!((short.predicted - predicted(&h, &g, &short.step)).abs() < 1e-12);
            assert!(short.bounded && short.norm == radius);
        }
        assert!(way.within(5.1).is_none());
    }
}
