//! Defines the typed program. The checker builds the program, and the evaluators execute it.
//!
//! The checker builds a [`Program`] only if the source has no errors. The evaluators can therefore rely on these
//! properties without checking them again:
//!
//! * every name is resolved ([`VarId`], [`FunId`], [`BuiltinId`]), and every expression has a type and a [`Level`];
//! * every implicit conversion is an explicit [`ExprKind::Promote`] node. The arguments of a call have exactly the
//!   types of one signature of the callee, both sides of an assignment have the same type, and all elements of a
//!   literal have the same type;
//! * syntactic sugar is removed: unary plus is dropped, `int / int` becomes [`BinaryOp::IntDiv`], `x ~ f(…)` refers to
//!   the density that it calls, and each constrained type becomes an unconstrained [`SizedType`] with a [`Constraint`];
//! * `int` expressions never depend on parameters, and neither do sizes of declarations outside functions and local
//!   blocks.
//!
//! The evaluators check everything that depends on the data: sizes, index bounds and constraints.

mod dimensions;
mod locals;
mod reads;
pub mod signatures;
mod ty;
mod walk;

pub use crate::source::{FileId, SourceFile, Span};
pub use crate::syntax::ast::BlockKind;
pub use locals::function_locals;
pub use reads::{each_read, each_read_of, sizes};
pub use signatures::BuiltinId;
pub use ty::{FunctionType, Level, ParamType, Type};

/// The index of a variable in [`Program::vars`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VarId(pub u32);

/// The index of a user-defined function in [`Program::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunId(pub u32);

/// The identifier of an expression, which is unique in the program and less than [`Program::expr_count`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExprId(pub u32);

/// The kind of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarKind {
    /// A variable declared at the top level of a block other than `model`. A global variable is visible in later
    /// blocks, and it may be part of the output.
    Global,
    /// A variable declared in the model block, in a nested block or in a function body.
    Local,
    /// Argument `index` of function `function`.
    Argument {
        /// The function.
        function: FunId,
        /// The position of the argument in the argument list of the function.
        index: u32,
    },
    /// The variable of a `for` loop, to which no statement assigns.
    Loop,
}

/// A variable. Every declaration introduces a new variable, even if it reuses a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Var {
    /// The name in the source.
    pub name: String,
    /// The type without sizes. The sizes are in the variable's [`Decl`].
    pub ty: Type,
    /// The block of the declaration, which is [`BlockKind::Functions`] for variables in function bodies.
    pub block: BlockKind,
    /// Whether this is a global variable, a local variable, an argument or a loop variable.
    pub kind: VarKind,
    /// Whether the value of the variable can depend on parameters.
    pub level: Level,
    /// The location of the name in its declaration.
    pub span: Span,
}

/// An expression with its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The identifier of the expression.
    pub id: ExprId,
    /// The kind of the expression.
    pub kind: ExprKind,
    /// The type of the expression's value.
    pub ty: Type,
    /// Whether the value of the expression can depend on parameters.
    pub level: Level,
    /// The location of the expression in the source. A node that the checker inserted has the span of its operand.
    pub span: Span,
}

