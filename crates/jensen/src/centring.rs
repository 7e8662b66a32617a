//! Automatic centring: Jensen chooses the parameterisation of each group effect in a hierarchical program.
//!
//! A mean-field fit of the original program estimates the conditional precision of every coordinate. If an element of a
//! group has the prior standard deviation σ, its prior contributes 1/σ² to the precision of the element, and the data
//! contribute the rest. Jensen sets the power of [`jensen_graph::Hierarchy`] to the fraction of the precision that the
//! data contribute. In the Gaussian case this choice makes the element independent of the location and scale of its
//! group. If the program uses the non-centred parameterisation for an element, the power is the fraction that the prior
//! contributes.
//!
//! Jensen first whitens correlated vectors, such as Gaussian processes. After the mean-field fit, Jensen
//! reparameterises these vectors according to the information in the data ([`jensen_graph::Site`]). If a program
//! computes a long time series from random shocks, Jensen uses the elements of the series as coordinates
//! ([`jensen_graph::Series`]), provided that a sparse family suits them.
//!
//! Centring does not change the posterior, the names of the variables or the draws that the fit reports.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use jensen_blackbox::{
    CONDITIONAL_FROM, FamilyChoice, FamilyKind, Init, Method, RefineSettings, RefineWhen, Settings,
    StartSettings, Subject, TrustSettings, finds_conditional, fit,
};
use jensen_density::{
    ConstrainError, Constrained, DrawKey, LogDensity, Posterior, Scale, Unconstrained, Variable,
};
use jensen_graph::exec::Program;
use jensen_graph::passes::{compact, optimise};
use jensen_graph::{GraphDensity, Hierarchy, Placed, Power, Recentred, Series, Site};
use jensen_math::simd::LANES;
use jensen_run::{Control, Limit, Silent, Status};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::stan::Model;
use crate::{Error, Problem};

/// The number of steps of the mean-field fit. Few steps suffice, because the starting points have already been
/// optimised with a small number of draws.
const STEPS: u64 = 4;
/// The tolerance of the mean-field fit, as a multiple of the default tolerance. The powers need an accuracy of only
/// 0.05. With this tolerance, the fit takes a tenth of the time of a full optimisation.
const LOOSE: f64 = 10.0;

const PASSES: usize = 2;

/// The number of draws for the diagnostics of the mean-field fit. The choice of the centring needs no more draws.
const JUDGED: usize = 128;

/// The smallest difference between a power and 1 that justifies a reparameterisation. The power 1 leaves the program's
/// own parameterisation unchanged.
const GAIN: f64 = 0.05;

/// A reparameterisation of coordinates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Centring {
    /// The coordinates of group effects. Each coordinate has its power and the logarithm of a typical scale.
    powers: Vec<(u32, f64, f64)>,
    /// The coordinates of correlated vectors. Each coordinate has the precision and the linear term that the data
    /// contribute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sites: Vec<(u32, f64, f64)>,
    series: bool,
}

impl Centring {
    /// Returns whether the centring leaves all coordinates unchanged.
    pub fn is_empty(&self) -> bool {
        self.powers.is_empty() && self.sites.is_empty() && !self.series
    }

    pub(crate) fn is_of_series(&self) -> bool {
        self.series
    }

    fn powers(&self) -> Vec<Power> {
        let power = |&(coordinate, lambda, log_scale): &(u32, f64, f64)| Power {
            coordinate,
            lambda,
            log_scale,
        };
        self.powers.iter().map(power).collect()
    }

    fn sites(&self) -> Vec<Site> {
        let site = |&(coordinate, weight, pull): &(u32, f64, f64)| Site {
            coordinate,
            weight,
            pull,
        };
        self.sites.iter().map(site).collect()
    }

    fn of_sites(sites: impl IntoIterator<Item = Site>) -> Vec<(u32, f64, f64)> {
        let stored = |site: Site| (site.coordinate, site.weight, site.pull);
        sites.into_iter().map(stored).collect()
    }

    /// Returns the centring for the first mean-field fit. This centring whitens the correlated vectors and leaves all
    /// other coordinates unchanged.
    fn first(hierarchy: &Hierarchy) -> Self {
        Self {
            sites: Self::of_sites(hierarchy.together().into_iter().map(Site::vague)),
            ..Self::default()
        }
    }

