//! Tests that compare every family with finite differences and closed forms.

use std::sync::Arc;

use jensen_density::{Lanes, LanesMut, Pattern};

use super::check::{check_maps, moved};
use super::{Conditional, Family, FamilyKind, Passes, Space, check_family};
use crate::noise::{NoisePurpose, NoiseSource};

const DIM: usize = 4;
const LANES: usize = 6;

fn families() -> Vec<Arc<dyn Family>> {
    let mut families = affine();
    families.extend(conditionals().map(|family| Arc::new(family) as Arc<dyn Family>));
    families
}

fn conditionals() -> [Conditional; 3] {
    let lists = vec![vec![1, 3], vec![0, 2, 3], vec![1, 3], vec![0, 1, 2]];
    let chain = || Space {
        dim: DIM,
        pattern: Some(Arc::new(Pattern::new(lists.clone()))),
    };
    let star = Conditional::new(star());
    assert_eq!(star.globals(), [2]);
    [
        star,
        Conditional::with_globals(chain(), vec![3]),
        Conditional::with_globals(chain(), vec![0, 3]),
    ]
}

fn affine() -> Vec<Arc<dyn Family>> {
    [
        FamilyKind::MeanField,
        FamilyKind::FullRank,
        FamilyKind::LowRank { rank: 2 },
        FamilyKind::Sparse,
    ]
    .map(|kind| kind.build(star()))
    .into()
}

fn star() -> Space {
    let lists = vec![vec![2], vec![2], vec![0, 1, 3], vec![2]];
    Space {
        dim: DIM,
        pattern: Some(Arc::new(Pattern::new(lists))),
    }
}

fn normals(rows: usize, lanes: usize, iteration: u64) -> Vec<f64> {
    let mut out = vec![0.0; rows * lanes];
    NoiseSource::new(3, jensen_math::simd::Simd::detect()).fill(
        NoisePurpose::Draws,
        iteration,
        0,
        rows,
        lanes,
        &mut out,
    );
    out
}

fn random_omega(family: &dyn Family) -> Vec<f64> {
    let mut omega = family.diagonal(&[0.3, -1.0, 2.0, 0.1], &[0.2, -0.4, 0.0, 0.5]);
    for (x, e) in omega.iter_mut().zip(normals(family.parameters(), 1, 9)) {
        *x += 0.2 * e;
    }
    omega
}

fn close(a: &[f64], b: &[f64], tolerance: f64) {
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() < tolerance * (1.0 + b.abs()), "{i}: {a} {b}");
    }
}

/// The tests below have smaller tolerances than the public check. They also compare values with closed forms.
#[test]
fn families_pass_the_check_for_families_of_callers() {
    let mixture = FamilyKind::Mixture { components: 3 }.build(DIM);
    for family in affine().into_iter().chain([mixture]) {
        check_family(&*family).unwrap();
    }
    // In the tail of a global parameter, the local parameters vary too little to integrate their density over the
    // draws.
    for family in conditionals() {
        check_maps(&family).unwrap();
    }
}

#[test]
fn push_and_pull_are_the_derivative_and_its_transpose() {
    for family in families() {
        let omega = random_omega(&*family);
        let noise = normals(family.noise_dim(), LANES, 0);
        let noise = Lanes::new(&noise, family.noise_dim(), LANES);
        let direction = normals(family.parameters(), 1, 1);
        let transformed = |t: f64| {
            let mut z = vec![0.0; DIM * LANES];
            let z_view = LanesMut::new(&mut z, DIM, LANES);
            family.transform(&moved(&omega, &direction, t), noise, z_view);
            z
        };
        let h = 1e-5;
        let (up, down) = (transformed(h), transformed(-h));
        let difference: Vec<f64> = up
            .iter()
            .zip(&down)
            .map(|(a, b)| (a - b) / (2.0 * h))
            .collect();
        let mut pushed = vec![0.0; DIM * LANES];
        family.push(
            &omega,
            &direction,
            noise,
            LanesMut::new(&mut pushed, DIM, LANES),
        );
        close(&pushed, &difference, 1e-8);

        let grad = normals(DIM, LANES, 2);
        let pull = |omega: &[f64]| {
            let mut out = vec![0.0; family.parameters()];
            family.pull(omega, noise, Lanes::new(&grad, DIM, LANES), &mut out);
            out
        };
        let left: f64 = pushed.iter().zip(&grad).map(|(a, b)| a * b).sum();
        let right: f64 = pull(&omega)
            .iter()
            .zip(&direction)
            .map(|(a, b)| a * b)
            .sum();
        assert!((left - right).abs() < 1e-12 * (1.0 + left.abs()));

        // At a fixed gradient, the derivative of `pull` is the second-order term.
        let (up, down) = (
            pull(&moved(&omega, &direction, h)),
            pull(&moved(&omega, &direction, -h)),
        );
        let difference: Vec<f64> = up
            .iter()
            .zip(&down)
            .map(|(a, b)| (a - b) / (2.0 * h))
            .collect();
        let mut second = vec![0.0; family.parameters()];
        let grad = Lanes::new(&grad, DIM, LANES);
        family.pull_second(&omega, &direction, noise, grad, &mut second);
        close(&second, &difference, 1e-7);
    }
}

