import type { Labels, MetricAttribute } from '../attributes.ts';
import type { Metric } from '../names.ts';
import { labelText } from './label-text.ts';

/** What a series is within its scope. One object for each, so that a series is found without putting a key together. */
export interface SeriesKind {
  /** Unique in this process, from 0 on. */
  id: number;
  metric: Metric;
  /** Labels besides the scope's: from closed sets, so that there are few kinds. */
  own: Labels;
  ownText: string;
}

const kinds = new Map<string, SeriesKind>();

/** The kind with these labels. For what is counted often use `KindsOf`. */
export function seriesKind(metric: Metric, own: Labels = {}): SeriesKind {
  let key = metric.name;
  for (const [name, value] of Object.entries(own)) key += `|${name}=${value}`;
  const found = kinds.get(key);
  if (found !== undefined) return found;
  const kind = { id: kinds.size, metric, own, ownText: labelText(own) };
  kinds.set(key, kind);
  return kind;
}

interface Branch {
  kind: SeriesKind | undefined;
  next: Map<string | undefined, Branch>;
}

/** The kinds of one metric by the values of its own labels, of which there are up to three. */
export class KindsOf {
  readonly #metric: Metric;
  readonly #names: readonly MetricAttribute[];
  readonly #root = newBranch();

  constructor(metric: Metric, ...names: readonly MetricAttribute[]) {
    this.#metric = metric;
    this.#names = names;
  }

  /** Values in the order of the names; `undefined` leaves a label out. */
  of(first?: string, second?: string, third?: string): SeriesKind {
    const branch = follow(follow(follow(this.#root, first), second), third);
    branch.kind ??= seriesKind(this.#metric, this.#labels([first, second, third]));
    return branch.kind;
  }

  #labels(values: readonly (string | undefined)[]): Labels {
    const labels: Labels = {};
    this.#names.forEach((name, index) => {
      const value = values[index];
      if (value !== undefined) labels[name] = value;
    });
    return labels;
  }
}

function follow(from: Branch, value: string | undefined): Branch {
  const known = from.next.get(value);
  if (known !== undefined) return known;
  const branch = newBranch();
  from.next.set(value, branch);
  return branch;
}

function newBranch(): Branch {
  return { kind: undefined, next: new Map() };
}
