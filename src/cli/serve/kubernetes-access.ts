import type { AccessSource } from '../../discovery/kubernetes/access.ts';
import { SidelightError } from '../../lib/errors.ts';
import { ipWithPort } from '../../lib/ip.ts';

/** Where Kubernetes puts what a pod has of its service account. */
const serviceAccount = '/var/run/secrets/kubernetes.io/serviceaccount';

/** How the API server is reached. Throws `config_invalid` where there is neither a kubeconfig nor a pod around us. */
export function kubernetesAccess(
  kubeconfig: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): AccessSource {
  if (kubeconfig !== undefined) return { kubeconfig };
  const host = env['KUBERNETES_SERVICE_HOST'];
  const port = env['KUBERNETES_SERVICE_PORT_HTTPS'] ?? env['KUBERNETES_SERVICE_PORT'] ?? '443';
  if (host === undefined)
    throw new SidelightError('config_invalid', {
      path: 'discovery.kubernetes.kubeconfig',
      expected: 'a kubeconfig, because this is no pod (KUBERNETES_SERVICE_HOST is not set)',
    });
  return { serviceAccount, server: `https://${ipWithPort(host, Number(port))}` };
}
