# Processor seconds of a dozen regressions by brms and by maximum likelihood.
#
#   Rscript tools/peers/regress_seconds.R crates/jensen/tests/data/regressions [NAME...]
#
# The script prints one row per case. brms, with its default priors, compiles and draws four chains of 2000 iterations (its default), one after
# another. The last column is the maximum-likelihood fit. Processor seconds include the compiler. `tools/peers/regress.py` prints times of Jensen.
# Needs R with brms, lme4, MASS, survival, ordinal, mgcv and nnet.
suppressPackageStartupMessages({
  library(brms)
  library(lme4)
})
rstan::rstan_options(boost_lib = "/usr/include")
asked <- commandArgs(trailingOnly = TRUE)

cases <- list(
  sleepstudy = list(Reaction ~ Days + (Days | Subject), gaussian(), function(f, d) lmer(f, d)),
  cbpp = list(incidence | trials(size) ~ factor(period) + (1 | herd), binomial(),
              function(f, d) glmer(cbind(incidence, size - incidence) ~ factor(period) + (1 | herd), d, binomial)),
  grouseticks = list(TICKS ~ factor(YEAR) + scale(HEIGHT) + (1 | BROOD) + (1 | LOCATION), poisson(), function(f, d) glmer(f, d, poisson)),
  cake = list(angle ~ recipe * temp + (1 | recipe:replicate), gaussian(), function(f, d) lmer(f, d)),
  airquality = list(log(Ozone) ~ Solar.R + Wind + Temp, student(), function(f, d) lm(f, d)),
  quine = list(Days ~ Eth + Sex + Age + Lrn, negbinomial(), function(f, d) MASS::glm.nb(f, d)),
  birthwt = list(low ~ age + lwt + factor(race) + smoke + ht, bernoulli(), function(f, d) glm(f, binomial, d)),
  lung = list(time | cens(cens) ~ age + sex, weibull(),
              function(f, d) survival::survreg(survival::Surv(time, cens == "none") ~ age + sex, d)),
  epilepsy = list(y ~ lbase * trt + lage + V4 + (1 | subject), poisson(), function(f, d) glmer(f, d, poisson)),
  wine = list(rating ~ temp + contact + (1 | judge), cumulative(),
              function(f, d) ordinal::clmm(factor(rating) ~ temp + contact + (1 | judge), data = d)),
  mcycle = list(bf(accel ~ s(times, bs = "cr"), sigma ~ times), gaussian(),
                function(f, d) mgcv::gam(accel ~ s(times, bs = "cr"), data = d, method = "REML")),
  contraception = list(use ~ urban + age + I(age^2) + (urban | district), bernoulli("probit"),
                       function(f, d) glmer(f, d, binomial("probit"), control = glmerControl(optimizer = "bobyqa")))
)

spent <- function(expression) {
  before <- proc.time()
  force(expression)
  # The processor's time here and in child processes.
  sum((proc.time() - before)[c(1, 2, 4, 5)])
}

cat("| data | brms compiles | brms samples | maximum likelihood |\n| --- | ---: | ---: | ---: |\n")
for (name in if (length(asked) > 1) asked[-1] else names(cases)) {
  case <- cases[[name]]
  d <- utils::read.csv(file.path(asked[1], paste0(name, ".csv")))
  made <- NULL
  compiling <- spent(made <- suppressMessages(brm(case[[1]], d, case[[2]], chains = 0)))
  sampling <- spent(suppressMessages(suppressWarnings(utils::capture.output(
    update(made, recompile = FALSE, chains = 4, iter = 2000, cores = 1, refresh = 0, seed = 1)
  ))))
  likelihood <- spent(suppressMessages(suppressWarnings(case[[3]](case[[1]], d))))
  cat(sprintf("| %s | %.0f | %.1f | %.2f |\n", name, compiling, sampling, likelihood))
}
