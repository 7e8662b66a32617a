//! The tokens of a program.

use crate::source::Span;

/// A token and its position. The text of the token is in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The kind of the token.
    pub kind: TokenKind,
    /// The location of the token in the source.
    pub span: Span,
}

/// The kind of a token. Whitespace and comments produce no tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum TokenKind {
    /// `/*` and the rest of the file.
    UnclosedComment,
    /// `#include` and the rest of the line.
    Include,
    /// `#` and the rest of the line, which is a comment in old programs.
    Hash,

    Ident,
    Int,
    Real,
    Imag,
    Str,

    Functions,
    Data,
    Transformed,
    Parameters,
    Model,
    Generated,
    Quantities,
    For,
    While,
    If,
    Else,
    In,
    Break,
    Continue,
    Return,
    Profile,
    Print,
    Reject,
    FatalError,
    Target,
    Jacobian,
    Void,
    IntType,
    RealType,
    Complex,
    Vector,
    RowVector,
    Matrix,
    ComplexVector,
    ComplexRowVector,
    ComplexMatrix,
    Array,
    Tuple,
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
    Lower,
    Upper,
    Offset,
    Multiplier,

    LBrace,
    RBrace,
    LParen,
    RParen,
    LBracket,
    RBracket,
    Comma,
    Semi,
    Colon,
    Bar,
    Question,
    Tilde,
    Prime,
    Bang,
    Assign,
    PlusAssign,
    MinusAssign,
    TimesAssign,
    DivideAssign,
    EltTimesAssign,
    EltDivideAssign,
    ArrowAssign,
    Plus,
    Minus,
    Times,
    Divide,
    IntDivide,
    Modulo,
    LeftDivide,
    EltTimes,
    EltDivide,
    Hat,
    EltPow,
    EqEq,
    NotEq,
    Less,
    LessEq,
    Greater,
    GreaterEq,
    AndAnd,
    OrOr,

    /// The end of the program. There is exactly one such token.
    Eof,
}

impl TokenKind {
    pub(super) fn of_word(word: &str) -> Self {
        use TokenKind::*;
        match word {
            "functions" => Functions,
            "data" => Data,
            "transformed" => Transformed,
            "parameters" => Parameters,
            "model" => Model,
            "generated" => Generated,
            "quantities" => Quantities,
            "for" => For,
            "while" => While,
            "if" => If,
            "else" => Else,
            "in" => In,
            "break" => Break,
            "continue" => Continue,
            "return" => Return,
            "profile" => Profile,
            "print" => Print,
            "reject" => Reject,
            "fatal_error" => FatalError,
            "target" => Target,
            "jacobian" => Jacobian,
            "void" => Void,
            "int" => IntType,
            "real" => RealType,
            "complex" => Complex,
            "vector" => Vector,
            "row_vector" => RowVector,
            "matrix" => Matrix,
            "complex_vector" => ComplexVector,
            "complex_row_vector" => ComplexRowVector,
            "complex_matrix" => ComplexMatrix,
            "array" => Array,
            "tuple" => Tuple,
            "ordered" => Ordered,
            "positive_ordered" => PositiveOrdered,
            "simplex" => Simplex,
            "unit_vector" => UnitVector,
            "sum_to_zero_vector" => SumToZeroVector,
            "sum_to_zero_matrix" => SumToZeroMatrix,
            "cholesky_factor_corr" => CholeskyFactorCorr,
            "cholesky_factor_cov" => CholeskyFactorCov,
            "corr_matrix" => CorrMatrix,
            "cov_matrix" => CovMatrix,
            "column_stochastic_matrix" => ColumnStochastic,
            "row_stochastic_matrix" => RowStochastic,
            "lower" => Lower,
            "upper" => Upper,
            "offset" => Offset,
            "multiplier" => Multiplier,
            _ => Ident,
        }
    }

    /// Returns whether this token is a word that cannot be a name.
    pub fn is_keyword(self) -> bool {
        (TokenKind::Functions as u8..=TokenKind::Multiplier as u8).contains(&(self as u8))
    }

    /// Returns whether a type starts with this token.
    pub fn starts_type(self) -> bool {
        (TokenKind::Void as u8..=TokenKind::RowStochastic as u8).contains(&(self as u8))
    }

    /// Returns the name that messages use for the token.
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

/// Words of C++ and of Stan's output that must not be used as names of variables or functions.
pub const RESERVED: [&str; 12] = [
    "true", "false", "repeat", "until", "then", "typedef", "struct", "var", "export", "extern",
    "static", "auto",
];
