//! Counter-based random numbers. Every number is a function of the seed, the purpose, the iteration, the lane and the
//! position.
//!
//! The generator is Philox4x32-10 (Salmon et al. 2011). The seed, the purpose and the iteration determine a key, which
//! is computed by one Philox block. The lane and the position form the counter for this key. Draws share no state, so
//! the numbers do not depend on how the work is divided among threads, lanes and runs.

use crate::simd::{F64x8, LANES, Simd};
use crate::vmath;
use rand_core::TryRng;
use std::convert::Infallible;

const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// The purpose for which random numbers are generated. Numbers of different purposes are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Purpose(u32);

impl Purpose {
    /// Creates the purpose with this name. Equal names give equal random numbers.
    pub const fn new(name: &str) -> Self {
        Self(0x811c_9dc5).fold(name)
    }

    /// Creates a purpose with its own name within this purpose.
    pub const fn fold(self, name: &str) -> Self {
        // FNV-1a over the name and a terminator, so that the name parts ("a", "bc") and ("ab", "c") give different
        // hashes.
        let bytes = name.as_bytes();
        let mut hash = self.0;
        let mut i = 0;
        while i < bytes.len() {
            hash = (hash ^ bytes[i] as u32).wrapping_mul(0x0100_0193);
            i += 1;
        }
        Self((hash ^ 0xff).wrapping_mul(0x0100_0193))
    }
}

/// The use of a key. It is stored in the highest word of the counter, so that different uses of one key give different
/// numbers.
#[derive(Clone, Copy)]
enum Use {
    Sequential = 0,
    Uniforms = 1,
    Normals = 2,
}

/// Computes one block of Philox4x32-10.
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let mut c = counter;
    let mut k = key;
    for _ in 0..ROUNDS {
        let p = [
            MULTIPLIERS[0] * u64::from(c[0]),
            MULTIPLIERS[1] * u64::from(c[2]),
        ];
        c = [
            (p[1] >> 32) as u32 ^ c[1] ^ k[0],
            p[1] as u32,
            (p[0] >> 32) as u32 ^ c[3] ^ k[1],
            p[0] as u32,
        ];
        k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
    }
    c
}

fn key(seed: u64, purpose: Purpose, iteration: u64) -> [u32; 2] {
    let counter = [iteration as u32, (iteration >> 32) as u32, purpose.0, 0];
    let [a, b, ..] = philox(counter, [seed as u32, (seed >> 32) as u32]);
    [a, b]
}

/// The counters of the lanes differ in their first pair of words. The vector multiplication requires each word in the
/// low half of a 64-bit number, and the result has the same form.
#[allow(clippy::needless_range_loop)] // Plain index loops over the lanes are what becomes vector code.
#[inline(always)]
fn philox_lanes(first_lane: u64, position: u32, using: Use, key: [u32; 2]) -> [[u64; LANES]; 4] {
    let mut c = [
        [0; LANES],
        [0; LANES],
        [u64::from(position); LANES],
        [using as u64; LANES],
    ];
    for l in 0..LANES {
        let lane = first_lane.wrapping_add(l as u64);
        c[0][l] = lane & 0xffff_ffff;
        c[1][l] = lane >> 32;
    }
    let mut k = key;
    for _ in 0..ROUNDS {
        let (k0, k1) = (u64::from(k[0]), u64::from(k[1]));
        for l in 0..LANES {
            let p0 = (c[0][l] & 0xffff_ffff) * MULTIPLIERS[0];
            let p1 = (c[2][l] & 0xffff_ffff) * MULTIPLIERS[1];
            c[0][l] = (p1 >> 32) ^ c[1][l] ^ k0;
            c[1][l] = p1 & 0xffff_ffff;
            c[2][l] = (p0 >> 32) ^ c[3][l] ^ k1;
            c[3][l] = p0 & 0xffff_ffff;
        }
        k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
    }
    c
}

/// Returns the midpoint of one of `2^52` equal intervals of (0, 1). Neither 0 nor 1 can occur, and `u` and `1 - u` are
/// equally likely.
#[inline(always)]
fn open_unit(bits: u64) -> f64 {
    f64::from_bits((bits >> 12) | 1f64.to_bits()) - (1.0 - 0.5 * f64::EPSILON)
}

/// Writes element `(d, l)` to `out[d * lanes + l]`. One Philox block yields two rows.
#[inline(always)]
fn fill<V: F64x8>(
    key: [u32; 2],
    using: Use,
    first_lane: u64,
    lanes: usize,
    out: &mut [f64],
    f: impl Fn(V) -> V,
) {
    for (pair, rows) in out.chunks_mut(2 * lanes).enumerate() {
        for start in (0..lanes).step_by(LANES) {
            let width = LANES.min(lanes - start);
            let c = philox_lanes(
                first_lane.wrapping_add(start as u64),
                pair as u32,
                using,
                key,
            );
            for (row, out) in rows.chunks_exact_mut(lanes).enumerate() {
                let mut u = [0.0; LANES];
                for l in 0..LANES {
                    u[l] = open_unit(c[2 * row][l] | c[2 * row + 1][l] << 32);
                }
                let x = f(V::from_array(u));
                let out = &mut out[start..start + width];
                if width == LANES {
                    // SAFETY: the row has room for eight numbers here.
                    unsafe { x.store(out.as_mut_ptr()) };
                } else {
                    out.copy_from_slice(&x.to_array()[..width]);
                }
            }
        }
    }
}

