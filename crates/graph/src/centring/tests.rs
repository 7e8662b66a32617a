use super::*;
use crate::density::{Execution, GraphDensity};
use jensen_density::{Lanes, LanesMut, LogDensity};

/// Returns Σ log N(values | location, scale) without its constants.
fn normal(g: &mut Graph, values: NodeId, location: NodeId, scale: NodeId) -> NodeId {
    let n = f64::from(g.shape(values).len);
    let off = g.sub(values, location);
    let ratio = g.div(off, scale);
    let square = g.square(ratio);
    let sum = g.sum(square);
    let half = g.scale(-0.5, sum);
    let log = g.log(scale);
    let logs = if g.shape(log).is_scalar() {
        g.scale(n, log)
    } else {
        g.sum(log)
    };
    g.sub(half, logs)
}

/// Builds a density over the coordinates μ, log τ, three means m ~ N(μ, τ), log σ, and six effects θ ~ N(m[group],
/// σ).
fn two_levels() -> (Graph, Vec<Scattered>) {
    let mut g = Graph::new();
    let z = g.input(12);
    let mut part = |index: &[u32]| g.gather(z, index);
    let (mu, log_tau, m, log_sigma) = (part(&[0]), part(&[1]), part(&[2, 3, 4]), part(&[5]));
    let theta = part(&[6, 7, 8, 9, 10, 11]);
    let (tau, sigma) = (g.exp(log_tau), g.exp(log_sigma));
    let of_group = g.gather(m, &[0, 0, 1, 1, 2, 2]);
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let data = g.vector(&[0.3, -1.0, 2.0, 0.1, 0.7, -0.2]);
    let terms = [
        normal(&mut g, mu, zero, one),
        normal(&mut g, log_tau, zero, one),
        normal(&mut g, log_sigma, zero, one),
        normal(&mut g, m, mu, tau),
        normal(&mut g, theta, of_group, sigma),
        normal(&mut g, data, theta, one),
    ];
    let total = terms.into_iter().reduce(|a, b| g.add(a, b)).unwrap();
    g.set_outputs(vec![total]);
    let scattered = |values, location, scale| Scattered {
        values,
        location,
        spread: Spread::Scale(scale),
    };
    // Groups are not formed by data, by constants, or by values that depend on themselves.
    let found = vec![
        scattered(data, theta, one),
        scattered(theta, of_group, sigma),
        scattered(m, mu, tau),
        scattered(log_tau, zero, one),
    ];
    (g, found)
}

fn value(graph: &Graph, z: &[f64]) -> f64 {
    evaluate(graph, &[z], None)[0][0]
}

fn log_jacobian(recentred: &Recentred, tilde: &[f64]) -> f64 {
    let (n, h) = (tilde.len(), 1e-6);
    let columns: Vec<Vec<f64>> = (0..n)
        .map(|j| {
            let (mut up, mut down) = (tilde.to_vec(), tilde.to_vec());
            up[j] += h;
            down[j] -= h;
            let (up, down) = (recentred.forward(&up), recentred.forward(&down));
            up.iter()
                .zip(&down)
                .map(|(u, d)| (u - d) / (2.0 * h))
                .collect()
        })
        .collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let product: Vec<f64> = columns
        .iter()
        .flat_map(|a| columns.iter().map(|b| dot(a, b)))
        .collect();
    let factor = jensen_math::dense::cholesky(&product, n).unwrap();
    (0..n).map(|i| factor[i * n + i].ln()).sum()
}

#[test]
fn the_posterior_is_the_same_for_any_powers() {
    let (graph, scattered) = two_levels();
    let hierarchy = Hierarchy::find(&graph, &scattered).unwrap();
    assert_eq!(hierarchy.levels.len(), 2);
    let power = |coordinate: u32| Power {
        coordinate,
        lambda: [0.0, 0.3, 1.0, 0.8][coordinate as usize % 4],
        log_scale: 0.1 * f64::from(coordinate) - 0.5,
    };
    let powers: Vec<Power> = [2, 3, 4, 6, 7, 8, 9, 10].into_iter().map(power).collect();
    let recentred = hierarchy.recentre(&powers, &[]);
    let tilde: Vec<f64> = (0..12).map(|i| (f64::from(i) * 1.7).sin()).collect();
    let z = recentred.forward(&tilde);
    let back = recentred.backward(&z);
    assert!(tilde.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-12));
    assert_eq!(z[11], tilde[11]);
    assert_ne!(z[8], tilde[8]);

    let expected = value(&graph, &z) + log_jacobian(&recentred, &tilde);
    let found = value(&recentred.density, &tilde);
    assert!((found - expected).abs() < 1e-7, "{found} for {expected}");
}

