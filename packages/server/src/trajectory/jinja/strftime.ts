// The date and time of strftime_now, in the machine's time zone, with English names.

const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const months = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];
const two = (value: number) => String(value).padStart(2, '0');

const codes: Readonly<Record<string, (date: Date) => string>> = {
  Y: (date) => String(date.getFullYear()),
  y: (date) => two(date.getFullYear() % 100),
  m: (date) => two(date.getMonth() + 1),
  d: (date) => two(date.getDate()),
  e: (date) => String(date.getDate()).padStart(2, ' '),
  B: (date) => months[date.getMonth()] ?? '',
  b: (date) => (months[date.getMonth()] ?? '').slice(0, 3),
  A: (date) => days[date.getDay()] ?? '',
  a: (date) => (days[date.getDay()] ?? '').slice(0, 3),
  H: (date) => two(date.getHours()),
  I: (date) => two(date.getHours() % 12 || 12),
  M: (date) => two(date.getMinutes()),
  S: (date) => two(date.getSeconds()),
  p: (date) => (date.getHours() < 12 ? 'AM' : 'PM'),
  j: (date) => String(Math.round((startOfDay(date) - startOfDay(new Date(date.getFullYear(), 0, 1))) / 86_400_000) + 1).padStart(3, '0'),
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
  return new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
}
