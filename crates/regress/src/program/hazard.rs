//! Writes baseline hazards. A baseline hazard is a weighted sum of functions of time. The weights sum to 1.

use super::{Block, Writer};

/// Writes the values of the functions at the observed times, and the weights of the functions.
pub fn declare(writer: &mut Writer<'_>) {
    let Some([densities, integrals]) = &writer.regression.observed.hazards else {
        return;
    };
    let rows = writer.regression.rows.len();
    writer.int(
        "B",
        "",
        densities.len(),
        "functions that make up the baseline hazard",
    );
    for (name, columns, comment) in [
        ("Zbhaz", densities, "their values at the times"),
        ("Zcbhaz", integrals, "their integrals up to the times"),
    ] {
        writer.matrix(name, "matrix[N, B]", columns, rows, comment);
    }
    writer.line(
        Block::Parameters,
        "simplex[B] sbhaz; // weights of the functions",
    );
    writer.prior("sbhaz", "dirichlet(rep_vector(1, B))");
    writer
        .priors
        .note("sbhaz", "dirichlet(1, ..., 1)".to_owned(), false);
}

/// Returns the lines that sum the baseline hazard at each time.
pub fn lines(writer: &Writer<'_>) -> Vec<String> {
    match writer.regression.observed.hazards {
        Some(_) => vec![
            "vector[N] bhaz = Zbhaz * sbhaz;".to_owned(),
            "vector[N] cbhaz = Zcbhaz * sbhaz;".to_owned(),
        ],
        None => Vec::new(),
    }
}
