//! Symbolic values: the values of expressions that may depend on parameters.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use jensen_graph::NodeId;

use crate::program::Type;
use crate::symbolic::overlay::Overlay;
use crate::symbolic::tape::{E, Tape};
use crate::value::error::{FnError, FnResult};
use crate::value::{Mat, Value};

/// The interrupt is checked each time this many elements are processed. Processing these elements takes about as long
/// as one check.
const ASK_EVERY: usize = 256;

/// An unrolled loop handles a container element by element if the container has at most this many elements. The copies
/// of the loop body can then be recognised and merged again.
pub const SHORT: usize = 16;

/// The shape of a container of reals that is not an array, or of the elements of an array of such containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// `real`
    Scalar,
    /// `vector[n]`
    Vector(usize),
    /// `row_vector[n]`
    Row(usize),
    /// `matrix[rows, cols]`
    Matrix(usize, usize),
}

impl Leaf {
    /// Returns the number of elements.
    pub fn size(self) -> usize {
        match self {
            Leaf::Scalar => 1,
            Leaf::Vector(n) | Leaf::Row(n) => n,
            Leaf::Matrix(rows, cols) => rows * cols,
        }
    }

    /// Returns the numbers of rows and columns. A scalar is 1 × 1.
    pub fn extents(self) -> (usize, usize) {
        match self {
            Leaf::Scalar => (1, 1),
            Leaf::Vector(n) => (n, 1),
            Leaf::Row(n) => (1, n),
            Leaf::Matrix(rows, cols) => (rows, cols),
        }
    }
}

/// The extents of a container of reals. The elements of an array are stored one after another, in row-major order of
/// the array dimensions. Each element is stored in column-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dims {
    /// The array dimensions, outermost first.
    pub array: Vec<usize>,
    /// The shape of each array element.
    pub leaf: Leaf,
}

impl Dims {
    /// Creates the extents of a value that is not an array.
    pub fn leaf(leaf: Leaf) -> Dims {
        Dims {
            array: Vec::new(),
            leaf,
        }
    }

    /// Returns the number of reals.
    pub fn size(&self) -> usize {
        self.array.iter().product::<usize>() * self.leaf.size()
    }

    /// Returns the number of elements of the array.
    pub fn count(&self) -> usize {
        self.array.iter().product()
    }

    /// Returns all extents, starting with the array dimensions.
    pub fn extents(&self) -> Vec<usize> {
        let mut all = self.array.clone();
        match self.leaf {
            Leaf::Scalar => {}
            Leaf::Vector(n) | Leaf::Row(n) => all.push(n),
            Leaf::Matrix(rows, cols) => all.extend([rows, cols]),
        }
        all
    }

