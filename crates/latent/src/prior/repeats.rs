//! Which copy of a field each row uses, and how rows refer to the latent variables of all copies.

use std::sync::Arc;

use super::contrast::Contrast;
use super::inputs::{Source, complete, complete_words};
use super::read::Columns;
use super::times::Bridged;

/// Most copies along a line.
const MOST_COPIES: f64 = 100_000.0;

/// A row belongs to a copy on a line if it is away from it by at most this many steps, because files have rounded values.
const AT_COPY: f64 = 1e-6;

/// Which copy of a field a row uses.
#[derive(Clone, Debug, PartialEq)]
pub enum Repeats {
    /// There is one copy for each distinct value of a column.
    Each {
        /// The column.
        column: String,
        /// The distinct values in sorted order.
        levels: Vec<String>,
    },
    /// The copies are evenly spaced along a numeric column.
    Along {
        /// The column.
        column: String,
        /// The value of the first copy.
        from: f64,
        /// The distance between copies.
        step: f64,
        /// Number of copies.
        count: usize,
    },
    /// Copies that are constrained along flat directions. The latent variables are products of the coefficients of two bases.
    Constrained {
        /// The copies.
        copies: Box<Repeats>,
        /// The basis of the copies of a node.
        between: Arc<Contrast>,
        /// The basis of the nodes of a copy.
        within: Arc<Contrast>,
    },
}

impl Repeats {
    /// Returns the number of copies.
    pub fn count(&self) -> usize {
        match self {
            Self::Each { levels, .. } => levels.len(),
            Self::Along { count, .. } => *count,
            Self::Constrained { copies, .. } => copies.count(),
        }
    }

    /// Returns the value of the column for a copy.
    pub fn label(&self, copy: usize) -> String {
        match self {
            Self::Each { levels, .. } => levels[copy].clone(),
            Self::Along { from, step, .. } => (from + step * copy as f64).to_string(),
            Self::Constrained { copies, .. } => copies.label(copy),
        }
    }

    /// Returns the column.
    pub fn column(&self) -> &str {
        match self {
            Self::Each { column, .. } | Self::Along { column, .. } => column,
            Self::Constrained { copies, .. } => copies.column(),
        }
    }

    /// Whether latent variables are coefficients of a basis, and not values at the nodes of copies.
    pub fn is_constrained(&self) -> bool {
        matches!(self, Self::Constrained { .. })
    }

