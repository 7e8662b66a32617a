//! A page about a fit that is not a posterior of named parameters: facts, figures and tables in sections.

use serde::{Deserialize, Serialize};

use crate::model::Report;
use crate::page::{self, put};
use crate::text::escape;

/// How a run came out, for the colour of the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// As it should be.
    #[default]
    Good,
    /// Usable with care.
    Fair,
    /// Not to be used.
    Poor,
}

/// What the page says. Empty lists and texts leave their part out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sheet {
    /// Headline.
    pub title: String,
    /// What was fitted, and to what: label and value.
    pub subject: Vec<(String, String)>,
    /// The verdict: tone, headline, a sentence.
    pub verdict: (Tone, String, String),
    /// Short facts: label, value, aside.
    pub facts: Vec<(String, String, String)>,
    /// Things the reader should know, a sentence each.
    pub warnings: Vec<String>,
    /// The body.
    pub sections: Vec<Section>,
    /// Settings of the run: name and value.
    pub settings: Vec<(String, String)>,
    /// Parts of the run and their wall-clock seconds.
    pub timing: Vec<(String, f64)>,
    /// Version of the program that made the fit.
    pub version: String,
}

/// A heading with figures and a table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Section {
    /// Heading.
    pub heading: String,
    /// A sentence or two below it.
    pub note: String,
    /// Figures: SVG, such as [`crate::figure::Figure::to_svg`] makes, and a caption.
    pub figures: Vec<(String, String)>,
    /// A table: the heads of its columns, and its rows.
    pub table: (Vec<String>, Vec<Vec<String>>),
}

/// The page as one HTML document.
pub fn render_sheet(sheet: &Sheet) -> String {
    let mut out = page::start(&sheet.title);
    put(
        &mut out,
        format_args!("<header><h1>{}</h1><p>", escape(&sheet.title)),
    );
    let subject = sheet.subject.iter();
    let subject: Vec<String> = subject
        .map(|(label, value)| format!("{} <code>{}</code>", escape(label), escape(value)))
        .collect();
    put(
        &mut out,
        format_args!("{}</p></header>\n", subject.join(" · ")),
    );
    let (tone, headline, sentence) = &sheet.verdict;
    let class = match tone {
        Tone::Good => "good",
        Tone::Fair => "fair",
        Tone::Poor => "poor",
    };
    put(
        &mut out,
        format_args!(
            "<section class=\"verdict {class}\"><strong>{}</strong><p>{}</p></section>\n",
            escape(headline),
            escape(sentence)
        ),
    );
    out.push_str("<dl class=\"facts\">");
    for (label, value, aside) in &sheet.facts {
        page::fact(&mut out, label, value, aside);
    }
    out.push_str("</dl>\n");
    page::list(&mut out, "warnings", &sheet.warnings);
    for section in &sheet.sections {
        render_section(&mut out, section);
    }
    page::run(
        &mut out,
        &Report {
            settings: sheet.settings.clone(),
            timing: sheet.timing.clone(),
            ..Report::default()
        },
    );
    put(
        &mut out,
        format_args!(
            "<footer>Jensen {}. Bounds and scores are in nats.</footer>\n",
            escape(&sheet.version)
        ),
    );
    page::end(out)
}

pub(crate) fn render_section(out: &mut String, section: &Section) {
    put(out, format_args!("<h2>{}</h2>", escape(&section.heading)));
    if !section.note.is_empty() {
        put(
            out,
            format_args!("<p class=\"soft\">{}</p>", escape(&section.note)),
        );
    }
    if !section.figures.is_empty() {
        out.push_str("<div class=\"pair\">");
        for (svg, caption) in &section.figures {
            page::figure(out, "", svg, caption);
        }
        out.push_str("</div>\n");
    }
    let (heads, rows) = &section.table;
    if rows.is_empty() {
        return;
    }
    out.push_str("<div class=\"scroll\"><table><thead><tr>");
    for head in heads {
        put(out, format_args!("<th>{}</th>", escape(head)));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for cell in row {
            put(out, format_args!("<td>{}</td>", escape(cell)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_on_the_page_and_escaped() {
        let text = |s: &str| s.to_owned();
        let sheet = Sheet {
            title: text("T<1>"),
            subject: vec![(text("corpus"), text("c&d"))],
            verdict: (Tone::Fair, text("Stopped"), text("Go on <b>")),
            facts: vec![(text("topics"), text("7"), text("of 9"))],
            warnings: vec![text("beware <")],
            sections: vec![Section {
                heading: text("Curves"),
                note: text("of a < b"),
                figures: vec![(text("<svg id=\"x\"></svg>"), text("caption"))],
                table: (vec![text("head")], vec![vec![text("<cell>")]]),
            }],
            settings: vec![(text("seed"), text("3"))],
            timing: vec![(text("fit"), 1.0)],
            version: text("0.1"),
        };
        let page = render_sheet(&sheet);
        for part in [
            "T&lt;1&gt;",
            "c&amp;d",
            "verdict fair",
            "Go on &lt;b&gt;",
            "of 9",
            "beware &lt;",
            "a &lt; b",
            "<svg id=\"x\"></svg>",
            "caption",
            "<th>head</th>",
            "&lt;cell&gt;",
            "seed",
            "Jensen 0.1",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    }
}
