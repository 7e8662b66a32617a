//! Adapts help texts to the width of the terminal.

use clap::Command;

/// The width, in columns, of examples and lists. Even narrow terminals do not wrap lines of this width.
const WIDTH: usize = 70;

/// Reflows the paragraphs of the closing help of a command and of its subcommands. Otherwise a narrow terminal would
/// break the lines of the source in the middle.
pub fn flowing(command: Command) -> Command {
    let text = command.get_after_help().map(ToString::to_string);
    let command = match text {
        Some(text) => command.after_help(flow(&text)),
        None => command,
    };
    command.mut_subcommands(flowing)
}

/// Joins the lines of each paragraph. Indented lines are not joined, but they are folded if they are too long. A folded
/// command has a backslash at the end of each line but the last.
fn flow(text: &str) -> String {
    let mut out = String::new();
    let mut open = false;
    // Line continuations in the source are removed first, and added again where they are necessary.
    for line in text.replace(" \\\n", " ").lines() {
        let set_in = line.starts_with(' ');
        if open && !set_in && !line.is_empty() {
            out.push(' ');
        } else if !out.is_empty() {
            out.push('\n');
        }
        if set_in {
            fold(line, &mut out);
        } else {
            out.push_str(line);
        }
        open = !set_in && !line.is_empty() && !line.ends_with(':');
    }
    out
}

fn fold(line: &str, out: &mut String) {
    let end = if line.trim_start().starts_with("jensen ") {
        " \\"
    } else {
        ""
    };
    let inner = line.trim_start();
    let mut column = line.len() - inner.len();
    out.push_str(&line[..column]);
    for (k, word) in words(inner).iter().enumerate() {
        let length = word.chars().count();
        if k > 0 && column + length + end.len() > WIDTH {
            while out.ends_with(' ') {
                out.pop();
            }
            out.push_str(end);
            out.push_str("\n      ");
            column = 6;
        }
        out.push_str(word);
        column += length;
    }
    while out.ends_with(' ') {
        out.pop();
    }
}

/// Returns the words of a line, each with the spaces that follow it. A quoted text is a single word. A flag and its
/// value also form a single word.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut quoted, mut blank) = (false, true);
    for c in line.chars() {
        if c != ' ' && blank && !quoted {
            words.push(String::new());
        }
        quoted ^= c == '\'';
        blank = c == ' ';
        if let Some(word) = words.last_mut() {
            word.push(c);
        }
    }
    let takes = |word: &str| word.starts_with('-') || word.trim_end() == ">";
    let mut joined: Vec<String> = Vec::with_capacity(words.len());
    for word in words {
        match joined.last_mut() {
            // The value of a flag stays on the same line as the flag if the line is long enough for both.
            Some(last)
                if takes(last)
                    && !last.trim_end().contains(' ')
                    && !takes(&word)
                    && last.len() + word.len() <= WIDTH / 2 =>
            {
                last.push_str(&word)
            }
            _ => joined.push(word),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Line;
    use clap::CommandFactory;

    #[test]
    fn paragraphs_flow_and_examples_stay_commands() {
        let text = "Examples:\n  jensen fit model.stan data.json --optimizer adam --step-size 0.01 --max-seconds 60\n\nOne\ntwo\n\n  4  three";
        let expected = "Examples:\n  jensen fit model.stan data.json --optimizer adam --step-size 0.01 \\\n      --max-seconds 60\n\nOne two\n\n  4  three";
        assert_eq!(flow(text), expected);
        assert_eq!(words("a  'b c' d"), ["a  ", "'b c' ", "d"]);
        let expected = ["jensen ", "fit ", "--out results ", "--json ", "> fit.json"];
        assert_eq!(
            words("jensen fit --out results --json > fit.json"),
            expected
        );
    }

    #[test]
    fn no_help_is_wider_than_a_narrow_terminal_or_broken_by_it() {
        fn look(command: &mut Command, path: &str) {
            let after = command.get_after_help().map(ToString::to_string);
            for line in after.unwrap_or_default().lines() {
                let whole = !line.starts_with(' ') || line.chars().count() <= WIDTH;
                assert!(whole, "{path}: {line}");
            }
            let narrow = command.clone().term_width(WIDTH);
            for line in narrow.clone().render_long_help().to_string().lines() {
                let fits = line.chars().count() <= WIDTH || !line.trim().contains(' ');
                assert!(fits, "{path}: {line}");
            }
            for below in command.get_subcommands_mut() {
                let path = format!("{path} {}", below.get_name());
                look(below, &path);
            }
        }
        let mut line = flowing(Line::command());
        line.build();
        look(&mut line, "jensen");
    }
}
