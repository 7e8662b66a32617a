//! Compares topic models with a slow, independent implementation in double precision.

use jensen_math::rng::{Purpose, Stream};
use jensen_math::simd::Simd;
use jensen_math::special::{digamma, lgamma};
use jensen_run::{Algorithm, Archive, Budget, Control, Snapshot, Status};

use super::kernel;
use super::kernel::WIDTH;
use super::local::{LocalHeat, Prior, Rows, Solver, Spec, Want};
use super::powers::{Grid, Knots, PowerTable, gamma_ratios, nodes, power_table};
use super::*;
use crate::documents::{Bag, Documents, MemoryDocuments};
use crate::driver::{Driver, DriverSettings, Mode};
use crate::engine::{Engine, Heat, Measure};
use crate::temper::{GlobalTempering, LocalTempering, Temper};

/// Returns a random corpus in which some documents are empty.
pub(super) fn corpus(documents: usize, terms: usize) -> MemoryDocuments {
    let mut corpus = MemoryDocuments::new(terms);
    for d in 0..documents {
        let mut s = Stream::new(4, Purpose::new("test documents"), 0, d as u64);
        let mut bag = Bag::new();
        if d % 11 != 5 {
            let half = terms as u64 / 2;
            let first = half * s.below(2);
            for v in 0..terms as u64 {
                let likely = (first..first + half).contains(&v);
                if s.uniform() < if likely { 0.5 } else { 0.08 } {
                    bag.push(v as u32, 1.0 + s.below(3) as f32);
                }
            }
        }
        corpus.push(&bag).unwrap();
    }
    corpus
}

/// A slow implementation of q for a single document at a given temperature. It computes everything with logarithms and
/// in double precision.
struct Slow {
    gamma: Vec<f64>,
    phi: Vec<Vec<f64>>,
    energy: f64,
    bound: f64,
}

fn slow(log_beta: &[Vec<f64>], bag: &Bag, alpha: f64, tau: f64) -> Slow {
    let k = log_beta.len();
    let tokens = bag.tokens();
    let mut gamma = vec![alpha + tau * tokens / k as f64; k];
    let mut phi = vec![vec![0.0; k]; bag.len()];
    let log_theta = |gamma: &[f64]| -> Vec<f64> {
        let total: f64 = gamma.iter().sum();
        gamma.iter().map(|g| digamma(*g) - digamma(total)).collect()
    };
    let assign = |gamma: &[f64], phi: &mut [Vec<f64>]| {
        let theta = log_theta(gamma);
        for (row, &v) in phi.iter_mut().zip(&bag.terms) {
            let logs: Vec<f64> = (0..k)
                .map(|i| tau * (theta[i] + log_beta[i][v as usize]))
                .collect();
            let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = logs.iter().map(|l| (l - largest).exp()).sum();
            for (p, l) in row.iter_mut().zip(&logs) {
                *p = (l - largest).exp() / total;
            }
        }
    };
    for _ in 0..5000 {
        assign(&gamma, &mut phi);
        for i in 0..k {
            gamma[i] = alpha
                + tau
                    * phi
                        .iter()
                        .zip(&bag.counts)
                        .map(|(p, &n)| f64::from(n) * p[i])
                        .sum::<f64>();
        }
    }
    assign(&gamma, &mut phi);
    let theta = log_theta(&gamma);
    let (mut energy, mut entropy) = (0.0, 0.0);
    for ((row, &v), &n) in phi.iter().zip(&bag.terms).zip(&bag.counts) {
        for i in 0..k {
            if row[i] > 0.0 {
                energy += f64::from(n) * row[i] * (theta[i] + log_beta[i][v as usize]);
                entropy -= f64::from(n) * row[i] * row[i].ln();
            }
        }
    }
    let total: f64 = gamma.iter().sum();
    let mut divergence = lgamma(total) - lgamma(alpha * k as f64);
    for i in 0..k {
        divergence += lgamma(alpha) - lgamma(gamma[i]) + (gamma[i] - alpha) * theta[i];
    }
    Slow {
        bound: tau * energy + entropy - divergence,
        energy,
        gamma,
        phi,
    }
}

pub(super) fn settings(topics: usize) -> LdaSettings {
    let mut settings = LdaSettings::new(topics);
    settings.batch = 8;
    settings.tau = 1.0;
    settings.local = LocalRule {
        tolerance: 1e-6,
        max_iterations: 5000,
    };
    settings
}

fn log_beta(globals: &LdaGlobals) -> Vec<Vec<f64>> {
    let topics = globals.to_topics(Inference::MeanField, 0, 0.0);
    let totals = topics.totals();
    (0..topics.topics)
        .map(|k| {
            (0..topics.terms)
                .map(|v| {
                    digamma(f64::from(topics.lambda[v * topics.topics + k])) - digamma(totals[k])
                })
                .collect()
        })
        .collect()
}

