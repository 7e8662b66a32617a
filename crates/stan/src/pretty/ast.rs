//! Shows the syntax tree as Stan code.

use super::{Lines, real};
use crate::syntax::ast::{
    BaseType, Call, Decl, Expr, ExprKind, Function, Index, Message, PrefixOp, Program, SizedType,
    Stmt, StmtKind, Truncation, UnsizedBase, UnsizedType,
};

/// Shows the tree as Stan code with all parentheses. Parsing the result and showing it again gives the same text.
pub fn print_tree(program: &Program) -> String {
    let mut out = Lines::default();
    if !program.functions.is_empty() {
        out.braces("functions", |out| {
            for function in &program.functions {
                print_function(out, function);
            }
        });
    }
    let blocks = [
        ("data", &program.data),
        ("transformed data", &program.transformed_data),
        ("parameters", &program.parameters),
        ("transformed parameters", &program.transformed_parameters),
        ("model", &program.model),
        ("generated quantities", &program.generated_quantities),
    ];
    for (name, statements) in blocks {
        if !statements.is_empty() {
            out.braces(name, |out| print_statements(out, statements));
        }
    }
    out.text
}

fn print_function(out: &mut Lines, function: &Function) {
    let params: Vec<String> = function
        .params
        .iter()
        .map(|param| {
            let data = if param.data { "data " } else { "" };
            format!("{data}{} {}", unsized_type(&param.ty), param.name.name)
        })
        .collect();
    let head = format!(
        "{} {}({})",
        unsized_type(&function.result),
        function.name.name,
        params.join(", ")
    );
    match &function.body {
        Some(body) => out.braces(&head, |out| print_statements(out, body)),
        None => out.line(&format!("{head};")),
    }
}

fn unsized_type(ty: &UnsizedType) -> String {
    let base = match &ty.base {
        UnsizedBase::Void => "void".to_owned(),
        UnsizedBase::Int => "int".to_owned(),
        UnsizedBase::Real => "real".to_owned(),
        UnsizedBase::Complex => "complex".to_owned(),
        UnsizedBase::Vector => "vector".to_owned(),
        UnsizedBase::RowVector => "row_vector".to_owned(),
        UnsizedBase::Matrix => "matrix".to_owned(),
        UnsizedBase::ComplexVector => "complex_vector".to_owned(),
        UnsizedBase::ComplexRowVector => "complex_row_vector".to_owned(),
        UnsizedBase::ComplexMatrix => "complex_matrix".to_owned(),
        UnsizedBase::Tuple(parts) => {
            let parts: Vec<String> = parts.iter().map(unsized_type).collect();
            format!("tuple({})", parts.join(", "))
        }
    };
    match ty.depth {
        0 => base,
        depth => format!("array[{}] {base}", ",".repeat(depth - 1)),
    }
}

fn sized_type(ty: &SizedType) -> String {
    let base = match &ty.base {
        BaseType::Int => "int",
        BaseType::Real => "real",
        BaseType::Complex => "complex",
        BaseType::Vector => "vector",
        BaseType::RowVector => "row_vector",
        BaseType::Matrix => "matrix",
        BaseType::ComplexVector => "complex_vector",
        BaseType::ComplexRowVector => "complex_row_vector",
        BaseType::ComplexMatrix => "complex_matrix",
        BaseType::Ordered => "ordered",
        BaseType::PositiveOrdered => "positive_ordered",
        BaseType::Simplex => "simplex",
        BaseType::UnitVector => "unit_vector",
        BaseType::SumToZeroVector => "sum_to_zero_vector",
        BaseType::SumToZeroMatrix => "sum_to_zero_matrix",
        BaseType::CholeskyFactorCorr => "cholesky_factor_corr",
        BaseType::CholeskyFactorCov => "cholesky_factor_cov",
        BaseType::CorrMatrix => "corr_matrix",
        BaseType::CovMatrix => "cov_matrix",
        BaseType::ColumnStochastic => "column_stochastic_matrix",
        BaseType::RowStochastic => "row_stochastic_matrix",
        BaseType::Tuple(_) => "tuple",
    };
    let mut out = String::new();
    if !ty.dims.is_empty() {
        out.push_str(&format!("array[{}] ", exprs(&ty.dims)));
    }
    out.push_str(base);
    if let BaseType::Tuple(parts) = &ty.base {
        let parts: Vec<String> = parts.iter().map(sized_type).collect();
        out.push_str(&format!("({})", parts.join(", ")));
    }
    let transform = [
        ("lower", &ty.transform.lower),
        ("upper", &ty.transform.upper),
        ("offset", &ty.transform.offset),
        ("multiplier", &ty.transform.multiplier),
    ];
    let transform: Vec<String> = transform
        .into_iter()
        .filter_map(|(name, value)| {
            value
                .as_ref()
                .map(|value| format!("{name}={}", expr(value)))
        })
        .collect();
    if !transform.is_empty() {
        out.push_str(&format!("<{}>", transform.join(", ")));
    }
    if !ty.sizes.is_empty() {
        out.push_str(&format!("[{}]", exprs(&ty.sizes)));
    }
    out
}

fn print_statements(out: &mut Lines, statements: &[Stmt]) {
    for statement in statements {
        print_statement(out, statement);
    }
}

fn print_body(out: &mut Lines, head: &str, body: &Stmt) {
    match &body.kind {
        StmtKind::Block(list) => out.braces(head, |out| print_statements(out, list)),
        _ => out.braces(head, |out| print_statement(out, body)),
    }
}

