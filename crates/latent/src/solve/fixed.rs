//! The natural-gradient fixed point, which fits bounds without a convex dual.
//!
//! The fixed point uses the coordinates of the dual: at the optimum, α = ∂f/∂m and λ = 2 ∂f/∂v. The site's natural
//! parameters are λ and `b = λ m̄ − α`, and a step is `(b, λ) ← (1−t)(b, λ) + t (b, λ)_new`. Such a step is
//! natural-gradient ascent of size t on the bound (Khan and Lin 2017), and for λ = E g″ it is a Newton step in the
//! mean. The size t starts at 1 and is halved until the bound does not fall. After a change of (b, λ), the other
//! quantities follow from `x = Λμ̃ − b`, `Σ̃α = S x` and `α = x − Λ S x`.
//!
//! Anderson mixing of the last few steps accelerates the iteration. The mixture is used only if it raises the bound
//! further.

use jensen_run::{Algorithm, Archive, ArchiveError, Evidence, Record, Snapshot, Status, Step};

use super::{Problem, Solution, with_residuals};
use crate::linear::kernels::{dot, map, sum};
use crate::site::Sites;
use crate::site::convex::Value;
use crate::{Dense, Warm};

/// Number of earlier steps that the mixture combines.
const MIXED: usize = 5;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    b: Vec<f64>,
    lambda: Vec<f64>,
    gain: f64,
    /// Earlier points and their full steps, oldest first. Each point consists of b followed by λ.
    points: Vec<Vec<f64>>,
    steps: Vec<Vec<f64>>,
}

impl Snapshot for State {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("b", &self.b);
        archive.put("lambda", &self.lambda);
        archive.put("gain", &[self.gain]);
        archive.set("mixed", self.points.len());
        for (k, (point, step)) in self.points.iter().zip(&self.steps).enumerate() {
            archive.put(&format!("point{k}"), point);
            archive.put(&format!("step{k}"), step);
        }
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let mixed: usize = archive.get("mixed")?;
        let named = |name: &str| {
            (0..mixed)
                .map(|k| archive.vec(&format!("{name}{k}")))
                .collect::<Result<Vec<Vec<f64>>, ArchiveError>>()
        };
        Ok(Self {
            b: archive.vec("b")?,
            lambda: archive.vec("lambda")?,
            gain: archive.vec_of("gain", 1)?[0],
            points: named("point")?,
            steps: named("step")?,
        })
    }
}

/// All quantities at one (b, λ). After their computation, the geometry is factorised at this λ.
struct Point {
    alpha: Vec<f64>,
    predictor: Vec<f64>,
    variances: Vec<f64>,
    values: Vec<Value>,
    bound: f64,
}

/// Returns the starting values of (b, λ). If there is a warm fit, they come from this fit. Otherwise they come from the
/// data.
pub(crate) fn start(
    problem: &Problem<'_>,
    sites: &Sites,
    warm: Option<&Warm>,
) -> (Vec<f64>, Vec<f64>) {
    let n = problem.centre.len();
    // The optimum of quadratic sites does not depend on the prior, and the guess is this optimum.
    if let Some(warm) = warm
        && !sites.is_quadratic()
        && [&warm.alpha, &warm.lambda, &warm.predictor]
            .iter()
            .all(|x| x.len() == n && x.iter().all(|x| x.is_finite()))
    {
        let b = map(n, |i| warm.lambda[i] * warm.predictor[i] - warm.alpha[i]);
        return (b, warm.lambda.clone());
    }
    sites.guess(&problem.centre)
}

pub(crate) struct FixedPoint<'p, 'm> {
    problem: &'p mut Problem<'m>,
    sites: &'p Sites,
    start: Option<(Vec<f64>, Vec<f64>)>,
    at: Option<Point>,
    mixing: bool,
    evaluations: u64,
}

impl<'p, 'm> FixedPoint<'p, 'm> {
    pub(crate) fn new(
        problem: &'p mut Problem<'m>,
        sites: &'p Sites,
        start: (Vec<f64>, Vec<f64>),
        mixing: bool,
    ) -> Self {
        Self {
            problem,
            sites,
            start: Some(start),
            at: None,
            mixing,
            evaluations: 0,
        }
    }

