//! The table of the terms that a prior in text form can contain. It lists their arguments and the starting values of
//! their hyperparameters.

use std::ops::Range as Span;

use super::distribution::Distribution;
use super::kernel::Shape;
use super::setting::Setting;
use super::spec::{Call, Named, SpecError, Word};
use crate::{PriorDensity, Range, Tail};

/// A term that a specification can contain.
pub struct Term {
    /// The name of the term.
    pub name: &'static str,
    /// The notation of the term in messages.
    pub usage: &'static str,
    /// The description of the term, for help texts.
    pub meaning: &'static str,
    keys: &'static [&'static str],
    flags: &'static [&'static str],
    parameters: &'static [Hyper],
}

/// A hyperparameter of a term.
#[derive(Clone, Copy)]
pub struct Hyper {
    /// The key of the hyperparameter.
    pub name: &'static str,
    /// The allowed values.
    pub range: Range,
    /// The default or starting value. `None` means that the data determine the value.
    pub start: Option<f64>,
    /// Whether Jensen learns the hyperparameter if the user gives no value.
    pub learnt: bool,
    /// The hyperparameter is measured in the response's unit raised to this power.
    pub power: f64,
    /// The quantity that defines the penalised-complexity prior, or `None` if this prior depends on the field.
    pub tail: Option<Tail>,
    /// The threshold and the probability of the default prior. For lengths, the threshold is a multiple of the starting
    /// value.
    pub usual: (f64, f64),
}

/// The default prior of a standard deviation: with probability 0.01, it exceeds three times the standard deviation of
/// the response (Wang, Yue and Faraway, *Bayesian Regression Modeling with INLA*, 2018).
pub const DEVIATION: (f64, f64) = (3.0, 0.01);

/// The default prior of a length: with probability 0.05, the length is below a tenth of the spread of the inputs.
/// Effects on shorter scales are seldom distinguishable from noise.
const SHORT: (f64, f64) = (0.1, 0.05);

const fn positive(name: &'static str, start: Option<f64>, power: f64) -> Hyper {
    Hyper {
        name,
        range: Range::Positive,
        start,
        learnt: true,
        power,
        tail: Some(Tail::Deviation { power: 0.5 }),
        usual: DEVIATION,
    }
}

const fn length(name: &'static str, dimensions: f64) -> Hyper {
    Hyper {
        tail: Some(Tail::Length { dimensions }),
        usual: SHORT,
        ..positive(name, None, 0.0)
    }
}

const PRECISION: Hyper = Hyper {
    tail: Some(Tail::Deviation { power: -0.5 }),
    ..positive("precision", Some(1.0), -2.0)
};
const VARIANCE: Hyper = positive("variance", Some(1.0), 2.0);
/// 1/√α is the relative standard deviation of 1/ℓ² among the squared exponentials that a rational quadratic kernel mixes. The
/// prior of this standard deviation prefers a single lengthscale.
const ALPHA: Hyper = Hyper {
    tail: Some(Tail::Deviation { power: -0.5 }),
    ..positive("alpha", Some(1.0), 0.0)
};
/// The standard deviation of an effect is 2.5 standard deviations of the response per standard deviation of the column,
/// as in rstanarm.
const EFFECT: Hyper = Hyper {
    learnt: false,
    ..positive("variance", Some(6.25), 2.0)
};
/// A level has a wide prior and is therefore not shrunk, unless the user requests it.
const ROOM: Hyper = Hyper {
    learnt: false,
    ..positive("variance", Some(1000.0), 2.0)
};
const RHO: Hyper = Hyper {
    range: Range::Between(-1.0, 1.0),
    tail: Some(Tail::Correlation),
    // These are INLA's default values for `pc.cor0`.
    usual: (0.5, 0.5),
    ..positive("rho", Some(0.9), 0.0)
};
const PHI: Hyper = Hyper {
    range: Range::Between(0.0, 1.0),
    tail: None,
    // P(φ < ½) = ⅔, as in Riebler et al. 2016.
    usual: (0.5, 2.0 / 3.0),
    ..positive("phi", Some(0.5), 0.0)
};
/// The correlation between two effects of a group, given the preceding effects. The prior is uniform, as in brms.
const COR: Hyper = Hyper {
    range: Range::Between(-1.0, 1.0),
    tail: None,
    usual: (1.0, 0.0),
    ..positive("cor", Some(0.0), 0.0)
};
const LINE: &[&str] = &["on", "from", "to", "step"];

