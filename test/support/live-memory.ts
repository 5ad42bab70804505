interface Target {
  webSocketDebuggerUrl: string;
}

/**
 * What a process of Node holds after a garbage collection, MiB: its heap and the buffers outside it. It must have been
 * started with `--inspect=127.0.0.1:PORT`. Its resident memory tells of what it once needed, too, and grows for minutes.
 */
export async function liveMiB(inspectPort: number): Promise<number> {
  const [target] = (await (await fetch(`http://127.0.0.1:${inspectPort}/json/list`)).json()) as [Target];
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  socket.addEventListener('error', () => reject(new Error('the inspector went away')));
  socket.addEventListener('open', () => {
    const expression = '(({ heapUsed, external }) => heapUsed + external)(process.memoryUsage())';
    socket.send(JSON.stringify({ id: 1, method: 'HeapProfiler.collectGarbage' }));
    socket.send(JSON.stringify({ id: 2, method: 'Runtime.evaluate', params: { expression } }));
  });
  socket.addEventListener('message', ({ data }) => {
    const answer = JSON.parse(String(data)) as { id?: number; result?: { result: { value: number } } };
    if (answer.id === 2) resolve((answer.result?.result.value ?? Number.NaN) / (1 << 20));
  });
  return promise.finally(() => socket.close());
}
