//! The convex dual in N variables (Khan, Aravkin, Friedlander and Seeger 2013, Eq. 20).
//!
//! With the curve of every site (see `site::convex`), the dual is `D(α) = ½ αᵀΣ̃α − μ̃ᵀα − ½ log|I + Λ(α)Σ̃| + Σ
//! φ_n(α_n)`. Its gradient is `−m̄ − ½ λ′∘v̄ + φ′` with `m̄ = μ̃ − Σ̃α`, `v̄ = diag S` and `S = W A_λ⁻¹ Wᵀ`, and its
//! Hessian is `Σ̃ + ½ λ′λ′ᵀ∘S∘S + diag(φ″ − ½ λ″∘v̄)`.
//!
//! For a dense prior with N ≤ L, the Newton system is solved directly. Otherwise the solver replaces S∘S by its
//! diagonal or omits it, and solves `(Σ̃ + D) x = r` in latent space with at most one more factorisation. This changes
//! the curvature by at most a factor of 1 + S_nn/2, because `(SΛS)_nn ≤ S_nn`. L-BFGS corrects for the change.
//!
//! φ is a barrier at the ends of the domain. For a dense prior with N ≤ L, an iterate moves along a path that is
//! straight in φ′(α), which is the logarithm of a rate or the logit of a probability. Such a path never leaves the
//! domain, and Newton's method in these coordinates reaches the optimum from a rough guess in a few steps. For other
//! priors, Σ̃ nearly confines α to a plane, and such paths leave the plane. In that case the solver first runs the
//! natural-gradient fixed point, whose iterates stay on the plane, until an iterate is inside the domain. From there it
//! takes straight steps, which go at most 99 % of the way to the boundary.
//!
//! The stopping rule is the duality gap, which is a sum of non-negative terms by the Fenchel–Young inequality.

use std::collections::VecDeque;

use jensen_run::{Algorithm, Archive, ArchiveError, Evidence, Record, Snapshot, Status, Step};

use super::fixed::FixedPoint;
use super::two_loops::{Correction, two_loops};
use super::{Problem, Solution};
use crate::linear::Geometry;
use crate::linear::kernels::{dot, map, sum};
use crate::site::{Curves, DualSites, Sites};
use crate::{Error, Warm};

const MEMORY: usize = 8;

const FRACTION: f64 = 0.99;

/// The factor at λ is used as a preconditioner while λD is within these limits.
const REUSE: (f64, f64) = (0.5, 2.5);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pair {
    s: Vec<f64>,
    y: Vec<f64>,
    /// The product Σ̃s.
    product: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    alpha: Vec<f64>,
    /// The vector m̄ = μ̃ − Σ̃α, which is updated together with α.
    predictor: Vec<f64>,
    pairs: VecDeque<Pair>,
    /// The gradient before the last step. The next L-BFGS pair needs it.
    gradient: Vec<f64>,
    /// Number of consecutive steps that did not lower the dual beyond rounding.
    idle: u64,
}

impl Snapshot for State {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("alpha", &self.alpha);
        archive.put("predictor", &self.predictor);
        archive.put("gradient", &self.gradient);
        archive.set("idle", self.idle);
        archive.set("pairs", self.pairs.len());
        for (k, pair) in self.pairs.iter().enumerate() {
            archive.put(&format!("s{k}"), &pair.s);
            archive.put(&format!("y{k}"), &pair.y);
            archive.put(&format!("product{k}"), &pair.product);
        }
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let pairs: usize = archive.get("pairs")?;
        Ok(Self {
            alpha: archive.vec("alpha")?,
            predictor: archive.vec("predictor")?,
            gradient: archive.vec("gradient")?,
            idle: archive.get("idle")?,
            pairs: (0..pairs)
                .map(|k| {
                    Ok(Pair {
                        s: archive.vec(&format!("s{k}"))?,
                        y: archive.vec(&format!("y{k}"))?,
                        product: archive.vec(&format!("product{k}"))?,
                    })
                })
                .collect::<Result<_, ArchiveError>>()?,
        })
    }
}

/// The search for a feasible start fails after this many steps of the fixed point.
const APPROACH: u64 = 60;

