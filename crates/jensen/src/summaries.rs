//! Summaries of weighted draws from an approximation, or of refined draws.
//!
//! A fit writes draws from the approximation with equal weights. The summaries use several times as many draws with
//! Pareto-smoothed importance weights (Vehtari et al. 2024). The weights bring the estimated moments closer to the
//! moments of the posterior and provide a standard error for each moment. The summaries also contain the unweighted
//! estimates. The summary of a quantity from refined draws includes the R̂ and the effective sample size of the
//! quantity.
//!
//! A summary omits a mean or a standard deviation if this moment does not exist or if the draws do not determine it;
//! see [`with_tails`].

use std::sync::Mutex;

use jensen_blackbox::{
    Ensemble, Policy, khat_threshold, psis, tail_index, tail_index_error, without_ties,
};
use jensen_data::{DrawsTable, ParameterSummary, PlainSummary};
use jensen_math::sum::weighted_moments;
use rayon::prelude::*;

use crate::haste::Haste;
use crate::sample::HURRIED_NUMBERS;

/// The number of columns that are summarised between two checks of the time limit.
const COLUMNS: usize = 512;

/// The maximum fraction of the total weight that a single draw may have. A draw with a larger weight may determine the
/// 5 % quantile by itself. In a test with beta(3, 9), whose tail is longer than the tail of the family, one of 4096
/// draws moved the 5 % quantile from 0.08 to 0.03. This draw also moved the mean by a fifth of a standard deviation.
/// The unweighted draws were correct.
const HEAVIEST: f64 = 0.01;

/// The minimum ratio of the effective number of draws to the number of draws. If the ratio of a quantity is lower, its
/// weighted summary is not used. If the ratio is lower, a few draws in a tail determine the standard deviation, and the
/// estimated effective number of draws is too large. A test with a normal(0, 2) prior on a logit, twenty failures and
/// 4096 draws was run with 400 seeds. The largest error of a standard deviation is 9 % if the minimum ratio is a
/// quarter, 20 % if it is a tenth, and 90 % without a minimum. The standard deviation of the unweighted draws is 8 %
/// too small.
const EFFECTIVE: f64 = 0.25;

/// The smallest tail index for which the variance is infinite. A generalised Pareto distribution with shape k has no
/// finite moments of order 1/k or higher.
const NO_VARIANCE: f64 = 0.5;

/// Summarises equally weighted draws of the variables for which `wanted` returns true, in the order of the columns.
pub(crate) fn plain(
    table: &DrawsTable,
    haste: &Haste<'_>,
    policy: &Policy,
    wanted: impl Fn(usize) -> bool,
) -> Vec<ParameterSummary> {
    each(table, (haste, policy), wanted, |(_, name), draws| {
        of_equal(name, draws, policy)
    })
}

fn of_equal(name: String, draws: &[f64], policy: &Policy) -> ParameterSummary {
    let tail = tail_index(draws, 1.0);
    with_tails(
        ParameterSummary::from_draws(name, draws),
        [tail; 2],
        draws.len() as f64,
        error_of_sd(draws, |_| 1.0 / draws.len() as f64),
        policy,
    )
}

/// Computes the relative standard error of the standard deviation for independent draws with normalised weights. To
/// first order, this error is half the relative standard error of the variance.
fn error_of_sd(draws: &[f64], weight: impl Fn(usize) -> f64) -> f64 {
    let total = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        let terms = draws.iter().enumerate();
        terms.map(|(i, x)| f(*x, weight(i))).sum()
    };
    let mean = total(&|x, w| w * x);
    let variance = total(&|x, w| w * (x - mean).powi(2));
    let error = total(&|x, w| (w * ((x - mean).powi(2) - variance)).powi(2)).sqrt();
    0.5 * error / variance
}