#[test]
fn a_centred_power_changes_nothing() {
    let (graph, scattered) = two_levels();
    let hierarchy = Hierarchy::find(&graph, &scattered).unwrap();
    let z: Vec<f64> = (0..12).map(|i| (f64::from(i) * 0.7).cos()).collect();
    let found = hierarchy.at(&z);
    assert_eq!(
        found.keys().copied().collect::<Vec<_>>(),
        [2, 3, 4, 6, 7, 8, 9, 10, 11]
    );
    assert!((found[&3].location - z[0]).abs() < 1e-15);
    assert!((found[&3].log_scale - z[1]).abs() < 1e-15);
    let powers: Vec<Power> = found
        .iter()
        .map(|(coordinate, placed)| Power {
            coordinate: *coordinate,
            lambda: 1.0,
            log_scale: placed.log_scale,
        })
        .collect();
    let same = hierarchy.recentre(&powers, &[]);
    assert!((value(&same.density, &z) - value(&graph, &z)).abs() < 1e-12);
    assert!(
        same.forward(&z)
            .iter()
            .zip(&z)
            .all(|(a, b)| (a - b).abs() < 1e-14)
    );
}

#[test]
fn derivatives_of_the_new_density_are_its_differences() {
    let (graph, scattered) = two_levels();
    let hierarchy = Hierarchy::find(&graph, &scattered).unwrap();
    let powers: Vec<Power> = (6..12)
        .map(|coordinate| Power {
            coordinate,
            lambda: 0.25,
            log_scale: -0.3,
        })
        .collect();
    let recentred = hierarchy.recentre(&powers, &[]);
    let density = GraphDensity::new(&recentred.density, Execution::default());
    let z: Vec<f64> = (0..12).map(|i| (f64::from(i) * 1.1).sin()).collect();
    let (mut at, mut gradient) = ([0.0], vec![0.0; 12]);
    let mut workspace = density.workspace(1);
    density.value_grad(
        &mut workspace,
        Lanes::new(&z, 12, 1),
        &mut at,
        LanesMut::new(&mut gradient, 12, 1),
    );
    for (i, slope) in gradient.iter().enumerate() {
        let moved = |by: f64| {
            let mut z = z.clone();
            z[i] += by;
            value(&recentred.density, &z)
        };
        let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
        assert!(
            (slope - difference).abs() < 1e-6,
            "{i}: {slope} for {difference}"
        );
    }
}

/// The coordinates are log τ and three values z ~ N(0, 1), and the data are observations of τ z. With the power 0, the
/// coordinates are τ z.
#[test]
fn what_is_non_centred_by_hand_can_be_centred() {
    let mut g = Graph::new();
    let x = g.input(4);
    let (log_tau, z) = (g.gather(x, &[0]), g.gather(x, &[1, 2, 3]));
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let tau = g.exp(log_tau);
    let theta = g.mul(tau, z);
    let data = g.vector(&[0.3, -1.0, 2.0]);
    let terms = [
        normal(&mut g, z, zero, one),
        normal(&mut g, data, theta, one),
    ];
    let total = g.add(terms[0], terms[1]);
    g.set_outputs(vec![total]);
    let unit = Scattered {
        values: z,
        location: zero,
        spread: Spread::Scale(one),
    };
    let hierarchy = Hierarchy::find(&g, &[unit]).unwrap();
    let at = [0.7, -0.2, 0.4, 1.1];
    let placed = hierarchy.at(&at)[&2];
    assert!(placed.by_hand && placed.prior == 1.0 && (placed.log_scale + 0.7).abs() < 1e-15);
    let powers: Vec<Power> = (1..4)
        .map(|coordinate| Power {
            coordinate,
            lambda: 0.0,
            log_scale: 0.0,
        })
        .collect();
    let centred = hierarchy.recentre(&powers, &[]);
    let seen = centred.backward(&at);
    for (i, (seen, z)) in seen.iter().zip(&at).enumerate().skip(1) {
        assert!((seen - 0.7f64.exp() * z).abs() < 1e-14, "{i}");
    }
    // The determinant |dz/dz̃| is τ⁻³.
    let expected = value(&g, &at) - 3.0 * 0.7;
    assert!((value(&centred.density, &seen) - expected).abs() < 1e-12);
    // A coordinate that has no prior of its own cannot belong to a group.
    assert!(Hierarchy::find(&g, &[]).is_none());
}

