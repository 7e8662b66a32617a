//! A coupling layer and its neural network.

use crate::reduce::{axpy, combine, dot, sum};

/// The largest absolute value of a log scale. A layer multiplies a coordinate by at most `e² = 7.4`, so that a flow
/// stays stable while its network is far from the optimum.
pub(super) const STEEPEST: f64 = 2.0;

#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) read: Vec<usize>,
    pub(super) moved: Vec<usize>,
    pub(super) hidden: usize,
    pub(super) start: usize,
}

pub(super) struct Pass {
    pub(super) read: Vec<f64>,
    pub(super) moved: Vec<f64>,
    pub(super) first: Steps,
    pub(super) second: Steps,
    /// The log scales, divided by their bound.
    pub(super) scale: Steps,
    pub(super) shift: Vec<f64>,
    /// The factors `e^s`.
    pub(super) factor: Vec<f64>,
}

pub(super) struct Steps {
    pub(super) value: Vec<f64>,
    pub(super) slope: Vec<f64>,
}

impl Steps {
    /// Computes the steps `u / √(1 + u²)` and their slopes `(1 + u²)^{−3/2}`.
    pub(super) fn of(mut u: Vec<f64>) -> Self {
        let mut slope = vec![0.0; u.len()];
        for (u, slope) in u.iter_mut().zip(&mut slope) {
            let r = 1.0 / (1.0 + *u * *u).sqrt();
            *u *= r;
            *slope = r * r * r;
        }
        Self { value: u, slope }
    }

    pub(super) fn pull(&self, mut by_value: Vec<f64>) -> Vec<f64> {
        for (d, slope) in by_value.iter_mut().zip(&self.slope) {
            *d *= slope;
        }
        by_value
    }
}

/// Returns the number of parameters of an affine map. The parameters are a matrix, stored by rows, and then a shift.
pub(super) fn affine_len(inputs: usize, outputs: usize) -> usize {
    outputs * (inputs + 1)
}

/// Computes `W x + c`, an `outputs × lanes` matrix.
pub(super) fn affine(parameters: &[f64], x: &[f64], inputs: usize, lanes: usize) -> Vec<f64> {
    let outputs = parameters.len() / (inputs + 1);
    let (matrix, shift) = parameters.split_at(outputs * inputs);
    let mut out = vec![0.0; outputs * lanes];
    for (row, c) in out.chunks_mut(lanes).zip(shift) {
        row.fill(*c);
    }
    if inputs == 0 {
        return out;
    }
    let mut rows = matrix.chunks(4 * inputs);
    for four in out.chunks_mut(4 * lanes) {
        let weights = rows.next().expect("as many rows");
        if four.len() == 4 * lanes {
            let mut parts = four.chunks_mut(lanes);
            let outs = [(); 4].map(|()| parts.next().expect("four rows"));
            let weights = [0, 1, 2, 3].map(|k| &weights[k * inputs..(k + 1) * inputs]);
            combine(weights, x, lanes, 0, outs);
        } else {
            for (row, weights) in four.chunks_mut(lanes).zip(weights.chunks(inputs)) {
                for (w, x) in weights.iter().zip(x.chunks(lanes)) {
                    axpy(*w, x, row);
                }
            }
        }
    }
    out
}

/// Computes `Wᵀ g`.
pub(super) fn affine_back(parameters: &[f64], g: &[f64], inputs: usize, lanes: usize) -> Vec<f64> {
    let mut out = vec![0.0; inputs * lanes];
    if inputs == 0 {
        return out;
    }
    for (weights, g) in parameters.chunks(inputs).zip(g.chunks(lanes)) {
        for (w, row) in weights.iter().zip(out.chunks_mut(lanes)) {
            axpy(*w, g, row);
        }
    }
    out
}

pub(super) fn affine_gradient(g: &[f64], x: &[f64], inputs: usize, lanes: usize, out: &mut [f64]) {
    let outputs = out.len() / (inputs + 1);
    let (matrix, shift) = out.split_at_mut(outputs * inputs);
    for (o, g) in g.chunks(lanes).enumerate() {
        shift[o] += sum(g);
        let row = &mut matrix[o * inputs..(o + 1) * inputs];
        for (w, x) in row.iter_mut().zip(x.chunks(lanes)) {
            *w += dot(g, x);
        }
    }
}

pub(super) fn gather(x: &[f64], rows: &[usize], lanes: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(rows.len() * lanes);
    for &i in rows {
        out.extend_from_slice(&x[i * lanes..(i + 1) * lanes]);
    }
    out
}

impl Layer {
    pub(super) fn lengths(&self) -> [usize; 3] {
        [
            affine_len(self.read.len(), self.hidden),
            affine_len(self.hidden, self.hidden),
            affine_len(self.hidden, 2 * self.moved.len()),
        ]
    }

    pub(super) fn len(&self) -> usize {
        self.lengths().iter().sum()
    }

    pub(super) fn maps<'a>(&self, omega: &'a [f64]) -> [&'a [f64]; 3] {
        let [a, b, c] = self.lengths();
        let own = &omega[self.start..];
        [&own[..a], &own[a..a + b], &own[a + b..a + b + c]]
    }

    pub(super) fn pass(&self, omega: &[f64], x: &[f64], lanes: usize) -> Pass {
        let [first, second, last] = self.maps(omega);
        let read = gather(x, &self.read, lanes);
        let first = Steps::of(affine(first, &read, self.read.len(), lanes));
        let second = Steps::of(affine(second, &first.value, self.hidden, lanes));
        let mut out = affine(last, &second.value, self.hidden, lanes);
        let shift = out.split_off(self.moved.len() * lanes);
        out.iter_mut().for_each(|u| *u /= STEEPEST);
        let scale = Steps::of(out);
        Pass {
            moved: gather(x, &self.moved, lanes),
            factor: scale.value.iter().map(|s| (STEEPEST * s).exp()).collect(),
            read,
            first,
            second,
            scale,
            shift,
        }
    }

    /// Computes derivatives with respect to the inputs of the layer, from derivatives with respect to the log scales
    /// and the shifts. Also adds the derivatives with respect to the layer's parameters to `out`, whose first element
    /// belongs to this layer.
    pub(super) fn back(
        &self,
        omega: &[f64],
        pass: &Pass,
        by_scale: Vec<f64>,
        by_shift: &[f64],
        lanes: usize,
        out: Option<&mut [f64]>,
    ) -> Vec<f64> {
        let [first, second, last] = self.maps(omega);
        let mut by_last = pass.scale.pull(by_scale);
        by_last.extend_from_slice(by_shift);
        let by_second = pass
            .second
            .pull(affine_back(last, &by_last, self.hidden, lanes));
        let by_first = pass
            .first
            .pull(affine_back(second, &by_second, self.hidden, lanes));
        if let Some(out) = out {
            let [a, b, c] = self.lengths();
            let (one, rest) = out[..a + b + c].split_at_mut(a);
            let (two, three) = rest.split_at_mut(b);
            affine_gradient(&by_last, &pass.second.value, self.hidden, lanes, three);
            affine_gradient(&by_second, &pass.first.value, self.hidden, lanes, two);
            affine_gradient(&by_first, &pass.read, self.read.len(), lanes, one);
        }
        affine_back(first, &by_first, self.read.len(), lanes)
    }
}
