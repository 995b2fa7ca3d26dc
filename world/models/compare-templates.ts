// Compares a template engine with transformers, over all published templates and our conversations. Run it to print the counts of every
// engine: node world/models/compare-templates.ts [--differences]

import { type ReferenceText, readTemplates, renderReference } from './collection.ts';
import { conversations } from './conversations.ts';
import { otherEngines, ours, type TemplateEngine } from './template-engines.ts';

interface Comparison {
  readonly engine: string;
  /** Templates for which nothing differs. */
  readonly exact: number;
  readonly templates: number;
  readonly same: number;
  /** Another text than the reference, without an error. */
  readonly silentlyWrong: number;
  /** Refused, though the reference renders it. */
  readonly refused: number;
  /** ReferenceText, though the reference refuses it. */
  readonly accepted: number;
  readonly bothRefuse: number;
  readonly ms: number;
  readonly differences: readonly string[];
}

type TextVerdict = 'same' | 'silentlyWrong' | 'refused' | 'accepted' | 'bothRefuse';

export function compareEngine(
  engine: TemplateEngine,
  templates: ReadonlyMap<string, string>,
  reference: ReturnType<typeof renderReference>,
): Comparison {
  const counts: Record<TextVerdict, number> = { same: 0, silentlyWrong: 0, refused: 0, accepted: 0, bothRefuse: 0 };
  const differences: string[] = [];
  const started = performance.now();
  let exact = 0;
  for (const [name, source] of templates) {
    const wanted = reference.get(name);
    if (!wanted) continue;
    const before = differences.length;
    const render = compile(engine, source);
    for (const [index, { name: conversation, json }] of conversations.entries()) {
      const [verdict, what] = judge(wanted[index], render(json));
      counts[verdict] += 1;
      if (verdict !== 'same' && verdict !== 'bothRefuse') differences.push(`${name}, ${conversation}: ${verdict}: ${what}`);
    }
    if (differences.length === before) exact += 1;
  }
  return { engine: engine.name, exact, templates: templates.size, ...counts, ms: Math.round(performance.now() - started), differences };
}

type EngineOutcome = { readonly text: string } | { readonly error: string };

function compile(engine: TemplateEngine, source: string): (json: string) => EngineOutcome {
  let render: (json: string) => string;
  try {
    render = engine.compile(source);
  } catch (error) {
    return () => ({ error: `not loaded: ${String(error)}` });
  }
  return (json) => {
    try {
      return { text: render(json) };
    } catch (error) {
      return { error: String(error) };
    }
  };
}

function judge(wanted: ReferenceText | undefined, seen: EngineOutcome): readonly [TextVerdict, string] {
  if (!wanted || 'error' in wanted) return 'error' in seen ? ['bothRefuse', ''] : ['accepted', wanted?.error ?? ''];
  if ('error' in seen) return ['refused', seen.error];
  if (seen.text === wanted.text) return ['same', ''];
  let at = 0;
  while (seen.text[at] === wanted.text[at]) at += 1;
  const show = (text: string) => JSON.stringify(text.slice(Math.max(at - 20, 0), at + 40));
  return ['silentlyWrong', `${show(seen.text)} instead of ${show(wanted.text)}`];
}

export function toTable(comparisons: readonly Comparison[]): string {
  const rows = comparisons.map(
    (one) =>
      `| ${one.engine} | ${one.exact} of ${one.templates} | ${one.same} | ${one.silentlyWrong} | ${one.refused} | ${one.accepted} | ${one.bothRefuse} | ${(one.ms / 1000).toFixed(1)} s |`,
  );
  const head =
    '| engine | templates without a difference | same text | silently wrong | refused without need | accepted against the reference | both refuse | time |';
  return [head, '|---|---:|---:|---:|---:|---:|---:|---:|', ...rows].join('\n');
}

if (import.meta.main) {
  const templates = readTemplates();
  const reference = renderReference(templates);
  const comparisons = [ours, ...otherEngines()].map((engine) => compareEngine(engine, templates, reference));
  console.log(`${templates.size} templates × ${conversations.length} conversations, against transformers`);
  console.log(toTable(comparisons));
  if (process.argv.includes('--differences'))
    for (const { engine, differences } of comparisons) for (const one of differences) console.log(`${engine}: ${one}`);
}