/// The dual takes over from the fixed point when the duality gap has fallen to this value, in nats per predictor.
const NEAR: f64 = 0.02;

pub(crate) struct Start {
    alpha: Vec<f64>,
    /// The vector m̄ = μ̃ − Σ̃α.
    predictor: Vec<f64>,
    curved: bool,
}

/// Returns a feasible point. For a dense prior with N ≤ L, the point comes from an earlier fit or is a rough guess. For
/// other priors, natural-gradient steps run until a point is inside the domain and has a small gap. The iterates of
/// these steps stay consistent with the prior but may leave the domain of φ. Straight steps in the dual are not used
/// while the gap is large, because they would soon reach the boundary of the domain. If the natural-gradient steps fail
/// and Σ̃ is available, the point is the rough guess.
pub(crate) fn start(
    problem: &mut Problem<'_>,
    sites: &Sites,
    dual_sites: &DualSites,
    warm: Option<&Warm>,
) -> Result<Start, Error> {
    let n = problem.centre.len();
    if matches!(problem.geometry, Geometry::Wide(_)) {
        let alpha = match warm {
            Some(warm) if warm.alpha.len() == n && dual_sites.contains(&warm.alpha) => {
                warm.alpha.clone()
            }
            _ => dual_sites.guess(),
        };
        if let Some(start) = guessed(problem, alpha) {
            return Ok(start);
        }
    }
    let failed = |status: Option<Status>| {
        let detail = status.map_or(String::new(), |s| format!(" ({s})"));
        Error::Prior(format!(
            "Jensen found no feasible start{detail}: the data may not determine the posterior, as with counts \
             that are all zero under an intrinsic prior; use a proper prior, or check the scale of the data"
        ))
    };
    let last = match approach(problem, sites, dual_sites, warm) {
        Ok(start) => return Ok(start),
        Err(last) => last,
    };
    guessed(problem, dual_sites.guess()).ok_or_else(|| failed(last))
}

fn guessed(problem: &Problem<'_>, alpha: Vec<f64>) -> Option<Start> {
    let predictor = predictor(problem, &alpha)?;
    Some(Start {
        alpha,
        predictor,
        curved: true,
    })
}

fn approach(
    problem: &mut Problem<'_>,
    sites: &Sites,
    dual_sites: &DualSites,
    warm: Option<&Warm>,
) -> Result<Start, Option<Status>> {
    let n = problem.centre.len();
    let from = super::fixed::start(problem, sites, warm);
    let mut approach = FixedPoint::new(problem, sites, from, false);
    let mut state = approach.init().map_err(Some)?;
    let mut last = None;
    for iteration in 1..=APPROACH {
        if let Some((alpha, predictor, variances)) = approach.position(&state) {
            let inside = dual_sites.contains(&alpha);
            let near = |gap: f64| gap <= NEAR * n as f64;
            if inside && (last.is_some() || near(dual_sites.gap(&alpha, &predictor, &variances))) {
                return Ok(Start {
                    alpha,
                    predictor,
                    curved: false,
                });
            }
        }
        if last.is_some() {
            break;
        }
        last = approach.step(&mut state, iteration).status;
    }
    Err(last)
}

fn predictor(problem: &Problem<'_>, alpha: &[f64]) -> Option<Vec<f64>> {
    let product = match &problem.geometry {
        Geometry::Wide(g) => g.covariance_times(alpha),
        Geometry::Narrow(g) => g.covariance_times(alpha),
        Geometry::Sparse(_) | Geometry::Chain(_) => return None,
    };
    let centre = &problem.centre;
    Some(map(alpha.len(), |i| centre[i] - product[i]))
}

pub(crate) struct Dual<'p, 'm> {
    problem: &'p mut Problem<'m>,
    sites: &'p DualSites,
    start: Option<(Vec<f64>, Vec<f64>)>,
    curved: bool,
    /// log|I + ΛΣ̃|, if the geometry is factorised at the state's λ.
    factorised: Option<f64>,
    evaluations: u64,
}

