//! Two baselines for the solver of Jensen: the dual of the paper with plain L-BFGS and dense algebra, and Jensen's
//! solver with dense algebra. Together, the two baselines show how much of the speed-up is due to the method and how
//! much is due to the algebra.
//!
//! The formulas are `D(α) = ½ αᵀΣ̃α − μ̃ᵀα − ½ log|I + ΛΣ̃| + Σ φ_n(α_n)`, `∇D = Σ̃α − μ̃ − ½ λ′∘diag S + φ′`, `S = Σ̃
//! − Σ̃Λ^½ B⁻¹ Λ^½Σ̃` and `B = I + Λ^½Σ̃Λ^½`. The function φ is the only barrier. If a step leaves the domain, the step
//! is halved.

use std::collections::VecDeque;

use jensen::latent::{Covariance, Dense, Design, LatentModel, Solver, TableModel};
use jensen::math::dense;
use jensen::math::sum::Moments;
use serde::{Deserialize, Serialize};

use super::race::{Case, fixed, solved};
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, What};

/// The number of correction pairs of L-BFGS. The primal solver uses the same number.
const MEMORY: usize = 10;

/// The maximum distance of a finished run from the optimum, in nats. The other rows use the same distance.
const DONE: f64 = 1e-4;

/// The number of timed runs of a fit.
const REPEATS: usize = 5;

/// The duration, in seconds, above which a run is not repeated.
const LONG: f64 = 15.0;

const MOST: u64 = 5_000;

/// The function of a site. It returns λ, λ′, φ and φ′ at α, or `None` if α is outside the domain.
#[derive(Clone, Copy)]
enum Curve {
    /// The tilted bound for y successes in n trials.
    Logistic {
        y: f64,
        n: f64,
    },
    Poisson {
        y: f64,
        exposure: f64,
    },
}

impl Curve {
    fn at(self, alpha: f64) -> Option<[f64; 4]> {
        match self {
            Self::Logistic { y, n } => {
                let (p, q) = ((alpha + y) / n, (n - y - alpha) / n);
                let inside = p > 0.0 && q > 0.0;
                let choose: f64 = (1..=y as u32)
                    .map(|i| ((n - y + f64::from(i)) / f64::from(i)).ln())
                    .sum();
                let phi = n * (p * p.ln() + q * q.ln()) + choose;
                inside.then(|| [n * p * q, q - p, phi, p.ln() - q.ln()])
            }
            Self::Poisson { y, exposure } => {
                let lambda = alpha + y;
                let log = (lambda / exposure).ln();
                let factorial: f64 = (1..=y as u32).map(|i| f64::from(i).ln()).sum();
                let phi = lambda * (log - 1.0) + y * exposure.ln() - factorial;
                (lambda > 0.0).then_some([lambda, 1.0, phi, log])
            }
        }
    }

    /// Returns a point that is well inside the domain of the function.
    fn guess(self) -> f64 {
        match self {
            Self::Logistic { y, n } => n * (y + 0.5) / (n + 1.0) - y,
            Self::Poisson { .. } => 0.5,
        }
    }
}

struct Dual {
    curves: Vec<Curve>,
    covariance: Vec<f64>,
    centre: Vec<f64>,
}

impl Dual {
    fn of(model: &LatentModel) -> Result<Self, Failure> {
        let data = &model.observations;
        let curves = data.response.iter().enumerate().map(|(i, &y)| {
            Ok(match model.likelihood.name() {
                "poisson" => Curve::Poisson {
                    y,
                    exposure: data.size_of(i),
                },
                "bernoulli" | "binomial" => Curve::Logistic {
                    y,
                    n: data.size_of(i),
                },
                other => {
                    return Err(Failure::Method(format!(
                        "no plain dual of the likelihood `{other}`"
                    )));
                }
            })
        });
        let curves: Vec<Curve> = curves.collect::<Result<_, Failure>>()?;
        let n = curves.len();
        let whole = dense_prior(model)?;
        let w = rows(&model.design, n, whole.cols);
        // This is the matrix WΣ in row-major order, from which WΣWᵀ is computed.
        let mut covariance = vec![0.0; n * n];
        let mut centre: Vec<f64> = data.offset.clone().unwrap_or_else(|| vec![0.0; n]);
        for (i, row) in w.iter().enumerate() {
            let product: Vec<f64> = (0..whole.cols)
                .map(|j| row.iter().map(|&(l, x)| x * whole.get(l, j)).sum())
                .collect();
            for (j, other) in w.iter().enumerate() {
                covariance[i * n + j] = other.iter().map(|&(l, x)| x * product[l]).sum();
            }
            centre[i] += row
                .iter()
                .map(|&(l, x)| x * model.prior.mean[l])
                .sum::<f64>();
        }
        Ok(Self {
            curves,
            covariance,
            centre,
        })
    }

