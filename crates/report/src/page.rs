//! The page: sections in the order in which a reader asks for them.

use std::fmt::Write;

use crate::model::{Khat, Marginal, Parameter, Report};
use crate::plots;
use crate::sheet;
use crate::stats;
use crate::text::{self, escape};

const STYLE: &str = include_str!("style.css");

/// Marginals that are drawn.
const MARGINALS: usize = 24;
/// Rows of the parameter table; the rest is in `fit.json`.
const TABLE_ROWS: usize = 500;
/// Variables with a forest plot, and elements in each.
const FORESTS: usize = 8;
const FOREST_ROWS: usize = 40;
/// Parameters in the map of correlations, and pairs drawn against each other.
const CORRELATIONS: usize = 16;
const PAIRS: usize = 4;

/// The page as one HTML document.
pub fn render(report: &Report) -> String {
    let title = if report.title.is_empty() {
        "Variational fit"
    } else {
        &report.title
    };
    let mut page = start(title);
    header(&mut page, report, title);
    trace(&mut page, report);
    for section in &report.sections {
        sheet::render_section(&mut page, section);
    }
    weights(&mut page, report);
    parameters(&mut page, report);
    forests(&mut page, &report.parameters);
    marginals(&mut page, &report.marginals);
    correlations(&mut page, &report.marginals);
    run(&mut page, report);
    footer(&mut page, report);
    end(page)
}

/// The beginning of a page, up to its body.
pub(crate) fn start(title: &str) -> String {
    let mut page = String::with_capacity(1 << 16);
    put(
        &mut page,
        format_args!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{}</title><style>{STYLE}</style></head>\n<body><main>\n",
            escape(title)
        ),
    );
    page
}

/// The page with its end.
pub(crate) fn end(mut page: String) -> String {
    page.push_str("</main></body></html>\n");
    page
}

/// Appends to the page. Writing to a string cannot fail.
pub(crate) fn put(page: &mut String, content: std::fmt::Arguments<'_>) {
    let _ = page.write_fmt(content);
}

pub(crate) fn figure(page: &mut String, heading: &str, plot: &str, caption: &str) {
    page.push_str("<figure>");
    if !heading.is_empty() {
        put(page, format_args!("<h3>{}</h3>", escape(heading)));
    }
    page.push_str(plot);
    if !caption.is_empty() {
        put(
            page,
            format_args!("<figcaption>{}</figcaption>", escape(caption)),
        );
    }
    page.push_str("</figure>\n");
}

fn header(page: &mut String, report: &Report, title: &str) {
    put(page, format_args!("<header><h1>{}</h1><p>", escape(title)));
    let parts = [("Model", &report.model), ("data", &report.data)];
    let parts: Vec<String> = (parts.iter().filter(|(_, v)| !v.is_empty()))
        .map(|(k, v)| format!("{k} <code>{}</code>", escape(v)))
        .collect();
    put(page, format_args!("{}</p></header>\n", parts.join(" · ")));

    let (class, verdict) = match (report.converged, report.trusted) {
        (true, true) => ("good", "Converged, and the draws can be trusted"),
        (false, true) => (
            "fair",
            "The draws pass their check, yet the optimiser did not converge",
        ),
        (true, false) => (
            "fair",
            "Converged, but the draws are not to be trusted as they are",
        ),
        (false, false) => ("poor", "Not converged: do not use these results"),
    };
    put(
        page,
        format_args!("<section class=\"verdict {class}\"><strong>{verdict}</strong>"),
    );
    if !report.status.is_empty() {
        put(page, format_args!("<p>{}</p>", escape(&report.status)));
    }
    list(page, "", &report.advice);
    page.push_str("</section>\n");

    page.push_str("<dl class=\"facts\">");
    if let Some((elbo, se)) = report.elbo {
        let decimals = if se.is_finite() {
            text::decimals_for(se).saturating_sub(1)
        } else {
            2
        };
        fact(
            page,
            "ELBO",
            &text::fixed(elbo, decimals),
            &format!("± {} nats", text::number(se, 2)),
        );
    }
    if let Some(khat) = report.khat {
        fact(
            page,
            "Pareto k̂",
            &text::fixed(khat.value, 2),
            &format!("trusted to {}", text::fixed(khat.threshold, 2)),
        );
    }
    for (label, value) in &report.facts {
        fact(page, label, value, "");
    }
    page.push_str("</dl>\n");
    list(page, "warnings", &report.warnings);
}

