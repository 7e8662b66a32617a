//! Tests of networks with convolutional layers.

use jensen_graph::{Graph, NodeId, SingleProgram, evaluate};
use jensen_math::simd::Simd;
use jensen_neural::{
    Activation, Architecture, Convolutions, Grid, Likelihood, Observation, PosteriorFamily, Tensor,
    TensorSpec, initial_weights,
};

fn images(image: Grid, filters: &[usize], window: usize) -> Architecture {
    Architecture {
        observation: Observation::new(image.len(), Likelihood::Gaussian { bounded: false }),
        latent: 3,
        posterior: PosteriorFamily::default(),
        convolutions: Some(Convolutions {
            image,
            filters: filters.to_vec(),
            window,
        }),
        encoder: vec![4],
        decoder: vec![4],
        activation: Activation::Tanh,
    }
}

fn grid(height: usize, width: usize, channels: usize) -> Grid {
    Grid {
        height,
        width,
        channels,
    }
}

fn half(from: Grid, channels: usize) -> Grid {
    grid(from.height.div_ceil(2), from.width.div_ceil(2), channels)
}

/// Calls `each(weight, element of the large image, element of the small image)` for every product of a layer.
fn products(large: Grid, small: Grid, window: usize, mut each: impl FnMut(usize, usize, usize)) {
    let before = (window as isize - 2) / 2;
    for y in 0..small.height {
        for x in 0..small.width {
            for i in 0..window {
                for j in 0..window {
                    let row = 2 * y as isize + i as isize - before;
                    let column = 2 * x as isize + j as isize - before;
                    let inside = (0..large.height as isize).contains(&row)
                        && (0..large.width as isize).contains(&column);
                    if !inside {
                        continue;
                    }
                    for c in 0..large.channels {
                        for f in 0..small.channels {
                            let value = (i * window + j) * large.channels + c;
                            let at =
                                (row as usize * large.width + column as usize) * large.channels + c;
                            each(value, at, (y * small.width + x) * small.channels + f);
                        }
                    }
                }
            }
        }
    }
}

fn dense(pair: &[Tensor], x: &[f64]) -> Vec<f64> {
    let outputs = pair[0].spec.outputs;
    (0..outputs)
        .map(|o| {
            let terms = x.iter().enumerate();
            let terms = terms.map(|(i, x)| x * f64::from(pair[0].data[i * outputs + o]));
            terms.sum::<f64>() + f64::from(pair[1].data[o])
        })
        .collect()
}

fn tanh(x: Vec<f64>) -> Vec<f64> {
    x.into_iter().map(f64::tanh).collect()
}

/// Evaluates a network in double precision, and compares the values with those in single precision for three records.
fn networks(
    specs: &[TensorSpec],
    tensors: &[Tensor],
    x: &[f64],
    build: impl FnOnce(&mut Graph, &[NodeId], NodeId) -> Vec<NodeId>,
) -> Vec<Vec<f64>> {
    let mut g = Graph::new();
    let nodes: Vec<NodeId> = specs.iter().map(|s| g.shared_input(s.len())).collect();
    let input = g.input(x.len());
    let outputs = build(&mut g, &nodes, input);
    g.set_outputs(outputs);
    let mut inputs: Vec<Vec<f64>> = tensors
        .iter()
        .map(|t| t.data.iter().map(|&x| f64::from(x)).collect())
        .collect();
    let mut of = |x: Vec<f64>| {
        inputs.truncate(specs.len());
        inputs.push(x);
        let views: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
        evaluate(&g, &views, None)
    };
    let records: Vec<Vec<f64>> = [1.0, -0.4, 0.7]
        .iter()
        .map(|factor| x.iter().map(|x| factor * x).collect())
        .collect();
    let each: Vec<Vec<Vec<f64>>> = records.iter().map(|x| of(x.clone())).collect();
    let program = SingleProgram::new(&g, Simd::detect()).expect("a supported graph");
    let mut workspace = program.workspace(3);
    let narrow: Vec<f32> = records.concat().iter().map(|&x| x as f32).collect();
    for lanes in [1, 3] {
        let mut views: Vec<&[f32]> = tensors.iter().map(|t| t.data.as_slice()).collect();
        views.push(&narrow[..lanes * x.len()]);
        program.run(&mut workspace, &views, lanes);
        for output in 0..each[0].len() {
            let expected = each[..lanes].iter().flat_map(|one| one[output].clone());
            let found = program.output(&workspace, output, lanes);
            for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
                let error = (f64::from(*found) - expected).abs();
                assert!(
                    error < 1e-5,
                    "output {output}, {i} of {lanes}: {found} for {expected}"
                );
            }
        }
    }
    of(x.to_vec())
}

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-10, "{found} for {expected}");
    }
}

