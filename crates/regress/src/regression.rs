//! A regression. It consists of formulas, a family and a table, and of the state that is needed to compute the same
//! columns for new rows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::asked::{Formulas, columns, complete, family, others};
use crate::basis::{mean, sd};
use crate::design::{CONTRASTS, Contrasts};
use crate::error::{Error, Result, Span};
use crate::evaluate::Evaluator;
use crate::family::{Family, Link, Parameter, Response as Kinds};
use crate::frame::Frame;
use crate::predictor::{Groups, IMPUTED, Learnt, Maker, Predictor, Unknown};
use crate::rank::{dependent, place};
use crate::response::{CATEGORIES, Observed, exposed, observed};
use crate::syntax::Kind;

/// A user's request for a regression.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// The formula of the mean, such as `y ~ x`. Formulas of other parameters follow it, such as `sigma ~ x` or `nu =
    /// 4`.
    pub formulas: Vec<String>,
    /// The family. A link other than the default follows in parentheses. The default family is gaussian.
    pub family: Option<String>,
    /// The coding of factors. The default is treatment contrasts.
    pub contrasts: Option<String>,
    /// The priors, such as `b ~ normal(0, 1)`.
    pub priors: Vec<String>,
    /// Whether to leave out the data and fit only the prior.
    pub prior_only: bool,
    /// Whether to report the log likelihood and a replicate of each row. By default they are reported for up to 2000
    /// rows.
    pub pointwise: Option<bool>,
}

/// Largest number of rows for which log likelihoods and replicates are reported by default. Files for more rows are
/// large and rarely read.
const POINTWISE: usize = 2000;

/// A regression over the rows of a table.
#[derive(Debug)]
pub struct Regression {
    /// The request of the user.
    pub request: Request,
    /// The family.
    pub family: &'static Family,
    /// The link of the family's mean.
    pub link: Link,
    /// The state that predictions at new rows require.
    pub learnt: Learnt,
    /// The linear predictors of the mean, or of each category except the first. The predictors of other parameters
    /// follow.
    pub predictors: Vec<Predictor>,
    /// Linear predictors of imputed columns.
    pub imputed: Vec<Predictor>,
    /// Columns with unknown values.
    pub unknowns: Vec<Unknown>,
    /// The estimated parameters of the family that have no formula.
    pub plain: Vec<Parameter>,
    /// The parameters with a fixed value, keyed by name.
    pub fixed: BTreeMap<String, f64>,
    /// The response in the rows that the regression uses.
    pub observed: Observed,
    /// The indices of the rows that the regression uses, from 0.
    pub rows: Vec<usize>,
    /// The number of rows in the table, including rows that are not used.
    pub of_rows: usize,
    /// The columns with missing values among those that the regression uses, each with the number of its missing
    /// values.
    pub missing: Vec<(String, usize)>,
    /// The name of the table.
    pub source: String,
}

