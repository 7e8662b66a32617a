//! Copies of a field for the values of a column, which share its hyperparameters. With `replicate=`, copies are independent.
//! With `group=`, they are a stationary autoregression along the column, so `mesh(spde, on=(x, y), group=year)` is a
//! space–time model: the fields of neighbouring values have the correlation `group_rho`, and each of them has the prior of
//! the single field. With `group_model=exchangeable`, any two copies have the correlation `group_rho`.
//!
//! With `group_model=iid`, `rw1` or `rw2`, the copies are an interaction beside the main effects of the field and of the column
//! (types II to IV of Knorr-Held 2000). Their covariance is G⁻ ⊗ Q⁻: the field is constrained to be orthogonal to the flat
//! directions of both factors, so each copy of an intrinsic field sums to zero, and with `rw1` or `rw2` each node sums to zero
//! over the copies. Latent variables are the coefficients of a basis (`contrast`), in which the precision is proper.
//!
//! The precision is the Kronecker product G ⊗ Q of the precision G between copies with variance 1 (or the identity) and the
//! precision Q of a single field. Node i of copy c is number `c · nodes + i`. For c copies and a field of rank r,
//! log |G ⊗ Q|₊ = c log |Q|₊ + r log |G|. Every copy of an intrinsic field is flat in its own level.

use std::sync::Arc;

use super::contrast::Contrast;
use super::field::Field;
use super::inputs::{Index, complete_words};
use super::read::Reader;
use super::repeats::Repeats;
use super::setting::{self, Setting};
use super::spec::{Call, SpecError, Word};
use super::term::{Body, Builder};
use crate::{Dense, Error, PriorDensity, Range, Sparse};

/// Most flat directions of all copies. Solvers store them as a dense matrix and orthogonalise it.
const MOST_FLAT: usize = 500;

/// Most exchangeable copies. The precision between them has no zeros, so their joint precision has as many entries as the
/// square of this number times those of a single field.
const MOST_EXCHANGEABLE: usize = 200;

/// How the copies of a field depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupModel {
    /// A stationary autoregression along a column of numbers.
    Autoregression,
    /// Any two copies have the same correlation.
    Exchangeable,
    /// Independent copies, which are constrained along the flat directions of the field.
    Independent,
    /// A random walk of first or second order over the copies of a node, constrained along all flat directions.
    Walk(u8),
}

impl GroupModel {
    const TABLE: [(&'static str, Self); 5] = [
        ("ar1", Self::Autoregression),
        ("exchangeable", Self::Exchangeable),
        ("iid", Self::Independent),
        ("rw1", Self::Walk(1)),
        ("rw2", Self::Walk(2)),
    ];

    /// Whether a term asks for copies that are constrained along the flat directions of the field.
    pub(super) fn constrains(call: &Call) -> bool {
        let named = call
            .named
            .iter()
            .find(|named| named.key.text == "group_model");
        let mut rows = Self::TABLE
            .into_iter()
            .filter(|(_, model)| !model.has_rho());
        named.is_some_and(|named| {
            rows.any(|(name, _)| named.values.iter().any(|word| word.text == name))
        })
    }

    /// Whether copies have a correlation as hyperparameter. Otherwise they are constrained.
    fn has_rho(self) -> bool {
        matches!(self, Self::Autoregression | Self::Exchangeable)
    }

    /// Whether the copies are evenly spaced along a column of numbers.
    fn is_ordered(self) -> bool {
        matches!(self, Self::Autoregression | Self::Walk(_))
    }

    /// Returns a field with one variable for each copy, or `None` if copies are independent.
    fn between(self, count: usize) -> Result<Option<Field>, Error> {
        let field = match self {
            Self::Independent => return Ok(None),
            Self::Walk(1) => Field::rw1(count, false, Some(1.0)),
            Self::Walk(_) => Field::rw2(count, false, Some(1.0)),
            Self::Autoregression => Field::ar1(count, Some(0.0), Some(1.0)),
            Self::Exchangeable if count > MOST_EXCHANGEABLE => Err(Error::Unsupported(format!(
                "{count} exchangeable copies are more than {MOST_EXCHANGEABLE}; write the common field and the independent \
                 deviations as two terms, the second with `replicate`"
            ))),
            Self::Exchangeable => Field::exchangeable(count, Some(0.5)),
        };
        field.map(Some)
    }
}

/// Copies of a field.
#[derive(Clone, Debug)]
pub(super) struct Copied {
    /// A single field.
    pub(super) one: Field,
    /// The field between the copies, whose variance is fixed at 1. `None` if copies are independent.
    along: Option<Field>,
    count: usize,
    /// The entries of the precision to which a constraint of a flat direction adds.
    held: Vec<usize>,
}

impl Copied {
    /// Returns the values of the single field's hyperparameters, and the correlation and the variance between copies.
    fn split<'a>(&self, values: &'a [f64]) -> (&'a [f64], Vec<f64>) {
        let (own, rest) = values.split_at(self.one.settings().len());
        (own, rest.iter().copied().chain([1.0]).collect())
    }

