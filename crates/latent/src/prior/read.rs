//! The mapping from rows of a table to the latent variables of a prior's parts. For covariance functions, rows are
//! mapped to coordinates. For concatenated variables, the mapping is a design.

use std::sync::Arc;

use super::basis::Basis;
use super::by::{self, Factors};
use super::inducing::InducingPoints;
use super::inputs::{Covariate, Index, Source, fill, matrix};
use super::mesh::Mesh;
use super::radial::Radial;
use super::repeats::Repeats;
use super::tensor::Tensor;
use super::times::{Bridge, Bridged, Variable};
use crate::{Dense, Design, Sparse};

/// Says how a row refers to the latent variables of a part.
#[derive(Clone, Debug, PartialEq)]
pub enum Reader {
    /// Each row, including each new row, has its own variable.
    Own,
    /// The node of the row selects the variable.
    At(Index),
    /// The covariates of the row weight the variables.
    Covariates(Vec<Covariate>),
    /// All rows share one variable.
    Common,
    /// The coordinates of the row are the inputs of the process.
    Inputs(Vec<Covariate>),
    /// The variables are coefficients of functions of the coordinates.
    Basis(Basis),
    /// The variables determine the process at inducing points.
    Inducing(InducingPoints),
    /// The variables are the values at the nodes of a mesh, and the row has the barycentric weights of its triangle.
    Mesh(Arc<Mesh>),
    /// The variables are coefficients of products of B-splines.
    Tensor(Tensor),
    /// The variables are coefficients of a thin-plate regression spline.
    Radial(Arc<Radial>),
    /// The row selects a row of a matrix R, and RRᵀ is the covariance.
    Given {
        /// The mapping to the rows of R.
        index: Index,
        /// The matrix R.
        root: Arc<Dense>,
    },
}

/// A part of the prior, as it appears in reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The name of the part, such as `icar` or `fixed`.
    pub name: String,
    /// The mapping from rows to the part's nodes.
    pub reader: Reader,
    /// The factors that multiply a node's variables, with one variable per factor. Without `by=`, the only factor is 1.
    pub factors: Factors,
    /// The copies of the part for the values of a column, or `None` if there is only one.
    pub repeats: Option<Repeats>,
    /// The range of the part's latent variables. The range is empty if the part is a term of a process.
    pub latents: std::ops::Range<usize>,
}

impl Piece {
    /// Whether no column multiplies the part.
    pub fn is_plain(&self) -> bool {
        self.factors.iter().all(Option::is_none)
    }

    /// Returns the number of nodes of all copies.
    pub fn nodes(&self) -> usize {
        self.latents.len() / self.factors.len()
    }
}

/// Returns the coordinates of rows for a covariance function. `own` is the number of the variable that belongs to the
/// first row. New rows receive numbers that no row of the fit has.
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
        Reader::Basis(_)
        | Reader::Inducing(_)
        | Reader::Mesh(_)
        | Reader::Tensor(_)
        | Reader::Radial(_) => {
            unreachable!("a process has kernels")
        }
        Reader::Given { index, root } => {
            let found = index.find(source, rows)?;
            Dense::from_fn(rows.len(), root.cols, |i, j| {
                found[i].map_or(f64::NAN, |node| root.get(node, j))
            })
        }
    })
}

/// A node that a new row refers to and that did not occur in the fit. The fields are the index of the piece, the number
/// of the node within the piece, and the factors by which the row multiplies the node's variables.
pub(super) type New = (usize, usize, Vec<f64>);

/// How rows refer to the latent variables of a prior and to new variables.
pub(super) struct Rows {
    /// The map from the pieces' latent variables to the rows.
    pub(super) design: Design,
    /// The new nodes of each row. Rows of the same new group share a node.
    pub(super) new: Vec<Vec<New>>,
    /// The variables at new times of each piece.
    pub(super) times: Vec<Vec<Variable>>,
}

/// The distribution of a piece's process at a time, given the process at the distances before and after it.
pub(super) type Law<'a> = &'a dyn Fn(usize, [Option<f64>; 2]) -> Bridge;

