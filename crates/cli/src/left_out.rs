//! Messages about commands that this build does not contain. The messages explain how to build Jensen with them.

use std::error::Error as _;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use crate::args::Line;
use crate::failure::{Exit, harmless, remark};

struct Optional {
    command: &'static str,
    feature: &'static str,
    built: bool,
}

macro_rules! optional {
    ($($command:literal: $feature:literal),* $(,)?) => {
        [$(Optional { command: $command, feature: $feature, built: cfg!(feature = $feature) }),*]
    };
}

const OPTIONAL: [Optional; 8] = optional! {
    "topics": "topics",
    "mixture": "mixture",
    "factors": "mixture",
    "hmm": "mixture",
    "factor-analysis": "latent",
    "latent": "latent",
    "vae": "vae",
    "reproduce": "reproduce",
};

/// Returns the part of the help text that lists the commands that are missing from this build.
pub fn help() -> String {
    let names: Vec<&str> = absent().map(|optional| optional.command).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "This build lacks {}. To add them: cargo build --release -p jensen-cli\n\n",
        names.join(", ")
    )
}

/// Prints the requested help, or the reason why a command line is rejected. Returns the exit code.
pub fn refuse(error: Error) -> u8 {
    let explained = explained(error);
    let text = explained.to_string();
    if harmless(&text) == text {
        // If standard error is closed, this failure cannot be reported.
        let _ = explained.print();
    } else {
        remark(&text);
    }
    u8::try_from(explained.exit_code()).unwrap_or(Exit::Usage as u8)
}

fn explained(error: Error) -> Error {
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(optional) = absent().find(|optional| optional.command == given)
    {
        let message = format!(
            "this build lacks `jensen {given}`; to add it: cargo build --release -p jensen-cli --features {}",
            optional.feature
        );
        return Line::command().error(ErrorKind::InvalidSubcommand, message);
    }
    if error.kind() == ErrorKind::ValueValidation
        && let Some(expected) = error
            .source()
            .and_then(|source| number(&source.to_string()))
        && let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg)
        && let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidValue)
    {
        let message = format!("invalid value '{given}' for '{flag}': expected {expected}");
        return Line::command().error(ErrorKind::ValueValidation, message);
    }
    error
}

/// Describes an expected argument in words that users know. `complaint` is the message of the parser.
fn number(complaint: &str) -> Option<&'static str> {
    match complaint {
        "invalid digit found in string" => Some("a whole number"),
        "invalid float literal" => Some("a number"),
        _ => None,
    }
}

fn absent() -> impl Iterator<Item = &'static Optional> {
    OPTIONAL.iter().filter(|optional| !optional.built)
}
