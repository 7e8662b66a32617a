//! Writes the declarations and priors of group effects.

use super::linear::{scales, suffix, unit};
use super::{Block, Writer};
use crate::predictor::{Groups, Predictor};

/// Writes the effects of a grouping, which are normal with mean zero and with the standard deviations of the grouping.
/// The program declares them in units of these standard deviations. The fit recognises such statements and decides
/// whether to centre the effects.
fn effects(writer: &mut Writer<'_>, groups: &Groups, g: &str, j: &str, standard: Option<&str>) {
    let m = groups.design.names.len();
    let (sd, r) = match standard {
        Some(_) => (format!("sd{g}_std"), format!("r{g}_std")),
        // The prior uses vectors, whereas the rows use a matrix.
        None if m > 1 && groups.correlated => (format!("sd{g}"), format!("r{g}_by")),
        None => (format!("sd{g}"), format!("r{g}")),
    };
    let (kind, derived) = match (m, groups.correlated) {
        (1, _) => (
            format!("vector[{j}] {r};"),
            standard.map(|size| format!("vector[{j}] r{g} = {size}[1] * {r};")),
        ),
        (_, false) => (
            format!("matrix[{j}, M{g}] {r};"),
            standard
                .map(|size| format!("matrix[{j}, M{g}] r{g} = diag_post_multiply({r}, {size});")),
        ),
        (_, true) => (format!("array[{j}] vector[M{g}] {r};"), {
            let one = standard.map_or(format!("{r}[j]'"), |size| format!("({size} .* {r}[j])'"));
            Some(format!(
                "matrix[{j}, M{g}] r{g};\nfor (j in 1 : {j}) {{\n  r{g}[j] = {one};\n}}"
            ))
        }),
    };
    writer.line(Block::Parameters, kind);
    derived
        .into_iter()
        .for_each(|text| writer.line(Block::Derived, text));
    match (m, groups.correlated) {
        (1, _) => writer.line(Block::Model, format!("{r} ~ normal(0, {sd}[1]);")),
        (m, false) => {
            for at in 1..=m {
                writer.line(
                    Block::Model,
                    format!("{r}[ : , {at}] ~ normal(0, {sd}[{at}]);"),
                );
            }
        }
        (_, true) => {
            writer.line(
                Block::Parameters,
                format!("cholesky_factor_corr[M{g}] L{g};"),
            );
            writer.line(
                Block::Model,
                format!("{r} ~ multi_normal_cholesky(rep_vector(0, M{g}), diag_pre_multiply({sd}, L{g}));"),
            );
        }
    }
}

/// Writes the group effects of one grouping.
pub fn group(writer: &mut Writer<'_>, predictor: &Predictor, groups: &Groups) {
    let s = suffix(writer, predictor);
    let unit = &unit(writer, predictor);
    let own = writer.identifier(&groups.name);
    let g = format!("{s}_{own}");
    let j = format!("J_{own}");
    writer.int(
        &j,
        "",
        groups.levels.len(),
        &format!("groups by {}", groups.name),
    );
    let last = match groups.new_levels.len() {
        0 => j.clone(),
        new => format!("{j} + {new}"),
    };
    for (member, names) in groups.members.iter().zip(members(groups, &own)) {
        let places = member.index.iter().map(|at| *at as i64 + 1).collect();
        writer.ints(
            &names.0,
            &format!("array[N] int<lower=1, upper={last}>"),
            places,
            "the group of each row",
        );
        if let (Some(weights), Some(name)) = (&member.weights, names.1) {
            writer.vector(
                &name,
                "vector[N]",
                weights.clone(),
                "what that group counts",
            );
        }
    }
    let names: Vec<String> = groups
        .design
        .names
        .iter()
        .map(|n| plain_intercept(n))
        .collect();
    let m = names.len();
    let count = format!("M{g}");
    writer.int(&count, "", m, "effects that differ by group");
    slopes(writer, groups, &g, &count);
    writer.line(
        Block::Model,
        format!("// {} by {}", names.join(", "), groups.name),
    );
    let units: Vec<f64> = groups.spreads.iter().map(|spread| 1.0 / spread).collect();
    let sd_name = format!("sd{g}");
    let classes = [format!("sd{s}"), "sd".to_owned()];
    let standard = scales(
        writer,
        &sd_name,
        &count,
        &names,
        &units,
        unit,
        &classes.each_ref().map(String::as_str),
    );
    writer.dims(&sd_name, &[(&format!("effect{g}"), names.clone())]);
    writer.shown.push(sd_name);
    let levels = ("group_".to_owned() + &own, groups.levels.clone());
    match writer.regression.joint(groups) {
        Some(shared) => {
            let before = s
                .strip_prefix('_')
                .map_or(String::new(), |s| format!("{s}_"));
            let part = Part {
                labels: names.iter().map(|name| before.clone() + name).collect(),
                size: standard,
                groups: j,
                g: g.clone(),
            };
            match writer.joint.iter_mut().find(|(name, _)| name == shared) {
                Some((_, parts)) => parts.push(part),
                None => writer.joint.push((shared.to_owned(), vec![part])),
            }
        }
        None => effects(writer, groups, &g, &j, standard.as_deref()),
    }
    let r = format!("r{g}");
    if m == 1 {
        writer.dims(&r, &[(&levels.0, levels.1)]);
        return;
    }
    writer.dims(
        &r,
        &[
            (&levels.0, levels.1),
            (&format!("effect{g}"), names.clone()),
        ],
    );
    if groups.correlated && writer.regression.joint(groups).is_none() {
        correlation(writer, &g, &names);
    }
}

