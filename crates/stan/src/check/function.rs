//! Checks function definitions.

use super::{Checker, Checking, Context, Poison, Signature};
use crate::diagnostic::{Code, Diagnostic};
use crate::program::signatures::BuiltinId;
use crate::program::{
    BlockKind, FunId, Function, FunctionKind, FunctionType, Level, ParamType, Type, VarKind,
};
use crate::syntax::ast::{self, StmtKind, UnsizedBase};

fn unsized_type(ty: &ast::UnsizedType) -> Type {
    let base = match &ty.base {
        UnsizedBase::Void => Type::Void,
        UnsizedBase::Int => Type::Int,
        UnsizedBase::Real => Type::Real,
        UnsizedBase::Complex => Type::Complex,
        UnsizedBase::Vector => Type::Vector,
        UnsizedBase::RowVector => Type::RowVector,
        UnsizedBase::Matrix => Type::Matrix,
        UnsizedBase::ComplexVector => Type::ComplexVector,
        UnsizedBase::ComplexRowVector => Type::ComplexRowVector,
        UnsizedBase::ComplexMatrix => Type::ComplexMatrix,
        UnsizedBase::Tuple(parts) => Type::Tuple(parts.iter().map(unsized_type).collect()),
    };
    base.array(ty.depth)
}

fn has_void(ty: &ast::UnsizedType) -> bool {
    match &ty.base {
        UnsizedBase::Void => true,
        UnsizedBase::Tuple(parts) => parts.iter().any(has_void),
        _ => false,
    }
}

fn signature(function: &ast::Function) -> FunctionType {
    let params = function.params.iter().map(|param| {
        let ty = unsized_type(&param.ty);
        let data = param.data && !ty.is_discrete();
        ParamType {
            ty,
            level: if data { Level::Data } else { Level::Param },
        }
    });
    FunctionType {
        params: params.collect(),
        result: unsized_type(&function.result),
    }
}

fn same_params(a: &FunctionType, b: &FunctionType) -> bool {
    a.params.len() == b.params.len() && a.params.iter().zip(&b.params).all(|(a, b)| a.ty == b.ty)
}

fn always_returns(statements: &[ast::Stmt]) -> bool {
    for statement in statements {
        match &statement.kind {
            StmtKind::Return(_) | StmtKind::Reject(_) | StmtKind::FatalError(_) => return true,
            StmtKind::Break | StmtKind::Continue => return false,
            _ => {}
        }
    }
    statements.last().is_some_and(returns)
}

/// As in Stan, every loop is assumed to run at least once, and a loop without an exit never ends.
fn returns(statement: &ast::Stmt) -> bool {
    match &statement.kind {
        StmtKind::Return(_) | StmtKind::Reject(_) | StmtKind::FatalError(_) => true,
        StmtKind::If(branches, Some(otherwise)) => {
            branches.iter().all(|(_, then)| returns(then)) && returns(otherwise)
        }
        StmtKind::While(condition, body) => {
            !breaks(body) && (always_true(condition) || returns(body))
        }
        StmtKind::For(_, _, _, body) | StmtKind::ForEach(_, _, body) => {
            !breaks(body) && returns(body)
        }
        StmtKind::Block(list) | StmtKind::Profile(_, list) => always_returns(list),
        // The error has already been reported, and a second message would not help.
        StmtKind::Error => true,
        _ => false,
    }
}

fn always_true(condition: &ast::Expr) -> bool {
    matches!(condition.kind, ast::ExprKind::Int(value) if value != 0)
}

/// Whether the body of a loop contains a `break` that ends this loop.
fn breaks(body: &ast::Stmt) -> bool {
    match &body.kind {
        StmtKind::Break => true,
        StmtKind::If(branches, otherwise) => {
            let bodies = branches.iter().map(|(_, body)| body);
            bodies.chain(otherwise.as_deref()).any(breaks)
        }
        StmtKind::Block(list) | StmtKind::Profile(_, list) => {
            let leaves = |stmt: &&ast::Stmt| {
                matches!(
                    stmt.kind,
                    StmtKind::Return(_)
                        | StmtKind::Reject(_)
                        | StmtKind::FatalError(_)
                        | StmtKind::Continue
                )
            };
            list.iter().take_while(|stmt| !leaves(stmt)).any(breaks)
        }
        _ => false,
    }
}

impl Checker {
    pub(super) fn declare_functions(&mut self, functions: &[ast::Function]) {
        for function in functions {
            if self.function_allowed(function).is_err() {
                continue;
            }
            let ty = signature(function);
            let defined = function.body.is_some();
            if let Some(id) = self.overload(&function.name.name, &ty) {
                let earlier = &mut self.signatures[id.0 as usize];
                let repeated = earlier.defined && defined;
                let other_result = earlier.ty != ty;
                let span = earlier.span;
                earlier.defined |= defined;
                if repeated || other_result {
                    let message = if other_result {
                        "overloads must differ in the types of their arguments"
                    } else {
                        "this function is already defined"
                    };
                    self.report(
                        Diagnostic::error(Code::DuplicateName, function.name.span, message)
                            .also(span, "the first one"),
                    );
                }
                continue;
            }
            let id = FunId(self.signatures.len() as u32);
            self.by_name
                .entry(function.name.name.clone())
                .or_default()
                .push(id);
            self.signatures.push(Signature {
                name: function.name.name.clone(),
                ty,
                span: function.name.span,
                defined,
            });
            self.functions.push(None);
        }
        for at in 0..self.signatures.len() {
            let signature = &self.signatures[at];
            if !signature.defined {
                let message = format!(
                    "the function `{}` is declared but never defined",
                    signature.name
                );
                let span = signature.span;
                self.report(
                    Diagnostic::error(Code::FunctionDefinition, span, message).help(
                        "Jensen cannot run functions that C++ defines (`--allow-undefined` of Stan's \
                         compiler): write the body in Stan",
                    ),
                );
            }
        }
    }

