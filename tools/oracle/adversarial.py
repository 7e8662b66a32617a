"""Writes models/adversarial: posteriors with known answers on which a fit can go wrong.

    python tools/oracle/adversarial.py [--out models/adversarial]

The script needs numpy and scipy. Every folder holds model.stan, which includes its data, and answer.json:

    kind    "proper"      one mode; `moments` has its moments
            "several"     several modes; `moments` has the moments of the whole posterior
            "heavy"       the second moment does not exist, or thousands of draws cannot show it; a fit must report null for the sd
            "improper"    the posterior does not exist, or the density is unbounded; a fit must not be trusted
    about   the difficulty
    moments name -> [mean, sd, excess kurtosis] of constrained values. The kurtosis determines how precisely draws show the
            sd. It is null if the fourth moment does not exist. If mean and sd are null, no number of draws shows
            them, and a fit that reports an sd is wrong.

Moments are closed forms or quadrature. In one or two dimensions scipy computes them (relative error below 1e-8). In three
dimensions the trapezoidal rule on a grid computes them; a grid of twice the width changes no moment by a thousandth of an sd.
"""

import argparse
import json
import math
import pathlib

import numpy as np
from scipy import integrate, special, stats

MODELS = []

# A fit must not report this mean and sd.
UNDEFINED = (None, None, None)


def add(name, kind, about, program, moments=None):
    filled = {key: list(value) + [0.0] * (3 - len(value)) for key, value in (moments or {}).items()}
    MODELS.append((name, kind, about, program.strip() + "\n", filled))


def symmetric(log_density, low, high):
    """Whether the mean is 0, which quadrature with a relative tolerance cannot reach."""
    return low == -high and all(abs(log_density(x) - log_density(-x)) < 1e-12 for x in (0.1, 0.7, 2.3))


def moments(log_density, low, high, points=()):
    """Mean, sd and excess kurtosis of a density on a line, by adaptive quadrature on pieces."""
    grid = np.unique(np.concatenate([[low, high], np.asarray(points, float)]))
    finite = np.clip(grid, -1e3, 1e3)
    probe = np.concatenate([np.linspace(a, b, 402)[1:-1] for a, b in zip(finite, finite[1:]) if a < b])
    top = max(log_density(x) for x in probe)

    def integral(f):
        g = lambda x: f(x) * math.exp(log_density(x) - top)
        return sum(
            integrate.quad(g, a, b, limit=500, epsabs=0, epsrel=1e-9)[0]
            for a, b in zip(grid, grid[1:])
        )

    total = integral(lambda x: 1.0)
    mean = integral(lambda x: x) / total if not symmetric(log_density, low, high) else 0.0
    variance = integral(lambda x: (x - mean) ** 2) / total
    fourth = integral(lambda x: (x - mean) ** 4) / total
    return [mean, math.sqrt(variance), fourth / variance**2 - 3]


def one(name, about, distribution, dist=None, kind="proper", bounds="", answer=None):
    """A scalar x with the given density."""
    program = f"// {about}.\nparameters {{\n  real{bounds} x;\n}}\nmodel {{\n  x ~ {distribution};\n}}"
    found = answer
    if dist is not None:
        kurtosis = float(dist.stats(moments="k"))
        found = [float(dist.mean()), float(dist.std()), kurtosis if math.isfinite(kurtosis) else None]
    add(name, kind, about, program, {"x": found} if found else {})


def scalars():
    n, positive, unit = "", "<lower=0>", "<lower=0, upper=1>"
    one("normal_unit", "A standard normal", "normal(0, 1)", stats.norm())
    one("normal_far_narrow", "A narrow normal far from the origin", "normal(1e6, 1e-3)", stats.norm(1e6, 1e-3))
    one("normal_wide", "A normal of scale 1e8", "normal(0, 1e8)", stats.norm(0, 1e8))
    one("normal_tiny", "A normal of scale 1e-8", "normal(0, 1e-8)", stats.norm(0, 1e-8))
    one("normal_hundred_off", "A unit normal a hundred sds from the start", "normal(100, 1)", stats.norm(100, 1))
    for nu in (30, 10, 5, 3):
        one(f"student_{nu}", f"Tails of a Student t with {nu} degrees of freedom", f"student_t({nu}, 0, 1)", stats.t(nu))
    one("student_2", "A Student t without a variance", "student_t(2, 0, 1)", kind="heavy")
    one("cauchy", "A Cauchy distribution: no mean", "cauchy(0, 1)", kind="heavy", answer=UNDEFINED)
    one("half_cauchy", "A half-Cauchy distribution: no mean", "cauchy(0, 1)", kind="heavy", bounds=positive, answer=UNDEFINED)
    one("double_exponential", "A kink at the mode", "double_exponential(0, 1)", stats.laplace())
    one("logistic", "A logistic distribution", "logistic(0, 1)", stats.logistic())
    one("gumbel", "A Gumbel distribution", "gumbel(0, 1)", stats.gumbel_r())
    for alpha in (-3, 5, 50):
        one(f"skew_normal_{alpha}".replace("-", "minus_"), f"A skew normal with shape {alpha}", f"skew_normal(0, 1, {alpha})", stats.skewnorm(alpha))
    one("exponential_unit", "An exponential distribution: the mass is at the edge", "exponential(1)", stats.expon(), bounds=positive)
    one("exponential_slow", "An exponential distribution with mean a million", "exponential(1e-6)", stats.expon(scale=1e6), bounds=positive)
    for a in (0.003, 0.01, 0.05):
        one(f"gamma_{a}".replace(".", "_"), f"gamma({a}, {a}): nearly all mass at zero, rare huge values", f"gamma({a}, {a})", stats.gamma(a, scale=1 / a), bounds=positive)
    for a in (0.5, 1, 5, 100):
        one(f"gamma_{a}".replace(".", "_"), f"gamma({a}, {a})", f"gamma({a}, {a})", stats.gamma(a, scale=1 / a), bounds=positive)
    one("inverse_gamma_3", "An inverse gamma whose variance barely exists", "inv_gamma(3, 2)", stats.invgamma(3, scale=2), bounds=positive)
    one("inverse_gamma_10", "An inverse gamma", "inv_gamma(10, 9)", stats.invgamma(10, scale=9), bounds=positive)
    one("inverse_gamma_1", "An inverse gamma without a mean", "inv_gamma(1, 1)", kind="heavy", bounds=positive, answer=UNDEFINED)
    one("pareto_0p8", "A Pareto distribution without a mean", "pareto(1, 0.8)", kind="heavy", bounds="<lower=1>", answer=UNDEFINED)
    one("lognormal_3", "A lognormal whose mean, 90, and sd, 8100, depend on one draw in thousands", "lognormal(0, 3)", kind="heavy", bounds=positive, answer=UNDEFINED)
    one("lognormal_unit", "A lognormal", "lognormal(0, 1)", stats.lognorm(1), bounds=positive)
    one("lognormal_narrow", "A narrow lognormal", "lognormal(5, 0.1)", stats.lognorm(0.1, scale=math.exp(5)), bounds=positive)
    one("weibull_half", "A Weibull with a pole at zero", "weibull(0.5, 1)", stats.weibull_min(0.5), bounds=positive)
    one("weibull_2", "A Weibull with shape 2", "weibull(2, 1)", stats.weibull_min(2), bounds=positive)
    one("weibull_10", "A Weibull with shape 10", "weibull(10, 1)", stats.weibull_min(10), bounds=positive)
    one("chi_square_1", "A chi-square with one degree: a pole at zero", "chi_square(1)", stats.chi2(1), bounds=positive)
    one("rayleigh", "A Rayleigh distribution", "rayleigh(1)", stats.rayleigh(), bounds=positive)
    one("frechet_5", "A Frechet distribution", "frechet(5, 1)", stats.invweibull(5), bounds=positive)
    one("pareto_5", "A Pareto distribution: a hard edge and a heavy tail", "pareto(1, 5)", stats.pareto(5), bounds="<lower=1>")
    one("half_normal", "A half-normal: the mode is the edge", "normal(0, 1)", stats.halfnorm(), bounds=positive)
    one("half_student_5", "A half Student t", "student_t(5, 0, 1)", answer=moments(lambda x: stats.t(5).logpdf(x), 0, np.inf, [1, 10]), bounds=positive)
    for a, b in ((1, 1), (6, 6), (0.5, 0.5), (0.1, 0.1), (100, 1), (2, 50), (0.1, 3)):
        label = f"beta_{a}_{b}".replace(".", "p")
        one(label, f"beta({a}, {b})", f"beta({a}, {b})", stats.beta(a, b), bounds=unit)
    one("uniform_bounded", "A uniform on an interval away from zero", "uniform(100, 101)", stats.uniform(100, 1), bounds="<lower=100, upper=101>")
    one("truncated_tail", "A normal truncated three sds out", "normal(0, 1)", stats.truncnorm(3, np.inf), bounds="<lower=3>")
    one("truncated_thin", "A normal truncated to a sliver", "normal(0, 1)", stats.truncnorm(-0.1, 0.1), bounds="<lower=-0.1, upper=0.1>")
    for kappa in (0.1, 5):
        f = lambda x, k=kappa: k * math.cos(x)
        one(f"von_mises_{kappa}".replace(".", "_"), f"A von Mises with concentration {kappa} on a full turn", f"von_mises(0, {kappa})", answer=moments(f, -math.pi, math.pi, [0]), bounds="<lower=-pi(), upper=pi()>")


