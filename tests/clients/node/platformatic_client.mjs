// @platformatic/kafka: BOOTSTRAP TOPIC GROUP COUNT
import { Consumer, MessagesStreamModes, Producer, stringDeserializers, stringSerializers } from "@platformatic/kafka";

// the package calls it; Node.js has it from 22 on
Promise.withResolvers ??= function () {
  let resolve, reject;
  const promise = new Promise((...both) => ([resolve, reject] = both));
  return { promise, resolve, reject };
};

const [bootstrap, topic, groupId, count] = [...process.argv.slice(2, 5), Number(process.argv[5])];
const numbers = [...Array(count).keys()];
const base = { clientId: "platformatic", bootstrapBrokers: [bootstrap] };

const codecs = ["none", "gzip"];
const producer = new Producer({ ...base, serializers: stringSerializers, idempotent: true });
for (const n of numbers) {
  const compression = codecs[n % 2];
  await producer.send({ compression, messages: [{ topic, key: `k${n % 10}`, value: `${n}` }] });
  console.log(`produced ${n}`);
}
await producer.close();

let read = 0;
// the first member is one of the classic protocol, the second of KIP-848's
for (const [wanted, groupProtocol] of [[count / 2, "classic"], [count, "consumer"]]) {
  const consumer = new Consumer({ ...base, groupId, groupProtocol, deserializers: stringDeserializers });
  const stream = await consumer.consume({
    topics: [topic],
    autocommit: false,
    mode: MessagesStreamModes.COMMITTED,
    fallbackMode: "earliest",
    maxWaitTime: 500,
  });
  for await (const message of stream) {
    await message.commit();
    console.log(`consumed ${message.value}`);
    if (++read === wanted) break;
  }
  await consumer.close(true);
}
