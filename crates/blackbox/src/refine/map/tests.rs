use super::*;
use crate::family::Space;
use crate::reduce::dot;
use jensen_density::{Lanes, LanesMut, Pattern};

fn wave(n: usize, scale: f64) -> Vec<f64> {
    (0..n)
        .map(|i| scale * (1.7 * i as f64 + 0.3).sin())
        .collect()
}

#[test]
fn maps_make_the_families_standard_normal() {
    let (dim, lanes) = (7, 5);
    for kind in [
        FamilyKind::MeanField,
        FamilyKind::FullRank,
        FamilyKind::LowRank { rank: 3 },
        FamilyKind::Sparse,
    ] {
        let family = kind.build(dim);
        let mut omega = family.diagonal(&wave(dim, 2.0), &wave(dim, 0.7));
        let spread = wave(omega.len(), 0.4);
        omega.iter_mut().zip(spread).for_each(|(o, s)| *o += s);
        let approximation = Approximation::new(kind, dim, omega.clone()).unwrap();
        let base = Map::of(&approximation);
        let mut triangle = vec![0.0; dim * dim];
        for (i, row) in triangle.chunks_mut(dim).enumerate() {
            row[..i].copy_from_slice(&wave(i, 0.3));
            row[i] = 1.5;
        }
        let whitenings = [
            None,
            Some(Root::Diagonal(
                wave(dim, 0.3).iter().map(|x| x.exp()).collect(),
            )),
            Some(Root::lower(triangle, dim)),
        ];
        for whitening in whitenings {
            let map = whitening
                .as_ref()
                .map_or(base.clone(), |w| base.after_root(w));
            let x = wave(dim * lanes, 1.3);
            let mut placed = Placed::default();
            map.apply(&x, lanes, &mut placed);
            let z = placed.z.clone();
            let z = &z;
            let back = map.origin(z.clone(), lanes);
            assert!(x.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-11));
            // Checks ⟨g, A x⟩ = ⟨Aᵀ g, x⟩, summed over the lanes.
            let (g, mut pulled) = (wave(dim * lanes, 1.1), vec![0.0; dim * lanes]);
            map.pull(&x, &mut placed, &g, lanes, &mut pulled);
            let centre = map.draws(&vec![0.0; dim * lanes], lanes);
            let moved: Vec<f64> = z.iter().zip(&centre).map(|(z, c)| z - c).collect();
            assert!((dot(&g, &moved) - dot(&pulled, &x)).abs() < 1e-11);
            if let Some(w) = whitening {
                assert!((map.log_det - base.log_det - w.log_det()).abs() < 1e-12);
            }
        }
        // Compares log q by the family, at draws from its own noise, with log q by the map.
        let noise = wave(family.noise_dim() * lanes, 0.9);
        let noise = Lanes::new(&noise, family.noise_dim(), lanes);
        let (mut z, mut log_q) = (vec![0.0; dim * lanes], vec![0.0; lanes]);
        family.transform(&omega, noise, LanesMut::new(&mut z, dim, lanes));
        family.log_density(&omega, noise, Lanes::new(&z, dim, lanes), &mut log_q);
        let squares = Map::squares(&base.origin(z.clone(), lanes), lanes);
        for (log_q, square) in log_q.iter().zip(squares) {
            let constant = 0.5 * dim as f64 * std::f64::consts::TAU.ln() + base.log_det;
            assert!((log_q + 0.5 * square + constant).abs() < 1e-10);
        }
    }
}

/// In this test, the map includes a tail transform. The test compares the gradient, including the log Jacobian, with
/// finite differences, and checks that the map is invertible.
#[test]
fn tail_transforms_are_part_of_the_map() {
    let (dim, lanes) = (9, 2);
    let mut lists = vec![vec![0u32]; dim];
    lists[..2].fill((0..dim as u32).collect());
    (2..dim).for_each(|i| lists[i].extend([1, i as u32]));
    let space = Space {
        dim,
        pattern: Some(Arc::new(Pattern::new(lists))),
    };
    let tail = [0.0, 0.2, 0.7, 0.1, 0.6, 0.3, 1.4];
    for kind in [FamilyKind::Conditional, FamilyKind::FullRank] {
        let family = kind.build(space.clone());
        let mut omega = family.diagonal(&wave(dim, 2.0), &wave(dim, 0.7));
        let spread = wave(omega.len(), 0.3);
        omega.iter_mut().zip(spread).for_each(|(o, s)| *o += s);
        let base = Map::of(&Approximation::new(kind, space.clone(), omega).unwrap());
        let root = Root::Diagonal(wave(dim, 0.3).iter().map(|x| x.exp()).collect());
        let shown = Shown {
            root: Some(root.clone()),
            tails: Tails::from_numbers(&tail, dim).unwrap(),
        };
        let map = base.after(&shown);
        let x = wave(dim * lanes, 1.3);
        let mut middle = map.middle(&x, lanes);
        shown.tails.invert(&mut middle, lanes);
        let mut back = base.origin(middle, lanes);
        root.solve(&mut back, lanes);
        assert!(x.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-11));
        let mut placed = Placed::default();
        map.apply(&x, lanes, &mut placed);
        assert_eq!(placed.log_det, map.log_dets(&x, lanes));
        // This is the gradient of the log density Σ cᵢ zᵢ.
        let slope = wave(dim, 0.9);
        let value = |x: &[f64]| -> Vec<f64> {
            let (z, mut out) = (map.draws(x, lanes), map.log_dets(x, lanes));
            for (c, row) in slope.iter().zip(z.chunks(lanes)) {
                out.iter_mut().zip(row).for_each(|(out, z)| *out += c * z);
            }
            out
        };
        let grad: Vec<f64> = slope.iter().flat_map(|c| [*c; 2]).collect();
        let mut pulled = vec![0.0; dim * lanes];
        map.pull(&x, &mut placed, &grad, lanes, &mut pulled);
        let h = 1e-6;
        for i in 0..dim {
            let moved = |by: f64| {
                let mut x = x.clone();
                let row = &mut x[i * lanes..(i + 1) * lanes];
                row.iter_mut().for_each(|x| *x += by);
                value(&x)
            };
            let (up, down) = (moved(h), moved(-h));
            for l in 0..lanes {
                let difference = (up[l] - down[l]) / (2.0 * h);
                let own = pulled[i * lanes + l];
                assert!(
                    (difference - own).abs() < 1e-7 * (1.0 + own.abs()),
                    "{kind}, {i}: {own}, not {difference}"
                );
            }
        }
    }
}
