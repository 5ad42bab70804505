import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';

/** An empty project folder and a PATH that holds nothing but the commands that a test puts there. Gone after the test. */
export class FakeMachine {
  readonly root = mkdtempSync(join(tmpdir(), 'sidelight-machine-'));
  readonly said: string[] = [];
  readonly say = (line: string): void => void this.said.push(line);
  readonly #bin = join(this.root, 'bin');

  constructor() {
    mkdirSync(this.#bin);
    onTestFinished(() => rmSync(this.root, { recursive: true, force: true }));
  }

  /** The environment of what runs there; shell built-ins work, other commands only as the test gave them. */
  env(more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
    return { PATH: this.#bin, ...more };
  }

  /** Puts a command on PATH: the body of a POSIX shell script. */
  command(name: string, body: string): string {
    return this.script(join('bin', name), body);
  }

  /** Writes an executable shell script below the root and returns its path. */
  script(path: string, body: string): string {
    const file = this.file(path, `#!/bin/sh\n${body}\n`);
    chmodSync(file, 0o755);
    return file;
  }

  /** Writes a file below the root and returns its path. */
  file(path: string, content: string): string {
    const file = join(this.root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    return file;
  }
}

/** A script's body that prints what `envoy --version` of that version prints. */
export function envoyOf(version: string): string {
  return `echo; echo "envoy  version: 9e5580933739775e8bce696a57a2e1bc99368f23/${version}/Clean/RELEASE/BoringSSL"`;
}
