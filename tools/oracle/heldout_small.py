"""Programs of heldout.py with at most twenty parameters. Each function draws its data; its first line says what the program is."""

import numpy as np

PROGRAMS = []


def program(make):
    PROGRAMS.append(make)
    return make


def rounded(x):
    return np.round(x, 4)


def inverse(x):
    return 1 / (1 + np.exp(-x))


@program
def errors_skewed(rng):
    """Regression of a hundred rows with skew-normal errors"""
    z = rounded(rng.standard_normal(100))
    error = 0.9 * np.abs(rng.standard_normal(100)) + 0.4 * rng.standard_normal(100)
    return {
        "data": {"z": z, "y": rounded(0.5 + 0.8 * z + error)},
        "parameters": """
            real a;
            real b;
            real<lower=0> s;
            real alpha;""",
        "body": """
            a ~ normal(0, 3);
            b ~ normal(0, 3);
            s ~ student_t(3, 0, 2.5);
            alpha ~ normal(0, 4);
            y ~ skew_normal(a + b * z, s, alpha);""",
    }


@program
def waiting_inverse_gaussian(rng):
    """Regression of the logarithm of the mean of waiting times, which are inverse Gaussian"""
    z = rounded(rng.standard_normal(90))
    return {
        "data": {"z": z, "y": rounded(rng.wald(np.exp(0.7 - 0.4 * z), 3.0)) + 1e-3},
        "functions": """
            real waiting_lpdf(vector y, vector mu, real shape) {
            return 0.5 * rows(y) * log(shape / (2 * pi())) - 1.5 * sum(log(y)) - 0.5 * shape * sum(square((y - mu) ./ mu) ./ y);
            }""",
        "parameters": """
            real a;
            real b;
            real<lower=0> shape;""",
        "body": """
            a ~ normal(0, 2);
            b ~ normal(0, 1);
            shape ~ gamma(2, 0.5);
            y ~ waiting(exp(a + b * z), shape);""",
    }


@program
def costs_hurdle(rng):
    """Costs of patients: many have none, the others' are lognormal, both depend on age"""
    age = rounded(rng.uniform(-1.5, 1.5, 150))
    some = rng.binomial(1, inverse(0.4 + 0.8 * age))
    return {
        "data": {"age": age, "some": some, "cost": rounded(np.exp(1 + 0.5 * age + 0.9 * rng.standard_normal(150)) * some)},
        "parameters": """
            vector[2] share;
            vector[2] size;
            real<lower=0> s;""",
        "body": """
            share ~ normal(0, 1.5);
            size ~ normal(0, 3);
            s ~ exponential(1);
            some ~ bernoulli_logit(share[1] + share[2] * age);
            for (i in 1 : 150) {
            if (some[i] == 1) cost[i] ~ lognormal(size[1] + size[2] * age[i], s);
            }""",
    }


@program
def epidemic_reported(rng):
    """An epidemic in a school by differential equations: contacts, recovery and the share of cases that is reported"""
    beta, gamma, x, ill = 1.6, 0.6, np.array([0.99, 0.01]), []
    for step in range(1, 1401):
        x = x + 0.01 * np.array([-beta * x[0] * x[1], beta * x[0] * x[1] - gamma * x[1]])
        if step % 100 == 0:
            ill.append(x[1])
    mean = 400 * 0.4 * np.array(ill)
    return {
        "data": {"t": np.arange(1.0, 15.0), "y": rng.negative_binomial(8, 8 / (8 + mean))},
        "functions": """
            vector flow(real t, vector x, real beta, real gamma) {
            real new = beta * x[1] * x[2];
            return [-new, new - gamma * x[2]]';
            }""",
        "parameters": """
            real<lower=0> beta;
            real<lower=0> gamma;
            real<lower=0, upper=1> reported;
            real<lower=0> phi;""",
        "body": """
            array[14] vector[2] x = ode_rk45(flow, [0.99, 0.01]', 0, to_array_1d(t), beta, gamma);
            beta ~ lognormal(0.3, 0.7);
            gamma ~ lognormal(-0.5, 0.5);
            reported ~ beta(2, 2);
            phi ~ gamma(2, 0.2);
            for (i in 1 : 14) y[i] ~ neg_binomial_2(400 * reported * x[i, 2] + 1e-6, phi);""",
    }


