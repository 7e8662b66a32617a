//! Converts columns to the units of a model. Columns are centred and divided by their standard deviations, and
//! redundant columns are removed.

use std::collections::BTreeMap;

use super::inputs::{Covariate, Inputs, Wave, check, fill};
use super::kernel::{KernelRow, Shape};
use super::setting::Setting;
use super::spec::SpecError;
use super::term::Builder;

/// Two columns count as equal if they differ by at most this many standard deviations.
const SAME: f64 = 1e-9;

impl Builder<'_, '_> {
    /// Returns the covariates of `fixed`. If the model has a level, constant columns are omitted with a note. Copies of
    /// other columns are also omitted.
    pub(super) fn effects(&self, notes: &mut Vec<String>) -> Result<Vec<Covariate>, SpecError> {
        let known = self.known;
        let words = known.words();
        if words.is_empty() {
            return Err(known.misused("`fixed` needs columns"));
        }
        let (mut list, mut constant) = (Vec::new(), Vec::new());
        for word in words {
            let at = |m: String| known.error(&word.span, m);
            let own = Covariate::of(self.source, &word.text, self.rows).map_err(at)?;
            // Missing values are detected here, because the message can name the column.
            check(&own, self.source, self.rows).map_err(at)?;
            for covariate in own {
                match self.measure(covariate.clone()).map_err(at)? {
                    Some(measured) => list.push(measured),
                    None => constant.push(covariate.name()),
                }
            }
        }
        if !constant.is_empty() {
            notes.push(format!(
                "Jensen omits {}: constant in the fitted rows",
                named(&constant)
            ));
        }
        let twins = self
            .twins(&mut list)
            .map_err(|m| known.error(&known.call.name.span, m))?;
        if !twins.is_empty() {
            notes.push(format!(
                "Jensen omits {}: equal to other columns",
                named(&twins)
            ));
        }
        match list.is_empty() {
            true => Err(known.error(
                &known.call.name.span,
                "every column of `fixed` is constant in the fitted rows: remove the term",
            )),
            false => Ok(list),
        }
    }

    /// Returns a covariate in the model's units. Returns `None` for a column that is redundant because of the model's
    /// level.
    fn measure(&self, covariate: Covariate) -> Result<Option<Covariate>, String> {
        let units = self.units;
        let spread = |centred| covariate.measured(self.source, self.rows, centred);
        // If another column multiplies this one, the level does not absorb a shift.
        let centred = units.centred && self.is_plain();
        let own = spread(centred || self.level && self.is_plain())?;
        let Some((centre, scale)) = own else {
            return Ok(None);
        };
        Ok(Some(Covariate {
            centre: if centred { centre } else { 0.0 },
            scale: if units.scaled { scale } else { 1.0 },
            ..covariate
        }))
    }

    /// Removes columns that differ from another column only in their units, and returns the names of the removed
    /// columns.
    fn twins(&self, list: &mut Vec<Covariate>) -> Result<Vec<String>, String> {
        let rows = self.rows;
        // Columns are compared after centring, division by their standard deviations, and a choice of sign.
        let standard = |covariate: &Covariate| -> Result<Vec<f64>, String> {
            let measured = covariate.measured(self.source, rows, self.level && self.is_plain())?;
            let (centre, scale) = measured.unwrap_or((0.0, 1.0));
            let own = Covariate {
                centre,
                scale,
                ..covariate.clone()
            };
            let mut values = vec![0.0; rows.len()];
            fill(std::slice::from_ref(&own), self.source, rows, &mut values)?;
            let sign = values
                .iter()
                .find(|x| x.abs() > 1e-3)
                .map_or(1.0, |x| x.signum());
            values.iter_mut().for_each(|x| *x *= sign);
            Ok(values)
        };
        let mut seen: BTreeMap<Vec<i64>, Vec<Vec<f64>>> = BTreeMap::new();
        let mut twins = Vec::new();
        let mut kept = Vec::with_capacity(list.len());
        for covariate in list.drain(..) {
            let values = standard(&covariate)?;
            // Few columns share their first values, so only columns that do are compared in full.
            let key = values
                .iter()
                .take(8)
                .map(|x| (x * 1e6).round() as i64)
                .collect();
            let alike = seen.entry(key).or_default();
            let same =
                |other: &Vec<f64>| other.iter().zip(&values).all(|(a, b)| (a - b).abs() < SAME);
            if alike.iter().any(same) {
                twins.push(covariate.name());
            } else {
                alike.push(values);
                kept.push(covariate);
            }
        }
        *list = kept;
        Ok(twins)
    }

    /// Returns the inputs of a process: the named columns, or by default all columns that have no other role.
    pub(super) fn inputs(&self, notes: &mut Vec<String>) -> Result<Vec<Covariate>, SpecError> {
        let known = self.known;
        let columns: Vec<String> = match known.list("on") {
            Some(words) => words.iter().map(|w| w.text.clone()).collect(),
            None => {
                let Inputs { columns, words } = self.source.inputs();
                if !words.is_empty() {
                    notes.push(format!(
                        "columns of words cannot be inputs of `{}`: {}; add a term such as iid(on={}) for an \
                         effect of each word",
                        self.label,
                        words.join(", "),
                        words[0]
                    ));
                }
                columns
            }
        };
        if columns.is_empty() {
            return Err(known.misused("no numeric column remains as input; name some with `on=`"));
        }
        let span = |i: usize| {
            let words = known.list("on");
            words.map_or(&known.call.name.span, |words| &words[i].span)
        };
        let each = columns.iter().enumerate();
        each.map(|(i, column)| {
            let plain = Covariate::plain(column);
            check(std::slice::from_ref(&plain), self.source, self.rows)
                .map_err(|m| known.error(span(i), m))?;
            Ok(plain)
        })
        .collect()
    }

