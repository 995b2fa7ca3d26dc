// Chooses the response type by the Accept header: the offered type with the highest quality, the first one on a tie.

export function chooseMediaType(accept: string | undefined, offered: readonly string[]): string | undefined {
  const ranges = (accept ?? '*/*').split(',').map(parseRange);
  const rated = offered.map((type) => ({ type, quality: toQuality(type, ranges) })).filter(({ quality }) => quality > 0);
  return rated.toSorted((a, b) => b.quality - a.quality)[0]?.type;
}

interface Range {
  readonly pattern: string;
  readonly quality: number;
}

function parseRange(text: string): Range {
  const [pattern = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const quality = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1);
  return { pattern, quality: Number.isNaN(quality) ? 0 : quality };
}

/** The most specific range decides. */
function toQuality(type: string, ranges: readonly Range[]): number {
  for (const pattern of [type, `${type.split('/')[0]}/*`, '*/*']) {
    const range = ranges.find((one) => one.pattern === pattern);
    if (range !== undefined) return range.quality;
  }
  return 0;
}
