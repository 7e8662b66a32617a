//! Golden texts, which are stored in files next to the tests, so that reviewers see how the texts change.

use std::path::Path;

/// Compares a text with the contents of `tests/golden/NAME` in the crate whose manifest is in `folder`
/// (`env!("CARGO_MANIFEST_DIR")`). With `JENSEN_GOLDEN=update` in the environment, the function writes the file
/// instead. Read the difference before you commit it.
///
/// # Panics
/// Panics if the texts differ, and shows the first line that differs. Also panics if the file cannot be read or
/// written.
pub fn golden(folder: &str, name: &str, text: &str) {
    let path = Path::new(folder).join("tests/golden").join(name);
    if std::env::var_os("JENSEN_GOLDEN").is_some_and(|what| what == "update") {
        let parent = path.parent().expect("a folder for the file");
        std::fs::create_dir_all(parent).expect("the folder can be made");
        std::fs::write(&path, text).expect("the file can be written");
        return;
    }
    let kept = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("cannot read `{}`: {error}", path.display()));
    if kept == text {
        return;
    }
    let line = kept
        .lines()
        .zip(text.lines())
        .position(|(kept, new)| kept != new)
        .unwrap_or_else(|| kept.lines().count().min(text.lines().count()));
    panic!(
        "`{}` differs from line {} on:\n  kept {}\n  now  {}\nwrite it anew with JENSEN_GOLDEN=update if that is meant",
        path.display(),
        line + 1,
        kept.lines().nth(line).unwrap_or("(its end)"),
        text.lines().nth(line).unwrap_or("(its end)"),
    );
}
