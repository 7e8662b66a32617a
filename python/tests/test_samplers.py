"""Samplers of other libraries use gradients of a program."""

import jensen
import numpy as np
import pytest

from conftest import SCHOOLS


def test_nuts_of_nutpie_draws_the_posterior():
    nutpie = pytest.importorskip("nutpie")
    compiled = pytest.importorskip("nutpie.compiled_pyfunc")
    model = jensen.Model(SCHOOLS / "eight_schools.stan").bind(SCHOOLS / "eight_schools.json")
    nuts = compiled.from_pyfunc(
        model.dim,
        make_logp_fn=lambda: model.gradient,
        make_expand_fn=lambda *_: model.param_constrain,
        expanded_dtypes=[np.dtype("float64")] * len(model.dims),
        expanded_shapes=list(model.dims.values()),
        expanded_names=list(model.dims),
    )
    trace = nutpie.sample(nuts, chains=2, cores=1, draws=2000, tune=500, seed=1, progress_bar=False)
    # Means and standard deviations of reference draws of posteriordb. The effective sample size is about 2000 of 4000 draws.
    for name, mean, sd in [("mu", 4.41, 3.31), ("tau", 3.60, 3.20)]:
        drawn = trace["posterior"][name].values
        assert drawn.mean() == pytest.approx(mean, abs=4 * sd / np.sqrt(2000))


def test_nuts_of_blackjax_through_a_pure_callback(line, exact):
    blackjax = pytest.importorskip("blackjax")
    import jax
    import jax.numpy as jnp

    from conftest import LINE

    model = jensen.Model(LINE).bind(line)
    shapes = (jax.ShapeDtypeStruct((), jnp.float64), jax.ShapeDtypeStruct((2,), jnp.float64))

    @jax.custom_vjp
    def log_density(z):
        return both(z)[0]

    def both(z):
        return jax.pure_callback(lambda at: model.gradient(np.asarray(at)), shapes, z)

    log_density.defvjp(both, lambda slope, given: (given * slope,))
    mean, covariance = exact
    with jax.enable_x64(True):
        nuts = blackjax.nuts(log_density, step_size=0.8, inverse_mass_matrix=jnp.asarray(np.diag(covariance)))
        state = nuts.init(jnp.asarray(mean))
        step = jax.jit(nuts.step)
        drawn = []
        for key in jax.random.split(jax.random.PRNGKey(1), 1500):
            state, _ = step(key, state)
            drawn.append(np.asarray(state.position))
    # The tolerance is five standard errors of 500 independent draws, and the sample has more.
    error = np.sqrt(np.diag(covariance) / 500)
    assert (abs(np.mean(drawn, axis=0) - mean) < 5 * error).all()
    assert np.std(drawn, axis=0) == pytest.approx(np.sqrt(np.diag(covariance)), rel=0.15)
