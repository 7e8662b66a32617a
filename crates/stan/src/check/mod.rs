//! Turns a syntax tree into a typed program: resolves names, and checks types and the rules of each block.

mod call;
mod decl;
mod expr;
mod function;
mod index;
mod stmt;
mod suggest;
mod types;

use std::collections::BTreeMap;

use crate::diagnostic::{Code, Diagnostic};
use crate::program::{
    BlockKind, Expr, ExprId, ExprKind, FunId, Function, FunctionKind, FunctionType,
};
use crate::program::{Level, Program, Stmt, StmtKind, Type, Var, VarId, VarKind};
use crate::source::{SourceFile, Span};
use crate::syntax::ast;
use crate::syntax::lexer::{IncludeResolver, lex};
use crate::syntax::parser::parse;
use crate::syntax::token::RESERVED;

/// The result of [`check`].
#[derive(Clone, Debug)]
pub struct Checked {
    /// The typed program, or `None` if there are errors.
    pub program: Option<Program>,
    /// Errors and warnings, in the order in which they occur in the source.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that the diagnostics refer to.
    pub files: Vec<SourceFile>,
}

impl Checked {
    /// Renders the diagnostics as text, as [`crate::diagnostic::render`] does.
    pub fn render(&self, colour: bool) -> String {
        crate::diagnostic::render(&self.diagnostics, &self.files, colour)
    }
}

/// Translates a program from the syntax before Stan 2.33, as [`crate::syntax::old`] describes.
pub fn modernise(text: &str) -> String {
    crate::syntax::old::modernise(text, &|name| {
        crate::program::BuiltinId::from_name(name).is_some()
    })
}

/// If all arrays of the program are declared in the syntax before Stan 2.33, returns the program in today's syntax.
/// Otherwise returns it unchanged. A program that is valid today is never translated, because a single array in the old
/// syntax is an error today.
pub fn in_todays_syntax(text: String) -> String {
    match crate::syntax::old::is_old(&text) {
        true => modernise(&text),
        false => text,
    }
}

/// If the first error is caused by old syntax and a translation would change the program, adds the translation command
/// to this error as help.
fn name_old_syntax(source: &str, diagnostics: &mut [Diagnostic]) {
    let old = diagnostics.iter_mut().find(|d| d.code == Code::Removed);
    if let Some(first) = old.filter(|_| modernise(source) != source) {
        let help = "`--old-syntax` reads the whole program in the syntax before Stan 2.33";
        first.help.push(help.to_owned());
    }
}

/// Parses and checks a program. Messages refer to the program by `name`. The checker reads included files only through
/// `includes`.
///
/// If `name` ends in `.stanfunctions`, the source contains only functions.
///
/// Every input yields either a program or at least one error.
pub fn check(source: &str, name: &str, includes: &dyn IncludeResolver) -> Checked {
    let lexed = lex(source, name, includes);
    let functions = name.ends_with(".stanfunctions");
    let (tree, syntax) = parse(&lexed.tokens, &lexed.files, functions);
    let mut diagnostics = lexed.diagnostics;
    diagnostics.extend(syntax);
    let mut checker = Checker::default();
    checker.program(&tree);
    diagnostics.append(&mut checker.diagnostics);
    diagnostics.sort_by(|a, b| {
        let key = |d: &Diagnostic| (d.primary.span, d.code);
        key(a).cmp(&key(b)).then_with(|| a.message.cmp(&b.message))
    });
    // If several variables share a type, it is checked once for each of them, so each error may occur several times.
    diagnostics.dedup();
    name_old_syntax(source, &mut diagnostics);
    let failed = diagnostics.iter().any(Diagnostic::is_error);
    let program = (!failed).then(|| checker.finish(name, lexed.files.clone()));
    Checked {
        program,
        diagnostics,
        files: lexed.files,
    }
}

/// Marks a construct whose error has already been reported. Checks that depend on the construct then report no further
/// errors.
pub(super) struct Poison;
type Checking<T> = Result<T, Poison>;

#[derive(Clone, Default)]
struct Context {
    block: Option<BlockKind>,
    function: Option<(FunctionKind, Type)>,
    loops: usize,
    /// Whether the checker is inside a size expression of a declaration at the top level of a block.
    in_size: bool,
}

struct Signature {
    name: String,
    ty: FunctionType,
    span: Span,
    defined: bool,
}

#[derive(Default)]
struct Checker {
    diagnostics: Vec<Diagnostic>,
    vars: Vec<Var>,
    signatures: Vec<Signature>,
    by_name: BTreeMap<String, Vec<FunId>>,
    functions: Vec<Option<Function>>,
    /// The innermost scope is last. A variable whose declaration had an error is `None`.
    scopes: Vec<BTreeMap<String, Option<VarId>>>,
    next_expr: u32,
    context: Context,
    blocks: Blocks,
}

#[derive(Default)]
struct Blocks {
    data: Vec<Stmt>,
    transformed_data: Vec<Stmt>,
    parameters: Vec<Stmt>,
    transformed_parameters: Vec<Stmt>,
    model: Vec<Stmt>,
    generated_quantities: Vec<Stmt>,
}

