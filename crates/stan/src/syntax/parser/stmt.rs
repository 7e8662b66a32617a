//! Parses statements and declarations.

use super::super::ast::{Decl, Expr, ExprKind, InfixOp, Message, Stmt, StmtKind, Truncation};
use super::super::token::TokenKind;
use super::{Failed, Parsed, Parser};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;

/// The largest number of branches in one chain of `else if`. The checker nests these branches.
const MAX_BRANCHES: usize = 500;

impl Parser<'_> {
    pub(super) fn statement_or_recover(&mut self, out: &mut Vec<Stmt>) {
        let start = self.at;
        let start_span = self.span();
        let depth = self.depth;
        if self.statement_list(out).is_err() {
            self.depth = depth;
            self.skip_statement(start);
            let span = start_span.to(self.last_span());
            out.push(Stmt {
                kind: StmtKind::Error,
                span,
            });
        }
    }

    /// The next statement begins after a `;` or a closed `{ … }`, or the block ends.
    fn skip_statement(&mut self, start: usize) {
        let mut braces = 0usize;
        // Braces may already have been consumed since the statement began.
        for token in &self.tokens[start..self.at] {
            match token.kind {
                TokenKind::LBrace => braces += 1,
                TokenKind::RBrace => braces = braces.saturating_sub(1),
                _ => {}
            }
        }
        if self.at > start && braces == 0 && self.tokens[self.at - 1].kind == TokenKind::Semi {
            return;
        }
        loop {
            match self.peek() {
                TokenKind::Eof => return,
                TokenKind::LBrace => braces += 1,
                TokenKind::RBrace if braces == 0 => return,
                TokenKind::RBrace => {
                    braces -= 1;
                    if braces == 0 {
                        self.bump();
                        self.eat(TokenKind::Semi);
                        return;
                    }
                }
                TokenKind::Semi if braces == 0 => {
                    self.bump();
                    return;
                }
                _ if self.block_header().is_some() => return,
                kind if self.at > start && braces == 0 && self.starts_fresh_statement(kind) => {
                    return;
                }
                _ => {}
            }
            self.bump();
        }
    }

    /// Whether the current token is the first on its line and is a keyword or type that starts a statement.
    fn starts_fresh_statement(&self, kind: TokenKind) -> bool {
        use TokenKind::*;
        let word = matches!(
            kind,
            For | While | If | Return | Print | Reject | Target | Profile
        ) || kind.starts_type();
        if !word || self.at == 0 {
            return false;
        }
        let (last, here) = (self.last_span(), self.span());
        last.file != here.file
            || self.files[here.file.0 as usize].text[last.end as usize..here.start as usize]
                .contains('\n')
    }

    fn statement_list(&mut self, out: &mut Vec<Stmt>) -> Parsed<()> {
        if self.peek().starts_type() {
            return self.declaration(out);
        }
        let statement = self.nested(Self::statement)?;
        out.push(statement);
        Ok(())
    }

    /// The body is one statement. Declarations of several variables become a block.
    fn body(&mut self) -> Parsed<Box<Stmt>> {
        let mut list = Vec::new();
        self.statement_list(&mut list)?;
        if list.len() == 1
            && let Some(only) = list.pop()
        {
            return Ok(Box::new(only));
        }
        let span = list
            .first()
            .map_or(self.last_span(), |s| s.span.to(self.last_span()));
        Ok(Box::new(Stmt {
            kind: StmtKind::Block(list),
            span,
        }))
    }

    fn declaration(&mut self, out: &mut Vec<Stmt>) -> Parsed<()> {
        let start = self.span();
        let ty = self.sized_type()?;
        loop {
            let name = self.new_name("a variable")?;
            let mut this = ty.clone();
            if self.peek() == TokenKind::LBracket {
                this.dims = self.old_array(start, &ty, &name.name)?;
            }
            let init = if self.eat(TokenKind::Assign) {
                Some(self.expr()?)
            } else {
                None
            };
            let span = start.to(self.last_span());
            out.push(Stmt {
                kind: StmtKind::Decl(Decl {
                    ty: this,
                    name,
                    init,
                }),
                span,
            });
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        if self.peek() == TokenKind::ArrowAssign {
            return self.arrow();
        }
        self.expect(TokenKind::Semi)?;
        Ok(())
    }

    fn old_array(
        &mut self,
        start: Span,
        ty: &super::super::ast::SizedType,
        name: &str,
    ) -> Parsed<Vec<Expr>> {
        let element = self.text(start.to(ty.span)).to_owned();
        let open = self.bump().span;
        let mut dims = self.exprs(TokenKind::RBracket)?;
        let span = open.to(self.close(TokenKind::RBracket, open)?);
        let sizes = self.text(span).to_owned();
        let mut diagnostic = Diagnostic::error(
            Code::Removed,
            span,
            "sizes of an array no longer follow its name",
        );
        diagnostic = if ty.dims.is_empty() {
            diagnostic.help(format!("write `array{sizes} {element} {name};`"))
        } else {
            diagnostic.help("put all sizes into `array[…]`, before the type")
        };
        self.report(diagnostic);
        dims.extend(ty.dims.iter().cloned());
        Ok(dims)
    }

    fn arrow<T>(&mut self) -> Parsed<T> {
        let diagnostic =
            Diagnostic::error(Code::Removed, self.span(), "`<-` is no longer part of Stan")
                .help("assign with `=`");
        self.fail(diagnostic)
    }

    fn statement(&mut self) -> Parsed<Stmt> {
        use TokenKind as T;
        let start = self.span();
        let kind = match self.peek() {
            T::Semi => {
                self.bump();
                StmtKind::Empty
            }
            T::LBrace if !self.brace_is_array() => {
                self.bump();
                StmtKind::Block(self.statements(start))
            }
            T::Break => self.simple(StmtKind::Break)?,
            T::Continue => self.simple(StmtKind::Continue)?,
            T::Return => {
                self.bump();
                let value = if self.peek() == T::Semi {
                    None
                } else {
                    Some(self.expr()?)
                };
                self.expect(T::Semi)?;
                StmtKind::Return(value)
            }
            T::Print => StmtKind::Print(self.messages()?),
            T::Reject => StmtKind::Reject(self.messages()?),
            T::FatalError => StmtKind::FatalError(self.messages()?),
            T::If => self.if_statement()?,
            T::While => {
                self.bump();
                let condition = self.parenthesised_condition()?;
                StmtKind::While(condition, self.body()?)
            }
            T::For => self.for_statement()?,
            T::Profile => self.profile()?,
            T::Target if self.peek_at(1) != T::LParen => {
                StmtKind::TargetPlus(self.increment("target")?)
            }
            T::Jacobian => StmtKind::JacobianPlus(self.increment("jacobian")?),
            T::Else => {
                let diagnostic = Diagnostic::error(Code::Syntax, start, "this `else` has no `if`");
                return self.fail(diagnostic);
            }
            T::Ident if self.peek_at(1) == T::Ident => {
                let message = format!("`{}` is not a type", self.text(start));
                let mut diagnostic = Diagnostic::error(Code::Syntax, start, message);
                if matches!(self.text(start), "float" | "double") {
                    diagnostic = diagnostic.help("the type of real numbers is `real`");
                }
                return self.fail(diagnostic);
            }
            _ => self.expression_statement()?,
        };
        let span = start.to(self.last_span());
        Ok(Stmt { kind, span })
    }

    /// Whether a `{` at the start of a statement opens an array, as in `{1, 2} ~ normal(0, 1);`. The brace opens an
    /// array if the braces contain no `;` and are followed by `~`, either directly or after indices.
    fn brace_is_array(&self) -> bool {
        let mut open = 0usize;
        for (at, token) in self.tokens[self.at..].iter().enumerate() {
            match token.kind {
                TokenKind::LBrace | TokenKind::LParen | TokenKind::LBracket => open += 1,
                TokenKind::RBrace | TokenKind::RParen | TokenKind::RBracket => {
                    open -= 1;
                    if open == 0 {
                        match self.peek_at(at + 1) {
                            TokenKind::Tilde => return at > 1,
                            TokenKind::LBracket if at > 1 => {}
                            _ => return false,
                        }
                    }
                }
                TokenKind::Semi | TokenKind::Eof => return false,
                _ => {}
            }
        }
        false
    }

    fn simple(&mut self, kind: StmtKind) -> Parsed<StmtKind> {
        self.bump();
        self.expect(TokenKind::Semi)?;
        Ok(kind)
    }

    fn parenthesised_condition(&mut self) -> Parsed<Expr> {
        let open = self.span();
        self.expect(TokenKind::LParen)?;
        let condition = self.expr()?;
        if self.peek() == TokenKind::Assign {
            let diagnostic = Diagnostic::error(
                Code::Syntax,
                self.span(),
                "an assignment is not a condition",
            )
            .help("equality is `==`");
            return self.fail(diagnostic);
        }
        self.close(TokenKind::RParen, open)?;
        Ok(condition)
    }

    fn if_statement(&mut self) -> Parsed<StmtKind> {
        let mut branches = Vec::new();
        loop {
            self.bump();
            let condition = self.parenthesised_condition()?;
            branches.push((condition, *self.body()?));
            if branches.len() > MAX_BRANCHES {
                let message =
                    format!("more than {MAX_BRANCHES} branches in one chain of `else if`");
                return self.fail(
                    Diagnostic::error(Code::TooDeep, self.last_span(), message)
                        .help("look up the values in an array, or move parts to functions"),
                );
            }
            if !self.eat(TokenKind::Else) {
                return Ok(StmtKind::If(branches, None));
            }
            if self.peek() != TokenKind::If {
                return Ok(StmtKind::If(branches, Some(self.body()?)));
            }
        }
    }

    fn for_statement(&mut self) -> Parsed<StmtKind> {
        self.bump();
        let open = self.span();
        self.expect(TokenKind::LParen)?;
        let name = self.new_name("a loop variable")?;
        self.expect(TokenKind::In)?;
        let first = self.expr()?;
        if self.eat(TokenKind::Colon) {
            let last = self.expr()?;
            self.close(TokenKind::RParen, open)?;
            return Ok(StmtKind::For(name, first, last, self.body()?));
        }
        self.close(TokenKind::RParen, open)?;
        Ok(StmtKind::ForEach(name, first, self.body()?))
    }

    fn profile(&mut self) -> Parsed<StmtKind> {
        self.bump();
        let open = self.span();
        self.expect(TokenKind::LParen)?;
        if self.peek() != TokenKind::Str {
            return self.unexpected("the name of the profile, a string");
        }
        let name = self.string();
        self.close(TokenKind::RParen, open)?;
        let open = self.expect(TokenKind::LBrace)?.span;
        Ok(StmtKind::Profile(name, self.statements(open)))
    }

    fn string(&mut self) -> String {
        let span = self.bump().span;
        let text = self.text(span);
        text[1..text.len() - 1].to_owned()
    }

    fn messages(&mut self) -> Parsed<Vec<Message>> {
        let word = self.bump().span;
        let open = self.span();
        self.expect(TokenKind::LParen)?;
        if self.peek() == TokenKind::RParen {
            let message = format!("`{}` needs an argument", self.text(word));
            return self.fail(Diagnostic::error(
                Code::Syntax,
                open.to(self.span()),
                message,
            ));
        }
        let mut out = Vec::new();
        loop {
            if self.peek() == TokenKind::Str {
                out.push(Message::Text(self.string()));
            } else {
                out.push(Message::Value(self.expr()?));
            }
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.close(TokenKind::RParen, open)?;
        self.expect(TokenKind::Semi)?;
        Ok(out)
    }

    fn increment(&mut self, word: &str) -> Parsed<Expr> {
        let start = self.bump().span;
        if self.peek() != TokenKind::PlusAssign {
            let message = format!("`{word}` supports only `+=`");
            let span = start.to(self.span());
            return self.fail(
                Diagnostic::error(Code::Syntax, span, message)
                    .help(format!("write `{word} += …;`")),
            );
        }
        self.bump();
        let value = self.expr()?;
        self.expect(TokenKind::Semi)?;
        Ok(value)
    }

    fn expression_statement(&mut self) -> Parsed<StmtKind> {
        use TokenKind as T;
        let target = self.expr()?;
        let op = match self.peek() {
            T::Tilde => {
                self.bump();
                return self.tilde(target);
            }
            T::ArrowAssign => return self.arrow(),
            T::Assign => None,
            T::PlusAssign => Some(InfixOp::Add),
            T::MinusAssign => Some(InfixOp::Sub),
            T::TimesAssign => Some(InfixOp::Mul),
            T::DivideAssign => Some(InfixOp::Div),
            T::EltTimesAssign => Some(InfixOp::EltMul),
            T::EltDivideAssign => Some(InfixOp::EltDiv),
            _ => return self.call_statement(target),
        };
        let op_span = self.bump().span;
        self.check_target(&target)?;
        if op.is_some() && matches!(target.kind, ExprKind::Tuple(_)) {
            let diagnostic = Diagnostic::error(
                Code::Assignment,
                op_span,
                "several variables can be assigned only with `=`",
            );
            return self.fail(diagnostic);
        }
        let rhs = self.expr()?;
        self.expect(T::Semi)?;
        Ok(StmtKind::Assign {
            target,
            op,
            op_span,
            rhs,
        })
    }

    fn call_statement(&mut self, expr: Expr) -> Parsed<StmtKind> {
        let ExprKind::Call(call) = expr.kind else {
            if self.peek() == TokenKind::Semi {
                let diagnostic = Diagnostic::error(
                    Code::Syntax,
                    expr.span,
                    "a value alone is not a statement",
                )
                .help("assign it to a variable, or add it to the log density with `target += …;`");
                return self.fail(diagnostic);
            }
            return self.unexpected("an assignment, `~` or `;`");
        };
        self.expect(TokenKind::Semi)?;
        Ok(StmtKind::Call(call))
    }

    fn check_target(&mut self, target: &Expr) -> Parsed<()> {
        match &target.kind {
            ExprKind::Name(_) => Ok(()),
            ExprKind::Index(base, _) | ExprKind::Component(base, _)
                if !matches!(base.kind, ExprKind::Tuple(_)) =>
            {
                self.check_target(base)
            }
            ExprKind::Tuple(parts) => parts.iter().try_for_each(|part| self.check_target(part)),
            _ => {
                let diagnostic = Diagnostic::error(
                    Code::Assignment,
                    target.span,
                    "this cannot be assigned to",
                )
                .help(
                    "the left side must be a variable, optionally with indices, or a tuple of such",
                );
                self.report(diagnostic);
                Err(Failed)
            }
        }
    }

    fn tilde(&mut self, variate: Expr) -> Parsed<StmtKind> {
        if self.peek() != TokenKind::Ident {
            return self.unexpected("the name of a distribution");
        }
        let dist = self.ident();
        let open = self.span();
        self.expect(TokenKind::LParen)?;
        let args = self.exprs(TokenKind::RParen)?;
        self.close(TokenKind::RParen, open)?;
        let truncation = self.truncation()?;
        self.expect(TokenKind::Semi)?;
        Ok(StmtKind::Tilde {
            variate,
            dist,
            args,
            truncation,
        })
    }

    fn truncation(&mut self) -> Parsed<Option<Truncation>> {
        let start = self.span();
        if self.peek() != TokenKind::Ident
            || self.text(start) != "T"
            || self.peek_at(1) != TokenKind::LBracket
        {
            return Ok(None);
        }
        self.bump();
        let open = self.bump().span;
        let lower = if self.peek() == TokenKind::Comma {
            None
        } else {
            Some(self.expr()?)
        };
        self.expect(TokenKind::Comma)?;
        let upper = if self.peek() == TokenKind::RBracket {
            None
        } else {
            Some(self.expr()?)
        };
        let end = self.close(TokenKind::RBracket, open)?;
        Ok(Some(Truncation {
            lower,
            upper,
            span: start.to(end),
        }))
    }
}
