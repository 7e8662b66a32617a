//! Random variates of the families, from counter-based streams.

use jensen_math::rng::Stream;
use jensen_math::special;

pub(crate) fn normal(stream: &mut Stream) -> f64 {
    special::inv_phi(stream.uniform())
}

/// Returns the logarithm of a draw from Gamma(shape, 1).
///
/// For shapes of at least 1, it uses the method of Marsaglia and Tsang (2000). For smaller shapes, it uses `log
/// G(shape) = log G(shape + 1) + log(U) / shape`, which does not underflow for any shape.
pub(crate) fn log_gamma(shape: f64, stream: &mut Stream) -> f64 {
    if shape < 1.0 {
        let power = stream.uniform().ln() / shape;
        return power + log_gamma(shape + 1.0, stream);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(stream);
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let log_v = 3.0 * v.ln();
        if stream.uniform().ln() < 0.5 * x * x + d - d * log_v.exp() + d * log_v {
            return d.ln() + log_v;
        }
    }
}

pub(crate) fn log_dirichlet(parameters: &[f64], stream: &mut Stream, out: &mut [f64]) {
    for (x, &a) in out.iter_mut().zip(parameters) {
        *x = log_gamma(a, stream);
    }
    let total = special::log_sum_exp_slice(out);
    for x in out {
        *x -= total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jensen_math::rng::Purpose;
    use jensen_math::sum::Moments;

    #[test]
    fn log_gamma_has_its_moments() {
        // The moments are E log G = ψ(a) and Var log G = ψ′(a). The margin is 4 standard errors, for each of four
        // shapes.
        let mut stream = Stream::new(1, Purpose::new("test"), 0, 0);
        for shape in [0.002, 0.3, 1.0, 7.5] {
            let draws: Vec<f64> = (0..20_000).map(|_| log_gamma(shape, &mut stream)).collect();
            let moments = Moments::of(&draws);
            let error = (moments.mean() - special::digamma(shape)) / moments.standard_error();
            assert!(error.abs() < 4.0, "{shape}: {error}");
            let ratio = moments.variance() / special::trigamma(shape);
            assert!((0.9..1.1).contains(&ratio), "{shape}: {ratio}");
        }
        let mut out = [0.0; 3];
        log_dirichlet(&[0.5, 2.0, 1e-3], &mut stream, &mut out);
        let total: f64 = out.iter().map(|x| x.exp()).sum();
        assert!((total - 1.0).abs() < 1e-12);
    }
}
