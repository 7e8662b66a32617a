//! The mapping from rows of a table to the latent variables of a prior's parts: coordinates for covariance functions,
//! designs for concatenated variables.

use std::sync::Arc;

use super::inputs::{Covariate, Index, Source, fill, matrix};
use crate::{Dense, Design, Sparse};

/// The mapping from a row to the latent variables of a part.
#[derive(Clone, Debug, PartialEq)]
pub enum Reader {
    /// Each row has its own variable, and so has each new row.
    Own,
    /// By a node.
    At(Index),
    /// Weighted by covariates.
    Covariates(Vec<Covariate>),
    /// All rows share one.
    Common,
    /// By coordinates.
    Inputs(Vec<Covariate>),
    /// The row of a matrix R with RRᵀ the covariance.
    Given {
        /// The row.
        index: Index,
        /// R.
        root: Arc<Dense>,
    },
}

/// A part of the prior in reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// `icar`, `fixed`, ….
    pub name: String,
    /// The mapping from rows to its variables.
    pub reader: Reader,
    /// Its latent variables; empty if it is a term of a process.
    pub latents: std::ops::Range<usize>,
}

/// Coordinates of rows for a covariance function. `own`: the number of the first row's own variable; new rows get numbers that
/// no old row has.
pub(super) fn coordinates(
    reader: &Reader,
    source: &dyn Source,
    rows: &[usize],
    own: Option<usize>,
) -> Result<Dense, String> {
    let column = |data: Vec<f64>| Dense {
        rows: rows.len(),
        cols: 1,
        data,
    };
    Ok(match reader {
        Reader::Own => {
            let number = |i: usize| match own {
                Some(first) => (first + i) as f64,
                None => -1.0 - i as f64,
            };
            column((0..rows.len()).map(number).collect())
        }
        Reader::At(index) => {
            let code = |position: &Result<usize, usize>| match position {
                Ok(node) => *node as f64,
                Err(new) => -1.0 - *new as f64,
            };
            column(index.positions(source, rows)?.iter().map(code).collect())
        }
        Reader::Covariates(list) | Reader::Inputs(list) => matrix(list, source, rows)?,
        Reader::Common => column(vec![0.0; rows.len()]),
        Reader::Given { index, root } => {
            let found = index.find(source, rows)?;
            Dense::from_fn(rows.len(), root.cols, |i, j| {
                found[i].map_or(f64::NAN, |node| root.get(node, j))
            })
        }
    })
}

/// The new variables of a row: pieces by number, and a number within the piece.
pub(super) type New = Vec<(usize, usize)>;

/// The design of rows over the pieces' latent variables, and for each row the pieces (by number) with a new variable
/// and the number of that variable, which rows of one new group share.
pub(super) fn design(
    pieces: &[Piece],
    source: &dyn Source,
    rows: &[usize],
    latents: usize,
    old: bool,
) -> Result<(Design, Vec<New>), String> {
    enum Columns {
        Index(Vec<Result<usize, usize>>),
        /// The node before each row and the weight of the node after it.
        Between(Vec<(usize, f64)>),
        Values(Dense),
    }
    let n = rows.len();
    if let Some(w) = dense(pieces, source, rows, latents)? {
        return Ok((Design::Dense(Arc::new(w)), vec![Vec::new(); n]));
    }
    let mut fresh = vec![Vec::new(); n];
    let mut blocks = Vec::with_capacity(pieces.len());
    for (number, piece) in pieces.iter().enumerate() {
        let columns = match &piece.reader {
            Reader::Own if old => Columns::Index((0..n).map(Ok).collect()),
            Reader::Own => Columns::Index((0..n).map(Err).collect()),
            Reader::At(index) => match index.between(source, rows)? {
                Some(weights) => Columns::Between(weights),
                None => Columns::Index(index.positions(source, rows)?),
            },
            Reader::Covariates(list) => Columns::Values(matrix(list, source, rows)?),
            Reader::Common => Columns::Index(vec![Ok(0); n]),
            Reader::Inputs(_) | Reader::Given { .. } => {
                unreachable!("only processes have inputs")
            }
        };
        if let Columns::Index(list) = &columns {
            for (row, position) in list.iter().enumerate() {
                fresh[row].extend(position.err().map(|new| (number, new)));
            }
        }
        blocks.push(columns);
    }
    if let [Columns::Index(list)] = blocks.as_slice()
        && let Ok(select) = list.iter().copied().collect::<Result<Vec<usize>, usize>>()
    {
        let identity = select.len() == latents && select.iter().enumerate().all(|(i, l)| i == *l);
        let design = if identity {
            Design::Identity
        } else {
            Design::Select(select)
        };
        return Ok((design, fresh));
    }
    let mut sparse = Sparse {
        rows: n,
        cols: latents,
        col_start: vec![0],
        row: Vec::new(),
        value: Vec::new(),
    };
    for (block, piece) in blocks.into_iter().zip(pieces) {
        match block {
            Columns::Values(values) => {
                for j in 0..values.cols {
                    for (i, x) in values.col(j).iter().enumerate().filter(|(_, x)| **x != 0.0) {
                        sparse.row.push(i);
                        sparse.value.push(*x);
                    }
                    sparse.col_start.push(sparse.row.len());
                }
            }
            Columns::Between(list) => {
                let mut entries_of = vec![Vec::new(); piece.latents.len()];
                for (i, (node, weight)) in list.into_iter().enumerate() {
                    entries_of[node].push((i, 1.0 - weight));
                    if weight > 0.0 {
                        entries_of[node + 1].push((i, weight));
                    }
                }
                for entries in entries_of {
                    let (rows, weights): (Vec<usize>, Vec<f64>) = entries.into_iter().unzip();
                    sparse.row.extend(rows);
                    sparse.value.extend(weights);
                    sparse.col_start.push(sparse.row.len());
                }
            }
            Columns::Index(list) => {
                let mut rows_of = vec![Vec::new(); piece.latents.len()];
                for (i, node) in list.iter().enumerate() {
                    if let Ok(node) = node {
                        rows_of[*node].push(i);
                    }
                }
                for rows in rows_of {
                    sparse.value.extend(std::iter::repeat_n(1.0, rows.len()));
                    sparse.row.extend(rows);
                    sparse.col_start.push(sparse.row.len());
                }
            }
        }
    }
    Ok((Design::Sparse(sparse), fresh))
}

/// The design of covariates and common levels; `None` for others, and for a single level, which is cheaper by its index.
fn dense(
    pieces: &[Piece],
    source: &dyn Source,
    rows: &[usize],
    latents: usize,
) -> Result<Option<Dense>, String> {
    let plain = |p: &Piece| matches!(p.reader, Reader::Covariates(_) | Reader::Common);
    let level = matches!(pieces, [only] if only.reader == Reader::Common);
    if level || !pieces.iter().all(plain) {
        return Ok(None);
    }
    let mut out = Dense::zeros(rows.len(), latents);
    for piece in pieces {
        let range = piece.latents.start * rows.len()..piece.latents.end * rows.len();
        match &piece.reader {
            Reader::Covariates(list) => fill(list, source, rows, &mut out.data[range])?,
            _ => out.data[range].fill(1.0),
        }
    }
    Ok(Some(out))
}