#[test]
fn entropy_derivatives_agree_with_differences() {
    for family in families() {
        let omega = random_omega(&*family);
        let direction = normals(family.parameters(), 1, 1);
        let gradient = |omega: &[f64]| {
            let mut out = vec![0.0; family.parameters()];
            family.add_entropy_gradient(omega, &mut out);
            out
        };
        let h = 1e-5;
        let (up, down) = (moved(&omega, &direction, h), moved(&omega, &direction, -h));
        let slope = (family.entropy(&up) - family.entropy(&down)) / (2.0 * h);
        let dot: f64 = gradient(&omega)
            .iter()
            .zip(&direction)
            .map(|(a, b)| a * b)
            .sum();
        assert!((slope - dot).abs() < 1e-8, "{slope} {dot}");
        let difference: Vec<f64> = gradient(&up)
            .iter()
            .zip(gradient(&down))
            .map(|(a, b)| (a - b) / (2.0 * h))
            .collect();
        let mut product = vec![0.0; family.parameters()];
        family.add_entropy_hvp(&omega, &direction, &mut product);
        close(&product, &difference, 1e-7);
    }
}

fn dense_log_density(family: &dyn Family, omega: &[f64], z: &[f64]) -> f64 {
    let rows = family.noise_dim();
    // Applied to unit noise vectors, the transformation yields the columns of the linear map.
    let mut map = vec![0.0; DIM * rows];
    for k in 0..rows {
        let mut unit = vec![0.0; rows];
        unit[k] = 1.0;
        let mut out = vec![0.0; DIM];
        family.transform(
            omega,
            Lanes::new(&unit, rows, 1),
            LanesMut::new(&mut out, DIM, 1),
        );
        for i in 0..DIM {
            map[i * rows + k] = out[i] - omega[i];
        }
    }
    let mut covariance = vec![0.0; DIM * DIM];
    for i in 0..DIM {
        for j in 0..DIM {
            covariance[i * DIM + j] = (0..rows)
                .map(|k| map[i * rows + k] * map[j * rows + k])
                .sum();
        }
    }
    let l = crate::dense::cholesky(&covariance, DIM).unwrap();
    let mut x: Vec<f64> = (0..DIM).map(|i| z[i] - omega[i]).collect();
    crate::dense::solve_lower(&l, &mut x);
    let log_det: f64 = (0..DIM).map(|i| l[i * DIM + i].ln()).sum();
    -0.5 * x.iter().map(|x| x * x).sum::<f64>()
        - log_det
        - DIM as f64 * jensen_math::constants::HALF_LOG_TWO_PI
}