crate::simd_fn! {
    fn uniforms, uniforms_fn = <V>(key: [u32; 2], first_lane: u64, lanes: usize, out: &mut [f64]) {
        fill::<V>(key, Use::Uniforms, first_lane, lanes, out, #[inline(always)] |u| u)
    }

    fn normals, normals_fn = <V>(key: [u32; 2], first_lane: u64, lanes: usize, out: &mut [f64]) {
        fill::<V>(key, Use::Normals, first_lane, lanes, out, #[inline(always)] |u| vmath::inv_phi(u))
    }
}

/// Fills `out` with uniform numbers in the open interval (0, 1). `out` has `dim` rows of `lanes` contiguous numbers.
///
/// Element `(d, l)`, at `out[d * lanes + l]`, depends only on (seed, purpose, iteration), the lane `first_lane + l` and
/// the row `d`. It does not depend on the SIMD level.
///
/// # Panics
/// Panics if `out.len() != dim * lanes`.
#[allow(clippy::too_many_arguments)]
pub fn fill_uniforms(
    simd: Simd,
    seed: u64,
    purpose: Purpose,
    iteration: u64,
    first_lane: u64,
    dim: usize,
    lanes: usize,
    out: &mut [f64],
) {
    assert_eq!(
        out.len(),
        dim * lanes,
        "the output must have dim * lanes elements"
    );
    if lanes > 0 {
        uniforms(simd, key(seed, purpose, iteration), first_lane, lanes, out);
    }
}

/// Fills `out` with standard normal numbers by inverting the distribution function. `out` has `dim` rows of `lanes`
/// contiguous numbers.
///
/// Element `(d, l)`, at `out[d * lanes + l]`, depends only on (seed, purpose, iteration), the lane `first_lane + l` and
/// the row `d`. AVX-512 and AVX2 give the same bits, and the scalar level agrees with them up to rounding. No number
/// exceeds 8.2 in magnitude.
///
/// # Panics
/// Panics if `out.len() != dim * lanes`.
#[allow(clippy::too_many_arguments)]
pub fn fill_normals(
    simd: Simd,
    seed: u64,
    purpose: Purpose,
    iteration: u64,
    first_lane: u64,
    dim: usize,
    lanes: usize,
    out: &mut [f64],
) {
    assert_eq!(
        out.len(),
        dim * lanes,
        "the output must have dim * lanes elements"
    );
    if lanes > 0 {
        normals(simd, key(seed, purpose, iteration), first_lane, lanes, out);
    }
}

/// A sequential random stream that implements the traits of the `rand` ecosystem. Use it if one draw determines how
/// many further draws are needed.
///
/// Streams with different keys or lanes are independent of each other and of the blocks of [`fill_uniforms`] and
/// [`fill_normals`]. A stream repeats itself after 2^34 numbers of 32 bits.
#[derive(Clone, Debug)]
pub struct Stream {
    key: [u32; 2],
    lane: u64,
    block: u32,
    words: [u32; 4],
    used: usize,
}

impl Stream {
    /// Creates the stream for a key and a lane.
    pub fn new(seed: u64, purpose: Purpose, iteration: u64, lane: u64) -> Self {
        Self {
            key: key(seed, purpose, iteration),
            lane,
            block: 0,
            words: [0; 4],
            used: 4,
        }
    }

    /// Creates the stream for another lane with the same key.
    pub fn of_lane(&self, lane: u64) -> Self {
        Self {
            key: self.key,
            lane,
            block: 0,
            words: [0; 4],
            used: 4,
        }
    }

    fn word(&mut self) -> u32 {
        if self.used == 4 {
            let counter = [
                self.lane as u32,
                (self.lane >> 32) as u32,
                self.block,
                Use::Sequential as u32,
            ];
            self.words = philox(counter, self.key);
            self.block = self.block.wrapping_add(1);
            self.used = 0;
        }
        self.used += 1;
        self.words[self.used - 1]
    }

    fn double_word(&mut self) -> u64 {
        u64::from(self.word()) | u64::from(self.word()) << 32
    }

    /// Returns a uniform number in the open interval (0, 1).
    pub fn uniform(&mut self) -> f64 {
        open_unit(self.double_word())
    }

    /// Returns an unbiased uniform integer in `0..n` by Lemire's method (2019), or 0 for `n = 0`.
    pub fn below(&mut self, n: u64) -> u64 {
        let mut product = u128::from(self.double_word()) * u128::from(n);
        if (product as u64) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u64) < threshold {
                product = u128::from(self.double_word()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// Shuffles the elements uniformly by the Fisher-Yates algorithm.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.word())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.double_word())
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        for chunk in out.chunks_mut(4) {
            chunk.copy_from_slice(&self.word().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

/// Returns a uniformly random permutation of `0..n`. It depends only on the seed, the purpose and the iteration.
/// Minibatch methods use the permutation as the order of the records in an epoch.
pub fn permutation(seed: u64, purpose: Purpose, iteration: u64, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    Stream::new(seed, purpose, iteration, 0).shuffle(&mut order);
    order
}
