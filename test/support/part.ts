import { existsSync } from 'node:fs';
import type { TestContext } from 'vitest';
import { findOnPath } from '../../setup/command.mjs';

/** Programs that some tests drive and that `npm install` does not bring: the variable that names each, its name on PATH. */
const commands = {
  JAEGER_BIN: 'jaeger',
  PROMTOOL: 'promtool',
  PROMETHEUS_BIN: 'prometheus',
  ALERTMANAGER_BIN: 'prometheus-alertmanager',
  CHROMIUM_BIN: 'chromium',
  PEER_BIN: 'peer',
  EFCHECK: 'efcheck',
  OPENSSL: 'openssl',
  // Envoy 1.36, which can have profile `tag` alone.
  OLD_ENVOY_BIN: 'envoy-1.36',
  // Istio's CRDs in one file, as its API module has them.
  ISTIO_CRDS: 'customresourcedefinitions.gen.yaml',
  ETCD_BIN: 'etcd',
  KUBE_APISERVER_BIN: 'kube-apiserver',
  KUBECTL: 'kubectl',
  KUBERNETES_VALIDATE: 'kubernetes-validate',
} as const;
export type Part = keyof typeof commands;

/**
 * The program's path: what the variable names, else the command on PATH; absent where there is neither.
 * Throws when the variable names no file, because a mistyped path must not skip a test.
 */
export function part(name: Part, env: NodeJS.ProcessEnv = process.env): string | undefined {
  const named = env[name];
  if (named === undefined || named === '') return findOnPath(commands[name], env);
  if (!existsSync(named)) throw new Error(`${name} names ${named}, which is not there`);
  return named;
}

/** The program's path; where it is missing the test is skipped, and the reason is shown at the end of the run. */
export function needPart(
  { skip }: Pick<TestContext, 'skip'>,
  name: Part,
  env: NodeJS.ProcessEnv = process.env,
): string {
  return part(name, env) ?? skip(`${name} is not set and there is no ${commands[name]} on PATH`);
}
