//! Runs several fits and keeps the best one. The candidates are different starts of a model, or models with different
//! numbers of components.

use jensen_run::{Control, Identity, Outcome, RunError, run};

use crate::contest::{Contest, Ended, Several, StateOf};
use crate::driver::{Driver, DriverSettings};
use crate::fit::{ModelFit, identity};
use crate::model::ConjugateModel;
use crate::pointwise::{Pointwise, untempered_bound};

/// One of the fits in a run.
pub struct Candidate<'a, M> {
    /// The model to fit.
    pub model: &'a M,
    /// Settings of the fit, including its seed.
    pub settings: DriverSettings,
    /// A number of nats that is added to the candidate's bound before candidates are compared.
    ///
    /// A mixture of K components has K! posterior modes that differ only by the labels of the components. q describes
    /// one of these modes, and adding log K! accounts for the others in the evidence (Bishop, *Pattern Recognition and
    /// Machine Learning*, 2006, 10.2.4).
    pub credit: f64,
}

/// The best of several fits.
#[derive(Clone, Debug)]
pub struct BestFit {
    /// The best fit.
    pub fit: ModelFit,
    /// The index of the best candidate.
    pub chosen: usize,
    /// The results of the candidates in order. The list is shorter if the run was stopped early.
    pub ended: Vec<Ended>,
}

/// Compares models of points by their bounds.
struct Bounds<'a, 'b, M>(&'b [Candidate<'a, M>]);

impl<'a, M: ConjugateModel> Contest for Bounds<'a, '_, M> {
    type Engine = Pointwise<'a, M>;

    fn count(&self) -> usize {
        self.0.len()
    }

    fn driver(&self, candidate: usize) -> Driver<Self::Engine> {
        let Candidate {
            model, settings, ..
        } = &self.0[candidate];
        Driver::new(Pointwise::new(*model), settings.clone())
    }

    fn scores(
        &self,
        candidate: usize,
        _: &mut Driver<Self::Engine>,
        output: &StateOf<Self::Engine>,
    ) -> Vec<f64> {
        vec![untempered_bound(self.0[candidate].model, &output.globals)]
    }

    fn is_better(&self, ended: &[Ended], new: usize, best: usize) -> bool {
        let worth = |at: usize| {
            let elbo = ended[at].elbo();
            elbo.map_or(f64::NEG_INFINITY, |elbo| elbo + self.0[at].credit)
        };
        worth(new) > worth(best)
    }
}