def targets():
    """Scalars whose density is written by hand."""

    def custom(name, about, expression, log_density, low, high, points=(), kind="proper"):
        program = f"// {about}.\nparameters {{\n  real x;\n}}\nmodel {{\n  target += {expression};\n}}"
        add(name, kind, about, program, {"x": moments(log_density, low, high, points)})

    custom("quartic", "A flat top and light tails", "-pow(x, 4)", lambda x: -(x**4), -6, 6, [0])
    custom("tenth_power", "A box with soft edges", "-pow(x, 10)", lambda x: -(x**10), -3, 3, [0])
    about = "A cusp: exp(-sqrt(|x|))"
    # E |x|^k = Gamma(2 k + 2) / Gamma(2).
    add("root_kink", "proper", about, f"// {about}.\nparameters {{\n  real x;\n}}\nmodel {{\n  target += -sqrt(abs(x));\n}}", {"x": [0.0, math.sqrt(120), math.factorial(9) / 120**2 - 3]})
    custom("asymmetric_kink", "Slopes 1 and 10 on the two sides of the mode", "x < 0 ? 10 * x : -x", lambda x: 10 * x if x < 0 else -x, -np.inf, np.inf, [0])
    custom("double_well_shallow", "Two wells with a low barrier", "-square(square(x) - 1)", lambda x: -((x * x - 1) ** 2), -6, 6, [0])
    for gap, weight in ((4, 0.5), (6, 0.9), (10, 0.5), (20, 0.7), (100, 0.5), (100, 0.9)):
        h = gap / 2
        mean = weight * -h + (1 - weight) * h
        sd = math.sqrt(1 + h * h - mean * mean)
        about = f"Two unit normals {gap} apart, the left one with {weight} of the mass"
        name = f"two_modes_{gap}_{weight}".replace(".", "p")
        add(name, "several", about, f"// {about}.\nparameters {{\n  real x;\n}}\nmodel {{\n  target += log_mix({weight}, normal_lpdf(x | {-h}, 1), normal_lpdf(x | {h}, 1));\n}}", {"x": [mean, sd]})
    about = "A broad and a narrow normal with the same mean"
    add("spike_and_slab_narrow", "proper", about, f"// {about}.\nparameters {{\n  real x;\n}}\nmodel {{\n  target += log_mix(0.5, normal_lpdf(x | 0, 0.1), normal_lpdf(x | 0, 3));\n}}", {"x": [0.0, math.sqrt(0.5 * 0.01 + 0.5 * 9)]})
    about = "Three modes of equal mass"
    add("three_modes", "several", about, f"// {about}.\nparameters {{\n  real x;\n}}\nmodel {{\n  vector[3] l = [normal_lpdf(x | -8, 1), normal_lpdf(x | 0, 1), normal_lpdf(x | 8, 1)]';\n  target += log_sum_exp(l);\n}}", {"x": [0.0, math.sqrt(1 + 2 / 3 * 64)]})
    for d in (2, 10):
        about = f"Two unit normals in {d} dimensions, 8 apart in each coordinate"
        add(f"two_modes_{d}d", "several", about, f"// {about}.\nparameters {{\n  vector[{d}] x;\n}}\nmodel {{\n  target += log_mix(0.5, normal_lpdf(x | -4, 1), normal_lpdf(x | 4, 1));\n}}", {f"x[{i + 1}]": [0.0, math.sqrt(17)] for i in range(d)})


def planes():
    for s in (1, 2, 3):
        # x | y ~ normal(0, exp(y / 2)): E x^2 = E exp(y).
        for d in (1, 9):
            about = f"Neal's funnel with {d} small coordinates, its scale's log has sd {s}"
            answer = {"y": [0.0, float(s)]}
            answer.update({f"x[{i + 1}]": [0.0, math.exp(s * s / 4), 3 * math.expm1(s * s)] for i in range(d)})
            add(f"funnel_{s}_{d}", "proper", about, f"// {about}.\nparameters {{\n  real y;\n  vector[{d}] x;\n}}\nmodel {{\n  y ~ normal(0, {s});\n  x ~ normal(0, exp(y / 2));\n}}", answer)
    for bend in (0.1, 1, 5):
        about = f"A banana: y follows {bend} x squared"
        add(f"banana_{bend}".replace(".", "p"), "proper", about, f"// {about}.\nparameters {{\n  real x;\n  real y;\n}}\nmodel {{\n  x ~ normal(0, 1);\n  y ~ normal({bend} * square(x), 0.5);\n}}", {"x": [0.0, 1.0], "y": [bend, math.sqrt(2 * bend**2 + 0.25), 48 * bend**4 / (2 * bend**2 + 0.25) ** 2]})
    for radius, width in ((1, 0.5), (5, 0.5), (10, 0.1)):
        log_r = lambda r: stats.norm.logpdf(r, radius, width) + math.log(r)
        low, high = max(1e-12, radius - 30 * width), radius + 30 * width
        m, s, _ = moments(log_r, low, high, [radius])
        sd = math.sqrt((m * m + s * s) / 2)
        about = f"A ring of radius {radius} and width {width}"
        add(f"ring_{radius}_{width}".replace(".", "p"), "several" if radius > 1 else "proper", about, f"// {about}.\nparameters {{\n  vector[2] x;\n}}\nmodel {{\n  target += normal_lpdf(sqrt(dot_self(x) + 1e-12) | {radius}, {width});\n}}", {"x[1]": [0.0, sd], "x[2]": [0.0, sd]})
    for rho in (0.5, 0.9, 0.99, 0.9999):
        about = f"Two normals with correlation {rho}"
        add(f"correlated_{rho}".replace(".", "p"), "proper", about, f"// {about}.\nparameters {{\n  vector[2] x;\n}}\nmodel {{\n  x ~ multi_normal([0, 0]', [[1, {rho}], [{rho}, 1]]);\n}}", {"x[1]": [0.0, 1.0], "x[2]": [0.0, 1.0]})
    about = "A product is seen, its factors are not: a cross of two ridges"
    # y = 0 seen with noise 0.1: density exp(-x1^2/2 - x2^2/2 - (x1 x2)^2 / (2 * 0.01)); integrate x2 out.
    log_x = lambda x: -x * x / 2 - 0.5 * math.log(1 + x * x / 0.01)
    cross = moments(log_x, -np.inf, np.inf, [-1, -0.1, 0, 0.1, 1])
    add("cross", "proper", about, f"// {about}.\nparameters {{\n  vector[2] x;\n}}\nmodel {{\n  x ~ normal(0, 1);\n  0 ~ normal(x[1] * x[2], 0.1);\n}}", {"x[1]": cross, "x[2]": cross})
    about = "A product of two positive numbers is seen: a hyperbola"

    def hyperbola():
        # a, b ~ lognormal(0, 1), log of the product seen as 1 with sd 0.1: Gaussian in logs.
        precision = np.array([[1 + 100, 100], [100, 1 + 100]])
        cov = np.linalg.inv(precision)
        mean = cov @ np.array([100.0, 100.0])
        m = math.exp(mean[0] + cov[0, 0] / 2)
        return [m, m * math.sqrt(math.expm1(cov[0, 0])), 9.0]

    add("hyperbola", "proper", about, f"// {about}.\nparameters {{\n  real<lower=0> a;\n  real<lower=0> b;\n}}\nmodel {{\n  a ~ lognormal(0, 1);\n  b ~ lognormal(0, 1);\n  1 ~ normal(log(a) + log(b), 0.1);\n}}", {"a": hyperbola(), "b": hyperbola()})


