/*
 * What is shown is in the address: a link to it, or a reload, shows the same. `view`: which one; `q`: the filter; the
 * others belong to one view.
 */

export const views = ['clusters', 'pins', 'endpoints', 'exchanges', 'coverage'];

/** What the address says, each field with its default. */
export function readAddress() {
  const query = new URLSearchParams(location.search);
  const view = query.get('view') ?? '';
  return {
    view: views.includes(view) ? view : 'clusters',
    q: query.get('q') ?? '',
    span: query.get('span') === 'start' ? 'start' : 'recent',
    sort: query.get('sort') ?? '',
    outcome: query.get('outcome') ?? '',
    page: Math.max(0, Number.parseInt(query.get('page') ?? '0', 10) || 0),
  };
}

/** The address of another state; fields that say nothing are left out. */
export function addressOf(state) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    const isDefault = value === '' || value === 0 || (name === 'span' && value === 'recent');
    if (!isDefault) query.set(name, String(value));
  }
  return `?${query}`;
}