    /// Computes the next centring from a mean-field fit that used this centring. `mean` is the mean of the fit in the
    /// program's coordinates. `sd` contains the standard deviations of the fit in the recentred coordinates.
    fn next(&self, hierarchy: &Hierarchy, mean: &[f64], sd: &[f64]) -> Self {
        Self {
            powers: self.next_powers(&hierarchy.at(mean), sd),
            sites: Self::of_sites(hierarchy.sites(mean)),
            series: false,
        }
    }

    fn next_powers(&self, placed: &BTreeMap<u32, Placed>, sd: &[f64]) -> Vec<(u32, f64, f64)> {
        let present: BTreeMap<u32, Power> = self
            .powers()
            .into_iter()
            .map(|p| (p.coordinate, p))
            .collect();
        let power = |(coordinate, placed): (&u32, &Placed)| {
            let stretch = present.get(coordinate).map_or(0.0, |present| {
                (1.0 - present.lambda) * (placed.log_scale - present.log_scale)
            });
            let prior = placed.prior * (-stretch).exp();
            let of_prior = (sd[*coordinate as usize] / prior).powi(2).min(1.0);
            let lambda = match placed.by_hand {
                true => of_prior,
                false => 1.0 - of_prior,
            };
            (*coordinate, lambda, placed.log_scale)
        };
        let gains = |(_, lambda, log_scale): &(u32, f64, f64)| {
            *lambda < 1.0 - GAIN && log_scale.is_finite()
        };
        placed.iter().map(power).filter(gains).collect()
    }

    fn remark(&self) -> String {
        if self.series {
            return "centring: the fit uses the elements of series as parameters instead of the program's shocks"
                .to_owned();
        }
        let lambdas = || self.powers.iter().map(|(_, lambda, _)| *lambda);
        let mut said = Vec::new();
        if !self.powers.is_empty() {
            let (least, most) = (lambdas().fold(1.0, f64::min), lambdas().fold(0.0, f64::max));
            let (coordinates, weights) = match self.powers.len() {
                1 => (
                    "1 coordinate is".to_owned(),
                    format!("the weight {least:.2}"),
                ),
                count => (
                    format!("{count} coordinates are"),
                    format!("weights from {least:.2} to {most:.2}"),
                ),
            };
            said.push(format!(
                "{coordinates} partially centred, with {weights} (1 is the program's form)"
            ));
        }
        if !self.sites.is_empty() {
            said.push(format!(
                "{} coordinates of correlated vectors are whitened{}",
                self.sites.len(),
                match self.sites.iter().any(|(_, weight, _)| *weight > 0.0) {
                    true => " by their posterior precision",
                    false => "",
                }
            ));
        }
        format!("centring: {}", said.join("; "))
    }
}

impl Model {
    /// Chooses the centring from mean-field fits that run under `control`. Returns an empty centring if no group
    /// benefits from a reparameterisation, and `None` if a fit was stopped early.
    ///
    /// The second mean-field fit uses the centring that follows from the first fit. A single fit does not suffice,
    /// because a mean-field fit in the program's coordinates covers only a small part of a funnel.
    pub fn choose_centring(&self, settings: &Settings, control: &Control<'_>) -> Option<Centring> {
        let mut chosen = self.choose_series(settings, control)?;
        if chosen.series {
            return Some(chosen);
        }
        let Some(hierarchy) = self.hierarchy() else {
            return Some(chosen);
        };
        chosen = Centring::first(hierarchy);
        let mut start = StartSettings {
            starts: settings.start.starts.or(Some(1)),
            ..settings.start.clone()
        };
        for _ in 0..PASSES {
            let pilot = match self.centred(&chosen) {
                Ok(centred) => centred.pilot(settings, &start, control),
                Err(_) => return Some(Centring::default()),
            };
            let (mean, sd) = match pilot {
                Pilot::Found(mean, sd) => (mean, sd),
                Pilot::Nothing => return Some(Centring::default()),
                Pilot::Stopped => return None,
            };
            let next = chosen.next(hierarchy, &mean, &sd);
            if next.is_empty() || next == chosen {
                return Some(next);
            }
            chosen = next;
            start.init = Init::Point(mean);
        }
        Some(chosen)
    }

    pub(crate) fn has_site_for(&self, centring: &Centring) -> bool {
        let dim = self.graph_density().dim();
        let fits = |(coordinate, ..): &(u32, f64, f64)| (*coordinate as usize) < dim;
        if centring.series {
            return self.series().is_some();
        }
        let mut all = centring.powers.iter().chain(&centring.sites);
        centring.is_empty() || self.hierarchy().is_some() && all.all(fits)
    }

