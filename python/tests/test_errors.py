import os
import pickle
import signal
import threading
import time
import warnings

import jensen
import numpy as np
import pytest

from conftest import LINE


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"x": np.zeros(4)}, jensen.StanError, r"`?x`?.*30"),
        ({"x": np.zeros((30, 2))}, jensen.StanError, "x"),
        ({"x": ["a"] * 30}, TypeError, "`x` contains .*expected numbers"),
        ({"x": [[1.0], [1.0, 2.0]]}, ValueError, "`x` has lists of different lengths"),
        ({"x": np.ma.masked_array(np.zeros(30), mask=[True] + 29 * [False])}, ValueError, "`x` has masked values"),
        ({"N": 30.5}, jensen.StanError, "N"),
        ({"N": -1}, jensen.StanError, "N"),
        ({"N": 2**70}, (TypeError, ValueError, jensen.StanError), "N"),
        ({"N": None}, TypeError, "`N`"),
        ({"x": None}, TypeError, "`x`"),
    ],
)
def test_wrong_data(line, change, kind, message):
    with pytest.raises(kind, match=message):
        jensen.fit(LINE, {**line, **change})


def test_a_missing_variable_is_named(line):
    del line["x"]
    with pytest.raises(jensen.StanError, match="x"):
        jensen.fit(LINE, line)


def test_undeclared_data_are_ignored(line):
    """A data frame may have columns that a program does not need, as in Stan."""
    fit = jensen.fit(LINE, line, seed=3)
    more = jensen.fit(LINE, {**line, "unused": 3, "also": np.zeros(4)}, seed=3)
    assert np.array_equal(more["alpha"], fit["alpha"])
    # Undeclared values still must be possible data of a program.
    with pytest.raises(TypeError, match="`unused` contains .*expected numbers"):
        jensen.fit(LINE, {**line, "unused": "text"})


def test_nan_data_are_errors(line):
    line["y"][3] = np.nan
    with pytest.raises((jensen.StanError, jensen.FitError), match="y"):
        jensen.fit(LINE, line)


def test_a_wrong_program_has_its_location():
    with pytest.raises(jensen.StanError) as raised:
        jensen.fit("parameters { real x; }\nmodel { y ~ normal(0, 1); }")
    assert "2" in str(raised.value) and "y" in str(raised.value)
    assert isinstance(raised.value, ValueError)


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="none.stan"):
        jensen.fit(tmp_path / "none.stan")
    with pytest.raises(FileNotFoundError, match="none.json"):
        jensen.fit(LINE, tmp_path / "none.json")
    with pytest.raises(FileNotFoundError, match="no finished fit"):
        jensen.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "kind", "message"),
    [
        ("table.parquet", b"PAR1", ValueError, "read it with pandas"),
        ("broken.json", b'{"N": 3,', ValueError, "1:9: the file ends"),
        ("binary.json", b"\xff\xfe\x00", ValueError, "not UTF-8"),
        ("list.json", b"[1, 2]", ValueError, "list.json"),
        ("folder", None, OSError, "directory"),
    ],
)
def test_wrong_files_of_data(tmp_path, name, content, kind, message):
    path = tmp_path / name
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(kind, match=message):
        jensen.fit(LINE, path)


def test_wrong_files_of_programs_and_results(line, tmp_path):
    (tmp_path / "binary.stan").write_bytes(b"\xff\xfe")
    (tmp_path / "table.csv").write_text("x\n1\n")
    with pytest.raises(ValueError, match="not UTF-8 text: see byte 1"):
        jensen.fit(tmp_path / "binary.stan")
    with pytest.raises(IsADirectoryError):
        jensen.fit(tmp_path)
    with pytest.raises(OSError, match="name a folder"):
        jensen.fit(LINE, line, out=tmp_path / "table.csv")
    with pytest.raises(OSError, match="was not written by jensen"):
        jensen.fit(LINE, line, out=tmp_path)
    with pytest.raises(ValueError, match="did not write the folder"):
        jensen.resume(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        jensen.fit(LINE, line).to_cmdstan_csv(tmp_path / "none" / "draws.csv")


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"sede": 1}, TypeError),
        ({"method": "hmc"}, TypeError),
        ({"family": "banana"}, ValueError),
        ({"draws": -1}, (TypeError, ValueError)),
        ({"draws": 0}, ValueError),
        ({"tol": -1.0}, ValueError),
        ({"step_size": float("nan")}, ValueError),
        ({"seed": 0.5}, TypeError),
        ({"optimizer": "adam", "method": "trust"}, ValueError),
        ({"exchangeable": "M"}, (ValueError, jensen.StanError)),
        ({"batch": 10}, ValueError),
        ({"init": np.zeros(5)}, (ValueError, jensen.FitError)),
        ({"init": {"alfa": 1.0}}, ValueError),
        ({"memory_limit": 10}, MemoryError),
        ({"simd": "mmx"}, (TypeError, ValueError)),
        ({"threads": 0}, ValueError),
        ({"threads": -1}, ValueError),
        ({"threads": 20000}, ValueError),
        ({"threads": "2"}, TypeError),
        ({"seed": -1}, ValueError),
        ({"seed": np.int64(-1)}, ValueError),
        ({"include": 3}, TypeError),
        ({"out": 3}, TypeError),
    ],
)
def test_wrong_settings(line, settings, kind):
    with pytest.raises(kind):
        jensen.fit(LINE, line, **settings)


