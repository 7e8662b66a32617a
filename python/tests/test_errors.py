import jensen
import numpy as np
import pytest

from conftest import LINE


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"x": np.zeros(4)}, jensen.StanError, r"`?x`?.*30"),
        ({"x": np.zeros((30, 2))}, jensen.StanError, "x"),
        ({"x": ["a"] * 30}, TypeError, "`x` holds .*expected numbers"),
        ({"x": [[1.0], [1.0, 2.0]]}, ValueError, "`x`: the lists in it have different lengths"),
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


def test_nan_data_are_said(line):
    line["y"][3] = np.nan
    with pytest.raises((jensen.StanError, jensen.FitError), match="y"):
        jensen.fit(LINE, line)


def test_a_wrong_program_has_its_place():
    with pytest.raises(jensen.StanError) as raised:
        jensen.fit("parameters { real x; }\nmodel { y ~ normal(0, 1); }")
    assert "2" in str(raised.value) and "y" in str(raised.value)
    assert isinstance(raised.value, ValueError)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="none.stan"):
        jensen.fit(tmp_path / "none.stan")
    with pytest.raises(FileNotFoundError, match="none.json"):
        jensen.fit(LINE, tmp_path / "none.json")
    with pytest.raises(FileNotFoundError, match="no finished fit"):
        jensen.load(tmp_path)


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
        ({"init": {"alpha": 1.0}}, ValueError),
        ({"memory_limit": 10}, MemoryError),
        ({"simd": "mmx"}, (TypeError, ValueError)),
    ],
)
def test_wrong_settings(line, settings, kind):
    with pytest.raises(kind):
        jensen.fit(LINE, line, **settings)


def test_data_of_no_known_kind():
    with pytest.raises(TypeError, match="expected a mapping"):
        jensen.fit(LINE, 3)
    with pytest.raises(KeyError, match="no variable"):
        jensen.fit("parameters { real x; } model { x ~ normal(0, 1); }")["y"]
