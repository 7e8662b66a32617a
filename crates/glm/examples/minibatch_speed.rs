//! Measures the seconds per iteration of minibatch estimators on models of realistic sizes with generated data.
//!
//! `cargo run --release -p jensen-glm --example minibatch_speed [tennis|mnist|movielens|ppca] [iterations]`

use std::sync::Arc;
use std::time::Instant;

use jensen_blackbox::family::MeanField;
use jensen_blackbox::minibatches::{Minibatch, MinibatchSettings};
use jensen_blackbox::records::RecordEstimator;
use jensen_density::RecordDensity;
use jensen_glm::{CommonNormal, Dense, Features, Glm, Link, Ppca, Sparse, StandardNormal};
use jensen_math::rng::{Purpose, Stream};
use jensen_run::Algorithm;

fn stream() -> Stream {
    Stream::new(1, Purpose::new("minibatch speed"), 0, 0)
}

/// Generates matches between players, most of whom play rarely.
fn tennis() -> Glm<StandardNormal> {
    let (records, players) = (169_405, 5_524);
    let mut s = stream();
    let mut player = || {
        let u = s.uniform();
        ((u * u * u * f64::from(players)) as u32).min(players - 1)
    };
    let rows = (0..records).map(|_| {
        let winner = player();
        let loser = (winner + 1 + player()) % players;
        [(winner, 1.0), (loser, -1.0)]
    });
    let features = Features::Sparse(Sparse::new(players as usize, rows).expect("columns"));
    let link = Link::bernoulli(&vec![true; records]);
    Glm::new(features, link, StandardNormal(players as usize)).expect("shapes")
}

fn images() -> Vec<u8> {
    let mut s = stream();
    (0..60_000 * 784)
        .map(|_| match s.below(5) {
            0 => s.below(256) as u8,
            _ => 0,
        })
        .collect()
}

fn mnist() -> Glm<StandardNormal> {
    let sparse = Sparse::bytes(&images(), 784, 1.0 / 255.0).expect("rows");
    let labels = (0..60_000).map(|n| n * 7 % 10).collect();
    let link = Link::categorical(labels, 10).expect("labels");
    Glm::new(Features::Sparse(sparse), link, StandardNormal(7840)).expect("shapes")
}

fn movielens() -> Glm<CommonNormal> {
    let (users, genres) = (943, 18);
    let mut s = stream();
    let rows = (0..100_000).map(|_| {
        let user = s.below(users) as u32;
        let count = 1 + s.below(3);
        let row: Vec<(u32, f64)> = (0..count)
            .map(|k| (user * genres + (s.below(6) as u32 + 6 * k as u32), 1.0))
            .collect();
        row
    });
    let features = Sparse::new(users as usize * genres as usize, rows).expect("columns");
    let labels = (0..100_000).map(|n| n * 3 % 5).collect();
    let prior = CommonNormal {
        width: 90,
        groups: 943,
    };
    let link = Link::categorical(labels, 5).expect("labels");
    Glm::new(Features::Sparse(features), link, prior).expect("shapes")
}

fn ppca() -> Ppca {
    let dense = Dense::standardised_bytes(images(), 784).expect("rows");
    Ppca::new(dense, 16, 1.0)
}

fn time<D: RecordDensity>(name: &str, density: &D, iterations: u64) {
    let d = density.dim();
    for estimator in [
        RecordEstimator::Naive,
        RecordEstimator::Cv,
        RecordEstimator::Joint,
        RecordEstimator::JointSvrg,
    ] {
        let settings = MinibatchSettings {
            estimator,
            judge: None,
            ..MinibatchSettings::default()
        };
        let mut start = vec![0.0; 2 * d];
        let mut s = stream();
        start[..d].iter_mut().for_each(|m| *m = 0.1 * s.uniform());
        start[d..].fill(-2.0);
        let family = Arc::new(MeanField::new(d));
        let mut fit = Minibatch::new(density, family, 1, settings, start).expect("settings");
        let mut state = fit.init().expect("a start");
        let epoch = fit.batches().per_epoch() as u64;
        // The run fills the table first. If there are enough iterations, the measurement includes a whole epoch with a
        // full table.
        let warm = if estimator.remembers() { epoch } else { 5 };
        for t in 1..=warm {
            drop(fit.step(&mut state, t));
        }
        let mut seconds: Vec<f64> = (warm + 1..=warm + iterations)
            .map(|t| {
                let begin = Instant::now();
                drop(fit.step(&mut state, t));
                begin.elapsed().as_secs_f64()
            })
            .collect();
        let mean = seconds.iter().sum::<f64>() / iterations as f64;
        // Other programs on the machine slow down some iterations. A low quantile excludes these iterations.
        seconds.sort_by(f64::total_cmp);
        let quiet = seconds[seconds.len() / 5];
        let bytes = fit.footprint();
        println!(
            "{name:10} {:10} mean {:9.4} ms, first fifth {:9.4} ms   table {:8.1} MiB, rest {:6.1} MiB",
            estimator.name(),
            1e3 * mean,
            1e3 * quiet,
            bytes.table as f64 / (1 << 20) as f64,
            bytes.rest as f64 / (1 << 20) as f64
        );
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let which = arguments.next().unwrap_or_default();
    let iterations: Option<u64> = arguments.next().and_then(|n| n.parse().ok());
    let wanted = |name: &str| which.is_empty() || which == name;
    if wanted("tennis") {
        time("tennis", &tennis(), iterations.unwrap_or(3390));
    }
    if wanted("mnist") {
        time("mnist", &mnist(), iterations.unwrap_or(600));
    }
    if wanted("movielens") {
        time("movielens", &movielens(), iterations.unwrap_or(500));
    }
    if wanted("ppca") {
        time("ppca", &ppca(), iterations.unwrap_or(100));
    }
}