#[test]
fn networks_agree_with_sums_over_pixels() {
    for (image, filters, window) in [
        (grid(5, 7, 2), vec![3, 4], 4),
        (grid(6, 4, 1), vec![5], 3),
        (grid(7, 5, 3), vec![2, 3], 5),
        (grid(4, 4, 1), vec![2, 2], 2),
        (grid(3, 2, 1), vec![2], 4),
    ] {
        let architecture = images(image, &filters, window);
        architecture.check().expect("a valid architecture");
        let grids: Vec<Grid> = std::iter::once(image)
            .chain(filters.iter().scan(image, |from, f| {
                *from = half(*from, *f);
                Some(*from)
            }))
            .collect();
        let (encoder, decoder) = (architecture.encoder(), architecture.decoder());
        let specs = encoder.specs();
        let tensors = initial_weights(Simd::detect(), &specs, 3, Some(0.4));
        let x: Vec<f64> = (0..image.len()).map(|i| (0.7 * i as f64).sin()).collect();
        let found = networks(&specs, &tensors, &x, |g, nodes, x| {
            let (mean, log_variance) = encoder.build(g, nodes, x);
            vec![mean, log_variance]
        });
        let mut value = x;
        let mut pairs = tensors.chunks(2);
        for pair in grids.windows(2) {
            let tensors = pairs.next().unwrap();
            let (large, small) = (pair[0], pair[1]);
            let mut sums: Vec<f64> = (0..small.len())
                .map(|i| f64::from(tensors[1].data[i % small.channels]))
                .collect();
            products(large, small, window, |weight, at, to| {
                let weight = tensors[0].data[weight * small.channels + to % small.channels];
                sums[to] += f64::from(weight) * value[at];
            });
            value = tanh(sums);
        }
        value = tanh(dense(pairs.next().unwrap(), &value));
        close(&found[0], &dense(pairs.next().unwrap(), &value));
        close(&found[1], &dense(pairs.next().unwrap(), &value));

        let specs = decoder.network.specs();
        let tensors = initial_weights(Simd::detect(), &specs, 4, Some(0.4));
        let z = vec![0.3, -0.8, 1.1];
        let found = networks(&specs, &tensors, &z, |g, nodes, z| {
            decoder.network.build(g, nodes, z)
        });
        let mut pairs = tensors.chunks(2);
        let mut value = tanh(dense(pairs.next().unwrap(), &z));
        value = tanh(dense(pairs.next().unwrap(), &value));
        for (layer, pair) in grids.windows(2).enumerate().rev() {
            let (large, small) = (pair[0], pair[1]);
            let heads = if layer == 0 { found.len() } else { 1 };
            let mut outputs = Vec::new();
            for _ in 0..heads {
                let tensors = pairs.next().unwrap();
                // The heads have a bias for each value, and other layers have one for each channel.
                let biases = &tensors[1].data;
                let mut sums: Vec<f64> = (0..large.len())
                    .map(|i| f64::from(biases[i % biases.len()]))
                    .collect();
                let values = window * window * large.channels;
                products(large, small, window, |weight, to, at| {
                    let weight = tensors[0].data[(at % small.channels) * values + weight];
                    sums[to] += f64::from(weight) * value[at];
                });
                outputs.push(sums);
            }
            if layer == 0 {
                for (found, expected) in found.iter().zip(&outputs) {
                    close(found, expected);
                }
            } else {
                value = tanh(outputs.remove(0));
            }
        }
    }
}

#[test]
fn layers_that_do_not_fit_the_records_are_refused() {
    let fits = images(grid(8, 8, 1), &[4, 4], 4);
    let refused = |change: &dyn Fn(&mut Architecture), words: &str| {
        let mut architecture = fits.clone();
        change(&mut architecture);
        let error = architecture.check().unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    let with = |architecture: &mut Architecture, image, filters: &[usize], window| {
        architecture.convolutions = Some(Convolutions {
            image,
            filters: filters.to_vec(),
            window,
        });
    };
    assert_eq!(fits.check(), Ok(()));
    refused(&|a| with(a, grid(8, 8, 1), &[4], 1), "leave out pixels");
    refused(&|a| with(a, grid(8, 8, 1), &[4; 4], 4), "after layer 3");
    refused(
        &|a| with(a, grid(8, 8, 1), &[4, 0], 4),
        "at least one filter",
    );
    refused(
        &|a| with(a, grid(8, 7, 1), &[4], 4),
        "64 values with one distribution",
    );
    refused(&|a| a.observation.given = 1, "given values");
}
