// How the policy gets on: rewards, solved and informative shares, tokens and turns over the versions of the policy.

import type { VersionPoint } from '@millrace/protocol';
import { useSummary } from '../api/hooks.ts';
import { toAddress } from '../logic/address.ts';
import { formatCount, formatNumber, formatShare, formatTime } from '../logic/format.ts';
import { toHarmless } from '../logic/harmless.ts';
import { Empty, ErrorNote, Panel, Reward } from '../parts/bits.tsx';
import { Chart } from '../parts/chart.tsx';
import { TrainerPanels } from './trainer-panels.tsx';

const charts: readonly {
  readonly title: string;
  readonly note: string;
  readonly read: (point: VersionPoint) => number | null;
  readonly to?: number;
}[] = [
  { title: 'Mean reward', note: 'of rollouts whose last token is of this version', read: (point) => point.mean_reward },
  { title: 'Solved', note: "the share with the scenario's highest reward", read: (point) => point.solved, to: 1 },
  { title: 'Informative groups', note: 'the share of groups whose rewards differ', read: (point) => point.informative, to: 1 },
  { title: 'Sampled tokens', note: 'mean of a rollout', read: (point) => point.sampled },
  { title: 'Turns', note: 'mean of a rollout', read: (point) => point.turns },
];

const mostLines = 8;

export function TrainingPage({ scenario }: { readonly scenario: string | undefined }) {
  const { data, error } = useSummary(3000);
  const points = (data?.versions ?? []).filter((point) => scenario === undefined || point.scenario === scenario);
  const versions = [...new Set(points.map(({ version }) => version))].sort((one, other) => one - other);
  const names = [...new Set((data?.versions ?? []).map((point) => point.scenario))].sort();
  const shown = [...new Set(points.map((point) => point.scenario))].sort().slice(0, mostLines);
  const toLine = (name: string, read: (point: VersionPoint) => number | null) => ({
    label: toHarmless(name),
    values: versions.map((version) => {
      const point = points.find((one) => one.version === version && one.scenario === name);
      return point === undefined ? null : read(point);
    }),
  });
  return (
    <div className="page">
      <div className="title-line">
        <h1>Training</h1>
        <span className="faint">by policy version; each new version is a change of the weights</span>
        <div className="chips">
          <a className={`chip ${scenario === undefined ? 'chip-on' : ''}`} href={toAddress('training')}>
            all scenarios
          </a>
          {names.map((name) => (
            <a
              key={name}
              className={`chip ${scenario === name ? 'chip-on' : ''}`}
              href={toAddress('training', undefined, { scenario: name })}
            >
              {toHarmless(name)}
            </a>
          ))}
        </div>
      </div>
      <ErrorNote error={error} />
      {data !== undefined && versions.length === 0 ? <Empty>No rollout has a reward yet.</Empty> : null}
      {versions.length === 0 ? null : (
        <>
          <div className="grid grid-training">
            {charts.map(({ title, note, read, to }) => (
              <Panel key={title} title={title} aside={<span className="faint">{note}</span>}>
                <Chart
                  label={`${title} over policy versions`}
                  isTime={false}
                  points
                  height={title === 'Mean reward' ? 260 : 180}
                  x={versions}
                  lines={shown.map((name) => toLine(name, read))}
                  {...(to === undefined ? {} : { from: 0, to: to * 1.02 })}
                />
              </Panel>
            ))}
          </div>
          <Points points={points} />
        </>
      )}
      <TrainerPanels />
    </div>
  );
}

function Points({ points }: { readonly points: readonly VersionPoint[] }) {
  return (
    <Panel title="Versions">
      <div className="scroll-x">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">version</th>
              <th scope="col">scenario</th>
              {['rollouts', 'mean reward', 'solved', 'informative', 'sampled', 'turns'].map((name) => (
                <th key={name} scope="col" className="number">
                  {name}
                </th>
              ))}
              <th scope="col">first (UTC)</th>
            </tr>
          </thead>
          <tbody>
            {points
              .toReversed()
              .slice(0, 200)
              .map((point) => (
                <tr key={`${point.version} ${point.scenario}`}>
                  <th scope="row">
                    <a
                      href={toAddress('rollouts', undefined, { version: String(point.version), scenario: point.scenario, sort: 'reward' })}
                    >
                      {point.version}
                    </a>
                  </th>
                  <td>{toHarmless(point.scenario)}</td>
                  <td className="number">{formatCount(point.rollouts)}</td>
                  <td className="number">
                    <Reward value={point.mean_reward} />
                  </td>
                  <td className="number">{formatShare(point.solved)}</td>
                  <td className="number">{formatShare(point.informative)}</td>
                  <td className="number">{formatNumber(point.sampled, 0)}</td>
                  <td className="number">{formatNumber(point.turns, 1)}</td>
                  <td className="faint">{formatTime(point.first_at)}</td>
                </tr>
              ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
