// The OpenAPI document against the registered routes and their actual responses.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorBody, type Route, type RouteName, routes, toPath } from '@millrace/protocol';
import type { ZodType } from 'zod';
import { openFloor, shareFloor, task } from '../floor.ts';

const sharedFloor = shareFloor();

interface Document {
  readonly openapi: string;
  readonly paths: Record<
    string,
    Record<
      string,
      { operationId: string; parameters: { name: string; in: string; required: boolean }[]; responses: Record<string, unknown> }
    >
  >;
}

test('the document and the registered routes are the same, in both directions', async () => {
  const floor = sharedFloor();
  const document: Document = (await floor.call('GET', '/openapi.json')).body;
  assert.equal(document.openapi, '3.1.0');
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  // The dashboard's files, and what only its page reads, are not part of the API; what agents send to a gateway has the shapes of other APIs; the calls
  // of workers are between processes of Millrace.
  const registered = readRegistered(floor.app.printRoutes({ commonPrefix: false })).filter(
    (route) =>
      route !== 'POST /v1/worker-calls/{name}' &&
      !/^GET \/(dashboard\/api\/.*|assets\/\{name\}|favicon\.svg)?$/.test(route) &&
      !/^[A-Z]+ \/v1\/gateways\/\{id\}(\/?\*|\/v1)/.test(route),
  );
  assert.deepEqual(described.toSorted(), registered.toSorted());
});

test('parameters with a default are optional, and every reference points somewhere', async () => {
  const floor = sharedFloor();
  const document: Document = (await floor.call('GET', '/openapi.json')).body;
  const list = document.paths['/v1/rollouts']?.get;
  assert.deepEqual(
    list?.parameters.filter((parameter) => parameter.required),
    [],
  );
  assert.deepEqual(
    document.paths['/v1/rollouts/{id}']?.get?.parameters.map(({ name, required }) => [name, required]),
    [
      ['id', true],
      ['wait', false],
    ],
  );
  assert.deepEqual(
    Object.keys(document.paths['/v1/rollouts']?.post?.responses ?? {}).map(Number),
    [200, 400, 401, 403, 409, 413, 415, 429, 500, 503],
  );
  const components = Reflect.get(document, 'components');
  for (const [, name = ''] of JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g))
    assert.ok(name in components.schemas, name);
  assert.doesNotMatch(JSON.stringify(document), /"\$ref":"#\/(\$defs|definitions)/);
});

