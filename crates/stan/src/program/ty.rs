//! The types of expressions, and their levels.

use std::fmt;

/// A type without sizes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `int`
    Int,
    /// `real`
    Real,
    /// `complex`
    Complex,
    /// `vector`, a column
    Vector,
    /// `row_vector`
    RowVector,
    /// `matrix`
    Matrix,
    /// `complex_vector`
    ComplexVector,
    /// `complex_row_vector`
    ComplexRowVector,
    /// `complex_matrix`
    ComplexMatrix,
    /// An array of elements of the given type. `array[,] int` is `Array(Array(Int))`.
    Array(Box<Type>),
    /// `tuple(…)`. A tuple variable has at least two components.
    Tuple(Vec<Type>),
    /// The result of a function without a return value.
    Void,
    /// The type of a function passed as an argument.
    Function(Box<FunctionType>),
}

/// The parameter types and the result type of a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FunctionType {
    /// The parameter types, in order.
    pub params: Vec<ParamType>,
    /// The result type, which is [`Type::Void`] for a function that is used as a statement.
    pub result: Type,
}

/// A parameter of a function type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParamType {
    /// The type of the parameter.
    pub ty: Type,
    /// [`Level::Data`] if the arguments for this parameter must not depend on the model's parameters (the `data`
    /// qualifier).
    pub level: Level,
}

impl Type {
    /// Returns the type of an array with `depth` dimensions whose elements have this type.
    pub fn array(self, depth: usize) -> Type {
        (0..depth).fold(self, |ty, _| Type::Array(Box::new(ty)))
    }

    /// Returns the number of array dimensions, and the type of their elements.
    pub fn unwind(&self) -> (usize, &Type) {
        let (mut depth, mut ty) = (0, self);
        while let Type::Array(inner) = ty {
            depth += 1;
            ty = inner;
        }
        (depth, ty)
    }

    /// Returns whether the type is `int`, `real` or `complex`.
    pub fn is_scalar(&self) -> bool {
        matches!(self, Type::Int | Type::Real | Type::Complex)
    }

    /// Returns whether the type is `int` or an array of `int`s.
    pub fn is_int(&self) -> bool {
        *self.unwind().1 == Type::Int
    }

    /// Returns whether every scalar in the type is an `int`. A value of such a type never depends on parameters.
    pub fn is_discrete(&self) -> bool {
        match self.unwind().1 {
            Type::Int => true,
            Type::Tuple(parts) => parts.iter().all(Type::is_discrete),
            _ => false,
        }
    }

    /// Returns whether the type is a vector, row vector or matrix, real or complex.
    pub fn is_linear_algebra(&self) -> bool {
        use Type::*;
        matches!(
            self,
            Vector | RowVector | Matrix | ComplexVector | ComplexRowVector | ComplexMatrix
        )
    }

    /// Returns whether the type contains complex numbers.
    pub fn has_complex(&self) -> bool {
        use Type::*;
        match self.unwind().1 {
            Complex | ComplexVector | ComplexRowVector | ComplexMatrix => true,
            Tuple(parts) => parts.iter().any(Type::has_complex),
            _ => false,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Int => f.write_str("int"),
            Type::Real => f.write_str("real"),
            Type::Complex => f.write_str("complex"),
            Type::Vector => f.write_str("vector"),
            Type::RowVector => f.write_str("row_vector"),
            Type::Matrix => f.write_str("matrix"),
            Type::ComplexVector => f.write_str("complex_vector"),
            Type::ComplexRowVector => f.write_str("complex_row_vector"),
            Type::ComplexMatrix => f.write_str("complex_matrix"),
            Type::Array(_) => {
                let (depth, inner) = self.unwind();
                write!(f, "array[{}] {inner}", ",".repeat(depth - 1))
            }
            Type::Tuple(parts) => {
                f.write_str("tuple(")?;
                for (i, part) in parts.iter().enumerate() {
                    write!(f, "{}{part}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
            Type::Void => f.write_str("void"),
            Type::Function(function) => write!(f, "{function}"),
        }
    }
}

impl fmt::Display for FunctionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (i, param) in self.params.iter().enumerate() {
            write!(f, "{}{param}", if i == 0 { "" } else { ", " })?;
        }
        write!(f, ") => {}", self.result)
    }
}

impl fmt::Display for ParamType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = self.level == Level::Data && !self.ty.is_discrete();
        write!(f, "{}{}", if data { "data " } else { "" }, self.ty)
    }
}

/// Whether a value can depend on parameters. `Data` is less than `Param`, so the level of a combination is the maximum
/// of the levels.
///
/// The level is static, as in Stan itself. A local real variable of the model block is `Param` even if only data are
/// ever assigned to it, and a real argument of a function is `Param` unless it is declared `data`. An evaluator that
/// knows the value of a variable may be more precise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The value is known as soon as the data are known.
    Data,
    /// The value may depend on parameters.
    Param,
}