impl<'p, 'm> Dual<'p, 'm> {
    pub(crate) fn new(problem: &'p mut Problem<'m>, sites: &'p DualSites, start: Start) -> Self {
        Self {
            problem,
            sites,
            curved: start.curved,
            start: Some((start.alpha, start.predictor)),
            factorised: None,
            evaluations: 0,
        }
    }

    /// Computes D at α. The geometry must be factorised at λ(α).
    fn dual(&self, alpha: &[f64], predictor: &[f64], phi: f64, log_determinant: f64) -> f64 {
        let centre = &self.problem.centre;
        let linear = sum(alpha.len(), |n| alpha[n] * (predictor[n] + centre[n]));
        -0.5 * (linear + log_determinant) + phi
    }

    fn factor(&mut self, lambda: &[f64]) -> Option<f64> {
        self.evaluations += 1;
        self.problem.geometry.factor(lambda)
    }

    /// Computes all quantities at the state's α. Returns `None` if the posterior precision is not positive definite.
    fn look(&mut self, state: &State) -> Option<Here> {
        let curves = self.sites.curves(&state.alpha);
        let lambda = curves.lambda();
        let log_determinant = match self.factorised.take() {
            Some(value) => value,
            None => self.factor(&lambda)?,
        };
        if let Geometry::Wide(wide) = &mut self.problem.geometry
            && curves.at.iter().any(|c| c.lambda1 != 0.0)
        {
            // The Newton system needs the whole inverse, which also contains the variances.
            wide.inverse();
        }
        let variances = self.problem.geometry.variances();
        let phi = sum(lambda.len(), |i| curves.at[i].phi);
        let dual = self.dual(&state.alpha, &state.predictor, phi, log_determinant);
        let gap = self.sites.gap(&state.alpha, &state.predictor, &variances);
        Some(Here {
            curves,
            lambda,
            variances,
            log_determinant,
            dual,
            gap,
        })
    }

    fn certify(&mut self, here: &Here) -> Option<Status> {
        (here.gap <= self.problem.settings.tolerance).then(|| {
            self.factorised = Some(here.log_determinant);
            Status::Converged {
                evidence: Evidence {
                    rule: format!("the duality gap is {:.1e} nats", here.gap),
                    remaining: Some(here.gap),
                    standard_error: None,
                },
            }
        })
    }

    /// Computes the Newton direction and the product of Σ̃ with it. Returns `None` if the system is not positive
    /// definite.
    fn direction(&mut self, state: &State, here: &Here, gradient: &[f64]) -> Option<Direction> {
        let n = gradient.len();
        let curves = &here.curves;
        let curvature = map(n, |i| {
            curves.at[i].phi2 - 0.5 * curves.at[i].lambda2 * here.variances[i]
        });
        let (along, product) = match &mut self.problem.geometry {
            Geometry::Wide(wide) => {
                let slope: Vec<f64> = curves.at.iter().map(|c| c.lambda1).collect();
                let down: Vec<f64> = gradient.iter().map(|g| -g).collect();
                let along = wide.newton(&slope, &curvature, &curves.block, &down)?;
                let product = wide.covariance_times(&along);
                (along, product)
            }
            geometry => {
                let own = map(n, |i| {
                    curvature[i] + 0.5 * (curves.at[i].lambda1 * here.variances[i]).powi(2)
                });
                let reuse = curves.block.coupling.is_empty()
                    && (0..n).all(|i| {
                        let ratio = here.lambda[i] * own[i];
                        own[i] >= 1e50 || (ratio >= REUSE.0 && ratio <= REUSE.1)
                    });
                let weight = if reuse {
                    here.lambda.clone()
                } else {
                    map(n, |i| 1.0 / own[i])
                };
                quasi_newton(&state.pairs, gradient, |q| match geometry {
                    Geometry::Narrow(g) => g.solve(&weight, &curves.block, q, !reuse),
                    Geometry::Sparse(g) => g.solve(&weight, q, !reuse),
                    Geometry::Chain(g) => g.solve(&weight, q, !reuse),
                    Geometry::Wide(_) => None,
                })?
            }
        };
        Some(Direction {
            slope: dot(gradient, &along),
            along,
            product,
        })
    }