/// Removes each moment that the draws do not determine. The decision uses the tail indices and the effective number of
/// draws. The first tail index describes the values, whose average is the mean. The second tail index describes the
/// squared deviations, whose average is the variance.
///
/// The limit for the mean is [`khat_threshold`]. If the index is above this limit, a sample of this size does not
/// determine the mean (Vehtari et al. 2024, section 3.2.4). The limit is at least one half. If the index is below one
/// half, the central limit theorem gives the standard error of the mean. If the index is one half or larger, neither
/// the variance nor the standard error of the mean exists. As in that paper, the decision uses the estimated index.
///
/// If the tail consists of a hundred draws, the estimated index has a standard error of 0.12 to 0.15. A decision by the
/// index alone would remove the standard deviation of one in twenty quantities whose true index is a quarter. Jensen
/// therefore removes the standard deviation only if its relative standard error also exceeds the limit of the policy.
fn with_tails(
    summary: ParameterSummary,
    [of_mean, of_sd]: [Option<f64>; 2],
    effective: f64,
    error_of_sd: f64,
    policy: &Policy,
) -> ParameterSummary {
    let limit = khat_threshold(effective as usize).max(NO_VARIANCE);
    let error = |tail: f64| tail_index_error(tail, effective);
    let reaches = |tail: Option<f64>, limit: f64| tail.filter(|tail| *tail >= limit);
    let tail_khat = of_mean;
    if let Some(tail) = reaches(of_mean, limit) {
        return ParameterSummary {
            mean: f64::NAN,
            sd: f64::NAN,
            mcse: None,
            plain: None,
            tail_khat,
            undefined: Some(format!(
                "no reported mean and no reported standard deviation, because its draws look heavy-tailed: with an \
                 estimated tail index of {tail:.2} ± {:.2}, which is above {limit:.2}, they do not determine a mean",
                error(tail)
            )),
            ..summary
        };
    }
    let infinite = reaches(of_sd, NO_VARIANCE).filter(|_| error_of_sd > policy.sd_error);
    let undefined = infinite.map(|tail| {
        format!(
            "no reported standard deviation, because its draws look heavy-tailed: with an estimated tail index of \
             {tail:.2} ± {:.2}, which is above {NO_VARIANCE}, the variance may be infinite",
            error(tail)
        )
    });
    let (sd, mcse) = match undefined {
        Some(_) => (f64::NAN, None),
        None => (summary.sd, summary.mcse),
    };
    let plain = summary.plain.filter(|_| undefined.is_none());
    ParameterSummary {
        sd,
        mcse,
        plain,
        tail_khat,
        undefined,
        ..summary
    }
}

/// Removes the standard deviation if its relative standard error exceeds the limit of the policy, because a few draws
/// then determine its value.
fn unless_vague(summary: ParameterSummary, error: f64, policy: &Policy) -> ParameterSummary {
    if summary.undefined.is_some() || error.is_nan() || error <= policy.sd_error {
        return summary;
    }
    ParameterSummary {
        sd: f64::NAN,
        undefined: Some(format!(
            "no reported standard deviation, because a few extreme draws determine it: the estimate is {:.3} ± {:.0} % \
             (limit {:.0} %)",
            summary.sd,
            100.0 * error,
            100.0 * policy.sd_error
        )),
        ..summary
    }
}

/// Summarises draws with smoothed importance weights, in the order of the columns. The function summarises only the
/// variables for which `wanted` returns true. If a few draws have too large a fraction of the total weight, all
/// summaries use the unweighted draws. If a quantity has too few effective draws, only the summary of this quantity
/// uses the unweighted draws. In both cases, neither kind of summary is usable if the weights change the mean or the
/// standard deviation by more than the policy allows. The function also returns the first quantity without a usable
/// summary.
pub(crate) fn weighted(
    table: &DrawsTable,
    policy: &Policy,
    haste: &Haste<'_>,
    wanted: impl Fn(usize) -> bool,
) -> (Vec<ParameterSummary>, Option<String>) {
    let log_weights = psis(&table.log_weights(), 1.0).log_weights;
    let weights: Vec<f64> = log_weights.iter().map(|w| w.exp()).collect();
    let heavy = weights.iter().any(|weight| *weight > HEAVIEST);
    let moved = Mutex::new(None::<(usize, String)>);
    let summaries = each(table, (haste, policy), wanted, |(column, name), draws| {
        let weighed = weigh(
            ParameterSummary::from_draws(name.clone(), draws),
            draws,
            &weights,
        );
        let effective = weighed.ess.unwrap_or(0.0);
        if heavy || effective < EFFECTIVE * draws.len() as f64 {
            if is_moved(&weighed, policy) {
                let mut first = moved.lock().expect("no thread panics while it holds it");
                if first.as_ref().is_none_or(|(other, _)| column < *other) {
                    *first = Some((column, name.clone()));
                }
            }
            return of_equal(name, draws, policy);
        }
        // The averages of these terms are the mean and the variance. Both have the same scale.
        let values = without_ties(draws);
        let of = |power: f64| {
            let terms = values.as_ref()?.iter().zip(&weights);
            let terms: Vec<f64> = terms
                .map(|(x, w)| w.powf(power) * (x - weighed.mean))
                .collect();
            tail_index(&terms, 1.0)
        };
        let tails = [of(1.0), of(0.5)];
        let error = error_of_sd(draws, |i| weights[i]);
        with_tails(weighed, tails, effective, error, policy)
    });
    let moved = moved.into_inner().expect("no thread has panicked");
    (summaries, moved.map(|(_, name)| name))
}

