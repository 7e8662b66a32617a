//! Expresses a likelihood as a function of a few linear predictors per record.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jensen_density::{
    Lanes, LanesMut, LinearPredictor, LinkExpectations, LogDensity, PredictorScratch,
    TwiceDifferentiable,
};

use super::affine::{Coordinate, Data, Element, Form, Term, elements};
use crate::density::{Execution, GraphDensity, GraphWorkspace};
use crate::ir::{Graph, NodeId, Shape};
use crate::ops::Op;

/// The largest number of predictors per record. A table may also have at most this many values per record.
const WIDTH: usize = 4;

const COLUMNS: usize = 64;

/// The predictors and the link of a likelihood `ℓₙ(Aₙ z)`, as found in the graph of the likelihood. A value is a
/// predictor if it is affine in the draw and an argument of an operation that is not affine. The link consists of the
/// operations that follow the predictors, applied to one record.
pub(super) struct Linear {
    predictors: Vec<Predictor>,
    data: Vec<Data>,
    /// The log likelihood of a record, as a function of its predictors and its data. Each lane evaluates one record.
    link: GraphDensity,
    pool: Mutex<Vec<LinkWorkspace>>,
}

/// The terms of one predictor. Terms whose coordinate is the same for all records come first, in ascending order of
/// this coordinate.
struct Predictor {
    coordinates: Vec<u32>,
    coefficients: Vec<Data>,
    by_record: Vec<Term>,
}

impl Predictor {
    fn new(terms: &[Term], records: usize) -> Self {
        let mut fixed: BTreeMap<u32, Data> = BTreeMap::new();
        let mut by_record = Vec::new();
        for term in terms {
            match &term.coordinate {
                Coordinate::Fixed(coordinate) => {
                    let sum = match fixed.get(coordinate) {
                        Some(other) => super::affine::sum(other, &term.coefficient, records),
                        None => term.coefficient.clone(),
                    };
                    fixed.insert(*coordinate, sum);
                }
                Coordinate::ByRecord { .. } => by_record.push(term.clone()),
            }
        }
        let (coordinates, coefficients) = fixed.into_iter().unzip();
        Self {
            coordinates,
            coefficients,
            by_record,
        }
    }

    fn stride(&self) -> usize {
        self.coordinates.len() + 2 * self.by_record.len()
    }

    /// Writes the coefficients of the coordinates that are common to all records. After these, the coordinates that
    /// belong to this record are written with their coefficients. If a coordinate occurs several times, its
    /// coefficients are summed.
    fn gather(&self, record: u32, out: &mut [f64]) {
        let (fixed, own) = out.split_at_mut(self.coordinates.len());
        for (out, data) in fixed.iter_mut().zip(&self.coefficients) {
            *out = data.of(record);
        }
        for (k, term) in self.by_record.iter().enumerate() {
            let coordinate = term.coordinate.of(record);
            let mut coefficient = term.coefficient.of(record);
            if let Ok(at) = self.coordinates.binary_search(&coordinate) {
                fixed[at] += coefficient;
                coefficient = 0.0;
            } else {
                let earlier = (0..k).find(|&e| own[2 * e] == f64::from(coordinate));
                if let Some(earlier) = earlier {
                    own[2 * earlier + 1] += coefficient;
                    coefficient = 0.0;
                }
            }
            own[2 * k] = f64::from(coordinate);
            own[2 * k + 1] = coefficient;
        }
    }

    fn each(&self, row: &[f64], mut f: impl FnMut(usize, f64)) {
        let (fixed, own) = row.split_at(self.coordinates.len());
        for (coordinate, coefficient) in self.coordinates.iter().zip(fixed) {
            f(*coordinate as usize, *coefficient);
        }
        for pair in own.chunks_exact(2) {
            f(pair[0] as usize, pair[1]);
        }
    }
}

#[derive(Default)]
struct LinkWorkspace {
    graph: GraphWorkspace,
    input: Vec<f64>,
    direction: Vec<f64>,
    values: Vec<f64>,
    gradient: Vec<f64>,
}

