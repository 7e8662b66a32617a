//! The table of sites. The form of a likelihood and the bound determine the site.

use std::sync::Arc;

use jensen_math::simd::Simd;

use super::SiteBound;
use super::contrasts::Contrasts;
use super::convex::{Convex, Curve, LogisticBound, Value};
use super::expectation::{Potentials, Quadrature, error};
use super::given::{self, Site};
use super::lanes;
use super::logistic::{Logistic, Raised};
use super::multinomial::Multinomial;
use super::piecewise::Pieces;
use crate::likelihood::{Fitted, Form};
use crate::linear::Block;
use crate::linear::kernels::{in_chunks, map, sum, sum_chunks};
use crate::{Error, LatentModel};

/// Sites whose convex dual has one coordinate per predictor.
#[derive(Debug)]
pub(crate) enum DualSites {
    Scalar(Vec<Convex>),
    Vector(Vec<Multinomial>),
    Given(Vec<Box<dyn Site>>),
}

#[derive(Debug)]
pub(crate) enum Sites {
    Dual(DualSites),
    Raised(Vec<Logistic>, Raised),
    Expected(Arc<dyn Potentials>, Quadrature),
}

impl Sites {
    pub(crate) fn new(model: &LatentModel, nodes: Option<usize>) -> Result<Self, Error> {
        let under = |forms: Vec<Logistic>, bound: LogisticBound| {
            let sites = forms.into_iter().map(|form| form.under(bound)).collect();
            Self::Dual(DualSites::Scalar(sites))
        };
        let rule = || Quadrature::new(nodes);
        Ok(
            match (model.likelihood.form(&model.observations), model.bound) {
                (Form::Convex(sites), SiteBound::Exact) => Self::Dual(DualSites::Scalar(sites)),
                (Form::Logistic(forms), SiteBound::Log) => under(forms, LogisticBound::Log),
                (Form::Logistic(forms), SiteBound::Tilted) => under(forms, LogisticBound::Tilted),
                (Form::Logistic(forms), SiteBound::Bohning) => under(forms, LogisticBound::Bohning),
                (Form::Logistic(forms), SiteBound::Jaakkola) => {
                    Self::Raised(forms, Raised::Jaakkola)
                }
                (Form::Logistic(forms), SiteBound::Piecewise) => {
                    Self::Raised(forms, Raised::Piecewise(Pieces::new()))
                }
                (Form::Logistic(forms), SiteBound::Exact) => {
                    Self::Expected(Arc::new(forms), rule()?)
                }
                (Form::Smooth(potentials), SiteBound::Exact) => Self::Expected(potentials, rule()?),
                (Form::Categorical(sites), SiteBound::Log) => Self::Dual(DualSites::Vector(sites)),
                (Form::Categorical(sites), SiteBound::Exact) => {
                    Self::Expected(Arc::new(Contrasts::new(sites)), rule()?)
                }
                _ => return Err(model.bound_refused()),
            },
        )
    }

    /// Returns whether f is a quadratic function of the mean for every predictor, as for normal noise.
    pub(crate) fn is_quadratic(&self) -> bool {
        let quadratic = |site: &Convex| matches!(site, Convex::Quadratic { .. });
        matches!(self, Self::Dual(DualSites::Scalar(sites)) if sites.iter().all(quadratic))
    }

    /// Computes f and its derivatives for each predictor. The first predictor of a vector site has the site's whole f.
    pub(crate) fn values(&self, m: &[f64], v: &[f64]) -> Vec<Value> {
        match self {
            Self::Dual(sites) => sites.values(m, v),
            Self::Raised(sites, raised) => {
                map(sites.len(), |n| raised.value(&sites[n], m[n], v[n]))
            }
            Self::Expected(potentials, rule) => potentials.values(rule, m, v),
        }
    }

    pub(crate) fn value_of(&self, n: usize, m: f64, v: f64) -> Value {
        match self {
            Self::Dual(DualSites::Scalar(sites)) => sites[n].value(m, v),
            Self::Dual(DualSites::Given(sites)) => sites[n].value(m, v),
            Self::Raised(sites, raised) => raised.value(&sites[n], m, v),
            Self::Expected(potentials, rule) => potentials.value(rule, n, m, v),
            Self::Dual(DualSites::Vector(_)) => Value {
                f: f64::NAN,
                by_mean: f64::NAN,
                by_variance: f64::NAN,
            },
        }
    }

    /// Computes E h(η_n) for another function h with the site's own quadrature rule. Returns NaN if the site does not
    /// use quadrature.
    pub(crate) fn expectation(&self, n: usize, m: f64, v: f64, h: &dyn Fn(f64) -> f64) -> f64 {
        match self {
            Self::Expected(potentials, rule) => rule.expectation(potentials.width(n), m, v, h),
            Self::Dual(_) | Self::Raised(..) => f64::NAN,
        }
    }

