//! Likelihood × bound → site.

use jensen_math::constants::HALF_LOG_TWO_PI;
use jensen_math::quadrature::gauss_hermite;
use jensen_math::simd::Simd;
use jensen_math::special::{digamma, lgamma};

use super::convex::{Convex, Curve, LogisticBound, Value};
use super::expectation::{Nodes, Potential, Rules};
use super::lanes;
use super::multinomial::Multinomial;
use super::piecewise::Pieces;
use super::{Bound, Likelihood};
use crate::linear::Block;
use crate::linear::kernels::{in_chunks, map, sum, sum_chunks};
use crate::{Error, Model};

/// Sites with a convex dual in one coordinate a predictor.
#[derive(Clone, Debug)]
pub(crate) enum DualSites {
    Scalar(Vec<Convex>),
    Vector(Vec<Multinomial>),
}

/// The sites of a model.
#[derive(Clone, Debug)]
pub(crate) enum Sites {
    Dual(DualSites),
    Expectation(Vec<Potential>, Rules),
}

/// `log(2π)/2`.
/// The pieces of a logistic potential `−y (η−t) + n log(1 + e^(η−t)) + c`: y, n, t, c.
fn logistic(model: &Model, i: usize) -> Option<(f64, f64, f64, f64)> {
    let data = &model.observations;
    let y = data.response[i];
    match model.likelihood {
        Likelihood::Bernoulli => Some((y, 1.0, 0.0, 0.0)),
        Likelihood::Binomial => {
            let n = data.trials.as_ref().map_or(1.0, |t| t[i]);
            let c = lgamma(y + 1.0) + lgamma(n - y + 1.0) - lgamma(n + 1.0);
            Some((y, n, 0.0, c))
        }
        // log p = log Γ(y+r) − log Γ(r) − log y! + y x − (y+r) log(1 + e^x) with x = η + log e − log r.
        Likelihood::NegativeBinomial { size } => {
            let exposure = data.exposure.as_ref().map_or(1.0, |e| e[i]);
            let c = lgamma(size) + lgamma(y + 1.0) - lgamma(y + size);
            Some((y, y + size, (size / exposure).ln(), c))
        }
        _ => None,
    }
}

/// The convex site of observation `i`, where likelihood and bound have one.
fn convex(model: &Model, i: usize) -> Option<Convex> {
    let data = &model.observations;
    let y = data.response[i];
    if let Some((y, n, shift, c)) = logistic(model, i) {
        let bound = match model.bound {
            Bound::Log => LogisticBound::Log,
            Bound::Tilted => LogisticBound::Tilted,
            Bound::Bohning => LogisticBound::Bohning,
            Bound::Exact | Bound::Jaakkola | Bound::Piecewise => return None,
        };
        return Some(Convex::Logistic {
            bound,
            y,
            n,
            shift,
            c,
        });
    }
    let gamma = |shape: f64| Convex::Exponential {
        a: -shape,
        rate: shape * y,
        sign: -1.0,
        c: lgamma(shape) - shape * shape.ln() - (shape - 1.0) * y.ln(),
    };
    match model.likelihood {
        Likelihood::Gaussian { variance } => Some(Convex::Quadratic {
            a: 1.0 / variance,
            b: -y / variance,
            c: y * y / (2.0 * variance) + HALF_LOG_TWO_PI + 0.5 * variance.ln(),
        }),
        Likelihood::Poisson => {
            let rate = data.exposure.as_ref().map_or(1.0, |e| e[i]);
            Some(Convex::Exponential {
                a: y,
                rate,
                sign: 1.0,
                // p(y) holds e^y as well: −y log e.
                c: lgamma(y + 1.0) - y * rate.ln(),
            })
        }
        Likelihood::Gamma { shape } => Some(gamma(shape)),
        Likelihood::Exponential => Some(gamma(1.0)),
        Likelihood::StochasticVolatility if y == 0.0 => Some(Convex::Linear {
            a: -0.5,
            c: HALF_LOG_TWO_PI,
        }),
        Likelihood::StochasticVolatility => Some(Convex::Exponential {
            a: -0.5,
            rate: 0.5 * y * y,
            sign: -1.0,
            c: HALF_LOG_TWO_PI,
        }),
        _ => None,
    }
}

