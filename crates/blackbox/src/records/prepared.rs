//! The records of a density, prepared for a fit.

use jensen_density::{AllRecords, ErasedRecords, RecordDensity};
use jensen_run::SettingError;

use super::subsampled::Subsampled;
use crate::noise::{NoisePurpose, NoiseSource};

/// The largest number of records that the starts use. The starts only need to find the right optimum and approximate
/// scales. A thousand records locate the optimum to within √(N/1000) posterior standard deviations. If there are a
/// million records and the starts use all of them, the starts cost more than the fit itself.
const SCOUTS: usize = 1000;

/// The records of a density, prepared for minibatch methods.
pub struct Prepared<'a> {
    records: ErasedRecords<'a>,
    scouts: usize,
    scout: AllRecords<ErasedRecords<'a>>,
    minibatches: Subsampled<ErasedRecords<'a>>,
    memory_limit: Option<u64>,
}

impl<'a> Prepared<'a> {
    /// Prepares the records of a density for minibatches of `batch` records.
    ///
    /// # Errors
    /// Fails if there are no records, or if `batch` is zero or exceeds the number of records.
    pub fn new(
        records: ErasedRecords<'a>,
        batch: usize,
        source: NoiseSource,
        memory_limit: Option<u64>,
    ) -> Result<Self, SettingError> {
        let minibatches = Subsampled::new(records, batch, source)?;
        let total = records.records();
        let scouts = total.min(SCOUTS);
        // The sample contains one record from each of several equal parts of the data. Even if the data are sorted, the
        // sample covers their whole range.
        let mut positions = vec![0.0; scouts];
        source.choices(NoisePurpose::Start, u64::MAX, 0, 1, &mut positions);
        let chosen = positions.iter().enumerate().map(|(i, u)| {
            let at = (i as f64 + u) * total as f64 / scouts as f64;
            (at as u32).min(total as u32 - 1)
        });
        let scout = if scouts == total {
            AllRecords::new(records)
        } else {
            let chosen: Vec<u32> = chosen.collect();
            records.hold(&chosen);
            AllRecords::sample(records, chosen)
        };
        Ok(Self {
            records,
            scouts,
            scout,
            minibatches,
            memory_limit,
        })
    }

    /// Returns the records.
    pub fn records(&self) -> &ErasedRecords<'a> {
        &self.records
    }

    pub(crate) fn scout(&self) -> &AllRecords<ErasedRecords<'a>> {
        &self.scout
    }

    pub(crate) fn scouted(&self) -> (u64, u64) {
        (self.scouts as u64, self.records.records() as u64)
    }

    pub(crate) fn minibatches(&self) -> &Subsampled<ErasedRecords<'a>> {
        &self.minibatches
    }

    pub(crate) fn memory_limit(&self) -> Option<u64> {
        self.memory_limit
    }
}
