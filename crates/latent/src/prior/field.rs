//! Gaussian Markov random fields. A field has the precision `Q(θ) = Σ_k c_k(θ) S_k`, where the sparse matrices S_k do
//! not depend on θ and share one sparsity pattern. The entries of the Ornstein–Uhlenbeck process are other functions of
//! θ.
//!
//! | family | Q | θ | null space |
//! | --- | --- | --- | --- |
//! | RW1, ICAR, grid RW1 | τ R, R the graph's Laplacian | precision τ | the level of each component |
//! | RW2 | τ DᵀD, D second differences | precision τ | level and slope (ring: level) |
//! | grid RW2 | τ (D₁₁ᵀD₁₁ + 2 D₁₂ᵀD₁₂ + D₂₂ᵀD₂₂), the thin plate | precision τ | level and both slopes |
//! | BYM2 | unstructured part and scaled ICAR, joined | precision τ, share φ | the level of each component |
//! | given | τ S, S from a file | precision τ | none; the level of each component where its rows add up to 0 |
//! | AR(1) | stationary, variance σ² | ρ, variance | none |
//! | Ornstein–Uhlenbeck | AR(1) in continuous time | ρ, variance | none |
//! | correlated effects of groups | I ⊗ Σ⁻¹ | variances, partial correlations | none |
//! | tensor product of B-splines | τ₁ I⊗P₁ + τ₂ P₂⊗I | precisions τ₁, τ₂ | level, both slopes and their product |
//! | exchangeable variables | a I + b J, J contains ones | correlation ρ | none |
//! | copies | G ⊗ Q, G the precision of an autoregression, of exchangeable variables or I | those of Q, correlation of copies | that of Q in each copy |
//! | SPDE on a grid or a mesh | t (κ²C + R) C⁻¹ (κ²C + R), κ = √8/range, t = 1/(4πκ² variance); C = I on a grid | range, variance | none |
//!
//! Nodes without neighbours are independent with distribution N(0, 1/τ), because the Laplacian does not determine their
//! level. References: Rue and Held 2005, chapter 3; Riebler et al. 2016 (BYM2); Lindgren, Rue and Lindström 2011 (SPDE
//! with α = 2, unit cells and Neumann boundaries).

use std::sync::Arc;

use super::copied::Copied;
use super::distribution::Distribution;
use super::graph::{Graph, Lattice};
use super::ornstein;
use super::setting::{self, Setting};
use super::terms::Hyper;
use super::times::Bridge;
use super::walk::Walk;
use crate::linear::Geometry;
use crate::{
    Covariance, CovarianceSensitivity, Curve, Dense, Design, Error, LatentModel, Likelihood,
    Observations, Parameter, Precision, Prior, PriorDensity, Range, Sensitivity, SiteBound, Sparse,
    Structure,
};

#[derive(Clone, Debug)]
pub(super) enum FieldKind {
    /// A single structure matrix with this rank, multiplied by τ.
    Scaled { rank: f64, walk: Option<Walk> },
    /// The terms are the identity on the first half, minus the coupling of the two halves, the identity on the second
    /// half, and R. The eigenvalues of the scaled field determine the prior of φ.
    Bym2 { nodes: f64, scaled: Box<Field> },
    /// The terms are the identity, the identity without the two ends, and the adjacency matrix of the path.
    Ar1 { nodes: f64 },
    /// The precision is tridiagonal, and its entries depend on the distances between neighbouring nodes.
    Ornstein { gaps: Vec<f64> },
    /// Each term is one element of the precision matrix of a group, repeated for all groups.
    Correlated { groups: f64, size: usize },
    /// The terms are I⊗P₁ and P₂⊗I, with the eigenvalues of P₁ and P₂. `held` flat directions are constrained.
    Tensor {
        eigenvalues: [Vec<f64>; 2],
        held: f64,
    },
    /// The terms are the identity and the matrix of ones.
    Exchangeable { nodes: f64 },
    /// The terms are C, R and R C⁻¹ R.
    Spde {
        nodes: f64,
        eigenvalues: Option<Vec<f64>>,
    },
    /// Copies of a field, whose precision is a Kronecker product.
    Copied(Box<Copied>),
}

const SHORT_WALK: usize = 100;

/// The coefficients c_k and the parts of log |Q|₊ that depend on θ, with their derivatives with respect to every
/// hyperparameter.
pub(super) struct Coefficients {
    pub(super) value: Vec<f64>,
    pub(super) slope: Vec<Vec<f64>>,
    pub(super) log_determinant: Option<(f64, Vec<f64>)>,
}