/// The kind of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// An integer literal, which fits in 32 bits.
    IntLit(i32),
    /// A real literal, which is finite.
    RealLit(f64),
    /// An imaginary literal such as `2.5i`, of type `complex`.
    ImagLit(f64),
    /// A variable.
    Var(VarId),
    /// A prefix operator.
    Unary(UnaryOp, Box<Expr>),
    /// An infix operator. Its operands are promoted to the operand types of one signature of the operator.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `condition ? then : otherwise`. The condition is an `int`. Both branches have the type of the whole expression,
    /// and only the selected branch is evaluated.
    Ternary(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `x'` for a vector, row vector or matrix. The transpose of a complex value is *not* conjugated.
    Transpose(Box<Expr>),
    /// `base[i, …]` with at least one index. The indices apply first to array dimensions, then to the dimensions of the
    /// vector or matrix.
    ///
    /// An [`Index::Single`] removes its dimension, and every other index keeps its dimension. For a matrix `m`, `m[i]`
    /// is a row vector, `m[:, j]` is a vector, and `m[i, :]` is a row vector. If there are fewer indices than
    /// dimensions, the remaining dimensions are kept whole.
    Index(Box<Expr>, Vec<Index>),
    /// `{a, b, …}`: an array of one or more elements of the same type.
    ArrayLit(Vec<Expr>),
    /// `[a, b, …]`: a row vector of scalars, or a matrix whose rows are row vectors. [`Expr::ty`] distinguishes the
    /// two. `[]` is an empty row vector.
    RowVectorLit(Vec<Expr>),
    /// `(a, b, …)`: a tuple of one or more elements. A tuple of one element is written `(a,)`.
    TupleLit(Vec<Expr>),
    /// `t.k`, a component of a tuple. The stored index counts from 0, but the index in the source counts from 1.
    TupleProj(Box<Expr>, u32),
    /// A call of a function that returns a value.
    Call(Call),
    /// `target()`: the log density accumulated so far.
    Target,
    /// A function that is passed to a library function. References to functions occur only among the arguments of a
    /// [`Call`].
    FunRef(FunRef),
    /// A conversion of the operand to the type [`Expr::ty`], along the chain `int` → `real` → `complex`. Arrays,
    /// vectors, matrices and tuples are converted elementwise.
    Promote(Box<Expr>),
}

/// A call of a library or user function.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function that is called. For a call of `foo_lupdf` or `foo_lupmf`, the field contains the normalised
    /// `foo_lpdf` or `foo_lpmf`.
    pub callee: Callee,
    /// The arguments. After the inserted promotions, each argument has exactly its parameter type in the chosen
    /// signature.
    ///
    /// The first argument of a variadic library function (`ode_rk45`, `reduce_sum`, …) is an [`ExprKind::FunRef`]. The
    /// other arguments follow in source order, promoted to the parameter types of the passed function.
    pub args: Vec<Expr>,
    /// Whether the call uses the suffix `_lupdf` or `_lupmf`, so that additive constants may be dropped.
    pub unnormalised: bool,
}

/// A function that a call passes as an argument, by its name.
#[derive(Clone, Debug, PartialEq)]
pub struct FunRef {
    /// The function that is passed, normalised as in [`Call`].
    pub callee: Callee,
    /// Whether the function is named with the suffix `_lupdf` or `_lupmf`.
    pub unnormalised: bool,
}

/// The function that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// A function of the Stan library. The argument types determine the signature.
    Builtin(BuiltinId),
    /// A function of the `functions` block. Each overload has its own identifier.
    User(FunId),
}

/// One index of an index expression. Positions are numbered from 1. A range includes both ends. A range is empty if its
/// end is less than its start.
#[derive(Clone, Debug, PartialEq)]
pub enum Index {
    /// `x[]` or `x[:]`
    All,
    /// `x[i]`
    Single(Expr),
    /// `x[is]`, an array of `int`
    Multi(Expr),
    /// `x[a:]`
    From(Expr),
    /// `x[:b]`
    To(Expr),
    /// `x[a:b]`
    Between(Expr, Expr),
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-x`, elementwise.
    Neg,
    /// `!x` for an `int` x. The result is 1 if x is zero, and 0 otherwise.
    Not,
}

/// Infix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`, elementwise. A scalar is added to each element of a container.
    Add,
    /// `-`
    Sub,
    /// `*`, the product of scalars, vectors and matrices.
    Mul,
    /// `/`, except between two `int`s. If the right operand is a matrix, the operation is `a · b⁻¹`.
    Div,
    /// `%/%`, or `/` between two `int`s. The quotient is rounded towards zero.
    IntDiv,
    /// `%` between two `int`s. The result has the sign of the left operand.
    Mod,
    /// `\`, matrix left division.
    LeftDiv,
    /// `.*`
    EltMul,
    /// `./`
    EltDiv,
    /// `^`
    Pow,
    /// `.^`
    EltPow,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `&&`, which short-circuits. The operands are `int`s, and every value except 0 counts as true.
    And,
    /// `||`, which short-circuits.
    Or,
}

