// What the verifier said: each part of the score, logs with their colours and patches as diffs, and the failures of earlier attempts.

import type { RolloutView } from '@millrace/protocol';
import { stripAnsi } from '../logic/ansi.ts';
import { formatNumber } from '../logic/format.ts';
import { toHarmless } from '../logic/harmless.ts';
import { Empty, Panel, Reward } from '../parts/bits.tsx';
import { Output } from '../parts/output.tsx';

export function Verdict({ rollout: { result, reward, failures } }: { readonly rollout: RolloutView }) {
  const score = Object.entries(result?.score ?? {});
  const long = score.filter(([, value]) => isLong(value));
  const short = score.filter(([, value]) => !isLong(value));
  return (
    <>
      <Panel title="Score">
        <dl className="facts">
          <dt>reward</dt>
          <dd className="big">
            <Reward value={reward} />
          </dd>
          {short.map(([name, value]) => (
            <div key={name} className="contents">
              <dt>{toHarmless(name)}</dt>
              <dd>
                {typeof value === 'number'
                  ? formatNumber(value, 4)
                  : toHarmless(typeof value === 'string' ? value || '–' : JSON.stringify(value))}
              </dd>
            </div>
          ))}
        </dl>
        {score.length === 0 ? <Empty>The verifier gave no details.</Empty> : null}
      </Panel>
      {long.map(([name, value]) => (
        <Panel key={name} title={toHarmless(name)}>
          <Output text={typeof value === 'string' ? value : JSON.stringify(value, undefined, 2)} />
        </Panel>
      ))}
      {failures.length === 0 ? null : (
        <Panel title="Earlier attempts">
          {failures.map((failure) => (
            <div key={`${failure.attempt} ${failure.code}`} className="note">
              attempt {failure.attempt}: <strong className="mono">{failure.code}</strong>, blame {failure.blame}
              <pre className="output output-short">{stripAnsi(failure.message)}</pre>
            </div>
          ))}
        </Panel>
      )}
    </>
  );
}

function isLong(value: unknown): boolean {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text !== undefined && (text.length > 160 || text.includes('\n'));
}