fn error(found: f64, expected: f64) -> f64 {
    (found - expected).abs() / expected.abs().max(1.0)
}

#[test]
fn local_and_global_steps_equal_the_slow_implementation() {
    let documents = corpus(8, 30);
    for (topics, alpha, tau) in [
        (3, 0.3, 1.0),
        (20, 0.4, 0.5),
        (37, 0.05, 1.0),
        (5, 2.0, 0.2),
    ] {
        let mut s = settings(topics);
        s.alpha = Some(alpha);
        for simd in Simd::available() {
            let mut engine = LdaEngine::new(&documents, None, &s, simd);
            let mut globals = engine.start(1);
            let beta = log_beta(&globals);
            let before = globals.to_topics(Inference::MeanField, 0, 0.0);
            let measure = Measure {
                energy: true,
                bound: true,
            };
            let batch: Vec<usize> = (0..8).collect();
            let sums = engine
                .local_steps(&mut globals, &batch, &Heat::Uniform(tau), measure)
                .unwrap();
            let (rho, scale) = (0.3, 2.5);
            engine.global_step(&mut globals, rho, scale);
            let after = globals.to_topics(Inference::MeanField, 0, 0.0);
            let (mut energy, mut bound) = (0.0, 0.0);
            let mut statistics = vec![0.0; 30 * topics];
            let mut bag = Bag::new();
            for d in 0..8 {
                documents.read(d, &mut bag);
                if bag.is_empty() {
                    continue;
                }
                let slow = slow(&beta, &bag, alpha, tau);
                energy += slow.energy;
                bound += slow.bound;
                for ((row, &v), &n) in slow.phi.iter().zip(&bag.terms).zip(&bag.counts) {
                    for k in 0..topics {
                        statistics[v as usize * topics + k] += tau * f64::from(n) * row[k];
                    }
                }
            }
            assert_eq!((sums.points, sums.skipped), (7, 1));
            assert!(
                error(sums.energy, energy) < 2e-4,
                "{topics} {tau}: {} {energy}",
                sums.energy
            );
            assert!(
                error(sums.bound, bound) < 2e-5,
                "{topics} {tau}: {} {bound}",
                sums.bound
            );
            for (i, s) in statistics.iter().enumerate() {
                let expected = (1.0 - rho) * f64::from(before.lambda[i])
                    + rho * (1.0 / topics as f64 + scale * s);
                let found = f64::from(after.lambda[i]);
                assert!(
                    error(found, expected) < 2e-3,
                    "{topics} {tau} {i}: {found} {expected}"
                );
            }
        }
    }
}

/// Computes expected counts n_v φ_vk of collapsed inference, word by word.
fn slow_collapsed(beta: &[Vec<f64>], bag: &Bag, alpha: &[f64]) -> Vec<Vec<f64>> {
    let k = beta.len();
    let mut phi = vec![vec![1.0 / k as f64; k]; bag.len()];
    for _ in 0..5000 {
        for i in 0..bag.len() {
            let weights: Vec<f64> = (0..k)
                .map(|j| {
                    let pairs = phi.iter().zip(&bag.counts);
                    let held: f64 = pairs.map(|(p, &n)| f64::from(n) * p[j]).sum();
                    (alpha[j] + held - phi[i][j]) * beta[j][bag.terms[i] as usize]
                })
                .collect();
            let total: f64 = weights.iter().sum();
            for (p, w) in phi[i].iter_mut().zip(weights) {
                *p = w / total;
            }
        }
    }
    for (p, &n) in phi.iter_mut().zip(&bag.counts) {
        p.iter_mut().for_each(|p| *p *= f64::from(n));
    }
    phi
}

