//! Remarks on a fit that do not affect its verdict.

use jensen_blackbox::FamilyKind;
use jensen_math::text::fixed;

use crate::Fitted;

/// The largest number of quantities that a remark lists after the first one.
const NAMED: usize = 4;

impl Fitted {
    /// Returns remarks that do not affect the verdict. The first remarks list the families that the fit tried earlier,
    /// with their k̂. They are followed by remarks on the model.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        for (i, result) in self.fit.families.iter().enumerate() {
            if i != self.fit.chosen {
                let e = &result.evaluation;
                remarks.push(format!(
                    "{} alone: ELBO {} ± {}, k̂ {:.2}",
                    result.family,
                    fixed(e.elbo.mean, 2),
                    fixed(e.elbo.standard_error, 2),
                    e.khat
                ));
            }
        }
        // Two fits of one family may have the same result.
        remarks.dedup();
        if self.fit.starts.is_empty() && self.fit.best().family == FamilyKind::Conditional {
            remarks.push(
                "Jensen did not search for other modes with this family; with `--family sparse` it does"
                    .to_owned(),
            );
        }
        remarks.extend(self.labelling());
        remarks.extend(self.without_moments());
        remarks.extend(self.model_remarks.iter().cloned());
        remarks
    }

    /// Returns a remark on the quantities without a mean, a remark on the others without a standard deviation, and a
    /// remark on those that are not numbers at some draws.
    pub(crate) fn without_moments(&self) -> Vec<String> {
        let lacking = |mean: bool| {
            let found = (self.summaries.iter()).filter(|p| p.mean.is_nan() == mean);
            let found: Vec<_> = found
                .filter_map(|p| Some((p.name.as_str(), p.undefined.as_deref()?)))
                .collect();
            let (first, reason) = found.first()?;
            let others: Vec<&str> = found[1..].iter().map(|(name, _)| *name).collect();
            let others = match others.is_empty() {
                true => String::new(),
                false => format!(" The same applies to {}.", some_of(&others)),
            };
            Some(format!(
                "{first} has {reason}. Its quantiles are not affected.{others}"
            ))
        };
        let remarks = [lacking(true), lacking(false), self.not_numbers()];
        remarks.into_iter().flatten().collect()
    }

    fn not_numbers(&self) -> Option<String> {
        let table = &self.sample.table;
        let count = |column| table.column(column).iter().filter(|x| x.is_nan()).count();
        let columns = self.summaries.iter().enumerate();
        let found: Vec<(&str, usize)> = columns
            .filter(|(_, p)| p.mean.is_nan() && p.undefined.is_none())
            .map(|(column, p)| (p.name.as_str(), count(column)))
            .filter(|(_, count)| *count > 0)
            .collect();
        let (first, count) = found.first()?;
        let others: Vec<&str> = found[1..].iter().map(|(name, _)| *name).collect();
        let others = match others.is_empty() {
            true => String::new(),
            false => format!("; NaN also occurs in {}", some_of(&others)),
        };
        Some(format!(
            "{first} is NaN at {count} of {} draws, so it has no summary{others}",
            table.len()
        ))
    }

    fn labelling(&self) -> Option<String> {
        let count = self.fit.labellings();
        (count > 1).then(|| {
            format!(
                "this is one of {count} equivalent labellings: permutations of array elements give the other \
                 modes; the log evidence of all of them is {:.3} nats larger",
                (count as f64).ln()
            )
        })
    }
}

fn some_of(names: &[&str]) -> String {
    let shown = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
