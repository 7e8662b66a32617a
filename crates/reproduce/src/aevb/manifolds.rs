//! Figure 4 shows latent planes, and Figure 5 shows random samples for several latent dimensions.

use jensen::math::simd::Simd;
use jensen::report::figure::{Figure, ImageGrid};
use jensen::vae::{Autoencoder, PictureFrame, mosaic};

use super::bounds::{Extent, trained};
use super::images::Set;
use super::training::Method;
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, What};

const SIDE: usize = 20;

const ACROSS: usize = 10;

const PANEL: f64 = 420.0;

/// Returns the networks of Figure 2, the number of samples that their training has processed, and their ELBO on the
/// test images.
fn networks(
    context: &mut Context<'_>,
    set: Set,
    latent: usize,
) -> Result<(Autoencoder, f64, f64), Failure> {
    let extent = Extent::of(set, context);
    // If the run of Figure 2 exists, it is used again.
    let samples = extent.marks[context.pick(0, 1)];
    context.say(format!(
        "{}, {latent} latent values: {samples:e} samples",
        set.name()
    ));
    let trail = trained(context, set, &extent, latent, (Method::Aevb, 1), samples)?;
    let [samples, _, bound] = trail
        .curve
        .last()
        .copied()
        .unwrap_or([samples, f64::NAN, f64::NAN]);
    let networks = Autoencoder::new(set.architecture(latent), trail.tensors, Simd::detect());
    let networks = networks.map_err(|error| Failure::Method(error.to_string()))?;
    Ok((networks, samples, bound))
}

fn panel(title: String, records: &[f32], frame: PictureFrame, columns: usize) -> ImageGrid {
    let grid = ImageGrid::new(title, 1).cell(PANEL);
    mosaic(records, frame, columns)
        .into_iter()
        .fold(grid, ImageGrid::image)
}

fn frame(set: Set) -> PictureFrame {
    PictureFrame::new(set.size(), set.architecture(2).observation.likelihood)
}

fn row(
    context: &mut Context<'_>,
    figure: &str,
    set: Set,
    latent: usize,
    (samples, bound): (f64, f64),
) -> Result<(), Failure> {
    let what = What::new(
        format!(
            "{figure}: {}, {latent} latent values: test bound of the model shown",
            set.name()
        ),
        "nats an image",
    );
    context.row(what, |_| {
        Ok(Ours::value(bound).note(format!(
            "after {samples:.0} samples; the paper shows only pictures"
        )))
    })?;
    Ok(())
}

/// Draws the latent planes of the faces and of the digits.
pub fn figure4(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut figure = Figure::new("").columns(2);
    for set in [Set::Faces, Set::Digits] {
        let (mut networks, samples, bound) = networks(context, set, 2)?;
        row(context, "figure 4", set, 2, (samples, bound))?;
        let plane = networks.manifold(SIDE);
        figure = figure.panel(panel(set.name().to_owned(), &plane, frame(set), SIDE));
        context.figure("figure4", &figure)?;
    }
    Ok(())
}

/// Draws random samples of digits for several latent dimensions.
pub fn figure5(context: &mut Context<'_>) -> Result<(), Failure> {
    let latents: &[usize] = context.pick(&[3, 20], &[2, 5, 10, 20]);
    let mut figure = Figure::new("").columns(2);
    for &latent in latents {
        let (mut networks, samples, bound) = networks(context, Set::Digits, latent)?;
        row(context, "figure 5", Set::Digits, latent, (samples, bound))?;
        let means = networks.sample(ACROSS * ACROSS, 1).mean;
        let title = format!("{latent} latent values");
        figure = figure.panel(panel(title, &means, frame(Set::Digits), ACROSS));
        context.figure("figure5", &figure)?;
    }
    Ok(())
}