/// Builds the graph of the link, which is the likelihood with a single record in place of all records.
struct Builder<'g> {
    from: &'g Graph,
    elements: Vec<Vec<Element>>,
    predictors: Vec<Vec<Term>>,
    data: Vec<Data>,
}

/// An element of the graph of the link. Elements are collected before the graph is built, because its inputs must be
/// counted first.
#[derive(Clone)]
enum Leaf {
    Constant(f64),
    Data(usize),
    /// A predictor. The flag states whether the predictor is negated, and the last field is added to the result.
    Predictor(usize, bool, Box<Leaf>),
}

impl Builder<'_> {
    fn data(&mut self, data: &Data) -> Option<Leaf> {
        if let Data::Constant(value) = data {
            return Some(Leaf::Constant(*value));
        }
        let at = match self.data.iter().position(|other| other.is_times(1.0, data)) {
            Some(at) => at,
            None => {
                self.data.push(data.clone());
                self.data.len() - 1
            }
        };
        (self.data.len() <= COLUMNS).then_some(Leaf::Data(at))
    }

    fn predictor(&mut self, form: &Form) -> Option<Leaf> {
        let offset = self.data(&form.offset)?;
        let position = |factor: f64| {
            let same = |terms: &Vec<Term>| {
                let mut pairs = terms.iter().zip(&form.terms);
                terms.len() == form.terms.len() && pairs.all(|(a, b)| a.is_times(factor, b))
            };
            self.predictors.iter().position(same)
        };
        let (at, negated) = match (position(1.0), position(-1.0)) {
            (Some(at), _) => (at, false),
            (None, Some(at)) => (at, true),
            (None, None) => {
                self.predictors.push(form.terms.clone());
                (self.predictors.len() - 1, false)
            }
        };
        let leaf = Leaf::Predictor(at, negated, Box::new(offset));
        (self.predictors.len() <= WIDTH).then_some(leaf)
    }

    fn leaves(&mut self, id: NodeId) -> Option<Option<Vec<Leaf>>> {
        let elements = self.elements[id.index()].clone();
        if elements.iter().any(|e| matches!(e, Element::Other)) {
            return Some(None);
        }
        let mut leaves = Vec::with_capacity(elements.len());
        for element in &elements {
            leaves.push(match element {
                Element::Data(data) => self.data(data)?,
                Element::Affine(form) => self.predictor(form)?,
                Element::Other => return None,
            });
        }
        Some(Some(leaves))
    }

    /// Builds the link, or returns `None` if the likelihood is not a function of a few predictors.
    fn link(&mut self, root: NodeId) -> Option<Graph> {
        // The nodes that must be rebuilt, and the elements that replace the others.
        let mut needed = vec![false; root.index() + 1];
        let mut leaves: Vec<Option<Vec<Leaf>>> = vec![None; root.index() + 1];
        needed[root.index()] = true;
        for at in (0..=root.index()).rev() {
            if !needed[at] {
                continue;
            }
            let id = NodeId::new(at);
            leaves[at] = self.leaves(id)?;
            if leaves[at].is_some() {
                continue;
            }
            match self.from.op(id) {
                // A record selects an element of a vector that is not affine in the draw.
                Op::GatherRecord(_) | Op::Input(_) | Op::Record(_) => return None,
                _ => {}
            }
            for arg in self.from.args(id) {
                needed[arg.index()] = true;
            }
        }
        if self.predictors.is_empty() {
            return None;
        }
        let width = self.predictors.len();
        let mut graph = Graph::new();
        let input = graph.input(width + self.data.len());
        let mut made: Vec<Option<NodeId>> = vec![None; root.index() + 1];
        for at in (0..=root.index()).filter(|at| needed[*at]) {
            let id = NodeId::new(at);
            let shape = Shape::fixed(self.from.shape(id).len as usize);
            made[at] = Some(match &leaves[at] {
                Some(leaves) => {
                    let parts: Vec<NodeId> = leaves
                        .iter()
                        .map(|leaf| make_leaf(&mut graph, input, width, leaf))
                        .collect();
                    match parts.as_slice() {
                        [one] => *one,
                        all => graph.concat(all),
                    }
                }
                None => {
                    let args: Option<Vec<NodeId>> = self
                        .from
                        .args(id)
                        .iter()
                        .map(|arg| made[arg.index()])
                        .collect();
                    let args = args?;
                    match self.from.op(id) {
                        Op::RecordCount => graph.constant(1.0),
                        Op::Gather(index) => {
                            let index = self.from.index_data(index).clone();
                            graph.gather(args[0], &index)
                        }
                        Op::Elem(op) => graph.elem(op, &args),
                        Op::Broadcast => graph.broadcast(args[0], shape),
                        Op::Concat => graph.concat(&args),
                        Op::Sum => graph.sum(args[0]),
                        _ => return None,
                    }
                }
            });
        }
        graph.set_outputs(vec![made[root.index()]?]);
        Some(graph)
    }
}