pub(crate) fn fact(page: &mut String, label: &str, value: &str, aside: &str) {
    put(
        page,
        format_args!("<div><dt>{}</dt><dd>{}", escape(label), escape(value)),
    );
    if !aside.is_empty() {
        put(page, format_args!(" <small>{}</small>", escape(aside)));
    }
    page.push_str("</dd></div>");
}

pub(crate) fn list(page: &mut String, class: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    put(page, format_args!("<ul class=\"{class}\">"));
    for item in items {
        put(page, format_args!("<li>{}</li>", escape(item)));
    }
    page.push_str("</ul>\n");
}

fn trace(page: &mut String, report: &Report) {
    let stages = plots::lay_out(&report.stages);
    if stages.is_empty() {
        return;
    }
    page.push_str(
        "<h2>The bound along the run</h2><p class=\"soft\">Each estimate of the evidence lower bound with a band of two \
         Monte Carlo standard errors. A converged run is flat on the right, up to the width of the band.</p>\
         <div class=\"pair\">",
    );
    figure(page, "Whole run", &plots::elbo_trace(&stages, false), "");
    if stages.last().is_some_and(|(_, points)| points.len() >= 4) {
        figure(
            page,
            "Second half of the last stage",
            &plots::elbo_trace(&stages, true),
            "",
        );
    }
    page.push_str("</div>\n");
    if stages.len() > 1 {
        page.push_str("<ul class=\"legend\">");
        for (i, (name, points)) in stages.iter().enumerate() {
            let Some(last) = points.last() else { continue };
            let decimals = text::decimals_for(last.se).saturating_sub(1).min(2);
            put(
                page,
                format_args!(
                    "<li><span class=\"k{}\"></span>{}: {} after {}</li>",
                    i % 4,
                    escape(name),
                    text::fixed(last.elbo, decimals),
                    text::duration(last.seconds)
                ),
            );
        }
        page.push_str("</ul>\n");
    }
}

/// What a value of k̂ means: Vehtari, Simpson, Gelman, Yao and Gabry, JMLR 25(72), 2024.
fn khat_meaning(khat: Khat) -> &'static str {
    match khat.value {
        k if k.is_nan() => "It could not be estimated from these draws.",
        k if k > 1.0 => {
            "The importance weights have no mean: the approximation misses a part of the posterior, and no number of \
             draws repairs that. Choose a richer family or rewrite the model."
        }
        k if k > khat.threshold => {
            "Some draws carry very large weights: estimates converge slowly and their errors are understated. A richer \
             family, a longer run or another parameterisation may help. A mean-field family cannot follow strong \
             correlations and ends here by nature."
        }
        k if k > 0.5 => {
            "The weights have a mean but no variance: reweighted estimates are usable, with a larger error than the \
             number of draws suggests."
        }
        _ => "The weights have a finite variance: the approximation covers the posterior well.",
    }
}

fn weights(page: &mut String, report: &Report) {
    let relative = stats::relative_weights(&report.log_weights);
    if report.khat.is_none() && relative.len() < 2 {
        return;
    }
    page.push_str(
        "<h2>Can the draws be trusted?</h2><p class=\"soft\">The weights p/q compare the posterior with the approximation draw by \
         draw. Few large weights among many small ones mean that the approximation misses a part of the posterior.</p>",
    );
    page.push_str("<div class=\"pair\">");
    if let Some(khat) = report.khat {
        figure(
            page,
            "Pareto k̂ of the importance weights p/q",
            &plots::khat_gauge(khat),
            khat_meaning(khat),
        );
    }
    if relative.len() >= 2 {
        let n = relative.len() as f64;
        let squares: f64 = relative.iter().map(|w| w * w).sum();
        let dropped = report.log_weights.len() - relative.len();
        let mut caption = format!(
            "Orange: the tail behind k̂. The largest weight holds {} % of the total; the weights are worth {} of {} draws.",
            text::number(100.0 * relative[0] / n, 2),
            text::number(n * n / squares, 3),
            text::number(n, 6)
        );
        if dropped > 0 {
            let _ = write!(
                caption,
                " {dropped} draws without a finite weight are left out."
            );
        }
        figure(
            page,
            "Importance weights, largest first",
            &plots::weight_tail(&relative),
            &caption,
        );
    }
    page.push_str("</div>\n");
}

