//! Shows the typed program as text.

use super::{Lines, real};
use crate::program::{
    Access, Assign, Call, Callee, Constraint, Decl, Expr, ExprKind, FunId, Index, LValue, Level,
    Message, Program, SizedType, Stmt, StmtKind, Tilde, Type, UnaryOp, VarId, VariablePart,
};

/// Shows the program in a notation close to Stan. Every variable and every user function is shown with its number, as
/// in `x#3` and `f@1`. Conversions are explicit, as in `real(n#0)`. A density call that drops constants ends in `!`.
/// Declarations show the level of the variable.
pub fn print_program(program: &Program) -> String {
    let printer = Printer { program };
    let mut out = Lines::default();
    for (at, function) in program.functions.iter().enumerate() {
        let args: Vec<String> = function
            .args
            .iter()
            .map(|id| {
                let var = program.var(*id);
                let data = var.level == Level::Data && !var.ty.is_discrete();
                format!(
                    "{}{} {}",
                    if data { "data " } else { "" },
                    var.ty,
                    printer.var(*id)
                )
            })
            .collect();
        let name = printer.callee(Callee::User(FunId(at as u32)));
        let head = format!("function {} {name}({})", function.result, args.join(", "));
        out.braces(&head, |out| printer.statements(out, &function.body));
    }
    for (name, declarations) in [("data", &program.data), ("parameters", &program.parameters)] {
        if name == "parameters" && !program.transformed_data.is_empty() {
            out.braces("transformed data", |out| {
                printer.statements(out, &program.transformed_data)
            });
        }
        if !declarations.is_empty() {
            out.braces(name, |out| {
                for decl in declarations {
                    out.line(&printer.declaration(decl));
                }
            });
        }
    }
    let blocks = [
        ("transformed parameters", &program.transformed_parameters),
        ("model", &program.model),
        ("generated quantities", &program.generated_quantities),
    ];
    for (name, statements) in blocks {
        if !statements.is_empty() {
            out.braces(name, |out| printer.statements(out, statements));
        }
    }
    out.text
}

struct Printer<'a> {
    program: &'a Program,
}

