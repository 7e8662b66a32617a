//! An auto-encoder for images of small digits. The example trains the model, prints the ELBO of held-out digits,
//! encodes one digit, draws new digits and stores the weights.
//!
//! `cargo run --release -p jensen --example autoencoder`

use std::path::PathBuf;

use jensen::data::Rows;
use jensen::math::simd::Simd;
use jensen::run::{Budget, Control, Identity, Record, run};
use jensen::vae::{
    Architecture, Autoencoder, Likelihood, Optimiser, Records, RowRecords, Selection,
    TrainSettings, Trainer, check_values, split,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../data/digits/digits-idx3-ubyte.gz");
    let rows = Rows::open(&file)?;
    check_values(&rows, Likelihood::Bernoulli)?;
    let records = RowRecords(&rows);
    let (train, apart) = split(records.len(), 0.1, 1);
    let part = |indices| Selection {
        records: &records,
        indices,
    };
    let (train, apart) = (part(train), part(apart));

    let architecture = Architecture::paper(records.width(), 4, 100, Likelihood::Bernoulli);
    let settings = TrainSettings {
        optimiser: Optimiser::adam(0.003),
        patience: Some(20),
        seed: 1,
        ..TrainSettings::default()
    };
    let (encoder, decoder) = (architecture.encoder(), architecture.decoder());
    let simd = Simd::detect();
    let mut trainer = Trainer::new(
        &encoder,
        &decoder,
        settings.clone(),
        &train,
        Some(&apart),
        simd,
    )?;

    let mut trace: Vec<Record> = Vec::new();
    let mut control = Control::new(Budget::iterations(100), &|| 0.0, &mut trace);
    let identity = Identity {
        algorithm: "aevb".to_owned(),
        settings: serde_json::to_value(&settings)?,
        seed: settings.seed,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: simd.name().to_owned(),
    };
    let outcome = run(&mut trainer, &identity, &mut control)?;
    println!("{} after {} passes", outcome.status, trace.len());
    let trained = outcome.output.ok_or("nothing was trained")?;

    let mut networks = Autoencoder::new(architecture, trained.tensors, simd)?;
    let bound = networks.bound(&apart, 10, 1)?;
    let log_likelihood = networks.importance_bound(&apart, 200, 1)?;
    println!(
        "unseen digits: bound {:.2} ± {:.2}, importance-weighted {:.2} nats a digit",
        bound.bound, bound.standard_error, log_likelihood.mean
    );
    let codes = networks.encode(&apart);
    println!("code of the first: {:.2?}", &codes.mean[..4]);
    let drawn = networks.sample(1, 7);
    for row in drawn.mean.chunks(8) {
        let shade = |&x: &f32| [" ", ".", "o", "#"][(x * 3.99) as usize];
        println!("  {}", row.iter().map(shade).collect::<String>());
    }
    Ok(())
}
