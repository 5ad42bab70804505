import { endpoints } from './recording/endpoints.ts';
import type { RecordingRule } from './recording/recording-rule.ts';
import { sight } from './recording/sight.ts';
import { longTraffic, traffic } from './recording/traffic.ts';

export interface RecordingGroup {
  name: string;
  /** Seconds; absent: as Prometheus is set. */
  everySeconds?: number;
  rules: readonly RecordingRule[];
}

/** What is computed, in the order in which one needs the other. */
export const recordingGroups: readonly RecordingGroup[] = [
  { name: 'sidelight-traffic', rules: traffic },
  // A day's rate changes slowly, and costs.
  { name: 'sidelight-traffic-long', everySeconds: 60, rules: longTraffic },
  { name: 'sidelight-endpoints', rules: endpoints },
  { name: 'sidelight-sight', rules: sight },
];
