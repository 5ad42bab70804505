const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** `4.0 ms`, `950 ms`, `1.20 s`, `4 min 10 s`, `3 h 5 min`, `2 d 4 h`. Absent: a dash.
 * @param {number | undefined} ms */
export function duration(ms) {
  if (ms === undefined) return '–';
  if (ms < 10) return `${Math.max(0, ms).toFixed(1)} ms`;
  if (ms < second) return `${Math.round(ms)} ms`;
  if (ms < 10 * second) return `${(ms / second).toFixed(2)} s`;
  return wholeDuration(ms);
}

/** The same without parts of a second: for ages that count up.
 * @param {number | undefined} ms */
export function wholeDuration(ms) {
  if (ms === undefined) return '–';
  const seconds = Math.max(0, Math.round(ms / second)) * second;
  if (seconds < minute) return `${seconds / second} s`;
  if (seconds < hour) return two(seconds, minute, 'min', second, 's');
  if (seconds < day) return two(seconds, hour, 'h', minute, 'min');
  return two(seconds, day, 'd', hour, 'h');
}

/** @param {number} ms @param {number} large @param {string} largeName @param {number} small @param {string} smallName */
function two(ms, large, largeName, small, smallName) {
  const rest = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)} ${largeName}${rest === 0 ? '' : ` ${rest} ${smallName}`}`;
}

/** `100 %`, `99.95 %`, `46.5 %`: what is not quite all never reads as 100 %, nor what is not quite nothing as 0 %.
 * @param {number | undefined} share 0-1 */
export function percent(share) {
  if (share === undefined) return '–';
  const value = share * 100;
  if (value === 100 || value === 0) return `${value} %`;
  if (value > 99.99) return '>99.99 %';
  if (value < 0.01) return '<0.01 %';
  return `${value.toFixed(value > 99 || value < 1 ? 2 : 1)} %`;
}

/** `1,234`.
 * @param {number | undefined} number */
export function count(number) {
  return (number ?? 0).toLocaleString('en-US');
}

/** `1 request`, `2 requests`.
 * @param {number} number @param {string} one */
export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** `12 B`, `3.4 kB`, `1.2 MB`.
 * @param {number | undefined} number */
export function bytes(number) {
  if (number === undefined) return '–';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = number;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });

/** `14:03:11`, in the time of this browser.
 * @param {number} ms */
export function timeOfDay(ms) {
  return clock.format(ms);
}
