import inspect
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import types
import warnings
from xml.etree import ElementTree

import jensen
import numpy as np
import pandas as pd
import pytest
from jensen import families, methods

from conftest import LINE, SCHOOLS


def test_a_posterior_that_is_known(line, exact):
    mean, covariance = exact
    fit = jensen.fit(LINE, line, draws=4000, seed=1)
    assert fit.trusted and fit.converged and fit.warnings == []
    for i, name in enumerate(["alpha", "beta"]):
        sd = np.sqrt(covariance[i, i])
        # Four standard errors of 4000 draws.
        assert abs(fit[name].mean() - mean[i]) < 4 * sd / np.sqrt(4000)
        assert fit[name].std() == pytest.approx(sd, rel=0.05)
    correlation = np.corrcoef(fit["alpha"], fit["beta"])[0, 1]
    assert correlation == pytest.approx(covariance[0, 1] / np.sqrt(np.prod(np.diag(covariance))), abs=0.06)


def test_every_setting_reaches_the_fit(monkeypatch):
    """The request of a fit has each keyword's value under the keyword's name."""
    given = {
        "method": "smiso", "family": "lowrank=3", "refine": "always", "centring": "off", "covariance": "linear_response",
        "covariance_of": "alpha", "exchangeable": "N", "records": ["part.parquet"], "batch": 17, "estimator": "joint",
        "ens_weight": 0.75, "trace_variance": 19, "optimizer": "rmsprop", "step_size": 0.125, "momentum": 0.375, "grad_samples": 21, "elbo_samples": 22,
        "advi_iters": 23, "tol": 0.25, "mean_error": 0.0625, "sd_error": 0.03125, "failure_probability": 0.015625,
        "effective_draws": 24.5, "max_gradients": 25, "max_iters": 26, "max_seconds": 27.5, "memory_limit": 1 << 30,
        "draws": 28, "save": "alpha", "importance_resample": True, "seed": 29, "simd": "scalar", "checkpoint_every": 30.5,
    }  # fmt: skip
    others = {"model", "data", "density", "hvp", "constrain", "dim", "names", "include", "out", "init", "threads", "progress"}
    assert set(inspect.signature(jensen.fit).parameters) == set(given) | others

    class Compiled(Exception):
        pass

    class Program:
        @staticmethod
        def compile(name, text, folders, arrays, path, request, threads):
            raise Compiled(request, threads)

    stub = types.SimpleNamespace(Program=Program)
    monkeypatch.setattr(jensen._fit, "_jensen", stub)
    with pytest.raises(Compiled) as raised:
        jensen.fit(LINE, {}, threads=3, **given)
    request, threads = raised.value.args
    assert json.loads(request) == {**given, "records": [os.path.abspath("part.parquet")]}
    assert threads == 3


