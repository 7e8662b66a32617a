//! The elements of binary arrays, as they are encoded in files.

#[derive(Clone, Copy, Debug)]
pub(crate) enum Element {
    /// Unsigned bytes, such as grey levels, labels and booleans.
    Byte,
    Number {
        width: usize,
        convert: fn(&[u8]) -> f64,
    },
}

impl Element {
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Number { width, .. } => *width,
        }
    }

    pub(crate) fn number(&self, bytes: &[u8]) -> f64 {
        match self {
            Self::Byte => f64::from(bytes[0]),
            Self::Number { convert, .. } => convert(bytes),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) shape: Vec<usize>,
    pub(crate) element: Element,
    pub(crate) start: usize,
}

macro_rules! element {
    ($t:ty, $from:ident) => {
        $crate::elements::Element::Number {
            width: size_of::<$t>(),
            convert: |b| <$t>::$from(b.try_into().unwrap_or_default()) as f64,
        }
    };
}
pub(crate) use element;
