//! Reads and writes parts of symbolic values.

use std::rc::Rc;
use std::sync::Arc;

use crate::program::Type;
use crate::symbolic::tape::Tape;
use crate::symbolic::value::{Cell, Dims, Flat, Leaf, Store, Sym};
use crate::value::error::{FnError, FnResult};
use crate::value::index::{self, Idx, IndexError};

/// The positions that an index selects in one dimension, from 0.
pub enum Pos {
    /// A single position.
    One(usize),
    /// The positions from the first number up to the second number, which is excluded.
    Span(usize, usize),
    /// The positions in a list.
    List(Vec<usize>),
}

impl Pos {
    pub fn count(&self) -> usize {
        match self {
            Pos::One(_) => 1,
            Pos::Span(from, to) => to - from,
            Pos::List(list) => list.len(),
        }
    }

    pub fn at(&self, k: usize) -> usize {
        match self {
            Pos::One(i) => *i,
            Pos::Span(from, _) => from + k,
            Pos::List(list) => list[k],
        }
    }
}

pub fn resolve(idx: &Idx, size: usize, position: usize) -> FnResult<Pos> {
    let check = |i: i32| match usize::try_from(i) {
        Ok(at) if (1..=size).contains(&at) => Ok(at - 1),
        _ => Err(invalid(&IndexError::OutOfBounds {
            position,
            index: i,
            size,
        })),
    };
    let between = |a: i32, b: i32| {
        if b < a {
            return Ok(Pos::Span(0, 0));
        }
        Ok(Pos::Span(check(a)?, check(b)? + 1))
    };
    let last = i32::try_from(size).unwrap_or(i32::MAX);
    match idx {
        Idx::All => Ok(Pos::Span(0, size)),
        Idx::One(i) => Ok(Pos::One(check(*i)?)),
        Idx::Many(list) => Ok(Pos::List(
            list.iter().map(|i| check(*i)).collect::<FnResult<_>>()?,
        )),
        Idx::From(a) => between(*a, last),
        Idx::To(b) => between(1, *b),
        Idx::Between(a, b) => between(*a, *b),
    }
}

fn invalid(error: &IndexError) -> FnError {
    FnError::invalid(error.to_string())
}

/// The storage positions that an index selects, in the storage order of the selected part, and the extents of the part.
struct Selection {
    offsets: Vec<usize>,
    dims: Dims,
}

fn part(dims: &Dims, idx: &[Idx]) -> FnResult<Selection> {
    let extents = dims.extents();
    if idx.len() > extents.len() {
        return Err(invalid(&IndexError::TooMany));
    }
    let positions: Vec<Pos> = extents
        .iter()
        .enumerate()
        .map(|(k, size)| resolve(idx.get(k).unwrap_or(&Idx::All), *size, k + 1))
        .collect::<FnResult<_>>()?;
    let strides = dims.strides();
    let depth = dims.array.len();
    let array: Vec<usize> = positions[..depth]
        .iter()
        .filter(|p| !matches!(p, Pos::One(_)))
        .map(Pos::count)
        .collect();
    let kept = |k: usize| (!matches!(positions[k], Pos::One(_))).then(|| positions[k].count());
    let leaf = match dims.leaf {
        Leaf::Scalar => Leaf::Scalar,
        Leaf::Vector(_) => kept(depth).map_or(Leaf::Scalar, Leaf::Vector),
        Leaf::Row(_) => kept(depth).map_or(Leaf::Scalar, Leaf::Row),
        Leaf::Matrix(..) => match (kept(depth), kept(depth + 1)) {
            (None, None) => Leaf::Scalar,
            (None, Some(n)) => Leaf::Row(n),
            (Some(n), None) => Leaf::Vector(n),
            (Some(rows), Some(cols)) => Leaf::Matrix(rows, cols),
        },
    };
    // The outermost dimension is first. Within a matrix, columns are the outer dimension.
    let mut order: Vec<usize> = (0..extents.len()).collect();
    if let Leaf::Matrix(..) = dims.leaf {
        order.swap(depth, depth + 1);
    }
    let mut offsets = vec![0];
    for k in order {
        let (pos, stride) = (&positions[k], strides[k]);
        if let Pos::One(i) = pos {
            offsets.iter_mut().for_each(|o| *o += i * stride);
            continue;
        }
        let mut next = Vec::with_capacity(offsets.len() * pos.count());
        for o in &offsets {
            next.extend((0..pos.count()).map(|j| o + pos.at(j) * stride));
        }
        offsets = next;
    }
    Ok(Selection {
        offsets,
        dims: Dims { array, leaf },
    })
}

