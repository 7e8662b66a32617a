//! Finds the constructs of correct programs that neither evaluator can compute. The locations of such constructs are
//! reported before any data are read.

use crate::diagnostic::{Code, Diagnostic};
use crate::distributions;
use crate::functions::laplace::LaplaceForm;
use crate::functions::solvers::Form;
use crate::library;
use crate::program::{
    BuiltinId, Call, Callee, Decl, Expr, ExprKind, FunId, Level, Program, Span, Stmt, StmtKind,
    Tilde,
};
use crate::symbolic::functions;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Context {
    /// Transformed data, generated quantities, and the functions that these blocks call with data.
    Known,
    /// The log density, and functions that it calls with parameters.
    Density,
}

/// Returns an error for each construct of a program that cannot be evaluated. There is at most one error per location,
/// and the errors are in source order.
pub fn unsupported(program: &Program) -> Vec<Diagnostic> {
    let mut search = Search {
        program,
        seen: vec![[false; 2]; program.functions.len()],
        found: Vec::new(),
    };
    for decl in &program.data {
        search.declaration(decl, Context::Known);
    }
    search.statements(&program.transformed_data, Context::Known);
    for decl in &program.parameters {
        search.declaration(decl, Context::Density);
    }
    search.statements(&program.transformed_parameters, Context::Density);
    search.statements(&program.model, Context::Density);
    search.statements(&program.generated_quantities, Context::Known);
    search.found.sort_by_key(|d| d.primary.span);
    search.found.dedup();
    search.found
}

fn lowers(id: BuiltinId) -> bool {
    let name = id.name();
    distributions::formula(name).is_some() || functions::find(name).is_some()
}

struct Search<'p> {
    program: &'p Program,
    seen: Vec<[bool; 2]>,
    found: Vec<Diagnostic>,
}

impl<'p> Search<'p> {
    fn declaration(&mut self, decl: &'p Decl, context: Context) {
        let mut all = Vec::new();
        decl.visit(&mut |e| all.push(e));
        self.expressions(all, context);
    }

    fn statements(&mut self, statements: &'p [Stmt], context: Context) {
        let mut all: Vec<&'p Stmt> = Vec::new();
        for statement in statements {
            statement.visit(&mut |stmt| all.push(stmt));
        }
        for statement in all {
            match &statement.kind {
                StmtKind::Tilde(tilde) => self.tilde(tilde, context, statement.span),
                StmtKind::Call(call) => self.call(call, context, statement.span),
                _ => {}
            }
            let mut within = Vec::new();
            statement.visit_exprs(&mut |e| within.push(e));
            self.expressions(within, context);
        }
    }

    fn expressions(&mut self, all: Vec<&'p Expr>, context: Context) {
        for e in all {
            if let ExprKind::Call(call) = &e.kind {
                self.call(call, context, e.span);
            }
        }
    }

    fn tilde(&mut self, tilde: &'p Tilde, context: Context, span: Span) {
        let args: Vec<&Expr> = tilde.args.iter().collect();
        self.callee(tilde.callee, &args, context, span);
        if let Some(truncation) = &tilde.truncation {
            for (bound, callee) in [
                (&truncation.lower, truncation.lccdf),
                (&truncation.upper, truncation.lcdf),
            ] {
                if let Some(bound) = bound {
                    let args: Vec<&Expr> = std::iter::once(bound).chain(&tilde.args[1..]).collect();
                    self.callee(callee, &args, context, span);
                }
            }
        }
    }

    fn call(&mut self, call: &'p Call, context: Context, span: Span) {
        let args: Vec<&Expr> = call.args.iter().collect();
        self.callee(call.callee, &args, context, span);
    }

    fn callee(&mut self, callee: Callee, args: &[&'p Expr], context: Context, span: Span) {
        let depends = args.iter().any(|arg| arg.level == Level::Param);
        let context = match depends {
            true => context,
            false => Context::Known,
        };
        match callee {
            Callee::User(id) => self.function(id, context),
            Callee::Builtin(id) => self.library(id, args, context, span),
        }
    }

    fn function(&mut self, id: FunId, context: Context) {
        let seen = &mut self.seen[id.0 as usize][context as usize];
        if !std::mem::replace(seen, true) {
            self.statements(&self.program.function(id).body, context);
        }
    }

    fn library(&mut self, id: BuiltinId, args: &[&'p Expr], context: Context, span: Span) {
        let name = id.name();
        let mut passed = false;
        for arg in args {
            if let ExprKind::FunRef(function) = &arg.kind {
                passed = true;
                if let Callee::User(id) = function.callee {
                    self.function(id, context);
                }
            }
        }
        let (known, density) = if let Some(form) = LaplaceForm::of(name) {
            (true, !form.draws)
        } else if passed || id.is_variadic() {
            let there = matches!(name, "reduce_sum" | "reduce_sum_static")
                || Form::of(name, args.len() - 1).is_some();
            (there, there)
        } else {
            (library::takes(id, args.len()), lowers(id))
        };
        let message = if !known {
            format!("Jensen does not support `{name}` with these arguments")
        } else if context == Context::Density && !density {
            format!(
                "Jensen does not support `{name}` in the log density with arguments that depend on parameters"
            )
        } else {
            return;
        };
        let diagnostic = Diagnostic::error(Code::Unsupported, span, message);
        self.found.push(match known {
            true => diagnostic.help(format!(
                "`{name}` can be evaluated with arguments that are data, and in generated \
                                     quantities"
            )),
            false => diagnostic,
        });
    }
}
