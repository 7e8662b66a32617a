//! A fit of points as it is kept on disk: the natural parameters of q(β), all that its model says of other points.

use jensen_data::RunDir;
use jensen_run::{Archive, Checkpoint, Identity};

use crate::Error;
use crate::study::folder;

/// As safetensors bytes, for the model of this name.
pub(super) fn encode(model: &str, lambda: &[f64]) -> Vec<u8> {
    let mut archive = Archive::new();
    archive.put("lambda", lambda);
    Checkpoint::of_result(Identity::of_result(model), archive).encode()
}

/// The natural parameters that a finished fit of `command` left in its folder.
///
/// # Errors
/// The fit has not finished, or the file is damaged.
pub fn stored_globals(run: &RunDir, command: &str) -> Result<Vec<f64>, Error> {
    let encoded = folder::approximation(run, command)?;
    let checkpoint =
        Checkpoint::decode(&encoded).map_err(|error| folder::bad_approximation(run, error))?;
    let lambda = checkpoint.state.vec("lambda");
    lambda.map_err(|error| folder::bad_approximation(run, error))
}
