//! Compares the most probable paths of hidden Markov chains with an enumeration of all paths, and tests the starts of
//! chains with few distinct rows.

use jensen_conjugate::model::ConjugateModel;
use jensen_conjugate::models::{Bernoullis, Components, Covariance, Gaussians, HiddenMarkov};
use jensen_math::rng::{Purpose, Stream};

#[test]
fn the_path_is_the_best_of_all() {
    let mut stream = Stream::new(3, Purpose::new("paths"), 0, 0);
    let rows: Vec<f64> = (0..24).map(|_| 4.0 * stream.uniform() - 2.0).collect();
    let emissions = Gaussians::new(Covariance::Diagonal, 2, rows);
    let model = HiddenMarkov::new(emissions, vec![0, 5, 12, 12], 3, 1.0).unwrap();
    let lambda = model.start(&mut stream);
    let expected = model.blocks().expectations(&lambda);
    let k = 3usize;
    let score = |path: &[usize], first: usize| -> f64 {
        let mut total = expected[path[0]];
        for (t, &i) in path.iter().enumerate() {
            total += model
                .emissions()
                .log_density(model.state(&expected, i), first + t);
            if t > 0 {
                total += expected[k + path[t - 1] * k + i];
            }
        }
        total
    };
    for (point, first, steps) in [(0, 0, 5), (1, 5, 7)] {
        let found = model.path(&expected, point);
        let paths = (0..k.pow(steps))
            .map(|code| -> Vec<usize> { (0..steps).map(|t| code / k.pow(t) % k).collect() });
        let best = paths
            .max_by(|a, b| score(a, first).total_cmp(&score(b, first)))
            .unwrap();
        assert_eq!(found, best);
    }
    assert!(model.path(&expected, 2).is_empty());
}

/// Two states that are equal at the start remain equal. If the rows are binary, the start therefore draws rows again
/// until they differ.
#[test]
fn states_of_binary_rows_begin_apart() {
    let bits: Vec<bool> = (0..60).map(|i| i % 3 == 0).collect();
    for lane in 0..20 {
        let mut stream = Stream::new(5, Purpose::new("starts"), 0, lane);
        let emissions = Bernoullis::new(1, bits.clone());
        let model = HiddenMarkov::new(emissions, vec![0, 60], 2, 1.0).unwrap();
        let lambda = model.start(&mut stream);
        assert_ne!(model.state(&lambda, 0), model.state(&lambda, 1), "{lane}");
    }
}
