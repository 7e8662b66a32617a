//! Tokens.

use logos::Logos;

use crate::source::Span;

/// A token and where it stands; its text is read from the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it stands.
    pub span: Span,
}

/// Kinds of token. Whitespace and comments leave none.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[logos(skip r"[ \t\r\n\x0c]+")]
#[logos(skip(r"//[^\n]*", allow_greedy = true))]
#[allow(missing_docs)]
pub enum TokenKind {
    #[regex(r"/\*([^*]|\*+[^*/])*\*+/", logos::skip)]
    #[regex(r"/\*([^*]|\*+[^*/])*\**")]
    UnclosedComment,
    #[regex(r"#include[^\n]*", allow_greedy = true, priority = 20)]
    Include,
    /// `#` and the rest of the line: the comments of old programs.
    #[regex(r"#[^\n]*", allow_greedy = true, priority = 2)]
    Hash,

    #[regex(r"[A-Za-z][A-Za-z0-9_]*", priority = 2)]
    Ident,
    #[regex(r"[0-9]+(_[0-9]+)*")]
    Int,
    #[regex(r"[0-9]+(_[0-9]+)*\.([0-9]+(_[0-9]+)*)?([eE][+-]?[0-9]+)?")]
    #[regex(r"\.[0-9]+(_[0-9]+)*([eE][+-]?[0-9]+)?")]
    #[regex(r"[0-9]+(_[0-9]+)*[eE][+-]?[0-9]+")]
    Real,
    #[regex(r"([0-9]+(_[0-9]+)*\.?([0-9]+(_[0-9]+)*)?|\.[0-9]+(_[0-9]+)*)([eE][+-]?[0-9]+)?i")]
    Imag,
    #[regex(r#""[^"\n]*""#)]
    Str,

    #[token("functions")]
    Functions,
    #[token("data")]
    Data,
    #[token("transformed")]
    Transformed,
    #[token("parameters")]
    Parameters,
    #[token("model")]
    Model,
    #[token("generated")]
    Generated,
    #[token("quantities")]
    Quantities,
    #[token("for")]
    For,
    #[token("while")]
    While,
    #[token("if")]
    If,
    #[token("else")]
    Else,
    #[token("in")]
    In,
    #[token("break")]
    Break,
    #[token("continue")]
    Continue,
    #[token("return")]
    Return,
    #[token("profile")]
    Profile,
    #[token("print")]
    Print,
    #[token("reject")]
    Reject,
    #[token("fatal_error")]
    FatalError,
    #[token("target")]
    Target,
    #[token("jacobian")]
    Jacobian,
    #[token("void")]
    Void,
    #[token("int")]
    IntType,
    #[token("real")]
    RealType,
    #[token("complex")]
    Complex,
    #[token("vector")]
    Vector,
    #[token("row_vector")]
    RowVector,
    #[token("matrix")]
    Matrix,
    #[token("complex_vector")]
    ComplexVector,
    #[token("complex_row_vector")]
    ComplexRowVector,
    #[token("complex_matrix")]
    ComplexMatrix,
    #[token("array")]
    Array,
    #[token("tuple")]
    Tuple,
    #[token("ordered")]
    Ordered,
    #[token("positive_ordered")]
    PositiveOrdered,
    #[token("simplex")]
    Simplex,
    #[token("unit_vector")]
    UnitVector,
    #[token("sum_to_zero_vector")]
    SumToZeroVector,
    #[token("sum_to_zero_matrix")]
    SumToZeroMatrix,
    #[token("cholesky_factor_corr")]
    CholeskyFactorCorr,
    #[token("cholesky_factor_cov")]
    CholeskyFactorCov,
    #[token("corr_matrix")]
    CorrMatrix,
    #[token("cov_matrix")]
    CovMatrix,
    #[token("column_stochastic_matrix")]
    ColumnStochastic,
    #[token("row_stochastic_matrix")]
    RowStochastic,
    #[token("lower")]
    Lower,
    #[token("upper")]
    Upper,
    #[token("offset")]
    Offset,
    #[token("multiplier")]
    Multiplier,

    #[token("{")]
    LBrace,
    #[token("}")]
    RBrace,
    #[token("(")]
    LParen,
    #[token(")")]
    RParen,
    #[token("[")]
    LBracket,
    #[token("]")]
    RBracket,
    #[token(",")]
    Comma,
    #[token(";")]
    Semi,
    #[token(":")]
    Colon,
    #[token("|")]
    Bar,
    #[token("?")]
    Question,
    #[token("~")]
    Tilde,
    #[token("'")]
    Prime,
    #[token("!")]
    Bang,
    #[token("=")]
    Assign,
    #[token("+=")]
    PlusAssign,
    #[token("-=")]
    MinusAssign,
    #[token("*=")]
    TimesAssign,
    #[token("/=")]
    DivideAssign,
    #[token(".*=")]
    EltTimesAssign,
    #[token("./=")]
    EltDivideAssign,
    #[token("<-")]
    ArrowAssign,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Times,
    #[token("/")]
    Divide,
    #[token("%/%")]
    IntDivide,
    #[token("%")]
    Modulo,
    #[token("\\")]
    LeftDivide,
    #[token(".*")]
    EltTimes,
    #[token("./")]
    EltDivide,
    #[token("^")]
    Hat,
    #[token(".^")]
    EltPow,
    #[token("==")]
    EqEq,
    #[token("!=")]
    NotEq,
    #[token("<")]
    Less,
    #[token("<=")]
    LessEq,
    #[token(">")]
    Greater,
    #[token(">=")]
    GreaterEq,
    #[token("&&")]
    AndAnd,
    #[token("||")]
    OrOr,

    /// End of the program, one of them.
    Eof,
}

impl TokenKind {
    /// Whether this is a word that cannot be used as a name.
    pub fn is_keyword(self) -> bool {
        (TokenKind::Functions as u8..=TokenKind::Multiplier as u8).contains(&(self as u8))
    }

    /// Whether a type starts here.
    pub fn starts_type(self) -> bool {
        (TokenKind::Void as u8..=TokenKind::RowStochastic as u8).contains(&(self as u8))
    }

    /// How messages name it.
    pub fn describe(self) -> &'static str {
        use TokenKind::*;
        match self {
            Ident => "a name",
            Int => "an integer",
            Real => "a number",
            Imag => "an imaginary number",
            Str => "a string",
            LBrace => "`{`",
            RBrace => "`}`",
            LParen => "`(`",
            RParen => "`)`",
            LBracket => "`[`",
            RBracket => "`]`",
            Comma => "`,`",
            Semi => "`;`",
            Colon => "`:`",
            Bar => "`|`",
            Assign => "`=`",
            In => "`in`",
            Greater => "`>`",
            Less => "`<`",
            Upper => "`upper`",
            Lower => "`lower`",
            Offset => "`offset`",
            Multiplier => "`multiplier`",
            Parameters => "`parameters`",
            Quantities => "`quantities`",
            Question => "`?`",
            Eof => "the end of the program",
            _ => "this",
        }
    }
}

/// Words of C++ and of Stan's output that no variable or function may be called.
pub const RESERVED: [&str; 12] = [
    "true", "false", "repeat", "until", "then", "typedef", "struct", "var", "export", "extern",
    "static", "auto",
];
