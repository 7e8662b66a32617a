//! Tables whose columns contain different kinds of values.

use std::fmt;
use std::str::FromStr;

use jensen_conjugate::models::{
    Bernoullis, Categoricals, Covariance, GaussianPrior, Gaussians, Poissons, Scaled, SeveralKinds,
};
use jensen_math::sum::ColumnMoments;
use serde::{Deserialize, Serialize};

use super::{Kind, Points};
use crate::Error;
use crate::units::{Standardise, Units};

/// A column and the kind of its values, written as `NAME=KIND`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ColumnKind {
    /// The name of the column.
    pub column: String,
    /// The kind of the values in the column.
    pub kind: Kind,
}

impl FromStr for ColumnKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        // The name of a column may contain `=`, but the name of a kind does not.
        let Some((column, kind)) = text.rsplit_once('=') else {
            return Err(Error::setting(
                "expected a column and its kind, such as visits=poisson",
            ));
        };
        let known = COLUMN_KINDS.iter().find(|(name, _)| *name == kind);
        let Some((_, kind)) = known else {
            let names: Vec<&str> = COLUMN_KINDS.iter().map(|(name, _)| *name).collect();
            return Err(Error::Setting(format!(
                "`{kind}` is not a kind of column: choose one of {}",
                names.join(", ")
            )));
        };
        Ok(Self {
            column: column.to_owned(),
            kind: *kind,
        })
    }
}

/// The kinds that the values of a single column can have, in the order in which models list them.
const COLUMN_KINDS: [(&str, Kind); 6] = [
    ("gaussian", Kind::Gaussian),
    ("student-t", Kind::StudentT),
    ("negative-binomial", Kind::NegativeBinomial),
    ("poisson", Kind::Poisson),
    ("bernoulli", Kind::Bernoulli),
    ("categorical", Kind::Categorical),
];

impl fmt::Display for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = COLUMN_KINDS.iter().find(|(_, kind)| *kind == self.kind);
        write!(
            f,
            "{}={}",
            self.column,
            named.map_or("multinomial", |(name, _)| name)
        )
    }
}

impl From<ColumnKind> for String {
    fn from(column: ColumnKind) -> Self {
        column.to_string()
    }
}

impl TryFrom<String> for ColumnKind {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

/// The name of a column and its distribution in a component or state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnPart {
    /// The name of the column.
    pub column: String,
    /// The distribution of the column.
    #[serde(flatten)]
    pub distribution: ColumnDistribution,
}

/// The distribution of a column in a mixture component or in a state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ColumnDistribution {
    /// A normal distribution, for a column that contains real numbers.
    Gaussian {
        /// The mean.
        mean: f64,
        /// The variance.
        variance: f64,
    },
    /// Student's t distribution, for a column that contains real numbers with heavy tails.
    Student {
        /// The location, which is the mean if there are more than one degrees of freedom.
        mean: f64,
        /// The scale.
        scale: f64,
        /// The geometric mean of the degrees of freedom.
        degrees_of_freedom: f64,
    },
    /// A negative binomial distribution, for a column that contains counts. Its variance is rate + rate²/shape.
    NegativeBinomial {
        /// The expected count.
        rate: f64,
        /// The geometric mean of the shape.
        shape: f64,
    },
    /// A Poisson distribution, for a column that contains counts.
    Poisson {
        /// The expected count.
        rate: f64,
    },
    /// A Bernoulli distribution, for a column that contains zeros and ones.
    Bernoulli {
        /// The probability of a one.
        probability: f64,
    },
    /// A categorical distribution, for a column that contains categories.
    Categorical {
        /// The categories. The table represents each category by a number.
        categories: Vec<f64>,
        /// The probability of each category, in the same order.
        probabilities: Vec<f64>,
    },
}

