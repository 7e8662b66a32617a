//! Figures 3 and 4 show factorial mixtures of small images and of faces.

use jensen::conjugate::driver::{Driver, DriverSettings, Mode};
use jensen::conjugate::model::ConjugateModel;
use jensen::conjugate::models::{FactorialMixture, FactorialSettings};
use jensen::conjugate::pointwise::Pointwise;
use jensen::conjugate::temper::{GlobalTempering, Temper};
use jensen::data::npy::parse_npz;
use jensen::data::read_bytes;
use jensen::math::rng::{Purpose, Stream, permutation};
use jensen::math::special::inv_phi;
use jensen::math::sum::Moments;
use jensen::report::figure::{Axis, Chart, Figure, Image, ImageGrid, Series};
use jensen::run::{Budget, Control, Identity, Record, run};
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, What};

/// The eight images of 4 × 4 pixels in row-major order: bars, corners, a square, and the diagonal pieces of a ring. The
/// paper shows its images but does not list their pixels, so these images may differ from those of the paper.
const IMAGES: [&str; 8] = [
    "1111000000000000",
    "0000000000001111",
    "1000100010001000",
    "0001000100010001",
    "0000011001100000",
    "1000010000100001",
    "0001001001001000",
    "1100110000000000",
];

const TOY: Purpose = Purpose::new("toy images");
const SPLIT: Purpose = Purpose::new("held-out faces");

#[derive(Serialize, Deserialize)]
struct Course {
    /// Pairs of an iteration and the ELBO at temperature 1 after this iteration.
    bounds: Vec<(f64, f64)>,
    /// The held-out log predictive density in nats per point.
    heldout: Vec<(f64, f64)>,
    temperatures: Vec<(f64, f64)>,
    factors: Vec<f64>,
}

/// The number of ELBO computations at temperature 1 per iteration. One such computation takes as long as one iteration.
const SCORES: f64 = 0.25;

fn ascend(
    context: &Context<'_>,
    model: &FactorialMixture,
    heldout: Option<&FactorialMixture>,
    temper: &Temper,
    iterations: u64,
    seed: u64,
) -> Result<Course, Failure> {
    let settings = DriverSettings {
        mode: Mode::Batch {
            tolerance: 0.0,
            max_iterations: iterations,
        },
        temper: temper.clone(),
        seed,
        scores_per_pass: SCORES,
    };
    let engine = match heldout {
        None => Pointwise::new(model),
        Some(heldout) => Pointwise::new(model).with_heldout(heldout),
    };
    let mut driver = Driver::new(engine, settings);
    let identity = Identity {
        algorithm: "factorial".into(),
        settings: serde_json::Value::Null,
        seed,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: String::new(),
    };
    let mut records: Vec<Record> = Vec::new();
    let clock = || 0.0;
    let mut control = Control::new(Budget::iterations(iterations), &clock, &mut records);
    control.cancel = context.cancel();
    let outcome = run(&mut driver, &identity, &mut control)
        .map_err(|error| Failure::Method(error.to_string()))?;
    context.check_stopped()?;
    let state = outcome
        .output
        .ok_or_else(|| Failure::Method(outcome.status.to_string()))?;
    let curve = |name: &str| -> Vec<(f64, f64)> {
        let value = |record: &Record| record.fields.get(name).and_then(|x| x.as_f64());
        records
            .iter()
            .filter_map(|record| Some((record.iteration as f64, value(record)?)))
            .collect()
    };
    Ok(Course {
        bounds: curve("untempered_elbo"),
        heldout: curve("heldout_log_predictive"),
        temperatures: curve("temperature"),
        factors: model.factors(&state.globals.lambda),
    })
}

fn linear(iterations: f64, from: f64) -> Temper {
    Temper::Anneal {
        passes: iterations,
        from,
    }
}

/// Returns the temperature policies. All policies with a high starting temperature start at the same temperature.
fn policies(schedules: [f64; 2], from: f64) -> Vec<(String, Temper)> {
    let mut policies = vec![("VI".to_owned(), Temper::None)];
    for length in schedules {
        policies.push((format!("AVI, {length} iterations"), linear(length, from)));
    }
    let tempering = GlobalTempering {
        hottest: from,
        ..GlobalTempering::default()
    };
    policies.push(("VT".to_owned(), Temper::Global(tempering)));
    policies
}

/// Returns the images, multiplied by their weights, and a set of points that is generated from these images.
fn toy_data(points: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut stream = Stream::new(seed, TOY, 0, 0);
    let truth: Vec<f64> = IMAGES
        .iter()
        .flat_map(|image| {
            let weight = 0.5 + 0.5 * stream.uniform();
            image
                .bytes()
                .map(move |b| if b == b'1' { weight } else { 0.0 })
        })
        .collect();
    let mut data = Vec::with_capacity(points * 16);
    for _ in 0..points {
        let mut x: Vec<f64> = (0..16)
            .map(|_| 0.1f64.sqrt() * inv_phi(stream.uniform()))
            .collect();
        for image in truth.chunks_exact(16) {
            if stream.uniform() < 0.3 {
                x.iter_mut().zip(image).for_each(|(x, m)| *x += m);
            }
        }
        data.extend(x);
    }
    (truth, data)
}

