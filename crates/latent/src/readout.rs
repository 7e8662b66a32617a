//! Latent variables in other units and relative to other origins. A map scales each variable and then adds linear
//! combinations of variables.

use std::sync::Arc;

use crate::linear::Geometry;
use crate::linear::kernels::dot;
use crate::predict::Known;
use crate::{Design, Error, Fit, LatentModel, Query, predict};

/// Adds a linear combination of some latent variables to others: `z_add += weight · Σ read z`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Move {
    /// The latent variables in the combination and their weights.
    pub read: Vec<(usize, f64)>,
    /// The latent variables to which the combination is added, each with a multiplier.
    pub add: Vec<(usize, f64)>,
}

/// A linear map of the latent variables, `diag(scale) z + Σ add (read · z) + shift`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readout {
    /// The factor of each latent variable.
    pub scale: Vec<f64>,
    /// The linear combinations that are added.
    pub moves: Vec<Move>,
    /// Constants that are added to latent variables.
    pub shift: Vec<(usize, f64)>,
}

impl Readout {
    fn spread(&self, entries: &[(usize, f64)]) -> Vec<f64> {
        let mut out = vec![0.0; self.scale.len()];
        entries.iter().for_each(|(l, x)| out[*l] += x);
        out
    }

    fn times(&self, z: &[f64]) -> Vec<f64> {
        let mut out: Vec<f64> = self.scale.iter().zip(z).map(|(s, z)| s * z).collect();
        for own in &self.moves {
            let amount: f64 = own.read.iter().map(|(l, x)| x * z[*l]).sum();
            own.add.iter().for_each(|(l, x)| out[*l] += x * amount);
        }
        out
    }
}

/// Computes the mean and the variance of every latent variable after the map, for a fit of `model`.
///
/// If the map has no moves, the cost is negligible. Otherwise the cost is one factorisation and one solve per move.
///
/// # Errors
/// Returns the errors of [`predict`].
pub fn read(model: &LatentModel, fit: &Fit, readout: &Readout) -> Result<Vec<(f64, f64)>, Error> {
    let mut mean = readout.times(&fit.mean);
    readout.shift.iter().for_each(|(l, x)| mean[*l] += x);
    let squared = |l: usize| readout.scale[l] * readout.scale[l] * fit.variance[l];
    let mut variance: Vec<f64> = (0..mean.len()).map(squared).collect();
    if readout.moves.is_empty() {
        return Ok(mean.into_iter().zip(variance).collect());
    }
    let warm = fit.warm();
    let known = Known::new(model, &warm)?;
    let reads: Vec<Vec<f64>> = readout
        .moves
        .iter()
        .map(|m| readout.spread(&m.read))
        .collect();
    let products: Vec<Vec<f64>> = match &known.geometry {
        Geometry::Narrow(g) => reads.iter().map(|x| g.solve_latent(x)).collect(),
        Geometry::Sparse(g) => (reads.iter())
            .map(|x| {
                let mut x = x.clone();
                g.solve_latent(&mut x);
                x
            })
            .collect(),
        Geometry::Chain(g) => (reads.iter())
            .map(|x| {
                let mut x = x.clone();
                g.solve_latent(&mut x);
                x
            })
            .collect(),
        Geometry::Wide(_) => {
            // If there are few latent variables, the rows of the map are computed in full.
            let n = mean.len();
            let mut rows =
                crate::Dense::from_fn(n, n, |i, j| if i == j { readout.scale[i] } else { 0.0 });
            for own in &readout.moves {
                for (i, a) in &own.add {
                    for (j, b) in &own.read {
                        rows.data[j * n + i] += a * b;
                    }
                }
            }
            let query = Query::Rows(Design::Dense(Arc::new(rows)));
            let moments = predict(model, &warm, &query)?;
            return Ok(mean
                .into_iter()
                .zip(moments.into_iter().map(|(_, v)| v))
                .collect());
        }
    };
    for (k, (own, product)) in readout.moves.iter().zip(&products).enumerate() {
        for (i, a) in &own.add {
            variance[*i] += 2.0 * readout.scale[*i] * a * product[*i];
        }
        for (other, read) in readout.moves.iter().zip(&reads) {
            let inner = dot(&products[k], read);
            let there = readout.spread(&other.add);
            for (i, a) in &own.add {
                variance[*i] += a * there[*i] * inner;
            }
        }
    }
    let variance = variance.into_iter().map(|v| v.max(0.0));
    Ok(mean.into_iter().zip(variance).collect())
}
