skip_without_brms <- function() {
  skip_without_jensen()
  skip_if_short()
  for (package in c("brms", "rstan", "loo", "lme4")) {
    testthat::skip_if_not_installed(package)
  }
}

test_that("a linear model agrees with least squares", {
  skip_without_brms()
  fit <- brm_jensen(mpg ~ wt + hp, data = mtcars, seed = 1)
  expect_true(fit$jensen$trusted)
  least <- stats::coef(summary(stats::lm(mpg ~ wt + hp, mtcars)))
  found <- brms::fixef(fit)
  # With flat priors, means equal least squares within Monte-Carlo errors of 4000 draws.
  expect_lt(max(abs(found[, "Estimate"] - least[, "Estimate"]) / least[, "Std. Error"]), 5 / sqrt(4000) + 0.03)
  expect_lt(max(abs(found[, "Est.Error"] / least[, "Std. Error"] - 1)), 0.12)
  expect_output(print(summary(fit)), "^Verdict: trusted")
  expect_s3_class(fit, "brmsfit")
})

test_that("post-processing of brms works, also with other arguments of brm", {
  skip_without_brms()
  expect_message(
    fit <- brm_jensen(count ~ zAge + zBase * Trt + (1 | patient), data = brms::epilepsy, family = stats::poisson(),
                      prior = brms::set_prior("normal(0, 5)", class = "b"), chains = 2, seed = 1, draws = 500),
    "`chains`"
  )
  expect_s3_class(summary(fit), "brmssummary")
  expect_s3_class(brms::conditional_effects(fit, "zAge"), "brms_conditional_effects")
  expect_s3_class(brms::pp_check(fit, ndraws = 10), "ggplot")
  # loo warns of outliers in the epilepsy counts.
  expect_s3_class(suppressWarnings(brms::loo(fit)), "loo")
  expect_equal(dim(stats::predict(fit)), c(236, 4))
  expect_equal(dim(stats::fitted(fit)), c(236, 4))
  expect_equal(dim(brms::posterior_epred(fit, ndraws = 20)), c(20, 236))
  expect_s3_class(brms::hypothesis(fit, "zBase > 0"), "brmshypothesis")
  expect_equal(dim(brms::bayes_R2(fit)), c(1, 4))
  expect_equal(posterior::ndraws(posterior::as_draws(fit)), 500)
  expect_equal(nrow(brms::ranef(fit)$patient), 59)
  if (requireNamespace("emmeans", quietly = TRUE)) {
    expect_equal(nrow(as.data.frame(emmeans::emmeans(fit, ~Trt))), 2)
  }
  again <- stats::update(fit, . ~ . - zAge, seed = 2)
  expect_s3_class(again, "brmsfit_jensen")
  expect_false("b_zAge" %in% brms::variables(again))
  half <- stats::update(fit, newdata = brms::epilepsy[1:118, ], draws = 300)
  expect_equal(stats::nobs(half), 118)
  expect_equal(brms::ndraws(half), 300)
})

test_that("jensen_model accepts programs and data of brms", {
  skip_without_brms()
  code <- brms::make_stancode(Reaction ~ Days + (Days | Subject), data = lme4::sleepstudy)
  data <- brms::make_standata(Reaction ~ Days + (Days | Subject), data = lme4::sleepstudy)
  fit <- jensen_model(code)$fit(data, seed = 1)
  expect_true(fit$trusted)
  witness <- lme4::fixef(lme4::lmer(Reaction ~ Days + (Days | Subject), lme4::sleepstudy))
  expect_lt(abs(fit$summary("b")$mean - witness[["Days"]]), 0.5)
})
