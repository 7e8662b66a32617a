//! Checks that every numeric constant of `jensen-blackbox` has its meaning and reason beside it, and that the book's
//! page on constants lists them all.
//!
//! The page contains one table for each part of the crate, between `<!-- constants -->` and `<!-- end -->`, generated from
//! the sources. The text around the tables is written by hand. Constants that are computed from other constants, and the
//! largest value of a type as a marker, are not choices, so the page does not list them.

use std::fs;
use std::path::Path;

use crate::Findings;
use crate::run::Ended;
use crate::sources::{before_tests, files};

const SOURCES: &str = "crates/blackbox/src";
const PAGE: &str = "docs/book/src/constants.md";
const BEGIN: &str = "<!-- constants -->\n";
const END: &str = "<!-- end -->";

/// The numeric types. A constant of another type, such as a name, decides nothing.
const TYPES: [&str; 6] = ["f64", "usize", "u64", "u32", "i32", "f32"];

/// The parts of the crate, with the beginnings of their files. The last part takes all other files.
const PARTS: [(&str, &[&str]); 7] = [
    (
        "Policy, sizes and units",
        &["policy", "sizes", "calls", "noise"],
    ),
    ("Starts", &["starts", "ridges", "symmetry", "tail_decay"]),
    ("Checks of a family", &["family/check"]),
    ("Families", &["family", "locals", "nested", "sparse"]),
    (
        "Choice of a family, evaluation and verdict",
        &["agreement", "driver", "evaluation", "psis", "verdict"],
    ),
    ("Refinement", &["refine"]),
    ("Optimisers and other methods", &[""]),
];

#[derive(Debug, PartialEq)]
struct Constant {
    name: String,
    value: String,
    reason: String,
}

/// Writes the current table into the page.
pub fn write(root: &Path) -> Result<Ended, String> {
    let page = root.join(PAGE);
    let text = read(&page)?;
    fs::write(&page, renewed(root, &text)?).map_err(|e| format!("{PAGE}: {e}"))?;
    Ok(Ended::Done)
}

/// Finds constants without documentation, and checks that the page is up to date.
pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    for (file, constants) in all(root)? {
        let bare = constants
            .iter()
            .filter(|constant| constant.reason.is_empty());
        findings.errors.extend(bare.map(|constant| {
            format!(
                "{SOURCES}/{file}: the constant `{}` needs a comment with its meaning and the reason for its value",
                constant.name
            )
        }));
    }
    let text = read(&root.join(PAGE))?;
    if renewed(root, &text)? != text {
        findings.errors.push(format!(
            "{PAGE}: the table is out of date; `cargo xtask constants` rewrites it"
        ));
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn renewed(root: &Path, text: &str) -> Result<String, String> {
    let lost = || format!("{PAGE}: the marks of the table are missing");
    let (before, rest) = text.split_once(BEGIN).ok_or_else(lost)?;
    let (_, after) = rest.split_once(END).ok_or_else(lost)?;
    let files = all(root)?;
    let part_of = |file: &str| {
        let of = |(_, beginnings): &(&str, &[&str])| beginnings.iter().any(|b| file.starts_with(b));
        PARTS.iter().position(of)
    };
    let mut table = String::new();
    for (at, (part, _)) in PARTS.iter().enumerate() {
        let own: Vec<(&String, &Constant)> = files
            .iter()
            .filter(|(file, _)| part_of(file) == Some(at))
            .flat_map(|(file, constants)| constants.iter().map(move |constant| (file, constant)))
            .collect();
        table += &format!("\n## {part}\n\n{} constants.\n\n", own.len());
        table += "| file | constant | value | meaning and reason |\n| --- | --- | --- | --- |\n";
        for (file, constant) in own {
            table += &format!(
                "| `{file}` | `{}` | {} | {} |\n",
                constant.name,
                constant.value.replace('|', "\\|"),
                constant.reason
            );
        }
    }
    Ok(format!("{before}{BEGIN}{table}\n{END}{after}"))
}

fn all(root: &Path) -> Result<Vec<(String, Vec<Constant>)>, String> {
    let folder = root.join(SOURCES);
    let mut found = Vec::new();
    for path in files(&folder)? {
        let name = path
            .strip_prefix(&folder)
            .unwrap_or(&path)
            .display()
            .to_string();
        let text = read(&path)?;
        let constants = constants(before_tests(&name, &text));
        if !constants.is_empty() {
            found.push((name, constants));
        }
    }
    Ok(found)
}

fn constants(text: &str) -> Vec<Constant> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let found = (0..lines.len()).filter_map(|at| {
        let (head, _) = lines[at].split_once("const ")?;
        let is_item = head.is_empty() || head.starts_with("pub");
        if !is_item || lines[at].contains("const fn ") {
            return None;
        }
        let whole = statement(&lines[at..]);
        let (name, rest) = whole.split_once("const ")?.1.split_once(':')?;
        let (kind, value) = rest.split_once(" = ")?;
        if is_computed(value) {
            return None;
        }
        let numeric =
            |kind: &str| TYPES.contains(&kind) || kind.chars().all(|c| c.is_ascii_digit());
        let parts = kind.split(|c: char| "[](),; ".contains(c));
        if !parts.filter(|part| !part.is_empty()).all(numeric) {
            return None;
        }
        Some(Constant {
            name: name.to_owned(),
            value: value.trim_end_matches(';').to_owned(),
            reason: reason(&lines[..at]),
        })
    });
    found.collect()
}