/// Returns `None` unless every dimension has a single index.
fn scalar_offset(dims: &Dims, idx: &[Idx]) -> Option<FnResult<usize>> {
    let one = |k: usize, size: usize| match &idx[k] {
        Idx::One(i) => Some(match usize::try_from(*i) {
            Ok(at) if (1..=size).contains(&at) => Ok(at - 1),
            _ => Err(invalid(&IndexError::OutOfBounds {
                position: k + 1,
                index: *i,
                size,
            })),
        }),
        _ => None,
    };
    let leaf_rank = match dims.leaf {
        Leaf::Scalar => 0,
        Leaf::Vector(_) | Leaf::Row(_) => 1,
        Leaf::Matrix(..) => 2,
    };
    if idx.len() != dims.array.len() + leaf_rank || !idx.iter().all(|i| matches!(i, Idx::One(_))) {
        return None;
    }
    let mut offset = 0;
    for (k, size) in dims.array.iter().enumerate() {
        match one(k, *size)? {
            Ok(at) => offset = offset * size + at,
            Err(e) => return Some(Err(e)),
        }
    }
    let depth = dims.array.len();
    let within = match dims.leaf {
        Leaf::Scalar => Ok(0),
        Leaf::Vector(n) | Leaf::Row(n) => one(depth, n)?,
        Leaf::Matrix(rows, cols) => match (one(depth, rows)?, one(depth + 1, cols)?) {
            (Ok(i), Ok(j)) => Ok(j * rows + i),
            (Err(e), _) | (_, Err(e)) => Err(e),
        },
    };
    Some(within.map(|w| offset * dims.leaf.size() + w))
}

/// Returns the part of `base` that `idx` selects. `ty` is the type of the part.
///
/// # Errors
/// Fails if an index is out of bounds.
pub fn get(tape: &Tape, base: &Sym, idx: &[Idx], ty: Option<&Type>) -> FnResult<Sym> {
    if idx.is_empty() {
        return Ok(base.clone());
    }
    match base {
        Sym::Complex(parts) => {
            let [re, im] = &**parts;
            Ok(Sym::complex(
                get(tape, re, idx, None)?,
                get(tape, im, idx, None)?,
            ))
        }
        Sym::Data(value) => index::get(value, idx, ty)
            .map(Sym::from)
            .map_err(|e| invalid(&e)),
        Sym::Flat(flat) => {
            if let Some(offset) = scalar_offset(&flat.dims, idx) {
                return Ok(match flat.cell(offset?) {
                    Cell::Const(x) => Sym::Real(x),
                    Cell::Elem(id, i) => tape.e(id).at(i as usize).into(),
                });
            }
            let part = part(&flat.dims, idx)?;
            Ok(match &flat.store {
                Store::Node(id) => {
                    let index: Vec<u32> = part.offsets.iter().map(|o| *o as u32).collect();
                    Sym::flat(part.dims, tape.e(*id).gather(&index))
                }
                Store::Table(cells) => {
                    Sym::cells(part.dims, part.offsets.iter().map(|o| cells[*o]).collect())
                }
            })
        }
        Sym::Array(elements) => match resolve(&idx[0], elements.len(), 1)? {
            Pos::One(i) => get(tape, &elements[i], &idx[1..], ty),
            pos => {
                let element = match ty {
                    Some(Type::Array(element)) => Some(&**element),
                    other => other,
                };
                let parts: Vec<Sym> = (0..pos.count())
                    .map(|k| get(tape, &elements[pos.at(k)], &idx[1..], element))
                    .collect::<FnResult<_>>()?;
                array_of(tape, parts)
            }
        },
        Sym::Records(_) | Sym::Overlay(_) => Err(crate::symbolic::value::interacting()),
        Sym::Int(_) | Sym::Real(_) | Sym::Scalar(_) | Sym::Tuple(_) => {
            Err(invalid(&IndexError::TooMany))
        }
    }
}

