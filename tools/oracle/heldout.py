"""Writes models/heldout: programs with simulated data that no constant was chosen on, with references by long runs of NUTS.

    pip install stanli==0.24.0 numpy
    python tools/oracle/heldout.py [--out models/heldout] [--seed 1] [--warmup 2000] [--draws 4000] [--delta 0.99] [--parallel 8] [NAME ...]

Every folder holds model.stan, data.json and answer.json: kind "proper", or "several" where the posterior has several modes between
which the chains went to and fro; and moments name -> [mean, sd, excess kurtosis, effective draws] of parameters. Parameters without a
standard deviation are left out. References come from eight chains of NUTS; nuts states their length and acceptance where these are
not 4 000 draws after 2 000 of warm-up at 0.99. A reference is refused where a split R-hat of a parameter is above 1.01, effective
draws are fewer than 1 000, or more than one transition of a thousand diverges. The data of the first programs come from one
generator; heldout_small.py, heldout_middle.py and heldout_large.py hold the others, each with a generator of its own.
"""

import argparse
import json
import math
import pathlib

import numpy as np
import stanli

import heldout_large
import heldout_middle
import heldout_small

MODELS = {}


def indent(text):
    """Lines of a block, indented by their braces."""
    depth, out = 1, []
    for line in filter(None, map(str.strip, text.splitlines())):
        out.append("  " * (depth - line.startswith("}")) + line)
        depth += line.count("{") - line.count("}")
    return "\n".join(out)


def model(parameters, body, data, about, transformed="", functions="", kind="proper", undefined=()):
    rows = []
    for name, value in data.items():
        array = np.asarray(value)
        integer = array.dtype.kind in "iu"
        if array.ndim == 0:
            rows.append(f"  {'int' if integer else 'real'} {name};")
        elif array.ndim == 1:
            rows.append(f"  array[{len(array)}] int {name};" if integer else f"  vector[{len(array)}] {name};")
        else:
            rows.append(f"  matrix[{array.shape[0]}, {array.shape[1]}] {name};" if not integer else f"  array[{array.shape[0]}, {array.shape[1]}] int {name};")
    block = lambda head, text: f"{head} {{\n{text}\n}}\n" if text else ""
    program = f"// {about}.\n" + block("functions", indent(functions)) + block("data", "\n".join(rows)) + block("parameters", indent(parameters)) + block("transformed parameters", indent(transformed)) + block("model", indent(body))
    return {"about": about, "program": program, "data": {k: np.asarray(v).tolist() for k, v in data.items()}, "kind": kind, "undefined": undefined}


def add(name, *args, **more):
    MODELS[name] = model(*args, **more)