def eight(y, noise, scale_prior, about, name, centred, mu_sd=5.0):
    """y_j ~ normal(theta_j, noise_j), theta_j ~ normal(mu, tau): mu and theta integrate out, tau by quadrature."""
    y, noise = np.asarray(y, float), np.asarray(noise, float)
    log_prior, prior_text = scale_prior

    def given(tau):
        # Over (mu, theta): a Gaussian. Precision in closed form by elimination of theta.
        v = noise**2 + tau**2
        w = 1 / v
        precision = w.sum() + 1 / mu_sd**2
        mean = (w * y).sum() / precision
        log_like = -0.5 * np.log(v).sum() - 0.5 * (w * y * y).sum() + 0.5 * precision * mean**2 - 0.5 * math.log(precision)
        k = tau**2 / v
        # theta_j | mu ~ normal(k y + (1 - k) mu, k noise^2)
        theta = k * y + (1 - k) * mean
        var = k * noise**2 + (1 - k) ** 2 / precision
        return log_like, mean, 1 / precision, theta, var

    # On the log scale of tau, by a fine trapezoidal rule: the integrand is analytic and vanishes at both ends.
    u = np.linspace(-25, 12, 20001)
    rows = [given(math.exp(x)) for x in u]
    log_w = np.array([row[0] + log_prior(math.exp(x)) + x for row, x in zip(rows, u)])
    w = np.exp(log_w - log_w.max())
    w /= w.sum()
    tau = np.exp(u)
    e = lambda f: float((w * f).sum())
    mean_tau = e(tau)
    var_tau = e((tau - mean_tau) ** 2)
    out = {"tau": [mean_tau, math.sqrt(var_tau), e((tau - mean_tau) ** 4) / var_tau**2 - 3]}
    m = np.array([row[1] for row in rows])
    v = np.array([row[2] for row in rows])
    mean_mu = e(m)
    out["mu"] = [mean_mu, math.sqrt(e(v + m**2) - mean_mu**2)]
    for j in range(len(y)):
        t = np.array([row[3][j] for row in rows])
        s = np.array([row[4][j] for row in rows])
        mean = e(t)
        out[f"theta[{j + 1}]"] = [mean, math.sqrt(e(s + t**2) - mean**2)]
    J = len(y)
    data = f"  array[{J}] real y = {{{', '.join(map(repr, y.tolist()))}}};\n  array[{J}] real s = {{{', '.join(map(repr, noise.tolist()))}}};\n"
    if centred:
        body = f"parameters {{\n  real mu;\n  real<lower=0> tau;\n  vector[{J}] theta;\n}}\nmodel {{\n  mu ~ normal(0, {mu_sd});\n  tau ~ {prior_text};\n  theta ~ normal(mu, tau);\n  y ~ normal(theta, s);\n}}"
    else:
        body = f"parameters {{\n  real mu;\n  real<lower=0> tau;\n  vector[{J}] eta;\n}}\ntransformed parameters {{\n  vector[{J}] theta = mu + tau * eta;\n}}\nmodel {{\n  mu ~ normal(0, {mu_sd});\n  tau ~ {prior_text};\n  eta ~ std_normal();\n  y ~ normal(theta, s);\n}}"
    add(name, "proper", about, f"// {about}.\ntransformed data {{\n{data}}}\n{body}", out)


def hierarchies():
    rng = np.random.default_rng(1)
    schools = [28, 8, -3, 7, -1, 1, 18, 12]
    se = [15, 10, 16, 11, 9, 11, 10, 18]
    normal = lambda s: (lambda t: -0.5 * (t / s) ** 2, f"normal(0, {s})")
    cauchy = lambda s: (lambda t: -math.log1p((t / s) ** 2), f"cauchy(0, {s})")
    exponential = lambda r: (lambda t: -r * t, f"exponential({r})")
    for centred in (True, False):
        how = "centred" if centred else "noncentred"
        eight(schools, se, normal(5), f"Eight schools, {how}, a half-normal scale", f"schools_normal_{how}", centred)
        eight(schools, se, cauchy(5), f"Eight schools, {how}, a half-Cauchy scale", f"schools_cauchy_{how}", centred)
        for J, tau, noise in ((12, 1.0, 1.0), (12, 0.1, 1.0), (40, 2.0, 0.2), (40, 0.3, 1.0), (200, 1.0, 1.0)):
            theta = rng.normal(1.0, tau, J)
            y = np.round(theta + rng.normal(0, noise, J), 3)
            label = f"groups_{J}_{tau}_{noise}_{how}".replace(".", "p")
            eight(y, np.full(J, noise), exponential(1), f"{J} groups with effects of sd {tau} seen with noise {noise}, {how}", label, centred)


def tail_modes():
    """Effects observed with unit noise. Their precision has the prior gamma(0.001, 0.001); equal effects allow any precision up to a thousand."""
    seen = np.array([-1.0, 0.05, 1.7, -1.35, 3.3, -2.6])
    for part, spread in (("fifteenth", 0.9), ("sixth", 0.8)):
        y = np.round(spread * seen, 3)
        # The logarithm of the precision, by a fine trapezoidal rule; effects integrate out.
        u = np.linspace(-30, 12, 42001)
        precision = np.exp(u)
        v = 1 + 1 / precision
        log_w = -0.5 * len(y) * np.log(v) - 0.5 * (y @ y) / v + 0.001 * (u - precision)
        w = np.exp(log_w - log_w.max())
        w /= w.sum()

        def of(values, variance=0.0):
            mean = (w * values).sum()
            square = (w * (variance + (values - mean) ** 2)).sum()
            # Kurtosis of a mixture of normals.
            fourth = (w * ((values - mean) ** 4 + 6 * (values - mean) ** 2 * variance + 3 * variance**2)).sum()
            return [float(mean), math.sqrt(square), float(fourth / square**2 - 3)]

        answer = {"log_precision": of(u), "scale": of(np.exp(-u / 2)), "effect[5]": of(y[4] / (1 + precision), 1 / (1 + precision))}
        about = f"A precision that the data determine, and a separated tail mode with a {part} of the mass in which they do not"
        data = f"transformed data {{\n  vector[6] y = {y.tolist()}';\n}}"
        add(f"separated_tail_{part}", "proper", about, f"// {about}.\n{data}\nparameters {{\n  real<lower=0> precision;\n  vector[6] effect;\n}}\ntransformed parameters {{\n  real log_precision = log(precision);\n  real scale = inv_sqrt(precision);\n}}\nmodel {{\n  precision ~ gamma(0.001, 0.001);\n  effect ~ normal(0, scale);\n  y ~ normal(effect, 1);\n}}", answer)


