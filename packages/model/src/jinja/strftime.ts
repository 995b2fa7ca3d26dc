// The date and time of strftime_now, in UTC, with English names: machines in different time zones write the same prompt.

const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const months = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];
const two = (value: number) => String(value).padStart(2, '0');

const codes: Readonly<Record<string, (date: Date) => string>> = {
  Y: (date) => String(date.getUTCFullYear()),
  y: (date) => two(date.getUTCFullYear() % 100),
  m: (date) => two(date.getUTCMonth() + 1),
  d: (date) => two(date.getUTCDate()),
  e: (date) => String(date.getUTCDate()).padStart(2, ' '),
  B: (date) => months[date.getUTCMonth()] ?? '',
  b: (date) => (months[date.getUTCMonth()] ?? '').slice(0, 3),
  A: (date) => days[date.getUTCDay()] ?? '',
  a: (date) => (days[date.getUTCDay()] ?? '').slice(0, 3),
  H: (date) => two(date.getUTCHours()),
  I: (date) => two(date.getUTCHours() % 12 || 12),
  M: (date) => two(date.getUTCMinutes()),
  S: (date) => two(date.getUTCSeconds()),
  p: (date) => (date.getUTCHours() < 12 ? 'AM' : 'PM'),
  j: (date) =>
    String(Math.round((startOfDay(date) - startOfDay(new Date(Date.UTC(date.getUTCFullYear(), 0, 1)))) / 86_400_000) + 1).padStart(3, '0'),
  '%': () => '%',
};

/** A minus after the percent sign drops the leading zero. Throws for a code that it does not know. */
export function formatTime(format: string, date: Date): string {
  return format.replace(/%(-?)([a-zA-Z%])/g, (whole, minus: string, code: string) => {
    const write = Object.hasOwn(codes, code) ? codes[code] : undefined;
    if (!write) throw new Error(`strftime_now does not know ${whole}`);
    return minus === '' ? write(date) : write(date).replace(/^0+(?=\d)/, '');
  });
}

function startOfDay(date: Date): number {
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate());
}