    fn reached(
        &mut self,
        state: &State,
        here: &Here,
        direction: &Direction,
        t: f64,
    ) -> Option<Reached> {
        let n = state.alpha.len();
        let alpha = if self.curved {
            let along = &direction.along;
            self.sites.along(&state.alpha, &here.curves, along, t)
        } else {
            map(n, |i| state.alpha[i] + t * direction.along[i])
        };
        if !self.sites.contains(&alpha) {
            return None;
        }
        let straight = || map(n, |i| state.predictor[i] - t * direction.product[i]);
        let predictor = match self.curved {
            true => predictor(self.problem, &alpha).unwrap_or_else(straight),
            false => straight(),
        };
        let curves = self.sites.curves(&alpha);
        let log_determinant = self.factor(&curves.lambda())?;
        let phi = sum(n, |i| curves.at[i].phi);
        let dual = self.dual(&alpha, &predictor, phi, log_determinant);
        Some(Reached {
            alpha,
            predictor,
            log_determinant,
            dual,
        })
    }

    fn search(
        &mut self,
        state: &State,
        here: &Here,
        direction: &Direction,
        rounding: f64,
    ) -> (f64, Option<Reached>) {
        let mut t = if self.curved {
            1.0
        } else {
            (FRACTION * self.sites.reach(&state.alpha, &direction.along)).min(1.0)
        };
        loop {
            if let Some(reached) = self.reached(state, here, direction, t)
                && reached.dual <= here.dual + 1e-4 * t * direction.slope + rounding
            {
                return (t, Some(reached));
            }
            t *= 0.5;
            if t < 1e-12 {
                return (t, None);
            }
        }
    }

    fn move_to(&mut self, state: &mut State, reached: Reached, gradient: Vec<f64>) {
        let n = state.alpha.len();
        if !matches!(self.problem.geometry, Geometry::Wide(_)) {
            if state.pairs.len() == MEMORY {
                state.pairs.pop_front();
            }
            state.pairs.push_back(Pair {
                s: map(n, |i| reached.alpha[i] - state.alpha[i]),
                y: Vec::new(),
                product: map(n, |i| state.predictor[i] - reached.predictor[i]),
            });
            state.gradient = gradient;
        }
        state.alpha = reached.alpha;
        state.predictor = reached.predictor;
        self.factorised = Some(reached.log_determinant);
    }
}

struct Here {
    curves: Curves,
    lambda: Vec<f64>,
    variances: Vec<f64>,
    log_determinant: f64,
    dual: f64,
    gap: f64,
}

impl Here {
    fn gradient(&self, state: &State) -> Vec<f64> {
        map(state.alpha.len(), |i| {
            let at = &self.curves.at[i];
            at.phi1 - state.predictor[i] - 0.5 * at.lambda1 * self.variances[i]
        })
    }
}

/// A direction in α, its product with Σ̃, and the slope of the dual along it.
struct Direction {
    along: Vec<f64>,
    product: Vec<f64>,
    slope: f64,
}

struct Reached {
    alpha: Vec<f64>,
    predictor: Vec<f64>,
    log_determinant: f64,
    dual: f64,
}

impl State {
    /// Completes the L-BFGS pair of the last step with the new gradient. If the pair's curvature is not positive, the
    /// pair is dropped.
    fn remember(&mut self, gradient: &[f64]) {
        if let (Some(pair), false) = (self.pairs.back_mut(), self.gradient.is_empty())
            && pair.y.is_empty()
        {
            pair.y = map(gradient.len(), |i| gradient[i] - self.gradient[i]);
            if dot(&pair.s, &pair.y) <= 0.0 {
                self.pairs.pop_back();
            }
        }
    }

    /// Drops all stored steps, and returns whether there were any.
    fn forget(&mut self) -> bool {
        let any = !self.pairs.is_empty();
        self.pairs.clear();
        if any {
            self.gradient.clear();
        }
        any
    }
}

impl Algorithm for Dual<'_, '_> {
    type State = State;
    type Output = Solution;