def programs():
    rng = np.random.default_rng(71)
    normal = rng.standard_normal
    rounded = lambda x: np.round(x, 4)
    inverse = lambda x: 1 / (1 + np.exp(-x))

    x = rounded(normal((60, 4)) + 0.7 * normal((60, 1)))
    y = rounded(1 + x @ [0.8, -0.5, 0.3, 0.0] + 0.9 * normal(60))
    add("regression_ridge", "real a;\nvector[4] b;\nreal<lower=0> s;\nreal<lower=0> t;", "t ~ normal(0, 1);\nb ~ normal(0, t);\na ~ normal(0, 5);\ns ~ exponential(1);\ny ~ normal(a + x * b, s);", {"x": x, "y": y}, "Regression of 60 rows on four correlated columns, with a common scale of the slopes")
    x = rounded(normal((120, 3)))
    add("logit_flat", "real a;\nvector[3] b;", "a ~ normal(0, 3);\nb ~ normal(0, 2);\ny ~ bernoulli_logit(a + x * b);", {"x": x, "y": rng.binomial(1, inverse(-1 + x @ [1.0, -0.6, 0.2]))}, "Logistic regression of 120 rows")
    e = rounded(rng.gamma(3, 1, 50))
    z = rounded(normal(50))
    add("poisson_offset", "real a;\nreal b;\nreal<lower=0> phi;", "a ~ normal(0, 2);\nb ~ normal(0, 1);\nphi ~ exponential(0.5);\ny ~ neg_binomial_2_log(a + b * z + log(e), phi);", {"e": e, "z": z, "y": rng.negative_binomial(2, 2 / (2 + np.exp(0.4 + 0.5 * z) * e))}, "Counts of fifty areas with exposures, negative binomial")
    g = np.repeat(np.arange(1, 13), 5)
    eff = normal(12) * 0.8
    add("groups_normal", "real mu;\nreal<lower=0> tau;\nreal<lower=0> s;\nvector[12] eta;", "mu ~ normal(0, 5);\ntau ~ cauchy(0, 1);\ns ~ normal(0, 2);\neta ~ normal(0, 1);\ny ~ normal(mu + tau * eta[g], s);", {"g": g, "y": rounded(2 + eff[g - 1] + normal(60))}, "Twelve groups of five, standardised effects")
    n = rng.integers(5, 40, 20)
    add("groups_binomial", "real mu;\nreal<lower=0> tau;\nvector[20] a;", "mu ~ normal(0, 2);\ntau ~ normal(0, 1);\na ~ normal(mu, tau);\ny ~ binomial_logit(n, a);", {"n": n, "y": rng.binomial(n, inverse(-0.5 + 0.6 * normal(20)))}, "Shares of twenty groups, centred effects")
    s = [0.0, 0.0]
    for _ in range(90):
        s.append(0.6 * s[-1] - 0.3 * s[-2] + float(normal()))
    add("autoregression_two", "real c;\nvector<lower=-1, upper=1>[2] phi;\nreal<lower=0> s;", "c ~ normal(0, 1);\ns ~ normal(0, 2);\ny[3 : 90] ~ normal(c + phi[1] * y[2 : 89] + phi[2] * y[1 : 88], s);", {"y": rounded(s[2:])}, "An autoregression of order two, ninety steps")
    level = np.cumsum(0.4 * normal(60))
    add("local_level", "vector[60] e;\nreal<lower=0> q;\nreal<lower=0> r;", "vector[60] level = cumulative_sum(q * e);\ne ~ normal(0, 1);\nq ~ normal(0, 1);\nr ~ normal(0, 1);\ny ~ normal(level, r);", {"y": rounded(level + 0.7 * normal(60))}, "A local level of sixty steps, by its shocks")
    t = rounded(np.sort(rng.uniform(0, 10, 30)))
    add("process_exact", "real<lower=0> rho;\nreal<lower=0> alpha;\nreal<lower=0> s;", "matrix[30, 30] k = gp_exp_quad_cov(to_array_1d(t), alpha, rho) + diag_matrix(rep_vector(square(s) + 1e-9, 30));\nrho ~ inv_gamma(4, 6);\nalpha ~ normal(0, 1.5);\ns ~ normal(0, 1);\ny ~ multi_normal_cholesky(rep_vector(0, 30), cholesky_decompose(k));", {"t": t, "y": rounded(np.sin(t) + 0.3 * normal(30))}, "A Gaussian process at thirty points")
    z = rounded(normal(70))
    add("robust_student", "real a;\nreal b;\nreal<lower=0> s;\nreal<lower=1> nu;", "a ~ normal(0, 5);\nb ~ normal(0, 5);\ns ~ normal(0, 2);\nnu ~ gamma(2, 0.1);\ny ~ student_t(nu, a + b * z, s);", {"z": z, "y": rounded(1 - z + 0.5 * rng.standard_t(3, 70))}, "Regression with Student t errors of unknown degrees of freedom")
    z = rounded(normal(100))
    latent = 1.2 * z + rng.logistic(size=100)
    add("ordered_logit", "real b;\nordered[3] c;", "b ~ normal(0, 2);\nc ~ normal(0, 3);\ny ~ ordered_logistic(b * z, c);", {"z": z, "y": 1 + (latent[:, None] > [-1, 0.3, 1.8]).sum(1)}, "Four ordered outcomes of a hundred rows")
    counts = rng.poisson(3, 80) * rng.binomial(1, 0.7, 80)
    add("zero_inflated", "real<lower=0, upper=1> theta;\nreal<lower=0> lambda;", "theta ~ beta(1, 1);\nlambda ~ gamma(2, 0.5);\nfor (i in 1 : 80) {\nif (y[i] == 0) target += log_sum_exp(log(theta), log1m(theta) - lambda);\nelse target += log1m(theta) + poisson_lpmf(y[i] | lambda);\n}", {"y": counts}, "Counts with too many zeros")
    time = rounded(5 * rng.weibull(1.5, 60))
    seen = (time < 6).astype(int)
    add("weibull_censored", "real<lower=0> shape;\nreal<lower=0> scale;", "shape ~ gamma(2, 1);\nscale ~ gamma(2, 0.2);\nfor (i in 1 : 60) {\nif (seen[i] == 1) target += weibull_lpdf(t[i] | shape, scale);\nelse target += weibull_lccdf(t[i] | shape, scale);\n}", {"t": np.minimum(time, 6.0), "seen": seen}, "Times to failure, censored at six")
    z = rounded(normal(90))
    add("spread_regressed", "real a;\nreal b;\nreal c;\nreal d;", "[a, b, c, d] ~ normal(0, 3);\ny ~ normal(a + b * z, exp(c + d * z));", {"z": z, "y": rounded(1 + 0.5 * z + np.exp(-0.3 + 0.6 * z) * normal(90))}, "A regression of the mean and of the logarithm of the spread")
    z = rounded(normal(70))
    mean = inverse(0.3 + 0.7 * z)
    add("beta_regression", "real a;\nreal b;\nreal<lower=0> phi;", "a ~ normal(0, 2);\nb ~ normal(0, 2);\nphi ~ gamma(2, 0.1);\ny ~ beta_proportion(inv_logit(a + b * z), phi);", {"z": z, "y": np.clip(rounded(rng.beta(mean * 12, (1 - mean) * 12)), 1e-3, 1 - 1e-3)}, "Regression of shares")
    ability, hard = normal(20), normal(8)
    add("item_response", "vector[20] theta;\nvector[8] b;\nreal<lower=0> s;", "theta ~ normal(0, 1);\nb ~ normal(0, s);\ns ~ normal(0, 2);\nfor (j in 1 : 8) y[ : , j] ~ bernoulli_logit(theta - b[j]);", {"y": rng.binomial(1, inverse(ability[:, None] - hard))}, "Twenty people and eight items")
    z = rounded(normal(100))
    scores = np.stack([np.zeros(100), 0.5 + z, -0.5 - 0.8 * z], 1)
    y = np.array([rng.choice(3, p=np.exp(v) / np.exp(v).sum()) + 1 for v in scores])
    add("choice_three", "vector[2] a;\nvector[2] b;", "a ~ normal(0, 2);\nb ~ normal(0, 2);\nfor (i in 1 : 100) y[i] ~ categorical_logit([0, a[1] + b[1] * z[i], a[2] + b[2] * z[i]]');", {"z": z, "y": y}, "Choices of one of three")
    add("two_components", "ordered[2] mu;\nvector<lower=0>[2] s;\nreal<lower=0, upper=1> w;", "mu ~ normal(0, 5);\ns ~ gamma(3, 3);\nw ~ beta(3, 3);\nfor (i in 1 : 80) target += log_mix(w, normal_lpdf(y[i] | mu[1], s[1]), normal_lpdf(y[i] | mu[2], s[2]));", {"y": rounded(np.where(rng.random(80) < 0.4, -2 + 0.8 * normal(80), 2 + 1.1 * normal(80)))}, "Two ordered normals")
    t = np.linspace(0, 10, 25)
    add("growth_logistic", "real<lower=0> top;\nreal<lower=0> rate;\nreal middle;\nreal<lower=0> s;", "top ~ normal(0, 20);\nrate ~ lognormal(0, 1);\nmiddle ~ normal(5, 3);\ns ~ normal(0, 1);\ny ~ normal(top * inv_logit(rate * (t - middle)), s);", {"t": rounded(t), "y": rounded(9 * inverse(0.9 * (t - 4)) + 0.4 * normal(25))}, "A logistic curve of growth")
    g = np.repeat(np.arange(1, 16), 6)
    z = rounded(normal(90))
    line = rng.multivariate_normal([1, -0.5], [[0.5, 0.2], [0.2, 0.3]], 15)
    add("slopes_correlated", "vector[2] mu;\nvector<lower=0>[2] tau;\ncholesky_factor_corr[2] corr;\nmatrix[2, 15] eta;\nreal<lower=0> s;", "matrix[2, 15] u = diag_pre_multiply(tau, corr) * eta;\nmu ~ normal(0, 2);\ntau ~ normal(0, 1);\ncorr ~ lkj_corr_cholesky(2);\nto_vector(eta) ~ normal(0, 1);\ns ~ normal(0, 1);\nfor (i in 1 : 90) y[i] ~ normal(mu[1] + u[1, g[i]] + (mu[2] + u[2, g[i]]) * z[i], s);", {"g": g, "z": z, "y": rounded(line[g - 1, 0] + line[g - 1, 1] * z + 0.6 * normal(90))}, "Intercepts and slopes of fifteen groups, correlated")
    h = np.zeros(80)
    for i in range(1, 80):
        h[i] = 0.9 * h[i - 1] + 0.4 * float(normal())
    add("volatility_short", "real mu;\nreal<lower=0, upper=1> phi;\nreal<lower=0> q;\nvector[80] e;", "vector[80] h;\nh[1] = e[1] * q / sqrt(1 - square(phi));\nfor (i in 2 : 80) h[i] = phi * h[i - 1] + q * e[i];\nmu ~ normal(0, 2);\nphi ~ beta(8, 2);\nq ~ normal(0, 0.5);\ne ~ normal(0, 1);\ny ~ normal(0, exp((mu + h) / 2));", {"y": rounded(np.exp((-1 + h) / 2) * normal(80))}, "Volatility of eighty days, by its shocks")
    r, c = np.tile(np.arange(1, 11), 8), np.repeat(np.arange(1, 9), 10)
    add("crossed_effects", "real mu;\nvector[10] a;\nvector[8] b;\nreal<lower=0> sa;\nreal<lower=0> sb;\nreal<lower=0> s;", "mu ~ normal(0, 5);\n[sa, sb, s] ~ normal(0, 2);\na ~ normal(0, sa);\nb ~ normal(0, sb);\ny ~ normal(mu + a[r] + b[c], s);", {"r": r, "c": c, "y": rounded(3 + normal(10)[r - 1] + 0.5 * normal(8)[c - 1] + 0.8 * normal(80))}, "Rows and columns with effects of their own")
    z = rounded(normal(60))
    add("gamma_regression", "real a;\nreal b;\nreal<lower=0> shape;", "a ~ normal(0, 2);\nb ~ normal(0, 2);\nshape ~ gamma(2, 0.5);\ny ~ gamma(shape, shape ./ exp(a + b * z));", {"z": z, "y": rounded(rng.gamma(2.5, np.exp(0.5 + 0.4 * z) / 2.5)) + 1e-3}, "Regression of positive numbers")


    for make in heldout_small.PROGRAMS + heldout_middle.PROGRAMS + heldout_large.PROGRAMS:
        add(make.__name__, about=make.__doc__, **make(np.random.default_rng(list(make.__name__.encode()))))


