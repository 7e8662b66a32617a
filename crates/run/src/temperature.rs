//! Temperature schedules. A schedule is a function that maps the number of completed passes to the temperature.

/// Returns the temperature after `pass` passes of a schedule that decreases linearly from `from` to 1 in `passes`
/// passes.
pub fn annealed(from: f64, passes: f64, pass: f64) -> f64 {
    let done = if passes > 0.0 {
        (pass / passes).min(1.0)
    } else {
        1.0
    };
    from + (1.0 - from) * done
}

/// Returns the temperature after `pass` passes of a piecewise linear schedule. The pairs (passes, temperature) in
/// `points` must be sorted by their number of passes. The schedule interpolates linearly between these points and is
/// constant before the first point and after the last point. Without any points, the temperature is 1.
pub fn interpolated(points: &[(f64, f64)], pass: f64) -> f64 {
    let after = points.partition_point(|point| point.0 <= pass);
    match (after.checked_sub(1).map(|i| points[i]), points.get(after)) {
        (None, Some(&(_, t))) | (Some((_, t)), None) => t,
        (Some((a, ta)), Some(&(b, tb))) => ta + (tb - ta) * (pass - a) / (b - a),
        (None, None) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperatures_fall_and_interpolate() {
        for (pass, t) in [(0.0, 5.0), (1.0, 3.0), (2.0, 1.0), (7.0, 1.0)] {
            assert_eq!(annealed(5.0, 2.0, pass), t);
        }
        assert_eq!(annealed(5.0, 0.0, 0.0), 1.0);
        let points = [(1.0, 4.0), (3.0, 2.0), (4.0, 1.0)];
        for (pass, t) in [
            (0.0, 4.0),
            (1.0, 4.0),
            (2.0, 3.0),
            (3.5, 1.5),
            (4.0, 1.0),
            (9.0, 1.0),
        ] {
            assert_eq!(interpolated(&points, pass), t);
        }
        assert_eq!(interpolated(&[], 1.0), 1.0);
    }
}