def test_data_of_an_unknown_type():
    with pytest.raises(TypeError, match="expected a mapping"):
        jensen.fit(LINE, 3)
    with pytest.raises(KeyError, match="no variable"):
        jensen.fit("parameters { real x; } model { x ~ normal(0, 1); }")["y"]


def test_a_model_of_an_unknown_type(line):
    with pytest.raises(TypeError, match="a program of type int: expected a path, source text, or a jensen.Model"):
        jensen.fit(3)
    with pytest.raises(ValueError, match="the program is empty"):
        jensen.fit(" ")
    with pytest.raises(TypeError, match="expected one of `auto`, `trust`, .*`$"):
        jensen.fit(LINE, line, method="nuts")
    with pytest.raises(jensen.StanError, match="^data: variable `x`"):
        jensen.Model(LINE).bind({**line, "x": [1.0]})
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        jensen.load("nowhere")
    with pytest.raises(ValueError, match="is not a saved fit"):
        jensen.load(__file__)
    with pytest.raises(ValueError, match="expected 1, for shape"):
        jensen.fit(LINE, line).to_arviz(dims={"log_lik": ["row", "column"]})
    with pytest.raises(jensen.StanError, match="include"):
        jensen.fit('#include "none.stan"\nparameters { real x; } model { x ~ normal(0, 1); }')


def test_questions_that_a_fit_cannot_answer(line):
    fit = jensen.fit(LINE, line)
    with pytest.raises(ValueError, match="at least 1"):
        fit.draws(0)
    with pytest.raises((OverflowError, ValueError)):
        fit.draws(3, seed=-1)
    again = pickle.loads(pickle.dumps(fit))
    with pytest.raises(ValueError, match="cannot draw again"):
        again.draws(3)


SLOW = "parameters { vector[200] x; } model { x ~ normal(0, 1); sum(x) ~ normal(3, 0.1); }"
FOR_EVER = {"method": "advi", "family": "meanfield", "advi_iters": 10**8, "max_iters": 10**8, "tol": 1e-12}


def test_concurrent_fits_do_not_interfere(line, tmp_path):
    """Several fits, one of which raises an error, have the results of separate fits. Each has its own folder."""
    ended = {}

    def run(seed):
        data = line if seed else {**line, "x": np.zeros(4)}
        try:
            ended[seed] = jensen.fit(LINE, data, out=tmp_path / str(seed), seed=seed)
        except jensen.StanError as error:
            ended[seed] = error

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "30" in str(ended.pop(0))
    for seed, fit in ended.items():
        alone = jensen.fit(LINE, line, seed=seed)
        assert np.array_equal(fit["y_rep"], alone["y_rep"]) and fit.elbo == alone.elbo
        assert np.array_equal(jensen.load(tmp_path / str(seed))["alpha"], alone["alpha"])


@pytest.mark.skipif(os.name != "posix", reason="folders are not locked there")
def test_concurrent_fits_need_separate_folders(line, tmp_path):
    out, running, ended = tmp_path / "out", threading.Event(), []

    def run():
        settings = FOR_EVER | {"max_seconds": 2.0}
        ended.append(jensen.fit(SLOW, out=out, progress=lambda *what: running.set(), **settings))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        thread = threading.Thread(target=run)
        thread.start()
        assert running.wait(60)
        with pytest.raises(OSError, match="another run is writing to the folder .* choose another"):
            jensen.fit(LINE, line, out=out)
        with pytest.raises(OSError, match="another run"):
            jensen.resume(out)
        thread.join()
        # The first fit is complete, and the folder is free again.
        assert np.array_equal(jensen.load(out)["x"], ended[0]["x"])
        assert jensen.fit(LINE, line, out=out).trusted


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_a_fit_runs_in_a_thread(line):
    """The child process has no threads of the parent, and must neither hang nor abort."""
    running = threading.Event()
    thread = threading.Thread(
        target=lambda: jensen.fit(SLOW, **FOR_EVER | {"max_seconds": 1.5}, progress=lambda *what: running.set())
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        thread.start()
        assert running.wait(60)
        child = os.fork()
        if child == 0:
            # No error in the child may let it run the other tests.
            code = 1
            try:
                code = 0 if jensen.fit(LINE, line).trusted else 2
            finally:
                os._exit(code)
        deadline = time.time() + 60
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.time() < deadline:
            time.sleep(0.05)
        if ended[0] == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        thread.join()
    assert ended[0] == child and os.waitstatus_to_exitcode(ended[1]) == 0
