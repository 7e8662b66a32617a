// Skeletal age of 13 children from graded maturity indicators, some missing
// (coded -1), with known discriminations and thresholds.
functions {
  // Log chance of a grade between 1 and n_grades under cumulative logits.
  real grade_lpmf(int y, int n_grades, real age, real slope, array[] real threshold) {
    if (y == 1) {
      return log1m_inv_logit(slope * (age - threshold[1]));
    } else if (y == n_grades) {
      return log_inv_logit(slope * (age - threshold[n_grades - 1]));
    }
    return log_diff_exp(log_inv_logit(slope * (age - threshold[y - 1])),
                        log_inv_logit(slope * (age - threshold[y])));
  }
}
data {
  int<lower=0> nChild;
  int<lower=0> nInd;
  array[nInd, 4] real gamma;
  array[nInd] real delta;
  array[nInd] int<lower=0> ncat;
  array[nChild, nInd] int grade;
}
parameters {
  array[nChild] real age;
}
model {
  age ~ normal(0, 36);
  for (child in 1 : nChild) {
    for (j in 1 : nInd) {
      if (grade[child, j] > 0) {
        grade[child, j] ~ grade(ncat[j], age[child], delta[j], gamma[j]);
      }
    }
  }
}