/// Writes the correlations between the effects of a group, and their prior.
pub fn correlation(writer: &mut Writer<'_>, g: &str, names: &[String]) {
    let cor = format!("cor{g}");
    let given = writer.priors.find(&[&cor, "cor"]);
    let is_given = given.is_some();
    let eta = given.map_or_else(|| "1".to_owned(), |given| given.arguments);
    writer.priors.note(&cor, format!("lkj({eta})"), is_given);
    writer.prior(&format!("L{g}"), &format!("lkj_corr_cholesky({eta})"));
    let pairs = pairs(names);
    writer.line(
        Block::Generated,
        format!("vector[{}] {cor}; // correlations, one a pair", pairs.len()),
    );
    writer.line(Block::Generated, correlations(&cor, g, names.len()));
    writer.dims(&cor, &[(&format!("pair{g}"), pairs)]);
    writer.shown.push(cor);
}

/// The effects of one parameter in a group of effects that are correlated across parameters.
pub struct Part {
    g: String,
    /// The names of the effects in reports that also contain the effects of other parameters.
    labels: Vec<String>,
    size: Option<String>,
    groups: String,
}

impl Part {
    fn deviations(&self) -> String {
        match self.size {
            Some(_) => format!("sd{}_std", self.g),
            None => format!("sd{}", self.g),
        }
    }
}

fn appended(all: &[String]) -> String {
    match all {
        [one] => one.clone(),
        [first, rest @ ..] => format!("append_row({first}, {})", appended(rest)),
        [] => String::new(),
    }
}

fn places(parts: &[Part]) -> Vec<String> {
    let mut first = 1;
    let place = |part: &Part| {
        let m = part.labels.len();
        let from = first;
        first += m;
        match m {
            1 => from.to_string(),
            m => format!("{from} : {}", from + m - 1),
        }
    };
    parts.iter().map(place).collect()
}

