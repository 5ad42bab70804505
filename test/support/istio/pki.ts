import { execFileSync } from 'node:child_process';
import path from 'node:path';

/** Names the workload that every proxy of the lab is, as Istio's certificates do. */
const identity = 'URI:spiffe://cluster.local/ns/app/sa/default';

/** Writes `ca.pem` and, signed by it, `leaf.pem` with `leaf.key` into the folder: all that mTLS in the lab needs. */
export function writePki(dir: string, openssl: string): void {
  const run = (...args: string[]) => execFileSync(openssl, args, { cwd: dir, stdio: 'pipe' });
  const key = (name: string) => ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', name];
  const valid = ['-days', '2'];
  run('req', '-x509', ...key('ca.key'), ...valid, '-subj', '/O=lab', '-out', 'ca.pem');
  const usage = ['-addext', `subjectAltName=${identity}`, '-addext', 'basicConstraints=critical,CA:FALSE'];
  const signer = ['-CA', path.join(dir, 'ca.pem'), '-CAkey', path.join(dir, 'ca.key')];
  run('req', '-x509', ...key('leaf.key'), ...signer, ...valid, '-subj', '/O=lab', ...usage, '-out', 'leaf.pem');
}