    fn overload(&self, name: &str, ty: &FunctionType) -> Option<FunId> {
        let ids = self.by_name.get(name)?;
        ids.iter()
            .copied()
            .find(|id| same_params(&self.signatures[id.0 as usize].ty, ty))
    }

    fn function_allowed(&mut self, function: &ast::Function) -> Checking<()> {
        let name = &function.name;
        self.name_allowed(name)?;
        let bad = |message: String| Diagnostic::error(Code::FunctionDefinition, name.span, message);
        if name.name.ends_with("_lupdf") || name.name.ends_with("_lupmf") {
            let modern = name.name.replace("_lu", "_l");
            let diagnostic =
                bad("a density must be defined with its constants".to_owned()).help(format!(
                    "call it `{modern}`; `{}` is then available by itself",
                    name.name
                ));
            return self.fail(diagnostic);
        }
        let ty = signature(function);
        if let Some(id) = BuiltinId::from_name(&name.name) {
            if id.is_variadic() {
                let message = format!(
                    "`{}` is a function of the library that cannot be overloaded",
                    name.name
                );
                return self.fail(Diagnostic::error(Code::DuplicateName, name.span, message));
            }
            if let Some(known) = id.signatures().iter().find(|known| same_params(known, &ty)) {
                let message = format!("the library already has `{}{known}`", name.name);
                return self.fail(Diagnostic::error(Code::DuplicateName, name.span, message));
            }
        }
        if let Some(param) = function.params.iter().find(|param| has_void(&param.ty)) {
            let diagnostic = Diagnostic::error(
                Code::FunctionDefinition,
                param.ty.span,
                "an argument cannot be `void`",
            );
            return self.fail(diagnostic);
        }
        let kind = FunctionKind::of_name(&name.name);
        let density = matches!(
            kind,
            FunctionKind::Lpdf | FunctionKind::Lpmf | FunctionKind::Lcdf | FunctionKind::Lccdf
        ) || name.name.ends_with("_cdf");
        if density && ty.result != Type::Real {
            let message = format!(
                "`{}` must return real, as its name says; found {}",
                name.name, ty.result
            );
            return self.fail(bad(message));
        }
        let first = ty.params.first().map(|param| &param.ty);
        if kind == FunctionKind::Lpdf && first.is_none_or(Type::is_int) {
            return self.fail(
                bad(
                    "the first argument of a density (_lpdf) is its variate, not an integer"
                        .to_owned(),
                )
                .help("a probability mass function ends in _lpmf"),
            );
        }
        if kind == FunctionKind::Lpmf && !first.is_some_and(Type::is_discrete) {
            return self.fail(
                bad(
                    "the first argument of a mass function (_lpmf) is its variate, an integer"
                        .to_owned(),
                )
                .help("a density of a real variate ends in _lpdf"),
            );
        }
        Ok(())
    }

    pub(super) fn define_functions(&mut self, functions: &[ast::Function]) {
        for function in functions {
            let Some(body) = &function.body else { continue };
            let ty = signature(function);
            let Some(id) = self.overload(&function.name.name, &ty) else {
                continue;
            };
            if let Ok(checked) = self.define(function, body, id, ty) {
                self.functions[id.0 as usize] = Some(checked);
            }
        }
    }

    fn define(
        &mut self,
        function: &ast::Function,
        body: &[ast::Stmt],
        id: FunId,
        ty: FunctionType,
    ) -> Result<Function, Poison> {
        let kind = FunctionKind::of_name(&function.name.name);
        self.context = Context {
            block: Some(BlockKind::Functions),
            function: Some((kind, ty.result.clone())),
            ..Context::default()
        };
        if ty.result != Type::Void && !always_returns(body) {
            let message = format!(
                "some path through `{}` returns no value",
                function.name.name
            );
            self.report(
                Diagnostic::error(Code::Return, function.name.span, message)
                    .help("end each branch with `return …;` or `reject(…);`"),
            );
        }
        let (args, body) = self.scoped(|checker| {
            let mut args = Vec::new();
            for (index, (param, ty)) in function.params.iter().zip(&ty.params).enumerate() {
                let kind = VarKind::Argument {
                    function: id,
                    index: index as u32,
                };
                args.push(checker.declare(&param.name, Ok(ty.ty.clone()), kind, ty.level));
            }
            let body = checker.statements(body);
            (args, body)
        });
        let args: Result<Vec<_>, Poison> = args.into_iter().collect();
        Ok(Function {
            name: function.name.name.clone(),
            kind,
            args: args?,
            result: ty.result,
            body,
            span: function.name.span,
        })
    }
}
