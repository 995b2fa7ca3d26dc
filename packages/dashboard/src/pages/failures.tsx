// Failures by their code: what is to blame, how often, and the newest example.

import { useNow, useSummary } from '../api/hooks.ts';
import { toAddress } from '../logic/address.ts';
import { stripAnsi } from '../logic/ansi.ts';
import { formatAge, formatCount } from '../logic/format.ts';
import { toHarmless } from '../logic/harmless.ts';
import { Bar, Empty, ErrorNote, Tag } from '../parts/bits.tsx';

const blameTones: Readonly<Record<string, string>> = {
  policy: 'busy',
  caller: 'faint',
  task: 'warn',
  verifier: 'warn',
  sandbox: 'bad',
  backend: 'bad',
  service: 'bad',
};

export function FailuresPage() {
  const now = useNow(5000);
  const { data, error } = useSummary(3000);
  const most = Math.max(1, ...(data?.failures.map(({ count }) => count) ?? []));
  return (
    <div className="page">
      <div className="title-line">
        <h1>Failures</h1>
        <span className="faint">{data === undefined ? '' : `among ${formatCount(data.indexed)} rollouts, newest example of each`}</span>
      </div>
      <ErrorNote error={error} />
      {data?.failures.length === 0 ? <Empty>No rollout has failed.</Empty> : null}
      <div className="cards">
        {data?.failures.map((failure) => (
          <article key={failure.code} className="panel failure">
            <header className="panel-head">
              <h2 className="mono">{failure.code}</h2>
              <Tag tone={blameTones[failure.blame] ?? 'faint'}>{failure.blame}</Tag>
              <div className="panel-aside">
                <a href={toAddress('rollouts', undefined, { code: failure.code })}>
                  {failure.count === 1 ? '1 rollout' : `${formatCount(failure.count)} rollouts`}
                </a>
              </div>
            </header>
            <Bar label={`share of ${failure.code}`} value={failure.count} most={most} tone={blameTones[failure.blame] ?? 'faint'} />
            <pre className="output output-short">{stripAnsi(failure.example.message)}</pre>
            <p className="faint small">
              <a href={toAddress('rollout', failure.example.id)}>{toHarmless(failure.example.id)}</a>, {formatAge(failure.newest_at, now)} ·
              in {failure.scenarios.map(toHarmless).join(', ')}
              {failure.rewarded === 0 ? '' : ` · ${failure.rewarded} caused by the agent, with the lowest reward`}
            </p>
          </article>
        ))}
      </div>
    </div>
  );
}