    /// Computes the uncertainty in nats of the sum of the sites at these marginals. It is 0 if nothing is approximated.
    pub(crate) fn error(&self, m: &[f64], v: &[f64]) -> f64 {
        match self {
            Self::Expected(potentials, rule) => error(potentials.as_ref(), rule, m, v),
            Self::Dual(_) | Self::Raised(..) => 0.0,
        }
    }

    /// Returns how much the sum of the sites may differ from the prediction of its derivatives, in nats and in addition
    /// to rounding errors.
    pub(crate) fn discord(&self) -> f64 {
        match self {
            Self::Expected(potentials, _) => potentials.discord(),
            Self::Dual(_) | Self::Raised(..) => 0.0,
        }
    }

    /// Returns natural parameters (b, λ) at which the fixed point starts. If the sites have a convex dual, the function
    /// guesses a point from the data and returns the parameters after one step from there. Otherwise it returns the
    /// parameters at the prior mean.
    pub(crate) fn guess(&self, centre: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let n = centre.len();
        match self {
            Self::Dual(sites) => {
                let alpha = sites.guess();
                let at = sites.curves(&alpha).at;
                let b = map(n, |i| at[i].lambda * at[i].phi1 - alpha[i]);
                (b, map(n, |i| at[i].lambda))
            }
            Self::Raised(..) | Self::Expected(..) => {
                let values = self.values(centre, &vec![1.0; n]);
                // A site with negative curvature starts with a small positive curvature.
                let lambda = map(n, |i| (2.0 * values[i].by_variance).max(1e-6));
                let b = map(n, |i| lambda[i] * centre[i] - values[i].by_mean);
                (b, lambda)
            }
        }
    }

    pub(crate) fn by_parameters(&self, model: &LatentModel, m: &[f64], v: &[f64]) -> Vec<f64> {
        model.likelihood.by_parameters(&Fitted {
            data: &model.observations,
            sites: self,
            m,
            v,
        })
    }
}

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
            Self::Given(sites) => Curves {
                at: map(sites.len(), |n| sites[n].curve(alpha[n])),
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

    /// Returns the largest t ≥ 0 for which α + t d is in the closed domain.
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
            Self::Given(sites) => {
                let each = |n: usize| {
                    let (low, high) = sites[n].domain();
                    let d = direction[n];
                    let end = if d > 0.0 { high } else { low };
                    if d == 0.0 {
                        f64::INFINITY
                    } else {
                        (end - alpha[n]) / d
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

    /// Returns the point at `t` on the path from α in the given direction, which is straight in φ′. The point is
    /// strictly inside the domain, up to rounding.
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
            Self::Given(sites) => map(sites.len(), |n| {
                given::along(&*sites[n], alpha[n], &curves.at[n], t * direction[n])
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

    pub(crate) fn contains(&self, alpha: &[f64]) -> bool {
        match self {
            Self::Scalar(sites) => sites.iter().zip(alpha).all(|(site, a)| {
                let (low, high) = site.domain();
                (*a > low && *a < high) || (site.is_fixed() && *a == low)
            }),
            Self::Given(sites) => sites.iter().zip(alpha).all(|(site, a)| {
                let (low, high) = site.domain();
                *a > low && *a < high
            }),
            Self::Vector(sites) => sites
                .iter()
                .enumerate()
                .all(|(g, site)| site.contains(&alpha[g * site.size..(g + 1) * site.size])),
        }
    }

    /// Returns the maximising α at (m, v), strictly inside the domain. `values` are f and its derivatives there.
    pub(crate) fn maximisers(&self, m: &[f64], v: &[f64], values: &[Value]) -> Vec<f64> {
        match self {
            Self::Scalar(sites) => map(sites.len(), |n| sites[n].maximiser(m[n], v[n])),
            Self::Vector(_) | Self::Given(_) => values.iter().map(|v| v.by_mean).collect(),
        }
    }

    /// Returns a rough α that depends only on the responses.
    pub(crate) fn guess(&self) -> Vec<f64> {
        match self {
            Self::Scalar(sites) => sites.iter().map(Convex::guess).collect(),
            Self::Given(sites) => sites.iter().map(|site| given::guess(&**site)).collect(),
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
            Self::Given(sites) => map(sites.len(), |n| sites[n].value(m[n], v[n])),
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
            Self::Given(sites) => sum(sites.len(), |n| {
                given::gap(&*sites[n], alpha[n], m[n], v[n])
            }),
            Self::Vector(sites) => sum(sites.len(), |g| {
                let size = sites[g].size;
                let range = g * size..(g + 1) * size;
                sites[g].gap(&alpha[range.clone()], &m[range.clone()], &v[range])
            }),
        }
    }
}
