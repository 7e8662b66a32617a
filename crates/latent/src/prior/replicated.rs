//! Independent copies of a prior, for likelihoods with several linear predictors per observation.

use crate::{
    Copies, Covariance, CovarianceSensitivity, Dense, Design, Error, Parameter, Precision, Prior,
    Query, Sensitivity, Sparse, Structure,
};

/// Independent copies of a prior that share hyperparameters. Copy k of latent variable l has the index `l · times + k`.
pub struct Replicated<'a> {
    /// The prior of one copy.
    pub prior: &'a dyn Prior,
    /// The number of copies.
    pub times: usize,
}

/// Returns the covariance of `times` independent copies.
pub fn replicate_covariance(matrix: &Dense, times: usize) -> Dense {
    Dense::from_fn(matrix.rows * times, matrix.cols * times, |i, j| {
        match i % times == j % times {
            true => matrix.get(i / times, j / times),
            false => 0.0,
        }
    })
}

fn sparse(matrix: &Sparse, times: usize) -> Sparse {
    let mut out = Sparse {
        rows: matrix.rows * times,
        cols: matrix.cols * times,
        col_start: vec![0],
        row: Vec::with_capacity(matrix.len() * times),
        value: Vec::with_capacity(matrix.len() * times),
    };
    for j in 0..matrix.cols {
        let (rows, values) = matrix.col(j);
        for k in 0..times {
            out.row.extend(rows.iter().map(|i| i * times + k));
            out.value.extend(values);
            out.col_start.push(out.row.len());
        }
    }
    out
}

fn each<T: Clone>(list: &[T], times: usize) -> Vec<T> {
    list.iter()
        .flat_map(|x| std::iter::repeat_n(x.clone(), times))
        .collect()
}

/// Returns the design for `times` predictors per observation. Each of these predictors uses its own copy of the latent
/// variables.
pub fn replicate_design(design: &Design, times: usize) -> Design {
    match design {
        _ if times == 1 => design.clone(),
        Design::Identity => Design::Identity,
        Design::Select(index) => Design::Select(
            index
                .iter()
                .flat_map(|l| (0..times).map(move |k| l * times + k))
                .collect(),
        ),
        Design::Dense(w) => Design::Copies(Copies::new(w.clone(), times)),
        Design::Sparse(w) => Design::Sparse(sparse(w, times)),
        Design::Copies(_) | Design::Projected(..) => {
            unreachable!("the design of one copy, without inducing points")
        }
    }
}

/// Returns the query for `times` predictors per observation.
pub fn replicate_query(query: Query, times: usize) -> Query {
    match query {
        query if times == 1 => query,
        Query::Rows(design) => Query::Rows(replicate_design(&design, times)),
        Query::Cross {
            covariance,
            variance,
            mean,
        } => Query::Cross {
            covariance: replicate_covariance(&covariance, times),
            variance: each(&variance, times),
            mean: each(&mean, times),
        },
        Query::Extended { .. } => unreachable!("a chain has no copies"),
    }
}

fn no_copies() -> Error {
    Error::Unsupported("a chain of states has one linear predictor for each observation".to_owned())
}

impl Prior for Replicated<'_> {
    fn parameters(&self) -> Vec<Parameter> {
        self.prior.parameters()
    }

    fn structure(&self, theta: &[f64]) -> Result<Structure, Error> {
        let one = self.prior.structure(theta)?;
        let times = self.times;
        if times == 1 {
            return Ok(one);
        }
        let covariance = match &one.covariance {
            Covariance::Dense(sigma) => Covariance::Dense(replicate_covariance(sigma, times)),
            Covariance::Diagonal(v) => Covariance::Diagonal(each(v, times)),
            Covariance::Precision(q) => Covariance::Precision(Precision {
                matrix: sparse(&q.matrix, times),
                null_space: q
                    .null_space
                    .as_ref()
                    .map(|null| replicate_covariance(null, times)),
                log_determinant: q.log_determinant.map(|d| d * times as f64),
            }),
            Covariance::Chain(_) => return Err(no_copies()),
        };
        Ok(Structure {
            mean: each(&one.mean, times),
            covariance,
        })
    }

    fn design(&self, theta: &[f64], design: &Design) -> Result<Design, Error> {
        match self.times {
            1 => self.prior.design(theta, design),
            // Only inducing points have a design that depends on hyperparameters, and they have no copies.
            _ => Ok(design.clone()),
        }
    }

    fn gradient(&self, theta: &[f64], at: &Structure, sensitivity: &Sensitivity) -> Vec<f64> {
        let times = self.times;
        if times == 1 {
            return self.prior.gradient(theta, at, sensitivity);
        }
        let Ok(one) = self.prior.structure(theta) else {
            return vec![f64::NAN; theta.len()];
        };
        let folded = |list: &[f64]| -> Vec<f64> {
            list.chunks(times)
                .map(|copies| copies.iter().sum())
                .collect()
        };
        let covariance = match &sensitivity.covariance {
            CovarianceSensitivity::Dense(g) => {
                let n = g.rows / times;
                CovarianceSensitivity::Dense(Dense::from_fn(n, n, |i, j| {
                    (0..times)
                        .map(|k| g.get(i * times + k, j * times + k))
                        .sum()
                }))
            }
            CovarianceSensitivity::Diagonal(g) => CovarianceSensitivity::Diagonal(folded(g)),
            CovarianceSensitivity::Precision {
                value,
                log_determinant,
            } => {
                let mut sums = Vec::new();
                if let Covariance::Precision(q) = &one.covariance {
                    // Copies of the same column are adjacent.
                    for j in 0..q.matrix.cols {
                        let (from, count) = (q.matrix.col_start[j], q.matrix.col(j).0.len());
                        for i in 0..count {
                            let copies = (0..times).map(|k| value[from * times + k * count + i]);
                            sums.push(copies.sum());
                        }
                    }
                }
                CovarianceSensitivity::Precision {
                    value: sums,
                    log_determinant: log_determinant * times as f64,
                }
            }
            CovarianceSensitivity::Chain(_) => return vec![f64::NAN; theta.len()],
        };
        let own = Sensitivity {
            mean: folded(&sensitivity.mean),
            covariance,
            likelihood: Vec::new(),
            design: None,
        };
        self.prior.gradient(theta, &one, &own)
    }
}