def split_rhat(x):
    half = x.shape[1] // 2
    parts = np.concatenate([x[:, :half], x[:, half : 2 * half]])
    within, between = parts.var(1, ddof=1).mean(), half * parts.mean(1).var(ddof=1)
    return math.sqrt(((half - 1) / half * within + between / half) / within)


def effective(x):
    """Effective draws by batch means: batches of the square root of a chain."""
    size = int(math.sqrt(x.shape[1]))
    batches = x[:, : x.shape[1] // size * size].reshape(-1, size).mean(1)
    return float(min(x.size, x.var() / (batches.var(ddof=1) / len(batches))))


def reference(folder, run, parallel):
    compiled = stanli.Model(stan_file=str(folder / "model.stan"), data=str(folder / "data.json"))
    return compiled.sample(**run, refresh=0, parallel_chains=parallel)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("models/heldout"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--warmup", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--delta", type=float, default=0.99)
    parser.add_argument("--parallel", type=int, help="chains at a time")
    args = parser.parse_args()
    run = {"chains": 8, "warmup": args.warmup, "samples": args.draws, "delta": args.delta, "seed": args.seed}
    programs()
    for name in args.names or MODELS:
        made = MODELS[name]
        program, data = made["program"], made["data"]
        folder = args.out / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.stan").write_text(program)
        (folder / "data.json").write_text(json.dumps(data) + "\n")
        moments = {}
        fit = reference(folder, run, args.parallel)
        declared = [line.split()[-1].rstrip(";") for line in program.split("parameters {")[1].split("}")[0].splitlines() if line.strip()]
        divergences = fit.divergences() if callable(fit.divergences) else fit.divergences
        divergent = float(np.sum(divergences)) / (8 * args.draws)
        worst = [1.0, math.inf]
        for variable in declared:
            if variable in made["undefined"]:
                continue
            draws = np.asarray(fit.draws(variable))
            shape = draws.shape[2:]
            for index in np.ndindex(*shape):
                x = draws[(slice(None), slice(None), *index)]
                if x.std() < 1e-12:
                    continue
                label = variable + ("[" + ",".join(str(i + 1) for i in index) + "]" if shape else "")
                worst = [max(worst[0], split_rhat(x)), min(worst[1], effective(x))]
                z = (x - x.mean()) / x.std()
                moments[label] = [float(x.mean()), float(x.std(ddof=1)), float((z**4).mean() - 3), round(effective(x))]
        print(f"{name}: R-hat {worst[0]:.4f}, {worst[1]:.0f} effective draws, {100 * divergent:.2f} % divergent", flush=True)
        if worst[0] > 1.01 or worst[1] < 1000 or divergent > 1e-3:
            print(f"  no reference for {name}")
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()
            continue
        (folder / "answer.json").write_text(json.dumps({"kind": made["kind"], "about": made["about"], "nuts": run, "moments": moments}, indent=1) + "\n")


if __name__ == "__main__":
    main()
