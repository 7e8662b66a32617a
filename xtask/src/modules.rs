//! The modules that each module may use within crates that are too large for rules between crates alone.
//!
//! A crate with a row in [`CRATES`] lists its top-level modules from the bottom to the top. Each module lists what it
//! may use through `crate::` or `super::`: other modules, or single items of other modules (`interpret::BoundModel`).
//! Modules in the same row form a layer and may use each other.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Findings;
use crate::arrows::Package;
use crate::sources::{before_tests, files, shown};

#[derive(Clone, Copy)]
struct Layer {
    modules: &'static [&'static str],
    may_use: &'static [&'static str],
}

/// Builds one layer per module. Each module may use the modules before it.
const fn ordered<const N: usize>(modules: &'static [&'static str; N]) -> [Layer; N] {
    let none = Layer {
        modules: &[],
        may_use: &[],
    };
    let mut layers = [none; N];
    let mut k = 0;
    while k < N {
        let (may_use, rest) = modules.split_at(k);
        let modules = rest.split_at(1).0;
        layers[k] = Layer { modules, may_use };
        k += 1;
    }
    layers
}

const CRATES: [(&str, &[Layer]); 5] = [
    ("jensen-stan", &STAN),
    ("jensen-graph", &GRAPH),
    ("jensen-conjugate", &CONJUGATE),
    ("jensen-blackbox", &BLACKBOX),
    ("jensen-latent", &LATENT),
];

const STAN: [Layer; 17] = [
    Layer {
        modules: &["source"],
        may_use: &[],
    },
    Layer {
        modules: &["diagnostic"],
        may_use: &["source"],
    },
    Layer {
        modules: &["spelling"],
        may_use: &[],
    },
    // The path from text to syntax tree needs neither types nor the function library.
    Layer {
        modules: &["syntax"],
        may_use: &["source", "diagnostic"],
    },
    // The typed program and the signatures of the library use only the names of blocks from the syntax tree.
    Layer {
        modules: &["program"],
        may_use: &["source", "syntax::ast::BlockKind"],
    },
    Layer {
        modules: &["check"],
        may_use: &["source", "diagnostic", "spelling", "syntax", "program"],
    },
    Layer {
        modules: &["pretty"],
        may_use: &["source", "syntax", "program"],
    },
    Layer {
        modules: &["transform"],
        may_use: &[],
    },
    // Both evaluators use the values, the computations on values, and the distributions.
    Layer {
        modules: &["value"],
        may_use: &["program", "transform"],
    },
    Layer {
        modules: &["functions"],
        may_use: &["program", "transform", "value"],
    },
    Layer {
        modules: &["symbolic"],
        may_use: &["program", "transform", "value"],
    },
    Layer {
        modules: &["distributions"],
        may_use: &["program", "value", "functions", "symbolic"],
    },
    Layer {
        modules: &["library"],
        may_use: &["program", "value", "functions", "distributions"],
    },
    Layer {
        modules: &["interpret"],
        may_use: &[
            "spelling",
            "program",
            "transform",
            "value",
            "functions",
            "library",
        ],
    },
    Layer {
        modules: &["evaluable"],
        may_use: &[
            "diagnostic",
            "program",
            "functions",
            "symbolic",
            "distributions",
            "library",
        ],
    },
    // The interpreter binds the data, and lowering starts from a program that has its data.
    Layer {
        modules: &["lower"],
        may_use: &[
            "diagnostic",
            "program",
            "transform",
            "value",
            "functions",
            "symbolic",
            "distributions",
            "library",
            "interpret::BoundModel",
            "interpret::Interpreter",
            "interpret::Invention",
        ],
    },
    Layer {
        modules: &["outputs"],
        may_use: &[
            "program",
            "value",
            "functions",
            "library",
            "interpret::BoundModel",
            "lower",
        ],
    },
];

