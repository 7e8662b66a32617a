"""R reads ``draws.csv``, if R, rstan and posterior are installed (Debian: r-cran-rstan, r-cran-posterior)."""

import shutil
import subprocess

import jensen
import numpy as np
import pytest

from conftest import LINE

SCRIPT = """
suppressMessages({library(rstan); library(posterior)})
fit <- read_stan_csv(commandArgs(TRUE)[1])
draws <- as_draws_df(as.matrix(fit))
summaries <- summarise_draws(draws, "mean", "sd", "quantile2")
chosen <- summaries[match(c("alpha", "beta", "y_rep[2]"), summaries$variable), c("mean", "sd", "q5", "q95")]
cat(ndraws(draws), format(as.matrix(chosen), digits = 17), sep = "\\n")
"""


@pytest.fixture
def rscript():
    program = shutil.which("Rscript")
    if program is None:
        pytest.skip("skipped: R is not installed")
    needed = 'for (name in c("rstan", "posterior")) if (!requireNamespace(name, quietly = TRUE)) quit(status = 9)'
    if subprocess.run([program, "-e", needed], capture_output=True, check=False).returncode == 9:
        pytest.skip("skipped: the R packages rstan and posterior are not installed")
    return program


def test_rstan_and_posterior_read_the_draws(rscript, line, tmp_path):
    fit = jensen.fit(LINE, line, out=tmp_path / "out")
    ran = subprocess.run(
        [rscript, "-e", SCRIPT, tmp_path / "out" / "draws.csv"], capture_output=True, text=True, check=True
    )
    count, *found = [float(number) for number in ran.stdout.split()]
    assert count == len(fit["alpha"])
    draws = np.stack([fit["alpha"], fit["beta"], fit["y_rep"][:, 1]])
    quantiles = np.quantile(draws, [0.05, 0.95], axis=1)
    # R has arrays in column-major order.
    expected = [*draws.mean(axis=1), *draws.std(axis=1, ddof=1), *quantiles.ravel()]
    assert found == pytest.approx(expected, rel=1e-9)