#[test]
fn log_density_and_score_agree_with_dense_algebra() {
    for family in affine() {
        let omega = random_omega(&*family);
        let noise = normals(family.noise_dim(), LANES, 0);
        let noise = Lanes::new(&noise, family.noise_dim(), LANES);
        let mut z = vec![0.0; DIM * LANES];
        family.transform(&omega, noise, LanesMut::new(&mut z, DIM, LANES));
        let z = Lanes::new(&z, DIM, LANES);
        let (mut values, mut score) = (vec![0.0; LANES], vec![0.0; DIM * LANES]);
        family.log_density(&omega, noise, z, &mut values);
        family.score(&omega, noise, z, LanesMut::new(&mut score, DIM, LANES));
        for lane in 0..LANES {
            let mut point = vec![0.0; DIM];
            z.copy_lane(lane, &mut point);
            let expected = dense_log_density(&*family, &omega, &point);
            assert!((values[lane] - expected).abs() < 1e-11);
            for i in 0..DIM {
                let h = 1e-5;
                let mut up = point.clone();
                up[i] += h;
                let mut down = point.clone();
                down[i] -= h;
                let slope = (dense_log_density(&*family, &omega, &up)
                    - dense_log_density(&*family, &omega, &down))
                    / (2.0 * h);
                assert!((score[i * LANES + lane] - slope).abs() < 1e-6 * (1.0 + slope.abs()));
            }
        }
    }
}

#[test]
fn entropy_is_minus_the_mean_log_density() {
    // E log q = −H. At zero noise, `log_density` lacks the mean of ½ε². Subtracting that mean yields −H exactly.
    for family in affine() {
        let omega = random_omega(&*family);
        let zero = vec![0.0; family.noise_dim()];
        let mean = family.mean(&omega).to_vec();
        let mut value = [0.0];
        family.log_density(
            &omega,
            Lanes::new(&zero, family.noise_dim(), 1),
            Lanes::new(&mean, DIM, 1),
            &mut value,
        );
        assert!((family.entropy(&omega) - (0.5 * DIM as f64 - value[0])).abs() < 1e-12);
    }
}

#[test]
fn a_lane_does_not_depend_on_its_batch() {
    for family in families().into_iter().chain(curved()) {
        let omega = match family.begins_at() {
            Some(_) => curved_omega(&*family),
            None => random_omega(&*family),
        };
        let noise = normals(family.noise_dim(), LANES, 0);
        let mut z = vec![0.0; DIM * LANES];
        family.transform(
            &omega,
            Lanes::new(&noise, family.noise_dim(), LANES),
            LanesMut::new(&mut z, DIM, LANES),
        );
        for lane in 0..LANES {
            let one: Vec<f64> = noise.iter().skip(lane).step_by(LANES).copied().collect();
            let mut alone = vec![0.0; DIM];
            family.transform(
                &omega,
                Lanes::new(&one, family.noise_dim(), 1),
                LanesMut::new(&mut alone, DIM, 1),
            );
            for i in 0..DIM {
                assert_eq!(alone[i].to_bits(), z[i * LANES + lane].to_bits());
            }
        }
    }
}

fn curved() -> Vec<Arc<dyn Family>> {
    [
        FamilyKind::Mixture { components: 3 },
        FamilyKind::Flow { layers: 5 },
    ]
    .map(|kind| kind.build(DIM))
    .into()
}

/// Returns a member that uses all parts of its family: a mixture of three components, or networks whose last layer is
/// nonzero.
fn curved_omega(family: &dyn Family) -> Vec<f64> {
    let gaussian = random_omega(&*FamilyKind::FullRank.build(DIM));
    let modes = [0.5, -2.0].map(|m| (vec![m; DIM], vec![0.1 * m; DIM]));
    let mut omega = family.upon(&gaussian, &modes).unwrap();
    if let Some(FamilyKind::Flow { .. }) = family.name().kind() {
        for (x, e) in omega.iter_mut().zip(normals(family.parameters(), 1, 9)) {
            *x += 0.2 * e;
        }
    }
    omega
}

fn placed(family: &dyn Family, omega: &[f64], noise: &[f64], lanes: usize) -> Vec<f64> {
    let mut z = vec![0.0; DIM * lanes];
    let noise = Lanes::new(noise, family.noise_dim(), lanes);
    family.transform(omega, noise, LanesMut::new(&mut z, DIM, lanes));
    z
}

fn density_at(family: &dyn Family, omega: &[f64], z: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; z.len() / DIM];
    family.log_density_at(omega, Lanes::new(z, DIM, out.len()), &mut out);
    out
}

