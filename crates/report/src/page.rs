//! The page: what stands around its sections, and the section of figures and a table.

use std::fmt::{Arguments, Write};

use crate::figure::{Chart, Figure, Scene, Tint, properties};
use crate::model::{Exhibit, Fact, Report, Section, Tone, Verdict};
use crate::text::{self, escape};
use crate::{bound, posterior, weights};

const STYLE: &str = include_str!("style.css");

/// Width and height of a chart that takes half of a page, in pixels.
pub(crate) const WIDE: (f64, f64) = (520.0, 300.0);

/// The page as one HTML document.
pub fn render(report: &Report) -> String {
    let title = match report.title.as_str() {
        "" => "Variational fit",
        title => title,
    };
    let mut page = Page::start(title);
    page.header(title, &report.subject);
    page.verdict(&report.verdict);
    page.facts(&report.facts);
    page.list("warnings", &report.warnings);
    for section in &report.sections {
        match section {
            Section::Exhibit(exhibit) => page.exhibit(exhibit),
            Section::Bound(stages) => bound::put(&mut page, stages),
            Section::Weights(weights) => weights::put(&mut page, weights),
            Section::Posterior(posterior) => posterior::put(&mut page, posterior),
        }
    }
    page.run(&report.settings, &report.timing);
    page.end(&report.version, &report.footnote)
}

/// A page that is being written.
pub(crate) struct Page(String);

impl Page {
    /// The beginning, up to the body.
    fn start(title: &str) -> Self {
        let mut page = Self(String::with_capacity(1 << 16));
        let [light, dark] = properties();
        page.put(format_args!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <title>{}</title><style>:root{{{light}}}\n@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{STYLE}</style>\
             </head>\n<body><main>\n",
            escape(title)
        ));
        page
    }

    /// The page with its end.
    fn end(mut self, version: &str, footnote: &str) -> String {
        let words = ["Jensen", version].join(" ");
        let sentences = [format!("{}.", words.trim_end()), footnote.to_owned()];
        self.put(format_args!(
            "<footer>{}</footer>\n</main></body></html>\n",
            escape(sentences.join(" ").trim_end())
        ));
        self.0
    }

    /// Appends markup.
    pub fn push(&mut self, markup: &str) {
        self.0.push_str(markup);
    }

    /// Appends markup. Writing to a string cannot fail.
    pub fn put(&mut self, markup: Arguments<'_>) {
        let _ = self.0.write_fmt(markup);
    }

    /// The ground in the colour of a series, as a declaration of a style.
    pub fn ground(series: usize) -> String {
        format!("background:{}", Tint::Series(series).css())
    }

    /// A heading, and a sentence or two below it, which may be empty.
    pub fn heading(&mut self, heading: &str, note: &str) {
        self.put(format_args!("<h2>{}</h2>", escape(heading)));
        if !note.is_empty() {
            self.put(format_args!("<p class=\"soft\">{}</p>", escape(note)));
        }
    }

    /// A chart in a frame; `label` tells what it shows to those who cannot see it.
    pub fn chart(&mut self, heading: &str, label: &str, chart: Chart, caption: &str) {
        self.scene(
            heading,
            label,
            &Figure::new("").panel(chart).scene(),
            caption,
        );
    }

    /// A picture in a frame, in the same way.
    pub fn scene(&mut self, heading: &str, label: &str, scene: &Scene, caption: &str) {
        self.push("<figure>");
        if !heading.is_empty() {
            self.put(format_args!("<h3>{}</h3>", escape(heading)));
        }
        self.push(&scene.to_inline_svg(label));
        if !caption.is_empty() {
            self.put(format_args!("<figcaption>{}</figcaption>", escape(caption)));
        }
        self.push("</figure>\n");
    }

    /// A table. Cells are markup.
    pub fn table(
        &mut self,
        heads: impl IntoIterator<Item = String>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) {
        self.push("<div class=\"scroll\"><table><thead><tr>");
        for head in heads {
            self.put(format_args!("<th>{head}</th>"));
        }
        self.push("</tr></thead><tbody>\n");
        for row in rows {
            self.put(format_args!(
                "<tr><td>{}</td></tr>\n",
                row.join("</td><td>")
            ));
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

    fn verdict(&mut self, verdict: &Verdict) {
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
        self.push("</section>\n");
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
            let escaped = |cells: &Vec<String>| cells.iter().map(|cell| escape(cell)).collect();
            self.table(heads.iter().map(|h| escape(h)), rows.iter().map(escaped));
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
