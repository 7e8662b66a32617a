//! Points that fill a cube evenly.

/// Iterates over the points of a rank-one lattice in the unit cube. The lattice is based on generalised golden ratios
/// (Roberts 2018). Every call returns the same points, and for every n the first n points are evenly spread.
pub fn lattice(dimensions: usize) -> impl Iterator<Item = Vec<f64>> {
    let mut ratio = 1.5f64;
    for _ in 0..60 {
        ratio = (1.0 + ratio).powf(1.0 / (dimensions as f64 + 1.0));
    }
    let steps: Vec<f64> = (1..=dimensions).map(|k| ratio.powi(-(k as i32))).collect();
    (1..).map(move |n| {
        let at = |step: &f64| (0.5 + f64::from(n) * step).fract();
        steps.iter().map(at).collect()
    })
}
