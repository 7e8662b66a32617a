//! Group effects, evaluated over the rows of a frame.

use std::collections::BTreeMap;

use super::{Groups, Maker, Member};
use crate::basis::spread;
use crate::design::{Design, design};
use crate::error::{Error, Result};
use crate::evaluate::{Value, argument};
use crate::formula::{GROUPING, Group, MEMBERSHIP};
use crate::frame::{Factor, FrameColumn};
use crate::syntax::{Argument, Expr, Kind};

type Memberships = (Vec<Factor>, Option<Vec<Vec<f64>>>);

impl Maker<'_, '_> {
    /// Evaluates group effects. The result is one grouping, or one for each level of `by` in `gr(g, by = z)`.
    pub(super) fn group(&mut self, group: &Group) -> Result<Vec<Groups>> {
        let (found, weights) = match group.factors.as_slice() {
            [only] => match &only.kind {
                Kind::Call(name, arguments) if name == MEMBERSHIP => {
                    self.memberships(only, arguments)?
                }
                Kind::Call(name, arguments) if name == GROUPING => {
                    return self.by_levels(group, only, arguments);
                }
                _ => (vec![self.levels(only)?], None),
            },
            several => (vec![self.combined(several)?], None),
        };
        let design = design(&group.terms, self.contrasts, &mut self.evaluator)?;
        let spreads = design.columns.iter().map(|z| spread(z)).collect();
        Ok(vec![self.grouped(
            group,
            group.name(),
            &found,
            weights,
            (design, spreads),
        )?])
    }

    /// Evaluates `gr(g, by = z)`. The groups are separate for each level of z, and their columns are zero in rows with
    /// other levels.
    fn by_levels(
        &mut self,
        group: &Group,
        call: &Expr,
        arguments: &[Argument],
    ) -> Result<Vec<Groups>> {
        let strange = |a: &&Argument| a.name.as_deref().is_some_and(|name| name != "by");
        if let Some(strange) = arguments.iter().find(strange) {
            return Err(self
                .error(&strange.value, format!("{GROUPING}() has no such argument"))
                .help("write gr(g, by = z)"));
        }
        let columns: Vec<&Argument> = arguments.iter().filter(|a| a.name.is_none()).collect();
        let [column] = columns.as_slice() else {
            return Err(self
                .error(call, format!("{GROUPING}() needs one column of groups"))
                .help("write combinations of two columns as (1 | a:b)"));
        };
        let found = self.levels(&column.value)?;
        let design = design(&group.terms, self.contrasts, &mut self.evaluator)?;
        let spreads: Vec<f64> = design.columns.iter().map(|z| spread(z)).collect();
        let Some(by) = argument(arguments, &["by"], usize::MAX) else {
            let name = column.value.to_string();
            return Ok(vec![self.grouped(
                group,
                name,
                &[found],
                None,
                (design, spreads),
            )?]);
        };
        let kinds = self.levels(by)?;
        let mut kind_of = vec![None; found.levels.len()];
        for (code, kind) in found.codes.iter().zip(&kinds.codes) {
            let (Some(code), Some(kind)) = (code, kind) else {
                continue;
            };
            let known = kind_of[*code as usize].get_or_insert(*kind);
            if known != kind {
                return Err(self
                    .error(
                        by,
                        format!(
                            "`{}` of `{}` is in rows of two levels of `{by}`: {} and {}",
                            found.levels[*code as usize],
                            column.value,
                            kinds.levels[*known as usize],
                            kinds.levels[*kind as usize]
                        ),
                    )
                    .help("by = must be a property of the groups; write a column that differs within groups to \
                           the left of the bar"));
            }
        }
        // New rows use the levels of the fit, in the same order.
        let key = group.name();
        if self.evaluator.learning {
            self.groups.insert(key.clone(), kinds.levels.to_vec());
        }
        let levels = self.groups.get(&key).cloned().unwrap_or_default();
        let kinds = kinds.among(&levels).map_err(|word| {
            self.error(by, format!("the fit has no level `{word}` of `{by}`"))
                .help(format!("it knows {}", levels.join(", ")))
        })?;
        let mut made = Vec::new();
        for (kind, level) in levels.iter().enumerate() {
            let is_here: Vec<bool> = kinds
                .codes
                .iter()
                .map(|code| *code == Some(kind as u32))
                .collect();
            let word = |(code, here): (&Option<u32>, &bool)| {
                here.then(|| code.map(|code| found.levels[code as usize].as_str()))?
            };
            let words: Vec<Option<&str>> = found.codes.iter().zip(&is_here).map(word).collect();
            let mut design = design.clone();
            for (name, column) in design.names.iter_mut().zip(&mut design.columns) {
                if name == "(Intercept)" {
                    *name = "Intercept".to_owned();
                }
                let others = column.iter_mut().zip(&is_here).filter(|(_, here)| !**here);
                others.for_each(|(x, _)| *x = 0.0);
            }
            let name = format!("{}:{level}", column.value);
            let found = [Factor::of_words(&words)];
            made.push(self.grouped(group, name, &found, None, (design, spreads.clone()))?);
        }
        Ok(made)
    }

    /// Returns the grouping factor. Unlike other factors, it may have levels that did not occur in the fit.
    pub(super) fn levels(&mut self, factor: &Expr) -> Result<Factor> {
        if let Kind::Name(name) = &factor.kind {
            if let Some(FrameColumn::Factor(found)) = self.evaluator.frame.column(name) {
                return Ok(found.clone());
            }
            return Ok(Factor::of_numbers(&self.evaluator.numbers(factor)?));
        }
        match self.evaluator.value(factor)? {
            Value::Factor(found) => Ok(found),
            _ => Ok(Factor::of_numbers(&self.evaluator.numbers(factor)?)),
        }
    }