    /// Returns evenly spaced copies from the smallest to the largest value in all rows of the table, so that rows without
    /// a response can be forecast.
    pub(super) fn along(source: &dyn Source, column: &str, rows: &[usize]) -> Result<Self, String> {
        complete(source, column, rows)?;
        let all = source.numbers(column)?;
        let mut values: Vec<f64> = all.iter().copied().filter(|x| x.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let [from, .., to] = values[..] else {
            return Err(format!(
                "`{column}` has a single value, so there is nothing to group; remove `group`"
            ));
        };
        let gaps = values.windows(2).map(|pair| pair[1] - pair[0]);
        let smallest = gaps.fold(f64::INFINITY, f64::min);
        let steps = ((to - from) / smallest).round();
        let step = (to - from) / steps;
        let away = |x: &f64| {
            let position = (x - from) / step;
            (position - position.round()).abs() > AT_COPY * position.max(1.0)
        };
        if steps >= MOST_COPIES || values.iter().any(away) {
            return Err(format!(
                "the values of `{column}` are not evenly spaced apart from gaps: two of them differ by {smallest}; round \
                 them, or use `replicate` for independent copies"
            ));
        }
        Ok(Self::Along {
            column: column.to_owned(),
            from,
            step,
            count: steps as usize + 1,
        })
    }

    /// Returns the copy of each row.
    fn positions(&self, source: &dyn Source, rows: &[usize]) -> Result<Vec<usize>, String> {
        let unknown = |row: usize, value: &str| {
            format!(
                "row {} has `{}` = {value}, for which the fit has no copy of the term; it has copies for {} to {}",
                row + 1,
                self.column(),
                self.label(0),
                self.label(self.count() - 1)
            )
        };
        match self {
            Self::Constrained { copies, .. } => copies.positions(source, rows),
            Self::Each { column, levels } => {
                let words = complete_words(source, column, rows)?;
                let each = words.iter().zip(rows);
                each.map(|(word, row)| {
                    let found = levels.binary_search(word);
                    found.map_err(|_| unknown(*row, word))
                })
                .collect()
            }
            Self::Along {
                column,
                from,
                step,
                count,
            } => {
                let numbers = complete(source, column, rows)?;
                let each = numbers.iter().zip(rows);
                each.map(|(x, row)| {
                    let position = (x - from) / step;
                    let copy = position.round();
                    let near = (position - copy).abs() <= AT_COPY * copy.max(1.0);
                    let inside = copy >= 0.0 && copy < *count as f64;
                    match near && inside {
                        true => Ok(copy as usize),
                        false => Err(unknown(*row, &x.to_string())),
                    }
                })
                .collect()
            }
        }
    }

    /// Maps the nodes of a single field to those of the copies. `single` returns how some rows refer to the nodes of a
    /// single field.
    pub(super) fn columns(
        &self,
        nodes: usize,
        source: &dyn Source,
        rows: &[usize],
        single: &dyn Fn(&[usize]) -> Result<Columns, String>,
    ) -> Result<Columns, String> {
        let copies = self.positions(source, rows)?;
        if let Self::Constrained {
            between, within, ..
        } = self
        {
            return products(&copies, single(rows)?, between, within);
        }
        let moved = |list: &mut Vec<(usize, f64)>, copy: usize| {
            list.iter_mut().for_each(|(node, _)| *node += copy * nodes);
        };
        Ok(match single(rows)? {
            Columns::Index(mut list) => {
                for (node, copy) in list.iter_mut().zip(&copies) {
                    *node = node.map(|node| node + copy * nodes);
                }
                Columns::Index(list)
            }
            Columns::Between(mut list) => {
                for ((node, _), copy) in list.iter_mut().zip(&copies) {
                    *node += copy * nodes;
                }
                Columns::Between(list)
            }
            Columns::Weighted(mut list) => {
                list.iter_mut()
                    .zip(&copies)
                    .for_each(|(own, copy)| moved(own, *copy));
                Columns::Weighted(list)
            }
            // Rows at the same new time share a variable only within a copy.
            Columns::Bridged(_) => {
                let mut out = Bridged {
                    known: vec![Vec::new(); rows.len()],
                    new: vec![None; rows.len()],
                    variables: Vec::new(),
                };
                for copy in 0..self.count() {
                    let own: Vec<usize> = (0..rows.len()).filter(|i| copies[*i] == copy).collect();
                    let there: Vec<usize> = own.iter().map(|i| rows[*i]).collect();
                    let Columns::Bridged(found) = single(&there)? else {
                        continue;
                    };
                    let first = out.variables.len();
                    for ((i, mut known), new) in own.iter().zip(found.known).zip(found.new) {
                        moved(&mut known, copy);
                        out.known[*i] = known;
                        out.new[*i] = new.map(|variable| first + variable);
                    }
                    out.variables
                        .extend(found.variables.into_iter().map(|mut variable| {
                            variable.earlier = variable.earlier.map(|(at, w)| (first + at, w));
                            variable
                        }));
                }
                Columns::Bridged(out)
            }
            Columns::Values(_) => return Err("covariates have no copies".to_owned()),
        })
    }
}

/// Returns the weights of the products of coefficients at the copy and the nodes of each row.
fn products(
    copies: &[usize],
    single: Columns,
    between: &Contrast,
    within: &Contrast,
) -> Result<Columns, String> {
    let nodes: Vec<Vec<(usize, f64)>> = match single {
        Columns::Index(list) => {
            let known = |node: Result<usize, usize>| match node {
                Ok(node) => Ok(vec![(node, 1.0)]),
                Err(_) => Err("constrained copies have no new nodes".to_owned()),
            };
            list.into_iter().map(known).collect::<Result<_, _>>()?
        }
        Columns::Between(list) => (list.into_iter())
            .map(|(node, weight)| match weight {
                0.0 => vec![(node, 1.0)],
                weight => vec![(node, 1.0 - weight), (node + 1, weight)],
            })
            .collect(),
        Columns::Weighted(list) => list,
        Columns::Bridged(_) | Columns::Values(_) => {
            return Err("these rows have no constrained copies".to_owned());
        }
    };
    let row = |(copy, nodes): (&usize, Vec<(usize, f64)>)| {
        let mut own = Vec::new();
        for (first, a) in &between.rows[*copy] {
            for (node, weight) in &nodes {
                let each = within.rows[*node].iter();
                own.extend(each.map(|(k, b)| (first * within.columns + k, a * weight * b)));
            }
        }
        own.sort_by_key(|(column, _)| *column);
        let mut out: Vec<(usize, f64)> = Vec::with_capacity(own.len());
        for (column, weight) in own {
            match out.last_mut() {
                Some((last, sum)) if *last == column => *sum += weight,
                _ => out.push((column, weight)),
            }
        }
        out
    };
    Ok(Columns::Weighted(
        copies.iter().zip(nodes).map(row).collect(),
    ))
}