/// A Gaussian Markov random field.
#[derive(Clone, Debug)]
pub struct Field {
    pub(super) family: FieldKind,
    settings: Vec<Setting>,
    pub(super) pattern: Sparse,
    terms: Vec<Vec<f64>>,
    null_space: Option<Dense>,
    /// The part of log |Q|₊ that does not depend on θ.
    constant: f64,
}

pub(super) type Triplets = Vec<(usize, usize, f64)>;

/// The smallest share 1 − φ of the unstructured part of BYM2. Entries of the precision are of the order of 1/(1 − φ) and
/// cancel to numbers of order 1, so at this share the evidence has an error of about 1e-7 per node.
const LEAST_UNSTRUCTURED: f64 = 1e-9;

const FIRST_SHARE: f64 = -8.0;
const SHARE_STEP: f64 = 0.5;
const SHARES: usize = 33;

/// Number of the smallest shares at which cancellation makes the divergence inaccurate.
const SMALL_SHARES: usize = 6;

/// A row sum of a user's matrix counts as 0 if its relative size is below this value.
const FLAT: f64 = 1e-12;

pub(super) fn laplacian(graph: &Graph) -> Triplets {
    let mut entries = Vec::new();
    for i in 0..graph.nodes() {
        let list = graph.neighbours(i);
        entries.push((i, i, list.len().max(1) as f64));
        entries.extend(list.iter().map(|j| (i, *j, -1.0)));
    }
    entries
}

pub(super) fn levels(graph: &Graph) -> Dense {
    let (label, count) = graph.components();
    let mut sizes = vec![0; count];
    label.iter().for_each(|c| sizes[*c] += 1);
    let mut column = vec![None; count];
    let mut columns = 0;
    for (position, size) in column.iter_mut().zip(&sizes) {
        if *size > 1 {
            *position = Some(columns);
            columns += 1;
        }
    }
    let mut null = Dense::zeros(label.len(), columns);
    for (i, c) in label.iter().enumerate() {
        if let Some(j) = column[*c] {
            null.data[j * label.len() + i] = 1.0;
        }
    }
    null
}

pub(super) fn add_square(entries: &mut Triplets, weight: f64, difference: &[(usize, f64)]) {
    for (i, a) in difference {
        for (j, b) in difference {
            entries.push((*i, *j, weight * a * b));
        }
    }
}

fn precision_setting(given: Option<f64>) -> Setting {
    Setting::positive("precision", given, 1.0)
}

impl Field {
    /// Returns an intrinsic field over a graph. The difference between neighbours has the distribution N(0, 1/τ). This
    /// field is called RW1 on a path and ICAR on regions.
    ///
    /// # Errors
    /// Fails if the graph has no node or no edge.
    pub fn laplace(graph: &Graph, precision: Option<f64>) -> Result<Self, Error> {
        if graph.edges().next().is_none() {
            return Err(Error::Prior(
                "an intrinsic field needs a graph with edges; use `iid` for independent nodes"
                    .to_owned(),
            ));
        }
        Self::scaled(
            graph.nodes(),
            laplacian(graph),
            levels(graph),
            precision,
            None,
        )
    }

    /// Returns the discrete thin-plate field on a grid. It penalises second differences along both axes and the mixed
    /// second difference.
    ///
    /// # Errors
    /// Fails if the grid, or a part of it that is separated by holes, is too narrow for second differences.
    pub fn thin_plate(lattice: &Lattice, precision: Option<f64>) -> Result<Self, Error> {
        let mut entries = Vec::new();
        for node in 0..lattice.nodes() {
            let (r, c) = lattice.position(node);
            let at = |down: usize, right: usize| lattice.node(r + down, c + right);
            if let (Some(b), Some(d)) = (at(0, 1), at(0, 2)) {
                add_square(&mut entries, 1.0, &[(node, 1.0), (b, -2.0), (d, 1.0)]);
            }
            if let (Some(b), Some(d)) = (at(1, 0), at(2, 0)) {
                add_square(&mut entries, 1.0, &[(node, 1.0), (b, -2.0), (d, 1.0)]);
            }
            if let (Some(b), Some(d), Some(e)) = (at(0, 1), at(1, 0), at(1, 1)) {
                let twist = [(node, 1.0), (b, -1.0), (d, -1.0), (e, 1.0)];
                add_square(&mut entries, 2.0, &twist);
            }
        }
        // Every node needs a diagonal entry, even if no difference involves the node.
        entries.extend((0..lattice.nodes()).map(|i| (i, i, 0.0)));
        let (label, count) = lattice.graph().components();
        let middle = |x: usize, of: usize| x as f64 - (of - 1) as f64 / 2.0;
        let null = Dense::from_fn(lattice.nodes(), 3 * count, |i, j| {
            let (r, c) = lattice.position(i);
            match (label[i] == j / 3, j % 3) {
                (false, _) => 0.0,
                (true, 0) => 1.0,
                (true, 1) => middle(r, lattice.rows),
                (true, _) => middle(c, lattice.columns),
            }
        });
        Self::scaled(lattice.nodes(), entries, null, precision, None).map_err(|_| {
            Error::Prior(
                "the grid, or a part separated from it by empty cells, is too narrow for second differences; \
                 use `grid(rw1, …)`, or fill the empty cells around that part"
                    .to_owned(),
            )
        })
    }

