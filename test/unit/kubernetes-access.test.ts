import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { kubernetesAccess } from '../../src/cli/serve/kubernetes-access.ts';
import { readAccess } from '../../src/discovery/kubernetes/access.ts';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { tempDir } from '../../src/lab/temp-dir.ts';

/* How an API server is reached, and as whom. */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

function kubeconfig(user: object, cluster: object = {}, more: object = {}): string {
  const file = path.join(cleanup.use(tempDir()).path, 'config');
  const config = {
    'current-context': 'mine',
    contexts: [{ name: 'mine', context: { cluster: 'near', user: 'me' } }],
    clusters: [{ name: 'near', cluster: { server: 'https://127.0.0.1:6443', ...cluster } }],
    users: [
      { name: 'other', user: { exec: { command: 'never-run' } } },
      { name: 'me', user },
    ],
    ...more,
  };
  writeFileSync(file, stringify(config));
  return file;
}

const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('in a pod', () => {
  const env = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' };

  test('it is the service account, at the address that the environment says, also of version 6', () => {
    const serviceAccount = '/var/run/secrets/kubernetes.io/serviceaccount';
    expect(kubernetesAccess(undefined, env)).toEqual({ serviceAccount, server: 'https://10.0.0.1:443' });
    expect(kubernetesAccess(undefined, { KUBERNETES_SERVICE_HOST: 'fd00::1' })).toMatchObject({
      server: 'https://[fd00::1]:443',
    });
    expect(kubernetesAccess('/my/config', env)).toEqual({ kubeconfig: '/my/config' });
  });

  test('the token and the certificate are those of now', async () => {
    const serviceAccount = cleanup.use(tempDir()).path;
    mkdirSync(serviceAccount, { recursive: true });
    writeFileSync(path.join(serviceAccount, 'ca.crt'), 'CA');
    for (const token of ['first', 'second']) {
      writeFileSync(path.join(serviceAccount, 'token'), `${token}\n`);
      expect(await readAccess({ serviceAccount, server: 'https://10.0.0.1:443' })).toMatchObject({ token, ca: 'CA' });
    }
  });
});

test('outside a pod a kubeconfig is needed, and the error says so', () => {
  expect(() => kubernetesAccess(undefined, {})).toThrow('discovery.kubernetes.kubeconfig: expected a kubeconfig');
});

describe('a kubeconfig', () => {
  test('gives a token, or a client certificate, and who signed the server', async () => {
    const withToken = kubeconfig({ token: 'secret' }, { 'certificate-authority-data': base64('CA') });
    expect(await readAccess({ kubeconfig: withToken })).toMatchObject({ token: 'secret', ca: 'CA', client: undefined });
    const withCertificate = kubeconfig({
      'client-certificate-data': base64('CERT'),
      'client-key-data': base64('KEY'),
    });
    expect(await readAccess({ kubeconfig: withCertificate })).toMatchObject({
      token: undefined,
      client: { cert: 'CERT', key: 'KEY' },
    });
  });

  test('names files from where it is', async () => {
    const file = kubeconfig({ tokenFile: 'token' }, { 'certificate-authority': 'ca.crt' });
    writeFileSync(path.join(path.dirname(file), 'token'), 'secret\n');
    writeFileSync(path.join(path.dirname(file), 'ca.crt'), 'CA');
    expect(await readAccess({ kubeconfig: file })).toMatchObject({ token: 'secret', ca: 'CA' });
  });

  test.each<[string, () => string, string]>([
    ['is not there', () => '/nowhere/config', 'no such file'],
    [
      'has no current context',
      () => kubeconfig({}, {}, { 'current-context': 'x' }),
      'a current-context with a cluster',
    ],
    ['runs a program', () => kubeconfig({ exec: { command: 'x' } }), 'no program is run for a token'],
    [
      'does not verify the server',
      () => kubeconfig({}, { 'insecure-skip-tls-verify': true }),
      'a server that is known',
    ],
    ['is without TLS', () => kubeconfig({}, { server: 'http://127.0.0.1:80' }), 'clusters[0].cluster.server'],
  ])('that %s is refused, with its path', async (_, file, words) => {
    const kubeconfigFile = file();
    const refused = readAccess({ kubeconfig: kubeconfigFile });
    await expect(refused).rejects.toThrow(words);
    await expect(refused).rejects.toMatchObject({
      code: 'kubernetes_failed',
      message: expect.stringContaining(kubeconfigFile),
    });
  });

  test('never shows its token in an error', async () => {
    const file = kubeconfig({ token: 'secret', tokenFile: 7 });
    await expect(readAccess({ kubeconfig: file })).rejects.toThrow(/^(?!.*secret)/s);
  });
});
