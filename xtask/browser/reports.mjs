// Reports as people see them: `node reports.mjs JENSEN CHROMIUM FOLDER`. Pictures of every page are left in FOLDER.

import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { fitAll } from './fits.mjs';
import { WIDTHS, broken, faint, overflow, unprintable, watched } from './look.mjs';

/** Looks at one page at every width, in light and dark, and on paper. */
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
      // The same words on the same grounds at any width.
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
await browser.close();
faults.forEach((fault) => console.error(fault));
console.log(`${pages.length} reports at ${WIDTHS.join(' and ')} pixels, light and dark: pictures in ${shots}`);
process.exitCode = faults.length > 0 ? 1 : 0;
