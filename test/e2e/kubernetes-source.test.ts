import { createSign } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it, type TestContext } from 'vitest';
import type { DiscoveryOptions } from '../../src/discovery/discovery.ts';
import type { SavedSubject } from '../../src/discovery/saved.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';
import { discovering, noRule } from '../support/discovery.ts';
import type { KubernetesApi } from '../support/kubernetes-api.ts';
import { startKubernetesApi } from '../support/kubernetes-api.ts';
import { roleOf, type SlicePod, sliceOf } from '../support/slices.ts';
import { until } from '../support/until.ts';

/* The EndpointSlice source against a real API server. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

const namespace = 'shop';
const cluster = 'outbound|80||cart.shop.svc.cluster.local';
const first = { ip: '10.0.0.1', uid: 'pod-a' };
const second = { ip: '10.0.0.2', uid: 'pod-b' };

/** An API server with namespace `shop`, and what reads it as a service account that may list and watch slices there. */
async function setUp(context: TestContext, verbs = ['list', 'watch']) {
  const api = await startKubernetesApi(context, cleanup);
  await api.admin.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  const setPods = async (...pods: SlicePod[]) =>
    void (await api.admin.apply(sliceOf({ namespace, service: 'cart' }, pods)));
  const grant = async (granted: string[]) => {
    for (const object of roleOf({ namespace, account: 'reader', resource: 'endpointslices' }, granted))
      await api.admin.apply(object);
  };
  await grant(verbs);
  const token = await api.serviceAccountToken(namespace, 'reader');
  // RBAC is answered from a cache, which must have heard of the role.
  const slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
  const expected = verbs.includes('list') ? 200 : 403;
  await until('the role', async () => (await api.as(token).ask('GET', slices)).status === expected);
  return { api, token, setPods, grant };
}

function read(access: { kubeconfig: string }, given: Partial<DiscoveryOptions> = {}, watchMs = 2000) {
  const found = discovering(cleanup, {
    kubernetes: { access, namespaces: undefined, watchMs, timeoutMs: 1000, staleAfterMs: 4000 },
    ...given,
  });
  const view = (name = cluster) => found.discovery.snapshot().cluster(name);
  const isStale = () => Date.now() - (view()?.lastAnswerMs ?? 0) > 4000;
  const listed = () => [...(view()?.listed.keys() ?? [])].toSorted();
  found.discovery.watch(cluster);
  return { ...found, view, listed, isStale };
}

async function connected(context: TestContext) {
  const ground = await setUp(context);
  await ground.setPods(first, second);
  const kubeconfig = ground.api.kubeconfig(ground.token);
  const found = read({ kubeconfig });
  expect(found.view()).toMatchObject({ source: 'kubernetes', subject: 'shop/cart', firstAnswerMs: undefined });
  await until('the slices', () => found.listed().length === 2);
  return { ...ground, ...found, kubeconfig };
}

/** A token as the server itself would sign it, that it takes for so many seconds: it allows a minute for clocks. */
async function shortToken(api: KubernetesApi, long: string, seconds: number): Promise<string> {
  const [header, claims = ''] = long.split('.');
  const body = JSON.parse(Buffer.from(claims, 'base64url').toString());
  const nowSeconds = Math.floor(Date.now() / 1000);
  const signed = `${header}.${Buffer.from(JSON.stringify({ ...body, iat: nowSeconds - 600, nbf: nowSeconds - 600, exp: nowSeconds - 60 + seconds })).toString('base64url')}`;
  return `${signed}.${createSign('RSA-SHA256').update(signed).sign(api.tokenKey, 'base64url')}`;
}