#[test]
fn densities_of_curved_families_are_those_of_their_draws() {
    for family in curved() {
        let omega = curved_omega(&*family);
        let noise = normals(family.noise_dim(), LANES, 0);
        let z = placed(&*family, &omega, &noise, LANES);
        let (mut values, mut score) = (vec![0.0; LANES], vec![0.0; DIM * LANES]);
        let view = Lanes::new(&noise, family.noise_dim(), LANES);
        let draws = Lanes::new(&z, DIM, LANES);
        family.log_density(&omega, view, draws, &mut values);
        close(&density_at(&*family, &omega, &z), &values, 1e-11);
        family.score(&omega, view, draws, LanesMut::new(&mut score, DIM, LANES));
        let h = 1e-5;
        for i in 0..DIM {
            let moved = |by: f64| {
                let mut z = z.clone();
                z[i * LANES..(i + 1) * LANES]
                    .iter_mut()
                    .for_each(|z| *z += by);
                density_at(&*family, &omega, &z)
            };
            let (up, down) = (moved(h), moved(-h));
            let slopes: Vec<f64> = up
                .iter()
                .zip(&down)
                .map(|(a, b)| (a - b) / (2.0 * h))
                .collect();
            close(&score[i * LANES..(i + 1) * LANES], &slopes, 1e-6);
        }
    }
}

#[test]
fn a_mixture_is_the_sum_of_its_gaussians() {
    let family = FamilyKind::Mixture { components: 3 }.build(DIM);
    let single = FamilyKind::FullRank.build(DIM);
    let omega = curved_omega(&*family);
    let z = normals(DIM, LANES, 4);
    let mut sums = [0.0; LANES];
    for (weight, block) in omega[..3]
        .iter()
        .zip(omega[3..].chunks(single.parameters()))
    {
        for (lane, sum) in sums.iter_mut().enumerate() {
            let point: Vec<f64> = z[lane..].iter().step_by(LANES).copied().collect();
            *sum += weight * dense_log_density(&*single, block, &point).exp();
        }
    }
    let logs: Vec<f64> = sums.iter().map(|s| s.ln()).collect();
    close(&density_at(&*family, &omega, &z), &logs, 1e-11);
    // With 200 000 draws, a mean has an error of .003 standard deviations, and a standard deviation has a relative
    // error of .003.
    let count = 200_000;
    let draws = placed(&*family, &omega, &normals(DIM + 1, count, 5), count);
    for (i, (mean, sd)) in family
        .mean(&omega)
        .iter()
        .zip(family.marginal_sd(&omega))
        .enumerate()
    {
        let own = jensen_math::sum::Moments::of(&draws[i * count..(i + 1) * count]);
        let (own_mean, own_sd) = (own.mean(), own.variance().sqrt());
        assert!((own_mean - mean).abs() < 0.015 * sd, "{own_mean} {mean}");
        assert!((own_sd / sd - 1.0).abs() < 0.015, "{own_sd} {sd}");
    }
}

#[test]
fn a_flow_stretches_as_its_jacobian_says_and_begins_at_its_gaussian() {
    let family = FamilyKind::Flow { layers: 5 }.build(DIM);
    let omega = curved_omega(&*family);
    let noise = normals(DIM, 1, 0);
    let h = 1e-5;
    let mut jacobian = [0.0; DIM * DIM];
    for k in 0..DIM {
        let moved = |by: f64| {
            let mut noise = noise.clone();
            noise[k] += by;
            placed(&*family, &omega, &noise, 1)
        };
        let (up, down) = (moved(h), moved(-h));
        for i in 0..DIM {
            jacobian[i * DIM + k] = (up[i] - down[i]) / (2.0 * h);
        }
    }
    // log |J| = ½ log |J Jᵀ|.
    let mut gram = vec![0.0; DIM * DIM];
    for i in 0..DIM {
        for j in 0..DIM {
            gram[i * DIM + j] = (0..DIM)
                .map(|k| jacobian[i * DIM + k] * jacobian[j * DIM + k])
                .sum();
        }
    }
    let factor = crate::dense::cholesky(&gram, DIM).unwrap();
    let log_det: f64 = (0..DIM).map(|i| factor[i * DIM + i].ln()).sum();
    let square: f64 = noise.iter().map(|e| e * e).sum();
    let expected = -0.5 * square - DIM as f64 * jensen_math::constants::HALF_LOG_TWO_PI - log_det;
    let z = placed(&*family, &omega, &noise, 1);
    let found = density_at(&*family, &omega, &z)[0];
    assert!((found - expected).abs() < 1e-7, "{found}, not {expected}");

    let single = FamilyKind::FullRank.build(DIM);
    let gaussian = random_omega(&*single);
    let omega = family.upon(&gaussian, &[]).unwrap();
    let noise = normals(DIM, LANES, 0);
    close(
        &placed(&*family, &omega, &noise, LANES),
        &placed(&*single, &gaussian, &noise, LANES),
        1e-12,
    );
}

