import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { SidelightError } from '../../lib/errors.ts';

/** How to reach an API server, and as whom. */
export interface Access {
  server: URL;
  /** PEM of who signed the server's certificate; `undefined`: one that the system knows. */
  ca: string | undefined;
  token: string | undefined;
  /** PEM of a client certificate, in place of a token. */
  client: { cert: string; key: string } | undefined;
  /** The name in the server's certificate; `undefined`: that of its URL. */
  serverName: string | undefined;
}

/** Where the access is told: a kubeconfig file, or what a pod has of its service account. */
export type AccessSource = { kubeconfig: string } | { serviceAccount: string; server: string };

/** Reads it anew each time, because tokens and certificates are rotated. Throws `kubernetes_failed` with the file. */
export async function readAccess(source: AccessSource): Promise<Access> {
  return 'kubeconfig' in source ? fromKubeconfig(source.kubeconfig) : fromServiceAccount(source);
}

async function fromServiceAccount(source: { serviceAccount: string; server: string }): Promise<Access> {
  const server = URL.parse(source.server);
  if (server === null) throw failure('the server of the service account', { value: source.server, expected: 'URL' });
  const [token, ca] = await Promise.all([
    readText(path.join(source.serviceAccount, 'token')),
    readText(path.join(source.serviceAccount, 'ca.crt')),
  ]);
  return { server, ca, token: token.trim(), client: undefined, serverName: undefined };
}

const text = z.string().optional();
const kubeconfig = z.object({
  'current-context': z.string(),
  contexts: z.array(z.object({ name: z.string(), context: z.object({ cluster: z.string(), user: z.string() }) })),
  clusters: z.array(
    z.object({
      name: z.string(),
      cluster: z.object({
        server: z.url({ protocol: /^https$/ }),
        'certificate-authority': text,
        'certificate-authority-data': text,
        'tls-server-name': text,
        'insecure-skip-tls-verify': z.boolean().optional(),
      }),
    }),
  ),
  users: z.array(
    z.object({
      name: z.string(),
      user: z.object({
        token: text,
        tokenFile: text,
        'client-certificate': text,
        'client-certificate-data': text,
        'client-key': text,
        'client-key-data': text,
        exec: z.unknown().optional(),
        'auth-provider': z.unknown().optional(),
      }),
    }),
  ),
});

async function fromKubeconfig(file: string): Promise<Access> {
  const read = kubeconfig.safeParse(parseYaml(file, await readText(file)));
  if (!read.success) throw failure(file, { cause: new Error(z.prettifyError(read.error).replaceAll('\n', ' ')) });
  const config = read.data;
  const context = config.contexts.find(({ name }) => name === config['current-context'])?.context;
  const cluster = config.clusters.find(({ name }) => name === context?.cluster)?.cluster;
  const user = config.users.find(({ name }) => name === context?.user)?.user;
  if (cluster === undefined || user === undefined)
    throw failure(file, { value: config['current-context'], expected: 'a current-context with a cluster and a user' });
  if (user.exec !== undefined || user['auth-provider'] !== undefined)
    throw failure(file, { expected: 'a token, a tokenFile or a client certificate: no program is run for a token' });
  if (cluster['insecure-skip-tls-verify'] === true)
    throw failure(file, { expected: 'no insecure-skip-tls-verify: a token is given to a server that is known alone' });
  const inline = async (data: string | undefined, name: string | undefined) => {
    if (data !== undefined) return Buffer.from(data, 'base64').toString();
    return name === undefined ? undefined : readText(path.resolve(path.dirname(file), name));
  };
  const token = user.tokenFile === undefined ? user.token : await inline(undefined, user.tokenFile);
  const cert = await inline(user['client-certificate-data'], user['client-certificate']);
  const key = await inline(user['client-key-data'], user['client-key']);
  return {
    server: new URL(cluster.server),
    ca: await inline(cluster['certificate-authority-data'], cluster['certificate-authority']),
    token: token?.trim(),
    client: cert === undefined || key === undefined ? undefined : { cert, key },
    serverName: cluster['tls-server-name'],
  };
}

function parseYaml(file: string, content: string): unknown {
  try {
    return parse(content);
  } catch (cause) {
    throw failure(file, { cause });
  }
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw failure(file, { cause });
  }
}

function failure(where: string, details: { value?: unknown; expected?: string; cause?: unknown }): SidelightError {
  return new SidelightError('kubernetes_failed', { path: where, ...details });
}
