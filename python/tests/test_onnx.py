"""Exported networks return the numbers of the command, in the units of the data."""

import csv
import subprocess
import sys

import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(4)
ROWS = 200
CODES = RNG.normal(size=(ROWS, 2))
LINES = CODES @ RNG.normal(size=(2, 5)) + RNG.normal(0, 0.2, (ROWS, 5))
# A large origin, a small unit, a constant column and a copy of another column.
TABLE = LINES * [1.0, 1e-3, 50.0, 1.0, 1.0] + [1e5, 0.0, -7.0, 0.0, 0.0]
TABLE[:, 3] = 2.5
TABLE[:, 4] = 3.0 - 2.0 * TABLE[:, 0]
GAPS = np.where(RNG.uniform(size=TABLE.shape) < 0.1, np.nan, TABLE)
GAPS[:, 3:] = TABLE[:, 3:]
IMAGES = (RNG.uniform(size=(ROWS, 8, 8)) < 0.3).astype(np.uint8)
COUNTS = RNG.poisson(np.exp(LINES)).astype(float)

FITS = {
    "table": (TABLE, "--decoder gaussian --hidden 8,6 --activation relu"),
    "gaps": (GAPS, "--decoder student-t --hidden 8 --activation softplus"),
    "laplace": (TABLE, "--decoder gaussian --hidden 8 --posterior laplace"),
    "images": (IMAGES, "--decoder bernoulli --hidden 8 --activation sigmoid"),
    "convolutions": (IMAGES, "--decoder bernoulli --hidden 8 --convolutions 3,4 --window 3"),
    "counts": (COUNTS, "--decoder negative-binomial --hidden 8"),
    "sizes": (COUNTS, "--decoder poisson --hidden 8 --library-size on"),
}


def jensen(*arguments):
    line = [sys.executable, "-m", "jensen._command", *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 4), done.stderr
    return done.stdout


@pytest.mark.parametrize("name", FITS)
def test_networks_run_elsewhere_with_equal_numbers(tmp_path, name):
    rows, flags = FITS[name]
    data, fit = tmp_path / "rows.npy", tmp_path / "fit"
    np.save(data, rows)
    jensen("vae", "fit", data, *flags.split(), "--latent", 2, "--epochs", 20, "--optimizer", "adam", "--step-size", 0.01, "--out", fit)
    files = {part: tmp_path / f"{part}.onnx" for part in ("encoder", "decoder")}
    jensen("vae", "export", fit, *(word for part, path in files.items() for word in (f"--{part}", path)))
    encoder, decoder = (onnxruntime.InferenceSession(path) for path in files.values())

    (record,) = encoder.get_inputs()
    records = rows.reshape(ROWS, -1).astype(np.float64 if record.type == "tensor(double)" else np.float32)
    mean, log_variance = encoder.run(None, {"record": records})
    codes = list(csv.reader(jensen("vae", "encode", fit, data).splitlines()))
    assert codes[0] == ["mean1", "mean2", "sd1", "sd2"]
    ours = np.array(codes[1:], dtype=float)
    np.testing.assert_allclose(mean, ours[:, :2], atol=2e-5, rtol=1e-4)
    np.testing.assert_allclose(np.exp(log_variance / 2), ours[:, 2:], rtol=1e-4)

    context = {"context": records.sum(axis=1, keepdims=True)} if name == "sizes" else {}
    (values,) = decoder.run(None, {"latent": mean, **context})
    out = tmp_path / "means.npy"
    jensen("vae", "reconstruct", fit, data, "--out", out)
    means = np.load(out).reshape(ROWS, -1)
    scale = np.nanstd(records, axis=0) + 1e-3 * (np.nanstd(records, axis=0) == 0)
    assert np.abs(values - means).max(axis=0) == pytest.approx(0, abs=1e-4 * scale.max())
    assert (np.abs(values - means) / scale).max() < 1e-4


def test_tables_of_words_are_refused(tmp_path):
    data, fit = tmp_path / "words.csv", tmp_path / "fit"
    data.write_text("a,b\n" + "".join(f"{'x' if i % 2 else 'y'},{i}\n" for i in range(40)))
    jensen("vae", "fit", data, "--decoder", "mixed", "--latent", 1, "--epochs", 2, "--out", fit)
    line = [sys.executable, "-m", "jensen._command", "vae", "export", str(fit), "--encoder", str(tmp_path / "e.onnx")]
    refused = subprocess.run(line, capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "jensen vae encode" in refused.stderr


@pytest.mark.filterwarnings("ignore::jensen.TrustWarning")
def test_the_estimator_returns_its_networks():
    from jensen.sklearn import AutoEncoder

    model = AutoEncoder(2, hidden=(8,), max_iter=20, random_state=1).fit(TABLE)
    encoder = onnxruntime.InferenceSession(model.to_onnx())
    mean, _ = encoder.run(None, {"record": TABLE})
    np.testing.assert_allclose(mean, model.transform(TABLE), atol=2e-5, rtol=1e-4)
    decoder = onnxruntime.InferenceSession(model.to_onnx("decoder"))
    (rows,) = decoder.run(None, {"latent": mean})
    np.testing.assert_allclose(rows, model.inverse_transform(mean), rtol=1e-4)
    with pytest.raises(ValueError, match="'encoder' or 'decoder'"):
        model.to_onnx("both")
