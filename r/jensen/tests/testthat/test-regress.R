test_that("a regression agrees with least squares, and predicts", {
  skip_without_jensen()
  fit <- jensen_regress(mpg ~ wt + hp, mtcars, seed = 1)
  expect_true(fit$trusted)
  least <- stats::lm(mpg ~ wt + hp, mtcars)
  at <- data.frame(wt = c(2, 3.5), hp = c(80, 200))
  predicted <- predict(fit, at)
  expect_equal(predicted$row, 1:2)
  error <- stats::predict(least, at, se.fit = TRUE)$se.fit
  expect_lt(max(abs(predicted$expected - stats::predict(least, at)) / error), 0.3)
  counts <- jensen_regress(carb ~ wt, mtcars, family = stats::poisson(), prior = "b ~ normal(0, 1)", seed = 1)
  expect_s3_class(counts, "jensen_fit")
  expect_error(jensen_regress(mpg ~ nothing, mtcars), "nothing", class = "jensen_error")
})
