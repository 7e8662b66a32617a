//! The section on the posterior of named parameters. The section contains a table, forest plots, marginal distributions
//! and correlations.

mod shapes;

use crate::figure::{Axis, Chart, Series};
use crate::model::{Marginal, Parameter, Posterior};
use crate::page::{Page, TableRow};
use crate::stats;
use crate::text::{self, escape};

const MARGINALS: usize = 24;
/// The largest number of rows in the table of parameters. The file `fit.json` contains all parameters.
const TABLE_ROWS: usize = 500;
const FILTERED: usize = 8;
const FORESTS: usize = 8;
const FOREST_ROWS: usize = 40;
const CORRELATIONS: usize = 16;
const PAIRS: usize = 4;
/// The number of points in the plot of two parameters. The plot is too small to distinguish more points.
const PAIR_POINTS: usize = 400;

pub(crate) fn put(page: &mut Page, posterior: &Posterior) {
    let posterior = shown(posterior);
    table(page, &posterior);
    forests(page, &posterior.parameters);
    marginals(page, &posterior.marginals);
    correlations(page, &posterior.marginals);
}

/// Returns the posterior without the predictions and the densities of single records. Other sections show these.
fn shown(posterior: &Posterior) -> Posterior {
    let explained = |name: &str| {
        let stem = name.split('[').next().unwrap_or(name);
        let mut elsewhere = posterior.elsewhere.iter();
        elsewhere.any(|variable| variable == stem)
    };
    let (parameters, marginals) = (posterior.parameters.iter(), posterior.marginals.iter());
    Posterior {
        parameters: parameters
            .filter(|p| !explained(&p.name))
            .cloned()
            .collect(),
        marginals: marginals.filter(|m| !explained(&m.name)).cloned().collect(),
        elsewhere: posterior.elsewhere.clone(),
    }
}

pub(crate) fn lines(posterior: &Posterior, most: usize) -> Vec<String> {
    let parameters = shown(posterior).parameters;
    let shown = &parameters[..parameters.len().min(most)];
    let width = shown.iter().map(|p| p.name.chars().count()).max();
    let width = width.unwrap_or(0).max(9);
    let row = |name: &str, cells: [String; 4]| {
        let cells: String = cells.iter().map(|cell| format!(" {cell:>12}")).collect();
        format!("{name:<width$}{cells}")
    };
    let mut lines = Vec::new();
    if !shown.is_empty() {
        lines.push(row(
            "parameter",
            ["mean", "sd", "5 %", "95 %"].map(str::to_owned),
        ));
    }
    for p in shown {
        let decimals = text::decimals_for(p.spread());
        lines.push(row(
            &p.name,
            [p.mean, p.sd, p.q05, p.q95].map(|x| text::fixed(x, decimals)),
        ));
    }
    if parameters.len() > most {
        lines.push(format!("… and {} more", parameters.len() - most));
    }
    lines
}

fn table(page: &mut Page, posterior: &Posterior) {
    let all = &posterior.parameters;
    if all.is_empty() {
        return;
    }
    let with_error = all.iter().any(|p| p.mcse.is_some());
    let (words, head) = match with_error {
        true => ("its Monte Carlo standard error, ", &["MC error"][..]),
        false => ("", &[][..]),
    };
    page.heading(
        "Parameters",
        &format!(
            "Posterior mean, {words}standard deviation, quantiles and shape, on the scale of the model."
        ),
    );
    if all.len() > FILTERED {
        page.push(
            "<div class=\"tools\" hidden><label>Only names with <input id=\"filter\" type=\"search\"></label>\
             <span id=\"found\" role=\"status\"></span></div>\n",
        );
    }
    let heads = [
        &["Parameter", "Mean"],
        head,
        &["SD", "5 %", "50 %", "95 %", "Shape"],
    ];
    let marginals = &posterior.marginals[..posterior.marginals.len().min(TABLE_ROWS)];
    page.table(
        "Parameters",
        heads.concat().into_iter().map(|head| match head {
            "Shape" => " data-fixed>Shape".to_owned(),
            head => format!(">{head}"),
        }),
        all.iter()
            .take(TABLE_ROWS)
            .map(|p| row(p, with_error, marginals)),
    );
    more(page, all.len(), TABLE_ROWS, "parameters are", "fit.json");
    if !posterior.elsewhere.is_empty() {
        page.put(format_args!(
            "<p class=\"soft\">Figures of other sections show {}; their numbers are in \
             <code>fit.json</code>.</p>\n",
            escape(&posterior.elsewhere.join(", "))
        ));
    }
}

fn row(p: &Parameter, with_error: bool, marginals: &[Marginal]) -> TableRow {
    let decimals = text::decimals_for(p.spread());
    // Numbers that are very large or very small are easier to read in scientific notation. All numbers of a row have
    // the same notation.
    let extreme = [p.mean, p.sd]
        .iter()
        .any(|x| x.is_finite() && x.abs() >= 1e7)
        || (p.sd > 0.0 && p.sd < 1e-7);
    let cell = |x: f64| match extreme && x.is_finite() {
        true => text::scientific(x, 4),
        false => text::fixed(x, decimals),
    };
    let mut cells = vec![format!("<code>{}</code>", escape(&p.name)), cell(p.mean)];
    if with_error {
        let error = p.mcse.map_or("–".to_owned(), |e| text::number(e, 2));
        cells.push(format!("<span class=\"soft\">{error}</span>"));
    }
    cells.extend([p.sd, p.q05, p.q50, p.q95].map(cell));
    let marginal = marginals.iter().find(|m| m.name == p.name);
    let shape = marginal.map_or_else(String::new, |m| {
        let label = format!("Shape of the marginal of {}", m.name);
        let svg = shapes::sparkline(&m.draws).to_inline_svg(&label);
        format!("<div class=\"shape\">{svg}</div>")
    });
    cells.push(shape);
    TableRow {
        name: Some(p.name.clone()),
        cells: cells.iter().map(|cell| format!(">{cell}")).collect(),
    }
}