#[test]
fn collapsed_steps_and_learned_priors_equal_the_slow_implementation() {
    let documents = corpus(8, 30);
    let topics = 20;
    let mut s = settings(topics);
    (s.inference, s.start) = (Inference::Cvb0, Start::Documents);
    (s.learn_alpha, s.learn_eta) = (LearnAlpha::Asymmetric, true);
    s.alpha = Some(0.2);
    for simd in Simd::available() {
        let mut engine = LdaEngine::new(&documents, None, &s, simd);
        let mut globals = engine.start(1);
        let alpha: Vec<f64> = (0..topics).map(|k| 0.05 + 0.02 * k as f64).collect();
        globals.alpha.clone_from(&alpha);
        // The first pass does not learn the priors.
        globals.steps = 1;
        let before = globals.to_topics(Inference::Cvb0, 0, 0.0);
        let totals = before.totals();
        let at = |k: usize, v: usize| f64::from(before.lambda[v * topics + k]) / totals[k];
        let beta: Vec<Vec<f64>> = (0..topics)
            .map(|k| (0..30).map(|v| at(k, v)).collect())
            .collect();
        let batch: Vec<usize> = (0..8).collect();
        let heat = Heat::Uniform(1.0);
        let sums = engine.local_steps(&mut globals, &batch, &heat, Measure::default());
        assert_eq!(sums.unwrap().unconverged, 0);
        let (rho, scale) = (0.3, 2.5);
        engine.global_step(&mut globals, rho, scale);
        let mut statistics = vec![0.0; 30 * topics];
        let (mut above, mut below) = (vec![0.0; topics], 0.0);
        let total: f64 = alpha.iter().sum();
        let mut bag = Bag::new();
        for d in 0..8 {
            documents.read(d, &mut bag);
            if bag.is_empty() {
                continue;
            }
            let expected = slow_collapsed(&beta, &bag, &alpha);
            for k in 0..topics {
                let held: f64 = expected.iter().map(|row| row[k]).sum();
                let rows = expected.iter().zip(&bag.counts);
                let absent: f64 = rows
                    .map(|(row, &n)| (1.0 - row[k] / f64::from(n)).powf(f64::from(n)))
                    .product();
                let some = 1.0 - absent;
                above[k] += some * (digamma(alpha[k] + held / some) - digamma(alpha[k]));
            }
            below += digamma(total + bag.tokens()) - digamma(total);
            for (row, &v) in expected.iter().zip(&bag.terms) {
                for k in 0..topics {
                    statistics[v as usize * topics + k] += row[k];
                }
            }
        }
        let eta = before.eta;
        let lambda: Vec<f64> = (before.lambda.iter().zip(&statistics))
            .map(|(&l, s)| (1.0 - rho) * f64::from(l) + rho * (eta + scale * s))
            .collect();
        let (mut up, mut down) = (0.0, 0.0);
        for k in 0..topics {
            let words = lambda.iter().skip(k).step_by(topics);
            let each = words.clone().map(|&l| {
                let some = 1.0 - (eta - l).exp();
                let mean = if some > 0.0 { (l - eta) / some } else { 1.0 };
                some * (digamma(eta + mean) - digamma(eta))
            });
            up += each.sum::<f64>();
            down += digamma(words.sum()) - digamma(30.0 * eta);
        }
        let next_eta = eta * (1.0 - rho + rho * up / (30.0 * down));
        let after = globals.to_topics(Inference::Cvb0, 0, 0.0);
        assert!(
            error(after.eta, next_eta) < 1e-4,
            "{} {next_eta}",
            after.eta
        );
        for k in 0..topics {
            let next = alpha[k] * (1.0 - rho + rho * above[k] / below);
            assert!(error(after.alpha[k], next) < 1e-4, "{k}: {next}");
        }
        for (i, expected) in lambda.iter().enumerate() {
            let found = f64::from(after.lambda[i]) - after.eta + eta;
            assert!(error(found, *expected) < 2e-3, "{i}: {found} {expected}");
        }
        // The bound is the mean-field bound, whatever the origin of the topics.
        let measure = Measure {
            energy: false,
            bound: true,
        };
        let bound = |s: &LdaSettings| {
            let mut engine = LdaEngine::new(&documents, None, s, simd);
            let mut globals = globals.clone();
            let sums = engine.local_steps(&mut globals, &batch, &heat, measure);
            sums.unwrap().bound
        };
        let plain = LdaSettings {
            inference: Inference::MeanField,
            ..s.clone()
        };
        assert_eq!(bound(&s), bound(&plain));
    }
}

/// Draws documents from 20 topics with separate words. Each document has three topics.
fn planted(documents: usize) -> MemoryDocuments {
    let mut corpus = MemoryDocuments::new(200);
    for d in 0..documents {
        let mut s = Stream::new(6, Purpose::new("planted topics"), 0, d as u64);
        let mine = [s.below(20), s.below(20), s.below(20)];
        let mut counts = vec![0.0f32; 200];
        for i in 0..60 {
            let topic = mine[i % 3];
            let word = if s.uniform() < 0.9 {
                10 * topic + s.below(10)
            } else {
                s.below(200)
            };
            counts[word as usize] += 1.0;
        }
        let mut bag = Bag::new();
        let pairs = counts.into_iter().enumerate().filter(|pair| pair.1 > 0.0);
        pairs.for_each(|(v, n)| bag.push(v as u32, n));
        corpus.push(&bag).unwrap();
    }
    corpus
}