fn is_moved(weighed: &ParameterSummary, policy: &Policy) -> bool {
    weighed.plain.is_some_and(|plain| {
        (weighed.mean - plain.mean).abs() > policy.mean_error * weighed.sd
            || (weighed.sd / plain.sd).ln().abs() > policy.sd_error
    })
}

pub(crate) fn refined(
    table: &DrawsTable,
    ensemble: Ensemble,
    policy: &Policy,
    haste: &Haste<'_>,
) -> Vec<ParameterSummary> {
    each(
        table,
        (haste, policy),
        |_| true,
        |(_, name), draws| {
            let (own, mixing) = (ensemble.judge(draws), ensemble.judge_with_spread(draws));
            let efficiency = own.ess.min(draws.len() as f64) / draws.len() as f64;
            let summary = ParameterSummary {
                mcse: Some(own.mcse()),
                ess: Some(mixing.ess),
                rhat: Some(mixing.rhat),
                ..ParameterSummary::from_draws(name, draws)
            };
            let effective = efficiency * draws.len() as f64;
            let error = ensemble.error_of_spread(draws);
            let tails = [tail_index(draws, efficiency); 2];
            let summary = with_tails(summary, tails, effective, error, policy);
            unless_vague(summary, error, policy)
        },
    )
}

/// Calls `summary` for every column of the variables for which `wanted` returns true. The arguments are the index, the
/// name and the draws of the column. After the time limit has passed, the summaries of the remaining columns use only
/// as many draws as an interrupted run reports.
fn each(
    table: &DrawsTable,
    (haste, policy): (&Haste<'_>, &Policy),
    wanted: impl Fn(usize) -> bool,
    summary: impl Fn((usize, String), &[f64]) -> ParameterSummary + Sync,
) -> Vec<ParameterSummary> {
    let mut names = Vec::new();
    let mut column = 0;
    for (at, variable) in table.variables().iter().enumerate() {
        if wanted(at) {
            names.extend((column..).zip(variable.display_names()));
        }
        column += variable.len();
    }
    let kept = (HURRIED_NUMBERS / table.width().max(1)).clamp(1, table.len().max(1));
    let mut made = Vec::with_capacity(names.len());
    for names in names.chunks(COLUMNS) {
        let late = haste.is_late();
        let of = |(column, name): &(usize, String)| match late {
            false => summary((*column, name.clone()), &table.column(*column)),
            true => {
                let draws = 0..kept.min(table.len());
                let few: Vec<f64> = draws.map(|draw| table.row(draw)[*column]).collect();
                of_equal(name.clone(), &few, policy)
            }
        };
        made.par_extend(names.par_iter().map(of));
    }
    made
}

/// Summarises a quantity from draws with normalised weights. The result includes the summary of the unweighted draws.
fn weigh(plain: ParameterSummary, draws: &[f64], weights: &[f64]) -> ParameterSummary {
    if plain.mean.is_nan() {
        return plain;
    }
    let total = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        let terms = draws.iter().zip(weights);
        terms.map(|(x, w)| f(*x, *w)).sum()
    };
    let (mean, variance) = weighted_moments(draws, weights);
    let concentration = total(&|_, w| w * w);
    // This is the first-order expansion of a ratio of sums.
    let mcse = total(&|x, w| (w * (x - mean)).powi(2)).sqrt();
    let mut sorted: Vec<(f64, f64)> = draws.iter().copied().zip(weights.iter().copied()).collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let at = |p: f64| quantile(&sorted, p);
    ParameterSummary {
        mean,
        sd: (variance / (1.0 - concentration)).sqrt(),
        q05: at(0.05),
        q50: at(0.5),
        q95: at(0.95),
        mcse: Some(mcse),
        ess: Some(if mcse > 0.0 {
            variance / (mcse * mcse)
        } else {
            draws.len() as f64
        }),
        plain: Some(PlainSummary {
            mean: plain.mean,
            sd: plain.sd,
        }),
        ..plain
    }
}

