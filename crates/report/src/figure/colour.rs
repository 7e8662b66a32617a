//! Colours, identified by their purpose. Each colour has one value for paper and light screens, and another value for
//! dark screens.

use std::fmt::Write;

use super::scene::Colour;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tint {
    Ink,
    Soft,
    Grid,
    Card,
    Series(usize),
    Good,
    Fair,
    Poor,
    Own([u8; 3]),
}

/// A row of the colour table. It contains the name of the colour in the style sheet of the page, its value on a light
/// background, and its value on a dark background.
type TintRow = (&'static str, [u8; 3], [u8; 3]);

const INK: TintRow = ("ink", [0x22, 0x22, 0x22], [0xe6, 0xe9, 0xec]);
const SOFT: TintRow = ("soft", [0x55, 0x55, 0x55], [0x9a, 0xa5, 0xb1]);
const GRID: TintRow = ("grid", [0xe2, 0xe2, 0xe2], [0x2c, 0x34, 0x3d]);
const CARD: TintRow = ("card", [0xff, 0xff, 0xff], [0x1a, 0x1f, 0x26]);
const GOOD: TintRow = ("good", [0x1f, 0x6d, 0x47], [0x62, 0xc3, 0x93]);
const FAIR: TintRow = ("fair", [0x8a, 0x5a, 0x00], [0xe0, 0xb2, 0x51]);
const POOR: TintRow = ("poor", [0xa8, 0x2f, 0x27], [0xf0, 0x85, 0x7b]);

/// Colours that readers with any type of colour vision can distinguish (Okabe and Ito 2008). Yellow and black are
/// replaced by brown and dark grey.
const SERIES: [TintRow; 8] = [
    ("s0", [0x00, 0x72, 0xb2], [0x6e, 0xa8, 0xe6]),
    ("s1", [0xd5, 0x5e, 0x00], [0xf0, 0x98, 0x5a]),
    ("s2", [0x00, 0x9e, 0x73], [0x5f, 0xc5, 0x9b]),
    ("s3", [0xcc, 0x79, 0xa7], [0xd9, 0x9c, 0xc0]),
    ("s4", [0xe6, 0x9f, 0x00], [0xf2, 0xbf, 0x4d]),
    ("s5", [0x56, 0xb4, 0xe9], [0x8f, 0xd0, 0xf5]),
    ("s6", [0x33, 0x33, 0x33], [0xd0, 0xd4, 0xd8]),
    ("s7", [0x8c, 0x56, 0x4b], [0xc4, 0x9a, 0x90]),
];

impl Tint {
    fn row(self) -> Option<&'static TintRow> {
        Some(match self {
            Self::Ink => &INK,
            Self::Soft => &SOFT,
            Self::Grid => &GRID,
            Self::Card => &CARD,
            Self::Series(number) => &SERIES[number % SERIES.len()],
            Self::Good => &GOOD,
            Self::Fair => &FAIR,
            Self::Poor => &POOR,
            Self::Own(_) => return None,
        })
    }

    pub fn faint(self, opacity: f64) -> Colour {
        Colour::from(self).with_opacity(opacity)
    }

    /// Returns the red, green and blue components of the colour for a light background. Files use these components.
    pub fn rgb(self) -> [u8; 3] {
        match self {
            Self::Own(rgb) => rgb,
            tint => tint.row().map_or([0; 3], |row| row.1),
        }
    }

    /// Returns the colour in the notation of SVG, for use in files.
    pub fn hex(self) -> String {
        hex(self.rgb())
    }

    /// Returns the colour in the notation of CSS, for use in pages. The style sheet of the page adapts it to the
    /// background.
    pub fn css(self) -> String {
        match self.row() {
            Some((name, ..)) => format!("var(--{name})"),
            None => self.hex(),
        }
    }
}

/// Returns the definitions of all colours as custom properties of a style sheet. The first text is for a light
/// background, and the second is for a dark background.
pub(crate) fn properties() -> [String; 2] {
    let rows = || {
        [INK, SOFT, GRID, CARD, GOOD, FAIR, POOR]
            .into_iter()
            .chain(SERIES)
    };
    let list = |colour: fn(&TintRow) -> [u8; 3]| {
        rows().fold(String::new(), |mut text, row| {
            let _ = write!(text, "--{}:{};", row.0, hex(colour(&row)));
            text
        })
    };
    [list(|row| row.1), list(|row| row.2)]
}

fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Equally spaced points of the colour map `viridis` of matplotlib, which is in the public domain.
const VIRIDIS: [[u8; 3]; 11] = [
    [68, 1, 84],
    [72, 36, 117],
    [65, 68, 135],
    [53, 95, 141],
    [42, 120, 142],
    [33, 145, 140],
    [34, 168, 132],
    [68, 191, 112],
    [122, 209, 81],
    [189, 223, 38],
    [253, 231, 37],
];

/// Returns the colour of a value between 0 and 1. A value outside this range has the colour of the nearest end, and NaN
/// is grey.
pub(super) fn of_share(share: f64) -> [u8; 3] {
    if share.is_nan() {
        return [0xbb, 0xbb, 0xbb];
    }
    let position = share.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
    let below = (position.floor() as usize).min(VIRIDIS.len() - 2);
    let part = position - below as f64;
    std::array::from_fn(|i| {
        let (a, b) = (
            f64::from(VIRIDIS[below][i]),
            f64::from(VIRIDIS[below + 1][i]),
        );
        (a + part * (b - a)).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_values_run_from_end_to_end() {
        assert_eq!(of_share(-1.0), VIRIDIS[0]);
        assert_eq!(of_share(0.5), VIRIDIS[5]);
        assert_eq!(of_share(2.0), VIRIDIS[10]);
        assert_eq!(of_share(0.05), [70, 19, 101]);
        assert_eq!(of_share(f64::NAN), [0xbb; 3]);
    }

    #[test]
    fn every_tint_of_a_page_is_a_property_of_its_style_sheet() {
        let [light, dark] = properties();
        for tint in [
            Tint::Ink,
            Tint::Soft,
            Tint::Grid,
            Tint::Card,
            Tint::Series(13),
            Tint::Good,
            Tint::Fair,
            Tint::Poor,
        ] {
            let name = tint.css().replace("var(", "").replace(')', ":");
            assert!(light.contains(&format!("{name}{};", tint.hex())), "{name}");
            assert!(dark.contains(&name), "{name}");
        }
        assert_eq!(Tint::Own([255, 0, 1]).css(), "#ff0001");
    }
}