impl BinaryOp {
    /// Returns the operator as written in the source.
    pub fn symbol(self) -> &'static str {
        use BinaryOp::*;
        match self {
            Add => "+",
            Sub => "-",
            Mul => "*",
            Div => "/",
            IntDiv => "%/%",
            Mod => "%",
            LeftDiv => "\\",
            EltMul => ".*",
            EltDiv => "./",
            Pow => "^",
            EltPow => ".^",
            Eq => "==",
            Ne => "!=",
            Lt => "<",
            Le => "<=",
            Gt => ">",
            Ge => ">=",
            And => "&&",
            Or => "||",
        }
    }
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// The kind of the statement.
    pub kind: StmtKind,
    /// The location of the statement in the source.
    pub span: Span,
}

/// The kind of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// A declaration.
    Decl(Decl),
    /// `part = rhs`, or `part op= rhs`, which means `part = part op rhs`; see [`Assign`].
    Assign(Assign),
    /// `target += e`. Adds the sum of all elements of `e` to the log density.
    TargetPlus(Expr),
    /// `jacobian += e`. Adds the sum of all elements of `e` to the log density, but only if the log density includes
    /// the Jacobian of the transforms.
    JacobianPlus(Expr),
    /// `x ~ f(…)`
    Tilde(Tilde),
    /// A call of a void function.
    Call(Call),
    /// `print(…)`
    Print(Vec<Message>),
    /// `reject(…)`. Rejects the point, so that its log density is −∞. The Stan reference manual describes the effect in
    /// transformed data and generated quantities.
    Reject(Vec<Message>),
    /// `fatal_error(…)`. Ends the run.
    FatalError(Vec<Message>),
    /// An `if` statement. The condition is an `int`.
    If {
        /// The condition, which holds if its value is not zero.
        condition: Expr,
        /// The statement to run if the condition holds.
        then: Box<Stmt>,
        /// The statement to run if the condition does not hold.
        otherwise: Option<Box<Stmt>>,
    },
    /// A `while` loop. The condition is an `int`.
    While {
        /// The condition. The loop continues while its value is not zero.
        condition: Expr,
        /// The body.
        body: Box<Stmt>,
    },
    /// `for (i in lower:upper)`. The bounds are evaluated once, and both are included.
    For {
        /// The loop variable, an `int`.
        var: VarId,
        /// The first value.
        lower: Expr,
        /// The last value.
        upper: Expr,
        /// The body.
        body: Box<Stmt>,
    },
    /// `for (x in container)`. Visits the elements of an array or vector in order, or the elements of a matrix column
    /// by column.
    ForEach {
        /// The loop variable.
        var: VarId,
        /// The container, which is evaluated only once.
        container: Expr,
        /// The body.
        body: Box<Stmt>,
    },
    /// `{ … }`
    Block(Vec<Stmt>),
    /// `profile("name") { … }`
    Profile(String, Vec<Stmt>),
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// `return`, with the value promoted to the function's result type. In a void function there is no value.
    Return(Option<Expr>),
    /// `;`, or a statement that is empty after the removal of syntactic sugar.
    Empty,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// A string literal, without its quotes.
    Text(String),
    /// A value.
    Value(Expr),
}

/// A variable declaration. Before the first assignment, reals are NaN and ints are `i32::MIN`.
#[derive(Clone, Debug, PartialEq)]
pub struct Decl {
    /// The variable.
    pub var: VarId,
    /// The type with sizes.
    pub ty: SizedType,
    /// The constraint on the value, or on each innermost element if the value is an array. A tuple has the constraint
    /// `None`, because each component of a tuple has its own constraint.
    pub constraint: Constraint,
    /// The initial value, which has the same type as the variable.
    pub init: Option<Expr>,
}

