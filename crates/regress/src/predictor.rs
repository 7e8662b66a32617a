//! The linear predictor of one parameter over the rows of a frame: columns, groups, smooths and what else is added.

use serde::{Deserialize, Serialize};

use crate::design::{Contrasts, Design, design};
use crate::error::{Error, Result};
use crate::evaluate::{Evaluator, State, Value, argument};
use crate::formula::{Group, Terms};
use crate::frame::Factor;
use crate::smooth::{Columns, Product, Smooth};
use crate::syntax::{Argument, Expr, Kind};

/// What is learnt from the data beside the states of calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Learnt {
    /// Of calls, and of columns of words.
    pub states: crate::evaluate::States,
    /// The levels of groupings, by their names.
    pub groups: std::collections::BTreeMap<String, Vec<String>>,
    /// Smooths by parameter and call; those `by` a factor are one for all its levels.
    pub smooths: std::collections::BTreeMap<String, SmoothState>,
}

/// A smooth as it was learnt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SmoothState {
    /// Of one column.
    One(Smooth),
    /// Of two.
    Two(Product),
    /// A Gaussian process: the middle and half the range of the column.
    Process([f64; 2]),
    /// Steps of a monotonic effect.
    Steps(usize),
}

/// Group effects over the rows.
#[derive(Clone, Debug)]
pub struct Groups {
    /// The grouping, as the formula has it.
    pub name: String,
    /// The levels that the fit knows.
    pub levels: Vec<String>,
    /// Levels of the rows that it does not know.
    pub new_levels: Vec<String>,
    /// For each row its level, from 0, new ones after those that are known.
    pub index: Vec<usize>,
    /// What has an effect.
    pub design: Design,
    /// Whether effects are correlated.
    pub correlated: bool,
}

/// Functions with a common scale: the penalised part of a smooth.
#[derive(Clone, Debug)]
pub struct Penalised {
    /// The term, as it is shown.
    pub name: String,
    /// The columns.
    pub columns: Vec<Vec<f64>>,
}

/// A Gaussian process over one column, by its first eigenfunctions on an interval (Riutort-Mayol, Bürkner, Andersen, Solin and
/// Vehtari, Statistics and Computing 33, 2023).
#[derive(Clone, Debug)]
pub struct Process {
    /// The term, as it is shown.
    pub name: String,
    /// The eigenfunctions.
    pub columns: Vec<Vec<f64>>,
    /// Square roots of their eigenvalues.
    pub frequencies: Vec<f64>,
}

/// A monotonic effect (Bürkner and Charpentier, British Journal of Mathematical and Statistical Psychology 73, 2020).
#[derive(Clone, Debug)]
pub struct Monotonic {
    /// The term, as it is shown.
    pub name: String,
    /// For each row the number of steps taken, from 0.
    pub steps: Vec<usize>,
    /// The number of steps that there are.
    pub count: usize,
}

/// A linear predictor.
#[derive(Clone, Debug)]
pub struct Predictor {
    /// Its parameter.
    pub parameter: String,
    /// Whether it has an intercept.
    pub intercept: bool,
    /// Its columns without the intercept.
    pub design: Design,
    /// Its group effects.
    pub groups: Vec<Groups>,
    /// What is added as it is.
    pub offset: Option<Vec<f64>>,
    /// Penalised parts of smooths.
    pub smooths: Vec<Penalised>,
    /// Gaussian processes.
    pub processes: Vec<Process>,
    /// Monotonic effects.
    pub monotonic: Vec<Monotonic>,
}

/// Knots of a smooth of one column, as in mgcv; of each of two 5, as there.
const KNOTS: (usize, usize) = (10, 5);

/// Eigenfunctions of a Gaussian process.
const FUNCTIONS: usize = 20;

/// The interval of the eigenfunctions, in halves of the column's range: wide enough for length scales up to the range
/// (Riutort-Mayol et al., equation 20).
pub const BOUNDARY: f64 = 1.5;

/// Makes predictors of terms.
pub struct Maker<'a, 'b> {
    /// Evaluates over the rows.
    pub evaluator: Evaluator<'b>,
    /// The levels of groupings.
    pub groups: &'a mut std::collections::BTreeMap<String, Vec<String>>,
    /// Smooths.
    pub smooths: &'a mut std::collections::BTreeMap<String, SmoothState>,
    /// How factors become columns.
    pub contrasts: Contrasts,
}

impl Maker<'_, '_> {
    fn error(&self, expr: &Expr, message: impl Into<String>) -> Error {
        Error::at(self.evaluator.text, expr.span, message)
    }

