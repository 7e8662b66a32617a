//! Messages to the author of a program, and their rendering.

use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level as Title, Renderer, Snippet};

use crate::source::{SourceFile, Span};

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The program can run, but the author may have intended something else.
    Warning,
    /// The program cannot run until this problem is corrected.
    Error,
}

/// The kind of a diagnostic. The names of kinds do not change between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Code {
    Syntax,
    Literal,
    Include,
    TooDeep,
    Removed,
    ReservedName,
    DuplicateName,
    UnknownName,
    UnknownFunction,
    WrongBlock,
    TypeMismatch,
    NoMatchingSignature,
    AmbiguousCall,
    Indexing,
    Assignment,
    Return,
    DataOnly,
    Size,
    Constraint,
    Truncation,
    FunctionDefinition,
    IntegerDivision,
    Unreachable,
    Unsupported,
}

impl Code {
    /// Returns the name of the kind, which messages show in brackets.
    pub fn name(self) -> &'static str {
        match self {
            Code::Syntax => "syntax",
            Code::Literal => "literal",
            Code::Include => "include",
            Code::TooDeep => "too-deep",
            Code::Removed => "removed-syntax",
            Code::ReservedName => "reserved-name",
            Code::DuplicateName => "duplicate-name",
            Code::UnknownName => "unknown-name",
            Code::UnknownFunction => "unknown-function",
            Code::WrongBlock => "wrong-block",
            Code::TypeMismatch => "type-mismatch",
            Code::NoMatchingSignature => "no-matching-signature",
            Code::AmbiguousCall => "ambiguous-call",
            Code::Indexing => "indexing",
            Code::Assignment => "assignment",
            Code::Return => "return",
            Code::DataOnly => "data-only",
            Code::Size => "size",
            Code::Constraint => "constraint",
            Code::Truncation => "truncation",
            Code::FunctionDefinition => "function-definition",
            Code::IntegerDivision => "integer-division",
            Code::Unreachable => "unreachable",
            Code::Unsupported => "unsupported",
        }
    }
}

/// A location in the source with a short text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The location.
    pub span: Span,
    /// The text. It may be empty.
    pub text: String,
}

/// A message to the author of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether this is an error or a warning.
    pub severity: Severity,
    /// The kind of the problem.
    pub code: Code,
    /// A description of the problem, in one sentence without a full stop.
    pub message: String,
    /// The location of the problem.
    pub primary: Label,
    /// Other locations that explain the problem.
    pub secondary: Vec<Label>,
    /// Notes that state further facts, such as the expected and found types or the available signatures.
    pub notes: Vec<String>,
    /// Advice on how to fix the problem.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// Creates an error at `span`.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            primary: Label {
                span,
                text: String::new(),
            },
            secondary: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
        }
    }

    /// Creates a warning at `span`.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, span, message)
        }
    }

    /// Sets the text that is shown at the primary location.
    pub fn label(mut self, text: impl Into<String>) -> Diagnostic {
        self.primary.text = text.into();
        self
    }

    /// Adds another location and the text that is shown there.
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.secondary.push(Label {
            span,
            text: text.into(),
        });
        self
    }

    /// Adds a note, which states a further fact.
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// Adds advice on how to fix the problem.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help.push(text.into());
        self
    }

    /// Returns whether the diagnostic is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}[{}]: {}", self.code.name(), self.message)
    }
}

const SHOWN: usize = 50;

/// Renders the diagnostics as text with source excerpts, in the given order and separated by blank lines. At most fifty
/// diagnostics are shown, followed by the number of diagnostics that were omitted.
///
/// If `colour` is true, the text contains ANSI escape sequences. Tabs and control characters of the source are
/// replaced, so that no escape sequence in the source reaches the terminal.
pub fn render(diagnostics: &[Diagnostic], files: &[SourceFile], colour: bool) -> String {
    let renderer = if colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let mut out = String::new();
    for diagnostic in diagnostics.iter().take(SHOWN) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&renderer.render(&report(diagnostic, files)));
        out.push('\n');
    }
    if diagnostics.len() > SHOWN {
        out.push_str(&format!("\nand {} more\n", diagnostics.len() - SHOWN));
    }
    out
}

fn report<'a>(diagnostic: &'a Diagnostic, files: &'a [SourceFile]) -> Vec<Group<'a>> {
    let title = match diagnostic.severity {
        Severity::Error => Title::ERROR,
        Severity::Warning => Title::WARNING,
    };
    let mut group = title
        .primary_title(&diagnostic.message)
        .id(diagnostic.code.name())
        .elements(Vec::<Snippet<'a, annotate_snippets::Annotation<'a>>>::new());
    let primary_file = diagnostic.primary.span.file;
    for (index, file) in files.iter().enumerate() {
        let labels = std::iter::once((AnnotationKind::Primary, &diagnostic.primary))
            .chain(
                diagnostic
                    .secondary
                    .iter()
                    .map(|l| (AnnotationKind::Context, l)),
            )
            .filter(|(_, label)| label.span.file.0 as usize == index);
        let annotations: Vec<_> = labels
            .map(|(kind, label)| {
                let annotation = kind.span(clamp(label.span, &file.text));
                if label.text.is_empty() {
                    annotation
                } else {
                    annotation.label(&label.text)
                }
            })
            .collect();
        if annotations.is_empty() && primary_file.0 as usize != index {
            continue;
        }
        group = group.element(
            Snippet::source(&file.text)
                .path(&file.name)
                .annotations(annotations),
        );
    }
    for note in &diagnostic.notes {
        group = group.element(Title::NOTE.message(note));
    }
    for help in &diagnostic.help {
        group = group.element(Title::HELP.message(help));
    }
    vec![group]
}

/// Returns the byte range of a span, extended so that it does not start or end within a character of the text.
fn clamp(span: Span, text: &str) -> std::ops::Range<usize> {
    let mut start = (span.start as usize).min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = (span.end as usize).clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}