    /// Returns, for each extent, the distance in storage between neighbouring elements.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![0; self.array.len()];
        let mut stride = self.leaf.size();
        for (slot, extent) in strides.iter_mut().zip(&self.array).rev() {
            *slot = stride;
            stride *= extent;
        }
        match self.leaf {
            Leaf::Scalar => {}
            Leaf::Vector(_) | Leaf::Row(_) => strides.push(1),
            Leaf::Matrix(rows, _) => strides.extend([1, rows]),
        }
        strides
    }

    /// Returns whether the value is a single real.
    pub fn is_scalar(&self) -> bool {
        self.array.is_empty() && self.leaf == Leaf::Scalar
    }

    /// Describes the shape, such as `array[2,4] vector[3]`.
    pub fn describe(&self) -> String {
        let leaf = match self.leaf {
            Leaf::Scalar => "real".to_string(),
            Leaf::Vector(n) => format!("vector[{n}]"),
            Leaf::Row(n) => format!("row_vector[{n}]"),
            Leaf::Matrix(rows, cols) => format!("matrix[{rows},{cols}]"),
        };
        if self.array.is_empty() {
            return leaf;
        }
        let dims: Vec<String> = self.array.iter().map(usize::to_string).collect();
        format!("array[{}] {leaf}", dims.join(","))
    }

    /// Returns the extents of a known value that consists of reals or ints. Returns `None` for complex numbers and
    /// tuples.
    pub fn of_value(value: &Value) -> Option<Dims> {
        let mut array = Vec::new();
        let mut value = value;
        while let Value::Array(elements) = value {
            array.push(elements.len());
            match elements.first() {
                Some(first) => value = first,
                None => {
                    return Some(Dims {
                        array,
                        leaf: Leaf::Scalar,
                    });
                }
            }
        }
        let leaf = match value {
            Value::Int(_) | Value::Real(_) => Leaf::Scalar,
            Value::Ints(x) => {
                array.push(x.len());
                Leaf::Scalar
            }
            Value::Reals(x) => {
                array.push(x.len());
                Leaf::Scalar
            }
            Value::Vector(x) => Leaf::Vector(x.len()),
            Value::RowVector(x) => Leaf::Row(x.len()),
            Value::Matrix(m) => Leaf::Matrix(m.rows(), m.cols()),
            _ => return None,
        };
        Some(Dims { array, leaf })
    }

    /// Creates a known value with these extents.
    pub fn value(&self, numbers: &[f64]) -> Value {
        self.value_below(0, numbers)
    }

    fn value_below(&self, depth: usize, numbers: &[f64]) -> Value {
        if depth == self.array.len() {
            return match self.leaf {
                Leaf::Scalar => Value::Real(numbers[0]),
                Leaf::Vector(_) => Value::Vector(numbers.to_vec()),
                Leaf::Row(_) => Value::RowVector(numbers.to_vec()),
                Leaf::Matrix(rows, cols) => Value::Matrix(Mat::new(rows, cols, numbers.to_vec())),
            };
        }
        if depth + 1 == self.array.len() && self.leaf == Leaf::Scalar {
            return Value::Reals(numbers.to_vec());
        }
        let count = self.array[depth];
        let each = numbers.len().checked_div(count).unwrap_or(0);
        Value::Array(
            (0..count)
                .map(|i| self.value_below(depth + 1, &numbers[i * each..(i + 1) * each]))
                .collect(),
        )
    }
}

/// An element of a [`Store::Table`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    /// A known number.
    Const(f64),
    /// An element of a node.
    Elem(NodeId, u32),
}

/// The elements of a container.
#[derive(Clone, Debug)]
pub enum Store {
    /// All elements are in one node.
    Node(NodeId),
    /// Each element has its own [`Cell`].
    Table(Rc<Vec<Cell>>),
}

/// A container of reals.
#[derive(Clone, Debug)]
pub struct Flat {
    /// The extents of the container.
    pub dims: Rc<Dims>,
    /// The elements of the container.
    pub store: Store,
}

impl Flat {
    /// Returns the elements as separate cells, and changes the representation of the container if necessary.
    pub fn table(&mut self) -> &mut Vec<Cell> {
        if let Store::Node(id) = self.store {
            let cells = (0..self.dims.size())
                .map(|i| Cell::Elem(id, i as u32))
                .collect();
            self.store = Store::Table(Rc::new(cells));
        }
        match &mut self.store {
            Store::Table(cells) => Rc::make_mut(cells),
            Store::Node(_) => unreachable!("made a table above"),
        }
    }

    /// Returns element `i`.
    pub fn cell(&self, i: usize) -> Cell {
        match &self.store {
            Store::Node(id) => Cell::Elem(*id, i as u32),
            Store::Table(cells) => cells[i],
        }
    }

    /// Returns whether the value is stored element by element.
    pub fn is_table(&self) -> bool {
        matches!(self.store, Store::Table(_))
    }
}

/// A value of the language, which may be known or depend on parameters.
#[derive(Clone, Debug)]
pub enum Sym {
    /// A known `int`.
    Int(i32),
    /// A known `real`.
    Real(f64),
    /// Any other known value.
    Data(Arc<Value>),
    /// A scalar of the graph: a `real`, or an `int` that depends on parameters.
    Scalar(NodeId),
    /// A container of reals.
    Flat(Flat),
    /// An array whose elements are not containers of reals.
    Array(Rc<Vec<Sym>>),
    /// A tuple.
    Tuple(Rc<Vec<Sym>>),
    /// A complex number or container, as its real and imaginary parts.
    Complex(Rc<[Sym; 2]>),
    /// A container with one element per record. The variant stores the container for a single record, whose scalars
    /// have one value per record.
    Records(Rc<Sym>),
    /// A container to which the iterations of a loop write while the loop is vectorised.
    Overlay(Rc<Overlay>),
}