    /// Returns a field whose precision is τ times a symmetric matrix. If every row of a connected component sums to 0,
    /// the field is intrinsic and flat in the level of that component. Otherwise the matrix must be positive definite.
    ///
    /// # Errors
    /// Fails if the matrix is not square or not symmetric, or if it is not positive definite apart from the flat
    /// levels.
    pub fn given(matrix: Sparse, precision: Option<f64>) -> Result<Self, Error> {
        if matrix.rows != matrix.cols || matrix.rows == 0 {
            return Err(Error::Prior(format!(
                "a precision matrix must be square, but this one has {} rows and {} columns",
                matrix.rows, matrix.cols
            )));
        }
        let nodes = matrix.rows;
        let mut entries: Triplets = Vec::with_capacity(matrix.len());
        let mut neighbours = vec![Vec::new(); nodes];
        let mut flat = vec![true; nodes];
        for j in 0..nodes {
            let (rows, values) = matrix.col(j);
            let scale: f64 = values.iter().map(|x| x.abs()).sum();
            flat[j] = values.iter().sum::<f64>().abs() <= FLAT * scale;
            for (i, x) in rows.iter().zip(values) {
                entries.push((*i, j, *x));
                if *i != j && *x != 0.0 {
                    neighbours[j].push(*i);
                }
            }
        }
        // Every node needs a diagonal entry, even if the file lacks it.
        entries.extend((0..nodes).map(|i| (i, i, 0.0)));
        let (label, count) = Graph::new(neighbours)?.components();
        let mut level: Vec<bool> = vec![true; count];
        label
            .iter()
            .zip(&flat)
            .for_each(|(c, flat)| level[*c] &= *flat);
        let levels: Vec<usize> = (0..count).filter(|c| level[*c]).collect();
        let null = Dense::from_fn(nodes, levels.len(), |i, j| f64::from(label[i] == levels[j]));
        Self::scaled(nodes, entries, null, precision, None)
    }

    pub(super) fn scaled(
        nodes: usize,
        entries: Triplets,
        null: Dense,
        precision: Option<f64>,
        walk: Option<Walk>,
    ) -> Result<Self, Error> {
        let structure = Sparse::from_triplets(nodes, nodes, &entries)?;
        let rank = (nodes - null.cols) as f64;
        let mut field = Self {
            family: FieldKind::Scaled { rank, walk },
            settings: vec![precision_setting(precision)],
            terms: vec![structure.value.clone()],
            pattern: structure,
            null_space: (null.cols > 0).then_some(null),
            constant: 0.0,
        };
        field.constant = match walk {
            Some(walk) => walk.log_determinant,
            None => field.log_determinant()?,
        };
        Ok(field)
    }

    fn log_determinant(&self) -> Result<f64, Error> {
        let nodes = self.pattern.rows;
        // The log determinant that the prior supplies equals the difference between the dual's determinants with and
        // without it.
        let factor = |log_determinant: Option<f64>| {
            Geometry::new(
                &self.alone(self.pattern.clone(), log_determinant),
                false,
                &mut Vec::new(),
            )?
            .factor(&vec![1.0; nodes])
            .ok_or_else(|| Error::Prior("the field's precision has no determinant".to_owned()))
        };
        Ok(factor(Some(0.0))? - factor(None)?)
    }