const GRAPH: [Layer; 15] = [
    Layer {
        modules: &["ending"],
        may_use: &[],
    },
    // A node contains its operation, and the derivatives of operations are built as nodes.
    Layer {
        modules: &["ir", "ops", "build"],
        may_use: &["ending"],
    },
    Layer {
        modules: &["verify"],
        may_use: &["ir", "ops"],
    },
    Layer {
        modules: &["passes"],
        may_use: &["ir", "ops", "verify"],
    },
    // Operations that consist of several nodes build these nodes for any evaluator.
    Layer {
        modules: &["solver"],
        may_use: &["ir", "ops", "passes"],
    },
    // The slow evaluator is the reference in tests of the executors. It shares only the graph with them.
    Layer {
        modules: &["scalar"],
        may_use: &["ir", "ops", "solver"],
    },
    Layer {
        modules: &["text"],
        may_use: &["ir", "ops", "verify"],
    },
    Layer {
        modules: &["centring"],
        may_use: &["ir", "ops", "passes", "scalar"],
    },
    Layer {
        modules: &["series"],
        may_use: &["ir", "ops", "passes", "centring"],
    },
    Layer {
        modules: &["diff"],
        may_use: &["ir", "ops"],
    },
    Layer {
        modules: &["exec"],
        may_use: &["ending", "ir", "ops", "passes", "solver", "scalar"],
    },
    Layer {
        modules: &["single"],
        may_use: &["ir", "ops", "passes", "exec"],
    },
    Layer {
        modules: &["pattern"],
        may_use: &["ir", "ops"],
    },
    Layer {
        modules: &["density", "records"],
        may_use: &["ending", "ir", "ops", "verify", "passes", "pattern", "exec"],
    },
    Layer {
        modules: &["expr"],
        may_use: &["ir", "ops", "passes", "density"],
    },
];

const CONJUGATE: [Layer; 13] = [
    Layer {
        modules: &["documents"],
        may_use: &[],
    },
    Layer {
        modules: &["draws"],
        may_use: &[],
    },
    Layer {
        modules: &["temper"],
        may_use: &[],
    },
    Layer {
        modules: &["family"],
        may_use: &["draws"],
    },
    Layer {
        modules: &["policy"],
        may_use: &["temper"],
    },
    // Drivers use engines only through the trait of engines.
    Layer {
        modules: &["engine"],
        may_use: &["temper"],
    },
    Layer {
        modules: &["driver"],
        may_use: &["documents", "temper", "policy", "engine"],
    },
    Layer {
        modules: &["ends", "contest"],
        may_use: &["engine", "driver"],
    },
    // A model contains the source of its local steps, which receives the requests of its engine.
    Layer {
        modules: &["model", "shards", "pointwise", "plain"],
        may_use: &["temper", "family", "policy", "engine"],
    },
    Layer {
        modules: &["lda"],
        may_use: &[
            "documents",
            "draws",
            "temper",
            "policy",
            "engine",
            "driver",
            "ends",
            "contest",
            "plain",
        ],
    },
    Layer {
        modules: &["fit"],
        may_use: &["temper", "engine", "driver", "model", "pointwise"],
    },
    Layer {
        modules: &["several"],
        may_use: &["driver", "contest", "model", "pointwise", "fit"],
    },
    Layer {
        modules: &["models"],
        may_use: &[
            "draws",
            "temper",
            "family",
            "policy",
            "engine",
            "driver",
            "model",
            "shards",
            "pointwise",
            "plain",
            "fit",
        ],
    },
];

const BLACKBOX: [Layer; 44] = ordered(&[
    // These modules contain numbers: requests, counts, draws and sums.
    "sizes",
    "calls",
    "error",
    "noise",
    "optimiser",
    "policy",
    "psis",
    "sparse",
    "summary",
    "watched",
    "agreement",
    // These modules contain families, densities, and estimates of a density under a member of a family.
    "family",
    "approximation",
    "locals",
    "objective",
    "oracle",
    "tail_decay",
    "enrich",
    "evaluation",
    "newton",
    "certificate",
    "records",
    // Starts and refinement do not depend on the method.
    "starts",
    "ridges",
    "symmetry",
    "refine",
    // These modules contain the methods and the list of methods.
    "engine",
    "advi",
    "bbvi",
    "minibatches",
    "moments",
    "nested",
    "trust",
    "hfsgvi",
    "saa",
    "natural",
    "method",
    "settings",
    // These modules combine the modules above.
    "driver",
    "fit",
    "refining",
    "verdict",
    "fitting",
    "linear_response",
]);

