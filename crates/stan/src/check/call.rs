//! Checks calls: chooses the function and signature, and decides whether the context allows the call.

use std::borrow::Cow;

use super::expr::join;
use super::{Checker, Checking, suggest, types};
use crate::diagnostic::{Code, Diagnostic};
use crate::program::signatures::{self, BuiltinId};
use crate::program::{
    BlockKind, Call, Callee, Expr, ExprKind, FunRef, FunctionKind, FunctionType, Level, ParamType,
    Type,
};
use crate::source::Span;
use crate::spelling;
use crate::syntax::ast;

/// If a call matches no signature, the error message shows at most this many signatures.
const SHOWN: usize = 5;

#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) callee: Callee,
    pub(super) ty: Cow<'static, FunctionType>,
}

enum Resolution {
    Found(usize),
    Ambiguous(Vec<usize>),
    None,
}

/// Returns `foo_lpdf` for `foo_lupdf`, and `foo_lpmf` for `foo_lupmf`.
fn normalised(name: &str) -> Option<String> {
    let stem = |suffix| name.strip_suffix(suffix);
    stem("_lupdf")
        .map(|stem| format!("{stem}_lpdf"))
        .or_else(|| stem("_lupmf").map(|stem| format!("{stem}_lpmf")))
}

fn takes_bar(name: &str) -> bool {
    [
        "_lpdf", "_lupdf", "_lpmf", "_lupmf", "_cdf", "_lcdf", "_lccdf",
    ]
    .iter()
    .any(|suffix| name.ends_with(suffix))
}

fn resolve(candidates: &[Candidate], args: &[(Type, Level)]) -> Resolution {
    let mut best: Option<u32> = None;
    let mut found = Vec::new();
    for (at, candidate) in candidates.iter().enumerate() {
        let Some(cost) = cost(&candidate.ty, args) else {
            continue;
        };
        match best {
            Some(least) if cost > least => {}
            Some(least) if cost == least => found.push(at),
            _ => {
                best = Some(cost);
                found = vec![at];
            }
        }
    }
    match found.as_slice() {
        [] => Resolution::None,
        [one] => Resolution::Found(*one),
        _ => Resolution::Ambiguous(found),
    }
}

/// The settings of Laplace's approximation must be data. The first element of the same tuple is the start of the
/// search, which may depend on parameters.
fn level_of_settings(id: BuiltinId, arg: &Expr) -> Level {
    match &arg.kind {
        ExprKind::TupleLit(parts)
            if id.name().starts_with("laplace_") && id.name().contains("_tol") =>
        {
            let settings = parts.iter().skip(1).map(|part| part.level);
            settings.max().unwrap_or(Level::Data)
        }
        _ => arg.level,
    }
}

/// Returns the level of the further arguments, which some functions take as a tuple. Only the elements for parameters
/// that must be data count.
fn level_of_rest(function: &FunctionType, arg: &Expr) -> Level {
    let ExprKind::TupleLit(parts) = &arg.kind else {
        return arg.level;
    };
    let Some(first) = function.params.len().checked_sub(parts.len()) else {
        return arg.level;
    };
    let taken = parts.iter().zip(&function.params[first..]);
    let data = taken.filter(|(_, param)| param.level == Level::Data && !param.ty.is_discrete());
    data.map(|(part, _)| part.level)
        .max()
        .unwrap_or(Level::Data)
}

fn cost(ty: &FunctionType, args: &[(Type, Level)]) -> Option<u32> {
    if ty.params.len() != args.len() {
        return None;
    }
    let mut sum = 0;
    for (param, (arg, level)) in ty.params.iter().zip(args) {
        if param.level == Level::Data && *level == Level::Param && !param.ty.is_discrete() {
            return None;
        }
        sum += types::promotion_cost(arg, &param.ty)?;
    }
    Some(sum)
}

/// In a `~` statement, the first argument is the variate, which stands before the `~`.
fn mismatch(ty: &FunctionType, args: &[(Type, Level)], behind_tilde: bool) -> String {
    let before = usize::from(behind_tilde);
    if ty.params.len() != args.len() {
        return format!(
            "takes {}, found {}",
            count(ty.params.len().saturating_sub(before), "argument"),
            args.len().saturating_sub(before)
        );
    }
    let position = |at: usize| match at < before {
        true => "the variate".to_owned(),
        false => format!("argument {}", at + 1 - before),
    };
    for (at, (param, (arg, level))) in ty.params.iter().zip(args).enumerate() {
        if types::promotion_cost(arg, &param.ty).is_none() {
            return format!("{} must be {}, found {arg}", position(at), param.ty);
        }
        if param.level == Level::Data && *level == Level::Param && !param.ty.is_discrete() {
            return format!(
                "{} must be data, but it may depend on parameters",
                position(at)
            );
        }
    }
    String::new()
}

