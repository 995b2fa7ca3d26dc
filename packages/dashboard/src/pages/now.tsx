// What the service does now: stages, rates, rewards, backends, machines and workers, and the newest events.

import type { Event, ServiceStatus } from '@millrace/protocol';
import { useMemo } from 'react';
import { useLive, useNow, useSummary, useSurroundings } from '../api/hooks.ts';
import type { RateSample } from '../api/live.ts';
import { request } from '../api/request.ts';
import { toAddress } from '../logic/address.ts';
import { formatAge, formatBytes, formatCount, formatMs, formatNumber } from '../logic/format.ts';
import { toHarmless } from '../logic/harmless.ts';
import { Bar, Empty, Panel, Reward, Stat, StateTag } from '../parts/bits.tsx';
import { Chart } from '../parts/chart.tsx';
import { Backends } from './now-backends.tsx';

export function NowPage() {
  const { status, samples, events, link } = useLive();
  if (status === undefined)
    return <Empty>{link === 'lost' ? 'The service does not answer. Trying again …' : 'Reading the service …'}</Empty>;
  return (
    <div className={`page ${link === 'lost' ? 'is-old' : ''}`}>
      <h1 className="visually-hidden">Now</h1>
      {status.hints.map((hint) => (
        <p key={hint} className="note note-warn">
          {toHarmless(hint)}
        </p>
      ))}
      <Numbers status={status} />
      <Blames />
      <div className="grid grid-stages">
        <Stages status={status} />
        <PolicyPanel status={status} />
      </div>
      <Rates samples={samples} />
      <Backends backends={status.backends} />
      <div className="grid grid-two">
        <Machines status={status} />
        <Events events={events} />
      </div>
    </div>
  );
}

function Numbers({ status }: { readonly status: ServiceStatus }) {
  const { recent, rollouts, store } = status;
  const live = rollouts.init + rollouts.ready + rollouts.run + rollouts.evaluate;
  const ended = rollouts.done + rollouts.failed + rollouts.cancelled;
  return (
    <div className="stats">
      <Stat label="in progress" value={formatCount(live)} note={`${formatCount(rollouts.queued)} queued`} />
      <Stat label="rollouts/s" value={formatNumber(recent.ended / recent.seconds, 2)} note={`${formatCount(recent.ended)} in a minute`} />
      <Stat label="tokens/s" value={formatCount(status.tokens_per_s)} note="sampled, all workers" />
      <Stat label="mean reward" value={<Reward value={recent.mean_reward} />} note={`of ${formatCount(recent.rewarded)} in a minute`} />
      <Stat
        label="ended"
        value={formatCount(ended)}
        note={
          <a href={toAddress('rollouts', undefined, { state: 'failed' })}>
            {formatCount(rollouts.failed)} failed, {formatCount(rollouts.cancelled)} cancelled
          </a>
        }
      />
      {store === undefined ? null : (
        <Stat label="store" value={formatBytes(store.file_bytes + store.wal_bytes)} note={`${formatBytes(store.free_bytes)} free`} />
      )}
    </div>
  );
}

/** Whose fault failures were: what broke outside of the agent is apart from rewards. */
function Blames() {
  const { data } = useSummary(5000);
  const counts = new Map<string, number>();
  for (const { blame, count } of data?.failures ?? []) counts.set(blame, (counts.get(blame) ?? 0) + count);
  if (counts.size === 0) return null;
  return (
    <div className="chips">
      <a className="faint" href={toAddress('failures')}>
        failures by blame
      </a>
      {[...counts]
        .sort(([, one], [, other]) => other - one)
        .map(([blame, count]) => (
          <a key={blame} className="chip" href={toAddress('rollouts', undefined, { blame })}>
            {blame} {formatCount(count)}
          </a>
        ))}
    </div>
  );
}

const stageNames = ['init', 'ready', 'run', 'evaluate'] as const;