const EVERY: [&str; 4] = ["by", "replicate", "group", "group_model"];

/// The correlation of copies of a field: of neighbouring copies, or of any two if they are exchangeable.
const GROUP_RHO: Hyper = Hyper {
    name: "group_rho",
    ..RHO
};

/// The hyperparameters of every term with copies.
const SHARED: [Hyper; 1] = [GROUP_RHO];

/// All terms.
pub const TERMS: [Term; 17] = [
    Term {
        name: "gp",
        usage: "gp(KERNEL[, ard][, on=COLUMNS][, period=p][, lengthscale=ℓ][, variance=v][, alpha=α])",
        meaning: "Gaussian process; KERNEL is rbf, matern12, matern32, matern52, rq, linear, constant, or with a \
                  period periodic or cosine. alpha is the shape of rq and starts at 1. The lengthscale starts at the root of the summed variances of the columns, or with `ard` (one \
                  per column) at each column's standard deviation times the root of their number; the variance \
                  starts at 1 and is 1 in the later factors of a product.",
        keys: &["on", "period"],
        flags: &["ard"],
        parameters: &[length("lengthscale", 1.0), VARIANCE, ALPHA],
    },
    Term {
        name: "hsgp",
        usage: "hsgp(KERNEL[, ard][, on=COLUMNS][, basis=m][, boundary=c][, lengthscale=ℓ][, variance=v])",
        meaning: "Gaussian process on one to three columns by basis functions, for many rows; KERNEL is rbf, \
                  matern32 or matern52. There are m functions along each column, on a box c times as wide as \
                  the rows' range.",
        keys: &["on", "basis", "boundary"],
        flags: &["ard"],
        parameters: &[length("lengthscale", 1.0), VARIANCE],
    },
    Term {
        name: "svgp",
        usage: "svgp(KERNEL[, ard][, on=COLUMNS][, inducing=m][, period=p][, lengthscale=ℓ][, variance=v])",
        meaning: "Gaussian process on any number of columns by m inducing points, for many rows; KERNEL is rbf, \
                  matern12, matern32, matern52 or periodic. The points are 300 rows by default.",
        keys: &["on", "inducing", "period"],
        flags: &["ard"],
        parameters: &[length("lengthscale", 1.0), VARIANCE],
    },
    Term {
        name: "covariance",
        usage: "covariance(matrix=FILE[, on=COLUMN][, first=0|1][, variance=v])",
        meaning: "Effects with the covariance matrix in FILE times the variance, which starts at 1; COLUMN has \
                  the numbers of the matrix's rows, and without it row i of the table is row i of the matrix.",
        keys: &["matrix", "on", "first"],
        flags: &[],
        parameters: &[VARIANCE],
    },
    Term {
        name: "precision",
        usage: "precision(matrix=FILE[, on=COLUMN][, first=0|1][, precision=τ])",
        meaning: "Effects with the sparse precision matrix in FILE times τ, which starts at 1; COLUMN has the \
                  numbers of the matrix's rows, and without it row i of the table is row i of the matrix. A \
                  matrix whose rows sum to 0 does not determine the level of each connected component.",
        keys: &["matrix", "on", "first"],
        flags: &[],
        parameters: &[PRECISION],
    },
    Term {
        name: "iid",
        usage: "iid([on=COLUMN][, by=(1, COLUMN, …)][, variance=v][, cor=ρ])",
        meaning: "Independent effects, one per row or per group of COLUMN; the variance starts at 1. With \
                  by=(1, COLUMN, …) each group has a level and slopes with a correlation, which starts at 0.",
        keys: &["on"],
        flags: &[],
        parameters: &[VARIANCE, COR],
    },
    Term {
        name: "fixed",
        usage: "fixed(COLUMN, …[, variance=v])",
        meaning: "Fixed effects of covariates; a column of words gives an effect of each level against the \
                  first. The variance is that of the effect of one standard deviation of a column; the default \
                  is 6.25 times the response's, and Jensen learns it only if it is written with `~`.",
        keys: &[],
        flags: &[],
        parameters: &[EFFECT],
    },
    Term {
        name: "intercept",
        usage: "intercept([variance=v])",
        meaning: "A common level; its variance is by default 1000 times the response's.",
        keys: &[],
        flags: &[],
        parameters: &[ROOM],
    },
    Term {
        name: "rw1",
        usage: "rw1([on=COLUMN][, cyclic][, from=a][, to=b][, step=s][, precision=τ])",
        meaning: "First-order random walk, flat in its level; the precision of a step starts at 1. At uneven \
                  times it is Brownian motion, and the step is the mean distance.",
        keys: LINE,
        flags: &["cyclic"],
        parameters: &[PRECISION],
    },
    Term {
        name: "rw2",
        usage: "rw2([on=COLUMN][, cyclic][, from=a][, to=b][, step=s][, precision=τ])",
        meaning: "Second-order random walk, flat in level and slope; the precision of a second difference \
                  starts at 1. Times may be uneven, and rows between nodes are interpolated.",
        keys: LINE,
        flags: &["cyclic"],
        parameters: &[PRECISION],
    },
    Term {
        name: "te",
        usage: "te(on=(COLUMN, COLUMN)[, basis=m|(m, n)][, from=(a, b)][, to=(c, d)][, precision=τ|(τ, τ)])",
        meaning: "Smooth of two columns: products of 10 B-splines along each of them, flat in level, both slopes and \
                  their product. Second differences of coefficients have a precision in each direction, which \
                  starts at 1.",
        keys: &["on", "basis", "from", "to"],
        flags: &[],
        parameters: &[PRECISION],
    },
    Term {
        name: "tp",
        usage: "tp(on=COLUMN|(COLUMN, …)[, basis=k][, precision=τ])",
        meaning: "Thin-plate regression spline of one to three columns in one unit: k functions, by default 10, 30 or 104, \
                  flat in level and slopes. The typical variance of the penalised functions is 1/τ, which starts at 1.",
        keys: &["on", "basis"],
        flags: &[],
        parameters: &[PRECISION],
    },
    Term {
        name: "ar1",
        usage: "ar1([on=COLUMN][, from=a][, to=b][, step=s][, rho=ρ][, variance=v])",
        meaning: "Stationary autoregression; rho starts at 0.9, the marginal variance at 1. At uneven times the \
                  correlation is rho to the power of the distance in steps.",
        keys: LINE,
        flags: &[],
        parameters: &[RHO, VARIANCE],
    },
    Term {
        name: "icar",
        usage: "icar(graph=FILE[, on=COLUMN][, first=0|1][, precision=τ])",
        meaning: "Intrinsic field over neighbours, flat in the level of each connected component; precision starts at 1.",
        keys: &["graph", "on", "first"],
        flags: &[],
        parameters: &[PRECISION],
    },
    Term {
        name: "bym2",
        usage: "bym2(graph=FILE[, on=COLUMN][, first=0|1][, precision=τ][, phi=φ])",
        meaning: "Independent and scaled intrinsic field, where φ is the share of the latter; starts at \
                  precision 1 and φ 0.5.",
        keys: &["graph", "on", "first"],
        flags: &[],
        parameters: &[PRECISION, PHI],
    },
    Term {
        name: "grid",
        usage: "grid(rw1|rw2|spde, ROWS, COLUMNS[, on=CELL|(ROW, COLUMN)][, first=0|1][, mask=FILE][, precision=τ | range=r, \
                variance=v])",
        meaning: "Field over the cells of a rectangle, row by row. rw1 and rw2 are intrinsic with a precision \
                  that starts at 1; spde is stationary, and its range (in cells) starts at a fifth of the \
                  longer side, its variance at 1.",
        keys: &["on", "first", "mask"],
        flags: &[],
        parameters: &[PRECISION, length("range", 2.0), VARIANCE],
    },
    Term {
        name: "mesh",
        usage: "mesh(spde, on=(COLUMN, COLUMN)[, edge=h][, cutoff=c][, extension=e][, range=r][, variance=v])",
        meaning: "Stationary field over two coordinates in one unit, on a mesh of the rows' locations. The range \
                  starts at a fifth of the longer side of the rectangle around them, the variance at 1. Edges \
                  are at most 0.15 of that range, locations closer than half an edge share a node, and the mesh \
                  extends two ranges beyond them.",
        keys: &["on", "edge", "cutoff", "extension"],
        flags: &[],
        parameters: &[length("range", 2.0), VARIANCE],
    },
];