it('tells what comes, ends and leaves, and that it lives though nothing happens; list and watch are enough', async (context) => {
  const { setPods, view, listed, changes, errors } = await connected(context);
  const beganMs = view()?.lastAnswerMs ?? 0;
  await until('a proof without an event', () => (view()?.lastAnswerMs ?? 0) > beganMs + 3000);

  await setPods(first, { ...second, terminating: true });
  await until('the end to be told', () => view()?.terminating?.has(second.ip) === true);
  expect([listed(), [...(view()?.left.keys() ?? [])]]).toEqual([[first.ip], [second.ip]]);
  await setPods(first);
  await until('it to be gone', () => view()?.terminating?.get(second.ip)?.goneMs !== undefined);
  await setPods(first, { ip: second.ip, uid: 'pod-c' });
  await until('its address to have passed on', () => view()?.earlier?.has(second.ip) === true);
  expect(listed()).toEqual([first.ip, second.ip]);
  await setPods({ ip: first.ip, uid: 'pod-d' }, { ip: second.ip, uid: 'pod-c' });
  await until('the other address to have passed on', () => view()?.earlier?.has(first.ip) === true);
  expect(changes.map(({ source, added, removed }) => [source, added, removed])).toEqual([
    ['kubernetes', [], [second.ip]],
    ['kubernetes', [second.ip], []],
    ['kubernetes', [first.ip], [first.ip]],
  ]);
  expect(errors).toEqual([]);
});

it('a service without a slice is left to a lesser source, until it has one; others of its namespace do not disturb', async (context) => {
  const { discovery, view, api } = await connected(context);
  const basket = 'outbound|80||basket.shop.svc.cluster.local';
  discovery.watch(basket);
  await until('the answer', () => view(basket) === undefined);
  expect(view()?.listed.size).toBe(2);
  await api.admin.apply(sliceOf({ namespace, service: 'basket' }, [{ ip: '10.0.0.9', uid: 'pod-x' }]));
  await until('its slice', () => view(basket)?.listed.has('10.0.0.9') === true);
  const slices = [
    sliceOf({ namespace, service: 'cart', name: 'cart-2' }, [{ ip: '10.0.0.3', uid: 'pod-e' }]),
    sliceOf({ namespace, service: 'other' }, [{ ip: '10.0.0.4', uid: 'pod-f' }]),
  ];
  for (const slice of slices) await api.admin.apply(slice);
  await until('a second slice', () => view()?.listed.size === 3);
  for (const slice of slices) await api.admin.remove(slice);
  await until('a second slice to be gone', () => view()?.left.has('10.0.0.3') === true);
  expect(discovery.snapshot().clusters()).toHaveLength(2);
});

it('while the API server is away the view grows stale and says why; what happened meanwhile is found, and with it an address that passed on', async (context) => {
  const { api, setPods, view, listed, isStale, kubeconfig } = await connected(context);
  await api.stop();
  const stoppedMs = Date.now();
  await until('the failure', () => view()?.lastError?.includes('ECONNREFUSED') === true);
  await until('the view to be stale', isStale);
  expect(listed()).toEqual([first.ip, second.ip]);
  // It must not be back before the change.
  renameSync(kubeconfig, `${kubeconfig}.away`);
  await api.start();
  await setPods({ ip: first.ip, uid: 'pod-new' });
  renameSync(`${kubeconfig}.away`, kubeconfig);
  await until('what left', () => view()?.left.has(second.ip) === true, 30_000);
  expect([listed(), isStale(), view()?.lastError]).toEqual([[first.ip], false, undefined]);
  const [owner] = view()?.earlier?.get(first.ip) ?? [];
  // It may have passed on at any moment since the server was last heard.
  expect(owner?.nextFromMs).toBeLessThanOrEqual(stoppedMs);
  expect(owner?.nextByMs).toBeGreaterThan(stoppedMs + 4000);
});

