# Forty-eight models of brms and their data, for models.R and long_runs.R. The script needs brms.

set.seed(20261128)
n <- 150
table <- data.frame(x = rnorm(n), w = rnorm(n), z = runif(n, 0, 10), g = factor(sample(1:10, n, TRUE)),
                    h = factor(sample(1:6, n, TRUE)), f = factor(sample(c("a", "b", "c"), n, TRUE)),
                    trials = sample(5:15, n, TRUE), time = rep(1:15, 10), se = runif(n, 0.3, 0.6))
level <- rnorm(10, 0, 0.6)[table$g]
line <- 0.4 + 0.6 * table$x + level
table <- within(table, {
  y <- line + rnorm(n, 0, 0.5)
  y2 <- 0.3 * x - 0.5 * line + rnorm(n, 0, 0.5)
  pos <- exp(0.3 * line + rnorm(n, 0, 0.4))
  count <- rpois(n, exp(0.5 * line))
  over <- rnbinom(n, size = 2, mu = exp(0.5 * line))
  zeros <- ifelse(runif(n) < 0.25, 0, over)
  bin <- rbinom(n, 1, plogis(line))
  hits <- rbinom(n, trials, plogis(0.5 * line))
  share <- plogis(0.7 * line + rnorm(n, 0, 0.5))
  shares01 <- ifelse(runif(n) < 0.1, 0, share)
  rating <- cut(line + rlogis(n), c(-Inf, -1, 0, 1, Inf), labels = FALSE)
  kind <- factor(ifelse(line + rlogis(n) > 0.5, "a", ifelse(runif(n) < 0.5, "b", "c")))
  wave <- sin(z) + rnorm(n, 0, 0.3)
  income <- factor(sample(c("low", "mid", "high"), n, TRUE), levels = c("low", "mid", "high"), ordered = TRUE)
  angle <- atan2(sin(0.5 * x + rnorm(n, 0, 0.4)), cos(0.5 * x + rnorm(n, 0, 0.4)))
  limit <- pmin(y, 1)
  censored <- ifelse(y > 1, "right", "none")
  gap <- ifelse(runif(n) < 0.1, NA, x)
  noisy <- x + rnorm(n, 0, 0.3)
  decay <- 3 * exp(-0.3 * z) + rnorm(n, 0, 0.2)
  walk <- ave(rnorm(n), g, FUN = function(e) as.numeric(stats::filter(e, 0.6, "recursive"))) + 0.5 * x
})
series <- data.frame(time = 1:80, x = rnorm(80))
series$y <- 0.5 * series$x + as.numeric(stats::filter(rnorm(80, 0, 0.5), 0.6, "recursive"))
narrow <- set_prior("normal(0, 2)", class = "b")
adjacent <- matrix(0, 10, 10, dimnames = list(1:10, 1:10))
adjacent[cbind(1:9, 2:10)] <- adjacent[cbind(2:10, 1:9)] <- 1