impl From<Value> for Sym {
    fn from(value: Value) -> Sym {
        match value {
            Value::Int(i) => Sym::Int(i),
            Value::Real(x) => Sym::Real(x),
            other => Sym::Data(Arc::new(other)),
        }
    }
}

impl From<Arc<Value>> for Sym {
    fn from(value: Arc<Value>) -> Sym {
        match &*value {
            Value::Int(i) => Sym::Int(*i),
            Value::Real(x) => Sym::Real(*x),
            _ => Sym::Data(value),
        }
    }
}

impl From<E<'_>> for Sym {
    fn from(e: E<'_>) -> Sym {
        match e.scalar() {
            Some(x) => Sym::Real(x),
            None => Sym::Scalar(e.id),
        }
    }
}

impl Sym {
    /// Creates a container from the elements of a node. If the node is known, so is the container.
    pub fn flat(dims: Dims, e: E<'_>) -> Sym {
        if dims.is_scalar() {
            return e.into();
        }
        if let Some(values) = e.values() {
            return dims.value(&values).into();
        }
        Sym::Flat(Flat {
            dims: Rc::new(dims),
            store: Store::Node(e.id),
        })
    }

    /// Creates a container from these elements. If all elements are known, the container is a known value.
    pub fn cells(dims: Dims, cells: Vec<Cell>) -> Sym {
        let known = |cell: &Cell| match cell {
            Cell::Const(x) => Some(*x),
            Cell::Elem(..) => None,
        };
        if let Some(values) = cells.iter().map(known).collect::<Option<Vec<f64>>>() {
            return dims.value(&values).into();
        }
        Sym::Flat(Flat {
            dims: Rc::new(dims),
            store: Store::Table(Rc::new(cells)),
        })
    }