fn make_leaf(graph: &mut Graph, input: NodeId, width: usize, leaf: &Leaf) -> NodeId {
    match leaf {
        Leaf::Constant(value) => graph.constant(*value),
        Leaf::Data(at) => graph.gather(input, &[(width + at) as u32]),
        Leaf::Predictor(at, negated, offset) => {
            let mut eta = graph.gather(input, &[*at as u32]);
            if *negated {
                eta = graph.neg(eta);
            }
            match **offset {
                Leaf::Constant(0.0) => eta,
                ref other => {
                    let offset = make_leaf(graph, input, width, other);
                    graph.add(eta, offset)
                }
            }
        }
    }
}

impl Linear {
    /// Finds the predictors of a likelihood, which is output 0 of `graph`. Returns `None` if the likelihood is not a
    /// function of a few predictors.
    pub(super) fn of(graph: &Graph, execution: Execution) -> Option<Self> {
        let mut builder = Builder {
            from: graph,
            elements: elements(graph),
            predictors: Vec::new(),
            data: Vec::new(),
        };
        let link = builder.link(graph.outputs()[0])?;
        let records = graph.record_count()?;
        Some(Self {
            predictors: builder
                .predictors
                .iter()
                .map(|terms| Predictor::new(terms, records))
                .collect(),
            data: builder.data,
            link: GraphDensity::new(&link, execution),
            pool: Mutex::new(Vec::new()),
        })
    }

    fn stride(&self) -> usize {
        self.predictors.iter().map(Predictor::stride).sum()
    }

    fn gathered<'s>(&self, scratch: &'s mut PredictorScratch, batch: &[u32]) -> &'s [f64] {
        if scratch.batch != batch || scratch.values.is_empty() {
            let stride = self.stride();
            scratch.values.resize(batch.len() * stride, 0.0);
            for (row, &record) in scratch.values.chunks_exact_mut(stride).zip(batch) {
                let mut at = 0;
                for predictor in &self.predictors {
                    let next = at + predictor.stride();
                    predictor.gather(record, &mut row[at..next]);
                    at = next;
                }
            }
            scratch.batch.clear();
            scratch.batch.extend_from_slice(batch);
        }
        &scratch.values
    }

    /// Calls `f` with the row of η, the coordinate and the coefficient of each term, in the order of the batch.
    fn each(&self, gathered: &[f64], mut f: impl FnMut(usize, usize, f64)) {
        let width = self.predictors.len();
        for (b, row) in gathered.chunks_exact(self.stride()).enumerate() {
            let mut at = 0;
            for (k, predictor) in self.predictors.iter().enumerate() {
                let next = at + predictor.stride();
                predictor.each(&row[at..next], |i, c| f(b * width + k, i, c));
                at = next;
            }
        }
    }

    /// Calls a closure with scratch memory for the input of the link. This input has one lane for every pair of a
    /// record and a lane of `eta`. The lanes of a record are adjacent.
    fn with_link<T>(
        &self,
        batch: &[u32],
        eta: Lanes<'_>,
        run: impl FnOnce(&mut LinkWorkspace, usize) -> T,
    ) -> T {
        let pool = || self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ws = pool().pop().unwrap_or_default();
        let (width, lanes) = (self.predictors.len(), eta.lanes());
        let total = batch.len() * lanes;
        let rows = width + self.data.len();
        ws.input.resize(rows * total, 0.0);
        spread(eta, width, &mut ws.input);
        for (k, data) in self.data.iter().enumerate() {
            let row = &mut ws.input[(width + k) * total..(width + k + 1) * total];
            for (part, &record) in row.chunks_exact_mut(lanes.max(1)).zip(batch) {
                part.fill(data.of(record));
            }
        }
        let out = run(&mut ws, total);
        pool().push(ws);
        out
    }
}

