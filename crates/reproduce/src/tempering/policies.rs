//! The temperature policies that Figure 2 compares.

use jensen::conjugate::temper::{GlobalTempering, HeatStart, LocalTempering, Temper};

/// The number of draws in the paper's Monte Carlo estimate.
pub(super) const DRAWS: usize = 100;

/// Returns the names and policies of a figure. `schedules` contains the lengths of the annealing schedules, and
/// `cooling` the length of a cooling phase, in passes. `per_pass` is the number of minibatches in a pass.
pub(super) fn policies(schedules: [f64; 3], cooling: f64, per_pass: u64) -> Vec<(String, Temper)> {
    let mut policies = vec![("SVI".to_owned(), Temper::None)];
    for passes in schedules {
        policies.push((schedule(passes), Temper::anneal(passes)));
    }
    let warm = GlobalTempering::default();
    let cold = GlobalTempering {
        start: HeatStart::Cold,
        ..warm.clone()
    };
    let published = GlobalTempering {
        draws: Some(DRAWS),
        every: Some(per_pass.min(EVERY)),
        damping: 1.0,
        ..warm.clone()
    };
    let local = Temper::Local(LocalTempering::default());
    let all = [
        (WARM, Temper::Global(warm.clone())),
        ("LVT", local.clone()),
        ("VT, cooled", cooled(Temper::Global(warm), cooling)),
        ("LVT, cooled", cooled(local, cooling)),
        (COLD, Temper::Global(cold.clone())),
        (PUBLISHED, Temper::Global(published)),
        (FITTED, Temper::Global(cold)),
        (AGAIN, Temper::None),
    ];
    policies.extend(all.map(|(name, temper)| (name.to_owned(), temper)));
    policies
}

/// The name of variational tempering that is run from both starts and keeps the better result.
pub(super) const WARM: &str = "VT, begun warm";
pub(super) const COLD: &str = "VT, begun cold";
const PUBLISHED: &str = "VT, log C from draws";
/// The name of variational tempering that begins with the topics of a complete run of SVI and at T = 1.
pub(super) const FITTED: &str = "VT, begun from the topics of SVI";
/// The name of SVI that begins with the topics of a complete run of SVI, and thus has as many passes as [`FITTED`].
pub(super) const AGAIN: &str = "SVI, begun from the topics of SVI";

/// Some of the policies, and their figure.
#[derive(Clone, Copy)]
pub(super) struct Subset {
    /// The beginning of the name of the figure.
    pub figure: &'static str,
    /// The names of the policies without the length of a schedule. If the list is empty, all policies are run that
    /// begin with random topics.
    names: &'static [&'static str],
}

pub(super) const ALL: Subset = Subset {
    figure: "figure2",
    names: &[],
};

pub(super) const STARTS: Subset = Subset {
    figure: "starts",
    names: &["SVI", "AVI", WARM, "LVT", COLD, PUBLISHED, FITTED, AGAIN],
};

impl Subset {
    /// Returns whether the subset contains a policy. Of the schedules, a subset contains only the longest one.
    pub fn contains(&self, name: &str, longest: f64) -> bool {
        let named = |own: &&str| match *own {
            "AVI" => name == schedule(longest),
            own => name == own,
        };
        match self.names {
            [] => ![FITTED, AGAIN].contains(&name),
            names => names.iter().any(named),
        }
    }
}

fn schedule(passes: f64) -> String {
    format!("AVI, {passes} passes")
}

/// The number of minibatches between two updates of the temperature, as in the paper. In this reproduction, two updates
/// are at most one pass apart.
const EVERY: u64 = 1_000;

/// Adds a cooling phase to a temperature policy. The policies of the paper have no cooling phase.
fn cooled(mut temper: Temper, passes: f64) -> Temper {
    if let Temper::Global(GlobalTempering { cooling, .. })
    | Temper::Local(LocalTempering { cooling, .. }) = &mut temper
    {
        *cooling = Some(passes);
    }
    temper
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_has_a_name_of_its_own() {
        let names: Vec<String> = policies([0.064, 0.64, 6.4], 0.5, 990)
            .into_iter()
            .map(|p| p.0)
            .collect();
        assert_eq!(names[0], "SVI");
        assert_eq!(names.len(), 12);
        let of = |subset: Subset| {
            let longest = 6.4;
            let names = names.iter().filter(|name| subset.contains(name, longest));
            names.map(String::as_str).collect::<Vec<_>>()
        };
        assert_eq!(of(ALL).len(), 10);
        let starts = [
            "SVI",
            "AVI, 6.4 passes",
            WARM,
            "LVT",
            COLD,
            PUBLISHED,
            FITTED,
            AGAIN,
        ];
        assert_eq!(of(STARTS), starts);
        assert!(
            names
                .iter()
                .all(|n| names.iter().filter(|m| *m == n).count() == 1)
        );
    }
}
