//! A latent Gaussian model: prior, design, likelihood, bound and observations.

use rayon::prelude::*;

use crate::{Covariance, Design, Error, Likelihood, SiteBound, Size, Structure};

/// The observations of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observations {
    /// The response y, one per observation. A multinomial response is the index of its category, from 0.
    pub response: Vec<f64>,
    /// The size of each observation. Its meaning depends on the likelihood ([`Likelihood::sized_by`]): an exposure, a
    /// number of trials, the known standard deviation of an error, whether an event was observed, or the end of an
    /// interval. The default is 1, except for intervals, which have no default.
    pub size: Option<Vec<f64>>,
    /// Offsets of the linear predictors, one per predictor.
    pub offset: Option<Vec<f64>>,
}

impl Observations {
    /// Returns the size of observation `i`.
    pub fn size_of(&self, i: usize) -> f64 {
        self.size.as_ref().map_or(1.0, |sizes| sizes[i])
    }

    /// Creates observations that have responses only.
    pub fn new(response: Vec<f64>) -> Self {
        Self {
            response,
            ..Self::default()
        }
    }
}

/// A latent Gaussian model at fixed hyperparameters.
#[derive(Clone, Debug, PartialEq)]
pub struct LatentModel {
    /// The prior of the latent variables.
    pub prior: Structure,
    /// The design, which maps latent variables to linear predictors.
    pub design: Design,
    /// The likelihood of an observation.
    pub likelihood: Likelihood,
    /// The bound on the expected log likelihood.
    pub bound: SiteBound,
    /// The observations.
    pub observations: Observations,
}

impl LatentModel {
    /// Returns the number N of linear predictors.
    pub fn predictors(&self) -> usize {
        self.observations.response.len() * self.likelihood.predictors()
    }

    /// Returns the model of every `step`-th observation, starting with the first. Returns `None` if its design is not
    /// projected.
    pub(crate) fn thinned(&self, step: usize) -> Option<Self> {
        let design = self.design.thinned(step)?;
        let each = |list: &[f64]| list.iter().step_by(step).copied().collect::<Vec<f64>>();
        let Observations {
            response,
            size,
            offset,
        } = &self.observations;
        Some(Self {
            design,
            observations: Observations {
                response: each(response),
                size: size.as_deref().map(each),
                offset: offset.as_deref().map(each),
            },
            ..self.clone()
        })
    }

    /// Returns the number of rows of the design: one per predictor, or one per contrast if contrasts of categories
    /// replace the predictors.
    pub(crate) fn design_rows(&self) -> usize {
        match &self.design {
            Design::Identity => self.prior.len(),
            Design::Select(index) => index.len(),
            Design::Dense(w) | Design::Projected(w, _) => w.rows,
            Design::Sparse(w) => w.rows,
            Design::Copies(w) => w.rows(),
        }
    }

    /// Checks the model for errors that no solver can handle.
    ///
    /// # Errors
    /// Fails if sizes do not match, if numbers are not finite, if responses are outside the likelihood's domain, if the
    /// likelihood does not support the bound, or if a covariance is not symmetric.
    pub fn check(&self) -> Result<(), Error> {
        self.check_bound()?;
        self.check_observations()?;
        self.check_design()?;
        self.check_prior()
    }

