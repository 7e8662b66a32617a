test_that("a fit has draws, a summary and a verdict", {
  skip_without_jensen()
  fit <- jensen_model(normal_program)$fit(normal_data, seed = 1, draws = 2000)
  expect_true(fit$trusted)
  expect_equal(fit$verdict, "trusted")
  # The posterior is normal with precision N + 1/4.
  mean <- sum(normal_data$y) / 5.25
  sd <- 1 / sqrt(5.25)
  row <- fit$summary("mu")
  expect_equal(row$variable, "mu")
  expect_lt(abs(row$mean - mean), 4 * max(row$mcse_mean, 1e-3))
  expect_lt(abs(row$sd / sd - 1), 0.05)
  draws <- fit$draws("mu")
  expect_s3_class(draws, "draws_matrix")
  expect_equal(posterior::ndraws(draws), 2000)
  expect_lt(abs(mean(draws) - mean), 5 * sd / sqrt(2000))
  expect_s3_class(fit$draws(format = "rvars"), "draws_rvars")
  expect_s3_class(posterior::as_draws_df(fit), "draws_df")
  expect_equal(sum(grepl("^log_lik\\[", posterior::variables(fit$draws()))), 5)
  expect_length(fit$lp(), 2000)
  expect_output(print(fit), "^verdict  trusted")
  expect_true(file.exists(fit$report()))
  file <- tempfile()
  fit$save_object(file)
  expect_equal(readRDS(file)$draws("mu"), draws)
  expect_equal(jensen_load(fit$folder)$draws("mu"), draws)
})

test_that("the same seed gives the same draws", {
  skip_without_jensen()
  model <- jensen_model(normal_program)
  first <- model$fit(normal_data, seed = 7, threads = 1)
  second <- model$fit(normal_data, seed = 7, threads = 2)
  expect_identical(first$draws(), second$draws())
})

test_that("a refined fit has the log evidence of the model", {
  skip_without_jensen()
  fit <- jensen_model(normal_program)$fit(normal_data, seed = 1, refine = "always")
  y <- normal_data$y
  exact <- log(2 * pi) * -2.5 - 0.5 * log(21) - 0.5 * (sum(y^2) - sum(y)^2 / 5.25)
  evidence <- fit$log_evidence()
  expect_lt(abs(evidence[["estimate"]] - exact), 4 * evidence[["se"]] + 0.02)
  expect_false("lp_approx__" %in% posterior::variables(fit$draws()))
  plain <- jensen_model(normal_program)$fit(normal_data, refine = "none")
  expect_error(plain$log_evidence(), "refine", class = "jensen_error")
})

test_that("a fit that is not trusted warns, and resumes", {
  skip_without_jensen()
  out <- tempfile()
  expect_warning(
    fit <- jensen_model(normal_program)$fit(normal_data, max_iters = 1, out = out),
    "NOT to be trusted", class = "jensen_trust_warning"
  )
  expect_false(fit$trusted)
  resumed <- jensen_resume(out, max_iters = 100000)
  whole <- jensen_model(normal_program)$fit(normal_data)
  expect_identical(resumed$draws(), whole$draws())
})

test_that("a rejected program is an error with the diagnostic", {
  skip_without_jensen()
  model <- jensen_model("parameters { real mu; } model { mu ~ norml(0, 1); }")
  error <- expect_error(model$fit(), "norml", class = "jensen_error")
  expect_equal(error$exit, 3)
  expect_error(model$check(), "norml", class = "jensen_error")
  expect_error(jensen_model(normal_program)$fit(list(N = 2, y = 1)), class = "jensen_error")
  expect_error(jensen_model(normal_program)$fit(normal_data, no_such_flag = 1), "no-such-flag", class = "jensen_error")
  expect_error(jensen_model("missing.stan"), "no file", class = "jensen_error")
})

test_that("programs are checked, with data and includes", {
  skip_without_jensen()
  model <- jensen_model(normal_program)
  expect_message(model$check(), "correct")
  expect_message(model$check(normal_data), "correct")
  expect_error(model$check(list(N = 5)), "y", class = "jensen_error")
  folder <- tempfile()
  dir.create(folder)
  writeLines("mu ~ normal(0, 1);", file.path(folder, "prior.stan"))
  code <- "parameters { real mu; }\nmodel {\n#include prior.stan\n}\n"
  expect_message(jensen_model(code, include = folder)$check(), "correct")
  expect_error(jensen_model(code)$check(), class = "jensen_error")
})

test_that("programs in old syntax need no flag, and numbers become arrays of length one", {
  skip_without_jensen()
  model <- jensen_model("data { int N; real y[N]; } parameters { real mu; } model { mu ~ normal(0, 1); y ~ normal(mu, 1); }")
  fit <- model$fit(list(N = 1, y = 2), seed = 1)
  expect_true(fit$trusted)
})

test_that("the fit of a table and topics of texts are data frames", {
  skip_without_jensen()
  fit <- jensen_gp(dist ~ speed, cars, likelihood = "gaussian", kernel = "rbf")
  expect_true("gp.lengthscale" %in% fit$hyperparameters$name)
  at <- predict(fit, data.frame(speed = c(5, 20)))
  expect_equal(nrow(at), 2)
  expect_gt(at$mean[2], at$mean[1])
  expect_error(jensen_gp(dist ~ nothing, cars), "nothing", class = "jensen_error")
  set.seed(1)
  fruit <- c("apple", "pear", "plum", "cherry")
  tools <- c("hammer", "saw", "drill", "plane")
  texts <- replicate(60, {
    words <- if (stats::runif(1) < 0.5) fruit else tools
    paste(sample(words, 20, replace = TRUE), collapse = " ")
  })
  found <- jensen_topics(texts, topics = 2, min_df = 1, max_df = 60, heldout = 0, seed = 1, passes = 20, batch = 20, tau = 1)
  shares <- predict(found)
  expect_equal(dim(shares), c(60, 3))
  is_fruit <- grepl("apple|pear|plum|cherry", texts)
  topic <- max.col(shares[, -1])
  expect_length(unique(topic[is_fruit]), 1)
  expect_false(unique(topic[is_fruit]) %in% topic[!is_fruit])
})

test_that("an exact posterior is calibrated", {
  skip_without_jensen()
  skip_if_short()
  simulator <- "
    data { int<lower=0> N; }
    generated quantities {
      real mu = normal_rng(0, 2);
      array[N] real y = normal_rng(rep_vector(mu, N), 1);
    }"
  program <- sub("generated quantities.*$", "", normal_program)
  found <- jensen_model(program)$calibrate(simulator, list(N = 5), count = 40, seed = 1)
  expect_true(found$calibrated)
  expect_gte(nrow(found$ranks), 40)
})
