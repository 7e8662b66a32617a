//! Renders the page that surrounds the sections, and those sections that consist of figures and a table.

use std::fmt::{Arguments, Write};

use crate::figure::{Chart, Figure, Scene, Tint, properties};
use crate::model::{Exhibit, Fact, Report, Section, Tone, Verdict};
use crate::text::{self, escape};
use crate::{bound, posterior, topics, weights};

const STYLE: &str = include_str!("style.css");

/// The script that provides the interactive features of the page. The page shows all of its content without the script.
const SCRIPT: &str = include_str!("script.js");

const SUMMARISED: usize = 20;

/// The width and the height, in pixels, of a chart that occupies half of the width of a page.
pub(crate) const WIDE: (f64, f64) = (520.0, 300.0);

/// Renders a report as a single HTML document.
pub fn render(report: &Report) -> String {
    let title = match report.title.as_str() {
        "" => "Variational fit",
        title => title,
    };
    let mut page = Page::start(title);
    page.header(title, &report.subject);
    page.verdict(&report.verdict, &summary(title, report));
    page.facts(&report.facts);
    page.list("warnings", &report.warnings);
    for section in &report.sections {
        match section {
            Section::Exhibit(exhibit) => page.exhibit(exhibit),
            Section::Bound(stages) => bound::put(&mut page, stages),
            Section::Weights(weights) => weights::put(&mut page, weights),
            Section::Posterior(posterior) => posterior::put(&mut page, posterior),
            Section::Topics(map) => topics::put(&mut page, map),
        }
    }
    page.run(&report.settings, &report.timing);
    page.end(&report.version, &report.footnote)
}

/// A row of a table. The filter of the page selects rows by their names. Each cell is markup that begins with the end
/// of the cell's opening tag, followed by the content.
pub(crate) struct TableRow {
    pub name: Option<String>,
    pub cells: Vec<String>,
}

/// Returns a summary of the page as plain text, which a reader can copy into a message.
fn summary(title: &str, report: &Report) -> String {
    let mut lines = vec![title.to_owned()];
    let subject = report.subject.iter().filter(|(_, value)| !value.is_empty());
    lines.extend(subject.map(|(label, value)| format!("{label}: {value}")));
    let Verdict {
        headline,
        status,
        advice,
        ..
    } = &report.verdict;
    lines.push(String::new());
    lines.extend(
        [headline, status]
            .into_iter()
            .filter(|line| !line.is_empty())
            .cloned(),
    );
    let listed = advice.iter().chain(&report.warnings);
    lines.extend(listed.map(|line| format!("- {line}")));
    lines.push(String::new());
    for Fact {
        label,
        value,
        aside,
    } in &report.facts
    {
        lines.push(format!("{label}: {value} {aside}").trim_end().to_owned());
    }
    for section in &report.sections {
        if let Section::Posterior(posterior) = section {
            lines.push(String::new());
            lines.extend(posterior::lines(posterior, SUMMARISED));
        }
    }
    lines.join("\n")
}

pub(crate) struct Page(String);