    fn check_bound(&self) -> Result<(), Error> {
        if !self.likelihood.bounds().contains(&self.bound) {
            return Err(self.bound_refused());
        }
        for (name, value) in self
            .likelihood
            .parameters()
            .iter()
            .zip(self.likelihood.values())
        {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::Unsupported(format!(
                    "{name} of the likelihood `{}` must be positive and finite, not {value}",
                    self.likelihood.name()
                )));
            }
        }
        let categories = self.likelihood.categories().or(self.likelihood.levels());
        if categories.is_some_and(|k| k < 2) {
            return Err(Error::Unsupported(format!(
                "a {} likelihood needs at least two categories",
                self.likelihood.name()
            )));
        }
        Ok(())
    }

    pub(crate) fn bound_refused(&self) -> Error {
        let offered: Vec<_> = self.likelihood.bounds().iter().map(|b| b.name()).collect();
        Error::Unsupported(format!(
            "the bound `{}` is not available for the likelihood `{}`; choose {}",
            self.bound.name(),
            self.likelihood.name(),
            offered.join(", ")
        ))
    }

    fn check_observations(&self) -> Result<(), Error> {
        let data = &self.observations;
        let n = data.response.len();
        if n == 0 {
            return Err(Error::Data("there are no observations".to_owned()));
        }
        let sized = self.likelihood.sized_by();
        for (what, column, len) in [
            (sized.name(), &data.size, n),
            ("offset", &data.offset, self.predictors()),
        ] {
            if let Some(column) = column {
                same_length(what, column.len(), len)?;
                // The intervals of right-censored times have no end.
                let endless = sized == Size::Until && what == sized.name();
                if !(endless && column.iter().all(|x| !x.is_nan())) {
                    finite(what, column)?;
                }
            }
        }
        finite("response", &data.response)?;
        if sized == Size::Until && data.size.is_none() {
            return Err(Error::Data(format!(
                "the likelihood `{}` needs the end of the interval of each observation",
                self.likelihood.name()
            )));
        }
        for (i, &size) in data.size.iter().flatten().enumerate() {
            if let Some(domain) = self.likelihood.refuses_size(data.response[i], size) {
                return Err(Error::Data(format!(
                    "{} {} is {size}, but must be {domain}",
                    sized.name(),
                    i + 1
                )));
            }
        }
        if data
            .size
            .iter()
            .any(|sizes| sizes.iter().all(|size| *size == 0.0))
            && self.likelihood.sized_by() == Size::Exposure
        {
            return Err(Error::Data(
                "all exposures are 0, so nothing bounds the intensity; add cells with their areas"
                    .to_owned(),
            ));
        }
        for (i, &y) in data.response.iter().enumerate() {
            if let Some(domain) = self.likelihood.refuses(y, data.size_of(i)) {
                return Err(Error::Data(format!(
                    "response {} is {y}, but the likelihood `{}` needs {domain}",
                    i + 1,
                    self.likelihood.name()
                )));
            }
        }
        if let Some(categories) = self.likelihood.categories() {
            let seen = |k| data.response.contains(&(k as f64));
            if let Some(k) = (0..categories).find(|&k| !seen(k)) {
                return Err(Error::Data(format!(
                    "category {k} of {categories} has no observation; merge it with another or remove it"
                )));
            }
        }
        Ok(())
    }

    fn check_design(&self) -> Result<(), Error> {
        let (rows, latents) = (self.predictors(), self.prior.len());
        match &self.design {
            Design::Identity => same_length("latent variables", latents, rows),
            Design::Select(index) => {
                same_length("rows of the design", index.len(), rows)?;
                let bad = index.iter().position(|&l| l >= latents);
                bad.map_or(Ok(()), |i| {
                    Err(Error::Data(format!(
                        "predictor {} refers to latent variable {}, but there are only {latents}",
                        i + 1,
                        index[i] + 1
                    )))
                })
            }
            Design::Dense(w) => {
                same_length("rows of the design", w.rows, rows)?;
                same_length("columns of the design", w.cols, latents)?;
                finite("design", &w.data)
            }
            Design::Projected(w, residuals) => {
                same_length("rows of the design", w.rows, rows)?;
                same_length("columns of the design", w.cols, latents)?;
                same_length("residuals of the design", residuals.len(), rows)?;
                finite("design", &w.data)?;
                finite("residual of the design", residuals)?;
                if self.likelihood.predictors() > 1 {
                    return Err(Error::Unsupported(format!(
                        "inducing points need one linear predictor per observation, but `{}` has {}",
                        self.likelihood.name(),
                        self.likelihood.predictors()
                    )));
                }
                match &self.prior.covariance {
                    Covariance::Diagonal(_) => Ok(()),
                    _ => Err(Error::Unsupported(
                        "a design with residuals needs independent latent variables".to_owned(),
                    )),
                }
            }
            Design::Sparse(w) => {
                same_length("rows of the design", w.rows, rows)?;
                same_length("columns of the design", w.cols, latents)?;
                finite("design", &w.value)
            }
            Design::Copies(w) => {
                same_length("rows of the design", w.rows(), rows)?;
                same_length("columns of the design", w.cols(), latents)?;
                finite("design", &w.one().data)
            }
        }
    }

    fn check_prior(&self) -> Result<(), Error> {
        let latents = self.prior.len();
        if latents == 0 {
            return Err(Error::Prior("the prior has no latent variable".to_owned()));
        }
        let prior = |e: Error| match e {
            Error::Data(text) => Error::Prior(format!("prior: {text}")),
            other => other,
        };
        finite("mean", &self.prior.mean).map_err(prior)?;
        match &self.prior.covariance {
            Covariance::Dense(sigma) => {
                same_length("rows of the covariance", sigma.rows, latents).map_err(prior)?;
                same_length("columns of the covariance", sigma.cols, latents).map_err(prior)?;
                finite("covariance", &sigma.data).map_err(prior)?;
                symmetric(sigma)
            }
            Covariance::Diagonal(variances) => {
                same_length("variances", variances.len(), latents).map_err(prior)?;
                finite("variance", variances).map_err(prior)?;
                let bad = variances.iter().position(|v| *v <= 0.0);
                bad.map_or(Ok(()), |l| {
                    Err(Error::Prior(format!(
                        "prior variance {} is {}, but variances must be positive",
                        l + 1,
                        variances[l]
                    )))
                })
            }
            Covariance::Chain(chain) => {
                same_length("latent variables of the chain", chain.latents(), latents)
                    .map_err(prior)?;
                let numbers: Vec<f64> = (chain.steps.iter())
                    .flat_map(|step| [step.transition, step.noise])
                    .chain([chain.initial])
                    .flat_map(|square| square.concat())
                    .collect();
                finite("chain", &numbers).map_err(prior)?;
                finite("variance", &chain.others).map_err(prior)
            }
            Covariance::Precision(q) => {
                same_length("rows of the precision", q.matrix.rows, latents).map_err(prior)?;
                same_length("columns of the precision", q.matrix.cols, latents).map_err(prior)?;
                finite("precision", &q.matrix.value).map_err(prior)?;
                if let Some(null) = &q.null_space {
                    same_length("rows of the null space", null.rows, latents).map_err(prior)?;
                    finite("null space", &null.data).map_err(prior)?;
                }
                Ok(())
            }
        }
    }
}

fn same_length(what: &str, found: usize, expected: usize) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Data(format!(
        "{what}: found {found}, expected {expected}"
    )))
}

fn finite(what: &str, values: &[f64]) -> Result<(), Error> {
    match values.par_iter().position_first(|x| !x.is_finite()) {
        None => Ok(()),
        Some(i) => Err(Error::Data(format!(
            "{what}: element {} is {}, but all elements must be finite; remove or impute missing values",
            i + 1,
            values[i]
        ))),
    }
}

pub(crate) fn symmetric(sigma: &crate::Dense) -> Result<(), Error> {
    let n = sigma.rows;
    let scale = (0..n).map(|i| sigma.get(i, i).abs()).fold(0.0, f64::max);
    for j in 0..n {
        for i in j + 1..n {
            if (sigma.get(i, j) - sigma.get(j, i)).abs() > 1e-10 * scale {
                return Err(Error::Prior(format!(
                    "the prior covariance is not symmetric: elements ({}, {}) and ({}, {}) are {} and {}",
                    i + 1,
                    j + 1,
                    j + 1,
                    i + 1,
                    sigma.get(i, j),
                    sigma.get(j, i)
                )));
            }
        }
    }
    Ok(())
}