    /// Returns a centring that uses the elements of time series as coordinates instead of their shocks. In the
    /// program's coordinates, every element of a series depends on all earlier shocks. The centring is empty if a fit
    /// with these settings does not start with the conditionally structured Gaussian or does not find its mode. Returns
    /// `None` if the search was stopped early.
    fn choose_series(&self, settings: &Settings, control: &Control<'_>) -> Option<Centring> {
        let none = Centring::default();
        if self.series().is_none() || self.graph_density().dim() < CONDITIONAL_FROM {
            return Some(none);
        }
        let centring = Centring {
            series: true,
            ..Centring::default()
        };
        let Ok(centred) = self.centred(&centring) else {
            return Some(none);
        };
        let settings = Settings {
            start: StartSettings {
                init: centred.init(&settings.start.init),
                ..settings.start.clone()
            },
            ..settings.clone()
        };
        let begun = control.clock.seconds();
        let stopped = || {
            let cancelled = control.cancel.is_some_and(|c| c.load(Ordering::Relaxed));
            let most = control.budget.max_seconds.unwrap_or(f64::INFINITY);
            cancelled || control.clock.seconds() - begun >= most
        };
        match finds_conditional(centred.density(), &settings, control.clock, &stopped)? {
            true => Some(centring),
            false => Some(none),
        }
    }

    /// Returns the model in the coordinates of `centring`. The density is compiled again for these coordinates.
    ///
    /// # Errors
    /// Fails if the centring was computed for another program.
    pub fn centred(&self, centring: &Centring) -> Result<CentredModel<'_>, Error> {
        let ways = match centring.series {
            true => self.series().map(Series::over_elements),
            false => self
                .hierarchy()
                .filter(|_| self.has_site_for(centring))
                .map(|hierarchy| hierarchy.recentre(&centring.powers(), &centring.sites())),
        };
        let Some(ways) = ways else {
            return Err(Error::Input(
                "the stored centring belongs to another program".to_owned(),
            ));
        };
        Ok(CentredModel {
            model: self,
            density: GraphDensity::new(&ways.density, self.execution()).ended_by(self.ending()),
            forward: OnceLock::new(),
            ways,
            centring: centring.clone(),
        })
    }
}

enum Pilot {
    /// The mean in the program's coordinates, and the standard deviations in the recentred coordinates.
    Found(Vec<f64>, Vec<f64>),
    Nothing,
    /// The fit was stopped early, so its result would not be reproducible.
    Stopped,
}

/// A program in recentred coordinates, with the same posterior and the same variable names as the original program.
pub struct CentredModel<'a> {
    model: &'a Model,
    density: GraphDensity,
    ways: Recentred,
    /// The transform to the program's coordinates. It is compiled when draws are first requested.
    forward: OnceLock<Program>,
    centring: Centring,
}

impl CentredModel<'_> {
    fn own_coordinates(&self, points: &[f64]) -> Vec<f64> {
        let program = self.forward.get_or_init(|| {
            let graph = compact(&optimise(self.ways.forward_graph()));
            Program::new(graph, self.model.execution().simd, 0)
        });
        let dim = self.density.dim().max(1);
        let mut arena = program.arena(false);
        let mut moved = vec![0.0; points.len()];
        let size = program.block() * dim;
        for (points, moved) in points.chunks(size).zip(moved.chunks_mut(size)) {
            let lanes = (points.len() / dim).next_multiple_of(LANES);
            let mut rows = vec![0.0; dim * lanes];
            for (lane, point) in points.chunks(dim).enumerate() {
                for (i, x) in point.iter().enumerate() {
                    rows[i * lanes + lane] = *x;
                }
            }
            program.run(&mut arena, &[&rows], lanes);
            program.output(&arena, &[&rows], 0, lanes, |i, row| {
                for (moved, x) in moved.chunks_mut(dim).zip(row) {
                    moved[i] = *x;
                }
            });
        }
        moved
    }

    fn pilot(&self, settings: &Settings, start: &StartSettings, control: &Control<'_>) -> Pilot {
        let usual = TrustSettings::default();
        let settings = Settings {
            method: Method::Trust(TrustSettings {
                max_iterations: STEPS,
                tolerance: Some(LOOSE * usual.tolerance(self.density.dim())),
                ..usual
            }),
            family: FamilyChoice::Only(FamilyKind::MeanField),
            refine: RefineSettings::of(RefineWhen::Never),
            evaluation_draws: JUDGED,
            start: StartSettings {
                init: self.init(&start.init),
                ..start.clone()
            },
            ..settings.clone()
        };
        let mut silent = Silent;
        let mut control = Control {
            cancel: control.cancel,
            ..Control::new(control.budget, control.clock, &mut silent)
        };
        let Ok(pilot) = fit(&self.density, &settings, &Subject::default(), &mut control) else {
            let cancelled = control.cancel.is_some_and(|c| c.load(Ordering::Relaxed));
            return match cancelled {
                true => Pilot::Stopped,
                false => Pilot::Nothing,
            };
        };
        match pilot.status {
            Status::Interrupted { .. }
            | Status::BudgetReached {
                limit: Limit::Seconds(_),
                ..
            } => Pilot::Stopped,
            _ => {
                let found = pilot.approximation();
                Pilot::Found(self.ways.forward(&found.mean()), found.sd())
            }
        }
    }

    /// Converts starting points from the program's coordinates to the recentred coordinates.
    pub fn init(&self, init: &Init) -> Init {
        match init {
            Init::Point(point) if point.len() == self.density.dim() => {
                Init::Point(self.ways.backward(point))
            }
            other => other.clone(),
        }
    }
}

