//! Lists the variables of functions.

use super::{Function, Program, Stmt, StmtKind, VarId};

/// Returns the variables of each function, which are its arguments and the variables that its body declares. A
/// recursive call saves the variables of its caller.
pub fn function_locals(program: &Program) -> Vec<Vec<VarId>> {
    program
        .functions
        .iter()
        .map(|function: &Function| {
            let mut vars = function.args.clone();
            function
                .body
                .iter()
                .for_each(|stmt| collect(stmt, &mut vars));
            vars
        })
        .collect()
}

fn collect(stmt: &Stmt, vars: &mut Vec<VarId>) {
    match &stmt.kind {
        StmtKind::Decl(decl) => vars.push(decl.var),
        StmtKind::For { var, body, .. } | StmtKind::ForEach { var, body, .. } => {
            vars.push(*var);
            collect(body, vars);
        }
        StmtKind::While { body, .. } => collect(body, vars),
        StmtKind::If {
            then, otherwise, ..
        } => {
            collect(then, vars);
            if let Some(otherwise) = otherwise {
                collect(otherwise, vars);
            }
        }
        StmtKind::Block(body) | StmtKind::Profile(_, body) => {
            body.iter().for_each(|stmt| collect(stmt, vars));
        }
        _ => {}
    }
}