test('every route responds as documented', async () => {
  await using floor = await openFloor();
  await floor.worker.register();
  await floor.worker.report({ backends: { b: 1 } });
  const done = await floor.submit({ id: 'done', metadata: { a: 1 }, group: 'g' });
  await floor.worker.succeed(done);
  await floor.submit({ id: 'held', scenario: 'free', task: {} });
  const instance = { data_source: 'sums', ...task, instance_id: 'i', trajectory_id: 0 };
  const calls: readonly [RouteName, (Record<string, string> | undefined)?, unknown?][] = [
    ['submitRollouts', undefined, { rollouts: [{ id: 'new', scenario: 'sums', task }] }],
    ['listRollouts'],
    ['getRollout', { id: 'done' }],
    ['getTrajectory', { id: 'done' }],
    ['listTurns', { id: 'done' }],
    ['cancelRollout', { id: 'new' }],
    ['retryRollout', { id: 'new' }],
    ['createBatch', undefined, { id: 'open', scenario: 'sums', group_size: 2, target: 1 }],
    ['listBatches'],
    ['getBatch', { id: 'open' }],
    ['appendTasks', { id: 'open' }, { tasks: [task] }],
    ['readGroups', { id: 'open' }],
    ['ackGroups', { id: 'open' }, { consumer: 'c', through: 0 }],
    ['resumeBatch', { id: 'open' }],
    ['cancelBatch', { id: 'open' }],
    ['createEvaluation', undefined, { id: 'e', scenario: 'sums', n: 2, tasks: [task] }],
    ['listEvaluations'],
    ['getEvaluation', { id: 'e' }],
    ['readEvaluationTasks', { id: 'e' }],
    ['retryEvaluation', { id: 'e' }],
    ['cancelEvaluation', { id: 'e' }],
    ['openGateway', undefined, { id: 'gw' }],
    ['getGateway', { id: 'gw' }],
    ['joinBackend', undefined, { id: 'b', url: 'http://127.0.0.1:1', model: 'm' }],
    ['listBackends'],
    ['drainBackend', { id: 'b' }],
    ['leaveBackend', { id: 'b' }],
    ['getPolicy'],
    ['pausePolicy', undefined, { mode: 'abort' }],
    ['resumePolicy', undefined, { policy_version: 3 }],
    ['postTrainerStep', undefined, { step: 1, loss: 0.5, samples: [{ rollout_id: 'done', advantage: 1 }] }],
    ['listTrainerSteps'],
    ['readTrainerSamples', { id: 'done' }],
    ['listMachines'],
    ['getJoin'],
    ['getStatus'],
    ['getHealth'],
    ['getReadiness'],
    ['getOpenapi'],
    ['getMetrics'],
    ['prorlStart'],
    ['prorlStatus'],
    ['prorlClearServers'],
    ['prorlAddServer', undefined, { address: '127.0.0.1:2/v1' }],
    ['prorlCancel', undefined, { job_id: 'gone' }],
    ['prorlProcess', undefined, { instance, sampling_params: {}, job_id: 'gone' }],
    ['prorlStop'],
  ];
  // Events are a stream with separate tests, a gateway ends only with its worker, and only what a worker saved can be forked.
  assert.deepEqual(
    calls.map(([name]) => name).toSorted(),
    Object.keys(routes)
      .filter((name) => !['readEvents', 'rewardGateway', 'forkRollout'].includes(name))
      .toSorted(),
  );
  for (const [name, params, body] of calls) {
    const route: Route = routes[name];
    const reply = await floor.call(route.method, toPath(route.path, params), body);
    const form = route.replies[reply.status]?.content[String(reply.headers['content-type']).replace(/;.*/, '')];
    assert.ok(form !== undefined, `${name} responded with ${reply.status} ${reply.headers['content-type']} ${JSON.stringify(reply.body)}`);
    if (typeof form !== 'string') assertFits(form, reply.body, name);
  }
});

test('every error has the same shape and a declared code', async () => {
  await using floor = await openFloor();
  const wrong: readonly [RouteName, string, unknown?][] = [
    ['getRollout', '/v1/rollouts/none'],
    ['getTrajectory', '/v1/rollouts/none/trajectory'],
    ['listTurns', '/v1/rollouts/none/turns'],
    ['forkRollout', '/v1/rollouts/none/forks', {}],
    ['getEvaluation', '/v1/evaluations/none'],
    ['createEvaluation', '/v1/evaluations', { scenario: 'none', tasks: [{}] }],
    ['getGateway', '/v1/gateways/none'],
    ['rewardGateway', '/v1/gateways/none/reward', { reward: 1 }],
    ['leaveBackend', '/v1/backends/none'],
    ['drainBackend', '/v1/backends/none/drain'],
    ['getReadiness', '/readyz'],
    ['prorlStop', '/stop'],
    ['prorlStatus', '/status'],
    ['prorlProcess', '/process', { instance: {}, sampling_params: {} }],
    ['submitRollouts', '/v1/rollouts', { rollouts: [{ scenario: 'none', task: {} }] }],
  ];
  for (const [name, url, body] of wrong) {
    const route: Route = routes[name];
    const reply = await floor.call(route.method, url, body);
    const { code } = errorBody.parse(reply.body).error;
    assert.ok(route.errors.includes(code), `${name}: ${code}`);
  }
});

/** A field that the schema strips is missing from the document. */
function assertFits(schema: ZodType, body: unknown, name: string): void {
  const parsed = schema.safeParse(body);
  assert.ok(parsed.success, `${name}: ${parsed.error}`);
  assert.deepEqual(body, parsed.data, name);
}

/** Parses Fastify's printout of its routes. */
function readRegistered(tree: string): string[] {
  const path: string[] = [];
  return tree.split('\n').flatMap((line) => {
    const [, indent = '', part = '', methods = ''] = /^([│ ]*)[├└]── (\S*)(?: \((.*)\))?$/.exec(line) ?? [];
    if (part === '' && methods === '') return [];
    path.splice(indent.length / 4, path.length, part);
    const full = path.join('').replace(/:(\w+)/g, '{$1}');
    return methods
      .split(', ')
      .filter((method) => method !== '' && method !== 'HEAD')
      .map((method) => `${method} ${full}`);
  });
}