    /// Returns the current point. At the start, b and λ may move so that the bound can be evaluated.
    fn here(&mut self, state: &mut State) -> Option<Point> {
        let n = state.b.len();
        if let Some(at) = self.at.take() {
            return Some(at);
        }
        if let Some(at) = self.point(&state.b, &state.lambda) {
            return Some(at);
        }
        // The prior mean, combined with the same curvature, is a safer start than the sites' own guess.
        state.b = map(n, |i| state.lambda[i] * self.problem.centre[i]);
        if let Some(at) = self.point(&state.b, &state.lambda) {
            return Some(at);
        }
        // If densities are not log-concave, as near an outlier under a Student t likelihood, negative curvatures can
        // outweigh the precision of the prior. These curvatures are set to 0.
        state.lambda.iter_mut().for_each(|l| *l = l.max(0.0));
        state.b = map(n, |i| state.lambda[i] * self.problem.centre[i]);
        self.point(&state.b, &state.lambda)
    }

    /// Computes the bound `−Σ f − KL` at (b, λ), where `KL = ½ (αᵀΣ̃α + log|I + ΛΣ̃| − λᵀv̄)`.
    fn point(&mut self, b: &[f64], lambda: &[f64]) -> Option<Point> {
        self.evaluations += 1;
        let n = b.len();
        let geometry = &mut self.problem.geometry;
        let log_determinant = geometry.factor(lambda)?;
        let centre = &self.problem.centre;
        let x = map(n, |i| lambda[i] * centre[i] - b[i]);
        let product = geometry.posterior_times(&x);
        let alpha = map(n, |i| x[i] - lambda[i] * product[i]);
        let variances = geometry.variances();
        let predictor = map(n, |i| centre[i] - product[i]);
        let divergence =
            0.5 * (sum(n, |i| alpha[i] * product[i] - lambda[i] * variances[i]) + log_determinant);
        let variances = with_residuals(&self.problem.model.design, variances);
        let values = self.sites.values(&predictor, &variances);
        let bound = -sum(n, |i| values[i].f) - divergence;
        bound.is_finite().then_some(Point {
            alpha,
            predictor,
            variances,
            values,
            bound,
        })
    }
}

impl Algorithm for FixedPoint<'_, '_> {
    type State = State;
    type Output = Solution;

    fn init(&mut self) -> Result<State, Status> {
        let (b, lambda) = self.start.take().ok_or(Status::Diverged {
            at: 0,
            reason: "the run was started twice".to_owned(),
        })?;
        Ok(State {
            b,
            lambda,
            gain: f64::INFINITY,
            points: Vec::new(),
            steps: Vec::new(),
        })
    }

    fn step(&mut self, state: &mut State, iteration: u64) -> Step {
        let n = state.b.len();
        let Some(at) = self.here(state) else {
            return Step::finish(
                Record::new(self.evaluations),
                Status::Diverged {
                    at: iteration,
                    reason: "the bound cannot be evaluated at the start".to_owned(),
                },
            );
        };
        let step = map(2 * n, |i| match i.checked_sub(n) {
            None => {
                let value = &at.values[i];
                2.0 * value.by_variance * at.predictor[i] - value.by_mean - state.b[i]
            }
            Some(i) => 2.0 * at.values[i].by_variance - state.lambda[i],
        });
        let here = map(2 * n, |i| match i.checked_sub(n) {
            None => state.b[i],
            Some(i) => state.lambda[i],
        });
        if is_negligible(&step[..n], &here[..n]) && is_negligible(&step[n..], &here[n..]) {
            let record = Record::new(self.evaluations).with_elbo(at.bound, None);
            self.at = Some(at);
            let evidence = Evidence {
                rule: "the point is a fixed point of the step".to_owned(),
                remaining: Some(0.0),
                standard_error: None,
            };
            return Step::finish(record, Status::Converged { evidence });
        }
        let rounding = 1e-13 * (at.bound.abs() + n as f64) + self.sites.discord();
        let mixture = if self.mixing {
            mix(&state.points, &state.steps, &here, &step)
        } else {
            None
        };
        let mut taken = None;
        if let Some(target) = mixture
            && self.admissible(&target[n..])
            && let Some(point) = self.point(&target[..n], &target[n..])
            && point.bound >= at.bound
        {
            taken = Some((target, point));
        }
        let mut t = 1.0;
        while taken.is_none() && t > 1e-8 {
            let target = map(2 * n, |i| here[i] + t * step[i]);
            if let Some(point) = self.point(&target[..n], &target[n..])
                && point.bound >= at.bound - rounding
            {
                taken = Some((target, point));
                break;
            }
            t *= 0.5;
        }
        let record =
            |bound: f64, calls: u64| Record::new(calls).with_elbo(bound, None).with("step", t);
        let Some((target, point)) = taken else {
            self.problem.geometry.factor(&state.lambda);
            self.at = Some(at);
            return Step::finish(
                record(f64::NAN, self.evaluations),
                Status::Stalled {
                    at: iteration,
                    reason: "no step raises the bound".to_owned(),
                },
            );
        };
        let gain = point.bound - at.bound;
        let rate = (gain.abs() / state.gain.abs()).clamp(0.0, 0.95);
        // Bounds closer to each other than the errors of their expectations cannot be compared.
        let remaining = (gain.abs() * rate / (1.0 - rate)).max(self.sites.discord());
        let tolerance = self.problem.settings.tolerance.max(rounding);
        let bound = point.bound;
        if state.points.len() == MIXED {
            state.points.remove(0);
            state.steps.remove(0);
        }
        state.points.push(here);
        state.steps.push(step);
        state.b = target[..n].to_vec();
        state.lambda = target[n..].to_vec();
        let settled = gain.abs() <= tolerance && state.gain.is_finite() && remaining <= tolerance;
        state.gain = gain.abs().max(rounding);
        self.at = Some(point);
        let record = record(bound, self.evaluations);
        if settled {
            let evidence = Evidence {
                rule: format!("the last step raised the bound by {:.1e} nats", gain.abs()),
                remaining: Some(remaining),
                standard_error: None,
            };
            return Step::finish(record, Status::Converged { evidence });
        }
        Step::go_on(record)
    }

