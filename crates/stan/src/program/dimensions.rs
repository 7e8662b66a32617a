//! Names each dimension of a variable after the variable that its declaration uses as the size.

use std::collections::BTreeMap;

use super::{BlockKind, Decl, Expr, ExprKind, Program, SizedType, Stmt, StmtKind};

impl Program {
    /// Returns, for each variable, the names of the variables that its declaration uses as sizes. For `matrix[J, K] x`
    /// and `array[J] vector[K] x`, these are `["J", "K"]`. A size has no name if the expression is not a single
    /// variable, or if this variable is itself reported.
    ///
    /// The map covers data, parameters, transformed parameters and generated quantities. Tuples and complex numbers are
    /// omitted, because the dimensions of their values differ from the declared dimensions.
    pub fn dimension_names(&self) -> BTreeMap<String, Vec<Option<String>>> {
        let blocks = [&self.transformed_parameters, &self.generated_quantities];
        let computed = blocks.into_iter().flatten().filter_map(declared);
        let declared = self.data.iter().chain(&self.parameters).chain(computed);
        declared
            .filter_map(|decl| Some((decl, sizes(&decl.ty)?)))
            .map(|(decl, sizes)| {
                let names = sizes.into_iter().map(|size| match &size.kind {
                    ExprKind::Var(id) => Some(self.var(*id)).filter(|size| known(size.block)),
                    _ => None,
                });
                let names = names.map(|size| size.map(|size| size.name.clone()));
                (self.var(decl.var).name.clone(), names.collect())
            })
            .collect()
    }
}

/// Whether the variables of a block are known before any draw.
fn known(block: BlockKind) -> bool {
    matches!(block, BlockKind::Data | BlockKind::TransformedData)
}

fn declared(stmt: &Stmt) -> Option<&Decl> {
    match &stmt.kind {
        StmtKind::Decl(decl) => Some(decl),
        _ => None,
    }
}

fn sizes(ty: &SizedType) -> Option<Vec<&Expr>> {
    match ty {
        SizedType::Int | SizedType::Real => Some(Vec::new()),
        SizedType::Vector(n) | SizedType::RowVector(n) => Some(vec![n]),
        SizedType::Matrix(rows, columns) => Some(vec![rows, columns]),
        SizedType::Array(n, inner) => {
            let mut all = vec![&**n];
            all.extend(sizes(inner)?);
            Some(all)
        }
        SizedType::Complex
        | SizedType::ComplexVector(_)
        | SizedType::ComplexRowVector(_)
        | SizedType::ComplexMatrix(..)
        | SizedType::Tuple(_) => None,
    }
}
