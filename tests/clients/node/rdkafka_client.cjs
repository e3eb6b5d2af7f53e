// node-rdkafka: BOOTSTRAP TOPIC GROUP COUNT
const kafka = require("node-rdkafka");

const [bootstrap, topic, group, count] = [...process.argv.slice(2, 5), Number(process.argv[5])];
const numbers = [...Array(count).keys()];
const base = { "bootstrap.servers": bootstrap };

function called(object, method, ...given) {
  return new Promise((resolve, reject) => {
    object[method](...given, (error, value) => (error ? reject(error) : resolve(value)));
  });
}

async function produce() {
  const codecs = ["none", "gzip", "lz4", "snappy"];
  for (const [part, codec] of codecs.entries()) {
    const producer = new kafka.Producer({
      ...base,
      "enable.idempotence": true,
      "compression.type": codec,
      dr_msg_cb: true,
    });
    producer.on("delivery-report", (error, report) => {
      if (error) throw error;
      console.log(`produced ${report.value}`);
    });
    await called(producer, "connect", {});
    producer.setPollInterval(10);
    for (const n of numbers.filter((n) => n % codecs.length === part)) {
      producer.produce(topic, null, Buffer.from(`${n}`), `k${n % 10}`);
    }
    await called(producer, "flush", 60000);
    await called(producer, "disconnect");
  }
}

async function transact() {
  const producer = new kafka.Producer({ ...base, "transactional.id": group });
  await called(producer, "connect", {});
  await called(producer, "initTransactions", 30000);
  for (const [prefix, end] of [["bad-", "abortTransaction"], ["", "commitTransaction"]]) {
    await called(producer, "beginTransaction");
    for (const n of numbers) producer.produce(`${topic}-tx`, null, Buffer.from(`${prefix}${n}`));
    await called(producer, end, 30000);
  }
  for (const n of numbers) console.log(`committed ${n}`);
  await called(producer, "disconnect");
}

async function consume() {
  let read = 0;
  for (const wanted of [count / 2, count]) {
    const settings = { ...base, "group.id": group, "enable.auto.commit": false };
    const consumer = new kafka.KafkaConsumer(settings, { "auto.offset.reset": "earliest" });
    await called(consumer, "connect", {});
    consumer.setDefaultConsumeTimeout(500);
    consumer.subscribe([topic]);
    while (read < wanted) {
      for (const message of await called(consumer, "consume", Math.min(10, wanted - read))) {
        consumer.commitMessageSync(message);
        console.log(`consumed ${message.value}`);
        read++;
      }
    }
    await called(consumer, "disconnect");
  }
}

produce()
  .then(transact)
  .then(consume)
  .then(() => process.exit(0));
