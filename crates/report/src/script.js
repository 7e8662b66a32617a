// What a page can do beyond being read: copy its summary, sort tables, filter parameters, tell what is under the pointer.
(() => {
  'use strict';
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // The summary.
  const copy = document.getElementById('copy');
  if (copy) {
    copy.parentElement.hidden = false;
    const told = document.getElementById('copied');
    const text = document.getElementById('summary').textContent;
    const by_hand = () => {
      const area = document.createElement('textarea');
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand('copy');
      area.remove();
      return done ? Promise.resolve() : Promise.reject();
    };
    copy.addEventListener('click', () => {
      const sent = navigator.clipboard ? navigator.clipboard.writeText(text).catch(by_hand) : by_hand();
      sent.then(() => { told.textContent = 'Copied.'; }, () => { told.textContent = 'This browser does not let pages copy.'; });
    });
  }

  // Numbers as the page spells them: minus signs, thin spaces, powers of ten.
  const raised = '⁰¹²³⁴⁵⁶⁷⁸⁹';
  const number = (text) => {
    const plain = text.replace(/[\u2009\s%]/g, '').replace(/−/g, '-');
    const power = /^(-?[\d.]*)×?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)$/.exec(plain);
    if (power) {
      const digits = [...power[2]].map((c) => (c === '⁻' ? '-' : raised.indexOf(c))).join('');
      const factor = { '': 1, '-': -1 }[power[1]] ?? Number(power[1]);
      return factor * 10 ** Number(digits);
    }
    if (plain === '∞') return Infinity;
    if (plain === '-∞') return -Infinity;
    return plain === '' ? NaN : Number(plain);
  };

  // Tables are sorted by a click on a head, and back by a third one.
  for (const table of all('.scroll table')) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const heads = all('th', table);
    if (!(rows.length > 1)) continue;
    heads.forEach((head, column) => {
      if (!head.textContent.trim() || head.dataset.fixed !== undefined) return;
      const button = document.createElement('button');
      button.type = 'button';
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener('click', () => {
        const next = { ascending: 'descending', descending: 'none' }[head.getAttribute('aria-sort')] ?? 'ascending';
        heads.forEach((other) => other.removeAttribute('aria-sort'));
        if (next === 'none') return body.append(...rows);
        head.setAttribute('aria-sort', next);
        const sign = next === 'ascending' ? 1 : -1;
        const cell = (row) => row.cells[column].textContent.trim();
        const order = (a, b) => {
          const [x, y] = [number(cell(a)), number(cell(b))];
          if (Number.isNaN(x) || Number.isNaN(y)) {
            // What is no number stands last.
            const both = Number.isNaN(x) && Number.isNaN(y);
            return both ? sign * cell(a).localeCompare(cell(b), undefined, { numeric: true }) : Number.isNaN(x) - Number.isNaN(y);
          }
          return sign * (x - y || 0);
        };
        body.append(...[...rows].sort(order));
      });
    });
  }

  // Parameters are filtered by their names, in tables and pictures.
  const filter = document.getElementById('filter');
  if (filter) {
    filter.parentElement.parentElement.hidden = false;
    const named = all('[data-name]');
    const count = document.getElementById('found');
    filter.addEventListener('input', () => {
      const words = filter.value.trim().toLowerCase();
      let shown = 0;
      for (const element of named) {
        const name = element.dataset.name.toLowerCase();
        // A picture of a whole variable shows its elements.
        const stem = words.split('[')[0];
        const fits = name.includes(words) || (element.dataset.whole !== undefined && name === stem);
        element.hidden = !fits;
        if (fits && element.tagName === 'TR') shown += 1;
      }
      count.textContent = words ? `${shown} found` : '';
    });
  }

  // What a shape says, at once and beside the pointer.
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.setAttribute('role', 'status');
  document.body.append(tip);
  for (const title of all('svg title')) {
    title.parentElement.dataset.tip = title.textContent;
    title.remove();
  }
  document.addEventListener('pointermove', ({ target, clientX, clientY }) => {
    const told = target.closest?.('[data-tip]');
    tip.classList.toggle('on', Boolean(told));
    if (!told) return;
    tip.textContent = told.dataset.tip;
    const room = document.documentElement.clientWidth;
    tip.style.left = `${Math.max(4, Math.min(clientX + 14, room - tip.offsetWidth - 4))}px`;
    tip.style.top = `${clientY + 18}px`;
  });

  // Of several pictures the one that is chosen, at first the first.
  const begun = new Set();
  for (const choice of all('[data-choose]')) {
    const [group, item] = choice.dataset.choose.split(' ');
    const choose = () => {
      for (const other of all(`[data-of="${group}"]`)) other.hidden = other.dataset.item !== item;
      for (const other of all(`[data-choose^="${group} "]`)) other.setAttribute('aria-pressed', String(other === choice));
    };
    choice.addEventListener('click', choose);
    choice.parentElement.hidden = false;
    if (!begun.has(group)) choose();
    begun.add(group);
  }
})();
