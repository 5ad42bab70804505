import type { Exchange } from '../model/exchange.ts';

/**
 * What became something else than HTTP (a WebSocket, CONNECT) and was ended by one of its sides: no failure, and no
 * abort. Over HTTP/1.1 closing is the only way to end it; Envoy 1.40 says DC or UC, in order or not.
 * test/e2e/flags.test.ts. What Envoy itself cut (SI, DT) or HTTP/2 reset (UR, DR) has other flags.
 */
export function isEndedTunnel({ code, method, delivered, flags }: Exchange): boolean {
  const isTunnel = code === 101 || (method === 'CONNECT' && code !== undefined && code >= 200 && code < 300);
  return isTunnel && delivered !== undefined && flags.every((flag) => flag === 'DC' || flag === 'UC');
}
