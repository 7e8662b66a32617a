// Finds faults of a page in a browser that a reader would notice.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Widths in pixels at which the checks open pages: a phone and a screen. */
export const WIDTHS = [360, 1400];

/** The windows of the book's pictures. A picture of a screen has half its size, because pages of the book are narrower and small files suffice. */
export const FRAMES = [
  { viewport: { width: WIDTHS[0], height: 640 }, deviceScaleFactor: 1 },
  { viewport: { width: WIDTHS[1], height: 900 }, deviceScaleFactor: 0.5 },
];

/** Takes pictures for the book of a page scrolled to a heading, one file for each width: `FOLDER/NAME-WIDTH.png`. */
export async function pictured(browser, url, folder, name, heading) {
  for (const frame of FRAMES) {
    const { width } = frame.viewport;
    const context = await browser.newContext({ ...frame, offline: true });
    const tab = await context.newPage();
    await tab.goto(url);
    if (heading) {
      await tab.getByRole('heading', { name: heading }).first().evaluate((at) => at.scrollIntoView({ behavior: 'instant' }));
    }
    await tab.screenshot({ path: `${folder}/${name}-${width}.png` });
    await context.close();
  }
}

/** A tab that records every error and every request other than for the page's own file. */
export async function watched(context, faults) {
  const tab = await context.newPage();
  const own = { url: '' };
  tab.on('console', (message) => {
    if (message.type() === 'error') faults.push(`console: ${message.text()}`);
  });
  tab.on('pageerror', (error) => faults.push(`error: ${error.stack ?? error}`));
  tab.on('request', (request) => {
    const url = request.url().split('#')[0];
    if (url !== own.url && !/^(data|blob|about):/.test(url)) faults.push(`loads ${url}`);
  });
  return {
    tab,
    open: async (url) => {
      own.url = url.split('#')[0];
      await tab.goto(url);
    },
  };
}

/** Boxes that extend beyond the window. A box that scrolls may be wider. */
export function overflow(tab) {
  return tab.evaluate(() => {
    const room = document.documentElement.clientWidth;
    const found = [];
    if (document.documentElement.scrollWidth > room) found.push(`the page is ${document.documentElement.scrollWidth} pixels wide`);
    const scrolls = (element) => {
      for (let at = element.parentElement; at; at = at.parentElement) {
        if (/auto|scroll|hidden/.test(getComputedStyle(at).overflowX)) return true;
      }
      return false;
    };
    for (const element of document.body.querySelectorAll('*:not(svg *)')) {
      const { right, width, height } = element.getBoundingClientRect();
      // Elements for screen readers have no size.
      if (width > 1 && height > 1 && right > room + 1 && !scrolls(element)) {
        found.push(`<${element.tagName.toLowerCase()} class="${element.className}"> ends at ${Math.round(right)}`);
      }
    }
    return found.slice(0, 5);
  });
}

/** Rules of the Web Content Accessibility Guidelines, levels A and AA, that are broken. */
export async function broken(tab) {
  await tab.evaluate(axe);
  const result = await tab.evaluate(() =>
    globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'], iframes: false }),
  );
  return result.violations.map(({ id, help, nodes }) => `${id}: ${help}\n    ${nodes.slice(0, 3).map((node) => `${node.html} ${node.any[0]?.message ?? ''}`).join('\n    ')}`);
}

/** Words in pictures with a contrast below 4.5 : 1 to their background, or 3 : 1 for large words. */
export function faint(tab) {
  return tab.evaluate(() => {
    const colour = (text) => {
      const parts = text.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
      return { rgb: parts.slice(0, 3), a: parts[3] ?? 1 };
    };
    const over = (above, below) => below.map((b, i) => above.rgb[i] * above.a + b * (1 - above.a));
    const light = (rgb) => {
      const [r, g, b] = rgb.map((x) => (x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const found = [];
    const known = new Set();
    for (const text of document.querySelectorAll('svg text')) {
      const style = getComputedStyle(text);
      if (!text.textContent.trim() || style.display === 'none' || text.getBoundingClientRect().width === 0) continue;
      text.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
      const box = text.getBoundingClientRect();
      const stack = document.elementsFromPoint(box.left + box.width / 2, box.top + box.height / 2);
      let ground = [255, 255, 255];
      for (const element of stack.reverse()) {
        if (element instanceof SVGElement && !(element instanceof SVGSVGElement)) {
          const look = getComputedStyle(element);
          if (element.tagName === 'text' || element.tagName === 'image' || look.fill === 'none') continue;
          const fill = colour(look.fill);
          ground = over({ ...fill, a: fill.a * Number(look.fillOpacity) * Number(look.opacity) }, ground);
        } else {
          ground = over(colour(getComputedStyle(element).backgroundColor), ground);
        }
      }
      const fill = colour(style.fill);
      const [high, low] = [light(over({ ...fill, a: fill.a * Number(style.fillOpacity) }, ground)), light(ground)].sort((a, b) => b - a);
      const ratio = (high + 0.05) / (low + 0.05);
      const size = parseFloat(style.fontSize) * (text.getScreenCTM()?.a ?? 1);
      const key = `${style.fill} on ${ground.map(Math.round)}`;
      if (ratio < (size >= 24 ? 3 : 4.5) && !known.has(key)) {
        known.add(key);
        found.push(`“${text.textContent}” has ${ratio.toFixed(2)} : 1 (${key})`);
      }
    }
    window.scrollTo(0, 0);
    return found;
  });
}

/** Faults in print: dark paper, controls that only a screen can use, and boxes that are cut off. */
export function unprintable(tab) {
  return tab.evaluate(() => {
    const found = [];
    const paper = getComputedStyle(document.body).backgroundColor;
    if (paper !== 'rgb(255, 255, 255)') found.push(`the paper is ${paper}`);
    const ink = getComputedStyle(document.body).color.match(/\d+/g).map(Number);
    if (Math.max(...ink) > 100) found.push(`the ink is ${ink}`);
    for (const element of document.querySelectorAll('button:not(th button), input, select')) {
      if (element.getClientRects().length > 0) found.push(`<${element.tagName.toLowerCase()}> “${element.textContent || element.name}” is printed`);
    }
    for (const element of document.querySelectorAll('body *')) {
      const style = getComputedStyle(element);
      if (/auto|scroll/.test(style.overflowY) && element.scrollHeight > element.clientHeight + 1) {
        found.push(`<${element.tagName.toLowerCase()} class="${element.className}"> is cut off`);
      }
    }
    return found.slice(0, 5);
  });
}
