//! Smooths, Gaussian processes and monotonic effects, evaluated over the rows of a frame.

use super::{BOUNDARY, Maker, Monotonic, Penalised, Predictor, Process, SmoothState};
use crate::error::Result;
use crate::evaluate::{State, Value, argument};
use crate::smooth::{Columns, Product, Smooth, distinct};
use crate::syntax::{Argument, Expr, Kind};

/// Number of knots for a smooth of one column, and number of knots per column for a smooth of two columns. mgcv has the
/// same defaults.
const KNOTS: (usize, usize) = (10, 5);

const FUNCTIONS: usize = 20;

impl Maker<'_, '_> {
    fn knots(&self, arguments: &[Argument], usual: usize) -> Result<usize> {
        match argument(arguments, &["k"], usize::MAX) {
            None => Ok(usual),
            Some(expr) => match expr.bare().kind {
                Kind::Number(x) if x.fract() == 0.0 && (3.0..=200.0).contains(&x) => Ok(x as usize),
                _ => Err(self.error(expr, "k must be an integer from 3 to 200")),
            },
        }
    }

    fn one(&mut self, call: &Expr, key: &str, x: &[f64], k: usize, cyclic: bool) -> Result<Smooth> {
        if let Some(SmoothState::One(smooth)) = self.smooths.get(key) {
            return Ok(smooth.clone());
        }
        self.enough_values(call, x, k)?;
        let Some(smooth) = Smooth::of(x, k, cyclic) else {
            return Err(self
                .error(
                    call,
                    "a smooth needs a column with at least three distinct values (four if it is cyclic)",
                )
                .help("use the column itself, or factor(x)"));
        };
        self.smooths
            .insert(key.to_owned(), SmoothState::One(smooth.clone()));
        Ok(smooth)
    }

    fn enough_values(&self, call: &Expr, x: &[f64], k: usize) -> Result<()> {
        let Kind::Call(name, arguments) = &call.kind else {
            return Ok(());
        };
        let Some(given) = argument(arguments, &["k"], usize::MAX) else {
            return Ok(());
        };
        let count = distinct(x).len();
        if k <= count {
            return Ok(());
        }
        Err(self
            .error(
                given,
                format!(
                    "{name}() with k = {k} needs at least k distinct values, but its column has {count}"
                ),
            )
            .help(match count {
                0..3 => "use the column itself, or factor(x)".to_owned(),
                count => format!("write k = {count} or less, or remove k"),
            }))
    }

    pub(super) fn smooth(
        &mut self,
        call: &Expr,
        arguments: &[Argument],
        made: &mut Predictor,
    ) -> Result<()> {
        let cyclic = match argument(arguments, &["bs"], usize::MAX).map(|bs| (&bs.kind, bs)) {
            None => false,
            Some((Kind::Text(kind), _)) if kind == "cr" || kind == "tp" => false,
            Some((Kind::Text(kind), _)) if kind == "cc" => true,
            Some((_, bs)) => {
                return Err(self
                    .error(bs, format!("there is no basis {bs}"))
                    .help("\"cr\" is a cubic regression spline, and \"cc\" a cyclic one"));
            }
        };
        let x = self.evaluator.numbers(&arguments[0].value)?;
        let k = self.knots(arguments, KNOTS.0)?;
        let label = format!("s({})", arguments[0].value);
        let key = format!("{}:{call}", made.parameter);
        let smooth = self.one(call, &key, &x, k, cyclic)?;
        let (line, columns) = (smooth.line(&x), smooth.penalised(&x));
        // Each part has a suffix of its name and a factor for each row.
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

    pub(super) fn product(
        &mut self,
        call: &Expr,
        arguments: &[Argument],
        made: &mut Predictor,
    ) -> Result<()> {
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
            return Err(self.error(
                call,
                "the stored fit has another kind of result for this call",
            ));
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

    pub(super) fn process(
        &mut self,
        call: &Expr,
        arguments: &[Argument],
        made: &mut Predictor,
    ) -> Result<()> {
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
            return Err(self.error(
                call,
                "the stored fit has another kind of result for this call",
            ));
        };
        if half == 0.0 {
            return Err(self.error(
                call,
                "a Gaussian process needs a column with different values",
            ));
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

    pub(super) fn monotonic(
        &mut self,
        call: &Expr,
        column: &Expr,
        made: &mut Predictor,
    ) -> Result<()> {
        let (steps, highest): (Vec<usize>, usize) = match self.evaluator.value(column)? {
            Value::Factor(factor) if factor.ordered || self.is_known(column) => {
                let codes = factor.codes.iter().map(|code| code.unwrap_or(0) as usize);
                (codes.collect(), factor.levels.len() - 1)
            }
            Value::Factor(_) => {
                return Err(self.error(column, format!("the levels of `{column}` have no known order"))
                    .help(format!("write mo(ordered({column})) for alphabetical order, or number the levels in \
                                   the table")));
            }
            _ => {
                let x = self.evaluator.numbers(column)?;
                if x.iter().any(|x| x.fract() != 0.0 || x.abs() > 1e6) {
                    return Err(self
                        .error(
                            column,
                            "a monotonic effect needs integers or an ordered factor",
                        )
                        .help("for a curve over any numbers use s(x)"));
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
            return Err(self.error(
                call,
                "the stored fit has another kind of result for this call",
            ));
        };
        if count == 0 {
            return Err(self.error(call, "a monotonic effect needs at least two levels"));
        }
        if highest > count {
            return Err(self.error(
                call,
                format!("the fit has {count} steps of `{column}`, but a row has {highest}"),
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