impl Problem for CentredModel<'_> {
    type Density = GraphDensity;

    fn density(&self) -> &GraphDensity {
        &self.density
    }

    fn posterior(&self) -> &dyn Posterior {
        self
    }

    fn reporting(&self, wanted: &dyn Fn(&Variable) -> bool) -> Option<Box<dyn Posterior + '_>> {
        let posterior = self.model.reporting(wanted)?;
        Some(Box::new(Moved {
            posterior,
            model: self,
        }))
    }

    fn subject(&self) -> Subject {
        let subject = self.model.subject();
        let mut hash = Sha256::new();
        hash.update([u8::from(self.centring.series)]);
        for all in [&self.centring.powers, &self.centring.sites] {
            for (coordinate, a, b) in all {
                hash.update(coordinate.to_le_bytes());
                hash.update(a.to_le_bytes());
                hash.update(b.to_le_bytes());
            }
        }
        let digest: String = hash
            .finalize()
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Subject {
            model_hash: format!("{}-centred-{digest}", subject.model_hash),
            ..subject
        }
    }

    fn build_seconds(&self) -> f64 {
        self.model.build_seconds()
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = self.model.remarks();
        remarks.push(self.centring.remark());
        remarks
    }

    fn block_bytes(&self) -> usize {
        self.density.peak_bytes()
    }
}

impl Posterior for CentredModel<'_> {
    fn variables(&self) -> Vec<Variable> {
        self.model.posterior().variables()
    }

    fn unconstrained_names(&self) -> Vec<String> {
        self.model.posterior().unconstrained_names()
    }

    fn scales(&self) -> Vec<Scale> {
        self.model.posterior().scales()
    }

    fn constrain(&self, z: &[f64], key: DrawKey, out: &mut Vec<f64>) -> Result<(), ConstrainError> {
        self.model
            .posterior()
            .constrain(&self.ways.forward(z), key, out)
    }

    fn constrain_all(&self, points: &[f64], keys: &[DrawKey]) -> Vec<Constrained> {
        let moved = self.own_coordinates(points);
        self.model.posterior().constrain_all(&moved, keys)
    }

    fn together(&self) -> usize {
        self.model.posterior().together()
    }

    fn unconstrain(&self, lookup: &Unconstrained<'_>) -> Result<Vec<f64>, ConstrainError> {
        let point = self.model.posterior().unconstrain(lookup)?;
        Ok(self.ways.backward(&point))
    }
}

struct Moved<'a> {
    posterior: Box<dyn Posterior + 'a>,
    model: &'a CentredModel<'a>,
}

impl Posterior for Moved<'_> {
    fn variables(&self) -> Vec<Variable> {
        self.posterior.variables()
    }

    fn unconstrained_names(&self) -> Vec<String> {
        self.posterior.unconstrained_names()
    }

    fn constrain(&self, z: &[f64], key: DrawKey, out: &mut Vec<f64>) -> Result<(), ConstrainError> {
        let point = self.model.ways.forward(z);
        self.posterior.constrain(&point, key, out)
    }

    fn constrain_all(&self, points: &[f64], keys: &[DrawKey]) -> Vec<Constrained> {
        let moved = self.model.own_coordinates(points);
        self.posterior.constrain_all(&moved, keys)
    }

    fn together(&self) -> usize {
        self.posterior.together()
    }

    fn unconstrain(&self, lookup: &Unconstrained<'_>) -> Result<Vec<f64>, ConstrainError> {
        self.model.unconstrain(lookup)
    }
}