/// Returns whether a value is a formula of other constants.
fn is_computed(value: &str) -> bool {
    let words = value.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let is_name = |word: &str| word.len() > 1 && word.starts_with(|c: char| c.is_uppercase());
    words.into_iter().any(is_name)
}

/// Joins the lines of a declaration up to its end.
fn statement(lines: &[&str]) -> String {
    let end = lines
        .iter()
        .position(|line| line.ends_with(';'))
        .unwrap_or(0);
    lines[..=end].join(" ")
}

/// Returns the documentation above a declaration as one line of Markdown. Links to items become code.
fn reason(before: &[&str]) -> String {
    let attributes = before
        .iter()
        .rev()
        .take_while(|line| line.starts_with("#["))
        .count();
    let above = &before[..before.len() - attributes];
    let docs: Vec<&str> = above
        .iter()
        .rev()
        .map_while(|line| line.strip_prefix("///"))
        .map(str::trim)
        .collect();
    let text: Vec<&str> = docs.into_iter().rev().collect();
    without_links(&text.join(" ")).replace('|', "\\|")
}

/// Replaces links to items of Rust, which have no target in the book, by their words.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        out += before;
        let Some((words, after)) = after.split_once(']') else {
            return out + "[" + after;
        };
        let target = after
            .strip_prefix('(')
            .and_then(|after| after.split_once(')'));
        rest = match target {
            Some((target, after)) if !target.starts_with("http") => {
                out += words;
                after
            }
            None if words.starts_with('`') => {
                out += words;
                after
            }
            _ => {
                out += &format!("[{words}]");
                after
            }
        };
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_read_with_their_documentation() {
        let text = "\
use a::b;

/// The limit of [`Policy`](crate::Policy), in nats, for a [hard](Family::hard) [`Family`].
/// It lies in [-2, 2].
pub(crate) const LIMIT: f64 = 0.5;
const BARE: [usize; 3] = [
    2, 4,
    8,
];
const NAME: &str = \"name\";
const COMPUTED: f64 = 2.0 * LIMIT;
const fn nothing() {}
    /// In a method.
    #[expect(unused)]
    const PAIR: (f64, usize) = (0.5, 1 << 3);
";
        let of = |name: &str, value: &str, reason: &str| Constant {
            name: name.to_owned(),
            value: value.to_owned(),
            reason: reason.to_owned(),
        };
        assert_eq!(
            constants(text),
            [
                of(
                    "LIMIT",
                    "0.5",
                    "The limit of `Policy`, in nats, for a hard `Family`. It lies in [-2, 2]."
                ),
                of("BARE", "[ 2, 4, 8, ]", ""),
                of("PAIR", "(0.5, 1 << 3)", "In a method."),
            ]
        );
    }
}
