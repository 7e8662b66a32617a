//! Priors that consist of independent parts: Markov fields, groups and covariates. The latent variables of the parts
//! are concatenated, and the precision is block-diagonal.

use std::sync::Arc;

use super::field::Field;
use super::inducing::{self, At, Inducing, InducingError};
use super::pin::Pin;
use super::setting::{self, Setting};
use super::spectral::Spectral;
use crate::linear::design::to_dense;
use crate::{
    Covariance, CovarianceSensitivity, Dense, Design, Error, Parameter, Precision, Prior,
    Sensitivity, Sparse, Structure,
};

/// One block of latent variables.
#[derive(Clone, Debug)]
pub enum Block {
    /// A Markov field.
    Field(Field),
    /// Independent variables with a common variance.
    Independent {
        /// Number of variables.
        count: usize,
        /// The common variance.
        variance: Setting,
    },
    /// Independent coefficients of basis functions.
    Spectral(Spectral),
    /// The variables of inducing points. They are standard normal.
    Inducing(Inducing),
}

impl Block {
    /// Returns the number of latent variables.
    pub fn len(&self) -> usize {
        match self {
            Self::Field(field) => field.len(),
            Self::Independent { count, .. } => *count,
            Self::Spectral(spectral) => spectral.len(),
            Self::Inducing(inducing) => inducing.len(),
        }
    }

    /// Whether the block has no latent variables.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn settings(&self) -> &[Setting] {
        match self {
            Self::Field(field) => field.settings(),
            Self::Independent { variance, .. } => std::slice::from_ref(variance),
            Self::Spectral(spectral) => spectral.settings(),
            Self::Inducing(inducing) => inducing.settings(),
        }
    }

    fn free(&self) -> usize {
        self.settings().iter().filter(|s| s.free).count()
    }

    fn structure(&self, theta: &[f64]) -> Result<Structure, Error> {
        let values = setting::values(self.settings(), theta)?;
        let variances = match self {
            Self::Field(field) => return field.structure(theta),
            Self::Independent { count, .. } => vec![values[0]; *count],
            Self::Spectral(spectral) => spectral.variances(&values),
            Self::Inducing(inducing) => vec![1.0; inducing.len()],
        };
        Ok(Structure {
            mean: vec![0.0; variances.len()],
            covariance: Covariance::Diagonal(variances),
        })
    }
}

/// A prior that consists of independent parts. The latent variables of the parts are concatenated.
#[derive(Clone, Debug)]
pub struct Stack {
    parts: Vec<Block>,
    pins: Vec<Option<Pin>>,
    len: usize,
}

impl Stack {
    /// Creates a prior from its parts.
    ///
    /// # Errors
    /// Fails if there are no parts, or if two parts have incompatible determinants.
    pub fn new(parts: Vec<Block>) -> Result<Self, Error> {
        let len = parts.iter().map(Block::len).sum();
        if len == 0 {
            return Err(Error::Prior("the prior has no latent variable".to_owned()));
        }
        let fields = || {
            parts.iter().filter_map(|p| match p {
                Block::Field(field) => Some(field),
                Block::Independent { .. } | Block::Spectral(_) | Block::Inducing(_) => None,
            })
        };
        if fields().next().is_some() && parts.iter().any(|p| matches!(p, Block::Inducing(_))) {
            return Err(Error::Unsupported(
                "`svgp` has inducing points, which cannot be in one sum with a field with a sparse precision; use `hsgp` for \
                 the process or for the field"
                    .to_owned(),
            ));
        }
        if fields().any(Field::hides_determinant) && fields().any(Field::is_oblique) {
            return Err(Error::Unsupported(
                "`bym2` and a field on a mesh or on a grid with holes cannot be in one sum; use `icar(…) + iid()` for the \
                 first"
                    .to_owned(),
            ));
        }
        Ok(Self {
            pins: vec![None; parts.len()],
            parts,
            len,
        })
    }

    pub(super) fn latents(&self) -> usize {
        self.len
    }

