//! The content of a formula, which is a response with its additions and the terms of a linear predictor. The terms are
//! expanded by R's rules (Wilkinson and Rogers, Symbolic description of factorial models, 1973; Chambers and Hastie,
//! 1992).

use crate::error::{Error, Result, Span};
use crate::syntax::{Expr, Kind, parse};

/// A parsed formula together with its text.
#[derive(Clone, Debug)]
pub struct Formula {
    /// The text that the user wrote.
    pub text: String,
    /// The left-hand side of `~`.
    pub response: Response,
    /// The right-hand side of `~`. It is not yet expanded, because the meaning of `.` depends on the table.
    pub right: Expr,
    /// The parameters on the right-hand side that have their own formulas. If there are any, the right-hand side is
    /// evaluated as a function.
    pub parameters: Vec<String>,
}

/// The left-hand side of a formula.
#[derive(Clone, Debug)]
pub struct Response {
    /// The value of the response: a column, a function of columns, or `cbind(successes, failures)`.
    pub value: Expr,
    /// The additions to the response, such as `trials(n)`, `cens(c)` or `weights(w)`.
    pub additions: Vec<Expr>,
}

impl Formula {
    /// Parses a formula.
    ///
    /// # Errors
    /// Fails if the formula is invalid or has no left-hand side.
    pub fn parse(text: &str) -> Result<Self> {
        let expr = parse(text)?;
        let span = expr.span;
        let (left, right) = match expr.kind {
            Kind::Binary("~", left, right) => (*left, *right),
            Kind::Unary("~", _) => {
                return Err(Error::at(text, span, "the formula has no response")
                    .help("write the response on the left of `~`, as in `y ~ x`"));
            }
            _ => {
                return Err(Error::at(text, span, "a formula has a `~`")
                    .help("write `response ~ terms`, such as `y ~ x + (1 | g)`"));
            }
        };
        let mut additions = Vec::new();
        let value = match left.kind {
            Kind::Binary("|", value, added) => {
                sum(*added, &mut additions);
                *value
            }
            _ => left,
        };
        Ok(Self {
            text: text.to_owned(),
            response: Response { value, additions },
            right,
            parameters: Vec::new(),
        })
    }

    /// Returns whether a name occurs on the right-hand side of `~`.
    pub fn mentions(&self, name: &str) -> bool {
        let mut names = Vec::new();
        self.right.columns(&mut names);
        names.iter().any(|(other, _)| other == name)
    }

    /// Expands the right-hand side into terms. `others` contains the columns that `.` stands for.
    ///
    /// # Errors
    /// Fails if a term is invalid. The error contains the location of the term.
    pub fn terms(&self, others: &[String]) -> Result<Terms> {
        if self.parameters.is_empty() {
            return expand(&self.text, &self.right, others);
        }
        let mut names = Vec::new();
        self.right.columns(&mut names);
        let mut columns: Vec<Expr> = Vec::new();
        for (name, span) in names {
            let kind = Kind::Name(name);
            let is_parameter = matches!(&kind, Kind::Name(name) if self.parameters.contains(name));
            if !is_parameter && !columns.iter().any(|other| other.kind == kind) {
                columns.push(Expr { kind, span });
            }
        }
        Ok(Terms {
            computed: Some(Computed {
                value: self.right.clone(),
                columns,
            }),
            ..Terms::default()
        })
    }
}

fn sum(expr: Expr, found: &mut Vec<Expr>) {
    match expr.kind {
        Kind::Binary("+", left, right) => {
            sum(*left, found);
            sum(*right, found);
        }
        _ => found.push(expr),
    }
}

/// The terms of a linear predictor.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// Whether the predictor has an intercept.
    pub intercept: bool,
    /// The variables of the terms, in order of occurrence.
    pub variables: Vec<Expr>,
    /// The terms. Each term is a product of variables, given by their indices in increasing order.
    pub fixed: Vec<Vec<usize>>,
    /// The group effects.
    pub groups: Vec<Group>,
    /// The columns of `offset(x)` terms, which have a coefficient of 1.
    pub offsets: Vec<Expr>,
    /// Calls of functions in `SPECIAL`. Each call is a whole term.
    pub special: Vec<Expr>,
    /// A function that replaces the terms. Its arguments are columns, and parameters that have their own formulas.
    pub computed: Option<Computed>,
}