/// The potential of observation `i` for bounds that have no convex dual.
fn potential(model: &Model, i: usize) -> Option<Potential> {
    let y = model.observations.response[i];
    if let Some((y, n, shift, c)) = logistic(model, i) {
        return Some(Potential::Logistic { y, n, shift, c });
    }
    match model.likelihood {
        Likelihood::Probit => Some(Potential::Probit {
            sign: 2.0 * y - 1.0,
        }),
        Likelihood::StudentT { degrees, scale } => Some(Potential::StudentT {
            y,
            degrees,
            scale,
            c: lgamma(0.5 * degrees) - lgamma(0.5 * (degrees + 1.0))
                + 0.5 * (std::f64::consts::PI * degrees).ln()
                + scale.ln(),
        }),
        _ => None,
    }
}

impl Sites {
    /// The sites of a model that was checked.
    pub(crate) fn new(model: &Model, nodes: usize) -> Result<Self, Error> {
        let n = model.observations.response.len();
        if let Likelihood::Multinomial { categories } = model.likelihood {
            let site = |y: &f64| Multinomial {
                category: *y as usize,
                size: categories - 1,
            };
            let sites = model.observations.response.iter().map(site).collect();
            return Ok(Self::Dual(DualSites::Vector(sites)));
        }
        if let Some(sites) = (0..n).map(|i| convex(model, i)).collect() {
            return Ok(Self::Dual(DualSites::Scalar(sites)));
        }
        let rules = match model.bound {
            Bound::Jaakkola => Rules::Jaakkola,
            Bound::Piecewise => Rules::Piecewise(Pieces::new()),
            _ => Rules::Quadrature(Nodes::new(&gauss_hermite(nodes).ok_or_else(|| {
                Error::Unsupported(format!(
                    "{nodes} Gauss-Hermite nodes were asked for; choose 1 to 128"
                ))
            })?)),
        };
        match (0..n).map(|i| potential(model, i)).collect() {
            Some(sites) => Ok(Self::Expectation(sites, rules)),
            None => Err(Error::Unsupported(format!(
                "the bound `{}` is not offered for the likelihood `{}`",
                model.bound.name(),
                model.likelihood.name()
            ))),
        }
    }

    /// f with its derivatives, one a predictor; a vector site puts its whole f with its first.
    pub(crate) fn values(&self, m: &[f64], v: &[f64]) -> Vec<Value> {
        match self {
            Self::Dual(sites) => sites.values(m, v),
            Self::Expectation(sites, rules) => rules.values(sites, m, v),
        }
    }

    /// f with its derivatives for predictor `n` of scalar sites.
    pub(crate) fn value_of(&self, n: usize, m: f64, v: f64) -> Value {
        match self {
            Self::Dual(DualSites::Scalar(sites)) => sites[n].value(m, v),
            Self::Expectation(sites, rules) => rules.value(&sites[n], m, v),
            Self::Dual(DualSites::Vector(_)) => Value {
                f: f64::NAN,
                by_mean: f64::NAN,
                by_variance: f64::NAN,
            },
        }
    }

    /// Natural parameters (b, λ) from which the fixed point can start: for a convex dual those of one step of the data's own
    /// guess, else of the prior mean.
    pub(crate) fn guess(&self, centre: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let n = centre.len();
        match self {
            Self::Dual(sites) => {
                let alpha = sites.guess();
                let at = sites.curves(&alpha).at;
                let b = map(n, |i| at[i].lambda * at[i].phi1 - alpha[i]);
                (b, map(n, |i| at[i].lambda))
            }
            Self::Expectation(..) => {
                let values = self.values(centre, &vec![1.0; n]);
                // A site with negative curvature starts flat.
                let lambda = map(n, |i| (2.0 * values[i].by_variance).max(1e-6));
                let b = map(n, |i| lambda[i] * centre[i] - values[i].by_mean);
                (b, lambda)
            }
        }
    }

