//! Generates inputs by changing other inputs.

/// A generator of random numbers (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    /// Returns a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    /// Returns a random element.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

const PIECES: [&str; 28] = [
    "0",
    "-1",
    "1",
    "2147483647",
    "-2147483648",
    "99999999999999999999",
    "1e308",
    "1e-320",
    "NaN",
    "Inf",
    "-inf",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "<lower=",
    "target +=",
    "for (i in 1:10)",
    "while (1)",
    "vector[3] v;",
    "real x;",
    "\u{0}",
    "\u{1b}[31m",
    "é",
    "\"",
    "\n",
];

/// Returns one of the seeds, to which one to six changes have been made.
pub fn mutated(seeds: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = dice.pick(seeds).clone();
    for _ in 0..=dice.below(6) {
        let at = dice.below(bytes.len() + 1);
        let end = (at + 1 + dice.below(20)).min(bytes.len());
        match dice.below(7) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let part = bytes[at..end].to_vec();
                let to = dice.below(bytes.len() + 1);
                bytes.splice(to..to, part);
            }
            3 => {
                let piece = dice.pick(&PIECES).bytes();
                bytes.splice(at..at, piece);
            }
            4 => {
                let other = dice.pick(seeds);
                let from = dice.below(other.len() + 1);
                let to = (from + dice.below(80)).min(other.len());
                bytes.splice(at..at, other[from..to].to_vec());
            }
            5 if at < bytes.len() => bytes[at] = dice.below(256) as u8,
            _ if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            _ => {}
        }
    }
    bytes
}