/// A function of columns and of parameters, which replaces the terms of a linear predictor.
#[derive(Clone, Debug)]
pub struct Computed {
    /// The expression that the user wrote.
    pub value: Expr,
    /// The columns that the expression contains.
    pub columns: Vec<Expr>,
}

/// Group effects, which formulas write as `(terms | factors)`.
#[derive(Clone, Debug)]
pub struct Group {
    /// The terms whose effects vary between groups.
    pub terms: Terms,
    /// The factors whose combinations define the groups.
    pub factors: Vec<Expr>,
    /// Whether the effects of a group are correlated.
    pub correlated: bool,
    /// The name that correlated effects of several parameters share, such as `p` in `(x |p| g)`.
    pub shared: Option<String>,
    /// The location in the text of the formula.
    pub span: Span,
}

impl Group {
    /// Returns the name of the grouping factor, such as `a` or `a:b`.
    pub fn name(&self) -> String {
        let names = self.factors.iter().map(ToString::to_string);
        names.collect::<Vec<_>>().join(":")
    }
}

/// Functions that a formula can call only as whole terms.
pub const SPECIAL: [&str; 8] = ["s", "t2", "gp", "mo", "me", "mi", "ar", "car"];

/// The function that declares a grouping with multiple membership.
pub const MEMBERSHIP: &str = "mm";

/// The function that declares a grouping with a `by` column. The effects have a separate standard deviation for each
/// level of this column.
pub const GROUPING: &str = "gr";

/// Functions of other packages that Jensen does not support, each with a suggested replacement.
const ABSENT: [(&str, &str); 7] = [
    ("te", "write t2(x, z), which is te(x, z) as group effects"),
    ("ti", "write t2(x, z), which includes the main effects"),
    (
        "arma",
        "ar(time, gr = g, p = 1) is an autoregression of residuals; `jensen regress … --stan FILE` writes a \
         program that you can extend",
    ),
    (
        MEMBERSHIP,
        "write it to the right of a bar, as in (1 | mm(a, b))",
    ),
    (
        GROUPING,
        "write it to the right of a bar, as in (1 | gr(g, by = z))",
    ),
    (
        "cs",
        "write the model as a Stan program: `jensen regress … --stan FILE` writes one that you can extend",
    ),
    (
        "bf",
        "write formulas of parameters after the first formula, as in 'y ~ x' 'sigma ~ x'",
    ),
];

/// Expands the right-hand side of a formula into terms. `others` contains the columns that `.` stands for.
///
/// # Errors
/// Fails if a term is invalid. The error contains the location of the term.
pub fn expand(text: &str, right: &Expr, others: &[String]) -> Result<Terms> {
    let mut expander = Expander {
        text,
        others,
        terms: Terms::default(),
    };
    let sum = expander.sum(right)?;
    let mut terms = expander.terms;
    terms.intercept = sum.intercept.unwrap_or(true);
    terms.fixed = sum.terms;
    // R orders terms by degree, and terms of the same degree by occurrence.
    terms.fixed.sort_by_key(Vec::len);
    Ok(terms)
}

#[derive(Default)]
struct Sum {
    intercept: Option<bool>,
    terms: Vec<Vec<usize>>,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.intercept = other.intercept.or(self.intercept);
        for term in other.terms {
            if !self.terms.contains(&term) {
                self.terms.push(term);
            }
        }
    }

    fn product(&self, other: &Self) -> Self {
        let mut found = Self::default();
        for left in &self.terms {
            for right in &other.terms {
                found.add(Self::of(union(left, right)));
            }
        }
        found
    }

    fn of(term: Vec<usize>) -> Self {
        Self {
            intercept: None,
            terms: vec![term],
        }
    }

    fn again(&self) -> Self {
        Self {
            intercept: self.intercept,
            terms: self.terms.clone(),
        }
    }
}

fn union(left: &[usize], right: &[usize]) -> Vec<usize> {
    let mut found = [left, right].concat();
    found.sort_unstable();
    found.dedup();
    found
}

struct Expander<'a> {
    text: &'a str,
    others: &'a [String],
    terms: Terms,
}

