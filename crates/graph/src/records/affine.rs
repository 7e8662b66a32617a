//! Finds values that are affine functions of the draw in the graph of a likelihood. The coefficients are computed from
//! the data of each record.

use std::sync::Arc;

use crate::ir::{Graph, NodeId, RecordColumn};
use crate::ops::{ElemOp, Op};

/// A number that belongs to a record and does not depend on parameters.
#[derive(Clone, Debug)]
pub(super) enum Data {
    Constant(f64),
    /// Element `at` among the `width` numbers of a record, multiplied by a factor.
    Column {
        values: Arc<[f64]>,
        width: usize,
        at: usize,
        factor: f64,
    },
}

impl Data {
    pub(super) fn of(&self, record: u32) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Column {
                values,
                width,
                at,
                factor,
            } => factor * values[record as usize * width + at],
        }
    }

    fn is(&self, value: f64) -> bool {
        matches!(self, Self::Constant(x) if *x == value)
    }

    /// Returns whether `other` is `factor` times this number.
    pub(super) fn is_times(&self, factor: f64, other: &Self) -> bool {
        match (self, other) {
            (Self::Constant(a), Self::Constant(b)) => a * factor == *b,
            (
                Self::Column {
                    values,
                    width,
                    at,
                    factor: of_this,
                },
                Self::Column {
                    values: v,
                    width: w,
                    at: a,
                    factor: of_other,
                },
            ) => Arc::ptr_eq(values, v) && width == w && at == a && of_this * factor == *of_other,
            _ => false,
        }
    }

    fn apply(op: ElemOp, args: &[&Self], records: usize) -> Self {
        let constants: Option<Vec<f64>> = args
            .iter()
            .map(|arg| match arg {
                Self::Constant(value) => Some(*value),
                Self::Column { .. } => None,
            })
            .collect();
        if let Some(values) = constants {
            return Self::Constant(op.value(&values));
        }
        let mut row = vec![0.0; args.len()];
        let values = (0..records as u32).map(|r| {
            for (slot, arg) in row.iter_mut().zip(args) {
                *slot = arg.of(r);
            }
            op.value(&row)
        });
        Self::Column {
            values: values.collect(),
            width: 1,
            at: 0,
            factor: 1.0,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Coordinate {
    Fixed(u32),
    /// A coordinate that depends on the record: the coordinate of record r is `table[indices[r]]`.
    ByRecord {
        indices: Arc<[u32]>,
        table: Arc<[u32]>,
    },
}

impl Coordinate {
    pub(super) fn of(&self, record: u32) -> u32 {
        match self {
            Self::Fixed(coordinate) => *coordinate,
            Self::ByRecord { indices, table } => table[indices[record as usize] as usize],
        }
    }

    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fixed(a), Self::Fixed(b)) => a == b,
            (
                Self::ByRecord { indices, table },
                Self::ByRecord {
                    indices: i,
                    table: t,
                },
            ) => Arc::ptr_eq(indices, i) && table == t,
            _ => false,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Term {
    pub(super) coordinate: Coordinate,
    pub(super) coefficient: Data,
}

impl Term {
    /// Returns whether `other` is `factor` times this term.
    pub(super) fn is_times(&self, factor: f64, other: &Self) -> bool {
        self.coordinate.same(&other.coordinate)
            && self.coefficient.is_times(factor, &other.coefficient)
    }
}

/// The affine function `Σ coefficient · coordinate + offset`.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) terms: Vec<Term>,
    pub(super) offset: Data,
}

#[derive(Clone, Debug)]
pub(super) enum Element {
    Data(Data),
    Affine(Arc<Form>),
    Other,
}

impl Element {
    fn form(&self) -> Option<Form> {
        match self {
            Self::Data(offset) => Some(Form {
                terms: Vec::new(),
                offset: offset.clone(),
            }),
            Self::Affine(form) => Some(Form::clone(form)),
            Self::Other => None,
        }
    }
}

/// The largest number of terms of an affine function. For more terms, a matrix product is faster.
const TERMS: usize = 4096;

pub(super) fn elements(graph: &Graph) -> Vec<Vec<Element>> {
    let records = graph.record_count().unwrap_or(0);
    let mut found: Vec<Vec<Element>> = Vec::with_capacity(graph.len());
    for id in graph.ids() {
        let elements = look(graph, id, &found, records);
        found.push(elements);
    }
    found
}

fn look(graph: &Graph, id: NodeId, found: &[Vec<Element>], records: usize) -> Vec<Element> {
    let len = graph.shape(id).len as usize;
    let arg = |k: usize| found[graph.args(id)[k].index()].as_slice();
    match graph.op(id) {
        Op::Const(_) => {
            let values = graph.constant_value(id).unwrap_or(&[]);
            let data = values.iter().map(|v| Element::Data(Data::Constant(*v)));
            data.collect()
        }
        Op::Input(0) => (0..len as u32)
            .map(|i| {
                Element::Affine(Arc::new(Form {
                    terms: vec![Term {
                        coordinate: Coordinate::Fixed(i),
                        coefficient: Data::Constant(1.0),
                    }],
                    offset: Data::Constant(0.0),
                }))
            })
            .collect(),
        Op::Record(column) => match graph.record_data(column) {
            RecordColumn::Values { width, values } => (0..len)
                .map(|at| {
                    Element::Data(Data::Column {
                        values: values.clone(),
                        width: *width,
                        at,
                        factor: 1.0,
                    })
                })
                .collect(),
            RecordColumn::Indices(_) => vec![Element::Other; len],
        },
        Op::Gather(index) => {
            let from = arg(0);
            let index = graph.index_data(index).iter();
            index.map(|i| from[*i as usize].clone()).collect()
        }
        Op::GatherRecord(column) => match graph.record_data(column) {
            RecordColumn::Indices(indices) => vec![by_record(indices, arg(0)); len],
            RecordColumn::Values { .. } => vec![Element::Other; len],
        },
        Op::Concat => (0..graph.args(id).len())
            .flat_map(|k| arg(k).iter().cloned())
            .collect(),
        Op::Broadcast => vec![arg(0)[0].clone(); len],
        Op::Elem(op) => (0..len)
            .map(|i| {
                let args: Vec<&Element> = (0..graph.args(id).len())
                    .map(|k| match arg(k) {
                        [one] => one,
                        all => &all[i],
                    })
                    .collect();
                elementwise(op, &args, records)
            })
            .collect(),
        _ => vec![Element::Other; len],
    }
}

fn by_record(indices: &Arc<[u32]>, from: &[Element]) -> Element {
    let column = |values: Vec<f64>| {
        if values
            .windows(2)
            .all(|pair| pair[0].to_bits() == pair[1].to_bits())
        {
            return Data::Constant(values.first().copied().unwrap_or(0.0));
        }
        Data::Column {
            values: indices.iter().map(|&i| values[i as usize]).collect(),
            width: 1,
            at: 0,
            factor: 1.0,
        }
    };
    let (mut coordinates, mut coefficients, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
    for element in from {
        match element {
            Element::Data(Data::Constant(value)) => offsets.push(*value),
            Element::Affine(form) => match (form.terms.as_slice(), &form.offset) {
                (
                    [
                        Term {
                            coordinate: Coordinate::Fixed(coordinate),
                            coefficient: Data::Constant(coefficient),
                        },
                    ],
                    Data::Constant(offset),
                ) => {
                    coordinates.push(*coordinate);
                    coefficients.push(*coefficient);
                    offsets.push(*offset);
                }
                _ => return Element::Other,
            },
            _ => return Element::Other,
        }
    }
    if coordinates.is_empty() {
        return Element::Data(column(offsets));
    }
    if coordinates.len() < from.len() {
        return Element::Other;
    }
    Element::Affine(Arc::new(Form {
        terms: vec![Term {
            coordinate: Coordinate::ByRecord {
                indices: indices.clone(),
                table: coordinates.into(),
            },
            coefficient: column(coefficients),
        }],
        offset: column(offsets),
    }))
}

fn elementwise(op: ElemOp, args: &[&Element], records: usize) -> Element {
    let data: Option<Vec<&Data>> = args
        .iter()
        .map(|arg| match arg {
            Element::Data(data) => Some(data),
            _ => None,
        })
        .collect();
    if let Some(data) = data {
        return Element::Data(Data::apply(op, &data, records));
    }
    affine(op, args, records).map_or(Element::Other, |form| Element::Affine(Arc::new(form)))
}

fn affine(op: ElemOp, args: &[&Element], records: usize) -> Option<Form> {
    let add = |a: Form, b: Form| -> Option<Form> {
        let mut terms = a.terms;
        terms.extend(b.terms);
        (terms.len() <= TERMS).then(|| Form {
            terms,
            offset: sum(&a.offset, &b.offset, records),
        })
    };
    let times = |a: &Element, b: &Element| match (a, b) {
        (Element::Data(factor), other) | (other, Element::Data(factor)) => {
            Some(scaled(other.form()?, factor, records))
        }
        _ => None,
    };
    let minus = Data::Constant(-1.0);
    match op {
        ElemOp::Neg => Some(scaled(args[0].form()?, &minus, records)),
        ElemOp::Add => add(args[0].form()?, args[1].form()?),
        ElemOp::Sub => add(args[0].form()?, scaled(args[1].form()?, &minus, records)),
        ElemOp::Mul => times(args[0], args[1]),
        ElemOp::Fma => add(args[2].form()?, times(args[0], args[1])?),
        ElemOp::Div => match args[1] {
            Element::Data(divisor) => {
                let factor = Data::apply(ElemOp::Recip, &[divisor], records);
                Some(scaled(args[0].form()?, &factor, records))
            }
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn sum(a: &Data, b: &Data, records: usize) -> Data {
    match (a, b) {
        (zero, other) | (other, zero) if zero.is(0.0) => other.clone(),
        _ => Data::apply(ElemOp::Add, &[a, b], records),
    }
}

fn product(a: &Data, b: &Data, records: usize) -> Data {
    match (a, b) {
        (one, other) | (other, one) if one.is(1.0) => other.clone(),
        (Data::Constant(constant), column @ Data::Column { .. })
        | (column @ Data::Column { .. }, Data::Constant(constant)) => {
            let mut scaled = column.clone();
            if let Data::Column { factor, .. } = &mut scaled {
                *factor *= constant;
            }
            scaled
        }
        _ => Data::apply(ElemOp::Mul, &[a, b], records),
    }
}

fn scaled(form: Form, factor: &Data, records: usize) -> Form {
    let terms = form.terms.into_iter().map(|term| Term {
        coefficient: product(&term.coefficient, factor, records),
        ..term
    });
    Form {
        terms: terms.collect(),
        offset: product(&form.offset, factor, records),
    }
}
