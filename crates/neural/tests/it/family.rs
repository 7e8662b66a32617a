//! Tests of the families of q(z | x): bounds compared with numerical integrals, and stored architectures.

use jensen_neural::{
    Activation, Architecture, Autoencoder, FloatRecords, Likelihood, PosteriorFamily, Tensor,
};

use jensen_math::simd::Simd;

const FAMILIES: [PosteriorFamily; 4] = [
    PosteriorFamily::Gaussian,
    PosteriorFamily::Laplace,
    PosteriorFamily::Logistic,
    PosteriorFamily::StudentT { degrees: 5 },
];

/// The mean and the standard deviation of q(z | x), and the weight and the bias of the decoder's logit.
const CODE: (f64, f64) = (0.6, 1.3);
const LOGIT: (f64, f64) = (2.0, 0.4);

fn architecture(posterior: PosteriorFamily) -> Architecture {
    Architecture {
        posterior,
        encoder: Vec::new(),
        decoder: Vec::new(),
        activation: Activation::Identity,
        ..Architecture::paper(1, 1, 1, Likelihood::Bernoulli)
    }
}

fn networks(posterior: PosteriorFamily) -> Autoencoder {
    let architecture = architecture(posterior);
    let tensors = architecture.specs().into_iter().map(|spec| {
        let value = match spec.name.as_str() {
            "encoder.mean.bias" => CODE.0,
            "encoder.log_variance.bias" => 2.0 * CODE.1.ln(),
            "decoder.logits.weight" => LOGIT.0,
            "decoder.logits.bias" => LOGIT.1,
            _ => 0.0,
        };
        let data = vec![value as f32; spec.len()];
        Tensor { spec, data }
    });
    let tensors = tensors.collect();
    Autoencoder::new(architecture, tensors, Simd::detect()).unwrap()
}

/// Integrates over z by trapezoids with 2 million nodes from −1000 to 1000. Beyond them, Student's t distribution with 5
/// degrees of freedom has less than 1e-12 of E z².
fn integral(f: impl Fn(f64) -> f64) -> f64 {
    const STEP: f64 = 1e-3;
    let nodes = (-1_000_000..=1_000_000).map(|k| f64::from(k) * STEP);
    STEP * nodes.map(f).sum::<f64>()
}

fn log_prior(z: f64) -> f64 {
    -0.5 * (z * z + (2.0 * std::f64::consts::PI).ln())
}

/// Computes log p(x = 1 | z).
fn log_likelihood(z: f64) -> f64 {
    let logit = LOGIT.0 * z + LOGIT.1;
    logit.min(0.0) - (-logit.abs()).exp().ln_1p()
}

fn log_guide(family: PosteriorFamily, z: f64) -> f64 {
    family.log_density((z - CODE.0) / CODE.1) - CODE.1.ln()
}

#[test]
fn bounds_are_those_of_numerical_integration() {
    let records = FloatRecords {
        values: vec![1.0; 500],
        width: 1,
    };
    let bound_of = |family| {
        integral(|z| {
            let guide = log_guide(family, z);
            guide.exp() * (log_likelihood(z) + log_prior(z) - guide)
        })
    };
    let usual = 0.5 * (CODE.0.powi(2) + CODE.1.powi(2) - 1.0) - CODE.1.ln();
    for family in FAMILIES {
        let exact = bound_of(family);
        let found = networks(family).bound(&records, 200, 3).unwrap();
        assert!(
            (found.bound - exact).abs() < 4.0 * found.standard_error,
            "{family:?}: {} ± {} for {exact}",
            found.bound,
            found.standard_error
        );
        let divergence = integral(|z| {
            let guide = log_guide(family, z);
            guide.exp() * (guide - log_prior(z))
        });
        assert!(
            (found.divergence - divergence).abs() < 1e-5,
            "{family:?}: {} for {divergence}",
            found.divergence
        );
        // The divergence tells the families apart.
        let apart = divergence - usual;
        assert_eq!(apart > 0.01, family != PosteriorFamily::Gaussian, "{apart}");
    }
}

#[test]
fn importance_weights_give_the_marginal_likelihood_under_every_family() {
    let records = FloatRecords {
        values: vec![1.0; 300],
        width: 1,
    };
    let exact = integral(|z| (log_likelihood(z) + log_prior(z)).exp()).ln();
    let of_bound = |family| {
        integral(|z| {
            let guide = log_guide(family, z);
            guide.exp() * (log_likelihood(z) + log_prior(z) - guide)
        })
    };
    for family in FAMILIES {
        let mut networks = networks(family);
        let many = networks.importance_bound(&records, 2000, 5).unwrap();
        // The bias of the logarithm of a mean over 2000 draws is about the squared error of a record over 2.
        let error = many.monte_carlo_error;
        assert!(
            (many.mean - exact).abs() < 4.0 * error + 1e-3,
            "{family:?}: {} ± {error} for {exact}",
            many.mean
        );
        // With a single draw, the importance-weighted bound is the lower bound itself, with log q(z | x) at the draw.
        let (mut sum, mut squares) = (0.0, 0.0);
        const SEEDS: u64 = 60;
        for seed in 0..SEEDS {
            let bound = networks.importance_bound(&records, 1, seed).unwrap().mean;
            sum += bound / SEEDS as f64;
            squares += bound * bound / SEEDS as f64;
        }
        let error = ((squares - sum * sum) / (SEEDS - 1) as f64).sqrt();
        let exact = of_bound(family);
        assert!(
            (sum - exact).abs() < 4.0 * error,
            "{family:?}: {sum} ± {error} for {exact}"
        );
    }
}

#[test]
fn stored_architectures_keep_the_family() {
    for family in FAMILIES {
        let architecture = architecture(family);
        let text = serde_json::to_string(&architecture).unwrap();
        // Files of fits without a family are those of normal ones.
        let named = text.contains("posterior");
        assert_eq!(named, family != PosteriorFamily::Gaussian, "{text}");
        let read: Architecture = serde_json::from_str(&text).unwrap();
        assert_eq!(read, architecture);
    }
    let endless = architecture(PosteriorFamily::StudentT { degrees: 4 });
    let error = endless.check().unwrap_err().to_string();
    assert!(error.contains("5 to 1000"), "{error}");
}
