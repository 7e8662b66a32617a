//! Tests `#include`, which replaces its line by the file's contents and stays within the folders of the resolver.

use std::collections::BTreeMap;

use jensen_stan::{IncludeResolver, NoIncludes, check};

/// The contents of the files by path. The test fails if the program requests a path outside of its directory.
struct Files(BTreeMap<&'static str, &'static str>);

impl IncludeResolver for Files {
    fn resolve(&self, path: &str) -> Result<String, String> {
        assert!(
            !path.starts_with('/') && path.split('/').all(|part| part != ".." && part != "."),
            "{path}"
        );
        let text = self.0.get(path).ok_or_else(|| "no such file".to_owned())?;
        Ok((*text).to_owned())
    }
}

fn files() -> Files {
    Files(BTreeMap::from([
        ("sizes.stan", "int<lower=0> N;\nvector[N] x;\n"),
        (
            "deep/model.stan",
            "#include deep/prior.stan\nx ~ normal(m, 1);",
        ),
        ("deep/prior.stan", "m ~ normal(0, oops);"),
        ("loop.stan", "#include \"other.stan\""),
        ("other.stan", "#include <loop.stan>"),
    ]))
}

#[test]
fn text_is_spliced_and_locations_name_the_included_file() {
    let source = "data {\n#include <sizes.stan> // sizes\n}\nparameters { real m; }\nmodel {\n  #include ./deep/../deep/model.stan\n}\n";
    let checked = check(source, "main.stan", &files());
    assert_eq!(checked.diagnostics.len(), 1, "{}", checked.render(false));
    let text = checked.render(false);
    assert!(text.contains("deep/prior.stan:1:15"), "{text}");
    assert_eq!(checked.files.len(), 4);
    let fixed =
        "data {\n#include sizes.stan\n}\nparameters { real m; }\nmodel { x ~ normal(m, 1); }\n";
    assert!(check(fixed, "main.stan", &files()).program.is_some());
}

#[test]
fn paths_that_leave_the_directories_are_refused() {
    for path in [
        "../sizes.stan",
        "a/../../sizes.stan",
        "/../sizes.stan",
        "/",
        "C:sizes.stan",
        "..\\sizes.stan",
        "",
        "<>",
        ".",
    ] {
        let checked = check(
            &format!("data {{\n#include {path}\n}}\n"),
            "main.stan",
            &files(),
        );
        assert!(checked.program.is_none(), "{path}");
        assert_eq!(checked.diagnostics[0].code.name(), "include", "{path}");
    }
}

#[test]
fn a_path_that_starts_at_the_root_starts_at_the_include_directories() {
    let source =
        "data {\n#include /sizes.stan\n}\nparameters { real m; }\nmodel { x ~ normal(m, 1); }\n";
    let checked = check(source, "main.stan", &files());
    assert!(checked.program.is_some(), "{}", checked.render(false));
}

#[test]
fn missing_files_and_cycles_are_reported() {
    let missing = check("data {\n#include nowhere.stan\n}\n", "main.stan", &files());
    assert!(missing.render(false).contains("no such file"));
    let cycle = check("data {\n#include loop.stan\n}\n", "main.stan", &files());
    assert!(
        cycle.render(false).contains("includes itself"),
        "{}",
        cycle.render(false)
    );
    assert!(
        check("#include sizes.stan\n", "main.stan", &NoIncludes)
            .program
            .is_none()
    );
}