const LATENT: [Layer; 10] = [
    Layer {
        modules: &["error"],
        may_use: &[],
    },
    Layer {
        modules: &["matrix", "copies"],
        may_use: &["error"],
    },
    Layer {
        modules: &["density", "lattice"],
        may_use: &[],
    },
    Layer {
        modules: &["structure"],
        may_use: &["copies", "density", "error", "matrix"],
    },
    Layer {
        modules: &["coordinate", "interpolant"],
        may_use: &["density", "matrix", "structure"],
    },
    Layer {
        modules: &["fit"],
        may_use: &["structure"],
    },
    // A likelihood creates its sites, which use the linear predictors of the model.
    Layer {
        modules: &["model", "likelihood", "site", "linear"],
        may_use: &[
            "copies",
            "density",
            "error",
            "lattice",
            "matrix",
            "structure",
            "fit",
        ],
    },
    Layer {
        modules: &["solve"],
        may_use: &[
            // This is the placeholder likelihood of models with user-defined sites.
            "likelihood::Likelihood",
            "error",
            "copies",
            "matrix",
            "structure",
            "fit",
            "model",
            "site",
            "linear",
        ],
    },
    // Solvers do not depend on priors.
    Layer {
        modules: &["prior"],
        may_use: &[
            "density",
            "error",
            "copies",
            "matrix",
            "structure",
            "model",
            "likelihood",
            "site",
            "linear",
        ],
    },
    Layer {
        modules: &[
            "factors",
            "frame",
            "integrate",
            "learn",
            "loo",
            "marginal",
            "modes",
            "normality",
            "predict",
            "readout",
            "rules",
            "tightness",
        ],
        may_use: &[
            "coordinate",
            "density",
            "interpolant",
            "lattice",
            "error",
            "copies",
            "matrix",
            "structure",
            "fit",
            "model",
            "likelihood",
            "site",
            "linear",
            "solve",
        ],
    },
];