impl ColumnDistribution {
    /// Returns a single number that describes the distribution: the mean, the rate, the probability of a one, or the
    /// most probable category.
    pub fn value(&self) -> f64 {
        match self {
            Self::Gaussian { mean: x, .. }
            | Self::Student { mean: x, .. }
            | Self::NegativeBinomial { rate: x, .. }
            | Self::Poisson { rate: x }
            | Self::Bernoulli { probability: x } => *x,
            Self::Categorical {
                categories,
                probabilities,
            } => {
                let pairs = categories.iter().zip(probabilities);
                let most = pairs.fold((f64::NAN, f64::NEG_INFINITY), |best, (category, p)| {
                    if *p > best.1 { (*category, *p) } else { best }
                });
                most.0
            }
        }
    }
}

pub(super) struct Kinds {
    kinds: Vec<Kind>,
    /// The units of the columns. Only columns of real numbers are standardised.
    pub(super) units: Units,
    /// The categories of each categorical column, in ascending order.
    pub(super) levels: Vec<Vec<f64>>,
}

/// The maximum number of categories. A column with more distinct values probably contains identifiers.
const LEVELS: usize = 1000;

impl Kinds {
    pub(super) fn asked(kind: Kind, columns: &[ColumnKind]) -> bool {
        let single = [
            Kind::Poisson,
            Kind::Categorical,
            Kind::StudentT,
            Kind::NegativeBinomial,
        ];
        !columns.is_empty() || single.contains(&kind)
    }

    /// Determines the kinds of all columns from the training rows. `kind` applies to the columns that are not in
    /// `columns`.
    pub(super) fn of(
        points: &Points,
        kind: Kind,
        columns: &[ColumnKind],
        asked: Standardise,
    ) -> Result<Self, Error> {
        let kinds = kinds(&points.names, kind, columns)?;
        let is_real = |kind: &Kind| matches!(kind, Kind::Gaussian | Kind::StudentT);
        let real: Vec<bool> = kinds.iter().map(is_real).collect();
        let units = Units::of_some(points.dim(), &points.train, &points.weights, asked, &real);
        let units = units.map_err(|error| Error::Input(format!("`{}`: {error}", points.source)))?;
        let categorical = (0..kinds.len()).filter(|column| kinds[*column] == Kind::Categorical);
        let levels = categorical.map(|column| {
            let values = points.train.iter().skip(column).step_by(points.dim());
            let mut values: Vec<f64> = values.copied().filter(|x| !x.is_nan()).collect();
            values.sort_by(f64::total_cmp);
            values.dedup();
            match values.len() {
                0..=LEVELS => Ok(values),
                many => Err(Error::Input(format!(
                    "`{}`: the column `{}` has {many} different values, but at most {LEVELS} categories are \
                     possible: remove the column",
                    points.source, points.names[column]
                ))),
            }
        });
        Ok(Self {
            levels: levels.collect::<Result<_, _>>()?,
            units,
            kinds,
        })
    }

    pub(super) fn stored(
        names: &[String],
        kind: Kind,
        columns: &[ColumnKind],
        units: &Units,
        levels: &[Vec<f64>],
    ) -> Result<Self, Error> {
        Ok(Self {
            kinds: kinds(names, kind, columns)?,
            units: units.clone(),
            levels: levels.to_vec(),
        })
    }

    /// Returns two indices for each column of this kind that the fit uses. The first index counts all columns of the
    /// data, and the second index counts only the columns that the fit uses.
    fn positions(&self, kind: Kind) -> Vec<(usize, usize)> {
        let all: Vec<usize> = (0..self.kinds.len()).collect();
        let kept = self.units.of_kept(&all).into_iter().enumerate();
        kept.filter(|(_, column)| self.kinds[*column] == kind)
            .map(|(position, column)| (column, position))
            .collect()
    }