    /// Constrains flat directions of a field at some nodes. See [`Field::hold`].
    pub(super) fn hold(
        &mut self,
        part: usize,
        nodes: &[usize],
        keep: &Dense,
        log_determinant: f64,
        level: Option<Pin>,
    ) {
        if let Block::Field(field) = &mut self.parts[part] {
            field.hold(nodes, keep, log_determinant);
        }
        self.pins[part] = level;
    }

    /// Returns the constrained level of each part.
    pub fn pins(&self) -> &[Option<Pin>] {
        &self.pins
    }

    /// Returns the parts.
    pub fn parts(&self) -> &[Block] {
        &self.parts
    }

    /// Returns the index of each part's first latent variable.
    pub fn offsets(&self) -> Vec<usize> {
        let mut at = 0;
        self.parts
            .iter()
            .map(|part| {
                let own = at;
                at += part.len();
                own
            })
            .collect()
    }

    /// Returns all hyperparameters, including fixed ones.
    pub fn settings(&self) -> Vec<Setting> {
        (self.parts.iter())
            .flat_map(|p| p.settings().iter().cloned())
            .collect()
    }

    /// Returns a factor of a covariance at θ for each part. The covariance is that of the variables of a node that
    /// occurs in no row of the fit. The factor is empty if the part has no such nodes.
    pub(super) fn roots(&self, theta: &[f64]) -> Result<Vec<Dense>, Error> {
        let each = self.split(theta)?.into_iter();
        each.map(|(part, own)| {
            let values = setting::values(part.settings(), own)?;
            let root = match part {
                Block::Field(field) => field.new_group(&values),
                Block::Independent { .. } => Some(Dense::from_fn(1, 1, |_, _| values[0].sqrt())),
                Block::Spectral(_) | Block::Inducing(_) => None,
            };
            Ok(root.unwrap_or_else(|| Dense::zeros(0, 0)))
        })
        .collect()
    }

    pub(super) fn values(&self, part: usize, theta: &[f64]) -> Result<Vec<f64>, Error> {
        let (own, theta) = self.split(theta)?[part];
        setting::values(own.settings(), theta)
    }

    pub(super) fn split<'a>(
        &'a self,
        theta: &'a [f64],
    ) -> Result<Vec<(&'a Block, &'a [f64])>, Error> {
        let mut rest = theta;
        let mut parts = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let (own, others) = rest.split_at_checked(part.free()).ok_or_else(|| {
                Error::Prior(format!("{} hyperparameters are too few", theta.len()))
            })?;
            parts.push((part, own));
            rest = others;
        }
        if !rest.is_empty() {
            return Err(Error::Prior(format!(
                "{} hyperparameters are too many",
                theta.len()
            )));
        }
        Ok(parts)
    }
}

impl Stack {
    /// Returns the design of rows whose processes with inducing points are projected. The other columns are those of
    /// `design`.
    pub(super) fn projected(
        &self,
        theta: &[f64],
        design: &Design,
        at: &[At],
    ) -> Result<Design, Error> {
        let base = match design {
            Design::Dense(w) | Design::Projected(w, _) => w.clone(),
            other => Arc::new(to_dense(other, self.len)),
        };
        let n = base.rows;
        let mut weights = Dense::zeros(n, self.len);
        let mut residuals = vec![0.0; n];
        let mut at = at.iter();
        let mut latent = 0;
        for (part, own) in self.split(theta)? {
            let latents = latent..latent + part.len();
            latent = latents.end;
            match (part, at.as_slice()) {
                (Block::Inducing(inducing), [rows, ..]) => {
                    let columns = &mut weights.data[latents.start * n..latents.end * n];
                    inducing.project(own, rows, columns, &mut residuals)?;
                    at.next();
                }
                _ => {
                    let columns = latents.start * n..latents.end * n;
                    weights.data[columns.clone()].copy_from_slice(&base.data[columns]);
                }
            }
        }
        Ok(Design::Projected(Arc::new(weights), Arc::new(residuals)))
    }

