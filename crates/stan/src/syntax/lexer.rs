//! Turns text into tokens, and splices in the files of `#include`.

use super::scan::scan;
use super::token::{Token, TokenKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::{FileId, SourceFile, Span};

/// A source of included files. The parser itself does not open any files.
pub trait IncludeResolver {
    /// Returns the text of an included file, or the reason why there is none.
    ///
    /// `path` is relative, uses `/` as the separator, and stays within the directory in which it is looked up. The
    /// lexer rejects a path before this call if it names a drive or if `..` leads out of the directory. The lexer also
    /// removes a leading `/`.
    fn resolve(&self, path: &str) -> Result<String, String>;
}

/// A resolver that rejects every include.
pub struct NoIncludes;

impl IncludeResolver for NoIncludes {
    fn resolve(&self, _: &str) -> Result<String, String> {
        Err("no include directory is given".to_owned())
    }
}

const MAX_INCLUDE_DEPTH: usize = 32;
/// The largest total size of all files in bytes. The limit ensures that positions fit in 32 bits, and that the
/// expansion of includes ends.
const MAX_BYTES: usize = 1 << 26;

/// The tokens of a program, and the files from which they come.
pub struct Lexed {
    /// The tokens. The last token is a [`TokenKind::Eof`].
    pub tokens: Vec<Token>,
    /// The main file, followed by the included files in order of inclusion.
    pub files: Vec<SourceFile>,
    /// The errors about unknown characters and about includes.
    pub diagnostics: Vec<Diagnostic>,
}

/// Splits a program into tokens. Text that is not a token is reported and omitted, so the function never fails.
pub fn lex(source: &str, name: &str, includes: &dyn IncludeResolver) -> Lexed {
    let mut lexer = Lexer {
        includes,
        out: Lexed {
            tokens: Vec::new(),
            files: Vec::new(),
            diagnostics: Vec::new(),
        },
        bytes: 0,
        stack: Vec::new(),
        hash_reported: false,
    };
    lexer.file(source.to_owned(), name.to_owned());
    let end = lexer.out.files[0].text.len() as u32;
    let span = Span {
        file: FileId(0),
        start: end,
        end,
    };
    lexer.out.tokens.push(Token {
        kind: TokenKind::Eof,
        span,
    });
    lexer.out
}

struct Lexer<'a> {
    includes: &'a dyn IncludeResolver,
    out: Lexed,
    bytes: usize,
    /// The paths of the files that are currently being included. A file that includes itself is detected from this
    /// list.
    stack: Vec<String>,
    hash_reported: bool,
}

impl Lexer<'_> {
    fn file(&mut self, mut text: String, name: String) {
        let file = FileId(self.out.files.len() as u32);
        self.bytes += text.len();
        if self.bytes > MAX_BYTES {
            text.clear();
            let message = format!("the program is larger than {} MiB", MAX_BYTES >> 20);
            let diagnostic = Diagnostic::error(Code::Syntax, span_in(file, 0..0), message);
            self.out.diagnostics.push(diagnostic);
        }
        self.out.files.push(SourceFile {
            name,
            text: text.clone(),
        });
        for (token, range) in scan(&text) {
            let span = span_in(file, range.clone());
            match token {
                Some(TokenKind::Include) => self.include(&text[range], span),
                Some(TokenKind::Hash) => self.hash(span),
                Some(TokenKind::UnclosedComment) => self.report(
                    Diagnostic::error(
                        Code::Syntax,
                        Span {
                            end: span.start + 2,
                            ..span
                        },
                        "this comment is not closed",
                    )
                    .help("end it with `*/`"),
                ),
                Some(kind) => self.out.tokens.push(Token { kind, span }),
                None => self.unknown(&text[range], span),
            }
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.out.diagnostics.push(diagnostic);
    }

    fn hash(&mut self, span: Span) {
        if self.hash_reported {
            return;
        }
        self.hash_reported = true;
        self.report(
            Diagnostic::error(Code::Removed, span, "comments no longer start with `#`")
                .help("start comments with `//`"),
        );
    }

    fn unknown(&mut self, text: &str, span: Span) {
        // A sequence of unknown characters is reported only once.
        if let Some(last) = self.out.diagnostics.last_mut()
            && last.code == Code::Syntax
            && last.message == "this is not a part of any word or symbol of Stan"
            && last.primary.span.file == span.file
            && last.primary.span.end == span.start
        {
            last.primary.span.end = span.end;
            return;
        }
        let mut diagnostic = Diagnostic::error(
            Code::Syntax,
            span,
            "this is not a part of any word or symbol of Stan",
        );
        if text.starts_with('"') {
            diagnostic.message = "this string is not closed on its line".to_owned();
        } else if text.starts_with('_') {
            diagnostic.message = "names cannot start with an underscore".to_owned();
        } else if text.starts_with('&') {
            diagnostic = diagnostic.help("logical and is `&&`");
        }
        self.report(diagnostic);
    }

    fn include(&mut self, text: &str, span: Span) {
        let argument = text["#include".len()..]
            .split("//")
            .next()
            .unwrap_or_default()
            .trim();
        let path = argument
            .strip_prefix('<')
            .and_then(|rest| rest.strip_suffix('>'))
            .or_else(|| {
                argument
                    .strip_prefix('"')
                    .and_then(|rest| rest.strip_suffix('"'))
            })
            .unwrap_or(argument)
            .trim();
        let span = Span {
            end: span.start + (text.trim_end().len()) as u32,
            ..span
        };
        let refused = |message: String| Diagnostic::error(Code::Include, span, message);
        let path = match contained(path) {
            Ok(path) => path,
            Err(why) => return self.report(refused(format!("cannot include `{path}`: {why}"))),
        };
        if self.stack.contains(&path) {
            return self.report(refused(format!("`{path}` includes itself")));
        }
        if self.stack.len() >= MAX_INCLUDE_DEPTH {
            return self.report(refused(format!(
                "includes are nested deeper than {MAX_INCLUDE_DEPTH}"
            )));
        }
        match self.includes.resolve(&path) {
            Ok(text) => {
                self.stack.push(path.clone());
                self.file(text, path);
                self.stack.pop();
            }
            Err(why) => self.report(refused(format!("cannot include `{path}`: {why}"))),
        }
    }
}

fn span_in(file: FileId, range: std::ops::Range<usize>) -> Span {
    Span {
        file,
        start: range.start as u32,
        end: range.end as u32,
    }
}

/// Removes `.`, `..` and a leading `/`, which in Stan denotes the directory of includes. Fails with a reason if the
/// path leaves that directory.
fn contained(path: &str) -> Result<String, &'static str> {
    if path.is_empty() {
        return Err("no file is named");
    }
    if path.contains('\0') || path.contains('\\') || path.contains(':') {
        return Err("only relative paths with `/` are allowed");
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return Err("the path leaves the include directories");
                }
            }
            name => parts.push(name),
        }
    }
    if parts.is_empty() {
        return Err("no file is named");
    }
    Ok(parts.join("/"))
}