    /// −∂(Σ f)/∂ψ at (m, v) for the likelihood's parameters ψ.
    pub(crate) fn by_parameters(&self, model: &Model, m: &[f64], v: &[f64]) -> Vec<f64> {
        let y = &model.observations.response;
        let values = || self.values(m, v);
        match (model.likelihood, self) {
            (Likelihood::Gaussian { variance: s }, _) => {
                vec![sum(y.len(), |i| {
                    let r = y[i] - m[i];
                    (r * r + v[i]) / (2.0 * s * s) - 0.5 / s
                })]
            }
            (Likelihood::Gamma { shape }, _) => {
                let fixed = digamma(shape) - shape.ln() - 1.0;
                vec![-sum(y.len(), |i| {
                    m[i] + y[i] * (0.5 * v[i] - m[i]).exp() + fixed - y[i].ln()
                })]
            }
            (Likelihood::NegativeBinomial { size }, _) => {
                // By the envelope theorem through y, n = y + r, t = log(r/e) and the constant: with F the bound on
                // n E log(1 + e^x), df/dr = y/r + F/n − f_x/r + ψ(r) − ψ(y+r), f_x = ∂F/∂x.
                let values = values();
                vec![-sum(y.len(), |i| {
                    let n = y[i] + size;
                    let (_, _, t, c) = logistic(model, i).expect("a logistic potential");
                    let whole = values[i].f - c + y[i] * (m[i] - t);
                    y[i] / size + whole / n - (values[i].by_mean + y[i]) / size + digamma(size)
                        - digamma(n)
                })]
            }
            (
                Likelihood::StudentT {
                    degrees: d,
                    scale: s,
                },
                Self::Expectation(_, rules),
            ) => {
                let fixed = 0.5 * (digamma(0.5 * d) - digamma(0.5 * (d + 1.0)) + 1.0 / d);
                let each = |i: usize, h: &dyn Fn(f64) -> f64| {
                    rules.expectation(m[i], v[i], h).unwrap_or(f64::NAN)
                };
                let square = |i: usize, eta: f64| (y[i] - eta).powi(2);
                let by_degrees: f64 = (0..y.len())
                    .map(|i| {
                        fixed
                            + each(i, &|eta| {
                                let q = square(i, eta) / (d * s * s);
                                0.5 * q.ln_1p() - 0.5 * (d + 1.0) * q / (d * (1.0 + q))
                            })
                    })
                    .sum();
                let by_scale: f64 = (0..y.len())
                    .map(|i| {
                        1.0 / s
                            - each(i, &|eta| {
                                let q = square(i, eta) / (d * s * s);
                                (d + 1.0) * q / (s * (1.0 + q))
                            })
                    })
                    .sum();
                vec![-by_degrees, -by_scale]
            }
            _ => Vec::new(),
        }
    }
}

/// Everything about the sites at one α.
pub(crate) struct Curves {
    pub at: Vec<Curve>,
    pub block: Block,
}

impl Curves {
    pub(crate) fn lambda(&self) -> Vec<f64> {
        self.at.iter().map(|c| c.lambda).collect()
    }
}

const BLANK: Curve = Curve {
    lambda: 0.0,
    lambda1: 0.0,
    lambda2: 0.0,
    phi: 0.0,
    phi1: 0.0,
    phi2: 0.0,
};

impl DualSites {
    /// λ, φ and their derivatives at α.
    pub(crate) fn curves(&self, alpha: &[f64]) -> Curves {
        match self {
            Self::Scalar(sites) => Curves {
                at: {
                    let simd = Simd::detect();
                    in_chunks(sites.len(), BLANK, |range, out| {
                        lanes::curves(simd, &sites[range.clone()], &alpha[range], out);
                    })
                },
                block: Block::default(),
            },
            Self::Vector(sites) => {
                let size = sites.first().map_or(1, |s| s.size);
                let mut at = vec![BLANK; alpha.len()];
                let coupling = sites
                    .iter()
                    .enumerate()
                    .map(|(g, site)| {
                        let range = g * size..(g + 1) * size;
                        site.curves(&alpha[range.clone()], &mut at[range])
                    })
                    .collect();
                Curves {
                    at,
                    block: Block { size, coupling },
                }
            }
        }
    }

    /// The largest t ≥ 0 for which α + t d stays in the closed domain.
    pub(crate) fn reach(&self, alpha: &[f64], direction: &[f64]) -> f64 {
        match self {
            Self::Scalar(sites) => {
                let each = |n: usize| {
                    let (low, high) = sites[n].domain();
                    let d = direction[n];
                    if sites[n].is_fixed() || d == 0.0 {
                        f64::INFINITY
                    } else if d > 0.0 {
                        (high - alpha[n]) / d
                    } else {
                        (low - alpha[n]) / d
                    }
                };
                (0..sites.len()).map(each).fold(f64::INFINITY, f64::min)
            }
            Self::Vector(sites) => sites
                .iter()
                .enumerate()
                .map(|(g, site)| {
                    let range = g * site.size..(g + 1) * site.size;
                    site.reach(&alpha[range.clone()], &direction[range])
                })
                .fold(f64::INFINITY, f64::min),
        }
    }

