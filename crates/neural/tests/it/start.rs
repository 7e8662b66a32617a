//! Tests of the start of training. At the start, outputs are at the means of the data and do not yet depend on the
//! latent values.

use jensen_math::simd::Simd;
use jensen_neural::{
    Architecture, FloatRecords, Likelihood, Optimiser, Tensor, TrainSettings, Trainer,
};
use jensen_run::{Budget, Control, Identity, run};

/// Returns records whose first value is always 0, whose second value is always 1, and whose third value is 1 in every
/// fourth record.
fn records() -> FloatRecords<Vec<f32>> {
    let row = |i: usize| [0.0, 1.0, f32::from(u8::from(i.is_multiple_of(4)))];
    FloatRecords {
        values: (0..200).flat_map(row).collect(),
        width: 3,
    }
}

fn start(likelihood: Likelihood, initial_sd: Option<f64>) -> impl Fn(&str) -> Vec<f32> {
    let architecture = Architecture::paper(3, 2, 50, likelihood);
    let (encoder, decoder) = (architecture.encoder(), architecture.decoder());
    let settings = TrainSettings {
        optimiser: Optimiser::Sgd { step: 0.0 },
        initial_sd,
        ..TrainSettings::default()
    };
    let (simd, data) = (Simd::detect(), records());
    let mut trainer = Trainer::new(&encoder, &decoder, settings, &data, None, simd).unwrap();
    let identity = Identity {
        algorithm: "test".into(),
        settings: serde_json::json!({}),
        seed: 0,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: simd.name().into(),
    };
    let mut silent = jensen_run::Silent;
    let mut control = Control::new(Budget::iterations(1), &|| 0.0, &mut silent);
    let trained = run(&mut trainer, &identity, &mut control)
        .unwrap()
        .output
        .unwrap();
    move |name: &str| {
        let tensor: Option<&Tensor> = trained.tensors.iter().find(|t| t.spec.name == name);
        tensor.unwrap_or_else(|| panic!("{name}")).data.clone()
    }
}

fn spread(weights: &[f32]) -> f64 {
    let squares = weights.iter().map(|&w| f64::from(w).powi(2));
    (squares.sum::<f64>() / weights.len() as f64).sqrt()
}

#[test]
fn outputs_begin_at_the_means_of_the_data() {
    let at = start(Likelihood::Bernoulli, None);
    let bias = at("decoder.logits.bias");
    // Half a record of each kind is added to the 200 records.
    let odds = [(0.5, 200.5), (200.5, 0.5), (50.5, 150.5)].map(|(a, b): (f64, f64)| (a / b).ln());
    for (bias, odds) in bias.iter().zip(odds) {
        assert!((f64::from(*bias) - odds).abs() < 1e-4, "{bias} {odds}");
    }
    // The initial weights of the heads have a tenth of the usual spread 1/√50.
    let heads = spread(&at("decoder.logits.weight"));
    assert!((0.01..0.02).contains(&heads), "{heads}");
    // Hidden layers have their usual spread.
    let hidden = spread(&at("decoder.0.weight"));
    assert!((0.5..0.9).contains(&hidden), "{hidden}");
    let at = start(Likelihood::Gaussian { bounded: false }, None);
    let bias = at("decoder.mean.bias");
    for (bias, mean) in bias.iter().zip([0.0, 1.0, 0.25]) {
        assert!((bias - mean).abs() < 1e-6, "{bias} {mean}");
    }
    assert_eq!(at("decoder.log_variance.bias"), [0.0; 3]);
}

#[test]
fn a_given_spread_is_that_of_all_weights() {
    let at = start(Likelihood::Bernoulli, Some(0.3));
    assert!(at("decoder.logits.bias").iter().all(|b| b.abs() < 1.5));
    let heads = spread(&at("decoder.logits.weight"));
    assert!((0.25..0.36).contains(&heads), "{heads}");
}
