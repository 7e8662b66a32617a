//! Stationary fields: the precision t (κ²C + R) C⁻¹ (κ²C + R) for a diagonal matrix C and a symmetric matrix R (Lindgren,
//! Rue and Lindström 2011). On a grid, C is the identity and R the Laplacian. On a mesh, they are matrices of finite
//! elements.

use super::field::{Coefficients, Field, FieldKind, Triplets};
use super::graph::Lattice;
use super::setting::Setting;
use crate::{Error, Sparse};

impl Field {
    /// Returns a stationary field on a grid that approximates a Matérn field. Its hyperparameters are the range and the
    /// marginal variance far from the border. The range is measured in cells. At this distance, the correlation is
    /// about 0.14.
    ///
    /// # Errors
    /// Fails if the grid has a single cell.
    pub fn spde(
        lattice: &Lattice,
        range: Option<f64>,
        variance: Option<f64>,
    ) -> Result<Self, Error> {
        let graph = lattice.graph();
        let n = lattice.nodes();
        if n < 2 {
            return Err(Error::Prior("a field needs at least two cells".to_owned()));
        }
        let mut border = Vec::new();
        for i in 0..n {
            let list = graph.neighbours(i);
            border.push((i, i, list.len() as f64));
            border.extend(list.iter().map(|j| (i, *j, -1.0)));
        }
        let start = lattice.rows.max(lattice.columns) as f64 / 5.0;
        let eigenvalues = lattice.is_full().then(|| {
            let along = |n: usize| {
                (0..n).map(move |k| 2.0 - 2.0 * (std::f64::consts::PI * k as f64 / n as f64).cos())
            };
            along(lattice.rows)
                .flat_map(|a| along(lattice.columns).map(move |b| a + b))
                .collect()
        });
        let settings = vec![
            Setting::positive("range", range, start.max(2.0)),
            Setting::positive("variance", variance, 1.0),
        ];
        Self::stationary(&vec![1.0; n], border, eigenvalues, settings)
    }

    /// Returns the field with precision t (κ²C + R) C⁻¹ (κ²C + R) for a diagonal matrix C (`mass`) and a symmetric
    /// matrix R (`stiffness`). The eigenvalues of R are known if C is the identity.
    pub(super) fn stationary(
        mass: &[f64],
        stiffness: Triplets,
        eigenvalues: Option<Vec<f64>>,
        settings: Vec<Setting>,
    ) -> Result<Self, Error> {
        let n = mass.len();
        let first = Sparse::from_triplets(n, n, &stiffness)?;
        let mut second = Vec::new();
        for j in 0..n {
            let (rows, values) = first.col(j);
            for (i, a) in rows.iter().zip(values) {
                let (others, products) = first.col(*i);
                let product = |(k, b): (&usize, &f64)| (*k, j, a * b / mass[*i]);
                second.extend(others.iter().zip(products).map(product));
            }
        }
        let diagonal = mass.iter().enumerate().map(|(i, c)| (i, i, *c)).collect();
        Self::from_terms(
            n,
            &[diagonal, stiffness, second],
            FieldKind::Spde {
                nodes: n as f64,
                eigenvalues,
            },
            settings,
        )
    }
}

/// Returns the coefficients of C, R and R C⁻¹ R for a range and a variance.
pub(super) fn coefficients(
    nodes: f64,
    eigenvalues: Option<&[f64]>,
    values: &[f64],
) -> Coefficients {
    let (range, variance) = (values[0], values[1]);
    let kappa2 = 8.0 / (range * range);
    let t = 1.0 / (4.0 * std::f64::consts::PI * kappa2 * variance);
    let value = vec![t * kappa2 * kappa2, 2.0 * t * kappa2, t];
    // κ² falls as range⁻², so t grows as range².
    let by_range = vec![-2.0 * value[0] / range, 0.0, 2.0 * value[2] / range];
    let log_determinant = eigenvalues.map(|eigenvalues| {
        let sum = |f: &dyn Fn(f64) -> f64| {
            let all: Vec<f64> = eigenvalues.iter().map(|e| f(kappa2 + e)).collect();
            jensen_math::sum::pairwise_sum(&all)
        };
        let inverse = sum(&|x| 1.0 / x);
        (
            nodes * t.ln() + 2.0 * sum(&f64::ln),
            vec![
                (2.0 * nodes - 4.0 * kappa2 * inverse) / range,
                -nodes / variance,
            ],
        )
    });
    Coefficients {
        slope: vec![by_range, value.iter().map(|c| -c / variance).collect()],
        value,
        log_determinant,
    }
}
