//! The tables in which estimators store results from earlier iterations.
//!
//! No table stores N × D numbers. For a linear predictor, the expansion depends on the stored mean only through ηₙ, so
//! the table stores the K values ηₙ for each record. For any other model, all records of an iteration share one
//! snapshot of the parameters. With reshuffled epochs, at most `2⌈N/B⌉ − 1` snapshots are in use. If a batch uses few
//! coordinates, its snapshot stores only these coordinates. If the estimator integrates out the draw, the table stores
//! two expectations per record. The table also stores the sum of the entries. If the estimator corrects the gradient of
//! the spread, the table also stores the sum of the diagonals of the Hessians.

use jensen_run::{Archive, ArchiveError, Snapshot};

/// A snapshot of the parameters at the iteration that last visited some of the records.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Slot {
    users: u32,
    /// The stored coordinates, in ascending order. The list is empty if all coordinates are stored.
    pub(crate) coordinates: Vec<u32>,
    pub(crate) values: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slots {
    whole: bool,
    of_record: Vec<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
}

/// Marks a record that has not been visited.
const NONE: u32 = u32::MAX;

impl Slots {
    pub(crate) fn new(records: usize, whole: bool) -> Self {
        Self {
            whole,
            of_record: vec![NONE; records],
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn whole(&self) -> bool {
        self.whole
    }

    pub(crate) fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn slot(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }

    /// Returns pairs of a slot and its records, in the order of the slots. Records that have not been visited are
    /// omitted. Within a slot, records keep their order.
    pub(crate) fn group(&self, records: impl Iterator<Item = u32>) -> Groups {
        let mut pairs: Vec<(u32, u32)> = records
            .map(|n| (self.of_record[n as usize], n))
            .filter(|&(slot, _)| slot != NONE)
            .collect();
        pairs.sort_by_key(|&(slot, _)| slot);
        let mut groups = Groups::default();
        for (slot, n) in pairs {
            if groups.slots.last() != Some(&slot) {
                groups.slots.push(slot);
                groups.starts.push(groups.records.len());
            }
            groups.records.push(n);
        }
        groups.starts.push(groups.records.len());
        groups
    }

    pub(crate) fn all(&self) -> Groups {
        self.group(0..self.of_record.len() as u32)
    }

    pub(crate) fn assign(&mut self, batch: &[u32], coordinates: &[u32], values: &[f64]) {
        for &n in batch {
            let old = std::mem::replace(&mut self.of_record[n as usize], NONE);
            if old != NONE {
                let slot = &mut self.slots[old as usize];
                slot.users -= 1;
                if slot.users == 0 {
                    self.free.push(old);
                }
            }
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[id as usize];
        slot.users = batch.len() as u32;
        slot.coordinates.clear();
        slot.coordinates.extend_from_slice(coordinates);
        slot.values.clear();
        if coordinates.is_empty() {
            slot.values.extend_from_slice(values);
        } else {
            let kept = coordinates.iter().map(|&i| values[i as usize]);
            slot.values.extend(kept);
        }
        for &n in batch {
            self.of_record[n as usize] = id;
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    slots: Vec<u32>,
    starts: Vec<usize>,
    records: Vec<u32>,
}

impl Groups {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &[u32])> {
        let range = |g: usize| &self.records[self.starts[g]..self.starts[g + 1]];
        self.slots
            .iter()
            .enumerate()
            .map(move |(g, &s)| (s, range(g)))
    }
}

/// The results of earlier iterations that an estimator stores.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub(crate) store: Store,
    /// The sum `G = Σ_m ∇ log p(x_m | μ^m)` over the records that have been visited, or its expectation.
    pub(crate) sum: Vec<f64>,
    /// The diagonal of `Σ_m ∇² log p(x_m | μ^m)`, or its expectation. It is empty if the gradient of the spread does
    /// not need it.
    pub(crate) diagonal: Vec<f64>,
    pub(crate) complete: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Store {
    Nothing,
    /// The predictors ηₙ at the stored means, an N × K matrix.
    Predictors(Vec<f64>),
    Slots(Slots),
    /// A single mean for all records (SVRG). For a linear predictor, the variant also stores the predictors, an N × K
    /// matrix.
    Anchor {
        mean: Vec<f64>,
        predictors: Vec<f64>,
    },
    Expectations {
        /// The expectation `E[ℓₙ']` for each record.
        first: Vec<f64>,
        /// The expectation `E[ℓₙ'']` for each record.
        second: Vec<f64>,
    },
}

impl Table {
    /// A table whose entries contain all of ω has no sums.
    pub(crate) fn has_sums(&self) -> bool {
        match &self.store {
            Store::Predictors(_) | Store::Expectations { .. } => true,
            Store::Slots(slots) => !slots.whole(),
            Store::Nothing | Store::Anchor { .. } => false,
        }
    }

    pub(crate) fn nothing() -> Self {
        Self {
            store: Store::Nothing,
            sum: Vec::new(),
            diagonal: Vec::new(),
            complete: false,
        }
    }

    /// Returns the number of snapshots in use, or 0 if the table stores none.
    pub fn live_slots(&self) -> usize {
        match &self.store {
            Store::Slots(slots) => slots.live(),
            _ => 0,
        }
    }
}

fn integers(x: &[u32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

fn read_integers(archive: &Archive, name: &str) -> Result<Vec<u32>, ArchiveError> {
    let numbers = archive.vec(name)?;
    let exact = |x: &f64| (*x >= 0.0 && *x <= f64::from(u32::MAX)).then_some(*x as u32);
    let all: Option<Vec<u32>> = numbers.iter().map(exact).collect();
    all.ok_or_else(|| ArchiveError(format!("the tensor `{name}` holds no indices")))
}

impl Snapshot for Table {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("sum", &self.sum);
        archive.put("diagonal", &self.diagonal);
        archive.set("complete", self.complete);
        let kind = match &self.store {
            Store::Nothing => "nothing",
            Store::Predictors(eta) => {
                archive.put("predictors", eta);
                "predictors"
            }
            Store::Anchor { mean, predictors } => {
                archive.put("mean", mean);
                archive.put("predictors", predictors);
                "anchor"
            }
            Store::Expectations { first, second } => {
                archive.put("first", first);
                archive.put("second", second);
                "expectations"
            }
            Store::Slots(slots) => {
                archive.set("whole", slots.whole);
                archive.put("of_record", &integers(&slots.of_record));
                archive.put("free", &integers(&slots.free));
                let users: Vec<u32> = slots.slots.iter().map(|s| s.users).collect();
                let lengths = |f: fn(&Slot) -> usize| -> Vec<u32> {
                    slots.slots.iter().map(|s| f(s) as u32).collect()
                };
                archive.put("users", &integers(&users));
                archive.put("kept", &integers(&lengths(|s| s.coordinates.len())));
                archive.put("lengths", &integers(&lengths(|s| s.values.len())));
                let coordinates: Vec<u32> = slots
                    .slots
                    .iter()
                    .flat_map(|s| s.coordinates.iter().copied())
                    .collect();
                archive.put("coordinates", &integers(&coordinates));
                let values: Vec<f64> = slots
                    .slots
                    .iter()
                    .flat_map(|s| s.values.iter().copied())
                    .collect();
                archive.put("values", &values);
                "slots"
            }
        };
        archive.set("kind", kind);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let kind: String = archive.get("kind")?;
        let store = match kind.as_str() {
            "nothing" => Store::Nothing,
            "predictors" => Store::Predictors(archive.vec("predictors")?),
            "anchor" => Store::Anchor {
                mean: archive.vec("mean")?,
                predictors: archive.vec("predictors")?,
            },
            "expectations" => {
                let first = archive.vec("first")?;
                Store::Expectations {
                    second: archive.vec_of("second", first.len())?,
                    first,
                }
            }
            "slots" => {
                let users = read_integers(archive, "users")?;
                let kept = read_integers(archive, "kept")?;
                let lengths = read_integers(archive, "lengths")?;
                let coordinates = read_integers(archive, "coordinates")?;
                let values = archive.vec("values")?;
                let short = || ArchiveError("the snapshots are incomplete".into());
                let (mut c, mut v) = (0, 0);
                let mut slots = Vec::with_capacity(users.len());
                for (i, &users) in users.iter().enumerate() {
                    let kept = *kept.get(i).ok_or_else(short)? as usize;
                    let length = *lengths.get(i).ok_or_else(short)? as usize;
                    slots.push(Slot {
                        users,
                        coordinates: coordinates.get(c..c + kept).ok_or_else(short)?.to_vec(),
                        values: values.get(v..v + length).ok_or_else(short)?.to_vec(),
                    });
                    (c, v) = (c + kept, v + length);
                }
                Store::Slots(Slots {
                    whole: archive.get("whole")?,
                    of_record: read_integers(archive, "of_record")?,
                    slots,
                    free: read_integers(archive, "free")?,
                })
            }
            other => {
                return Err(ArchiveError(format!(
                    "a table cannot be stored as `{other}`"
                )));
            }
        };
        Ok(Self {
            store,
            sum: archive.vec("sum")?,
            diagonal: archive.vec("diagonal")?,
            complete: archive.get("complete")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Batches;

    #[test]
    fn live_snapshots_are_fewer_than_twice_the_batches() {
        let batches = Batches::new(1, 103, 10).unwrap();
        let mut slots = Slots::new(103, false);
        let bound = 2 * batches.per_epoch() - 1;
        let mut most = 0;
        for epoch in 0..5 {
            let order = batches.order(epoch);
            for k in 0..batches.per_epoch() {
                let value = (epoch * 100 + k as u64) as f64;
                slots.assign(&order[batches.range(k)], &[], &[value]);
                most = most.max(slots.live());
                assert!(slots.live() <= bound);
                // The records of this visit now have the new snapshot.
                let groups = slots.group(order[batches.range(k)].iter().copied());
                let met: Vec<_> = groups.iter().collect();
                assert_eq!(met.len(), 1);
                assert_eq!(slots.slot(met[0].0).values, [value]);
            }
        }
        assert!(most > batches.per_epoch());
        let total: usize = slots.all().iter().map(|(_, records)| records.len()).sum();
        assert_eq!(total, 103);
        let table = Table {
            store: Store::Slots(slots),
            sum: vec![1.0, f64::MIN_POSITIVE],
            diagonal: vec![-2.0, 0.5],
            complete: true,
        };
        assert_eq!(Table::restore(&table.save()).unwrap(), table);
    }

    #[test]
    fn sparse_snapshots_keep_what_they_are_given() {
        let mut slots = Slots::new(4, false);
        slots.assign(&[0, 2], &[1, 3], &[10.0, 11.0, 12.0, 13.0]);
        assert_eq!(slots.slot(0).values, [11.0, 13.0]);
        let groups = slots.all();
        assert_eq!(groups.iter().next().unwrap().1, [0, 2]);
    }
}
