//! The reasons that concern other optima of the starts.

use jensen_math::text::fixed;
use jensen_run::Reason;

use crate::fit::Fit;
use crate::ridges::{Line, Shape};
use crate::starts::OtherMode;

/// The largest number of coordinates that a message names.
const NAMED: usize = 4;

/// Another optimum of comparable mass that the result does not cover.
pub(super) struct Found<'a> {
    pub mode: &'a OtherMode,
    /// Whether a map that changes signs relates the two optima.
    pub mirrored: bool,
    pub line: &'a Line,
}

/// The relation between another optimum and the best one. The relations are in the order in which they are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Relation {
    Improper,
    Ridge,
    Region,
    Width,
    Mirrored,
    Mode,
}

const RELATIONS: [Relation; 6] = [
    Relation::Improper,
    Relation::Ridge,
    Relation::Region,
    Relation::Width,
    Relation::Mirrored,
    Relation::Mode,
];

impl Found<'_> {
    /// Returns whether the log density does not even fall far beyond the two optima.
    pub fn is_improper(&self) -> bool {
        self.relation() == Relation::Improper
    }

    /// If one optimum lies within the other, the line between their centres shows nothing about their widths.
    fn relation(&self) -> Relation {
        match self.line.shape {
            _ if self.mode.is_within() => Relation::Width,
            Shape::Endless => Relation::Improper,
            Shape::Ridge => Relation::Ridge,
            Shape::Region => Relation::Region,
            Shape::Valley if self.mirrored => Relation::Mirrored,
            Shape::Valley => Relation::Mode,
        }
    }
}

impl Fit {
    /// Returns one reason for each relation of other optima to the best one. The reason describes the highest of these
    /// optima.
    pub(super) fn about_modes(&self, found: &[Found<'_>]) -> Vec<Reason> {
        let of = |relation: Relation| {
            let of_relation = found.iter().filter(|found| found.relation() == relation);
            let count = of_relation.clone().count();
            let highest = of_relation.min_by(|a, b| a.mode.below.total_cmp(&b.mode.below))?;
            Some(self.about(relation, highest, count - 1))
        };
        RELATIONS.into_iter().filter_map(of).collect()
    }

    fn about(
        &self,
        relation: Relation,
        Found { mode, line, .. }: &Found<'_>,
        more: usize,
    ) -> Reason {
        let apart = match mode.is_within() {
            true => format!("{:.3} times as wide", mode.sd / mode.from_sd),
            false => format!("{:.1} standard deviations away", mode.distance()),
        };
        let height = match fixed(mode.below.abs(), 2) {
            zero if zero == "0.00" => "equally high".to_owned(),
            _ => format!("only {:.2} nats lower", mode.below),
        };
        let more = match more {
            0 => String::new(),
            1 => " (and 1 more optimum like it)".to_owned(),
            more => format!(" (and {more} more optima like it)"),
        };
        let found = format!(
            "another start found a different optimum, {apart} in {} and {height}{more}",
            self.name_of(mode.coordinate)
        );
        let names = self.names_of(&line.coordinates);
        let one = line.coordinates.len() == 1;
        let what = match one {
            true => names.clone(),
            false => format!("a combination of {names}"),
        };
        match relation {
            Relation::Improper => Reason::new(
                format!(
                    "{found}: the log density does not fall along the line through the two, however far, so the posterior \
                     may be improper"
                ),
                match one {
                    true => format!("Give {names} a proper prior."),
                    false => format!("Give {names} proper priors, or remove one of them."),
                },
            ),
            Relation::Ridge => Reason::new(
                format!(
                    "{found}: the log density is level between the two, so the data hardly determine {what}"
                ),
                match one {
                    true => format!("Give {names} a more informative prior."),
                    false => {
                        format!("Give {names} more informative priors, or remove one of them.")
                    }
                },
            ),
            Relation::Region => Reason::new(
                format!(
                    "{found}: the log density does not fall between the two, so both belong to one region of the \
                     posterior, which the fit covers only in part"
                ),
                format!(
                    "If nothing bounds {what}, the posterior is improper: give {names} a proper prior."
                ),
            ),
            Relation::Width => Reason::bare(format!(
                "{found}: the posterior appears to have several modes of different widths, and the fit covers one of them"
            )),
            Relation::Mirrored => Reason::new(
                format!(
                    "{found}: the posterior appears to have several modes, and the fit covers one of them; the log density \
                     is the same if signs change, such as the sign of {}",
                    self.name_of(mode.coordinate)
                ),
                "If the sign has no meaning, as for factor loadings, declare one loading positive.",
            ),
            Relation::Mode => Reason::bare(format!(
                "{found}: the posterior appears to have several modes, and the fit covers one of them"
            )),
        }
    }

    fn names_of(&self, coordinates: &[usize]) -> String {
        let named = coordinates.iter().take(NAMED);
        let mut names: Vec<String> = named.map(|at| self.name_of(*at)).collect();
        let last = match coordinates.len().saturating_sub(NAMED) {
            0 => names.pop().unwrap_or_default(),
            more => format!("{more} more"),
        };
        match names.is_empty() {
            true => last,
            false => format!("{} and {last}", names.join(", ")),
        }
    }
}
