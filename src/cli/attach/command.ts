import type { Command } from 'commander';
import { append, endWith, istioRootNamespace } from '../command-line.ts';
import type { AttachFlags } from './flags.ts';
import { wrongArguments } from './run.ts';

const examples = `
Examples:
  sidelight attach --to sidecar-outbound --namespace shop --selector app=cart | kubectl apply -f -
  sidelight attach --to waypoint --namespace shop --profile full | kubectl apply -f -
  sidelight attach --to envoy --config envoy.yaml > envoy-with-sidelight.yaml

Exit codes: 0 written, 2 wrong arguments or config.`;

/** `attach` of the command line. */
export function addAttach(program: Command, exit: (code: number) => void, run: (flags: AttachFlags) => void): void {
  program
    .command('attach')
    .description('write the config that joins an Envoy to Sidelight: EnvoyFilters, or your own config; docs/attach.md')
    .requiredOption(
      '--to <target>',
      'sidecar-outbound, sidecar-inbound, waypoint, gateway, or envoy; may be repeated',
      append,
    )
    .option('--profile <profile>', 'observe (access log), full (and tags), or tag (tags alone)', 'observe')
    .option('--namespace <name>', "Istio: the EnvoyFilter's namespace, whose proxies are meant")
    .option('--mesh', 'Istio: all namespaces')
    .option('--root-namespace <name>', 'Istio: where --mesh puts it', istioRootNamespace)
    .option('--selector <labels>', 'only pods with all of these: app=cart,tier=web')
    .option('--gateway <name>', 'a Gateway of the Gateway API; of a waypoint: waypoint')
    .option('--port <port>', "only this port: the Service's, on the inbound side the container's")
    .option('--only <host:port>', 'waypoint: only this Service')
    .option(
      '--address <host:port>',
      'where Sidelight is; a cluster of its own, without TLS (default: k8s/base, or this machine)',
    )
    .option('--service <name.namespace[:port]>', "Istio: where Sidelight is, by the mesh's own cluster, with its TLS")
    .option('--uds <path>', 'where Sidelight is: a unix socket')
    .option('--inject', 'full, tag: put a traceparent into requests')
    .option('--sample <percent>', 'tag only this share; also makes the kill switch')
    .option('--message-timeout <time>', 'a request waits no longer for its tag', '200ms')
    .option(
      '--proxies <count>',
      'how many will check its health (default: 1000 with Istio, 1 of the same pod or Envoy)',
    )
    .option('--no-tcp', 'not the connections that are not HTTP')
    .option('--istio <version>', 'such as 1.29')
    .option('--config <file>', 'envoy: the config to attach to, - for standard input')
    .option('--listener <name>', 'envoy: only this listener; may be repeated', append)
    .helpOption('--help', 'print this help')
    .addHelpText('after', examples)
    .exitOverride(endWith(exit, wrongArguments))
    .action(run);
}