impl Regression {
    /// Builds a regression from a request and a table.
    ///
    /// # Errors
    /// Fails if a formula, a prior or the table is invalid.
    pub fn new(request: &Request, frame: &Frame) -> Result<Self> {
        let (family, link) = family(request)?;
        let formulas = Formulas::parse(request, family)?;
        check_parameters(&formulas, frame)?;
        let mut keep: Option<Vec<bool>> = None;
        let mut missing: Vec<(String, usize)> = Vec::new();
        for formula in formulas.all() {
            let mut named = Vec::new();
            if std::ptr::eq(formula, &raw const formulas.mean) {
                formula.response.value.columns(&mut named);
                for addition in &formula.response.additions {
                    if let Kind::Call(_, arguments) = &addition.kind {
                        arguments.iter().for_each(|a| a.value.columns(&mut named));
                    }
                }
            }
            columns(&formula.terms(&others(formula, frame))?, true, &mut named);
            let (rows, gaps) = complete(frame, &named, &formula.text)?;
            let keep = keep.get_or_insert_with(|| vec![true; frame.rows()]);
            let mut here = vec![false; frame.rows()];
            rows.iter().for_each(|row| here[*row] = true);
            keep.iter_mut()
                .zip(here)
                .for_each(|(keep, here)| *keep &= here);
            let new = gaps
                .into_iter()
                .filter(|(name, _)| !missing.iter().any(|(other, _)| other == name));
            missing.extend(new.collect::<Vec<_>>());
        }
        let keep = keep.unwrap_or_default();
        let rows: Vec<usize> = (0..frame.rows()).filter(|row| keep[*row]).collect();
        if rows.len() < 2 {
            let gaps: Vec<String> = missing
                .iter()
                .map(|(name, count)| format!("`{name}` lacks {count}"))
                .collect();
            return Err(Error::new(format!(
                "{} of {} rows have a value in every column that the formulas use",
                rows.len(),
                frame.rows()
            ))
            .help(match gaps.is_empty() {
                true => "the table has no rows".to_owned(),
                false => format!("{}: remove such columns", gaps.join(", ")),
            }));
        }
        let used = frame.rows_of(&rows);
        let mut made = Self {
            request: request.clone(),
            family,
            link,
            learnt: Learnt::default(),
            predictors: Vec::new(),
            imputed: Vec::new(),
            unknowns: Vec::new(),
            plain: Vec::new(),
            fixed: formulas.fixed.clone(),
            observed: Observed::default(),
            of_rows: frame.rows(),
            rows,
            missing,
            source: frame.source.clone(),
        };
        made.observe(&formulas, &used)?;
        made.predict(&formulas, &used, true)?;
        made.check_columns(&formulas)?;
        made.check_terms(&formulas)?;
        made.check_joint(&formulas)?;
        made.plain = made.without_formula();
        Ok(made)
    }

    /// Builds the predictors of new rows from the stored state. Rows with missing values are omitted, and the response
    /// is ignored.
    ///
    /// # Errors
    /// Fails if a column is missing, or if it has values that the fit does not know.
    pub fn for_rows(request: &Request, learnt: &Learnt, frame: &Frame) -> Result<Self> {
        let (family, link) = family(request)?;
        let mut formulas = Formulas::parse(request, family)?;
        // New rows must contain the values that a fit would impute.
        formulas.imputed.clear();
        let mut keep: Vec<usize> = (0..frame.rows()).collect();
        let mut missing = Vec::new();
        for formula in formulas.all() {
            let mut named = Vec::new();
            columns(&formula.terms(&others(formula, frame))?, false, &mut named);
            let (rows, gaps) = complete(frame, &named, &formula.text)?;
            keep.retain(|row| rows.binary_search(row).is_ok());
            missing.extend(gaps);
        }
        let used = frame.at(&keep);
        let mut made = Self {
            request: request.clone(),
            family,
            link,
            learnt: learnt.clone(),
            predictors: Vec::new(),
            imputed: Vec::new(),
            unknowns: Vec::new(),
            plain: Vec::new(),
            fixed: formulas.fixed.clone(),
            observed: Observed::default(),
            of_rows: frame.rows(),
            rows: keep,
            missing,
            source: frame.source.clone(),
        };
        if made.rows.is_empty() {
            return Err(Error::new(
                "no row has a value in every column that the formulas use",
            ));
        }
        // A prediction needs the number of trials and the exposure of its row.
        let mut evaluator = made.evaluator(&used, &formulas.mean.text, false);
        made.observed = exposed(&formulas.mean.response, family, &mut evaluator)?;
        made.observed.categories = match learnt.states.get(CATEGORIES) {
            Some(crate::evaluate::State::Levels { levels, .. }) => levels.clone(),
            _ => Vec::new(),
        };
        made.predict(&formulas, &used, false)?;
        made.plain = made.without_formula();
        Ok(made)
    }

    /// Removes the effects of groups and regions, and sets the number of trials in every row to one. The expected
    /// values then show the population-level effects of columns.
    #[must_use]
    pub fn of_population(mut self) -> Self {
        for predictor in &mut self.predictors {
            predictor.groups.clear();
            predictor.field = None;
        }
        self.of_one_trial()
    }

    /// Sets the number of trials in every row to one, so that expected values are probabilities.
    #[must_use]
    pub fn of_one_trial(mut self) -> Self {
        if let Some(trials) = &mut self.observed.trials {
            trials.fill(1.0);
        }
        self
    }

