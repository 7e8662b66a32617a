//! Conditionally conjugate exponential families (Mandt et al. 2016, Eq. 7), which are the class of models that this
//! crate fits.
//!
//! Global parameters β have exponential-family priors with natural parameters α. Given β, every data point has log
//! p(x_i, z_i | β) = t(β)·T(x_i, z_i) + constant. A local step then needs only E[t(β)] under q(β), and the global step
//! needs only E[T(x_i, z_i)] under q(z_i). Both vectors have as many elements as there are natural parameters. A model
//! defines its priors, its local step, its statistics and its normaliser. The drivers and the temperature policies
//! provide everything else.

use std::collections::BTreeMap;
use std::ops::Range;

use jensen_math::rng::Stream;

use crate::family::Blocks;
use crate::plain::Plain;
use crate::shards::PointShards;

/// The result of the local step of one point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Local {
    /// E_q[log p(x_i, z_i | β)] in nats, without tempering and with all constants.
    pub energy: f64,
    /// The entropy H(q(z_i)), in nats.
    pub entropy: f64,
    /// Number of inner iterations, if the local step iterates.
    pub sweeps: u32,
    /// Whether an iterated local step ended by its stopping rule.
    pub converged: bool,
}

/// Counts the points of each size. Returns the distinct sizes in ascending order, each with the number of points that
/// have it.
pub fn count_sizes(sizes: impl Iterator<Item = f64>) -> Vec<(f64, f64)> {
    count_weighted(sizes.map(|size| (size, 1.0)))
}

/// Adds the weights of the points of each size. Returns the distinct sizes in ascending order, each with the sum of the
/// weights.
pub fn count_weighted(sizes: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut counts: BTreeMap<u64, f64> = BTreeMap::new();
    for (size, weight) in sizes {
        // The bits of positive numbers sort in the same order as the numbers.
        *counts.entry(size.to_bits()).or_default() += weight;
    }
    let pairs = counts.into_iter();
    pairs.map(|(bits, n)| (f64::from_bits(bits), n)).collect()
}

/// A conditionally conjugate model together with its data.
pub trait ConjugateModel: Sync {
    /// Memory of a local step. It stores q(z_i) of the last point.
    type Scratch: Default + Send;

    /// Returns the name of the model in files.
    fn name(&self) -> &'static str;

    /// Returns the number of data points.
    fn points(&self) -> usize;

    /// Returns the size of a point, for example its number of tokens or the length of a sequence. The normaliser of the
    /// point depends on its size. If all points are alike, their sizes are 1.
    fn size(&self, point: usize) -> f64 {
        let _ = point;
        1.0
    }

    /// Returns the number of equal points that a point stands for.
    fn weight(&self, point: usize) -> f64 {
        let _ = point;
        1.0
    }

    /// Returns the distinct sizes of points in ascending order, each with the number of points that have it.
    fn sizes(&self) -> Vec<(f64, f64)> {
        count_sizes((0..self.points()).map(|point| self.size(point)))
    }

    /// Returns the shards that run the local steps if the points are in other processes. In that case
    /// [`points`](Self::points) counts the points of all shards, and methods that take a single point are not called.
    fn elsewhere(&self) -> Option<&dyn PointShards> {
        None
    }

    /// Returns the families and priors of the global parameters.
    fn blocks(&self) -> &Blocks;

    /// Returns initial natural parameters. The random stream makes the components differ.
    fn start(&self, stream: &mut Stream) -> Vec<f64>;

    /// Returns, for each component, state or factor, the range of its natural parameters. Permuting these ranges does
    /// not change the model.
    fn parts(&self) -> Vec<Range<usize>>;

    /// Returns the number of parameters of each component that it does not share with others. The other parameters in
    /// its range are common to all components.
    fn own_parameters(&self) -> usize {
        self.parts().first().map_or(1, Range::len)
    }

    /// Returns the largest share of the statistics that comes from the random start while a cooling policy is hot. This
    /// share prevents components from merging permanently (see [`driver`](crate::driver)).
    ///
    /// A share of 0.1 suffices for components that separate by themselves at some temperature above 1.
    fn lean(&self) -> f64 {
        0.1
    }

    /// Returns the number of values of q(z_i) that are stored between two visits of a point. Iterated local steps start
    /// from these values. Without such warm starts, the bound of batch ascent may fall. Every stored value is initially
    /// 0.5.
    fn memory(&self) -> usize {
        0
    }