fn parameters(page: &mut String, report: &Report) {
    let all = &report.parameters;
    if all.is_empty() {
        return;
    }
    let with_error = all.iter().any(|p| p.mcse.is_some());
    page.push_str("<h2>Parameters</h2><p class=\"soft\">Posterior mean, ");
    if with_error {
        page.push_str("its Monte Carlo standard error, ");
    }
    page.push_str("standard deviation, quantiles and shape, on the scale of the model.</p>");
    page.push_str("<div class=\"scroll\"><table><thead><tr><th>Parameter</th><th>Mean</th>");
    if with_error {
        page.push_str("<th>MC error</th>");
    }
    page.push_str(
        "<th>SD</th><th>5 %</th><th>50 %</th><th>95 %</th><th>Shape</th></tr></thead><tbody>\n",
    );
    for p in all.iter().take(TABLE_ROWS) {
        let decimals = text::decimals_for(p.sd);
        // Figures far from unit size read better in scientific notation, all of a row alike.
        let extreme = [p.mean, p.sd]
            .iter()
            .any(|x| x.is_finite() && x.abs() >= 1e7)
            || (p.sd > 0.0 && p.sd < 1e-7);
        let cell = |x: f64| {
            if extreme && x.is_finite() {
                text::scientific(x, 4)
            } else {
                text::fixed(x, decimals)
            }
        };
        put(
            page,
            format_args!(
                "<tr><td><code>{}</code></td><td>{}</td>",
                escape(&p.name),
                cell(p.mean)
            ),
        );
        if with_error {
            let error = p.mcse.map_or("–".to_string(), |e| text::number(e, 2));
            put(page, format_args!("<td class=\"soft\">{error}</td>"));
        }
        for x in [p.sd, p.q05, p.q50, p.q95] {
            put(page, format_args!("<td>{}</td>", cell(x)));
        }
        page.push_str("<td class=\"shape\">");
        if let Some(m) = report
            .marginals
            .iter()
            .take(TABLE_ROWS)
            .find(|m| m.name == p.name)
        {
            page.push_str(&plots::sparkline(&m.draws, &m.name));
        }
        page.push_str("</td></tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
    more(page, all.len(), TABLE_ROWS, "parameters are", "fit.json");
}

/// "… and n more" below something that was cut short.
fn more(page: &mut String, total: usize, shown: usize, what: &str, place: &str) {
    if total > shown {
        put(
            page,
            format_args!(
                "<p class=\"soft\">{} further {what} not shown here; they are in <code>{place}</code>.</p>\n",
                total - shown
            ),
        );
    }
}

/// Variables with at least two elements, each with its elements, in order.
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

fn forests(page: &mut String, parameters: &[Parameter]) {
    let groups = variables(parameters);
    if groups.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Vectors and matrices</h2><p class=\"soft\">Medians and 90 % intervals of the elements of each variable.</p>\
         <div class=\"pair\">",
    );
    for (name, rows) in groups.iter().take(FORESTS) {
        let caption = match rows.len().checked_sub(FOREST_ROWS) {
            Some(hidden @ 1..) => {
                format!("The first {FOREST_ROWS} elements; {hidden} more are not shown.")
            }
            _ => String::new(),
        };
        figure(
            page,
            name,
            &plots::forest(&rows[..rows.len().min(FOREST_ROWS)], name),
            &caption,
        );
    }
    page.push_str("</div>\n");
    more(page, groups.len(), FORESTS, "variables are", "fit.json");
}

fn marginals(page: &mut String, marginals: &[Marginal]) {
    if marginals.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Marginal distributions</h2><p class=\"soft\">Shaded: the central 90 %. Line: the median. Long tails are \
         cut off on the page, not in the draws.</p><div class=\"many\">",
    );
    for m in marginals.iter().take(MARGINALS) {
        figure(page, "", &plots::marginal(m), "");
    }
    page.push_str("</div>\n");
    more(
        page,
        marginals.len(),
        MARGINALS,
        "marginals are",
        "draws.csv",
    );
}

