//! Tests of the random numbers: known values, independence of the memory layout, and the distribution.

use jensen_math::rng::{Purpose, Stream, fill_normals, fill_uniforms, permutation, philox};
use jensen_math::simd::Simd;
use rand_core::Rng;

const PURPOSE: Purpose = Purpose::new("test");

#[test]
fn philox_gives_the_published_answers() {
    // The values are from Random123, kat_vectors, "philox4x32 10".
    let cases = [
        (
            [0; 4],
            [0; 2],
            [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
        ),
        (
            [u32::MAX; 4],
            [u32::MAX; 2],
            [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
        ),
        (
            [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
            [0xa4093822, 0x299f31d0],
            [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
        ),
    ];
    for (counter, key, want) in cases {
        assert_eq!(philox(counter, key), want);
    }
}

type Fill = fn(Simd, u64, Purpose, u64, u64, usize, usize, &mut [f64]);

#[test]
fn numbers_do_not_depend_on_the_layout() {
    let (dim, lanes) = (5, 29);
    for fill in [fill_normals as Fill, fill_uniforms as Fill] {
        let mut whole = vec![0.0; dim * lanes];
        fill(
            Simd::detect(),
            3,
            PURPOSE,
            7,
            (1 << 32) - 9,
            dim,
            lanes,
            &mut whole,
        );
        for simd in Simd::available() {
            let mut start = 0;
            for width in [8, 1, 3, 16, 1] {
                for rows in [dim, 2, 3] {
                    let mut part = vec![0.0; rows * width];
                    fill(
                        simd,
                        3,
                        PURPOSE,
                        7,
                        (1 << 32) - 9 + start as u64,
                        rows,
                        width,
                        &mut part,
                    );
                    for d in 0..rows {
                        for l in 0..width {
                            let (a, b) = (part[d * width + l], whole[d * lanes + start + l]);
                            let near = simd == Simd::Scalar && (a - b).abs() <= 1e-14 * b.abs();
                            assert!(
                                a.to_bits() == b.to_bits() || near,
                                "{simd}: row {d}, lane {}",
                                start + l
                            );
                        }
                    }
                }
                start += width;
            }
        }
    }
}

#[test]
fn empty_blocks_are_legal() {
    fill_normals(Simd::detect(), 1, PURPOSE, 0, 0, 3, 0, &mut []);
    fill_uniforms(Simd::detect(), 1, PURPOSE, 0, 0, 0, 3, &mut []);
}

#[test]
fn every_part_of_the_key_matters() {
    let draw = |seed, purpose, iteration, lane| {
        let mut out = [0.0; 2];
        fill_normals(
            Simd::detect(),
            seed,
            purpose,
            iteration,
            lane,
            2,
            1,
            &mut out,
        );
        let stream = Stream::new(seed, purpose, iteration, lane).next_u64();
        (out.map(f64::to_bits), stream)
    };
    let base = draw(1, PURPOSE, 2, 3);
    let others = [
        draw(2, PURPOSE, 2, 3),
        draw(1 | 1 << 40, PURPOSE, 2, 3),
        draw(1, PURPOSE.fold("more"), 2, 3),
        draw(1, PURPOSE, 3, 3),
        draw(1, PURPOSE, 2 | 1 << 40, 3),
        draw(1, PURPOSE, 2, 4),
        draw(1, PURPOSE, 2, 3 | 1 << 40),
    ];
    assert_eq!(base, draw(1, PURPOSE, 2, 3));
    for other in others {
        assert!(base.0 != other.0 && base.0[0] != other.0[1] && base.1 != other.1);
    }
    assert_ne!(Purpose::new("a").fold("bc"), Purpose::new("ab").fold("c"));
    assert_ne!(Purpose::new("a"), Purpose::new("b"));
}

/// The largest accepted z-score. A correct generator exceeds it with probability 1e-6. The seeds are fixed, so the test
/// is deterministic.
const LIMIT: f64 = 4.9;

#[test]
fn normals_have_normal_moments_and_tails() {
    let (dim, lanes) = (64, 8192);
    let n = (dim * lanes) as f64;
    let mut z = vec![0.0; dim * lanes];
    for seed in [0, 1, 0xdead_beef_0000_0001] {
        fill_normals(Simd::detect(), seed, PURPOSE, 5, 0, dim, lanes, &mut z);
        let moment = |k: i32| z.iter().map(|z| z.powi(k)).sum::<f64>() / n;
        // Each row contains a power, followed by the expectation and the variance of that power of a standard normal
        // number.
        for (k, mean, variance) in [
            (1, 0.0, 1.0),
            (2, 1.0, 2.0),
            (3, 0.0, 15.0),
            (4, 3.0, 96.0),
            (6, 15.0, 10170.0),
        ] {
            let score = (moment(k) - mean) / (f64::sqrt(variance) / n.sqrt());
            assert!(
                score.abs() < LIMIT,
                "seed {seed}: moment {k} is off by {score} standard errors"
            );
        }
        for (threshold, p) in [
            (1.0, 0.15865525393145707),
            (2.0, 0.022750131948179212),
            (3.5, 2.32629079035525e-4),
        ] {
            for sign in [-1.0, 1.0] {
                let count = z.iter().filter(|&&z| sign * z > threshold).count() as f64;
                let score = (count - n * p) / (n * p * (1.0 - p)).sqrt();
                assert!(
                    score.abs() < LIMIT,
                    "seed {seed}: tail {threshold} is off by {score}"
                );
            }
        }
        // Neighbours in both directions are uncorrelated, and so are the two halves of a block.
        for lag in [1, lanes, 2 * lanes] {
            let covariance: f64 = (0..z.len() - lag).map(|i| z[i] * z[i + lag]).sum();
            let score = covariance / ((z.len() - lag) as f64).sqrt();
            assert!(
                score.abs() < LIMIT,
                "seed {seed}: lag {lag} correlates, {score}"
            );
        }
    }
}

/// Returns the chi-square statistic of counts with equal expectations, converted to a normal score (Wilson and
/// Hilferty).
fn chi_square_score(counts: &[usize]) -> f64 {
    let total: usize = counts.iter().sum();
    let expected = total as f64 / counts.len() as f64;
    let statistic: f64 = counts
        .iter()
        .map(|&c| (c as f64 - expected).powi(2) / expected)
        .sum();
    let dof = counts.len() as f64 - 1.0;
    let spread = 2.0 / (9.0 * dof);
    ((statistic / dof).cbrt() - (1.0 - spread)) / spread.sqrt()
}

#[test]
fn uniforms_and_streams_fill_their_range_evenly() {
    let mut u = vec![0.0; 1 << 18];
    fill_uniforms(Simd::detect(), 11, PURPOSE, 0, 0, 4, 1 << 16, &mut u);
    assert!(u.iter().all(|&u| u > 0.0 && u < 1.0));
    let mut stream = Stream::new(11, PURPOSE, 0, 0);
    let (mut blocks, mut sequence, mut integers) = (vec![0; 1000], vec![0; 1000], vec![0; 1000]);
    for &u in &u {
        blocks[(u * 1000.0) as usize] += 1;
        sequence[(stream.uniform() * 1000.0) as usize] += 1;
        integers[stream.below(1000) as usize] += 1;
    }
    for counts in [&blocks, &sequence, &integers] {
        assert!(chi_square_score(counts).abs() < LIMIT);
    }
    assert_eq!(stream.below(0), 0);
    assert_eq!(stream.below(1), 0);
}

#[test]
fn a_stream_is_the_same_in_words_and_bytes() {
    let mut a = Stream::new(5, PURPOSE, 1, 2);
    let mut b = a.clone();
    let mut c = a.clone();
    let mut bytes = [0; 24];
    b.fill_bytes(&mut bytes);
    for chunk in bytes.chunks_exact(8) {
        let word = a.next_u64();
        assert_eq!(word.to_le_bytes(), chunk);
        assert_eq!(
            u64::from(c.next_u32()) | u64::from(c.next_u32()) << 32,
            word
        );
    }
}

#[test]
fn permutations_are_uniform_and_keyed() {
    let order = permutation(1, PURPOSE, 0, 100);
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..100).collect::<Vec<_>>());
    assert_eq!(order, permutation(1, PURPOSE, 0, 100));
    assert_ne!(order, permutation(1, PURPOSE, 1, 100));
    let mut counts = vec![0; 256];
    for iteration in 0..24_000 {
        let code = permutation(2, PURPOSE, iteration, 4)
            .iter()
            .fold(0, |code, &i| 4 * code + i);
        counts[code] += 1;
    }
    counts.retain(|&c| c > 0);
    assert_eq!(counts.len(), 24);
    assert!(chi_square_score(&counts).abs() < LIMIT);
    assert!(permutation(1, PURPOSE, 0, 0).is_empty());
}