    fn present(&self) -> impl Iterator<Item = (Kind, Vec<(usize, usize)>)> + '_ {
        let all = COLUMN_KINDS.iter();
        all.map(|(_, kind)| (*kind, self.positions(*kind)))
            .filter(|(_, positions)| !positions.is_empty())
    }

    /// Returns the mixture components for rows of the data and the weights of the rows, or an error if a value is outside
    /// the domain of its column.
    pub(super) fn components(
        &self,
        points: &Points,
        (rows, weights): (&[f64], &[f64]),
        smoothing: f64,
        prior: GaussianPrior,
    ) -> Result<SeveralKinds, Error> {
        let rows = self.units.rows(rows);
        let width = self.units.width().max(1);
        let scales = self.units.log_scales();
        let mut all: Vec<Box<dyn jensen_conjugate::models::Components + Send>> = Vec::new();
        for (kind, positions) in self.present() {
            let gathered = rows
                .chunks_exact(width)
                .flat_map(|row| positions.iter().map(|(_, position)| row[*position]));
            let dim = positions.len();
            let refuse = |at: usize, x: f64, what: &str| {
                let name = &points.names[positions[at % dim].0];
                Error::Input(format!(
                    "`{}`: the column `{name}` has {x}, {what}",
                    points.source
                ))
            };
            all.push(match kind {
                Kind::Poisson | Kind::NegativeBinomial => {
                    let counts: Vec<f64> = gathered.collect();
                    let wrong = |x: &f64| *x < 0.0 || (!x.is_nan() && x.fract() != 0.0);
                    if let Some(at) = counts.iter().position(wrong) {
                        let name = match kind {
                            Kind::Poisson => "but Poisson columns need counts",
                            _ => "but negative binomial columns need counts",
                        };
                        return Err(refuse(at, counts[at], name));
                    }
                    let columns = ColumnMoments::weighted(dim, &counts, weights);
                    match kind {
                        Kind::Poisson => Box::new(Poissons::with_columns(&columns, counts)),
                        _ => Box::new(Scaled::negative_binomial(counts, &columns)),
                    }
                }
                Kind::StudentT => {
                    let own = positions.iter().map(|(_, position)| scales[*position]);
                    let numbers: Vec<f64> = gathered.collect();
                    let columns = ColumnMoments::weighted(dim, &numbers, weights);
                    Box::new(Scaled::student(numbers, &columns, prior, own.collect()))
                }
                Kind::Bernoulli => {
                    let bit = |(at, x): (usize, f64)| match x {
                        0.0 => Ok(Some(false)),
                        1.0 => Ok(Some(true)),
                        x if x.is_nan() => Ok(None),
                        x => Err(refuse(at, x, "but binary columns need 0 and 1")),
                    };
                    let bits: Result<Vec<_>, Error> = gathered.enumerate().map(bit).collect();
                    Box::new(Bernoullis::with_prior(dim, smoothing, bits?))
                }
                Kind::Categorical => {
                    let category = |(at, x): (usize, f64)| {
                        let known =
                            self.levels[at % dim].binary_search_by(|level| level.total_cmp(&x));
                        match known {
                            Ok(category) => Ok(Some(category)),
                            Err(_) if x.is_nan() => Ok(None),
                            Err(_) => Err(refuse(
                                at,
                                x,
                                "a category that none of the training rows has",
                            )),
                        }
                    };
                    let found: Result<Vec<_>, Error> = gathered.enumerate().map(category).collect();
                    let levels: Vec<usize> = self.levels.iter().map(Vec::len).collect();
                    Box::new(Categoricals::new(&levels, smoothing, found?))
                }
                Kind::Gaussian | Kind::Multinomial => {
                    let own = positions.iter().map(|(_, position)| scales[*position]);
                    let numbers: Vec<f64> = gathered.collect();
                    let columns = ColumnMoments::weighted(dim, &numbers, weights);
                    let shape = Covariance::Diagonal;
                    let gaussians = Gaussians::with_columns(shape, numbers, &columns, prior);
                    Box::new(gaussians.with_log_scales(own.collect()))
                }
            });
        }
        Ok(SeveralKinds::new(all))
    }

    pub(super) fn described(
        &self,
        names: &[String],
        components: &SeveralKinds,
        lambda: &[f64],
    ) -> Vec<ColumnPart> {
        let width = self.units.width();
        let (mut means, mut variances) = (vec![0.0; width], vec![0.0; width]);
        let mut distributions: Vec<Option<ColumnDistribution>> = vec![None; names.len()];
        let mut degrees: Vec<Option<f64>> = vec![None; names.len()];
        for (number, (kind, positions)) in self.present().enumerate() {
            let own = components.of_kind(lambda, number);
            let mut start = 0;
            let unknown = vec![ColumnMoments::default(); positions.len()];
            let latent = match kind {
                Kind::StudentT => {
                    let (prior, scales) = (GaussianPrior::default(), vec![0.0; positions.len()]);
                    Scaled::student(Vec::new(), &unknown, prior, scales).described(own)
                }
                Kind::NegativeBinomial => {
                    Scaled::negative_binomial(Vec::new(), &unknown).described(own)
                }
                _ => Vec::new(),
            };
            for (at, &(column, position)) in positions.iter().enumerate() {
                distributions[column] = match kind {
                    Kind::Poisson => Some(ColumnDistribution::Poisson {
                        rate: own[2 * at] / own[2 * at + 1],
                    }),
                    Kind::Bernoulli => Some(ColumnDistribution::Bernoulli {
                        probability: own[2 * at] / (own[2 * at] + own[2 * at + 1]),
                    }),
                    Kind::Categorical => {
                        let levels = &self.levels[at];
                        let counts = &own[start..start + levels.len()];
                        start += levels.len();
                        let total: f64 = counts.iter().sum();
                        Some(ColumnDistribution::Categorical {
                            categories: levels.clone(),
                            probabilities: counts.iter().map(|x| x / total).collect(),
                        })
                    }
                    Kind::NegativeBinomial => Some(ColumnDistribution::NegativeBinomial {
                        rate: latent[at][0],
                        shape: latent[at][2],
                    }),
                    Kind::StudentT => {
                        (means[position], variances[position]) = (latent[at][0], latent[at][1]);
                        degrees[column] = Some(latent[at][2]);
                        None
                    }
                    Kind::Gaussian | Kind::Multinomial => {
                        let l = &own[4 * at..4 * at + 4];
                        means[position] = l[0] / l[1];
                        variances[position] = (l[2] - 0.5 * l[0] * l[0] / l[1]) / (l[3] + 0.5);
                        None
                    }
                };
            }
        }
        let (means, variances) = (
            self.units.back(&means),
            self.units.variances_back(&variances),
        );
        let parts = names.iter().zip(distributions).enumerate();
        parts
            .map(|(column, (name, distributions))| ColumnPart {
                column: name.clone(),
                distribution: distributions.unwrap_or(match degrees[column] {
                    Some(degrees_of_freedom) => ColumnDistribution::Student {
                        mean: means[column],
                        scale: variances[column].sqrt(),
                        degrees_of_freedom,
                    },
                    None => ColumnDistribution::Gaussian {
                        mean: means[column],
                        variance: variances[column],
                    },
                }),
            })
            .collect()
    }
}

fn kinds(names: &[String], kind: Kind, columns: &[ColumnKind]) -> Result<Vec<Kind>, Error> {
    if kind == Kind::Multinomial {
        return Err(Error::setting(
            "multinomial counts need all columns: remove --columns, or choose another kind for the other columns",
        ));
    }
    let mut kinds = vec![kind; names.len()];
    for stated in columns {
        let Some(position) = names.iter().position(|name| *name == stated.column) else {
            return Err(Error::Input(format!(
                "--columns: there is no column `{}`; the columns are {}",
                stated.column,
                names.join(", ")
            )));
        };
        kinds[position] = stated.kind;
    }
    Ok(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_columns_are_read_and_written() {
        for text in [
            "a=poisson",
            "x=y=categorical",
            "b=gaussian",
            "c=bernoulli",
            "d=student-t",
            "e=negative-binomial",
        ] {
            let column: ColumnKind = text.parse().unwrap();
            assert_eq!(column.to_string(), text);
        }
        for wrong in ["poisson", "a=multinomial", "a="] {
            assert!(wrong.parse::<ColumnKind>().is_err(), "{wrong}");
        }
    }
}
