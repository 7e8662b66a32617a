//! Parses tokens into a syntax tree by recursive descent.
//!
//! The parser always returns a tree. If a statement cannot be parsed, the parser reports it, replaces it by an error
//! node, and continues after it. The nesting is limited, so that the parser and all later stages may be recursive.

mod expr;
mod stmt;
mod types;

use super::ast::{BlockKind, Function, Ident, Param, Program, Stmt};
use super::token::{Token, TokenKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::{SourceFile, Span};

/// The largest nesting depth of statements, types and parentheses.
pub const MAX_DEPTH: u32 = 200;
/// The largest length of a chain of operators. `a + b + c` has length 2.
pub const MAX_HEIGHT: u32 = 400;
/// The parser reports at most this many syntax errors, because further reports are rarely useful.
const MAX_ERRORS: usize = 30;

/// The marker of a failure to parse, whose error has already been reported.
pub(crate) struct Failed;
type Parsed<T> = Result<T, Failed>;

/// Parses a list of tokens that ends with [`TokenKind::Eof`] as a program. If `functions` is true, the tokens are the
/// content of a block of functions, as in `*.stanfunctions` files.
pub fn parse(
    tokens: &[Token],
    files: &[SourceFile],
    functions: bool,
) -> (Program, Vec<Diagnostic>) {
    let mut parser = Parser {
        tokens,
        files,
        at: 0,
        depth: 0,
        diagnostics: Vec::new(),
    };
    let program = match functions {
        true => parser.functions(),
        false => parser.program(),
    };
    (program, parser.diagnostics)
}

struct Parser<'a> {
    tokens: &'a [Token],
    files: &'a [SourceFile],
    at: usize,
    depth: u32,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> TokenKind {
        self.tokens[self.at].kind
    }

    fn peek_at(&self, ahead: usize) -> TokenKind {
        let last = self.tokens.len() - 1;
        self.tokens[(self.at + ahead).min(last)].kind
    }

    fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn text(&self, span: Span) -> &'a str {
        &self.files[span.file.0 as usize].text[span.start as usize..span.end as usize]
    }

    fn bump(&mut self) -> Token {
        let token = self.tokens[self.at];
        if token.kind != TokenKind::Eof {
            self.at += 1;
        }
        token
    }

    fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.peek() == kind;
        if found {
            self.bump();
        }
        found
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < MAX_ERRORS {
            self.diagnostics.push(diagnostic);
        }
    }

    fn fail<T>(&mut self, diagnostic: Diagnostic) -> Parsed<T> {
        self.report(diagnostic);
        Err(Failed)
    }

    fn found(&self) -> String {
        match self.peek() {
            TokenKind::Eof => "the end of the program".to_owned(),
            kind if kind.is_keyword() => format!("the word `{}`", self.text(self.span())),
            _ => {
                let text: String = self.text(self.span()).chars().take(40).collect();
                format!("`{text}`")
            }
        }
    }

    fn unexpected<T>(&mut self, expected: &str) -> Parsed<T> {
        let message = format!("expected {expected}, found {}", self.found());
        self.fail(Diagnostic::error(Code::Syntax, self.span(), message))
    }

    fn expect(&mut self, kind: TokenKind) -> Parsed<Token> {
        if self.peek() == kind {
            return Ok(self.bump());
        }
        if kind == TokenKind::Semi {
            // The error is at the end of the statement, not at the start of the next one.
            let last = self.last_span();
            let end = Span {
                start: last.end.saturating_sub(1).max(last.start),
                ..last
            };
            let message = format!("expected `;` here, found {}", self.found());
            return self.fail(
                Diagnostic::error(Code::Syntax, end, message).label("the statement ends here"),
            );
        }
        self.unexpected(kind.describe())
    }

    fn close(&mut self, kind: TokenKind, open: Span) -> Parsed<Span> {
        if self.peek() == kind {
            return Ok(self.bump().span);
        }
        let message = format!("expected {}, found {}", kind.describe(), self.found());
        self.fail(Diagnostic::error(Code::Syntax, self.span(), message).also(open, "opened here"))
    }

    /// The caller must call [`Parser::leave`] afterwards.
    fn enter(&mut self) -> Parsed<()> {
        if self.depth >= MAX_DEPTH {
            let message = format!("nested deeper than {MAX_DEPTH} levels");
            return self.fail(
                Diagnostic::error(Code::TooDeep, self.span(), message)
                    .help("give names to parts of it, or move them to functions"),
            );
        }
        self.depth += 1;
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.enter()?;
        let result = parse(self);
        self.leave();
        result
    }

    fn new_name(&mut self, what: &str) -> Parsed<Ident> {
        if self.peek() == TokenKind::Ident {
            return Ok(self.ident());
        }
        if self.peek().is_keyword() {
            let message = format!(
                "`{}` is a word of the language and cannot name {what}",
                self.text(self.span())
            );
            return self.fail(Diagnostic::error(Code::ReservedName, self.span(), message));
        }
        self.unexpected(&format!("the name of {what}"))
    }

    fn ident(&mut self) -> Ident {
        let span = self.bump().span;
        Ident {
            name: self.text(span).to_owned(),
            span,
        }
    }

    fn block_header(&self) -> Option<BlockKind> {
        use TokenKind::*;
        let kind = match (self.peek(), self.peek_at(1)) {
            (Functions, LBrace) => BlockKind::Functions,
            (Data, LBrace) => BlockKind::Data,
            (Transformed, Data) => BlockKind::TransformedData,
            (Parameters, LBrace) => BlockKind::Parameters,
            (Transformed, Parameters) => BlockKind::TransformedParameters,
            (Model, LBrace) => BlockKind::Model,
            (Generated, Quantities) => BlockKind::GeneratedQuantities,
            _ => return None,
        };
        Some(kind)
    }

    fn program(&mut self) -> Program {
        let mut program = Program::default();
        let mut seen: Vec<(BlockKind, Span)> = Vec::new();
        loop {
            if self.peek() == TokenKind::Eof {
                return program;
            }
            let start = self.span();
            let Some(kind) = self.block_header() else {
                let message = format!("expected a block of the program, found {}", self.found());
                self.report(Diagnostic::error(Code::Syntax, start, message).help(
                    "the blocks are `functions`, `data`, `transformed data`, `parameters`, `transformed parameters`, \
                     `model` and `generated quantities`, each with `{ … }`",
                ));
                self.skip_to_block();
                continue;
            };
            self.bump();
            if matches!(
                kind,
                BlockKind::TransformedData
                    | BlockKind::TransformedParameters
                    | BlockKind::GeneratedQuantities
            ) {
                self.bump();
            }
            let header = start.to(self.last_span());
            self.check_order(kind, header, &seen);
            seen.push((kind, header));
            let open = self.span();
            if self.expect(TokenKind::LBrace).is_err() {
                self.skip_to_block();
                continue;
            }
            match kind {
                BlockKind::Functions => self.function_block(open, &mut program.functions),
                BlockKind::Data => program.data.extend(self.declarations(open, kind)),
                BlockKind::Parameters => program.parameters.extend(self.declarations(open, kind)),
                BlockKind::TransformedData => {
                    program.transformed_data.extend(self.statements(open))
                }
                BlockKind::TransformedParameters => {
                    program.transformed_parameters.extend(self.statements(open))
                }
                BlockKind::Model => program.model.extend(self.statements(open)),
                BlockKind::GeneratedQuantities => {
                    program.generated_quantities.extend(self.statements(open))
                }
            }
        }
    }

    fn check_order(&mut self, kind: BlockKind, header: Span, seen: &[(BlockKind, Span)]) {
        let name = kind.name();
        if let Some((_, first)) = seen.iter().find(|(other, _)| *other == kind) {
            let message = format!("there is a second `{name}` block");
            self.report(
                Diagnostic::error(Code::Syntax, header, message).also(*first, "the first one"),
            );
        } else if let Some((other, span)) = seen.iter().find(|(other, _)| *other > kind) {
            let message = format!("the `{name}` block must come before `{}`", other.name());
            self.report(
                Diagnostic::error(Code::Syntax, header, message).also(*span, "comes too early"),
            );
        }
    }

    fn skip_to_block(&mut self) {
        while self.peek() != TokenKind::Eof {
            self.bump();
            if self.block_header().is_some() {
                return;
            }
        }
    }

    /// The `{` of the block has been consumed.
    fn statements(&mut self, open: Span) -> Vec<Stmt> {
        let mut out = Vec::new();
        loop {
            if self.eat(TokenKind::RBrace) {
                return out;
            }
            if self.peek() == TokenKind::Eof || self.block_header().is_some() {
                let message = format!("expected `}}`, found {}", self.found());
                self.report(
                    Diagnostic::error(Code::Syntax, self.span(), message).also(open, "opened here"),
                );
                return out;
            }
            self.statement_or_recover(&mut out);
        }
    }

    fn declarations(&mut self, open: Span, kind: BlockKind) -> Vec<Stmt> {
        let mut statements = self.statements(open);
        statements.retain(|statement| match &statement.kind {
            super::ast::StmtKind::Decl(decl) => {
                if let Some(init) = &decl.init {
                    let message = format!("variables of the `{}` block cannot be given a value", kind.name());
                    self.report(Diagnostic::error(Code::WrongBlock, init.span, message));
                }
                true
            }
            super::ast::StmtKind::Error => false,
            _ => {
                let message = format!("the `{}` block can have only declarations", kind.name());
                self.report(
                    Diagnostic::error(Code::WrongBlock, statement.span, message)
                        .help("move this statement to `transformed data`, `transformed parameters` or `model`"),
                );
                false
            }
        });
        statements
    }

    fn function_block(&mut self, open: Span, out: &mut Vec<Function>) {
        loop {
            if self.eat(TokenKind::RBrace) {
                return;
            }
            if self.peek() == TokenKind::Eof || self.block_header().is_some() {
                let message = format!("expected `}}`, found {}", self.found());
                self.report(
                    Diagnostic::error(Code::Syntax, self.span(), message).also(open, "opened here"),
                );
                return;
            }
            self.function_or_recover(out);
        }
    }

    fn functions(&mut self) -> Program {
        let mut program = Program::default();
        while self.peek() != TokenKind::Eof {
            let before = self.at;
            self.function_or_recover(&mut program.functions);
            if self.at == before {
                self.bump();
            }
        }
        program
    }

    fn function_or_recover(&mut self, out: &mut Vec<Function>) {
        let before = self.at;
        match self.function() {
            Ok(function) => out.push(function),
            Err(Failed) => {
                self.depth = 0;
                self.skip_function(before);
            }
        }
    }

    fn skip_function(&mut self, start: usize) {
        let mut braces = 0usize;
        self.at = start;
        while self.peek() != TokenKind::Eof {
            match self.peek() {
                TokenKind::LBrace => braces += 1,
                TokenKind::RBrace if braces <= 1 => {
                    if braces == 1 {
                        self.bump();
                    }
                    return;
                }
                TokenKind::RBrace => braces -= 1,
                TokenKind::Semi if braces == 0 => {
                    self.bump();
                    return;
                }
                _ if self.at > start && self.block_header().is_some() => return,
                _ => {}
            }
            self.bump();
        }
    }

    fn function(&mut self) -> Parsed<Function> {
        let start = self.span();
        let result = self.unsized_type()?;
        let name = self.new_name("a function")?;
        let open = self.span();
        self.expect(TokenKind::LParen)?;
        let mut params = Vec::new();
        while self.peek() != TokenKind::RParen {
            let data = self.eat(TokenKind::Data);
            let ty = self.unsized_type()?;
            let name = self.new_name("an argument")?;
            params.push(Param { data, ty, name });
            if !self.eat(TokenKind::Comma) {
                break;
            }
            if self.peek() == TokenKind::RParen {
                return self.unexpected("another argument");
            }
        }
        self.close(TokenKind::RParen, open)?;
        let body = if self.eat(TokenKind::Semi) {
            None
        } else {
            let open = self.span();
            if self.peek() != TokenKind::LBrace {
                return self.unexpected("`{` and the body of the function");
            }
            self.bump();
            Some(self.statements(open))
        };
        Ok(Function {
            result,
            name,
            params,
            body,
            span: start.to(self.last_span()),
        })
    }
}