    /// The predictor of a parameter.
    ///
    /// # Errors
    /// A term cannot be evaluated.
    pub fn predictor(&mut self, parameter: &str, terms: &Terms) -> Result<Predictor> {
        let mut design = design(terms, self.contrasts, &mut self.evaluator)?;
        if terms.intercept {
            design.names.remove(0);
            design.columns.remove(0);
        }
        let mut made = Predictor {
            parameter: parameter.to_owned(),
            intercept: terms.intercept,
            design,
            groups: Vec::new(),
            offset: None,
            smooths: Vec::new(),
            processes: Vec::new(),
            monotonic: Vec::new(),
        };
        for offset in &terms.offsets {
            let x = self.evaluator.numbers(offset)?;
            match &mut made.offset {
                Some(sum) => sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += x),
                none => *none = Some(x),
            }
        }
        for group in &terms.groups {
            let group = self.group(group)?;
            if made.groups.iter().any(|other| other.name == group.name) {
                let message = format!("two terms have effects by `{}`", group.name);
                return Err(Error::at(
                    self.evaluator.text,
                    terms.groups[made.groups.len()].span,
                    message,
                )
                .help(format!(
                    "join them: (1 + x | {0}), or (1 + x || {0}) without correlation",
                    group.name
                )));
            }
            made.groups.push(group);
        }
        for call in &terms.special {
            self.special(call, &mut made)?;
        }
        Ok(made)
    }

    fn group(&mut self, group: &Group) -> Result<Groups> {
        let name = group.name();
        let mut labels: Vec<Option<String>> = Vec::new();
        for factor in &group.factors {
            let found = match &factor.kind {
                // Groups may have levels that a fit does not know, unlike factors.
                Kind::Name(column) => match self.evaluator.frame.column(column) {
                    Some(crate::frame::Column::Factor(factor)) => factor.clone(),
                    _ => Factor::of_numbers(&self.evaluator.numbers(factor)?),
                },
                _ => match self.evaluator.value(factor)? {
                    Value::Factor(factor) => factor,
                    _ => Factor::of_numbers(&self.evaluator.numbers(factor)?),
                },
            };
            let word = |code: &Option<u32>| Some(found.levels[(*code)? as usize].clone());
            if labels.is_empty() && group.factors.len() == 1 {
                return self.grouped(group, name, found);
            }
            let words: Vec<Option<String>> = found.codes.iter().map(word).collect();
            labels = match labels.is_empty() {
                true => words,
                false => {
                    let pairs = labels.into_iter().zip(words);
                    pairs.map(|(a, b)| Some(format!("{}_{}", a?, b?))).collect()
                }
            };
        }
        let found = Factor::of_words(&labels);
        self.grouped(group, name, found)
    }

    fn grouped(&mut self, group: &Group, name: String, found: Factor) -> Result<Groups> {
        let text = self.evaluator.text;
        if self.evaluator.learning && found.levels.len() < 2 {
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
                .or_insert_with(|| found.levels.clone());
        }
        let levels = self.groups.get(&name).cloned().unwrap_or_default();
        let known: std::collections::BTreeMap<&str, usize> = levels
            .iter()
            .enumerate()
            .map(|(at, level)| (level.as_str(), at))
            .collect();
        let mut new_levels = Vec::new();
        let places: Vec<usize> = found
            .levels
            .iter()
            .map(|level| {
                known.get(level.as_str()).copied().unwrap_or_else(|| {
                    new_levels.push(level.clone());
                    levels.len() + new_levels.len() - 1
                })
            })
            .collect();
        let design = design(&group.terms, self.contrasts, &mut self.evaluator)?;
        let index: Vec<usize> = found
            .codes
            .iter()
            .map(|code| places[code.unwrap_or(0) as usize])
            .collect();
        Ok(Groups {
            name,
            levels,
            new_levels,
            index,
            design,
            correlated: group.correlated,
        })
    }

    fn special(&mut self, call: &Expr, made: &mut Predictor) -> Result<()> {
        let Kind::Call(name, arguments) = &call.kind else {
            return Ok(());
        };
        let columns: Vec<&Argument> = arguments.iter().filter(|a| a.name.is_none()).collect();
        let known: &[&str] = match name.as_str() {
            "s" => &["k", "bs", "by"],
            "t2" | "gp" => &["k"],
            _ => &[],
        };
        let strange = |a: &&Argument| a.name.as_deref().is_some_and(|name| !known.contains(&name));
        if let Some(strange) = arguments.iter().find(strange) {
            let label = strange.name.clone().unwrap_or_default();
            let message = format!("{name}() has no argument `{label}`");
            return Err(self.error(&strange.value, message).help(match known {
                [] => format!("it takes one column, as in {name}(x)"),
                known => format!("it has {}", known.join(", ")),
            }));
        }
        match (name.as_str(), columns.len()) {
            ("s", 1) => self.smooth(call, arguments, made),
            ("t2", 2) => self.product(call, arguments, made),
            ("gp", 1) => self.process(call, arguments, made),
            ("mo", 1) => self.monotonic(call, &columns[0].value, made),
            ("s", _) => Err(self
                .error(call, "s() takes one column")
                .help("a smooth of two is t2(x, z)")),
            ("t2", _) => Err(self
                .error(call, "t2() takes two columns")
                .help("a smooth of one is s(x)")),
            _ => Err(self.error(call, format!("{name}() takes one column"))),
        }
    }

    fn knots(&self, arguments: &[Argument], usual: usize) -> Result<usize> {
        match argument(arguments, &["k"], usize::MAX) {
            None => Ok(usual),
            Some(expr) => match expr.bare().kind {
                Kind::Number(x) if x.fract() == 0.0 && (3.0..=200.0).contains(&x) => Ok(x as usize),
                _ => Err(self.error(expr, "k is a whole number from 3 to 200")),
            },
        }
    }

    /// A smooth of one column, learnt or known.
    fn one(&mut self, call: &Expr, key: &str, x: &[f64], k: usize, cyclic: bool) -> Result<Smooth> {
        if let Some(SmoothState::One(smooth)) = self.smooths.get(key) {
            return Ok(smooth.clone());
        }
        let Some(smooth) = Smooth::of(x, k, cyclic) else {
            return Err(self
                .error(
                    call,
                    "a smooth needs a column with at least three distinct values (a ring, four)",
                )
                .help("take the column as it is, or as factor(x)"));
        };
        self.smooths
            .insert(key.to_owned(), SmoothState::One(smooth.clone()));
        Ok(smooth)
    }

    fn smooth(&mut self, call: &Expr, arguments: &[Argument], made: &mut Predictor) -> Result<()> {
        let cyclic = match argument(arguments, &["bs"], usize::MAX).map(|bs| (&bs.kind, bs)) {
            None => false,
            Some((Kind::Text(kind), _)) if kind == "cr" || kind == "tp" => false,
            Some((Kind::Text(kind), _)) if kind == "cc" => true,
            Some((_, bs)) => {
                return Err(self.error(bs, format!("there is no basis {bs}")).help(
                    "\"cr\" is a cubic regression spline, and \"cc\" one that is closed to a ring",
                ));
            }
        };
        let x = self.evaluator.numbers(&arguments[0].value)?;
        let k = self.knots(arguments, KNOTS.0)?;
        let label = format!("s({})", arguments[0].value);
        let key = format!("{}:{call}", made.parameter);
        let smooth = self.one(call, &key, &x, k, cyclic)?;
        let (line, columns) = (smooth.line(&x), smooth.penalised(&x));
        // For each part what is added to the name, and what each row is multiplied by.
        let mut parts: Vec<(String, Option<Vec<f64>>)> = vec![(String::new(), None)];
        if let Some(by) = argument(arguments, &["by"], usize::MAX) {
            parts = match self.evaluator.value(by)? {
                Value::Factor(factor) => (factor.levels.iter().enumerate())
                    .map(|(level, word)| {
                        let is =
                            |code: &Option<u32>| f64::from(u8::from(*code == Some(level as u32)));
                        (
                            format!(":{by}{word}"),
                            Some(factor.codes.iter().map(is).collect()),
                        )
                    })
                    .collect(),
                _ => vec![(format!(":{by}"), Some(self.evaluator.numbers(by)?))],
            };
        }
        for (suffix, mask) in parts {
            let masked = |column: &Vec<f64>| match &mask {
                None => column.clone(),
                Some(mask) => column.iter().zip(mask).map(|(x, m)| x * m).collect(),
            };
            if let Some(line) = &line {
                made.design.names.push(format!("{label}{suffix}"));
                made.design.columns.push(masked(line));
            }
            made.smooths.push(Penalised {
                name: format!("{label}{suffix}"),
                columns: columns.iter().map(masked).collect(),
            });
        }
        Ok(())
    }

    fn product(&mut self, call: &Expr, arguments: &[Argument], made: &mut Predictor) -> Result<()> {
        let unnamed: Vec<&Expr> = arguments
            .iter()
            .filter(|a| a.name.is_none())
            .map(|a| &a.value)
            .collect();
        let (x, z) = (
            self.evaluator.numbers(unnamed[0])?,
            self.evaluator.numbers(unnamed[1])?,
        );
        let k = self.knots(arguments, KNOTS.1)?;
        let key = format!("{}:{call}", made.parameter);
        if !self.smooths.contains_key(&key) {
            let first = self.one(call, &format!("{key}:1"), &x, k, false)?;
            let second = self.one(call, &format!("{key}:2"), &z, k, false)?;
            let product = Product::of([first, second], &x, &z);
            self.smooths.insert(key.clone(), SmoothState::Two(product));
        }
        let Some(SmoothState::Two(product)) = self.smooths.get(&key) else {
            return Err(self.error(call, "this call is known as something else"));
        };
        let Columns { free, blocks } = product.at(&x, &z);
        let label = format!("t2({}, {})", unnamed[0], unnamed[1]);
        for (suffix, column) in free {
            made.design.names.push(format!("{label}{suffix}"));
            made.design.columns.push(column);
        }
        for (columns, of) in blocks.into_iter().zip([
            unnamed[0].to_string(),
            unnamed[1].to_string(),
            "both".to_owned(),
        ]) {
            made.smooths.push(Penalised {
                name: format!("{label}:{of}"),
                columns,
            });
        }
        Ok(())
    }

    fn process(&mut self, call: &Expr, arguments: &[Argument], made: &mut Predictor) -> Result<()> {
        let x = self.evaluator.numbers(&arguments[0].value)?;
        let k = self.knots(arguments, FUNCTIONS)?;
        let key = format!("{}:{call}", made.parameter);
        let learn = || {
            let low = x.iter().copied().fold(f64::INFINITY, f64::min);
            let high = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            SmoothState::Process([(low + high) / 2.0, (high - low) / 2.0])
        };
        let SmoothState::Process([middle, half]) = *self.smooths.entry(key).or_insert_with(learn)
        else {
            return Err(self.error(call, "this call is known as something else"));
        };
        if half == 0.0 {
            return Err(self.error(call, "a process needs a column with different values"));
        }
        let frequency = |j: usize| (j + 1) as f64 * std::f64::consts::PI / (2.0 * BOUNDARY);
        let function = |j: usize| {
            let at =
                |x: &f64| (frequency(j) * ((x - middle) / half + BOUNDARY)).sin() / BOUNDARY.sqrt();
            x.iter().map(at).collect()
        };
        made.processes.push(Process {
            name: format!("gp({})", arguments[0].value),
            columns: (0..k).map(function).collect(),
            frequencies: (0..k).map(frequency).collect(),
        });
        Ok(())
    }

    fn monotonic(&mut self, call: &Expr, column: &Expr, made: &mut Predictor) -> Result<()> {
        let (steps, highest): (Vec<usize>, usize) = match self.evaluator.value(column)? {
            Value::Factor(factor) if factor.ordered || self.is_known(column) => {
                let codes = factor.codes.iter().map(|code| code.unwrap_or(0) as usize);
                (codes.collect(), factor.levels.len() - 1)
            }
            Value::Factor(_) => {
                return Err(self.error(column, format!("the order of the levels of `{column}` is not known"))
                    .help(format!("write mo(ordered({column})) where the order of the alphabet is meant, or number the levels in the table")));
            }
            _ => {
                let x = self.evaluator.numbers(column)?;
                if x.iter().any(|x| x.fract() != 0.0 || x.abs() > 1e6) {
                    return Err(self.error(
                        column,
                        "a monotonic effect is of whole numbers or of an ordered factor",
                    ));
                }
                let key = format!("{}:{call}", made.parameter);
                let low = x.iter().copied().fold(f64::INFINITY, f64::min);
                let learn = || State::Scale(low, 1.0);
                let low = match self.evaluator.states.entry(key).or_insert_with(learn) {
                    State::Scale(low, _) => *low,
                    _ => low,
                };
                let steps: Vec<usize> = x.iter().map(|x| (x - low).max(0.0) as usize).collect();
                let highest = steps.iter().copied().max().unwrap_or(0);
                (steps, highest)
            }
        };
        let key = format!("{}:{call}", made.parameter);
        let SmoothState::Steps(count) = *self
            .smooths
            .entry(key)
            .or_insert(SmoothState::Steps(highest))
        else {
            return Err(self.error(call, "this call is known as something else"));
        };
        if count == 0 {
            return Err(self.error(call, "a monotonic effect needs at least two levels"));
        }
        if highest > count {
            return Err(self.error(
                call,
                format!("the fit knows {count} steps of `{column}`, and a row has {highest}"),
            ));
        }
        made.monotonic.push(Monotonic {
            name: format!("mo({column})"),
            steps,
            count,
        });
        Ok(())
    }

    fn is_known(&self, column: &Expr) -> bool {
        matches!(
            self.evaluator.states.get(&column.to_string()),
            Some(State::Levels { ordered: true, .. })
        )
    }
}
