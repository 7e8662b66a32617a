//! The state of TrustVI between iterations.

use jensen_run::{Archive, ArchiveError, Snapshot};

use crate::calls::Calls;
use crate::engine::MethodState;

use super::explicit::Explicit;
use super::settings::TrustSettings;

/// The state of [`Trust`](super::Trust) between iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustState {
    pub(super) omega: Vec<f64>,
    pub(super) radius: f64,
    pub(super) gradient_draws: usize,
    pub(super) change_draws: usize,
    pub(super) boost: usize,
    pub(super) explicit: Option<Explicit>,
    /// The iteration in which the current Hessian was drawn, or 0 before the first Hessian.
    pub(super) hessian: u64,
    pub(super) far: bool,
    pub(super) uses: u64,
    pub(super) moved: f64,
    pub(super) rejected: u64,
    pub(super) fine: bool,
    pub(super) quiet: u64,
    pub(super) at_limit: u64,
    /// The number of consecutive iterations in which the model's maximum was on the boundary and predicted a gain
    /// within the tolerance.
    pub(super) cramped: u64,
    /// The last predicted improvement, followed by its standard error, in nats.
    pub(super) gap: [f64; 2],
    /// The point around which the likelihood is expanded, or empty if it is not.
    pub(super) snapshot: Vec<f64>,
    pub(super) calls: Calls,
}

impl TrustState {
    pub(super) fn at(omega: Vec<f64>, settings: &TrustSettings) -> Self {
        Self {
            omega,
            radius: settings.delta0,
            gradient_draws: settings.gradient_draws,
            change_draws: settings.change_draws,
            boost: 1,
            explicit: None,
            hessian: 0,
            far: true,
            uses: 0,
            moved: f64::INFINITY,
            rejected: 0,
            fine: false,
            quiet: 0,
            at_limit: 0,
            cramped: 0,
            gap: [f64::INFINITY, f64::INFINITY],
            snapshot: Vec::new(),
            calls: Calls::default(),
        }
    }

    pub(super) fn hessian_mean(&self) -> Option<&[f64]> {
        self.explicit
            .as_ref()
            .map(|explicit| explicit.mean.as_slice())
    }
}

impl MethodState for TrustState {
    fn omega(&self) -> &[f64] {
        &self.omega
    }

    fn calls(&self) -> Calls {
        self.calls
    }
}

impl Snapshot for TrustState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("omega", &self.omega);
        archive.put("snapshot", &self.snapshot);
        archive.put(
            "numbers",
            &[self.radius, self.moved, self.gap[0], self.gap[1]],
        );
        archive.set(
            "draws",
            [self.gradient_draws, self.change_draws, self.boost],
        );
        archive.set(
            "counts",
            [
                self.hessian,
                self.uses,
                self.rejected,
                self.quiet,
                self.at_limit,
                self.cramped,
            ],
        );
        archive.set("fine", [self.fine, self.far]);
        archive.set("explicit", self.explicit.is_some());
        if let Some(explicit) = &self.explicit {
            archive.nest("hessian", explicit.save());
        }
        archive.set("calls", self.calls);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let numbers = archive.vec_of("numbers", 4)?;
        let [gradient_draws, change_draws, boost] = archive.get("draws")?;
        let [hessian, uses, rejected, quiet, at_limit, cramped] = archive.get("counts")?;
        let explicit: bool = archive.get("explicit")?;
        let [fine, far] = archive.get("fine")?;
        Ok(Self {
            omega: archive.vec("omega")?,
            snapshot: archive.vec("snapshot")?,
            radius: numbers[0],
            moved: numbers[1],
            gap: [numbers[2], numbers[3]],
            gradient_draws,
            change_draws,
            boost,
            explicit: explicit
                .then(|| Explicit::restore(&archive.nested("hessian")))
                .transpose()?,
            hessian,
            uses,
            rejected,
            quiet,
            at_limit,
            cramped,
            fine,
            far,
            calls: archive.get("calls")?,
        })
    }
}