/// A call in a specification. Its term and its keys exist in the table.
pub struct Known<'s> {
    text: &'s str,
    /// The call as parsed.
    pub call: &'s Call,
    /// The row of the call's term in the table.
    pub term: &'static Term,
}

fn near<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let shared = |name: &str| {
        word.chars()
            .zip(name.chars())
            .filter(|(a, b)| a == b)
            .count()
    };
    let sorted = |s: &str| {
        let mut letters: Vec<char> = s.to_lowercase().chars().collect();
        letters.sort_unstable();
        letters
    };
    names
        .filter(|name| {
            let longest = name.chars().count().max(word.chars().count());
            shared(name) * 2 > longest || sorted(name) == sorted(word)
        })
        .max_by_key(|name| shared(name))
}

fn advice(word: &str, names: &[&str]) -> String {
    match near(word, names.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => {
            let list: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
            format!("there is {}", list.join(", "))
        }
    }
}

impl<'s> Known<'s> {
    /// Looks up the term and the keys of a call.
    ///
    /// # Errors
    /// Fails if a word is unknown. The error suggests a similar word, or lists all known words.
    pub fn new(text: &'s str, call: &'s Call) -> Result<Self, SpecError> {
        let name = &call.name;
        let Some(term) = TERMS.iter().find(|t| t.name == name.text) else {
            let names: Vec<&str> = TERMS.iter().map(|t| t.name).collect();
            let message = match Shape::TABLE.iter().find(|row| row.name == name.text) {
                Some(row) => format!("`{0}` is a kernel: write `gp({0})`", row.name),
                None => format!(
                    "there is no prior `{}`; {}",
                    name.text,
                    advice(&name.text, &names)
                ),
            };
            return Err(SpecError::new(text, name.span.clone(), message));
        };
        let known = Self { text, call, term };
        let keys: Vec<&str> = (term.keys.iter().chain(&EVERY).copied())
            .chain(term.parameters.iter().chain(&SHARED).map(|p| p.name))
            .collect();
        for named in &call.named {
            if !keys.contains(&named.key.text.as_str()) {
                return Err(known.error(
                    &named.key.span,
                    format!(
                        "`{}` takes no `{}`; {}",
                        term.name,
                        named.key.text,
                        advice(&named.key.text, &keys)
                    ),
                ));
            }
            let is_parameter = term
                .parameters
                .iter()
                .chain(&SHARED)
                .any(|p| p.name == named.key.text);
            if named.start && !is_parameter {
                return Err(known.error(
                    &named.key.span,
                    format!("Jensen does not learn `{0}`: write `{0}=…`", named.key.text),
                ));
            }
        }
        Ok(known)
    }