impl Printer<'_> {
    fn var(&self, id: VarId) -> String {
        format!("{}#{}", self.program.var(id).name, id.0)
    }

    fn callee(&self, callee: Callee) -> String {
        match callee {
            Callee::Builtin(id) => id.name().to_owned(),
            Callee::User(id) => format!("{}@{}", self.program.function(id).name, id.0),
        }
    }

    fn declaration(&self, decl: &Decl) -> String {
        let level = match self.program.var(decl.var).level {
            Level::Data => "data",
            Level::Param => "param",
        };
        let ty = self.sized(&decl.ty, &decl.constraint);
        let init = decl
            .init
            .as_ref()
            .map_or(String::new(), |e| format!(" = {}", self.expr(e)));
        format!("{level} {ty} {}{init};", self.var(decl.var))
    }

    fn sized(&self, ty: &SizedType, constraint: &Constraint) -> String {
        let one = |name: &str, n: &Expr| {
            format!("{name}{}[{}]", self.constraint(constraint), self.expr(n))
        };
        let two = |name: &str, m: &Expr, n: &Expr| {
            format!(
                "{name}{}[{}, {}]",
                self.constraint(constraint),
                self.expr(m),
                self.expr(n)
            )
        };
        match ty {
            SizedType::Int => format!("int{}", self.constraint(constraint)),
            SizedType::Real => format!("real{}", self.constraint(constraint)),
            SizedType::Complex => "complex".to_owned(),
            SizedType::Vector(n) => one("vector", n),
            SizedType::RowVector(n) => one("row_vector", n),
            SizedType::ComplexVector(n) => one("complex_vector", n),
            SizedType::ComplexRowVector(n) => one("complex_row_vector", n),
            SizedType::Matrix(m, n) => two("matrix", m, n),
            SizedType::ComplexMatrix(m, n) => two("complex_matrix", m, n),
            SizedType::Array(n, inner) => {
                format!("array[{}] {}", self.expr(n), self.sized(inner, constraint))
            }
            SizedType::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(|(ty, c)| self.sized(ty, c)).collect();
                format!("tuple({})", parts.join(", "))
            }
        }
    }

    fn constraint(&self, constraint: &Constraint) -> String {
        let e = |e: &Expr| self.expr(e);
        let inside = match constraint {
            Constraint::None => return String::new(),
            Constraint::Lower(a) => format!("lower={}", e(a)),
            Constraint::Upper(b) => format!("upper={}", e(b)),
            Constraint::LowerUpper(a, b) => format!("lower={}, upper={}", e(a), e(b)),
            Constraint::Offset(m) => format!("offset={}", e(m)),
            Constraint::Multiplier(s) => format!("multiplier={}", e(s)),
            Constraint::OffsetMultiplier(m, s) => format!("offset={}, multiplier={}", e(m), e(s)),
            Constraint::Ordered => "ordered".to_owned(),
            Constraint::PositiveOrdered => "positive_ordered".to_owned(),
            Constraint::Simplex => "simplex".to_owned(),
            Constraint::UnitVector => "unit_vector".to_owned(),
            Constraint::SumToZero => "sum_to_zero".to_owned(),
            Constraint::CholeskyFactorCorr => "cholesky_factor_corr".to_owned(),
            Constraint::CholeskyFactorCov => "cholesky_factor_cov".to_owned(),
            Constraint::CorrMatrix => "corr_matrix".to_owned(),
            Constraint::CovMatrix => "cov_matrix".to_owned(),
            Constraint::ColumnStochastic => "column_stochastic".to_owned(),
            Constraint::RowStochastic => "row_stochastic".to_owned(),
        };
        format!("<{inside}>")
    }

    fn statements(&self, out: &mut Lines, statements: &[Stmt]) {
        for statement in statements {
            self.statement(out, statement);
        }
    }

    fn body(&self, out: &mut Lines, head: &str, body: &Stmt) {
        match &body.kind {
            StmtKind::Block(list) => out.braces(head, |out| self.statements(out, list)),
            _ => out.braces(head, |out| self.statement(out, body)),
        }
    }

    fn statement(&self, out: &mut Lines, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Decl(decl) => out.line(&self.declaration(decl)),
            StmtKind::Assign(assign) => out.line(&self.assign(assign)),
            StmtKind::TargetPlus(e) => out.line(&format!("target += {};", self.expr(e))),
            StmtKind::JacobianPlus(e) => out.line(&format!("jacobian += {};", self.expr(e))),
            StmtKind::Tilde(tilde) => out.line(&self.tilde(tilde)),
            StmtKind::Call(call) => out.line(&format!("{};", self.call(call))),
            StmtKind::Print(list) => out.line(&format!("print({});", self.messages(list))),
            StmtKind::Reject(list) => out.line(&format!("reject({});", self.messages(list))),
            StmtKind::FatalError(list) => {
                out.line(&format!("fatal_error({});", self.messages(list)))
            }
            StmtKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.body(out, &format!("if ({})", self.expr(condition)), then);
                if let Some(otherwise) = otherwise {
                    self.body(out, "else", otherwise);
                }
            }
            StmtKind::While { condition, body } => {
                self.body(out, &format!("while ({})", self.expr(condition)), body);
            }
            StmtKind::For {
                var,
                lower,
                upper,
                body,
            } => {
                let head = format!(
                    "for ({} in {} : {})",
                    self.var(*var),
                    self.expr(lower),
                    self.expr(upper)
                );
                self.body(out, &head, body);
            }
            StmtKind::ForEach {
                var,
                container,
                body,
            } => {
                let head = format!("for ({} in {})", self.var(*var), self.expr(container));
                self.body(out, &head, body);
            }
            StmtKind::Block(list) => out.braces("", |out| self.statements(out, list)),
            StmtKind::Profile(name, list) => {
                out.braces(&format!("profile(\"{name}\")"), |out| {
                    self.statements(out, list)
                });
            }
            StmtKind::Break => out.line("break;"),
            StmtKind::Continue => out.line("continue;"),
            StmtKind::Return(Some(e)) => out.line(&format!("return {};", self.expr(e))),
            StmtKind::Return(None) => out.line("return;"),
            StmtKind::Empty => out.line(";"),
        }
    }

    fn assign(&self, assign: &Assign) -> String {
        let op = assign.op.map_or("", |op| op.symbol());
        format!(
            "{} {op}= {};",
            self.lvalue(&assign.target),
            self.expr(&assign.rhs)
        )
    }

    fn lvalue(&self, target: &LValue) -> String {
        match target {
            LValue::Part(part) => self.part(part),
            LValue::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.lvalue(part)).collect();
                format!("({})", parts.join(", "))
            }
        }
    }

    fn part(&self, part: &VariablePart) -> String {
        let mut out = self.var(part.var);
        for access in &part.path {
            match access {
                Access::Index(list) => out.push_str(&self.indices(list)),
                Access::Component(k) => out.push_str(&format!(".{}", k + 1)),
            }
        }
        out
    }

    fn tilde(&self, tilde: &Tilde) -> String {
        let truncation = tilde.truncation.as_ref().map_or(String::new(), |t| {
            let bound =
                |bound: &Option<Expr>| bound.as_ref().map(|e| self.expr(e)).unwrap_or_default();
            format!(" T[{}, {}]", bound(&t.lower), bound(&t.upper))
        });
        let (first, rest) = match tilde.args.split_first() {
            Some((first, rest)) => (self.expr(first), self.exprs(rest)),
            None => (String::new(), String::new()),
        };
        format!(
            "{first} ~ {}!({rest}){truncation};",
            self.callee(tilde.callee)
        )
    }

    fn messages(&self, list: &[Message]) -> String {
        let parts: Vec<String> = list
            .iter()
            .map(|message| match message {
                Message::Text(text) => format!("\"{text}\""),
                Message::Value(e) => self.expr(e),
            })
            .collect();
        parts.join(", ")
    }

    fn exprs(&self, list: &[Expr]) -> String {
        let parts: Vec<String> = list.iter().map(|e| self.expr(e)).collect();
        parts.join(", ")
    }

    fn call(&self, call: &Call) -> String {
        let mark = if call.unnormalised { "!" } else { "" };
        format!(
            "{}{mark}({})",
            self.callee(call.callee),
            self.exprs(&call.args)
        )
    }

    fn indices(&self, list: &[Index]) -> String {
        let parts: Vec<String> = list
            .iter()
            .map(|index| match index {
                Index::All => ":".to_owned(),
                Index::Single(e) | Index::Multi(e) => self.expr(e),
                Index::From(e) => format!("{} :", self.expr(e)),
                Index::To(e) => format!(": {}", self.expr(e)),
                Index::Between(a, b) => format!("{} : {}", self.expr(a), self.expr(b)),
            })
            .collect();
        format!("[{}]", parts.join(", "))
    }

    fn expr(&self, e: &Expr) -> String {
        match &e.kind {
            ExprKind::IntLit(value) => value.to_string(),
            ExprKind::RealLit(value) => real(*value),
            ExprKind::ImagLit(value) => format!("{}i", real(*value)),
            ExprKind::Var(id) => self.var(*id),
            ExprKind::Unary(UnaryOp::Neg, operand) => format!("(-{})", self.expr(operand)),
            ExprKind::Unary(UnaryOp::Not, operand) => format!("(!{})", self.expr(operand)),
            ExprKind::Binary(op, left, right) => {
                format!("({} {} {})", self.expr(left), op.symbol(), self.expr(right))
            }
            ExprKind::Ternary(condition, then, otherwise) => format!(
                "({} ? {} : {})",
                self.expr(condition),
                self.expr(then),
                self.expr(otherwise)
            ),
            ExprKind::Transpose(operand) => format!("({}')", self.expr(operand)),
            ExprKind::Index(base, list) => format!("{}{}", self.expr(base), self.indices(list)),
            ExprKind::ArrayLit(list) => format!("{{{}}}", self.exprs(list)),
            ExprKind::RowVectorLit(list) => format!("[{}]", self.exprs(list)),
            ExprKind::TupleLit(list) if list.len() == 1 => format!("({},)", self.exprs(list)),
            ExprKind::TupleLit(list) => format!("({})", self.exprs(list)),
            ExprKind::TupleProj(base, k) => format!("{}.{}", self.expr(base), k + 1),
            ExprKind::Call(call) => self.call(call),
            ExprKind::Target => "target()".to_owned(),
            ExprKind::FunRef(reference) => {
                let mark = if reference.unnormalised { "!" } else { "" };
                format!("{}{mark}", self.callee(reference.callee))
            }
            ExprKind::Promote(operand) => match &e.ty {
                Type::Int | Type::Real | Type::Complex => {
                    format!("{}({})", e.ty, self.expr(operand))
                }
                ty => format!("<{ty}>({})", self.expr(operand)),
            },
        }
    }
}
