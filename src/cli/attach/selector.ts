import type { Problems } from './problems.ts';

const name = '[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?';
const pairShape = new RegExp(`^(?<key>(?:[a-z0-9.-]{1,253}/)?${name})=(?<value>(?:${name})?)$`);

/** `app=cart,tier=web`: all of them. Kubernetes' rules for labels. */
export function parseSelector(text: string, problems: Problems): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const part of text.split(',')) {
    const groups = pairShape.exec(part)?.groups;
    const key = groups?.['key'];
    if (key === undefined || Object.hasOwn(labels, key))
      problems.found('--selector', part, 'KEY=VALUE, each key once, with commas between');
    else labels[key] = groups?.['value'] ?? '';
  }
  return labels;
}