fn correlations(page: &mut String, marginals: &[Marginal]) {
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

    page.push_str(
        "<h2>Correlations</h2><p class=\"soft\">Between the draws of the approximation. A mean-field family knows no \
         correlations on its own scale, so their absence here says nothing about the posterior.</p><div class=\"pair\">",
    );
    let names: Vec<&str> = usable.iter().map(|m| m.name.as_str()).collect();
    let caption = match marginals.len() - usable.len() {
        0 => "Blue: positive, orange: negative.".to_string(),
        hidden => {
            format!("Blue: positive, orange: negative. {hidden} further parameters are not shown.")
        }
    };
    figure(page, "", &plots::correlation_map(&names, &table), &caption);
    if !pairs.is_empty() {
        page.push_str("<div class=\"many\" style=\"margin-top:0\">");
        for (j, i, r) in pairs.iter().take(PAIRS) {
            let caption = format!("correlation {}", text::fixed(*r, 2));
            figure(page, "", &plots::scatter(usable[*j], usable[*i]), &caption);
        }
        page.push_str("</div>");
    }
    page.push_str("</div>\n");
}

pub(crate) fn run(page: &mut String, report: &Report) {
    if report.settings.is_empty() && report.timing.is_empty() {
        return;
    }
    page.push_str("<h2>How it was made</h2><div class=\"pair\">");
    if !report.settings.is_empty() {
        page.push_str("<figure><h3>Settings</h3><table class=\"plain\"><tbody>");
        for (name, value) in &report.settings {
            put(
                page,
                format_args!(
                    "<tr><td>{}</td><td>{}</td></tr>",
                    escape(name),
                    escape(value)
                ),
            );
        }
        page.push_str("</tbody></table></figure>\n");
    }
    if !report.timing.is_empty() {
        let total: f64 = report
            .timing
            .iter()
            .map(|(_, s)| *s)
            .filter(|s| s.is_finite() && *s > 0.0)
            .sum();
        page.push_str("<figure><h3>Time</h3><div class=\"timebar\">");
        for (i, (_, seconds)) in report.timing.iter().enumerate() {
            if seconds.is_finite() && *seconds > 0.0 && total > 0.0 {
                put(
                    page,
                    format_args!(
                        "<span class=\"k{}\" style=\"width:{:.2}%\"></span>",
                        i % 4,
                        100.0 * seconds / total
                    ),
                );
            }
        }
        page.push_str("</div><table class=\"plain\"><tbody>");
        for (i, (name, seconds)) in report.timing.iter().enumerate() {
            put(
                page,
                format_args!(
                    "<tr><td><span class=\"key k{}\"></span>{}</td><td>{}</td></tr>",
                    i % 4,
                    escape(name),
                    text::duration(*seconds)
                ),
            );
        }
        put(
            page,
            format_args!("<tr><td>total</td><td>{}</td></tr>", text::duration(total)),
        );
        page.push_str("</tbody></table></figure>\n");
    }
    page.push_str("</div>\n");
}

fn footer(page: &mut String, report: &Report) {
    page.push_str("<footer>Jensen");
    if !report.version.is_empty() {
        put(page, format_args!(" {}", escape(&report.version)));
    }
    page.push_str(
        ". The evidence lower bound is in nats, with all normalising constants; the log evidence is at least that large. \
         Intervals are those of the approximation.</footer>\n",
    );
}
