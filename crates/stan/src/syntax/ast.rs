//! The syntax tree, which represents the source text without types.

use crate::source::Span;

/// The seven blocks of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockKind {
    /// `functions`
    Functions,
    /// `data`
    Data,
    /// `transformed data`
    TransformedData,
    /// `parameters`
    Parameters,
    /// `transformed parameters`
    TransformedParameters,
    /// `model`
    Model,
    /// `generated quantities`
    GeneratedQuantities,
}

impl BlockKind {
    /// Returns the block's name in the source.
    pub fn name(self) -> &'static str {
        match self {
            BlockKind::Functions => "functions",
            BlockKind::Data => "data",
            BlockKind::TransformedData => "transformed data",
            BlockKind::Parameters => "parameters",
            BlockKind::TransformedParameters => "transformed parameters",
            BlockKind::Model => "model",
            BlockKind::GeneratedQuantities => "generated quantities",
        }
    }
}

/// A name and its location.
#[derive(Clone, Debug, PartialEq)]
pub struct Ident {
    /// The name.
    pub name: String,
    /// The location of the name in the source.
    pub span: Span,
}

/// An expression without a type.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The kind of the expression.
    pub kind: ExprKind,
    /// The location of the expression in the source.
    pub span: Span,
    /// The length of the longest path to a leaf. The parser limits this height, so that later stages can visit the tree
    /// recursively.
    pub height: u32,
}

/// The kind of an expression.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ExprKind {
    Int(i32),
    Real(f64),
    Imag(f64),
    Name(String),
    /// `target()`.
    Target,
    Prefix(PrefixOp, Box<Expr>),
    /// An operation with two operands. The span is the location of the operator, which messages show.
    Infix(InfixOp, Span, Box<Expr>, Box<Expr>),
    Ternary(Box<Expr>, Box<Expr>, Box<Expr>),
    Transpose(Box<Expr>),
    Index(Box<Expr>, Vec<Index>),
    /// `e.2`, a component of a tuple. Components are numbered from 1, as in the source.
    Component(Box<Expr>, u32),
    Call(Call),
    Array(Vec<Expr>),
    RowVector(Vec<Expr>),
    Tuple(Vec<Expr>),
    Paren(Box<Expr>),
    /// Code that could not be parsed, and whose error has already been reported.
    Error,
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function's name.
    pub name: Ident,
    /// The arguments of the call.
    pub args: Vec<Expr>,
    /// Whether a `|` follows the first argument.
    pub bar: bool,
}

/// An index of an index expression.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Index {
    All,
    One(Expr),
    From(Expr),
    To(Expr),
    Between(Expr, Expr),
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum PrefixOp {
    Plus,
    Minus,
    Not,
}

/// Infix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum InfixOp {
    Add,
    Sub,
    Mul,
    Div,
    IntDiv,
    Mod,
    LeftDiv,
    EltMul,
    EltDiv,
    Pow,
    EltPow,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
}

impl InfixOp {
    /// Returns the operator as written in the source.
    pub fn symbol(self) -> &'static str {
        use InfixOp::*;
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

/// A type of a declaration, with sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct SizedType {
    /// The array sizes, outermost first.
    pub dims: Vec<Expr>,
    /// The type below the arrays.
    pub base: BaseType,
    /// The sizes in brackets after the type, as written. A vector has one size, and a matrix has two.
    pub sizes: Vec<Expr>,
    /// The bounds or the affine transform in `<…>`, as written.
    pub transform: Transform,
    /// The location of the type in the source.
    pub span: Span,
}

/// A type below arrays.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum BaseType {
    Int,
    Real,
    Complex,
    Vector,
    RowVector,
    Matrix,
    ComplexVector,
    ComplexRowVector,
    ComplexMatrix,
    Ordered,
    PositiveOrdered,
    Simplex,
    UnitVector,
    SumToZeroVector,
    SumToZeroMatrix,
    CholeskyFactorCorr,
    CholeskyFactorCov,
    CorrMatrix,
    CovMatrix,
    ColumnStochastic,
    RowStochastic,
    Tuple(Vec<SizedType>),
}

