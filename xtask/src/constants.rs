//! Checks that every numeric constant of `jensen-blackbox` has its meaning and reason beside it, and that the book's
//! page on constants lists them all.
//!
//! The page contains one table, between `<!-- constants -->` and `<!-- end -->`, generated from the sources. The text
//! around the table is written by hand.

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
    let count: usize = files.iter().map(|(_, constants)| constants.len()).sum();
    let mut table = format!(
        "\n{count} constants in {} files.\n\n| file | constant | value | meaning and reason |\n| --- | --- | --- | --- |\n",
        files.len()
    );
    for (file, constants) in &files {
        for Constant {
            name,
            value,
            reason,
        } in constants
        {
            table += &format!(
                "| `{file}` | `{name}` | {} | {reason} |\n",
                value.replace('|', "\\|")
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