    /// Returns the value if every part of it is known.
    pub fn known(&self) -> Option<Cow<'_, Value>> {
        Some(match self {
            Sym::Int(i) => Cow::Owned(Value::Int(*i)),
            Sym::Real(x) => Cow::Owned(Value::Real(*x)),
            Sym::Data(value) => Cow::Borrowed(value),
            Sym::Tuple(parts) => {
                let parts = parts.iter().map(|p| p.known().map(Cow::into_owned));
                Cow::Owned(Value::Tuple(parts.collect::<Option<Vec<Value>>>()?))
            }
            Sym::Scalar(_)
            | Sym::Flat(_)
            | Sym::Array(_)
            | Sym::Complex(_)
            | Sym::Records(_)
            | Sym::Overlay(_) => {
                return None;
            }
        })
    }

    /// Returns whether every part of the value is known.
    pub fn is_known(&self) -> bool {
        match self {
            Sym::Int(_) | Sym::Real(_) | Sym::Data(_) => true,
            Sym::Tuple(parts) => parts.iter().all(Sym::is_known),
            Sym::Scalar(_)
            | Sym::Flat(_)
            | Sym::Array(_)
            | Sym::Complex(_)
            | Sym::Records(_)
            | Sym::Overlay(_) => false,
        }
    }

    /// Returns a known `int`.
    ///
    /// # Errors
    /// Fails if the value depends on parameters.
    pub fn int(&self) -> FnResult<i32> {
        match self {
            Sym::Int(i) => Ok(*i),
            Sym::Scalar(_) => Err(FnError::unsupported(
                "an int that depends on parameters is not supported yet here, because the log density would be \
                 discontinuous",
            )),
            other => match other.known() {
                Some(value) => value.int(),
                None => Err(FnError::invalid("expected an int")),
            },
        }
    }

    /// Returns a known size or count.
    ///
    /// # Errors
    /// Fails if the value is negative or depends on parameters.
    pub fn size(&self, what: &str) -> FnResult<usize> {
        let n = self.int()?;
        usize::try_from(n)
            .map_err(|_| FnError::invalid(format!("{what} is {n}, but must not be negative")))
    }

    /// Returns the extents of a real, an int, or a container of reals or ints.
    ///
    /// # Errors
    /// Fails for tuples and complex numbers.
    pub fn dims(&self) -> FnResult<Dims> {
        match self {
            Sym::Int(_) | Sym::Real(_) | Sym::Scalar(_) => Ok(Dims::leaf(Leaf::Scalar)),
            Sym::Data(value) => Dims::of_value(value).ok_or_else(complex_here),
            Sym::Complex(_) => Err(complex_here()),
            Sym::Flat(flat) => Ok((*flat.dims).clone()),
            Sym::Array(_) | Sym::Tuple(_) => Err(FnError::unsupported(
                "tuples are not supported yet in this part of the log density",
            )),
            Sym::Records(_) => Err(interacting()),
            Sym::Overlay(_) => Err(whole_overlay()),
        }
    }

    /// Returns whether the value is a single number.
    pub fn is_scalar(&self) -> bool {
        matches!(self, Sym::Int(_) | Sym::Real(_) | Sym::Scalar(_))
    }

    /// Describes the shape in words.
    pub fn describe(&self) -> String {
        match self {
            Sym::Int(_) => "int".into(),
            Sym::Real(_) | Sym::Scalar(_) => "real".into(),
            Sym::Data(value) => value.describe(),
            Sym::Flat(flat) => flat.dims.describe(),
            Sym::Array(x) => match x.first() {
                Some(first) => format!("array[{}] of {}", x.len(), first.describe()),
                None => "array[0] of nothing".into(),
            },
            Sym::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(Sym::describe).collect();
                format!("tuple({})", parts.join(", "))
            }
            Sym::Complex(parts) => format!("complex of {}", parts[0].describe()),
            Sym::Records(one) => format!("{} for each record", one.describe()),
            Sym::Overlay(overlay) => overlay.dims.describe(),
        }
    }

    /// Returns all elements as one node.
    ///
    /// # Errors
    /// Fails for tuples and complex numbers.
    pub fn e<'g>(&self, tape: &'g Tape) -> FnResult<E<'g>> {
        Ok(match self {
            Sym::Int(i) => tape.constant(f64::from(*i)),
            Sym::Real(x) => tape.constant(*x),
            Sym::Scalar(id) => tape.e(*id),
            Sym::Data(value) => {
                self.dims()?;
                match &**value {
                    Value::Vector(x) | Value::RowVector(x) | Value::Reals(x) => tape.vector(x),
                    Value::Matrix(m) => tape.vector(m.data()),
                    other => tape.vector(&other.numbers()),
                }
            }
            Sym::Flat(flat) => match &flat.store {
                Store::Node(id) => tape.e(*id),
                Store::Table(cells) => assemble(tape, cells),
            },
            Sym::Array(_) | Sym::Tuple(_) | Sym::Complex(_) | Sym::Records(_) | Sym::Overlay(_) => {
                self.dims()?;
                return Err(FnError::unsupported("tuples are not supported yet here"));
            }
        })
    }

    /// Returns element `i` in storage order.
    ///
    /// # Errors
    /// Fails for tuples and complex numbers.
    pub fn element<'g>(&self, tape: &'g Tape, i: usize) -> FnResult<E<'g>> {
        Ok(match self {
            Sym::Flat(flat) => cell_e(tape, flat.cell(i)),
            Sym::Data(value) => match &**value {
                Value::Vector(x) | Value::RowVector(x) | Value::Reals(x) => tape.constant(x[i]),
                Value::Matrix(m) => tape.constant(m.data()[i]),
                Value::Ints(x) => tape.constant(f64::from(x[i])),
                other => tape.constant(other.numbers()[i]),
            },
            other => other.e(tape)?.at(i),
        })
    }

    /// Returns each element separately.
    ///
    /// # Errors
    /// Fails for tuples and complex numbers.
    pub fn elements<'g>(&self, tape: &'g Tape) -> FnResult<Vec<E<'g>>> {
        let n = self.dims()?.size();
        let numbers = match self {
            Sym::Data(value) => Some(value.numbers()),
            _ => None,
        };
        let element = |i: usize| {
            if i.is_multiple_of(ASK_EVERY) {
                tape.go_on()?;
            }
            match &numbers {
                Some(numbers) => Ok(tape.constant(numbers[i])),
                None => self.element(tape, i),
            }
        };
        (0..n).map(element).collect()
    }

    /// Returns all elements as cells.
    ///
    /// # Errors
    /// Fails for tuples and complex numbers.
    pub fn to_cells(&self, tape: &Tape) -> FnResult<Vec<Cell>> {
        Ok(match self {
            Sym::Flat(flat) => match &flat.store {
                Store::Table(cells) => (**cells).clone(),
                Store::Node(id) => (0..flat.dims.size())
                    .map(|i| Cell::Elem(*id, i as u32))
                    .collect(),
            },
            Sym::Scalar(id) => vec![Cell::Elem(*id, 0)],
            Sym::Array(_) | Sym::Tuple(_) | Sym::Complex(_) | Sym::Records(_) | Sym::Overlay(_) => {
                self.e(tape)?;
                Vec::new()
            }
            Sym::Int(i) => vec![Cell::Const(f64::from(*i))],
            Sym::Real(x) => vec![Cell::Const(*x)],
            Sym::Data(value) => {
                self.dims()?;
                value.numbers().into_iter().map(Cell::Const).collect()
            }
        })
    }

    /// Returns whether the elements should be handled separately. The elements of a value with one value per record are
    /// handled separately. So are the elements of a short value if it is stored element by element or used inside an
    /// unrolled loop.
    pub fn is_short_table(&self, tape: &Tape) -> bool {
        match self {
            Sym::Flat(flat) => {
                (tape.unrolling.get() || flat.is_table()) && (2..=SHORT).contains(&flat.dims.size())
                    || self.has_records(tape)
            }
            _ => false,
        }
    }

    /// If the value is a container with one element per record, returns the container for a single record. Returns any
    /// other value unchanged.
    pub fn one_record(&self) -> Sym {
        match self {
            Sym::Records(one) => (**one).clone(),
            other => other.clone(),
        }
    }

    /// Returns whether at least one element has one value for each record.
    pub fn has_records(&self, tape: &Tape) -> bool {
        if tape.records.get().is_none() {
            return false;
        }
        match self {
            Sym::Scalar(id) => tape.e(*id).is_record(),
            Sym::Flat(flat) => match &flat.store {
                Store::Node(id) => tape.e(*id).is_record(),
                Store::Table(cells) => cells
                    .iter()
                    .any(|cell| matches!(cell, Cell::Elem(id, _) if tape.e(*id).is_record())),
            },
            Sym::Array(parts) | Sym::Tuple(parts) => parts.iter().any(|p| p.has_records(tape)),
            Sym::Complex(parts) => parts.iter().any(|p| p.has_records(tape)),
            Sym::Records(_) | Sym::Overlay(_) => true,
            Sym::Int(_) | Sym::Real(_) | Sym::Data(_) => false,
        }
    }

    /// Returns a tuple, or an array of tuples, in a form whose parts are separate values. Returns `None` for other
    /// values.
    pub fn unpacked(&self) -> Option<Sym> {
        let apart = |parts: &[Value]| Rc::new(parts.iter().cloned().map(Sym::from).collect());
        match self {
            Sym::Tuple(_) | Sym::Array(_) => Some(self.clone()),
            Sym::Data(value) => match &**value {
                Value::Tuple(parts) => Some(Sym::Tuple(apart(parts))),
                Value::Array(parts) => Some(Sym::Array(apart(parts))),
                _ => None,
            },
            _ => None,
        }
    }

    /// Converts the value to type `ty`. If `ty` contains ints, numbers that the graph computed as reals are converted
    /// back to ints.
    pub fn of(self, ty: &Type) -> Sym {
        let int = |x: f64| (x.fract() == 0.0 && x.abs() <= f64::from(i32::MAX)).then_some(x as i32);
        match &self {
            Sym::Real(x) if *ty == Type::Int => int(*x).map_or(self, Sym::Int),
            Sym::Data(value) if ty.is_discrete() => match &**value {
                Value::Reals(x) => match x.iter().map(|x| int(*x)).collect::<Option<Vec<i32>>>() {
                    Some(ints) => Value::Ints(ints).into(),
                    None => self,
                },
                _ => self,
            },
            _ => self,
        }
    }

    /// Promotes the value to type `ty`.
    pub fn promote(self, ty: &Type) -> Sym {
        match self {
            Sym::Int(i) if *ty == Type::Real => Sym::Real(f64::from(i)),
            Sym::Int(_) | Sym::Real(_) | Sym::Data(_) => match self.known() {
                Some(value) => value.into_owned().promote(ty).into(),
                None => self,
            },
            Sym::Tuple(parts) => match ty {
                Type::Tuple(types) => {
                    let parts = parts.iter().cloned().zip(types).map(|(p, t)| p.promote(t));
                    Sym::Tuple(Rc::new(parts.collect()))
                }
                _ => Sym::Tuple(parts),
            },
            other if ty.has_complex() && other.dims().is_ok() => {
                let [re, im] = other.as_complex();
                Sym::complex(re, im)
            }
            other => other,
        }
    }
}

