//! Group effects over the rows.

use std::collections::BTreeMap;

use super::{Groups, Maker, Member};
use crate::design::design;
use crate::error::{Error, Result};
use crate::evaluate::{Value, argument};
use crate::formula::{Group, MEMBERSHIP};
use crate::frame::{Column, Factor};
use crate::syntax::{Argument, Expr, Kind};

/// The levels of several columns, and what each counts in every row.
type Memberships = (Vec<Factor>, Option<Vec<Vec<f64>>>);

impl Maker<'_, '_> {
    /// The groups of a term.
    pub(super) fn group(&mut self, group: &Group) -> Result<Groups> {
        let (found, weights) = match group.factors.as_slice() {
            [only] => match &only.kind {
                Kind::Call(name, arguments) if name == MEMBERSHIP => {
                    self.memberships(only, arguments)?
                }
                _ => (vec![self.levels(only)?], None),
            },
            several => (vec![self.combined(several)?], None),
        };
        self.grouped(group, &found, weights)
    }

    /// The levels of a column; groups may have levels that a fit does not know, unlike factors.
    pub(super) fn levels(&mut self, factor: &Expr) -> Result<Factor> {
        if let Kind::Name(name) = &factor.kind {
            if let Some(Column::Factor(found)) = self.evaluator.frame.column(name) {
                return Ok(found.clone());
            }
            return Ok(Factor::of_numbers(&self.evaluator.numbers(factor)?));
        }
        match self.evaluator.value(factor)? {
            Value::Factor(found) => Ok(found),
            _ => Ok(Factor::of_numbers(&self.evaluator.numbers(factor)?)),
        }
    }

    /// The combinations of levels of several columns.
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

    /// The levels of the columns of `mm(a, b, weights = cbind(v, w))`, and the weights of each, which sum to 1 in every row.
    fn memberships(&mut self, call: &Expr, arguments: &[Argument]) -> Result<Memberships> {
        let strange = |a: &&Argument| a.name.as_deref().is_some_and(|name| name != "weights");
        if let Some(strange) = arguments.iter().find(strange) {
            return Err(self
                .error(
                    &strange.value,
                    format!("{MEMBERSHIP}() has no such argument"),
                )
                .help("it takes columns, and weights = cbind(v, w)"));
        }
        let columns: Vec<&Expr> = (arguments.iter().filter(|a| a.name.is_none()))
            .map(|a| &a.value)
            .collect();
        if columns.len() < 2 {
            return Err(self
                .error(
                    call,
                    "a row that is in several groups names them in several columns",
                )
                .help("write (1 | mm(a, b)), or (1 | a) where each row is in one group"));
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
                    format!("{count} columns of groups have {count} columns of weights"),
                )
                .help("write weights = cbind(v, w)"));
        }
        let weights = given.iter().map(|column| self.evaluator.numbers(column));
        let mut weights = weights.collect::<Result<Vec<_>>>()?;
        for row in 0..rows {
            let sum: f64 = weights.iter().map(|w| w[row]).sum();
            if sum <= 0.0 || weights.iter().any(|w| w[row] < 0.0) {
                let message = format!(
                    "the weights of row {} of those used are not positive",
                    row + 1
                );
                return Err(self
                    .error(expr, message)
                    .help("weights are shares of a row in its groups"));
            }
            weights.iter_mut().for_each(|w| w[row] /= sum);
        }
        Ok((found, Some(weights)))
    }

    fn grouped(
        &mut self,
        group: &Group,
        found: &[Factor],
        weights: Option<Vec<Vec<f64>>>,
    ) -> Result<Groups> {
        let text = self.evaluator.text;
        let name = group.name();
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
                format!("the grouping `{name}` has one level"),
            )
            .help("effects that differ by group need several groups: leave the term out"));
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
            let of = |code: &Option<u32>| places[code.unwrap_or(0) as usize];
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
            design: design(&group.terms, self.contrasts, &mut self.evaluator)?,
            correlated: group.correlated,
            levels,
        })
    }
}