impl Expander<'_> {
    fn error(&self, expr: &Expr, message: impl Into<String>) -> Error {
        Error::at(self.text, expr.span, message)
    }

    fn sum(&mut self, expr: &Expr) -> Result<Sum> {
        match &expr.kind {
            Kind::Number(x) if *x == 1.0 || *x == 0.0 => Ok(Sum {
                intercept: Some(*x == 1.0),
                terms: Vec::new(),
            }),
            Kind::Number(x) => Err(self
                .error(expr, format!("{x} is no term"))
                .help("1 means an intercept and 0 none; a fixed summand is offset(column)")),
            Kind::Text(_) => Err(self
                .error(expr, "a text cannot be a term")
                .help("write a column name with spaces in backquotes: `my column`")),
            Kind::Name(name) if name == "." => {
                let mut found = Sum::default();
                for name in self.others {
                    let column = Expr {
                        kind: Kind::Name(name.clone()),
                        span: expr.span,
                    };
                    found.add(self.variable(&column));
                }
                Ok(found)
            }
            Kind::Name(_) => Ok(self.variable(expr)),
            Kind::Group(inner) => match &inner.kind {
                Kind::Binary(sign @ ("|" | "||"), effects, factors) => {
                    self.groups(effects, factors, *sign == "|", expr.span)?;
                    Ok(Sum::default())
                }
                _ => self.sum(inner),
            },
            Kind::Unary("+", inner) => self.sum(inner),
            Kind::Unary("-", inner) => {
                let mut found = Sum::default();
                let removed = self.sum(inner)?;
                self.remove(&mut found, &removed);
                Ok(found)
            }
            Kind::Binary(sign, left, right) => self.binary(expr, sign, left, right),
            Kind::Unary(..) => Err(self.no_term(expr)),
            Kind::Call(name, _) => self.call(expr, name),
        }
    }

    fn no_term(&self, expr: &Expr) -> Error {
        self.error(expr, "this cannot be a term")
            .help(format!("write a computed column in I(), as in I({expr})"))
    }

    fn call(&mut self, expr: &Expr, name: &str) -> Result<Sum> {
        if let Some((_, instead)) = ABSENT.iter().find(|(absent, _)| *absent == name) {
            return Err(self
                .error(expr, format!("{name}() cannot be a term"))
                .help(*instead));
        }
        if let Kind::Call(_, arguments) = &expr.kind
            && name == "offset"
        {
            let [argument] = arguments.as_slice() else {
                return Err(self.error(expr, "offset() needs one column"));
            };
            self.terms.offsets.push(argument.value.clone());
            return Ok(Sum::default());
        }
        if SPECIAL.contains(&name) {
            self.terms.special.push(expr.clone());
            return Ok(Sum::default());
        }
        Ok(self.variable(expr))
    }

    fn binary(&mut self, expr: &Expr, sign: &str, left: &Expr, right: &Expr) -> Result<Sum> {
        match sign {
            "+" => {
                let mut found = self.sum(left)?;
                let right = self.sum(right)?;
                found.add(right);
                Ok(found)
            }
            "-" => {
                let mut found = self.sum(left)?;
                let removed = self.sum(right)?;
                self.remove(&mut found, &removed);
                Ok(found)
            }
            "*" | ":" | "%in%" | "/" => {
                let (a, b) = (self.factor(left)?, self.factor(right)?);
                let mut found = match sign {
                    "*" | "/" => a.again(),
                    _ => Sum::default(),
                };
                if sign == "/" {
                    let all = a
                        .terms
                        .iter()
                        .fold(Vec::new(), |all, term| union(&all, term));
                    found.add(Sum::of(all).product(&b));
                } else {
                    if sign == "*" {
                        found.add(b.again());
                    }
                    found.add(a.product(&b));
                }
                Ok(found)
            }
            "^" => {
                let power = match right.bare().kind {
                    Kind::Number(x) if x.fract() == 0.0 && (1.0..=20.0).contains(&x) => x as usize,
                    _ => {
                        return Err(self
                            .error(right, "the power of a term must be an integer from 1 to 20")
                            .help(format!("the square of a column is I({expr})")));
                    }
                };
                let once = self.factor(left)?;
                let mut found = once.again();
                for _ in 1..power {
                    let more = found.product(&once);
                    found.add(more);
                }
                Ok(found)
            }
            "|" | "||" => Err(self
                .error(expr, "group effects need parentheses")
                .help(format!("write ({expr})"))),
            "~" => Err(self.error(expr, "a formula has one `~`")),
            _ => Err(self.no_term(expr)),
        }
    }

    fn factor(&mut self, expr: &Expr) -> Result<Sum> {
        let count = |terms: &Terms| terms.groups.len() + terms.special.len() + terms.offsets.len();
        let before = count(&self.terms);
        let found = self.sum(expr)?;
        if count(&self.terms) > before {
            return Err(self
                .error(expr, "group effects, smooths and offsets cannot be multiplied")
                .help("write them as separate summands; s(x, by = f) has one curve for each level of f"));
        }
        Ok(found)
    }

    fn remove(&self, from: &mut Sum, what: &Sum) {
        if let Some(intercept) = what.intercept {
            from.intercept = Some(!intercept);
        }
        from.terms.retain(|term| !what.terms.contains(term));
    }

    fn variable(&mut self, expr: &Expr) -> Sum {
        let name = expr.to_string();
        let known = self.terms.variables.iter();
        let known = known
            .map(ToString::to_string)
            .position(|other| other == name);
        Sum::of(vec![known.unwrap_or_else(|| {
            self.terms.variables.push(expr.clone());
            self.terms.variables.len() - 1
        })])
    }

    fn groups(&mut self, effects: &Expr, by: &Expr, correlated: bool, span: Span) -> Result<()> {
        let (effects, shared) = match &effects.kind {
            Kind::Binary("|", effects, name) => match &name.bare().kind {
                Kind::Name(word) => (&**effects, Some(word.clone())),
                Kind::Number(x) => (&**effects, Some(x.to_string())),
                _ => {
                    return Err(self
                        .error(name, "only a name can be between two bars")
                        .help("terms of several parameters with the same name, as in (1 |p| g), have correlated effects"));
                }
            },
            _ => (effects, None),
        };
        let terms = expand(self.text, effects, &[])?;
        if !(terms.groups.is_empty() && terms.special.is_empty() && terms.offsets.is_empty()) {
            return Err(self
                .error(effects, "only columns can have effects by group")
                .help("write smooths and offsets outside the parentheses"));
        }
        if !terms.intercept && terms.fixed.is_empty() {
            return Err(self
                .error(effects, "no term differs by group here")
                .help("(1 | g) has an intercept for each group"));
        }
        let mut nested = Vec::new();
        self.grouping(by, &mut nested)?;
        for factors in nested {
            self.terms.groups.push(Group {
                terms: terms.clone(),
                factors,
                correlated,
                shared: shared.clone(),
                span,
            });
        }
        Ok(())
    }

    /// Collects the groupings of an expression. To the right of the bar, `a/b` means `a` and `a:b`.
    fn grouping(&self, expr: &Expr, found: &mut Vec<Vec<Expr>>) -> Result<()> {
        match &expr.kind {
            Kind::Name(_) => found.push(vec![expr.clone()]),
            Kind::Call(name, _)
                if [MEMBERSHIP, GROUPING].contains(&name.as_str())
                    || !ABSENT.iter().any(|(absent, _)| absent == name) =>
            {
                found.push(vec![expr.clone()]);
            }
            Kind::Call(name, _) => {
                let absent = ABSENT.iter().find(|(absent, _)| absent == name);
                let error = self.error(expr, format!("{name}() cannot be a grouping"));
                return Err(error.help(absent.map_or("", |(_, instead)| *instead)));
            }
            Kind::Group(inner) => self.grouping(inner, found)?,
            Kind::Binary(sign @ (":" | "/"), left, right) => {
                let (mut outer, mut inner) = (Vec::new(), Vec::new());
                self.grouping(left, &mut outer)?;
                self.grouping(right, &mut inner)?;
                let (Some(last), [inner]) = (outer.last().cloned(), inner.as_slice()) else {
                    return Err(self.no_grouping(expr));
                };
                let is_special =
                    |factor: &Expr| [Some(MEMBERSHIP), Some(GROUPING)].contains(&factor.function());
                if last.iter().chain(inner).any(is_special) {
                    return Err(self.no_grouping(expr));
                }
                if *sign == "/" {
                    found.append(&mut outer);
                }
                found.push([last, inner.clone()].concat());
            }
            _ => return Err(self.no_grouping(expr)),
        }
        Ok(())
    }

    fn no_grouping(&self, expr: &Expr) -> Error {
        self.error(expr, "this cannot be a grouping").help(
            "write a column to the right of the bar, `a:b` for combinations, or `a/b` for b within a",
        )
    }
}
