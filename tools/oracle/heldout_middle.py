"""Programs of heldout.py with twenty to a hundred and fifty parameters. Each function draws its data; its first line says what the
program is."""

import numpy as np

from heldout_small import inverse, rounded

PROGRAMS = []


def program(make):
    PROGRAMS.append(make)
    return make


def neighbours(side):
    """Pairs of touching cells of a square grid, counted from one, and the precision of an intrinsic field on it."""
    cell = lambda i, j: i * side + j
    pairs = [(cell(i, j), cell(i + a, j + b)) for i in range(side) for j in range(side) for a, b in ((0, 1), (1, 0)) if i + a < side and j + b < side]
    q = np.zeros((side * side, side * side))
    for i, j in pairs:
        q[[i, j], [j, i]] -= 1
        q[[i, j], [i, j]] += 1
    return np.array(pairs).T + 1, q


def spatial(rng, side):
    """Data and text of a convolution of a spatial and a free field of relative risks, scaled by the geometric mean of its variances."""
    (first, second), q = neighbours(side)
    n = side * side
    variances = np.diag(np.linalg.pinv(q))
    values, vectors = np.linalg.eigh(q)
    field = vectors[:, 1:] @ (rng.standard_normal(n - 1) / np.sqrt(values[1:]))
    expected = rounded(rng.gamma(4, 1.5, n))
    z = rounded(rng.standard_normal(n))
    return {
        "data": {"first": first, "second": second, "expected": expected, "scale": rounded(np.exp(np.log(variances).mean())), "z": z, "y": rng.poisson(expected * np.exp(0.1 + 0.3 * z + 0.5 * field + 0.2 * rng.standard_normal(n)))},
        "parameters": f"""
            real a;
            real b;
            real<lower=0> s;
            real<lower=0, upper=1> rho;
            vector[{n}] free;
            vector[{n}] field;""",
        "body": f"""
            a ~ normal(0, 1);
            b ~ normal(0, 1);
            s ~ normal(0, 1);
            rho ~ beta(1, 1);
            free ~ normal(0, 1);
            target += -0.5 * dot_self(field[first] - field[second]);
            sum(field) ~ normal(0, {0.001 * n:g});
            y ~ poisson_log(log(expected) + a + b * z + s * (sqrt(rho / scale) * field + sqrt(1 - rho) * free));""",
    }


@program
def predictors_horseshoe(rng):
    """Regression of sixty rows on forty columns, three of which matter, with a regularised horseshoe"""
    x = rounded(rng.standard_normal((60, 40)))
    return {
        "data": {"x": x, "y": rounded(1 + x[:, :3] @ [1.5, -1, 0.6] + rng.standard_normal(60))},
        "parameters": """
            real a;
            real<lower=0> s;
            vector[40] raw;
            vector<lower=0>[40] local;
            real<lower=0> tau;
            real<lower=0> slab;""",
        "body": """
            vector[40] width = sqrt(slab * square(local) ./ (slab + square(tau * local)));
            a ~ normal(0, 3);
            s ~ exponential(1);
            raw ~ normal(0, 1);
            local ~ cauchy(0, 1);
            tau ~ normal(0, 0.2);
            slab ~ inv_gamma(4, 8);
            y ~ normal(a + x * (tau * width .* raw), s);""",
        "undefined": ("local",),
    }


@program
def genes_logistic(rng):
    """Logistic regression of 120 patients on fifty genes with scales of their own, Student t"""
    x = rounded(rng.standard_normal((120, 50)))
    return {
        "data": {"x": x, "y": rng.binomial(1, inverse(-0.3 + x[:, :3] @ [1.5, -1.2, 0.9]))},
        "parameters": """
            real a;
            vector[50] raw;
            vector<lower=0>[50] local;
            real<lower=0> tau;""",
        "body": """
            a ~ normal(0, 2);
            raw ~ normal(0, 1);
            local ~ student_t(5, 0, 1);
            tau ~ normal(0, 0.3);
            y ~ bernoulli_logit(a + x * (tau * local .* raw));""",
    }


@program
def dust_measured(rng):
    """Lung function on exposure to dust, which is measured twice with errors, for forty workers"""
    true = 1 + 0.8 * rng.standard_normal(40)
    return {
        "data": {"w": rounded(true[:, None] + 0.5 * rng.standard_normal((40, 2))), "y": rounded(2 - 0.9 * true + 0.4 * rng.standard_normal(40))},
        "parameters": """
            vector[40] dust;
            real mu;
            real<lower=0> spread;
            real<lower=0> error;
            real a;
            real b;
            real<lower=0> s;""",
        "body": """
            dust ~ normal(mu, spread);
            mu ~ normal(0, 3);
            [spread, error, s] ~ exponential(1);
            a ~ normal(0, 3);
            b ~ normal(0, 2);
            for (k in 1 : 2) w[ : , k] ~ normal(dust, error);
            y ~ normal(a + b * dust, s);""",
    }