/// A type with size expressions. The sizes are of type `int` and are evaluated when the declaration is executed.
#[derive(Clone, Debug, PartialEq)]
pub enum SizedType {
    /// `int`
    Int,
    /// `real`
    Real,
    /// `complex`
    Complex,
    /// `vector[n]`
    Vector(Box<Expr>),
    /// `row_vector[n]`
    RowVector(Box<Expr>),
    /// `matrix[rows, columns]`
    Matrix(Box<Expr>, Box<Expr>),
    /// `complex_vector[n]`
    ComplexVector(Box<Expr>),
    /// `complex_row_vector[n]`
    ComplexRowVector(Box<Expr>),
    /// `complex_matrix[rows, columns]`
    ComplexMatrix(Box<Expr>, Box<Expr>),
    /// One array dimension: `array[n, m] T` is `Array(n, Array(m, T))`.
    Array(Box<Expr>, Box<SizedType>),
    /// The components, each with its constraint.
    Tuple(Vec<(SizedType, Constraint)>),
}

impl SizedType {
    /// Returns the type without its sizes.
    pub fn unsized_type(&self) -> Type {
        match self {
            SizedType::Int => Type::Int,
            SizedType::Real => Type::Real,
            SizedType::Complex => Type::Complex,
            SizedType::Vector(_) => Type::Vector,
            SizedType::RowVector(_) => Type::RowVector,
            SizedType::Matrix(..) => Type::Matrix,
            SizedType::ComplexVector(_) => Type::ComplexVector,
            SizedType::ComplexRowVector(_) => Type::ComplexRowVector,
            SizedType::ComplexMatrix(..) => Type::ComplexMatrix,
            SizedType::Array(_, inner) => Type::Array(Box::new(inner.unsized_type())),
            SizedType::Tuple(parts) => {
                Type::Tuple(parts.iter().map(|(ty, _)| ty.unsized_type()).collect())
            }
        }
    }
}

/// The constraint of a declaration. A bound is a scalar, or a container with the shape of the constrained value. The
/// bounds of an `int` variable have type `int`, and the elements of all other bounds are reals.
///
/// The [`SizedType`] of the same variable states the shape of the *constrained* value: `simplex[K]` is `Vector(K)`,
/// `cov_matrix[K]` is `Matrix(K, K)`, and `cholesky_factor_cov[M, N]` is `Matrix(M, N)`.
#[derive(Clone, Debug, PartialEq)]
pub enum Constraint {
    /// No constraint.
    None,
    /// `<lower=a>`
    Lower(Box<Expr>),
    /// `<upper=b>`
    Upper(Box<Expr>),
    /// `<lower=a, upper=b>`
    LowerUpper(Box<Expr>, Box<Expr>),
    /// `<offset=m>`
    Offset(Box<Expr>),
    /// `<multiplier=s>`
    Multiplier(Box<Expr>),
    /// `<offset=m, multiplier=s>`
    OffsetMultiplier(Box<Expr>, Box<Expr>),
    /// `ordered[K]`
    Ordered,
    /// `positive_ordered[K]`
    PositiveOrdered,
    /// `simplex[K]`
    Simplex,
    /// `unit_vector[K]`
    UnitVector,
    /// `sum_to_zero_vector[K]` or `sum_to_zero_matrix[M, N]`
    SumToZero,
    /// `cholesky_factor_corr[K]`
    CholeskyFactorCorr,
    /// `cholesky_factor_cov[M, N]`
    CholeskyFactorCov,
    /// `corr_matrix[K]`
    CorrMatrix,
    /// `cov_matrix[K]`
    CovMatrix,
    /// `column_stochastic_matrix[M, N]`
    ColumnStochastic,
    /// `row_stochastic_matrix[M, N]`
    RowStochastic,
}