impl Checker {
    fn program(&mut self, tree: &ast::Program) {
        self.context.block = Some(BlockKind::Functions);
        self.declare_functions(&tree.functions);
        self.define_functions(&tree.functions);
        self.scopes.push(BTreeMap::new());
        self.blocks.data = self.block(BlockKind::Data, &tree.data);
        self.blocks.transformed_data =
            self.block(BlockKind::TransformedData, &tree.transformed_data);
        self.blocks.parameters = self.block(BlockKind::Parameters, &tree.parameters);
        self.blocks.transformed_parameters = self.block(
            BlockKind::TransformedParameters,
            &tree.transformed_parameters,
        );
        self.scopes.push(BTreeMap::new());
        self.blocks.model = self.block(BlockKind::Model, &tree.model);
        self.scopes.pop();
        self.blocks.generated_quantities =
            self.block(BlockKind::GeneratedQuantities, &tree.generated_quantities);
    }

    fn block(&mut self, kind: BlockKind, statements: &[ast::Stmt]) -> Vec<Stmt> {
        self.context = Context {
            block: Some(kind),
            ..Context::default()
        };
        self.statements(statements)
    }

    fn finish(self, name: &str, files: Vec<SourceFile>) -> Program {
        let declarations = |list: Vec<Stmt>| {
            list.into_iter()
                .filter_map(|stmt| match stmt.kind {
                    StmtKind::Decl(decl) => Some(decl),
                    _ => None,
                })
                .collect()
        };
        Program {
            name: name.to_owned(),
            functions: self.functions.into_iter().flatten().collect(),
            data: declarations(self.blocks.data),
            transformed_data: self.blocks.transformed_data,
            parameters: declarations(self.blocks.parameters),
            transformed_parameters: self.blocks.transformed_parameters,
            model: self.blocks.model,
            generated_quantities: self.blocks.generated_quantities,
            vars: self.vars,
            expr_count: self.next_expr,
            files,
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn fail<T>(&mut self, diagnostic: Diagnostic) -> Checking<T> {
        self.report(diagnostic);
        Err(Poison)
    }

    fn block_kind(&self) -> BlockKind {
        self.context.block.unwrap_or(BlockKind::Functions)
    }

    /// Whether the current statement is at the top level of its block, where declarations are global.
    fn at_top(&self) -> bool {
        self.scopes.len() == 1
            && self.block_kind() != BlockKind::Functions
            && self.block_kind() != BlockKind::Model
    }

    fn node(&mut self, kind: ExprKind, ty: Type, level: Level, span: Span) -> Expr {
        let id = ExprId(self.next_expr);
        self.next_expr += 1;
        let data = ty.is_discrete() || self.block_kind() == BlockKind::GeneratedQuantities;
        Expr {
            id,
            kind,
            ty,
            level: if data { Level::Data } else { level },
            span,
        }
    }

    fn promote(&mut self, expr: Expr, ty: &Type) -> Expr {
        if expr.ty == *ty {
            return expr;
        }
        let (level, span) = (expr.level, expr.span);
        self.node(ExprKind::Promote(Box::new(expr)), ty.clone(), level, span)
    }

    fn lookup(&self, name: &str) -> Option<Option<VarId>> {
        self.scopes
            .iter()
            .rev()
            .find_map(|scope| scope.get(name).copied())
    }

    fn name_allowed(&mut self, name: &ast::Ident) -> Checking<()> {
        if name.name.ends_with("__") {
            let message = format!("`{}` ends in two underscores, which is reserved", name.name);
            return self.fail(Diagnostic::error(Code::ReservedName, name.span, message));
        }
        if RESERVED.contains(&name.name.as_str()) {
            let message = format!("`{}` is reserved and cannot be a name", name.name);
            return self.fail(Diagnostic::error(Code::ReservedName, name.span, message));
        }
        Ok(())
    }

    /// Declares a variable in the innermost scope. No surrounding scope may contain a variable with the same name.
    fn declare(
        &mut self,
        name: &ast::Ident,
        ty: Checking<Type>,
        kind: VarKind,
        level: Level,
    ) -> Checking<VarId> {
        self.name_allowed(name)?;
        if let Some(earlier) = self.lookup(&name.name) {
            let message = format!("the name `{}` is already in use", name.name);
            let mut diagnostic = Diagnostic::error(Code::DuplicateName, name.span, message);
            if let Some(var) = earlier {
                diagnostic = diagnostic.also(self.vars[var.0 as usize].span, "declared here");
            }
            return self.fail(diagnostic);
        }
        let id = VarId(self.vars.len() as u32);
        let entry = ty.as_ref().ok().map(|_| id);
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.name.clone(), entry);
        }
        let ty = ty?;
        let level = if ty.is_discrete() { Level::Data } else { level };
        self.vars.push(Var {
            name: name.name.clone(),
            ty,
            block: self.block_kind(),
            kind,
            level,
            span: name.span,
        });
        Ok(id)
    }

    fn scoped<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(BTreeMap::new());
        let result = body(self);
        self.scopes.pop();
        result
    }

    fn block_level(&self) -> Level {
        match self.block_kind() {
            BlockKind::Functions
            | BlockKind::Parameters
            | BlockKind::TransformedParameters
            | BlockKind::Model => Level::Param,
            BlockKind::Data | BlockKind::TransformedData | BlockKind::GeneratedQuantities => {
                Level::Data
            }
        }
    }
}
