import { count } from './format.js';
import { h } from './preact.js';

/** Rows of a table that are drawn at once: a thousand clusters are paged through. */
const rowsPerPage = 50;

/** One page of rows; a page beyond the last is the last. */
export function pageOf(rows, wanted) {
  const pages = Math.max(1, Math.ceil(rows.length / rowsPerPage));
  const page = Math.min(wanted, pages - 1);
  return { rows: rows.slice(page * rowsPerPage, (page + 1) * rowsPerPage), total: rows.length, page, pages };
}

/** Buttons to the pages around; nothing where there is one. */
export function pager({ page, pages, total }, { go }) {
  if (pages <= 1) return null;
  const to = (target, text) =>
    h('button', { type: 'button', disabled: target < 0 || target >= pages, onClick: () => go({ page: target }) }, text);
  return h(
    'nav',
    { class: 'pager', 'aria-label': 'Pages' },
    to(page - 1, '← previous'),
    h('span', null, `page ${page + 1} of ${pages}, ${count(total)} rows`),
    to(page + 1, 'next →'),
  );
}

/** A column's head that sorts by it. */
export function sortHeader({ address, go }, name, text, title) {
  const isChosen = address.sort === name;
  return h(
    'th',
    { scope: 'col', 'aria-sort': isChosen ? 'descending' : 'none' },
    h(
      'button',
      { type: 'button', title, onClick: () => go({ sort: isChosen ? '' : name, page: 0 }) },
      text,
      isChosen ? ' ▼' : '',
    ),
  );
}

/** In place of what is not there: what is the matter, and what to do. */
export function empty(what, todo) {
  return h('p', { class: 'empty' }, h('strong', null, what), todo === undefined ? null : ` ${todo}`);
}

/** Whether one of the texts has the filter's words, all of them, in any order. */
export function fits(filter, texts) {
  const all = texts
    .filter((text) => text !== undefined)
    .join(' ')
    .toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}

/**
 * A table that scrolls by itself, also by keyboard. `heads`: its column heads, as words or as cells of their own;
 * `className`: absent where it needs no looks of its own.
 */
export function scrollTable(label, heads, rows, className = '') {
  const cells = heads.map((head) => (typeof head === 'string' ? h('th', { scope: 'col', key: head }, head) : head));
  return h(
    'div',
    { class: 'scroll', tabIndex: 0, role: 'region', 'aria-label': label },
    h('table', { class: className || null }, h('thead', null, h('tr', null, cells)), h('tbody', null, rows)),
  );
}