/// Creates an array of these elements.
///
/// # Errors
/// Fails if the elements contain reals of different shapes.
pub fn array_of(tape: &Tape, parts: Vec<Sym>) -> FnResult<Sym> {
    if parts.iter().any(|p| p.parts().is_some()) {
        let (re, im): (Vec<Sym>, Vec<Sym>) = parts.iter().map(|p| p.as_complex().into()).unzip();
        return Ok(Sym::complex(array_of(tape, re)?, array_of(tape, im)?));
    }
    if parts.iter().all(|p| p.dims().is_err()) {
        return Ok(Sym::Array(Rc::new(parts)));
    }
    let first = parts[0].dims()?;
    let mut cells = Vec::with_capacity(parts.len() * first.size());
    for part in &parts {
        let dims = part.dims()?;
        if dims != first {
            return Err(FnError::invalid(format!(
                "elements of an array have different shapes: {} and {}",
                first.describe(),
                dims.describe()
            )));
        }
        cells.extend(part.to_cells(tape)?);
    }
    let mut array = vec![parts.len()];
    array.extend(&first.array);
    Ok(Sym::cells(
        Dims {
            array,
            leaf: first.leaf,
        },
        cells,
    ))
}

/// A step into a container.
#[derive(Clone, Debug)]
pub enum Step {
    /// Indices, together with the type of the part that they select.
    Index(Vec<Idx>, Type),
    /// A tuple component, counted from 0.
    Component(usize),
}

/// Returns the part at the end of a path.
///
/// # Errors
/// Fails if an index is out of bounds.
pub fn get_path(tape: &Tape, base: &Sym, path: &[Step]) -> FnResult<Sym> {
    match path.split_first() {
        None => Ok(base.clone()),
        Some((Step::Component(k), rest)) => get_path(tape, &component(base, *k)?, rest),
        Some((Step::Index(idx, ty), rest)) => {
            get_path(tape, &get(tape, base, idx, Some(ty))?, rest)
        }
    }
}

/// Returns component `k` of a tuple.
///
/// # Errors
/// Fails if the value is not a tuple. The checker excludes this case.
pub fn component(base: &Sym, k: usize) -> FnResult<Sym> {
    match base {
        Sym::Tuple(parts) if k < parts.len() => Ok(parts[k].clone()),
        Sym::Data(value) => match &**value {
            crate::value::Value::Tuple(parts) if k < parts.len() => Ok(parts[k].clone().into()),
            _ => Err(invalid(&IndexError::TooMany)),
        },
        _ => Err(invalid(&IndexError::TooMany)),
    }
}

fn shape_error(expected: &str, found: &Sym) -> FnError {
    FnError::invalid(format!(
        "sizes do not match: expected {expected}, found {}",
        found.describe()
    ))
}

/// Checks that `new` may replace the value `old` of a whole variable.
pub fn check_shape(old: &Sym, new: &Sym) -> FnResult<()> {
    if let (Some([old, _]), Some([new, _])) = (old.parts(), new.parts()) {
        return check_shape(&old, &new);
    }
    match (old, new) {
        (Sym::Tuple(a), Sym::Tuple(b)) if a.len() == b.len() => a
            .iter()
            .zip(b.iter())
            .try_for_each(|(a, b)| check_shape(a, b)),
        _ => match (old.dims(), new.dims()) {
            (Ok(a), Ok(b)) if a != b && (a.size() > 0 || b.size() > 0) => {
                Err(shape_error(&old.describe(), new))
            }
            _ => Ok(()),
        },
    }
}