@program
def kinetics_two_compartments(rng):
    """A drug that moves between blood and tissue, by the exponential of a matrix, with lognormal errors"""
    out, to, back, volume = 0.5, 0.8, 0.4, 6.0
    t = np.array([0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12])
    values, vectors = np.linalg.eig(np.array([[-out - to, back], [to, -back]]))
    amount = np.array([(vectors @ np.diag(np.exp(values * u)) @ np.linalg.solve(vectors, [100.0, 0]))[0] for u in t])
    return {
        "data": {"t": t, "y": rounded(amount / volume * np.exp(0.15 * rng.standard_normal(10)))},
        "parameters": """
            real<lower=0> out;
            real<lower=0> to;
            real<lower=0> back;
            real<lower=0> volume;
            real<lower=0> s;""",
        "body": """
            matrix[2, 2] rates = [[-out - to, back], [to, -back]];
            vector[10] amount;
            for (i in 1 : 10) amount[i] = matrix_exp(t[i] * rates)[1, 1] * 100;
            [out, to, back] ~ lognormal(-0.7, 0.8);
            volume ~ lognormal(2, 0.7);
            s ~ normal(0, 0.5);
            y ~ lognormal(log(amount / volume), s);""",
    }


@program
def dose_emax(rng):
    """Response to doses by a sigmoid curve with four parameters, placebo included"""
    dose = np.repeat([0.0, 2.5, 5, 10, 20, 50, 100], 6)
    return {
        "data": {"dose": dose, "y": rounded(1 + 4 * dose**1.4 / (dose**1.4 + 12**1.4) + 0.9 * rng.standard_normal(42))},
        "parameters": """
            real base;
            real gain;
            real<lower=0> half;
            real<lower=0> hill;
            real<lower=0> s;""",
        "body": """
            vector[42] power;
            for (i in 1 : 42) power[i] = dose[i] == 0 ? 0 : pow(dose[i] / half, hill);
            base ~ normal(0, 2);
            gain ~ normal(0, 5);
            half ~ lognormal(2.5, 0.8);
            hill ~ lognormal(0, 0.4);
            s ~ normal(0, 2);
            y ~ normal(base + gain * power ./ (1 + power), s);""",
    }


@program
def accidents_change(rng):
    """Accidents of sixty years whose rate changes once, the year of the change summed over"""
    return {
        "data": {"y": np.concatenate([rng.poisson(3.2, 26), rng.poisson(1.1, 34)])},
        "parameters": """
            real<lower=0> early;
            real<lower=0> late;""",
        "body": """
            vector[59] change;
            for (k in 1 : 59) change[k] = poisson_lpmf(y[1 : k] | early) + poisson_lpmf(y[k + 1 : 60] | late);
            early ~ gamma(2, 1);
            late ~ gamma(2, 1);
            target += log_sum_exp(change) - log(59);""",
    }


@program
def regimes_hidden(rng):
    """A hidden Markov chain of two regimes with ordered means, by the forward algorithm, 120 steps"""
    state, y = 0, []
    for _ in range(120):
        state = state if rng.random() < (0.9, 0.8)[state] else 1 - state
        y.append((-1, 1.4)[state] + 0.8 * rng.standard_normal())
    return {
        "data": {"y": rounded(y)},
        "parameters": """
            real<lower=0, upper=1> stay;
            real<lower=0, upper=1> linger;
            ordered[2] mu;
            real<lower=0> s;""",
        "body": """
            matrix[2, 2] step = log([[stay, 1 - stay], [1 - linger, linger]]);
            vector[2] alpha;
            stay ~ beta(4, 1);
            linger ~ beta(4, 1);
            mu ~ normal(0, 2);
            s ~ exponential(1);
            for (k in 1 : 2) alpha[k] = -log2() + normal_lpdf(y[1] | mu[k], s);
            for (i in 2 : 120) {
            vector[2] next;
            for (k in 1 : 2) next[k] = log_sum_exp(alpha + step[ : , k]) + normal_lpdf(y[i] | mu[k], s);
            alpha = next;
            }
            target += log_sum_exp(alpha);""",
    }