    /// Returns the precision between copies and its log determinant.
    fn between(&self, rho: &[f64]) -> (Sparse, f64) {
        match &self.along {
            Some(field) => {
                let (value, log_determinant) = field.entries(rho);
                let matrix = Sparse {
                    value,
                    ..field.pattern.clone()
                };
                (matrix, log_determinant.unwrap_or(0.0))
            }
            None => (Sparse::identity(self.count), 0.0),
        }
    }

    /// Calls a function for each entry of the product, with the index of the entry and of both factors' entries.
    fn each(&self, between: &Sparse, mut call: impl FnMut(usize, usize, usize)) {
        let one = &self.one.pattern;
        let mut at = 0;
        for c in 0..self.count {
            for j in 0..one.cols {
                for g in between.col_start[c]..between.col_start[c + 1] {
                    for q in one.col_start[j]..one.col_start[j + 1] {
                        call(at, g, q);
                        at += 1;
                    }
                }
            }
        }
    }

    fn rank(&self) -> f64 {
        (self.one.len() - self.one.flat().map_or(0, |flat| flat.cols)) as f64
    }

    /// Returns the entries of the precision, and the parts of log |Q|₊ that depend on hyperparameters.
    pub(super) fn entries(&self, values: &[f64], constant: f64) -> (Vec<f64>, Option<f64>) {
        let (own, rho) = self.split(values);
        let (single, log_determinant) = self.one.entries(own);
        let (between, of_between) = self.between(&rho);
        let mut out = vec![0.0; between.len() * single.len()];
        self.each(&between, |at, g, q| out[at] = between.value[g] * single[q]);
        let weight = self.held_weight(own);
        for at in &self.held {
            out[*at] += weight.0;
        }
        let held = self.held.len() as f64 * weight.0.ln();
        let all = log_determinant
            .map(|one| constant + self.count as f64 * one + self.rank() * of_between + held);
        (out, all)
    }

    /// Returns the precision of a constrained direction, which is that of a difference between neighbours, and its
    /// derivatives. It is 1 without constraints.
    fn held_weight(&self, own: &[f64]) -> (f64, Vec<f64>) {
        if self.held.is_empty() {
            return (1.0, vec![0.0; own.len()]);
        }
        let coefficients = self.one.coefficients(own);
        let last = |list: &Vec<f64>| list.last().copied().unwrap_or(1.0);
        let slopes = coefficients.slope.iter().map(last);
        (last(&coefficients.value), slopes.collect())
    }

    /// Returns the derivatives with respect to all hyperparameters, from those with respect to the entries and the log
    /// determinant.
    pub(super) fn slopes(&self, values: &[f64], by_entry: &[f64], by_log: f64) -> Vec<f64> {
        let (own, rho) = self.split(values);
        let (single, stated) = self.one.entries(own);
        // Without a formula for the determinant, the entries alone determine the derivatives.
        let by_log = stated.map_or(0.0, |_| by_log);
        let (between, _) = self.between(&rho);
        let mut by_single = vec![0.0; single.len()];
        let mut by_between = vec![0.0; between.len()];
        self.each(&between, |at, g, q| {
            by_single[q] += between.value[g] * by_entry[at];
            by_between[g] += single[q] * by_entry[at];
        });
        let mut out = self.one.slopes(own, &by_single, by_log * self.count as f64);
        let (weight, of_weight) = self.held_weight(own);
        let through: f64 = self.held.iter().map(|at| by_entry[*at]).sum();
        for (slope, own) in out.iter_mut().zip(of_weight) {
            *slope += own * (through + by_log * self.held.len() as f64 / weight);
        }
        // Without a correlation, the only value is the precision or the variance between copies, which is 1.
        if let (Some(field), [_, _]) = (&self.along, rho.as_slice()) {
            out.push(field.slopes(&rho, &by_between, by_log * self.rank())[0]);
        }
        out
    }

