//! The result of a fit.

use jensen_density::TwiceDifferentiable;
use jensen_run::{Reason, Status};

use crate::approximation::Approximation;
use crate::calls::Calls;
use crate::driver::{DriverOutput, FamilyResult, choose};
use crate::family::Space;
use crate::noise::NoiseSource;
use crate::policy::Policy;
use crate::refine::Refined;
use crate::ridges::Line;
use crate::settings::{FamilyChoice, Settings};
use crate::starts::{OtherMode, StartOutcome, best_start, modes_of};
use crate::symmetry::Labellings;

/// The result of a fit, with the evaluations of its families and its verdict.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fit {
    /// The results of all fitted families, in the order in which they were fitted.
    pub families: Vec<FamilyResult>,
    /// The index of the chosen family in `families`.
    pub chosen: usize,
    /// The status at the end of the optimisation of the chosen family.
    pub status: Status,
    /// The status at the end of the whole run, including the refinement.
    pub ended: Status,
    /// The outcome of every start. The list is empty if the method has no starts.
    pub starts: Vec<StartOutcome>,
    /// Draws of the posterior, if the fit was refined.
    pub refined: Option<Refined>,
    pub(crate) labellings: Labellings,
    /// For each of the [modes](Self::modes), the line through the best optimum and this mode.
    pub(crate) lines: Vec<Line>,
    /// Whether the chosen result is a mean-field fit with [linear-response](Self::respond) covariances.
    pub corrected: bool,
    pub(crate) objections: Vec<Reason>,
    /// The number of finished iterations.
    pub iterations: u64,
    /// The number of evaluations of the density, by kind.
    pub calls: Calls,
    /// The wall-clock time in seconds.
    pub seconds: f64,
    /// The policy under which the fit ran.
    pub policy: Policy,
    pub(crate) names: Vec<String>,
    pub(crate) space: Space,
    pub(crate) choice: FamilyChoice,
    pub(crate) source: NoiseSource,
}

impl Fit {
    pub(crate) fn of<D: TwiceDifferentiable>(
        output: DriverOutput,
        status: Status,
        density: &D,
        settings: &Settings,
    ) -> Option<Self> {
        let policy = settings.policy;
        let chosen = choose(&output.results, &policy);
        let own = output.results.get(chosen)?.status.clone();
        let modes = modes_of(&output.starts);
        let source = NoiseSource::new(settings.seed, settings.simd);
        let labellings =
            Labellings::of(density, source, &output.starts, &modes, &settings.variables);
        let lines = lines(density, &output.starts, &labellings.others(&modes));
        Some(Self {
            chosen,
            ended: status.clone(),
            status: own.unwrap_or(status),
            families: output.results,
            starts: output.starts,
            refined: None,
            labellings,
            lines,
            corrected: false,
            objections: Vec::new(),
            iterations: 0,
            calls: output.calls,
            seconds: 0.0,
            policy,
            names: settings.names.clone(),
            space: Space::of(density),
            choice: settings.family.clone(),
            source,
        })
    }

    pub(crate) fn name_of(&self, coordinate: usize) -> String {
        match self.names.get(coordinate) {
            Some(name) => format!("`{name}`"),
            None => format!("coordinate {}", coordinate + 1),
        }
    }

    /// Returns the result of the chosen family.
    pub fn best(&self) -> &FamilyResult {
        &self.families[self.chosen]
    }

    /// Returns the chosen approximation.
    pub fn approximation(&self) -> Approximation {
        self.approximation_of(self.chosen)
    }

    /// Returns the approximation of the family with the given index.
    ///
    /// # Panics
    /// Panics if the family does not exist, which is a bug in the caller.
    pub fn approximation_of(&self, index: usize) -> Approximation {
        let result = &self.families[index];
        let family = self.choice.named(&result.family, &self.space);
        Approximation::of(family, result.omega.clone())
            .expect("a fitted family has all its parameters")
    }

    /// Returns the ELBO in nats.
    pub fn elbo(&self) -> f64 {
        self.best().evaluation.elbo.mean
    }

    /// Returns the Monte-Carlo standard error of the ELBO in nats.
    pub fn elbo_se(&self) -> f64 {
        self.best().evaluation.elbo.standard_error
    }

    /// Returns the Pareto k̂ of the importance weights.
    pub fn khat(&self) -> f64 {
        self.best().evaluation.khat
    }

    /// Returns the number of oracle calls, which are minibatches of the default sizes (see [`Calls`]).
    pub fn oracle_calls(&self) -> u64 {
        self.calls.oracle_calls()
    }

    /// Returns whether the optimiser has converged according to its stopping rule.
    pub fn converged(&self) -> bool {
        self.status.is_converged()
    }

    /// Returns the other optima of comparable mass that the starts found. Relabellings of the best optimum are not
    /// included.
    pub fn modes(&self) -> Vec<OtherMode> {
        self.labellings.others(&modes_of(&self.starts))
    }

    pub(crate) fn mirrored(&self) -> Vec<bool> {
        let Labellings {
            relabelled,
            mirrored,
            ..
        } = &self.labellings;
        let kept = relabelled.iter().zip(mirrored);
        kept.filter(|(relabelled, _)| !**relabelled)
            .map(|(_, mirrored)| *mirrored)
            .collect()
    }

    /// Returns the number of known modes, including the fitted mode, that differ from the fitted mode only by a
    /// permutation of array elements. All these modes have the same mass, so one of them represents them all. The log
    /// evidence of the whole posterior is the log evidence of one mode plus the logarithm of the number of modes.
    pub fn labellings(&self) -> usize {
        self.labellings.count
    }

    /// Returns whether the fit can be trusted. A fit is trusted if its starts agree, and if its approximation passes
    /// all checks or its refined draws have mixed. An approximation passes its checks if the optimiser has converged,
    /// k̂ is within its limit, and every draw has a finite density.
    pub fn trusted(&self) -> bool {
        self.verdict().trusted()
    }

    /// Returns the reasons not to trust the fit, with one text per reason. The list is empty if the fit is trusted.
    pub fn warnings(&self) -> Vec<String> {
        self.verdict().warnings()
    }
}

/// Returns the lines through the best optimum of the starts and each of the modes.
fn lines<D: TwiceDifferentiable>(
    density: &D,
    starts: &[StartOutcome],
    modes: &[OtherMode],
) -> Vec<Line> {
    let of = |mode: &OtherMode| {
        let other = starts.iter().find(|start| start.is_at(mode));
        let other = other.expect("a mode is the optimum of a start");
        Line::through(density, &starts[best_start(starts)], other)
    };
    modes.iter().map(of).collect()
}