/// Rearranges a matrix of `(B·K) × lanes` elements to `K × (B·lanes)`.
fn spread(eta: Lanes<'_>, width: usize, out: &mut [f64]) {
    let lanes = eta.lanes();
    let total = eta.rows() / width * lanes;
    for row in 0..eta.rows() {
        let (b, k) = (row / width, row % width);
        out[k * total + b * lanes..][..lanes].copy_from_slice(eta.row(row));
    }
}

/// Reverses the rearrangement of [`spread`] for the first `width` rows.
fn collect(x: &[f64], width: usize, out: &mut LanesMut<'_>) {
    let (rows, lanes) = (out.rows(), out.lanes());
    let total = rows / width * lanes;
    let out = out.as_mut_slice();
    for row in 0..rows {
        let (b, k) = (row / width, row % width);
        out[row * lanes..(row + 1) * lanes].copy_from_slice(&x[k * total + b * lanes..][..lanes]);
    }
}

impl LinearPredictor for Linear {
    fn width(&self) -> usize {
        self.predictors.len()
    }

    fn project(
        &self,
        scratch: &mut PredictorScratch,
        batch: &[u32],
        z: Lanes<'_>,
        mut eta: LanesMut<'_>,
    ) {
        let lanes = z.lanes();
        let (z, eta) = (z.as_slice(), eta.as_mut_slice());
        eta.fill(0.0);
        self.each(self.gathered(scratch, batch), |row, i, c| {
            let out = &mut eta[row * lanes..(row + 1) * lanes];
            for (out, z) in out.iter_mut().zip(&z[i * lanes..(i + 1) * lanes]) {
                *out += c * z;
            }
        });
    }

    fn adjoint(
        &self,
        scratch: &mut PredictorScratch,
        batch: &[u32],
        r: Lanes<'_>,
        mut out: LanesMut<'_>,
    ) {
        let lanes = r.lanes();
        let (r, out) = (r.as_slice(), out.as_mut_slice());
        self.each(self.gathered(scratch, batch), |row, i, c| {
            let out = &mut out[i * lanes..(i + 1) * lanes];
            for (out, r) in out.iter_mut().zip(&r[row * lanes..(row + 1) * lanes]) {
                *out += c * r;
            }
        });
    }

    fn link_value(&self, batch: &[u32], eta: Lanes<'_>, out: &mut [f64]) {
        out.fill(0.0);
        self.with_link(batch, eta, |ws, total| {
            ws.values.resize(total, 0.0);
            let input = Lanes::new(&ws.input, self.link.dim(), total);
            self.link.value(&mut ws.graph, input, &mut ws.values);
            for part in ws.values.chunks_exact(out.len().max(1)) {
                out.iter_mut().zip(part).for_each(|(out, v)| *out += v);
            }
        });
    }

    fn link_gradient(&self, batch: &[u32], eta: Lanes<'_>, mut out: LanesMut<'_>) {
        self.with_link(batch, eta, |ws, total| {
            let dim = self.link.dim();
            ws.values.resize(total, 0.0);
            ws.gradient.resize(dim * total, 0.0);
            let gradient = LanesMut::new(&mut ws.gradient, dim, total);
            let input = Lanes::new(&ws.input, dim, total);
            self.link
                .value_grad(&mut ws.graph, input, &mut ws.values, gradient);
            collect(&ws.gradient, self.width(), &mut out);
        });
    }