    /// Computes the prior covariance of rows given the latent variables.
    pub(super) fn residual_covariance(
        &self,
        theta: &[f64],
        rows: usize,
        at: &[At],
    ) -> Result<Dense, Error> {
        let mut out = Dense::zeros(rows, rows);
        let parts = self.split(theta)?.into_iter();
        let inducing = parts.filter_map(|(part, own)| match part {
            Block::Inducing(inducing) => Some((inducing, own)),
            _ => None,
        });
        for ((inducing, own), at) in inducing.zip(at) {
            let one = inducing.residual_covariance(own, at)?;
            for (sum, x) in out.data.iter_mut().zip(one.data) {
                *sum += x;
            }
        }
        Ok(out)
    }

    /// Estimates the error of processes with inducing points in a fit at θ with this design. Returns `None` if there is no
    /// such process.
    pub(super) fn inducing_error(
        &self,
        theta: &[f64],
        design: &Design,
        fit: inducing::Rows<'_>,
    ) -> Result<Option<InducingError>, Error> {
        let Design::Projected(w, _) = design else {
            return Ok(None);
        };
        let parts = self.split(theta)?.into_iter().zip(self.offsets());
        let parts: Vec<inducing::Part<'_>> = parts
            .filter_map(|((part, own), first)| match part {
                Block::Inducing(process) => Some(inducing::Part {
                    process,
                    latents: first..first + process.len(),
                    theta: own,
                }),
                _ => None,
            })
            .collect();
        inducing::error(&parts, w, fit).map(Some)
    }

    fn fitted(&self) -> Vec<At> {
        let each = self.parts.iter().filter_map(|part| match part {
            Block::Inducing(inducing) => Some(inducing.fitted().clone()),
            _ => None,
        });
        each.collect()
    }
}

impl Prior for Stack {
    fn design(&self, theta: &[f64], design: &Design) -> Result<Design, Error> {
        match self.fitted() {
            none if none.is_empty() => Ok(design.clone()),
            at => self.projected(theta, design, &at),
        }
    }

    fn parameters(&self) -> Vec<Parameter> {
        (self.parts.iter())
            .flat_map(|p| setting::parameters(p.settings()))
            .collect()
    }

    fn structure(&self, theta: &[f64]) -> Result<Structure, Error> {
        let structures = (self.split(theta)?.into_iter())
            .map(|(part, own)| part.structure(own))
            .collect::<Result<Vec<_>, Error>>()?;
        let mean = structures.iter().flat_map(|s| s.mean.clone()).collect();
        let diagonal = |s: &Structure| match &s.covariance {
            Covariance::Diagonal(v) => Some(v.clone()),
            _ => None,
        };
        let all: Option<Vec<Vec<f64>>> = structures.iter().map(diagonal).collect();
        let covariance = match all {
            Some(variances) => Covariance::Diagonal(variances.concat()),
            None => Covariance::Precision(join(&structures, self.len)),
        };
        Ok(Structure { mean, covariance })
    }

