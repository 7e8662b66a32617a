//! Tests programs against the verdict of Stan's own compiler (version 2.39). Each line in `verdicts/*.txt` contains one
//! program, marked with `+` if stanc accepts it and with `-` if stanc rejects it. `tools/oracle/verdicts.py` writes
//! these files.

use std::fs;
use std::path::Path;

use jensen_stan::{NoIncludes, check};

fn agrees(file: &str, least: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/verdicts")
        .join(file);
    let text = fs::read_to_string(path).unwrap();
    let programs: Vec<(bool, &str)> = text
        .lines()
        .map(|line| (line.starts_with('+'), &line[2..]))
        .collect();
    assert!(programs.len() >= least, "{} programs", programs.len());
    let mut wrong = Vec::new();
    for (accepted, program) in programs {
        let checked = check(program, "test", &NoIncludes);
        if checked.program.is_some() != accepted {
            let said = checked.diagnostics.first().map(ToString::to_string);
            wrong.push(format!(
                "Stan {}: {program}\n    {}",
                if accepted { "accepts" } else { "refuses" },
                said.unwrap_or_default()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn programs_written_by_hand_get_the_verdict_of_stan() {
    agrees("hand.txt", 350);
}

#[test]
fn operators_and_assignments_of_all_types_get_the_verdict_of_stan() {
    agrees("types.txt", 3500);
}

#[test]
fn mutants_get_the_verdict_of_stan() {
    agrees("mutants.txt", 1490);
}
