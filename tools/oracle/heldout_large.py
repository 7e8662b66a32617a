"""Programs of heldout.py with more than a hundred and fifty parameters. Each function draws its data; its first line says what the
program is."""

import numpy as np

from heldout_middle import spatial
from heldout_small import inverse, rounded

PROGRAMS = []


def program(make):
    PROGRAMS.append(make)
    return make


@program
def pupils_items(rng):
    """A hundred and sixty pupils and ten items of one discrimination"""
    return {
        "data": {"y": rng.binomial(1, inverse(1.2 * rng.standard_normal((160, 1)) - rng.standard_normal(10)))},
        "parameters": """
            vector[160] ability;
            vector[10] hard;
            real<lower=0> slope;""",
        "body": """
            ability ~ normal(0, 1);
            hard ~ normal(0, 2);
            slope ~ normal(0, 2);
            for (j in 1 : 10) y[ : , j] ~ bernoulli_logit(slope * ability - hard[j]);""",
    }


@program
def traps_crossed(rng):
    """Insects in twelve traps on fourteen nights, with effects of traps, nights and every count"""
    trap, night = np.repeat(np.arange(1, 13), 14), np.tile(np.arange(1, 15), 12)
    rate = 1 + (0.6 * rng.standard_normal(12))[trap - 1] + (0.4 * rng.standard_normal(14))[night - 1] + 0.5 * rng.standard_normal(168)
    return {
        "data": {"trap": trap, "night": night, "y": rng.poisson(np.exp(rate))},
        "parameters": """
            real mu;
            vector[12] a;
            vector[14] b;
            vector[168] e;
            vector<lower=0>[3] tau;""",
        "body": """
            mu ~ normal(0, 2);
            a ~ normal(0, 1);
            b ~ normal(0, 1);
            e ~ normal(0, 1);
            tau ~ normal(0, 1);
            y ~ poisson_log(mu + tau[1] * a[trap] + tau[2] * b[night] + tau[3] * e);""",
    }


@program
def sales_seasonal(rng):
    """Sales of eighty quarters: a level that walks and a season that changes"""
    season, level, y = [1.0, -0.5, -1.0], 0.0, []
    for _ in range(80):
        level += 0.3 * rng.standard_normal()
        season.append(-sum(season[-3:]) + 0.2 * rng.standard_normal())
        y.append(level + season[-1] + 0.5 * rng.standard_normal())
    return {
        "data": {"y": rounded(y)},
        "parameters": """
            vector[80] walk;
            vector[80] shock;
            vector[3] start;
            real<lower=0> ql;
            real<lower=0> qs;
            real<lower=0> s;""",
        "body": """
            vector[83] season;
            season[1 : 3] = start;
            for (i in 4 : 83) season[i] = qs * shock[i - 3] - sum(season[i - 3 : i - 1]);
            walk ~ normal(0, 1);
            shock ~ normal(0, 1);
            start ~ normal(0, 1);
            [ql, qs, s] ~ normal(0, 0.5);
            y ~ normal(cumulative_sum(ql * walk) + season[4 : 83], s);""",
    }


@program
def returns_volatile(rng):
    """Returns of two hundred and fifty days, whose logarithmic variance is an autoregression"""
    h = [0.0]
    for _ in range(249):
        h.append(0.95 * h[-1] + 0.25 * rng.standard_normal())
    return {
        "data": {"y": rounded(np.exp((-0.5 + np.array(h)) / 2) * rng.standard_normal(250))},
        "parameters": """
            real mu;
            real<lower=-1, upper=1> phi;
            real<lower=0> q;
            vector[250] raw;""",
        "body": """
            vector[250] h = q * raw;
            h[1] /= sqrt(1 - square(phi));
            for (i in 2 : 250) h[i] += phi * h[i - 1];
            mu ~ normal(0, 2);
            (phi + 1) / 2 ~ beta(20, 1.5);
            q ~ gamma(2, 8);
            raw ~ normal(0, 1);
            y ~ normal(0, exp((mu + h) / 2));""",
    }


@program
def areas_convolved_more(rng):
    """Relative risks of a hundred and twenty-one areas, partly spatial, partly free (BYM2)"""
    return spatial(rng, 11)


@program
def polls_crossed(rng):
    """A poll in cells of thirty regions, six ages and three schoolings, with regions and ages interacting"""
    region, age, school = (k.ravel() + 1 for k in np.meshgrid(np.arange(30), np.arange(6), np.arange(3), indexing="ij"))
    both = (region - 1) * 6 + age
    asked = rng.poisson(4, 540)
    logit = -0.1 + (0.5 * rng.standard_normal(30))[region - 1] + (0.3 * rng.standard_normal(6))[age - 1] + np.array([-0.3, 0, 0.4])[school - 1] + (0.25 * rng.standard_normal(180))[both - 1]
    return {
        "data": {"region": region, "age": age, "school": school, "both": both, "asked": asked, "yes": rng.binomial(asked, inverse(logit))},
        "parameters": """
            real mu;
            vector[30] a;
            vector[6] b;
            vector[3] c;
            vector[180] d;
            vector<lower=0>[4] tau;""",
        "body": """
            mu ~ normal(0, 1);
            a ~ normal(0, 1);
            b ~ normal(0, 1);
            c ~ normal(0, 1);
            d ~ normal(0, 1);
            tau ~ normal(0, 0.7);
            yes ~ binomial_logit(asked, mu + tau[1] * a[region] + tau[2] * b[age] + tau[3] * c[school] + tau[4] * d[both]);""",
    }


