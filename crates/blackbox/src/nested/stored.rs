//! The stored form of the state of nested Laplace approximations in checkpoints.

use jensen_run::{Archive, ArchiveError, Snapshot};

use super::NestedState;

impl Snapshot for NestedState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("omega", &self.omega);
        archive.put("globals", &self.globals);
        archive.put("locals", &self.locals);
        archive.put("differences", &self.differences);
        archive.put("factor", &self.factor);
        archive.set("rounds", self.rounds);
        archive.set("calls", self.calls);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        Ok(Self {
            omega: archive.vec("omega")?,
            globals: archive.vec("globals")?,
            locals: archive.vec("locals")?,
            differences: archive.vec("differences")?,
            factor: archive.vec("factor")?,
            rounds: archive.get("rounds")?,
            calls: archive.get("calls")?,
        })
    }
}