it('a version that is forgotten is no gap: all is listed anew', async (context) => {
  const { api, setPods, view, listed, isStale } = await connected(context);
  const asked = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?watch=1&timeoutSeconds=1&resourceVersion=`;
  const { body } = await api.admin.ask<{ metadata: { resourceVersion: string } }>('GET', asked.split('?', 1)[0] ?? '');
  await setPods(first);
  await until('what left', () => view()?.left.has(second.ip) === true);
  await api.stop();
  await api.compact();
  await api.start();
  // The source was told nothing newer than this: its watch cannot go on from there.
  const refusal = await api.admin.ask('GET', `${asked}${body.metadata.resourceVersion}`);
  expect(JSON.stringify(refusal.body)).toMatch(/too old resource version/);
  await setPods(first, { ip: '10.0.0.5', uid: 'pod-z' });
  await until('what came after it', () => listed().includes('10.0.0.5') && !isStale(), 30_000);
  expect([listed(), view()?.lastError]).toEqual([[first.ip, '10.0.0.5'], undefined]);
});

it('a token that is over is told with the server’s words; a new one in its place is taken up', async (context) => {
  const { api, token, setPods } = await setUp(context);
  await setPods(first);
  const file = path.join(cleanup.use(tempDir()).path, 'token');
  writeFileSync(file, await shortToken(api, token, 4));
  const kubeconfig = path.join(path.dirname(file), 'kubeconfig.yaml');
  writeFileSync(kubeconfig, readFileSync(api.kubeconfig(''), 'utf8').replace('"token":""', '"tokenFile":"token"'));
  const { view, isStale, errors } = read({ kubeconfig });
  await until('the slices', () => view()?.listed.size === 1);
  await until('the refusal', () => view()?.lastError?.includes('401 Unauthorized') === true, 30_000);
  await until('the view to be stale', isStale);
  expect(errors.at(-1)).toMatchObject({ code: 'kubernetes_failed' });
  writeFileSync(file, token);
  await until('the view to be healed', () => !isStale() && view()?.lastError === undefined, 30_000);
});

const verbs = ['list', 'watch'];

it('each of the two verbs is needed: without it nothing is judged, and the missing one is named; given, it works', async (context) => {
  const { api, setPods, token, grant } = await setUp(context);
  await setPods(first);
  const kubeconfig = api.kubeconfig(token);
  for (const missing of verbs) {
    await grant(verbs.filter((verb) => verb !== missing));
    await sleep(1000);
    const { discovery, view, isStale } = read({ kubeconfig });
    const words = `cannot ${missing} resource "endpointslices" in API group "discovery.k8s.io" in the namespace "shop"`;
    await until(`a word on ${missing}`, () => view()?.lastError?.includes(words) === true);
    await until('the view to judge nothing', isStale);
    await grant(verbs);
    await until('it to work', () => view()?.listed.size === 1 && !isStale() && view()?.lastError === undefined, 30_000);
    expect(view()?.left.size).toBe(0);
    discovery.stop();
  }
});

it('goes on after a restart where it was: an address that passed on meanwhile is known to have', async (context) => {
  const { discovery, api, setPods, token } = await connected(context);
  discovery.stop();
  const saved = JSON.parse(JSON.stringify(discovery.state())) as SavedSubject[];
  expect(saved).toMatchObject([{ source: 'kubernetes', namespace, service: 'cart' }]);
  await setPods({ ip: first.ip, uid: 'pod-new' }, second);
  const restartedMs = Date.now();
  const next = read({ kubeconfig: api.kubeconfig(token) }, { restored: saved });
  expect(next.listed()).toEqual([first.ip, second.ip]);
  await until('the address to have passed on', () => next.view()?.earlier?.has(first.ip) === true);
  const [owner] = next.view()?.earlier?.get(first.ip) ?? [];
  expect(owner?.nextFromMs).toBeLessThan(restartedMs);
  expect(owner?.leftAtMs).toBeGreaterThanOrEqual(restartedMs);
  expect([next.view()?.earlier?.size, next.view()?.listed.size]).toEqual([1, 2]);
});

it('names a service of its own for a cluster, and asks for no namespace but those allowed', async (context) => {
  const { api, setPods, token } = await setUp(context);
  await setPods(first);
  const kubeconfig = api.kubeconfig(token);
  const rule = (name: string) => ({ ...noRule, service: name === 'plain' ? 'shop/cart' : undefined });
  const { discovery, view } = read({ kubeconfig }, { rule });
  discovery.watch('plain');
  await until('the slices', () => view('plain')?.listed.size === 1);
  const elsewhere = read(
    { kubeconfig },
    {
      kubernetes: { access: { kubeconfig }, namespaces: ['other'], watchMs: 2000, timeoutMs: 1000, staleAfterMs: 4000 },
    },
  );
  await sleep(300);
  expect([elsewhere.view(), elsewhere.errors]).toEqual([undefined, []]);
});
