// What the trainer posted back: its numbers over its steps, and how far the logprobs that it recomputes are from the recorded ones.

import type { TrainerStepList, TrainerStepView } from '@millrace/protocol';
import { useState } from 'react';
import { useReply, useSlowRevision, useSurroundings } from '../api/hooks.ts';
import { toQuery } from '../api/request.ts';
import { toAddress } from '../logic/address.ts';
import { formatCount, formatNumber } from '../logic/format.ts';
import { toHarmless } from '../logic/harmless.ts';
import { findWeightChanges, toMismatchLines } from '../logic/trainer.ts';
import { Panel } from '../parts/bits.tsx';
import { Chart } from '../parts/chart.tsx';

/** As many as one page of the API has. */
const shownSteps = 1000;

const charts: readonly { readonly title: string; readonly read: (step: TrainerStepView) => number | null }[] = [
  { title: 'Loss', read: ({ loss }) => loss },
  { title: 'KL', read: ({ kl }) => kl },
  { title: 'Entropy', read: ({ entropy }) => entropy },
  { title: 'Clipped share', read: ({ clip_share }) => clip_share },
];

export function TrainerPanels() {
  const { session } = useSurroundings();
  const revision = useSlowRevision(3000);
  const [run, setRun] = useState<string | undefined>();
  const path = `/v1/trainer/steps${toQuery({ run, order: 'newest', limit: shownSteps })}`;
  const { data } = useReply<TrainerStepList>(session.live ? path : undefined, revision);
  const steps = data?.steps.toReversed() ?? [];
  const newest = steps.at(-1);
  if (data === undefined || newest === undefined) return null;
  const x = steps.map(({ step }) => step);
  const marks = findWeightChanges(steps);
  return (
    <section aria-label="Trainer" className="page-part">
      <div className="title-line">
        <h2 className="big">Trainer</h2>
        <span className="faint">by step; dashed lines: the weights changed</span>
        <div className="chips">
          {data.runs.slice(0, 12).map((one) => (
            <button
              key={one.run}
              type="button"
              className={`chip ${one.run === newest.run ? 'chip-on' : ''}`}
              aria-pressed={one.run === newest.run}
              onClick={() => setRun(one.run)}
            >
              {toHarmless(one.run)} ({formatCount(one.steps)})
            </button>
          ))}
        </div>
      </div>
      {newest.alarm === null ? null : (
        <p className="note note-bad" role="alert">
          Step {newest.step}: {toHarmless(newest.alarm)}
        </p>
      )}
      <div className="grid grid-training">
        <Panel title="Mismatch of logprobs" aside={<span className="faint">mean of |recomputed − recorded| by backend, in nats</span>}>
          <Chart
            label="Mismatch of logprobs over steps"
            isTime={false}
            xLabel="step"
            points
            height={220}
            x={x}
            marks={marks}
            lines={toMismatchLines(steps).map(({ label, values }) => ({ label: toHarmless(label), values }))}
          />
        </Panel>
        {charts.map(({ title, read }) => {
          const values = steps.map(read);
          if (values.every((value) => value === null)) return null;
          return (
            <Panel key={title} title={title}>
              <Chart
                label={`${title} over steps`}
                isTime={false}
                xLabel="step"
                height={160}
                x={x}
                marks={marks}
                lines={[{ label: title, values }]}
              />
            </Panel>
          );
        })}
      </div>
      <MismatchTable step={newest} />
    </section>
  );
}

function MismatchTable({ step: { step, mismatch, samples, unknown_samples } }: { readonly step: TrainerStepView }) {
  const aside = `${samples} rollouts compared${unknown_samples === 0 ? '' : `, ${unknown_samples} no longer kept`}`;
  return (
    <Panel title={`Step ${step}, by backend and version`} aside={<span className="faint">{aside}</span>}>
      <div className="scroll-x">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">backend</th>
              {['version', 'tokens', 'mean |difference|', 'most', 'KL'].map((name) => (
                <th key={name} scope="col" className="number">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {mismatch.map((one) => (
              <tr key={`${one.backend} ${one.policy_version}`}>
                <th scope="row">{toHarmless(one.backend)}</th>
                <td className="number">
                  {one.policy_version === null ? (
                    '–'
                  ) : (
                    <a href={toAddress('rollouts', undefined, { version: String(one.policy_version) })}>{one.policy_version}</a>
                  )}
                </td>
                <td className="number">{formatCount(one.tokens)}</td>
                <td className="number">{formatNumber(one.mean_abs, 4)}</td>
                <td className="number">{formatNumber(one.most_abs, 3)}</td>
                <td className="number">{formatNumber(one.kl, 6)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