    /// Returns an error at the given position in the specification.
    pub fn error(&self, span: &Span<usize>, message: impl Into<String>) -> SpecError {
        SpecError::new(self.text, span.clone(), message)
    }

    /// Returns an error about the whole call, which includes the usage of the term.
    pub fn misused(&self, message: &str) -> SpecError {
        self.error(
            &self.call.name.span,
            format!("{message}; write `{}`", self.term.usage),
        )
    }

    /// Returns the positional words that are not flags.
    pub fn words(&self) -> Vec<&'s Word> {
        self.call
            .positional
            .iter()
            .filter(|w| !self.term.flags.contains(&w.text.as_str()))
            .collect()
    }

    /// Checks that there are at most `most` positional words.
    ///
    /// # Errors
    /// Fails if there are more.
    pub fn at_most(&self, most: usize) -> Result<(), SpecError> {
        match self.words().get(most) {
            None => Ok(()),
            Some(word) => Err(self.error(
                &word.span,
                format!("unexpected `{}`; write `{}`", word.text, self.term.usage),
            )),
        }
    }

    /// Whether the call has this flag.
    pub fn flag(&self, flag: &str) -> bool {
        self.call.positional.iter().any(|w| w.text == flag)
    }

    /// Returns the argument with this key.
    pub fn named(&self, key: &str) -> Option<&'s Named> {
        self.call.named.iter().find(|n| n.key.text == key)
    }

    /// Returns the words of the argument with this key.
    pub fn list(&self, key: &str) -> Option<&'s [Word]> {
        self.named(key).map(|n| n.values.as_slice())
    }

    /// Returns the single word of the argument with this key.
    ///
    /// # Errors
    /// Fails if the argument has several words.
    pub fn one(&self, key: &str) -> Result<Option<&'s Word>, SpecError> {
        match self.list(key) {
            None => Ok(None),
            Some([word]) => Ok(Some(word)),
            Some(words) => Err(self.error(
                &words[1].span,
                format!("`{key}` needs one value here, not a list"),
            )),
        }
    }

    /// Parses a finite number.
    ///
    /// # Errors
    /// Fails if the word is not a finite number.
    pub fn number(&self, word: &Word) -> Result<f64, SpecError> {
        match word.text.parse::<f64>() {
            Ok(x) if x.is_finite() => Ok(x),
            _ => Err(self.error(
                &word.span,
                format!("expected a number, found `{}`", word.text),
            )),
        }
    }

    /// Parses the number of the argument with this key.
    ///
    /// # Errors
    /// Fails if the argument is not a finite number.
    pub fn number_of(&self, key: &str) -> Result<Option<f64>, SpecError> {
        self.one(key)?.map(|word| self.number(word)).transpose()
    }

    /// Parses an integer of at least 1.
    ///
    /// # Errors
    /// Fails if the word is not such an integer.
    pub fn count(&self, word: &Word) -> Result<usize, SpecError> {
        match word.text.parse::<usize>() {
            Ok(n @ 1..=1_000_000_000) => Ok(n),
            _ => Err(self.error(
                &word.span,
                format!("expected an integer of at least 1, found `{}`", word.text),
            )),
        }
    }

    /// Returns the row of a hyperparameter of this term.
    ///
    /// # Errors
    /// Fails if the term has no such hyperparameter.
    pub fn hyper(&self, name: &str) -> Result<&'static Hyper, SpecError> {
        let parameters = self.term.parameters.iter().chain(&SHARED);
        let found = parameters.into_iter().find(|p| p.name == name);
        found.ok_or_else(|| self.misused(&format!("`{}` has no `{name}`", self.term.name)))
    }

    /// Returns the user's prior for a hyperparameter.
    ///
    /// # Errors
    /// Fails if the text is not a prior.
    pub fn distribution(&self, name: &str) -> Result<Option<Distribution>, SpecError> {
        let Some(named) = self.named(name) else {
            return Ok(None);
        };
        let found =
            Distribution::of(named).map_err(|(word, message)| self.error(&word.span, message))?;
        let range = self.hyper(name)?.range;
        match &found {
            Some(Distribution::Density(density)) if !range.suits(density) => Err(self.error(
                &named.values[0].span,
                format!(
                    "`{}` has other values than `{name}`, which {}",
                    named.values[0].text,
                    match range {
                        Range::Between(low, high) => format!("is between {low} and {high}"),
                        Range::Positive => "is positive".to_owned(),
                        Range::Real => "is any number".to_owned(),
                    }
                ),
            )),
            _ => Ok(found),
        }
    }

    /// Returns a hyperparameter whose value is measured in `unit`. The value is the user's value if there is one.
    /// Otherwise it is the starting value in the hyperparameter's row, or `from_data` if the row has none.
    ///
    /// # Errors
    /// Fails if the value is not a number or is out of range.
    pub fn setting(
        &self,
        name: &str,
        label: &str,
        from_data: Option<f64>,
        unit: f64,
    ) -> Result<Setting, SpecError> {
        let settings = self.settings(name, &[label.to_owned()], &[from_data], &[unit])?;
        settings
            .into_iter()
            .next()
            .ok_or_else(|| self.misused(&format!("`{name}` is missing")))
    }

    /// Returns one hyperparameter per label for a single key. A list gives each label its own value, and a single value
    /// applies to all labels. Values are in the table's units. A value of 1 in the model corresponds to the label's
    /// element of `units`.
    ///
    /// # Errors
    /// Fails if a value is not a number or is out of range, or if the list does not have one element per label.
    pub fn settings(
        &self,
        name: &str,
        labels: &[String],
        from_data: &[Option<f64>],
        units: &[f64],
    ) -> Result<Vec<Setting>, SpecError> {
        let hyper = self.hyper(name)?;
        let distribution = self.distribution(name)?;
        let given = self.named(name);
        let value = given.filter(|_| distribution.is_none());
        if let Some(named) = given
            && named.values.len() != 1
            && named.values.len() != labels.len()
        {
            return Err(self.error(
                &named.key.span,
                format!(
                    "`{name}` needs one value or a list of {}, not {}",
                    labels.len(),
                    named.values.len()
                ),
            ));
        }
        (labels.iter().zip(from_data).zip(units).enumerate())
            .map(|(i, ((label, from_data), unit))| {
                let usual = hyper.start.or(*from_data).unwrap_or(1.0);
                let value = match value {
                    Some(named) => {
                        let word = &named.values[i % named.values.len()];
                        self.in_range(hyper, word)? / unit
                    }
                    None => usual,
                };
                let density = match (hyper.tail, &distribution) {
                    (Some(tail), Some(given)) => given.density(tail, *unit),
                    (Some(tail), None) => {
                        let (at, probability) = hyper.usual;
                        let length = matches!(tail, Tail::Length { .. });
                        tail.density(if length { at * usual } else { at }, probability)
                    }
                    (None, _) => PriorDensity::Flat,
                };
                Ok(Setting {
                    name: format!("{label}.{name}"),
                    value,
                    free: given.map_or(hyper.learnt, |named| named.start),
                    range: hyper.range,
                    density,
                    unit: *unit,
                })
            })
            .collect()
    }

    fn in_range(&self, hyper: &Hyper, word: &Word) -> Result<f64, SpecError> {
        let value = self.number(word)?;
        let refused = match hyper.range {
            Range::Positive if value <= 0.0 => "must be positive".to_owned(),
            Range::Between(low, high) if value <= low || value >= high => {
                format!("must be between {low} and {high}")
            }
            _ => return Ok(value),
        };
        Err(self.error(
            &word.span,
            format!("`{}` {refused}, not {}", hyper.name, word.text),
        ))
    }
}