    pub(super) fn hold(&mut self, entries: impl Iterator<Item = usize>) {
        self.held.extend(entries);
    }
}

impl Field {
    /// Returns copies of a field. They are independent without a field `along` the copies, whose correlation is `rho`.
    ///
    /// # Errors
    /// Fails if the copies have too many flat directions, or if flat directions depend on hyperparameters.
    pub(super) fn copied(
        one: Self,
        count: usize,
        along: Option<Self>,
        rho: Option<Setting>,
    ) -> Result<Self, Error> {
        if one.is_oblique() {
            return Err(Error::Unsupported(
                "`bym2` cannot have copies; use `icar(…) + iid(…)` with the same key".to_owned(),
            ));
        }
        let flat = one.flat().map_or(0, |flat| flat.cols);
        if flat * count > MOST_FLAT {
            return Err(Error::Unsupported(format!(
                "{count} copies with {flat} flat directions each are more than {MOST_FLAT} flat directions; use a term \
                 without flat directions, such as `ar1`, `hsgp` or `grid(spde, …)`"
            )));
        }
        let between =
            (along.as_ref()).map_or_else(|| Sparse::identity(count), |field| field.pattern.clone());
        let nodes = one.len();
        let mut pattern = Sparse {
            rows: count * nodes,
            cols: count * nodes,
            col_start: vec![0],
            row: Vec::with_capacity(between.len() * one.pattern.len()),
            value: vec![0.0; between.len() * one.pattern.len()],
        };
        for c in 0..count {
            for j in 0..nodes {
                for copy in between.col(c).0 {
                    let rows = one.pattern.col(j).0.iter();
                    pattern.row.extend(rows.map(|i| copy * nodes + i));
                }
                pattern.col_start.push(pattern.row.len());
            }
        }
        let null = one.flat().map(|own| {
            Dense::from_fn(count * nodes, count * own.cols, |i, k| {
                match i / nodes == k / own.cols {
                    true => own.get(i % nodes, k % own.cols),
                    false => 0.0,
                }
            })
        });
        let settings = one.settings().iter().cloned().chain(rho).collect();
        let copied = Copied {
            one,
            along,
            count,
            held: Vec::new(),
        };
        Ok(Self::of_copies(copied, pattern, settings, null))
    }
}

impl Builder<'_, '_> {
    /// Returns the model of the correlation between copies.
    fn group_model(&self) -> Result<GroupModel, SpecError> {
        let known = self.known;
        let Some(word) = known.one("group_model")? else {
            return Ok(GroupModel::Autoregression);
        };
        let mut rows = GroupModel::TABLE.into_iter();
        let found = rows.find(|(name, _)| *name == word.text);
        found.map(|(_, model)| model).ok_or_else(|| {
            let names = GroupModel::TABLE.map(|(name, _)| format!("`{name}`"));
            let message = format!(
                "there is no model `{}` of copies; choose one of {}",
                word.text,
                names.join(", ")
            );
            known.error(&word.span, message)
        })
    }

    /// Returns the copies that a term asks for.
    pub(super) fn repeats(&self) -> Result<Option<Repeats>, SpecError> {
        let known = self.known;
        let [each, along] = ["replicate", "group"].map(|key| known.one(key));
        let each_level = |word: &Word| {
            let fail = |message| known.error(&word.span, message);
            let mut levels = complete_words(self.source, &word.text, self.rows).map_err(fail)?;
            levels.sort();
            levels.dedup();
            let column = word.text.clone();
            Ok(Some(Repeats::Each { column, levels }))
        };
        let (each, along) = (each?, along?);
        let unused = ["group_rho", "group_model"]
            .iter()
            .find_map(|key| known.named(key));
        if let (None, Some(named)) = (along, unused) {
            let message = format!("`{}` needs `group=COLUMN`", named.key.text);
            return Err(known.error(&named.key.span, message));
        }
        match (each, along) {
            (None, None) => Ok(None),
            (Some(_), Some(word)) => Err(known.error(
                &word.span,
                "a term has either `replicate` or `group`; write one term for each",
            )),
            (Some(word), None) => each_level(word),
            (None, Some(word)) => match self.group_model()?.is_ordered() {
                false => each_level(word),
                true => {
                    let fail = |message| known.error(&word.span, message);
                    Repeats::along(self.source, &word.text, self.rows)
                        .map(Some)
                        .map_err(fail)
                }
            },
        }
    }