#[test]
fn collapsed_inference_from_documents_finds_planted_topics_that_others_merge() {
    let (documents, heldout) = (planted(1000), planted(100));
    let clock = || 0.0;
    let run = |s: LdaSettings| {
        let mut silent = jensen_run::Silent;
        let job = LdaJob {
            documents: &documents,
            heldout: Some(&heldout),
            scored: usize::MAX,
            start: None,
            settings: s,
            simd: Simd::detect(),
            data_hash: String::new(),
        };
        let mut control = Control::new(Budget::iterations(u64::MAX), &clock, &mut silent);
        fit(&job, &mut control).unwrap().output.unwrap()
    };
    // The number of blocks of twenty words for which a topic has its ten likeliest words in the block.
    let found = |topics: &Topics| {
        let mut whose = [false; 20];
        for k in 0..20 {
            let words = topics.top_words(k, 10);
            let first = words[0].0 / 10;
            whose[first as usize] |= words.iter().filter(|w| w.0 / 10 == first).count() >= 9;
        }
        whose.iter().filter(|found| **found).count()
    };
    let plain = LdaSettings {
        batch: 50,
        tau: 16.0,
        passes: 5.0,
        ..LdaSettings::new(20)
    };
    let collapsed = LdaSettings {
        inference: Inference::Cvb0,
        start: Start::Documents,
        alpha: Some(0.1),
        ..plain.clone()
    };
    let learned = LdaSettings {
        learn_alpha: LearnAlpha::Asymmetric,
        learn_eta: true,
        ..collapsed.clone()
    };
    let (plain, collapsed, learned) = (run(plain), run(collapsed), run(learned));
    let score = |fit: &LdaFit| fit.completion.unwrap().log_predictive;
    assert!(
        found(&collapsed.topics) >= 18,
        "{}",
        found(&collapsed.topics)
    );
    assert!(found(&learned.topics) >= 18, "{}", found(&learned.topics));
    assert!(found(&plain.topics) < 18, "{}", found(&plain.topics));
    assert!(
        score(&collapsed) > score(&plain) + 0.05,
        "{} {}",
        score(&collapsed),
        score(&plain)
    );
    assert!(
        score(&learned) > score(&collapsed) - 0.005,
        "{} {}",
        score(&learned),
        score(&collapsed)
    );
    assert!(learned.topics.alpha.iter().all(|alpha| *alpha < 0.3));
}

#[test]
fn the_global_bound_is_the_divergence_of_dirichlets() {
    let documents = corpus(8, 30);
    let mut s = settings(5);
    s.seeds = [(1, 4, 2.5), (1, 7, 0.5), (3, 4, 40.0)]
        .map(|(topic, term, weight)| Seed {
            topic,
            term,
            weight,
        })
        .to_vec();
    let engine = LdaEngine::new(&documents, None, &s, Simd::detect());
    let globals = engine.start(3);
    let topics = globals.to_topics(Inference::MeanField, 0, 0.0);
    let eta = |topic: usize, term: usize| {
        let own = |seed: &&Seed| (seed.topic, seed.term as usize) == (topic, term);
        topics.eta + s.seeds.iter().find(own).map_or(0.0, |seed| seed.weight)
    };
    let mut expected = 0.0;
    for k in 0..5 {
        let row: Vec<f64> = (0..30)
            .map(|v| f64::from(topics.lambda[v * 5 + k]))
            .collect();
        let total: f64 = row.iter().sum();
        expected -= lgamma(total) - lgamma((0..30).map(|v| eta(k, v)).sum());
        for (v, l) in row.into_iter().enumerate() {
            let eta = eta(k, v);
            expected += lgamma(l) - lgamma(eta) - (l - eta) * (digamma(l) - digamma(total));
        }
    }
    assert!(error(engine.global_bound(&globals), expected) < 1e-6);
}

#[test]
fn expected_powers_equal_gamma_functions() {
    let documents = corpus(8, 400);
    let engine = LdaEngine::new(&documents, None, &settings(5), Simd::detect());
    let mut globals = engine.start(3);
    globals.shrink(0.3);
    globals.mass.iter_mut().step_by(7).for_each(|m| *m = 0.0);
    globals
        .mass
        .iter_mut()
        .step_by(5)
        .for_each(|m| *m *= 3000.0);
    let globals = LdaGlobals::of(&globals.to_topics(Inference::MeanField, 0, 0.0));
    let table: PowerTable = power_table(&globals, &Knots::new(Simd::detect()));
    let topics = globals.to_topics(Inference::MeanField, 0, 0.0);
    let totals = topics.totals();
    for (k, total) in totals.iter().enumerate() {
        for (j, &s) in nodes().iter().enumerate() {
            let s = f64::from(s);
            let exact: f64 = (0..400)
                .map(|v| {
                    let l = f64::from(topics.lambda[v * 5 + k]);
                    (lgamma(l + s) - lgamma(l) + lgamma(*total) - lgamma(total + s)).exp()
                })
                .sum();
            let found = f64::from(table.powers[k * WIDTH + j]);
            assert!(
                (found / exact - 1.0).abs() < 3e-4,
                "{k} {s}: {found} {exact}"
            );
        }
        assert_eq!(table.powers[k * WIDTH].round(), 400.0);
        assert!((table.powers[k * WIDTH + WIDTH - 1] - 1.0).abs() < 1e-4);
    }
}