impl Page {
    fn start(title: &str) -> Self {
        let mut page = Self(String::with_capacity(1 << 16));
        let [light, dark] = properties();
        page.put(format_args!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <title>{}</title><style>:root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{STYLE}</style>\
             </head>\n<body><main>\n",
            escape(title)
        ));
        page
    }

    fn end(mut self, version: &str, footnote: &str) -> String {
        let words = ["Jensen", version].join(" ");
        let sentences = [format!("{}.", words.trim_end()), footnote.to_owned()];
        self.put(format_args!(
            "<footer>{}</footer>\n</main>\n<script>{SCRIPT}</script></body></html>\n",
            escape(sentences.join(" ").trim_end())
        ));
        self.0
    }

    pub fn push(&mut self, markup: &str) {
        self.0.push_str(markup);
    }

    /// Appends formatted markup.
    pub fn put(&mut self, markup: Arguments<'_>) {
        let _ = self.0.write_fmt(markup);
    }

    /// Returns a style declaration that sets the background to the colour of a series.
    pub fn ground(series: usize) -> String {
        format!("background:{}", Tint::Series(series).css())
    }

    /// Adds a heading, followed by a note of one or two sentences. The note may be empty.
    pub fn heading(&mut self, heading: &str, note: &str) {
        self.put(format_args!("<h2>{}</h2>", escape(heading)));
        if !note.is_empty() {
            self.put(format_args!("<p class=\"soft\">{}</p>", escape(note)));
        }
    }

    /// Adds a chart with a frame. `label` describes the chart for readers who cannot see it.
    pub fn chart(&mut self, heading: &str, label: &str, chart: Chart, caption: &str) {
        self.scene(
            heading,
            label,
            &Figure::new("").panel(chart).scene(),
            caption,
        );
    }

    /// Adds a picture with a frame. `label` describes the picture for readers who cannot see it.
    pub fn scene(&mut self, heading: &str, label: &str, scene: &Scene, caption: &str) {
        self.push("<figure>");
        self.framed(heading, label, scene, caption);
    }

    /// Adds a picture of a parameter or of a whole variable. The filter of the page selects the picture by the name of
    /// the parameter or variable.
    pub fn named_scene(
        &mut self,
        (name, whole): (&str, bool),
        heading: &str,
        label: &str,
        scene: &Scene,
        caption: &str,
    ) {
        let whole = if whole { " data-whole" } else { "" };
        self.put(format_args!(
            "<figure data-name=\"{}\"{whole}>",
            escape(name)
        ));
        self.framed(heading, label, scene, caption);
    }

    /// Adds a picture to a group. The script shows only the picture of the group that the reader has chosen.
    pub fn chosen_scene(&mut self, (group, item): (&str, usize), heading: &str, scene: &Scene) {
        self.put(format_args!(
            "<figure data-of=\"{group}\" data-item=\"{item}\">"
        ));
        self.framed(heading, heading, scene, "");
    }

    fn framed(&mut self, heading: &str, label: &str, scene: &Scene, caption: &str) {
        if !heading.is_empty() {
            self.put(format_args!("<h3>{}</h3>", escape(heading)));
        }
        self.push(&scene.to_inline_svg(label));
        if !caption.is_empty() {
            self.put(format_args!("<figcaption>{}</figcaption>", escape(caption)));
        }
        self.push("</figure>\n");
    }

    /// Adds a table. `label` describes the table for readers who cannot see it. The content of the cells is markup.
    pub fn table(
        &mut self,
        label: &str,
        heads: impl IntoIterator<Item = String>,
        rows: impl IntoIterator<Item = TableRow>,
    ) {
        // An element that can receive the focus can be scrolled with the keyboard.
        self.put(format_args!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table><thead><tr>",
            escape(label)
        ));
        for head in heads {
            self.put(format_args!("<th scope=\"col\"{head}</th>"));
        }
        self.push("</tr></thead><tbody>\n");
        for TableRow { name, cells } in rows {
            match name {
                Some(name) => self.put(format_args!("<tr data-name=\"{}\">", escape(&name))),
                None => self.push("<tr>"),
            }
            for cell in cells {
                self.put(format_args!("<td{cell}</td>"));
            }
            self.push("</tr>\n");
        }
        self.push("</tbody></table></div>\n");
    }

    fn header(&mut self, title: &str, subject: &[(String, String)]) {
        let parts: Vec<String> = (subject.iter().filter(|(_, value)| !value.is_empty()))
            .map(|(label, value)| format!("{} <code>{}</code>", escape(label), escape(value)))
            .collect();
        self.put(format_args!(
            "<header><h1>{}</h1><p>{}</p></header>\n",
            escape(title),
            parts.join(" · ")
        ));
    }

    fn verdict(&mut self, verdict: &Verdict, summary: &str) {
        let class = match verdict.tone {
            Tone::Good => "good",
            Tone::Fair => "fair",
            Tone::Poor => "poor",
        };
        self.put(format_args!(
            "<section class=\"verdict {class}\"><strong>{}</strong>",
            escape(&verdict.headline)
        ));
        if !verdict.status.is_empty() {
            self.put(format_args!("<p>{}</p>", escape(&verdict.status)));
        }
        self.list("", &verdict.advice);
        self.put(format_args!(
            "<div class=\"tools\" hidden><button type=\"button\" id=\"copy\">Copy a summary</button>\
             <span id=\"copied\" role=\"status\"></span></div><pre id=\"summary\" hidden>{}</pre></section>\n",
            escape(summary)
        ));
    }

    fn facts(&mut self, facts: &[Fact]) {
        self.push("<dl class=\"facts\">");
        for fact in facts {
            self.put(format_args!(
                "<div><dt>{}</dt><dd>{}",
                escape(&fact.label),
                escape(&fact.value)
            ));
            if !fact.aside.is_empty() {
                self.put(format_args!(" <small>{}</small>", escape(&fact.aside)));
            }
            self.push("</dd></div>");
        }
        self.push("</dl>\n");
    }

    fn list(&mut self, class: &str, items: &[String]) {
        if items.is_empty() {
            return;
        }
        self.put(format_args!("<ul class=\"{class}\">"));
        for item in items {
            self.put(format_args!("<li>{}</li>", escape(item)));
        }
        self.push("</ul>\n");
    }

    fn exhibit(&mut self, exhibit: &Exhibit) {
        self.heading(&exhibit.heading, &exhibit.note);
        if !exhibit.figures.is_empty() {
            self.push("<div class=\"pair\">");
            for (figure, caption) in &exhibit.figures {
                let label = match caption.as_str() {
                    "" => &exhibit.heading,
                    caption => caption,
                };
                self.scene("", label, &figure.scene(), caption);
            }
            self.push("</div>\n");
        }
        let (heads, rows) = &exhibit.table;
        if !rows.is_empty() {
            // Columns that contain words are left-aligned.
            let column = |at: usize| rows.iter().filter_map(move |row| row.get(at));
            let words: Vec<bool> = (0..heads.len())
                .map(|at| at > 0 && column(at).any(|cell| text::is_words(cell)))
                .collect();
            let class = |at: usize| match words.get(at) {
                Some(true) => " class=\"words\">",
                _ => ">",
            };
            let marked = |texts: &[String]| -> Vec<String> {
                let texts = texts.iter().enumerate();
                texts
                    .map(|(at, text)| format!("{}{}", class(at), escape(text)))
                    .collect()
            };
            self.table(
                &exhibit.heading,
                marked(heads),
                rows.iter().map(|row| TableRow {
                    name: None,
                    cells: marked(row),
                }),
            );
        }
    }

    fn run(&mut self, settings: &[(String, String)], timing: &[(String, f64)]) {
        if settings.is_empty() && timing.is_empty() {
            return;
        }
        self.heading("How it was made", "");
        self.push("<div class=\"pair\">");
        if !settings.is_empty() {
            self.push("<figure><h3>Settings</h3><table class=\"plain\"><tbody>");
            for (name, value) in settings {
                self.put(format_args!(
                    "<tr><td>{}</td><td>{}</td></tr>",
                    escape(name),
                    escape(value)
                ));
            }
            self.push("</tbody></table></figure>\n");
        }
        if !timing.is_empty() {
            self.timing(timing);
        }
        self.push("</div>\n");
    }

    fn timing(&mut self, timing: &[(String, f64)]) {
        let spent = |seconds: &f64| seconds.is_finite() && *seconds > 0.0;
        let total: f64 = timing.iter().map(|(_, s)| *s).filter(spent).sum();
        self.push("<figure><h3>Time</h3><div class=\"timebar\">");
        for (i, (_, seconds)) in timing.iter().enumerate().filter(|(_, (_, s))| spent(s)) {
            self.put(format_args!(
                "<span style=\"{};width:{:.2}%\"></span>",
                Self::ground(i),
                100.0 * seconds / total
            ));
        }
        self.push("</div><table class=\"plain\"><tbody>");
        for (i, (name, seconds)) in timing.iter().enumerate() {
            self.put(format_args!(
                "<tr><td><span class=\"key\" style=\"{}\"></span>{}</td><td>{}</td></tr>",
                Self::ground(i),
                escape(name),
                text::duration(*seconds)
            ));
        }
        self.put(format_args!(
            "<tr><td>total</td><td>{}</td></tr></tbody></table></figure>\n",
            text::duration(total)
        ));
    }
}
