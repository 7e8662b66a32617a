//! One of several categories.

use jensen_math::special::inv_logit;

use super::Likelihood;
use super::row::{Form, LikelihoodRow, Response, Size, no_distribution, no_parameters};
use crate::site::SiteBound;
use crate::site::multinomial::Multinomial;

pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "multinomial",
    law: "log odds against the last category: one η for each other category",
    parameters: &[],
    usual: &[],
    priors: &[],
    location: false,
    response: Response::Category,
    size: Size::One,
    bounds: &[SiteBound::Exact, SiteBound::Log],
    log_concave: true,
    points: false,
    mean: |_, eta, _| inv_logit(eta),
    log_density: |_, _, _, _| f64::NAN,
    distribution: no_distribution,
    form: |likelihood, data| {
        let size = likelihood.predictors();
        let site = |y: &f64| Multinomial {
            category: *y as usize,
            size,
        };
        Form::Categorical(data.response.iter().map(site).collect())
    },
    by_parameters: no_parameters,
};

impl Likelihood {
    /// Returns the likelihood of a category y ∈ {0, …, categories − 1} with log odds η_k relative to the last category.
    /// An observation has categories − 1 linear predictors.
    pub fn multinomial(categories: usize) -> Self {
        Self::of(&ROW, &[]).with_categories(categories)
    }
}