    pub(super) fn alone(&self, matrix: Sparse, log_determinant: Option<f64>) -> LatentModel {
        let nodes = matrix.rows;
        LatentModel {
            prior: Structure {
                mean: vec![0.0; nodes],
                covariance: Covariance::Precision(Precision {
                    matrix,
                    null_space: self.null_space.clone(),
                    log_determinant,
                }),
            },
            design: Design::Identity,
            likelihood: Likelihood::gaussian(1.0),
            bound: SiteBound::Exact,
            observations: Observations::new(vec![0.0; nodes]),
        }
    }

    /// Returns the BYM2 field `(√(1−φ) v + √φ u)/√τ` on a graph, where v is independent and the intrinsic field u is
    /// scaled to a generalised variance of 1 in each component. The latent variables are the sums, followed by u.
    ///
    /// # Errors
    /// Fails if the graph has no edges.
    pub fn bym2(graph: &Graph, precision: Option<f64>, phi: Option<f64>) -> Result<Self, Error> {
        let n = graph.nodes();
        let plain = Self::laplace(graph, Some(1.0))?;
        let (label, count) = graph.components();
        let scale = super::scaling::factors(&plain, &label, count)?;
        let diagonal = |from: usize| (0..n).map(move |i| (from + i, from + i, 1.0)).collect();
        let coupling = (0..n)
            .flat_map(|i| [(i, n + i, -1.0), (n + i, i, -1.0)])
            .collect();
        let within: Triplets = (laplacian(graph).iter())
            .map(|(i, j, x)| (*i, *j, x * scale[label[*i]]))
            .collect();
        let structure: Triplets = (within.iter())
            .map(|(i, j, x)| (n + i, n + j, *x))
            .collect();
        let levels = plain.null_space.unwrap_or_else(|| Dense::zeros(n, 0));
        let mut scaled = Self {
            constant: 0.0,
            ..Self::from_terms(
                n,
                &[within],
                FieldKind::Scaled {
                    rank: 0.0,
                    walk: None,
                },
                Vec::new(),
            )?
        };
        // The other constructors also store the values of a single structure matrix in the pattern.
        scaled.pattern.value = scaled.terms[0].clone();
        // log |cR|₊ contains (size − 1) log c for each component, and log c for each node without neighbours.
        let mut sizes = vec![0usize; count];
        label.iter().for_each(|c| sizes[*c] += 1);
        let growth: f64 = sizes
            .iter()
            .zip(&scale)
            .map(|(size, c)| (size - 1).max(1) as f64 * c.ln())
            .sum();
        let share = Setting {
            range: Range::Between(0.0, 1.0),
            ..Setting::positive("phi", phi, 0.5)
        };
        let mut field = Self::from_terms(
            2 * n,
            &[diagonal(0), coupling, diagonal(n), structure],
            FieldKind::Bym2 {
                nodes: n as f64,
                scaled: Box::new(Self {
                    constant: plain.constant + growth,
                    null_space: (levels.cols > 0).then(|| levels.clone()),
                    ..scaled
                }),
            },
            vec![precision_setting(precision), share],
        )?;
        // A shift of u within a component also shifts the sum, by an amount that depends on θ. Therefore only the
        // second half is fixed here.
        field.null_space = (levels.cols > 0).then(|| {
            Dense::from_fn(2 * n, levels.cols, |i, j| {
                if i < n { 0.0 } else { levels.get(i - n, j) }
            })
        });
        field.constant = plain.constant + growth;
        Ok(field)
    }

    /// Returns a stationary first-order autoregression along a path. Its variance parameter is the marginal variance.
    ///
    /// # Errors
    /// Fails if there are fewer than two nodes.
    pub fn ar1(nodes: usize, rho: Option<f64>, variance: Option<f64>) -> Result<Self, Error> {
        if nodes < 2 {
            return Err(Error::Prior(
                "an autoregression needs at least two nodes".to_owned(),
            ));
        }
        let rho = Setting {
            range: Range::Between(-1.0, 1.0),
            ..Setting::positive("rho", rho, 0.9)
        };
        let all = (0..nodes).map(|i| (i, i, 1.0)).collect();
        let inner = (1..nodes - 1).map(|i| (i, i, 1.0)).collect();
        let path = (1..nodes)
            .flat_map(|i| [(i - 1, i, 1.0), (i, i - 1, 1.0)])
            .collect();
        Self::from_terms(
            nodes,
            &[all, inner, path],
            FieldKind::Ar1 {
                nodes: nodes as f64,
            },
            vec![rho, Setting::positive("variance", variance, 1.0)],
        )
    }

