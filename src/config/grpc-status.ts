import { type GrpcStatusName, grpcStatusNames } from '../model/grpc-status.ts';

/** Names and numbers, as a config has them, to numbers. */
export function grpcStatusNumbers(statuses: readonly (GrpcStatusName | number)[]): ReadonlySet<number> {
  return new Set(statuses.map((status) => (typeof status === 'number' ? status : grpcStatusNames.indexOf(status))));
}
