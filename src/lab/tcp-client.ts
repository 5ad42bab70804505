import { once } from 'node:events';
import net from 'node:net';

/** One raw TCP connection. */
export interface TcpClient {
  /** Sends and waits for as many bytes back as went out; throws when the connection breaks first. */
  exchange(text: string): Promise<string>;
  /** True once either side has closed it. */
  closed(): boolean;
  /** Ends it in order and waits until it is gone. */
  close(): Promise<void>;
  /** Breaks it (RST). */
  reset(): void;
}

/** Leaves no listener behind: a connection may be talked over for long. */
async function moreOrClosed(socket: net.Socket): Promise<void> {
  const waiting = new AbortController();
  const { signal } = waiting;
  await Promise.race([once(socket, 'readable', { signal }), once(socket, 'close', { signal })]);
  waiting.abort();
}

export async function tcpClient(port: number): Promise<TcpClient> {
  const socket = net.connect({ host: '127.0.0.1', port });
  socket.on('error', () => {});
  await once(socket, 'connect');
  return {
    async exchange(text) {
      socket.write(text);
      let answer = '';
      while (answer.length < text.length) {
        if (socket.destroyed || socket.readableEnded) throw new Error('the connection broke');
        const chunk = socket.read() as Buffer | null;
        if (chunk) answer += chunk.toString();
        else await moreOrClosed(socket);
      }
      return answer;
    },
    closed: () => socket.destroyed || socket.readableEnded,
    async close() {
      if (socket.closed) return;
      const gone = once(socket, 'close');
      socket.end();
      socket.resume();
      await gone;
    },
    reset: () => void socket.resetAndDestroy(),
  };
}