    fn link_curvature(&self, batch: &[u32], eta: Lanes<'_>, v: Lanes<'_>, mut out: LanesMut<'_>) {
        self.with_link(batch, eta, |ws, total| {
            let (dim, width) = (self.link.dim(), self.width());
            ws.direction.clear();
            ws.direction.resize(dim * total, 0.0);
            spread(v, width, &mut ws.direction);
            ws.gradient.resize(dim * total, 0.0);
            let product = LanesMut::new(&mut ws.gradient, dim, total);
            let input = Lanes::new(&ws.input, dim, total);
            let direction = Lanes::new(&ws.direction, dim, total);
            self.link.hvp(&mut ws.graph, input, direction, product);
            collect(&ws.gradient, width, &mut out);
        });
    }

    fn expectations(&self) -> Option<&dyn LinkExpectations> {
        (self.width() == 1).then_some(self)
    }
}

/// The trapezoidal rule extends this many standard deviations to either side of the mean.
const REACH: f64 = 6.5;

/// The largest number of steps of the trapezoidal rule per standard deviation.
const FINEST: f64 = 16.0;

impl LinkExpectations for Linear {
    fn project_squares(
        &self,
        scratch: &mut PredictorScratch,
        batch: &[u32],
        s: &[f64],
        variance: &mut [f64],
    ) {
        variance.fill(0.0);
        self.each(self.gathered(scratch, batch), |row, i, c| {
            variance[row] += c * c * s[i];
        });
    }

    fn adjoint_squares(
        &self,
        scratch: &mut PredictorScratch,
        batch: &[u32],
        r: &[f64],
        out: &mut [f64],
    ) {
        self.each(self.gathered(scratch, batch), |row, i, c| {
            out[i] += c * c * r[row];
        });
    }

    /// Computes the expectation by the trapezoidal rule. For a link that is analytic within π of the real line, such as
    /// the logistic function, the error is proportional to `exp(−2π² n)`. Here s is the standard deviation of the
    /// predictor, and n is the number of steps in an interval of 1/max(1, s) standard deviations.
    fn link_expectation(
        &self,
        batch: &[u32],
        mean: &[f64],
        variance: &[f64],
        gradient: &mut [f64],
        curvature: &mut [f64],
    ) {
        let widest = variance.iter().fold(1.0f64, |m, v| m.max(v.sqrt()));
        let fineness = widest.ceil().min(FINEST);
        let half = (REACH * fineness).ceil() as i32;
        let at: Vec<f64> = (-half..=half).map(|k| f64::from(k) / fineness).collect();
        let weights: Vec<f64> = at.iter().map(|t| (-0.5 * t * t).exp()).collect();
        let total: f64 = weights.iter().sum();
        let nodes: Vec<f64> = mean
            .iter()
            .zip(variance)
            .flat_map(|(m, v)| at.iter().map(move |t| m + v.sqrt() * t))
            .collect();
        let (rows, lanes) = (batch.len(), at.len());
        let ones = vec![1.0; rows * lanes];
        let mut found = vec![0.0; rows * lanes];
        let eta = Lanes::new(&nodes, rows, lanes);
        let mean_of = |found: &[f64], out: &mut [f64]| {
            for (out, row) in out.iter_mut().zip(found.chunks_exact(lanes)) {
                let sum: f64 = row.iter().zip(&weights).map(|(x, w)| x * w).sum();
                *out = sum / total;
            }
        };
        self.link_gradient(batch, eta, LanesMut::new(&mut found, rows, lanes));
        mean_of(&found, gradient);
        let direction = Lanes::new(&ones, rows, lanes);
        self.link_curvature(
            batch,
            eta,
            direction,
            LanesMut::new(&mut found, rows, lanes),
        );
        mean_of(&found, curvature);
    }
}