@program
def children_growth(rng):
    """Heights of eighty children at four ages, with intercepts and slopes of their own, correlated, centred"""
    own = rng.multivariate_normal([80, 6], [[9, 1.5], [1.5, 0.8]], 80)
    age = np.array([-1.5, -0.5, 0.5, 1.5])
    return {
        "data": {"age": age, "y": rounded(own[:, :1] + own[:, 1:] * age + rng.standard_normal((80, 4)))},
        "parameters": """
            vector[2] mu;
            vector<lower=0>[2] tau;
            cholesky_factor_corr[2] corr;
            array[80] vector[2] own;
            real<lower=0> s;""",
        "body": """
            mu[1] ~ normal(80, 20);
            mu[2] ~ normal(5, 5);
            tau ~ exponential(0.5);
            corr ~ lkj_corr_cholesky(2);
            s ~ exponential(1);
            own ~ multi_normal_cholesky(mu, diag_pre_multiply(tau, corr));
            for (i in 1 : 80) y[i]' ~ normal(own[i, 1] + own[i, 2] * age, s);""",
    }


@program
def patients_processes(rng):
    """Eight patients whose curves are a common Gaussian process and one of their own, at sixteen times"""
    t = np.linspace(0, 6, 16)
    cov = lambda length, size: size**2 * np.exp(-0.5 * ((t[:, None] - t) / length) ** 2) + 1e-9 * np.eye(16)
    common = np.linalg.cholesky(cov(1.8, 1.0)) @ rng.standard_normal(16)
    own = np.linalg.cholesky(cov(1.2, 0.5)) @ rng.standard_normal((16, 8))
    return {
        "data": {"t": rounded(t), "y": rounded(common[:, None] + own + 0.3 * rng.standard_normal((16, 8)))},
        "parameters": """
            vector<lower=0>[2] length;
            vector<lower=0>[2] size;
            real<lower=0> s;
            vector[16] common;
            matrix[16, 8] own;""",
        "body": """
            vector[16] mean = cholesky_decompose(add_diag(gp_exp_quad_cov(to_array_1d(t), size[1], length[1]), 1e-8)) * common;
            matrix[16, 8] each = cholesky_decompose(add_diag(gp_exp_quad_cov(to_array_1d(t), size[2], length[2]), 1e-8)) * own;
            length ~ inv_gamma(5, 6);
            size ~ normal(0, 1);
            s ~ normal(0, 1);
            common ~ normal(0, 1);
            to_vector(own) ~ normal(0, 1);
            for (j in 1 : 8) y[ : , j] ~ normal(mean + each[ : , j], s);""",
    }


@program
def wells_below_limit(rng):
    """Nitrate in three hundred wells; 160 values under a limit of detection are parameters"""
    z = rounded(rng.standard_normal(300))
    level = rounded(0.3 + 0.7 * z + 0.8 * rng.standard_normal(300))
    order = np.argsort(level)
    low, high = order[:160], order[160:]
    return {
        "data": {"limit": float(rounded(level[order[160]] - 1e-3)), "zl": z[low], "zh": z[high], "y": level[high]},
        "parameters": """
            real a;
            real b;
            real<lower=0> s;
            vector<upper=limit>[160] under;""",
        "body": """
            a ~ normal(0, 2);
            b ~ normal(0, 2);
            s ~ exponential(1);
            under ~ normal(a + b * zl, s);
            y ~ normal(a + b * zh, s);""",
    }


@program
def cyclists_trend(rng):
    """Cyclists counted on a hundred and sixty days: a trend that walks, days of the week, and overdispersion"""
    walk = np.cumsum(0.08 * rng.standard_normal(160))
    day = np.arange(160) % 7 + 1
    mean = np.exp(3 + walk + np.array([0.2, 0.1, 0.1, 0.2, 0, -0.6, -0.7])[day - 1])
    return {
        "data": {"day": day, "y": rng.negative_binomial(20, 20 / (20 + mean))},
        "parameters": """
            real mu;
            vector[159] step;
            vector[6] week;
            real<lower=0> q;
            real<lower=0> phi;""",
        "body": """
            vector[160] trend = append_row(0, cumulative_sum(q * step));
            vector[7] effect = append_row(0, week);
            mu ~ normal(3, 2);
            step ~ normal(0, 1);
            week ~ normal(0, 1);
            q ~ normal(0, 0.3);
            phi ~ gamma(2, 0.05);
            y ~ neg_binomial_2_log(mu + trend + effect[day], phi);""",
    }