@program
def sizes_correlated(rng):
    """Four measurements of sixty skulls, jointly normal with a prior on correlations"""
    load = np.array([0.9, 0.8, 0.6, 0.3])
    y = np.array([3.0, 1, 0, -2]) + rng.standard_normal((60, 1)) * load + 0.5 * rng.standard_normal((60, 4))
    return {
        "data": {"y": rounded(y)},
        "parameters": """
            vector[4] mu;
            vector<lower=0>[4] s;
            cholesky_factor_corr[4] corr;""",
        "body": """
            mu ~ normal(0, 5);
            s ~ exponential(1);
            corr ~ lkj_corr_cholesky(1.5);
            for (i in 1 : 60) y[i]' ~ multi_normal_cholesky(mu, diag_pre_multiply(s, corr));""",
    }


@program
def birds_recaptured(rng):
    """Birds marked in six years and seen again: survival and sighting by year (Cormack, Jolly and Seber)"""
    marked, survive, seen = np.array([60, 55, 70, 50, 65]), np.array([0.6, 0.5, 0.7, 0.55, 0.6]), np.array([0.5, 0.6, 0.4, 0.5, 0.55])
    table = np.zeros((5, 6), int)
    for i in range(5):
        chance, left = [], 1.0
        for j in range(i, 5):
            left *= survive[j]
            chance.append(left * seen[j])
            left *= 1 - seen[j]
        table[i, i:] = rng.multinomial(marked[i], [*chance, 1 - sum(chance)])
    return {
        "data": {"m": table},
        "parameters": """
            vector<lower=0, upper=1>[5] survive;
            vector<lower=0, upper=1>[5] seen;""",
        "body": """
            survive ~ beta(2, 2);
            seen ~ beta(2, 2);
            for (i in 1 : 5) {
            real left = 1;
            real never = 1;
            for (j in i : 5) {
            real chance = left * survive[j] * seen[j];
            target += m[i, j] * log(chance);
            never -= chance;
            left *= survive[j] * (1 - seen[j]);
            }
            target += m[i, 6] * log(never);
            }""",
    }


@program
def sites_occupied(rng):
    """Sixty sites visited four times: whether a species lives there, and whether it is seen"""
    z, effort = rounded(rng.standard_normal(60)), rounded(rng.standard_normal(60))
    there = rng.binomial(1, inverse(0.3 + 0.9 * z))
    return {
        "data": {"z": z, "effort": effort, "seen": rng.binomial(4, there * inverse(-0.6 + 0.5 * effort))},
        "parameters": """
            vector[2] lives;
            vector[2] sees;""",
        "body": """
            lives ~ normal(0, 1.5);
            sees ~ normal(0, 1.5);
            for (i in 1 : 60) {
            real psi = lives[1] + lives[2] * z[i];
            real p = sees[1] + sees[2] * effort[i];
            real with = log_inv_logit(psi) + binomial_logit_lpmf(seen[i] | 4, p);
            if (seen[i] > 0) target += with;
            else target += log_sum_exp(with, log1m_inv_logit(psi));
            }""",
    }


@program
def teams_paired(rng):
    """Games of twelve teams, won by strength (Bradley and Terry), with an advantage at home"""
    strength = 0.8 * rng.standard_normal(12)
    home = rng.integers(1, 13, 130)
    away = (home + rng.integers(0, 11, 130)) % 12 + 1
    return {
        "data": {"home": home, "away": away, "won": rng.binomial(1, inverse(0.4 + strength[home - 1] - strength[away - 1]))},
        "parameters": """
            vector[12] strength;
            real here;
            real<lower=0> tau;""",
        "body": """
            strength ~ normal(0, tau);
            here ~ normal(0, 1);
            tau ~ gamma(3, 3);
            won ~ bernoulli_logit(here + strength[home] - strength[away]);""",
    }


@program
def survival_pieces(rng):
    """Survival of eighty patients under a hazard constant on eight intervals, whose logarithms walk, and two columns"""
    x = rounded(np.stack([rng.standard_normal(80), rng.binomial(1, 0.5, 80)], 1))
    t = rng.exponential(1 / (0.25 * np.exp(x @ [0.5, -0.7])))
    return {
        "data": {"x": x, "t": rounded(np.clip(t, 1e-3, 8.0)), "died": (t < 8).astype(int), "piece": 1 + np.minimum(t, 7).astype(int)},
        "parameters": """
            real first;
            vector[7] step;
            real<lower=0> q;
            vector[2] b;""",
        "body": """
            vector[8] hazard = first + append_row(0, cumulative_sum(q * step));
            vector[80] risk = x * b;
            first ~ normal(-1, 2);
            step ~ normal(0, 1);
            q ~ normal(0, 0.5);
            b ~ normal(0, 1);
            for (i in 1 : 80) {
            for (k in 1 : 8) {
            if (t[i] > k - 1) target += -exp(hazard[k] + risk[i]) * fmin(1, t[i] - (k - 1));
            }
            if (died[i] == 1) target += hazard[piece[i]] + risk[i];
            }""",
    }