#[test]
fn a_flow_pulls_gradients_back_to_its_networks() {
    let family = FamilyKind::Flow { layers: 5 }.build(DIM);
    let omega = curved_omega(&*family);
    let fixed = FamilyKind::FullRank.build(DIM).parameters();
    let noise = normals(DIM, LANES, 0);
    let grad = normals(DIM, LANES, 2);
    let mut direction = normals(family.parameters(), 1, 1);
    direction[..fixed].fill(0.0);
    let mut pulled = vec![0.0; family.parameters()];
    family.pull(
        &omega,
        Lanes::new(&noise, DIM, LANES),
        Lanes::new(&grad, DIM, LANES),
        &mut pulled,
    );
    assert!(pulled[..fixed].iter().all(|g| *g == 0.0));
    let h = 1e-6;
    let at = |t: f64| placed(&*family, &moved(&omega, &direction, t), &noise, LANES);
    let (up, down) = (at(h), at(-h));
    let slope: f64 = up
        .iter()
        .zip(&down)
        .zip(&grad)
        .map(|((a, b), g)| (a - b) / (2.0 * h) * g)
        .sum();
    let product: f64 = pulled.iter().zip(&direction).map(|(a, b)| a * b).sum();
    assert!(
        (slope - product).abs() < 1e-6 * (1.0 + slope.abs()),
        "{slope} {product}"
    );
}

#[test]
fn locals_given_globals_have_the_density_of_their_draws() {
    for family in conditionals() {
        let omega = random_omega(&family);
        let noise = normals(DIM, LANES, 0);
        let z = placed(&family, &omega, &noise, LANES);
        let density = |noise: &[f64]| {
            let mut out = vec![0.0; LANES];
            let noise = Lanes::new(noise, DIM, LANES);
            family.log_density(&omega, noise, noise, &mut out);
            out
        };
        fn view(x: &[f64]) -> Lanes<'_> {
            Lanes::new(x, DIM, LANES)
        }
        let mut score = vec![0.0; DIM * LANES];
        let out = LanesMut::new(&mut score, DIM, LANES);
        family.score(&omega, view(&noise), view(&z), out);
        let grad = normals(DIM, LANES, 2);
        let (mut drawn, mut pulled) = (vec![0.0; DIM * LANES], vec![0.0; DIM * LANES]);
        let mut passes = Passes::default();
        family.passes(
            &omega,
            view(&noise),
            &mut LanesMut::new(&mut drawn, DIM, LANES),
            &mut passes,
        );
        assert_eq!(drawn, z);
        let out = LanesMut::new(&mut pulled, DIM, LANES);
        family.pull_density(&omega, view(&noise), &mut passes, view(&grad), out);
        let h = 1e-5;
        let mut jacobians = vec![[0.0; DIM * DIM]; LANES];
        for k in 0..DIM {
            let moved = |by: f64| {
                let mut noise = noise.clone();
                let row = noise[k * LANES..(k + 1) * LANES].iter_mut();
                row.for_each(|e| *e += by);
                noise
            };
            let (up, down) = (moved(h), moved(-h));
            let at = |noise: &[f64]| placed(&family, &omega, noise, LANES);
            let (z_up, z_down) = (at(&up), at(&down));
            let (log_up, log_down) = (density(&up), density(&down));
            let (det_up, det_down) = (
                family.log_dets(&omega, view(&up)),
                family.log_dets(&omega, view(&down)),
            );
            for l in 0..LANES {
                let mut by_score = 0.0;
                let mut by_grad = (det_up[l] - det_down[l]) / (2.0 * h);
                for i in 0..DIM {
                    let slope = (z_up[i * LANES + l] - z_down[i * LANES + l]) / (2.0 * h);
                    by_score += score[i * LANES + l] * slope;
                    by_grad += grad[i * LANES + l] * slope;
                    jacobians[l][i * DIM + row_of(&family, k)] = slope;
                }
                let slope = (log_up[l] - log_down[l]) / (2.0 * h);
                assert!((by_score - slope).abs() < 1e-6, "{by_score} {slope}");
                let found = pulled[k * LANES + l];
                assert!((by_grad - found).abs() < 1e-6, "{by_grad} {found}");
            }
        }
        for (l, (jacobian, log_q)) in jacobians.iter().zip(density(&noise)).enumerate() {
            let gram = |i: usize, j: usize| {
                let row = |i: usize| &jacobian[i * DIM..(i + 1) * DIM];
                row(i).iter().zip(row(j)).map(|(a, b)| a * b).sum::<f64>()
            };
            let gram: Vec<f64> = (0..DIM * DIM).map(|at| gram(at / DIM, at % DIM)).collect();
            let factor = crate::dense::cholesky(&gram, DIM).unwrap();
            let log_det: f64 = (0..DIM).map(|i| factor[i * DIM + i].ln()).sum();
            let square: f64 = (0..DIM).map(|k| noise[k * LANES + l].powi(2)).sum();
            let constant = DIM as f64 * jensen_math::constants::HALF_LOG_TWO_PI;
            let expected = -0.5 * square - constant - log_det;
            assert!((log_q - expected).abs() < 1e-7, "{log_q} {expected}");
        }
    }
}