    /// The point that `t` leads to on the path that leaves α in a direction, straight in φ′: strictly inside the domain but
    /// for rounding.
    pub(crate) fn along(
        &self,
        alpha: &[f64],
        curves: &Curves,
        direction: &[f64],
        t: f64,
    ) -> Vec<f64> {
        match self {
            Self::Scalar(sites) => map(sites.len(), |n| {
                sites[n].along(alpha[n], &curves.at[n], t * direction[n])
            }),
            Self::Vector(sites) => {
                let mut out = vec![0.0; alpha.len()];
                for (g, site) in sites.iter().enumerate() {
                    let range = g * site.size..(g + 1) * site.size;
                    let (from, towards) = (&alpha[range.clone()], &direction[range.clone()]);
                    site.along(from, towards, t, &mut out[range]);
                }
                out
            }
        }
    }

    /// Whether α lies strictly inside the domain.
    pub(crate) fn contains(&self, alpha: &[f64]) -> bool {
        match self {
            Self::Scalar(sites) => sites.iter().zip(alpha).all(|(site, a)| {
                let (low, high) = site.domain();
                (*a > low && *a < high) || (site.is_fixed() && *a == low)
            }),
            Self::Vector(sites) => sites
                .iter()
                .enumerate()
                .all(|(g, site)| site.contains(&alpha[g * site.size..(g + 1) * site.size])),
        }
    }

    /// α at (m, v), where `values` are f and its derivatives there: strictly inside the domain.
    pub(crate) fn maximisers(&self, m: &[f64], v: &[f64], values: &[Value]) -> Vec<f64> {
        match self {
            Self::Scalar(sites) => map(sites.len(), |n| sites[n].maximiser(m[n], v[n])),
            Self::Vector(_) => values.iter().map(|v| v.by_mean).collect(),
        }
    }

    /// A rough α from the responses alone.
    pub(crate) fn guess(&self) -> Vec<f64> {
        match self {
            Self::Scalar(sites) => sites.iter().map(Convex::guess).collect(),
            Self::Vector(sites) => {
                let size = sites.first().map_or(1, |s| s.size);
                let mut out = vec![0.0; size * sites.len()];
                for (g, site) in sites.iter().enumerate() {
                    site.guess(&mut out[g * size..(g + 1) * size]);
                }
                out
            }
        }
    }

    /// f with its derivatives.
    pub(crate) fn values(&self, m: &[f64], v: &[f64]) -> Vec<Value> {
        match self {
            Self::Scalar(sites) => {
                let simd = Simd::detect();
                in_chunks(sites.len(), Value::default(), |range, out| {
                    lanes::values(
                        simd,
                        &sites[range.clone()],
                        &m[range.clone()],
                        &v[range],
                        out,
                    );
                })
            }
            Self::Vector(sites) => {
                let mut out = vec![Value::default(); m.len()];
                for (g, site) in sites.iter().enumerate() {
                    let range = g * site.size..(g + 1) * site.size;
                    site.value(&m[range.clone()], &v[range.clone()], &mut out[range]);
                }
                out
            }
        }
    }

    /// The duality gap of α against a primal point with these marginals.
    pub(crate) fn gap(&self, alpha: &[f64], m: &[f64], v: &[f64]) -> f64 {
        match self {
            Self::Scalar(sites) => {
                let simd = Simd::detect();
                sum_chunks(sites.len(), |range| {
                    let (alpha, m, v) =
                        (&alpha[range.clone()], &m[range.clone()], &v[range.clone()]);
                    lanes::gap(simd, &sites[range], alpha, m, v)
                })
            }
            Self::Vector(sites) => sum(sites.len(), |g| {
                let size = sites[g].size;
                let range = g * size..(g + 1) * size;
                sites[g].gap(&alpha[range.clone()], &m[range.clone()], &v[range])
            }),
        }
    }
}