def test_the_draws_are_those_of_the_command_bit_for_bit(tmp_path):
    program, data = SCHOOLS / "eight_schools.stan", SCHOOLS / "eight_schools.json"
    out = tmp_path / "command"
    line = [sys.executable, "-m", "jensen._command", "fit", program, data, "--seed", "7", "--out", out, "--quiet"]
    subprocess.run(line, check=False)
    theirs = jensen.load(out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from_file = jensen.fit(program, data, seed=7)
        from_values = jensen.fit(program.read_text(), json.loads(data.read_text()), seed=7, threads=1)
    for mine in (from_file, from_values):
        assert mine.keys() == theirs.keys()
        for name in theirs:
            assert np.array_equal(mine[name], theirs[name]), name
        assert mine.elbo == theirs.elbo and mine.trusted == theirs.trusted
        assert np.array_equal(mine.log_p, theirs.log_p)


def test_methods_and_families_are_objects_or_names(line):
    named = jensen.fit(LINE, line, method="advi", grad_samples=2, family="lowrank=1", seed=3, refine="none", draws=20)
    made = jensen.fit(
        LINE, line, method=methods.ADVI(grad_samples=2), family=families.LowRank(1), seed=3, refine="none", draws=20
    )
    assert np.array_equal(named["alpha"], made["alpha"])
    with pytest.raises(TypeError, match="`grad_samples` is given twice"):
        jensen.fit(LINE, line, method=methods.ADVI(grad_samples=2), grad_samples=2)


def test_data_in_every_form(line, tmp_path):
    frame = pd.DataFrame({"x": line["x"], "y": line["y"]})
    program = "data { array[30] real x; array[30] real y; } parameters { real b; } model { y ~ normal(b * to_vector(x), 1); }"
    columns = jensen.fit(program, frame)
    series = jensen.fit(program, {"x": frame["x"], "y": list(line["y"])})
    path = tmp_path / "data.json"
    path.write_text(json.dumps({"x": list(line["x"]), "y": list(line["y"])}))
    file = jensen.fit(program, path)
    frame.to_csv(tmp_path / "data.csv", index=False)
    table = jensen.fit(program.replace("30", "N").replace("data {", "data { int N;"), tmp_path / "data.csv")
    assert np.array_equal(columns["b"], table["b"])
    assert np.array_equal(columns["b"], series["b"]) and np.array_equal(columns["b"], file["b"])


def test_shapes_follow_the_program():
    program = """
    parameters { array[2] matrix[3, 4] a; real s; }
    model { s ~ normal(0, 1); for (i in 1:2) to_vector(a[i]) ~ normal(0, 1); }
    generated quantities {
      array[2, 3] int where;
      for (i in 1:2) for (j in 1:3) where[i, j] = 10 * i + j;
      matrix[3, 4] copy = a[2];
    }
    """
    fit = jensen.fit(program, draws=50)
    assert fit["a"].shape == (50, 2, 3, 4) and fit["s"].shape == (50,)
    assert fit["where"].dtype == np.int64
    assert np.array_equal(fit["where"][0], [[11, 12, 13], [21, 22, 23]])
    assert np.array_equal(fit["copy"], fit["a"][:, 1])
    # The arrays are views of one array.
    assert np.shares_memory(fit["a"], fit["a"])


def test_tuples_and_complex_numbers_are_data():
    program = """
    data { tuple(int, array[2] real) t; complex z; }
    parameters { real x; }
    model { x ~ normal(t.1 + t.2[2] + get_imag(z), 1); }
    """
    fit = jensen.fit(program, {"t": (3, [0.5, 0.25]), "z": 1 + 2j}, draws=4000)
    assert fit["x"].mean() == pytest.approx(5.25, abs=0.07)


def test_a_fit_that_is_not_trusted_warns_with_the_reason():
    with pytest.warns(jensen.TrustWarning, match="NOT to be trusted"):
        fit = jensen.fit("parameters { real x; } model { }")
    assert not fit.trusted and fit.warnings and "NOT" in fit.verdict
    assert "NOT to be trusted" in repr(fit) and "NOT to be trusted" in fit._repr_html_()


def test_a_notebook_shows_the_verdict_and_histograms():
    fit = jensen.fit("parameters { vector[30] x; } model { x ~ normal(0, 1); }")
    page = ElementTree.fromstring(fit._repr_html_().replace("&nbsp;", " "))
    rows = page.findall(".//tr")
    assert len(rows) == 21 and "and 10 more" in "".join(page.itertext())
    # The draws are normal, so the tallest bars are in the middle.
    heights = {float(bar.get("x")): float(bar.get("height")) for bar in rows[1].findall(".//rect")}
    assert max(heights.values()) == 24 and 30 < max(heights, key=heights.get) < 90


def test_summary_and_report(line, tmp_path):
    fit = jensen.fit(LINE, line)
    frame = fit.summary()
    assert list(frame.columns)[:6] == ["mean", "sd", "5%", "50%", "95%", "mcse_mean"]
    # The summary uses weighted draws, and the draws of the fit have a separate error.
    error = np.hypot(frame.loc["alpha", "mcse_mean"], fit["alpha"].std() / np.sqrt(1000))
    assert abs(frame.loc["alpha", "mean"] - fit["alpha"].mean()) < 4 * error
    page = fit.report(tmp_path / "report.html")
    assert page == (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html") and "beta" in page


def test_pickled_and_loaded_fits_are_the_fit(line, tmp_path):
    fit = jensen.fit(LINE, line, out=tmp_path / "out")
    fit.save(tmp_path / "fit.npz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fit.npz", "out"]
    for other in (pickle.loads(pickle.dumps(fit)), jensen.load(tmp_path / "out"), jensen.load(tmp_path / "fit.npz")):
        assert np.array_equal(other["beta"], fit["beta"])
        assert other.elbo == fit.elbo and other.report() == fit.report()
        assert other["y_rep"].dtype == np.float64 and other["y_rep"].shape == (1000, 30)
    more = fit.draws(1500)
    assert np.array_equal(more["beta"][:1000], fit["beta"])


def test_a_saved_density_keeps_its_labels(tmp_path):
    density = jensen.Density(
        lambda z: (-0.5 * (z**2).sum(axis=1), -z),
        ["a[0]", "a[1]"],
        np.zeros(2),
        constrain=lambda z: {"a": z},
        coords={"who": np.array([7, 9])},
        dims={"a": ["who"]},
        observed={"y": np.arange(3)},
    )
    fit = density.fit(draws=50)
    fit.save(tmp_path / "fit")
    again = jensen.load(tmp_path / "fit")
    assert np.array_equal(again["a"], fit["a"]) and again.history == fit.history and repr(again) == repr(fit)
    fit.to_cmdstan_csv(tmp_path / "one.csv")
    again.to_cmdstan_csv(tmp_path / "two.csv")
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    made = pytest.importorskip("arviz") and again.to_arviz()
    assert made["posterior"]["a"].dims == ("chain", "draw", "who") and list(made["posterior"]["who"].values) == [7, 9]
    assert list(made["observed_data"]["y"].values) == [0, 1, 2]


@pytest.mark.parametrize("content", [b"", b"x,y\n1,2\n", b"PK\x03\x04broken", "other"])
def test_a_file_without_a_fit_is_an_error(content, tmp_path):
    path = tmp_path / "file"
    if content == "other":
        with path.open("wb") as file:
            np.savez(file, a=np.zeros(3))
    else:
        path.write_bytes(content)
    with pytest.raises(jensen.Error, match="is not a saved fit"):
        jensen.load(path)


def test_a_damaged_file_is_one_error(line, tmp_path):
    jensen.fit(LINE, line, draws=50).save(tmp_path / "fit")
    whole = (tmp_path / "fit").read_bytes()
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        cut = len(whole) if rng.integers(2) else rng.integers(len(whole))
        (tmp_path / "damaged").write_bytes(damaged[:cut])
        try:
            jensen.load(tmp_path / "damaged")
        except jensen.Error as error:
            assert "damaged`" in str(error)
            refused += 1
    assert refused > 40



def test_concurrent_fits_overlap(line):
    seen = []
    lock = threading.Lock()

    def density(points):
        with lock:
            seen.append(threading.current_thread().ident)
        time.sleep(0.002)
        return -0.5 * (points**2).sum(axis=1), -points

    runs = [threading.Thread(target=jensen.fit, kwargs={"density": density, "dim": 2, "threads": 1}) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    changes = sum(a != b for a, b in zip(seen, seen[1:]))
    # Consecutive fits would change threads only once.
    assert changes > 5


def interrupt(run, out):
    assert run.stdout.readline() == "go\n"
    deadline = time.time() + 60
    while not (out / "checkpoint.safetensors").exists() and time.time() < deadline:
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    start = time.time()
    _, errors = run.communicate(timeout=60)
    # The limit is generous, because the machine may be busy and the fit writes its results.
    assert time.time() - start < 20
    assert "KeyboardInterrupt" in errors and run.returncode != 0


def test_an_interrupted_run_resumes(tmp_path):
    program = tmp_path / "slow.stan"
    # Noise never lets the change of the ELBO fall below the tolerance of Stan's rule.
    program.write_text("parameters { vector[200] x; } model { x ~ normal(0, 1); sum(x) ~ normal(3, 0.1); }")
    out = tmp_path / "out"
    settings = 'method="advi", family="meanfield", advi_iters=100000000, max_iters=100000000, tol=1e-12, checkpoint_every=0.1'
    script = f"import jensen\nprint('go', flush=True)\njensen.fit({str(program)!r}, out={str(out)!r}, {settings})\n"
    # Background jobs of a shell ignore interrupts, and so do their child processes.
    listen = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    run = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listen
    )
    try:
        interrupt(run, out)
    finally:
        run.kill()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stopped = jensen.load(out)
        gone_on = jensen.resume(out, max_iters=stopped.info["iterations"] + 50)
    assert not stopped.converged
    assert gone_on.info["iterations"] == stopped.info["iterations"] + 50


def test_an_interrupt_does_not_wait_for_the_end_of_a_long_step():
    # A random walk, for which each second-order step and the refinement take long.
    program = (
        "data { int T; vector[T] y; } parameters { vector[T] x; real<lower=0> s; }"
        " model { s ~ normal(0, 1); x[1] ~ normal(0, 5); x[2:T] ~ normal(x[1:(T - 1)], s); y ~ student_t(4, x, 0.5); }"
    )
    y = np.cumsum(np.random.default_rng(1).normal(size=2000))
    raised = []
    for wait in (0.7, 2.0):
        shot = threading.Timer(wait, lambda: raised.append(time.perf_counter()) or signal.raise_signal(signal.SIGINT))
        shot.start()
        with pytest.raises(KeyboardInterrupt):
            jensen.fit(program, {"T": 2000, "y": y})
        # An idle machine needs a tenth of this.
        assert time.perf_counter() - raised[-1] < 2
        shot.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_after_a_fit_can_fit(line):
    jensen.fit(LINE, line)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        fit = jensen.fit(LINE, line)
        os._exit(0 if fit.trusted else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_progress_is_reported():
    reports = []
    fit = jensen.fit(density=_slow, dim=2, progress=lambda *what: reports.append(what))
    assert fit.trusted
    assert reports and all(len(what) == 4 and np.isfinite(what[2]) for what in reports)


def _slow(points):
    time.sleep(0.01)
    return -0.5 * (points**2).sum(axis=1), -points


def test_the_import_is_fast_and_needs_no_numpy():
    script = "import sys, jensen; print('numpy' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"


def test_another_program_generates_at_the_draws(line):
    fit = jensen.fit(LINE, line, draws=300, seed=2)
    program = """data { int M; array[M] real at; } parameters { real alpha; real beta; }
        generated quantities { array[M] real line; int n = poisson_rng(5);
          for (m in 1:M) line[m] = alpha + beta * at[m]; }"""
    made = fit.generate(program, {"M": 2, "at": [0.0, 10.0]})
    assert list(made) == ["line", "n"]
    assert made["line"].shape == (300, 2) and made["n"].dtype == np.int64
    assert made["line"][:, 0] == pytest.approx(fit["alpha"], abs=1e-12)
    assert made["line"][:, 1] == pytest.approx(fit["alpha"] + 10 * fit["beta"], abs=1e-9)
    again = fit.generate(program, {"M": 2, "at": [0.0, 10.0]}, threads=1)
    assert all(np.array_equal(made[name], again[name]) for name in made)
    other = fit.generate(program, {"M": 2, "at": [0.0, 10.0]}, seed=9)
    assert not np.array_equal(made["n"], other["n"])
    # The default is the data of the fit.
    own = fit.generate(LINE, save=["alpha"])
    assert list(own) == ["alpha"] and own["alpha"] == pytest.approx(fit["alpha"], abs=1e-12)
    with pytest.raises(ValueError, match="gamma"):
        fit.generate("parameters { real gamma; } generated quantities { real x = gamma; }")


def test_levels_of_new_data_keep_their_numbers(line, tmp_path):
    fit = jensen.fit(LINE, line, draws=300, seed=2)
    program = """data { int<lower=0> N; array[N] int group; } parameters { real alpha; }
        generated quantities { array[N] real y; for (n in 1:N) y[n] = alpha + group[n]; }"""
    table = tmp_path / "new.csv"
    table.write_text("group\n2\n3\n")
    assert fit.generate(program, table)["y"][:, 0] == pytest.approx(fit["alpha"] + 2)
    table.write_text("group\nb\nc\n")
    with pytest.raises(ValueError, match="would number the words of column `group` again"):
        fit.generate(program, table)