fn row_of(family: &Conditional, row: usize) -> usize {
    let mut order = family.globals().iter().chain(family.locals());
    *order.nth(row).unwrap()
}

#[test]
fn moments_of_locals_given_globals_are_those_of_draws() {
    for family in conditionals() {
        // The scales depend on the global parameters only as much as they do in fits, because draws do not determine
        // the moments of longer tails.
        let plain = family.diagonal(&[0.3, -1.0, 2.0, 0.1], &[0.2, -0.4, 0.0, 0.5]);
        let random = random_omega(&family);
        let pairs = plain.iter().zip(&random);
        let omega: Vec<f64> = pairs.map(|(p, r)| 0.6 * p + 0.4 * r).collect();
        // With 200 000 draws, a mean has an error of .003 standard deviations, and a standard deviation and the entropy
        // have a relative error of .003.
        let count = 200_000;
        let noise = normals(DIM, count, 5);
        let draws = placed(&family, &omega, &noise, count);
        let (mean, sd) = (family.mean(&omega), family.marginal_sd(&omega));
        for (i, (mean, sd)) in mean.iter().zip(&sd).enumerate() {
            let own = jensen_math::sum::Moments::of(&draws[i * count..(i + 1) * count]);
            let (own_mean, own_sd) = (own.mean(), own.variance().sqrt());
            assert!((own_mean - mean).abs() < 0.015 * sd, "{own_mean} {mean}");
            assert!((own_sd / sd - 1.0).abs() < 0.02, "{own_sd} {sd}");
        }
        let mut log_q = vec![0.0; count];
        let view = Lanes::new(&noise, DIM, count);
        family.log_density(&omega, view, view, &mut log_q);
        let entropy = -log_q.iter().sum::<f64>() / count as f64;
        assert!((entropy - family.entropy(&omega)).abs() < 0.02);
    }
}

#[test]
fn family_names_parse_back() {
    for text in [
        "meanfield",
        "fullrank",
        "lowrank=7",
        "sparse",
        "conditional",
        "mixture=3",
        "flow=4",
    ] {
        assert_eq!(text.parse::<FamilyKind>().unwrap().to_string(), text);
    }
    assert_eq!(
        "mixture".parse::<FamilyKind>().unwrap().to_string(),
        "mixture=8"
    );
    assert!("lowrank".parse::<FamilyKind>().is_err());
    assert!("lowrank=0".parse::<FamilyKind>().is_err());
    assert!("normal".parse::<FamilyKind>().is_err());
}
