//! The stored form of the state of minibatch methods in checkpoints.

use jensen_run::{Archive, ArchiveError, Snapshot};

use super::MinibatchState;
use crate::optimiser::OptimiserState;
use crate::records::{Table, Watch};

impl Snapshot for MinibatchState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("omega", &self.omega);
        archive.put("sum", &self.sum);
        archive.put("best", &self.best);
        archive.put("scale", &[self.scale]);
        archive.nest("optimiser", self.optimiser.save());
        archive.nest("table", self.table.save());
        archive.set("watches", self.watches.len());
        for (i, watch) in self.watches.iter().enumerate() {
            archive.nest(&format!("watch {i}"), watch.save());
        }
        let counts = [
            self.summed,
            self.still,
            self.failed,
            self.rejected,
            self.calls,
        ];
        archive.set("counts", counts);
        archive.set("clean", self.clean);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let omega = archive.vec("omega")?;
        let watches = (0..archive.get("watches")?)
            .map(|i: usize| Watch::restore(&archive.nested(&format!("watch {i}"))))
            .collect::<Result<_, _>>()?;
        let [summed, still, failed, rejected, calls] = archive.get("counts")?;
        Ok(Self {
            sum: archive.vec_of("sum", omega.len())?,
            best: archive.vec("best")?,
            omega,
            optimiser: OptimiserState::restore(&archive.nested("optimiser"))?,
            table: Table::restore(&archive.nested("table"))?,
            watches,
            scale: archive.vec_of("scale", 1)?[0],
            clean: archive.get("clean")?,
            summed,
            still,
            failed,
            rejected,
            calls,
        })
    }
}
