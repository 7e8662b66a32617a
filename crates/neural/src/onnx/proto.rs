//! The messages of the ONNX format that [`encode`](super::encode) writes, with the field numbers of `onnx.proto3` in
//! version 1.11.

use prost::{Message, Oneof};

/// The version of the format.
pub(super) const IR_VERSION: i64 = 8;

/// The version of the operators. It is the first in which a scatter can add.
pub(super) const OPERATORS: i64 = 16;

/// A type of elements, with the number that the format gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    /// Single precision.
    Float = 1,
    /// Integers of 64 bits.
    Integer = 7,
    /// Truth values.
    Truth = 9,
    /// Double precision.
    Double = 11,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Model {
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    #[prost(string, tag = "2")]
    pub producer_name: String,
    #[prost(string, tag = "3")]
    pub producer_version: String,
    #[prost(string, tag = "6")]
    pub doc_string: String,
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphOf>,
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSet>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OperatorSet {
    #[prost(string, tag = "1")]
    pub domain: String,
    #[prost(int64, tag = "2")]
    pub version: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GraphOf {
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeOf>,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorOf>,
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NodeOf {
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    #[prost(string, tag = "4")]
    pub op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int64, tag = "3")]
    pub i: i64,
    #[prost(bytes = "vec", tag = "4")]
    pub s: Vec<u8>,
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    #[prost(int32, tag = "20")]
    pub kind: i32,
}

impl Attribute {
    pub fn integer(name: &str, i: i64) -> Self {
        Self {
            name: name.to_owned(),
            i,
            kind: 2,
            ..Self::default()
        }
    }

    pub fn text(name: &str, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            s: text.as_bytes().to_vec(),
            kind: 3,
            ..Self::default()
        }
    }

    pub fn integers(name: &str, ints: &[i64]) -> Self {
        Self {
            name: name.to_owned(),
            ints: ints.to_vec(),
            kind: 7,
            ..Self::default()
        }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorOf {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    #[prost(string, tag = "8")]
    pub name: String,
    /// The elements in row-major order and little-endian.
    #[prost(bytes = "vec", tag = "9")]
    pub raw_data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueInfo {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub kind: Option<TypeOf>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TypeOf {
    #[prost(message, optional, tag = "1")]
    pub tensor: Option<TensorType>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorType {
    #[prost(int32, tag = "1")]
    pub element: i32,
    #[prost(message, optional, tag = "2")]
    pub shape: Option<ShapeOf>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ShapeOf {
    #[prost(message, repeated, tag = "1")]
    pub dims: Vec<Dimension>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Dimension {
    #[prost(oneof = "Extent", tags = "1, 2")]
    pub extent: Option<Extent>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Extent {
    #[prost(int64, tag = "1")]
    Known(i64),
    #[prost(string, tag = "2")]
    Named(String),
}
