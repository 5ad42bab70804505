import dgram from 'node:dgram';
import { once } from 'node:events';
import net from 'node:net';
import packet from 'dns-packet';

/** What the server says to a question of one type for one name. Any other type of the same name is NODATA. */
export type DnsAnswer =
  | { kind: 'addresses'; addresses: readonly string[]; ttlSeconds: number }
  /** Another subset at each question, one further along the list. */
  | { kind: 'rotating'; addresses: readonly string[]; ttlSeconds: number; size: number }
  | { kind: 'nxdomain' }
  | { kind: 'nodata' }
  | { kind: 'servfail' }
  /** Too long for UDP: that says so and nothing more, TCP gives the whole answer. */
  | { kind: 'long'; addresses: readonly string[]; ttlSeconds: number }
  /** Bytes that are no DNS. */
  | { kind: 'garbage' }
  /** No answer at all. */
  | { kind: 'drop' };

const rcode = { nxdomain: 3, nodata: 0, servfail: 2 } as const;

/** A private DNS server on 127.0.0.1, UDP and TCP. Names that nobody set are NXDOMAIN. */
export class DnsServer {
  readonly #socket = dgram.createSocket('udp4');
  readonly #tcp = net.createServer((client) => this.#serveTcp(client));
  readonly #answers = new Map<string, DnsAnswer>();
  readonly #queries = new Map<string, number>();

  private constructor() {
    this.#socket.on('message', (message, peer) => {
      const reply = this.#reply(message, 'udp');
      if (reply) this.#socket.send(reply, peer.port, peer.address, () => {});
    });
  }

  /** Port 0: one that is free for both. */
  static async start(port = 0): Promise<DnsServer> {
    for (;;) {
      const server = new DnsServer();
      server.#socket.bind(port, '127.0.0.1');
      await once(server.#socket, 'listening');
      try {
        server.#tcp.listen(server.port, '127.0.0.1');
        await once(server.#tcp, 'listening');
        return server;
      } catch (error) {
        server.#socket.close();
        if (port !== 0) throw error;
      }
    }
  }

  get port(): number {
    return this.#socket.address().port;
  }

  /** From now on; `type` is A unless said. */
  set(name: string, answer: DnsAnswer, type: 'A' | 'AAAA' = 'A'): void {
    this.#answers.set(key(name, type), answer);
  }

  /** Questions for a name so far, dropped ones included. */
  queries(name: string, type: 'A' | 'AAAA' = 'A'): number {
    return this.#queries.get(key(name, type)) ?? 0;
  }

  async close(): Promise<void> {
    const closed = [once(this.#socket, 'close'), once(this.#tcp, 'close')];
    this.#socket.close();
    this.#tcp.close();
    await Promise.all(closed);
  }

  /** One question per connection, in one piece, as a resolver sends it after a truncated answer. */
  #serveTcp(client: net.Socket): void {
    client.on('error', () => client.destroy());
    client.once('data', (message) => {
      const reply = this.#reply(message.subarray(2), 'tcp');
      if (reply === undefined) return;
      const size = Buffer.alloc(2);
      size.writeUInt16BE(reply.length);
      client.end(Buffer.concat([size, reply]));
    });
  }

  #reply(message: Buffer, over: 'udp' | 'tcp'): Buffer | undefined {
    const query = packet.decode(message);
    const question = query.questions?.[0];
    if (!question) return undefined;
    const asked = key(question.name, question.type);
    const count = this.#queries.get(asked) ?? 0;
    this.#queries.set(asked, count + 1);
    const answer = this.#answers.get(asked) ?? this.#otherwise(question.name);
    if (answer.kind === 'drop') return undefined;
    // As long as an answer, and with the id that was asked.
    if (answer.kind === 'garbage') return Buffer.concat([message.subarray(0, 2), Buffer.alloc(60, 0xff)]);
    const code = 'addresses' in answer ? 0 : rcode[answer.kind];
    const cut = answer.kind === 'long' && over === 'udp';
    return packet.encode({
      type: 'response',
      id: query.id ?? 0,
      flags: packet.AUTHORITATIVE_ANSWER | code | (cut ? packet.TRUNCATED_RESPONSE : 0),
      questions: [question],
      answers: 'addresses' in answer && !cut ? records(question, answer, count) : [],
    });
  }

  #otherwise(name: string): DnsAnswer {
    const known = this.#answers.has(key(name, 'A')) || this.#answers.has(key(name, 'AAAA'));
    return { kind: known ? 'nodata' : 'nxdomain' };
  }
}

function records(
  question: packet.Question,
  answer: Extract<DnsAnswer, { addresses: readonly string[] }>,
  count: number,
): packet.Answer[] {
  return chosen(answer, count).map((data) => ({
    type: question.type === 'AAAA' ? 'AAAA' : 'A',
    name: question.name,
    ttl: answer.ttlSeconds,
    data,
  }));
}

function chosen(answer: Extract<DnsAnswer, { addresses: readonly string[] }>, count: number): readonly string[] {
  if (answer.kind !== 'rotating') return answer.addresses;
  const { addresses, size } = answer;
  return Array.from(
    { length: Math.min(size, addresses.length) },
    (_, i) => addresses[(count + i) % addresses.length] ?? '',
  );
}

/** c-ares may vary the case of a name. */
function key(name: string, type: string): string {
  return `${name.toLowerCase()} ${type}`;
}