    pub(super) fn combined(&mut self, factors: &[Expr]) -> Result<Factor> {
        let mut labels: Vec<Option<String>> = Vec::new();
        for factor in factors {
            let found = self.levels(factor)?;
            let word = |code: &Option<u32>| Some(found.levels[(*code)? as usize].clone());
            let words: Vec<Option<String>> = found.codes.iter().map(word).collect();
            labels = match labels.is_empty() {
                true => words,
                false => {
                    let pairs = labels.into_iter().zip(words);
                    pairs.map(|(a, b)| Some(format!("{}_{}", a?, b?))).collect()
                }
            };
        }
        Ok(Factor::of_words(&labels))
    }

    /// Returns the levels of the columns of `mm(a, b, weights = cbind(v, w))`, and the weights of each column. The
    /// weights in a row sum to 1.
    fn memberships(&mut self, call: &Expr, arguments: &[Argument]) -> Result<Memberships> {
        let strange = |a: &&Argument| a.name.as_deref().is_some_and(|name| name != "weights");
        if let Some(strange) = arguments.iter().find(strange) {
            return Err(self
                .error(
                    &strange.value,
                    format!("{MEMBERSHIP}() has no such argument"),
                )
                .help("it takes grouping columns and, optionally, weights = cbind(v, w)"));
        }
        let columns: Vec<&Expr> = (arguments.iter().filter(|a| a.name.is_none()))
            .map(|a| &a.value)
            .collect();
        if columns.len() < 2 {
            return Err(self
                .error(
                    call,
                    "if a row belongs to several groups, name them in several columns",
                )
                .help("write (1 | mm(a, b)), or (1 | a) if each row belongs to one group"));
        }
        let found = columns.iter().map(|column| self.levels(column));
        let found = found.collect::<Result<Vec<_>>>()?;
        let count = columns.len();
        let rows = self.evaluator.frame.rows();
        let Some(expr) = argument(arguments, &["weights"], usize::MAX) else {
            return Ok((found, Some(vec![vec![1.0 / count as f64; rows]; count])));
        };
        let given: Vec<&Expr> = match &expr.kind {
            Kind::Call(name, parts) if name == "cbind" => parts.iter().map(|a| &a.value).collect(),
            _ => vec![expr],
        };
        if given.len() != count {
            return Err(self
                .error(
                    expr,
                    format!("{count} columns of groups need {count} columns of weights"),
                )
                .help("write weights = cbind(v, w)"));
        }
        let weights = given.iter().map(|column| self.evaluator.numbers(column));
        let mut weights = weights.collect::<Result<Vec<_>>>()?;
        for row in 0..rows {
            let sum: f64 = weights.iter().map(|w| w[row]).sum();
            if sum <= 0.0 || weights.iter().any(|w| w[row] < 0.0) {
                let message = format!(
                    "the weights of row {} of the rows used are not positive",
                    row + 1
                );
                return Err(self
                    .error(expr, message)
                    .help("weights are the shares of a row's groups"));
            }
            weights.iter_mut().for_each(|w| w[row] /= sum);
        }
        Ok((found, Some(weights)))
    }

    fn grouped(
        &mut self,
        group: &Group,
        name: String,
        found: &[Factor],
        weights: Option<Vec<Vec<f64>>>,
        (design, spreads): (Design, Vec<f64>),
    ) -> Result<Groups> {
        let text = self.evaluator.text;
        let mut all: Vec<String> = found
            .iter()
            .flat_map(|f| f.levels.iter().cloned())
            .collect();
        if found.len() > 1 {
            all.sort_unstable();
            all.dedup();
        }
        if self.evaluator.learning && all.len() < 2 {
            return Err(Error::at(
                text,
                group.span,
                format!("the grouping `{name}` has only one level"),
            )
            .help("effects that differ by group need several groups: remove the term"));
        }
        if self.evaluator.learning {
            self.groups
                .entry(name.clone())
                .or_insert_with(|| all.clone());
        }
        let levels = self.groups.get(&name).cloned().unwrap_or_default();
        let mut known: BTreeMap<&str, usize> = levels
            .iter()
            .enumerate()
            .map(|(at, level)| (level.as_str(), at))
            .collect();
        let mut new_levels = Vec::new();
        for level in &all {
            if !known.contains_key(level.as_str()) {
                known.insert(level, levels.len() + new_levels.len());
                new_levels.push(level.clone());
            }
        }
        let index = |factor: &Factor| {
            let places: Vec<usize> = factor
                .levels
                .iter()
                .map(|level| known[level.as_str()])
                .collect();
            // A row without a level has weight zero, so its index does not matter.
            let of = |code: &Option<u32>| code.map_or(0, |code| places[code as usize]);
            factor.codes.iter().map(of).collect()
        };
        let mut weights = weights.map(Vec::into_iter);
        let members = found.iter().map(|factor| Member {
            index: index(factor),
            weights: weights.as_mut().and_then(Iterator::next),
        });
        let members = members.collect();
        drop(known);
        Ok(Groups {
            name,
            members,
            new_levels,
            design,
            spreads,
            correlated: group.correlated,
            shared: group.shared.clone(),
            levels,
        })
    }
}
