// The page with the report of every benchmark: those that ran replace their older sections.

const opening = `# Benchmarks

Written by \`npm run bench -- --write\`. Each section names its own command, and each row is compared with its baseline from the same run.
`;

/** In the given order. Sections without a known command are dropped. */
export function replaceSections(page: string, fresh: ReadonlyMap<string, string>, order: readonly string[]): string {
  const kept = new Map(
    page
      .split(/^(?=## )/m)
      .slice(1)
      .map((section) => [/`npm run bench -- ([\w-]+)`/.exec(section)?.[1] ?? '', `\n${section.trimEnd()}\n`] as const),
  );
  return [opening, ...order.flatMap((name) => fresh.get(name) ?? kept.get(name) ?? [])].join('');
}