    fn output(&mut self, state: &State) -> Solution {
        // The geometry must be factorised at the solution.
        let point = match self.at.take() {
            Some(at) => Some(at),
            None => self.point(&state.b, &state.lambda),
        };
        let (alpha, predictor, bound) = match point {
            Some(p) => (p.alpha, p.predictor, p.bound),
            None => (
                vec![f64::NAN; state.b.len()],
                vec![f64::NAN; state.b.len()],
                f64::NAN,
            ),
        };
        Solution {
            alpha,
            lambda: state.lambda.clone(),
            predictor,
            bound,
            gap: None,
            gain: None,
        }
    }
}

/// The size of a step, relative to the point, below which rounding errors of the step dominate. A sum of a few terms has
/// errors of a few 1e-16, and differences of terms can be a thousand times smaller than the terms.
const ROUNDING: f64 = 1e-13;

fn is_negligible(step: &[f64], here: &[f64]) -> bool {
    let largest = |list: &[f64]| list.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    largest(step) <= ROUNDING * largest(here)
}

/// Computes the bound after one full step from the point with the given α, λ and mean of the linear predictors.
/// Afterwards the geometry is factorised at the new λ.
pub(crate) fn bound_after_step(
    problem: &mut Problem<'_>,
    sites: &Sites,
    alpha: &[f64],
    lambda: &[f64],
    predictor: &[f64],
) -> Option<f64> {
    let b = map(alpha.len(), |i| lambda[i] * predictor[i] - alpha[i]);
    let mut step = FixedPoint::new(problem, sites, (Vec::new(), Vec::new()), false);
    step.point(&b, lambda).map(|point| point.bound)
}

impl FixedPoint<'_, '_> {
    pub(crate) fn position(&mut self, state: &State) -> Option<(Vec<f64>, Vec<f64>, Vec<f64>)> {
        if self.at.is_none() {
            self.at = self.point(&state.b, &state.lambda);
        }
        let at = self.at.as_ref()?;
        Some((at.alpha.clone(), at.predictor.clone(), at.variances.clone()))
    }

    fn admissible(&self, lambda: &[f64]) -> bool {
        super::signed(self.problem.model) || lambda.iter().all(|l| *l >= 0.0)
    }
}

/// Computes Anderson's mixture of the current point and earlier points. The mixture is the combination with the
/// smallest step, measured in a norm that divides every coordinate by its current size. Returns `None` if there are no
/// earlier points.
fn mix(points: &[Vec<f64>], steps: &[Vec<f64>], here: &[f64], step: &[f64]) -> Option<Vec<f64>> {
    let k = points.len();
    if k == 0 {
        return None;
    }
    let n = here.len();
    let differences: Vec<Vec<f64>> = steps
        .iter()
        .map(|old| map(n, |i| step[i] - old[i]))
        .collect();
    let scale = 1e-10 * differences.iter().map(|d| dot(d, d)).fold(0.0, f64::max);
    let mut gram = Dense::from_fn(k, k, |i, j| {
        dot(&differences[i], &differences[j]) + if i == j { scale } else { 0.0 }
    });
    let mut weights: Vec<f64> = differences.iter().map(|d| dot(d, step)).collect();
    crate::linear::kernels::cholesky(&mut gram)?;
    crate::linear::kernels::solve(&gram, &mut weights);
    Some(map(n, |i| {
        let mut x = here[i] + step[i];
        for j in 0..k {
            x -= weights[j] * (here[i] - points[j][i] + differences[j][i]);
        }
        x
    }))
}