#[test]
fn a_local_temperature_maximises_its_objective() {
    // Checks the fixed point by slow computations on a grid. There, r must follow from the energy at τ, and τ from r.
    let documents = corpus(4, 30);
    let (topics, alpha) = (4, 0.1);
    let mut s = settings(topics);
    s.alpha = Some(alpha);
    let simd = Simd::detect();
    let mut engine = LdaEngine::new(&documents, None, &s, simd);
    let mut globals = engine.start(1);
    // After a few steps, topics differ.
    for _ in 0..5 {
        engine.local_steps(
            &mut globals,
            &[0, 1, 2, 3],
            &Heat::Uniform(1.0),
            Measure::default(),
        );
        engine.global_step(&mut globals, 0.5, 1.0);
    }
    let table = power_table(&globals, &Knots::new(simd));
    let beta = log_beta(&globals);
    let discrete = LocalTempering::default();
    // One prior of a continuous 1/T pulls the inverse temperature upwards, and the other pulls it downwards.
    let beta_prior = |a, b| LocalTempering {
        beta: Some((a, b)),
        ..discrete.clone()
    };
    let measure = Measure {
        energy: true,
        bound: false,
    };
    let policies = [
        discrete.clone(),
        beta_prior(40.0, 1.0),
        beta_prior(1.0, 80.0),
    ];
    let cases = policies
        .iter()
        .flat_map(|policy| (0..4).map(move |d| (policy, d)));
    for (policy, d) in cases {
        let grid = policy.grid();
        let heat = Heat::Local {
            grid: &grid,
            floor: 0.0,
            first: 0.5,
            table: &table,
        };
        let sums = engine
            .local_steps(&mut globals, &[d], &heat, measure)
            .unwrap();
        let tau = sums.inverse;
        let mut bag = Bag::new();
        documents.read(d, &mut bag);
        let slow = slow(&beta, &bag, alpha, tau);
        assert!(error(sums.energy, slow.energy) < 1e-3);
        let lambda = globals.to_topics(Inference::MeanField, 0, 0.0);
        let totals = lambda.totals();
        let gamma_total: f64 = slow.gamma.iter().sum();
        // The posterior mean of a continuous 1/T uses a rule ten times as fine.
        let finer = LocalTempering {
            temperatures: if policy.beta.is_some() { 991 } else { 100 },
            ..policy.clone()
        };
        let grid = finer.grid();
        let mut logs: Vec<f64> = (grid.values.iter().zip(&grid.log_prior))
            .map(|(&s, prior)| {
                let power = |x: f64, total: f64| {
                    (lgamma(x + s) - lgamma(x) + lgamma(total) - lgamma(total + s)).exp()
                };
                let sum: f64 = (0..topics)
                    .map(|k| {
                        let words: f64 = (0..30)
                            .map(|v| power(f64::from(lambda.lambda[v * topics + k]), totals[k]))
                            .sum();
                        power(slow.gamma[k], gamma_total) * words
                    })
                    .sum();
                s * slow.energy - bag.tokens() * sum.ln() + prior
            })
            .collect();
        crate::policy::softmax(&mut logs);
        let next: f64 = logs.iter().zip(&grid.values).map(|(r, s)| r * s).sum();
        assert!(
            (next - tau).abs() < 0.015,
            "{d}: {tau} {next} {:?}",
            policy.beta
        );
    }
}

