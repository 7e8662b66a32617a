//! Reads vectors from files.

use std::io::Read;
use std::path::Path;

use jensen::data::read_bytes;

use crate::failure::Failure;

/// Reads a JSON list of vectors. If the path is `-`, reads standard input.
pub fn read_vectors(path: &Path) -> Result<Vec<Vec<f64>>, Failure> {
    let (bytes, name) = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::input(format!("cannot read standard input: {error}")))?;
        (bytes, "standard input".to_owned())
    } else {
        (read_bytes(path)?, format!("`{}`", path.display()))
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        Failure::input(format!(
            "{name}: expected a JSON list of vectors such as [[0, 1.5], [2, 3]]: {error}"
        ))
    })
}