@program
def ranks_of_wines(rng):
    """Forty judges put eight wines into an order (Plackett and Luce), the first wine of worth zero"""
    worth = rng.standard_normal(8)
    order = np.argsort(-(worth + rng.gumbel(size=(40, 8))), 1) + 1
    return {
        "data": {"order": order},
        "parameters": """
            vector[7] worth;
            real<lower=0> tau;""",
        "body": """
            vector[8] all = append_row(0, worth);
            worth ~ normal(0, tau);
            tau ~ gamma(2, 1);
            for (i in 1 : 40) {
            vector[8] sorted = all[order[i]];
            for (k in 1 : 7) target += sorted[k] - log_sum_exp(sorted[k : 8]);
            }""",
    }


@program
def locations_cauchy(rng):
    """The location of six observations in two bunches far apart, with Cauchy errors of known scale: two modes"""
    return {
        "data": {"y": rounded(np.concatenate([-1.6 + 0.2 * rng.standard_normal(3), 1.6 + 0.2 * rng.standard_normal(3)]))},
        "parameters": "real mu;",
        "body": """
            mu ~ normal(0, 10);
            y ~ cauchy(mu, 0.9);""",
        "kind": "several",
    }


@program
def rates_exchangeable(rng):
    """A drug taken by mouth, measured five times: absorption and elimination may change places, and priors hardly tell them apart"""
    t = np.array([0.5, 1.5, 3, 5, 8])
    mean = 100 / 10 * 1.1 / (1.1 - 0.5) * (np.exp(-0.5 * t) - np.exp(-1.1 * t))
    return {
        "data": {"t": t, "y": rounded(mean * np.exp(0.4 * rng.standard_normal(5)))},
        "parameters": """
            real<lower=0> absorbed;
            real<lower=0> cleared;
            real<lower=0> volume;
            real<lower=0> s;""",
        "body": """
            vector[5] mean = 100 / volume * absorbed / (absorbed - cleared) * (exp(-cleared * t) - exp(-absorbed * t));
            absorbed ~ lognormal(0, 0.7);
            cleared ~ lognormal(-0.7, 0.7);
            volume ~ lognormal(2.1, 0.6);
            s ~ gamma(8, 20);
            y ~ lognormal(log(mean), s);""",
    }


@program
def clusters_ordered(rng):
    """Three ordered normals of one spread with unknown weights"""
    k = rng.choice(3, 110, p=[0.3, 0.45, 0.25])
    return {
        "data": {"y": rounded(np.array([-3, 0, 3.5])[k] + 0.8 * rng.standard_normal(110))},
        "parameters": """
            ordered[3] mu;
            simplex[3] w;
            real<lower=0> s;""",
        "body": """
            mu ~ normal(0, 4);
            w ~ dirichlet(rep_vector(3, 3));
            s ~ gamma(3, 3);
            for (i in 1 : 110) {
            vector[3] part = log(w);
            for (k in 1 : 3) part[k] += normal_lpdf(y[i] | mu[k], s);
            target += log_sum_exp(part);
            }""",
    }


@program
def doses_spike_slab(rng):
    """Ten slopes of a regression of fifty rows, each under a mixture of a narrow and a wide normal"""
    x = rounded(rng.standard_normal((50, 10)) + 0.6 * rng.standard_normal((50, 1)))
    return {
        "data": {"x": x, "y": rounded(0.5 + x[:, :2] @ [0.9, -0.5] + rng.standard_normal(50))},
        "parameters": """
            real a;
            vector[10] b;
            real<lower=0> s;
            real<lower=0, upper=1> w;""",
        "body": """
            a ~ normal(0, 2);
            s ~ exponential(1);
            w ~ beta(1, 3);
            for (j in 1 : 10) target += log_mix(w, normal_lpdf(b[j] | 0, 1), normal_lpdf(b[j] | 0, 0.1));
            y ~ normal(a + x * b, s);""",
    }