@program
def trials_pooled(rng):
    """Twenty-four trials pooled, whose true effects have heavy tails"""
    error = rounded(rng.uniform(0.1, 0.5, 24))
    return {
        "data": {"error": error, "y": rounded(0.3 + 0.25 * rng.standard_t(4, 24) + error * rng.standard_normal(24))},
        "parameters": """
            real mu;
            real<lower=0> tau;
            real<lower=2> nu;
            vector[24] effect;""",
        "body": """
            mu ~ normal(0, 1);
            tau ~ normal(0, 0.5);
            nu ~ gamma(2, 0.1);
            effect ~ student_t(nu, 0, 1);
            y ~ normal(mu + tau * effect, error);""",
    }


@program
def counts_smooth(rng):
    """Counts at twenty-five times whose logarithmic rate is a Gaussian process, Matern 3/2"""
    t = rounded(np.linspace(0, 10, 25))
    return {
        "data": {"t": t, "y": rng.poisson(np.exp(1 + 0.8 * np.sin(0.9 * t)))},
        "parameters": """
            real a;
            real<lower=0> length;
            real<lower=0> size;
            vector[25] raw;""",
        "body": """
            matrix[25, 25] cov = add_diag(gp_matern32_cov(to_array_1d(t), size, length), 1e-8);
            a ~ normal(0, 2);
            length ~ inv_gamma(4, 8);
            size ~ normal(0, 1);
            raw ~ normal(0, 1);
            y ~ poisson_log(a + cholesky_decompose(cov) * raw);""",
    }


@program
def areas_convolved(rng):
    """Relative risks of forty-nine areas, partly spatial, partly free (BYM2)"""
    return spatial(rng, 7)


@program
def areas_dependent(rng):
    """Yields of thirty-six plots with a conditional autoregression whose dependence is estimated"""
    (first, second), q = neighbours(6)
    number = np.diag(q)
    touch = np.diag(number) - q
    values = np.linalg.eigvalsh(touch / np.sqrt(np.outer(number, number)))
    field = np.linalg.cholesky(np.linalg.inv(2 * (np.diag(number) - 0.9 * touch))) @ rng.standard_normal(36)
    return {
        "data": {"first": first, "second": second, "number": number, "values": np.round(values, 8), "y": rounded(4 + field + 0.3 * rng.standard_normal(36))},
        "parameters": """
            real mu;
            real<lower=0> tau;
            real<lower=0, upper=1> rho;
            real<lower=0> s;
            vector[36] field;""",
        "body": """
            mu ~ normal(0, 5);
            tau ~ gamma(2, 1);
            rho ~ beta(2, 1);
            s ~ gamma(5, 15);
            target += 18 * log(tau) + 0.5 * sum(log1m(rho * values));
            target += -0.5 * tau * (sum(number .* square(field)) - 2 * rho * dot_product(field[first], field[second]));
            y ~ normal(mu + field, s);""",
    }


@program
def items_discriminating(rng):
    """Forty-five people answer eight items that differ in difficulty and discrimination"""
    ability, slope, hard = rng.standard_normal(45), np.exp(0.3 * rng.standard_normal(8)), rng.standard_normal(8)
    return {
        "data": {"y": rng.binomial(1, inverse(slope * (ability[:, None] - hard)))},
        "parameters": """
            vector[45] ability;
            vector<lower=0>[8] slope;
            vector[8] hard;
            real<lower=0> spread;""",
        "body": """
            ability ~ normal(0, 1);
            slope ~ lognormal(0, 0.5);
            hard ~ normal(0, spread);
            spread ~ gamma(2, 1);
            for (j in 1 : 8) y[ : , j] ~ bernoulli_logit(slope[j] * (ability - hard[j]));""",
    }


@program
def cases_autoregressive(rng):
    """Weekly cases of a disease whose logarithmic rate is an autoregression, eighty weeks"""
    x = [0.0]
    for _ in range(79):
        x.append(0.8 * x[-1] + 0.4 * rng.standard_normal())
    return {
        "data": {"y": rng.poisson(np.exp(1.2 + np.array(x)))},
        "parameters": """
            real mu;
            real<lower=-1, upper=1> phi;
            real<lower=0> q;
            vector[80] x;""",
        "body": """
            mu ~ normal(0, 2);
            phi ~ normal(0.5, 0.5);
            q ~ gamma(3, 6);
            x[1] ~ normal(mu, q / sqrt(1 - square(phi)));
            x[2 : 80] ~ normal(mu + phi * (x[1 : 79] - mu), q);
            y ~ poisson_log(x);""",
    }