    pub(super) fn from_terms(
        nodes: usize,
        terms: &[Triplets],
        family: FieldKind,
        settings: Vec<Setting>,
    ) -> Result<Self, Error> {
        let positions: Triplets = (terms.iter().flatten().map(|(i, j, _)| (*i, *j, 0.0))).collect();
        let pattern = Sparse::from_triplets(nodes, nodes, &positions)?;
        let terms = terms
            .iter()
            .map(|entries| {
                let mut values = vec![0.0; pattern.len()];
                for (i, j, x) in entries {
                    let at = pattern.col_start[*j];
                    let position = pattern.col(*j).0.binary_search(i).unwrap_or(0);
                    values[at + position] += x;
                }
                values
            })
            .collect();
        Ok(Self {
            family,
            settings,
            pattern,
            terms,
            null_space: None,
            constant: 0.0,
        })
    }

    /// Returns the intrinsic field that is flat along the columns of `null`. For the scale of the field, all terms have
    /// the coefficient 1.
    pub(super) fn with_flat(mut self, null: Dense) -> Self {
        for term in &self.terms {
            let entries = self.pattern.value.iter_mut().zip(term);
            entries.for_each(|(sum, s)| *sum += s);
        }
        self.null_space = Some(null);
        self
    }

    /// Returns the number of latent variables.
    pub fn len(&self) -> usize {
        self.pattern.rows
    }

    /// Whether the field has no latent variables.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the hyperparameters, including fixed ones.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Sets the prefix of the hyperparameters' names, such as `icar` in `icar.precision`.
    #[must_use]
    pub fn named(mut self, prefix: &str) -> Self {
        for setting in &mut self.settings {
            setting.name = format!("{prefix}.{}", setting.name);
        }
        self
    }

    pub(super) fn hides_determinant(&self) -> bool {
        match &self.family {
            FieldKind::Spde { eigenvalues, .. } => eigenvalues.is_none(),
            FieldKind::Copied(copied) => copied.one.hides_determinant(),
            _ => false,
        }
    }

    /// Returns whether the field's determinant is that of a product of conditional densities. For such a field, the
    /// flat directions depend on θ, so this determinant differs from the determinant of Q.
    pub(super) fn is_oblique(&self) -> bool {
        matches!(self.family, FieldKind::Bym2 { .. })
    }

    pub(super) fn settings_mut(&mut self) -> &mut [Setting] {
        &mut self.settings
    }

    pub(super) fn coefficients(&self, values: &[f64]) -> Coefficients {
        let constant = self.constant;
        match &self.family {
            FieldKind::Scaled { rank, .. } => {
                let tau = values[0];
                Coefficients {
                    value: vec![tau],
                    slope: vec![vec![1.0]],
                    log_determinant: Some((constant + rank * tau.ln(), vec![rank / tau])),
                }
            }
            FieldKind::Bym2 { nodes, .. } => {
                let (tau, phi) = (values[0], values[1]);
                // A shift of u shifts the sum by √(φ/τ), and the prior is flat in the level of the sum.
                let flat = self
                    .null_space
                    .as_ref()
                    .map_or(0.0, |null| null.cols as f64);
                let rest = 1.0 - phi;
                let couple = (tau * phi).sqrt() / rest;
                Coefficients {
                    value: vec![tau / rest, couple, phi / rest, 1.0],
                    slope: vec![
                        vec![1.0 / rest, 0.5 * couple / tau, 0.0, 0.0],
                        vec![
                            tau / (rest * rest),
                            couple * (0.5 / phi + 1.0 / rest),
                            1.0 / (rest * rest),
                            0.0,
                        ],
                    ],
                    log_determinant: Some((
                        constant + nodes * (tau / rest).ln() + flat * (phi / tau).ln(),
                        vec![(nodes - flat) / tau, nodes / rest + flat / phi],
                    )),
                }
            }
            FieldKind::Ar1 { nodes } => {
                let (rho, variance) = (values[0], values[1]);
                let left = 1.0 - rho * rho;
                let scale = 1.0 / (variance * left);
                let value = vec![scale, scale * rho * rho, -scale * rho];
                let by_scale = 2.0 * rho / left;
                Coefficients {
                    slope: vec![
                        vec![
                            scale * by_scale,
                            scale * (by_scale * rho * rho + 2.0 * rho),
                            -scale * (by_scale * rho + 1.0),
                        ],
                        value.iter().map(|c| -c / variance).collect(),
                    ],
                    value,
                    log_determinant: Some((
                        -nodes * variance.ln() - (nodes - 1.0) * left.ln(),
                        vec![(nodes - 1.0) * by_scale, -nodes / variance],
                    )),
                }
            }
            FieldKind::Exchangeable { nodes } => {
                super::exchangeable::coefficients(*nodes, values[0])
            }
            FieldKind::Ornstein { .. } | FieldKind::Copied(_) => {
                unreachable!("its precision is not a sum of terms")
            }
            FieldKind::Correlated { groups, size } => {
                super::correlated::coefficients(*groups, *size, values)
            }
            FieldKind::Tensor { eigenvalues, held } => {
                super::tensor::coefficients(eigenvalues, *held, constant, values)
            }
            FieldKind::Spde { nodes, eigenvalues } => {
                super::stationary::coefficients(*nodes, eigenvalues.as_deref(), values)
            }
        }
    }

