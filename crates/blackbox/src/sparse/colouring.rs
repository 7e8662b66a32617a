//! Directions whose products with a symmetric matrix of a given pattern determine the matrix.

use jensen_density::Pattern;

/// A colouring of the coordinates. Each global parameter has its own colour. Two other coordinates share a colour only
/// if no third local coordinate is a neighbour of both. Consider an element of the matrix and the colours of its two
/// coordinates. In the product of the matrix with the direction of one of these colours, a row consists of this element
/// alone (the direct method of Powell and Toint 1979).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Colouring {
    colours: Vec<u32>,
    global: Vec<bool>,
    count: usize,
}

impl Colouring {
    /// Tries colourings with different numbers of global parameters, and returns the one with the fewest colours.
    pub(crate) fn new(pattern: &Pattern) -> Self {
        let degree = |i: usize| pattern.neighbours(i).len();
        let most = (0..pattern.dim()).map(degree).max().unwrap_or(0);
        // A coordinate is global if it has more neighbours than a limit.
        let limits = std::iter::successors(Some(most), |limit| (*limit > 1).then_some(limit / 2));
        let tried = limits.map(|limit| Self::with_globals(pattern, limit));
        tried
            .min_by_key(|colouring| colouring.count)
            .expect("at least one limit")
    }

    pub(crate) fn full(dim: usize) -> Self {
        Self {
            colours: (0..dim as u32).collect(),
            global: vec![true; dim],
            count: dim,
        }
    }

    fn with_globals(pattern: &Pattern, largest: usize) -> Self {
        let dim = pattern.dim();
        let global: Vec<bool> = (0..dim)
            .map(|i| pattern.neighbours(i).len() > largest)
            .collect();
        let mut colours = vec![u32::MAX; dim];
        let mut taken = vec![usize::MAX; dim + 1];
        let mut count = 0;
        for i in (0..dim).filter(|&i| !global[i]) {
            let mut take = |j: usize| {
                if let Some(colour) = taken.get_mut(colours[j] as usize) {
                    *colour = i;
                }
            };
            for &near in pattern.neighbours(i) {
                let near = near as usize;
                if global[near] {
                    continue;
                }
                take(near);
                pattern
                    .neighbours(near)
                    .iter()
                    .for_each(|&j| take(j as usize));
            }
            let colour = (0..)
                .find(|&c| taken[c] != i)
                .expect("more than neighbours");
            colours[i] = colour as u32;
            count = count.max(colour + 1);
        }
        for i in (0..dim).filter(|&i| global[i]) {
            colours[i] = count as u32;
            count += 1;
        }
        Self {
            colours,
            global,
            count,
        }
    }

    /// Returns the directions, a `dim × count` matrix. Column c is 1 at the coordinates of colour c, and 0 elsewhere.
    pub(crate) fn directions(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.colours.len() * self.count];
        for (row, &colour) in out.chunks_mut(self.count).zip(&self.colours) {
            row[colour as usize] = 1.0;
        }
        out
    }

    pub(crate) fn element(&self, products: &[f64], i: usize, j: usize) -> f64 {
        let at =
            |row: usize, colour: usize| products[row * self.count + self.colours[colour] as usize];
        match (self.global[i], self.global[j]) {
            (true, false) => at(j, i),
            (false, true) => at(i, j),
            _ => 0.5 * (at(i, j) + at(j, i)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of 40 coordinates with two global parameters needs at most five colours.
    #[test]
    fn elements_are_read_back() {
        let dim = 42usize;
        let joined = |i: usize, j: usize| i != j && (i.abs_diff(j) == 1 || i.max(j) >= 40);
        let list = |i: usize| {
            (0..dim)
                .filter(|&j| joined(i, j))
                .map(|j| j as u32)
                .collect()
        };
        let pattern = Pattern::new((0..dim).map(list).collect());
        let colouring = Colouring::new(&pattern);
        assert!(colouring.count <= 5, "{}", colouring.count);
        let value = |i: usize, j: usize| match i == j || joined(i, j) {
            true => 1.0 + (i.min(j) * 100 + i.max(j)) as f64,
            false => 0.0,
        };
        let (count, directions) = (colouring.count, colouring.directions());
        let mut products = vec![0.0; dim * count];
        for i in 0..dim {
            for c in 0..count {
                products[i * count + c] = (0..dim)
                    .map(|j| value(i, j) * directions[j * count + c])
                    .sum();
            }
        }
        for i in 0..dim {
            for j in 0..dim {
                if i == j || joined(i, j) {
                    assert_eq!(colouring.element(&products, i, j), value(i, j), "{i} {j}");
                }
            }
        }
    }
}
