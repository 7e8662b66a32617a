// Creates data, and fits them with the command: one folder of results for each kind of report page.

import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Numbers between 0 and 1, the same every time (mulberry32). */
function uniform(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** A standard normal number. */
const normal = (next) => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());

const schools = `data {
  int<lower=0> J;
  vector[J] y;
  vector<lower=0>[J] sigma;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[J] z;
}
transformed parameters {
  vector[J] theta = mu + tau * z;
}
model {
  mu ~ normal(0, 5);
  tau ~ normal(0, 5);
  z ~ std_normal();
  y ~ normal(theta, sigma);
}
generated quantities {
  vector[J] y_rep;
  vector[J] log_lik;
  for (j in 1:J) {
    y_rep[j] = normal_rng(theta[j], sigma[j]);
    log_lik[j] = normal_lpdf(y[j] | theta[j], sigma[j]);
  }
}
`;
const schoolsData = {
  J: 8,
  y: [28, 8, -3, 7, -1, 1, 18, 12],
  sigma: [15, 10, 16, 11, 9, 11, 10, 18],
};

const counts = `data {
  int<lower=0> N;
  vector[N] x;
  array[N] int<lower=0> y;
}
parameters {
  real alpha;
  real beta;
}
model {
  alpha ~ normal(0, 2);
  beta ~ normal(0, 2);
  y ~ poisson_log(alpha + beta * x);
}
generated quantities {
  array[N] int y_rep = poisson_log_rng(alpha + beta * x);
  vector[N] log_lik;
  for (n in 1:N) log_lik[n] = poisson_log_lpmf(y[n] | alpha + beta * x[n]);
}
`;

/** Counts that rise with x, as a program's data. */
function countsData() {
  const next = uniform(2);
  const x = Array.from({ length: 60 }, () => Math.round(1000 * normal(next)) / 1000);
  const y = x.map((value) => {
    const end = Math.exp(-Math.exp(1 + 0.5 * value));
    let product = next();
    let count = 0;
    while (product > end) {
      product *= next();
      count += 1;
    }
    return count;
  });
  return { N: x.length, x, y };
}

/** Short documents of two subjects each and of words that are everywhere. */
function documents() {
  const next = uniform(1);
  const subjects = [
    'oven bread flour butter sugar recipe bake taste salt cream',
    'soil seed plant water leaf flower root summer prune grow',
    'guitar song band album drum concert melody voice record stage',
  ].map((words) => words.split(' '));
  const everywhere = 'good new time day really make house people year great'.split(' ');
  const pick = (list) => list[Math.floor(next() * list.length)];
  const lines = [];
  for (let number = 0; number < 600; number += 1) {
    const [first, second] = [pick(subjects), pick(subjects)];
    const share = pick([1, 1, 0.7]);
    const word = () => pick(next() < 0.3 ? everywhere : next() < share ? first : second);
    const text = Array.from({ length: 30 }, word).join(' ');
    lines.push(JSON.stringify({ id: number, text }));
  }
  return lines.join('\n') + '\n';
}

/** A curve over days with a gap. */
function pond() {
  const next = uniform(3);
  const rows = ['day,degrees'];
  for (let day = 0; day < 120; day += 2) {
    if (day > 50 && day < 80) continue;
    const level = 14 + 5 * Math.sin(day / 19) + 0.7 * normal(next);
    rows.push(`${day},${level.toFixed(2)}`);
  }
  return rows.join('\n') + '\n';
}

/** Points of three clusters in the plane. */
function points() {
  const next = uniform(4);
  const centres = [[0, 0], [6, 1], [2, 6]];
  const rows = ['x,y'];
  for (let i = 0; i < 240; i += 1) {
    const [a, b] = centres[i % 3];
    rows.push(`${(a + normal(next)).toFixed(3)},${(b + normal(next)).toFixed(3)}`);
  }
  return rows.join('\n') + '\n';
}

/** Pictures of a bar or a column in a square, with values from 0 to 1. */
function pictures() {
  const next = uniform(5);
  const side = 8;
  const rows = [Array.from({ length: side * side }, (_, i) => `p${i + 1}`).join(',')];
  for (let i = 0; i < 400; i += 1) {
    const at = Math.floor(next() * side);
    const flat = next() < 0.5;
    const cell = (r, c) => ((flat ? r : c) === at ? 1 : 0);
    const cells = Array.from({ length: side * side }, (_, k) => cell(Math.floor(k / side), k % side));
    rows.push(cells.join(','));
  }
  return rows.join('\n') + '\n';
}

/** What is fitted, in the order in which it is looked at; `not` is a fit that must not be trusted. */
const FITS = [
  {
    name: 'schools',
    files: { 'schools.stan': schools, 'schools.json': JSON.stringify(schoolsData) },
    runs: [['fit', 'schools.stan', 'schools.json', '--out', 'schools']],
  },
  {
    name: 'counts',
    files: { 'counts.stan': counts, 'counts.json': JSON.stringify(countsData()) },
    runs: [['fit', 'counts.stan', 'counts.json', '--out', 'counts']],
  },
  {
    name: 'not-trusted',
    files: {},
    runs: [['fit', 'schools.stan', 'schools.json', '--method', 'advi', '--family', 'meanfield', '--max-iters', '40', '--out', 'not-trusted']],
    trusted: false,
  },
  {
    name: 'topics',
    files: { 'reviews.jsonl': documents() },
    runs: [
      ['topics', 'build', 'reviews.jsonl', '--max-df', '1.0', '--heldout', '0.1', '--out', 'reviews.corpus'],
      ['topics', 'fit', 'reviews.corpus', '--topics', '3', '--batch', '20', '--tau', '16', '--passes', '20', '--out', 'topics'],
    ],
  },
  {
    name: 'latent',
    files: { 'pond.csv': pond() },
    runs: [
      ['latent', 'fit', '--data', 'pond.csv', '--response', 'degrees', '--likelihood', 'gaussian', '--prior',
        'intercept() + gp(matern52, on=day)', '--out', 'latent'],
    ],
  },
  {
    name: 'mixture',
    files: { 'points.csv': points() },
    runs: [['mixture', 'fit', 'points.csv', '--components', '3', '--out', 'mixture']],
  },
  {
    name: 'vae',
    files: { 'pictures.csv': pictures() },
    runs: [
      ['vae', 'fit', 'pictures.csv', '--image', '8x8', '--latent', '2', '--hidden', '20', '--epochs', '30', '--optimizer', 'adam',
        '--step-size', '0.01', '--validation', '0.1', '--out', 'vae'],
    ],
  },
];

/** Fits everything with the command `jensen` in `folder`, and gives the pages by their names. */
export function fitAll(jensen, folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return FITS.map(({ name, files, runs, trusted = true }) => {
    for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
    runs.forEach((run, at) => {
      const { status, stderr, stdout } = spawnSync(jensen, [...run, '--quiet'], { cwd: folder, encoding: 'utf8' });
      const expected = trusted || at + 1 < runs.length ? 0 : 4;
      if (status !== expected) throw new Error(`jensen ${run.join(' ')} ends with ${status}:\n${stdout}${stderr}`);
    });
    return { name, trusted, page: join(folder, name, 'report.html') };
  });
}