/// An assignment. In `part = rhs`, both sides have the same type. In `part op= rhs`, the part and `rhs` have the
/// operand types of one signature of `op`, as in [`ExprKind::Binary`], and the result has the type of the part.
#[derive(Clone, Debug, PartialEq)]
pub struct Assign {
    /// The variable, or the part of a variable, that receives the value.
    pub target: LValue,
    /// The arithmetic operator of a compound assignment, or `None` for `=`.
    pub op: Option<BinaryOp>,
    /// The assigned value. The value is evaluated before the target changes, so `x[2:] = x[:n]` reads the old elements.
    pub rhs: Expr,
}

/// The target of an assignment.
#[derive(Clone, Debug, PartialEq)]
pub enum LValue {
    /// A variable or a part of one.
    Part(VariablePart),
    /// `(a, b, …) = tuple`. No part of a variable is assigned twice, and [`Assign::op`] is `None`.
    Tuple(Vec<LValue>),
}

/// A variable and the accesses that select a part of it, applied from left to right.
#[derive(Clone, Debug, PartialEq)]
pub struct VariablePart {
    /// The variable.
    pub var: VarId,
    /// The accesses, starting with the outermost container. The path is empty if the part is the whole variable.
    pub path: Vec<Access>,
    /// The type of the part.
    pub ty: Type,
    /// The location of the variable part in the source.
    pub span: Span,
}

/// One access into a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// `[i, …]`, as in [`ExprKind::Index`].
    Index(Vec<Index>),
    /// `.k`, a component of a tuple, counted from 0.
    Component(u32),
}

/// `x ~ f(a, …) T[lower, upper]`. Adds the density without its additive constants.
///
/// With truncation, the log density is −∞ if an element of `x` is outside the bounds. Otherwise the statement subtracts
/// a normaliser for every element of the broadcast arguments. The normaliser is `lccdf(lower)` or `lcdf(upper)` with
/// one bound, and `log_diff_exp(lcdf(upper), lcdf(lower))` with both bounds. If `f` is discrete (an `_lpmf`), the
/// distribution functions are evaluated at `lower − 1` instead of `lower`, so that the outcome `lower` keeps its mass.
#[derive(Clone, Debug, PartialEq)]
pub struct Tilde {
    /// The `_lpdf` or `_lpmf` function. The statement calls this function as `_lupdf` or `_lupmf`.
    pub callee: Callee,
    /// The arguments of the density, with the variate first.
    pub args: Vec<Expr>,
    /// The truncation `T[…]`, or `None` if there are no bounds.
    pub truncation: Option<Truncation>,
}

/// The truncation of a [`Tilde`], which has at least one bound. The distribution functions are called with a scalar
/// bound, followed by `args[1..]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Truncation {
    /// The lower bound. The bound is an `int` if the distribution functions take an `int`, and a `real` otherwise.
    pub lower: Option<Expr>,
    /// The upper bound, of the same type as the lower bound.
    pub upper: Option<Expr>,
    /// The `_lcdf` function of the distribution.
    pub lcdf: Callee,
    /// The `_lccdf` function of the distribution.
    pub lccdf: Callee,
}

/// The kind of a function, given by the suffix of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// A function whose name has none of the special suffixes.
    Plain,
    /// `_lpdf`
    Lpdf,
    /// `_lpmf`
    Lpmf,
    /// `_lcdf`
    Lcdf,
    /// `_lccdf`
    Lccdf,
    /// `_lp`. The function may read the log density of its caller and may add terms to this log density.
    Lp,
    /// `_rng`: draws random numbers.
    Rng,
    /// `_jacobian`. The function may add terms to the log-Jacobian of its caller.
    Jacobian,
}

