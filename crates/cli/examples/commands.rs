//! Prints the declarations of the command line as JSON. For every command, the output contains its name, its purpose,
//! and its arguments in the order of the help text. `cargo xtask flags` converts the output to tables in the book's
//! page on the command.

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
    // The arguments that are common to all commands are listed with the first command.
    let first = path == "jensen";
    let own = |a: &&Arg| !a.is_hide_set() && !["help", "version"].contains(&a.get_id().as_str());
    let shown = arguments.filter(|a| own(a) && (first || !a.is_global_set()));
    found.push(json!({
        "command": path,
        "about": command.get_about().map(ToString::to_string),
        // `jensen regress` is both a command and a group of commands.
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
    // An argument with an optional value is optional.
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
