//! Complex values, which are stored as a real part and an imaginary part.

use std::rc::Rc;

use num_complex::Complex64;

use crate::symbolic::value::{Dims, Leaf, Sym};
use crate::value::{Mat, Value};

fn flatten(value: &Value, array: &mut Vec<usize>, out: &mut Vec<Complex64>) -> Option<Leaf> {
    Some(match value {
        Value::Complex(z) => {
            out.push(*z);
            Leaf::Scalar
        }
        Value::ComplexVector(x) => {
            out.extend(x);
            Leaf::Vector(x.len())
        }
        Value::ComplexRowVector(x) => {
            out.extend(x);
            Leaf::Row(x.len())
        }
        Value::ComplexMatrix(m) => {
            out.extend(m.data());
            Leaf::Matrix(m.rows(), m.cols())
        }
        Value::Array(parts) => {
            array.push(parts.len());
            let mut inner = Vec::new();
            let mut leaf = None;
            for part in parts {
                inner.clear();
                leaf = Some(flatten(part, &mut inner, out)?);
            }
            array.extend(inner);
            leaf?
        }
        _ => return None,
    })
}

fn joined(dims: &Dims, depth: usize, numbers: &[Complex64]) -> Value {
    let Some(count) = dims.array.get(depth) else {
        return match dims.leaf {
            Leaf::Scalar => Value::Complex(numbers[0]),
            Leaf::Vector(_) => Value::ComplexVector(numbers.to_vec()),
            Leaf::Row(_) => Value::ComplexRowVector(numbers.to_vec()),
            Leaf::Matrix(rows, cols) => {
                Value::ComplexMatrix(Mat::new(rows, cols, numbers.to_vec()))
            }
        };
    };
    let each = numbers.len().checked_div(*count).unwrap_or(0);
    let part = |i: usize| joined(dims, depth + 1, &numbers[i * each..(i + 1) * each]);
    Value::Array((0..*count).map(part).collect())
}

impl Sym {
    /// Creates a complex value from its parts, which must have the same shape.
    pub fn complex(re: Sym, im: Sym) -> Sym {
        if let (Some(x), Some(y)) = (re.known(), im.known())
            && let Some(dims) = Dims::of_value(&x)
        {
            let (x, y) = (x.numbers(), y.numbers());
            let numbers: Vec<Complex64> = x
                .iter()
                .zip(&y)
                .map(|(x, y)| Complex64::new(*x, *y))
                .collect();
            if numbers.len() == dims.size() {
                return joined(&dims, 0, &numbers).into();
            }
        }
        Sym::Complex(Rc::new([re, im]))
    }

    /// Returns the real and the imaginary part of a complex value, or `None` for other values.
    pub fn parts(&self) -> Option<[Sym; 2]> {
        match self {
            Sym::Complex(parts) => Some((**parts).clone()),
            Sym::Data(value) => {
                let (mut array, mut numbers) = (Vec::new(), Vec::new());
                let leaf = flatten(value, &mut array, &mut numbers)?;
                let dims = Dims { array, leaf };
                let part = |f: fn(&Complex64) -> f64| -> Sym {
                    let numbers: Vec<f64> = numbers.iter().map(f).collect();
                    dims.value(&numbers).into()
                };
                Some([part(|z| z.re), part(|z| z.im)])
            }
            _ => None,
        }
    }

    /// Converts the value to a complex value and returns its parts. The imaginary part of a real value is zero.
    pub fn as_complex(&self) -> [Sym; 2] {
        self.parts().unwrap_or_else(|| {
            let zeros = match self.dims() {
                Ok(dims) => dims.value(&vec![0.0; dims.size()]).into(),
                Err(_) => Sym::Real(0.0),
            };
            [self.clone(), zeros]
        })
    }
}
