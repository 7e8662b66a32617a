//! The names of decoders and of the kinds of columns.

use jensen_neural::Likelihood;

/// The name of the decoder for tables whose columns have different distributions.
pub(super) const MIXED: &str = "mixed";

pub(super) fn categories(text: &str) -> Option<usize> {
    let count = text.strip_prefix("categorical=")?.parse().ok()?;
    (2..=1_000_000).contains(&count).then_some(count)
}

pub(super) fn counts(text: &str) -> Option<Likelihood> {
    let mut all = Likelihood::COUNTS.into_iter();
    all.find(|likelihood| likelihood.name() == text)
}

/// Parses `student-t`, or `student-t=DEGREES` with a whole number of degrees of freedom.
pub(super) fn student_t(text: &str) -> Option<Likelihood> {
    if text == "student-t" {
        return Some(Likelihood::StudentT { degrees: None });
    }
    let degrees = text.strip_prefix("student-t=")?.parse().ok()?;
    (1..=1000)
        .contains(&degrees)
        .then_some(Likelihood::StudentT {
            degrees: Some(degrees),
        })
}

pub(super) fn parse_decoder(text: &str) -> Result<String, String> {
    let named = [
        "bernoulli",
        "gaussian",
        "gaussian=free",
        "gaussian=bounded",
        MIXED,
    ];
    let known = counts(text).or_else(|| student_t(text));
    if named.contains(&text) || categories(text).is_some() || known.is_some() {
        Ok(text.to_owned())
    } else {
        let counts = Likelihood::COUNTS.map(Likelihood::name).join(", ");
        Err(format!(
            "expected bernoulli, gaussian, gaussian=free, gaussian=bounded, student-t, student-t=DEGREES with a whole \
             number from 1 to 1000, {counts}, mixed or categorical=K with K of at least 2"
        ))
    }
}

/// The kind of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnKind {
    /// Numbers with this distribution.
    Numbers(Likelihood),
    /// Zeros and ones.
    Binary,
    /// Words, or numbers that stand for categories.
    Words,
}

/// Parses a column and its kind, such as `visits=poisson`. The name may contain `=`.
pub(super) fn column_kind(text: &str) -> Result<(String, ColumnKind), String> {
    let kind = |kind: &str| match kind {
        "gaussian" => Some(ColumnKind::Numbers(Likelihood::Gaussian { bounded: false })),
        "bernoulli" => Some(ColumnKind::Binary),
        "categorical" => Some(ColumnKind::Words),
        other => counts(other)
            .or_else(|| student_t(other))
            .map(ColumnKind::Numbers),
    };
    let mut splits = text.match_indices('=').map(|(at, _)| at);
    let found = splits.find_map(|at| Some((text[..at].to_owned(), kind(&text[at + 1..])?)));
    found.ok_or_else(|| {
        let counts = Likelihood::COUNTS.map(Likelihood::name).join(", ");
        format!(
            "`{text}`: expected a column and its kind, such as visits=poisson; the kinds are gaussian, student-t, \
             student-t=DEGREES, bernoulli, categorical, {counts}"
        )
    })
}

#[cfg(feature = "clap")]
pub(super) fn parse_column(text: &str) -> Result<String, String> {
    column_kind(text).map(|_| text.to_owned())
}