#[test]
fn a_tiny_scale_leaves_effects_apart() {
    // At τ = e^−60, the effects are equal to the location to the last bit. Their contribution to the density must still
    // not be lost to rounding.
    let (graph, scattered) = two_levels();
    let hierarchy = Hierarchy::find(&graph, &scattered).unwrap();
    let powers: Vec<Power> = [2, 3, 4]
        .into_iter()
        .map(|coordinate| Power {
            coordinate,
            lambda: 0.0,
            log_scale: 0.0,
        })
        .collect();
    let density = hierarchy.recentre(&powers, &[]).density;
    let at = |effect: f64| {
        let mut z = [0.0; 12];
        (z[0], z[1], z[3]) = (0.9, -60.0, effect);
        value(&density, &z)
    };
    let fallen = at(3.0) - at(0.0);
    assert!((fallen + 4.5).abs() < 1e-9, "{fallen}");
}

#[test]
fn chains_and_loops_are_left_out() {
    let mut g = Graph::new();
    let z = g.input(12);
    let mut x: Vec<NodeId> = (0..12).map(|i| g.gather(z, &[i])).collect();
    let log_scale = x.remove(0);
    let scale = g.exp(log_scale);
    let total = g.sum(z);
    g.set_outputs(vec![total]);
    let chain: Vec<Scattered> = x
        .windows(2)
        .map(|pair| Scattered {
            values: pair[1],
            location: pair[0],
            spread: Spread::Scale(scale),
        })
        .collect();
    assert!(Hierarchy::find(&g, &chain).is_none());
    // The two groups depend on each other, so one of them is omitted.
    let pair = [
        Scattered {
            values: x[0],
            location: x[1],
            spread: Spread::Scale(scale),
        },
        Scattered {
            values: x[1],
            location: x[0],
            spread: Spread::Scale(scale),
        },
    ];
    let found = Hierarchy::find(&g, &pair).unwrap();
    assert_eq!(found.levels.concat().len(), 1);
    assert!(Hierarchy::find(&g, &[]).is_none());
}

const ELEMENTS: usize = 6;
const APART: f64 = 0.4;

/// The observations, each with the standard deviation of its error. The last element of the vector is not observed.
const SEEN: [(f64, f64); ELEMENTS - 1] =
    [(0.3, 0.5), (-1.0, 0.2), (2.0, 1.0), (0.1, 0.05), (0.7, 3.0)];

/// Builds a density over m, log ℓ and a vector f ~ N(m, K), where K is an exponential kernel of length ℓ. `blur`
/// multiplies the errors in [`SEEN`].
fn process(blur: f64) -> (Graph, Vec<Scattered>) {
    let mut g = Graph::new();
    let z = g.input(ELEMENTS + 2);
    let (mean, log_length) = (g.element(z, 0), g.element(z, 1));
    let f = g.slice(z, 2, ELEMENTS);
    let distances: Vec<f64> = (0..ELEMENTS * ELEMENTS)
        .map(|at| -APART * (at % ELEMENTS).abs_diff(at / ELEMENTS) as f64)
        .collect();
    let distances = g.vector(&distances);
    let rate = g.neg(log_length);
    let rate = g.exp(rate);
    let scaled = g.mul(rate, distances);
    let kernel = g.exp(scaled);
    let factor = g.cholesky(kernel, ELEMENTS);
    let off = g.sub(f, mean);
    let white = g.tri_solve(factor, off, ELEMENTS, 1, false);
    let square = g.square(white);
    let square = g.sum(square);
    let prior = g.scale(-0.5, square);
    let indices: Vec<u32> = (0..ELEMENTS).map(|i| (i * (ELEMENTS + 1)) as u32).collect();
    let diagonal = g.gather(factor, &indices);
    let logs = g.log(diagonal);
    let log_det = g.sum(logs);
    let prior = g.sub(prior, log_det);
    let seen = g.slice(f, 0, SEEN.len());
    let data = g.vector(&SEEN.map(|(data, _)| data));
    let errors = g.vector(&SEEN.map(|(_, error)| blur * error));
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let terms = [
        normal(&mut g, mean, zero, one),
        normal(&mut g, log_length, zero, one),
        normal(&mut g, data, seen, errors),
        prior,
    ];
    let total = terms.into_iter().reduce(|a, b| g.add(a, b)).unwrap();
    g.set_outputs(vec![total]);
    let scattered = Scattered {
        values: f,
        location: mean,
        spread: Spread::Factor(factor),
    };
    (g, vec![scattered])
}