    /// Returns the entries of the precision at the values of all hyperparameters, and its log determinant if there is a
    /// formula for it.
    pub(super) fn entries(&self, values: &[f64]) -> (Vec<f64>, Option<f64>) {
        match &self.family {
            FieldKind::Ornstein { gaps } => {
                let entries = ornstein::entries(gaps, values[0], values[1]);
                (entries.value, Some(entries.log_determinant.0))
            }
            FieldKind::Copied(copied) => copied.entries(values, self.constant),
            _ => {
                let coefficients = self.coefficients(values);
                let mut out = vec![0.0; self.pattern.len()];
                for (c, term) in coefficients.value.iter().zip(&self.terms) {
                    for (q, s) in out.iter_mut().zip(term) {
                        *q += c * s;
                    }
                }
                (out, coefficients.log_determinant.map(|(value, _)| value))
            }
        }
    }

    /// Returns the derivatives of a function of the precision with respect to all hyperparameters, from its derivatives
    /// with respect to the entries and to the log determinant.
    pub(super) fn slopes(&self, values: &[f64], by_entry: &[f64], by_log: f64) -> Vec<f64> {
        let through = |term: &Vec<f64>| -> f64 {
            let products: Vec<f64> = term.iter().zip(by_entry).map(|(s, g)| s * g).collect();
            jensen_math::sum::pairwise_sum(&products)
        };
        match &self.family {
            FieldKind::Ornstein { gaps } => {
                let entries = ornstein::entries(gaps, values[0], values[1]);
                let each = entries.slope.iter().zip(entries.log_determinant.1);
                each.map(|(slope, own)| through(slope) + by_log * own)
                    .collect()
            }
            FieldKind::Copied(copied) => copied.slopes(values, by_entry, by_log),
            _ => {
                let coefficients = self.coefficients(values);
                let by_term: Vec<f64> = self.terms.iter().map(through).collect();
                let slopes = coefficients.slope.iter().enumerate();
                slopes
                    .map(|(p, slope)| {
                        let through: f64 = slope.iter().zip(&by_term).map(|(c, g)| c * g).sum();
                        let determinant = match &coefficients.log_determinant {
                            Some((_, slopes)) => by_log * slopes[p],
                            None => 0.0,
                        };
                        through + determinant
                    })
                    .collect()
            }
        }
    }

    /// Returns the field of copies, whose entries and determinant the copies compute.
    pub(super) fn of_copies(
        copied: Copied,
        pattern: Sparse,
        settings: Vec<Setting>,
        null_space: Option<Dense>,
    ) -> Self {
        Self {
            family: FieldKind::Copied(Box::new(copied)),
            settings,
            pattern,
            terms: Vec::new(),
            null_space,
            constant: 0.0,
        }
    }

    pub(super) fn copies(&self) -> Option<&Copied> {
        match &self.family {
            FieldKind::Copied(copied) => Some(copied),
            _ => None,
        }
    }

