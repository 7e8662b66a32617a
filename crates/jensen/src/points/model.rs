//! A fitted mixture and the file in which it is stored.

use std::path::Path;

use jensen_conjugate::models::{Components, GaussianPrior, Mixture};
use jensen_data::Artefact;
use jensen_math::special::log_sum_exp_slice;
use jensen_run::{Archive, ArchiveError, Checkpoint, Identity};
use rayon::prelude::*;

use super::kinds::Kinds;
use super::mixture::{MIXTURE, bernoullis, multinomials};
use super::{ColumnKind, CovarianceShape, Explained, Kind, MixingPrior, Points};
use crate::Error;
use crate::job::folder;
use crate::units::Units;

const ALGORITHM: &str = "mixture";

/// A fitted mixture that can be applied to new points.
#[derive(Clone, Debug, PartialEq)]
pub struct MixtureModel {
    /// The kind of the components. This kind applies to all columns that are not listed in `kinds`.
    pub kind: Kind,
    /// The columns that have a kind of their own.
    pub kinds: Vec<ColumnKind>,
    /// The categories of each categorical column, in ascending order.
    pub levels: Vec<Vec<f64>>,
    /// The prior of the weights.
    pub mixing: MixingPrior,
    /// The shape of the covariance matrices of Gaussian components.
    pub covariance: CovarianceShape,
    /// The number of components.
    pub components: usize,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The natural parameters of q(β) for points in standardised units. The parameters of the weights come first,
    /// followed by the parameters of each component.
    pub lambda: Vec<f64>,
    /// The units of the columns.
    pub units: Units,
}

impl MixtureModel {
    /// Reads the mixture from the result folder of a finished fit.
    ///
    /// # Errors
    /// Fails if the folder does not contain a fit of a mixture, if the fit has not finished, or if the file is damaged.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let run = folder::open(path, MIXTURE)?;
        if !run.has(Artefact::Approximation) {
            return Err(Error::Input(format!(
                "the fit in `{0}` has not finished: continue it (`jensen mixture fit --out {0} --resume`)",
                path.display()
            )));
        }
        let bytes = folder::approximation(&run, "jensen mixture fit")?;
        Self::decode(&bytes).map_err(|error| folder::bad_approximation(&run, error))
    }

    /// Encodes the mixture in the safetensors format.
    pub fn encode(&self) -> Vec<u8> {
        let mut state = Archive::new();
        state.set("kind", self.kind);
        state.set("kinds", &self.kinds);
        state.set("levels", &self.levels);
        state.set("mixing", self.mixing);
        state.set("covariance", self.covariance);
        state.set("components", self.components);
        state.set("columns", &self.columns);
        state.put("lambda", &self.lambda);
        state.set("units", &self.units);
        Checkpoint::of_result(Identity::of_result(ALGORITHM), state).encode()
    }

    /// Decodes bytes that [`encode`](Self::encode) produced.
    ///
    /// # Errors
    /// Fails with [`Error::Input`] if the bytes are damaged, have another format version or do not contain a mixture.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let checkpoint = Checkpoint::decode(bytes).map_err(Error::input)?;
        let state = &checkpoint.state;
        let read = || -> Result<Self, ArchiveError> {
            Ok(Self {
                kind: state.get("kind")?,
                kinds: state.get("kinds")?,
                levels: state.get("levels")?,
                // Fits of earlier versions have the default prior.
                mixing: state.get("mixing").unwrap_or_default(),
                covariance: state.get("covariance")?,
                components: state.get("components")?,
                columns: state.get("columns")?,
                lambda: state.vec("lambda")?,
                units: state.get("units")?,
            })
        };
        read().map_err(|error| Error::Input(format!("this is not a mixture: {error}")))
    }

    /// Computes the responsibilities of the components for each point, and the log density of each point in nats under
    /// the posterior predictive distribution of q.
    ///
    /// For Gaussian components, the predictive distribution is a mixture of Student's t distributions (Bishop 2006, Eq.
    /// 10.81). For other components, it is a mixture of binary or multinomial distributions with the expected
    /// probabilities. Missing values are integrated out.
    ///
    /// # Errors
    /// Fails if a point is outside the domain of the components, or if the natural parameters belong to another
    /// mixture.
    pub fn explain(&self, points: &Points) -> Result<Explained, Error> {
        if points.dim() != self.columns.len() {
            return Err(Error::Input(format!(
                "rows of `{}` have {} numbers, but rows of the fit have {}",
                points.source,
                points.dim(),
                self.columns.len()
            )));
        }
        let prior = GaussianPrior::default();
        if Kinds::asked(self.kind, &self.kinds) {
            let (units, levels) = (&self.units, &self.levels);
            let kinds = Kinds::stored(&self.columns, self.kind, &self.kinds, units, levels)?;
            return self.explain_by(kinds.components(points, (&points.train, &[]), 0.5, prior)?);
        }
        match self.kind {
            Kind::Gaussian
            | Kind::StudentT
            | Kind::Poisson
            | Kind::NegativeBinomial
            | Kind::Categorical => {
                self.explain_by(points.gaussians(self.covariance, &self.units, prior))
            }
            Kind::Bernoulli => self.explain_by(bernoullis(0.5, points, &points.train)?),
            Kind::Multinomial => self.explain_by(multinomials(0.5, points, &points.train)?),
        }
    }

    fn explain_by<C: Components>(&self, components: C) -> Result<Explained, Error> {
        // Predictions depend on the prior of the weights only by its family.
        let model = Mixture::with_mixing(components, self.components, self.mixing.with(1.0));
        let (assignments, bounds) = predicted(&model, &self.lambda)?.into_iter().unzip();
        let assignments: Vec<Vec<f64>> = assignments;
        Ok(Explained {
            assignments: assignments.concat(),
            bounds,
        })
    }
}

pub(super) fn predicted<C: Components>(
    model: &Mixture<C>,
    lambda: &[f64],
) -> Result<Vec<(Vec<f64>, f64)>, Error> {
    use jensen_conjugate::model::ConjugateModel;
    let (found, expected) = (lambda.len(), model.blocks().len());
    if found != expected {
        return Err(Error::Input(format!(
            "the global parameters belong to another model: {found} numbers instead of {expected}"
        )));
    }
    let predictive = model.predictive(lambda);
    Ok((0..model.points())
        .into_par_iter()
        .map(|point| {
            let mut logs = predictive.at(point);
            let total = log_sum_exp_slice(&logs);
            logs.iter_mut().for_each(|x| *x = (*x - total).exp());
            (logs, total)
        })
        .collect())
}