# A formula and other arguments of brm_jensen(). `test` is a hypothesis about a `class` of parameters, `response` is the examined response,
# and `categories` marks an ordinal or categorical response.
models <- list(
  linear = list(y ~ x + w),
  robust = list(y ~ x + w, family = student()),
  groups = list(y ~ x + (1 | g)),
  slopes = list(y ~ x + (1 + x | g)),
  uncorrelated = list(y ~ x + (1 + x || g)),
  crossed = list(y ~ x + (1 | g) + (1 | h)),
  heavy_groups = list(y ~ x + (1 | gr(g, dist = "student"))),
  factors = list(y ~ x * f),
  weighted = list(y | weights(trials) ~ x),
  meta = list(y | se(se, sigma = TRUE) ~ x + (1 | g)),
  censoring = list(limit | cens(censored) ~ x),
  truncation = list(pos | trunc(lb = 0) ~ x),
  scale = list(bf(y ~ x, sigma ~ w)),
  spline = list(wave ~ s(z), test = NULL),
  surface = list(wave ~ t2(z, x, k = 4), test = NULL),
  process = list(wave ~ gp(z, k = 12, c = 5 / 4), test = NULL),
  monotonic = list(y ~ mo(income) + x),
  measured = list(y ~ me(noisy, se), test = "menoisyse = 0", class = "bsp"),
  missing = list(bf(y ~ mi(gap)) + bf(gap | mi() ~ w) + set_rescor(FALSE), test = NULL, response = "y"),
  both = list(bf(mvbind(y, y2) ~ x + (1 | p | g)) + set_rescor(TRUE), test = "y_x > 0", response = "y"),
  nonlinear = list(bf(decay ~ a * exp(-b * z), a + b ~ 1, nl = TRUE),
                   prior = set_prior("normal(2, 1)", nlpar = "a") + set_prior("normal(0.5, 0.5)", nlpar = "b"),
                   test = "a_Intercept > 0"),
  autoregression = list(y ~ x + ar(time, p = 1), data = series),
  car = list(y ~ x + car(adjacent, gr = g, type = "icar"), data2 = list(adjacent = adjacent)),
  shrunk = list(y ~ x + w + z, prior = set_prior("horseshoe(2)", class = "b")),
  only_prior = list(y ~ x, prior = narrow, sample_prior = "only"),
  lognormal = list(pos ~ x, family = lognormal()),
  gamma = list(pos ~ x, family = Gamma("log")),
  weibull = list(pos ~ x, family = weibull()),
  skewed = list(y ~ x, family = skew_normal()),
  reaction = list(pos ~ x, family = shifted_lognormal()),
  exgaussian = list(pos ~ x, family = exgaussian()),
  quantile = list(bf(y ~ x, quantile = 0.25), family = asym_laplace()),
  bernoulli = list(bin ~ x + (1 | g), family = bernoulli()),
  binomial = list(hits | trials(trials) ~ x + (1 | g), family = binomial()),
  betabinomial = list(hits | trials(trials) ~ x, family = beta_binomial()),
  poisson = list(count ~ x + (1 | g), family = poisson()),
  offset = list(count ~ x + offset(log(trials)), family = poisson()),
  negbinomial = list(over ~ x, family = negbinomial()),
  zero_inflated = list(bf(zeros ~ x, zi ~ w), family = zero_inflated_negbinomial()),
  hurdle = list(zeros ~ x, family = hurdle_poisson()),
  beta = list(share ~ x + (1 | g), family = Beta()),
  zero_beta = list(shares01 ~ x, family = zero_inflated_beta()),
  ordinal = list(rating ~ x + (1 | g), family = cumulative(), categories = TRUE),
  sequential = list(rating ~ cs(x), family = sratio(), categories = TRUE, test = NULL),
  adjacent = list(rating ~ x, family = acat(), categories = TRUE),
  categorical = list(kind ~ x, family = categorical(), categories = TRUE, test = NULL),
  circular = list(angle ~ x, family = von_mises()),
  mixture = list(y ~ x, family = mixture(gaussian, gaussian), test = NULL,
                 prior = set_prior("normal(0, 1)", class = "b", dpar = "mu1") +
                   set_prior("normal(0, 1)", class = "b", dpar = "mu2") +
                   set_prior("normal(-1, 1)", class = "Intercept", dpar = "mu1") +
                   set_prior("normal(1.5, 1)", class = "Intercept", dpar = "mu2"))
)

# The arguments of brm() or brm_jensen() for a model.
brm_arguments <- function(name) {
  model <- models[[name]]
  if (is.null(names(model))) names(model) <- ""
  names(model)[[1]] <- "formula"
  arguments <- model[setdiff(names(model), c("test", "class", "response", "categories"))]
  if (is.null(arguments[["data"]])) arguments$data <- table
  arguments
}
