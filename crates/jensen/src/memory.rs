//! Estimates of the memory of a fit.

use jensen_blackbox::{FamilyChoice, Method, Space};

use crate::job::Need;

/// The maximum number of bytes that a linearisation may occupy; see `jensen_graph::GraphDensity`.
const LINEARISATION: u64 = 512 << 20;

/// The number of matrices that a method stores at the same time: noise, draws, gradients, directions and products. Each
/// matrix has one column per draw.
const MATRICES: u64 = 8;

/// The number of parameter vectors that a method stores at the same time: iterates, gradients and the vectors of the
/// conjugate gradient method.
const VECTORS: u64 = 16;

/// An estimate of the memory that a fit needs in bytes, excluding the model and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// The memory of the draws and their derivatives during optimisation.
    pub lanes: u64,
    /// The memory of the parameters of the family.
    pub family: u64,
    /// The memory of the reported draws.
    pub draws: u64,
    /// The memory of one block of lanes per thread.
    pub blocks: u64,
}

impl Footprint {
    /// Estimates the memory of a fit. The method stores `lanes` draws at the same time and reports `draws` draws of
    /// `width` numbers each. Each of the `threads` threads uses a block of `block_bytes` bytes.
    pub fn of_fit(
        family: &FamilyChoice,
        lanes: usize,
        space: &Space,
        draws: usize,
        width: usize,
        threads: usize,
        block_bytes: usize,
    ) -> Self {
        let d = space.dim as u64;
        let number = size_of::<f64>() as u64;
        let parameters = match family {
            FamilyChoice::Only(kind) => kind.parameters(space) as u64,
            FamilyChoice::Own(family) => family.parameters() as u64,
            // Jensen chooses a full-rank family only for problems with few dimensions.
            FamilyChoice::Auto => d.saturating_mul(10),
        };
        let matrix = d.saturating_mul(lanes as u64).saturating_mul(number);
        Self {
            lanes: matrix
                .saturating_mul(MATRICES)
                .saturating_add(matrix.saturating_mul(MATRICES).min(LINEARISATION)),
            family: parameters.saturating_mul(number * VECTORS),
            // The draws are stored once as rows. Summaries and file writers additionally store them as columns.
            draws: (draws as u64).saturating_mul((3 * width as u64 + 2 * d).saturating_mul(number)),
            blocks: (threads * block_bytes) as u64,
        }
    }

    /// Returns the total number of bytes.
    pub fn total(&self) -> u64 {
        self.lanes
            .saturating_add(self.family)
            .saturating_add(self.draws)
            .saturating_add(self.blocks)
    }

    /// Returns the memory that a fit with `method` needs, with advice on how to reduce the largest part.
    pub fn need(&self, method: &Method) -> Need {
        let largest = self.lanes.max(self.family).max(self.draws).max(self.blocks);
        let advice = if largest == self.family {
            "choose a smaller family (meanfield, or lowrank with fewer factors)"
        } else if largest == self.draws {
            "use fewer draws now, and draw more later from the stored approximation"
        } else if largest == self.blocks {
            "use fewer threads"
        } else if method.batch().is_some() {
            "raise the limit"
        } else {
            "choose a method with fewer draws per iteration (`--method bbvi`), or raise the limit"
        };
        Need {
            what: "this fit".to_owned(),
            bytes: self.total(),
            advice: advice.to_owned(),
        }
    }
}

/// Formats a number of bytes with a binary unit, for example as `8 GiB` or `1.5 MiB`.
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(value < 10.0 && value.fract() >= 0.05);
    format!("{value:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use jensen_blackbox::{FamilyKind, Settings};

    #[test]
    fn bytes_read_well() {
        assert_eq!(format_bytes(0), "0 B");
        assert_eq!(format_bytes(1536), "1.5 KiB");
        assert_eq!(format_bytes(8 << 30), "8 GiB");
        assert_eq!(format_bytes(u64::MAX), "16 EiB");
    }

    #[test]
    fn a_huge_family_is_refused_with_advice() {
        let family = FamilyChoice::Only(FamilyKind::FullRank);
        let lanes = |dim| Settings::default().method.lanes(dim);
        let footprint = Footprint::of_fit(
            &family,
            lanes(50_000),
            &50_000.into(),
            1000,
            50_000,
            2,
            1 << 20,
        );
        let error = footprint
            .need(&Settings::default().method)
            .check(8 << 30)
            .unwrap_err()
            .to_string();
        assert!(error.contains("the limit is 8 GiB"), "{error}");
        assert!(error.contains("smaller family"), "{error}");
        let small = Footprint::of_fit(&family, lanes(50), &50.into(), 1000, 50, 2, 1 << 20);
        assert!(
            small
                .need(&Settings::default().method)
                .check(8 << 30)
                .is_ok()
        );
    }
}