function Stages({ status }: { readonly status: ServiceStatus }) {
  const reports = status.workers.flatMap(({ alive, report }) => (alive && report !== null ? [report] : []));
  return (
    <Panel title="Stages">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">stage</th>
            <th scope="col" className="wide">
              slots in use
            </th>
            <th scope="col" className="number">
              active
            </th>
            <th scope="col" className="number">
              slots
            </th>
            <th scope="col" className="number">
              waiting
            </th>
          </tr>
        </thead>
        <tbody>
          {stageNames.map((name) => {
            const sum = (key: 'active' | 'waiting' | 'slots') => reports.reduce((total, { stages }) => total + stages[name][key], 0);
            return (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>
                  <Bar label={`slots of ${name} in use`} value={sum('active')} most={sum('slots')} />
                </td>
                <td className="number">{sum('active')}</td>
                <td className="number faint">{sum('slots')}</td>
                <td className="number">{sum('waiting')}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Panel>
  );
}

function PolicyPanel({ status: { policy, batches } }: { readonly status: ServiceStatus }) {
  const { session, act } = useSurroundings();
  const isRunning = policy.state === 'running';
  const change = () =>
    act({
      title: isRunning ? 'Pause sampling' : 'Resume sampling',
      text: isRunning
        ? 'Running calls finish, and no new ones start, until someone resumes. Clocks of rollouts stop; submissions are still accepted.'
        : `Sampling goes on with the same weights, version ${policy.policy_version}.`,
      button: isRunning ? 'Pause' : 'Resume',
      run: async () => {
        await request(isRunning ? '/v1/policy/pause' : '/v1/policy/resume', { method: 'POST', body: {} });
        return isRunning ? 'Sampling pauses.' : 'Sampling goes on.';
      },
    });
  return (
    <Panel
      title="Policy"
      aside={
        session.right === 'admin' ? (
          <button type="button" onClick={change}>
            {isRunning ? 'Pause …' : 'Resume …'}
          </button>
        ) : undefined
      }
    >
      <dl className="facts">
        <dt>version</dt>
        <dd className="big">{policy.policy_version}</dd>
        <dt>sampling</dt>
        <dd>
          <StateTag state={policy.state} /> {policy.owner === null ? '' : `paused by ${toHarmless(policy.owner)}`}
        </dd>
        <dt>calls now</dt>
        <dd>{policy.generating}</dd>
        <dt>open batches</dt>
        <dd>
          {batches.length === 0 ? 'none' : null}
          {batches.slice(0, 4).map((batch) => (
            <a key={batch.id} className="chip" href={toAddress('batch', batch.id)}>
              {toHarmless(batch.id)} {batch.delivered}/{batch.target}
            </a>
          ))}
        </dd>
      </dl>
    </Panel>
  );
}

function Rates({ samples }: { readonly samples: readonly RateSample[] }) {
  const x = useMemo(() => samples.map(({ at }) => at), [samples]);
  const pick = (read: (sample: RateSample) => number | null) => samples.map(read);
  return (
    <div className="grid grid-three">
      <Panel title="Rollouts per second" aside={<span className="faint">last minute, sliding</span>}>
        <Chart label="Rollouts per second" x={x} lines={[{ label: 'rollouts/s', values: pick((one) => one.rolloutsPerS) }]} />
      </Panel>
      <Panel title="Tokens per second">
        <Chart label="Tokens per second" x={x} lines={[{ label: 'tokens/s', values: pick((one) => one.tokensPerS) }]} />
      </Panel>
      <Panel title="Mean reward" aside={<span className="faint">last minute, sliding</span>}>
        <Chart label="Mean reward" x={x} lines={[{ label: 'reward', values: pick((one) => one.meanReward) }]} />
      </Panel>
    </div>
  );
}

function Machines({ status }: { readonly status: ServiceStatus }) {
  const now = useNow();
  const machines = status.machines ?? [];
  return (
    <Panel title="Machines and workers">
      {machines.length === 0 ? <Empty>No worker has reported yet.</Empty> : null}
      {machines.map((machine) => (
        <div key={machine.id} className="machine">
          <div className="line">
            <strong>{toHarmless(machine.name)}</strong> <StateTag state={machine.state} />
            <span className="faint">
              {machine.cpus} cores, {formatBytes(machine.memory_bytes)}, seen {formatMs(machine.heartbeat_age_ms)} ago
            </span>
          </div>
        </div>
      ))}
      <table className="table">
        <thead>
          <tr>
            <th scope="col">worker</th>
            <th scope="col" className="number">
              holds
            </th>
            <th scope="col" className="number">
              turns
            </th>
            <th scope="col" className="number">
              tokens/s
            </th>
            <th scope="col" className="number">
              lag p99
            </th>
            <th scope="col" className="number">
              memory
            </th>
            <th scope="col">started</th>
          </tr>
        </thead>
        <tbody>
          {status.workers.slice(0, 24).map(({ id, pid, alive, report, started_at }) => (
            <tr key={id} className={alive ? '' : 'faint'}>
              <th scope="row" title={toHarmless(id)}>
                {pid} {alive ? null : <StateTag state="left" />}
              </th>
              <td className="number">{report?.held ?? '–'}</td>
              <td className="number">{report === null ? '–' : formatCount(report.turns)}</td>
              <td className="number">{report?.tokens_per_s === undefined ? '–' : formatCount(report.tokens_per_s)}</td>
              <td className="number">{report === null ? '–' : formatMs(report.loop_lag_ms.p99)}</td>
              <td className="number">{report === null ? '–' : formatBytes(report.rss_bytes)}</td>
              <td className="faint">{formatAge(Date.parse(started_at), now)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

function Events({ events }: { readonly events: readonly Event[] }) {
  const shown = events.filter(({ kind }) => kind !== 'turn-end' && kind !== 'backend-traffic').slice(0, 14);
  return (
    <Panel title="Newest events">
      {shown.length === 0 ? <Empty>Nothing since this page was opened.</Empty> : null}
      <ol className="events">
        {shown.map((event) => (
          <li key={event.id}>
            <time className="faint">{event.at.slice(11, 19)}</time> <span>{event.kind}</span>{' '}
            {event.rollout_id === undefined ? (
              toHarmless(event.backend_id ?? event.group ?? '')
            ) : (
              <a href={toAddress('rollout', event.rollout_id)}>{toHarmless(event.rollout_id)}</a>
            )}{' '}
            <span className="faint">{describe(event)}</span>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

function describe({ data }: Event): string {
  const words = [
    data.to ?? data.state ?? data.reason,
    data.code,
    typeof data.reward === 'number' ? `reward ${formatNumber(data.reward)}` : '',
  ];
  return toHarmless(words.filter((word) => typeof word === 'string' && word !== '').join(', '));
}
