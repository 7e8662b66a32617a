//! Checks that pages of the book show the actual output of the command.
//!
//! The check runs the blocks of a page in order, in a separate folder. A block whose info string contains `file=NAME`
//! is written to that file. In a `console` block, a shell runs every line that begins with `$ `, with the command in
//! its path. The lines below are compared with the output on both streams. A line `…` matches any number of lines, and
//! a word `…` matches the rest of its line. Numbers may differ as much as they would with other random numbers, because
//! processors with other instruction sets draw other random numbers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::flags;
use crate::run::{self, Ended};

const ANY: &str = "…";

/// Largest relative and largest absolute difference between two numbers.
const NEAR: (f64, f64) = (0.2, 0.1);

/// Checks every page.
pub fn check(root: &Path) -> Result<Ended, String> {
    let programs = run::command_folder(root)?;
    let target = run::target(root)?;
    let pages = root.join("docs/book/src");
    let entries = fs::read_dir(&pages).map_err(|e| format!("{}: {e}", pages.display()))?;
    let mut pages: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    pages.retain(|page| page.extension().is_some_and(|e| e == "md"));
    pages.sort();
    let mut named = pages.clone();
    named.push(root.join("README.md"));
    let mut faults = flags::faults(root, &named)?;
    for page in pages {
        let text = fs::read_to_string(&page).map_err(|e| format!("{}: {e}", page.display()))?;
        let blocks = blocks(&text);
        if !blocks
            .iter()
            .any(|block| matches!(block.kind, Kind::Console))
        {
            continue;
        }
        let name = page
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let desk = target.join("book-run").join(&name);
        let _ = fs::remove_dir_all(&desk);
        fs::create_dir_all(&desk).map_err(|e| format!("{}: {e}", desk.display()))?;
        let mut tried = 0;
        for block in blocks {
            match block.kind {
                Kind::File(file) => fs::write(desk.join(file), block.lines.join("\n") + "\n")
                    .map_err(|e| format!("{file}: {e}"))?,
                Kind::Console => {
                    for (line, command, expected) in commands(&block) {
                        tried += 1;
                        let said = said(&command, &desk, &programs)?;
                        let found: Vec<&str> = said.lines().collect();
                        if !agree(&expected, &found) {
                            faults.push(format!("{name}.md:{line}: `{command}` says\n{said}"));
                        }
                    }
                }
            }
        }
        println!("{name}: {tried} commands");
    }
    match faults.is_empty() {
        true => Ok(Ended::Done),
        false => Err(faults.join("\n")),
    }
}

enum Kind<'a> {
    File(&'a str),
    Console,
}

struct Block<'a> {
    kind: Kind<'a>,
    first: usize,
    lines: Vec<&'a str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            continue;
        };
        let within: Vec<&str> = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| *line != "```")
            .collect();
        let file = info.split(',').find_map(|word| word.strip_prefix("file="));
        let kind = match file {
            Some(file) => Kind::File(file),
            None if info == "console" => Kind::Console,
            None => continue,
        };
        found.push(Block {
            kind,
            first: at + 2,
            lines: within,
        });
    }
    found
}

fn commands<'a>(block: &Block<'a>) -> Vec<(usize, String, Vec<&'a str>)> {
    let mut found: Vec<(usize, String, Vec<&str>)> = Vec::new();
    for (k, line) in block.lines.iter().enumerate() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((block.first + k, command.to_owned(), Vec::new())),
            (None, Some((_, command, shown))) if command.ends_with('\\') && shown.is_empty() => {
                command.pop();
                command.push_str(line.trim_start());
            }
            (None, Some((_, _, shown))) => shown.push(line),
            (None, None) => {}
        }
    }
    found
}

fn said(command: &str, desk: &Path, programs: &Path) -> Result<String, String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["-c", &format!("exec 2>&1; {command}")])
        .current_dir(desk)
        .env("PATH", format!("{}:{path}", programs.display()))
        .output()
        .map_err(|error| format!("cannot run a shell: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn agree(shown: &[&str], found: &[&str]) -> bool {
    match shown.split_first() {
        None => found.is_empty(),
        Some((&ANY, rest)) => (0..=found.len()).any(|k| agree(rest, &found[k..])),
        Some((line, rest)) => found
            .split_first()
            .is_some_and(|(first, below)| same_line(line, first) && agree(rest, below)),
    }
}

fn same_line(shown: &str, found: &str) -> bool {
    let (mut shown, mut found) = (words(shown), words(found));
    loop {
        match (shown.next(), found.next()) {
            (Some(ANY), _) | (None, None) => return true,
            (Some(a), Some(b)) if a == b || near(a, b) => {}
            _ => return false,
        }
    }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| c.is_whitespace() || "(),;:{}[]\"".contains(c));
    words.filter(|word| !word.is_empty())
}

fn near(a: &str, b: &str) -> bool {
    let (a, b) = match (a.strip_suffix('%'), b.strip_suffix('%')) {
        (Some(a), Some(b)) => (a, b),
        _ => (a, b),
    };
    let (Ok(a), Ok(b)) = (a.parse::<f64>(), b.parse::<f64>()) else {
        return false;
    };
    let (own, all) = NEAR;
    (a - b).abs() <= all.max(own * a.abs().max(b.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_taken_apart() {
        let page = "Text\n```stan,file=a.stan\nmodel {}\n```\n```text\nno\n```\n```console\n$ jensen fit a.stan \\\n    --seed 1\nmu 1.0\n…\n$ ls\n```\n";
        let blocks = blocks(page);
        assert!(matches!(blocks[0].kind, Kind::File("a.stan")));
        assert_eq!(blocks[0].lines, ["model {}"]);
        let commands = commands(&blocks[1]);
        assert_eq!(
            commands[0],
            (
                9,
                "jensen fit a.stan --seed 1".to_owned(),
                vec!["mu 1.0", "…"]
            )
        );
        assert_eq!(commands[1], (13, "ls".to_owned(), vec![]));
    }

    #[test]
    fn what_is_said_is_compared_by_words_and_numbers() {
        let shown = ["name mean", "mu   4.4", "…", "verdict  trusted", "time …"];
        let good = [
            "name  mean",
            "mu 4.6",
            "tau 3",
            "",
            "verdict trusted",
            "time 3 ms",
        ];
        assert!(agree(&shown, &good));
        assert!(!agree(
            &shown,
            &["name mean", "mu 9.6", "verdict trusted", "time 3 ms"]
        ));
        assert!(!agree(
            &shown,
            &["name mean", "mu 4.6", "verdict NOT trusted", "time 3 ms"]
        ));
        assert!(!agree(&shown, &good[..5]));
        assert!(!agree(&["a"], &["a", "b"]));
        assert!(agree(&["share 35.1%"], &["share 35.45%"]));
        assert!(!agree(&["share 35.1%"], &["share 35.1"]));
    }
}