    /// Returns constrained copies of a field.
    fn interaction(
        &self,
        model: GroupModel,
        repeats: Repeats,
        mut field: Field,
    ) -> Result<(Repeats, Field), Error> {
        let between = model.between(repeats.count())?;
        // The geometric mean of the variances of the interaction is the product of those of both factors.
        if let Some(walk) = &between {
            let spread = walk.spread()?.sqrt();
            for setting in field.settings_mut() {
                if setting.name.ends_with("precision") || setting.name.ends_with("variance") {
                    setting.density = setting.density.clone().of_multiple(spread);
                }
            }
        }
        let (field, within) = field.constrained()?;
        let (along, between) = match between.map(Field::constrained).transpose()? {
            Some((along, contrast)) => (Some(along), contrast),
            None => (None, Contrast::identity(repeats.count())),
        };
        let field = Field::copied(field, between.columns, along, None)?;
        let repeats = Repeats::Constrained {
            copies: Box::new(repeats),
            between: Arc::new(between),
            within: Arc::new(within),
        };
        Ok((repeats, field))
    }

    /// Returns the correlation of copies. Exchangeable copies have a positive correlation, whose prior is the positive half
    /// of the same density.
    fn group_rho(&self) -> Result<Setting, SpecError> {
        let known = self.known;
        let stated = known.setting("group_rho", &self.label, None, 1.0)?;
        if self.group_model()? == GroupModel::Autoregression {
            return Ok(stated);
        }
        match known.named("group_rho") {
            Some(named) if !(0.0 < stated.value && stated.value < 1.0) => Err(known.error(
                &named.key.span,
                "`group_rho` of exchangeable copies must be between 0 and 1",
            )),
            _ => Ok(Setting {
                range: Range::Between(0.0, 1.0),
                density: PriorDensity::Positive(Box::new(stated.density)),
                ..stated
            }),
        }
    }

    /// Returns the copies of a field.
    pub(super) fn copies(
        &self,
        repeats: Repeats,
        reader: &Reader,
        body: Body,
    ) -> Result<(Repeats, Body), SpecError> {
        let known = self.known;
        let at = |message: String| known.error(&known.call.name.span, message);
        if known.term.name == "iid" {
            return Err(at(
                "`iid` cannot have copies; use a column that combines both groups".to_owned(),
            ));
        }
        let Body::Field(field) = body else {
            return Err(at(format!(
                "`{}` cannot have copies; `replicate` and `group` are for `rw1`, `rw2`, `ar1`, `te`, `icar`, `precision`, \
                 `grid` and `mesh`",
                known.term.name
            )));
        };
        let fail = |error: Error| at(error.to_string());
        let Some(word) = known.one("group")? else {
            let field = Field::copied(field, repeats.count(), None, None).map_err(fail)?;
            return Ok((repeats, Body::Field(field)));
        };
        let model = self.group_model()?;
        if model.has_rho() {
            let along = model.between(repeats.count()).map_err(fail)?;
            let rho = self.group_rho()?;
            let field = Field::copied(field, repeats.count(), along, Some(rho)).map_err(fail)?;
            return Ok((repeats, Body::Field(field)));
        }
        if let Some(named) = known.named("group_rho") {
            let message = "only `ar1` and `exchangeable` copies have a `group_rho`";
            return Err(known.error(&named.key.span, message));
        }
        if matches!(reader, Reader::At(Index::Times(times)) if !times.interpolated) {
            return Err(at(format!(
                "the values of `{}` are uneven, and constrained copies have no nodes at new times; set `step`",
                known.one("on")?.map_or("on", |word| word.text.as_str())
            )));
        }
        let (repeats, field) = self
            .interaction(model, repeats, field)
            .map_err(|error| known.error(&word.span, format!("`{}`: {error}", known.term.name)))?;
        Ok((repeats, Body::Field(field)))
    }
}

/// Returns a single field of copies with its free hyperparameters, or the field itself if it has no copies.
pub(super) fn single<'a>(field: &'a Field, theta: &'a [f64]) -> (&'a Field, &'a [f64]) {
    match field.copies() {
        Some(copied) => {
            let free = setting::parameters(copied.one.settings()).len();
            (&copied.one, &theta[..free.min(theta.len())])
        }
        None => (field, theta),
    }
}