/// How the rows refer to the nodes of a piece.
pub(super) enum Columns {
    Index(Vec<Result<usize, usize>>),
    Between(Vec<(usize, f64)>),
    Bridged(Bridged),
    Values(Dense),
    Weighted(Vec<Vec<(usize, f64)>>),
}

impl Columns {
    /// Returns how the rows refer to the nodes of all copies of a piece.
    fn of(
        number: usize,
        piece: &Piece,
        source: &dyn Source,
        rows: &[usize],
        law: Option<Law<'_>>,
    ) -> Result<Self, String> {
        let single = |rows: &[usize]| Self::of_one(number, piece, source, rows, law);
        match &piece.repeats {
            None => single(rows),
            Some(repeats) => {
                let nodes = piece.nodes() / repeats.count();
                repeats.columns(nodes, source, rows, &single)
            }
        }
    }

    fn of_one(
        number: usize,
        piece: &Piece,
        source: &dyn Source,
        rows: &[usize],
        law: Option<Law<'_>>,
    ) -> Result<Self, String> {
        let n = rows.len();
        Ok(match (&piece.reader, law) {
            (Reader::Own, None) => Self::Index((0..n).map(Ok).collect()),
            (Reader::Own, Some(_)) => Self::Index((0..n).map(Err).collect()),
            (Reader::At(Index::Times(times)), Some(law)) if !times.interpolated => {
                let law = |distances| law(number, distances);
                Self::Bridged(times.bridged(source, rows, &law)?)
            }
            (Reader::At(index), _) => match index.between(source, rows)? {
                Some(weights) => Self::Between(weights),
                None => Self::Index(index.positions(source, rows)?),
            },
            (Reader::Covariates(list), _) => Self::Values(matrix(list, source, rows)?),
            (Reader::Basis(basis), _) => Self::Values(basis.values(source, rows)?),
            // Hyperparameters determine the weights.
            (Reader::Inducing(_), _) => Self::Weighted(vec![Vec::new(); n]),
            (Reader::Mesh(mesh), _) => Self::Weighted(mesh.rows(source, rows)?),
            (Reader::Tensor(tensor), _) => Self::Weighted(tensor.rows(source, rows)?),
            (Reader::Radial(radial), _) => Self::Weighted(radial.rows(source, rows)?),
            (Reader::Common, _) => Self::Index(vec![Ok(0); n]),
            (Reader::Inputs(_) | Reader::Given { .. }, _) => {
                unreachable!("only processes have inputs")
            }
        })
    }

    /// Returns the new node of a row.
    fn new_node(&self, row: usize) -> Option<usize> {
        match self {
            Self::Index(list) => list[row].err(),
            Self::Bridged(bridged) => bridged.new[row],
            Self::Between(_) | Self::Values(_) | Self::Weighted(_) => None,
        }
    }

    /// Returns the rows and weights of each of the `nodes`.
    fn entries(self, nodes: usize) -> Vec<Vec<(usize, f64)>> {
        let mut entries_of = vec![Vec::new(); nodes];
        match self {
            Self::Values(values) => {
                for (j, entries) in entries_of.iter_mut().enumerate() {
                    entries.extend(values.col(j).iter().copied().enumerate());
                }
            }
            Self::Between(list) => {
                for (i, (node, weight)) in list.into_iter().enumerate() {
                    entries_of[node].push((i, 1.0 - weight));
                    if weight > 0.0 {
                        entries_of[node + 1].push((i, weight));
                    }
                }
            }
            Self::Bridged(Bridged { known: list, .. }) | Self::Weighted(list) => {
                for (i, weights) in list.into_iter().enumerate() {
                    for (node, weight) in weights {
                        entries_of[node].push((i, weight));
                    }
                }
            }
            Self::Index(list) => {
                for (i, node) in list.iter().enumerate() {
                    if let Ok(node) = node {
                        entries_of[*node].push((i, 1.0));
                    }
                }
            }
        }
        entries_of
    }
}

