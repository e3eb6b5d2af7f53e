package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisQueue is a stream a shard. Order: one reader a stream. Times: a sorted set, from which what is due moves to a stream.
type redisQueue struct{ client *redis.Client }

const moveEvery = 5 * time.Millisecond

var move = redis.NewScript(`
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, 1000)
for _, member in ipairs(due) do
	redis.call('ZREM', KEYS[1], member)
	redis.call('XADD', KEYS[2], '*', 'v', member)
end
return #due`)

func newRedis(address string) system {
	return &redisQueue{redis.NewClient(&redis.Options{Addr: address, PoolSize: 2 * shards, MaxRetries: -1})}
}

func stream(topic string, shard int) string { return fmt.Sprintf("%s:%d", topic, shard) }

func later(topic string) string { return topic + ":later" }

// create does nothing: streams are made with their groups.
func (q *redisQueue) create(string) {}

func (q *redisQueue) fill(load *load) {
	ctx := context.Background()
	pipe := q.client.Pipeline()
	for number, record := range load.records {
		load.next(number)
		if record.due > 0 {
			pipe.ZAdd(ctx, later(load.topic), redis.Z{Score: float64(record.due), Member: string(value(number)) + "1"})
		} else {
			values := []string{"v", string(value(number)) + "1"}
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: stream(load.topic, record.shard()), Values: values})
		}
		if load.rate > 0 || pipe.Len() == 500 {
			_, err := pipe.Exec(ctx)
			must(err)
		}
	}
	_, err := pipe.Exec(ctx)
	must(err)
}

func (q *redisQueue) consume(run *run) {
	ctx := context.Background()
	streams := make([]string, shards)
	for shard := range streams {
		streams[shard] = stream(run.topic, shard)
		must(q.client.XGroupCreateMkStream(ctx, streams[shard], run.group, "0").Err())
	}
	if run.isDelayed || run.fails > 0 {
		go q.move(run, streams[0])
	}
	if run.inOrder {
		each(shards, func(shard int) { q.work(run, shard, run.runMax, streams[shard:shard+1]) })
		return
	}
	each(run.workers, func(worker int) { q.work(run, worker, int64(run.poll), streams) })
}

func (q *redisQueue) move(run *run, to string) {
	for !run.isOver() {
		now := strconv.FormatInt(time.Now().UnixMilli(), 10)
		moved, err := move.Run(context.Background(), q.client, []string{later(run.topic), to}, now).Int()
		must(err)
		if moved == 0 {
			time.Sleep(moveEvery)
		}
	}
}

func (q *redisQueue) work(run *run, worker int, count int64, streams []string) {
	ctx := context.Background()
	asked := append([]string{}, streams...)
	for range streams {
		asked = append(asked, ">")
	}
	args := &redis.XReadGroupArgs{
		Group: run.group, Consumer: strconv.Itoa(worker), Streams: asked, Count: count, Block: check,
	}
	for !run.isOver() {
		found, err := q.client.XReadGroup(ctx, args).Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		must(err)
		for _, read := range found {
			for _, message := range read.Messages {
				q.settle(ctx, run, read.Stream, message)
			}
		}
	}
}

// settle counts deliveries behind the value, as a message that comes again is another one.
func (q *redisQueue) settle(ctx context.Context, run *run, stream string, message redis.XMessage) {
	text := message.Values["v"].(string)
	delivery := int64(text[recordBytes] - '0')
	if run.handle(numberOf([]byte(text)), delivery) {
		must(q.client.XAck(ctx, stream, run.group, message.ID).Err())
		return
	}
	_, err := q.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		due := time.Now().Add(backoff(delivery)).UnixMilli()
		again := text[:recordBytes] + string(rune('0'+delivery+1))
		pipe.ZAdd(ctx, later(run.topic), redis.Z{Score: float64(due), Member: again})
		pipe.XAck(ctx, stream, run.group, message.ID)
		return nil
	})
	must(err)
}