/// Returns the number of true images that some factor matches with a root mean square difference below 0.1.
fn found(truth: &[f64], factors: &[f64]) -> usize {
    truth
        .chunks_exact(16)
        .filter(|image| {
            factors.chunks_exact(16).any(|factor| {
                let pairs = factor.iter().zip(*image);
                let squares: f64 = pairs.map(|(a, b)| (a - b) * (a - b)).sum();
                (squares / 16.0).sqrt() < 0.1
            })
        })
        .count()
}

/// Draws the left panel of Figure 3 and all of Figure 4.
pub fn toy(context: &mut Context<'_>) -> Result<(), Failure> {
    let points = context.pick(2000, 10_000);
    let iterations = context.pick(120, 160);
    let starts: u64 = 10;
    let (truth, data) = toy_data(points, 1);
    let settings = FactorialSettings {
        factors: IMAGES.len(),
        noise_variance: 0.1,
        factor_variance: 0.35,
        activation: 0.3,
    };
    let model = FactorialMixture::new(settings, 16, data).map_err(Failure::Method)?;
    let mut bounds = Chart::new("Images: bound at T = 1")
        .x(Axis::new("iteration").log())
        .y(Axis::new("nats a point"));
    let mut pictures = Figure::new("").columns(3);
    for (number, (name, temper)) in policies([10.0, 100.0], 10.0).into_iter().enumerate() {
        let mut courses: Vec<Course> = Vec::new();
        for seed in 0..starts {
            courses.push(context.keep(&format!("toy/{number}-{seed}"), |context| {
                context.say(format!("images: {name}, start {seed}"));
                ascend(context, &model, None, &temper, iterations, seed)
            })?);
        }
        let whole = courses
            .iter()
            .filter(|course| found(&truth, &course.factors) == IMAGES.len())
            .count();
        let what = What::new(
            format!("images: starts that find all eight of them, {name}"),
            "of 10",
        );
        context.row(what, |_| {
            Ok(Ours::count(whole, starts as usize)
                .seeds(starts)
                .note("found: root mean square difference below 0.1"))
        })?;
        let last = |course: &Course| course.bounds.last().map_or(f64::NAN, |b| b.1);
        let finals: Vec<f64> = courses.iter().map(|c| last(c) / points as f64).collect();
        let what = What::new(
            format!("images: final bound at T = 1, {name}"),
            "nats a point",
        );
        context.row(what, |_| Ok(Ours::mean_of(&finals)))?;
        let mut order: Vec<usize> = (0..courses.len()).collect();
        order.sort_by(|a, b| finals[*a].total_cmp(&finals[*b]));
        let median = &courses[order[courses.len() / 2]];
        let curve = median.bounds.iter().map(|&(i, b)| (i, b / points as f64));
        bounds = bounds.series(Series::line(name.clone(), curve).colour(number));
        if number == 0 || number == 3 {
            pictures = pictures.panel(grid(&name, &median.factors, 4, 4));
        }
    }
    pictures = pictures.panel(grid("truth", &truth, 4, 4));
    context.figure("figure3-toy", &Figure::new("").panel(bounds))?;
    context.figure("figure4", &pictures)
}

fn grid(title: &str, factors: &[f64], width: usize, height: usize) -> ImageGrid {
    let images = factors
        .chunks_exact(width * height)
        .filter_map(|f| Image::grey_stretched(width, height, f));
    ImageGrid::new(title, 4).images(images)
}

/// The number of factors for the faces. The paper does not state this number.
const FACE_FACTORS: usize = 20;

/// The number of the first subject that is used. The extended database adds 28 subjects to the ten subjects of Yale's
/// first database. The added subjects have the numbers 11 to 39, without 14. The paper uses 28 individuals and 2000
/// images. The cropped database contains 1774 images of these individuals.
const FIRST_SUBJECT: f64 = 11.0;

struct Faces {
    size: [usize; 2],
    train: Vec<f64>,
    heldout: Vec<f64>,
}

