// Checks reports as people see them: `node reports.mjs JENSEN CHROMIUM FOLDER`. It leaves pictures of every page in FOLDER.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { fitAll } from './fits.mjs';
import { WIDTHS, broken, faint, overflow, pictured, unprintable, watched } from './look.mjs';

/** Checks one page at every width, in light and dark, and on paper. */
async function looked(browser, { name, page, trusted }, shots) {
  const faults = [];
  for (const colorScheme of ['light', 'dark']) {
    for (const width of WIDTHS) {
      const where = `${name}, ${colorScheme}, ${width} pixels`;
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, offline: true });
      const seen = [];
      const { tab, open } = await watched(context, seen);
      await open(pathToFileURL(page).href);
      const verdict = await tab.locator('.verdict strong').innerText();
      if (/not/i.test(verdict) === trusted) seen.push(`the verdict is “${verdict}”`);
      seen.push(...(await overflow(tab)), ...(await broken(tab)));
      // Colours do not depend on the width.
      if (width === WIDTHS[1]) seen.push(...(await faint(tab)));
      await tab.screenshot({ path: join(shots, `${name}-${colorScheme}-${width}.png`), fullPage: true });
      if (colorScheme === 'dark' && width === WIDTHS[1]) {
        await tab.emulateMedia({ media: 'print' });
        seen.push(...(await unprintable(tab)).map((fault) => `on paper: ${fault}`));
        await tab.pdf({ path: join(shots, `${name}.pdf`), format: 'A4' });
      }
      await context.close();
      faults.push(...seen.map((fault) => `${where}: ${fault}`));
    }
  }
  return faults;
}

/** Uses what the script of a page offers: the summary, sorting, filtering, words under the pointer, the topic that is chosen. */
async function used(browser, pages) {
  const faults = [];
  const context = await browser.newContext({ viewport: { width: WIDTHS[1], height: 900 }, offline: true });
  const page = (name) => pathToFileURL(pages.find((page) => page.name === name).page).href;
  const { tab, open } = await watched(context, faults);
  await open(page('schools'));
  await tab.getByRole('button', { name: 'Copy a summary' }).click();
  await tab.getByText('Copied.').waitFor();
  assert.match(await tab.locator('#summary').textContent(), /schools\.stan[\s\S]*Converged[\s\S]*tau/);
  const rows = () => tab.locator('tr[data-name]:visible');
  const all = await rows().count();
  const means = async () => (await tab.locator('tr[data-name] td:nth-child(2)').allInnerTexts()).map((text) => Number(text.replace('−', '-')));
  const before = await means();
  const head = tab.locator('tr > th > button').filter({ hasText: /^Mean/ });
  const up = [...before].sort((a, b) => a - b);
  await head.click();
  assert.deepEqual(await means(), up);
  await head.click();
  assert.deepEqual(await means(), up.reverse());
  await head.click();
  assert.deepEqual(await means(), before);
  await tab.getByRole('searchbox').fill('theta');
  assert.ok((await rows().count()) === 8 && all > 8, `${all} rows`);
  assert.equal(await tab.locator('figure[data-name]:visible', { hasText: 'mu' }).count(), 0);
  await tab.locator('figure[data-name="theta[1]"] [data-tip]').hover();
  assert.match(await tab.locator('.tip').innerText(), /theta\[1\]: median .*, 90 % between/);
  await open(page('topics'));
  assert.equal(await tab.locator('[data-of=topic]:visible').count(), 1);
  const last = tab.locator('[data-choose]').last();
  await last.click();
  assert.equal(await last.getAttribute('aria-pressed'), 'true');
  const title = await tab.locator('[data-of=topic]:visible h3').innerText();
  assert.ok(title.startsWith(`Topic ${await last.innerText()}:`), title);
  await context.close();
  return faults;
}

const [jensen, executablePath, folder] = process.argv.slice(2);
const shots = resolve(folder, 'reports');
mkdirSync(shots, { recursive: true });
const pages = fitAll(resolve(jensen), resolve(folder, 'fits'));
const browser = await chromium.launch({
  executablePath,
  args: ['--headless', '--no-sandbox', '--disable-background-networking'],
});
const faults = [];
for (const page of pages) faults.push(...(await looked(browser, page, shots)));
faults.push(...(await used(browser, pages)));
const book = resolve(folder, 'book');
mkdirSync(book, { recursive: true });
const file = (name) => pathToFileURL(pages.find((page) => page.name === name).page).href;
await pictured(browser, file('schools'), book, 'report');
await pictured(browser, file('topics'), book, 'topics', 'Map of topics');
await browser.close();
faults.forEach((fault) => console.error(fault));
console.log(`${pages.length} reports at ${WIDTHS.join(' and ')} pixels, light and dark: pictures in ${shots}`);
process.exitCode = faults.length > 0 ? 1 : 0;