impl FunctionKind {
    /// Returns the kind that the suffix of a name implies.
    pub fn of_name(name: &str) -> FunctionKind {
        const SUFFIXES: [(&str, FunctionKind); 7] = [
            ("_lpdf", FunctionKind::Lpdf),
            ("_lpmf", FunctionKind::Lpmf),
            ("_lccdf", FunctionKind::Lccdf),
            ("_lcdf", FunctionKind::Lcdf),
            ("_lp", FunctionKind::Lp),
            ("_rng", FunctionKind::Rng),
            ("_jacobian", FunctionKind::Jacobian),
        ];
        SUFFIXES
            .iter()
            .find(|(suffix, _)| name.ends_with(suffix))
            .map_or(FunctionKind::Plain, |(_, kind)| *kind)
    }
}

/// A user-defined function. Functions may call each other and themselves, in any order.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The name in the source. Overloads share this name.
    pub name: String,
    /// The kind of the function, as given by its suffix. In the body of an `_lpdf` or `_lpmf` function, `~` and calls
    /// with `_lupdf` may drop their constants only if the function itself is called with `_lupdf` or `_lupmf`.
    pub kind: FunctionKind,
    /// The variables of the arguments. [`Program::vars`] contains their types and `data` qualifiers.
    pub args: Vec<VarId>,
    /// The result type, or [`Type::Void`].
    pub result: Type,
    /// The body. If the function returns a value, every path through the body ends in `return` or `reject`.
    pub body: Vec<Stmt>,
    /// The location of the name in the definition.
    pub span: Span,
}

/// A checked program.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The name of the main source file.
    pub name: String,
    /// The user-defined functions, indexed by [`FunId`].
    pub functions: Vec<Function>,
    /// The declarations of the data block, without initial values, in order.
    pub data: Vec<Decl>,
    /// The statements of `transformed data`. Declarations at this level are global.
    pub transformed_data: Vec<Stmt>,
    /// The declarations of the parameters block, without initial values, in order.
    pub parameters: Vec<Decl>,
    /// The statements of `transformed parameters`. Declarations at this level are global.
    pub transformed_parameters: Vec<Stmt>,
    /// The statements of `model`. All its declarations are local.
    pub model: Vec<Stmt>,
    /// The statements of `generated quantities`. Declarations at this level are global.
    pub generated_quantities: Vec<Stmt>,
    /// The variables, indexed by [`VarId`].
    pub vars: Vec<Var>,
    /// The number of expressions.
    pub expr_count: u32,
    /// The source files, indexed by [`FileId`]. The first file is the main file.
    pub files: Vec<SourceFile>,
}

impl Program {
    /// Returns the variable with this id.
    pub fn var(&self, id: VarId) -> &Var {
        &self.vars[id.0 as usize]
    }

    /// Returns the function with this id.
    pub fn function(&self, id: FunId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// Returns the name of the called function.
    pub fn callee_name(&self, callee: Callee) -> &str {
        match callee {
            Callee::Builtin(id) => id.name(),
            Callee::User(id) => &self.function(id).name,
        }
    }

    /// Returns the names of the variables in the data block whose length is the `int` that `decl` declares. The result
    /// is empty if `decl` does not declare an `int`. If one of these variables is a column of a table, the `int` is the
    /// number of rows.
    pub fn of_length(&self, decl: &Decl) -> impl Iterator<Item = &str> {
        let (var, is_int) = (decl.var, decl.ty == SizedType::Int);
        let sized = move |other: &&Decl| match &other.ty {
            SizedType::Vector(n) | SizedType::RowVector(n) | SizedType::Array(n, _) => {
                is_int && n.kind == ExprKind::Var(var)
            }
            _ => false,
        };
        let sized = self.data.iter().filter(sized);
        sized.map(|other| self.var(other.var).name.as_str())
    }

    /// Returns the start of a span as `file:line:column`, for messages.
    pub fn location(&self, span: Span) -> String {
        let file = &self.files[span.file.0 as usize];
        let (line, column) = file.line_column(span.start);
        format!("{}:{line}:{column}", file.name)
    }
}
