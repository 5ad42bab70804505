import {
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { wireServices } from '../decode/wire.ts';

interface Asked {
  service?: string;
}
interface Answer {
  status: 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN';
}
type WatchCall = ServerWritableStream<Asked, Answer>;

/** What a health check may ask for; the empty name is the whole server. */
const services: readonly string[] = [
  '',
  'envoy.service.accesslog.v3.AccessLogService',
  'envoy.service.ext_proc.v3.ExternalProcessor',
];

export const healthDefinition = wireServices.health;

/** `grpc.health.v1.Health`, one state for all services. Envoy's active health check asks it; it begins as not serving. */
export class HealthService {
  #serving = false;
  readonly #watches = new Set<WatchCall>();

  get implementation(): UntypedServiceImplementation {
    return {
      Check: (call: ServerUnaryCall<Asked, Answer>, respond: sendUnaryData<Answer>) => this.#check(call, respond),
      Watch: (call: WatchCall) => this.#watch(call),
    };
  }

  /** Tells every watcher of a change. */
  setServing(serving: boolean): void {
    if (serving === this.#serving) return;
    this.#serving = serving;
    for (const call of this.#watches) call.write(this.#answer());
  }

  /** Ends the watches, which would hold up a shutdown. */
  endWatches(): void {
    for (const call of this.#watches) call.end();
  }

  #check({ request }: ServerUnaryCall<Asked, Answer>, respond: sendUnaryData<Answer>): void {
    if (services.includes(request.service ?? '')) respond(null, this.#answer());
    else respond({ code: status.NOT_FOUND, details: 'no such service here' });
  }

  #watch(call: WatchCall): void {
    call.on('error', () => undefined);
    if (!services.includes(call.request.service ?? '')) {
      // The protocol wants such a watch to stay open: the service may come. Here none does.
      call.write({ status: 'SERVICE_UNKNOWN' });
      call.end();
      return;
    }
    this.#watches.add(call);
    call.once('close', () => this.#watches.delete(call));
    call.write(this.#answer());
  }

  #answer(): Answer {
    return { status: this.#serving ? 'SERVING' : 'NOT_SERVING' };
  }
}
