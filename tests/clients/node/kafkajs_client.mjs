// KafkaJS: BOOTSTRAP TOPIC GROUP COUNT
import kafkajs from "kafkajs";

const [bootstrap, topic, groupId, count] = [...process.argv.slice(2, 5), Number(process.argv[5])];
const numbers = [...Array(count).keys()];
const kafka = new kafkajs.Kafka({ brokers: [bootstrap], logLevel: kafkajs.logLevel.ERROR });

for (const [part, compression] of [kafkajs.CompressionTypes.None, kafkajs.CompressionTypes.GZIP].entries()) {
  const producer = kafka.producer({ idempotent: true });
  await producer.connect();
  for (const n of numbers.filter((n) => n % 2 === part)) {
    await producer.send({ topic, compression, acks: -1, messages: [{ key: `k${n % 10}`, value: `${n}` }] });
    console.log(`produced ${n}`);
  }
  await producer.disconnect();
}

const producer = kafka.producer({ idempotent: true, transactionalId: groupId, maxInFlightRequests: 1 });
await producer.connect();
for (const [prefix, end] of [["bad-", "abort"], ["", "commit"]]) {
  const transaction = await producer.transaction();
  await transaction.send({ topic: `${topic}-tx`, messages: numbers.map((n) => ({ value: `${prefix}${n}` })) });
  await transaction[end]();
}
await producer.disconnect();
for (const n of numbers) console.log(`committed ${n}`);

let read = 0;
for (const wanted of [count / 2, count]) {
  const consumer = kafka.consumer({ groupId });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    consumer
      .run({
        autoCommit: false,
        eachMessage: async ({ partition, message }) => {
          if (read >= wanted) return;
          const next = (BigInt(message.offset) + 1n).toString();
          await consumer.commitOffsets([{ topic, partition, offset: next }]);
          console.log(`consumed ${message.value}`);
          if (++read === wanted) resolve();
        },
      })
      .catch(reject);
  });
  await consumer.disconnect();
}
