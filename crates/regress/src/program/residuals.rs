//! Writes the residuals of several responses, with their standard deviations and correlations.

use super::groups::correlation;
use super::linear::prior;
use super::{Block, Writer};
use crate::basis::{mean, sd};
use crate::family::Response;

/// Declares the location and the scale of each response.
pub fn units(writer: &mut Writer<'_>) {
    let parts = writer.regression.observed.parts.clone();
    let count = writer.regression.observed.categories.len();
    let names = writer.regression.observed.categories.join(", ");
    writer.int("C", "<lower=2>", count, &format!("responses: {names}"));
    writer.vector(
        "y_mean",
        "vector[C]",
        parts.iter().map(|y| mean(y)).collect(),
        "means of the responses",
    );
    writer.vector(
        "y_sd",
        "vector<lower=0>[C]",
        parts.iter().map(|y| sd(y)).collect(),
        "standard deviations of the responses",
    );
}

/// Declares the standard deviations and correlations of the residuals.
pub fn declare(writer: &mut Writer<'_>) {
    let family = writer.regression.family;
    if family.response != Response::Several {
        return;
    }
    let names = writer.regression.observed.categories.clone();
    writer.line(Block::Model, "// residuals");
    writer.shown.push("sigma".to_owned());
    writer.dims("sigma", &[(family.dimension(), names.clone())]);
    if writer.priors.find(&["sigma"]).is_some() {
        writer.line(Block::Parameters, "vector<lower=0>[C] sigma;");
        prior(writer, &["sigma"], "sigma", "");
    } else {
        writer.line(Block::Parameters, "vector<lower=0>[C] sigma_std;");
        writer.line(
            Block::Derived,
            "vector<lower=0>[C] sigma = y_sd .* sigma_std;",
        );
        writer.prior("sigma_std", "exponential(1)");
        writer
            .priors
            .note("sigma", "exponential(1 / y_sd)".to_owned(), false);
    }
    writer.line(Block::Parameters, "cholesky_factor_corr[C] L_residual;");
    correlation(writer, "_residual", &names);
}