#[test]
fn normalisers_between_nodes_are_interpolated() {
    // The logarithm of a sum of gamma ratios, as in a document with sparse priors.
    let values = |s: f64| {
        let ratio = |x: f64| (lgamma(x + s) - lgamma(x)).exp();
        (500.0 * 8000.0 * ratio(0.002) * ratio(0.002) + 900.0 * ratio(30.0) + 40.0 * ratio(3.0))
            .ln()
    };
    let given = LocalTempering::default().grid();
    let grid = Grid::new(&given);
    let stride = grid.inverse.len();
    let at = |m: usize| -> f64 {
        (0..WIDTH)
            .map(|j| f64::from(grid.weights[j * stride + m]) * values(f64::from(nodes()[j])))
            .sum()
    };
    for (m, &s) in given.values.iter().enumerate() {
        let exact = values(s);
        // Near 0 the prior makes the curve steep, and no document has a temperature there.
        let allowed = if s < 0.1 { 0.2 } else { 0.02 };
        assert!((at(m) - exact).abs() < allowed, "{s}: {} {exact}", at(m));
    }
    assert_eq!((at(0), at(99)), (values(0.0), values(1.0)));
    // The mean under r, with the normaliser of a document.
    let simd = Simd::detect();
    let (energy, tokens, total) = (-7.0 * 60.0, 60.0, 61.0);
    let powers: [f32; WIDTH] = std::array::from_fn(|j| values(f64::from(nodes()[j])).exp() as f32);
    let mut r: Vec<f64> = given
        .values
        .iter()
        .map(|&s| {
            let theta = lgamma(total) - lgamma(total + s);
            s * energy - tokens * (values(s) + theta)
        })
        .collect();
    crate::policy::softmax(&mut r);
    let exact: f64 = r.iter().zip(&given.values).map(|(r, s)| r * s).sum();
    let found = kernel::mean_inverse(
        simd,
        &powers,
        total as f32,
        &Knots::new(simd),
        &grid,
        energy as f32,
        tokens as f32,
        &mut vec![0.0; stride],
    );
    assert!((f64::from(found) - exact).abs() < 5e-3, "{found} {exact}");
}

#[test]
fn packing_changes_nothing() {
    // With a sparse prior over many topics, columns are dropped. The result must equal that of the slow implementation,
    // which keeps all columns.
    let documents = corpus(3, 60);
    let topics = 200;
    let engine = LdaEngine::new(&documents, None, &settings(topics), Simd::detect());
    let mut globals = engine.start(2);
    for (i, m) in globals.mass.iter_mut().enumerate() {
        if i % 13 != 0 {
            *m *= 1e-3;
        }
    }
    let globals = LdaGlobals::of(&globals.to_topics(Inference::MeanField, 0, 0.0));
    let predictor_topics = globals.to_topics(Inference::MeanField, 0, 0.0);
    let rule = LocalRule {
        tolerance: 1e-6,
        max_iterations: 5000,
    };
    let predictor = Predictor::new(&predictor_topics, rule, Simd::detect());
    let beta = log_beta(&globals);
    let mut bag = Bag::new();
    documents.read(0, &mut bag);
    let slow = slow(&beta, &bag, 0.005, 1.0);
    let total: f64 = slow.gamma.iter().sum();
    let mut theta = vec![0.0; topics];
    let mut scratch = PredictorScratch::default();
    let used = predictor.theta(&bag, &mut scratch, &mut theta);
    assert_eq!(used, bag.tokens());
    for (k, t) in theta.iter().enumerate() {
        assert!(
            (t - slow.gamma[k] / total).abs() < 1e-4,
            "{k}: {t} {}",
            slow.gamma[k] / total
        );
    }
    // Unknown terms are omitted. A document with only unknown terms has the prior's mean.
    let mut strange = Bag::new();
    strange.push(60, 2.0);
    assert_eq!(predictor.theta(&strange, &mut scratch, &mut theta), 0.0);
    assert!(
        theta
            .iter()
            .all(|t| (t * topics as f64 - 1.0).abs() < 1e-12)
    );
}

#[test]
fn completion_equals_an_exact_computation() {
    // If a document consists of one repeated term, every split of it is the same, so the words to score are known.
    let mut documents = MemoryDocuments::new(4);
    for (term, n) in [(0, 6.0), (3, 4.0), (1, 1.0), (2, 5.0)] {
        documents
            .push(&Bag {
                terms: vec![term],
                counts: vec![n],
            })
            .unwrap();
    }
    let topics = Topics {
        topics: 2,
        terms: 4,
        inference: Inference::MeanField,
        alpha: vec![0.5; 2],
        eta: 0.5,
        lambda: vec![3.0, 0.6, 1.0, 2.0, 0.7, 5.0, 2.0, 0.9],
        steps: 0,
        population: 4.0,
    };
    let totals = topics.totals();
    let beta: Vec<Vec<f64>> = (0..2)
        .map(|k| {
            (0..4)
                .map(|v| digamma(f64::from(topics.lambda[v * 2 + k])) - digamma(totals[k]))
                .collect()
        })
        .collect();
    let (mut total, mut words) = (0.0, 0.0);
    for (term, n) in [(0u32, 6.0), (3, 4.0), (2, 5.0)] {
        let seen = (n / 2.0f64).floor();
        let bag = Bag {
            terms: vec![term],
            counts: vec![seen as f32],
        };
        let q = slow(&beta, &bag, 0.5, 1.0);
        let sum: f64 = q.gamma.iter().sum();
        let p: f64 = (0..2)
            .map(|k| q.gamma[k] / sum * f64::from(topics.lambda[term as usize * 2 + k]) / totals[k])
            .sum();
        total += (n - seen) * p.ln();
        words += n - seen;
    }
    let completion = completion(&topics, &documents, 5, Simd::detect());
    assert!((completion.log_predictive - total / words).abs() < 1e-4);
    assert_eq!(
        (completion.words, completion.documents, completion.skipped),
        (8, 3, 1)
    );
    assert!((completion.perplexity() - (-total / words).exp()).abs() < 1e-3);
}

