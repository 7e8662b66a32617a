//! Checks that the book describes the commands and flags that the command line declares.
//!
//! The page on the command contains a block for every command, between `<!-- jensen NAME -->` and `<!-- end -->`. The
//! block contains the description of the command and a table of its arguments, generated from the declaration of the
//! command line (`crates/cli/examples/commands.rs`). The text around the blocks, and the text of other pages, is
//! written by hand. It may mention only commands and flags that exist.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::run::{self, Ended};

/// Writes the current blocks into the page.
pub fn write(root: &Path) -> Result<Ended, String> {
    let commands = declared(root)?;
    let page = page(root);
    let text = read(&page)?;
    let renewed = renewed(&text, &commands)?;
    fs::write(&page, renewed).map_err(|e| format!("{}: {e}", page.display()))?;
    Ok(Ended::Done)
}

/// Returns the blocks that are outdated, and the names that do not exist.
pub fn faults(root: &Path, pages: &[PathBuf]) -> Result<Vec<String>, String> {
    let commands = declared(root)?;
    let own = page(root);
    let text = read(&own)?;
    let mut faults = Vec::new();
    if renewed(&text, &commands)? != text {
        faults.push(format!(
            "{}: the tables of flags are out of date; `cargo xtask flags` rewrites them",
            own.display()
        ));
    }
    for page in pages {
        let text = read(page)?;
        let wrong = lines(&text).filter_map(|line| wrong(&line, &commands));
        faults.extend(wrong.map(|wrong| format!("{}: {wrong}", page.display())));
    }
    for flag in lone_flags(&text) {
        if !commands.iter().any(|command| command.has(flag)) {
            faults.push(format!("{}: no command has `{flag}`", own.display()));
        }
    }
    Ok(faults)
}

fn page(root: &Path) -> PathBuf {
    root.join("docs/book/src/command.md")
}

fn read(page: &Path) -> Result<String, String> {
    fs::read_to_string(page).map_err(|e| format!("{}: {e}", page.display()))
}

struct Command {
    /// The full name of the command, such as `jensen fit`.
    name: String,
    about: String,
    /// Whether the command can run without a subcommand.
    leaf: bool,
    flags: Vec<String>,
    rows: Vec<(String, String)>,
}

impl Command {
    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|own| own == flag)
    }
}

fn declared(root: &Path) -> Result<Vec<Command>, String> {
    let said = run::example_output(root, "commands")?;
    let said: Value = serde_json::from_str(&said).map_err(|e| format!("commands: {e}"))?;
    let commands = said.as_array().into_iter().flatten();
    Ok(commands.map(command).collect())
}

fn command(declared: &Value) -> Command {
    let text = |name: &str| declared[name].as_str().unwrap_or_default().to_owned();
    let arguments = declared["arguments"].as_array();
    let arguments: Vec<&Value> = arguments.into_iter().flatten().collect();
    let flags = |argument: &&Value| {
        let long = argument["long"].as_str().map(|long| format!("--{long}"));
        let short = argument["short"].as_str().map(|short| format!("-{short}"));
        long.into_iter().chain(short)
    };
    let heading = |argument: &Value| {
        let heading = argument["heading"].as_str();
        heading.unwrap_or_default().to_owned()
    };
    let rows = arguments.iter().map(|a| (heading(a), row(a)));
    let mut rows: Vec<(String, String)> = rows.collect();
    // The arguments are in the order of the help. Those without a heading come first, followed by those under each
    // heading.
    let mut headings = vec![String::new()];
    headings.extend(rows.iter().map(|(heading, _)| heading.clone()));
    rows.sort_by_key(|(heading, _)| headings.iter().position(|h| h == heading));
    Command {
        name: text("command"),
        about: text("about"),
        leaf: declared["leaf"].as_bool().unwrap_or_default(),
        flags: arguments.iter().flat_map(flags).collect(),
        rows,
    }
}

fn row(argument: &Value) -> String {
    let text = |name: &str| argument[name].as_str();
    let mut spelled = match (text("long"), text("short")) {
        (Some(long), Some(short)) => format!("--{long}, -{short}"),
        (Some(long), None) => format!("--{long}"),
        _ => String::new(),
    };
    if let Some(value) = text("value") {
        let gap = if spelled.is_empty() { "" } else { " " };
        spelled += &format!("{gap}{value}");
    }
    if argument["many"] == true {
        spelled.push('…');
    }
    let default = text("default").filter(|default| !default.is_empty());
    let default = default.map_or_else(String::new, |default| format!(" [default: {default}]"));
    format!(
        "| `{}` | {}{default} |",
        spelled.replace('|', "\\|"),
        escaped(text("help").unwrap_or_default())
    )
}