/// The bounds or the affine transform of a declaration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transform {
    /// The value of `lower=`.
    pub lower: Option<Box<Expr>>,
    /// The value of `upper=`.
    pub upper: Option<Box<Expr>>,
    /// The value of `offset=`.
    pub offset: Option<Box<Expr>>,
    /// The value of `multiplier=`.
    pub multiplier: Option<Box<Expr>>,
}

impl Transform {
    /// Returns whether the declaration has neither bounds nor an affine transform.
    pub fn is_empty(&self) -> bool {
        self.lower.is_none()
            && self.upper.is_none()
            && self.offset.is_none()
            && self.multiplier.is_none()
    }
}

/// The type of an argument or of the result of a function. It has no sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct UnsizedType {
    /// The number of array dimensions.
    pub depth: usize,
    /// The type below the arrays.
    pub base: UnsizedBase,
    /// The location of the type in the source.
    pub span: Span,
}

/// A type without sizes, below the array dimensions.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum UnsizedBase {
    Void,
    Int,
    Real,
    Complex,
    Vector,
    RowVector,
    Matrix,
    ComplexVector,
    ComplexRowVector,
    ComplexMatrix,
    Tuple(Vec<UnsizedType>),
}

/// A declaration of one variable. `real a, b;` becomes two declarations with the same type.
#[derive(Clone, Debug, PartialEq)]
pub struct Decl {
    /// The type.
    pub ty: SizedType,
    /// The variable.
    pub name: Ident,
    /// The initial value.
    pub init: Option<Expr>,
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
#[allow(missing_docs)]
pub enum StmtKind {
    Decl(Decl),
    Assign {
        target: Expr,
        /// The operator of a compound assignment, or `None` for `=`. `op_span` is the location of the whole symbol.
        op: Option<InfixOp>,
        op_span: Span,
        rhs: Expr,
    },
    TargetPlus(Expr),
    JacobianPlus(Expr),
    Tilde {
        variate: Expr,
        dist: Ident,
        args: Vec<Expr>,
        truncation: Option<Truncation>,
    },
    Call(Call),
    Print(Vec<Message>),
    Reject(Vec<Message>),
    FatalError(Vec<Message>),
    If(Vec<(Expr, Stmt)>, Option<Box<Stmt>>),
    While(Expr, Box<Stmt>),
    For(Ident, Expr, Expr, Box<Stmt>),
    ForEach(Ident, Expr, Box<Stmt>),
    Block(Vec<Stmt>),
    Profile(String, Vec<Stmt>),
    Break,
    Continue,
    Return(Option<Expr>),
    Empty,
    /// Code that could not be parsed, and whose error has already been reported.
    Error,
}

/// `T[lower, upper]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Truncation {
    /// The lower bound.
    pub lower: Option<Expr>,
    /// The upper bound.
    pub upper: Option<Expr>,
    /// The location of the truncation in the source.
    pub span: Span,
}

/// An argument of `print`, `reject` or `fatal_error`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Message {
    Text(String),
    Value(Expr),
}

/// An argument of a function definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Whether the argument is declared `data`.
    pub data: bool,
    /// The type of the argument.
    pub ty: UnsizedType,
    /// The name of the argument.
    pub name: Ident,
}

/// A function definition or declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The type of the result.
    pub result: UnsizedType,
    /// The name of the function.
    pub name: Ident,
    /// The arguments of the function.
    pub params: Vec<Param>,
    /// The body of the function, or `None` for a declaration without a body.
    pub body: Option<Vec<Stmt>>,
    /// The location of the function, from its result type to its end.
    pub span: Span,
}

/// A program. A block that the source omits is empty.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Program {
    pub functions: Vec<Function>,
    pub data: Vec<Stmt>,
    pub transformed_data: Vec<Stmt>,
    pub parameters: Vec<Stmt>,
    pub transformed_parameters: Vec<Stmt>,
    pub model: Vec<Stmt>,
    pub generated_quantities: Vec<Stmt>,
}
