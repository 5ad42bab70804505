/** Bounds on what one message may hold. Over one, that message or entry alone is refused; label texts are cut. */
export interface DecodeLimits {
  /** A longer message is refused unread. */
  messageBytes: number;
  /** Custom tags of one log entry, or attributes of one ext_proc message. */
  tagsPerEntry: number;
  /** All headers of one ext_proc message, counted as HTTP/2 does: name, value and 32 for each. */
  headerBytes: number;
  /** UTF-8 bytes of a text that becomes a label or an attribute; the rest is cut off. */
  textBytes: number;
}

/** What could not be decoded, and why. */
export interface DecodeError {
  /** `malformed`: not such a message. Otherwise the bound that was passed. */
  reason: 'malformed' | 'messageBytes' | 'tagsPerEntry' | 'headerBytes';
  /** For a log line; one line, no payload in it. */
  text: string;
}
