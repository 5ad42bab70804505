const longest = 120;

/** A value as JSON on one line, cut after 120 characters: for messages, whatever was found. Never throws. */
export function shortText(value: unknown): string {
  const text = asJson(value);
  return text.length <= longest ? text : `${text.slice(0, longest)}…`;
}

function asJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
