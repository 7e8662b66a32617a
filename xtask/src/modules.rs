//! Which module may use which inside a crate that is too large for the arrows between crates to hold it.
//!
//! A crate with a row in [`CRATES`] names its top-level modules from the ground up, each with what it may reach through
//! `crate::` or `super::`: other modules, or single items of them (`interpret::BoundModel`) where a wall has one door.

use std::path::Path;

use crate::Findings;
use crate::arrows::Package;
use crate::sources::{files, shown};

/// A top-level module of a crate, and the modules or items that it may use besides its own.
struct Module {
    name: &'static str,
    may_use: &'static [&'static str],
}

/// The crates whose modules are held apart.
const CRATES: [(&str, &[Module]); 1] = [("jensen-stan", &STAN)];

const STAN: [Module; 14] = [
    Module {
        name: "source",
        may_use: &[],
    },
    Module {
        name: "diagnostic",
        may_use: &["source"],
    },
    // Text to tree: nothing of types or of the function library.
    Module {
        name: "syntax",
        may_use: &["source", "diagnostic"],
    },
    // The typed program and the signatures of the library; from the tree only the names of the blocks.
    Module {
        name: "program",
        may_use: &["source", "syntax::ast::BlockKind"],
    },
    Module {
        name: "check",
        may_use: &["source", "diagnostic", "syntax", "program"],
    },
    Module {
        name: "pretty",
        may_use: &["source", "syntax", "program"],
    },
    Module {
        name: "transform",
        may_use: &[],
    },
    // Below both evaluators: values, what computes with them, and distributions.
    Module {
        name: "value",
        may_use: &["program", "transform"],
    },
    Module {
        name: "functions",
        may_use: &["program", "transform", "value"],
    },
    Module {
        name: "symbolic",
        may_use: &["program", "value"],
    },
    Module {
        name: "distributions",
        may_use: &["program", "value", "functions", "symbolic"],
    },
    Module {
        name: "library",
        may_use: &["program", "value", "functions", "distributions"],
    },
    Module {
        name: "interpret",
        may_use: &["program", "transform", "value", "functions", "library"],
    },
    // The interpreter binds the data: a program with its data is what lowering starts from.
    Module {
        name: "lower",
        may_use: &[
            "program",
            "transform",
            "value",
            "functions",
            "symbolic",
            "distributions",
            "library",
            "interpret::BoundModel",
        ],
    },
];

/// Compares the modules of one crate with its table, if it has one.
pub fn check(package: &Package, root: &Path, findings: &mut Findings) -> Result<(), String> {
    let Some((_, modules)) = CRATES.iter().find(|(name, _)| *name == package.name) else {
        return Ok(());
    };
    let folder = package.folder.join("src");
    for path in files(&folder)? {
        let inside = path.strip_prefix(&folder).unwrap_or(&path);
        let place = module_path(inside);
        let Some(own) = place.first() else {
            continue;
        };
        let name = shown(&path, root);
        let Some(module) = modules.iter().find(|module| module.name == own) else {
            findings.errors.push(format!(
                "{name}: the module `{own}` has no place in the table of `xtask/src/modules.rs`"
            ));
            continue;
        };
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
        for (line, used) in strangers(&text, &place, module, modules) {
            findings.errors.push(format!(
                "{name}:{line}: `{own}` must not use `{used}`: the arrows go the other way"
            ));
        }
    }
    Ok(())
}

/// The path of a file's module from the root of its crate; empty for the root itself.
fn module_path(inside: &Path) -> Vec<String> {
    let mut path: Vec<String> = inside
        .with_extension("")
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    if matches!(
        path.last().map(String::as_str),
        Some("mod" | "lib" | "main")
    ) {
        path.pop();
    }
    path
}