/// Compares the modules of a crate with the table of the crate, if it has one.
pub fn check(package: &Package, root: &Path, findings: &mut Findings) -> Result<(), String> {
    let Some((_, layers)) = CRATES.iter().find(|(name, _)| *name == package.name) else {
        return Ok(());
    };
    let folder = package.folder.join("src");
    let root_of_crate = read(&folder.join("lib.rs"))?;
    let exports = exports(&root_of_crate);
    for path in files(&folder)? {
        let inside = path.strip_prefix(&folder).unwrap_or(&path);
        let module = module_path(inside);
        let Some(own) = module.first() else {
            continue;
        };
        let name = shown(&path, root);
        let Some(layer) = layers.iter().find(|s| s.modules.contains(&own.as_str())) else {
            findings.errors.push(format!(
                "{name}: the module `{own}` is missing from the table of `xtask/src/modules.rs`"
            ));
            continue;
        };
        // The tests of a module may use modules above it.
        let text = read(&path)?;
        for (line, used) in strangers(before_tests(&name, &text), &module, layer, layers, &exports)
        {
            findings.errors.push(format!(
                "{name}:{line}: `{own}` must not use `{used}`: the arrows go the other way"
            ));
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read `{}`: {error}", path.display()))
}

/// Maps each item that the root of a crate re-exports from one of its modules to the path of the item.
fn exports(root: &str) -> BTreeMap<String, String> {
    let code = without_comments(root);
    let uses = code.split(';').filter_map(|item| {
        let (_, path) = item.split_once("use ")?;
        (!path.starts_with("crate::")).then(|| leaves(path))
    });
    uses.flatten()
        .filter_map(|path| {
            let item = path.rsplit("::").next()?.to_owned();
            Some((item, path))
        })
        .collect()
}

/// Returns the path of a file's module, starting at the root of its crate. It is empty for the root itself.
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

fn strangers(
    text: &str,
    module: &[String],
    layer: &Layer,
    layers: &[Layer],
    exports: &BTreeMap<String, String>,
) -> Vec<(usize, String)> {
    let code = &without_comments(text);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let line = 1 + code[..at].matches('\n').count();
        // `$crate` and names that end in `crate` are not paths within this crate.
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        for used in leaves(&code[at + "crate::".len()..]) {
            found.push((line, used));
        }
    }
    // Each `super` in `super::super::…` moves up by one module, but not beyond the root.
    let up = format!(
        "{}super::",
        "super::".repeat(module.len().saturating_sub(1))
    );
    for (at, _) in code.match_indices(&up) {
        let line = 1 + code[..at].matches('\n').count();
        for used in leaves(&code[at + up.len()..]) {
            found.push((line, used));
        }
    }
    for (_, used) in &mut found {
        let (head, rest) = used.split_once("::").unwrap_or((used, ""));
        // `fit::Fit` is an item of the module `fit`, even if the root re-exports something with that name.
        let is_module =
            !rest.is_empty() && layers.iter().any(|other| other.modules.contains(&head));
        if let Some(path) = exports.get(head).filter(|_| !is_module) {
            *used = [path.as_str(), rest]
                .join("::")
                .trim_end_matches("::")
                .to_owned();
        }
    }
    found.retain(|(_, used)| {
        let top = used.split("::").next().unwrap_or(used);
        let known = layers.iter().any(|other| other.modules.contains(&top));
        let allowed = layer.may_use.iter().any(|may| {
            used == may
                || used
                    .strip_prefix(may)
                    .is_some_and(|rest| rest.starts_with("::"))
        });
        known && !layer.modules.contains(&top) && !allowed
    });
    found
}

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
        // The next branch of this tree begins after all trees inside the current branch.
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

/// Removes comments without changing line numbers.
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

    const HOUSE: [Layer; 3] = [
        Layer {
            modules: &["cellar"],
            may_use: &[],
        },
        Layer {
            modules: &["hall"],
            may_use: &["cellar"],
        },
        Layer {
            modules: &["attic"],
            may_use: &["cellar", "hall::Stairs"],
        },
    ];

    fn used(file: &str, text: &str) -> Vec<(usize, String)> {
        let module = module_path(Path::new(file));
        let layer = HOUSE
            .iter()
            .find(|layer| layer.modules.contains(&module[0].as_str()))
            .expect("a module");
        let exports = exports("pub mod hall;\npub use hall::{Door, Stairs};\n");
        strangers(before_tests(file, text), &module, layer, &HOUSE, &exports)
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
        // A re-exported item belongs to the module that defines it.
        assert_eq!(
            used("cellar/mod.rs", "use crate::{Door, Unknown};"),
            [(1, "hall::Door".to_owned())]
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
        let tests = "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    use crate::attic::open;\n}\n";
        assert!(used("cellar/mod.rs", tests).is_empty());
        assert!(used("cellar/tests.rs", "use crate::attic::open;\n").is_empty());
        let declared = "#[cfg(test)]\nmod tests;\nuse crate::attic::open;\n";
        assert_eq!(used("cellar/mod.rs", declared).len(), 1);
    }

    #[test]
    fn the_tables_have_no_cycle() {
        for (name, layers) in CRATES {
            for (i, layer) in layers.iter().enumerate() {
                for used in layer.may_use {
                    let top = used.split("::").next().unwrap_or(used);
                    let at = layers.iter().position(|other| other.modules.contains(&top));
                    assert!(
                        at.is_some_and(|at| at < i),
                        "{name}: {:?} use {used}, which is above them",
                        layer.modules
                    );
                }
            }
        }
    }
}
