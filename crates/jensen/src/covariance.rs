//! The methods for computing the reported covariances, and the function that finds coordinates by parameter name.

use jensen_blackbox::{Fit, LinearResponseSettings, Settings};

use crate::{Error, Problem};

/// The method that determines the covariances of the draws.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Covariance {
    /// The draws have the covariance of the fitted approximation.
    #[default]
    Family,
    /// The draws have the covariance from linear response at the mean-field optimum. Linear response corrects the
    /// variances of a mean-field family, which are too small. See [`jensen_blackbox::linear_response`].
    LinearResponse {
        /// The names of whole parameters (`beta`) or of elements of unconstrained vectors (`beta[2]`) whose variances
        /// are corrected. All other parameters keep their mean-field variances. If the list is empty, all parameters
        /// are corrected. This requires the full covariance matrix.
        of: Vec<String>,
    },
}

impl Covariance {
    pub(crate) fn apply<P: Problem>(
        &self,
        problem: &P,
        fit: &mut Fit,
        settings: &Settings,
    ) -> Result<(), Error> {
        let Self::LinearResponse { of } = self else {
            return Ok(());
        };
        let mut response = LinearResponseSettings::default();
        if !of.is_empty() {
            response.coordinates = Some(coordinates(problem, of)?);
        }
        fit.respond(problem.density(), settings, &response);
        Ok(())
    }

    pub(crate) fn check<P: Problem>(&self, problem: &P) -> Result<(), Error> {
        match self {
            Self::LinearResponse { of } => coordinates(problem, of).map(|_| ()),
            Self::Family => Ok(()),
        }
    }
}

/// Returns the coordinates of the named parameters in increasing order and without duplicates.
fn coordinates<P: Problem>(problem: &P, names: &[String]) -> Result<Vec<usize>, Error> {
    let posterior = problem.posterior();
    let known = posterior.unconstrained_names();
    let mut chosen = vec![false; known.len()];
    for name in names {
        // The name of the coordinate that belongs to `beta[2,1]` is `beta.2.1`.
        let plain: String = name
            .chars()
            .filter(|c| *c != ']' && !c.is_whitespace())
            .map(|c| if "[,".contains(c) { '.' } else { c })
            .collect();
        let inside = format!("{plain}.");
        let mut found = false;
        for (chosen, coordinate) in chosen.iter_mut().zip(&known) {
            if *coordinate == plain || coordinate.starts_with(&inside) {
                *chosen = true;
                found = true;
            }
        }
        if !found {
            let mut parameters: Vec<&str> = known
                .iter()
                .map(|k| k.split('.').next().unwrap_or(k))
                .collect();
            parameters.dedup();
            return Err(Error::Input(format!(
                "there is no parameter `{name}`; the parameters are {}",
                parameters.join(", ")
            )));
        }
    }
    let indices = chosen.iter().enumerate().filter(|(_, chosen)| **chosen);
    Ok(indices.map(|(i, _)| i).collect())
}

#[cfg(test)]
mod tests {
    use jensen_data::DataSet;

    use super::*;
    use crate::stan::{Build, Model};
    use crate::{Options, fit};

    /// Two regressions whose predictors have nonzero means, so that intercepts and slopes are correlated in the
    /// posterior.
    const PROGRAM: &str = "
        data { int N; vector[N] x; vector[N] y; }
        parameters { real a; matrix[2, 1] b; real<lower=0> sigma; }
        model { a ~ normal(0, 10); to_vector(b) ~ normal(0, 5); sigma ~ exponential(1);
                y ~ normal(a + b[1, 1] * x + b[2, 1] * square(x), sigma); }";

    fn model() -> Model {
        let data = br#"{"N": 12, "x": [1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5],
                        "y": [1.1, 1.3, 2.2, 2.4, 3.1, 3.2, 4.4, 4.3, 5.2, 5.3, 6.3, 6.2]}"#;
        let data = DataSet::from_json(data, "data").unwrap();
        Model::compile(PROGRAM, "line.stan", &data, &Build::default()).unwrap()
    }

    #[test]
    fn parameters_are_found_whole_and_by_element() {
        let model = model();
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
            coordinates(&model, &names)
        };
        assert_eq!(of(&["sigma", "b"]).unwrap(), [1, 2, 3]);
        assert_eq!(of(&["b[2, 1]", "b[2,1]", "a"]).unwrap(), [0, 2]);
        let error = of(&["beta"]).unwrap_err().to_string();
        assert!(error.contains("a, b, sigma"), "{error}");
    }

    #[test]
    fn linear_response_widens_a_mean_field_fit() {
        let model = model();
        let sds = |options: &Options| -> Vec<f64> {
            let fitted = fit(&model, options).unwrap();
            fitted.parameters().iter().map(|p| p.sd).collect()
        };
        let mut options = Options::default();
        options.settings.family =
            jensen_blackbox::FamilyChoice::Only(jensen_blackbox::FamilyKind::MeanField);
        options.draws = 20_000;
        let narrow = sds(&options);
        options.covariance = Covariance::LinearResponse { of: Vec::new() };
        let wide = sds(&options);
        options.covariance = Covariance::LinearResponse {
            of: vec!["a".into()],
        };
        let one = sds(&options);
        options.settings.family =
            jensen_blackbox::FamilyChoice::Only(jensen_blackbox::FamilyKind::FullRank);
        options.covariance = Covariance::Family;
        let full = sds(&options);
        for i in 0..3 {
            assert!(wide[i] > 2.0 * narrow[i], "{i}: {wide:?} {narrow:?}");
            assert!((wide[i] / full[i] - 1.0).abs() < 0.1, "{wide:?} {full:?}");
        }
        assert!((one[0] / wide[0] - 1.0).abs() < 0.03, "{one:?} {wide:?}");
        assert!(
            (one[1] / narrow[1] - 1.0).abs() < 0.03,
            "{one:?} {narrow:?}"
        );
    }
}