fn policies() -> [Temper; 6] {
    [
        "global=2".parse().unwrap(),
        "local=1.5".parse().unwrap(),
        Temper::None,
        Temper::anneal(1.0),
        Temper::Global(GlobalTempering::default()),
        Temper::Local(LocalTempering::default()),
    ]
}

pub(super) fn driver<'a>(
    documents: &'a MemoryDocuments,
    settings: &LdaSettings,
) -> Driver<LdaEngine<'a>> {
    let mode = Mode::Stochastic {
        batch: settings.batch,
        tau: settings.tau,
        kappa: settings.kappa,
        passes: settings.passes,
        population: None,
        steps_before: 0,
    };
    let engine = LdaEngine::new(documents, None, settings, Simd::detect());
    Driver::new(
        engine,
        DriverSettings {
            mode,
            temper: settings.temper.clone(),
            seed: settings.seed,
            scores_per_pass: 0.0,
        },
    )
}

/// Returns settings for every policy, and settings of collapsed inference that learn all parameters.
fn ways() -> Vec<LdaSettings> {
    let mut ways: Vec<LdaSettings> = policies()
        .into_iter()
        .map(|temper| LdaSettings {
            temper,
            ..settings(20)
        })
        .collect();
    let collapsed = LdaSettings {
        inference: Inference::Cvb0,
        start: Start::Documents,
        learn_alpha: LearnAlpha::Asymmetric,
        ..settings(20)
    };
    ways.push(LdaSettings {
        learn_eta: true,
        ..collapsed.clone()
    });
    ways.push(LdaSettings {
        learn_alpha: LearnAlpha::Hdp,
        ..collapsed.clone()
    });
    ways.push(LdaSettings {
        seeds: vec![Seed {
            topic: 3,
            term: 5,
            weight: 30.0,
        }],
        ..collapsed
    });
    ways
}

#[test]
fn runs_resume_to_the_same_bits_on_any_number_of_threads() {
    let documents = corpus(60, 40);
    for mut s in ways() {
        s.passes = 3.0;
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| {
                let mut driver = driver(&documents, &s);
                let mut state = driver.init().unwrap();
                let saved: Vec<Archive> = (1..=20)
                    .map(|i| {
                        driver.step(&mut state, i);
                        state.save()
                    })
                    .collect();
                saved
            })
        };
        let saved = run(1);
        assert_eq!(saved[19], run(3)[19], "{}", s.temper.name());
        let mut again = driver(&documents, &s);
        let mut state = Snapshot::restore(&saved[8]).unwrap();
        for i in 10..=20 {
            again.step(&mut state, i);
        }
        assert_eq!(state.save(), saved[19], "{}", s.temper.name());
    }
}

#[test]
fn policies_at_temperature_one_are_plain_inference_to_the_bit() {
    let documents = corpus(60, 40);
    let fit_with = |temper: Temper| {
        let mut s = settings(20);
        s.temper = temper;
        let mut driver = driver(&documents, &s);
        let mut state = driver.init().unwrap();
        (1..=8).for_each(|i| drop(driver.step(&mut state, i)));
        state.globals
    };
    let plain = fit_with(Temper::None);
    let flat = Temper::Anneal {
        passes: 0.5,
        from: 1.0,
    };
    assert_eq!(plain, fit_with(flat));
    assert_eq!(plain, fit_with(Temper::Schedule(vec![(0.0, 1.0)])));
    assert_ne!(plain, fit_with(Temper::anneal(1.0)));
}

