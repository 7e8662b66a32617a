//! Writes Markov fields over maps.

use super::linear::{prior, scales, suffix, unit};
use super::{Block, Writer};
use crate::predictor::{Field, FieldKind, Predictor};

/// Writes the effects of regions (`rcar`) and their priors.
pub fn field(writer: &mut Writer<'_>, predictor: &Predictor) {
    let Some(field) = &predictor.field else {
        return;
    };
    let s = suffix(writer, predictor);
    let unit = &unit(writer, predictor);
    let (count, index) = (format!("J_car{s}"), format!("i_car{s}"));
    writer.int(&count, "", field.map.regions(), "regions of the map");
    let places = field.index.iter().map(|at| *at as i64 + 1).collect();
    writer.ints(
        &index,
        &format!("array[N] int<lower=1, upper={count}>"),
        places,
        "the region of each row",
    );
    edges(writer, field, &s);
    writer.line(Block::Model, format!("// regions: {}", field.name));
    writer.int(&format!("M_car{s}"), "", 1, "fields");
    let names = vec![field.name.clone()];
    let sd = format!("sdcar{s}");
    scales(
        writer,
        &sd,
        &format!("M_car{s}"),
        &names,
        &[1.0],
        unit,
        &["sdcar"],
    );
    writer.dims(&sd, &[(&format!("field{s}"), names)]);
    writer.shown.push(sd.clone());
    let z = match field.kind {
        FieldKind::Proper => proper(writer, field, &s),
        FieldKind::Intrinsic => intrinsic(writer, field, &s),
        FieldKind::Mixed => mixed(writer, field, &s),
    };
    writer.line(
        Block::Derived,
        format!("vector[{count}] rcar{s} = {sd}[1] * {z};"),
    );
    writer.dims(
        &format!("rcar{s}"),
        &[(&format!("region{s}"), field.map.labels())],
    );
}

fn edges(writer: &mut Writer<'_>, field: &Field, s: &str) {
    let edges = &field.map.edges;
    writer.int(&format!("E_car{s}"), "", edges.len(), "pairs of neighbours");
    let kind = format!("array[E_car{s}] int<lower=1, upper=J_car{s}>");
    let first = edges.iter().map(|(a, _)| *a as i64 + 1).collect();
    writer.ints(&format!("edge1{s}"), &kind, first, "the one");
    let second = edges.iter().map(|(_, b)| *b as i64 + 1).collect();
    writer.ints(&format!("edge2{s}"), &kind, second, "the other");
}

/// Writes a field with unit scale that sums to 0 over every component of the map. Regions without neighbours are
/// independent. Returns the name of the field in the program.
fn intrinsic(writer: &mut Writer<'_>, field: &Field, s: &str) -> String {
    let mut names = Vec::new();
    for (at, size) in field.map.parts.iter().enumerate() {
        let name = format!("zcar{s}_{}", at + 1);
        writer.line(
            Block::Parameters,
            format!("sum_to_zero_vector[{size}] {name};"),
        );
        names.push(name);
    }
    let alone = field.map.regions() - field.map.parts.iter().sum::<usize>();
    if alone > 0 {
        let name = format!("zcar{s}_alone");
        writer.line(
            Block::Parameters,
            format!("vector[{alone}] {name}; // regions without neighbours"),
        );
        writer.line(Block::Model, format!("{name} ~ std_normal();"));
        names.push(name);
    }
    let mut names = names.into_iter().rev();
    let last = names.next().unwrap_or_default();
    let all = names.fold(last, |rest, name| format!("append_row({name}, {rest})"));
    writer.line(Block::Derived, format!("vector[J_car{s}] zcar{s} = {all};"));
    writer.line(
        Block::Model,
        format!("target += -0.5 * dot_self(zcar{s}[edge1{s}] - zcar{s}[edge2{s}]);"),
    );
    format!("zcar{s}")
}

fn mixed(writer: &mut Writer<'_>, field: &Field, s: &str) -> String {
    let z = intrinsic(writer, field, s);
    let roots = field.map.variances().iter().map(|v| v.sqrt()).collect();
    writer.vector(
        &format!("size_car{s}"),
        &format!("vector<lower=0>[J_car{s}]"),
        roots,
        "standard deviations of the intrinsic field",
    );
    let rho = format!("rhocar{s}");
    writer.line(
        Block::Parameters,
        format!("real<lower=0, upper=1> {rho}; // share of the field in the variance"),
    );
    writer.line(Block::Parameters, format!("vector[J_car{s}] ucar{s};"));
    writer.line(Block::Model, format!("ucar{s} ~ std_normal();"));
    prior(writer, &[&rho, "rhocar"], &rho, "beta(1, 1)");
    writer.shown.push(rho.clone());
    format!("(sqrt({rho}) * {z} ./ size_car{s} + sqrt(1 - {rho}) * ucar{s})")
}

fn proper(writer: &mut Writer<'_>, field: &Field, s: &str) -> String {
    writer.vector(
        &format!("degree_car{s}"),
        &format!("vector<lower=0>[J_car{s}]"),
        field.map.degrees(),
        "numbers of neighbours",
    );
    writer.vector(
        &format!("lambda_car{s}"),
        &format!("vector[J_car{s}]"),
        field.map.eigenvalues(),
        "eigenvalues of the map",
    );
    let (z, strength) = (format!("zcar{s}"), format!("car{s}"));
    writer.line(Block::Parameters, format!("vector[J_car{s}] {z};"));
    writer.line(
        Block::Parameters,
        format!("real<lower=0, upper=1> {strength}; // dependence of neighbours"),
    );
    prior(writer, &[&strength, "car"], &strength, "beta(1, 1)");
    writer.line(
        Block::Model,
        format!(
            "target += 0.5 * sum(log1m({strength} * lambda_car{s})) - 0.5 * dot_product(degree_car{s}, square({z})) + {strength} * dot_product({z}[edge1{s}], {z}[edge2{s}]);"
        ),
    );
    writer.shown.push(strength);
    z
}