fn escaped(help: &str) -> String {
    let marked = help.split('`').enumerate();
    let parts: Vec<String> = marked
        .map(|(k, part)| match k % 2 {
            0 => part.replace('*', "\\*").replace('<', "&lt;"),
            _ => part.to_owned(),
        })
        .collect();
    parts.join("`").replace('|', "\\|")
}

/// If a table shares more rows than this with an earlier table, it only refers to them by name.
const SHARED: usize = 10;

fn renewed(text: &str, commands: &[Command]) -> Result<String, String> {
    let mut blocks: BTreeMap<&str, String> = BTreeMap::new();
    let mut earlier: Vec<&Command> = Vec::new();
    for command in commands {
        blocks.insert(&command.name, block(command, &earlier));
        earlier.push(command);
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!-- jensen") {
        let (name, after) = after.split_once(" -->\n").ok_or("a mark is not closed")?;
        let (_, after) = after
            .split_once("<!-- end -->")
            .ok_or_else(|| format!("the block of `jensen{name}` has no end"))?;
        let name = format!("jensen{name}");
        let block = blocks.remove(name.as_str()).ok_or_else(|| {
            format!("the page on the command has a second block or none to have of `{name}`")
        })?;
        out += &format!("{before}<!-- {name} -->\n{block}<!-- end -->");
        rest = after;
    }
    let missing = commands.iter().find(|command| {
        (command.leaf || !command.rows.is_empty()) && blocks.contains_key(command.name.as_str())
    });
    match missing {
        Some(command) => Err(format!(
            "the page on the command lacks a block `<!-- {} -->` … `<!-- end -->`",
            command.name
        )),
        None => Ok(out + rest),
    }
}

/// Returns the block of a command, with its description and arguments. If an earlier command describes an argument in
/// the same words, the block gives only the name of the argument.
fn block(command: &Command, earlier: &[&Command]) -> String {
    let same = |other: &Command| -> Vec<usize> {
        let rows = command.rows.iter().enumerate();
        let shared = rows.filter(|(_, row)| other.rows.contains(row));
        shared.map(|(k, _)| k).collect()
    };
    let like = earlier.iter().map(|other| (other, same(other)));
    let like = like
        .filter(|(_, rows)| rows.len() > SHARED)
        .max_by_key(|(_, rows)| rows.len());
    let shared = like.as_ref().map_or(&[][..], |(_, rows)| rows);
    let mut text = format!(
        "{}.\n\n| argument | meaning |\n| --- | --- |\n",
        escaped(&command.about)
    );
    let mut under = "";
    for (k, (heading, row)) in command.rows.iter().enumerate() {
        if shared.contains(&k) {
            continue;
        }
        if heading != under {
            text += &format!("| **{heading}** | |\n");
            under = heading;
        }
        text += &format!("{row}\n");
    }
    if let Some((other, rows)) = &like {
        let named = rows.iter().map(|&k| {
            let cell = command.rows[k].1.trim_start_matches("| `");
            let end = cell.find([' ', ',', '`']).unwrap_or(cell.len());
            format!("`{}`", &cell[..end])
        });
        let named: Vec<String> = named.collect();
        let anchor = other.name.replace(' ', "-");
        let (name, all) = (&other.name, named.join(", "));
        text += &format!("| as of [{name}](#{anchor}) | {all} |\n");
    }
    text
}

/// Returns the command lines in a page. They are texts between backticks, and lines of code blocks that start with
/// `jensen`.
fn lines(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split("```").enumerate();
    parts.flat_map(|(k, part)| {
        let lines: Vec<String> = match k % 2 {
            0 => part
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect(),
            _ => {
                let joined = part.replace("\\\n", " ");
                joined.lines().map(str::to_owned).collect()
            }
        };
        lines.into_iter().filter_map(|line| {
            let line = line.trim_start().trim_start_matches("$ ");
            line.starts_with("jensen ").then(|| line.to_owned())
        })
    })
}

