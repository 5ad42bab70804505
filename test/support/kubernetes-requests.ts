import { once } from 'node:events';
import https from 'node:https';
import { text } from 'node:stream/consumers';

/** Any object of the Kubernetes API, as far as its address needs it. */
export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; [field: string]: unknown };
  [field: string]: unknown;
}

export interface KubernetesAnswer<T> {
  status: number;
  body: T;
}

export interface KubernetesRequests {
  /** Any request; a path below the server's URL. The answer is told whatever its status. */
  ask<T = unknown>(method: string, path: string, body?: unknown, type?: string): Promise<KubernetesAnswer<T>>;
  /** Creates an object or makes it as given (server-side apply), and returns it; throws what the server said against it. */
  apply<T extends KubernetesObject>(object: T, options?: { dryRun?: boolean }): Promise<T>;
  /** One that is not there is none to delete. Throws what the server said against it. */
  remove(object: KubernetesObject): Promise<void>;
}

interface Resource {
  name: string;
  kind: string;
  namespaced: boolean;
}

/** Requests to an API server as the holder of a token. `ca`: the PEM of who signed the server's certificate. */
export function kubernetesRequests(url: string, ca: string, token: string): KubernetesRequests {
  const resources = new Map<string, Resource[]>();
  const ask: KubernetesRequests['ask'] = async (method, path, body, type) => {
    const request = https.request(new URL(path, url), {
      method,
      ca,
      headers: { authorization: `Bearer ${token}`, 'content-type': type ?? 'application/json' },
    });
    request.end(body === undefined ? undefined : JSON.stringify(body));
    const [response] = await once(request, 'response');
    const said = await text(response);
    return { status: response.statusCode, body: isJson(response) ? JSON.parse(said) : said };
  };
  const pathOf = async ({ apiVersion, kind, metadata: { name, namespace } }: KubernetesObject) => {
    const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    if (!resources.has(group))
      resources.set(group, (await ask<{ resources?: Resource[] }>('GET', group)).body.resources ?? []);
    const resource = resources.get(group)?.find((each) => each.kind === kind && !each.name.includes('/'));
    if (resource === undefined) throw new Error(`the API server knows no ${kind} of ${apiVersion}`);
    const inNamespace = resource.namespaced ? `/namespaces/${namespace ?? 'default'}` : '';
    return `${group}${inNamespace}/${resource.name}/${name}`;
  };
  return {
    ask,
    async apply(object, { dryRun = false } = {}) {
      const query = `?fieldManager=test&force=true&fieldValidation=Strict${dryRun ? '&dryRun=All' : ''}`;
      const answer = await ask('PATCH', `${await pathOf(object)}${query}`, object, 'application/apply-patch+yaml');
      if (answer.status > 201) throw refusal(`apply ${object.kind} ${object.metadata.name}`, answer);
      return answer.body as typeof object;
    },
    async remove(object) {
      const answer = await ask('DELETE', await pathOf(object));
      if (answer.status > 202 && answer.status !== 404)
        throw refusal(`delete ${object.kind} ${object.metadata.name}`, answer);
    },
  };
}

function isJson({ headers }: { headers: Record<string, string> }): boolean {
  return headers['content-type']?.startsWith('application/json') === true;
}

function refusal(what: string, { status, body }: KubernetesAnswer<unknown>): Error {
  return new Error(`${what}: ${status} ${JSON.stringify(body)}`);
}