fn complex_here() -> FnError {
    FnError::unsupported("complex numbers are not supported yet in this part of the log density")
}

/// Returns the error for a function that would need all records at once.
pub fn interacting() -> FnError {
    FnError::records(
        "records interact: this needs all records together, so the log density is not a sum over records",
    )
}

fn whole_overlay() -> FnError {
    FnError::records("an iteration of the loop reads a whole container that iterations assign to")
}

/// Converts a cell to a scalar.
pub fn cell_e(tape: &Tape, cell: Cell) -> E<'_> {
    match cell {
        Cell::Const(x) => tape.constant(x),
        Cell::Elem(id, i) => tape.e(id).at(i as usize),
    }
}

/// Converts a scalar to a cell.
pub fn e_cell(e: E<'_>) -> Cell {
    match e.scalar() {
        Some(x) => Cell::Const(x),
        None => Cell::Elem(e.id, 0),
    }
}

/// Returns a node with these elements. Consecutive constants form one vector, and consecutive elements of the same node
/// are gathered by one operation.
pub fn assemble<'g>(tape: &'g Tape, cells: &[Cell]) -> E<'g> {
    let mut parts: Vec<E<'g>> = Vec::new();
    let mut at = 0;
    while at < cells.len() {
        let start = at;
        match cells[at] {
            Cell::Const(_) => {
                let mut run = Vec::new();
                while let Some(Cell::Const(x)) = cells.get(at) {
                    run.push(*x);
                    at += 1;
                }
                parts.push(tape.vector(&run));
            }
            Cell::Elem(id, _) => {
                while matches!(cells.get(at), Some(Cell::Elem(other, _)) if *other == id) {
                    at += 1;
                }
                let index: Vec<u32> = cells[start..at]
                    .iter()
                    .map(|cell| match cell {
                        Cell::Elem(_, i) => *i,
                        Cell::Const(_) => 0,
                    })
                    .collect();
                let source = tape.e(id);
                parts.push(if index == [0] && source.len() == 1 {
                    source
                } else {
                    source.gather(&index)
                });
            }
        }
    }
    tape.concat(&parts)
}

impl Sym {
    /// Returns the elements at the storage positions `index`, as a value with the extents `dims`.
    ///
    /// # Errors
    /// Fails for tuples and complex numbers.
    pub fn pick(&self, tape: &Tape, index: &[usize], dims: Dims) -> FnResult<Sym> {
        Ok(match self {
            Sym::Flat(Flat {
                store: Store::Table(cells),
                ..
            }) => Sym::cells(dims, index.iter().map(|i| cells[*i]).collect()),
            _ => {
                let index: Vec<u32> = index.iter().map(|i| *i as u32).collect();
                Sym::flat(dims, self.e(tape)?.gather(&index))
            }
        })
    }

    /// Creates a container from these elements. A short container is stored element by element, and a longer container
    /// is stored as one node.
    pub fn joined(tape: &Tape, dims: Dims, cells: Vec<Cell>) -> Sym {
        if dims.is_scalar() {
            return match cells[0] {
                Cell::Const(x) => Sym::Real(x),
                cell => cell_e(tape, cell).into(),
            };
        }
        if cells.len() <= SHORT {
            Sym::cells(dims, cells)
        } else {
            Sym::flat(dims, assemble(tape, &cells))
        }
    }
}
