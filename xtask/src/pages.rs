//! Checks that the files that the documentation mentions exist, and that links lead to existing headings.

use std::path::Path;

use crate::Findings;

const FOLDERS: [&str; 8] = [
    ".ci/", "crates/", "data/", "docs/", "python/", "r/", "tools/", "xtask/",
];

/// Checks every page of the documentation.
pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    let book = root.join("docs/book/src");
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    let entries = std::fs::read_dir(&book)
        .map_err(|error| format!("cannot read `{}`: {error}", book.display()))?;
    pages.extend(
        entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| is_page(path)),
    );
    pages.sort();
    for page in pages {
        let text = std::fs::read_to_string(&page)
            .map_err(|error| format!("cannot read `{}`: {error}", page.display()))?;
        for name in named(&text) {
            if !root.join(name).exists() {
                findings
                    .errors
                    .push(format!("{}: there is no `{name}`", page.display()));
            }
        }
        for link in links(&text) {
            if !leads_somewhere(&page, link) {
                findings
                    .errors
                    .push(format!("{}: `{link}` leads nowhere", page.display()));
            }
        }
    }
    Ok(())
}

fn links(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    let plain = prose.flat_map(|prose| prose.split("](").skip(1));
    let targets = plain.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    targets.filter(|target| !target.contains("://") && !target.contains(char::is_whitespace))
}

fn leads_somewhere(page: &Path, link: &str) -> bool {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => page.to_owned(),
        file => page.with_file_name(file),
    };
    match std::fs::read_to_string(&target) {
        Ok(text) => heading.is_empty() || anchors(&text).any(|anchor| anchor == heading),
        Err(_) => heading.is_empty() && target.exists(),
    }
}

/// Returns the anchors that mdBook generates for the headings of a page, except for the numbers that it appends to
/// repeated headings.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let prose = text.split("```").step_by(2);
    let headings = prose
        .flat_map(str::lines)
        .filter(|line| line.starts_with('#'));
    headings.map(|line| {
        let words = line.trim_start_matches('#').trim();
        let kept = words.chars().filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || "-_".contains(c) => Some(c),
            _ => None,
        });
        kept.flat_map(char::to_lowercase).collect()
    })
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

fn named(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    let quoted = prose.flat_map(|prose| prose.split('`').skip(1).step_by(2));
    quoted.filter(|name| {
        FOLDERS.iter().any(|folder| name.starts_with(folder))
            && !name.contains(|c: char| c.is_whitespace() || "{*".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_blocks_and_headings_are_what_they_are_called() {
        let text = "[a](b.md#c), [d](https://e) and `f`\n```\n[g](h)\n```\n[i](#j)";
        assert_eq!(links(text).collect::<Vec<_>>(), ["b.md#c", "#j"]);
        let text = "# R̂, nested\n```sh\n# no\n```\n## jensen density MODEL [DATA] --at `P.json`\n";
        let expected = ["r-nested", "jensen-density-model-data---at-pjson"];
        assert_eq!(anchors(text).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn files_are_found_between_backticks_outside_of_blocks() {
        let text = "See `crates/a.rs` and `fit`, `data/{a,b}`, `data/x y`.\n```\n`crates/b.rs`\n```\nThen `docs/c`.";
        assert_eq!(named(text).collect::<Vec<_>>(), ["crates/a.rs", "docs/c"]);
    }
}
