//! Fits of hierarchical Dirichlet processes to documents with a known number of topics.

use jensen_math::simd::Simd;
use jensen_run::{Budget, Control, Silent};

use super::several::tests::documents;
use super::*;
use crate::documents::Bag;
use crate::temper::Temper;

fn settings(seed: u64) -> LdaSettings {
    LdaSettings {
        inference: Inference::Cvb0,
        start: Start::Documents,
        learn_alpha: LearnAlpha::Hdp,
        alpha: Some(0.1),
        eta: Some(0.05),
        batch: 50,
        tau: 16.0,
        passes: 25.0,
        seed,
        ..LdaSettings::new(20)
    }
}

fn fitted(settings: LdaSettings) -> LdaFit {
    let (train, heldout) = (documents(500, 1), documents(200, 2));
    let job = LdaJob {
        documents: &train,
        heldout: Some(&heldout),
        scored: 0,
        start: None,
        settings,
        simd: Simd::detect(),
        data_hash: String::new(),
    };
    let (mut silent, clock) = (Silent, || 0.0);
    let mut control = Control::new(Budget::iterations(u64::MAX), &clock, &mut silent);
    fit(&job, &mut control).unwrap().output.unwrap()
}

/// Returns the shares of the topics in descending order, with the topics.
fn largest(topics: &Topics) -> Vec<(f64, usize)> {
    let mut shares: Vec<(f64, usize)> = topics.shares().into_iter().zip(0..).collect();
    shares.sort_by(|a, b| b.0.total_cmp(&a.0));
    shares
}

#[test]
fn of_twenty_topics_the_five_in_the_documents_remain() {
    let ways = [
        settings(0),
        settings(1),
        settings(2),
        // All documents at once, with a first step that replaces the initial topics.
        LdaSettings {
            batch: 500,
            tau: 1.0,
            passes: 80.0,
            ..settings(3)
        },
        LdaSettings {
            inference: Inference::MeanField,
            start: Start::Random,
            temper: Temper::anneal(2.0),
            passes: 30.0,
            ..settings(4)
        },
    ];
    for settings in ways {
        let fit = fitted(settings.clone());
        let shares = largest(&fit.topics);
        let five: f64 = shares[..5].iter().map(|share| share.0).sum();
        assert!(
            five > 0.99 && shares[4].0 > 0.15,
            "{settings:?}: {shares:?}"
        );
        for &(_, topic) in &shares[..5] {
            let words = fit.topics.top_words(topic, 12);
            let block = words[0].0 / 12;
            assert!(words.iter().all(|word| word.0 / 12 == block), "{words:?}");
        }
        // The score is that of the true topics, −76.07 nats per document, up to what 500 documents determine.
        let score = fit.completion.unwrap().log_predictive * 25.0;
        assert!((-76.3..-75.9).contains(&score), "{score}");
        // The prior of a document is a Dirichlet distribution whose five large parameters are about equal.
        let alpha: f64 = fit.topics.alpha.iter().sum();
        let [mean, gamma] = fit.concentrations.unwrap();
        assert!((alpha / mean - 1.0).abs() < 0.01, "{alpha} {mean}");
        assert!(
            (0.2..0.5).contains(&alpha) && gamma > 0.2,
            "{alpha} {gamma}"
        );
    }
}

#[test]
fn a_new_document_has_the_proportions_of_its_words() {
    let fit = fitted(settings(0));
    let predictor = Predictor::new(&fit.topics, RULE, Simd::detect());
    let mut bag = Bag::new();
    (0..12).for_each(|term| bag.push(term, 3.0));
    (24..36).for_each(|term| bag.push(term, 1.0));
    let mut theta = vec![0.0; 20];
    predictor.theta(&bag, &mut PredictorScratch::default(), &mut theta);
    let topic = |term: u32| {
        let of = |k: &usize| fit.topics.top_words(*k, 1)[0].0 / 12 == term / 12;
        let shares = largest(&fit.topics);
        shares[..5].iter().map(|share| share.1).find(of).unwrap()
    };
    let (first, second) = (theta[topic(0)], theta[topic(24)]);
    assert!(
        (first - 0.75).abs() < 0.01 && (second - 0.25).abs() < 0.01,
        "{theta:?}"
    );
}

#[test]
fn seed_words_are_refused() {
    let seeds = vec![Seed {
        topic: 0,
        term: 3,
        weight: 1.0,
    }];
    let error = LdaSettings {
        seeds,
        ..settings(0)
    }
    .check()
    .unwrap_err();
    assert!(error.to_string().contains("--seed-words"), "{error}");
}
