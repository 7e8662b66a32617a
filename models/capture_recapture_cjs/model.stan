// Cormack-Jolly-Seber model for the European dipper, from the triangular table
// of releases and first recaptures (Lebreton et al. 1992, males and females
// together): survival and recapture constant but for the flood years.
functions {
  // Probabilities of the cells of row i, the last one never seen again.
  row_vector cell_probabilities(int i, vector phi, vector p) {
    int n = rows(phi);
    row_vector[n - i + 2] pr;
    real alive_unseen = 1;
    for (j in i : n) {
      alive_unseen *= phi[j];
      pr[j - i + 1] = alive_unseen * p[j];
      alive_unseen *= 1 - p[j];
    }
    pr[n - i + 2] = 1 - sum(head(pr, n - i + 1));
    return pr;
  }
}
data {
  int<lower=2> n_release;
  array[n_release] int<lower=0> released;
  array[n_release, n_release] int<lower=0> first_recapture;
  array[n_release] int<lower=0, upper=1> flood;
}
parameters {
  real<lower=0, upper=1> phi_normal;
  real<lower=0, upper=1> phi_flood;
  real<lower=0, upper=1> p;
}
transformed parameters {
  vector[n_release] phi;
  for (t in 1 : n_release) {
    phi[t] = flood[t] ? phi_flood : phi_normal;
  }
}
model {
  vector[n_release] detect = rep_vector(p, n_release);
  for (i in 1 : n_release) {
    int n_cells = n_release - i + 2;
    array[n_cells] int cells;
    for (j in i : n_release) {
      cells[j - i + 1] = first_recapture[i, j];
    }
    cells[n_cells] = released[i] - sum(first_recapture[i]);
    cells ~ multinomial(cell_probabilities(i, phi, detect)');
  }
}