/// Returns the design and the new nodes of rows. `law` is given for the rows of another table than that of the fit.
pub(super) fn design(
    pieces: &[Piece],
    source: &dyn Source,
    rows: &[usize],
    latents: usize,
    law: Option<Law<'_>>,
) -> Result<Rows, String> {
    let n = rows.len();
    let mut out = Rows {
        design: Design::Identity,
        new: vec![Vec::new(); n],
        times: vec![Vec::new(); pieces.len()],
    };
    if let Some(w) = dense(pieces, source, rows, latents)? {
        out.design = Design::Dense(Arc::new(w));
        return Ok(out);
    }
    let mut blocks = Vec::with_capacity(pieces.len());
    for (number, piece) in pieces.iter().enumerate() {
        let mut columns = Columns::of(number, piece, source, rows, law)?;
        let factors = by::values(&piece.factors, source, rows)?;
        for (row, own) in out.new.iter_mut().enumerate() {
            let at = |factor: &Option<Vec<f64>>| factor.as_ref().map_or(1.0, |x| x[row]);
            let new = |new| (number, new, factors.iter().map(at).collect());
            own.extend(columns.new_node(row).map(new));
        }
        if let Columns::Bridged(bridged) = &mut columns {
            out.times[number] = std::mem::take(&mut bridged.variables);
        }
        blocks.push((columns, factors));
    }
    if let ([(Columns::Index(list), _)], true) =
        (blocks.as_slice(), pieces.iter().all(Piece::is_plain))
        && let Ok(select) = list.iter().copied().collect::<Result<Vec<usize>, usize>>()
    {
        let identity = select.len() == latents && select.iter().enumerate().all(|(i, l)| i == *l);
        if !identity {
            out.design = Design::Select(select);
        }
        return Ok(out);
    }
    let mut sparse = Sparse {
        rows: n,
        cols: latents,
        col_start: vec![0],
        row: Vec::new(),
        value: Vec::new(),
    };
    for ((block, factors), piece) in blocks.into_iter().zip(pieces) {
        for entries in block.entries(piece.nodes()) {
            for factor in &factors {
                for (i, weight) in &entries {
                    let x = weight * factor.as_ref().map_or(1.0, |factor| factor[*i]);
                    if x != 0.0 {
                        sparse.row.push(*i);
                        sparse.value.push(x);
                    }
                }
                sparse.col_start.push(sparse.row.len());
            }
        }
    }
    out.design = Design::Sparse(sparse);
    Ok(out)
}

/// Returns the dense design of covariates and common levels. Returns `None` if there are other parts. Also returns
/// `None` if there is only a single level, because an index is cheaper in this case.
fn dense(
    pieces: &[Piece],
    source: &dyn Source,
    rows: &[usize],
    latents: usize,
) -> Result<Option<Dense>, String> {
    let full = |p: &Piece| {
        matches!(
            p.reader,
            Reader::Covariates(_) | Reader::Basis(_) | Reader::Inducing(_) | Reader::Common
        )
    };
    let level = matches!(pieces, [only] if only.reader == Reader::Common && only.is_plain());
    if level || !pieces.iter().all(full) {
        return Ok(None);
    }
    let mut out = Dense::zeros(rows.len(), latents);
    for piece in pieces {
        let range = piece.latents.start * rows.len()..piece.latents.end * rows.len();
        let own = &mut out.data[range];
        match &piece.reader {
            Reader::Covariates(list) => fill(list, source, rows, own)?,
            Reader::Basis(basis) => own.copy_from_slice(&basis.values(source, rows)?.data),
            // Hyperparameters determine the weights.
            Reader::Inducing(_) => continue,
            _ => own.fill(1.0),
        }
        // Only `iid` has several factors.
        for factor in by::values(&piece.factors, source, rows)?.iter().flatten() {
            for column in own.chunks_mut(rows.len().max(1)) {
                column.iter_mut().zip(factor).for_each(|(x, f)| *x *= f);
            }
        }
    }
    Ok(Some(out))
}
