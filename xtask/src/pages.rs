//! Files that the documentation names are there.

use std::path::Path;

use crate::Findings;

/// Folders of the repository that pages name files of.
const FOLDERS: [&str; 7] = [
    ".ci/", "crates/", "data/", "docs/", "python/", "tools/", "xtask/",
];

/// Looks at every page.
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
    }
    Ok(())
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// What stands alone between backticks and begins with a folder of the repository.
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
    fn files_are_found_between_backticks_outside_of_blocks() {
        let text = "See `crates/a.rs` and `fit`, `data/{a,b}`, `data/x y`.\n```\n`crates/b.rs`\n```\nThen `docs/c`.";
        assert_eq!(named(text).collect::<Vec<_>>(), ["crates/a.rs", "docs/c"]);
    }
}
