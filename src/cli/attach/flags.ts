/** The command line of `attach`, as typed. Absent: not given. */
export interface AttachFlags {
  to: readonly string[];
  profile: string;
  inject?: true;
  sample?: string;
  messageTimeout: string;
  proxies?: string;
  service?: string;
  address?: string;
  uds?: string;
  namespace?: string;
  mesh?: true;
  rootNamespace: string;
  selector?: string;
  gateway?: string;
  port?: string;
  only?: string;
  istio?: string;
  /** `--no-tcp`. */
  tcp: boolean;
  config?: string;
  listener?: readonly string[];
}

/** A flag of which the target knows nothing; by the name of its field. */
export const flagNames = {
  namespace: '--namespace',
  mesh: '--mesh',
  selector: '--selector',
  gateway: '--gateway',
  port: '--port',
  only: '--only',
  service: '--service',
  istio: '--istio',
  config: '--config',
  listener: '--listener',
} as const satisfies Partial<Record<keyof AttachFlags, string>>;
export type TargetFlag = keyof typeof flagNames;
