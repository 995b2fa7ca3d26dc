// The report of a benchmark: a title, and rows with count and percentiles, each with its baseline from the same run.

export interface BenchRow {
  readonly what: string;
  /** The index of the baseline row in the same report. */
  readonly against?: number;
  readonly unit: string;
  /** One sample for a single figure. */
  readonly samples: readonly number[];
  /** Set for figures such as throughput, where larger is better. */
  readonly larger?: 'better';
}

export interface BenchReport {
  readonly title: string;
  readonly rows: readonly BenchRow[];
  /** Targets, each with whether this run met it. */
  readonly targets?: readonly { readonly claim: string; readonly kept: boolean }[];
  readonly notes?: readonly string[];
}

export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** `origin` says where the figures come from. */
export function renderReport(report: BenchReport, origin: string): string {
  const lines = [
    '',
    `## ${report.title}`,
    '',
    origin,
    '',
    '| what | count | p50 | p95 | p99 | unit | ratio at p50 |',
    '|---|---:|---:|---:|---:|---|---:|',
  ];
  for (const row of report.rows) {
    const base = row.against === undefined ? undefined : report.rows[row.against];
    const cells = [0.5, 0.95, 0.99].map((share) => (row.samples.length > 1 || share === 0.5 ? round(percentile(row.samples, share)) : ''));
    lines.push(`| ${row.what} | ${row.samples.length} | ${cells.join(' | ')} | ${row.unit} | ${base ? ratio(row, base) : ''} |`);
  }
  for (const { claim, kept } of report.targets ?? []) lines.push('', `${kept ? 'kept' : 'MISSED'}: ${claim}`);
  for (const note of report.notes ?? []) lines.push('', note);
  return `${lines.join('\n')}\n`;
}

function ratio(row: BenchRow, base: BenchRow): string {
  const [mine, theirs] = [percentile(row.samples, 0.5), percentile(base.samples, 0.5)];
  const better = row.larger ? mine / theirs : theirs / mine;
  return better < 1 ? `${round(1 / better)} × worse` : `${round(better)} × better`;
}

export function round(value: number): string {
  if (!Number.isFinite(value)) return '-';
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 1 ? 2 : 3;
  return value.toLocaleString('en', { maximumFractionDigits: digits });
}
