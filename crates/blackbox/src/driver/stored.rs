//! The stored form of the driver's state and results in checkpoints.

use jensen_run::{Archive, ArchiveError, Snapshot};

use super::stage::Stage;
use super::{DriverState, FamilyResult};
use crate::agreement::Agreement;
use crate::evaluation::Evaluation;
use crate::method::restore;
use crate::oracle::Estimate;
use crate::starts::{StartsState, restore_outcomes, save_outcomes};

impl Snapshot for DriverState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        let inner = match &self.stage {
            Stage::Starts(state) => state.save(),
            Stage::Method { state, .. } => state.archive(),
            Stage::Done => Archive::new(),
        };
        archive.nest("inner", inner);
        archive.set("stage", self.stage.name());
        archive.set("before", self.before);
        archive.set("calls", [self.calls_before, self.calls]);
        archive.set("kind", &self.family);
        archive.nest("starts", save_outcomes(&self.starts));
        archive.set("results", self.results.len());
        for (i, result) in self.results.iter().enumerate() {
            archive.nest(&format!("result{i}"), result.save());
        }
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let inner = archive.nested("inner");
        let stage: String = archive.get("stage")?;
        let stage = match stage.as_str() {
            "starts" => Stage::Starts(StartsState::restore(&inner)?),
            "done" => Stage::Done,
            name => {
                let unknown = || ArchiveError(format!("unknown stage `{name}`"));
                let (name, state) = restore(name, &inner).ok_or_else(unknown)?;
                Stage::Method {
                    name,
                    state: state?,
                }
            }
        };
        let [calls_before, calls] = archive.get("calls")?;
        let count: usize = archive.get("results")?;
        let results = (0..count)
            .map(|i| FamilyResult::restore(&archive.nested(&format!("result{i}"))))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            stage,
            before: archive.get("before")?,
            calls_before,
            calls,
            family: archive.get("kind")?,
            starts: restore_outcomes(&archive.nested("starts"))?,
            results,
        })
    }
}

impl Snapshot for FamilyResult {
    fn save(&self) -> Archive {
        let e = &self.evaluation;
        let mut archive = Archive::new();
        archive.set("kind", &self.family);
        archive.put("omega", &self.omega);
        archive.set("status", &self.status);
        let estimates = [
            e.elbo.mean,
            e.elbo.standard_error,
            e.importance_bound.mean,
            e.importance_bound.standard_error,
            e.khat,
            e.khat_threshold,
        ];
        archive.put("evaluation", &estimates);
        archive.put("agreement", &e.agreement.to_numbers());
        archive.set("draws", [e.draws, e.rejected, e.impossible]);
        let polish: Vec<f64> = self
            .polish
            .iter()
            .flat_map(|p| [p.mean, p.standard_error])
            .collect();
        archive.put("polish", &polish);
        archive.set("dim", self.dim);
        archive.set("flat", self.flat);
        archive.set("beyond", self.beyond);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let e = archive.vec_of("evaluation", 6)?;
        let agreement = archive.vec_of("agreement", Agreement::UNKNOWN.to_numbers().len())?;
        let agreement = Agreement::from_numbers(&agreement);
        let [draws, rejected, impossible] = archive.get("draws")?;
        let polish = archive.vec("polish")?;
        let estimate = |mean, standard_error| Estimate {
            mean,
            standard_error,
        };
        Ok(Self {
            family: archive.get("kind")?,
            omega: archive.vec("omega")?,
            status: archive.get("status")?,
            evaluation: Evaluation {
                elbo: estimate(e[0], e[1]),
                importance_bound: estimate(e[2], e[3]),
                khat: e[4],
                khat_threshold: e[5],
                agreement,
                draws,
                rejected,
                impossible,
            },
            polish: (polish.len() == 2).then(|| estimate(polish[0], polish[1])),
            dim: archive.get("dim")?,
            flat: archive.get("flat")?,
            beyond: archive.get("beyond")?,
        })
    }
}