fn called(name: &str, ty: &FunctionType, behind_tilde: bool) -> String {
    let Some((variate, rest)) = ty.params.split_first().filter(|_| behind_tilde) else {
        return format!("{name}{ty}");
    };
    let rest: Vec<String> = rest.iter().map(|param| param.ty.to_string()).collect();
    format!("{} ~ {name}({})", variate.ty, rest.join(", "))
}

fn counts_advice(candidates: &[Candidate], args: &[(Type, Level)]) -> Option<String> {
    let (found, _) = args.first()?;
    let whole = |c: &Candidate| c.ty.params.first().is_some_and(|p| p.ty.is_discrete());
    if candidates.is_empty() || found.is_discrete() || !candidates.iter().all(whole) {
        return None;
    }
    let declaration = match found {
        Type::Real => "int y;",
        Type::Array(_) | Type::Vector | Type::RowVector => "array[N] int y;",
        _ => return None,
    };
    Some(format!("counts are integers: declare `{declaration}`"))
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn show_types(args: &[(Type, Level)]) -> String {
    let list: Vec<String> = args.iter().map(|(ty, _)| ty.to_string()).collect();
    format!("({})", list.join(", "))
}

fn types_of(args: &[Expr]) -> Vec<(Type, Level)> {
    args.iter().map(|arg| (arg.ty.clone(), arg.level)).collect()
}

impl Checker {
    pub(super) fn candidates(&self, name: &str) -> Vec<Candidate> {
        let user = self
            .by_name
            .get(name)
            .into_iter()
            .flatten()
            .map(|id| Candidate {
                callee: Callee::User(*id),
                ty: Cow::Owned(self.signatures[id.0 as usize].ty.clone()),
            });
        let library = BuiltinId::from_name(name).into_iter().flat_map(|id| {
            id.signatures().iter().map(move |ty| Candidate {
                callee: Callee::Builtin(id),
                ty: Cow::Borrowed(ty),
            })
        });
        user.chain(library).collect()
    }

    pub(super) fn call_expr(&mut self, call: &ast::Call, span: Span) -> Checking<Expr> {
        let (call_out, result, level) = self.call(call, span)?;
        if result == Type::Void {
            let message = format!(
                "`{}` returns no value, so it cannot be used as one",
                call.name.name
            );
            return self.fail(Diagnostic::error(Code::TypeMismatch, span, message));
        }
        Ok(self.node(ExprKind::Call(call_out), result, level, span))
    }

    /// Returns the typed call, with its result type and its level. The result type may be void.
    pub(super) fn call(&mut self, call: &ast::Call, span: Span) -> Checking<(Call, Type, Level)> {
        let written = &call.name.name;
        let plain = normalised(written);
        let unnormalised = plain.is_some();
        let name = plain.unwrap_or_else(|| written.clone());
        self.check_bar(call)?;
        if let Some(Some(var)) = self.lookup(&name)
            && BuiltinId::from_name(&name).is_none()
        {
            let var = &self.vars[var.0 as usize];
            let message = format!("`{name}` is a variable here, not a function");
            let diagnostic = Diagnostic::error(Code::TypeMismatch, call.name.span, message)
                .also(var.span, "declared here");
            return self.fail(diagnostic);
        }
        if let Some(id) = BuiltinId::from_name(&name).filter(|id| id.is_variadic()) {
            self.may_call(written, unnormalised, call.name.span)?;
            return self.variadic(id, call, span);
        }
        let higher_order = BuiltinId::from_name(&name).is_some_and(|id| {
            id.signatures()
                .first()
                .is_some_and(|s| matches!(s.params.first(), Some(p) if is_function(&p.ty)))
        });
        if higher_order && !self.by_name.contains_key(&name) {
            return self.fixed_higher_order(&name, call, span);
        }
        let candidates = self.candidates(&name);
        let args = self.exprs(&call.args);
        if candidates.is_empty() {
            return self.unknown_function(written, call.name.span);
        }
        let args = args?;
        self.may_call(written, unnormalised, call.name.span)?;
        let chosen = self.choose(written, &candidates, &types_of(&args), span, "function")?;
        let level = join(&args);
        let args = self.promote_all(args, &chosen.ty.params);
        let out = Call {
            callee: chosen.callee,
            args,
            unnormalised,
        };
        Ok((out, chosen.ty.result.clone(), level))
    }

    pub(super) fn promote_all(&mut self, args: Vec<Expr>, params: &[ParamType]) -> Vec<Expr> {
        args.into_iter()
            .zip(params)
            .map(|(arg, param)| self.promote(arg, &param.ty))
            .collect()
    }

    pub(super) fn choose(
        &mut self,
        name: &str,
        candidates: &[Candidate],
        args: &[(Type, Level)],
        span: Span,
        what: &str,
    ) -> Checking<Candidate> {
        let found = match resolve(candidates, args) {
            Resolution::Found(at) => return Ok(candidates[at].clone()),
            Resolution::Ambiguous(found) => found,
            Resolution::None => return self.fail(no_match(name, candidates, args, span, what)),
        };
        let message = format!("this call of `{name}` matches several of its signatures");
        let mut diagnostic = Diagnostic::error(Code::AmbiguousCall, span, message)
            .note(format!("the arguments are {}", show_types(args)))
            .help("convert arguments so that one signature fits best");
        for at in found.iter().take(SHOWN) {
            diagnostic = diagnostic.note(format!("{name}{}", candidates[*at].ty));
        }
        self.fail(diagnostic)
    }

    fn check_bar(&mut self, call: &ast::Call) -> Checking<()> {
        let name = &call.name.name;
        if call.bar && !takes_bar(name) {
            let message = format!("`{name}` separates its arguments by commas, without `|`");
            let diagnostic = Diagnostic::error(Code::Syntax, call.name.span, message).note(
                "`|` is only for calls of functions ending in _lpdf, _lpmf, _lcdf, _lccdf or _cdf",
            );
            return self.fail(diagnostic);
        }
        if !call.bar && takes_bar(name) && call.args.len() > 1 {
            let message = format!("the first argument of `{name}` is separated by `|`");
            let diagnostic = Diagnostic::error(Code::Syntax, call.name.span, message)
                .help(format!("write `{name}(y | …)`"));
            return self.fail(diagnostic);
        }
        Ok(())
    }

    fn unknown_function<T>(&mut self, name: &str, span: Span) -> Checking<T> {
        if let Some(modern) = suggest::replacement(name) {
            let message = format!("`{name}` is no longer part of Stan");
            return self.fail(
                Diagnostic::error(Code::Removed, span, message).help(format!("use {modern}")),
            );
        }
        let mut diagnostic = Diagnostic::error(
            Code::UnknownFunction,
            span,
            format!("there is no function `{name}`"),
        );
        // The distribution is called without a suffix, or with the wrong one.
        let stem = ["_lupdf", "_lupmf", "_lpdf", "_lpmf"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix))
            .unwrap_or(name);
        let other = [format!("{stem}_lpdf"), format!("{stem}_lpmf")]
            .into_iter()
            .find(|other| {
                other != name
                    && (self.by_name.contains_key(other) || BuiltinId::from_name(other).is_some())
            });
        if let Some(other) = other {
            diagnostic = diagnostic.help(format!("did you mean `{other}`?"));
        } else {
            let library = BuiltinId::all().map(|id| -> &str { id.name() });
            let names = self.by_name.keys().map(String::as_str).chain(library);
            if let Some(meant) = spelling::closest(name, names) {
                diagnostic = diagnostic.help(format!("did you mean `{meant}`?"));
            }
        }
        self.fail(diagnostic)
    }

    pub(super) fn may_call(&mut self, name: &str, unnormalised: bool, span: Span) -> Checking<()> {
        let kind = self.context.function.as_ref().map(|(kind, _)| *kind);
        if unnormalised {
            let inside = matches!(kind, Some(FunctionKind::Lpdf | FunctionKind::Lpmf));
            if !inside && self.block_kind() != BlockKind::Model {
                let message = format!(
                    "`{name}` may drop constants, so only code that computes the log density can use it"
                );
                let help = name.replace("_lu", "_l");
                let diagnostic = Diagnostic::error(Code::WrongBlock, span, message)
                    .note("the model block and functions ending in _lpdf or _lpmf can use such functions")
                    .help(format!("use `{help}`"));
                return self.fail(diagnostic);
            }
        }
        match FunctionKind::of_name(name) {
            FunctionKind::Rng => self.rng_allowed(name, span),
            FunctionKind::Lp if self.by_name.contains_key(name) => {
                if self.block_kind() == BlockKind::TransformedParameters {
                    return Ok(());
                }
                self.target_allowed(span)
            }
            FunctionKind::Jacobian => self.jacobian_allowed(span),
            _ => Ok(()),
        }
    }

    fn rng_allowed(&mut self, name: &str, span: Span) -> Checking<()> {
        if self.context.in_size {
            let message = format!("the size of a variable cannot be random, as with `{name}`");
            return self.fail(Diagnostic::error(Code::Size, span, message));
        }
        let kind = self.context.function.as_ref().map(|(kind, _)| *kind);
        let block = matches!(
            self.block_kind(),
            BlockKind::TransformedData | BlockKind::GeneratedQuantities
        );
        if block || kind == Some(FunctionKind::Rng) {
            return Ok(());
        }
        let message = format!("`{name}` draws random numbers, which is not allowed here");
        let diagnostic = Diagnostic::error(Code::WrongBlock, span, message)
            .note("random numbers are allowed in transformed data, generated quantities and functions ending in _rng");
        self.fail(diagnostic)
    }

    pub(super) fn target_allowed(&mut self, span: Span) -> Checking<()> {
        let kind = self.context.function.as_ref().map(|(kind, _)| *kind);
        if self.block_kind() == BlockKind::Model || kind == Some(FunctionKind::Lp) {
            return Ok(());
        }
        let message =
            "the log density can only be used in the model block and in functions ending in _lp";
        self.fail(Diagnostic::error(Code::WrongBlock, span, message))
    }

    pub(super) fn jacobian_allowed(&mut self, span: Span) -> Checking<()> {
        let kind = self.context.function.as_ref().map(|(kind, _)| *kind);
        if self.block_kind() == BlockKind::TransformedParameters
            || kind == Some(FunctionKind::Jacobian)
        {
            return Ok(());
        }
        let message = "Jacobian adjustments can only be made in transformed parameters and in functions ending in _jacobian";
        let mut diagnostic = Diagnostic::error(Code::WrongBlock, span, message);
        if self.block_kind() == BlockKind::Model {
            diagnostic = diagnostic.help("in the model block, add to `target`");
        }
        self.fail(diagnostic)
    }

    fn named_functions(
        &mut self,
        arg: &ast::Expr,
        caller: &str,
    ) -> Checking<(String, bool, Vec<Candidate>)> {
        let ast::ExprKind::Name(written) = &arg.kind else {
            let message = format!("this argument of `{caller}` must be the name of a function");
            return self.fail(Diagnostic::error(Code::TypeMismatch, arg.span, message));
        };
        let plain = normalised(written);
        let unnormalised = plain.is_some();
        let name = plain.unwrap_or_else(|| written.clone());
        let candidates = self.candidates(&name);
        if candidates.is_empty() {
            return self.unknown_function(written, arg.span);
        }
        let kind = FunctionKind::of_name(&name);
        if matches!(
            kind,
            FunctionKind::Lp | FunctionKind::Rng | FunctionKind::Jacobian
        ) {
            let message = format!("`{name}` has side effects and cannot be passed to `{caller}`");
            return self.fail(Diagnostic::error(Code::TypeMismatch, arg.span, message));
        }
        if unnormalised {
            self.may_call(written, true, arg.span)?;
        }
        Ok((name, unnormalised, candidates))
    }

    fn function_ref(&mut self, candidate: &Candidate, unnormalised: bool, span: Span) -> Expr {
        let ty = Type::Function(Box::new(candidate.ty.clone().into_owned()));
        let kind = ExprKind::FunRef(FunRef {
            callee: candidate.callee,
            unnormalised,
        });
        self.node(kind, ty, Level::Data, span)
    }

    /// Checks a call of `ode_rk45`, `reduce_sum` or a similar function. The signature of such a function follows from
    /// the passed function.
    fn variadic(
        &mut self,
        id: BuiltinId,
        call: &ast::Call,
        span: Span,
    ) -> Checking<(Call, Type, Level)> {
        let positions = signatures::function_positions(id);
        let mut passed: Vec<(bool, Vec<Candidate>, Span)> = Vec::new();
        let mut plain: Vec<Option<Checking<Expr>>> = Vec::new();
        let mut poisoned = None;
        for (at, arg) in call.args.iter().enumerate() {
            if positions.contains(&at) {
                match self.named_functions(arg, id.name()) {
                    Ok((_, unnormalised, candidates)) => {
                        passed.push((unnormalised, candidates, arg.span))
                    }
                    Err(poison) => poisoned = Some(poison),
                }
                plain.push(None);
            } else {
                let expr = self.expr(arg);
                plain.push(Some(expr));
            }
        }
        let mut args = Vec::new();
        for expr in plain {
            args.push(expr.transpose()?);
        }
        if let Some(poison) = poisoned {
            return Err(poison);
        }
        if passed.len() < positions.len() {
            return self.bad_variadic(id, span, Vec::new());
        }
        let mut tried = Vec::new();
        for choice in combinations(&passed) {
            let functions: Vec<&FunctionType> = choice.iter().map(|c| &*c.ty).collect();
            let Some(ty) = signatures::instantiate(id, &functions) else {
                continue;
            };
            let mut functions = choice.iter();
            let mut types: Vec<(Type, Level)> = Vec::with_capacity(args.len());
            let mut before: Option<&FunctionType> = None;
            for (at, arg) in args.iter().enumerate() {
                types.push(match (arg, before.take()) {
                    (Some(arg), Some(function)) => (arg.ty.clone(), level_of_rest(function, arg)),
                    (Some(arg), None) if at + 1 == args.len() => {
                        (arg.ty.clone(), level_of_settings(id, arg))
                    }
                    (Some(arg), None) => (arg.ty.clone(), arg.level),
                    (None, _) => {
                        before = functions.next().map(|c| &*c.ty);
                        let ty =
                            before.map_or(Type::Void, |ty| Type::Function(Box::new(ty.clone())));
                        (ty, Level::Data)
                    }
                });
            }
            if cost(&ty, &types).is_none() {
                tried.push(format!(
                    "{}{ty}: {}",
                    id.name(),
                    mismatch(&ty, &types, false)
                ));
                continue;
            }
            let mut functions = choice.iter().zip(&passed);
            let mut out = Vec::new();
            for (arg, param) in args.into_iter().zip(&ty.params) {
                match arg {
                    Some(arg) => out.push(self.promote(arg, &param.ty)),
                    None => {
                        if let Some((candidate, (unnormalised, _, span))) = functions.next() {
                            let reference = self.function_ref(candidate, *unnormalised, *span);
                            out.push(reference);
                        }
                    }
                }
            }
            let level = join(&out);
            let out = Call {
                callee: Callee::Builtin(id),
                args: out,
                unnormalised: false,
            };
            return Ok((out, ty.result, level));
        }
        self.bad_variadic(id, span, tried)
    }

    fn bad_variadic<T>(&mut self, id: BuiltinId, span: Span, tried: Vec<String>) -> Checking<T> {
        let name = id.name();
        let message = format!("the arguments do not match the signature of `{name}`");
        let mut diagnostic = Diagnostic::error(Code::NoMatchingSignature, span, message).note(format!(
            "it is called as {name}{}, where `...` stands for further arguments of the function",
            id.pattern()
        ));
        for text in tried.into_iter().take(SHOWN) {
            diagnostic = diagnostic.note(text);
        }
        self.fail(diagnostic)
    }

    /// Checks a call of `integrate_1d`, `map_rect` or a similar function. The first arguments of such a call are
    /// functions of one fixed type.
    fn fixed_higher_order(
        &mut self,
        name: &str,
        call: &ast::Call,
        span: Span,
    ) -> Checking<(Call, Type, Level)> {
        let candidates = self.candidates(name);
        let Some((first, rest)) = call.args.split_first() else {
            return self.fail(no_match(name, &candidates, &[], span, "function"));
        };
        let function = self.named_functions(first, name);
        let rest = self.exprs(rest);
        let (_, unnormalised, overloads) = function?;
        let rest = rest?;
        let wanted = candidates[0].ty.params[0].ty.clone();
        let fits = |candidate: &&Candidate| matches!(&wanted, Type::Function(want) if accepts(&candidate.ty, want));
        let Some(passed) = overloads.iter().find(fits) else {
            let message = format!("`{name}` needs a function of type {wanted}");
            let found: Vec<String> = overloads
                .iter()
                .take(SHOWN)
                .map(|c| c.ty.to_string())
                .collect();
            let diagnostic = Diagnostic::error(Code::NoMatchingSignature, first.span, message)
                .note(format!("found {}", types::list(&found, "and")));
            return self.fail(diagnostic);
        };
        let passed = passed.clone();
        let mut arg_types = vec![(wanted, Level::Data)];
        arg_types.extend(types_of(&rest));
        let chosen = self.choose(name, &candidates, &arg_types, span, "function")?;
        let level = join(&rest);
        let mut args = vec![self.function_ref(&passed, unnormalised, first.span)];
        args.extend(self.promote_all(rest, &chosen.ty.params[1..]));
        let out = Call {
            callee: chosen.callee,
            args,
            unnormalised: false,
        };
        Ok((out, chosen.ty.result.clone(), level))
    }
}