fn somewhere(n: usize, by: f64) -> Vec<f64> {
    (0..n).map(|i| (i as f64 * by).sin()).collect()
}

#[test]
fn the_posterior_is_the_same_for_any_sites() {
    let (graph, scattered) = process(1.0);
    let hierarchy = Hierarchy::find(&graph, &scattered).unwrap();
    assert_eq!(hierarchy.together(), [2, 3, 4, 5, 6, 7]);
    let tilde = somewhere(ELEMENTS + 2, 1.7);
    for scale in [0.0, 1.0, 30.0] {
        let site = |coordinate: u32| Site {
            coordinate,
            weight: scale * f64::from(coordinate - 2),
            pull: scale * (f64::from(coordinate) - 4.5),
        };
        let sites: Vec<Site> = hierarchy.together().into_iter().map(site).collect();
        let recentred = hierarchy.recentre(&[], &sites);
        let z = recentred.forward(&tilde);
        assert!((z[4] - tilde[4]).abs() > 1e-3, "{z:?}");
        let back = recentred.backward(&z);
        assert!(tilde.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-11));
        let expected = value(&graph, &z) + log_jacobian(&recentred, &tilde);
        let found = value(&recentred.density, &tilde);
        assert!((found - expected).abs() < 1e-7, "{found} for {expected}");
    }
    // A vector stays unchanged if one of its coordinates has no site.
    let sites: Vec<Site> = (2..7).map(Site::vague).collect();
    assert_eq!(hierarchy.recentre(&[], &sites).forward(&tilde), tilde);
}

#[test]
fn sites_are_what_normal_data_say_wherever_they_are_asked_for() {
    let (graph, scattered) = process(1.0);
    let hierarchy = Hierarchy::find(&graph, &scattered).unwrap();
    for by in [0.9, 2.3] {
        let sites = hierarchy.sites(&somewhere(ELEMENTS + 2, by));
        let (unseen, seen) = sites.split_last().unwrap();
        for (site, (data, error)) in seen.iter().zip(SEEN) {
            let weight = 1.0 / (error * error);
            assert!((site.weight / weight - 1.0).abs() < 1e-9, "{site:?}");
            assert!(
                (site.pull - data * weight).abs() < 1e-9 * weight,
                "{site:?}"
            );
        }
        assert!(unseen.weight.abs() < 1e-9 && unseen.pull.abs() < 1e-9);
    }
    // If the data are weak, the vector is only whitened.
    let (graph, scattered) = process(10.0);
    let hierarchy = Hierarchy::find(&graph, &scattered).unwrap();
    let sites = hierarchy.sites(&somewhere(ELEMENTS + 2, 0.9));
    assert!(
        sites
            .iter()
            .all(|site| *site == Site::vague(site.coordinate))
    );
}

#[test]
fn given_what_normal_data_say_vectors_are_standard_normal_and_independent() {
    let (graph, scattered) = process(1.0);
    let hierarchy = Hierarchy::find(&graph, &scattered).unwrap();
    let n = ELEMENTS + 2;
    let recentred = hierarchy.recentre(&[], &hierarchy.sites(&vec![0.1; n]));
    let same = |z: &mut [f64]| z[2..].fill(0.0);
    for by in [0.7, 1.3, 2.9] {
        let tilde = somewhere(n, by);
        let mut origin = tilde.clone();
        same(&mut origin);
        let fallen = value(&recentred.density, &tilde) - value(&recentred.density, &origin);
        let expected: f64 = tilde[2..].iter().map(|x| -0.5 * x * x).sum();
        assert!((fallen - expected).abs() < 1e-9, "{fallen} for {expected}");
    }
}