/// Lines and paths that use what the module may not.
fn strangers(
    text: &str,
    place: &[String],
    module: &Module,
    modules: &[Module],
) -> Vec<(usize, String)> {
    let code = without_comments(text);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let line = 1 + code[..at].matches('\n').count();
        // `$crate` and names that end in `crate` are no paths of this crate.
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        for used in leaves(&code[at + "crate::".len()..]) {
            found.push((line, used));
        }
    }
    // `super::super::…` up to the root.
    let up = format!("{}super::", "super::".repeat(place.len().saturating_sub(1)));
    for (at, _) in code.match_indices(&up) {
        let line = 1 + code[..at].matches('\n').count();
        for used in leaves(&code[at + up.len()..]) {
            found.push((line, used));
        }
    }
    found.retain(|(_, used)| {
        let top = used.split("::").next().unwrap_or(used);
        let known = modules.iter().any(|other| other.name == top);
        let allowed = module.may_use.iter().any(|may| {
            used == may
                || used
                    .strip_prefix(may)
                    .is_some_and(|rest| rest.starts_with("::"))
        });
        known && top != module.name && !allowed
    });
    found
}

/// The paths that a path or a tree of paths in braces stands for.
fn leaves(text: &str) -> Vec<String> {
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '*';
    let end = text.find(|c| !word(c)).unwrap_or(text.len());
    let (head, rest) = text.split_at(end);
    if !head.is_empty() {
        let Some(rest) = rest.strip_prefix("::") else {
            return vec![head.to_owned()];
        };
        let below = leaves(rest);
        if below.is_empty() {
            return vec![head.to_owned()];
        }
        return below
            .into_iter()
            .map(|leaf| match leaf.as_str() {
                "self" => head.to_owned(),
                _ => format!("{head}::{leaf}"),
            })
            .collect();
    }
    let Some(mut rest) = text.strip_prefix('{') else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut depth = 1;
    loop {
        let rest_of_branch = rest.trim_start();
        found.extend(leaves(rest_of_branch));
        // To the next branch of this tree, over the trees inside.
        let next = rest_of_branch.char_indices().find(|(_, c)| {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            depth == 0 || (depth == 1 && *c == ',')
        });
        match next {
            Some((at, ',')) => rest = &rest_of_branch[at + 1..],
            _ => return found,
        }
    }
}

/// The text with its line comments blanked; its lines keep their numbers.
fn without_comments(text: &str) -> String {
    text.lines()
        .map(|line| match line.trim_start().starts_with("//") {
            true => "",
            false => line,
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUSE: [Module; 3] = [
        Module {
            name: "cellar",
            may_use: &[],
        },
        Module {
            name: "hall",
            may_use: &["cellar"],
        },
        Module {
            name: "attic",
            may_use: &["cellar", "hall::Stairs"],
        },
    ];

    fn used(file: &str, text: &str) -> Vec<(usize, String)> {
        let place = module_path(Path::new(file));
        let module = HOUSE
            .iter()
            .find(|module| module.name == place[0])
            .expect("a module");
        strangers(text, &place, module, &HOUSE)
    }

    #[test]
    fn uses_against_the_table_are_found() {
        let text = "use std::fmt;\nuse crate::hall::Stairs;\n";
        assert_eq!(
            used("cellar/wine.rs", text),
            [(2, "hall::Stairs".to_owned())]
        );
        assert!(used("attic.rs", text).is_empty());
        let text = "use crate::{\n    cellar::Barrel,\n    hall::{Door, Stairs},\n};\n";
        assert_eq!(used("attic.rs", text), [(1, "hall::Door".to_owned())]);
        assert_eq!(
            used("cellar/mod.rs", "fn f() { super::attic::open() }"),
            [(1, "attic::open".to_owned())]
        );
        assert_eq!(
            used("hall/doors/mod.rs", "use super::super::{attic, cellar};"),
            [(1, "attic".to_owned())]
        );
    }

    #[test]
    fn uses_along_the_arrows_are_not() {
        assert!(used("hall/mod.rs", "use crate::cellar::{self, Barrel};").is_empty());
        assert!(
            used(
                "hall/mod.rs",
                "//! see [`crate::attic`]\nuse crate::hall::x;"
            )
            .is_empty()
        );
        assert!(used("hall/doors.rs", "use super::attic;").is_empty());
    }

    #[test]
    fn the_tables_have_no_cycle() {
        for (name, modules) in CRATES {
            for (i, module) in modules.iter().enumerate() {
                for used in module.may_use {
                    let top = used.split("::").next().unwrap_or(used);
                    let at = modules.iter().position(|other| other.name == top);
                    assert!(
                        at.is_some_and(|at| at < i),
                        "{name}: {} uses {used}, which stands above it",
                        module.name
                    );
                }
            }
        }
    }
}
