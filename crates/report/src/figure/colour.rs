//! Colours of series and of values.

use super::scene::Colour;

/// Colours that people with any colour vision tell apart (Okabe and Ito 2008, with dark grey and brown for yellow and black).
const SERIES: [Colour; 8] = [
    Colour::new(0x00, 0x72, 0xb2),
    Colour::new(0xd5, 0x5e, 0x00),
    Colour::new(0x00, 0x9e, 0x73),
    Colour::new(0xcc, 0x79, 0xa7),
    Colour::new(0xe6, 0x9f, 0x00),
    Colour::new(0x56, 0xb4, 0xe9),
    Colour::new(0x33, 0x33, 0x33),
    Colour::new(0x8c, 0x56, 0x4b),
];

/// The colour of the series of this number.
pub(super) fn of_series(number: usize) -> Colour {
    SERIES[number % SERIES.len()]
}

/// Points of matplotlib's `viridis` (released to the public domain) at equal distances.
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

/// The colour of a share between 0 and 1; what is outside takes that of the nearer end, NaN is grey.
pub(super) fn of_share(share: f64) -> [u8; 3] {
    if share.is_nan() {
        return [0xbb, 0xbb, 0xbb];
    }
    let place = share.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
    let below = (place.floor() as usize).min(VIRIDIS.len() - 2);
    let part = place - below as f64;
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
}
