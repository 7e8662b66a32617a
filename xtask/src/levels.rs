//! Checks which files ask the machine for its instruction set. All other code must receive the instruction set as an
//! argument, so that `--simd` takes effect.

use std::path::Path;

use crate::Findings;
use crate::arrows::Package;
use crate::sources::{before_tests, files, shown};

const ALLOWED: [(&str, &str); 20] = [
    // The file uses no fused operations, so all instruction sets give the same bits.
    ("crates/math/src/reduce.rs", SAME_BITS),
    ("crates/blackbox/src/optimiser.rs", SAME_BITS),
    ("crates/blackbox/src/family/globals.rs", SAME_BITS),
    ("crates/blackbox/src/family/conditional/skew.rs", SAME_BITS),
    ("crates/blackbox/src/refine/steps.rs", SAME_BITS),
    ("crates/blackbox/src/refine/tails.rs", SAME_BITS),
    // These are settings of a library, which the command sets from its flag.
    ("crates/blackbox/src/settings.rs", DEFAULT),
    ("crates/graph/src/density.rs", DEFAULT),
    ("crates/jensen/src/stan.rs", DEFAULT),
    ("crates/blackbox/src/records/gradients.rs", DEFAULT),
    ("crates/blackbox/src/records/generic.rs", DEFAULT),
    // These crates have no flag, because stored files contain the instruction set.
    ("crates/glm/src/", NO_FLAG),
    ("crates/latent/src/linear/kernels.rs", NO_FLAG),
    ("crates/latent/src/prior/kernel.rs", NO_FLAG),
    ("crates/latent/src/site/", NO_FLAG),
    ("crates/jensen/src/latent/", NO_FLAG),
    ("crates/latent/src/predict.rs", NO_FLAG),
    ("crates/reproduce/src/", NO_FLAG),
    ("crates/cli/src/reproduce.rs", NO_FLAG),
    ("crates/bench/", NO_FLAG),
];

const SAME_BITS: &str = "all levels give the same bits";
const DEFAULT: &str = "the default of a setting that holds the level";
const NO_FLAG: &str = "no flag chooses the level";

/// Searches for `Simd::detect` in the code that users run, which excludes tests.
pub fn check(package: &Package, root: &Path, findings: &mut Findings) -> Result<(), String> {
    for path in files(&package.folder.join("src"))? {
        let name = shown(&path, root);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
        let is_test = !name.starts_with("crates/") || name.contains("/tests/");
        let is_allowed = ALLOWED.iter().any(|(path, _)| name.starts_with(path));
        for line in detections(before_tests(&name, &text)) {
            if !is_test && !is_allowed {
                findings.errors.push(format!(
                    "{name}:{line}: `Simd::detect` bypasses `--simd`: take the level as an argument, or give the file a \
                     row in `xtask/src/levels.rs`"
                ));
            }
        }
    }
    Ok(())
}

fn detections(text: &str) -> Vec<usize> {
    let lines = text.lines().enumerate();
    let asks = |line: &str| !line.trim_start().starts_with("//") && line.contains("Simd::detect");
    lines
        .filter(|(_, line)| asks(line))
        .map(|(i, _)| i + 1)
        .collect()
}

/// Reports rows whose file or folder no longer exists.
pub fn check_rows(root: &Path, findings: &mut Findings) {
    for (path, reason) in ALLOWED {
        if !root.join(path).exists() {
            findings.errors.push(format!(
                "xtask/src/levels.rs: `{path}` ({reason}) is not there"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_run_is_read_and_tests_are_not() {
        let text = "// Simd::detect() is best\nfn f() {\n    g(Simd::detect());\n}\n\n#[cfg(test)]\nmod tests {\n    Simd::detect();\n}\n";
        assert_eq!(detections(before_tests("lib.rs", text)), [3]);
    }
}