    fn evaluate(&self, alpha: &[f64]) -> Option<(f64, Vec<f64>)> {
        let n = alpha.len();
        let at: Vec<[f64; 4]> = (self.curves.iter().zip(alpha))
            .map(|(curve, &alpha)| curve.at(alpha))
            .collect::<Option<_>>()?;
        let row = |i: usize| &self.covariance[i * n..(i + 1) * n];
        let product: Vec<f64> = (0..n)
            .map(|i| row(i).iter().zip(alpha).map(|(c, a)| c * a).sum())
            .collect();
        let roots: Vec<f64> = at.iter().map(|at| at[0].sqrt()).collect();
        let mut b = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                b[i * n + j] =
                    roots[i] * self.covariance[i * n + j] * roots[j] + f64::from(u8::from(i == j));
            }
        }
        let factor = dense::cholesky(&b, n)?;
        // This is the matrix L⁻¹ Λ^½ Σ̃. The squared norms of its columns are the differences between the diagonals of
        // Σ̃ and S.
        let mut half: Vec<f64> = (0..n * n)
            .map(|k| roots[k / n] * self.covariance[k])
            .collect();
        dense::solve_lower_lanes(&factor, n, &mut half, n);
        let mut variances: Vec<f64> = (0..n).map(|i| self.covariance[i * n + i]).collect();
        for row in half.chunks_exact(n) {
            variances.iter_mut().zip(row).for_each(|(v, h)| *v -= h * h);
        }
        let mut value = -0.5 * dense::log_determinant(&factor, n);
        let mut gradient = vec![0.0; n];
        for i in 0..n {
            let [_, slope, phi, phi1] = at[i];
            value += alpha[i] * (0.5 * product[i] - self.centre[i]) + phi;
            gradient[i] = product[i] - self.centre[i] - 0.5 * slope * variances[i] + phi1;
        }
        value.is_finite().then_some((value, gradient))
    }
}

fn dense_prior(model: &LatentModel) -> Result<Dense, Failure> {
    Ok(match &model.prior.covariance {
        Covariance::Dense(sigma) => sigma.clone(),
        Covariance::Diagonal(variances) => {
            let n = variances.len();
            Dense::from_fn(n, n, |i, j| if i == j { variances[i] } else { 0.0 })
        }
        Covariance::Chain(_) => {
            return Err(Failure::Method("a chain has no matrix".to_owned()));
        }
        Covariance::Precision(q) => {
            let n = q.matrix.cols;
            let mut whole = vec![0.0; n * n];
            for j in 0..n {
                let (rows, values) = q.matrix.col(j);
                rows.iter()
                    .zip(values)
                    .for_each(|(&i, &x)| whole[i * n + j] = x);
            }
            let factor = dense::cholesky(&whole, n)
                .ok_or_else(|| Failure::Method("the prior is improper".to_owned()))?;
            let inverse = dense::inverse(&factor, n);
            Dense::from_fn(n, n, |i, j| inverse[i * n + j])
        }
    })
}