def horseshoes():
    for tau in (0.1, 1.0):
        y = np.array([0.0, 0.5, 1.0, 3.0, 6.0, 10.0])
        answer = {}
        u = np.linspace(-18, 18, 20001)
        lam = np.exp(u)
        for j, value in enumerate(y):
            # beta ~ normal(0, tau lam), y ~ normal(beta, 1), lam ~ half-Cauchy.
            scale = (tau * lam) ** 2
            v = 1 + scale
            log_w = -0.5 * np.log(v) - 0.5 * value**2 / v - np.log1p(lam**2) + u
            w = np.exp(log_w - log_w.max())
            w /= w.sum()
            k = scale / v
            mean = float((w * k * value).sum())
            second = float((w * (k + (k * value) ** 2)).sum())
            answer[f"beta[{j + 1}]"] = [mean, math.sqrt(second - mean**2), 3.0]
        about = f"A horseshoe over six means, global scale {tau}"
        add(f"horseshoe_{tau}".replace(".", "p"), "proper", about, f"// {about}.\ntransformed data {{\n  vector[6] y = [{', '.join(map(str, y))}]';\n}}\nparameters {{\n  vector[6] beta;\n  vector<lower=0>[6] lambda;\n}}\nmodel {{\n  lambda ~ cauchy(0, 1);\n  beta ~ normal(0, {tau} * lambda);\n  y ~ normal(beta, 1);\n}}", answer)


def regressions():
    rng = np.random.default_rng(2)
    for name, about, collinear, scales in (
        ("regression_plain", "A conjugate regression", 0.0, (1, 1, 1)),
        ("regression_collinear", "A regression with two nearly equal columns", 0.9999, (1, 1, 1)),
        ("regression_scales", "A regression with columns of very different scales", 0.0, (1e-4, 1, 1e4)),
    ):
        n = 40
        x = rng.normal(size=(n, 3))
        x[:, 2] = collinear * x[:, 1] + math.sqrt(1 - collinear**2) * x[:, 2]
        x = np.round(x, 6) * np.array(scales)
        y = np.round(x @ (np.array([1.0, -2.0, 0.5]) / np.array(scales)) + rng.normal(size=n), 4)
        # sigma^2 ~ inv_gamma(2, 2), b | sigma ~ normal(0, 10 sigma / scale): Student t marginals.
        prior = np.diag((np.array(scales) / 10.0) ** 2)
        precision = x.T @ x + prior
        cov = np.linalg.inv(precision)
        b = cov @ x.T @ y
        a_n, b_n = 2 + n / 2, 2 + 0.5 * (y @ y - b @ precision @ b)
        var = stats.invgamma(a_n, scale=b_n)
        answer = {f"b[{i + 1}]": [float(b[i]), math.sqrt(cov[i, i] * b_n / (a_n - 1))] for i in range(3)}
        answer["v"] = [float(var.mean()), float(var.std()), float(var.stats(moments="k"))]
        matrix = ", ".join("[" + ", ".join(repr(float(v)) for v in row) + "]" for row in x)
        prior_sd = ", ".join(repr(10.0 / s) for s in scales)
        add(name, "proper", about, f"// {about}.\ntransformed data {{\n  matrix[{n}, 3] X = [{matrix}];\n  vector[{n}] y = [{', '.join(repr(float(v)) for v in y)}]';\n  vector[3] s = [{prior_sd}]';\n}}\nparameters {{\n  vector[3] b;\n  real<lower=0> v;\n}}\nmodel {{\n  v ~ inv_gamma(2, 2);\n  b ~ normal(0, s * sqrt(v));\n  y ~ normal(X * b, sqrt(v));\n}}", answer)