    /// Returns the lengthscales of a kernel on these inputs, and replaces the inputs of a periodic kernel by their points on
    /// circles. A lengthscale on circles of radius 1 starts at 1.
    pub(super) fn scales(
        &self,
        inputs: &mut Vec<Covariate>,
        row: &KernelRow,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Setting>, SpecError> {
        let known = self.known;
        let period = match (known.one("period")?, row.periodic) {
            (None, false) => return self.lengthscales(inputs, row.shape, notes),
            (None, true) => {
                let message = format!(
                    "the kernel `{}` needs a period, as in `period=12`",
                    row.name
                );
                return Err(known.error(&known.call.name.span, message));
            }
            (Some(word), false) => {
                let message = format!("the kernel `{}` has no period", row.name);
                return Err(known.error(&word.span, message));
            }
            (Some(word), true) => match known.number(word)? {
                period if period > 0.0 => period,
                _ => return Err(known.error(&word.span, "`period` must be positive")),
            },
        };
        if let (true, Some(span)) = (known.flag("ard"), known.call.positional.get(1)) {
            let message = "a periodic kernel has one lengthscale; write a product of `gp(periodic, …)` for several";
            return Err(known.error(&span.span, message));
        }
        *inputs = (inputs.drain(..))
            .flat_map(|input| {
                [Wave::Sine(period), Wave::Cosine(period)].map(|wave| Covariate {
                    wave: Some(wave),
                    ..input.clone()
                })
            })
            .collect();
        match row.stationary {
            true => known.settings(
                "lengthscale",
                std::slice::from_ref(&self.label),
                &[Some(1.0)],
                &[1.0],
            ),
            false => Ok(Vec::new()),
        }
    }

    /// Returns the lengthscales of a stationary kernel on these inputs. The starting values depend on the spread of the
    /// inputs. A common lengthscale starts at the square root of the sum of the columns' variances. With `ard`, the
    /// lengthscale of a column starts at the column's standard deviation times the square root of the number of
    /// columns. If a common lengthscale applies to several columns and the user gives no value, the model measures each
    /// column in its own standard deviation.
    pub(super) fn lengthscales(
        &self,
        inputs: &mut [Covariate],
        shape: Shape,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Setting>, SpecError> {
        let (known, units) = (self.known, self.units);
        let mut spreads = Vec::with_capacity(inputs.len());
        for input in inputs.iter_mut() {
            let measured = input
                .measured(self.source, self.rows, true)
                .map_err(|m| known.error(&known.call.name.span, m))?;
            let (centre, sd) = measured.unwrap_or((0.0, 1.0));
            let centred = units.centred && self.is_plain();
            input.centre = if units.scaled && (centred || shape.is_stationary()) {
                centre
            } else {
                0.0
            };
            spreads.push(sd);
        }
        if !shape.is_stationary() {
            for (input, sd) in inputs.iter_mut().zip(&spreads) {
                input.scale = if units.scaled { *sd } else { 1.0 };
            }
            return Ok(Vec::new());
        }
        let d = inputs.len() as f64;
        let together = spreads.iter().map(|s| s * s).sum::<f64>().sqrt();
        if known.flag("ard") {
            let labels: Vec<String> = (inputs.iter())
                .map(|input| format!("{}[{}]", self.label, input.column))
                .collect();
            return match units.scaled {
                true => {
                    inputs
                        .iter_mut()
                        .zip(&spreads)
                        .for_each(|(i, sd)| i.scale = *sd);
                    known.settings(
                        "lengthscale",
                        &labels,
                        &vec![Some(d.sqrt()); spreads.len()],
                        &spreads,
                    )
                }
                false => {
                    let starts: Vec<_> = spreads.iter().map(|s| Some(s * d.sqrt())).collect();
                    known.settings("lengthscale", &labels, &starts, &vec![1.0; starts.len()])
                }
            };
        }
        let label = std::slice::from_ref(&self.label);
        let several = inputs.len() > 1 && known.named("lengthscale").is_none();
        match (units.scaled, several) {
            (false, _) => known.settings("lengthscale", label, &[Some(together)], &[1.0]),
            (true, false) => {
                inputs.iter_mut().for_each(|i| i.scale = together);
                known.settings("lengthscale", label, &[Some(1.0)], &[together])
            }
            (true, true) => {
                inputs
                    .iter_mut()
                    .zip(&spreads)
                    .for_each(|(i, sd)| i.scale = *sd);
                notes.push(format!(
                    "{}: its lengthscale applies to all {} columns, each in units of its own standard deviation",
                    self.label,
                    inputs.len()
                ));
                known.settings("lengthscale", label, &[Some(d.sqrt())], &[1.0])
            }
        }
    }
}

/// Lists at most five names, for example `the column a` or `the columns a, b`.
fn named(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(5).map(|n| format!("`{n}`")).collect();
    match names.len() {
        1 => format!("the column {}", shown[0]),
        n if n > shown.len() => format!("{n} columns ({}, …)", shown.join(", ")),
        _ => format!("the columns {}", shown.join(", ")),
    }
}