    /// Constrains flat directions. For each of them, 1 is added to the diagonal of the structure matrix at one of
    /// `nodes`. The columns of `keep` are the combinations of the null columns that remain flat. `log_determinant` is
    /// the amount by which the constraints change the logarithm of the product of the structure matrix's non-zero
    /// eigenvalues.
    pub(super) fn hold(&mut self, nodes: &[usize], keep: &Dense, log_determinant: f64) {
        // The last term of BYM2 is the structure matrix of its intrinsic part. A tensor product may use either term.
        let pattern = &self.pattern;
        let entries = nodes.iter().filter_map(|node| {
            let found = pattern.col(*node).0.binary_search(node);
            found.ok().map(|at| pattern.col_start[*node] + at)
        });
        if let FieldKind::Copied(copied) = &mut self.family {
            copied.hold(entries);
        } else if let Some(structure) = self.terms.last_mut() {
            entries.for_each(|at| structure[at] += 1.0);
        }
        match &mut self.family {
            FieldKind::Scaled { rank, .. } => *rank += nodes.len() as f64,
            FieldKind::Tensor { held, .. } => *held += nodes.len() as f64,
            _ => {}
        }
        self.constant += log_determinant;
        self.null_space = (self.null_space.take())
            .filter(|_| keep.cols > 0)
            .map(|null| super::pin::times(&null, keep));
    }

    /// Returns columns that span the flat directions, except for directions that depend on θ. The columns need not be
    /// orthogonal.
    pub(super) fn flat(&self) -> Option<&Dense> {
        self.null_space.as_ref()
    }

    /// Returns the distribution of the field at a time, given the field at the distances before and after it.
    ///
    /// # Panics
    /// Panics if the field is not a Markov process in continuous time.
    pub(super) fn bridge(&self, values: &[f64], distances: [Option<f64>; 2]) -> Bridge {
        match &self.family {
            FieldKind::Copied(copied) => copied.one.bridge(values, distances),
            FieldKind::Ornstein { .. } => ornstein::bridge(values[0], values[1], distances),
            FieldKind::Scaled {
                walk: Some(Walk { order: 1, .. }),
                ..
            } => Bridge::brownian(1.0 / values[0], distances),
            _ => unreachable!("only these processes have rows at new times"),
        }
    }

    /// Returns how many of the latent variables rows can refer to. For BYM2 it is the first half, and for other fields
    /// all of them.
    pub(super) fn read(&self) -> usize {
        match &self.family {
            FieldKind::Bym2 { nodes, .. } => *nodes as usize,
            _ => self.len(),
        }
    }

    /// Computes the generalised variance at a precision of 1, which is the geometric mean of the marginal variances
    /// (Sørbye and Rue 2014). For intrinsic fields it excludes the flat directions. For a long walk it is that of an
    /// evenly spaced walk over the same distance.
    pub fn spread(&self) -> Result<f64, Error> {
        match &self.family {
            FieldKind::Scaled {
                walk: Some(walk), ..
            } if walk.nodes > SHORT_WALK => {
                let longer = walk.length / SHORT_WALK as f64;
                let short = walk.shortened(SHORT_WALK)?;
                Ok(short.spread()? * longer.powi(2 * walk.order - 1))
            }
            FieldKind::Scaled { .. } | FieldKind::Tensor { .. } => {
                Ok(super::scaling::factors(self, &vec![0; self.len()], 1)?[0])
            }
            _ => Ok(1.0),
        }
    }

    /// Returns the prior of a hyperparameter. A prior on a standard deviation refers to the standard deviation of the
    /// field.
    pub(super) fn prior(
        &self,
        hyper: &Hyper,
        stated: PriorDensity,
        given: Option<Distribution>,
    ) -> Result<PriorDensity, Error> {
        match (hyper.name, given) {
            ("precision", None | Some(Distribution::Tail { .. })) => {
                Ok(stated.of_multiple(self.spread()?.sqrt()))
            }
            ("rho", _) if matches!(self.family, FieldKind::Ornstein { .. }) => {
                Ok(PriorDensity::Positive(Box::new(stated)))
            }
            ("phi", Some(Distribution::Density(density))) => Ok(density),
            ("phi", given) => {
                let (at, probability) = match given {
                    Some(Distribution::Tail { at, probability }) => (at, probability),
                    _ => hyper.usual,
                };
                let distance = Arc::new(self.distance()?);
                Ok(PriorDensity::with_distance(
                    &distance,
                    at.min(1.0 - 1e-9),
                    probability,
                ))
            }
            _ => Ok(stated),
        }
    }