fn print_statement(out: &mut Lines, statement: &Stmt) {
    match &statement.kind {
        StmtKind::Decl(decl) => out.line(&format!("{};", declaration(decl))),
        StmtKind::Assign {
            target, op, rhs, ..
        } => {
            let op = op.map_or("", |op| op.symbol());
            out.line(&format!("{} {op}= {};", expr(target), expr(rhs)));
        }
        StmtKind::TargetPlus(value) => out.line(&format!("target += {};", expr(value))),
        StmtKind::JacobianPlus(value) => out.line(&format!("jacobian += {};", expr(value))),
        StmtKind::Tilde {
            variate,
            dist,
            args,
            truncation,
        } => out.line(&format!(
            "{} ~ {}({}){};",
            expr(variate),
            dist.name,
            exprs(args),
            truncated(truncation.as_ref())
        )),
        StmtKind::Call(call) => out.line(&format!("{};", call_text(call))),
        StmtKind::Print(list) => out.line(&format!("print({});", messages(list))),
        StmtKind::Reject(list) => out.line(&format!("reject({});", messages(list))),
        StmtKind::FatalError(list) => out.line(&format!("fatal_error({});", messages(list))),
        StmtKind::If(branches, otherwise) => {
            for (at, (condition, then)) in branches.iter().enumerate() {
                let word = if at == 0 { "if" } else { "else if" };
                print_body(out, &format!("{word} ({})", expr(condition)), then);
            }
            if let Some(otherwise) = otherwise {
                print_body(out, "else", otherwise);
            }
        }
        StmtKind::While(condition, body) => {
            print_body(out, &format!("while ({})", expr(condition)), body)
        }
        StmtKind::For(name, lower, upper, body) => {
            let head = format!("for ({} in {} : {})", name.name, expr(lower), expr(upper));
            print_body(out, &head, body);
        }
        StmtKind::ForEach(name, container, body) => {
            print_body(
                out,
                &format!("for ({} in {})", name.name, expr(container)),
                body,
            );
        }
        StmtKind::Block(list) => out.braces("", |out| print_statements(out, list)),
        StmtKind::Profile(name, list) => out.braces(&format!("profile(\"{name}\")"), |out| {
            print_statements(out, list)
        }),
        StmtKind::Break => out.line("break;"),
        StmtKind::Continue => out.line("continue;"),
        StmtKind::Return(Some(value)) => out.line(&format!("return {};", expr(value))),
        StmtKind::Return(None) => out.line("return;"),
        StmtKind::Empty => out.line(";"),
        StmtKind::Error => out.line("<error>"),
    }
}

fn declaration(decl: &Decl) -> String {
    let head = format!("{} {}", sized_type(&decl.ty), decl.name.name);
    match &decl.init {
        Some(init) => format!("{head} = {}", expr(init)),
        None => head,
    }
}

fn truncated(truncation: Option<&Truncation>) -> String {
    let bound = |bound: &Option<Expr>| bound.as_ref().map(expr).unwrap_or_default();
    truncation
        .map(|t| format!(" T[{}, {}]", bound(&t.lower), bound(&t.upper)))
        .unwrap_or_default()
}

fn messages(list: &[Message]) -> String {
    let parts: Vec<String> = list
        .iter()
        .map(|message| match message {
            Message::Text(text) => format!("\"{text}\""),
            Message::Value(value) => expr(value),
        })
        .collect();
    parts.join(", ")
}

fn exprs(list: &[Expr]) -> String {
    let parts: Vec<String> = list.iter().map(expr).collect();
    parts.join(", ")
}

fn call_text(call: &Call) -> String {
    match call.args.split_first() {
        Some((first, rest)) if call.bar => {
            format!("{}({} | {})", call.name.name, expr(first), exprs(rest))
        }
        _ => format!("{}({})", call.name.name, exprs(&call.args)),
    }
}

fn expr(e: &Expr) -> String {
    match &e.kind {
        ExprKind::Int(value) => value.to_string(),
        ExprKind::Real(value) => real(*value),
        ExprKind::Imag(value) => format!("{}i", real(*value)),
        ExprKind::Name(name) => name.clone(),
        ExprKind::Target => "target()".to_owned(),
        ExprKind::Prefix(op, operand) => {
            let symbol = match op {
                PrefixOp::Plus => "+",
                PrefixOp::Minus => "-",
                PrefixOp::Not => "!",
            };
            format!("({symbol}{})", expr(operand))
        }
        ExprKind::Infix(op, _, left, right) => {
            format!("({} {} {})", expr(left), op.symbol(), expr(right))
        }
        ExprKind::Ternary(condition, then, otherwise) => {
            format!(
                "({} ? {} : {})",
                expr(condition),
                expr(then),
                expr(otherwise)
            )
        }
        ExprKind::Transpose(operand) => format!("({}')", expr(operand)),
        ExprKind::Index(base, list) => {
            let list: Vec<String> = list.iter().map(index).collect();
            format!("{}[{}]", expr(base), list.join(", "))
        }
        ExprKind::Component(base, number) => format!("{}.{number}", expr(base)),
        ExprKind::Call(call) => call_text(call),
        ExprKind::Array(list) => format!("{{{}}}", exprs(list)),
        ExprKind::RowVector(list) => format!("[{}]", exprs(list)),
        ExprKind::Tuple(list) if list.len() == 1 => format!("({},)", exprs(list)),
        ExprKind::Tuple(list) => format!("({})", exprs(list)),
        // Printing encloses every operation in parentheses anyway.
        ExprKind::Paren(inner) => expr(inner),
        ExprKind::Error => "<error>".to_owned(),
    }
}

fn index(index: &Index) -> String {
    match index {
        Index::All => ":".to_owned(),
        Index::One(e) => expr(e),
        Index::From(e) => format!("{} :", expr(e)),
        Index::To(e) => format!(": {}", expr(e)),
        Index::Between(a, b) => format!("{} : {}", expr(a), expr(b)),
    }
}
