//! Tests of chains with known states of some rows.

use super::*;

const K: usize = 3;

fn labelled() -> HiddenMarkov<Gaussians> {
    let gaussians = Gaussians::new(Covariance::Diagonal, 2, plane(14));
    let mut labels = vec![None; 14];
    (labels[1], labels[4], labels[6], labels[13]) = (Some(2), Some(0), Some(2), Some(1));
    let model = HiddenMarkov::new(gaussians, vec![0, 6, 14], K, 1.0).unwrap();
    model.with_labels(labels).unwrap()
}

#[test]
fn chains_with_known_states_sum_over_the_paths_through_them() {
    let model = labelled();
    let t = model.blocks().expectations(&model.start(&mut stream(7)));
    let allowed = |path: &[usize]| path[1] == 2 && path[4] == 0;
    let paths: Vec<Vec<usize>> = (0..k_pow(K, 6))
        .map(|code| (0..6).map(|i| code / k_pow(K, i) % K).collect())
        .filter(|path: &Vec<usize>| allowed(path))
        .collect();
    let log = |path: &Vec<usize>| {
        let mut log = t[path[0]];
        for (i, &z) in path.iter().enumerate() {
            log += model.emissions().log_density(model.state(&t, z), i);
            if i > 0 {
                log += t[K + path[i - 1] * K + z];
            }
        }
        log
    };
    let logs: Vec<f64> = paths.iter().map(log).collect();
    for tau in [1.0, 0.4] {
        let mut scratch = Default::default();
        let local = model.local(&t, 0, tau, &mut [], &mut scratch);
        let scaled: Vec<f64> = logs.iter().map(|log| tau * log).collect();
        let exact = log_sum_exp_slice(&scaled);
        let found = tau * local.energy + local.entropy;
        assert!(
            (found - exact).abs() < 1e-10 * exact.abs(),
            "{found} {exact}"
        );
        for step in 0..6 {
            for state in 0..K {
                let through = paths
                    .iter()
                    .zip(&scaled)
                    .filter(|(path, _)| path[step] == state);
                let share: f64 = through.map(|(_, log)| (log - exact).exp()).sum();
                assert!((scratch.states[step * K + state] - share).abs() < 1e-10);
            }
        }
    }
    let best = (0..paths.len()).max_by(|a, b| logs[*a].total_cmp(&logs[*b]));
    assert_eq!(model.path(&t, 0), paths[best.unwrap()]);
}

#[test]
fn known_states_raise_no_bound_above_the_plain_one_and_the_bound_never_falls() {
    let model = labelled();
    let (records, _) = trace(&model, &settings(Temper::None, batch()));
    let bounds: Vec<f64> = records.iter().map(|r| r.elbo.unwrap()).collect();
    for pair in bounds.windows(2) {
        assert!(pair[1] >= pair[0] - 1e-9 * pair[0].abs());
    }
    assert!(model.plain().unwrap().within <= bounds[bounds.len() - 1] + 1e-6);
    // A chain without known states has more paths.
    let free = labelled().with_labels(Vec::new()).unwrap();
    let t = model.blocks().expectations(&model.start(&mut stream(7)));
    let sum = |model: &HiddenMarkov<Gaussians>| {
        let mut scratch = Default::default();
        let local = model.local(&t, 1, 1.0, &mut [], &mut scratch);
        local.energy + local.entropy
    };
    assert!(sum(&free) > sum(&model));
    let wrong = labelled().with_labels(vec![Some(K); 14]);
    assert!(wrong.is_err());
    assert!(labelled().with_labels(vec![None; 3]).is_err());
}
