// Uses the playground as people do, from the first keystroke to the verdict: `node playground.mjs JENSEN CHROMIUM FOLDER PAGE`.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { FRAMES, WIDTHS, broken, overflow, watched } from './look.mjs';

const [jensen, executablePath, folder, page] = process.argv.slice(2);
const shots = resolve(folder, 'playground');
mkdirSync(shots, { recursive: true });
const url = pathToFileURL(resolve(page)).href;
const faults = [];
const browser = await chromium.launch({
  executablePath,
  args: ['--headless', '--no-sandbox', '--disable-background-networking'],
});

/** The page in a new window, with its engine ready. */
async function opened(options = {}, address = url) {
  const context = await browser.newContext({ viewport: { width: WIDTHS[1], height: 900 }, offline: true, ...options });
  const { tab, open } = await watched(context, faults);
  await open(address);
  await tab.getByText('Ready.').waitFor({ timeout: 60_000 });
  return tab;
}

/** Fits the model and returns the verdict. */
async function fitted(tab) {
  await tab.locator('#fit').click();
  await tab.locator('#verdict, #failure').filter({ visible: true }).waitFor({ timeout: 120_000 });
  return tab.locator('#verdict').innerText();
}

/** The text of an editor, which the command fits too. */
const text = (tab, id) => tab.locator(id).inputValue();

{
  const tab = await opened();
  // The page marks mistakes while the user types, and removes a mark when its mistake is fixed.
  await tab.locator('#program').fill('');
  await tab.locator('#data').fill('');
  await tab.locator('#program').pressSequentially('parameters { real x }');
  await tab.locator('#said li').first().waitFor();
  assert.match(await tab.locator('#said li').first().innerText(), /line 1, column 19: expected `;`/);
  assert.equal(await tab.locator('#paint .error').count(), 1);
  await tab.locator('#said button').first().click();
  assert.equal(await tab.evaluate(() => document.activeElement.id), 'program');
  await tab.locator('#program').fill('parameters { real x; } model { x ~ normal(0, 1); }');
  await tab.getByText('fit together: x.').waitFor();
  assert.equal(await tab.locator('#said li').count(), 0);

  // The page distinguishes wrong data from a wrong program.
  await tab.locator('#example').selectOption({ index: 1 });
  await tab.locator('#data').fill('x,z\n1,2\n3,4\n');
  await tab.locator('#data-said.wrong').waitFor();
  assert.match(await tab.locator('#data-said').innerText(), /y/);

  // A fit shows the bound while it runs, then the verdict, the report and its files.
  await tab.locator('#example').selectOption({ index: 0 });
  const begun = performance.now();
  assert.match(await fitted(tab), /can be trusted/);
  const seconds = (performance.now() - begun) / 1000;
  const frame = tab.frameLocator('#report');
  await frame.locator('.verdict.good').waitFor();
  assert.match(await frame.locator('body').innerText(), /theta\[8\]/);
  assert.deepEqual(await tab.locator('#saves a').allInnerTexts(), ['report.html', 'draws.csv', 'fit.json']);
  faults.push(...(await overflow(tab)), ...(await broken(tab)));
  await tab.screenshot({ path: join(shots, 'fitted-light-1400.png') });

  // The command gives the same result, up to the rounding of other instructions.
  const [download] = await Promise.all([tab.waitForEvent('download'), tab.locator('#saves a').last().click()]);
  const answer = JSON.parse(readFileSync(await download.path(), 'utf8'));
  writeFileSync(join(shots, 'schools.stan'), await text(tab, '#program'));
  writeFileSync(join(shots, 'schools.json'), await text(tab, '#data'));
  const native = spawnSync(jensen, ['fit', 'schools.stan', 'schools.json', '--threads', '1', '--json'], { cwd: shots, encoding: 'utf8' });
  assert.equal(native.status, 0, native.stderr);
  const summary = JSON.parse(native.stdout);
  const took = summary.seconds.build + summary.seconds.fit + summary.seconds.draws;
  console.log(`eight schools: ${seconds.toFixed(2)} s on the page, ${took.toFixed(2)} s by the command on one thread`);
  const mean = ({ parameters }) => parameters.find(({ name }) => name === 'mu').mean;
  assert.ok(Math.abs(mean(answer) - mean(summary)) < 0.5, `${mean(answer)} and ${mean(summary)}`);

  // A link contains the program.
  await tab.locator('#share').click();
  await tab.locator('#shared').filter({ hasText: /./ }).waitFor();
  const other = await opened({}, tab.url());
  assert.equal(await text(other, '#program'), await text(tab, '#program'));
  await other.context().close();

  // The page marks a fit that is not trusted.
  await tab.locator('#example').selectOption({ index: 3 });
  assert.match(await fitted(tab), /Not to be trusted/);
  await tab.context().close();
}

for (const colorScheme of ['light', 'dark']) {
  for (const width of WIDTHS) {
    const tab = await opened({ viewport: { width, height: 900 }, colorScheme });
    await tab.getByText('fit together').waitFor();
    const seen = [...(await overflow(tab)), ...(await broken(tab))];
    faults.push(...seen.map((fault) => `playground, ${colorScheme}, ${width} pixels: ${fault}`));
    await tab.screenshot({ path: join(shots, `${colorScheme}-${width}.png`), fullPage: true });
    await tab.context().close();
  }
}
const book = resolve(folder, 'book');
mkdirSync(book, { recursive: true });
for (const frame of FRAMES) {
  const tab = await opened(frame);
  await fitted(tab);
  await tab.frameLocator('#report').locator('.verdict.good').waitFor();
  await tab.evaluate(() => window.scrollTo(0, 0));
  await tab.screenshot({ path: join(book, `playground-${frame.viewport.width}.png`) });
  await tab.context().close();
}
await browser.close();
faults.forEach((fault) => console.error(fault));
console.log(`the playground from the first keystroke to the verdict: pictures in ${shots}`);
process.exitCode = faults.length > 0 ? 1 : 0;