fn wrong(line: &str, commands: &[Command]) -> Option<String> {
    let end = [" |", ";", " >", " #", " &&"]
        .iter()
        .filter_map(|end| line.find(end))
        .min();
    let mut words = line[..end.unwrap_or(line.len())]
        .split_whitespace()
        .skip(1)
        .peekable();
    let mut name = "jensen".to_owned();
    while let Some(word) = words.peek() {
        let below = format!("{name} {}", word.trim_end_matches([',', '…']));
        if !commands.iter().any(|command| command.name == below) {
            break;
        }
        name = below;
        words.next();
    }
    let is_name = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let flags = |word: &&str| word.starts_with("--");
    let group = commands
        .iter()
        .any(|command| command.name == name && !command.leaf);
    if group && let Some(word) = words.peek().filter(is_name).filter(|word| !flags(word)) {
        return Some(format!("`{line}`: there is no `{name} {word}`"));
    }
    let within = format!("{name} ");
    let known = |flag: &str| {
        commands.iter().any(|c| {
            (c.name == name || c.name == "jensen" || c.name.starts_with(&within)) && c.has(flag)
        })
    };
    let mut given = words
        .filter(flags)
        .map(|word| word.split(['=', ',', '\'']).next().unwrap_or(word));
    let unknown = given.find(|flag| !["--help", "--version"].contains(flag) && !known(flag));
    unknown.map(|flag| format!("`{line}`: `{name}` has no `{flag}`"))
}

fn lone_flags(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    let quoted = prose.flat_map(|prose| prose.split('`').skip(1).step_by(2));
    let flags = quoted.filter(|quoted| quoted.starts_with("--"));
    flags.map(|flag| flag.split([' ', '=', ',']).next().unwrap_or(flag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn commands() -> Vec<Command> {
        let out = json!({"heading": "Output", "long": "out", "short": "o", "value": "DIR", "help": "To `a|b`, *here*"});
        let seed =
            json!({"heading": null, "long": "seed", "value": "S", "help": "Seed", "default": "0"});
        let data =
            json!({"heading": null, "long": null, "value": "DATA", "many": true, "help": "Data"});
        [
            json!({"command": "jensen", "about": "All", "leaf": false, "arguments": []}),
            json!({"command": "jensen topics", "about": "Topics", "leaf": false, "arguments": []}),
            json!({"command": "jensen topics fit", "about": "Learn", "leaf": true, "arguments": [data, seed, out]}),
        ]
        .iter()
        .map(command)
        .collect()
    }

    #[test]
    fn blocks_are_what_is_declared() {
        let page = "Before.\n<!-- jensen topics fit -->\nold\n<!-- end -->\nAfter.\n";
        let expected = "Before.\n<!-- jensen topics fit -->\nLearn.\n\n| argument | meaning |\n| --- | --- |\n\
            | `DATA…` | Data |\n| `--seed S` | Seed [default: 0] |\n| **Output** | |\n\
            | `--out, -o DIR` | To `a\\|b`, \\*here\\* |\n<!-- end -->\nAfter.\n";
        let made = renewed(page, &commands()).unwrap();
        assert_eq!(made, expected);
        assert_eq!(renewed(&made, &commands()).unwrap(), made);
        assert!(
            renewed("none", &commands())
                .unwrap_err()
                .contains("lacks a block `<!-- jensen topics fit")
        );
        let unknown = page.replace("fit", "make");
        assert!(renewed(&unknown, &commands()).is_err());
    }

    #[test]
    fn what_does_not_exist_is_found() {
        let text = "See `jensen topics fit --seed 1`, `jensen topics --out`, `jensen topics make`, `jensen --help`.\n\
            ```console\n$ jensen topics fit x \\\n    --sed 1 | head --lines 3\n```\n`--out DIR` and `--never`";
        let found: Vec<String> = lines(text)
            .filter_map(|line| wrong(&line, &commands()))
            .collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].ends_with("there is no `jensen topics make`"));
        assert!(found[1].ends_with("`jensen topics fit` has no `--sed`"));
        assert_eq!(lone_flags(text).collect::<Vec<_>>(), ["--out", "--never"]);
    }

    #[test]
    fn what_an_earlier_command_says_is_named() {
        let argument =
            |k: usize| json!({"long": format!("flag{k}"), "value": "X", "help": "Said once"});
        let arguments: Vec<Value> = (0..12).map(argument).collect();
        let of = |name: &str| {
            command(&json!({"command": name, "about": "It", "leaf": true, "arguments": arguments}))
        };
        let (first, second) = (of("jensen fit"), of("jensen fit-many"));
        assert!(block(&first, &[]).matches("Said once").count() == 12);
        let later = block(&second, &[&first]);
        assert!(!later.contains("Said once"));
        assert!(later.contains("| as of [jensen fit](#jensen-fit) | `--flag0`, `--flag1`, "));
    }
}