/// Returns the identity that the checkpoint of a run with these candidates must match. The identity contains all models
/// and seeds.
///
/// # Panics
/// Panics if there are no candidates.
pub fn identity_of_several<M: ConjugateModel>(
    candidates: &[Candidate<'_, M>],
    each: u64,
    data_hash: &str,
) -> Identity {
    let mut identities = candidates
        .iter()
        .map(|candidate| identity(candidate.model, &candidate.settings, data_hash));
    let mut first = identities.next().expect("a candidate");
    if candidates.len() > 1 {
        let others: Vec<String> = identities
            .map(|other| {
                format!(
                    "{} {} {}",
                    other.seed, other.model_hash, other.settings["temper"]
                )
            })
            .collect();
        first.settings["others"] = others.into();
        // The iteration at which one candidate ends determines the iterations of the next, so it is part of the
        // identity.
        first.settings["each"] = each.into();
    }
    first
}

/// Fits all candidates, each for at most `each` iterations, and keeps the one with the largest sum of bound and credit.
///
/// # Errors
/// Fails if a checkpoint comes from another run.
///
/// # Panics
/// Panics if there are no candidates.
pub fn fit_best<M: ConjugateModel>(
    candidates: &[Candidate<'_, M>],
    each: u64,
    data_hash: &str,
    control: &mut Control<'_>,
) -> Result<Outcome<BestFit>, RunError> {
    let mut several = Several::new(Bounds(candidates), each);
    let identity = identity_of_several(candidates, each, data_hash);
    let outcome = run(&mut several, &identity, control)?;
    Ok(Outcome {
        output: outcome.output.and_then(|state| {
            let (chosen, best) = state.best?;
            let Candidate {
                model, settings, ..
            } = &candidates[chosen as usize];
            let [points, skipped] = state.points;
            Some(BestFit {
                fit: ModelFit {
                    points,
                    skipped,
                    ..ModelFit::of(*model, settings, best)
                },
                chosen: chosen as usize,
                ended: state.ended,
            })
        }),
        status: outcome.status,
        iterations: outcome.iterations,
        seconds: outcome.seconds,
    })
}

#[cfg(test)]
mod tests {
    use jensen_run::{Budget, Silent, Snapshot};

    use super::*;
    use crate::contest::SeveralState;
    use crate::driver::Mode;
    use crate::fit::fit;
    use crate::models::{Covariance, Gaussians, Mixture};
    use crate::pointwise::{NormaliserTable, VectorGlobals};
    use crate::temper::Temper;

    fn clusters() -> Gaussians {
        let data = (0..120).map(|i| f64::from(i % 3) * 6.0 + (f64::from(i) * 2.4).sin());
        Gaussians::new(Covariance::Full, 1, data.collect())
    }

    fn settings(seed: u64) -> DriverSettings {
        DriverSettings {
            mode: Mode::Batch {
                tolerance: 1e-9,
                max_iterations: u64::MAX,
            },
            temper: Temper::None,
            seed,
            scores_per_pass: 0.0,
        }
    }

    fn bounded(iterations: u64) -> (Outcome<BestFit>, Vec<Vec<u8>>) {
        let data = clusters();
        let models: Vec<Mixture<&Gaussians>> =
            (1..=5).map(|k| Mixture::new(&data, k, 1.0)).collect();
        let candidates: Vec<Candidate<'_, Mixture<&Gaussians>>> = models
            .iter()
            .zip(1..)
            .flat_map(|(model, k)| {
                (0..2).map(move |seed| Candidate {
                    model,
                    settings: settings(seed),
                    credit: jensen_math::special::lgamma(f64::from(k) + 1.0),
                })
            })
            .collect();
        let (mut silent, clock) = (Silent, || 0.0);
        let mut saved: Vec<Vec<u8>> = Vec::new();
        let mut control = Control::new(Budget::iterations(iterations), &clock, &mut silent);
        control.store = Some(&mut saved);
        control.checkpoint_seconds = 0.0;
        let outcome = fit_best(&candidates, 200, "", &mut control).unwrap();
        (outcome, saved)
    }

    #[test]
    fn the_bound_chooses_the_number_of_components() {
        let (outcome, _) = bounded(u64::MAX);
        let best = outcome.output.unwrap();
        assert_eq!(best.chosen / 2 + 1, 3);
        assert!(outcome.status.is_converged());
        assert_eq!(best.ended.len(), 10);
        let all: u64 = best.ended.iter().map(|ended| ended.iterations).sum();
        assert_eq!(outcome.iterations, all);
        // Each candidate must have the same result as when it is fitted alone.
        let data = clusters();
        let model = Mixture::new(&data, 3, 1.0);
        let (mut silent, clock) = (Silent, || 0.0);
        let mut control = Control::new(Budget::iterations(u64::MAX), &clock, &mut silent);
        for seed in 0..2 {
            let alone = fit(&model, &settings(seed), "", &mut control)
                .unwrap()
                .output;
            assert_eq!(
                best.ended[4 + seed as usize].elbo(),
                alone.map(|fit| fit.elbo)
            );
        }
    }

    #[test]
    fn runs_of_several_fits_are_prefixes() {
        let (whole, all) = bounded(u64::MAX);
        for stop in [3, whole.iterations / 2] {
            let (part, saved) = bounded(stop);
            let checkpoint = |bytes: &[u8]| {
                let found = jensen_run::Checkpoint::decode(bytes).unwrap();
                SeveralState::<VectorGlobals, NormaliserTable>::restore(
                    &found.state.nested("state"),
                )
                .unwrap()
                .save()
            };
            let at = part.iterations as usize - 1;
            assert_eq!(checkpoint(&saved[at]), checkpoint(&all[at]));
            assert!(part.output.is_some());
        }
    }
}
