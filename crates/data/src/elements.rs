//! Elements of binary arrays, as bytes in a file.

/// The storage of an array's elements in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Element {
    /// Unsigned bytes: grey levels, labels, truth values.
    Byte,
    /// Numbers of `width` bytes.
    Number {
        /// Number of bytes per element.
        width: usize,
        /// Converts the bytes of an element to a number.
        convert: fn(&[u8]) -> f64,
    },
}

impl Element {
    /// Returns the number of bytes per element.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Number { width, .. } => *width,
        }
    }

    /// Converts the bytes of one element to a number.
    pub(crate) fn number(&self, bytes: &[u8]) -> f64 {
        match self {
            Self::Byte => f64::from(bytes[0]),
            Self::Number { convert, .. } => convert(bytes),
        }
    }
}

/// A file's description of its array.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    /// Size along each dimension.
    pub(crate) shape: Vec<usize>,
    /// The type of its elements.
    pub(crate) element: Element,
    /// The offset of the first element.
    pub(crate) start: usize,
}

/// Describes the elements of a primitive type in a byte order.
macro_rules! element {
    ($t:ty, $from:ident) => {
        $crate::elements::Element::Number {
            width: size_of::<$t>(),
            convert: |b| <$t>::$from(b.try_into().unwrap_or_default()) as f64,
        }
    };
}
pub(crate) use element;
