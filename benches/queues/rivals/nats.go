package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// stallMax is how long a message may wait until others are confirmed.
const stallMax = time.Minute

// natsQueue is a stream whose subjects name a shard and a key. Order: a consumer a shard, with one message out at a time.
type natsQueue struct{ js jetstream.JetStream }

func newNats(address string) system {
	connection, err := nats.Connect(address)
	must(err)
	js, err := jetstream.New(
		connection,
		jetstream.WithPublishAsyncMaxPending(4096),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, _ *nats.Msg, err error) { must(err) }),
	)
	must(err)
	return &natsQueue{js}
}

func subject(topic string, record record) string {
	return fmt.Sprintf("%s.%d.%d", topic, record.shard(), record.key)
}

func (q *natsQueue) create(topic string) {
	_, err := q.js.CreateStream(context.Background(), jetstream.StreamConfig{
		Name: topic, Subjects: []string{topic + ".>"}, Storage: jetstream.FileStorage, AllowMsgSchedules: true,
	})
	must(err)
}

func (q *natsQueue) fill(load *load) {
	for number, record := range load.records {
		load.next(number)
		message := &nats.Msg{Subject: subject(load.topic, record), Data: value(number)}
		if record.due > 0 {
			// a schedule has a subject of its own
			message.Header = nats.Header{
				"Nats-Schedule":        {"@at " + time.UnixMilli(record.due).UTC().Format(time.RFC3339Nano)},
				"Nats-Schedule-Target": {message.Subject},
			}
			message.Subject = fmt.Sprintf("%s.at.%d", load.topic, number)
		}
		// the server may sync its files while so many messages are outstanding
		_, err := q.js.PublishMsgAsync(message, jetstream.WithStallWait(stallMax))
		must(err)
	}
	<-q.js.PublishAsyncComplete()
}

func (q *natsQueue) consume(run *run) {
	if !run.inOrder {
		each(run.workers, func(int) { q.work(run, 0, 10_000, run.topic+".*.*") })
		return
	}
	each(shards, func(shard int) { q.work(run, shard, int(run.runMax), fmt.Sprintf("%s.%d.*", run.topic, shard)) })
}

func (q *natsQueue) work(run *run, shard, out int, filter string) {
	ctx := context.Background()
	config := jetstream.ConsumerConfig{
		Durable: fmt.Sprintf("%s-%d", run.group, shard), FilterSubject: filter, AckPolicy: jetstream.AckExplicitPolicy,
		MaxAckPending: out, DeliverPolicy: jetstream.DeliverAllPolicy,
	}
	if run.isDelayed {
		config.FilterSubject, config.FilterSubjects = "", dueSubjects(run.topic)
	}
	consumer, err := q.js.CreateOrUpdateConsumer(ctx, run.topic, config)
	must(err)
	messages, err := consumer.Messages(jetstream.PullMaxMessages(min(out, run.poll)))
	must(err)
	defer messages.Stop()
	for !run.isOver() {
		message, err := messages.Next(jetstream.NextMaxWait(check))
		if errors.Is(err, nats.ErrTimeout) {
			continue
		}
		must(err)
		told, err := message.Metadata()
		must(err)
		delivery := int64(told.NumDelivered)
		if run.handle(numberOf(message.Data()), delivery) {
			must(message.Ack())
		} else {
			must(message.NakWithDelay(backoff(delivery)))
		}
	}
}

// dueSubjects leaves out the subjects of the schedules themselves.
func dueSubjects(topic string) []string {
	subjects := make([]string, shards)
	for shard := range subjects {
		subjects[shard] = fmt.Sprintf("%s.%d.*", topic, shard)
	}
	return subjects
}
