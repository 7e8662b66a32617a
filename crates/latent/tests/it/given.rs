//! Tests of user-defined sites.

use crate::common::{as_precision, converged, identity, model, tight};
use jensen_latent::{
    Error, Fit, LatentModel, Likelihood, Site, SiteBound, SiteCurve, SiteValue, Solver, check_site,
    fit_sites,
};
use jensen_run::{Budget, Control, Silent};

/// Right-censored Weibull times with shape k and scale e^η: −log p = k η δ + (t/e^η)^k + c.
#[derive(Debug)]
struct Weibull {
    shape: f64,
    time: f64,
    observed: bool,
}

impl Site for Weibull {
    fn value(&self, m: f64, v: f64) -> SiteValue {
        let (k, a) = (self.shape, self.shape * f64::from(u8::from(self.observed)));
        let hazard = (k * (self.time.ln() - m) + 0.5 * k * k * v).exp();
        SiteValue {
            f: a * m + hazard,
            by_mean: a - k * hazard,
            by_variance: 0.5 * k * k * hazard,
        }
    }

    fn curve(&self, alpha: f64) -> SiteCurve {
        let (k, a) = (self.shape, self.shape * f64::from(u8::from(self.observed)));
        let hazard = (a - alpha) / k;
        let log = hazard.ln() - k * self.time.ln();
        SiteCurve {
            lambda: k * (a - alpha),
            lambda1: -k,
            lambda2: 0.0,
            phi: hazard * (log - 1.0),
            phi1: -log / k,
            phi2: 1.0 / (k * k * hazard),
        }
    }

    fn domain(&self) -> (f64, f64) {
        (
            f64::NEG_INFINITY,
            self.shape * f64::from(u8::from(self.observed)),
        )
    }
}

#[derive(Debug)]
struct Poisson {
    y: f64,
    exposure: f64,
}

impl Site for Poisson {
    fn value(&self, m: f64, v: f64) -> SiteValue {
        let mean = self.exposure * (m + 0.5 * v).exp();
        let factorial: f64 = (1..=self.y as u32).map(|i| f64::from(i).ln()).sum();
        SiteValue {
            f: mean - self.y * (m + self.exposure.ln()) + factorial,
            by_mean: mean - self.y,
            by_variance: 0.5 * mean,
        }
    }

    fn curve(&self, alpha: f64) -> SiteCurve {
        let lambda = alpha + self.y;
        let log = (lambda / self.exposure).ln();
        let factorial: f64 = (1..=self.y as u32).map(|i| f64::from(i).ln()).sum();
        SiteCurve {
            lambda,
            lambda1: 1.0,
            lambda2: 0.0,
            phi: lambda * (log - 1.0) + self.y * self.exposure.ln() - factorial,
            phi1: log,
            phi2: 1.0 / lambda,
        }
    }

    fn domain(&self) -> (f64, f64) {
        (-self.y, f64::INFINITY)
    }
}

fn fitted(model: &LatentModel, sites: Vec<Box<dyn Site>>, solver: Solver) -> Result<Fit, Error> {
    let (mut silent, clock) = (Silent, || 0.0);
    let mut control = Control::new(Budget::iterations(5000), &clock, &mut silent);
    let settings = jensen_latent::Settings { solver, ..tight() };
    let offset = model.observations.offset.as_deref();
    fit_sites(
        &model.prior,
        &model.design,
        offset,
        sites,
        &settings,
        &identity(),
        &mut control,
    )
}

#[test]
fn brought_sites_are_solved_as_the_crate_s_own() {
    let own = model(Likelihood::poisson(), SiteBound::Exact, 12);
    let sites = || -> Vec<Box<dyn Site>> {
        let data = &own.observations;
        let exposures = data.size.as_ref().unwrap();
        let pairs = data.response.iter().zip(exposures);
        pairs
            .map(|(&y, &exposure)| Box::new(Poisson { y, exposure }) as Box<dyn Site>)
            .collect()
    };
    for model in [own.clone(), as_precision(&own)] {
        let reference = converged(&model);
        let found = fitted(&model, sites(), Solver::Dual).unwrap();
        assert!(found.status.is_converged(), "{}", found.status);
        assert!(found.gap.unwrap() <= 1e-10);
        assert!((found.bound - reference.bound).abs() < 1e-8);
        for (x, y) in found.mean.iter().zip(&reference.mean) {
            assert!((x - y).abs() < 1e-4, "{x} {y}");
        }
        for (x, y) in found.variance.iter().zip(&reference.variance) {
            assert!((x - y).abs() < 1e-4, "{x} {y}");
        }
    }
}

fn times() -> Vec<Box<dyn Site>> {
    (0..12)
        .map(|i| {
            Box::new(Weibull {
                shape: 1.7,
                time: 0.4 + 0.3 * f64::from(i % 5),
                observed: i % 3 != 1,
            }) as Box<dyn Site>
        })
        .collect()
}

#[test]
fn a_likelihood_of_the_user_s_is_certified_and_agrees_with_another_solver() {
    let model = model(Likelihood::gaussian(1.0), SiteBound::Exact, 12);
    let dual = fitted(&model, times(), Solver::Dual).unwrap();
    assert!(dual.status.is_converged() && dual.gap.unwrap() <= 1e-10);
    let primal = fitted(&model, times(), Solver::Primal).unwrap();
    assert!(
        (dual.bound - primal.bound).abs() < 1e-5,
        "{} {}",
        dual.bound,
        primal.bound
    );
}

#[test]
fn sites_are_checked() {
    for (m, v) in [(0.0, 1.0), (-1.3, 0.2), (2.0, 3.0)] {
        for site in times() {
            let off = check_site(&*site, m, v);
            assert!(off < 1e-5, "{site:?} {m} {v}: {off}");
        }
    }
    #[derive(Debug)]
    struct Wrong(Weibull);
    impl Site for Wrong {
        fn value(&self, m: f64, v: f64) -> SiteValue {
            self.0.value(m, v)
        }
        fn curve(&self, alpha: f64) -> SiteCurve {
            let at = self.0.curve(alpha);
            SiteCurve {
                lambda: 2.0 * at.lambda,
                ..at
            }
        }
        fn domain(&self) -> (f64, f64) {
            self.0.domain()
        }
    }
    let wrong = Wrong(Weibull {
        shape: 1.7,
        time: 1.0,
        observed: true,
    });
    assert!(check_site(&wrong, 0.0, 1.0) > 0.1);

    let model = model(Likelihood::gaussian(1.0), SiteBound::Exact, 12);
    let mut sites = times();
    sites[3] = Box::new(Weibull {
        shape: 1.7,
        time: f64::INFINITY,
        observed: true,
    });
    let refused = fitted(&model, sites, Solver::Dual).unwrap_err().to_string();
    assert!(refused.contains("site 4"), "{refused}");
}
