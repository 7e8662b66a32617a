//! Messages about command lines that are rejected. For commands that this build does not contain, the messages explain
//! how to build Jensen with them.

use std::error::Error as _;

use clap::CommandFactory;
use clap::builder::StyledStr;
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

fn explained(mut error: Error) -> Error {
    if error.kind() == ErrorKind::UnknownArgument {
        hint(&mut error);
    }
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
            .and_then(|source| expected(&source.to_string()))
        && let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg)
        && let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidValue)
    {
        let message = format!("invalid value '{given}' for '{flag}': expected {expected}");
        return Line::command().error(ErrorKind::ValueValidation, message);
    }
    error
}

/// Describes an expected argument in words that users know. `complaint` is the message of the parser.
fn expected(complaint: &str) -> Option<String> {
    match complaint {
        "invalid digit found in string" => Some("a whole number".to_owned()),
        "invalid float literal" => Some("a number".to_owned()),
        _ => within(complaint.split_once(" is not in ")?.1),
    }
}

/// Describes a range of whole numbers, which is written as in `1..=100`. A range without an upper limit ends at the
/// largest number of its type.
fn within(range: &str) -> Option<String> {
    let (least, most) = range.split_once("..")?;
    let most = most.trim_start_matches('=').parse::<u64>().ok();
    let limited = most.filter(|most| *most < u64::from(u32::MAX));
    Some(match limited {
        Some(most) => format!("a whole number from {least} to {most}"),
        None => format!("a whole number of at least {least}"),
    })
}

/// Replaces the hints about an unknown flag that mislead. No file begins with a dash in practice, so the hint to pass
/// the flag as a value is omitted. Flags of samplers have an explanation.
fn hint(error: &mut Error) {
    let samplers = ["--chains", "--iter-sampling", "--iter-warmup"];
    let is_of_sampler = matches!(
        error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(given)) if samplers.iter().any(|flag| given.starts_with(flag))
    );
    let hints = match error.remove(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(hints)) => hints,
        _ => Vec::new(),
    };
    let useful = |hint: &StyledStr| !hint.to_string().starts_with("to pass");
    let mut hints: Vec<StyledStr> = hints.into_iter().filter(useful).collect();
    if is_of_sampler {
        error.remove(ContextKind::SuggestedArg);
        hints.push("a fit has no chains; --draws sets the number of draws".into());
    }
    if !hints.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(hints));
    }
}

fn absent() -> impl Iterator<Item = &'static Optional> {
    OPTIONAL.iter().filter(|optional| !optional.built)
}
