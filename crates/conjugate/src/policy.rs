//! Temperature policies that follow a schedule or infer a global temperature.

use jensen_run::temperature::{annealed, interpolated};
use jensen_run::{Archive, ArchiveError, Snapshot};

use crate::temper::{GlobalTempering, HeatStart, LocalTempering, Temper, cooled};

pub(crate) fn softmax(logs: &mut [f64]) {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut total = 0.0;
    for x in logs.iter_mut() {
        *x = (*x - largest).exp();
        total += *x;
    }
    for x in logs {
        *x /= total;
    }
}

/// Returns the inverse temperature that a policy prescribes after `pass` passes. It is 1 for policies that prescribe no
/// temperature.
pub fn scheduled(temper: &Temper, pass: f64) -> f64 {
    match temper {
        Temper::None | Temper::Global(_) | Temper::Local(_) => 1.0,
        Temper::Anneal { passes, from } => 1.0 / annealed(*from, *passes, pass),
        Temper::Schedule(points) => 1.0 / interpolated(points, pass),
    }
}

/// Returns the smallest inverse temperature that a policy may infer after `pass` passes. It is 0 for policies that do
/// not infer temperatures.
pub fn floor(temper: &Temper, pass: f64) -> f64 {
    match temper {
        Temper::Global(global) => cooled(global.cooling, 1.0 / global.hottest, pass),
        Temper::Local(local) => cooled(local.cooling, 0.0, pass),
        Temper::None | Temper::Anneal { .. } | Temper::Schedule(_) => 0.0,
    }
}

/// Returns whether the schedule has ended. It has ended if the temperature has its final value or the cooling is over.
pub fn settled(temper: &Temper, pass: f64) -> bool {
    match temper {
        Temper::None => true,
        Temper::Global(GlobalTempering { cooling, .. })
        | Temper::Local(LocalTempering { cooling, .. }) => {
            cooling.is_none_or(|passes| pass >= passes)
        }
        Temper::Anneal { passes, .. } => pass >= *passes,
        Temper::Schedule(points) => points.last().is_none_or(|last| pass >= last.0),
    }
}

/// The multinomial distribution q(y | r) over temperatures in variational tempering, with its prior and normalisers.
///
/// The natural logarithm of the weight of temperature m is Ē/T_m − log C(T_m) + log π_m (Mandt et al. 2016, Eq. 9). Ē
/// is the expected complete log likelihood of all data, and the prior π_m is uniform.
#[derive(Clone, Debug, PartialEq)]
pub struct Thermostat {
    /// The inverse temperatures 1/T_m.
    pub inverse: Vec<f64>,
    /// The log normalisers log C(T_m), in nats.
    pub log_c: Vec<f64>,
    /// The probabilities r_m.
    pub r: Vec<f64>,
    /// The running estimate of Ē, or `None` before the first batch.
    pub energy: Option<f64>,
    /// A damped mean of the squared deviations of recent estimates of Ē from the running estimate.
    pub energy_noise: f64,
}

impl Thermostat {
    /// Creates the initial state. By default, the distribution r is uniform. If `hottest` is true, it is concentrated
    /// at the hottest temperature, and if the settings require a cold start, at T = 1.
    pub fn new(settings: &GlobalTempering, log_c: Vec<f64>, hottest: bool) -> Self {
        let inverse: Vec<f64> = settings.grid().iter().map(|t| 1.0 / t).collect();
        let m = inverse.len();
        let mut r = vec![1.0 / m as f64; m];
        if hottest {
            r.fill(0.0);
            r[m - 1] = 1.0;
        }
        let mut thermostat = Self {
            inverse,
            log_c,
            r,
            energy: None,
            energy_noise: 0.0,
        };
        if settings.start == HeatStart::Cold {
            thermostat.cool();
        }
        thermostat
    }

    /// Concentrates the distribution r at T = 1.
    pub fn cool(&mut self) {
        self.r.fill(0.0);
        self.r[0] = 1.0;
    }

    /// Returns E_q[1/T].
    pub fn mean_inverse(&self) -> f64 {
        self.r.iter().zip(&self.inverse).map(|(r, s)| r * s).sum()
    }

    /// Adds a new estimate of Ē to the running estimate, with this weight.
    pub fn observe(&mut self, energy: f64, weight: f64) {
        match &mut self.energy {
            None => self.energy = Some(energy),
            Some(mean) => {
                let step = energy - *mean;
                *mean += weight * step;
                self.energy_noise += weight * (step * step - self.energy_noise);
            }
        }
    }

    /// Updates r ← (1 − weight) r + weight r*, where r* is optimal for the running estimate of Ē. With weight 1, this
    /// is the exact coordinate update. If r is nearly a point mass, noise could make it jump between temperatures. A
    /// weight below 1 prevents this, and it also keeps the temperature from falling before the global parameters have
    /// adapted. The bound is concave in r, so a partial step does not lower it.
    pub fn update(&mut self, weight: f64) {
        let Some(energy) = self.energy else { return };
        let mut best: Vec<f64> = self
            .inverse
            .iter()
            .zip(&self.log_c)
            .map(|(s, c)| s * energy - c)
            .collect();
        softmax(&mut best);
        for (r, best) in self.r.iter_mut().zip(best) {
            *r += weight * (best - *r);
        }
    }

    /// Returns the terms of the bound that contain only y: E[log p(y)] − E[log C(T_y)] − E[log q(y)].
    pub fn bound(&self) -> f64 {
        let uniform = -(self.r.len() as f64).ln();
        self.r
            .iter()
            .zip(&self.log_c)
            .filter(|(r, _)| **r > 0.0)
            .map(|(r, c)| r * (uniform - c - r.ln()))
            .sum()
    }
}

