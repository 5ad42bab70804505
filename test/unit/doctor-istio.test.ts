import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runAttach } from '../support/attach.ts';
import { hidden, objectsOf, onlyItsNamespace, shown } from '../support/istio/hidden-service.ts';
import { doctorReport, runDoctor, worries } from '../support/run-doctor.ts';

const folder = (name: string) => fileURLToPath(new URL(`../fixtures/istio/${name}/`, import.meta.url));
const filesOf = (name: string) => readdirSync(folder(name)).map((file) => `${folder(name)}${file}`);

describe('EnvoyFilters that Istio accepts and that do not land', () => {
  it.each(filesOf('broken'))('%s', async (file) => {
    const expected = /^# finds: (.+)\n/.exec(readFileSync(file, 'utf8'))?.[1];
    expect(worries(await doctorReport([file])).join(', ')).toBe(expected);
  });
});

describe('EnvoyFilters that land', () => {
  it.each(filesOf('working'))('%s', async (file) => {
    expect(worries(await doctorReport([file]))).toEqual([]);
  });
});

describe('what attach writes', () => {
  const golden = fileURLToPath(new URL('../golden/attach/', import.meta.url));
  it.each(readdirSync(golden))('%s', async (file) => {
    const report = await doctorReport([`${golden}${file}`]);
    expect(worries(report)).toEqual([]);
    expect(report.isWhole).toBe(true);
  });
});

const filter = (spec: string, name = 'a') =>
  `apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nmetadata: {name: ${name}, namespace: shop}\nspec:\n${spec}\n`;

const yaml = (text: string) => runDoctor(['-'], { json: true }, text).then(({ out }) => JSON.parse(out));

describe('a Service of Sidelight', () => {
  const found = async (given: Parameters<typeof objectsOf>[0]) => worries(await yaml(objectsOf(given)));
  it.each(hidden)('is hidden by $name', async (given) => expect(await found(given)).toEqual(['service-hidden']));
  it.each(shown)('is not hidden by $name', async (given) => expect(await found(given)).toEqual([]));

  it('is hidden from the pods that a Sidecar chooses, among others', async () => {
    const { findings } = await yaml(objectsOf({ name: '', sidecars: [onlyItsNamespace('others')] }));
    expect(findings.map(({ evidence }: { evidence: string }) => evidence)).toEqual([
      'sidelight.sidelight.svc.cluster.local is not let in by -: document 4, Sidecar app/others, egress hosts: ./*',
    ]);
  });

  it('is looked for in every namespace where the EnvoyFilter is for all', async () => {
    const ofMesh = objectsOf({ name: '', scope: '--mesh', sidecars: [onlyItsNamespace('others')] });
    expect(worries(await yaml(ofMesh))).toEqual(['service-hidden']);
  });
});

it('another root namespace is as good, if it is told', async () => {
  const flags = ['--to', 'waypoint', '--mesh', '--root-namespace', 'mesh'];
  const found = async (given: object) =>
    worries(JSON.parse((await runDoctor(['-'], { ...given, json: true }, runAttach(...flags))).out));
  expect(await found({})).toEqual(['waypoint-class-namespace']);
  expect(await found({ rootNamespace: 'mesh' })).toEqual([]);
});

it('a Gateway of another class is no waypoint', async () => {
  const patch =
    'targetRefs: [{kind: Gateway, name: edge}], configPatches: [{applyTo: CLUSTER, match: {context: ANY}, patch: {operation: MERGE, value: {}}}]';
  const gateway = 'kind: Gateway\nmetadata: {name: edge}\nspec: {gatewayClassName: istio}\n';
  expect(worries(await yaml(filter(`  {${patch}}`)))).toEqual(['waypoint-cluster-merge']);
  expect(worries(await yaml(`${filter(`  {${patch}}`)}---\n${gateway}`))).toEqual([]);
});

it('an annotation of another EnvoyFilter of the namespace counts', async () => {
  const working = readFileSync(`${folder('working')}waypoint.yaml`, 'utf8');
  const broken = readFileSync(`${folder('broken')}waypoint-not-referenced.yaml`, 'utf8');
  expect(worries(await yaml(`${working}---\n${broken}`))).toEqual([]);
});

const log = (name: string) =>
  `{typed_config: {"@type": a.HttpGrpcAccessLogConfig, common_config: {log_name: ${name}, grpc_service: {envoy_grpc: {cluster_name: lab}}}}}`;
const patches = (requests: string, attempts: string) =>
  filter(`  configPatches:
    - {applyTo: NETWORK_FILTER, match: {context: SIDECAR_OUTBOUND}, patch: {operation: MERGE, value: {typed_config: {"@type": a.HttpConnectionManager, access_log: [${requests}]}}}}
    - {applyTo: HTTP_FILTER, match: {context: SIDECAR_OUTBOUND}, patch: {operation: MERGE, value: {typed_config: {"@type": a.Router, upstream_log: [${attempts}]}}}}`);

it('the parts that are spread over patches are looked at together', async () => {
  const { findings } = await yaml(patches(log('sidelight.observe.2'), log('sidelight.full.2')));
  expect(findings.map(({ id, where }: { id: string; where: string[] }) => [id, ...where])).toEqual([
    [
      'key-not-logged',
      'patches with context SIDECAR_OUTBOUND, access_log',
      "patches with context SIDECAR_OUTBOUND, the router's upstream_log",
    ],
    ['loggers-differ', "patches with context SIDECAR_OUTBOUND, the router's upstream_log"],
    ['key-not-early', 'patches with context SIDECAR_OUTBOUND'],
    [
      'tags-missing',
      'patches with context SIDECAR_OUTBOUND, access_log',
      "patches with context SIDECAR_OUTBOUND, the router's upstream_log",
    ],
    ['no-periodic-flush', 'patches with context SIDECAR_OUTBOUND, router'],
  ]);
});

it('what an EnvoyFilter is looked at with is told apart from what is left aside', async () => {
  const { out } = await runDoctor(['-'], {}, `${objectsOf({ name: '' })}---\nkind: Deployment\n`);
  expect(out).toContain('-: looked at 2 EnvoyFilter, with 1 Service; left aside 1 Deployment');
});

it('what is no EnvoyFilter is left aside with a word; what cannot be read is not fine', async () => {
  const { out, code } = await runDoctor(['-'], {}, 'kind: Service\nmetadata: {name: web}\n');
  expect(code).toBe(0);
  expect(out).toContain('-: looked at no EnvoyFilter; left aside 1 Service');
  const broken = await runDoctor(['-'], {}, 'kind: [\n');
  expect(broken.code).toBe(3);
  expect(broken.out).toContain('not looked at: this file (-: document 1: YAML');
  expect((await runDoctor(['-'], {}, 'hello')).code).toBe(3);
});

it('EnvoyFilters that have nothing to do with Sidelight are not judged beside those that have', async () => {
  const ours = readFileSync('test/golden/attach/waypoint.yaml', 'utf8');
  const theirs =
    'configPatches: [{applyTo: HTTP_FILTER, match: {context: GATEWAY}, patch: {operation: ADD, value: {name: mine}}}]';
  expect(worries(await yaml(`${ours}---\n${filter(`  {${theirs}}`)}`))).toEqual([]);
});
