//! What the command line declares, as JSON: of every command its words, what it does, and its arguments in the order of
//! its help. `cargo xtask flags` makes the tables of the book's page on the command from it.

use clap::{Arg, Command};
use serde_json::{Value, json};

fn main() {
    let mut root = jensen_cli::command();
    root.build();
    let mut found = Vec::new();
    list(&root, "jensen", &mut found);
    println!("{}", Value::from(found));
}

fn list(command: &Command, path: &str, found: &mut Vec<Value>) {
    let arguments = command.get_arguments();
    // What every command has is output of the first.
    let first = path == "jensen";
    let own = |a: &&Arg| !a.is_hide_set() && !["help", "version"].contains(&a.get_id().as_str());
    let shown = arguments.filter(|a| own(a) && (first || !a.is_global_set()));
    found.push(json!({
        "command": path,
        "about": command.get_about().map(ToString::to_string),
        // `jensen regress` does something itself, too.
        "leaf": !command.has_subcommands() || command.get_positionals().next().is_some(),
        "arguments": shown.map(argument).collect::<Vec<_>>(),
    }));
    for below in command.get_subcommands() {
        if below.get_name() != "help" {
            list(below, &format!("{path} {}", below.get_name()), found);
        }
    }
}

fn argument(argument: &Arg) -> Value {
    let default = argument.get_default_values().iter();
    let counted = argument.get_num_args();
    // A value that may be left out is.
    let takes = argument.get_action().takes_values() && counted.is_none_or(|n| n.min_values() > 0);
    let names = argument.get_value_names().unwrap_or_default();
    let choices = argument.get_possible_values();
    let value = match choices.is_empty() {
        true => names.iter().map(ToString::to_string).collect(),
        false => choices
            .iter()
            .map(|choice| choice.get_name().to_owned())
            .collect::<Vec<_>>(),
    };
    json!({
        "heading": argument.get_help_heading(),
        "long": argument.get_long(),
        "short": argument.get_short(),
        "value": takes.then(|| value.join("|")),
        "many": counted.is_some_and(|n| n.max_values() > 1),
        "help": argument.get_help().map(ToString::to_string),
        "default": takes
            .then(|| default.map(|d| d.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")),
    })
}
