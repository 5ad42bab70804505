import { expect, it } from 'vitest';
import { findBackends } from '../../src/cli/demo/backends.ts';
import { demoRules } from '../../src/cli/demo/rules.ts';
import { alertName } from '../../src/cli/demo/scenarios/alert.ts';

it('the alert that the demo waits for is among its rules, in the demo’s time', () => {
  const { 'alerts.yaml': alerts = '', 'rules.yaml': rules = '' } = demoRules('http://127.0.0.1:1');
  expect(alerts).toContain(`alert: ${alertName}\n`);
  expect(alerts).toContain('http://127.0.0.1:1/search?service=');
  expect(rules).toContain('[30s]');
  expect(rules).not.toContain('[1h]');
});

it('a backend is what its variable names', () => {
  const said: string[] = [];
  const found = findBackends({ PATH: '', JAEGER_BIN: process.execPath }, (line) => said.push(line));
  expect(found).toEqual({ jaeger: process.execPath });
  expect(said.map((line) => line.split(':')[0])).toEqual(['No prometheus', 'No alertmanager']);
});

it('a variable that names no file is told of, and is not taken for a missing program', () => {
  expect(() => findBackends({ PATH: '', JAEGER_BIN: '/nowhere/jaeger' }, () => undefined)).toThrow(
    'JAEGER_BIN names /nowhere/jaeger, which is not there',
  );
});