impl Snapshot for Thermostat {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("inverse", &self.inverse);
        archive.put("log_c", &self.log_c);
        archive.put("r", &self.r);
        let known = self.energy.is_some();
        archive.put("energy", &[self.energy.unwrap_or(0.0), self.energy_noise]);
        archive.set("energy_known", known);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let inverse = archive.vec("inverse")?;
        let energy = archive.vec_of("energy", 2)?;
        Ok(Self {
            log_c: archive.vec_of("log_c", inverse.len())?,
            r: archive.vec_of("r", inverse.len())?,
            energy: archive.get::<bool>("energy_known")?.then_some(energy[0]),
            energy_noise: energy[1],
            inverse,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_interpolate() {
        let anneal = Temper::Anneal {
            passes: 2.0,
            from: 5.0,
        };
        for (pass, t) in [(0.0, 5.0), (1.0, 3.0), (2.0, 1.0), (7.0, 1.0)] {
            assert_eq!(scheduled(&anneal, pass), 1.0 / t);
            assert_eq!(settled(&anneal, pass), pass >= 2.0);
        }
        let custom = Temper::Schedule(vec![(1.0, 4.0), (3.0, 2.0), (4.0, 1.0)]);
        for (pass, t) in [
            (0.0, 4.0),
            (1.0, 4.0),
            (2.0, 3.0),
            (3.5, 1.5),
            (4.0, 1.0),
            (9.0, 1.0),
        ] {
            assert_eq!(scheduled(&custom, pass), 1.0 / t);
        }
        assert_eq!(scheduled(&Temper::None, 0.0), 1.0);
    }

    #[test]
    fn coolings_take_the_hot_end_away() {
        let temper: Temper = "global=2".parse().unwrap();
        for (pass, least) in [(0.0, 0.1), (1.0, 0.55), (2.0, 1.0), (3.0, 1.0)] {
            assert!((floor(&temper, pass) - least).abs() < 1e-15);
            assert_eq!(settled(&temper, pass), pass >= 2.0);
        }
        let temper: Temper = "local=4".parse().unwrap();
        assert_eq!(floor(&temper, 1.0), 0.25);
        for never in ["global", "local", "none", "anneal=1"] {
            assert_eq!(floor(&never.parse().unwrap(), 9.0), 0.0);
        }
        // The default applies if the user gives no value. An infinite number of passes means no cooling.
        let cooling = |text: &str| match text.parse::<Temper>().unwrap().with_cooling(0.5) {
            Temper::Global(g) => g.cooling,
            Temper::Local(l) => l.cooling,
            _ => None,
        };
        assert_eq!(cooling("global"), Some(0.5));
        assert_eq!(cooling("global=3"), Some(3.0));
        assert_eq!(cooling("global=inf"), None);
        assert_eq!(cooling("local"), None);
        assert_eq!(cooling("local=3"), Some(3.0));
        let read = |text: &str| text.parse::<Temper>().unwrap();
        assert_eq!(
            read("anneal=2:5"),
            Temper::Anneal {
                passes: 2.0,
                from: 5.0
            }
        );
        assert_eq!(
            read("schedule=0:5,1.5:2,3:1"),
            Temper::Schedule(vec![(0.0, 5.0), (1.5, 2.0), (3.0, 1.0)])
        );
        let global = GlobalTempering {
            cooling: Some(2.0),
            hottest: 4.0,
            temperatures: 7,
            ..GlobalTempering::default()
        };
        assert_eq!(read("global=2:4:7"), Temper::Global(global));
        assert_eq!(
            read("global=inf:10:100:cold:50:1000"),
            Temper::Global(GlobalTempering {
                cooling: Some(f64::INFINITY),
                start: HeatStart::Cold,
                draws: Some(50),
                every: Some(1000),
                damping: 1.0,
                ..GlobalTempering::default()
            })
        );
        let local = LocalTempering {
            cooling: Some(2.0),
            temperatures: 7,
            ..LocalTempering::default()
        };
        assert_eq!(read("local=2:7"), Temper::Local(local));
        for wrong in [
            "anneal=1:0.5",
            "anneal=1:x",
            "anneal=1:2:3",
            "global=1:1",
            "global=1:4:1",
            "global=1:4:x",
            "global=1:4:7:8",
            "global=1:4:7:warm:8",
            "global=1:4:7:warm:0:8",
            "global=1:4:7:warm:8:0",
            "global=1:4:7:warm:8:9:1",
            "local=1:1",
            "local=1:7:8",
            "schedule",
            "schedule=1",
            "schedule=2:3,1:1",
            "schedule=0:0.5",
            "schedule=0:nan",
            "none=1",
            "anneal",
            "global=0",
            "local=-1",
            "global=nan",
            "warm",
        ] {
            assert!(wrong.parse::<Temper>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_exact_update_maximises_the_bound() {
        let settings = GlobalTempering {
            temperatures: 5,
            hottest: 4.0,
            ..GlobalTempering::default()
        };
        let log_c: Vec<f64> = settings.grid().iter().map(|t| 3.0 * t.ln()).collect();
        let mut thermostat = Thermostat::new(&settings, log_c, false);
        let energy = -4.0;
        thermostat.observe(energy, 1.0);
        thermostat.update(1.0);
        let value = |t: &Thermostat| t.bound() + t.mean_inverse() * energy;
        let best = value(&thermostat);
        for i in 0..5 {
            for j in 0..5 {
                let mut other = thermostat.clone();
                let step = 1e-3 * other.r[i].min(1.0 - other.r[j]);
                other.r[i] -= step;
                other.r[j] += step;
                assert!(value(&other) <= best + 1e-14);
            }
        }
        let restored = Thermostat::restore(&thermostat.save()).unwrap();
        assert_eq!(restored, thermostat);
    }
}
