//! Lowers parameters: maps the unconstrained coordinates to constrained values, and computes the log-Jacobian.
//!
//! The maps themselves are in [`crate::symbolic::transforms`].

use super::Lower;
use crate::program::{Constraint, Decl, Expr};
use crate::symbolic::tape::E;
use crate::symbolic::transforms::{Bound, Bounds, bound, elementwise, offset, structured};
use crate::symbolic::value::{Dims, Leaf, Sym};
use crate::value::error::{Eval, FnError, FnResult};
use crate::value::sized::shape_only;
use crate::value::sized::{Part, Sized, parts};

/// Returns the extents of a declared type.
///
/// # Errors
/// Fails for tuples and complex numbers, because the parts of such values have separate extents.
pub fn dims_of(ty: &Sized) -> FnResult<Dims> {
    let (array, inner) = ty.unwind();
    let leaf = match inner {
        Sized::Int | Sized::Real => Leaf::Scalar,
        Sized::Vector(n) => Leaf::Vector(*n),
        Sized::RowVector(n) => Leaf::Row(*n),
        Sized::Matrix(rows, cols) => Leaf::Matrix(*rows, *cols),
        _ => {
            return Err(FnError::unsupported(
                "numbers of this type are not a single value in the log density",
            ));
        }
    };
    Ok(Dims { array, leaf })
}

impl<'g> Lower<'_, 'g> {
    pub(super) fn parameters(
        &mut self,
        z: E<'g>,
        sizes: &[(crate::program::VarId, Sized)],
    ) -> Eval<()> {
        let program = self.program;
        let mut at = 0;
        for (decl, (var, ty)) in program.parameters.iter().zip(sizes) {
            let span = program.var(*var).span;
            self.tape
                .graph
                .borrow_mut()
                .set_site(self.declaration_site(*var));
            let plain = !matches!(ty.unwind().1, Sized::Tuple(_));
            let mut value = if plain { None } else { Some(template(ty)) };
            for part in parts(decl, ty) {
                let sym = self.part(decl, &part, z, &mut at)?;
                match &mut value {
                    None => value = Some(sym),
                    Some(whole) => put(whole, &part.path, sym),
                }
            }
            let Some(value) = value else {
                return Err(FnError::invalid("a declaration without parts").at(span));
            };
            self.slots[var.0 as usize] = Some(value);
        }
        Ok(())
    }

    /// Each complex number has two coordinates, the real part first.
    fn complex(part: &Part<'_>, z: E<'g>, at: &mut usize) -> Sym {
        let (array, inner) = part.ty.unwind();
        let leaf = match inner {
            Sized::ComplexVector(n) => Leaf::Vector(*n),
            Sized::ComplexRowVector(n) => Leaf::Row(*n),
            Sized::ComplexMatrix(rows, cols) => Leaf::Matrix(*rows, *cols),
            _ => Leaf::Scalar,
        };
        let dims = Dims { array, leaf };
        let (start, size) = (*at, dims.size());
        if size == 0 {
            return part.ty.empty().into();
        }
        *at += 2 * size;
        let pick = |which: usize| {
            let index: Vec<u32> = (0..size).map(|k| (start + 2 * k + which) as u32).collect();
            Sym::flat(dims.clone(), z.gather(&index))
        };
        Sym::complex(pick(0), pick(1))
    }

    fn part(&mut self, decl: &Decl, part: &Part<'_>, z: E<'g>, at: &mut usize) -> Eval<Sym> {
        if part.ty.is_complex() {
            return Ok(Self::complex(part, z, at));
        }
        let span = self.program.var(decl.var).span;
        let dims = dims_of(&part.ty).map_err(|e| e.at(span))?;
        let transform = shape_only(part.constraint);
        let (rows, cols) = part.ty.leaf_extents();
        let each = transform.coordinates(rows, cols);
        let count = dims.count();
        let start = *at;
        *at += each * count;
        let take = |from: usize, len: usize| -> E<'g> {
            if z.len() == 1 && len == 1 {
                z
            } else {
                z.slice(from, len)
            }
        };
        if transform.is_elementwise() {
            let z = take(start, each * count);
            let (x, jacobian) = self.elementwise(part.constraint, z, &dims)?;
            self.add_jacobian(jacobian);
            return Ok(Sym::flat(dims, x));
        }
        let mut cells = Vec::with_capacity(dims.size());
        for k in 0..count {
            let z = take(start + k * each, each);
            let (leaf, jacobian) = structured(self.tape, &transform, z, rows, cols);
            self.add_jacobian(jacobian);
            cells.extend(leaf);
        }
        Ok(Sym::cells(dims, cells))
    }

    fn add_jacobian(&mut self, jacobian: E<'g>) {
        if self.options.jacobian {
            self.terms.push(jacobian.id);
        }
    }

    fn bound(&mut self, expr: &Expr, dims: &Dims, infinity: f64) -> Eval<Bound<'g>> {
        let sym = self.expr(expr)?;
        bound(self.tape, &sym, dims, infinity).map_err(|e| e.at(expr.span))
    }

    fn elementwise(
        &mut self,
        constraint: &Constraint,
        z: E<'g>,
        dims: &Dims,
    ) -> Eval<(E<'g>, E<'g>)> {
        if z.len() == 0 {
            return Ok((z, self.tape.constant(0.0)));
        }
        let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
        let (bounds, last) = match constraint {
            Constraint::Lower(a) => (Bounds::Within(self.bound(a, dims, low)?, Bound::None), a),
            Constraint::Upper(b) => (Bounds::Within(Bound::None, self.bound(b, dims, high)?), b),
            Constraint::LowerUpper(a, b) => {
                let a = self.bound(a, dims, low)?;
                (Bounds::Within(a, self.bound(b, dims, high)?), b)
            }
            Constraint::Offset(m) => {
                let m = self.bound(m, dims, f64::NAN)?;
                return Ok(offset(z, m));
            }
            Constraint::Multiplier(s) => (
                Bounds::Scaled(Bound::None, self.bound(s, dims, f64::NAN)?),
                s,
            ),
            Constraint::OffsetMultiplier(m, s) => {
                let m = self.bound(m, dims, f64::NAN)?;
                (Bounds::Scaled(m, self.bound(s, dims, f64::NAN)?), s)
            }
            _ => return Ok((z, self.tape.constant(0.0))),
        };
        elementwise("parameter", z, bounds).map_err(|e| e.at(last.span))
    }
}

fn template(ty: &Sized) -> Sym {
    match ty {
        Sized::Tuple(parts) => Sym::Tuple(std::rc::Rc::new(parts.iter().map(template).collect())),
        Sized::Array(n, inner) if matches!(ty.unwind().1, Sized::Tuple(_)) => {
            Sym::Array(std::rc::Rc::new((0..*n).map(|_| template(inner)).collect()))
        }
        _ => Sym::Real(f64::NAN),
    }
}

fn put(whole: &mut Sym, path: &[usize], part: Sym) {
    match (path.split_first(), whole) {
        (Some((k, rest)), Sym::Tuple(parts) | Sym::Array(parts)) => {
            if let Some(slot) = std::rc::Rc::make_mut(parts).get_mut(*k) {
                put(slot, rest, part);
            }
        }
        (_, slot) => *slot = part,
    }
}