/// Computes a quantile of sorted, weighted draws. The cumulative weight at a draw is the total weight of all smaller
/// draws plus half of the weight of the draw itself. The function interpolates linearly between neighbouring draws.
fn quantile(sorted: &[(f64, f64)], p: f64) -> f64 {
    let mut before = (0.0, sorted[0].0);
    let mut below = 0.0;
    for &(x, weight) in sorted {
        let here = (below + 0.5 * weight, x);
        if here.0 >= p {
            let share = (p - before.0) / (here.0 - before.0);
            return match share.is_finite() && before.1 != here.1 {
                true => before.1 + share.clamp(0.0, 1.0) * (here.1 - before.1),
                false => here.1,
            };
        }
        below += weight;
        before = here;
    }
    before.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use jensen_blackbox::NoiseSource;
    use jensen_data::DrawsVariable;
    use jensen_math::simd::Simd;

    /// Creates draws from normal(0, 1) with importance weights for normal(0.3, 0.8).
    fn table(seed: u64) -> DrawsTable {
        let count = 4096;
        let mut z = vec![0.0; count];
        let source = NoiseSource::new(seed, Simd::detect());
        source.fill(jensen_blackbox::NoisePurpose::Draws, 0, 0, 1, count, &mut z);
        let log_q = z.iter().map(|z| -0.5 * z * z).collect();
        let log_p = z
            .iter()
            .map(|z| -0.5 * ((z - 0.3) / 0.8_f64).powi(2))
            .collect();
        let columns = vec![DrawsVariable::new("x", Vec::new())];
        DrawsTable::new(columns, z, log_p, log_q).unwrap()
    }

    #[test]
    fn weights_move_the_summary_to_the_posterior_within_its_standard_error() {
        let mut squares = 0.0;
        for seed in 0..20 {
            let x = &weighted(&table(seed), &Policy::default(), &Haste::none(), |_| true).0[0];
            let mcse = x.mcse.unwrap();
            squares += ((x.mean - 0.3) / mcse).powi(2);
            assert!(mcse < 0.03 && x.ess.unwrap() > 700.0, "{x:?}");
            assert!((x.sd - 0.8).abs() < 0.06);
            assert!((x.q05 - (0.3 - 0.8 * 1.645)).abs() < 0.12);
            assert!((x.q50 - 0.3).abs() < 0.08);
            let plain = x.plain.unwrap();
            assert!(plain.mean.abs() < 0.07 && (plain.sd - 1.0).abs() < 0.05);
        }
        let spread = (squares / 20.0_f64).sqrt();
        assert!((0.6..1.5).contains(&spread), "{spread}");
    }

    /// Ties among counts do not look like a heavy tail, even if the draws have weights.
    #[test]
    fn weighted_counts_have_moments() {
        let table = table(1);
        let rare = |z: &f64| [0.9, 2.0, 2.6, 2.9, 3.1].iter().filter(|x| z > *x).count() as f64;
        let counts = table.column(0).iter().map(rare).collect();
        let (log_p, log_q) = (table.log_p().to_vec(), table.log_g().to_vec());
        let columns = vec![DrawsVariable::new("k", Vec::new())];
        let table = DrawsTable::new(columns, counts, log_p, log_q).unwrap();
        let k = &weighted(&table, &Policy::default(), &Haste::none(), |_| true).0[0];
        assert!(k.mean > 0.1 && k.sd > 0.3 && k.undefined.is_none(), "{k:?}");
    }

    #[test]
    fn a_spread_that_few_draws_decide_is_not_told() {
        let ensemble = Ensemble {
            populations: 8,
            chains: 32,
        };
        // On average, one draw in a hundred is multiplied by thirty. This sample contains forty such draws, and its
        // standard deviation is 3.16.
        let count = 4096;
        let mut x = vec![0.0; count];
        let source = NoiseSource::new(1, Simd::detect());
        source.fill(jensen_blackbox::NoisePurpose::Draws, 0, 0, 1, count, &mut x);
        let summary = |x: &[f64]| {
            let columns = vec![DrawsVariable::new("x", Vec::new())];
            let zeros = vec![0.0; count];
            let table = DrawsTable::new(columns, x.to_vec(), zeros.clone(), zeros).unwrap();
            refined(&table, ensemble, &Policy::default(), &Haste::none()).remove(0)
        };
        assert!((summary(&x).sd - 1.0).abs() < 0.05);
        let far = x.iter_mut().enumerate().filter(|(k, _)| k * 7 % 100 == 3);
        far.for_each(|(_, x)| *x *= 30.0);
        let vague = summary(&x);
        assert!(vague.sd.is_nan() && vague.undefined.is_some(), "{vague:?}");
    }

    /// The draws for beta(3, 9) on the logit scale come from the normal distribution with the same mode and curvature.
    /// Their k̂ is about 0.5.
    #[test]
    fn no_draw_decides_alone() {
        let (mode, sd) = ((3.0_f64 / 9.0).ln(), (12.0_f64 / 27.0).sqrt());
        for seed in 0..40 {
            let mut z = vec![0.0; 4096];
            let source = NoiseSource::new(seed, Simd::detect());
            source.fill(jensen_blackbox::NoisePurpose::Draws, 0, 0, 1, 4096, &mut z);
            let log_q = z.iter().map(|z| -0.5 * z * z).collect();
            let logits: Vec<f64> = z.iter().map(|z| mode + sd * z).collect();
            let log_p = logits.iter().map(|x| 3.0 * x - 12.0 * x.exp().ln_1p());
            let log_p = log_p.collect();
            let values = logits.iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect();
            let columns = vec![DrawsVariable::new("theta", Vec::new())];
            let x = &weighted(
                &DrawsTable::new(columns, values, log_p, log_q).unwrap(),
                &Policy::default(),
                &Haste::none(),
                |_| true,
            )
            .0[0];
            // The exact 5 % quantile is 0.079.
            assert!(
                (x.mean - 0.25).abs() < 0.02 && x.q05 > 0.06,
                "{seed}: {x:?}"
            );
        }
    }

    /// The data are twenty failures, and the logit has a normal(0, 2) prior. The posterior is approximated by a normal
    /// distribution that is a tenth wider than the best one. With the best normal distribution, k̂ reaches 0.76 in the
    /// left tail, and every other sample has no usable mean.
    #[test]
    fn a_tail_that_few_draws_see_does_not_decide() {
        let (mean, sd) = (-3.5096, 1.0625);
        let (own, spread) = (-3.50, 1.1);
        for seed in 0..40 {
            let mut z = vec![0.0; 4096];
            let source = NoiseSource::new(seed, Simd::detect());
            source.fill(jensen_blackbox::NoisePurpose::Draws, 0, 0, 1, 4096, &mut z);
            let log_q = z.iter().map(|z| -0.5 * z * z).collect();
            let logits: Vec<f64> = z.iter().map(|z| own + spread * z).collect();
            let log_p = logits
                .iter()
                .map(|a| -a * a / 8.0 - 20.0 * a.exp().ln_1p())
                .collect();
            let columns = vec![DrawsVariable::new("a", Vec::new())];
            let a = &weighted(
                &DrawsTable::new(columns, logits, log_p, log_q).unwrap(),
                &Policy::default(),
                &Haste::none(),
                |_| true,
            )
            .0[0];
            assert!((a.mean - mean).abs() < 0.15 * sd, "{seed}: {a:?}");
            // The tolerance is ten per cent plus three standard errors of a standard deviation for an excess kurtosis
            // of 0.5.
            let error = (2.5 / (4.0 * a.ess.unwrap_or(4096.0))).sqrt();
            let off = (a.sd / sd - 1.0).abs();
            assert!(off < 0.1 + 3.0 * error, "{seed}: {a:?}");
        }
    }

    #[test]
    fn equal_weights_change_nothing_but_the_rule_of_quantiles() {
        let draws = [4.0, 1.0, 3.0, 2.0];
        let plain = ParameterSummary::from_draws("x", &draws);
        let found = weigh(plain.clone(), &draws, &[0.25; 4]);
        assert!((found.mean - plain.mean).abs() < 1e-15);
        assert!((found.sd - plain.sd).abs() < 1e-15);
        assert_eq!((found.q05, found.q50, found.q95), (1.0, 2.5, 4.0));
        assert!((found.ess.unwrap() - 4.0).abs() < 1e-12);
    }
}