    fn init(&mut self) -> Result<State, Status> {
        let (alpha, predictor) = self.start.take().ok_or(Status::Diverged {
            at: 0,
            reason: "the run was started twice".to_owned(),
        })?;
        Ok(State {
            alpha,
            predictor,
            pairs: VecDeque::new(),
            gradient: Vec::new(),
            idle: 0,
        })
    }

    fn step(&mut self, state: &mut State, iteration: u64) -> Step {
        let diverged = |reason: &str| Status::Diverged {
            at: iteration,
            reason: reason.to_owned(),
        };
        let stalled = |reason: String| Status::Stalled {
            at: iteration,
            reason,
        };
        let Some(here) = self.look(state) else {
            let status = diverged("the posterior precision is not positive definite");
            return Step::finish(Record::new(self.evaluations), status);
        };
        let (dual, gap) = (here.dual, here.gap);
        let record = Record::new(self.evaluations)
            .with_elbo(dual - gap, None)
            .with("gap", gap)
            .with("dual", dual);
        if !dual.is_finite() {
            return Step::finish(record, diverged("the dual objective is not finite"));
        }
        if let Some(status) = self.certify(&here) {
            return Step::finish(record, status);
        }
        let gradient = here.gradient(state);
        state.remember(&gradient);
        let Some(direction) = self.direction(state, &here, &gradient) else {
            let status = diverged("the Newton system is not positive definite");
            return Step::finish(record, status);
        };
        if direction.slope.is_nan() {
            return Step::finish(record, diverged("the step is not finite"));
        }
        let rounding = 1e-13 * (dual.abs() + state.alpha.len() as f64);
        let (t, reached) = self.search(state, &here, &direction, rounding);
        let record = record.with("step", t);
        let Some(reached) = reached else {
            if state.forget() {
                return Step::go_on(record);
            }
            let reason =
                format!("no step lowers the dual, although the duality gap is {gap:.1e} nats");
            return Step::finish(record, stalled(reason));
        };
        state.idle = if reached.dual > dual - rounding {
            state.idle + 1
        } else {
            0
        };
        if state.idle >= 20 {
            let reason = format!(
                "the dual no longer falls, although the duality gap is {gap:.1e} nats: the model is badly scaled"
            );
            return Step::finish(record, stalled(reason));
        }
        self.move_to(state, reached, gradient);
        Step::go_on(record)
    }

    fn output(&mut self, state: &State) -> Solution {
        let curves = self.sites.curves(&state.alpha);
        let lambda = curves.lambda();
        let log_determinant = match self.factorised {
            Some(value) => Some(value),
            None => self.factor(&lambda),
        };
        let phi = sum(lambda.len(), |i| curves.at[i].phi);
        let (bound, gap) = match log_determinant {
            Some(log_determinant) => {
                let variances = self.problem.geometry.variances();
                let gap = self.sites.gap(&state.alpha, &state.predictor, &variances);
                let dual = self.dual(&state.alpha, &state.predictor, phi, log_determinant);
                (dual - gap, Some(gap))
            }
            None => (f64::NAN, None),
        };
        Solution {
            alpha: state.alpha.clone(),
            lambda,
            predictor: state.predictor.clone(),
            bound,
            gap,
            gain: None,
        }
    }
}

/// Computes the L-BFGS direction `−H g` with a preconditioner, and the product of Σ̃ with this direction.
fn quasi_newton(
    pairs: &VecDeque<Pair>,
    gradient: &[f64],
    mut solve: impl FnMut(&[f64]) -> Option<(Vec<f64>, Vec<f64>)>,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let n = gradient.len();
    let complete: Vec<&Pair> = pairs.iter().filter(|p| !p.y.is_empty()).collect();
    let corrections: Vec<Correction<'_>> = complete.iter().map(|p| (&p.s[..], &p.y[..])).collect();
    let mut product = Vec::new();
    let downhill = gradient.iter().map(|g| -g).collect();
    let (x, multiples) = two_loops(&corrections, downhill, |q| {
        let (x, of_x) = solve(q)?;
        product = of_x;
        Some(x)
    })?;
    for (pair, multiple) in complete.iter().zip(multiples) {
        product = map(n, |i| product[i] + multiple * pair.product[i]);
    }
    Some((x, product))
}