/// Writes the correlated effects of several parameters. All of these parameters must already be declared.
pub fn joint(writer: &mut Writer<'_>) {
    for (shared, parts) in std::mem::take(&mut writer.joint) {
        let g = format!("_{}", writer.identifier(&format!("|{shared}|")));
        let j = parts[0].groups.clone();
        let labels: Vec<String> = parts.iter().flat_map(|part| part.labels.clone()).collect();
        let m = labels.len();
        writer.line(Block::Model, format!("// {}, together", labels.join(", ")));
        writer.line(
            Block::Parameters,
            format!("array[{j}] vector[{m}] r{g}_by; // {}", labels.join(", ")),
        );
        writer.line(
            Block::Parameters,
            format!("cholesky_factor_corr[{m}] L{g};"),
        );
        let mut declared = String::new();
        let mut body = format!("for (j in 1 : {j}) {{\n");
        for (part, place) in parts.iter().zip(places(&parts)) {
            let (own, n) = (&part.g, part.labels.len());
            let all = format!("r{g}_by[j, {place}]");
            declared += &match n {
                1 => format!("vector[{j}] r{own};\n"),
                n => format!("matrix[{j}, {n}] r{own};\n"),
            };
            body += &match (&part.size, n) {
                (None, 1) => format!("  r{own}[j] = {all};\n"),
                (None, _) => format!("  r{own}[j] = {all}';\n"),
                (Some(size), 1) => format!("  r{own}[j] = {size}[1] * {all};\n"),
                (Some(size), _) => format!("  r{own}[j] = ({size} .* {all})';\n"),
            };
        }
        writer.line(Block::Derived, declared + &body + "}");
        let sd: Vec<String> = parts.iter().map(Part::deviations).collect();
        writer.line(
            Block::Model,
            format!(
                "r{g}_by ~ multi_normal_cholesky(rep_vector(0, {m}), diag_pre_multiply({}, L{g}));",
                appended(&sd)
            ),
        );
        correlation(writer, &g, &labels);
        writer.joint.push((shared, parts));
    }
}

/// Writes the correlated effects of several parameters for `new` new groups. They follow the effects of the groups in
/// the fit.
pub fn drawn_together(writer: &mut Writer<'_>, new: usize, shared: &str) {
    let g = format!("_{}", writer.identifier(&format!("|{shared}|")));
    let Some((_, parts)) = writer.joint.iter().find(|(name, _)| name == shared) else {
        return;
    };
    let j = &parts[0].groups;
    let m: usize = parts.iter().map(|part| part.labels.len()).sum();
    let sd: Vec<String> = parts.iter().map(|part| format!("sd{}", part.g)).collect();
    let mut declared = String::new();
    let mut body = format!(
        "for (j in {j} + 1 : {j} + {new}) {{\n  vector[{m}] one = multi_normal_cholesky_rng(rep_vector(0, {m}), diag_pre_multiply({}, L{g}));\n",
        appended(&sd)
    );
    for (part, place) in parts.iter().zip(places(parts)) {
        let own = &part.g;
        let (kind, turned) = match part.labels.len() {
            1 => (format!("vector[{j} + {new}]"), ""),
            n => (format!("matrix[{j} + {new}, {n}]"), "'"),
        };
        declared += &format!("{kind} all{own}; // with new groups\nall{own}[1 : {j}] = r{own};\n");
        body += &format!("  all{own}[j] = one[{place}]{turned};\n");
    }
    writer.line(Block::Generated, declared + &body + "}");
}

/// Returns the variables that contain the groups of each row and their weights.
pub fn members(groups: &Groups, own: &str) -> Vec<(String, Option<String>)> {
    if groups.members.len() == 1 {
        return vec![(format!("i_{own}"), None)];
    }
    let names = (1..=groups.members.len())
        .map(|at| (format!("i_{own}_{at}"), Some(format!("w_{own}_{at}"))));
    names.collect()
}

fn plain_intercept(name: &str) -> String {
    match name {
        "(Intercept)" => "Intercept".to_owned(),
        name => name.to_owned(),
    }
}

fn pairs(names: &[String]) -> Vec<String> {
    let pairs = (1..names.len()).flat_map(|i| (0..i).map(move |j| (j, i)));
    pairs
        .map(|(j, i)| format!("{},{}", names[j], names[i]))
        .collect()
}

fn correlations(cor: &str, g: &str, m: usize) -> String {
    let mut text = format!("{{\n  matrix[{m}, {m}] R = multiply_lower_tri_self_transpose(L{g});\n");
    let pairs = (1..m).flat_map(|i| (0..i).map(move |j| (j, i)));
    for (at, (j, i)) in pairs.enumerate() {
        text += &format!("  {cor}[{}] = R[{}, {}];\n", at + 1, j + 1, i + 1);
    }
    text + "}"
}

fn slopes(writer: &mut Writer<'_>, groups: &Groups, g: &str, count: &str) {
    let rows = writer.regression.rows.len();
    if groups.design.names.iter().any(|name| name != "(Intercept)") {
        let names = groups.design.names.join(", ");
        writer.matrix(
            &format!("Z{g}"),
            &format!("matrix[N, {count}]"),
            &groups.design.columns,
            rows,
            &names,
        );
    }
}