/// Assigns `new` to the part of `target` at the end of a path.
///
/// # Errors
/// Fails if an index is out of bounds, or if the part and `new` have different shapes.
pub fn set_path(tape: &Tape, target: &mut Sym, path: &[Step], new: Sym) -> FnResult<()> {
    match path.split_first() {
        None => {
            check_shape(target, &new)?;
            *target = new;
            Ok(())
        }
        Some((Step::Component(k), rest)) => {
            let Some(Sym::Tuple(parts)) = target.unpacked() else {
                return Err(invalid(&IndexError::TooMany));
            };
            let mut parts = (*parts).clone();
            let part = parts
                .get_mut(*k)
                .ok_or_else(|| invalid(&IndexError::TooMany))?;
            set_path(tape, part, rest, new)?;
            *target = Sym::Tuple(Rc::new(parts));
            Ok(())
        }
        Some((Step::Index(idx, _), [])) => set(tape, target, idx, new),
        Some((Step::Index(idx, ty), rest)) => {
            let mut part = get(tape, target, idx, Some(ty))?;
            set_path(tape, &mut part, rest, new)?;
            set(tape, target, idx, part)
        }
    }
}

/// Assigns `new` to the part of `target` that `idx` selects.
///
/// # Errors
/// Fails if an index is out of bounds, or if the part and `new` have different shapes.
pub fn set(tape: &Tape, target: &mut Sym, idx: &[Idx], new: Sym) -> FnResult<()> {
    if let Sym::Data(value) = target {
        if let Some(known) = new.known() {
            let known = known.into_owned();
            return index::set(Arc::make_mut(value), idx, known).map_err(|e| invalid(&e));
        }
        *target = match Dims::of_value(value) {
            Some(dims) => {
                let cells = value.numbers().into_iter().map(Cell::Const).collect();
                Sym::Flat(Flat {
                    dims: Rc::new(dims),
                    store: Store::Table(Rc::new(cells)),
                })
            }
            None => match target.parts() {
                Some(parts) => Sym::Complex(Rc::new(parts)),
                None => target
                    .unpacked()
                    .ok_or_else(|| shape_error("a known value", &new))?,
            },
        };
    }
    if let Sym::Complex(parts) = target {
        let [mut re, mut im] = (**parts).clone();
        let [new_re, new_im] = new.as_complex();
        set(tape, &mut re, idx, new_re)?;
        set(tape, &mut im, idx, new_im)?;
        *target = Sym::complex(re, im);
        return Ok(());
    }
    match target {
        Sym::Flat(flat) => {
            if let Some(offset) = scalar_offset(&flat.dims, idx) {
                let offset = offset?;
                flat.table()[offset] = match new {
                    Sym::Scalar(id) => Cell::Elem(id, 0),
                    Sym::Real(x) => Cell::Const(x),
                    Sym::Int(i) => Cell::Const(f64::from(i)),
                    other => return Err(shape_error("a real", &other)),
                };
                return Ok(());
            }
            let part = part(&flat.dims, idx)?;
            let found = new.dims()?;
            if found != part.dims && (found.size() > 0 || part.dims.size() > 0) {
                return Err(shape_error(&part.dims.describe(), &new));
            }
            let cells = new.to_cells(tape)?;
            let table = flat.table();
            for (offset, cell) in part.offsets.into_iter().zip(cells) {
                table[offset] = cell;
            }
            Ok(())
        }
        Sym::Array(elements) => {
            let pos = resolve(&idx[0], elements.len(), 1)?;
            let elements = Rc::make_mut(elements);
            if let Pos::One(i) = pos {
                return set(tape, &mut elements[i], &idx[1..], new);
            }
            for k in 0..pos.count() {
                let one = get(tape, &new, &[Idx::One(k as i32 + 1)], None)?;
                set(tape, &mut elements[pos.at(k)], &idx[1..], one)?;
            }
            Ok(())
        }
        _ if idx.is_empty() => {
            *target = new;
            Ok(())
        }
        _ => Err(invalid(&IndexError::TooMany)),
    }
}