    /// Computes the logarithm of √(2 KLD) as a function of the logit of φ. KLD is the divergence between BYM2 with a
    /// structured share of φ and BYM2 without a structured part. If γ are the eigenvalues of the scaled field's
    /// covariance, then `KLD = ½ Σ (φ(γ−1) − log(1 + φ(γ−1)))`. The determinant is `|(1−φ)cR + φI| / |cR|₊ ·
    /// ((1−φ)/φ)^r` for r flat directions.
    fn distance(&self) -> Result<Curve, Error> {
        let FieldKind::Bym2 { nodes, scaled } = &self.family else {
            return Err(Error::Prior("only BYM2 has a share `phi`".to_owned()));
        };
        let n = *nodes as usize;
        let trace: f64 = super::scaling::variances(scaled)?.iter().sum();
        let flat = scaled
            .null_space
            .as_ref()
            .map_or(0.0, |null| null.cols as f64);
        let unit = Self {
            null_space: None,
            ..(**scaled).clone()
        };
        let values = (0..SHARES).map(|k| {
            let logit = FIRST_SHARE + SHARE_STEP * k as f64;
            let (phi, rest) = (
                jensen_math::special::inv_logit(logit),
                jensen_math::special::inv_logit(-logit),
            );
            let mut matrix = unit.pattern.clone();
            for j in 0..n {
                for k in matrix.col_start[j]..matrix.col_start[j + 1] {
                    let own = if matrix.row[k] == j { phi } else { 0.0 };
                    matrix.value[k] = rest * unit.terms[0][k] + own;
                }
            }
            // This is log |(1−φ)cR + φI|, because the stated determinant is set to 1.
            let determinant =
                Geometry::new(&unit.alone(matrix, Some(0.0)), false, &mut Vec::new())?
                    .factor(&vec![0.0; n])
                    .ok_or_else(|| {
                        Error::Prior("Jensen cannot factorise the graph's precision".to_owned())
                    })?;
            let log = determinant - scaled.constant + flat * (rest / phi).ln();
            let divergence = 0.5 * (phi * (trace - nodes) - log);
            Ok(0.5 * (2.0 * divergence).max(f64::MIN_POSITIVE).ln())
        });
        let values = values.collect::<Result<Vec<f64>, Error>>()?;
        // For small shares the distance is proportional to the share. Using this avoids a cancellation.
        let values = (0..SHARES).map(|k| match k < SMALL_SHARES {
            true => values[SMALL_SHARES] + SHARE_STEP * (k as f64 - SMALL_SHARES as f64),
            false => values[k],
        });
        Ok(Curve::new(FIRST_SHARE, SHARE_STEP, values.collect()))
    }

    fn null_space(&self, values: &[f64]) -> Option<Dense> {
        let mut null = self.null_space.clone()?;
        if let FieldKind::Bym2 { nodes, .. } = &self.family {
            let n = *nodes as usize;
            let follow = (values[1] / values[0]).sqrt();
            for column in null.data.chunks_mut(2 * n) {
                let (sum, structured) = column.split_at_mut(n);
                (sum.iter_mut().zip(structured)).for_each(|(s, u)| *s = follow * *u);
            }
        }
        Some(null)
    }
}

impl Prior for Field {
    fn parameters(&self) -> Vec<Parameter> {
        setting::parameters(&self.settings)
    }

    fn structure(&self, theta: &[f64]) -> Result<Structure, Error> {
        let values = setting::values(&self.settings, theta)?;
        if matches!(self.family, FieldKind::Bym2 { .. }) && 1.0 - values[1] < LEAST_UNSTRUCTURED {
            return Err(Error::Prior(
                "the share `phi` of `bym2` is 1 up to rounding".to_owned(),
            ));
        }
        let (value, log_determinant) = self.entries(&values);
        let matrix = Sparse {
            value,
            ..self.pattern.clone()
        };
        Ok(Structure {
            mean: vec![0.0; self.len()],
            covariance: Covariance::Precision(Precision {
                matrix,
                null_space: self.null_space(&values),
                log_determinant,
            }),
        })
    }

    fn gradient(&self, theta: &[f64], _at: &Structure, sensitivity: &Sensitivity) -> Vec<f64> {
        let failed = || vec![f64::NAN; theta.len()];
        let CovarianceSensitivity::Precision {
            value,
            log_determinant,
        } = &sensitivity.covariance
        else {
            return failed();
        };
        let Ok(values) = setting::values(&self.settings, theta) else {
            return failed();
        };
        let all = self.slopes(&values, value, *log_determinant);
        setting::free_only(&self.settings, &all)
    }
}
