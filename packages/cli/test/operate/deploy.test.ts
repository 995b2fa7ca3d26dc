// The examples in deploy/ for workers outside Slurm: systemd accepts the unit, the manifest has the shape that Kubernetes asks for, and both
// call the command line with options that it has.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfig } from '@millrace/server';
import { makeTempFolder } from '@millrace/testkit/plain';
import { z } from 'zod';

const root = join(import.meta.dirname, '../../../..');
const unit = readFileSync(join(root, 'deploy/systemd/millrace-worker.service'), 'utf8');
const manifestPath = join(root, 'deploy/kubernetes/millrace-workers.json');
const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;

const meta = z.object({ name: z.string().regex(/^[a-z0-9-]+$/) });
const secret = z.strictObject({
  apiVersion: z.literal('v1'),
  kind: z.literal('Secret'),
  metadata: meta,
  type: z.literal('Opaque'),
  stringData: z.record(z.string(), z.string()),
});
const variable = z.union([
  z.strictObject({ name: z.string(), value: z.string() }),
  z.strictObject({ name: z.string(), valueFrom: z.strictObject({ secretKeyRef: z.strictObject({ name: z.string(), key: z.string() }) }) }),
]);
const amounts = z.strictObject({ cpu: z.string(), memory: z.string().regex(/^\d+Gi$/) });
const container = z.strictObject({
  name: z.string(),
  image: z.string(),
  args: z.array(z.string()),
  env: z.array(variable),
  resources: z.strictObject({ requests: amounts, limits: amounts }),
  securityContext: z.strictObject({
    procMount: z.enum(['Default', 'Unmasked']),
    seccompProfile: z.strictObject({ type: z.enum(['Unconfined', 'RuntimeDefault']) }),
  }),
  volumeMounts: z.array(z.strictObject({ name: z.string(), mountPath: z.string().startsWith('/') })),
});
const deployment = z.strictObject({
  apiVersion: z.literal('apps/v1'),
  kind: z.literal('Deployment'),
  metadata: meta,
  spec: z.strictObject({
    replicas: z.int(),
    selector: z.strictObject({ matchLabels: z.record(z.string(), z.string()) }),
    template: z.strictObject({
      metadata: z.strictObject({ labels: z.record(z.string(), z.string()) }),
      spec: z.strictObject({
        terminationGracePeriodSeconds: z.int(),
        containers: z.tuple([container]),
        hostUsers: z.boolean(),
        volumes: z.array(z.strictObject({ name: z.string(), emptyDir: z.strictObject({ sizeLimit: z.string() }) })),
      }),
    }),
  }),
});
const manifest = z.strictObject({ apiVersion: z.literal('v1'), kind: z.literal('List'), items: z.tuple([secret, deployment]) });

test('the systemd unit joins a service, and signals its main process alone', async () => {
  assert.match(unit, /^ExecStart=\S+\/millrace worker --join \$\{MILLRACE_URL\}$/m);
  assert.match(unit, /^KillMode=mixed$/m);
  if (!hasSystemd) return; // elsewhere the lines above are all that is checked
  await using temp = await makeTempFolder('unit');
  const path = join(temp.path, 'millrace-worker.service');
  // systemd looks for the program, which this machine need not have.
  await writeFile(path, unit.replace(/^ExecStart=\S+/m, 'ExecStart=/bin/true'));
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', path], { encoding: 'utf8' });
  const own = stderr.split('\n').filter((line) => line.includes('millrace-worker.service') && !line.includes('is not executable'));
  assert.deepEqual([status, own], [0, []], stderr);
});

test('the Kubernetes manifest has the fields that the API asks for, and its parts refer to each other', () => {
  const [keys, workers] = manifest.parse(JSON.parse(readFileSync(manifestPath, 'utf8'))).items;
  const { template, selector } = workers.spec;
  const [only] = template.spec.containers;
  assert.deepEqual(selector.matchLabels, template.metadata.labels);
  assert.deepEqual(only.args.slice(0, 3), ['worker', '--join', '$(MILLRACE_URL)']);
  for (const { name } of only.volumeMounts)
    assert.ok(
      template.spec.volumes.some((volume) => volume.name === name),
      name,
    );
  for (const one of only.env)
    if ('valueFrom' in one) {
      const { name, key } = one.valueFrom.secretKeyRef;
      assert.ok(name === keys.metadata.name && key in keys.stringData, one.name);
    }
  assert.ok(template.spec.terminationGracePeriodSeconds >= 20, 'workers need time to hand back what they hold');
});

const serverManifest = z.object({
  items: z.tuple([
    z.object({ stringData: z.object({ 'millrace.json': z.string(), pgpassword: z.string() }) }),
    z.object({ kind: z.literal('Service'), spec: z.object({ selector: z.record(z.string(), z.string()) }) }),
    z.object({
      spec: z.object({
        template: z.object({
          metadata: z.object({ labels: z.record(z.string(), z.string()) }),
          spec: z.object({
            containers: z.tuple([z.object({ args: z.array(z.string()), volumeMounts: z.array(z.object({ name: z.string() })) })]),
            volumes: z.array(z.object({ name: z.string() })),
          }),
        }),
      }),
    }),
  ]),
});

test('the servers of the other manifest have a configuration that is one, with keys of machines, and the service finds them', async () => {
  const text = readFileSync(join(root, 'deploy/kubernetes/millrace-server.json'), 'utf8');
  const [keys, service, servers] = serverManifest.parse(JSON.parse(text)).items;
  await using temp = await makeTempFolder('manifest');
  const path = join(temp.path, 'millrace.json');
  await writeFile(path, keys.stringData['millrace.json']);
  const config = readConfig(path);
  assert.deepEqual([config.http.keys.length, config.http.workerKeys.length, config.workers], [1, 1, 0]);
  assert.match(config.store.address ?? '', /^postgres:/, 'two servers share it');
  const { template } = servers.spec;
  assert.deepEqual(service.spec.selector, template.metadata.labels);
  const [only] = template.spec.containers;
  assert.deepEqual(only.args.slice(0, 3), ['serve', '--config', '/etc/millrace/millrace.json']);
  const volumes = template.spec.volumes.map(({ name }) => name);
  assert.deepEqual(only.volumeMounts.map(({ name }) => name).toSorted(), volumes.toSorted());
});

test('the container image has what sandboxes need, the version of this package, and no root', () => {
  const recipe = readFileSync(join(root, 'deploy/container/Containerfile'), 'utf8');
  const { version } = z.object({ version: z.string() }).parse(JSON.parse(readFileSync(join(root, 'packages/cli/package.json'), 'utf8')));
  assert.match(recipe, new RegExp(`^ARG VERSION=${version}$`, 'm'));
  assert.match(recipe, /apt-get install .*\bbubblewrap bash\b/);
  assert.match(recipe, /^USER 1000:1000$/m);
});