#[test]
fn fits_find_the_topics_and_go_on_from_them() {
    let documents = corpus(400, 20);
    let heldout = corpus(50, 20);
    let mut s = settings(2);
    s.passes = 5.0;
    let clock = || 0.0;
    let run = |start: Option<&Topics>, s: &LdaSettings| {
        let mut silent = jensen_run::Silent;
        let job = LdaJob {
            documents: &documents,
            heldout: Some(&heldout),
            scored: usize::MAX,
            start,
            settings: s.clone(),
            simd: Simd::detect(),
            data_hash: String::new(),
        };
        fit(
            &job,
            &mut Control::new(Budget::iterations(u64::MAX), &clock, &mut silent),
        )
        .unwrap()
    };
    let outcome = run(None, &s);
    assert!(matches!(outcome.status, Status::BudgetReached { .. }));
    let found = outcome.output.unwrap();
    let halves: Vec<bool> = (0..2)
        .map(|k| {
            found
                .topics
                .top_words(k, 8)
                .iter()
                .filter(|w| w.0 < 10)
                .count()
                >= 7
        })
        .collect();
    assert!(halves[0] != halves[1], "{halves:?}");
    let shares: f64 = found.topics.shares().iter().sum();
    assert!((shares - 1.0).abs() < 1e-9);
    assert!(found.skipped > 0 && found.elbo < 0.0 && found.elbo_se == 0.0);
    let restored = Topics::restore(&found.topics.save()).unwrap();
    assert_eq!(restored, found.topics);
    s.passes = 1.0;
    let more = run(Some(&found.topics), &s).output.unwrap();
    assert_eq!(
        more.topics.steps,
        found.topics.steps + outcome_steps(&documents, &s)
    );
    let score = |fit: &LdaFit| completion(&fit.topics, &heldout, 0, Simd::detect());
    let (a, b) = (score(&more), score(&found));
    assert!((a.log_predictive - b.log_predictive).abs() < 0.05);
}

fn outcome_steps(documents: &MemoryDocuments, s: &LdaSettings) -> u64 {
    planned_iterations(documents.len(), s)
}

#[test]
fn unfit_input_is_named() {
    let documents = corpus(10, 20);
    let empty = MemoryDocuments::new(20);
    let clock = || 0.0;
    let refused = |documents: &MemoryDocuments, change: &dyn Fn(&mut LdaSettings)| {
        let mut s = settings(3);
        change(&mut s);
        let mut silent = jensen_run::Silent;
        let job = LdaJob {
            documents,
            heldout: None,
            scored: usize::MAX,
            start: None,
            settings: s,
            simd: Simd::detect(),
            data_hash: String::new(),
        };
        let mut control = Control::new(Budget::iterations(1), &clock, &mut silent);
        fit(&job, &mut control).unwrap_err().to_string()
    };
    assert!(refused(&empty, &|_| {}).contains("no words"));
    assert!(refused(&documents, &|s| s.topics = 0).contains("at least 1"));
    assert!(refused(&documents, &|s| s.topics = 100_000).contains("tokens"));
    assert!(refused(&documents, &|s| s.kappa = 0.3).contains("kappa"));
    assert!(refused(&documents, &|s| s.batch = 0).contains("batch"));
    assert!(refused(&documents, &|s| s.alpha = Some(-1.0)).contains("alpha"));
    let heated = |s: &mut LdaSettings| {
        s.inference = Inference::Cvb0;
        s.temper = Temper::anneal(1.0);
    };
    assert!(refused(&documents, &heated).contains("--inference mean-field"));
    let unknown = |s: &mut LdaSettings| {
        s.learn_eta = true;
        s.temper = Temper::Global(GlobalTempering::default());
    };
    assert!(refused(&documents, &unknown).contains("fixed alpha and eta"));
}

#[test]
fn one_word_is_enough_for_a_local_step() {
    // With a prior of 1/K, the uniform start of a one-word document has weights of e^-250 for every topic.
    let spec = Spec {
        simd: Simd::detect(),
        topics: 500,
        inference: Inference::MeanField,
        learns: false,
        rule: LocalRule::default(),
    };
    let rows = vec![0.5f32; 512];
    let prior = Prior::of(&[0.002; 500]);
    let rows = Rows {
        prior: &prior,
        values: &rows,
        maxima: &[-3.0],
    };
    let mut solver = Solver::default();
    let want = Want {
        energy: true,
        bound: true,
    };
    let found = solver.solve(&spec, rows, &[0], &[1.0], 1.0, want);
    assert!(found.converged && found.topic_energy.is_finite() && found.bound.is_finite());
    let total = solver.weights[0] * 0.5 * solver.t.iter().sum::<f32>();
    assert!((total - 1.0).abs() < 1e-4);
    // The same document with a separate temperature.
    let mut base = [0.0; WIDTH];
    gamma_ratios(spec.simd, 0.002, &mut base);
    let grid = LocalTempering::default().grid();
    let table = PowerTable {
        powers: vec![1.0; 500 * WIDTH],
        total: vec![500.0; WIDTH],
    };
    let heat = LocalHeat {
        grid: &Grid::new(&grid),
        floor: 0.0,
        table: &table,
        knots: &Knots::new(spec.simd),
        base: &base,
    };
    let mut out = Vec::new();
    let found = solver.solve_local(&spec, 0.5, rows, heat, &[0], &[1.0], want, &mut out);
    assert!(found.inverse > 0.0 && found.energy.is_finite());
}