def dimensions():
    for d in (10, 100, 1000, 10000):
        about = f"{d} independent standard normals"
        add(f"iid_normal_{d}", "proper", about, f"// {about}.\nparameters {{\n  vector[{d}] x;\n}}\nmodel {{\n  x ~ normal(0, 1);\n}}", {f"x[{i}]": [0.0, 1.0] for i in (1, 2, d)})
    about = "Twenty normals with scales from 1e-4 to 1e4"
    scales = np.logspace(-4, 4, 20)
    text = ", ".join(repr(float(s)) for s in scales)
    add("scales_20", "proper", about, f"// {about}.\ntransformed data {{\n  vector[20] s = [{text}]';\n}}\nparameters {{\n  vector[20] x;\n}}\nmodel {{\n  x ~ normal(0, s);\n}}", {f"x[{i + 1}]": [0.0, float(s)] for i, s in enumerate(scales)})
    for d in (100, 1000):
        about = f"A stationary autoregression of {d} steps with coefficient 0.95"
        sd = 1 / math.sqrt(1 - 0.95**2)
        add(f"autoregression_{d}", "proper", about, f"// {about}.\nparameters {{\n  vector[{d}] x;\n}}\nmodel {{\n  x[1] ~ normal(0, {sd!r});\n  x[2 : {d}] ~ normal(0.95 * x[1 : {d - 1}], 1);\n}}", {f"x[{i}]": [0.0, sd] for i in (1, d // 2, d)})
    about = "Fifty normals with all correlations 0.9"
    add("equicorrelated_50", "proper", about, f"// {about}.\ntransformed data {{\n  matrix[50, 50] S = add_diag(rep_matrix(0.9, 50, 50), 0.1);\n  matrix[50, 50] L = cholesky_decompose(S);\n}}\nparameters {{\n  vector[50] x;\n}}\nmodel {{\n  x ~ multi_normal_cholesky(rep_vector(0, 50), L);\n}}", {f"x[{i}]": [0.0, 1.0] for i in (1, 50)})
    about = "A hundred Student t with five degrees of freedom: the tails multiply"
    add("iid_student_100", "proper", about, f"// {about}.\nparameters {{\n  vector[100] x;\n}}\nmodel {{\n  x ~ student_t(5, 0, 1);\n}}", {f"x[{i}]": [0.0, math.sqrt(5 / 3), 6.0] for i in (1, 100)})
    about = "A hundred exponentials: the mass is at the edge"
    add("iid_exponential_100", "proper", about, f"// {about}.\nparameters {{\n  vector<lower=0>[100] x;\n}}\nmodel {{\n  x ~ exponential(1);\n}}", {f"x[{i}]": [1.0, 1.0, 6.0] for i in (1, 100)})
    about = "A random walk of 100 steps with its scale unknown, no data: a funnel in the paths"
    add("walk_scale_100", "proper", about, f"// {about}.\nparameters {{\n  real<lower=0> s;\n  vector[100] e;\n}}\nmodel {{\n  s ~ lognormal(0, 0.5);\n  e ~ normal(0, s);\n}}", {"s": [math.exp(0.125), math.exp(0.125) * math.sqrt(math.expm1(0.25))], "e[1]": [0.0, math.exp(0.25), 3 * math.expm1(1.0)], "e[100]": [0.0, math.exp(0.25), 3 * math.expm1(1.0)]})


def shapes():
    for k, a in ((3, 1.0), (10, 1.0), (10, 0.1), (100, 1.0)):
        about = f"A simplex of {k} with a Dirichlet({a})"
        total = k * a
        m = a / total
        sd = math.sqrt(m * (1 - m) / (total + 1))
        add(f"dirichlet_{k}_{a}".replace(".", "p"), "proper", about, f"// {about}.\nparameters {{\n  simplex[{k}] x;\n}}\nmodel {{\n  x ~ dirichlet(rep_vector({a}, {k}));\n}}", {f"x[{i}]": [m, sd] for i in (1, k)})
    about = "Five ordered standard normals"
    # Moments of order statistics by quadrature.
    answer = {}
    for r in range(1, 6):
        beta_const = special.gammaln(6) - special.gammaln(r) - special.gammaln(6 - r)
        f = lambda x, r=r, c=beta_const: c + stats.norm.logpdf(x) + (r - 1) * stats.norm.logcdf(x) + (5 - r) * stats.norm.logsf(x)
        answer[f"x[{r}]"] = moments(f, -12, 12, [-2, 0, 2])
    add("ordered_5", "proper", about, f"// {about}.\nparameters {{\n  ordered[5] x;\n}}\nmodel {{\n  x ~ normal(0, 1);\n}}", answer)
    for k, eta in ((3, 1.0), (5, 2.0), (3, 50.0)):
        about = f"An LKJ({eta}) correlation matrix of {k} variables"
        b = eta - 1 + k / 2
        sd = math.sqrt(4 * stats.beta(b, b).var())
        add(f"lkj_{k}_{eta}".replace(".", "p"), "proper", about, f"// {about}.\nparameters {{\n  corr_matrix[{k}] R;\n}}\nmodel {{\n  R ~ lkj_corr({eta});\n}}", {"R[2,1]": [0.0, sd]})
    about = "A direction in three dimensions, uniform on the sphere"
    add("unit_vector_3", "several", about, f"// {about}.\nparameters {{\n  unit_vector[3] x;\n}}\nmodel {{\n}}", {f"x[{i}]": [0.0, math.sqrt(1 / 3)] for i in (1, 2, 3)})
    about = "Unordered labels of two clusters"
    rng = np.random.default_rng(3)
    y = np.round(np.concatenate([rng.normal(-3, 1, 50), rng.normal(3, 1, 50)]), 3)
    add("unordered_clusters", "several", about, f"// {about}.\ntransformed data {{\n  vector[100] y = [{', '.join(map(str, y.tolist()))}]';\n}}\nparameters {{\n  vector[2] mu;\n}}\nmodel {{\n  mu ~ normal(0, 5);\n  for (n in 1 : 100) target += log_mix(0.5, normal_lpdf(y[n] | mu[1], 1), normal_lpdf(y[n] | mu[2], 1));\n}}")


def improper():
    def bad(name, about, program):
        add(name, "improper", about, f"// {about}.\n{program}")

    bad("flat", "No density at all: a flat line", "parameters {\n  real x;\n}\nmodel {\n}")
    bad("flat_one_of_two", "One of two parameters has no prior and no data", "parameters {\n  real x;\n  real y;\n}\nmodel {\n  x ~ normal(0, 1);\n}")
    bad("slope", "A density that grows for ever", "parameters {\n  real x;\n}\nmodel {\n  target += x;\n}")
    bad("upward_parabola", "A density that grows without bound on both sides", "parameters {\n  real x;\n}\nmodel {\n  target += 0.01 * square(x);\n}")
    bad("flat_positive", "A positive number without a prior", "parameters {\n  real<lower=0> x;\n}\nmodel {\n}")
    bad("all_zero_bernoulli", "No success in twenty trials under a flat prior on the logit", "transformed data {\n  array[20] int y = rep_array(0, 20);\n}\nparameters {\n  real a;\n}\nmodel {\n  y ~ bernoulli_logit(a);\n}")
    bad("all_zero_poisson", "No event in ten counts under a flat prior on the log rate", "transformed data {\n  array[10] int y = rep_array(0, 10);\n}\nparameters {\n  real a;\n}\nmodel {\n  y ~ poisson_log(a);\n}")
    bad("separated_logistic", "A logistic regression whose classes a plane separates, no prior", "transformed data {\n  vector[6] x = [-3, -2, -1, 1, 2, 3]';\n  array[6] int y = {0, 0, 0, 1, 1, 1};\n}\nparameters {\n  real a;\n  real b;\n}\nmodel {\n  y ~ bernoulli_logit(a + b * x);\n}")
    bad("one_point_normal", "Mean and scale of one observation: the density is unbounded", "parameters {\n  real mu;\n  real<lower=0> sigma;\n}\nmodel {\n  1.5 ~ normal(mu, sigma);\n}")
    bad("mixture_free_scales", "A mixture in which a component may shrink onto a point", "transformed data {\n  vector[8] y = [-2.1, -1.9, -0.3, 0.1, 0.4, 1.2, 2.5, 3.1]';\n}\nparameters {\n  vector[2] mu;\n  vector<lower=0>[2] sigma;\n}\nmodel {\n  for (n in 1 : 8) target += log_mix(0.5, normal_lpdf(y[n] | mu[1], sigma[1]), normal_lpdf(y[n] | mu[2], sigma[2]));\n}")
    bad("two_groups_flat_scale", "Two groups under a flat prior on their scale", "transformed data {\n  array[2] real y = {1.0, 2.0};\n}\nparameters {\n  real mu;\n  real<lower=0> tau;\n  vector[2] eta;\n}\nmodel {\n  eta ~ std_normal();\n  y ~ normal(mu + tau * eta, 1);\n}")
    bad("lengthscale_flat", "A Gaussian process whose lengthscale has no prior", "transformed data {\n  array[6] real x = {0, 1, 2, 3, 4, 5};\n  vector[6] y = [0.1, -0.2, 0.05, 0.1, -0.1, 0.0]';\n}\nparameters {\n  real<lower=0> l;\n}\nmodel {\n  matrix[6, 6] K = add_diag(gp_exp_quad_cov(x, 1.0, l), 0.1);\n  y ~ multi_normal(rep_vector(0, 6), K);\n}")
    bad("more_columns_than_rows", "More coefficients than observations, no prior", "transformed data {\n  matrix[2, 3] X = [[1, 0, 2], [0, 1, -1]];\n  vector[2] y = [1, 2]';\n}\nparameters {\n  vector[3] b;\n}\nmodel {\n  y ~ normal(X * b, 1);\n}")
    bad("sum_not_identified", "Two intercepts of which the data see the sum alone", "transformed data {\n  vector[4] y = [1, 2, 1.5, 1.2]';\n}\nparameters {\n  real a;\n  real b;\n}\nmodel {\n  y ~ normal(a + b, 1);\n}")
    bad("jeffreys_scale_zero", "A scale with prior 1 / sigma whose group effects may all be zero", "transformed data {\n  array[5] real y = {0.1, -0.2, 0.3, 0.0, 0.1};\n}\nparameters {\n  real<lower=0> tau;\n  vector[5] eta;\n}\nmodel {\n  target += -log(tau);\n  eta ~ std_normal();\n  y ~ normal(tau * eta, 1);\n}")
    bad("probability_pole", "A probability with the density 1 / p", "parameters {\n  real<lower=0, upper=1> p;\n}\nmodel {\n  target += -log(p);\n}")
    bad("free_degrees", "A Student t whose degrees of freedom have no prior", "transformed data {\n  vector[5] y = [-1, -0.5, 0, 0.5, 1]';\n}\nparameters {\n  real<lower=1> nu;\n}\nmodel {\n  y ~ student_t(nu, 0, 1);\n}")


def fresh():
    """Other sizes of the shapes above, and shapes between them. No limit was chosen on them."""
    positive, unit = "<lower=0>", "<lower=0, upper=1>"

    def free(name, kind, about, parameters, model, answer=None):
        add(name, kind, about, f"// {about}.\nparameters {{\n{parameters}\n}}\nmodel {{\n{model}\n}}", answer)

    for bend, width in ((2, 0.5), (10, 0.5), (1, 0.05)):
        about = f"A banana: y follows {bend} x squared within {width}"
        label = f"banana_{bend}_{width}".replace(".", "p")
        sd = math.sqrt(2 * bend**2 + width**2)
        free(label, "proper", about, "  real x;\n  real y;", f"  x ~ normal(0, 1);\n  y ~ normal({bend} * square(x), {width});", {"x": [0.0, 1.0], "y": [bend, sd, 48 * bend**4 / sd**4]})
    about = "A banana in three dimensions"
    free("banana_3d", "proper", about, "  real x;\n  vector[2] y;", "  x ~ normal(0, 1);\n  y[1] ~ normal(2 * square(x), 0.5);\n  y[2] ~ normal(-3 * square(x), 0.3);", {"x": [0.0, 1.0], "y[1]": [2.0, math.sqrt(8.25), 48 * 16 / 8.25**2], "y[2]": [-3.0, math.sqrt(18.09), 48 * 81 / 18.09**2]})
    about = "A ridge that follows a sine"
    free("sine_ridge", "proper", about, "  real x;\n  real y;", "  x ~ normal(0, 1);\n  y ~ normal(2 * sin(3 * x), 0.3);", {"x": [0.0, 1.0], "y": [0.0, math.sqrt(4 * (1 - math.exp(-18)) / 2 + 0.09)]})
    for radius, width in ((2, 0.2), (3, 0.1), (20, 1)):
        log_r = lambda r: stats.norm.logpdf(r, radius, width) + math.log(r)
        m, s, _ = moments(log_r, max(1e-12, radius - 30 * width), radius + 30 * width, [radius])
        sd = math.sqrt((m * m + s * s) / 2)
        about = f"A ring of radius {radius} and width {width}"
        free(f"ring_{radius}_{width}".replace(".", "p"), "several", about, "  vector[2] x;", f"  target += normal_lpdf(sqrt(dot_self(x) + 1e-12) | {radius}, {width});", {"x[1]": [0.0, sd], "x[2]": [0.0, sd]})
    for s, d in ((0.5, 20), (1.5, 4), (2.5, 2)):
        answer = {"y": [0.0, s]}
        answer.update({f"x[{i + 1}]": [0.0, math.exp(s * s / 4), 3 * math.expm1(s * s)] for i in range(d)})
        about = f"Neal's funnel with {d} small coordinates, its scale's log has sd {s}"
        free(f"funnel_{s}_{d}".replace(".", "p"), "proper", about, f"  real y;\n  vector[{d}] x;", f"  y ~ normal(0, {s});\n  x ~ normal(0, exp(y / 2));", answer)

    def mixture(name, kind, about, parts):
        """(weight, mean, sd) of each normal."""
        mean = sum(w * m for w, m, _ in parts)
        central4 = sum(w * ((m - mean) ** 4 + 6 * (m - mean) ** 2 * s**2 + 3 * s**4) for w, m, s in parts)
        variance = sum(w * ((m - mean) ** 2 + s**2) for w, m, s in parts)
        terms = ", ".join(f"{math.log(w)!r} + normal_lpdf(x | {m}, {s})" for w, m, s in parts)
        free(name, kind, about, "  real x;", f"  target += log_sum_exp([{terms}]);", {"x": [mean, math.sqrt(variance), central4 / variance**2 - 3]})

    mixture("two_modes_5_0p7", "several", "Two unit normals 5 apart", [(0.7, 0, 1), (0.3, 5, 1)])
    mixture("two_modes_30_0p85", "several", "Two unit normals 30 apart, the far one with .15 of the mass", [(0.85, 0, 1), (0.15, 30, 1)])
    mixture("shoulder", "proper", "A broad shoulder beside a peak", [(0.6, 0, 1), (0.4, 2.5, 2)])
    mixture("peak_in_tail", "several", "A narrow peak in the tail of a normal", [(0.6, 0, 1), (0.4, 4, 0.3)])
    mixture("narrow_beside_wide", "several", "A narrow normal two sds out in a wide one", [(0.5, 0, 3), (0.5, 6, 0.1)])
    mixture("spike_and_slab_wide", "proper", "A spike in a slab thirty times as wide, a fifth of the mass", [(0.2, 0, 0.1), (0.8, 0, 3)])
    mixture("comb", "several", "Five narrow peaks side by side", [(0.2, m, 0.15) for m in (-2, -1, 0, 1, 2)])
    about = "A wave on a bell: many modes at the integers"
    wave = lambda x: 1.5 * math.cos(2 * math.pi * x) - x * x / 18
    free("wave", "several", about, "  real x;", "  target += 1.5 * cos(2 * pi() * x) - square(x) / 18;", {"x": moments(wave, -30, 30, [float(i) for i in range(-12, 13)])})
    about = "Two unit normals 5 apart in the first of five coordinates"
    free("two_modes_5_of_5d", "several", about, "  vector[5] x;", "  x[2 : 5] ~ normal(0, 1);\n  target += log_mix(0.5, normal_lpdf(x[1] | -2.5, 1), normal_lpdf(x[1] | 2.5, 1));", {"x[1]": [0.0, math.sqrt(7.25)], "x[2]": [0.0, 1.0]})
    about = "A step: the right half of an interval has seven tenths of the mass"
    free("step", "proper", about, "  real<lower=-1, upper=1> x;", "  target += x < 0 ? log(0.3) : log(0.7);", {"x": [0.2, math.sqrt(1 / 3 - 0.04), 0.0]})
    about = "A staircase of five steps down"
    weights = np.array([5.0, 4, 3, 2, 1]) / 15
    left = np.arange(5.0)
    mean = float((weights * (left + 0.5)).sum())
    second = float((weights * (left**2 + left + 1 / 3)).sum())
    free("staircase", "proper", about, "  real<lower=0, upper=5> x;", "  target += log(5 - floor(x));", {"x": [mean, math.sqrt(second - mean**2), 0.0]})

    for name, about, distribution, dist, bounds in (
        ("exponential_cut", "An exponential cut off at one, all at the left edge", "exponential(20)", stats.truncexpon(20, scale=1 / 20), unit),
        ("beta_0p5_5", "beta(0.5, 5)", "beta(0.5, 5)", stats.beta(0.5, 5), unit),
        ("beta_1_30", "beta(1, 30)", "beta(1, 30)", stats.beta(1, 30), unit),
        ("truncated_right", "A normal cut off two sds below its mean", "normal(5, 1)", stats.truncnorm(-np.inf, -2, loc=5), "<upper=3>"),
        ("uniform_sliver", "A uniform on a thousandth", "uniform(0, 1e-3)", stats.uniform(0, 1e-3), "<lower=0, upper=1e-3>"),
        ("student_2p5", "A Student t whose variance barely exists", "student_t(2.5, 0, 1)", stats.t(2.5), ""),
        ("lognormal_1p5", "A lognormal of scale 1.5", "lognormal(0, 1.5)", stats.lognorm(1.5), positive),
        ("inverse_gamma_5", "An inverse gamma", "inv_gamma(5, 4)", stats.invgamma(5, scale=4), positive),
        ("gamma_0_1", "gamma(0.1, 0.1): a pole at zero and rare large values", "gamma(0.1, 0.1)", stats.gamma(0.1, scale=10), positive),
    ):
        one(name, about, distribution, dist, bounds=bounds)

    def chances(trials, scale):
        f = lambda a: -trials * math.log1p(math.exp(min(a, 700))) - 0.5 * (a / scale) ** 2
        return moments(f, -12.0 * scale, 20.0, [-scale, -5, 0])

    for scale in (2, 10):
        about = f"No success in twenty trials under a normal(0, {scale}) prior on the logit"
        free(f"all_zero_prior_{scale}", "proper", about, "  real a;", f"  a ~ normal(0, {scale});\n  rep_array(0, 20) ~ bernoulli_logit(a);", {"a": chances(20, scale)})
    about = "Two intercepts of which the data see the sum, under wide priors"
    precision = np.array([[4.0 + 1e-4, 4.0], [4.0, 4.0 + 1e-4]])
    cov = np.linalg.inv(precision)
    mean = cov @ np.array([5.7, 5.7])
    add("sum_barely_identified", "proper", about, f"// {about}.\ntransformed data {{\n  vector[4] y = [1, 2, 1.5, 1.2]';\n}}\nparameters {{\n  real a;\n  real b;\n}}\nmodel {{\n  [a, b] ~ normal(0, 100);\n  y ~ normal(a + b, 1);\n}}", {"a": [float(mean[0]), math.sqrt(cov[0, 0])], "b": [float(mean[1]), math.sqrt(cov[1, 1])]})
    about = "Twenty half-normals: the mass is at the corner"
    half = [float(stats.halfnorm.mean()), float(stats.halfnorm.std()), float(stats.halfnorm.stats(moments="k"))]
    free("iid_half_normal_20", "proper", about, "  vector<lower=0>[20] x;", "  x ~ normal(0, 1);", {"x[1]": half, "x[20]": half})
    about = "Ten Student t with three degrees of freedom"
    free("iid_student_3_10", "proper", about, "  vector[10] x;", "  x ~ student_t(3, 0, 1);", {"x[1]": [0.0, math.sqrt(3), None]})
    about = "Two hundred normals with correlation 0.5 each"
    add("equicorrelated_200", "proper", about, f"// {about}.\nparameters {{\n  vector[200] x;\n}}\nmodel {{\n  target += square(sum(x)) / 201 - dot_self(x);\n}}", {"x[1]": [0.0, 1.0], "x[200]": [0.0, 1.0]})

    for name, about, body in (
        ("power_tail_1", "A density that falls like 1 / |x|", "parameters {\n  real x;\n}\nmodel {\n  target += -0.5 * log1p(square(x));\n}"),
        ("levels_off", "A density that rises to a level and stays there", "parameters {\n  real<lower=0> x;\n}\nmodel {\n  target += -1 / x;\n}"),
        ("walk_without_anchor", "A random walk of which only the steps are known", "parameters {\n  vector[10] x;\n}\nmodel {\n  x[2 : 10] ~ normal(x[1 : 9], 1);\n}"),
        ("ratio_seen", "Two positive numbers of which the data see the ratio alone", "parameters {\n  vector<lower=0>[2] x;\n}\nmodel {\n  2 ~ normal(x[1] / x[2], 0.1);\n}"),
        ("scale_without_data", "A scale whose prior is 1 / sigma and which nothing else knows", "parameters {\n  real mu;\n  real<lower=0> sigma;\n}\nmodel {\n  mu ~ normal(0, 1);\n  target += -log(sigma);\n}"),
    ):
        add(name, "improper", about, f"// {about}.\n{body}")


def on_grid(log_density, axes, quantities):
    """Moments of quantities of three coordinates, by the trapezoidal rule on a grid that holds all of the mass."""
    def at(step):
        grid = np.meshgrid(*(a[::step] for a in axes), indexing="ij")
        flat = [g.ravel() for g in grid]
        log_p = log_density(*flat)
        weight = np.exp(log_p - log_p.max())
        weight /= weight.sum()
        out = {}
        for name, f in quantities.items():
            x = f(*flat)
            mean = float(weight @ x)
            variance = float(weight @ (x - mean) ** 2)
            out[name] = [mean, math.sqrt(variance), float(weight @ (x - mean) ** 4) / variance**2 - 3]
        return out

    fine, coarse = at(1), at(2)
    for name, (mean, sd, _) in fine.items():
        assert abs(coarse[name][0] - mean) < 1e-3 * sd and abs(coarse[name][1] / sd - 1) < 1e-3, (name, fine, coarse)
    return fine


def vector(values):
    return "[" + ", ".join(f"{x:.4g}" for x in values) + "]'"


def tails():
    """Posteriors with moments that do not exist."""
    def heavy(name, about, data, parameters, model, undefined):
        add(name, "heavy", about, f"// {about}.\ntransformed data {{\n{data}\n}}\nparameters {{\n{parameters}\n}}\nmodel {{\n{model}\n}}", dict.fromkeys(undefined, UNDEFINED))

    heavy("three_normals_flat", "Location and scale of three observations under flat priors: neither has a mean", "  vector[3] y = [1.3, -0.4, 2.2]';", "  real mu;\n  real<lower=0> sigma;", "  y ~ normal(mu, sigma);", ["mu", "sigma"])
    heavy("separated_cauchy", "Outcomes that a predictor separates, under Cauchy priors: the slope has no mean", "  vector[8] x = [-2.1, -1.4, -0.9, -0.3, 0.2, 0.8, 1.5, 2.4]';\n  array[8] int y = {0, 0, 0, 0, 1, 1, 1, 1};", "  real a;\n  real b;", "  a ~ cauchy(0, 10);\n  b ~ cauchy(0, 2.5);\n  y ~ bernoulli_logit(a + b * x);", ["b"])
    heavy("three_groups_flat_scale", "Three groups whose scale has a flat prior: it has no mean", "  vector[3] y = [12, -3, 20]';\n  vector[3] se = [9, 10, 11]';", "  real mu;\n  real<lower=0> tau;\n  vector[3] eta;", "  eta ~ normal(0, 1);\n  y ~ normal(mu + tau * eta, se);", ["tau"])


def masses():
    """Mass that a well-fitting approximation misses: slabs, other modes, tails."""
    def free(name, kind, about, program, answer):
        add(name, kind, about, f"// {about}.\n{program}", answer)

    def scales(name, about, parts, dim=1):
        """(weight, sd) of each normal about zero, in all coordinates at once."""
        variance = sum(w * s**2 for w, s in parts)
        answer = [0.0, math.sqrt(variance), 3 * sum(w * s**4 for w, s in parts) / variance**2 - 3]
        terms = ", ".join(f"{math.log(w)!r} + normal_lpdf(x | 0, {s})" for w, s in parts)
        shape, first = ("real x", "x") if dim == 1 else (f"vector[{dim}] x", "x[1]")
        free(name, "proper", about, f"parameters {{\n  {shape};\n}}\nmodel {{\n  target += log_sum_exp([{terms}]);\n}}", {first: answer})

    scales("slab_tenth_1000", "A tenth of the mass on a slab a thousand times as wide", [(0.9, 1), (0.1, 1000)])
    scales("spike_half_1em6", "Half of the mass in a spike of 1e-6, half in a unit normal", [(0.5, 1e-6), (0.5, 1)])
    scales("spike_half_0p02", "Half of the mass in a spike of 0.02, half in a unit normal", [(0.5, 0.02), (0.5, 1)])
    scales("scales_hundredth_100", "A hundredth of the mass a hundred times as wide", [(0.99, 1), (0.01, 100)])
    scales("scales_tenth_30", "A tenth of the mass thirty times as wide", [(0.9, 1), (0.1, 30)])
    scales("scales_twentieth_100_5d", "A twentieth of the mass a hundred times as wide, in five dimensions", [(0.95, 1), (0.05, 100)], 5)
    scales("scales_tenth_30_20d", "A tenth of the mass thirty times as wide, in twenty dimensions", [(0.9, 1), (0.1, 30)], 20)
    scales("spike_half_1em6_5d", "Half of the mass in a spike of 1e-6, half in a unit normal, in five dimensions", [(0.5, 1e-6), (0.5, 1)], 5)
    scales("scales_hundredth_30_5d", "A hundredth of the mass thirty times as wide, in five dimensions", [(0.99, 1), (0.01, 30)], 5)
    for weight, sd in ((0.01, 30), (0.1, 1000)):
        about = f"A share of {weight} of the mass {sd} times as wide in one of twenty coordinates"
        variance = 1 - weight + weight * sd**2
        kurtosis = 3 * (1 - weight + weight * sd**4) / variance**2 - 3
        program = f"parameters {{\n  vector[20] x;\n}}\nmodel {{\n  x[2 : 20] ~ normal(0, 1);\n  target += log_mix({weight}, normal_lpdf(x[1] | 0, {sd}), normal_lpdf(x[1] | 0, 1));\n}}"
        free(f"axis_{weight}_{sd}_20d".replace(".", "p"), "proper", about, program, {"x[1]": [0.0, math.sqrt(variance), kurtosis], "x[2]": [0.0, 1.0]})
    for gap, scale in ((10, 0.1), (40, 1)):
        about = f"Two observations {gap} apart under a Cauchy location of scale {scale}"
        f = lambda m: -math.log(scale**2 + (m - gap / 2) ** 2) - math.log(scale**2 + (m + gap / 2) ** 2)
        m = moments(f, -np.inf, np.inf, [-gap / 2 - scale, -gap / 2, -gap / 2 + scale, 0, gap / 2 - scale, gap / 2, gap / 2 + scale])
        free(f"two_cauchy_{gap}_{scale}".replace(".", "p"), "several", about, f"parameters {{\n  real mu;\n}}\nmodel {{\n  [{-gap / 2}, {gap / 2}] ~ cauchy(mu, {scale});\n}}", {"mu": [m[0], m[1], None]})
    about = "A periodic density under a wide normal: dozens of modes"
    wave = lambda x: 4 * math.cos(6 * x) - x * x / 200
    free("periodic_wide", "several", about, "parameters {\n  real x;\n}\nmodel {\n  target += 4 * cos(6 * x) - square(x) / 200;\n}", {"x": moments(wave, -100, 100, [k * math.pi / 3 for k in range(-95, 96)])})
    free("periodic_flat", "improper", "A periodic density without a prior", "parameters {\n  real x;\n}\nmodel {\n  target += 4 * cos(6 * x);\n}", None)

    rng = np.random.default_rng(20)
    y = np.round(stats.skewnorm.rvs(2.5, loc=1, scale=2, size=100, random_state=rng), 3)
    about = "Location, scale and shape of a hundred skew normal observations, with a function of the shape"

    def skew(mu, log_sigma, alpha):
        total = log_sigma - alpha**2 / 32
        for v in y:
            u = (v - mu) * np.exp(-log_sigma)
            total = total - log_sigma - u * u / 2 + special.log_ndtr(alpha * u)
        return total - np.exp(log_sigma) ** 2 / 50

    axes = (np.linspace(-2.5, 6, 171), np.linspace(-0.2, 1.6, 109), np.linspace(-14, 20, 171))
    answer = on_grid(skew, axes, {"mu": lambda m, s, a: m, "sigma": lambda m, s, a: np.exp(s), "alpha": lambda m, s, a: a, "prior": lambda m, s, a: -a * a / 32})
    free("skew_normal_shape", "proper", about, f"transformed data {{\n  vector[100] y = {vector(y)};\n}}\nparameters {{\n  real mu;\n  real<lower=0> sigma;\n  real alpha;\n}}\ntransformed parameters {{\n  real prior = -square(alpha) / 32;\n}}\nmodel {{\n  target += prior;\n  sigma ~ normal(0, 5);\n  y ~ skew_normal(mu, sigma, alpha);\n}}", answer)

    t = np.array([0.5, 1, 1.5, 2, 3, 4, 6, 8, 12])
    curve = lambda ka, ke, v: 10 / v * ka / (ka - ke) * (np.exp(-ke * t) - np.exp(-ka * t))
    y = np.round(curve(0.9, 0.25, 2.0) * np.exp(0.06 * rng.standard_normal(len(t))), 4)
    about = "Absorption and elimination that may change places: two modes"

    def kinetics(la, le, lv):
        total = -((la - math.log(0.5)) ** 2 + (le - math.log(0.5)) ** 2) / 2 - (lv - math.log(2)) ** 2 / (2 * 0.7**2)
        gap = np.exp(la) - np.exp(le)
        gap = np.where(np.abs(gap) < 1e-9, 1e-9, gap)
        for time, v in zip(t, y):
            level = math.log(10) - lv + la + np.log((np.exp(-np.exp(le) * time) - np.exp(-np.exp(la) * time)) / gap)
            total = total - (math.log(v) - level) ** 2 / (2 * 0.06**2)
        return total

    axes = (np.linspace(-2.1, 0.5, 209), np.linspace(-2.1, 0.5, 209) + 1e-4, np.linspace(-0.8, 1.4, 177))
    answer = on_grid(kinetics, axes, {"la": lambda a, e, v: a, "le": lambda a, e, v: e, "lv": lambda a, e, v: v})
    free("kinetics_flip", "several", about, f"transformed data {{\n  vector[9] t = {vector(t)};\n  vector[9] y = {vector(y)};\n}}\nparameters {{\n  real la;\n  real le;\n  real lv;\n}}\nmodel {{\n  la ~ normal(log(0.5), 1);\n  le ~ normal(log(0.5), 1);\n  lv ~ normal(log(2), 0.7);\n  y ~ lognormal(log(10) - lv + la + log((exp(-exp(le) * t) - exp(-exp(la) * t)) / (exp(la) - exp(le))), 0.06);\n}}", answer)

    days, people = np.arange(1.0, 9.0), 1e5

    def infected(beta, gamma, li, steps=10):
        """Infected people at the end of each day, by the fourth-order Runge-Kutta method."""
        i = people / (1 + np.exp(-li))
        s, h, out = people - i, 1 / steps, []
        rate = lambda s, i: (-beta * s * i / people, beta * s * i / people - gamma * i)
        for _ in days:
            for _ in range(steps):
                k1 = rate(s, i)
                k2 = rate(s + h / 2 * k1[0], i + h / 2 * k1[1])
                k3 = rate(s + h / 2 * k2[0], i + h / 2 * k2[1])
                k4 = rate(s + h * k3[0], i + h * k3[1])
                s, i = (v + h / 6 * (a + 2 * b + 2 * c + d) for v, a, b, c, d in zip((s, i), k1, k2, k3, k4))
            out.append(i)
        return out

    counts = rng.poisson([float(v) for v in infected(np.array(0.9), np.array(0.35), np.array(-10.0))])
    about = "The first eight days of an epidemic by a differential equation, which show growth and hardly any recovery: curved, with a long tail"

    def epidemic(growth, lg, li):
        gamma = np.exp(lg)
        beta = gamma + growth
        total = -(np.log(beta) ** 2) / 2 - np.log(beta) - (lg + 1) ** 2 / (2 * 1.5**2) - (li + 10) ** 2 / 8
        for count, mean in zip(counts, infected(beta, gamma, li)):
            total = total + count * np.log(np.maximum(mean, 1e-9)) - mean
        return np.where(np.isfinite(total), total, -1e9)

    axes = (np.linspace(0.42, 0.68, 105), np.linspace(-8, 2.8, 109), np.linspace(-10.7, -9.2, 97))
    answer = on_grid(epidemic, axes, {"beta": lambda r, g, i: np.exp(g) + r, "gamma": lambda r, g, i: np.exp(g), "li": lambda r, g, i: i})
    free("epidemic_curved", "proper", about, f"functions {{\n  vector rate(real t, vector y, real beta, real gamma) {{\n    real fresh = beta * y[1] * y[2] / 1e5;\n    return [-fresh, fresh - gamma * y[2]]';\n  }}\n}}\ntransformed data {{\n  array[8] int y = {{{', '.join(map(str, counts))}}};\n}}\nparameters {{\n  real<lower=0> beta;\n  real<lower=0> gamma;\n  real li;\n}}\nmodel {{\n  real first = 1e5 * inv_logit(li);\n  array[8] vector[2] state = ode_rk45(rate, [1e5 - first, first]', 0, linspaced_array(8, 1, 8), beta, gamma);\n  beta ~ lognormal(0, 1);\n  gamma ~ lognormal(-1, 1.5);\n  li ~ normal(-10, 2);\n  for (n in 1 : 8) y[n] ~ poisson(state[n][2]);\n}}", answer)


def write(out):
    out.mkdir(parents=True, exist_ok=True)
    for name, kind, about, program, answer in sorted(MODELS):
        folder = out / name
        folder.mkdir(exist_ok=True)
        (folder / "model.stan").write_text(program)
        rows = ",\n".join(f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in answer.items())
        body = f"{{\n{rows}\n  }}" if rows else "{}"
        (folder / "answer.json").write_text(
            f'{{\n  "kind": "{kind}",\n  "about": {json.dumps(about)},\n  "moments": {body}\n}}\n'
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("models/adversarial"))
    args = parser.parse_args()
    for group in (scalars, targets, planes, hierarchies, tail_modes, horseshoes, regressions, dimensions, shapes, improper, fresh, tails, masses):
        group()
    assert len({m[0] for m in MODELS}) == len(MODELS)
    write(args.out)
    kinds = [m[1] for m in MODELS]
    print(len(MODELS), {kind: kinds.count(kind) for kind in sorted(set(kinds))})


if __name__ == "__main__":
    main()