fn rows(design: &Design, n: usize, latents: usize) -> Vec<Vec<(usize, f64)>> {
    match design {
        Design::Identity => (0..n).map(|i| vec![(i, 1.0)]).collect(),
        Design::Select(index) => index.iter().map(|&l| vec![(l, 1.0)]).collect(),
        Design::Dense(w) | Design::Projected(w, _) => (0..n)
            .map(|i| (0..latents).map(|l| (l, w.get(i, l))).collect())
            .collect(),
        Design::Copies(w) => (0..n).map(|i| w.row(i)).collect(),
        Design::Sparse(w) => {
            let mut rows = vec![Vec::new(); n];
            for l in 0..latents {
                let (index, values) = w.col(l);
                index
                    .iter()
                    .zip(values)
                    .for_each(|(&i, &x)| rows[i].push((l, x)));
            }
            rows
        }
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Plain {
    curve: Vec<(f64, f64)>,
    evaluations: u64,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn direction(pairs: &VecDeque<(Vec<f64>, Vec<f64>)>, gradient: &[f64]) -> Vec<f64> {
    let mut q = gradient.to_vec();
    let mut shares = Vec::new();
    for (s, y) in pairs.iter().rev() {
        let share = dot(s, &q) / dot(s, y);
        q.iter_mut().zip(y).for_each(|(q, y)| *q -= share * y);
        shares.push(share);
    }
    if let Some((s, y)) = pairs.back() {
        let scale = dot(s, y) / dot(y, y);
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for ((s, y), share) in pairs.iter().zip(shares.into_iter().rev()) {
        let back = dot(y, &q) / dot(s, y);
        q.iter_mut()
            .zip(s)
            .for_each(|(q, s)| *q += (share - back) * s);
    }
    q.iter_mut().for_each(|q| *q = -*q);
    q
}

/// Minimises the dual by L-BFGS. The run ends within [`DONE`] of `best`, or after `limit` seconds.
fn descend(
    context: &Context<'_>,
    model: &LatentModel,
    best: f64,
    limit: f64,
) -> Result<Plain, Failure> {
    let begun = crate::now();
    let dual = Dual::of(model)?;
    let mut alpha: Vec<f64> = dual.curves.iter().map(|curve| curve.guess()).collect();
    let outside = || Failure::Method("the plain dual has no start".to_owned());
    let (mut value, mut gradient) = dual.evaluate(&alpha).ok_or_else(outside)?;
    let mut pairs = VecDeque::new();
    let (mut curve, mut evaluations) = (Vec::new(), 1);
    for _ in 0..MOST {
        context.check_stopped()?;
        let along = direction(&pairs, &gradient);
        let slope = dot(&along, &gradient);
        let mut t = if pairs.is_empty() {
            (1.0 / dot(&gradient, &gradient).sqrt()).min(1.0)
        } else {
            1.0
        };
        let mut reached = None;
        while t > 1e-14 && reached.is_none() {
            let trial: Vec<f64> = alpha.iter().zip(&along).map(|(a, d)| a + t * d).collect();
            evaluations += 1;
            reached = dual
                .evaluate(&trial)
                .filter(|(found, _)| *found <= value + 1e-4 * t * slope)
                .map(|(found, slopes)| (trial, found, slopes));
            t *= 0.5;
        }
        let Some((next, found, slopes)) = reached else {
            break;
        };
        let s: Vec<f64> = next.iter().zip(&alpha).map(|(x, y)| x - y).collect();
        let y: Vec<f64> = slopes.iter().zip(&gradient).map(|(x, y)| x - y).collect();
        if dot(&s, &y) > 0.0 {
            pairs.push_back((s, y));
            if pairs.len() > MEMORY {
                pairs.pop_front();
            }
        }
        (alpha, value, gradient) = (next, found, slopes);
        curve.push((begun.elapsed().as_secs_f64(), value));
        if value <= best + DONE || begun.elapsed().as_secs_f64() > limit {
            break;
        }
    }
    Ok(Plain { curve, evaluations })
}

/// Runs a fit once without timing it, because the first run wakes threads and allocates pages. The function then runs
/// it [`REPEATS`] times and returns the times in seconds. If the first run is [`LONG`], its time is the only one.
fn repeated<T>(
    mut run: impl FnMut() -> Result<(T, f64), Failure>,
) -> Result<(T, Vec<f64>), Failure> {
    let (found, first) = run()?;
    if first > LONG {
        return Ok((found, vec![first]));
    }
    let times: Result<Vec<f64>, Failure> = (0..REPEATS).map(|_| Ok(run()?.1)).collect();
    Ok((found, times?))
}

/// Returns the ratio of two mean times. Its standard error follows from the relative errors of both means.
fn ratio(of: &[f64], to: &[f64]) -> Ours {
    let moments = |times: &[f64]| {
        let moments = Moments::of(times);
        let n = times.len() as f64;
        (
            moments.mean(),
            (times.len() > 1).then(|| moments.variance() / n),
        )
    };
    let ((a, va), (b, vb)) = (moments(of), moments(to));
    let value = Ours::value(a / b).seeds(of.len().min(to.len()) as u64);
    match va.zip(vb) {
        Some((va, vb)) => value.se(a / b * (va / (a * a) + vb / (b * b)).sqrt()),
        None => value,
    }
}

/// Splits the speed-up of the dual solver into the effects of the formulation, the method and the algebra.
pub(super) fn formulation(context: &mut Context<'_>) -> Result<(), Failure> {
    let limit = context.pick(20.0, 60.0);
    let mut cases = super::fields::cases(context)?;
    cases.extend(super::classification::cases(context)?);
    cases.sort_by_key(|case| case.table.rows());
    for case in &cases {
        split(context, case, limit)?;
    }
    Ok(())
}

/// Writes the times of four fits. They are Jensen's dual solver with the algebra of the model, the same solver with a
/// dense covariance, the dual with plain L-BFGS, and the primal, which is also L-BFGS with dense algebra. `limit` is
/// the maximum duration of a run by L-BFGS in seconds.
fn split(context: &mut Context<'_>, case: &Case, limit: f64) -> Result<(), Failure> {
    let model = TableModel::new(&case.request, &case.table, &case.files)?;
    let own = fixed(&model, case.proper)?;
    let mut whole = own.clone();
    whole.prior.covariance = Covariance::Dense(dense_prior(&own)?);
    let key = case.name.replace(' ', "-");
    let name = |what: &str| format!("{}, {what}", case.name);
    let timed = |context: &mut Context<'_>, words: &str, model: &LatentModel| {
        let short = words.replace(' ', "-");
        let ((bound, iterations), times): ((f64, u64), Vec<f64>) =
            context.keep(&format!("{key}/{short}"), |context| {
                context.say(format!("{}: the dual {words}", case.name));
                repeated(|| {
                    let (_, fit, seconds) = solved(context, model, Solver::Dual, 600.0)?;
                    Ok(((fit.bound, fit.iterations), seconds))
                })
            })?;
        let what = What::new(name(&format!("dual {words}: seconds")), "s");
        context.row(what, |_| {
            let note = format!("{iterations} iterations; repeated runs");
            Ok(Ours::mean_of(&times).note(note))
        })?;
        Ok::<_, Failure>((bound, times))
    };
    let (_, own_times) = timed(context, "with the algebra of the model", &own)?;
    let (bound, dense_times) = timed(context, "with a dense covariance", &whole)?;
    let (plain, plain_times) = context.keep(&format!("{key}/plain"), |context| {
        context.say(format!("{}: the dual by plain L-BFGS", case.name));
        repeated(|| {
            let plain = descend(context, &whole, bound, limit)?;
            let seconds = plain.curve.last().map_or(0.0, |point| point.0);
            Ok((plain, seconds))
        })
    })?;
    let end = plain.curve.last().map_or(f64::INFINITY, |point| point.1);
    // The dual objective D decreases towards the bound, so its distance from the bound is positive.
    let missing = end - bound;
    let unreached =
        (missing > DONE).then(|| format!("not reached in {limit} s: {missing:.1e} nats"));
    let measured = |ours: Ours| match &unreached {
        None => ours,
        Some(why) => Ours::none(why),
    };
    let what = name("dual by plain L-BFGS: iterations to within 1e-4 nats");
    context.row(What::new(what, ""), |_| {
        let note = format!("{} evaluations, dense algebra", plain.evaluations);
        Ok(measured(Ours::value(plain.curve.len() as f64).note(note)))
    })?;
    let what = name("dual by plain L-BFGS: seconds to within 1e-4 nats");
    context.row(What::new(what, "s"), |_| {
        Ok(measured(
            Ours::mean_of(&plain_times).note("dense algebra; repeated runs"),
        ))
    })?;
    let what = name("times of the dual, dense covariance over the algebra of the model");
    context.row(What::new(what, ""), |_| Ok(ratio(&dense_times, &own_times)))?;
    let what =
        name("times of the dual, plain L-BFGS over Jensen's solver, both with a dense covariance");
    context.row(What::new(what, ""), |_| {
        Ok(measured(ratio(&plain_times, &dense_times)))
    })?;
    let (reached, primal_times) = context.keep(&format!("{key}/primal-repeated"), |context| {
        context.say(format!("{}: the primal", case.name));
        repeated(|| {
            let (curve, fit, seconds) = solved(context, &own, Solver::Primal, limit)?;
            let end = (seconds, fit.bound);
            let first = (curve.iter().copied().chain([end])).find(|at| at.1 >= bound - DONE);
            let reached = first.is_some();
            Ok((reached, first.map_or(seconds, |at| at.0)))
        })
    })?;
    let by_primal = |ours: Ours| match reached {
        true => ours,
        false => Ours::none(format!("not reached in {limit} s")),
    };
    let what = name("primal by L-BFGS: seconds to within 1e-4 nats");
    context.row(What::new(what, "s"), |_| {
        let note = "dense algebra; repeated runs";
        Ok(by_primal(Ours::mean_of(&primal_times).note(note)))
    })?;
    let what = name("times by plain L-BFGS, primal over dual");
    context.row(What::new(what, ""), |_| {
        Ok(by_primal(measured(ratio(&primal_times, &plain_times))))
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_repeated_unless_they_are_long() {
        let runs = |seconds: f64| {
            let mut count = 0;
            let (found, times) = repeated(|| {
                count += 1;
                Ok((count, seconds * f64::from(count)))
            })
            .unwrap();
            (found, times, count)
        };
        // The first run is not timed.
        assert_eq!(runs(1.0), (1, vec![2.0, 3.0, 4.0, 5.0, 6.0], 6));
        assert_eq!(runs(31.0), (1, vec![31.0], 1));
    }

    #[test]
    fn a_ratio_of_times_has_the_errors_of_both() {
        let row = |of: &[f64], to: &[f64]| {
            What::new("a", "").measured(ratio(of, to), crate::results::Scale::Quick)
        };
        // The means 6 and 2 have the standard errors 1 and 0.5, which are a sixth and a quarter of them.
        let both = row(&[5.0, 7.0], &[1.5, 2.5]);
        assert_eq!(both.ours, Some(3.0));
        let expected = 3.0 * (1.0f64 / 36.0 + 1.0 / 16.0).sqrt();
        assert!((both.se.unwrap() - expected).abs() < 1e-12, "{:?}", both.se);
        assert_eq!(row(&[5.0], &[1.5, 2.5]).se, None);
    }

    #[test]
    fn the_plain_dual_has_the_slopes_that_it_says() {
        let curves = vec![
            Curve::Logistic { y: 1.0, n: 1.0 },
            Curve::Logistic { y: 2.0, n: 5.0 },
            Curve::Poisson {
                y: 3.0,
                exposure: 0.7,
            },
        ];
        let dual = Dual {
            curves: curves.clone(),
            covariance: vec![1.5, 0.4, 0.1, 0.4, 1.2, -0.3, 0.1, -0.3, 0.9],
            centre: vec![0.1, -0.2, 0.3],
        };
        let alpha: Vec<f64> = curves.iter().map(|curve| curve.guess()).collect();
        let (_, gradient) = dual.evaluate(&alpha).unwrap();
        for i in 0..3 {
            let at = |by: f64| {
                let mut moved = alpha.clone();
                moved[i] += by;
                dual.evaluate(&moved).unwrap().0
            };
            let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!(
                (slope - gradient[i]).abs() < 1e-7,
                "{i}: {slope} {}",
                gradient[i]
            );
        }
        assert!(dual.evaluate(&[5.0, 0.0, 0.0]).is_none());
    }
}