    /// Returns the names of the map files to which the formulas refer.
    ///
    /// # Errors
    /// Fails if a formula is invalid.
    pub fn maps(request: &Request) -> Result<Vec<String>> {
        let (family, _) = family(request)?;
        let mut files = Vec::new();
        for formula in Formulas::parse(request, family)?.all() {
            let terms = formula.terms(&[])?;
            files.extend(terms.special.iter().filter_map(|call| match &call.kind {
                Kind::Call(name, arguments) if name == "car" => {
                    match &arguments.first()?.value.kind {
                        Kind::Text(file) => Some(file.clone()),
                        _ => None,
                    }
                }
                _ => None,
            }));
        }
        Ok(files)
    }

    fn without_formula(&self) -> Vec<Parameter> {
        let has_formula = |name: &str| self.predictors.iter().any(|p| p.parameter == name);
        let known = self.observed.errors.is_some() && !self.observed.with_sigma;
        (self.family.parameters.iter().copied())
            .filter(|p| !has_formula(p.name) && !self.fixed.contains_key(p.name))
            .filter(|p| !known || p.name != "sigma")
            .collect()
    }

    fn evaluator<'a>(
        &'a mut self,
        frame: &'a Frame,
        text: &'a str,
        learning: bool,
    ) -> Evaluator<'a> {
        Evaluator {
            frame,
            states: &mut self.learnt.states,
            learning,
            text,
        }
    }

    fn observe(&mut self, formulas: &Formulas, used: &Frame) -> Result<()> {
        let family = self.family;
        let mut evaluator = self.evaluator(used, &formulas.mean.text, true);
        self.observed = observed(&formulas.mean.response, family, &mut evaluator)?;
        Ok(())
    }

    fn predict(&mut self, formulas: &Formulas, used: &Frame, learning: bool) -> Result<()> {
        let contrasts = self.contrasts()?;
        let means = self.family.means(&self.observed.categories);
        let parameters = means.into_iter().map(|name| (name, &formulas.mean));
        let others_of = formulas
            .others
            .iter()
            .map(|(name, formula)| (name.clone(), formula));
        let imputed = formulas.imputed.iter();
        let imputed = imputed.map(|(name, formula)| (format!("{IMPUTED}{name}"), formula));
        let all = parameters.chain(others_of).chain(imputed);
        for (parameter, formula) in all {
            let mut terms = formula.terms(&others(formula, used))?;
            if self.family.response == Kinds::Ordinal && parameter == "mu" {
                // The thresholds of an ordinal family are its intercepts.
                terms.intercept = true;
            }
            let mut maker = Maker {
                evaluator: Evaluator {
                    frame: used,
                    states: &mut self.learnt.states,
                    learning,
                    text: &formula.text,
                },
                groups: &mut self.learnt.groups,
                smooths: &mut self.learnt.smooths,
                fields: &mut self.learnt.fields,
                unknowns: &mut self.unknowns,
                contrasts,
            };
            let mut predictor = maker.predictor(&parameter, &terms)?;
            if let (Some(rate), true) = (&self.observed.rate, self.family.is_mean(&parameter)) {
                if self.link != Link::Log {
                    return Err(Error::new("rate() needs the link log").help("remove the link"));
                }
                let logs = rate.iter().map(|x| x.ln());
                match &mut predictor.offset {
                    Some(sum) => sum.iter_mut().zip(logs).for_each(|(sum, x)| *sum += x),
                    none => *none = Some(logs.collect()),
                }
            }
            match parameter.starts_with(IMPUTED) {
                true => self.imputed.push(predictor),
                false => self.predictors.push(predictor),
            }
        }
        Ok(())
    }

    /// Checks that autoregressions occur only in families with residuals, and that every imputed column has a formula
    /// and is used.
    fn check_terms(&self, formulas: &Formulas) -> Result<()> {
        let text = &formulas.mean.text;
        let whole = Span {
            start: 0,
            end: text.len(),
        };
        let has_residuals = self.family.response == Kinds::Real
            && self.link == Link::Identity
            && self.family.has_one_mean()
            && self.observed.censored.is_none();
        if self.predictors.iter().any(|p| p.series.is_some()) && !has_residuals {
            return Err(Error::at(text, whole, format!("the family {} has no residuals for ar()", self.family.name))
                .help("ar() needs gaussian or student without censoring; any family can use lagged columns of \
                       the table"));
        }
        for unknown in self.unknowns.iter().filter(|u| u.errors.is_none()) {
            let name = &unknown.name;
            if !formulas.imputed.iter().any(|(other, _)| other == name) {
                return Err(Error::at(
                    text,
                    whole,
                    format!("`{name}` has no formula for its imputation"),
                )
                .help(format!("add a formula, such as '{name} | mi() ~ 1'")));
            }
        }
        for (name, formula) in &formulas.imputed {
            let used = |u: &Unknown| u.name == *name && u.errors.is_none();
            if !self.unknowns.iter().any(used) {
                return Err(Error::at(
                    &formula.text,
                    formula.response.value.span,
                    format!("a formula imputes `{name}`, but no term uses it"),
                )
                .help(format!("write mi({name}) among the terms of the response")));
            }
        }
        Ok(())
    }

    fn contrasts(&self) -> Result<Contrasts> {
        let Some(name) = &self.request.contrasts else {
            return Ok(Contrasts::default());
        };
        match CONTRASTS.iter().find(|(known, _)| known == name) {
            Some((_, contrasts)) => Ok(*contrasts),
            None => {
                let names: Vec<&str> = CONTRASTS.iter().map(|(name, _)| *name).collect();
                Err(Error::new(format!("there are no contrasts `{name}`"))
                    .help(format!("there are {}", names.join(", "))))
            }
        }
    }

    fn check_columns(&self, formulas: &Formulas) -> Result<()> {
        for predictor in self.predictors.iter().chain(&self.imputed) {
            let named = |name: &String| {
                *name == predictor.parameter
                    || predictor.parameter.strip_prefix(IMPUTED) == Some(name)
            };
            let other = formulas.others.iter().chain(&formulas.imputed);
            let other = other.clone().find(|(name, _)| named(name));
            let formula = other.map_or(&formulas.mean, |(_, formula)| formula);
            let names = &predictor.design.names;
            let Some((bad, of)) = dependent(&predictor.design.columns, predictor.intercept) else {
                continue;
            };
            let span = place(&formula.right, &names[bad]);
            let parts: Vec<&str> = of.iter().map(|at| names[*at].as_str()).collect();
            let (message, help) = match (&parts[..], predictor.intercept) {
                ([], true) => (
                    format!("the column `{}` is constant", names[bad]),
                    "the data cannot distinguish its effect from the intercept: remove this term",
                ),
                ([], false) => (
                    format!("the column `{}` is 0 in every row", names[bad]),
                    "the data do not determine its effect: remove this term",
                ),
                _ => (
                    format!(
                        "the column `{}` is a linear combination of others: {}",
                        names[bad],
                        parts.join(", ")
                    ),
                    "the data cannot distinguish their effects: remove one of these terms",
                ),
            };
            return Err(Error::at(&formula.text, span, message).help(help));
        }
        Ok(())
    }

    /// Returns whether a parameter belongs only to a nonlinear formula. Such a parameter is neither the mean nor a
    /// parameter of the family.
    pub fn is_of_formula(&self, parameter: &str) -> bool {
        let of_mean = parameter == "mu" || parameter.starts_with("mu_");
        !of_mean && !self.family.parameters.iter().any(|p| p.name == parameter)
    }

    /// If these group effects are correlated with effects of other predictors, returns the name that they share.
    pub fn joint<'a>(&self, groups: &'a Groups) -> Option<&'a str> {
        let shared = groups.shared.as_deref()?;
        let all = self.predictors.iter().chain(&self.imputed);
        let same = all
            .flat_map(|p| &p.groups)
            .filter(|other| other.shared.as_deref() == Some(shared));
        (same.count() > 1).then_some(shared)
    }

    fn check_joint(&self, formulas: &Formulas) -> Result<()> {
        let all = self.predictors.iter().chain(&self.imputed);
        let all: Vec<&Groups> = all.flat_map(|p| &p.groups).collect();
        for groups in &all {
            let Some(shared) = &groups.shared else {
                continue;
            };
            let other = all
                .iter()
                .find(|other| other.shared == groups.shared && other.name != groups.name);
            if let Some(other) = other {
                let text = &formulas.mean.text;
                let whole = Span {
                    start: 0,
                    end: text.len(),
                };
                return Err(Error::at(
                    text,
                    whole,
                    format!(
                        "terms by `{}` and by `{}` share the name `{shared}` between bars",
                        groups.name, other.name
                    ),
                )
                .help(
                    "only effects of the same grouping factor can be correlated: use a different name between \
                     the bars for the other terms",
                ));
            }
        }
        Ok(())
    }

    /// Returns whether to report the log likelihood and a replicate of each row.
    pub fn pointwise(&self) -> bool {
        self.request
            .pointwise
            .unwrap_or(self.rows.len() <= POINTWISE)
    }

    /// Returns notes for the user about the rows that the regression uses.
    pub fn notes(&self) -> Vec<String> {
        let dropped = self.of_rows - self.rows.len();
        let mut notes = Vec::new();
        if dropped > 0 {
            let gaps: Vec<String> = self
                .missing
                .iter()
                .map(|(name, count)| format!("`{name}` in {count}"))
                .collect();
            notes.push(format!(
                "Jensen omits {dropped} of {} rows because of missing values: {}",
                self.of_rows,
                gaps.join(", ")
            ));
        }
        notes.extend(self.separated());
        notes
    }

    /// Returns a note if a column separates the two outcomes perfectly. The coefficient of such a column is determined
    /// by its prior.
    fn separated(&self) -> Option<String> {
        if self.family.response != Kinds::Binary || self.request.prior_only {
            return None;
        }
        let design = &self.predictors.first()?.design;
        for (name, column) in design.names.iter().zip(&design.columns) {
            let mut ends = [[f64::INFINITY, f64::NEG_INFINITY]; 2];
            for (x, y) in column.iter().zip(&self.observed.values) {
                let end = &mut ends[*y as usize];
                *end = [end[0].min(*x), end[1].max(*x)];
            }
            let [no, yes] = ends;
            if no[1] < yes[0] || yes[1] < no[0] {
                return Some(format!(
                    "`{name}` separates the two values of `{}` perfectly, so its prior determines the size of \
                     its effect",
                    self.observed.name
                ));
            }
        }
        None
    }

    /// Returns the initial value of the predictor and the standard deviation of the response. The initial value is the
    /// link function at the mean of the response.
    pub fn location_and_scale(&self) -> (f64, f64) {
        let values = &self.observed.values;
        let location = match self.family.response {
            Kinds::Ordinal | Kinds::Nominal | Kinds::Counts | Kinds::Shares | Kinds::Angle => 0.0,
            // A hazard relative to a baseline, and a drift, have no preferred direction.
            _ if ["cox", "wiener"].contains(&self.family.name) => 0.0,
            Kinds::Trials => {
                let trials = self.observed.trials.iter().flatten().sum::<f64>();
                self.link
                    .of(((values.iter().sum::<f64>() + 0.5) / (trials + 1.0)).clamp(0.01, 0.99))
            }
            Kinds::Binary | Kinds::Share | Kinds::ShareWithEnds { .. } => {
                self.link.of(mean(values).clamp(0.01, 0.99))
            }
            _ if self.family.is_of_logs() => {
                let logs = values.iter().filter(|y| **y > 0.0).map(|y| y.ln());
                mean(&logs.collect::<Vec<_>>())
            }
            _ if self.link == Link::Identity => mean(values),
            _ => {
                let offset = self.predictors.first().and_then(|p| p.offset.as_ref());
                let about = offset.map_or(0.0, |offset| mean(offset));
                let level = mean(values);
                // If all counts are zero, the mean has no finite logarithm.
                self.link.of(if level > 0.0 { level } else { 1e-3 }) - about
            }
        };
        (location, sd(values))
    }
}

fn check_parameters(formulas: &Formulas, frame: &Frame) -> Result<()> {
    for (name, formula) in &formulas.others {
        if formulas.mean.parameters.contains(name) && frame.column(name).is_some() {
            return Err(Error::at(
                &formula.text,
                formula.response.value.span,
                format!("`{name}` is both a column of the table and a parameter with a formula"),
            )
            .help(format!(
                "give the parameter another name; to impute a column with missing values, write \
                           '{name} | mi() ~ …'"
            )));
        }
    }
    Ok(())
}
