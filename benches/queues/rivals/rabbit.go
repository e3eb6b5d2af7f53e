package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// rabbitQueue is a quorum queue a shard, dealt to by the client. Order: one consumer a queue with one message out at a
// time. Back-off: a queue a duration, whose messages expire into the queue that they came from.
type rabbitQueue struct{ address string }

const attempt = "attempt"

func newRabbit(address string) system { return &rabbitQueue{address} }

func (q *rabbitQueue) open() (*amqp.Connection, *amqp.Channel) {
	connection, err := amqp.Dial(q.address)
	must(err)
	channel, err := connection.Channel()
	must(err)
	return connection, channel
}

func waits(topic string, shard int, wait time.Duration) string {
	return fmt.Sprintf("%s:%d:%s", topic, shard, wait)
}

func (q *rabbitQueue) create(topic string) {
	connection, channel := q.open()
	for shard := range shards {
		name := stream(topic, shard)
		_, err := channel.QueueDeclare(name, true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
		must(err)
	}
	must(connection.Close())
}

func (q *rabbitQueue) fill(load *load) {
	ctx := context.Background()
	connection, channel := q.open()
	defer connection.Close()
	must(channel.Confirm(false))
	confirmed := channel.NotifyPublish(make(chan amqp.Confirmation, len(load.records)))
	for number, record := range load.records {
		load.next(number)
		message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: value(number)}
		must(channel.PublishWithContext(ctx, "", stream(load.topic, record.shard()), false, false, message))
	}
	for range load.records {
		if answer := <-confirmed; !answer.Ack {
			must(fmt.Errorf("message %d is refused", answer.DeliveryTag))
		}
	}
}

func (q *rabbitQueue) consume(run *run) {
	out := run.poll
	if run.inOrder {
		out = int(run.runMax)
	}
	connection, channel := q.open()
	if run.fails > 0 {
		for shard := range shards {
			for delivery := int64(1); delivery <= run.fails; delivery++ {
				wait := backoff(delivery)
				_, err := channel.QueueDeclare(waits(run.topic, shard, wait), true, false, false, false, amqp.Table{
					"x-queue-type": "quorum", "x-message-ttl": wait.Milliseconds(),
					"x-dead-letter-exchange": "", "x-dead-letter-routing-key": stream(run.topic, shard),
				})
				must(err)
			}
		}
	}
	each(shards, func(shard int) { q.work(run, connection, shard, out) })
	must(connection.Close())
}

func (q *rabbitQueue) work(run *run, connection *amqp.Connection, shard, out int) {
	channel, err := connection.Channel()
	must(err)
	must(channel.Qos(out, 0, false))
	messages, err := channel.Consume(stream(run.topic, shard), "", false, false, false, false, nil)
	must(err)
	for !run.isOver() {
		select {
		case message := <-messages:
			q.settle(run, channel, shard, message)
		case <-time.After(check):
		}
	}
}

func (q *rabbitQueue) settle(run *run, channel *amqp.Channel, shard int, message amqp.Delivery) {
	delivery := int64(1)
	if text, ok := message.Headers[attempt].(string); ok {
		counted, err := strconv.ParseInt(text, 10, 64)
		must(err)
		delivery = counted
	}
	if !run.handle(numberOf(message.Body), delivery) {
		again := amqp.Publishing{
			DeliveryMode: amqp.Persistent, Body: message.Body, Headers: amqp.Table{attempt: strconv.FormatInt(delivery+1, 10)},
		}
		name := waits(run.topic, shard, backoff(delivery))
		must(channel.PublishWithContext(context.Background(), "", name, false, false, again))
	}
	must(message.Ack(false))
}
