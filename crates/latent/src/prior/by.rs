//! Terms that are multiplied by columns. With `by=x`, the effect of a row is x times a variable of the term. With
//! `by=(1, x)`, every node has one variable for each element of the list.

use super::inputs::{Covariate, Source, fill};
use super::spec::SpecError;
use super::term::Builder;

/// The factors that multiply a term's variables in a row, with one variable per node and factor. `None` stands for the
/// factor 1.
pub type Factors = Vec<Option<Covariate>>;

pub(super) fn plain() -> Factors {
    vec![None]
}

pub(super) fn name(factor: &Option<Covariate>) -> String {
    factor.as_ref().map_or("1".to_owned(), Covariate::name)
}

/// Returns the values of the factors in the given rows, with `None` for a factor of 1.
pub(super) fn values(
    factors: &[Option<Covariate>],
    source: &dyn Source,
    rows: &[usize],
) -> Result<Vec<Option<Vec<f64>>>, String> {
    let one = |factor: &Option<Covariate>| {
        let Some(covariate) = factor else {
            return Ok(None);
        };
        let mut out = vec![0.0; rows.len()];
        fill(std::slice::from_ref(covariate), source, rows, &mut out)?;
        Ok(Some(out))
    };
    factors.iter().map(one).collect()
}

impl Builder<'_, '_> {
    pub(super) fn is_plain(&self) -> bool {
        self.known.list("by").is_none()
    }

    /// Returns the factors of the term in the model's units, which are root mean squares of the columns. If the factors
    /// include a level, columns are centred, because this changes only the meaning of the level. Without a level,
    /// centring would change the model.
    pub(super) fn factors(&self) -> Result<Factors, SpecError> {
        let known = self.known;
        let Some(words) = known.list("by") else {
            return Ok(plain());
        };
        let several = words.len() > 1;
        if several && known.term.name != "iid" {
            return Err(known.error(
                &words[1].span,
                "only `iid` has effects of several columns; write one term for each column",
            ));
        }
        let is_level = |text: &str| several && text == "1";
        let level = words.iter().any(|word| is_level(&word.text));
        let mut factors: Factors = Vec::with_capacity(words.len());
        for (i, word) in words.iter().enumerate() {
            let fail = |message: String| known.error(&word.span, message);
            if words[..i].iter().any(|other| other.text == word.text) {
                return Err(fail(format!("`{}` is given twice", word.text)));
            }
            if is_level(&word.text) {
                factors.push(None);
                continue;
            }
            if self.source.holds_words(&word.text).map_err(fail)? {
                return Err(fail(format!(
                    "`by=` needs a column of numbers, but `{}` has words; add a column of 0 and 1 for a level",
                    word.text
                )));
            }
            let covariate = Covariate::plain(&word.text);
            let centred = level && self.units.centred;
            let measured = covariate
                .measured(self.source, self.rows, centred || level)
                .map_err(fail)?;
            let Some((centre, scale)) = measured else {
                return Err(fail(format!(
                    "the column `{}` {} in the fitted rows, so it cannot scale the term; remove it from `by=`",
                    word.text,
                    if level { "is constant" } else { "is 0" }
                )));
            };
            factors.push(Some(Covariate {
                centre: if centred { centre } else { 0.0 },
                scale: if self.units.scaled { scale } else { 1.0 },
                ..covariate
            }));
        }
        Ok(factors)
    }
}