    fn gradient(&self, theta: &[f64], at: &Structure, sensitivity: &Sensitivity) -> Vec<f64> {
        let Ok(parts) = self.split(theta) else {
            return vec![f64::NAN; theta.len()];
        };
        let (mut latent, mut out) = (0, Vec::with_capacity(theta.len()));
        for (part, own) in parts {
            let latents = latent..latent + part.len();
            latent = latents.end;
            match (&sensitivity.covariance, &at.covariance) {
                (CovarianceSensitivity::Diagonal(g), _) => match part {
                    Block::Spectral(spectral) => {
                        out.extend(spectral.gradient(own, |l, v| g[latents.start + l] * v));
                    }
                    Block::Inducing(inducing) => match &sensitivity.design {
                        Some(design) => out.extend(inducing.gradient(own, latents, design)),
                        None => out.extend(own.iter().map(|_| f64::NAN)),
                    },
                    Block::Independent { .. } | Block::Field(_) if !own.is_empty() => {
                        out.push(g[latents].iter().sum());
                    }
                    Block::Independent { .. } | Block::Field(_) => {}
                },
                (
                    CovarianceSensitivity::Precision {
                        value,
                        log_determinant,
                    },
                    Covariance::Precision(q),
                ) => {
                    // Each block occupies a contiguous range of the stored entries.
                    let starts = &q.matrix.col_start;
                    let entries = &value[starts[latents.start]..starts[latents.end]];
                    match part {
                        Block::Field(field) => {
                            let own_part = Sensitivity {
                                mean: Vec::new(),
                                covariance: CovarianceSensitivity::Precision {
                                    value: entries.to_vec(),
                                    log_determinant: *log_determinant,
                                },
                                likelihood: Vec::new(),
                                design: None,
                            };
                            out.extend(field.gradient(own, at, &own_part));
                        }
                        Block::Independent { count, .. } => {
                            if let [variance] = own {
                                let sum: f64 = entries.iter().sum();
                                let n = *count as f64;
                                out.push(
                                    -sum / (variance * variance) - log_determinant * n / variance,
                                );
                            }
                        }
                        // The precision and its logarithm fall as the variance rises.
                        Block::Spectral(spectral) => out.extend(
                            spectral.gradient(own, |l, v| -entries[l] / v - log_determinant),
                        ),
                        Block::Inducing(_) => out.extend(own.iter().map(|_| f64::NAN)),
                    }
                }
                _ => out.extend(own.iter().map(|_| f64::NAN)),
            }
        }
        out
    }

    fn thinned(&self, step: usize) -> Option<Box<dyn Prior + '_>> {
        let mut out = self.clone();
        let mut any = false;
        for part in &mut out.parts {
            if let Block::Inducing(inducing) = part {
                inducing.thin(step);
                any = true;
            }
        }
        any.then(|| Box::new(out) as Box<dyn Prior>)
    }
}

fn join(structures: &[Structure], len: usize) -> Precision {
    let mut matrix = Sparse {
        rows: len,
        cols: len,
        col_start: vec![0],
        row: Vec::new(),
        value: Vec::new(),
    };
    let mut log_determinant = Some(0.0);
    let nullity: usize = structures
        .iter()
        .map(|s| match &s.covariance {
            Covariance::Precision(q) => q.null_space.as_ref().map_or(0, |n| n.cols),
            _ => 0,
        })
        .sum();
    let mut null = Dense::zeros(len, nullity);
    let (mut at, mut column) = (0, 0);
    for structure in structures {
        match &structure.covariance {
            Covariance::Precision(q) => {
                for j in 0..q.matrix.cols {
                    let (rows, values) = q.matrix.col(j);
                    matrix.row.extend(rows.iter().map(|i| at + i));
                    matrix.value.extend(values);
                    matrix.col_start.push(matrix.row.len());
                }
                log_determinant = log_determinant
                    .zip(q.log_determinant)
                    .map(|(sum, own)| sum + own);
                if let Some(own) = &q.null_space {
                    for j in 0..own.cols {
                        let start = (column + j) * len + at;
                        null.data[start..start + own.rows].copy_from_slice(own.col(j));
                    }
                    column += own.cols;
                }
            }
            Covariance::Diagonal(variances) => {
                for (i, v) in variances.iter().enumerate() {
                    matrix.row.push(at + i);
                    matrix.value.push(1.0 / v);
                    matrix.col_start.push(matrix.row.len());
                }
                let own = -variances.iter().map(|v| v.ln()).sum::<f64>();
                log_determinant = log_determinant.map(|sum| sum + own);
            }
            Covariance::Dense(_) | Covariance::Chain(_) => {
                unreachable!("no part has a dense covariance or is a chain")
            }
        }
        at += structure.len();
    }
    Precision {
        matrix,
        null_space: (nullity > 0).then_some(null),
        log_determinant,
    }
}
