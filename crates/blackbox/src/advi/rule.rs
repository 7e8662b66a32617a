//! Stan's stopping rule on relative changes of the bound.

/// Stan's stopping rule on relative changes of the bound.
#[derive(Clone, Debug, PartialEq)]
pub struct RelativeRule {
    pub(super) capacity: usize,
    pub(super) changes: Vec<f64>,
    pub(super) last: f64,
}

impl RelativeRule {
    /// Creates the rule for a run of at most `max_iterations` iterations that estimates the bound every `eval_elbo`
    /// iterations.
    pub fn new(max_iterations: u64, eval_elbo: u64) -> Self {
        let capacity = (0.1 * max_iterations as f64 / eval_elbo as f64).max(2.0);
        Self {
            capacity: capacity as usize,
            changes: Vec::new(),
            last: 0.0,
        }
    }

    /// Adds an estimate of the bound, and returns the mean and the median of the window of relative changes.
    pub fn push(&mut self, elbo: f64) -> (f64, f64) {
        let change = ((self.last - elbo) / elbo).abs();
        self.last = elbo;
        if self.changes.len() == self.capacity {
            self.changes.remove(0);
        }
        self.changes.push(change);
        let mean = self.changes.iter().sum::<f64>() / self.changes.len() as f64;
        let mut sorted = self.changes.clone();
        sorted.sort_by(f64::total_cmp);
        (mean, sorted[sorted.len() / 2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_relative_rule_by_hand() {
        // The window has two values for this short run, and ten values by default.
        let mut rule = RelativeRule::new(500, 100);
        assert_eq!(rule.push(-10.0), (1.0, 1.0));
        // |(−10 + 8)/−8| = 0.25. The upper median of two values is the larger one.
        assert_eq!(rule.push(-8.0), (0.625, 1.0));
        assert_eq!(rule.push(-8.0), (0.125, 0.25));
        assert_eq!(rule.push(-8.0), (0.0, 0.0));
        assert_eq!(RelativeRule::new(10_000, 100).capacity, 10);
    }
}