    /// Maximises τ E[log p(x_i, z_i | β)] + H(q(z_i)) over q(z_i), given E[t(β)].
    fn local(
        &self,
        expected: &[f64],
        point: usize,
        inverse: f64,
        memory: &mut [f64],
        scratch: &mut Self::Scratch,
    ) -> Local;

    /// Adds `weight` · E_q[T(x_i, z_i)], where q(z_i) is the result of the last local step.
    fn add_statistics(&self, point: usize, weight: f64, scratch: &Self::Scratch, out: &mut [f64]);

    /// If the model restricts q to a smaller family, projects the natural parameters to the closest member of this
    /// family. The method is called after every global step.
    fn restrict(&self, lambda: &mut [f64]) {
        let _ = lambda;
    }

    /// Brings the components into the order with the best bound, if their order matters. The method is called after every
    /// global step, except for steps that lean on the start.
    fn rearrange(&self, lambda: &mut [f64]) {
        let _ = lambda;
    }

    /// Moves the data of components to other components where this may raise the bound, so that they are left with their
    /// priors. Returns whether there are such components, or `None` if the model never leaves components empty. It then
    /// gives equal components other starts.
    fn merge(&self, lambda: &mut [f64]) -> Option<bool> {
        let _ = lambda;
        None
    }

    /// Returns log ∫ p(x_i, z_i | β)^s dx_i dz_i for a point of size `size`, where `t` is a value of t(β). The result
    /// is 0 at s = 1.
    fn log_normaliser(&self, t: &[f64], size: f64, s: f64) -> f64;

    /// Returns the amount that the units of the data add to the bound of all points, in nats. If the data are
    /// standardised but densities are reported in the original units, it is −Σ log of the scale of every known value.
    /// This amount does not depend on the fit.
    fn log_jacobian(&self) -> f64 {
        0.0
    }

    /// Returns the plain model, in which a single component explains the same points, if there is such a model.
    fn plain(&self) -> Option<Plain> {
        None
    }

    /// Returns whether the log normaliser depends on β. If it does not, log C(T) has an exact formula.
    fn normaliser_depends_on_globals(&self) -> bool {
        true
    }

    /// Returns whether C(T) = E[Π_i ∫ p(x_i, z_i | β)^s] is finite under the prior. For example, it is infinite for
    /// Gaussian components with unknown precisions, because the smallest precisions dominate. Policies then use
    /// Jensen's lower bound, which is the mean of the logarithm.
    fn partition_is_finite(&self) -> bool {
        true
    }
}

/// Two components are twins if the distance between their distributions is less than this, in nats per value.
///
/// Two components with the same data have a distance of 0. If one component has twice as much of the same data, the
/// distance is an eighth of a nat per value. Components that distinguish points, even if only by noise, differ by about
/// a nat per value, and the difference grows with the number of points.
const TWINS: f64 = 0.25;

/// Finds pairs of equal components. Each component is paired with the first component that equals it. Components
/// without data do not count as twins.
///
/// The distance is the symmetric Kullback–Leibler divergence of the components' distributions, (λᵢ − λⱼ)·(E tᵢ − E tⱼ).
/// It does not depend on the origin or the units of the data.
pub fn twins<M: ConjugateModel>(model: &M, lambda: &[f64]) -> Vec<(usize, usize)> {
    let (parts, blocks) = (model.parts(), model.blocks());
    let own = model.own_parameters().max(1) as f64;
    let prior = blocks.prior();
    let expected = blocks.expectations(lambda);
    let unmoved = blocks.expectations(prior);
    let distance = |i: &Range<usize>, j: &Range<usize>, other: (&[f64], &[f64])| -> f64 {
        let here = lambda[i.clone()].iter().zip(&expected[i.clone()]);
        let there = other.0[j.clone()].iter().zip(&other.1[j.clone()]);
        let terms = here.zip(there).map(|((l, t), (m, u))| (l - m) * (t - u));
        terms.sum::<f64>().abs() / own
    };
    let holds_data: Vec<bool> = parts
        .iter()
        .map(|part| distance(part, part, (prior, &unmoved)) > TWINS)
        .collect();
    let mut found = Vec::new();
    for (j, part) in parts.iter().enumerate() {
        let twin =
            |i: &usize| holds_data[*i] && distance(&parts[*i], part, (lambda, &expected)) <= TWINS;
        if holds_data[j]
            && let Some(i) = (0..j).find(twin)
        {
            found.push((i, j));
        }
    }
    found
}