fn more(page: &mut Page, total: usize, shown: usize, what: &str, file: &str) {
    if total > shown {
        page.put(format_args!(
            "<p class=\"soft\">{} further {what} not shown here; they are in <code>{file}</code>.</p>\n",
            total - shown
        ));
    }
}

fn variables(parameters: &[Parameter]) -> Vec<(&str, Vec<&Parameter>)> {
    let mut groups: Vec<(&str, Vec<&Parameter>)> = Vec::new();
    for p in parameters {
        let Some((stem, _)) = p.name.split_once('[') else {
            continue;
        };
        match groups.last_mut() {
            Some((name, rows)) if *name == stem => rows.push(p),
            _ => groups.push((stem, vec![p])),
        }
    }
    groups.retain(|(_, rows)| rows.len() > 1);
    groups
}

fn forests(page: &mut Page, parameters: &[Parameter]) {
    let groups = variables(parameters);
    if groups.is_empty() {
        return;
    }
    page.heading(
        "Vectors and matrices",
        "Medians and 90 % intervals of the elements of each variable.",
    );
    page.push("<div class=\"pair\">");
    for (name, rows) in groups.iter().take(FORESTS) {
        let caption = match rows.len().checked_sub(FOREST_ROWS) {
            Some(hidden @ 1..) => {
                format!("The first {FOREST_ROWS} elements; {hidden} more are not shown.")
            }
            _ => String::new(),
        };
        page.named_scene(
            (name, true),
            name,
            &format!("Medians and 90 % intervals of the elements of {name}"),
            &shapes::forest(&rows[..rows.len().min(FOREST_ROWS)]),
            &caption,
        );
    }
    page.push("</div>\n");
    more(page, groups.len(), FORESTS, "variables are", "fit.json");
}

fn marginals(page: &mut Page, marginals: &[Marginal]) {
    if marginals.is_empty() {
        return;
    }
    page.heading(
        "Marginal distributions",
        "Shaded: the central 90 %. Line: the median. Long tails are cut off on the page, not in the draws.",
    );
    page.push("<div class=\"many\">");
    for m in marginals.iter().take(MARGINALS) {
        let label = format!("Marginal distribution of {}", m.name);
        page.named_scene((&m.name, false), "", &label, &shapes::marginal(m), "");
    }
    page.push("</div>\n");
    more(
        page,
        marginals.len(),
        MARGINALS,
        "marginals are",
        "draws.csv",
    );
}

fn correlations(page: &mut Page, marginals: &[Marginal]) {
    let count = marginals.first().map_or(0, |m| m.draws.len());
    let usable: Vec<&Marginal> = marginals
        .iter()
        .filter(|m| m.draws.len() == count && count > 2)
        .take(CORRELATIONS)
        .collect();
    if usable.len() < 2 {
        return;
    }
    let table: Vec<Vec<Option<f64>>> = (0..usable.len())
        .map(|i| {
            (0..i)
                .map(|j| stats::correlation(&usable[i].draws, &usable[j].draws))
                .collect()
        })
        .collect();
    let mut pairs: Vec<(usize, usize, f64)> = (0..usable.len())
        .flat_map(|i| (0..i).map(move |j| (j, i)))
        .filter_map(|(j, i)| table[i][j].map(|r| (j, i, r)))
        .collect();
    pairs.sort_by(|a, b| b.2.abs().total_cmp(&a.2.abs()));

    page.heading(
        "Correlations",
        "Between the draws of the approximation. A mean-field family has no correlations on its own scale, so \
         their absence here does not show that the posterior has none.",
    );
    page.push("<div class=\"pair\">");
    let names: Vec<&str> = usable.iter().map(|m| m.name.as_str()).collect();
    let caption = match marginals.len() - usable.len() {
        0 => "Blue: positive, orange: negative.".to_string(),
        hidden => {
            format!("Blue: positive, orange: negative. {hidden} further parameters are not shown.")
        }
    };
    page.scene(
        "",
        "Correlations between the draws of parameters",
        &shapes::correlations(&names, &table),
        &caption,
    );
    if !pairs.is_empty() {
        page.push("<div class=\"many\" style=\"margin-top:0\">");
        for (j, i, r) in pairs.iter().take(PAIRS) {
            let (a, b) = (usable[*j], usable[*i]);
            let label = format!("Draws of {} against {}", b.name, a.name);
            let caption = format!("correlation {}", text::fixed(*r, 2));
            page.chart("", &label, pair(a, b), &caption);
        }
        page.push("</div>");
    }
    page.push("</div>\n");
}

fn pair(a: &Marginal, b: &Marginal) -> Chart {
    let pairs: Vec<(f64, f64)> = (a.draws.iter().copied().zip(b.draws.iter().copied()))
        .filter(|(x, y)| x.is_finite() && y.is_finite())
        .collect();
    let axis = |name: &str, values: Vec<f64>| {
        let (low, high) = stats::span(&stats::sorted_finite(&values), (0.002, 0.998));
        let margin = 0.03 * (high - low);
        Axis::new(text::shorten(name, 26)).range(low - margin, high + margin)
    };
    Chart::new("")
        .x(axis(&a.name, pairs.iter().map(|p| p.0).collect()))
        .y(axis(&b.name, pairs.iter().map(|p| p.1).collect()))
        .sized(250.0, 230.0)
        .series(
            Series::scatter("", stats::thin(&pairs, PAIR_POINTS))
                .width(1.4)
                .opacity(0.55),
        )
}
