//! The extents of values, and the names of their elements.

use super::Value;

/// Returns the numbers of rows and columns of a matrix. A vector counts as a column.
pub fn extents(value: &Value) -> (usize, usize) {
    match value {
        Value::Matrix(m) => (m.rows(), m.cols()),
        other => (other.len(), 1),
    }
}

/// Returns the values below `depth` array dimensions. Each value comes with its index as text, such as `[2,1]`.
pub fn leaves(value: &Value, depth: usize) -> Vec<(String, &Value)> {
    fn walk<'v>(
        value: &'v Value,
        depth: usize,
        path: &mut Vec<usize>,
        out: &mut Vec<(String, &'v Value)>,
    ) {
        match value {
            Value::Array(elements) if depth > 0 => {
                for (i, element) in elements.iter().enumerate() {
                    path.push(i + 1);
                    walk(element, depth - 1, path, out);
                    path.pop();
                }
            }
            _ => out.push((bracketed(path), value)),
        }
    }
    let mut out = Vec::new();
    walk(value, depth, &mut Vec::new(), &mut out);
    out
}

fn bracketed(path: &[usize]) -> String {
    if path.is_empty() {
        return String::new();
    }
    let parts: Vec<String> = path.iter().map(usize::to_string).collect();
    format!("[{}]", parts.join(","))
}

/// Returns the index of the element at storage position `at` of a value without tuples, such as `[3]` or `[2,1]`. The
/// index is empty for a scalar.
pub fn element_name(value: &Value, at: usize) -> String {
    let dims = value.dims();
    let mut leaf = value;
    let mut depth = 0;
    while let Value::Array(elements) = leaf {
        depth += 1;
        match elements.first() {
            Some(first) => leaf = first,
            None => return String::new(),
        }
    }
    let mut path = Vec::new();
    let inner: usize = dims[depth..].iter().product();
    let (mut outer, within) = (at / inner.max(1), at % inner.max(1));
    for d in dims[..depth].iter().rev() {
        path.insert(0, outer % d + 1);
        outer /= d;
    }
    match leaf {
        Value::Matrix(m) => path.extend([within % m.rows() + 1, within / m.rows() + 1]),
        Value::Int(_) | Value::Real(_) | Value::Complex(_) => {}
        _ => path.push(within + 1),
    }
    bracketed(&path)
}
