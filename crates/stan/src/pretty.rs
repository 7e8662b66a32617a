//! Shows the stages of a program as text.

mod ast;
mod program;

pub use ast::print_tree;
pub use program::print_program;

use std::fmt::Write;

use crate::syntax::lexer::{IncludeResolver, lex};
use crate::syntax::parser::parse;

/// Lists the tokens of a source text, with one token per line. Each line contains the position, the kind and the text
/// of the token.
pub fn show_tokens(source: &str, name: &str, includes: &dyn IncludeResolver) -> String {
    let lexed = lex(source, name, includes);
    let mut out = String::new();
    // The tokens of a file are in order, so each position is computed from the previous position.
    let mut cursors = vec![(0, 1, 1); lexed.files.len()];
    for token in &lexed.tokens {
        let file = &lexed.files[token.span.file.0 as usize];
        let (start, end) = (token.span.start as usize, token.span.end as usize);
        let (offset, line, column) = &mut cursors[token.span.file.0 as usize];
        for c in file.text[*offset..start].chars() {
            (*line, *column) = if c == '\n' {
                (*line + 1, 1)
            } else {
                (*line, *column + 1)
            };
        }
        *offset = start;
        let text = &file.text[start..end];
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}:{line}:{column} {:?} {text}", file.name, token.kind);
    }
    out
}

/// Shows the syntax tree of a source text as Stan code, with one statement per line and all parentheses. Code that
/// could not be parsed is shown as `<error>`.
pub fn show_tree(source: &str, name: &str, includes: &dyn IncludeResolver) -> String {
    let lexed = lex(source, name, includes);
    let (tree, _) = parse(&lexed.tokens, &lexed.files, false);
    print_tree(&tree)
}

#[derive(Default)]
struct Lines {
    text: String,
    depth: usize,
}

impl Lines {
    fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.text.push_str("  ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn braces(&mut self, head: &str, body: impl FnOnce(&mut Self)) {
        let head = if head.is_empty() {
            "{".to_owned()
        } else {
            format!("{head} {{")
        };
        self.line(&head);
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.line("}");
    }
}

/// Reading the text back gives the same real number.
fn real(value: f64) -> String {
    let text = format!("{value:?}");
    match text.as_str() {
        // A literal beyond the largest number
        "inf" => "1e999".to_owned(),
        _ => text,
    }
}
