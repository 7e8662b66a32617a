//! Writes the declarations and priors of smooths, Gaussian processes and monotonic effects.

use super::linear::{prior, scales, suffix, times, unit};
use super::{Block, Writer};
use crate::predictor::Predictor;

/// Writes the penalised parts of smooths.
pub fn smooths(writer: &mut Writer<'_>, predictor: &Predictor) {
    if predictor.smooths.is_empty() {
        return;
    }
    let s = suffix(writer, predictor);
    let unit = &unit(writer, predictor);
    let rows = writer.regression.rows.len();
    let names: Vec<String> = predictor
        .smooths
        .iter()
        .map(|smooth| smooth.name.clone())
        .collect();
    let sds = format!("sds{s}");
    let count = format!("S{s}");
    writer.int(&count, "", names.len(), "smooth functions");
    writer.line(Block::Model, format!("// {}", names.join(", ")));
    let units = vec![1.0; names.len()];
    scales(writer, &sds, &count, &names, &units, unit, &["sds"]);
    writer.dims(&sds, &[(&format!("smooth{s}"), names)]);
    writer.shown.push(sds.clone());
    for (at, smooth) in predictor.smooths.iter().enumerate() {
        let own = format!("{s}_{}", at + 1);
        writer.int(
            &format!("Ks{own}"),
            "",
            smooth.columns.len(),
            &format!("functions of {}", smooth.name),
        );
        writer.matrix(
            &format!("Zs{own}"),
            &format!("matrix[N, Ks{own}]"),
            &smooth.columns,
            rows,
            "",
        );
        writer.line(Block::Parameters, format!("vector[Ks{own}] zs{own};"));
        writer.line(
            Block::Derived,
            format!("vector[Ks{own}] s{own} = {sds}[{}] * zs{own};", at + 1),
        );
        writer.line(Block::Model, format!("zs{own} ~ std_normal();"));
    }
}

/// The prior of length scales, in units of half the column's range. A length scale is below 0.12 with a probability of
/// one percent. For such length scales, twenty functions are too few (Riutort-Mayol et al. 2023, equation 21: 1.75 ×
/// 1.5 / 20 = 0.13). A length scale is above 2.3, which is more than the whole range, with a probability of another
/// percent.
const LENGTH: &str = "inv_gamma(3, 1)";

/// Writes the Gaussian processes of a predictor.
pub fn processes(writer: &mut Writer<'_>, predictor: &Predictor) {
    if predictor.processes.is_empty() {
        return;
    }
    let s = suffix(writer, predictor);
    let unit = &unit(writer, predictor);
    let rows = writer.regression.rows.len();
    let names: Vec<String> = predictor
        .processes
        .iter()
        .map(|process| process.name.clone())
        .collect();
    let (sdgp, length, count) = (format!("sdgp{s}"), format!("lscale{s}"), format!("G{s}"));
    writer.int(&count, "", names.len(), "Gaussian processes");
    writer.line(Block::Model, format!("// {}", names.join(", ")));
    scales(
        writer,
        &sdgp,
        &count,
        &names,
        &vec![1.0; names.len()],
        unit,
        &["sdgp"],
    );
    writer.line(
        Block::Parameters,
        format!("vector<lower=0>[{count}] {length}; // in halves of the column's range"),
    );
    for name in [&sdgp, &length] {
        writer.dims(name, &[(&format!("process{s}"), names.clone())]);
        writer.shown.push(name.clone());
    }
    for (at, process) in predictor.processes.iter().enumerate() {
        let full = format!("{length}[{}]", process.name);
        prior(
            writer,
            &[&full, &length, "lscale"],
            &format!("{length}[{}]", at + 1),
            LENGTH,
        );
        let own = format!("{s}_{}", at + 1);
        writer.int(
            &format!("Kgp{own}"),
            "",
            process.columns.len(),
            &format!("functions of {}", process.name),
        );
        writer.matrix(
            &format!("Phi{own}"),
            &format!("matrix[N, Kgp{own}]"),
            &process.columns,
            rows,
            "",
        );
        writer.vector(
            &format!("frequency{own}"),
            &format!("vector[Kgp{own}]"),
            process.frequencies.clone(),
            "",
        );
        writer.line(Block::Parameters, format!("vector[Kgp{own}] zgp{own};"));
        let n = at + 1;
        writer.line(
            Block::Derived,
            format!(
                "vector[Kgp{own}] gp{own} = {sdgp}[{n}] * sqrt(sqrt(2 * pi()) * {length}[{n}]) * exp(-0.25 * square({length}[{n}] * frequency{own})) .* zgp{own};"
            ),
        );
        writer.line(Block::Model, format!("zgp{own} ~ std_normal();"));
    }
}

/// Writes the monotonic effects of a predictor.
pub fn monotonic(writer: &mut Writer<'_>, predictor: &Predictor) {
    if predictor.monotonic.is_empty() {
        return;
    }
    let s = suffix(writer, predictor);
    let unit = &unit(writer, predictor);
    let names: Vec<String> = predictor.monotonic.iter().map(|m| m.name.clone()).collect();
    let (b, count) = (format!("bmo{s}"), format!("B{s}"));
    writer.int(&count, "", names.len(), "monotonic effects");
    let bounds = if unit == "1" {
        String::new()
    } else {
        format!("<multiplier={unit}>")
    };
    writer.line(
        Block::Parameters,
        format!("vector{bounds}[{count}] {b}; // mean difference of neighbouring levels"),
    );
    writer.dims(&b, &[(&format!("monotonic{s}"), names)]);
    writer.shown.push(b.clone());
    for (at, effect) in predictor.monotonic.iter().enumerate() {
        let own = format!("{s}_{}", at + 1);
        let full = format!("{b}[{}]", effect.name);
        let usual = format!("normal(0, {})", times("2.5", unit));
        prior(
            writer,
            &[&full, &b, "b"],
            &format!("{b}[{}]", at + 1),
            &usual,
        );
        writer.int(
            &format!("C{own}"),
            "",
            effect.count,
            &format!("steps of {}", effect.name),
        );
        let steps = effect.steps.iter().map(|step| *step as i64 + 1).collect();
        writer.ints(
            &format!("mo{own}"),
            &format!("array[N] int<lower=1, upper=C{own} + 1>"),
            steps,
            "the level of each row",
        );
        writer.line(
            Block::Parameters,
            format!("simplex[C{own}] simo{own}; // shares of the steps"),
        );
        writer.prior(
            &format!("simo{own}"),
            &format!("dirichlet(rep_vector(1, C{own}))"),
        );
        writer.shown.push(format!("simo{own}"));
    }
}