@program
def infections_frailty(rng):
    """Times to infection of thirty patients, three each, with Weibull hazards and gamma frailties"""
    patient, treated = np.repeat(np.arange(1, 31), 3), np.tile([0.0, 1, 1], 30)
    rate = 0.1 * np.exp(-0.6 * treated) * rng.gamma(2, 0.5, 30)[patient - 1]
    t = (rng.exponential(1, 90) / rate) ** (1 / 1.3)
    return {
        "data": {"patient": patient, "treated": treated, "t": rounded(np.clip(t, 0.01, 15.0)), "seen": (t < 15).astype(int)},
        "parameters": """
            real a;
            real b;
            real<lower=0> shape;
            real<lower=0> varied;
            vector<lower=0>[30] frailty;""",
        "body": """
            vector[90] rate = exp(a + b * treated) .* frailty[patient];
            a ~ normal(-2, 2);
            b ~ normal(0, 1);
            shape ~ gamma(3, 2);
            varied ~ gamma(2, 3);
            frailty ~ gamma(1 / varied, 1 / varied);
            for (i in 1 : 90) {
            if (seen[i] == 1) target += log(rate[i] * shape) + (shape - 1) * log(t[i]);
            target += -rate[i] * pow(t[i], shape);
            }""",
    }


@program
def schools_nested(rng):
    """Scores of pupils in forty schools of eight districts, effects nested and centred at the district"""
    school = np.repeat(np.arange(1, 41), 6)
    district = np.repeat(np.arange(1, 9), 5)
    effect = (0.6 * rng.standard_normal(8))[district - 1] + 0.5 * rng.standard_normal(40)
    return {
        "data": {"school": school, "district": district, "y": rounded(5 + effect[school - 1] + rng.standard_normal(240))},
        "parameters": """
            real mu;
            vector[8] raw;
            vector[40] mean;
            real<lower=0> between;
            real<lower=0> within;
            real<lower=0> s;""",
        "body": """
            mu ~ normal(0, 10);
            raw ~ normal(0, 1);
            between ~ normal(0, 1);
            within ~ gamma(3, 4);
            s ~ exponential(1);
            mean ~ normal((mu + between * raw)[district], within);
            y ~ normal(mean[school], s);""",
    }


@program
def votes_slopes(rng):
    """Votes in twenty towns: an intercept and two slopes vary over towns, correlated"""
    town = np.repeat(np.arange(1, 21), 14)
    x = rounded(np.stack([np.ones(280), rng.standard_normal(280), rng.binomial(1, 0.5, 280) - 0.5], 1))
    own = rng.multivariate_normal([-0.2, 0.7, 0.4], [[0.4, 0.15, 0], [0.15, 0.25, 0.05], [0, 0.05, 0.2]], 20)
    return {
        "data": {"town": town, "x": x, "y": rng.binomial(1, inverse((x * own[town - 1]).sum(1)))},
        "parameters": """
            vector[3] mu;
            vector<lower=0>[3] tau;
            cholesky_factor_corr[3] corr;
            matrix[3, 20] raw;""",
        "body": """
            matrix[20, 3] own = rep_matrix(mu', 20) + (diag_pre_multiply(tau, corr) * raw)';
            mu ~ normal(0, 2);
            tau ~ normal(0, 1);
            corr ~ lkj_corr_cholesky(2);
            to_vector(raw) ~ normal(0, 1);
            y ~ bernoulli_logit(rows_dot_product(x, own[town]));""",
    }


@program
def machines_spread(rng):
    """Twenty-two machines that differ in the mean and in the spread of their products, both correlated"""
    machine = np.repeat(np.arange(1, 23), 7)
    own = rng.multivariate_normal([0, 0], [[0.5, 0.2], [0.2, 0.25]], 22)
    return {
        "data": {"machine": machine, "y": rounded(3 + own[machine - 1, 0] + np.exp(-0.5 + own[machine - 1, 1]) * rng.standard_normal(154))},
        "parameters": """
            vector[2] mu;
            vector<lower=0>[2] tau;
            cholesky_factor_corr[2] corr;
            matrix[2, 22] raw;""",
        "body": """
            matrix[2, 22] own = rep_matrix(mu, 22) + diag_pre_multiply(tau, corr) * raw;
            mu ~ normal(0, 5);
            tau ~ normal(0, 1);
            corr ~ lkj_corr_cholesky(1);
            to_vector(raw) ~ normal(0, 1);
            y ~ normal(own[1, machine], exp(own[2, machine]));""",
    }