impl Faces {
    fn read(context: &Context<'_>) -> Result<Self, Failure> {
        let path = context.data("yale-faces/yaleb_48x42.npz")?;
        let label = path.display().to_string();
        let arrays = parse_npz(&read_bytes(&path)?, &label)?;
        let named = |wanted: &str| {
            let found = arrays.iter().find(|(name, _)| name == wanted);
            let missing = || Failure::Data(format!("`{label}` has no array `{wanted}`"));
            found.map(|(_, array)| array).ok_or_else(missing)
        };
        let (images, subjects) = (named("X")?, named("subject")?);
        let [rows, height, width] = images.shape[..] else {
            return Err(Failure::Data(format!(
                "`{label}`: the array `X` has the shape {:?}; images in rows and columns are needed",
                images.shape
            )));
        };
        let dim = height * width;
        let of_subject = |i: &usize| subjects.data.get(*i).is_some_and(|s| *s >= FIRST_SUBJECT);
        let order = permutation(1, SPLIT, 0, rows);
        let mut order: Vec<usize> = order.into_iter().filter(of_subject).collect();
        order.truncate(context.pick(1000, usize::MAX));
        let pixels = |chosen: &[usize]| -> Vec<f64> {
            let rows = chosen.iter().map(|i| &images.data[i * dim..(i + 1) * dim]);
            rows.collect::<Vec<_>>().concat()
        };
        let all = Moments::of(&pixels(&order));
        let (mean, sd) = (all.mean(), all.variance().sqrt());
        let standard = |chosen: &[usize]| -> Vec<f64> {
            pixels(chosen).iter().map(|x| (x - mean) / sd).collect()
        };
        let (apart, train) = order.split_at(order.len() / 4);
        Ok(Self {
            size: [height, width],
            train: standard(train),
            heldout: standard(apart),
        })
    }

    fn model(&self, rows: &[f64], independent: bool) -> Result<FactorialMixture, Failure> {
        let settings = FactorialSettings {
            factors: FACE_FACTORS,
            noise_variance: 0.5,
            factor_variance: 0.5,
            activation: 0.3,
        };
        let [height, width] = self.size;
        let model = FactorialMixture::new(settings, height * width, rows.to_vec());
        let model = model.map_err(Failure::Method)?;
        Ok(if independent {
            model.independent()
        } else {
            model
        })
    }
}

/// Draws the middle and the right panel of Figure 3 for a joint q(μ). The function writes rows for the joint q(μ) and
/// for the q(μ) of the paper. The q(μ) of the paper factorises over the factors.
pub fn faces(context: &mut Context<'_>) -> Result<(), Failure> {
    let faces = Faces::read(context)?;
    let iterations = context.pick(60, 100);
    let seeds: u64 = context.pick(1, 3);
    let mut scores = Chart::new("Faces: held-out log likelihood, lower bound")
        .x(Axis::new("iteration"))
        .y(Axis::new("nats an image"));
    let mut temperatures = Chart::new("Temperature")
        .x(Axis::new("iteration"))
        .y(Axis::new("T"));
    let mut pictures = Figure::new("").columns(2);
    let [height, width] = faces.size;
    for (independent, words) in [(false, ""), (true, ", factorised q")] {
        let model = faces.model(&faces.train, independent)?;
        let heldout = faces.model(&faces.heldout, independent)?;
        for (number, (name, temper)) in policies([5.0, 50.0], 6.0).into_iter().enumerate() {
            let name = format!("{name}{words}");
            let mut courses: Vec<Course> = Vec::new();
            for seed in 0..seeds {
                let kept = format!(
                    "faces/{number}-{seed}{}",
                    if independent { "-apart" } else { "" }
                );
                courses.push(context.keep(&kept, |context| {
                    context.say(format!("faces: {name}, start {seed}"));
                    ascend(context, &model, Some(&heldout), &temper, iterations, seed)
                })?);
            }
            let last = |c: &Course| c.heldout.last().map_or(f64::NAN, |h| h.1);
            let finals: Vec<f64> = courses.iter().map(last).collect();
            let what = What::new(
                format!("faces: held-out log likelihood, {name}"),
                "nats an image",
            );
            context.row(what, |_| {
                Ok(Ours::mean_of(&finals).note(format!(
                    "lower bound; {} images of {height} x {width} to learn from, {} held out, {FACE_FACTORS} factors, 28 subjects",
                    model.points(),
                    heldout.points()
                )))
            })?;
            if independent {
                continue;
            }
            let first = &courses[0];
            let line = |points: &[(f64, f64)]| {
                Series::line(name.clone(), points.iter().copied()).colour(number)
            };
            scores = scores.series(line(&first.heldout));
            temperatures = temperatures.series(line(&first.temperatures));
            if number == 0 || number == 3 {
                pictures = pictures.panel(grid(&name, &first.factors, width, height));
            }
        }
    }
    context.figure(
        "figure3-faces",
        &Figure::new("").panel(scores).panel(temperatures),
    )?;
    context.figure("faces-factors", &pictures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_reported_apart() {
        let (truth, data) = toy_data(3, 1);
        assert_eq!((truth.len(), data.len()), (128, 48));
        assert_eq!(found(&truth, &truth), 8);
        assert_eq!(found(&truth, &truth[..64]), 4);
        assert_eq!(found(&truth, &vec![0.0; 128]), 0);
    }
}
