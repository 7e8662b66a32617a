//! Writes the coefficients of columns, with independent priors or a joint shrinkage prior.

use super::linear::times;
use super::{Block, Writer};
use crate::prior::Given;

/// Writes coefficients and their priors. Coefficients with the default prior form one vector.
pub fn coefficients(writer: &mut Writer<'_>, names: &[String], s: &str, unit: &str, of_mean: bool) {
    let b = format!("b{s}");
    let size = match unit {
        "1" => format!("inv(X_sd{s})"),
        unit => format!("{unit} * inv(X_sd{s})"),
    };
    let together = writer.priors.shrinkage(&[&b, "b"]);
    if together.is_none() {
        writer.line(
            Block::Parameters,
            format!("vector<multiplier={size}>[K{s}] {b};"),
        );
    }
    writer.dims(&b, &[(&format!("coefficient{s}"), names.to_vec())]);
    writer.shown.push(b.clone());
    if let Some(given) = together {
        shrunk(writer, &given, s, &size, of_mean);
        return;
    }
    let usual = format!("normal(0, {} ./ X_sd{s})", times("2.5", unit));
    let mut of_usual = Vec::new();
    let mut given: Vec<(usize, String)> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        match writer.priors.find(&[&format!("{b}[{name}]"), &b, "b"]) {
            Some(prior) => given.push((at, prior.density())),
            None => of_usual.push(at),
        }
    }
    let same = given.iter().all(|(_, density)| *density == given[0].1);
    if of_usual.is_empty() && same {
        writer.priors.note(&b, given[0].1.clone(), true);
        writer.prior(&b, &given[0].1);
        return;
    }
    if given.is_empty() {
        writer.priors.note(&b, usual.clone(), false);
        writer.prior(&b, &usual);
        return;
    }
    for at in of_usual {
        let density = format!("normal(0, {} / X_sd{s}[{}])", times("2.5", unit), at + 1);
        writer
            .priors
            .note(&format!("{b}[{}]", names[at]), density.clone(), false);
        writer.prior(&format!("{b}[{}]", at + 1), &density);
    }
    for (at, density) in given {
        writer
            .priors
            .note(&format!("{b}[{}]", names[at]), density.clone(), true);
        writer.prior(&format!("{b}[{}]", at + 1), &density);
    }
}

/// Writes coefficients in units of `size` under a joint prior. The prior is a regularised horseshoe (Piironen and
/// Vehtari, Electronic Journal of Statistics 11, 2017), or a prior of R² and of the share that each column has in R²
/// (Zhang, Naughton, Bondell and Reich, Journal of the American Statistical Association 117, 2022).
fn shrunk(writer: &mut Writer<'_>, given: &Given, s: &str, size: &str, of_mean: bool) {
    let (b, z) = (format!("b{s}"), format!("zb{s}"));
    // If the model has a residual standard deviation, both joint priors are relative to it.
    let residual = match of_mean.then(|| residual(writer)).flatten() {
        Some(sigma) => format!("{sigma} * "),
        None => String::new(),
    };
    writer.priors.note(&b, given.density(), true);
    writer.line(Block::Parameters, format!("vector[K{s}] {z};"));
    writer.line(Block::Model, format!("{z} ~ std_normal();"));
    let arguments: Vec<&str> = given.arguments.split(", ").collect();
    let scale = match (given.name.as_str(), arguments.as_slice()) {
        ("horseshoe", [df, scale_global, df_global, scale_slab, df_slab]) => {
            for (kind, name, density) in [
                (
                    format!("vector<lower=0>[K{s}]"),
                    "hs_local",
                    format!("student_t({df}, 0, 1)"),
                ),
                (
                    "real<lower=0>".to_owned(),
                    "hs_global",
                    format!("student_t({df_global}, 0, {scale_global})"),
                ),
                (
                    "real<lower=0>".to_owned(),
                    "hs_slab",
                    format!("inv_gamma(0.5 * {df_slab}, 0.5 * {df_slab})"),
                ),
            ] {
                writer.line(Block::Parameters, format!("{kind} {name}{s};"));
                writer.prior(&format!("{name}{s}"), &density);
            }
            let (slab, global) = (
                format!("square({scale_slab}) * hs_slab{s}"),
                format!("square({residual}hs_global{s})"),
            );
            format!(
                "sqrt({slab} * {global} * square(hs_local{s}) ./ ({slab} + {global} * square(hs_local{s})))"
            )
        }
        (_, [mean, precision, concentration]) => {
            writer.line(
                Block::Parameters,
                format!("simplex[K{s}] R2D2_phi{s}; // shares of the columns"),
            );
            writer.line(
                Block::Parameters,
                format!(
                    "real<lower=0, upper=1> R2D2_R2{s}; // share of the variance that they explain"
                ),
            );
            writer.prior(
                &format!("R2D2_phi{s}"),
                &format!("dirichlet(rep_vector({concentration}, K{s}))"),
            );
            writer.prior(
                &format!("R2D2_R2{s}"),
                &format!("beta({mean} * {precision}, (1 - {mean}) * {precision})"),
            );
            format!("{residual}sqrt(R2D2_phi{s} * R2D2_R2{s} / (1 - R2D2_R2{s}))")
        }
        // `Given::parse` has already filled in all arguments.
        _ => String::from("1"),
    };
    writer.line(
        Block::Derived,
        format!("vector[K{s}] {b} = {size} .* {z} .* ({scale});"),
    );
}

/// Returns the residual standard deviation in units of the response's standard deviation, if it is the same in all
/// rows.
fn residual(writer: &mut Writer<'_>) -> Option<String> {
    let plain = &writer.regression.plain;
    if !plain
        .iter()
        .any(|p| p.name == "sigma" && p.prior.is_empty())
    {
        return None;
    }
    Some(match writer.priors.find(&["sigma"]) {
        Some(_) => "sigma / y_sd".to_owned(),
        None => "sigma_std".to_owned(),
    })
}