@program
def tests_one_factor(rng):
    """Six tests of fifty pupils that share one factor, with positive loadings"""
    load = np.array([0.9, 0.8, 0.7, 0.6, 0.8, 0.4])
    return {
        "data": {"y": rounded(np.arange(6.0) + rng.standard_normal((50, 1)) * load + 0.6 * rng.standard_normal((50, 6)))},
        "parameters": """
            vector[50] factor;
            vector[6] mu;
            vector<lower=0>[6] load;
            vector<lower=0>[6] s;""",
        "body": """
            factor ~ normal(0, 1);
            mu ~ normal(0, 5);
            load ~ normal(0, 1);
            s ~ gamma(3, 4);
            for (j in 1 : 6) y[ : , j] ~ normal(mu[j] + load[j] * factor, s[j]);""",
    }


@program
def curve_spline(rng):
    """A smooth curve through ninety points by twenty splines whose coefficients walk, with Student t errors"""
    t = np.sort(rng.uniform(0, 1, 90))
    knots = np.linspace(-3 / 17, 1 + 3 / 17, 24)
    basis = ((knots[:-1] <= t[:, None]) & (t[:, None] < knots[1:])).astype(float)
    for degree in (1, 2, 3):
        width = degree / 17
        basis = (t[:, None] - knots[: -degree - 1]) / width * basis[:, :-1] + (knots[degree + 1 :] - t[:, None]) / width * basis[:, 1:]
    return {
        "data": {"basis": rounded(basis), "y": rounded(np.sin(6 * t) + t + 0.3 * rng.standard_t(4, 90))},
        "parameters": """
            real first;
            vector[19] step;
            real<lower=0> q;
            real<lower=0> s;
            real<lower=1> nu;""",
        "body": """
            vector[20] b = first + append_row(0, cumulative_sum(q * step));
            first ~ normal(0, 2);
            step ~ normal(0, 1);
            q ~ normal(0, 1);
            s ~ normal(0, 1);
            nu ~ gamma(2, 0.1);
            y ~ student_t(nu, basis * b, s);""",
    }


@program
def reproduction_walk(rng):
    """Infections of forty-five days by a renewal equation whose reproduction number walks on the logarithmic scale"""
    serial = np.diff(1 - np.exp(-((np.arange(11) / 5.0) ** 2)))
    serial /= serial.sum()
    y = [12, 10, 14, 13, 15]
    level = 0.3
    for _ in range(45):
        level += 0.12 * rng.standard_normal() - 0.01
        past = np.array(y[::-1][:10])
        mean = np.exp(level) * (past * serial[: len(past)]).sum() / serial[: len(past)].sum()
        y.append(int(rng.negative_binomial(15, 15 / (15 + mean))))
    return {
        "data": {"serial": rounded(serial), "y": np.array(y)},
        "parameters": """
            real first;
            vector[44] step;
            real<lower=0> q;
            real<lower=0> phi;""",
        "body": """
            vector[45] level = first + append_row(0, cumulative_sum(q * step));
            first ~ normal(0, 0.5);
            step ~ normal(0, 1);
            q ~ normal(0, 0.3);
            phi ~ gamma(2, 0.1);
            for (i in 6 : 50) {
            int k = min(10, i - 1);
            real past = 0;
            for (j in 1 : k) past += y[i - j] * serial[j];
            y[i] ~ neg_binomial_2_log(level[i - 5] + log(past / sum(serial[1 : k]) + 1e-3), phi);
            }""",
    }


@program
def essays_judged(rng):
    """Five grades that eight judges give to eighteen essays, both with effects of their own"""
    judge, essay = np.repeat(np.arange(1, 9), 18), np.tile(np.arange(1, 19), 8)
    latent = (0.7 * rng.standard_normal(8))[judge - 1] + (1.1 * rng.standard_normal(18))[essay - 1] + rng.standard_normal(144)
    return {
        "data": {"judge": judge, "essay": essay, "y": 1 + (latent[:, None] > [-1.5, -0.5, 0.6, 1.7]).sum(1)},
        "parameters": """
            vector[8] strict;
            vector[18] good;
            real<lower=0> sj;
            real<lower=0> se;
            ordered[4] cut;""",
        "body": """
            strict ~ normal(0, 1);
            good ~ normal(0, 1);
            [sj, se] ~ normal(0, 1.5);
            cut ~ normal(0, 3);
            y ~ ordered_probit(se * good[essay] - sj * strict[judge], cut);""",
    }


@program
def batters_beta(rng):
    """Hits of forty batters with chances of their own, which are beta distributed"""
    tries = rng.integers(10, 80, 40)
    return {
        "data": {"tries": tries, "hits": rng.binomial(tries, rng.beta(14, 36, 40))},
        "parameters": """
            vector<lower=0, upper=1>[40] chance;
            real<lower=0, upper=1> mu;
            real<lower=0> kappa;""",
        "body": """
            mu ~ beta(2, 4);
            kappa ~ gamma(2, 0.04);
            chance ~ beta(mu * kappa, (1 - mu) * kappa);
            hits ~ binomial(tries, chance);""",
    }