fn is_function(ty: &Type) -> bool {
    matches!(ty, Type::Function(_))
}

fn accepts(have: &FunctionType, want: &FunctionType) -> bool {
    have.result == want.result
        && have.params.len() == want.params.len()
        && have.params.iter().zip(&want.params).all(|(have, want)| {
            let data_ok =
                have.level == Level::Param || want.level == Level::Data || have.ty.is_discrete();
            have.ty == want.ty && data_ok
        })
}

fn combinations(passed: &[(bool, Vec<Candidate>, Span)]) -> Vec<Vec<Candidate>> {
    let mut out: Vec<Vec<Candidate>> = vec![Vec::new()];
    for (_, candidates, _) in passed {
        out = out
            .into_iter()
            .flat_map(|head| {
                candidates.iter().map(move |candidate| {
                    let mut list = head.clone();
                    list.push(candidate.clone());
                    list
                })
            })
            .take(4096)
            .collect();
    }
    out
}

pub(super) fn no_match(
    name: &str,
    candidates: &[Candidate],
    args: &[(Type, Level)],
    span: Span,
    what: &str,
) -> Diagnostic {
    let behind_tilde = what == "distribution";
    let message = match args.split_first().filter(|_| behind_tilde) {
        Some(((variate, _), rest)) => {
            format!(
                "the {what} `{name}` does not take {} for a variate of type {variate}",
                show_types(rest)
            )
        }
        None => format!("the {what} `{name}` does not take {}", show_types(args)),
    };
    let mut diagnostic = Diagnostic::error(Code::NoMatchingSignature, span, message);
    let mut ranked: Vec<(usize, &Candidate)> = candidates
        .iter()
        .map(|c| (badness(&c.ty, args), c))
        .collect();
    ranked.sort_by_key(|(badness, _)| *badness);
    for (_, candidate) in ranked.iter().take(SHOWN) {
        let why = mismatch(&candidate.ty, args, behind_tilde);
        let called = called(name, &candidate.ty, behind_tilde);
        diagnostic = diagnostic.note(format!("{called}: {why}"));
    }
    if ranked.len() > SHOWN {
        diagnostic = diagnostic.note(format!("and {} more signatures", ranked.len() - SHOWN));
    }
    let data_only = ranked
        .first()
        .is_some_and(|(_, c)| mismatch(&c.ty, args, behind_tilde).contains("must be data"));
    if let Some(advice) = counts_advice(candidates, args) {
        diagnostic = diagnostic.help(advice);
    }
    if data_only {
        diagnostic.code = Code::DataOnly;
        diagnostic = diagnostic.help(
            "local variables and arguments of functions count as depending on parameters; \
             declare an argument `data real x` to require data",
        );
    }
    diagnostic
}

/// Returns a measure of the mismatch between a signature and the arguments. Messages show the signatures with the
/// smallest mismatch first.
fn badness(ty: &FunctionType, args: &[(Type, Level)]) -> usize {
    let missing = ty.params.len().abs_diff(args.len()) * 4;
    let wrong = ty
        .params
        .iter()
        .zip(args)
        .map(
            |(param, (arg, _))| match types::promotion_cost(arg, &param.ty) {
                Some(_) => 0,
                None if arg.unwind().0 == param.ty.unwind().0 => 1,
                None => 2,
            },
        )
        .sum::<usize>();
    missing + wrong
}
